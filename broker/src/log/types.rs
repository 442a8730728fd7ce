//! What goes in and out of the logs: ends, ranges, parameters, errors.

use skerry_core::time::{Instant, Timestamp};
use skerry_net::host::FileId;

use super::files::FilePin;

/// The offsets that bound a partition. `log_start ≤ durable ≤ written`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// The first offset that may be read.
    pub log_start: i64,
    /// The offset that the next append gets.
    pub written: i64,
    /// Everything before it survives a power cut.
    pub durable: i64,
    /// The only end that a client sees: `durable`, or `written` where consumers may read that.
    pub high_watermark: i64,
}

/// Bytes of one log file that may be sent as they are: batches from the one that holds the wanted offset on.
///
/// The range keeps its file open, also when retention removes the segment, until [`super::Logs::release`]. A copy is the same
/// range: it is released once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadRange {
    /// The file.
    pub file: FileId,
    /// Where in the file the bytes begin.
    pub position: u64,
    /// How many, at least 1.
    pub bytes: u32,
    /// What [`super::Logs::release`] gives back.
    pub pin: FilePin,
}

/// Bytes that must be brought into memory ([`skerry_net::host::Disk::start_load`]) before the call is made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColdRange {
    /// The file. Not kept open: start the load at once.
    pub file: FileId,
    /// Where the bytes begin.
    pub position: u64,
    /// How many.
    pub bytes: u32,
}

/// Why a partition was not taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateError {
    /// Every slot for a partition is taken.
    Full,
    /// The topic's name is longer than 249 bytes.
    Name,
    /// The disk failed.
    Storage,
}

/// Why there is nothing to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// Before the log's start, or after its end.
    OutOfRange,
    /// Something must be loaded first; then ask again.
    Cold(ColdRange),
    /// Every open file is in use: answer this partition as empty.
    Exhausted,
    /// The disk failed, or what it holds cannot be read.
    Storage,
}

/// What is outside the batch when it is appended.
#[derive(Clone, Copy, Debug)]
pub struct AppendParams {
    /// Monotonic time.
    pub now: Instant,
    /// Wall-clock time.
    pub wall: Timestamp,
    /// The broker's leader epoch.
    pub leader_epoch: i32,
}

/// What an append did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Offset of the batch's first record; of the original's when this was a duplicate.
    pub base_offset: i64,
    /// The batch is durable when `durable` has reached this.
    pub next_offset: i64,
    /// The broker's time on the records, or [`Timestamp::NONE`] where the producer's stands.
    pub log_append_time: Timestamp,
    /// The partition's first offset.
    pub log_start: i64,
    /// Nothing was written: the batch is there already.
    pub duplicate: bool,
}

/// Why a batch was not appended. Nothing has changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendError {
    /// The disk is full or has failed.
    Storage,
    /// The producer's sequence does not follow its last.
    OutOfOrderSequence,
    /// The producer's epoch is older than its newest.
    InvalidProducerEpoch,
    /// A repeat of something too old to say where it is.
    DuplicateSequence,
}

/// What ListOffsets asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetSpec {
    /// −2, and −4 (KIP-405): the log's start.
    Earliest,
    /// −1: the high watermark.
    Latest,
    /// −3 (KIP-734): the record with the largest timestamp.
    MaxTimestamp,
    /// −5 (KIP-1005): tiered storage, which there is none of.
    LatestTiered,
    /// The first record with this timestamp or a later one.
    At(Timestamp),
}

impl OffsetSpec {
    /// From the wire's timestamp field; `None` for a negative number without a meaning.
    #[must_use]
    pub const fn from_wire(timestamp: i64) -> Option<Self> {
        match timestamp {
            -1 => Some(Self::Latest),
            -2 | -4 => Some(Self::Earliest),
            -3 => Some(Self::MaxTimestamp),
            -5 => Some(Self::LatestTiered),
            0.. => Some(Self::At(Timestamp(timestamp))),
            _ => None,
        }
    }
}

/// What ListOffsets answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundOffset {
    /// The offset, −1 when there is none.
    pub offset: i64,
    /// Its record's timestamp where that was asked for, else −1.
    pub timestamp: Timestamp,
    /// The leader epoch of that offset, −1 when unknown.
    pub leader_epoch: i32,
}

impl FoundOffset {
    /// No such record.
    pub const NONE: Self = Self {
        offset: -1,
        timestamp: Timestamp::NONE,
        leader_epoch: -1,
    };
}

/// What OffsetForLeaderEpoch answers (KIP-320); both −1 when the epoch is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochEnd {
    /// The largest epoch known that is not after the asked one.
    pub leader_epoch: i32,
    /// Where that epoch ends.
    pub end_offset: i64,
}
