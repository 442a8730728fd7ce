//! Which APIs are declared, in which versions, and every request and reply as one type.
//!
//! Declared is what can be decoded and encoded; what a broker *lists* in its ApiVersions reply is the broker's own matter.

use crate::wire::{DecodeError, Field, Full, Message, Reader, Sink, Table, Version, Versions};

pub mod consumer_protocol;

/// One line per API: key, name, module, request, reply. Keys, [`Request`], [`Response`] and [`Call`] follow from it.
macro_rules! apis {
    ($($key:literal $name:ident $module:ident $request:ident $(<$a:lifetime>)? $response:ident $(<$b:lifetime>)?;)*) => {
        $(pub mod $module;)*
        $(#[doc(no_inline)] pub use $module::{$request, $response};)*

        /// The APIs that are declared, by Kafka's keys.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "defmt", derive(defmt::Format))]
        #[repr(i16)]
        pub enum ApiKey {
            $(#[doc = concat!("[`", stringify!($request), "`], key ", stringify!($key), ".")] $name = $key,)*
        }

        /// Every API that is declared, by rising key.
        pub const APIS: &[Api] = &[$(
            Api {
                key: ApiKey::$name,
                name: stringify!($name),
                versions: <$request as Message>::VERSIONS,
                flexible: <$request as Message>::FLEXIBLE,
            },
        )*];

        impl ApiKey {
            /// The API with this key, if it is declared.
            #[must_use]
            pub const fn from_wire(key: i16) -> Option<Self> {
                match key {
                    $($key => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// Its name, versions and forms.
            #[must_use]
            pub const fn api(self) -> Api {
                match self {
                    $(Self::$name => Api {
                        key: Self::$name,
                        name: stringify!($name),
                        versions: <$request as Message>::VERSIONS,
                        flexible: <$request as Message>::FLEXIBLE,
                    },)*
                }
            }
        }

        impl ApiKey {
            /// The tables of its request and its reply, for tools that explain bytes.
            #[must_use]
            pub const fn tables(self) -> (&'static [Field], &'static [Field]) {
                match self {
                    $(Self::$name => (<$request as Table>::FIELDS, <$response as Table>::FIELDS),)*
                }
            }
        }

        // A reply has the versions of its request.
        $(const _: () = {
            let (request, response) = (<$request as Message>::VERSIONS, <$response as Message>::VERSIONS);
            assert!(request.min == response.min && request.max == response.max);
            let (request, response) = (<$request as Message>::FLEXIBLE, <$response as Message>::FLEXIBLE);
            assert!(request.min == response.min && request.max == response.max);
        };)*

        /// A request of any declared API.
        #[derive(Clone, Copy, Debug)]
        #[cfg_attr(feature = "defmt", derive(defmt::Format))]
        #[allow(clippy::large_enum_variant)]
        pub enum Request<'a> {
            $(#[doc = concat!("[`", stringify!($module), "`].")] $name($request $(<$a>)?),)*
        }

        impl<'a> Request<'a> {
            /// Reads the body of a request.
            ///
            /// Errors: [`DecodeError::ApiKey`] and [`DecodeError::Version`] for what is not declared; else what the bytes broke.
            pub fn decode(key: i16, version: Version, r: &mut Reader<'a>) -> Result<Self, DecodeError> {
                match ApiKey::from_wire(key).ok_or(DecodeError::ApiKey)? {
                    $(ApiKey::$name => Message::decode(r, version).map(Self::$name),)*
                }
            }

            /// Writes the body of a request. When full: [`Full`], and what was written is good for nothing.
            pub fn encode<S: Sink>(&self, out: &mut S, version: Version) -> Result<(), Full> {
                match self {
                    $(Self::$name(request) => request.encode(out, version),)*
                }
            }

            /// Whose request this is.
            #[must_use]
            pub const fn key(&self) -> ApiKey {
                match self {
                    $(Self::$name(_) => ApiKey::$name,)*
                }
            }
        }

        /// A reply of any declared API.
        #[derive(Clone, Copy, Debug)]
        #[cfg_attr(feature = "defmt", derive(defmt::Format))]
        #[allow(clippy::large_enum_variant)]
        pub enum Response<'a> {
            $(#[doc = concat!("[`", stringify!($module), "`].")] $name($response $(<$b>)?),)*
        }

        impl<'a> Response<'a> {
            /// Reads the body of a reply. Errors: as [`Request::decode`].
            pub fn decode(key: ApiKey, version: Version, r: &mut Reader<'a>) -> Result<Self, DecodeError> {
                match key {
                    $(ApiKey::$name => Message::decode(r, version).map(Self::$name),)*
                }
            }

            /// Writes the body of a reply. When full: [`Full`], and what was written is good for nothing.
            pub fn encode<S: Sink>(&self, out: &mut S, version: Version) -> Result<(), Full> {
                match self {
                    $(Self::$name(response) => response.encode(out, version),)*
                }
            }

            /// Whose reply this is.
            #[must_use]
            pub const fn key(&self) -> ApiKey {
                match self {
                    $(Self::$name(_) => ApiKey::$name,)*
                }
            }
        }

        $(impl<'a> Call<'a> for $request $(<$a>)? {
            const KEY: ApiKey = ApiKey::$name;
            type Response<'r> = apis!(@with_lifetime $response $(<$b> 'r)?);
        })*
    };
    (@with_lifetime $response:ident) => { $response };
    (@with_lifetime $response:ident <$b:lifetime> $r:lifetime) => { $response<$r> };
}

/// What is declared of one API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Api {
    /// Its key.
    pub key: ApiKey,
    /// Kafka's name for it.
    pub name: &'static str,
    /// Versions that can be decoded and encoded, in both directions.
    pub versions: Versions,
    /// Versions with compact lengths and tagged fields, headers included.
    pub flexible: Versions,
}

impl ApiKey {
    /// Kafka's name for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.api().name
    }

    /// Versions that can be decoded and encoded.
    #[must_use]
    pub const fn versions(self) -> Versions {
        self.api().versions
    }

    /// Whether `version` has compact lengths and tagged fields.
    #[must_use]
    pub const fn is_flexible(self, version: Version) -> bool {
        self.api().flexible.contains(version)
    }
}

/// A request type, tied to its key and to the reply that answers it: what a client needs to make a typed call.
pub trait Call<'a>: Message<'a> {
    /// The API.
    const KEY: ApiKey;
    /// Its reply.
    type Response<'r>: Message<'r>;
}

apis! {
    0 Produce produce ProduceRequest<'a> ProduceResponse<'a>;
    1 Fetch fetch FetchRequest<'a> FetchResponse<'a>;
    2 ListOffsets list_offsets ListOffsetsRequest<'a> ListOffsetsResponse<'a>;
    3 Metadata metadata MetadataRequest<'a> MetadataResponse<'a>;
    8 OffsetCommit offset_commit OffsetCommitRequest<'a> OffsetCommitResponse<'a>;
    9 OffsetFetch offset_fetch OffsetFetchRequest<'a> OffsetFetchResponse<'a>;
    10 FindCoordinator find_coordinator FindCoordinatorRequest<'a> FindCoordinatorResponse<'a>;
    11 JoinGroup join_group JoinGroupRequest<'a> JoinGroupResponse<'a>;
    12 Heartbeat heartbeat HeartbeatRequest<'a> HeartbeatResponse;
    13 LeaveGroup leave_group LeaveGroupRequest<'a> LeaveGroupResponse<'a>;
    14 SyncGroup sync_group SyncGroupRequest<'a> SyncGroupResponse<'a>;
    15 DescribeGroups describe_groups DescribeGroupsRequest<'a> DescribeGroupsResponse<'a>;
    16 ListGroups list_groups ListGroupsRequest<'a> ListGroupsResponse<'a>;
    18 ApiVersions api_versions ApiVersionsRequest<'a> ApiVersionsResponse<'a>;
    19 CreateTopics create_topics CreateTopicsRequest<'a> CreateTopicsResponse<'a>;
    20 DeleteTopics delete_topics DeleteTopicsRequest<'a> DeleteTopicsResponse<'a>;
    21 DeleteRecords delete_records DeleteRecordsRequest<'a> DeleteRecordsResponse<'a>;
    22 InitProducerId init_producer_id InitProducerIdRequest<'a> InitProducerIdResponse;
    23 OffsetForLeaderEpoch offset_for_leader_epoch OffsetForLeaderEpochRequest<'a> OffsetForLeaderEpochResponse<'a>;
    32 DescribeConfigs describe_configs DescribeConfigsRequest<'a> DescribeConfigsResponse<'a>;
    33 AlterConfigs alter_configs AlterConfigsRequest<'a> AlterConfigsResponse<'a>;
    35 DescribeLogDirs describe_log_dirs DescribeLogDirsRequest<'a> DescribeLogDirsResponse<'a>;
    37 CreatePartitions create_partitions CreatePartitionsRequest<'a> CreatePartitionsResponse<'a>;
    42 DeleteGroups delete_groups DeleteGroupsRequest<'a> DeleteGroupsResponse<'a>;
    44 IncrementalAlterConfigs incremental_alter_configs IncrementalAlterConfigsRequest<'a> IncrementalAlterConfigsResponse<'a>;
    46 ListPartitionReassignments list_partition_reassignments ListPartitionReassignmentsRequest<'a> ListPartitionReassignmentsResponse<'a>;
    47 OffsetDelete offset_delete OffsetDeleteRequest<'a> OffsetDeleteResponse<'a>;
    60 DescribeCluster describe_cluster DescribeClusterRequest DescribeClusterResponse<'a>;
    61 DescribeProducers describe_producers DescribeProducersRequest<'a> DescribeProducersResponse<'a>;
    75 DescribeTopicPartitions describe_topic_partitions DescribeTopicPartitionsRequest<'a> DescribeTopicPartitionsResponse<'a>;
}
