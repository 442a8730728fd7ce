//! Every provider against the same demands, and against each other.
#![cfg(all(feature = "fast", feature = "mbedtls", feature = "system-random"))]

use skerry_tls::crypto::either::{Choice, Either};
use skerry_tls::crypto::fast::Fast;
use skerry_tls::crypto::mbedtls::Mbedtls;
use skerry_tls::crypto::system::SystemRandom;
use skerry_tls::crypto::{
    Aead, AeadAlgorithm, CryptoError, Exchange, Hash, HashAlgorithm, KeyKind, Provider, PublicKey, Random,
    SIGNATURE_BYTES_MAX, SigningKey, TAG_BYTES,
};
use skerry_tls::suite::{Group, SignatureScheme};

/// Calls a generic test with each provider, alone and as one of two.
macro_rules! on_every_provider {
    ($($test:ident,)*) => {
        $(
            #[test]
            fn $test() {
                demands::$test(&Fast);
                demands::$test(&Mbedtls::new().unwrap());
                demands::$test(&Either::<Mbedtls, Fast>::start(Choice::Auto).unwrap());
                demands::$test(&Either::<Mbedtls, Fast>::start(Choice::Mbedtls).unwrap());
            }
        )*
    };
}

on_every_provider! {
    exchanges_agree,
    shares_that_are_no_points_are_refused,
    a_private_value_out_of_range_is_drawn_again_but_not_for_ever,
    a_failing_generator_fails_what_draws_from_it,
    aeads_open_what_they_seal_and_nothing_else,
    hashes_go_on_after_a_digest,
    keys_that_are_not_spoken_here_are_refused,
    keys_sign_by_what_suits_them_only,
}

/// A key of the folder beside this file.
macro_rules! key {
    ($name:literal) => {
        Fixture {
            private: include_bytes!(concat!("keys/", $name, ".pk8")),
            public: include_bytes!(concat!("keys/", $name, ".spki")),
        }
    };
}

#[derive(Clone, Copy)]
struct Fixture {
    private: &'static [u8],
    public: &'static [u8],
}

const KEYS: [(KeyKind, Fixture); 6] = [
    (KeyKind::P256, key!("p256")),
    (KeyKind::P384, key!("p384")),
    (KeyKind::Rsa(2048), key!("rsa2048")),
    // The first bit of its modulus begins a byte of its own.
    (KeyKind::Rsa(2049), key!("rsa2049")),
    (KeyKind::Rsa(3072), key!("rsa3072")),
    (KeyKind::Rsa(4096), key!("rsa4096")),
];

const AEADS: [AeadAlgorithm; 3] = [
    AeadAlgorithm::Aes128Gcm,
    AeadAlgorithm::Aes256Gcm,
    AeadAlgorithm::ChaCha20Poly1305,
];

const HASHES: [HashAlgorithm; 2] = [HashAlgorithm::Sha256, HashAlgorithm::Sha384];

/// Bytes that count upwards from a seed: enough where a test needs different values and no secret.
struct Counting(u8);

impl Random for Counting {
    fn fill(&mut self, out: &mut [u8]) -> Result<(), CryptoError> {
        for byte in out {
            *byte = self.0;
            self.0 = self.0.wrapping_add(1);
        }
        Ok(())
    }
}

/// Gives bytes of all ones so many times, and then 7, counting what it was asked.
struct Ones {
    times: usize,
    asked: usize,
}

impl Random for Ones {
    fn fill(&mut self, out: &mut [u8]) -> Result<(), CryptoError> {
        out.fill(if self.asked < self.times { 0xff } else { 7 });
        self.asked += 1;
        Ok(())
    }
}

/// Fails.
struct Broken;

impl Random for Broken {
    fn fill(&mut self, _: &mut [u8]) -> Result<(), CryptoError> {
        Err(CryptoError::Failed)
    }
}

fn digest<P: Provider>(provider: &P, scheme: SignatureScheme, message: &[u8]) -> Vec<u8> {
    let mut hash = provider.hash(scheme.hash()).unwrap();
    hash.update(message);
    hash.digest().bytes().to_vec()
}

