//! Files under the data directory.
//!
//! Measured on x86-64, Linux 6.x, ext4 on a virtual disk, two busy cores (`cargo run --profile quick -p skerry-net --example host_cost`):
//!
//! | call | cost |
//! |---|---|
//! | `read_cached`, 64 B / 16 KiB / 8 × 16 KiB | 0.55 µs / 1.0 µs / 4.5 µs |
//! | `cached`, per 64 KiB | 0.5 µs |
//! | `write_at`, 1 KiB | 1.8 µs |
//! | `start_sync`, the call with a ring | 0.9–2 µs |
//! | `start_sync`, 1 KiB overwritten, to its completion | 0.6–3 ms, the device's |
//! | the same with nothing dirty: the detour through the ring and the epoll set | 45 µs |
//! | `start_load`, 64 KiB that is in memory, to its completion | 8–18 µs |

use core::ffi::CStr;
use core::time::Duration;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{self, AtFlags, CWD, FlockOperation, Mode, OFlags};
use rustix::io::{Errno, ReadWriteFlags, pread, preadv, preadv2, pwritev, retry_on_intr};

use crate::host::{Completion, Disk, DiskError, FileId, OpenMode, Started, Token};
use crate::ring::DiskRing;
use crate::slab::Slab;
use crate::sys::LOAD_BYTES_MAX;

/// How often each way to the disk was taken. Each only grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskCounters {
    /// Cached reads that found nothing in memory and answered `WouldBlock`.
    pub cold_reads: u64,
    /// Reads and loads that could wait for the device, because there is no ring or no `RWF_NOWAIT`.
    pub blocking_reads: u64,
    /// Syncs that waited for the device: those of start and stop, and all of them where there is no ring.
    pub blocking_syncs: u64,
    /// Syncs given to the ring.
    pub ring_syncs: u64,
    /// Loads given to the ring.
    pub ring_loads: u64,
}

/// The data directory, its open files and the ring.
///
/// When full: [`DiskError::Exhausted`] from [`Disk::open`] and the `start_` calls.
pub struct LinuxDisk {
    root: OwnedFd,
    files: Slab<File>,
    ring: Option<DiskRing>,
    sync_delay: Duration,
    counters: DiskCounters,
}

#[derive(Debug)]
struct File {
    fd: OwnedFd,
    directory: bool,
    /// False once the file system has said that it cannot tell what is cached.
    nowait: bool,
    /// Work that the ring has on this file.
    pending: u32,
    /// The owner has closed it; the slot and descriptor stay until the ring is done with them. (The kernel looks a descriptor up when the work
    /// starts, not always when it is handed over, so a number that was closed and used again could sync another file.)
    closed: bool,
}

/// The longest path in bytes, so that one fits on the stack. Kafka's longest is 280: a directory name of 255 and a segment name.
const PATH_BYTES_MAX: usize = 511;

/// The distance between the places that [`Disk::cached`] looks at.
const PROBE_BYTES: usize = 64 << 10;

impl LinuxDisk {
    /// Opens the data directory, making it when it is not there, and locks it against a second broker (`flock`, gone with the
    /// process however that ends). Each [`Disk::start_sync`] begins only after `sync_delay`. `ring_entries` 0 asks for the blocking variant, which is also taken where the kernel refuses a ring.
    ///
    /// Errors: [`io::ErrorKind::ResourceBusy`] when another process has the directory.
    pub fn new(directory: &Path, files_max: u32, ring_entries: u32, sync_delay: Duration) -> io::Result<Self> {
        std::fs::create_dir_all(directory)?;
        let root = fs::openat(
            CWD,
            directory,
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        match fs::flock(&root, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::AGAIN) => return Err(io::ErrorKind::ResourceBusy.into()),
            // A file system without locks (some network ones) is used without.
            Err(Errno::NOTSUP | Errno::NOLCK | Errno::NOSYS) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(Self {
            root,
            files: Slab::new(files_max),
            ring: if ring_entries == 0 {
                None
            } else {
                DiskRing::new(ring_entries).ok()
            },
            sync_delay,
            counters: DiskCounters::default(),
        })
    }

    /// How often each way was taken.
    #[must_use]
    pub const fn counters(&self) -> DiskCounters {
        self.counters
    }

    /// Whether syncs and loads go by io_uring.
    #[must_use]
    pub const fn has_ring(&self) -> bool {
        self.ring.is_some()
    }

    /// Files open now.
    #[must_use]
    pub fn files(&self) -> usize {
        self.files.len()
    }

    /// The descriptor that polls as readable while completions wait.
    pub(crate) fn ring_fd(&self) -> Option<BorrowedFd<'_>> {
        self.ring.as_ref().map(DiskRing::fd)
    }

    pub(crate) fn fd(&self, file: FileId) -> Result<&OwnedFd, DiskError> {
        self.file(file).map(|file| &file.fd)
    }

