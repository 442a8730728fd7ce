//! A disk in memory that can do what real ones do: keep written bytes in a cache until they are synced, lose any part of them when
//! the power fails, tear sectors, forget directory entries and renames, run full, fail, take its time, and have pages that are not
//! in memory.
//!
//! Two states are kept of every file and directory: what a running program sees, and what a power cut leaves. Between them
//! stands the list of operations that were not synced. A sync moves those that were there when it began over to the durable state; a
//! power cut keeps any of them, each whole, in part or not at all, in no order.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{IoSlice, IoSliceMut};

use skerry_core::time::Instant;
use skerry_net::host::{Completion, Disk, DiskError, FileId, OpenMode, Started, Token};

use crate::rng::Rng;

/// What a device writes as one: a power cut tears between two of them.
pub const SECTOR_BYTES: usize = 512;

/// What is in memory or not.
pub const PAGE_BYTES: usize = 4096;

/// The kinds of calls, for faults and counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Call {
    /// [`Disk::open`] that makes a file.
    Create,
    /// [`Disk::write_at`].
    Write,
    /// [`Disk::sync`] or [`Disk::start_sync`] of a file or directory.
    Sync,
    /// [`Disk::truncate`].
    Truncate,
    /// [`Disk::rename`].
    Rename,
    /// [`Disk::remove`] or [`Disk::remove_dir`].
    Remove,
    /// [`Disk::create_dir`].
    CreateDir,
    /// [`Disk::read_at`], [`Disk::read_cached`] or [`Disk::start_load`].
    Read,
}

/// How the disk behaves. [`Behaviour::default`] is a good, quick one with io_uring.
#[derive(Clone, Copy, Debug)]
pub struct Behaviour {
    /// Syncs and loads end later, by a completion; else before their call returns.
    pub ring: bool,
    /// Syncs and loads in flight at once.
    pub ring_entries: usize,
    /// A sync takes so many microseconds, from and to.
    pub sync_us: (u64, u64),
    /// A load takes so many microseconds, from and to.
    pub load_us: (u64, u64),
    /// Open files and directories at once.
    pub files_max: usize,
    /// Bytes of all files together; beyond, `ENOSPC`.
    pub space_bytes: u64,
    /// Of a hundred writes of more than one byte, how many are short.
    pub short_write_percent: u64,
    /// Of ten thousand syncs, how many fail with `EIO`.
    pub sync_fails: u64,
    /// Of ten thousand writes, how many fail with `EIO`.
    pub write_fails: u64,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            ring: true,
            ring_entries: 64,
            sync_us: (0, 0),
            load_us: (0, 0),
            files_max: 1024,
            space_bytes: u64::MAX,
            short_write_percent: 0,
            sync_fails: 0,
            write_fails: 0,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Inode(usize);

/// An operation on a file's content that was not synced.
#[derive(Clone, Debug)]
enum Change {
    Write { at: usize, bytes: Vec<u8> },
    Cut(usize),
}

/// An operation on the names of a directory that was not synced. A rename is both halves or none.
#[derive(Clone, Debug)]
struct Naming {
    removes: Option<(Inode, String)>,
    adds: Option<(Inode, String, Inode)>,
}

#[derive(Clone, Debug)]
enum Node {
    File {
        seen: Vec<u8>,
        durable: Vec<u8>,
        unsynced: Vec<Change>,
        resident: BTreeSet<usize>,
    },
    Dir {
        seen: BTreeMap<String, Inode>,
        durable: BTreeMap<String, Inode>,
    },
}

#[derive(Clone, Debug)]
struct Work {
    at: Instant,
    token: Token,
    result: Result<(), DiskError>,
    then: Then,
}

#[derive(Clone, Debug)]
enum Then {
    /// These many of the file's unsynced changes become durable.
    Sync(Inode, usize),
    /// These many of the namings are.
    SyncDir(Inode, u64),
    Load(Inode, usize, usize),
}

/// The disk.
#[derive(Debug)]
pub struct FaultDisk {
    behaviour: Behaviour,
    rng: Rng,
    now: Instant,
    nodes: Vec<Node>,
    /// Unsynced operations on names, oldest first, each with a number that rises.
    namings: Vec<(u64, Naming)>,
    next_naming: u64,
    handles: Vec<Option<Inode>>,
    work: Vec<Work>,
    calls: BTreeMap<Call, u64>,
    fail_next: Vec<(Call, u64, DiskError)>,
    /// Files and directories of which a sync failed after the process had died.
    unheard: Vec<Inode>,
    changes: u64,
    power_fails_at: Option<u64>,
    has_power: bool,
    waited_reads: u64,
    written_bytes: u64,
}

const ROOT: Inode = Inode(0);

impl FaultDisk {
    /// An empty data directory.
    #[must_use]
    pub fn new(behaviour: Behaviour, rng: Rng) -> Self {
        Self {
            behaviour,
            rng,
            now: Instant::default(),
            nodes: vec![Node::Dir {
                seen: BTreeMap::new(),
                durable: BTreeMap::new(),
            }],
            namings: Vec::new(),
            next_naming: 0,
            handles: Vec::new(),
            work: Vec::new(),
            calls: BTreeMap::new(),
            fail_next: Vec::new(),
            unheard: Vec::new(),
            changes: 0,
            power_fails_at: None,
            has_power: true,
            waited_reads: 0,
            written_bytes: 0,
        }
    }

