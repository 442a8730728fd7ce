//! The record layer (RFC 8446 §5, RFC 5246 §6): headers, opening and sealing in place, sequence numbers, limits.

mod header;
mod keys;
mod limits;
mod read;
mod write;

pub use header::{Header, Peek};
pub use keys::{GCM_RECORDS_MAX, Nonces, TrafficKeys, fixed_iv_bytes};
pub use limits::{RECORD_SIZE_LIMIT_MIN, SizeLimits};
pub use read::{EMPTY_RECORDS_MAX, Opened, ReadHalf};
pub use write::WriteHalf;

/// Bytes of a record's header.
pub const HEADER_BYTES: usize = 5;
/// The longest content of a record.
pub const CONTENT_BYTES_MAX: usize = 1 << 14;
/// The longest record that is taken or written: content, and as much around it as any AEAD here adds (AES-GCM in TLS 1.2: eight bytes of nonce
/// and the tag). The RFCs allow a fragment 2^14 + 256 and 2^14 + 2048 bytes for AEADs that add more; with these, such a one has too much inside.
pub const RECORD_BYTES_MAX: usize = HEADER_BYTES + CONTENT_BYTES_MAX + 8 + crate::crypto::TAG_BYTES;

/// What a record carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ContentType {
    /// change_cipher_spec.
    ChangeCipherSpec = 20,
    /// An alert.
    Alert = 21,
    /// Handshake messages, whole or in part.
    Handshake = 22,
    /// Application data.
    ApplicationData = 23,
}

impl ContentType {
    /// The type of that number.
    #[must_use]
    pub const fn from_wire(value: u8) -> Option<Self> {
        match value {
            20 => Some(Self::ChangeCipherSpec),
            21 => Some(Self::Alert),
            22 => Some(Self::Handshake),
            23 => Some(Self::ApplicationData),
            _ => None,
        }
    }

    /// Its name as the RFCs spell it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ChangeCipherSpec => "change_cipher_spec",
            Self::Alert => "alert",
            Self::Handshake => "handshake",
            Self::ApplicationData => "application_data",
        }
    }
}
