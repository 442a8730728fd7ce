//! A bounded table of rows with generation-checked keys and a hash index.
//!
//! Rows are found by hash and a predicate of the caller's, so that a name may live elsewhere (in a [`crate::blob`] store) and no
//! lookup allocates. A removed row's place is used again; its old keys then lead nowhere.

use crate::memory::{Memory, Rows};

/// No row: the end of a list or chain.
const NONE: u32 = u32::MAX;

/// Names one row until it is removed; after that it leads nowhere, also when the place is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Key {
    row: u32,
    stamp: u32,
}

impl Key {
    /// Leads nowhere in every table.
    pub const NONE: Self = Self { row: NONE, stamp: 0 };

    /// The row's place, below the table's bound: for arrays beside the table. Used again after removal.
    #[must_use]
    pub const fn row(self) -> u32 {
        self.row
    }
}

/// One place of a [`Table`]; only its size is the caller's business.
#[derive(Clone, Debug)]
pub struct Row<T> {
    /// Counts removals, so that old keys can be told.
    stamp: u32,
    hash: u32,
    /// The next row of the same bucket, or of the free list.
    next: u32,
    value: Option<T>,
}

/// The table.
///
/// When full: [`Table::insert`] gives the value back.
pub struct Table<T: 'static, M: Memory> {
    rows: M::Of<Row<T>>,
    /// First row of each chain, plus one; 0 is none, so that fresh memory is an empty index.
    buckets: M::Of<u32>,
    free: u32,
    len: u32,
}

impl<T: 'static, M: Memory> Table<T, M> {
    /// An empty table over `rows` (which must hold nothing yet; their bound is the table's) and `buckets` (all zero, at
    /// least one; as many as rows keeps chains short).
    #[must_use]
    pub fn new(rows: M::Of<Row<T>>, buckets: M::Of<u32>) -> Self {
        Self {
            rows,
            buckets,
            free: NONE,
            len: 0,
        }
    }

    /// Rows in use.
    #[must_use]
    pub const fn len(&self) -> u32 {
        self.len
    }

    /// Whether no row is in use.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn bucket_of(&self, hash: u32) -> usize {
        let buckets = self.buckets.as_ref().len().max(1);
        hash as usize % buckets
    }

    fn head(&self, hash: u32) -> u32 {
        let first = self.buckets.as_ref().get(self.bucket_of(hash)).copied().unwrap_or(0);
        first.checked_sub(1).unwrap_or(NONE)
    }

    fn set_head(&mut self, hash: u32, row: u32) {
        let bucket = self.bucket_of(hash);
        if let Some(head) = self.buckets.as_mut().get_mut(bucket) {
            *head = row.wrapping_add(1);
        }
    }

    fn row(&self, row: u32) -> Option<&Row<T>> {
        self.rows.as_ref().get(row as usize)
    }

    fn row_mut(&mut self, row: u32) -> Option<&mut Row<T>> {
        self.rows.as_mut().get_mut(row as usize)
    }

    /// Adds a row under `hash`.
    ///
    /// When full: the value comes back.
    pub fn insert(&mut self, hash: u32, value: T) -> Result<Key, T> {
        let next = self.head(hash);
        let free = self.free;
        let key = if let Some(place) = self.row_mut(free) {
            let after = place.next;
            place.hash = hash;
            place.next = next;
            place.value = Some(value);
            let stamp = place.stamp;
            self.free = after;
            Key { row: free, stamp }
        } else {
            let row = self.places();
            let place = Row {
                stamp: 0,
                hash,
                next,
                value: Some(value),
            };
            if let Err(Row { value: Some(value), .. }) = self.rows.push(place) {
                return Err(value);
            }
            Key { row, stamp: 0 }
        };
        self.set_head(hash, key.row);
        self.len += 1;
        Ok(key)
    }

    /// Removes a row.
    pub fn remove(&mut self, key: Key) -> Option<T> {
        self.get(key)?;
        let free = self.free;
        let place = self.row_mut(key.row)?;
        let value = place.value.take()?;
        let (hash, next) = (place.hash, place.next);
        place.stamp = place.stamp.wrapping_add(1);
        place.next = free;
        self.free = key.row;
        self.len -= 1;

        let mut at = self.head(hash);
        if at == key.row {
            self.set_head(hash, next);
            return Some(value);
        }
        while let Some(place) = self.row_mut(at) {
            if place.next == key.row {
                place.next = next;
                break;
            }
            at = place.next;
        }
        Some(value)
    }

    /// The row of `key`, when it is still there.
    #[must_use]
    pub fn get(&self, key: Key) -> Option<&T> {
        let place = self.row(key.row)?;
        if place.stamp == key.stamp {
            place.value.as_ref()
        } else {
            None
        }
    }

    /// The row of `key`, to be changed. What its hash was made from must stay.
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let place = self.row_mut(key.row)?;
        if place.stamp == key.stamp {
            place.value.as_mut()
        } else {
            None
        }
    }

    /// The row under `hash` for which `is` holds. Cost: the chain's length.
    pub fn find(&self, hash: u32, mut is: impl FnMut(&T) -> bool) -> Option<Key> {
        let mut at = self.head(hash);
        while let Some(place) = self.row(at) {
            if place.hash == hash && place.value.as_ref().is_some_and(&mut is) {
                return Some(Key {
                    row: at,
                    stamp: place.stamp,
                });
            }
            at = place.next;
        }
        None
    }

    /// The key of the row at a place, when it is in use.
    #[must_use]
    pub fn key_at(&self, row: u32) -> Option<Key> {
        let place = self.row(row)?;
        place.value.as_ref()?;
        Some(Key {
            row,
            stamp: place.stamp,
        })
    }

    /// Places ever used: every key's [`Key::row`] is below.
    #[must_use]
    pub fn places(&self) -> u32 {
        u32::try_from(self.rows.as_ref().len()).unwrap_or(NONE)
    }

    /// Every row in use, by place.
    pub fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        self.rows.as_ref().iter().zip(0u32..).filter_map(|(place, row)| {
            let key = Key {
                row,
                stamp: place.stamp,
            };
            place.value.as_ref().map(|value| (key, value))
        })
    }
}