    // ---- what a test does to it ----

    /// Behaves differently from now on.
    pub const fn behave(&mut self, behaviour: Behaviour) {
        self.behaviour = behaviour;
    }

    /// No errors, no shortage of space, power without end; as slow as it was.
    pub fn mend(&mut self) {
        self.behaviour = Behaviour {
            space_bytes: u64::MAX,
            sync_fails: 0,
            short_write_percent: 0,
            write_fails: 0,
            ..self.behaviour
        };
        self.fail_next.clear();
        self.power_fails_at = None;
    }

    /// How it behaves.
    #[must_use]
    pub const fn behaviour(&self) -> Behaviour {
        self.behaviour
    }

    /// Time goes on: work that has had its time is done.
    pub fn set_now(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }

    /// When the next piece of work ends.
    #[must_use]
    pub fn next_done_at(&self) -> Instant {
        self.work.iter().map(|w| w.at).min().unwrap_or(Instant::NEVER)
    }

    /// The `nth` call of this kind from now (0 is the next) fails with `error`.
    pub fn fail(&mut self, call: Call, nth: u64, error: DiskError) {
        let so_far = self.calls(call);
        self.fail_next.push((call, so_far + nth, error));
    }

    /// The power fails just before the `nth` change (write, sync, truncation, naming) since the disk was made: it and all that
    /// follow fail, and nothing of them happens. Then comes [`power_cycle`](Self::power_cycle).
    pub const fn cut_power_at(&mut self, nth: u64) {
        self.power_fails_at = Some(nth);
    }

    /// Whether [`cut_power_at`](Self::cut_power_at) has come to pass.
    #[must_use]
    pub const fn has_power(&self) -> bool {
        self.has_power
    }

    /// Changes so far.
    #[must_use]
    pub const fn changes(&self) -> u64 {
        self.changes
    }

    /// Calls of one kind so far.
    #[must_use]
    pub fn calls(&self, call: Call) -> u64 {
        self.calls.get(&call).copied().unwrap_or(0)
    }

    /// Bytes written so far.
    #[must_use]
    pub const fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// Reads that had to wait for the device inside their call.
    #[must_use]
    pub const fn waited_reads(&self) -> u64 {
        self.waited_reads
    }

    /// Open files and directories.
    #[must_use]
    pub fn open_files(&self) -> usize {
        self.handles.iter().flatten().count()
    }

    /// Bytes in all files that have a name.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.nodes
            .iter()
            .map(|node| match node {
                Node::Dir { seen, .. } => seen.values().map(|inode| self.file_bytes(*inode)).sum(),
                Node::File { .. } => 0,
            })
            .sum()
    }

    fn file_bytes(&self, inode: Inode) -> u64 {
        match &self.nodes[inode.0] {
            Node::File { seen, .. } => seen.len() as u64,
            Node::Dir { .. } => 0,
        }
    }

    /// Takes synced pages out of memory, each with this chance.
    pub fn chill(&mut self, percent: u64) {
        let Self { nodes, rng, .. } = self;
        for node in nodes {
            if let Node::File { resident, unsynced, .. } = node
                && unsynced.is_empty()
            {
                resident.retain(|_| !rng.percent(percent));
            }
        }
    }

    /// The process is gone (`SIGKILL`): its handles and its work with it. What it wrote stays as it was written, synced or not.
    pub fn kill(&mut self) {
        self.handles.clear();
        for work in core::mem::take(&mut self.work) {
            match (work.result, &work.then) {
                // Nobody has heard of this error: as on Linux, whoever syncs the file next does.
                (Err(_), Then::Sync(inode, _) | Then::SyncDir(inode, _)) => self.unheard.push(*inode),
                _ => self.finish(&work),
            }
        }
    }

