//! What a session is set up with: who we are, what may be agreed on, whom we trust.

mod client;

pub use client::ClientConfig;

use crate::crypto::Provider;

/// A certificate chain and the key that proves it.
pub struct Identity<'a, P: Provider> {
    /// Certificates, DER, leaf first; the leaf's public key is `key`'s.
    pub chain: &'a [&'a [u8]],
    /// The leaf's private key.
    pub key: &'a P::SigningKey,
}
