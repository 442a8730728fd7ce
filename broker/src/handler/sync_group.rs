//! SyncGroup (key 14): the leader hands in assignments, every member gets its own.
//!
//! Answered in versions 0–5. 3 static members (KIP-345) · 4 flexible · 5 protocol type and name (KIP-559).

use skerry_core::api::sync_group::{SyncGroupRequest, SyncGroupResponse};
use skerry_core::error_code::ErrorCode;
use skerry_core::header::RequestHeader;
use skerry_core::machine::group::{Answer, Sync};
use skerry_net::host::Host;

use super::{Context, Out, Outcome};
use crate::dispatch::Asked;

/// Handles one request: the coordinator takes it, and [`finish`] makes the reply.
///
/// When full: assignments that cannot all be stored send everybody back to join again.
pub fn handle<H: Host>(
    cx: &mut Context<'_, H>,
    header: &RequestHeader<'_>,
    request: &SyncGroupRequest<'_>,
    out: &mut Out<'_>,
) -> Outcome {
    let sync = Sync {
        group_id: request.group_id,
        member_id: request.member_id,
        instance_id: request.group_instance_id,
        generation: request.generation_id,
        protocol_type: request.protocol_type,
        protocol_name: request.protocol_name,
        assignments: request
            .assignments
            .iter()
            .map(|given| (given.member_id, given.assignment)),
    };
    let conn = cx.peer.conn;
    cx.state.coordinator.sync(cx.now, conn, sync);
    if let Some(Answer::Refused(error)) = cx.state.coordinator.answer(conn) {
        cx.state.coordinator.forget(conn);
        return refuse(header, error.into(), out);
    }
    Outcome::ParkGroup
}

/// Makes the reply from the group as it is now. Can be asked again after [`Outcome::NoRoom`].
pub fn finish<H: Host>(cx: &mut Context<'_, H>, asked: &Asked, out: &mut Out<'_>) -> Outcome {
    let conn = cx.peer.conn;
    let Some(answer) = cx.state.coordinator.answer(conn) else {
        return Outcome::Close("its sync has no answer");
    };
    let header = asked.header();
    let outcome = match answer {
        Answer::Synced { member, generation } => {
            let view = cx.state.coordinator.groups().view_member(member);
            match view.as_ref().and_then(|view| Some((view, view.group()?))) {
                None => refuse(&header, ErrorCode::UNKNOWN_MEMBER_ID, out),
                // The group has gone on before the reply could be made.
                Some((_, group)) if group.generation() != generation => {
                    refuse(&header, ErrorCode::REBALANCE_IN_PROGRESS, out)
                }
                Some((view, group)) => {
                    let reply = SyncGroupResponse {
                        protocol_type: Some(group.protocol_type()),
                        protocol_name: Some(group.protocol()),
                        assignment: view.assignment(),
                        ..SyncGroupResponse::default()
                    };
                    out.reply(&header, &reply)
                }
            }
        }
        Answer::Refused(error) => refuse(&header, error.into(), out),
        Answer::Joined { .. } | Answer::IdRequired { .. } => Outcome::Close("its sync has another request's answer"),
    };
    if matches!(outcome, Outcome::Reply) {
        cx.state.coordinator.forget(conn);
    }
    outcome
}

fn refuse(header: &RequestHeader<'_>, error_code: ErrorCode, out: &mut Out<'_>) -> Outcome {
    let reply = SyncGroupResponse {
        error_code,
        ..SyncGroupResponse::default()
    };
    out.reply(header, &reply)
}