    /// The power fails, and comes back: of what was not synced anything may be left.
    pub fn power_cycle(&mut self) {
        self.handles.clear();
        self.work.clear();
        self.fail_next.clear();
        self.unheard.clear();
        self.power_fails_at = None;
        self.has_power = true;
        for (_, naming) in core::mem::take(&mut self.namings) {
            if self.rng.percent(50) {
                self.name_durably(&naming);
            }
        }
        let Self { nodes, rng, .. } = self;
        for node in nodes {
            match node {
                Node::Dir { seen, durable } => seen.clone_from(durable),
                Node::File {
                    seen,
                    durable,
                    unsynced,
                    resident,
                } => {
                    let mut changes = core::mem::take(unsynced);
                    // In no order: each change meets what the ones before it happened to leave.
                    if rng.percent(50) {
                        shuffle(&mut changes, rng);
                    }
                    for change in &changes {
                        match rng.below(3) {
                            0 => {}
                            1 => apply(durable, change, None),
                            _ => apply(durable, change, Some(rng)),
                        }
                    }
                    seen.clone_from(durable);
                    resident.clear();
                }
            }
        }
        // Directories that lost their own name are gone with all that is in them; nothing needs to be done for that.
    }

    /// What a running program sees in a file.
    #[must_use]
    pub fn content(&self, path: &str) -> Option<&[u8]> {
        match &self.nodes[self.find(path).ok()?.0] {
            Node::File { seen, .. } => Some(seen),
            Node::Dir { .. } => None,
        }
    }

    /// Changes a file's bytes behind everybody's back, durably: a flipped bit, a torn tail.
    pub fn tamper(&mut self, path: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let inode = self.find(path).expect("a file to tamper with");
        if let Node::File {
            seen,
            durable,
            unsynced,
            ..
        } = &mut self.nodes[inode.0]
        {
            change(seen);
            durable.clone_from(seen);
            unsynced.clear();
        }
    }

    /// Every file's path.
    #[must_use]
    pub fn files(&self) -> Vec<String> {
        let mut out = Vec::new();
        self.walk(ROOT, "", &mut out);
        out
    }

    fn walk(&self, dir: Inode, prefix: &str, out: &mut Vec<String>) {
        let Node::Dir { seen, .. } = &self.nodes[dir.0] else {
            return;
        };
        for (name, inode) in seen {
            match &self.nodes[inode.0] {
                Node::File { .. } => out.push(format!("{prefix}{name}")),
                Node::Dir { .. } => self.walk(*inode, &format!("{prefix}{name}/"), out),
            }
        }
    }

    // ---- inside ----

    fn find(&self, path: &str) -> Result<Inode, DiskError> {
        path.split('/')
            .filter(|name| !name.is_empty())
            .try_fold(ROOT, |dir, name| match &self.nodes[dir.0] {
                Node::Dir { seen, .. } => seen.get(name).copied().ok_or(DiskError::NotFound),
                Node::File { .. } => Err(DiskError::Os(20)),
            })
    }

