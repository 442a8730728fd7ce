//! The TLS 1.3 server against our own client, over byte pipes: what is agreed on, when a second hello is asked for, what is resumed, whom
//! certificates let in, and what the wire looks like; and against hellos written by hand.
#![cfg(feature = "fast")]

use skerry_core::time::Timestamp;
use skerry_tls::alert::Alert;
use skerry_tls::cause::Cause;
use skerry_tls::certificate::ServerName;
use skerry_tls::config::{ClientAuth, ClientConfig, Config, Identity, ServerConfig};
use skerry_tls::crypto::fast::Fast;
use skerry_tls::handshake::{EARLY_DATA_BYTES_MAX, TicketKeys};
use skerry_tls::message::{ClientHello, KeyShare, KeyShares, OfferedPsks, PskIdentity, U16List, Writer};
use skerry_tls::state::StateId;
use skerry_tls::suite::{CipherSuite, Group, SignatureScheme, Version};
use skerry_tls::testing::{Accepting, Fixture, Loaded, NOW, Pair, Room, Seeded, Setting, Side, Whole};

const DAY_SECONDS: u32 = 24 * 3600;

fn verifier() -> &'static Accepting {
    static VERIFIER: Accepting = Accepting {
        refuses: None,
        trust_id: [1; 32],
        authorities: &[],
        not_after: Timestamp(i64::MAX),
    };
    &VERIFIER
}

fn client<'a>() -> ClientConfig<'a, Fast> {
    ClientConfig::new(verifier(), Some(ServerName::Dns("broker.example")))
}

fn ticket_keys() -> TicketKeys<Fast> {
    TicketKeys::new(&Fast, &mut Seeded::new(77), NOW, DAY_SECONDS).unwrap()
}

fn connect<'a>(client: &'a ClientConfig<'a, Fast>, server: &'a ServerConfig<'a, Fast>) -> Pair<'a, Fast> {
    connect_at(client, server, NOW)
}

fn connect_at<'a>(
    client: &'a ClientConfig<'a, Fast>,
    server: &'a ServerConfig<'a, Fast>,
    now: Timestamp,
) -> Pair<'a, Fast> {
    let setting = |config| Setting {
        provider: &Fast,
        config,
        now,
    };
    let mut pair = Pair::new(setting(Config::Client(client)), setting(Config::Server(server)), 1);
    pair.run(&mut Whole);
    pair
}

/// Both are connected, agree on the same, and understand each other both ways.
fn talk(pair: &mut Pair<'_, Fast>) {
    assert_eq!((pair.client.cause, pair.server.cause), (None, None));
    assert!(pair.client.is_connected && pair.server.is_connected);
    let (ours, theirs) = (pair.server.session.agreed(), pair.client.session.agreed());
    assert_eq!(
        (ours.version, ours.suite, ours.group, ours.resumed, ours.retried),
        (
            theirs.version,
            theirs.suite,
            theirs.group,
            theirs.resumed,
            theirs.retried
        )
    );
    pair.client.send(b"to the server").unwrap();
    pair.server.send(b"to the client").unwrap();
    pair.run(&mut Whole);
    assert_eq!(pair.server.data, b"to the server");
    assert_eq!(pair.client.data, b"to the client");
}

fn loaded(fixture: Fixture) -> Loaded<Fast> {
    Loaded::new(&Fast, fixture)
}

#[test]
fn every_suite_group_and_key_connects() {
    for fixture in [Fixture::P256, Fixture::P384, Fixture::RSA] {
        let key = loaded(fixture);
        let identities = [key.identity()];
        for suite in CipherSuite::ALL
            .iter()
            .filter(|suite| suite.version() == Version::Tls13)
        {
            for group in Group::ALL {
                let server = ServerConfig {
                    suites: &[*suite],
                    groups: &[*group],
                    ..ServerConfig::new(&identities)
                };
                let client = ClientConfig {
                    shares: Group::ALL,
                    ..client()
                };
                let mut pair = connect(&client, &server);
                talk(&mut pair);
                let agreed = pair.server.session.agreed();
                assert_eq!(
                    (agreed.suite, agreed.group, agreed.retried),
                    (Some(*suite), Some(*group), false)
                );
                assert_eq!(pair.server.session.server_name(), Some("broker.example"));
                let own = agreed.own_scheme.unwrap();
                assert!(fixture.kind.signs_13(own));
                assert_eq!(pair.client.session.agreed().peer_scheme, Some(own));
            }
        }
    }
}

