//! Where partitions begin and end, and which offset belongs to a time.

use std::collections::BTreeMap;

use skerry_core::api::ListOffsetsRequest;
use skerry_core::api::list_offsets::{ListOffsetsPartition, ListOffsetsTopic};
use skerry_core::error_code::ErrorCode;
use skerry_core::wire::Array;

use super::Failure;
use super::args::Position;
use super::client::{Client, Node, Topic, Try, refused, words};

/// Kafka's mark for the first offset.
const EARLIEST: i64 = -2;
/// Kafka's mark for the offset after the last.
const LATEST: i64 = -1;

/// The offset of `position` in each of `partitions` of `topic`.
///
/// `committed` looks no further than transactions that have ended. A time after the last record is the end.
pub fn find(
    client: &mut Client,
    topic: &Topic,
    partitions: &[i32],
    position: Position,
    committed: bool,
) -> Result<BTreeMap<i32, i64>, Failure> {
    let timestamp = match position {
        Position::At(offset) => return Ok(partitions.iter().map(|p| (*p, offset)).collect()),
        Position::Earliest => EARLIEST,
        Position::Latest => LATEST,
        Position::Since(timestamp) => timestamp,
        Position::Last(count) => {
            let ends = find(client, topic, partitions, Position::Latest, committed)?;
            let mut begins = find(client, topic, partitions, Position::Earliest, committed)?;
            for (partition, begin) in &mut begins {
                let end = ends.get(partition).copied().unwrap_or(*begin);
                *begin = end.saturating_sub(count).max(*begin);
            }
            return Ok(begins);
        }
    };
    let mut found = list(client, topic, partitions, timestamp, committed)?;
    if matches!(position, Position::Since(_)) && found.values().any(|offset| *offset < 0) {
        let ends = list(client, topic, partitions, LATEST, committed)?;
        for (partition, offset) in &mut found {
            if *offset < 0 {
                *offset = ends.get(partition).copied().unwrap_or(0);
            }
        }
    }
    Ok(found)
}

/// Asks the leader of each partition; −1 where no record has that time or a later one.
fn list(
    client: &mut Client,
    topic: &Topic,
    partitions: &[i32],
    timestamp: i64,
    committed: bool,
) -> Result<BTreeMap<i32, i64>, Failure> {
    let mut found = BTreeMap::new();
    let mut current = topic.clone();
    client.persist(|client| {
        let mut later = None;
        let missing: Vec<i32> = partitions.iter().copied().filter(|p| !found.contains_key(p)).collect();
        for (leader, partitions) in by_leader(&current, &missing) {
            let asked: Vec<ListOffsetsPartition> = partitions
                .iter()
                .map(|partition| ListOffsetsPartition {
                    partition_index: *partition,
                    current_leader_epoch: -1,
                    timestamp,
                })
                .collect();
            let topics = [ListOffsetsTopic {
                name: &topic.name,
                partitions: Array::Slice(&asked),
            }];
            let request = ListOffsetsRequest {
                replica_id: -1,
                isolation_level: i8::from(committed),
                topics: Array::Slice(&topics),
                timeout_ms: 10_000,
            };
            client.ask(&Node::Id(leader), &request, |reply| {
                for answer in reply.topics.iter().flat_map(|topic| topic.partitions.iter()) {
                    match answer.error_code {
                        ErrorCode::NONE => {
                            found.insert(answer.partition_index, answer.offset);
                        }
                        error if error.is_retriable() => {
                            later = Some(format!("{} [{}]: {}", topic.name, answer.partition_index, words(error)));
                        }
                        error => {
                            return Err(refused(
                                &format!("{} [{}]", topic.name, answer.partition_index),
                                error,
                                None,
                            ));
                        }
                    }
                }
                Ok(())
            })?;
        }
        if let Some(why) = later {
            current = client.topic(&topic.name, false)?;
            return Ok(Try::Later(why));
        }
        Ok(Try::Done(()))
    })?;
    Ok(found)
}

/// `partitions` of `topic` by the broker that leads them.
pub fn by_leader(topic: &Topic, partitions: &[i32]) -> BTreeMap<i32, Vec<i32>> {
    let mut out: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for partition in topic
        .partitions
        .iter()
        .filter(|partition| partitions.contains(&partition.index))
    {
        out.entry(partition.leader).or_default().push(partition.index);
    }
    out
}
