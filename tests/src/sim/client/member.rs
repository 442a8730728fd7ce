//! A member of a consumer group, in the classic protocol: joins, leads when it must, reads its partitions, commits, naps, leaves.

use std::collections::{BTreeMap, BTreeSet};

use skerry_core::api::find_coordinator::{FindCoordinatorRequest, FindCoordinatorResponse};
use skerry_core::api::heartbeat::{HeartbeatRequest, HeartbeatResponse};
use skerry_core::api::join_group::{JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse};
use skerry_core::api::leave_group::{LeaveGroupRequest, MemberIdentity};
use skerry_core::api::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic, OffsetCommitResponse,
};
use skerry_core::api::sync_group::{SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse};
use skerry_core::error_code::ErrorCode;
use skerry_core::time::{Instant, Millis};
use skerry_core::wire::Array;

use super::consumer::{ConsumerPlan, ask_fetch, take_reply};
use super::offsets::{ask_offsets, take_offsets};
use super::topic::{Topic, TopicFinder};
use super::{Actor, Cx};
use crate::sim::model::Tp;
use crate::sim::net::FakeNet;
use crate::sim::peer::{Asked, Heard, Peer};
use crate::wire;

/// What kind of member.
#[derive(Clone, Copy, Debug)]
pub struct MemberPlan {
    /// `session.timeout.ms`.
    pub session_timeout_ms: i32,
    /// `max.poll.interval.ms`.
    pub rebalance_timeout_ms: i32,
    /// Milliseconds between heartbeats.
    pub heartbeat_ms: u64,
    /// Milliseconds between commits.
    pub commit_ms: u64,
    /// Of a thousand steps, how many begin a nap that may outlast the session.
    pub naps: u64,
    /// Of a thousand steps, how many leave the group.
    pub leaves: u64,
    /// With a `group.instance.id`.
    pub is_static: bool,
}

#[derive(Debug)]
enum Note {
    Topic,
    Coordinator,
    Join,
    Sync(i32),
    Heartbeat,
    Commit(Vec<(Tp, usize)>),
    Offsets,
    Fetch(Vec<i32>),
    Leave,
}

/// Where it stands with its group.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Standing {
    Outside,
    /// It has an id, or none, and must join.
    Joining,
    Syncing {
        generation: i32,
    },
    /// It has partitions, and no positions yet.
    Positioning {
        generation: i32,
        partitions: Vec<i32>,
    },
    Settled {
        generation: i32,
        partitions: Vec<i32>,
    },
}

#[derive(Clone, Copy, Debug)]
struct Versions {
    find: i16,
    join: i16,
    sync: i16,
    heartbeat: i16,
    leave: i16,
    commit: i16,
    offsets: i16,
    fetch: i16,
}

/// A member.
#[derive(Debug)]
pub struct Member {
    id: u32,
    plan: MemberPlan,
    group: String,
    instance: Option<String>,
    peer: Peer<Note>,
    finder: TopicFinder,
    topic: Option<Topic>,
    versions: Versions,
    standing: Standing,
    member_id: String,
    /// What the leader is to share out: members of the generation.
    led: Option<Vec<String>>,
    positions: BTreeMap<i32, i64>,
    knows_coordinator: bool,
    at: Instant,
    heartbeat_at: Instant,
    commit_at: Instant,
    stopped: bool,
    left: bool,
}

const FETCH: ConsumerPlan = ConsumerPlan {
    max_wait_ms: 100,
    min_bytes: 1,
    max_bytes: 1 << 20,
    partition_bytes: 4096,
    pace_us: (0, 0),
    reset_percent: 0,
    slow: None,
};

const PROTOCOL: &str = "shares";

