//! Servers that are compared, each by one trait: bytes in, bytes out.
//!
//! All have the same certificate, prefer X25519 and AES-128-GCM, send one ticket sealed under keys of their own and keep no sessions.

mod ours;

#[cfg(feature = "mbedtls-peer")]
mod mbedtls;
#[cfg(feature = "openssl-peer")]
mod openssl;
#[cfg(feature = "rustls-peer")]
mod rustls;

pub use ours::{provider, start_arena};

use super::Kind;
use skerry_tls::crypto::either::Choice;
use skerry_tls::notes::Notes;
use skerry_tls::suite::Version;

/// A TLS server of one connection at a time.
pub trait Server {
    /// A new connection begins; what the last one left is dropped.
    ///
    /// Errors: the library's.
    fn begin(&mut self) -> Result<(), String>;

    /// What is left of the last connection is dropped.
    fn end(&mut self) {}

    /// What it noted of the connection, where it notes anything.
    fn notes(&self) -> Option<&Notes> {
        None
    }

    /// Ticks that the calls of its engine took on the connection, where it counts them.
    fn engine_ticks(&self) -> u64 {
        0
    }

    /// Takes what the client sent, all of it, and adds what it answers to `out`.
    ///
    /// Errors: it refuses.
    fn receive(&mut self, bytes: &mut [u8], out: &mut Vec<u8>) -> Result<(), String>;
}

/// Which server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// Our engine over that provider.
    Skerry(Choice),
    /// rustls over aws-lc-rs.
    Rustls,
    /// rustls over ring.
    RustlsRing,
    /// OpenSSL, the system's.
    OpenSsl,
    /// mbedtls's own server.
    Mbedtls,
}

impl Peer {
    /// Every one.
    pub const ALL: [Self; 6] = [
        Self::Skerry(Choice::Fast),
        Self::Skerry(Choice::Mbedtls),
        Self::Rustls,
        Self::RustlsRing,
        Self::OpenSsl,
        Self::Mbedtls,
    ];

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Skerry(Choice::Mbedtls) => "skerry-mbedtls",
            Self::Skerry(_) => "skerry",
            Self::Rustls => "rustls",
            Self::RustlsRing => "rustls-ring",
            Self::OpenSsl => "openssl",
            Self::Mbedtls => "mbedtls",
        }
    }

    /// The one of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|peer| peer.name() == name)
    }

    /// Which library it is, with its version.
    #[must_use]
    pub fn version(self) -> String {
        match self {
            Self::Skerry(choice) => format!("Skerry {}, provider {choice}", env!("CARGO_PKG_VERSION")),
            #[cfg(feature = "rustls-peer")]
            Self::Rustls => "rustls 0.23 with aws-lc-rs".into(),
            #[cfg(feature = "rustls-peer")]
            Self::RustlsRing => "rustls 0.23 with ring".into(),
            #[cfg(feature = "openssl-peer")]
            Self::OpenSsl => ::openssl::version::version().into(),
            #[cfg(feature = "mbedtls-peer")]
            Self::Mbedtls => "Mbed TLS 2.28, its own server (TLS 1.2 only)".into(),
            #[allow(unreachable_patterns, reason = "when all are built in")]
            _ => "not built in: see the features of skerry-bench".into(),
        }
    }

    /// Whether it is built in.
    #[must_use]
    pub const fn is_built_in(self) -> bool {
        match self {
            Self::Skerry(_) => true,
            Self::Rustls | Self::RustlsRing => cfg!(feature = "rustls-peer"),
            Self::OpenSsl => cfg!(feature = "openssl-peer"),
            Self::Mbedtls => cfg!(feature = "mbedtls-peer"),
        }
    }

    /// Whether its memory comes from the heap of fixed size that Mbed TLS is given.
    #[must_use]
    pub const fn has_fixed_heap(self) -> bool {
        matches!(self, Self::Skerry(Choice::Mbedtls) | Self::Mbedtls)
    }

    /// Whether it has that kind of handshake.
    #[must_use]
    pub fn speaks(self, kind: Kind) -> bool {
        self != Self::Mbedtls || kind.version == Version::Tls12
    }

    /// A server for handshakes of one kind.
    ///
    /// Errors: it is not built in, or its library refuses.
    pub fn server(self, kind: Kind) -> Result<Box<dyn Server>, String> {
        match self {
            Self::Skerry(choice) => Ok(Box::new(ours::Ours::new(choice, kind)?)),
            #[cfg(feature = "rustls-peer")]
            Self::Rustls => Ok(Box::new(rustls::Rustls::new(kind, rustls::Primitives::AwsLc)?)),
            #[cfg(feature = "rustls-peer")]
            Self::RustlsRing => Ok(Box::new(rustls::Rustls::new(kind, rustls::Primitives::Ring)?)),
            #[cfg(feature = "openssl-peer")]
            Self::OpenSsl => Ok(Box::new(openssl::OpenSsl::new(kind)?)),
            #[cfg(feature = "mbedtls-peer")]
            Self::Mbedtls => Ok(Box::new(mbedtls::Mbedtls::new(kind)?)),
            #[allow(unreachable_patterns, reason = "when all are built in")]
            _ => Err(format!("{} is not built in", self.name())),
        }
    }
}
