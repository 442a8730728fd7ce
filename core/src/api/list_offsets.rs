//! ListOffsets (key 2).
//!
//! Versions 1–10, flexible from 6. 2 has isolation levels; 4 leader epochs (KIP-320); 7 asks for the largest timestamp
//! (KIP-734); 8 for the local log start (KIP-405); 9 for the last tiered offset (KIP-1005); 10 has a timeout (KIP-1075).
//!
//! Left out: version 11 (earliest offset still to be tiered).

use crate::error_code::ErrorCode;
use crate::wire::{Array, message};

message! {
    /// Asks for offsets by timestamp, or for a log's ends.
    ListOffsetsRequest<'a>: versions [1..=10], flexible [6..] {
        /// The broker id of a follower, or −1 for a client.
        replica_id: i32 [0..];
        /// 0 reads everything, 1 only what was committed.
        isolation_level: i8 [2..];
        /// The topics.
        topics: Array<'a, ListOffsetsTopic<'a>> [0..];
        /// How long to wait for an answer from tiered storage, in milliseconds.
        timeout_ms: i32 [10..];
    }
}

message! {
    /// One topic's share of a [`ListOffsetsRequest`].
    ListOffsetsTopic<'a> {
        /// The topic's name.
        name: &'a str [0..];
        /// The partitions.
        partitions: Array<'a, ListOffsetsPartition> [0..];
    }
}

message! {
    /// What is asked of one partition.
    ListOffsetsPartition {
        /// The partition.
        partition_index: i32 [0..];
        /// The leader epoch that the client knows, or −1: an older or newer one is refused (KIP-320).
        current_leader_epoch: i32 [4..] = -1;
        /// The timestamp to find in milliseconds, or −1 latest, −2 earliest, −3 largest timestamp, −4 local start, −5
        /// last tiered.
        timestamp: i64 [0..];
    }
}

message! {
    /// The offsets found.
    ListOffsetsResponse<'a>: versions [1..=10], flexible [6..] {
        /// How long a quota held the request back, in milliseconds; 0 for not at all.
        throttle_time_ms: i32 [2..];
        /// The topics.
        topics: Array<'a, ListOffsetsTopicResponse<'a>> [0..];
    }
}

message! {
    /// One topic's share of a [`ListOffsetsResponse`].
    ListOffsetsTopicResponse<'a> {
        /// The topic's name.
        name: &'a str [0..];
        /// The partitions.
        partitions: Array<'a, ListOffsetsPartitionResponse> [0..];
    }
}

message! {
    /// What was found in one partition.
    ListOffsetsPartitionResponse {
        /// The partition.
        partition_index: i32 [0..];
        /// What went wrong, if anything.
        error_code: ErrorCode [0..];
        /// The timestamp of the record found, or −1.
        timestamp: i64 [1..] = -1;
        /// The offset found, or −1.
        offset: i64 [1..] = -1;
        /// The leader's epoch, or −1 when not known.
        leader_epoch: i32 [4..] = -1;
    }
}
