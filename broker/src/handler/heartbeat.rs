//! Heartbeat (key 12): a member is alive.
//!
//! Answered in versions 0–4. 3 static members (KIP-345) · 4 flexible.

use skerry_core::api::heartbeat::{HeartbeatRequest, HeartbeatResponse};
use skerry_core::error_code::ErrorCode;
use skerry_core::header::RequestHeader;
use skerry_core::machine::group::Claim;
use skerry_net::host::Host;

use super::{Context, Out, Outcome};

/// Handles one request. Cost: two look-ups by hash, no allocation.
pub fn handle<H: Host>(
    cx: &mut Context<'_, H>,
    header: &RequestHeader<'_>,
    request: &HeartbeatRequest<'_>,
    out: &mut Out<'_>,
) -> Outcome {
    let claim = Claim {
        group_id: request.group_id,
        member_id: request.member_id,
        instance_id: request.group_instance_id,
        generation: request.generation_id,
    };
    let beat = cx.state.coordinator.heartbeat(cx.now, claim);
    let reply = HeartbeatResponse {
        error_code: beat.map_or_else(ErrorCode::from, |()| ErrorCode::NONE),
        ..HeartbeatResponse::default()
    };
    out.reply(header, &reply)
}
