//! The metadata log under power cuts, full disks and failed syncs: what was answered is there after the restart, and nothing that
//! was never asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use skerry_broker::config::Config;
use skerry_broker::crc;
use skerry_broker::log::{LogLimits, LogPolicy, Logs};
use skerry_broker::topics::config::{ConfigKey, TopicConfig};
use skerry_broker::topics::{Catalog, ChangeError, MetadataRecord, OffsetCommitted, topic_name};
use skerry_core::time::{Instant, Timestamp};
use skerry_core::wire::Uuid;
use skerry_net::host::DiskError;
use skerry_tests::fault_disk::{Behaviour, Call, FaultDisk};
use skerry_tests::machine::Machine;
use skerry_tests::rng::Rng;

/// Runs of the power-cut test. Each has seven starts.
const SEEDS: u64 = 100;

/// A topic as clients were told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Told {
    name: String,
    partitions: i32,
    retention: Option<i64>,
}

/// What clients were told, over every restart.
#[derive(Default)]
struct Answered {
    topics: BTreeMap<[u8; 16], Told>,
    /// The change that was under way when the power failed, if any: a topic before and after (`None`: not there). For a topic that was being
    /// made the id is not known.
    under_way: Option<(Option<[u8; 16]>, Option<Told>)>,
    deleted: BTreeSet<[u8; 16]>,
    producer_ids: BTreeSet<i64>,
    epoch: i32,
    /// Of one group and partition: offsets written since the last sync, the synced one first.
    offsets: Vec<i64>,
}

fn config(settings: &[(&str, &str)]) -> Config {
    Config::with(Path::new("/data"), settings).expect("a configuration")
}

fn small() -> Config {
    config(&[("skerry.limits.topics", "12"), ("skerry.limits.partitions", "40")])
}

/// The state of a broker, and the offset that its group had.
fn start(machine: &mut Machine) -> Result<(Catalog, Logs, Option<i64>), String> {
    let config = small();
    let limits = LogLimits {
        partitions: config.limits.partitions,
        segments: 100,
        open_files: 16,
        producers: 16,
    };
    let mut logs = Logs::new(limits, LogPolicy::new(&config, Timestamp(0), crc::CRC32C));
    let mut offset = None;
    let each = &mut |record: &MetadataRecord<'_>| {
        if let MetadataRecord::OffsetCommitted(commit) = record {
            offset = Some(commit.offset);
        }
    };
    let (now, wall) = (Instant::default(), Timestamp(0));
    let catalog = Catalog::open(machine, &config, crc::CRC32C, &mut logs, now, wall, each);
    catalog
        .map(|catalog| (catalog, logs, offset))
        .map_err(|e| e.to_string())
}

fn commit(offset: i64) -> MetadataRecord<'static> {
    MetadataRecord::OffsetCommitted(OffsetCommitted {
        group: "a group with a name of some length",
        topic: Uuid([9; 16]),
        partition: 0,
        offset,
        leader_epoch: -1,
        metadata: "",
        committed_at: 0,
    })
}

fn told(catalog: &Catalog) -> BTreeMap<[u8; 16], Told> {
    let topics = catalog.iter().map(|ix| {
        let topic = catalog.get(ix).unwrap();
        assert_eq!(catalog.partitions(ix).count() as i32, topic.partitions());
        let retention = topic.config.own_text(ConfigKey::RetentionMs);
        let told = Told {
            name: topic.name.to_string(),
            partitions: topic.partitions(),
            retention: retention.map(|text| text.parse().unwrap()),
        };
        (topic.id.0, told)
    });
    topics.collect()
}

