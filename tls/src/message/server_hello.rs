//! ServerHello and, under the same type, HelloRetryRequest (RFC 8446 §4.1.3, §4.1.4; RFC 5246 §7.4.1.3).

use super::client_hello::{max_fragment_length, record_size_limit};
use super::{
    Cursor, Extension, ExtensionType, Extensions, HandshakeType, KeyShare, RANDOM_BYTES, SESSION_ID_BYTES_MAX, Writer,
};
use crate::cause::Cause;
use crate::suite::Version;

/// The random that makes a ServerHello a HelloRetryRequest: SHA-256 of that word.
pub const RETRY_RANDOM: [u8; RANDOM_BYTES] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2, 0x11,
    0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

/// The end of the random of a server that speaks TLS 1.3 and agrees on 1.2 (RFC 8446 §4.1.3).
pub const DOWNGRADE_TO_12: [u8; 8] = *b"DOWNGRD\x01";
/// The end of the random of a server that speaks TLS 1.2 or 1.3 and agrees on less.
pub const DOWNGRADE_TO_11: [u8; 8] = *b"DOWNGRD\x00";

/// What came under the type of a ServerHello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerHelloOrRetry<'a> {
    /// The server agreed.
    Hello(ServerHello<'a>),
    /// The server asks for another hello.
    Retry(HelloRetryRequest<'a>),
}

impl<'a> ServerHelloOrRetry<'a> {
    /// Reads the body of a message.
    ///
    /// Errors: [`Cause::Decode`] for structure; [`Cause::UnsupportedExtension`] for one that is never asked for here;
    ///   [`Cause::IllegalParameter`] for a compression method, an extension that comes twice or belongs to another message or version, a
    ///   `legacy_version` of TLS 1.3 that is not 1.2, a retry that asks for nothing; [`Cause::MissingExtension`] for a retry without version.
    pub fn decode(body: &'a [u8]) -> Result<Self, Cause> {
        let mut r = Cursor::new(HandshakeType::ServerHello, body);
        let legacy_version = r.u16()?;
        let random = r.array()?;
        let session_id = r.vector_8(0, SESSION_ID_BYTES_MAX)?;
        let suite = r.u16()?;
        let compression = r.u8()?;
        let extensions = if r.is_empty() {
            Extensions::none(HandshakeType::ServerHello)
        } else {
            Extensions::decode(&mut r)?
        };
        r.end()?;
        if compression != 0 {
            return Err(r.illegal());
        }
        if *random == RETRY_RANDOM {
            if legacy_version != Version::Tls12.wire() {
                return Err(r.illegal());
            }
            return HelloRetryRequest::decode(session_id, suite, extensions, r).map(Self::Retry);
        }
        let mut hello = ServerHello::bare(legacy_version, random, session_id, suite);
        for extension in extensions.iter() {
            hello.take(extension, r.within(extension.data))?;
        }
        if hello.mixes_versions() {
            return Err(r.illegal());
        }
        Ok(Self::Hello(hello))
    }
}

/// What a server agrees to. A view: every vector borrows the message.
///
/// Left to the client: whether it offered what it gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerHello<'a> {
    /// `legacy_version`: the version when supported_versions is missing.
    pub legacy_version: u16,
    /// `random`.
    pub random: &'a [u8; RANDOM_BYTES],
    /// The client's session id in TLS 1.3; in 1.2 it, another, or none.
    pub session_id: &'a [u8],
    /// `cipher_suite`.
    pub suite: u16,
    /// server_name, empty: the name was used.
    pub server_name: bool,
    /// ec_point_formats (TLS 1.2).
    pub ec_point_formats: Option<&'a [u8]>,
    /// session_ticket, empty: a ticket will come (TLS 1.2).
    pub session_ticket: bool,
    /// extended_master_secret (TLS 1.2).
    pub extended_master_secret: bool,
    /// `renegotiated_connection` of renegotiation_info (TLS 1.2).
    pub renegotiation_info: Option<&'a [u8]>,
    /// max_fragment_length as on the wire (TLS 1.2; in 1.3 it is in EncryptedExtensions).
    pub max_fragment_length: Option<u8>,
    /// record_size_limit (TLS 1.2; in 1.3 it is in EncryptedExtensions).
    pub record_size_limit: Option<u16>,
    /// supported_versions: the version, 1.3 or later.
    pub supported_version: Option<u16>,
    /// key_share (TLS 1.3).
    pub key_share: Option<KeyShare<'a>>,
    /// pre_shared_key: which identity was taken (TLS 1.3).
    pub pre_shared_key: Option<u16>,
}

