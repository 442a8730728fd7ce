//! TLS 1.2's pseudorandom function and what is made with it (RFC 5246 §5, §6.3, §8.1; RFC 7627).

use crate::cause::Cause;
use crate::certificate::Role;
use crate::crypto::{AeadAlgorithm, HashAlgorithm, KEY_BYTES_MAX, NONCE_BYTES, Provider, Secret, Wiped};
use crate::message::{RANDOM_BYTES, VERIFY_DATA_BYTES_12};
use crate::record::{TrafficKeys, fixed_iv_bytes};
use crate::suite::CipherSuite;

/// Bytes of every master secret.
pub const MASTER_SECRET_BYTES: usize = 48;

/// The master secret without RFC 7627.
pub fn master_secret<P: Provider>(
    provider: &P,
    hash: HashAlgorithm,
    premaster: &Secret,
    client_random: &[u8; RANDOM_BYTES],
    server_random: &[u8; RANDOM_BYTES],
) -> Result<Secret, Cause> {
    secret::<P, MASTER_SECRET_BYTES>(
        provider,
        hash,
        premaster,
        &[b"master secret", client_random, server_random],
    )
}

/// The extended master secret (RFC 7627 §4); the digest is that of ClientHello…ClientKeyExchange.
pub fn extended_master_secret<P: Provider>(
    provider: &P,
    hash: HashAlgorithm,
    premaster: &Secret,
    transcript: &Secret,
) -> Result<Secret, Cause> {
    secret::<P, MASTER_SECRET_BYTES>(
        provider,
        hash,
        premaster,
        &[b"extended master secret", transcript.bytes()],
    )
}

/// The `verify_data` of that side's Finished; the digest is that of all messages before it.
pub fn verify_data<P: Provider>(
    provider: &P,
    hash: HashAlgorithm,
    master: &Secret,
    sender: Role,
    transcript: &Secret,
) -> Result<Secret, Cause> {
    let label: &[u8] = match sender {
        Role::Client => b"client finished",
        Role::Server => b"server finished",
    };
    secret::<P, VERIFY_DATA_BYTES_12>(provider, hash, master, &[label, transcript.bytes()])
}

/// What the keys of both directions are cut from (RFC 5246 §6.3): keys, then the fixed parts of nonces, the client's first each time. An AEAD
/// has no MAC keys. Wiped when dropped.
#[derive(Clone)]
pub struct KeyBlock {
    bytes: Wiped<{ 2 * (KEY_BYTES_MAX + NONCE_BYTES) }>,
    aead: AeadAlgorithm,
}

impl KeyBlock {
    /// The key block of a connection.
    pub fn new<P: Provider>(
        provider: &P,
        suite: CipherSuite,
        master: &Secret,
        client_random: &[u8; RANDOM_BYTES],
        server_random: &[u8; RANDOM_BYTES],
    ) -> Result<Self, Cause> {
        let aead = suite.aead();
        let mut block = Self {
            bytes: Wiped::zeros(),
            aead,
        };
        let wanted = 2 * (aead.key_bytes() + fixed_iv_bytes(aead));
        prf(
            provider,
            suite.hash(),
            master,
            &[b"key expansion", server_random, client_random],
            block.bytes.get_mut(..wanted).ok_or(Cause::Internal)?,
        )?;
        Ok(block)
    }

    /// The keys of what that side sends.
    pub fn keys<P: Provider>(&self, provider: &P, sender: Role) -> Result<TrafficKeys<P>, Cause> {
        let index = match sender {
            Role::Client => 0,
            Role::Server => 1,
        };
        let (key_bytes, iv_bytes) = (self.aead.key_bytes(), fixed_iv_bytes(self.aead));
        let (keys, ivs) = self.bytes.split_at_checked(2 * key_bytes).ok_or(Cause::Internal)?;
        let key = keys.chunks(key_bytes).nth(index).ok_or(Cause::Internal)?;
        let iv = ivs.chunks(iv_bytes).nth(index).ok_or(Cause::Internal)?;
        Ok(TrafficKeys::tls12(provider, self.aead, key, iv)?)
    }
}

