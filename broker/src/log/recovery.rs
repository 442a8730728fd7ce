//! Taking in a log that was there before: what a crash, a power cut or a bad disk left is mended here.
//!
//! - What the checkpoint says is durable is believed; of closed segments before it only the seal is read.
//! - What follows is read batch by batch, checksum and offset, up to the first that does not hold: there the file is cut, and later
//!   segments go, for they begin after a hole.
//! - Indexes, epochs and producers are brought up to the end on the way. A damaged one is made again.
//! - What was read past the checkpoint may be only in the page cache: it counts after the next flush, which is asked for.
//! - A partition with the mark of a failed disk gets its tail copied to new files first, since a sync of the old ones proves nothing.

use std::io::IoSlice;

use skerry_core::machine::producer::Incoming;
use skerry_core::record::{BATCH_HEADER_BYTES, BatchHeader, Crc32c};
use skerry_core::time::{Instant, Timestamp};
use skerry_net::host::{Disk, DiskError, FileId, OpenMode};

use super::checkpoint::Checkpoint;
use super::find::Located;
use super::index::{ENTRY_BYTES, Entry, SEAL_BYTES, Seal};
use super::partition::{Health, Mark, Names, Partition};
use super::path::{self, Dir, Kind};
use super::segment::{Segment, SegmentIx};
use super::{CreateError, LogSettings, Logs, sync_dir};
use crate::ids::PartitionIx;

/// Bytes read at a time where only headers are wanted.
const HEADERS_BYTES: usize = 4096;
/// The largest log file that is read: positions are 32 bits, and appending stops well before.
const SEGMENT_BYTES_MAX: u64 = u32::MAX as u64;

/// Why a log was not taken in.
#[derive(Debug)]
enum Trouble {
    Disk(#[allow(dead_code)] DiskError),
    /// The table of segments is full.
    Segments,
}

impl From<DiskError> for Trouble {
    fn from(error: DiskError) -> Self {
        Self::Disk(error)
    }
}

impl Logs {
    /// Takes in a partition that was there before this start: reads what follows its checkpoint, cuts a torn tail, mends what
    /// is derived. What it read past the checkpoint counts as durable after the next flush, which has been asked for.
    ///
    /// Never fails for what is on the disk: a log that cannot be read is there, answers [`super::ReadError::Storage`], and a line says
    /// why. Blocks, and may allocate.
    pub fn open<D: Disk>(
        &mut self,
        disk: &mut D,
        topic: &str,
        partition: i32,
        settings: &LogSettings,
        now: Instant,
        wall: Timestamp,
    ) -> Result<PartitionIx, CreateError> {
        let ix = self.take_slot(topic, partition, settings)?;
        let wall = self.set_clock(wall);
        if let Some(dir) = self.partition(ix).map(|p| p.dir.clone())
            && !is_there(disk, &dir)
            && disk.rename(&path::mending(&dir), &dir).is_ok()
        {
            self.note_name(ix);
        }
        let marks = self
            .partition(ix)
            .map(|p| [path::failed(&p.dir), path::failed_beside(&p.dir)]);
        let marked = marks.iter().flatten().any(|mark| is_there(disk, mark));
        let mut result = self.recover(disk, ix, now, wall);
        if marked && result.is_ok() {
            result = match self.copy_tail(disk, ix) {
                Ok(()) => {
                    self.forget_log(disk, ix);
                    self.recover(disk, ix, now, wall)
                }
                Err(error) => {
                    log::error!("{topic}-{partition}: the disk still fails ({error}): no writes");
                    self.stand_still(ix, Health::ReadOnly);
                    Ok(())
                }
            };
        }
        if let Err(trouble) = result {
            log::error!("{topic}-{partition}: the log cannot be read: {trouble:?}");
            self.stand_still(ix, Health::Unreadable);
        }
        Ok(ix)
    }

    /// Nothing more is written to this partition until the next start.
    fn stand_still(&mut self, ix: PartitionIx, health: Health) {
        self.dirty.remove(ix.0 as usize);
        self.urgent.remove(ix.0 as usize);
        if let Some(partition) = self.partition_mut(ix) {
            partition.health = health;
        }
    }

