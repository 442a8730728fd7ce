//! Any bytes, and damaged stores of every kind, as keystore and as truststore: they are read or a mistake is told, in bounded time.
//!
//! The first byte chooses a store of the broker's fixtures, which three bytes each then change, or says that the rest is the store itself.
//! The second chooses the passwords.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skerry_broker::keystore::{anchors, identities};

macro_rules! fixtures {
    ($($name:literal)*) => {
        &[$(include_bytes!(concat!("../../../broker/src/keystore/fixtures/", $name)).as_slice(),)*]
    };
}

const STORES: &[&[u8]] = fixtures! {
    "java.jks" "java-trust.jks" "both.jks" "java.jceks" "java-trust.jceks" "openssl-plain.p12" "openssl.p12" "openssl-legacy.p12"
    "openssl-rc2-128.p12" "openssl-certificates.p12" "keytool-open-trust.p12" "pbmac1-256.p12" "ec-params.key" "ec-sec1.key"
    "ec-pbes2.key" "ec-pbes1-md5.key" "rsa-pkcs1.key" "ec.pem" "root.pem"
};

const PASSWORDS: [Option<&str>; 6] = [
    None,
    Some(""),
    Some("störe-pässwörd→"),
    Some("kéy-pässwörd"),
    Some("store pass"),
    Some("key pass"),
];

fuzz_target!(|data: &[u8]| {
    let Some(([choice, passwords], rest)) = data.split_first_chunk() else {
        return;
    };
    let store = match STORES.get(usize::from(*choice)) {
        Some(store) => damaged(store, rest),
        None => rest.to_vec(),
    };
    let password = PASSWORDS[usize::from(*passwords) % PASSWORDS.len()];
    let key_password = PASSWORDS[usize::from(*passwords) / PASSWORDS.len() % PASSWORDS.len()];
    match identities(&store, password, key_password) {
        Ok(found) => {
            assert!(!found.value.is_empty());
            for identity in found.value {
                assert!(!identity.chain.is_empty() && !identity.key.is_empty());
            }
        }
        Err(mistake) => assert!(!mistake.to_string().is_empty()),
    }
    match anchors(&store, password) {
        Ok(found) => assert!(!found.value.0.is_empty()),
        Err(mistake) => assert!(!mistake.to_string().is_empty()),
    }
});

/// Each edit: where, and what is there instead; one beyond the end cuts the store.
fn damaged(store: &[u8], edits: &[u8]) -> Vec<u8> {
    let mut store = store.to_vec();
    for edit in edits.chunks_exact(3) {
        let at = usize::from(u16::from_be_bytes([edit[0], edit[1]]));
        match store.get_mut(at) {
            Some(byte) => *byte = edit[2],
            None => store.truncate(at % (store.len() + 1)),
        }
    }
    store
}
