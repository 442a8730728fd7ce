//! Topics and their settings over real connections to the real binary, in every version that it speaks.

use skerry_core::api::alter_configs::{self, AlterConfigsRequest};
use skerry_core::api::create_partitions::{CreatePartitionsAssignment, CreatePartitionsRequest, CreatePartitionsTopic};
use skerry_core::api::create_topics::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig, CreateTopicsRequest,
};
use skerry_core::api::delete_records::{DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic};
use skerry_core::api::delete_topics::{DeleteTopicState, DeleteTopicsRequest};
use skerry_core::api::describe_cluster::DescribeClusterRequest;
use skerry_core::api::describe_configs::{DescribeConfigsRequest, DescribeConfigsResource};
use skerry_core::api::describe_log_dirs::{DescribableLogDirTopic, DescribeLogDirsRequest};
use skerry_core::api::describe_topic_partitions::{Cursor, DescribeTopicPartitionsRequest, TopicRequest};
use skerry_core::api::fetch::{FetchPartition, FetchRequest, FetchTopic};
use skerry_core::api::incremental_alter_configs::{self, IncrementalAlterConfigsRequest};
use skerry_core::api::init_producer_id::InitProducerIdRequest;
use skerry_core::api::list_partition_reassignments::ListPartitionReassignmentsRequest;
use skerry_core::api::metadata::{MetadataRequest, MetadataRequestTopic};
use skerry_core::api::offset_commit::{OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use skerry_core::api::produce::{PartitionProduceData, ProduceRequest, TopicProduceData};
use skerry_core::error_code::ErrorCode;
use skerry_core::record::{BatchBuilder, crc32c};
use skerry_core::time::Timestamp;
use skerry_core::wire::{Array, Records, Uuid};
use skerry_tests::client::{Client, Frame, reply};
use skerry_tests::process::{Skerry, Start, TempDir};

fn broker(dir: &TempDir, settings: &[&str]) -> Skerry {
    Start::new(dir.path()).with(settings).start()
}

/// A topic to be made.
#[derive(Clone, Copy)]
struct New<'a> {
    name: &'a str,
    num_partitions: i32,
    replication_factor: i16,
    assignments: &'a [(i32, &'a [i32])],
    configs: &'a [(&'a str, Option<&'a str>)],
}

fn topic(name: &str) -> New<'_> {
    New {
        name,
        num_partitions: 1,
        replication_factor: 1,
        assignments: &[],
        configs: &[],
    }
}

