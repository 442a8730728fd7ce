//! DeleteGroups (key 42).
//!
//! Versions 0–2, flexible from 2.
//!
//! Left out: version 3 (error messages).

use crate::error_code::ErrorCode;
use crate::wire::{Array, message};

message! {
    /// Deletes groups that have no members, with their offsets.
    DeleteGroupsRequest<'a>: versions [0..=2], flexible [2..] {
        /// The groups.
        groups_names: Array<'a, &'a str> [0..];
    }
}

message! {
    /// Which groups were deleted.
    DeleteGroupsResponse<'a>: versions [0..=2], flexible [2..] {
        /// How long a quota held the request back, in milliseconds; 0 for not at all.
        throttle_time_ms: i32 [0..];
        /// What became of each.
        results: Array<'a, DeletableGroupResult<'a>> [0..];
    }
}

message! {
    /// Whether one group was deleted.
    DeletableGroupResult<'a> {
        /// The group.
        group_id: &'a str [0..];
        /// What went wrong, if anything.
        error_code: ErrorCode [0..];
    }
}
