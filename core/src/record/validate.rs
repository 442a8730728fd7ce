//! Whether a producer's batch may be appended.

use super::{Batch, BatchError, Compression, Crc32c, TimestampType};

/// What a partition accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Rules {
    /// `max.message.bytes` of the topic: bytes of a whole batch.
    pub batch_bytes_max: u32,
    /// The Produce request's version: zstd needs 7 (KIP-110).
    pub produce_version: i16,
    /// Whether transactional batches are accepted.
    pub transactions: bool,
    /// Whether every record needs a key (`cleanup.policy` compact). Seen here only where records are not compressed: who
    /// keeps such a topic opens the others.
    pub keys_required: bool,
    /// Earliest and latest timestamp accepted, in milliseconds since 1970 (`message.timestamp.before.max.ms` and `after`,
    /// counted from now). −1, no timestamp, always passes. `None`: any. Compressed batches are judged by their header.
    pub timestamps: Option<(i64, i64)>,
}

/// Takes `records`, a partition's field in a Produce request, as one batch that may be appended under `rules`.
///
/// Checked in this order: exactly one batch of format v2, size, CRC, attributes, producer fields, counts, and, where the
/// records are not compressed, each of them: lengths fill the batch exactly, offset deltas are 0, 1, 2….
///
/// A max timestamp that is not the records' is mended in the header, as Kafka does: Sarama before 1.45.1 sends −1, and others send the last
/// record's. Of compressed records it is at least the first one's.
///
/// Errors: the first broken rule; [`BatchError::code`] is the partition's answer.
/// Cost: a CRC pass, a walk over the lengths of uncompressed records, and another CRC pass where the header is mended.
pub fn validate<'a>(records: &'a [u8], rules: &Rules, crc: Crc32c) -> Result<Batch<'a>, BatchError> {
    let mut batch = Batch::only(records)?;
    let header = *batch.header();
    if batch.len_bytes() > rules.batch_bytes_max as usize {
        return Err(BatchError::TooLarge);
    }
    if !batch.crc_holds(crc) {
        return Err(BatchError::Crc);
    }
    let compression = header.attributes.compression()?;
    if compression == Compression::Zstd && rules.produce_version < 7 {
        return Err(BatchError::ZstdTooEarly);
    }
    if header.attributes.is_control() {
        return Err(BatchError::Control);
    }
    if header.attributes.is_transactional() && !rules.transactions {
        return Err(BatchError::Transactional);
    }
    if header.attributes.timestamp_type() == TimestampType::LogAppendTime {
        return Err(BatchError::TimestampType);
    }
    if header.has_producer() && (header.producer_epoch < 0 || header.base_sequence < 0) {
        return Err(BatchError::Sequence);
    }
    if header.count < 1 || header.last_offset_delta != header.count - 1 {
        return Err(BatchError::Count);
    }
    let max_timestamp = if compression == Compression::None {
        walk(&batch, rules)?
    } else {
        let first_and_last = [header.base_timestamp, header.max_timestamp];
        if !first_and_last.iter().all(|timestamp| rules.admit(*timestamp)) {
            return Err(BatchError::Timestamp { index: 0 });
        }
        header.max_timestamp.max(header.base_timestamp)
    };
    if max_timestamp != header.max_timestamp {
        batch.mend_max_timestamp(max_timestamp, crc);
    }
    Ok(batch)
}

/// The checks of single records; their largest timestamp.
fn walk(batch: &Batch<'_>, rules: &Rules) -> Result<i64, BatchError> {
    let header = batch.header();
    let mut max_timestamp = i64::MIN;
    for (index, record) in (0u32..).zip(batch.records()) {
        let record = record?;
        if i64::from(record.offset_delta) != i64::from(index) {
            return Err(BatchError::OffsetDelta { index });
        }
        if rules.keys_required && record.key.is_none() {
            return Err(BatchError::NoKey { index });
        }
        let timestamp = header.base_timestamp.wrapping_add(record.timestamp_delta);
        if !rules.admit(timestamp) {
            return Err(BatchError::Timestamp { index });
        }
        max_timestamp = max_timestamp.max(timestamp);
    }
    Ok(max_timestamp)
}

