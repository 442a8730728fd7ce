//! Arrays: views over the frame when decoded, slices or a handler's own tables when encoded.

use core::fmt;

use super::value::{Form, Value, put_length, take_length};
use super::{DecodeError, Full, Reader, Sink, Type};

/// An array field. One type for both directions: decoding gives [`Array::Wire`] or [`Array::Null`], encoding takes any.
pub enum Array<'a, T> {
    /// No array, where the version allows null (else written as an empty one).
    Null,
    /// Elements still in the frame.
    Wire(Wire<'a>),
    /// Elements in memory.
    Slice(&'a [T]),
    /// Elements that their owner makes one at a time while they are written; the number is the owner's key for them.
    Items(&'a dyn Items<'a, T>, usize),
}

/// Elements in the frame, found whole and well-formed when they were decoded.
#[derive(Clone, Copy, Debug)]
pub struct Wire<'a> {
    count: u32,
    bytes: &'a [u8],
    form: Form,
}

/// Makes the elements of an array while it is written, so that a reply is encoded straight out of its owner's tables.
///
/// `key` says which of the owner's arrays is meant: a nested one is `Array::Items(self, index)`.
pub trait Items<'a, T> {
    /// How many elements [`each`](Self::each) emits, exactly.
    fn count(&'a self, key: usize) -> usize;

    /// Emits each element in order. Called once per encoding pass; all passes must emit the same.
    ///
    /// Errors: [`Full`] from `emit`, passed on.
    fn each(&'a self, key: usize, emit: &mut dyn FnMut(&T) -> Result<(), Full>) -> Result<(), Full>;
}

impl<T> Clone for Array<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Array<'_, T> {}

/// Empty, not null.
impl<T> Default for Array<'_, T> {
    fn default() -> Self {
        Self::Slice(&[])
    }
}

impl<'a, T> From<&'a [T]> for Array<'a, T> {
    fn from(items: &'a [T]) -> Self {
        Self::Slice(items)
    }
}

impl<'a, T, const N: usize> From<&'a [T; N]> for Array<'a, T> {
    fn from(items: &'a [T; N]) -> Self {
        Self::Slice(items)
    }
}

impl<'a, T> Array<'a, T> {
    /// An array of one element.
    #[must_use]
    pub const fn one(item: &'a T) -> Self {
        Self::Slice(core::slice::from_ref(item))
    }

    /// Whether there is no array.
    #[must_use]
    pub const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Number of elements; 0 for null.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Null => 0,
            Self::Wire(wire) => wire.count as usize,
            Self::Slice(items) => items.len(),
            Self::Items(items, key) => items.count(*key),
        }
    }

    /// Whether there are no elements; true for null.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<'a, T: Value<'a>> Array<'a, T> {
    /// The elements of a decoded array or a slice, by value.
    ///
    /// [`Array::Items`] can only be walked from inside and gives nothing here: use [`each`](Self::each) where one may come.
    /// Cost: one decode per element, in place.
    #[must_use]
    pub fn iter(&self) -> Iter<'a, T> {
        debug_assert!(!matches!(self, Self::Items(..)), "made elements cannot be iterated");
        match *self {
            Self::Null | Self::Items(..) => Iter(Source::Slice(&[])),
            Self::Wire(wire) => Iter(Source::Wire(wire)),
            Self::Slice(items) => Iter(Source::Slice(items)),
        }
    }

    /// Calls `emit` with each element in order, whatever kind of array this is. Errors: those of `emit`, passed on.
    pub fn each(&self, emit: &mut dyn FnMut(&T) -> Result<(), Full>) -> Result<(), Full> {
        match *self {
            Self::Items(items, key) => items.each(key, emit),
            Self::Slice(items) => items.iter().try_for_each(emit),
            Self::Null | Self::Wire(_) => self.iter().try_for_each(|item| emit(&item)),
        }
    }
}

