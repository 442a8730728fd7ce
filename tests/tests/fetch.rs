//! Fetches over a real connection: what comes back are the log's bytes, wherever they were sent from.

use skerry_core::api::create_topics::{CreatableTopic, CreateTopicsRequest};
use skerry_core::api::fetch::{FetchPartition, FetchRequest, FetchTopic};
use skerry_core::api::produce::{PartitionProduceData, ProduceRequest, TopicProduceData};
use skerry_core::error_code::ErrorCode;
use skerry_core::wire::{Array, Records};
use skerry_tests::client::{Client, reply};
use skerry_tests::process::{Start, TempDir};
use skerry_tests::wire::{TestRecord, batch, records};

const TOPIC: &str = "t";
const PRODUCE: i16 = 9;
const FETCH: i16 = 12;

fn produce(client: &mut Client, partition: i32, bytes: &[u8]) {
    let data = [PartitionProduceData {
        index: partition,
        records: Records::Bytes(bytes),
    }];
    let topics = [TopicProduceData {
        name: TOPIC,
        partition_data: Array::Slice(&data),
        ..TopicProduceData::default()
    }];
    let request = ProduceRequest {
        acks: -1,
        timeout_ms: 30_000,
        topic_data: Array::Slice(&topics),
        ..ProduceRequest::default()
    };
    let frame = client.call(PRODUCE, &request);
    for topic in reply::<ProduceRequest<'_>>(PRODUCE, &frame).responses {
        assert!(
            topic
                .partition_responses
                .iter()
                .all(|p| p.error_code == ErrorCode::NONE)
        );
    }
}

/// Goal: short answers, which go with the reply, and long ones, which are sent from their files, stand in one reply as they were
/// asked for. Method: partitions of many sizes, of which only some fit the room for short answers; every order of them, twice.
#[test]
fn short_and_long_answers_in_one_reply() {
    let directory = TempDir::new();
    let skerry = Start::new(directory.path()).start();
    let mut client = Client::connect(skerry.address);
    let sizes = [100, 20_000, 7_000, 3_000, 0, 500, 300_000, 40];
    let request = CreateTopicsRequest {
        topics: Array::Slice(&[CreatableTopic {
            name: TOPIC,
            num_partitions: sizes.len() as i32,
            replication_factor: 1,
            ..CreatableTopic::default()
        }]),
        timeout_ms: 30_000,
        ..CreateTopicsRequest::default()
    };
    let _ = client.call(6, &request);
    let record = |partition: usize, size: usize| TestRecord {
        offset: 0,
        timestamp: 1_700_000_000_000,
        key: Some(vec![partition as u8]),
        value: (0..size).map(|n| (n * 31 + partition) as u8).collect(),
    };
    for (partition, size) in sizes.into_iter().enumerate().filter(|(_, size)| *size > 0) {
        produce(&mut client, partition as i32, &batch(&[record(partition, size)], None));
    }
    for turn in 0..2 * sizes.len() {
        let order: Vec<usize> = (0..sizes.len()).map(|n| (n * 3 + turn) % sizes.len()).collect();
        let partitions: Vec<FetchPartition> = order
            .iter()
            .map(|partition| FetchPartition {
                partition: *partition as i32,
                partition_max_bytes: 1 << 20,
                ..FetchPartition::default()
            })
            .collect();
        let request = FetchRequest {
            max_wait_ms: 1000,
            min_bytes: 1,
            topics: Array::Slice(&[FetchTopic {
                topic: TOPIC,
                partitions: Array::Slice(&partitions),
                ..FetchTopic::default()
            }]),
            ..FetchRequest::default()
        };
        let frame = client.call(FETCH, &request);
        let answer = reply::<FetchRequest<'_>>(FETCH, &frame);
        let topic = answer.responses.iter().next().expect("the topic");
        let mut answered = Vec::new();
        for partition in topic.partitions {
            let number = partition.partition_index as usize;
            answered.push(number);
            assert_eq!(partition.error_code, ErrorCode::NONE);
            let Records::Bytes(bytes) = partition.records else {
                panic!("no records field")
            };
            let want: Vec<TestRecord> = (sizes[number] > 0)
                .then(|| record(number, sizes[number]))
                .into_iter()
                .collect();
            assert_eq!(records(bytes), want, "partition {number} in {order:?}");
        }
        assert_eq!(answered, order);
    }
    let (status, stderr) = skerry.stop();
    assert!(status.success(), "{stderr}");
}
