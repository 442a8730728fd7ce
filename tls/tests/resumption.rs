//! Sessions resumed, or not, when something changes between them: never a failed connection, never one that is taken for another.
#![cfg(feature = "fast")]

use skerry_core::time::Timestamp;
use skerry_tls::certificate::ServerName;
use skerry_tls::config::{ClientAuth, ClientConfig, Identity, ServerConfig};
use skerry_tls::crypto::fast::Fast;
use skerry_tls::handshake::TicketKeys;
use skerry_tls::suite::{CipherSuite, Group, Version};
use skerry_tls::testing::{Accepting, Ended, Keys, NOW, Seeded, Whole, converse};

const VERSIONS: [Version; 2] = [Version::Tls13, Version::Tls12];

/// Everything that a connection is set up with, so that a test changes one thing of it.
#[derive(Clone)]
struct Setup<'k> {
    keys: &'k Keys<'static, Fast>,
    version: Version,
    name: ServerName<'static>,
    client_trusts: Accepting,
    server_trusts: Accepting,
    client: Option<Identity<'k, Fast>>,
    server: Identity<'k, Fast>,
    auth: ClientAuth,
    tickets: &'k TicketKeys<Fast>,
    client_suites: &'static [CipherSuite],
    now: Timestamp,
    resume: Vec<u8>,
}

impl<'k> Setup<'k> {
    fn new(keys: &'k Keys<'static, Fast>, version: Version) -> Self {
        Self {
            keys,
            version,
            name: ServerName::Dns("broker.example"),
            client_trusts: Accepting::default(),
            server_trusts: Accepting::default(),
            client: Some(keys.device.identity()),
            server: keys.p256.identity(),
            auth: ClientAuth::Requested,
            tickets: &keys.tickets,
            client_suites: CipherSuite::ALL,
            now: NOW,
            resume: Vec::new(),
        }
    }

    fn connect(&self) -> Ended<Fast> {
        let client = ClientConfig {
            versions: &[self.version],
            suites: self.client_suites,
            groups: &[Group::Secp256r1],
            shares: &[Group::Secp256r1],
            identity: self.client.as_ref(),
            resume: &self.resume,
            ..ClientConfig::new(&self.client_trusts, Some(self.name))
        };
        let identities = [self.server];
        let server = ServerConfig {
            client_auth: self.auth,
            verifier: Some(&self.server_trusts),
            tickets: Some(self.tickets),
            ..ServerConfig::new(&identities)
        };
        let ended = converse(self.keys.provider, &client, &server, self.now, &mut Whole, 4);
        assert!(ended.client.is_closed && ended.server.is_closed, "{}", ended.summary());
        assert_eq!(ended.client.session.is_resumed(), ended.server.session.is_resumed());
        ended
    }

    /// After a first connection as `self` is: whether a second one with `change` resumes it.
    fn resumes(&self, change: impl FnOnce(&mut Self)) -> bool {
        let first = self.connect();
        assert!(!first.client.session.is_resumed());
        let mut second = Self {
            resume: first.client.kept.bytes,
            ..self.clone()
        };
        change(&mut second);
        second.connect().client.session.is_resumed()
    }
}

