//! The checkpoint of a partition: from where a start must read, and what was derived from everything before.
//!
//! Two files are written in turn, unsynced: whatever a power cut leaves of one, the other is older and whole. A stale one costs time at
//! the next start, never data; so does none at all.
//!
//! Shape: magic u32 ‖ version u16 ‖ number u64 ‖ log start i64 ‖ durable offset i64 ‖ base of its segment i64 ‖ position in that
//! segment u32 ‖ first append i64 ‖ last append i64 ‖ epoch count u16 ‖ producer count u32 ‖ epochs (i32 ‖ i64) ‖ producer
//! entries ‖ CRC-32C u32 of everything before.

use std::io::IoSlice;

use skerry_core::machine::producer::{ENTRY_BYTES, Entry};
use skerry_core::record::Crc32c;
use skerry_net::host::{Disk, DiskError, FileId, OpenMode};

use super::epochs::Epochs;
use super::index::{put, take};
use super::producers::Producers;
use super::{Logs, path};
use crate::ids::PartitionIx;

const MAGIC: u32 = 0x534b_4350;
const VERSION: u16 = 1;
const HEAD_BYTES: usize = 4 + 2 + 8 + 8 + 8 + 8 + 4 + 8 + 8 + 2 + 4;
const EPOCH_BYTES: usize = 4 + 8;
const CRC_BYTES: usize = 4;

/// What a checkpoint says before its epochs and producers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Checkpoint {
    /// Rises by one with each.
    pub(super) number: u64,
    pub(super) log_start: i64,
    /// Everything before it is durable.
    pub(super) durable: i64,
    /// Base offset of the segment that holds, or will hold, that offset.
    pub(super) segment: i64,
    /// Where in that segment.
    pub(super) position: u32,
    /// That segment's wall-clock times.
    pub(super) first_append: i64,
    pub(super) last_append: i64,
}

/// A checkpoint that was found whole.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) checkpoint: Checkpoint,
    pub(super) epochs: Epochs,
    file: FileId,
    producers: u32,
    producers_at: u64,
}

/// Bytes on their way into a file, summed as they pass.
struct Out<'a, D> {
    disk: &'a mut D,
    file: FileId,
    buffer: &'a mut [u8],
    used: usize,
    position: u64,
    sum: u32,
    crc: Crc32c,
}

impl<D: Disk> Out<'_, D> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), DiskError> {
        if self.used + bytes.len() > self.buffer.len() {
            self.flush()?;
        }
        self.sum = (self.crc)(self.sum, bytes);
        // A piece is never longer than an empty buffer.
        if let Some(place) = self.buffer.get_mut(self.used..self.used + bytes.len()) {
            place.copy_from_slice(bytes);
            self.used += bytes.len();
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), DiskError> {
        let bytes = self.buffer.get(..self.used).unwrap_or_default();
        if self.disk.write_at(self.file, self.position, &[IoSlice::new(bytes)])? < self.used {
            return Err(DiskError::Full);
        }
        self.position += self.used as u64;
        self.used = 0;
        Ok(())
    }
}

impl Logs {
    /// Writes a checkpoint of what is durable. Not synced; an error is only a longer next start.
    pub(super) fn write_checkpoint<D: Disk>(&mut self, disk: &mut D, ix: PartitionIx) {
        let Some(partition) = self.partition(ix).filter(|p| p.is_proved) else {
            return;
        };
        let Some(segment) = self.segments.at(partition.durable.segment) else {
            return;
        };
        let checkpoint = Checkpoint {
            number: partition.checkpoint + 1,
            log_start: partition.log_start,
            durable: partition.durable.offset,
            segment: segment.base,
            position: partition.durable.position,
            first_append: segment.first_append,
            last_append: segment.last_append,
        };
        let path = path::checkpoint(&partition.dir, checkpoint.number);
        let unflushed = u64::try_from(partition.written - partition.durable.offset).unwrap_or(0);
        let wrote = disk.open(&path, OpenMode::Create).and_then(|file| {
            let mut out = Out {
                disk,
                file,
                buffer: &mut self.scratch,
                used: 0,
                position: 0,
                sum: 0,
                crc: self.policy.crc,
            };
            let wrote = write(
                &mut out,
                &checkpoint,
                self.partitions.get(ix.0 as usize).map(|p| &p.epochs),
                &self.producers,
                ix,
            );
            disk.close(file);
            wrote
        });
        if let Err(error) = wrote {
            log::debug!("{path}: no checkpoint: {error}");
        }
        // Also after an error: the disk is asked again only when there is more to say.
        if let Some(partition) = self.partition_mut(ix) {
            partition.checkpoint = checkpoint.number;
            partition.unchecked = unflushed > 0;
            partition.unchecked_bytes = 0;
        }
    }

    /// The newest whole checkpoint of a partition; its file is open until [`Logs::load_producers`].
    pub(super) fn load_checkpoint<D: Disk>(&mut self, disk: &mut D, ix: PartitionIx) -> Option<Loaded> {
        let dir = self.partition(ix)?.dir.clone();
        let mut best: Option<Loaded> = None;
        for turn in 0..2 {
            let Ok(file) = disk.open(&path::checkpoint(&dir, turn), OpenMode::Read) else {
                continue;
            };
            match read(disk, file, &mut self.scratch, self.policy.crc) {
                Some(loaded)
                    if best
                        .as_ref()
                        .is_none_or(|b| b.checkpoint.number < loaded.checkpoint.number) =>
                {
                    if let Some(older) = best.replace(loaded) {
                        disk.close(older.file);
                    }
                }
                _ => disk.close(file),
            }
        }
        best
    }