    /// Forgets what [`Logs::recover`] took in.
    fn forget_log<D: Disk>(&mut self, disk: &mut D, ix: PartitionIx) {
        while let Some(oldest) = self.partition(ix).map(|p| p.oldest).filter(|s| *s != SegmentIx::NONE) {
            self.drop_segment(disk, ix, oldest);
        }
        self.producers.forget(ix);
        self.dirty.remove(ix.0 as usize);
        self.urgent.remove(ix.0 as usize);
        if let Some(partition) = self.partition_mut(ix) {
            let (dir, settings, generation) = (partition.dir.clone(), partition.settings, partition.generation);
            *partition = Partition {
                health: Health::Good,
                dir,
                generation,
                ..Partition::absent(settings)
            };
        }
    }

    fn recover<D: Disk>(&mut self, disk: &mut D, ix: PartitionIx, now: Instant, wall: i64) -> Result<(), Trouble> {
        let Some(dir) = self.partition(ix).map(|p| p.dir.clone()) else {
            return Ok(());
        };
        let bases = match list_segments(disk, &dir) {
            Err(DiskError::NotFound) => return Ok(()),
            listed => listed?,
        };
        let loaded = self.load_checkpoint(disk, ix);
        let said = loaded.as_ref().map(|loaded| loaded.checkpoint);
        let usable = said.filter(|c| is_usable(disk, &dir, c, &bases));
        if let Some(loaded) = &loaded {
            // State as of an end that is not in the log any more would call new batches old ones.
            let Some(partition) = self.partition_mut(ix) else {
                return Ok(());
            };
            partition.checkpoint = loaded.checkpoint.number;
            if usable.is_some() {
                partition.epochs = loaded.epochs.clone();
            }
            self.load_producers(disk, ix, loaded);
            if usable.is_none() {
                self.producers.forget(ix);
            }
        }
        let first = bases.first().copied();
        let start = usable.map_or(first.unwrap_or(0), |c| c.durable);
        let mut end = said.map_or(start, |c| if bases.is_empty() { c.durable } else { start });
        let mut durable = Mark {
            offset: end,
            segment: SegmentIx::NONE,
            position: 0,
        };

        let (mut torn, mut removed) = (false, false);
        for (number, base) in bases.iter().copied().enumerate() {
            let next = bases.get(number + 1).copied();
            if torn {
                log::warn!("{dir}: segment {base} begins after a torn one and is removed");
                remove_segment(disk, &dir, base)?;
                removed = true;
                continue;
            }
            match usable {
                Some(c) if base < c.segment => self.take_closed(disk, ix, base, next, wall)?,
                Some(c) if base == c.segment => {
                    let segment = self.take_tail(disk, ix, base, next, Some(&c), &mut end, wall)?;
                    durable = Mark {
                        offset: c.durable,
                        segment,
                        position: c.position,
                    };
                }
                _ => {
                    let segment = self.take_tail(disk, ix, base, next, None, &mut end, wall)?;
                    if durable.segment == SegmentIx::NONE {
                        durable.segment = segment;
                    }
                }
            }
            torn = next.is_some_and(|next| end != next) && usable.is_none_or(|c| base >= c.segment);
        }

        let Some(partition) = self.partition_mut(ix) else {
            return Ok(());
        };
        partition.has_dir = true;
        partition.written = end;
        partition.durable = durable;
        partition.is_proved = usable.is_some();
        partition.log_start = first.unwrap_or(end).max(said.map_or(0, |c| c.log_start)).min(end);
        let log_start = partition.log_start;
        partition.epochs.cut_before(log_start);
        // Names that were made or removed since are perhaps not so on the disk yet.
        let unsynced =
            removed || partition.durable.segment != partition.newest || (usable.is_none() && first.is_some());
        if unsynced {
            partition.names = Names::Unsynced;
        }
        let is_dirty = partition.is_dirty();
        if usable.is_none() {
            self.note_name(ix);
        }
        if is_dirty {
            self.urgent.push(ix.0);
            self.note_dirty(ix, now);
        }
        Ok(())
    }

