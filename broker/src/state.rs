//! Every table of the broker, for handlers to work with; how they come up from the disk, are kept, and go down.

use skerry_core::error_code::ErrorCode;
use skerry_core::time::{Instant, Millis, Timestamp};
use skerry_net::host::{Disk, Host};
use skerry_net::queue::Queue;

use crate::config::{Config, Flush, Limits};
use crate::coordinator::{Coordinator, Journal};
use crate::crc;
use crate::handler::answers::Answer;
use crate::handler::fetch;
use crate::handler::list_offsets::Listed;
use crate::handler::produce::Produced;
use crate::holds::{HoldIx, Holds};
use crate::ids::{ConnId, PartitionIx, TopicIx};
use crate::log::{Flusher, LogLimits, LogPolicy, Logs, SyncFile};
use crate::topics::{Catalog, OpenError};
use crate::waiters::Waiters;

/// Every table.
pub struct State {
    /// What the broker was told.
    pub config: Config,
    /// Topics by name and id, and the metadata log behind them.
    pub topics: Catalog,
    /// Their partitions' logs.
    pub logs: Logs,
    /// What makes them durable.
    pub flusher: Flusher,
    /// The metadata log among the flusher's files.
    pub metadata_file: Option<SyncFile>,
    /// The metadata log's mark up to which it is durable.
    pub metadata_durable: u64,
    /// Consumer groups.
    pub coordinator: Coordinator,
    /// Replies that wait for the disk.
    pub holds: Holds,
    /// Fetches that wait for data.
    pub waiters: Waiters,
    /// Partitions whose high watermark moved in this pass.
    pub moved: Queue<u32>,
    /// Room for the results of one produce.
    pub produced: Vec<Produced>,
    /// Room for the results of one fetch.
    pub fetched: fetch::Room,
    /// Room for the results of one ListOffsets.
    pub listed: Vec<Listed>,
    /// Room for the answers of one request that changes several things.
    answers: Vec<Answer>,
    /// Partitions that this turn deleted: who waits on them is answered after it.
    pub gone: Queue<u32>,
    /// When a failed metadata log may be rewritten again.
    mend_at: Instant,
    /// The partition whose retention is looked at next.
    keep_next: u32,
    /// When this round of retention began.
    keep_since: Instant,
}

/// How much of everything the logs may take.
#[must_use]
pub const fn log_limits(limits: &Limits) -> LogLimits {
    LogLimits {
        partitions: limits.partitions,
        segments: limits.segments,
        open_files: limits.open_files,
        producers: limits.producers,
    }
}

/// Partitions looked at in one go of housekeeping, so that it never holds up the loop for long.
const KEEP_BATCH: u32 = 64;

/// Time between two tries to rewrite a metadata log that failed.
const MEND_INTERVAL: Millis = Millis(1_000);

/// Held replies and their partitions: a few for each connection, and one reply over every partition.
const HOLDS_PER_CONNECTION: usize = 2;
const WAITS_PER_HOLD: usize = 4;

/// Partitions that a parked fetch waits on, on average.
const WAITERS_PER_CONNECTION: usize = 16;

