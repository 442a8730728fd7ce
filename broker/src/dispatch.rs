//! Which API goes to which handler, and which versions of each are spoken here.

use core::fmt;

use skerry_core::api::api_versions::ApiVersion;
use skerry_core::api::{ApiKey, Request};
use skerry_core::error_code::ErrorCode;
use skerry_core::header::RequestHeader;
use skerry_core::wire::{DecodeError, Reader};
use skerry_net::host::Host;

use crate::handler::{self, Context, Out, Outcome};

/// What is told to clients, and no more than is fully handled. Produce is listed from 0 although 0–2 end in a close: librdkafka
/// takes a broker without Produce 0 for one without its modern features.
pub const ADVERTISED: [ApiVersion; 29] = [
    spoken(ApiKey::Produce, 0, 13),
    spoken(ApiKey::Fetch, 4, 17),
    spoken(ApiKey::ListOffsets, 1, 10),
    spoken(ApiKey::Metadata, 0, 13),
    spoken(ApiKey::OffsetCommit, 2, 9),
    spoken(ApiKey::OffsetFetch, 1, 9),
    spoken(ApiKey::FindCoordinator, 0, 6),
    spoken(ApiKey::JoinGroup, 0, 9),
    spoken(ApiKey::Heartbeat, 0, 4),
    spoken(ApiKey::LeaveGroup, 0, 5),
    spoken(ApiKey::SyncGroup, 0, 5),
    spoken(ApiKey::DescribeGroups, 0, 6),
    spoken(ApiKey::ListGroups, 0, 5),
    spoken(ApiKey::ApiVersions, 0, 4),
    spoken(ApiKey::CreateTopics, 2, 7),
    spoken(ApiKey::DeleteTopics, 1, 6),
    spoken(ApiKey::DeleteRecords, 0, 2),
    spoken(ApiKey::InitProducerId, 0, 5),
    spoken(ApiKey::OffsetForLeaderEpoch, 2, 4),
    spoken(ApiKey::DescribeConfigs, 1, 4),
    spoken(ApiKey::AlterConfigs, 0, 2),
    spoken(ApiKey::DescribeLogDirs, 1, 4),
    spoken(ApiKey::CreatePartitions, 0, 3),
    spoken(ApiKey::DeleteGroups, 0, 2),
    spoken(ApiKey::IncrementalAlterConfigs, 0, 1),
    spoken(ApiKey::ListPartitionReassignments, 0, 0),
    spoken(ApiKey::OffsetDelete, 0, 0),
    spoken(ApiKey::DescribeCluster, 0, 2),
    spoken(ApiKey::DescribeTopicPartitions, 0, 0),
];

/// The oldest Produce that can be answered: record format v2.
const PRODUCE_MIN: i16 = 3;

const fn spoken(api: ApiKey, min_version: i16, max_version: i16) -> ApiVersion {
    ApiVersion {
        api_key: api as i16,
        min_version,
        max_version,
    }
}

/// What a reply must know of its request after the request itself is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Which API.
    pub api: ApiKey,
    /// Which of its versions.
    pub version: i16,
    /// Comes back with the reply.
    pub correlation_id: i32,
}

impl Asked {
    /// As a header, to encode the reply under.
    #[must_use]
    pub const fn header(&self) -> RequestHeader<'static> {
        RequestHeader::new(self.api, self.version, self.correlation_id, None)
    }
}

/// Why a frame is no request that can be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bad {
    /// Nothing of this key is spoken here.
    Key(i16),
    /// Another version of it is.
    Version(Asked),
    /// The header cannot be read.
    Header(DecodeError),
    /// The body cannot be read.
    Body(Asked, DecodeError),
}

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(key) => write!(f, "API key {key} is not spoken here"),
            Self::Version(asked) => write!(f, "{:?} version {} is not spoken here", asked.api, asked.version),
            Self::Header(e) => write!(f, "request header: {e}"),
            Self::Body(asked, e) => write!(f, "{:?} version {}: {e}", asked.api, asked.version),
        }
    }
}

/// Reads a frame (without its length prefix): which request it is, in a version that is spoken here.
pub fn decode(frame: &[u8]) -> Result<(Asked, RequestHeader<'_>, Request<'_>), Bad> {
    let mut reader = Reader::new(frame);
    let header = RequestHeader::decode(&mut reader).map_err(Bad::Header)?;
    let api = header.api().ok_or(Bad::Key(header.key))?;
    let asked = Asked {
        api,
        version: header.version,
        correlation_id: header.correlation_id,
    };
    let spoken = ADVERTISED
        .iter()
        .find(|a| a.api_key == header.key)
        .ok_or(Bad::Key(header.key))?;
    let min = if api == ApiKey::Produce {
        PRODUCE_MIN
    } else {
        spoken.min_version
    };
    if !(min..=spoken.max_version).contains(&header.version) {
        return Err(Bad::Version(asked));
    }
    let request = Request::decode(header.key, header.version, &mut reader).map_err(|e| Bad::Body(asked, e))?;
    Ok((asked, header, request))
}

