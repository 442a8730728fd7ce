//! The messages that clients send all the time and their replies, and batches of records: `codec/<message>/<verb>-<size>` and
//! `batch/<verb>/<size>`.
//!
//! Decoding is what the broker does before a handler sees a request: one pass over the bytes, arrays skimmed; the handler's walk through them is
//! `walk`. Encoding is measuring and then writing, as replies are.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use skerry_bench::broker::SHAPES;
use skerry_broker::crc::CRC32C;
use skerry_core::api::api_versions::{ApiVersion, ApiVersionsRequest, ApiVersionsResponse};
use skerry_core::api::fetch::{
    FetchPartition, FetchRequest, FetchResponse, FetchTopic, FetchableTopicResponse, PartitionData,
};
use skerry_core::api::find_coordinator::{Coordinator, FindCoordinatorRequest, FindCoordinatorResponse};
use skerry_core::api::heartbeat::{HeartbeatRequest, HeartbeatResponse};
use skerry_core::api::init_producer_id::{InitProducerIdRequest, InitProducerIdResponse};
use skerry_core::api::join_group::{
    JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse, JoinGroupResponseMember,
};
use skerry_core::api::list_offsets::{
    ListOffsetsPartition, ListOffsetsPartitionResponse, ListOffsetsRequest, ListOffsetsResponse, ListOffsetsTopic,
    ListOffsetsTopicResponse,
};
use skerry_core::api::metadata::{
    MetadataRequest, MetadataRequestTopic, MetadataResponse, MetadataResponseBroker, MetadataResponsePartition,
    MetadataResponseTopic,
};
use skerry_core::api::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic, OffsetCommitResponse,
    OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};
use skerry_core::api::offset_fetch::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics, OffsetFetchResponse,
    OffsetFetchResponseGroup, OffsetFetchResponsePartitions, OffsetFetchResponseTopics,
};
use skerry_core::api::produce::{
    PartitionProduceData, PartitionProduceResponse, ProduceRequest, ProduceResponse, TopicProduceData,
    TopicProduceResponse,
};
use skerry_core::api::sync_group::{SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse};
use skerry_core::record::{Batch, Rules, validate};
use skerry_core::wire::{Array, Message, Reader, Records, SliceWriter};

const TOPIC: &str = "a-topic-with-a-usual-name";
const GROUP: &str = "a-group-with-a-usual-name";
const MEMBER: &str = "consumer-a-group-1-3f0c6d0e-5b1f-4a53-9a4e-2d5c1c0c5f1d";
const HOST: &str = "broker.example";
/// A consumer's subscription, or assignment, of a topic or two.
const PROTOCOL: &[u8] = &[7; 60];

/// One message of one version, decoded and encoded. `walk` visits what a decoded one has borrowed, for messages that have arrays.
macro_rules! message {
    ($c:expr, $size:literal, $version:literal, $type:ident $value:expr $(, walk $walk:expr)?) => {{
        let value: $type = $value;
        let mut room = vec![0; 64 << 10];
        let mut writer = SliceWriter::new(&mut room);
        value.encode(&mut writer, $version).expect("room for it");
        let bytes = writer.finish().to_vec();
        let mut group = $c.benchmark_group(concat!("codec/", stringify!($type)));
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function(concat!("decode-", $size), |b| {
            b.iter(|| <$type>::decode(&mut Reader::new(black_box(&bytes)), $version).expect("a message"));
        });
        $(
            let decoded = <$type>::decode(&mut Reader::new(&bytes), $version).expect("a message");
            group.bench_function(concat!("walk-", $size), |b| {
                let walk: fn(&$type) -> usize = $walk;
                b.iter(|| walk(black_box(&decoded)));
            });
        )?
        group.bench_function(concat!("encode-", $size), |b| {
            b.iter(|| {
                black_box(value.encoded_len($version));
                value.encode(&mut SliceWriter::new(black_box(&mut room)), $version).expect("room for it");
            });
        });
        group.finish();
    }};
}

fn produce(c: &mut Criterion) {
    let batch = SHAPES[0].batch();
    let data = [PartitionProduceData {
        index: 0,
        records: Records::Bytes(&batch.bytes),
    }];
    let topics = [TopicProduceData {
        name: TOPIC,
        partition_data: Array::Slice(&data),
        ..TopicProduceData::default()
    }];
    message!(c, "16KB", 9, ProduceRequest ProduceRequest {
        acks: -1,
        timeout_ms: 30_000,
        topic_data: Array::Slice(&topics),
        ..ProduceRequest::default()
    }, walk |request| request.topic_data.iter().flat_map(|topic| topic.partition_data.iter()).count());
    let partitions = [PartitionProduceResponse::default()];
    let responses = [TopicProduceResponse {
        name: TOPIC,
        partition_responses: Array::Slice(&partitions),
        ..TopicProduceResponse::default()
    }];
    message!(c, "1", 9, ProduceResponse ProduceResponse {
        responses: Array::Slice(&responses),
        ..ProduceResponse::default()
    });
}

