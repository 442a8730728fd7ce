//! A plain blocking client for tests over real sockets: one call after another, or pipelined.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};

use skerry_core::api::Call;
use skerry_core::api::create_topics::{CreatableTopic, CreatableTopicConfig, CreateTopicsRequest};
use skerry_core::api::fetch::{FetchPartition, FetchRequest, FetchTopic};
use skerry_core::api::heartbeat::HeartbeatRequest;
use skerry_core::api::init_producer_id::InitProducerIdRequest;
use skerry_core::api::join_group::{JoinGroupRequest, JoinGroupRequestProtocol};
use skerry_core::api::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use skerry_core::api::offset_commit::{OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use skerry_core::api::offset_fetch::{OffsetFetchRequest, OffsetFetchRequestTopic};
use skerry_core::api::produce::{PartitionProduceData, ProduceRequest, TopicProduceData};
use skerry_core::api::sync_group::SyncGroupRequest;
use skerry_core::error_code::ErrorCode;
use skerry_core::wire::{Array, Records};

use crate::tls::{Channel, Target};
use crate::wire::{self, TestRecord};

/// One connection to a broker.
#[derive(Debug)]
pub struct Client {
    stream: Channel,
    next_id: i32,
}

/// A reply as it came, without its length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame(pub Vec<u8>);

impl Client {
    /// Connects, in plain or over TLS. Panics when nobody listens.
    #[must_use]
    pub fn connect(target: impl Into<Target>) -> Self {
        Self::try_connect(target).expect("a broker listens")
    }

    /// Connects.
    ///
    /// Errors: those of the socket.
    pub fn try_connect(target: impl Into<Target>) -> io::Result<Self> {
        let stream = Channel::connect(target.into())?;
        Ok(Self { stream, next_id: 0 })
    }

    /// The socket, for what no client should do.
    #[must_use]
    pub const fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream.stream
    }

    /// Sends a request; its correlation id.
    ///
    /// Errors: those of the socket.
    pub fn send<'a, C: Call<'a>>(&mut self, version: i16, call: &C) -> io::Result<i32> {
        self.next_id = self.next_id.wrapping_add(1);
        self.stream.write_all(&wire::request(call, version, self.next_id))?;
        self.stream.flush()?;
        Ok(self.next_id)
    }

    /// The next reply as it comes. `None` when the broker has closed the connection (or reset it) between two replies.
    ///
    /// Errors: those of the socket, and `UnexpectedEof` within a reply.
    pub fn receive(&mut self) -> io::Result<Option<Frame>> {
        let mut length = [0; 4];
        match self.stream.read(&mut length) {
            Ok(0) => return Ok(None),
            Ok(n) => self.stream.read_exact(&mut length[n..])?,
            Err(e) if e.kind() == ErrorKind::ConnectionReset => return Ok(None),
            Err(e) => return Err(e),
        }
        let mut frame = vec![0; u32::from_be_bytes(length) as usize];
        self.stream.read_exact(&mut frame)?;
        Ok(Some(Frame(frame)))
    }

    /// Sends a request and waits for its reply, which must be the next one.
    ///
    /// Errors: those of the socket; `ConnectionAborted` when the broker closed instead.
    pub fn try_call<'a, C: Call<'a>>(&mut self, version: i16, call: &C) -> io::Result<Frame> {
        let id = self.send(version, call)?;
        let frame = self.receive()?.ok_or(ErrorKind::ConnectionAborted)?;
        assert_eq!(
            wire::correlation_id(&frame.0),
            id,
            "replies come in the order of their requests"
        );
        Ok(frame)
    }

    /// As [`try_call`](Self::try_call), and panics on its errors. Decode the frame with [`reply`].
    #[must_use]
    pub fn call<'a, C: Call<'a>>(&mut self, version: i16, call: &C) -> Frame {
        self.try_call(version, call)
            .unwrap_or_else(|e| panic!("{:?} version {version}: {e}", C::KEY))
    }

    /// Says that no more requests come.
    pub fn end(&self) {
        let _ = self.stream.stream.shutdown(Shutdown::Write);
    }
}

