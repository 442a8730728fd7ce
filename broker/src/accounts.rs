//! Where the thread's CPU time goes: to connections by phase, and to what the loop does beside them.
//!
//! Inside, laps of the tick counter divide; at the ends the thread's CPU clock says how much there is to divide. It is read where the loop is
//! about to sleep and where it wakes, so that a loop under load, which does not sleep, reads it never; and what the thread did not run of a
//! stretch (another program had the core, a disk was waited for) is nobody's. Every lap has its account, so that all accounts together are
//! the thread's CPU time; ticks that no lap ended would be told as `skerry_unclaimed_cpu_seconds`.
//!
//! Cost: a system call before and one after each sleep, a reading of the counter at each lap. Only a broker that serves metrics pays it.

use skerry_core::meter::{Cost, Laps, Phase, Ticks};

/// What the loop does beside connections' turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Chore {
    /// Everything before the loop: files read, memory taken.
    Start,
    /// Asking what is ready, and going to sleep and waking.
    Wait,
    /// Scrapes of metrics, and signals.
    Serve,
    /// Accepting connections.
    Accept,
    /// Completions of the disk, and whom they wake.
    Complete,
    /// Deadlines.
    Deadlines,
    /// Around turns: choosing whose it is, lending buffers, closing.
    Schedule,
    /// After turns: wake-ups and flushes.
    Settle,
}

impl Chore {
    /// Number of chores.
    pub const COUNT: usize = 8;

    /// Every chore.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Start,
        Self::Wait,
        Self::Serve,
        Self::Accept,
        Self::Complete,
        Self::Deadlines,
        Self::Schedule,
        Self::Settle,
    ];

    /// The name used in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Wait => "wait",
            Self::Serve => "serve",
            Self::Accept => "accept",
            Self::Complete => "complete",
            Self::Deadlines => "deadlines",
            Self::Schedule => "schedule",
            Self::Settle => "settle",
        }
    }
}

/// The accounts of one thread, in nanoseconds of its CPU time.
#[derive(Clone, Debug)]
pub struct Accounts {
    connections: [u64; Phase::COUNT],
    chores: [u64; Chore::COUNT],
    /// Ticks of the stretch under way.
    cost: Cost,
    laps_of: [u64; Chore::COUNT],
    laps: Laps,
    /// The CPU clock and the counter where the stretch began.
    since: (u64, Ticks),
    /// CPU time and ticks of all stretches: how long a tick lasts.
    stretched: (u64, u64),
}

impl Accounts {
    /// The loop begins, with `cpu_ns` on the thread's clock.
    #[must_use]
    pub fn start(cpu_ns: u64, ticks: Ticks) -> Self {
        Self {
            connections: [0; Phase::COUNT],
            chores: Chore::ALL.map(|chore| if chore == Chore::Start { cpu_ns } else { 0 }),
            cost: Cost::ZERO,
            laps_of: [0; Chore::COUNT],
            laps: Laps::start(ticks),
            since: (cpu_ns, ticks),
            stretched: (0, 0),
        }
    }

    /// What passed since the last lap was this chore.
    pub fn lap(&mut self, chore: Chore, ticks: Ticks) {
        let spent = self.laps.lap(ticks);
        self.add(chore, spent.0);
    }

    /// What passed since the last lap were turns, of which connections were charged with `spent`; the rest is [`Chore::Schedule`]'s.
    pub fn turns(&mut self, spent: &Cost, ticks: Ticks) {
        let passed = self.laps.lap(ticks);
        self.cost.merge(spent);
        self.add(Chore::Schedule, passed.0.saturating_sub(spent.total().0));
    }

    fn add(&mut self, chore: Chore, ticks: u64) {
        if let Some(sum) = self.laps_of.get_mut(chore as usize) {
            *sum = sum.saturating_add(ticks);
        }
    }

