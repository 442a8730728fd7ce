//! Finding a topic: Metadata until it is there.

use skerry_core::api::ApiKey;
use skerry_core::api::metadata::{MetadataRequest, MetadataRequestTopic, MetadataResponse};
use skerry_core::error_code::ErrorCode;
use skerry_core::time::Millis;
use skerry_core::wire::{Array, Uuid};

use super::Cx;
use crate::sim::peer::Peer;
use crate::wire;

/// A topic as Metadata tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    /// Its name.
    pub name: String,
    /// Its id.
    pub id: Uuid,
    /// How many partitions it has.
    pub partitions: i32,
}

/// Asks for one topic, which is made if it is not there.
#[derive(Debug)]
pub struct TopicFinder {
    name: String,
    version: i16,
}

impl TopicFinder {
    /// For the topic of this name.
    #[must_use]
    pub fn new(name: &str, cx: &mut Cx<'_>) -> Self {
        // From 10 on there are ids, which the model goes by.
        Self {
            name: name.into(),
            version: cx.rng.within(10, 13) as i16,
        }
    }

    /// Asks.
    pub fn ask<T>(&self, peer: &mut Peer<T>, cx: &mut Cx<'_>, note: T) {
        let topic = MetadataRequestTopic {
            name: Some(&self.name),
            ..Default::default()
        };
        let call = MetadataRequest {
            topics: Array::one(&topic),
            allow_auto_topic_creation: true,
            ..Default::default()
        };
        peer.ask(cx, self.version, &call, Millis(0), note);
    }

    /// The topic, if it is there.
    pub fn on_reply(&self, version: i16, frame: &[u8], cx: &mut Cx<'_>) -> Option<Topic> {
        let reply: MetadataResponse<'_> = wire::reply(ApiKey::Metadata, version, frame);
        let topic = reply.topics.iter().next().expect("an answer for the topic asked for");
        match topic.error_code {
            ErrorCode::NONE => {
                let found = Topic {
                    name: self.name.clone(),
                    id: topic.topic_id,
                    partitions: topic.partitions.len() as i32,
                };
                assert_eq!(topic.name, Some(self.name.as_str()));
                let indexes: Vec<i32> = topic.partitions.iter().map(|p| p.partition_index).collect();
                assert_eq!(
                    indexes,
                    (0..found.partitions).collect::<Vec<_>>(),
                    "partitions of {}",
                    self.name
                );
                cx.model.on_topic(&self.name, found.id, found.partitions);
                Some(found)
            }
            error => {
                let storage = error == ErrorCode::KAFKA_STORAGE_ERROR && cx.disk_fails;
                assert!(error.is_retriable() || storage, "topic {}: {error:?}", self.name);
                None
            }
        }
    }
}
