//! A bounded store for byte strings of any length: a buddy allocator over one arena.
//!
//! Blocks are powers of two of [`UNIT`] bytes and contiguous, neighbours that are both free become one again, so the store does not
//! wear into pieces. Its book-keeping is one byte per tree node, all zero when everything is free: an arena that
//! was never needed is never touched.

use crate::memory::Memory;

/// Bytes of the smallest block.
pub const UNIT: usize = 32;

/// Owns one block of a [`Blobs`] store. Not `Copy`: what is stored is freed once, by [`Blobs::free`]; dropping it leaks the block
/// (and nothing else).
#[derive(Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Blob {
    unit: u32,
    bytes: u32,
}

impl Blob {
    /// Nothing; takes no block.
    pub const EMPTY: Self = Self { unit: 0, bytes: 0 };

    /// Bytes stored.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.bytes as usize
    }

    /// Whether nothing is stored.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bytes == 0
    }
}

/// Why something was not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum StoreError {
    /// No free block is large enough now; one may be later.
    Full,
    /// Longer than the store takes in one piece, ever.
    TooLong,
}

/// The store.
///
/// When full: [`StoreError::Full`], nothing changes.
pub struct Blobs<M: Memory> {
    arena: M::Of<u8>,
    /// A binary tree as a heap from index 1, root first. A node of order `n` (`UNIT << n` bytes) whose largest free block is of order
    /// `f` holds `n - f`, or `n + 1` when nothing in it is free.
    spent: M::Of<u8>,
    root_order: u8,
    bytes_max: usize,
    live: usize,
    peak: usize,
}

impl<M: Memory> Blobs<M> {
    /// Bytes of book-keeping that an arena of `arena_bytes` needs.
    #[must_use]
    pub const fn tree_bytes(arena_bytes: usize) -> usize {
        2 * (arena_bytes / UNIT).next_power_of_two()
    }

    /// An empty store over `arena` and `tree` ([`Blobs::tree_bytes`], all zero). One blob takes at most `bytes_max`.
    #[must_use]
    pub fn new(arena: M::Of<u8>, tree: M::Of<u8>, bytes_max: usize) -> Self {
        let order = (tree.as_ref().len() / 2).max(1).ilog2() as u8;
        let units = (arena.as_ref().len() / UNIT).min(1 << order);
        let mut blobs = Self {
            arena,
            spent: tree,
            root_order: order,
            bytes_max: bytes_max.min(units * UNIT),
            live: 0,
            peak: 0,
        };
        // The tree is as large as the next power of two; what lies beyond the arena is never free.
        let mut unit = units;
        while unit < 1 << order {
            let block = unit.trailing_zeros().min(u32::from(order)) as u8;
            let node = (1 << (order - block)) + (unit >> block);
            blobs.set_free(node, block, 0);
            blobs.ascend(node, block);
            unit += 1 << block;
        }
        blobs
    }

    /// Bytes in blocks that are in use, their unused ends included.
    #[must_use]
    pub const fn live(&self) -> usize {
        self.live
    }

    /// The most that [`Blobs::live`] ever was.
    #[must_use]
    pub const fn peak(&self) -> usize {
        self.peak
    }

    /// Bytes that one blob may have.
    #[must_use]
    pub const fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// The order of the block that holds `bytes` (at least 1).
    const fn order_of(bytes: usize) -> u8 {
        bytes.div_ceil(UNIT).next_power_of_two().ilog2() as u8
    }

    /// Largest free order below a node, plus one; 0 for none.
    fn free_at(&self, node: usize, order: u8) -> u8 {
        let spent = self.spent.as_ref().get(node).copied().unwrap_or(u8::MAX);
        (order + 1).saturating_sub(spent)
    }

    fn set_free(&mut self, node: usize, order: u8, free: u8) {
        if let Some(spent) = self.spent.as_mut().get_mut(node) {
            *spent = (order + 1).saturating_sub(free);
        }
    }

    /// Brings the ancestors of a changed node of `order` up to date.
    fn ascend(&mut self, mut node: usize, mut order: u8) {
        while node > 1 {
            node /= 2;
            let (left, right) = (self.free_at(2 * node, order), self.free_at(2 * node + 1, order));
            let both_whole = left == order + 1 && right == order + 1;
            order += 1;
            self.set_free(node, order, if both_whole { order + 1 } else { left.max(right) });
        }
    }

