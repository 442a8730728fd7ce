//! The sparse index of a segment: where batches lie and how late the records before them are. Derived, never trusted.
//!
//! Shape of a file: entries of 20 bytes — offset of a batch's first record relative to the segment's base u32 ‖ position of that batch
//! u32 ‖ largest timestamp of the batches before it i64 ‖ CRC-32C u32 — and, once the segment is closed, a seal of 36 bytes.
//! Every CRC also covers the segment's base and the entry's number, so an entry that was torn, flipped or left by another file is told
//! at once. All three columns only rise, so one file answers by offset and by time.

use skerry_core::record::Crc32c;

/// Bytes of one entry.
pub(super) const ENTRY_BYTES: usize = 20;
/// Bytes of the seal.
pub(super) const SEAL_BYTES: usize = 36;
/// Entries of the active segment that are kept in memory.
pub(super) const TAIL_ENTRIES: usize = 32;

/// Where a batch lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    /// Offset of its first record, after the segment's base.
    pub(super) offset_delta: u32,
    /// Where it begins in the file.
    pub(super) position: u32,
    /// Largest timestamp of the batches before it.
    pub(super) max_timestamp: i64,
}

impl Entry {
    /// The start of every segment, which no file says.
    pub(super) const START: Self = Self {
        offset_delta: 0,
        position: 0,
        max_timestamp: -1,
    };

    pub(super) fn encode(&self, base: i64, number: u32, crc: Crc32c) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        let (body, sum) = bytes.split_at_mut(ENTRY_BYTES - 4);
        let (offset, rest) = body.split_at_mut(4);
        let (position, timestamp) = rest.split_at_mut(4);
        offset.copy_from_slice(&self.offset_delta.to_be_bytes());
        position.copy_from_slice(&self.position.to_be_bytes());
        timestamp.copy_from_slice(&self.max_timestamp.to_be_bytes());
        sum.copy_from_slice(&crc(salt(base, number, crc), body).to_be_bytes());
        bytes
    }

    /// `None` when these are not the bytes that were written as entry `number` of this segment.
    pub(super) fn decode(bytes: &[u8; ENTRY_BYTES], base: i64, number: u32, crc: Crc32c) -> Option<Self> {
        let (body, sum) = bytes.split_last_chunk::<4>()?;
        if u32::from_be_bytes(*sum) != crc(salt(base, number, crc), body) {
            return None;
        }
        let (offset, rest) = body.split_first_chunk()?;
        let (position, rest) = rest.split_first_chunk()?;
        let (timestamp, _) = rest.split_first_chunk()?;
        Some(Self {
            offset_delta: u32::from_be_bytes(*offset),
            position: u32::from_be_bytes(*position),
            max_timestamp: i64::from_be_bytes(*timestamp),
        })
    }
}

/// What a closed segment is: the end of its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seal {
    pub(super) entries: u32,
    pub(super) bytes: u32,
    pub(super) max_timestamp: i64,
    pub(super) first_append: i64,
    pub(super) last_append: i64,
}

/// The number in a seal's checksum: no entry has it.
const SEAL_NUMBER: u32 = u32::MAX;

impl Seal {
    pub(super) fn encode(&self, base: i64, crc: Crc32c) -> [u8; SEAL_BYTES] {
        let mut bytes = [0; SEAL_BYTES];
        let (body, sum) = bytes.split_at_mut(SEAL_BYTES - 4);
        let mut out = &mut *body;
        put(&mut out, self.entries.to_be_bytes());
        put(&mut out, self.bytes.to_be_bytes());
        put(&mut out, self.max_timestamp.to_be_bytes());
        put(&mut out, self.first_append.to_be_bytes());
        put(&mut out, self.last_append.to_be_bytes());
        sum.copy_from_slice(&crc(salt(base, SEAL_NUMBER, crc), body).to_be_bytes());
        bytes
    }

    /// `None` when these are not the bytes of this segment's seal.
    pub(super) fn decode(bytes: &[u8; SEAL_BYTES], base: i64, crc: Crc32c) -> Option<Self> {
        let (mut body, sum) = bytes.split_last_chunk::<4>().map(|(body, sum)| (body, *sum))?;
        if u32::from_be_bytes(sum) != crc(salt(base, SEAL_NUMBER, crc), body) {
            return None;
        }
        Some(Self {
            entries: u32::from_be_bytes(take(&mut body)?),
            bytes: u32::from_be_bytes(take(&mut body)?),
            max_timestamp: i64::from_be_bytes(take(&mut body)?),
            first_append: i64::from_be_bytes(take(&mut body)?),
            last_append: i64::from_be_bytes(take(&mut body)?),
        })
    }
}

fn salt(base: i64, number: u32, crc: Crc32c) -> u32 {
    crc(crc(0, &base.to_be_bytes()), &number.to_be_bytes())
}

/// Writes `value` to the front of `out`; a caller has counted that it fits.
pub(super) fn put<const N: usize>(out: &mut &mut [u8], value: [u8; N]) {
    if let Some((head, rest)) = core::mem::take(out).split_first_chunk_mut() {
        *head = value;
        *out = rest;
    }
}

/// Takes a value off the front of `bytes`.
pub(super) fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*head)
}

