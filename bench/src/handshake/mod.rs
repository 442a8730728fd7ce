//! `skerry-bench handshake`: what a TLS handshake costs its server, ours and others.

pub mod canned;
mod client;
mod counters;
mod figures;
mod floor;
mod heap;
mod kind;
mod loopback;
mod memory;
mod server;
mod split;
mod table;
mod timeline;

use std::path::PathBuf;
use std::time::Duration;

pub use client::Client;
pub use heap::{CountArgs, count};
pub use kind::{Fault, Key, Kind, Setup, Shape};
pub use loopback::{Measured, ServeArgs, Visitor, batch, knock, serve};
pub use memory::Meeting;
pub use server::{Peer, start_arena};
pub use split::Split;

use skerry_tls::crypto::either::Choice;

use self::counters::Counters;
use self::figures::{OUR_PEER, Results, figures};
use self::heap::{Heap, Watch};
use self::table::Tables;
use crate::against;
use crate::machine::Machine;
use crate::report::{self, Figure, Progress, Report};
use crate::server::Server;

/// What to measure, and how.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// Only kinds whose name contains this, such as `1.3`, `1.3/full/p256`, `hello-517` or `unknown-ca`
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub only: String,
    /// A first look: the kinds that succeed, for a fifth of a second each
    #[arg(long)]
    pub quick: bool,
    /// Servers to compare [default: all that are built in]
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',')]
    pub peers: Vec<String>,
    /// Whether all servers are set up alike, or each as it is by default
    #[arg(long, value_enum, default_value_t)]
    pub setup: Setup,
    /// Seconds for each kind, in memory and over loopback each
    #[arg(long, value_name = "N", default_value_t = 3.0, conflicts_with = "quick")]
    pub seconds: f64,
    /// The `skerry` binary: over loopback its TLS listener is measured too
    #[arg(long, value_name = "PATH")]
    pub skerry: Option<PathBuf>,
    /// A server that runs already.
    #[command(flatten)]
    pub against: against::Args,
    /// Not in memory, or not over loopback
    #[arg(long, value_name = "WHERE")]
    pub without: Option<Where>,
    /// Do so many handshakes of each kind and measure nothing: for a profiler
    #[arg(long, value_name = "N")]
    pub profile: Option<u64>,
    /// Write JSON to FILE, or print it instead of the tables
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,
    /// Write a page with charts that needs no network
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write the timeline of one of Skerry's handshakes, of the first kind that is asked for
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
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

    /// How many.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.0.len()
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

impl Args {
    fn kinds(&self) -> Vec<Kind> {
        Kind::all()
            .filter(|kind| kind.to_string().contains(&self.only))
            .filter(|kind| !self.quick || kind.is_main())
            .map(|kind| Kind {
                setup: self.setup,
                ..kind
            })
            .collect()
    }

    fn time(&self) -> Duration {
        Duration::from_secs_f64(if self.quick { 0.2 } else { self.seconds })
    }

    /// A Skerry of its own, on the first processor, where the binary is named. Its clients are not made to wait for failures.
    fn broker(&self) -> Result<Option<Server>, String> {
        let start = |binary: &PathBuf| Server::start_with_tls(binary, &["skerry.tls.penalty.max.ms=0"], Some(0));
        self.skerry.as_ref().map(start).transpose()
    }

    /// Prints the report, and writes what files are asked for.
    fn put(&self, report: &Report, figures: &dyn Fn() -> Result<Vec<Figure>, String>) -> Result<(), String> {
        match &self.json {
            Some(path) if path.as_os_str() != "-" => {
                report.print(false);
                report::write(path, &format!("{:#}\n", report.json()))?;
            }
            printed => report.print(printed.is_some()),
        }
        if let Some(path) = &self.html {
            report::write(path, &report::page("CPU of TLS handshakes", report, &figures()?))?;
        }
        match &self.save {
            Some(path) => report.save(path),
            None => Ok(()),
        }
    }

    fn peers(&self) -> Result<Vec<Peer>, String> {
        if self.peers.is_empty() {
            return Ok(Peer::ALL.into_iter().filter(|peer| peer.is_built_in()).collect());
        }
        let named = |name: &String| Peer::named(name).ok_or_else(|| format!("no server {name}"));
        self.peers.iter().map(named).collect()
    }
}

/// What others are compared with.
const OURS: &str = Peer::Skerry(Choice::Fast).name();