    /// Takes in the producers of a checkpoint.
    pub(super) fn load_producers<D: Disk>(&mut self, disk: &mut D, ix: PartitionIx, loaded: &Loaded) {
        let mut position = loaded.producers_at;
        for _ in 0..loaded.producers {
            let mut bytes = [0; ENTRY_BYTES];
            if disk.read_at(loaded.file, position, &mut bytes) != Ok(ENTRY_BYTES) {
                break;
            }
            if let Some(entry) = Entry::decode(&bytes)
                && self.producers.reserve(ix, entry.producer_id(), |_| i64::MAX)
            {
                self.producers.put(ix, entry);
            }
            position += ENTRY_BYTES as u64;
        }
        disk.close(loaded.file);
    }
}

fn write<D: Disk>(
    out: &mut Out<'_, D>,
    checkpoint: &Checkpoint,
    epochs: Option<&Epochs>,
    producers: &Producers,
    ix: PartitionIx,
) -> Result<(), DiskError> {
    let end = checkpoint.durable;
    // As of the durable end: what comes after it is replayed from the log, or was never there.
    let epochs = || {
        epochs
            .into_iter()
            .flat_map(Epochs::iter)
            .filter(|epoch| epoch.start < end)
    };
    let entries = || producers.of(ix).filter_map(|entry| entry.before(end));
    let mut head = [0; HEAD_BYTES];
    let mut at = head.as_mut_slice();
    put(&mut at, MAGIC.to_be_bytes());
    put(&mut at, VERSION.to_be_bytes());
    put(&mut at, checkpoint.number.to_be_bytes());
    put(&mut at, checkpoint.log_start.to_be_bytes());
    put(&mut at, checkpoint.durable.to_be_bytes());
    put(&mut at, checkpoint.segment.to_be_bytes());
    put(&mut at, checkpoint.position.to_be_bytes());
    put(&mut at, checkpoint.first_append.to_be_bytes());
    put(&mut at, checkpoint.last_append.to_be_bytes());
    put(&mut at, (epochs().count() as u16).to_be_bytes());
    put(&mut at, (entries().count() as u32).to_be_bytes());
    out.put(&head)?;
    for epoch in epochs() {
        out.put(&epoch.epoch.to_be_bytes())?;
        out.put(&epoch.start.to_be_bytes())?;
    }
    for entry in entries() {
        out.put(&entry.encode())?;
    }
    let sum = out.sum;
    out.put(&sum.to_be_bytes())?;
    out.flush()
}

/// Reads a checkpoint's head and epochs and sums all of it; `None` unless it is whole.
fn read<D: Disk>(disk: &mut D, file: FileId, scratch: &mut [u8], crc: Crc32c) -> Option<Loaded> {
    let mut head = [0; HEAD_BYTES];
    if disk.read_at(file, 0, &mut head) != Ok(HEAD_BYTES) {
        return None;
    }
    let mut at = head.as_slice();
    if u32::from_be_bytes(take(&mut at)?) != MAGIC || u16::from_be_bytes(take(&mut at)?) != VERSION {
        return None;
    }
    let checkpoint = Checkpoint {
        number: u64::from_be_bytes(take(&mut at)?),
        log_start: i64::from_be_bytes(take(&mut at)?),
        durable: i64::from_be_bytes(take(&mut at)?),
        segment: i64::from_be_bytes(take(&mut at)?),
        position: u32::from_be_bytes(take(&mut at)?),
        first_append: i64::from_be_bytes(take(&mut at)?),
        last_append: i64::from_be_bytes(take(&mut at)?),
    };
    let epochs = u16::from_be_bytes(take(&mut at)?);
    let producers = u32::from_be_bytes(take(&mut at)?);
    let producers_at = HEAD_BYTES as u64 + u64::from(epochs) * EPOCH_BYTES as u64;
    let end = producers_at + u64::from(producers) * ENTRY_BYTES as u64;

    let (mut position, mut sum) = (0, 0);
    while position < end {
        let want = usize::try_from(end - position).unwrap_or(usize::MAX).min(scratch.len());
        let part = scratch.get_mut(..want)?;
        match disk.read_at(file, position, part) {
            Ok(n) if n > 0 => {
                sum = crc(sum, part.get(..n)?);
                position += n as u64;
            }
            _ => return None,
        }
    }
    let mut stored = [0; CRC_BYTES];
    if disk.read_at(file, end, &mut stored) != Ok(CRC_BYTES) || u32::from_be_bytes(stored) != sum {
        return None;
    }
    let sane = checkpoint.log_start >= 0
        && checkpoint.segment >= 0
        && checkpoint.durable >= checkpoint.segment.max(checkpoint.log_start);
    if !sane {
        return None;
    }

    let mut known = Epochs::EMPTY;
    for number in 0..u64::from(epochs) {
        let mut bytes = [0; EPOCH_BYTES];
        if disk.read_at(file, HEAD_BYTES as u64 + number * EPOCH_BYTES as u64, &mut bytes) != Ok(EPOCH_BYTES) {
            return None;
        }
        let mut at = bytes.as_slice();
        let epoch = i32::from_be_bytes(take(&mut at)?);
        known.note(epoch, i64::from_be_bytes(take(&mut at)?));
    }
    Some(Loaded {
        checkpoint,
        epochs: known,
        file,
        producers,
        producers_at,
    })
}
