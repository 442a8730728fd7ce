//! What a message looks like, as a constant: for the comparison with Kafka's own definitions, and for tools that explain bytes.

use super::Version;

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
