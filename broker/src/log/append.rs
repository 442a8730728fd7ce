//! Appending: one batch, one gathered write.

use std::io::IoSlice;

use skerry_core::machine::producer::{self, Incoming, Refusal, Verdict};
use skerry_core::record::{BATCH_HEADER_BYTES, Batch, BatchMut};
use skerry_core::time::{Instant, Timestamp};
use skerry_net::host::{Disk, DiskError, FileId, OpenMode};

use super::files::Owner;
use super::index::{ENTRY_BYTES, Entry, SEAL_BYTES, Seal, TAIL_ENTRIES, put};
use super::partition::{Health, Names};
use super::path::{self, Kind};
use super::segment::{Segment, SegmentIx};
use super::{AppendError, AppendParams, Appended, FileError, Logs};
use crate::config::{Flush, TimestampType};
use crate::ids::PartitionIx;

/// The largest log file, as in Kafka.
const SEGMENT_BYTES_MAX: u64 = i32::MAX as u64;

/// Why there is no new segment.
#[derive(Clone, Copy, Debug)]
pub(super) enum BeginError {
    /// The table is full.
    Full,
    /// The disk, or no file can be opened.
    Storage,
}

impl Logs {
    /// Appends a batch that [`skerry_core::record::validate`] let through: one gathered write, no allocation.
    ///
    /// Offset, leader epoch and the broker's time are put on a copy of the header. Sequences advance only after the write.
    /// Errors: nothing has changed then, the files included.
    pub fn append<D: Disk>(
        &mut self,
        disk: &mut D,
        ix: PartitionIx,
        batch: &Batch<'_>,
        params: &AppendParams,
    ) -> Result<Appended, AppendError> {
        let partition = self
            .partition(ix)
            .filter(|p| p.health == Health::Good)
            .ok_or(AppendError::Storage)?;
        let header = batch.header();
        let (base_offset, log_start) = (partition.written, partition.log_start);
        let stamped = partition.settings.timestamp_type == TimestampType::LogAppendTime;
        let next_offset = base_offset
            .checked_add(i64::from(header.last_offset_delta) + 1)
            .filter(|next| *next > base_offset)
            .ok_or(AppendError::Storage)?;
        let max_timestamp = if stamped { params.wall.0 } else { header.max_timestamp };

        let incoming = Incoming::of(header).map(|incoming| Incoming {
            timestamp: max_timestamp,
            ..incoming
        });
        if let Some(incoming) = &incoming {
            match producer::check(self.producers.find(ix, incoming.producer_id), incoming) {
                Verdict::Append => {}
                Verdict::Duplicate(original) => {
                    return Ok(Appended {
                        base_offset: original.base_offset,
                        next_offset: original.last_offset.saturating_add(1),
                        log_append_time: if stamped {
                            Timestamp(original.timestamp)
                        } else {
                            Timestamp::NONE
                        },
                        log_start,
                        duplicate: true,
                    });
                }
                Verdict::Reject(Refusal::OutOfOrderSequence) => return Err(AppendError::OutOfOrderSequence),
                Verdict::Reject(Refusal::FencedEpoch) => return Err(AppendError::InvalidProducerEpoch),
            }
            if !self.reserve_producer(ix, incoming.producer_id) {
                return Err(AppendError::Storage);
            }
        }

        let bytes = u32::try_from(batch.len_bytes()).map_err(|_| AppendError::Storage)?;
        self.roll_if_due(disk, ix, base_offset, bytes, params.wall)?;
        let (slot, file, position) = self.open_active(disk, ix)?;
        let mut head = [0; BATCH_HEADER_BYTES];
        let mut copy = BatchMut::beside(batch, &mut head);
        copy.assign(base_offset, params.leader_epoch);
        if stamped {
            copy.stamp_append_time(params.wall, self.policy.crc);
        }
        let wrote = disk.write_at(
            file,
            u64::from(position),
            &[IoSlice::new(&head), IoSlice::new(batch.payload())],
        );
        match wrote {
            Ok(n) if n == batch.len_bytes() => {}
            Ok(_) | Err(DiskError::Full) => {
                if let (Some(missed), Some(partition)) = (self.full_log.admit(params.now), self.partition(ix)) {
                    let dir = &partition.dir;
                    log::warn!("{dir}: the disk is full: not written, and told as KAFKA_STORAGE_ERROR{missed}");
                }
                // A card that cannot even cut the file is not only full.
                if let Err(error) = disk.truncate(file, u64::from(position)) {
                    self.fail(disk, ix, error);
                }
                return Err(AppendError::Storage);
            }
            Err(error) => {
                self.fail(disk, ix, error);
                return Err(AppendError::Storage);
            }
        }

        self.wrote(ix, slot, bytes, max_timestamp, params);
        if let Some(partition) = self.partition_mut(ix) {
            partition.written = next_offset;
            partition.epochs.note(params.leader_epoch, base_offset);
        }
        if let Some(incoming) = &incoming {
            self.producers.commit(ix, incoming, base_offset);
        }
        if self.partition(ix).is_some_and(|p| p.tail.is_full()) {
            self.spill(disk, ix);
        }
        let log_append_time = if stamped { params.wall } else { Timestamp::NONE };
        Ok(Appended {
            base_offset,
            next_offset,
            log_append_time,
            log_start,
            duplicate: false,
        })
    }

