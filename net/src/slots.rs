//! A table of fixed capacity whose ids go stale when their entry goes.
//!
//! An id is an index and a generation. Removing an entry raises the generation of its place, so whoever still holds the old
//! id (an event, a deadline, a waiting list) finds nothing instead of a stranger.

use core::fmt;

use crate::{Full, Key};

/// The name of an entry of a [`Slots`]: where it is, and which of the entries that have been there.
///
/// A generation is used again after 2³² removals at the same place.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SlotId {
    index: u32,
    generation: u32,
}

impl SlotId {
    /// The place in the table, below its capacity: the key of side tables (deadlines, queues).
    #[must_use]
    pub const fn index(self) -> usize {
        self.index as usize
    }

    /// Both numbers in one word, for marks that travel through the host.
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        (self.generation as u64) << 32 | self.index as u64
    }

    /// Undoes [`SlotId::to_bits`]. Any word is accepted: one that names nothing finds nothing.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self {
            index: bits as u32,
            generation: (bits >> 32) as u32,
        }
    }
}

impl fmt::Debug for SlotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.index, self.generation)
    }
}

impl Key for SlotId {
    fn index(self) -> usize {
        self.index()
    }
}

/// Entries of `T`, at most as many as were said at start.
///
/// The memory is reserved at once and touched only as places are first used; freed places are used again last-in first-out,
/// so that a quiet table stays small in memory and warm in cache.
///
/// When full: [`Slots::insert`] answers [`Full`].
/// Cost: insert, look-up and removal are O(1); iteration walks the places used so far.
#[derive(Debug)]
pub struct Slots<T> {
    entries: Vec<Entry<T>>,
    capacity: usize,
    free_head: u32,
    len: usize,
}

#[derive(Debug)]
struct Entry<T> {
    generation: u32,
    state: State<T>,
}

#[derive(Debug)]
enum State<T> {
    Held(T),
    Free { next: u32 },
}

/// End of the free list. No place has this index: capacities stop below it.
const NONE: u32 = u32::MAX;

impl<T> Slots<T> {
    /// A table for `capacity` entries (below 2³² − 1). Allocates, here only.
    #[must_use]
    pub fn new(capacity: u32) -> Self {
        assert!(capacity < NONE, "capacity leaves no index for the end of the free list");
        Self {
            entries: Vec::with_capacity(capacity as usize),
            capacity: capacity as usize,
            free_head: NONE,
            len: 0,
        }
    }

    /// Bytes that a table for `capacity` entries takes: for the memory budget.
    #[must_use]
    pub const fn bytes(capacity: u32) -> usize {
        (capacity as usize).saturating_mul(size_of::<Entry<T>>())
    }

    /// Puts `value` in a free place.
    ///
    /// When full: [`Full`]; the value is dropped. Ask [`Slots::is_full`] first when it owns something.
    pub fn insert(&mut self, value: T) -> Result<SlotId, Full> {
        if let Some(entry) = self.entries.get_mut(self.free_head as usize) {
            let State::Free { next } = entry.state else {
                return Err(Full);
            };
            let id = SlotId {
                index: self.free_head,
                generation: entry.generation,
            };
            entry.state = State::Held(value);
            self.free_head = next;
            self.len += 1;
            return Ok(id);
        }
        if self.entries.len() == self.capacity {
            return Err(Full);
        }
        let index = self.entries.len() as u32;
        self.entries.push(Entry {
            generation: 0,
            state: State::Held(value),
        });
        self.len += 1;
        Ok(SlotId { index, generation: 0 })
    }

    /// Takes an entry out; from here on its id names nothing.
    pub fn remove(&mut self, id: SlotId) -> Option<T> {
        let entry = self.entries.get_mut(id.index())?;
        if entry.generation != id.generation || matches!(entry.state, State::Free { .. }) {
            return None;
        }
        let free = State::Free { next: self.free_head };
        let State::Held(value) = core::mem::replace(&mut entry.state, free) else {
            return None;
        };
        entry.generation = entry.generation.wrapping_add(1);
        self.free_head = id.index;
        self.len -= 1;
        Some(value)
    }