/// The reply to a request of type `C` in this frame.
#[must_use]
pub fn reply<'r, C: Call<'r>>(version: i16, frame: &'r Frame) -> C::Response<'r> {
    wire::reply(C::KEY, version, &frame.0)
}

/// The calls that many tests make, each in one version.
impl Client {
    /// Makes a topic; fine when it is there.
    pub fn create_topic(&mut self, name: &str, partitions: i32, configs: &[(&str, &str)]) {
        let configs: Vec<_> = configs
            .iter()
            .map(|(name, value)| CreatableTopicConfig {
                name,
                value: Some(value),
            })
            .collect();
        let topic = CreatableTopic {
            name,
            num_partitions: partitions,
            replication_factor: 1,
            configs: Array::Slice(&configs),
            ..Default::default()
        };
        let frame = self.call(
            5,
            &CreateTopicsRequest {
                topics: Array::one(&topic),
                ..Default::default()
            },
        );
        let reply = reply::<CreateTopicsRequest<'_>>(5, &frame);
        let error = reply.topics.iter().next().expect("an answer for the topic").error_code;
        assert!(
            matches!(error, ErrorCode::NONE | ErrorCode::TOPIC_ALREADY_EXISTS),
            "{name}: {error:?}"
        );
    }

    /// A producer id.
    pub fn init_producer(&mut self) -> io::Result<i64> {
        let call = InitProducerIdRequest {
            transactional_id: None,
            ..Default::default()
        };
        let frame = self.try_call(4, &call)?;
        let reply = reply::<InitProducerIdRequest<'_>>(4, &frame);
        assert_eq!(reply.error_code, ErrorCode::NONE);
        Ok(reply.producer_id)
    }

    /// Sends a produce of one batch to one partition; its correlation id.
    ///
    /// Errors: those of the socket.
    pub fn send_batch(&mut self, topic: &str, partition: i32, acks: i16, batch: &[u8]) -> io::Result<i32> {
        let data = PartitionProduceData {
            index: partition,
            records: Records::Bytes(batch),
        };
        let of = TopicProduceData {
            name: topic,
            partition_data: Array::one(&data),
            ..Default::default()
        };
        let call = ProduceRequest {
            acks,
            timeout_ms: 30_000,
            topic_data: Array::one(&of),
            ..Default::default()
        };
        self.send(9, &call)
    }

    /// The answer to [`send_batch`](Self::send_batch): base offset or error. `None` when the connection ended.
    ///
    /// Errors: those of the socket.
    pub fn receive_produced(&mut self) -> io::Result<Option<Result<i64, ErrorCode>>> {
        let Some(frame) = self.receive()? else { return Ok(None) };
        let reply = reply::<ProduceRequest<'_>>(9, &frame);
        let answer = reply
            .responses
            .iter()
            .flat_map(|t| t.partition_responses.iter())
            .next()
            .expect("an answer");
        Ok(Some(answer.error_code.ok().map(|()| answer.base_offset)))
    }

    /// Produces one batch with acks 1 or −1: its base offset.
    ///
    /// Panics on errors of the broker's.
    pub fn produce(&mut self, topic: &str, partition: i32, acks: i16, batch: &[u8]) -> i64 {
        self.send_batch(topic, partition, acks, batch)
            .expect("the broker reads");
        let answer = self
            .receive_produced()
            .expect("a reply")
            .expect("a reply before the end");
        answer.unwrap_or_else(|e| panic!("produce to {topic} {partition}: {e:?}"))
    }

    /// Asks for one partition's records from `offset` on; [`receive_fetched`](Self::receive_fetched) takes the answer.
    ///
    /// Errors: those of the socket.
    pub fn send_fetch(&mut self, topic: &str, partition: i32, offset: i64, max_wait_ms: i32) -> io::Result<()> {
        let wanted = FetchPartition {
            partition,
            fetch_offset: offset,
            partition_max_bytes: 1 << 20,
            ..Default::default()
        };
        let of = FetchTopic {
            topic,
            partitions: Array::one(&wanted),
            ..Default::default()
        };
        let call = FetchRequest {
            max_wait_ms,
            min_bytes: 1,
            max_bytes: 1 << 22,
            topics: Array::one(&of),
            ..Default::default()
        };
        self.send(11, &call).map(drop)
    }

    /// The answer to a fetch from `offset` on: records and the high watermark, or an error.
    ///
    /// Errors: those of the socket; `ConnectionAborted` when the broker closed instead.
    pub fn receive_fetched(&mut self, offset: i64) -> io::Result<Result<(Vec<TestRecord>, i64), ErrorCode>> {
        let frame = self.receive()?.ok_or(ErrorKind::ConnectionAborted)?;
        let reply = reply::<FetchRequest<'_>>(11, &frame);
        let answer = reply
            .responses
            .iter()
            .flat_map(|t| t.partitions.iter())
            .next()
            .expect("an answer");
        Ok(answer.error_code.ok().map(|()| {
            let mut records = wire::records(answer.records.bytes());
            records.retain(|r| r.offset >= offset);
            (records, answer.high_watermark)
        }))
    }

    /// Fetches from one partition: records from `offset` on and the high watermark.
    ///
    /// Errors: those of the socket.
    pub fn try_fetch(
        &mut self,
        topic: &str,
        partition: i32,
        offset: i64,
        max_wait_ms: i32,
    ) -> io::Result<Result<(Vec<TestRecord>, i64), ErrorCode>> {
        self.send_fetch(topic, partition, offset, max_wait_ms)?;
        self.receive_fetched(offset)
    }

    /// As [`try_fetch`](Self::try_fetch), and panics on every error.
    pub fn fetch(&mut self, topic: &str, partition: i32, offset: i64, max_wait_ms: i32) -> (Vec<TestRecord>, i64) {
        self.try_fetch(topic, partition, offset, max_wait_ms)
            .expect("a reply")
            .unwrap_or_else(|e| panic!("fetch from {topic} {partition} at {offset}: {e:?}"))
    }

    /// The offset that ListOffsets tells for `timestamp`: −1 latest, −2 earliest.
    pub fn list_offset(&mut self, topic: &str, partition: i32, timestamp: i64) -> i64 {
        let asked = ListOffsetsPartition {
            partition_index: partition,
            timestamp,
            ..Default::default()
        };
        let of = ListOffsetsTopic {
            name: topic,
            partitions: Array::one(&asked),
        };
        let frame = self.call(
            5,
            &ListOffsetsRequest {
                replica_id: -1,
                topics: Array::one(&of),
                ..Default::default()
            },
        );
        let reply = reply::<ListOffsetsRequest<'_>>(5, &frame);
        let answer = reply
            .topics
            .iter()
            .flat_map(|t| t.partitions.iter())
            .next()
            .expect("an answer");
        assert_eq!(answer.error_code, ErrorCode::NONE);
        answer.offset
    }

    /// Joins a group alone and gets an empty assignment: its member id and generation.
    pub fn join_alone(&mut self, group: &str) -> (String, i32) {
        let protocol = JoinGroupRequestProtocol {
            name: "p",
            metadata: b"",
        };
        let mut member = String::new();
        loop {
            let call = JoinGroupRequest {
                group_id: group,
                session_timeout_ms: 60_000,
                rebalance_timeout_ms: 60_000,
                member_id: &member,
                protocol_type: "consumer",
                protocols: Array::one(&protocol),
                ..Default::default()
            };
            let frame = self.call(5, &call);
            let joined = reply::<JoinGroupRequest<'_>>(5, &frame);
            let again = joined.error_code == ErrorCode::MEMBER_ID_REQUIRED;
            assert!(
                again || joined.error_code == ErrorCode::NONE,
                "join {group}: {:?}",
                joined.error_code
            );
            let generation = joined.generation_id;
            let id = joined.member_id.to_owned();
            member = id;
            if again {
                continue;
            }
            let call = SyncGroupRequest {
                group_id: group,
                generation_id: generation,
                member_id: &member,
                ..Default::default()
            };
            let frame = self.call(3, &call);
            assert_eq!(reply::<SyncGroupRequest<'_>>(3, &frame).error_code, ErrorCode::NONE);
            return (member, generation);
        }
    }

    /// A heartbeat: its error.
    pub fn heartbeat(&mut self, group: &str, member_id: &str, generation_id: i32) -> ErrorCode {
        let call = HeartbeatRequest {
            group_id: group,
            generation_id,
            member_id,
            ..Default::default()
        };
        let frame = self.call(3, &call);
        reply::<HeartbeatRequest<'_>>(3, &frame).error_code
    }

    /// Commits one offset: its error. Without a member it is a commit from outside a group's generation.
    ///
    /// Errors: those of the socket.
    pub fn try_commit(
        &mut self,
        group: &str,
        member: Option<(&str, i32)>,
        topic: &str,
        partition: i32,
        offset: i64,
    ) -> io::Result<ErrorCode> {
        let at = OffsetCommitRequestPartition {
            partition_index: partition,
            committed_offset: offset,
            ..Default::default()
        };
        let of = OffsetCommitRequestTopic {
            name: topic,
            partitions: Array::one(&at),
        };
        let (member_id, generation) = member.unwrap_or(("", -1));
        let call = OffsetCommitRequest {
            group_id: group,
            generation_id_or_member_epoch: generation,
            member_id,
            topics: Array::one(&of),
            ..Default::default()
        };
        let frame = self.try_call(7, &call)?;
        let reply = reply::<OffsetCommitRequest<'_>>(7, &frame);
        Ok(reply
            .topics
            .iter()
            .flat_map(|t| t.partitions.iter())
            .next()
            .expect("an answer")
            .error_code)
    }

    /// The offset that a group has committed; −1 for none.
    pub fn committed(&mut self, group: &str, topic: &str, partition: i32) -> i64 {
        let partitions = [partition];
        let of = OffsetFetchRequestTopic {
            name: topic,
            partition_indexes: Array::Slice(&partitions),
        };
        let call = OffsetFetchRequest {
            group_id: group,
            topics: Array::one(&of),
            ..Default::default()
        };
        let frame = self.call(5, &call);
        let reply = reply::<OffsetFetchRequest<'_>>(5, &frame);
        let answer = reply
            .topics
            .iter()
            .flat_map(|t| t.partitions.iter())
            .next()
            .expect("an answer");
        assert_eq!(answer.error_code, ErrorCode::NONE);
        answer.committed_offset
    }
}