/// Measures every kind that is asked for.
///
/// Errors: a handshake fails that should not, or the other way round.
pub fn run(args: &Args) -> Result<(), String> {
    if let Some(address) = &args.against.against {
        let broker = args.broker()?;
        let (report, figures) = against::run(&args.against, address, broker.as_ref())?;
        return args.put(&report, &|| Ok(figures.clone()));
    }
    let machine = Machine::here();
    let (kinds, peers) = (args.kinds(), args.peers()?);
    if kinds.is_empty() {
        return Err(format!("no kind of handshake has `{}` in its name", args.only));
    }
    if let Some(count) = args.profile {
        return profile(&kinds, &peers, count);
    }
    let mut about = about(args, &peers);
    let in_memory = args.without != Some(Where::Memory);
    let over_loopback = args.without != Some(Where::Loopback);
    let (mut counters, mut watch) = (None, None);
    if in_memory {
        match Counters::new() {
            Ok(found) => counters = Some(found),
            Err(why) => about.push(("left out", why)),
        }
        match Watch::new() {
            Ok(found) => watch = Some(found),
            Err(why) => about.push(("left out", why)),
        }
    }
    let broker = if over_loopback { args.broker()? } else { None };
    let mut tables = Tables::new();
    let mut unclaimed = (0.0, String::new());
    if let Some(path) = &args.svg {
        report::write(path, &timeline::timeline(kinds[0], OUR_PEER)?)?;
    }
    let mut results = Vec::new();
    let progress = Progress::new(kinds.len());
    for kind in kinds {
        progress.begin(&kind.to_string());
        let (mut memory, mut loopback) = (Vec::new(), Vec::new());
        let peers: Vec<Peer> = peers.iter().copied().filter(|peer| peer.speaks(kind)).collect();
        if in_memory {
            memory = memory::measure(kind, &peers, args.time(), counters.as_mut())?;
            let medians = memory.iter().map(|one| (one.name.as_str(), one.times.median()));
            progress.tell(&kind.to_string(), "µs", medians);
            for one in &memory {
                let share = one.split.as_ref().map_or(0.0, Split::unclaimed_share);
                if share > unclaimed.0 {
                    unclaimed = (share, format!("{} of {kind}", one.name));
                }
            }
            tables.in_memory(kind, &memory, &heaps(watch.as_ref(), kind, &peers)?);
        }
        if over_loopback {
            loopback = loopback::measure(kind, &peers, broker.as_ref(), args.time())?;
            let nets = loopback.iter().map(|one| (one.name.as_str(), one.net()));
            progress.tell(&format!("{kind}, over loopback"), "µs", nets);
            tables.over_loopback(kind, &loopback);
        }
        results.push(Results { kind, memory, loopback });
    }
    if unclaimed.0 > 0.0 {
        let (share, of) = unclaimed;
        about.push((
            "unclaimed by any phase",
            format!("at most {:.1} %: {of}", 100.0 * share),
        ));
    }
    let report = Report {
        machine,
        about,
        sections: tables.sections(),
    };
    drop(progress);
    args.put(&report, &|| figures(&results))
}

fn profile(kinds: &[Kind], peers: &[Peer], count: u64) -> Result<(), String> {
    for kind in kinds {
        for peer in peers.iter().filter(|peer| peer.speaks(*kind)) {
            let mut meeting = Meeting::new(*peer, *kind)?;
            for _ in 0..count {
                meeting.shake(|server| server())?;
            }
        }
    }
    Ok(())
}

/// What each takes from the heap, where somebody watches.
fn heaps(watch: Option<&Watch>, kind: Kind, peers: &[Peer]) -> Result<Vec<(String, Heap)>, String> {
    let Some(watch) = watch else { return Ok(Vec::new()) };
    let measure = |peer: &Peer| Ok((peer.name().to_owned(), watch.measure(kind, *peer)?));
    peers.iter().map(measure).collect()
}

fn about(args: &Args, peers: &[Peer]) -> Vec<(&'static str, String)> {
    let mut about: Vec<_> = peers.iter().map(|peer| (peer.name(), peer.version())).collect();
    for peer in Peer::ALL.into_iter().filter(|peer| !peers.contains(peer)) {
        let why = if peer.is_built_in() {
            "not asked for"
        } else {
            "not built in"
        };
        about.push(("left out", format!("{}: {why}", peer.name())));
    }
    about.push((
        "how",
        "in memory: every server once a round, in random order, in one thread, so that each finds its caches cold; the thread's CPU clock \
         around the server's calls, its own cost taken off. Over loopback: each server a process behind the same accept loop, all on one \
         processor; net: less what a connection without a byte costs. The same client for all, one certificate signed by its authority, \
         X25519; medians, but for the split by phase and state: means of the middle half"
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
