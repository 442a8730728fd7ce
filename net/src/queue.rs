//! First come, first served: a bounded queue in which nobody stands twice and anybody can leave.
//!
//! One structure serves the two queues of an event loop: the ready list (a connection that can go on is put in once, however
//! many events say so; a round takes as many as were there at its start, so that everyone has a turn before anyone has two)
//! and the waiting lists (large buffers are given in order of asking, and a connection that closes leaves from the middle).

use crate::Key;

/// A queue of keys, at most one place per index.
///
/// When full: cannot be, since there is a place for every index below the capacity.
/// Cost: every verb is O(1); 12 bytes plus the key per index, taken at start.
#[derive(Debug)]
pub struct Queue<K> {
    links: Vec<Option<Link<K>>>,
    head: u32,
    tail: u32,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
struct Link<K> {
    key: K,
    before: u32,
    after: u32,
}

/// The neighbour of the first and of the last.
const NONE: u32 = u32::MAX;

impl<K: Key> Queue<K> {
    /// A queue for keys with an index below `capacity`. Allocates, here only.
    #[must_use]
    pub fn new(capacity: u32) -> Self {
        Self {
            links: vec![None; capacity as usize],
            head: NONE,
            tail: NONE,
            len: 0,
        }
    }

    /// Bytes that a queue of `capacity` takes: for the memory budget.
    #[must_use]
    pub const fn bytes(capacity: u32) -> usize {
        (capacity as usize).saturating_mul(size_of::<Option<Link<K>>>())
    }

    /// Puts `key` last; false when its index is in the queue already (it keeps its place).
    ///
    /// An index at or above the capacity is the caller's mistake and ends the program.
    pub fn push(&mut self, key: K) -> bool {
        let index = key.index();
        assert!(index < self.links.len(), "index beyond the queue's capacity");
        if self.contains(index) {
            return false;
        }
        let link = Link {
            key,
            before: self.tail,
            after: NONE,
        };
        match self.link_mut(self.tail) {
            Some(last) => last.after = index as u32,
            None => self.head = index as u32,
        }
        self.tail = index as u32;
        if let Some(place) = self.links.get_mut(index) {
            *place = Some(link);
        }
        self.len += 1;
        true
    }

    /// Takes the first.
    pub fn pop(&mut self) -> Option<K> {
        self.remove(self.head as usize)
    }

    /// The first, left where it is.
    #[must_use]
    pub fn peek(&self) -> Option<K> {
        self.links.get(self.head as usize)?.map(|link| link.key)
    }

    /// Takes out whoever stands there with that index.
    pub fn remove(&mut self, index: usize) -> Option<K> {
        let link = self.links.get_mut(index)?.take()?;
        match self.link_mut(link.before) {
            Some(before) => before.after = link.after,
            None => self.head = link.after,
        }
        match self.link_mut(link.after) {
            Some(after) => after.before = link.before,
            None => self.tail = link.before,
        }
        self.len -= 1;
        Some(link.key)
    }

    /// Whether someone stands there with that index.
    #[must_use]
    pub fn contains(&self, index: usize) -> bool {
        matches!(self.links.get(index), Some(Some(_)))
    }

    /// How many wait.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether nobody waits.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn link_mut(&mut self, index: u32) -> Option<&mut Link<K>> {
        self.links.get_mut(index as usize)?.as_mut()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_round_gives_everyone_one_turn() {
        let mut ready = Queue::<u32>::new(4);
        for index in [2, 0, 2, 3] {
            ready.push(index);
        }
        let mut turns = Vec::new();
        for _ in 0..ready.len() {
            let index = ready.pop().unwrap();
            turns.push(index);
            ready.push(index); // There is more to do: it goes to the end.
        }
        assert_eq!(turns, [2, 0, 3]);
        assert_eq!(ready.peek(), Some(2));
    }

    #[derive(Clone, Debug)]
    enum Step {
        Push(u32),
        Pop,
        Remove(u32),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0_u32..8).prop_map(Step::Push),
            Just(Step::Pop),
            (0_u32..9).prop_map(Step::Remove)
        ]
    }

    proptest! {
        #[test]
        fn behaves_as_a_deque_without_duplicates(steps in prop::collection::vec(step(), 0..200)) {
            let mut queue = Queue::<u32>::new(8);
            let mut model = VecDeque::new();
            for step in steps {
                match step {
                    Step::Push(key) => {
                        let new = !model.contains(&key);
                        prop_assert_eq!(queue.push(key), new);
                        if new {
                            model.push_back(key);
                        }
                    }
                    Step::Pop => prop_assert_eq!(queue.pop(), model.pop_front()),
                    Step::Remove(key) => {
                        let place = model.iter().position(|k| *k == key);
                        prop_assert_eq!(queue.remove(key as usize), place.and_then(|p| model.remove(p)));
                    }
                }
                prop_assert_eq!(queue.len(), model.len());
                prop_assert_eq!(queue.is_empty(), model.is_empty());
                prop_assert_eq!(queue.peek(), model.front().copied());
                for key in 0..9 {
                    prop_assert_eq!(queue.contains(key as usize), model.contains(&key));
                }
            }
            while let Some(key) = queue.pop() {
                prop_assert_eq!(Some(key), model.pop_front());
            }
            prop_assert!(model.is_empty());
        }
    }
}
