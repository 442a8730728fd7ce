//! The way that a handshake took: which state followed which, and what each step cost.

use skerry_core::meter::Ticks;

use crate::state::StateId;

/// Steps that a trail holds: more than any handshake has. When full: later ones are counted, not kept.
pub const STEPS_MAX: usize = 16;

/// One change of state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Where it began.
    pub from: StateId,
    /// Where it ended.
    pub to: StateId,
    /// Ticks between the arrival of the message and the end of the transition.
    pub ticks: Ticks,
}

/// The steps of one handshake.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trail {
    steps: heapless::Vec<Step, STEPS_MAX>,
    missed: u32,
}

impl Trail {
    /// Adds a step. When full: it is counted in [`Trail::missed`] only.
    pub fn note(&mut self, step: Step) {
        if self.steps.push(step).is_err() {
            self.missed = self.missed.saturating_add(1);
        }
    }

    /// The steps, oldest first.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Steps that had no room.
    #[must_use]
    pub const fn missed(&self) -> u32 {
        self.missed
    }
}
