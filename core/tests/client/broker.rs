//! A cluster of two brokers in memory, and a network that does its worst: cuts anywhere, resets, silence, late answers.

use skerry_core::api::api_versions::{ApiVersion, ApiVersionsResponse};
use skerry_core::api::fetch::{FetchResponse, FetchableTopicResponse, PartitionData};
use skerry_core::api::init_producer_id::InitProducerIdResponse;
use skerry_core::api::list_offsets::{ListOffsetsPartitionResponse, ListOffsetsResponse, ListOffsetsTopicResponse};
use skerry_core::api::metadata::{
    MetadataResponse, MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use skerry_core::api::produce::{PartitionProduceResponse, ProduceResponse, TopicProduceResponse};
use skerry_core::api::{APIS, Request, Response};
use skerry_core::client::{Lost, Transport};
use skerry_core::error_code::ErrorCode;
use skerry_core::header::{RequestHeader, ResponseHeader};
use skerry_core::record::{Batch, BatchMut, crc32c};
use skerry_core::wire::{Array, Reader, Records, SliceWriter};

/// SplitMix64.
#[derive(Clone, Debug)]
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// How badly things go, in percent of the occasions.
#[derive(Clone, Copy, Debug)]
pub struct Weather {
    pub refuse: u64,
    pub cut: u64,
    pub late: u64,
    pub error: u64,
    pub move_leader: u64,
    /// A fetch reply has one bit flipped in its records.
    pub flip: u64,
}

pub const CALM: Weather = Weather {
    refuse: 0,
    cut: 0,
    late: 0,
    error: 0,
    move_leader: 0,
    flip: 0,
};

pub const STORM: Weather = Weather {
    refuse: 10,
    cut: 8,
    late: 5,
    error: 10,
    move_leader: 5,
    flip: 10,
};

pub const TOPIC: &str = "readings";
pub const HOSTS: [(&str, u16); 2] = [("one.local", 9092), ("two.local", 9093)];

/// The cluster, one partition's log, and the connection that its one client has.
#[derive(Debug)]
pub struct Cluster {
    pub rng: Rng,
    pub weather: Weather,
    /// Milliseconds.
    pub now: u64,
    pub leader: usize,
    pub nodes: usize,
    pub log: Vec<Vec<u8>>,
    pub end: i64,
    pub requests: usize,
    /// What the next produce is answered, once.
    pub answer_next: Option<ErrorCode>,
    /// The next produce is appended, and its answer lost.
    pub lose_next: bool,
    producers: i64,
    sequences: Vec<Numbered>,
    connection: Option<Connection>,
}

/// What is known of an idempotent producer.
#[derive(Debug, Default)]
struct Numbered {
    id: i64,
    next_sequence: i32,
    /// Base sequence and base offset of its batches.
    batches: Vec<(i32, i64)>,
}

#[derive(Debug, Default)]
struct Connection {
    node: usize,
    inbound: Vec<u8>,
    outbound: Vec<u8>,
    /// Until then the outbound bytes are on their way.
    held_until: u64,
    closing: bool,
}

impl Cluster {
    pub fn new(seed: u64, weather: Weather) -> Self {
        Self {
            rng: Rng(seed),
            weather,
            now: 0,
            leader: 0,
            nodes: 2,
            log: Vec::new(),
            end: 0,
            requests: 0,
            answer_next: None,
            lose_next: false,
            producers: 0,
            sequences: Vec::new(),
            connection: None,
        }
    }

    /// Whether somebody was there.
    pub fn connect(&mut self, (host, port): (&str, u16)) -> bool {
        self.connection = None;
        if self.rng.percent(self.weather.refuse) {
            return false;
        }
        let node = HOSTS.iter().position(|known| *known == (host, port));
        self.connection = node.map(|node| Connection {
            node,
            ..Default::default()
        });
        self.connection.is_some()
    }

    pub fn forget_producers(&mut self) {
        self.sequences.clear();
    }

    pub fn cut(&mut self) {
        self.connection = None;
    }

    pub fn host(&self) -> Option<(&'static str, u16)> {
        self.connection.as_ref().map(|connection| HOSTS[connection.node])
    }

    fn serve(&mut self) {
        let Some(mut connection) = self.connection.take() else {
            return;
        };
        while !connection.closing {
            let Some(prefix) = connection.inbound.first_chunk::<4>() else {
                break;
            };
            let bytes = u32::from_be_bytes(*prefix) as usize;
            if connection.inbound.len() < 4 + bytes {
                break;
            }
            let frame: Vec<u8> = connection.inbound.drain(..4 + bytes).skip(4).collect();
            self.requests += 1;
            if self.rng.percent(self.weather.cut) {
                return; // Before it was read.
            }
            let reply = self.answer(connection.node, &frame);
            if std::mem::take(&mut self.lose_next) && frame[..2] == [0, 0] {
                return;
            }
            let Some(reply) = reply else { continue };
            connection.outbound.extend((reply.len() as u32).to_be_bytes());
            connection.outbound.extend(reply);
            if self.rng.percent(self.weather.late) {
                connection.held_until = self.now + self.rng.below(30_000);
            }
            if self.rng.percent(self.weather.cut) {
                let keep = self.rng.below(connection.outbound.len() as u64) as usize;
                connection.outbound.truncate(keep);
                connection.closing = true;
            }
        }
        self.connection = Some(connection);
    }

    fn answer(&mut self, node: usize, frame: &[u8]) -> Option<Vec<u8>> {
        let mut r = Reader::new(frame);
        let header = RequestHeader::decode(&mut r).expect("a header");
        let request = Request::decode(header.key, header.version, &mut r).expect("a declared request");
        assert!(r.is_empty(), "nothing follows the request");
        if self.rng.percent(self.weather.move_leader) {
            self.leader = (self.leader + 1) % self.nodes;
        }
        let error = if self.rng.percent(self.weather.error) {
            [
                ErrorCode::NOT_LEADER_OR_FOLLOWER,
                ErrorCode::KAFKA_STORAGE_ERROR,
                ErrorCode::REQUEST_TIMED_OUT,
                ErrorCode::LEADER_NOT_AVAILABLE,
            ][self.rng.below(4) as usize]
        } else if node == self.leader {
            ErrorCode::NONE
        } else {
            ErrorCode::NOT_LEADER_OR_FOLLOWER
        };
        let mut apis = Vec::new();
        let response_bytes = |response: &Response<'_>| {
            let mut bytes = vec![0; 70_000];
            let mut out = SliceWriter::new(&mut bytes);
            let id = ResponseHeader {
                correlation_id: header.correlation_id,
            };
            id.encode(&mut out, request.key(), header.version).unwrap();
            response.encode(&mut out, header.version).unwrap();
            let len = out.len();
            bytes.truncate(len);
            Some(bytes)
        };
        match &request {
            Request::ApiVersions(_) => {
                apis.extend(APIS.iter().map(|api| ApiVersion {
                    api_key: api.key as i16,
                    min_version: api.versions.min,
                    max_version: api.versions.max,
                }));
                response_bytes(&Response::ApiVersions(ApiVersionsResponse {
                    api_keys: Array::Slice(&apis),
                    ..Default::default()
                }))
            }
            Request::Metadata(_) => {
                let brokers: Vec<_> = (0..self.nodes)
                    .map(|node| MetadataResponseBroker {
                        node_id: node as i32,
                        host: HOSTS[node].0,
                        port: i32::from(HOSTS[node].1),
                        rack: None,
                    })
                    .collect();
                let partition = MetadataResponsePartition {
                    leader_id: self.leader as i32,
                    ..Default::default()
                };
                let error_code = match error {
                    ErrorCode::LEADER_NOT_AVAILABLE => error,
                    _ => ErrorCode::NONE,
                };
                let topic = MetadataResponseTopic {
                    error_code,
                    name: Some(TOPIC),
                    partitions: Array::one(&partition),
                    ..Default::default()
                };
                response_bytes(&Response::Metadata(MetadataResponse {
                    brokers: Array::Slice(&brokers),
                    topics: Array::one(&topic),
                    ..Default::default()
                }))
            }
            Request::InitProducerId(_) => {
                self.producers += 1;
                response_bytes(&Response::InitProducerId(InitProducerIdResponse {
                    producer_id: self.producers,
                    ..Default::default()
                }))
            }
            Request::Produce(request) => {
                let topic = request.topic_data.iter().next().expect("a topic");
                assert_eq!(topic.name, TOPIC);
                let data = topic.partition_data.iter().next().expect("a partition");
                let error = self.answer_next.take().unwrap_or(error);
                // This one means that it may be there.
                let refused = !error.is_none() && error != ErrorCode::REQUEST_TIMED_OUT;
                let (error_code, base_offset) = if refused {
                    (error, -1)
                } else {
                    match self.append(data.records.bytes()) {
                        Err(code) => (code, -1),
                        Ok(_) if !error.is_none() => (error, -1),
                        Ok(offset) => (ErrorCode::NONE, offset),
                    }
                };
                if request.acks == 0 {
                    return None;
                }
                let partition = PartitionProduceResponse {
                    error_code,
                    base_offset,
                    ..Default::default()
                };
                let topic = TopicProduceResponse {
                    name: TOPIC,
                    partition_responses: Array::one(&partition),
                    ..Default::default()
                };
                response_bytes(&Response::Produce(ProduceResponse {
                    responses: Array::one(&topic),
                    ..Default::default()
                }))
            }
            Request::ListOffsets(request) => {
                let wanted = request.topics.iter().next().unwrap().partitions.iter().next().unwrap();
                let partition = ListOffsetsPartitionResponse {
                    error_code: error,
                    offset: if wanted.timestamp == -2 { 0 } else { self.end },
                    ..Default::default()
                };
                let topic = ListOffsetsTopicResponse {
                    name: TOPIC,
                    partitions: Array::one(&partition),
                };
                response_bytes(&Response::ListOffsets(ListOffsetsResponse {
                    topics: Array::one(&topic),
                    ..Default::default()
                }))
            }
            Request::Fetch(request) => {
                let wanted = request.topics.iter().next().unwrap().partitions.iter().next().unwrap();
                let mut records = Vec::new();
                for batch in &self.log {
                    let header = *Batch::only(batch).unwrap().header();
                    if header.next_offset() > wanted.fetch_offset {
                        records.extend_from_slice(batch);
                    }
                }
                let first = Batch::decode(&mut &records[..]).map_or(0, |batch| batch.len_bytes());
                records.truncate(first.max(wanted.partition_max_bytes as usize));
                if !records.is_empty() && self.rng.percent(self.weather.flip) {
                    let at = self.rng.below(records.len() as u64 * 8) as usize;
                    // Neither base offset, length nor leader epoch is under the checksum: flip what is.
                    if at / 8 >= 21 {
                        records[at / 8] ^= 1 << (at % 8);
                    }
                }
                let partition = PartitionData {
                    error_code: error,
                    high_watermark: self.end,
                    records: Records::Bytes(if error.is_none() { &records } else { &[] }),
                    ..Default::default()
                };
                let topic = FetchableTopicResponse {
                    topic: TOPIC,
                    partitions: Array::one(&partition),
                    ..Default::default()
                };
                response_bytes(&Response::Fetch(FetchResponse {
                    responses: Array::one(&topic),
                    ..Default::default()
                }))
            }
            other => panic!("a client does not send {:?}", other.key()),
        }
    }

    /// Appends a batch, once if it is numbered.
    pub fn append(&mut self, bytes: &[u8]) -> Result<i64, ErrorCode> {
        let batch = Batch::only(bytes).expect("one whole batch");
        assert!(batch.crc_holds(crc32c));
        assert!(batch.records().all(|record| record.is_ok()));
        let header = *batch.header();
        if header.has_producer() {
            let known = self
                .sequences
                .iter_mut()
                .position(|known| known.id == header.producer_id);
            let place = match known {
                Some(place) => place,
                None if header.base_sequence == 0 => {
                    self.sequences.push(Numbered {
                        id: header.producer_id,
                        ..Default::default()
                    });
                    self.sequences.len() - 1
                }
                None => return Err(ErrorCode::UNKNOWN_PRODUCER_ID),
            };
            let known = &mut self.sequences[place];
            let mut batches = known.batches.iter();
            if let Some((_, offset)) = batches.find(|(sequence, _)| *sequence == header.base_sequence) {
                return Ok(*offset);
            }
            if header.base_sequence != known.next_sequence {
                return Err(ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER);
            }
            known.next_sequence += header.count;
            known.batches.push((header.base_sequence, self.end));
        }
        let base = self.end;
        let mut bytes = bytes.to_vec();
        BatchMut::in_place(&mut bytes).unwrap().assign(base, 0);
        self.log.push(bytes);
        self.end += i64::from(header.count);
        Ok(base)
    }

    /// The values in the log, by offset.
    pub fn values(&self) -> Vec<Vec<u8>> {
        let records = self.log.iter().flat_map(|bytes| Batch::only(bytes).unwrap().records());
        records.map(|record| record.unwrap().value.unwrap().to_vec()).collect()
    }
}

impl Transport for Cluster {
    fn send(&mut self, bytes: &[u8]) -> nb::Result<usize, Lost> {
        assert!(!bytes.is_empty());
        if self.rng.percent(20) {
            return Err(nb::Error::WouldBlock);
        }
        let take = 1 + self.rng.below(bytes.len() as u64) as usize;
        let connection = self.connection.as_mut().ok_or(Lost)?;
        if connection.closing {
            return Err(nb::Error::Other(Lost));
        }
        connection.inbound.extend_from_slice(&bytes[..take]);
        self.serve();
        Ok(take)
    }

    fn receive(&mut self, out: &mut [u8]) -> nb::Result<usize, Lost> {
        assert!(!out.is_empty());
        let most = 1 + self.rng.below(out.len() as u64) as usize;
        let connection = self.connection.as_mut().ok_or(Lost)?;
        if self.now < connection.held_until {
            return Err(nb::Error::WouldBlock);
        }
        let take = most.min(connection.outbound.len());
        if take == 0 {
            return if connection.closing {
                Ok(0)
            } else {
                Err(nb::Error::WouldBlock)
            };
        }
        for (to, from) in out.iter_mut().zip(connection.outbound.drain(..take)) {
            *to = from;
        }
        Ok(take)
    }
}
