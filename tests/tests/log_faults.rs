//! What the log promises, on a disk that breaks every promise it may.
//!
//! One scripted run of appends, flushes, rolls, retention, deletions, clean stops and kills is done again and again. Each time the power
//! fails at another change of the disk, or a sync fails, or both; then the log is opened and must hold:
//! - every record that was durable is there, in order, once, with the bytes that were appended;
//! - what follows it, if anything, is what was appended there; nothing above what was written;
//! - producers are recognised: the last durable batch is a duplicate, the next sequence is accepted;
//! - opening again gives the same; writing goes on, and what is flushed then survives the next power cut.

mod log_rig;

use std::collections::BTreeMap;

use log_rig::{Rig, batch, settings};
use skerry_broker::ids::PartitionIx;
use skerry_broker::log::{LogSettings, OffsetSpec};
use skerry_core::time::Timestamp;
use skerry_net::host::DiskError;
use skerry_tests::fault_disk::{Behaviour, Call};
use skerry_tests::rng::Rng;

const PARTITIONS: usize = 2;
const PRODUCERS: i64 = 2;

/// What a partition was told and what it said.
#[derive(Default)]
struct Model {
    /// What was appended last at each offset: the bytes after the leader epoch's place, and the offset after them.
    written: BTreeMap<i64, Written>,
    /// The furthest end that was ever called durable.
    durable: i64,
    /// The furthest log start.
    log_start: i64,
    sequences: [i32; PRODUCERS as usize],
    /// Offsets of each producer's batches that must be known: a client that has five in flight has the answers to those before.
    known: [Vec<i64>; PRODUCERS as usize],
}

#[derive(Clone)]
struct Written {
    bytes: Vec<u8>,
    next_offset: i64,
    /// Producer and first sequence.
    from: Option<(i64, i32)>,
    records: i32,
}

struct Run {
    rig: Rig,
    rng: Rng,
    models: [Model; PARTITIONS],
    ixs: [PartitionIx; PARTITIONS],
}

impl Run {
    fn new(seed: u64, behaviour: Behaviour) -> Self {
        let settings = LogSettings {
            segment_bytes: 1500,
            retention_bytes: 6000,
            ..settings()
        };
        let mut rig = Rig::with(seed, behaviour, settings);
        rig.limits.open_files = 6;
        rig.start();
        Self {
            rig,
            rng: Rng::new(seed ^ 77),
            models: Default::default(),
            ixs: [PartitionIx(0); PARTITIONS],
        }
    }

    /// The script. Ends early without power, or when a partition has failed.
    fn script(&mut self, steps: usize) {
        for n in 0..PARTITIONS {
            self.ixs[n] = self.rig.create("t", n as i32);
        }
        for step in 0..steps {
            let n = self.rng.index(PARTITIONS);
            let ix = self.ixs[n];
            match self.rng.below(40) {
                0..24 => self.append(n, step),
                24..32 => {
                    self.rig.flusher.want(ix);
                    self.rig.turn();
                }
                32..36 => self.rig.later(),
                36 => {
                    self.rig.retain(ix);
                }
                37 => {
                    let ends = self.rig.logs.ends(ix);
                    let before = ends.log_start + (ends.high_watermark - ends.log_start) / 3;
                    let _ = self.rig.logs.delete_records(&mut self.rig.disk, ix, before);
                }
                38 => {
                    self.rig.stop();
                    self.note();
                    if self.over() {
                        return;
                    }
                    self.reopen(true);
                }
                _ => {
                    self.note();
                    self.reopen(true);
                }
            }
            self.note();
            if self.over() {
                return;
            }
        }
    }

    fn over(&self) -> bool {
        !self.rig.disk.has_power()
            || !self.rig.failed.is_empty()
            || self.ixs.iter().any(|ix| !self.rig.logs.is_writable(*ix))
    }

    fn append(&mut self, n: usize, step: usize) {
        let records = 1 + self.rng.below(4) as i32;
        let producer = self.rng.below(PRODUCERS as u64 + 1) as i64;
        let from = (producer < PRODUCERS).then(|| (producer, self.models[n].sequences[producer as usize]));
        let time = 1000 + step as i64 * 10;
        let producer = from.map(|(id, sequence)| (id, 0, sequence));
        let bytes = batch(producer, records, time);
        let Ok(appended) = self.rig.append_at(self.ixs[n], producer, records, time) else {
            return;
        };
        assert!(!appended.duplicate);
        let model = &mut self.models[n];
        if let Some((id, _)) = from {
            model.sequences[id as usize] += records;
            model.known[id as usize].push(appended.base_offset);
        }
        let written = Written {
            bytes: bytes[16..].to_vec(),
            next_offset: appended.next_offset,
            from,
            records,
        };
        model.written.insert(appended.base_offset, written);
    }

