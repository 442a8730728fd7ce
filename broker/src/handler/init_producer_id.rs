//! InitProducerId (key 22): an id for an idempotent producer.
//!
//! Answered in versions 0–5. 2 flexible · 3 a producer's own id and epoch (KIP-360), which matter to transactional ones alone: an
//! idempotent one gets a new id. Left out: transactions, so a transactional id is INVALID_REQUEST, which no client retries.

use skerry_core::api::init_producer_id::{InitProducerIdRequest, InitProducerIdResponse};
use skerry_core::error_code::ErrorCode;
use skerry_core::header::RequestHeader;
use skerry_net::host::Host;

use super::{Context, Out, Outcome};

/// Handles one request. Cost: a blocking sync for one in a thousand.
pub fn handle<H: Host>(
    cx: &mut Context<'_, H>,
    header: &RequestHeader<'_>,
    request: &InitProducerIdRequest<'_>,
    out: &mut Out<'_>,
) -> Outcome {
    if let Err(no) = out.ensure(Out::measure(header, &InitProducerIdResponse::default())) {
        return no.into();
    }
    let given = if request.transactional_id.is_some() {
        Err(ErrorCode::INVALID_REQUEST)
    } else {
        let next = cx.state.topics.next_producer_id(cx.host);
        next.map_err(|_| ErrorCode::KAFKA_STORAGE_ERROR)
    };
    let reply = match given {
        Ok(producer_id) => InitProducerIdResponse {
            producer_id,
            ..InitProducerIdResponse::default()
        },
        Err(error_code) => InitProducerIdResponse {
            error_code,
            producer_epoch: -1,
            ..InitProducerIdResponse::default()
        },
    };
    out.reply(header, &reply)
}
