//! An administrator: makes topics of its own, puts a record in, deletes them, and expects each answer to be true.

use skerry_core::api::ApiKey;
use skerry_core::api::create_topics::{
    CreatableTopic, CreatableTopicConfig, CreateTopicsRequest, CreateTopicsResponse,
};
use skerry_core::api::delete_topics::{DeleteTopicState, DeleteTopicsRequest, DeleteTopicsResponse};
use skerry_core::api::metadata::{MetadataRequest, MetadataRequestTopic, MetadataResponse};
use skerry_core::api::produce::{PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData};
use skerry_core::error_code::ErrorCode;
use skerry_core::time::{Instant, Millis};
use skerry_core::wire::{Array, Records, Uuid};

use super::{Actor, Cx};
use crate::sim::model::Rec;
use crate::sim::net::FakeNet;
use crate::sim::peer::{Heard, Peer};
use crate::wire;

/// What it does next with its topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Create,
    Look,
    Put,
    Delete,
    Miss,
}

/// An administrator.
#[derive(Debug)]
pub struct Admin {
    id: u32,
    peer: Peer<Act>,
    act: Act,
    topic: u32,
    topics: u32,
    partitions: i32,
    topic_id: Uuid,
    number: u32,
    /// The same request may have been carried out before, and its answer lost.
    again: bool,
    /// This many of a hundred topics stay.
    keeps: u64,
    at: Instant,
    stopped: bool,
}

impl Admin {
    /// One that makes so many topics.
    #[must_use]
    pub fn new(id: u32, topics: u32, cx: &mut Cx<'_>) -> Self {
        Self {
            id,
            peer: Peer::new(format!("admin {id}")),
            act: Act::Create,
            topic: 0,
            topics,
            partitions: 0,
            topic_id: Uuid::ZERO,
            number: 0,
            again: false,
            keeps: cx.rng.below(50),
            at: cx.now,
            stopped: false,
        }
    }

    fn topic_name(&self) -> String {
        format!("of-admin-{}-{}", self.id, self.topic)
    }

    fn ask(&mut self, cx: &mut Cx<'_>) {
        let name = self.topic_name();
        match self.act {
            Act::Create => {
                if !self.again {
                    self.partitions = cx.rng.within(1, 3) as i32;
                }
                let config = CreatableTopicConfig {
                    name: "retention.ms",
                    value: Some("-1"),
                };
                let topic = CreatableTopic {
                    name: &name,
                    num_partitions: self.partitions,
                    replication_factor: 1,
                    configs: Array::one(&config),
                    ..Default::default()
                };
                let call = CreateTopicsRequest {
                    topics: Array::one(&topic),
                    ..Default::default()
                };
                let version = cx.rng.within(2, 7) as i16;
                self.peer.ask(cx, version, &call, Millis(60_000), Act::Create);
            }
            Act::Look | Act::Miss => {
                let topic = MetadataRequestTopic {
                    name: Some(&name),
                    ..Default::default()
                };
                let call = MetadataRequest {
                    topics: Array::one(&topic),
                    allow_auto_topic_creation: false,
                    ..Default::default()
                };
                let version = cx.rng.within(10, 13) as i16;
                self.peer.ask(cx, version, &call, Millis(0), self.act);
            }
            Act::Put => {
                let rec = Rec {
                    client: self.id,
                    number: self.number,
                };
                let bytes = wire::batch(&[rec.record(50, cx.wall)], None);
                let data = PartitionProduceData {
                    index: 0,
                    records: Records::Bytes(&bytes),
                };
                let topic = TopicProduceData {
                    name: &name,
                    topic_id: self.topic_id,
                    partition_data: Array::one(&data),
                };
                let call = ProduceRequest {
                    acks: -1,
                    timeout_ms: 30_000,
                    topic_data: Array::one(&topic),
                    ..Default::default()
                };
                let version = cx.rng.within(3, 13) as i16;
                self.peer.ask(cx, version, &call, Millis(30_000), Act::Put);
            }
            Act::Delete => {
                cx.model.on_deleting(&name);
                let state = DeleteTopicState {
                    name: Some(&name),
                    topic_id: Uuid::ZERO,
                };
                let names = [name.as_str()];
                let call = DeleteTopicsRequest {
                    topics: Array::one(&state),
                    topic_names: Array::Slice(&names),
                    timeout_ms: 30_000,
                };
                let version = cx.rng.within(1, 6) as i16;
                self.peer.ask(cx, version, &call, Millis(30_000), Act::Delete);
            }
        }
    }

    fn next_topic(&mut self) {
        self.topic += 1;
        self.act = Act::Create;
    }

