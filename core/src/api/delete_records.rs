//! DeleteRecords (key 21).
//!
//! Versions 0–2, flexible from 2.

use crate::error_code::ErrorCode;
use crate::wire::{Array, message};

message! {
    /// Moves logs' start forward: what lies before is gone.
    DeleteRecordsRequest<'a>: versions [0..=2], flexible [2..] {
        /// The topics.
        topics: Array<'a, DeleteRecordsTopic<'a>> [0..];
        /// How long the client waits for the work to be done, in milliseconds.
        timeout_ms: i32 [0..];
    }
}

message! {
    /// One topic's share of a [`DeleteRecordsRequest`].
    DeleteRecordsTopic<'a> {
        /// The topic's name.
        name: &'a str [0..];
        /// The partitions.
        partitions: Array<'a, DeleteRecordsPartition> [0..];
    }
}

message! {
    /// Up to where one partition is cut.
    DeleteRecordsPartition {
        /// The partition.
        partition_index: i32 [0..];
        /// The first offset to keep, or −1 for the high watermark.
        offset: i64 [0..];
    }
}

message! {
    /// Where the logs start now.
    DeleteRecordsResponse<'a>: versions [0..=2], flexible [2..] {
        /// How long a quota held the request back, in milliseconds; 0 for not at all.
        throttle_time_ms: i32 [0..];
        /// The topics.
        topics: Array<'a, DeleteRecordsTopicResult<'a>> [0..];
    }
}

message! {
    /// One topic's share of a [`DeleteRecordsResponse`].
    DeleteRecordsTopicResult<'a> {
        /// The topic's name.
        name: &'a str [0..];
        /// The partitions.
        partitions: Array<'a, DeleteRecordsPartitionResult> [0..];
    }
}

message! {
    /// Where one partition starts now.
    DeleteRecordsPartitionResult {
        /// The partition.
        partition_index: i32 [0..];
        /// The first offset that the log still has, or −1 with an error.
        low_watermark: i64 [0..];
        /// What went wrong, if anything.
        error_code: ErrorCode [0..];
    }
}