/// A hash of `parts`, for [`Table::insert`] and [`Table::find`]: FNV-1a with lengths mixed in. `seed` keeps peers from choosing
/// names that share a chain; a chain is never longer than its table.
#[must_use]
pub fn hash(seed: u32, parts: &[&[u8]]) -> u32 {
    let mut h = seed ^ 0x811c_9dc5;
    let mut mix = |byte: u8| h = (h ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    for part in parts {
        part.iter().for_each(|b| mix(*b));
        (part.len() as u32).to_le_bytes().into_iter().for_each(&mut mix);
    }
    h ^ (h >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Lent;
    use heapless::Vec;

    #[test]
    fn an_old_key_leads_nowhere() {
        let mut rows: Vec<Row<u32>, 2> = Vec::new();
        let mut buckets: Vec<u32, 2> = Vec::from_slice(&[0, 0]).unwrap();
        let mut table = Table::<u32, Lent<'_>>::new(rows.as_mut_view(), buckets.as_mut_view());
        let a = table.insert(7, 70).unwrap();
        let b = table.insert(7, 71).unwrap();
        assert_eq!(table.insert(9, 90), Err(90));
        assert_eq!(table.find(7, |v| *v == 70), Some(a));
        assert_eq!(table.find(7, |v| *v == 71), Some(b));
        assert_eq!(table.remove(a), Some(70));
        assert_eq!(table.remove(a), None);
        let c = table.insert(8, 80).unwrap();
        assert_eq!(c.row(), a.row());
        assert_eq!(table.get(a), None);
        assert_eq!(table.get(c), Some(&80));
        assert_eq!(table.find(7, |_| true), Some(b));
        assert_eq!(table.iter().count(), 2);
        assert_eq!(table.get(Key::NONE), None);
    }

    /// Goal: the index agrees with a plain list through any order of inserts and removals.
    /// Method: few hashes, so that chains are long; a small linear generator drives both.
    #[test]
    fn the_index_agrees_with_a_list() {
        let mut rows: Vec<Row<u32>, 16> = Vec::new();
        let mut buckets: Vec<u32, 3> = Vec::from_slice(&[0; 3]).unwrap();
        let mut table = Table::<u32, Lent<'_>>::new(rows.as_mut_view(), buckets.as_mut_view());
        let mut model: std::vec::Vec<(Key, u32, u32)> = std::vec::Vec::new();
        let mut seed = 1u32;
        for step in 0..10_000u32 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let pick = seed >> 16;
            if pick.is_multiple_of(2) {
                let hash = pick / 2 % 5;
                match table.insert(hash, step) {
                    Ok(key) => model.push((key, hash, step)),
                    Err(_) => assert_eq!(model.len(), 16),
                }
            } else if !model.is_empty() {
                let (key, _, value) = model.swap_remove(pick as usize % model.len());
                assert_eq!(table.remove(key), Some(value));
            }
            assert_eq!(table.len() as usize, model.len());
            for (key, hash, value) in &model {
                assert_eq!(table.find(*hash, |v| v == value), Some(*key));
                assert_eq!(table.key_at(key.row()), Some(*key));
            }
        }
    }
}
