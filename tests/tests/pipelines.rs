//! Several requests sent before any reply is read, over real connections to the real binary.

use skerry_core::api::fetch::{FetchPartition, FetchRequest, FetchTopic};
use skerry_core::api::metadata::{MetadataRequest, MetadataRequestTopic};
use skerry_core::api::produce::{PartitionProduceData, ProduceRequest, TopicProduceData};
use skerry_core::error_code::ErrorCode;
use skerry_core::wire::Records;
use skerry_tests::client::{Client, reply};
use skerry_tests::process::{Start, TempDir};
use skerry_tests::wire::{TestRecord, batch};

fn records(bytes: usize) -> Vec<u8> {
    let record = TestRecord {
        offset: 0,
        timestamp: 1,
        key: None,
        value: vec![7; bytes],
    };
    batch(&[record], None)
}

fn produce(client: &mut Client, name: &str, acks: i16, partitions: &[PartitionProduceData<'_>]) {
    let topics = [TopicProduceData {
        name,
        partition_data: partitions.into(),
        ..TopicProduceData::default()
    }];
    let request = ProduceRequest {
        acks,
        timeout_ms: 30_000,
        topic_data: (&topics).into(),
        ..ProduceRequest::default()
    };
    client.send(9, &request).unwrap();
}

fn fetch(client: &mut Client, name: &str) {
    let partitions = [FetchPartition {
        partition_max_bytes: i32::MAX,
        ..FetchPartition::default()
    }];
    let topics = [FetchTopic {
        topic: name,
        partitions: (&partitions).into(),
        ..FetchTopic::default()
    }];
    let request = FetchRequest {
        max_bytes: i32::MAX,
        topics: (&topics).into(),
        ..FetchRequest::default()
    };
    client.send(11, &request).unwrap();
}

/// The high watermark and how many bytes were fetched.
fn fetched(client: &mut Client) -> (i64, usize) {
    let frame = client.receive().unwrap().expect("a reply");
    let answer = reply::<FetchRequest<'_>>(11, &frame);
    let topic = answer.responses.iter().next().unwrap();
    let partition = topic.partitions.iter().next().unwrap();
    let Records::Bytes(bytes) = partition.records else {
        panic!("no records");
    };
    assert_eq!(partition.error_code, ErrorCode::NONE);
    (partition.high_watermark, bytes.len())
}

fn create(client: &mut Client, names: &[&str]) {
    let topics: Vec<_> = names
        .iter()
        .map(|name| MetadataRequestTopic {
            name: Some(name),
            ..MetadataRequestTopic::default()
        })
        .collect();
    let request = MetadataRequest {
        topics: topics.as_slice().into(),
        allow_auto_topic_creation: true,
        ..MetadataRequest::default()
    };
    let _ = client.call(4, &request);
}

#[test]
fn a_request_that_ends_the_connection_is_done_once_although_replies_before_it_are_still_leaving() {
    let dir = TempDir::new();
    let broker = Start::new(dir.path()).start();
    let mut other = Client::connect(broker.address);
    create(&mut other, &["large", "small"]);
    let (large, small) = (records(900_000), records(10));
    let data = |index, bytes| PartitionProduceData {
        index,
        records: Records::Bytes(bytes),
    };
    for _ in 0..5 {
        produce(&mut other, "large", -1, &[data(0, &large)]);
        other.receive().unwrap().expect("a reply");
    }
    // The fetch takes many sends to leave. The produce fails in its second partition, of which acks=0 is told by closing.
    let mut client = Client::connect(broker.address);
    fetch(&mut client, "large");
    produce(&mut client, "small", 0, &[data(0, &small), data(9, &small)]);
    assert!(fetched(&mut client).1 > 4_000_000, "what was asked before is answered");
    assert_eq!(client.receive().unwrap(), None, "and then it is closed");
    // Its record becomes visible with a flush, which one more that waits for the disk brings.
    produce(&mut other, "small", -1, &[data(0, &small)]);
    other.receive().unwrap().expect("a reply");
    fetch(&mut other, "small");
    assert_eq!(fetched(&mut other).0, 2);
}
