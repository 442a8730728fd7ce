//! What the order of a chain and the match of a key need of a certificate: issuer, subject and public key.
//!
//! Source: RFC 5280 §4.1. Whether a certificate is any good is asked elsewhere.

use super::der::{Algorithm, Der, Malformed, tag};

/// Parts of a certificate, as they are encoded.
#[derive(Clone, Copy, Debug)]
pub struct Certificate<'a> {
    /// Who signed it: a Name.
    pub issuer: &'a [u8],
    /// Whose it is: a Name.
    pub subject: &'a [u8],
    /// The identifier of its public key's algorithm.
    pub algorithm: &'a [u8],
    /// The content of its public key's BIT STRING, without the count of unused bits.
    pub public: &'a [u8],
}

impl<'a> Certificate<'a> {
    /// Reads one whole DER certificate.
    pub fn read(der: &'a [u8]) -> Result<Self, Malformed> {
        let mut outer = Der::new(der);
        let mut certificate = outer.enter(tag::SEQUENCE)?;
        outer.end()?;
        let mut signed = certificate.enter(tag::SEQUENCE)?;
        signed.optional(tag::context(0))?;
        signed.take(tag::INTEGER)?;
        Algorithm::read(&mut signed)?;
        let issuer = signed.take(tag::SEQUENCE)?;
        signed.take(tag::SEQUENCE)?;
        let subject = signed.take(tag::SEQUENCE)?;
        let mut key = signed.enter(tag::SEQUENCE)?;
        let algorithm = Algorithm::read(&mut key)?.oid;
        let public = key.take(tag::BIT_STRING)?.get(1..).ok_or(Malformed::Unexpected)?;
        Ok(Self {
            issuer,
            subject,
            algorithm,
            public,
        })
    }

    /// Whether issuer and subject are one: a root, or a certificate by itself.
    pub fn is_self_issued(&self) -> bool {
        self.issuer == self.subject
    }
}

/// The places of `leaf` and of the certificates above it, each the issuer of the one before; those that are not of this chain are not
/// among them. `certificates` that cannot be read are in no chain.
pub fn chain(certificates: &[&[u8]], leaf: usize) -> Vec<usize> {
    let read: Vec<_> = certificates.iter().map(|der| Certificate::read(der).ok()).collect();
    let mut order = vec![leaf];
    let mut last = read.get(leaf).copied().flatten();
    while let Some(current) = last.filter(|current| !current.is_self_issued()) {
        let above = read.iter().enumerate().find(|(at, other)| {
            let issuer = other.is_some_and(|other| other.subject == current.issuer);
            issuer && !order.contains(at)
        });
        let Some((at, other)) = above else { break };
        order.push(at);
        last = *other;
    }
    order
}

/// The first certificate that issued none of the others: the likely leaf of a file in any order.
pub fn likely_leaf(certificates: &[&[u8]]) -> Option<usize> {
    let read: Vec<_> = certificates.iter().map(|der| Certificate::read(der).ok()).collect();
    let issued_one = |at: usize, one: &Certificate<'_>| {
        let others = read.iter().enumerate().filter(|(other, _)| *other != at);
        others
            .filter_map(|(_, other)| other.as_ref())
            .any(|other| other.issuer == one.subject)
    };
    read.iter()
        .enumerate()
        .find(|(at, one)| one.as_ref().is_some_and(|one| !issued_one(*at, one)))
        .map(|(at, _)| at)
}
