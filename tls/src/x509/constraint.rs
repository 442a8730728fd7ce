//! Name constraints (RFC 5280 §4.2.1.10): what a CA lets its certificates be called.

use super::certificate::Certificate;
use super::der::{Malformed, Reader, tag};
use super::general::{GeneralName, GeneralNames};
use super::host;
use super::name::EMAIL_ADDRESS;

/// Comparisons of a name with a constraint in one verification; more are a refusal, so that no chain costs more than milliseconds.
#[cfg(any(feature = "mbedtls", test))]
pub const COMPARISON_COUNT_MAX: u32 = 100_000;

/// Why names are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outside {
    /// One of them is outside of the constraints.
    Name,
    /// There are more names and constraints than are compared.
    TooMany,
}

/// The constraints of one CA, their structure checked.
#[derive(Clone, Copy, Debug)]
pub struct NameConstraints<'a> {
    /// Subtrees, one after the other.
    permitted: &'a [u8],
    /// Subtrees, one after the other.
    excluded: &'a [u8],
}

impl<'a> NameConstraints<'a> {
    /// The whole value of the extension.
    ///
    /// Errors: [`Malformed`] also for constraints of nothing, with a minimum or maximum, and for bases that are no host, domain, mailbox or
    ///   network.
    pub fn read(value: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = super::der::sequence(value)?;
        let permitted = reader.optional(tag::context_constructed(0))?;
        let excluded = reader.optional(tag::context_constructed(1))?;
        reader.finish()?;
        if permitted.is_none() && excluded.is_none() {
            return Err(Malformed);
        }
        for subtrees in [permitted, excluded].into_iter().flatten() {
            let mut reader = Reader::new(subtrees);
            subtree(&mut reader)?;
            while !reader.is_empty() {
                subtree(&mut reader)?;
            }
        }
        Ok(Self {
            permitted: permitted.unwrap_or_default(),
            excluded: excluded.unwrap_or_default(),
        })
    }

    /// Whether a DNS constraint begins with a dot, which RFC 5280 knows for other kinds only.
    #[must_use]
    pub fn has_dotted_dns(&self) -> bool {
        bases(self.permitted)
            .chain(bases(self.excluded))
            .any(|base| matches!(base, GeneralName::Dns([b'.', ..])))
    }

    /// Whether every name of `certificate` may be: its subject, its subjectAltName, and the mailboxes in its subject when it has no other.
    ///
    /// Every comparison takes one from `comparisons`.
    pub fn allow(&self, certificate: &Certificate<'_>, comparisons: &mut u32) -> Result<(), Outside> {
        let names = certificate.extensions.subject_alt_name;
        for name in names.iter().flat_map(GeneralNames::iter) {
            self.allow_one(name, comparisons)?;
        }
        if !certificate.subject.is_empty() {
            self.allow_one(GeneralName::Directory(certificate.subject), comparisons)?;
        }
        let is_mailbox = |name| matches!(name, GeneralName::Email(_));
        if !names.iter().flat_map(GeneralNames::iter).any(is_mailbox) {
            for attribute in certificate.subject.attributes() {
                if attribute.kind == EMAIL_ADDRESS {
                    self.allow_one(GeneralName::Email(attribute.value), comparisons)?;
                }
            }
        }
        Ok(())
    }

