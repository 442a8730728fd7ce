//! OffsetFetch (key 9): how far groups have read.
//!
//! Answered in versions 1–9. 2 all topics with null · 5 leader epochs (KIP-320) · 6 flexible · 7 stable offsets (KIP-447): without
//! transactions all are · 8 several groups (KIP-709) · 9 member epochs (KIP-848), of which classic groups have none. What was never
//! committed is −1 and no error, as in Kafka.

use core::cell::Cell;

use skerry_core::api::offset_fetch::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
    OffsetFetchResponse, OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic, OffsetFetchResponseTopics,
};
use skerry_core::error_code::ErrorCode;
use skerry_core::header::RequestHeader;
use skerry_core::machine::group::GroupKey;
use skerry_core::wire::{Array, Full, Items, Uuid};
use skerry_net::host::Host;

use super::{Context, Out, Outcome};
use crate::coordinator::{Commit, Coordinator};
use crate::topics::TopicTable;

/// The first version that asks for several groups.
const SEVERAL: i16 = 8;

/// No offset.
const NONE: Commit<'static> = Commit {
    offset: -1,
    leader_epoch: -1,
    metadata: "",
    committed_at: -1,
};

/// Handles one request. Cost: two look-ups for each partition, no allocation.
pub fn handle<H: Host>(
    cx: &mut Context<'_, H>,
    header: &RequestHeader<'_>,
    request: &OffsetFetchRequest<'_>,
    out: &mut Out<'_>,
) -> Outcome {
    let reply = Reply {
        request,
        coordinator: &cx.state.coordinator,
        topics: &cx.state.topics,
        group: Cell::new(None),
        asked: Cell::new(Asked::All),
        topic: Cell::new(Topic::default()),
    };
    if header.version < SEVERAL {
        let topics = request.topics;
        reply.enter(
            request.group_id,
            if topics.is_null() {
                Asked::All
            } else {
                Asked::Old(topics)
            },
        );
    }
    out.reply(
        header,
        &OffsetFetchResponse {
            topics: Array::Items(&reply, 0),
            groups: Array::Items(&reply, 0),
            ..OffsetFetchResponse::default()
        },
    )
}

/// The topics asked for, in either shape that the versions have for them.
#[derive(Clone, Copy)]
enum Asked<'f> {
    /// Every topic that has an offset.
    All,
    Old(Array<'f, OffsetFetchRequestTopic<'f>>),
    New(Array<'f, OffsetFetchRequestTopics<'f>>),
}

/// The topic that is written.
#[derive(Clone, Copy, Default)]
struct Topic<'f> {
    id: Option<Uuid>,
    /// Null: every one that has an offset.
    partitions: Array<'f, i32>,
}

struct Reply<'r, 'f> {
    request: &'r OffsetFetchRequest<'f>,
    coordinator: &'r Coordinator,
    topics: &'r TopicTable,
    group: Cell<Option<GroupKey>>,
    asked: Cell<Asked<'f>>,
    topic: Cell<Topic<'f>>,
}

impl<'r, 'f> Reply<'r, 'f> {
    fn enter(&self, group_id: &str, asked: Asked<'f>) {
        self.group.set(self.coordinator.groups().find(group_id));
        self.asked.set(asked);
    }

    fn known_topics(&self) -> impl Iterator<Item = Uuid> + use<'r> {
        let offsets = self.coordinator.offsets();
        self.group.get().into_iter().flat_map(|group| offsets.topics(group))
    }

    fn topic_count(&self) -> usize {
        match self.asked.get() {
            Asked::All => self.known_topics().count(),
            Asked::Old(topics) => topics.len(),
            Asked::New(topics) => topics.len(),
        }
    }

    /// Goes through the topics; the one whose name is emitted is the one whose partitions are written.
    fn each_topic<'a>(&'a self, emit: &mut dyn FnMut(&'a str) -> Result<(), Full>) -> Result<(), Full> {
        let mut enter = |name: &'a str, partitions| {
            let topic = self.topics.by_name(name).and_then(|ix| self.topics.get(ix));
            let id = topic.map(|topic| topic.id);
            self.topic.set(Topic { id, partitions });
            emit(name)
        };
        match self.asked.get() {
            Asked::All => self.known_topics().try_for_each(|id| {
                let topic = self.topics.by_id(id).and_then(|ix| self.topics.get(ix));
                enter(topic.map_or("", |topic| topic.name.as_str()), Array::Null)
            }),
            Asked::Old(topics) => topics
                .iter()
                .try_for_each(|topic| enter(topic.name, topic.partition_indexes)),
            Asked::New(topics) => topics
                .iter()
                .try_for_each(|topic| enter(topic.name, topic.partition_indexes)),
        }
    }

    fn known_partitions(&self) -> impl Iterator<Item = (i32, Commit<'r>)> + use<'r> {
        let offsets = self.coordinator.offsets();
        let both = self.group.get().zip(self.topic.get().id);
        both.into_iter()
            .flat_map(|(group, topic)| offsets.partitions(group, topic))
    }

    fn partition_count(&self) -> usize {
        let partitions = self.topic.get().partitions;
        if partitions.is_null() {
            self.known_partitions().count()
        } else {
            partitions.len()
        }
    }

    fn each_partition<'a>(&'a self, emit: &mut dyn FnMut(i32, Commit<'a>) -> Result<(), Full>) -> Result<(), Full> {
        let Topic { id, partitions } = self.topic.get();
        if partitions.is_null() {
            return self
                .known_partitions()
                .try_for_each(|(partition, commit)| emit(partition, commit));
        }
        let place = self.group.get().zip(id);
        let offsets = self.coordinator.offsets();
        partitions.iter().try_for_each(|partition| {
            let commit = place.and_then(|(group, topic)| offsets.get(group, topic, partition));
            emit(partition, commit.unwrap_or(NONE))
        })
    }
}

