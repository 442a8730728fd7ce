//! The fast provider: aws-lc-rs for curves, signatures and AEADs, RustCrypto for hashing.
//!
//! Hashing is RustCrypto's because a running hash and an HMAC live where they are put and allocate nothing, where aws-lc allocates for each; and
//! because a handshake makes some thirty HMACs of short strings and hashes two or three KiB. Measured on x86-64 with SHA extensions: an HMAC
//! under a new key takes 0.31 µs of SHA-256 and 1.04 of SHA-384 against aws-lc's 0.39 and 1.13; a KiB takes 1.1 and 1.9 µs against 0.7 and 1.9.
//!
//! Randomness: private values of key exchanges come from the caller's [`Random`]. Nonces, salts and blinding of signatures come from aws-lc's
//! own generator, which takes no other; a signing key therefore ignores the generator it is lent.
//!
//! Allocation: AEAD keys allocate when they are made (600 bytes kept), exchanges and signatures while they run; sealing, opening and
//! hashing never.

use aws_lc_rs::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::agreement;
use aws_lc_rs::digest;
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::rsa;
use aws_lc_rs::signature::{self, EcdsaKeyPair, KeyPair as _, ParsedPublicKey, RsaEncoding, VerificationAlgorithm};
use hmac::digest::{FixedOutput, Output};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest as _, Sha256, Sha384};

use super::{
    Aead, AeadAlgorithm, CryptoError, DIGEST_BYTES_MAX, Exchange, Hash, HashAlgorithm, KeyKind, NONCE_BYTES, Provider,
    PublicKey, Random, SIGNATURE_BYTES_MAX, Secret, Share, SigningKey, TAG_BYTES, Wiped, spki,
};
use crate::suite::{Group, SignatureScheme};

/// The fast provider.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fast;

/// Candidates for a P-256 private value that are drawn before giving up. One in 2^32 is out of range.
const DRAWS_MAX: usize = 8;

impl Provider for Fast {
    type Hash = FastHash;
    type Aead = FastAead;
    type Exchange = FastExchange;
    type SigningKey = FastSigningKey;

    fn name(&self) -> &'static str {
        "fast"
    }

    fn hash(&self, algorithm: HashAlgorithm) -> Result<FastHash, CryptoError> {
        Ok(FastHash(match algorithm {
            HashAlgorithm::Sha256 => Running::Sha256(Sha256::new()),
            HashAlgorithm::Sha384 => Running::Sha384(Sha384::new()),
        }))
    }

    fn hmac(&self, algorithm: HashAlgorithm, key: &[u8], parts: &[&[u8]]) -> Result<Secret, CryptoError> {
        match algorithm {
            HashAlgorithm::Sha256 => authenticate::<Hmac<Sha256>>(algorithm, key, parts),
            HashAlgorithm::Sha384 => authenticate::<Hmac<Sha384>>(algorithm, key, parts),
        }
    }

    fn aead(&self, algorithm: AeadAlgorithm, key: &[u8]) -> Result<FastAead, CryptoError> {
        let algorithm = match algorithm {
            AeadAlgorithm::Aes128Gcm => &aead::AES_128_GCM,
            AeadAlgorithm::Aes256Gcm => &aead::AES_256_GCM,
            AeadAlgorithm::ChaCha20Poly1305 => &aead::CHACHA20_POLY1305,
        };
        let key = UnboundKey::new(algorithm, key).map_err(|Unspecified| CryptoError::Failed)?;
        Ok(FastAead(LessSafeKey::new(key)))
    }

    fn exchange(&self, group: Group, random: &mut dyn Random) -> Result<FastExchange, CryptoError> {
        let algorithm = match group {
            Group::X25519 => &agreement::X25519,
            Group::Secp256r1 => &agreement::ECDH_P256,
        };
        for _ in 0..DRAWS_MAX {
            let mut private = Wiped::<32>::zeros();
            random.fill(&mut *private)?;
            let Ok(private) = agreement::PrivateKey::from_private_key(algorithm, &*private) else {
                continue;
            };
            let public = private
                .compute_public_key()
                .map_err(|Unspecified| CryptoError::Failed)?;
            let share = Share::copy(public.as_ref()).ok_or(CryptoError::Failed)?;
            return Ok(FastExchange { group, private, share });
        }
        Err(CryptoError::Failed)
    }

    /// Errors: [`CryptoError::Rejected`] for anything but ECDSA over P-256 or P-384 and RSA of 2048 to 4096 bits.
    fn signing_key(&self, pkcs8: &[u8]) -> Result<FastSigningKey, CryptoError> {
        if let Ok(pair) = EcdsaKeyPair::from_pkcs8(&signature::ECDSA_P256_SHA256_ASN1_SIGNING, pkcs8) {
            return Ok(FastSigningKey(Pair::P256(pair)));
        }
        if let Ok(pair) = EcdsaKeyPair::from_pkcs8(&signature::ECDSA_P384_SHA384_ASN1_SIGNING, pkcs8) {
            return Ok(FastSigningKey(Pair::P384(pair)));
        }
        let pair = rsa::KeyPair::from_pkcs8(pkcs8).map_err(|_| CryptoError::Rejected)?;
        let bits = modulus_bits(pair.public_key().as_ref()).ok_or(CryptoError::Rejected)?;
        if pair.public_modulus_len() > SIGNATURE_BYTES_MAX {
            return Err(CryptoError::Rejected);
        }
        Ok(FastSigningKey(Pair::Rsa(pair, bits)))
    }

    fn verify(
        &self,
        scheme: SignatureScheme,
        key: PublicKey<'_>,
        digest: &[u8],
        signature: &[u8],
    ) -> Result<(), CryptoError> {
        let algorithm = verification(scheme, key.kind).ok_or(CryptoError::Rejected)?;
        let digest = prehashed(scheme.hash(), digest).map_err(|_| CryptoError::Rejected)?;
        let bare = spki::bare(key).ok_or(CryptoError::Rejected)?;
        // The library takes RSA keys of up to 8192 bits; a signature is as long as its key's modulus.
        if signature.len() > SIGNATURE_BYTES_MAX {
            return Err(CryptoError::Rejected);
        }
        let key = ParsedPublicKey::new(algorithm, bare).map_err(|_| CryptoError::Rejected)?;
        key.verify_digest_sig(&digest, signature)
            .map_err(|Unspecified| CryptoError::Rejected)
    }
}