    /// The entry of that id, unless it is gone.
    #[must_use]
    pub fn get(&self, id: SlotId) -> Option<&T> {
        match self.entries.get(id.index()) {
            Some(Entry {
                generation,
                state: State::Held(value),
            }) if *generation == id.generation => Some(value),
            _ => None,
        }
    }

    /// The entry of that id, unless it is gone, to be changed.
    #[must_use]
    pub fn get_mut(&mut self, id: SlotId) -> Option<&mut T> {
        match self.entries.get_mut(id.index()) {
            Some(Entry {
                generation,
                state: State::Held(value),
            }) if *generation == id.generation => Some(value),
            _ => None,
        }
    }

    /// The id of whatever is at `index` now: how an owner comes back from a side table.
    #[must_use]
    pub fn id_at(&self, index: usize) -> Option<SlotId> {
        match self.entries.get(index)? {
            Entry {
                generation,
                state: State::Held(_),
            } => Some(SlotId {
                index: index as u32,
                generation: *generation,
            }),
            Entry { .. } => None,
        }
    }

    /// Every entry, in order of place.
    pub fn iter(&self) -> impl Iterator<Item = (SlotId, &T)> {
        self.entries
            .iter()
            .enumerate()
            .filter_map(|(index, entry)| match &entry.state {
                State::Held(value) => Some((
                    SlotId {
                        index: index as u32,
                        generation: entry.generation,
                    },
                    value,
                )),
                State::Free { .. } => None,
            })
    }

    /// Every entry, in order of place, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (SlotId, &mut T)> {
        self.entries
            .iter_mut()
            .enumerate()
            .filter_map(|(index, entry)| match &mut entry.state {
                State::Held(value) => Some((
                    SlotId {
                        index: index as u32,
                        generation: entry.generation,
                    },
                    value,
                )),
                State::Free { .. } => None,
            })
    }

    /// Entries held now.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing is held.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether [`Slots::insert`] would be refused.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.len == self.capacity
    }

    /// Entries that fit.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.capacity
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_removed_id_never_finds_its_successor() {
        let mut slots = Slots::new(1);
        let first = slots.insert("first").unwrap();
        assert_eq!(slots.insert("second"), Err(Full));
        assert_eq!(slots.remove(first), Some("first"));
        let second = slots.insert("second").unwrap();
        assert_eq!(first.index(), second.index());
        assert_eq!(slots.get(first), None);
        assert_eq!(slots.remove(first), None);
        assert_eq!(slots.get(second), Some(&"second"));
        assert_eq!(slots.id_at(0), Some(second));
    }

    #[test]
    fn bits_keep_both_numbers() {
        let id = SlotId {
            index: 0xdead_beef,
            generation: 0x0102_0304,
        };
        assert_eq!(SlotId::from_bits(id.to_bits()), id);
        assert_eq!(Slots::<u8>::new(4).get(SlotId::from_bits(u64::MAX)), None);
    }

    proptest! {
        /// Goal: the table holds what a map of ids holds, whatever the order of insertions and removals.
        #[test]
        fn behaves_as_a_map(capacity in 0_u32..6, steps in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 0..200)) {
            let mut slots = Slots::new(capacity);
            let mut model = BTreeMap::new();
            let mut gone = Vec::new();
            for (number, (insert, pick)) in steps.into_iter().enumerate() {
                if insert {
                    match slots.insert(number) {
                        Ok(id) => prop_assert!(model.insert(id, number).is_none(), "an id was given twice"),
                        Err(Full) => prop_assert_eq!(model.len(), capacity as usize),
                    }
                } else if !model.is_empty() {
                    let id = *pick.get(&model.keys().copied().collect::<Vec<_>>());
                    prop_assert_eq!(slots.remove(id), model.remove(&id));
                    gone.push(id);
                }
                prop_assert_eq!(slots.len(), model.len());
                prop_assert_eq!(slots.is_full(), model.len() == capacity as usize);
                prop_assert_eq!(slots.iter().map(|(id, v)| (id, *v)).collect::<BTreeMap<_, _>>(), model.clone());
                for id in &gone {
                    prop_assert_eq!(slots.get(*id), None);
                }
                for (id, value) in &mut model {
                    prop_assert_eq!(slots.get_mut(*id), Some(value));
                    prop_assert_eq!(slots.id_at(id.index()), Some(*id));
                }
            }
        }
    }
}
