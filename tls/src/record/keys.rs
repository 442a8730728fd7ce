//! What protects one direction.

use zeroize::{Zeroize, ZeroizeOnDrop};

use super::HEADER_BYTES;
use super::header::Header;
use crate::crypto::{AeadAlgorithm, CryptoError, NONCE_BYTES, Provider, TAG_BYTES};

/// Records that one AES-GCM key may protect in TLS 1.3: below the 2^24.5 full-size ones of RFC 8446 §5.5.
pub const GCM_RECORDS_MAX: u64 = 1 << 24;

/// Bytes of nonce on the wire, before the ciphertext, for AES-GCM in TLS 1.2.
pub(super) const EXPLICIT_BYTES: usize = 8;

/// How a record's nonce comes from its sequence number. Wiped when dropped.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub enum Nonces {
    /// XOR with a fixed part: TLS 1.3 (RFC 8446 §5.3) and ChaCha20-Poly1305 in TLS 1.2 (RFC 7905). Nothing of it is on the wire.
    Xor([u8; NONCE_BYTES]),
    /// AES-GCM in TLS 1.2 (RFC 5288): four fixed bytes, and eight on the wire before the ciphertext, for which we take the sequence number.
    Explicit([u8; 4]),
}

impl Nonces {
    /// The nonce of a record; `variable` is its sequence number, or what the wire says of it.
    pub(super) fn nonce(&self, variable: [u8; 8]) -> [u8; NONCE_BYTES] {
        let mut nonce = [0; NONCE_BYTES];
        let (fixed, counted) = nonce.split_at_mut(NONCE_BYTES - variable.len());
        counted.copy_from_slice(&variable);
        match self {
            Self::Xor(iv) => {
                for (byte, iv) in nonce.iter_mut().zip(iv) {
                    *byte ^= iv;
                }
            }
            Self::Explicit(four) => fixed.copy_from_slice(four),
        }
        nonce
    }
}

/// An AEAD key and its nonces. Sequence numbers begin at zero with it.
pub struct TrafficKeys<P: Provider> {
    /// The key.
    pub aead: P::Aead,
    /// Its nonces.
    pub nonces: Nonces,
    /// Whether records are TLS 1.3's: the type inside, padding, a header that always says application data.
    pub is_13: bool,
    /// Records that may be sealed with it.
    pub records_max: u64,
}

impl<P: Provider> TrafficKeys<P> {
    /// TLS 1.3's: `key` of `algorithm.key_bytes()` and the `iv` beside it (RFC 8446 §7.3).
    pub fn tls13(
        provider: &P,
        algorithm: AeadAlgorithm,
        key: &[u8],
        iv: [u8; NONCE_BYTES],
    ) -> Result<Self, CryptoError> {
        Ok(Self {
            aead: provider.aead(algorithm, key)?,
            nonces: Nonces::Xor(iv),
            is_13: true,
            records_max: match algorithm {
                AeadAlgorithm::Aes128Gcm | AeadAlgorithm::Aes256Gcm => GCM_RECORDS_MAX,
                AeadAlgorithm::ChaCha20Poly1305 => u64::MAX,
            },
        })
    }

    /// TLS 1.2's: `key` of `algorithm.key_bytes()` and the `fixed_iv` beside it, as many bytes as [`fixed_iv_bytes`] says. These keys cannot be
    /// updated, so the sequence number alone bounds them, as the RFCs of these suites leave it.
    ///
    /// Errors: the provider's; [`CryptoError::Failed`] for a `fixed_iv` of another length.
    pub fn tls12(provider: &P, algorithm: AeadAlgorithm, key: &[u8], fixed_iv: &[u8]) -> Result<Self, CryptoError> {
        let nonces = match algorithm {
            AeadAlgorithm::Aes128Gcm | AeadAlgorithm::Aes256Gcm => fixed_iv.try_into().map(Nonces::Explicit),
            AeadAlgorithm::ChaCha20Poly1305 => fixed_iv.try_into().map(Nonces::Xor),
        };
        Ok(Self {
            aead: provider.aead(algorithm, key)?,
            nonces: nonces.map_err(|_| CryptoError::Failed)?,
            is_13: false,
            records_max: u64::MAX,
        })
    }

    /// Bytes on the wire between a record's header and its ciphertext.
    pub(super) const fn explicit_bytes(&self) -> usize {
        match self.nonces {
            Nonces::Explicit(_) => EXPLICIT_BYTES,
            Nonces::Xor(_) => 0,
        }
    }

    /// Bytes that are protected beside content: the type, in TLS 1.3.
    pub(super) const fn inner_bytes(&self) -> usize {
        self.is_13 as usize
    }

    /// Bytes that a fragment has beside content, padding aside.
    pub(super) const fn expansion(&self) -> usize {
        self.explicit_bytes() + self.inner_bytes() + TAG_BYTES
    }
}

/// Bytes of the fixed part of nonces in TLS 1.2: what its key block holds for each direction after the key.
#[must_use]
pub const fn fixed_iv_bytes(algorithm: AeadAlgorithm) -> usize {
    match algorithm {
        AeadAlgorithm::Aes128Gcm | AeadAlgorithm::Aes256Gcm => 4,
        AeadAlgorithm::ChaCha20Poly1305 => NONCE_BYTES,
    }
}

/// What a record authenticates beside its content: TLS 1.3 its header as it stands (RFC 8446 §5.2), TLS 1.2
/// `seq_num ‖ type ‖ version ‖ length` with the length of the content (RFC 5246 §6.2.3.3).
pub(super) enum Aad {
    Tls13([u8; HEADER_BYTES]),
    Tls12([u8; 8 + HEADER_BYTES]),
}

impl Aad {
    pub(super) fn new(is_13: bool, sequence: u64, header: Header, content_bytes: usize) -> Self {
        if is_13 {
            return Self::Tls13(header.bytes());
        }
        let mut bytes = [0; 8 + HEADER_BYTES];
        let (number, rest) = bytes.split_at_mut(8);
        number.copy_from_slice(&sequence.to_be_bytes());
        let inside = Header {
            fragment_bytes: content_bytes,
            ..header
        };
        rest.copy_from_slice(&inside.bytes());
        Self::Tls12(bytes)
    }

    pub(super) const fn bytes(&self) -> &[u8] {
        match self {
            Self::Tls13(bytes) => bytes,
            Self::Tls12(bytes) => bytes,
        }
    }
}
