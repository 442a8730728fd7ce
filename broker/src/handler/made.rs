//! Arrays of a reply whose elements are made while it is written.

use skerry_core::wire::{Array, Full, Items};

/// Takes one element.
pub type Emit<'e, T> = &'e mut dyn FnMut(&T) -> Result<(), Full>;

/// An array by two functions of its key: how many elements, and each of them. The key tells arrays of one kind apart, such as
/// the partitions of each topic.
pub struct Made<C, E> {
    count: C,
    each: E,
}

/// Makes arrays: `each` must emit as many elements as `count` says, the same ones every time.
pub const fn made<T, C, E>(count: C, each: E) -> Made<C, E>
where
    C: Fn(usize) -> usize,
    E: Fn(usize, Emit<'_, T>) -> Result<(), Full>,
{
    Made { count, each }
}

impl<C, E> Made<C, E> {
    /// The array of `key`.
    pub fn array<'a, T>(&'a self, key: usize) -> Array<'a, T>
    where
        Self: Items<'a, T>,
    {
        Array::Items(self, key)
    }
}

impl<'a, T, C, E> Items<'a, T> for Made<C, E>
where
    C: Fn(usize) -> usize,
    E: Fn(usize, Emit<'_, T>) -> Result<(), Full>,
{
    fn count(&'a self, key: usize) -> usize {
        (self.count)(key)
    }

    fn each(&'a self, key: usize, emit: &mut dyn FnMut(&T) -> Result<(), Full>) -> Result<(), Full> {
        (self.each)(key, emit)
    }
}
