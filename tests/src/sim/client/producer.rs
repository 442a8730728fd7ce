//! A producer: batches to the partitions of one topic, pipelined, with what idempotence and each kind of acknowledgement allow on an
//! error.
//!
//! An idempotent one never gives a batch up: after an error or a lost connection it waits until nothing is on its way and sends again
//! from the oldest unacknowledged batch on, with the same sequences. Others never send a batch twice.

use std::collections::{BTreeMap, VecDeque};

use skerry_core::api::init_producer_id::{InitProducerIdRequest, InitProducerIdResponse};
use skerry_core::api::produce::{PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData};
use skerry_core::error_code::ErrorCode;
use skerry_core::time::{Instant, Millis};
use skerry_core::wire::{Array, Records};

use super::topic::{Topic, TopicFinder};
use super::{Actor, Cx};
use crate::sim::model::Rec;
use crate::sim::peer::{Asked, Heard, Peer};
use crate::wire::{self, TestRecord};

/// What kind of producer.
#[derive(Clone, Copy, Debug)]
pub struct ProducerPlan {
    /// 0, 1 or −1.
    pub acks: i16,
    /// With a producer id; then `acks` is −1.
    pub idempotent: bool,
    /// Requests on their way at once.
    pub in_flight: usize,
    /// Batches to send.
    pub batches: u32,
    /// Most records in a batch.
    pub batch_records: u64,
    /// Most bytes of a record.
    pub record_bytes: u64,
    /// Microseconds between two requests, from and to.
    pub pace_us: (u64, u64),
    /// `timeout.ms` of its requests.
    pub timeout_ms: i32,
    /// Of a hundred steps, how many end in a reset of the connection.
    pub reset_percent: u64,
}

#[derive(Clone, Debug)]
struct Batch {
    partition: i32,
    records: Vec<TestRecord>,
    recs: Vec<Rec>,
    sequence: i32,
}

#[derive(Debug)]
enum Note {
    Find,
    Init,
    /// Batches by number, one for each partition.
    Produce(Vec<u64>),
}

/// A producer.
#[derive(Debug)]
pub struct Producer {
    plan: ProducerPlan,
    /// Whose records they are. What two connections carried may be appended in any order, unless a producer id stands behind both:
    /// without one, each connection sends as somebody else.
    id: u32,
    peer: Peer<Note>,
    finder: TopicFinder,
    topic: Option<Topic>,
    identity: Option<(i64, i16)>,
    version: i16,
    next_number: u32,
    next_batch: u64,
    sequences: BTreeMap<i32, i32>,
    /// Batches not acknowledged, by number.
    batches: BTreeMap<u64, Batch>,
    /// Not sent yet, or to be sent again.
    to_send: VecDeque<u64>,
    /// Sending again waits until nothing is on its way.
    holding: bool,
    made: u32,
    at: Instant,
    stopped: bool,
}

impl Producer {
    /// A producer to `topic`.
    #[must_use]
    pub fn new(id: u32, topic: &str, plan: ProducerPlan, cx: &mut Cx<'_>) -> Self {
        let version = cx.rng.within(3, 13) as i16;
        Self {
            plan,
            id,
            peer: Peer::new(format!(
                "producer {id} (acks {}, idempotent {})",
                plan.acks, plan.idempotent
            )),
            finder: TopicFinder::new(topic, cx),
            topic: None,
            identity: None,
            version,
            next_number: 0,
            next_batch: 0,
            sequences: BTreeMap::new(),
            batches: BTreeMap::new(),
            to_send: VecDeque::new(),
            holding: false,
            made: 0,
            at: cx.now,
            stopped: false,
        }
    }

    fn on_over(&mut self, asked: Vec<Asked<Note>>, cx: &mut Cx<'_>) {
        for asked in asked {
            if let Note::Produce(numbers) = asked.note {
                self.give_back(&numbers);
            }
        }
        if !self.plan.idempotent {
            self.id += 1_000;
        }
        self.at = self.at.max(cx.soon(1_000, 500_000));
    }

    /// What a client does on a fatal error: drops what it has and becomes another producer.
    fn begin_anew(&mut self) {
        self.id += 1_000;
        self.identity = None;
        self.batches.clear();
        self.to_send.clear();
        self.sequences.clear();
        self.holding = false;
    }

    /// These were not acknowledged.
    fn give_back(&mut self, numbers: &[u64]) {
        if self.plan.idempotent {
            self.to_send.extend(numbers);
            self.holding = true;
        } else {
            for number in numbers {
                self.batches.remove(number);
            }
        }
    }

