//! Where bounded tables keep their rows: memory that the caller took once, lent or owned.
//!
//! A table in this crate is generic over [`Memory`], so that firmware can lend it `heapless` vectors and the broker can give it
//! boxed ones. Rows are appended until the bound is reached and used again after that, so memory that was never needed is
//! never touched.

use core::marker::PhantomData;

use heapless::VecView;

/// Rows of one table: a slice that grows up to a fixed bound.
pub trait Rows<T>: AsRef<[T]> + AsMut<[T]> {
    /// Adds a row after the last one.
    ///
    /// When full: gives the row back.
    fn push(&mut self, row: T) -> Result<(), T>;
}

impl<T, const N: usize> Rows<T> for heapless::Vec<T, N> {
    fn push(&mut self, row: T) -> Result<(), T> {
        Self::push(self, row)
    }
}

impl<T> Rows<T> for &mut VecView<T> {
    fn push(&mut self, row: T) -> Result<(), T> {
        VecView::push(self, row)
    }
}

/// A kind of memory: says what rows of any type are kept in.
pub trait Memory {
    /// Rows of `T`.
    type Of<T: 'static>: Rows<T>;
}

/// Memory that belongs to the caller: `&mut heapless::VecView`.
#[derive(Debug)]
pub struct Lent<'a>(PhantomData<&'a mut ()>);

impl<'a> Memory for Lent<'a> {
    type Of<T: 'static> = &'a mut VecView<T>;
}

/// Growable rows for this crate's own tests.
#[cfg(test)]
pub(crate) mod heap {
    use std::vec::Vec;

    use super::{Memory, Rows};

    /// A `Vec` that never grows past the capacity it was made with.
    pub(crate) struct HeapRows<T>(Vec<T>, usize);

    impl<T> HeapRows<T> {
        pub(crate) fn with_bound(rows: usize) -> Self {
            Self(Vec::with_capacity(rows), rows)
        }
    }

    impl<T: Clone> HeapRows<T> {
        pub(crate) fn filled(row: T, rows: usize) -> Self {
            Self(std::vec![row; rows], rows)
        }
    }

    impl<T> AsRef<[T]> for HeapRows<T> {
        fn as_ref(&self) -> &[T] {
            &self.0
        }
    }

    impl<T> AsMut<[T]> for HeapRows<T> {
        fn as_mut(&mut self) -> &mut [T] {
            &mut self.0
        }
    }

    impl<T> Rows<T> for HeapRows<T> {
        fn push(&mut self, row: T) -> Result<(), T> {
            if self.0.len() == self.1 {
                return Err(row);
            }
            self.0.push(row);
            Ok(())
        }
    }

    pub(crate) struct Heap;

    impl Memory for Heap {
        type Of<T: 'static> = HeapRows<T>;
    }
}
