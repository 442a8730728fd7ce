//! Makes written bytes durable: one flush at a time, shared by everything that became dirty before it began.
//!
//! A flush begins when somebody waits ([`Flusher::want`]) or when the oldest dirty bytes are as old as they may be. What is written
//! meanwhile goes with the next one, so the slower the card, the more each flush carries. A partition's end moves when its
//! directory and all its files, oldest first, are synced; nothing counts by halves.
//!
//! After a slow flush comes a short rest. Producers whose replies it freed send their next batches at once, but after those that came
//! during the flush: without the rest the next flush would carry the few that were early, and all others would wait for two.
//!
//! The same code serves a host that syncs at once and one that says later how it went.

use skerry_core::time::{Instant, Millis};
use skerry_net::host::{Completion, Disk, DiskError, FileId, OpenMode, Started, Token};
use skerry_net::queue::Queue;

use super::files::FilePin;
use super::partition::{Health, Mark, Names};
use super::segment::SegmentIx;
use super::{FileError, Logs};
use crate::ids::PartitionIx;

/// A file of another owner (the metadata log) that is flushed with the logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncFile(u8);

/// What a flush brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flushed {
    /// A partition's durable end moved.
    Advanced {
        /// Which.
        ix: PartitionIx,
        /// Its new durable end.
        durable: i64,
    },
    /// A partition takes no more writes: whoever waits for it gets KAFKA_STORAGE_ERROR.
    Failed {
        /// Which.
        ix: PartitionIx,
    },
    /// What was written to a registered file before `mark` is durable.
    FileAdvanced {
        /// Which.
        file: SyncFile,
        /// The last mark given to [`Flusher::dirty`] before the flush began.
        mark: u64,
    },
    /// A registered file could not be flushed: final for that file.
    FileFailed {
        /// Which.
        file: SyncFile,
    },
}

/// Files that other owners may register.
const SYNC_FILES_MAX: usize = 4;
/// Syncs under way at once: more than one lets a card merge them, many would keep a ring from serving reads.
const SYNCS_MAX: usize = 16;

/// Partitions that go with one flush only because they are dirty: those that are waited for must not wait for a thousand more.
const AGED_MAX: usize = 64;

/// A flush that took so long is followed by a rest. A quicker one is not: the loop sleeps in milliseconds.
const SLOW: Millis = Millis(8);
/// A rest is this part of the flush before it,
const REST_SHARE: u64 = 8;
/// and no longer than a client needs to come again.
const REST_MAX: u64 = 10;

/// Another owner's file.
#[derive(Clone, Copy, Debug)]
struct Registered {
    file: FileId,
    /// Counts replacements, so that a sync of the former file is not taken for one of this.
    generation: u32,
    /// The last mark that was given.
    mark: u64,
    /// When the oldest byte was written that no flush has taken.
    dirty_since: Option<Instant>,
    /// The mark up to which the flush under way reaches.
    flushing: Option<u64>,
    wanted: bool,
    failed: bool,
}

/// A partition in the flush under way.
#[derive(Clone, Copy, Debug)]
struct Member {
    ix: PartitionIx,
    generation: u32,
    /// The end that will be durable.
    end: Mark,
    /// The directory is to be synced.
    dir: bool,
    /// The next segment to sync, none after `end.segment`.
    next: SegmentIx,
    failed: bool,
}

/// What one sync is for.
#[derive(Clone, Copy, Debug)]
enum Job {
    Names { dir: FileId },
    Dir { member: u32, dir: FileId },
    Segment { member: u32, pin: FilePin },
    Registered { which: u8, generation: u32 },
}

/// What is synced next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// No flush is under way.
    Idle,
    /// The data directory, without which no new partition counts.
    Names,
    /// Registered files from this on.
    Registered(u8),
    /// Partitions from this on.
    Members(u32),
    /// Everything has been started.
    Ending,
}