/// Hands the request to its handler.
pub fn handle<H: Host>(
    cx: &mut Context<'_, H>,
    header: &RequestHeader<'_>,
    request: &Request<'_>,
    out: &mut Out<'_>,
) -> Outcome {
    match request {
        Request::Produce(r) => handler::produce::handle(cx, header, r, out),
        Request::Fetch(r) => handler::fetch::handle(cx, header, r, out),
        Request::ListOffsets(r) => handler::list_offsets::handle(cx, header, r, out),
        Request::OffsetForLeaderEpoch(r) => handler::offset_for_leader_epoch::handle(cx, header, r, out),
        Request::ApiVersions(r) => handler::api_versions::handle(header, r, out),
        Request::FindCoordinator(r) => handler::find_coordinator::handle(cx, header, r, out),
        Request::JoinGroup(r) => handler::join_group::handle(cx, header, r, out),
        Request::SyncGroup(r) => handler::sync_group::handle(cx, header, r, out),
        Request::Heartbeat(r) => handler::heartbeat::handle(cx, header, r, out),
        Request::LeaveGroup(r) => handler::leave_group::handle(cx, header, r, out),
        Request::OffsetCommit(r) => handler::offset_commit::handle(cx, header, r, out),
        Request::OffsetFetch(r) => handler::offset_fetch::handle(cx, header, r, out),
        Request::DescribeGroups(r) => handler::describe_groups::handle(cx, header, r, out),
        Request::ListGroups(r) => handler::list_groups::handle(cx, header, r, out),
        Request::DeleteGroups(r) => handler::delete_groups::handle(cx, header, r, out),
        Request::OffsetDelete(r) => handler::offset_delete::handle(cx, header, r, out),
        Request::Metadata(r) => handler::metadata::handle(cx, header, r, out),
        Request::CreateTopics(r) => handler::create_topics::handle(cx, header, r, out),
        Request::DeleteTopics(r) => handler::delete_topics::handle(cx, header, r, out),
        Request::CreatePartitions(r) => handler::create_partitions::handle(cx, header, r, out),
        Request::DeleteRecords(r) => handler::delete_records::handle(cx, header, r, out),
        Request::InitProducerId(r) => handler::init_producer_id::handle(cx, header, r, out),
        Request::DescribeConfigs(r) => handler::describe_configs::handle(cx, header, r, out),
        Request::AlterConfigs(r) => handler::alter_configs::handle(cx, header, r, out),
        Request::IncrementalAlterConfigs(r) => handler::incremental_alter_configs::handle(cx, header, r, out),
        Request::DescribeCluster(r) => handler::describe_cluster::handle(cx, header, r, out),
        Request::DescribeLogDirs(r) => handler::describe_log_dirs::handle(cx, header, r, out),
        Request::DescribeTopicPartitions(r) => handler::describe_topic_partitions::handle(cx, header, r, out),
        Request::ListPartitionReassignments(_) => handler::list_partition_reassignments::handle(header, out),
        _ => Outcome::Close("not spoken here"),
    }
}

/// Writes an error into a held reply: what it waited for did not become durable. `ordinal` says which of its partitions. False when
/// the reply is longer than `scratch`, which its rewriting takes: it must not leave.
#[must_use]
pub fn fail_held(reply: &mut [u8], scratch: &mut [u8], asked: &Asked, ordinal: u32, error: ErrorCode) -> bool {
    match asked.api {
        ApiKey::Produce => handler::produce::fail_partition(reply, scratch, asked.version, ordinal, error),
        ApiKey::OffsetCommit => handler::offset_commit::fail(reply, scratch, asked.version),
        _ => true,
    }
}

/// Makes the reply to a request that the coordinator had taken, once the coordinator has an answer.
pub fn finish_group<H: Host>(cx: &mut Context<'_, H>, asked: &Asked, out: &mut Out<'_>) -> Outcome {
    match asked.api {
        ApiKey::JoinGroup => handler::join_group::finish(cx, asked, out),
        ApiKey::SyncGroup => handler::sync_group::finish(cx, asked, out),
        _ => Outcome::Close("the coordinator has no part in it"),
    }
}
