//! A consumer: reads one topic's partitions from the start on, waiting for more, and never believes what it cannot check.

use std::collections::BTreeMap;

use skerry_core::api::ApiKey;
use skerry_core::api::fetch::{FetchPartition, FetchRequest, FetchResponse, FetchTopic};
use skerry_core::error_code::ErrorCode;
use skerry_core::time::{Instant, Millis};
use skerry_core::wire::Array;

use super::topic::{Topic, TopicFinder};
use super::{Actor, Cx};
use crate::sim::model::Rec;
use crate::sim::net::FakeNet;
use crate::sim::peer::{Heard, Peer};
use crate::wire;

/// What kind of consumer.
#[derive(Clone, Copy, Debug)]
pub struct ConsumerPlan {
    /// How long its fetches wait.
    pub max_wait_ms: i32,
    /// For how many bytes.
    pub min_bytes: i32,
    /// Most bytes in a reply.
    pub max_bytes: i32,
    /// Most bytes from one partition.
    pub partition_bytes: i32,
    /// Microseconds between a reply and the next fetch, from and to.
    pub pace_us: (u64, u64),
    /// Of a hundred steps, how many end in a reset of the connection.
    pub reset_percent: u64,
    /// Bytes read from the socket at once, and the pause between; else all there is.
    pub slow: Option<(usize, u64)>,
}

/// Data that lies there for so long without its parked fetch being answered has been forgotten.
const WAKE_WITHIN: Millis = Millis(60_000);

/// How often that is looked at.
const LOOK: Millis = Millis(10_000);

#[derive(Debug)]
enum Note {
    Find,
    Fetch { max_wait_ms: i32, wanted: Vec<i32> },
}

/// What a consumer makes of one fetch reply; the auditor reads with it too.
///
/// Checks that the reply answers what was asked, that its records are whole, contiguous, below the high watermark and as they were
/// sent, and tells the model. Moves `positions` on; the records' `(partition, offset, timestamp, record)` come out.
#[allow(clippy::too_many_arguments)]
pub fn take_reply(
    name: &str,
    version: i16,
    frame: &[u8],
    topic: &Topic,
    wanted: &[i32],
    asked_at: Instant,
    positions: &mut BTreeMap<i32, i64>,
    cx: &mut Cx<'_>,
) -> Result<Vec<(i32, i64, i64, Rec)>, ErrorCode> {
    let reply: FetchResponse<'_> = wire::reply(ApiKey::Fetch, version, frame);
    assert_eq!((reply.error_code, reply.session_id), (ErrorCode::NONE, 0), "{name}");
    let topics: Vec<_> = reply.responses.iter().collect();
    assert_eq!(topics.len(), 1, "{name}: topics in the reply");
    let answers: Vec<_> = topics[0].partitions.iter().collect();
    assert_eq!(
        answers.iter().map(|a| a.partition_index).collect::<Vec<_>>(),
        wanted,
        "{name}: partitions in the reply"
    );
    let mut out = Vec::new();
    let mut failed = None;
    for answer in answers {
        let tp = (topic.id, answer.partition_index);
        let position = positions.entry(answer.partition_index).or_default();
        match answer.error_code {
            ErrorCode::NONE => {}
            ErrorCode::OFFSET_OUT_OF_RANGE => {
                // Right only below the log's start; a position above the end would mean that records were taken back.
                assert!(
                    *position < answer.log_start_offset.max(cx.model.log_start(tp))
                        || cx.lossy
                        || answer.log_start_offset < 0,
                    "{name}: {tp:?}: position {position} is out of range, the log starts at {}",
                    answer.log_start_offset
                );
                failed = Some(answer.error_code);
                continue;
            }
            ErrorCode::KAFKA_STORAGE_ERROR if cx.disk_fails => {
                failed = Some(answer.error_code);
                continue;
            }
            error => panic!("{name}: fetch of {tp:?} at {position}: {error:?}"),
        }
        cx.model
            .on_ends(tp, answer.log_start_offset, answer.high_watermark, asked_at, cx.now);
        assert_eq!(
            answer.last_stable_offset, answer.high_watermark,
            "{name}: without transactions all is stable"
        );
        for record in wire::records(answer.records.bytes()) {
            // A batch that holds the position may begin before it.
            if record.offset < *position {
                continue;
            }
            assert_eq!(record.offset, *position, "{name}: {tp:?}: an offset was skipped");
            assert!(
                record.offset < answer.high_watermark,
                "{name}: {tp:?}: offset {} at a high watermark of {}",
                record.offset,
                answer.high_watermark
            );
            let rec = Rec::of(&record);
            cx.model.on_seen(tp, record.offset, rec);
            out.push((answer.partition_index, record.offset, record.timestamp, rec));
            *position += 1;
        }
    }
    failed.map_or(Ok(out), Err)
}