#[test]
fn a_second_hello_is_asked_for_when_the_share_is_missing() {
    let key = loaded(Fixture::P256);
    let identities = [key.identity()];
    let server = ServerConfig {
        groups: &[Group::Secp256r1],
        ..ServerConfig::new(&identities)
    };
    for shares in [&[Group::X25519][..], &[]] {
        let client = ClientConfig { shares, ..client() };
        let mut pair = connect(&client, &server);
        talk(&mut pair);
        assert!(pair.server.session.agreed().retried);
        assert_eq!(pair.server.session.agreed().group, Some(Group::Secp256r1));
    }
}

#[test]
fn a_group_that_needs_no_second_hello_comes_before_one_that_is_liked_better() {
    let key = loaded(Fixture::P256);
    let identities = [key.identity()];
    let server = ServerConfig {
        groups: &[Group::Secp256r1, Group::X25519],
        ..ServerConfig::new(&identities)
    };
    let client = client();
    let mut pair = connect(&client, &server);
    talk(&mut pair);
    assert!(!pair.server.session.agreed().retried);
    assert_eq!(pair.server.session.agreed().group, Some(Group::X25519));
}

#[test]
fn the_first_identity_that_the_client_can_use_signs() {
    let (ecdsa, rsa) = (loaded(Fixture::P256), loaded(Fixture::RSA));
    let identities = [ecdsa.identity(), rsa.identity()];
    let server = ServerConfig::new(&identities);
    let scheme_of = |schemes| {
        let client = ClientConfig { schemes, ..client() };
        let pair = connect(&client, &server);
        (pair.server.session.agreed().own_scheme, pair.server.cause)
    };
    use SignatureScheme as S;
    assert_eq!(scheme_of(S::ALL), (Some(S::EcdsaSecp256r1Sha256), None));
    assert_eq!(
        scheme_of(&[S::RsaPssRsaeSha384, S::RsaPkcs1Sha256]),
        (Some(S::RsaPssRsaeSha384), None)
    );
    assert_eq!(
        scheme_of(&[S::EcdsaSecp384r1Sha384]),
        (None, Some(Cause::NoCommonScheme))
    );
}

#[test]
fn tickets_resume_and_are_renewed() {
    let (key, keys) = (loaded(Fixture::P256), ticket_keys());
    let identities = [key.identity()];
    for tickets_sent in [1, 2] {
        let server = ServerConfig {
            tickets: Some(&keys),
            tickets_sent,
            ..ServerConfig::new(&identities)
        };
        let config = client();
        let mut first = connect(&config, &server);
        talk(&mut first);
        assert!(!first.server.session.is_resumed());
        assert_eq!(first.client.kept.count, usize::from(tickets_sent));
        let again = ClientConfig {
            resume: &first.client.kept.bytes,
            ..client()
        };
        let mut second = connect(&again, &server);
        talk(&mut second);
        assert!(second.server.session.is_resumed());
        assert_eq!(
            second.server.session.agreed().own_scheme,
            None,
            "no certificate, no signature"
        );
        assert_eq!(
            second.client.kept.count,
            usize::from(tickets_sent),
            "a resumed handshake gets tickets as well"
        );
        let last = ClientConfig {
            resume: &second.client.kept.bytes,
            ..client()
        };
        let mut third = connect(&last, &server);
        talk(&mut third);
        assert!(third.server.session.is_resumed());
    }
}

/// The session of one connection, offered to a server with another configuration, or later.
fn is_resumed_under(first: &ServerConfig<'_, Fast>, second: &ServerConfig<'_, Fast>, later_ms: i64) -> bool {
    let device = loaded(Fixture::DEVICE);
    let identity = device.identity();
    let has = ClientConfig {
        identity: Some(&identity),
        ..client()
    };
    let kept = connect(&has, first).client.kept.bytes;
    assert!(!kept.is_empty());
    let again = ClientConfig { resume: &kept, ..has };
    let mut pair = connect_at(&again, second, Timestamp(NOW.0 + later_ms));
    talk(&mut pair);
    pair.server.session.is_resumed()
}

