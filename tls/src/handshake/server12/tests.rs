//! TLS 1.2 between our own client and server, and hellos that no client of ours sends.

use std::vec;
use std::vec::Vec;

use skerry_core::time::Timestamp;

use crate::alert::Alert;
use crate::cause::{Cause, Met};
use crate::config::{ClientAuth, ClientConfig, Config, Identity, ServerConfig};
use crate::crypto::fast::Fast;
use crate::handshake::TicketKeys;
use crate::message::{ClientHello, RANDOM_BYTES};
use crate::message::{
    Cursor, DOWNGRADE_TO_12, FALLBACK_SCSV, HandshakeType, RENEGOTIATION_SCSV, ServerHello, ServerHelloOrRetry,
    U16List, Writer, peek,
};
use crate::record::HEADER_BYTES;
use crate::state::StateId;
use crate::suite::{CipherSuite, Group, SignatureScheme, Version};
use crate::testing::{
    Accepting, Direction, Fixture, Flip, Kept, Loaded, NOW, Pair, Pieces, Room, Seeded, Setting, Side, Whole,
};
use crate::trail::Trail;

const SUITES: [CipherSuite; 6] = [
    CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
    CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
];

/// Everything that configurations borrow.
struct Rig {
    servers: [Loaded<Fast>; 2],
    devices: [Loaded<Fast>; 2],
    verifier: Accepting,
    tickets: TicketKeys<Fast>,
}

impl Rig {
    fn new() -> Self {
        let load = |fixture| Loaded::new(&Fast, fixture);
        Self {
            servers: [load(Fixture::P256), load(Fixture::RSA)],
            devices: [load(Fixture::DEVICE), load(Fixture::DEVICE_RSA)],
            verifier: Accepting::default(),
            tickets: TicketKeys::new(&Fast, &mut Seeded::new(9), NOW, 3600).unwrap(),
        }
    }

    fn identities(&self) -> [Identity<'_, Fast>; 2] {
        [self.servers[0].identity(), self.servers[1].identity()]
    }

    fn client(&self) -> ClientConfig<'_, Fast> {
        ClientConfig {
            versions: &[Version::Tls12],
            ..ClientConfig::new(&self.verifier, None)
        }
    }

    fn server<'a>(&'a self, identities: &'a [Identity<'a, Fast>]) -> ServerConfig<'a, Fast> {
        ServerConfig {
            verifier: Some(&self.verifier),
            ..ServerConfig::new(identities)
        }
    }
}

fn pair<'a>(client: &'a ClientConfig<'a, Fast>, server: &'a ServerConfig<'a, Fast>) -> Pair<'a, Fast> {
    Pair::new(
        Setting::new(&Fast, Config::Client(client)),
        Setting::new(&Fast, Config::Server(server)),
        7,
    )
}

/// Both are connected, agree, and understand each other.
fn talk(pair: &mut Pair<'_, Fast>) {
    let causes = (pair.client.cause, pair.server.cause);
    assert!(pair.client.is_connected && pair.server.is_connected, "{causes:?}");
    let (client, server) = (pair.client.session.agreed(), pair.server.session.agreed());
    assert_eq!(
        (client.version, server.version),
        (Some(Version::Tls12), Some(Version::Tls12))
    );
    assert_eq!((client.suite, client.group), (server.suite, server.group));
    assert_eq!(client.resumed, server.resumed);
    assert_eq!(client.extended_master_secret, server.extended_master_secret);
    assert_eq!(
        (client.own_scheme, client.peer_scheme),
        (server.peer_scheme, server.own_scheme)
    );
    pair.client.send(&[1; 20_000]).unwrap();
    pair.server.send(&[2; 20_000]).unwrap();
    pair.run(&mut Whole);
    assert!(pair.server.data == [1; 20_000] && pair.client.data == [2; 20_000]);
    pair.client.close();
    pair.server.close();
    pair.run(&mut Whole);
    assert!(pair.server.is_closed && pair.client.is_closed);
}

fn states(trail: &Trail) -> Vec<StateId> {
    trail.steps().iter().map(|step| step.to).collect()
}

