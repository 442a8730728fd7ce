//! Signals as events: a `signalfd` in the epoll set, so that no handler ever interrupts anything.
//!
//! The mask belongs to the thread that makes the host, and threads started later inherit it; a thread that was there before
//! would still be killed by them. Make the host first.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::host::Event;
use crate::sys;

/// `SIGTERM`, `SIGINT` and `SIGHUP` of this process. `SIGPIPE` is ignored from here on.
#[derive(Debug)]
pub(crate) struct Signals {
    fd: OwnedFd,
}

impl Signals {
    pub(crate) fn watch() -> io::Result<Self> {
        let fd = sys::watch_signals(&[libc::SIGTERM, libc::SIGINT, libc::SIGHUP])?;
        Ok(Self { fd })
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Hands on everything that has come.
    pub(crate) fn drain(&self, each: &mut dyn FnMut(Event)) {
        // One `signalfd_siginfo`; it begins with the signal's number. Equal signals are merged while they wait.
        let mut info = [0_u8; size_of::<libc::signalfd_siginfo>()];
        while let Ok(bytes) = rustix::io::retry_on_intr(|| rustix::io::read(&self.fd, &mut info)) {
            match info.first_chunk() {
                Some(number) if bytes == info.len() => match u32::from_ne_bytes(*number) as i32 {
                    libc::SIGHUP => each(Event::Reload),
                    _ => each(Event::Stop),
                },
                _ => return,
            }
        }
    }
}
