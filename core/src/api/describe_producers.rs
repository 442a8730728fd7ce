//! DescribeProducers (key 61).
//!
//! Version 0, flexible (KIP-664).

use crate::error_code::ErrorCode;
use crate::wire::{Array, message};

message! {
    /// Asks which producers wrote to partitions.
    DescribeProducersRequest<'a>: versions [0..=0], flexible [0..] {
        /// The topics.
        topics: Array<'a, TopicRequest<'a>> [0..];
    }
}

message! {
    /// Partitions that are asked about.
    TopicRequest<'a> {
        /// The topic's name.
        name: &'a str [0..];
        /// The partitions.
        partition_indexes: Array<'a, i32> [0..];
    }
}

message! {
    /// The producers.
    DescribeProducersResponse<'a>: versions [0..=0], flexible [0..] {
        /// How long a quota held the request back, in milliseconds; 0 for not at all.
        throttle_time_ms: i32 [0..];
        /// The topics.
        topics: Array<'a, TopicResponse<'a>> [0..];
    }
}

message! {
    /// One topic's share of a [`DescribeProducersResponse`].
    TopicResponse<'a> {
        /// The topic's name.
        name: &'a str [0..];
        /// The partitions.
        partitions: Array<'a, PartitionResponse<'a>> [0..];
    }
}

message! {
    /// One partition's producers.
    PartitionResponse<'a> {
        /// The partition.
        partition_index: i32 [0..];
        /// What went wrong, if anything.
        error_code: ErrorCode [0..];
        /// What went wrong, in words, or null.
        error_message: Option<&'a str> [0..] null [0..];
        /// The producers.
        active_producers: Array<'a, ProducerState> [0..];
    }
}

message! {
    /// What is known of one producer.
    ProducerState {
        /// The producer's id.
        producer_id: i64 [0..];
        /// The producer's epoch.
        producer_epoch: i32 [0..];
        /// The last sequence number, or −1.
        last_sequence: i32 [0..] = -1;
        /// The last batch's timestamp, or −1.
        last_timestamp: i64 [0..] = -1;
        /// The transaction coordinator's epoch.
        coordinator_epoch: i32 [0..];
        /// Where the open transaction starts, or −1.
        current_txn_start_offset: i64 [0..] = -1;
    }
}
