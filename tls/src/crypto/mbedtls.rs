//! The portable provider: every primitive from Mbed TLS 2.28.
//!
//! Randomness: private values, nonces of ECDSA, salts of PSS and all blinding come from the caller's [`Random`].
//!
//! Allocation: hashing, sealing and opening allocate nothing; all else allocates from the library's heap, the arena where there is one, and gives
//! back all but what its keys keep: 736 bytes for a key of AES-GCM, 256 for one of ChaCha20-Poly1305.
//!
//! The curves' tables of multiples of the generator, which the library makes when first used, are made at set-up, so what a handshake costs
//! does not depend on which came first.

use mbedtls::hash::{Hmac, Type};
use zeroize::Zeroizing;

use super::ffi::{self, ChaChaPoly, Curve, Gcm, Key, KeyPair, Padding, Refusal, Rsa};
use super::{
    Aead, AeadAlgorithm, CryptoError, DIGEST_BYTES_MAX, Exchange, Hash, HashAlgorithm, KEY_BYTES_MAX, KeyKind,
    NONCE_BYTES, Provider, PublicKey, Random, SIGNATURE_BYTES_MAX, Secret, Share, SigningKey, TAG_BYTES, spki,
};
use crate::suite::{Group, SHARE_BYTES_MAX, SignatureScheme};

/// The portable provider. One for each thread.
pub struct Mbedtls {
    p256: KeyPair,
    p384: KeyPair,
    x25519: KeyPair,
}

/// Candidates for a P-256 private value that are drawn before giving up. One in 2^32 is out of range.
const DRAWS_MAX: usize = 8;
/// The longest public exponent of an RSA key: a longer one makes checking a signature as dear as making one.
const EXPONENT_BITS_MAX: usize = 33;
/// RSA keys that are taken, by the bits of their modulus.
const RSA_BITS: core::ops::RangeInclusive<usize> = 2048..=SIGNATURE_BYTES_MAX * 8;

impl Mbedtls {
    /// Loads the curves and makes their tables.
    ///
    /// # Errors
    ///
    /// [`CryptoError::ArenaFull`], [`CryptoError::Failed`].
    pub fn new() -> Result<Self, CryptoError> {
        let mark = Mark::now();
        let failed = |_: Refusal| mark.blame(CryptoError::Failed);
        let provider = Self {
            p256: KeyPair::new(Curve::P256).map_err(failed)?,
            p384: KeyPair::new(Curve::P384).map_err(failed)?,
            x25519: KeyPair::new(Curve::X25519).map_err(failed)?,
        };
        for pair in [&provider.p256, &provider.p384] {
            pair.set_private(&[1]).map_err(failed)?;
            pair.multiply_generator(&mut Known).map_err(failed)?;
            pair.clear();
        }
        Ok(provider)
    }

    fn curve(&self, group: Group) -> &KeyPair {
        match group {
            Group::X25519 => &self.x25519,
            Group::Secp256r1 => &self.p256,
        }
    }
}

/// Blinds what is not secret.
struct Known;

impl Random for Known {
    fn fill(&mut self, out: &mut [u8]) -> Result<(), CryptoError> {
        out.fill(0x5a);
        Ok(())
    }
}

impl Provider for Mbedtls {
    type Hash = MbedtlsHash;
    type Aead = MbedtlsAead;
    type Exchange = MbedtlsExchange;
    type SigningKey = MbedtlsSigningKey;

