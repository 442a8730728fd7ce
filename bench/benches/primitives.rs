//! What each provider's primitives cost: `primitives/<what>[/<bytes>]/<provider>`. The sum of those that a handshake needs is its floor.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use skerry_tls::crypto::fast::Fast;
use skerry_tls::crypto::mbedtls::Mbedtls;
use skerry_tls::crypto::system::SystemRandom;
use skerry_tls::crypto::{
    Aead, AeadAlgorithm, Exchange, Hash, HashAlgorithm, KeyKind, Provider, PublicKey, SIGNATURE_BYTES_MAX, SigningKey,
};
use skerry_tls::suite::{Group, SignatureScheme};

/// Name, key, public key, kind and scheme.
type Signer = (&'static str, &'static [u8], &'static [u8], KeyKind, SignatureScheme);

/// A private and a public key, a scheme, and what the benchmark is called.
const SIGNERS: [Signer; 4] = [
    (
        "ecdsa_p256",
        include_bytes!("../../tls/tests/keys/p256.pk8"),
        include_bytes!("../../tls/tests/keys/p256.spki"),
        KeyKind::P256,
        SignatureScheme::EcdsaSecp256r1Sha256,
    ),
    (
        "ecdsa_p384",
        include_bytes!("../../tls/tests/keys/p384.pk8"),
        include_bytes!("../../tls/tests/keys/p384.spki"),
        KeyKind::P384,
        SignatureScheme::EcdsaSecp384r1Sha384,
    ),
    (
        "rsa_pss_2048",
        include_bytes!("../../tls/tests/keys/rsa2048.pk8"),
        include_bytes!("../../tls/tests/keys/rsa2048.spki"),
        KeyKind::Rsa(2048),
        SignatureScheme::RsaPssRsaeSha256,
    ),
    (
        "rsa_pss_4096",
        include_bytes!("../../tls/tests/keys/rsa4096.pk8"),
        include_bytes!("../../tls/tests/keys/rsa4096.spki"),
        KeyKind::Rsa(4096),
        SignatureScheme::RsaPssRsaeSha256,
    ),
];

/// Bytes of a record: a small one, and a full one.
const RECORD_BYTES: [usize; 2] = [64, 1 << 14];

fn exchanges<P: Provider>(c: &mut Criterion, provider: &P) {
    for (name, group) in [("x25519", Group::X25519), ("p256", Group::Secp256r1)] {
        let mut all = c.benchmark_group(format!("primitives/{name}"));
        let peer = provider.exchange(group, &mut SystemRandom).unwrap().share();
        all.bench_function(provider.name(), |b| {
            b.iter(|| {
                provider
                    .exchange(group, &mut SystemRandom)
                    .unwrap()
                    .agree(peer.bytes())
                    .unwrap()
            });
        });
        all.finish();
    }
}

fn signatures<P: Provider>(c: &mut Criterion, provider: &P) {
    for (name, pkcs8, spki, kind, scheme) in SIGNERS {
        let key = provider.signing_key(pkcs8).unwrap();
        let digest = &[7; 48][..scheme.hash().bytes()];
        let mut signature = [0; SIGNATURE_BYTES_MAX];
        let mut all = c.benchmark_group(format!("primitives/{name}_sign"));
        all.bench_function(provider.name(), |b| {
            b.iter(|| key.sign(scheme, digest, &mut SystemRandom, &mut signature).unwrap());
        });
        all.finish();
        let bytes = key.sign(scheme, digest, &mut SystemRandom, &mut signature).unwrap();
        let mut all = c.benchmark_group(format!("primitives/{name}_verify"));
        all.bench_function(provider.name(), |b| {
            b.iter(|| {
                provider
                    .verify(scheme, PublicKey { kind, spki }, digest, &signature[..bytes])
                    .unwrap()
            });
        });
        all.finish();
    }
}

fn records<P: Provider>(c: &mut Criterion, provider: &P) {
    for (name, algorithm) in [
        ("aes_128_gcm", AeadAlgorithm::Aes128Gcm),
        ("aes_256_gcm", AeadAlgorithm::Aes256Gcm),
        ("chacha20_poly1305", AeadAlgorithm::ChaCha20Poly1305),
    ] {
        let key = [7; 32];
        let key = &key[..algorithm.key_bytes()];
        let mut all = c.benchmark_group(format!("primitives/{name}_key"));
        all.bench_function(provider.name(), |b| b.iter(|| provider.aead(algorithm, key).unwrap()));
        all.finish();
        let aead = provider.aead(algorithm, key).unwrap();
        for bytes in RECORD_BYTES {
            let mut all = c.benchmark_group(format!("primitives/{name}_seal/{bytes}"));
            all.throughput(Throughput::Bytes(bytes as u64));
            let mut data = vec![0; bytes];
            all.bench_function(provider.name(), |b| {
                b.iter(|| aead.seal(&[1; 12], &[2; 5], &mut data).unwrap())
            });
            all.finish();
            let tag = aead.seal(&[1; 12], &[2; 5], &mut data).unwrap();
            data.extend_from_slice(&tag);
            let mut out = vec![0; bytes];
            let mut all = c.benchmark_group(format!("primitives/{name}_open/{bytes}"));
            all.throughput(Throughput::Bytes(bytes as u64));
            all.bench_function(provider.name(), |b| {
                b.iter(|| aead.open_into(&[1; 12], &[2; 5], &data, &mut out).unwrap());
            });
            all.finish();
        }
    }
}

fn hashes<P: Provider>(c: &mut Criterion, provider: &P) {
    for (name, algorithm) in [("sha256", HashAlgorithm::Sha256), ("sha384", HashAlgorithm::Sha384)] {
        for bytes in [64_usize, 1024] {
            let input = vec![7; bytes];
            let mut all = c.benchmark_group(format!("primitives/{name}/{bytes}"));
            all.throughput(Throughput::Bytes(bytes as u64));
            all.bench_with_input(BenchmarkId::from_parameter(provider.name()), &input, |b, input| {
                b.iter(|| {
                    let mut hash = provider.hash(algorithm).unwrap();
                    hash.update(input);
                    hash.digest()
                });
            });
            all.finish();
        }
        // As HKDF-Expand-Label asks for it: a key of a digest's length over a short label.
        let mut all = c.benchmark_group(format!("primitives/hmac_{name}"));
        let key = &[7; 48][..algorithm.bytes()];
        all.bench_function(provider.name(), |b| {
            b.iter(|| provider.hmac(algorithm, key, &[&[1; 20], &[2; 32], &[1]]).unwrap());
        });
        all.finish();
    }
}

fn primitives(c: &mut Criterion) {
    let (fast, mbedtls) = (Fast, Mbedtls::new().unwrap());
    exchanges(c, &fast);
    exchanges(c, &mbedtls);
    signatures(c, &fast);
    signatures(c, &mbedtls);
    records(c, &fast);
    records(c, &mbedtls);
    hashes(c, &fast);
    hashes(c, &mbedtls);
}

criterion_group!(benches, primitives);
criterion_main!(benches);
