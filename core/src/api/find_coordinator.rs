//! FindCoordinator (key 10).
//!
//! Versions 0–6, flexible from 3. 1 knows other kinds of key than groups; 4 asks for several keys at once (KIP-699); 5 may
//! answer TRANSACTION_ABORTABLE (KIP-890); 6 knows share groups (KIP-932).

use crate::error_code::ErrorCode;
use crate::wire::{Array, message};

message! {
    /// Asks which broker looks after a group or a transaction.
    FindCoordinatorRequest<'a>: versions [0..=6], flexible [3..] {
        /// The group or transactional id (versions up to 3).
        key: &'a str [0..=3];
        /// 0 groups, 1 transactions, 2 share groups.
        key_type: i8 [1..];
        /// The keys to look up.
        coordinator_keys: Array<'a, &'a str> [4..];
    }
}

message! {
    /// Which broker looks after each key.
    FindCoordinatorResponse<'a>: versions [0..=6], flexible [3..] {
        /// How long a quota held the request back, in milliseconds; 0 for not at all.
        throttle_time_ms: i32 [1..];
        /// What went wrong, if anything.
        error_code: ErrorCode [0..=3];
        /// What went wrong, in words, or null.
        error_message: Option<&'a str> [1..=3] null [1..=3] = Some("");
        /// The broker's id.
        node_id: i32 [0..=3];
        /// The host name or address to connect to.
        host: &'a str [0..=3];
        /// The port to connect to.
        port: i32 [0..=3];
        /// The broker for each key.
        coordinators: Array<'a, Coordinator<'a>> [4..];
    }
}

message! {
    /// The broker for one key (version 4 and later).
    Coordinator<'a> {
        /// The group or transactional id.
        key: &'a str [4..];
        /// The broker's id.
        node_id: i32 [4..];
        /// The host name or address to connect to.
        host: &'a str [4..];
        /// The port to connect to.
        port: i32 [4..];
        /// What went wrong, if anything.
        error_code: ErrorCode [4..];
        /// What went wrong, in words, or null.
        error_message: Option<&'a str> [4..] null [4..] = Some("");
    }
}