    /// Takes a block for `bytes`; its contents are what they happen to be.
    ///
    /// When full: [`StoreError::Full`]. Errors: [`StoreError::TooLong`]. Cost: the height of the tree.
    pub fn alloc(&mut self, bytes: usize) -> Result<Blob, StoreError> {
        if bytes == 0 {
            return Ok(Blob::EMPTY);
        }
        if bytes > self.bytes_max {
            return Err(StoreError::TooLong);
        }
        let wanted = Self::order_of(bytes);
        if self.free_at(1, self.root_order) <= wanted {
            return Err(StoreError::Full);
        }
        let (mut node, mut order) = (1, self.root_order);
        while order > wanted {
            order -= 1;
            let (left, right) = (self.free_at(2 * node, order), self.free_at(2 * node + 1, order));
            // The side that is more broken already, when it still has room: whole blocks stay whole.
            let take_left = left > wanted && (right <= wanted || left <= right);
            node = 2 * node + usize::from(!take_left);
        }
        self.set_free(node, order, 0);
        self.ascend(node, order);
        self.live += UNIT << order;
        self.peak = self.peak.max(self.live);
        let first_of_order = 1usize << (self.root_order - order);
        let unit = (node - first_of_order) << order;
        Ok(Blob {
            unit: unit as u32,
            bytes: bytes as u32,
        })
    }

    /// Gives a block back.
    pub fn free(&mut self, blob: Blob) {
        if blob.is_empty() {
            return;
        }
        let order = Self::order_of(blob.len());
        let node = (1usize << (self.root_order - order)) + (blob.unit as usize >> order);
        self.set_free(node, order, order + 1);
        self.ascend(node, order);
        self.live -= UNIT << order;
    }

    /// Stores `parts` one after the other.
    ///
    /// When full: [`StoreError::Full`]. Errors: [`StoreError::TooLong`].
    pub fn put(&mut self, parts: &[&[u8]]) -> Result<Blob, StoreError> {
        let blob = self.alloc(parts.iter().fold(0, |sum, part| sum.saturating_add(part.len())))?;
        let bytes = self.bytes_mut(&blob);
        let mut at = 0;
        for part in parts {
            if let Some(to) = bytes.get_mut(at..at + part.len()) {
                to.copy_from_slice(part);
            }
            at += part.len();
        }
        Ok(blob)
    }

    /// Stores `bytes` in place of what `blob` holds, in the same block when they fit it exactly as well.
    ///
    /// When full: [`StoreError::Full`]; `blob` keeps what it had. Errors: [`StoreError::TooLong`], likewise.
    pub fn replace(&mut self, blob: &mut Blob, bytes: &[u8]) -> Result<(), StoreError> {
        let same_block =
            !blob.is_empty() && !bytes.is_empty() && Self::order_of(blob.len()) == Self::order_of(bytes.len());
        if same_block && bytes.len() <= self.bytes_max {
            blob.bytes = bytes.len() as u32;
            self.bytes_mut(blob).copy_from_slice(bytes);
        } else {
            let new = self.put(&[bytes])?;
            self.free(core::mem::replace(blob, new));
        }
        Ok(())
    }

    /// What is stored.
    #[must_use]
    pub fn bytes(&self, blob: &Blob) -> &[u8] {
        let start = blob.unit as usize * UNIT;
        self.arena.as_ref().get(start..start + blob.len()).unwrap_or(&[])
    }

    /// What is stored, to be written.
    pub fn bytes_mut(&mut self, blob: &Blob) -> &mut [u8] {
        let start = blob.unit as usize * UNIT;
        self.arena
            .as_mut()
            .get_mut(start..start + blob.len())
            .unwrap_or(&mut [])
    }

