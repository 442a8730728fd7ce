//! The TLS 1.3 server against our own client, over byte pipes: what is agreed on, when a second hello is asked for, what is resumed, whom
//! certificates let in, and what the wire looks like.
#![cfg(feature = "fast")]

use skerry_core::time::Timestamp;
use skerry_tls::alert::Alert;
use skerry_tls::cause::Cause;
use skerry_tls::certificate::ServerName;
use skerry_tls::config::{ClientConfig, Config, ServerConfig};
use skerry_tls::crypto::fast::Fast;
use skerry_tls::handshake::TicketKeys;
use skerry_tls::suite::{CipherSuite, Group, SignatureScheme, Version};
use skerry_tls::testing::{Accepting, Fixture, Loaded, NOW, Pair, Seeded, Setting, Whole};

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
