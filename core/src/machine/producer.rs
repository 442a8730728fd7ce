//! Idempotent producers: which batch of which producer comes next in a partition.
//!
//! Pure functions over an [`Entry`] that the owner keeps per partition and producer id. [`check`] before a batch is written
//! says append, duplicate or refusal; [`commit`] after the write succeeded gives the entry to keep. Replaying batch headers
//! through [`commit`] alone rebuilds the state, for what is in a log was accepted once.
//!
//! The rules (Kafka's `ProducerStateManager`, KIP-98, KIP-360):
//! - No entry: any first sequence, so that lost state never stops a producer.
//! - A batch equal to one of the last five of the same epoch is a duplicate, answered as the original: a producer has at
//!   most five requests in flight.
//! - A lower epoch is fenced. A higher epoch begins at sequence 0.
//! - Else the batch begins one after the last sequence. After `i32::MAX` comes 0.

use crate::error_code::ErrorCode;
use crate::record::BatchHeader;

/// Batches remembered per producer: as many as a client may have in flight.
pub const BATCHES_REMEMBERED: usize = 5;

/// What a batch says about its producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Incoming {
    /// Who sent it.
    pub producer_id: i64,
    /// Its producer's epoch.
    pub epoch: i16,
    /// Sequence of its first record.
    pub base_sequence: i32,
    /// Records after the first one.
    pub last_offset_delta: i32,
    /// Its max timestamp.
    pub timestamp: i64,
}

impl Incoming {
    /// The producer's part of a header; `None` when the producer is not idempotent.
    #[must_use]
    pub const fn of(header: &BatchHeader) -> Option<Self> {
        if !header.has_producer() {
            return None;
        }
        Some(Self {
            producer_id: header.producer_id,
            epoch: header.producer_epoch,
            base_sequence: header.base_sequence,
            last_offset_delta: header.last_offset_delta,
            timestamp: header.max_timestamp,
        })
    }

    const fn last_sequence(&self) -> i32 {
        advance(self.base_sequence, self.last_offset_delta)
    }
}

/// A batch that was appended, as its duplicate is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Original {
    /// Offset of its first record.
    pub base_offset: i64,
    /// Offset of its last record: the duplicate may be answered once this is durable.
    pub last_offset: i64,
    /// Its max timestamp.
    pub timestamp: i64,
    base_sequence: i32,
}

/// What to do with a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Verdict {
    /// Write it, then [`commit`].
    Append,
    /// It is there: answer as the original.
    Duplicate(Original),
    /// Refuse it.
    Reject(Refusal),
}

/// Why a batch is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Refusal {
    /// Its sequence is not the next one.
    OutOfOrderSequence,
    /// A newer instance of the producer has written.
    FencedEpoch,
}

impl Refusal {
    /// The error code for the partition in a Produce reply.
    #[must_use]
    pub const fn code(self) -> ErrorCode {
        match self {
            Self::OutOfOrderSequence => ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER,
            Self::FencedEpoch => ErrorCode::INVALID_PRODUCER_EPOCH,
        }
    }
}

/// What a partition remembers of one producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Entry {
    producer_id: i64,
    epoch: i16,
    /// Batches of this epoch that are remembered: 1 to 5, oldest first in `batches`.
    count: u8,
    batches: [Original; BATCHES_REMEMBERED],
}

/// Bytes of an encoded [`Entry`].
pub const ENTRY_BYTES: usize = 8 + 2 + 1 + BATCHES_REMEMBERED * ORIGINAL_BYTES;
/// Base offset, last offset, timestamp, base sequence.
const ORIGINAL_BYTES: usize = 8 + 8 + 8 + 4;