    /// What is stored, as text; empty when it is not UTF-8.
    #[must_use]
    pub fn text(&self, blob: &Blob) -> &str {
        core::str::from_utf8(self.bytes(blob)).unwrap_or("")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::heap::{Heap, HeapRows};

    fn store(units: usize, bytes_max: usize) -> Blobs<Heap> {
        let bytes = units * UNIT;
        let tree = Blobs::<Heap>::tree_bytes(bytes);
        Blobs::new(HeapRows::filled(0, bytes), HeapRows::filled(0, tree), bytes_max)
    }

    #[test]
    fn blocks_come_back_whole() {
        let mut blobs = store(8, usize::MAX);
        let small: [Blob; 8] = core::array::from_fn(|i| blobs.put(&[&[i as u8; UNIT]]).unwrap());
        assert_eq!(blobs.alloc(1), Err(StoreError::Full));
        assert_eq!(blobs.live(), 8 * UNIT);
        for (i, blob) in small.into_iter().enumerate() {
            assert_eq!(blobs.bytes(&blob), [i as u8; UNIT]);
            blobs.free(blob);
        }
        assert_eq!(blobs.live(), 0);
        let whole = blobs.alloc(8 * UNIT).unwrap();
        assert_eq!(blobs.alloc(1), Err(StoreError::Full));
        blobs.free(whole);
        assert_eq!(blobs.alloc(8 * UNIT + 1), Err(StoreError::TooLong));
        assert_eq!(blobs.alloc(0), Ok(Blob::EMPTY));
        assert_eq!(blobs.live(), 0);
    }

    #[test]
    fn a_failed_replace_keeps_the_old_bytes() {
        let mut blobs = store(2, usize::MAX);
        let mut a = blobs.put(&[b"one", b"two"]).unwrap();
        blobs.replace(&mut a, b"three").unwrap();
        let b = blobs.put(&[b"x"]).unwrap();
        assert_eq!(blobs.replace(&mut a, &[7; UNIT + 1]), Err(StoreError::Full));
        assert_eq!(blobs.text(&a), "three");
        blobs.free(b);
        blobs.replace(&mut a, b"").unwrap();
        assert_eq!((blobs.live(), a), (0, Blob::EMPTY));
    }

    /// Goal: blocks never overlap, nothing leaks, and room that is free is found.
    /// Method: random allocations and frees; each blob is filled with its own mark and read back before it is freed.
    #[test]
    fn random_use_neither_overlaps_nor_leaks() {
        let mut blobs = store(64, 20 * UNIT);
        let mut held: std::vec::Vec<(Blob, u8)> = std::vec::Vec::new();
        let mut seed = 5u32;
        let mut next = move || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 8) as usize
        };
        for step in 0..20_000 {
            if next() % 5 < 3 {
                if let Ok(blob) = blobs.alloc(1 + next() % (20 * UNIT)) {
                    blobs.bytes_mut(&blob).fill(step as u8);
                    held.push((blob, step as u8));
                }
            } else if !held.is_empty() {
                let (blob, mark) = held.swap_remove(next() % held.len());
                assert!(blobs.bytes(&blob).iter().all(|b| *b == mark));
                blobs.free(blob);
            }
            let live: usize = held
                .iter()
                .map(|(b, _)| b.len().div_ceil(UNIT).next_power_of_two() * UNIT)
                .sum();
            assert_eq!(blobs.live(), live);
        }
        for (blob, _) in held {
            blobs.free(blob);
        }
        assert_eq!(blobs.live(), 0);
        for node in 1..128 {
            assert_eq!(blobs.spent.as_ref()[node], 0, "node {node} is not whole again");
        }
    }

    #[test]
    fn an_arena_of_any_size_is_used_whole_and_not_beyond() {
        for units in [1, 3, 5, 6, 7, 12, 13] {
            let mut blobs = store(units, usize::MAX);
            let all: std::vec::Vec<_> = core::iter::from_fn(|| blobs.put(&[&[1; UNIT]]).ok()).collect();
            assert_eq!(all.len(), units);
            assert!(all.iter().all(|blob| blobs.bytes(blob) == [1; UNIT]));
            all.into_iter().for_each(|blob| blobs.free(blob));
            let largest = 1 << units.ilog2();
            let blob = blobs.alloc(largest * UNIT).unwrap();
            blobs.free(blob);
            assert_eq!(blobs.live(), 0);
        }
    }
}
