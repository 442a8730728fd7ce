//! OffsetFetch (key 9).
//!
//! Versions 1–9, flexible from 6. 2 asks for all topics with null and has a top-level error; 5 has leader epochs (KIP-320);
//! 7 may insist on stable offsets (KIP-447); 8 asks for several groups at once (KIP-709); 9 has member epochs (KIP-848).
//!
//! Left out: version 10 (topic ids).

use crate::error_code::ErrorCode;
use crate::wire::{Array, message};

message! {
    /// Asks how far groups have read.
    OffsetFetchRequest<'a>: versions [1..=9], flexible [6..] {
        /// The group (versions up to 7).
        group_id: &'a str [0..=7];
        /// The topics; null for every one that has an offset.
        topics: Array<'a, OffsetFetchRequestTopic<'a>> [0..=7] null [2..=7];
        /// The groups.
        groups: Array<'a, OffsetFetchRequestGroup<'a>> [8..];
        /// Whether offsets of unfinished transactions are an error.
        require_stable: bool [7..];
    }
}

message! {
    /// Partitions asked for (versions up to 7).
    OffsetFetchRequestTopic<'a> {
        /// The topic's name.
        name: &'a str [0..=7];
        /// The partitions.
        partition_indexes: Array<'a, i32> [0..=7];
    }
}

message! {
    /// What is asked of one group (version 8 and later).
    OffsetFetchRequestGroup<'a> {
        /// The group (versions up to 7).
        group_id: &'a str [8..];
        /// The member's id (KIP-848), or null.
        member_id: Option<&'a str> [9..] null [9..];
        /// The member's epoch (KIP-848), or −1.
        member_epoch: i32 [9..] = -1;
        /// The topics; null for every one that has an offset.
        topics: Array<'a, OffsetFetchRequestTopics<'a>> [8..] null [8..];
    }
}

message! {
    /// Partitions asked for (version 8 and later).
    OffsetFetchRequestTopics<'a> {
        /// The topic's name.
        name: &'a str [8..=9];
        /// The partitions.
        partition_indexes: Array<'a, i32> [8..];
    }
}

message! {
    /// How far groups have read.
    OffsetFetchResponse<'a>: versions [1..=9], flexible [6..] {
        /// How long a quota held the request back, in milliseconds; 0 for not at all.
        throttle_time_ms: i32 [3..];
        /// The topics.
        topics: Array<'a, OffsetFetchResponseTopic<'a>> [0..=7];
        /// What went wrong, if anything.
        error_code: ErrorCode [2..=7];
        /// The groups.
        groups: Array<'a, OffsetFetchResponseGroup<'a>> [8..];
    }
}

message! {
    /// One topic's share of the reply (versions up to 7).
    OffsetFetchResponseTopic<'a> {
        /// The topic's name.
        name: &'a str [0..=7];
        /// The partitions.
        partitions: Array<'a, OffsetFetchResponsePartition<'a>> [0..=7];
    }
}

message! {
    /// How far one partition was read (versions up to 7).
    OffsetFetchResponsePartition<'a> {
        /// The partition.
        partition_index: i32 [0..=7];
        /// The next offset to read, or −1 when there is none.
        committed_offset: i64 [0..=7];
        /// The leader epoch of the last record that was read, or −1.
        committed_leader_epoch: i32 [5..=7] = -1;
        /// What the client kept with it.
        metadata: Option<&'a str> [0..=7] null [0..=7] = Some("");
        /// What went wrong, if anything.
        error_code: ErrorCode [0..=7];
    }
}

message! {
    /// One group's share of the reply (version 8 and later).
    OffsetFetchResponseGroup<'a> {
        /// The group.
        group_id: &'a str [8..];
        /// The topics.
        topics: Array<'a, OffsetFetchResponseTopics<'a>> [8..];
        /// What went wrong, if anything.
        error_code: ErrorCode [8..];
    }
}

message! {
    /// One topic's share of a group's offsets (version 8 and later).
    OffsetFetchResponseTopics<'a> {
        /// The topic's name.
        name: &'a str [8..=9];
        /// The partitions.
        partitions: Array<'a, OffsetFetchResponsePartitions<'a>> [8..];
    }
}

message! {
    /// How far one partition was read (version 8 and later).
    OffsetFetchResponsePartitions<'a> {
        /// The partition.
        partition_index: i32 [8..];
        /// The next offset to read, or −1 when there is none.
        committed_offset: i64 [8..];
        /// The leader epoch of the last record that was read, or −1.
        committed_leader_epoch: i32 [8..] = -1;
        /// What the client kept with it.
        metadata: Option<&'a str> [8..] null [8..] = Some("");
        /// What went wrong, if anything.
        error_code: ErrorCode [8..];
    }
}