impl Rules {
    fn admit(&self, timestamp: i64) -> bool {
        match self.timestamps {
            Some((earliest, latest)) => timestamp == -1 || (earliest..=latest).contains(&timestamp),
            None => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::record::{Attributes, BATCH_HEADER_BYTES, BatchBuilder, BatchHeader, crc32c};
    use crate::time::Timestamp;

    const RULES: Rules = Rules {
        batch_bytes_max: 1000,
        produce_version: 9,
        transactions: false,
        keys_required: false,
        timestamps: None,
    };

    /// Three records, timestamps 100, 300, 200; the second has no key.
    fn good() -> Vec<u8> {
        let mut out = [0; 500];
        let mut builder = BatchBuilder::new(&mut out).unwrap().producer(4, 0, 10);
        for (key, timestamp) in [(Some(&b"k"[..]), 100), (None, 300), (Some(&b"l"[..]), 200)] {
            builder.push(Timestamp(timestamp), key, Some(b"v"), &[]).unwrap();
        }
        builder.finish(crc32c).to_vec()
    }

    /// `good` with its header changed and sealed again, so that only the change can be to blame.
    fn with(change: impl FnOnce(&mut BatchHeader)) -> Vec<u8> {
        let mut bytes = good();
        let (head, payload) = bytes.split_first_chunk_mut::<BATCH_HEADER_BYTES>().unwrap();
        let mut header = BatchHeader::decode(head);
        change(&mut header);
        header.crc = crc32c(BatchHeader::crc_begin(&header.encode(), crc32c), payload);
        *head = header.encode();
        bytes
    }

    fn refusal(bytes: &[u8], rules: &Rules) -> BatchError {
        validate(bytes, rules, crc32c).unwrap_err()
    }

    #[test]
    fn a_good_batch_passes() {
        let bytes = good();
        assert_eq!(validate(&bytes, &RULES, crc32c).unwrap().bytes(), bytes);
        assert_eq!(validate(&with(|_| ()), &RULES, crc32c).unwrap().bytes(), bytes);
    }

    #[test]
    fn each_header_rule() {
        type Change = fn(&mut BatchHeader);
        let cases: [(BatchError, Change); 15] = [
            (BatchError::Magic(1), |h| h.magic = 1),
            (BatchError::Size(3), |h| h.length = 3),
            (BatchError::Truncated, |h| h.length += 1),
            (BatchError::ManyBatches, |h| h.length -= 1),
            (BatchError::Codec(5), |h| h.attributes.0 = 5),
            (BatchError::Control, |h| h.attributes.0 = 0x20),
            (BatchError::Transactional, |h| h.attributes.0 = 0x10),
            (BatchError::TimestampType, |h| h.attributes.0 = 8),
            (BatchError::Sequence, |h| h.base_sequence = -1),
            (BatchError::Sequence, |h| h.producer_epoch = -1),
            (BatchError::Count, |h| h.count = 0),
            (BatchError::Count, |h| h.count = i32::MIN),
            (BatchError::Count, |h| h.last_offset_delta = 3),
            (BatchError::Count, |h| h.last_offset_delta = -1),
            (BatchError::Record { index: 3 }, |h| {
                (h.count, h.last_offset_delta) = (4, 3)
            }),
        ];
        for (want, change) in cases {
            assert_eq!(refusal(&with(change), &RULES), want);
        }
        // One record fewer than there are: bytes are left over.
        let fewer = with(|h| (h.count, h.last_offset_delta) = (2, 1));
        assert_eq!(refusal(&fewer, &RULES), BatchError::Record { index: 2 });
        let no_producer = with(|h| (h.producer_id, h.producer_epoch, h.base_sequence) = (-1, -1, -1));
        assert!(validate(&no_producer, &RULES, crc32c).is_ok());
    }

    #[test]
    fn each_rule_of_the_topic() {
        let bytes = good();
        let exactly = Rules {
            batch_bytes_max: bytes.len() as u32,
            ..RULES
        };
        assert!(validate(&bytes, &exactly, crc32c).is_ok());
        let smaller = Rules {
            batch_bytes_max: bytes.len() as u32 - 1,
            ..RULES
        };
        assert_eq!(refusal(&bytes, &smaller), BatchError::TooLarge);
        let compacted = Rules {
            keys_required: true,
            ..RULES
        };
        assert_eq!(refusal(&bytes, &compacted), BatchError::NoKey { index: 1 });
        let transactions = Rules {
            transactions: true,
            ..RULES
        };
        assert!(validate(&with(|h| h.attributes.0 = 0x10), &transactions, crc32c).is_ok());
        for (range, want) in [((100, 300), None), ((101, 300), Some(0)), ((100, 299), Some(1))] {
            let rules = Rules {
                timestamps: Some(range),
                ..RULES
            };
            let got = validate(&bytes, &rules, crc32c).err();
            assert_eq!(got, want.map(|index| BatchError::Timestamp { index }));
        }
    }

    #[test]
    fn compressed_records_are_left_closed() {
        for codec in 1..5 {
            let bytes = with(|h| {
                h.attributes = Attributes(codec);
                (h.count, h.last_offset_delta) = (900, 899);
            });
            assert!(validate(&bytes, &RULES, crc32c).is_ok());
            let late = Rules {
                timestamps: Some((0, 299)),
                ..RULES
            };
            assert_eq!(refusal(&bytes, &late), BatchError::Timestamp { index: 0 });
            let before_zstd = Rules {
                produce_version: 6,
                ..RULES
            };
            let got = validate(&bytes, &before_zstd, crc32c).err();
            assert_eq!(got, (codec == 4).then_some(BatchError::ZstdTooEarly));
        }
    }

    #[test]
    fn records_without_timestamps_pass_any_range() {
        let mut out = [0; 100];
        let mut builder = BatchBuilder::new(&mut out).unwrap();
        builder.push(Timestamp::NONE, None, Some(b"v"), &[]).unwrap();
        let rules = Rules {
            timestamps: Some((50, 60)),
            ..RULES
        };
        assert!(validate(builder.finish(crc32c), &rules, crc32c).is_ok());
    }

    #[test]
    fn a_max_timestamp_that_is_not_the_records_is_mended() {
        let sealed = |change: fn(&mut BatchHeader), want: i64| {
            let bytes = with(change);
            let batch = validate(&bytes, &RULES, crc32c).unwrap();
            assert_eq!(batch.header().max_timestamp, want);
            let head = batch.header().encode();
            let whole = [&head, batch.payload()].concat();
            assert!(Batch::only(&whole).unwrap().crc_holds(crc32c));
        };
        for max in [-1, 200, 301, i64::MAX, i64::MIN] {
            let bytes = with(|h| h.max_timestamp = max);
            assert_eq!(
                validate(&bytes, &RULES, crc32c).unwrap().header(),
                validate(&good(), &RULES, crc32c).unwrap().header()
            );
        }
        sealed(|h| h.base_timestamp = 99, 299);
        // Of compressed records only the first one's is known.
        sealed(|h| (h.attributes, h.max_timestamp) = (Attributes(1), -1), 100);
        sealed(|h| (h.attributes, h.max_timestamp) = (Attributes(1), 250), 250);
    }

    #[test]
    fn offset_deltas_count_up() {
        let bytes = good();
        // The second record's offset delta: 61 + 9 bytes before it, then length, attributes, two bytes of delta.
        assert_eq!(bytes[74], 2);
        for delta in [0, 4] {
            let mut changed = bytes.clone();
            changed[74] = delta;
            let crc = crc32c(0, &changed[21..]);
            changed[17..21].copy_from_slice(&crc.to_be_bytes());
            assert_eq!(refusal(&changed, &RULES), BatchError::OffsetDelta { index: 1 });
        }
    }

    /// Goal: bytes of any kind are answered, never a panic. Method: every cut and every byte set to ends of its range.
    #[test]
    fn any_cut_or_changed_byte_is_refused() {
        let bytes = good();
        for cut in 0..bytes.len() {
            assert!(validate(&bytes[..cut], &RULES, crc32c).is_err());
        }
        for at in 0..bytes.len() {
            for value in [0, 0x7F, 0x80, 0xFF] {
                let mut changed = bytes.clone();
                changed[at] = value;
                // A checksum that always fits, so that the rules behind it are met.
                let pass = |bytes: &[u8]| validate(bytes, &RULES, |_, bytes| sum_in(bytes)).is_ok();
                let _ = pass(&changed);
            }
        }
        fn sum_in(_: &[u8]) -> u32 {
            u32::from_be_bytes(good()[17..21].try_into().unwrap())
        }
    }
}