fn fetch(c: &mut Criterion) {
    let partitions = [FetchPartition {
        partition_max_bytes: 1 << 20,
        ..FetchPartition::default()
    }; 50];
    let topics = [FetchTopic {
        topic: TOPIC,
        partitions: Array::Slice(&partitions[..1]),
        ..FetchTopic::default()
    }];
    let of = |topics| FetchRequest {
        max_wait_ms: 500,
        min_bytes: 1,
        max_bytes: 50 << 20,
        topics: Array::Slice(topics),
        ..FetchRequest::default()
    };
    let walk = |request: &FetchRequest<'_>| request.topics.iter().flat_map(|topic| topic.partitions.iter()).count();
    message!(c, "1", 12, FetchRequest of(&topics), walk walk);
    let topics = [FetchTopic {
        partitions: Array::Slice(&partitions),
        ..topics[0]
    }];
    message!(c, "50", 12, FetchRequest of(&topics), walk walk);
    // Records are sent from elsewhere.
    let partitions = [PartitionData {
        records: Records::Elsewhere(0),
        aborted_transactions: Array::Null,
        ..PartitionData::default()
    }; 50];
    let responses = [FetchableTopicResponse {
        topic: TOPIC,
        partitions: Array::Slice(&partitions[..1]),
        ..FetchableTopicResponse::default()
    }];
    let of = |responses| FetchResponse {
        responses: Array::Slice(responses),
        ..FetchResponse::default()
    };
    message!(c, "1", 12, FetchResponse of(&responses));
    let responses = [FetchableTopicResponse {
        partitions: Array::Slice(&partitions),
        ..responses[0]
    }];
    message!(c, "50", 12, FetchResponse of(&responses));
}

fn discovery(c: &mut Criterion) {
    message!(c, "1", 3, ApiVersionsRequest ApiVersionsRequest {
        client_software_name: "apache-kafka-java",
        client_software_version: "4.1.0",
    });
    let keys = [ApiVersion {
        api_key: 18,
        min_version: 0,
        max_version: 4,
    }; 30];
    message!(c, "30", 3, ApiVersionsResponse ApiVersionsResponse {
        api_keys: Array::Slice(&keys),
        ..ApiVersionsResponse::default()
    });
    let topics = [MetadataRequestTopic {
        name: Some(TOPIC),
        ..MetadataRequestTopic::default()
    }];
    message!(c, "1", 12, MetadataRequest MetadataRequest {
        topics: Array::Slice(&topics),
        ..MetadataRequest::default()
    }, walk |request| request.topics.iter().count());
    let brokers = [MetadataResponseBroker {
        host: HOST,
        port: 9092,
        ..MetadataResponseBroker::default()
    }];
    let partitions = [MetadataResponsePartition {
        replica_nodes: Array::Slice(&[0]),
        isr_nodes: Array::Slice(&[0]),
        ..MetadataResponsePartition::default()
    }; 4];
    let topics = [MetadataResponseTopic {
        name: Some(TOPIC),
        partitions: Array::Slice(&partitions),
        ..MetadataResponseTopic::default()
    }; 100];
    let of = |topics| MetadataResponse {
        brokers: Array::Slice(&brokers),
        topics: Array::Slice(topics),
        ..MetadataResponse::default()
    };
    message!(c, "1x4", 12, MetadataResponse of(&topics[..1]));
    message!(c, "100x4", 12, MetadataResponse of(&topics));
    message!(c, "1", 4, FindCoordinatorRequest FindCoordinatorRequest {
        coordinator_keys: Array::Slice(&[GROUP]),
        ..FindCoordinatorRequest::default()
    });
    let coordinators = [Coordinator {
        key: GROUP,
        host: HOST,
        port: 9092,
        ..Coordinator::default()
    }];
    message!(c, "1", 4, FindCoordinatorResponse FindCoordinatorResponse {
        coordinators: Array::Slice(&coordinators),
        ..FindCoordinatorResponse::default()
    });
    message!(c, "1", 4, InitProducerIdRequest InitProducerIdRequest {
        transactional_id: None,
        ..InitProducerIdRequest::default()
    });
    message!(c, "1", 4, InitProducerIdResponse InitProducerIdResponse::default());
}

