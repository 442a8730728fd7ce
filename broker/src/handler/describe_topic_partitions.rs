//! DescribeTopicPartitions (key 75): topics and partitions by name, a page at a time (KIP-966).
//!
//! Answered in version 0. A page holds at most 2,000 partitions, or fewer where the client asks for fewer; a topic that is not there
//! counts as one. The cursor of the reply names the partition with which the next page begins.

use core::cell::Cell;

use skerry_core::api::describe_topic_partitions::{
    Cursor, DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse, DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
};
use skerry_core::error_code::ErrorCode;
use skerry_core::header::RequestHeader;
use skerry_core::wire::Array;
use skerry_net::host::Host;

use super::made::made;
use super::{Context, Out, Outcome, operations};
use crate::ids::TopicIx;
use crate::state::State;
use crate::topics::topic_name;

/// Most partitions of a page (`max.request.partition.size.limit`).
const PAGE_PARTITIONS_MAX: i32 = 2000;

/// A topic's share of a page.
#[derive(Clone, Copy, Default)]
struct Share<'a> {
    name: &'a str,
    ix: Option<TopicIx>,
    /// The first partition of it.
    first: i32,
    /// How many partitions.
    count: i32,
}

/// The shares of a page in the order of names, and the cursor after it.
struct Page<'r, 'f> {
    state: &'r State,
    request: &'r DescribeTopicPartitionsRequest<'f>,
}

/// Handles one request.
///
/// When full: a request that names more topics than there can be closes the connection.
/// Cost: a look at every name asked for, for each topic of the page.
pub fn handle<H: Host>(
    cx: &mut Context<'_, H>,
    header: &RequestHeader<'_>,
    request: &DescribeTopicPartitionsRequest<'_>,
    out: &mut Out<'_>,
) -> Outcome {
    let state = &*cx.state;
    if request.topics.len() > state.config.limits.topics as usize {
        return Outcome::Close("more topics in one DescribeTopicPartitions than there can be");
    }
    let page = Page { state, request };
    let me = [state.config.node_id];
    let share = Cell::new(Share::default());
    let partitions = made::<DescribeTopicPartitionsResponsePartition<'_>, _, _>(
        |_| share.get().count as usize,
        |_, emit| {
            let Share { first, count, .. } = share.get();
            (first..first + count).try_for_each(|number| {
                emit(&DescribeTopicPartitionsResponsePartition {
                    partition_index: number,
                    leader_id: state.config.node_id,
                    leader_epoch: state.topics.leader_epoch(),
                    replica_nodes: Array::Slice(&me),
                    isr_nodes: Array::Slice(&me),
                    // Kafka always sends these two lists, and its Java client falls over a null one.
                    eligible_leader_replicas: Array::Slice(&[]),
                    last_known_elr: Array::Slice(&[]),
                    ..DescribeTopicPartitionsResponsePartition::default()
                })
            })
        },
    );
    let results = made::<DescribeTopicPartitionsResponseTopic<'_>, _, _>(
        |_| {
            let mut count = 0;
            page.each(|_| {
                count += 1;
                Ok::<_, core::convert::Infallible>(())
            })
            .map_or(0, |_| count)
        },
        |_, emit| {
            page.each(|next| {
                share.set(next);
                let topic = next.ix.and_then(|ix| state.topics.get(ix));
                emit(&DescribeTopicPartitionsResponseTopic {
                    error_code: match topic {
                        Some(_) => ErrorCode::NONE,
                        None if topic_name(next.name).is_err() => ErrorCode::INVALID_TOPIC_EXCEPTION,
                        None => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                    },
                    name: Some(next.name),
                    topic_id: topic.map(|topic| topic.id).unwrap_or_default(),
                    partitions: partitions.array(0),
                    topic_authorized_operations: operations::topic(topic.is_some()),
                    ..DescribeTopicPartitionsResponseTopic::default()
                })
            })
            .map(|_| ())
        },
    );
    let next_cursor = page
        .each(|_| Ok::<_, core::convert::Infallible>(()))
        .unwrap_or_default();
    out.reply(
        header,
        &DescribeTopicPartitionsResponse {
            topics: results.array(0),
            next_cursor,
            ..DescribeTopicPartitionsResponse::default()
        },
    )
}

impl<'r, 'f: 'r> Page<'r, 'f> {
    /// Calls `each` for every share of the page; the cursor with which the next one begins.
    fn each<E>(&self, mut each: impl FnMut(Share<'r>) -> Result<(), E>) -> Result<Option<Cursor<'r>>, E> {
        let mut left = self.request.response_partition_limit.clamp(1, PAGE_PARTITIONS_MAX);
        let begin = self.request.cursor.unwrap_or_default();
        let mut next = self.first(begin.topic_name, true);
        while let Some(name) = next {
            let ix = self.state.topics.by_name(name);
            let partitions = ix
                .and_then(|ix| self.state.topics.get(ix))
                .map_or(0, |topic| topic.partitions());
            let first = if name == begin.topic_name {
                begin.partition_index.clamp(0, partitions)
            } else {
                0
            };
            let count = (partitions - first).min(left);
            if left == 0 {
                return Ok(Some(Cursor {
                    topic_name: name,
                    partition_index: first,
                }));
            }
            each(Share { name, ix, first, count })?;
            if first + count < partitions {
                return Ok(Some(Cursor {
                    topic_name: name,
                    partition_index: first + count,
                }));
            }
            left -= count.max(1);
            next = self.first(name, false);
        }
        Ok(None)
    }

    /// The first topic asked for, by name, after `from`, or at it where `at` says so. No topics asked for are all topics.
    fn first(&self, from: &str, at: bool) -> Option<&'r str> {
        let follows = |name: &str| name > from || (at && name == from);
        if self.request.topics.is_empty() {
            let topics = &self.state.topics;
            let mut names = topics
                .iter_from(from)
                .filter_map(|ix| Some(topics.get(ix)?.name.as_str()));
            return names.find(|name| follows(name));
        }
        let names = self.request.topics.iter().map(|topic| topic.name);
        names.filter(|name| follows(name)).min()
    }
}
