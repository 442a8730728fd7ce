//! OffsetForLeaderEpoch (key 23).
//!
//! Versions 2–4, flexible from 4. 2 says which epoch the client believes in (KIP-320); 3 has the replica id.

use crate::error_code::ErrorCode;
use crate::wire::{Array, message};

message! {
    /// Asks where leader epochs ended, to find where two logs part.
    OffsetForLeaderEpochRequest<'a>: versions [2..=4], flexible [4..] {
        /// The broker id of a follower; −1 from a client, −2 when not said.
        replica_id: i32 [3..] = -2;
        /// The topics.
        topics: Array<'a, OffsetForLeaderTopic<'a>> [0..];
    }
}

message! {
    /// One topic's share of an [`OffsetForLeaderEpochRequest`].
    OffsetForLeaderTopic<'a> {
        /// The topic's name.
        topic: &'a str [0..];
        /// The partitions.
        partitions: Array<'a, OffsetForLeaderPartition> [0..];
    }
}

message! {
    /// Which epoch of one partition is asked for.
    OffsetForLeaderPartition {
        /// The partition.
        partition: i32 [0..];
        /// The leader epoch that the client knows, or −1: an older or newer one is refused (KIP-320).
        current_leader_epoch: i32 [2..] = -1;
        /// The epoch whose end is asked for.
        leader_epoch: i32 [0..];
    }
}

message! {
    /// Where the epochs ended.
    OffsetForLeaderEpochResponse<'a>: versions [2..=4], flexible [4..] {
        /// How long a quota held the request back, in milliseconds; 0 for not at all.
        throttle_time_ms: i32 [2..];
        /// The topics.
        topics: Array<'a, OffsetForLeaderTopicResult<'a>> [0..];
    }
}

message! {
    /// One topic's share of an [`OffsetForLeaderEpochResponse`].
    OffsetForLeaderTopicResult<'a> {
        /// The topic's name.
        topic: &'a str [0..];
        /// The partitions.
        partitions: Array<'a, EpochEndOffset> [0..];
    }
}

message! {
    /// Where an epoch of one partition ended.
    EpochEndOffset {
        /// What went wrong, if anything.
        error_code: ErrorCode [0..];
        /// The partition.
        partition: i32 [0..];
        /// The largest epoch up to the one asked for, or −1.
        leader_epoch: i32 [1..] = -1;
        /// The offset where it ended, or −1.
        end_offset: i64 [0..] = -1;
    }
}
