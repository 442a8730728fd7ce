//! `ssl.principal.mapping.rules`: from the subject of a client's certificate to the name of its principal.
//!
//! Source: `SslPrincipalMapper` of Kafka 4.4.0. Rules are tried in order; the first whose pattern matches the whole subject decides, and
//! each place where its pattern is found is replaced, by the rules of Java's `Matcher.replaceAll`. Patterns are what `regex-lite`
//! understands: of Java's, it leaves out look-around, back-references and possessive quantifiers, and in return it takes time in
//! proportion to pattern and subject, whatever a peer's subject is.

use std::fmt::Write as _;

use regex_lite::Regex;

/// Kafka's splitter of a list of rules: a rule, and the comma after it.
const LIST: &str = r"\s*((DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?).*?|(.*?))\s*(?:,\s*|$)";
/// One rule, whole.
const RULE: &str = r"^(?:(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?))$";

/// The rules.
#[derive(Clone, Debug)]
pub struct PrincipalRules {
    text: String,
    rules: Vec<Rule>,
}

impl PartialEq for PrincipalRules {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for PrincipalRules {}

#[derive(Clone, Debug)]
enum Rule {
    /// The subject as it is.
    Default,
    Replace {
        /// Matches a whole subject.
        whole: Regex,
        /// What is replaced.
        part: Regex,
        by: Vec<Piece>,
        case: Case,
    },
}

#[derive(Clone, Copy, Debug)]
enum Case {
    Kept,
    Lower,
    Upper,
}

/// A part of a replacement.
#[derive(Clone, Debug)]
enum Piece {
    Text(String),
    Group(usize),
}

impl PrincipalRules {
    /// Reads a list of rules: `RULE:pattern/replacement/` with `L` or `U` behind it or nothing, or `DEFAULT`; separated by commas.
    ///
    /// Errors: which rule cannot be read, and why.
    pub fn read(text: &str) -> Result<Self, String> {
        let (Ok(list), Ok(rule)) = (Regex::new(LIST), Regex::new(RULE)) else {
            return Err("the patterns of this program cannot be read".into());
        };
        let mut rules = Vec::new();
        for found in list.captures_iter(text.trim()) {
            let said = found.get(1).map_or("", |part| part.as_str());
            if said.is_empty() {
                continue;
            }
            let Some(parts) = rule.captures(said) else {
                return Err(format!(
                    "allowed: RULE:pattern/replacement/, then L or U or nothing, or DEFAULT; not {said}"
                ));
            };
            let part = |at| parts.get(at).map(|part| part.as_str());
            rules.push(match (part(2), part(3)) {
                (Some(pattern), Some(replacement)) => {
                    Rule::replace(pattern, replacement, part(4)).map_err(|why| format!("{said}: {why}"))?
                }
                _ => Rule::Default,
            });
        }
        Ok(Self {
            text: text.into(),
            rules,
        })
    }

    /// The name of the principal for a certificate's subject, in the form of RFC 2253; `None` when no rule matches.
    ///
    /// Cost: proportional to the rules and the subject; allocates the name and what the matcher needs.
    #[must_use]
    pub fn name(&self, subject: &str) -> Option<String> {
        self.rules.iter().find_map(|rule| rule.apply(subject))
    }
}

impl Rule {
    fn replace(pattern: &str, replacement: &str, case: Option<&str>) -> Result<Self, String> {
        let compiled =
            |pattern: &str| Regex::new(pattern).map_err(|error| format!("the pattern is not understood: {error}"));
        let part = compiled(pattern)?;
        Ok(Self::Replace {
            by: pieces(replacement, &part)?,
            whole: compiled(&format!(r"\A(?:{pattern})\z"))?,
            part,
            case: match case {
                Some("L") => Case::Lower,
                Some("U") => Case::Upper,
                _ => Case::Kept,
            },
        })
    }

