//! Kafka's wire format: a checked cursor in, a bounded cursor out, and one declaration per message.
//!
//! Values that are written alike in every message ([`Value`]) know how to read, skim and write themselves; the `message!`
//! table (`message.rs`) puts them together with the versions in which each field exists. Decoding borrows the frame and
//! copies nothing; a count on the wire is checked against the bytes that are there before it is believed.
//!
//! Source: Kafka protocol guide, "Protocol Primitive Types"; KIP-482 (compact lengths and tagged fields).

mod array;
mod message;
mod reader;
mod schema;
mod value;
pub mod varint;
mod writer;

pub use array::{Array, Items, Iter, Wire};
pub(crate) use message::message;
pub use reader::Reader;
pub use schema::{Field, Type, Versions};
pub(crate) use value::take_tags;
pub use value::{Form, Message, Records, Table, Uuid, Value};
#[cfg(feature = "bytes")]
pub use writer::BufSink;
pub use writer::{Counter, Sink, SliceWriter};

/// A version of an API, as the peer names it.
pub type Version = i16;

/// Which rule of the wire format a peer's bytes broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum DecodeError {
    /// The bytes end before the value does. Every proper prefix of a message gives this and nothing else.
    Short,
    /// A variable-length integer runs past its width.
    Varint,
    /// A length or count below −1.
    NegativeLength,
    /// A string of more than 32,767 bytes: no version of the format has a longer one, and what is told again in a version with
    /// two-byte lengths must fit there.
    StringLength,
    /// Null where this version allows none.
    UnexpectedNull,
    /// A string that is not UTF-8.
    Utf8,
    /// A tagged field whose announced size is not the size of its value.
    TagSize,
    /// An API key that is not declared here.
    ApiKey,
    /// A version of a known API that is not declared here.
    Version,
}

impl core::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Short => "the bytes end before the value does",
            Self::Varint => "a variable-length integer is too long",
            Self::NegativeLength => "a length is negative",
            Self::StringLength => "a string is too long",
            Self::UnexpectedNull => "null where none is allowed",
            Self::Utf8 => "a string is not UTF-8",
            Self::TagSize => "a tagged field has the wrong size",
            Self::ApiKey => "unknown API key",
            Self::Version => "unsupported API version",
        })
    }
}

impl core::error::Error for DecodeError {}

/// There is no room for what was to be written, or it is longer than its length field can say.
///
/// What was written before stays in the sink and is no whole message: drop it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Full;

impl core::fmt::Display for Full {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("no room left to write")
    }
}

impl core::error::Error for Full {}