impl<'a> ServerHello<'a> {
    /// Its type.
    pub const KIND: HandshakeType = HandshakeType::ServerHello;

    /// A hello without extensions.
    #[must_use]
    pub const fn bare(legacy_version: u16, random: &'a [u8; RANDOM_BYTES], session_id: &'a [u8], suite: u16) -> Self {
        Self {
            legacy_version,
            random,
            session_id,
            suite,
            server_name: false,
            ec_point_formats: None,
            session_ticket: false,
            extended_master_secret: false,
            renegotiation_info: None,
            max_fragment_length: None,
            record_size_limit: None,
            supported_version: None,
            key_share: None,
            pre_shared_key: None,
        }
    }

    fn take(&mut self, extension: Extension<'a>, mut r: Cursor<'a>) -> Result<(), Cause> {
        match ExtensionType::from_wire(extension.kind) {
            Some(ExtensionType::ServerName) => self.server_name = true,
            Some(ExtensionType::EcPointFormats) => self.ec_point_formats = Some(r.vector_8(1, usize::MAX)?),
            Some(ExtensionType::SessionTicket) => self.session_ticket = true,
            Some(ExtensionType::ExtendedMasterSecret) => self.extended_master_secret = true,
            Some(ExtensionType::RenegotiationInfo) => self.renegotiation_info = Some(r.vector_8(0, usize::MAX)?),
            Some(ExtensionType::MaxFragmentLength) => self.max_fragment_length = Some(max_fragment_length(&mut r)?),
            Some(ExtensionType::RecordSizeLimit) => self.record_size_limit = Some(record_size_limit(&mut r)?),
            Some(ExtensionType::SupportedVersions) => self.supported_version = Some(r.u16()?),
            Some(ExtensionType::KeyShare) => self.key_share = Some(KeyShare::decode(&mut r)?),
            Some(ExtensionType::PreSharedKey) => self.pre_shared_key = Some(r.u16()?),
            _ => return Err(extension.misplaced(r)),
        }
        r.end()
    }

    /// Whether it has an extension of TLS 1.3 without saying 1.3, or one of 1.2 with it.
    const fn mixes_versions(&self) -> bool {
        let of_12 = self.server_name
            || self.ec_point_formats.is_some()
            || self.session_ticket
            || self.extended_master_secret
            || self.renegotiation_info.is_some()
            || self.max_fragment_length.is_some()
            || self.record_size_limit.is_some()
            || self.legacy_version != Version::Tls12.wire();
        let of_13 = self.key_share.is_some() || self.pre_shared_key.is_some();
        match self.supported_version {
            Some(_) => of_12,
            None => of_13,
        }
    }

    /// Writes the whole message, extensions in the order of the fields.
    ///
    /// When full: [`Cause::Internal`].
    pub fn encode(&self, w: &mut Writer<'_>) -> Result<(), Cause> {
        w.message(Self::KIND, |w| {
            write_fixed(w, self.legacy_version, self.random, self.session_id, self.suite)?;
            w.extensions_or_nothing(|w| self.encode_extensions(w))
        })
    }

