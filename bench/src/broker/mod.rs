//! `skerry-bench broker`: what a broker does under load, and what that costs it.
//!
//! Each case first runs as fast as it goes, which finds its throughput, then at half of that, or at a given rate alone, which finds its latencies.
//! Skerry is started anew for each case on an empty directory. Server and load have a processor each, where there are two.
//!
//! Two clients: `engine`, whose frames are made once and which takes next to nothing of the processor, to see what the broker can do and what it
//! costs; and librdkafka, to see what a program that uses it sees.

mod case;
mod engine;
mod frames;
#[cfg(feature = "librdkafka")]
mod librdkafka;
mod script;
mod subject;
mod table;

use std::path::PathBuf;

pub use case::SHAPES;
use case::{Acks, Case, What, cases};
pub use engine::{Engine, Pace, Plan, Run, Script, Work};
pub use script::{Batch, Consumer, Producer, Shape};
use subject::Subject;

use crate::machine::Machine;
use crate::process::{self, Memory};
use crate::report::Report;
use crate::server::Server;

/// What to measure, and how.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// The `skerry` binary [default: a release build]
    #[arg(long, value_name = "PATH")]
    pub skerry: Option<PathBuf>,
    /// Measure this broker instead of starting one, or beside one that --skerry names; cases with a slowed flush are left out
    #[arg(long, value_name = "HOST:PORT")]
    pub against: Option<String>,
    /// The process of that broker, to know what it costs
    #[arg(long, value_name = "PID", requires = "against")]
    pub pid: Option<u32>,
    /// Measure each case over TLS too, beside plaintext; with --against, where that broker listens over TLS
    #[arg(long, value_name = "HOST:PORT", num_args = 0..=1)]
    pub tls: Option<Option<String>>,
    /// Who sends and reads: frames that are made once, which cost next to nothing, or librdkafka
    #[arg(long, value_enum, default_value_t)]
    pub client: Client,
    /// A setting of librdkafka, such as `ssl.ca.location=ca.pem`, `linger.ms=0` or `compression.codec=lz4`
    #[arg(short = 'X', long = "property", value_name = "KEY=VALUE")]
    pub properties: Vec<String>,
    /// Settings of the started broker, as `skerry run` takes them
    #[arg(long = "override", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    /// Only cases whose name contains this, such as `produce/1KB` or `flush=20ms`
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub only: String,
    /// Records a second, evenly, instead of as many as it goes and then half of them
    #[arg(long, value_name = "N")]
    pub rate: Option<f64>,
    /// Bytes of a record's value, instead of 100, 1,024 and 102,400
    #[arg(long, value_name = "N")]
    pub record_bytes: Option<usize>,
    /// Only this `acks`
    #[arg(long, value_enum)]
    pub acks: Option<Acks>,
    /// Seconds of each run
    #[arg(long, value_name = "N", default_value_t = 5.0)]
    pub seconds: f64,
    /// Seconds before each case that are not counted [default: a fifth of --seconds]
    #[arg(long, value_name = "N")]
    pub warm_up: Option<f64>,
    /// Bytes after which a run ends early, so that the disk's own speed does not become what is measured
    #[arg(long, value_name = "N", default_value_t = 3 << 30)]
    pub bytes_max: u64,
    /// Connections, each to a partition of its own; librdkafka has one connection, and as many partitions
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

/// Who makes the load.
#[derive(clap::ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Client {
    /// Frames that are made once.
    #[default]
    Frames,
    /// librdkafka.
    Librdkafka,
}

impl Args {
    fn warm_up_seconds(&self) -> f64 {
        self.warm_up.unwrap_or(self.seconds / 5.0)
    }
}

/// What one case came to on one broker.
#[derive(Clone)]
struct Runs {
    /// As fast as it went, where no rate was given.
    closed: Option<Run>,
    /// At a rate, where the client can keep one.
    paced: Option<Run>,
    /// Bytes of every run, the warm-up included.
    bytes: u64,
}

