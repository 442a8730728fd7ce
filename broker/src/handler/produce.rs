//! Produce (key 0): check each batch, append it, answer in full, and hold the answer until the disk has it where that was asked.
//!
//! Answered in versions 3–13; 0–2 are listed (librdkafka needs it) and closed on, since there is no reply to encode. 3 record
//! format v2 · 5 log start offset · 7 zstd (KIP-110) · 8 record errors (KIP-467) · 9 flexible · 10 current leader (KIP-951) · 13
//! topic ids (KIP-516). Left out: transactions, so a transactional id or batch is refused; `record_errors`, as the message says what is
//! wrong with the batch.

use core::cell::Cell;

use skerry_core::api::produce::{
    PartitionProduceData, PartitionProduceResponse, ProduceRequest, ProduceResponse, TopicProduceData,
    TopicProduceResponse,
};
use skerry_core::error_code::ErrorCode;
use skerry_core::header::RequestHeader;
use skerry_core::record::{BatchError, Compression, Rules, validate};
use skerry_core::time::Millis;
use skerry_core::wire::{Array, Full, Items, Message, Reader, Records, SliceWriter};
use skerry_net::host::Host;

use super::{Context, Out, Outcome};
use crate::config::{CleanupPolicy, Flush};
use crate::crc;
use crate::ids::PartitionIx;
use crate::log::{AppendError, AppendParams};
use crate::state::{CLOCK_FLOOR, State};
use crate::unpack::UnpackError;

/// What became of one partition's batch.
#[derive(Clone, Copy, Debug)]
pub struct Produced {
    error: ErrorCode,
    base_offset: i64,
    log_append_time: i64,
    log_start: i64,
    why: Option<BatchError>,
    wait: Option<(PartitionIx, i64)>,
}

impl Produced {
    const fn refused(error: ErrorCode) -> Self {
        Self {
            error,
            base_offset: -1,
            log_append_time: -1,
            log_start: -1,
            why: None,
            wait: None,
        }
    }

    /// As long as an answer can be.
    const LONGEST: Self = Self {
        why: Some(BatchError::Magic(0)),
        ..Self::refused(ErrorCode::NONE)
    };

    fn message<'a>(&self, index: i32) -> PartitionProduceResponse<'a> {
        PartitionProduceResponse {
            index,
            error_code: self.error,
            base_offset: self.base_offset,
            log_append_time_ms: self.log_append_time,
            log_start_offset: self.log_start,
            error_message: self.why.map(BatchError::message),
            ..PartitionProduceResponse::default()
        }
    }
}

/// Handles one request.
///
/// When full: more partitions than `skerry.limits.partitions` in one request close the connection, as no client sends them; no
/// room for a held reply leaves the request where it is until a flush has freed some.
/// Cost: one pass of CRC and one gathered write for each batch, no allocation.
pub fn handle<H: Host>(
    cx: &mut Context<'_, H>,
    header: &RequestHeader<'_>,
    request: &ProduceRequest<'_>,
    out: &mut Out<'_>,
) -> Outcome {
    let partitions: usize = request.topic_data.iter().map(|t| t.partition_data.len()).sum();
    let waits = match cx.state.config.flush {
        Flush::AcksAll => request.acks == -1,
        Flush::Every => request.acks != 0,
        Flush::Interval | Flush::Never => false,
    };
    let mut results = core::mem::take(&mut cx.state.produced);
    results.clear();
    let outcome = if partitions > results.capacity() {
        Outcome::Close("more partitions in one produce than there can be")
    } else if waits && !cx.state.holds.room(partitions) {
        Outcome::Busy
    } else {
        // However the partitions fare, the reply has room before anything is written.
        results.resize(partitions, Produced::LONGEST);
        let needed = Out::measure(header, &Reply::over(request, &results).message());
        match out.ensure(needed) {
            Err(no) => no.into(),
            Ok(()) => {
                results.clear();
                append_all(cx, header, request, waits, &mut results);
                answer(cx, header, request, &results, out)
            }
        }
    };
    cx.state.produced = results;
    outcome
}

fn append_all<H: Host>(
    cx: &mut Context<'_, H>,
    header: &RequestHeader<'_>,
    request: &ProduceRequest<'_>,
    waits: bool,
    results: &mut Vec<Produced>,
) {
    for topic in request.topic_data {
        for data in topic.partition_data {
            let result = append(cx, header, request, &topic, &data, waits).unwrap_or_else(Produced::refused);
            results.push(result);
        }
    }
}