#[test]
fn every_suite_with_every_group_cut_in_any_way() {
    let rig = Rig::new();
    let identities = rig.identities();
    for suite in SUITES {
        for group in Group::ALL {
            for bytes in [1, 7, 100_000] {
                let (suites, groups) = ([suite], [*group, Group::Secp256r1]);
                let client = ClientConfig {
                    suites: &suites,
                    groups: &groups,
                    ..rig.client()
                };
                let server = ServerConfig {
                    groups: &groups[..1],
                    ..rig.server(&identities)
                };
                let mut pair = pair(&client, &server);
                pair.run(&mut Pieces(bytes));
                assert_eq!(pair.server.session.suite(), Some(suite));
                assert_eq!(pair.server.session.agreed().group, Some(*group));
                talk(&mut pair);
            }
        }
    }
}

#[test]
fn the_states_of_a_full_and_of_a_resumed_handshake() {
    let rig = Rig::new();
    let identities = rig.identities();
    let device = rig.devices[0].identity();
    let client = ClientConfig {
        identity: Some(&device),
        ..rig.client()
    };
    let server = ServerConfig {
        client_auth: ClientAuth::Required,
        tickets: Some(&rig.tickets),
        ..rig.server(&identities)
    };
    let mut full = pair(&client, &server);
    full.run(&mut Whole);
    assert_eq!(
        states(&full.server.notes.trail),
        [
            StateId::AwaitClientCertificate12,
            StateId::AwaitClientKeyExchange,
            StateId::AwaitClientCertificateVerify12,
            StateId::AwaitClientChangeCipherSpec,
            StateId::AwaitClientFinished12,
            StateId::Connected,
        ]
    );
    talk(&mut full);
    let resumed = ClientConfig {
        resume: &full.client.kept.bytes,
        ..client
    };
    let mut resumed = pair(&resumed, &server);
    resumed.run(&mut Whole);
    assert_eq!(
        states(&resumed.server.notes.trail),
        [
            StateId::AwaitClientChangeCipherSpec,
            StateId::AwaitClientFinished12,
            StateId::Connected,
        ]
    );
    talk(&mut resumed);
}

#[test]
fn a_client_certificate_is_none_wished_for_or_demanded() {
    let rig = Rig::new();
    let identities = rig.identities();
    let devices = [rig.devices[0].identity(), rig.devices[1].identity()];
    // Every suite's hash with every scheme's: a CertificateVerify may be over the other hash.
    for suite in SUITES {
        for scheme in SignatureScheme::ALL {
            let (suites, schemes) = ([suite], [*scheme]);
            let is_rsa = !matches!(
                scheme,
                SignatureScheme::EcdsaSecp256r1Sha256 | SignatureScheme::EcdsaSecp384r1Sha384
            );
            for client_auth in [ClientAuth::None, ClientAuth::Requested, ClientAuth::Required] {
                for has_one in [false, true] {
                    let client = ClientConfig {
                        suites: &suites,
                        identity: has_one.then_some(&devices[usize::from(is_rsa)]),
                        ..rig.client()
                    };
                    // The server's own signature is by the same list, so it has to suit the suite.
                    let own = [
                        schemes[0],
                        SignatureScheme::EcdsaSecp256r1Sha256,
                        SignatureScheme::RsaPssRsaeSha256,
                    ];
                    let server = ServerConfig {
                        schemes: &own,
                        client_auth,
                        ..rig.server(&identities)
                    };
                    let mut pair = pair(&client, &server);
                    pair.run(&mut Whole);
                    if client_auth == ClientAuth::Required && !has_one {
                        assert_eq!(pair.server.cause, Some(Cause::ClientCertificateMissing));
                        assert_eq!(pair.client.cause, Some(Cause::PeerAlert(Alert::HandshakeFailure)));
                        continue;
                    }
                    let peer = pair.server.session.peer().map(|peer| peer.subject.as_str());
                    let proves = has_one && client_auth != ClientAuth::None;
                    assert_eq!(peer, proves.then_some("CN=client"));
                    assert_eq!(pair.server.session.agreed().peer_scheme.is_some(), proves);
                    talk(&mut pair);
                }
            }
        }
    }
}

