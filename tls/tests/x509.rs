//! Certificates with real signatures: every algorithm that is taken and those that are not, by every library; what is made for development;
//! what is told of a certificate of our own.
#![cfg(all(feature = "mbedtls", feature = "testing"))]

use skerry_core::time::Timestamp;
use skerry_tls::cause::Cause;
use skerry_tls::certificate::{Role, ServerName, Verifier};
use skerry_tls::crypto::Provider;
use skerry_tls::crypto::mbedtls::Mbedtls;
use skerry_tls::testing::Seeded;
use skerry_tls::x509::check::{self, Finding};
use skerry_tls::x509::develop::{Issued, Validity};
use skerry_tls::x509::{ByMbedtls, ByProvider, Cached, Policy, Profile, Signatures, TrustStore, pem};

const DAY: i64 = 24 * 3600 * 1000;
/// 2027-01-01.
const NOW: Timestamp = Timestamp(1_798_761_600_000);
const NAME: Option<ServerName<'static>> = Some(ServerName::Dns("leaf.example"));

/// *Goal*: every algorithm is checked by every library, and a broken signature refused. *Method*: CAs and leaves that OpenSSL made.
fn algorithms<S: Signatures + Copy>(signatures: S) {
    let blocks = pem::read(include_str!("x509/algorithms.pem")).unwrap();
    let mut taken = 0;
    for pair in blocks.chunks(2) {
        let [ca, leaf] = pair else { panic!("half a pair") };
        let policy = Policy {
            profile: Profile::Private,
            ..Policy::default()
        };
        let (store, warnings) = TrustStore::new(&[&ca.der], policy, signatures);
        let answer = store.verify(&[&leaf.der], Role::Server, NAME, NOW);
        let details = skerry_tls::x509::Details::of(&leaf.der).unwrap();
        if details.subject.contains("refused") {
            let cause = answer.unwrap_err().cause;
            let wanted = if warnings.is_empty() {
                Cause::CertificateUnsupported
            } else {
                Cause::UnknownCa
            };
            assert_eq!(cause, wanted, "{details}");
            continue;
        }
        assert_eq!(
            answer.map(|verified| verified.subject).as_deref(),
            Ok(&*details.subject),
            "{details}"
        );
        taken += 1;
        for place in [leaf.der.len() - 1, leaf.der.len() / 2] {
            let mut broken = leaf.der.clone();
            broken[place] ^= 1;
            let cause = store.verify(&[&broken], Role::Server, None, NOW).unwrap_err().cause;
            if place == leaf.der.len() - 1 {
                assert_eq!(cause, Cause::CertificateSignature, "{details}");
            }
        }
    }
    assert_eq!(taken, 19);
}

#[test]
fn algorithms_by_mbedtls() {
    algorithms(ByMbedtls);
}

#[test]
fn algorithms_by_the_portable_provider() {
    algorithms(ByProvider(&Mbedtls::new().unwrap()));
}

#[cfg(feature = "fast")]
#[test]
fn algorithms_by_the_fast_provider() {
    algorithms(ByProvider(&skerry_tls::crypto::fast::Fast));
}

fn validity() -> Validity {
    Validity {
        not_before: NOW,
        not_after: Timestamp(NOW.0 + 365 * DAY),
    }
}

#[test]
fn certificates_for_development_satisfy_the_strict_profile() {
    let mut random = Seeded::new(1);
    let ca = Issued::authority("Development CA", validity(), &mut random).unwrap();
    let names = [
        ServerName::Dns("localhost"),
        ServerName::Dns("*.broker.example"),
        ServerName::Ip([127, 0, 0, 1].into()),
        ServerName::Ip(std::net::Ipv6Addr::LOCALHOST.into()),
    ];
    let server = ca.server(&names, validity(), &mut random).unwrap();
    let client = ca.client("device-1", validity(), &mut random).unwrap();
    assert!(ca.server(&[], validity(), &mut random).is_err());
    assert!(
        server
            .server(&names, validity(), &mut random)
            .is_ok_and(|made| made.certificate != server.certificate)
    );

    let policy = Policy {
        profile: Profile::Strict,
        ..Policy::default()
    };
    let (store, warnings) = TrustStore::new(&[&ca.certificate], policy, ByMbedtls);
    assert!(warnings.is_empty());
    let store = Cached::new(store, 8);
    for name in ["localhost", "a.broker.example"] {
        let verified = store
            .verify(&[&server.certificate], Role::Server, Some(ServerName::Dns(name)), NOW)
            .unwrap();
        assert_eq!(verified.subject, "CN=localhost");
    }
    for name in &names[2..] {
        store
            .verify(&[&server.certificate, &ca.certificate], Role::Server, Some(*name), NOW)
            .unwrap();
    }
    let verified = store.verify(&[&client.certificate], Role::Client, None, NOW).unwrap();
    assert_eq!(
        (&*verified.subject, verified.not_after),
        ("CN=device-1", validity().not_after)
    );
    for (certificate, role) in [(&server, Role::Client), (&client, Role::Server)] {
        let refused = store.verify(&[&certificate.certificate], role, None, NOW).unwrap_err();
        assert_eq!(refused.cause, Cause::CertificateUsage);
    }
    // A server's certificate is no CA's, whatever it signed.
    let forged = server.client("device-1", validity(), &mut random).unwrap();
    let refused = store.verify(&[&forged.certificate, &server.certificate], Role::Client, None, NOW);
    assert!(refused.is_err());
    assert_eq!(store.hits_and_misses().0, 0);
    store.verify(&[&client.certificate], Role::Client, None, NOW).unwrap();
    assert_eq!(store.hits_and_misses().0, 1);

    // What is written is read, and the keys are the certificates'.
    let mbedtls = Mbedtls::new().unwrap();
    for issued in [&ca, &server, &client] {
        let key = &pem::read(&issued.key_pem()).unwrap()[0].der;
        let key = mbedtls.signing_key(key).unwrap();
        let certificate = &pem::read(&issued.certificate_pem()).unwrap()[0].der;
        assert!(check::key_matches(&mbedtls, certificate, &key, &mut random).unwrap());
        let matches_client = check::key_matches(&mbedtls, &client.certificate, &key, &mut random).unwrap();
        assert_eq!(matches_client, std::ptr::eq(issued, &client));
    }
}