    /// Takes note of what the logs say is durable.
    fn note(&mut self) {
        for (model, ix) in self.models.iter_mut().zip(self.ixs) {
            let ends = self.rig.logs.ends(ix);
            model.durable = model.durable.max(ends.durable);
            model.log_start = model.log_start.max(ends.log_start);
            assert!(
                ends.log_start <= ends.durable && ends.durable <= ends.written,
                "{ends:?}"
            );
        }
    }

    /// Fresh memory, the same disk. `kill`: the page cache is still there.
    fn reopen(&mut self, kill: bool) {
        if kill {
            self.rig.restart();
        } else {
            self.rig.start();
        }
        self.rig.logs.purge(&mut self.rig.disk);
        for n in 0..PARTITIONS {
            self.ixs[n] = self.rig.open("t", n as i32);
        }
        for n in 0..PARTITIONS {
            let written = self.rig.logs.ends(self.ixs[n]).written;
            if !self.rig.logs.is_writable(self.ixs[n]) {
                continue;
            }
            // What was lost was never durable; what comes in its place goes on from there.
            let model = &mut self.models[n];
            model.written.retain(|offset, _| *offset < written);
            for producer in 0..PRODUCERS {
                let last = model
                    .written
                    .values()
                    .rev()
                    .find(|w| w.from.is_some_and(|(id, _)| id == producer));
                let known = &mut model.known[producer as usize];
                known.drain(..known.len().saturating_sub(5));
                known.retain(|offset| *offset < written);
                model.sequences[producer as usize] = last.map_or(0, |w| w.from.unwrap().1 + w.records);
            }
        }
    }

    /// Everything that must hold after a start on a disk that works.
    fn check(&mut self, what: &str) {
        let mut seen = Vec::new();
        for n in 0..PARTITIONS {
            let ix = self.ixs[n];
            self.rig.flush(ix);
            let (model, ends) = (&self.models[n], self.rig.logs.ends(ix));
            assert!(self.rig.logs.is_writable(ix), "{what}: partition {n} takes writes");
            assert!(
                ends.durable >= model.durable,
                "{what}: {ends:?} but {} was durable",
                model.durable
            );
            assert_eq!(ends.durable, ends.written, "{what}");
            // A first segment whose name was never durable may be gone while a later one is there.
            assert!(
                ends.log_start <= model.log_start || ends.log_start >= model.durable,
                "{what}: {ends:?} but the log started at {}",
                model.log_start,
            );
            let there = self.rig.read_batches(ix).unwrap_or_else(|e| panic!("{what}: {e:?}"));
            let mut expected = there.first().map_or(ends.log_start, |(offset, _)| *offset);
            assert!(expected <= ends.log_start, "{what}");
            let model = &self.models[n];
            for (offset, bytes) in &there {
                assert_eq!(*offset, expected, "{what}: in order, once");
                let written = model
                    .written
                    .get(offset)
                    .unwrap_or_else(|| panic!("{what}: {offset} was never written"));
                assert!(bytes[4..] == written.bytes[..], "{what}: the bytes at {offset}");
                expected = written.next_offset;
            }
            assert_eq!(expected, ends.written.max(expected), "{what}");
            // By time too, through the index.
            if let Some((offset, _)) = there.get(there.len() / 2)
                && *offset >= ends.log_start
            {
                let time = i64::from_be_bytes(model.written[offset].bytes[11..19].try_into().unwrap());
                let found = self.rig.list(ix, OffsetSpec::At(Timestamp(time)));
                assert!(
                    found.0 >= ends.log_start && found.0 <= *offset && found.1 >= time,
                    "{what}: {found:?}"
                );
            }
            seen.push(there);
        }
        for n in 0..PARTITIONS {
            self.check_producers(n, what);
        }
        // Once more from the same disk.
        self.reopen(true);
        for (n, before) in seen.iter().enumerate() {
            self.rig.flush(self.ixs[n]);
            let after = self.rig.read_batches(self.ixs[n]).unwrap();
            assert_eq!(
                after[..before.len()],
                before[..],
                "{what}: opening again gives the same"
            );
        }
    }

