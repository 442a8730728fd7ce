//! Makes a v2 batch in a caller's buffer.

use super::batch::{Attributes, BATCH_HEADER_BYTES, BatchHeader};
use super::varint::{encode_varlong, varlong_bytes};
use super::{Compression, Crc32c, RecordHeader};
use crate::time::Timestamp;
use crate::wire::Full;

/// A batch under construction: header room first, then one record after another.
///
/// When full: [`push`](Self::push) answers `Full` and the batch stands as it was; finish it and begin another.
#[derive(Debug)]
pub struct BatchBuilder<'a> {
    out: &'a mut [u8],
    draft: Draft,
}

impl<'a> BatchBuilder<'a> {
    /// An empty batch in `out`, base offset 0, of no idempotent producer. Errors: `Full` when not even a header fits.
    pub fn new(out: &'a mut [u8]) -> Result<Self, Full> {
        if out.len() < BATCH_HEADER_BYTES {
            return Err(Full);
        }
        Ok(Self {
            out,
            draft: Draft::EMPTY,
        })
    }

    /// Says which idempotent producer it is from, and the sequence of its first record.
    #[must_use]
    pub const fn producer(mut self, id: i64, epoch: i16, base_sequence: i32) -> Self {
        self.draft.set_producer(id, epoch, base_sequence);
        self
    }

    /// Sets the offset of the first record.
    #[must_use]
    pub const fn base_offset(mut self, base_offset: i64) -> Self {
        self.draft.header.base_offset = base_offset;
        self
    }

    /// Sets attribute bits: for payloads that [`finish_compressed`](Self::finish_compressed) takes, and for tests.
    #[must_use]
    pub const fn attributes(mut self, attributes: Attributes) -> Self {
        self.draft.header.attributes = attributes;
        self
    }

    /// Appends a record. The first one's timestamp is the batch's base.
    ///
    /// When full: `Full`, as for a batch past `i32::MAX` bytes.
    pub fn push(
        &mut self,
        timestamp: Timestamp,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[RecordHeader<'_>],
    ) -> Result<(), Full> {
        self.draft.push(self.out, timestamp, key, value, headers)
    }

    /// How many records it holds.
    #[must_use]
    pub const fn count(&self) -> i32 {
        self.draft.count()
    }

    /// Bytes so far, header included.
    #[must_use]
    pub const fn len_bytes(&self) -> usize {
        self.draft.used_bytes
    }

    /// The records so far, as they would be given to a compressor.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        self.draft.payload(self.out)
    }

    /// Seals the batch and returns its bytes; none when it holds no records, for an empty batch is not one.
    pub fn finish(mut self, crc: Crc32c) -> &'a [u8] {
        self.draft.seal(self.out, crc)
    }

    /// Seals the batch with `compressed`, its payload under `codec`, in place of the records; else as
    /// [`finish`](Self::finish). Errors: `Full` when it does not fit the buffer.
    pub fn finish_compressed(mut self, codec: Compression, compressed: &[u8], crc: Crc32c) -> Result<&'a [u8], Full> {
        let end = BATCH_HEADER_BYTES.checked_add(compressed.len()).ok_or(Full)?;
        i32::try_from(end).map_err(|_| Full)?;
        self.out
            .get_mut(BATCH_HEADER_BYTES..end)
            .ok_or(Full)?
            .copy_from_slice(compressed);
        self.draft.used_bytes = end;
        self.draft.header.attributes = self.draft.header.attributes.with_compression(codec);
        Ok(self.finish(crc))
    }
}

/// A [`BatchBuilder`] without its buffer: for an owner who keeps both side by side, and may seal the same records twice.
///
/// Every verb takes the buffer, which must be the same one, untouched between.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draft {
    used_bytes: usize,
    header: BatchHeader,
}

impl Draft {
    /// No records, base offset 0, no idempotent producer.
    pub(crate) const EMPTY: Self = Self {
        used_bytes: BATCH_HEADER_BYTES,
        header: BatchHeader {
            base_offset: 0,
            length: 0,
            partition_leader_epoch: -1,
            magic: 2,
            crc: 0,
            attributes: Attributes(0),
            last_offset_delta: -1,
            base_timestamp: -1,
            max_timestamp: -1,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            count: 0,
        },
    };