/// Judges a batch of the producer of `entry` (`None`: nothing is known of it) before it is written. Changes nothing.
#[must_use]
pub fn check(entry: Option<&Entry>, batch: &Incoming) -> Verdict {
    let Some(entry) = entry else {
        return Verdict::Append;
    };
    if batch.epoch < entry.epoch {
        return Verdict::Reject(Refusal::FencedEpoch);
    }
    let next = if batch.epoch > entry.epoch {
        0
    } else {
        if let Some(original) = entry.remembered().iter().find(|original| original.is(batch)) {
            return Verdict::Duplicate(*original);
        }
        advance(entry.last_sequence(), 1)
    };
    if batch.base_sequence == next {
        Verdict::Append
    } else {
        Verdict::Reject(Refusal::OutOfOrderSequence)
    }
}

/// The entry to keep once `batch` is written at `base_offset`; the oldest of five remembered batches goes.
#[must_use]
pub fn commit(entry: Option<&Entry>, batch: &Incoming, base_offset: i64) -> Entry {
    let mut kept = match entry {
        Some(entry) if entry.epoch == batch.epoch => *entry,
        _ => Entry {
            producer_id: batch.producer_id,
            epoch: batch.epoch,
            count: 0,
            batches: [Original::default(); BATCHES_REMEMBERED],
        },
    };
    if usize::from(kept.count) == BATCHES_REMEMBERED {
        kept.batches.rotate_left(1);
    } else {
        kept.count += 1;
    }
    if let Some(newest) = kept.batches.get_mut(usize::from(kept.count) - 1) {
        *newest = Original {
            base_offset,
            last_offset: base_offset.saturating_add(i64::from(batch.last_offset_delta)),
            timestamp: batch.timestamp,
            base_sequence: batch.base_sequence,
        };
    }
    kept
}

impl Entry {
    /// Whose it is.
    #[must_use]
    pub const fn producer_id(&self) -> i64 {
        self.producer_id
    }

    /// The newest epoch that has written.
    #[must_use]
    pub const fn epoch(&self) -> i16 {
        self.epoch
    }

    /// The newest batch.
    #[must_use]
    pub fn newest(&self) -> Original {
        self.remembered().last().copied().unwrap_or_default()
    }

    /// Sequence of the newest record.
    #[must_use]
    pub fn last_sequence(&self) -> i32 {
        self.newest().last_sequence()
    }

    /// What was known when the log ended at `end`: this without the batches that reach past it; `None` when that is all of
    /// them. A snapshot as of an earlier end is made so.
    #[must_use]
    pub fn before(&self, end: i64) -> Option<Self> {
        let kept = self
            .remembered()
            .iter()
            .take_while(|original| original.last_offset < end)
            .count();
        let count = u8::try_from(kept).ok().filter(|count| *count > 0)?;
        let mut entry = Self { count, ..*self };
        for forgotten in entry.batches.iter_mut().skip(kept) {
            *forgotten = Original::default();
        }
        Some(entry)
    }

    /// For a snapshot. The bytes are this crate's own format.
    #[must_use]
    pub fn encode(&self) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        let mut out = bytes.as_mut_slice();
        put(&mut out, self.producer_id.to_be_bytes());
        put(&mut out, self.epoch.to_be_bytes());
        put(&mut out, [self.count]);
        for original in &self.batches {
            put(&mut out, original.base_offset.to_be_bytes());
            put(&mut out, original.last_offset.to_be_bytes());
            put(&mut out, original.timestamp.to_be_bytes());
            put(&mut out, original.base_sequence.to_be_bytes());
        }
        bytes
    }

    /// From a snapshot; `None` when no entry can have been encoded so. Whether they are the bytes that were written is for the
    /// snapshot's own checksum to say.
    #[must_use]
    pub fn decode(bytes: &[u8; ENTRY_BYTES]) -> Option<Self> {
        let mut bytes = bytes.as_slice();
        let producer_id = i64::from_be_bytes(take(&mut bytes)?);
        let epoch = i16::from_be_bytes(take(&mut bytes)?);
        let [count] = take(&mut bytes)?;
        let mut batches = [Original::default(); BATCHES_REMEMBERED];
        for original in &mut batches {
            *original = Original {
                base_offset: i64::from_be_bytes(take(&mut bytes)?),
                last_offset: i64::from_be_bytes(take(&mut bytes)?),
                timestamp: i64::from_be_bytes(take(&mut bytes)?),
                base_sequence: i32::from_be_bytes(take(&mut bytes)?),
            };
        }
        let entry = Self {
            producer_id,
            epoch,
            count,
            batches,
        };
        let ranges_hold = batches
            .iter()
            .all(|original| original.records_after_first().is_some() && original.base_sequence >= 0);
        (ranges_hold && (1..=BATCHES_REMEMBERED).contains(&usize::from(count))).then_some(entry)
    }

    fn remembered(&self) -> &[Original] {
        self.batches.get(..usize::from(self.count)).unwrap_or_default()
    }
}

