//! `skerry-bench handshake`: what a TLS handshake costs its server, ours and others.

mod client;
mod floor;
mod kind;
mod loopback;
mod memory;
mod server;

use std::path::PathBuf;
use std::time::Duration;

pub use client::Client;
pub use kind::{Key, Kind, Setup, Shape};
pub use loopback::{Measured, ServeArgs, Visitor, batch, knock, serve};
pub use memory::Meeting;
pub use server::{Peer, start_arena};

use skerry_tls::crypto::either::Choice;

use crate::machine::Machine;
use crate::report::{Column, Report, Section, column};
use crate::server::Server;

/// What to measure, and how.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// Only kinds whose name contains this, such as `1.3` or `1.3/full/p256`
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub only: String,
    /// Servers to compare [default: all that are built in]
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',')]
    pub peers: Vec<String>,
    /// Whether all servers are set up alike, or each as it is by default
    #[arg(long, value_enum, default_value_t)]
    pub setup: Setup,
    /// Seconds for each kind
    #[arg(long, value_name = "N", default_value_t = 5.0)]
    pub seconds: f64,
    /// The `skerry` binary: over loopback its TLS listener is measured too
    #[arg(long, value_name = "PATH")]
    pub skerry: Option<PathBuf>,
    /// Not in memory, or not over loopback
    #[arg(long, value_name = "WHERE")]
    pub without: Option<Where>,
    /// Do so many handshakes of each kind and measure nothing: for a profiler
    #[arg(long, value_name = "N")]
    pub profile: Option<u64>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Write the report to PATH.json and PATH.md too
    #[arg(long, value_name = "PATH")]
    pub save: Option<PathBuf>,
}

/// Where handshakes take place.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    /// In one thread, without a kernel.
    Memory,
    /// Over sockets, each server a process.
    Loopback,
}

/// Times of one thing, sorted.
#[derive(Clone, Debug)]
pub struct Times(Vec<u64>);

impl Times {
    /// Of these nanoseconds.
    #[must_use]
    pub fn new(mut nanos: Vec<u64>) -> Self {
        nanos.sort_unstable();
        Self(nanos)
    }

    /// The time that this share of them does not exceed, in microseconds.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let last = self.0.len().checked_sub(1)?;
        self.0
            .get((last as f64 * share).round() as usize)
            .map(|n| *n as f64 / 1e3)
    }

    /// The median, in microseconds.
    #[must_use]
    pub fn median(&self) -> Option<f64> {
        self.quantile(0.5)
    }
}

const COLUMNS: &[Column] = &[
    column("kind", "handshake"),
    column("server", "server"),
    column("cpu_us", "CPU µs"),
    column("cpu_us_p10", "p10"),
    column("cpu_us_p99", "p99"),
    column("skerry_ratio", "skerry ÷ it"),
    column("count", "handshakes"),
];

const LOOPBACK: &[Column] = &[
    column("kind", "handshake"),
    column("server", "server"),
    column("cpu_us", "CPU µs"),
    column("connection_us", "a connection without a byte"),
    column("net_us", "net"),
    column("skerry_ratio", "skerry ÷ it, net"),
    column("batches", "batches of 50"),
];

