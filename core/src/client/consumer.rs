//! A consumer of one partition: from a start that is given, on and on.

use super::link::{Link, Speech, Step, spoken};
use super::{Error, Settings, Transport};
use crate::api::ApiKey;
use crate::api::fetch::{FetchPartition, FetchRequest, FetchTopic};
use crate::api::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use crate::error_code::ErrorCode;
use crate::record::{
    Batch, BatchError, Batches, Compression, Crc32c, RecordHeaders, RecordIter, TimestampType, crc32c,
};
use crate::time::{Instant, Millis, Timestamp};
use crate::wire::Array;

/// Where to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Start {
    /// At the first record that is still there.
    Earliest,
    /// After the last one: only what comes from now on.
    Latest,
    /// At this offset.
    Offset(i64),
    /// At the first record of that time or later; at the end when there is none.
    Time(Timestamp),
}

/// What [`Consumer::poll`] has to tell.
#[derive(Clone, Debug)]
pub enum ConsumerEvent<'a> {
    /// Close the connection if there is one, connect to [`Consumer::address`], and say how it went:
    /// [`connected`](Consumer::connected) or [`unreachable`](Consumer::unreachable).
    Connect,
    /// Records, each once, by rising offset. They are counted as read: the next poll goes on after them.
    Records(Fetched<'a>),
}

/// A record with its place in the partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchedRecord<'a> {
    /// Its offset.
    pub offset: i64,
    /// Its time, or the time of its append where the topic keeps that.
    pub timestamp: Timestamp,
    /// The key, if it has one.
    pub key: Option<&'a [u8]>,
    /// The value; `None` is a tombstone.
    pub value: Option<&'a [u8]>,
    /// The headers.
    pub headers: RecordHeaders<'a>,
}

/// Records of one fetch, in the frame buffer. Checksums and shapes were checked before: walking them cannot fail.
#[derive(Clone, Debug)]
pub struct Fetched<'a> {
    batches: Batches<'a>,
    batch: Option<(Batch<'a>, RecordIter<'a>)>,
    from: i64,
    end: i64,
}

impl<'a> Iterator for Fetched<'a> {
    type Item = FetchedRecord<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some((batch, records)) = &mut self.batch else {
                let batch = self.batches.next()?.ok()?;
                if batch.header().base_offset >= self.end {
                    return None;
                }
                // A control batch holds no records of any producer's.
                if !batch.header().attributes.is_control() {
                    self.batch = Some((batch, batch.records()));
                }
                continue;
            };
            let Some(Ok(record)) = records.next() else {
                self.batch = None;
                continue;
            };
            let header = batch.header();
            let offset = header.base_offset.saturating_add(i64::from(record.offset_delta));
            if offset < self.from {
                continue;
            }
            let timestamp = match header.attributes.timestamp_type() {
                TimestampType::CreateTime => header.base_timestamp.wrapping_add(record.timestamp_delta),
                TimestampType::LogAppendTime => header.max_timestamp,
            };
            return Some(FetchedRecord {
                offset,
                timestamp: Timestamp(timestamp),
                key: record.key,
                value: record.value,
                headers: record.headers,
            });
        }
    }
}

/// What is spoken.
const SPEECH: &[Speech] = &[
    (ApiKey::Metadata, spoken::METADATA),
    (ApiKey::Fetch, spoken::FETCH),
    (ApiKey::ListOffsets, spoken::LIST_OFFSETS),
];

/// Bytes of a fetch reply that are not records, beside the topic's name: see `../api/fetch.rs`, version 11.
const FETCH_OVERHEAD_BYTES: usize = 96;

/// A consumer of one partition, in one buffer of the caller's. No group, and no offsets kept by the broker: keep
/// [`position`](Self::position) where a restart finds it.
///
/// Shape: ApiVersions, Metadata, ListOffsets where the start is no offset, then Fetch without end.
/// When full: a batch that does not fit `frame` is [`Error::ReplyTooLarge`], again and again: give it more room than the
/// largest batch of the topic.
/// Cost: one pass over each batch for its checksum, one over its lengths, no copy.
#[derive(Debug)]
pub struct Consumer<'b> {
    link: Link<'b>,
    start: Start,
    /// The next offset to read; `None` until the start is found.
    position: Option<i64>,
    high_watermark: Option<i64>,
    max_wait: Millis,
    crc: Crc32c,
    /// No request before this.
    hold: Instant,
}

/// What an answer to a fetch comes to.
struct Answer {
    records_bytes: usize,
    from: i64,
    end: i64,
    /// The first batch is compressed, and begins here.
    compressed: Option<i64>,
    high_watermark: i64,
}