    fn name(&self) -> &'static str {
        "mbedtls"
    }

    fn hash(&self, algorithm: HashAlgorithm) -> Result<MbedtlsHash, CryptoError> {
        match algorithm {
            HashAlgorithm::Sha256 => ffi::Sha256::new().map(Running::Sha256),
            HashAlgorithm::Sha384 => ffi::Sha384::new().map(Running::Sha384),
        }
        .map(MbedtlsHash)
        .map_err(|Refusal| CryptoError::Failed)
    }

    fn hmac(&self, algorithm: HashAlgorithm, key: &[u8], parts: &[&[u8]]) -> Result<Secret, CryptoError> {
        let mark = Mark::now();
        let failed = |_| mark.blame(CryptoError::Failed);
        let kind = match algorithm {
            HashAlgorithm::Sha256 => Type::Sha256,
            HashAlgorithm::Sha384 => Type::Sha384,
        };
        let mut mac = Hmac::new(kind, key).map_err(failed)?;
        for part in parts {
            mac.update(part).map_err(failed)?;
        }
        let mut secret = Secret::zeros(algorithm);
        mac.finish(secret.bytes_mut()).map_err(failed)?;
        Ok(secret)
    }

    fn aead(&self, algorithm: AeadAlgorithm, key: &[u8]) -> Result<MbedtlsAead, CryptoError> {
        if key.len() != algorithm.key_bytes() {
            return Err(CryptoError::Failed);
        }
        let mark = Mark::now();
        match algorithm {
            AeadAlgorithm::Aes128Gcm | AeadAlgorithm::Aes256Gcm => Gcm::new(key).map(Cipher::Gcm),
            AeadAlgorithm::ChaCha20Poly1305 => key
                .first_chunk::<KEY_BYTES_MAX>()
                .ok_or(Refusal)
                .and_then(ChaChaPoly::new)
                .map(Cipher::ChaChaPoly),
        }
        .map(MbedtlsAead)
        .map_err(|Refusal| mark.blame(CryptoError::Failed))
    }

    fn exchange(&self, group: Group, random: &mut dyn Random) -> Result<MbedtlsExchange, CryptoError> {
        let mark = Mark::now();
        let pair = self.curve(group);
        for _ in 0..DRAWS_MAX {
            let mut private = Zeroizing::new([0; 32]);
            random.fill(&mut *private)?;
            if group == Group::X25519 {
                clamp(&mut private);
            }
            let mut share = [0; SHARE_BYTES_MAX];
            let written = pair
                .set_private(&*private)
                .and_then(|()| pair.multiply_generator(random))
                .and_then(|()| pair.write_point(&mut share));
            pair.clear();
            let Ok(bytes) = written else {
                match mark.blame(CryptoError::Rejected) {
                    CryptoError::Rejected => continue,
                    full => return Err(full),
                }
            };
            let share = share.get(..bytes).and_then(Share::copy).ok_or(CryptoError::Failed)?;
            let mut blinding = Zeroizing::new([0; 32]);
            random.fill(&mut *blinding)?;
            return Ok(MbedtlsExchange {
                group,
                private,
                blinding,
                share,
            });
        }
        Err(CryptoError::Failed)
    }

    /// Errors: [`CryptoError::Rejected`] for anything but ECDSA over P-256 or P-384 and RSA of 2048 to 4096 bits, and for halves that do not
    /// belong together.
    fn signing_key(&self, pkcs8: &[u8]) -> Result<MbedtlsSigningKey, CryptoError> {
        let mark = Mark::now();
        let rejected = |_: Refusal| mark.blame(CryptoError::Rejected);
        match ffi::private_key(pkcs8).map_err(rejected)? {
            Key::Ec(curve, pair) => {
                let kind = match curve {
                    Curve::P256 => KeyKind::P256,
                    Curve::P384 => KeyKind::P384,
                    Curve::X25519 => return Err(CryptoError::Rejected),
                };
                // Makes the table. That the point stays what it was, parsing has seen to.
                pair.multiply_generator(&mut Known).map_err(rejected)?;
                Ok(MbedtlsSigningKey(Signer::Ec(kind, pair)))
            }
            Key::Rsa(key) => {
                let bits = rsa_bits(&key).ok_or(CryptoError::Rejected)?;
                Ok(MbedtlsSigningKey(Signer::Rsa(bits, key)))
            }
        }
    }

    fn verify(
        &self,
        scheme: SignatureScheme,
        key: PublicKey<'_>,
        digest: &[u8],
        signature: &[u8],
    ) -> Result<(), CryptoError> {
        let hash = scheme.hash();
        if digest.len() != hash.bytes() || !key.kind.signs_12(scheme) {
            return Err(CryptoError::Rejected);
        }
        let bare = spki::bare(key).ok_or(CryptoError::Rejected)?;
        let mark = Mark::now();
        match key.kind {
            KeyKind::P256 => verify_ecdsa(&self.p256, bare, digest, signature),
            KeyKind::P384 => verify_ecdsa(&self.p384, bare, digest, signature),
            KeyKind::Rsa(_) => Rsa::from_public_key(bare).and_then(|key| {
                rsa_bits(&key).ok_or(Refusal)?;
                key.verify(padding(scheme).ok_or(Refusal)?, hash, digest, signature)
            }),
        }
        .map_err(|Refusal| mark.blame(CryptoError::Rejected))
    }
}

