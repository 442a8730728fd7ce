//! Log storage: append, read, find, keep, flush, repair. Files only through [`skerry_net::host::Disk`].
//!
//! A partition is a directory of segments: batches exactly as they go over the wire, and beside each log file one index that is derived
//! from it. Everything that is known of a log is in [`Logs`], taken at start; a produce and a fetch allocate nothing.
//! What a crash leaves and how it is mended: `recovery`.

mod append;
mod checkpoint;
mod epochs;
mod files;
mod find;
mod flusher;
mod index;
mod partition;
mod path;
mod producers;
mod read;
mod records;
mod recovery;
mod retention;
mod segment;
mod settings;
mod types;

pub use files::FilePin;
pub use flusher::{Flushed, Flusher, SyncFile};
pub use settings::{LogLimits, LogPolicy, LogSettings};
pub use types::{
    AppendError, AppendParams, Appended, ColdRange, CreateError, Ends, EpochEnd, FoundOffset, OffsetSpec, ReadError,
    ReadRange,
};

use skerry_core::record::Batch;
use skerry_core::time::{Millis, Timestamp};
use skerry_net::host::{Disk, DiskError, FileId, OpenMode};
use skerry_net::queue::Queue;

use crate::ids::PartitionIx;
use crate::logging::RateLimited;
use crate::unpack::{UnpackError, Unpacker};
use files::{Files, Owner};
use find::Rebuild;
use partition::{Health, Mark, Names, Partition};
use path::{Dir, Kind};
use producers::Producers;
use segment::{Segment, SegmentIx, Segments};

/// Bytes for looking at log files: a few pages, so that one call meets many small batches.
const SCRATCH_BYTES: usize = 64 * 1024;

/// The logs of all partitions.
#[derive(Debug)]
pub struct Logs {
    limits: LogLimits,
    policy: LogPolicy,
    partitions: Vec<Partition>,
    free: Vec<PartitionIx>,
    segments: Segments,
    files: Files,
    producers: Producers,
    /// Partitions with unflushed bytes, the longest dirty first.
    dirty: Queue<u32>,
    /// Partitions that must be flushed though nobody waits.
    urgent: Queue<u32>,
    /// Partitions that failed and of which nobody has been told.
    failures: Queue<u32>,
    /// The data directory has entries that are not synced.
    names_dirty: bool,
    /// For names of directories that are moved aside.
    aside: u32,
    rebuild: Option<Rebuild>,
    /// It was said that every segment is in use.
    told_full: bool,
    full_log: RateLimited,
    unpacker: Unpacker,
    scratch: Box<[u8]>,
}

/// Why a file is not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileError {
    /// Every open file is in use.
    Exhausted,
    /// The disk said no.
    Disk(DiskError),
}

impl From<FileError> for ReadError {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Exhausted | FileError::Disk(DiskError::Exhausted) => Self::Exhausted,
            FileError::Disk(_) => Self::Storage,
        }
    }
}

impl Logs {
    /// Takes all memory.
    #[must_use]
    pub fn new(limits: LogLimits, policy: LogPolicy) -> Self {
        Self {
            limits,
            policy,
            partitions: Vec::with_capacity(limits.partitions as usize),
            free: Vec::with_capacity(limits.partitions as usize),
            segments: Segments::new(limits.segments),
            files: Files::new(limits.open_files),
            producers: Producers::new(limits.producers),
            dirty: Queue::new(limits.partitions),
            urgent: Queue::new(limits.partitions),
            failures: Queue::new(limits.partitions),
            names_dirty: false,
            aside: 0,
            rebuild: None,
            told_full: false,
            full_log: RateLimited::new(1, Millis(60_000)),
            unpacker: Unpacker::new(),
            scratch: vec![0; SCRATCH_BYTES].into_boxed_slice(),
        }
    }