    /// A closed segment from before the checkpoint: its seal says what it is.
    fn take_closed<D: Disk>(
        &mut self,
        disk: &mut D,
        ix: PartitionIx,
        base: i64,
        next: Option<i64>,
        wall: i64,
    ) -> Result<(), Trouble> {
        let Some(dir) = self.partition(ix).map(|p| p.dir.clone()) else {
            return Ok(());
        };
        let log = disk.open(&path::segment(&dir, base, Kind::Log), OpenMode::Read)?;
        let result = self.take_closed_log(disk, ix, &dir, log, base, next, wall);
        disk.close(log);
        result
    }

    #[allow(clippy::too_many_arguments)] // One call site; a struct for it would only be another name for the list.
    fn take_closed_log<D: Disk>(
        &mut self,
        disk: &mut D,
        ix: PartitionIx,
        dir: &Dir,
        log: FileId,
        base: i64,
        next: Option<i64>,
        wall: i64,
    ) -> Result<(), Trouble> {
        let bytes = disk.len(log)?.min(SEGMENT_BYTES_MAX) as u32;
        let seal = read_seal(disk, &path::segment(dir, base, Kind::Index), base, self.policy.crc);
        if let Some(seal) = seal.filter(|seal| seal.bytes <= bytes) {
            let segment = Segment {
                bytes: seal.bytes,
                index_entries: seal.entries,
                max_timestamp: seal.max_timestamp,
                first_append: seal.first_append,
                last_append: seal.last_append,
                ..Segment::new(base)
            };
            self.push_segment(ix, segment).ok_or(Trouble::Segments)?;
            return Ok(());
        }
        log::info!("{dir}: the index of segment {base} is made again");
        let segment_ix = self.push_scanned(disk, ix, base, 0, wall)?;
        let mut cursor = Cursor::new(log, 0);
        let mut position = 0;
        while let Some(batch) = cursor.header(disk, &mut self.scratch, HEADERS_BYTES, position, bytes)? {
            if next.is_some_and(|next| batch.header.base_offset >= next) || batch.header.base_offset < base {
                break;
            }
            position = batch.end();
            self.note_scanned(disk, ix, segment_ix, &batch);
        }
        if position < bytes {
            log::error!(
                "{dir}: segment {base} holds no batch at byte {position} of {bytes}: what follows there is lost"
            );
        }
        self.write_index(disk, ix, segment_ix, true);
        Ok(())
    }

    /// A segment that reaches past the checkpoint: everything from there on is verified. `end` is the offset that must come next.
    #[allow(clippy::too_many_arguments)] // As above.
    fn take_tail<D: Disk>(
        &mut self,
        disk: &mut D,
        ix: PartitionIx,
        base: i64,
        next: Option<i64>,
        checkpoint: Option<&Checkpoint>,
        end: &mut i64,
        wall: i64,
    ) -> Result<SegmentIx, Trouble> {
        let Some(dir) = self.partition(ix).map(|p| p.dir.clone()) else {
            return Ok(SegmentIx::NONE);
        };
        let log = disk.open(&path::segment(&dir, base, Kind::Log), OpenMode::Write)?;
        let result = self.take_tail_log(disk, ix, &dir, log, base, next, checkpoint, end, wall);
        disk.close(log);
        result
    }

