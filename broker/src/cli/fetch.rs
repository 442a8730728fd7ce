//! Reading partitions: fetches to their leaders, and the records that come back.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use skerry_core::api::FetchRequest;
use skerry_core::api::fetch::{FetchPartition, FetchTopic, PartitionData};
use skerry_core::error_code::ErrorCode;
use skerry_core::record::{Batch, BatchError, Batches, RecordIter, TimestampType};
use skerry_core::wire::{Array, Version};

use super::args::Position;
use super::client::{Client, Node, Topic, Try, refused, words};
use super::{Failure, compress, offsets};
use crate::crc::CRC32C;

/// How long a leader may hold a fetch that finds nothing, when it is the only one that is asked.
const WAIT: Duration = Duration::from_millis(500);
/// The same where others must be asked after it.
const WAIT_AMONG_OTHERS: Duration = Duration::from_millis(50);
/// The most bytes of one partition in one reply; a larger batch still comes whole.
const PARTITION_BYTES: i32 = 1 << 20;
/// The most bytes of one reply.
const REPLY_BYTES: i32 = 16 << 20;

/// A record as it is handed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Where it stands.
    pub partition: i32,
    /// Its offset.
    pub offset: i64,
    /// Milliseconds since 1970; −1: none.
    pub timestamp: i64,
    /// Key.
    pub key: Option<Vec<u8>>,
    /// Value.
    pub value: Option<Vec<u8>>,
    /// Headers in order.
    pub headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

/// The partitions of a topic that are read, and how far.
pub struct Reader {
    topic: Topic,
    /// The next offset of each partition.
    positions: BTreeMap<i32, i64>,
    committed: bool,
    /// Where a partition goes on whose position is gone.
    reset: Position,
    /// The partition that the next fetch asks first, so that none is starved by those before it.
    turn: usize,
}

/// What one partition of a reply holds.
struct Part {
    partition: i32,
    error: ErrorCode,
    records: Vec<Fetched>,
    /// The offset after what was read.
    next: Option<i64>,
}

impl Reader {
    /// Reads `topic` from `positions` on. `committed` hides what transactions have not committed.
    pub fn new(topic: Topic, positions: BTreeMap<i32, i64>, committed: bool, reset: Position) -> Self {
        Self {
            topic,
            positions,
            committed,
            reset,
            turn: 0,
        }
    }

    /// The next offset of each partition.
    pub fn positions(&self) -> &BTreeMap<i32, i64> {
        &self.positions
    }

    /// What has come, by one fetch to each leader; empty when nothing has for a while.
    pub fn poll(&mut self, client: &mut Client) -> Result<Vec<Fetched>, Failure> {
        client.persist(|client| self.poll_once(client))
    }

    fn poll_once(&mut self, client: &mut Client) -> Result<Try<Vec<Fetched>>, Failure> {
        let partitions: Vec<i32> = self.positions.keys().copied().collect();
        let leaders = offsets::by_leader(&self.topic, &partitions);
        let wait = if leaders.len() == 1 { WAIT } else { WAIT_AMONG_OTHERS };
        let mut records = Vec::new();
        let mut later = None;
        for (leader, mut partitions) in leaders {
            self.turn = self.turn.wrapping_add(1);
            let first = self.turn % partitions.len().max(1);
            partitions.rotate_left(first);
            for part in self.fetch(client, leader, &partitions, wait)? {
                match part.error {
                    ErrorCode::NONE => {
                        if let Some(next) = part.next {
                            self.positions.insert(part.partition, next);
                        }
                        records.extend(part.records);
                    }
                    ErrorCode::OFFSET_OUT_OF_RANGE => self.start_over(client, part.partition)?,
                    error if error.is_retriable() => {
                        later = Some(format!("{} [{}]: {}", self.topic.name, part.partition, words(error)));
                    }
                    error => {
                        return Err(refused(
                            &format!("{} [{}]", self.topic.name, part.partition),
                            error,
                            None,
                        ));
                    }
                }
            }
        }
        match later {
            Some(why) if records.is_empty() => {
                self.topic = client.topic(&self.topic.name, false)?;
                Ok(Try::Later(why))
            }
            _ => Ok(Try::Done(records)),
        }
    }

    fn fetch(
        &self,
        client: &mut Client,
        leader: i32,
        partitions: &[i32],
        wait: Duration,
    ) -> Result<Vec<Part>, Failure> {
        let asked: Vec<FetchPartition> = partitions
            .iter()
            .map(|partition| FetchPartition {
                partition: *partition,
                fetch_offset: self.positions.get(partition).copied().unwrap_or(0),
                partition_max_bytes: PARTITION_BYTES,
                ..FetchPartition::default()
            })
            .collect();
        let topics = [FetchTopic {
            topic: &self.topic.name,
            topic_id: self.topic.id,
            partitions: Array::Slice(&asked),
        }];
        let request = FetchRequest {
            max_wait_ms: i32::try_from(wait.as_millis()).unwrap_or(0),
            min_bytes: 1,
            max_bytes: REPLY_BYTES,
            isolation_level: i8::from(self.committed),
            topics: Array::Slice(&topics),
            ..FetchRequest::default()
        };
        // From version 13 on topics are named by their ids.
        let version_max = if self.topic.id.is_zero() { 12 } else { Version::MAX };
        client.ask_for(&Node::Id(leader), &request, version_max, wait, |reply| {
            if !reply.error_code.is_none() {
                return Err(refused(&self.topic.name, reply.error_code, None));
            }
            let parts = reply.responses.iter().flat_map(|topic| topic.partitions.iter());
            parts.map(|part| self.read(&part)).collect()
        })
    }

