//! AlterConfigs (key 33).
//!
//! Versions 0–2, flexible from 2. Replaces all settings of a resource; IncrementalAlterConfigs is the gentler one.

use crate::error_code::ErrorCode;
use crate::wire::{Array, message};

message! {
    /// Replaces all settings of topics or brokers.
    AlterConfigsRequest<'a>: versions [0..=2], flexible [2..] {
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
    /// One new setting.
    AlterableConfig<'a> {
        /// The setting's name.
        name: &'a str [0..];
        /// Its value, or null.
        value: Option<&'a str> [0..] null [0..] = Some("");
    }
}

message! {
    /// Which resources were changed.
    AlterConfigsResponse<'a>: versions [0..=2], flexible [2..] {
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
