//! Answering fetches and ListOffsets.

use skerry_core::time::Timestamp;
use skerry_net::host::{Disk, FileId};

use super::files::FilePin;
use super::find::{Located, walk};
use super::partition::Health;
use super::segment::{Segment, SegmentIx};
use super::{FoundOffset, Logs, OffsetSpec, ReadError, ReadRange, records};
use crate::ids::PartitionIx;

impl Logs {
    /// Finds the bytes from the batch that holds `offset` on, at most `bytes_max` and never past the high watermark.
    ///
    /// `None`: nothing is there yet, or the first batch is larger than `bytes_max` and `whole_first` is false. With `whole_first` the
    /// first batch is whole whatever its size. A range ends inside a batch where `bytes_max` does, and with its segment.
    pub fn read<D: Disk>(
        &mut self,
        disk: &mut D,
        ix: PartitionIx,
        offset: i64,
        bytes_max: u32,
        whole_first: bool,
    ) -> Result<Option<ReadRange>, ReadError> {
        let partition = self.readable(ix)?;
        if offset < partition.log_start || offset > partition.written {
            return Err(ReadError::OutOfRange);
        }
        if offset >= self.visible_mark(ix).offset {
            return Ok(None);
        }
        let segment_ix = self.segment_of(ix, offset).ok_or(ReadError::Storage)?;
        let end = self.visible_end(ix, segment_ix);
        let base = self.segments.at(segment_ix).ok_or(ReadError::Storage)?.base;
        let delta = offset - base;
        let entry = self.entry_before(disk, ix, segment_ix, |entry| i64::from(entry.offset_delta) <= delta)?;
        let (slot, file) = self.open_segment(disk, ix, segment_ix, false)?;
        let holds = |batch: &Located| batch.header.next_offset() > offset;
        let first = walk(disk, &mut self.scratch, file, entry.position, end, holds)?.ok_or(ReadError::Storage)?;
        if first.bytes > bytes_max && !whole_first {
            return Ok(None);
        }
        let FilePin(_) = self.files.pin(slot).ok_or(ReadError::Exhausted)?;
        Ok(Some(ReadRange {
            file,
            position: u64::from(first.position),
            bytes: bytes_max.max(first.bytes).min(end - first.position),
            pin: FilePin(slot),
        }))
    }

    /// Gives a range back: its file may be closed.
    pub fn release<D: Disk>(&mut self, disk: &mut D, range: ReadRange) {
        self.files.unpin(disk, range.pin);
    }

    /// Answers ListOffsets. Where clients see only what is durable, first flush what was written when the request came.
    ///
    /// By timestamp: the first record that is not earlier, which in a compressed batch is looked for inside it. Errors: as for
    /// [`Logs::read`].
    pub fn list_offset<D: Disk>(
        &mut self,
        disk: &mut D,
        ix: PartitionIx,
        spec: OffsetSpec,
    ) -> Result<FoundOffset, ReadError> {
        let partition = self.readable(ix)?;
        let log_start = partition.log_start;
        let end = self.visible_mark(ix).offset;
        let at = |offset: i64, epoch: i32| FoundOffset {
            offset,
            timestamp: Timestamp::NONE,
            leader_epoch: epoch,
        };
        match spec {
            OffsetSpec::Earliest => Ok(at(log_start, partition.epochs.at(log_start))),
            OffsetSpec::Latest => Ok(at(end, partition.epochs.latest())),
            OffsetSpec::LatestTiered => Ok(FoundOffset::NONE),
            OffsetSpec::At(timestamp) => self.find_time(disk, ix, timestamp.0),
            OffsetSpec::MaxTimestamp => match self.max_timestamp(disk, ix)? {
                ..0 => Ok(FoundOffset::NONE),
                max => self.find_time(disk, ix, max),
            },
        }
    }

    /// The first visible record whose timestamp is `target` or later.
    fn find_time<D: Disk>(&mut self, disk: &mut D, ix: PartitionIx, target: i64) -> Result<FoundOffset, ReadError> {
        let partition = self.readable(ix)?;
        let log_start = partition.log_start;
        let visible = self.visible_mark(ix);
        let mut at = partition.oldest;
        while let Some(&Segment {
            newer, max_timestamp, ..
        }) = self.segments.at(at)
        {
            if max_timestamp >= target {
                let end = self.visible_end(ix, at);
                let entry = self.entry_before(disk, ix, at, |entry| entry.max_timestamp < target)?;
                let (_, file) = self.open_segment(disk, ix, at, false)?;
                let late =
                    |batch: &Located| batch.header.max_timestamp >= target && batch.header.next_offset() > log_start;
                if let Some(batch) = walk(disk, &mut self.scratch, file, entry.position, end, late)? {
                    return self.find_record(disk, ix, file, &batch, target);
                }
            }
            if at == visible.segment {
                break;
            }
            at = newer;
        }
        Ok(FoundOffset::NONE)
    }

    /// The record in a batch whose largest timestamp is `target` or later.
    fn find_record<D: Disk>(
        &mut self,
        disk: &mut D,
        ix: PartitionIx,
        file: FileId,
        batch: &Located,
        target: i64,
    ) -> Result<FoundOffset, ReadError> {
        let (log_start, epoch) = (self.readable(ix)?.log_start, batch.header.partition_leader_epoch);
        let (offset, timestamp) = records::find(&mut self.unpacker, disk, file, batch, target, log_start)?;
        Ok(FoundOffset {
            offset,
            timestamp: Timestamp(timestamp),
            leader_epoch: epoch,
        })
    }

    /// The largest timestamp of what is visible, −1 when there is none.
    fn max_timestamp<D: Disk>(&mut self, disk: &mut D, ix: PartitionIx) -> Result<i64, ReadError> {
        let visible = self.visible_mark(ix);
        let mut at = self.readable(ix)?.oldest;
        let mut max = -1;
        while let Some(&Segment {
            newer,
            max_timestamp,
            bytes,
            ..
        }) = self.segments.at(at)
        {
            if at != visible.segment || visible.position == bytes {
                max = max.max(max_timestamp);
            } else {
                let entry = self.entry_before(disk, ix, at, |entry| entry.position <= visible.position)?;
                let (_, file) = self.open_segment(disk, ix, at, false)?;
                max = max.max(entry.max_timestamp);
                walk(
                    disk,
                    &mut self.scratch,
                    file,
                    entry.position,
                    visible.position,
                    |batch| {
                        max = max.max(batch.header.max_timestamp);
                        false
                    },
                )?;
            }
            if at == visible.segment {
                break;
            }
            at = newer;
        }
        Ok(max)
    }

    fn readable(&self, ix: PartitionIx) -> Result<&super::partition::Partition, ReadError> {
        self.partition(ix)
            .filter(|p| p.health != Health::Unreadable)
            .ok_or(ReadError::Storage)
    }

    /// Where in a segment clients' sight ends.
    fn visible_end(&self, ix: PartitionIx, segment: SegmentIx) -> u32 {
        let visible = self.visible_mark(ix);
        if visible.segment == segment {
            visible.position
        } else {
            self.segments.at(segment).map_or(0, |s| s.bytes)
        }
    }
}