    fn on_reply(&mut self, act: Act, version: i16, frame: &[u8], cx: &mut Cx<'_>) {
        let name = self.topic_name();
        let again = core::mem::take(&mut self.again);
        let error = match act {
            Act::Create => {
                let reply: CreateTopicsResponse<'_> = wire::reply(ApiKey::CreateTopics, version, frame);
                let topic = reply.topics.iter().next().expect("an answer for the topic");
                assert_eq!(topic.name, name);
                match topic.error_code {
                    ErrorCode::NONE => self.act = Act::Look,
                    ErrorCode::TOPIC_ALREADY_EXISTS if again => self.act = Act::Look,
                    _ => {}
                }
                topic.error_code
            }
            Act::Look => {
                let reply: MetadataResponse<'_> = wire::reply(ApiKey::Metadata, version, frame);
                let topic = reply.topics.iter().next().expect("an answer for the topic");
                assert_eq!(
                    (topic.error_code, topic.name),
                    (ErrorCode::NONE, Some(name.as_str())),
                    "{}",
                    self.peer.name()
                );
                assert_eq!(topic.partitions.len(), self.partitions as usize, "{}", self.peer.name());
                cx.model.on_topic(&name, topic.topic_id, self.partitions);
                self.topic_id = topic.topic_id;
                self.act = Act::Put;
                ErrorCode::NONE
            }
            Act::Put => {
                let reply: ProduceResponse<'_> = wire::reply(ApiKey::Produce, version, frame);
                let answer = reply.responses.iter().flat_map(|t| t.partition_responses.iter()).next();
                let answer = answer.expect("an answer for the partition");
                if answer.error_code == ErrorCode::NONE {
                    let rec = Rec {
                        client: self.id,
                        number: self.number,
                    };
                    cx.model.on_acked((self.topic_id, 0), answer.base_offset, &[rec], -1);
                }
                // Never the same record twice, whatever became of it.
                self.number += 1;
                self.act = Act::Delete;
                if cx.rng.percent(self.keeps) {
                    self.next_topic();
                }
                answer.error_code
            }
            Act::Delete => {
                let reply: DeleteTopicsResponse<'_> = wire::reply(ApiKey::DeleteTopics, version, frame);
                let topic = reply.responses.iter().next().expect("an answer for the topic");
                match topic.error_code {
                    ErrorCode::NONE => self.act = Act::Miss,
                    ErrorCode::UNKNOWN_TOPIC_OR_PARTITION if again => self.act = Act::Miss,
                    _ => {}
                }
                topic.error_code
            }
            Act::Miss => {
                let reply: MetadataResponse<'_> = wire::reply(ApiKey::Metadata, version, frame);
                let topic = reply.topics.iter().next().expect("an answer for the topic");
                assert_eq!(
                    topic.error_code,
                    ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                    "{}: deleted, and still there",
                    self.peer.name()
                );
                cx.model.on_deleted(self.topic_id);
                self.next_topic();
                ErrorCode::NONE
            }
        };
        let expected = match error {
            ErrorCode::NONE => true,
            ErrorCode::TOPIC_ALREADY_EXISTS => again && act == Act::Create,
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION => again && act == Act::Delete,
            // Whether it was carried out is not known after these.
            ErrorCode::KAFKA_STORAGE_ERROR => {
                self.again = true;
                cx.disk_fails
            }
            ErrorCode::REQUEST_TIMED_OUT => {
                self.again = true;
                true
            }
            _ => false,
        };
        assert!(
            expected || !cx.roomy,
            "{}: {act:?} of {name}, version {version}: {error:?}",
            self.peer.name()
        );
        if !expected {
            // No room for another topic.
            self.next_topic();
        }
        self.at = cx.soon(10_000, 1_000_000);
    }
}

impl Actor for Admin {
    fn step(&mut self, cx: &mut Cx<'_>) {
        for heard in self.peer.hear(cx) {
            match heard {
                Heard::Reply(asked, frame) => self.on_reply(asked.note, asked.version, &frame, cx),
                Heard::Over(asked) => {
                    if asked.iter().any(|a| a.note == Act::Put) {
                        self.number += 1;
                    }
                    self.again |= !asked.is_empty();
                    self.at = self.at.max(cx.soon(1_000, 300_000));
                }
            }
        }
        if cx.now < self.at || self.peer.waiting() > 0 || self.is_done() {
            return;
        }
        if !self.peer.is_connected() {
            self.peer.connect(cx);
        }
        self.ask(cx);
    }

    fn next_at(&self, net: &FakeNet) -> Instant {
        let own = if self.peer.waiting() > 0 || self.is_done() {
            Instant::NEVER
        } else {
            self.at
        };
        own.min(self.peer.news_at(net))
    }

    fn is_done(&self) -> bool {
        (self.topic >= self.topics || self.stopped) && self.peer.waiting() == 0
    }

    fn stop(&mut self) {
        self.stopped = true;
    }

    fn leave(&mut self, cx: &mut Cx<'_>) {
        self.stopped = true;
        let _ = self.peer.close(cx);
    }

    fn name(&self) -> &str {
        self.peer.name()
    }
}
