//! DescribeLogDirs (key 35).
//!
//! Versions 1–4, flexible from 2. 3 has a top-level error; 4 the volume's sizes (KIP-827).
//!
//! Left out: version 5 (cordoned directories).

use crate::error_code::ErrorCode;
use crate::wire::{Array, message};

message! {
    /// Asks what the log directories hold.
    DescribeLogDirsRequest<'a>: versions [1..=4], flexible [2..] {
        /// The topics; null for all.
        topics: Array<'a, DescribableLogDirTopic<'a>> [0..] null [0..];
    }
}

message! {
    /// Partitions that are asked about.
    DescribableLogDirTopic<'a> {
        /// The topic's name.
        topic: &'a str [0..];
        /// The partitions.
        partitions: Array<'a, i32> [0..];
    }
}

message! {
    /// The log directories.
    DescribeLogDirsResponse<'a>: versions [1..=4], flexible [2..] {
        /// How long a quota held the request back, in milliseconds; 0 for not at all.
        throttle_time_ms: i32 [0..];
        /// What went wrong, if anything.
        error_code: ErrorCode [3..];
        /// The directories.
        results: Array<'a, DescribeLogDirsResult<'a>> [0..];
    }
}

message! {
    /// One log directory.
    DescribeLogDirsResult<'a> {
        /// What went wrong, if anything.
        error_code: ErrorCode [0..];
        /// The directory's path.
        log_dir: &'a str [0..];
        /// The topics.
        topics: Array<'a, DescribeLogDirsTopic<'a>> [0..];
        /// The volume's size in bytes, or −1.
        total_bytes: i64 [4..] = -1;
        /// Bytes free on the volume, or −1.
        usable_bytes: i64 [4..] = -1;
    }
}

message! {
    /// One topic's share of a directory.
    DescribeLogDirsTopic<'a> {
        /// The topic's name.
        name: &'a str [0..];
        /// The partitions.
        partitions: Array<'a, DescribeLogDirsPartition> [0..];
    }
}

message! {
    /// One partition's share of a directory.
    DescribeLogDirsPartition {
        /// The partition.
        partition_index: i32 [0..];
        /// Bytes that the partition's log takes.
        partition_size: i64 [0..];
        /// How far the replica is behind, in offsets.
        offset_lag: i64 [0..];
        /// Whether this replica is being moved here.
        is_future_key: bool [0..];
    }
}
