//! Fetch (key 1): where the wanted bytes lie in the log files; the bytes themselves are sent from there, but for a few, which go
//! with the reply.
//!
//! Answered in versions 4–17. 5 log start offset · 7 sessions (KIP-227), answered with session id 0: every fetch is a full one ·
//! 9 current leader epoch (KIP-320) · 11 rack · 12 flexible · 13 topic ids (KIP-516) · 15 replica state · 16 node endpoints (KIP-951)
//! · 17 directory ids. Left out: sessions, followers, diverging epochs.

use core::cell::Cell;
use std::io::IoSliceMut;

use skerry_core::api::fetch::{
    FetchPartition, FetchRequest, FetchResponse, FetchTopic, FetchableTopicResponse, PartitionData,
};
use skerry_core::error_code::ErrorCode;
use skerry_core::header::RequestHeader;
use skerry_core::time::Millis;
use skerry_core::wire::{Array, Full, Items, Records};
use skerry_net::host::{Disk, Host};

use super::{Context, Out, Outcome, Parking};
use crate::ids::PartitionIx;
use crate::log::{ReadError, ReadRange};

/// What one partition has to give.
#[derive(Clone, Copy, Debug)]
pub struct Fetched {
    partition: Option<PartitionIx>,
    error: ErrorCode,
    high_watermark: i64,
    log_start: i64,
    bytes: u32,
    /// Where in [`Room::inlined`] the bytes begin, when they go with the reply.
    inlined: Option<usize>,
}

/// Room for the results of one fetch.
#[derive(Debug, Default)]
pub struct Room {
    results: Vec<Fetched>,
    /// Records that go with the reply.
    inlined: Vec<u8>,
    /// Bytes of records, wherever they are.
    total: u64,
}

impl Room {
    /// For so many partitions, and for so many bytes of records that go with the reply.
    #[must_use]
    pub fn new(partitions: usize, inlined: usize) -> Self {
        Self {
            results: Vec::with_capacity(partitions),
            inlined: Vec::with_capacity(inlined),
            total: 0,
        }
    }

    /// Reads a short range that is in memory, so that it leaves in one call and one packet with the reply: to send it from the file
    /// takes four. None when it does not fit or must be waited for.
    fn inline<D: Disk>(&mut self, disk: &mut D, range: &ReadRange) -> Option<usize> {
        let (start, bytes) = (self.inlined.len(), range.bytes as usize);
        if bytes > self.inlined.capacity() - start {
            return None;
        }
        self.inlined.resize(start + bytes, 0);
        let place = self.inlined.get_mut(start..).unwrap_or_default();
        match disk.read_cached(range.file, range.position, &mut [IoSliceMut::new(place)]) {
            Ok(read) if read == bytes => Some(start),
            _ => {
                self.inlined.truncate(start);
                None
            }
        }
    }
}

impl Fetched {
    const fn refused(error: ErrorCode) -> Self {
        Self {
            partition: None,
            error,
            high_watermark: -1,
            log_start: -1,
            bytes: 0,
            inlined: None,
        }
    }
}

/// Handles one request.
///
/// When full: more than [`crate::outbox::RANGES_MAX`] partitions with data, or no open file free: the further ones answer empty
/// and are asked again by the client; no place to wait: answered at once with what there is.
/// Cost: a lookup and one log search for each partition, no allocation; no record byte touched but of short answers.
pub fn handle<H: Host>(
    cx: &mut Context<'_, H>,
    header: &RequestHeader<'_>,
    request: &FetchRequest<'_>,
    out: &mut Out<'_>,
) -> Outcome {
    let partitions: usize = request.topics.iter().map(|t| t.partitions.len()).sum();
    let mut room = core::mem::take(&mut cx.state.fetched);
    room.results.clear();
    room.inlined.clear();
    room.total = 0;
    let outcome = if partitions > room.results.capacity() {
        Outcome::Close("more partitions in one fetch than there can be")
    } else {
        fetch(cx, header, request, &mut room, out)
    };
    // What did not go out with the reply is given back.
    if !matches!(outcome, Outcome::Reply) {
        for range in out.take_ranges() {
            cx.state.logs.release(cx.host, range);
        }
    }
    cx.state.fetched = room;
    outcome
}