impl Member {
    /// A member of `group`, which reads `topic`.
    #[must_use]
    pub fn new(id: u32, group: &str, topic: &str, plan: MemberPlan, cx: &mut Cx<'_>) -> Self {
        let mut from = |low: u64, since_static: u64, high: u64| {
            cx.rng.within(if plan.is_static { since_static } else { low }, high) as i16
        };
        let versions = Versions {
            find: from(0, 0, 6),
            join: from(0, 5, 9),
            sync: from(0, 3, 5),
            heartbeat: from(0, 3, 4),
            leave: from(0, 3, 5),
            commit: from(2, 7, 9),
            offsets: from(1, 1, 9),
            fetch: from(4, 4, 17),
        };
        Self {
            id,
            plan,
            group: group.into(),
            instance: plan.is_static.then(|| format!("instance-{id}")),
            peer: Peer::new(format!("member {id} of {group}")),
            finder: TopicFinder::new(topic, cx),
            topic: None,
            versions,
            standing: Standing::Outside,
            member_id: String::new(),
            led: None,
            positions: BTreeMap::new(),
            knows_coordinator: false,
            at: cx.now,
            heartbeat_at: cx.now,
            commit_at: cx.now,
            stopped: false,
            left: false,
        }
    }

    fn stand(&mut self, standing: Standing, cx: &mut Cx<'_>) {
        let settled = match &standing {
            Standing::Settled { generation, partitions } => Some((*generation, partitions.clone())),
            _ => None,
        };
        cx.model.on_settled(&self.group, self.id, settled);
        self.standing = standing;
    }

    /// What every member does on these errors; false for others.
    fn on_group_error(&mut self, error: ErrorCode, cx: &mut Cx<'_>) -> bool {
        match error {
            ErrorCode::REBALANCE_IN_PROGRESS => self.stand(Standing::Joining, cx),
            ErrorCode::UNKNOWN_MEMBER_ID => {
                self.member_id.clear();
                self.stand(Standing::Joining, cx);
            }
            ErrorCode::ILLEGAL_GENERATION => self.stand(Standing::Joining, cx),
            ErrorCode::KAFKA_STORAGE_ERROR if cx.disk_fails => self.at = cx.soon(50_000, 500_000),
            ErrorCode::COORDINATOR_NOT_AVAILABLE if cx.disk_fails => self.at = cx.soon(50_000, 500_000),
            ErrorCode::COORDINATOR_LOAD_IN_PROGRESS | ErrorCode::NOT_COORDINATOR => self.at = cx.soon(50_000, 500_000),
            _ => return false,
        }
        true
    }

    fn on_reply(&mut self, asked: Asked<Note>, frame: &[u8], cx: &mut Cx<'_>) {
        let (key, version) = (asked.key, asked.version);
        match asked.note {
            Note::Topic => {
                self.topic = self.finder.on_reply(version, frame, cx);
                self.at = self.at.max(cx.soon(1_000, 100_000));
            }
            Note::Coordinator => {
                let reply: FindCoordinatorResponse<'_> = wire::reply(key, version, frame);
                let (error, port) = match reply.coordinators.iter().next() {
                    Some(c) if version >= 4 => {
                        assert_eq!(c.key, self.group);
                        (c.error_code, c.port)
                    }
                    _ => (reply.error_code, reply.port),
                };
                assert_eq!((error, port), (ErrorCode::NONE, 9092), "{}", self.peer.name());
                self.knows_coordinator = true;
                self.stand(Standing::Joining, cx);
            }
            Note::Join => self.on_joined(&wire::reply(key, version, frame), cx),
            Note::Sync(generation) => self.on_synced(generation, &wire::reply(key, version, frame), cx),
            Note::Heartbeat => {
                let reply: HeartbeatResponse = wire::reply(key, version, frame);
                let known = reply.error_code == ErrorCode::NONE || self.on_group_error(reply.error_code, cx);
                assert!(known, "{}: heartbeat: {:?}", self.peer.name(), reply.error_code);
            }
            Note::Commit(commits) => self.on_committed(commits, &wire::reply(key, version, frame), cx),
            Note::Offsets => self.on_offsets(version, asked.at, frame, cx),
            Note::Fetch(wanted) => {
                let topic = self.topic.clone().expect("a topic that was asked for");
                let name = self.peer.name();
                match take_reply(name, version, frame, &topic, &wanted, asked.at, &mut self.positions, cx) {
                    Ok(_) => self.at = cx.soon(1_000, 200_000),
                    Err(ErrorCode::OFFSET_OUT_OF_RANGE) => {
                        for partition in wanted {
                            let start = cx.model.log_start((topic.id, partition));
                            let position = self.positions.entry(partition).or_default();
                            *position = start.max(if cx.lossy { 0 } else { *position });
                        }
                    }
                    Err(_) => self.at = cx.soon(50_000, 500_000),
                }
            }
            Note::Leave => {
                self.member_id.clear();
                self.left = self.stopped;
                self.stand(Standing::Joining, cx);
                self.at = cx.soon(100_000, 5_000_000);
            }
        }
    }

