//! The host that is a Linux machine: epoll, sockets, files, io_uring, signals.

use core::fmt;
use core::net::SocketAddr;
use core::time::Duration;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::TcpListener;
use std::path::PathBuf;

use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use skerry_core::meter::Ticks;
use skerry_core::time::{Instant, Timestamp};

pub use crate::clock::LinuxClock;
pub use crate::disk::{DiskCounters, LinuxDisk};
use crate::host::{
    Accepted, Clock, Completion, Disk, DiskError, Event, FileId, Host, ListenerId, Net, NetError, OpenMode, Started,
    StreamId, Token,
};
use crate::poll::{Poll, Source};
use crate::signal::Signals;
use crate::socket::{self, Sockets};

/// What a [`LinuxHost`] is made of.
#[derive(Debug)]
pub struct LinuxConfig {
    /// Listeners, in the order that [`ListenerId`] counts.
    pub listeners: Vec<Listen>,
    /// Connections that wait to be accepted, per listener (Kafka's `socket.listen.backlog.size`); the kernel may take less.
    pub backlog: u32,
    /// Where the files are. Made when it is not there.
    pub data_directory: PathBuf,
    /// Streams at once.
    pub streams_max: u32,
    /// Open files and directories at once.
    pub files_max: u32,
    /// Whether to use io_uring.
    pub ring: Ring,
    /// Syncs and loads in flight at once, where there is a ring.
    pub ring_entries: u32,
    /// How long each [`Disk::start_sync`] waits before it begins: zero, but for tests of what a slow device does.
    pub sync_delay: Duration,
}

/// A listener to be made, or one that is there.
#[derive(Debug)]
pub enum Listen {
    /// Bind this address; port 0 leaves the choice to the kernel ([`LinuxHost::local_addr`] tells it).
    Bind(SocketAddr),
    /// Take this one, bound and listening.
    Bound(TcpListener),
}

/// Whether syncs and cold loads go by io_uring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ring {
    /// Where the kernel has and allows it; else as with `Off`.
    Auto,
    /// Never: a sync stops the thread until the device is done.
    Off,
}

/// Why a host could not be made.
#[derive(Debug)]
pub enum StartError {
    /// A listener could not be bound.
    Listen(SocketAddr, io::Error),
    /// The data directory could not be made, opened or locked.
    DataDirectory(PathBuf, io::Error),
    /// The kernel refused something that every broker needs.
    Kernel(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listen(address, error) => write!(f, "cannot listen on {address}: {error}"),
            Self::DataDirectory(path, error) if error.kind() == io::ErrorKind::ResourceBusy => {
                write!(f, "data directory {} is in use by another broker", path.display())
            }
            Self::DataDirectory(path, error) => write!(f, "cannot use data directory {}: {error}", path.display()),
            Self::Kernel(error) => write!(f, "cannot set up the event loop: {error}"),
        }
    }
}

impl core::error::Error for StartError {}

/// File descriptors: what the configuration may come to use, and what the system allows this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptors {
    /// Streams, files, listeners and a few of the host's own.
    pub wanted: u64,
    /// The limit, after it was raised as far as the wish and the hard limit go.
    pub limit: u64,
}

/// A Linux machine.
///
/// Belongs to the thread that made it. Make it before any other thread is started: signals are told through it because its thread masks
/// them, and threads started later inherit the mask.
pub struct LinuxHost {
    poll: Poll,
    sockets: Sockets,
    disk: LinuxDisk,
    clock: LinuxClock,
    signals: Signals,
    descriptors: Descriptors,
}

/// Descriptors of the host itself and of the process: epoll, ring, signals, data directory, standard streams, and some to spare.
const DESCRIPTORS_OWN: u64 = 16;

impl LinuxHost {
    /// Binds, opens and takes everything that the configuration names. What is ready already (a `SIGTERM` that came at once included)
    /// is told by the first [`Host::wait`].
    pub fn new(config: LinuxConfig) -> Result<Self, StartError> {
        let wanted = u64::from(config.streams_max) + u64::from(config.files_max) + config.listeners.len() as u64;
        let descriptors = raise_descriptor_limit(wanted + DESCRIPTORS_OWN);
        let signals = Signals::watch().map_err(StartError::Kernel)?;
        let poll = Poll::new().map_err(StartError::Kernel)?;
        let ring_entries = if config.ring == Ring::Auto {
            config.ring_entries
        } else {
            0
        };
        let disk = LinuxDisk::new(
            &config.data_directory,
            config.files_max,
            ring_entries,
            config.sync_delay,
        )
        .map_err(|error| StartError::DataDirectory(config.data_directory, error))?;
        let backlog = i32::try_from(config.backlog).unwrap_or(i32::MAX);
        let mut listeners = Vec::with_capacity(config.listeners.len());
        for listen in config.listeners {
            listeners.push(match listen {
                Listen::Bound(listener) => listener,
                Listen::Bind(address) => {
                    socket::listen(address, backlog).map_err(|error| StartError::Listen(address, error))?
                }
            });
        }
        let sockets = Sockets::new(listeners, config.streams_max, &poll).map_err(StartError::Kernel)?;
        let added = poll.add(signals.fd(), Source::Signals);
        let added = added.and_then(|()| disk.ring_fd().map_or(Ok(()), |fd| poll.add(fd, Source::Ring)));
        added.map_err(|error| StartError::Kernel(error.into()))?;
        Ok(Self {
            poll,
            sockets,
            disk,
            clock: LinuxClock::new(),
            signals,
            descriptors,
        })
    }