    fn check_producers(&mut self, n: usize, what: &str) {
        for producer in 0..PRODUCERS {
            let model = &self.models[n];
            let start = self.rig.logs.ends(self.ixs[n]).log_start;
            let known: Vec<_> = model.known[producer as usize].iter().rev().take(5).copied().collect();
            for offset in known.into_iter().filter(|offset| *offset >= start) {
                let Written { from, records, .. } = self.models[n].written[&offset];
                let again = self
                    .rig
                    .append_at(self.ixs[n], from.map(|(id, sequence)| (id, 0, sequence)), records, 1);
                let again = again.unwrap_or_else(|e| panic!("{what}: {offset} sent again: {e:?}"));
                assert!(
                    again.duplicate && again.base_offset == offset,
                    "{what}: {offset} sent again: {again:?}"
                );
            }
            let next = self.models[n].sequences[producer as usize];
            let time = 1_000_000;
            let appended = self.rig.append_at(self.ixs[n], Some((producer, 0, next)), 2, time);
            let appended = appended.unwrap_or_else(|e| panic!("{what}: sequence {next} comes next: {e:?}"));
            assert!(!appended.duplicate, "{what}: sequence {next} is new");
            let bytes = batch(Some((producer, 0, next)), 2, time)[16..].to_vec();
            let model = &mut self.models[n];
            model.sequences[producer as usize] += 2;
            model.known[producer as usize].push(appended.base_offset);
            let written = Written {
                bytes,
                next_offset: appended.next_offset,
                from: Some((producer, next)),
                records: 2,
            };
            model.written.insert(appended.base_offset, written);
        }
    }
}

fn behaviours() -> [Behaviour; 2] {
    let blocking = Behaviour {
        ring: false,
        ..Behaviour::default()
    };
    let ring = Behaviour {
        ring: true,
        sync_us: (0, 3000),
        load_us: (0, 500),
        ..Behaviour::default()
    };
    [blocking, ring]
}

