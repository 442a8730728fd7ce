//! Record batches, format v2 (KIP-98), the only one that is kept.
//!
//! A batch is a 61-byte header ([`BatchHeader`]) and records, perhaps compressed. [`Batch`] looks at one that is there,
//! [`validate`] decides whether a producer's may be appended, [`BatchMut`] writes what the broker assigns, and
//! [`BatchBuilder`] makes one.

mod batch;
mod builder;
mod crc32c;
mod error;
#[allow(clippy::module_inception)] // The file is named after what it holds.
mod record;
mod validate;
mod varint;

pub use batch::{Attributes, BATCH_HEADER_BYTES, Batch, BatchHeader, BatchMut, Batches, Compression, TimestampType};
pub use builder::BatchBuilder;
pub(crate) use builder::Draft;
pub use crc32c::{Crc32c, crc32c};
pub use error::BatchError;
pub use record::{Record, RecordHeader, RecordHeaders, RecordIter};
pub use validate::{Rules, validate};
pub use varint::{VARINT_BYTES_MAX, VARLONG_BYTES_MAX};