#[test]
fn a_client_certificate_that_is_refused_is_told() {
    let mut rig = Rig::new();
    rig.verifier.refuses = Some(Cause::UnknownCa);
    let trusting = Accepting::default();
    let identities = rig.identities();
    let device = rig.devices[0].identity();
    let client = ClientConfig {
        identity: Some(&device),
        verifier: &trusting,
        ..rig.client()
    };
    let server = ServerConfig {
        client_auth: ClientAuth::Requested,
        ..rig.server(&identities)
    };
    let mut pair = pair(&client, &server);
    pair.run(&mut Whole);
    assert_eq!(pair.server.cause, Some(Cause::UnknownCa));
    assert_eq!(pair.client.cause, Some(Cause::PeerAlert(Alert::UnknownCa)));
}

#[test]
fn a_certificate_is_proved_by_its_own_key() {
    let rig = Rig::new();
    let identities = rig.identities();
    let stolen = Identity {
        chain: Fixture::DEVICE.chain,
        key: rig.servers[0].identity().key,
    };
    let client = ClientConfig {
        identity: Some(&stolen),
        ..rig.client()
    };
    let server = ServerConfig {
        client_auth: ClientAuth::Requested,
        ..rig.server(&identities)
    };
    let mut pair = pair(&client, &server);
    pair.run(&mut Whole);
    assert_eq!(pair.server.cause, Some(Cause::BadSignature));
    assert_eq!(pair.client.cause, Some(Cause::PeerAlert(Alert::DecryptError)));
}

/// A first connection that got a ticket.
fn first(client: &ClientConfig<'_, Fast>, server: &ServerConfig<'_, Fast>) -> Kept {
    let mut pair = pair(client, server);
    pair.run(&mut Whole);
    assert_eq!(pair.client.kept.count, 1);
    pair.client.kept.clone()
}

#[test]
fn a_ticket_resumes_only_what_it_was_made_for() {
    let rig = Rig::new();
    let identities = rig.identities();
    let device = rig.devices[1].identity();
    let client = ClientConfig {
        identity: Some(&device),
        ..rig.client()
    };
    let server = ServerConfig {
        client_auth: ClientAuth::Required,
        tickets: Some(&rig.tickets),
        ..rig.server(&identities)
    };
    let kept = first(&client, &server);
    let client = ClientConfig {
        resume: &kept.bytes,
        ..client
    };
    let is_resumed = |client: &ClientConfig<'_, Fast>, server: &ServerConfig<'_, Fast>, now: Timestamp| {
        let mut pair = pair(client, server);
        pair.server_setting.now = now;
        pair.run(&mut Whole);
        let is_resumed = pair.server.session.is_resumed();
        let peer = pair.server.session.peer().map(|peer| peer.subject.as_str());
        assert_eq!(peer, (server.client_auth != ClientAuth::None).then_some("CN=client"));
        assert_eq!(
            pair.client.kept.count,
            usize::from(!is_resumed && server.tickets.is_some())
        );
        talk(&mut pair);
        is_resumed
    };
    assert!(is_resumed(&client, &server, NOW));
    assert!(is_resumed(&client, &server, Timestamp(NOW.0 + 3_599_999)));
    assert!(!is_resumed(&client, &server, Timestamp(NOW.0 + 3_600_000)), "too old");
    let other = ServerConfig {
        tickets: None,
        ..server
    };
    assert!(!is_resumed(&client, &other, NOW), "no tickets any more");
    let server = ServerConfig {
        client_auth: ClientAuth::None,
        tickets: Some(&rig.tickets),
        ..rig.server(&identities)
    };
    assert!(!is_resumed(&client, &server, NOW), "other client authentication");
    let server = ServerConfig {
        client_auth: ClientAuth::Required,
        tickets: Some(&rig.tickets),
        ..rig.server(&identities[1..])
    };
    assert!(!is_resumed(&client, &server, NOW), "another certificate");
    let suites = [CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384];
    let server = ServerConfig {
        client_auth: ClientAuth::Required,
        tickets: Some(&rig.tickets),
        suites: &suites,
        ..rig.server(&identities)
    };
    assert!(!is_resumed(&client, &server, NOW), "its suite is not spoken any more");
}

