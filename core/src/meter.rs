//! What a turn cost: ticks taken at stage boundaries and charged to phases.
//!
//! Each reading ends one phase and begins the next, so nothing is lost or counted twice. Ticks come from the caller (a cycle or
//! generic timer counter) and only divide: the owner scales them by the turn's thread-CPU time.

/// A reading, or a difference, of a free-running tick counter. The unit is the counter's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Ticks(pub u64);

/// The stages of a connection's turn that are charged separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum Phase {
    /// Receiving from the socket.
    Read,
    /// Opening protected records.
    Open,
    /// Handshake work.
    Handshake,
    /// Framing and decoding a request.
    Decode,
    /// Handling: state changes and log appends.
    Handle,
    /// Encoding the reply.
    Encode,
    /// Sealing records.
    Seal,
    /// Sending to the socket, `sendfile` included.
    Write,
}

impl Phase {
    /// Number of phases.
    pub const COUNT: usize = 8;

    /// Every phase, in charging order.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Read,
        Self::Open,
        Self::Handshake,
        Self::Decode,
        Self::Handle,
        Self::Encode,
        Self::Seal,
        Self::Write,
    ];

    /// The name used in metrics and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Open => "open",
            Self::Handshake => "handshake",
            Self::Decode => "decode",
            Self::Handle => "handle",
            Self::Encode => "encode",
            Self::Seal => "seal",
            Self::Write => "write",
        }
    }
}

/// Ticks per phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Cost {
    by_phase: [u64; Phase::COUNT],
}

impl Cost {
    /// Nothing spent.
    pub const ZERO: Self = Self {
        by_phase: [0; Phase::COUNT],
    };

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

    /// What was charged since `earlier`, a former state of this account.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut spent = *self;
        for (mine, theirs) in spent.by_phase.iter_mut().zip(earlier.by_phase) {
            *mine = mine.saturating_sub(theirs);
        }
        spent
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

/// A running stopwatch over one counter: each [`lap`](Laps::lap) ends a phase and starts the next.
#[derive(Clone, Copy, Debug)]
pub struct Laps {
    last: Ticks,
}

impl Laps {
    /// Starts at `now`.
    #[must_use]
    pub const fn start(now: Ticks) -> Self {
        Self { last: now }
    }

    /// Ticks since the previous reading; a counter that went back counts as zero.
    pub fn lap(&mut self, now: Ticks) -> Ticks {
        let spent = now.0.saturating_sub(self.last.0);
        self.last = now;
        Ticks(spent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laps_add_up_to_the_whole() {
        let mut laps = Laps::start(Ticks(100));
        let mut cost = Cost::ZERO;
        cost.add(Phase::Read, laps.lap(Ticks(130)));
        cost.add(Phase::Handle, laps.lap(Ticks(190)));
        cost.add(Phase::Handle, laps.lap(Ticks(200)));
        assert_eq!(cost.of(Phase::Read), Ticks(30));
        assert_eq!(cost.of(Phase::Handle), Ticks(70));
        assert_eq!(cost.total(), Ticks(100));
    }
}