/// Who waits, and the flush under way.
#[derive(Debug)]
pub struct Flusher {
    interval: Option<Millis>,
    wanted: Queue<u32>,
    registered: heapless::Vec<Registered, SYNC_FILES_MAX>,
    members: Vec<Member>,
    members_max: usize,
    jobs: [Option<Job>; SYNCS_MAX],
    stage: Stage,
    /// Flushes that were begun.
    begun: u64,
    /// When the last one began.
    begun_at: Instant,
    /// No flush begins before.
    rest_until: Instant,
}

impl Flusher {
    /// Tokens with this bit are the flusher's: hand their completions to [`Flusher::on_done`].
    pub const TOKEN: u64 = 1 << 63;

    /// Takes all memory: room for every partition. `interval` is the longest that anything stays dirty; `None`: for ever.
    #[must_use]
    pub fn new(partitions: u32, interval: Option<Millis>) -> Self {
        Self {
            interval,
            wanted: Queue::new(partitions),
            registered: heapless::Vec::new(),
            members: Vec::with_capacity(partitions as usize),
            members_max: partitions as usize,
            jobs: [None; SYNCS_MAX],
            stage: Stage::Idle,
            begun: 0,
            begun_at: Instant::default(),
            rest_until: Instant::default(),
        }
    }

    /// Bytes that [`Flusher::new`] takes.
    pub(super) const fn bytes(partitions: u32) -> u64 {
        partitions as u64 * size_of::<Member>() as u64 + Queue::<u32>::bytes(partitions) as u64
    }

    /// Takes in another owner's file. When full (4): `None`.
    pub fn register(&mut self, file: FileId) -> Option<SyncFile> {
        let which = SyncFile(self.registered.len() as u8);
        let registered = Registered {
            file,
            generation: 0,
            mark: 0,
            dirty_since: None,
            flushing: None,
            wanted: false,
            failed: false,
        };
        self.registered.push(registered).ok()?;
        Some(which)
    }

    /// The registered file is another one now: rewritten, synced and renamed, its directory synced. Nothing of it is dirty.
    pub fn replace(&mut self, which: SyncFile, file: FileId) {
        if let Some(registered) = self.registered.get_mut(usize::from(which.0)) {
            let generation = registered.generation.wrapping_add(1);
            let mark = registered.mark;
            *registered = Registered {
                file,
                generation,
                mark,
                dirty_since: None,
                flushing: None,
                wanted: false,
                failed: false,
            };
        }
    }

    /// Bytes were written to a registered file. `mark` is the owner's, rising: it comes back when they are durable.
    pub fn dirty(&mut self, which: SyncFile, mark: u64, now: Instant) {
        if let Some(registered) = self.registered.get_mut(usize::from(which.0)) {
            registered.mark = mark;
            registered.dirty_since.get_or_insert(now);
        }
    }

    /// Somebody waits for what is written to a registered file.
    pub fn want_file(&mut self, which: SyncFile) {
        if let Some(registered) = self.registered.get_mut(usize::from(which.0)) {
            registered.wanted = registered.is_due();
        }
    }

    /// Somebody waits for what is written to a partition: the next [`Flusher::turn`] that may begins a flush.
    pub fn want(&mut self, ix: PartitionIx) {
        self.wanted.push(ix.0);
    }

    /// The number of the flush that will carry what is written and wanted now.
    #[must_use]
    pub const fn ticket(&self) -> u64 {
        self.begun + 1
    }

    /// Whether the flush of that number has ended.
    #[must_use]
    pub fn is_done(&self, ticket: u64) -> bool {
        self.begun > ticket || (self.begun == ticket && !self.is_busy())
    }