/// A moment before an operation of mbedtls, which tells afterwards whether it failed for want of memory: not every function of the library says so.
#[derive(Clone, Copy, Debug)]
pub struct Mark(usize);

impl Mark {
    /// Now.
    #[must_use]
    pub fn now() -> Self {
        Self(refused())
    }

    /// [`CryptoError::ArenaFull`] if the arena refused an allocation since, `otherwise` if not.
    #[must_use]
    pub fn blame(self, otherwise: CryptoError) -> CryptoError {
        if refused() == self.0 {
            otherwise
        } else {
            CryptoError::ArenaFull
        }
    }
}

fn refused() -> usize {
    #[cfg(feature = "arena")]
    let refused = super::arena::refused();
    #[cfg(not(feature = "arena"))]
    let refused = 0;
    refused
}

/// A running hash of [`Mbedtls`].
#[derive(Clone)]
pub struct MbedtlsHash(Running);

#[derive(Clone)]
enum Running {
    Sha256(ffi::Sha256),
    Sha384(ffi::Sha384),
}

/// The library's software hashes cannot fail; were one to, the digest would be empty and equal to no other.
impl Hash for MbedtlsHash {
    fn update(&mut self, bytes: &[u8]) {
        let _never_fails = match &mut self.0 {
            Running::Sha256(hash) => hash.update(bytes),
            Running::Sha384(hash) => hash.update(bytes),
        };
    }

    fn digest(&self) -> Secret {
        let mut bytes = Zeroizing::new([0; DIGEST_BYTES_MAX]);
        let digest = match &self.0 {
            Running::Sha256(hash) => bytes
                .first_chunk_mut()
                .map(|out| hash.digest(out).map(|()| out.as_slice())),
            Running::Sha384(hash) => bytes
                .first_chunk_mut()
                .map(|out| hash.digest(out).map(|()| out.as_slice())),
        };
        digest
            .and_then(Result::ok)
            .and_then(Secret::copy)
            .unwrap_or(Secret::EMPTY)
    }

    fn fork(&self) -> Result<Self, CryptoError> {
        Ok(self.clone())
    }
}

/// An AEAD key of [`Mbedtls`].
pub struct MbedtlsAead(Cipher);

enum Cipher {
    Gcm(Gcm),
    ChaChaPoly(ChaChaPoly),
}

impl Aead for MbedtlsAead {
    fn seal(&self, nonce: &[u8; NONCE_BYTES], aad: &[u8], data: &mut [u8]) -> Result<[u8; TAG_BYTES], CryptoError> {
        let mut tag = [0; TAG_BYTES];
        match &self.0 {
            Cipher::Gcm(key) => key.seal(nonce, aad, data, &mut tag),
            Cipher::ChaChaPoly(key) => key.seal(nonce, aad, data, &mut tag),
        }
        .map_err(|Refusal| CryptoError::Failed)?;
        Ok(tag)
    }

