//! Sealing what leaves.

use super::header::{Header, VERSION, VERSION_FIRST};
use super::keys::Aad;
use super::{ContentType, HEADER_BYTES, SizeLimits, TrafficKeys};
use crate::cause::Cause;
use crate::crypto::{Aead, CryptoError, Provider, TAG_BYTES};

/// One direction's keys and sequence number, for what leaves.
pub struct WriteHalf<P: Provider> {
    keys: Option<TrafficKeys<P>>,
    sequence: u64,
    limits: SizeLimits,
    /// Of records without protection.
    version: u16,
}

impl<P: Provider> WriteHalf<P> {
    /// Nothing is protected yet.
    #[must_use]
    pub const fn plain() -> Self {
        Self {
            keys: None,
            sequence: 0,
            limits: SizeLimits::NONE,
            version: VERSION,
        }
    }

    /// As a client begins: its first hello is in records of version 0x0301, which every peer takes (RFC 8446 §5.1, RFC 5246 §E.1).
    #[must_use]
    pub fn first_hello() -> Self {
        let mut half = Self::plain();
        half.version = VERSION_FIRST;
        half
    }

    /// The first hello is sealed: from here every record is of version 0x0303, an alert before any answer too (RFC 8446 §5.1).
    pub fn said_hello(&mut self) {
        self.version = VERSION;
    }

    /// From the next record on these keys seal.
    pub fn install(&mut self, keys: TrafficKeys<P>) {
        self.keys = Some(keys);
        self.sequence = 0;
    }

    /// What the peer wants at most.
    pub fn limit(&mut self, limits: SizeLimits) {
        self.limits = limits;
    }

    /// Whether records are protected.
    #[must_use]
    pub const fn is_protected(&self) -> bool {
        self.keys.is_some()
    }

    /// The longest content of the next record.
    #[must_use]
    pub fn content_bytes_max(&self) -> usize {
        self.limits
            .content_bytes_max(self.keys.as_ref().map(TrafficKeys::inner_bytes))
    }

    /// Bytes before and after a record's content: the content of a slot begins at the first, and `content + both` must fit the slot.
    #[must_use]
    pub fn overhead(&self) -> (usize, usize) {
        match &self.keys {
            Some(keys) => (HEADER_BYTES + keys.explicit_bytes(), keys.inner_bytes() + TAG_BYTES),
            None => (HEADER_BYTES, 0),
        }
    }

    /// Records sealed with the present keys.
    #[must_use]
    pub const fn sequence(&self) -> u64 {
        self.sequence
    }

    #[cfg(all(test, feature = "fast"))]
    pub(super) fn start_at(&mut self, sequence: u64) {
        self.sequence = sequence;
    }

    /// Whether the keys have an eighth or less of their records left: time for a KeyUpdate, which is itself a record under the old ones.
    #[must_use]
    pub fn wants_key_update(&self) -> bool {
        self.keys
            .as_ref()
            .is_some_and(|keys| self.sequence >= keys.records_max - keys.records_max / 8)
    }

    /// Seals the `bytes` of content that lie in `slot` from `overhead().0` on, in place, and gives the whole record's length.
    ///
    /// Shape: `header ‖ content ‖ type ‖ tag` in TLS 1.3, `header ‖ explicit nonce ‖ content ‖ tag` in TLS 1.2, without the nonce for
    ///   ChaCha20-Poly1305, `header ‖ content` without keys.   Source: RFC 8446 §5.2, RFC 5246 §6.2.3.3, RFC 5288, RFC 7905.
    /// Errors: [`Cause::KeyExhausted`] when the keys have sealed all that they may; [`Cause::Internal`] for more content than
    ///   [`WriteHalf::content_bytes_max`], and for a `slot` too short.
    /// Cost: one AEAD pass, no copy, no allocation.
    pub fn seal(&mut self, kind: ContentType, slot: &mut [u8], bytes: usize) -> Result<usize, Cause> {
        self.seal_padded(kind, slot, bytes, 0)
    }

    /// As [`WriteHalf::seal`], with `padding` zero bytes after the type to hide how long the content is (RFC 8446 §5.4). They count towards
    /// the limit and need their room in the slot. Only TLS 1.3's keys can: [`Cause::Internal`] otherwise.
    pub fn seal_padded(
        &mut self,
        kind: ContentType,
        slot: &mut [u8],
        bytes: usize,
        padding: usize,
    ) -> Result<usize, Cause> {
        let inner_bytes = bytes.checked_add(padding).ok_or(Cause::Internal)?;
        if inner_bytes > self.content_bytes_max() {
            return Err(Cause::Internal);
        }
        let (before, after) = self.overhead();
        let record_bytes = before + inner_bytes + after;
        let record = slot.get_mut(..record_bytes).ok_or(Cause::Internal)?;
        let (front, body) = record.split_at_mut_checked(before).ok_or(Cause::Internal)?;
        let (header_slot, explicit) = front.split_first_chunk_mut::<HEADER_BYTES>().ok_or(Cause::Internal)?;
        let mut header = Header {
            kind,
            version: self.version,
            fragment_bytes: record_bytes - HEADER_BYTES,
        };
        let Some(keys) = &self.keys else {
            *header_slot = header.bytes();
            return if padding == 0 {
                Ok(record_bytes)
            } else {
                Err(Cause::Internal)
            };
        };
        if self.sequence >= keys.records_max {
            return Err(Cause::KeyExhausted);
        }
        header.version = VERSION;
        let (inner, tag_slot) = body.split_last_chunk_mut::<TAG_BYTES>().ok_or(Cause::Internal)?;
        if keys.is_13 {
            header.kind = ContentType::ApplicationData;
            let (kind_slot, zeros) = inner
                .get_mut(bytes..)
                .and_then(<[u8]>::split_first_mut)
                .ok_or(Cause::Internal)?;
            *kind_slot = kind as u8;
            zeros.fill(0);
        } else if padding > 0 {
            return Err(Cause::Internal);
        }
        let variable = self.sequence.to_be_bytes();
        if let Some(explicit) = explicit.first_chunk_mut() {
            *explicit = variable;
        }
        let aad = Aad::new(keys.is_13, self.sequence, header, bytes);
        *tag_slot = keys
            .aead
            .seal(&keys.nonces.nonce(variable), aad.bytes(), inner)
            .map_err(cause)?;
        *header_slot = header.bytes();
        self.sequence += 1;
        Ok(record_bytes)
    }
}

/// Sealing rejects nothing that a peer sent: whatever fails is ours.
fn cause(error: CryptoError) -> Cause {
    match error {
        CryptoError::ArenaFull => Cause::ArenaFull,
        CryptoError::Rejected | CryptoError::Failed => Cause::Internal,
    }
}
