//! What can go wrong between a client and its broker.

use core::fmt;

use super::Lost;
use crate::api::ApiKey;
use crate::error_code::ErrorCode;
use crate::record::BatchError;
use crate::wire::DecodeError;

/// Why a step of a client failed. Small enough to keep, to count and to send over a slow log link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Error {
    /// The caller could not connect ([`unreachable`](super::Producer::unreachable)).
    Unreachable,
    /// The connection ended before the reply was whole.
    Lost,
    /// No whole reply within the time that a request has.
    TimedOut,
    /// The broker refused with this code.
    Refused(ErrorCode),
    /// The broker speaks no version of this API that we speak.
    Unsupported(ApiKey),
    /// The reply is longer than the frame buffer, by its own claim: give the client more room.
    ReplyTooLarge {
        /// Bytes that it says it has.
        bytes: u32,
    },
    /// The frame buffer does not hold the request: the names are too long for it.
    RequestTooLarge,
    /// The reply is no Kafka reply, or answers something else.
    Garbled,
    /// The reply breaks this rule of the wire format.
    Decode(DecodeError),
    /// The leader's host name is longer than [`HOST_BYTES_MAX`](super::HOST_BYTES_MAX), or its port no port.
    Address,
    /// A fetched batch breaks this rule. The consumer stands before it.
    Batch(BatchError),
    /// A fetched batch is compressed, which this client cannot open. The consumer has gone past it.
    Compressed {
        /// The offset of its first record.
        offset: i64,
    },
}

impl Error {
    /// Whether the same again can never succeed, so that waiting is in vain.
    #[must_use]
    pub const fn is_final(self) -> bool {
        match self {
            Self::Refused(code) => !code.is_retriable(),
            Self::Unsupported(_) | Self::RequestTooLarge | Self::Address => true,
            Self::Unreachable
            | Self::Lost
            | Self::TimedOut
            | Self::ReplyTooLarge { .. }
            | Self::Garbled
            | Self::Decode(_)
            | Self::Batch(_)
            | Self::Compressed { .. } => false,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable => f.write_str("the broker cannot be reached"),
            Self::Lost => f.write_str("the connection ended before the reply"),
            Self::TimedOut => f.write_str("no reply in time"),
            Self::Refused(code) => write!(f, "refused: {code}"),
            Self::Unsupported(api) => write!(f, "the broker speaks no known version of {}", api.name()),
            Self::ReplyTooLarge { bytes } => write!(f, "a reply of {bytes} bytes does not fit the frame buffer"),
            Self::RequestTooLarge => f.write_str("the request does not fit the frame buffer"),
            Self::Garbled => f.write_str("the reply is none to the request"),
            Self::Decode(error) => write!(f, "broken reply: {error}"),
            Self::Address => f.write_str("the leader's address is no address"),
            Self::Batch(error) => write!(f, "broken batch: {error}"),
            Self::Compressed { offset } => write!(f, "the batch at offset {offset} is compressed"),
        }
    }
}

impl core::error::Error for Error {}

impl From<Lost> for Error {
    fn from(Lost: Lost) -> Self {
        Self::Lost
    }
}

impl From<DecodeError> for Error {
    fn from(error: DecodeError) -> Self {
        Self::Decode(error)
    }
}

impl From<ErrorCode> for Error {
    fn from(code: ErrorCode) -> Self {
        Self::Refused(code)
    }
}