/// A running hash of [`Fast`].
#[derive(Clone)]
pub struct FastHash(Running);

#[derive(Clone)]
enum Running {
    Sha256(Sha256),
    Sha384(Sha384),
}

impl Hash for FastHash {
    fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            Running::Sha256(hash) => hash.update(bytes),
            Running::Sha384(hash) => hash.update(bytes),
        }
    }

    fn digest(&self) -> Secret {
        match &self.0 {
            Running::Sha256(hash) => finish(HashAlgorithm::Sha256, hash.clone()),
            Running::Sha384(hash) => finish(HashAlgorithm::Sha384, hash.clone()),
        }
        .unwrap_or(Secret::EMPTY)
    }

    fn fork(&self) -> Result<Self, CryptoError> {
        Ok(self.clone())
    }
}

/// A MAC over the parts, one after the other.
fn authenticate<M: Mac + KeyInit + FixedOutput>(
    algorithm: HashAlgorithm,
    key: &[u8],
    parts: &[&[u8]],
) -> Result<Secret, CryptoError> {
    let mut mac = <M as KeyInit>::new_from_slice(key).map_err(|_| CryptoError::Failed)?;
    parts.iter().for_each(|part| Mac::update(&mut mac, part));
    finish(algorithm, mac)
}

/// Writes an output where it is kept, so that no copy of it is left behind.
fn finish<D: FixedOutput>(algorithm: HashAlgorithm, state: D) -> Result<Secret, CryptoError> {
    let mut secret = Secret::zeros(algorithm);
    let out = <&mut Output<D>>::try_from(secret.bytes_mut()).map_err(|_| CryptoError::Failed)?;
    state.finalize_into(out);
    Ok(secret)
}

/// An AEAD key of [`Fast`].
pub struct FastAead(LessSafeKey);

impl Aead for FastAead {
    fn seal(&self, nonce: &[u8; NONCE_BYTES], aad: &[u8], data: &mut [u8]) -> Result<[u8; TAG_BYTES], CryptoError> {
        let mut tag = [0; TAG_BYTES];
        self.0
            .seal_in_place_scatter(Nonce::from(nonce), Aad::from(aad), data, &[], &mut tag)
            .map_err(|Unspecified| CryptoError::Failed)?;
        Ok(tag)
    }

