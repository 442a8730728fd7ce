//! What the first bytes of a connection tell about a peer that does not speak TLS.

use crate::cause::Spoken;

/// A first impression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Greeting {
    /// A record's first byte, or nothing yet: the record layer reads on.
    Tls,
    /// No record; so many bytes more tell what.
    Short(usize),
    /// No record, but this.
    Plaintext(Spoken),
}

/// How HTTP requests begin, HTTP/2 connections, and answers.
const HTTP: [&[u8; 4]; 11] = [
    b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"CONN", b"OPTI", b"TRAC", b"PATC", b"PRI ", b"HTTP",
];

/// Api keys of Kafka requests are below this: there are about ninety.
const API_KEYS: u16 = 256;

impl Greeting {
    /// Looks at the first bytes. The answer does not depend on how they were cut.
    pub(super) fn of(input: &[u8]) -> Self {
        let short = |bytes: usize| Self::Short(bytes - input.len());
        match *input {
            [] | [20..=23, ..] => Self::Tls,
            // A Kafka request is `length ‖ api_key ‖ …`, an answer `length ‖ number of its request ‖ …`, and neither as long as 16 MiB at first.
            [0, a, b, c, d, e, ..] => {
                let is_request = u32::from_be_bytes([0, a, b, c]) >= 8 && u16::from_be_bytes([d, e]) < API_KEYS;
                Self::Plaintext(if is_request { Spoken::Kafka } else { Spoken::Unknown })
            }
            [0, ..] => short(6),
            // RFC 5246 §E.2: a two-byte length with its highest bit set, then 1 for a CLIENT-HELLO.
            [0x80..=0xff, _, 1, ..] => Self::Plaintext(Spoken::Sslv2),
            [0x80..=0xff, _, _, ..] => Self::Plaintext(Spoken::Unknown),
            [0x80..=0xff, ..] => short(3),
            [first, ..] if HTTP.iter().any(|start| start[0] == first) => match input.first_chunk() {
                Some(start) if HTTP.contains(&start) => Self::Plaintext(Spoken::Http),
                Some(_) => Self::Plaintext(Spoken::Unknown),
                None => short(4),
            },
            _ => Self::Plaintext(Spoken::Unknown),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_tell_what_is_spoken() {
        let of = |bytes: &[u8]| Greeting::of(bytes);
        let told = Greeting::Plaintext;
        assert_eq!(of(&[0, 0, 0, 40, 0, 18, 0, 3]), told(Spoken::Kafka), "ApiVersions");
        assert_eq!(
            of(&[0, 0, 0, 7, 0, 18]),
            told(Spoken::Unknown),
            "shorter than any request"
        );
        assert_eq!(of(&[0, 0, 0, 40, 1, 0]), told(Spoken::Unknown), "no such request");
        assert_eq!(of(b"GET / HTTP/1.1"), told(Spoken::Http));
        assert_eq!(of(b"PRI * HTTP/2.0"), told(Spoken::Http));
        assert_eq!(of(b"HTTP/1.1 400 Bad Request"), told(Spoken::Http));
        assert_eq!(of(b"GETT"), told(Spoken::Unknown));
        assert_eq!(of(b"EHLO mail"), told(Spoken::Unknown));
        assert_eq!(of(&[0x80, 0x2e, 1, 3, 1]), told(Spoken::Sslv2));
        assert_eq!(of(&[0x80, 0x2e, 4]), told(Spoken::Unknown));
        for kind in 20..=23 {
            assert_eq!(of(&[kind]), Greeting::Tls);
        }
        assert_eq!(of(&[]), Greeting::Tls);
    }

    #[test]
    fn cut_anywhere_they_tell_the_same() {
        for whole in [&[0, 0, 0, 40, 0, 18][..], b"POST", &[0xff, 1, 1], &[0x80, 0x2e, 2]] {
            let told = Greeting::of(whole);
            for cut in 1..whole.len() {
                assert_eq!(Greeting::of(&whole[..cut]), Greeting::Short(whole.len() - cut), "{cut}");
            }
            assert!(matches!(told, Greeting::Plaintext(_)));
        }
    }
}
