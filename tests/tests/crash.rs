//! The real binary, killed under load again and again on one data directory, at moments that a seed chooses.
//!
//! In each round idempotent producers and a plain one fill windows of batches, a consumer reads while they flow, and a committer commits
//! what the consumer has read and takes producer ids. After each restart:
//! - every acknowledged record is in the log at the offset that was told, in order, once (`SIGKILL` takes back nothing that was written, so
//!   this holds for acks=1 too);
//! - what the consumer saw is there, the same bytes at the same offset, and no high watermark that it saw is past the end;
//! - batches without an answer, sent again by the same idempotent producer, are there once, and duplicates are answered with the original's offset;
//! - the committed offset is the last acknowledged one or the one on its way, and not past the end;
//! - no producer id was given twice; nothing was repaired, lowered or lost by the log's own account.
//!
//! What is durable cannot be told by a kill: that is what the tests over the fault-injecting disk are for.
//! `SKERRY_CRASH_SEED` gives another run; the moment of a kill is only as exact as the machine's scheduling.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;
use std::time::Duration;

use skerry_core::error_code::ErrorCode;
use skerry_tests::client::Client;
use skerry_tests::process::{Skerry, Start, TempDir};
use skerry_tests::rng::Rng;
use skerry_tests::wire::{self, TestRecord};

const TOPIC: &str = "crash";
const GROUP: &str = "crash";
const PARTITIONS: usize = 3;
/// Idempotent producers at a time. Each round gives one of them a new id.
const IDEMPOTENT: usize = 3;
/// Batches in flight of an idempotent producer: as many as a broker remembers.
const WINDOW: usize = 5;
const PLAIN_WINDOW: usize = 12;
/// The number of the producer without an id.
const PLAIN: u32 = 0;

#[test]
fn killed_fifty_times_under_load() {
    let mut run = Run::new(0x00c4_a54e_d000);
    for round in 0..50 {
        run.round(round, Ending::Kill);
        if run.rng.percent(20) {
            // Killed again while it makes the tail durable, before anyone has come.
            let broker = run.start(round + 1);
            thread::sleep(Duration::from_micros(run.rng.below(5000)));
            broker.kill();
        }
        if round % 10 == 9 {
            run.read_all_again(round + 1);
        }
    }
    println!("{}", run.model.account());
}

#[test]
fn stopped_under_load_nothing_is_lost_and_nothing_is_recovered() {
    let mut run = Run::new(0x0057_0bbe_d000);
    // One segment and no checkpoint but that of a stop: a start that recovers anything reads all of it.
    run.settings = &["log.segment.bytes=1000000000", "skerry.checkpoint.bytes=1000000000"];
    let mut round = 0;
    let mut log_bytes_then = 0;
    while round < 6 || log_bytes_then < 2 << 20 {
        run.round(round, Ending::Stop);
        log_bytes_then = log_bytes(&run.dir);
        round += 1;
        let broker = run.start(round);
        let read_bytes = read_bytes(&broker);
        assert!(
            log_bytes_then < 2 << 20 || read_bytes < log_bytes_then / 2,
            "a start after a clean stop read {read_bytes} bytes with {log_bytes_then} in the log"
        );
        broker.kill();
    }
    run.read_all_again(round);
    println!("{}", run.model.account());
}

/// Bytes that a process has asked the kernel for.
fn read_bytes(broker: &Skerry) -> u64 {
    let io = fs::read_to_string(format!("/proc/{}/io", broker.pid())).expect("what the process has read");
    let line = io.lines().find_map(|l| l.strip_prefix("rchar: "));
    line.and_then(|n| n.trim().parse().ok()).expect("a number of bytes")
}

/// Bytes in the segments of the topic.
fn log_bytes(dir: &TempDir) -> u64 {
    (0..PARTITIONS)
        .flat_map(|p| fs::read_dir(dir.path().join(format!("{TOPIC}-{p}"))).expect("a partition's directory"))
        .map(|entry| entry.expect("an entry"))
        .filter(|entry| entry.path().extension().is_some_and(|e| e == "log"))
        .map(|entry| entry.metadata().expect("its length").len())
        .sum()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    Kill,
    Stop,
}

/// Says the seed when a check fails.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("to run it again: SKERRY_CRASH_SEED={}", self.0);
        }
    }
}

struct Run {
    dir: TempDir,
    settings: &'static [&'static str],
    rng: Rng,
    model: Model,
    producers: Vec<Producer>,
    plain: Producer,
    next_number: u32,
    _seed: Seed,
}

