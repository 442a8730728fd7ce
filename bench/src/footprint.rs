//! `skerry-bench footprint`: what Skerry takes while it does nothing.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{Advice, fadvise};
use skerry_core::api::join_group::{JoinGroupRequest, JoinGroupRequestProtocol};
use skerry_core::api::{ApiKey, HeartbeatRequest, HeartbeatResponse, SyncGroupRequest};
use skerry_core::error_code::ErrorCode;
use skerry_core::wire::Array;
use skerry_tests::client::{Client, reply};
use skerry_tests::preload::AllocationCount;
use skerry_tests::process::{Skerry, Start, TempDir};
use skerry_tests::tls::{Channel, Target, files};
use skerry_tests::wire;

use crate::broker::{Consumer, Engine, Pace, Plan, Producer, Script, Shape, Work};
use crate::machine::Machine;
use crate::process::Memory;
use crate::report::{Cell, Column, Report, Section, column};
use crate::server::{Server, binary, greet, start};

/// What to measure, and how.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// The `skerry` binary [default: a release build]
    #[arg(long, value_name = "PATH")]
    pub skerry: Option<PathBuf>,
    /// Seconds over which idle CPU time is taken
    #[arg(long, value_name = "N", default_value_t = 60.0)]
    pub seconds: f64,
    /// Starts of each kind
    #[arg(long, value_name = "N", default_value_t = 7)]
    pub starts: usize,
    /// Bytes of log that starts with a log find
    #[arg(long, value_name = "N", default_value_t = 1_000_000_000)]
    pub log_bytes: u64,
    /// Memory only
    #[arg(long)]
    pub memory: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Write the report to PATH.json and PATH.md too
    #[arg(long, value_name = "PATH")]
    pub save: Option<PathBuf>,
}

const COLUMNS: &[Column] = &[
    column("figure", "figure"),
    column("value", "value"),
    column("worst", "worst"),
    column("unit", "unit"),
];

/// Consumers that wait for records that do not come.
const CONSUMERS: i32 = 10;
/// Connections that were greeted and then do nothing.
const CONNECTIONS: usize = 100;
/// Partitions of the log that starts find.
const PARTITIONS: i32 = 4;
/// Bytes written to each partition before each kill, about half of what a checkpoint covers.
const TAIL_BYTES: u64 = 8 << 20;

const TOPIC: &str = "bench";
const SHAPE: Shape = Shape {
    name: "1KB",
    value_bytes: 1024,
    batch_bytes: 16_384,
};

struct Figures(Vec<Vec<Cell>>);

impl Figures {
    fn add(&mut self, name: &str, value: f64, unit: &str) {
        eprintln!("{name}");
        self.0.push(vec![name.into(), value.into(), Cell::None, unit.into()]);
    }

    /// The median and the worst.
    fn add_times(&mut self, name: &str, mut times: Vec<Duration>) {
        eprintln!("{name}");
        times.sort_unstable();
        let millis = |at: usize| times.get(at).map(|time| time.as_secs_f64() * 1e3);
        let worst = millis(times.len().saturating_sub(1));
        self.0.push(vec![
            name.into(),
            millis(times.len() / 2).into(),
            worst.into(),
            "ms".into(),
        ]);
    }
}

/// Measures all of it.
///
/// Errors: a tool or the broker fails.
pub fn run(args: &Args) -> Result<(), String> {
    let machine = Machine::here();
    let binary = binary(args.skerry.as_deref());
    let mut figures = Figures(Vec::new());
    sizes(&binary, &mut figures)?;
    memory(&binary, &mut figures)?;
    tls_memory(&binary, &mut figures)?;
    tls_heap(&binary, &mut figures)?;
    if !args.memory {
        starts(args, &binary, &mut figures)?;
        idle(args, &binary, &mut figures)?;
    }
    let report = Report {
        machine,
        about: vec![(
            "starts",
            format!(
                "from before the process is made to its first ApiVersions answer, median and worst of {}; cold: no page of the log in memory; \
                 killed: by SIGKILL, each time after {} MiB more",
                args.starts,
                (PARTITIONS as u64 * TAIL_BYTES) >> 20
            ),
        )],
        sections: vec![Section {
            name: "Footprint".into(),
            columns: COLUMNS,
            rows: figures.0,
        }],
    };
    report.print(args.json);
    match &args.save {
        Some(path) => report.save(path),
        None => Ok(()),
    }
}

const MIB: f64 = (1 << 20) as f64;

