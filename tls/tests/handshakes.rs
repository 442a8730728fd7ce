//! Every kind of handshake between our client and our server, over every provider.

use skerry_tls::config::ClientAuth;
use skerry_tls::crypto::Provider;
use skerry_tls::state::StateId;
use skerry_tls::suite::{Authentication, CipherSuite, Group, Version};
use skerry_tls::testing::{Keys, Kind, PING, PONG, Stage, Who, Whole};

/// One handshake, with all that must hold of it afterwards.
fn check<P: Provider>(keys: &Keys<'_, P>, kind: Kind) {
    let stage = Stage::new(keys, kind);
    let ended = stage.handshake(&mut Whole, 2);
    let what = format!("{} {kind:?}\n{}", keys.provider.name(), ended.summary());
    for side in [&ended.client, &ended.server] {
        assert_eq!(side.cause, None, "{what}");
        assert!(side.is_connected && side.is_closed, "{what}");
        assert_eq!(side.session.state_id(), StateId::Connected, "{what}");
        let agreed = side.session.agreed();
        assert_eq!(agreed.version, Some(kind.version), "{what}");
        assert_eq!(agreed.suite.map(CipherSuite::version), Some(kind.version), "{what}");
        if let Some(suite) = kind.suite {
            assert_eq!(agreed.suite, Some(suite), "{what}");
        }
        let exchanges = kind.version == Version::Tls13 || !kind.resumed;
        assert_eq!(agreed.group, exchanges.then_some(kind.group), "{what}");
        assert_eq!(agreed.resumed, kind.resumed, "{what}");
        assert_eq!(agreed.retried, kind.retried, "{what}");
        assert!(agreed.extended_master_secret, "{what}");
    }
    assert_eq!((&ended.server.data[..], &ended.client.data[..]), (PING, PONG), "{what}");
    let (client, server) = (ended.client.session.agreed(), ended.server.session.agreed());
    assert_eq!(client.own_scheme, server.peer_scheme, "{what}");
    assert_eq!(server.own_scheme, client.peer_scheme, "{what}");
    assert_eq!(server.own_scheme.is_some(), !kind.resumed, "{what}");
    assert_eq!(
        client.own_scheme.is_some(),
        kind.client.is_some() && !kind.resumed,
        "{what}"
    );
    assert_eq!(client.peer.as_ref().unwrap().subject, "CN=server", "{what}");
    let subject = server.peer.as_ref().map(|peer| peer.subject.as_str());
    assert_eq!(subject, kind.client.map(|_| "CN=client"), "{what}");
    assert_eq!(server.server_name.as_deref(), Some("broker.example"), "{what}");
    assert_eq!(
        ended.client.kept.count,
        usize::from(kind.version == Version::Tls13 || !kind.resumed),
        "{what}"
    );
}

/// What is tried with what: full, again, and resumed.
fn every_kind<P: Provider>(provider: &P) {
    let keys = Keys::new(provider);
    let mut count = 0;
    for suite in CipherSuite::ALL {
        for group in Group::ALL {
            let servers: &[Who] = match suite.authentication() {
                Authentication::Any => &[Who::P256, Who::P384, Who::Rsa],
                Authentication::Ecdsa => &[Who::P256],
                Authentication::Rsa => &[Who::Rsa],
            };
            for server in servers {
                // In TLS 1.2 the leaf's curve is one of the client's groups.
                if suite.version() == Version::Tls12 && *server == Who::P256 && *group == Group::X25519 {
                    continue;
                }
                let kind = Kind {
                    version: suite.version(),
                    suite: Some(*suite),
                    group: *group,
                    server: *server,
                    ..Kind::TLS13
                };
                check(&keys, kind);
                check(&keys, kind.resumed());
                count += 2;
                if suite.version() == Version::Tls13 {
                    check(&keys, kind.retried());
                    check(&keys, kind.retried().resumed());
                    count += 2;
                }
            }
        }
    }
    for version in [Version::Tls13, Version::Tls12] {
        for auth in [ClientAuth::Requested, ClientAuth::Required] {
            for client in [None, Some(Who::P256), Some(Who::Rsa)] {
                if auth == ClientAuth::Required && client.is_none() {
                    continue;
                }
                let kind = Kind {
                    version,
                    auth,
                    client,
                    group: Group::Secp256r1,
                    ..Kind::TLS13
                };
                check(&keys, kind);
                check(&keys, kind.resumed());
                count += 2;
            }
        }
    }
    println!("{}: {count} handshakes", provider.name());
}

#[cfg(feature = "fast")]
#[test]
fn fast() {
    every_kind(&skerry_tls::crypto::fast::Fast);
}

#[cfg(feature = "mbedtls")]
#[test]
fn mbedtls() {
    every_kind(&skerry_tls::crypto::mbedtls::Mbedtls::new().expect("mbedtls"));
}

#[test]
fn toy() {
    every_kind(&skerry_tls::testing::Toy);
}