    fn reserve_producer(&mut self, ix: PartitionIx, producer_id: i64) -> bool {
        let (partitions, page_cache_will_do) = (&self.partitions, self.policy.reads_written());
        self.producers.reserve(ix, producer_id, |of| {
            partitions.get(of.0 as usize).map_or(i64::MAX, |p| {
                if page_cache_will_do {
                    p.written
                } else {
                    p.durable.offset
                }
            })
        })
    }

    /// Takes note of a batch at the end of the active segment.
    fn wrote(&mut self, ix: PartitionIx, slot: u16, bytes: u32, max_timestamp: i64, params: &AppendParams) {
        let wall = self.set_clock(params.wall);
        let flushes = self.policy.flush != Flush::Never;
        let Some(partition) = self.partitions.get_mut(ix.0 as usize) else {
            return;
        };
        let Some(segment) = self.segments.at_mut(partition.newest) else {
            return;
        };
        let offset_delta = u32::try_from(partition.written - segment.base).unwrap_or(u32::MAX);
        let entry = Entry {
            offset_delta,
            position: segment.bytes,
            max_timestamp: segment.max_timestamp,
        };
        partition.tail.note(entry, partition.settings.index_interval_bytes);
        if segment.bytes == 0 {
            segment.first_append = wall;
        }
        segment.last_append = wall;
        segment.max_timestamp = segment.max_timestamp.max(max_timestamp);
        segment.bytes += bytes;
        partition.bytes += u64::from(bytes);
        partition.unchecked_bytes += u64::from(bytes);
        if flushes {
            self.files.set_dirty(slot, true);
        }
        self.note_dirty(ix, params.now);
    }

    /// A partition has something to flush.
    pub(super) fn note_dirty(&mut self, ix: PartitionIx, now: Instant) {
        if self.dirty.push(ix.0)
            && let Some(partition) = self.partition_mut(ix)
        {
            partition.dirty_since = now;
        }
    }

    /// The active segment's log file, and its end.
    fn open_active<D: Disk>(&mut self, disk: &mut D, ix: PartitionIx) -> Result<(u16, FileId, u32), AppendError> {
        let newest = self.partition(ix).map_or(SegmentIx::NONE, |p| p.newest);
        let position = self.segments.at(newest).ok_or(AppendError::Storage)?.bytes;
        let (slot, file) = self.open_surely(disk, ix, newest).map_err(|_| AppendError::Storage)?;
        Ok((slot, file, position))
    }