    /// Takes in a new, empty partition. Its directory is made by its first append. A directory of that name that nobody knows
    /// is moved aside (`…-stray`), never adopted.
    ///
    /// When full: [`CreateError::Full`].
    pub fn create<D: Disk>(
        &mut self,
        disk: &mut D,
        topic: &str,
        partition: i32,
        settings: &LogSettings,
    ) -> Result<PartitionIx, CreateError> {
        let ix = self.take_slot(topic, partition, settings)?;
        match self.move_aside(disk, ix, path::STRAY) {
            Ok(false) => {}
            Ok(true) => log::warn!("{topic}-{partition}: a directory that belongs to no topic was moved aside"),
            Err(error) => {
                log::error!("{topic}-{partition}: what is in the way cannot be moved aside: {error}");
                self.give_slot(ix);
                return Err(CreateError::Storage);
            }
        }
        Ok(ix)
    }

    /// Forgets a partition and renames its directory to `<name>.<n>-delete`. The rename is durable after [`Logs::sync_names`]; the
    /// files go with [`Logs::purge`]. Ranges that were read stay readable until released.
    ///
    /// Errors: the rename failed, and the partition is still there.
    pub fn delete<D: Disk>(&mut self, disk: &mut D, ix: PartitionIx) -> Result<(), DiskError> {
        if self.partition(ix).is_none() {
            return Ok(());
        }
        self.move_aside(disk, ix, path::DELETE)?;
        while let Some(oldest) = self.partition(ix).map(|p| p.oldest).filter(|s| *s != SegmentIx::NONE) {
            self.drop_segment(disk, ix, oldest);
        }
        self.producers.forget(ix);
        self.give_slot(ix);
        Ok(())
    }

    /// Makes renames of partition directories durable. Blocks: once for any number of partitions.
    pub fn sync_names<D: Disk>(&mut self, disk: &mut D) -> Result<(), DiskError> {
        let under_way = self.partitions.iter().any(|p| p.name != Names::Durable);
        if !self.names_dirty && !under_way {
            return Ok(());
        }
        self.begin_names();
        let result = sync_dir(disk, "");
        self.end_names(disk, result);
        result
    }

    /// A sync of the data directory begins: what is named after this needs another one.
    fn begin_names(&mut self) {
        self.names_dirty = false;
        for partition in self.partitions.iter_mut().filter(|p| p.name == Names::Unsynced) {
            partition.name = Names::Syncing;
        }
    }

    /// It has ended. When it failed, no later one proves anything for the directories that it carried.
    fn end_names<D: Disk>(&mut self, disk: &mut D, result: Result<(), DiskError>) {
        for number in 0..self.partitions.len() {
            let ix = PartitionIx(number as u32);
            let Some(partition) = self.partition_mut(ix).filter(|p| p.name == Names::Syncing) else {
                continue;
            };
            match result {
                Ok(()) => partition.name = Names::Durable,
                Err(error) => self.fail(disk, ix, error),
            }
        }
    }

    /// Removes every directory `…-delete`: at start, and after a deletion has been answered. Allocates.
    pub fn purge<D: Disk>(&mut self, disk: &mut D) {
        let mut dirs = Vec::new();
        let listed = disk.list("", &mut |name| {
            if name.ends_with(path::DELETE) {
                dirs.push(name.to_owned());
            }
        });
        let mut result = listed;
        for dir in dirs {
            let mut names = Vec::new();
            result = result.and(disk.list(&dir, &mut |name| names.push(format!("{dir}/{name}"))));
            for name in names {
                result = result.and(disk.remove(&name));
            }
            result = result.and(disk.remove_dir(&dir));
        }
        if let Err(error) = result {
            log::warn!("deleted partitions are not all gone, the next start tries again: {error}");
        }
    }

    /// Changes what a partition obeys.
    pub fn configure(&mut self, ix: PartitionIx, settings: &LogSettings) {
        if let Some(partition) = self.partition_mut(ix) {
            partition.settings = *settings;
        }
    }

    /// The offsets that bound a partition; all 0 for one that is not there.
    #[must_use]
    pub fn ends(&self, ix: PartitionIx) -> Ends {
        let Some(partition) = self.partition(ix) else {
            return Ends {
                log_start: 0,
                written: 0,
                durable: 0,
                high_watermark: 0,
            };
        };
        let durable = partition.durable.offset;
        Ends {
            log_start: partition.log_start,
            written: partition.written,
            durable,
            high_watermark: if self.policy.reads_written() {
                partition.written
            } else {
                durable
            },
        }
    }

