//! Metadata (key 3): who the broker is, which topics and partitions there are.
//!
//! Answered in versions 0–13. 1 racks, controller · 2 cluster id · 4 whether to create what is missing · 5 offline replicas · 7 leader
//! epochs · 8 authorized operations · 9 flexible · 10 topic ids · 12 asked for by id (KIP-516) · 13 error of the whole reply. A topic
//! that is created on the way is there at once, durably, so the reply tells of it instead of sending the client round again.

use skerry_core::api::metadata::{
    MetadataRequest, MetadataRequestTopic, MetadataResponse, MetadataResponseBroker, MetadataResponsePartition,
    MetadataResponseTopic,
};
use skerry_core::error_code::ErrorCode;
use skerry_core::header::RequestHeader;
use skerry_core::wire::{Array, Uuid};
use skerry_net::host::Host;

use super::made::made;
use super::{Context, Out, Outcome, operations};
use crate::ids::TopicIx;
use crate::state::State;
use crate::topics::config::TopicConfig;
use crate::topics::topic_name;

/// Handles one request.
///
/// Cost: two passes over the topics told of; a blocking sync when topics were created.
pub fn handle<H: Host>(
    cx: &mut Context<'_, H>,
    header: &RequestHeader<'_>,
    request: &MetadataRequest<'_>,
    out: &mut Out<'_>,
) -> Outcome {
    // Before version 1 there was no null, and empty meant all.
    let all = request.topics.is_null() || (header.version == 0 && request.topics.is_empty());
    let may_create = cx.state.config.auto_create_topics && request.allow_auto_topic_creation;
    if may_create && !all {
        create_missing(cx, request);
    }

    let state = &*cx.state;
    let topics = &state.topics;
    let me = [state.config.node_id];
    let leader_epoch = topics.leader_epoch();
    let partitions = made::<MetadataResponsePartition<'_>, _, _>(
        |topic| {
            topics
                .get(TopicIx(topic as u32))
                .map_or(0, |topic| topic.partitions() as usize)
        },
        |topic, emit| {
            topics.partitions(TopicIx(topic as u32)).try_for_each(|(number, _)| {
                emit(&MetadataResponsePartition {
                    partition_index: number,
                    leader_id: state.config.node_id,
                    leader_epoch,
                    replica_nodes: Array::Slice(&me),
                    isr_nodes: Array::Slice(&me),
                    ..MetadataResponsePartition::default()
                })
            })
        },
    );
    let told = |ix: TopicIx| {
        let topic = topics.get(ix)?;
        Some(MetadataResponseTopic {
            name: Some(&topic.name),
            topic_id: topic.id,
            partitions: partitions.array(ix.0 as usize),
            topic_authorized_operations: operations::topic(request.include_topic_authorized_operations),
            ..MetadataResponseTopic::default()
        })
    };
    let asked_for = |asked| {
        found(state, &asked).and_then(told).unwrap_or(MetadataResponseTopic {
            error_code: missing(state, &asked, may_create),
            // Before version 12 a name cannot be null.
            name: asked.name.or((header.version < 12).then_some("")),
            topic_id: asked.topic_id,
            ..MetadataResponseTopic::default()
        })
    };
    let results = made::<MetadataResponseTopic<'_>, _, _>(
        |_| if all { topics.len() } else { request.topics.len() },
        |_, emit| {
            if all {
                topics.iter().filter_map(told).try_for_each(|topic| emit(&topic))
            } else {
                request.topics.iter().map(asked_for).try_for_each(|topic| emit(&topic))
            }
        },
    );
    let (host, port) = cx.peer.advertised(state);
    let broker = MetadataResponseBroker {
        node_id: state.config.node_id,
        host: &host,
        port,
        rack: state.config.rack.as_deref(),
    };
    out.reply(
        header,
        &MetadataResponse {
            brokers: Array::one(&broker),
            cluster_id: Some(topics.cluster_id()),
            controller_id: state.config.node_id,
            topics: results.array(0),
            cluster_authorized_operations: operations::cluster(request.include_cluster_authorized_operations),
            ..MetadataResponse::default()
        },
    )
}

fn found(state: &State, asked: &MetadataRequestTopic<'_>) -> Option<TopicIx> {
    match asked.name {
        Some(name) => state.topics.by_name(name),
        None => state.topics.by_id(asked.topic_id),
    }
}

/// Creates the topics asked for by a name that may be a topic's; those that could not be created stay missing.
fn create_missing<H: Host>(cx: &mut Context<'_, H>, request: &MetadataRequest<'_>) {
    let State {
        topics, logs, config, ..
    } = &mut *cx.state;
    let mut created = false;
    for name in request.topics.iter().filter_map(|asked| asked.name) {
        if topics.by_name(name).is_some() || topics.collision(name).is_some() {
            continue;
        }
        let Ok(name) = topic_name(name) else { continue };
        let config_of_its_own = TopicConfig::default();
        created |= topics
            .create(cx.host, logs, &name, config.num_partitions, &config_of_its_own)
            .is_ok();
    }
    if created {
        // Those that could not be made durable are gone again, and told of as missing.
        let _ = topics.sync(cx.host, logs);
    }
}

/// Why a topic is not there, after what could be created was.
fn missing(state: &State, asked: &MetadataRequestTopic<'_>, may_create: bool) -> ErrorCode {
    let topics = &state.topics;
    match asked.name {
        None if asked.topic_id == Uuid::ZERO => ErrorCode::INVALID_TOPIC_EXCEPTION,
        None => ErrorCode::UNKNOWN_TOPIC_ID,
        Some(name) if topic_name(name).is_err() => ErrorCode::INVALID_TOPIC_EXCEPTION,
        Some(_) if !may_create => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        Some(name) if topics.collision(name).is_some() => ErrorCode::INVALID_TOPIC_EXCEPTION,
        Some(_) if !topics.has_room(1, state.config.num_partitions.unsigned_abs()) => ErrorCode::POLICY_VIOLATION,
        Some(_) => ErrorCode::KAFKA_STORAGE_ERROR,
    }
}
