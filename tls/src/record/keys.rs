//! What protects one direction.

use crate::crypto::{NONCE_BYTES, Provider};

/// How a record's nonce comes from its sequence number.
#[derive(Clone)]
pub enum Nonces {
    /// XOR with a fixed part: TLS 1.3 (RFC 8446 §5.3) and ChaCha20-Poly1305 in TLS 1.2 (RFC 7905). Nothing of it is on the wire.
    Xor([u8; NONCE_BYTES]),
    /// AES-GCM in TLS 1.2 (RFC 5288): four fixed bytes, and eight on the wire before the ciphertext, for which we take the sequence number.
    Explicit([u8; 4]),
}

/// An AEAD key and its nonces. Sequence numbers begin at zero with it.
pub struct TrafficKeys<P: Provider> {
    /// The key.
    pub aead: P::Aead,
    /// Its nonces.
    pub nonces: Nonces,
    /// Whether records are TLS 1.3's: the type inside, padding, a header that always says application data.
    pub is_13: bool,
    /// Records that may be protected before the key must change: 2^24 for AES-GCM (RFC 8446 §5.5), unlimited for ChaCha20-Poly1305.
    pub records_max: u64,
}
