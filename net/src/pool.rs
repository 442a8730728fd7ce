//! Buffers, taken once at start and lent out.
//!
//! A lease is a value that must be given back; it borrows nothing, so its holder can keep it in a table. The bytes are reached
//! through the pool with the lease as the key. Memory is asked for zeroed and untouched, so that pages cost nothing until
//! first used, and buffers are lent last-in first-out, so that an idle broker stays small and a busy one warm. What a buffer
//! holds when lent is whatever its last holder left there.

use core::ops::Range;

use crate::sys;

/// Receive and send buffers, lent as pairs: who holds one half can always get on, so no two holders wait for each other.
///
/// When full: [`PairPool::lease`] answers `None`; the caller queues its id (see [`crate::queue::Queue`]) and leaves its
/// socket unread.
/// Cost: O(1), no allocation.
pub struct PairPool {
    blocks: Blocks,
    receive_bytes: usize,
}

/// A pair lent by a [`PairPool`]. Give it back with [`PairPool::release`]: one that is dropped is lost to the pool.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a lease that is dropped is lost to its pool"]
pub struct PairLease(u32);

/// Both halves of a pair at once.
pub struct Pair<'a> {
    /// What comes from the peer.
    pub receive: &'a mut [u8],
    /// What goes to the peer.
    pub send: &'a mut [u8],
}

impl PairPool {
    /// `count` pairs of the given sizes in bytes. Allocates `count × (receive_bytes + send_bytes)`, here only.
    #[must_use]
    pub fn new(count: u32, receive_bytes: usize, send_bytes: usize) -> Self {
        Self {
            blocks: Blocks::new(count, receive_bytes.saturating_add(send_bytes)),
            receive_bytes,
        }
    }

    /// Lends a pair.
    pub fn lease(&mut self) -> Option<PairLease> {
        self.blocks.lease().map(PairLease)
    }

    /// Takes a pair back.
    pub fn release(&mut self, lease: PairLease) {
        self.blocks.release(lease.0);
    }

    /// Both buffers, to be read and filled.
    #[must_use]
    pub fn pair(&mut self, lease: &PairLease) -> Pair<'_> {
        let (receive, send) = self.blocks.slice_mut(lease.0).split_at_mut(self.receive_bytes);
        Pair { receive, send }
    }

    /// The receive buffer, to be looked at.
    #[must_use]
    pub fn receive(&self, lease: &PairLease) -> &[u8] {
        self.blocks.slice(lease.0).split_at(self.receive_bytes).0
    }

    /// The send buffer, to be looked at.
    #[must_use]
    pub fn send(&self, lease: &PairLease) -> &[u8] {
        self.blocks.slice(lease.0).split_at(self.receive_bytes).1
    }

    /// Pairs lent now.
    #[must_use]
    pub fn leased(&self) -> usize {
        self.blocks.leased()
    }

    /// Pairs in all.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.blocks.count
    }
}

/// A few large buffers of one size, for frames and replies that outgrow a connection's own.
///
/// When full: [`LargePool::lease`] answers `None`; the caller queues its id and is served first come, first served.
/// Cost: O(1), no allocation.
pub struct LargePool {
    blocks: Blocks,
}

/// A buffer lent by a [`LargePool`]. Give it back with [`LargePool::release`]: one that is dropped is lost to the pool.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a lease that is dropped is lost to its pool"]
pub struct LargeLease(u32);

impl LargePool {
    /// `count` buffers of `bytes` each. Allocates `count × bytes`, here only.
    #[must_use]
    pub fn new(count: u32, bytes: usize) -> Self {
        Self {
            blocks: Blocks::new(count, bytes),
        }
    }

    /// Lends a buffer.
    pub fn lease(&mut self) -> Option<LargeLease> {
        self.blocks.lease().map(LargeLease)
    }

    /// Takes a buffer back.
    pub fn release(&mut self, lease: LargeLease) {
        self.blocks.release(lease.0);
    }

    /// The buffer, to be looked at.
    #[must_use]
    pub fn slice(&self, lease: &LargeLease) -> &[u8] {
        self.blocks.slice(lease.0)
    }

    /// The buffer, to be filled.
    #[must_use]
    pub fn slice_mut(&mut self, lease: &LargeLease) -> &mut [u8] {
        self.blocks.slice_mut(lease.0)
    }

    /// Gives the memory of buffers that are at home and were lent since the last time back to the kernel; they are zero then.
    /// Cost: one system call for each, and a page fault for each page when it is used again.
    pub fn trim(&mut self) {
        self.blocks.trim();
    }

    /// Bytes in each buffer.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.blocks.bytes
    }

    /// Buffers lent now.
    #[must_use]
    pub fn leased(&self) -> usize {
        self.blocks.leased()
    }

    /// Buffers in all.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.blocks.count
    }
}

/// Equal blocks of one allocation, and the stack of those at home.
struct Blocks {
    memory: Vec<u8>,
    bytes: usize,
    count: usize,
    free: Vec<u32>,
    /// Blocks that were lent since they were last trimmed.
    used: Vec<bool>,
}

