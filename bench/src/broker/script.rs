//! Producers and consumers as scripts of the load: frames that are made once and changed in place, so that the load is light.

use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

use skerry_broker::crc::CRC32C;
use skerry_core::api::fetch::{FetchPartition, FetchRequest, FetchTopic};
use skerry_core::api::produce::{PartitionProduceData, ProduceRequest, TopicProduceData};
use skerry_core::error_code::ErrorCode;
use skerry_core::record::BatchBuilder;
use skerry_core::time::Timestamp;
use skerry_core::wire::{Array, Records};
use skerry_tests::client::{Frame, reply};
use skerry_tests::wire;

use super::engine::{Script, Work};

/// Versions that Kafka 2.8 to 4.x and Skerry all speak.
const PRODUCE: i16 = 9;
const FETCH: i16 = 12;

/// Where the correlation id stands in a request: after length, key and version.
const ID: std::ops::Range<usize> = 8..12;

/// Records of one size, so many to a batch.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Its name in reports.
    pub name: &'static str,
    /// Bytes of a record's value; it has no key and no headers.
    pub value_bytes: usize,
    /// A batch is closed before it grows past this; it has one record at least.
    pub batch_bytes: usize,
}

/// A batch ready to be sent.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Its records.
    pub records: u64,
}

impl Shape {
    /// A batch of this shape. Its bytes look random, as compressed data would.
    #[must_use]
    pub fn batch(&self) -> Batch {
        let mut seed = 0x9E37_79B9_7F4A_7C15_u64;
        let value: Vec<u8> = (0..self.value_bytes)
            .map(|_| {
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                seed as u8
            })
            .collect();
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |t| t.as_millis() as i64);
        let mut room = vec![0; self.batch_bytes.max(self.value_bytes + 256)];
        let mut batch = BatchBuilder::new(&mut room).expect("room for a header");
        while batch.push(Timestamp(now), None, Some(&value), &[]).is_ok() {
            if batch.len_bytes() + self.value_bytes > self.batch_bytes {
                break;
            }
        }
        let records = batch.count() as u64;
        Batch {
            bytes: batch.finish(CRC32C).to_vec(),
            records,
        }
    }
}

/// Sends the same batch to one partition again and again.
pub struct Producer {
    frame: Vec<u8>,
    work: Work,
}

impl Producer {
    /// To a partition of `topic`.
    #[must_use]
    pub fn new(topic: &str, partition: i32, acks: i16, batch: &Batch) -> Self {
        let data = [PartitionProduceData {
            index: partition,
            records: Records::Bytes(&batch.bytes),
        }];
        let topics = [TopicProduceData {
            name: topic,
            partition_data: Array::Slice(&data),
            ..TopicProduceData::default()
        }];
        let request = ProduceRequest {
            acks,
            timeout_ms: 30_000,
            topic_data: Array::Slice(&topics),
            ..ProduceRequest::default()
        };
        Self {
            frame: wire::request(&request, PRODUCE, 0),
            work: Work {
                records: batch.records,
                bytes: batch.bytes.len() as u64,
            },
        }
    }
}

impl Script for Producer {
    fn begin(&mut self, correlation_id: i32) {
        self.frame[ID].copy_from_slice(&correlation_id.to_be_bytes());
    }

    fn frame(&self) -> &[u8] {
        &self.frame
    }

    fn answer(&mut self, frame: &[u8]) -> Result<Work, String> {
        let frame = Frame(frame.to_vec());
        for topic in reply::<ProduceRequest<'_>>(PRODUCE, &frame).responses {
            for partition in topic.partition_responses {
                if partition.error_code != ErrorCode::NONE {
                    return Err(format!("produce was refused: {:?}", partition.error_code));
                }
            }
        }
        Ok(self.work)
    }
}

/// Reads one partition from its start to its end, and again. Only one request may be under way.
pub struct Consumer {
    topic: Rc<str>,
    partition: i32,
    wait_ms: i32,
    batch: Work,
    offset: i64,
    frame: Vec<u8>,
}

/// Most bytes of a fetch: the default of Kafka's consumer for one partition.
pub const FETCH_BYTES: i32 = 1 << 20;

impl Consumer {
    /// Of a partition of `topic` that holds batches of one kind. At the end of the log it waits for `wait_ms` at most.
    #[must_use]
    pub fn new(topic: &str, partition: i32, wait_ms: i32, batch: &Batch) -> Self {
        Self {
            topic: topic.into(),
            partition,
            wait_ms,
            batch: Work {
                records: batch.records,
                bytes: batch.bytes.len() as u64,
            },
            offset: 0,
            frame: Vec::new(),
        }
    }
}

impl Script for Consumer {
    fn begin(&mut self, correlation_id: i32) {
        let partitions = [FetchPartition {
            partition: self.partition,
            fetch_offset: self.offset,
            partition_max_bytes: FETCH_BYTES,
            ..FetchPartition::default()
        }];
        let topics = [FetchTopic {
            topic: &self.topic,
            partitions: Array::Slice(&partitions),
            ..FetchTopic::default()
        }];
        let request = FetchRequest {
            max_wait_ms: self.wait_ms,
            min_bytes: 1,
            max_bytes: 50 << 20,
            topics: Array::Slice(&topics),
            ..FetchRequest::default()
        };
        self.frame = wire::request(&request, FETCH, correlation_id);
    }

    fn frame(&self) -> &[u8] {
        &self.frame
    }

    fn answer(&mut self, frame: &[u8]) -> Result<Work, String> {
        let mut work = Work::default();
        let answer = wire::reply::<skerry_core::api::FetchResponse<'_>>(skerry_core::api::ApiKey::Fetch, FETCH, frame);
        for topic in answer.responses {
            for partition in topic.partitions {
                if partition.error_code != ErrorCode::NONE {
                    return Err(format!("fetch was refused: {:?}", partition.error_code));
                }
                let Records::Bytes(bytes) = partition.records else {
                    continue;
                };
                // The last batch may be cut, and is asked for again.
                let batches = bytes.len() as u64 / self.batch.bytes;
                work.bytes += batches * self.batch.bytes;
                work.records += batches * self.batch.records;
                self.offset += (batches * self.batch.records) as i64;
                if self.offset >= partition.high_watermark {
                    self.offset = 0;
                }
            }
        }
        Ok(work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_as_full_as_they_may_be() {
        for (value_bytes, batch_bytes, records) in [
            (100, 16_384, 148),
            (100, 0, 1),
            (100_000, 16_384, 1),
            (1024, 16_384, 15),
        ] {
            let shape = Shape {
                name: "",
                value_bytes,
                batch_bytes,
            };
            let batch = shape.batch();
            assert_eq!(batch.records, records, "{shape:?}: {} bytes", batch.bytes.len());
            assert_eq!(wire::records(&batch.bytes).len() as u64, records);
        }
    }
}
