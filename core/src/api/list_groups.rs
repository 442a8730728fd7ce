//! ListGroups (key 16).
//!
//! Versions 0–5, flexible from 3. 4 filters by state (KIP-518); 5 by type (KIP-848).

use crate::error_code::ErrorCode;
use crate::wire::{Array, message};

message! {
    /// Asks for the broker's groups.
    ListGroupsRequest<'a>: versions [0..=5], flexible [3..] {
        /// States that are asked for; all when empty.
        states_filter: Array<'a, &'a str> [4..];
        /// Types that are asked for; all when empty.
        types_filter: Array<'a, &'a str> [5..];
    }
}

message! {
    /// The groups.
    ListGroupsResponse<'a>: versions [0..=5], flexible [3..] {
        /// How long a quota held the request back, in milliseconds; 0 for not at all.
        throttle_time_ms: i32 [1..];
        /// What went wrong, if anything.
        error_code: ErrorCode [0..];
        /// The groups.
        groups: Array<'a, ListedGroup<'a>> [0..];
    }
}

message! {
    /// One group.
    ListedGroup<'a> {
        /// The group.
        group_id: &'a str [0..];
        /// The kind of group: `consumer`, `connect` and so on.
        protocol_type: &'a str [0..];
        /// The group's state, by Kafka's name.
        group_state: &'a str [4..];
        /// The group's type: `classic`, `consumer` and so on.
        group_type: &'a str [5..];
    }
}
