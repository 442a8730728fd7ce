//! HelloRequest (RFC 5246 §7.4.1.1): TLS 1.2.

use super::{Cursor, HandshakeType, Writer};
use crate::cause::Cause;

/// A TLS 1.2 server asks for another handshake: refused here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HelloRequest;

impl HelloRequest {
    /// Its type.
    pub const KIND: HandshakeType = HandshakeType::HelloRequest;

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
