//! JoinGroup (key 11): a member enters its group's next generation.
//!
//! Answered in versions 0–9. 1 rebalance timeout (KIP-62) · 4 MEMBER_ID_REQUIRED (KIP-394) · 5 static members (KIP-345) · 6 flexible · 7
//! protocol type (KIP-559) · 8 reason (KIP-800) · 9 skip assignment (KIP-814). The reason is not kept.

use core::fmt::Write as _;

use skerry_core::api::join_group::{JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember};
use skerry_core::error_code::ErrorCode;
use skerry_core::header::RequestHeader;
use skerry_core::machine::group::{Answer, GroupView, Join};
use skerry_core::time::Millis;
use skerry_core::wire::{Array, Full, Items};
use skerry_net::host::Host;

use super::{Context, Out, Outcome};
use crate::dispatch::Asked;
use crate::memory::Owned;

/// The first version whose new dynamic members are told their id before they are let in.
const ID_REQUIRED: i16 = 4;
/// The first version that may leave the protocol's name null.
const NULL_PROTOCOL: i16 = 7;
/// The first version that can tell a leader to leave the assignment as it is.
const SKIP_ASSIGNMENT: i16 = 9;

/// `/`, and an address as long as IPv6 makes it: how Kafka writes a member's host.
type ClientHost = heapless::String<48>;

/// Handles one request: the coordinator takes it, and [`finish`] makes the reply.
///
/// When full: see [`skerry_core::machine::group::Groups`].
pub fn handle<H: Host>(
    cx: &mut Context<'_, H>,
    header: &RequestHeader<'_>,
    request: &JoinGroupRequest<'_>,
    out: &mut Out<'_>,
) -> Outcome {
    let mut client_host = ClientHost::new();
    let _ = write!(client_host, "/{}", cx.peer.addr.ip().to_canonical());
    let mut random = [0; 16];
    if request.member_id.is_empty() {
        cx.host.random(&mut random);
    }
    let session_timeout = Millis::from_wire(request.session_timeout_ms);
    let join = Join {
        group_id: request.group_id,
        member_id: request.member_id,
        instance_id: request.group_instance_id,
        client_id: header.client_id.unwrap_or(""),
        client_host: &client_host,
        session_timeout,
        rebalance_timeout: match request.rebalance_timeout_ms {
            ..0 => session_timeout,
            ms => Millis::from_wire(ms),
        },
        protocol_type: request.protocol_type,
        protocols: request
            .protocols
            .iter()
            .map(|protocol| (protocol.name, protocol.metadata)),
        id_required: header.version >= ID_REQUIRED,
        random,
    };
    let conn = cx.peer.conn;
    cx.state.coordinator.join(cx.now, conn, &join);
    if let Some(Answer::Refused(error)) = cx.state.coordinator.answer(conn) {
        cx.state.coordinator.forget(conn);
        return refuse(header, error.into(), request.member_id, out);
    }
    Outcome::ParkGroup
}

/// Makes the reply from the group as it is now. Can be asked again after [`Outcome::NoRoom`].
///
/// Cost: for the leader a pass over the members, whose metadata goes from where it is kept into the reply.
pub fn finish<H: Host>(cx: &mut Context<'_, H>, asked: &Asked, out: &mut Out<'_>) -> Outcome {
    let conn = cx.peer.conn;
    let Some(answer) = cx.state.coordinator.answer(conn) else {
        return Outcome::Close("its join has no answer");
    };
    let header = asked.header();
    let groups = cx.state.coordinator.groups();
    let outcome = match answer {
        Answer::Joined { member, replaced } => match groups.view_member(member) {
            Some(view) => match view.group() {
                Some(group) => {
                    let leads = view.is_leader();
                    // Before version 9 a leader that must not assign is not told that it leads.
                    let told = leads && !(replaced && header.version < SKIP_ASSIGNMENT);
                    let members = Members(&group);
                    let reply = JoinGroupResponse {
                        generation_id: group.generation(),
                        protocol_type: Some(group.protocol_type()),
                        protocol_name: Some(group.protocol()),
                        leader: if leads && !told { "" } else { group.leader() },
                        skip_assignment: leads && replaced,
                        member_id: view.id(),
                        members: if told {
                            Array::Items(&members, 0)
                        } else {
                            Array::default()
                        },
                        ..JoinGroupResponse::default()
                    };
                    out.reply(&header, &reply)
                }
                None => refuse(&header, ErrorCode::UNKNOWN_MEMBER_ID, "", out),
            },
            None => refuse(&header, ErrorCode::UNKNOWN_MEMBER_ID, "", out),
        },
        Answer::IdRequired { member } => match groups.view_member(member) {
            Some(view) => refuse(&header, ErrorCode::MEMBER_ID_REQUIRED, view.id(), out),
            None => refuse(&header, ErrorCode::UNKNOWN_MEMBER_ID, "", out),
        },
        Answer::Refused(error) => refuse(&header, error.into(), "", out),
        Answer::Synced { .. } => Outcome::Close("its join has another request's answer"),
    };
    if matches!(outcome, Outcome::Reply) {
        cx.state.coordinator.forget(conn);
    }
    outcome
}

fn refuse(header: &RequestHeader<'_>, error_code: ErrorCode, member_id: &str, out: &mut Out<'_>) -> Outcome {
    let reply = JoinGroupResponse {
        error_code,
        member_id,
        protocol_name: (header.version < NULL_PROTOCOL).then_some(""),
        ..JoinGroupResponse::default()
    };
    out.reply(header, &reply)
}

/// All members, for the leader.
struct Members<'g>(&'g GroupView<'g, Owned>);

impl<'a> Items<'a, JoinGroupResponseMember<'a>> for Members<'_> {
    fn count(&'a self, _: usize) -> usize {
        self.0.len() as usize
    }

    fn each(
        &'a self,
        _: usize,
        emit: &mut dyn FnMut(&JoinGroupResponseMember<'a>) -> Result<(), Full>,
    ) -> Result<(), Full> {
        self.0.members().try_for_each(|member| {
            emit(&JoinGroupResponseMember {
                member_id: member.id(),
                group_instance_id: member.instance_id(),
                metadata: member.metadata(),
            })
        })
    }
}
