//! DescribeCluster (key 60): who the brokers are.
//!
//! Answered in versions 0–2. 1 brokers or controllers (KIP-919) · 2 fenced brokers (KIP-1073), of which there are none.

use skerry_core::api::describe_cluster::{DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse};
use skerry_core::error_code::ErrorCode;
use skerry_core::header::RequestHeader;
use skerry_core::wire::Array;
use skerry_net::host::Host;

use super::{Context, Out, Outcome, operations};

/// `endpoint_type` of brokers.
const BROKERS: i8 = 1;
/// `endpoint_type` of controllers.
const CONTROLLERS: i8 = 2;

/// Handles one request.
pub fn handle<H: Host>(
    cx: &mut Context<'_, H>,
    header: &RequestHeader<'_>,
    request: &DescribeClusterRequest,
    out: &mut Out<'_>,
) -> Outcome {
    let error = match request.endpoint_type {
        BROKERS => ErrorCode::NONE,
        CONTROLLERS => ErrorCode::MISMATCHED_ENDPOINT_TYPE,
        _ => ErrorCode::UNSUPPORTED_ENDPOINT_TYPE,
    };
    if !error.is_none() {
        let refused = DescribeClusterResponse {
            error_code: error,
            error_message: Some(error.message()),
            endpoint_type: request.endpoint_type,
            ..DescribeClusterResponse::default()
        };
        return out.reply(header, &refused);
    }
    let (host, port) = cx.peer.advertised(cx.state);
    let config = &cx.state.config;
    let broker = DescribeClusterBroker {
        broker_id: config.node_id,
        host: &host,
        port,
        rack: config.rack.as_deref(),
        is_fenced: false,
    };
    out.reply(
        header,
        &DescribeClusterResponse {
            cluster_id: cx.state.topics.cluster_id(),
            controller_id: config.node_id,
            brokers: Array::one(&broker),
            cluster_authorized_operations: operations::cluster(request.include_cluster_authorized_operations),
            ..DescribeClusterResponse::default()
        },
    )
}
