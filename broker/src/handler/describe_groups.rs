//! DescribeGroups (key 15): groups, their members and assignments, for tools.
//!
//! Answered in versions 0–6. 3 authorized operations (KIP-430) · 4 static members (KIP-345) · 5 flexible · 6 an absent group is
//! GROUP_ID_NOT_FOUND (KIP-1043), before that it is Dead. Protocol and metadata are told of stable groups only, as in Kafka.

use core::cell::Cell;

use skerry_core::api::describe_groups::{
    DescribeGroupsRequest, DescribeGroupsResponse, DescribedGroup, DescribedGroupMember,
};
use skerry_core::error_code::ErrorCode;
use skerry_core::header::RequestHeader;
use skerry_core::machine::group::{GroupKey, Groups, StateId};
use skerry_core::wire::{Array, Full, Items};
use skerry_net::host::Host;

use super::{Context, Out, Outcome};
use crate::memory::Owned;

/// The first version that has an error for an absent group.
const NOT_FOUND: i16 = 6;

/// Everything that anybody may do to a group while there is no authorizer: bits READ (3), DELETE (6) and DESCRIBE (8).
const ALL_OPERATIONS: i32 = 1 << 3 | 1 << 6 | 1 << 8;

/// Handles one request. Cost: a pass over the members of each group.
pub fn handle<H: Host>(
    cx: &mut Context<'_, H>,
    header: &RequestHeader<'_>,
    request: &DescribeGroupsRequest<'_>,
    out: &mut Out<'_>,
) -> Outcome {
    let reply = Reply {
        request,
        groups: cx.state.coordinator.groups(),
        version: header.version,
        at: Cell::new(None),
    };
    out.reply(
        header,
        &DescribeGroupsResponse {
            groups: Array::Items(&reply, 0),
            ..DescribeGroupsResponse::default()
        },
    )
}

struct Reply<'r, 'f> {
    request: &'r DescribeGroupsRequest<'f>,
    groups: &'r Groups<Owned>,
    version: i16,
    /// The group whose members are written.
    at: Cell<Option<GroupKey>>,
}

impl Reply<'_, '_> {
    fn describe<'a>(&'a self, group_id: &'a str) -> DescribedGroup<'a> {
        self.at.set(self.groups.find(group_id));
        let Some(group) = self.at.get().and_then(|key| self.groups.view(key)) else {
            let told = self.version >= NOT_FOUND;
            return DescribedGroup {
                error_code: if told {
                    ErrorCode::GROUP_ID_NOT_FOUND
                } else {
                    ErrorCode::NONE
                },
                error_message: told.then_some("There is no such group."),
                group_id,
                group_state: StateId::Dead.name(),
                authorized_operations: self.operations(!told),
                ..DescribedGroup::default()
            };
        };
        DescribedGroup {
            group_id,
            group_state: group.state().name(),
            protocol_type: group.protocol_type(),
            protocol_data: if group.state() == StateId::Stable {
                group.protocol()
            } else {
                ""
            },
            members: Array::Items(self, 0),
            authorized_operations: self.operations(true),
            ..DescribedGroup::default()
        }
    }

    const fn operations(&self, found: bool) -> i32 {
        if found && self.request.include_authorized_operations {
            ALL_OPERATIONS
        } else {
            i32::MIN
        }
    }
}

impl<'a> Items<'a, DescribedGroup<'a>> for Reply<'_, '_> {
    fn count(&'a self, _: usize) -> usize {
        self.request.groups.len()
    }

    fn each(&'a self, _: usize, emit: &mut dyn FnMut(&DescribedGroup<'a>) -> Result<(), Full>) -> Result<(), Full> {
        self.request
            .groups
            .iter()
            .try_for_each(|group_id| emit(&self.describe(group_id)))
    }
}

impl<'a> Items<'a, DescribedGroupMember<'a>> for Reply<'_, '_> {
    fn count(&'a self, _: usize) -> usize {
        let group = self.at.get().and_then(|key| self.groups.view(key));
        group.map_or(0, |group| group.len() as usize)
    }

    fn each(
        &'a self,
        _: usize,
        emit: &mut dyn FnMut(&DescribedGroupMember<'a>) -> Result<(), Full>,
    ) -> Result<(), Full> {
        let Some(group) = self.at.get().and_then(|key| self.groups.view(key)) else {
            return Ok(());
        };
        let stable = group.state() == StateId::Stable;
        group.members().try_for_each(|member| {
            emit(&DescribedGroupMember {
                member_id: member.id(),
                group_instance_id: member.instance_id(),
                client_id: member.client_id(),
                client_host: member.client_host(),
                member_metadata: if stable { member.metadata() } else { &[] },
                member_assignment: member.assignment(),
            })
        })
    }
}
