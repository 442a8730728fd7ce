//! InitProducerId (key 22).
//!
//! Versions 0–5, flexible from 2. 3 lets a producer raise its epoch (KIP-360); 4 may answer PRODUCER_FENCED; 5 may answer
//! TRANSACTION_ABORTABLE (KIP-890).
//!
//! Left out: version 6 (two-phase commit, KIP-939).

use crate::error_code::ErrorCode;
use crate::wire::message;

message! {
    /// Asks for a producer id, for idempotent writes.
    InitProducerIdRequest<'a>: versions [0..=5], flexible [2..] {
        /// The producer's transactional id, or null.
        transactional_id: Option<&'a str> [0..] null [0..] = Some("");
        /// How long a transaction may take, in milliseconds.
        transaction_timeout_ms: i32 [0..];
        /// The producer's id, or −1 to get one.
        producer_id: i64 [3..] = -1;
        /// The producer's epoch, or −1.
        producer_epoch: i16 [3..] = -1;
    }
}

message! {
    /// The producer id and its epoch.
    InitProducerIdResponse: versions [0..=5], flexible [2..] {
        /// How long a quota held the request back, in milliseconds; 0 for not at all.
        throttle_time_ms: i32 [0..];
        /// What went wrong, if anything.
        error_code: ErrorCode [0..];
        /// The producer's id, or −1 with an error.
        producer_id: i64 [0..] = -1;
        /// The producer's epoch.
        producer_epoch: i16 [0..];
    }
}
