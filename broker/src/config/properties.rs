//! Java's `.properties` format, with the line of each entry.
//!
//! Source: the documentation of `java.util.Properties.load`. Files are UTF-8, in which a file of Java's Latin-1 with escapes
//! reads the same. Own code, as the crate for this brings a regular-expression engine (1.6 MB of program) and differs from Java
//! where a continued line begins empty.

/// One entry of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Property {
    /// The line that it begins on, from 1.
    pub line: usize,
    /// Its key.
    pub key: String,
    /// Its value; blanks at its end are kept.
    pub value: String,
}

/// An entry that cannot be read: its line, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The line that the entry begins on, from 1.
    pub line: usize,
    /// What is wrong.
    pub reason: &'static str,
}

/// Reads every entry in order; a key may come more than once.
pub fn parse(text: &str) -> Vec<Result<Property, Malformed>> {
    let mut lines = natural_lines(text).enumerate().peekable();
    let mut out = Vec::new();
    'entries: while let Some((at, first)) = lines.next() {
        let first = first.trim_start_matches(BLANKS);
        if first.is_empty() || first.starts_with(['#', '!']) {
            continue;
        }
        let mut logical = first.to_owned();
        while ends_with_continuation(&logical) {
            logical.pop();
            if logical.is_empty() && lines.peek().is_some() {
                continue 'entries;
            }
            match lines.next() {
                Some((_, next)) => logical.push_str(next.trim_start_matches(BLANKS)),
                None => break,
            }
        }
        let line = at + 1;
        out.push(match entry(&logical) {
            Ok((key, value)) => Ok(Property { line, key, value }),
            Err(reason) => Err(Malformed { line, reason }),
        });
    }
    out
}

/// What Java counts as blank between the parts of a line.
const BLANKS: [char; 3] = [' ', '\t', '\x0c'];

/// Lines ended by `\n`, `\r` or `\r\n`, without their ends. After the last end there is no further line.
fn natural_lines(mut text: &str) -> impl Iterator<Item = &str> {
    core::iter::from_fn(move || {
        if text.is_empty() {
            return None;
        }
        let (line, end) = text.split_at(text.find(['\n', '\r']).unwrap_or(text.len()));
        text = end.strip_prefix("\r\n").or_else(|| end.get(1..)).unwrap_or("");
        Some(line)
    })
}

/// Whether the last backslash is not itself escaped.
fn ends_with_continuation(line: &str) -> bool {
    line.bytes().rev().take_while(|b| *b == b'\\').count() % 2 == 1
}

/// Splits a logical line at its first separator that is not escaped.
fn entry(line: &str) -> Result<(String, String), &'static str> {
    let mut escaped = false;
    let end = line
        .find(|c: char| {
            let ends = !escaped && (matches!(c, '=' | ':') || BLANKS.contains(&c));
            escaped = c == '\\' && !escaped;
            ends
        })
        .unwrap_or(line.len());
    let (key, rest) = line.split_at(end);
    let rest = rest.trim_start_matches(BLANKS);
    let value = rest
        .strip_prefix(['=', ':'])
        .map_or(rest, |value| value.trim_start_matches(BLANKS));
    Ok((unescape(key)?, unescape(value)?))
}

fn unescape(text: &str) -> Result<String, &'static str> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('t') => out.push('\t'),
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('f') => out.push('\x0c'),
            Some('u') => out.push(code_point(&mut chars)?),
            Some(other) => out.push(other),
            None => {}
        }
    }
    Ok(out)
}

/// The character after `\u`, of one or, above U+FFFF, two escapes.
fn code_point(chars: &mut core::str::Chars<'_>) -> Result<char, &'static str> {
    const FOUR: &str = "\\u needs four hexadecimal digits";
    const PAIR: &str = "\\u names half of a surrogate pair";
    let unit = |chars: &mut core::str::Chars<'_>| {
        (0..4).try_fold(0_u16, |sum, _| {
            let digit = chars.next().and_then(|c| c.to_digit(16)).ok_or(FOUR)?;
            Ok::<u16, &'static str>(sum << 4 | u16::try_from(digit).map_err(|_| FOUR)?)
        })
    };
    let first = unit(chars)?;
    let mut units = vec![first];
    if (0xd800..0xdc00).contains(&first) {
        if chars.next() != Some('\\') || chars.next() != Some('u') {
            return Err(PAIR);
        }
        units.push(unit(chars)?);
    }
    match char::decode_utf16(units).next() {
        Some(Ok(c)) => Ok(c),
        _ => Err(PAIR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(text: &str) -> Vec<(usize, String, String)> {
        parse(text)
            .into_iter()
            .map(|p| p.map(|p| (p.line, p.key, p.value)).unwrap())
            .collect()
    }

    #[test]
    fn reads_what_java_reads() {
        let text = "# comment\n! other\n\n a=1\nb : two words  \nc\\=d\\:e\\ f = g=h\r\nlist = x,\\\n    y,\\\r\n\tz\n\
                    back = C:\\\\dir\\\\\nnext\nempty=\nuni=\\u00e9\\u4e2d\ttab\\tx\\q\nlast = no end";
        let found = entries(text);
        assert!(found.contains(&(7, "list".into(), "x,y,z".into())));
        assert!(found.contains(&(10, "back".into(), "C:\\dir\\".into())));
        assert!(found.contains(&(6, "c=d:e f".into(), "g=h".into())));
    }

    /// Goal: no file reads otherwise than in Java. Method: every text of up to five pieces of the alphabet that the format
    /// gives a meaning to, but those that end in a continuation of nothing; the sum of what they read as was taken from `java.util.Properties` of JDK 17.
    #[test]
    fn agrees_with_java_on_all_short_texts() {
        let pieces = ["k", "=", ":", " ", "\\", "\n", "#", "\r", "v"];
        let mut sum = 0xcbf2_9ce4_8422_2325_u64;
        let mut add = |text: &str| {
            for byte in text.bytes() {
                sum = (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
            }
        };
        for length in 1..=5_u32 {
            for mut n in 0..pieces.len().pow(length) {
                let mut text = String::new();
                for _ in 0..length {
                    text.push_str(pieces[n % pieces.len()]);
                    n /= pieces.len();
                }
                if text.trim_end_matches(['\r', '\n']).ends_with('\\') {
                    continue;
                }
                add(&text);
                for (_, key, value) in entries(&text) {
                    add(&format!("\x01{key}\x02{value}"));
                }
                add("\x03");
            }
        }
        assert_eq!(sum, 0xd858_692f_10c2_aa2f);
    }

    #[test]
    fn pairs_of_escapes_make_one_character() {
        assert_eq!(entries("k=\\ud83d\\ude00"), [(1, "k".into(), "😀".into())]);
    }

    #[test]
    fn broken_escapes_are_named_by_line() {
        let reason = |text| parse(text).into_iter().find_map(Result::err);
        assert_eq!(
            reason("a=1\nb=\\u12"),
            Some(Malformed {
                line: 2,
                reason: "\\u needs four hexadecimal digits"
            })
        );
        assert_eq!(
            reason("b=\\ud83dx").map(|m| m.reason),
            Some("\\u names half of a surrogate pair")
        );
        assert_eq!(
            reason("b=\\ud83d\\u0041").map(|m| m.reason),
            Some("\\u names half of a surrogate pair")
        );
    }
}
