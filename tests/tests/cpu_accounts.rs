//! The broker's accounts of its CPU time are whole: what they claim is what its thread ran.
#![forbid(unsafe_code)]

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use skerry_tests::client::Client;
use skerry_tests::process::{METRICS, PATIENCE, Skerry, Start, TempDir};
use skerry_tests::tls::{Target, files};
use skerry_tests::wire::{self, TestRecord};

/// CPU time over which it is looked at: enough that the few microseconds between two clocks do not count.
const CPU_SECONDS: f64 = 1.0;
/// What may be in no account.
const UNCLAIMED_MAX: f64 = 0.02;

/// CPU seconds: of the thread by the kernel, by the broker, and of its accounts.
#[derive(Clone, Copy, Debug)]
struct Seconds {
    kernel: f64,
    thread: f64,
    connections: f64,
    handshakes: f64,
    chores: f64,
    unclaimed: f64,
}

impl Seconds {
    fn of(broker: &Skerry) -> Self {
        // The main thread's, in nanoseconds, is the first number (Documentation/scheduler/sched-stats.rst).
        let pid = broker.pid();
        let stat = fs::read_to_string(format!("/proc/{pid}/task/{pid}/schedstat")).expect("the kernel counts");
        let nanos: f64 = stat.split(' ').next().expect("a number").parse().expect("a number");
        let page = broker.page();
        let sum = |series: &str| -> f64 {
            let lines = page.lines().filter(|line| line.starts_with(series));
            let values: Vec<f64> = lines.filter_map(|line| line.rsplit(' ').next()?.parse().ok()).collect();
            assert!(!values.is_empty(), "no {series} in\n{page}");
            values.iter().sum()
        };
        Self {
            kernel: nanos / 1e9,
            thread: sum("skerry_thread_cpu_seconds_total"),
            connections: sum("skerry_connection_cpu_seconds_total{"),
            handshakes: sum("skerry_connection_cpu_seconds_total{phase=\"handshake\"}"),
            chores: sum("skerry_overhead_cpu_seconds_total{"),
            unclaimed: sum("skerry_unclaimed_cpu_seconds_total"),
        }
    }

    fn since(self, earlier: Self) -> Self {
        Self {
            kernel: self.kernel - earlier.kernel,
            thread: self.thread - earlier.thread,
            connections: self.connections - earlier.connections,
            handshakes: self.handshakes - earlier.handshakes,
            chores: self.chores - earlier.chores,
            unclaimed: self.unclaimed - earlier.unclaimed,
        }
    }
}

/// Produces and fetches on one connection until told to stop.
fn use_it(target: Target, topic: &str, stop: &AtomicBool) {
    let mut client = Client::connect(target);
    let record = TestRecord {
        offset: 0,
        timestamp: 1,
        key: None,
        value: b"a record of no great length".to_vec(),
    };
    let batch = wire::batch(&[record], None);
    while !stop.load(Ordering::Relaxed) {
        client.produce(topic, 0, 1, &batch);
        let end = client.list_offset(topic, 0, -1);
        client.fetch(topic, 0, end - 1, 0);
    }
}

/// Connects and goes away until told to stop.
fn come_and_go(target: Target, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        drop(Client::connect(target));
    }
}

/// Goal: the CPU time of connections and of the loop, as the page tells it, is the thread's. Method: clients in plain and over TLS, some that stay
/// and some that only shake hands; the accounts against the thread's clock as the broker reads it, and as the kernel tells it from outside.
#[test]
fn the_accounts_are_whole() {
    let dir = TempDir::new();
    let mut settings = files::settings(dir.path());
    settings.push(METRICS.into());
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let data = dir.path().join("data");
    let mut start = Start::new(&data).with(&settings);
    start.listeners = files::LISTENERS;
    let broker = start.start();
    let target = |is_tls: bool| Target {
        address: broker.listener(if is_tls { "SSL" } else { "PLAINTEXT" }),
        is_tls,
    };
    Client::connect(target(false)).create_topic("used", 1, &[]);
    let before = Seconds::of(&broker);
    let stop = AtomicBool::new(false);
    let spent = thread::scope(|scope| {
        for is_tls in [false, true, true] {
            let (target, stop) = (target(is_tls), &stop);
            scope.spawn(move || use_it(target, "used", stop));
        }
        for is_tls in [false, true] {
            let (target, stop) = (target(is_tls), &stop);
            scope.spawn(move || come_and_go(target, stop));
        }
        let until = Instant::now() + PATIENCE;
        let spent = loop {
            thread::sleep(Duration::from_millis(100));
            let spent = Seconds::of(&broker).since(before);
            if spent.kernel > CPU_SECONDS || Instant::now() > until {
                break spent;
            }
        };
        stop.store(true, Ordering::Relaxed);
        spent
    });
    println!("{spent:#?}");
    let claimed = spent.connections + spent.chores;
    for whole in [spent.thread, spent.kernel] {
        assert!(
            (claimed - whole).abs() < whole * UNCLAIMED_MAX,
            "{claimed} of {whole}: {spent:?}"
        );
    }
    assert!(spent.unclaimed < spent.thread * UNCLAIMED_MAX, "{spent:?}");
    assert!(
        spent.handshakes > 0.0 && spent.connections > spent.handshakes && spent.chores > 0.0,
        "{spent:?}"
    );
    assert!(broker.stop().0.success());
}
