//! Consumer groups: what the loop and the connections need of them.

use skerry_core::time::Instant;

use crate::ids::ConnId;

/// Every group.
#[derive(Debug, Default)]
pub struct Coordinator {}

impl Coordinator {
    /// Whether the reply that `conn` parked for can be made now.
    #[must_use]
    pub fn is_finished(&self, _conn: ConnId) -> bool {
        false
    }

    /// A connection is gone: nobody waits there for a reply.
    pub fn forget(&mut self, _conn: ConnId) {}

    /// The deadline of a group (by its slot) has come.
    pub fn on_deadline(&mut self, _group: usize, _now: Instant) {}

    /// The next connection whose parked reply can be made now.
    pub fn next_wake(&mut self) -> Option<ConnId> {
        None
    }

    /// The next group (by its slot) whose deadline is another one now.
    pub fn next_deadline(&mut self) -> Option<(usize, Instant)> {
        None
    }
}
