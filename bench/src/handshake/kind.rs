//! What kinds of handshake are measured.

use core::fmt;

use skerry_tls::suite::{CipherSuite, Version};
use skerry_tls::testing::Fixture;

/// The server's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// ECDSA over P-256.
    P256,
    /// RSA of 2048 bits.
    Rsa2048,
}

impl Key {
    /// Its certificate.
    #[must_use]
    pub const fn fixture(self) -> Fixture {
        match self {
            Self::P256 => Fixture::P256,
            Self::Rsa2048 => Fixture::RSA,
        }
    }
}

/// What passes between client and server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A full handshake.
    Full,
    /// A session is resumed by a ticket; in TLS 1.3 with a fresh key exchange.
    Resumed,
    /// A full handshake in which the client has a certificate too, of P-256.
    Mutual,
}

/// One kind of handshake. Always X25519 and AES-128-GCM with SHA-256.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its version.
    pub version: Version,
    /// What passes.
    pub shape: Shape,
    /// The server's key.
    pub key: Key,
}

impl Kind {
    /// Every kind. A resumed handshake signs nothing, so that the key does not matter to it.
    pub const ALL: [Self; 8] = [
        Self::new(Version::Tls13, Shape::Full, Key::P256),
        Self::new(Version::Tls13, Shape::Resumed, Key::P256),
        Self::new(Version::Tls13, Shape::Mutual, Key::P256),
        Self::new(Version::Tls13, Shape::Full, Key::Rsa2048),
        Self::new(Version::Tls12, Shape::Full, Key::P256),
        Self::new(Version::Tls12, Shape::Resumed, Key::P256),
        Self::new(Version::Tls12, Shape::Mutual, Key::P256),
        Self::new(Version::Tls12, Shape::Full, Key::Rsa2048),
    ];

    const fn new(version: Version, shape: Shape, key: Key) -> Self {
        Self { version, shape, key }
    }

    /// The one suite that the client offers.
    #[must_use]
    pub const fn suite(self) -> CipherSuite {
        match (self.version, self.key) {
            (Version::Tls13, _) => CipherSuite::TLS_AES_128_GCM_SHA256,
            (Version::Tls12, Key::P256) => CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
            (Version::Tls12, Key::Rsa2048) => CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        }
    }

    /// Whether a session is resumed.
    #[must_use]
    pub fn is_resumed(self) -> bool {
        self.shape == Shape::Resumed
    }

    /// Whether clients are asked for certificates.
    #[must_use]
    pub fn is_mutual(self) -> bool {
        self.shape == Shape::Mutual
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = match self.version {
            Version::Tls13 => "1.3",
            Version::Tls12 => "1.2",
        };
        let shape = match self.shape {
            Shape::Full => "full",
            Shape::Resumed => "resumed",
            Shape::Mutual => "mutual",
        };
        let key = match self.key {
            Key::P256 => "p256",
            Key::Rsa2048 => "rsa2048",
        };
        write!(f, "{version}/{shape}/{key}")
    }
}