impl<'a> Items<'a, OffsetFetchResponseGroup<'a>> for Reply<'_, '_> {
    fn count(&'a self, _: usize) -> usize {
        self.request.groups.len()
    }

    fn each(
        &'a self,
        _: usize,
        emit: &mut dyn FnMut(&OffsetFetchResponseGroup<'a>) -> Result<(), Full>,
    ) -> Result<(), Full> {
        self.request
            .groups
            .iter()
            .try_for_each(|group: OffsetFetchRequestGroup<'_>| {
                let topics = group.topics;
                self.enter(
                    group.group_id,
                    if topics.is_null() {
                        Asked::All
                    } else {
                        Asked::New(topics)
                    },
                );
                emit(&OffsetFetchResponseGroup {
                    group_id: group.group_id,
                    topics: Array::Items(self, 0),
                    error_code: ErrorCode::NONE,
                })
            })
    }
}

impl<'a> Items<'a, OffsetFetchResponseTopic<'a>> for Reply<'_, '_> {
    fn count(&'a self, _: usize) -> usize {
        self.topic_count()
    }

    fn each(
        &'a self,
        _: usize,
        emit: &mut dyn FnMut(&OffsetFetchResponseTopic<'a>) -> Result<(), Full>,
    ) -> Result<(), Full> {
        self.each_topic(&mut |name| {
            emit(&OffsetFetchResponseTopic {
                name,
                partitions: Array::Items(self, 0),
            })
        })
    }
}

impl<'a> Items<'a, OffsetFetchResponseTopics<'a>> for Reply<'_, '_> {
    fn count(&'a self, _: usize) -> usize {
        self.topic_count()
    }

    fn each(
        &'a self,
        _: usize,
        emit: &mut dyn FnMut(&OffsetFetchResponseTopics<'a>) -> Result<(), Full>,
    ) -> Result<(), Full> {
        self.each_topic(&mut |name| {
            emit(&OffsetFetchResponseTopics {
                name,
                partitions: Array::Items(self, 0),
            })
        })
    }
}

impl<'a> Items<'a, OffsetFetchResponsePartition<'a>> for Reply<'_, '_> {
    fn count(&'a self, _: usize) -> usize {
        self.partition_count()
    }

    fn each(
        &'a self,
        _: usize,
        emit: &mut dyn FnMut(&OffsetFetchResponsePartition<'a>) -> Result<(), Full>,
    ) -> Result<(), Full> {
        self.each_partition(&mut |partition_index, commit| {
            emit(&OffsetFetchResponsePartition {
                partition_index,
                committed_offset: commit.offset,
                committed_leader_epoch: commit.leader_epoch,
                metadata: Some(commit.metadata),
                error_code: ErrorCode::NONE,
            })
        })
    }
}

impl<'a> Items<'a, OffsetFetchResponsePartitions<'a>> for Reply<'_, '_> {
    fn count(&'a self, _: usize) -> usize {
        self.partition_count()
    }

    fn each(
        &'a self,
        _: usize,
        emit: &mut dyn FnMut(&OffsetFetchResponsePartitions<'a>) -> Result<(), Full>,
    ) -> Result<(), Full> {
        self.each_partition(&mut |partition_index, commit| {
            emit(&OffsetFetchResponsePartitions {
                partition_index,
                committed_offset: commit.offset,
                committed_leader_epoch: commit.leader_epoch,
                metadata: Some(commit.metadata),
                error_code: ErrorCode::NONE,
            })
        })
    }
}