fn fetch<H: Host>(
    cx: &mut Context<'_, H>,
    header: &RequestHeader<'_>,
    request: &FetchRequest<'_>,
    room: &mut Room,
    out: &mut Out<'_>,
) -> Outcome {
    if request.session_id != 0 && request.session_epoch > 0 {
        let none = Reply::over(request, room);
        let mut message = none.message();
        message.responses = Array::Slice(&[]);
        message.error_code = ErrorCode::FETCH_SESSION_ID_NOT_FOUND;
        return out.reply(header, &message);
    }
    let mut budget = request
        .max_bytes
        .max(0)
        .unsigned_abs()
        .min(cx.state.config.fetch_bytes_max);
    // More than a reply may have is never there: as in Kafka, it is not waited for.
    let wanted_bytes = request.min_bytes.max(0).unsigned_abs().min(budget);
    let mut at_once = false;
    for topic in request.topics {
        for wanted in topic.partitions {
            match read(cx, header, &topic, &wanted, budget, room, out) {
                Ok(found) => {
                    at_once |= found.error != ErrorCode::NONE;
                    room.total += u64::from(found.bytes);
                    budget = budget.saturating_sub(found.bytes);
                    room.results.push(found);
                }
                Err(load) => return load,
            }
        }
    }
    let until = cx
        .parked
        .map_or(cx.now + Millis::from_wire(request.max_wait_ms), |p| p.until);
    let enough = room.total >= u64::from(wanted_bytes);
    if !enough && !at_once && cx.now < until && park(cx, &room.results) {
        return Outcome::Park(Parking { until, mark: 0 });
    }
    out.reply(header, &Reply::over(request, room).message())
}

/// Waits for more on every partition asked for. False when there is no place to wait.
fn park<H>(cx: &mut Context<'_, H>, results: &[Fetched]) -> bool {
    if results.is_empty() || !cx.state.waiters.room(results.len()) {
        return false;
    }
    for partition in results.iter().filter_map(|r| r.partition) {
        cx.state.waiters.add(cx.peer.conn, partition);
        let ends = cx.state.logs.ends(partition);
        if ends.high_watermark < ends.written {
            cx.state.flusher.want(partition);
        }
    }
    true
}

fn read<H: Host>(
    cx: &mut Context<'_, H>,
    header: &RequestHeader<'_>,
    topic: &FetchTopic<'_>,
    wanted: &FetchPartition,
    budget: u32,
    room: &mut Room,
    out: &mut Out<'_>,
) -> Result<Fetched, Outcome> {
    let by_id = header.version >= 13;
    let topics = &cx.state.topics;
    let found = if by_id {
        topics.by_id(topic.topic_id)
    } else {
        topics.by_name(topic.topic)
    };
    let Some(topic_ix) = found else {
        let unknown = if by_id {
            ErrorCode::UNKNOWN_TOPIC_ID
        } else {
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
        };
        return Ok(Fetched::refused(unknown));
    };
    let Some(ix) = topics.partition(topic_ix, wanted.partition) else {
        return Ok(Fetched::refused(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION));
    };
    if let Some(error) = cx.state.epoch_error(wanted.current_leader_epoch) {
        return Ok(Fetched::refused(error));
    }
    let limit = wanted.partition_max_bytes.max(0).unsigned_abs().min(budget);
    let range = match cx
        .state
        .logs
        .read(cx.host, ix, wanted.fetch_offset, limit, room.total == 0)
    {
        Ok(range) => range,
        Err(ReadError::Exhausted) => None,
        Err(ReadError::Cold(range)) => return Err(Outcome::Load(range)),
        Err(ReadError::OutOfRange) => return Ok(Fetched::refused(ErrorCode::OFFSET_OUT_OF_RANGE)),
        Err(ReadError::Storage) => return Ok(Fetched::refused(ErrorCode::KAFKA_STORAGE_ERROR)),
    };
    let (bytes, inlined) = range.map_or((0, None), |range| keep(cx, range, room, out));
    let ends = cx.state.logs.ends(ix);
    Ok(Fetched {
        partition: Some(ix),
        error: ErrorCode::NONE,
        high_watermark: ends.high_watermark,
        log_start: ends.log_start,
        bytes,
        inlined,
    })
}

