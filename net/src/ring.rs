//! Syncs and cold loads by io_uring, so that a slow device stops nobody.
//!
//! Reads and writes of the usual path stay plain system calls: they are answered from the page cache, and there a ring costs more
//! than it saves. Each piece of work goes straight to a worker of the kernel (`IOSQE_ASYNC`); its time is not this thread's, and
//! shows in the process's CPU time only. The kernel keeps one such worker once there has been work; idle, it wakes every five
//! seconds for some microseconds (seen on Linux 6.18). The broker's own thread sleeps on.

use core::time::Duration;
use std::io;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;

use crate::Full;
use crate::host::{Completion, FileId, Token};
use crate::slab::Slab;
use crate::sys::{RawRing, Work};

/// Loads in flight at once. The rest of the ring is for syncs: a crowd of cold readers never delays a flush.
pub(crate) const LOADS_MAX: u32 = 4;

/// Work under way.
///
/// When full: [`Full`] from the `start_` calls.
pub(crate) struct DiskRing {
    raw: RawRing,
    started: Slab<Pending>,
    loads: u32,
}

#[derive(Debug)]
struct Pending {
    file: FileId,
    token: Token,
    load: bool,
}

impl DiskRing {
    /// A ring for `entries` pieces of work (raised to a power of two that leaves room for a sync beside the loads).
    pub(crate) fn new(entries: u32) -> io::Result<Self> {
        let raw = RawRing::new(entries.max(LOADS_MAX + 1))?;
        Ok(Self {
            started: Slab::new(raw.capacity()),
            raw,
            loads: 0,
        })
    }

    /// The descriptor that polls as readable while completions wait.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.raw.fd()
    }

    /// Whether a completion is still to come.
    pub(crate) const fn is_idle(&self) -> bool {
        self.raw.in_flight() == 0
    }

    pub(crate) fn start_sync(
        &mut self,
        fd: BorrowedFd<'_>,
        data_only: bool,
        delay: Duration,
        file: FileId,
        token: Token,
    ) -> Result<(), Full> {
        let pending = Pending {
            file,
            token,
            load: false,
        };
        self.start(fd, Work::Sync { data_only, delay }, pending)
    }

    pub(crate) fn start_load(
        &mut self,
        fd: BorrowedFd<'_>,
        position: u64,
        bytes: usize,
        file: FileId,
        token: Token,
    ) -> Result<(), Full> {
        if self.loads == LOADS_MAX {
            return Err(Full);
        }
        let pending = Pending {
            file,
            token,
            load: true,
        };
        self.start(fd, Work::Load { position, bytes }, pending)?;
        self.loads += 1;
        Ok(())
    }

    /// The next ended piece of work and the file it was on.
    pub(crate) fn pop(&mut self) -> Option<(FileId, Completion)> {
        let (mark, result) = self.raw.pop()?;
        let pending = self.started.remove(mark as u32)?;
        self.loads -= u32::from(pending.load);
        let result = match result {
            0.. => Ok(()),
            error => Err(crate::disk::failed(Errno::from_raw_os_error(error.saturating_neg()))),
        };
        let completion = Completion {
            token: pending.token,
            result,
        };
        Some((pending.file, completion))
    }

    fn start(&mut self, fd: BorrowedFd<'_>, work: Work, pending: Pending) -> Result<(), Full> {
        let mark = self.started.insert(pending).map_err(|_| Full)?;
        let submitted = self.raw.submit(fd, work, u64::from(mark));
        if submitted.is_err() {
            self.started.remove(mark);
        }
        submitted
    }
}
