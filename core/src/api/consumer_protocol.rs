//! What consumers tell one another inside JoinGroup's `metadata` and SyncGroup's `assignment`.
//!
//! The broker carries these bytes unread. In front of each stands its version in two bytes; a reader takes the highest version
//! that it knows of a newer one, since later versions only append. Versions 0–3, not flexible. Subscription: 1 has owned
//! partitions (KIP-429); 2 the generation (KIP-792); 3 the rack (KIP-881).

use crate::wire::{Array, message};

message! {
    /// What a consumer wants and holds: JoinGroup's `metadata`.
    ConsumerProtocolSubscription<'a>: versions [0..=3], flexible [none] {
        /// The topics that the consumer wants.
        topics: Array<'a, &'a str> [0..];
        /// Whatever the assignor wants to say, or null.
        user_data: Option<&'a [u8]> [0..] null [0..];
        /// What the consumer holds now.
        owned_partitions: Array<'a, TopicPartition<'a>> [1..];
        /// The generation in which it got them, or −1.
        generation_id: i32 [2..] = -1;
        /// The consumer's rack, or null.
        rack_id: Option<&'a str> [3..] null [3..];
    }
}

message! {
    /// Partitions of one topic.
    TopicPartition<'a> {
        /// The topic's name.
        topic: &'a str [0..];
        /// The partitions.
        partitions: Array<'a, i32> [0..];
    }
}

message! {
    /// What a consumer is to read: SyncGroup's `assignment`.
    ConsumerProtocolAssignment<'a>: versions [0..=3], flexible [none] {
        /// What the consumer is to read.
        assigned_partitions: Array<'a, TopicPartition<'a>> [0..];
        /// Whatever the assignor wants to say, or null.
        user_data: Option<&'a [u8]> [0..] null [0..];
    }
}
