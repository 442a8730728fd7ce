//! What the broker did, counted. Observers get finished reports after a turn, return nothing and cannot steer.

use core::fmt;

use skerry_core::meter::{Cost, Phase};

use crate::conn::End;
use crate::ids::ConnId;

/// One turn of one connection.
#[derive(Clone, Copy, Debug)]
pub struct TurnReport {
    /// Whose.
    pub conn: ConnId,
    /// Its account before the turn.
    pub before: Cost,
    /// Its account after it.
    pub after: Cost,
}

/// What connections hold at a moment: all 0 when none is at work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Pairs of small buffers.
    pub pairs: usize,
    /// Large request buffers.
    pub requests: usize,
    /// Large reply buffers.
    pub replies: usize,
    /// Replies that wait for the disk.
    pub holds: usize,
    /// Partitions that those wait for.
    pub waits: usize,
    /// Partitions that parked fetches wait on.
    pub waiters: usize,
    /// Log files kept open for replies.
    pub pins: usize,
}

/// Counters since start.
#[derive(Clone, Debug, Default)]
pub struct Observe {
    /// Connections accepted.
    pub accepted: u64,
    /// Connections closed by the peer or by us, for no fault.
    pub closed: u64,
    /// Connections closed for a fault of the peer's.
    pub faults: u64,
    /// Turns given.
    pub turns: u64,
    /// The most ticks that one turn took.
    pub longest_turn_ticks: u64,
    /// Ticks by phase, of all connections.
    pub cost: Cost,
}

impl Observe {
    /// A connection was accepted.
    pub const fn on_accept(&mut self) {
        self.accepted += 1;
    }

    /// A connection ended.
    pub const fn on_close(&mut self, end: &End) {
        if end.is_fault() {
            self.faults += 1;
        } else {
            self.closed += 1;
        }
    }

    /// A turn was given.
    pub fn on_turn(&mut self, report: &TurnReport) {
        self.turns += 1;
        let spent = report.after.since(&report.before);
        self.longest_turn_ticks = self.longest_turn_ticks.max(spent.total().0);
        self.cost.merge(&spent);
    }
}

impl fmt::Display for Observe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} connections, {} of them closed for a fault, {} turns; ticks by phase:",
            self.accepted, self.faults, self.turns
        )?;
        for phase in Phase::ALL {
            write!(f, " {} {}", phase.name(), self.cost.of(phase).0)?;
        }
        Ok(())
    }
}