fn sign<K: SigningKey>(key: &K, scheme: SignatureScheme, digest: &[u8]) -> Vec<u8> {
    let mut out = [0; SIGNATURE_BYTES_MAX];
    let bytes = key.sign(scheme, digest, &mut SystemRandom, &mut out).unwrap();
    out[..bytes].to_vec()
}

mod demands {
    use super::*;

    pub fn exchanges_agree<P: Provider>(provider: &P) {
        for &group in Group::ALL {
            let ours = provider.exchange(group, &mut Counting(1)).unwrap();
            let theirs = provider.exchange(group, &mut Counting(99)).unwrap();
            assert_eq!(ours.group(), group);
            assert_eq!(ours.share().bytes().len(), group.share_bytes());
            let (our_share, their_share) = (ours.share(), theirs.share());
            assert_ne!(our_share.bytes(), their_share.bytes());
            let secret = ours.agree(their_share.bytes()).unwrap();
            assert_eq!(secret.bytes().len(), 32);
            assert!(theirs.agree(our_share.bytes()).unwrap().is(secret.bytes()));
        }
    }

    pub fn shares_that_are_no_points_are_refused<P: Provider>(provider: &P) {
        let point = provider.exchange(Group::Secp256r1, &mut Counting(5)).unwrap().share();
        let [_, x @ .., _] = point.bytes() else { unreachable!() };
        let is_odd = point.bytes()[64] & 1;
        let compressed = [&[2 + is_odd], &x[..32]].concat();
        let mut hybrid = point.bytes().to_vec();
        hybrid[0] = 6 + is_odd;
        let mut off_the_curve = point.bytes().to_vec();
        off_the_curve[40] ^= 1;
        let mut too_large = [0xff; 65];
        too_large[0] = 4;
        let longer = [point.bytes(), &[0]].concat();
        let encoded = &key!("p256").public;
        for bad in [
            &compressed[..],
            &hybrid,
            &off_the_curve,
            &too_large,
            &longer,
            &point.bytes()[..64],
            encoded,
            &[0],
            &[],
            &[4],
        ] {
            let ours = provider.exchange(Group::Secp256r1, &mut Counting(1)).unwrap();
            assert_eq!(ours.agree(bad).unwrap_err(), CryptoError::Rejected, "{bad:x?}");
        }
        for bad in [&[9; 31][..], &[9; 33], &[], &[0; 32], point.bytes()] {
            let ours = provider.exchange(Group::X25519, &mut Counting(1)).unwrap();
            assert_eq!(ours.agree(bad).unwrap_err(), CryptoError::Rejected, "{bad:x?}");
        }
    }

    pub fn a_private_value_out_of_range_is_drawn_again_but_not_for_ever<P: Provider>(provider: &P) {
        let mut random = Ones { times: 3, asked: 0 };
        let share = provider.exchange(Group::Secp256r1, &mut random).unwrap().share();
        assert!(random.asked >= 4);
        let expected = provider
            .exchange(Group::Secp256r1, &mut Ones { times: 0, asked: 0 })
            .unwrap()
            .share();
        assert_eq!(share.bytes(), expected.bytes());

        let mut random = Ones {
            times: usize::MAX,
            asked: 0,
        };
        assert_eq!(
            provider.exchange(Group::Secp256r1, &mut random).err(),
            Some(CryptoError::Failed)
        );
        assert!(random.asked < 20);
    }

    pub fn a_failing_generator_fails_what_draws_from_it<P: Provider>(provider: &P) {
        for &group in Group::ALL {
            assert_eq!(provider.exchange(group, &mut Broken).err(), Some(CryptoError::Failed));
        }
    }

