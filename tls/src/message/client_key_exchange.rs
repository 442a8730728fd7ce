//! ClientKeyExchange of ECDHE (RFC 8422 §5.7): TLS 1.2.

use super::{Cursor, HandshakeType, Writer};
use crate::cause::Cause;

/// The client's share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientKeyExchange<'a> {
    /// The share: at least one byte.
    pub share: &'a [u8],
}

impl<'a> ClientKeyExchange<'a> {
    /// Its type.
    pub const KIND: HandshakeType = HandshakeType::ClientKeyExchange;

    /// Reads the body of a message.
    ///
    /// Errors: [`Cause::Decode`].
    pub fn decode(body: &'a [u8]) -> Result<Self, Cause> {
        let mut r = Cursor::new(Self::KIND, body);
        let share = r.vector_8(1, usize::MAX)?;
        r.end()?;
        Ok(Self { share })
    }

    /// Writes the whole message.
    ///
    /// When full: [`Cause::Internal`].
    pub fn encode(&self, w: &mut Writer<'_>) -> Result<(), Cause> {
        w.message(Self::KIND, |w| w.vector_8(|w| w.bytes(self.share)))
    }
}