    /// The records of one partition from its position on.
    fn read(&self, data: &PartitionData<'_>) -> Result<Part, Failure> {
        let partition = data.partition_index;
        let from = self.positions.get(&partition).copied().unwrap_or(0);
        let mut part = Part {
            partition,
            error: data.error_code,
            records: Vec::new(),
            next: None,
        };
        let mut aborted = Aborted::new(data, self.committed);
        for batch in Batches::new(data.records.bytes()) {
            let batch = match batch {
                Ok(batch) => batch,
                // A reply may end inside a batch; the next one has it whole.
                Err(BatchError::Truncated) => break,
                Err(error) => return Err(self.broken(partition, part.next.unwrap_or(from), error.message())),
            };
            let header = *batch.header();
            let at = header.base_offset;
            part.next = Some(header.next_offset());
            if aborted.hides(&batch) || header.attributes.is_control() || header.next_offset() <= from {
                continue;
            }
            if !batch.crc_holds(CRC32C) {
                return Err(self.broken(partition, at, "the checksum does not hold"));
            }
            let codec = header
                .attributes
                .compression()
                .map_err(|error| self.broken(partition, at, error.message()))?;
            let opened = compress::open(codec, batch.payload()).map_err(|error| self.broken(partition, at, &error))?;
            for record in RecordIter::new(&opened, u32::try_from(header.count).unwrap_or(0)) {
                let record = record.map_err(|error| self.broken(partition, at, error.message()))?;
                let offset = at + i64::from(record.offset_delta);
                if offset < from {
                    continue;
                }
                part.records.push(Fetched {
                    partition,
                    offset,
                    timestamp: match header.attributes.timestamp_type() {
                        TimestampType::CreateTime => header.base_timestamp.saturating_add(record.timestamp_delta),
                        TimestampType::LogAppendTime => header.max_timestamp,
                    },
                    key: record.key.map(<[u8]>::to_vec),
                    value: record.value.map(<[u8]>::to_vec),
                    headers: record
                        .headers
                        .map(|h| (h.key.to_vec(), h.value.map(<[u8]>::to_vec)))
                        .collect(),
                });
            }
        }
        Ok(part)
    }

    fn broken(&self, partition: i32, offset: i64, why: &str) -> Failure {
        format!(
            "{} [{partition}]: the batch at offset {offset} cannot be read: {why}",
            self.topic.name
        )
        .into()
    }

    /// The position of a partition is no longer, or not yet, in its log.
    fn start_over(&mut self, client: &mut Client, partition: i32) -> Result<(), Failure> {
        let was = self.positions.get(&partition).copied().unwrap_or(0);
        let found = offsets::find(client, &self.topic, &[partition], self.reset, self.committed)?;
        let begin = found.get(&partition).copied().unwrap_or(0);
        log::warn!(
            "{} [{partition}]: there is no offset {was}; going on at {begin}",
            self.topic.name
        );
        self.positions.insert(partition, begin);
        Ok(())
    }
}

/// Which producers' batches are of transactions that were aborted, while a reply is read from its start.
struct Aborted {
    /// Producer and first offset, by rising offset.
    ahead: Vec<(i64, i64)>,
    producers: BTreeSet<i64>,
}

impl Aborted {
    fn new(data: &PartitionData<'_>, committed: bool) -> Self {
        let mut ahead: Vec<(i64, i64)> = if committed {
            data.aborted_transactions
                .iter()
                .map(|t| (t.first_offset, t.producer_id))
                .collect()
        } else {
            Vec::new()
        };
        ahead.sort_unstable();
        ahead.reverse();
        Self {
            ahead,
            producers: BTreeSet::new(),
        }
    }

    /// Whether the batch, which comes after all that were asked about before, belongs to an aborted transaction.
    fn hides(&mut self, batch: &Batch<'_>) -> bool {
        let header = batch.header();
        while let Some((first, producer)) = self.ahead.last().copied()
            && first <= header.last_offset()
        {
            self.producers.insert(producer);
            self.ahead.pop();
        }
        if header.attributes.is_control() {
            // Its one record is the marker that ends the producer's transaction.
            self.producers.remove(&header.producer_id);
            return false;
        }
        header.attributes.is_transactional() && self.producers.contains(&header.producer_id)
    }
}