#[test]
fn a_ticket_after_rotation_and_one_that_was_changed() {
    let mut rig = Rig::new();
    let kept = {
        let identities = rig.identities();
        let server = ServerConfig {
            tickets: Some(&rig.tickets),
            ..rig.server(&identities)
        };
        first(&rig.client(), &server)
    };
    let try_it = |rig: &Rig, bytes: &[u8]| {
        let identities = rig.identities();
        let server = ServerConfig {
            tickets: Some(&rig.tickets),
            ..rig.server(&identities)
        };
        let client = ClientConfig {
            resume: bytes,
            ..rig.client()
        };
        let mut pair = pair(&client, &server);
        pair.run(&mut Whole);
        let is_resumed = pair.server.session.is_resumed();
        talk(&mut pair);
        is_resumed
    };
    let mut changed = kept.bytes.clone();
    *changed.last_mut().unwrap() ^= 1;
    assert!(
        !try_it(&rig, &changed),
        "a ticket that is not ours means a full handshake"
    );
    rig.tickets.rotate(&Fast, &mut Seeded::new(10), NOW).unwrap();
    assert!(try_it(&rig, &kept.bytes));
    rig.tickets.rotate(&Fast, &mut Seeded::new(11), NOW).unwrap();
    assert!(!try_it(&rig, &kept.bytes));
}

#[test]
fn records_are_held_to_what_either_side_takes() {
    let rig = Rig::new();
    let identities = rig.identities();
    let client = ClientConfig {
        record_size_limit: Some(64),
        ..rig.client()
    };
    let server = ServerConfig {
        record_size_limit: Some(100),
        ..rig.server(&identities)
    };
    let mut pair = pair(&client, &server);
    pair.run(&mut Whole);
    assert_eq!(
        (pair.server.session.content_max(), pair.client.session.content_max()),
        (64, 100)
    );
    talk(&mut pair);
}

#[test]
fn who_gets_a_changed_bit_is_never_connected() {
    let rig = Rig::new();
    let identities = rig.identities();
    let device = rig.devices[0].identity();
    let client = ClientConfig {
        identity: Some(&device),
        ..rig.client()
    };
    let server = ServerConfig {
        client_auth: ClientAuth::Required,
        tickets: Some(&rig.tickets),
        ..rig.server(&identities)
    };
    let mut whole = pair(&client, &server);
    whole.run(&mut Whole);
    for (direction, bytes) in [
        (Direction::ToServer, whole.to_server.len()),
        (Direction::ToClient, whole.to_client.len()),
    ] {
        for at in 0..bytes {
            let mask = 1 << (at % 8);
            let mut pair = pair(&client, &server);
            pair.run(&mut Flip { direction, at, mask });
            let (stream, receiver) = match direction {
                Direction::ToServer => (&pair.to_server, &pair.server),
                Direction::ToClient => (&pair.to_client, &pair.client),
            };
            // Where records lie differs from run to run by the lengths of signatures.
            if at < stream.len() && !is_version(stream, at) {
                assert!(!receiver.is_connected, "{direction:?} {at}");
            }
        }
    }
}

/// Goal: Finished is compared. Method: extended_master_secret is hidden from the server, so that both sides make the same keys of hellos that are
/// not the same.
#[test]
fn a_hello_that_was_changed_is_found_out_by_finished() {
    let rig = Rig::new();
    let identities = rig.identities();
    let (client, server) = (rig.client(), rig.server(&identities));
    let mut whole = pair(&client, &server);
    whole.run(&mut Whole);
    let extension = [0, 23, 0, 0];
    let places = whole.to_server.windows(4).enumerate();
    let at = places
        .filter(|(_, window)| *window == extension)
        .map(|(at, _)| at)
        .next()
        .unwrap()
        + 1;
    let mut pair = pair(&client, &server);
    pair.run(&mut Flip {
        direction: Direction::ToServer,
        at,
        mask: 0x40,
    });
    assert!(!pair.server.session.agreed().extended_master_secret);
    assert_eq!(pair.server.cause, Some(Cause::BadFinished));
    assert_eq!(pair.client.cause, Some(Cause::PeerAlert(Alert::DecryptError)));
}