    fn on_joined(&mut self, reply: &JoinGroupResponse<'_>, cx: &mut Cx<'_>) {
        match reply.error_code {
            ErrorCode::NONE => {
                reply.member_id.clone_into(&mut self.member_id);
                let members: Vec<String> = reply.members.iter().map(|m| m.member_id.to_owned()).collect();
                let protocol = reply.protocol_name.unwrap_or_default();
                assert_eq!(protocol, PROTOCOL, "{}", self.peer.name());
                cx.model.on_joined(
                    &self.group,
                    reply.generation_id,
                    reply.member_id,
                    reply.leader,
                    protocol,
                    &members,
                );
                let leads = reply.leader == reply.member_id && !reply.skip_assignment;
                self.led = leads.then_some(members);
                self.stand(
                    Standing::Syncing {
                        generation: reply.generation_id,
                    },
                    cx,
                );
            }
            ErrorCode::MEMBER_ID_REQUIRED => {
                assert!(
                    self.member_id.is_empty() && self.versions.join >= 4 && !self.plan.is_static,
                    "{}",
                    self.peer.name()
                );
                assert!(!reply.member_id.is_empty());
                reply.member_id.clone_into(&mut self.member_id);
            }
            // A static member that came back under its name has driven this one out; here it is the same one.
            ErrorCode::FENCED_INSTANCE_ID => self.member_id.clear(),
            ErrorCode::GROUP_MAX_SIZE_REACHED => {
                assert!(!cx.roomy, "{}: no room in the group", self.peer.name());
                self.at = cx.soon(500_000, 2_000_000);
            }
            error => assert!(self.on_group_error(error, cx), "{}: join: {error:?}", self.peer.name()),
        }
    }

    fn on_synced(&mut self, generation: i32, reply: &SyncGroupResponse<'_>, cx: &mut Cx<'_>) {
        match reply.error_code {
            ErrorCode::NONE => {
                cx.model.on_assigned(
                    &self.group,
                    generation,
                    &self.member_id,
                    reply.assignment,
                    self.plan.is_static,
                );
                let partitions = reply.assignment.iter().map(|p| i32::from(*p)).collect();
                self.heartbeat_at = cx.now + Millis(self.plan.heartbeat_ms);
                self.commit_at = cx.now + Millis(self.plan.commit_ms);
                self.positions.clear();
                self.stand(Standing::Positioning { generation, partitions }, cx);
            }
            ErrorCode::FENCED_INSTANCE_ID => {
                self.member_id.clear();
                self.stand(Standing::Joining, cx);
            }
            error => assert!(self.on_group_error(error, cx), "{}: sync: {error:?}", self.peer.name()),
        }
    }

    fn on_offsets(&mut self, version: i16, asked_at: Instant, frame: &[u8], cx: &mut Cx<'_>) {
        let topic = self.topic.clone().expect("a topic that was asked for");
        let Standing::Positioning { generation, partitions } = self.standing.clone() else {
            return;
        };
        match take_offsets(version, frame, &self.group, &topic.name) {
            Ok(offsets) => {
                for partition in &partitions {
                    let tp = (topic.id, *partition);
                    let committed = offsets
                        .get(partition)
                        .copied()
                        .expect("an offset for each partition asked for");
                    cx.model.on_fetched_offset(&self.group, tp, committed, asked_at, cx.now);
                    let start = cx.model.log_start(tp);
                    self.positions.insert(*partition, committed.max(start));
                }
                self.stand(Standing::Settled { generation, partitions }, cx);
            }
            Err(error) => assert!(
                self.on_group_error(error, cx),
                "{}: offsets: {error:?}",
                self.peer.name()
            ),
        }
    }

