//! Certificates: what they say (RFC 5280), whose names they bear (RFC 9525), and whether a chain of them leads to a trust anchor.
//!
//! The rules are all here; a library only checks signatures ([`Signatures`]), and sees nothing of a peer's certificate but a key and a
//! signature whose form was checked. Reading needs no allocation, so firmware has it too.

pub mod certificate;
mod constraint;
pub mod der;
mod details;
mod general;
mod host;
mod key;
mod name;
mod profile;
mod time;

#[cfg(feature = "mbedtls")]
mod cache;
#[cfg(feature = "mbedtls")]
pub mod check;
#[cfg(feature = "mbedtls")]
pub mod develop;
#[cfg(feature = "mbedtls")]
mod path;
#[cfg(feature = "mbedtls")]
pub mod pem;
#[cfg(feature = "mbedtls")]
mod signature;
#[cfg(feature = "mbedtls")]
mod store;
#[cfg(feature = "mbedtls")]
mod write;

#[cfg(all(test, feature = "mbedtls"))]
mod made;
#[cfg(all(test, feature = "mbedtls"))]
mod tests;

pub use self::details::Details;
pub use self::general::{GeneralName, GeneralNames};
pub use self::host::is_named;
pub use self::key::{Digest, IssuerKey, SignatureAlgorithm, public_key};
pub use self::profile::Profile;
pub use self::time::Readable;
#[cfg(feature = "mbedtls")]
pub use self::{
    cache::Cached,
    signature::{ByMbedtls, ByProvider, Issuer, Signatures},
    store::{Policy, Revoked, TrustStore, Warning},
};
