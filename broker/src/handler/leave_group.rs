//! LeaveGroup (key 13): members leave, or are taken out by an administrator.
//!
//! Answered in versions 0–5. 3 several members, by instance id too (KIP-345) · 4 flexible · 5 reasons (KIP-800), which are not kept.

use skerry_core::api::leave_group::{LeaveGroupRequest, LeaveGroupResponse, MemberResponse};
use skerry_core::error_code::ErrorCode;
use skerry_core::header::RequestHeader;
use skerry_core::wire::{Array, Full, Items};
use skerry_net::host::Host;

use super::{Context, Out, Outcome};

/// The first version that names several members.
const SEVERAL: i16 = 3;

/// Handles one request.
///
/// When full: more members than [`crate::coordinator::Coordinator`] has room for results of close the connection, as no client sends them.
pub fn handle<H: Host>(
    cx: &mut Context<'_, H>,
    header: &RequestHeader<'_>,
    request: &LeaveGroupRequest<'_>,
    out: &mut Out<'_>,
) -> Outcome {
    if request.group_id.is_empty() {
        return answer(header, request, ErrorCode::INVALID_GROUP_ID, &[], out);
    }
    let mut results = cx.state.coordinator.take_results();
    let outcome = if request.members.len() > results.capacity() {
        Outcome::Close("more members in one LeaveGroup than there can be")
    } else {
        leave(cx, header, request, &mut results, out)
    };
    cx.state.coordinator.put_results(results);
    outcome
}

fn leave<H: Host>(
    cx: &mut Context<'_, H>,
    header: &RequestHeader<'_>,
    request: &LeaveGroupRequest<'_>,
    results: &mut Vec<ErrorCode>,
    out: &mut Out<'_>,
) -> Outcome {
    let coordinator = &mut cx.state.coordinator;
    let code = |left: Result<(), _>| left.map_or_else(ErrorCode::from, |()| ErrorCode::NONE);
    // The reply is as long whatever the results are, so it has room before anything is done.
    results.resize(request.members.len(), ErrorCode::NONE);
    let needed = Out::measure(header, &message(&Reply { request, results }, ErrorCode::NONE));
    if let Err(no) = out.ensure(needed) {
        return no.into();
    }
    if header.version < SEVERAL {
        let left = coordinator.leave(cx.now, request.group_id, request.member_id, None);
        return answer(header, request, code(left), &[], out);
    }
    for (member, result) in request.members.iter().zip(results.iter_mut()) {
        let left = coordinator.leave(cx.now, request.group_id, member.member_id, member.group_instance_id);
        *result = code(left);
    }
    answer(header, request, ErrorCode::NONE, results, out)
}

fn answer(
    header: &RequestHeader<'_>,
    request: &LeaveGroupRequest<'_>,
    error_code: ErrorCode,
    results: &[ErrorCode],
    out: &mut Out<'_>,
) -> Outcome {
    out.reply(header, &message(&Reply { request, results }, error_code))
}

const fn message<'a>(reply: &'a Reply<'_, '_>, error_code: ErrorCode) -> LeaveGroupResponse<'a> {
    LeaveGroupResponse {
        throttle_time_ms: 0,
        error_code,
        members: Array::Items(reply, 0),
    }
}

struct Reply<'r, 'f> {
    request: &'r LeaveGroupRequest<'f>,
    results: &'r [ErrorCode],
}

impl<'a> Items<'a, MemberResponse<'a>> for Reply<'_, '_> {
    fn count(&'a self, _: usize) -> usize {
        self.results.len()
    }

    fn each(&'a self, _: usize, emit: &mut dyn FnMut(&MemberResponse<'a>) -> Result<(), Full>) -> Result<(), Full> {
        self.request
            .members
            .iter()
            .zip(self.results)
            .try_for_each(|(member, error_code)| {
                emit(&MemberResponse {
                    member_id: member.member_id,
                    group_instance_id: member.group_instance_id,
                    error_code: *error_code,
                })
            })
    }
}