    /// Ranges that were read and not released. Cost: a look at every open file.
    #[must_use]
    pub fn pins(&self) -> usize {
        self.files.pins()
    }

    /// Bytes of a partition's log files.
    #[must_use]
    pub fn bytes(&self, ix: PartitionIx) -> u64 {
        self.partition(ix).map_or(0, |partition| partition.bytes)
    }

    /// The first record of a batch that has no key, by its number in the batch: for topics that need keys.
    ///
    /// Errors: the batch cannot be opened. Cost: unpacks a compressed batch, up to the unpacker's bound.
    pub fn keyless_record(&mut self, batch: &Batch<'_>) -> Result<Option<u32>, UnpackError> {
        records::keyless(&mut self.unpacker, batch)
    }

    /// Whether a partition takes writes; false after the disk failed on it.
    #[must_use]
    pub fn is_writable(&self, ix: PartitionIx) -> bool {
        self.partition(ix)
            .is_some_and(|partition| partition.health == Health::Good)
    }

    /// Answers OffsetForLeaderEpoch.
    #[must_use]
    pub fn end_offset_for_epoch(&self, ix: PartitionIx, epoch: i32) -> EpochEnd {
        let end = self.ends(ix).high_watermark;
        self.partition(ix).map_or(
            EpochEnd {
                leader_epoch: -1,
                end_offset: -1,
            },
            |partition| partition.epochs.end_of(epoch, end),
        )
    }

    /// The leader epoch of the last batch, −1 when there is none.
    #[must_use]
    pub fn leader_epoch(&self, ix: PartitionIx) -> i32 {
        self.partition(ix).map_or(-1, |partition| partition.epochs.latest())
    }

    /// Flushes everything and writes checkpoints, in blocking calls, so that the next start reads nothing.
    ///
    /// Let a flush that is under way end first ([`Flusher::is_busy`]): a partition that is in it is not flushed here, and the next
    /// start reads what follows its last checkpoint.
    pub fn stop<D: Disk>(&mut self, disk: &mut D) {
        // A failure is the partitions', and they know.
        let _ = self.sync_names(disk);
        for number in 0..self.partitions.len() {
            let ix = PartitionIx(number as u32);
            if self.partition(ix).is_none_or(|p| p.health != Health::Good) {
                continue;
            }
            // A flush under way may have been told of an error that another sync would not be told of again.
            if self.partition(ix).is_some_and(|p| p.is_dirty() && !p.flushing) {
                match self.sync_partition(disk, ix) {
                    Ok(()) => {
                        let end = self.written_mark(ix);
                        self.advance(disk, ix, end);
                    }
                    Err(error) => {
                        self.fail(disk, ix, error);
                        continue;
                    }
                }
            }
            if self.partition(ix).is_some_and(|p| p.unchecked || p.unchecked_bytes > 0) {
                self.spill(disk, ix);
                self.write_checkpoint(disk, ix);
            }
        }
    }

    /// Flushes one partition, oldest segment first, in blocking calls.
    fn sync_partition<D: Disk>(&mut self, disk: &mut D, ix: PartitionIx) -> Result<(), DiskError> {
        let Some(partition) = self.partition(ix) else {
            return Ok(());
        };
        if partition.names != Names::Durable {
            sync_dir(disk, &partition.dir)?;
        }
        let mut segment = self.first_unflushed(ix);
        while segment != SegmentIx::NONE {
            match self.open_surely(disk, ix, segment) {
                Ok((_, file)) => disk.sync(file)?,
                Err(FileError::Disk(error)) => return Err(error),
                Err(FileError::Exhausted) => return Err(DiskError::Exhausted),
            }
            segment = self.segments.at(segment).map_or(SegmentIx::NONE, |s| s.newer);
        }
        if let Some(partition) = self.partition_mut(ix) {
            partition.names = Names::Durable;
        }
        Ok(())
    }

