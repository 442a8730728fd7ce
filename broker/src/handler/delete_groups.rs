//! DeleteGroups (key 42): forgets empty groups and their offsets.
//!
//! Answered in versions 0–2. 2 flexible. Answered once written, as commits are.

use skerry_core::api::delete_groups::{DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse};
use skerry_core::error_code::ErrorCode;
use skerry_core::header::RequestHeader;
use skerry_core::wire::{Array, Full, Items};
use skerry_net::host::Host;

use super::{Context, Out, Outcome};
use crate::coordinator::Journal;

/// Handles one request.
///
/// When full: more groups than there can be close the connection, as no client sends them.
pub fn handle<H: Host>(
    cx: &mut Context<'_, H>,
    header: &RequestHeader<'_>,
    request: &DeleteGroupsRequest<'_>,
    out: &mut Out<'_>,
) -> Outcome {
    let mut results = cx.state.coordinator.take_results();
    let outcome = if request.groups_names.len() > results.capacity() {
        Outcome::Close("more groups in one DeleteGroups than there can be")
    } else {
        // The reply is as long whatever the results are, so it has room before anything is done.
        results.resize(request.groups_names.len(), ErrorCode::NONE);
        let needed = Out::measure(
            header,
            &message(&Reply {
                request,
                results: &results,
            }),
        );
        match out.ensure(needed) {
            Err(no) => no.into(),
            Ok(()) => {
                delete(cx, request, &mut results);
                out.reply(
                    header,
                    &message(&Reply {
                        request,
                        results: &results,
                    }),
                )
            }
        }
    };
    cx.state.coordinator.put_results(results);
    outcome
}

fn delete<H: Host>(cx: &mut Context<'_, H>, request: &DeleteGroupsRequest<'_>, results: &mut [ErrorCode]) {
    for (group_id, result) in request.groups_names.iter().zip(results) {
        let mut journal = Journal::new(cx.now, cx.wall, cx.host, &mut cx.state.topics);
        match cx.state.coordinator.delete_group(&mut journal, group_id) {
            Ok(None) => {}
            Ok(Some(mark)) => cx.state.metadata_written(mark, cx.now),
            Err(error) => *result = error,
        }
    }
}

struct Reply<'r, 'f> {
    request: &'r DeleteGroupsRequest<'f>,
    results: &'r [ErrorCode],
}

const fn message<'a>(reply: &'a Reply<'_, '_>) -> DeleteGroupsResponse<'a> {
    DeleteGroupsResponse {
        throttle_time_ms: 0,
        results: Array::Items(reply, 0),
    }
}

impl<'a> Items<'a, DeletableGroupResult<'a>> for Reply<'_, '_> {
    fn count(&'a self, _: usize) -> usize {
        self.results.len()
    }

    fn each(
        &'a self,
        _: usize,
        emit: &mut dyn FnMut(&DeletableGroupResult<'a>) -> Result<(), Full>,
    ) -> Result<(), Full> {
        let groups = self.request.groups_names.iter();
        groups.zip(self.results).try_for_each(|(group_id, error_code)| {
            emit(&DeletableGroupResult {
                group_id,
                error_code: *error_code,
            })
        })
    }
}
