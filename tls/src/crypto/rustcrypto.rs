//! The provider for devices: RustCrypto's SHA-256, AES-128-GCM and P-256, and X25519 by its own feature. Nothing allocates.
//!
//! It is a client's, and it is what a TLS 1.3 server must speak (RFC 8446 §9.1) and no more, since each primitive is flash:
//! TLS_AES_128_GCM_SHA256, secp256r1 (P-256 checks the server's signature anyway) and `ecdsa_secp256r1_sha256`. It signs nothing:
//! [`NoKey`] is a type without values, so the linker keeps no code for it. A configuration that offers more than this fails with
//! [`CryptoError::Failed`] when the server takes it: [`SUITES`], [`GROUPS`] and [`SCHEMES`] are what to offer.
//!
//! Constant time: AES is bitsliced and GHASH multiplies without tables; scalars of exchanges go through complete formulas. A
//! signature's check is in variable time, and has nothing secret. Measured in flash by `tests/firmware.sh`.

use aes_gcm::Aes128Gcm;
use aes_gcm::aead::{AeadInOut, inout::InOutBuf};
use hmac::{Hmac, KeyInit, Mac};
use p256::ecdsa::signature::hazmat::PrehashVerifier;
use p256::ecdsa::{Signature, VerifyingKey};
use p256::elliptic_curve::sec1::ToSec1Point;
use sha2::digest::{FixedOutput, Output};
use sha2::{Digest as _, Sha256};

use super::{
    Aead, AeadAlgorithm, CryptoError, Exchange, Hash, HashAlgorithm, KeyKind, NONCE_BYTES, Provider, PublicKey, Random,
    Secret, Share, SigningKey, TAG_BYTES, Wiped, spki,
};
use crate::suite::{CipherSuite, Group, SignatureScheme};
use crate::x509::der;

/// The suites to offer.
pub const SUITES: &[CipherSuite] = &[CipherSuite::TLS_AES_128_GCM_SHA256];
/// The groups to offer.
#[cfg(feature = "rustcrypto-x25519")]
pub const GROUPS: &[Group] = &[Group::X25519, Group::Secp256r1];
/// The groups to offer.
#[cfg(not(feature = "rustcrypto-x25519"))]
pub const GROUPS: &[Group] = &[Group::Secp256r1];
/// The schemes by which the server may sign: its key is one of P-256.
pub const SCHEMES: &[SignatureScheme] = &[SignatureScheme::EcdsaSecp256r1Sha256];

/// Candidates for a P-256 private value that are drawn before giving up. One in 2^32 is out of range.
const DRAWS_MAX: usize = 8;

/// The provider.
#[derive(Clone, Copy, Debug, Default)]
pub struct RustCrypto;

impl Provider for RustCrypto {
    type Hash = SmallHash;
    type Aead = SmallAead;
    type Exchange = SmallExchange;
    type SigningKey = NoKey;