impl State {
    /// Brings up everything from the disk: identity, topics and offsets from the metadata log, then each partition's log; notes a
    /// new leader epoch, durably. Allocates all memory of the tables.
    ///
    /// Errors: only what a person must mend; damaged files are mended or put aside with a log line.
    pub fn open<H: Host>(config: Config, host: &mut H) -> Result<Self, OpenError> {
        let limits = config.limits;
        let (now, wall) = (host.now(), host.wall());
        let mut logs = Logs::new(log_limits(&limits), LogPolicy::new(&config, CLOCK_FLOOR, crc::CRC32C));
        let mut seed = [0; 4];
        host.random(&mut seed);
        let mut coordinator = Coordinator::new(&config, u32::from_ne_bytes(seed));
        let mut topics = Catalog::open(host, &config, crc::CRC32C, &mut logs, now, wall, &mut |record| {
            coordinator.replay(now, record);
        })?;
        let metadata_durable = topics.log_mut().mark();
        coordinator.lower_offsets(&mut Journal::new(now, wall, host, &mut topics), &logs);
        let flush_interval = (config.flush != Flush::Never).then_some(config.flush_interval);
        let mut flusher = Flusher::new(limits.partitions, flush_interval);
        let metadata_file = flusher.register(topics.file());
        let connections = limits.connections as usize;
        let partitions = limits.partitions as usize;
        let mut state = Self {
            topics,
            logs,
            flusher,
            metadata_file,
            metadata_durable,
            coordinator,
            holds: Holds::new(
                connections * HOLDS_PER_CONNECTION,
                connections * HOLDS_PER_CONNECTION * WAITS_PER_HOLD + partitions,
                // One more for the metadata log.
                partitions + 1,
            ),
            waiters: Waiters::new(connections * WAITERS_PER_CONNECTION, connections, partitions),
            moved: Queue::new(limits.partitions),
            produced: Vec::with_capacity(partitions),
            // Half of a small buffer: the rest of the reply goes with it.
            fetched: fetch::Room::new(partitions, limits.small_buffer_bytes as usize / 2),
            listed: Vec::with_capacity(partitions),
            answers: Vec::with_capacity(partitions.max(limits.topics as usize)),
            gone: Queue::new(limits.partitions),
            mend_at: now,
            keep_next: 0,
            keep_since: now,
            config,
        };
        state.tidy_metadata(host, now);
        if state.metadata_is_dirty() {
            let mark = state.topics.log_mut().mark();
            state.metadata_written(mark, now);
        }
        Ok(state)
    }

    /// The tables' memory budgets.
    pub fn budget(config: &Config) -> Vec<(&'static str, usize, &'static str)> {
        let limits = &config.limits;
        let (connections, partitions) = (limits.connections as usize, limits.partitions as usize);
        let (groups, offsets) = Coordinator::memory_bytes(config);
        let results = size_of::<Produced>() + size_of::<fetch::Fetched>() + size_of::<Listed>();
        vec![
            (
                "topics",
                Catalog::memory_bytes(limits.topics, limits.partitions),
                "skerry.limits.topics, skerry.limits.partitions",
            ),
            (
                "waiting",
                Holds::bytes(
                    connections * HOLDS_PER_CONNECTION,
                    connections * HOLDS_PER_CONNECTION * WAITS_PER_HOLD + partitions,
                    partitions + 1,
                ) + Waiters::bytes(connections * WAITERS_PER_CONNECTION, connections, partitions),
                "replies that wait for the disk, fetches that wait for data",
            ),
            (
                "groups",
                groups,
                "skerry.limits.groups, skerry.limits.members, skerry.limits.group.bytes",
            ),
            ("offsets", offsets, "skerry.limits.offsets"),
            (
                "results",
                partitions * results
                    + partitions.max(limits.topics as usize) * size_of::<Answer>()
                    + 2 * Queue::<u32>::bytes(limits.partitions),
                "one request over every partition",
            ),
        ]
    }

    /// What is done now and then: retention and the tidying of the metadata log, a bounded piece of it at a time. When to go on.
    pub fn keep_house<H: Host>(&mut self, host: &mut H, now: Instant, wall: Timestamp) -> Instant {
        let end = self
            .keep_next
            .saturating_add(KEEP_BATCH)
            .min(self.config.limits.partitions);
        for ix in self.keep_next..end {
            let ix = PartitionIx(ix);
            if self.topics.owner(ix).is_some() {
                self.logs.retain(host, ix, now, wall);
            }
        }
        self.keep_next = end;
        if end < self.config.limits.partitions {
            return now;
        }
        self.keep_next = 0;
        self.expire_offsets(host, now, wall);
        self.tidy_metadata(host, now);
        let next = self.keep_since + self.config.retention_check_interval;
        self.keep_since = next.max(now);
        self.keep_since
    }

    /// Drops committed offsets that `offsets.retention.minutes` no longer keeps.
    fn expire_offsets<D: Disk>(&mut self, disk: &mut D, now: Instant, wall: Timestamp) {
        let retention = self.config.group.offsets_retention;
        let mut journal = Journal::new(now, wall, disk, &mut self.topics);
        if let Some(mark) = self.coordinator.expire_offsets(&mut journal, retention, CLOCK_FLOOR) {
            self.metadata_written(mark, now);
        }
    }

    /// The metadata log was written up to `mark`: the flusher makes it durable in time.
    pub fn metadata_written(&mut self, mark: u64, now: Instant) {
        if let Some(which) = self.metadata_file {
            self.flusher.dirty(which, mark, now);
        }
    }

