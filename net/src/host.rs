//! What the broker asks of the machine it runs on: streams, files, clocks.
//!
//! Everything above is generic over [`Host`], so that the same code runs over Linux (`crate::linux`) and over the
//! simulator's fake clock, sockets and disk. Handles are small copyable numbers; the host owns what is behind them.
//! Calls never block except where they say so, and allocate nothing once the host is made.

use core::fmt;
use core::net::SocketAddr;
use std::io::{IoSlice, IoSliceMut};

use skerry_core::meter::Ticks;
use skerry_core::time::{Instant, Timestamp};

/// A listening socket, by its place in the list that the host was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ListenerId(pub u16);

/// A connected stream. The number is a slot: it is used again after [`Net::close`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(pub u32);

/// An open file or directory. The number is a slot: it is used again after [`Disk::close`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u32);

/// The caller's mark on work that finishes later; comes back in [`Completion`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(pub u64);

/// An accepted connection.
#[derive(Clone, Copy, Debug)]
pub struct Accepted {
    /// The new stream, non-blocking, with `TCP_NODELAY` set.
    pub stream: StreamId,
    /// Who connected.
    pub peer: SocketAddr,
    /// The local address that it connected to.
    pub local: SocketAddr,
}

/// Why a stream can do no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetError {
    /// The peer reset the connection, or it broke.
    Reset,
    /// No descriptor or stream slot is left (`EMFILE`, `ENFILE`, slots full).
    Exhausted,
    /// Another error, by its `errno`.
    Os(i32),
    /// The file behind a [`Net::send_file`] could not be read.
    File(DiskError),
}

/// Why a disk call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskError {
    /// No space or quota left (`ENOSPC`, `EDQUOT`).
    Full,
    /// The device failed (`EIO`). After a failed sync: final for that file.
    Io,
    /// No such file or directory.
    NotFound,
    /// It is there already.
    Exists,
    /// No descriptor or file slot is left.
    Exhausted,
    /// Another error, by its `errno`.
    Os(i32),
}

impl fmt::Display for DiskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("no space left"),
            Self::Io => f.write_str("input/output error"),
            Self::NotFound => f.write_str("no such file or directory"),
            Self::Exists => f.write_str("it is there already"),
            Self::Exhausted => f.write_str("no more files can be open"),
            Self::Os(number) => std::io::Error::from_raw_os_error(*number).fmt(f),
        }
    }
}

/// How to open a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// For reading; it must be there.
    Read,
    /// For reading and writing; it must be there.
    Write,
    /// For reading and writing; made when it is not there.
    Create,
    /// For reading and writing; it must not be there.
    CreateNew,
    /// A directory, for [`Disk::start_sync`].
    Directory,
}

/// What [`Disk::start_sync`] or [`Disk::start_load`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Started {
    /// Done before the call returned (blocking variant).
    Done,
    /// Under way: a [`Completion`] with the caller's token follows.
    Pending,
}

/// Work of [`Disk::start_sync`] or [`Disk::start_load`] that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The mark given at its start.
    pub token: Token,
    /// How it ended.
    pub result: Result<(), DiskError>,
}

/// One thing that became ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Connections wait to be accepted.
    Accept(ListenerId),
    /// A stream changed. Edge-triggered: said once per change, so the owner remembers it until a call would block.
    Stream {
        /// Which.
        stream: StreamId,
        /// Bytes, end of stream or an error can be read.
        readable: bool,
        /// Bytes can be written again.
        writable: bool,
        /// The peer closed its side or the connection broke.
        hangup: bool,
    },
    /// [`Disk::poll_done`] has something.
    Disk,
    /// `SIGTERM` or `SIGINT`: stop gracefully.
    Stop,
    /// `SIGHUP`: read certificates and settings again.
    Reload,
}

/// Streams. Bytes in and out, nothing about what they mean.
pub trait Net {
    /// Takes one waiting connection.
    ///
    /// Errors: `WouldBlock` when none waits; [`NetError::Exhausted`] when there is no place for one.
    fn accept(&mut self, listener: ListenerId) -> nb::Result<Accepted, NetError>;

    /// Receives into `buf`. 0 means that the peer has ended its side (`buf` must not be empty).
    fn read(&mut self, stream: StreamId, buf: &mut [u8]) -> nb::Result<usize, NetError>;

