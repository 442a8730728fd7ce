//! What a handshake costs, by phase. Ticks come from the caller and only divide: the owner scales them by thread-CPU time.

use skerry_core::meter::{Laps, Ticks};

/// The phases of a handshake that are charged separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// Reading and writing messages, and choosing.
    Parse,
    /// Making and agreeing on shares.
    KeyExchange,
    /// Our signature.
    Signature,
    /// The peer's chain and signature.
    Verify,
    /// Hashes, secrets and keys.
    KeySchedule,
    /// Opening and sealing records, tickets included.
    RecordCrypto,
    /// The caller's system calls.
    Syscall,
}

impl Phase {
    /// Number of phases.
    pub const COUNT: usize = 7;
    /// Every phase.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Parse,
        Self::KeyExchange,
        Self::Signature,
        Self::Verify,
        Self::KeySchedule,
        Self::RecordCrypto,
        Self::Syscall,
    ];

    /// The name used in metrics and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Parse => "parse",
            Self::KeyExchange => "key_exchange",
            Self::Signature => "signature",
            Self::Verify => "verify",
            Self::KeySchedule => "key_schedule",
            Self::RecordCrypto => "record_crypto",
            Self::Syscall => "syscall",
        }
    }
}

/// Ticks per phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    by_phase: [u64; Phase::COUNT],
}

impl Cost {
    /// Charges `ticks` to `phase`; saturates.
    pub fn add(&mut self, phase: Phase, ticks: Ticks) {
        if let Some(slot) = self.by_phase.get_mut(phase as usize) {
            *slot = slot.saturating_add(ticks.0);
        }
    }

    /// Adds another account to this one; saturates.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.by_phase.iter_mut().zip(other.by_phase) {
            *mine = mine.saturating_add(theirs);
        }
    }

    /// Ticks charged to one phase.
    #[must_use]
    pub fn of(&self, phase: Phase) -> Ticks {
        Ticks(self.by_phase.get(phase as usize).copied().unwrap_or(0))
    }

    /// Ticks charged to all phases.
    #[must_use]
    pub fn total(&self) -> Ticks {
        Ticks(self.by_phase.iter().fold(0, |sum, t| sum.saturating_add(*t)))
    }
}

/// A stopwatch over the caller's counter, charging as it goes.
pub struct Meter<'a> {
    ticks: &'a dyn Fn() -> Ticks,
    laps: Laps,
    cost: Cost,
}

impl<'a> Meter<'a> {
    /// Starts now.
    #[must_use]
    pub fn start(ticks: &'a dyn Fn() -> Ticks) -> Self {
        Self {
            laps: Laps::start(ticks()),
            ticks,
            cost: Cost::default(),
        }
    }

    /// Ends a phase: what passed since the last call is charged to it.
    pub fn charge(&mut self, phase: Phase) {
        let spent = self.laps.lap((self.ticks)());
        self.cost.add(phase, spent);
    }

    /// What was charged so far.
    #[must_use]
    pub const fn cost(&self) -> &Cost {
        &self.cost
    }
}