fn secret<P: Provider, const BYTES: usize>(
    provider: &P,
    hash: HashAlgorithm,
    key: &Secret,
    label_and_seed: &[&[u8]],
) -> Result<Secret, Cause> {
    let mut out = Wiped::<BYTES>::zeros();
    prf(provider, hash, key, label_and_seed, &mut *out)?;
    Secret::copy(&*out).ok_or(Cause::Internal)
}

/// The most parts of label and seed.
const PARTS_MAX: usize = 3;

/// PRF (RFC 5246 §5) under the suite's hash, with label and seed in parts.
///
/// Errors: [`Cause::Internal`] for more parts than [`PARTS_MAX`].
/// Cost: two HMACs for each digest's length of `out`.
fn prf<P: Provider>(
    provider: &P,
    hash: HashAlgorithm,
    key: &Secret,
    label_and_seed: &[&[u8]],
    out: &mut [u8],
) -> Result<(), Cause> {
    let mut previous: Option<Secret> = None;
    for chunk in out.chunks_mut(hash.bytes()) {
        let a = match &previous {
            None => provider.hmac(hash, key.bytes(), label_and_seed)?,
            Some(a) => provider.hmac(hash, key.bytes(), &[a.bytes()])?,
        };
        let mut parts: [&[u8]; 1 + PARTS_MAX] = [&[]; 1 + PARTS_MAX];
        let (first, rest) = parts.split_first_mut().ok_or(Cause::Internal)?;
        *first = a.bytes();
        let rest = rest.get_mut(..label_and_seed.len()).ok_or(Cause::Internal)?;
        rest.copy_from_slice(label_and_seed);
        let block = provider.hmac(hash, key.bytes(), &parts)?;
        chunk.copy_from_slice(block.bytes().get(..chunk.len()).ok_or(Cause::Internal)?);
        previous = Some(a);
    }
    Ok(())
}