    fn parent<'p>(&self, path: &'p str) -> Result<(Inode, &'p str), DiskError> {
        let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
        assert!(!name.is_empty(), "a path without a name: {path:?}");
        Ok((self.find(dir)?, name))
    }

    fn entries(&mut self, dir: Inode) -> Result<&mut BTreeMap<String, Inode>, DiskError> {
        match &mut self.nodes[dir.0] {
            Node::Dir { seen, .. } => Ok(seen),
            Node::File { .. } => Err(DiskError::Os(20)),
        }
    }

    fn inode(&self, file: FileId) -> Inode {
        self.handles
            .get(file.0 as usize)
            .copied()
            .flatten()
            .expect("a call with a file that is not open")
    }

    /// Counts a call; its error when it is to fail.
    fn begin(&mut self, call: Call) -> Result<(), DiskError> {
        let number = self.calls.entry(call).or_default();
        let this = *number;
        *number += 1;
        if call != Call::Read {
            if self.power_fails_at == Some(self.changes) {
                self.has_power = false;
            }
            self.changes += 1;
        }
        if !self.has_power {
            return Err(DiskError::Io);
        }
        match self.fail_next.iter().position(|(c, nth, _)| (*c, *nth) == (call, this)) {
            Some(at) => Err(self.fail_next.swap_remove(at).2),
            None => Ok(()),
        }
    }

    fn name(&mut self, naming: Naming) {
        if let Some((dir, name)) = &naming.removes
            && let Node::Dir { seen, .. } = &mut self.nodes[dir.0]
        {
            seen.remove(name);
        }
        if let Some((dir, name, inode)) = &naming.adds
            && let Node::Dir { seen, .. } = &mut self.nodes[dir.0]
        {
            seen.insert(name.clone(), *inode);
        }
        self.namings.push((self.next_naming, naming));
        self.next_naming += 1;
    }

    fn name_durably(&mut self, naming: &Naming) {
        let moved = naming.adds.as_ref().map(|(.., inode)| *inode);
        if let Some((dir, name)) = &naming.removes
            && let Node::Dir { durable, .. } = &mut self.nodes[dir.0]
            // Another thing may stand under that name by now, if what put it there was kept and this is applied out of order.
            && moved.is_none_or(|inode| durable.get(name).is_none_or(|there| *there == inode))
        {
            durable.remove(name);
        }
        if let Some((dir, name, inode)) = &naming.adds
            && let Node::Dir { durable, .. } = &mut self.nodes[dir.0]
        {
            durable.insert(name.clone(), *inode);
        }
    }

    fn open_handle(&mut self, inode: Inode) -> Result<FileId, DiskError> {
        if self.open_files() >= self.behaviour.files_max {
            return Err(DiskError::Exhausted);
        }
        let free = self
            .handles
            .iter()
            .position(Option::is_none)
            .unwrap_or(self.handles.len());
        if free == self.handles.len() {
            self.handles.push(None);
        }
        self.handles[free] = Some(inode);
        Ok(FileId(free as u32))
    }

    fn finish(&mut self, work: &Work) {
        match work.then {
            Then::Load(inode, first, last) => {
                if let Node::File { resident, .. } = &mut self.nodes[inode.0] {
                    resident.extend(first..=last);
                }
            }
            Then::Sync(inode, count) => {
                if let Node::File { durable, unsynced, .. } = &mut self.nodes[inode.0] {
                    let count = count.min(unsynced.len());
                    for change in unsynced.drain(..count) {
                        // After a failed sync nobody knows what is on the disk, and the kernel forgets that it was dirty.
                        if work.result.is_ok() {
                            apply(durable, &change, None);
                        } else if self.rng.percent(50) {
                            apply(durable, &change, Some(&mut self.rng));
                        }
                    }
                    // Another sync of the same file that was in flight counts what is left.
                    for other in &mut self.work {
                        if let Then::Sync(of, n) = &mut other.then
                            && *of == inode
                        {
                            *n = n.saturating_sub(count);
                        }
                    }
                }
            }
            // A file system whose journal fails takes nothing more, so names that were not synced stay so: unlike a file's pages, none
            // is taken for clean after an error.
            Then::SyncDir(..) if work.result.is_err() => {}
            Then::SyncDir(dir, before) => {
                let (done, left) = core::mem::take(&mut self.namings)
                    .into_iter()
                    .partition(|(number, naming)| {
                        let of = naming
                            .adds
                            .as_ref()
                            .map(|a| a.0)
                            .or(naming.removes.as_ref().map(|r| r.0));
                        let from = naming.removes.as_ref().map(|r| r.0);
                        *number < before && (of == Some(dir) || from == Some(dir))
                    });
                self.namings = left;
                let done: Vec<(u64, Naming)> = done;
                for (_, naming) in done {
                    self.name_durably(&naming);
                }
            }
        }
    }

    fn sync_work(&mut self, inode: Inode, token: Token) -> Work {
        let mut result = self.begin(Call::Sync);
        if result.is_ok() && self.rng.below(10_000) < self.behaviour.sync_fails {
            result = Err(DiskError::Io);
        }
        if let Some(at) = self.unheard.iter().position(|unheard| *unheard == inode) {
            self.unheard.swap_remove(at);
            result = Err(DiskError::Io);
        }
        let then = match &self.nodes[inode.0] {
            // Without power nothing reaches the disk any more.
            Node::File { unsynced, .. } => Then::Sync(inode, if self.has_power { unsynced.len() } else { 0 }),
            Node::Dir { .. } => Then::SyncDir(inode, if self.has_power { self.next_naming } else { 0 }),
        };
        let (from, to) = self.behaviour.sync_us;
        let at = Instant::from_micros(self.now.as_micros() + self.rng.within(from, to));
        Work {
            at,
            token,
            result,
            then,
        }
    }

    fn read_pages(&mut self, inode: Inode, position: u64, bufs: &mut [IoSliceMut<'_>], wait: bool) -> Option<usize> {
        let Node::File { seen, resident, .. } = &mut self.nodes[inode.0] else {
            return Some(0);
        };
        let mut at = usize::try_from(position).unwrap_or(usize::MAX).min(seen.len());
        let begin = at;
        for buf in bufs {
            let mut filled = 0;
            while filled < buf.len() {
                if at >= seen.len() {
                    return Some(at - begin);
                }
                let page = at / PAGE_BYTES;
                if !resident.contains(&page) {
                    if !wait {
                        return (at > begin).then_some(at - begin);
                    }
                    self.waited_reads += 1;
                    resident.insert(page);
                }
                let to = seen.len().min((page + 1) * PAGE_BYTES).min(at + buf.len() - filled);
                buf[filled..filled + to - at].copy_from_slice(&seen[at..to]);
                filled += to - at;
                at = to;
            }
        }
        Some(at - begin)
    }
}