    /// A stretch ends here: every account gets the part of its CPU time that its laps are of all ticks. The next one begins.
    pub fn divide(&mut self, cpu_ns: u64, ticks: Ticks) {
        let (since_ns, since) = self.since;
        let (ran, ticked) = (cpu_ns.saturating_sub(since_ns), ticks.0.saturating_sub(since.0));
        // Too short for the counter: it stays in the stretch.
        if ticked == 0 {
            return;
        }
        let share = ran as f64 / ticked as f64;
        let part = |ticks: u64| (ticks as f64 * share).round() as u64;
        for (sum, phase) in self.connections.iter_mut().zip(Phase::ALL) {
            *sum += part(self.cost.of(phase).0);
        }
        for (sum, ticks) in self.chores.iter_mut().zip(&mut self.laps_of) {
            *sum += part(core::mem::take(ticks));
        }
        self.cost = Cost::ZERO;
        self.since = (cpu_ns, ticks);
        self.stretched.0 = self.stretched.0.saturating_add(ran);
        self.stretched.1 = self.stretched.1.saturating_add(ticked);
    }

    /// The thread was asleep since [`Accounts::divide`]: what it ran meanwhile was the way there and back.
    pub fn wake(&mut self, cpu_ns: u64, ticks: Ticks) {
        if let Some(sum) = self.chores.get_mut(Chore::Wait as usize) {
            *sum += cpu_ns.saturating_sub(self.since.0);
        }
        self.since = (cpu_ns, ticks);
        self.laps = Laps::start(ticks);
    }

    /// Seconds of CPU time in one tick, on the average of all stretches; `None` before the first.
    #[must_use]
    pub fn tick_seconds(&self) -> Option<f64> {
        let (ran_ns, ticks) = self.stretched;
        (ticks > 0).then(|| ran_ns as f64 / 1e9 / ticks as f64)
    }

    /// CPU seconds that connections are charged with, by phase.
    pub fn connections(&self) -> impl Iterator<Item = (&'static str, f64)> + '_ {
        let seconds = self.connections.iter().map(|ns| *ns as f64 / 1e9);
        Phase::ALL.iter().map(|phase| phase.name()).zip(seconds)
    }

    /// CPU seconds beside connections, by chore.
    pub fn chores(&self) -> impl Iterator<Item = (&'static str, f64)> + '_ {
        let seconds = self.chores.iter().map(|ns| *ns as f64 / 1e9);
        Chore::ALL.iter().map(|chore| chore.name()).zip(seconds)
    }

    /// CPU seconds of all accounts together.
    #[must_use]
    pub fn claimed(&self) -> f64 {
        self.connections.iter().chain(&self.chores).sum::<u64>() as f64 / 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(accounts: &Accounts, chore: Chore) -> u64 {
        accounts.chores[chore as usize]
    }

    #[test]
    fn a_stretch_is_divided_by_its_laps() {
        let mut accounts = Accounts::start(700, Ticks(1000));
        accounts.lap(Chore::Accept, Ticks(1010));
        let mut spent = Cost::ZERO;
        spent.add(Phase::Handle, Ticks(60));
        accounts.turns(&spent, Ticks(1080));
        accounts.lap(Chore::Settle, Ticks(1100));
        // The thread ran for half of the ticks' time only.
        accounts.divide(750, Ticks(1100));
        assert_eq!(of(&accounts, Chore::Start), 700);
        assert_eq!(of(&accounts, Chore::Accept), 5);
        assert_eq!(accounts.connections[Phase::Handle as usize], 30);
        assert_eq!(of(&accounts, Chore::Schedule), 5);
        assert_eq!(of(&accounts, Chore::Settle), 10);
        // Asleep for long, and little of it on the processor.
        accounts.wake(757, Ticks(9000));
        assert_eq!(of(&accounts, Chore::Wait), 7);
        accounts.lap(Chore::Wait, Ticks(9004));
        accounts.divide(761, Ticks(9004));
        assert_eq!(of(&accounts, Chore::Wait), 11);
        assert_eq!(accounts.claimed(), 761e-9, "nothing is lost");
        assert_eq!(accounts.tick_seconds(), Some(54e-9 / 104.0));
        // What no lap ends is in no account.
        accounts.lap(Chore::Wait, Ticks(9005));
        accounts.divide(763, Ticks(9006));
        assert_eq!(accounts.claimed(), 762e-9);
    }

    #[test]
    fn what_is_too_short_for_a_tick_goes_to_the_next_stretch() {
        let mut accounts = Accounts::start(0, Ticks(0));
        assert_eq!(accounts.tick_seconds(), None);
        accounts.divide(3, Ticks(0));
        accounts.lap(Chore::Wait, Ticks(2));
        accounts.divide(5, Ticks(2));
        assert_eq!(accounts.claimed(), 5e-9);
    }
}
