//! Every table of the broker, for handlers to work with; how they come up from the disk, are kept, and go down.

use skerry_core::error_code::ErrorCode;
use skerry_core::time::{Instant, Timestamp};
use skerry_net::host::{Disk, Host};
use skerry_net::queue::Queue;

use crate::config::{Config, Flush};
use crate::coordinator::Coordinator;
use crate::crc;
use crate::handler::fetch::Fetched;
use crate::handler::list_offsets::Listed;
use crate::handler::produce::Produced;
use crate::holds::Holds;
use crate::ids::PartitionIx;
use crate::log::{Flusher, LogLimits, LogPolicy, Logs, SyncFile};
use crate::topics::{Catalog, OpenError, TopicTable};
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
    pub fetched: Vec<Fetched>,
    /// Room for the results of one ListOffsets.
    pub listed: Vec<Listed>,
    /// The partition whose retention is looked at next.
    keep_next: u32,
    /// When this round of retention began.
    keep_since: Instant,
}

/// Partitions looked at in one go of housekeeping, so that it never holds up the loop for long.
const KEEP_BATCH: u32 = 64;

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
        let log_limits = LogLimits {
            partitions: limits.partitions,
            segments: limits.segments,
            open_files: limits.open_files,
            producers: limits.producers,
        };
        let mut logs = Logs::new(log_limits, LogPolicy::new(&config, CLOCK_FLOOR, crc::CRC32C));
        let mut seed = [0; 4];
        host.random(&mut seed);
        let coordinator = Coordinator::new(&config, u32::from_ne_bytes(seed));
        let topics = Catalog::open(host, &config, crc::CRC32C, &mut logs, now, wall, &mut |_| {})?;
        let flush_interval = (config.flush != Flush::Never).then_some(config.flush_interval);
        let mut flusher = Flusher::new(limits.partitions, flush_interval);
        let metadata_file = flusher.register(topics.file());
        let connections = limits.connections as usize;
        let partitions = limits.partitions as usize;
        let state = Self {
            topics,
            logs,
            flusher,
            metadata_file,
            coordinator,
            holds: Holds::new(
                connections * HOLDS_PER_CONNECTION,
                connections * HOLDS_PER_CONNECTION * WAITS_PER_HOLD + partitions,
                partitions,
            ),
            waiters: Waiters::new(connections * WAITERS_PER_CONNECTION, connections, partitions),
            moved: Queue::new(limits.partitions),
            produced: Vec::with_capacity(partitions),
            fetched: Vec::with_capacity(partitions),
            listed: Vec::with_capacity(partitions),
            keep_next: 0,
            keep_since: now,
            config,
        };
        Ok(state)
    }

    /// The tables' memory budgets.
    pub fn budget(config: &Config) -> Vec<(&'static str, usize, &'static str)> {
        let limits = &config.limits;
        let (connections, partitions) = (limits.connections as usize, limits.partitions as usize);
        let (groups, offsets) = Coordinator::memory_bytes(config);
        let results = size_of::<Produced>() + size_of::<Fetched>() + size_of::<Listed>();
        vec![
            (
                "topics",
                TopicTable::memory_bytes(limits.topics, limits.partitions),
                "skerry.limits.topics, skerry.limits.partitions",
            ),
            (
                "waiting",
                Holds::bytes(
                    connections * HOLDS_PER_CONNECTION,
                    connections * HOLDS_PER_CONNECTION * WAITS_PER_HOLD + partitions,
                    partitions,
                ) + Waiters::bytes(connections * WAITERS_PER_CONNECTION, connections, partitions),
                "replies that wait for the disk, fetches that wait for data",
            ),
            (
                "groups",
                groups,
                "skerry.limits.groups, skerry.limits.members, skerry.limits.group.bytes",
            ),
            ("offsets", offsets, "skerry.limits.offsets"),
            ("results", partitions * results, "one request over every partition"),
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
        self.tidy_metadata(host);
        let next = self.keep_since + self.config.retention_check_interval;
        self.keep_since = next.max(now);
        self.keep_since
    }

    /// Rewrites the metadata log when it is due.
    fn tidy_metadata<D: Disk>(&mut self, disk: &mut D) {
        let Self {
            topics,
            flusher,
            metadata_file,
            ..
        } = self;
        match topics.tidy(disk, &|_| {}) {
            Ok(true) => {
                if let Some(which) = *metadata_file {
                    flusher.replace(which, topics.file());
                }
            }
            Ok(false) => {}
            Err(e) => ::log::warn!("metadata.log could not be rewritten: {e:?}; it goes on as it is"),
        }
    }

    /// The last of it: everything written is flushed, so that the next start reads nothing.
    pub fn stop<D: Disk>(&mut self, disk: &mut D) {
        self.logs.stop(disk);
        let _ = self.topics.sync(disk);
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
const CLOCK_FLOOR: Timestamp = Timestamp(1_767_225_600_000);
