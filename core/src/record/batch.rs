//! The v2 batch: its header as a value, a view of one in place, several in a records field, and what the broker assigns.
//!
//! Shape: base offset i64 ‖ length i32 (of what follows it) ‖ partition leader epoch i32 ‖ magic i8 ‖ CRC-32C u32 ‖ attributes
//! i16 ‖ last offset delta i32 ‖ base timestamp i64 ‖ max timestamp i64 ‖ producer id i64 ‖ producer epoch i16 ‖ base sequence
//! i32 ‖ record count i32 ‖ records. The CRC covers everything from the attributes on, so base offset and leader epoch may be
//! assigned without touching it. Source: Kafka, "Record Batch" in the message format documentation (KIP-98).

use super::{BatchError, Crc32c, RecordIter};
use crate::time::Timestamp;

/// Bytes of a batch header.
pub const BATCH_HEADER_BYTES: usize = 61;

/// Where the bytes under the CRC begin.
const CRC_FROM: usize = 21;
/// The format's number.
const MAGIC: i8 = 2;

/// How a batch's records are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum Compression {
    /// Not at all.
    None = 0,
    /// RFC 1952.
    Gzip = 1,
    /// Snappy, in Xerial's framing from Java clients or raw.
    Snappy = 2,
    /// LZ4 frames.
    Lz4 = 3,
    /// Zstandard (KIP-110).
    Zstd = 4,
}

/// Who set a batch's timestamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum TimestampType {
    /// The producer, per record.
    CreateTime,
    /// The broker: every record has the batch's max timestamp.
    LogAppendTime,
}

/// The attribute bits of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Attributes(pub i16);

impl Attributes {
    const CODEC: i16 = 0b111;
    const LOG_APPEND_TIME: i16 = 1 << 3;
    const TRANSACTIONAL: i16 = 1 << 4;
    const CONTROL: i16 = 1 << 5;
    const DELETE_HORIZON: i16 = 1 << 6;

    /// These, with that codec.
    #[must_use]
    pub const fn with_compression(self, codec: Compression) -> Self {
        Self(self.0 & !Self::CODEC | codec as i16)
    }

    /// The codec. Errors: [`BatchError::Codec`] for a number that has no name.
    pub const fn compression(self) -> Result<Compression, BatchError> {
        match self.0 & Self::CODEC {
            0 => Ok(Compression::None),
            1 => Ok(Compression::Gzip),
            2 => Ok(Compression::Snappy),
            3 => Ok(Compression::Lz4),
            4 => Ok(Compression::Zstd),
            other => Err(BatchError::Codec(other as u8)),
        }
    }

    /// Who set the timestamps.
    #[must_use]
    pub const fn timestamp_type(self) -> TimestampType {
        if self.0 & Self::LOG_APPEND_TIME == 0 {
            TimestampType::CreateTime
        } else {
            TimestampType::LogAppendTime
        }
    }

    /// These, with that timestamp type.
    #[must_use]
    pub const fn with_timestamp_type(self, timestamp_type: TimestampType) -> Self {
        match timestamp_type {
            TimestampType::CreateTime => Self(self.0 & !Self::LOG_APPEND_TIME),
            TimestampType::LogAppendTime => Self(self.0 | Self::LOG_APPEND_TIME),
        }
    }

    /// Part of a transaction.
    #[must_use]
    pub const fn is_transactional(self) -> bool {
        self.0 & Self::TRANSACTIONAL != 0
    }

    /// Holds a transaction marker instead of a client's records.
    #[must_use]
    pub const fn is_control(self) -> bool {
        self.0 & Self::CONTROL != 0
    }

    /// The base timestamp is the time from which tombstones may go (KIP-534).
    #[must_use]
    pub const fn has_delete_horizon(self) -> bool {
        self.0 & Self::DELETE_HORIZON != 0
    }
}