    /// A segment's log file. When every open file is in use: one that waits for a flush is flushed here, in a blocking call, and
    /// makes place.
    pub(super) fn open_surely<D: Disk>(
        &mut self,
        disk: &mut D,
        ix: PartitionIx,
        segment: SegmentIx,
    ) -> Result<(u16, FileId), FileError> {
        let opened = self.open_segment(disk, ix, segment, false);
        if opened == Err(FileError::Exhausted) && self.make_place(disk) {
            return self.open_segment(disk, ix, segment, false);
        }
        opened
    }

    /// Flushes one file that nobody else uses, so that it may be closed.
    fn make_place<D: Disk>(&mut self, disk: &mut D) -> bool {
        let Some((slot, file, owner)) = self.files.any_dirty() else {
            return false;
        };
        match disk.sync(file) {
            Ok(()) => {
                self.files.set_dirty(slot, false);
                true
            }
            Err(error) => {
                self.fail(disk, owner.ix, error);
                false
            }
        }
    }

    /// Begins a new segment when the batch does not go into the active one.
    fn roll_if_due<D: Disk>(
        &mut self,
        disk: &mut D,
        ix: PartitionIx,
        offset: i64,
        bytes: u32,
        wall: Timestamp,
    ) -> Result<(), AppendError> {
        let Some(partition) = self.partition(ix) else {
            return Err(AppendError::Storage);
        };
        let settings = &partition.settings;
        let Some(active) = self.segments.at(partition.newest) else {
            return self.begin_segment(disk, ix, offset).map_err(|_| AppendError::Storage);
        };
        let after = u64::from(active.bytes) + u64::from(bytes);
        let must = after > SEGMENT_BYTES_MAX || offset - active.base > i64::from(i32::MAX);
        let wall = self.set_clock(wall);
        let is_old = active.first_append >= 0 && wall >= 0 && wall - active.first_append >= settings.segment_ms;
        if active.bytes == 0 || !(must || after > u64::from(settings.segment_bytes) || is_old) {
            return Ok(());
        }
        match self.begin_segment(disk, ix, offset) {
            Ok(()) => Ok(()),
            // Growing is better than refusing; retention frees places.
            Err(BeginError::Full) if !must => {
                if !core::mem::replace(&mut self.told_full, true) {
                    log::warn!(
                        "every segment is in use: active ones grow past segment.bytes until retention frees some"
                    );
                }
                Ok(())
            }
            Err(BeginError::Full | BeginError::Storage) => Err(AppendError::Storage),
        }
    }

    /// Makes the file of a new active segment and seals the one before it.
    pub(super) fn begin_segment<D: Disk>(
        &mut self,
        disk: &mut D,
        ix: PartitionIx,
        base: i64,
    ) -> Result<(), BeginError> {
        let Some(partition) = self.partition(ix) else {
            return Err(BeginError::Storage);
        };
        let (dir, has_dir, sealed) = (partition.dir.clone(), partition.has_dir, partition.newest);
        let interval = partition.settings.index_interval_bytes;
        if !self.segments.has_room() {
            return Err(BeginError::Full);
        }
        if !has_dir {
            match disk.create_dir(&dir) {
                Ok(()) | Err(DiskError::Exists) => self.note_name(ix),
                Err(_) => return Err(BeginError::Storage),
            }
        }
        let path = path::segment(&dir, base, Kind::Log);
        let file = self.create_file(disk, &path).map_err(|_| BeginError::Storage)?;
        let Some(segment) = self.push_segment(ix, Segment::new(base)) else {
            disk.close(file);
            return Err(BeginError::Full);
        };
        // `create_file` made a place; without one the next use opens the file again.
        let _ = self.hold_file(
            disk,
            Owner {
                ix,
                segment,
                index: false,
            },
            file,
        );
        self.seal(disk, ix, sealed);
        if let Some(partition) = self.partition_mut(ix) {
            partition.has_dir = true;
            partition.names = Names::Unsynced;
            partition.tail.reset(0, interval);
            if partition.durable.segment == SegmentIx::NONE {
                partition.durable.segment = segment;
            }
        }
        if self.policy.flush == Flush::Never && sealed != SegmentIx::NONE {
            self.urgent.push(ix.0);
        }
        Ok(())
    }