fn shuffle<T>(items: &mut [T], rng: &mut Rng) {
    for i in (1..items.len()).rev() {
        items.swap(i, rng.index(i + 1));
    }
}

/// Changes `content`; with `tear`, only some of the sectors.
fn apply(content: &mut Vec<u8>, change: &Change, mut tear: Option<&mut Rng>) {
    match change {
        Change::Cut(bytes) => content.resize(*bytes, 0),
        Change::Write { at, bytes } => {
            let end = at + bytes.len();
            let mut from = *at;
            while from < end {
                let to = end.min((from / SECTOR_BYTES + 1) * SECTOR_BYTES);
                if tear.as_mut().is_none_or(|rng| rng.percent(50)) {
                    if content.len() < to {
                        content.resize(to, 0);
                    }
                    content[from..to].copy_from_slice(&bytes[from - at..to - at]);
                }
                from = to;
            }
        }
    }
}

fn pages(position: u64, bytes: usize) -> (usize, usize) {
    let first = position as usize / PAGE_BYTES;
    (first, (position as usize + bytes.max(1) - 1) / PAGE_BYTES)
}

impl Disk for FaultDisk {
    fn open(&mut self, path: &str, mode: OpenMode) -> Result<FileId, DiskError> {
        let found = self.find(path);
        let inode = match (found, mode) {
            (Ok(_), OpenMode::CreateNew) => return Err(DiskError::Exists),
            (Ok(inode), _) => {
                let is_dir = matches!(self.nodes[inode.0], Node::Dir { .. });
                if is_dir != (mode == OpenMode::Directory) {
                    return Err(DiskError::Os(if is_dir { 21 } else { 20 }));
                }
                inode
            }
            (Err(DiskError::NotFound), OpenMode::Create | OpenMode::CreateNew) => {
                let (dir, name) = self.parent(path)?;
                if self.open_files() >= self.behaviour.files_max {
                    return Err(DiskError::Exhausted);
                }
                self.begin(Call::Create)?;
                let inode = Inode(self.nodes.len());
                self.nodes.push(Node::File {
                    seen: Vec::new(),
                    durable: Vec::new(),
                    unsynced: Vec::new(),
                    resident: BTreeSet::new(),
                });
                self.name(Naming {
                    removes: None,
                    adds: Some((dir, name.into(), inode)),
                });
                inode
            }
            (Err(error), _) => return Err(error),
        };
        self.open_handle(inode)
    }

    fn close(&mut self, file: FileId) {
        let _ = self.inode(file);
        self.handles[file.0 as usize] = None;
    }

    fn len(&mut self, file: FileId) -> Result<u64, DiskError> {
        Ok(self.file_bytes(self.inode(file)))
    }

