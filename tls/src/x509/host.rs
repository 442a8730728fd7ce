//! Names of hosts in certificates (RFC 9525): which are well formed, and which match.

use core::net::IpAddr;

use super::general::{GeneralName, GeneralNames};
use crate::certificate::ServerName;

/// Whether a certificate with these names is `wanted`'s: by its dNSName entries for a DNS name, by its iPAddress entries for an address, by
/// nothing else. A common name counts for nothing.
#[must_use]
pub fn is_named(names: Option<GeneralNames<'_>>, wanted: ServerName<'_>) -> bool {
    let mut names = names.iter().flat_map(GeneralNames::iter);
    match wanted {
        ServerName::Dns(host) => {
            // One dot at the end says that the name is whole, which it is in any case.
            let host = host.strip_suffix('.').unwrap_or(host).as_bytes();
            is_host(host) && names.any(|name| matches!(name, GeneralName::Dns(pattern) if matches(pattern, host)))
        }
        ServerName::Ip(IpAddr::V4(address)) => {
            names.any(|name| matches!(name, GeneralName::Ip(octets) if octets == address.octets()))
        }
        ServerName::Ip(IpAddr::V6(address)) => {
            names.any(|name| matches!(name, GeneralName::Ip(octets) if octets == address.octets()))
        }
    }
}

/// Whether a dNSName matches a host: letter by letter without regard to case, or by `*` for the whole of the first label.
fn matches(pattern: &[u8], host: &[u8]) -> bool {
    if !is_pattern(pattern) {
        return false;
    }
    match pattern.strip_prefix(b"*") {
        Some(rest) => host
            .iter()
            .position(|&byte| byte == b'.')
            .and_then(|dot| host.get(dot..))
            .is_some_and(|parent| parent.eq_ignore_ascii_case(rest)),
        None => pattern.eq_ignore_ascii_case(host),
    }
}

/// Whether `name` is a host's, or a pattern for hosts: `*` as its whole first label, and more labels after it.
#[must_use]
pub fn is_pattern(name: &[u8]) -> bool {
    is_host(name.strip_prefix(b"*.").unwrap_or(name))
}

/// Whether `name` is a host's (RFC 1034 §3.5, RFC 1123 §2.1), or would be but for underscores, which container networks give their hosts.
/// Addresses are none: the last label is not all digits.
#[must_use]
pub fn is_host(name: &[u8]) -> bool {
    let is_label = |label: &[u8]| {
        (1..=63).contains(&label.len())
            && label.first() != Some(&b'-')
            && label.last() != Some(&b'-')
            && label
                .iter()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let mut labels = name.split(|&byte| byte == b'.');
    name.len() <= 253
        && labels.clone().all(is_label)
        && labels
            .next_back()
            .is_some_and(|last| !last.iter().all(u8::is_ascii_digit))
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    fn names(entries: &[(u8, &[u8])]) -> Vec<u8> {
        entries
            .iter()
            .flat_map(|&(tag, value)| [&[tag, value.len() as u8], value].concat())
            .collect()
    }

    fn dns(pattern: &str, host: &str) -> bool {
        let names = names(&[(0x82, pattern.as_bytes())]);
        is_named(Some(GeneralNames::of(&names).unwrap()), ServerName::Dns(host))
    }

    #[test]
    fn a_wildcard_is_one_whole_label() {
        for (pattern, host) in [
            ("broker.example.com", "broker.example.com"),
            ("Broker.Example.com", "bROKER.example.COM"),
            ("broker.example.com", "broker.example.com."),
            ("*.example.com", "broker.example.com"),
            ("*.example.com", "xn--bcher-kva.example.com"),
            ("*.internal", "broker.internal"),
            ("localhost", "localhost"),
            ("my_broker.internal", "my_broker.internal"),
            ("0.pool.example.com", "0.pool.example.com"),
        ] {
            assert!(dns(pattern, host), "{pattern} {host}");
        }
        for (pattern, host) in [
            ("example.com", "broker.example.com"),
            ("broker.example.com", "example.com"),
            ("*.example.com", "example.com"),
            ("*.example.com", ".example.com"),
            ("*.example.com", "a.broker.example.com"),
            ("b*.example.com", "broker.example.com"),
            ("*r.example.com", "broker.example.com"),
            ("broker.*.com", "broker.example.com"),
            ("*.*.com", "broker.example.com"),
            ("*", "localhost"),
            ("*.", "localhost"),
            ("*.com.", "example.com"),
            ("broker.example.com.", "broker.example.com"),
            ("", ""),
            (".", "."),
            ("10.0.0.1", "10.0.0.1"),
            ("*.0.0.1", "10.0.0.1"),
            ("-a.example.com", "-a.example.com"),
            ("a..example.com", "a..example.com"),
            ("a b.example.com", "a b.example.com"),
            ("broker.example.com", "broker.example.com.."),
        ] {
            assert!(!dns(pattern, host), "{pattern} {host}");
        }
    }

    #[test]
    fn lengths_are_bounded() {
        let label = "a".repeat(63);
        let host = [&*label, &*label, &*label, &label[..61]].join(".");
        assert_eq!(host.len(), 253);
        assert!(is_host(host.as_bytes()));
        assert!(!is_host([&*host, "b"].concat().as_bytes()));
        assert!(!is_host([&*label, "a"].concat().as_bytes()));
    }

    #[test]
    fn an_address_matches_its_own_entries_only() {
        let entries = names(&[
            (0x82, b"127.0.0.1"),
            (0x87, &[10, 0, 0, 1]),
            (0x87, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
        ]);
        let entries = Some(GeneralNames::of(&entries).unwrap());
        let is = |address: &str| is_named(entries, ServerName::Ip(address.parse().unwrap()));
        assert!(is("10.0.0.1") && is("::1"));
        assert!(!is("127.0.0.1") && !is("10.0.0.2") && !is("::ffff:10.0.0.1"));
        assert!(!is_named(None, ServerName::Dns("localhost")));
    }
}
