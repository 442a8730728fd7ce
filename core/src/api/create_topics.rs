//! CreateTopics (key 19).
//!
//! Versions 2–7, flexible from 5. 4 takes −1 for the broker's own partition count and replication factor (KIP-464); 5 returns
//! the topic's settings (KIP-525); 7 its id (KIP-516).

use crate::error_code::ErrorCode;
use crate::wire::{Array, Uuid, message};

message! {
    /// Creates topics.
    CreateTopicsRequest<'a>: versions [2..=7], flexible [5..] {
        /// The topics.
        topics: Array<'a, CreatableTopic<'a>> [0..];
        /// How long the client waits for the work to be done, in milliseconds.
        timeout_ms: i32 [0..] = 60000;
        /// Whether only to check, and change nothing.
        validate_only: bool [1..];
    }
}

message! {
    /// A topic to create.
    CreatableTopic<'a> {
        /// The topic's name.
        name: &'a str [0..];
        /// How many partitions, or −1 for the broker's default or when assigned by hand.
        num_partitions: i32 [0..];
        /// How many replicas, or −1 for the broker's default or when assigned by hand.
        replication_factor: i16 [0..];
        /// Where replicas are to lie; empty for the broker to choose.
        assignments: Array<'a, CreatableReplicaAssignment<'a>> [0..];
        /// Settings that differ from the broker's.
        configs: Array<'a, CreatableTopicConfig<'a>> [0..];
    }
}

message! {
    /// Where one partition's replicas are to lie.
    CreatableReplicaAssignment<'a> {
        /// The partition.
        partition_index: i32 [0..];
        /// The brokers, the preferred leader first.
        broker_ids: Array<'a, i32> [0..];
    }
}

message! {
    /// A setting of the new topic.
    CreatableTopicConfig<'a> {
        /// The setting's name.
        name: &'a str [0..];
        /// Its value, or null for the default.
        value: Option<&'a str> [0..] null [0..] = Some("");
    }
}

message! {
    /// Which topics were created.
    CreateTopicsResponse<'a>: versions [2..=7], flexible [5..] {
        /// How long a quota held the request back, in milliseconds; 0 for not at all.
        throttle_time_ms: i32 [2..];
        /// The topics.
        topics: Array<'a, CreatableTopicResult<'a>> [0..];
    }
}

message! {
    /// Whether one topic was created, and how.
    CreatableTopicResult<'a> {
        /// The topic's name.
        name: &'a str [0..];
        /// The topic's id.
        topic_id: Uuid [7..];
        /// What went wrong, if anything.
        error_code: ErrorCode [0..];
        /// What went wrong, in words, or null.
        error_message: Option<&'a str> [1..] null [0..] = Some("");
        /// Why the settings are not shown, if they are not.
        topic_config_error_code: ErrorCode [5..] tag 0;
        /// How many partitions the topic has, or −1.
        num_partitions: i32 [5..] = -1;
        /// How many replicas each has, or −1.
        replication_factor: i16 [5..] = -1;
        /// The topic's settings, or null.
        configs: Array<'a, CreatableTopicConfigs<'a>> [5..] null [5..];
    }
}

message! {
    /// A setting of the topic as it now is.
    CreatableTopicConfigs<'a> {
        /// The setting's name.
        name: &'a str [5..];
        /// Its value, or null when there is none or it is secret.
        value: Option<&'a str> [5..] null [5..] = Some("");
        /// Whether it cannot be changed.
        read_only: bool [5..];
        /// Where the value comes from: 1 topic, 2 broker, 3 all brokers, 4 file, 5 default; −1 not known.
        config_source: i8 [5..] = -1;
        /// Whether the value is secret.
        is_sensitive: bool [5..];
    }
}