#[test]
fn a_session_is_bound_to_what_it_was_made_under() {
    let (key, other, keys) = (loaded(Fixture::P256), loaded(Fixture::P384), ticket_keys());
    let (identities, others) = ([key.identity()], [other.identity()]);
    let server = |identities| ServerConfig {
        tickets: Some(&keys),
        verifier: Some(verifier()),
        ..ServerConfig::new(identities)
    };
    let first = server(&identities);
    assert!(is_resumed_under(&first, &server(&identities), 0));
    assert!(!is_resumed_under(&first, &server(&others), 0), "another certificate");
    for client_auth in [ClientAuth::Requested, ClientAuth::Required] {
        let asks = ServerConfig {
            client_auth,
            ..server(&identities)
        };
        assert!(is_resumed_under(&asks, &asks, 0));
        assert!(!is_resumed_under(&first, &asks, 0), "clients are asked now");
        assert!(!is_resumed_under(&asks, &first, 0), "clients are asked no more");
        let trusts_others = Accepting {
            trust_id: [2; 32],
            ..Accepting::default()
        };
        let trusts_others = ServerConfig {
            client_auth,
            verifier: Some(&trusts_others),
            ..server(&identities)
        };
        assert!(!is_resumed_under(&asks, &trusts_others, 0), "other trust anchors");
        let ends = Accepting {
            not_after: Timestamp(NOW.0 + 1000),
            ..Accepting::default()
        };
        let ends = ServerConfig {
            client_auth,
            verifier: Some(&ends),
            ..server(&identities)
        };
        assert!(is_resumed_under(&ends, &ends, 1000), "the last moment of the chain");
    }
    let other_hash = ServerConfig {
        suites: &[CipherSuite::TLS_AES_256_GCM_SHA384],
        ..server(&identities)
    };
    assert!(!is_resumed_under(&first, &other_hash, 0), "a PSK of another hash");
    let same_hash = ServerConfig {
        suites: &[CipherSuite::TLS_CHACHA20_POLY1305_SHA256],
        ..server(&identities)
    };
    assert!(
        is_resumed_under(&first, &same_hash, 0),
        "another suite of the same hash"
    );
    assert!(!is_resumed_under(
        &first,
        &ServerConfig {
            tickets: None,
            ..server(&identities)
        },
        0
    ));
}

#[test]
fn a_ticket_lives_as_long_as_it_says_and_no_longer_than_its_key() {
    let (key, keys) = (loaded(Fixture::P256), ticket_keys());
    let identities = [key.identity()];
    let server = || ServerConfig::new(&identities);
    let day_ms = i64::from(DAY_SECONDS) * 1000;
    // Our own client does not offer a ticket that is over, so that the server's clock must run ahead of its.
    let resumed_with = |tickets: &TicketKeys<Fast>, server_ms: i64| {
        let (first, config) = (
            ServerConfig {
                tickets: Some(&keys),
                ..server()
            },
            client(),
        );
        let kept = connect(&config, &first).client.kept.bytes;
        let (again, second) = (
            ClientConfig {
                resume: &kept,
                ..client()
            },
            ServerConfig {
                tickets: Some(tickets),
                ..server()
            },
        );
        let setting = |config, ms| Setting {
            provider: &Fast,
            config,
            now: Timestamp(NOW.0 + ms),
        };
        let mut pair = Pair::new(
            setting(Config::Client(&again), 0),
            setting(Config::Server(&second), server_ms),
            1,
        );
        pair.run(&mut Whole);
        talk(&mut pair);
        pair.server.session.is_resumed()
    };
    assert!(resumed_with(&keys, day_ms - 1));
    assert!(!resumed_with(&keys, day_ms), "its lifetime is over");
    assert!(!resumed_with(&keys, -1), "the clock went back");
    assert!(!keys.is_due(Timestamp(NOW.0 + day_ms - 1)) && keys.is_due(Timestamp(NOW.0 + day_ms)));
    let mut rotated = ticket_keys();
    rotated
        .rotate(&Fast, &mut Seeded::new(78), Timestamp(NOW.0 + 1))
        .unwrap();
    assert!(resumed_with(&rotated, 1), "the key before the present one opens");
    rotated
        .rotate(&Fast, &mut Seeded::new(79), Timestamp(NOW.0 + 2))
        .unwrap();
    assert!(!resumed_with(&rotated, 2), "two rotations are the end");
}

#[test]
fn tickets_go_only_to_clients_that_can_use_them() {
    let (key, keys) = (loaded(Fixture::P256), ticket_keys());
    let identities = [key.identity()];
    let server = ServerConfig {
        tickets: Some(&keys),
        ..ServerConfig::new(&identities)
    };
    let client = ClientConfig {
        tickets: false,
        ..client()
    };
    let mut pair = connect(&client, &server);
    talk(&mut pair);
    assert_eq!(pair.client.kept.count, 0);
    assert_eq!(
        pair.client.notes.trail.steps().last().unwrap().from,
        StateId::AwaitServerFinished
    );
}