    /// Sends from `bufs` in order; the count may be short. `more` says that further bytes follow at once (`MSG_MORE`).
    fn write(&mut self, stream: StreamId, bufs: &[IoSlice<'_>], more: bool) -> nb::Result<usize, NetError>;

    /// Sends up to `bytes` of `file` from `position` without copying (`sendfile`). The count may be short; 0 means that the
    /// file ends before `position`.
    fn send_file(&mut self, stream: StreamId, file: FileId, position: u64, bytes: usize)
    -> nb::Result<usize, NetError>;

    /// Says that no more will be sent; what was sent still arrives.
    fn shutdown(&mut self, stream: StreamId);

    /// Gives the stream and its slot back.
    fn close(&mut self, stream: StreamId);
}

/// Files under one data directory. Paths are relative to it, `/`-separated.
pub trait Disk {
    /// Opens a file or directory.
    fn open(&mut self, path: &str, mode: OpenMode) -> Result<FileId, DiskError>;

    /// Gives the handle back. Pending work on it still completes.
    fn close(&mut self, file: FileId);

    /// Bytes in the file.
    fn len(&mut self, file: FileId) -> Result<u64, DiskError>;

    /// Writes `bufs` in order at `position`. May be short: the count is what was written.
    fn write_at(&mut self, file: FileId, position: u64, bufs: &[IoSlice<'_>]) -> Result<usize, DiskError>;

    /// Reads at `position`, waiting for the device when it must. Short at the end of the file.
    fn read_at(&mut self, file: FileId, position: u64, buf: &mut [u8]) -> Result<usize, DiskError>;

    /// Reads what the page cache holds (`preadv2` with `RWF_NOWAIT`); 0 at the end of the file.
    ///
    /// Errors: `WouldBlock` when the first byte is not in memory: [`Disk::start_load`] brings it. Where the kernel or file
    /// system cannot do this, the call reads and may wait, and the host counts it.
    fn read_cached(&mut self, file: FileId, position: u64, bufs: &mut [IoSliceMut<'_>])
    -> nb::Result<usize, DiskError>;

    /// How many of the `bytes` from `position` can be sent without waiting for the device: 0 means none. An estimate
    /// by probing; where it cannot be told, `bytes`.
    fn cached(&mut self, file: FileId, position: u64, bytes: usize) -> usize;

    /// Starts to bring a range (the host may take less, at least one byte) into memory.
    ///
    /// When full: `Err(Exhausted)`; try after the next completion.
    fn start_load(&mut self, file: FileId, position: u64, bytes: usize, token: Token) -> Result<Started, DiskError>;

    /// Starts to make the file's (or directory's) bytes durable (`fdatasync`; `fsync` for a directory).
    ///
    /// When full: `Err(Exhausted)`; try after the next completion.
    fn start_sync(&mut self, file: FileId, token: Token) -> Result<Started, DiskError>;

    /// The next ended piece of work, if any.
    fn poll_done(&mut self) -> Option<Completion>;

    /// Makes the file's or directory's bytes durable before it returns. For start, stop and rare metadata.
    fn sync(&mut self, file: FileId) -> Result<(), DiskError>;

    /// Cuts the file (or extends it with zeros) to `bytes`.
    fn truncate(&mut self, file: FileId, bytes: u64) -> Result<(), DiskError>;

    /// Renames within the data directory, replacing the target. Durable once the directory is synced.
    fn rename(&mut self, from: &str, to: &str) -> Result<(), DiskError>;

    /// Removes a file.
    fn remove(&mut self, path: &str) -> Result<(), DiskError>;

    /// Makes one directory; [`DiskError::Exists`] when it is there.
    fn create_dir(&mut self, path: &str) -> Result<(), DiskError>;

    /// Removes an empty directory.
    fn remove_dir(&mut self, path: &str) -> Result<(), DiskError>;

    /// Calls `each` with every entry's name (neither `.` nor `..`), in no order. `""` is the data directory itself. May
    /// allocate: for start and deletion only.
    fn list(&mut self, path: &str, each: &mut dyn FnMut(&str)) -> Result<(), DiskError>;
}

/// Clocks and randomness.
pub trait Clock {
    /// Monotonic time.
    fn now(&mut self) -> Instant;
    /// Wall-clock time. May jump.
    fn wall(&mut self) -> Timestamp;
    /// The tick counter (about 25 ns a reading).
    fn ticks(&mut self) -> Ticks;
    /// CPU time of this thread in nanoseconds (about 0.5 µs a reading).
    fn thread_cpu(&mut self) -> u64;
    /// Fills `out` with unpredictable bytes.
    fn random(&mut self, out: &mut [u8]);
}

/// All of it, and the one place where the thread sleeps.
pub trait Host: Net + Disk + Clock {
    /// Sleeps until something is ready or `until` has come, then hands each event to `each`. Returns at once when events
    /// are ready already; `until` in the past only polls.
    fn wait(&mut self, until: Instant, each: &mut dyn FnMut(Event));
}