/// The header of a batch, as a value. Nothing is checked: what the fields say is the sender's claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct BatchHeader {
    /// Offset of the first record.
    pub base_offset: i64,
    /// Bytes after this field; see [`BatchHeader::len_bytes`].
    pub length: i32,
    /// Leader epoch under which it was appended; −1 from a producer.
    pub partition_leader_epoch: i32,
    /// Format, 2 here. At byte 16 in every format.
    pub magic: i8,
    /// CRC-32C of the bytes from the attributes on.
    pub crc: u32,
    /// Codec, timestamp type, transactional and control bits.
    pub attributes: Attributes,
    /// Offset of the last record, after the base offset. Kept by compaction, so it may exceed `count − 1` in a log.
    pub last_offset_delta: i32,
    /// Timestamp that record deltas count from.
    pub base_timestamp: i64,
    /// Largest timestamp of the records.
    pub max_timestamp: i64,
    /// −1 when the producer is not idempotent.
    pub producer_id: i64,
    /// −1 when the producer is not idempotent.
    pub producer_epoch: i16,
    /// Sequence of the first record; −1 when the producer is not idempotent.
    pub base_sequence: i32,
    /// How many records follow.
    pub count: i32,
}

impl BatchHeader {
    /// Bytes that the length field does not count: base offset and the field itself.
    pub(super) const UNCOUNTED_BYTES: usize = 12;

    /// Reads a header; any bytes will do.
    #[must_use]
    pub fn decode(bytes: &[u8; BATCH_HEADER_BYTES]) -> Self {
        Self {
            base_offset: i64::from_be_bytes(field::<0, 8>(bytes)),
            length: i32::from_be_bytes(field::<8, 4>(bytes)),
            partition_leader_epoch: i32::from_be_bytes(field::<12, 4>(bytes)),
            magic: i8::from_be_bytes(field::<16, 1>(bytes)),
            crc: u32::from_be_bytes(field::<17, 4>(bytes)),
            attributes: Attributes(i16::from_be_bytes(field::<21, 2>(bytes))),
            last_offset_delta: i32::from_be_bytes(field::<23, 4>(bytes)),
            base_timestamp: i64::from_be_bytes(field::<27, 8>(bytes)),
            max_timestamp: i64::from_be_bytes(field::<35, 8>(bytes)),
            producer_id: i64::from_be_bytes(field::<43, 8>(bytes)),
            producer_epoch: i16::from_be_bytes(field::<51, 2>(bytes)),
            base_sequence: i32::from_be_bytes(field::<53, 4>(bytes)),
            count: i32::from_be_bytes(field::<57, 4>(bytes)),
        }
    }

    /// The bytes of this header; the CRC is taken as it stands.
    #[must_use]
    pub fn encode(&self) -> [u8; BATCH_HEADER_BYTES] {
        let mut bytes = [0; BATCH_HEADER_BYTES];
        put::<0, 8>(&mut bytes, self.base_offset.to_be_bytes());
        put::<8, 4>(&mut bytes, self.length.to_be_bytes());
        put::<12, 4>(&mut bytes, self.partition_leader_epoch.to_be_bytes());
        put::<16, 1>(&mut bytes, self.magic.to_be_bytes());
        put::<17, 4>(&mut bytes, self.crc.to_be_bytes());
        put::<21, 2>(&mut bytes, self.attributes.0.to_be_bytes());
        put::<23, 4>(&mut bytes, self.last_offset_delta.to_be_bytes());
        put::<27, 8>(&mut bytes, self.base_timestamp.to_be_bytes());
        put::<35, 8>(&mut bytes, self.max_timestamp.to_be_bytes());
        put::<43, 8>(&mut bytes, self.producer_id.to_be_bytes());
        put::<51, 2>(&mut bytes, self.producer_epoch.to_be_bytes());
        put::<53, 4>(&mut bytes, self.base_sequence.to_be_bytes());
        put::<57, 4>(&mut bytes, self.count.to_be_bytes());
        bytes
    }

    /// Bytes of the whole batch, this header included.
    ///
    /// Errors: [`BatchError::Magic`] unless format v2 (looked at first: an old message's other fields mean something else);
    /// [`BatchError::Size`] when the length leaves no room for a header.
    pub fn len_bytes(&self) -> Result<usize, BatchError> {
        if self.magic != MAGIC {
            return Err(BatchError::Magic(self.magic));
        }
        usize::try_from(self.length)
            .ok()
            .and_then(|length| length.checked_add(Self::UNCOUNTED_BYTES))
            .filter(|bytes| (BATCH_HEADER_BYTES..=i32::MAX as usize).contains(bytes))
            .ok_or(BatchError::Size(self.length))
    }