    fn file(&self, file: FileId) -> Result<&File, DiskError> {
        self.files
            .get(file.0)
            .filter(|file| !file.closed)
            .ok_or(failed(Errno::BADF))
    }
}

impl Disk for LinuxDisk {
    fn open(&mut self, path: &str, mode: OpenMode) -> Result<FileId, DiskError> {
        if self.files.is_full() {
            return Err(DiskError::Exhausted);
        }
        let flags = match mode {
            OpenMode::Read => OFlags::RDONLY,
            OpenMode::Write => OFlags::RDWR,
            OpenMode::Create => OFlags::RDWR | OFlags::CREATE,
            OpenMode::CreateNew => OFlags::RDWR | OFlags::CREATE | OFlags::EXCL,
            OpenMode::Directory => OFlags::RDONLY | OFlags::DIRECTORY,
        };
        let permissions = Mode::from_raw_mode(0o644);
        let open = |path: &CStr| retry_on_intr(|| fs::openat(&self.root, path, flags | OFlags::CLOEXEC, permissions));
        let file = File {
            fd: with_path(path, open)?,
            directory: mode == OpenMode::Directory,
            nowait: true,
            pending: 0,
            closed: false,
        };
        self.files.insert(file).map(FileId).map_err(|_| DiskError::Exhausted)
    }

    fn close(&mut self, file: FileId) {
        match self.files.get_mut(file.0) {
            Some(open) if open.pending > 0 => open.closed = true,
            _ => {
                self.files.remove(file.0);
            }
        }
    }

    fn len(&mut self, file: FileId) -> Result<u64, DiskError> {
        let stat = fs::fstat(self.fd(file)?).map_err(failed)?;
        Ok(stat.st_size as u64)
    }

