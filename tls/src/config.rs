//! What a session is set up with: who we are, what may be agreed on, whom we trust.

mod client;
mod server;

pub use client::ClientConfig;
pub use server::{ClientAuth, ServerConfig};

use crate::crypto::Provider;

/// A certificate chain and the key that proves it.
pub struct Identity<'a, P: Provider> {
    /// Certificates, DER, leaf first; the leaf's public key is `key`'s.
    pub chain: &'a [&'a [u8]],
    /// The leaf's private key.
    pub key: &'a P::SigningKey,
}

impl<P: Provider> Clone for Identity<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Provider> Copy for Identity<'_, P> {}

/// The configuration of one side.
pub enum Config<'c, P: Provider> {
    /// A server's.
    Server(&'c ServerConfig<'c, P>),
    /// A client's.
    Client(&'c ClientConfig<'c, P>),
}

impl<P: Provider> Clone for Config<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Provider> Copy for Config<'_, P> {}
