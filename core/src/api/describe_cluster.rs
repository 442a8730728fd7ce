//! DescribeCluster (key 60).
//!
//! Versions 0–2, flexible (KIP-700). 1 asks brokers or controllers (KIP-919); 2 includes fenced brokers (KIP-1073).

use crate::error_code::ErrorCode;
use crate::wire::{Array, message};

message! {
    /// Asks who the brokers are.
    DescribeClusterRequest: versions [0..=2], flexible [0..] {
        /// Whether to say what the client may do to the cluster.
        include_cluster_authorized_operations: bool [0..];
        /// 1 brokers, 2 controllers.
        endpoint_type: i8 [1..] = 1;
        /// Whether to list brokers that are set aside.
        include_fenced_brokers: bool [2..];
    }
}

message! {
    /// The cluster and its brokers.
    DescribeClusterResponse<'a>: versions [0..=2], flexible [0..] {
        /// How long a quota held the request back, in milliseconds; 0 for not at all.
        throttle_time_ms: i32 [0..];
        /// What went wrong, if anything.
        error_code: ErrorCode [0..];
        /// What went wrong, in words, or null.
        error_message: Option<&'a str> [0..] null [0..];
        /// 1 brokers, 2 controllers.
        endpoint_type: i8 [1..] = 1;
        /// The cluster's id.
        cluster_id: &'a str [0..];
        /// The controller's id, or −1.
        controller_id: i32 [0..] = -1;
        /// The brokers.
        brokers: Array<'a, DescribeClusterBroker<'a>> [0..];
        /// Which operations the client may do, as a bit set; `i32::MIN` when it did not ask.
        cluster_authorized_operations: i32 [0..] = i32::MIN;
    }
}

message! {
    /// A broker and its address.
    DescribeClusterBroker<'a> {
        /// The broker's id.
        broker_id: i32 [0..];
        /// The host name or address to connect to.
        host: &'a str [0..];
        /// The port to connect to.
        port: i32 [0..];
        /// The broker's rack, or null.
        rack: Option<&'a str> [0..] null [0..];
        /// Whether the broker is set aside.
        is_fenced: bool [2..];
    }
}
