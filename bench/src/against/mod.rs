//! `skerry-bench handshake --against`: what a handshake costs a TLS server that is there already, whatever it is made of.
//!
//! The server is warmed up until it has had its share of handshakes, and the curve is kept: a JVM compiles what runs often. Then every kind takes
//! its turn, batch after batch, at a bounded rate. With the server's process on the same machine its CPU time is read from `/proc`, less what
//! it uses at rest and what a connection without TLS costs.

mod crowd;

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::thread;
use std::time::{Duration, Instant};

use skerry_tls::suite::Version;

use crate::handshake::{Fault, Key, Kind, Setup, Shape, Times, Visitor, knock};
use crate::machine::Machine;
use crate::process::Tasks;
use crate::report::chart::{Curve, Series, curves};
use crate::report::{Cell, Column, Figure, Progress, Report, Section, column};
use crate::server::Server;
use crowd::Crowd;

/// Whom to drive, and how hard.
#[derive(clap::Args, Clone, Debug)]
#[group(id = "another_server")]
pub struct Args {
    /// Drive this TLS server instead; with --skerry, a Skerry by turns with it
    #[arg(long, value_name = "HOST:PORT")]
    pub against: Option<String>,
    /// Its process on this machine, to know what it costs
    #[arg(long, value_name = "PID", requires = "against")]
    pub pid: Option<u32>,
    /// Where it listens without TLS: what a connection costs [default: connections without a byte to the TLS port]
    #[arg(long, value_name = "HOST:PORT", requires = "against")]
    pub plaintext: Option<String>,
    /// Connections a second at most
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub rate: u32,
    /// Handshakes of each kind that are measured
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub count: u32,
    /// Handshakes before that
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub warm_up: u32,
    /// Connections at once, where there are several
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub connections: u32,
    /// Let the address be another machine's
    #[arg(long, requires = "against")]
    pub allow_remote: bool,
}

/// The name of the Skerry beside it.
const OURS: &str = "skerry";

/// Connections of a batch, between two looks at the server's CPU time.
const BATCH: u32 = 50;
/// Points of the curve of the warming up.
const CURVE_POINTS: u32 = 20;
/// How long the server is watched at rest.
const REST: Duration = Duration::from_secs(2);

/// The kinds that succeed. Which certificate the server has is its own affair.
const KINDS: [Kind; 4] = [
    kind(Version::Tls13, Shape::Full),
    kind(Version::Tls13, Shape::Resumed),
    kind(Version::Tls12, Shape::Full),
    kind(Version::Tls12, Shape::Resumed),
];

const fn kind(version: Version, shape: Shape) -> Kind {
    let kind = Kind::new(version, shape, Key::P256);
    Kind {
        setup: Setup::Default,
        ..kind
    }
}

/// Its version and what passes: the key is not known.
fn name(kind: Kind) -> String {
    kind.to_string().replace("/p256", "")
}

/// Connections at a bounded rate.
#[derive(Clone, Copy, Debug)]
struct Pace {
    next: Instant,
    gap: Duration,
}

impl Pace {
    fn new(rate: f64) -> Self {
        Self {
            next: Instant::now(),
            gap: Duration::from_secs_f64(1.0 / rate.max(0.01)),
        }
    }

    /// Waits for the turn of the next connection. What was missed is not made up for.
    fn wait(&mut self) {
        let now = Instant::now();
        thread::sleep(self.next.saturating_duration_since(now));
        self.next = self.next.max(now) + self.gap;
    }
}

/// A server under measurement.
#[derive(Clone, Debug)]
struct Target {
    name: &'static str,
    address: SocketAddr,
    plain: SocketAddr,
    pid: Option<u32>,
    /// CPU seconds that it takes in a second at rest.
    rest: f64,
}

/// What a batch took.
#[derive(Clone, Debug, Default)]
struct Spent {
    /// CPU of the server for one connection, in nanoseconds.
    cpu: Option<u64>,
    /// What the client waited for each, in nanoseconds.
    waited: Vec<u64>,
}

impl Target {
    fn tasks(&self) -> Result<Option<Tasks>, String> {
        let read = |pid| Tasks::of(pid).map_err(|e| format!("CPU time of process {pid}: {e}"));
        self.pid.map(read).transpose()
    }

    /// Its CPU in nanoseconds for each of `count` connections that `work` makes, with what `work` returns. What it does at rest is taken off.
    fn spend<T>(&self, count: u32, work: impl FnOnce() -> Result<T, String>) -> Result<(Option<u64>, T), String> {
        let (before, began) = (self.tasks()?, Instant::now());
        let done = work()?;
        // What it does after the last.
        thread::sleep(Duration::from_millis(2));
        let spent = self.tasks()?.zip(before).map(|(after, before)| {
            let busy = after.since(&before).all() - self.rest * began.elapsed().as_secs_f64();
            (busy.max(0.0) * 1e9 / f64::from(count)) as u64
        });
        Ok((spent, done))
    }

