//! What goes: by age, by size, and what DeleteRecords asks for. Only whole segments, only closed ones, only durable ones.

use skerry_core::time::{Instant, Timestamp};
use skerry_net::host::Disk;

use super::partition::{Health, Names};
use super::path::{self, Kind};
use super::segment::Segment;
use super::{Logs, ReadError, sync_dir};
use crate::config::CleanupPolicy;
use crate::ids::PartitionIx;

impl Logs {
    /// Removes the segments that retention no longer keeps; how many bytes that were.
    ///
    /// By age: a segment goes when its latest record is older than `retention.ms`; where that record claims to be from the future,
    /// when its last append is. An active segment that is too old is closed first and goes once its successor is durable. A clock
    /// that was never set removes nothing. Blocks for the removal of files.
    pub fn retain<D: Disk>(&mut self, disk: &mut D, ix: PartitionIx, now: Instant, wall: Timestamp) -> u64 {
        let wall = self.set_clock(wall);
        let Some(partition) = self.partition(ix).filter(|p| p.health == Health::Good) else {
            return 0;
        };
        let settings = partition.settings;
        let deletes = settings.cleanup_policy != CleanupPolicy::Compact;
        if deletes
            && self
                .segments
                .at(partition.newest)
                .is_some_and(|s| s.bytes > 0 && is_old(s, settings.retention_ms, wall))
        {
            self.close_active(disk, ix, now);
        }
        let mut removed = 0;
        while let Some(partition) = self.partition(ix)
            // A removal of the call before must be durable first: see below.
            && (removed > 0 || partition.names == Names::Durable)
            && partition.oldest != partition.durable.segment
            && let Some(segment) = self.segments.at(partition.oldest)
            && let Some(next) = self.segments.at(segment.newer)
        {
            let excess = partition.bytes.saturating_sub(u64::from(segment.bytes));
            let too_large = settings.retention_bytes >= 0 && excess >= settings.retention_bytes as u64;
            let before_start = next.base <= partition.log_start;
            if !(before_start || (deletes && (too_large || is_old(segment, settings.retention_ms, wall)))) {
                break;
            }
            let (oldest, base, log_start, bytes) = (partition.oldest, segment.base, next.base, segment.bytes);
            let dir = partition.dir.clone();
            if removed == 0 {
                // The last checkpoint may lie in what goes now, and then the next start would have to read all the rest.
                self.write_checkpoint(disk, ix);
            } else if let Err(error) = sync_dir(disk, &dir) {
                // Two removals that are not durable could come to the disk in the wrong order and leave a hole.
                self.fail(disk, ix, error);
                break;
            }
            for kind in [Kind::Index, Kind::Log] {
                if let Err(error) = disk.remove(&path::segment(&dir, base, kind)) {
                    log::debug!("{dir}: segment {base} is not removed: {error}");
                }
            }
            self.drop_segment(disk, ix, oldest);
            self.raise_start(ix, log_start);
            removed += u64::from(bytes);
        }
        if removed > 0
            && let Some(partition) = self.partition_mut(ix)
        {
            partition.names = Names::Unsynced;
            self.note_dirty(ix, now);
        }
        removed
    }

    /// DeleteRecords: moves the log's start up to `before` (−1: the high watermark); the new start. Segments that lie wholly before
    /// it go with the next [`Logs::retain`]. Kept in the checkpoint, which is not synced, as in Kafka: a power cut may bring deleted
    /// records back.
    ///
    /// Errors: [`ReadError::OutOfRange`] past the high watermark; [`ReadError::Storage`].
    pub fn delete_records<D: Disk>(&mut self, disk: &mut D, ix: PartitionIx, before: i64) -> Result<i64, ReadError> {
        let ends = self.ends(ix);
        let partition = self
            .partition(ix)
            .filter(|p| p.health == Health::Good)
            .ok_or(ReadError::Storage)?;
        let before = if before == -1 { ends.high_watermark } else { before };
        if before > ends.high_watermark || before < 0 {
            return Err(ReadError::OutOfRange);
        }
        let log_start = partition.log_start;
        if before <= log_start {
            return Ok(log_start);
        }
        self.raise_start(ix, before);
        self.write_checkpoint(disk, ix);
        Ok(before)
    }

    fn raise_start(&mut self, ix: PartitionIx, log_start: i64) {
        if let Some(partition) = self.partition_mut(ix)
            && log_start > partition.log_start
        {
            partition.log_start = log_start;
            partition.epochs.cut_before(log_start);
            partition.unchecked = true;
        }
    }

    /// Begins an empty active segment, so that the one before can go. The end of the log is in its name, so it must be durable first.
    fn close_active<D: Disk>(&mut self, disk: &mut D, ix: PartitionIx, now: Instant) {
        let written = self.partition(ix).map_or(0, |p| p.written);
        if self.begin_segment(disk, ix, written).is_ok() {
            self.note_dirty(ix, now);
            self.urgent.push(ix.0);
        }
    }

    /// Segments of a partition.
    #[must_use]
    pub fn segment_count(&self, ix: PartitionIx) -> u32 {
        self.partition(ix).map_or(0, |p| p.segments)
    }
}

/// Whether a segment's latest record is older than `retention_ms`.
const fn is_old(segment: &Segment, retention_ms: i64, wall: i64) -> bool {
    if retention_ms < 0 || wall < 0 {
        return false;
    }
    let claims = segment.max_timestamp;
    // No timestamp, or one that has not come yet, says nothing about age; when it was appended does.
    let latest = if claims < 0 || claims > wall {
        segment.last_append
    } else {
        claims
    };
    latest >= 0 && wall.saturating_sub(latest) > retention_ms
}