    /// A partition's directory has a name that is not durable.
    pub(super) fn note_name(&mut self, ix: PartitionIx) {
        self.names_dirty = true;
        if let Some(partition) = self.partition_mut(ix) {
            partition.name = Names::Unsynced;
        }
    }

    fn create_file<D: Disk>(&mut self, disk: &mut D, path: &str) -> Result<FileId, FileError> {
        let mut made = self.open_path(disk, path, OpenMode::CreateNew);
        if made == Err(FileError::Exhausted) && self.make_place(disk) {
            made = self.open_path(disk, path, OpenMode::CreateNew);
        }
        if made == Err(FileError::Disk(DiskError::Exists)) {
            // What is there is not part of the log: recovery would have known it.
            let file = self.open_path(disk, path, OpenMode::Write)?;
            if let Err(error) = disk.truncate(file, 0) {
                disk.close(file);
                return Err(FileError::Disk(error));
            }
            return Ok(file);
        }
        made
    }

    /// Writes the index entries of the active segment that are only in memory. They are derived: an error costs time at the
    /// next start, and until then the index is sparser.
    pub(super) fn spill<D: Disk>(&mut self, disk: &mut D, ix: PartitionIx) {
        let newest = self.partition(ix).map_or(SegmentIx::NONE, |p| p.newest);
        self.write_index(disk, ix, newest, false);
    }

    /// Closes a segment's index: what is left of its entries, and the seal.
    fn seal<D: Disk>(&mut self, disk: &mut D, ix: PartitionIx, segment: SegmentIx) {
        self.write_index(disk, ix, segment, true);
    }

    pub(super) fn write_index<D: Disk>(&mut self, disk: &mut D, ix: PartitionIx, segment_ix: SegmentIx, seal: bool) {
        let crc = self.policy.crc;
        let (Some(partition), Some(segment)) = (self.partition(ix), self.segments.at(segment_ix)) else {
            return;
        };
        // One that is being made again is written by whoever makes it.
        if segment.index_bad || (!seal && partition.tail.pending_count() == 0) {
            return;
        }
        let mut buffer = [0; TAIL_ENTRIES * ENTRY_BYTES + SEAL_BYTES];
        let room = buffer.len();
        let mut out = buffer.as_mut_slice();
        let entries = segment.index_entries + partition.tail.pending_count();
        for (entry, number) in partition.tail.pending().zip(segment.index_entries..) {
            put(&mut out, entry.encode(segment.base, number, crc));
        }
        if seal {
            put(&mut out, segment.seal(entries).encode(segment.base, crc));
        }
        let bytes = room - out.len();
        let position = u64::from(segment.index_entries) * ENTRY_BYTES as u64;
        let Ok((_, file)) = self.open_segment(disk, ix, segment_ix, true) else {
            return;
        };
        let text = buffer.get(..bytes).unwrap_or_default();
        if disk.write_at(file, position, &[IoSlice::new(text)]) == Ok(bytes) {
            if let Some(segment) = self.segments.at_mut(segment_ix) {
                segment.index_entries = entries;
            }
            if let Some(partition) = self.partition_mut(ix) {
                partition.tail.wrote();
            }
        }
    }
}

impl Segment {
    /// What its seal says.
    pub(super) const fn seal(&self, entries: u32) -> Seal {
        Seal {
            entries,
            bytes: self.bytes,
            max_timestamp: self.max_timestamp,
            first_append: self.first_append,
            last_append: self.last_append,
        }
    }
}