#[test]
fn certificates_let_clients_in() {
    let (key, keys) = (loaded(Fixture::P256), ticket_keys());
    let identities = [key.identity()];
    let server = |client_auth| ServerConfig {
        client_auth,
        verifier: Some(verifier()),
        tickets: Some(&keys),
        ..ServerConfig::new(&identities)
    };
    for fixture in [Fixture::DEVICE, Fixture::DEVICE_RSA] {
        let device = loaded(fixture);
        let identity = device.identity();
        let has = ClientConfig {
            identity: Some(&identity),
            ..client()
        };
        for client_auth in [ClientAuth::None, ClientAuth::Requested, ClientAuth::Required] {
            let server = server(client_auth);
            let mut pair = connect(&has, &server);
            talk(&mut pair);
            let is_asked = client_auth != ClientAuth::None;
            assert_eq!(pair.server.session.peer().is_some(), is_asked);
            let peer = pair.server.session.peer().cloned();
            // Who it was is known again when the session is resumed.
            let again = ClientConfig {
                resume: &pair.client.kept.bytes,
                identity: Some(&identity),
                ..client()
            };
            let mut second = connect(&again, &server);
            talk(&mut second);
            assert!(second.server.session.is_resumed());
            assert_eq!(second.server.session.peer().cloned(), peer);
        }
    }
    let (without, requested) = (client(), server(ClientAuth::Requested));
    let mut pair = connect(&without, &requested);
    talk(&mut pair);
    assert_eq!(pair.server.session.peer(), None);
}

/// A client that is refused after its Finished: the client's end of it is the alert.
fn refused(client: &ClientConfig<'_, Fast>, server: &ServerConfig<'_, Fast>) -> (Cause, Option<Cause>) {
    let pair = connect(client, server);
    assert!(pair.client.is_connected, "it hears of it after its Finished");
    assert!(!pair.server.is_connected && pair.server.session.peer().is_none());
    assert_eq!(pair.client.kept.count, 0);
    (pair.server.cause.unwrap(), pair.client.cause)
}

#[test]
fn a_refused_client_is_told_after_its_finished() {
    let key = loaded(Fixture::P256);
    let identities = [key.identity()];
    let alert = |alert| Some(Cause::PeerAlert(alert));
    let server = ServerConfig {
        client_auth: ClientAuth::Required,
        verifier: Some(verifier()),
        ..ServerConfig::new(&identities)
    };
    let missing = refused(&client(), &server);
    assert_eq!(
        missing,
        (Cause::ClientCertificateMissing, alert(Alert::CertificateRequired))
    );

    let device = loaded(Fixture::DEVICE);
    let identity = device.identity();
    let has = ClientConfig {
        identity: Some(&identity),
        ..client()
    };
    for (cause, told) in [
        (Cause::UnknownCa, Alert::UnknownCa),
        (Cause::CertificateExpired, Alert::CertificateExpired),
        (Cause::CertificateUsage, Alert::UnsupportedCertificate),
    ] {
        let refuses = Accepting {
            refuses: Some(cause),
            ..Accepting::default()
        };
        for client_auth in [ClientAuth::Requested, ClientAuth::Required] {
            let server = ServerConfig {
                client_auth,
                verifier: Some(&refuses),
                ..ServerConfig::new(&identities)
            };
            assert_eq!(refused(&has, &server), (cause, alert(told)));
        }
    }
    let nobody = ServerConfig {
        verifier: None,
        ..server
    };
    assert_eq!(
        connect(&has, &nobody).server.cause,
        Some(Cause::UnknownCa),
        "nobody to check it"
    );
}

#[test]
fn another_certificates_key_proves_nothing() {
    let (key, device, other) = (loaded(Fixture::P256), loaded(Fixture::DEVICE), loaded(Fixture::P256));
    let identities = [key.identity()];
    let server = ServerConfig {
        client_auth: ClientAuth::Required,
        verifier: Some(verifier()),
        ..ServerConfig::new(&identities)
    };
    let stolen = Identity {
        chain: device.identity().chain,
        key: other.identity().key,
    };
    let has = ClientConfig {
        identity: Some(&stolen),
        ..client()
    };
    let pair = connect(&has, &server);
    assert_eq!(pair.server.cause, Some(Cause::BadSignature));
    assert_eq!(pair.client.cause, Some(Cause::PeerAlert(Alert::DecryptError)));
}

/// Types and lengths of the records of a stream.
fn records(mut stream: &[u8]) -> Vec<(u8, usize)> {
    let mut records = Vec::new();
    while let [kind, _, _, high, low, rest @ ..] = stream {
        let bytes = usize::from(u16::from_be_bytes([*high, *low]));
        records.push((*kind, bytes));
        stream = &rest[bytes..];
    }
    records
}