    /// Offset of the last record; saturates.
    #[must_use]
    pub const fn last_offset(&self) -> i64 {
        self.base_offset.saturating_add(self.last_offset_delta as i64)
    }

    /// The offset after the batch; saturates.
    #[must_use]
    pub const fn next_offset(&self) -> i64 {
        self.last_offset().saturating_add(1)
    }

    /// From an idempotent producer.
    #[must_use]
    pub const fn has_producer(&self) -> bool {
        self.producer_id >= 0
    }

    /// The CRC of a header's own part of the covered bytes: go on from it over the records.
    ///
    /// For a reader that meets the records piece by piece; [`Batch::crc_holds`] does it for a whole batch.
    #[must_use]
    pub fn crc_begin(bytes: &[u8; BATCH_HEADER_BYTES], crc: Crc32c) -> u32 {
        crc(0, bytes.split_at(CRC_FROM).1)
    }
}

/// A batch of format v2 whose length fits its bytes. Its content is not checked.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    header: BatchHeader,
    bytes: &'a [u8],
}

impl<'a> Batch<'a> {
    /// Takes the first batch off `bytes`; on an error nothing is taken.
    ///
    /// Errors: `Empty`, `Truncated` (more bytes would help), `Magic`, `Size`.
    pub fn decode(bytes: &mut &'a [u8]) -> Result<Self, BatchError> {
        let Some(head) = bytes.first_chunk() else {
            return Err(short(bytes));
        };
        let header = BatchHeader::decode(head);
        let (batch, rest) = bytes
            .split_at_checked(header.len_bytes()?)
            .ok_or(BatchError::Truncated)?;
        *bytes = rest;
        Ok(Self { header, bytes: batch })
    }

    /// Takes `bytes` as exactly one batch.
    ///
    /// Errors: those of [`Batch::decode`], and `ManyBatches` when bytes follow.
    pub fn only(mut bytes: &'a [u8]) -> Result<Self, BatchError> {
        let batch = Self::decode(&mut bytes)?;
        if bytes.is_empty() {
            Ok(batch)
        } else {
            Err(BatchError::ManyBatches)
        }
    }

    /// Its header. What [`validate`](super::validate) has mended in it is not in [`Batch::bytes`].
    #[must_use]
    pub const fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// All of it.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Bytes of all of it.
    #[must_use]
    pub const fn len_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// What follows the header: records, compressed as the attributes say.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        self.bytes.get(BATCH_HEADER_BYTES..).unwrap_or_default()
    }

    /// Whether the checksum fits. Cost: one pass over the batch.
    #[must_use]
    pub fn crc_holds(&self, crc: Crc32c) -> bool {
        crc(0, self.bytes.get(CRC_FROM..).unwrap_or_default()) == self.header.crc
    }

    /// Changes the max timestamp in the header, and the CRC with it. Cost: one pass over the batch.
    pub(super) fn mend_max_timestamp(&mut self, max_timestamp: i64, crc: Crc32c) {
        self.header.max_timestamp = max_timestamp;
        self.header.crc = crc(BatchHeader::crc_begin(&self.header.encode(), crc), self.payload());
    }

    /// Its records, where they are not compressed; else use [`RecordIter::new`] over the opened payload.
    #[must_use]
    pub fn records(&self) -> RecordIter<'a> {
        RecordIter::new(self.payload(), u32::try_from(self.header.count).unwrap_or(0))
    }
}

/// The batches of a records field, one after another. Ends after the first error.
///
/// A fetch reply may end inside a batch: that one comes as `Truncated`, and a consumer passes over it.
#[derive(Clone, Debug)]
pub struct Batches<'a> {
    bytes: &'a [u8],
}

impl<'a> Batches<'a> {
    /// Over `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }
}

impl<'a> Iterator for Batches<'a> {
    type Item = Result<Batch<'a>, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.bytes.is_empty() {
            return None;
        }
        let batch = Batch::decode(&mut self.bytes);
        if batch.is_err() {
            self.bytes = &[];
        }
        Some(batch)
    }
}

/// The header of a batch that is about to be appended, and its records: what the broker assigns is written through this.
#[derive(Debug)]
pub struct BatchMut<'a> {
    head: &'a mut [u8; BATCH_HEADER_BYTES],
    payload: &'a [u8],
}

