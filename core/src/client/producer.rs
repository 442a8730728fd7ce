//! A producer for one partition: batches records, sends them, and sends them again until they are there.

use super::link::{Link, Speech, Step, spoken};
use super::{Error, Settings, Transport};
use crate::api::ApiKey;
use crate::api::init_producer_id::InitProducerIdRequest;
use crate::api::produce::{PartitionProduceData, ProduceRequest, TopicProduceData};
use crate::error_code::ErrorCode;
use crate::machine::producer::advance;
use crate::record::{Crc32c, Draft, RecordHeader, crc32c};
use crate::time::{Instant, Millis, Timestamp};
use crate::wire::{Array, Records};

/// When a batch counts as delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Acks {
    /// When it is sent: the broker does not answer, and what goes wrong there is never known.
    None,
    /// When the leader has it. Sent again after a lost reply, it may be there twice.
    Leader,
    /// When every replica in sync has it. Sent again after a lost reply, it may be there twice.
    All,
    /// As `All`, and never twice: the producer has an id and numbers its batches (KIP-98).
    AllOnce,
}

/// What [`Producer::poll`] has to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ProducerEvent {
    /// Close the connection if there is one, connect to [`Producer::address`], and say how it went:
    /// [`connected`](Producer::connected) or [`unreachable`](Producer::unreachable).
    Connect,
    /// The batch is delivered, and there is room for the next.
    Delivered {
        /// The offset of its first record; `None` when the broker did not say (acks 0, or a duplicate of long ago).
        base_offset: Option<i64>,
        /// How many records.
        count: i32,
    },
}

/// The record is larger than an empty batch has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct RecordTooLarge;

impl core::fmt::Display for RecordTooLarge {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the record does not fit the batch buffer")
    }
}

impl core::error::Error for RecordTooLarge {}

/// What became of the batch so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Batch {
    /// Takes records, and is due at `due`.
    Open { due: Instant },
    /// Takes no more, and waits for the connection and the producer's id.
    Due,
    /// Has its header: the same bytes go out with every try.
    Sealed,
}

/// What the broker knows an idempotent producer by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    id: i64,
    epoch: i16,
    /// The number of the next record.
    sequence: i32,
}

/// What is spoken with and without an id.
const SPEECH: &[Speech] = &[
    (ApiKey::Metadata, spoken::METADATA),
    (ApiKey::Produce, spoken::PRODUCE),
    (ApiKey::InitProducerId, spoken::INIT_PRODUCER_ID),
];

/// A producer for one partition, in two buffers of the caller's: one for the batch, one for everything else.
///
/// One batch at a time: it takes records, then it is on its way, then it is delivered or given up. Nothing is connected before
/// there is something to send. The caller polls it with the time and the transport, connects when told to, and sleeps until
/// [`wake_at`](Self::wake_at) or until the transport has bytes.
///
/// Shape: ApiVersions, Metadata, InitProducerId where wanted, then Produce, each after the reply to the one before.
/// When full: [`push`](Self::push) says `WouldBlock`, and the batch is due at once.
/// Cost: one pass over the batch for its checksum; no copy of the records after [`push`](Self::push).
#[derive(Debug)]
pub struct Producer<'b> {
    link: Link<'b>,
    buffer: &'b mut [u8],
    draft: Draft,
    batch: Batch,
    acks: Acks,
    linger: Millis,
    retries: u32,
    crc: Crc32c,
    identity: Option<Identity>,
    /// No request before this.
    hold: Instant,
    /// Failed tries of the batch at hand.
    failures: u32,
    /// The batch at hand is on its way.
    under_way: bool,
    /// A try of the batch at hand may have been appended without our knowing.
    in_doubt: bool,
    last_error: Option<Error>,
}

impl<'b> Producer<'b> {
    /// A producer without linger, that gives a batch up after 10 retries.
    ///
    /// `batch` bounds the batch, its 61 bytes of header included. `frame` has room for every reply: 512 bytes are enough for
    /// brokers that list up to 80 APIs; a topic takes some 30 bytes and 40 more for each of its partitions.
    #[must_use]
    pub fn new(settings: Settings<'b>, acks: Acks, batch: &'b mut [u8], frame: &'b mut [u8]) -> Self {
        let speech = match acks {
            Acks::AllOnce => SPEECH,
            Acks::None | Acks::Leader | Acks::All => SPEECH.split_last().map_or(SPEECH, |(_, rest)| rest),
        };
        Self {
            link: Link::new(settings, speech, frame),
            buffer: batch,
            draft: Draft::EMPTY,
            batch: Batch::Open { due: Instant::NEVER },
            acks,
            linger: Millis(0),
            retries: 10,
            crc: crc32c,
            identity: None,
            hold: Instant::default(),
            failures: 0,
            under_way: false,
            in_doubt: false,
            last_error: None,
        }
    }

    /// A batch is due so long after its first record, so that others may join it.
    #[must_use]
    pub const fn linger(mut self, linger: Millis) -> Self {
        self.linger = linger;
        self
    }

