//! ListGroups (key 16): which groups there are, those that only hold offsets included.
//!
//! Answered in versions 0–5. 3 flexible · 4 filter by state (KIP-518) · 5 filter by type (KIP-848); all groups here are classic.

use skerry_core::api::list_groups::{ListGroupsRequest, ListGroupsResponse, ListedGroup};
use skerry_core::header::RequestHeader;
use skerry_core::machine::group::{GroupView, Groups};
use skerry_core::wire::{Array, Full, Items};
use skerry_net::host::Host;

use super::{Context, Out, Outcome};
use crate::memory::Owned;

/// The type of every group here, as Kafka writes it.
const CLASSIC: &str = "Classic";

/// Handles one request. Cost: three passes over the groups.
pub fn handle<H: Host>(
    cx: &mut Context<'_, H>,
    header: &RequestHeader<'_>,
    request: &ListGroupsRequest<'_>,
    out: &mut Out<'_>,
) -> Outcome {
    let reply = Reply {
        request,
        groups: cx.state.coordinator.groups(),
    };
    out.reply(
        header,
        &ListGroupsResponse {
            groups: Array::Items(&reply, 0),
            ..ListGroupsResponse::default()
        },
    )
}

struct Reply<'r, 'f> {
    request: &'r ListGroupsRequest<'f>,
    groups: &'r Groups<Owned>,
}

impl<'r> Reply<'r, '_> {
    fn listed(&self) -> impl Iterator<Item = GroupView<'r, Owned>> {
        let ListGroupsRequest {
            states_filter,
            types_filter,
        } = self.request;
        self.groups
            .iter()
            .filter(move |group| passes(states_filter, group.state().name()) && passes(types_filter, CLASSIC))
    }
}

/// Whether a filter lets a name pass: an empty one lets all.
fn passes<'f>(filter: &Array<'f, &'f str>, name: &str) -> bool {
    filter.is_empty() || filter.iter().any(|wanted| wanted.eq_ignore_ascii_case(name))
}

impl<'a> Items<'a, ListedGroup<'a>> for Reply<'_, '_> {
    fn count(&'a self, _: usize) -> usize {
        self.listed().count()
    }

    fn each(&'a self, _: usize, emit: &mut dyn FnMut(&ListedGroup<'a>) -> Result<(), Full>) -> Result<(), Full> {
        self.listed().try_for_each(|group| {
            emit(&ListedGroup {
                group_id: group.id(),
                protocol_type: group.protocol_type(),
                group_state: group.state().name(),
                group_type: CLASSIC,
            })
        })
    }
}