    #[allow(clippy::too_many_arguments)] // As above.
    fn take_tail_log<D: Disk>(
        &mut self,
        disk: &mut D,
        ix: PartitionIx,
        dir: &Dir,
        log: FileId,
        base: i64,
        next: Option<i64>,
        checkpoint: Option<&Checkpoint>,
        end: &mut i64,
        wall: i64,
    ) -> Result<SegmentIx, Trouble> {
        let file_bytes = disk.len(log)?;
        let bytes = file_bytes.min(SEGMENT_BYTES_MAX) as u32;
        let from = checkpoint.map_or(0, |c| c.position);

        // Up to the checkpoint the batches are believed, and the index is continued from its last entry that holds.
        let index_path = path::segment(dir, base, Kind::Index);
        let (entries, entry) = last_entry(disk, &index_path, base, from, self.policy.crc);
        let segment_ix = self.push_scanned(disk, ix, base, entries, wall)?;
        if let Some(segment) = self.segments.at_mut(segment_ix) {
            segment.bytes = entry.position;
            segment.max_timestamp = entry.max_timestamp;
        }
        let interval = self.partition(ix).map_or(0, |p| p.settings.index_interval_bytes);
        if let Some(partition) = self.partition_mut(ix) {
            partition.bytes += u64::from(entry.position);
            partition.tail.reset(entry.position, interval);
        }
        let mut cursor = Cursor::new(log, u64::from(entry.position));
        let mut position = entry.position;
        while let Some(batch) = cursor.header(disk, &mut self.scratch, HEADERS_BYTES, position, from)? {
            position = batch.end();
            self.note_scanned(disk, ix, segment_ix, &batch);
        }
        if position != from {
            log::error!(
                "{dir}: segment {base} holds no batch at byte {position}: what follows is lost up to byte {from}"
            );
            // The next batch gets an entry, for no walk comes past the hole.
            self.write_index(disk, ix, segment_ix, false);
            let Some(partition) = self.partition_mut(ix) else {
                return Ok(segment_ix);
            };
            partition.bytes += u64::from(from - position);
            partition.tail.reset(from.saturating_sub(interval.max(1)), interval);
            if let Some(segment) = self.segments.at_mut(segment_ix) {
                segment.bytes = from;
            }
        }

        let mut position = from;
        while next != Some(*end)
            && let Some(batch) = cursor.verified(disk, &mut self.scratch, position, bytes, *end, self.policy.crc)?
        {
            position = batch.end();
            *end = batch.header.next_offset();
            self.note_scanned(disk, ix, segment_ix, &batch);
            let Some(partition) = self.partition_mut(ix) else { break };
            partition.unchecked_bytes += u64::from(batch.bytes);
            partition
                .epochs
                .note(batch.header.partition_leader_epoch, batch.header.base_offset);
            if let Some(incoming) = Incoming::of(&batch.header)
                && self.producers.reserve(ix, incoming.producer_id, |_| i64::MAX)
            {
                self.producers.commit(ix, &incoming, batch.header.base_offset);
            }
        }
        if u64::from(position) < file_bytes {
            log::warn!(
                "{dir}: {} bytes after offset {end} are no whole batch and are cut",
                file_bytes - u64::from(position)
            );
            disk.truncate(log, u64::from(position))?;
            if let Some(partition) = self.partition_mut(ix) {
                partition.unchecked = true;
            }
        }
        if let Some(segment) = self.segments.at_mut(segment_ix)
            && let Some(c) = checkpoint
        {
            segment.first_append = c.first_append;
            segment.last_append = if position > from { wall } else { c.last_append };
        }
        if next == Some(*end) {
            self.write_index(disk, ix, segment_ix, true);
        }
        Ok(segment_ix)
    }

    /// A segment whose index has `entries` that hold; what follows them in the file is cut off.
    fn push_scanned<D: Disk>(
        &mut self,
        disk: &mut D,
        ix: PartitionIx,
        base: i64,
        entries: u32,
        wall: i64,
    ) -> Result<SegmentIx, Trouble> {
        let segment = Segment {
            index_entries: entries,
            first_append: wall,
            last_append: wall,
            ..Segment::new(base)
        };
        let segment_ix = self.push_segment(ix, segment).ok_or(Trouble::Segments)?;
        let interval = self.partition(ix).map_or(0, |p| p.settings.index_interval_bytes);
        if let Some(partition) = self.partition_mut(ix) {
            partition.tail.reset(0, interval);
        }
        let kept = u64::from(entries) * ENTRY_BYTES as u64;
        if let Ok((_, index)) = self.open_segment(disk, ix, segment_ix, true)
            && disk.len(index).is_ok_and(|bytes| bytes > kept)
        {
            // What cannot be cut is written over, and its checksums tell the rest.
            let _ = disk.truncate(index, kept);
        }
        Ok(segment_ix)
    }

