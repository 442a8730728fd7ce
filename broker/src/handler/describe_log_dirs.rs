//! DescribeLogDirs (key 35): how many bytes each partition takes.
//!
//! Answered in versions 1–4. 2 flexible · 3 error of the whole reply · 4 the volume's sizes (KIP-827), which are not looked at: −1. There
//! is one directory.

use skerry_core::api::describe_log_dirs::{
    DescribableLogDirTopic, DescribeLogDirsPartition, DescribeLogDirsRequest, DescribeLogDirsResponse,
    DescribeLogDirsResult, DescribeLogDirsTopic,
};
use skerry_core::header::RequestHeader;
use skerry_core::wire::Array;
use skerry_net::host::Host;

use core::cell::Cell;

use super::made::made;
use super::{Context, Out, Outcome};
use crate::ids::TopicIx;

/// Handles one request. Partitions that are not there are left out, as Kafka does. Cost: two passes over what is told of.
pub fn handle<H: Host>(
    cx: &mut Context<'_, H>,
    header: &RequestHeader<'_>,
    request: &DescribeLogDirsRequest<'_>,
    out: &mut Out<'_>,
) -> Outcome {
    let state = &*cx.state;
    let topics = &state.topics;
    // The topic asked for whose partitions are told of; `None` tells of all of them.
    let asked = Cell::new(None::<DescribableLogDirTopic<'_>>);
    let told = |topic: usize| {
        let asked = asked.get();
        let wanted = move |number| asked.is_none_or(|asked| asked.partitions.iter().any(|n| n == number));
        topics
            .partitions(TopicIx(topic as u32))
            .filter(move |(number, _)| wanted(*number))
    };
    let partitions = made::<DescribeLogDirsPartition, _, _>(
        |topic| told(topic).count(),
        |topic, emit| {
            told(topic).try_for_each(|(number, ix)| {
                emit(&DescribeLogDirsPartition {
                    partition_index: number,
                    partition_size: i64::try_from(state.logs.bytes(ix)).unwrap_or(i64::MAX),
                    ..DescribeLogDirsPartition::default()
                })
            })
        },
    );
    let found = || {
        let named = request.topics.iter();
        named.filter_map(|asked| Some((topics.by_name(asked.topic)?, asked)))
    };
    let all = request.topics.is_null();
    let results = made::<DescribeLogDirsTopic<'_>, _, _>(
        |_| if all { topics.len() } else { found().count() },
        |_, emit| {
            let mut tell = |ix: TopicIx| {
                emit(&DescribeLogDirsTopic {
                    name: topics.get(ix).map_or("", |topic| &topic.name),
                    partitions: partitions.array(ix.0 as usize),
                })
            };
            if all {
                return topics.iter().try_for_each(tell);
            }
            found().try_for_each(|(ix, topic)| {
                asked.set(Some(topic));
                tell(ix)
            })
        },
    );
    let directory = DescribeLogDirsResult {
        log_dir: state.config.data_dir.to_str().unwrap_or_default(),
        topics: results.array(0),
        ..DescribeLogDirsResult::default()
    };
    out.reply(
        header,
        &DescribeLogDirsResponse {
            results: Array::one(&directory),
            ..DescribeLogDirsResponse::default()
        },
    )
}
