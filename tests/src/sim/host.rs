//! The fake machine: virtual time, fake sockets and a fake disk behind [`skerry_net::host::Host`].
//!
//! Time stands still while the broker works and moves in [`Host::wait`] alone, to whatever comes first: something for the broker, the
//! broker's own deadline, or the moment at which the clients want to act (then `wait` returns with nothing, which a
//! broker must bear). So an hour of waiting costs nothing, and a broker that spins is seen at once.

use std::io::{IoSlice, IoSliceMut};

use skerry_core::meter::Ticks;
use skerry_core::time::{Instant, Timestamp};
use skerry_net::host::{
    Accepted, Clock, Completion, Disk, DiskError, Event, FileId, Host, ListenerId, Net, NetError, OpenMode, Started,
    StreamId, Token,
};

use super::net::FakeNet;
use crate::fault_disk::FaultDisk;
use crate::rng::Rng;

/// Passes at one instant. A busy broker has work for some; one that goes on is spinning.
const PASSES_MAX: u32 = 5_000;

/// Wall-clock time when every simulation begins.
pub const WALL_START: i64 = 1_790_000_000_000;

/// A machine.
#[derive(Debug)]
pub struct SimHost {
    /// Its sockets.
    pub net: FakeNet,
    /// Its disk.
    pub disk: FaultDisk,
    /// When the clients want to act next.
    pub horizon: Instant,
    /// What the wall clock is off by, in milliseconds.
    pub wall_jump_ms: i64,
    /// `SIGTERM` at the next wait.
    pub stop: bool,
    /// How often the broker was woken, by an event or its own deadline.
    pub wakes: u64,
    /// Times that a [`Net::send_file`] met pages that were not in memory, so that the thread would have waited for the device.
    pub cold_sends: u64,
    now: Instant,
    started: Instant,
    ticks: u64,
    passes_now: u32,
    rng: Rng,
}

impl SimHost {
    /// A machine that was just switched on.
    #[must_use]
    pub const fn new(net: FakeNet, disk: FaultDisk, rng: Rng) -> Self {
        Self {
            net,
            disk,
            horizon: Instant::NEVER,
            wall_jump_ms: 0,
            stop: false,
            wakes: 0,
            cold_sends: 0,
            now: Instant::from_micros(1),
            started: Instant::from_micros(1),
            ticks: 0,
            passes_now: 0,
            rng,
        }
    }

    /// Virtual time since the simulation began, over all restarts.
    #[must_use]
    pub const fn time(&self) -> Instant {
        self.now
    }

    /// Wall-clock time.
    #[must_use]
    pub const fn wall_time(&self) -> i64 {
        WALL_START + (self.now.as_micros() / 1000) as i64 + self.wall_jump_ms
    }

    /// The broker's process is gone: its sockets, its files, its clock's origin.
    pub fn restart(&mut self, power_cut: bool) {
        self.net.break_all();
        if power_cut {
            self.disk.power_cycle();
        } else {
            self.disk.kill();
        }
        self.started = self.now;
        self.stop = false;
        self.passes_now = 0;
    }

    /// Lets time pass while no broker runs.
    pub fn pass_time(&mut self, micros: u64) {
        self.now = Instant::from_micros(self.now.as_micros() + micros);
        self.disk.set_now(self.now);
    }

    /// A broker's instant as one of the simulation's.
    const fn in_sim(&self, at: Instant) -> Instant {
        Instant::from_micros(at.as_micros().saturating_add(self.started.as_micros()))
    }

    fn tell(&mut self, each: &mut dyn FnMut(Event)) -> bool {
        let mut any = self.net.tell_broker(self.now, each);
        if self.disk.next_done_at() <= self.now {
            any = true;
            each(Event::Disk);
        }
        if core::mem::take(&mut self.stop) {
            any = true;
            each(Event::Stop);
        }
        any
    }
}

impl Net for SimHost {
    fn accept(&mut self, listener: ListenerId) -> nb::Result<Accepted, NetError> {
        self.net.accept(listener, self.now)
    }

    fn read(&mut self, stream: StreamId, buf: &mut [u8]) -> nb::Result<usize, NetError> {
        self.net.read(stream, self.now, buf)
    }

