//! The Wycheproof vectors that a TLS stack can meet, on every provider. How many of each ran is printed, and each must be decided as it says.
#![cfg(all(feature = "fast", feature = "mbedtls"))]

use std::io::Write as _;

use skerry_tls::crypto::either::{Choice, Either};
use skerry_tls::crypto::fast::Fast;
use skerry_tls::crypto::mbedtls::Mbedtls;
use skerry_tls::crypto::{
    Aead, AeadAlgorithm, CryptoError, Exchange, Hash, HashAlgorithm, KeyKind, Provider, PublicKey, Random, TAG_BYTES,
};
use skerry_tls::suite::{Group, SignatureScheme};
use wycheproof::{EllipticCurve, HashFunction, Mgf, TestResult};

/// Gives the bytes of a vector first, then ones that blind nothing.
struct Given<'a>(&'a [u8]);

impl Random for Given<'_> {
    fn fill(&mut self, out: &mut [u8]) -> Result<(), CryptoError> {
        let taken = self.0.len().min(out.len());
        let (now, later) = self.0.split_at(taken);
        out[..taken].copy_from_slice(now);
        out[taken..].fill(0x5a);
        self.0 = later;
        Ok(())
    }
}

/// Says how many vectors of what ran, past the test harness's capture, and that they were not fewer than once.
fn ran<P: Provider>(provider: &P, what: &str, count: usize, at_least: usize) {
    #[allow(
        clippy::explicit_write,
        reason = "a count is seen although the output of tests that pass is not shown"
    )]
    writeln!(std::io::stderr(), "wycheproof: {count:5} {what} on {}", provider.name()).unwrap();
    assert!(count >= at_least, "{count} of {what}, once {at_least}");
}

/// Whether the provider is the one for devices, which speaks no more than what a TLS 1.3 server must, and signs nothing.
fn is_small<P: Provider>(provider: &P) -> bool {
    provider.name() == "rustcrypto"
}

fn aeads<P: Provider>(provider: &P) {
    use wycheproof::aead::{TestName, TestSet};
    for (name, set, at_least) in [
        ("AES-GCM", TestName::AesGcm, 130),
        ("ChaCha20-Poly1305", TestName::ChaCha20Poly1305, 300),
    ] {
        let mut count = 0;
        for group in TestSet::load(set).unwrap().test_groups {
            let algorithm = match (set, group.key_size) {
                (TestName::AesGcm, 128) => AeadAlgorithm::Aes128Gcm,
                (TestName::AesGcm, 256) => AeadAlgorithm::Aes256Gcm,
                (TestName::ChaCha20Poly1305, 256) => AeadAlgorithm::ChaCha20Poly1305,
                _ => continue,
            };
            if group.nonce_size != 96 || group.tag_size != 128 {
                continue;
            }
            if is_small(provider) && algorithm != AeadAlgorithm::Aes128Gcm {
                let key = vec![0; algorithm.key_bytes()];
                assert!(matches!(provider.aead(algorithm, &key), Err(CryptoError::Failed)));
                continue;
            }
            for test in group.tests {
                let aead = provider.aead(algorithm, &test.key).unwrap();
                let nonce = test.nonce[..].try_into().unwrap();
                let is_valid = test.result == TestResult::Valid;
                let sealed = [&test.ct[..], &test.tag[..]].concat();

                let mut in_place = sealed.clone();
                let opened = aead.open(nonce, &test.aad, &mut in_place);
                assert_eq!(
                    opened,
                    if is_valid { Ok(()) } else { Err(CryptoError::Rejected) },
                    "{name} {}",
                    test.tc_id
                );
                let mut out = vec![0xee; test.ct.len()];
                assert_eq!(
                    aead.open_into(nonce, &test.aad, &sealed, &mut out),
                    opened,
                    "{name} {}",
                    test.tc_id
                );
                let expected = if is_valid {
                    test.pt.to_vec()
                } else {
                    vec![0; test.ct.len()]
                };
                assert_eq!(in_place[..test.ct.len()], expected, "{name} {}", test.tc_id);
                assert_eq!(out, expected, "{name} {}", test.tc_id);

                let mut text = test.pt.to_vec();
                let tag = aead.seal(nonce, &test.aad, &mut text).unwrap();
                assert_eq!(
                    text[..] == test.ct[..] && tag[..] == test.tag[..],
                    is_valid,
                    "{name} {}",
                    test.tc_id
                );
                count += 1;
            }
        }
        let at_least = match set {
            _ if !is_small(provider) => at_least,
            TestName::AesGcm => 60,
            _ => 0,
        };
        ran(provider, name, count, at_least);
    }
}