    fn name(&self) -> &'static str {
        "rustcrypto"
    }

    /// Errors: [`CryptoError::Failed`] for SHA-384.
    fn hash(&self, algorithm: HashAlgorithm) -> Result<SmallHash, CryptoError> {
        match algorithm {
            HashAlgorithm::Sha256 => Ok(SmallHash(Sha256::new())),
            HashAlgorithm::Sha384 => Err(CryptoError::Failed),
        }
    }

    /// Errors: [`CryptoError::Failed`] for SHA-384.
    fn hmac(&self, algorithm: HashAlgorithm, key: &[u8], parts: &[&[u8]]) -> Result<Secret, CryptoError> {
        if algorithm != HashAlgorithm::Sha256 {
            return Err(CryptoError::Failed);
        }
        let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(key).map_err(|_| CryptoError::Failed)?;
        parts.iter().for_each(|part| mac.update(part));
        finish(mac)
    }

    /// Errors: [`CryptoError::Failed`] for any other than AES-128-GCM, and for a key of another length.
    fn aead(&self, algorithm: AeadAlgorithm, key: &[u8]) -> Result<SmallAead, CryptoError> {
        match algorithm {
            AeadAlgorithm::Aes128Gcm => {
                let mut own = Wiped::zeros();
                *own = key.try_into().map_err(|_| CryptoError::Failed)?;
                Ok(SmallAead(own))
            }
            AeadAlgorithm::Aes256Gcm | AeadAlgorithm::ChaCha20Poly1305 => Err(CryptoError::Failed),
        }
    }

    /// Errors: [`CryptoError::Failed`] for X25519 without its feature.
    fn exchange(&self, group: Group, random: &mut dyn Random) -> Result<SmallExchange, CryptoError> {
        match group {
            #[cfg(feature = "rustcrypto-x25519")]
            Group::X25519 => {
                let mut private = Wiped::zeros();
                random.fill(&mut *private)?;
                Ok(SmallExchange(Private::X25519(private)))
            }
            #[cfg(not(feature = "rustcrypto-x25519"))]
            Group::X25519 => Err(CryptoError::Failed),
            Group::Secp256r1 => {
                for _ in 0..DRAWS_MAX {
                    let mut private = Wiped::<32>::zeros();
                    random.fill(&mut *private)?;
                    if let Ok(private) = p256::SecretKey::from_slice(&*private) {
                        return Ok(SmallExchange(Private::P256(private)));
                    }
                }
                Err(CryptoError::Failed)
            }
        }
    }

    /// Errors: always [`CryptoError::Rejected`].
    fn signing_key(&self, _pkcs8: &[u8]) -> Result<NoKey, CryptoError> {
        Err(CryptoError::Rejected)
    }

    /// Errors: [`CryptoError::Rejected`], also for every scheme and kind of key that is not of [`SCHEMES`].
    fn verify(
        &self,
        scheme: SignatureScheme,
        key: PublicKey<'_>,
        digest: &[u8],
        signature: &[u8],
    ) -> Result<(), CryptoError> {
        if (scheme, key.kind) != (SignatureScheme::EcdsaSecp256r1Sha256, KeyKind::P256) || digest.len() != 32 {
            return Err(CryptoError::Rejected);
        }
        let key = spki::bare(key).and_then(|point| VerifyingKey::from_sec1_bytes(point).ok());
        let verified = key
            .zip(signature_of(signature))
            .map(|(key, signature)| key.verify_prehash(digest, &signature));
        match verified {
            Some(Ok(())) => Ok(()),
            _ => Err(CryptoError::Rejected),
        }
    }
}

/// An ECDSA-Sig-Value (RFC 3279 §2.2.3) in its one DER form, both numbers within the curve's order.
fn signature_of(bytes: &[u8]) -> Option<Signature> {
    let mut numbers = der::sequence(bytes).ok()?;
    let (r, s) = (numbers.unsigned().ok()?, numbers.unsigned().ok()?);
    numbers.finish().ok()?;
    let mut fixed = [0; 64];
    for (half, number) in fixed.chunks_exact_mut(32).zip([r, s]) {
        half.get_mut(32_usize.checked_sub(number.len())?..)?
            .copy_from_slice(number);
    }
    Signature::from_slice(&fixed).ok()
}

/// A running hash of [`RustCrypto`].
#[derive(Clone, Debug)]
pub struct SmallHash(Sha256);

impl Hash for SmallHash {
    fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn digest(&self) -> Secret {
        finish(self.0.clone()).unwrap_or(Secret::EMPTY)
    }

    fn fork(&self) -> Result<Self, CryptoError> {
        Ok(self.clone())
    }
}

/// Writes an output where it is kept, so that no copy of it is left behind.
fn finish<D: FixedOutput>(state: D) -> Result<Secret, CryptoError> {
    let mut secret = Secret::zeros(HashAlgorithm::Sha256);
    let out = <&mut Output<D>>::try_from(secret.bytes_mut()).map_err(|_| CryptoError::Failed)?;
    state.finalize_into(out);
    Ok(secret)
}

/// An AEAD key of [`RustCrypto`]: the key alone. Its round keys would be 700 bytes in each direction and in every move of a session;
/// they are made anew for each record.
pub struct SmallAead(Wiped<16>);

impl SmallAead {
    fn expanded(&self) -> Aes128Gcm {
        Aes128Gcm::new((&*self.0).into())
    }
}

