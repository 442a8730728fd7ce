//! Finished (RFC 8446 §4.4.4, RFC 5246 §7.4.9).

use super::{Cursor, HandshakeType, Writer};
use crate::cause::Cause;

/// Bytes of `verify_data` in TLS 1.2. In 1.3 they are a digest's.
pub const VERIFY_DATA_BYTES_12: usize = 12;

/// The MAC over a whole handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished<'a> {
    /// `verify_data`.
    pub verify_data: &'a [u8],
}

impl<'a> Finished<'a> {
    /// Its type.
    pub const KIND: HandshakeType = HandshakeType::Finished;

    /// Reads the body of a message, which is `verify_data` of that many bytes.
    ///
    /// Errors: [`Cause::Decode`] for another length.
    pub fn decode(body: &'a [u8], verify_data_bytes: usize) -> Result<Self, Cause> {
        let mut r = Cursor::new(Self::KIND, body);
        let verify_data = r.take(verify_data_bytes)?;
        r.end()?;
        Ok(Self { verify_data })
    }

    /// Writes the whole message.
    ///
    /// When full: [`Cause::Internal`].
    pub fn encode(&self, w: &mut Writer<'_>) -> Result<(), Cause> {
        w.message(Self::KIND, |w| w.bytes(self.verify_data))
    }
}