impl Original {
    /// Whether `batch`, of the same epoch, is this one sent again.
    fn is(&self, batch: &Incoming) -> bool {
        self.base_sequence == batch.base_sequence && self.last_sequence() == batch.last_sequence()
    }

    fn last_sequence(&self) -> i32 {
        advance(self.base_sequence, self.records_after_first().unwrap_or(0))
    }

    fn records_after_first(&self) -> Option<i32> {
        let delta = self.last_offset.checked_sub(self.base_offset)?;
        i32::try_from(delta).ok().filter(|delta| *delta >= 0)
    }
}

/// `sequence + by`, where 0 follows `i32::MAX`; both are not negative.
pub(crate) const fn advance(sequence: i32, by: i32) -> i32 {
    (sequence as u32).wrapping_add(by as u32) as i32 & i32::MAX
}

fn put<const N: usize>(out: &mut &mut [u8], value: [u8; N]) {
    if let Some((head, rest)) = core::mem::take(out).split_first_chunk_mut() {
        *head = value;
        *out = rest;
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*head)
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    fn batch(epoch: i16, base_sequence: i32, records: i32) -> Incoming {
        Incoming {
            producer_id: 9,
            epoch,
            base_sequence,
            last_offset_delta: records - 1,
            timestamp: i64::from(base_sequence) * 10,
        }
    }

    /// Commits each batch as if it had been accepted; offsets run on from 1000.
    fn after(batches: &[Incoming]) -> Entry {
        let mut entry = None;
        let mut offset = 1000;
        for batch in batches {
            entry = Some(commit(entry.as_ref(), batch, offset));
            offset += i64::from(batch.last_offset_delta) + 1;
        }
        entry.unwrap()
    }

    #[test]
    fn an_unknown_producer_may_begin_anywhere() {
        for sequence in [0, 1, 77, i32::MAX] {
            for epoch in [0, 5, i16::MAX] {
                assert_eq!(check(None, &batch(epoch, sequence, 3)), Verdict::Append);
            }
        }
    }

    #[test]
    fn the_last_five_are_answered_as_the_original() {
        let sent: Vec<_> = (0..8).map(|i| batch(0, i * 3, 3)).collect();
        let entry = after(&sent);
        for (at, again) in sent.iter().enumerate() {
            let verdict = check(Some(&entry), again);
            if at < 3 {
                assert_eq!(verdict, Verdict::Reject(Refusal::OutOfOrderSequence));
                continue;
            }
            let Verdict::Duplicate(original) = verdict else {
                panic!("{verdict:?}")
            };
            assert_eq!(original.base_offset, 1000 + 3 * at as i64);
            assert_eq!(original.last_offset, original.base_offset + 2);
            assert_eq!(original.timestamp, again.timestamp);
        }
        // Neither a part of a known batch nor one that reaches past it is a duplicate.
        for other in [batch(0, 21, 2), batch(0, 22, 2), batch(0, 21, 4), batch(0, 18, 6)] {
            assert_eq!(
                check(Some(&entry), &other),
                Verdict::Reject(Refusal::OutOfOrderSequence)
            );
        }
        assert_eq!(check(Some(&entry), &batch(0, 24, 1)), Verdict::Append);
    }

    #[test]
    fn an_entry_as_of_an_earlier_end_is_what_was_committed_by_then() {
        let sent: Vec<_> = (0..5).map(|i| batch(0, i * 3, 3)).collect();
        let entry = after(&sent);
        assert_eq!(entry.before(1002), None);
        for kept in 1..=5 {
            let end = 1000 + 3 * kept as i64;
            assert_eq!(entry.before(end), Some(after(&sent[..kept])));
            assert_eq!(entry.before(end + 2), entry.before(end + i64::from(kept == 5)));
        }
        assert_eq!(after(&[batch(0, 0, 1), batch(1, 0, 4)]).before(1004), None);
    }

    #[test]
    fn sequences_wrap_to_zero() {
        let ends_at_max = after(&[batch(0, i32::MAX - 1, 2)]);
        assert_eq!(check(Some(&ends_at_max), &batch(0, 0, 1)), Verdict::Append);
        let across = batch(0, i32::MAX - 1, 5);
        let crossed = after(&[across]);
        assert_eq!(crossed.last_sequence(), 2);
        assert_eq!(check(Some(&crossed), &batch(0, 3, 1)), Verdict::Append);
        assert!(matches!(check(Some(&crossed), &across), Verdict::Duplicate(_)));
    }

    /// Goal: every rule at every state. Method: all histories of four batches over two epochs, sequences around the wrap and
    /// both ends, one or two records, against a model that keeps everything and counts without wrapping.
    #[test]
    fn every_short_history_agrees_with_a_model() {
        let mut alphabet = Vec::new();
        for epoch in [3, 4] {
            for sequence in [0, 1, 2, i32::MAX - 1, i32::MAX] {
                alphabet.extend([batch(epoch, sequence, 1), batch(epoch, sequence, 2)]);
            }
        }
        let n = alphabet.len();
        for history in 0..n.pow(4) {
            let mut entry: Option<Entry> = None;
            let mut model: Vec<(Incoming, i64)> = Vec::new();
            for at in 0..4 {
                let next = &alphabet[history / n.pow(at) % n];
                let verdict = check(entry.as_ref(), next);
                assert_eq!(verdict, model_verdict(&model, next), "{model:?} then {next:?}");
                if verdict == Verdict::Append {
                    let offset = 100 * model.len() as i64;
                    entry = Some(commit(entry.as_ref(), next, offset));
                    model.push((*next, offset));
                    let kept = entry.unwrap();
                    assert_eq!(Entry::decode(&kept.encode()), Some(kept));
                }
            }
        }
    }

    fn model_verdict(model: &[(Incoming, i64)], next: &Incoming) -> Verdict {
        let wrapped = |sequence: i64| sequence % (1 << 31);
        let Some((last, _)) = model.last() else {
            return Verdict::Append;
        };
        if next.epoch < last.epoch {
            return Verdict::Reject(Refusal::FencedEpoch);
        }
        for (known, offset) in model.iter().rev().take(5) {
            let same = |b: &Incoming| (b.epoch, b.base_sequence, b.last_offset_delta);
            if same(known) == same(next) {
                return Verdict::Duplicate(Original {
                    base_offset: *offset,
                    last_offset: offset + i64::from(known.last_offset_delta),
                    timestamp: known.timestamp,
                    base_sequence: known.base_sequence,
                });
            }
        }
        let expected = if next.epoch > last.epoch {
            0
        } else {
            wrapped(i64::from(last.base_sequence) + i64::from(last.last_offset_delta) + 1)
        };
        if i64::from(next.base_sequence) == expected {
            Verdict::Append
        } else {
            Verdict::Reject(Refusal::OutOfOrderSequence)
        }
    }

    #[test]
    fn bytes_that_are_no_entry_are_refused() {
        let good = after(&[batch(0, 0, 1), batch(0, 1, 1)]).encode();
        for count in [0, 6, 255] {
            let mut bytes = good;
            bytes[10] = count;
            assert_eq!(Entry::decode(&bytes), None);
        }
        let mut backwards = good;
        backwards[19..27].copy_from_slice(&0i64.to_be_bytes());
        assert_eq!(Entry::decode(&backwards), None);
        let mut sequence = good;
        sequence[35] = 0x80;
        assert_eq!(Entry::decode(&sequence), None);
    }
}
