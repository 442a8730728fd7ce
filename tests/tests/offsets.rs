//! Committed offsets over real connections to the real binary: what is kept, what is written, what a restart leaves.

use std::fs;

use skerry_core::api::create_topics::{CreatableTopic, CreateTopicsRequest};
use skerry_core::api::delete_groups::DeleteGroupsRequest;
use skerry_core::api::delete_topics::DeleteTopicsRequest;
use skerry_core::api::join_group::{JoinGroupRequest, JoinGroupRequestProtocol};
use skerry_core::api::list_groups::ListGroupsRequest;
use skerry_core::api::offset_commit::{OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use skerry_core::api::offset_delete::{OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic};
use skerry_core::api::offset_fetch::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
};
use skerry_core::api::sync_group::SyncGroupRequest;
use skerry_core::error_code::ErrorCode;
use skerry_core::wire::Array;
use skerry_tests::client::{Client, reply};
use skerry_tests::process::{Skerry, Start, TempDir};

/// A broker with a topic `t` of three partitions, and a client of it.
fn broker(dir: &TempDir) -> (Skerry, Client) {
    let broker = Start::new(dir.path())
        .with(&["group.initial.rebalance.delay.ms=0", "offset.metadata.max.bytes=100"])
        .start();
    let mut client = Client::connect(broker.address);
    create(&mut client, "t");
    (broker, client)
}

fn create(client: &mut Client, name: &str) {
    let topic = CreatableTopic {
        name,
        num_partitions: 3,
        replication_factor: 1,
        ..CreatableTopic::default()
    };
    let request = CreateTopicsRequest {
        topics: Array::one(&topic),
        ..CreateTopicsRequest::default()
    };
    let frame = client.call(5, &request);
    let answer = reply::<CreateTopicsRequest<'_>>(5, &frame);
    let error = answer.topics.iter().next().unwrap().error_code;
    assert!(error.is_none() || error == ErrorCode::TOPIC_ALREADY_EXISTS, "{error}");
}

const fn at<'a>(partition_index: i32, committed_offset: i64, metadata: &'a str) -> OffsetCommitRequestPartition<'a> {
    OffsetCommitRequestPartition {
        partition_index,
        committed_offset,
        committed_leader_epoch: 0,
        committed_metadata: Some(metadata),
    }
}

/// Who commits: group, member and generation.
type Who<'a> = (&'a str, &'a str, i32);

const fn anybody(group: &str) -> Who<'_> {
    (group, "", -1)
}

