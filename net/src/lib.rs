//! Sockets, disks, clocks and deadlines for one thread.
//!
//! Knows neither Kafka nor TLS. [`host`] is what the layers above are written against; [`linux`] is the real one.
#![deny(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod clock;
mod disk;
pub mod host;
pub mod linux;
mod poll;
pub mod pool;
pub mod queue;
mod ring;
mod signal;
mod slab;
pub mod slots;
mod socket;
mod sys;
pub mod timer;

/// No place is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// A small copyable name with an index below some capacity, so that plain arrays can be keyed by it.
pub trait Key: Copy {
    /// The index.
    fn index(self) -> usize;
}

impl Key for u32 {
    fn index(self) -> usize {
        self as usize
    }
}

impl Key for usize {
    fn index(self) -> usize {
        self
    }
}
