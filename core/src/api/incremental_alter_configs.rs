//! IncrementalAlterConfigs (key 44).
//!
//! Versions 0–1, flexible from 1 (KIP-339).

use crate::error_code::ErrorCode;
use crate::wire::{Array, message};

message! {
    /// Changes single settings of topics or brokers.
    IncrementalAlterConfigsRequest<'a>: versions [0..=1], flexible [1..] {
        /// The topics and brokers.
        resources: Array<'a, AlterConfigsResource<'a>> [0..];
        /// Whether only to check, and change nothing.
        validate_only: bool [0..];
    }
}

message! {
    /// A topic or broker and its new settings.
    AlterConfigsResource<'a> {
        /// 2 topic, 4 broker, 8 broker logger.
        resource_type: i8 [0..];
        /// The topic's name or the broker's id.
        resource_name: &'a str [0..];
        /// The settings.
        configs: Array<'a, AlterableConfig<'a>> [0..];
    }
}

message! {
    /// One change.
    AlterableConfig<'a> {
        /// The setting's name.
        name: &'a str [0..];
        /// 0 set, 1 delete, 2 append to a list, 3 take from a list.
        config_operation: i8 [0..];
        /// Its value, or null.
        value: Option<&'a str> [0..] null [0..] = Some("");
    }
}

message! {
    /// Which resources were changed.
    IncrementalAlterConfigsResponse<'a>: versions [0..=1], flexible [1..] {
        /// How long a quota held the request back, in milliseconds; 0 for not at all.
        throttle_time_ms: i32 [0..];
        /// What became of each resource.
        responses: Array<'a, AlterConfigsResourceResponse<'a>> [0..];
    }
}

message! {
    /// Whether one resource was changed.
    AlterConfigsResourceResponse<'a> {
        /// What went wrong, if anything.
        error_code: ErrorCode [0..];
        /// What went wrong, in words, or null.
        error_message: Option<&'a str> [0..] null [0..] = Some("");
        /// 2 topic, 4 broker, 8 broker logger.
        resource_type: i8 [0..];
        /// The topic's name or the broker's id.
        resource_name: &'a str [0..];
    }
}
