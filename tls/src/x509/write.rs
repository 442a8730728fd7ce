//! Certificates written: for development, and for tests, which need some that no tool would write.

use alloc::format;
use alloc::vec::Vec;

use skerry_core::time::Timestamp;

use super::der::tag;
use super::time::Civil;

/// One value: `tag`, and `parts` one after the other.
#[must_use]
pub fn value(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let octets = length.to_be_bytes();
    let octets = octets.get(length.leading_zeros() as usize / 8..).unwrap_or_default();
    let mut bytes = Vec::with_capacity(length + 2 + octets.len());
    bytes.push(tag);
    if length < 0x80 {
        bytes.push(length as u8);
    } else {
        bytes.push(0x80 | octets.len() as u8);
        bytes.extend(octets);
    }
    for part in parts {
        bytes.extend(*part);
    }
    bytes
}

/// A SEQUENCE of `parts`, each a whole value.
#[must_use]
pub fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    value(tag::SEQUENCE, parts)
}

/// A BIT STRING of whole octets.
#[must_use]
pub fn bits(octets: &[u8]) -> Vec<u8> {
    value(tag::BIT_STRING, &[&[0], octets])
}

/// A name of attributes, each in a relative name of its own: the contents of its identifier, and its text.
#[must_use]
pub fn name(attributes: &[(&[u8], &str)]) -> Vec<u8> {
    let sets: Vec<Vec<u8>> = attributes
        .iter()
        .map(|(kind, text)| {
            let pair = sequence(&[&value(tag::OID, &[kind]), &value(tag::UTF8_STRING, &[text.as_bytes()])]);
            value(tag::SET, &[&pair])
        })
        .collect();
    sequence(&sets.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

/// A moment in the form that its year wants (RFC 5280 §4.1.2.5).
#[must_use]
pub fn time(moment: Timestamp) -> Vec<u8> {
    let civil = Civil::of(moment);
    let rest = format!(
        "{:02}{:02}{:02}{:02}{:02}Z",
        civil.month, civil.day, civil.hour, civil.minute, civil.second
    );
    if (1950..2050).contains(&civil.year) {
        value(tag::UTC_TIME, &[format!("{:02}{rest}", civil.year % 100).as_bytes()])
    } else {
        value(tag::GENERALIZED_TIME, &[format!("{:04}{rest}", civil.year).as_bytes()])
    }
}

/// An extension: the contents of its identifier, whether it is critical, its value.
pub type Extension<'a> = (&'a [u8], bool, Vec<u8>);

/// What a certificate is to say. Nothing of it is checked.
#[derive(Clone, Debug)]
pub struct Draft<'a> {
    /// 1, 2 or 3.
    pub version: u8,
    /// The contents of its INTEGER.
    pub serial: &'a [u8],
    /// How it will be signed: an AlgorithmIdentifier.
    pub algorithm: &'a [u8],
    /// A Name.
    pub issuer: &'a [u8],
    /// First moment of its validity.
    pub not_before: Timestamp,
    /// Last moment of its validity.
    pub not_after: Timestamp,
    /// A Name.
    pub subject: &'a [u8],
    /// A SubjectPublicKeyInfo.
    pub spki: &'a [u8],
    /// Its extensions, in this order.
    pub extensions: Vec<Extension<'a>>,
}

impl Draft<'_> {
    /// The TBSCertificate: what is to be signed.
    #[must_use]
    pub fn signed(&self) -> Vec<u8> {
        let version = match self.version {
            1 => Vec::new(),
            version => value(tag::context_constructed(0), &[&[tag::INTEGER, 1, version - 1]]),
        };
        let extensions: Vec<Vec<u8>> = self
            .extensions
            .iter()
            .map(|(id, is_critical, inner)| {
                let critical: &[u8] = if *is_critical { &[tag::BOOLEAN, 1, 0xff] } else { &[] };
                sequence(&[&value(tag::OID, &[id]), critical, &value(tag::OCTET_STRING, &[inner])])
            })
            .collect();
        let extensions = match &*extensions {
            [] => Vec::new(),
            extensions => {
                let list = sequence(&extensions.iter().map(Vec::as_slice).collect::<Vec<_>>());
                value(tag::context_constructed(3), &[&list])
            }
        };
        sequence(&[
            &version,
            &value(tag::INTEGER, &[self.serial]),
            self.algorithm,
            self.issuer,
            &sequence(&[&time(self.not_before), &time(self.not_after)]),
            self.subject,
            self.spki,
            &extensions,
        ])
    }

    /// The certificate, of what [`Draft::signed`] gave and a signature over it.
    #[must_use]
    pub fn finish(&self, signed: &[u8], signature: &[u8]) -> Vec<u8> {
        sequence(&[signed, self.algorithm, &bits(signature)])
    }
}