    /// The segment where unflushed bytes may begin.
    fn first_unflushed(&self, ix: PartitionIx) -> SegmentIx {
        self.partition(ix).map_or(SegmentIx::NONE, |p| {
            if p.durable.segment == SegmentIx::NONE {
                p.oldest
            } else {
                p.durable.segment
            }
        })
    }

    /// Where the log ends now.
    fn written_mark(&self, ix: PartitionIx) -> Mark {
        self.partition(ix).map_or(Mark::ZERO, |p| Mark {
            offset: p.written,
            segment: p.newest,
            position: self.segments.at(p.newest).map_or(0, |s| s.bytes),
        })
    }

    /// Where clients' sight ends.
    fn visible_mark(&self, ix: PartitionIx) -> Mark {
        if self.policy.reads_written() {
            self.written_mark(ix)
        } else {
            self.partition(ix).map_or(Mark::ZERO, |p| p.durable)
        }
    }

    /// A flush of everything before `end`, and of the directory, has succeeded.
    fn advance<D: Disk>(&mut self, disk: &mut D, ix: PartitionIx, end: Mark) {
        // A stop may have flushed more than the flush that was under way.
        if self.partition(ix).is_none_or(|p| end.offset < p.durable.offset) {
            return;
        }
        let mut segment = self.first_unflushed(ix);
        while let Some(&Segment { log, bytes, newer, .. }) = self.segments.at(segment) {
            if segment != end.segment || bytes == end.position {
                self.files.set_dirty(log, false);
            }
            if segment == end.segment {
                break;
            }
            segment = newer;
        }
        let checkpoint_bytes = u64::from(self.policy.checkpoint_bytes);
        let Some(partition) = self.partition_mut(ix) else {
            return;
        };
        partition.durable = end;
        partition.is_proved = true;
        if partition.names == Names::Syncing {
            partition.names = Names::Durable;
        }
        if partition.unchecked_bytes >= checkpoint_bytes {
            self.write_checkpoint(disk, ix);
        }
        if self.partition(ix).is_some_and(|p| !p.is_dirty()) {
            self.dirty.remove(ix.0 as usize);
        }
    }

    /// The disk failed on a partition: no more writes, a mark for the next start, and whoever waits is told.
    fn fail<D: Disk>(&mut self, disk: &mut D, ix: PartitionIx, error: DiskError) {
        let Some(partition) = self.partition_mut(ix).filter(|p| p.health == Health::Good) else {
            return;
        };
        partition.health = Health::ReadOnly;
        let dir = partition.dir.clone();
        log::error!("{dir}: the disk failed ({error}): no more writes until a restart has mended it");
        self.failures.push(ix.0);
        self.dirty.remove(ix.0 as usize);
        self.urgent.remove(ix.0 as usize);
        let kept =
            make_mark(disk, &path::failed(&dir), &dir).or_else(|_| make_mark(disk, &path::failed_beside(&dir), ""));
        if let Err(error) = kept {
            log::error!("{dir}: not even a mark of that could be kept: {error}");
        }
    }

    fn partition(&self, ix: PartitionIx) -> Option<&Partition> {
        self.partitions
            .get(ix.0 as usize)
            .filter(|p| p.health != Health::Absent)
    }

    fn partition_mut(&mut self, ix: PartitionIx) -> Option<&mut Partition> {
        self.partitions
            .get_mut(ix.0 as usize)
            .filter(|p| p.health != Health::Absent)
    }

    /// A slot for a partition whose log is empty.
    fn take_slot(&mut self, topic: &str, partition: i32, settings: &LogSettings) -> Result<PartitionIx, CreateError> {
        let dir = path::dir(topic, partition).ok_or(CreateError::Name)?;
        let ix = match self.free.pop() {
            Some(ix) => ix,
            None if self.partitions.len() < self.limits.partitions as usize => {
                self.partitions.push(Partition::absent(*settings));
                PartitionIx(self.partitions.len() as u32 - 1)
            }
            None => return Err(CreateError::Full),
        };
        if let Some(slot) = self.partitions.get_mut(ix.0 as usize) {
            let generation = slot.generation;
            *slot = Partition::absent(*settings);
            slot.generation = generation;
            slot.dir = dir;
            slot.health = Health::Good;
            slot.tail.reset(0, settings.index_interval_bytes);
        }
        Ok(ix)
    }

