//! A log to append to and to read from, over any disk.

use skerry_broker::config::{Config, Flush, Read};
use skerry_broker::crc::CRC32C;
use skerry_broker::ids::PartitionIx;
use skerry_broker::log::{LogLimits, LogPolicy, LogSettings, Logs};
use skerry_core::time::{Millis, Timestamp};
use skerry_net::host::Disk;

/// Logs of one partition: nothing waits for the disk, and old segments go, so that a long run fits it.
///
/// Panics when the disk refuses.
pub fn one_log(disk: &mut impl Disk) -> (Logs, PartitionIx) {
    let config = Config::with("/".as_ref(), &[]).expect("the defaults are good");
    let limits = LogLimits {
        partitions: 1,
        segments: 64,
        open_files: 8,
        producers: 1,
    };
    let policy = LogPolicy {
        flush: Flush::Never,
        read: Read::Written,
        flush_interval: Millis(1000),
        checkpoint_bytes: config.checkpoint_bytes,
        clock_floor: Timestamp(0),
        crc: CRC32C,
    };
    let settings = LogSettings {
        segment_bytes: 64 << 20,
        segment_ms: i64::MAX,
        index_interval_bytes: config.topic.index_interval_bytes,
        retention_ms: -1,
        retention_bytes: 256 << 20,
        timestamp_type: config.topic.timestamp_type,
        cleanup_policy: config.topic.cleanup_policy,
    };
    let mut logs = Logs::new(limits, policy);
    let ix = logs.create(disk, "bench", 0, &settings).expect("a log");
    (logs, ix)
}
