//! The record layer (RFC 8446 §5, RFC 5246 §6): headers, opening and sealing in place, sequence numbers, limits.

mod keys;
mod read;
mod write;

pub use keys::{Nonces, TrafficKeys};
pub use read::{Opened, ReadHalf};
pub use write::WriteHalf;

/// Bytes of a record's header.
pub const HEADER_BYTES: usize = 5;
/// The longest content of a record.
pub const CONTENT_BYTES_MAX: usize = 1 << 14;
/// The longest record that may arrive: TLS 1.3's content, type and tag; TLS 1.2's explicit nonce and tag are shorter than its own limit.
pub const RECORD_BYTES_MAX: usize = HEADER_BYTES + CONTENT_BYTES_MAX + 256;

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
}