/// Whether a byte is of a record's version, which is not looked at closely (RFC 8446 §5.1).
fn is_version(stream: &[u8], at: usize) -> bool {
    let mut start = 0;
    while let Some(header) = stream.get(start..start + HEADER_BYTES) {
        if (start + 1..start + 3).contains(&at) {
            return true;
        }
        start += HEADER_BYTES + usize::from(u16::from_be_bytes([header[3], header[4]]));
    }
    false
}

/// A hello of TLS 1.2 that everything is right with.
fn plain<'a>(random: &'a [u8; RANDOM_BYTES], suites: &'a [[u8; 2]]) -> ClientHello<'a> {
    ClientHello {
        ec_point_formats: Some(&[0]),
        supported_groups: Some(U16List::new(&[[0, 29], [0, 23], [0, 24]])),
        extended_master_secret: true,
        renegotiation_info: Some(&[]),
        signature_algorithms: Some(U16List::new(&[[4, 3], [8, 4], [4, 1]])),
        ..ClientHello::bare(0x0303, random, &[], U16List::new(suites))
    }
}

/// What a server does with a hello: its own hello's body, or why it refuses.
fn answer(config: &ServerConfig<'_, Fast>, hello: &ClientHello<'_>) -> Result<Vec<u8>, Cause> {
    let mut side = after_hello(config, hello);
    match side.cause {
        Some(cause) => Err(cause),
        None => {
            let out = side.take_out();
            let mut messages = Vec::new();
            let mut r = Cursor::new(HandshakeType::ServerHello, &out);
            while !r.is_empty() {
                r.take(3).unwrap();
                messages.extend_from_slice(r.vector_16(1).unwrap());
            }
            let message = peek(&messages, 1 << 16).unwrap();
            assert_eq!(message.kind, HandshakeType::ServerHello.wire());
            Ok(message.body.to_vec())
        }
    }
}

