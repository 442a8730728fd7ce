//! What is known of one partition's log.

use super::epochs::Epochs;
use super::index::Tail;
use super::path::Dir;
use super::segment::SegmentIx;
use super::settings::LogSettings;
use skerry_core::time::Instant;

/// Whether a log can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Health {
    /// The slot is free.
    Absent,
    /// Reads and writes.
    Good,
    /// The disk refused: no more writes until the next start has mended it.
    ReadOnly,
    /// What is on the disk could not be read at all.
    Unreadable,
}

/// Whether names that were made would be found after a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Names {
    /// They would.
    Durable,
    /// Some were made since the directory was synced.
    Unsynced,
    /// The sync under way carries them all.
    Syncing,
}

/// A place in a log: an offset and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) offset: i64,
    /// The segment that holds, or will hold, that offset.
    pub(super) segment: SegmentIx,
    pub(super) position: u32,
}

impl Mark {
    pub(super) const ZERO: Self = Self {
        offset: 0,
        segment: SegmentIx::NONE,
        position: 0,
    };
}

/// One partition's log.
#[derive(Debug)]
pub(super) struct Partition {
    pub(super) health: Health,
    /// Counts the partitions that had this slot, so that a flush that ends late changes no stranger.
    pub(super) generation: u32,
    pub(super) dir: Dir,
    pub(super) settings: LogSettings,
    pub(super) oldest: SegmentIx,
    /// The active segment.
    pub(super) newest: SegmentIx,
    pub(super) segments: u32,
    /// Bytes of all segments.
    pub(super) bytes: u64,
    pub(super) log_start: i64,
    /// The offset that the next append gets.
    pub(super) written: i64,
    pub(super) durable: Mark,
    /// A flush has brought `durable` where it is; without one it is only where the log began, and no checkpoint may say more.
    pub(super) is_proved: bool,
    pub(super) tail: Tail,
    pub(super) epochs: Epochs,
    /// Where the last look-up went: a reader goes on from there.
    pub(super) last_read: SegmentIx,
    /// The directory is on the disk.
    pub(super) has_dir: bool,
    /// The directory's own name.
    pub(super) name: Names,
    /// The names in the directory.
    pub(super) names: Names,
    /// It is in the flush under way.
    pub(super) flushing: bool,
    /// When the oldest unflushed byte was written.
    pub(super) dirty_since: Instant,
    /// Bytes appended since the last checkpoint.
    pub(super) unchecked_bytes: u64,
    /// Something besides appends changed since the last checkpoint.
    pub(super) unchecked: bool,
    /// Number of the last checkpoint.
    pub(super) checkpoint: u64,
}

impl Partition {
    /// A free slot.
    pub(super) const fn absent(settings: LogSettings) -> Self {
        Self {
            health: Health::Absent,
            generation: 0,
            dir: Dir::new(),
            settings,
            oldest: SegmentIx::NONE,
            newest: SegmentIx::NONE,
            segments: 0,
            bytes: 0,
            log_start: 0,
            written: 0,
            durable: Mark::ZERO,
            is_proved: false,
            tail: Tail::EMPTY,
            epochs: Epochs::EMPTY,
            last_read: SegmentIx::NONE,
            has_dir: false,
            name: Names::Durable,
            names: Names::Durable,
            flushing: false,
            dirty_since: Instant::NEVER,
            unchecked_bytes: 0,
            unchecked: false,
            checkpoint: 0,
        }
    }

    /// Whether something must be flushed before all that is written is durable.
    pub(super) fn is_dirty(&self) -> bool {
        self.written > self.durable.offset || self.durable.segment != self.newest || self.names != Names::Durable
    }
}