/// The error of each partition.
fn commit(
    client: &mut Client,
    version: i16,
    who: Who<'_>,
    topic: &str,
    partitions: &[OffsetCommitRequestPartition<'_>],
) -> Vec<ErrorCode> {
    let topic = OffsetCommitRequestTopic {
        name: topic,
        partitions: Array::Slice(partitions),
    };
    let request = OffsetCommitRequest {
        group_id: who.0,
        member_id: who.1,
        generation_id_or_member_epoch: who.2,
        topics: Array::one(&topic),
        ..OffsetCommitRequest::default()
    };
    let frame = client.call(version, &request);
    let answer = reply::<OffsetCommitRequest<'_>>(version, &frame);
    let topics: Vec<_> = answer.topics.iter().collect();
    assert_eq!((topics.len(), topics[0].name), (1, topic.name));
    let told = topics[0].partitions.iter();
    told.zip(partitions)
        .map(|(told, asked)| {
            assert_eq!(told.partition_index, asked.partition_index);
            told.error_code
        })
        .collect()
}

/// Topic, partition, offset, leader epoch and metadata of each offset.
type Fetched = Vec<(String, i32, i64, i32, String)>;

/// Fetches partitions of a topic, or everything with `None`.
fn fetch(client: &mut Client, version: i16, group: &str, asked: Option<(&str, &[i32])>) -> Fetched {
    let old = asked.map(|(name, partitions)| OffsetFetchRequestTopic {
        name,
        partition_indexes: Array::Slice(partitions),
    });
    let new = asked.map(|(name, partitions)| OffsetFetchRequestTopics {
        name,
        partition_indexes: Array::Slice(partitions),
    });
    let groups = [OffsetFetchRequestGroup {
        group_id: group,
        topics: new.as_ref().map_or(Array::Null, Array::one),
        ..OffsetFetchRequestGroup::default()
    }];
    let request = OffsetFetchRequest {
        group_id: group,
        topics: old.as_ref().map_or(Array::Null, Array::one),
        groups: Array::Slice(&groups),
        ..OffsetFetchRequest::default()
    };
    let frame = client.call(version, &request);
    let answer = reply::<OffsetFetchRequest<'_>>(version, &frame);
    assert!(answer.error_code.is_none());
    let mut found = Fetched::new();
    for topic in answer.topics.iter() {
        for p in topic.partitions.iter() {
            assert!(p.error_code.is_none());
            let metadata = p.metadata.unwrap().into();
            found.push((
                topic.name.into(),
                p.partition_index,
                p.committed_offset,
                p.committed_leader_epoch,
                metadata,
            ));
        }
    }
    for told in answer.groups.iter() {
        assert_eq!((told.group_id, told.error_code), (group, ErrorCode::NONE));
        for topic in told.topics.iter() {
            for p in topic.partitions.iter() {
                assert!(p.error_code.is_none());
                let metadata = p.metadata.unwrap().into();
                found.push((
                    topic.name.into(),
                    p.partition_index,
                    p.committed_offset,
                    p.committed_leader_epoch,
                    metadata,
                ));
            }
        }
    }
    found
}

/// Joins alone, and syncs: the member's id. The generation is 1.
fn join(client: &mut Client, group_id: &str, topic: &str) -> String {
    let mut metadata = vec![0, 0, 0, 0, 0, 1];
    metadata.extend((topic.len() as u16).to_be_bytes());
    metadata.extend(topic.as_bytes());
    metadata.extend([0xff; 4]);
    let protocols = [JoinGroupRequestProtocol {
        name: "range",
        metadata: &metadata,
    }];
    let request = JoinGroupRequest {
        group_id,
        session_timeout_ms: 30_000,
        protocol_type: "consumer",
        protocols: Array::Slice(&protocols),
        ..JoinGroupRequest::default()
    };
    let frame = client.call(3, &request);
    let answer = reply::<JoinGroupRequest<'_>>(3, &frame);
    assert_eq!((answer.error_code, answer.generation_id), (ErrorCode::NONE, 1));
    let request = SyncGroupRequest {
        group_id,
        generation_id: 1,
        member_id: answer.member_id,
        ..SyncGroupRequest::default()
    };
    let frame = client.call(3, &request);
    assert!(reply::<SyncGroupRequest<'_>>(3, &frame).error_code.is_none());
    answer.member_id.into()
}

fn groups(client: &mut Client) -> Vec<(String, String)> {
    let frame = client.call(4, &ListGroupsRequest::default());
    let answer = reply::<ListGroupsRequest<'_>>(4, &frame);
    let mut listed: Vec<_> = answer
        .groups
        .iter()
        .map(|group| (group.group_id.to_string(), group.group_state.to_string()))
        .collect();
    listed.sort();
    listed
}

fn delete_group(client: &mut Client, group: &str) -> ErrorCode {
    let names = [group];
    let request = DeleteGroupsRequest {
        groups_names: Array::Slice(&names),
    };
    let frame = client.call(2, &request);
    let answer = reply::<DeleteGroupsRequest<'_>>(2, &frame);
    let result = answer.results.iter().next().unwrap();
    assert_eq!(result.group_id, group);
    result.error_code
}

fn delete_offset(client: &mut Client, group_id: &str, topic: &str, partition: i32) -> (ErrorCode, Vec<ErrorCode>) {
    let partition = OffsetDeleteRequestPartition {
        partition_index: partition,
    };
    let topic = OffsetDeleteRequestTopic {
        name: topic,
        partitions: Array::one(&partition),
    };
    let request = OffsetDeleteRequest {
        group_id,
        topics: Array::one(&topic),
    };
    let frame = client.call(0, &request);
    let answer = reply::<OffsetDeleteRequest<'_>>(0, &frame);
    let codes = answer
        .topics
        .iter()
        .flat_map(|t| t.partitions.iter().map(|p| p.error_code));
    (answer.error_code, codes.collect())
}

const NONE: ErrorCode = ErrorCode::NONE;
const UNKNOWN: ErrorCode = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;

#[test]
fn commits_come_back_in_every_version() {
    let dir = TempDir::new();
    let (_broker, mut client) = broker(&dir);
    for version in 2..=9 {
        let group = format!("g{version}");
        let offset = 100 + i64::from(version);
        let partitions = [at(0, offset, "nöte"), at(2, 7, ""), at(3, 1, ""), at(-1, 1, "")];
        let errors = commit(&mut client, version, anybody(&group), "t", &partitions);
        assert_eq!(errors, [NONE, NONE, UNKNOWN, UNKNOWN], "version {version}");
        assert_eq!(
            commit(&mut client, version, anybody(&group), "nothing", &partitions),
            [UNKNOWN; 4]
        );
        let long = "n".repeat(101);
        let errors = commit(
            &mut client,
            version,
            anybody(&group),
            "t",
            &[at(0, 1, &long), at(1, 5, &long[1..])],
        );
        assert_eq!(errors, [ErrorCode::OFFSET_METADATA_TOO_LARGE, NONE]);
    }
    for version in 1..=9 {
        // Leader epochs are committed from version 6 on, and told from version 5 on.
        for (group, epoch) in [("g4", -1), ("g9", if version >= 5 { 0 } else { -1 })] {
            let offset = if group == "g4" { 104 } else { 109 };
            let found = fetch(&mut client, version, group, Some(("t", &[2, 0, 9])));
            let expected: Fetched = vec![
                ("t".into(), 2, 7, epoch, "".into()),
                ("t".into(), 0, offset, epoch, "nöte".into()),
                ("t".into(), 9, -1, -1, "".into()),
            ];
            assert_eq!(found, expected, "version {version}");
        }
        if version >= 2 {
            let all = fetch(&mut client, version, "g9", None);
            assert_eq!(
                all.iter().map(|(_, p, offset, ..)| (*p, *offset)).collect::<Vec<_>>(),
                [(0, 109), (2, 7), (1, 5)]
            );
            assert!(fetch(&mut client, version, "nobody", None).is_empty());
        }
        assert_eq!(fetch(&mut client, version, "nobody", Some(("t", &[0])))[0].2, -1);
        assert_eq!(fetch(&mut client, version, "g9", Some(("nothing", &[0])))[0].2, -1);
    }
}

#[test]
fn several_groups_are_fetched_at_once() {
    let dir = TempDir::new();
    let (_broker, mut client) = broker(&dir);
    create(&mut client, "u");
    commit(&mut client, 9, anybody("g"), "t", &[at(1, 10, "")]);
    commit(&mut client, 9, anybody("g"), "u", &[at(0, 20, "")]);
    commit(&mut client, 9, anybody("h"), "u", &[at(2, 30, "x")]);
    let wanted = OffsetFetchRequestTopics {
        name: "u",
        partition_indexes: Array::Slice(&[0, 2]),
    };
    let groups = [("h", Array::one(&wanted)), ("g", Array::Null), ("nobody", Array::Null)].map(|(group_id, topics)| {
        OffsetFetchRequestGroup {
            group_id,
            topics,
            ..OffsetFetchRequestGroup::default()
        }
    });
    let request = OffsetFetchRequest {
        groups: Array::Slice(&groups),
        require_stable: true,
        ..OffsetFetchRequest::default()
    };
    let frame = client.call(8, &request);
    let answer = reply::<OffsetFetchRequest<'_>>(8, &frame);
    let mut found = Vec::new();
    for group in answer.groups.iter() {
        for topic in group.topics.iter() {
            for p in topic.partitions.iter() {
                found.push((group.group_id, topic.name, p.partition_index, p.committed_offset));
            }
        }
    }
    assert_eq!(answer.groups.len(), 3);
    assert_eq!(
        found,
        [
            ("h", "u", 0, -1),
            ("h", "u", 2, 30),
            ("g", "t", 1, 10),
            ("g", "u", 0, 20)
        ]
    );
}

#[test]
fn members_commit_in_their_generation_and_others_only_while_there_are_none() {
    let dir = TempDir::new();
    let (_broker, mut client) = broker(&dir);
    let mut one = |who: Who<'_>, version| commit(&mut client, version, who, "t", &[at(0, 1, "")])[0];
    assert_eq!(one(("g", "m", 1), 8), ErrorCode::ILLEGAL_GENERATION);
    assert_eq!(one(("g", "m", 1), 9), ErrorCode::GROUP_ID_NOT_FOUND);
    assert_eq!(one(anybody("g"), 9), NONE);
    let id = join(&mut client, "g", "t");
    let mut one = |who: Who<'_>, version| commit(&mut client, version, who, "t", &[at(0, 2, "")])[0];
    assert_eq!(one(anybody("g"), 9), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(one(("g", "m", 1), 9), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(one(("g", &id, 0), 9), ErrorCode::ILLEGAL_GENERATION);
    assert_eq!(one(("g", &id, 1), 9), NONE);
}

/// Goal: what was committed is there after a crash, what was deleted is not, and groups of offsets alone are groups.
#[test]
fn a_restart_leaves_what_was_committed() {
    let dir = TempDir::new();
    let (first, mut client) = broker(&dir);
    create(&mut client, "gone");
    for group in ["a", "b", "c", "d"] {
        commit(&mut client, 9, anybody(group), "t", &[at(0, 0, "first"), at(1, 0, "")]);
        commit(&mut client, 9, anybody(group), "gone", &[at(0, 0, "")]);
    }
    assert_eq!(delete_group(&mut client, "b"), NONE);
    assert_eq!(delete_group(&mut client, "b"), ErrorCode::GROUP_ID_NOT_FOUND);
    assert_eq!(delete_offset(&mut client, "c", "t", 1), (NONE, vec![NONE]));
    let names = ["gone"];
    let request = DeleteTopicsRequest {
        topic_names: Array::Slice(&names),
        timeout_ms: 10_000,
        ..DeleteTopicsRequest::default()
    };
    let _ = client.call(5, &request);
    commit(&mut client, 9, anybody("a"), "t", &[at(0, 0, "second")]);
    let check = |client: &mut Client| {
        let empty = |group: &str| (group.to_string(), "Empty".to_string());
        assert_eq!(groups(client), [empty("a"), empty("c"), empty("d")]);
        let of = |client: &mut Client, group: &str| -> Vec<_> {
            let found = fetch(client, 8, group, None);
            found
                .into_iter()
                .map(|(topic, p, offset, _, metadata)| (topic, p, offset, metadata))
                .collect()
        };
        let t = |p, metadata: &str| ("t".to_string(), p, 0, metadata.to_string());
        assert_eq!(of(client, "a"), [t(0, "second"), t(1, "")]);
        assert_eq!(of(client, "b"), []);
        assert_eq!(of(client, "c"), [t(0, "first")]);
        assert_eq!(of(client, "d"), [t(0, "first"), t(1, "")]);
    };
    check(&mut client);
    first.kill();
    let (second, mut client) = broker(&dir);
    check(&mut client);
    // A topic made again under the same name begins without offsets.
    create(&mut client, "gone");
    check(&mut client);
    let (status, _) = second.stop();
    assert!(status.success());
    let (_third, mut client) = broker(&dir);
    check(&mut client);
}

/// Goal: a commit that changes nothing writes nothing (clients commit every few seconds for ever).
#[test]
fn the_same_commit_again_is_answered_without_a_write() {
    let dir = TempDir::new();
    let (_broker, mut client) = broker(&dir);
    let log = || fs::read(dir.path().join("metadata.log")).expect("the metadata log");
    let same = [at(0, 5, "x"), at(1, 6, "")];
    assert_eq!(commit(&mut client, 9, anybody("g"), "t", &same), [NONE; 2]);
    let before = log();
    for version in [9, 8, 7] {
        assert_eq!(commit(&mut client, version, anybody("g"), "t", &same), [NONE; 2]);
    }
    assert_eq!(before, log());
    assert_eq!(
        commit(&mut client, 9, anybody("g"), "t", &[at(0, 5, "x"), at(1, 7, "")]),
        [NONE; 2]
    );
    assert_ne!(before, log());
}

#[test]
fn an_offset_past_the_end_of_its_log_is_lowered_at_the_next_start() {
    let dir = TempDir::new();
    let (first, mut client) = broker(&dir);
    commit(&mut client, 9, anybody("g"), "t", &[at(0, 50, "kept"), at(1, 0, "")]);
    first.kill();
    for start in 0..2 {
        let (broker, mut client) = broker(&dir);
        let found = fetch(&mut client, 9, "g", None);
        assert_eq!(
            found,
            [("t".into(), 0, 0, -1, "kept".into()), ("t".into(), 1, 0, 0, "".into())]
        );
        let lowered = broker
            .stderr()
            .contains("offset 50 of t-0 is past the end of the log and lowered to 0");
        assert_eq!(
            lowered,
            start == 0,
            "once, for it is written down:\n{}",
            broker.stderr()
        );
        broker.kill();
    }
}

#[test]
fn groups_in_use_keep_their_offsets() {
    let dir = TempDir::new();
    let (_broker, mut client) = broker(&dir);
    create(&mut client, "u");
    commit(&mut client, 9, anybody("g"), "t", &[at(0, 1, "")]);
    commit(&mut client, 9, anybody("g"), "u", &[at(0, 1, "")]);
    join(&mut client, "g", "t");
    assert_eq!(delete_group(&mut client, "g"), ErrorCode::NON_EMPTY_GROUP);
    assert_eq!(
        delete_offset(&mut client, "g", "t", 0),
        (NONE, vec![ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC])
    );
    assert_eq!(delete_offset(&mut client, "g", "u", 0), (NONE, vec![NONE]));
    assert_eq!(
        delete_offset(&mut client, "g", "u", 0),
        (NONE, vec![NONE]),
        "nothing there is no error"
    );
    assert_eq!(delete_offset(&mut client, "g", "x", 0), (NONE, vec![UNKNOWN]));
    assert_eq!(
        delete_offset(&mut client, "x", "t", 0),
        (ErrorCode::GROUP_ID_NOT_FOUND, vec![])
    );
    let kept: Vec<_> = fetch(&mut client, 9, "g", None)
        .into_iter()
        .map(|(topic, ..)| topic)
        .collect();
    assert_eq!(kept, ["t"]);
}

/// Goal: under `skerry.flush=every` commits are answered, those that change nothing too.
#[test]
fn commits_that_wait_for_the_disk_are_answered() {
    let dir = TempDir::new();
    // Without a flush for each that waits, none would come before the commits give up.
    let settings = ["skerry.flush=every", "log.flush.interval.ms=600000"];
    let broker = Start::new(dir.path()).with(&settings).start();
    let mut client = Client::connect(broker.address);
    create(&mut client, "t");
    for offset in [1, 1, 2, 2, 3] {
        assert_eq!(commit(&mut client, 9, anybody("g"), "t", &[at(0, offset, "")]), [NONE]);
    }
    create(&mut client, "u");
    assert_eq!(commit(&mut client, 9, anybody("g"), "t", &[at(0, 3, "")]), [NONE]);
    assert_eq!(
        commit(&mut client, 9, anybody("g"), "u", &[at(0, 3, ""), at(9, 1, "")]),
        [NONE, UNKNOWN]
    );
    broker.kill();
    let broker = Start::new(dir.path()).with(&["skerry.flush=every"]).start();
    let mut client = Client::connect(broker.address);
    assert_eq!(fetch(&mut client, 9, "g", None).len(), 2);
}