    pub fn aeads_open_what_they_seal_and_nothing_else<P: Provider>(provider: &P) {
        const TEXT: &[u8] = b"some plaintext, longer than two blocks of any cipher here";
        for algorithm in AEADS {
            assert!(provider.aead(algorithm, &[7; 33]).is_err());
            assert!(provider.aead(algorithm, &[7; 31]).is_err());
            let aead = provider.aead(algorithm, &[7; 32][..algorithm.key_bytes()]).unwrap();
            for text in [TEXT, &[]] {
                let mut sealed = text.to_vec();
                let tag = aead.seal(&[3; 12], b"header", &mut sealed).unwrap();
                assert!(text.is_empty() || sealed != text);
                sealed.extend_from_slice(&tag);

                let mut out = vec![0xee; text.len()];
                aead.open_into(&[3; 12], b"header", &sealed, &mut out).unwrap();
                assert_eq!(out, text);
                let mut in_place = sealed.clone();
                aead.open(&[3; 12], b"header", &mut in_place).unwrap();
                assert_eq!(in_place[..text.len()], *text);

                let refused = |nonce: &[u8; 12], aad: &[u8], sealed: &[u8]| {
                    let mut in_place = sealed.to_vec();
                    assert_eq!(aead.open(nonce, aad, &mut in_place), Err(CryptoError::Rejected));
                    let text_bytes = sealed.len().saturating_sub(TAG_BYTES);
                    assert!(
                        in_place[..text_bytes].iter().all(|&byte| byte == 0),
                        "plaintext of a forged record"
                    );
                    let mut out = vec![0xee; text_bytes];
                    assert_eq!(aead.open_into(nonce, aad, sealed, &mut out), Err(CryptoError::Rejected));
                    assert!(text_bytes == 0 || sealed.len() < TAG_BYTES || out.iter().all(|&byte| byte == 0));
                };
                refused(&[4; 12], b"header", &sealed);
                refused(&[3; 12], b"Header", &sealed);
                for at in 0..sealed.len() {
                    let mut wrong = sealed.clone();
                    wrong[at] ^= 0x10;
                    refused(&[3; 12], b"header", &wrong);
                }
                for bytes in 0..sealed.len() {
                    refused(&[3; 12], b"header", &sealed[..bytes]);
                }
                // Room of another length than the ciphertext.
                for bytes in [text.len() + 1, text.len().saturating_sub(1)] {
                    if bytes != text.len() {
                        let opened = aead.open_into(&[3; 12], b"header", &sealed, &mut vec![0; bytes]);
                        assert_eq!(opened, Err(CryptoError::Rejected));
                    }
                }
            }
        }
    }

    pub fn hashes_go_on_after_a_digest<P: Provider>(provider: &P) {
        for algorithm in HASHES {
            let mut whole = provider.hash(algorithm).unwrap();
            whole.update(b"onetwo");
            let mut parts = provider.hash(algorithm).unwrap();
            parts.update(b"one");
            let one = parts.digest();
            assert_eq!(one.bytes().len(), algorithm.bytes());
            let mut fork = parts.fork().unwrap();
            fork.update(b"two");
            assert!(fork.digest().is(whole.digest().bytes()));
            assert!(parts.digest().is(one.bytes()), "the fork moved what it was forked from");
            parts.update(b"two");
            assert!(parts.digest().is(whole.digest().bytes()), "a digest ended the hash");
        }
    }

    pub fn keys_that_are_not_spoken_here_are_refused<P: Provider>(provider: &P) {
        // The public half of another key in the private one, where it is written last.
        let mut mismatched = key!("p256").private.to_vec();
        let other = &key!("p256").public[27..];
        let at = mismatched.len() - other.len();
        assert_eq!(
            mismatched[at..],
            *other,
            "the public half is not where this test thinks"
        );
        let share = provider.exchange(Group::Secp256r1, &mut Counting(5)).unwrap().share();
        mismatched[at..].copy_from_slice(&share.bytes()[1..]);
        for bad in [
            &include_bytes!("keys/p521.pk8")[..],
            include_bytes!("keys/ed25519.pk8"),
            include_bytes!("keys/rsa1024.pk8"),
            include_bytes!("keys/rsa4104.pk8"),
            include_bytes!("keys/rsa2048_wide.pk8"),
            key!("p256").public,
            &key!("rsa2048").private[..600],
            &mismatched,
            b"-----BEGIN PRIVATE KEY-----\0",
            b"",
        ] {
            assert_eq!(provider.signing_key(bad).err(), Some(CryptoError::Rejected), "{bad:x?}");
        }
        // And public ones, under signatures that hold.
        let scheme = SignatureScheme::RsaPkcs1Sha256;
        let digest = digest(provider, scheme, b"");
        for (bits, spki, signature) in [
            (
                1024,
                &include_bytes!("keys/rsa1024.spki")[..],
                &include_bytes!("keys/rsa1024.sig")[..],
            ),
            (
                4104,
                include_bytes!("keys/rsa4104.spki"),
                include_bytes!("keys/rsa4104.sig"),
            ),
            (
                2048,
                include_bytes!("keys/rsa2048_wide.spki"),
                include_bytes!("keys/rsa2048_wide.sig"),
            ),
        ] {
            let kind = KeyKind::Rsa(bits);
            let verified = provider.verify(scheme, PublicKey { kind, spki }, &digest, signature);
            assert_eq!(verified, Err(CryptoError::Rejected), "{bits}");
        }
    }

