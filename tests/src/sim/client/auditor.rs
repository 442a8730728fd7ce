//! The auditor: while nobody else is at work, reads every topic that must be there from end to end and compares it with every promise;
//! asks for offsets by time; and sees that no group's offset lies beyond its log.

use std::collections::BTreeMap;

use skerry_core::api::ApiKey;
use skerry_core::api::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsResponse, ListOffsetsTopic};
use skerry_core::error_code::ErrorCode;
use skerry_core::time::{Instant, Millis};
use skerry_core::wire::Array;

use super::consumer::{ConsumerPlan, ask_fetch, take_reply};
use super::offsets::{ask_offsets, take_offsets};
use super::topic::{Topic, TopicFinder};
use super::{Actor, Cx};
use crate::sim::model::Rec;
use crate::sim::net::FakeNet;
use crate::sim::peer::{Heard, Peer};
use crate::wire;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Act {
    Find,
    /// The log's start or end.
    Ends {
        partition: i32,
        spec: i64,
    },
    Read {
        partition: i32,
    },
    /// By time, or the largest one.
    Time {
        partition: i32,
        spec: i64,
    },
    Offsets {
        group: String,
    },
}

const EARLIEST: i64 = -2;
const LATEST: i64 = -1;
const MAX_TIMESTAMP: i64 = -3;

const FETCH: ConsumerPlan = ConsumerPlan {
    max_wait_ms: 0,
    min_bytes: 0,
    max_bytes: 1 << 20,
    partition_bytes: 1 << 20,
    pace_us: (0, 0),
    reset_percent: 0,
    slow: None,
};

/// An auditor.
#[derive(Debug)]
pub struct Auditor {
    peer: Peer<Act>,
    names: Vec<String>,
    groups: Vec<String>,
    topic: Option<Topic>,
    acts: Vec<Act>,
    start: i64,
    end: i64,
    ends: BTreeMap<i32, i64>,
    positions: BTreeMap<i32, i64>,
    log: Vec<(i64, i64, Rec)>,
    done: bool,
}

impl Auditor {
    /// Of everything that the model knows.
    #[must_use]
    pub fn new(cx: &Cx<'_>) -> Self {
        Self {
            peer: Peer::new("auditor".into()),
            names: cx.model.topics().map(|(name, ..)| name.to_owned()).collect(),
            groups: cx.model.groups(),
            topic: None,
            acts: Vec::new(),
            start: 0,
            end: 0,
            ends: BTreeMap::new(),
            positions: BTreeMap::new(),
            log: Vec::new(),
            done: false,
        }
    }

    fn ask(&mut self, cx: &mut Cx<'_>) {
        let Some(act) = self.acts.last().cloned() else {
            let Some(name) = self.names.last() else {
                self.done = true;
                return;
            };
            return TopicFinder::new(name, cx).ask(&mut self.peer, cx, Act::Find);
        };
        let topic = self.topic.clone().expect("the topic under audit");
        match &act {
            Act::Find => unreachable!("only begins a topic"),
            Act::Ends { partition, spec } | Act::Time { partition, spec } => {
                let asked = ListOffsetsPartition {
                    partition_index: *partition,
                    timestamp: *spec,
                    ..Default::default()
                };
                let of = ListOffsetsTopic {
                    name: &topic.name,
                    partitions: Array::one(&asked),
                };
                let call = ListOffsetsRequest {
                    replica_id: -1,
                    topics: Array::one(&of),
                    ..Default::default()
                };
                let version = cx.rng.within(if *spec == MAX_TIMESTAMP { 7 } else { 1 }, 10) as i16;
                self.peer.ask(cx, version, &call, Millis(0), act);
            }
            Act::Read { partition } => {
                let version = cx.rng.within(4, 17) as i16;
                ask_fetch(
                    &mut self.peer,
                    cx,
                    version,
                    &topic,
                    &[*partition],
                    &self.positions,
                    &FETCH,
                    act.clone(),
                );
            }
            Act::Offsets { group } => {
                let partitions: Vec<i32> = (0..topic.partitions).collect();
                let version = cx.rng.within(1, 9) as i16;
                ask_offsets(
                    &mut self.peer,
                    cx,
                    version,
                    group,
                    &topic.name,
                    &partitions,
                    act.clone(),
                );
            }
        }
    }

