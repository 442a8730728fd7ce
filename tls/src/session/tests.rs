//! The session over the provider of constants: every state meets every message, and what comes beside the messages.

extern crate std;

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use alloc::{format, vec};

use skerry_core::meter::Ticks;

use super::*;
use crate::cause::Met;
use crate::certificate::ServerName;
use crate::config::{ClientAuth, ClientConfig, Config, Identity, ServerConfig};
use crate::crypto::KeyKind;
use crate::handshake::{MOVES, Move, TicketKeys, is_legal};
use crate::message::{HandshakeType, Writer};
use crate::notes::Notes;
use crate::record::HEADER_BYTES;
use crate::suite::Group;
use crate::testing::{Accepting, Fixture, Kept, NOW, Seeded, Toy, ToyKey};

/// A session with all that is lent to it.
struct End {
    session: Session<Toy>,
    kept: Kept,
    notes: Notes,
    random: Seeded,
    message: Vec<u8>,
    filled: usize,
    scratch: Vec<u8>,
    out: Vec<u8>,
    out_filled: usize,
}

impl End {
    fn server() -> Self {
        Self {
            session: Session::server(),
            kept: Kept::default(),
            notes: Notes::default(),
            random: Seeded::new(1),
            message: vec![0; 1 << 16],
            filled: 0,
            scratch: vec![0; 1 << 14],
            out: vec![0; 1 << 15],
            out_filled: 0,
        }
    }

    fn client(config: &ClientConfig<'_, Toy>) -> Self {
        let mut end = Self::server();
        end.session = end.lend(Config::Client(config), |_, cx| Session::client(cx)).unwrap();
        end
    }

    fn lend<'c, T>(
        &'c mut self,
        config: Config<'c, Toy>,
        call: impl FnOnce(&mut Session<Toy>, &mut Context<'_, Toy>) -> T,
    ) -> T {
        let mut cx = Context {
            provider: &Toy,
            random: &mut self.random,
            now: NOW,
            ticks: &|| Ticks(0),
            config,
            message: Reassembly::new(&mut self.message, &mut self.filled),
            scratch: &mut self.scratch,
            out: Out::new(&mut self.out, &mut self.out_filled),
            notes: &mut self.notes,
            keep: Some(&mut self.kept),
        };
        call(&mut self.session, &mut cx)
    }

    /// Takes a whole record.
    fn receive(&mut self, config: Config<'_, Toy>, record: &[u8]) -> Result<Came, Cause> {
        let mut record = record.to_vec();
        self.lend(config, |session, cx| {
            session.receive(cx, &mut record).map(|received| match received.event {
                Event::Need(more) => Came::Need(more),
                Event::Progress => Came::Progress,
                Event::Connected => Came::Connected,
                Event::Data(data) => Came::Data(data.to_vec()),
                Event::DataInto(_) => unreachable!(),
                Event::CloseNotify => Came::CloseNotify,
            })
        })
    }

    /// Takes the content of a record as if it had just been opened.
    fn content(&mut self, config: Config<'_, Toy>, kind: ContentType, content: &[u8]) -> Result<(), Cause> {
        self.lend(config, |session, cx| {
            session
                .beside(cx, kind, content)
                .map(drop)
                .inspect_err(|cause| session.fail(*cause, &mut cx.out))
        })
    }

    fn take_out(&mut self) -> Vec<u8> {
        let out = self.out[..self.out_filled].to_vec();
        self.out_filled = 0;
        out
    }

    fn steps(&self) -> impl Iterator<Item = (StateId, StateId)> {
        self.notes.trail.steps().iter().map(|step| (step.from, step.to))
    }
}

/// An [`Event`] that owns what it tells.
#[derive(Debug, PartialEq, Eq)]
enum Came {
    Need(usize),
    Progress,
    Connected,
    Data(Vec<u8>),
    CloseNotify,
}

/// The first record of `bytes`, and the rest.
fn first_record(bytes: &[u8]) -> (&[u8], &[u8]) {
    bytes.split_at(HEADER_BYTES + usize::from(u16::from_be_bytes([bytes[3], bytes[4]])))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Who {
    Client,
    Server,
}

/// Two ends on the way.
struct Two<'a> {
    client: End,
    server: End,
    client_config: &'a ClientConfig<'a, Toy>,
    server_config: &'a ServerConfig<'a, Toy>,
    to_server: Vec<u8>,
    to_client: Vec<u8>,
}

