//! A machine without a network: a fault-injecting disk, clocks that stand still unless they are set, and randomness from a seed.

use std::io::{IoSlice, IoSliceMut};

use skerry_core::meter::Ticks;
use skerry_core::time::{Instant, Timestamp};
use skerry_net::host::{Clock, Completion, Disk, DiskError, FileId, OpenMode, Started, Token};

use crate::fault_disk::FaultDisk;
use crate::rng::Rng;

/// The machine.
#[derive(Debug)]
pub struct Machine {
    /// Its disk.
    pub disk: FaultDisk,
    /// Where its randomness comes from.
    pub rng: Rng,
    /// Monotonic time.
    pub now: Instant,
    /// Wall-clock time.
    pub wall: Timestamp,
}

impl Machine {
    /// At the beginning of both clocks.
    #[must_use]
    pub const fn new(disk: FaultDisk, rng: Rng) -> Self {
        Self {
            disk,
            rng,
            now: Instant::from_micros(0),
            wall: Timestamp(0),
        }
    }
}

macro_rules! delegate {
    ($($name:ident($($arg:ident: $ty:ty),*) -> $out:ty;)*) => {
        impl Disk for Machine {
            $(fn $name(&mut self, $($arg: $ty),*) -> $out { self.disk.$name($($arg),*) })*
        }
    };
}

delegate! {
    open(path: &str, mode: OpenMode) -> Result<FileId, DiskError>;
    close(file: FileId) -> ();
    len(file: FileId) -> Result<u64, DiskError>;
    write_at(file: FileId, position: u64, bufs: &[IoSlice<'_>]) -> Result<usize, DiskError>;
    read_at(file: FileId, position: u64, buf: &mut [u8]) -> Result<usize, DiskError>;
    read_cached(file: FileId, position: u64, bufs: &mut [IoSliceMut<'_>]) -> nb::Result<usize, DiskError>;
    cached(file: FileId, position: u64, bytes: usize) -> usize;
    start_load(file: FileId, position: u64, bytes: usize, token: Token) -> Result<Started, DiskError>;
    start_sync(file: FileId, token: Token) -> Result<Started, DiskError>;
    poll_done() -> Option<Completion>;
    sync(file: FileId) -> Result<(), DiskError>;
    truncate(file: FileId, bytes: u64) -> Result<(), DiskError>;
    rename(from: &str, to: &str) -> Result<(), DiskError>;
    remove(path: &str) -> Result<(), DiskError>;
    create_dir(path: &str) -> Result<(), DiskError>;
    remove_dir(path: &str) -> Result<(), DiskError>;
    list(path: &str, each: &mut dyn FnMut(&str)) -> Result<(), DiskError>;
}

impl Clock for Machine {
    fn now(&mut self) -> Instant {
        self.now
    }
    fn wall(&mut self) -> Timestamp {
        self.wall
    }
    fn ticks(&mut self) -> Ticks {
        Ticks(0)
    }
    fn thread_cpu(&mut self) -> u64 {
        0
    }
    fn random(&mut self, out: &mut [u8]) {
        self.rng.fill(out);
    }
}