impl Run {
    fn new(default_seed: u64) -> Self {
        let seed = env::var("SKERRY_CRASH_SEED").map_or(default_seed, |s| s.parse().expect("a seed is a number"));
        Self {
            dir: TempDir::new(),
            settings: &["log.segment.bytes=400000", "skerry.checkpoint.bytes=65536"],
            rng: Rng::new(seed),
            model: Model::default(),
            producers: Vec::new(),
            plain: Producer::new(PLAIN, None),
            next_number: PLAIN + 1,
            _seed: Seed(seed),
        }
    }

    /// Half of the rounds with io_uring, half without, each following each.
    fn start(&self, round: u32) -> Skerry {
        let ring = if matches!(round % 4, 0 | 3) { "auto" } else { "off" };
        let ring = format!("skerry.io_uring={ring}");
        let mut settings = vec![ring.as_str(), "log.retention.ms=-1"];
        settings.extend(self.settings);
        Start::new(self.dir.path()).with(&settings).start()
    }

    fn round(&mut self, round: u32, ending: Ending) {
        let broker = self.start(round);
        let mut client = Client::connect(broker.address);
        if round == 0 {
            client.create_topic(TOPIC, PARTITIONS as i32, &[]);
        }
        self.model.check(&mut client, round);
        for producer in &mut self.producers {
            producer.resend(&mut client, &mut self.model);
        }
        self.model.check(&mut client, round);
        for producer in &self.producers {
            assert!(producer.unanswered.is_empty());
            for (partition, of) in self.model.partitions.iter().enumerate() {
                let there = of.next.get(&producer.number).copied().unwrap_or(0);
                assert_eq!(
                    there, producer.next[partition],
                    "round {round}: records of producer {} in {partition} after all were sent again",
                    producer.number
                );
            }
        }
        while self.producers.len() < IDEMPOTENT {
            self.add_producer(&mut client);
        }
        self.producers.remove(0);
        self.add_producer(&mut client);

        let load = Duration::from_micros(self.rng.within(10_000, 500_000));
        self.load(broker, load, ending, round);
    }

    fn add_producer(&mut self, client: &mut Client) {
        let id = client.init_producer().expect("a producer id");
        self.model.take_id(id);
        self.producers.push(Producer::new(self.next_number, Some(id)));
        self.next_number += 1;
    }

    /// Lets everyone work until the broker has ended.
    fn load(&mut self, broker: Skerry, time: Duration, ending: Ending, round: u32) {
        let address = broker.address;
        let connect = || Client::connect(address);
        let ends: Vec<i64> = self.model.partitions.iter().map(|p| p.log.len() as i64).collect();
        let read_up_to: Vec<AtomicI64> = ends.iter().map(|end| AtomicI64::new(*end)).collect();
        let plain_acks = if round.is_multiple_of(3) { -1 } else { 1 };
        let all = self.producers.iter_mut().map(|p| (p, -1, WINDOW));
        let all: Vec<_> = all.chain([(&mut self.plain, plain_acks, PLAIN_WINDOW)]).collect();
        let model = &mut self.model;
        let rng = &mut self.rng;
        thread::scope(|scope| {
            let mut producing = Vec::new();
            for (producer, acks, window) in all {
                let (client, rng) = (connect(), rng.fork());
                producing.push(scope.spawn(move || producer.produce(client, rng, acks, window)));
            }
            let (reader, committer) = (connect(), connect());
            let consuming = scope.spawn(|| consume(reader, &read_up_to));
            let before: Vec<_> = model.partitions.iter().map(|p| p.committed).collect();
            let committing = scope.spawn(|| commit(committer, before, &read_up_to));

            thread::sleep(time);
            match ending {
                Ending::Kill => {
                    assert_sound(&broker.stderr(), round);
                    broker.kill();
                }
                Ending::Stop => {
                    let (status, stderr) = broker.stop();
                    assert_eq!(status.code(), Some(0), "round {round}:\n{stderr}");
                    assert_sound(&stderr, round);
                    for mended in ["made again", "are cut", "is removed"] {
                        assert!(!stderr.contains(mended), "round {round}: recovery:\n{stderr}");
                    }
                }
            }

            for acks in producing {
                for ack in acks.join().expect("a producer") {
                    model.note_ack(&ack);
                }
            }
            for (of, seen) in model.partitions.iter_mut().zip(consuming.join().expect("the consumer")) {
                of.seen = seen;
            }
            let (committed, ids) = committing.join().expect("the committer");
            for (of, committed) in model.partitions.iter_mut().zip(committed) {
                of.committed = committed;
            }
            ids.into_iter().for_each(|id| model.take_id(id));
        });
    }

