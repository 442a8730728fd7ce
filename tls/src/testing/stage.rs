//! Handshakes of every kind between our client and our server, over whatever provider and link a test brings.

use alloc::string::String;
use alloc::vec::Vec;
use alloc::{format, vec};

use skerry_core::time::Timestamp;

use super::{Accepting, Fixture, Link, Loaded, NOW, Pair, Seeded, Setting, Side, Whole};
use crate::certificate::ServerName;
use crate::config::{ClientAuth, ClientConfig, Config, Identity, ServerConfig};
use crate::crypto::Provider;
use crate::handshake::TicketKeys;
use crate::suite::{CipherSuite, Group, Version};

/// What the client says once it is connected.
pub const PING: &[u8] = b"a request of the client's";
/// What the server answers.
pub const PONG: &[u8] = b"and the server's answer to it";

/// Every fixture's key, and ticket keys, of one provider.
pub struct Keys<'p, P: Provider> {
    /// The provider.
    pub provider: &'p P,
    /// [`Fixture::P256`].
    pub p256: Loaded<P>,
    /// [`Fixture::P384`].
    pub p384: Loaded<P>,
    /// [`Fixture::RSA`].
    pub rsa: Loaded<P>,
    /// [`Fixture::DEVICE`].
    pub device: Loaded<P>,
    /// [`Fixture::DEVICE_RSA`].
    pub device_rsa: Loaded<P>,
    /// The server's, made [`NOW`], for tickets that live an hour.
    pub tickets: TicketKeys<P>,
    /// Both sides'.
    pub verifier: Accepting,
}

impl<'p, P: Provider> Keys<'p, P> {
    /// Loads them all.
    #[must_use]
    pub fn new(provider: &'p P) -> Self {
        let load = |fixture| Loaded::new(provider, fixture);
        Self {
            provider,
            p256: load(Fixture::P256),
            p384: load(Fixture::P384),
            rsa: load(Fixture::RSA),
            device: load(Fixture::DEVICE),
            device_rsa: load(Fixture::DEVICE_RSA),
            tickets: TicketKeys::new(provider, &mut Seeded::new(7), NOW, 3600).expect("ticket keys"),
            verifier: Accepting::default(),
        }
    }
}

/// Whose certificate a server has, and whose a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// With a P-256 key.
    P256,
    /// With a P-384 key; clients have none.
    P384,
    /// With an RSA key.
    Rsa,
}

/// One kind of handshake.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// The one version that the client offers.
    pub version: Version,
    /// The one suite that the client offers, or all.
    pub suite: Option<CipherSuite>,
    /// The one group that the client offers.
    pub group: Group,
    /// The server's certificate.
    pub server: Who,
    /// Whether the server asks for one.
    pub auth: ClientAuth,
    /// The client's, if it has one.
    pub client: Option<Who>,
    /// The client shares nothing in its first hello.
    pub retried: bool,
    /// After a first handshake of the same kind.
    pub resumed: bool,
    /// What both sides tell of the records that they take.
    pub record_size_limit: Option<u16>,
}

impl Kind {
    /// A full handshake of TLS 1.3.
    pub const TLS13: Self = Self {
        version: Version::Tls13,
        suite: None,
        group: Group::X25519,
        server: Who::P256,
        auth: ClientAuth::None,
        client: None,
        retried: false,
        resumed: false,
        record_size_limit: None,
    };

    /// A full handshake of TLS 1.2. The group is the curve of the leaf, which a TLS 1.2 client must list.
    pub const TLS12: Self = Self {
        version: Version::Tls12,
        group: Group::Secp256r1,
        ..Self::TLS13
    };

    /// With a HelloRetryRequest.
    #[must_use]
    pub const fn retried(self) -> Self {
        Self { retried: true, ..self }
    }

    /// As a resumption.
    #[must_use]
    pub const fn resumed(self) -> Self {
        Self { resumed: true, ..self }
    }

    /// With a client certificate.
    #[must_use]
    pub const fn mutual(self) -> Self {
        Self {
            auth: ClientAuth::Required,
            client: Some(Who::P256),
            ..self
        }
    }

    /// Every shape that a handshake can have: what the tests that change bytes go through.
    pub const SHAPES: &'static [(&'static str, Self)] = &[
        ("1.3", Self::TLS13),
        ("1.3 retried", Self::TLS13.retried()),
        ("1.3 resumed", Self::TLS13.resumed()),
        ("1.3 retried and resumed", Self::TLS13.retried().resumed()),
        ("1.3 mutual", Self::TLS13.mutual()),
        (
            "1.3 a certificate asked for in vain",
            Self {
                auth: ClientAuth::Requested,
                ..Self::TLS13
            },
        ),
        ("1.2", Self::TLS12),
        ("1.2 resumed", Self::TLS12.resumed()),
        ("1.2 mutual", Self::TLS12.mutual()),
        (
            "1.2 a certificate asked for in vain",
            Self {
                auth: ClientAuth::Requested,
                ..Self::TLS12
            },
        ),
    ];
}

