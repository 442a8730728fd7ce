//! Makes written bytes durable: one flush at a time, shared by everything that became dirty before it began.

use skerry_core::time::{Instant, Millis};
use skerry_net::host::{Completion, Disk, FileId};

use super::Logs;
use crate::ids::PartitionIx;

/// A file of another owner (the metadata log) that is flushed with the logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncFile(pub(super) u8);

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

/// Who is dirty, and the flush under way.
#[derive(Debug)]
pub struct Flusher {}

#[allow(unused_variables, clippy::unused_self, clippy::needless_pass_by_ref_mut)]
impl Flusher {
    /// Tokens with this bit are the flusher's: hand their completions to [`Flusher::on_done`].
    pub const TOKEN: u64 = 1 << 63;

    /// Takes all memory: room for every partition. `interval` is the longest that anything stays dirty; `None`: for ever.
    #[must_use]
    pub fn new(partitions: u32, interval: Option<Millis>) -> Self {
        Self {}
    }

    /// Takes in another owner's file. When full (4): `None`.
    pub fn register(&mut self, file: FileId) -> Option<SyncFile> {
        None
    }

    /// The registered file is another one now (rewritten and renamed, its directory synced). Nothing of it is dirty.
    pub fn replace(&mut self, which: SyncFile, file: FileId) {}

    /// Bytes were written to a registered file. `mark` is the owner's, rising: it comes back when they are durable.
    pub fn dirty(&mut self, which: SyncFile, mark: u64, now: Instant) {}

    /// Somebody waits for what is written to a registered file.
    pub fn want_file(&mut self, which: SyncFile) {}

    /// Somebody waits for what is written to a partition: the next [`Flusher::turn`] begins a flush.
    pub fn want(&mut self, ix: PartitionIx) {}

    /// When [`Flusher::turn`] must be called again: at once when somebody waits, else when the oldest dirty bytes are due.
    #[must_use]
    pub fn deadline(&self, logs: &Logs) -> Instant {
        Instant::NEVER
    }

    /// Begins a flush when one is due and none is under way. Call it at the end of each turn of the loop.
    pub fn turn<D: Disk>(&mut self, disk: &mut D, logs: &mut Logs, now: Instant, each: &mut dyn FnMut(Flushed)) {}

    /// Takes a completion; false when it is not the flusher's.
    pub fn on_done<D: Disk>(
        &mut self,
        disk: &mut D,
        logs: &mut Logs,
        done: Completion,
        now: Instant,
        each: &mut dyn FnMut(Flushed),
    ) -> bool {
        false
    }
}
