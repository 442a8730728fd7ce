//! ServerHelloDone (RFC 5246 §7.4.5): TLS 1.2.

use super::{Cursor, HandshakeType, Writer};
use crate::cause::Cause;

/// The end of a TLS 1.2 server's flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerHelloDone;

impl ServerHelloDone {
    /// Its type.
    pub const KIND: HandshakeType = HandshakeType::ServerHelloDone;

    /// Reads the body of a message, which is empty.
    ///
    /// Errors: [`Cause::Decode`].
    pub fn decode(body: &[u8]) -> Result<Self, Cause> {
        Cursor::new(Self::KIND, body).end().map(|()| Self)
    }

    /// Writes the whole message.
    ///
    /// When full: [`Cause::Internal`].
    pub fn encode(&self, w: &mut Writer<'_>) -> Result<(), Cause> {
        w.message(Self::KIND, |_| Ok(()))
    }
}