    pub fn keys_sign_by_what_suits_them_only<P: Provider>(provider: &P) {
        for (kind, fixture) in KEYS {
            let key = provider.signing_key(fixture.private).unwrap();
            assert_eq!(key.kind(), kind);
            let public = PublicKey {
                kind,
                spki: fixture.public,
            };
            for &scheme in SignatureScheme::ALL {
                let message = digest(provider, scheme, b"a message");
                let mut out = [0; SIGNATURE_BYTES_MAX];
                let signed = key.sign(scheme, &message, &mut SystemRandom, &mut out);
                if !kind.signs_12(scheme) {
                    assert_eq!(signed, Err(CryptoError::Failed));
                    assert_eq!(
                        provider.verify(scheme, public, &message, &[0; 256]),
                        Err(CryptoError::Rejected)
                    );
                    continue;
                }
                let signature = &out[..signed.unwrap()];
                assert_eq!(
                    provider.verify(scheme, public, &message, signature),
                    Ok(()),
                    "{kind:?} {scheme:?}"
                );

                let other = digest(provider, scheme, b"another message");
                assert_eq!(
                    provider.verify(scheme, public, &other, signature),
                    Err(CryptoError::Rejected)
                );
                let verified = provider.verify(scheme, public, &message[1..], signature);
                assert_eq!(verified, Err(CryptoError::Rejected));
                for at in [0, 1, 4, signature.len() / 2, signature.len() - 1] {
                    let mut wrong = signature.to_vec();
                    wrong[at] ^= 1;
                    assert_eq!(
                        provider.verify(scheme, public, &message, &wrong),
                        Err(CryptoError::Rejected)
                    );
                }
                let longer = [signature, &[0]].concat();
                for wrong in [&signature[1..], &signature[..signature.len() - 1], &longer, &[]] {
                    assert_eq!(
                        provider.verify(scheme, public, &message, wrong),
                        Err(CryptoError::Rejected)
                    );
                }
                // The key without what says what it is, as a point or an RSAPublicKey.
                for at in [23, 24, 26] {
                    let spki = &fixture.public[at..];
                    let verified = provider.verify(scheme, PublicKey { kind, spki }, &message, signature);
                    assert_eq!(verified, Err(CryptoError::Rejected));
                }
                // A key of another kind, and one that says that it is.
                for (other, fixture) in KEYS.iter().filter(|(other, _)| *other != kind) {
                    for claimed in [*other, kind] {
                        let key = PublicKey {
                            kind: claimed,
                            spki: fixture.public,
                        };
                        assert_eq!(
                            provider.verify(scheme, key, &message, signature),
                            Err(CryptoError::Rejected)
                        );
                    }
                }

                let mut short = [0; SIGNATURE_BYTES_MAX - 1];
                assert_eq!(
                    key.sign(scheme, &message, &mut SystemRandom, &mut short),
                    Err(CryptoError::Failed)
                );
                let signed = key.sign(scheme, &message[1..], &mut SystemRandom, &mut out);
                assert_eq!(signed, Err(CryptoError::Failed));
            }
        }
    }
}