    /// Reads every partition from its beginning and compares it with what was read before.
    fn read_all_again(&self, round: u32) {
        let broker = self.start(round);
        let mut client = Client::connect(broker.address);
        for (partition, of) in self.model.partitions.iter().enumerate() {
            let mut offset = 0;
            while offset < of.log.len() {
                let (records, _) = client.fetch(TOPIC, partition as i32, offset as i64, 0);
                assert!(!records.is_empty(), "{partition}: nothing at {offset}");
                for record in records.iter().take(of.log.len() - offset) {
                    assert_eq!(record.offset, offset as i64, "{partition}: offset");
                    assert_eq!(
                        digest(record),
                        of.log[offset],
                        "{partition}: the record at {offset} has changed"
                    );
                    offset += 1;
                }
            }
        }
        // Killed, so that what the next start finds is what the round left.
        broker.kill();
    }
}

/// Nothing in what the broker wrote tells of loss, of a failed disk or of a panic.
fn assert_sound(stderr: &str, round: u32) {
    for trouble in [" ERROR ", "panicked", "lowered", "moved aside"] {
        assert!(!stderr.contains(trouble), "round {round}: {trouble:?} in\n{stderr}");
    }
}

/// The record that a producer makes with a sequence: all that is in it follows from who made it.
fn record(number: u32, partition: usize, sequence: i32) -> TestRecord {
    let mut value = format!("{number} {partition} {sequence} ").into_bytes();
    let mut rng = Rng::new((u64::from(number) << 40) ^ ((partition as u64) << 32) ^ u64::from(sequence.unsigned_abs()));
    let head = value.len();
    value.resize(head + rng.index(500), 0);
    rng.fill(&mut value[head..]);
    TestRecord {
        offset: 0,
        timestamp: 1_700_000_000_000 + i64::from(sequence),
        key: Some(number.to_be_bytes().to_vec()),
        value,
    }
}

/// Who made a record, and with which sequence.
///
/// Panics when it is no record of these producers, or not the one that was made.
fn maker(partition: usize, found: &TestRecord) -> (u32, i32) {
    let mut words = found
        .value
        .split(|b| *b == b' ')
        .map(|w| String::from_utf8_lossy(w).into_owned());
    let number = words.next().and_then(|w| w.parse().ok()).expect("a producer");
    let sequence = words.nth(1).and_then(|w| w.parse().ok()).expect("a sequence");
    let mut made = record(number, partition, sequence);
    made.offset = found.offset;
    assert!(
        made == *found,
        "{partition}: the record at {} is not what was sent",
        found.offset
    );
    (number, sequence)
}

/// Of all but the offset.
fn digest(record: &TestRecord) -> u64 {
    let mut hasher = DefaultHasher::new();
    (record.timestamp, &record.key, &record.value).hash(&mut hasher);
    hasher.finish()
}

/// A batch that was sent.
struct Sent {
    partition: usize,
    sequence: i32,
    count: i32,
    bytes: Vec<u8>,
}

/// A batch that was acknowledged.
struct Ack {
    partition: usize,
    number: u32,
    sequence: i32,
    count: i32,
    offset: i64,
}

struct Producer {
    number: u32,
    id: Option<i64>,
    /// The next sequence in each partition.
    next: [i32; PARTITIONS],
    /// In the order in which they were sent.
    unanswered: VecDeque<Sent>,
}

impl Producer {
    const fn new(number: u32, id: Option<i64>) -> Self {
        Self {
            number,
            id,
            next: [0; PARTITIONS],
            unanswered: VecDeque::new(),
        }
    }

    /// Makes the next batch. It counts as sent from here on.
    fn make(&mut self, rng: &mut Rng) -> &Sent {
        let partition = rng.index(PARTITIONS);
        let count = rng.within(1, 8) as i32;
        let sequence = self.next[partition];
        self.next[partition] += count;
        let records: Vec<_> = (sequence..sequence + count)
            .map(|s| record(self.number, partition, s))
            .collect();
        let from = self.id.map(|id| wire::Producer { id, epoch: 0, sequence });
        self.unanswered.push_back(Sent {
            partition,
            sequence,
            count,
            bytes: wire::batch(&records, from),
        });
        &self.unanswered[self.unanswered.len() - 1]
    }

