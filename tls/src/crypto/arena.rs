//! A fixed heap for mbedtls, which makes thousands of small allocations per operation on a curve and frees nearly all of them again.
//!
//! The memory is taken once, by [`start`], before mbedtls is used for anything. It is divided into units of 32 bytes. Which units are in use is
//! kept in a table apart from them, eight bytes a unit, so no overrun inside the library can reach it, and this file needs no `unsafe`. Free
//! blocks are listed by size in classes, at most a quarter apart, and merge with their free neighbours: taking and giving back cost the same
//! however full the heap is. What is given back is zeroed at once, whatever secret it held.
//!
//! One lock guards all of it: a broker's only thread never waits for it, tests may run several.
//!
//! When full: the library is told that there is no memory, so one operation fails with [`CryptoError::ArenaFull`](super::CryptoError::ArenaFull);
//! the next one may work. [`refused`] counts them.

use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::vec::Vec;

use super::ffi;

/// What the curves, a few signing keys, and the one operation under way take together at most: all there is to it where another provider
/// serves connections.
pub const WORK_BYTES: usize = 64 << 10;
/// What a connection keeps where mbedtls serves it: a key for each direction.
pub const CONNECTION_BYTES: usize = 2 * 736;
/// What a connection keeps during its handshake, when both directions may have two.
pub const HANDSHAKE_BYTES: usize = 2 * CONNECTION_BYTES;
/// What [`start`] is given by a program that knows no better: enough for 32 handshakes and 64 connections more, by either provider.
pub const DEFAULT_BYTES: usize = 256 << 10;
/// The largest heap.
pub const BYTES_MAX: usize = UNITS_MAX * UNIT_BYTES;

/// Bytes of the smallest block; every block is a multiple of it and begins at one.
const UNIT_BYTES: usize = 32;
/// Words of a unit.
const UNIT_WORDS: usize = UNIT_BYTES / size_of::<AtomicUsize>();
/// Units that a [`Word`] can number, leaving out [`NONE`].
const UNITS_MAX: usize = (1 << NUMBER_BITS) - 1;

/// The smallest piece of the heap. Atomic words, because C writes to them while we hold a shared reference.
#[repr(C, align(32))]
pub struct Unit([AtomicUsize; UNIT_WORDS]);

const _: () = assert!(bytes_for(64, 32) <= DEFAULT_BYTES);

/// Bytes that never refuse so many established connections and handshakes under way, all served by mbedtls.
#[must_use]
pub const fn bytes_for(connections: usize, handshakes: usize) -> usize {
    WORK_BYTES
        .saturating_add(connections.saturating_mul(CONNECTION_BYTES))
        .saturating_add(handshakes.saturating_mul(HANDSHAKE_BYTES))
}

/// Why the heap was not set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartError {
    /// It was before.
    Started,
    /// Less than one unit, or more than [`BYTES_MAX`].
    Bytes,
    /// The system gave no memory.
    Memory,
}

/// Takes `bytes` (rounded down to units) and makes mbedtls allocate from nothing else. Once, and first: what mbedtls allocated before is never
/// given back.
///
/// Cost: a quarter more than `bytes` is taken from the system, for the table.
///
/// # Errors
///
/// [`StartError`]; mbedtls goes on with the heap that it has.
pub fn start(bytes: usize) -> Result<(), StartError> {
    let mut heap = lock();
    if heap.is_some() {
        return Err(StartError::Started);
    }
    let new = Heap::new(bytes)?;
    CAPACITY.store(new.memory.len() * UNIT_BYTES, Ordering::Relaxed);
    *heap = Some(new);
    ffi::set_calloc_free(calloc, free);
    Ok(())
}

/// Bytes of the heap; 0 before [`start`].
#[must_use]
pub fn capacity() -> usize {
    CAPACITY.load(Ordering::Relaxed)
}

