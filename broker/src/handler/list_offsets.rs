//! ListOffsets (key 2): a partition's start, end, largest timestamp, or the first offset from a time on.
//!
//! Answered in versions 1–10. 2 isolation level · 4 leader epochs (KIP-320) · 6 flexible · 7 max timestamp (KIP-734) · 8 local log
//! start (KIP-405) · 9 last tiered offset (KIP-1005) · 10 timeout. The end that clients are told is the high watermark; where more
//! is written than durable, a flush is begun and the answer waits for it, so that who wrote with acks=1 finds its records here.

use core::cell::Cell;

use skerry_core::api::list_offsets::{
    ListOffsetsPartition, ListOffsetsPartitionResponse, ListOffsetsRequest, ListOffsetsResponse, ListOffsetsTopic,
    ListOffsetsTopicResponse,
};
use skerry_core::error_code::ErrorCode;
use skerry_core::header::RequestHeader;
use skerry_core::time::Millis;
use skerry_core::wire::{Array, Full, Items};
use skerry_net::host::Host;

use super::{Context, Out, Outcome, Parking};
use crate::ids::PartitionIx;
use crate::log::{FoundOffset, OffsetSpec, ReadError};

/// What one partition's answer is.
#[derive(Clone, Copy, Debug)]
pub struct Listed {
    error: ErrorCode,
    found: FoundOffset,
}

impl Listed {
    const fn refused(error: ErrorCode) -> Self {
        Self {
            error,
            found: FoundOffset::NONE,
        }
    }
}

/// How long an answer waits for a flush before it is given as things are.
const FLUSH_WAIT: Millis = Millis(30_000);

/// Handles one request.
///
/// When full: more partitions than `skerry.limits.partitions` close the connection.
/// Cost: by timestamp one search of an index and of one batch, which is decompressed when it is compressed.
pub fn handle<H: Host>(
    cx: &mut Context<'_, H>,
    header: &RequestHeader<'_>,
    request: &ListOffsetsRequest<'_>,
    out: &mut Out<'_>,
) -> Outcome {
    if let Some(wait) = await_flush(cx, request) {
        return wait;
    }
    let partitions: usize = request.topics.iter().map(|t| t.partitions.len()).sum();
    let mut results = core::mem::take(&mut cx.state.listed);
    results.clear();
    let outcome = if partitions > results.capacity() {
        Outcome::Close("more partitions in one ListOffsets than there can be")
    } else {
        list_all(cx, header, request, &mut results, out)
    };
    cx.state.listed = results;
    outcome
}

/// Parks the request, once, while any partition that it asks for has bytes that a flush would make visible.
fn await_flush<H: Host>(cx: &mut Context<'_, H>, request: &ListOffsetsRequest<'_>) -> Option<Outcome> {
    let parking = cx.parked.unwrap_or(Parking {
        until: cx.now + FLUSH_WAIT,
        mark: cx.state.flusher.ticket(),
    });
    if cx.now >= parking.until || cx.state.flusher.is_done(parking.mark) {
        return None;
    }
    let mut waits = false;
    for topic in request.topics {
        let Some(topic_ix) = cx.state.topics.by_name(topic.name) else {
            continue;
        };
        for partition in topic.partitions {
            let Some(ix) = cx.state.topics.partition(topic_ix, partition.partition_index) else {
                continue;
            };
            let ends = cx.state.logs.ends(ix);
            if ends.high_watermark >= ends.written {
                continue;
            }
            waits |= cx.state.waiters.add(cx.peer.conn, ix);
            cx.state.flusher.want(ix);
        }
    }
    waits.then_some(Outcome::Park(parking))
}

fn list_all<H: Host>(
    cx: &mut Context<'_, H>,
    header: &RequestHeader<'_>,
    request: &ListOffsetsRequest<'_>,
    results: &mut Vec<Listed>,
    out: &mut Out<'_>,
) -> Outcome {
    for topic in request.topics {
        for partition in topic.partitions {
            match list(cx, &topic, &partition) {
                Ok(listed) => results.push(listed),
                Err(load) => return load,
            }
        }
    }
    let reply = Reply {
        request,
        results,
        topic: Cell::new((ListOffsetsTopic::default(), 0)),
    };
    out.reply(
        header,
        &ListOffsetsResponse {
            topics: Array::Items(&reply, 0),
            ..ListOffsetsResponse::default()
        },
    )
}

fn list<H: Host>(
    cx: &mut Context<'_, H>,
    topic: &ListOffsetsTopic<'_>,
    partition: &ListOffsetsPartition,
) -> Result<Listed, Outcome> {
    let topics = &cx.state.topics;
    let ix = topics
        .by_name(topic.name)
        .and_then(|t| topics.partition(t, partition.partition_index));
    let Some(ix) = ix else {
        return Ok(Listed::refused(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION));
    };
    if let Some(error) = cx.state.epoch_error(partition.current_leader_epoch) {
        return Ok(Listed::refused(error));
    }
    let Some(spec) = OffsetSpec::from_wire(partition.timestamp) else {
        return Ok(Listed::refused(ErrorCode::UNSUPPORTED_VERSION));
    };
    find(cx, ix, spec)
}

fn find<H: Host>(cx: &mut Context<'_, H>, ix: PartitionIx, spec: OffsetSpec) -> Result<Listed, Outcome> {
    match cx.state.logs.list_offset(cx.host, ix, spec) {
        Ok(found) => Ok(Listed {
            error: ErrorCode::NONE,
            found,
        }),
        Err(ReadError::Cold(range)) => Err(Outcome::Load(range)),
        Err(ReadError::Exhausted | ReadError::Storage) => Ok(Listed::refused(ErrorCode::KAFKA_STORAGE_ERROR)),
        Err(ReadError::OutOfRange) => Ok(Listed {
            error: ErrorCode::NONE,
            found: FoundOffset::NONE,
        }),
    }
}

struct Reply<'r, 'f> {
    request: &'r ListOffsetsRequest<'f>,
    results: &'r [Listed],
    topic: Cell<(ListOffsetsTopic<'f>, usize)>,
}

impl<'a, 'f: 'a> Items<'a, ListOffsetsTopicResponse<'a>> for Reply<'_, 'f> {
    fn count(&'a self, _: usize) -> usize {
        self.request.topics.len()
    }

    fn each(
        &'a self,
        _: usize,
        emit: &mut dyn FnMut(&ListOffsetsTopicResponse<'a>) -> Result<(), Full>,
    ) -> Result<(), Full> {
        let mut first = 0;
        for topic in self.request.topics {
            self.topic.set((topic, first));
            emit(&ListOffsetsTopicResponse {
                name: topic.name,
                partitions: Array::Items(self, 0),
            })?;
            first += topic.partitions.len();
        }
        Ok(())
    }
}

impl<'a, 'f: 'a> Items<'a, ListOffsetsPartitionResponse> for Reply<'_, 'f> {
    fn count(&'a self, _: usize) -> usize {
        self.topic.get().0.partitions.len()
    }

    fn each(
        &'a self,
        _: usize,
        emit: &mut dyn FnMut(&ListOffsetsPartitionResponse) -> Result<(), Full>,
    ) -> Result<(), Full> {
        let (topic, first) = self.topic.get();
        let results = self.results.get(first..).unwrap_or_default();
        for (partition, listed) in topic.partitions.iter().zip(results) {
            emit(&ListOffsetsPartitionResponse {
                partition_index: partition.partition_index,
                error_code: listed.error,
                timestamp: listed.found.timestamp.0,
                offset: listed.found.offset,
                leader_epoch: listed.found.leader_epoch,
            })?;
        }
        Ok(())
    }
}
