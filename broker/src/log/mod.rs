//! Log storage: append, read, find, keep, flush, repair. Files only through [`skerry_net::host::Disk`].

mod files;
mod flusher;
mod settings;
mod types;

pub use files::FilePin;
pub use flusher::{Flushed, Flusher, SyncFile};
pub use settings::{LogLimits, LogPolicy, LogSettings};
pub use types::{
    AppendError, AppendParams, Appended, ColdRange, Ends, EpochEnd, FoundOffset, OffsetSpec, ReadError, ReadRange,
};

use skerry_core::record::Batch;
use skerry_core::time::{Instant, Timestamp};
use skerry_net::host::{Disk, DiskError};

use crate::ids::PartitionIx;

/// The logs of all partitions.
#[derive(Debug)]
pub struct Logs {}

/// Every slot for a partition is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

#[allow(
    unused_variables,
    clippy::unused_self,
    clippy::needless_pass_by_ref_mut,
    clippy::needless_pass_by_value
)]
impl Logs {
    /// Takes all memory.
    #[must_use]
    pub fn new(limits: LogLimits, policy: LogPolicy) -> Self {
        Self {}
    }

    /// Takes in a partition that was there before this start: reads what follows its checkpoint, cuts a torn tail, mends what
    /// is derived. What it read past the checkpoint counts as durable after the next flush, which has been asked for.
    ///
    /// Never fails for what is on the disk: a log that cannot be read is there, answers [`ReadError::Storage`], and a line says why.
    pub fn open<D: Disk>(
        &mut self,
        disk: &mut D,
        topic: &str,
        partition: i32,
        settings: &LogSettings,
        now: Instant,
        wall: Timestamp,
    ) -> Result<PartitionIx, Full> {
        Err(Full)
    }

    /// Takes in a new, empty partition. Its directory is made by its first append. A directory of that name that nobody knows
    /// is moved aside (`…-stray`), never adopted.
    pub fn create<D: Disk>(
        &mut self,
        disk: &mut D,
        topic: &str,
        partition: i32,
        settings: &LogSettings,
    ) -> Result<PartitionIx, Full> {
        Err(Full)
    }

    /// Forgets a partition and renames its directory to `<name>.<n>-delete`. The rename is durable after [`Logs::sync_names`]; the
    /// files go with [`Logs::purge`]. Ranges that were read stay readable until released.
    pub fn delete<D: Disk>(&mut self, disk: &mut D, ix: PartitionIx) -> Result<(), DiskError> {
        Ok(())
    }

    /// Makes renames of partition directories durable. Blocks: once for any number of partitions.
    pub fn sync_names<D: Disk>(&mut self, disk: &mut D) -> Result<(), DiskError> {
        Ok(())
    }

    /// Removes every directory `…-delete`: at start, and after a deletion has been answered.
    pub fn purge<D: Disk>(&mut self, disk: &mut D) {}

    /// Changes what a partition obeys.
    pub fn configure(&mut self, ix: PartitionIx, settings: &LogSettings) {}

    /// The offsets that bound a partition; all 0 for one that is not there.
    #[must_use]
    pub fn ends(&self, ix: PartitionIx) -> Ends {
        Ends {
            log_start: 0,
            written: 0,
            durable: 0,
            high_watermark: 0,
        }
    }

    /// Bytes of a partition's log files.
    #[must_use]
    pub fn bytes(&self, ix: PartitionIx) -> u64 {
        0
    }

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
        Err(AppendError::Storage)
    }

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
        Err(ReadError::Storage)
    }

    /// Gives a range back: its file may be closed.
    pub fn release<D: Disk>(&mut self, disk: &mut D, range: ReadRange) {}

    /// Answers ListOffsets. Where clients see only what is durable, first flush what was written when the request came.
    pub fn list_offset<D: Disk>(
        &mut self,
        disk: &mut D,
        ix: PartitionIx,
        spec: OffsetSpec,
    ) -> Result<FoundOffset, ReadError> {
        Err(ReadError::Storage)
    }

    /// Answers OffsetForLeaderEpoch.
    #[must_use]
    pub fn end_offset_for_epoch(&self, ix: PartitionIx, epoch: i32) -> EpochEnd {
        EpochEnd {
            leader_epoch: -1,
            end_offset: -1,
        }
    }

    /// The leader epoch of the last batch, −1 when there is none.
    #[must_use]
    pub fn leader_epoch(&self, ix: PartitionIx) -> i32 {
        -1
    }

    /// Removes the segments that retention no longer keeps; how many bytes that were.
    pub fn retain<D: Disk>(&mut self, disk: &mut D, ix: PartitionIx, now: Instant, wall: Timestamp) -> u64 {
        0
    }

    /// DeleteRecords: moves the log's start up to `before` (−1: the high watermark); the new start.
    ///
    /// Errors: [`ReadError::OutOfRange`] past the high watermark.
    pub fn delete_records<D: Disk>(&mut self, disk: &mut D, ix: PartitionIx, before: i64) -> Result<i64, ReadError> {
        Err(ReadError::Storage)
    }

    /// Flushes everything and writes checkpoints, in blocking calls, so that the next start reads nothing.
    pub fn stop<D: Disk>(&mut self, disk: &mut D) {}
}