    /// Takes the answer to the oldest batch; `None` when the connection has ended.
    fn take_answer(&mut self, client: &mut Client) -> Option<Ack> {
        let answer = client.receive_produced().ok()??;
        let sent = self.unanswered.pop_front().expect("an answer has a batch");
        let offset = answer.unwrap_or_else(|e| {
            panic!(
                "producer {} in {} at sequence {}: {e:?}",
                self.number, sent.partition, sent.sequence
            )
        });
        Some(Ack {
            partition: sent.partition,
            number: self.number,
            sequence: sent.sequence,
            count: sent.count,
            offset,
        })
    }

    /// Keeps the window full until the connection ends; what was acknowledged.
    fn produce(&mut self, mut client: Client, mut rng: Rng, acks: i16, window: usize) -> Vec<Ack> {
        let mut acked = Vec::new();
        let mut open = true;
        loop {
            while open && self.unanswered.len() < window {
                let sent = self.make(&mut rng);
                open = client
                    .send_batch(TOPIC, sent.partition as i32, acks, &sent.bytes)
                    .is_ok();
            }
            match self.take_answer(&mut client) {
                Some(ack) => acked.push(ack),
                None => break,
            }
        }
        if self.id.is_none() {
            // Without an id, sending again could only make duplicates.
            self.unanswered.clear();
        }
        acked
    }

    /// Sends again what got no answer, as a client does after a reconnect.
    fn resend(&mut self, client: &mut Client, model: &mut Model) {
        for sent in &self.unanswered {
            client
                .send_batch(TOPIC, sent.partition as i32, -1, &sent.bytes)
                .expect("the broker reads");
        }
        while !self.unanswered.is_empty() {
            let ack = self.take_answer(client).expect("an answer to a batch sent again");
            model.resent += 1;
            model.note_ack(&ack);
        }
    }
}

/// Reads all partitions in turn until the connection ends; what was seen of each.
fn consume(mut client: Client, read_up_to: &[AtomicI64]) -> Vec<Seen> {
    let mut seen: Vec<Seen> = read_up_to.iter().map(|_| Seen::default()).collect();
    loop {
        for (partition, next) in read_up_to.iter().enumerate() {
            let offset = next.load(Ordering::Relaxed);
            let Ok(answer) = client.try_fetch(TOPIC, partition as i32, offset, 10) else {
                return seen;
            };
            let (records, high_watermark) =
                answer.unwrap_or_else(|e| panic!("fetch from {partition} at {offset}: {e:?}"));
            let of = &mut seen[partition];
            of.high_watermark = high_watermark;
            for record in records {
                let expected = next.load(Ordering::Relaxed);
                assert_eq!(
                    record.offset, expected,
                    "{partition}: a consumer reads one after the other"
                );
                next.store(expected + 1, Ordering::Relaxed);
                of.records.push(record);
            }
        }
    }
}

/// Commits what was read, and takes producer ids, until the connection ends.
fn commit(mut client: Client, mut committed: Vec<Committed>, read_up_to: &[AtomicI64]) -> (Vec<Committed>, Vec<i64>) {
    let mut ids = Vec::new();
    let mut turn = || -> io::Result<()> {
        for (partition, (of, next)) in committed.iter_mut().zip(read_up_to).enumerate() {
            of.tried = next.load(Ordering::Relaxed);
            let error = client.try_commit(GROUP, None, TOPIC, partition as i32, of.tried)?;
            assert_eq!(error, ErrorCode::NONE, "commit of {partition}");
            of.acknowledged = of.tried;
        }
        ids.push(client.init_producer()?);
        Ok(())
    };
    while turn().is_ok() {}
    (committed, ids)
}

/// What a consumer has seen of a partition in one round.
#[derive(Default)]
struct Seen {
    records: Vec<TestRecord>,
    high_watermark: i64,
}

/// A group's offset in a partition; −1 is none.
#[derive(Clone, Copy)]
struct Committed {
    acknowledged: i64,
    /// At least that.
    tried: i64,
}

/// What must be there.
struct Model {
    partitions: Vec<Partition>,
    ids: BTreeSet<i64>,
    acknowledged: u64,
    resent: u64,
    duplicates: u64,
}

struct Partition {
    /// A digest of each record that was read after a restart, by offset.
    log: Vec<u64>,
    /// The sequence after the last one in the log, for each producer.
    next: BTreeMap<u32, i32>,
    /// Offsets that were told and not read since: which producer's, with which sequence.
    acked: BTreeMap<i64, (u32, i32)>,
    seen: Seen,
    committed: Committed,
}

