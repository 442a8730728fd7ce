//! What was measured, as rows.

use super::case::{Case, What};
use super::subject::Subject;
use super::{Process, Run, Runs};
use crate::report::{Cell, Column, Section, column};
use crate::server::Server;

const COLUMNS: &[Column] = &[
    column("case", "case"),
    column("server", "server"),
    column("requests_per_second", "requests/s"),
    column("records_per_second", "records/s"),
    column("mb_per_second", "MB/s"),
    column("cpu_us_per_request", "CPU µs/request"),
    column("cpu_us_per_mb", "CPU µs/MB"),
    column("workers_us_per_request", "of it kernel workers"),
    column("load_cpu_percent", "load's CPU %"),
    column("paced_records_per_second", "paced: records/s"),
    column("p50_ms", "p50 ms"),
    column("p90_ms", "p90 ms"),
    column("p99_ms", "p99 ms"),
    column("p999_ms", "p99.9 ms"),
    column("paced_cpu_us_per_request", "CPU µs/request"),
    column("paced_cpu_us_per_mb", "CPU µs/MB"),
    column("resident_mib", "RSS MiB"),
    column("written_per_byte", "disk bytes/byte"),
];

const RATIOS: &[Column] = &[
    column("case", "case"),
    column("server", "server"),
    column("throughput_ratio", "throughput ×"),
    column("cpu_ratio", "CPU per MB ×"),
    column("paced_cpu_ratio", "paced: CPU per MB ×"),
    column("p99_ratio", "p99 ×"),
];

/// The report's tables, as they grow.
#[derive(Default)]
pub struct Sections {
    rows: Vec<Vec<Cell>>,
    /// Each case over TLS beside the same in plaintext.
    tls: Vec<Vec<Cell>>,
    /// The first broker beside the others.
    brokers: Vec<Vec<Cell>>,
    plain: Vec<(String, Runs)>,
    first: Option<(String, Runs)>,
}

impl Sections {
    /// One case of one broker.
    pub fn add(&mut self, case: &Case, subject: &Subject, server: &Server, runs: Runs, process: &Process) {
        self.rows.push(row(case, subject, &runs, server.pid.is_some(), process));
        let beside = |name: &str, ours: &Runs, theirs: &Runs| {
            let mut cells = vec![case.name.as_str().into(), name.into()];
            cells.extend(ratios(ours, theirs));
            cells
        };
        match &self.first {
            Some((name, first)) if *name == case.name => {
                self.brokers
                    .push(beside(&format!("skerry ÷ {}", subject.name()), first, &runs));
            }
            _ => self.first = Some((case.name.clone(), runs.clone())),
        }
        let name = subject.name();
        if case.is_tls {
            if let Some((_, plain)) = self.plain.iter().find(|(of, _)| of == name) {
                self.tls.push(beside(name, &runs, plain));
            }
        } else {
            self.plain.retain(|(of, _)| of != name);
            self.plain.push((name.into(), runs));
        }
    }

    /// Those that have rows.
    pub fn finish(self) -> Vec<Section> {
        let all = [
            (
                "Throughput, latency at half of it or at the given rate, cost",
                COLUMNS,
                self.rows,
            ),
            ("TLS against plaintext", RATIOS, self.tls),
            ("Skerry against the other broker", RATIOS, self.brokers),
        ];
        all.into_iter()
            .filter(|(_, _, rows)| !rows.is_empty())
            .map(|(name, columns, rows)| Section {
                name: name.into(),
                columns,
                rows,
            })
            .collect()
    }
}

/// What one is of the other.
fn ratios(one: &Runs, other: &Runs) -> [Cell; 4] {
    let of = |value: fn(&Run) -> Option<f64>, run: fn(&Runs) -> &Option<Run>| {
        let value = |runs| run(runs).as_ref().and_then(value);
        let (one, other): (f64, f64) = (value(one)?, value(other)?);
        (other > 0.0).then(|| one / other)
    };
    let closed: fn(&Runs) -> &Option<Run> = |runs| &runs.closed;
    let paced: fn(&Runs) -> &Option<Run> = |runs| &runs.paced;
    [
        of(|run| Some(run.work.bytes as f64 / run.seconds), closed).into(),
        of(cpu_per_mb, closed).into(),
        of(cpu_per_mb, paced).into(),
        of(|run| Some(run.quantile(0.99)?.as_secs_f64()), paced).into(),
    ]
}

fn mb(run: &Run) -> f64 {
    run.work.bytes as f64 / 1e6
}

fn cpu_per_mb(run: &Run) -> Option<f64> {
    (run.server.all() > 0.0 && run.work.bytes > 0).then(|| run.server.all() * 1e6 / mb(run))
}

fn row(case: &Case, subject: &Subject, runs: &Runs, known: bool, process: &Process) -> Vec<Cell> {
    let (closed, paced) = (runs.closed.as_ref(), runs.paced.as_ref());
    // A client that does not tell its requests has none.
    let per_request = |run: Option<&Run>, seconds: fn(&Run) -> f64| -> Cell {
        run.filter(|run| known && run.requests > 0)
            .map(|run| seconds(run) * 1e6 / run.requests as f64)
            .into()
    };
    let per_second = |run: Option<&Run>, amount: fn(&Run) -> f64| -> Cell {
        run.map(|run| amount(run) / run.seconds)
            .filter(|rate| *rate > 0.0)
            .into()
    };
    let millis = |share| paced.and_then(|run| run.quantile(share)).map(|l| l.as_secs_f64() * 1e3);
    vec![
        case.name.as_str().into(),
        subject.name().into(),
        per_second(closed, |run| run.requests as f64),
        per_second(closed, |run| run.work.records as f64),
        per_second(closed, mb),
        per_request(closed, |run| run.server.all()),
        closed.and_then(cpu_per_mb).into(),
        per_request(closed, |run| run.server.workers),
        closed.map(|run| run.load / run.seconds * 100.0).into(),
        per_second(paced, |run| run.work.records as f64),
        millis(0.5).into(),
        millis(0.9).into(),
        millis(0.99).into(),
        millis(0.999).into(),
        per_request(paced, |run| run.server.all()),
        paced.and_then(cpu_per_mb).into(),
        process.memory.map(|m| m.resident as f64 / f64::from(1 << 20)).into(),
        process.wrote.filter(|_| !matches!(case.what, What::Fetch)).into(),
    ]
}
