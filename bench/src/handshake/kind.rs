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

/// What goes wrong, from the earliest that a server can notice to the latest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A Kafka client that speaks plaintext: the first record's header is none.
    Plaintext,
    /// A hello for TLS 1.1 alone.
    NoCommonVersion,
    /// A hello whose one suite no server here has.
    NoCommonSuite,
    /// The client hears the server's flight and says nothing more: nothing is refused.
    Silent,
    /// The client does not trust the server's certificate and says so.
    UnknownCa,
    /// The client's certificate is its own authority, which the server does not know.
    ClientUnknown,
    /// The client's last record does not open.
    BadFinished,
}

impl Fault {
    /// Every one.
    pub const ALL: [Self; 7] = [
        Self::Plaintext,
        Self::NoCommonVersion,
        Self::NoCommonSuite,
        Self::Silent,
        Self::UnknownCa,
        Self::ClientUnknown,
        Self::BadFinished,
    ];

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plaintext => "plaintext",
            Self::NoCommonVersion => "no-common-version",
            Self::NoCommonSuite => "no-common-suite",
            Self::Silent => "silent",
            Self::UnknownCa => "unknown-ca",
            Self::ClientUnknown => "client-unknown",
            Self::BadFinished => "bad-finished",
        }
    }

    /// Whether the server's own work is behind it when it fails.
    #[must_use]
    pub const fn reaches_keys(self) -> bool {
        !matches!(self, Self::Plaintext | Self::NoCommonVersion | Self::NoCommonSuite)
    }
}

/// Lengths of a ClientHello's record that clients in the field have: Java's, one padded for the sake of middleboxes, one with a share of a
/// post-quantum group.
pub const HELLO_BYTES: [u16; 3] = [367, 517, 1542];

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
    /// How long the client's hello is, record header and all; 0 as short as it gets.
    pub hello_bytes: u16,
    /// What goes wrong.
    pub fault: Option<Fault>,
}

impl Kind {
    /// Those that succeed, with a hello as short as it gets. A resumed handshake signs nothing, so that the key does not matter to it.
    pub const MAIN: [Self; 8] = [
        Self::new(Version::Tls13, Shape::Full, Key::P256),
        Self::new(Version::Tls13, Shape::Resumed, Key::P256),
        Self::new(Version::Tls13, Shape::Mutual, Key::P256),
        Self::new(Version::Tls13, Shape::Full, Key::Rsa2048),
        Self::new(Version::Tls12, Shape::Full, Key::P256),
        Self::new(Version::Tls12, Shape::Resumed, Key::P256),
        Self::new(Version::Tls12, Shape::Mutual, Key::P256),
        Self::new(Version::Tls12, Shape::Full, Key::Rsa2048),
    ];

    /// That succeeds, all servers set up alike.
    #[must_use]
    pub const fn new(version: Version, shape: Shape, key: Key) -> Self {
        Self {
            version,
            shape,
            key,
            setup: Setup::Alike,
            hello_bytes: 0,
            fault: None,
        }
    }

    /// Every kind: those that succeed, full ones with longer hellos, and those that fail.
    pub fn all() -> impl Iterator<Item = Self> {
        let full = |version| Self::new(version, Shape::Full, Key::P256);
        let versions = || [Version::Tls13, Version::Tls12].into_iter();
        let longer = versions().flat_map(move |version| {
            HELLO_BYTES.map(|hello_bytes| Self {
                hello_bytes,
                ..full(version)
            })
        });
        let failing = versions().flat_map(move |version| {
            Fault::ALL.map(|fault| Self {
                shape: if fault == Fault::ClientUnknown {
                    Shape::Mutual
                } else {
                    Shape::Full
                },
                fault: Some(fault),
                ..full(version)
            })
        });
        Self::MAIN.into_iter().chain(longer).chain(failing)
    }

    /// The one of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|kind| kind.to_string() == name)
    }

    /// Whether it is one of [`Kind::MAIN`].
    #[must_use]
    pub const fn is_main(self) -> bool {
        self.hello_bytes == 0 && self.fault.is_none()
    }

    /// The version of the client's hello: one that is too old is made of a TLS 1.2 hello.
    #[must_use]
    pub const fn hello_version(self) -> Version {
        match self.fault {
            Some(Fault::NoCommonVersion) => Version::Tls12,
            _ => self.version,
        }
    }

    /// The suites that the client offers.
    #[must_use]
    pub const fn suites(self) -> &'static [CipherSuite] {
        match (self.setup, self.hello_version(), self.key) {
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
        write!(f, "{version}/{shape}/{key}")?;
        if self.hello_bytes > 0 {
            write!(f, "/hello-{}", self.hello_bytes)?;
        }
        match self.fault {
            Some(fault) => write!(f, "/{}", fault.name()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_name_of_its_own() {
        for kind in Kind::all() {
            assert_eq!(Kind::named(&kind.to_string()), Some(kind));
        }
    }
}