fn append<H: Host>(
    cx: &mut Context<'_, H>,
    header: &RequestHeader<'_>,
    request: &ProduceRequest<'_>,
    topic: &TopicProduceData<'_>,
    data: &PartitionProduceData<'_>,
    waits: bool,
) -> Result<Produced, ErrorCode> {
    if !matches!(request.acks, -1..=1) {
        return Err(ErrorCode::INVALID_REQUIRED_ACKS);
    }
    if request.transactional_id.is_some() {
        return Err(ErrorCode::INVALID_REQUEST);
    }
    let State {
        topics,
        logs,
        flusher,
        waiters,
        moved,
        config,
        ..
    } = &mut *cx.state;
    let by_id = header.version >= 13;
    let found = if by_id {
        topics.by_id(topic.topic_id)
    } else {
        topics.by_name(topic.name)
    };
    let unknown = if by_id {
        ErrorCode::UNKNOWN_TOPIC_ID
    } else {
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
    };
    let topic_ix = found.ok_or(unknown)?;
    let topic = topics.get(topic_ix).ok_or(unknown)?;
    let ix = topics
        .partition(topic_ix, data.index)
        .ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
    let Records::Bytes(records) = data.records else {
        return Err(ErrorCode::INVALID_RECORD);
    };
    let rules = Rules {
        batch_bytes_max: topic.config.max_message_bytes(&config.topic),
        produce_version: header.version,
        transactions: false,
        keys_required: topic.config.cleanup_policy(&config.topic) != CleanupPolicy::Delete,
        timestamps: topic.config.timestamps(&config.topic, cx.wall, CLOCK_FLOOR),
    };
    let batch = match validate(records, &rules, crc::CRC32C) {
        Ok(batch) => batch,
        Err(why) => {
            return Ok(Produced {
                why: Some(why),
                ..Produced::refused(why.code())
            });
        }
    };
    if rules.keys_required && batch.header().attributes.compression() != Ok(Compression::None) {
        let index = match logs.keyless_record(&batch) {
            Ok(index) => index,
            Err(UnpackError::TooLarge) => return Err(ErrorCode::MESSAGE_TOO_LARGE),
            Err(UnpackError::Malformed | UnpackError::Stopped) => return Err(ErrorCode::CORRUPT_MESSAGE),
        };
        if let Some(why) = index.map(|index| BatchError::NoKey { index }) {
            return Ok(Produced {
                why: Some(why),
                ..Produced::refused(why.code())
            });
        }
    }
    let params = AppendParams {
        now: cx.now,
        wall: cx.wall,
        leader_epoch: topics.leader_epoch(),
    };
    let appended = logs.append(cx.host, ix, &batch, &params).map_err(|e| match e {
        AppendError::Storage => ErrorCode::KAFKA_STORAGE_ERROR,
        AppendError::OutOfOrderSequence => ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER,
        AppendError::InvalidProducerEpoch => ErrorCode::INVALID_PRODUCER_EPOCH,
        AppendError::DuplicateSequence => ErrorCode::DUPLICATE_SEQUENCE_NUMBER,
    })?;
    let ends = logs.ends(ix);
    let wait = (waits && ends.durable < appended.next_offset).then_some((ix, appended.next_offset));
    if wait.is_some() || (waiters.is_waited_on(ix) && ends.high_watermark < ends.written) {
        flusher.want(ix);
    }
    if ends.high_watermark >= appended.next_offset {
        moved.push(ix.0);
    }
    Ok(Produced {
        error: ErrorCode::NONE,
        base_offset: appended.base_offset,
        log_append_time: appended.log_append_time.0,
        log_start: appended.log_start,
        why: None,
        wait,
    })
}

fn answer<H: Host>(
    cx: &mut Context<'_, H>,
    header: &RequestHeader<'_>,
    request: &ProduceRequest<'_>,
    results: &[Produced],
    out: &mut Out<'_>,
) -> Outcome {
    if request.acks == 0 {
        // Nobody reads an answer: as Kafka does, an error is told by closing.
        return match results.iter().find(|r| r.error != ErrorCode::NONE) {
            None => Outcome::NoReply,
            Some(_) => Outcome::Close("a produce with acks=0 failed"),
        };
    }
    let outcome = out.reply(header, &Reply::over(request, results).message());
    if !results.iter().any(|r| r.wait.is_some()) {
        return outcome;
    }
    let deadline = cx.now + Millis::from_wire(request.timeout_ms);
    let Some(hold) = cx.state.holds.hold(cx.peer.conn, deadline) else {
        return outcome;
    };
    for (ordinal, result) in results.iter().enumerate() {
        if let Some((ix, end)) = result.wait {
            cx.state.holds.wait(hold, ix, ordinal as u32, end);
        }
    }
    Outcome::Held(hold)
}

/// The reply over a request and its results.
struct Reply<'r, 'f> {
    request: &'r ProduceRequest<'f>,
    results: &'r [Produced],
    topic: Cell<(TopicProduceData<'f>, usize)>,
}

impl<'r, 'f> Reply<'r, 'f> {
    fn over(request: &'r ProduceRequest<'f>, results: &'r [Produced]) -> Self {
        Self {
            request,
            results,
            topic: Cell::new((TopicProduceData::default(), 0)),
        }
    }

