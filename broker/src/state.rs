//! Every table of the broker, for handlers to work with, and the start and stop of those that live on the disk.

use skerry_core::error_code::ErrorCode;
use skerry_core::time::{Instant, Timestamp};
use skerry_net::host::Disk;
use skerry_net::queue::Queue;

use crate::config::Config;
use crate::coordinator::Coordinator;
use crate::handler::fetch::Fetched;
use crate::handler::list_offsets::Listed;
use crate::handler::produce::Produced;
use crate::holds::Holds;
use crate::log::{Flusher, Logs};
use crate::topics::TopicTable;
use crate::waiters::Waiters;

/// Every table.
pub struct State {
    /// What the broker was told.
    pub config: Config,
    /// Who it is: `meta.properties`.
    pub cluster_id: heapless::String<64>,
    /// The broker-wide leader epoch of this start.
    pub leader_epoch: i32,
    /// Topics by name and id.
    pub topics: TopicTable,
    /// Their partitions' logs.
    pub logs: Logs,
    /// What makes them durable.
    pub flusher: Flusher,
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
}

impl State {
    /// What is done now and then: retention. When to do it again.
    pub fn keep_house<D: Disk>(&mut self, disk: &mut D, now: Instant, wall: Timestamp) -> Instant {
        let _ = (disk, wall);
        now + self.config.retention_check_interval
    }

    /// The last of it: everything written is flushed, so that the next start reads nothing.
    pub fn stop<D: Disk>(&mut self, disk: &mut D) {
        self.logs.stop(disk);
    }

    /// The answer to a client that names the leader epoch it knows (KIP-320); −1 is none. The broker leads every partition since
    /// its start, so one epoch serves all.
    #[must_use]
    pub fn epoch_error(&self, known: i32) -> Option<ErrorCode> {
        match known {
            ..0 => None,
            _ if known < self.leader_epoch => Some(ErrorCode::FENCED_LEADER_EPOCH),
            _ if known > self.leader_epoch => Some(ErrorCode::UNKNOWN_LEADER_EPOCH),
            _ => None,
        }
    }
}
