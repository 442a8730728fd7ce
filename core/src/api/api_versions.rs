//! ApiVersions (key 18).
//!
//! Versions 0–4, flexible from 3. 3 names the client's software and the broker's features (KIP-511, KIP-584); 4 lets a
//! feature start at level 0. The reply's header has no tagged fields in any version, and a version that the broker does not know
//! is answered in version 0 with UNSUPPORTED_VERSION.
//!
//! Left out: version 5 (cluster and node check, KIP-1242).

use crate::error_code::ErrorCode;
use crate::wire::{Array, message};

message! {
    /// Asks what the broker speaks: the first request on most connections.
    ApiVersionsRequest<'a>: versions [0..=4], flexible [3..] {
        /// The client's name.
        client_software_name: &'a str [3..];
        /// The client's version.
        client_software_version: &'a str [3..];
    }
}

message! {
    /// What the broker speaks.
    ApiVersionsResponse<'a>: versions [0..=4], flexible [3..] {
        /// What went wrong, if anything.
        error_code: ErrorCode [0..];
        /// The APIs.
        api_keys: Array<'a, ApiVersion> [0..];
        /// How long a quota held the request back, in milliseconds; 0 for not at all.
        throttle_time_ms: i32 [1..];
        /// Features that the broker can have.
        supported_features: Array<'a, SupportedFeatureKey<'a>> [3..] tag 0;
        /// How often the finalized features have changed, or −1 when not known.
        finalized_features_epoch: i64 [3..] tag 1 = -1;
        /// Features that the cluster has agreed on; valid when the epoch is.
        finalized_features: Array<'a, FinalizedFeatureKey<'a>> [3..] tag 2;
        /// Whether a controller is ready to take over from ZooKeeper.
        zk_migration_ready: bool [3..] tag 3;
    }
}

message! {
    /// One API and its versions.
    ApiVersion {
        /// The API's key.
        api_key: i16 [0..];
        /// The lowest version.
        min_version: i16 [0..];
        /// The highest version.
        max_version: i16 [0..];
    }
}

message! {
    /// A feature that the broker can have.
    SupportedFeatureKey<'a> {
        /// The feature's name.
        name: &'a str [3..];
        /// The lowest version.
        min_version: i16 [3..];
        /// The highest version.
        max_version: i16 [3..];
    }
}

message! {
    /// A feature that the cluster has agreed on.
    FinalizedFeatureKey<'a> {
        /// The feature's name.
        name: &'a str [3..];
        /// The highest level.
        max_version_level: i16 [3..];
        /// The lowest level.
        min_version_level: i16 [3..];
    }
}
