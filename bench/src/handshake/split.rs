//! Where the time of our engine's handshakes goes: by phase, by state, and what neither claims.

use skerry_tls::meter::{Cost, Phase};
use skerry_tls::notes::Notes;
use skerry_tls::state::StateId;
use skerry_tls::trail::Step;

/// What is known of one handshake.
#[derive(Clone, Debug)]
pub struct Sample {
    nanos: u64,
    ticks: u64,
    engine_ticks: u64,
    cost: Cost,
    steps: Vec<Step>,
}

impl Sample {
    /// So many nanoseconds of CPU, so many ticks of the calls in which they were spent and of the engine's in these, and what the engine noted.
    #[must_use]
    pub fn new(nanos: u64, [ticks, engine_ticks]: [u64; 2], notes: &Notes) -> Self {
        Self {
            nanos,
            ticks,
            engine_ticks,
            cost: notes.cost,
            steps: notes.trail.steps().to_vec(),
        }
    }
}

/// Means over the middle half of the handshakes, in microseconds, so that what an interrupt cost one of them is left out and everything adds
/// up: phases, `caller` and `unclaimed` to `total`, and so states, `opening`, `caller` and `unclaimed`.
#[derive(Clone, Debug, PartialEq)]
pub struct Split {
    /// The whole of the server's calls.
    pub total: f64,
    /// By phase.
    pub phases: [f64; Phase::COUNT],
    /// By the state in which a message was taken, in the order of the handshake.
    pub states: Vec<(StateId, f64)>,
    /// Records opened before their state is asked.
    pub opening: f64,
    /// Of the engine's caller: a session made anew and the last one wiped, bytes copied.
    pub caller: f64,
    /// What the engine's meter did not see.
    pub unclaimed: f64,
}

impl Split {
    /// Of these handshakes, if there is one.
    #[must_use]
    pub fn of(mut samples: Vec<Sample>) -> Option<Self> {
        samples.sort_unstable_by_key(|sample| sample.nanos);
        let quarter = samples.len() / 4;
        let middle = samples.get(quarter..samples.len() - quarter)?;
        let sum = |of: &dyn Fn(&Sample) -> u64| middle.iter().map(of).sum::<u64>() as f64;
        let ticks = sum(&|sample| sample.ticks);
        let total = sum(&|sample| sample.nanos) / 1e3 / middle.len() as f64;
        if ticks == 0.0 {
            return None;
        }
        let scale = total / ticks;
        let phases = Phase::ALL.map(|phase| scale * sum(&|sample| sample.cost.of(phase).0));
        let mut states: Vec<(StateId, f64)> = Vec::new();
        for step in middle.iter().flat_map(|sample| &sample.steps) {
            let spent = scale * step.ticks.0 as f64;
            match states.iter_mut().find(|(state, _)| *state == step.from) {
                Some((_, so_far)) => *so_far += spent,
                None => states.push((step.from, spent)),
            }
        }
        let caller = total - scale * sum(&|sample| sample.engine_ticks);
        let claimed: f64 = phases.iter().sum();
        Some(Self {
            total,
            opening: claimed - states.iter().map(|(_, spent)| spent).sum::<f64>(),
            caller,
            unclaimed: total - caller - claimed,
            phases,
            states,
        })
    }

    /// What no phase claims, of the whole.
    #[must_use]
    pub fn unclaimed_share(&self) -> f64 {
        self.unclaimed / self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skerry_core::meter::Ticks;

    #[test]
    fn everything_adds_up() {
        let sample = |nanos, ticks| {
            let mut notes = Notes::default();
            notes.cost.add(Phase::Parse, Ticks(ticks / 10));
            notes.cost.add(Phase::RecordCrypto, Ticks(ticks / 2));
            notes.trail.note(Step {
                from: StateId::AwaitClientHello,
                to: StateId::AwaitClientFinished,
                ticks: Ticks(ticks / 2),
            });
            Sample::new(nanos, [ticks, ticks * 9 / 10], &notes)
        };
        assert_eq!(Split::of(Vec::new()), None);
        // The first and the last are left out.
        let split = Split::of(vec![
            sample(9_000_000, 7),
            sample(1000, 100),
            sample(1000, 100),
            sample(1, 1),
        ])
        .unwrap();
        assert!((split.total - 1.0).abs() < 1e-9, "{split:?}");
        assert!((split.phases.iter().sum::<f64>() - 0.6).abs() < 1e-9, "{split:?}");
        assert!((split.opening - 0.1).abs() < 1e-9, "{split:?}");
        assert!((split.caller - 0.1).abs() < 1e-9, "{split:?}");
        assert!((split.unclaimed_share() - 0.3).abs() < 1e-9, "{split:?}");
        assert_eq!(split.states.len(), 1);
    }
}
