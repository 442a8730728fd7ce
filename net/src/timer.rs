//! Deadlines: one per owner, the earliest at hand.
//!
//! A binary min-heap with an index from owner to place, so that a deadline is moved or taken back where it stands. The loop
//! sleeps until [`Deadlines::next_at`]; nothing ticks while nothing is due.

use skerry_core::time::Instant;

/// At most one deadline for each owner, an owner being an index below the capacity.
///
/// When full: cannot be, since there is a place for every owner.
/// Cost: `arm`, `cancel` and `pop_due` O(log n); `next_at` O(1); 24 bytes per owner, taken at start. No allocation afterwards.
#[derive(Debug)]
pub struct Deadlines {
    heap: Vec<Entry>,
    /// Where each owner's entry is in `heap`; `ABSENT` when it has none.
    places: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    at: Instant,
    owner: u32,
}

const ABSENT: u32 = u32::MAX;

impl Deadlines {
    /// Room for the owners below `capacity`. Allocates, here only.
    #[must_use]
    pub fn new(capacity: u32) -> Self {
        Self {
            heap: Vec::with_capacity(capacity as usize),
            places: vec![ABSENT; capacity as usize],
        }
    }

    /// Bytes that `capacity` owners take: for the memory budget.
    #[must_use]
    pub const fn bytes(capacity: u32) -> usize {
        (capacity as usize).saturating_mul(size_of::<Entry>() + size_of::<u32>())
    }

    /// Sets or moves the owner's deadline. [`Instant::NEVER`] takes it back.
    ///
    /// An owner at or above the capacity is the caller's mistake and ends the program.
    pub fn arm(&mut self, owner: usize, at: Instant) {
        assert!(owner < self.places.len(), "owner beyond the capacity");
        if at == Instant::NEVER {
            self.cancel(owner);
            return;
        }
        let entry = Entry {
            at,
            owner: owner as u32,
        };
        let place = match self.place(owner) {
            Some(place) => place,
            None => {
                self.heap.push(entry);
                self.heap.len() - 1
            }
        };
        self.put(place, entry);
        self.settle(place);
    }

    /// Takes the owner's deadline back, if it has one.
    pub fn cancel(&mut self, owner: usize) {
        if let Some(place) = self.place(owner) {
            self.take(place);
        }
    }

    /// The earliest deadline; [`Instant::NEVER`] when there is none.
    #[must_use]
    pub fn next_at(&self) -> Instant {
        self.heap.first().map_or(Instant::NEVER, |entry| entry.at)
    }

    /// The owner's deadline, if it has one.
    #[must_use]
    pub fn at(&self, owner: usize) -> Option<Instant> {
        self.heap.get(self.place(owner)?).map(|entry| entry.at)
    }

    /// Takes the earliest deadline that has come, and says whose it was.
    pub fn pop_due(&mut self, now: Instant) -> Option<usize> {
        if self.heap.first()?.at > now {
            return None;
        }
        self.take(0)
    }

    /// Deadlines set now.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether none is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    fn place(&self, owner: usize) -> Option<usize> {
        let place = *self.places.get(owner)?;
        (place != ABSENT).then_some(place as usize)
    }

    /// Removes the entry at `place`: the last one takes its place and finds its level.
    fn take(&mut self, place: usize) -> Option<usize> {
        let gone = *self.heap.get(place)?;
        let last = self.heap.pop()?;
        if place < self.heap.len() {
            self.put(place, last);
            self.settle(place);
        }
        *self.places.get_mut(gone.owner as usize)? = ABSENT;
        Some(gone.owner as usize)
    }

    fn put(&mut self, place: usize, entry: Entry) {
        if let Some(spot) = self.heap.get_mut(place) {
            *spot = entry;
        }
        if let Some(spot) = self.places.get_mut(entry.owner as usize) {
            *spot = place as u32;
        }
    }

    /// Moves the entry at `place` up or down until its parent is no later and its children are no earlier.
    fn settle(&mut self, mut place: usize) {
        while place > 0 && self.swap_if_later((place - 1) / 2, place) {
            place = (place - 1) / 2;
        }
        loop {
            let (left, right) = (2 * place + 1, 2 * place + 2);
            let child = if self.is_later(left, right) { right } else { left };
            if !self.swap_if_later(place, child) {
                return;
            }
            place = child;
        }
    }

    fn is_later(&self, a: usize, b: usize) -> bool {
        matches!((self.heap.get(a), self.heap.get(b)), (Some(a), Some(b)) if a.at > b.at)
    }

    fn swap_if_later(&mut self, upper: usize, lower: usize) -> bool {
        let (Some(a), Some(b)) = (self.heap.get(upper).copied(), self.heap.get(lower).copied()) else {
            return false;
        };
        if a.at <= b.at {
            return false;
        }
        self.put(upper, b);
        self.put(lower, a);
        true
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    const fn at(micros: u64) -> Instant {
        Instant::from_micros(micros)
    }

    #[test]
    fn arming_again_moves_the_one_entry() {
        let mut deadlines = Deadlines::new(2);
        deadlines.arm(0, at(10));
        deadlines.arm(1, at(20));
        deadlines.arm(0, at(30));
        assert_eq!((deadlines.len(), deadlines.next_at()), (2, at(20)));
        deadlines.arm(1, Instant::NEVER);
        assert_eq!((deadlines.len(), deadlines.next_at()), (1, at(30)));
        assert_eq!(deadlines.pop_due(at(29)), None);
        assert_eq!(deadlines.pop_due(at(30)), Some(0));
        assert_eq!(deadlines.next_at(), Instant::NEVER);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Arm(usize, u64),
        Cancel(usize),
        Due(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => (0_usize..16, 0_u64..50).prop_map(|(owner, micros)| Step::Arm(owner, micros)),
            1 => (0_usize..17).prop_map(Step::Cancel),
            1 => (0_u64..50).prop_map(Step::Due),
        ]
    }

    proptest! {
        /// Goal: at every moment the heap tells what a map from owner to deadline tells.
        /// Method: owners due at the same instant may come in any order, so the deadline of each one popped is compared.
        #[test]
        fn behaves_as_a_map_of_deadlines(steps in prop::collection::vec(step(), 0..300)) {
            let mut deadlines = Deadlines::new(16);
            let mut model = BTreeMap::new();
            for step in steps {
                match step {
                    Step::Arm(owner, micros) => {
                        deadlines.arm(owner, at(micros));
                        model.insert(owner, at(micros));
                    }
                    Step::Cancel(owner) => {
                        deadlines.cancel(owner);
                        model.remove(&owner);
                    }
                    Step::Due(now) => {
                        while let Some(owner) = deadlines.pop_due(at(now)) {
                            let earliest = model.values().min().copied();
                            let popped = model.remove(&owner);
                            prop_assert!(popped.is_some() && popped == earliest && popped <= Some(at(now)));
                        }
                        prop_assert!(model.values().all(|due| *due > at(now)));
                    }
                }
                prop_assert_eq!(deadlines.len(), model.len());
                prop_assert_eq!(deadlines.is_empty(), model.is_empty());
                prop_assert_eq!(deadlines.next_at(), model.values().min().copied().unwrap_or(Instant::NEVER));
                for owner in 0..17 {
                    prop_assert_eq!(deadlines.at(owner), model.get(&owner).copied());
                }
            }
        }
    }
}
