//! `skerry-bench storm`: what handshakes that fail cost the broker, and what its well-behaved clients feel of them.
//!
//! The broker has a processor of its own; the storm and the producers share the other. *Quiet* is the same storm against a sink on that other
//! processor, so that the producers lose as much of it then.

mod kinds;
mod load;

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

pub use load::{LoadArgs, run as run_load};

use crate::broker::{Engine, Pace, Plan, Producer, Run, SHAPES};
use crate::handshake::{Key, Kind, Shape, Times, Visitor, batch, knock};
use crate::machine::Machine;
use crate::process;
use crate::report::{Cell, Column, Report, Section, column};
use crate::server::{Server, binary};
use kinds::{Failure, NOTHING, failures};
use load::Running;
use skerry_tls::suite::Version;

/// What to measure, and how.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// The `skerry` binary [default: a release build]
    #[arg(long, value_name = "PATH")]
    pub skerry: Option<PathBuf>,
    /// Only failures whose name contains this
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub only: String,
    /// Connections of the storm
    #[arg(long, value_name = "N", default_value_t = 500)]
    pub connections: usize,
    /// Producers, each with a TLS connection and a partition of its own
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub producers: usize,
    /// Requests of all producers together, a second
    #[arg(long, value_name = "N", default_value_t = 1000.0)]
    pub rate: f64,
    /// Seconds of each run
    #[arg(long, value_name = "N", default_value_t = 2.0)]
    pub seconds: f64,
    /// Runs in the storm and in quiet, by turns; of their latencies the medians are told
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub repeats: usize,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Write the report to PATH.json and PATH.md too
    #[arg(long, value_name = "PATH")]
    pub save: Option<PathBuf>,
}

const COLUMNS: &[Column] = &[
    column("failure", "failure"),
    column("reaches_keys", "reaches keys"),
    column("failed_per_second", "failed/s"),
    column("broker_cpu_percent", "broker's CPU %"),
    column("cpu_us", "CPU µs each"),
    column("net_us", "net of a connection"),
    column("of_full", "of a full handshake"),
    column("quiet_p99_ms", "producers' p99 ms, quiet"),
    column("p99_ms", "in the storm"),
    column("p99_ratio", "×"),
];

/// Handshakes and connections for what they are compared with, in batches.
const REFERENCE_BATCHES: usize = 20;

/// Measures every failure, first with each one costing its peer nothing, then with the broker as it is delivered.
///
/// Errors: the broker cannot be started, or refuses a producer.
pub fn run(args: &Args) -> Result<(), String> {
    let machine = Machine::here();
    let binary = binary(args.skerry.as_deref());
    let own = |e| format!("cannot pin to processor 1: {e}");
    let failures: Vec<Failure> = failures()?
        .into_iter()
        .filter(|failure| failure.name.contains(&args.only) || failure.name == NOTHING)
        .collect();
    let mut sections = Vec::new();
    let mut about = Vec::new();
    for (name, overrides) in [
        ("Without penalties", &["skerry.tls.penalty.max.ms=0"][..]),
        ("As delivered: an address that fails waits for up to a second", &[]),
    ] {
        let server = Server::start_with_tls(&binary, overrides, Some(0))?;
        process::pin(std::process::id(), 0).map_err(own)?;
        let full = reference(&server)?;
        process::pin(std::process::id(), 1).map_err(own)?;
        about.push((
            "full handshake",
            format!("1.3/full/p256 by the same broker, one after the other, on one processor: {full:.0} µs net of a connection"),
        ));
        let mut connection = None;
        let mut section = Section {
            name: name.into(),
            columns: COLUMNS,
            rows: Vec::new(),
        };
        let mut engine = producers(args, &server)?;
        for failure in &failures {
            eprintln!("{name}: {}", failure.name);
            let measured = measure(args, &server, &mut engine, failure)?;
            if failure.name == NOTHING {
                connection = measured.each;
            }
            let net = measured
                .each
                .zip(connection)
                .map(|(each, connection)| each - connection);
            section.rows.push(row(failure, &measured, net, full));
        }
        sections.push(section);
    }
    about.push((
        "storm",
        format!(
            "{} connections, each again as soon as it has ended, from one address, canned bytes; {} producers over TLS with {} requests a second \
             in all, one record of 100 B each, acks=1; broker on processor 0, all else on processor 1",
            args.connections, args.producers, args.rate
        ),
    ));
    let report = Report {
        machine,
        about,
        sections,
    };
    report.print(args.json);
    match &args.save {
        Some(path) => report.save(path),
        None => Ok(()),
    }
}

