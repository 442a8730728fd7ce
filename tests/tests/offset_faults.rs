//! Committed offsets on a disk that fails, runs full and loses power: what was answered is there, what was refused is tried again, and
//! nobody is told of an offset that no client ever committed.

use std::collections::BTreeMap;
use std::path::Path;

use skerry_broker::config::Config;
use skerry_broker::coordinator::{Coordinator, Journal};
use skerry_broker::crc;
use skerry_broker::log::{LogLimits, LogPolicy, Logs};
use skerry_broker::topics::config::TopicConfig;
use skerry_broker::topics::{Catalog, MetadataRecord, topic_name};
use skerry_core::api::offset_commit::{OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use skerry_core::error_code::ErrorCode;
use skerry_core::time::{Instant, Millis, Timestamp};
use skerry_core::wire::{Array, Uuid};
use skerry_net::host::DiskError;
use skerry_tests::fault_disk::{Behaviour, Call, FaultDisk};
use skerry_tests::machine::Machine;
use skerry_tests::rng::Rng;

const GROUPS: [&str; 3] = ["a", "group", "another group"];
const TOPICS: [&str; 2] = ["t", "topic.with.a.name"];
const PARTITIONS: i32 = 3;

/// A wall clock that was set.
const WALL: Timestamp = Timestamp(1_800_000_000_000);
const CLOCK_FLOOR: Timestamp = Timestamp(1_767_225_600_000);

struct Broker {
    coordinator: Coordinator,
    topics: Catalog,
    logs: Logs,
}

impl Broker {
    /// Up to where committed offsets would be compared with the ends of the logs, which are empty here.
    fn start(machine: &mut Machine) -> Self {
        // Small tables: each start takes memory for them.
        let settings = [
            ("skerry.limits.partitions", "40"),
            ("skerry.limits.topics", "10"),
            ("skerry.limits.offsets", "100"),
            ("skerry.limits.groups", "10"),
            ("skerry.limits.members", "10"),
            ("skerry.limits.group.bytes", "65536"),
            ("max.connections", "10"),
        ];
        let config = Config::with(Path::new("/data"), &settings).expect("a configuration");
        let limits = LogLimits {
            partitions: config.limits.partitions,
            segments: 100,
            open_files: 16,
            producers: 16,
        };
        let (now, wall) = (machine.now, machine.wall);
        let mut logs = Logs::new(limits, LogPolicy::new(&config, CLOCK_FLOOR, crc::CRC32C));
        let mut coordinator = Coordinator::new(&config, 7);
        let each = &mut |record: &MetadataRecord<'_>| coordinator.replay(now, record);
        let topics = Catalog::open(machine, &config, crc::CRC32C, &mut logs, now, wall, each).expect("a start");
        Self {
            coordinator,
            topics,
            logs,
        }
    }

    fn create_topics(&mut self, machine: &mut Machine) {
        for name in TOPICS {
            let name = topic_name(name).expect("a name");
            let made = self
                .topics
                .create(machine, &mut self.logs, &name, PARTITIONS, &TopicConfig::default());
            made.expect("a topic");
        }
        self.topics.sync(machine, &mut self.logs).expect("a sync");
    }

    /// The result for each partition.
    fn commit(&mut self, machine: &mut Machine, group_id: &str, topic: &str, offsets: &[(i32, i64)]) -> Vec<ErrorCode> {
        let note = "n".repeat(offsets.first().map_or(0, |(_, offset)| *offset as usize % 50));
        let partitions: Vec<_> = offsets
            .iter()
            .map(|(partition, offset)| OffsetCommitRequestPartition {
                partition_index: *partition,
                committed_offset: *offset,
                committed_leader_epoch: -1,
                committed_metadata: Some(&note),
            })
            .collect();
        let topic = OffsetCommitRequestTopic {
            name: topic,
            partitions: Array::Slice(&partitions),
        };
        let request = OffsetCommitRequest {
            group_id,
            topics: Array::one(&topic),
            ..OffsetCommitRequest::default()
        };
        let mut results = Vec::new();
        let (now, wall) = (machine.now, machine.wall);
        let mut journal = Journal::new(now, wall, machine, &mut self.topics);
        let mark = self.coordinator.commit(&mut journal, 9, &request, &mut results);
        assert!(mark.is_none() || results.iter().any(|code| code.is_none()));
        results
    }

    fn delete_group(&mut self, machine: &mut Machine, group: &str) -> Result<(), ErrorCode> {
        let (now, wall) = (machine.now, machine.wall);
        let mut journal = Journal::new(now, wall, machine, &mut self.topics);
        self.coordinator.delete_group(&mut journal, group).map(|_| ())
    }

    /// What a client would be told.
    fn offsets(&self) -> BTreeMap<Place, i64> {
        let mut found = BTreeMap::new();
        for (g, group) in GROUPS.iter().enumerate() {
            let Some(key) = self.coordinator.groups().find(group) else {
                continue;
            };
            for (t, topic) in TOPICS.iter().enumerate() {
                let id = self.id(topic);
                for (partition, commit) in self.coordinator.offsets().partitions(key, id) {
                    found.insert((g, t, partition), commit.offset);
                }
            }
        }
        found
    }

    fn id(&self, topic: &str) -> Uuid {
        let ix = self.topics.by_name(topic).expect("the topic");
        self.topics.get(ix).expect("its row").id
    }

    fn expire(&mut self, machine: &mut Machine, retention: Millis) -> bool {
        let (now, wall) = (machine.now, machine.wall);
        let mut journal = Journal::new(now, wall, machine, &mut self.topics);
        self.coordinator
            .expire_offsets(&mut journal, Some(retention), CLOCK_FLOOR)
            .is_some()
    }
}

/// Group, topic and partition, by number.
type Place = (usize, usize, i32);

/// Of one place: what may be found after a power cut. The first is what was there at the last sync.
#[derive(Clone, Debug)]
struct Story(Vec<Option<i64>>);

fn machine(rng: &mut Rng) -> Machine {
    let mut machine = Machine::new(FaultDisk::new(Behaviour::default(), rng.fork()), rng.fork());
    machine.wall = WALL;
    machine
}

/// Goal: through failed writes, a full disk, kills and power cuts, what was answered is found, and only what was asked for.
/// Method: random commits and deletions against a list, per partition, of what may be there. A kill must leave the last answer;
/// a power cut may go back as far as the last sync.
#[test]
fn what_was_answered_is_found() {
    for seed in 0..60 {
        run(seed);
    }
}

fn run(seed: u64) {
    let mut rng = Rng::new(seed);
    let mut machine = machine(&mut rng);
    let mut broker = Broker::start(&mut machine);
    broker.create_topics(&mut machine);
    let mut stories: BTreeMap<Place, Story> = BTreeMap::new();
    for g in 0..GROUPS.len() {
        for t in 0..TOPICS.len() {
            for p in 0..PARTITIONS {
                stories.insert((g, t, p), Story(vec![None]));
            }
        }
    }
    for life in 0..4 {
        for _ in 0..rng.below(60) {
            act(&mut rng, &mut machine, &mut broker, &mut stories);
        }
        let power = rng.percent(50);
        if power {
            machine.disk.power_cycle();
        } else {
            machine.disk.kill();
        }
        drop(broker);
        broker = Broker::start(&mut machine);
        let found = broker.offsets();
        assert_eq!(
            broker.coordinator.offsets().len() as usize,
            found.len(),
            "seed {seed}: some belong to no group"
        );
        for (place, story) in &mut stories {
            let now = found.get(place).copied();
            let may = if power {
                &story.0[..]
            } else {
                &story.0[story.0.len() - 1..]
            };
            assert!(
                may.contains(&now),
                "seed {seed} life {life}: {place:?} is {now:?}, of {story:?}, power cut {power}"
            );
            story.0 = vec![now];
        }
    }
}

fn act(rng: &mut Rng, machine: &mut Machine, broker: &mut Broker, stories: &mut BTreeMap<Place, Story>) {
    let (g, t) = (rng.index(GROUPS.len()), rng.index(TOPICS.len()));
    let faulty = rng.percent(15);
    if faulty {
        let error = *rng.pick(&[DiskError::Full, DiskError::Full, DiskError::Io]);
        machine.disk.fail(Call::Write, rng.below(2), error);
    }
    match rng.below(20) {
        0..=13 => {
            let partitions = [0, 1, 2].map(|p| (p, rng.below(4) as i64));
            let some = &partitions[rng.index(3)..];
            let results = broker.commit(machine, GROUPS[g], TOPICS[t], some);
            let found = broker.offsets();
            for ((p, offset), code) in some.iter().zip(results) {
                let story = stories.get_mut(&(g, t, *p)).expect("a story");
                assert_eq!(
                    found.get(&(g, t, *p)),
                    Some(offset),
                    "also a refused commit is seen until the next"
                );
                match code {
                    ErrorCode::NONE => story.0.push(Some(*offset)),
                    // Not written, so a kill finds what was there before; but the log may since be rewritten from memory.
                    ErrorCode::COORDINATOR_NOT_AVAILABLE => {
                        let before = *story.0.last().expect("something");
                        story.0.push(before);
                    }
                    other => panic!("{other}"),
                }
            }
        }
        14 => match broker.delete_group(machine, GROUPS[g]) {
            Ok(()) => forget(stories, g),
            Err(ErrorCode::GROUP_ID_NOT_FOUND) => {
                assert!(
                    stories
                        .iter()
                        .all(|((group, ..), story)| *group != g || story.0.last() == Some(&None))
                );
            }
            Err(error) => assert_eq!(error, ErrorCode::COORDINATOR_NOT_AVAILABLE),
        },
        15..=17 => {
            if broker.topics.sync(machine, &mut broker.logs).is_ok() {
                for story in stories.values_mut() {
                    story.0.drain(..story.0.len() - 1);
                }
            }
        }
        _ => {
            // What the broker does when the log failed: it is rewritten from memory, refused commits and all.
            let Broker {
                coordinator, topics, ..
            } = broker;
            let tidied = topics.tidy(machine, &|each| coordinator.each_record(each));
            if matches!(tidied, Ok(true)) {
                let found = broker.offsets();
                for (place, story) in stories {
                    story.0 = vec![found.get(place).copied()];
                }
            }
        }
    }
}

fn forget(stories: &mut BTreeMap<Place, Story>, group: usize) {
    for ((g, ..), story) in stories {
        if *g == group {
            story.0.push(None);
        }
    }
}

#[test]
fn a_refused_commit_is_written_when_it_comes_again() {
    let mut machine = machine(&mut Rng::new(1));
    let mut broker = Broker::start(&mut machine);
    broker.create_topics(&mut machine);
    assert_eq!(broker.commit(&mut machine, "a", "t", &[(0, 0)]), [ErrorCode::NONE]);
    machine.disk.fail(Call::Write, 0, DiskError::Full);
    let refused = [ErrorCode::COORDINATOR_NOT_AVAILABLE; 2];
    assert_eq!(broker.commit(&mut machine, "a", "t", &[(1, 0), (2, 0)]), refused);
    let written = machine.disk.calls(Call::Write);
    assert_eq!(
        broker.commit(&mut machine, "a", "t", &[(1, 0), (2, 0)]),
        [ErrorCode::NONE; 2]
    );
    assert!(machine.disk.calls(Call::Write) > written);
    let written = machine.disk.calls(Call::Write);
    assert_eq!(
        broker.commit(&mut machine, "a", "t", &[(1, 0), (2, 0)]),
        [ErrorCode::NONE; 2]
    );
    assert_eq!(machine.disk.calls(Call::Write), written, "now it is the same");
    machine.disk.kill();
    assert_eq!(Broker::start(&mut machine).offsets().len(), 3);
}

#[test]
fn offsets_expire_when_that_is_set_and_a_jump_of_the_clock_expires_none() {
    const RETENTION: Millis = Millis(24 * 3_600_000);
    const HOUR: u64 = 3_600_000;
    let mut machine = machine(&mut Rng::new(2));
    let pass = |machine: &mut Machine, ms: u64| {
        machine.now = machine.now + Millis(ms);
        machine.wall = Timestamp(machine.wall.0 + ms as i64);
    };
    let mut broker = Broker::start(&mut machine);
    broker.create_topics(&mut machine);
    broker.commit(&mut machine, "a", "t", &[(0, 0)]);
    pass(&mut machine, 23 * HOUR);
    assert!(!broker.expire(&mut machine, RETENTION));
    // The same again writes nothing, and yet its age counts anew.
    broker.commit(&mut machine, "a", "t", &[(0, 0)]);
    broker.commit(&mut machine, "group", "t", &[(1, 0)]);
    pass(&mut machine, 23 * HOUR);
    assert!(!broker.expire(&mut machine, RETENTION));
    // A clock that jumps ahead counts only after an hour of this life, in which consumers come back.
    machine.disk.kill();
    let mut broker = Broker::start(&mut machine);
    pass(&mut machine, 59 * 60_000);
    machine.wall = Timestamp(machine.wall.0 + 1000 * HOUR as i64);
    assert!(!broker.expire(&mut machine, RETENTION));
    broker.commit(&mut machine, "group", "t", &[(1, 0)]);
    pass(&mut machine, HOUR);
    assert!(broker.expire(&mut machine, RETENTION));
    assert_eq!(broker.offsets().into_keys().collect::<Vec<_>>(), [(1, 0, 1)]);
    machine.disk.kill();
    let broker = Broker::start(&mut machine);
    assert_eq!(broker.offsets().len(), 1, "that it expired is written down");

    // A machine without a clock of its own commits in 1970; what is set later is no age.
    machine.wall = Timestamp(1000);
    let mut broker = broker;
    broker.commit(&mut machine, "group", "t", &[(1, 0), (2, 0)]);
    machine.now = machine.now + Millis(2 * HOUR);
    machine.wall = WALL;
    assert!(!broker.expire(&mut machine, RETENTION));
    machine.now = machine.now + Millis(22 * HOUR);
    assert!(broker.expire(&mut machine, RETENTION));
    assert!(broker.offsets().is_empty());
}

#[test]
fn without_a_retention_nothing_expires() {
    let mut machine = machine(&mut Rng::new(3));
    let mut broker = Broker::start(&mut machine);
    broker.create_topics(&mut machine);
    broker.commit(&mut machine, "a", "t", &[(0, 0)]);
    machine.now = Instant::from_micros(u64::MAX / 2);
    machine.wall = Timestamp(i64::MAX);
    let (now, wall) = (machine.now, machine.wall);
    let mut journal = Journal::new(now, wall, &mut machine, &mut broker.topics);
    assert_eq!(broker.coordinator.expire_offsets(&mut journal, None, CLOCK_FLOOR), None);
    assert_eq!(broker.offsets().len(), 1);
}