#[test]
fn both_keep_to_a_record_size_limit() {
    let (key, keys) = (loaded(Fixture::RSA), ticket_keys());
    let identities = [key.identity()];
    let server = ServerConfig {
        record_size_limit: Some(100),
        tickets: Some(&keys),
        ..ServerConfig::new(&identities)
    };
    let client = ClientConfig {
        record_size_limit: Some(64),
        ..client()
    };
    let mut pair = connect(&client, &server);
    pair.client.send(&[1; 300]).unwrap();
    pair.server.send(&[2; 300]).unwrap();
    pair.run(&mut Whole);
    assert_eq!(
        (&pair.server.data[..], &pair.client.data[..]),
        (&[1; 300][..], &[2; 300][..])
    );
    let longest = |stream: &[u8]| {
        let sealed = records(stream).into_iter().filter(|(kind, _)| *kind == 23);
        sealed.map(|(_, bytes)| bytes - 16).max().unwrap()
    };
    // What was told counts the type inside: the client's 64 as it stands, ours is content.
    assert_eq!((longest(&pair.to_client), longest(&pair.to_server)), (64, 101));
}

#[test]
fn a_server_that_shares_its_limit_only_with_those_who_ask() {
    let key = loaded(Fixture::P256);
    let identities = [key.identity()];
    let server = ServerConfig {
        record_size_limit: Some(100),
        ..ServerConfig::new(&identities)
    };
    let client = client();
    let mut pair = connect(&client, &server);
    pair.client.send(&[1; 300]).unwrap();
    pair.run(&mut Whole);
    assert_eq!(pair.server.data, [1; 300]);
}

/// What a hand-written hello is made of.
#[derive(Clone)]
struct Hello {
    legacy_version: u16,
    session_id: Vec<u8>,
    suites: Vec<u16>,
    compression: Vec<u8>,
    versions: Option<Vec<u16>>,
    groups: Option<Vec<u16>>,
    schemes: Option<Vec<u16>>,
    shares: Option<Vec<(u16, Vec<u8>)>>,
    cookie: Option<Vec<u8>>,
    modes: Option<Vec<u8>>,
    psk: bool,
    early_data: bool,
    max_fragment_length: Option<u8>,
}

const X25519: u16 = Group::X25519 as u16;
const P256: u16 = Group::Secp256r1 as u16;

impl Hello {
    /// One that every server here takes.
    fn new() -> Self {
        Self {
            legacy_version: 0x0303,
            session_id: vec![7; 32],
            suites: vec![0x1301],
            compression: vec![0],
            versions: Some(vec![0x0304]),
            groups: Some(vec![X25519, P256]),
            schemes: Some(vec![0x0403]),
            shares: Some(vec![(X25519, vec![9; 32])]),
            cookie: None,
            modes: None,
            psk: false,
            early_data: false,
            max_fragment_length: None,
        }
    }

    fn message(&self) -> Vec<u8> {
        let wire = |list: &Vec<u16>| list.iter().map(|value| value.to_be_bytes()).collect::<Vec<_>>();
        let (suites, versions) = (wire(&self.suites), self.versions.as_ref().map(wire));
        let (groups, schemes) = (self.groups.as_ref().map(wire), self.schemes.as_ref().map(wire));
        let mut share_bytes = [0; 512];
        let shares = self.shares.as_ref().map(|shares| {
            Writer::fill(&mut share_bytes, |w| {
                shares
                    .iter()
                    .try_for_each(|(group, share)| KeyShare { group: *group, share }.encode(w))
            })
            .unwrap()
        });
        let mut identity = [0; 64];
        let psk = PskIdentity {
            identity: &[3; 32],
            obfuscated_ticket_age: 0,
        };
        let identity_bytes = Writer::fill(&mut identity, |w| psk.encode(w)).unwrap();
        let binder = [&[32][..], &[5; 32]].concat();
        let hello = ClientHello {
            compression: &self.compression,
            supported_versions: versions.as_deref().map(U16List::new),
            supported_groups: groups.as_deref().map(U16List::new),
            signature_algorithms: schemes.as_deref().map(U16List::new),
            key_share: shares.map(|bytes| KeyShares::new(&share_bytes[..bytes])),
            cookie: self.cookie.as_deref(),
            psk_key_exchange_modes: self.modes.as_deref(),
            pre_shared_key: self.psk.then(|| OfferedPsks::new(&identity[..identity_bytes], &binder)),
            early_data: self.early_data,
            max_fragment_length: self.max_fragment_length,
            ..ClientHello::bare(self.legacy_version, &[1; 32], &self.session_id, U16List::new(&suites))
        };
        let mut bytes = vec![0; 2048];
        let written = Writer::fill(&mut bytes, |w| hello.encode(w)).unwrap();
        bytes.truncate(written);
        bytes
    }

