//! Memory of the broker's own for the bounded tables of `skerry_core`.

use skerry_core::memory::{Memory, Rows};

/// Rows on the heap: room for all of them is taken at once, and touched only as they come into use.
#[derive(Debug)]
pub struct OwnedRows<T> {
    rows: Vec<T>,
    rows_max: usize,
}

impl<T> OwnedRows<T> {
    /// No rows yet, room for `rows_max`. Allocates, here only.
    #[must_use]
    pub fn new(rows_max: u32) -> Self {
        Self {
            rows: Vec::with_capacity(rows_max as usize),
            rows_max: rows_max as usize,
        }
    }
}

impl<T: Clone> OwnedRows<T> {
    /// As many rows as there may be, all the same.
    #[must_use]
    pub fn filled(row: T, rows: u32) -> Self {
        Self {
            rows: vec![row; rows as usize],
            rows_max: rows as usize,
        }
    }
}

impl<T> AsRef<[T]> for OwnedRows<T> {
    fn as_ref(&self) -> &[T] {
        &self.rows
    }
}

impl<T> AsMut<[T]> for OwnedRows<T> {
    fn as_mut(&mut self) -> &mut [T] {
        &mut self.rows
    }
}

impl<T> Rows<T> for OwnedRows<T> {
    fn push(&mut self, row: T) -> Result<(), T> {
        if self.rows.len() == self.rows_max {
            return Err(row);
        }
        self.rows.push(row);
        Ok(())
    }
}

/// A table's memory is its owner's, on the heap.
#[derive(Debug)]
pub struct Owned;

impl Memory for Owned {
    type Of<T: 'static> = OwnedRows<T>;
}
