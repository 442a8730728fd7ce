//! Peers that no broker wants: garbage, lengths that lie, requests cut or changed on their way, connections that say nothing or read
//! nothing. All that is asked of the broker is to stay up, to keep serving the others, and to get rid of them in the end.

use skerry_core::api::ApiKey;
use skerry_core::api::api_versions::ApiVersionsRequest;
use skerry_core::api::create_topics::{CreatableTopic, CreateTopicsRequest};
use skerry_core::api::delete_topics::{DeleteTopicState, DeleteTopicsRequest};
use skerry_core::api::fetch::{FetchPartition, FetchRequest, FetchTopic};
use skerry_core::api::heartbeat::HeartbeatRequest;
use skerry_core::api::join_group::{JoinGroupRequest, JoinGroupRequestProtocol};
use skerry_core::api::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use skerry_core::api::metadata::MetadataRequest;
use skerry_core::api::offset_commit::{OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use skerry_core::api::produce::{PartitionProduceData, ProduceRequest, TopicProduceData};
use skerry_core::time::{Instant, Millis};
use skerry_core::wire::{Array, Records};

use super::{Actor, Cx};
use crate::sim::net::{ClientRead, FakeNet, LinkId};
use crate::wire;

/// The topic and group that hostile peers spoil.
const JUNK: &str = "something-nobody-else-uses";

/// A peer that has not been thrown out for so long although it must be.
const RID_WITHIN: Millis = Millis(600_000);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trick {
    /// Random bytes.
    Garbage,
    /// A length that no request has.
    Length,
    /// The beginning of a request, and nothing more.
    Cut,
    /// Requests with some bytes changed.
    Changed,
    /// A key or version that does not exist.
    Unknown,
    /// Many requests, and never a read.
    Deaf,
    /// A connection, and nothing on it.
    Mute,
    /// Requests and a reset before their replies.
    Reset,
    /// Requests and the end of the stream at once.
    Ended,
}

const TRICKS: [Trick; 9] = [
    Trick::Garbage,
    Trick::Length,
    Trick::Cut,
    Trick::Changed,
    Trick::Unknown,
    Trick::Deaf,
    Trick::Mute,
    Trick::Reset,
    Trick::Ended,
];

#[derive(Debug)]
struct Attack {
    link: LinkId,
    trick: Trick,
    out: Vec<u8>,
    since: Instant,
    /// When it goes by itself.
    until: Instant,
}

/// One of them, connection after connection.
#[derive(Debug)]
pub struct Hostile {
    name: String,
    attack: Option<Attack>,
    attacks: u32,
    pace_us: u64,
    at: Instant,
    stopped: bool,
}

impl Hostile {
    /// One that comes so many times.
    #[must_use]
    pub fn new(id: u32, attacks: u32, pace_us: u64, cx: &mut Cx<'_>) -> Self {
        Self {
            name: format!("hostile {id}"),
            attack: None,
            attacks,
            pace_us,
            at: cx.soon(0, pace_us),
            stopped: false,
        }
    }

    fn begin(&mut self, cx: &mut Cx<'_>) {
        self.attacks -= 1;
        let trick = *cx.rng.pick(&TRICKS);
        let mut out = Vec::new();
        match trick {
            Trick::Garbage => {
                out = vec![0; cx.rng.within(1, 300) as usize];
                cx.rng.fill(&mut out);
            }
            Trick::Length => {
                let lengths = [
                    -1,
                    i32::MIN,
                    i32::MAX,
                    0,
                    1,
                    3,
                    0x1603_0100,
                    i32::from_be_bytes(*b"GET "),
                ];
                out.extend_from_slice(&cx.rng.pick(&lengths).to_be_bytes());
                out.extend_from_slice(&[0; 20]);
            }
            Trick::Cut => {
                let whole = request(cx);
                let cut = cx.rng.within(1, whole.len() as u64 - 1) as usize;
                out.extend_from_slice(&whole[..cut]);
            }
            Trick::Changed => {
                for _ in 0..cx.rng.within(1, 5) {
                    let mut bytes = request(cx);
                    for _ in 0..cx.rng.within(1, 4) {
                        let at = 4 + cx.rng.index(bytes.len() - 4);
                        // Lengths and counts are what hurts most.
                        bytes[at] = *cx.rng.pick(&[0x00, 0x01, 0x7f, 0x80, 0xff, cx.now.as_micros() as u8]);
                    }
                    out.extend(bytes);
                }
            }
            Trick::Unknown => {
                let mut bytes = request(cx);
                let field = if cx.rng.percent(50) { 4 } else { 6 };
                bytes[field..field + 2].copy_from_slice(&(cx.rng.next_u64() as i16).to_be_bytes());
                out.extend(bytes);
            }
            Trick::Deaf => {
                for _ in 0..cx.rng.within(1, 100) {
                    out.extend(request(cx));
                }
            }
            Trick::Mute => {}
            Trick::Reset | Trick::Ended => {
                for _ in 0..cx.rng.within(1, 10) {
                    out.extend(request(cx));
                }
            }
        }
        let link = cx.net.connect(cx.now);
        // Some wait to be thrown out, others lose patience.
        let until = if cx.rng.percent(50) {
            cx.soon(1_000, 5_000_000)
        } else {
            Instant::NEVER
        };
        self.attack = Some(Attack {
            link,
            trick,
            out,
            since: cx.now,
            until,
        });
    }

    fn go_on(&mut self, cx: &mut Cx<'_>) {
        let Some(attack) = &mut self.attack else { return };
        while !attack.out.is_empty() {
            let sent = cx.net.client_write(attack.link, cx.now, &attack.out);
            if sent == 0 {
                break;
            }
            attack.out.drain(..sent);
        }
        let mut over = false;
        let hears = attack.trick != Trick::Deaf;
        while hears && !over {
            match cx.net.client_read(attack.link, cx.now, usize::MAX) {
                ClientRead::Bytes(_) => {}
                ClientRead::Nothing => break,
                ClientRead::End | ClientRead::Reset => over = true,
            }
        }
        if attack.trick == Trick::Ended && attack.out.is_empty() {
            cx.net.client_end(attack.link, cx.now);
        }
        let was_heard = attack.out.is_empty() && cx.rng.percent(50);
        over |= cx.net.is_closed(attack.link);
        if !over && (cx.now >= attack.until || (attack.trick == Trick::Reset && was_heard)) {
            if attack.trick == Trick::Reset || cx.rng.percent(50) {
                cx.net.client_reset(attack.link, cx.now);
            } else {
                cx.net.client_close(attack.link, cx.now);
            }
            over = true;
        }
        assert!(
            over || cx.now < attack.since + RID_WITHIN,
            "{}: the broker does not get rid of it: {:?} since {:?}",
            self.name,
            attack.trick,
            attack.since
        );
        if over {
            cx.net.client_close(attack.link, cx.now);
            self.attack = None;
            self.at = cx.soon(0, self.pace_us);
        }
    }
}

impl Actor for Hostile {
    fn step(&mut self, cx: &mut Cx<'_>) {
        self.go_on(cx);
        if self.attack.is_none() && cx.now >= self.at && self.attacks > 0 && !self.stopped {
            self.begin(cx);
            self.go_on(cx);
        }
    }

    fn next_at(&self, net: &FakeNet) -> Instant {
        match &self.attack {
            Some(attack) => {
                let news = if attack.trick == Trick::Deaf {
                    Instant::NEVER
                } else {
                    net.client_news_at(attack.link)
                };
                news.min(attack.until)
                    .min(attack.since + RID_WITHIN)
                    .min(net.client_room_at(attack.link))
            }
            None if self.attacks > 0 && !self.stopped => self.at,
            None => Instant::NEVER,
        }
    }

    fn is_done(&self) -> bool {
        self.attack.is_none() && (self.attacks == 0 || self.stopped)
    }

    /// The broker may bear a mute or deaf one for as long as it likes to.
    fn must_end(&self) -> bool {
        false
    }

    fn stop(&mut self) {
        self.stopped = true;
    }

    fn leave(&mut self, cx: &mut Cx<'_>) {
        self.stopped = true;
        if let Some(attack) = self.attack.take() {
            cx.net.client_close(attack.link, cx.now);
        }
    }

    fn name(&self) -> &str {
        &self.name
    }
}

/// A request as a good client sends it, over things that nobody else needs.
fn request(cx: &mut Cx<'_>) -> Vec<u8> {
    let id = cx.rng.next_u64() as i32;
    match cx.rng.below(10) {
        0 => wire::request(&ApiVersionsRequest::default(), version(ApiKey::ApiVersions, cx), id),
        1 => {
            let call = MetadataRequest {
                topics: Array::Null,
                ..Default::default()
            };
            wire::request(&call, version(ApiKey::Metadata, cx), id)
        }
        2 => {
            let bytes = wire::batch(
                &[super::super::model::Rec {
                    client: u32::MAX,
                    number: 1,
                }
                .record(100, cx.wall)],
                None,
            );
            let data = PartitionProduceData {
                index: 0,
                records: Records::Bytes(&bytes),
            };
            let topic = TopicProduceData {
                name: JUNK,
                partition_data: Array::one(&data),
                ..Default::default()
            };
            let acks = cx.rng.below(3) as i16 - 1;
            let call = ProduceRequest {
                acks,
                timeout_ms: 1000,
                topic_data: Array::one(&topic),
                ..Default::default()
            };
            wire::request(&call, version(ApiKey::Produce, cx), id)
        }
        3 => {
            let partition = FetchPartition {
                partition_max_bytes: 1 << 20,
                ..Default::default()
            };
            let topic = FetchTopic {
                topic: JUNK,
                partitions: Array::one(&partition),
                ..Default::default()
            };
            let call = FetchRequest {
                max_wait_ms: 500,
                min_bytes: 1,
                topics: Array::one(&topic),
                ..Default::default()
            };
            wire::request(&call, version(ApiKey::Fetch, cx), id)
        }
        4 => {
            let partition = ListOffsetsPartition {
                timestamp: -1,
                ..Default::default()
            };
            let topic = ListOffsetsTopic {
                name: JUNK,
                partitions: Array::one(&partition),
            };
            let call = ListOffsetsRequest {
                replica_id: -1,
                topics: Array::one(&topic),
                ..Default::default()
            };
            wire::request(&call, version(ApiKey::ListOffsets, cx), id)
        }
        5 => {
            let protocol = JoinGroupRequestProtocol {
                name: "p",
                metadata: &[7; 40],
            };
            let call = JoinGroupRequest {
                group_id: JUNK,
                session_timeout_ms: 6000,
                rebalance_timeout_ms: 6000,
                protocol_type: "consumer",
                protocols: Array::one(&protocol),
                ..Default::default()
            };
            wire::request(&call, version(ApiKey::JoinGroup, cx), id)
        }
        6 => {
            let partition = OffsetCommitRequestPartition {
                committed_offset: 5,
                ..Default::default()
            };
            let topic = OffsetCommitRequestTopic {
                name: JUNK,
                partitions: Array::one(&partition),
            };
            let call = OffsetCommitRequest {
                group_id: JUNK,
                topics: Array::one(&topic),
                ..Default::default()
            };
            wire::request(&call, version(ApiKey::OffsetCommit, cx), id)
        }
        7 => {
            let topic = CreatableTopic {
                name: JUNK,
                num_partitions: 1,
                replication_factor: 1,
                ..Default::default()
            };
            let call = CreateTopicsRequest {
                topics: Array::one(&topic),
                ..Default::default()
            };
            wire::request(&call, version(ApiKey::CreateTopics, cx), id)
        }
        8 => {
            let topic = DeleteTopicState {
                name: Some(JUNK),
                ..Default::default()
            };
            let names = [JUNK];
            let call = DeleteTopicsRequest {
                topics: Array::one(&topic),
                topic_names: Array::Slice(&names),
                timeout_ms: 0,
            };
            wire::request(&call, version(ApiKey::DeleteTopics, cx), id)
        }
        _ => {
            let call = HeartbeatRequest {
                group_id: JUNK,
                member_id: "m",
                ..Default::default()
            };
            wire::request(&call, version(ApiKey::Heartbeat, cx), id)
        }
    }
}

fn version(key: ApiKey, cx: &mut Cx<'_>) -> i16 {
    let versions = key.versions();
    cx.rng.within(versions.min as u64, versions.max as u64) as i16
}