fn sizes(binary: &Path, figures: &mut Figures) -> Result<(), String> {
    let directory = TempDir::new();
    let stripped = directory.path().join("skerry");
    let strip = Command::new("strip").arg("-o").arg(&stripped).arg(binary).status();
    if !strip.map_err(|e| format!("strip (of binutils): {e}"))?.success() {
        return Err(format!("strip cannot read {}", binary.display()));
    }
    let bytes = fs::metadata(&stripped).map_err(|e| e.to_string())?.len();
    figures.add("binary, stripped", bytes as f64 / MIB, "MiB");

    let data = TempDir::new();
    let skerry = start(binary, data.path(), &[]);
    figures.add("data directory, empty", disk_bytes(data.path())? as f64 / 1024.0, "KiB");
    stop(skerry)
}

/// Bytes that a directory and all in it take on the disk.
fn disk_bytes(directory: &Path) -> Result<u64, String> {
    let mut bytes = 0;
    each_file(directory, &mut |path| {
        bytes += fs::metadata(path).map_or(0, |meta| meta.blocks() * 512);
    })?;
    Ok(bytes)
}

/// Calls `each` with every file and directory in `directory`.
fn each_file(directory: &Path, each: &mut dyn FnMut(&Path)) -> Result<(), String> {
    let entries = fs::read_dir(directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    for entry in entries.flatten() {
        let path = entry.path();
        each(&path);
        if path.is_dir() {
            each_file(&path, each)?;
        }
    }
    Ok(())
}

fn stop(skerry: Skerry) -> Result<(), String> {
    let (status, stderr) = skerry.stop();
    if status.success() {
        Ok(())
    } else {
        Err(format!("skerry ended with {status}:\n{stderr}"))
    }
}

/// Connections over TLS that shook hands and then do nothing.
const TLS_CONNECTIONS: usize = 1000;

/// What idle TLS connections take. The client keeps their sockets only: an end for each would be more than the broker has.
fn tls_memory(binary: &Path, figures: &mut Figures) -> Result<(), String> {
    let server = Server::start_with_tls(binary, &["max.connections=1100", "skerry.tls.penalty.max.ms=0"], None)?;
    let pid = server.pid.unwrap_or_default();
    let target = server.target(true)?;
    let connect = || Channel::connect(target).map_err(|e| format!("{}: {e}", target.address));
    let settled = || {
        thread::sleep(Duration::from_millis(500));
        Memory::of(pid).map_err(|e| e.to_string())
    };
    // As many at once as there will be: what the kernel and the allocator keep for good is not an idle connection's.
    let (mut sockets, mut idle) = (Vec::new(), None);
    for count in [HANDSHAKES_AT_ONCE, TLS_CONNECTIONS] {
        for _ in 0..count {
            sockets.push(connect()?.stream);
        }
        idle.get_or_insert(settled()?);
    }
    let connected = settled()?;
    let each = |of: fn(&Memory) -> u64| {
        let grown = idle.as_ref().map_or(0, |idle| of(&connected).saturating_sub(of(idle)));
        grown as f64 / 1024.0 / TLS_CONNECTIONS as f64
    };
    figures.add(
        "a connection more, over TLS, 1,000 idle",
        each(|memory| memory.resident),
        "KiB",
    );
    Ok(())
}

/// Connections after which everything has been used once.
const HANDSHAKES_AT_ONCE: usize = 50;

/// The heap's part of it, as the allocator rounds it: counted by a library that is loaded before the C library.
fn tls_heap(binary: &Path, figures: &mut Figures) -> Result<(), String> {
    let directory = TempDir::new();
    let count = AllocationCount::build(directory.path()).map_err(|e| format!("the allocation counter: {e}"))?;
    let own = files::settings(directory.path());
    let settings: Vec<&str> = own.iter().map(String::as_str).chain(["max.connections=1100"]).collect();
    let data = directory.path().join("data");
    let mut start = Start::new(&data).with(&settings).counted(&count);
    start.binary = Some(binary);
    start.listeners = files::LISTENERS;
    let skerry = start.start();
    let target = Target {
        address: skerry.listener("SSL"),
        is_tls: true,
    };
    let (mut sockets, mut live) = (Vec::new(), Vec::new());
    for connections in [HANDSHAKES_AT_ONCE, TLS_CONNECTIONS] {
        for _ in 0..connections {
            sockets.push(Channel::connect(target).map_err(|e| e.to_string())?.stream);
        }
        thread::sleep(Duration::from_millis(200));
        live.push(count.live_bytes().map_err(|e| e.to_string())?);
    }
    if let [idle, connected] = live[..] {
        let each = connected.saturating_sub(idle) as f64 / 1024.0 / TLS_CONNECTIONS as f64;
        figures.add("of it TLS keys on the heap", each, "KiB");
    }
    stop(skerry)
}

fn memory(binary: &Path, figures: &mut Figures) -> Result<(), String> {
    let server = Server::start(binary, &[], None)?;
    let pid = server.pid.unwrap_or_default();
    greet(&mut server.connect()?);
    let settled = || {
        thread::sleep(Duration::from_millis(500));
        Memory::of(pid).map_err(|e| e.to_string())
    };
    let idle = settled()?;
    let mut connections = Vec::with_capacity(CONNECTIONS);
    for _ in 0..CONNECTIONS {
        connections.push(server.connect()?);
    }
    connections.iter_mut().for_each(greet);
    let connected = settled()?;
    figures.add("resident, idle", idle.resident as f64 / MIB, "MiB");
    figures.add("of it the process's own", idle.anonymous as f64 / MIB, "MiB");
    figures.add("resident, 100 idle connections", connected.resident as f64 / MIB, "MiB");
    let each = connected.resident.saturating_sub(idle.resident) / CONNECTIONS as u64;
    figures.add("a connection more", each as f64 / 1024.0, "KiB");
    Ok(())
}

/// From before the process is made to its first answer, and the process.
fn time_start(binary: &Path, data: &Path) -> (Duration, Skerry) {
    let begun = Instant::now();
    let skerry = start(binary, data, &[]);
    greet(&mut Client::connect(skerry.address));
    (begun.elapsed(), skerry)
}

fn starts(args: &Args, binary: &Path, figures: &mut Figures) -> Result<(), String> {
    let mut times = Vec::new();
    for _ in 0..args.starts {
        let data = TempDir::new();
        let (time, skerry) = time_start(binary, data.path());
        times.push(time);
        stop(skerry)?;
    }
    figures.add_times("start, empty directory", times);

    let data = TempDir::new();
    let skerry = start(binary, data.path(), &[]);
    Server::running(&skerry.address.to_string(), None, None)?.create_topic(TOPIC, PARTITIONS)?;
    fill(&skerry, args.log_bytes)?;
    stop(skerry)?;
    for cold in [false, true] {
        let mut times = Vec::new();
        for _ in 0..args.starts {
            if cold {
                forget(data.path())?;
            }
            let (time, skerry) = time_start(binary, data.path());
            times.push(time);
            stop(skerry)?;
        }
        let name = format!(
            "start, {} of log{}",
            bytes(args.log_bytes),
            if cold { ", cold" } else { "" }
        );
        figures.add_times(&name, times);
    }
    let mut times = Vec::new();
    let mut skerry = start(binary, data.path(), &[]);
    for _ in 0..args.starts {
        fill(&skerry, PARTITIONS as u64 * TAIL_BYTES)?;
        skerry.kill();
        let started = time_start(binary, data.path());
        times.push(started.0);
        skerry = started.1;
    }
    figures.add_times(&format!("start, {} of log, killed", bytes(args.log_bytes)), times);
    stop(skerry)
}

fn bytes(count: u64) -> String {
    format!("{} MB", count / 1_000_000)
}

/// Appends about so many bytes, evenly.
fn fill(skerry: &Skerry, bytes: u64) -> Result<(), String> {
    let batch = SHAPE.batch();
    let scripts = (0..PARTITIONS).map(|p| Producer::new(TOPIC, p, 1, &batch)).collect();
    let plan = Plan {
        pace: Pace::Closed,
        in_flight: 5,
        time: Duration::from_secs(600),
        bytes_max: bytes,
    };
    Engine::connect(skerry.address, scripts, None)?.run(&plan)?;
    Ok(())
}

/// Takes every page of the files in `directory` out of memory.
fn forget(directory: &Path) -> Result<(), String> {
    let mut failed = None;
    each_file(directory, &mut |path| {
        let dropped = fs::File::open(path).and_then(|file| {
            file.sync_all()?;
            Ok(fadvise(&file, 0, None, Advice::DontNeed)?)
        });
        if let Err(e) = dropped
            && !path.is_dir()
        {
            failed = Some(format!("{}: {e}", path.display()));
        }
    })?;
    failed.map_or(Ok(()), Err)
}

/// Consumers as clients have them by default: each fetches with a wait of half a second, and sends its group a heartbeat every three
/// seconds on another connection.
fn idle(args: &Args, binary: &Path, figures: &mut Figures) -> Result<(), String> {
    let server = Server::start(binary, &["group.initial.rebalance.delay.ms=0"], None)?;
    let pid = server.pid.unwrap_or_default();
    server.create_topic(TOPIC, CONSUMERS)?;
    let fetches = (0..CONSUMERS)
        .map(|p| Consumer::new(TOPIC, p, 500, &SHAPE.batch()))
        .collect();
    let mut members = Vec::new();
    for n in 0..CONSUMERS {
        members.push(Member::join(&server, &format!("group-{n}"))?);
    }
    let address = server.address;
    let plan = Plan {
        pace: Pace::Closed,
        in_flight: 1,
        time: Duration::from_secs_f64(args.seconds),
        bytes_max: u64::MAX,
    };
    let beats = Plan {
        pace: Pace::Open(f64::from(CONSUMERS) / 3.0),
        ..plan
    };
    let woken = wakeups(pid)?;
    let (fetched, beaten) = thread::scope(|scope| {
        let beating = scope.spawn(move || Engine::connect(address, members, None)?.run(&beats));
        let fetched = Engine::connect(address, fetches, Some(pid)).and_then(|mut engine| engine.run(&plan));
        (
            fetched,
            beating.join().unwrap_or_else(|_| Err("heartbeats failed".into())),
        )
    });
    let (fetched, beaten) = (fetched?, beaten?);
    let woken = wakeups(pid)? - woken;
    figures.add(
        "CPU, 10 parked consumers",
        fetched.server.all() / fetched.seconds * 100.0,
        "% of a core",
    );
    figures.add(
        "their requests",
        (fetched.requests + beaten.requests) as f64 / fetched.seconds,
        "/s",
    );
    figures.add("wake-ups", woken as f64 / fetched.seconds, "/s");
    Ok(())
}

/// How often the main thread of a process has slept so far.
fn wakeups(pid: u32) -> Result<u64, String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).map_err(|e| e.to_string())?;
    let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok())
        .ok_or_else(|| "no voluntary_ctxt_switches in its status".into())
}