    /// Whether a power cut could take back something that the metadata log has.
    pub fn metadata_is_dirty(&mut self) -> bool {
        self.metadata_durable < self.topics.log_mut().mark()
    }

    /// Among the queues of [`Holds`], the one of replies that wait for the metadata log.
    #[must_use]
    pub const fn metadata_wait(&self) -> PartitionIx {
        PartitionIx(self.config.limits.partitions)
    }

    /// Holds a reply until what is written to the metadata log now is durable, or `deadline` has come. `None` when full.
    pub fn hold_for_metadata(&mut self, conn: ConnId, now: Instant, deadline: Instant) -> Option<HoldIx> {
        let (queue, mark) = (self.metadata_wait(), self.topics.log_mut().mark());
        let hold = self.holds.hold(conn, deadline)?;
        self.holds.wait(hold, queue, 0, mark.cast_signed());
        if let Some(which) = self.metadata_file {
            // What was synced without the flusher is dirty to it, so that it certainly reports this mark.
            self.flusher.dirty(which, mark, now);
            self.flusher.want_file(which);
        }
        Some(hold)
    }

    /// Rewrites the metadata log when it is due.
    fn tidy_metadata<D: Disk>(&mut self, disk: &mut D, now: Instant) {
        let Self {
            topics,
            coordinator,
            flusher,
            metadata_file,
            ..
        } = self;
        match topics.tidy(disk, &|each| coordinator.each_record(each)) {
            Ok(true) => {
                if let Some(which) = *metadata_file {
                    flusher.replace(which, topics.file());
                    // Whoever waits for what was rewritten hears of it with the next flush.
                    flusher.dirty(which, topics.log_mut().mark(), now);
                }
            }
            Ok(false) => {}
            Err(e) => ::log::warn!("metadata.log could not be rewritten: {e}; it goes on as it is"),
        }
    }

    /// The last of it: everything written is flushed, so that the next start reads nothing.
    pub fn stop<D: Disk>(&mut self, disk: &mut D) {
        self.logs.stop(disk);
        let _ = self.topics.sync(disk, &mut self.logs);
    }

    /// Takes the room for `count` answers, empty; `None` when there are never so many. Give it back with
    /// [`State::give_answers`].
    pub fn take_answers(&mut self, count: usize) -> Option<Vec<Answer>> {
        if count > self.answers.capacity() {
            return None;
        }
        let mut answers = core::mem::take(&mut self.answers);
        answers.clear();
        Some(answers)
    }

    /// Gives the room for answers back.
    pub fn give_answers(&mut self, answers: Vec<Answer>) {
        self.answers = answers;
    }

    /// Takes a topic whose deletion is durable out of every table; who waits on its partitions is answered after this turn.
    pub fn forget_topic<D: Disk>(&mut self, disk: &mut D, now: Instant, ix: TopicIx) {
        let Some(id) = self.topics.get(ix).map(|topic| topic.id) else {
            return;
        };
        for (_, log) in self.topics.partitions(ix) {
            self.gone.push(log.0);
        }
        self.topics.forget(disk, &mut self.logs, ix);
        self.coordinator.on_topic_deleted(now, id);
    }

    /// Rewrites a metadata log that could not be made durable, once a second until that succeeds: until then it takes no change.
    pub fn mend_metadata<D: Disk>(&mut self, disk: &mut D, now: Instant) {
        if self.topics.has_failed() && now >= self.mend_at {
            self.mend_at = now + MEND_INTERVAL;
            self.tidy_metadata(disk, now);
        }
    }

    /// The answer to a client that names the leader epoch it knows (KIP-320); −1 is none. The broker leads every partition since
    /// its start, so one epoch serves all.
    #[must_use]
    pub fn epoch_error(&self, known: i32) -> Option<ErrorCode> {
        match known {
            ..0 => None,
            _ if known < self.topics.leader_epoch() => Some(ErrorCode::FENCED_LEADER_EPOCH),
            _ if known > self.topics.leader_epoch() => Some(ErrorCode::UNKNOWN_LEADER_EPOCH),
            _ => None,
        }
    }
}

/// A wall clock before this (2026-01-01) was never set: the machine has no clock that runs without power.
pub const CLOCK_FLOOR: Timestamp = Timestamp(1_767_225_600_000);