/// Asks for `wanted` partitions from their positions on.
#[allow(clippy::too_many_arguments)]
pub fn ask_fetch<T>(
    peer: &mut Peer<T>,
    cx: &mut Cx<'_>,
    version: i16,
    topic: &Topic,
    wanted: &[i32],
    positions: &BTreeMap<i32, i64>,
    plan: &ConsumerPlan,
    note: T,
) {
    let partitions: Vec<_> = wanted
        .iter()
        .map(|partition| FetchPartition {
            partition: *partition,
            fetch_offset: positions.get(partition).copied().unwrap_or(0),
            partition_max_bytes: plan.partition_bytes,
            ..Default::default()
        })
        .collect();
    let fetch = FetchTopic {
        topic: &topic.name,
        topic_id: topic.id,
        partitions: Array::Slice(&partitions),
    };
    let call = FetchRequest {
        max_wait_ms: plan.max_wait_ms,
        min_bytes: plan.min_bytes,
        max_bytes: plan.max_bytes,
        topics: Array::one(&fetch),
        ..Default::default()
    };
    peer.ask(cx, version, &call, Millis::from_wire(plan.max_wait_ms), note);
}

/// A consumer.
#[derive(Debug)]
pub struct Consumer {
    plan: ConsumerPlan,
    peer: Peer<Note>,
    finder: TopicFinder,
    version: i16,
    topic: Option<Topic>,
    positions: BTreeMap<i32, i64>,
    at: Instant,
    /// Since when data has been there that the fetch on its way should bring.
    due_since: Option<Instant>,
    /// When it looks whether it has been forgotten.
    look_at: Instant,
    stopped: bool,
}

impl Consumer {
    /// A consumer of `topic`.
    #[must_use]
    pub fn new(id: u32, topic: &str, plan: ConsumerPlan, cx: &mut Cx<'_>) -> Self {
        let mut peer = Peer::new(format!("consumer {id}"));
        if let Some((bytes, _)) = plan.slow {
            peer.read_bytes = bytes;
        }
        Self {
            plan,
            peer,
            finder: TopicFinder::new(topic, cx),
            version: cx.rng.within(4, 17) as i16,
            topic: None,
            positions: BTreeMap::new(),
            at: cx.now,
            due_since: None,
            look_at: cx.now,
            stopped: false,
        }
    }

    fn on_fetched(
        &mut self,
        version: i16,
        wanted: &[i32],
        asked_at: Instant,
        wait: i32,
        frame: &[u8],
        cx: &mut Cx<'_>,
    ) {
        let topic = self.topic.clone().expect("a topic that was asked for");
        self.due_since = None;
        match take_reply(
            self.peer.name(),
            version,
            frame,
            &topic,
            wanted,
            asked_at,
            &mut self.positions,
            cx,
        ) {
            Ok(records) => {
                let (from, to) = self.plan.pace_us;
                self.at = cx.soon(from, to);
                // Nothing came although it would have waited: only as long as that, and a stopping broker answers at once.
                let early =
                    self.plan.min_bytes > 0 && records.is_empty() && cx.now < asked_at + Millis::from_wire(wait);
                assert!(
                    !early || cx.stopping || !cx.roomy,
                    "{}: an empty answer before its time",
                    self.peer.name()
                );
            }
            Err(ErrorCode::OFFSET_OUT_OF_RANGE) => {
                for partition in wanted {
                    let start = cx.model.log_start((topic.id, *partition));
                    let end = cx.model.watermark((topic.id, *partition));
                    let position = self.positions.entry(*partition).or_default();
                    *position = if *position < start { start } else { (*position).min(end) };
                }
                self.at = cx.soon(1_000, 100_000);
            }
            Err(_) => self.at = cx.soon(50_000, 500_000),
        }
    }