    fn on_committed(&mut self, commits: Vec<(Tp, usize)>, reply: &OffsetCommitResponse<'_>, cx: &mut Cx<'_>) {
        let topic = reply.topics.iter().next().expect("an answer for the topic");
        let answers: Vec<_> = topic.partitions.iter().collect();
        assert_eq!(
            answers.len(),
            commits.len(),
            "{}: partitions in the reply",
            self.peer.name()
        );
        for ((tp, number), answer) in commits.into_iter().zip(answers) {
            assert_eq!(answer.partition_index, tp.1);
            match answer.error_code {
                ErrorCode::NONE => cx.model.on_commit_answered(&self.group, tp, number, cx.now, true),
                // The flush took too long, or the disk failed: nobody knows whether it counts.
                ErrorCode::COORDINATOR_NOT_AVAILABLE => self.at = cx.soon(50_000, 500_000),
                error if error == ErrorCode::KAFKA_STORAGE_ERROR => {
                    assert!(
                        self.on_group_error(error, cx),
                        "{}: commit: {error:?}",
                        self.peer.name()
                    );
                }
                error => {
                    cx.model.on_commit_answered(&self.group, tp, number, cx.now, false);
                    assert!(
                        self.on_group_error(error, cx),
                        "{}: commit: {error:?}",
                        self.peer.name()
                    );
                }
            }
        }
    }

    fn join(&mut self, cx: &mut Cx<'_>) {
        let protocols = [JoinGroupRequestProtocol {
            name: PROTOCOL,
            metadata: &self.id.to_be_bytes(),
        }];
        let call = JoinGroupRequest {
            group_id: &self.group,
            session_timeout_ms: self.plan.session_timeout_ms,
            rebalance_timeout_ms: self.plan.rebalance_timeout_ms,
            member_id: &self.member_id.clone(),
            group_instance_id: self.instance.as_deref(),
            protocol_type: "consumer",
            protocols: Array::Slice(&protocols),
            reason: None,
        };
        self.peer.ask(
            cx,
            self.versions.join,
            &call,
            Millis::from_wire(self.plan.rebalance_timeout_ms),
            Note::Join,
        );
    }

    fn sync(&mut self, generation: i32, cx: &mut Cx<'_>) {
        let partitions = self.topic.as_ref().map_or(0, |t| t.partitions);
        let members: BTreeSet<String> = self.led.take().unwrap_or_default().into_iter().collect();
        let shares: Vec<(String, Vec<u8>)> = members
            .iter()
            .enumerate()
            .map(|(n, member)| {
                let share = (0..partitions as u8)
                    .filter(|p| usize::from(*p) % members.len() == n)
                    .collect();
                (member.clone(), share)
            })
            .collect();
        cx.model.on_assigning(&self.group, generation, &shares);
        let assignments: Vec<_> = shares
            .iter()
            .map(|(member_id, assignment)| SyncGroupRequestAssignment { member_id, assignment })
            .collect();
        let call = SyncGroupRequest {
            group_id: &self.group,
            generation_id: generation,
            member_id: &self.member_id.clone(),
            group_instance_id: self.instance.as_deref(),
            protocol_type: Some("consumer"),
            protocol_name: Some(PROTOCOL),
            assignments: Array::Slice(&assignments),
        };
        self.peer.ask(
            cx,
            self.versions.sync,
            &call,
            Millis::from_wire(self.plan.rebalance_timeout_ms),
            Note::Sync(generation),
        );
    }

    fn heartbeat(&mut self, generation: i32, cx: &mut Cx<'_>) {
        self.heartbeat_at = cx.now + Millis(self.plan.heartbeat_ms);
        let call = HeartbeatRequest {
            group_id: &self.group,
            generation_id: generation,
            member_id: &self.member_id.clone(),
            group_instance_id: self.instance.as_deref(),
        };
        self.peer
            .ask(cx, self.versions.heartbeat, &call, Millis(0), Note::Heartbeat);
    }

    fn commit(&mut self, generation: i32, partitions: &[i32], cx: &mut Cx<'_>) {
        self.commit_at = cx.now + Millis(self.plan.commit_ms);
        let topic = self.topic.clone().expect("a topic to commit for");
        let mut notes = Vec::new();
        let mut offsets = Vec::new();
        for partition in partitions {
            let offset = self.positions.get(partition).copied().unwrap_or(0);
            let tp = (topic.id, *partition);
            notes.push((tp, cx.model.on_commit(&self.group, tp, offset, cx.now)));
            offsets.push(OffsetCommitRequestPartition {
                partition_index: *partition,
                committed_offset: offset,
                committed_metadata: Some("model"),
                ..Default::default()
            });
        }
        let of_topic = OffsetCommitRequestTopic {
            name: &topic.name,
            partitions: Array::Slice(&offsets),
        };
        let call = OffsetCommitRequest {
            group_id: &self.group,
            generation_id_or_member_epoch: generation,
            member_id: &self.member_id.clone(),
            group_instance_id: self.instance.as_deref(),
            topics: Array::one(&of_topic),
            ..Default::default()
        };
        self.peer
            .ask(cx, self.versions.commit, &call, Millis(0), Note::Commit(notes));
    }