    /// As [`BatchBuilder::producer`].
    pub(crate) const fn set_producer(&mut self, id: i64, epoch: i16, base_sequence: i32) {
        self.header.producer_id = id;
        self.header.producer_epoch = epoch;
        self.header.base_sequence = base_sequence;
    }

    /// How many records it holds.
    pub(crate) const fn count(&self) -> i32 {
        self.header.count
    }

    /// As [`BatchBuilder::push`].
    pub(crate) fn push(
        &mut self,
        out: &mut [u8],
        timestamp: Timestamp,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[RecordHeader<'_>],
    ) -> Result<(), Full> {
        let first = self.header.count == 0;
        let base_timestamp = if first { timestamp.0 } else { self.header.base_timestamp };
        let offset_delta = self.header.count;
        let fields = Fields {
            timestamp_delta: timestamp.0.wrapping_sub(base_timestamp),
            offset_delta,
            key,
            value,
            headers,
        };
        let body_bytes = fields.len_bytes();
        i32::try_from(body_bytes).map_err(|_| Full)?;
        let free = out.get_mut(self.used_bytes..).ok_or(Full)?;
        let mut cursor = Cursor { free, used_bytes: 0 };
        cursor.varint(body_bytes as i64).ok_or(Full)?;
        if cursor.free.len() < body_bytes {
            return Err(Full);
        }
        fields.encode(&mut cursor).ok_or(Full)?;
        let used_bytes = self.used_bytes + cursor.used_bytes;
        i32::try_from(used_bytes).map_err(|_| Full)?;

        self.used_bytes = used_bytes;
        self.header.base_timestamp = base_timestamp;
        self.header.max_timestamp = if first {
            timestamp.0
        } else {
            self.header.max_timestamp.max(timestamp.0)
        };
        self.header.last_offset_delta = offset_delta;
        self.header.count += 1;
        Ok(())
    }

    fn payload<'b>(&self, out: &'b [u8]) -> &'b [u8] {
        out.get(BATCH_HEADER_BYTES..self.used_bytes).unwrap_or_default()
    }

    /// As [`BatchBuilder::finish`]; it may be done again, say for another producer.
    pub(crate) fn seal<'b>(&mut self, out: &'b mut [u8], crc: Crc32c) -> &'b [u8] {
        // Both casts fit: `used_bytes` was checked against `i32::MAX`.
        self.header.length = (self.used_bytes - BatchHeader::UNCOUNTED_BYTES) as i32;
        let begun = BatchHeader::crc_begin(&self.header.encode(), crc);
        self.header.crc = crc(begun, self.payload(out));
        if let Some(head) = out.first_chunk_mut() {
            *head = self.header.encode();
        }
        self.sealed(out)
    }

    /// The bytes of a batch that was sealed; none when it holds no records.
    pub(crate) fn sealed<'b>(&self, out: &'b [u8]) -> &'b [u8] {
        let bytes = if self.header.count == 0 { 0 } else { self.used_bytes };
        out.get(..bytes).unwrap_or_default()
    }
}

/// What follows a record's length.
struct Fields<'a> {
    timestamp_delta: i64,
    offset_delta: i32,
    key: Option<&'a [u8]>,
    value: Option<&'a [u8]>,
    headers: &'a [RecordHeader<'a>],
}

impl Fields<'_> {
    fn len_bytes(&self) -> usize {
        let headers = self.headers.iter().fold(0usize, |sum, header| {
            sum.saturating_add(nullable_bytes(Some(header.key)))
                .saturating_add(nullable_bytes(header.value))
        });
        (1 + varlong_bytes(self.timestamp_delta)
            + varlong_bytes(i64::from(self.offset_delta))
            + varlong_bytes(self.headers.len() as i64))
        .saturating_add(nullable_bytes(self.key))
        .saturating_add(nullable_bytes(self.value))
        .saturating_add(headers)
    }

    fn encode(&self, out: &mut Cursor<'_>) -> Option<()> {
        // The attributes of a record have no meaning yet.
        out.bytes(&[0])?;
        out.varint(self.timestamp_delta)?;
        out.varint(i64::from(self.offset_delta))?;
        out.nullable(self.key)?;
        out.nullable(self.value)?;
        out.varint(self.headers.len() as i64)?;
        self.headers.iter().try_for_each(|header| {
            out.nullable(Some(header.key))?;
            out.nullable(header.value)
        })
    }
}