/// Measures every kind that is asked for.
///
/// Errors: a handshake fails.
pub fn run(args: &Args) -> Result<(), String> {
    let machine = Machine::here();
    let peers = peers(args)?;
    let kinds = Kind::ALL
        .into_iter()
        .filter(|kind| kind.to_string().contains(&args.only));
    let mut memory = Section {
        name: "In memory: CPU of the server for one handshake".into(),
        columns: COLUMNS,
        rows: Vec::new(),
    };
    let mut loopback = Section {
        name: "Over loopback: CPU of the server's process for one connection with a handshake".into(),
        columns: LOOPBACK,
        rows: Vec::new(),
    };
    let time = Duration::from_secs_f64(args.seconds);
    let broker = match &args.skerry {
        Some(binary) => Some(Server::start_with_tls(
            binary,
            &["skerry.tls.penalty.max.ms=0"],
            Some(0),
        )?),
        None => None,
    };
    for mut kind in kinds {
        kind.setup = args.setup;
        eprintln!("{kind}");
        let peers: Vec<Peer> = peers.iter().copied().filter(|peer| peer.speaks(kind)).collect();
        if let Some(count) = args.profile {
            for peer in peers {
                let mut meeting = Meeting::new(peer, kind)?;
                for _ in 0..count {
                    meeting.shake(|server| server())?;
                }
            }
            continue;
        }
        if args.without != Some(Where::Memory) {
            let measured = memory::measure(kind, &peers, time)?;
            let ours = median(&measured, OURS);
            for (name, times) in &measured {
                let ratio = ours.zip(times.median()).map(|(ours, theirs)| ours / theirs);
                memory.rows.push(vec![
                    kind.to_string().as_str().into(),
                    name.as_str().into(),
                    times.median().into(),
                    times.quantile(0.1).into(),
                    times.quantile(0.99).into(),
                    ratio.into(),
                    (times.0.len() as f64).into(),
                ]);
            }
        }
        if args.without != Some(Where::Loopback) {
            let measured = loopback::measure(kind, &peers, broker.as_ref(), time)?;
            let net = |one: &Measured| Some(one.times.median()? - one.plain.median()?);
            let ours = measured.iter().find(|one| one.name == OURS).and_then(net);
            for one in &measured {
                loopback.rows.push(vec![
                    kind.to_string().as_str().into(),
                    one.name.as_str().into(),
                    one.times.median().into(),
                    one.plain.median().into(),
                    net(one).into(),
                    ours.zip(net(one)).map(|(ours, theirs)| ours / theirs).into(),
                    (one.times.0.len() as f64).into(),
                ]);
            }
        }
    }
    if args.profile.is_some() {
        return Ok(());
    }
    let report = Report {
        machine,
        about: about(args, &peers),
        sections: [memory, loopback]
            .into_iter()
            .filter(|section| !section.rows.is_empty())
            .collect(),
    };
    report.print(args.json);
    match &args.save {
        Some(path) => report.save(path),
        None => Ok(()),
    }
}

/// What others are compared with.
const OURS: &str = Peer::Skerry(Choice::Fast).name();

fn median(measured: &[(String, Times)], wanted: &str) -> Option<f64> {
    let found = measured.iter().find(|(name, _)| name == wanted);
    found.and_then(|(_, times)| times.median())
}

fn peers(args: &Args) -> Result<Vec<Peer>, String> {
    if args.peers.is_empty() {
        return Ok(Peer::ALL.into_iter().filter(|peer| peer.is_built_in()).collect());
    }
    args.peers
        .iter()
        .map(|name| Peer::named(name).ok_or_else(|| format!("no server {name}")))
        .collect()
}

fn about(args: &Args, peers: &[Peer]) -> Vec<(&'static str, String)> {
    let mut about: Vec<_> = peers.iter().map(|peer| (peer.name(), peer.version())).collect();
    for peer in Peer::ALL {
        if !peers.contains(&peer) {
            about.push((peer.name(), "left out".into()));
        }
    }
    about.push((
        "how",
        "in memory: every server once a round, in random order, in one thread; the thread's CPU clock around the server's calls, its own cost \
         taken off. Over loopback: each server a process behind the same accept loop, all on one processor; net: less what a \
         connection without a byte costs. The same client for all, one certificate signed by its authority, X25519; medians"
            .into(),
    ));
    about.push((
        "setup",
        match args.setup {
            Setup::Alike => "AES-128-GCM with SHA-256, one ticket, sessions in tickets for all",
            Setup::Default => "each server's own choice of suite, number of tickets and place of sessions",
        }
        .into(),
    ));
    about
}
