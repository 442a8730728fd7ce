//! `skerry-bench broker`: what a broker does under load, and what that costs it.
//!
//! Each case first runs closed, which finds its throughput, then open at half of that, which finds its latencies. Skerry is started
//! anew for each case on an empty directory. Server and load have a processor each, where there are two.

mod engine;
mod script;

use std::path::PathBuf;
use std::time::Duration;

pub use engine::{Engine, Pace, Plan, Run, Script, Work};
pub use script::{Batch, Consumer, Producer, Shape};

use crate::machine::Machine;
use crate::process::{self, Memory};
use crate::report::{Cell, Column, Report, Section, column};
use crate::server::{Server, binary};
use skerry_tests::tls::Target;

/// What to measure, and how.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// The `skerry` binary [default: a release build]
    #[arg(long, value_name = "PATH")]
    pub skerry: Option<PathBuf>,
    /// Measure this broker instead of starting one; cases with a slowed flush are left out
    #[arg(long, value_name = "HOST:PORT")]
    pub against: Option<String>,
    /// The process of that broker, to know what it costs
    #[arg(long, value_name = "PID", requires = "against")]
    pub pid: Option<u32>,
    /// Measure each case over TLS too, beside plaintext; with --against, where that broker listens over TLS
    #[arg(long, value_name = "HOST:PORT", num_args = 0..=1)]
    pub tls: Option<Option<String>>,
    /// Settings of the started broker, as `skerry run` takes them
    #[arg(long = "override", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    /// Only cases whose name contains this, such as `produce/1KB` or `flush=20ms`
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub only: String,
    /// Seconds of each run
    #[arg(long, value_name = "N", default_value_t = 5.0)]
    pub seconds: f64,
    /// Bytes after which a run ends early, so that the disk's own speed does not become what is measured
    #[arg(long, value_name = "N", default_value_t = 3 << 30)]
    pub bytes_max: u64,
    /// Connections, each to a partition of its own
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub connections: usize,
    /// Produce requests under way on each connection (Kafka's max.in.flight.requests.per.connection)
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub in_flight: usize,
    /// Pin a started broker to this processor, the load to the next one; −1 pins nothing
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    pub processor: i64,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Write the report to PATH.json and PATH.md too
    #[arg(long, value_name = "PATH")]
    pub save: Option<PathBuf>,
}

/// Bytes of a batch, where more than one record fits: Kafka's `batch.size`.
const BATCH_BYTES: usize = 16_384;

/// What is sent: batches of 16 KiB of small records, a large record, a small one alone.
pub const SHAPES: [Shape; 4] = [
    shape("100B", 100, BATCH_BYTES),
    shape("1KB", 1024, BATCH_BYTES),
    shape("100KB", 102_400, BATCH_BYTES),
    shape("1x100B", 100, 0),
];

const fn shape(name: &'static str, value_bytes: usize, batch_bytes: usize) -> Shape {
    Shape {
        name,
        value_bytes,
        batch_bytes,
    }
}

/// Bytes that are there to be fetched.
const FETCHED_BYTES: u64 = 256 << 20;

/// The slow flush of those cases that have one.
const SLOW_FLUSH: &str = "skerry.test.flush.delay.ms=20";

/// One thing to measure.
#[derive(Clone, Debug)]
struct Case {
    name: String,
    shape: Shape,
    what: What,
    slow: bool,
    is_tls: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Produce { acks: i16 },
    Fetch,
}

fn cases(with_tls: bool) -> Vec<Case> {
    let mut out = Vec::new();
    let mut push = |case: Case| {
        let over_tls = Case {
            name: format!("{}/tls", case.name),
            is_tls: true,
            ..case.clone()
        };
        out.push(case);
        out.extend(with_tls.then_some(over_tls));
    };
    for slow in [false, true] {
        for (acks, word) in [(-1, "all"), (1, "1")] {
            for shape in SHAPES {
                let flush = if slow { "/flush=20ms" } else { "" };
                push(Case {
                    name: format!("produce/{}/acks={word}{flush}", shape.name),
                    shape,
                    what: What::Produce { acks },
                    slow,
                    is_tls: false,
                });
            }
        }
    }
    for shape in SHAPES.into_iter().take(3) {
        push(Case {
            name: format!("fetch/{}", shape.name),
            shape,
            what: What::Fetch,
            slow: false,
            is_tls: false,
        });
    }
    out
}