/// Both sides' configurations of a kind, and what the client resumes.
pub struct Stage<'k, 'p, P: Provider> {
    keys: &'k Keys<'p, P>,
    /// The kind.
    pub kind: Kind,
    server_identities: [Identity<'k, P>; 1],
    client_identity: Option<Identity<'k, P>>,
    suites: Vec<CipherSuite>,
    versions: [Version; 1],
    groups: [Group; 1],
    shares: Vec<Group>,
    /// What the client has of an earlier session.
    pub resume: Vec<u8>,
}

impl<'k, 'p, P: Provider> Stage<'k, 'p, P> {
    /// Sets a stage; for a resumption a first handshake is done on it.
    #[must_use]
    pub fn new(keys: &'k Keys<'p, P>, kind: Kind) -> Self {
        let mut stage = Self {
            keys,
            kind,
            server_identities: [match kind.server {
                Who::P256 => keys.p256.identity(),
                Who::P384 => keys.p384.identity(),
                Who::Rsa => keys.rsa.identity(),
            }],
            client_identity: kind.client.map(|who| match who {
                Who::Rsa => keys.device_rsa.identity(),
                _ => keys.device.identity(),
            }),
            suites: kind.suite.map_or(CipherSuite::ALL.to_vec(), |suite| vec![suite]),
            versions: [kind.version],
            groups: [kind.group],
            shares: if kind.retried { vec![] } else { vec![kind.group] },
            resume: Vec::new(),
        };
        if kind.resumed {
            let first = stage.handshake(&mut Whole, 1);
            assert!(first.client.is_connected, "{kind:?}: {:?}", first.client.cause);
            stage.resume = first.client.kept.bytes;
            assert!(!stage.resume.is_empty(), "{kind:?}: no ticket");
        }
        stage
    }

    /// The client's configuration.
    #[must_use]
    pub fn client(&self) -> ClientConfig<'_, P> {
        ClientConfig {
            versions: &self.versions,
            suites: &self.suites,
            groups: &self.groups,
            shares: &self.shares,
            identity: self.client_identity.as_ref(),
            resume: &self.resume,
            record_size_limit: self.kind.record_size_limit,
            ..ClientConfig::new(&self.keys.verifier, Some(ServerName::Dns("broker.example")))
        }
    }

    /// The server's configuration.
    #[must_use]
    pub fn server(&self) -> ServerConfig<'_, P> {
        ServerConfig {
            client_auth: self.kind.auth,
            verifier: (self.kind.auth != ClientAuth::None).then_some(&self.keys.verifier),
            tickets: Some(&self.keys.tickets),
            record_size_limit: self.kind.record_size_limit,
            ..ServerConfig::new(&self.server_identities)
        }
    }

    /// Does the handshake, a request and its answer, and both closes.
    pub fn handshake(&self, link: &mut dyn Link, seed: u64) -> Ended<P> {
        let (client, server) = (self.client(), self.server());
        converse(self.keys.provider, &client, &server, NOW, link, seed)
    }
}

/// What is left of a conversation.
pub struct Ended<P: Provider> {
    /// The client.
    pub client: Side<P>,
    /// The server.
    pub server: Side<P>,
    /// All that the client sent.
    pub to_server: Vec<u8>,
    /// All that the server sent.
    pub to_client: Vec<u8>,
}

impl<P: Provider> Ended<P> {
    /// All of it that must not depend on how bytes were cut, nor on a signature's length.
    #[must_use]
    pub fn summary(&self) -> String {
        let side = |side: &Side<P>| {
            let session = &side.session;
            let states: Vec<_> = side
                .notes
                .trail
                .steps()
                .iter()
                .map(|step| (step.from, step.to))
                .collect();
            format!(
                "{:?} {:?} connected {} closed {} data {:?} kept {} {:?} {states:?}",
                session.state_id(),
                side.cause,
                side.is_connected,
                side.is_closed,
                String::from_utf8_lossy(&side.data),
                side.kept.count,
                session.agreed(),
            )
        };
        format!("client: {}\nserver: {}", side(&self.client), side(&self.server))
    }
}

/// A handshake, a request and its answer, and both closes, as far as they get.
pub fn converse<P: Provider>(
    provider: &P,
    client: &ClientConfig<'_, P>,
    server: &ServerConfig<'_, P>,
    now: Timestamp,
    link: &mut dyn Link,
    seed: u64,
) -> Ended<P> {
    let setting = |config| Setting {
        now,
        ..Setting::new(provider, config)
    };
    let mut pair = Pair::new(setting(Config::Client(client)), setting(Config::Server(server)), seed);
    pair.run(link);
    if pair.client.is_connected && pair.client.cause.is_none() {
        pair.client.send(PING).expect("room for a request");
        pair.run(link);
    }
    if pair.server.data == PING {
        pair.server.send(PONG).expect("room for an answer");
        pair.run(link);
    }
    if pair.client.data == PONG {
        pair.client.close();
        pair.run(link);
        pair.server.close();
        pair.run(link);
    }
    Ended {
        client: pair.client,
        server: pair.server,
        to_server: pair.to_server,
        to_client: pair.to_client,
    }
}