    /// Whether a flush is under way.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.stage != Stage::Idle
    }

    /// When [`Flusher::turn`] must be called again: [`Instant::NEVER`] while a flush is under way (its completion comes first) and
    /// while nothing is dirty, the past or the end of a rest when somebody waits, else when the oldest dirty bytes are due.
    #[must_use]
    pub fn deadline(&self, logs: &Logs) -> Instant {
        let waits = !self.wanted.is_empty()
            || !logs.urgent.is_empty()
            || logs.files.is_pressed()
            || self.registered.iter().any(|registered| registered.wanted);
        if !logs.failures.is_empty() {
            Instant::default()
        } else if self.is_busy() {
            Instant::NEVER
        } else if waits {
            self.rest_until
        } else {
            // Also what is merely old waits for the rest to end.
            self.oldest_due(logs).max(self.rest_until)
        }
    }

    /// When the oldest dirty bytes are as old as they may be.
    fn oldest_due(&self, logs: &Logs) -> Instant {
        let Some(interval) = self.interval else {
            return Instant::NEVER;
        };
        let log = logs
            .dirty
            .peek()
            .and_then(|ix| logs.partition(PartitionIx(ix)))
            .map_or(Instant::NEVER, |partition| partition.dirty_since);
        let file = self
            .registered
            .iter()
            .filter(|r| r.is_due())
            .filter_map(|r| r.dirty_since)
            .min();
        log.min(file.unwrap_or(Instant::NEVER)) + interval
    }

    /// Begins a flush when one is due and none is under way; goes on with one that the host had no room for. Call it at the end
    /// of each turn of the loop.
    pub fn turn<D: Disk>(&mut self, disk: &mut D, logs: &mut Logs, now: Instant, each: &mut dyn FnMut(Flushed)) {
        self.go_on(disk, logs, now, each);
        if self.stage == Stage::Idle && now >= self.rest_until {
            let aged = self.oldest_due(logs) <= now || logs.files.is_pressed();
            self.begun_at = now;
            self.begin(logs, aged);
            self.go_on(disk, logs, now, each);
        }
        tell_failures(logs, each);
    }

    /// Takes a completion, which may end the flush; false when it is not the flusher's. The next flush begins only with
    /// [`Flusher::turn`], so that it carries what this turn of the loop still brings.
    pub fn on_done<D: Disk>(
        &mut self,
        disk: &mut D,
        logs: &mut Logs,
        done: Completion,
        now: Instant,
        each: &mut dyn FnMut(Flushed),
    ) -> bool {
        if done.token.0 & Self::TOKEN == 0 {
            return false;
        }
        let number = usize::try_from(done.token.0 & !Self::TOKEN).unwrap_or(usize::MAX);
        if let Some(job) = self.jobs.get_mut(number).and_then(Option::take) {
            self.ended(disk, logs, job, done.result);
        }
        self.go_on(disk, logs, now, each);
        tell_failures(logs, each);
        true
    }

    /// Chooses what this flush carries: those that are waited for, and with `aged` those that are merely dirty.
    fn begin(&mut self, logs: &mut Logs, aged: bool) {
        self.members.clear();
        let asked = !self.wanted.is_empty();
        while let Some(ix) = self.wanted.pop().or_else(|| logs.urgent.pop()) {
            self.enlist(logs, ix);
        }
        if aged {
            for _ in 0..AGED_MAX {
                let Some(ix) = logs.dirty.pop() else { break };
                self.enlist(logs, ix);
            }
        }
        let due = self.registered.iter().any(|r| r.wanted || (aged && r.is_due()));
        if self.members.is_empty() && !due {
            // What was waited for is durable already: a flush of nothing, which has ended.
            self.begun += u64::from(asked);
            return;
        }
        for registered in self.registered.iter_mut().filter(|r| r.is_due()) {
            registered.wanted = false;
            registered.dirty_since = None;
            registered.flushing = Some(registered.mark);
        }
        self.begun += 1;
        self.stage = if logs.names_dirty {
            Stage::Names
        } else {
            Stage::Registered(0)
        };
    }

    fn enlist(&mut self, logs: &mut Logs, ix: u32) {
        logs.dirty.remove(ix as usize);
        logs.urgent.remove(ix as usize);
        let ix = PartitionIx(ix);
        let (next, end) = (logs.first_unflushed(ix), logs.written_mark(ix));
        let Some(partition) = logs.partition_mut(ix) else {
            return;
        };
        if partition.health != Health::Good || !partition.is_dirty() || self.members.len() == self.members_max {
            return;
        }
        partition.dirty_since = Instant::NEVER;
        partition.flushing = true;
        let dir = partition.names != Names::Durable;
        if dir {
            partition.names = Names::Syncing;
        }
        let generation = partition.generation;
        self.members.push(Member {
            ix,
            generation,
            end,
            dir,
            next,
            failed: false,
        });
    }

    /// Starts what can be started, and ends the flush when nothing is left to wait for.
    fn go_on<D: Disk>(&mut self, disk: &mut D, logs: &mut Logs, now: Instant, each: &mut dyn FnMut(Flushed)) {
        loop {
            let idle = self.jobs.iter().all(Option::is_none);
            let more = match self.stage {
                Stage::Idle => false,
                Stage::Names => self.start_names(disk, logs),
                Stage::Registered(which) => self.start_registered(disk, logs, which),
                Stage::Members(number) => self.start_member(disk, logs, number),
                Stage::Ending => {
                    if idle {
                        self.end(disk, logs, each);
                        let took = now.since(self.begun_at);
                        if took >= SLOW {
                            self.rest_until = now + Millis((took.0 / REST_SHARE).min(REST_MAX));
                        }
                    }
                    false
                }
            };
            if !more {
                return;
            }
        }
    }

    fn start_names<D: Disk>(&mut self, disk: &mut D, logs: &mut Logs) -> bool {
        match disk.open("", OpenMode::Directory) {
            Ok(dir) => {
                logs.begin_names();
                if !self.start(disk, logs, dir, Job::Names { dir }) {
                    logs.names_dirty = true;
                    return false;
                }
            }
            Err(DiskError::Exhausted) => return false,
            Err(error) => {
                logs.begin_names();
                logs.end_names(disk, Err(error));
            }
        }
        self.stage = Stage::Registered(0);
        true
    }

    fn start_registered<D: Disk>(&mut self, disk: &mut D, logs: &mut Logs, which: u8) -> bool {
        let Some(&Registered {
            file,
            generation,
            flushing,
            ..
        }) = self.registered.get(usize::from(which))
        else {
            self.stage = Stage::Members(0);
            return true;
        };
        if flushing.is_some() && !self.start(disk, logs, file, Job::Registered { which, generation }) {
            return false;
        }
        self.stage = Stage::Registered(which + 1);
        true
    }

    /// Starts one more sync of a partition, or goes to the next; false when the host has no room.
    fn start_member<D: Disk>(&mut self, disk: &mut D, logs: &mut Logs, number: u32) -> bool {
        let Some(&member) = self.members.get(number as usize) else {
            self.stage = Stage::Ending;
            return true;
        };
        let gone = logs
            .partition(member.ix)
            .is_none_or(|p| p.generation != member.generation);
        if gone || member.failed || (!member.dir && member.next == SegmentIx::NONE) {
            self.stage = Stage::Members(number + 1);
            return true;
        }
        let job = if member.dir {
            let dir = logs.partition(member.ix).map(|p| p.dir.clone()).unwrap_or_default();
            disk.open(&dir, OpenMode::Directory)
                .map(|dir| (dir, Job::Dir { member: number, dir }))
        } else {
            match logs.open_surely(disk, member.ix, member.next) {
                Ok((slot, file)) => match logs.files.pin(slot) {
                    Some(pin) => Ok((file, Job::Segment { member: number, pin })),
                    None => Err(DiskError::Exhausted),
                },
                Err(FileError::Exhausted) => Err(DiskError::Exhausted),
                Err(FileError::Disk(error)) => Err(error),
            }
        };
        match job {
            Ok((file, job)) => {
                if !self.start(disk, logs, file, job) {
                    return false;
                }
            }
            Err(DiskError::Exhausted) => return false,
            Err(error) => {
                self.member_failed(disk, logs, number, error);
                return true;
            }
        }
        let newer = logs.segments.at(member.next).map_or(SegmentIx::NONE, |s| s.newer);
        if let Some(started) = self.members.get_mut(number as usize) {
            if member.dir {
                started.dir = false;
            } else {
                started.next = if member.next == member.end.segment {
                    SegmentIx::NONE
                } else {
                    newer
                };
            }
        }
        true
    }

    /// Starts a sync; false when the host or this has no room for one more, and then the job holds nothing.
    fn start<D: Disk>(&mut self, disk: &mut D, logs: &mut Logs, file: FileId, job: Job) -> bool {
        let Some(number) = self.jobs.iter().position(Option::is_none) else {
            give_back(disk, logs, job);
            return false;
        };
        match disk.start_sync(file, Token(Self::TOKEN | number as u64)) {
            Ok(Started::Pending) => {
                if let Some(place) = self.jobs.get_mut(number) {
                    *place = Some(job);
                }
            }
            Ok(Started::Done) => self.ended(disk, logs, job, Ok(())),
            Err(DiskError::Exhausted) => {
                give_back(disk, logs, job);
                return false;
            }
            Err(error) => self.ended(disk, logs, job, Err(error)),
        }
        true
    }

    /// Takes note of how a sync ended.
    fn ended<D: Disk>(&mut self, disk: &mut D, logs: &mut Logs, job: Job, result: Result<(), DiskError>) {
        give_back(disk, logs, job);
        if matches!(job, Job::Names { .. }) {
            logs.end_names(disk, result);
        }
        let Err(error) = result else { return };
        match job {
            Job::Names { .. } => {}
            Job::Dir { member, .. } | Job::Segment { member, .. } => self.member_failed(disk, logs, member, error),
            Job::Registered { which, generation } => {
                if let Some(registered) = self.registered.get_mut(usize::from(which))
                    && registered.generation == generation
                {
                    registered.failed = true;
                }
            }
        }
    }

    /// Said at once: a sync of the same file that ends well after this proves nothing.
    fn member_failed<D: Disk>(&mut self, disk: &mut D, logs: &mut Logs, number: u32, error: DiskError) {
        if let Some(member) = self.members.get_mut(number as usize) {
            member.failed = true;
            if logs
                .partition(member.ix)
                .is_some_and(|p| p.generation == member.generation)
            {
                logs.fail(disk, member.ix, error);
            }
        }
    }

    /// Every sync has ended: what is durable now, and what failed.
    fn end<D: Disk>(&mut self, disk: &mut D, logs: &mut Logs, each: &mut dyn FnMut(Flushed)) {
        self.stage = Stage::Idle;
        for (number, registered) in (0u8..).zip(&mut self.registered) {
            let file = SyncFile(number);
            if let Some(mark) = registered.flushing.take() {
                each(if registered.failed {
                    Flushed::FileFailed { file }
                } else {
                    Flushed::FileAdvanced { file, mark }
                });
            }
        }
        for member in self.members.drain(..) {
            let Some(partition) = logs
                .partition_mut(member.ix)
                .filter(|p| p.generation == member.generation)
            else {
                continue;
            };
            partition.flushing = false;
            let before = partition.durable.offset;
            if member.failed || partition.health != Health::Good {
                continue;
            }
            logs.advance(disk, member.ix, member.end);
            if member.end.offset > before {
                each(Flushed::Advanced {
                    ix: member.ix,
                    durable: member.end.offset,
                });
            }
        }
    }
}

impl Registered {
    /// Whether there is something to flush.
    const fn is_due(&self) -> bool {
        self.dirty_since.is_some() && !self.failed
    }
}

/// Gives back what a sync held.
fn give_back<D: Disk>(disk: &mut D, logs: &mut Logs, job: Job) {
    match job {
        Job::Names { dir } | Job::Dir { dir, .. } => disk.close(dir),
        Job::Segment { pin, .. } => logs.files.unpin(disk, pin),
        Job::Registered { .. } => {}
    }
}

fn tell_failures(logs: &mut Logs, each: &mut dyn FnMut(Flushed)) {
    while let Some(ix) = logs.failures.pop() {
        each(Flushed::Failed { ix: PartitionIx(ix) });
    }
}