/// Measures every case that is asked for.
///
/// Errors: the broker cannot be started or reached, or refuses.
pub fn run(args: &Args) -> Result<(), String> {
    let machine = Machine::here();
    let program = match args.against {
        None => Some(binary(args.skerry.as_deref())),
        Some(_) => None,
    };
    let processor = usize::try_from(args.processor).ok();
    if let Some(processor) = processor {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let own = (processor + 1) % cores;
        process::pin(std::process::id(), own).map_err(|e| format!("cannot pin to processor {own}: {e}"))?;
    }
    let mut section = Section {
        name: "Throughput, latency at half of it, cost".into(),
        columns: COLUMNS,
        rows: Vec::new(),
    };
    let mut ratios = Section {
        name: "TLS against plaintext".into(),
        columns: RATIOS,
        rows: Vec::new(),
    };
    let mut plain: Option<Runs> = None;
    for case in cases(args.tls.is_some()) {
        if !case.name.contains(&args.only) || (case.slow && args.against.is_some()) {
            continue;
        }
        eprintln!("{}", case.name);
        let server = match (&program, &args.against) {
            (Some(program), _) => {
                let slow = case.slow.then_some(SLOW_FLUSH);
                let overrides: Vec<&str> = args.overrides.iter().map(String::as_str).chain(slow).collect();
                match args.tls {
                    Some(_) => Server::start_with_tls(program, &overrides, processor)?,
                    None => Server::start(program, &overrides, processor)?,
                }
            }
            (None, against) => {
                let tls = args.tls.as_ref().and_then(Option::as_deref);
                Server::running(against.as_deref().unwrap_or_default(), tls, args.pid)?
            }
        };
        let (row, runs) = measure(args, &case, &server)?;
        section.rows.push(row);
        match (case.is_tls, &plain) {
            (true, Some(plain)) => ratios.rows.push(ratio(&case, plain, &runs)),
            _ => plain = Some(runs),
        }
    }
    let report = Report {
        machine,
        about: about(args),
        sections: if ratios.rows.is_empty() {
            vec![section]
        } else {
            vec![section, ratios]
        },
    };
    report.print(args.json);
    match &args.save {
        Some(path) => report.save(path),
        None => Ok(()),
    }
}

fn about(args: &Args) -> Vec<(&'static str, String)> {
    let broker = match &args.against {
        Some(address) => format!("at {address}"),
        None => "Skerry, started anew for each case".into(),
    };
    let load = format!(
        "{} connections to a partition each, {} produce requests or one fetch (of up to 1 MiB) under way on each; batches of 16 KiB, but 1x100B and \
         100KB of one record",
        args.connections, args.in_flight
    );
    vec![
        ("broker", broker),
        ("load", load),
        (
            "units",
            "MB are 10^6 bytes of record batches; CPU time is the server process's, user and system".into(),
        ),
    ]
}

const COLUMNS: &[Column] = &[
    column("case", "case"),
    column("requests_per_second", "requests/s"),
    column("records_per_second", "records/s"),
    column("mb_per_second", "MB/s"),
    column("cpu_us_per_request", "CPU µs/request"),
    column("cpu_us_per_mb", "CPU µs/MB"),
    column("workers_us_per_request", "of it kernel workers"),
    column("load_cpu_percent", "load's CPU %"),
    column("half_requests_per_second", "half: requests/s"),
    column("p50_ms", "p50 ms"),
    column("p99_ms", "p99 ms"),
    column("p999_ms", "p99.9 ms"),
    column("half_cpu_us_per_request", "CPU µs/request"),
    column("half_cpu_us_per_mb", "CPU µs/MB"),
    column("resident_mib", "RSS MiB"),
    column("written_per_byte", "disk bytes/byte"),
];

const RATIOS: &[Column] = &[
    column("case", "case"),
    column("throughput_ratio", "throughput ×"),
    column("cpu_ratio", "CPU per MB ×"),
    column("half_cpu_ratio", "half: CPU per MB ×"),
    column("p99_ratio", "p99 ×"),
];

/// What a case over TLS is of the same in plaintext, which ran just before.
fn ratio(case: &Case, plain: &Runs, tls: &Runs) -> Vec<Cell> {
    let of = |value: fn(&Run) -> f64, run: fn(&Runs) -> &Run| value(run(tls)) / value(run(plain));
    let cpu = |run: &Run| run.server.all() / run.work.bytes as f64;
    let p99 = |run: &Run| run.quantile(0.99).unwrap_or_default().as_secs_f64();
    vec![
        case.name.as_str().into(),
        of(|run| run.requests as f64 / run.seconds, |runs| &runs.closed).into(),
        of(cpu, |runs| &runs.closed).into(),
        of(cpu, |runs| &runs.half).into(),
        of(p99, |runs| &runs.half).into(),
    ]
}