impl<'a> BatchMut<'a> {
    /// Over a batch in place. Errors: those of [`Batch::only`].
    pub fn in_place(bytes: &'a mut [u8]) -> Result<Self, BatchError> {
        Batch::only(bytes)?;
        let (head, payload) = bytes.split_first_chunk_mut().ok_or(BatchError::Truncated)?;
        Ok(Self { head, payload })
    }

    /// Over a copy of a batch's header, for an owner who may not write into the batch: `head` then goes before
    /// [`Batch::payload`] in one gathered write.
    #[must_use]
    pub fn beside(batch: &Batch<'a>, head: &'a mut [u8; BATCH_HEADER_BYTES]) -> Self {
        *head = batch.header.encode();
        Self {
            head,
            payload: batch.payload(),
        }
    }

    /// Sets the offset of the first record and the leader epoch. Neither is under the CRC.
    pub fn assign(&mut self, base_offset: i64, partition_leader_epoch: i32) {
        put::<0, 8>(self.head, base_offset.to_be_bytes());
        put::<12, 4>(self.head, partition_leader_epoch.to_be_bytes());
    }

    /// Makes every record's timestamp the broker's: type bit and max timestamp, then the CRC again.
    ///
    /// Cost: one pass over the batch.
    pub fn stamp_append_time(&mut self, now: Timestamp, crc: Crc32c) {
        let attributes = Attributes(i16::from_be_bytes(field::<21, 2>(self.head)));
        let attributes = attributes.with_timestamp_type(TimestampType::LogAppendTime);
        put::<21, 2>(self.head, attributes.0.to_be_bytes());
        put::<35, 8>(self.head, now.0.to_be_bytes());
        let sum = crc(BatchHeader::crc_begin(self.head, crc), self.payload);
        put::<17, 4>(self.head, sum.to_be_bytes());
    }
}

/// Why fewer bytes than a header are no batch. An old format is named as soon as its magic is there.
fn short(bytes: &[u8]) -> BatchError {
    match bytes.get(16) {
        _ if bytes.is_empty() => BatchError::Empty,
        Some(&magic) if magic as i8 != MAGIC => BatchError::Magic(magic as i8),
        _ => BatchError::Truncated,
    }
}

/// `BYTES` bytes from `AT` on. A field outside the header does not build.
#[allow(clippy::indexing_slicing)] // `AT + i` is inside by the constant check.
fn field<const AT: usize, const BYTES: usize>(head: &[u8; BATCH_HEADER_BYTES]) -> [u8; BYTES] {
    const { assert!(AT + BYTES <= BATCH_HEADER_BYTES) }
    core::array::from_fn(|i| head[AT + i])
}

