//! DescribeGroups (key 15).
//!
//! Versions 0–6, flexible from 5. 3 has authorized operations (KIP-430); 4 static members (KIP-345); 6 answers
//! GROUP_ID_NOT_FOUND with a message for a group that is not there (KIP-1043).

use crate::error_code::ErrorCode;
use crate::wire::{Array, message};

message! {
    /// Asks for the state and the members of groups.
    DescribeGroupsRequest<'a>: versions [0..=6], flexible [5..] {
        /// The groups.
        groups: Array<'a, &'a str> [0..];
        /// Whether to say what the client may do to each group.
        include_authorized_operations: bool [3..];
    }
}

message! {
    /// The groups.
    DescribeGroupsResponse<'a>: versions [0..=6], flexible [5..] {
        /// How long a quota held the request back, in milliseconds; 0 for not at all.
        throttle_time_ms: i32 [1..];
        /// The groups.
        groups: Array<'a, DescribedGroup<'a>> [0..];
    }
}

message! {
    /// One group.
    DescribedGroup<'a> {
        /// What went wrong, if anything.
        error_code: ErrorCode [0..];
        /// What went wrong, in words, or null.
        error_message: Option<&'a str> [6..] null [6..];
        /// The group.
        group_id: &'a str [0..];
        /// The group's state, by Kafka's name.
        group_state: &'a str [0..];
        /// The kind of group: `consumer`, `connect` and so on.
        protocol_type: &'a str [0..];
        /// The assignor that was chosen, or empty.
        protocol_data: &'a str [0..];
        /// The members.
        members: Array<'a, DescribedGroupMember<'a>> [0..];
        /// Which operations the client may do, as a bit set; `i32::MIN` when it did not ask.
        authorized_operations: i32 [3..] = i32::MIN;
    }
}

message! {
    /// One member of a group.
    DescribedGroupMember<'a> {
        /// The member's id.
        member_id: &'a str [0..];
        /// A static member's own name, or null.
        group_instance_id: Option<&'a str> [4..] null [4..];
        /// What the member's client calls itself.
        client_id: &'a str [0..];
        /// Where the member connects from.
        client_host: &'a str [0..];
        /// What the member wants, in its protocol's own form.
        member_metadata: &'a [u8] [0..];
        /// What it was assigned, in its protocol's own form.
        member_assignment: &'a [u8] [0..];
    }
}