    fn open(&self, nonce: &[u8; NONCE_BYTES], aad: &[u8], data: &mut [u8]) -> Result<(), CryptoError> {
        self.0
            .open_in_place(Nonce::from(nonce), Aad::from(aad), data)
            .map(|_| ())
            .map_err(|Unspecified| CryptoError::Rejected)
    }

    fn open_into(
        &self,
        nonce: &[u8; NONCE_BYTES],
        aad: &[u8],
        sealed: &[u8],
        out: &mut [u8],
    ) -> Result<(), CryptoError> {
        let (ciphertext, tag) = sealed.split_last_chunk::<TAG_BYTES>().ok_or(CryptoError::Rejected)?;
        self.0
            .open_separate_gather(Nonce::from(nonce), Aad::from(aad), ciphertext, tag, out)
            .map_err(|Unspecified| CryptoError::Rejected)
    }
}

/// An ephemeral key of [`Fast`].
pub struct FastExchange {
    group: Group,
    private: agreement::PrivateKey,
    share: Share,
}

impl Exchange for FastExchange {
    fn group(&self) -> Group {
        self.group
    }

    fn share(&self) -> Share {
        self.share.clone()
    }

    fn agree(self, peer: &[u8]) -> Result<Secret, CryptoError> {
        // The library would also take an encoded SubjectPublicKeyInfo, and compressed and hybrid points.
        let plain = match self.group {
            Group::X25519 => peer.len() == self.group.share_bytes(),
            Group::Secp256r1 => peer.len() == self.group.share_bytes() && peer.first() == Some(&0x04),
        };
        if !plain {
            return Err(CryptoError::Rejected);
        }
        let peer = agreement::UnparsedPublicKey::new(self.private.algorithm(), peer);
        agreement::agree(&self.private, peer, CryptoError::Rejected, secret)
    }
}

/// A signing key of [`Fast`].
pub struct FastSigningKey(Pair);

enum Pair {
    P256(EcdsaKeyPair),
    P384(EcdsaKeyPair),
    /// And the bits of its modulus.
    Rsa(rsa::KeyPair, u16),
}

impl SigningKey for FastSigningKey {
    fn kind(&self) -> KeyKind {
        match self.0 {
            Pair::P256(_) => KeyKind::P256,
            Pair::P384(_) => KeyKind::P384,
            Pair::Rsa(_, bits) => KeyKind::Rsa(bits),
        }
    }

    /// The library's own generator is used, not `random`.
    fn sign(
        &self,
        scheme: SignatureScheme,
        digest: &[u8],
        _random: &mut dyn Random,
        out: &mut [u8],
    ) -> Result<usize, CryptoError> {
        if !self.kind().signs_12(scheme) || digest.len() != scheme.hash().bytes() || out.len() < SIGNATURE_BYTES_MAX {
            return Err(CryptoError::Failed);
        }
        match &self.0 {
            Pair::P256(pair) => sign_ecdsa(pair, HashAlgorithm::Sha256, digest, out),
            Pair::P384(pair) => sign_ecdsa(pair, HashAlgorithm::Sha384, digest, out),
            Pair::Rsa(pair, _) => {
                let padding: &'static dyn RsaEncoding = match scheme {
                    SignatureScheme::RsaPssRsaeSha256 => &signature::RSA_PSS_SHA256,
                    SignatureScheme::RsaPssRsaeSha384 => &signature::RSA_PSS_SHA384,
                    SignatureScheme::RsaPkcs1Sha256 => &signature::RSA_PKCS1_SHA256,
                    SignatureScheme::RsaPkcs1Sha384 => &signature::RSA_PKCS1_SHA384,
                    SignatureScheme::EcdsaSecp256r1Sha256 | SignatureScheme::EcdsaSecp384r1Sha384 => {
                        return Err(CryptoError::Failed);
                    }
                };
                let digest = prehashed(scheme.hash(), digest)?;
                let bytes = pair.public_modulus_len();
                let out = out.get_mut(..bytes).ok_or(CryptoError::Failed)?;
                pair.sign_digest(padding, &digest, out)
                    .map_err(|Unspecified| CryptoError::Failed)?;
                Ok(bytes)
            }
        }
    }
}