    fn allow_one(&self, name: GeneralName<'_>, comparisons: &mut u32) -> Result<(), Outside> {
        for base in bases(self.excluded) {
            *comparisons = comparisons.checked_sub(1).ok_or(Outside::TooMany)?;
            if compare(name, base, Kind::Excluded) == Some(true) {
                return Err(Outside::Name);
            }
        }
        let mut is_constrained = false;
        for base in bases(self.permitted) {
            *comparisons = comparisons.checked_sub(1).ok_or(Outside::TooMany)?;
            match compare(name, base, Kind::Permitted) {
                None => {}
                Some(true) => return Ok(()),
                Some(false) => is_constrained = true,
            }
        }
        if is_constrained { Err(Outside::Name) } else { Ok(()) }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Permitted,
    Excluded,
}

/// Whether `name` falls under `base`; `None` when they are of different kinds. What cannot be compared, because nothing here knows its kind or
/// it is malformed, falls under what is excluded and under nothing that is permitted.
fn compare(name: GeneralName<'_>, base: GeneralName<'_>, kind: Kind) -> Option<bool> {
    let unknown = kind == Kind::Excluded;
    Some(match (name, base) {
        (GeneralName::Dns(name), GeneralName::Dns(base)) => {
            if !host::is_pattern(name) {
                return Some(unknown);
            }
            // A pattern falls under what all its hosts fall under; it is excluded when one of them is.
            let names_one = |rest: &[u8]| parent(base).is_some_and(|parent| parent.eq_ignore_ascii_case(rest));
            is_under(name, base) || kind == Kind::Excluded && name.strip_prefix(b"*.").is_some_and(names_one)
        }
        (GeneralName::Ip(name), GeneralName::Ip(base)) => match (name.len(), base.len()) {
            (4, 32) | (16, 8) => false,
            (4, 8) | (16, 32) => {
                let (network, mask) = base.split_at_checked(name.len())?;
                name.iter()
                    .zip(network)
                    .zip(mask)
                    .all(|((name, network), mask)| (name ^ network) & mask == 0)
            }
            _ => unknown,
        },
        (GeneralName::Directory(name), GeneralName::Directory(base)) => name.is_within(&base),
        (GeneralName::Email(name), GeneralName::Email(base)) => match mailbox(name) {
            None => unknown,
            Some((local, host)) => match mailbox(base) {
                Some((base_local, base_host)) => local == base_local && host.eq_ignore_ascii_case(base_host),
                None => is_at(host, base),
            },
        },
        (GeneralName::Uri(name), GeneralName::Uri(base)) => authority(name).map_or(unknown, |host| is_at(host, base)),
        (GeneralName::Other(name), GeneralName::Other(base)) if name == base => unknown,
        _ => return None,
    })
}

/// A DNS name falls under a base that it is or that it ends in, by whole labels; under the empty base all fall. A base with a leading dot is
/// a domain without its own name.
fn is_under(name: &[u8], base: &[u8]) -> bool {
    let Some((front, back)) = name
        .len()
        .checked_sub(base.len())
        .and_then(|front| name.split_at_checked(front))
    else {
        return false;
    };
    let at_label = match base {
        [] => true,
        [b'.', ..] => !front.is_empty(),
        _ => front.is_empty() || front.ends_with(b"."),
    };
    at_label && back.eq_ignore_ascii_case(base)
}

/// A host of a mailbox or URI is at the host that a base names, or in the domain when the base begins with a dot.
fn is_at(host: &[u8], base: &[u8]) -> bool {
    if base.starts_with(b".") {
        is_under(host, base)
    } else {
        host.eq_ignore_ascii_case(base)
    }
}

/// What is after the first label.
fn parent(name: &[u8]) -> Option<&[u8]> {
    let dot = name.iter().position(|&byte| byte == b'.')?;
    name.get(dot + 1..)
}

/// Local part and host of a mailbox without quotes or comments.
fn mailbox(name: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut parts = name.split(|&byte| byte == b'@');
    let (local, host) = (parts.next()?, parts.next()?);
    let is_atom = |byte: &u8| {
        byte.is_ascii_graphic() && !matches!(byte, b'"' | b'(' | b')' | b'<' | b'>' | b',' | b';' | b':' | b'\\')
    };
    (parts.next().is_none() && !local.is_empty() && local.iter().all(is_atom) && host::is_host(host))
        .then_some((local, host))
}

/// The host of a URI, if it has one and it is a name (RFC 3986 §3.2).
fn authority(uri: &[u8]) -> Option<&[u8]> {
    let colon = uri.iter().position(|&byte| byte == b':')?;
    let rest = uri.get(colon + 1..)?.strip_prefix(b"//")?;
    let authority = rest.split(|byte| matches!(byte, b'/' | b'?' | b'#')).next()?;
    let host = authority.rsplit(|&byte| byte == b'@').next()?;
    let host = host.split(|&byte| byte == b':').next()?;
    host::is_host(host).then_some(host)
}

fn subtree<'a>(reader: &mut Reader<'a>) -> Result<GeneralName<'a>, Malformed> {
    let mut subtree = reader.sequence()?;
    let base = GeneralName::read(&mut subtree)?;
    // A minimum of 0 is the default, and a maximum has no place in this profile.
    subtree.finish()?;
    let domain = |name: &[u8]| host::is_host(name.strip_prefix(b".").unwrap_or(name));
    let is_good = match base {
        GeneralName::Dns(name) => name.is_empty() || domain(name),
        GeneralName::Email(name) => mailbox(name).is_some() || domain(name),
        GeneralName::Uri(name) => domain(name),
        GeneralName::Ip(network) => {
            matches!(network.len(), 8 | 32) && {
                let mask = network.split_at_checked(network.len() / 2).unwrap_or_default().1;
                let ones: u32 = mask.iter().map(|octet| octet.leading_ones()).sum();
                let set: u32 = mask.iter().map(|octet| octet.count_ones()).sum();
                // All ones stand before all zeros.
                ones == set && mask.is_sorted_by(|one, next| one >= next && (*one == 0xff || *next == 0))
            }
        }
        GeneralName::Directory(_) | GeneralName::Other(_) => true,
    };
    if is_good { Ok(base) } else { Err(Malformed) }
}

fn bases<'a>(subtrees: &'a [u8]) -> impl Iterator<Item = GeneralName<'a>> {
    let mut reader = Reader::new(subtrees);
    core::iter::from_fn(move || subtree(&mut reader).ok())
}
