//! ListPartitionReassignments (key 46).
//!
//! Version 0, flexible (KIP-455).

use crate::error_code::ErrorCode;
use crate::wire::{Array, message};

message! {
    /// Asks which partitions are being moved.
    ListPartitionReassignmentsRequest<'a>: versions [0..=0], flexible [0..] {
        /// How long the client waits for the work to be done, in milliseconds.
        timeout_ms: i32 [0..] = 60000;
        /// The topics; null for all.
        topics: Array<'a, ListPartitionReassignmentsTopics<'a>> [0..] null [0..] = Array::Null;
    }
}

message! {
    /// Partitions that are asked about.
    ListPartitionReassignmentsTopics<'a> {
        /// The topic's name.
        name: &'a str [0..];
        /// The partitions.
        partition_indexes: Array<'a, i32> [0..];
    }
}

message! {
    /// The moves under way.
    ListPartitionReassignmentsResponse<'a>: versions [0..=0], flexible [0..] {
        /// How long a quota held the request back, in milliseconds; 0 for not at all.
        throttle_time_ms: i32 [0..];
        /// What went wrong, if anything.
        error_code: ErrorCode [0..];
        /// What went wrong, in words, or null.
        error_message: Option<&'a str> [0..] null [0..] = Some("");
        /// The topics.
        topics: Array<'a, OngoingTopicReassignment<'a>> [0..];
    }
}

message! {
    /// One topic's moves.
    OngoingTopicReassignment<'a> {
        /// The topic's name.
        name: &'a str [0..];
        /// The partitions.
        partitions: Array<'a, OngoingPartitionReassignment<'a>> [0..];
    }
}

message! {
    /// One partition's move.
    OngoingPartitionReassignment<'a> {
        /// The partition.
        partition_index: i32 [0..];
        /// Brokers that hold a replica.
        replicas: Array<'a, i32> [0..];
        /// Brokers that are getting a replica.
        adding_replicas: Array<'a, i32> [0..];
        /// Brokers that are losing their replica.
        removing_replicas: Array<'a, i32> [0..];
    }
}