fn create(client: &mut Client, version: i16, topics: &[New<'_>]) -> Vec<ErrorCode> {
    let frame = send_create(client, version, topics, false);
    let answer = reply::<CreateTopicsRequest<'_>>(version, &frame);
    let names: Vec<_> = answer.topics.iter().map(|t| t.name.to_owned()).collect();
    assert_eq!(names, topics.iter().map(|t| t.name.to_owned()).collect::<Vec<_>>());
    let errors = answer.topics.iter().map(|t| {
        assert_eq!(t.error_message.is_none(), t.error_code.is_none());
        t.error_code
    });
    errors.collect()
}

fn send_create(client: &mut Client, version: i16, topics: &[New<'_>], validate_only: bool) -> Frame {
    let assignments: Vec<Vec<_>> = topics
        .iter()
        .map(|new| {
            let assigned = new
                .assignments
                .iter()
                .map(|(partition_index, brokers)| CreatableReplicaAssignment {
                    partition_index: *partition_index,
                    broker_ids: (*brokers).into(),
                });
            assigned.collect()
        })
        .collect();
    let configs: Vec<Vec<_>> = topics
        .iter()
        .map(|new| {
            let set = new
                .configs
                .iter()
                .map(|(name, value)| CreatableTopicConfig { name, value: *value });
            set.collect()
        })
        .collect();
    let topics: Vec<_> = topics
        .iter()
        .zip(assignments.iter().zip(&configs))
        .map(|(new, (assignments, configs))| CreatableTopic {
            name: new.name,
            num_partitions: new.num_partitions,
            replication_factor: new.replication_factor,
            assignments: assignments.as_slice().into(),
            configs: configs.as_slice().into(),
        })
        .collect();
    let request = CreateTopicsRequest {
        topics: topics.as_slice().into(),
        validate_only,
        ..CreateTopicsRequest::default()
    };
    client.call(version, &request)
}

/// Name, id, partitions and error of each topic told of.
fn metadata(client: &mut Client, version: i16, names: Option<&[&str]>, auto_create: bool) -> Vec<Told> {
    let asked: Vec<_> = names
        .unwrap_or_default()
        .iter()
        .map(|name| MetadataRequestTopic {
            name: Some(name),
            ..MetadataRequestTopic::default()
        })
        .collect();
    let topics = match names {
        // Before version 1 an empty list asks for all.
        None if version == 0 => Array::Slice(&[]),
        None => Array::Null,
        Some(_) => Array::Slice(&asked),
    };
    let request = MetadataRequest {
        topics,
        allow_auto_topic_creation: auto_create,
        ..MetadataRequest::default()
    };
    told(client, version, &request)
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Told {
    name: Option<String>,
    id: Uuid,
    partitions: Vec<i32>,
    error: ErrorCode,
}

fn told(client: &mut Client, version: i16, request: &MetadataRequest<'_>) -> Vec<Told> {
    let frame = client.call(version, request);
    let answer = reply::<MetadataRequest<'_>>(version, &frame);
    assert_eq!(answer.brokers.len(), 1);
    assert_eq!(answer.brokers.iter().next().unwrap().node_id, 1);
    assert_eq!(answer.cluster_id.map(str::len), (version >= 2).then_some(22));
    assert_eq!(answer.controller_id, if version >= 1 { 1 } else { -1 });
    let topics = answer.topics.iter().map(|topic| Told {
        name: topic.name.map(str::to_owned),
        id: topic.topic_id,
        partitions: topic
            .partitions
            .iter()
            .map(|partition| {
                assert_eq!(partition.leader_id, 1);
                assert_eq!(partition.replica_nodes.iter().collect::<Vec<_>>(), [1]);
                assert_eq!(partition.isr_nodes.iter().collect::<Vec<_>>(), [1]);
                assert_eq!(partition.leader_epoch >= 0, version >= 7);
                partition.partition_index
            })
            .collect(),
        error: topic.error_code,
    });
    topics.collect()
}

fn delete(client: &mut Client, version: i16, name: &str) -> ErrorCode {
    let names = [name];
    let states = [DeleteTopicState {
        name: Some(name),
        topic_id: Uuid::ZERO,
    }];
    let request = DeleteTopicsRequest {
        topics: if version >= 6 {
            (&states).into()
        } else {
            Array::default()
        },
        topic_names: if version < 6 { (&names).into() } else { Array::default() },
        timeout_ms: 1000,
    };
    let frame = client.call(version, &request);
    let answer = reply::<DeleteTopicsRequest<'_>>(version, &frame);
    let only = answer.responses.iter().next().unwrap();
    assert_eq!(only.name, Some(name));
    only.error_code
}

#[test]
fn topics_come_and_go_in_every_version() {
    let dir = TempDir::new();
    let broker = broker(&dir, &[]);
    let mut client = Client::connect(broker.address);
    let mut ids = Vec::new();
    for version in 2..=7 {
        let name = format!("topic-{version}");
        let new = New {
            num_partitions: i32::from(version),
            ..topic(&name)
        };
        assert_eq!(create(&mut client, version, &[new]), [ErrorCode::NONE]);
        assert_eq!(create(&mut client, version, &[new]), [ErrorCode::TOPIC_ALREADY_EXISTS]);
    }
    for version in 0..=13 {
        let all = metadata(&mut client, version, None, true);
        let names: Vec<_> = all.iter().map(|topic| topic.name.clone().unwrap()).collect();
        assert_eq!(
            names,
            ["topic-2", "topic-3", "topic-4", "topic-5", "topic-6", "topic-7"]
        );
        for (topic, partitions) in all.iter().zip(2..) {
            assert_eq!(topic.partitions, (0..partitions).collect::<Vec<_>>());
            assert_eq!(topic.id.is_zero(), version < 10);
        }
        if version >= 1 {
            assert_eq!(metadata(&mut client, version, Some(&[]), true), []);
        }
        assert_eq!(
            metadata(&mut client, version, Some(&["topic-3"]), true),
            [all[1].clone()]
        );
        ids = all.iter().map(|topic| topic.id).collect();
    }
    for version in 1..=6 {
        let name = format!("topic-{}", version + 1);
        assert_eq!(delete(&mut client, version, &name), ErrorCode::NONE);
        assert_eq!(
            delete(&mut client, version, &name),
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
        );
        let left = metadata(&mut client, 12, None, true);
        assert_eq!(left.len(), 6 - version as usize);
    }
    // Made again it is another topic.
    assert_eq!(create(&mut client, 7, &[topic("topic-2")]), [ErrorCode::NONE]);
    let again = metadata(&mut client, 13, Some(&["topic-2"]), true);
    assert!(!ids.contains(&again[0].id));
}

#[test]
fn what_a_new_topic_may_be() {
    let dir = TempDir::new();
    let broker = broker(
        &dir,
        &[
            "num.partitions=3",
            "skerry.limits.topics=6",
            "skerry.limits.partitions=20",
        ],
    );
    let mut client = Client::connect(broker.address);
    let with = |change: &dyn Fn(&mut New<'_>)| {
        let mut new = topic("a");
        change(&mut new);
        (new.num_partitions, new.replication_factor)
    };
    let counts = [
        (
            with(&|t| t.replication_factor = 2),
            ErrorCode::INVALID_REPLICATION_FACTOR,
        ),
        (
            with(&|t| t.replication_factor = 0),
            ErrorCode::INVALID_REPLICATION_FACTOR,
        ),
        (
            with(&|t| t.replication_factor = -2),
            ErrorCode::INVALID_REPLICATION_FACTOR,
        ),
        (with(&|t| t.num_partitions = 0), ErrorCode::INVALID_PARTITIONS),
        (with(&|t| t.num_partitions = -2), ErrorCode::INVALID_PARTITIONS),
        (with(&|t| t.num_partitions = 21), ErrorCode::POLICY_VIOLATION),
        (with(&|t| t.num_partitions = i32::MAX), ErrorCode::POLICY_VIOLATION),
    ];
    for ((num_partitions, replication_factor), error) in counts {
        let new = New {
            num_partitions,
            replication_factor,
            ..topic("a")
        };
        assert_eq!(
            create(&mut client, 7, &[new]),
            [error],
            "{num_partitions} × {replication_factor}"
        );
    }
    let long = "x".repeat(250);
    for name in ["", ".", "..", "a b", "a/../b", "ä", &long] {
        assert_eq!(
            create(&mut client, 7, &[topic(name)]),
            [ErrorCode::INVALID_TOPIC_EXCEPTION],
            "{name:?}"
        );
    }
    for (name, value, error) in [
        ("retention.ms", Some("x"), ErrorCode::INVALID_CONFIG),
        ("retention.ms", None, ErrorCode::INVALID_CONFIG),
        ("no.such.setting", Some("1"), ErrorCode::INVALID_CONFIG),
    ] {
        let configs = [(name, value)];
        let new = New {
            configs: &configs,
            ..topic("a")
        };
        assert_eq!(create(&mut client, 7, &[new]), [error], "{name}={value:?}");
    }

    // −1 for both is the broker's own.
    let open = New {
        num_partitions: -1,
        replication_factor: -1,
        ..topic("a.b")
    };
    // A name that comes twice is neither made nor not made: both are refused.
    assert_eq!(
        create(&mut client, 7, &[topic("twice"), open, topic("twice")]),
        [ErrorCode::INVALID_REQUEST, ErrorCode::NONE, ErrorCode::INVALID_REQUEST]
    );
    assert_eq!(
        create(&mut client, 7, &[topic("a_b")]),
        [ErrorCode::INVALID_TOPIC_EXCEPTION]
    );
    let all = metadata(&mut client, 13, None, true);
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].partitions, [0, 1, 2]);

    // Nothing but what fits: 6 topics, 20 partitions.
    let big = New {
        num_partitions: 14,
        ..topic("big")
    };
    assert_eq!(
        create(
            &mut client,
            7,
            &[big, topic("c"), topic("d"), topic("e"), topic("f"), topic("g")]
        ),
        [
            ErrorCode::NONE,
            ErrorCode::NONE,
            ErrorCode::NONE,
            ErrorCode::NONE,
            ErrorCode::POLICY_VIOLATION,
            ErrorCode::POLICY_VIOLATION
        ]
    );
    assert_eq!(delete(&mut client, 6, "big"), ErrorCode::NONE);
    assert_eq!(
        create(&mut client, 7, &[topic("f"), topic("g"), topic("h")]),
        [ErrorCode::NONE, ErrorCode::NONE, ErrorCode::POLICY_VIOLATION]
    );
}

#[test]
fn partitions_assigned_by_hand_are_on_this_broker() {
    let dir = TempDir::new();
    let broker = broker(&dir, &[]);
    let mut client = Client::connect(broker.address);
    let mut assigned = |assignments: &[(i32, &[i32])], counts| {
        let (num_partitions, replication_factor) = counts;
        let new = New {
            num_partitions,
            replication_factor,
            assignments,
            ..topic("assigned")
        };
        create(&mut client, 7, &[new])[0]
    };
    let open = (-1, -1);
    let invalid = ErrorCode::INVALID_REPLICA_ASSIGNMENT;
    assert_eq!(assigned(&[(0, &[1]), (2, &[1])], open), invalid);
    assert_eq!(assigned(&[(0, &[1]), (0, &[1])], open), invalid);
    assert_eq!(assigned(&[(-1, &[1])], open), invalid);
    assert_eq!(assigned(&[(0, &[2])], open), invalid);
    assert_eq!(assigned(&[(0, &[1, 2])], open), invalid);
    assert_eq!(assigned(&[(0, &[])], open), invalid);
    assert_eq!(assigned(&[(0, &[1])], (1, -1)), ErrorCode::INVALID_REQUEST);
    assert_eq!(assigned(&[(0, &[1])], (-1, 1)), ErrorCode::INVALID_REQUEST);
    assert_eq!(assigned(&[(1, &[1]), (0, &[1])], open), ErrorCode::NONE);
    assert_eq!(metadata(&mut client, 13, None, true)[0].partitions, [0, 1]);
}

#[test]
fn only_checking_changes_nothing_and_tells_what_would_be() {
    let dir = TempDir::new();
    let broker = broker(&dir, &["log.retention.ms=5000"]);
    let mut client = Client::connect(broker.address);
    let configs = [("cleanup.policy", Some("compact"))];
    let new = [New {
        num_partitions: 2,
        configs: &configs,
        ..topic("a")
    }];
    for validate_only in [true, false] {
        let frame = send_create(&mut client, 7, &new, validate_only);
        let answer = reply::<CreateTopicsRequest<'_>>(7, &frame);
        let only = answer.topics.iter().next().unwrap();
        assert_eq!(only.error_code, ErrorCode::NONE);
        assert_eq!((only.num_partitions, only.replication_factor), (2, 1));
        assert_eq!(only.topic_id.is_zero(), validate_only);
        let of = |name| {
            only.configs
                .iter()
                .find(|c| c.name == name)
                .map(|c| (c.value, c.config_source))
        };
        assert_eq!(of("cleanup.policy"), Some((Some("compact"), 1)));
        assert_eq!(of("retention.ms"), Some((Some("5000"), 4)));
        assert_eq!(of("segment.bytes"), Some((Some("1073741824"), 5)));
        assert_eq!(metadata(&mut client, 13, None, true).len(), usize::from(!validate_only));
    }
    for (validate_only, partitions) in [(true, 2), (false, 3)] {
        let topics = [CreatePartitionsTopic {
            name: "a",
            count: 3,
            assignments: Array::Null,
        }];
        let request = CreatePartitionsRequest {
            topics: (&topics).into(),
            validate_only,
            ..CreatePartitionsRequest::default()
        };
        let frame = client.call(3, &request);
        let answer = reply::<CreatePartitionsRequest<'_>>(3, &frame);
        assert_eq!(answer.results.iter().next().unwrap().error_code, ErrorCode::NONE);
        assert_eq!(metadata(&mut client, 13, None, true)[0].partitions.len(), partitions);
    }
}

#[test]
fn partitions_only_become_more() {
    let dir = TempDir::new();
    let broker = broker(&dir, &["skerry.limits.partitions=10"]);
    let mut client = Client::connect(broker.address);
    type Assigned = Option<&'static [i32]>;
    let cases: [(&str, i32, Assigned, ErrorCode); 11] = [
        ("a", 1, None, ErrorCode::INVALID_PARTITIONS),
        ("a", 0, None, ErrorCode::INVALID_PARTITIONS),
        ("a", i32::MIN, None, ErrorCode::INVALID_PARTITIONS),
        ("b", 2, None, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
        ("a", 2, Some(&[2]), ErrorCode::INVALID_REPLICA_ASSIGNMENT),
        ("a", 3, Some(&[1]), ErrorCode::INVALID_REPLICA_ASSIGNMENT),
        ("a", 2, Some(&[]), ErrorCode::INVALID_REPLICA_ASSIGNMENT),
        ("a", i32::MAX, None, ErrorCode::POLICY_VIOLATION),
        ("a", 2, Some(&[1]), ErrorCode::NONE),
        ("a", 2, Some(&[1]), ErrorCode::INVALID_PARTITIONS),
        ("a", 10, None, ErrorCode::NONE),
    ];
    for version in 0..=3 {
        create(&mut client, 7, &[topic("a")]);
        for (name, count, assigned, error) in cases {
            let brokers: Vec<_> = assigned.unwrap_or_default().iter().map(std::slice::from_ref).collect();
            let assignments: Vec<_> = brokers
                .iter()
                .map(|brokers| CreatePartitionsAssignment {
                    broker_ids: (*brokers).into(),
                })
                .collect();
            let topics = [CreatePartitionsTopic {
                name,
                count,
                assignments: assigned.map_or(Array::Null, |_| assignments.as_slice().into()),
            }];
            let request = CreatePartitionsRequest {
                topics: (&topics).into(),
                ..CreatePartitionsRequest::default()
            };
            let frame = client.call(version, &request);
            let answer = reply::<CreatePartitionsRequest<'_>>(version, &frame);
            let only = answer.results.iter().next().unwrap();
            assert_eq!((only.name, only.error_code), (name, error), "{count}");
        }
        assert_eq!(metadata(&mut client, 13, None, true)[0].partitions.len(), 10);
        assert_eq!(delete(&mut client, 6, "a"), ErrorCode::NONE);
    }
}

#[test]
fn topics_are_made_when_asked_for_only_where_both_sides_allow_it() {
    let dir = TempDir::new();
    let broker_that_does = broker(&dir, &["num.partitions=2"]);
    let mut client = Client::connect(broker_that_does.address);
    for version in 0..=13 {
        let name = format!("made-{version}");
        let one = metadata(&mut client, version, Some(&[&name]), true);
        assert_eq!(
            (one[0].error, one[0].partitions.len()),
            (ErrorCode::NONE, 2),
            "version {version}"
        );
        if version >= 4 {
            let none = metadata(&mut client, version, Some(&["unmade"]), false);
            assert_eq!(none[0].error, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
        }
        let bad = metadata(
            &mut client,
            version,
            Some(&["not a name", &name, "made_0.x", "made.0_x"]),
            true,
        );
        let errors: Vec<_> = bad.iter().map(|topic| topic.error).collect();
        let invalid = ErrorCode::INVALID_TOPIC_EXCEPTION;
        assert_eq!(errors, [invalid, ErrorCode::NONE, ErrorCode::NONE, invalid]);
    }
    let by_id = |id| MetadataRequest {
        topics: Array::one(Box::leak(Box::new(MetadataRequestTopic {
            topic_id: id,
            name: None,
        }))),
        ..MetadataRequest::default()
    };
    let known = metadata(&mut client, 13, Some(&["made-0"]), false).remove(0);
    assert_eq!(told(&mut client, 12, &by_id(known.id)), [known]);
    let unknown = told(&mut client, 12, &by_id(Uuid([9; 16]))).remove(0);
    assert_eq!((unknown.error, unknown.name), (ErrorCode::UNKNOWN_TOPIC_ID, None));
    drop(client);
    drop(broker_that_does);

    let other = TempDir::new();
    let broker_that_does_not = broker(&other, &["auto.create.topics.enable=false"]);
    let mut client = Client::connect(broker_that_does_not.address);
    let none = metadata(&mut client, 9, Some(&["unmade"]), true);
    assert_eq!(none[0].error, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
}

#[test]
fn deletion_by_id_twice_or_where_it_is_not_allowed() {
    let dir = TempDir::new();
    let first = broker(&dir, &[]);
    let mut client = Client::connect(first.address);
    create(&mut client, 7, &[topic("a"), topic("b")]);
    let id = metadata(&mut client, 13, Some(&["a"]), false)[0].id;
    let by_id = |topic_id| DeleteTopicState { name: None, topic_id };
    let by_name = |name| DeleteTopicState {
        name: Some(name),
        topic_id: Uuid::ZERO,
    };
    let mut delete_all = |states: &[DeleteTopicState<'_>]| -> Vec<_> {
        let request = DeleteTopicsRequest {
            topics: states.into(),
            ..DeleteTopicsRequest::default()
        };
        let frame = client.call(6, &request);
        let answer = reply::<DeleteTopicsRequest<'_>>(6, &frame);
        let results = answer
            .responses
            .iter()
            .map(|r| (r.name.map(str::to_owned), r.topic_id, r.error_code));
        results.collect()
    };
    let both = DeleteTopicState {
        name: Some("b"),
        topic_id: id,
    };
    let strange = Uuid([3; 16]);
    assert_eq!(
        delete_all(&[by_id(strange), both])
            .iter()
            .map(|(.., error)| *error)
            .collect::<Vec<_>>(),
        [ErrorCode::UNKNOWN_TOPIC_ID, ErrorCode::INVALID_REQUEST]
    );
    let twice = delete_all(&[by_id(id), by_name("a")]);
    assert!(twice.iter().all(|(.., error)| *error == ErrorCode::INVALID_REQUEST));
    assert_eq!(delete_all(&[by_id(id)]), [(Some("a".into()), id, ErrorCode::NONE)]);
    drop(client);
    drop(first);

    let second = broker(&dir, &["delete.topic.enable=false"]);
    let mut client = Client::connect(second.address);
    assert_eq!(delete(&mut client, 1, "b"), ErrorCode::INVALID_REQUEST);
    assert_eq!(delete(&mut client, 6, "b"), ErrorCode::TOPIC_DELETION_DISABLED);
    assert_eq!(metadata(&mut client, 13, None, false).len(), 1);
}

fn produce(client: &mut Client, name: &str, records: i32) -> (ErrorCode, i64) {
    let mut out = vec![0; 100_000];
    let mut builder = BatchBuilder::new(&mut out).unwrap();
    for at in 0..records {
        builder
            .push(Timestamp(i64::from(at)), None, Some(b"value"), &[])
            .unwrap();
    }
    let partitions = [PartitionProduceData {
        index: 0,
        records: Records::Bytes(builder.finish(crc32c)),
    }];
    let topics = [TopicProduceData {
        name,
        partition_data: (&partitions).into(),
        ..TopicProduceData::default()
    }];
    let request = ProduceRequest {
        acks: -1,
        timeout_ms: 30_000,
        topic_data: (&topics).into(),
        ..ProduceRequest::default()
    };
    let frame = client.call(9, &request);
    let answer = reply::<ProduceRequest<'_>>(9, &frame);
    let topic = answer.responses.iter().next().unwrap();
    let partition = topic.partition_responses.iter().next().unwrap();
    // The broker's time where the topic says so, else none.
    assert_eq!(
        partition.log_append_time_ms != -1,
        name == "stamped" && partition.error_code.is_none()
    );
    (partition.error_code, partition.base_offset)
}

#[test]
fn a_fetch_that_waits_hears_of_the_deletion() {
    let dir = TempDir::new();
    let broker = broker(&dir, &[]);
    let (mut reader, mut admin) = (Client::connect(broker.address), Client::connect(broker.address));
    create(&mut admin, 7, &[topic("a")]);
    assert_eq!(produce(&mut admin, "a", 3), (ErrorCode::NONE, 0));
    let partitions = [FetchPartition {
        partition: 0,
        fetch_offset: 3,
        partition_max_bytes: 1000,
        ..FetchPartition::default()
    }];
    let topics = [FetchTopic {
        topic: "a",
        partitions: (&partitions).into(),
        ..FetchTopic::default()
    }];
    let request = FetchRequest {
        max_wait_ms: 600_000,
        min_bytes: 1,
        max_bytes: 1000,
        topics: (&topics).into(),
        ..FetchRequest::default()
    };
    reader.send(12, &request).unwrap();
    // The reader's request is there before the deletion is: a later request of its connection would wait behind it, so ask by another.
    metadata(&mut admin, 13, None, false);
    assert_eq!(delete(&mut admin, 6, "a"), ErrorCode::NONE);
    let frame = reader.receive().unwrap().expect("an answer, and not after ten minutes");
    let answer = reply::<FetchRequest<'_>>(12, &frame);
    let only = answer.responses.iter().next().unwrap();
    let partition = only.partitions.iter().next().unwrap();
    assert_eq!(partition.error_code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    assert_eq!(produce(&mut admin, "a", 1).0, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    // Made again it begins anew.
    create(&mut admin, 7, &[topic("a")]);
    assert_eq!(produce(&mut admin, "a", 2), (ErrorCode::NONE, 0));
}

#[test]
fn records_are_deleted_up_to_an_offset() {
    let dir = TempDir::new();
    let broker = broker(&dir, &[]);
    let mut client = Client::connect(broker.address);
    let compact = [("cleanup.policy", Some("compact"))];
    let compacted = New {
        configs: &compact,
        ..topic("compacted")
    };
    create(&mut client, 7, &[topic("a"), compacted]);
    assert_eq!(produce(&mut client, "a", 10), (ErrorCode::NONE, 0));
    for version in 0..=2 {
        for (name, partition_index, offset, error, start) in [
            ("a", 0, 4, ErrorCode::NONE, 4),
            ("a", 0, 11, ErrorCode::OFFSET_OUT_OF_RANGE, -1),
            ("a", 1, 0, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, -1),
            ("b", 0, 0, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, -1),
            ("compacted", 0, 0, ErrorCode::POLICY_VIOLATION, -1),
        ] {
            let partitions = [DeleteRecordsPartition {
                partition_index,
                offset,
            }];
            let topics = [DeleteRecordsTopic {
                name,
                partitions: (&partitions).into(),
            }];
            let request = DeleteRecordsRequest {
                topics: (&topics).into(),
                ..DeleteRecordsRequest::default()
            };
            let frame = client.call(version, &request);
            let answer = reply::<DeleteRecordsRequest<'_>>(version, &frame);
            let topic = answer.topics.iter().next().unwrap();
            let partition = topic.partitions.iter().next().unwrap();
            assert_eq!(topic.name, name);
            assert_eq!(
                (partition.partition_index, partition.error_code, partition.low_watermark),
                (partition_index, error, start)
            );
        }
    }
}

/// A setting: name, value, source, and its synonyms' names and sources.
type Setting = (String, Option<String>, i8, Vec<(String, i8)>);

fn describe(
    client: &mut Client,
    version: i16,
    kind: i8,
    name: &str,
    keys: Option<&[&str]>,
) -> Result<Vec<Setting>, ErrorCode> {
    let resources = [DescribeConfigsResource {
        resource_type: kind,
        resource_name: name,
        configuration_keys: keys.map_or(Array::Null, Array::Slice),
    }];
    let request = DescribeConfigsRequest {
        resources: (&resources).into(),
        include_synonyms: true,
        include_documentation: true,
    };
    let frame = client.call(version, &request);
    let answer = reply::<DescribeConfigsRequest<'_>>(version, &frame);
    let only = answer.results.iter().next().unwrap();
    assert_eq!((only.resource_type, only.resource_name), (kind, name));
    if !only.error_code.is_none() {
        assert!(only.configs.is_empty());
        return Err(only.error_code);
    }
    let settings = only.configs.iter().map(|config| {
        assert_eq!(config.read_only, kind == 4);
        assert_eq!(config.documentation.is_some_and(|doc| !doc.is_empty()), version >= 3);
        assert_eq!(config.config_type != 0, version >= 3);
        (
            config.name.to_owned(),
            config.value.map(str::to_owned),
            config.config_source,
            config.synonyms.iter().map(|s| (s.name.to_owned(), s.source)).collect(),
        )
    });
    Ok(settings.collect())
}

#[test]
fn settings_are_told_with_their_sources() {
    let dir = TempDir::new();
    let broker = broker(&dir, &["log.retention.ms=5000"]);
    let mut client = Client::connect(broker.address);
    let configs = [("segment.bytes", Some("4096"))];
    let new = New {
        configs: &configs,
        ..topic("a")
    };
    create(&mut client, 7, &[new]);
    for version in 1..=4 {
        let keys = ["segment.bytes", "retention.ms", "segment.ms", "no.such"];
        let told = describe(&mut client, version, 2, "a", Some(&keys)).unwrap();
        let synonym = |name: &str, source| (name.to_owned(), source);
        let want: [Setting; 3] = [
            (
                "retention.ms".into(),
                Some("5000".into()),
                4,
                vec![synonym("log.retention.ms", 4), synonym("log.retention.ms", 5)],
            ),
            (
                "segment.bytes".into(),
                Some("4096".into()),
                1,
                vec![synonym("segment.bytes", 1), synonym("log.segment.bytes", 5)],
            ),
            (
                "segment.ms".into(),
                Some("604800000".into()),
                5,
                vec![synonym("log.roll.ms", 5)],
            ),
        ];
        assert_eq!(told, want);
        let all = describe(&mut client, version, 2, "a", None).unwrap();
        assert!(all.len() > 20);
        assert_eq!(describe(&mut client, version, 2, "a", Some(&[])).unwrap(), all);
        let own = describe(
            &mut client,
            version,
            4,
            "1",
            Some(&["log.retention.ms", "num.partitions"]),
        )
        .unwrap();
        let own: Vec<_> = own
            .into_iter()
            .map(|(name, value, source, _)| (name, value, source))
            .collect();
        assert_eq!(
            own,
            [
                ("num.partitions".into(), Some("1".into()), 5),
                ("log.retention.ms".into(), Some("5000".into()), 4)
            ]
        );
        assert_eq!(describe(&mut client, version, 4, "", None), Ok(vec![]));
        assert_eq!(describe(&mut client, version, 8, "1", None), Ok(vec![]));
        assert_eq!(
            describe(&mut client, version, 4, "2", None),
            Err(ErrorCode::INVALID_REQUEST)
        );
        assert_eq!(
            describe(&mut client, version, 4, "one", None),
            Err(ErrorCode::INVALID_REQUEST)
        );
        assert_eq!(
            describe(&mut client, version, 3, "a", None),
            Err(ErrorCode::INVALID_REQUEST)
        );
        assert_eq!(
            describe(&mut client, version, 2, "b", None),
            Err(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)
        );
        assert_eq!(
            describe(&mut client, version, 2, "b c", None),
            Err(ErrorCode::INVALID_TOPIC_EXCEPTION)
        );
    }
}

/// What is set on the topic itself.
fn own_settings(client: &mut Client, name: &str) -> Vec<(String, String)> {
    let all = describe(client, 4, 2, name, None).unwrap();
    let own = all.into_iter().filter(|(_, _, source, _)| *source == 1);
    own.map(|(name, value, ..)| (name, value.unwrap())).collect()
}

#[test]
fn settings_are_changed_one_by_one_or_all_at_once() {
    let dir = TempDir::new();
    let first = broker(&dir, &[]);
    let mut client = Client::connect(first.address);
    create(&mut client, 7, &[topic("a")]);
    let mut change = |version, kind, name: &str, changes: &[(&str, i8, Option<&str>)], validate_only| {
        let configs: Vec<_> = changes
            .iter()
            .map(
                |(name, config_operation, value)| incremental_alter_configs::AlterableConfig {
                    name,
                    config_operation: *config_operation,
                    value: *value,
                },
            )
            .collect();
        let resources = [incremental_alter_configs::AlterConfigsResource {
            resource_type: kind,
            resource_name: name,
            configs: configs.as_slice().into(),
        }];
        let request = IncrementalAlterConfigsRequest {
            resources: (&resources).into(),
            validate_only,
        };
        let frame = client.call(version, &request);
        let answer = reply::<IncrementalAlterConfigsRequest<'_>>(version, &frame);
        let only = answer.responses.iter().next().unwrap();
        assert_eq!((only.resource_type, only.resource_name), (kind, name));
        (only.error_code, own_settings(&mut client, "a"))
    };
    let own = |settings: &[(&str, &str)]| -> Vec<(String, String)> {
        settings
            .iter()
            .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
            .collect()
    };
    const SET: i8 = 0;
    const DELETE: i8 = 1;
    const APPEND: i8 = 2;
    const SUBTRACT: i8 = 3;
    let none = ErrorCode::NONE;
    let set = [("retention.ms", SET, Some("77")), ("segment.bytes", SET, Some("5000"))];
    assert_eq!(change(1, 2, "a", &set, true), (none, vec![]));
    let both = own(&[("retention.ms", "77"), ("segment.bytes", "5000")]);
    assert_eq!(change(1, 2, "a", &set, false), (none, both.clone()));
    for (changes, error) in [
        // A change that is refused changes nothing, nor does what comes before it.
        (
            &[("retention.ms", SET, Some("1")), ("segment.bytes", SET, Some("x"))][..],
            ErrorCode::INVALID_CONFIG,
        ),
        (&[("no.such", SET, Some("1"))], ErrorCode::INVALID_CONFIG),
        (&[("retention.ms", APPEND, Some("1"))], ErrorCode::INVALID_CONFIG),
        (&[("retention.ms", SET, None)], ErrorCode::INVALID_REQUEST),
        (&[("retention.ms", 4, Some("1"))], ErrorCode::INVALID_REQUEST),
        (
            &[("retention.ms", SET, Some("1")), ("retention.ms", DELETE, None)],
            ErrorCode::INVALID_REQUEST,
        ),
    ] {
        assert_eq!(change(0, 2, "a", changes, false), (error, both.clone()));
    }
    let delete = [("segment.bytes", DELETE, None)];
    assert_eq!(
        change(0, 2, "a", &delete, false),
        (none, own(&[("retention.ms", "77")]))
    );
    let append = [("cleanup.policy", APPEND, Some("compact"))];
    let appended = own(&[("cleanup.policy", "delete,compact"), ("retention.ms", "77")]);
    assert_eq!(change(1, 2, "a", &append, false), (none, appended));
    let subtract = [("cleanup.policy", SUBTRACT, Some("delete"))];
    let subtracted = own(&[("cleanup.policy", "compact"), ("retention.ms", "77")]);
    assert_eq!(change(1, 2, "a", &subtract, false), (none, subtracted.clone()));
    let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    assert_eq!(change(1, 2, "b", &set, false).0, unknown);
    assert_eq!(
        change(1, 4, "1", &[("num.partitions", SET, Some("2"))], false).0,
        ErrorCode::INVALID_REQUEST
    );
    assert_eq!(change(1, 4, "1", &[], false).0, none);
    drop(client);
    drop(first);

    // They are there after a restart; then all are replaced.
    let second = broker(&dir, &[]);
    let mut client = Client::connect(second.address);
    assert_eq!(own_settings(&mut client, "a"), subtracted);
    for version in 0..=2 {
        let value = format!("{}", 100 + version);
        let configs = [alter_configs::AlterableConfig {
            name: "max.message.bytes",
            value: Some(&value),
        }];
        let resources = [alter_configs::AlterConfigsResource {
            resource_type: 2,
            resource_name: "a",
            configs: (&configs).into(),
        }];
        let request = AlterConfigsRequest {
            resources: (&resources).into(),
            validate_only: false,
        };
        let frame = client.call(version, &request);
        let answer = reply::<AlterConfigsRequest<'_>>(version, &frame);
        assert_eq!(answer.responses.iter().next().unwrap().error_code, none);
        assert_eq!(own_settings(&mut client, "a"), own(&[("max.message.bytes", &value)]));
    }
    // And are obeyed, at once.
    assert_eq!(produce(&mut client, "a", 10).0, ErrorCode::MESSAGE_TOO_LARGE);
    assert_eq!(produce(&mut client, "a", 1), (none, 0));
}

/// Goal: a topic's log obeys what was changed while it was open. Method: a change that the answer to a produce shows.
#[test]
fn changed_settings_are_obeyed_at_once() {
    let dir = TempDir::new();
    let broker = broker(&dir, &[]);
    let mut client = Client::connect(broker.address);
    let by_producer = New {
        configs: &[("message.timestamp.type", Some("CreateTime"))],
        ..topic("unstamped")
    };
    create(&mut client, 7, &[by_producer, topic("stamped")]);
    produce(&mut client, "unstamped", 1);
    let configs = [alter_configs::AlterableConfig {
        name: "message.timestamp.type",
        value: Some("LogAppendTime"),
    }];
    let resources = [alter_configs::AlterConfigsResource {
        resource_type: 2,
        resource_name: "stamped",
        configs: (&configs).into(),
    }];
    let request = AlterConfigsRequest {
        resources: (&resources).into(),
        validate_only: false,
    };
    let _ = client.call(2, &request);
    assert_eq!(produce(&mut client, "stamped", 1), (ErrorCode::NONE, 0));
}

/// Goal: what a group committed goes with the topic. Method: room for one offset only.
#[test]
fn committed_offsets_go_with_the_topic() {
    let dir = TempDir::new();
    let broker = broker(&dir, &["skerry.limits.offsets=1"]);
    let mut client = Client::connect(broker.address);
    create(&mut client, 7, &[topic("a"), topic("b")]);
    let commit = |client: &mut Client, name| {
        let partitions = [OffsetCommitRequestPartition {
            partition_index: 0,
            committed_offset: 3,
            ..OffsetCommitRequestPartition::default()
        }];
        let topics = [OffsetCommitRequestTopic {
            name,
            partitions: (&partitions).into(),
        }];
        let request = OffsetCommitRequest {
            group_id: "g",
            topics: (&topics).into(),
            ..OffsetCommitRequest::default()
        };
        let frame = client.call(8, &request);
        let answer = reply::<OffsetCommitRequest<'_>>(8, &frame);
        let only = answer.topics.iter().next().unwrap();
        only.partitions.iter().next().unwrap().error_code
    };
    assert_eq!(commit(&mut client, "a"), ErrorCode::NONE);
    assert_ne!(commit(&mut client, "b"), ErrorCode::NONE);
    delete(&mut client, 6, "a");
    assert_eq!(commit(&mut client, "b"), ErrorCode::NONE);
}

#[test]
fn ids_of_producers_are_never_given_twice() {
    let dir = TempDir::new();
    let mut given = Vec::new();
    for _ in 0..3 {
        let broker = broker(&dir, &[]);
        let mut client = Client::connect(broker.address);
        for version in 0..=5 {
            for _ in 0..3 {
                let request = InitProducerIdRequest {
                    transactional_id: None,
                    ..InitProducerIdRequest::default()
                };
                let frame = client.call(version, &request);
                let answer = reply::<InitProducerIdRequest<'_>>(version, &frame);
                assert_eq!((answer.error_code, answer.producer_epoch), (ErrorCode::NONE, 0));
                assert!(!given.contains(&answer.producer_id), "{} again", answer.producer_id);
                given.push(answer.producer_id);
            }
            for transactional_id in ["", "t"] {
                let request = InitProducerIdRequest {
                    transactional_id: Some(transactional_id),
                    ..InitProducerIdRequest::default()
                };
                let frame = client.call(version, &request);
                let answer = reply::<InitProducerIdRequest<'_>>(version, &frame);
                assert_eq!(
                    (answer.error_code, answer.producer_id),
                    (ErrorCode::INVALID_REQUEST, -1)
                );
            }
        }
        broker.kill();
    }
}

#[test]
fn the_cluster_is_one_broker_and_keeps_its_id() {
    let dir = TempDir::new();
    let mut ids = Vec::new();
    for _ in 0..2 {
        let broker = broker(&dir, &["broker.rack=attic"]);
        let mut client = Client::connect(broker.address);
        for version in 0..=2 {
            let ask = |endpoint_type| DescribeClusterRequest {
                endpoint_type,
                include_cluster_authorized_operations: true,
                ..DescribeClusterRequest::default()
            };
            let frame = client.call(version, &ask(1));
            let answer = reply::<DescribeClusterRequest>(version, &frame);
            assert_eq!((answer.error_code, answer.controller_id), (ErrorCode::NONE, 1));
            let only = answer.brokers.iter().next().unwrap();
            assert_eq!((only.broker_id, only.host, only.rack), (1, "127.0.0.1", Some("attic")));
            assert_eq!(only.port, i32::from(broker.address.port()));
            assert_eq!(answer.cluster_authorized_operations, 8096);
            ids.push(answer.cluster_id.to_owned());
            if version >= 1 {
                for (endpoint_type, error) in [
                    (2, ErrorCode::MISMATCHED_ENDPOINT_TYPE),
                    (3, ErrorCode::UNSUPPORTED_ENDPOINT_TYPE),
                ] {
                    let frame = client.call(version, &ask(endpoint_type));
                    assert_eq!(reply::<DescribeClusterRequest>(version, &frame).error_code, error);
                }
            }
        }
    }
    ids.dedup();
    assert_eq!(ids.len(), 1);
    let other = Start::new(dir.path()).with(&["node.id=2"]).try_start();
    let (status, told) = other.expect_err("it does not start on another's directory");
    assert!(!status.success());
    assert!(told.contains("node.id 1") && told.contains("node.id is 2"), "{told}");
}

#[test]
fn directories_tell_how_much_partitions_take() {
    let dir = TempDir::new();
    let broker = broker(&dir, &[]);
    let mut client = Client::connect(broker.address);
    let wide = New {
        num_partitions: 3,
        ..topic("b")
    };
    create(&mut client, 7, &[topic("a"), wide]);
    produce(&mut client, "b", 10);
    let some = [
        DescribableLogDirTopic {
            topic: "b",
            partitions: (&[2, 0, 7]).into(),
        },
        DescribableLogDirTopic {
            topic: "none",
            partitions: (&[0]).into(),
        },
    ];
    for version in 1..=4 {
        for (topics, want) in [
            (
                Array::Null,
                vec![("a", vec![(0, false)]), ("b", vec![(0, true), (1, false), (2, false)])],
            ),
            ((&some).into(), vec![("b", vec![(0, true), (2, false)])]),
        ] {
            let frame = client.call(version, &DescribeLogDirsRequest { topics });
            let answer = reply::<DescribeLogDirsRequest<'_>>(version, &frame);
            let only = answer.results.iter().next().unwrap();
            assert_eq!(only.log_dir, dir.path().to_str().unwrap());
            let told: Vec<_> = only
                .topics
                .iter()
                .map(|topic| {
                    let partitions = topic
                        .partitions
                        .iter()
                        .map(|p| (p.partition_index, p.partition_size > 0));
                    (topic.name, partitions.collect::<Vec<_>>())
                })
                .collect();
            assert_eq!(told, want);
        }
    }
}

/// Goal: pages together are every partition once, in order, whatever their size. Method: every size of page up to past all of them.
#[test]
fn pages_of_topics_follow_one_another() {
    let dir = TempDir::new();
    let broker = broker(&dir, &[]);
    let mut client = Client::connect(broker.address);
    let names = ["a", "b", "c"];
    let topics = names.map(|name| New {
        num_partitions: if name == "b" { 3 } else { 2 },
        ..topic(name)
    });
    create(&mut client, 7, &topics);
    let mut page = |asked: &[&str], limit, cursor: Option<(&str, i32)>| {
        let topics: Vec<_> = asked.iter().map(|name| TopicRequest { name }).collect();
        let request = DescribeTopicPartitionsRequest {
            topics: topics.as_slice().into(),
            response_partition_limit: limit,
            cursor: cursor.map(|(topic_name, partition_index)| Cursor {
                topic_name,
                partition_index,
            }),
        };
        let frame = client.call(0, &request);
        let answer = reply::<DescribeTopicPartitionsRequest<'_>>(0, &frame);
        let mut told = Vec::new();
        for topic in answer.topics {
            let name = topic.name.unwrap().to_owned();
            if !topic.error_code.is_none() {
                told.push((name.clone(), -i32::from(topic.error_code.0)));
            }
            told.extend(topic.partitions.iter().map(|p| (name.clone(), p.partition_index)));
        }
        let next = answer.next_cursor.map(|c| (c.topic_name.to_owned(), c.partition_index));
        (told, next)
    };
    let all = [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("b", 2), ("c", 0), ("c", 1)];
    let all: Vec<_> = all.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect();
    for limit in 1..=8 {
        for asked in [&[][..], &["c", "a", "b"]] {
            let mut cursor: Option<(String, i32)> = None;
            let mut told = Vec::new();
            for _ in 0..8 {
                let (some, next) = page(asked, limit, cursor.as_ref().map(|(name, at)| (name.as_str(), *at)));
                assert!(some.len() <= limit as usize);
                told.extend(some);
                cursor = next;
                if cursor.is_none() {
                    break;
                }
            }
            assert_eq!(cursor, None);
            assert_eq!(told, all, "pages of {limit}");
        }
    }
    let (told, next) = page(&["no", "a", "bad name"], 100, None);
    let want = [("a", 0), ("a", 1), ("bad name", -17), ("no", -3)];
    assert_eq!(told, want.map(|(name, number)| (name.to_owned(), number)));
    assert_eq!(next, None);
    // What is not there takes its place on the page too.
    let (told, next) = page(&["no", "none"], 1, None);
    assert_eq!(told, [("no".to_owned(), -3)]);
    assert_eq!(next, Some(("none".to_owned(), 0)));
}

#[test]
fn nothing_moves_between_brokers() {
    let dir = TempDir::new();
    let broker = broker(&dir, &[]);
    let mut client = Client::connect(broker.address);
    let frame = client.call(0, &ListPartitionReassignmentsRequest::default());
    let answer = reply::<ListPartitionReassignmentsRequest<'_>>(0, &frame);
    assert_eq!((answer.error_code, answer.topics.len()), (ErrorCode::NONE, 0));
}

/// Goal: a reply longer than a small buffer is given all the same. Method: topics and partitions as many as there may be.
#[test]
fn a_long_list_of_topics_is_told_whole() {
    let dir = TempDir::new();
    let broker = broker(&dir, &["skerry.limits.topics=500", "skerry.limits.partitions=4000"]);
    let mut client = Client::connect(broker.address);
    let names: Vec<_> = (0..500)
        .map(|n| format!("a-topic-with-a-name-of-some-length-{n:03}"))
        .collect();
    let topics: Vec<_> = names
        .iter()
        .map(|name| New {
            num_partitions: 8,
            ..topic(name)
        })
        .collect();
    assert!(create(&mut client, 7, &topics).iter().all(|error| error.is_none()));
    let all = metadata(&mut client, 13, None, false);
    assert_eq!(all.len(), 500);
    assert!(
        all.iter()
            .zip(&names)
            .all(|(topic, name)| topic.name.as_deref() == Some(name) && topic.partitions.len() == 8)
    );
}

/// Goal: what the metadata log lost to damage is taken in again from the directories. Method: the file is gone, or its record of a topic
/// flipped, while the broker is stopped.
#[test]
fn topics_outlive_the_loss_of_the_metadata_log() {
    for flip in [false, true] {
        let dir = TempDir::new();
        let first = broker(&dir, &[]);
        let mut client = Client::connect(first.address);
        create(&mut client, 7, &[topic("a"), topic("b")]);
        for name in ["a", "b"] {
            assert_eq!(produce(&mut client, name, 5), (ErrorCode::NONE, 0));
        }
        let request = InitProducerIdRequest {
            transactional_id: None,
            ..InitProducerIdRequest::default()
        };
        let frame = client.call(5, &request);
        let given = reply::<InitProducerIdRequest<'_>>(5, &frame).producer_id;
        first.kill();

        let path = dir.path().join("metadata.log");
        if flip {
            let mut bytes = std::fs::read(&path).unwrap();
            let at = bytes.windows(3).position(|w| w == [0, 1, b'a']).unwrap();
            bytes[at + 2] = b'x';
            std::fs::write(&path, bytes).unwrap();
        } else {
            std::fs::remove_file(&path).unwrap();
        }
        // A directory that only looks like a partition's does no harm.
        std::fs::create_dir(dir.path().join("backup-20261130")).unwrap();
        let second = broker(&dir, &[]);
        let mut client = Client::connect(second.address);
        let names: Vec<_> = metadata(&mut client, 13, None, false)
            .into_iter()
            .map(|t| t.name.unwrap())
            .collect();
        assert_eq!(names, ["a", "b"]);
        for name in ["a", "b"] {
            assert_eq!(produce(&mut client, name, 1), (ErrorCode::NONE, 5));
        }
        let frame = client.call(5, &request);
        assert!(reply::<InitProducerIdRequest<'_>>(5, &frame).producer_id > given + 1000);
        assert_eq!(dir.path().join("metadata.log.damaged").exists(), flip);
    }
}
