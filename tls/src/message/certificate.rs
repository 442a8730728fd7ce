//! Certificate: TLS 1.3's, with a context and extensions for each entry (RFC 8446 §4.4.2), and TLS 1.2's (RFC 5246 §7.4.2).

use super::{Cursor, Extensions, HandshakeType, Writer};
use crate::cause::Cause;
use crate::certificate::CHAIN_COUNT_MAX;

/// The certificates of a message, leaf first, each DER. At most [`CHAIN_COUNT_MAX`]; none at all when a client has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chain<'a> {
    certificates: [&'a [u8]; CHAIN_COUNT_MAX],
    count: usize,
}

impl<'a> Chain<'a> {
    /// As a verifier takes them.
    #[must_use]
    pub fn as_slice(&self) -> &[&'a [u8]] {
        self.certificates.get(..self.count).unwrap_or_default()
    }

    /// The first, whose key signs.
    #[must_use]
    pub fn leaf(&self) -> Option<&'a [u8]> {
        self.as_slice().first().copied()
    }

    /// When full: [`Cause::ChainTooLong`].
    fn read(mut r: Cursor<'a>, entry: impl Fn(&mut Cursor<'a>) -> Result<&'a [u8], Cause>) -> Result<Self, Cause> {
        let mut chain = Self {
            certificates: [&[]; CHAIN_COUNT_MAX],
            count: 0,
        };
        while !r.is_empty() {
            let certificate = entry(&mut r)?;
            *chain.certificates.get_mut(chain.count).ok_or(Cause::ChainTooLong)? = certificate;
            chain.count += 1;
        }
        Ok(chain)
    }
}

/// A chain in TLS 1.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Certificate13<'a> {
    /// The chain.
    pub chain: Chain<'a>,
}

impl<'a> Certificate13<'a> {
    /// Its type.
    pub const KIND: HandshakeType = HandshakeType::Certificate;

    /// Reads the body of a message.
    ///
    /// Errors: [`Cause::Decode`] for structure; [`Cause::ChainTooLong`]; [`Cause::IllegalParameter`] for a context, which only
    ///   authentication after the handshake has; [`Cause::UnsupportedExtension`] for any extension of an entry: none is ever asked for here.
    pub fn decode(body: &'a [u8]) -> Result<Self, Cause> {
        let mut r = Cursor::new(Self::KIND, body);
        let context = r.vector_8(0, usize::MAX)?;
        let list = r.vector_24(0)?;
        r.end()?;
        if !context.is_empty() {
            return Err(r.illegal());
        }
        let chain = Chain::read(r.within(list), |r| {
            let certificate = r.vector_24(1)?;
            match Extensions::decode(r)?.iter().next() {
                Some(extension) => Err(Cause::UnsupportedExtension(extension.kind)),
                None => Ok(certificate),
            }
        })?;
        Ok(Self { chain })
    }

    /// Writes the whole message.
    ///
    /// When full: [`Cause::Internal`].
    pub fn encode(chain: &[&[u8]], w: &mut Writer<'_>) -> Result<(), Cause> {
        w.message(Self::KIND, |w| {
            w.u8(0)?;
            w.vector_24(|w| {
                chain.iter().try_for_each(|certificate| {
                    w.vector_24(|w| w.bytes(certificate))?;
                    w.u16(0)
                })
            })
        })
    }
}

/// A chain in TLS 1.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Certificate12<'a> {
    /// The chain.
    pub chain: Chain<'a>,
}

impl<'a> Certificate12<'a> {
    /// Its type.
    pub const KIND: HandshakeType = HandshakeType::Certificate;

    /// Reads the body of a message.
    ///
    /// Errors: [`Cause::Decode`] for structure; [`Cause::ChainTooLong`].
    pub fn decode(body: &'a [u8]) -> Result<Self, Cause> {
        let mut r = Cursor::new(Self::KIND, body);
        let list = r.vector_24(0)?;
        r.end()?;
        let chain = Chain::read(r.within(list), |r| r.vector_24(1))?;
        Ok(Self { chain })
    }

    /// Writes the whole message.
    ///
    /// When full: [`Cause::Internal`].
    pub fn encode(chain: &[&[u8]], w: &mut Writer<'_>) -> Result<(), Cause> {
        w.message(Self::KIND, |w| {
            w.vector_24(|w| {
                chain
                    .iter()
                    .try_for_each(|certificate| w.vector_24(|w| w.bytes(certificate)))
            })
        })
    }
}
