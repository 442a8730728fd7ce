//! DescribeTopicPartitions (key 75).
//!
//! Version 0, flexible (KIP-966). Answers in pages: a cursor says where the next one starts.

use crate::error_code::ErrorCode;
use crate::wire::{Array, Uuid, message};

message! {
    /// Asks for topics and partitions, a page at a time.
    DescribeTopicPartitionsRequest<'a>: versions [0..=0], flexible [0..] {
        /// The topics.
        topics: Array<'a, TopicRequest<'a>> [0..];
        /// Most partitions in the reply.
        response_partition_limit: i32 [0..] = 2000;
        /// Where the page starts; null for the beginning.
        cursor: Option<Cursor<'a>> [0..] null [0..];
    }
}

message! {
    /// A topic asked for.
    TopicRequest<'a> {
        /// The topic's name.
        name: &'a str [0..];
    }
}

message! {
    /// Where a page starts.
    Cursor<'a> {
        /// The topic's name.
        topic_name: &'a str [0..];
        /// The partition that comes first.
        partition_index: i32 [0..];
    }
}

message! {
    /// One page of topics and partitions.
    DescribeTopicPartitionsResponse<'a>: versions [0..=0], flexible [0..] {
        /// How long a quota held the request back, in milliseconds; 0 for not at all.
        throttle_time_ms: i32 [0..];
        /// The topics.
        topics: Array<'a, DescribeTopicPartitionsResponseTopic<'a>> [0..];
        /// Where the next page starts; null at the end.
        next_cursor: Option<Cursor<'a>> [0..] null [0..];
    }
}

message! {
    /// A topic and its partitions, or why there is none.
    DescribeTopicPartitionsResponseTopic<'a> {
        /// What went wrong, if anything.
        error_code: ErrorCode [0..];
        /// The topic's name, or null.
        name: Option<&'a str> [0..] null [0..] = Some("");
        /// The topic's id.
        topic_id: Uuid [0..];
        /// Whether it is one of Kafka's own topics.
        is_internal: bool [0..];
        /// The partitions.
        partitions: Array<'a, DescribeTopicPartitionsResponsePartition<'a>> [0..];
        /// Which operations the client may do, as a bit set; `i32::MIN` when it did not ask.
        topic_authorized_operations: i32 [0..] = i32::MIN;
    }
}

message! {
    /// Who leads and holds one partition.
    DescribeTopicPartitionsResponsePartition<'a> {
        /// What went wrong, if anything.
        error_code: ErrorCode [0..];
        /// The partition.
        partition_index: i32 [0..];
        /// The leader's id, or −1 when there is none.
        leader_id: i32 [0..];
        /// The leader's epoch, or −1 when not known.
        leader_epoch: i32 [0..] = -1;
        /// Brokers that hold a replica.
        replica_nodes: Array<'a, i32> [0..];
        /// Brokers whose replica is in sync.
        isr_nodes: Array<'a, i32> [0..];
        /// Replicas that may lead though not in sync, or null.
        eligible_leader_replicas: Array<'a, i32> [0..] null [0..] = Array::Null;
        /// The last replicas that might have led, or null.
        last_known_elr: Array<'a, i32> [0..] null [0..] = Array::Null;
        /// Brokers whose replica is offline.
        offline_replicas: Array<'a, i32> [0..];
    }
}