impl<'a> Two<'a> {
    fn new(client_config: &'a ClientConfig<'a, Toy>, server_config: &'a ServerConfig<'a, Toy>) -> Self {
        Self {
            client: End::client(client_config),
            server: End::server(),
            client_config,
            server_config,
            to_server: Vec::new(),
            to_client: Vec::new(),
        }
    }

    /// Lets handshake messages pass, one at a time, until nobody sends any more or `stop` says so.
    fn run(&mut self, mut stop: impl FnMut(&End, &End) -> bool) {
        loop {
            self.to_server.extend(self.client.take_out());
            self.to_client.extend(self.server.take_out());
            let (end, config, stream) = if !self.to_server.is_empty() {
                (
                    &mut self.server,
                    Config::Server(self.server_config),
                    &mut self.to_server,
                )
            } else if !self.to_client.is_empty() {
                (
                    &mut self.client,
                    Config::Client(self.client_config),
                    &mut self.to_client,
                )
            } else {
                return;
            };
            let (record, rest) = first_record(stream);
            let (mut record, rest) = (record.to_vec(), rest.to_vec());
            *stream = rest;
            let opened = end.session.read.open(&mut record).unwrap();
            let (kind, mut content) = (opened.kind, opened.content.to_vec());
            while !content.is_empty() {
                if stop(&self.client, &self.server) {
                    return;
                }
                let bytes = match kind {
                    ContentType::Handshake => 4 + usize::from(u16::from_be_bytes([content[2], content[3]])),
                    _ => content.len(),
                };
                let end = if matches!(config, Config::Client(_)) {
                    &mut self.client
                } else {
                    &mut self.server
                };
                let came = end.content(config, kind, &content[..bytes]);
                content.drain(..bytes);
                assert!(came.is_ok(), "{came:?} after {:?}", end.notes.trail);
            }
        }
    }

    fn run_to(&mut self, who: Who, state: StateId) {
        self.run(|client, server| {
            let end = if who == Who::Client { client } else { server };
            end.session.state_id() == state
        });
    }

    fn connect(&mut self) {
        self.run(|_, _| false);
        assert_eq!(self.client.session.state_id(), StateId::Connected);
        assert_eq!(self.server.session.state_id(), StateId::Connected);
    }

    fn end(&mut self, who: Who) -> (&mut End, Config<'a, Toy>) {
        match who {
            Who::Client => (&mut self.client, Config::Client(self.client_config)),
            Who::Server => (&mut self.server, Config::Server(self.server_config)),
        }
    }
}

fn verifier() -> &'static Accepting {
    static VERIFIER: Accepting = Accepting {
        refuses: None,
        trust_id: [1; 32],
        authorities: &[],
        not_after: skerry_core::time::Timestamp(i64::MAX),
    };
    &VERIFIER
}

/// Every way that a handshake takes, by name.
fn every_way(mut with: impl FnMut(&str, &ClientConfig<'_, Toy>, &ServerConfig<'_, Toy>)) {
    let key = ToyKey(KeyKind::P256);
    let chain = Fixture::P256.chain;
    let identities = [Identity { chain, key: &key }];
    let device = Identity {
        chain: Fixture::DEVICE.chain,
        key: &key,
    };
    let tickets = TicketKeys::new(&Toy, &mut Seeded::new(3), NOW, 3600).unwrap();
    let client = || ClientConfig::new(verifier(), Some(ServerName::Dns("broker.example")));
    for version in [Version::Tls13, Version::Tls12] {
        let versions = &[version];
        let server = || ServerConfig {
            versions,
            verifier: Some(verifier()),
            ..ServerConfig::new(&identities)
        };
        let mut named = |name: &str, client: &ClientConfig<'_, Toy>, server: &ServerConfig<'_, Toy>| {
            with(&format!("{} {name}", version.name()), client, server);
        };
        named("full", &client(), &server());
        let asks = |client_auth| ServerConfig {
            client_auth,
            ..server()
        };
        named("asked, has none", &client(), &asks(ClientAuth::Requested));
        let has = || ClientConfig {
            identity: Some(&device),
            ..client()
        };
        named("asked, has one", &has(), &asks(ClientAuth::Required));
        let tickets = || ServerConfig {
            tickets: Some(&tickets),
            ..server()
        };
        named("ticket", &client(), &tickets());
        let (client_config, server_config) = (client(), tickets());
        let mut first = Two::new(&client_config, &server_config);
        first.connect();
        assert!(!first.client.kept.bytes.is_empty());
        let resume = &first.client.kept.bytes[..];
        named("resumed", &ClientConfig { resume, ..client() }, &tickets());
        named(
            "resumed without a ticket",
            &ClientConfig {
                resume,
                tickets: false,
                ..client()
            },
            &tickets(),
        );
        if version == Version::Tls13 {
            let retries = |server| ServerConfig {
                groups: &[Group::Secp256r1],
                ..server
            };
            named("asked again", &client(), &retries(server()));
            named(
                "asked again, and for a certificate",
                &has(),
                &retries(asks(ClientAuth::Required)),
            );
            named(
                "asked again, resumed",
                &ClientConfig { resume, ..client() },
                &retries(tickets()),
            );
        }
    }
}

