//! The states of a group, what each carries, and the legal moves between them.

use crate::time::{Instant, Millis};

/// A group's state by name: for tables, replies, logs and tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum StateId {
    /// No members. There because it holds offsets, or was left or asked for a short while ago.
    Empty,
    /// Members are asked to join the next generation.
    PreparingRebalance,
    /// Everybody has joined; the leader's assignment is awaited.
    CompletingRebalance,
    /// The generation's assignment is known.
    Stable,
    /// Not in the table.
    Dead,
}

impl StateId {
    /// Every state.
    pub const ALL: [Self; 5] = [
        Self::Empty,
        Self::PreparingRebalance,
        Self::CompletingRebalance,
        Self::Stable,
        Self::Dead,
    ];

    /// The name in DescribeGroups and ListGroups.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::PreparingRebalance => "PreparingRebalance",
            Self::CompletingRebalance => "CompletingRebalance",
            Self::Stable => "Stable",
            Self::Dead => "Dead",
        }
    }
}

/// Every legal move, from and to.
pub const MOVES: [(StateId, StateId); 8] = [
    // The first join or commit.
    (StateId::Dead, StateId::Empty),
    // A member joins.
    (StateId::Empty, StateId::PreparingRebalance),
    // Deleted, or empty for long and without offsets, or its place was needed.
    (StateId::Empty, StateId::Dead),
    // All members joined, or the time for it is over.
    (StateId::PreparingRebalance, StateId::CompletingRebalance),
    // The last member left before that.
    (StateId::PreparingRebalance, StateId::Empty),
    // The leader's assignment came.
    (StateId::CompletingRebalance, StateId::Stable),
    // A member joins with something new, leaves or fails before the assignment came,
    (StateId::CompletingRebalance, StateId::PreparingRebalance),
    // or after it.
    (StateId::Stable, StateId::PreparingRebalance),
];

/// A state and what only that state has. Each `until` is when the group moves on by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Empty {
        /// When the group is forgotten; never while it holds offsets.
        until: Instant,
    },
    PreparingRebalance {
        /// When the members that have joined go on without the others.
        until: Instant,
        /// Of the rebalance that begins with an empty group.
        first: Option<FirstRound>,
    },
    CompletingRebalance {
        /// When the members that have not asked for their assignment are removed.
        until: Instant,
    },
    Stable {
        /// The same, for members that were late; never once all have asked.
        until: Instant,
    },
    Dead,
}

/// The first rebalance waits for `group.initial.rebalance.delay.ms`, and again as long as new members keep coming, but not longer
/// than the rebalance timeout in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FirstRound {
    /// How long the present wait is.
    pub(super) delay: Millis,
    /// How much longer it may be put off after the present wait.
    pub(super) remaining: Millis,
    /// A member was added during the present wait.
    pub(super) extended: bool,
}

impl State {
    pub(super) const fn id(&self) -> StateId {
        match self {
            Self::Empty { .. } => StateId::Empty,
            Self::PreparingRebalance { .. } => StateId::PreparingRebalance,
            Self::CompletingRebalance { .. } => StateId::CompletingRebalance,
            Self::Stable { .. } => StateId::Stable,
            Self::Dead => StateId::Dead,
        }
    }

    pub(super) const fn until(&self) -> Instant {
        match self {
            Self::Empty { until }
            | Self::PreparingRebalance { until, .. }
            | Self::CompletingRebalance { until }
            | Self::Stable { until } => *until,
            Self::Dead => Instant::NEVER,
        }
    }

    /// Puts the end of the state off, or brings it near.
    pub(super) const fn set_until(&mut self, at: Instant) {
        match self {
            Self::Empty { until }
            | Self::PreparingRebalance { until, .. }
            | Self::CompletingRebalance { until }
            | Self::Stable { until } => *until = at,
            Self::Dead => {}
        }
    }
}
