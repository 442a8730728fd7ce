//! DescribeConfigs (key 32).
//!
//! Versions 1–4, flexible from 4. 1 has synonyms and sources (KIP-226); 3 types and documentation (KIP-569).

use crate::error_code::ErrorCode;
use crate::wire::{Array, message};

message! {
    /// Asks for the settings of topics or brokers.
    DescribeConfigsRequest<'a>: versions [1..=4], flexible [4..] {
        /// The topics and brokers.
        resources: Array<'a, DescribeConfigsResource<'a>> [0..];
        /// Whether to say where else each setting could come from.
        include_synonyms: bool [1..];
        /// Whether to send each setting's documentation.
        include_documentation: bool [3..];
    }
}

message! {
    /// A topic or broker that is asked about.
    DescribeConfigsResource<'a> {
        /// 2 topic, 4 broker, 8 broker logger.
        resource_type: i8 [0..];
        /// The topic's name or the broker's id.
        resource_name: &'a str [0..];
        /// The settings asked for; null for all.
        configuration_keys: Array<'a, &'a str> [0..] null [0..];
    }
}

message! {
    /// The settings, with where each value comes from.
    DescribeConfigsResponse<'a>: versions [1..=4], flexible [4..] {
        /// How long a quota held the request back, in milliseconds; 0 for not at all.
        throttle_time_ms: i32 [0..];
        /// What became of each.
        results: Array<'a, DescribeConfigsResult<'a>> [0..];
    }
}

message! {
    /// One resource's settings.
    DescribeConfigsResult<'a> {
        /// What went wrong, if anything.
        error_code: ErrorCode [0..];
        /// What went wrong, in words, or null.
        error_message: Option<&'a str> [0..] null [0..] = Some("");
        /// 2 topic, 4 broker, 8 broker logger.
        resource_type: i8 [0..];
        /// The topic's name or the broker's id.
        resource_name: &'a str [0..];
        /// The settings.
        configs: Array<'a, DescribeConfigsResourceResult<'a>> [0..];
    }
}

message! {
    /// One setting.
    DescribeConfigsResourceResult<'a> {
        /// The setting's name.
        name: &'a str [0..];
        /// Its value, or null when there is none or it is secret.
        value: Option<&'a str> [0..] null [0..] = Some("");
        /// Whether it cannot be changed.
        read_only: bool [0..];
        /// Where the value comes from: 1 topic, 2 broker, 3 all brokers, 4 file, 5 default; −1 not known.
        config_source: i8 [1..] = -1;
        /// Whether the value is secret.
        is_sensitive: bool [0..];
        /// Where else it could come from, first come first served.
        synonyms: Array<'a, DescribeConfigsSynonym<'a>> [1..];
        /// 1 boolean, 2 string, 3 int, 4 short, 5 long, 6 double, 7 list, 8 class, 9 password; 0 not known.
        config_type: i8 [3..];
        /// What it does, or null.
        documentation: Option<&'a str> [3..] null [0..] = Some("");
    }
}

message! {
    /// A place that could set the same, in the order in which they count.
    DescribeConfigsSynonym<'a> {
        /// The setting's name there.
        name: &'a str [1..];
        /// Its value there, or null.
        value: Option<&'a str> [1..] null [0..] = Some("");
        /// Which place: as `config_source`.
        source: i8 [1..];
    }
}
