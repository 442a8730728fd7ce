//! What Linux offers only through raw pointers: the memory of an io_uring, the signal mask, the tick counter.
//!
//! The only file of this crate that says `unsafe`. Every function here is safe for every argument.
#![allow(unsafe_code)]

use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::io_uring::{
    IORING_OFF_SQ_RING, IORING_OFF_SQES, IoringEnterFlags, IoringFeatureFlags, IoringFsyncFlags, IoringOp,
    IoringSqeFlags, io_uring_cqe, io_uring_enter, io_uring_params, io_uring_ptr, io_uring_setup, io_uring_sqe,
    io_uring_user_data,
};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

use crate::Full;

/// Gives the whole pages of `bytes` back to the kernel; they read as zeros afterwards. What the kernel refuses stays as it is.
pub(crate) fn discard(bytes: &mut [u8]) {
    let page = rustix::param::page_size();
    let skip = bytes.as_ptr().align_offset(page);
    let Some(pages) = bytes.get_mut(skip..) else {
        return;
    };
    let whole = pages.len() - pages.len() % page;
    // SAFETY: the range is whole pages inside a slice that is borrowed mutably, so nobody else reads or writes it; on private
    // anonymous memory, which every allocation of pages is, the call is a write of zeros.
    let _ = unsafe { madvise(pages.as_mut_ptr().cast(), whole, Advice::LinuxDontNeed) };
}

/// Reads the processor's free-running counter.
///
/// x86-64: the time-stamp counter, invariant on anything of the last decade. It is read unfenced: a lap may gain or lose the few
/// instructions in flight, which the next one makes good.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn ticks() -> u64 {
    // SAFETY: `rdtsc` reads a register and touches no memory; Linux leaves it open to user code.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Reads the processor's free-running counter.
///
/// aarch64: the virtual counter of the generic timer, 1 GHz since Armv8.6 and 19–100 MHz before.
#[cfg(target_arch = "aarch64")]
#[inline]
pub(crate) fn ticks() -> u64 {
    let count: u64;
    // SAFETY: reads a register that Linux leaves open to user code; touches neither memory, stack nor flags.
    unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack, preserves_flags)) };
    count
}

/// Reads a free-running counter: the monotonic clock in nanoseconds, since this processor has none that is always open to user code.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline]
pub(crate) fn ticks() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    (now.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(now.tv_nsec as u64)
}

