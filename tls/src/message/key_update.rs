//! KeyUpdate (RFC 8446 §4.6.3).

use super::{Cursor, HandshakeType, Writer};
use crate::cause::Cause;

/// The sender's next record is under its next key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyUpdate {
    /// Whether the other side must do the same.
    pub requested: bool,
}

impl KeyUpdate {
    /// Its type.
    pub const KIND: HandshakeType = HandshakeType::KeyUpdate;

    /// Reads the body of a message.
    ///
    /// Errors: [`Cause::Decode`] for structure; [`Cause::IllegalParameter`] for a request that is neither 0 nor 1.
    pub fn decode(body: &[u8]) -> Result<Self, Cause> {
        let mut r = Cursor::new(Self::KIND, body);
        let requested = r.u8()?;
        r.end()?;
        match requested {
            0 => Ok(Self { requested: false }),
            1 => Ok(Self { requested: true }),
            _ => Err(r.illegal()),
        }
    }

    /// Writes the whole message.
    ///
    /// When full: [`Cause::Internal`].
    pub fn encode(&self, w: &mut Writer<'_>) -> Result<(), Cause> {
        w.message(Self::KIND, |w| w.u8(self.requested.into()))
    }
}