fn x25519<P: Provider>(provider: &P) {
    use wycheproof::xdh::{TestName, TestSet};
    let mut count = 0;
    for test in TestSet::load(TestName::X25519)
        .unwrap()
        .test_groups
        .into_iter()
        .flat_map(|group| group.tests)
    {
        let ours = provider.exchange(Group::X25519, &mut Given(&test.private_key)).unwrap();
        let agreed = ours.agree(&test.public_key);
        // Vectors of low order are "acceptable"; TLS refuses the zero that comes of them (RFC 8446 §7.4.2), and takes all others.
        if test.result == TestResult::Invalid || test.shared_secret.iter().all(|&byte| byte == 0) {
            assert_eq!(
                agreed.unwrap_err(),
                CryptoError::Rejected,
                "{}: {}",
                test.tc_id,
                test.comment
            );
        } else {
            let agreed = agreed.unwrap_or_else(|error| panic!("{}: {}: {error:?}", test.tc_id, test.comment));
            assert_eq!(
                agreed.bytes(),
                &test.shared_secret[..],
                "{}: {}",
                test.tc_id,
                test.comment
            );
        }
        count += 1;
    }
    ran(provider, "X25519", count, 518);
}

fn p256<P: Provider>(provider: &P) {
    use wycheproof::ecdh::{TestName, TestSet};
    let mut count = 0;
    for group in TestSet::load(TestName::EcdhSecp256r1Ecpoint).unwrap().test_groups {
        assert_eq!(group.curve, EllipticCurve::Secp256r1);
        for test in group.tests {
            // As a number of 32 bytes, however many it is written with.
            let mut private = [0; 32];
            let digits = test.private_key.iter().rev();
            private.iter_mut().rev().zip(digits).for_each(|(to, &from)| *to = from);
            let ours = provider.exchange(Group::Secp256r1, &mut Given(&private)).unwrap();
            let agreed = ours.agree(&test.public_key);
            // TLS knows uncompressed points only (RFC 8446 §4.2.8.2).
            if test.result == TestResult::Invalid || test.public_key.len() != 65 {
                assert_eq!(
                    agreed.unwrap_err(),
                    CryptoError::Rejected,
                    "{}: {}",
                    test.tc_id,
                    test.comment
                );
            } else {
                let agreed = agreed.unwrap_or_else(|error| panic!("{}: {}: {error:?}", test.tc_id, test.comment));
                assert_eq!(
                    agreed.bytes(),
                    &test.shared_secret[..],
                    "{}: {}",
                    test.tc_id,
                    test.comment
                );
            }
            count += 1;
        }
    }
    ran(provider, "ECDH P-256", count, 200);
}

fn hmac<P: Provider>(provider: &P) {
    use wycheproof::mac::{TestName, TestSet};
    for (name, set, algorithm) in [
        ("HMAC-SHA256", TestName::HmacSha256, HashAlgorithm::Sha256),
        ("HMAC-SHA384", TestName::HmacSha384, HashAlgorithm::Sha384),
    ] {
        if is_small(provider) && algorithm != HashAlgorithm::Sha256 {
            continue;
        }
        let mut count = 0;
        for test in TestSet::load(set)
            .unwrap()
            .test_groups
            .into_iter()
            .flat_map(|group| group.tests)
        {
            // In two parts, wherever they meet.
            let (first, second) = test.msg.split_at(test.msg.len() / 3);
            let mac = provider.hmac(algorithm, &test.key, &[first, second]).unwrap();
            // Truncated tags are no use of TLS's, and are still a prefix.
            let is_valid = mac.bytes()[..test.tag.len()] == test.tag[..];
            assert_eq!(is_valid, test.result == TestResult::Valid, "{name} {}", test.tc_id);
            count += 1;
        }
        ran(provider, name, count, 174);
    }
}

