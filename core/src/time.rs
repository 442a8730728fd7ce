//! Time as values: nothing in this crate reads a clock.

use core::ops::{Add, Sub};

/// A point on a monotonic clock, in microseconds since the owner's start. Never goes back, stops at no clock change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Instant(u64);

impl Instant {
    /// The furthest instant: a deadline that never comes.
    pub const NEVER: Self = Self(u64::MAX);

    /// From microseconds since start.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Microseconds since start.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Time from `earlier` to here in whole milliseconds; 0 when `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Millis {
        Millis(self.0.saturating_sub(earlier.0) / 1000)
    }
}

/// A length of time in milliseconds: Kafka's unit for every setting and timeout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Millis(pub u64);

impl Millis {
    /// From a wire value; negative counts as zero.
    #[must_use]
    pub const fn from_wire(ms: i32) -> Self {
        Self(if ms < 0 { 0 } else { ms as u64 })
    }
}

impl Add<Millis> for Instant {
    type Output = Self;
    /// Saturates at [`Instant::NEVER`].
    fn add(self, rhs: Millis) -> Self {
        Self(self.0.saturating_add(rhs.0.saturating_mul(1000)))
    }
}

impl Sub<Millis> for Instant {
    type Output = Self;
    /// Saturates at zero.
    fn sub(self, rhs: Millis) -> Self {
        Self(self.0.saturating_sub(rhs.0.saturating_mul(1000)))
    }
}

/// Wall-clock time as Kafka writes it: milliseconds since 1970-01-01 UTC; −1 means none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// No timestamp.
    pub const NONE: Self = Self(-1);
}
