//! LeaveGroup (key 13).
//!
//! Versions 0–5, flexible from 4. 3 removes several members at once (KIP-345); 5 gives reasons (KIP-800).

use crate::error_code::ErrorCode;
use crate::wire::{Array, message};

message! {
    /// Takes members out of a group.
    LeaveGroupRequest<'a>: versions [0..=5], flexible [4..] {
        /// The group.
        group_id: &'a str [0..];
        /// The member's id (versions up to 2).
        member_id: &'a str [0..=2];
        /// The members.
        members: Array<'a, MemberIdentity<'a>> [3..];
    }
}

message! {
    /// A member to take out.
    MemberIdentity<'a> {
        /// The member's id (versions up to 2).
        member_id: &'a str [3..];
        /// A static member's own name, or null.
        group_instance_id: Option<&'a str> [3..] null [3..];
        /// Why, in words, or null.
        reason: Option<&'a str> [5..] null [5..];
    }
}

message! {
    /// Which members were taken out.
    LeaveGroupResponse<'a>: versions [0..=5], flexible [4..] {
        /// How long a quota held the request back, in milliseconds; 0 for not at all.
        throttle_time_ms: i32 [1..];
        /// What went wrong, if anything.
        error_code: ErrorCode [0..];
        /// The members.
        members: Array<'a, MemberResponse<'a>> [3..];
    }
}

message! {
    /// Whether one member was taken out.
    MemberResponse<'a> {
        /// The member's id.
        member_id: &'a str [3..];
        /// A static member's own name, or null.
        group_instance_id: Option<&'a str> [3..] null [3..] = Some("");
        /// What went wrong, if anything.
        error_code: ErrorCode [3..];
    }
}
