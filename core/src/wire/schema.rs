//! What a message looks like, as a constant: for the comparison with Kafka's own definitions, and for tools that explain bytes.

use super::value::{Form, Value};
use super::{Counter, Full, Sink, Version};

/// An inclusive range of versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Versions {
    /// The lowest.
    pub min: Version,
    /// The highest; [`Version::MAX`] when the range is open.
    pub max: Version,
}

impl Versions {
    /// No version at all.
    pub const NONE: Self = Self { min: 0, max: -1 };

    /// Whether `version` lies in the range.
    #[inline]
    #[must_use]
    pub const fn contains(self, version: Version) -> bool {
        self.min <= version && version <= self.max
    }
}

/// How a field is written, in Kafka's terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// One byte, not 0 for true.
    Bool,
    /// One byte.
    Int8,
    /// Two bytes.
    Int16,
    /// Four bytes.
    Int32,
    /// Eight bytes.
    Int64,
    /// Sixteen bytes.
    Uuid,
    /// Length and UTF-8.
    String,
    /// Length and bytes.
    Bytes,
    /// Length and record batches.
    Records,
    /// Count and elements.
    Array(&'static Type),
    /// Fields one after the other; in flexible versions tagged fields at the end.
    Struct(&'static str, &'static [Field]),
}

/// One line of a message's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Kafka's name in snake case.
    pub name: &'static str,
    /// How it is written.
    pub ty: &'static Type,
    /// Versions that have the field.
    pub versions: Versions,
    /// Versions in which it may be null.
    pub nullable: Versions,
    /// Its tag, if it is a tagged field.
    pub tag: Option<u32>,
    /// Its default as written in the table; `None` is the type's own (zero, empty).
    pub default: Option<&'static str>,
}

/// What a table's code asks of each of its lines. The lines are constants, so all of it folds away.
impl Field {
    /// The form in which the field stands in line with the others; `None` when it has a tag or the version lacks it.
    #[inline(always)]
    pub(crate) const fn in_line(&self, form: Form) -> Option<Form> {
        if self.tag.is_none() && self.versions.contains(form.version()) {
            Some(form.nullable(self.nullable.contains(form.version())))
        } else {
            None
        }
    }

    /// The form in which the field stands behind `tag`; `None` when that is not its tag or the version lacks it.
    #[inline(always)]
    pub(crate) const fn tagged(&self, tag: u32, form: Form) -> Option<Form> {
        match self.tag {
            Some(own) if own == tag && self.versions.contains(form.version()) => {
                Some(form.nullable(self.nullable.contains(form.version())))
            }
            _ => None,
        }
    }

    /// Whether the field is to be written among the tagged ones: those at their default are left out.
    #[inline(always)]
    pub(crate) fn is_written<'a, T: Value<'a>>(&self, value: &T, default: &T, form: Form) -> bool {
        self.tag.is_some() && self.versions.contains(form.version()) && !value.is_default(default)
    }

    /// Writes tag, size and value, if the field is to be written among the tagged ones.
    #[inline(always)]
    pub(crate) fn put_tagged<'a, S: Sink, T: Value<'a>>(
        &self,
        value: &T,
        default: &T,
        out: &mut S,
        form: Form,
    ) -> Result<(), Full> {
        match self.tag.and_then(|tag| Some((tag, self.tagged(tag, form)?))) {
            Some((tag, form)) if !value.is_default(default) => put_tag(tag, value, out, form),
            _ => Ok(()),
        }
    }
}

fn put_tag<'a, S: Sink, T: Value<'a>>(tag: u32, value: &T, out: &mut S, form: Form) -> Result<(), Full> {
    let mut size = Counter::default();
    value.put(&mut size, form)?;
    out.put_unsigned_varint(tag)?;
    out.put_unsigned_varint(u32::try_from(size.bytes()).map_err(|_| Full)?)?;
    value.put(out, form)
}