    fn batch(
        &self,
        count: u32,
        pace: &mut Pace,
        mut each: impl FnMut() -> Result<(), String>,
    ) -> Result<Spent, String> {
        let (cpu, waited) = self.spend(count, || {
            (0..count)
                .map(|_| {
                    pace.wait();
                    let began = Instant::now();
                    each()?;
                    Ok(began.elapsed().as_nanos() as u64)
                })
                .collect::<Result<Vec<u64>, String>>()
        })?;
        Ok(Spent { cpu, waited })
    }

    fn find_rest(&mut self) -> Result<(), String> {
        self.rest = 0.0;
        let (spent, ()) = self.spend(1, || {
            thread::sleep(REST);
            Ok(())
        })?;
        self.rest = spent.map_or(0.0, |nanos| nanos as f64 / 1e9 / REST.as_secs_f64());
        Ok(())
    }
}

/// One kind of connection to one server.
struct Turn {
    target: usize,
    /// Nothing but a connection where there is none.
    visitor: Option<(Kind, Visitor)>,
    /// Otherwise what should be resumed is made in full: the server wants it so.
    resumes: bool,
    cpu: Vec<u64>,
    waited: Vec<u64>,
}

const KIND_COLUMNS: &[Column] = &[
    column("kind", "handshake"),
    column("server", "server"),
    column("suite", "suite"),
    column("cpu_us", "CPU µs"),
    column("cpu_us_p90", "p90 of batches"),
    column("net_us", "less a connection"),
    column("skerry_ratio", "skerry ÷ it"),
    column("wait_us", "the client waits, µs"),
    column("wait_us_p99", "p99"),
    column("count", "handshakes"),
];

const CURVE: &[Column] = &[
    column("server", "server"),
    column("handshakes", "handshakes so far"),
    column("cpu_us", "CPU µs"),
    column("wait_us", "the client waits, µs"),
];

const CROWD: &[Column] = &[
    column("kind", "handshake"),
    column("server", "server"),
    column("connections", "at once"),
    column("cpu_us", "CPU µs"),
    column("per_second", "a second"),
    column("wait_us", "the client waits, µs"),
    column("wait_us_p99", "p99"),
    column("count", "connections"),
];

fn section(name: &str, columns: &'static [Column]) -> Section {
    Section {
        name: name.into(),
        columns,
        rows: Vec::new(),
    }
}

/// Drives the server. `broker` is driven by turns with it.
///
/// Errors: an address of another machine without leave, a server that cannot be reached, or one that takes none of the handshakes.
pub fn run(args: &Args, address: &str, broker: Option<&Server>) -> Result<(Report, Vec<Figure>), String> {
    let machine = Machine::here();
    let mut about = vec![(
        "how",
        format!(
            "Skerry's client, at most {} connections a second; the server's CPU from /proc, less what it takes at rest; medians of batches of \
             {BATCH} that take turns. Any certificate is taken; the client offers every suite that Skerry has, and X25519",
            args.rate
        ),
    )];
    let mut targets = targets(args, address, broker)?;
    for target in &targets {
        match target.pid {
            Some(_) => about.push(("server", format!("{} at {}", target.name, target.address))),
            None => about.push(("left out", format!("CPU of {}: no --pid", target.name))),
        }
    }
    let progress = Progress::new(3);
    let mut pace = Pace::new(args.rate.into());

    progress.begin("warming up");
    let mut curve = section("Warming up, by TLS 1.3 full", CURVE);
    let mut lines = Vec::new();
    for target in &mut targets {
        target.find_rest()?;
        let points = warm_up(target, args.warm_up, &mut pace, &progress, &mut curve)?;
        lines.push((series(target), points));
        target.find_rest()?;
        about.push((
            "at rest",
            format!("{}: {:.2} % of a processor", target.name, 100.0 * target.rest),
        ));
    }

    progress.begin("by turns");
    let mut turns = Vec::new();
    for (at, target) in targets.iter().enumerate() {
        turns.push(Turn::new(at, None));
        for kind in KINDS {
            match ready(target, kind, args.warm_up / 10, &mut pace) {
                Ok((visitor, resumes)) => turns.push(Turn {
                    resumes,
                    ..Turn::new(at, Some((kind, visitor)))
                }),
                Err(why) => about.push(("left out", format!("{} of {}: {why}", name(kind), target.name))),
            }
        }
    }
    for _ in 0..args.count.div_ceil(BATCH) {
        for turn in &mut turns {
            let target = &targets[turn.target];
            let spent = target.batch(BATCH, &mut pace, || match &mut turn.visitor {
                Some((_, visitor)) => visitor.visit(),
                None => knock(target.plain),
            })?;
            turn.cpu.extend(spent.cpu);
            turn.waited.extend(spent.waited);
        }
    }
    let mut kinds = section(
        "One connection after the other: CPU of the server's process for one",
        KIND_COLUMNS,
    );
    kinds.rows = turns.iter().map(|turn| turn.row(&turns, &targets)).collect();

    for turn in turns.iter().filter(|turn| !turn.resumes) {
        let what = turn.kind().map(name).unwrap_or_default();
        let target = targets[turn.target].name;
        about.push((
            "left out",
            format!("{what} of {target}: it does not resume; what is offered to it is made in full"),
        ));
    }

    progress.begin("several at once, and failing");
    let mut crowds = section("Several connections at once", CROWD);
    let mut failing = section("Handshakes that fail, several at once", CROWD);
    let takes = |kind: Kind, at: usize| {
        let same = |turn: &Turn| turn.target == at && turn.kind() == Some(kind) && turn.resumes;
        turns.iter().any(same)
    };
    for (at, target) in targets.iter().enumerate() {
        for kind in KINDS.into_iter().filter(|kind| takes(*kind, at)) {
            crowds
                .rows
                .push(Crowd::of(target, kind, args.connections, args.count, args.rate)?.row());
        }
        for fault in Fault::ALL.into_iter().filter(|fault| *fault != Fault::ClientUnknown) {
            let kind = Kind {
                fault: Some(fault),
                ..KINDS[0]
            };
            let few = (args.count / 5).max(args.connections);
            failing
                .rows
                .push(Crowd::of(target, kind, args.connections, few, args.rate)?.row());
        }
    }
    drop(progress);

    let figures = figures(&lines, &turns, &targets)?;
    let sections = [kinds, crowds, failing, curve];
    let report = Report {
        machine,
        about,
        sections: sections
            .into_iter()
            .filter(|section| !section.rows.is_empty())
            .collect(),
    };
    Ok((report, figures))
}

