//! FindCoordinator (key 10): who coordinates a group. There is one broker, so it does.
//!
//! Answered in versions 0–6. 1 kinds of key · 3 flexible · 4 several keys (KIP-699) · 5 TRANSACTION_ABORTABLE (KIP-890) · 6 share
//! groups (KIP-932). Left out: transactions and share groups, whose keys get INVALID_REQUEST: a retriable code would make clients ask
//! for ever.

use skerry_core::api::find_coordinator::{Coordinator, FindCoordinatorRequest, FindCoordinatorResponse};
use skerry_core::error_code::ErrorCode;
use skerry_core::header::RequestHeader;
use skerry_core::wire::{Array, Full, Items};
use skerry_net::host::Host;

use super::{Context, Out, Outcome};

/// The kind of key that names a group.
const GROUP: i8 = 0;

/// Handles one request. Cost: one pass over the keys.
pub fn handle<H: Host>(
    cx: &mut Context<'_, H>,
    header: &RequestHeader<'_>,
    request: &FindCoordinatorRequest<'_>,
    out: &mut Out<'_>,
) -> Outcome {
    let (host, port) = cx.peer.advertised(cx.state);
    let answer = if request.key_type == GROUP {
        Coordinator {
            node_id: cx.state.config.node_id,
            host: &host,
            port,
            error_message: None,
            ..Coordinator::default()
        }
    } else {
        Coordinator {
            node_id: -1,
            port: -1,
            error_code: ErrorCode::INVALID_REQUEST,
            error_message: Some("Only groups have a coordinator here."),
            ..Coordinator::default()
        }
    };
    let reply = Reply { request, answer };
    out.reply(
        header,
        &FindCoordinatorResponse {
            error_code: answer.error_code,
            error_message: answer.error_message,
            node_id: answer.node_id,
            host: answer.host,
            port: answer.port,
            coordinators: Array::Items(&reply, 0),
            ..FindCoordinatorResponse::default()
        },
    )
}

struct Reply<'r, 'f> {
    request: &'r FindCoordinatorRequest<'f>,
    /// The same for every key.
    answer: Coordinator<'r>,
}

impl<'a> Items<'a, Coordinator<'a>> for Reply<'_, '_> {
    fn count(&'a self, _: usize) -> usize {
        self.request.coordinator_keys.len()
    }

    fn each(&'a self, _: usize, emit: &mut dyn FnMut(&Coordinator<'a>) -> Result<(), Full>) -> Result<(), Full> {
        self.request
            .coordinator_keys
            .iter()
            .try_for_each(|key| emit(&Coordinator { key, ..self.answer }))
    }
}