/// What is known of the server's process when a case is over.
struct Process {
    memory: Option<Memory>,
    /// Bytes written to the disk for each byte produced.
    wrote: Option<f64>,
}

/// Measures every case that is asked for.
///
/// Errors: the broker cannot be started or reached, or refuses.
pub fn run(args: &Args) -> Result<(), String> {
    let machine = Machine::here();
    let subjects = Subject::all(args);
    if let Ok(processor) = usize::try_from(args.processor) {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let own = (processor + 1) % cores;
        process::pin(std::process::id(), own).map_err(|e| format!("cannot pin to processor {own}: {e}"))?;
    }
    let mut sections = table::Sections::default();
    let cases = cases(args);
    if cases.is_empty() {
        return Err(format!("no case is called like {:?}", args.only));
    }
    let progress = crate::progress::Progress::new(cases.len() * subjects.len());
    for case in &cases {
        for subject in &subjects {
            progress.begin(&format!("{}, {}", case.name, subject.name()));
            let server = subject.server(args, case)?;
            let (runs, process) = measure(args, case, &server)?;
            sections.add(case, subject, &server, runs, &process);
        }
    }
    progress.end();
    let report = Report {
        machine,
        about: about(args, &subjects),
        sections: sections.finish(),
    };
    report.print(args.json);
    match &args.save {
        Some(path) => report.save(path),
        None => Ok(()),
    }
}

fn measure(args: &Args, case: &Case, server: &Server) -> Result<(Runs, Process), String> {
    let partitions = i32::try_from(args.connections).map_err(|_| "too many connections")?;
    let topic = format!("bench-{}-{}", std::process::id(), case.name.replace(['/', '='], "-"));
    let written = server.pid.map(process::written_bytes);
    let runs = match args.client {
        Client::Frames => {
            server.create_topic(&topic, partitions)?;
            let runs = frames::measure(args, case, server, &topic, partitions)?;
            if !server.is_ours() {
                server.delete_topic(&topic)?;
            }
            runs
        }
        #[cfg(feature = "librdkafka")]
        Client::Librdkafka => librdkafka::measure(args, case, server, &topic, partitions)?,
        #[cfg(not(feature = "librdkafka"))]
        Client::Librdkafka => return Err("this was built without librdkafka: --features librdkafka".into()),
    };
    let produces = !matches!(case.what, What::Fetch);
    let process = Process {
        memory: server.pid.and_then(|pid| Memory::of(pid).ok()),
        wrote: match (server.pid.map(process::written_bytes), written) {
            (Some(Ok(now)), Some(Ok(before))) if produces => Some((now - before) as f64 / runs.bytes as f64),
            _ => None,
        },
    };
    Ok((runs, process))
}

fn about(args: &Args, subjects: &[Subject]) -> Vec<(&'static str, String)> {
    let brokers: Vec<_> = subjects
        .iter()
        .map(|subject| match subject {
            Subject::Skerry(_) => "Skerry, started anew for each case".into(),
            Subject::Running(address) => format!("the one at {address}"),
        })
        .collect();
    let load = match args.client {
        Client::Frames => format!(
            "{} connections to a partition each, {} produce requests or one fetch (of up to 1 MiB) under way on each; batches of 16 KiB, but \
             1x100B and 100KB of one record",
            args.connections, args.in_flight
        ),
        #[cfg(feature = "librdkafka")]
        Client::Librdkafka => librdkafka::about(args),
        #[cfg(not(feature = "librdkafka"))]
        Client::Librdkafka => String::new(),
    };
    let bytes = match args.client {
        Client::Frames => "record batches",
        Client::Librdkafka => "records' values",
    };
    vec![
        ("broker", brokers.join("; ")),
        ("load", load),
        (
            "units",
            format!("MB are 10^6 bytes of {bytes}; CPU time is the server process's, user and system"),
        ),
    ]
}