    /// After so many failed retries a batch is given up. `u32::MAX` keeps it for ever.
    #[must_use]
    pub const fn retries(mut self, retries: u32) -> Self {
        self.retries = retries;
        self
    }

    /// With a checksum of the caller's, say by an instruction, in place of [`crc32c`].
    #[must_use]
    pub const fn checksum(mut self, crc: Crc32c) -> Self {
        self.crc = crc;
        self
    }

    /// Adds a record to the batch. [`Timestamp::NONE`] where there is no clock.
    ///
    /// Errors: `WouldBlock` while a batch is on its way, or when this record finds no room: poll, and push it again;
    /// [`RecordTooLarge`] when an empty batch has no room for it either.
    pub fn push(
        &mut self,
        now: Instant,
        timestamp: Timestamp,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[RecordHeader<'_>],
    ) -> nb::Result<(), RecordTooLarge> {
        let Batch::Open { due } = self.batch else {
            return Err(nb::Error::WouldBlock);
        };
        match self.draft.push(self.buffer, timestamp, key, value, headers) {
            Ok(()) => {
                self.batch = Batch::Open {
                    due: due.min(now + self.linger),
                };
                Ok(())
            }
            Err(_) if self.draft.count() == 0 => Err(nb::Error::Other(RecordTooLarge)),
            Err(_) => {
                self.batch = Batch::Due;
                Err(nb::Error::WouldBlock)
            }
        }
    }

    /// Makes the batch due now, if it holds a record.
    pub fn flush(&mut self) {
        if self.draft.count() > 0 && matches!(self.batch, Batch::Open { .. }) {
            self.batch = Batch::Due;
        }
    }

    /// Records that are neither delivered nor given up.
    #[must_use]
    pub const fn pending(&self) -> i32 {
        self.draft.count()
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

    /// The caller could not connect. The next [`ProducerEvent::Connect`] comes after a while.
    ///
    /// Errors: as [`poll`](Self::poll): the batch may be given up by this.
    pub fn unreachable(&mut self, now: Instant) -> nb::Result<(), Error> {
        self.link.offline(now);
        Err(self.on_failure(Error::Unreachable))
    }

    /// The error of the last try that failed, also of those that a retry made good: for logs.
    #[must_use]
    pub const fn last_error(&self) -> Option<Error> {
        self.last_error
    }

    /// When [`poll`](Self::poll) has something to do even if the transport has no bytes and no room.
    #[must_use]
    pub fn wake_at(&self) -> Instant {
        match self.batch {
            Batch::Open { due } => due,
            Batch::Due | Batch::Sealed if self.link.is_idle() => self.link.wake_at().max(self.hold),
            Batch::Due | Batch::Sealed => self.link.wake_at(),
        }
    }

    /// Goes on as far as it can without waiting.
    ///
    /// Errors: `WouldBlock` when there is nothing to tell: all is delivered, or the transport or the time is waited for. Any
    /// other says why the batch was given up: its records are gone, and the next may be pushed. What a retry may cure is
    /// retried first, see [`last_error`](Self::last_error).
    pub fn poll<T: Transport>(&mut self, now: Instant, transport: &mut T) -> nb::Result<ProducerEvent, Error> {
        match self.batch {
            Batch::Open { due } if now < due => {
                self.link.watch(now, transport);
                return Err(nb::Error::WouldBlock);
            }
            Batch::Open { .. } => self.batch = Batch::Due,
            Batch::Due | Batch::Sealed => {}
        }
        self.step(now, transport).map_err(|error| match error {
            nb::Error::WouldBlock => nb::Error::WouldBlock,
            nb::Error::Other(error) => self.on_failure(error),
        })
    }

    fn step<T: Transport>(&mut self, now: Instant, transport: &mut T) -> nb::Result<ProducerEvent, Error> {
        if self.link.poll(now, transport)? == Step::Connect {
            return Ok(ProducerEvent::Connect);
        }
        if self.link.is_idle() && now < self.hold {
            return Err(nb::Error::WouldBlock);
        }
        if self.acks == Acks::AllOnce && self.identity.is_none() {
            if self.link.is_idle() {
                self.ask_identity(now)?;
            }
            self.link.exchange(now, transport, &[])?;
            let answer = self.on_identity();
            self.identity = Some(self.judged(now, answer)?);
        }
        if self.batch == Batch::Due {
            if let Some(Identity { id, epoch, sequence }) = self.identity {
                self.draft.set_producer(id, epoch, sequence);
            }
            self.draft.seal(self.buffer, self.crc);
            self.batch = Batch::Sealed;
        }
        if self.link.is_idle() {
            self.ask_produce(now)?;
        }
        let body = self.draft.sealed(self.buffer);
        if self.acks == Acks::None {
            self.link.tell(now, transport, body)?;
            return Ok(self.delivered(None));
        }
        self.link.exchange(now, transport, body)?;
        let answer = self.on_produced();
        let base_offset = self.judged(now, answer)?;
        Ok(self.delivered(base_offset))
    }

    /// What an answer that is none does to the connection.
    fn judged<T>(&mut self, now: Instant, answer: Result<T, Error>) -> Result<T, Error> {
        match answer {
            Ok(_) => {}
            Err(Error::Refused(
                ErrorCode::NOT_LEADER_OR_FOLLOWER
                | ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
                | ErrorCode::LEADER_NOT_AVAILABLE
                | ErrorCode::FENCED_LEADER_EPOCH,
            )) => self.link.relocate(now),
            Err(Error::Refused(_)) => self.hold = self.link.retry_at(now),
            Err(_) => self.link.offline(now),
        }
        answer
    }

    fn ask_identity(&mut self, now: Instant) -> Result<(), Error> {
        let call = InitProducerIdRequest {
            transactional_id: None,
            ..Default::default()
        };
        self.link.begin(now, &call, self.link.version(ApiKey::InitProducerId))
    }

    fn on_identity(&self) -> Result<Identity, Error> {
        let version = self.link.version(ApiKey::InitProducerId);
        let reply = self.link.reply::<InitProducerIdRequest<'_>>(version)?;
        reply.error_code.ok()?;
        Ok(Identity {
            id: reply.producer_id,
            epoch: reply.producer_epoch,
            sequence: 0,
        })
    }

    fn ask_produce(&mut self, now: Instant) -> Result<(), Error> {
        let Settings {
            topic,
            partition,
            request_timeout,
            ..
        } = *self.link.settings();
        let bytes = self.draft.sealed(self.buffer).len();
        let data = PartitionProduceData {
            index: partition,
            // The draft is bounded by `i32::MAX`.
            records: Records::Elsewhere(bytes as u32),
        };
        let of = TopicProduceData {
            name: topic,
            partition_data: Array::one(&data),
            ..Default::default()
        };
        let call = ProduceRequest {
            transactional_id: None,
            acks: match self.acks {
                Acks::None => 0,
                Acks::Leader => 1,
                Acks::All | Acks::AllOnce => -1,
            },
            // The broker answers before we stop listening.
            timeout_ms: i32::try_from(request_timeout.0 / 2).unwrap_or(i32::MAX),
            topic_data: Array::one(&of),
        };
        self.link.begin(now, &call, self.link.version(ApiKey::Produce))?;
        self.under_way = true;
        Ok(())
    }

    /// The base offset, if the broker knows it.
    fn on_produced(&self) -> Result<Option<i64>, Error> {
        let reply = self
            .link
            .reply::<ProduceRequest<'_>>(self.link.version(ApiKey::Produce))?;
        let mut answers = reply
            .responses
            .iter()
            .flat_map(|topic| topic.partition_responses.iter());
        let answer = answers.next().ok_or(Error::Garbled)?;
        match answer.error_code {
            ErrorCode::DUPLICATE_SEQUENCE_NUMBER => Ok(None),
            code => {
                code.ok()?;
                Ok((answer.base_offset >= 0).then_some(answer.base_offset))
            }
        }
    }

    fn delivered(&mut self, base_offset: Option<i64>) -> ProducerEvent {
        let count = self.draft.count();
        if let Some(identity) = &mut self.identity {
            identity.sequence = advance(identity.sequence, count);
        }
        self.link.succeeded();
        self.clear();
        ProducerEvent::Delivered { base_offset, count }
    }

    fn clear(&mut self) {
        self.draft = Draft::EMPTY;
        self.batch = Batch::Open { due: Instant::NEVER };
        self.hold = Instant::default();
        self.failures = 0;
        self.under_way = false;
        self.in_doubt = false;
    }

    /// Counts a failed try: `WouldBlock` when there will be another.
    fn on_failure(&mut self, error: Error) -> nb::Error<Error> {
        self.last_error = Some(error);
        self.failures = self.failures.saturating_add(1);
        let unknown_to_broker = matches!(
            error,
            Error::Refused(
                ErrorCode::UNKNOWN_PRODUCER_ID
                    | ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER
                    | ErrorCode::INVALID_PRODUCER_EPOCH
            )
        );
        let is_final = if unknown_to_broker && !self.in_doubt {
            // No try was appended, so the records may go under a new id.
            self.identity = None;
            self.batch = Batch::Due;
            false
        } else {
            error.is_final()
        };
        let may_be_appended = match error {
            Error::Refused(code) => matches!(
                code,
                ErrorCode::REQUEST_TIMED_OUT | ErrorCode::NOT_ENOUGH_REPLICAS_AFTER_APPEND
            ),
            _ => true,
        };
        self.in_doubt |= self.under_way && may_be_appended;
        self.under_way = false;
        if !is_final && self.failures <= self.retries {
            return nb::Error::WouldBlock;
        }
        if self.in_doubt || unknown_to_broker {
            // The next batch may not be numbered as if this one were not there, nor as if it were.
            self.identity = None;
        }
        self.clear();
        nb::Error::Other(error)
    }
}
