//! The fixtures' keys, loaded by a provider.

use super::Fixture;
use crate::config::Identity;
use crate::crypto::Provider;

/// A fixture whose key is loaded.
pub struct Loaded<P: Provider> {
    fixture: Fixture,
    key: P::SigningKey,
}

impl<P: Provider> Loaded<P> {
    /// Loads it.
    #[must_use]
    pub fn new(provider: &P, fixture: Fixture) -> Self {
        Self {
            fixture,
            key: provider.signing_key(fixture.key).unwrap(),
        }
    }

    /// As a configuration takes it.
    #[must_use]
    pub const fn identity(&self) -> Identity<'_, P> {
        Identity {
            chain: self.fixture.chain,
            key: &self.key,
        }
    }
}