    /// A fetch that is parked while what it waits for is there has been forgotten.
    fn check_wake(&mut self, cx: &Cx<'_>) {
        let Some(topic) = &self.topic else { return };
        let wanted = self.peer.asked().find_map(|a| match &a.note {
            Note::Fetch { wanted, .. } => Some(wanted),
            Note::Find => None,
        });
        let behind = wanted.into_iter().flatten().any(|partition| {
            let at = self.positions.get(partition).copied().unwrap_or(0);
            cx.model.readable_end((topic.id, *partition)) > at
        });
        if !behind || self.plan.min_bytes > 1 || self.plan.slow.is_some() || cx.disk_fails {
            self.due_since = None;
            return;
        }
        let since = *self.due_since.get_or_insert(cx.now);
        assert!(
            cx.now < since + WAKE_WITHIN,
            "{}: data was there since {since:?} and nobody woke its fetch: {:?}, {:?}",
            self.peer.name(),
            self.positions,
            self.peer
        );
    }
}

impl Actor for Consumer {
    fn step(&mut self, cx: &mut Cx<'_>) {
        for heard in self.peer.hear(cx) {
            match heard {
                Heard::Reply(asked, frame) => match asked.note {
                    Note::Find => {
                        self.topic = self.finder.on_reply(asked.version, &frame, cx);
                        if let Some(topic) = &self.topic {
                            self.positions = (0..topic.partitions)
                                .map(|p| (p, cx.model.log_start((topic.id, p))))
                                .collect();
                        }
                        self.at = self.at.max(cx.soon(1_000, 300_000));
                    }
                    Note::Fetch { max_wait_ms, wanted } => {
                        self.on_fetched(asked.version, &wanted, asked.at, max_wait_ms, &frame, cx);
                    }
                },
                Heard::Over(_) => {
                    self.due_since = None;
                    self.at = self.at.max(cx.soon(1_000, 500_000));
                }
            }
        }
        // Perhaps in the middle of a reply.
        if self.peer.is_connected() && !self.stopped && cx.rng.percent(self.plan.reset_percent) {
            let _ = if cx.rng.percent(50) {
                self.peer.reset(cx)
            } else {
                self.peer.close(cx)
            };
            self.due_since = None;
            self.at = cx.soon(1_000, 500_000);
            return;
        }
        self.check_wake(cx);
        self.look_at = cx.now + LOOK;
        if cx.now < self.at {
            return;
        }
        if let Some((_, pause)) = self.plan.slow {
            self.at = cx.soon(pause, pause * 2);
        }
        if self.stopped || self.peer.waiting() > 0 {
            return;
        }
        if !self.peer.is_connected() {
            self.peer.connect(cx);
        }
        match self.topic.clone() {
            None => self.finder.ask(&mut self.peer, cx, Note::Find),
            Some(topic) => {
                let mut wanted: Vec<i32> = (0..topic.partitions).collect();
                if cx.rng.percent(30) {
                    wanted = vec![cx.rng.below(topic.partitions as u64) as i32];
                }
                let note = Note::Fetch {
                    max_wait_ms: self.plan.max_wait_ms,
                    wanted: wanted.clone(),
                };
                ask_fetch(
                    &mut self.peer,
                    cx,
                    self.version,
                    &topic,
                    &wanted,
                    &self.positions,
                    &self.plan,
                    note,
                );
            }
        }
    }

    fn next_at(&self, net: &FakeNet) -> Instant {
        let news = self.peer.news_at(net);
        match self.plan.slow {
            Some(_) => self.at,
            None if self.peer.waiting() > 0 => news.min(self.look_at),
            None if self.stopped => news,
            None => news.min(self.at),
        }
    }

    fn is_done(&self) -> bool {
        self.stopped && self.peer.waiting() == 0
    }

    /// A parked fetch is given up with its connection, as a consumer that closes does.
    fn must_end(&self) -> bool {
        false
    }

    fn stop(&mut self) {
        self.stopped = true;
    }

    /// In a long time of calm, one that never waits would do nothing else but ask.
    fn settle(&mut self) {
        self.plan.pace_us = (100_000, 1_000_000);
    }

    fn leave(&mut self, cx: &mut Cx<'_>) {
        self.stopped = true;
        self.due_since = None;
        let _ = self.peer.close(cx);
    }

    fn name(&self) -> &str {
        self.peer.name()
    }
}