    fn open(&self, nonce: &[u8; NONCE_BYTES], aad: &[u8], data: &mut [u8]) -> Result<(), CryptoError> {
        let (text, tag) = data.split_last_chunk_mut().ok_or(CryptoError::Rejected)?;
        match &self.0 {
            Cipher::Gcm(key) => key.open(nonce, aad, tag, text),
            Cipher::ChaChaPoly(key) => key.open(nonce, aad, tag, text),
        }
        .map_err(|Refusal| CryptoError::Rejected)
    }

    fn open_into(
        &self,
        nonce: &[u8; NONCE_BYTES],
        aad: &[u8],
        sealed: &[u8],
        out: &mut [u8],
    ) -> Result<(), CryptoError> {
        let (text, tag) = sealed.split_last_chunk().ok_or(CryptoError::Rejected)?;
        match &self.0 {
            Cipher::Gcm(key) => key.open_into(nonce, aad, tag, text, out),
            Cipher::ChaChaPoly(key) => key.open_into(nonce, aad, tag, text, out),
        }
        .map_err(|Refusal| CryptoError::Rejected)
    }
}

/// An ephemeral key of [`Mbedtls`].
pub struct MbedtlsExchange {
    group: Group,
    /// Big endian.
    private: Zeroizing<[u8; 32]>,
    /// What blinds the agreement.
    blinding: Zeroizing<[u8; 32]>,
    share: Share,
}

impl Exchange for MbedtlsExchange {
    fn group(&self) -> Group {
        self.group
    }

    fn share(&self) -> Share {
        self.share.clone()
    }

    fn agree(self, peer: &[u8]) -> Result<Secret, CryptoError> {
        let mark = Mark::now();
        let rejected = |_: Refusal| mark.blame(CryptoError::Rejected);
        let pair = KeyPair::new(match self.group {
            Group::X25519 => Curve::X25519,
            Group::Secp256r1 => Curve::P256,
        })
        .map_err(rejected)?;
        pair.read_point(peer).map_err(rejected)?;
        pair.set_private(&*self.private).map_err(rejected)?;
        pair.multiply_point(&mut Stretched {
            seed: &self.blinding,
            drawn: 0,
        })
        .map_err(rejected)?;
        let mut point = Zeroizing::new([0; SHARE_BYTES_MAX]);
        pair.write_point(&mut *point).map_err(rejected)?;
        match self.group {
            Group::X25519 => {
                let shared = point.get(..32).and_then(Secret::copy).ok_or(CryptoError::Failed)?;
                // The library refuses the points that lead here; RFC 7748 §6.1 asks for this check.
                if shared.is(&[0; 32]) {
                    return Err(CryptoError::Rejected);
                }
                Ok(shared)
            }
            // The first coordinate, which may well be zero.
            Group::Secp256r1 => point.get(1..33).and_then(Secret::copy).ok_or(CryptoError::Failed),
        }
    }
}

/// Makes 32 random bytes, least significant first as RFC 7748 §5 has them, a private value of X25519, most significant first.
fn clamp(private: &mut [u8; 32]) {
    let [first, .., last] = private;
    *first &= 0xf8;
    *last = *last & 0x7f | 0x40;
    private.reverse();
}

/// As many random bytes from a seed as blinding takes: SHA-256 of the seed and a counter.
struct Stretched<'s> {
    seed: &'s [u8; 32],
    drawn: u32,
}

impl Random for Stretched<'_> {
    fn fill(&mut self, out: &mut [u8]) -> Result<(), CryptoError> {
        let failed = |Refusal| CryptoError::Failed;
        for chunk in out.chunks_mut(32) {
            let mut hash = ffi::Sha256::new().map_err(failed)?;
            hash.update(self.seed).map_err(failed)?;
            hash.update(&self.drawn.to_be_bytes()).map_err(failed)?;
            let mut block = Zeroizing::new([0; 32]);
            hash.digest(&mut block).map_err(failed)?;
            block.iter().zip(chunk).for_each(|(from, to)| *to = *from);
            self.drawn = self.drawn.checked_add(1).ok_or(CryptoError::Failed)?;
        }
        Ok(())
    }
}