    /// Takes note of a batch that is in the segment's file.
    fn note_scanned<D: Disk>(&mut self, disk: &mut D, ix: PartitionIx, segment_ix: SegmentIx, batch: &Located) {
        let Some(partition) = self.partitions.get_mut(ix.0 as usize) else {
            return;
        };
        let Some(segment) = self.segments.at_mut(segment_ix) else {
            return;
        };
        let offset_delta = u32::try_from(batch.header.base_offset.saturating_sub(segment.base)).unwrap_or(u32::MAX);
        let entry = Entry {
            offset_delta,
            position: batch.position,
            max_timestamp: segment.max_timestamp,
        };
        partition.tail.note(entry, partition.settings.index_interval_bytes);
        partition.bytes += u64::from(batch.end() - segment.bytes);
        segment.bytes = batch.end();
        segment.max_timestamp = segment.max_timestamp.max(batch.header.max_timestamp);
        if partition.tail.is_full() {
            self.write_index(disk, ix, segment_ix, false);
        }
    }

    /// Copies everything past the checkpoint to new files, makes those durable and puts them in place.
    ///
    /// A cut anywhere in between leaves either the old files or whole new ones; the mark goes last.
    fn copy_tail<D: Disk>(&mut self, disk: &mut D, ix: PartitionIx) -> Result<(), DiskError> {
        let Some(partition) = self.partition(ix) else {
            return Ok(());
        };
        let (dir, durable) = (partition.dir.clone(), partition.durable);
        let mut copied = Vec::new();
        let mut at = self.first_unflushed(ix);
        while let Some(&Segment { base, bytes, newer, .. }) = self.segments.at(at) {
            // The durable part of its segment stays where it is; what follows becomes a segment of its own.
            let (from, base_new) = if at == durable.segment && durable.position > 0 {
                (durable.position, durable.offset)
            } else {
                (0, base)
            };
            if bytes > from {
                self.copy_file(disk, &dir, base, base_new, from, bytes)?;
                copied.push(base_new);
            }
            at = newer;
        }
        if !copied.is_empty() {
            sync_dir(disk, &dir)?;
            for base in copied {
                disk.rename(
                    &path::segment(&dir, base, Kind::Copy),
                    &path::segment(&dir, base, Kind::Log),
                )?;
            }
            sync_dir(disk, &dir)?;
        }
        // If it was the data directory that could not be synced, only a new entry can be: the old one counts as written.
        disk.rename(&dir, &path::mending(&dir))?;
        disk.rename(&path::mending(&dir), &dir)?;
        sync_dir(disk, "")?;
        for (mark, of) in [(path::failed(&dir), dir.as_str()), (path::failed_beside(&dir), "")] {
            match disk.remove(&mark) {
                Ok(()) => sync_dir(disk, of)?,
                Err(DiskError::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        log::info!("{dir}: what followed the checkpoint is in new files; writes are accepted again");
        Ok(())
    }

    fn copy_file<D: Disk>(
        &mut self,
        disk: &mut D,
        dir: &Dir,
        base: i64,
        base_new: i64,
        from: u32,
        to: u32,
    ) -> Result<(), DiskError> {
        let old = disk.open(&path::segment(dir, base, Kind::Log), OpenMode::Read)?;
        let new = disk.open(&path::segment(dir, base_new, Kind::Copy), OpenMode::Create);
        let result = new.and_then(|new| {
            let result = copy_range(disk, &mut self.scratch, old, new, u64::from(from), u64::from(to));
            disk.close(new);
            result
        });
        disk.close(old);
        result
    }
}

/// Copies a range to the start of `new` and makes it durable.
fn copy_range<D: Disk>(
    disk: &mut D,
    scratch: &mut [u8],
    old: FileId,
    new: FileId,
    from: u64,
    to: u64,
) -> Result<(), DiskError> {
    disk.truncate(new, 0)?;
    let mut at = from;
    while at < to {
        let want = usize::try_from(to - at).unwrap_or(usize::MAX).min(scratch.len());
        let part = scratch.get_mut(..want).unwrap_or_default();
        let n = disk.read_at(old, at, part)?;
        if n == 0 {
            return Err(DiskError::Io);
        }
        let part = part.get(..n).unwrap_or_default();
        if disk.write_at(new, at - from, &[IoSlice::new(part)])? < n {
            return Err(DiskError::Full);
        }
        at += n as u64;
    }
    disk.sync(new)
}

/// Reads batches of one file in order, a buffer at a time.
struct Cursor {
    file: FileId,
    /// The buffer holds `filled` bytes of the file from here on.
    start: u64,
    filled: usize,
}

impl Cursor {
    const fn new(file: FileId, start: u64) -> Self {
        Self { file, start, filled: 0 }
    }

    /// The bytes from `position` on that are in the buffer, at least `want` unless the file ends.
    fn bytes<'b, D: Disk>(
        &mut self,
        disk: &mut D,
        buffer: &'b mut [u8],
        position: u64,
        want: usize,
    ) -> Result<&'b [u8], DiskError> {
        let buffered = position
            .checked_sub(self.start)
            .and_then(|at| usize::try_from(at).ok())
            .filter(|at| at.checked_add(want).is_some_and(|end| end <= self.filled));
        let at = match buffered {
            Some(at) => at,
            None => {
                (self.start, self.filled) = (position, 0);
                while self.filled < want {
                    let rest = buffer.get_mut(self.filled..).unwrap_or_default();
                    let n = disk.read_at(self.file, position + self.filled as u64, rest)?;
                    if n == 0 {
                        break;
                    }
                    self.filled += n;
                }
                0
            }
        };
        Ok(buffer.get(at..self.filled).unwrap_or_default())
    }

    /// The batch at `position`, by its header alone, when it ends at or before `end`.
    fn header<D: Disk>(
        &mut self,
        disk: &mut D,
        buffer: &mut [u8],
        chunk: usize,
        position: u32,
        end: u32,
    ) -> Result<Option<Located>, DiskError> {
        if position >= end {
            return Ok(None);
        }
        let buffer = buffer.get_mut(..chunk).unwrap_or_default();
        let bytes = self.bytes(disk, buffer, u64::from(position), BATCH_HEADER_BYTES)?;
        let Some(head) = bytes.first_chunk() else {
            return Ok(None);
        };
        let header = BatchHeader::decode(head);
        let whole = header.len_bytes().ok().and_then(|bytes| u32::try_from(bytes).ok());
        Ok(whole
            .filter(|bytes| *bytes <= end - position)
            .filter(|_| header.base_offset >= 0 && header.last_offset_delta >= 0)
            .map(|bytes| Located {
                position,
                bytes,
                header,
            }))
    }

    /// The batch at `position` when it is whole, its checksum holds and its first offset is `offset`.
    fn verified<D: Disk>(
        &mut self,
        disk: &mut D,
        buffer: &mut [u8],
        position: u32,
        end: u32,
        offset: i64,
        crc: Crc32c,
    ) -> Result<Option<Located>, DiskError> {
        let Some(batch) = self.header(disk, buffer, buffer.len(), position, end)? else {
            return Ok(None);
        };
        if batch.header.base_offset != offset || batch.header.next_offset() <= offset {
            return Ok(None);
        }
        let mut sum = BatchHeader::crc_begin(&batch.header.encode(), crc);
        let mut at = u64::from(position) + BATCH_HEADER_BYTES as u64;
        let stop = u64::from(batch.end());
        while at < stop {
            let bytes = self.bytes(disk, buffer, at, 1)?;
            let left = usize::try_from(stop - at).unwrap_or(usize::MAX);
            let part = bytes.get(..left.min(bytes.len())).unwrap_or_default();
            if part.is_empty() {
                return Ok(None);
            }
            sum = crc(sum, part);
            at += part.len() as u64;
        }
        Ok((sum == batch.header.crc).then_some(batch))
    }
}

/// Whether the log is as the checkpoint found it, as far as names and lengths tell.
fn is_usable<D: Disk>(disk: &mut D, dir: &Dir, checkpoint: &Checkpoint, bases: &[i64]) -> bool {
    if !bases.contains(&checkpoint.segment) {
        return false;
    }
    let Ok(log) = disk.open(&path::segment(dir, checkpoint.segment, Kind::Log), OpenMode::Read) else {
        return false;
    };
    let holds = disk.len(log).is_ok_and(|bytes| bytes >= u64::from(checkpoint.position));
    disk.close(log);
    // An empty part of a segment ends where it begins.
    holds && (checkpoint.position > 0 || checkpoint.durable == checkpoint.segment)
}

/// Base offsets of the log files in a directory, rising. What is left of a copy, and indexes of nothing, are removed.
fn list_segments<D: Disk>(disk: &mut D, dir: &Dir) -> Result<Vec<i64>, DiskError> {
    let (mut bases, mut indexes, mut copies) = (Vec::new(), Vec::new(), Vec::new());
    disk.list(dir, &mut |name| {
        bases.extend(path::base(name, Kind::Log));
        indexes.extend(path::base(name, Kind::Index));
        copies.extend(path::base(name, Kind::Copy));
    })?;
    bases.sort_unstable();
    indexes.retain(|base| bases.binary_search(base).is_err());
    for (orphans, kind) in [(indexes, Kind::Index), (copies, Kind::Copy)] {
        for base in orphans {
            let _ = disk.remove(&path::segment(dir, base, kind));
        }
    }
    Ok(bases)
}

fn remove_segment<D: Disk>(disk: &mut D, dir: &Dir, base: i64) -> Result<(), DiskError> {
    disk.remove(&path::segment(dir, base, Kind::Log))?;
    match disk.remove(&path::segment(dir, base, Kind::Index)) {
        Ok(()) | Err(DiskError::NotFound) => Ok(()),
        Err(error) => Err(error),
    }
}

fn is_there<D: Disk>(disk: &mut D, path: &str) -> bool {
    [OpenMode::Read, OpenMode::Directory]
        .iter()
        .any(|mode| disk.open(path, *mode).map(|file| disk.close(file)).is_ok())
}

fn read_seal<D: Disk>(disk: &mut D, path: &str, base: i64, crc: Crc32c) -> Option<Seal> {
    let index = disk.open(path, OpenMode::Read).ok()?;
    let seal = disk.len(index).ok().and_then(|bytes| {
        let mut text = [0; SEAL_BYTES];
        let at = bytes.checked_sub(SEAL_BYTES as u64)?;
        let whole = disk.read_at(index, at, &mut text) == Ok(SEAL_BYTES);
        let seal = Seal::decode(&text, base, crc).filter(|_| whole)?;
        (u64::from(seal.entries) * ENTRY_BYTES as u64 == at).then_some(seal)
    });
    disk.close(index);
    seal
}

/// How many entries of an index lie before `position`, and the last of them that holds. Those before it are looked at when they
/// are used.
fn last_entry<D: Disk>(disk: &mut D, path: &str, base: i64, position: u32, crc: Crc32c) -> (u32, Entry) {
    let nothing = (0, Entry::START);
    let Ok(index) = disk.open(path, OpenMode::Read) else {
        return nothing;
    };
    let bytes = disk.len(index).unwrap_or(0);
    // Each entry's batch begins after another one: a longer index, such as Kafka's preallocated ones, has none beyond that.
    let count_max = position / BATCH_HEADER_BYTES as u32;
    let mut count = u32::try_from(bytes / ENTRY_BYTES as u64).map_or(count_max, |count| count.min(count_max));
    let mut found = nothing;
    while count > 0 {
        let mut text = [0; ENTRY_BYTES];
        let at = u64::from(count - 1) * ENTRY_BYTES as u64;
        let whole = disk.read_at(index, at, &mut text) == Ok(ENTRY_BYTES);
        let entry = Entry::decode(&text, base, count - 1, crc).filter(|entry| whole && entry.position < position);
        if let Some(entry) = entry {
            found = (count, entry);
            break;
        }
        count -= 1;
    }
    disk.close(index);
    found
}
