//! How much one side may put into a record (RFC 8446 §5.1, RFC 8449, RFC 6066 §4).

use super::CONTENT_BYTES_MAX;

/// The least that a record_size_limit may be; less is an error of the message that bears it (RFC 8449 §4).
pub const RECORD_SIZE_LIMIT_MIN: u16 = 64;

/// What was agreed about one direction's records. Without an agreement 2^14 bytes of content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeLimits {
    /// The receiver's record_size_limit. Protected records only. In TLS 1.3 it counts the type and padding too.
    record_size_limit: u16,
    /// max_fragment_length: content of every record, protected or not.
    fragment_bytes_max: u16,
}

impl SizeLimits {
    /// Nothing was agreed.
    pub const NONE: Self = Self {
        record_size_limit: CONTENT_BYTES_MAX as u16 + 1,
        fragment_bytes_max: CONTENT_BYTES_MAX as u16,
    };

    /// With the record_size_limit that the receiver named. More than the protocol allows, which RFC 8449 permits, is no limit; less than
    /// [`RECORD_SIZE_LIMIT_MIN`] counts as that.
    #[must_use]
    pub const fn with_record_size_limit(self, bytes: u16) -> Self {
        let most = Self::NONE.record_size_limit;
        Self {
            record_size_limit: if bytes < RECORD_SIZE_LIMIT_MIN {
                RECORD_SIZE_LIMIT_MIN
            } else if bytes > most {
                most
            } else {
                bytes
            },
            ..self
        }
    }

    /// With the max_fragment_length that was agreed: its code, 1 to 4, for 2^9 to 2^12 bytes. `None` for any other.
    #[must_use]
    pub const fn with_max_fragment_length(self, code: u8) -> Option<Self> {
        match code {
            1..=4 => Some(Self {
                fragment_bytes_max: 1 << (8 + code),
                ..self
            }),
            _ => None,
        }
    }

    /// The longest content of a record that bears `inner_bytes` (the type, in TLS 1.3) beside it under protection, or of one without protection.
    pub(super) const fn content_bytes_max(self, inner_bytes: Option<usize>) -> usize {
        let fragment = self.fragment_bytes_max as usize;
        let Some(inner) = inner_bytes else { return fragment };
        let limit = (self.record_size_limit as usize).saturating_sub(inner);
        if limit < fragment { limit } else { fragment }
    }
}
