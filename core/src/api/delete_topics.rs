//! DeleteTopics (key 20).
//!
//! Versions 1–6, flexible from 4. 5 has error messages; 6 deletes by id too (KIP-516).

use crate::error_code::ErrorCode;
use crate::wire::{Array, Uuid, message};

message! {
    /// Deletes topics.
    DeleteTopicsRequest<'a>: versions [1..=6], flexible [4..] {
        /// The topics, by name or by id.
        topics: Array<'a, DeleteTopicState<'a>> [6..];
        /// The topics (versions up to 5).
        topic_names: Array<'a, &'a str> [0..=5];
        /// How long the client waits for the work to be done, in milliseconds.
        timeout_ms: i32 [0..];
    }
}

message! {
    /// A topic to delete, by name or by id.
    DeleteTopicState<'a> {
        /// The topic's name, or null when it is named by id.
        name: Option<&'a str> [6..] null [6..];
        /// The topic's id, or zero when it is named by name.
        topic_id: Uuid [6..];
    }
}

message! {
    /// Which topics were deleted.
    DeleteTopicsResponse<'a>: versions [1..=6], flexible [4..] {
        /// How long a quota held the request back, in milliseconds; 0 for not at all.
        throttle_time_ms: i32 [1..];
        /// The topics.
        responses: Array<'a, DeletableTopicResult<'a>> [0..];
    }
}

message! {
    /// Whether one topic was deleted.
    DeletableTopicResult<'a> {
        /// The topic's name, or null when an id is unknown.
        name: Option<&'a str> [0..] null [6..] = Some("");
        /// The topic's id.
        topic_id: Uuid [6..];
        /// What went wrong, if anything.
        error_code: ErrorCode [0..];
        /// What went wrong, in words, or null.
        error_message: Option<&'a str> [5..] null [5..];
    }
}