/// Takes the range's bytes into the reply, or adds the range to it: how many bytes, and where they were taken to. None when the reply
/// can hold no more ranges.
fn keep<H: Host>(
    cx: &mut Context<'_, H>,
    range: ReadRange,
    room: &mut Room,
    out: &mut Out<'_>,
) -> (u32, Option<usize>) {
    let inlined = room.inline(cx.host, &range);
    let (bytes, unused) = match inlined {
        Some(_) => (range.bytes, Some(range)),
        None => match out.push_range(range) {
            Ok(()) => (range.bytes, None),
            Err(range) => (0, Some(range)),
        },
    };
    if let Some(range) = unused {
        cx.state.logs.release(cx.host, range);
    }
    (bytes, inlined)
}

struct Reply<'r, 'f> {
    request: &'r FetchRequest<'f>,
    room: &'r Room,
    topic: Cell<(FetchTopic<'f>, usize)>,
}

impl<'r, 'f> Reply<'r, 'f> {
    fn over(request: &'r FetchRequest<'f>, room: &'r Room) -> Self {
        Self {
            request,
            room,
            topic: Cell::new((FetchTopic::default(), 0)),
        }
    }

    fn message(&'r self) -> FetchResponse<'r>
    where
        'f: 'r,
    {
        FetchResponse {
            responses: Array::Items(self, 0),
            ..FetchResponse::default()
        }
    }
}

impl<'a, 'f: 'a> Items<'a, FetchableTopicResponse<'a>> for Reply<'_, 'f> {
    fn count(&'a self, _: usize) -> usize {
        self.request.topics.len()
    }

    fn each(
        &'a self,
        _: usize,
        emit: &mut dyn FnMut(&FetchableTopicResponse<'a>) -> Result<(), Full>,
    ) -> Result<(), Full> {
        let mut first = 0;
        for topic in self.request.topics {
            self.topic.set((topic, first));
            emit(&FetchableTopicResponse {
                topic: topic.topic,
                topic_id: topic.topic_id,
                partitions: Array::Items(self, 0),
            })?;
            first += topic.partitions.len();
        }
        Ok(())
    }
}

impl<'a, 'f: 'a> Items<'a, PartitionData<'a>> for Reply<'_, 'f> {
    fn count(&'a self, _: usize) -> usize {
        self.topic.get().0.partitions.len()
    }

    fn each(&'a self, _: usize, emit: &mut dyn FnMut(&PartitionData<'a>) -> Result<(), Full>) -> Result<(), Full> {
        let (topic, first) = self.topic.get();
        let results = self.room.results.get(first..).unwrap_or_default();
        for (wanted, found) in topic.partitions.iter().zip(results) {
            emit(&PartitionData {
                partition_index: wanted.partition,
                error_code: found.error,
                high_watermark: found.high_watermark,
                last_stable_offset: found.high_watermark,
                log_start_offset: found.log_start,
                aborted_transactions: Array::Null,
                preferred_read_replica: -1,
                records: match found.inlined {
                    _ if found.bytes == 0 => Records::Bytes(&[]),
                    None => Records::Elsewhere(found.bytes),
                    Some(start) => Records::Bytes(
                        self.room
                            .inlined
                            .get(start..start + found.bytes as usize)
                            .unwrap_or_default(),
                    ),
                },
                ..PartitionData::default()
            })?;
        }
        Ok(())
    }
}
