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
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::vec::Vec;

use super::ffi;

/// What [`start`] is given by a program that knows no better: see `tests/arena.rs` for what fits into it.
pub const DEFAULT_BYTES: usize = 256 << 10;
/// The largest heap.
pub const BYTES_MAX: usize = UNITS_MAX * UNIT_BYTES;

/// Bytes of the smallest block; every block is a multiple of it and begins at one.
const UNIT_BYTES: usize = 32;
/// Words of a unit.
const UNIT_WORDS: usize = UNIT_BYTES / size_of::<AtomicU64>();
/// Units that a [`Word`] can number, leaving out [`NONE`].
const UNITS_MAX: usize = (1 << NUMBER_BITS) - 1;

/// The smallest piece of the heap. Atomic words, because C writes to them while we hold a shared reference.
#[repr(C, align(32))]
pub struct Unit([AtomicU64; UNIT_WORDS]);

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
    let units = bytes / UNIT_BYTES;
    if units == 0 || units > UNITS_MAX {
        return Err(StartError::Bytes);
    }
    let memory = ffi::zeroed(units).ok_or(StartError::Memory)?;
    let table = Table::new(units).ok_or(StartError::Memory)?;
    *heap = Some(Heap { memory, table });
    CAPACITY.store(units * UNIT_BYTES, Ordering::Relaxed);
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

/// Allocations that were refused.
#[must_use]
pub fn refused() -> u64 {
    REFUSED.load(Ordering::Relaxed)
}

static HEAP: Mutex<Option<Heap>> = Mutex::new(None);
static CAPACITY: AtomicUsize = AtomicUsize::new(0);
static USED: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static REFUSED: AtomicU64 = AtomicU64::new(0);

struct Heap {
    memory: &'static [Unit],
    table: Table,
}

fn lock() -> MutexGuard<'static, Option<Heap>> {
    HEAP.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `calloc` as mbedtls calls it. Free memory is zero, so there is nothing to clear here.
extern "C" fn calloc(count: usize, bytes: usize) -> *mut c_void {
    let units = count.checked_mul(bytes).map(|bytes| bytes.div_ceil(UNIT_BYTES).max(1));
    let mut heap = lock();
    let block = heap
        .as_mut()
        .and_then(|heap| Some((heap.table.take(units?)?, heap.memory, heap.table.used)));
    let Some((first, memory, used)) = block else {
        REFUSED.fetch_add(1, Ordering::Relaxed);
        return ptr::null_mut();
    };
    let used = used * UNIT_BYTES;
    USED.store(used, Ordering::Relaxed);
    if used > PEAK.load(Ordering::Relaxed) {
        PEAK.store(used, Ordering::Relaxed);
    }
    memory.as_ptr().wrapping_add(first).cast_mut().cast()
}

/// `free` as mbedtls calls it. A pointer that is not ours, or was given back before, is left alone.
extern "C" fn free(block: *mut c_void) {
    let mut heap = lock();
    let Some(heap) = heap.as_mut() else { return };
    let Some(offset) = block.addr().checked_sub(heap.memory.as_ptr().addr()) else {
        return;
    };
    if offset % UNIT_BYTES != 0 {
        return;
    }
    let first = offset / UNIT_BYTES;
    let Some(units) = heap.table.give_back(first) else {
        return;
    };
    let block = heap.memory.get(first..first + units).unwrap_or_default();
    for word in block.iter().flat_map(|unit| &unit.0) {
        word.store(0, Ordering::Relaxed);
    }
    USED.store(heap.table.used * UNIT_BYTES, Ordering::Relaxed);
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

/// What is known of a block: whether it is in use, its units, and the blocks after and before it in its list.
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
        self.mark(first, units, Word::new(true, units, NONE, NONE));
        self.used += units;
        Some(first)
    }

    /// Makes the block that begins at `first` free, and gives its units; `None` if none in use begins there.
    fn give_back(&mut self, first: usize) -> Option<usize> {
        let word = self.word(first).filter(|word| word.is_used())?;
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
