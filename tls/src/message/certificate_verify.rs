//! CertificateVerify (RFC 8446 §4.4.3, RFC 5246 §7.4.8): the same bytes in both versions.

use super::{Cursor, HandshakeType, Writer};
use crate::cause::Cause;

/// The proof of a certificate's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CertificateVerify<'a> {
    /// The scheme's number.
    pub scheme: u16,
    /// The signature.
    pub signature: &'a [u8],
}

impl<'a> CertificateVerify<'a> {
    /// Its type.
    pub const KIND: HandshakeType = HandshakeType::CertificateVerify;

    /// Reads the body of a message.
    ///
    /// Errors: [`Cause::Decode`].
    pub fn decode(body: &'a [u8]) -> Result<Self, Cause> {
        let mut r = Cursor::new(Self::KIND, body);
        let it = Self {
            scheme: r.u16()?,
            signature: r.vector_16(0)?,
        };
        r.end()?;
        Ok(it)
    }

    /// Writes the whole message.
    ///
    /// When full: [`Cause::Internal`].
    pub fn encode(&self, w: &mut Writer<'_>) -> Result<(), Cause> {
        w.message(Self::KIND, |w| {
            w.u16(self.scheme)?;
            w.vector_16(|w| w.bytes(self.signature))
        })
    }
}
