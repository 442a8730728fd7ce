//! The primitives that the engine is built over, behind one trait.
//!
//! A [`Provider`] is chosen at start. `mbedtls` is complete by itself; `fast` is aws-lc-rs; `rustcrypto` is for
//! devices that are clients. Firmware may bring its own.

#[cfg(feature = "arena")]
pub mod arena;
pub mod either;
#[cfg(feature = "fast")]
pub mod fast;
#[cfg(feature = "mbedtls")]
pub(crate) mod ffi;
#[cfg(feature = "mbedtls")]
pub mod mbedtls;
#[cfg(feature = "rustcrypto")]
pub mod rustcrypto;
#[cfg(any(feature = "fast", feature = "mbedtls", feature = "rustcrypto"))]
mod spki;
#[cfg(feature = "system-random")]
pub mod system;
mod wiped;

pub use wiped::Wiped;

use crate::suite::{Group, SHARE_BYTES_MAX, SignatureScheme};

/// A hash of a key schedule or signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HashAlgorithm {
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
}

/// The longest digest of any hash here.
pub const DIGEST_BYTES_MAX: usize = 48;

impl HashAlgorithm {
    /// Bytes of a digest.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha384 => 48,
        }
    }
}

/// What protects records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AeadAlgorithm {
    /// AES-128-GCM.
    Aes128Gcm,
    /// AES-256-GCM.
    Aes256Gcm,
    /// ChaCha20-Poly1305.
    ChaCha20Poly1305,
}

/// Bytes of every AEAD's tag.
pub const TAG_BYTES: usize = 16;
/// Bytes of every AEAD's nonce.
pub const NONCE_BYTES: usize = 12;
/// Bytes of the longest AEAD key.
pub const KEY_BYTES_MAX: usize = 32;

impl AeadAlgorithm {
    /// Bytes of a key.
    #[must_use]
    pub const fn key_bytes(self) -> usize {
        match self {
            Self::Aes128Gcm => 16,
            Self::Aes256Gcm | Self::ChaCha20Poly1305 => 32,
        }
    }
}

/// A digest, MAC or key-schedule secret of at most [`DIGEST_BYTES_MAX`] bytes. Wiped when dropped.
#[derive(Clone)]
pub struct Secret {
    bytes: Wiped<DIGEST_BYTES_MAX>,
    len: u8,
}

impl Secret {
    /// Nothing.
    pub const EMPTY: Self = Self {
        bytes: Wiped::zeros(),
        len: 0,
    };

    /// As many zero bytes as a digest of `hash` has.
    #[must_use]
    pub const fn zeros(hash: HashAlgorithm) -> Self {
        Self {
            bytes: Wiped::zeros(),
            len: hash.bytes() as u8,
        }
    }

    /// A copy of `bytes`, or `None` when there are more than [`DIGEST_BYTES_MAX`].
    #[must_use]
    pub fn copy(bytes: &[u8]) -> Option<Self> {
        let mut secret = Self::EMPTY;
        secret.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        secret.len = bytes.len() as u8;
        Some(secret)
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// Its bytes, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.bytes.get_mut(..usize::from(self.len)).unwrap_or_default()
    }

    /// Whether it is `other`, in a time that tells nothing of where they differ.
    #[must_use]
    pub fn is(&self, other: &[u8]) -> bool {
        use subtle::ConstantTimeEq;
        self.bytes().ct_eq(other).into()
    }
}

impl core::fmt::Debug for Secret {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Secret({} bytes)", self.len)
    }
}

/// The public half of a key exchange.
#[derive(Clone, Debug)]
pub struct Share {
    bytes: [u8; SHARE_BYTES_MAX],
    len: u8,
}

impl Share {
    /// A copy of `bytes`, or `None` when there are more than [`SHARE_BYTES_MAX`].
    #[must_use]
    pub fn copy(bytes: &[u8]) -> Option<Self> {
        let mut share = Self {
            bytes: [0; SHARE_BYTES_MAX],
            len: bytes.len() as u8,
        };
        share.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(share)
    }

    /// Its bytes as they go on the wire: 32 for X25519, an uncompressed point for P-256.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }
}

/// Why a primitive did not do what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CryptoError {
    /// The input is wrong: a tag, signature or point that does not hold. The peer's doing.
    Rejected,
    /// The fixed heap is full: this operation is refused, the next may work.
    ArenaFull,
    /// The library or its random source failed.
    Failed,
}

/// Randomness, from above.
pub trait Random {
    /// Fills `out`.
    fn fill(&mut self, out: &mut [u8]) -> Result<(), CryptoError>;
}

/// A running hash that can be read at any time.
pub trait Hash: Sized {
    /// Takes more bytes.
    fn update(&mut self, bytes: &[u8]);
    /// The digest of everything so far; the hash goes on.
    fn digest(&self) -> Secret;
    /// A second one that stands where this stands.
    fn fork(&self) -> Result<Self, CryptoError>;
}

/// A key of an AEAD. Sealing and opening allocate nothing.
pub trait Aead {
    /// Encrypts `data` in place and gives the tag.
    fn seal(&self, nonce: &[u8; NONCE_BYTES], aad: &[u8], data: &mut [u8]) -> Result<[u8; TAG_BYTES], CryptoError>;

    /// Decrypts `data` (ciphertext ‖ tag) in place; the plaintext is its first `data.len() - TAG_BYTES` bytes.
    ///
    /// Errors: [`CryptoError::Rejected`]; `data` holds nothing readable then.
    fn open(&self, nonce: &[u8; NONCE_BYTES], aad: &[u8], data: &mut [u8]) -> Result<(), CryptoError>;