    fn message(&'r self) -> ProduceResponse<'r>
    where
        'f: 'r,
    {
        ProduceResponse {
            responses: Array::Items(self, 0),
            ..ProduceResponse::default()
        }
    }
}

impl<'a, 'f: 'a> Items<'a, TopicProduceResponse<'a>> for Reply<'_, 'f> {
    fn count(&'a self, _: usize) -> usize {
        self.request.topic_data.len()
    }

    fn each(
        &'a self,
        _: usize,
        emit: &mut dyn FnMut(&TopicProduceResponse<'a>) -> Result<(), Full>,
    ) -> Result<(), Full> {
        let mut first = 0;
        for topic in self.request.topic_data {
            self.topic.set((topic, first));
            emit(&TopicProduceResponse {
                name: topic.name,
                topic_id: topic.topic_id,
                partition_responses: Array::Items(self, 0),
            })?;
            first += topic.partition_data.len();
        }
        Ok(())
    }
}

impl<'a, 'f: 'a> Items<'a, PartitionProduceResponse<'a>> for Reply<'_, 'f> {
    fn count(&'a self, _: usize) -> usize {
        self.topic.get().0.partition_data.len()
    }

    fn each(
        &'a self,
        _: usize,
        emit: &mut dyn FnMut(&PartitionProduceResponse<'a>) -> Result<(), Full>,
    ) -> Result<(), Full> {
        let (topic, first) = self.topic.get();
        let results = self.results.get(first..).unwrap_or_default();
        for (data, result) in topic.partition_data.iter().zip(results) {
            emit(&result.message(data.index))?;
        }
        Ok(())
    }
}

/// Changes one partition's answer in an encoded reply that has not left (length prefix included) to `error`: what it waited for
/// will not come. The reply keeps its length.
///
/// `scratch` takes a copy while the reply is written anew. False for a reply that is longer: it stands as it is and must not leave.
#[must_use]
pub fn fail_partition(reply: &mut [u8], scratch: &mut [u8], version: i16, ordinal: u32, error: ErrorCode) -> bool {
    let Some(copy) = scratch.get_mut(..reply.len()) else {
        return false;
    };
    copy.copy_from_slice(reply);
    let body_at = 4 + 4 + usize::from(ProduceResponse::FLEXIBLE.contains(version));
    let mut reader = Reader::new(copy.get(body_at..).unwrap_or_default());
    let Ok(old) = ProduceResponse::decode(&mut reader, version) else {
        return false;
    };
    let changed = Changed {
        old: &old,
        ordinal: ordinal as usize,
        error,
        topic: Cell::new((TopicProduceResponse::default(), 0)),
    };
    let message = ProduceResponse {
        responses: Array::Items(&changed, 0),
        ..old
    };
    let mut writer = SliceWriter::new(reply.get_mut(body_at..).unwrap_or_default());
    message.encode(&mut writer, version).is_ok()
}

struct Changed<'r, 'f> {
    old: &'r ProduceResponse<'f>,
    ordinal: usize,
    error: ErrorCode,
    topic: Cell<(TopicProduceResponse<'f>, usize)>,
}

impl<'a, 'f: 'a> Items<'a, TopicProduceResponse<'a>> for Changed<'_, 'f> {
    fn count(&'a self, _: usize) -> usize {
        self.old.responses.len()
    }

    fn each(
        &'a self,
        _: usize,
        emit: &mut dyn FnMut(&TopicProduceResponse<'a>) -> Result<(), Full>,
    ) -> Result<(), Full> {
        let mut first = 0;
        for topic in self.old.responses {
            self.topic.set((topic, first));
            emit(&TopicProduceResponse {
                name: topic.name,
                topic_id: topic.topic_id,
                partition_responses: Array::Items(self, 0),
            })?;
            first += topic.partition_responses.len();
        }
        Ok(())
    }
}

impl<'a, 'f: 'a> Items<'a, PartitionProduceResponse<'a>> for Changed<'_, 'f> {
    fn count(&'a self, _: usize) -> usize {
        self.topic.get().0.partition_responses.len()
    }

    fn each(
        &'a self,
        _: usize,
        emit: &mut dyn FnMut(&PartitionProduceResponse<'a>) -> Result<(), Full>,
    ) -> Result<(), Full> {
        let (topic, first) = self.topic.get();
        for (i, partition) in topic.partition_responses.iter().enumerate() {
            let failed = Produced::refused(self.error).message(partition.index);
            // Only a partition without an error waits, so the failed one had no message and keeps its length.
            let kept = PartitionProduceResponse {
                index: partition.index,
                error_code: partition.error_code,
                base_offset: partition.base_offset,
                log_append_time_ms: partition.log_append_time_ms,
                log_start_offset: partition.log_start_offset,
                error_message: partition.error_message,
                ..PartitionProduceResponse::default()
            };
            emit(if first + i == self.ordinal { &failed } else { &kept })?;
        }
        Ok(())
    }
}
