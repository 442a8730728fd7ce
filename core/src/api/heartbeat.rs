//! Heartbeat (key 12).
//!
//! Versions 0–4, flexible from 4. 3 has static members (KIP-345).

use crate::error_code::ErrorCode;
use crate::wire::message;

message! {
    /// Says that a member is alive.
    HeartbeatRequest<'a>: versions [0..=4], flexible [4..] {
        /// The group.
        group_id: &'a str [0..];
        /// The generation.
        generation_id: i32 [0..];
        /// The member's id.
        member_id: &'a str [0..];
        /// A static member's own name, or null.
        group_instance_id: Option<&'a str> [3..] null [3..];
    }
}

message! {
    /// Whether the generation still stands.
    HeartbeatResponse: versions [0..=4], flexible [4..] {
        /// How long a quota held the request back, in milliseconds; 0 for not at all.
        throttle_time_ms: i32 [1..];
        /// What went wrong, if anything.
        error_code: ErrorCode [0..];
    }
}
