//! The sections of the report on handshakes.

use skerry_tls::meter::Phase;

use super::heap::Heap;
use super::loopback;
use super::memory::Measured;
use super::{Kind, OURS};
use crate::report::{Cell, Column, Section, column};

const MEMORY: &[Column] = &[
    column("kind", "handshake"),
    column("server", "server"),
    column("cpu_us", "CPU µs"),
    column("cpu_us_p10", "p10"),
    column("cpu_us_p99", "p99"),
    column("skerry_ratio", "skerry ÷ it"),
    column("instructions", "instructions"),
    column("cycles", "cycles"),
    column("count", "handshakes"),
];

const TAKEN: &[Column] = &[
    column("kind", "handshake"),
    column("server", "server"),
    column("client_bytes", "bytes from the client"),
    column("server_bytes", "bytes from the server"),
    column("allocations", "allocations"),
    column("heap_bytes", "heap bytes asked for"),
    column("heap_kept_bytes", "heap bytes kept"),
];

const PHASES: &[Column] = &[
    column("kind", "handshake"),
    column("server", "server"),
    column("cpu_us", "CPU µs, mean"),
    column("parse_us", "parse"),
    column("key_exchange_us", "key exchange"),
    column("signature_us", "signature"),
    column("verify_us", "verify"),
    column("key_schedule_us", "key schedule"),
    column("record_crypto_us", "record crypto"),
    column("caller_us", "caller"),
    column("unclaimed_us", "unclaimed"),
    column("unclaimed_percent", "unclaimed %"),
];

const STATES: &[Column] = &[
    column("kind", "handshake"),
    column("server", "server"),
    column("state", "state"),
    column("cpu_us", "CPU µs, mean"),
    column("percent", "%"),
];

const LOOPBACK: &[Column] = &[
    column("kind", "handshake"),
    column("server", "server"),
    column("cpu_us", "CPU µs"),
    column("connection_us", "a connection without a byte"),
    column("net_us", "net"),
    column("kernel_us", "of it system calls"),
    column("skerry_ratio", "skerry ÷ it, net"),
    column("batches", "batches of 50"),
];

/// Microseconds.
const NET_MIN: f64 = 5.0;

/// The tables of a report, filled as kinds are measured.
pub struct Tables {
    memory: Section,
    taken: Section,
    phases: Section,
    states: Section,
    loopback: Section,
}

impl Tables {
    pub fn new() -> Self {
        let section = |name: &str, columns| Section {
            name: name.into(),
            columns,
            rows: Vec::new(),
        };
        Self {
            memory: section("In memory: CPU of the server for one handshake", MEMORY),
            taken: section("Bytes on the wire and from the heap, for one handshake", TAKEN),
            phases: section("Skerry by phase, in µs", PHASES),
            states: section("Skerry by state", STATES),
            loopback: section(
                "Over loopback: CPU of the server's process for one connection with a handshake",
                LOOPBACK,
            ),
        }
    }

    /// Adds what was measured in memory, with what each server took from the heap.
    pub fn in_memory(&mut self, kind: Kind, measured: &[Measured], heaps: &[(String, Heap)]) {
        let ours = measured
            .iter()
            .find(|one| one.name == OURS)
            .and_then(|one| one.times.median());
        for one in measured {
            let who = || -> [Cell; 2] { [kind.to_string().as_str().into(), one.name.as_str().into()] };
            let row = |cells: &[Cell]| who().into_iter().chain(cells.iter().cloned()).collect::<Vec<_>>();
            self.memory.rows.push(row(&[
                one.times.median().into(),
                one.times.quantile(0.1).into(),
                one.times.quantile(0.99).into(),
                ours.zip(one.times.median()).map(|(ours, theirs)| ours / theirs).into(),
                one.counts.map(|[instructions, _]| instructions).into(),
                one.counts.map(|[_, cycles]| cycles).into(),
                one.times.count().into(),
            ]));
            if let Some([up, down]) = one.wire {
                let heap = heaps.iter().find(|(name, _)| *name == one.name).map(|(_, heap)| *heap);
                self.taken.rows.push(row(&[
                    up.into(),
                    down.into(),
                    heap.map(|heap| heap.allocations).into(),
                    heap.and_then(|heap| heap.bytes).into(),
                    heap.map(|heap| heap.kept).into(),
                ]));
            }
            let Some(split) = &one.split else { continue };
            let mut cells = vec![Cell::from(split.total)];
            cells.extend(in_memory_phases().map(|phase| Cell::from(split.phases[phase as usize])));
            cells.extend([
                split.caller.into(),
                split.unclaimed.into(),
                (100.0 * split.unclaimed_share()).into(),
            ]);
            self.phases.rows.push(row(&cells));
            let mut push = |state: &str, spent: f64| {
                self.states
                    .rows
                    .push(row(&[state.into(), spent.into(), (100.0 * spent / split.total).into()]));
            };
            for (state, spent) in &split.states {
                push(state.name(), *spent);
            }
            push("records, before their state is asked", split.opening);
            push("the engine's caller", split.caller);
            push("unclaimed", split.unclaimed);
        }
    }

    /// Adds what was measured over loopback.
    pub fn over_loopback(&mut self, kind: Kind, measured: &[loopback::Measured]) {
        // What is lost in the cost of a connection has no ratio.
        let net = |one: &loopback::Measured| one.net().filter(|net| *net > NET_MIN);
        let ours = measured.iter().find(|one| one.name == OURS).and_then(net);
        for one in measured {
            self.loopback.rows.push(vec![
                kind.to_string().as_str().into(),
                one.name.as_str().into(),
                one.times.median().into(),
                one.plain.median().into(),
                one.net().into(),
                one.kernel().into(),
                ours.zip(net(one)).map(|(ours, theirs)| ours / theirs).into(),
                one.times.count().into(),
            ]);
        }
    }

    /// Those that have rows.
    pub fn sections(self) -> Vec<Section> {
        [self.memory, self.phases, self.states, self.taken, self.loopback]
            .into_iter()
            .filter(|section| !section.rows.is_empty())
            .collect()
    }
}

/// The phases that there are without a kernel.
pub fn in_memory_phases() -> impl Iterator<Item = Phase> {
    Phase::ALL.into_iter().filter(|phase| *phase != Phase::Syscall)
}