/// ECDSA over any digest by a pair that the library binds to the hash of its curve's own length.
///
/// ECDSA signs the leftmost bits of a digest, as many as the curve's order has, read as a number (FIPS 186-5 §6.4.1): a longer digest cut
/// to the curve's length, and a shorter one after zeros, are the same number.
fn sign_ecdsa(pair: &EcdsaKeyPair, own: HashAlgorithm, digest: &[u8], out: &mut [u8]) -> Result<usize, CryptoError> {
    let mut number = [0; DIGEST_BYTES_MAX];
    let number = number.get_mut(..own.bytes()).ok_or(CryptoError::Failed)?;
    let taken = digest.get(..digest.len().min(own.bytes())).ok_or(CryptoError::Failed)?;
    let zeros = own.bytes().saturating_sub(taken.len());
    number
        .get_mut(zeros..)
        .ok_or(CryptoError::Failed)?
        .copy_from_slice(taken);
    let signature = pair
        .sign_digest(&prehashed(own, number)?)
        .map_err(|Unspecified| CryptoError::Failed)?;
    let signature = signature.as_ref();
    out.get_mut(..signature.len())
        .ok_or(CryptoError::Failed)?
        .copy_from_slice(signature);
    Ok(signature.len())
}

/// What checks a signature of `scheme` by a key of `kind`, if they suit each other at all.
fn verification(scheme: SignatureScheme, kind: KeyKind) -> Option<&'static dyn VerificationAlgorithm> {
    Some(match (kind, scheme) {
        (KeyKind::P256, SignatureScheme::EcdsaSecp256r1Sha256) => &signature::ECDSA_P256_SHA256_ASN1,
        (KeyKind::P256, SignatureScheme::EcdsaSecp384r1Sha384) => &signature::ECDSA_P256_SHA384_ASN1,
        (KeyKind::P384, SignatureScheme::EcdsaSecp256r1Sha256) => &signature::ECDSA_P384_SHA256_ASN1,
        (KeyKind::P384, SignatureScheme::EcdsaSecp384r1Sha384) => &signature::ECDSA_P384_SHA384_ASN1,
        (KeyKind::Rsa(_), SignatureScheme::RsaPssRsaeSha256) => &signature::RSA_PSS_2048_8192_SHA256,
        (KeyKind::Rsa(_), SignatureScheme::RsaPssRsaeSha384) => &signature::RSA_PSS_2048_8192_SHA384,
        (KeyKind::Rsa(_), SignatureScheme::RsaPkcs1Sha256) => &signature::RSA_PKCS1_2048_8192_SHA256,
        (KeyKind::Rsa(_), SignatureScheme::RsaPkcs1Sha384) => &signature::RSA_PKCS1_2048_8192_SHA384,
        _ => return None,
    })
}

/// A digest as the library wants it.
fn prehashed(hash: HashAlgorithm, digest: &[u8]) -> Result<digest::Digest, CryptoError> {
    let algorithm = match hash {
        HashAlgorithm::Sha256 => &digest::SHA256,
        HashAlgorithm::Sha384 => &digest::SHA384,
    };
    digest::Digest::import_less_safe(digest, algorithm).map_err(|Unspecified| CryptoError::Failed)
}

/// The bits of an RSA modulus of at least 2048 bits in an RSAPublicKey (RFC 8017 §A.1.1) as the library writes it: two-byte lengths, and a zero
/// byte before a number whose first bit is set.
fn modulus_bits(rsa_public_key: &[u8]) -> Option<u16> {
    let (sequence, rest) = rsa_public_key.split_first_chunk::<4>()?;
    let (integer, rest) = rest.split_first_chunk::<4>()?;
    let ([0x30, 0x82, ..], &[0x02, 0x82, high, low]) = (sequence, integer) else {
        return None;
    };
    let modulus = rest.get(..usize::from(u16::from_be_bytes([high, low])))?;
    let modulus = modulus.strip_prefix(&[0]).unwrap_or(modulus);
    let unused = modulus.first()?.leading_zeros();
    u16::try_from(u32::try_from(modulus.len()).ok()? * 8 - unused).ok()
}

fn secret(bytes: &[u8]) -> Result<Secret, CryptoError> {
    Secret::copy(bytes).ok_or(CryptoError::Failed)
}
