//! NewSessionTicket: TLS 1.3's (RFC 8446 §4.6.1) and TLS 1.2's (RFC 5077 §3.3).

use super::{Cursor, ExtensionType, Extensions, HandshakeType, Writer};
use crate::cause::Cause;

/// The longest life of a TLS 1.3 ticket, in seconds: seven days. A server says no more; a client keeps none longer.
pub const TICKET_LIFETIME_SECONDS_MAX: u32 = 604_800;

/// A ticket in TLS 1.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewSessionTicket13<'a> {
    /// `ticket_lifetime`, in seconds. A client holds it to [`TICKET_LIFETIME_SECONDS_MAX`].
    pub lifetime_seconds: u32,
    /// `ticket_age_add`, in milliseconds.
    pub age_add: u32,
    /// `ticket_nonce`: tells this ticket's key from others of the connection.
    pub nonce: &'a [u8],
    /// `ticket`: not empty.
    pub ticket: &'a [u8],
    /// early_data: `max_early_data_size`.
    pub early_data_bytes_max: Option<u32>,
}

impl<'a> NewSessionTicket13<'a> {
    /// Its type.
    pub const KIND: HandshakeType = HandshakeType::NewSessionTicket;

    /// Reads the body of a message. Extensions of no name here are passed over, as RFC 8446 §4.6.1 asks.
    ///
    /// Errors: [`Cause::Decode`] for structure; [`Cause::IllegalParameter`] for an extension that comes twice.
    pub fn decode(body: &'a [u8]) -> Result<Self, Cause> {
        let mut r = Cursor::new(Self::KIND, body);
        let mut it = Self {
            lifetime_seconds: r.u32()?,
            age_add: r.u32()?,
            nonce: r.vector_8(0, usize::MAX)?,
            ticket: r.vector_16(1)?,
            early_data_bytes_max: None,
        };
        let block = Extensions::decode(&mut r)?;
        r.end()?;
        for extension in block.iter() {
            if extension.kind == ExtensionType::EarlyData.wire() {
                let mut r = r.within(extension.data);
                it.early_data_bytes_max = Some(r.u32()?);
                r.end()?;
            }
        }
        Ok(it)
    }

    /// Writes the whole message.
    ///
    /// When full: [`Cause::Internal`].
    pub fn encode(&self, w: &mut Writer<'_>) -> Result<(), Cause> {
        w.message(Self::KIND, |w| {
            w.u32(self.lifetime_seconds)?;
            w.u32(self.age_add)?;
            w.vector_8(|w| w.bytes(self.nonce))?;
            w.vector_16(|w| w.bytes(self.ticket))?;
            w.vector_16(|w| match self.early_data_bytes_max {
                Some(bytes) => w.extension(ExtensionType::EarlyData, |w| w.u32(bytes)),
                None => Ok(()),
            })
        })
    }
}

/// A ticket in TLS 1.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewSessionTicket12<'a> {
    /// `ticket_lifetime_hint`, in seconds; zero says nothing.
    pub lifetime_hint_seconds: u32,
    /// `ticket`: empty when the server changed its mind.
    pub ticket: &'a [u8],
}

impl<'a> NewSessionTicket12<'a> {
    /// Its type.
    pub const KIND: HandshakeType = HandshakeType::NewSessionTicket;

    /// Reads the body of a message.
    ///
    /// Errors: [`Cause::Decode`].
    pub fn decode(body: &'a [u8]) -> Result<Self, Cause> {
        let mut r = Cursor::new(Self::KIND, body);
        let it = Self {
            lifetime_hint_seconds: r.u32()?,
            ticket: r.vector_16(0)?,
        };
        r.end()?;
        Ok(it)
    }

    /// Writes the whole message.
    ///
    /// When full: [`Cause::Internal`].
    pub fn encode(&self, w: &mut Writer<'_>) -> Result<(), Cause> {
        w.message(Self::KIND, |w| {
            w.u32(self.lifetime_hint_seconds)?;
            w.vector_16(|w| w.bytes(self.ticket))
        })
    }
}
