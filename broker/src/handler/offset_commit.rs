//! OffsetCommit (key 8): a group has read so far.
//!
//! Answered in versions 2–9. 5 retention time gone · 6 leader epochs (KIP-320) · 7 static members (KIP-345) · 8 flexible · 9 an absent
//! group is GROUP_ID_NOT_FOUND (KIP-848). Answered once written; under `skerry.flush=every` once durable. Left out: the retention time
//! of versions 2–4, since `offsets.retention.minutes` alone decides.

use core::cell::Cell;

use skerry_core::api::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestTopic, OffsetCommitResponse, OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
};
use skerry_core::error_code::ErrorCode;
use skerry_core::header::RequestHeader;
use skerry_core::time::Millis;
use skerry_core::wire::{Array, Full, Items, Message, Reader, SliceWriter};
use skerry_net::host::Host;

use super::{Context, Out, Outcome};
use crate::config::Flush;
use crate::coordinator::Journal;

/// How long a commit may wait to be durable: Kafka's `offsets.commit.timeout.ms`.
const DURABLE_WAIT: Millis = Millis(5_000);

/// Handles one request.
///
/// When full: more partitions than there can be close the connection, as no client sends them; no room for a held reply leaves the
/// request where it is until a flush has freed some; for offsets and notes see [`crate::coordinator::Offsets`].
/// Cost: two look-ups by hash for each partition, one write for all that changed, no allocation.
pub fn handle<H: Host>(
    cx: &mut Context<'_, H>,
    header: &RequestHeader<'_>,
    request: &OffsetCommitRequest<'_>,
    out: &mut Out<'_>,
) -> Outcome {
    let partitions = request.topics.iter().map(|topic| topic.partitions.len()).sum();
    let mut results = cx.state.coordinator.take_results();
    let outcome = if partitions > results.capacity() {
        Outcome::Close("more partitions in one OffsetCommit than there can be")
    } else if cx.state.config.flush == Flush::Every && !cx.state.holds.room(1) {
        Outcome::Busy
    } else {
        // The reply is as long whatever the results are, so it has room before anything is done.
        results.resize(partitions, ErrorCode::NONE);
        match out.ensure(Out::measure(header, &Reply::over(request, &results).message())) {
            Err(no) => no.into(),
            Ok(()) => {
                results.clear();
                commit(cx, header, request, &mut results, out)
            }
        }
    };
    cx.state.coordinator.put_results(results);
    outcome
}

fn commit<H: Host>(
    cx: &mut Context<'_, H>,
    header: &RequestHeader<'_>,
    request: &OffsetCommitRequest<'_>,
    results: &mut Vec<ErrorCode>,
    out: &mut Out<'_>,
) -> Outcome {
    let mut journal = Journal::new(cx.now, cx.wall, cx.host, &mut cx.state.topics);
    let mark = cx
        .state
        .coordinator
        .commit(&mut journal, header.version, request, results);
    if let Some(mark) = mark {
        cx.state.metadata_written(mark, cx.now);
    }
    let outcome = out.reply(header, &Reply::over(request, results).message());
    let good = results.iter().any(|code| code.is_none());
    if cx.state.config.flush != Flush::Every || !good || !cx.state.metadata_is_dirty() {
        return outcome;
    }
    // What was committed before and is the same now may also still be on its way to the disk.
    match cx.state.hold_for_metadata(cx.peer.conn, cx.now, cx.now + DURABLE_WAIT) {
        Some(hold) => Outcome::Held(hold),
        None => outcome,
    }
}

/// Changes a reply that is held: its commits did not become durable. Clients look for the coordinator again and commit again. False for
/// a reply that is longer than `scratch`: it stands as it is and must not leave.
#[must_use]
pub fn fail(reply: &mut [u8], scratch: &mut [u8], version: i16) -> bool {
    let Some(copy) = scratch.get_mut(..reply.len()) else {
        return false;
    };
    copy.copy_from_slice(reply);
    let body_at = 4 + 4 + usize::from(OffsetCommitResponse::FLEXIBLE.contains(version));
    let mut reader = Reader::new(copy.get(body_at..).unwrap_or_default());
    let Ok(old) = OffsetCommitResponse::decode(&mut reader, version) else {
        return false;
    };
    let failed = Failed {
        old: &old,
        topic: Cell::new(OffsetCommitResponseTopic::default()),
    };
    let message = OffsetCommitResponse {
        topics: Array::Items(&failed, 0),
        ..old
    };
    let mut writer = SliceWriter::new(reply.get_mut(body_at..).unwrap_or_default());
    // It is as long as the one that it replaces.
    message.encode(&mut writer, version).is_ok()
}

struct Reply<'r, 'f> {
    request: &'r OffsetCommitRequest<'f>,
    results: &'r [ErrorCode],
    /// The topic that is written, and where its results begin.
    topic: Cell<(OffsetCommitRequestTopic<'f>, usize)>,
}

impl<'r, 'f> Reply<'r, 'f> {
    fn over(request: &'r OffsetCommitRequest<'f>, results: &'r [ErrorCode]) -> Self {
        Self {
            request,
            results,
            topic: Cell::new((OffsetCommitRequestTopic::default(), 0)),
        }
    }

