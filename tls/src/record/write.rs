//! Sealing what leaves.

use super::{ContentType, TrafficKeys};
use crate::cause::Cause;
use crate::crypto::Provider;

/// One direction's keys and sequence number, for what leaves.
pub struct WriteHalf<P: Provider> {
    keys: Option<TrafficKeys<P>>,
    sequence: u64,
}

impl<P: Provider> WriteHalf<P> {
    /// Nothing is protected yet.
    #[must_use]
    pub const fn plain() -> Self {
        Self {
            keys: None,
            sequence: 0,
        }
    }

    /// From the next record on these keys seal.
    pub fn install(&mut self, keys: TrafficKeys<P>) {
        self.keys = Some(keys);
        self.sequence = 0;
    }

    /// Bytes before and after a record's content: the content of a slot begins at the first, and `content + both` must fit the slot.
    #[must_use]
    pub const fn overhead(&self) -> (usize, usize) {
        (super::HEADER_BYTES, 0)
    }

    /// Seals the `bytes` of content that lie in `slot` from `overhead().0` on, in place, and gives the whole record's length.
    pub fn seal(&mut self, kind: ContentType, slot: &mut [u8], bytes: usize) -> Result<usize, Cause> {
        let _ = (kind, slot, bytes, self.sequence);
        Err(Cause::Internal)
    }
}