    fn on_reply(&mut self, asked: Asked<Note>, frame: &[u8], cx: &mut Cx<'_>) {
        match asked.note {
            Note::Find => {
                self.topic = self.finder.on_reply(asked.version, frame, cx);
                if self.topic.is_none() {
                    self.at = cx.soon(10_000, 300_000);
                }
            }
            Note::Init => {
                let reply: InitProducerIdResponse = wire::reply(asked.key, asked.version, frame);
                match reply.error_code {
                    ErrorCode::NONE => {
                        cx.model.on_producer_id(reply.producer_id);
                        assert_eq!(reply.producer_epoch, 0);
                        self.identity = Some((reply.producer_id, reply.producer_epoch));
                    }
                    error => {
                        assert!(
                            error.is_retriable() || error == ErrorCode::KAFKA_STORAGE_ERROR,
                            "{}: {error:?}",
                            self.peer.name()
                        );
                        self.at = cx.soon(10_000, 300_000);
                    }
                }
            }
            Note::Produce(numbers) => self.on_produced(asked.version, &numbers, frame, cx),
        }
    }

    fn on_produced(&mut self, version: i16, numbers: &[u64], frame: &[u8], cx: &mut Cx<'_>) {
        let Some(topic) = self.topic.clone() else { return };
        let reply: ProduceResponse<'_> = wire::reply(skerry_core::api::ApiKey::Produce, version, frame);
        let topics: Vec<_> = reply.responses.iter().collect();
        assert_eq!(topics.len(), 1, "{}: topics in the reply", self.peer.name());
        if version >= 13 {
            assert_eq!(topics[0].topic_id, topic.id);
        } else {
            assert_eq!(topics[0].name, topic.name);
        }
        let answers: Vec<_> = topics[0].partition_responses.iter().collect();
        assert_eq!(
            answers.len(),
            numbers.len(),
            "{}: partitions in the reply",
            self.peer.name()
        );
        for (number, answer) in numbers.iter().zip(answers) {
            let Some(batch) = self.batches.get(number) else {
                continue;
            };
            assert_eq!(
                answer.index,
                batch.partition,
                "{}: partition in the reply",
                self.peer.name()
            );
            let name = self.peer.name();
            match answer.error_code {
                ErrorCode::NONE => {
                    cx.model.on_acked(
                        (topic.id, batch.partition),
                        answer.base_offset,
                        &batch.recs,
                        self.plan.acks,
                    );
                    self.batches.remove(number);
                }
                // The original is older than what the broker remembers, and was acknowledged by a lost reply.
                ErrorCode::DUPLICATE_SEQUENCE_NUMBER if self.plan.idempotent => {
                    self.batches.remove(number);
                }
                // Fine behind a batch that failed on its way; never for the oldest one that is sent again alone.
                ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER if self.plan.idempotent => {
                    let oldest = self
                        .batches
                        .iter()
                        .find(|(_, b)| b.partition == batch.partition)
                        .map(|(n, _)| n);
                    if oldest != Some(number) {
                        self.give_back(&[*number]);
                    } else {
                        // A producer's very first batch may have failed and its second one been taken for the first.
                        let gap = batch.sequence == 0 && cx.disk_fails;
                        assert!(
                            gap || cx.lossy,
                            "{name}: {number} is out of order, and nothing is before it"
                        );
                        self.begin_anew();
                    }
                }
                ErrorCode::KAFKA_STORAGE_ERROR => {
                    assert!(
                        cx.disk_fails || !cx.roomy,
                        "{name}: a storage error on a disk that does not fail"
                    );
                    self.give_back(&[*number]);
                    self.at = cx.soon(50_000, 500_000);
                }
                ErrorCode::REQUEST_TIMED_OUT => {
                    self.give_back(&[*number]);
                    self.at = cx.soon(10_000, 200_000);
                }
                // Made before the clock went back: too far ahead now, and for good.
                ErrorCode::INVALID_TIMESTAMP if cx.clock_jumps && self.plan.idempotent => self.begin_anew(),
                ErrorCode::INVALID_TIMESTAMP if cx.clock_jumps => drop(self.batches.remove(number)),
                error => panic!("{name}: batch {number} of {:?}: {error:?}", batch.recs),
            }
        }
    }

    fn make_batch(&mut self, partition: i32, cx: &mut Cx<'_>) -> u64 {
        let count = cx.rng.within(1, self.plan.batch_records);
        let recs: Vec<Rec> = (0..count as u32)
            .map(|n| Rec {
                client: self.id,
                number: self.next_number + n,
            })
            .collect();
        self.next_number += count as u32;
        let records = recs
            .iter()
            .map(|rec| {
                rec.record(
                    cx.rng.below(self.plan.record_bytes + 1) as usize,
                    cx.wall - cx.rng.below(5_000) as i64,
                )
            })
            .collect();
        let sequence = self.sequences.entry(partition).or_default();
        let batch = Batch {
            partition,
            records,
            recs,
            sequence: *sequence,
        };
        *sequence += count as i32;
        let number = self.next_batch;
        self.next_batch += 1;
        self.batches.insert(number, batch);
        number
    }