    fn apply(&self, subject: &str) -> Option<String> {
        let Self::Replace { whole, part, by, case } = self else {
            return Some(subject.into());
        };
        if !whole.is_match(subject) {
            return None;
        }
        let mut out = String::new();
        let mut kept = 0;
        let mut at = 0;
        // Java also replaces an empty match right behind the one before.
        while let Some(found) = part.captures_at(subject, at) {
            let Some(all) = found.get(0) else { break };
            out.push_str(subject.get(kept..all.start()).unwrap_or(""));
            for piece in by {
                match piece {
                    Piece::Text(text) => out.push_str(text),
                    Piece::Group(group) => out.push_str(found.get(*group).map_or("", |group| group.as_str())),
                }
            }
            kept = all.end();
            at = kept;
            if all.start() == all.end() {
                match subject.get(at..).and_then(|rest| rest.chars().next()) {
                    Some(next) => at += next.len_utf8(),
                    None => break,
                }
            }
        }
        out.push_str(subject.get(kept..).unwrap_or(""));
        Some(match case {
            Case::Kept => out,
            Case::Lower => out.to_lowercase(),
            Case::Upper => out.to_uppercase(),
        })
    }
}

/// A replacement taken apart: `\c` is the character itself, `$n` the group of the longest number that the pattern has; in a pattern with
/// groups a number beyond them is text, as Kafka has it. `${name}` is a group by name.
fn pieces(replacement: &str, pattern: &Regex) -> Result<Vec<Piece>, String> {
    let groups = pattern.captures_len() - 1;
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut chars = replacement.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => text.push(chars.next().ok_or("the replacement ends in a backslash")?),
            '$' => {
                let group = match chars.peek() {
                    Some('{') => {
                        chars.next();
                        let name: String = chars.by_ref().take_while(|c| *c != '}').collect();
                        let named = pattern.capture_names().position(|group| group == Some(&name));
                        named.ok_or_else(|| format!("the pattern has no group called {name}"))?
                    }
                    Some(digit) if digit.is_ascii_digit() => {
                        let mut number = 0;
                        let mut digits = 0;
                        while let Some(digit) = chars.peek().and_then(|c| c.to_digit(10)) {
                            let longer = number * 10 + digit as usize;
                            if digits > 0 && longer > groups {
                                break;
                            }
                            number = longer;
                            digits += 1;
                            chars.next();
                        }
                        if number > groups {
                            if groups == 0 {
                                return Err(format!("the replacement names ${number}, and the pattern has no group"));
                            }
                            let _ = write!(text, "${number}");
                            continue;
                        }
                        number
                    }
                    _ => return Err("a $ in the replacement is followed by a number, or written \\$".into()),
                };
                pieces.push(Piece::Text(std::mem::take(&mut text)));
                pieces.push(Piece::Group(group));
            }
            other => text.push(other),
        }
    }
    pieces.push(Piece::Text(text));
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(rules: &str, subject: &str) -> Option<String> {
        PrincipalRules::read(rules).unwrap().name(subject)
    }

    /// The examples of Kafka's documentation (security: customizing SSL user name).
    #[test]
    fn kafka_s_examples() {
        let rules = "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/,\
                     RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L,\
                     RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L,\
                     DEFAULT";
        assert_eq!(
            name(
                rules,
                "CN=serviceuser,OU=ServiceUsers,O=Unknown,L=Unknown,ST=Unknown,C=Unknown"
            )
            .as_deref(),
            Some("serviceuser")
        );
        assert_eq!(
            name(rules, "CN=adminUser,OU=Admin,O=Unknown,L=Unknown,ST=Unknown,C=Unknown").as_deref(),
            Some("adminuser@admin")
        );
        assert_eq!(name(rules, "cn=Some.One,O=x").as_deref(), Some("some.one"));
        assert_eq!(name(rules, "O=Unknown").as_deref(), Some("O=Unknown"));
    }

    #[test]
    fn without_a_match_there_is_no_name() {
        assert_eq!(name("RULE:^CN=(.*?),.*$/$1/", "O=x"), None);
        assert_eq!(name("", "O=x"), None);
        assert_eq!(name(" , DEFAULT ,", "O=x").as_deref(), Some("O=x"));
    }

    /// Goal: names are Kafka's. Method: what `SslPrincipalMapper` of Kafka 4.4.0 answered.
    #[test]
    fn agrees_with_kafka() {
        let subject = "CN=Duke,OU=JavaSoft,O=Sun Microsystems";
        for (rules, wanted) in [
            ("RULE:^CN=(.*),OU=(.*),O=(.*)$/$1@$2/", "Duke@JavaSoft"),
            ("RULE:^CN=(.*),OU=(.*),O=(.*)$/$1@$2/U", "DUKE@JAVASOFT"),
            ("RULE:^CN=(.*),OU=(.*),O=(.*)$/$12/", "Duke2"),
            ("RULE:^CN=(.*),OU=(.*),O=(.*)$/$1-$4/", "Duke-$4"),
            (
                "RULE:^CN=(.*),OU=(.*),O=(.*)$/$0/",
                "CN=Duke,OU=JavaSoft,O=Sun Microsystems",
            ),
            ("RULE:^CN=(?<who>.*),OU=.*$/${who}!/", "Duke!"),
            (r"RULE:^CN=(.*),OU=.*$/\$1\/x/", "$1/x"),
            (r"RULE:^CN=(.*),OU=(.*),O=(.*)$/$1\,$2/L", "duke,javasoft"),
            // Found and replaced more than once.
            ("RULE:(.*)/<$1>/", "<CN=Duke,OU=JavaSoft,O=Sun Microsystems><>"),
            (
                "RULE:[A-Z=,a-z ]*?/x/",
                "xCxNx=xDxuxkxex,xOxUx=xJxaxvxaxSxoxfxtx,xOx=xSxuxnx xMxixcxrxoxsxyxsxtxexmxsx",
            ),
            ("RULE:CN=(.*?)/$1/", "Duke,OU=JavaSoft,O=Sun Microsystems"),
        ] {
            assert_eq!(name(rules, subject).as_deref(), Some(wanted), "{rules}");
        }
        assert_eq!(name(r"RULE:^O=a\/b$/ok/", "O=a/b").as_deref(), Some("ok"));
        assert_eq!(name("RULE:^CN=(é.*)$/$1/U", "CN=éa").as_deref(), Some("ÉA"));
    }

    #[test]
    fn rules_that_cannot_be_read_are_named() {
        for (rules, wanted) in [
            (
                "default",
                "allowed: RULE:pattern/replacement/, then L or U or nothing, or DEFAULT; not default",
            ),
            (
                "DEFAULTS",
                "allowed: RULE:pattern/replacement/, then L or U or nothing, or DEFAULT; not DEFAULTS",
            ),
            (
                "RULE:a/b/X",
                "allowed: RULE:pattern/replacement/, then L or U or nothing, or DEFAULT; not RULE:a/b/X",
            ),
            (
                "RULE:a",
                "allowed: RULE:pattern/replacement/, then L or U or nothing, or DEFAULT; not RULE:a",
            ),
            (
                "RULE:a/$1/",
                "RULE:a/$1/: the replacement names $1, and the pattern has no group",
            ),
            (
                "RULE:a/$/",
                "RULE:a/$/: a $ in the replacement is followed by a number, or written \\$",
            ),
            ("RULE:a/${b}/", "RULE:a/${b}/: the pattern has no group called b"),
        ] {
            assert_eq!(PrincipalRules::read(rules).unwrap_err(), wanted);
        }
        let error = PrincipalRules::read("RULE:(a/b/").unwrap_err();
        assert!(
            error.starts_with("RULE:(a/b/: the pattern is not understood: "),
            "{error}"
        );
    }
}