#[test]
fn both_make_the_same_shares_and_secrets_of_the_same_bytes() {
    let mbedtls = Mbedtls::new().unwrap();
    for &group in Group::ALL {
        for seed in [0, 1, 100, 200] {
            let fast = Fast.exchange(group, &mut Counting(seed)).unwrap();
            let portable = mbedtls.exchange(group, &mut Counting(seed)).unwrap();
            assert_eq!(fast.share().bytes(), portable.share().bytes());
            let peer = Fast.exchange(group, &mut SystemRandom).unwrap();
            let secret = fast.agree(peer.share().bytes()).unwrap();
            assert!(portable.agree(peer.share().bytes()).unwrap().is(secret.bytes()));
        }
    }
}

#[test]
fn what_one_signs_the_other_verifies() {
    fn crossed<A: Provider, B: Provider>(signer: &A, verifier: &B) {
        for (kind, fixture) in KEYS {
            let key = signer.signing_key(fixture.private).unwrap();
            let public = PublicKey {
                kind,
                spki: fixture.public,
            };
            for &scheme in SignatureScheme::ALL.iter().filter(|scheme| kind.signs_12(**scheme)) {
                let message = digest(verifier, scheme, b"a message");
                let signature = sign(&key, scheme, &message);
                assert_eq!(
                    verifier.verify(scheme, public, &message, &signature),
                    Ok(()),
                    "{kind:?} {scheme:?}"
                );
            }
        }
    }
    let mbedtls = Mbedtls::new().unwrap();
    crossed(&Fast, &mbedtls);
    crossed(&mbedtls, &Fast);
}

#[test]
fn what_one_seals_the_other_opens() {
    let mbedtls = Mbedtls::new().unwrap();
    for algorithm in AEADS {
        let key = &[7; 32][..algorithm.key_bytes()];
        let (fast, portable) = (
            Fast.aead(algorithm, key).unwrap(),
            mbedtls.aead(algorithm, key).unwrap(),
        );
        for bytes in [0, 1, 15, 16, 17, 1000, 1 << 14] {
            let text = vec![0xa5; bytes];
            let (mut one, mut other) = (text.clone(), text.clone());
            let tag = fast.seal(&[3; 12], b"header", &mut one).unwrap();
            assert_eq!(portable.seal(&[3; 12], b"header", &mut other).unwrap(), tag);
            assert_eq!(one, other);
            one.extend_from_slice(&tag);
            let mut opened = vec![0; bytes];
            portable.open_into(&[3; 12], b"header", &one, &mut opened).unwrap();
            assert_eq!(opened, text);
        }
    }
}

#[test]
fn both_hash_alike() {
    let mbedtls = Mbedtls::new().unwrap();
    for algorithm in HASHES {
        for bytes in [0, 1, 55, 56, 63, 64, 65, 111, 112, 127, 128, 129, 1000] {
            let message = vec![0xa5; bytes];
            let (mut one, mut other) = (Fast.hash(algorithm).unwrap(), mbedtls.hash(algorithm).unwrap());
            one.update(&message);
            other.update(&message);
            assert!(one.digest().is(other.digest().bytes()), "{bytes}");
            let one = Fast.hmac(algorithm, &message, &[b"one", &message, b""]).unwrap();
            assert!(
                mbedtls
                    .hmac(algorithm, &message, &[b"one", &message])
                    .unwrap()
                    .is(one.bytes()),
                "{bytes}"
            );
        }
    }
}

#[test]
fn providers_say_their_names() {
    assert_eq!(Fast.name(), "fast");
    assert_eq!(Mbedtls::new().unwrap().name(), "mbedtls");
    assert_eq!(Either::start(Choice::Auto).unwrap().name(), "fast");
    assert_eq!(Either::start(Choice::Fast).unwrap().name(), "fast");
    assert_eq!(Either::start(Choice::Mbedtls).unwrap().name(), "mbedtls");
}

#[test]
fn the_system_gives_other_bytes_each_time() {
    let (mut one, mut other) = ([0; 32], [0; 32]);
    SystemRandom.fill(&mut one).unwrap();
    SystemRandom.fill(&mut other).unwrap();
    assert_ne!(one, other);
}
