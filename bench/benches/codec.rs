//! Messages and batches, decoded and encoded: `codec/what/size` and `record/what/size`.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use skerry_bench::broker::{Consumer, Producer, SHAPES, Script};
use skerry_broker::crc::CRC32C;
use skerry_core::api::Request;
use skerry_core::api::fetch::{FetchResponse, FetchableTopicResponse, PartitionData};
use skerry_core::api::metadata::{MetadataResponse, MetadataResponsePartition, MetadataResponseTopic};
use skerry_core::api::produce::{PartitionProduceResponse, ProduceResponse, TopicProduceResponse};
use skerry_core::header::RequestHeader;
use skerry_core::record::{Batch, Rules, validate};
use skerry_core::wire::{Array, Message, Reader, Records, SliceWriter};

fn decode(frame: &[u8]) -> Request<'_> {
    let mut reader = Reader::new(&frame[4..]);
    let header = RequestHeader::decode(&mut reader).expect("a header");
    Request::decode(header.key, header.version, &mut reader).expect("a request")
}

fn requests(c: &mut Criterion) {
    let mut group = c.benchmark_group("codec/decode");
    let batch = SHAPES[0].batch();
    let mut producer = Producer::new("bench", 0, 1, &batch);
    producer.begin(1);
    group.bench_function("ProduceRequest/16KB", |b| {
        b.iter(|| decode(black_box(producer.frame())))
    });
    let mut consumer = Consumer::new("bench", 0, 500, &batch);
    consumer.begin(1);
    group.bench_function("FetchRequest/1", |b| b.iter(|| decode(black_box(consumer.frame()))));
    group.finish();
}

fn encode<'a, M: Message<'a>>(c: &mut Criterion, name: &str, version: i16, message: &M) {
    let mut room = vec![0; message.encoded_len(version)];
    c.bench_function(&format!("codec/encode/{name}"), |b| {
        b.iter(|| {
            // Measured, then written: as replies are.
            assert!(message.encoded_len(version) <= room.len());
            message.encode(&mut SliceWriter::new(black_box(&mut room)), version)
        });
    });
}

fn replies(c: &mut Criterion) {
    let partition_responses = [PartitionProduceResponse::default()];
    let responses = [TopicProduceResponse {
        name: "bench",
        partition_responses: Array::Slice(&partition_responses),
        ..TopicProduceResponse::default()
    }];
    let produced = ProduceResponse {
        responses: Array::Slice(&responses),
        ..ProduceResponse::default()
    };
    encode(c, "ProduceResponse/1", 9, &produced);
    let partitions = [PartitionData {
        records: Records::Elsewhere(1 << 20),
        aborted_transactions: Array::Null,
        ..PartitionData::default()
    }];
    let responses = [FetchableTopicResponse {
        topic: "bench",
        partitions: Array::Slice(&partitions),
        ..FetchableTopicResponse::default()
    }];
    let fetched = FetchResponse {
        responses: Array::Slice(&responses),
        ..FetchResponse::default()
    };
    encode(c, "FetchResponse/1", 12, &fetched);
    let nodes = [0];
    let partitions = vec![
        MetadataResponsePartition {
            replica_nodes: Array::Slice(&nodes),
            isr_nodes: Array::Slice(&nodes),
            ..MetadataResponsePartition::default()
        };
        4
    ];
    let topics = vec![
        MetadataResponseTopic {
            name: Some("a-topic-with-a-usual-name"),
            partitions: Array::Slice(&partitions),
            ..MetadataResponseTopic::default()
        };
        100
    ];
    let metadata = MetadataResponse {
        topics: Array::Slice(&topics),
        ..MetadataResponse::default()
    };
    encode(c, "MetadataResponse/100x4", 12, &metadata);
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
        let mut group = c.benchmark_group("record");
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

criterion_group!(benches, requests, replies, batches);
criterion_main!(benches);
