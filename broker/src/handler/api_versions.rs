//! ApiVersions (key 18): what is spoken here.
//!
//! Answered in versions 0–4. 3 flexible, client's name and version (KIP-511) · 4 features may begin at 0. The response header is
//! always version 0, and a version that is not known is answered in version 0 with UNSUPPORTED_VERSION, so that any client of
//! any age can find a common one.

use skerry_core::api::ApiKey;
use skerry_core::api::api_versions::{ApiVersion, ApiVersionsRequest, ApiVersionsResponse};
use skerry_core::error_code::ErrorCode;
use skerry_core::header::RequestHeader;
use skerry_core::wire::Array;

use super::{Out, Outcome};
use crate::dispatch::{ADVERTISED, Asked};

/// Handles one request. Cost: one pass over the table.
pub fn handle(header: &RequestHeader<'_>, request: &ApiVersionsRequest<'_>, out: &mut Out<'_>) -> Outcome {
    let named = |text: &str| {
        !text.is_empty()
            && text
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'.' || b == b'-')
    };
    if header.version >= 3 && !(named(request.client_software_name) && named(request.client_software_version)) {
        let refused = ApiVersionsResponse {
            error_code: ErrorCode::INVALID_REQUEST,
            ..ApiVersionsResponse::default()
        };
        return out.reply(header, &refused);
    }
    out.reply(
        header,
        &ApiVersionsResponse {
            api_keys: Array::Slice(&ADVERTISED),
            ..ApiVersionsResponse::default()
        },
    )
}

/// Answers a version that is not spoken here: version 0, with the versions of this API alone.
pub fn refuse_version(asked: &Asked, out: &mut Out<'_>) -> Outcome {
    let header = Asked { version: 0, ..*asked }.header();
    let own: Option<&ApiVersion> = ADVERTISED.iter().find(|a| a.api_key == ApiKey::ApiVersions as i16);
    out.reply(
        &header,
        &ApiVersionsResponse {
            error_code: ErrorCode::UNSUPPORTED_VERSION,
            api_keys: own.map(Array::one).unwrap_or_default(),
            ..ApiVersionsResponse::default()
        },
    )
}
