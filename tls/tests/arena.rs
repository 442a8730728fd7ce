//! mbedtls in its fixed heap: what fits, what happens when nothing more does, and that nothing stays behind.
//!
//! The heap is one for the process, so this is one test, step by step.
#![cfg(all(feature = "arena", feature = "testing"))]

use skerry_core::time::Timestamp;
use skerry_tls::certificate::{Role, Verifier};
use skerry_tls::crypto::arena::{self, StartError};
use skerry_tls::crypto::mbedtls::{Mbedtls, MbedtlsAead};
use skerry_tls::crypto::{
    Aead, AeadAlgorithm, CryptoError, Exchange, HashAlgorithm, KeyKind, Provider, PublicKey, Random,
    SIGNATURE_BYTES_MAX, SigningKey,
};
use skerry_tls::suite::{Group, SignatureScheme};
use skerry_tls::testing::{Fixture, NOW};
use skerry_tls::x509::{ByMbedtls, Policy, TrustStore};

const P256: (&[u8], &[u8]) = (include_bytes!("keys/p256.pk8"), include_bytes!("keys/p256.spki"));
const RSA: (&[u8], &[u8]) = (include_bytes!("keys/rsa4096.pk8"), include_bytes!("keys/rsa4096.spki"));

/// Handshakes that are under way at once.
const HANDSHAKES: usize = 32;

struct Sevens;

impl Random for Sevens {
    fn fill(&mut self, out: &mut [u8]) -> Result<(), CryptoError> {
        out.fill(7);
        Ok(())
    }
}

#[test]
fn a_fixed_heap_serves_refuses_and_serves_again() {
    assert_eq!(arena::start(0), Err(StartError::Bytes));
    assert_eq!(arena::start(usize::MAX), Err(StartError::Bytes));
    assert_eq!((arena::capacity(), arena::used(), arena::peak()), (0, 0, 0));
    arena::start(arena::DEFAULT_BYTES).unwrap();
    assert_eq!(arena::start(arena::DEFAULT_BYTES), Err(StartError::Started));
    assert_eq!(arena::capacity(), arena::DEFAULT_BYTES);

    let provider = Mbedtls::new().unwrap();
    let kept = arena::used();
    assert!(kept > 0, "mbedtls does not allocate from the arena");
    records_allocate_nothing(&provider);
    what_is_said_of_keys_is_so(&provider);
    everything_fits(&provider);
    a_full_heap_refuses_one_operation(&provider);
    threads_share_it();
    drop(provider);
    assert_eq!(arena::used(), 0, "something stayed behind");
    println!(
        "curves keep {kept}, peak {}, refused {}",
        arena::peak(),
        arena::refused()
    );
}

fn records_allocate_nothing(provider: &Mbedtls) {
    for algorithm in [
        AeadAlgorithm::Aes128Gcm,
        AeadAlgorithm::Aes256Gcm,
        AeadAlgorithm::ChaCha20Poly1305,
    ] {
        let aead = provider.aead(algorithm, &[7; 32][..algorithm.key_bytes()]).unwrap();
        let (mut data, mut out) = ([0; 1_000], [0; 984]);
        let before = arena::allocations();
        for _ in 0..3 {
            let (text, tag) = data.split_last_chunk_mut().unwrap();
            *tag = aead.seal(&[1; 12], &[2; 5], text).unwrap();
            aead.open_into(&[1; 12], &[2; 5], &data, &mut out).unwrap();
            aead.open(&[1; 12], &[2; 5], &mut data).unwrap();
            aead.open(&[1; 12], &[2; 5], &mut data).unwrap_err();
        }
        assert_eq!(arena::allocations(), before, "{algorithm:?}");
    }
}

fn what_is_said_of_keys_is_so(provider: &Mbedtls) {
    for (algorithm, bytes) in [
        (AeadAlgorithm::Aes128Gcm, 736),
        (AeadAlgorithm::Aes256Gcm, 736),
        (AeadAlgorithm::ChaCha20Poly1305, 256),
    ] {
        let before = arena::used();
        let aead = provider.aead(algorithm, &[7; 32][..algorithm.key_bytes()]).unwrap();
        // Elsewhere pointers are shorter.
        assert!(
            arena::used() - before <= bytes,
            "{algorithm:?} keeps {}",
            arena::used() - before
        );
        drop(aead);
        assert_eq!(arena::used(), before);
    }
}

/// Four keys for each of many handshakes, an RSA-4096 signature for each, and each one's client chain checked.
fn everything_fits(provider: &Mbedtls) {
    let (store, warnings) = TrustStore::new(&[Fixture::CA.certificate], Policy::default(), ByMbedtls);
    assert!(warnings.is_empty());
    let before = arena::used();
    let rsa = provider.signing_key(RSA.0).unwrap();
    let mut held = Vec::new();
    let mut shares = Vec::new();
    for _ in 0..HANDSHAKES {
        for _ in 0..4 {
            held.push(provider.aead(AeadAlgorithm::Aes256Gcm, &[7; 32]).unwrap());
        }
        shares.push(provider.exchange(Group::X25519, &mut Sevens).unwrap());
    }
    sign(&rsa, SignatureScheme::RsaPssRsaeSha256).unwrap();
    for exchange in shares {
        let share = exchange.share();
        exchange.agree(share.bytes()).unwrap();
        for client in [Fixture::DEVICE, Fixture::DEVICE_RSA] {
            verify_chain(&store, client.chain, NOW);
        }
    }
    assert_eq!(arena::refused(), 0);
    assert!(arena::peak() < arena::DEFAULT_BYTES);
    drop((held, rsa));
    assert_eq!(arena::used(), before);
}

