//! Topics: which there are, what is set on them, and the file in which the broker remembers that.

pub mod config;
mod name;
mod table;

pub use name::{NameError, TOPIC_NAME_BYTES_MAX, TopicName, collide, topic_name};
pub use table::{InsertError, Topic, TopicTable};

pub use skerry_core::wire::Uuid;