    fn give_slot(&mut self, ix: PartitionIx) {
        for queue in [&mut self.dirty, &mut self.urgent, &mut self.failures] {
            queue.remove(ix.0 as usize);
        }
        if let Some(slot) = self.partition_mut(ix) {
            slot.health = Health::Absent;
            slot.generation = slot.generation.wrapping_add(1);
            self.free.push(ix);
        }
    }

    /// Renames a partition's directory, if it is there: whether it was.
    fn move_aside<D: Disk>(&mut self, disk: &mut D, ix: PartitionIx, why: &str) -> Result<bool, DiskError> {
        let Some(dir) = self.partition(ix).map(|p| p.dir.clone()) else {
            return Ok(false);
        };
        let was_there = self.rename_aside(disk, &dir, &dir, why)?;
        // One that was being mended has the other name.
        Ok(self.rename_aside(disk, &path::mending(&dir), &dir, why)? || was_there)
    }

    fn rename_aside<D: Disk>(&mut self, disk: &mut D, from: &str, dir: &Dir, why: &str) -> Result<bool, DiskError> {
        // A number may be taken by a directory of an earlier run.
        let tries = 1000;
        for _ in 0..tries {
            self.aside = self.aside.wrapping_add(1);
            match disk.rename(from, &path::aside(dir, self.aside, why)) {
                Ok(()) => {
                    self.names_dirty = true;
                    return Ok(true);
                }
                Err(DiskError::NotFound) => return Ok(false),
                Err(DiskError::Exists | DiskError::Os(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Err(DiskError::Exists)
    }

    /// The open log or index file of a segment; opens it when it is not.
    fn open_segment<D: Disk>(
        &mut self,
        disk: &mut D,
        ix: PartitionIx,
        segment: SegmentIx,
        index: bool,
    ) -> Result<(u16, FileId), FileError> {
        let missing = FileError::Disk(DiskError::NotFound);
        let &Segment {
            base,
            log,
            index: index_slot,
            ..
        } = self.segments.at(segment).ok_or(missing)?;
        let slot = if index { index_slot } else { log };
        if let Some(file) = self.files.touch(slot) {
            return Ok((slot, file));
        }
        let (kind, mode) = if index {
            (Kind::Index, OpenMode::Create)
        } else {
            (Kind::Log, OpenMode::Write)
        };
        let path = path::segment(&self.partition(ix).ok_or(missing)?.dir, base, kind);
        let file = self.open_path(disk, &path, mode)?;
        self.hold_file(disk, Owner { ix, segment, index }, file)
    }

    /// Puts an open file in its segment's name.
    fn hold_file<D: Disk>(&mut self, disk: &mut D, owner: Owner, file: FileId) -> Result<(u16, FileId), FileError> {
        let Some(slot) = self.files.insert(file, owner) else {
            disk.close(file);
            return Err(FileError::Exhausted);
        };
        if let Some(segment) = self.segments.at_mut(owner.segment) {
            *(if owner.index {
                &mut segment.index
            } else {
                &mut segment.log
            }) = slot;
        }
        Ok((slot, file))
    }

    /// Opens a file that will be held: first makes a place for it.
    fn open_path<D: Disk>(&mut self, disk: &mut D, path: &str, mode: OpenMode) -> Result<FileId, FileError> {
        if !self.files.has_room() && !self.close_idle(disk) {
            return Err(FileError::Exhausted);
        }
        match disk.open(path, mode) {
            // The process has fewer descriptors than it was promised.
            Err(DiskError::Exhausted) if self.close_idle(disk) => disk.open(path, mode),
            other => other,
        }
        .map_err(FileError::Disk)
    }

    /// Closes the least recently used file; false when each is in use.
    fn close_idle<D: Disk>(&mut self, disk: &mut D) -> bool {
        let Some(owner) = self.files.evict(disk) else {
            return false;
        };
        if let Some(segment) = self.segments.at_mut(owner.segment) {
            *(if owner.index {
                &mut segment.index
            } else {
                &mut segment.log
            }) = files::NONE;
        }
        true
    }

    /// Takes a segment out of its partition and closes its files; the files stay on the disk.
    fn drop_segment<D: Disk>(&mut self, disk: &mut D, ix: PartitionIx, segment: SegmentIx) {
        let Some(&Segment {
            older,
            newer,
            log,
            index,
            bytes,
            ..
        }) = self.segments.at(segment)
        else {
            return;
        };
        for slot in [log, index] {
            self.files.forget(disk, slot);
        }
        if let Some(neighbour) = self.segments.at_mut(older) {
            neighbour.newer = newer;
        }
        if let Some(neighbour) = self.segments.at_mut(newer) {
            neighbour.older = older;
        }
        if let Some(partition) = self.partition_mut(ix) {
            if partition.oldest == segment {
                partition.oldest = newer;
            }
            if partition.newest == segment {
                partition.newest = older;
            }
            if partition.last_read == segment {
                partition.last_read = SegmentIx::NONE;
            }
            if partition.durable.segment == segment {
                partition.durable.segment = SegmentIx::NONE;
            }
            partition.segments -= 1;
            partition.bytes -= u64::from(bytes);
        }
        if self.rebuild.as_ref().is_some_and(|rebuild| rebuild.segment == segment) {
            self.rebuild = None;
        }
        self.segments.give(segment);
        self.told_full = false;
    }

    /// Puts a new segment last in its partition. When full: `None`.
    fn push_segment(&mut self, ix: PartitionIx, segment: Segment) -> Option<SegmentIx> {
        let older = self.partition(ix)?.newest;
        let bytes = u64::from(segment.bytes);
        let new = self.segments.take(Segment {
            older,
            newer: SegmentIx::NONE,
            ..segment
        })?;
        if let Some(neighbour) = self.segments.at_mut(older) {
            neighbour.newer = new;
        }
        let partition = self.partition_mut(ix)?;
        partition.newest = new;
        if partition.oldest == SegmentIx::NONE {
            partition.oldest = new;
        }
        partition.segments += 1;
        partition.bytes += bytes;
        Some(new)
    }

    /// The wall clock, or −1 when it was never set.
    fn set_clock(&self, wall: Timestamp) -> i64 {
        if wall >= self.policy.clock_floor {
            wall.0
        } else {
            Timestamp::NONE.0
        }
    }
}

/// Makes a directory's entries durable.
fn sync_dir<D: Disk>(disk: &mut D, path: &str) -> Result<(), DiskError> {
    let dir = disk.open(path, OpenMode::Directory)?;
    let result = disk.sync(dir);
    disk.close(dir);
    result
}

/// Makes an empty file and its entry durable.
fn make_mark<D: Disk>(disk: &mut D, path: &str, dir: &str) -> Result<(), DiskError> {
    let file = disk.open(path, OpenMode::Create)?;
    disk.close(file);
    sync_dir(disk, dir)
}

impl LogLimits {
    /// Each part of the memory that [`Logs::new`] and [`Flusher::new`] take, with its bytes, for the lines printed at start.
    pub fn budget(&self, mut each: impl FnMut(&'static str, u64)) {
        let partition =
            size_of::<Partition>() as u64 + 3 * Queue::<u32>::bytes(1) as u64 + size_of::<PartitionIx>() as u64;
        each("partitions", u64::from(self.partitions) * partition);
        each("segments", Segments::bytes(self.segments));
        each("open files", Files::bytes(self.open_files));
        each("producers", Producers::bytes(self.producers));
        each("flusher", Flusher::bytes(self.partitions));
        each("log scratch", SCRATCH_BYTES as u64);
        each("unpacking", Unpacker::BYTES as u64);
    }
}