impl<'a, T: Value<'a>> IntoIterator for Array<'a, T> {
    type Item = T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

impl<'a, T: Value<'a>> IntoIterator for &Array<'a, T> {
    type Item = T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

/// The elements of a decoded array or a slice, by value.
#[derive(Clone, Debug)]
pub struct Iter<'a, T>(Source<'a, T>);

#[derive(Clone, Debug)]
enum Source<'a, T> {
    Wire(Wire<'a>),
    Slice(&'a [T]),
}

impl<'a, T: Value<'a>> Iterator for Iter<'a, T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        match &mut self.0 {
            Source::Wire(wire) => {
                wire.count = wire.count.checked_sub(1)?;
                let mut r = Reader::new(wire.bytes);
                let item = T::take(&mut r, wire.form);
                debug_assert!(item.is_ok(), "decoding found the elements whole");
                wire.bytes = r.rest();
                item.ok()
            }
            Source::Slice(items) => {
                let (first, rest) = items.split_first()?;
                *items = rest;
                Some(*first)
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = match &self.0 {
            Source::Wire(wire) => wire.count as usize,
            Source::Slice(items) => items.len(),
        };
        (left, Some(left))
    }
}

impl<'a, T: Value<'a>> ExactSizeIterator for Iter<'a, T> {}

impl<'a, T: Value<'a>> fmt::Debug for Array<'a, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_null() {
            return f.write_str("null");
        }
        let mut list = f.debug_list();
        let _ = self.each(&mut |item| {
            list.entry(item);
            Ok(())
        });
        list.finish()
    }
}

/// The number of elements only: a target's log link is slow.
#[cfg(feature = "defmt")]
impl<T> defmt::Format for Array<'_, T> {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "[{=usize} items]", self.len());
    }
}

impl<'a, T: Value<'a>> Value<'a> for Array<'a, T> {
    const TYPE: &'static Type = &Type::Array(T::TYPE);

    fn take(r: &mut Reader<'a>, form: Form) -> Result<Self, DecodeError> {
        let Some(count) = take_count(r, form)? else {
            return Ok(Self::Null);
        };
        let form = form.nullable(false);
        let before = *r;
        T::skim_many(r, count, form)?;
        let bytes = before
            .rest()
            .get(..before.remaining() - r.remaining())
            .ok_or(DecodeError::Short)?;
        Ok(Self::Wire(Wire {
            count,
            bytes,
            form: form.checked(),
        }))
    }

    fn skim(r: &mut Reader<'a>, form: Form) -> Result<(), DecodeError> {
        match take_count(r, form)? {
            Some(count) => T::skim_many(r, count, form.nullable(false)),
            None => Ok(()),
        }
    }

    fn put<S: Sink>(&self, out: &mut S, form: Form) -> Result<(), Full> {
        if self.is_null() && form.is_nullable() {
            return put_length(out, form, None);
        }
        let count = self.len();
        put_length(out, form, Some(count))?;
        let form = form.nullable(false);
        let mut emitted = 0_usize;
        self.each(&mut |item| {
            emitted += 1;
            item.put(out, form)
        })?;
        debug_assert_eq!(emitted, count, "an owner must emit as many elements as it counted");
        Ok(())
    }

    /// Arrays default to null or to empty, so no element need be looked at.
    fn is_default(&self, default: &Self) -> bool {
        self.is_null() == default.is_null() && self.len() == default.len()
    }
}

/// Reads a count and holds it against the bytes that are there: an element takes at least one.
fn take_count(r: &mut Reader<'_>, form: Form) -> Result<Option<u32>, DecodeError> {
    let Some(count) = take_length(r, form)? else {
        return if form.is_nullable() {
            Ok(None)
        } else {
            Err(DecodeError::UnexpectedNull)
        };
    };
    if count > r.remaining() {
        return Err(DecodeError::Short);
    }
    u32::try_from(count).map(Some).map_err(|_| DecodeError::Short)
}