impl<'b> Consumer<'b> {
    /// A consumer that begins at `start`.
    #[must_use]
    pub fn new(settings: Settings<'b>, start: Start, frame: &'b mut [u8]) -> Self {
        let mut consumer = Self {
            link: Link::new(settings, SPEECH, frame),
            start,
            position: None,
            high_watermark: None,
            max_wait: Millis(settings.request_timeout.0 / 2),
            crc: crc32c,
            hold: Instant::default(),
        };
        consumer.assign(start);
        consumer
    }

    /// The broker waits so long for records before it answers with none; by default half the time that a request has.
    #[must_use]
    pub const fn max_wait(mut self, max_wait: Millis) -> Self {
        self.max_wait = max_wait;
        self
    }

    /// With a checksum of the caller's, say by an instruction, in place of [`crc32c`].
    #[must_use]
    pub const fn checksum(mut self, crc: Crc32c) -> Self {
        self.crc = crc;
        self
    }

    /// Begins anew at `start`: what is under way is dropped with its connection.
    pub fn assign(&mut self, start: Start) {
        self.start = start;
        self.position = match start {
            Start::Offset(offset) => Some(offset),
            Start::Earliest | Start::Latest | Start::Time(_) => None,
        };
        self.link.forget();
    }

    /// The next offset to read, once it is known.
    #[must_use]
    pub const fn position(&self) -> Option<i64> {
        self.position
    }

    /// The end of what may be read, as of the last answer: the lag is this less the position.
    #[must_use]
    pub const fn high_watermark(&self) -> Option<i64> {
        self.high_watermark
    }

    /// Where to connect: the address in the settings, or the leader's.
    #[must_use]
    pub fn address(&self) -> (&str, u16) {
        self.link.address()
    }

    /// The caller has connected: the transport of the next [`poll`](Self::poll) is fresh.
    pub const fn connected(&mut self) {
        self.link.connected();
    }

    /// The caller could not connect. The next [`ConsumerEvent::Connect`] comes after a while.
    pub fn unreachable(&mut self, now: Instant) {
        self.link.offline(now);
    }

    /// When [`poll`](Self::poll) has something to do even if the transport has no bytes and no room.
    #[must_use]
    pub fn wake_at(&self) -> Instant {
        if self.link.is_idle() {
            self.link.wake_at().max(self.hold)
        } else {
            self.link.wake_at()
        }
    }