fn measure(args: &Args, case: &Case, server: &Server) -> Result<(Vec<Cell>, Runs), String> {
    let target = server.target(case.is_tls)?;
    let partitions = i32::try_from(args.connections).map_err(|_| "too many connections")?;
    let topic = format!("bench-{}-{}", std::process::id(), case.name.replace(['/', '='], "-"));
    server.create_topic(&topic, partitions)?;
    let batch = case.shape.batch();
    let written = server.pid.map_or(Ok(0), process::written_bytes);
    let runs = match case.what {
        What::Produce { acks } => {
            let scripts = (0..partitions)
                .map(|p| Producer::new(&topic, p, acks, &batch))
                .collect();
            both(args, server, target, scripts, args.in_flight)?
        }
        What::Fetch => {
            let scripts = (0..partitions).map(|p| Producer::new(&topic, p, -1, &batch)).collect();
            let fill = Plan {
                pace: Pace::Closed,
                in_flight: args.in_flight,
                time: Duration::from_secs(60),
                bytes_max: FETCHED_BYTES,
            };
            Engine::connect(server.address, scripts, None)?.run(&fill)?;
            let scripts = (0..partitions).map(|p| Consumer::new(&topic, p, 500, &batch)).collect();
            both(args, server, target, scripts, 1)?
        }
    };
    let resident = server.pid.and_then(|pid| Memory::of(pid).ok());
    let wrote = match (server.pid.map(process::written_bytes), written) {
        (Some(Ok(now)), Ok(before)) => Some((now - before) as f64 / runs.bytes as f64),
        _ => None,
    };
    if !server.is_ours() {
        server.delete_topic(&topic)?;
    }
    Ok((row(case, &runs, server.pid.is_some(), resident, wrote), runs))
}

struct Runs {
    closed: Run,
    half: Run,
    /// Bytes of every run, the warm-up included.
    bytes: u64,
}

fn both<S: Script>(
    args: &Args,
    server: &Server,
    target: Target,
    scripts: Vec<S>,
    in_flight: usize,
) -> Result<Runs, String> {
    let mut engine = Engine::connect(target, scripts, server.pid)?;
    let time = Duration::from_secs_f64(args.seconds);
    let plan = |pace, time| Plan {
        pace,
        in_flight,
        time,
        bytes_max: args.bytes_max,
    };
    let warm = engine.run(&plan(Pace::Closed, time.div_f64(5.0)))?;
    let closed = engine.run(&plan(Pace::Closed, time))?;
    let rate = closed.requests as f64 / closed.seconds / 2.0;
    let half = engine.run(&plan(Pace::Open(rate), time))?;
    Ok(Runs {
        bytes: warm.work.bytes + closed.work.bytes + half.work.bytes,
        closed,
        half,
    })
}

fn row(case: &Case, runs: &Runs, known: bool, memory: Option<Memory>, wrote: Option<f64>) -> Vec<Cell> {
    let Runs { closed, half, .. } = runs;
    let micros = |seconds: f64, count: f64| known.then(|| seconds * 1e6 / count);
    let millis = |share| half.quantile(share).map(|l| l.as_secs_f64() * 1e3);
    let mb = |run: &Run| run.work.bytes as f64 / 1e6;
    vec![
        case.name.as_str().into(),
        (closed.requests as f64 / closed.seconds).into(),
        (closed.work.records as f64 / closed.seconds).into(),
        (mb(closed) / closed.seconds).into(),
        micros(closed.server.all(), closed.requests as f64).into(),
        micros(closed.server.all(), mb(closed)).into(),
        micros(closed.server.workers, closed.requests as f64).into(),
        (closed.load / closed.seconds * 100.0).into(),
        (half.requests as f64 / half.seconds).into(),
        millis(0.5).into(),
        millis(0.99).into(),
        millis(0.999).into(),
        micros(half.server.all(), half.requests as f64).into(),
        micros(half.server.all(), mb(half)).into(),
        memory.map(|m| m.resident as f64 / f64::from(1 << 20)).into(),
        wrote.filter(|_| matches!(case.what, What::Produce { .. })).into(),
    ]
}