impl Default for Model {
    fn default() -> Self {
        let partitions = (0..PARTITIONS).map(|_| Partition {
            log: Vec::new(),
            next: BTreeMap::new(),
            acked: BTreeMap::new(),
            seen: Seen::default(),
            committed: Committed {
                acknowledged: -1,
                tried: -1,
            },
        });
        Self {
            partitions: partitions.collect(),
            ids: BTreeSet::new(),
            acknowledged: 0,
            resent: 0,
            duplicates: 0,
        }
    }
}

impl Model {
    fn account(&self) -> String {
        format!(
            "{} records, {} batches acknowledged, {} sent again of which {} were there, {} commits' ends, {} producer ids",
            self.partitions.iter().map(|p| p.log.len()).sum::<usize>(),
            self.acknowledged,
            self.resent,
            self.duplicates,
            self.partitions.iter().map(|p| p.committed.acknowledged).sum::<i64>(),
            self.ids.len()
        )
    }

    fn take_id(&mut self, id: i64) {
        assert!(self.ids.insert(id), "producer id {id} was given twice");
    }

    /// A batch is at this offset. What was read there already must be it.
    fn note_ack(&mut self, ack: &Ack) {
        self.acknowledged += 1;
        let of = &mut self.partitions[ack.partition];
        if (ack.offset as usize) < of.log.len() {
            self.duplicates += 1;
        }
        for n in 0..ack.count {
            let (offset, sequence) = (ack.offset + i64::from(n), ack.sequence + n);
            match of.log.get(offset as usize) {
                Some(there) => assert_eq!(
                    *there,
                    digest(&record(ack.number, ack.partition, sequence)),
                    "{}: sequence {sequence} of producer {} was told to be at {offset}",
                    ack.partition,
                    ack.number
                ),
                None => {
                    let other = of.acked.insert(offset, (ack.number, sequence));
                    assert_eq!(other, None, "{}: offset {offset} was told twice", ack.partition);
                }
            }
        }
    }

    /// Reads what came since the last time and compares it with what must be there.
    fn check(&mut self, client: &mut Client, round: u32) {
        for (partition, of) in self.partitions.iter_mut().enumerate() {
            let at = format!("round {round}, partition {partition}");
            let end = client.list_offset(TOPIC, partition as i32, -1);
            let mut seen = std::mem::take(&mut of.seen);
            assert!(
                seen.high_watermark <= end,
                "{at}: high watermark {} seen, end {end}",
                seen.high_watermark
            );
            let mut seen_records = seen.records.drain(..).peekable();
            while (of.log.len() as i64) < end {
                let offset = of.log.len() as i64;
                let (records, _) = client.fetch(TOPIC, partition as i32, offset, 0);
                assert!(!records.is_empty(), "{at}: nothing at {offset}, end {end}");
                for record in records {
                    let offset = of.log.len() as i64;
                    assert_eq!(record.offset, offset, "{at}: offset of a record");
                    let (number, sequence) = maker(partition, &record);
                    let next = of.next.entry(number).or_insert(0);
                    assert!(
                        sequence == *next || (number == PLAIN && sequence > *next),
                        "{at}: sequence {sequence} of producer {number} at {offset}, not {next}"
                    );
                    *next = sequence + 1;
                    if let Some(acked) = of.acked.remove(&offset) {
                        assert_eq!((number, sequence), acked, "{at}: acknowledged at {offset}");
                    }
                    if seen_records.peek().is_some_and(|s| s.offset <= offset) {
                        assert!(
                            seen_records.next() == Some(record.clone()),
                            "{at}: a consumer saw another record at {offset}"
                        );
                    }
                    of.log.push(digest(&record));
                }
            }
            let lost = of.acked.first_key_value();
            assert_eq!(
                lost,
                None,
                "{at}: acknowledged and lost, {} in all; the end is {end}",
                of.acked.len()
            );
            let gone = seen_records.next().map(|r| r.offset);
            assert_eq!(gone, None, "{at}: seen by a consumer and gone; the end is {end}");
            let committed = client.committed(GROUP, TOPIC, partition as i32);
            assert!(
                (of.committed.acknowledged..=of.committed.tried).contains(&committed) && committed <= end,
                "{at}: committed is {committed}, acknowledged were {}, tried {}; the end is {end}",
                of.committed.acknowledged,
                of.committed.tried
            );
            of.committed = Committed {
                acknowledged: committed,
                tried: committed,
            };
        }
    }
}
