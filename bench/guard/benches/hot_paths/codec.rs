//! Messages and batches between bytes and values.

use std::hint::black_box;

use gungraun::prelude::*;
use skerry_bench::broker::{Batch, Consumer, Producer, SHAPES, Script};
use skerry_core::api::Request;
use skerry_core::api::fetch::{FetchResponse, FetchableTopicResponse, PartitionData};
use skerry_core::api::metadata::{
    MetadataRequest, MetadataRequestTopic, MetadataResponse, MetadataResponsePartition, MetadataResponseTopic,
};
use skerry_core::header::RequestHeader;
use skerry_core::record::{Rules, crc32c, validate};
use skerry_core::wire::{Array, Message, Reader, Records, SliceWriter};
use skerry_tests::wire;

use crate::held::held;

const TOPIC: &str = "a-topic-with-a-usual-name";

/// A request of one batch.
fn produce_frame(shape: usize) -> Vec<u8> {
    Producer::new(TOPIC, 0, 1, &SHAPES[shape].batch()).frame().to_vec()
}

fn fetch_frame() -> Vec<u8> {
    let mut consumer = Consumer::new(TOPIC, 0, 500, &SHAPES[0].batch());
    consumer.begin(1);
    consumer.frame().to_vec()
}

/// A request that names a hundred topics.
fn metadata_frame() -> Vec<u8> {
    let topics = [MetadataRequestTopic {
        name: Some(TOPIC),
        ..MetadataRequestTopic::default()
    }; 100];
    let request = MetadataRequest {
        topics: Array::Slice(&topics),
        ..MetadataRequest::default()
    };
    wire::request(&request, 12, 1)
}

/// Decodes a request and walks through all of it, as a handler does.
fn decode(frame: &[u8]) -> usize {
    let mut reader = Reader::new(&frame[4..]);
    let header = RequestHeader::decode(&mut reader).expect("a header");
    match Request::decode(header.key, header.version, &mut reader).expect("a request") {
        Request::Produce(request) => {
            let topics = request.topic_data.iter();
            topics.flat_map(|topic| topic.partition_data.iter()).count()
        }
        Request::Fetch(request) => {
            let topics = request.topics.iter();
            topics.flat_map(|topic| topic.partitions.iter()).count()
        }
        Request::Metadata(request) => request.topics.iter().filter(|topic| topic.name.is_some()).count(),
        _ => 0,
    }
}

#[library_benchmark]
#[bench::kb16(args = (0), setup = produce_frame, config = held("decode_produce/kb16"))]
fn decode_produce(frame: Vec<u8>) -> Vec<u8> {
    assert_eq!(decode(black_box(&frame)), 1);
    frame
}

#[library_benchmark]
#[bench::one(setup = fetch_frame, config = held("decode_fetch/one"))]
fn decode_fetch(frame: Vec<u8>) -> Vec<u8> {
    assert_eq!(decode(black_box(&frame)), 1);
    frame
}

#[library_benchmark]
#[bench::topics100(setup = metadata_frame, config = held("decode_metadata/topics100"))]
fn decode_metadata(frame: Vec<u8>) -> Vec<u8> {
    assert_eq!(decode(black_box(&frame)), 100);
    frame
}

/// Measured, then written: as replies are.
fn encode<'a, M: Message<'a>>(message: &M, version: i16, room: &mut [u8]) {
    black_box(message.encoded_len(version));
    message
        .encode(&mut SliceWriter::new(room), version)
        .expect("room for it");
}

#[library_benchmark]
#[bench::one(args = (vec![0; 1024]), config = held("encode_fetch/one"))]
fn encode_fetch(mut room: Vec<u8>) -> Vec<u8> {
    let partitions = [PartitionData {
        records: Records::Elsewhere(1 << 20),
        aborted_transactions: Array::Null,
        ..PartitionData::default()
    }];
    let responses = [FetchableTopicResponse {
        topic: TOPIC,
        partitions: Array::Slice(&partitions),
        ..FetchableTopicResponse::default()
    }];
    let fetched = FetchResponse {
        responses: Array::Slice(&responses),
        ..FetchResponse::default()
    };
    encode(black_box(&fetched), 12, &mut room);
    room
}

#[library_benchmark]
#[bench::topics100(args = (vec![0; 64 << 10]), config = held("encode_metadata/topics100"))]
fn encode_metadata(mut room: Vec<u8>) -> Vec<u8> {
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
    let metadata = MetadataResponse {
        topics: Array::Slice(&topics),
        ..MetadataResponse::default()
    };
    encode(black_box(&metadata), 12, &mut room);
    room
}

fn batch(shape: usize) -> Batch {
    SHAPES[shape].batch()
}

// All that a produced batch is asked before it is taken.
#[library_benchmark]
#[bench::records148(args = (0), setup = batch, config = held("validate_batch/records148"))]
#[bench::record1(args = (3), setup = batch, config = held("validate_batch/record1"))]
fn validate_batch(batch: Batch) -> Batch {
    let rules = Rules {
        batch_bytes_max: 1 << 20,
        produce_version: 9,
        transactions: false,
        keys_required: false,
        timestamps: None,
    };
    let valid = validate(black_box(&batch.bytes), &rules, crc32c).is_ok();
    assert!(valid);
    batch
}