#[test]
fn every_handshake_makes_legal_moves_and_all_of_them_are_made() {
    let mut made = BTreeSet::new();
    every_way(|name, client, server| {
        let mut two = Two::new(client, server);
        two.connect();
        assert_eq!(two.server.session.is_resumed(), name.contains("resumed"), "{name}");
        assert_eq!(two.client.session.is_resumed(), name.contains("resumed"), "{name}");
        let client_steps = two.client.steps().skip(1);
        for (from, to) in client_steps.chain(two.server.steps()) {
            assert!(
                MOVES.iter().any(|it| (it.from, it.to) == (from, to)),
                "{name}: {from:?} to {to:?}"
            );
            made.insert((from, to));
        }
        assert_eq!(
            two.client.steps().next().unwrap().1,
            StateId::AwaitServerHello,
            "{name}"
        );
    });
    // Only a server that is not ours sends a new ticket with a resumption of TLS 1.2.
    made.insert((StateId::AwaitServerHello, StateId::AwaitNewSessionTicket));
    let missed: Vec<&Move> = MOVES
        .iter()
        .filter(|it| it.from != StateId::Connected && !made.contains(&(it.from, it.to)))
        .collect();
    assert!(missed.is_empty(), "{missed:?}");
}

#[test]
fn every_state_meets_every_message() {
    let kinds: Vec<u8> = HandshakeType::ALL
        .iter()
        .map(|kind| kind.wire())
        .chain([3, 255])
        .collect();
    let mut states = BTreeSet::new();
    every_way(|name, client, server| {
        let mut whole = Two::new(client, server);
        whole.connect();
        let reached = |end: &End| end.steps().flat_map(|(from, to)| [from, to]).collect::<BTreeSet<_>>();
        let reached = [
            (Who::Client, reached(&whole.client)),
            (Who::Server, reached(&whole.server)),
        ];
        for (who, state) in reached
            .into_iter()
            .flat_map(|(who, states)| states.into_iter().map(move |it| (who, it)))
        {
            states.insert(state);
            for kind in &kinds {
                let mut two = Two::new(client, server);
                two.run_to(who, state);
                let (end, config) = two.end(who);
                let met = Met::Handshake(*kind);
                let got = end.content(config, ContentType::Handshake, &[*kind, 0, 0, 0]);
                let wanted = Err(Cause::OutOfSequence { state, met });
                let is_legal = match (state, HandshakeType::from_wire(*kind)) {
                    (StateId::Connected, Some(HandshakeType::KeyUpdate)) => is_13(end),
                    (StateId::Connected, Some(HandshakeType::NewSessionTicket)) => is_13(end) && who == Who::Client,
                    (StateId::Connected, Some(HandshakeType::HelloRequest)) => !is_13(end) && who == Who::Client,
                    (StateId::Connected, Some(HandshakeType::ClientHello)) => !is_13(end) && who == Who::Server,
                    _ => is_legal(state, met),
                };
                assert_eq!(
                    got != wanted,
                    is_legal,
                    "{name}: {who:?} in {state:?} met {kind}: {got:?}"
                );
                if !is_legal {
                    assert_eq!(end.session.state_id(), StateId::Failed);
                    assert!(end.out_filled > 0, "{name}: {state:?}: no alert");
                }
            }
            let mut two = Two::new(client, server);
            two.run_to(who, state);
            let (end, config) = two.end(who);
            let met = Met::Record(20);
            let takes = end.session.state.takes_compatibility() && !end.session.took_compatibility;
            let got = end.content(config, ContentType::ChangeCipherSpec, &[1]);
            let wanted = Err(Cause::OutOfSequence { state, met });
            assert_eq!(
                got != wanted,
                takes || is_legal(state, met),
                "{name}: {who:?} in {state:?}: {got:?}"
            );
        }
    });
    let missed: Vec<&StateId> = StateId::ALL
        .iter()
        .filter(|state| **state != StateId::Failed && !states.contains(state))
        .collect();
    assert!(missed.is_empty(), "{missed:?}");
}