    /// The address that a listener is bound to.
    #[must_use]
    pub fn local_addr(&self, listener: ListenerId) -> Option<SocketAddr> {
        self.sockets.local_addr(listener)
    }

    /// Streams open now.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.sockets.streams()
    }

    /// The file half: its counters, and whether it has a ring.
    #[must_use]
    pub const fn disk(&self) -> &LinuxDisk {
        &self.disk
    }

    /// Whether the system allows as many descriptors as the configuration may come to use. Where it does not, [`NetError::Exhausted`] and
    /// [`DiskError::Exhausted`] come earlier than configured: worth a warning at start.
    #[must_use]
    pub const fn descriptors(&self) -> Descriptors {
        self.descriptors
    }
}

fn raise_descriptor_limit(wanted: u64) -> Descriptors {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // No limit at all reads as `None`.
    let limit = current.unwrap_or(u64::MAX);
    let raised = wanted.min(maximum.unwrap_or(u64::MAX));
    if raised <= limit {
        return Descriptors { wanted, limit };
    }
    let raise = Rlimit {
        current: Some(raised),
        maximum,
    };
    let limit = if setrlimit(Resource::Nofile, raise).is_ok() {
        raised
    } else {
        limit
    };
    Descriptors { wanted, limit }
}

impl Net for LinuxHost {
    fn accept(&mut self, listener: ListenerId) -> nb::Result<Accepted, NetError> {
        self.sockets.accept(listener, &self.poll)
    }

    fn read(&mut self, stream: StreamId, buf: &mut [u8]) -> nb::Result<usize, NetError> {
        self.sockets.read(stream, buf)
    }

    fn write(&mut self, stream: StreamId, bufs: &[IoSlice<'_>], more: bool) -> nb::Result<usize, NetError> {
        self.sockets.write(stream, bufs, more)
    }

    fn send_file(
        &mut self,
        stream: StreamId,
        file: FileId,
        position: u64,
        bytes: usize,
    ) -> nb::Result<usize, NetError> {
        let to = self.sockets.fd(stream)?;
        let from = self
            .disk
            .fd(file)
            .map_err(|error| nb::Error::Other(NetError::File(error)))?;
        let mut at = position;
        retry_on_intr(|| rustix::fs::sendfile(to, from, Some(&mut at), bytes)).map_err(|error| match error {
            // No socket answers so: it is the file.
            Errno::IO => nb::Error::Other(NetError::File(DiskError::Io)),
            error => socket::refused(error),
        })
    }

    fn shutdown(&mut self, stream: StreamId) {
        self.sockets.shutdown(stream);
    }

    fn close(&mut self, stream: StreamId) {
        self.sockets.close(stream);
    }
}

impl Disk for LinuxHost {
    fn open(&mut self, path: &str, mode: OpenMode) -> Result<FileId, DiskError> {
        self.disk.open(path, mode)
    }

    fn close(&mut self, file: FileId) {
        self.disk.close(file);
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

impl Clock for LinuxHost {
    fn now(&mut self) -> Instant {
        self.clock.now()
    }

    fn wall(&mut self) -> Timestamp {
        self.clock.wall()
    }

    fn ticks(&mut self) -> Ticks {
        self.clock.ticks()
    }

    fn thread_cpu(&mut self) -> u64 {
        self.clock.thread_cpu()
    }

    fn random(&mut self, out: &mut [u8]) {
        self.clock.random(out);
    }
}

impl Host for LinuxHost {
    fn wait(&mut self, until: Instant, each: &mut dyn FnMut(Event)) {
        let now = self.clock.now();
        let Self { poll, signals, .. } = self;
        poll.wait(now, until, |change| match change.source {
            Source::Listener(index) => each(Event::Accept(ListenerId(index))),
            Source::Stream(index) => each(Event::Stream {
                stream: StreamId(index),
                readable: change.readable,
                writable: change.writable,
                hangup: change.hangup,
            }),
            Source::Ring => each(Event::Disk),
            Source::Signals => signals.drain(each),
        });
    }
}