#[test]
fn what_is_told_of_a_certificate_of_our_own() {
    let mut random = Seeded::new(2);
    let ca = Issued::authority("CA", validity(), &mut random).unwrap();
    let other = Issued::authority("Other", validity(), &mut random).unwrap();
    let names = [ServerName::Dns("broker.example")];
    let server = ca.server(&names, validity(), &mut random).unwrap();
    let soon = Validity {
        not_before: NOW,
        not_after: Timestamp(NOW.0 + 3 * DAY),
    };
    let short = ca.server(&names, soon, &mut random).unwrap();
    let client = ca.client("device", validity(), &mut random).unwrap();
    let tell = |chain: &[&Issued], role, anchors: Option<&[&[u8]]>, now| {
        let chain: Vec<&[u8]> = chain.iter().map(|issued| &*issued.certificate).collect();
        let advertised = match role {
            Role::Server => &names[..],
            Role::Client => &[],
        };
        check::chain(&chain, role, advertised, anchors, now)
    };
    let anchors: &[&[u8]] = &[&ca.certificate];
    assert_eq!(tell(&[&server], Role::Server, Some(anchors), NOW), []);
    assert_eq!(tell(&[&server, &ca], Role::Server, Some(anchors), NOW), []);
    assert_eq!(tell(&[&server], Role::Server, None, NOW), []);
    assert_eq!(tell(&[&client], Role::Client, Some(anchors), NOW), []);

    let subject = || "CN=broker.example".to_owned();
    let end = soon.not_after;
    for (now, wanted) in [
        (NOW.0 - 1, Finding::NotYetValid(subject(), NOW)),
        (NOW.0, Finding::ExpiresWithin(7, subject(), end)),
        (end.0 - DAY, Finding::ExpiresWithin(7, subject(), end)),
        (end.0 - DAY + 1, Finding::ExpiresWithin(1, subject(), end)),
        (end.0, Finding::ExpiresWithin(1, subject(), end)),
        (end.0 + 1, Finding::Expired(subject(), end)),
    ] {
        assert_eq!(tell(&[&short], Role::Server, None, Timestamp(now)), [wanted]);
    }
    let month = Timestamp(validity().not_after.0 - 30 * DAY);
    assert_eq!(tell(&[&server], Role::Server, None, month), []);
    let month = Timestamp(month.0 + 1);
    let wanted = Finding::ExpiresWithin(30, subject(), validity().not_after);
    assert_eq!(tell(&[&server], Role::Server, None, month), [wanted]);

    assert_eq!(tell(&[], Role::Server, None, NOW), [Finding::Empty]);
    assert_eq!(
        tell(&[&other, &server], Role::Server, None, NOW)[..2],
        [Finding::Unrelated(subject()), Finding::SelfSigned,]
    );
    assert_eq!(
        tell(&[&server, &other, &ca], Role::Server, None, NOW),
        [Finding::Disordered(subject()), Finding::Unrelated("CN=CA".to_owned()),]
    );
    assert_eq!(
        tell(&[&server, &other], Role::Server, None, NOW),
        [Finding::Unrelated("CN=Other".to_owned())]
    );
    let incomplete = Finding::Incomplete("CN=CA".to_owned());
    let others: &[&[u8]] = &[&other.certificate];
    assert_eq!(tell(&[&server], Role::Server, Some(others), NOW), [incomplete]);
    assert_eq!(
        tell(&[&ca], Role::Client, None, NOW),
        [Finding::SelfSigned, Finding::NoDigitalSignature]
    );
    assert_eq!(
        tell(&[&client], Role::Server, None, NOW),
        [
            Finding::NoPurpose(Role::Server),
            Finding::NoName("broker.example".to_owned()),
        ]
    );
    assert_eq!(
        tell(&[&server], Role::Client, None, NOW),
        [Finding::NoPurpose(Role::Client)]
    );
    let long = [&server, &ca, &ca, &ca, &ca, &ca, &ca, &ca, &ca, &ca, &ca];
    assert_eq!(tell(&long, Role::Server, None, NOW), [Finding::TooMany(11)]);
    assert_eq!(
        check::chain(&[&[0x30, 0]], Role::Server, &[], None, NOW),
        [Finding::Unreadable(0)]
    );

    let refused = pem::read(include_str!("x509/algorithms.pem")).unwrap();
    let weak = refused.chunks(2).find(|pair| {
        skerry_tls::x509::Details::of(&pair[1].der).is_some_and(|details| details.subject == "CN=refused rsa sha1")
    });
    let weak = &weak.unwrap()[1].der;
    let findings = check::chain(&[weak], Role::Server, &[], None, NOW);
    assert_eq!(findings, [Finding::Unsupported("CN=refused rsa sha1".to_owned())]);
    assert!(findings[0].is_fatal());
    for finding in findings
        .iter()
        .chain(&tell(&[&other, &server], Role::Server, Some(others), NOW))
    {
        let sentence = finding.to_string();
        assert!(sentence.ends_with('.') && sentence.len() > 30, "{sentence}");
    }
}
