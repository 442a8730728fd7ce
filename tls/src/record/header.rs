//! A record's header: what it says, and whether it may be believed (RFC 8446 §5.1, RFC 5246 §6.2).

use super::{ContentType, HEADER_BYTES};
use crate::cause::Cause;

/// Five bytes, read: `type ‖ legacy_record_version ‖ length`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The type outside. With TLS 1.3's keys on it hides the true one.
    pub kind: ContentType,
    /// The version, which says little: see [`super::ReadHalf::peek`].
    pub version: u16,
    /// Bytes that follow the header.
    pub fragment_bytes: usize,
}

/// What the beginning of the input holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peek {
    /// Not a whole record: at least so many bytes more are wanted, never none.
    Need(usize),
    /// A whole record.
    Whole {
        /// The type outside.
        kind: ContentType,
        /// Bytes of header and fragment.
        bytes: usize,
    },
}

/// The version of every record but a client's first ones.
pub(super) const VERSION: u16 = 0x0303;
/// The version of a client's first ones: old peers reject a number that they do not know (RFC 8446 §5.1).
pub(super) const VERSION_FIRST: u16 = 0x0301;

impl Header {
    /// Reads a header, or says how many bytes it wants for one.
    ///
    /// Errors, in this order: [`Cause::RecordOverflow`] for more than `fragment_bytes_max`, so that a length is never waited for that would
    /// not be taken; [`Cause::BadRecord`] for a type of no name; [`Cause::RecordVersion`] for a version outside `0x03xx`, or, when
    /// `is_protected`, any but `0x0303`. A change_cipher_spec is not held to that: TLS 1.3's is never protected, and a client may send it
    /// before it knows our version.
    pub fn read(input: &[u8], fragment_bytes_max: usize, is_protected: bool) -> Result<Result<Self, usize>, Cause> {
        let Some(&[kind, major, minor, high, low]) = input.first_chunk() else {
            return Ok(Err(HEADER_BYTES.saturating_sub(input.len())));
        };
        let fragment_bytes = usize::from(u16::from_be_bytes([high, low]));
        if fragment_bytes > fragment_bytes_max {
            return Err(Cause::RecordOverflow);
        }
        let kind = ContentType::from_wire(kind).ok_or(Cause::BadRecord)?;
        let version = u16::from_be_bytes([major, minor]);
        let is_held = is_protected && kind != ContentType::ChangeCipherSpec;
        if major != 3 || (is_held && version != VERSION) {
            return Err(Cause::RecordVersion(version));
        }
        Ok(Ok(Self {
            kind,
            version,
            fragment_bytes,
        }))
    }

    /// Its bytes.
    pub(super) fn bytes(self) -> [u8; HEADER_BYTES] {
        let [major, minor] = self.version.to_be_bytes();
        // Every fragment that is written is bounded far below 2^16.
        let [high, low] = (self.fragment_bytes as u16).to_be_bytes();
        [self.kind as u8, major, minor, high, low]
    }
}
