//! ServerKeyExchange of ECDHE (RFC 8422 §5.4): TLS 1.2.

use super::{Cursor, HandshakeType, Writer};
use crate::cause::Cause;
use crate::suite::SHARE_BYTES_MAX;

/// `named_curve`: the only ECCurveType left.
const NAMED_CURVE: u8 = 3;

/// The server's share and its signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerKeyExchange<'a> {
    /// `params` as they lie in the message: what is signed, after both randoms.
    pub params: &'a [u8],
    /// The group's number.
    pub group: u16,
    /// The share: at least one byte.
    pub share: &'a [u8],
    /// The scheme's number.
    pub scheme: u16,
    /// The signature.
    pub signature: &'a [u8],
}

impl<'a> ServerKeyExchange<'a> {
    /// Its type.
    pub const KIND: HandshakeType = HandshakeType::ServerKeyExchange;
    /// The longest `params` of any group here: type, group, length, share.
    pub const PARAMS_BYTES_MAX: usize = 1 + 2 + 1 + SHARE_BYTES_MAX;

    /// Reads the body of a message.
    ///
    /// Errors: [`Cause::Decode`] for structure; [`Cause::IllegalParameter`] for a curve that is not a named one.
    pub fn decode(body: &'a [u8]) -> Result<Self, Cause> {
        let mut r = Cursor::new(Self::KIND, body);
        if r.u8()? != NAMED_CURVE {
            return Err(r.illegal());
        }
        let group = r.u16()?;
        let share = r.vector_8(1, usize::MAX)?;
        let params_bytes = body.len() - r.rest().len();
        let it = Self {
            params: r.within(body).take(params_bytes)?,
            group,
            share,
            scheme: r.u16()?,
            signature: r.vector_16(0)?,
        };
        r.end()?;
        Ok(it)
    }

    /// Writes `params` alone, to be signed.
    ///
    /// When full: [`Cause::Internal`].
    pub fn encode_params(w: &mut Writer<'_>, group: u16, share: &[u8]) -> Result<(), Cause> {
        w.u8(NAMED_CURVE)?;
        w.u16(group)?;
        w.vector_8(|w| w.bytes(share))
    }

    /// Writes the whole message of `params` that [`Self::encode_params`] wrote.
    ///
    /// When full: [`Cause::Internal`].
    pub fn encode(w: &mut Writer<'_>, params: &[u8], scheme: u16, signature: &[u8]) -> Result<(), Cause> {
        w.message(Self::KIND, |w| {
            w.bytes(params)?;
            w.u16(scheme)?;
            w.vector_16(|w| w.bytes(signature))
        })
    }
}
