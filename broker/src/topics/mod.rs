//! Topics: which there are, what is set on them, and the file in which the broker remembers that.

mod catalog;
pub mod config;
mod frames;
#[cfg(test)]
mod mem_disk;
pub mod meta_properties;
mod metadata_log;
mod name;
mod producer_ids;
mod record;
mod table;

pub use catalog::{Catalog, ChangeError, OpenError, random_uuid};
pub use metadata_log::{METADATA_LOG, MetadataError, MetadataLog, Opened, Records};
pub use name::{NameError, TOPIC_NAME_BYTES_MAX, TopicName, collide, topic_name};
pub use producer_ids::{BLOCK_IDS, ProducerIds};
pub use record::{MetadataRecord, OffsetCommitted, RECORD_BYTES_MAX};
pub use table::{InsertError, Topic, TopicTable};