    fn record(&self) -> Vec<u8> {
        record(22, &self.message())
    }
}

fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    let [high, low] = (content.len() as u16).to_be_bytes();
    [&[kind, 3, 3, high, low], content].concat()
}

/// A server that met these records, with what it said.
fn meet(config: &ServerConfig<'_, Fast>, records: &[Vec<u8>]) -> (Side<Fast>, Vec<u8>) {
    let setting = Setting::new(&Fast, Config::Server(config));
    let mut side = Side::server(5, Room::default());
    for record in records {
        side.receive(&setting, record);
    }
    let out = side.take_out();
    (side, out)
}

fn with_server<T>(run: impl FnOnce(&ServerConfig<'_, Fast>) -> T) -> T {
    let (key, keys) = (loaded(Fixture::P256), ticket_keys());
    let identities = [key.identity()];
    run(&ServerConfig {
        tickets: Some(&keys),
        ..ServerConfig::new(&identities)
    })
}

#[test]
fn a_hello_is_refused_for_what_is_wrong_with_it() {
    type Change = fn(&mut Hello);
    let illegal = Cause::IllegalParameter(1);
    let cases: &[(Change, Cause)] = &[
        (|it| it.legacy_version = 0x0300, Cause::NoCommonVersion(0x0304)),
        (
            |it| it.versions = Some(vec![0x0302, 0x0a0a]),
            Cause::NoCommonVersion(0x0302),
        ),
        (
            |it| {
                it.versions = None;
                it.legacy_version = 0x0302;
            },
            Cause::NoCommonVersion(0x0302),
        ),
        (
            |it| {
                it.versions = None;
                it.suites = vec![0xc02b, 0x5600];
            },
            Cause::InappropriateFallback,
        ),
        (|it| it.compression = vec![0, 1], illegal),
        (|it| it.compression = vec![1], illegal),
        (|it| it.suites = vec![0x1305, 0xc02b], Cause::NoCommonSuite),
        (|it| it.groups = None, Cause::MissingExtension(10)),
        (|it| it.shares = None, Cause::MissingExtension(51)),
        (|it| it.schemes = None, Cause::MissingExtension(13)),
        (|it| it.psk = true, Cause::MissingExtension(45)),
        (
            |it| {
                it.psk = true;
                it.modes = Some(vec![1]);
                it.schemes = None;
            },
            Cause::MissingExtension(13),
        ),
        (
            |it| {
                it.groups = Some(vec![0x0018]);
                it.shares = Some(vec![]);
            },
            Cause::NoCommonGroup,
        ),
        (|it| it.schemes = Some(vec![0x0401, 0x0804]), Cause::NoCommonScheme),
        (|it| it.groups = Some(vec![P256]), illegal),
        (
            |it| it.shares = Some(vec![(X25519, vec![9; 32]), (X25519, vec![9; 32])]),
            illegal,
        ),
        (|it| it.shares = Some(vec![(X25519, vec![9; 31])]), illegal),
        (|it| it.shares = Some(vec![(X25519, vec![9; 33])]), illegal),
        (|it| it.shares = Some(vec![(X25519, vec![])]), Cause::Decode(1)),
        (|it| it.shares = Some(vec![(X25519, vec![0; 32])]), Cause::BadShare),
        (|it| it.shares = Some(vec![(P256, vec![4; 65])]), Cause::BadShare),
        (|it| it.shares = Some(vec![(P256, vec![2; 33])]), illegal),
    ];
    with_server(|server| {
        assert_eq!(meet(server, &[Hello::new().record()]).0.cause, None);
        for (number, (change, cause)) in cases.iter().enumerate() {
            let mut hello = Hello::new();
            change(&mut hello);
            let (side, out) = meet(server, &[hello.record()]);
            assert_eq!(side.cause, Some(*cause), "case {number}");
            let alert = cause.alert().unwrap();
            assert_eq!(out, record(21, &[alert.level(), alert as u8]), "case {number}");
        }
    });
}

#[test]
fn tls_13_off_is_tls_13_not_offered() {
    with_server(|server| {
        let server = ServerConfig {
            versions: &[Version::Tls12],
            ..*server
        };
        let (side, _) = meet(&server, &[Hello::new().record()]);
        assert_eq!(side.cause, Some(Cause::NoCommonVersion(0x0304)));
    });
}

/// A hello that has to be asked again, and its answer.
fn asked_again(change: impl FnOnce(&mut Hello)) -> Option<Cause> {
    with_server(|server| {
        let mut first = Hello::new();
        first.shares = Some(vec![]);
        let mut second = Hello::new();
        change(&mut second);
        meet(server, &[first.record(), second.record()]).0.cause
    })
}

#[test]
fn a_second_hello_changes_what_was_asked_for_and_nothing_else() {
    let illegal = Some(Cause::IllegalParameter(1));
    assert_eq!(asked_again(|_| {}), None);
    assert_eq!(asked_again(|it| it.shares = Some(vec![])), illegal, "no share again");
    assert_eq!(
        asked_again(|it| it.shares = Some(vec![(P256, vec![4; 65])])),
        illegal,
        "another group"
    );
    let two = vec![(X25519, vec![9; 32]), (P256, vec![4; 65])];
    assert_eq!(
        asked_again(|it| it.shares = Some(two)),
        illegal,
        "more than was asked for"
    );
    assert_eq!(asked_again(|it| it.session_id = vec![8; 32]), illegal);
    assert_eq!(asked_again(|it| it.suites.push(0x1302)), illegal);
    assert_eq!(asked_again(|it| it.schemes = Some(vec![0x0403, 0x0503])), illegal);
    assert_eq!(asked_again(|it| it.groups = Some(vec![X25519])), illegal);
    assert_eq!(asked_again(|it| it.versions = Some(vec![0x0304, 0x0303])), illegal);
    assert_eq!(asked_again(|it| it.modes = Some(vec![1])), illegal);
    assert_eq!(
        asked_again(|it| it.cookie = Some(vec![1])),
        illegal,
        "a cookie that nobody gave"
    );
    assert_eq!(asked_again(|it| it.early_data = true), illegal, "early data is over");
}

#[test]
fn compatibility_is_for_those_who_ask_for_it_and_comes_once() {
    let kinds = |server: &ServerConfig<'_, Fast>, hellos: &[Vec<u8>]| {
        let (_, out) = meet(server, hellos);
        records(&out).into_iter().map(|(kind, _)| kind).collect::<Vec<_>>()
    };
    with_server(|server| {
        let with = Hello::new();
        let without = Hello {
            session_id: vec![],
            ..with.clone()
        };
        assert_eq!(kinds(server, &[with.record()]), [22, 20, 23]);
        assert_eq!(kinds(server, &[without.record()]), [22, 23]);
        let again = |it: &Hello| {
            Hello {
                shares: Some(vec![]),
                ..it.clone()
            }
            .record()
        };
        assert_eq!(kinds(server, &[again(&with), with.record()]), [22, 20, 22, 23]);
        assert_eq!(kinds(server, &[again(&without), without.record()]), [22, 22, 23]);
    });
}

