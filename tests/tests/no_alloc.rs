//! After warm-up the real broker allocates nothing, over TLS as little as in plain: every call to an allocator in its process is counted from outside, by a preloaded
//! C library, so that Rust and C are both seen.
#![forbid(unsafe_code)]

use skerry_core::error_code::ErrorCode;
use skerry_tests::client::Client;
use skerry_tests::preload::AllocationCount;
use skerry_tests::process::{Start, TempDir};
use skerry_tests::tls::{Target, files};
use skerry_tests::wire::{self, Producer, TestRecord};

const TOPICS: [&str; 3] = ["one", "two", "three"];
const GROUP: &str = "group";

/// Clients at work, and what each round goes on from.
struct Work {
    producers: Vec<Client>,
    consumers: Vec<Client>,
    member: Client,
    member_id: String,
    generation: i32,
    producer_id: i64,
    sequence: i32,
    ends: [i64; TOPICS.len()],
    round: usize,
}

impl Work {
    fn begin(broker: Target) -> Self {
        let mut member = Client::connect(broker);
        for topic in TOPICS {
            member.create_topic(topic, 2, &[]);
        }
        let producer_id = member.init_producer().expect("a reply");
        let (member_id, generation) = member.join_alone(GROUP);
        Self {
            producers: (0..4).map(|_| Client::connect(broker)).collect(),
            consumers: TOPICS.iter().map(|_| Client::connect(broker)).collect(),
            member,
            member_id,
            generation,
            producer_id,
            sequence: 0,
            ends: [0; TOPICS.len()],
            round: 0,
        }
    }

    /// Every kind of request that goes on all day, once for each topic.
    fn round(&mut self) {
        self.round += 1;
        let bytes = if self.round.is_multiple_of(16) { 40_000 } else { 100 };
        for (n, topic) in TOPICS.into_iter().enumerate() {
            // A consumer waits at the end of the log.
            let consumer = &mut self.consumers[n];
            consumer.send_fetch(topic, 0, self.ends[n], 60_000).expect("sent");
            // Three producers send, in every way; the last one's records wake the consumer at the latest.
            let producer = &mut self.producers[self.round % 4];
            producer
                .send_batch(topic, 0, 0, &wire::batch(&records(1, bytes), None))
                .expect("sent");
            producer.produce(topic, 0, 1, &wire::batch(&records(2, bytes), None));
            let identity = Producer {
                id: self.producer_id,
                epoch: 0,
                sequence: self.sequence,
            };
            let batch = wire::batch(&records(1, bytes), Some(identity));
            if n == 0 {
                producer.produce(topic, 0, -1, &batch);
                self.sequence += 1;
            }
            producer
                .send_batch(topic, 0, -1, &wire::batch(&records(1, bytes), None))
                .expect("sent");
            producer
                .send_batch(topic, 1, -1, &wire::batch(&records(1, bytes), None))
                .expect("sent");
            for _ in 0..2 {
                producer
                    .receive_produced()
                    .expect("a reply")
                    .expect("a reply")
                    .expect("no error");
            }
            let end = self.ends[n] + if n == 0 { 5 } else { 4 };
            let mut at = self.ends[n];
            let (woken, _) = consumer.receive_fetched(at).expect("a reply").expect("no error");
            at += woken.len() as i64;
            while at < end {
                let (more, _) = consumer.fetch(topic, 0, at, 500);
                at += more.len() as i64;
            }
            assert_eq!(at, end);
            self.ends[n] = end;
            assert_eq!(consumer.list_offset(topic, 0, -1), end);
            let member = Some((self.member_id.as_str(), self.generation));
            let committed = self.member.try_commit(GROUP, member, topic, 0, end).expect("a reply");
            assert_eq!(committed, ErrorCode::NONE);
            assert_eq!(self.member.committed(GROUP, topic, 0), end);
            assert_eq!(
                self.member.heartbeat(GROUP, &self.member_id, self.generation),
                ErrorCode::NONE
            );
        }
    }
}

fn records(count: usize, bytes: usize) -> Vec<TestRecord> {
    (0..count)
        .map(|n| TestRecord {
            offset: -1,
            timestamp: 1_790_000_000_000,
            key: Some(vec![n as u8]),
            value: vec![7; bytes],
        })
        .collect()
}

/// Rounds until everything has been used once that is made at its first use: a checkpoint and a rolled segment among them.
const WARM_UP: usize = 300;
const ROUNDS: usize = 500;

fn nothing_is_allocated(settings: &[&str], is_tls: bool) {
    let dir = TempDir::new();
    let own = files::settings(dir.path());
    let settings: Vec<&str> = own.iter().map(String::as_str).chain(settings.iter().copied()).collect();
    let count = AllocationCount::build(dir.path()).expect("the counter builds");
    let data = dir.path().join("data");
    let mut start = Start::new(&data).with(&settings).counted(&count);
    start.listeners = files::LISTENERS;
    let broker = start.start();
    let mut work = Work::begin(match is_tls {
        true => Target {
            address: broker.listener("SSL"),
            is_tls,
        },
        false => broker.address.into(),
    });
    for _ in 0..WARM_UP {
        work.round();
    }
    let before = count.allocations().expect("a count");
    count.trace(true).expect("traced");
    for _ in 0..ROUNDS {
        work.round();
    }
    count.trace(false).expect("traced");
    let after = count.allocations().expect("a count");
    if after > before {
        eprintln!("{}", broker.stderr());
    }
    assert_eq!(
        after - before,
        0,
        "allocations in {ROUNDS} rounds; their backtraces stand above"
    );
    assert!(broker.stop().0.success());
}

const SMALL_FILES: [&str; 2] = ["log.segment.bytes=4000000", "skerry.checkpoint.bytes=1000000"];

#[test]
fn nothing_is_allocated_for_requests_with_io_uring() {
    let [segment, checkpoint] = SMALL_FILES;
    nothing_is_allocated(&["skerry.io_uring=auto", segment, checkpoint], false);
}

#[test]
fn nothing_is_allocated_for_requests_without_io_uring() {
    let [segment, checkpoint] = SMALL_FILES;
    nothing_is_allocated(&["skerry.io_uring=off", segment, checkpoint], false);
}

/// Produce, fetch, commit and heartbeat in records of each provider, which allocate when a key is made and not after.
#[test]
fn nothing_is_allocated_for_requests_over_tls() {
    let [segment, checkpoint] = SMALL_FILES;
    nothing_is_allocated(&["skerry.tls.provider=fast", segment, checkpoint], true);
    nothing_is_allocated(&["skerry.tls.provider=mbedtls", segment, checkpoint], true);
}
