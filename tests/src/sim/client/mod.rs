//! Model clients: each does what a real one may do, in its own time, and checks what it is told.

pub mod admin;
pub mod auditor;
pub mod consumer;
pub mod hostile;
pub mod member;
pub mod offsets;
pub mod producer;
pub mod topic;

use skerry_core::time::Instant;

use super::model::Model;
use super::net::FakeNet;
use crate::rng::Rng;

/// What a client works with in one step.
#[derive(Debug)]
pub struct Cx<'w> {
    /// Virtual time.
    pub now: Instant,
    /// Wall-clock time.
    pub wall: i64,
    /// The network.
    pub net: &'w mut FakeNet,
    /// The promises.
    pub model: &'w mut Model,
    /// Randomness.
    pub rng: &'w mut Rng,
    /// The disk may fail or be full, so that errors of storage are to be expected.
    pub disk_fails: bool,
    /// Acknowledged records may be lost: the settings promise nothing.
    pub lossy: bool,
    /// The broker was told to stop: it answers at once what would have waited.
    pub stopping: bool,
    /// The wall clock jumps, so that timestamps may lie further ahead than a topic allows.
    pub clock_jumps: bool,
    /// The broker has room for everything that these clients may ask, so that none is served in a lesser way.
    pub roomy: bool,
}

impl Cx<'_> {
    /// A moment from so many to so many microseconds from now.
    pub fn soon(&mut self, from: u64, to: u64) -> Instant {
        Instant::from_micros(self.now.as_micros() + self.rng.within(from, to))
    }
}

/// A client.
pub trait Actor {
    /// Does what is to be done now.
    fn step(&mut self, cx: &mut Cx<'_>);
    /// When to be asked next.
    fn next_at(&self, net: &FakeNet) -> Instant;
    /// Whether it has done all it meant to do and waits for nothing.
    fn is_done(&self) -> bool;
    /// Whether it must be done some time after it was told to stop.
    fn must_end(&self) -> bool {
        true
    }
    /// Begins nothing new and comes to an end.
    fn stop(&mut self);
    /// Does nothing any more that disturbs others; goes on else.
    fn settle(&mut self) {}
    /// Closes its connection, whatever it waits for.
    fn leave(&mut self, cx: &mut Cx<'_>);
    /// Who it is.
    fn name(&self) -> &str;
}
