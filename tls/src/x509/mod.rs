//! Certificates: what they say (RFC 5280), whose names they bear (RFC 9525), and whether a chain of them leads to a trust anchor.
//!
//! The rules are here; the signatures are checked by a library ([`Signatures`]). Reading needs no allocation, so firmware has it too.

mod details;

#[cfg(feature = "mbedtls")]
mod cache;
#[cfg(feature = "mbedtls")]
pub mod develop;
#[cfg(feature = "mbedtls")]
mod signature;
#[cfg(feature = "mbedtls")]
mod store;

pub use self::details::Details;
#[cfg(feature = "mbedtls")]
pub use self::{
    cache::Cached,
    signature::{ByMbedtls, SignatureAlgorithm, Signatures},
    store::{Revoked, TrustStore, Warning},
};
