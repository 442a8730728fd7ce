//! Metadata (key 3).
//!
//! Versions 0–13, flexible from 9. 1 tells brokers' racks and the controller; 2 the cluster id; 4 says whether topics are
//! created when asked for; 5 tells offline replicas; 7 leader epochs; 8 authorized operations (KIP-430); 10 topic ids
//! (KIP-516), which can be asked by from 12; 11 leaves the cluster's operations to DescribeCluster (KIP-700); 13 has an error for
//! the whole reply.

use crate::error_code::ErrorCode;
use crate::wire::{Array, Uuid, message};

message! {
    /// Asks who the brokers are and who leads which partition.
    MetadataRequest<'a>: versions [0..=13], flexible [9..] {
        /// The topics asked for. All of them when null, or, in version 0, when empty.
        topics: Array<'a, MetadataRequestTopic<'a>> [0..] null [1..];
        /// Whether a topic that does not exist may be created.
        allow_auto_topic_creation: bool [4..] = true;
        /// Whether to say what the client may do to the cluster.
        include_cluster_authorized_operations: bool [8..=10];
        /// Whether to say what the client may do to each topic.
        include_topic_authorized_operations: bool [8..];
    }
}

message! {
    /// A topic asked for, by name or by id.
    MetadataRequestTopic<'a> {
        /// The topic's id, or zero when it is asked for by name.
        topic_id: Uuid [10..];
        /// The topic's name, or null when it is asked for by id.
        name: Option<&'a str> [0..] null [10..] = Some("");
    }
}

message! {
    /// Brokers, topics and partition leaders.
    MetadataResponse<'a>: versions [0..=13], flexible [9..] {
        /// How long a quota held the request back, in milliseconds; 0 for not at all.
        throttle_time_ms: i32 [3..];
        /// The brokers.
        brokers: Array<'a, MetadataResponseBroker<'a>> [0..];
        /// The cluster's id, or null.
        cluster_id: Option<&'a str> [2..] null [2..];
        /// The controller's id, or −1.
        controller_id: i32 [1..] = -1;
        /// The topics.
        topics: Array<'a, MetadataResponseTopic<'a>> [0..];
        /// Which operations the client may do, as a bit set; `i32::MIN` when it did not ask.
        cluster_authorized_operations: i32 [8..=10] = i32::MIN;
        /// What went wrong, if anything.
        error_code: ErrorCode [13..];
    }
}

message! {
    /// A broker and its address.
    MetadataResponseBroker<'a> {
        /// The broker's id.
        node_id: i32 [0..];
        /// The host name or address to connect to.
        host: &'a str [0..];
        /// The port to connect to.
        port: i32 [0..];
        /// The broker's rack, or null.
        rack: Option<&'a str> [1..] null [1..];
    }
}

message! {
    /// A topic and its partitions, or why there is none.
    MetadataResponseTopic<'a> {
        /// What went wrong, if anything.
        error_code: ErrorCode [0..];
        /// The topic's name, or null when an id that was asked for is unknown.
        name: Option<&'a str> [0..] null [12..] = Some("");
        /// The topic's id, or zero when there is no such topic.
        topic_id: Uuid [10..];
        /// Whether it is one of Kafka's own topics.
        is_internal: bool [1..];
        /// The partitions.
        partitions: Array<'a, MetadataResponsePartition<'a>> [0..];
        /// Which operations the client may do, as a bit set; `i32::MIN` when it did not ask.
        topic_authorized_operations: i32 [8..] = i32::MIN;
    }
}

message! {
    /// Who leads and holds one partition.
    MetadataResponsePartition<'a> {
        /// What went wrong, if anything.
        error_code: ErrorCode [0..];
        /// The partition.
        partition_index: i32 [0..];
        /// The leader's id, or −1 when there is none.
        leader_id: i32 [0..];
        /// The leader's epoch, or −1 when not known.
        leader_epoch: i32 [7..] = -1;
        /// Brokers that hold a replica.
        replica_nodes: Array<'a, i32> [0..];
        /// Brokers whose replica is in sync.
        isr_nodes: Array<'a, i32> [0..];
        /// Brokers whose replica is offline.
        offline_replicas: Array<'a, i32> [5..];
    }
}
