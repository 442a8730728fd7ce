//! OffsetFetch in both of its shapes: one group until version 7, several from 8 on.

use std::collections::BTreeMap;

use skerry_core::api::ApiKey;
use skerry_core::api::offset_fetch::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics, OffsetFetchResponse,
};
use skerry_core::error_code::ErrorCode;
use skerry_core::time::Millis;
use skerry_core::wire::Array;

use super::Cx;
use crate::sim::peer::Peer;
use crate::wire;

/// Asks for a group's offsets of one topic's partitions.
pub fn ask_offsets<T>(
    peer: &mut Peer<T>,
    cx: &mut Cx<'_>,
    version: i16,
    group: &str,
    topic: &str,
    partitions: &[i32],
    note: T,
) {
    let until_7 = OffsetFetchRequestTopic {
        name: topic,
        partition_indexes: Array::Slice(partitions),
    };
    let from_8 = OffsetFetchRequestTopics {
        name: topic,
        partition_indexes: Array::Slice(partitions),
    };
    let one = OffsetFetchRequestGroup {
        group_id: group,
        topics: Array::one(&from_8),
        ..Default::default()
    };
    let call = OffsetFetchRequest {
        group_id: group,
        topics: Array::one(&until_7),
        groups: Array::one(&one),
        ..Default::default()
    };
    peer.ask(cx, version, &call, Millis(0), note);
}

/// The offsets by partition, −1 where there is none.
pub fn take_offsets(version: i16, frame: &[u8], group: &str, topic: &str) -> Result<BTreeMap<i32, i64>, ErrorCode> {
    let reply: OffsetFetchResponse<'_> = wire::reply(ApiKey::OffsetFetch, version, frame);
    let mut offsets = BTreeMap::new();
    if version >= 8 {
        let one = reply.groups.iter().next().expect("an answer for the group");
        assert_eq!(one.group_id, group);
        one.error_code.ok()?;
        for partition in one
            .topics
            .iter()
            .filter(|t| t.name == topic)
            .flat_map(|t| t.partitions.iter())
        {
            partition.error_code.ok()?;
            offsets.insert(partition.partition_index, partition.committed_offset);
        }
    } else {
        reply.error_code.ok()?;
        for partition in reply
            .topics
            .iter()
            .filter(|t| t.name == topic)
            .flat_map(|t| t.partitions.iter())
        {
            partition.error_code.ok()?;
            offsets.insert(partition.partition_index, partition.committed_offset);
        }
    }
    Ok(offsets)
}
