//! CreatePartitions (key 37).
//!
//! Versions 0–3, flexible from 2. 3 may answer THROTTLING_QUOTA_EXCEEDED (KIP-599).

use crate::error_code::ErrorCode;
use crate::wire::{Array, message};

message! {
    /// Gives topics more partitions.
    CreatePartitionsRequest<'a>: versions [0..=3], flexible [2..] {
        /// The topics.
        topics: Array<'a, CreatePartitionsTopic<'a>> [0..];
        /// How long the client waits for the work to be done, in milliseconds.
        timeout_ms: i32 [0..];
        /// Whether only to check, and change nothing.
        validate_only: bool [0..];
    }
}

message! {
    /// A topic and its new number of partitions.
    CreatePartitionsTopic<'a> {
        /// The topic's name.
        name: &'a str [0..];
        /// The new number of partitions.
        count: i32 [0..];
        /// Where the new partitions' replicas are to lie; null for the broker to choose.
        assignments: Array<'a, CreatePartitionsAssignment<'a>> [0..] null [0..];
    }
}

message! {
    /// Where one new partition's replicas are to lie.
    CreatePartitionsAssignment<'a> {
        /// The brokers, the preferred leader first.
        broker_ids: Array<'a, i32> [0..];
    }
}

message! {
    /// Which topics were changed.
    CreatePartitionsResponse<'a>: versions [0..=3], flexible [2..] {
        /// How long a quota held the request back, in milliseconds; 0 for not at all.
        throttle_time_ms: i32 [0..];
        /// What became of each.
        results: Array<'a, CreatePartitionsTopicResult<'a>> [0..];
    }
}

message! {
    /// Whether one topic was changed.
    CreatePartitionsTopicResult<'a> {
        /// The topic's name.
        name: &'a str [0..];
        /// What went wrong, if anything.
        error_code: ErrorCode [0..];
        /// What went wrong, in words, or null.
        error_message: Option<&'a str> [0..] null [0..];
    }
}