    fn write_at(&mut self, file: FileId, position: u64, bufs: &[IoSlice<'_>]) -> Result<usize, DiskError> {
        let fd = self.fd(file)?;
        retry_on_intr(|| pwritev(fd, bufs, position)).map_err(failed)
    }

    fn read_at(&mut self, file: FileId, position: u64, buf: &mut [u8]) -> Result<usize, DiskError> {
        let fd = self.fd(file)?;
        let (bytes, _) = retry_on_intr(|| pread(fd, &mut *buf, position))
            .map(|bytes| (bytes, ()))
            .map_err(failed)?;
        Ok(bytes)
    }

    fn read_cached(
        &mut self,
        file: FileId,
        position: u64,
        bufs: &mut [IoSliceMut<'_>],
    ) -> nb::Result<usize, DiskError> {
        let Some(open) = self.files.get_mut(file.0).filter(|file| !file.closed) else {
            return Err(nb::Error::Other(failed(Errno::BADF)));
        };
        if open.nowait {
            match retry_on_intr(|| preadv2(&open.fd, bufs, position, ReadWriteFlags::NOWAIT)) {
                Ok(bytes) => return Ok(bytes),
                Err(Errno::AGAIN) => {
                    self.counters.cold_reads += 1;
                    return Err(nb::Error::WouldBlock);
                }
                Err(Errno::NOTSUP | Errno::NOSYS) => open.nowait = false,
                Err(error) => return Err(nb::Error::Other(failed(error))),
            }
        }
        self.counters.blocking_reads += 1;
        retry_on_intr(|| preadv(&open.fd, bufs, position)).map_err(|error| nb::Error::Other(failed(error)))
    }

    /// Tries one byte in every 64 KiB, which is what read-ahead and eviction mostly move at a time.
    ///
    /// `cachestat` (Linux 6.5) was measured beside it: 0.35 µs a call plus 10–25 ns per page where pages are single, so the same as
    /// these probes for single pages and a tenth for large folios. It is not used, because it counts pages whose read
    /// is still under way, as they are in every sequential read of a cold file, and because it tells how many are missing but
    /// not where. A probe succeeds only on a page that is there.
    fn cached(&mut self, file: FileId, position: u64, bytes: usize) -> usize {
        let Ok(open) = self.file(file) else { return 0 };
        if !open.nowait {
            return bytes;
        }
        let mut byte = [0];
        let mut found = 0;
        while found < bytes {
            let at = position.saturating_add(found as u64);
            match retry_on_intr(|| preadv2(&open.fd, &mut [IoSliceMut::new(&mut byte)], at, ReadWriteFlags::NOWAIT)) {
                Ok(_) | Err(Errno::NOTSUP | Errno::NOSYS) => found += PROBE_BYTES,
                Err(_) => return found,
            }
        }
        bytes
    }

    fn start_load(&mut self, file: FileId, position: u64, bytes: usize, token: Token) -> Result<Started, DiskError> {
        let Some(open) = self.files.get_mut(file.0).filter(|file| !file.closed) else {
            return Err(failed(Errno::BADF));
        };
        if let Some(ring) = &mut self.ring {
            if ring.start_load(open.fd.as_fd(), position, bytes, file, token).is_ok() {
                open.pending += 1;
                self.counters.ring_loads += 1;
                return Ok(Started::Pending);
            }
            if !ring.is_idle() {
                return Err(DiskError::Exhausted);
            }
            // The kernel is short of memory and no completion would tell when it is not: do it here.
        }
        self.counters.blocking_reads += 1;
        let mut part = [0; 16 << 10];
        let mut loaded = 0;
        while loaded < bytes.clamp(1, LOAD_BYTES_MAX) {
            let at = position.saturating_add(loaded as u64);
            match retry_on_intr(|| pread(&open.fd, &mut part, at)).map_err(failed)? {
                0 => break,
                read => loaded += read,
            }
        }
        Ok(Started::Done)
    }

    fn start_sync(&mut self, file: FileId, token: Token) -> Result<Started, DiskError> {
        let Some(open) = self.files.get_mut(file.0).filter(|file| !file.closed) else {
            return Err(failed(Errno::BADF));
        };
        if let Some(ring) = &mut self.ring {
            let data_only = !open.directory;
            if ring
                .start_sync(open.fd.as_fd(), data_only, self.sync_delay, file, token)
                .is_ok()
            {
                open.pending += 1;
                self.counters.ring_syncs += 1;
                return Ok(Started::Pending);
            }
            if !ring.is_idle() {
                return Err(DiskError::Exhausted);
            }
        }
        if !self.sync_delay.is_zero() {
            std::thread::sleep(self.sync_delay);
        }
        self.sync(file)?;
        Ok(Started::Done)
    }

    fn poll_done(&mut self) -> Option<Completion> {
        let (file, completion) = self.ring.as_mut()?.pop()?;
        if let Some(open) = self.files.get_mut(file.0) {
            open.pending -= 1;
            if open.closed && open.pending == 0 {
                self.files.remove(file.0);
            }
        }
        Some(completion)
    }

    fn sync(&mut self, file: FileId) -> Result<(), DiskError> {
        self.counters.blocking_syncs += 1;
        let open = self.file(file)?;
        let sync = if open.directory { fs::fsync } else { fs::fdatasync };
        sync(open.fd.as_fd()).map_err(failed)
    }

    fn truncate(&mut self, file: FileId, bytes: u64) -> Result<(), DiskError> {
        let fd = self.fd(file)?;
        retry_on_intr(|| fs::ftruncate(fd, bytes)).map_err(failed)
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), DiskError> {
        let root = &self.root;
        with_path(from, |from| {
            let rename = |to: &CStr| fs::renameat(root, from, root, to);
            Ok(with_path(to, rename))
        })?
    }

    fn remove(&mut self, path: &str) -> Result<(), DiskError> {
        with_path(path, |path| fs::unlinkat(&self.root, path, AtFlags::empty()))
    }

    fn create_dir(&mut self, path: &str) -> Result<(), DiskError> {
        with_path(path, |path| fs::mkdirat(&self.root, path, Mode::from_raw_mode(0o755)))
    }

    fn remove_dir(&mut self, path: &str) -> Result<(), DiskError> {
        with_path(path, |path| fs::unlinkat(&self.root, path, AtFlags::REMOVEDIR))
    }

    /// A name that is not UTF-8 is none that a broker has made, and is left out.
    fn list(&mut self, path: &str, each: &mut dyn FnMut(&str)) -> Result<(), DiskError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = with_path(path, |path| fs::openat(&self.root, path, flags, Mode::empty()))?;
        for entry in fs::Dir::new(directory).map_err(failed)? {
            match entry.map_err(failed)?.file_name().to_str() {
                Ok("." | "..") | Err(_) => {}
                Ok(name) => each(name),
            }
        }
        Ok(())
    }
}

/// Gives `call` the path as C has it, from the stack. `""` is the data directory itself.
fn with_path<T>(path: &str, call: impl FnOnce(&CStr) -> Result<T, Errno>) -> Result<T, DiskError> {
    let path = if path.is_empty() { "." } else { path };
    let mut buffer = [0; PATH_BYTES_MAX + 1];
    let Some(start) = buffer.get_mut(..path.len()).filter(|_| path.len() <= PATH_BYTES_MAX) else {
        return Err(failed(Errno::NAMETOOLONG));
    };
    start.copy_from_slice(path.as_bytes());
    let path = buffer.get(..=path.len()).unwrap_or_default();
    let path = CStr::from_bytes_with_nul(path).map_err(|_| failed(Errno::INVAL))?;
    call(path).map_err(failed)
}

/// What an error of a disk call means to its caller.
pub(crate) fn failed(error: Errno) -> DiskError {
    match error {
        Errno::NOSPC | Errno::DQUOT => DiskError::Full,
        Errno::IO => DiskError::Io,
        Errno::NOENT => DiskError::NotFound,
        Errno::EXIST => DiskError::Exists,
        Errno::MFILE | Errno::NFILE => DiskError::Exhausted,
        error => DiskError::Os(error.raw_os_error()),
    }
}