    fn write_at(&mut self, file: FileId, position: u64, bufs: &[IoSlice<'_>]) -> Result<usize, DiskError> {
        let inode = self.inode(file);
        self.begin(Call::Write)?;
        if self.rng.below(10_000) < self.behaviour.write_fails {
            return Err(DiskError::Io);
        }
        let mut bytes: Vec<u8> = bufs.iter().flat_map(|b| b.iter().copied()).collect();
        if bytes.len() > 1 && self.rng.percent(self.behaviour.short_write_percent) {
            bytes.truncate(self.rng.within(1, bytes.len() as u64 - 1) as usize);
        }
        let at = position as usize;
        let more = (at + bytes.len()).saturating_sub(self.file_bytes(inode) as usize) as u64;
        let free = match self.behaviour.space_bytes {
            u64::MAX => u64::MAX,
            space => space.saturating_sub(self.used_bytes()),
        };
        if more > free {
            let fits = bytes.len().saturating_sub((more - free) as usize);
            if fits == 0 {
                return Err(DiskError::Full);
            }
            bytes.truncate(fits);
        }
        let Node::File {
            seen,
            unsynced,
            resident,
            ..
        } = &mut self.nodes[inode.0]
        else {
            return Err(DiskError::Os(21));
        };
        let n = bytes.len();
        self.written_bytes += n as u64;
        let change = Change::Write { at, bytes };
        apply(seen, &change, None);
        if n > 0 {
            let (first, last) = pages(position, n);
            resident.extend(first..=last);
            unsynced.push(change);
        }
        Ok(n)
    }

    fn read_at(&mut self, file: FileId, position: u64, buf: &mut [u8]) -> Result<usize, DiskError> {
        let inode = self.inode(file);
        self.begin(Call::Read)?;
        Ok(self
            .read_pages(inode, position, &mut [IoSliceMut::new(buf)], true)
            .unwrap_or(0))
    }

    fn read_cached(
        &mut self,
        file: FileId,
        position: u64,
        bufs: &mut [IoSliceMut<'_>],
    ) -> nb::Result<usize, DiskError> {
        let inode = self.inode(file);
        self.begin(Call::Read).map_err(nb::Error::Other)?;
        self.read_pages(inode, position, bufs, false)
            .ok_or(nb::Error::WouldBlock)
    }

    fn cached(&mut self, file: FileId, position: u64, bytes: usize) -> usize {
        let Node::File { seen, resident, .. } = &self.nodes[self.inode(file).0] else {
            return 0;
        };
        let end = (position as usize + bytes).min(seen.len());
        let mut at = position as usize;
        while at < end && resident.contains(&(at / PAGE_BYTES)) {
            at = (at / PAGE_BYTES + 1) * PAGE_BYTES;
        }
        // Where the file ends before the range does, a sender finds out without waiting.
        if at >= end {
            bytes
        } else {
            at.saturating_sub(position as usize)
        }
    }

    fn start_load(&mut self, file: FileId, position: u64, bytes: usize, token: Token) -> Result<Started, DiskError> {
        let inode = self.inode(file);
        if self.behaviour.ring && self.work.len() >= self.behaviour.ring_entries {
            return Err(DiskError::Exhausted);
        }
        let result = self.begin(Call::Read);
        let bytes = self.rng.within(1, bytes.max(1) as u64) as usize;
        let (first, last) = pages(position, bytes);
        let (from, to) = self.behaviour.load_us;
        let at = Instant::from_micros(self.now.as_micros() + self.rng.within(from, to));
        let mut work = Work {
            at,
            token,
            result,
            then: Then::Load(inode, first, last),
        };
        if self.behaviour.ring {
            if result.is_err() {
                work.then = Then::Load(inode, 1, 0);
            }
            self.work.push(work);
            return Ok(Started::Pending);
        }
        result?;
        self.waited_reads += 1;
        self.finish(&work);
        Ok(Started::Done)
    }

    fn start_sync(&mut self, file: FileId, token: Token) -> Result<Started, DiskError> {
        let inode = self.inode(file);
        if self.behaviour.ring && self.work.len() >= self.behaviour.ring_entries {
            return Err(DiskError::Exhausted);
        }
        let work = self.sync_work(inode, token);
        if self.behaviour.ring {
            self.work.push(work);
            return Ok(Started::Pending);
        }
        self.finish(&work);
        work.result.map(|()| Started::Done)
    }

    fn poll_done(&mut self) -> Option<Completion> {
        let due: Vec<usize> = (0..self.work.len()).filter(|i| self.work[*i].at <= self.now).collect();
        let chosen = *due.get(self.rng.index(due.len()))?;
        let work = self.work.remove(chosen);
        self.finish(&work);
        Some(Completion {
            token: work.token,
            result: work.result,
        })
    }

    fn sync(&mut self, file: FileId) -> Result<(), DiskError> {
        let work = self.sync_work(self.inode(file), Token(0));
        self.finish(&work);
        work.result
    }

    fn truncate(&mut self, file: FileId, bytes: u64) -> Result<(), DiskError> {
        let inode = self.inode(file);
        self.begin(Call::Truncate)?;
        let Node::File {
            seen,
            unsynced,
            resident,
            ..
        } = &mut self.nodes[inode.0]
        else {
            return Err(DiskError::Os(21));
        };
        let change = Change::Cut(bytes as usize);
        apply(seen, &change, None);
        unsynced.push(change);
        resident.retain(|page| page * PAGE_BYTES < bytes as usize);
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), DiskError> {
        let inode = self.find(from)?;
        let (from_dir, from_name) = self.parent(from)?;
        let (to_dir, to_name) = self.parent(to)?;
        let into_full_dir = match self.find(to).map(|there| &self.nodes[there.0]) {
            Ok(Node::Dir { seen, .. }) => !seen.is_empty(),
            _ => false,
        };
        if into_full_dir {
            return Err(DiskError::Exists);
        }
        self.begin(Call::Rename)?;
        self.name(Naming {
            removes: Some((from_dir, from_name.into())),
            adds: Some((to_dir, to_name.into(), inode)),
        });
        Ok(())
    }

    fn remove(&mut self, path: &str) -> Result<(), DiskError> {
        let inode = self.find(path)?;
        if matches!(self.nodes[inode.0], Node::Dir { .. }) {
            return Err(DiskError::Os(21));
        }
        let (dir, name) = self.parent(path)?;
        self.begin(Call::Remove)?;
        self.name(Naming {
            removes: Some((dir, name.into())),
            adds: None,
        });
        Ok(())
    }

    fn create_dir(&mut self, path: &str) -> Result<(), DiskError> {
        if self.find(path).is_ok() {
            return Err(DiskError::Exists);
        }
        let (dir, name) = self.parent(path)?;
        self.begin(Call::CreateDir)?;
        let inode = Inode(self.nodes.len());
        self.nodes.push(Node::Dir {
            seen: BTreeMap::new(),
            durable: BTreeMap::new(),
        });
        self.name(Naming {
            removes: None,
            adds: Some((dir, name.into(), inode)),
        });
        Ok(())
    }

    fn remove_dir(&mut self, path: &str) -> Result<(), DiskError> {
        let inode = self.find(path)?;
        if !self.entries(inode)?.is_empty() {
            return Err(DiskError::Os(39));
        }
        let (dir, name) = self.parent(path)?;
        self.begin(Call::Remove)?;
        self.name(Naming {
            removes: Some((dir, name.into())),
            adds: None,
        });
        Ok(())
    }

    fn list(&mut self, path: &str, each: &mut dyn FnMut(&str)) -> Result<(), DiskError> {
        let dir = self.find(path)?;
        for name in self.entries(dir)?.keys() {
            each(name);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk() -> FaultDisk {
        FaultDisk::new(
            Behaviour {
                ring: false,
                ..Behaviour::default()
            },
            Rng::new(7),
        )
    }

    fn put(disk: &mut FaultDisk, file: FileId, at: u64, bytes: &[u8]) {
        assert_eq!(disk.write_at(file, at, &[IoSlice::new(bytes)]), Ok(bytes.len()));
    }

    #[test]
    fn what_was_synced_survives_and_the_rest_may_not() {
        let (mut lost, mut kept, mut torn) = (0, 0, 0);
        for seed in 0..200 {
            let mut disk = FaultDisk::new(Behaviour::default(), Rng::new(seed));
            let file = disk.open("a", OpenMode::CreateNew).unwrap();
            put(&mut disk, file, 0, &[1; 600]);
            disk.sync(file).unwrap();
            let root = disk.open("", OpenMode::Directory).unwrap();
            disk.sync(root).unwrap();
            put(&mut disk, file, 600, &[2; 1000]);
            disk.power_cycle();
            let left = disk.content("a").unwrap();
            assert_eq!(left[..600], [1; 600]);
            match left[600..].iter().filter(|b| **b == 2).count() {
                0 => lost += 1,
                1000 => kept += 1,
                _ => torn += 1,
            }
        }
        assert!(lost > 20 && kept > 20 && torn > 20, "{lost} {kept} {torn}");
    }

    #[test]
    fn a_name_counts_once_its_directory_is_synced() {
        let (mut lost, mut kept) = (0, 0);
        for seed in 0..100 {
            let mut disk = FaultDisk::new(Behaviour::default(), Rng::new(seed));
            let file = disk.open("new", OpenMode::CreateNew).unwrap();
            put(&mut disk, file, 0, b"x");
            disk.sync(file).unwrap();
            disk.rename("new", "name").unwrap();
            disk.power_cycle();
            match disk.files().as_slice() {
                [] => lost += 1,
                [name] if name == "name" || name == "new" => kept += 1,
                other => panic!("{other:?}"),
            }
        }
        assert!(lost > 10 && kept > 10, "{lost} {kept}");
    }

    #[test]
    fn a_failed_sync_leaves_nobody_knows_what_and_a_second_one_proves_nothing() {
        let mut gone = 0;
        for seed in 0..50 {
            let mut disk = FaultDisk::new(Behaviour::default(), Rng::new(seed));
            let file = disk.open("a", OpenMode::CreateNew).unwrap();
            let root = disk.open("", OpenMode::Directory).unwrap();
            disk.sync(root).unwrap();
            put(&mut disk, file, 0, b"x");
            disk.fail(Call::Sync, 0, DiskError::Io);
            assert_eq!(disk.sync(file), Err(DiskError::Io));
            assert_eq!(disk.sync(file), Ok(()));
            assert_eq!(disk.content("a").unwrap(), b"x", "still in the cache");
            disk.power_cycle();
            gone += u32::from(disk.content("a").unwrap().is_empty());
        }
        assert!(gone > 10, "{gone}");
    }

    #[test]
    fn a_sync_in_flight_covers_what_was_there_when_it_began() {
        let mut disk = FaultDisk::new(
            Behaviour {
                sync_us: (100, 100),
                ..Behaviour::default()
            },
            Rng::new(3),
        );
        let file = disk.open("a", OpenMode::CreateNew).unwrap();
        put(&mut disk, file, 0, b"one");
        assert_eq!(disk.start_sync(file, Token(5)), Ok(Started::Pending));
        put(&mut disk, file, 3, b"two");
        assert_eq!(disk.poll_done(), None);
        assert_eq!(disk.next_done_at(), Instant::from_micros(100));
        disk.set_now(Instant::from_micros(100));
        assert_eq!(
            disk.poll_done(),
            Some(Completion {
                token: Token(5),
                result: Ok(())
            })
        );
        let Node::File { durable, unsynced, .. } = &disk.nodes[1] else {
            panic!()
        };
        assert_eq!((durable.as_slice(), unsynced.len()), (&b"one"[..], 1));
    }

    #[test]
    fn a_full_disk_takes_what_fits_and_then_nothing() {
        let mut disk = disk();
        disk.behave(Behaviour {
            space_bytes: 10,
            ..disk.behaviour()
        });
        let file = disk.open("a", OpenMode::CreateNew).unwrap();
        assert_eq!(disk.write_at(file, 0, &[IoSlice::new(&[0; 8])]), Ok(8));
        assert_eq!(disk.write_at(file, 8, &[IoSlice::new(&[0; 8])]), Ok(2));
        assert_eq!(disk.write_at(file, 10, &[IoSlice::new(&[0; 8])]), Err(DiskError::Full));
        assert_eq!(
            disk.write_at(file, 2, &[IoSlice::new(&[1; 8])]),
            Ok(8),
            "over what is there"
        );
    }

    #[test]
    fn cold_pages_are_not_read_without_waiting() {
        let mut disk = FaultDisk::new(
            Behaviour {
                load_us: (5, 5),
                ..Behaviour::default()
            },
            Rng::new(1),
        );
        let file = disk.open("a", OpenMode::CreateNew).unwrap();
        put(&mut disk, file, 0, &[9; 5000]);
        disk.sync(file).unwrap();
        let mut buf = [0; 16];
        let mut read = |disk: &mut FaultDisk| disk.read_cached(file, 4090, &mut [IoSliceMut::new(&mut buf)]);
        assert_eq!(read(&mut disk), Ok(16));
        disk.chill(100);
        assert_eq!(read(&mut disk), Err(nb::Error::WouldBlock));
        assert_eq!(disk.cached(file, 0, 100), 0);
        assert_eq!(disk.start_load(file, 4090, 1, Token(1)), Ok(Started::Pending));
        disk.set_now(Instant::from_micros(5));
        assert!(disk.poll_done().is_some());
        assert_eq!(read(&mut disk), Ok(6));
        assert_eq!(disk.cached(file, 4000, 1000), 96);
    }

    #[test]
    fn the_power_fails_before_the_change_that_was_named() {
        let mut disk = disk();
        disk.cut_power_at(2);
        let file = disk.open("a", OpenMode::CreateNew).unwrap();
        put(&mut disk, file, 0, b"x");
        assert_eq!(disk.sync(file), Err(DiskError::Io));
        assert_eq!(disk.rename("a", "b"), Err(DiskError::Io));
        assert!(!disk.has_power());
        disk.power_cycle();
        assert_eq!(disk.open("", OpenMode::Directory), Ok(FileId(0)));
    }
}
