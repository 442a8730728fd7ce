//! ListPartitionReassignments (key 46): which partitions move between brokers. There is one broker, so none.
//!
//! Answered in version 0.

use skerry_core::api::list_partition_reassignments::ListPartitionReassignmentsResponse;
use skerry_core::header::RequestHeader;

use super::{Out, Outcome};

/// Handles one request.
pub fn handle(header: &RequestHeader<'_>, out: &mut Out<'_>) -> Outcome {
    out.reply(
        header,
        &ListPartitionReassignmentsResponse {
            error_message: None,
            ..ListPartitionReassignmentsResponse::default()
        },
    )
}