/// Blocks `signals` for this thread and returns a descriptor that tells them instead (`signalfd`). `SIGPIPE` is ignored.
pub(crate) fn watch_signals(signals: &[i32]) -> io::Result<OwnedFd> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the pointer is to a whole `sigset_t`, which the call fills.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    for signal in signals {
        // SAFETY: the set was filled above; a number that is no signal is refused with an error.
        if unsafe { libc::sigaddset(set.as_mut_ptr(), *signal) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    // SAFETY: the set is filled; the old mask may be null.
    let refused = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), ptr::null_mut()) };
    if refused != 0 {
        return Err(io::Error::from_raw_os_error(refused));
    }
    // SAFETY: to ignore a signal runs no handler, so there is none to be sound.
    if unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) } == libc::SIG_ERR {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: −1 asks for a new descriptor; the set is filled.
    let fd = unsafe { libc::signalfd(-1, set.as_ptr(), libc::SFD_NONBLOCK | libc::SFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// One piece of work for a [`RawRing`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work {
    /// `fdatasync` when `data_only`, else `fsync`; not begun before `delay` has passed.
    Sync { data_only: bool, delay: Duration },
    /// Reads `bytes` (at least one and at most [`LOAD_BYTES_MAX`] are taken) from `position` into memory that nobody looks at.
    Load { position: u64, bytes: usize },
}

/// The most that one [`Work::Load`] reads.
pub(crate) const LOAD_BYTES_MAX: usize = 128 << 10;

/// Marks the completion of a delay before a sync, which nobody waits for. No caller marks its work so.
const DELAY_MARK: u64 = u64::MAX;

/// The memory that an io_uring shares with the kernel.
///
/// Rules that every access below relies on: the mappings stay until `drop`, offsets come from the kernel with the mapping and lie within it, the
/// kernel writes the submission head and completion tail, and this side writes the others.
pub(crate) struct RawRing {
    fd: OwnedFd,
    rings: Mapping,
    entries: Mapping,
    /// Where loads read to, all to the same place: the bytes are never looked at, so it matters not who wrote last.
    scratch: Mapping,
    params: io_uring_params,
    /// Work that the kernel has taken and not ended.
    in_flight: u32,
}

impl RawRing {
    /// Sets a ring up. Fails where the kernel has none, forbids it, or has one older than Linux 5.6.
    pub(crate) fn new(entries: u32) -> io::Result<Self> {
        let mut params = io_uring_params::default();
        // SAFETY: `params` is zeroed, which asks for the plain kind of ring.
        let fd = unsafe { io_uring_setup(entries, &mut params) }?;
        // The second came with Linux 5.6, as did the read operation and the flag that sends work to a kernel worker at once.
        if !params
            .features
            .contains(IoringFeatureFlags::SINGLE_MMAP | IoringFeatureFlags::RW_CUR_POS)
        {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let submissions = params.sq_off.array as usize + params.sq_entries as usize * size_of::<u32>();
        let completions = params.cq_off.cqes as usize + params.cq_entries as usize * size_of::<io_uring_cqe>();
        let rings = Mapping::shared(&fd, submissions.max(completions), IORING_OFF_SQ_RING)?;
        let entries = params.sq_entries as usize * size_of::<io_uring_sqe>();
        let entries = Mapping::shared(&fd, entries, IORING_OFF_SQES)?;
        let ring = Self {
            fd,
            rings,
            entries,
            scratch: Mapping::private(LOAD_BYTES_MAX)?,
            params,
            in_flight: 0,
        };
        // Each place of the queue names the entry of the same number, for ever.
        for index in 0..ring.params.sq_entries {
            let offset = ring.params.sq_off.array as usize + index as usize * size_of::<u32>();
            ring.word(offset as u32).store(index, Ordering::Relaxed);
        }
        Ok(ring)
    }

    /// The descriptor that polls as readable while completions wait.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Work that the kernel has taken and not ended.
    pub(crate) const fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// How much the caller may have in flight: the completion queue holds twice as much, so it does not overflow, though each sync
    /// may have a delay that completes too.
    pub(crate) const fn capacity(&self) -> u32 {
        self.params.sq_entries
    }

    /// Hands one piece of work to the kernel, marked for its completion.
    ///
    /// When the kernel is short of memory: [`Full`], and nothing was started.
    pub(crate) fn submit(&mut self, fd: BorrowedFd<'_>, work: Work, mark: u64) -> Result<(), Full> {
        let mut entry = io_uring_sqe {
            // To a kernel worker at once: a first try here could wait on the device's queue or a lock.
            flags: IoringSqeFlags::ASYNC,
            fd: fd.as_raw_fd(),
            user_data: io_uring_user_data::from_u64(mark),
            ..Default::default()
        };
        match work {
            Work::Sync { data_only, .. } => {
                entry.opcode = IoringOp::Fsync;
                entry.op_flags.fsync_flags = match data_only {
                    true => IoringFsyncFlags::DATASYNC,
                    false => IoringFsyncFlags::empty(),
                };
            }
            Work::Load { position, bytes } => {
                entry.opcode = IoringOp::Read;
                entry.off_or_addr2.off = position;
                entry.addr_or_splice_off_in.addr = io_uring_ptr::new(self.scratch.start);
                entry.len.len = bytes.clamp(1, LOAD_BYTES_MAX) as u32;
            }
        }
        let tail = self.word(self.params.sq_off.tail).load(Ordering::Relaxed);
        let mut count = 0;
        // Seconds and nanoseconds, as the kernel has them on every processor.
        let time: [i64; 2];
        if let Work::Sync { delay, .. } = work
            && !delay.is_zero()
        {
            time = [delay.as_secs().cast_signed(), i64::from(delay.subsec_nanos())];
            let mut wait = io_uring_sqe {
                opcode: IoringOp::Timeout,
                // That the time is up counts as an error, which a plain link would pass on to the sync.
                flags: IoringSqeFlags::IO_HARDLINK,
                user_data: io_uring_user_data::from_u64(DELAY_MARK),
                ..Default::default()
            };
            wait.addr_or_splice_off_in.addr = io_uring_ptr::new(ptr::from_ref(&time).cast_mut().cast());
            wait.len.len = 1;
            self.place(tail, wait);
            count = 1;
        }
        self.place(tail.wrapping_add(count), entry);
        count += 1;
        self.word(self.params.sq_off.tail)
            .store(tail.wrapping_add(count), Ordering::Release);
        // SAFETY: the entries handed over name an open file, and as memory the scratch mapping, which stays while work is in flight
        // (see `drop`), and `time`, which the kernel has copied when the call returns.
        let taken = unsafe { io_uring_enter(&self.fd, count, 0, IoringEnterFlags::empty()) }.unwrap_or(0);
        if taken != count {
            // Without a polling kernel thread only that call takes entries: take back what it left.
            self.word(self.params.sq_off.tail)
                .store(tail.wrapping_add(taken), Ordering::Release);
            return Err(Full);
        }
        self.in_flight += 1;
        Ok(())
    }

    /// Writes an entry to its place in the queue, not yet for the kernel to see.
    fn place(&self, number: u32, entry: io_uring_sqe) {
        let index = number & (self.params.sq_entries - 1);
        let place = self
            .entries
            .at(index as usize * size_of::<io_uring_sqe>())
            .cast::<io_uring_sqe>();
        // SAFETY: the index is below the number of entries mapped; the kernel has consumed every earlier entry before the call that
        // handed it over returned, and at most two are placed at a time in a queue of at least as many, so it reads none now.
        unsafe { place.write(entry) };
    }

    /// The next completion: the mark of the work, and its result as the system call would have returned it (`−errno` for errors).
    pub(crate) fn pop(&mut self) -> Option<(u64, i32)> {
        loop {
            let (mark, result) = self.pop_any()?;
            if mark != DELAY_MARK {
                self.in_flight = self.in_flight.saturating_sub(1);
                return Some((mark, result));
            }
        }
    }

    fn pop_any(&mut self) -> Option<(u64, i32)> {
        let head = self.word(self.params.cq_off.head).load(Ordering::Relaxed);
        if head == self.word(self.params.cq_off.tail).load(Ordering::Acquire) {
            return None;
        }
        let index = head & (self.params.cq_entries - 1);
        let offset = self.params.cq_off.cqes as usize + index as usize * size_of::<io_uring_cqe>();
        let place = self.rings.at(offset).cast::<io_uring_cqe>();
        // SAFETY: the index is below the number of entries mapped, and the tail read with `Acquire` says that the kernel has filled it.
        let (mark, result) = unsafe { ((*place).user_data.u64_(), (*place).res) };
        self.word(self.params.cq_off.head)
            .store(head.wrapping_add(1), Ordering::Release);
        Some((mark, result))
    }

    /// One of the words that both sides read and write, by its offset from the kernel.
    fn word(&self, offset: u32) -> &AtomicU32 {
        let word = self.rings.at(offset as usize).cast::<u32>();
        // SAFETY: within the mapping and aligned, as the kernel laid it out; lives as long as `self`; atomic on both sides.
        unsafe { AtomicU32::from_ptr(word) }
    }
}

impl Drop for RawRing {
    fn drop(&mut self) {
        // Work in flight may still write to the scratch memory after the descriptor is closed, when something else could live
        // there. To wait for it could mean to wait for a broken device, so the pages are left to the process.
        if self.in_flight > 0 {
            self.scratch.bytes = 0;
        }
    }
}

/// Mapped memory, unmapped when dropped.
struct Mapping {
    start: *mut c_void,
    bytes: usize,
}

impl Mapping {
    fn shared(fd: &OwnedFd, bytes: usize, offset: u64) -> io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a null address leaves the place to the kernel, so nothing mapped is replaced.
        let start = unsafe {
            mmap(
                ptr::null_mut(),
                bytes,
                protection,
                MapFlags::SHARED | MapFlags::POPULATE,
                fd,
                offset,
            )
        }?;
        Ok(Self { start, bytes })
    }

    fn private(bytes: usize) -> io::Result<Self> {
        // SAFETY: a null address leaves the place to the kernel, so nothing mapped is replaced.
        let start = unsafe {
            mmap_anonymous(
                ptr::null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        }?;
        Ok(Self { start, bytes })
    }

    fn at(&self, offset: usize) -> *mut c_void {
        assert!(offset < self.bytes, "offset beyond the mapping");
        self.start.wrapping_byte_add(offset)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.bytes > 0 {
            // SAFETY: mapped by the constructor with this length; every pointer into it borrows its owner.
            let _ = unsafe { munmap(self.start, self.bytes) };
        }
    }
}
