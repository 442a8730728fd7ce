//! What a partition's log obeys, what all of them obey, and how much of everything there may be.

use skerry_core::time::{Millis, Timestamp};

use crate::config::{CleanupPolicy, Config, Flush, Read, TimestampType, TopicDefaults};
use skerry_core::record::Crc32c;

/// What one partition's log obeys: its topic's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSettings {
    /// `segment.bytes`: an append that would make the active segment larger begins a new one.
    pub segment_bytes: u32,
    /// `segment.ms`: the active segment is closed when its first record is older than this.
    pub segment_ms: i64,
    /// `index.interval.bytes`: log bytes between two index entries.
    pub index_interval_bytes: u32,
    /// `retention.ms`; −1 keeps for ever.
    pub retention_ms: i64,
    /// `retention.bytes`; −1 is no bound.
    pub retention_bytes: i64,
    /// `message.timestamp.type`.
    pub timestamp_type: TimestampType,
    /// `cleanup.policy`. Under `compact` alone nothing is removed: there is no compactor.
    pub cleanup_policy: CleanupPolicy,
}

impl From<&TopicDefaults> for LogSettings {
    fn from(topic: &TopicDefaults) -> Self {
        Self {
            segment_bytes: topic.segment_bytes,
            segment_ms: topic.segment_ms,
            index_interval_bytes: topic.index_interval_bytes,
            retention_ms: topic.retention_ms,
            retention_bytes: topic.retention_bytes,
            timestamp_type: topic.timestamp_type,
            cleanup_policy: topic.cleanup_policy,
        }
    }
}

/// What all logs obey.
#[derive(Clone, Copy, Debug)]
pub struct LogPolicy {
    /// `skerry.flush`.
    pub flush: Flush,
    /// `skerry.read`.
    pub read: Read,
    /// `log.flush.interval.ms`: the longest that written bytes stay unflushed.
    pub flush_interval: Millis,
    /// `skerry.checkpoint.bytes`: appended bytes of a partition after which a checkpoint is written.
    pub checkpoint_bytes: u32,
    /// A wall clock before this was never set: nothing is removed for its age, and it says nothing about when data came.
    pub clock_floor: Timestamp,
    /// The checksum, by the fastest way that this machine has.
    pub crc: Crc32c,
}

impl LogPolicy {
    /// From the configuration.
    #[must_use]
    pub fn new(config: &Config, clock_floor: Timestamp, crc: Crc32c) -> Self {
        Self {
            flush: config.flush,
            read: config.read,
            flush_interval: config.flush_interval,
            checkpoint_bytes: config.checkpoint_bytes,
            clock_floor,
            crc,
        }
    }

    /// Whether consumers see what is written before it is durable.
    pub(super) const fn reads_written(&self) -> bool {
        matches!(self.read, Read::Written) || matches!(self.flush, Flush::Interval | Flush::Never)
    }
}

/// How much of everything there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLimits {
    /// Partitions. When full: [`super::Logs::create`] refuses.
    pub partitions: u32,
    /// Segments of all partitions together. When full: active segments grow past `segment.bytes` until retention frees one.
    pub segments: u32,
    /// Log and index files held open at once. When full: the least recently used is closed; when each is in use, a read answers
    /// [`super::ReadError::Exhausted`], and an append makes an unflushed one durable in a blocking call and takes its place.
    pub open_files: u32,
    /// Idempotent producers remembered, of all partitions together. When full: the longest idle goes.
    pub producers: u32,
}