fn decoded(body: &[u8]) -> ServerHello<'_> {
    match ServerHelloOrRetry::decode(body) {
        Ok(ServerHelloOrRetry::Hello(hello)) => hello,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_part_of_a_hello_has_its_answer() {
    let rig = Rig::new();
    let identities = rig.identities();
    let server = rig.server(&identities);
    let with_tickets = ServerConfig {
        tickets: Some(&rig.tickets),
        ..rig.server(&identities)
    };
    let random = [5; RANDOM_BYTES];
    let ecdsa = [[0xc0, 0x2b]];
    let hello = plain(&random, &ecdsa);

    let body = answer(&server, &hello).unwrap();
    let it = decoded(&body);
    assert_eq!((it.legacy_version, it.suite, it.session_id), (0x0303, 0xc02b, &[][..]));
    assert_eq!(
        (it.ec_point_formats, it.renegotiation_info),
        (Some(&[0][..]), Some(&[][..]))
    );
    assert!(it.extended_master_secret && !it.session_ticket && !it.server_name);
    assert_eq!((it.record_size_limit, it.max_fragment_length), (None, None));
    assert!(it.random.ends_with(&DOWNGRADE_TO_12));

    // Nothing is answered that was not said.
    let bare = ClientHello {
        ec_point_formats: None,
        extended_master_secret: false,
        renegotiation_info: None,
        ..hello
    };
    let body = answer(&with_tickets, &bare).unwrap();
    assert_eq!(
        decoded(&body),
        ServerHello::bare(0x0303, decoded(&body).random, &[], 0xc02b)
    );

    // The same by signal.
    let suites = [[0xc0, 0x2b], RENEGOTIATION_SCSV.to_be_bytes()];
    let signalling = ClientHello {
        suites: U16List::new(&suites),
        ..bare
    };
    assert_eq!(
        decoded(&answer(&server, &signalling).unwrap()).renegotiation_info,
        Some(&[][..])
    );

    // A ticket is promised to a client that asks, and the id that a client of 1.3 sends does not come back.
    let id = [9; 32];
    let asking = ClientHello {
        session_ticket: Some(&[]),
        session_id: &id,
        ..hello
    };
    let body = answer(&with_tickets, &asking).unwrap();
    assert!(decoded(&body).session_ticket && decoded(&body).session_id.is_empty());
    assert!(!decoded(&answer(&server, &asking).unwrap()).session_ticket);

    // Only a server that speaks 1.3 says that it could have.
    let versions = [Version::Tls12];
    let only_12 = ServerConfig {
        versions: &versions,
        ..rig.server(&identities)
    };
    assert!(
        !decoded(&answer(&only_12, &hello).unwrap())
            .random
            .ends_with(&DOWNGRADE_TO_12)
    );

    // record_size_limit replaces max_fragment_length.
    let limited = ClientHello {
        max_fragment_length: Some(1),
        ..hello
    };
    assert_eq!(
        decoded(&answer(&server, &limited).unwrap()).max_fragment_length,
        Some(1)
    );
    let limited = ClientHello {
        record_size_limit: Some(64),
        ..limited
    };
    let body = answer(&server, &limited).unwrap();
    let it = decoded(&body);
    assert_eq!((it.record_size_limit, it.max_fragment_length), (Some(16_384), None));
}

const fn with_groups<'a>(hello: ClientHello<'a>, groups: &'a [[u8; 2]]) -> ClientHello<'a> {
    ClientHello {
        supported_groups: Some(U16List::new(groups)),
        ..hello
    }
}

#[test]
fn each_hello_that_cannot_be_served_has_its_cause() {
    let rig = Rig::new();
    let identities = rig.identities();
    let server = rig.server(&identities);
    let random = [5; RANDOM_BYTES];
    let ecdsa = [[0xc0, 0x2b]];
    let hello = plain(&random, &ecdsa);
    let illegal = Err(Cause::IllegalParameter(1));
    let is = |hello: ClientHello<'_>| answer(&server, &hello).map(|body| decoded(&body).suite);
    assert_eq!(is(hello), Ok(0xc02b));

    let none = ClientHello {
        signature_algorithms: None,
        ..hello
    };
    assert_eq!(is(none), Err(Cause::NoCommonScheme), "SHA-1 is what it means by that");
    let sha_1 = U16List::new(&[[2, 1], [2, 3]]);
    assert_eq!(
        is(ClientHello {
            signature_algorithms: Some(sha_1),
            ..hello
        }),
        Err(Cause::NoCommonScheme)
    );

    let formats = ClientHello {
        ec_point_formats: Some(&[1, 2]),
        ..hello
    };
    assert_eq!(is(formats), illegal);
    let formats = ClientHello {
        ec_point_formats: Some(&[1, 2, 0]),
        ..hello
    };
    assert_eq!(is(formats), Ok(0xc02b));

    assert_eq!(is(with_groups(hello, &[[0, 24]])), Err(Cause::NoCommonGroup));
    assert_eq!(
        is(with_groups(hello, &[[0, 29]])),
        Err(Cause::NoCommonSuite),
        "it cannot check the leaf's curve"
    );
    let any = ClientHello {
        supported_groups: None,
        ..hello
    };
    assert_eq!(is(any), Ok(0xc02b));
    let both = [[0xc0, 0x2b], [0xc0, 0x2f]];
    let rsa = ClientHello {
        suites: U16List::new(&both),
        ..with_groups(hello, &[[0, 29]])
    };
    assert_eq!(is(rsa), Ok(0xc02f), "then by RSA");

    let cbc = [[0xc0, 0x09], [0x13, 0x01]];
    assert_eq!(
        is(ClientHello {
            suites: U16List::new(&cbc),
            ..hello
        }),
        Err(Cause::NoCommonSuite)
    );
    let fallback = [[0xc0, 0x2b], FALLBACK_SCSV.to_be_bytes()];
    let fallback = ClientHello {
        suites: U16List::new(&fallback),
        ..hello
    };
    assert_eq!(is(fallback), Err(Cause::InappropriateFallback));
    let older = ClientHello {
        legacy_version: 0x0302,
        supported_versions: None,
        ..fallback
    };
    assert_eq!(is(older), Err(Cause::InappropriateFallback));
    let versions = [Version::Tls12];
    let only_12 = ServerConfig {
        versions: &versions,
        ..rig.server(&identities)
    };
    assert!(answer(&only_12, &fallback).is_ok());

    assert_eq!(
        is(ClientHello {
            legacy_version: 0x0302,
            ..hello
        }),
        Err(Cause::NoCommonVersion(0x0302))
    );
    assert_eq!(
        is(ClientHello {
            renegotiation_info: Some(&[1]),
            ..hello
        }),
        Err(Cause::Renegotiation)
    );
    assert_eq!(
        is(ClientHello {
            compression: &[1, 0],
            ..hello
        }),
        Ok(0xc02b),
        "null is among them"
    );
}

#[test]
fn an_extended_master_secret_does_not_change() {
    let rig = Rig::new();
    let identities = rig.identities();
    let server = ServerConfig {
        tickets: Some(&rig.tickets),
        ..rig.server(&identities)
    };
    let kept = first(&rig.client(), &server);
    let session = crate::saved::SavedSession::decode(&kept.bytes).unwrap();
    let random = [5; RANDOM_BYTES];
    let suites = [(session.suite as u16).to_be_bytes()];
    let id = [1; 32];
    let with = ClientHello {
        session_ticket: Some(session.ticket),
        session_id: &id,
        ..plain(&random, &suites)
    };
    let body = answer(&server, &with).unwrap();
    assert_eq!(decoded(&body).session_id, id, "resumed");
    assert!(!decoded(&body).session_ticket, "its master secret gets no new ticket");
    let without = ClientHello {
        extended_master_secret: false,
        ..with
    };
    assert_eq!(answer(&server, &without), Err(Cause::MasterSecretChanged));
    let suites = [[0xc0, 0x2f]];
    let other = ClientHello {
        suites: U16List::new(&suites),
        ..with
    };
    let body = answer(&server, &other).unwrap();
    assert!(
        decoded(&body).session_id.is_empty() && decoded(&body).session_ticket,
        "a session keeps its suite"
    );
}

/// A server that took a hello, and what it is lent.
fn after_hello(config: &ServerConfig<'_, Fast>, hello: &ClientHello<'_>) -> Side<Fast> {
    let mut bytes = vec![0; 4096];
    let written = Writer::fill(&mut bytes, |w| {
        w.bytes(&[22, 3, 1])?;
        w.vector_16(|w| hello.encode(w))
    });
    bytes.truncate(written.unwrap());
    let mut side = Side::server(3, Room::default());
    side.receive(&Setting::new(&Fast, Config::Server(config)), &bytes);
    side
}

#[test]
fn what_comes_out_of_turn_is_unexpected() {
    let rig = Rig::new();
    let identities = rig.identities();
    let server = rig.server(&identities);
    let random = [5; RANDOM_BYTES];
    let suites = [[0xc0, 0x2b]];
    let hello = ClientHello {
        max_fragment_length: Some(1),
        ..plain(&random, &suites)
    };
    let setting = Setting::new(&Fast, Config::Server(&server));
    let out_of_turn = |record: &[u8]| {
        let mut side = after_hello(&server, &hello);
        assert_eq!(side.session.state_id(), StateId::AwaitClientKeyExchange);
        side.receive(&setting, record);
        side.cause
    };
    let met = |met| {
        Some(Cause::OutOfSequence {
            state: StateId::AwaitClientKeyExchange,
            met,
        })
    };
    // A certificate that nobody asked for, a Finished before its time, keys before there are any, another hello.
    assert_eq!(
        out_of_turn(&[22, 3, 3, 0, 7, 11, 0, 0, 3, 0, 0, 0]),
        met(Met::Handshake(11))
    );
    assert_eq!(out_of_turn(&[22, 3, 3, 0, 4, 20, 0, 0, 0]), met(Met::Handshake(20)));
    assert_eq!(out_of_turn(&[20, 3, 3, 0, 1, 1]), met(Met::Record(20)));
    assert_eq!(out_of_turn(&[22, 3, 3, 0, 4, 1, 0, 0, 0]), met(Met::Handshake(1)));
    // A share that is none.
    assert_eq!(out_of_turn(&[22, 3, 3, 0, 6, 16, 0, 0, 2, 1, 9]), Some(Cause::BadShare));
    assert_eq!(out_of_turn(&[22, 3, 3, 0, 5, 16, 0, 0, 1, 0]), Some(Cause::Decode(16)));
    // More in a record than was agreed on.
    let record: Vec<u8> = [&[22, 3, 3, 2, 1][..], &[0; 513]].concat();
    assert_eq!(out_of_turn(&record), Some(Cause::RecordOverflow));
}