/// Compares what a start found with what clients had been told before.
fn check(seed: u64, answered: &mut Answered, catalog: &Catalog, offset: Option<i64>) {
    let found = told(catalog);
    for id in &answered.deleted {
        assert!(!found.contains_key(id), "seed {seed}: a deleted topic is back");
    }
    match answered.under_way.take() {
        Some((Some(id), after)) => {
            let before = answered.topics.get(&id).cloned();
            let now = found.get(&id).cloned();
            assert!(
                now == before || now == after,
                "seed {seed}: {now:?} is neither {before:?} nor {after:?}"
            );
            match now {
                Some(now) => answered.topics.insert(id, now),
                None => answered.topics.remove(&id),
            };
        }
        Some((None, after)) => {
            let new = found.keys().find(|id| !answered.topics.contains_key(*id)).copied();
            if let Some(id) = new {
                assert_eq!(found.get(&id), after.as_ref(), "seed {seed}");
                answered.topics.insert(id, found[&id].clone());
            }
        }
        None => {}
    }
    assert_eq!(found, answered.topics, "seed {seed}");
    assert!(
        catalog.leader_epoch() > answered.epoch,
        "seed {seed}: leader epoch {} after {}",
        catalog.leader_epoch(),
        answered.epoch
    );
    answered.epoch = catalog.leader_epoch();
    match offset {
        Some(offset) => assert!(
            answered.offsets.contains(&offset),
            "seed {seed}: {offset} of {:?}",
            answered.offsets
        ),
        None => assert!(
            answered.offsets.first().is_none_or(|synced| *synced == -1),
            "seed {seed}"
        ),
    }
    // What was read is durable now.
    answered.offsets = vec![offset.unwrap_or(-1)];
}

fn with_retention(retention: Option<i64>) -> TopicConfig {
    let mut config = TopicConfig::default();
    if let Some(ms) = retention {
        config.set(
            ConfigKey::RetentionMs,
            ConfigKey::RetentionMs.parse(&ms.to_string()).unwrap(),
        );
    }
    config
}

/// One thing that a client asks for. `Err`: the disk said no, or the power is gone.
fn act(
    machine: &mut Machine,
    catalog: &mut Catalog,
    logs: &mut Logs,
    rng: &mut Rng,
    answered: &mut Answered,
) -> Result<(), ChangeError> {
    let ids: Vec<[u8; 16]> = answered.topics.keys().copied().collect();
    let retention = rng.percent(50).then(|| rng.within(0, 1000) as i64);
    match rng.below(12) {
        0..=2 => {
            let name = topic_name(&format!("topic-{}", rng.below(8))).unwrap();
            let partitions = rng.within(1, 5) as i32;
            let after = Told {
                name: name.to_string(),
                partitions,
                retention,
            };
            answered.under_way = Some((None, Some(after.clone())));
            let made = catalog.create(machine, logs, &name, partitions, &with_retention(retention));
            if let Err(ChangeError::Exists | ChangeError::Full) = made {
                answered.under_way = None;
                return Ok(());
            }
            let id = catalog.get(made?).unwrap().id.0;
            catalog.sync(machine, logs)?;
            answered.topics.insert(id, after);
        }
        3 if !ids.is_empty() => {
            let id = *rng.pick(&ids);
            let ix = catalog.by_id(Uuid(id)).unwrap();
            answered.under_way = Some((Some(id), None));
            catalog.delete(machine, ix)?;
            catalog.sync(machine, logs)?;
            catalog.forget(machine, logs, ix);
            answered.topics.remove(&id);
            answered.deleted.insert(id);
        }
        4 if !ids.is_empty() => {
            let id = *rng.pick(&ids);
            let ix = catalog.by_id(Uuid(id)).unwrap();
            let mut after = answered.topics[&id].clone();
            after.partitions += rng.within(1, 3) as i32;
            answered.under_way = Some((Some(id), Some(after.clone())));
            match catalog.add_partitions(machine, logs, ix, after.partitions) {
                Err(ChangeError::Full) => {
                    answered.under_way = None;
                    return Ok(());
                }
                done => done?,
            }
            catalog.sync(machine, logs)?;
            answered.topics.insert(id, after);
        }
        5 if !ids.is_empty() => {
            let id = *rng.pick(&ids);
            let ix = catalog.by_id(Uuid(id)).unwrap();
            let mut after = answered.topics[&id].clone();
            after.retention = retention;
            answered.under_way = Some((Some(id), Some(after.clone())));
            catalog.configure(machine, logs, ix, &with_retention(retention))?;
            catalog.sync(machine, logs)?;
            answered.topics.insert(id, after);
        }
        6 => {
            let id = catalog.next_producer_id(machine)?;
            assert!(answered.producer_ids.insert(id), "producer id {id} was given twice");
        }
        7 => {
            catalog.sync(machine, logs)?;
            answered.offsets.drain(..answered.offsets.len() - 1);
        }
        8 => {
            let offset = *answered.offsets.last().unwrap();
            let offsets = |emit: &mut dyn FnMut(&MetadataRecord<'_>)| {
                if offset >= 0 {
                    emit(&commit(offset));
                }
            };
            // Rewriting loses nothing that was written, and makes all of it durable.
            if catalog.tidy(machine, &offsets).map_err(|_| ChangeError::Storage)? {
                answered.offsets = vec![offset];
            }
        }
        _ => {
            let offset = answered.offsets.last().unwrap() + 1;
            answered.offsets.push(offset);
            catalog.log_mut().append(machine, &commit(offset))?;
        }
    }
    answered.under_way = None;
    // Every change but a commit is synced, and the commits before it with it.
    Ok(())
}