fn targets(args: &Args, address: &str, broker: Option<&Server>) -> Result<Vec<Target>, String> {
    let find = |text: &str| -> Result<SocketAddr, String> {
        let mut found = text.to_socket_addrs().map_err(|e| format!("{text}: {e}"))?;
        let found = found.next().ok_or_else(|| format!("{text}: no address"))?;
        if !is_loopback(found.ip()) && !args.allow_remote {
            return Err(format!(
                "{found} is not this machine. Handshakes by the thousand are an attack on a server that does not expect them: \
                 --allow-remote when it is yours"
            ));
        }
        Ok(found)
    };
    let tls = find(address)?;
    let mut all = vec![Target {
        name: "the server",
        address: tls,
        plain: args.plaintext.as_deref().map_or(Ok(tls), find)?,
        pid: args.pid,
        rest: 0.0,
    }];
    if let Some(broker) = broker {
        all.push(Target {
            name: OURS,
            address: broker.target(true)?.address,
            plain: broker.address,
            pid: broker.pid,
            rest: 0.0,
        });
    }
    Ok(all)
}

fn series(target: &Target) -> Series {
    Series {
        name: target.name.into(),
        colour: usize::from(target.name != OURS),
    }
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// Makes so many full handshakes, and notes what they cost along the way.
fn warm_up(
    target: &Target,
    count: u32,
    pace: &mut Pace,
    progress: &Progress,
    curve: &mut Section,
) -> Result<Vec<(f64, f64)>, String> {
    let first = [KINDS[0], KINDS[2]].map(|kind| Visitor::new(kind, target.address).map(|visitor| (kind, visitor)));
    let mut visitor = match first {
        [Ok((_, visitor)), _] | [_, Ok((_, visitor))] => visitor,
        [Err(why), _] => return Err(why),
    };
    let each = (count / CURVE_POINTS).max(1);
    let mut points = Vec::new();
    for point in 1..=count / each {
        let spent = target.batch(each, pace, || visitor.visit())?;
        let (cpu, waited) = (
            spent.cpu.map(|nanos| nanos as f64 / 1e3),
            Times::new(spent.waited).median(),
        );
        let done = f64::from(point * each);
        let title = format!("{}, after {done:.0} handshakes", target.name);
        progress.tell(&title, "µs", [("CPU", cpu), ("the client waits", waited)].into_iter());
        curve
            .rows
            .push(vec![target.name.into(), done.into(), cpu.into(), waited.into()]);
        points.extend(cpu.or(waited).map(|cost| (done, cost / 1e3)));
    }
    Ok(points)
}

/// A client whose kind the server takes and has had some of, and whether the server resumes where that is the kind.
fn ready(target: &Target, kind: Kind, count: u32, pace: &mut Pace) -> Result<(Visitor, bool), String> {
    let mut visitor = Visitor::new(kind, target.address)?;
    let resumes = !kind.is_resumed() || visitor.visit().is_ok();
    if !resumes {
        visitor = Visitor::lenient(kind, target.address)?;
    }
    for _ in 0..count.max(1) {
        pace.wait();
        visitor.visit()?;
    }
    Ok((visitor, resumes))
}

impl Turn {
    const fn new(target: usize, visitor: Option<(Kind, Visitor)>) -> Self {
        Self {
            target,
            visitor,
            resumes: true,
            cpu: Vec::new(),
            waited: Vec::new(),
        }
    }

    fn kind(&self) -> Option<Kind> {
        self.visitor.as_ref().map(|(kind, _)| *kind)
    }

    fn cpu(&self) -> Times {
        Times::new(self.cpu.clone())
    }

    /// Its CPU in microseconds, less that of a connection without TLS to the same server.
    fn net(&self, all: &[Self]) -> Option<f64> {
        self.kind()?;
        let plain = all
            .iter()
            .find(|turn| turn.target == self.target && turn.visitor.is_none())?;
        Some(self.cpu().median()? - plain.cpu().median()?)
    }

    fn row(&self, all: &[Self], targets: &[Target]) -> Vec<Cell> {
        let waited = Times::new(self.waited.clone());
        let is_ours = |turn: &&Self| targets[turn.target].name == OURS && turn.kind() == self.kind();
        let ours = all.iter().find(is_ours).and_then(|turn| turn.net(all));
        let net = self.net(all);
        vec![
            self.kind()
                .map_or_else(|| "a connection without TLS".into(), name)
                .as_str()
                .into(),
            targets[self.target].name.into(),
            self.visitor
                .as_ref()
                .and_then(|(_, visitor)| visitor.suite())
                .map_or(Cell::None, |suite| suite.as_str().into()),
            self.cpu().median().into(),
            self.cpu().quantile(0.9).into(),
            net.into(),
            ours.zip(net).map(|(ours, net)| ours / net).into(),
            waited.median().into(),
            waited.quantile(0.99).into(),
            waited.count().into(),
        ]
    }
}

fn figures(lines: &[Curve], turns: &[Turn], targets: &[Target]) -> Result<Vec<Figure>, String> {
    let mut all = Vec::new();
    if lines.iter().any(|(_, points)| !points.is_empty()) {
        all.push(Figure {
            title: "Warming up".into(),
            caption:
                "TLS 1.3 full handshakes. CPU of the server where its process is known, else what the client waits."
                    .into(),
            svg: curves("handshakes so far", "ms a handshake", false, lines)?,
        });
    }
    for kind in KINDS {
        let waited = turns.iter().filter(|turn| turn.kind() == Some(kind)).map(|turn| {
            let times = Times::new(turn.waited.clone());
            let points = (0..=99)
                .filter_map(|percent| Some((times.quantile(f64::from(percent) / 100.0)?, f64::from(percent))))
                .collect();
            (series(&targets[turn.target]), points)
        });
        let waited: Vec<_> = waited.collect();
        if !waited.is_empty() {
            all.push(Figure {
                title: format!("{}: what the client waits", name(kind)),
                caption: "From connecting to the first byte that may be sent, its own work included.".into(),
                svg: curves("µs", "% of handshakes", true, &waited)?,
            });
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args() -> Args {
        Args {
            against: None,
            pid: None,
            plaintext: None,
            rate: 1000,
            count: 50,
            warm_up: 100,
            connections: 2,
            allow_remote: false,
        }
    }

    #[test]
    fn another_machine_needs_leave() {
        // Of a block that belongs to documentation (RFC 5737).
        let there = |args: &Args, address: &str| targets(args, address, None).map(|all| all[0].address.to_string());
        assert!(there(&args(), "192.0.2.1:9093").is_err());
        assert_eq!(there(&args(), "127.0.0.1:9093").as_deref(), Ok("127.0.0.1:9093"));
        assert_eq!(there(&args(), "[::1]:9093").as_deref(), Ok("[::1]:9093"));
        assert_eq!(
            there(&args(), "[::ffff:127.0.0.1]:9093").as_deref(),
            Ok("[::ffff:127.0.0.1]:9093")
        );
        let allowed = Args {
            allow_remote: true,
            ..args()
        };
        assert!(there(&allowed, "192.0.2.1:9093").is_ok());
        let sneaking = Args {
            plaintext: Some("192.0.2.1:9092".into()),
            ..args()
        };
        assert!(there(&sneaking, "127.0.0.1:9093").is_err());
    }

    #[test]
    fn the_rate_is_bounded() {
        let mut pace = Pace::new(1000.0);
        let began = Instant::now();
        for _ in 0..21 {
            pace.wait();
        }
        assert!(began.elapsed() >= Duration::from_millis(20));
    }
}
