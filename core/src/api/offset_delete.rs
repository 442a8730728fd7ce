//! OffsetDelete (key 47).
//!
//! Version 0, not flexible (KIP-496).

use crate::error_code::ErrorCode;
use crate::wire::{Array, message};

message! {
    /// Deletes a group's offsets of some partitions.
    OffsetDeleteRequest<'a>: versions [0..=0], flexible [none] {
        /// The group.
        group_id: &'a str [0..];
        /// The topics.
        topics: Array<'a, OffsetDeleteRequestTopic<'a>> [0..];
    }
}

message! {
    /// One topic's share of an [`OffsetDeleteRequest`].
    OffsetDeleteRequestTopic<'a> {
        /// The topic's name.
        name: &'a str [0..];
        /// The partitions.
        partitions: Array<'a, OffsetDeleteRequestPartition> [0..];
    }
}

message! {
    /// A partition whose offset goes.
    OffsetDeleteRequestPartition {
        /// The partition.
        partition_index: i32 [0..];
    }
}

message! {
    /// Which offsets were deleted.
    OffsetDeleteResponse<'a>: versions [0..=0], flexible [none] {
        /// What went wrong, if anything.
        error_code: ErrorCode [0..];
        /// How long a quota held the request back, in milliseconds; 0 for not at all.
        throttle_time_ms: i32 [0..];
        /// The topics.
        topics: Array<'a, OffsetDeleteResponseTopic<'a>> [0..];
    }
}

message! {
    /// One topic's share of an [`OffsetDeleteResponse`].
    OffsetDeleteResponseTopic<'a> {
        /// The topic's name.
        name: &'a str [0..];
        /// The partitions.
        partitions: Array<'a, OffsetDeleteResponsePartition> [0..];
    }
}

message! {
    /// Whether one partition's offset was deleted.
    OffsetDeleteResponsePartition {
        /// The partition.
        partition_index: i32 [0..];
        /// What went wrong, if anything.
        error_code: ErrorCode [0..];
    }
}