impl Aead for SmallAead {
    fn seal(&self, nonce: &[u8; NONCE_BYTES], aad: &[u8], data: &mut [u8]) -> Result<[u8; TAG_BYTES], CryptoError> {
        let tag = self
            .expanded()
            .encrypt_inout_detached(nonce.into(), aad, InOutBuf::from(data));
        tag.map(Into::into).map_err(|_| CryptoError::Failed)
    }

    fn open(&self, nonce: &[u8; NONCE_BYTES], aad: &[u8], data: &mut [u8]) -> Result<(), CryptoError> {
        let (text, tag) = data.split_last_chunk_mut::<TAG_BYTES>().ok_or(CryptoError::Rejected)?;
        let tag = (*tag).into();
        let opened = self
            .expanded()
            .decrypt_inout_detached(nonce.into(), aad, InOutBuf::from(&mut *text), &tag);
        opened.map_err(|_| {
            text.fill(0);
            CryptoError::Rejected
        })
    }

    fn open_into(
        &self,
        nonce: &[u8; NONCE_BYTES],
        aad: &[u8],
        sealed: &[u8],
        out: &mut [u8],
    ) -> Result<(), CryptoError> {
        let (text, tag) = sealed.split_last_chunk::<TAG_BYTES>().ok_or(CryptoError::Rejected)?;
        let tag = (*tag).into();
        let buffers = InOutBuf::new(text, &mut *out).map_err(|_| CryptoError::Failed)?;
        self.expanded()
            .decrypt_inout_detached(nonce.into(), aad, buffers, &tag)
            .map_err(|_| {
                out.fill(0);
                CryptoError::Rejected
            })
    }
}

/// An ephemeral key of [`RustCrypto`].
pub struct SmallExchange(Private);

enum Private {
    P256(p256::SecretKey),
    #[cfg(feature = "rustcrypto-x25519")]
    X25519(Wiped<32>),
}

impl Exchange for SmallExchange {
    fn group(&self) -> Group {
        match self.0 {
            Private::P256(_) => Group::Secp256r1,
            #[cfg(feature = "rustcrypto-x25519")]
            Private::X25519(_) => Group::X25519,
        }
    }

    /// Cost: the multiplication by the base point is made here, each time.
    fn share(&self) -> Share {
        let share = match &self.0 {
            Private::P256(private) => Share::copy(private.public_key().to_sec1_point(false).as_bytes()),
            #[cfg(feature = "rustcrypto-x25519")]
            Private::X25519(private) => {
                Share::copy(&x25519_dalek::x25519(**private, x25519_dalek::X25519_BASEPOINT_BYTES))
            }
        };
        share.unwrap_or(Share {
            bytes: [0; crate::suite::SHARE_BYTES_MAX],
            len: 0,
        })
    }

    fn agree(self, peer: &[u8]) -> Result<Secret, CryptoError> {
        match &self.0 {
            Private::P256(private) => {
                // The library would also take compressed points.
                if peer.len() != Group::Secp256r1.share_bytes() {
                    return Err(CryptoError::Rejected);
                }
                let peer = p256::PublicKey::from_sec1_bytes(peer).map_err(|_| CryptoError::Rejected)?;
                let shared = p256::ecdh::diffie_hellman(private.to_nonzero_scalar(), peer.as_affine());
                Secret::copy(shared.raw_secret_bytes()).ok_or(CryptoError::Failed)
            }
            #[cfg(feature = "rustcrypto-x25519")]
            Private::X25519(private) => {
                let peer = peer.try_into().map_err(|_| CryptoError::Rejected)?;
                let mut shared = Wiped::<32>::zeros();
                *shared = x25519_dalek::x25519(**private, peer);
                let secret = Secret::copy(&*shared).ok_or(CryptoError::Failed)?;
                if secret.is(&[0; 32]) {
                    return Err(CryptoError::Rejected);
                }
                Ok(secret)
            }
        }
    }
}

/// A private key that signs: there is none.
#[derive(Clone, Copy, Debug)]
pub enum NoKey {}

impl SigningKey for NoKey {
    fn kind(&self) -> KeyKind {
        match *self {}
    }

    fn sign(
        &self,
        _scheme: SignatureScheme,
        _digest: &[u8],
        _random: &mut dyn Random,
        _out: &mut [u8],
    ) -> Result<usize, CryptoError> {
        match *self {}
    }
}
