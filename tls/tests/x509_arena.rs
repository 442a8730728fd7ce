//! A full arena refuses one verification and no other. A program of its own: the arena is started once, before anything else.
#![cfg(all(feature = "arena", feature = "testing"))]

use skerry_core::time::Timestamp;
use skerry_tls::cause::Cause;
use skerry_tls::certificate::{Role, Verifier};
use skerry_tls::crypto::mbedtls::Mbedtls;
use skerry_tls::crypto::{CryptoError, Provider, arena};
use skerry_tls::testing::Seeded;
use skerry_tls::x509::develop::{Issued, Validity};
use skerry_tls::x509::{ByMbedtls, ByProvider, Policy, Signatures, TrustStore};

const NOW: Timestamp = Timestamp(1_798_761_600_000);

fn refused_once<S: Signatures>(signatures: S, mbedtls: &Mbedtls) {
    let mut random = Seeded::new(1);
    let validity = Validity {
        not_before: NOW,
        not_after: Timestamp(NOW.0 + 1000),
    };
    let ca = Issued::authority("CA", validity, &mut random).unwrap();
    let client = ca.client("device", validity, &mut random).unwrap();
    let (store, _) = TrustStore::new(&[&ca.certificate], Policy::default(), signatures);
    let verify = || store.verify(&[&client.certificate], Role::Client, None, NOW).map(drop);
    assert_eq!(verify(), Ok(()));
    let used = arena::used();

    // Keys until there is no room for another, and then fewer, one by one: what a verification needs comes free at some time, and before
    // that each is refused for want of memory and for nothing else.
    let mut keys = Vec::new();
    let full = loop {
        match mbedtls.signing_key(&client.key) {
            Ok(key) => keys.push(key),
            Err(error) => break error,
        }
    };
    assert_eq!(full, CryptoError::ArenaFull);
    let mut refused = 0;
    while let Err(error) = verify() {
        assert_eq!(error.cause, Cause::ArenaFull);
        refused += 1;
        assert!(keys.pop().is_some());
    }
    assert!(refused > 0);
    drop(keys);
    assert_eq!(verify(), Ok(()));
    assert_eq!(arena::used(), used);
}

#[test]
fn a_full_arena_refuses_this_verification_only() {
    arena::start(128 << 10).unwrap();
    let mbedtls = Mbedtls::new().unwrap();
    refused_once(ByMbedtls, &mbedtls);
    refused_once(ByProvider(&mbedtls), &mbedtls);
}
