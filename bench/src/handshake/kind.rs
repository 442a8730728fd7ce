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

/// How a server is set up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Setup {
    /// All alike: the client offers AES-128-GCM with SHA-256 alone, one ticket is sent, sessions are kept in tickets.
    #[default]
    Alike,
    /// Each as its library has it by default: it chooses the suite from all that it has in common with the client, and sends as many tickets,
    /// and keeps sessions where, it likes.
    Default,
}

impl Setup {
    /// As it is spelled on a command line.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Alike => "alike",
            Self::Default => "default",
        }
    }
}

/// One kind of handshake, always with X25519.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its version.
    pub version: Version,
    /// What passes.
    pub shape: Shape,
    /// The server's key.
    pub key: Key,
    /// How the server is set up.
    pub setup: Setup,
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
        Self {
            version,
            shape,
            key,
            setup: Setup::Alike,
        }
    }

    /// The one of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.to_string() == name)
    }

    /// The suites that the client offers.
    #[must_use]
    pub const fn suites(self) -> &'static [CipherSuite] {
        match (self.setup, self.version, self.key) {
            (Setup::Default, ..) => CipherSuite::ALL,
            (Setup::Alike, Version::Tls13, _) => &[CipherSuite::TLS_AES_128_GCM_SHA256],
            (Setup::Alike, Version::Tls12, Key::P256) => &[CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256],
            (Setup::Alike, Version::Tls12, Key::Rsa2048) => &[CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256],
        }
    }

    /// Whether all servers are set up alike.
    #[must_use]
    pub fn is_alike(self) -> bool {
        self.setup == Setup::Alike
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