/// What a good handshake costs, in microseconds, net of a connection.
fn reference(server: &Server) -> Result<f64, String> {
    let pid = server.pid.ok_or("the broker's process is not known")?;
    let address = server.target(true)?.address;
    let mut visitor = Visitor::new(Kind::new(Version::Tls13, Shape::Full, Key::P256), address)?;
    let (mut whole, mut connection) = (Vec::new(), Vec::new());
    for _ in 0..REFERENCE_BATCHES {
        whole.push(batch(pid, || visitor.visit())?);
        connection.push(batch(pid, || knock(address))?);
    }
    let median = |nanos| Times::new(nanos).median().unwrap_or_default();
    Ok(median(whole) - median(connection))
}

fn producers(args: &Args, server: &Server) -> Result<Engine<Producer>, String> {
    const TOPIC: &str = "storm";
    let partitions = i32::try_from(args.producers).map_err(|_| "too many producers")?;
    server.create_topic(TOPIC, partitions)?;
    let batch = SHAPES[3].batch();
    let scripts = (0..partitions).map(|p| Producer::new(TOPIC, p, 1, &batch)).collect();
    let mut engine = Engine::connect(server.target(true)?, scripts, server.pid)?;
    // The first batch of each partition makes its files.
    engine.run(&plan(args, 1.0))?;
    Ok(engine)
}

fn plan(args: &Args, seconds: f64) -> Plan {
    Plan {
        pace: Pace::Open(args.rate),
        in_flight: 5,
        time: Duration::from_secs_f64(seconds),
        bytes_max: u64::MAX,
    }
}

/// How long a storm blows before anything is measured.
const GATHERS: Duration = Duration::from_millis(700);

fn measure(args: &Args, server: &Server, engine: &mut Engine<Producer>, failure: &Failure) -> Result<Measured, String> {
    let address = if failure.is_mutual {
        server.listener("MUTUAL").ok_or("no listener asks for certificates")?
    } else {
        server.target(true)?.address
    };
    let mut sum = Sum::default();
    for _ in 0..args.repeats {
        {
            let (_sink, address) = Running::sink()?;
            let _storm = Running::storm(address, failure, args.connections)?;
            thread::sleep(GATHERS);
            let run = engine.run(&plan(args, args.seconds))?;
            sum.quiet.add(&run);
        }
        let mut storm = Running::storm(address, failure, args.connections)?;
        thread::sleep(GATHERS);
        let (before, begun) = storm.ended()?;
        let run = engine.run(&plan(args, args.seconds))?;
        let (after, over) = storm.ended()?;
        sum.storm.add(&run);
        sum.ended += (after - before) as f64 * run.seconds / (over - begun).as_secs_f64();
    }
    let Sum { quiet, storm, ended } = sum;
    let cpu = |side: &Side| side.cpu / side.seconds;
    let rate = ended / storm.seconds;
    Ok(Measured {
        rate,
        cpu: cpu(&storm),
        each: (rate > 0.0).then(|| (cpu(&storm) - cpu(&quiet)) * 1e6 / rate),
        quiet_p99_ms: quiet.p99_ms(),
        p99_ms: storm.p99_ms(),
    })
}

/// What came of runs by turns.
#[derive(Default)]
struct Sum {
    quiet: Side,
    storm: Side,
    /// Connections of the storm that ended.
    ended: f64,
}

#[derive(Default)]
struct Side {
    seconds: f64,
    cpu: f64,
    p99s: Vec<u64>,
}

impl Side {
    fn add(&mut self, run: &Run) {
        self.seconds += run.seconds;
        self.cpu += run.server.all();
        let p99 = run.quantile(0.99).unwrap_or_default();
        self.p99s.push(p99.as_nanos() as u64);
    }

    fn p99_ms(&self) -> Option<f64> {
        Times::new(self.p99s.clone()).median().map(|micros| micros / 1e3)
    }
}

/// One kind of failure.
struct Measured {
    /// Connections that ended, a second.
    rate: f64,
    /// The broker's CPU, as a share of its processor.
    cpu: f64,
    /// Of it for each of them, in microseconds: less what the producers alone take.
    each: Option<f64>,
    quiet_p99_ms: Option<f64>,
    p99_ms: Option<f64>,
}

fn row(failure: &Failure, measured: &Measured, net: Option<f64>, full: f64) -> Vec<Cell> {
    let Measured {
        rate,
        cpu,
        each,
        quiet_p99_ms,
        p99_ms,
    } = *measured;
    vec![
        failure.name.into(),
        if failure.reaches_keys { "yes" } else { "no" }.into(),
        rate.into(),
        (cpu * 100.0).into(),
        each.into(),
        net.into(),
        net.map(|net| net / full).into(),
        quiet_p99_ms.into(),
        p99_ms.into(),
        p99_ms.zip(quiet_p99_ms).map(|(storm, quiet)| storm / quiet).into(),
    ]
}