    fn leave_group(&mut self, cx: &mut Cx<'_>) {
        let member_id = self.member_id.clone();
        let who = MemberIdentity {
            member_id: &member_id,
            group_instance_id: self.instance.as_deref(),
            reason: None,
        };
        let call = LeaveGroupRequest {
            group_id: &self.group,
            member_id: &member_id,
            members: Array::one(&who),
        };
        self.peer.ask(cx, self.versions.leave, &call, Millis(0), Note::Leave);
        cx.model.on_settled(&self.group, self.id, None);
    }

    fn act(&mut self, cx: &mut Cx<'_>) {
        if self.topic.is_none() {
            return self.finder.ask(&mut self.peer, cx, Note::Topic);
        }
        if !self.knows_coordinator {
            let group = [self.group.as_str()];
            let call = FindCoordinatorRequest {
                key: &self.group,
                key_type: 0,
                coordinator_keys: Array::Slice(&group),
            };
            return self
                .peer
                .ask(cx, self.versions.find, &call, Millis(0), Note::Coordinator);
        }
        if self.stopped && !self.member_id.is_empty() && !matches!(self.standing, Standing::Outside) {
            return self.leave_group(cx);
        }
        match self.standing.clone() {
            Standing::Outside | Standing::Joining if self.stopped => self.left = true,
            Standing::Outside | Standing::Joining => self.join(cx),
            Standing::Syncing { generation } => self.sync(generation, cx),
            Standing::Positioning { partitions, .. } => {
                let topic = self.topic.clone().expect("a topic");
                ask_offsets(
                    &mut self.peer,
                    cx,
                    self.versions.offsets,
                    &self.group,
                    &topic.name,
                    &partitions,
                    Note::Offsets,
                );
            }
            Standing::Settled { generation, partitions } => {
                if cx.rng.below(1000) < self.plan.leaves {
                    self.leave_group(cx);
                } else if cx.rng.below(1000) < self.plan.naps {
                    self.at = cx.soon(1_000_000, 30_000_000);
                } else if cx.now >= self.heartbeat_at {
                    self.heartbeat(generation, cx);
                } else if cx.now >= self.commit_at && !partitions.is_empty() {
                    self.commit(generation, &partitions, cx);
                } else if partitions.is_empty() {
                    self.at = self.heartbeat_at;
                } else {
                    let topic = self.topic.clone().expect("a topic");
                    let version = self.versions.fetch;
                    let note = Note::Fetch(partitions.clone());
                    ask_fetch(
                        &mut self.peer,
                        cx,
                        version,
                        &topic,
                        &partitions,
                        &self.positions,
                        &FETCH,
                        note,
                    );
                }
            }
        }
    }
}

impl Actor for Member {
    fn step(&mut self, cx: &mut Cx<'_>) {
        for heard in self.peer.hear(cx) {
            match heard {
                Heard::Reply(asked, frame) => self.on_reply(asked, &frame, cx),
                Heard::Over(_) => {
                    self.at = self.at.max(cx.soon(1_000, 300_000));
                    // What it had joined or synced is not known: begin again under the id that it has.
                    self.stand(Standing::Joining, cx);
                }
            }
        }
        if cx.now < self.at || self.peer.waiting() > 0 || self.is_done() {
            return;
        }
        if !self.peer.is_connected() {
            self.peer.connect(cx);
        }
        self.act(cx);
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
        self.left
    }

    fn stop(&mut self) {
        self.stopped = true;
    }

    fn settle(&mut self) {
        self.plan.naps = 0;
        self.plan.leaves = 0;
    }

    fn leave(&mut self, cx: &mut Cx<'_>) {
        self.stopped = true;
        self.left = true;
        let _ = self.peer.close(cx);
        cx.model.on_settled(&self.group, self.id, None);
    }

    fn name(&self) -> &str {
        self.peer.name()
    }
}
