//! What can be wrong with a record batch, and Kafka's name for each.

use crate::error_code::ErrorCode;

/// Which rule a batch or record breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum BatchError {
    /// The bytes end inside the batch: a torn tail, or the cut last batch of a fetch.
    Truncated,
    /// The length field is smaller than a header, or past what a length may be.
    Size(i32),
    /// Not format v2. 0 and 1 are the message formats before Kafka 0.11, which this broker does not keep.
    Magic(i8),
    /// Bytes follow the batch where exactly one is allowed.
    ManyBatches,
    /// Nothing where one batch is wanted.
    Empty,
    /// The checksum does not fit the bytes.
    Crc,
    /// More bytes than `max.message.bytes`.
    TooLarge,
    /// `last_offset_delta + 1` is not the record count, or there are no records.
    Count,
    /// A compression codec without a name.
    Codec(u8),
    /// zstd before Produce version 7 (KIP-110).
    ZstdTooEarly,
    /// A control batch: only a transaction coordinator writes those.
    Control,
    /// A transactional batch where there are no transactions.
    Transactional,
    /// A producer id with a negative epoch or first sequence.
    Sequence,
    /// The timestamp type says LogAppendTime: only the broker sets that.
    TimestampType,
    /// The records do not fill the batch exactly: one is torn or malformed, or bytes are left over.
    Record {
        /// Which record, from 0.
        index: u32,
    },
    /// Offset deltas are not 0, 1, 2…
    OffsetDelta {
        /// Which record, from 0.
        index: u32,
    },
    /// A timestamp further from now than the topic allows.
    Timestamp {
        /// Which record, from 0.
        index: u32,
    },
    /// A record without a key where the topic is compacted.
    NoKey {
        /// Which record, from 0.
        index: u32,
    },
}

impl BatchError {
    /// The error code for the partition in a Produce reply.
    #[must_use]
    pub const fn code(self) -> ErrorCode {
        match self {
            Self::Truncated | Self::Size(_) | Self::Crc => ErrorCode::CORRUPT_MESSAGE,
            Self::TooLarge => ErrorCode::MESSAGE_TOO_LARGE,
            Self::Codec(_) | Self::ZstdTooEarly => ErrorCode::UNSUPPORTED_COMPRESSION_TYPE,
            Self::TimestampType | Self::Timestamp { .. } => ErrorCode::INVALID_TIMESTAMP,
            Self::Transactional => ErrorCode::INVALID_TXN_STATE,
            // 0 and 1 are named: the client can be told to use another format.
            Self::Magic(0 | 1) => ErrorCode::UNSUPPORTED_FOR_MESSAGE_FORMAT,
            Self::Magic(_)
            | Self::ManyBatches
            | Self::Empty
            | Self::Count
            | Self::Control
            | Self::Sequence
            | Self::Record { .. }
            | Self::OffsetDelta { .. }
            | Self::NoKey { .. } => ErrorCode::INVALID_RECORD,
        }
    }

    /// The record that is to blame, for `record_errors` of Produce version 8 on (KIP-467); `None` when it is the batch.
    #[must_use]
    pub const fn record_index(self) -> Option<u32> {
        match self {
            Self::Record { index }
            | Self::OffsetDelta { index }
            | Self::Timestamp { index }
            | Self::NoKey { index } => Some(index),
            _ => None,
        }
    }

    /// One sentence for a person, as it goes into `error_message`.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            Self::Truncated => "The record batch is cut short.",
            Self::Size(_) => "The record batch has an impossible length.",
            Self::Magic(0 | 1) => "Message formats v0 and v1 are not supported; use a client of Kafka 0.11 or later.",
            Self::Magic(_) => "The record batch has an unknown magic byte.",
            Self::ManyBatches => "A produce request may hold only one record batch per partition.",
            Self::Empty => "A produce request must hold one record batch per partition.",
            Self::Crc => "The record batch fails its checksum.",
            Self::TooLarge => "The record batch is larger than max.message.bytes.",
            Self::Count => "The record count and the offset range of the batch disagree.",
            Self::Codec(_) => "The compression codec is unknown.",
            Self::ZstdTooEarly => "zstd needs Produce version 7 or later.",
            Self::Control => "Clients may not write control records.",
            Self::Transactional => "Transactions are not supported.",
            Self::Sequence => "A batch with a producer id needs an epoch and a sequence that are not negative.",
            Self::TimestampType => "Producers may not set the timestamp type to LogAppendTime.",
            Self::Record { .. } => "The records do not fill the batch exactly.",
            Self::OffsetDelta { .. } => "Offset deltas must count up from 0.",
            Self::Timestamp { .. } => "The timestamp is out of the range that the topic accepts.",
            Self::NoKey { .. } => "A compacted topic accepts no record without a key.",
        }
    }
}

impl core::fmt::Display for BatchError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.message())
    }
}

impl core::error::Error for BatchError {}