const JOIN: i16 = 3;
const SYNC: i16 = 3;
const HEARTBEAT: i16 = 3;

/// The only member of a group, in its heartbeats.
struct Member {
    group: String,
    id: String,
    generation: i32,
    frame: Vec<u8>,
}

impl Member {
    fn join(server: &Server, group: &str) -> Result<Self, String> {
        let mut client = server.connect()?;
        let protocols = [JoinGroupRequestProtocol {
            name: "range",
            metadata: &[],
        }];
        let request = JoinGroupRequest {
            group_id: group,
            session_timeout_ms: 45_000,
            rebalance_timeout_ms: 60_000,
            protocol_type: "consumer",
            protocols: Array::Slice(&protocols),
            ..JoinGroupRequest::default()
        };
        let frame = client.call(JOIN, &request);
        let joined = reply::<JoinGroupRequest<'_>>(JOIN, &frame);
        refused("join", joined.error_code)?;
        let request = SyncGroupRequest {
            group_id: group,
            generation_id: joined.generation_id,
            member_id: joined.member_id,
            ..SyncGroupRequest::default()
        };
        let frame = client.call(SYNC, &request);
        refused("sync", reply::<SyncGroupRequest<'_>>(SYNC, &frame).error_code)?;
        Ok(Self {
            group: group.into(),
            id: joined.member_id.into(),
            generation: joined.generation_id,
            frame: Vec::new(),
        })
    }
}

impl Script for Member {
    fn begin(&mut self, correlation_id: i32) {
        let request = HeartbeatRequest {
            group_id: &self.group,
            generation_id: self.generation,
            member_id: &self.id,
            group_instance_id: None,
        };
        self.frame = wire::request(&request, HEARTBEAT, correlation_id);
    }

    fn frame(&self) -> &[u8] {
        &self.frame
    }

    fn answer(&mut self, frame: &[u8]) -> Result<Work, String> {
        let answer: HeartbeatResponse = wire::reply(ApiKey::Heartbeat, HEARTBEAT, frame);
        refused("heartbeat", answer.error_code)?;
        Ok(Work::default())
    }
}

fn refused(what: &str, error: ErrorCode) -> Result<(), String> {
    if error == ErrorCode::NONE {
        return Ok(());
    }
    Err(format!("{what} was refused: {error:?}"))
}