/// The newest entries of the active segment: what consumers at the end look up, and what has not been written to the index file.
///
/// When full of entries that could not be written: further ones are left out, and the index is sparser there.
#[derive(Clone, Debug)]
pub(super) struct Tail {
    entries: heapless::Deque<Entry, TAIL_ENTRIES>,
    /// How many of the newest are not in the file.
    pending: u8,
    /// The position from which the next batch gets an entry.
    due: u32,
}

impl Tail {
    pub(super) const EMPTY: Self = Self {
        entries: heapless::Deque::new(),
        pending: 0,
        due: 0,
    };

    /// Begins a segment, or goes on in one after its last entry.
    pub(super) fn reset(&mut self, last_position: u32, interval: u32) {
        self.entries.clear();
        self.pending = 0;
        self.due = last_position.saturating_add(interval.max(1));
    }

    /// Notes a batch when an entry is due.
    pub(super) fn note(&mut self, entry: Entry, interval: u32) {
        if entry.position < self.due || usize::from(self.pending) == TAIL_ENTRIES {
            return;
        }
        if self.entries.is_full() {
            self.entries.pop_front();
        }
        if self.entries.push_back(entry).is_ok() {
            self.pending += 1;
        }
        self.due = entry.position.saturating_add(interval.max(1));
    }

    /// Whether there is no place for another entry before [`Tail::pending`] ones are written.
    pub(super) const fn is_full(&self) -> bool {
        self.pending as usize == TAIL_ENTRIES
    }

    /// The entries that are not in the file, oldest first.
    pub(super) fn pending(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().skip(self.entries.len() - usize::from(self.pending))
    }

    /// How many [`Tail::pending`] gives.
    pub(super) const fn pending_count(&self) -> u32 {
        self.pending as u32
    }

    /// All entries are in the file now.
    pub(super) const fn wrote(&mut self) {
        self.pending = 0;
    }

    /// The newest entry for which `before` holds, where it must hold for all that are older; `None` when the file must be asked.
    pub(super) fn find(&self, before: impl Fn(&Entry) -> bool) -> Option<Entry> {
        self.entries.iter().rev().find(|entry| before(entry)).copied()
    }

    /// Whether the oldest kept entry is also the segment's first.
    pub(super) fn is_whole(&self, entries_in_file: u32) -> bool {
        self.entries.len() as u32 == entries_in_file + self.pending_count()
    }
}

#[cfg(test)]
mod tests {
    use skerry_core::record::crc32c;

    use super::*;

    const ENTRY: Entry = Entry {
        offset_delta: 77,
        position: 4096,
        max_timestamp: 1_700_000_000_000,
    };

    #[test]
    fn any_flipped_bit_is_seen() {
        let good = ENTRY.encode(1000, 3, crc32c);
        assert_eq!(Entry::decode(&good, 1000, 3, crc32c), Some(ENTRY));
        assert_eq!(Entry::decode(&good, 1001, 3, crc32c), None);
        assert_eq!(Entry::decode(&good, 1000, 4, crc32c), None);
        assert_eq!(Entry::decode(&[0; ENTRY_BYTES], 0, 0, crc32c), None);
        for bit in 0..ENTRY_BYTES * 8 {
            let mut bad = good;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Entry::decode(&bad, 1000, 3, crc32c), None, "bit {bit}");
        }
        let seal = Seal {
            entries: 9,
            bytes: 99,
            max_timestamp: 7,
            first_append: 1,
            last_append: 2,
        };
        let good = seal.encode(5, crc32c);
        assert_eq!(Seal::decode(&good, 5, crc32c), Some(seal));
        assert_eq!(Seal::decode(&[0; SEAL_BYTES], 0, crc32c), None);
        for bit in 0..SEAL_BYTES * 8 {
            let mut bad = good;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Seal::decode(&bad, 5, crc32c), None, "bit {bit}");
        }
    }

    #[test]
    fn the_tail_keeps_what_is_due_and_says_when_to_write() {
        let mut tail = Tail::EMPTY;
        tail.reset(0, 100);
        let at = |position: u32| Entry {
            offset_delta: position,
            position,
            max_timestamp: 0,
        };
        for position in (0..).step_by(60).take(5) {
            tail.note(at(position), 100);
        }
        assert_eq!(tail.pending().map(|e| e.position).collect::<Vec<_>>(), [120, 240]);
        assert_eq!(tail.find(|e| e.offset_delta <= 239), Some(at(120)));
        assert_eq!(tail.find(|e| e.offset_delta <= 119), None);
        assert!(tail.is_whole(0));
        for n in 0..100 {
            tail.note(at(1000 + 100 * n), 100);
        }
        assert!(tail.is_full());
        assert_eq!(tail.pending().count(), TAIL_ENTRIES);
        assert_eq!(
            tail.pending().next(),
            Some(&at(120)),
            "what is not written is not pushed out"
        );
        tail.wrote();
        tail.note(at(90_000), 100);
        assert_eq!(tail.pending().collect::<Vec<_>>(), [&at(90_000)]);
        assert!(tail.find(|e| e.offset_delta <= 240).is_some());
        assert!(!tail.is_whole(TAIL_ENTRIES as u32));
    }
}