    fn write(&mut self, stream: StreamId, bufs: &[IoSlice<'_>], _: bool) -> nb::Result<usize, NetError> {
        self.net.write(stream, self.now, bufs)
    }

    fn send_file(
        &mut self,
        stream: StreamId,
        file: FileId,
        position: u64,
        bytes: usize,
    ) -> nb::Result<usize, NetError> {
        let room = self.net.room(stream).clamp(1, bytes);
        if self.disk.cached(file, position, room) < room {
            self.cold_sends += 1;
        }
        let mut buf = vec![0; room];
        let there = self
            .disk
            .read_at(file, position, &mut buf)
            .map_err(|e| nb::Error::Other(NetError::File(e)))?;
        if there == 0 {
            return Ok(0);
        }
        self.net.write(stream, self.now, &[IoSlice::new(&buf[..there])])
    }

    fn shutdown(&mut self, stream: StreamId) {
        self.net.shutdown(stream, self.now);
    }

    fn close(&mut self, stream: StreamId) {
        self.net.close(stream, self.now);
    }
}

impl Disk for SimHost {
    fn open(&mut self, path: &str, mode: OpenMode) -> Result<FileId, DiskError> {
        self.disk.open(path, mode)
    }

    fn close(&mut self, file: FileId) {
        Disk::close(&mut self.disk, file);
    }

    fn len(&mut self, file: FileId) -> Result<u64, DiskError> {
        self.disk.len(file)
    }

    fn write_at(&mut self, file: FileId, position: u64, bufs: &[IoSlice<'_>]) -> Result<usize, DiskError> {
        self.disk.write_at(file, position, bufs)
    }

    fn read_at(&mut self, file: FileId, position: u64, buf: &mut [u8]) -> Result<usize, DiskError> {
        self.disk.read_at(file, position, buf)
    }

    fn read_cached(
        &mut self,
        file: FileId,
        position: u64,
        bufs: &mut [IoSliceMut<'_>],
    ) -> nb::Result<usize, DiskError> {
        self.disk.read_cached(file, position, bufs)
    }

    fn cached(&mut self, file: FileId, position: u64, bytes: usize) -> usize {
        self.disk.cached(file, position, bytes)
    }

    fn start_load(&mut self, file: FileId, position: u64, bytes: usize, token: Token) -> Result<Started, DiskError> {
        self.disk.start_load(file, position, bytes, token)
    }

    fn start_sync(&mut self, file: FileId, token: Token) -> Result<Started, DiskError> {
        self.disk.start_sync(file, token)
    }

    fn poll_done(&mut self) -> Option<Completion> {
        self.disk.poll_done()
    }

    fn sync(&mut self, file: FileId) -> Result<(), DiskError> {
        self.disk.sync(file)
    }

    fn truncate(&mut self, file: FileId, bytes: u64) -> Result<(), DiskError> {
        self.disk.truncate(file, bytes)
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), DiskError> {
        self.disk.rename(from, to)
    }

    fn remove(&mut self, path: &str) -> Result<(), DiskError> {
        self.disk.remove(path)
    }

    fn create_dir(&mut self, path: &str) -> Result<(), DiskError> {
        self.disk.create_dir(path)
    }

    fn remove_dir(&mut self, path: &str) -> Result<(), DiskError> {
        self.disk.remove_dir(path)
    }

    fn list(&mut self, path: &str, each: &mut dyn FnMut(&str)) -> Result<(), DiskError> {
        self.disk.list(path, each)
    }
}

impl Clock for SimHost {
    fn now(&mut self) -> Instant {
        Instant::from_micros(self.now.as_micros() - self.started.as_micros())
    }

    fn wall(&mut self) -> Timestamp {
        Timestamp(self.wall_time())
    }

    fn ticks(&mut self) -> Ticks {
        self.ticks += self.rng.within(1, 50);
        Ticks(self.ticks)
    }

    fn thread_cpu(&mut self) -> u64 {
        self.ticks
    }

    fn random(&mut self, out: &mut [u8]) {
        self.rng.fill(out);
    }
}

impl Host for SimHost {
    fn wait(&mut self, until: Instant, each: &mut dyn FnMut(Event)) {
        let until = self.in_sim(until);
        self.passes_now += 1;
        assert!(
            self.passes_now < PASSES_MAX,
            "the broker spins: {PASSES_MAX} passes without rest"
        );
        if self.tell(each) {
            self.wakes += 1;
            return;
        }
        if self.horizon <= self.now {
            // Said once: a broker that waits on within one pass gets on.
            self.horizon = Instant::NEVER;
            return;
        }
        if until <= self.now {
            return;
        }
        let news = self.net.broker_news_at().min(self.disk.next_done_at());
        let next = until.min(news).min(self.horizon);
        assert!(next < Instant::NEVER, "nothing will ever happen again");
        self.now = next;
        self.disk.set_now(next);
        self.passes_now = 0;
        if self.tell(each) || until <= next {
            self.wakes += 1;
        }
    }
}
