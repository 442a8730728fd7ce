//! OffsetCommit (key 8).
//!
//! Versions 2–9, flexible from 8. 5 drops the retention time; 6 has leader epochs (KIP-320); 7 static members (KIP-345);
//! 9 member epochs (KIP-848).
//!
//! Left out: version 10 (topic ids).

use crate::error_code::ErrorCode;
use crate::wire::{Array, message};

message! {
    /// Stores how far a group has read.
    OffsetCommitRequest<'a>: versions [2..=9], flexible [8..] {
        /// The group.
        group_id: &'a str [0..];
        /// The member's generation (classic) or epoch (KIP-848), or −1 outside a group.
        generation_id_or_member_epoch: i32 [1..] = -1;
        /// The member's id; empty outside a group.
        member_id: &'a str [1..];
        /// A static member's own name, or null.
        group_instance_id: Option<&'a str> [7..] null [7..];
        /// How long to keep the offsets in milliseconds, or −1 for as long as the broker does.
        retention_time_ms: i64 [2..=4] = -1;
        /// The topics.
        topics: Array<'a, OffsetCommitRequestTopic<'a>> [0..];
    }
}

message! {
    /// One topic's share of an [`OffsetCommitRequest`].
    OffsetCommitRequestTopic<'a> {
        /// The topic's name.
        name: &'a str [0..=9];
        /// The partitions.
        partitions: Array<'a, OffsetCommitRequestPartition<'a>> [0..];
    }
}

message! {
    /// How far one partition was read.
    OffsetCommitRequestPartition<'a> {
        /// The partition.
        partition_index: i32 [0..];
        /// The next offset to read.
        committed_offset: i64 [0..];
        /// The leader epoch of the last record that was read, or −1.
        committed_leader_epoch: i32 [6..] = -1;
        /// Whatever the client wants to keep with it.
        committed_metadata: Option<&'a str> [0..] null [0..] = Some("");
    }
}

message! {
    /// Which offsets were stored.
    OffsetCommitResponse<'a>: versions [2..=9], flexible [8..] {
        /// How long a quota held the request back, in milliseconds; 0 for not at all.
        throttle_time_ms: i32 [3..];
        /// The topics.
        topics: Array<'a, OffsetCommitResponseTopic<'a>> [0..];
    }
}

message! {
    /// One topic's share of an [`OffsetCommitResponse`].
    OffsetCommitResponseTopic<'a> {
        /// The topic's name.
        name: &'a str [0..=9];
        /// The partitions.
        partitions: Array<'a, OffsetCommitResponsePartition> [0..];
    }
}

message! {
    /// Whether one partition's offset was stored.
    OffsetCommitResponsePartition {
        /// The partition.
        partition_index: i32 [0..];
        /// What went wrong, if anything.
        error_code: ErrorCode [0..];
    }
}