/// A signing key of [`Mbedtls`].
pub struct MbedtlsSigningKey(Signer);

enum Signer {
    /// Of the curve that the kind names.
    Ec(KeyKind, KeyPair),
    /// With the bits of its modulus.
    Rsa(u16, Rsa),
}

impl SigningKey for MbedtlsSigningKey {
    fn kind(&self) -> KeyKind {
        match &self.0 {
            Signer::Ec(kind, _) => *kind,
            Signer::Rsa(bits, _) => KeyKind::Rsa(*bits),
        }
    }

    fn sign(
        &self,
        scheme: SignatureScheme,
        digest: &[u8],
        random: &mut dyn Random,
        out: &mut [u8],
    ) -> Result<usize, CryptoError> {
        let hash = scheme.hash();
        if !self.kind().signs_12(scheme) || digest.len() != hash.bytes() || out.len() < SIGNATURE_BYTES_MAX {
            return Err(CryptoError::Failed);
        }
        let mark = Mark::now();
        match &self.0 {
            Signer::Ec(_, pair) => pair.sign(digest, random, out),
            Signer::Rsa(_, key) => padding(scheme)
                .ok_or(Refusal)
                .and_then(|padding| key.sign(padding, hash, digest, random, out)),
        }
        .map_err(|Refusal| mark.blame(CryptoError::Failed))
    }
}

/// How a scheme of RSA pads.
const fn padding(scheme: SignatureScheme) -> Option<Padding> {
    match scheme {
        SignatureScheme::RsaPkcs1Sha256 | SignatureScheme::RsaPkcs1Sha384 => Some(Padding::Pkcs1),
        SignatureScheme::RsaPssRsaeSha256 | SignatureScheme::RsaPssRsaeSha384 => Some(Padding::Pss),
        SignatureScheme::EcdsaSecp256r1Sha256 | SignatureScheme::EcdsaSecp384r1Sha384 => None,
    }
}

/// The bits of a key that is taken.
fn rsa_bits(key: &Rsa) -> Option<u16> {
    let bits = key.bits();
    (RSA_BITS.contains(&bits) && key.exponent_bits() <= EXPONENT_BITS_MAX).then_some(bits as u16)
}

/// Checks an ECDSA signature on a curve that keeps its table.
fn verify_ecdsa(curve: &KeyPair, point: &[u8], digest: &[u8], signature: &[u8]) -> Result<(), Refusal> {
    if !is_der(signature) {
        return Err(Refusal);
    }
    let verified = curve.read_point(point).and_then(|()| curve.verify(digest, signature));
    curve.clear();
    verified
}

/// Whether it is an Ecdsa-Sig-Value (RFC 3279 §2.2.3) in DER, of positive numbers: the library reads BER, and numbers without their sign.
fn is_der(signature: &[u8]) -> bool {
    let numbers = tagged(0x30, signature).filter(|(_, rest)| rest.is_empty());
    let Some((first, second)) = numbers.and_then(|(numbers, _)| tagged(0x02, numbers)) else {
        return false;
    };
    let Some((second, [])) = tagged(0x02, second) else {
        return false;
    };
    [first, second].iter().all(|number| match number {
        [0, next, ..] => next & 0x80 != 0,
        [first, ..] => first & 0x80 == 0,
        [] => false,
    })
}

/// The content of an element with that tag and a length below 256 in its shortest form, and what follows it.
fn tagged(tag: u8, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&found, bytes) = bytes.split_first()?;
    let (bytes_of_content, bytes) = match bytes {
        [short @ 0..=0x7f, rest @ ..] => (*short, rest),
        [0x81, long @ 0x80..=0xff, rest @ ..] => (*long, rest),
        _ => return None,
    };
    bytes
        .split_at_checked(usize::from(bytes_of_content))
        .filter(|_| found == tag)
}
