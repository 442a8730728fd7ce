//! What is known of idempotent producers, all partitions' in one bounded table.

use skerry_core::machine::producer::{self, Entry, Incoming};
use skerry_core::table::{self, Row, Table};
use skerry_net::queue::Queue;

use crate::ids::PartitionIx;
use crate::memory::{Owned, OwnedRows};

#[derive(Debug)]
struct Known {
    ix: PartitionIx,
    entry: Entry,
}

/// The table.
///
/// When full: the longest idle producer goes whose batches are all durable (a duplicate of one that is not would be appended
/// again); when there is none, a new producer is refused.
pub(super) struct Producers {
    known: Table<Known, Owned>,
    /// Rows, the longest idle first.
    idle: Queue<u32>,
    producers_max: u32,
}

impl Producers {
    pub(super) fn new(producers: u32) -> Self {
        Self {
            known: Table::new(OwnedRows::new(producers), OwnedRows::filled(0, producers.max(1))),
            idle: Queue::new(producers),
            producers_max: producers,
        }
    }

    pub(super) const fn bytes(producers: u32) -> u64 {
        producers as u64 * (size_of::<Row<Known>>() as u64 + 4) + Queue::<u32>::bytes(producers) as u64
    }

    /// What is known of a producer in a partition.
    pub(super) fn find(&self, ix: PartitionIx, producer_id: i64) -> Option<&Entry> {
        self.known.get(self.key(ix, producer_id)?).map(|known| &known.entry)
    }

    /// Makes sure that [`Producers::commit`] has a place. `durable` says up to where a partition may be forgotten.
    /// Cost: a step for each producer with undurable batches that has been idle longest.
    #[must_use]
    pub(super) fn reserve(&mut self, ix: PartitionIx, producer_id: i64, durable: impl Fn(PartitionIx) -> i64) -> bool {
        if self.known.len() < self.producers_max || self.key(ix, producer_id).is_some() {
            return true;
        }
        for _ in 0..self.idle.len() {
            let Some(row) = self.idle.pop() else { break };
            let Some(key) = self.known.key_at(row) else { continue };
            let forgettable = self
                .known
                .get(key)
                .is_some_and(|known| known.entry.newest().last_offset < durable(known.ix));
            if forgettable {
                self.known.remove(key);
                return true;
            }
            self.idle.push(row);
        }
        false
    }

    /// Takes note of a batch that was written. When full: nothing is noted.
    pub(super) fn commit(&mut self, ix: PartitionIx, batch: &Incoming, base_offset: i64) {
        let entry = producer::commit(self.find(ix, batch.producer_id), batch, base_offset);
        self.put(ix, entry);
    }

    /// Takes in an entry as it is.
    pub(super) fn put(&mut self, ix: PartitionIx, entry: Entry) {
        let key = match self.key(ix, entry.producer_id()) {
            Some(key) => {
                if let Some(known) = self.known.get_mut(key) {
                    known.entry = entry;
                }
                key
            }
            None => match self.known.insert(hash(ix, entry.producer_id()), Known { ix, entry }) {
                Ok(key) => key,
                Err(_) => return,
            },
        };
        self.idle.remove(key.row() as usize);
        self.idle.push(key.row());
    }

    /// Every producer of a partition. Cost: a look at the whole table.
    pub(super) fn of(&self, ix: PartitionIx) -> impl Iterator<Item = &Entry> {
        self.known
            .iter()
            .filter(move |(_, known)| known.ix == ix)
            .map(|(_, known)| &known.entry)
    }

    /// Forgets every producer of a partition. Cost: a look at the whole table.
    pub(super) fn forget(&mut self, ix: PartitionIx) {
        for row in 0..self.producers_max {
            if let Some(key) = self.known.key_at(row)
                && self.known.get(key).is_some_and(|known| known.ix == ix)
            {
                self.known.remove(key);
                self.idle.remove(row as usize);
            }
        }
    }

    fn key(&self, ix: PartitionIx, producer_id: i64) -> Option<table::Key> {
        self.known.find(hash(ix, producer_id), |known| {
            known.ix == ix && known.entry.producer_id() == producer_id
        })
    }
}

impl core::fmt::Debug for Producers {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Producers")
            .field("known", &self.known.len())
            .finish_non_exhaustive()
    }
}

/// Producer ids are given out by the broker, so nobody chooses which ones share a chain.
fn hash(ix: PartitionIx, producer_id: i64) -> u32 {
    table::hash(0, &[&ix.0.to_le_bytes(), &producer_id.to_le_bytes()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(producer_id: i64, base_sequence: i32) -> Incoming {
        Incoming {
            producer_id,
            epoch: 0,
            base_sequence,
            last_offset_delta: 0,
            timestamp: 0,
        }
    }

    const P: PartitionIx = PartitionIx(1);
    const Q: PartitionIx = PartitionIx(2);

    #[test]
    fn the_longest_idle_durable_producer_makes_room() {
        let mut producers = Producers::new(3);
        for (at, id) in [7, 8, 9].into_iter().enumerate() {
            assert!(producers.reserve(P, id, |_| 0));
            producers.commit(P, &batch(id, 0), at as i64);
        }
        producers.commit(P, &batch(7, 1), 3);
        assert!(!producers.reserve(Q, 7, |_| 0), "nothing is durable");
        assert!(producers.reserve(P, 8, |_| 0), "it is known already");
        assert!(producers.reserve(Q, 7, |_| 3));
        producers.commit(Q, &batch(7, 0), 0);
        assert!(producers.find(P, 8).is_none());
        assert_eq!(producers.find(P, 7).map(Entry::last_sequence), Some(1));
        assert_eq!(producers.of(P).count(), 2);
        producers.forget(P);
        assert_eq!((producers.of(P).count(), producers.of(Q).count()), (0, 1));
    }
}