#[cfg(all(test, feature = "fast"))]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::crypto::fast::Fast;
    use crate::crypto::{Aead, Hash};
    use crate::record::Nonces;

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
            .collect()
    }

    fn check(hash: HashAlgorithm, secret: &str, seed: &str, expected: &str) {
        let expected = bytes(expected);
        let mut out = [0; 160];
        let out = &mut out[..expected.len()];
        let secret = Secret::copy(&bytes(secret)).unwrap();
        prf(&Fast, hash, &secret, &[b"test label", &bytes(seed)], out).unwrap();
        assert_eq!(out, expected);
    }

    /// Goal: the PRF itself. Method: the vectors that were posted to the TLS working group's list for P_SHA256 and P_SHA384.
    #[test]
    fn known_vectors() {
        check(
            HashAlgorithm::Sha256,
            "9bbe436ba940f017b17652849a71db35",
            "a0ba9f936cda311827a6f796ffd5198c",
            "e3f229ba727be17b8d122620557cd453c2aab21d07c3d495329b52d4e61edb5a6b301791e90d35c9c9a46b4e14baf9af0fa022f7077def17abfd\
             3797c0564bab4fbc91666e9def9b97fce34f796789baa48082d122ee42c5a72e5a5110fff70187347b66",
        );
        check(
            HashAlgorithm::Sha384,
            "b80b733d6ceefcdc71566ea48e5567df",
            "cd665cf6a8447dd6ff8b27555edb7465",
            "7b0c18e9ced410ed1804f2cfa34a336a1c14dffb4900bb5fd7942107e81c83cde9ca0faa60be9fe34f82b1233c9146a0e534cb400fed2700884f\
             9dc236f80edd8bfa961144c9e8d792eca722a7b32fc3d416d473ebc2c5fd4abfdad05d9184259b5bf8cd4d90fa0d31e2dec479e4f1a26066f2ee\
             a9a69236a3e52655c9e9aee691c8f3a26854308d5eaa3be85e0990703d73e56f",
        );
    }
    /// Goal: labels, and the order of seeds. Method: the same made from plain HMACs by another program: a premaster of 0, 1 … 31, randoms of
    /// 0xc1 and 0x5e, and the digest of `messages`.
    #[test]
    fn secrets_and_keys() {
        let (client, server) = ([0xc1; RANDOM_BYTES], [0x5e; RANDOM_BYTES]);
        let premaster = Secret::copy(&core::array::from_fn::<u8, 32, _>(|at| at as u8)).unwrap();
        let cases = [
            (
                CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
                "9d74292fc14cdf469df925ce3046d5252f3dc8719959e03ff7ece95339025c8f96271c5003eec038eb3e2592b399d064",
                "9b6d0bc125fc20138c068c18ea081d07397136f1277e9f68ad329b22fa4e9615cda4a5ae62355bc0d115f4942dade1e0",
                ["37a02661c36a91a14725d60e", "aff65b7110b50530388daf5e"],
                "981fe5fa0d15bff57ba9bdc3399e62694d2cfddacdaab44aed3a7914a18932e48325dd4342c4419e8e7420f852bb4d28bda61b13b66cbc8564bc86f0\
                 7c7ad9b70fc24e8c379c2f578a1587ec621e5e3f39beef3ee33df30a",
            ),
            (
                CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
                "ef83335401084438b6df6a774880465ec7f4f77c008df68fee088b580519320c8f27c4a4d8a1bbc532906c53357a214d",
                "03cfdba2d20a1d482d1fbf2e02ef2f80d2ba67b90c066877d4c801343efb7a475842137a9b4f5ee61275d6301e44bc95",
                ["6d5be9fbcc7a7229892a0da0", "9799567bd7ce98c40fb8097e"],
                "4d162c48a9b11db161d0c7db0a9b9b0396e7d2220c40808d7aeeb596092bb82cc13e36b35124806ad6837c500ccfa96c8861660c4a3dd0896406f890\
                 eeffa543722ae03b79fdbc40",
            ),
        ];
        for (suite, master, extended, verify, block) in cases {
            let hash = suite.hash();
            let mut digest = Fast.hash(hash).unwrap();
            digest.update(b"messages");
            let digest = digest.digest();
            let secret = master_secret(&Fast, hash, &premaster, &client, &server).unwrap();
            assert_eq!(secret.bytes(), bytes(master));
            let ems = extended_master_secret(&Fast, hash, &premaster, &digest).unwrap();
            assert_eq!(ems.bytes(), bytes(extended));
            for (role, expected) in [Role::Client, Role::Server].into_iter().zip(verify) {
                let data = verify_data(&Fast, hash, &secret, role, &digest).unwrap();
                assert_eq!(data.bytes(), bytes(expected));
            }
            let keys = KeyBlock::new(&Fast, suite, &secret, &client, &server).unwrap();
            let expected = bytes(block);
            assert_eq!(keys.bytes[..expected.len()], expected);
            assert!(keys.bytes[expected.len()..].iter().all(|byte| *byte == 0));

            // Each side's key and nonces are where RFC 5246 §6.3 puts them.
            let aead = suite.aead();
            let (key_bytes, iv_bytes) = (aead.key_bytes(), fixed_iv_bytes(aead));
            for (index, role) in [Role::Client, Role::Server].into_iter().enumerate() {
                let cut = keys.keys(&Fast, role).unwrap();
                let key = Fast.aead(aead, &expected[index * key_bytes..][..key_bytes]).unwrap();
                let seal = |key: &<Fast as Provider>::Aead| key.seal(&[0; NONCE_BYTES], b"", &mut [0; 4]).unwrap();
                assert_eq!(seal(&cut.aead), seal(&key));
                let iv = &expected[2 * key_bytes + index * iv_bytes..][..iv_bytes];
                match &cut.nonces {
                    Nonces::Xor(bytes) => assert_eq!(bytes, iv),
                    Nonces::Explicit(bytes) => assert_eq!(bytes, iv),
                }
            }
        }
    }
}