/// Writes `value` from `AT` on. A field outside the header does not build.
#[allow(clippy::indexing_slicing)] // Inside by the constant check.
fn put<const AT: usize, const BYTES: usize>(head: &mut [u8; BATCH_HEADER_BYTES], value: [u8; BYTES]) {
    const { assert!(AT + BYTES <= BATCH_HEADER_BYTES) }
    head[AT..AT + BYTES].copy_from_slice(&value);
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::record::{BatchBuilder, crc32c};

    fn batch(values: &[&[u8]]) -> Vec<u8> {
        let mut out = [0; 500];
        let mut builder = BatchBuilder::new(&mut out).unwrap();
        for (at, value) in values.iter().enumerate() {
            builder
                .push(Timestamp(100 + at as i64), None, Some(value), &[])
                .unwrap();
        }
        builder.finish(crc32c).to_vec()
    }

    #[test]
    fn every_header_field_goes_round() {
        let bytes: [u8; BATCH_HEADER_BYTES] = core::array::from_fn(|i| 3 * i as u8 + 1);
        let header = BatchHeader::decode(&bytes);
        assert_eq!(header.encode(), bytes);
        assert_eq!(header.base_offset, 0x0104_070A_0D10_1316);
        assert_eq!(header.length, 0x191C_1F22);
        assert_eq!(header.magic, 0x31);
        assert_eq!(header.crc, 0x3437_3A3D);
        assert_eq!(header.count, 0xACAF_B2B5_u32 as i32);
    }

    #[test]
    fn attribute_bits() {
        for (bit, read) in [
            (4, Attributes::is_transactional as fn(Attributes) -> bool),
            (5, Attributes::is_control),
            (6, Attributes::has_delete_horizon),
        ] {
            assert!(read(Attributes(1 << bit)));
            assert!(!read(Attributes(!(1 << bit))));
        }
        assert_eq!(Attributes(8).timestamp_type(), TimestampType::LogAppendTime);
        assert_eq!(Attributes(!8).timestamp_type(), TimestampType::CreateTime);
        for codec in [
            Compression::None,
            Compression::Gzip,
            Compression::Snappy,
            Compression::Lz4,
            Compression::Zstd,
        ] {
            assert_eq!(Attributes(!0).with_compression(codec).compression(), Ok(codec));
            assert_eq!(Attributes(!0).with_compression(codec).0 | 7, !0);
        }
        for unknown in 5..8 {
            assert_eq!(Attributes(unknown).compression(), Err(BatchError::Codec(unknown as u8)));
        }
    }

    #[test]
    fn several_batches_and_a_cut_one() {
        let (one, two) = (batch(&[b"a"]), batch(&[b"b", b"c"]));
        let both = [&one[..], &two[..]].concat();
        let got: Vec<_> = Batches::new(&both)
            .map(|batch| batch.unwrap().bytes().to_vec())
            .collect();
        assert_eq!(got, [one.clone(), two]);
        for cut in one.len() + 1..both.len() {
            let mut batches = Batches::new(&both[..cut]);
            assert_eq!(batches.next().unwrap().unwrap().bytes(), one);
            assert_eq!(batches.next().unwrap().unwrap_err(), BatchError::Truncated);
            assert!(batches.next().is_none());
        }
        assert_eq!(Batch::only(&both).unwrap_err(), BatchError::ManyBatches);
        assert_eq!(Batch::only(&[]).unwrap_err(), BatchError::Empty);
    }

    #[test]
    fn lengths_and_magics_that_cannot_be() {
        let good = batch(&[b"a"]);
        for length in [i32::MIN, -1, 0, 48, i32::MAX] {
            let mut bytes = good.clone();
            bytes[8..12].copy_from_slice(&length.to_be_bytes());
            assert_eq!(Batch::only(&bytes).unwrap_err(), BatchError::Size(length));
        }
        for magic in [0, 1, 3, -1] {
            let mut bytes = good.clone();
            bytes[16] = magic as u8;
            for cut in 17..bytes.len() {
                assert_eq!(Batch::only(&bytes[..cut]).unwrap_err(), BatchError::Magic(magic));
            }
        }
    }

    #[test]
    fn assigning_leaves_the_crc_and_stamping_renews_it() {
        let original = batch(&[b"a", b"b"]);
        let mut bytes = original.clone();
        let mut batch = BatchMut::in_place(&mut bytes).unwrap();
        batch.assign(9_000_000_000, 17);
        let assigned = Batch::only(&bytes).unwrap();
        assert!(assigned.crc_holds(crc32c));
        assert_eq!(assigned.header().base_offset, 9_000_000_000);
        assert_eq!(assigned.header().last_offset(), 9_000_000_001);
        assert_eq!(assigned.header().next_offset(), 9_000_000_002);
        assert_eq!(assigned.header().partition_leader_epoch, 17);
        assert_eq!(assigned.header().max_timestamp, 101);

        let mut bytes = bytes.clone();
        BatchMut::in_place(&mut bytes)
            .unwrap()
            .stamp_append_time(Timestamp(77), crc32c);
        let stamped = Batch::only(&bytes).unwrap();
        assert!(stamped.crc_holds(crc32c));
        assert_eq!(stamped.header().attributes, Attributes(8));
        assert_eq!(stamped.header().max_timestamp, 77);
        assert_eq!(stamped.header().base_timestamp, 100);

        // Beside the original, which stays: the same bytes.
        let mut head = [0; BATCH_HEADER_BYTES];
        let original = Batch::only(&original).unwrap();
        let mut beside = BatchMut::beside(&original, &mut head);
        beside.assign(9_000_000_000, 17);
        beside.stamp_append_time(Timestamp(77), crc32c);
        assert_eq!([&head[..], original.payload()].concat(), bytes);
    }

    #[test]
    fn any_flipped_bit_under_the_crc_is_seen() {
        let good = batch(&[b"some value"]);
        for bit in 17 * 8..good.len() * 8 {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(!Batch::only(&bytes).unwrap().crc_holds(crc32c), "bit {bit}");
        }
    }
}