impl Blocks {
    fn new(count: u32, bytes: usize) -> Self {
        Self {
            // Zeroed memory of this size comes untouched from the kernel: resident only page by page, when used.
            memory: vec![0; (count as usize).saturating_mul(bytes)],
            bytes,
            count: count as usize,
            free: (0..count).rev().collect(),
            used: vec![false; count as usize],
        }
    }

    fn lease(&mut self) -> Option<u32> {
        let block = self.free.pop()?;
        if let Some(used) = self.used.get_mut(block as usize) {
            *used = true;
        }
        Some(block)
    }

    fn trim(&mut self) {
        for i in 0..self.free.len() {
            let Some(&block) = self.free.get(i) else { break };
            if self.used.get_mut(block as usize).is_some_and(core::mem::take) {
                sys::discard(self.slice_mut(block));
            }
        }
    }

    fn release(&mut self, block: u32) {
        // A lease cannot be copied, so a surplus one comes from another pool.
        assert!(self.free.len() < self.count, "more leases given back than lent");
        self.free.push(block);
    }

    fn range(&self, block: u32) -> Range<usize> {
        let start = (block as usize).saturating_mul(self.bytes);
        start..start.saturating_add(self.bytes)
    }

    fn slice(&self, block: u32) -> &[u8] {
        let slice = self.memory.get(self.range(block));
        assert!(slice.is_some(), "a lease of another pool");
        slice.unwrap_or_default()
    }

    fn slice_mut(&mut self, block: u32) -> &mut [u8] {
        let range = self.range(block);
        let slice = self.memory.get_mut(range);
        assert!(slice.is_some(), "a lease of another pool");
        slice.unwrap_or_default()
    }

    fn leased(&self) -> usize {
        self.count - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_pair_is_lent_whole_or_not_at_all() {
        let mut pool = PairPool::new(1, 3, 5);
        let lease = pool.lease().unwrap();
        assert_eq!(pool.lease(), None);
        let pair = pool.pair(&lease);
        assert_eq!((pair.receive.len(), pair.send.len()), (3, 5));
        pair.receive.fill(1);
        pair.send.fill(2);
        assert_eq!(pool.receive(&lease), [1; 3]);
        assert_eq!(pool.send(&lease), [2; 5]);
        pool.release(lease);
        assert_eq!((pool.leased(), pool.count()), (0, 1));
    }

    #[test]
    fn the_last_given_back_is_lent_first() {
        let mut pool = LargePool::new(3, 1);
        let (a, b) = (pool.lease().unwrap(), pool.lease().unwrap());
        pool.slice_mut(&a).fill(7);
        pool.release(b);
        pool.release(a);
        let again = pool.lease().unwrap();
        assert_eq!(pool.slice(&again), [7]);
        pool.release(again);
    }

    #[test]
    #[should_panic(expected = "more leases given back")]
    fn a_stranger_is_not_taken_in() {
        let mut other = LargePool::new(1, 1);
        LargePool::new(1, 1).release(other.lease().unwrap());
    }

    /// Goal: a large pool costs no resident memory until it is used.
    #[test]
    fn untouched_buffers_are_not_resident() {
        fn resident() -> usize {
            let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
            statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * rustix::param::page_size()
        }
        let before = resident();
        let pool = LargePool::new(64, 4 << 20);
        let after = resident();
        assert!(
            after.saturating_sub(before) < 64 << 20,
            "{before} bytes resident before, {after} after"
        );
        assert_eq!(pool.count(), 64);
    }

    proptest! {
        /// Goal: no two leases share a byte, and the pool lends exactly what it has.
        /// Method: each holder writes its own mark over its pair and finds it whole when it gives the pair back.
        #[test]
        fn leases_do_not_overlap(count in 0_u32..5, steps in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 0..100)) {
            let mut pool = PairPool::new(count, 4, 6);
            let mut held: Vec<(PairLease, u8)> = Vec::new();
            for (number, (lease, pick)) in steps.into_iter().enumerate() {
                if lease {
                    match pool.lease() {
                        Some(lease) => {
                            let pair = pool.pair(&lease);
                            pair.receive.fill(number as u8);
                            pair.send.fill(!(number as u8));
                            held.push((lease, number as u8));
                        }
                        None => prop_assert_eq!(held.len(), count as usize),
                    }
                } else if !held.is_empty() {
                    let (lease, mark) = held.swap_remove(pick.index(held.len()));
                    prop_assert_eq!(pool.receive(&lease), [mark; 4]);
                    prop_assert_eq!(pool.send(&lease), [!mark; 6]);
                    pool.release(lease);
                }
                prop_assert_eq!(pool.leased(), held.len());
            }
        }
    }

    #[test]
    fn trimming_empties_what_is_at_home_and_leaves_what_is_lent() {
        let mut pool = LargePool::new(2, 1 << 20);
        let (a, b) = (pool.lease().unwrap(), pool.lease().unwrap());
        pool.slice_mut(&a).fill(7);
        pool.slice_mut(&b).fill(8);
        pool.release(a);
        pool.trim();
        let a = pool.lease().unwrap();
        let zeros = pool.slice(&a).iter().filter(|b| **b == 0).count();
        assert!(zeros >= (1 << 20) - 2 * 65_536, "whole pages are gone: {zeros}");
        assert!(pool.slice(&b).iter().all(|b| *b == 8));
    }
}