fn nullable_bytes(bytes: Option<&[u8]>) -> usize {
    bytes.map_or(1, |bytes| bytes.len().saturating_add(varlong_bytes(bytes.len() as i64)))
}

/// The free end of the buffer. Each verb is `None` when full.
struct Cursor<'a> {
    free: &'a mut [u8],
    used_bytes: usize,
}

impl Cursor<'_> {
    fn bytes(&mut self, bytes: &[u8]) -> Option<()> {
        self.free.get_mut(..bytes.len())?.copy_from_slice(bytes);
        self.advance(bytes.len())
    }

    fn varint(&mut self, value: i64) -> Option<()> {
        let bytes = encode_varlong(value, self.free)?;
        self.advance(bytes)
    }

    fn nullable(&mut self, bytes: Option<&[u8]>) -> Option<()> {
        let Some(bytes) = bytes else {
            return self.varint(-1);
        };
        self.varint(bytes.len() as i64)?;
        self.bytes(bytes)
    }

    fn advance(&mut self, bytes: usize) -> Option<()> {
        self.free = core::mem::take(&mut self.free).get_mut(bytes..)?;
        self.used_bytes += bytes;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::record::{Batch, crc32c};

    /// A batch of two records that `org.apache.kafka:kafka-clients` would write: every byte laid out by hand from the format.
    #[test]
    fn bytes_are_the_formats() {
        let mut out = [0xAA; 200];
        let mut builder = BatchBuilder::new(&mut out).unwrap().producer(7, 1, 40);
        let header = RecordHeader { key: b"h", value: None };
        builder
            .push(Timestamp(1000), Some(b"k"), Some(b"value"), &[header])
            .unwrap();
        builder.push(Timestamp(999), None, None, &[]).unwrap();
        let bytes = builder.finish(crc32c);
        let mut want = Vec::new();
        want.extend_from_slice(&0i64.to_be_bytes());
        want.extend_from_slice(&(bytes.len() as i32 - 12).to_be_bytes());
        want.extend_from_slice(&(-1i32).to_be_bytes());
        want.push(2);
        let from = want.len();
        want.extend_from_slice(&[0; 4]);
        want.extend_from_slice(&0i16.to_be_bytes());
        want.extend_from_slice(&1i32.to_be_bytes());
        want.extend_from_slice(&1000i64.to_be_bytes());
        want.extend_from_slice(&1000i64.to_be_bytes());
        want.extend_from_slice(&7i64.to_be_bytes());
        want.extend_from_slice(&1i16.to_be_bytes());
        want.extend_from_slice(&40i32.to_be_bytes());
        want.extend_from_slice(&2i32.to_be_bytes());
        want.extend_from_slice(&[
            15 << 1,
            0,
            0,
            0,
            2,
            b'k',
            10,
            b'v',
            b'a',
            b'l',
            b'u',
            b'e',
            2,
            2,
            b'h',
            1,
        ]);
        want.extend_from_slice(&[6 << 1, 0, 1, 2, 1, 1, 0]);
        let crc = crc32c(0, &want[from + 4..]);
        want[from..from + 4].copy_from_slice(&crc.to_be_bytes());
        assert_eq!(bytes, want);
    }

    /// Goal: a full buffer leaves a whole batch. Method: every buffer size up to enough; what was taken can be read back.
    #[test]
    fn full_leaves_the_batch_as_it_was() {
        for size in 0..300 {
            let mut out = std::vec![0; size];
            let Ok(mut builder) = BatchBuilder::new(&mut out) else {
                assert!(size < BATCH_HEADER_BYTES);
                continue;
            };
            let mut pushed = 0;
            while builder.push(Timestamp(5), Some(b"key"), Some(&[1; 70]), &[]).is_ok() {
                pushed += 1;
            }
            let bytes = builder.finish(crc32c);
            assert_eq!(pushed, (size - BATCH_HEADER_BYTES) / 82, "size {size}");
            if pushed == 0 {
                assert!(bytes.is_empty());
                continue;
            }
            let batch = Batch::only(bytes).unwrap();
            assert!(batch.crc_holds(crc32c));
            assert_eq!(batch.records().filter(Result::is_ok).count(), pushed);
            assert_eq!(batch.records().count(), pushed);
        }
    }
}