    /// The batches of the next request.
    fn next_request(&mut self, cx: &mut Cx<'_>) -> Vec<u64> {
        if self.holding {
            if self.peer.waiting() > 0 {
                return Vec::new();
            }
            // Nothing is on its way: again from the oldest on, in order.
            self.to_send = self.batches.keys().copied().collect();
            self.holding = false;
        }
        let topic = self.topic.as_ref().map_or(0, |t| t.partitions);
        let mut taken: Vec<u64> = Vec::new();
        if let Some(number) = self.to_send.pop_front() {
            taken.push(number);
            // Another partition's batch may go along, when it is next anyway.
            while let Some(next) = self.to_send.front()
                && cx.rng.percent(50)
                && taken
                    .iter()
                    .all(|n| self.batches[n].partition != self.batches[next].partition)
            {
                taken.push(*next);
                self.to_send.pop_front();
            }
            return taken;
        }
        if self.stopped || self.made >= self.plan.batches || self.batches.len() > 20 {
            return taken;
        }
        let first = cx.rng.below(topic as u64) as i32;
        let width = if cx.rng.percent(20) {
            cx.rng.within(1, topic as u64) as i32
        } else {
            1
        };
        for n in 0..width {
            self.made += 1;
            taken.push(self.make_batch((first + n) % topic, cx));
        }
        taken
    }

    fn send(&mut self, numbers: Vec<u64>, cx: &mut Cx<'_>) {
        let topic = self.topic.clone().expect("a topic to send to");
        let bytes: Vec<(i32, Vec<u8>)> = numbers
            .iter()
            .map(|n| {
                let batch = &self.batches[n];
                let producer = self.identity.map(|(id, epoch)| wire::Producer {
                    id,
                    epoch,
                    sequence: batch.sequence,
                });
                (batch.partition, wire::batch(&batch.records, producer))
            })
            .collect();
        let partitions: Vec<_> = bytes
            .iter()
            .map(|(index, bytes)| PartitionProduceData {
                index: *index,
                records: Records::Bytes(bytes),
            })
            .collect();
        let data = TopicProduceData {
            name: &topic.name,
            topic_id: topic.id,
            partition_data: Array::Slice(&partitions),
        };
        let call = ProduceRequest {
            transactional_id: None,
            acks: self.plan.acks,
            timeout_ms: self.plan.timeout_ms,
            topic_data: Array::one(&data),
        };
        if self.plan.acks == 0 {
            self.peer.tell(cx, self.version, &call);
            for number in numbers {
                self.batches.remove(&number);
            }
        } else {
            let patience = Millis::from_wire(self.plan.timeout_ms);
            self.peer.ask(cx, self.version, &call, patience, Note::Produce(numbers));
        }
    }
}

impl Actor for Producer {
    fn step(&mut self, cx: &mut Cx<'_>) {
        for heard in self.peer.hear(cx) {
            match heard {
                Heard::Reply(asked, frame) => self.on_reply(asked, &frame, cx),
                Heard::Over(asked) => self.on_over(asked, cx),
            }
        }
        if cx.now < self.at || self.is_done() {
            return;
        }
        if !self.peer.is_connected() {
            self.peer.connect(cx);
        }
        if cx.rng.percent(self.plan.reset_percent) && !self.stopped {
            let lost = if cx.rng.percent(50) {
                self.peer.reset(cx)
            } else {
                self.peer.close(cx)
            };
            self.on_over(lost, cx);
            return;
        }
        let (from, to) = self.plan.pace_us;
        self.at = cx.soon(from, to);
        if self.topic.is_none() {
            if self.peer.waiting() == 0 {
                self.finder.ask(&mut self.peer, cx, Note::Find);
            }
        } else if self.plan.idempotent && self.identity.is_none() {
            if self.peer.waiting() == 0 {
                let version = cx.rng.below(6) as i16;
                let call = InitProducerIdRequest {
                    transactional_id: None,
                    transaction_timeout_ms: 60_000,
                    ..Default::default()
                };
                self.peer.ask(cx, version, &call, Millis(0), Note::Init);
            }
        } else if self.peer.waiting() < self.plan.in_flight && !self.peer.is_sending() {
            let numbers = self.next_request(cx);
            if !numbers.is_empty() {
                self.send(numbers, cx);
            }
        }
    }

    fn next_at(&self, net: &crate::sim::net::FakeNet) -> Instant {
        let own = if self.is_done() { Instant::NEVER } else { self.at };
        own.min(self.peer.news_at(net))
    }

    fn is_done(&self) -> bool {
        let all_made = self.stopped || self.made >= self.plan.batches;
        all_made && self.batches.is_empty() && self.peer.waiting() == 0 && !self.peer.is_sending()
    }

    fn stop(&mut self) {
        self.stopped = true;
    }

    fn leave(&mut self, cx: &mut Cx<'_>) {
        self.stopped = true;
        let _ = self.peer.close(cx);
        self.batches.clear();
        self.to_send.clear();
    }

    fn name(&self) -> &str {
        self.peer.name()
    }
}
