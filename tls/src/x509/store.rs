//! The trust anchors, and the verifier that chains are checked with.

use alloc::vec::Vec;

use skerry_core::time::Timestamp;

use super::Signatures;
use crate::cause::Cause;
use crate::certificate::{Refused, Role, ServerName, Verified, Verifier};
use crate::crypto::PublicKey;

/// A certificate that is refused though its chain is good, as configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Revoked {
    /// By its serial number, big endian, as every issuer in the store may have given it.
    Serial(Vec<u8>),
    /// By the SHA-256 of its DER.
    Fingerprint([u8; 32]),
}

/// An anchor that was left out of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Its place in the list.
    pub index: usize,
    /// Why.
    pub cause: Cause,
}

/// Trust anchors and what checks signatures: a [`Verifier`].
pub struct TrustStore<S> {
    signatures: S,
    trust_id: [u8; 32],
    authorities: Vec<u8>,
}

impl<S: Signatures> TrustStore<S> {
    /// A store of the anchors that can be read (each one DER certificate), and a warning for each other one.
    #[must_use]
    pub fn new(_anchors: &[&[u8]], _revoked: &[Revoked], signatures: S) -> (Self, Vec<Warning>) {
        let store = Self {
            signatures,
            trust_id: [0; 32],
            authorities: Vec::new(),
        };
        (store, Vec::new())
    }

    /// How many anchors it holds. A store of none trusts nobody.
    #[must_use]
    pub fn anchor_count(&self) -> usize {
        0
    }
}

impl<S: Signatures> Verifier for TrustStore<S> {
    fn public_key<'c>(&self, _leaf: &'c [u8]) -> Result<PublicKey<'c>, Cause> {
        Err(Cause::CertificateUnreadable)
    }

    fn verify(
        &self,
        _chain: &[&[u8]],
        _role: Role,
        _name: Option<ServerName<'_>>,
        _now: Timestamp,
    ) -> Result<Verified, Refused> {
        let _ = &self.signatures;
        Err(Refused {
            cause: Cause::UnknownCa,
            index: 0,
        })
    }

    fn authorities(&self) -> &[u8] {
        &self.authorities
    }

    fn trust_id(&self) -> [u8; 32] {
        self.trust_id
    }
}