    fn on_reply(&mut self, act: Act, version: i16, frame: &[u8], asked_at: Instant, cx: &mut Cx<'_>) {
        match act {
            Act::Find => {
                let name = self.names.last().expect("the topic asked for").clone();
                let topic = TopicFinder::new(&name, cx).on_reply(version, frame, cx);
                let topic = topic.unwrap_or_else(|| panic!("topic {name} is gone"));
                self.acts = self
                    .groups
                    .iter()
                    .map(|group| Act::Offsets { group: group.clone() })
                    .collect();
                for partition in 0..topic.partitions {
                    for _ in 0..2 {
                        let spec = cx.wall - cx.rng.below(100_000) as i64;
                        self.acts.push(Act::Time { partition, spec });
                    }
                    self.acts.push(Act::Time {
                        partition,
                        spec: MAX_TIMESTAMP,
                    });
                    self.acts.push(Act::Read { partition });
                    self.acts.push(Act::Ends {
                        partition,
                        spec: LATEST,
                    });
                    self.acts.push(Act::Ends {
                        partition,
                        spec: EARLIEST,
                    });
                }
                self.topic = Some(topic);
                return;
            }
            Act::Ends { partition, spec } => {
                let (offset, _) = listed(version, frame);
                if spec == EARLIEST {
                    self.start = offset;
                } else {
                    self.end = offset;
                    self.ends.insert(partition, offset);
                    self.positions = BTreeMap::from([(partition, self.start)]);
                    self.log.clear();
                }
            }
            Act::Read { partition } => {
                let topic = self.topic.clone().expect("the topic under audit");
                let before = self.log.len();
                let read = take_reply(
                    "auditor",
                    version,
                    frame,
                    &topic,
                    &[partition],
                    asked_at,
                    &mut self.positions,
                    cx,
                );
                let read = read.unwrap_or_else(|e| panic!("auditor: {topic:?} {partition}: {e:?}"));
                self.log
                    .extend(read.into_iter().map(|(_, offset, time, rec)| (offset, time, rec)));
                if self.positions[&partition] < self.end {
                    assert!(
                        self.log.len() > before,
                        "auditor: {topic:?} {partition}: nothing at {:?} of {}",
                        self.positions,
                        self.end
                    );
                    return;
                }
                let log = core::mem::take(&mut self.log);
                cx.model.on_whole_log((topic.id, partition), self.start, self.end, log);
            }
            Act::Time { partition, spec } => {
                let topic = self.topic.clone().expect("the topic under audit");
                let tp = (topic.id, partition);
                let (offset, time) = listed(version, frame);
                if spec == MAX_TIMESTAMP {
                    assert_eq!(
                        time,
                        cx.model.max_timestamp(tp).unwrap_or(-1),
                        "auditor: largest timestamp of {tp:?}"
                    );
                } else {
                    let first = cx
                        .model
                        .first_at(tp, spec)
                        .map_or((-1, -1), |(offset, time)| (offset, time.0));
                    assert_eq!((offset, time), first, "auditor: first of {tp:?} at or after {spec}");
                }
            }
            Act::Offsets { group } => {
                let topic = self.topic.clone().expect("the topic under audit");
                let offsets = take_offsets(version, frame, &group, &topic.name)
                    .unwrap_or_else(|e| panic!("auditor: offsets of {group}: {e:?}"));
                for (partition, offset) in offsets {
                    let end = self.ends[&partition];
                    assert!(
                        offset <= end,
                        "auditor: {group} has committed {offset} of {topic:?} {partition}, which ends at {end}"
                    );
                    cx.model
                        .on_fetched_offset(&group, (topic.id, partition), offset, asked_at, cx.now);
                }
            }
        }
        self.acts.pop();
        if self.acts.is_empty() {
            self.names.pop();
            self.ends.clear();
        }
    }
}

fn listed(version: i16, frame: &[u8]) -> (i64, i64) {
    let reply: ListOffsetsResponse<'_> = wire::reply(ApiKey::ListOffsets, version, frame);
    let answer = reply
        .topics
        .iter()
        .flat_map(|t| t.partitions.iter())
        .next()
        .expect("an answer for the partition");
    assert_eq!(answer.error_code, ErrorCode::NONE, "auditor: list offsets");
    (answer.offset, answer.timestamp)
}

impl Actor for Auditor {
    fn step(&mut self, cx: &mut Cx<'_>) {
        for heard in self.peer.hear(cx) {
            match heard {
                Heard::Reply(asked, frame) => self.on_reply(asked.note, asked.version, &frame, asked.at, cx),
                Heard::Over(_) => panic!("auditor: the broker closed its connection"),
            }
        }
        if self.done || self.peer.waiting() > 0 {
            return;
        }
        if !self.peer.is_connected() {
            self.peer.connect(cx);
        }
        self.ask(cx);
        if self.done {
            let _ = self.peer.close(cx);
        }
    }

    fn next_at(&self, net: &FakeNet) -> Instant {
        if self.done {
            Instant::NEVER
        } else if self.peer.waiting() == 0 {
            Instant::default()
        } else {
            self.peer.news_at(net)
        }
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn stop(&mut self) {}

    fn leave(&mut self, cx: &mut Cx<'_>) {
        self.done = true;
        let _ = self.peer.close(cx);
    }

    fn name(&self) -> &str {
        self.peer.name()
    }
}