#[test]
fn what_a_session_is_bound_to() {
    let keys = Keys::new(&Fast);
    let others = Accepting {
        trust_id: [2; 32],
        ..Accepting::default()
    };
    for version in VERSIONS {
        let setup = Setup::new(&keys, version);
        assert!(setup.resumes(|_| {}), "{version:?}");
        assert!(setup.resumes(|it| it.auth = ClientAuth::Requested), "{version:?}");
        let no = |what: &str, change: &dyn Fn(&mut Setup<'_>)| {
            assert!(!setup.resumes(change), "{version:?}: another {what}");
        };
        no("name", &|it| it.name = ServerName::Dns("server.example"));
        no("kind of name", &|it| {
            it.name = ServerName::Ip("127.0.0.1".parse().unwrap())
        });
        no("set of anchors of the client's", &|it| {
            it.client_trusts = others.clone()
        });
        no("set of anchors of the server's", &|it| {
            it.server_trusts = others.clone()
        });
        no("suite", &|it| {
            it.client_suites = &[
                CipherSuite::TLS_AES_256_GCM_SHA384,
                CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
            ];
        });
        no("wish for client certificates", &|it| it.auth = ClientAuth::None);
    }
    // What the closures above cannot lend.
    for version in VERSIONS {
        let setup = Setup::new(&keys, version);
        assert!(
            !setup.resumes(|it| it.client = Some(keys.device_rsa.identity())),
            "{version:?}: another client"
        );
        assert!(!setup.resumes(|it| it.client = None), "{version:?}: no client");
        assert!(!setup.resumes(|it| it.resume.clear()), "{version:?}: nothing kept");
        let other = TicketKeys::new(&Fast, &mut Seeded::new(8), NOW, 3600).unwrap();
        assert!(
            !setup.resumes(|it| it.tickets = &other),
            "{version:?}: another server's keys"
        );
    }
    let setup = Setup::new(&keys, Version::Tls13);
    assert!(
        !setup.resumes(|it| it.server = keys.rsa.identity()),
        "another certificate"
    );
}

#[test]
fn versions_do_not_mix() {
    let keys = Keys::new(&Fast);
    for (first, second) in [(Version::Tls13, Version::Tls12), (Version::Tls12, Version::Tls13)] {
        let setup = Setup::new(&keys, first);
        assert!(!setup.resumes(|it| it.version = second), "{first:?} then {second:?}");
    }
}

#[test]
fn sessions_end() {
    let keys = Keys::new(&Fast);
    for version in VERSIONS {
        let setup = Setup::new(&keys, version);
        let after = |seconds: i64| setup.resumes(|it| it.now = Timestamp(NOW.0 + seconds * 1000));
        assert!(after(3599), "{version:?}");
        assert!(!after(3600), "{version:?}: its life is over");
        assert!(!after(-1), "{version:?}: a clock that went back");
        let short = Accepting {
            not_after: Timestamp(NOW.0 + 60_000),
            ..Accepting::default()
        };
        // The chain ends; who checks it anew finds another.
        let ends_first = Setup {
            client_trusts: short,
            ..setup.clone()
        };
        assert!(
            ends_first.resumes(|it| it.now = Timestamp(NOW.0 + 60_000)),
            "{version:?}"
        );
        let later = |it: &mut Setup<'_>| {
            it.now = Timestamp(NOW.0 + 60_001);
            it.client_trusts = Accepting::default();
        };
        assert!(!ends_first.resumes(later), "{version:?}: the server's chain is over");
    }
}

#[test]
fn keys_turn() {
    for version in VERSIONS {
        for (turns, resumes) in [(0, true), (1, true), (2, false)] {
            let mut keys = Keys::new(&Fast);
            let first = Setup::new(&keys, version).connect();
            for _ in 0..turns {
                keys.tickets.rotate(&Fast, &mut Seeded::new(9 + turns), NOW).unwrap();
            }
            let second = Setup {
                resume: first.client.kept.bytes,
                ..Setup::new(&keys, version)
            };
            let ended = second.connect();
            assert_eq!(ended.client.session.is_resumed(), resumes, "{version:?} after {turns}");
        }
    }
}

/// Goal: a session goes on from ticket to ticket, and nobody is forgotten on the way.
#[test]
fn a_chain_of_sessions() {
    let keys = Keys::new(&Fast);
    for version in VERSIONS {
        let mut setup = Setup::new(&keys, version);
        setup.resume = setup.connect().client.kept.bytes;
        for link in 0..5 {
            let ended = setup.connect();
            assert!(ended.client.session.is_resumed(), "{version:?} {link}");
            assert_eq!(ended.client.session.peer().unwrap().subject, "CN=server");
            assert_eq!(ended.server.session.peer().unwrap().subject, "CN=client");
            // TLS 1.2 servers may leave the old ticket as it is.
            if ended.client.kept.count > 0 {
                setup.resume = ended.client.kept.bytes;
            }
        }
    }
}