    fn message(&self) -> OffsetCommitResponse<'_> {
        OffsetCommitResponse {
            topics: Array::Items(self, 0),
            ..OffsetCommitResponse::default()
        }
    }
}

impl<'a> Items<'a, OffsetCommitResponseTopic<'a>> for Reply<'_, '_> {
    fn count(&'a self, _: usize) -> usize {
        self.request.topics.len()
    }

    fn each(
        &'a self,
        _: usize,
        emit: &mut dyn FnMut(&OffsetCommitResponseTopic<'a>) -> Result<(), Full>,
    ) -> Result<(), Full> {
        let mut first = 0;
        self.request.topics.iter().try_for_each(|topic| {
            self.topic.set((topic, first));
            first += topic.partitions.len();
            emit(&OffsetCommitResponseTopic {
                name: topic.name,
                partitions: Array::Items(self, 0),
            })
        })
    }
}

impl<'a> Items<'a, OffsetCommitResponsePartition> for Reply<'_, '_> {
    fn count(&'a self, _: usize) -> usize {
        self.topic.get().0.partitions.len()
    }

    fn each(
        &'a self,
        _: usize,
        emit: &mut dyn FnMut(&OffsetCommitResponsePartition) -> Result<(), Full>,
    ) -> Result<(), Full> {
        let (topic, first) = self.topic.get();
        let results = self.results.get(first..).unwrap_or_default();
        topic
            .partitions
            .iter()
            .zip(results)
            .try_for_each(|(partition, error_code)| {
                emit(&OffsetCommitResponsePartition {
                    partition_index: partition.partition_index,
                    error_code: *error_code,
                })
            })
    }
}

/// A reply whose good results are good no longer.
struct Failed<'o> {
    old: &'o OffsetCommitResponse<'o>,
    topic: Cell<OffsetCommitResponseTopic<'o>>,
}

impl<'a> Items<'a, OffsetCommitResponseTopic<'a>> for Failed<'_> {
    fn count(&'a self, _: usize) -> usize {
        self.old.topics.len()
    }

    fn each(
        &'a self,
        _: usize,
        emit: &mut dyn FnMut(&OffsetCommitResponseTopic<'a>) -> Result<(), Full>,
    ) -> Result<(), Full> {
        self.old.topics.iter().try_for_each(|topic| {
            self.topic.set(topic);
            emit(&OffsetCommitResponseTopic {
                name: topic.name,
                partitions: Array::Items(self, 0),
            })
        })
    }
}

impl<'a> Items<'a, OffsetCommitResponsePartition> for Failed<'_> {
    fn count(&'a self, _: usize) -> usize {
        self.topic.get().partitions.len()
    }

    fn each(
        &'a self,
        _: usize,
        emit: &mut dyn FnMut(&OffsetCommitResponsePartition) -> Result<(), Full>,
    ) -> Result<(), Full> {
        self.topic.get().partitions.iter().try_for_each(|partition| {
            let failed = OffsetCommitResponsePartition {
                error_code: ErrorCode::COORDINATOR_NOT_AVAILABLE,
                ..partition
            };
            emit(if partition.error_code.is_none() {
                &failed
            } else {
                &partition
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_commit_is_told_in_place() {
        let partitions =
            [ErrorCode::NONE, ErrorCode::OFFSET_METADATA_TOO_LARGE].map(|error_code| OffsetCommitResponsePartition {
                partition_index: 7,
                error_code,
            });
        let topic = OffsetCommitResponseTopic {
            name: "t",
            partitions: Array::Slice(&partitions),
        };
        let good = OffsetCommitResponse {
            topics: Array::one(&topic),
            ..OffsetCommitResponse::default()
        };
        for version in [2, 3, 8, 9] {
            let body_at = if version >= 8 { 9 } else { 8 };
            let mut reply = [0; 100];
            let mut writer = SliceWriter::new(&mut reply[body_at..]);
            good.encode(&mut writer, version).unwrap();
            let bytes = body_at + good.encoded_len(version);
            assert!(
                !fail(&mut reply[..bytes], &mut [0; 20], version),
                "no room to change it"
            );
            assert!(fail(&mut reply[..bytes], &mut [0; 100], version));
            let mut reader = Reader::new(&reply[body_at..bytes]);
            let told = OffsetCommitResponse::decode(&mut reader, version).unwrap();
            let codes: Vec<_> = told
                .topics
                .iter()
                .flat_map(|t| t.partitions.iter().map(|p| p.error_code))
                .collect();
            assert_eq!(
                codes,
                [
                    ErrorCode::COORDINATOR_NOT_AVAILABLE,
                    ErrorCode::OFFSET_METADATA_TOO_LARGE
                ]
            );
        }
    }
}
