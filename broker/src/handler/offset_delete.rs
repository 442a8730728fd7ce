//! OffsetDelete (key 47): forgets what a group committed for partitions that nobody in it reads (KIP-496).
//!
//! Answered in version 0. Answered once written, as commits are.

use core::cell::Cell;

use skerry_core::api::offset_delete::{
    OffsetDeleteRequest, OffsetDeleteRequestTopic, OffsetDeleteResponse, OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
};
use skerry_core::error_code::ErrorCode;
use skerry_core::header::RequestHeader;
use skerry_core::wire::{Array, Full, Items};
use skerry_net::host::Host;

use super::{Context, Out, Outcome};
use crate::coordinator::Journal;

/// Handles one request.
///
/// When full: more partitions than there can be close the connection, as no client sends them.
pub fn handle<H: Host>(
    cx: &mut Context<'_, H>,
    header: &RequestHeader<'_>,
    request: &OffsetDeleteRequest<'_>,
    out: &mut Out<'_>,
) -> Outcome {
    let partitions = request.topics.iter().map(|topic| topic.partitions.len()).sum();
    let mut results = cx.state.coordinator.take_results();
    let outcome = if partitions > results.capacity() {
        Outcome::Close("more partitions in one OffsetDelete than there can be")
    } else {
        // The reply is no longer whatever the results are, so it has room before anything is done.
        results.resize(partitions, ErrorCode::NONE);
        match out.ensure(Out::measure(header, &Reply::over(request, &results).message())) {
            Err(no) => no.into(),
            Ok(()) => {
                results.clear();
                delete(cx, header, request, &mut results, out)
            }
        }
    };
    cx.state.coordinator.put_results(results);
    outcome
}

fn delete<H: Host>(
    cx: &mut Context<'_, H>,
    header: &RequestHeader<'_>,
    request: &OffsetDeleteRequest<'_>,
    results: &mut Vec<ErrorCode>,
    out: &mut Out<'_>,
) -> Outcome {
    let mut journal = Journal::new(cx.now, cx.wall, cx.host, &mut cx.state.topics);
    match cx.state.coordinator.delete_offsets(&mut journal, request, results) {
        Ok(mark) => {
            if let Some(mark) = mark {
                cx.state.metadata_written(mark, cx.now);
            }
            out.reply(header, &Reply::over(request, results).message())
        }
        Err(error) => out.reply(
            header,
            &OffsetDeleteResponse {
                error_code: error.into(),
                ..OffsetDeleteResponse::default()
            },
        ),
    }
}

struct Reply<'r, 'f> {
    request: &'r OffsetDeleteRequest<'f>,
    results: &'r [ErrorCode],
    /// The topic that is written, and where its results begin.
    topic: Cell<(OffsetDeleteRequestTopic<'f>, usize)>,
}

impl<'r, 'f> Reply<'r, 'f> {
    fn over(request: &'r OffsetDeleteRequest<'f>, results: &'r [ErrorCode]) -> Self {
        Self {
            request,
            results,
            topic: Cell::new((OffsetDeleteRequestTopic::default(), 0)),
        }
    }

    fn message(&self) -> OffsetDeleteResponse<'_> {
        OffsetDeleteResponse {
            topics: Array::Items(self, 0),
            ..OffsetDeleteResponse::default()
        }
    }
}

impl<'a> Items<'a, OffsetDeleteResponseTopic<'a>> for Reply<'_, '_> {
    fn count(&'a self, _: usize) -> usize {
        self.request.topics.len()
    }

    fn each(
        &'a self,
        _: usize,
        emit: &mut dyn FnMut(&OffsetDeleteResponseTopic<'a>) -> Result<(), Full>,
    ) -> Result<(), Full> {
        let mut first = 0;
        self.request.topics.iter().try_for_each(|topic| {
            self.topic.set((topic, first));
            first += topic.partitions.len();
            emit(&OffsetDeleteResponseTopic {
                name: topic.name,
                partitions: Array::Items(self, 0),
            })
        })
    }
}

impl<'a> Items<'a, OffsetDeleteResponsePartition> for Reply<'_, '_> {
    fn count(&'a self, _: usize) -> usize {
        self.topic.get().0.partitions.len()
    }

    fn each(
        &'a self,
        _: usize,
        emit: &mut dyn FnMut(&OffsetDeleteResponsePartition) -> Result<(), Full>,
    ) -> Result<(), Full> {
        let (topic, first) = self.topic.get();
        let results = self.results.get(first..).unwrap_or_default();
        topic
            .partitions
            .iter()
            .zip(results)
            .try_for_each(|(partition, error_code)| {
                emit(&OffsetDeleteResponsePartition {
                    partition_index: partition.partition_index,
                    error_code: *error_code,
                })
            })
    }
}
