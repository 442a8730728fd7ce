//! TLS 1.3 (RFC 8446) and 1.2 (RFC 5246), server and client: record layer and handshake machines over exchangeable primitives.
//!
//! Sans-IO and `no_std`: the caller lends buffers and passes time, ticks and randomness in; nothing here has seen a socket. Without
//! features the crate is the client of TLS 1.3 alone, and the caller brings a [`crypto::Provider`] and a [`certificate::Verifier`].
#![no_std]
#![deny(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

#[cfg(any(feature = "mbedtls", feature = "fast", feature = "testing", test))]
extern crate alloc;
#[cfg(any(feature = "mbedtls", feature = "testing", test))]
extern crate std;

pub mod alert;
pub mod cause;
pub mod certificate;
pub mod config;
pub mod crypto;
pub mod handshake;
pub mod message;
pub mod meter;
pub mod notes;
pub mod pinned;
pub mod record;
pub mod saved;
pub mod session;
pub mod state;
pub mod suite;
#[cfg(any(feature = "testing", test))]
pub mod testing;
pub mod trail;
pub mod transport;
pub mod x509;
