//! Fetches that wait for data: a list per partition, so that an append wakes only those that asked for it.

use crate::ids::{ConnId, PartitionIx};

#[derive(Clone, Copy)]
struct Node {
    conn: ConnId,
    partition: u32,
    next: u32,
    prev: u32,
    next_of_conn: u32,
}

const NONE: u32 = u32::MAX;

/// Which connections wait on which partitions.
///
/// When full: [`Waiters::add`] refuses, and the fetch is answered at once with what there is instead of waiting.
pub struct Waiters {
    nodes: Vec<Node>,
    heads: Vec<u32>,
    by_conn: Vec<u32>,
    free: u32,
    free_count: usize,
}

impl Waiters {
    /// Takes memory for `nodes` waits of `connections` connections on `partitions` partitions.
    #[must_use]
    pub fn new(nodes: usize, connections: usize, partitions: usize) -> Self {
        Self {
            nodes: Vec::with_capacity(nodes),
            heads: vec![NONE; partitions],
            by_conn: vec![NONE; connections],
            free: NONE,
            free_count: nodes,
        }
    }

    /// Bytes that [`Waiters::new`] takes.
    #[must_use]
    pub const fn bytes(nodes: usize, connections: usize, partitions: usize) -> usize {
        nodes * size_of::<Node>() + (connections + partitions) * size_of::<u32>()
    }

    /// Whether `count` more waits have a place.
    #[must_use]
    pub const fn room(&self, count: usize) -> bool {
        count <= self.free_count
    }

    /// Lets `conn` be woken when `partition` changes. False when full.
    pub fn add(&mut self, conn: ConnId, partition: PartitionIx) -> bool {
        if self.free_count == 0 || partition.0 as usize >= self.heads.len() || conn.index() >= self.by_conn.len() {
            return false;
        }
        let mut ix = self.free;
        if ix == NONE {
            // Nodes are made as they are first used, within the capacity taken at start.
            ix = self.nodes.len() as u32;
            self.nodes.push(Node {
                conn,
                partition: NONE,
                next: NONE,
                prev: NONE,
                next_of_conn: NONE,
            });
        }
        let (Some(node), Some(head), Some(mine)) = (
            self.nodes.get_mut(ix as usize),
            self.heads.get_mut(partition.0 as usize),
            self.by_conn.get_mut(conn.index()),
        ) else {
            return false;
        };
        self.free = node.next;
        self.free_count -= 1;
        *node = Node {
            conn,
            partition: partition.0,
            next: *head,
            prev: NONE,
            next_of_conn: *mine,
        };
        let second = *head;
        *head = ix;
        *mine = ix;
        if let Some(second) = self.nodes.get_mut(second as usize) {
            second.prev = ix;
        }
        true
    }

    /// Ends every wait of `conn`. Cost: its waits.
    pub fn remove(&mut self, conn: ConnId) {
        let Some(mine) = self.by_conn.get_mut(conn.index()) else {
            return;
        };
        let mut at = core::mem::replace(mine, NONE);
        while let Some(&Node {
            partition,
            next,
            prev,
            next_of_conn,
            ..
        }) = self.nodes.get(at as usize)
        {
            match self.nodes.get_mut(prev as usize) {
                Some(before) => before.next = next,
                None => {
                    if let Some(head) = self.heads.get_mut(partition as usize) {
                        *head = next;
                    }
                }
            }
            if let Some(after) = self.nodes.get_mut(next as usize) {
                after.prev = prev;
            }
            if let Some(node) = self.nodes.get_mut(at as usize) {
                node.next = self.free;
                self.free = at;
                self.free_count += 1;
            }
            at = next_of_conn;
        }
    }

    /// Waits that were added and not removed. Cost: a look at all.
    #[must_use]
    pub fn used(&self) -> usize {
        let free = core::iter::successors(Some(self.free), |ix| self.nodes.get(*ix as usize).map(|n| n.next));
        (self.nodes.len() + 1).saturating_sub(free.count())
    }

    /// Calls `wake` for each connection that waits on `partition`; they stay until they are removed.
    pub fn each(&self, partition: PartitionIx, mut wake: impl FnMut(ConnId)) {
        let mut at = self.heads.get(partition.0 as usize).copied().unwrap_or(NONE);
        while let Some(node) = self.nodes.get(at as usize) {
            wake(node.conn);
            at = node.next;
        }
    }

    /// Whether anyone waits on `partition`.
    #[must_use]
    pub fn is_waited_on(&self, partition: PartitionIx) -> bool {
        self.heads.get(partition.0 as usize).is_some_and(|h| *h != NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn woken(w: &Waiters, p: u32) -> Vec<usize> {
        let mut out = Vec::new();
        w.each(PartitionIx(p), |c| out.push(c.index()));
        out.sort_unstable();
        out
    }

    #[test]
    fn only_those_on_the_partition_are_woken_and_removal_leaves_the_others() {
        let c = |n| ConnId::from_parts(n, 3);
        let mut w = Waiters::new(4, 3, 2);
        assert!(w.add(c(0), PartitionIx(0)) && w.add(c(1), PartitionIx(0)) && w.add(c(1), PartitionIx(1)));
        assert!(w.add(c(2), PartitionIx(0)));
        assert!(!w.add(c(2), PartitionIx(1)), "full is an answer");
        assert_eq!(woken(&w, 0), [0, 1, 2]);
        w.remove(c(1));
        assert_eq!(woken(&w, 0), [0, 2]);
        assert!(woken(&w, 1).is_empty() && w.room(2));
        w.remove(c(2));
        w.remove(c(0));
        assert!(woken(&w, 0).is_empty() && w.room(4));
    }
}
