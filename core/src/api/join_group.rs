//! JoinGroup (key 11).
//!
//! Versions 0–9, flexible from 6. 1 has a rebalance timeout of its own; 4 answers a first join with MEMBER_ID_REQUIRED
//! (KIP-394); 5 has static members (KIP-345); 7 returns the protocol's type (KIP-559); 8 gives a reason (KIP-800); 9 lets a
//! returning leader skip the assignment (KIP-814).

use crate::error_code::ErrorCode;
use crate::wire::{Array, message};

message! {
    /// Enters a group, or enters it again for a new generation.
    JoinGroupRequest<'a>: versions [0..=9], flexible [6..] {
        /// The group.
        group_id: &'a str [0..];
        /// How long the member may be silent, in milliseconds.
        session_timeout_ms: i32 [0..];
        /// How long it may take to join again, in milliseconds; the session timeout when −1.
        rebalance_timeout_ms: i32 [1..] = -1;
        /// The member's id; empty at first.
        member_id: &'a str [0..];
        /// A static member's own name, or null.
        group_instance_id: Option<&'a str> [5..] null [5..];
        /// The kind of group: `consumer`, `connect` and so on.
        protocol_type: &'a str [0..];
        /// The assignors that the member supports, best first.
        protocols: Array<'a, JoinGroupRequestProtocol<'a>> [0..];
        /// Why, in words, or null.
        reason: Option<&'a str> [8..] null [8..];
    }
}

message! {
    /// An assignor that the member supports.
    JoinGroupRequestProtocol<'a> {
        /// The assignor's name.
        name: &'a str [0..];
        /// What the member wants, in its protocol's own form.
        metadata: &'a [u8] [0..];
    }
}

message! {
    /// The new generation; its leader also gets the members.
    JoinGroupResponse<'a>: versions [0..=9], flexible [6..] {
        /// How long a quota held the request back, in milliseconds; 0 for not at all.
        throttle_time_ms: i32 [2..];
        /// What went wrong, if anything.
        error_code: ErrorCode [0..];
        /// The new generation, or −1 with an error.
        generation_id: i32 [0..] = -1;
        /// The kind of group, or null.
        protocol_type: Option<&'a str> [7..] null [7..];
        /// The assignor that was chosen.
        protocol_name: Option<&'a str> [0..] null [7..] = Some("");
        /// The leader's member id.
        leader: &'a str [0..];
        /// Whether the leader is to leave the assignment as it is.
        skip_assignment: bool [9..];
        /// The member's id.
        member_id: &'a str [0..];
        /// All members, for the leader; empty for the others.
        members: Array<'a, JoinGroupResponseMember<'a>> [0..];
    }
}

message! {
    /// A member of the new generation.
    JoinGroupResponseMember<'a> {
        /// The member's id.
        member_id: &'a str [0..];
        /// A static member's own name, or null.
        group_instance_id: Option<&'a str> [5..] null [5..];
        /// What the member wants, in its protocol's own form.
        metadata: &'a [u8] [0..];
    }
}