#[test]
fn a_change_cipher_spec_means_nothing_and_comes_once() {
    let (hello, change) = (Hello::new().record(), record(20, &[1]));
    let again = Hello {
        shares: Some(vec![]),
        ..Hello::new()
    }
    .record();
    let out_of_place = |state| {
        let met = skerry_tls::cause::Met::Record(20);
        Some(Cause::OutOfSequence { state, met })
    };
    let cause = |records: &[&Vec<u8>]| {
        let records: Vec<Vec<u8>> = records.iter().map(|it| it.to_vec()).collect();
        with_server(|server| meet(server, &records).0.cause)
    };
    assert_eq!(cause(&[&hello, &change]), None);
    assert_eq!(cause(&[&again, &change, &hello]), None);
    assert_eq!(
        cause(&[&change]),
        out_of_place(StateId::AwaitClientHello),
        "before any hello"
    );
    assert_eq!(
        cause(&[&hello, &change, &change]),
        out_of_place(StateId::AwaitClientFinished),
        "twice"
    );
    assert_eq!(
        cause(&[&again, &change, &hello, &change]),
        out_of_place(StateId::AwaitClientFinished),
        "twice"
    );
    for content in [&[2][..], &[0], &[1, 1]] {
        assert_eq!(
            cause(&[&hello, &record(20, content)]),
            out_of_place(StateId::AwaitClientFinished)
        );
    }
    // In the middle of a hello that comes in pieces.
    let message = Hello::new().message();
    let pieces = [record(22, &message[..50]), change.clone()];
    assert_eq!(
        cause(&[&pieces[0], &pieces[1]]),
        out_of_place(StateId::AwaitClientHello)
    );
}

