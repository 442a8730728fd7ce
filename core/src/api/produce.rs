//! Produce (key 0).
//!
//! Versions 3–13, flexible from 9. 3 is the first with record format v2 and transactional ids; 7 allows zstd (KIP-110);
//! 8 says which records were refused (KIP-467); 10 names the new leader with an error (KIP-951); 11 and 12 mean more to
//! transactions (KIP-890); 13 has topic ids in place of names (KIP-516).
//!
//! Left out: versions 0–2 (older record formats). A broker lists 0 all the same: librdkafka misbehaves otherwise.

use crate::error_code::ErrorCode;
use crate::wire::{Array, Records, Uuid, message};

message! {
    /// Appends record batches to partitions.
    ProduceRequest<'a>: versions [3..=13], flexible [9..] {
        /// The producer's transactional id, or null.
        transactional_id: Option<&'a str> [3..] null [3..];
        /// Who must have the batch before the reply: −1 all in sync, 1 the leader; 0 wants no reply at all.
        acks: i16 [0..];
        /// How long to wait for acks, in milliseconds.
        timeout_ms: i32 [0..];
        /// The topics.
        topic_data: Array<'a, TopicProduceData<'a>> [0..];
    }
}

message! {
    /// One topic's share of a [`ProduceRequest`].
    TopicProduceData<'a> {
        /// The topic's name.
        name: &'a str [0..=12];
        /// The topic's id.
        topic_id: Uuid [13..];
        /// The partitions.
        partition_data: Array<'a, PartitionProduceData<'a>> [0..];
    }
}

message! {
    /// One partition's batch.
    PartitionProduceData<'a> {
        /// The partition.
        index: i32 [0..];
        /// The batch.
        records: Records<'a> [0..] null [0..];
    }
}

message! {
    /// What became of each batch. There is no reply to a request with acks 0.
    ProduceResponse<'a>: versions [3..=13], flexible [9..] {
        /// The topics.
        responses: Array<'a, TopicProduceResponse<'a>> [0..];
        /// How long a quota held the request back, in milliseconds; 0 for not at all.
        throttle_time_ms: i32 [1..];
        /// Where the leaders that are named can be reached.
        node_endpoints: Array<'a, NodeEndpoint<'a>> [10..] tag 0;
    }
}

message! {
    /// One topic's share of a [`ProduceResponse`].
    TopicProduceResponse<'a> {
        /// The topic's name.
        name: &'a str [0..=12];
        /// The topic's id.
        topic_id: Uuid [13..];
        /// The partitions.
        partition_responses: Array<'a, PartitionProduceResponse<'a>> [0..];
    }
}

message! {
    /// What became of one partition's batch.
    PartitionProduceResponse<'a> {
        /// The partition.
        index: i32 [0..];
        /// What went wrong, if anything.
        error_code: ErrorCode [0..];
        /// The offset given to the first record, or −1 with an error.
        base_offset: i64 [0..];
        /// The broker's time of the append, or −1 when the topic keeps the client's timestamps.
        log_append_time_ms: i64 [2..] = -1;
        /// The first offset that the log still has, or −1 when not known.
        log_start_offset: i64 [5..] = -1;
        /// The records that made the batch be refused.
        record_errors: Array<'a, BatchIndexAndErrorMessage<'a>> [8..];
        /// Why the batch was refused, or null.
        error_message: Option<&'a str> [8..] null [8..];
        /// The leader to turn to, with NOT_LEADER_OR_FOLLOWER.
        current_leader: LeaderIdAndEpoch [10..] tag 0;
    }
}

message! {
    /// A record that made its whole batch be refused.
    BatchIndexAndErrorMessage<'a> {
        /// The record's place in the batch.
        batch_index: i32 [8..];
        /// What is wrong with the record, or null.
        batch_index_error_message: Option<&'a str> [8..] null [8..];
    }
}

message! {
    /// The leader to turn to instead.
    LeaderIdAndEpoch {
        /// The leader's id, or −1 when there is none.
        leader_id: i32 [10..] = -1;
        /// The leader's epoch, or −1 when not known.
        leader_epoch: i32 [10..] = -1;
    }
}

message! {
    /// Where a broker that is named as a leader can be reached.
    NodeEndpoint<'a> {
        /// The broker's id.
        node_id: i32 [10..];
        /// The host name or address to connect to.
        host: &'a str [10..];
        /// The port to connect to.
        port: i32 [10..];
        /// The broker's rack, or null.
        rack: Option<&'a str> [10..] null [10..];
    }
}