/// Makes the log so long that rewriting it is due.
fn lengthen(machine: &mut Machine, catalog: &mut Catalog, answered: &mut Answered) {
    let log = catalog.log_mut();
    while !log.is_tidy_due() {
        let offset = answered.offsets.last().unwrap() + 1;
        answered.offsets.push(offset);
        while log.stage(&commit(offset)).is_ok() {}
        log.write(machine).unwrap();
    }
    log.sync(machine).unwrap();
    answered.offsets.drain(..answered.offsets.len() - 1);
}

/// Goal: whatever the power cut leaves of what was not synced, the next start finds all that was answered.
/// Method: a run from a seed asks for changes; the power fails at a change of the seed's choice, also while the log is read and mended
/// at a start; then what the disk has is compared with what was answered, and the run goes on.
#[test]
fn what_was_answered_outlives_power_cuts() {
    for seed in 0..SEEDS {
        let mut rng = Rng::new(seed);
        let behaviour = Behaviour {
            short_write_percent: rng.below(2) * 20,
            ..Behaviour::default()
        };
        let mut machine = Machine::new(FaultDisk::new(behaviour, rng.fork()), rng.fork());
        let mut answered = Answered {
            epoch: -1,
            offsets: vec![-1],
            ..Answered::default()
        };
        for cut in 0..6 {
            let lives = rng.within(0, 60);
            machine.disk.cut_power_at(machine.disk.changes() + lives);
            if let Ok((mut catalog, mut logs, offset)) = start(&mut machine) {
                if machine.disk.has_power() {
                    check(seed, &mut answered, &catalog, offset);
                }
                if seed % 16 == 0 && cut == 2 {
                    machine.disk.cut_power_at(u64::MAX);
                    lengthen(&mut machine, &mut catalog, &mut answered);
                    machine.disk.cut_power_at(machine.disk.changes() + rng.below(20));
                }
                while machine.disk.has_power() {
                    let done = act(&mut machine, &mut catalog, &mut logs, &mut rng, &mut answered);
                    assert!(done.is_ok() || !machine.disk.has_power(), "seed {seed}: {done:?}");
                }
            }
            machine.disk.power_cycle();
        }
        let (catalog, _, offset) = start(&mut machine).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        check(seed, &mut answered, &catalog, offset);
    }
}

fn machine(seed: u64) -> Machine {
    Machine::new(FaultDisk::new(Behaviour::default(), Rng::new(seed)), Rng::new(seed + 1))
}

fn names(catalog: &Catalog) -> Vec<String> {
    told(catalog)
        .into_values()
        .map(|told| told.name)
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect()
}

fn make(machine: &mut Machine, catalog: &mut Catalog, logs: &mut Logs, name: &str) -> Result<(), ChangeError> {
    let name = topic_name(name).unwrap();
    catalog.create(machine, logs, &name, 1, &TopicConfig::default())?;
    catalog.sync(machine, logs)
}

