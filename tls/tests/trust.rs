//! Handshakes with real chains and the verifier that the broker uses: who is let in, what the other side is told, what is kept for the log.
#![cfg(all(feature = "fast", feature = "mbedtls"))]

use skerry_core::time::Timestamp;
use skerry_tls::alert::Alert;
use skerry_tls::cause::Cause;
use skerry_tls::certificate::ServerName;
use skerry_tls::config::{ClientAuth, ClientConfig, ServerConfig};
use skerry_tls::crypto::fast::Fast;
use skerry_tls::suite::{Group, Version};
use skerry_tls::testing::{Ended, Fixture, Loaded, NOW, Whole, converse};
use skerry_tls::x509::{ByMbedtls, Policy, TrustStore};

fn store(anchor: Fixture) -> TrustStore<ByMbedtls> {
    let (store, warnings) = TrustStore::new(&[anchor.certificate], Policy::default(), ByMbedtls);
    assert!(warnings.is_empty());
    store
}

/// What a case changes of a good connection, with both certificates.
struct Case {
    name: ServerName<'static>,
    now: Timestamp,
    server: Fixture,
    client: Option<Fixture>,
    client_trusts: Fixture,
    server_trusts: Fixture,
}

const GOOD: Case = Case {
    name: ServerName::Dns("broker.example"),
    now: NOW,
    server: Fixture::P256,
    client: Some(Fixture::DEVICE),
    client_trusts: Fixture::CA,
    server_trusts: Fixture::CA,
};

fn run(case: &Case, version: Version) -> Ended<Fast> {
    let (ours, theirs) = (store(case.client_trusts), store(case.server_trusts));
    let server_key = Loaded::<Fast>::new(&Fast, case.server);
    let client_key = case.client.map(|client| Loaded::<Fast>::new(&Fast, client));
    let identities = [server_key.identity()];
    let identity = client_key.as_ref().map(Loaded::identity);
    let client = ClientConfig {
        versions: &[version],
        groups: &[Group::Secp256r1],
        shares: &[Group::Secp256r1],
        identity: identity.as_ref(),
        ..ClientConfig::new(&ours, Some(case.name))
    };
    let server = ServerConfig {
        client_auth: ClientAuth::Required,
        verifier: Some(&theirs),
        ..ServerConfig::new(&identities)
    };
    converse(&Fast, &client, &server, case.now, &mut Whole, 3)
}

const VERSIONS: [Version; 2] = [Version::Tls13, Version::Tls12];

#[test]
fn good_chains_say_who_their_owners_are() {
    for version in VERSIONS {
        for (server, client, subject) in [
            (Fixture::P256, Fixture::DEVICE, "CN=device-17,OU=Devices,O=Skerry"),
            (Fixture::RSA, Fixture::DEVICE_RSA, "CN=device-18,OU=Devices,O=Skerry"),
        ] {
            let names = ["127.0.0.1", "::1"].map(|ip| ServerName::Ip(ip.parse().unwrap()));
            for name in names.into_iter().chain([ServerName::Dns("localhost"), GOOD.name]) {
                let client = Some(client);
                let ended = run(
                    &Case {
                        name,
                        server,
                        client,
                        ..GOOD
                    },
                    version,
                );
                assert!(ended.client.is_closed && ended.server.is_closed, "{}", ended.summary());
                assert_eq!(
                    ended.client.session.peer().unwrap().subject,
                    "CN=broker.example,O=Skerry"
                );
                assert_eq!(ended.server.session.peer().unwrap().subject, subject);
            }
        }
    }
}

/// The client refuses the server: the cause, the alert that the server gets, the certificate for the log.
#[test]
fn servers_are_refused() {
    let expired = Timestamp(2_840_140_800_000);
    let too_early = Timestamp(1_577_836_800_000);
    let other_name = ServerName::Dns("other.example");
    let other_address = ServerName::Ip("192.0.2.7".parse().unwrap());
    let cases = [
        (
            Case {
                name: other_name,
                ..GOOD
            },
            Cause::CertificateName,
            Alert::BadCertificate,
        ),
        (
            Case {
                name: other_address,
                ..GOOD
            },
            Cause::CertificateName,
            Alert::BadCertificate,
        ),
        (
            Case { now: expired, ..GOOD },
            Cause::CertificateExpired,
            Alert::CertificateExpired,
        ),
        (
            Case { now: too_early, ..GOOD },
            Cause::CertificateNotYetValid,
            Alert::CertificateExpired,
        ),
        (
            Case {
                client_trusts: Fixture::OTHER,
                ..GOOD
            },
            Cause::UnknownCa,
            Alert::UnknownCa,
        ),
        (
            Case {
                server: Fixture::DEVICE,
                ..GOOD
            },
            Cause::CertificateUsage,
            Alert::UnsupportedCertificate,
        ),
    ];
    for version in VERSIONS {
        for (case, cause, alert) in &cases {
            let ended = run(case, version);
            assert_eq!(ended.client.cause, Some(*cause), "{version:?} {}", ended.summary());
            assert_eq!(
                ended.server.cause,
                Some(Cause::PeerAlert(*alert)),
                "{version:?} {}",
                ended.summary()
            );
            assert!(!ended.client.is_connected && !ended.server.is_connected);
            assert_eq!(ended.client.notes.refused, case.server.certificate);
        }
    }
}

/// The server refuses the client, which TLS 1.3 lets it tell only after the client believes itself connected.
#[test]
fn clients_are_refused() {
    let cases = [
        (
            Case {
                server_trusts: Fixture::OTHER,
                ..GOOD
            },
            Cause::UnknownCa,
            Alert::UnknownCa,
        ),
        (
            Case {
                client: Some(Fixture::RSA),
                ..GOOD
            },
            Cause::CertificateUsage,
            Alert::UnsupportedCertificate,
        ),
    ];
    for version in VERSIONS {
        for (case, cause, alert) in &cases {
            let ended = run(case, version);
            assert_eq!(ended.server.cause, Some(*cause), "{version:?} {}", ended.summary());
            assert_eq!(
                ended.client.cause,
                Some(Cause::PeerAlert(*alert)),
                "{version:?} {}",
                ended.summary()
            );
            assert_eq!(ended.client.is_connected, version == Version::Tls13);
            assert!(ended.server.data.is_empty(), "nothing of a refused client's is read");
            assert_eq!(ended.server.notes.refused, case.client.unwrap().certificate);
        }
        let ended = run(&Case { client: None, ..GOOD }, version);
        assert_eq!(ended.server.cause, Some(Cause::ClientCertificateMissing));
        let alert = match version {
            Version::Tls13 => Alert::CertificateRequired,
            Version::Tls12 => Alert::HandshakeFailure,
        };
        assert_eq!(ended.client.cause, Some(Cause::PeerAlert(alert)));
    }
}