fn offsets(c: &mut Criterion) {
    let partitions = [ListOffsetsPartition {
        timestamp: -1,
        ..ListOffsetsPartition::default()
    }; 4];
    let topics = [ListOffsetsTopic {
        name: TOPIC,
        partitions: Array::Slice(&partitions),
    }];
    message!(c, "1x4", 7, ListOffsetsRequest ListOffsetsRequest {
        topics: Array::Slice(&topics),
        ..ListOffsetsRequest::default()
    });
    let partitions = [ListOffsetsPartitionResponse::default(); 4];
    let topics = [ListOffsetsTopicResponse {
        name: TOPIC,
        partitions: Array::Slice(&partitions),
    }];
    message!(c, "1x4", 7, ListOffsetsResponse ListOffsetsResponse {
        topics: Array::Slice(&topics),
        ..ListOffsetsResponse::default()
    });
    let partitions = [OffsetCommitRequestPartition {
        committed_offset: 123_456,
        ..OffsetCommitRequestPartition::default()
    }; 4];
    let topics = [OffsetCommitRequestTopic {
        name: TOPIC,
        partitions: Array::Slice(&partitions),
    }; 12];
    let of = |topics| OffsetCommitRequest {
        group_id: GROUP,
        member_id: MEMBER,
        topics: Array::Slice(topics),
        ..OffsetCommitRequest::default()
    };
    let walk =
        |request: &OffsetCommitRequest<'_>| request.topics.iter().flat_map(|topic| topic.partitions.iter()).count();
    message!(c, "1x4", 8, OffsetCommitRequest of(&topics[..1]), walk walk);
    message!(c, "12x4", 8, OffsetCommitRequest of(&topics), walk walk);
    let partitions = [OffsetCommitResponsePartition::default(); 4];
    let topics = [OffsetCommitResponseTopic {
        name: TOPIC,
        partitions: Array::Slice(&partitions),
    }];
    message!(c, "1x4", 8, OffsetCommitResponse OffsetCommitResponse {
        topics: Array::Slice(&topics),
        ..OffsetCommitResponse::default()
    });
    let topics = [OffsetFetchRequestTopics {
        name: TOPIC,
        partition_indexes: Array::Slice(&[0, 1, 2, 3]),
    }];
    let groups = [OffsetFetchRequestGroup {
        group_id: GROUP,
        topics: Array::Slice(&topics),
        ..OffsetFetchRequestGroup::default()
    }];
    message!(c, "1x4", 8, OffsetFetchRequest OffsetFetchRequest {
        groups: Array::Slice(&groups),
        ..OffsetFetchRequest::default()
    });
    let partitions = [OffsetFetchResponsePartitions::default(); 4];
    let topics = [OffsetFetchResponseTopics {
        name: TOPIC,
        partitions: Array::Slice(&partitions),
    }];
    let groups = [OffsetFetchResponseGroup {
        group_id: GROUP,
        topics: Array::Slice(&topics),
        ..OffsetFetchResponseGroup::default()
    }];
    message!(c, "1x4", 8, OffsetFetchResponse OffsetFetchResponse {
        groups: Array::Slice(&groups),
        ..OffsetFetchResponse::default()
    });
}

fn groups(c: &mut Criterion) {
    let protocols = ["range", "cooperative-sticky"].map(|name| JoinGroupRequestProtocol {
        name,
        metadata: PROTOCOL,
    });
    message!(c, "1", 9, JoinGroupRequest JoinGroupRequest {
        group_id: GROUP,
        session_timeout_ms: 45_000,
        rebalance_timeout_ms: 300_000,
        member_id: MEMBER,
        protocol_type: "consumer",
        protocols: Array::Slice(&protocols),
        ..JoinGroupRequest::default()
    }, walk |request| request.protocols.iter().count());
    // The leader's.
    let members = [JoinGroupResponseMember {
        member_id: MEMBER,
        metadata: PROTOCOL,
        ..JoinGroupResponseMember::default()
    }; 10];
    message!(c, "10", 9, JoinGroupResponse JoinGroupResponse {
        generation_id: 1,
        protocol_name: Some("range"),
        leader: MEMBER,
        member_id: MEMBER,
        members: Array::Slice(&members),
        ..JoinGroupResponse::default()
    });
    let assignments = [SyncGroupRequestAssignment {
        member_id: MEMBER,
        assignment: PROTOCOL,
    }; 10];
    message!(c, "10", 5, SyncGroupRequest SyncGroupRequest {
        group_id: GROUP,
        generation_id: 1,
        member_id: MEMBER,
        assignments: Array::Slice(&assignments),
        ..SyncGroupRequest::default()
    }, walk |request| request.assignments.iter().count());
    message!(c, "1", 5, SyncGroupResponse SyncGroupResponse {
        assignment: PROTOCOL,
        ..SyncGroupResponse::default()
    });
    message!(c, "1", 4, HeartbeatRequest HeartbeatRequest {
        group_id: GROUP,
        generation_id: 1,
        member_id: MEMBER,
        ..HeartbeatRequest::default()
    });
    message!(c, "1", 4, HeartbeatResponse HeartbeatResponse::default());
}

fn batches(c: &mut Criterion) {
    let rules = Rules {
        batch_bytes_max: 1 << 20,
        produce_version: 9,
        transactions: false,
        keys_required: false,
        timestamps: None,
    };
    for shape in SHAPES {
        let bytes = shape.batch().bytes;
        let mut group = c.benchmark_group("batch");
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function(format!("validate/{}", shape.name), |b| {
            b.iter(|| validate(black_box(&bytes), &rules, CRC32C).is_ok());
        });
        let batch = Batch::only(&bytes).expect("one batch");
        group.bench_function(format!("crc/{}", shape.name), |b| {
            b.iter(|| black_box(&batch).crc_holds(CRC32C))
        });
        group.finish();
    }
}

criterion_group!(benches, produce, fetch, discovery, offsets, groups, batches);
criterion_main!(benches);