#[test]
fn a_failed_sync_takes_back_what_was_made_and_rewriting_mends_it() {
    let mut machine = machine(1);
    let (mut catalog, mut logs, _) = start(&mut machine).unwrap();
    make(&mut machine, &mut catalog, &mut logs, "before").unwrap();
    machine.disk.fail(Call::Sync, 0, DiskError::Io);
    let failed = make(&mut machine, &mut catalog, &mut logs, "failed");
    assert_eq!(failed, Err(ChangeError::Storage));
    assert_eq!(names(&catalog), ["before"]);
    // A second sync that succeeds would prove nothing, so nothing is taken.
    assert!(catalog.has_failed());
    let refused = make(&mut machine, &mut catalog, &mut logs, "refused");
    assert_eq!(refused, Err(ChangeError::Storage));
    assert_eq!(catalog.next_producer_id(&mut machine), Err(ChangeError::Storage));
    let ix = catalog.by_name("before").unwrap();
    assert_eq!(catalog.delete(&mut machine, ix), Err(ChangeError::Storage));

    assert_eq!(catalog.tidy(&mut machine, &|emit| emit(&commit(7))), Ok(true));
    make(&mut machine, &mut catalog, &mut logs, "after").unwrap();
    machine.disk.power_cycle();
    let (catalog, _, offset) = start(&mut machine).unwrap();
    assert_eq!(names(&catalog), ["after", "before"]);
    assert_eq!(offset, Some(7));
}

/// Goal: a full disk stops neither commits nor deletions nor a restart, and it passes by itself. Method: no byte more than there is.
#[test]
fn a_full_disk_is_lived_with() {
    let mut machine = machine(2);
    let (mut catalog, mut logs, _) = start(&mut machine).unwrap();
    for name in ["a", "b"] {
        make(&mut machine, &mut catalog, &mut logs, name).unwrap();
    }
    machine.disk.behave(Behaviour {
        space_bytes: machine.disk.used_bytes(),
        ..Behaviour::default()
    });
    for offset in 0..300 {
        catalog.log_mut().append(&mut machine, &commit(offset)).unwrap();
    }
    let ix = catalog.by_name("a").unwrap();
    catalog.delete(&mut machine, ix).unwrap();
    catalog.sync(&mut machine, &mut logs).unwrap();
    catalog.forget(&mut machine, &mut logs, ix);
    machine.disk.power_cycle();

    let (mut catalog, mut logs, offset) = start(&mut machine).unwrap();
    assert_eq!((names(&catalog), offset), (vec!["b".to_owned()], Some(299)));
    let mut full = 300;
    while catalog.log_mut().append(&mut machine, &commit(full)).is_ok() {
        full += 1;
    }
    // To the last byte: now a topic cannot be made, and is not half made.
    assert_eq!(
        make(&mut machine, &mut catalog, &mut logs, "c"),
        Err(ChangeError::Storage)
    );
    assert_eq!(names(&catalog), ["b"]);
    catalog.sync(&mut machine, &mut logs).unwrap();
    machine.disk.power_cycle();
    let (mut catalog, mut logs, offset) = start(&mut machine).unwrap();
    assert_eq!((names(&catalog), offset), (vec!["b".to_owned()], Some(full - 1)));

    machine.disk.behave(Behaviour::default());
    make(&mut machine, &mut catalog, &mut logs, "c").unwrap();
    assert_eq!(names(&catalog), ["b", "c"]);
}

#[test]
fn fewer_rows_than_there_are_topics_are_named_at_start() {
    let mut machine = machine(3);
    let (mut catalog, mut logs, _) = start(&mut machine).unwrap();
    for at in 0..13 {
        let made = make(&mut machine, &mut catalog, &mut logs, &format!("topic-{at}"));
        assert_eq!(made, if at < 12 { Ok(()) } else { Err(ChangeError::Full) });
    }
    let mut fewer = config(&[("skerry.limits.topics", "11")]);
    fewer.limits.partitions = 40;
    let limits = LogLimits {
        partitions: 40,
        segments: 100,
        open_files: 16,
        producers: 16,
    };
    let mut logs = Logs::new(limits, LogPolicy::new(&fewer, Timestamp(0), crc::CRC32C));
    let (now, wall) = (Instant::default(), Timestamp(0));
    let refused = Catalog::open(&mut machine, &fewer, crc::CRC32C, &mut logs, now, wall, &mut |_| {});
    let why = refused.err().map(|e| e.to_string()).unwrap_or_default();
    assert!(
        why.contains("12 topics") && why.contains("skerry.limits.topics"),
        "{why}"
    );
}