    /// Goes on as far as it can without waiting.
    ///
    /// Errors: `WouldBlock` when there is nothing to tell. After any other the consumer goes on by itself when it is polled
    /// again, after its backoff: count them, and give up by your own rule. OFFSET_OUT_OF_RANGE asks for a new
    /// [`assign`](Self::assign).
    pub fn poll<T: Transport>(&mut self, now: Instant, transport: &mut T) -> nb::Result<ConsumerEvent<'_>, Error> {
        if self.link.poll(now, transport)? == Step::Connect {
            return Ok(ConsumerEvent::Connect);
        }
        if self.link.is_idle() && now < self.hold {
            return Err(nb::Error::WouldBlock);
        }
        let position = match self.position {
            Some(position) => position,
            None => self.find_start(now, transport)?,
        };
        if self.link.is_idle() {
            self.ask_fetch(now, position)?;
        }
        self.link.exchange(now, transport, &[])?;
        let answer = self.on_fetched(position);
        let answer = self.judged(now, answer)?;
        self.position = Some(answer.end);
        self.high_watermark = Some(answer.high_watermark);
        if let Some(offset) = answer.compressed {
            return Err(nb::Error::Other(Error::Compressed { offset }));
        }
        if answer.end == answer.from {
            return Err(nb::Error::WouldBlock);
        }
        Ok(ConsumerEvent::Records(Fetched {
            batches: Batches::new(self.link.reply_tail(answer.records_bytes)),
            batch: None,
            from: answer.from,
            end: answer.end,
        }))
    }

    fn find_start<T: Transport>(&mut self, now: Instant, transport: &mut T) -> nb::Result<i64, Error> {
        if self.link.is_idle() {
            self.ask_offset(now)?;
        }
        self.link.exchange(now, transport, &[])?;
        let answer = self.on_offset();
        match self.judged(now, answer)? {
            Some(offset) => {
                self.position = Some(offset);
                Ok(offset)
            }
            None => {
                // No record is as late as that: what comes next is.
                self.start = Start::Latest;
                Err(nb::Error::WouldBlock)
            }
        }
    }

    /// What an answer does to the connection.
    fn judged<A>(&mut self, now: Instant, answer: Result<A, Error>) -> Result<A, Error> {
        match answer {
            Ok(_) => self.link.succeeded(),
            Err(Error::Refused(
                ErrorCode::NOT_LEADER_OR_FOLLOWER
                | ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
                | ErrorCode::LEADER_NOT_AVAILABLE
                | ErrorCode::FENCED_LEADER_EPOCH
                | ErrorCode::UNKNOWN_LEADER_EPOCH,
            )) => self.link.relocate(now),
            Err(Error::Refused(_) | Error::Batch(_)) => self.hold = self.link.retry_at(now),
            Err(_) => self.link.offline(now),
        }
        answer
    }

    fn ask_offset(&mut self, now: Instant) -> Result<(), Error> {
        let Settings { topic, partition, .. } = *self.link.settings();
        let wanted = ListOffsetsPartition {
            partition_index: partition,
            timestamp: match self.start {
                Start::Earliest => -2,
                Start::Latest | Start::Offset(_) => -1,
                Start::Time(timestamp) => timestamp.0.max(0),
            },
            ..Default::default()
        };
        let of = ListOffsetsTopic {
            name: topic,
            partitions: Array::one(&wanted),
        };
        let call = ListOffsetsRequest {
            replica_id: -1,
            topics: Array::one(&of),
            ..Default::default()
        };
        self.link.begin(now, &call, self.link.version(ApiKey::ListOffsets))
    }

    /// The offset found; `None` when no record is as late as that.
    fn on_offset(&self) -> Result<Option<i64>, Error> {
        let version = self.link.version(ApiKey::ListOffsets);
        let reply = self.link.reply::<ListOffsetsRequest<'_>>(version)?;
        let mut answers = reply.topics.iter().flat_map(|topic| topic.partitions.iter());
        let answer = answers.next().ok_or(Error::Garbled)?;
        answer.error_code.ok()?;
        Ok((answer.offset >= 0).then_some(answer.offset))
    }

    fn ask_fetch(&mut self, now: Instant, position: i64) -> Result<(), Error> {
        let Settings { topic, partition, .. } = *self.link.settings();
        let room = self
            .link
            .frame_bytes()
            .saturating_sub(FETCH_OVERHEAD_BYTES + topic.len());
        let room = i32::try_from(room.max(1)).unwrap_or(i32::MAX);
        let wanted = FetchPartition {
            partition,
            fetch_offset: position,
            partition_max_bytes: room,
            ..Default::default()
        };
        let of = FetchTopic {
            topic,
            partitions: Array::one(&wanted),
            ..Default::default()
        };
        let call = FetchRequest {
            max_wait_ms: i32::try_from(self.max_wait.0).unwrap_or(i32::MAX),
            min_bytes: 1,
            max_bytes: room,
            topics: Array::one(&of),
            ..Default::default()
        };
        self.link.begin(now, &call, self.link.version(ApiKey::Fetch))
    }

    /// Walks what was fetched once: how far it is whole, sound and readable.
    fn on_fetched(&self, position: i64) -> Result<Answer, Error> {
        let reply = self.link.reply::<FetchRequest<'_>>(self.link.version(ApiKey::Fetch))?;
        reply.error_code.ok()?;
        let mut answers = reply.responses.iter().flat_map(|topic| topic.partitions.iter());
        let answer = answers.next().ok_or(Error::Garbled)?;
        answer.error_code.ok()?;
        let records = answer.records.bytes();
        let mut end = position;
        let mut compressed = None;
        for batch in Batches::new(records) {
            let checked = batch.and_then(|batch| Ok((batch, self.opens(&batch)?)));
            match checked {
                Ok((batch, true)) => end = end.max(batch.header().next_offset()),
                // What comes before it is handed out first.
                Ok((_, false)) if end > position => break,
                Ok((batch, false)) => {
                    let header = batch.header();
                    compressed = Some(header.base_offset);
                    end = end.max(header.next_offset());
                    break;
                }
                // The last batch of a fetch may be cut.
                Err(BatchError::Truncated) => break,
                Err(_) if end > position => break,
                Err(error) => return Err(Error::Batch(error)),
            }
        }
        Ok(Answer {
            records_bytes: records.len(),
            from: position,
            end,
            compressed,
            high_watermark: answer.high_watermark,
        })
    }

    /// Whether a sound batch can be opened here, which a compressed one cannot.
    fn opens(&self, batch: &Batch<'_>) -> Result<bool, BatchError> {
        if !batch.crc_holds(self.crc) {
            return Err(BatchError::Crc);
        }
        let attributes = batch.header().attributes;
        match attributes.compression()? {
            Compression::None => batch.records().try_for_each(|record| record.map(drop)).map(|()| true),
            Compression::Gzip | Compression::Snappy | Compression::Lz4 | Compression::Zstd => Ok(false),
        }
    }
}