#[test]
fn a_hello_ends_its_record_and_comes_in_any_pieces() {
    let message = Hello::new().message();
    with_server(|server| {
        // What follows it differs by its signature, which is made with randomness of the library's own.
        let server_hello = |out: &[u8]| out[..5 + 122].to_vec();
        let (_, whole) = meet(server, &[record(22, &message)]);
        for bytes in [1, 3, 4, 5, 50] {
            let pieces: Vec<Vec<u8>> = message.chunks(bytes).map(|piece| record(22, piece)).collect();
            let (side, out) = meet(server, &pieces);
            assert_eq!(
                (side.cause, server_hello(&out)),
                (None, server_hello(&whole)),
                "pieces of {bytes}"
            );
        }
        for more in [&[0][..], &[20, 0, 0, 0], &message] {
            let (side, out) = meet(server, &[record(22, &[&message[..], more].concat())]);
            let met = skerry_tls::cause::Met::Handshake(more[0]);
            assert_eq!(
                side.cause,
                Some(Cause::OutOfSequence {
                    state: StateId::AwaitClientHello,
                    met
                })
            );
            assert_eq!(out, record(21, &[2, 10]), "no ServerHello before it");
        }
    });
}

#[test]
fn early_data_is_skipped_within_a_bound() {
    let hello = Hello {
        early_data: true,
        ..Hello::new()
    };
    let again = Hello {
        shares: Some(vec![]),
        ..hello.clone()
    }
    .record();
    let early = |bytes: usize| record(23, &vec![0xee; bytes]);
    let most = EARLY_DATA_BYTES_MAX as usize;
    let cause = |records: &[Vec<u8>]| with_server(|server| meet(server, records).0.cause);
    assert_eq!(cause(&[hello.record(), early(100), early(most - 100)]), None);
    assert_eq!(
        cause(&[hello.record(), early(100), early(most - 99)]),
        Some(Cause::TooMuchEarlyData)
    );
    assert_eq!(cause(&[again.clone(), early(100), early(most - 100)]), None);
    assert_eq!(
        cause(&[again.clone(), early(100), early(most - 99)]),
        Some(Cause::TooMuchEarlyData)
    );
    assert_eq!(cause(&[again.clone(), early(100), Hello::new().record()]), None);
    let late = cause(&[again, early(100), Hello::new().record(), early(100)]);
    assert_eq!(late, Some(Cause::BadRecordMac), "it ends with the second hello");
    assert_eq!(
        cause(&[Hello::new().record(), early(100)]),
        Some(Cause::BadRecordMac),
        "none was announced"
    );
    let again = Hello {
        shares: Some(vec![]),
        ..Hello::new()
    }
    .record();
    let met = skerry_tls::cause::Met::Record(23);
    let state = StateId::AwaitSecondClientHello;
    assert_eq!(cause(&[again, early(100)]), Some(Cause::OutOfSequence { state, met }));
}

#[test]
fn a_client_that_cannot_use_our_answer_says_so_without_keys() {
    let (hello, alert) = (Hello::new().record(), record(21, &[2, 40]));
    let cause = with_server(|server| meet(server, &[hello, alert]).0.cause);
    assert_eq!(cause, Some(Cause::PeerAlert(Alert::HandshakeFailure)));
}

#[test]
fn max_fragment_length_bounds_every_record() {
    let hello = Hello {
        max_fragment_length: Some(1),
        ..Hello::new()
    };
    let key = loaded(Fixture::RSA);
    let identities = [key.identity()];
    let server = ServerConfig::new(&identities);
    let hello = Hello {
        schemes: Some(vec![0x0804]),
        ..hello
    };
    let (side, out) = meet(&server, &[hello.record()]);
    assert_eq!(side.cause, None);
    let longest = records(&out)
        .into_iter()
        .filter(|(kind, _)| *kind == 23)
        .map(|(_, bytes)| bytes)
        .max();
    assert_eq!(longest, Some(512 + 1 + 16));
}

#[test]
fn what_was_offered_is_noted() {
    with_server(|server| {
        let (side, _) = meet(
            server,
            &[Hello {
                versions: Some(vec![0x0a0a, 0x0304]),
                ..Hello::new()
            }
            .record()],
        );
        let offered = &side.notes.offered;
        assert_eq!(&offered.versions[..], [0x0a0a, 0x0304]);
        assert_eq!(&offered.suites[..], [0x1301]);
        assert_eq!(&offered.groups[..], [X25519, P256]);
        assert_eq!(&offered.schemes[..], [0x0403]);
    });
}