fn verify_chain(store: &TrustStore<ByMbedtls>, chain: &[&[u8]], now: Timestamp) {
    store.verify(chain, Role::Client, None, now).unwrap();
}

fn sign(key: &impl SigningKey, scheme: SignatureScheme) -> Result<Vec<u8>, CryptoError> {
    let mut signature = [0; SIGNATURE_BYTES_MAX];
    let bytes = key.sign(scheme, &[7; 32], &mut Sevens, &mut signature)?;
    Ok(signature[..bytes].to_vec())
}

/// From a heap without a byte to spare to one with enough, an operation is refused as often as it does not fit, leaves nothing behind,
/// and then works as ever: with this randomness every operation has one answer.
fn a_full_heap_refuses_one_operation(provider: &Mbedtls) {
    use SignatureScheme::{EcdsaSecp256r1Sha256, RsaPssRsaeSha256};

    let ec = provider.signing_key(P256.0).unwrap();
    let rsa = provider.signing_key(RSA.0).unwrap();
    let ecdsa = sign(&ec, EcdsaSecp256r1Sha256).unwrap();
    let pss = sign(&rsa, RsaPssRsaeSha256).unwrap();

    let seal = |algorithm: AeadAlgorithm| {
        let aead = provider.aead(algorithm, &[7; 32][..algorithm.key_bytes()])?;
        aead.seal(&[1; 12], &[], &mut [0; 40]).map(Vec::from)
    };
    let agree = |group| {
        let ours = provider.exchange(group, &mut Sevens)?;
        let share = ours.share();
        Ok([share.bytes(), ours.agree(share.bytes())?.bytes()].concat())
    };
    let verify = |kind, spki, scheme, signature: &[u8]| {
        let verified = provider.verify(scheme, PublicKey { kind, spki }, &[7; 32], signature);
        verified.map(|()| Vec::new())
    };
    type Operation<'a> = &'a dyn Fn() -> Result<Vec<u8>, CryptoError>;
    let operations: [(&str, Operation<'_>); 11] = [
        ("a provider", &|| Ok(Mbedtls::new()?.name().into())),
        ("HMAC", &|| {
            let mac = provider.hmac(HashAlgorithm::Sha384, &[1; 48], &[&[2; 60]])?;
            Ok(mac.bytes().to_vec())
        }),
        ("AES-GCM", &|| seal(AeadAlgorithm::Aes128Gcm)),
        ("ChaCha20-Poly1305", &|| seal(AeadAlgorithm::ChaCha20Poly1305)),
        ("X25519", &|| agree(Group::X25519)),
        ("P-256", &|| agree(Group::Secp256r1)),
        ("an ECDSA signature", &|| sign(&ec, EcdsaSecp256r1Sha256)),
        ("an RSA signature", &|| sign(&rsa, RsaPssRsaeSha256)),
        ("an ECDSA verification", &|| {
            verify(KeyKind::P256, P256.1, EcdsaSecp256r1Sha256, &ecdsa)
        }),
        ("an RSA verification", &|| {
            verify(KeyKind::Rsa(4096), RSA.1, RsaPssRsaeSha256, &pss)
        }),
        ("a new RSA key", &|| {
            sign(&provider.signing_key(RSA.0)?, RsaPssRsaeSha256)
        }),
    ];
    for (name, operation) in operations {
        let expected = operation().unwrap();
        let before = arena::used();
        let mut ballast = ballast(provider);
        let mut refusals = 0;
        let spare = loop {
            let (full, refused) = (arena::used(), arena::refused());
            match operation() {
                Ok(output) => {
                    assert_eq!(output, expected, "{name} after {refusals} refusals");
                    break arena::capacity() - full;
                }
                Err(error) => assert_eq!(error, CryptoError::ArenaFull, "{name}"),
            }
            refusals += 1;
            assert!(arena::refused() > refused);
            // An RSA key lets go of what blinds it.
            assert!(arena::used() <= full, "{name}, refused, left something behind");
            ballast.pop().expect("an operation that never fits");
        };
        assert!(refusals > 0, "{name} needs nothing");
        drop(ballast);
        assert_eq!(operation().unwrap(), expected);
        assert_eq!(arena::used(), before, "{name} left something behind");
        println!("{name}: refused {refusals} times, works with {spare} bytes");
    }
}

/// So many small keys that nothing more fits. Dropped from the end they leave one piece, a little at a time.
fn ballast(provider: &Mbedtls) -> Vec<MbedtlsAead> {
    let mut ballast = Vec::new();
    loop {
        match provider.aead(AeadAlgorithm::ChaCha20Poly1305, &[7; 32]) {
            Ok(key) => ballast.push(key),
            Err(error) => {
                assert_eq!(error, CryptoError::ArenaFull);
                return ballast;
            }
        }
    }
}

fn threads_share_it() {
    let before = arena::used();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let provider = Mbedtls::new().unwrap();
                for _ in 0..4 {
                    let ours = provider.exchange(Group::Secp256r1, &mut Sevens).unwrap();
                    let theirs = provider.exchange(Group::X25519, &mut Sevens).unwrap();
                    let (our_share, their_share) = (ours.share(), theirs.share());
                    ours.agree(our_share.bytes()).unwrap();
                    theirs.agree(their_share.bytes()).unwrap();
                }
            });
        }
    });
    assert_eq!(arena::used(), before);
}