fn hkdf<P: Provider>(provider: &P) {
    use wycheproof::hkdf::{TestName, TestSet};
    for (name, set, algorithm) in [
        ("HKDF-SHA256", TestName::HkdfSha256, HashAlgorithm::Sha256),
        ("HKDF-SHA384", TestName::HkdfSha384, HashAlgorithm::Sha384),
    ] {
        if is_small(provider) && algorithm != HashAlgorithm::Sha256 {
            continue;
        }
        let mut count = 0;
        for test in TestSet::load(set)
            .unwrap()
            .test_groups
            .into_iter()
            .flat_map(|group| group.tests)
        {
            if test.result == TestResult::Invalid {
                assert!(
                    test.size > 255 * algorithm.bytes(),
                    "an HKDF vector that asks for what may be had"
                );
                continue;
            }
            // RFC 5869 §2.2, §2.3.
            let key = provider.hmac(algorithm, &test.salt, &[&test.ikm]).unwrap();
            let mut okm = Vec::new();
            let mut last = Vec::new();
            for counter in 1..=u8::MAX {
                last = provider
                    .hmac(algorithm, key.bytes(), &[&last, &test.info, &[counter]])
                    .unwrap()
                    .bytes()
                    .to_vec();
                okm.extend_from_slice(&last);
                if okm.len() >= test.size {
                    break;
                }
            }
            assert_eq!(okm[..test.size], test.okm[..], "{name} {}", test.tc_id);
            count += 1;
        }
        ran(provider, name, count, 80);
    }
}

/// Whether a provider takes a signature over a message.
fn verifies<P: Provider>(
    provider: &P,
    scheme: SignatureScheme,
    key: PublicKey<'_>,
    message: &[u8],
    signature: &[u8],
) -> bool {
    let mut hash = provider.hash(scheme.hash()).unwrap();
    hash.update(message);
    let verified = provider.verify(scheme, key, hash.digest().bytes(), signature);
    assert!(matches!(verified, Ok(()) | Err(CryptoError::Rejected)), "{verified:?}");
    verified.is_ok()
}

fn ecdsa<P: Provider>(provider: &P) {
    use SignatureScheme::{EcdsaSecp256r1Sha256, EcdsaSecp384r1Sha384};
    use wycheproof::ecdsa::{TestName, TestSet};
    for (name, set, kind, scheme, at_least) in [
        (
            "ECDSA P-256 SHA-256",
            TestName::EcdsaSecp256r1Sha256,
            KeyKind::P256,
            EcdsaSecp256r1Sha256,
            480,
        ),
        (
            "ECDSA P-384 SHA-256",
            TestName::EcdsaSecp384r1Sha256,
            KeyKind::P384,
            EcdsaSecp256r1Sha256,
            472,
        ),
        (
            "ECDSA P-384 SHA-384",
            TestName::EcdsaSecp384r1Sha384,
            KeyKind::P384,
            EcdsaSecp384r1Sha384,
            500,
        ),
    ] {
        if is_small(provider) && kind != KeyKind::P256 {
            continue;
        }
        let mut count = 0;
        for group in TestSet::load(set).unwrap().test_groups {
            let key = PublicKey { kind, spki: &group.der };
            for test in group.tests {
                let is_valid = verifies(provider, scheme, key, &test.msg, &test.sig);
                assert_eq!(
                    is_valid,
                    test.result == TestResult::Valid,
                    "{name} {}: {}",
                    test.tc_id,
                    test.comment
                );
                count += 1;
            }
        }
        ran(provider, name, count, at_least);
    }
}

