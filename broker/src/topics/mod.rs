//! Topics: which there are, what is set on them, and the file in which the broker remembers that.

pub mod config;
mod name;
mod table;

pub use name::{NameError, TOPIC_NAME_BYTES_MAX, TopicName, collide, topic_name};
pub use table::{InsertError, Topic, TopicTable};

/// Stand-in until core::wire lands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Uuid(pub [u8; 16]);
