//! Opening what arrives.

use super::{ContentType, TrafficKeys};
use crate::cause::Cause;
use crate::crypto::Provider;

/// What one record carried.
#[derive(Debug, PartialEq, Eq)]
pub struct Opened<'r> {
    /// Its true content type.
    pub kind: ContentType,
    /// Its content, padding taken off.
    pub content: &'r mut [u8],
}

/// One direction's keys and sequence number, for what arrives.
pub struct ReadHalf<P: Provider> {
    keys: Option<TrafficKeys<P>>,
    sequence: u64,
}

impl<P: Provider> ReadHalf<P> {
    /// Nothing is protected yet.
    #[must_use]
    pub const fn plain() -> Self {
        Self {
            keys: None,
            sequence: 0,
        }
    }

    /// From the next record on these keys open.
    pub fn install(&mut self, keys: TrafficKeys<P>) {
        self.keys = Some(keys);
        self.sequence = 0;
    }

    /// Opens one whole record in place.
    ///
    /// Errors: [`Cause::RecordOverflow`], [`Cause::BadRecordMac`], [`Cause::BadRecord`].
    pub fn open<'r>(&mut self, record: &'r mut [u8]) -> Result<Opened<'r>, Cause> {
        let _ = (record, self.sequence);
        Err(Cause::BadRecord)
    }
}