/// How many seeds: `SKERRY_SEEDS` for long runs.
fn seeds(default: u64) -> u64 {
    std::env::var("SKERRY_SEEDS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(default)
}

#[test]
fn the_power_fails_at_every_change() {
    for seed in 0..seeds(2) {
        for behaviour in behaviours() {
            for cut in 0.. {
                let what = format!("seed {seed}, ring {}, cut {cut}", behaviour.ring);
                let mut run = Run::new(seed, behaviour);
                run.rig.disk.cut_power_at(cut);
                run.script(150);
                if run.rig.disk.has_power() {
                    assert!(cut > 100, "{what}: the run is too short to mean much");
                    break;
                }
                run.rig.disk.power_cycle();
                run.reopen(false);
                run.check(&what);
                run.rig.disk.power_cycle();
                run.reopen(false);
                run.check(&what);
            }
        }
    }
}

#[test]
fn the_power_fails_again_during_the_start() {
    for seed in 0..seeds(4) {
        for again in 0..40 {
            let what = format!("seed {seed}, again {again}");
            let behaviour = behaviours()[(seed % 2) as usize];
            let mut run = Run::new(seed, behaviour);
            run.rig.disk.cut_power_at(60 + seed * 37);
            run.script(400);
            run.rig.disk.power_cycle();
            run.rig.disk.cut_power_at(run.rig.disk.changes() + again);
            run.reopen(false);
            for ix in run.ixs {
                run.rig.flush(ix);
            }
            run.note();
            run.rig.disk.power_cycle();
            run.reopen(false);
            run.check(&what);
        }
    }
}

#[test]
fn every_sync_fails_once_and_the_power_too() {
    for seed in 0..seeds(2) {
        for behaviour in behaviours() {
            for nth in 0.. {
                let what = format!("seed {seed}, ring {}, sync {nth}", behaviour.ring);
                let mut run = Run::new(seed, behaviour);
                run.rig.disk.fail(Call::Sync, nth, DiskError::Io);
                run.script(150);
                if run.rig.disk.calls(Call::Sync) <= nth {
                    break;
                }
                // The page cache still shows what the disk may not have.
                run.rig.restart();
                let cut = run.rng.below(30);
                run.rig.disk.cut_power_at(run.rig.disk.changes() + cut);
                run.reopen(true);
                for ix in run.ixs {
                    run.rig.flush(ix);
                }
                run.note();
                run.rig.disk.power_cycle();
                run.reopen(false);
                run.check(&what);
                run.rig.disk.power_cycle();
                run.reopen(false);
                run.check(&what);
            }
        }
    }
}

#[test]
fn every_other_call_fails_once() {
    let kinds = [
        Call::Create,
        Call::Write,
        Call::Truncate,
        Call::Rename,
        Call::Remove,
        Call::CreateDir,
    ];
    for (kind, error) in kinds
        .iter()
        .flat_map(|kind| [(*kind, DiskError::Io), (*kind, DiskError::Full)])
    {
        for nth in 0.. {
            let what = format!("{kind:?} {nth} fails with {error:?}");
            let mut run = Run::new(5, behaviours()[(nth % 2) as usize]);
            run.rig.disk.fail(kind, nth, error);
            run.script(150);
            if run.rig.disk.calls(kind) <= nth {
                break;
            }
            run.reopen(true);
            run.check(&what);
            run.rig.disk.power_cycle();
            run.reopen(false);
            run.check(&what);
        }
    }
}

#[test]
fn a_full_disk_at_random_moments() {
    for seed in 0..seeds(40) {
        let mut run = Run::new(
            seed,
            Behaviour {
                short_write_percent: 5,
                space_bytes: 3000 + seed * 211,
                ..behaviours()[1]
            },
        );
        run.script(300);
        assert!(run.rig.failed.is_empty(), "seed {seed}: full is not failed");
        let good = Behaviour {
            short_write_percent: 0,
            space_bytes: u64::MAX,
            ..run.rig.disk.behaviour()
        };
        run.rig.disk.behave(good);
        run.script_goes_on(seed);
        run.rig.disk.power_cycle();
        run.reopen(false);
        run.check(&format!("seed {seed}"));
    }
}

impl Run {
    /// There is space again: the very next append succeeds.
    fn script_goes_on(&mut self, seed: u64) {
        // With so few open files, a flush may have all of them.
        self.rig.settle();
        for n in 0..PARTITIONS {
            let before = self.rig.logs.ends(self.ixs[n]).written;
            self.append(n, 1000);
            let ends = self.rig.logs.ends(self.ixs[n]);
            assert!(ends.written > before, "seed {seed}: there is space again {ends:?}");
            self.rig.flush(self.ixs[n]);
        }
        self.note();
    }
}

#[test]
fn derived_files_are_damaged_at_random() {
    for seed in 0..seeds(150) {
        let mut run = Run::new(seed, behaviours()[(seed % 2) as usize]);
        run.script(200);
        if seed % 3 == 0 {
            run.rig.stop();
        } else {
            for ix in run.ixs {
                run.rig.flush(ix);
            }
        }
        run.note();
        run.rig.disk.kill();
        let derived: Vec<_> = run
            .rig
            .disk
            .files()
            .into_iter()
            .filter(|path| !path.ends_with(".log"))
            .collect();
        for path in derived {
            let mut rng = run.rng.fork();
            run.rig.disk.tamper(&path, |bytes| match rng.below(5) {
                0 => bytes.clear(),
                1 => bytes.truncate(rng.index(bytes.len() + 1)),
                2 => bytes.extend(std::iter::repeat_n(0xA5, 1 + rng.index(200))),
                3 if !bytes.is_empty() => {
                    let at = rng.index(bytes.len());
                    bytes[at] ^= 1 << rng.below(8);
                }
                _ => {
                    let from = rng.index(bytes.len() + 1);
                    bytes[from..].fill(0);
                }
            });
        }
        run.reopen(false);
        // Which records were deleted is known only from the checkpoint: without one they are back.
        run.check(&format!("seed {seed}"));
    }
}

#[test]
fn torn_and_flipped_tails_cost_only_the_tail() {
    for seed in 0..seeds(100) {
        let mut run = Run::new(seed, behaviours()[0]);
        run.script(100);
        run.rig.stop();
        run.note();
        // After the last flush: written, never durable.
        for step in 0..20 {
            run.append(0, 500 + step);
        }
        run.rig.disk.kill();
        let prefix = "t-0/";
        let mut logs: Vec<_> = run
            .rig
            .disk
            .files()
            .into_iter()
            .filter(|p| p.starts_with(prefix) && p.ends_with(".log"))
            .collect();
        logs.sort();
        let last = logs.pop().expect("a log");
        let durable = run.models[0].durable;
        let first_lost = run.models[0].written.range(durable..).next().map(|(offset, _)| *offset);
        let mut rng = run.rng.fork();
        let base: i64 = last[prefix.len()..prefix.len() + 20].parse().unwrap();
        if base < durable || first_lost.is_none() {
            continue;
        }
        run.rig.disk.tamper(&last, |bytes| {
            if bytes.is_empty() {
                return;
            }
            let at = rng.index(bytes.len());
            if rng.percent(50) {
                bytes.truncate(at);
            } else {
                bytes[at] ^= 1 << rng.below(8);
            }
        });
        run.reopen(false);
        run.check(&format!("seed {seed}"));
    }
}

/// The fuzz target's body over a few thousand random inputs; the target itself finds better ones.
#[test]
fn any_bytes_as_files() {
    for seed in 0..seeds(2) * 700 {
        let mut rng = Rng::new(seed);
        let mut data = vec![0; 1 + rng.index(120)];
        rng.fill(&mut data);
        skerry_tests::log_bytes::check(&data);
    }
}