fn rsa_pkcs1<P: Provider>(provider: &P) {
    use SignatureScheme::{RsaPkcs1Sha256, RsaPkcs1Sha384};
    use wycheproof::rsa_pkcs1_verify::{TestName, TestSet};
    for (name, set, scheme) in [
        ("RSA PKCS#1 2048 SHA-256", TestName::Rsa2048Sha256, RsaPkcs1Sha256),
        ("RSA PKCS#1 2048 SHA-384", TestName::Rsa2048Sha384, RsaPkcs1Sha384),
        ("RSA PKCS#1 3072 SHA-256", TestName::Rsa3072Sha256, RsaPkcs1Sha256),
        ("RSA PKCS#1 3072 SHA-384", TestName::Rsa3072Sha384, RsaPkcs1Sha384),
        ("RSA PKCS#1 4096 SHA-256", TestName::Rsa4096Sha256, RsaPkcs1Sha256),
        ("RSA PKCS#1 4096 SHA-384", TestName::Rsa4096Sha384, RsaPkcs1Sha384),
    ] {
        let mut count = 0;
        for group in TestSet::load(set).unwrap().test_groups {
            let key = PublicKey {
                kind: KeyKind::Rsa(group.key_size as u16),
                spki: &group.der,
            };
            for test in group.tests {
                let is_valid = verifies(provider, scheme, key, &test.msg, &test.sig);
                // "Acceptable" is a DigestInfo without its NULL, which RFC 8017 §9.2 does not allow in a signature.
                assert_eq!(
                    is_valid,
                    test.result == TestResult::Valid,
                    "{name} {}: {}",
                    test.tc_id,
                    test.comment
                );
                count += 1;
            }
        }
        ran(provider, name, count, 250);
    }
}

fn rsa_pss<P: Provider>(provider: &P) {
    use wycheproof::rsa_pss_verify::{TestName, TestSet};
    let mut count = 0;
    for set in [
        TestName::RsaPss2048Sha256Mgf1SaltLen32,
        TestName::RsaPss2048Sha384Mgf1SaltLen48,
        TestName::RsaPss3072Sha256Mgf1SaltLen32,
        TestName::RsaPss4096Sha256Mgf1SaltLen32,
        TestName::RsaPss4096Sha384Mgf1SaltLen48,
        // Salts of other lengths, which TLS refuses (RFC 8446 §4.2.3).
        TestName::RsaPss2048Sha256Mgf1SaltLen0,
        TestName::RsaPssmisc,
    ] {
        for group in TestSet::load(set).unwrap().test_groups {
            let scheme = match (group.hash, group.mgf_hash) {
                (HashFunction::Sha2_256, Some(HashFunction::Sha2_256)) => SignatureScheme::RsaPssRsaeSha256,
                (HashFunction::Sha2_384, Some(HashFunction::Sha2_384)) => SignatureScheme::RsaPssRsaeSha384,
                _ => continue,
            };
            if group.mgf != Mgf::Mgf1 || !(2048..=4096).contains(&group.key_size) {
                continue;
            }
            let key = PublicKey {
                kind: KeyKind::Rsa(group.key_size as u16),
                spki: &group.der,
            };
            let is_tls = group.salt_size == scheme.hash().bytes();
            for test in group.tests {
                // A salt that is wrong in its group may be right in TLS.
                if !is_tls && test.result != TestResult::Valid {
                    continue;
                }
                let is_valid = verifies(provider, scheme, key, &test.msg, &test.sig);
                assert_eq!(
                    is_valid,
                    test.result == TestResult::Valid && is_tls,
                    "{set:?} {}: {}",
                    test.tc_id,
                    test.comment
                );
                count += 1;
            }
        }
    }
    ran(provider, "RSA-PSS", count, 500);
}

fn suite<P: Provider>(provider: &P) {
    assert_eq!(TAG_BYTES * 8, 128);
    aeads(provider);
    x25519(provider);
    p256(provider);
    hmac(provider);
    hkdf(provider);
    ecdsa(provider);
    rsa_pkcs1(provider);
    rsa_pss(provider);
}

#[test]
fn fast() {
    suite(&Fast);
}

#[test]
fn mbedtls() {
    suite(&Mbedtls::new().unwrap());
}

#[cfg(feature = "rustcrypto-x25519")]
#[test]
fn rustcrypto() {
    let provider = skerry_tls::crypto::rustcrypto::RustCrypto;
    aeads(&provider);
    x25519(&provider);
    p256(&provider);
    hmac(&provider);
    hkdf(&provider);
    ecdsa(&provider);
}

#[test]
fn either() {
    for choice in [Choice::Mbedtls, Choice::Fast] {
        let provider = Either::start(choice).unwrap();
        aeads(&provider);
        hmac(&provider);
        hkdf(&provider);
    }
}
