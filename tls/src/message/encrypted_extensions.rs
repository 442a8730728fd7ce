//! EncryptedExtensions (RFC 8446 §4.3.1).

use super::client_hello::{max_fragment_length, record_size_limit};
use super::{Cursor, ExtensionType, Extensions, HandshakeType, U16List, Writer};
use crate::cause::Cause;

/// What a TLS 1.3 server agrees to that needs no key.
///
/// Left to the client: whether it offered what it gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EncryptedExtensions<'a> {
    /// server_name, empty: the name was used.
    pub server_name: bool,
    /// supported_groups: what the server would rather have seen.
    pub supported_groups: Option<U16List<'a>>,
    /// max_fragment_length as on the wire.
    pub max_fragment_length: Option<u8>,
    /// record_size_limit.
    pub record_size_limit: Option<u16>,
}

impl<'a> EncryptedExtensions<'a> {
    /// Its type.
    pub const KIND: HandshakeType = HandshakeType::EncryptedExtensions;

    /// Reads the body of a message.
    ///
    /// Errors: [`Cause::Decode`] for structure; [`Cause::UnsupportedExtension`] for one that is never asked for here;
    ///   [`Cause::IllegalParameter`] for one that comes twice or belongs to another message, and limits out of range.
    pub fn decode(body: &'a [u8]) -> Result<Self, Cause> {
        let mut r = Cursor::new(Self::KIND, body);
        let block = Extensions::decode(&mut r)?;
        r.end()?;
        let mut it = Self::default();
        for extension in block.iter() {
            let mut r = r.within(extension.data);
            match ExtensionType::from_wire(extension.kind) {
                Some(ExtensionType::ServerName) => it.server_name = true,
                Some(ExtensionType::SupportedGroups) => it.supported_groups = Some(r.list_16()?),
                Some(ExtensionType::MaxFragmentLength) => it.max_fragment_length = Some(max_fragment_length(&mut r)?),
                Some(ExtensionType::RecordSizeLimit) => it.record_size_limit = Some(record_size_limit(&mut r)?),
                _ => return Err(extension.misplaced(r)),
            }
            r.end()?;
        }
        Ok(it)
    }

    /// Writes the whole message, extensions in the order of the fields.
    ///
    /// When full: [`Cause::Internal`].
    pub fn encode(&self, w: &mut Writer<'_>) -> Result<(), Cause> {
        w.message(Self::KIND, |w| {
            w.vector_16(|w| {
                if self.server_name {
                    w.extension(ExtensionType::ServerName, |_| Ok(()))?;
                }
                if let Some(groups) = self.supported_groups {
                    w.extension(ExtensionType::SupportedGroups, |w| w.list_16(groups))?;
                }
                if let Some(code) = self.max_fragment_length {
                    w.extension(ExtensionType::MaxFragmentLength, |w| w.u8(code))?;
                }
                if let Some(limit) = self.record_size_limit {
                    w.extension(ExtensionType::RecordSizeLimit, |w| w.u16(limit))?;
                }
                Ok(())
            })
        })
    }
}