    /// Decrypts `sealed` (ciphertext ‖ tag) into `out`, which is exactly as long as the ciphertext.
    ///
    /// Errors: [`CryptoError::Rejected`]; `out` holds nothing readable then.
    fn open_into(
        &self,
        nonce: &[u8; NONCE_BYTES],
        aad: &[u8],
        sealed: &[u8],
        out: &mut [u8],
    ) -> Result<(), CryptoError>;
}

/// An ephemeral private key, used once.
pub trait Exchange: Sized {
    /// Its group.
    fn group(&self) -> Group;
    /// What the peer gets.
    fn share(&self) -> Share;
    /// The shared secret: 32 bytes for both groups here.
    ///
    /// Errors: [`CryptoError::Rejected`] for a point off the curve, and for an all-zero X25519 result (RFC 7748 §6.1).
    fn agree(self, peer: &[u8]) -> Result<Secret, CryptoError>;
}

/// What a public or private key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// ECDSA over P-256.
    P256,
    /// ECDSA over P-384.
    P384,
    /// RSA with `rsaEncryption` keys, by the bits of its modulus.
    Rsa(u16),
}

impl KeyKind {
    /// Whether a key of this kind can sign by `scheme` in TLS 1.3 (`RsaPkcs1*` never; ECDSA by its own curve only).
    #[must_use]
    pub const fn signs_13(self, scheme: SignatureScheme) -> bool {
        matches!(
            (self, scheme),
            (Self::P256, SignatureScheme::EcdsaSecp256r1Sha256)
                | (Self::P384, SignatureScheme::EcdsaSecp384r1Sha384)
                | (
                    Self::Rsa(_),
                    SignatureScheme::RsaPssRsaeSha256 | SignatureScheme::RsaPssRsaeSha384
                )
        )
    }

    /// Whether a key of this kind can sign by `scheme` in TLS 1.2 (ECDSA: the scheme names only the hash).
    #[must_use]
    pub const fn signs_12(self, scheme: SignatureScheme) -> bool {
        matches!(
            (self, scheme),
            (
                Self::P256 | Self::P384,
                SignatureScheme::EcdsaSecp256r1Sha256 | SignatureScheme::EcdsaSecp384r1Sha384
            ) | (
                Self::Rsa(_),
                SignatureScheme::RsaPssRsaeSha256
                    | SignatureScheme::RsaPssRsaeSha384
                    | SignatureScheme::RsaPkcs1Sha256
                    | SignatureScheme::RsaPkcs1Sha384
            )
        )
    }
}

/// A public key as a certificate bears it.
#[derive(Clone, Copy, Debug)]
pub struct PublicKey<'a> {
    /// What it is.
    pub kind: KeyKind,
    /// Its SubjectPublicKeyInfo (RFC 5280 §4.1), DER.
    pub spki: &'a [u8],
}

/// The longest signature of any key here: RSA of 4096 bits.
pub const SIGNATURE_BYTES_MAX: usize = 512;

/// A private key that signs. Loading may allocate and does the first signature's set-up; signing is what a handshake costs.
pub trait SigningKey {
    /// What it is.
    fn kind(&self) -> KeyKind;
    /// Signs `digest`, made with `scheme.hash()`, into `out` and gives the signature's length. ECDSA signatures are DER (RFC 8446 §4.2.3).
    ///
    /// Errors: [`CryptoError::Failed`] when the key cannot sign by `scheme` or `out` is shorter than [`SIGNATURE_BYTES_MAX`].
    fn sign(
        &self,
        scheme: SignatureScheme,
        digest: &[u8],
        random: &mut dyn Random,
        out: &mut [u8],
    ) -> Result<usize, CryptoError>;
}

/// Every primitive that a handshake and its records need.
pub trait Provider {
    /// A running hash.
    type Hash: Hash;
    /// An AEAD key.
    type Aead: Aead;
    /// An ephemeral private key.
    type Exchange: Exchange;
    /// A private key that signs.
    type SigningKey: SigningKey;

    /// Its name in logs and metrics.
    fn name(&self) -> &'static str;

    /// A hash of nothing yet.
    fn hash(&self, algorithm: HashAlgorithm) -> Result<Self::Hash, CryptoError>;

    /// HMAC (RFC 2104) under `key` over the parts, one after the other.
    fn hmac(&self, algorithm: HashAlgorithm, key: &[u8], parts: &[&[u8]]) -> Result<Secret, CryptoError>;

    /// An AEAD key of exactly `algorithm.key_bytes()` bytes.
    fn aead(&self, algorithm: AeadAlgorithm, key: &[u8]) -> Result<Self::Aead, CryptoError>;

    /// An ephemeral key. The private value comes from `random`, so that a replay can repeat it.
    fn exchange(&self, group: Group, random: &mut dyn Random) -> Result<Self::Exchange, CryptoError>;

    /// A signing key from unencrypted PKCS#8 (RFC 5958), DER. Allocates; for set-up only.
    fn signing_key(&self, pkcs8: &[u8]) -> Result<Self::SigningKey, CryptoError>;

    /// Whether `signature` over `digest`, made with `scheme.hash()`, is `key`'s. Whether `scheme` suits the key's kind is asked by the caller
    /// ([`KeyKind::signs_13`], [`KeyKind::signs_12`]).
    ///
    /// Errors: [`CryptoError::Rejected`].
    fn verify(
        &self,
        scheme: SignatureScheme,
        key: PublicKey<'_>,
        digest: &[u8],
        signature: &[u8],
    ) -> Result<(), CryptoError>;
}