    fn encode_extensions(&self, w: &mut Writer<'_>) -> Result<(), Cause> {
        use ExtensionType as E;
        if self.server_name {
            w.extension(E::ServerName, |_| Ok(()))?;
        }
        if let Some(formats) = self.ec_point_formats {
            w.extension(E::EcPointFormats, |w| w.vector_8(|w| w.bytes(formats)))?;
        }
        if self.session_ticket {
            w.extension(E::SessionTicket, |_| Ok(()))?;
        }
        if self.extended_master_secret {
            w.extension(E::ExtendedMasterSecret, |_| Ok(()))?;
        }
        if let Some(connection) = self.renegotiation_info {
            w.extension(E::RenegotiationInfo, |w| w.vector_8(|w| w.bytes(connection)))?;
        }
        if let Some(code) = self.max_fragment_length {
            w.extension(E::MaxFragmentLength, |w| w.u8(code))?;
        }
        if let Some(limit) = self.record_size_limit {
            w.extension(E::RecordSizeLimit, |w| w.u16(limit))?;
        }
        if let Some(version) = self.supported_version {
            w.extension(E::SupportedVersions, |w| w.u16(version))?;
        }
        if let Some(share) = self.key_share {
            w.extension(E::KeyShare, |w| share.encode(w))?;
        }
        if let Some(index) = self.pre_shared_key {
            w.extension(E::PreSharedKey, |w| w.u16(index))?;
        }
        Ok(())
    }
}

/// A server asks for another hello (TLS 1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HelloRetryRequest<'a> {
    /// The client's session id.
    pub session_id: &'a [u8],
    /// `cipher_suite`: the ServerHello will name the same.
    pub suite: u16,
    /// supported_versions: the version, 1.3 or later.
    pub version: u16,
    /// key_share: the group to share in.
    pub group: Option<u16>,
    /// cookie, to be sent back.
    pub cookie: Option<&'a [u8]>,
}

impl<'a> HelloRetryRequest<'a> {
    fn decode(session_id: &'a [u8], suite: u16, extensions: Extensions<'a>, whole: Cursor<'a>) -> Result<Self, Cause> {
        let (mut version, mut group, mut cookie) = (None, None, None);
        for extension in extensions.iter() {
            let mut r = whole.within(extension.data);
            match ExtensionType::from_wire(extension.kind) {
                Some(ExtensionType::SupportedVersions) => version = Some(r.u16()?),
                Some(ExtensionType::KeyShare) => group = Some(r.u16()?),
                Some(ExtensionType::Cookie) => cookie = Some(r.vector_16(1)?),
                _ => return Err(extension.misplaced(r)),
            }
            r.end()?;
        }
        if group.is_none() && cookie.is_none() {
            return Err(whole.illegal());
        }
        Ok(Self {
            session_id,
            suite,
            version: version.ok_or(Cause::MissingExtension(ExtensionType::SupportedVersions.wire()))?,
            group,
            cookie,
        })
    }

    /// Writes the whole message, extensions in the order of the fields.
    ///
    /// When full: [`Cause::Internal`].
    pub fn encode(&self, w: &mut Writer<'_>) -> Result<(), Cause> {
        w.message(HandshakeType::ServerHello, |w| {
            write_fixed(w, Version::Tls12.wire(), &RETRY_RANDOM, self.session_id, self.suite)?;
            w.vector_16(|w| {
                w.extension(ExtensionType::SupportedVersions, |w| w.u16(self.version))?;
                if let Some(group) = self.group {
                    w.extension(ExtensionType::KeyShare, |w| w.u16(group))?;
                }
                if let Some(cookie) = self.cookie {
                    w.extension(ExtensionType::Cookie, |w| w.vector_16(|w| w.bytes(cookie)))?;
                }
                Ok(())
            })
        })
    }
}

fn write_fixed(
    w: &mut Writer<'_>,
    legacy_version: u16,
    random: &[u8; RANDOM_BYTES],
    session_id: &[u8],
    suite: u16,
) -> Result<(), Cause> {
    w.u16(legacy_version)?;
    w.bytes(random)?;
    w.vector_8(|w| w.bytes(session_id))?;
    w.u16(suite)?;
    w.u8(0)
}
