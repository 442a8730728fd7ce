//! SyncGroup (key 14).
//!
//! Versions 0–5, flexible from 4. 3 has static members (KIP-345); 5 the protocol's type and name (KIP-559).

use crate::error_code::ErrorCode;
use crate::wire::{Array, message};

message! {
    /// Fetches the member's assignment; the leader brings everyone's.
    SyncGroupRequest<'a>: versions [0..=5], flexible [4..] {
        /// The group.
        group_id: &'a str [0..];
        /// The generation.
        generation_id: i32 [0..];
        /// The member's id.
        member_id: &'a str [0..];
        /// A static member's own name, or null.
        group_instance_id: Option<&'a str> [3..] null [3..];
        /// The kind of group, or null.
        protocol_type: Option<&'a str> [5..] null [5..];
        /// The assignor that was chosen, or null.
        protocol_name: Option<&'a str> [5..] null [5..];
        /// Each member's assignment; empty from all but the leader.
        assignments: Array<'a, SyncGroupRequestAssignment<'a>> [0..];
    }
}

message! {
    /// What the leader assigned to one member.
    SyncGroupRequestAssignment<'a> {
        /// The member's id.
        member_id: &'a str [0..];
        /// What the member is to do, in its protocol's own form.
        assignment: &'a [u8] [0..];
    }
}

message! {
    /// The member's assignment.
    SyncGroupResponse<'a>: versions [0..=5], flexible [4..] {
        /// How long a quota held the request back, in milliseconds; 0 for not at all.
        throttle_time_ms: i32 [1..];
        /// What went wrong, if anything.
        error_code: ErrorCode [0..];
        /// The kind of group, or null.
        protocol_type: Option<&'a str> [5..] null [5..];
        /// The assignor that was chosen, or null.
        protocol_name: Option<&'a str> [5..] null [5..];
        /// What the member is to do, in its protocol's own form.
        assignment: &'a [u8] [0..];
    }
}