/// Bytes in use, in whole units.
#[must_use]
pub fn used() -> usize {
    USED.load(Ordering::Relaxed)
}

/// The most bytes that were ever in use.
#[must_use]
pub fn peak() -> usize {
    PEAK.load(Ordering::Relaxed)
}

/// Allocations so far, refused ones left out.
#[must_use]
pub fn allocations() -> usize {
    ALLOCATIONS.load(Ordering::Relaxed)
}

/// Allocations that were refused.
#[must_use]
pub fn refused() -> usize {
    REFUSED.load(Ordering::Relaxed)
}

static HEAP: Mutex<Option<Heap>> = Mutex::new(None);
// Written under the lock only.
static CAPACITY: AtomicUsize = AtomicUsize::new(0);
static USED: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);
static REFUSED: AtomicUsize = AtomicUsize::new(0);

fn lock() -> MutexGuard<'static, Option<Heap>> {
    HEAP.lock().unwrap_or_else(PoisonError::into_inner)
}

fn add_one(count: &AtomicUsize) {
    count.store(count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}

/// `calloc` as mbedtls calls it.
extern "C" fn calloc(count: usize, bytes: usize) -> *mut c_void {
    let mut heap = lock();
    let block = count.checked_mul(bytes).and_then(|bytes| heap.as_mut()?.take(bytes));
    let (Some(block), Some(heap)) = (block, heap.as_ref()) else {
        add_one(&REFUSED);
        return ptr::null_mut();
    };
    let used = heap.table.used * UNIT_BYTES;
    USED.store(used, Ordering::Relaxed);
    PEAK.store(peak().max(used), Ordering::Relaxed);
    add_one(&ALLOCATIONS);
    block.cast_mut().cast()
}

/// `free` as mbedtls calls it.
extern "C" fn free(block: *mut c_void) {
    if let Some(heap) = lock().as_mut() {
        heap.give_back(block.cast_const().cast());
        USED.store(heap.table.used * UNIT_BYTES, Ordering::Relaxed);
    }
}

/// Memory, and what is known of it.
struct Heap {
    memory: &'static [Unit],
    table: Table,
}

impl Heap {
    fn new(bytes: usize) -> Result<Self, StartError> {
        let units = bytes / UNIT_BYTES;
        if units == 0 || units > UNITS_MAX {
            return Err(StartError::Bytes);
        }
        Ok(Self {
            memory: ffi::zeroed(units).ok_or(StartError::Memory)?,
            table: Table::new(units).ok_or(StartError::Memory)?,
        })
    }

    /// A block of at least so many bytes, all zero, aligned to its units.
    fn take(&mut self, bytes: usize) -> Option<*const Unit> {
        let first = self.table.take(bytes.div_ceil(UNIT_BYTES).max(1))?;
        // Not a reference to the one unit: C may use all of the block.
        Some(self.memory.as_ptr().wrapping_add(first))
    }

    /// Zeroes a block and makes it free. A pointer that is not to the beginning of one in use is left alone.
    fn give_back(&mut self, block: *const Unit) {
        let offset = block.addr().wrapping_sub(self.memory.as_ptr().addr());
        if !offset.is_multiple_of(UNIT_BYTES) {
            return;
        }
        let first = offset / UNIT_BYTES;
        let Some(units) = self.table.give_back(first) else {
            return;
        };
        let block = self.memory.get(first..first + units).unwrap_or_default();
        for word in block.iter().flat_map(|unit| &unit.0) {
            word.store(0, Ordering::Relaxed);
        }
    }
}

/// Bits of a unit's number.
const NUMBER_BITS: u32 = 21;
/// No unit.
const NONE: usize = UNITS_MAX;
/// Sizes, in units, with a list of their own.
const EXACT: usize = 32;
/// Lists: the exact ones, and four for each doubling from [`EXACT`] on.
const LISTS: usize = EXACT + 4 * (NUMBER_BITS as usize - 5);

/// Which units are in use, and lists of those that are not.
///
/// The first and the last unit of every block have a valid word, so the neighbours on both sides of a block can be read.
struct Table {
    words: Vec<Word>,
    /// The first block of every list.
    heads: [usize; LISTS],
    /// Which lists have one, a bit each.
    filled: u128,
    used: usize,
}

/// What is known of a block: whether it is in use, its units, and the blocks after and before it in its list; of one in use, instead, where it
/// begins, so that its last unit is not taken for another.
#[derive(Clone, Copy)]
struct Word(u64);

impl Word {
    const NUMBER: u64 = (1 << NUMBER_BITS) - 1;

    const fn new(is_used: bool, units: usize, next: usize, previous: usize) -> Self {
        Self(
            (is_used as u64) << (3 * NUMBER_BITS)
                | (units as u64) << (2 * NUMBER_BITS)
                | (next as u64) << NUMBER_BITS
                | previous as u64,
        )
    }

    const fn is_used(self) -> bool {
        self.0 >> (3 * NUMBER_BITS) != 0
    }

    const fn units(self) -> usize {
        (self.0 >> (2 * NUMBER_BITS) & Self::NUMBER) as usize
    }

    const fn next(self) -> usize {
        (self.0 >> NUMBER_BITS & Self::NUMBER) as usize
    }

    const fn previous(self) -> usize {
        (self.0 & Self::NUMBER) as usize
    }
}

impl Table {
    /// A table of so many free units.
    fn new(units: usize) -> Option<Self> {
        let mut words = Vec::new();
        words.try_reserve_exact(units).ok()?;
        words.resize(units, Word(0));
        let mut table = Self {
            words,
            heads: [NONE; LISTS],
            filled: 0,
            used: 0,
        };
        table.list(0, units);
        Some(table)
    }

    /// The first unit of a block of so many, now in use.
    fn take(&mut self, units: usize) -> Option<usize> {
        let fitting = self.filled & u128::MAX.checked_shl(list_to_search(units)?)?;
        let first = *self.heads.get(fitting.trailing_zeros() as usize)?;
        let found = self.word(first)?.units();
        self.unlist(first, found);
        let rest = found.checked_sub(units)?;
        if rest > 0 {
            self.list(first + units, rest);
        }
        self.mark(first, units, Word::new(true, units, first, NONE));
        self.used += units;
        Some(first)
    }

    /// Makes the block that begins at `first` free, and gives its units; `None` if none in use begins there.
    fn give_back(&mut self, first: usize) -> Option<usize> {
        let word = self.word(first).filter(|word| word.is_used() && word.next() == first)?;
        let units = word.units();
        self.used -= units;
        let (mut start, mut free) = (first, units);
        if let Some(before) = first.checked_sub(1).and_then(|last| self.word(last))
            && !before.is_used()
        {
            start -= before.units();
            free += before.units();
            self.unlist(start, before.units());
        }
        if let Some(after) = self.word(first + units)
            && !after.is_used()
        {
            free += after.units();
            self.unlist(first + units, after.units());
        }
        // So that giving it back twice is seen even when it is now inside a larger block.
        self.mark(first, units, Word(0));
        self.list(start, free);
        Some(units)
    }

    fn word(&self, unit: usize) -> Option<Word> {
        self.words.get(unit).copied()
    }

    /// Writes the words of a block's first and last unit.
    fn mark(&mut self, first: usize, units: usize, word: Word) {
        for unit in [first, first + units - 1] {
            if let Some(place) = self.words.get_mut(unit) {
                *place = word;
            }
        }
    }

    /// Puts a free block at the head of its list.
    fn list(&mut self, first: usize, units: usize) {
        let list = list_of(units);
        let Some(head) = self.heads.get_mut(list as usize) else {
            return;
        };
        let next = core::mem::replace(head, first);
        self.filled |= 1 << list;
        self.mark(first, units, Word::new(false, units, next, NONE));
        if let Some(word) = self.word(next) {
            self.mark(next, word.units(), Word::new(false, word.units(), word.next(), first));
        }
    }

    /// Takes a free block out of its list.
    fn unlist(&mut self, first: usize, units: usize) {
        let Some(word) = self.word(first) else { return };
        let (next, previous) = (word.next(), word.previous());
        if let Some(word) = self.word(next) {
            self.mark(
                next,
                word.units(),
                Word::new(false, word.units(), word.next(), previous),
            );
        }
        if let Some(word) = self.word(previous) {
            self.mark(
                previous,
                word.units(),
                Word::new(false, word.units(), next, word.previous()),
            );
            return;
        }
        let list = list_of(units);
        if let Some(head) = self.heads.get_mut(list as usize) {
            *head = next;
        }
        if next == NONE {
            self.filled &= !(1 << list);
        }
    }
}

/// The list of free blocks of so many units.
const fn list_of(units: usize) -> u32 {
    if units <= EXACT {
        return units as u32 - 1;
    }
    let doubling = units.ilog2();
    EXACT as u32 + 4 * (doubling - EXACT.ilog2()) + (units >> (doubling - 2) & 3) as u32
}

/// The first list all of whose blocks have at least so many units.
const fn list_to_search(units: usize) -> Option<u32> {
    if units > UNITS_MAX {
        return None;
    }
    if units <= EXACT {
        return Some(list_of(units));
    }
    // Up to the next quarter of a doubling.
    Some(list_of(units + (1 << (units.ilog2() - 2)) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every block once, in order of address, as (first, units, is_used); panics when the table contradicts itself.
    fn blocks(table: &Table) -> Vec<(usize, usize, bool)> {
        let mut blocks = Vec::new();
        let mut first = 0;
        while first < table.words.len() {
            let word = table.words[first];
            assert_eq!(table.words[first + word.units() - 1].0, word.0);
            blocks.push((first, word.units(), word.is_used()));
            first += word.units();
        }
        assert_eq!(first, table.words.len());
        blocks
    }

    /// The free blocks as the lists have them.
    fn listed(table: &Table) -> Vec<(usize, usize)> {
        let mut listed = Vec::new();
        for (list, &head) in table.heads.iter().enumerate() {
            assert_eq!(head != NONE, table.filled >> list & 1 == 1);
            let (mut block, mut previous) = (head, NONE);
            while block != NONE {
                let word = table.words[block];
                assert!(!word.is_used());
                assert_eq!(word.previous(), previous);
                assert_eq!(list_of(word.units()) as usize, list);
                listed.push((block, word.units()));
                (previous, block) = (block, word.next());
            }
        }
        listed.sort_unstable();
        listed
    }

    fn check(table: &Table) {
        let blocks = blocks(table);
        let free: Vec<_> = blocks
            .iter()
            .filter(|block| !block.2)
            .map(|block| (block.0, block.1))
            .collect();
        assert_eq!(free, listed(table));
        assert!(
            blocks.windows(2).all(|pair| pair[0].2 || pair[1].2),
            "free neighbours not merged"
        );
        let used: usize = blocks.iter().filter(|block| block.2).map(|block| block.1).sum();
        assert_eq!(used, table.used);
    }

    #[test]
    fn sizes_go_to_rising_lists_that_hold_at_least_what_is_searched() {
        for units in 1..=UNITS_MAX.min(100_000) {
            assert!(list_of(units) >= list_of(units.max(2) - 1));
            let searched = list_to_search(units).unwrap();
            assert!(searched >= list_of(units) && searched <= list_of(units) + 1);
            if searched == list_of(units) && units > EXACT {
                assert!(
                    list_of(units - 1) < searched,
                    "a smaller block in the list that is searched for {units}"
                );
            }
        }
        assert!((list_of(UNITS_MAX) as usize) < LISTS);
        assert!(list_to_search(UNITS_MAX).is_some());
        assert_eq!(list_to_search(UNITS_MAX + 1), None);
    }

    #[test]
    fn blocks_never_overlap_and_all_merge_again() {
        // Goal: the table stays true under any order of taking and giving back. Method: a seeded walk, checked whole after every step.
        let mut table = Table::new(1_000).unwrap();
        let mut state = 42_u64;
        let mut draw = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let mut held: Vec<(usize, usize)> = Vec::new();
        let mut refusals = 0;
        for _ in 0..5_000 {
            if draw(5) < 3 {
                let most = if draw(10) == 0 { 200 } else { 8 };
                let units = 1 + draw(most);
                match table.take(units) {
                    Some(first) => {
                        assert!(
                            held.iter()
                                .all(|&(other, size)| first + units <= other || other + size <= first)
                        );
                        held.push((first, units));
                    }
                    None => refusals += 1,
                }
            } else if !held.is_empty() {
                let (first, units) = held.swap_remove(draw(held.len()));
                assert_eq!(table.give_back(first), Some(units));
                assert_eq!(table.give_back(first), None, "given back twice");
            }
            check(&table);
        }
        assert!(refusals > 0, "the walk never filled the heap");
        for (first, units) in held {
            assert_eq!(table.give_back(first), Some(units));
        }
        check(&table);
        assert_eq!(blocks(&table), [(0, 1_000, false)]);
    }

    #[test]
    fn what_is_given_back_is_zero_and_strangers_are_left_alone() {
        assert_eq!(Heap::new(UNIT_BYTES - 1).err(), Some(StartError::Bytes));
        assert_eq!(Heap::new(BYTES_MAX + UNIT_BYTES).err(), Some(StartError::Bytes));
        let mut heap = Heap::new(1_024 + 31).unwrap();
        let base = heap.memory.as_ptr();
        assert_eq!(base.addr() % UNIT_BYTES, 0);
        let fill = |heap: &Heap, value| {
            for word in heap.memory.iter().flat_map(|unit| &unit.0) {
                word.store(value, Ordering::Relaxed);
            }
        };
        let zeros = |heap: &Heap| -> Vec<bool> {
            let is_zero = |unit: &Unit| unit.0.iter().all(|word| word.load(Ordering::Relaxed) == 0);
            heap.memory.iter().map(is_zero).collect()
        };
        let blocks = [1, 33, 0, 64].map(|bytes| heap.take(bytes).unwrap());
        assert_eq!(
            blocks.map(|block| (block.addr() - base.addr()) / UNIT_BYTES),
            [0, 1, 3, 4]
        );
        fill(&heap, usize::MAX);
        heap.give_back(blocks[1]);
        assert!(
            zeros(&heap)
                .iter()
                .enumerate()
                .all(|(unit, &is_zero)| is_zero == (1..3).contains(&unit))
        );
        let used = heap.table.used;
        heap.give_back(blocks[1]);
        heap.give_back(blocks[3].wrapping_add(1));
        heap.give_back(blocks[3].wrapping_byte_add(8));
        heap.give_back(base.wrapping_sub(1));
        heap.give_back(base.wrapping_add(32));
        heap.give_back(ptr::null());
        assert_eq!(heap.table.used, used);
        assert_eq!(heap.take(1_024), None);
        assert_eq!(heap.take(usize::MAX), None);
        check(&heap.table);
    }

    #[test]
    fn a_full_table_refuses_and_then_works() {
        let mut table = Table::new(4).unwrap();
        assert_eq!(table.take(5), None);
        assert_eq!(table.take(usize::MAX), None);
        let first = table.take(3).unwrap();
        assert_eq!(table.take(2), None);
        let second = table.take(1).unwrap();
        assert_eq!(table.take(1), None);
        assert_eq!(table.give_back(first), Some(3));
        assert_eq!(table.give_back(second + 1), None);
        assert!(table.take(2).is_some());
        check(&table);
    }
}