fn is_13(end: &End) -> bool {
    end.session.version() == Some(Version::Tls13)
}

/// The two ends of the simplest handshake of TLS 1.3, connected.
/// Whoever has nobody to check certificates asks for none, in either version.
#[test]
fn without_a_verifier_no_certificate_is_asked_for() {
    let key = ToyKey(KeyKind::P256);
    let identity = |chain| Identity { chain, key: &key };
    let (identities, device) = ([identity(Fixture::P256.chain)], identity(Fixture::DEVICE.chain));
    let client = ClientConfig {
        identity: Some(&device),
        ..ClientConfig::new(verifier(), None)
    };
    for version in [Version::Tls13, Version::Tls12] {
        let versions = &[version];
        let server = ServerConfig {
            versions,
            client_auth: ClientAuth::Requested,
            ..ServerConfig::new(&identities)
        };
        let mut two = Two::new(&client, &server);
        two.connect();
        assert!(two.server.session.peer().is_none(), "{version:?}");
    }
}

fn connected(with: impl FnOnce(&mut Two<'_>)) {
    connected_by("TLSv1.3 full", with);
}

fn connected_by(way: &str, with: impl FnOnce(&mut Two<'_>)) {
    let mut with = Some(with);
    every_way(|name, client, server| {
        if name == way {
            let mut two = Two::new(client, server);
            two.connect();
            if let Some(with) = with.take() {
                with(&mut two);
            }
        }
    });
    assert!(with.is_none());
}

fn handshake(kind: HandshakeType, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; body.len() + 4];
    Writer::fill(&mut bytes, |w| w.message(kind, |w| w.bytes(body))).unwrap();
    bytes
}

#[test]
fn every_step_is_noted_to_the_end() {
    connected(|two| {
        let server: Vec<_> = two.server.steps().collect();
        use StateId as S;
        assert_eq!(
            server,
            [
                (S::AwaitClientHello, S::AwaitClientFinished),
                (S::AwaitClientFinished, S::Connected)
            ]
        );
        let config = Config::Server(two.server_config);
        let cause = two.server.receive(config, &[23, 3, 3, 0, 1, 0]).unwrap_err();
        assert_eq!(cause, Cause::BadRecordMac);
        assert_eq!(two.server.steps().last(), Some((S::Connected, S::Failed)));
        assert_eq!(two.server.session.cause(), Some(cause));
    });
}

#[test]
fn a_key_update_is_answered_at_once_when_it_asks() {
    connected(|two| {
        let update = |requested: u8| handshake(HandshakeType::KeyUpdate, &[requested]);
        for who in [Who::Client, Who::Server] {
            let (end, config) = two.end(who);
            end.content(config, ContentType::Handshake, &update(0)).unwrap();
            assert_eq!(end.take_out(), []);
            end.content(config, ContentType::Handshake, &update(1)).unwrap();
            let out = end.take_out();
            let (record, rest) = first_record(&out);
            assert_eq!((record[0], rest.len()), (23, 0));
            assert_eq!(record[HEADER_BYTES..][..5], update(0));
        }
    });
}

#[test]
fn nothing_follows_our_close_notify_and_data_still_comes() {
    connected(|two| {
        let config = Config::Server(two.server_config);
        let server = &mut two.server;
        server
            .session
            .close(&mut Out::new(&mut server.out, &mut server.out_filled));
        server
            .session
            .close(&mut Out::new(&mut server.out, &mut server.out_filled));
        let out = server.take_out();
        let (record, rest) = first_record(&out);
        assert_eq!((&record[HEADER_BYTES..][..2], rest), (&[1, 0][..], &[][..]));
        server
            .content(
                config,
                ContentType::Handshake,
                &handshake(HandshakeType::KeyUpdate, &[1]),
            )
            .unwrap();
        assert_eq!(server.take_out(), [], "a KeyUpdate is read, not answered");
        assert_eq!(server.session.seal(&mut [0; 64], 1), Err(Cause::Internal));
        assert_eq!(server.lend(config, |session, cx| session.update_keys(cx)), Ok(()));
        server
            .session
            .fail(Cause::Internal, &mut Out::new(&mut server.out, &mut server.out_filled));
        assert_eq!(server.take_out(), [], "nor does an alert follow");
    });
}

#[test]
fn what_comes_after_their_close_notify_is_not_read() {
    connected(|two| {
        let config = Config::Client(two.client_config);
        two.server
            .session
            .close(&mut Out::new(&mut two.server.out, &mut two.server.out_filled));
        let record = two.server.take_out();
        assert_eq!(two.client.receive(config, &record), Ok(Came::CloseNotify));
        assert_eq!(two.client.receive(config, b"anything at all"), Ok(Came::CloseNotify));
        assert_eq!(two.client.session.state_id(), StateId::Connected);
    });
}

#[test]
fn updates_and_warnings_are_bounded_until_data_comes() {
    connected(|two| {
        let config = Config::Server(two.server_config);
        let update = handshake(HandshakeType::KeyUpdate, &[0]);
        for round in 0..2 {
            for _ in 0..32 {
                two.server.content(config, ContentType::Handshake, &update).unwrap();
            }
            for _ in 0..4 {
                two.server.content(config, ContentType::Alert, &[1, 90]).unwrap();
            }
            if round == 0 {
                let slot = &mut [0; 64];
                slot[5] = b'!';
                let bytes = two.client.session.seal(slot, 1).unwrap();
                assert_eq!(
                    two.server.receive(config, &slot[..bytes]),
                    Ok(Came::Data(b"!".to_vec()))
                );
            }
        }
        let got = two.server.content(config, ContentType::Alert, &[1, 90]);
        assert_eq!(got, Err(Cause::TooManyUpdates));
    });
    connected(|two| {
        let config = Config::Server(two.server_config);
        let update = handshake(HandshakeType::KeyUpdate, &[0]);
        for _ in 0..32 {
            two.server.content(config, ContentType::Handshake, &update).unwrap();
        }
        let got = two.server.content(config, ContentType::Handshake, &update);
        assert_eq!(got, Err(Cause::TooManyUpdates));
    });
}

#[test]
fn keys_change_at_the_end_of_a_record_only() {
    connected(|two| {
        let config = Config::Server(two.server_config);
        let mut twice = handshake(HandshakeType::KeyUpdate, &[0]);
        twice.extend_from_within(..);
        let got = two.server.content(config, ContentType::Handshake, &twice);
        let met = Met::Handshake(HandshakeType::KeyUpdate.wire());
        assert_eq!(
            got,
            Err(Cause::OutOfSequence {
                state: StateId::Connected,
                met
            })
        );
    });
}

#[test]
fn nothing_shares_a_record_with_a_server_hello_of_tls_13() {
    every_way(|name, client, server| {
        let (mut ours, mut theirs) = (End::client(client), End::server());
        let hello = ours.take_out();
        theirs.receive(Config::Server(server), &hello).unwrap();
        let answer = theirs.take_out();
        let mut content = first_record(&answer).0[HEADER_BYTES..].to_vec();
        content.extend([8, 0, 0, 2, 0, 0]);
        let got = ours.content(Config::Client(client), ContentType::Handshake, &content);
        // A HelloRetryRequest changes no keys, and neither does TLS 1.2's hello: there it is what follows that has no place.
        let state = ours.notes.trail.steps().last().unwrap().to;
        assert!(
            matches!(
                got,
                Err(Cause::OutOfSequence {
                    met: Met::Handshake(8 | 11),
                    ..
                })
            ),
            "{name}: {got:?}"
        );
        assert_eq!(
            state == StateId::AwaitEncryptedExtensions,
            name.starts_with("TLSv1.3") && !name.contains("again")
        );
    });
}

#[test]
fn a_message_over_records_is_put_together_and_not_interleaved() {
    let update = handshake(HandshakeType::KeyUpdate, &[0]);
    connected(|two| {
        let config = Config::Server(two.server_config);
        for byte in &update {
            assert_eq!(two.server.session.read.sequence(), 0);
            two.server.content(config, ContentType::Handshake, &[*byte]).unwrap();
        }
        assert_eq!(two.server.filled, 0);
    });
    connected(|two| {
        let config = Config::Server(two.server_config);
        two.server
            .content(config, ContentType::Handshake, &update[..3])
            .unwrap();
        let slot = &mut [0; 64];
        let bytes = two.client.session.seal(slot, 1).unwrap();
        let met = Met::Record(23);
        assert_eq!(
            two.server.receive(config, &slot[..bytes]),
            Err(Cause::OutOfSequence {
                state: StateId::Connected,
                met
            })
        );
    });
}

#[test]
fn a_message_may_be_as_long_as_what_is_lent() {
    connected(|two| {
        let config = Config::Server(two.server_config);
        two.server.message.truncate(8);
        for byte in handshake(HandshakeType::KeyUpdate, &[0]) {
            two.server.content(config, ContentType::Handshake, &[byte]).unwrap();
        }
        two.server.content(config, ContentType::Handshake, &[24, 0, 0]).unwrap();
        let got = two.server.content(config, ContentType::Handshake, &[5]);
        assert_eq!(got, Err(Cause::Decode(24)), "it has a length of its own");
    });
    connected(|two| {
        let config = Config::Server(two.server_config);
        two.server.message.truncate(8);
        let got = two.server.content(config, ContentType::Handshake, &[11, 0, 0, 5]);
        assert_eq!(got, Err(Cause::HandshakeTooLong), "told by its header");
    });
}

#[test]
fn alerts_are_two_bytes_and_mean_what_the_version_says() {
    let told = |content: &[u8]| {
        let mut told = None;
        connected(|two| {
            let config = Config::Client(two.client_config);
            told = Some(two.client.content(config, ContentType::Alert, content));
            assert_eq!(
                two.client.out_filled > 0,
                told == Some(Err(Cause::BadAlert)),
                "an alert is no answer to an alert"
            );
        });
        told.unwrap()
    };
    assert_eq!(told(&[2, 40]), Err(Cause::PeerAlert(Alert::HandshakeFailure)));
    assert_eq!(
        told(&[1, 40]),
        Err(Cause::PeerAlert(Alert::HandshakeFailure)),
        "TLS 1.3 looks at no level"
    );
    assert_eq!(told(&[2, 254]), Err(Cause::PeerAlertUnknown(254)));
    assert_eq!(told(&[2, 0]), Ok(()), "close_notify by any level");
    assert_eq!(told(&[2, 90]), Ok(()), "user_canceled says little");
    for content in [&[2][..], &[2, 40, 2], &[1, 0, 1, 0]] {
        assert_eq!(told(content), Err(Cause::BadAlert));
    }
}

#[test]
fn a_second_handshake_of_tls_12_is_refused_once_and_then_ends_it() {
    for (who, asks) in [
        (Who::Server, HandshakeType::ClientHello),
        (Who::Client, HandshakeType::HelloRequest),
    ] {
        connected_by("TLSv1.2 full", |two| {
            let (end, config) = two.end(who);
            end.content(config, ContentType::Handshake, &handshake(asks, &[]))
                .unwrap();
            let out = end.take_out();
            let (record, rest) = first_record(&out);
            assert_eq!((record[0], rest), (21, &[][..]));
            assert_eq!(record[HEADER_BYTES + 8..][..2], [1, 100], "a warning: no_renegotiation");
            assert_eq!(end.session.state_id(), StateId::Connected);
            let got = end.content(config, ContentType::Handshake, &handshake(asks, &[]));
            assert_eq!(got, Err(Cause::Renegotiation));
        });
    }
}

#[test]
fn warnings_of_tls_12_pass_and_what_is_fatal_ends_it() {
    let told = |content: &[u8]| {
        let mut told = None;
        connected_by("TLSv1.2 full", |two| {
            let config = Config::Server(two.server_config);
            told = Some(two.server.content(config, ContentType::Alert, content));
        });
        told.unwrap()
    };
    assert_eq!(told(&[1, 112]), Ok(()));
    assert_eq!(told(&[1, 254]), Ok(()), "an alert of no name");
    assert_eq!(told(&[2, 112]), Err(Cause::PeerAlert(Alert::UnrecognizedName)));
    assert_eq!(told(&[2, 254]), Err(Cause::PeerAlertUnknown(254)));
}

#[test]
fn a_change_cipher_spec_before_the_hello_that_says_12_has_no_place() {
    every_way(|name, client, server| {
        let (mut ours, mut theirs) = (End::client(client), End::server());
        let hello = ours.take_out();
        theirs.receive(Config::Server(server), &hello).unwrap();
        let answer = theirs.take_out();
        let config = Config::Client(client);
        ours.content(config, ContentType::ChangeCipherSpec, &[1]).unwrap();
        let got = ours.receive(config, first_record(&answer).0);
        if name.starts_with("TLSv1.2") {
            assert!(
                matches!(
                    got,
                    Err(Cause::OutOfSequence {
                        met: Met::Record(20),
                        ..
                    })
                ),
                "{name}: {got:?}"
            );
        } else {
            assert_eq!(got, Ok(Came::Progress), "{name}");
        }
    });
}

#[test]
fn data_goes_where_it_is_wanted_if_there_is_room() {
    connected(|two| {
        let config = Config::Server(two.server_config);
        for (room, is_moved) in [(6, true), (64, true), (5, false), (0, false)] {
            let mut record = [0; 64];
            record[5..10].copy_from_slice(b"hello");
            let bytes = two.client.session.seal(&mut record, 5).unwrap();
            let mut into = vec![0; room];
            two.server.lend(config, |session, cx| {
                let received = session.receive_into(cx, &mut record[..bytes], &mut into).unwrap();
                assert_eq!(received.consumed, bytes);
                match received.event {
                    Event::DataInto(5) => assert!(is_moved),
                    Event::Data(data) => assert!(!is_moved && data == b"hello"),
                    other => panic!("{other:?}"),
                }
            });
            assert_eq!(into.starts_with(b"hello"), is_moved, "room of {room}");
        }
        // What is no data is taken all the same.
        let (client, client_config) = two.end(Who::Client);
        client
            .lend(client_config, |session, cx| session.update_keys(cx))
            .unwrap();
        let mut record = client.take_out();
        two.server.lend(config, |session, cx| {
            let received = session.receive_into(cx, &mut record, &mut [0; 64]).unwrap();
            assert_eq!(received.event, Event::Progress);
        });
    });
}

#[test]
fn a_deadline_says_why_and_that_it_is_over() {
    let mut server = End::server();
    let cause = Cause::Timeout(StateId::AwaitClientHello);
    server
        .session
        .fail(cause, &mut Out::new(&mut server.out, &mut server.out_filled));
    assert_eq!(server.take_out(), [21, 3, 3, 0, 2, 1, 90, 21, 3, 3, 0, 2, 1, 0]);
    server
        .session
        .fail(Cause::Internal, &mut Out::new(&mut server.out, &mut server.out_filled));
    assert_eq!(server.session.cause(), Some(cause), "the first cause stays");
    assert_eq!(server.take_out(), []);
}

#[test]
fn a_peer_without_tls_is_told_nothing() {
    let key = ToyKey(KeyKind::P256);
    let identities = [Identity {
        chain: Fixture::P256.chain,
        key: &key,
    }];
    let config = ServerConfig::new(&identities);
    let mut server = End::server();
    let got = server.receive(Config::Server(&config), b"GET / HTTP/1.0\r\n\r\n");
    assert_eq!(got, Err(Cause::PlaintextPeer(crate::cause::Spoken::Http)));
    assert_eq!(server.take_out(), []);
    let mut server = End::server();
    assert_eq!(server.receive(Config::Server(&config), b"GE"), Ok(Came::Need(2)));
}

#[test]
#[cfg(feature = "fast")]
fn a_session_is_small() {
    assert!(mem::size_of::<Session<crate::crypto::fast::Fast>>() <= 2560);
}
