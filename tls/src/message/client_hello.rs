//! ClientHello (RFC 8446 §4.1.2, RFC 5246 §7.4.1.2) and its extensions.

use super::codec::repeats;
use super::{
    Authorities, Cursor, ExtensionType, Extensions, HandshakeType, RANDOM_BYTES, SESSION_ID_BYTES_MAX, U16List, Writer,
};
use crate::cause::Cause;

/// TLS_EMPTY_RENEGOTIATION_INFO_SCSV (RFC 5746 §3.3): an empty renegotiation_info in the shape of a suite.
pub const RENEGOTIATION_SCSV: u16 = 0x00ff;
/// TLS_FALLBACK_SCSV (RFC 7507): the client would have spoken a later version.
pub const FALLBACK_SCSV: u16 = 0x5600;
/// The least record_size_limit (RFC 8449 §4).
pub const RECORD_SIZE_LIMIT_MIN: u16 = 64;

/// What a client offers. A view: every vector borrows the message.
///
/// Shape: an extension is `Some` when it was there. ALPN and everything unknown (GREASE with it, RFC 8701) is checked for its length
///   and skipped. Fields stand in the order in which [`Self::encode`] writes them.
/// Left to the machines: which extensions must be there, agreement of groups with shares, ec_point_formats without uncompressed points,
///   compression methods beside null in TLS 1.3, a renegotiation_info that is not empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientHello<'a> {
    /// `legacy_version`: the highest version when supported_versions is missing.
    pub legacy_version: u16,
    /// `random`.
    pub random: &'a [u8; RANDOM_BYTES],
    /// `legacy_session_id`: at most [`SESSION_ID_BYTES_MAX`].
    pub session_id: &'a [u8],
    /// `cipher_suites`, signals (SCSV) with them.
    pub suites: U16List<'a>,
    /// `legacy_compression_methods`: null is among them.
    pub compression: &'a [u8],
    /// The host_name of server_name (RFC 6066 §3): not empty, its spelling not checked.
    pub server_name: Option<&'a [u8]>,
    /// ec_point_formats (RFC 8422 §5.1.2).
    pub ec_point_formats: Option<&'a [u8]>,
    /// supported_groups.
    pub supported_groups: Option<U16List<'a>>,
    /// session_ticket (RFC 5077 §3.2): empty asks for one.
    pub session_ticket: Option<&'a [u8]>,
    /// extended_master_secret (RFC 7627).
    pub extended_master_secret: bool,
    /// `renegotiated_connection` of renegotiation_info (RFC 5746 §3.2).
    pub renegotiation_info: Option<&'a [u8]>,
    /// signature_algorithms.
    pub signature_algorithms: Option<U16List<'a>>,
    /// signature_algorithms_cert.
    pub signature_algorithms_cert: Option<U16List<'a>>,
    /// supported_versions.
    pub supported_versions: Option<U16List<'a>>,
    /// cookie of a HelloRetryRequest.
    pub cookie: Option<&'a [u8]>,
    /// psk_key_exchange_modes: 0 for PSK alone, 1 for PSK with (EC)DHE.
    pub psk_key_exchange_modes: Option<&'a [u8]>,
    /// key_share; the list may be empty.
    pub key_share: Option<KeyShares<'a>>,
    /// max_fragment_length as on the wire (RFC 6066 §4): 1 to 4 for 512 to 4096 bytes.
    pub max_fragment_length: Option<u8>,
    /// record_size_limit (RFC 8449 §4): at least [`RECORD_SIZE_LIMIT_MIN`].
    pub record_size_limit: Option<u16>,
    /// early_data.
    pub early_data: bool,
    /// padding (RFC 7685): how many zeros to write, if any. Not read.
    pub padding: Option<u16>,
    /// pre_shared_key: it was the last.
    pub pre_shared_key: Option<OfferedPsks<'a>>,
}

impl<'a> ClientHello<'a> {
    /// Its type.
    pub const KIND: HandshakeType = HandshakeType::ClientHello;

    /// A hello without extensions, offering null compression only.
    #[must_use]
    pub const fn bare(
        legacy_version: u16,
        random: &'a [u8; RANDOM_BYTES],
        session_id: &'a [u8],
        suites: U16List<'a>,
    ) -> Self {
        Self {
            legacy_version,
            random,
            session_id,
            suites,
            compression: &[0],
            server_name: None,
            ec_point_formats: None,
            supported_groups: None,
            session_ticket: None,
            extended_master_secret: false,
            renegotiation_info: None,
            signature_algorithms: None,
            signature_algorithms_cert: None,
            supported_versions: None,
            cookie: None,
            psk_key_exchange_modes: None,
            key_share: None,
            max_fragment_length: None,
            record_size_limit: None,
            early_data: false,
            padding: None,
            pre_shared_key: None,
        }
    }

    /// Reads the body of a message.
    ///
    /// Errors: [`Cause::Decode`] for structure; [`Cause::IllegalParameter`] for compression methods without null, an extension that comes
    ///   twice, two host names, a group that shares twice, limits out of range, a pre_shared_key that is not the last or has not one
    ///   binder for each identity.
    pub fn decode(body: &'a [u8]) -> Result<Self, Cause> {
        let mut r = Cursor::new(Self::KIND, body);
        let legacy_version = r.u16()?;
        let random = r.array()?;
        let session_id = r.vector_8(0, SESSION_ID_BYTES_MAX)?;
        let suites = r.list_16()?;
        let compression = r.vector_8(1, usize::MAX)?;
        let extensions = if r.is_empty() {
            Extensions::none(Self::KIND)
        } else {
            Extensions::decode(&mut r)?
        };
        r.end()?;
        if !compression.contains(&0) {
            return Err(r.illegal());
        }
        let mut hello = Self {
            compression,
            ..Self::bare(legacy_version, random, session_id, suites)
        };
        for extension in extensions.iter() {
            // What comes after it was left out of the binders' hash.
            if hello.pre_shared_key.is_some() {
                return Err(r.illegal());
            }
            if let Some(kind) = ExtensionType::from_wire(extension.kind) {
                hello.take(kind, r.within(extension.data))?;
            }
        }
        Ok(hello)
    }

    fn take(&mut self, kind: ExtensionType, mut r: Cursor<'a>) -> Result<(), Cause> {
        match kind {
            ExtensionType::ServerName => self.server_name = host_name(&mut r)?,
            ExtensionType::EcPointFormats => self.ec_point_formats = Some(r.vector_8(1, usize::MAX)?),
            ExtensionType::SupportedGroups => self.supported_groups = Some(r.list_16()?),
            ExtensionType::SessionTicket => self.session_ticket = Some(r.take_rest()),
            ExtensionType::ExtendedMasterSecret => self.extended_master_secret = true,
            ExtensionType::RenegotiationInfo => self.renegotiation_info = Some(r.vector_8(0, usize::MAX)?),
            ExtensionType::SignatureAlgorithms => self.signature_algorithms = Some(r.list_16()?),
            ExtensionType::SignatureAlgorithmsCert => self.signature_algorithms_cert = Some(r.list_16()?),
            ExtensionType::SupportedVersions => self.supported_versions = Some(r.list_8()?),
            ExtensionType::Cookie => self.cookie = Some(r.vector_16(1)?),
            ExtensionType::PskKeyExchangeModes => self.psk_key_exchange_modes = Some(r.vector_8(1, usize::MAX)?),
            ExtensionType::KeyShare => self.key_share = Some(KeyShares::decode(&mut r)?),
            ExtensionType::MaxFragmentLength => self.max_fragment_length = Some(max_fragment_length(&mut r)?),
            ExtensionType::RecordSizeLimit => self.record_size_limit = Some(record_size_limit(&mut r)?),
            ExtensionType::EarlyData => self.early_data = true,
            ExtensionType::PreSharedKey => self.pre_shared_key = Some(OfferedPsks::decode(&mut r)?),
            // The server has no chains to choose from by it; only its form is held to.
            ExtensionType::CertificateAuthorities => drop(Authorities::decode(&mut r, 3)?),
            ExtensionType::ApplicationLayerProtocolNegotiation
            | ExtensionType::StatusRequest
            | ExtensionType::SignedCertificateTimestamp
            | ExtensionType::Padding
            | ExtensionType::PostHandshakeAuth => return Ok(()),
        }
        r.end()
    }

    /// Whether the client says that it knows of RFC 5746, by extension or by signal.
    #[must_use]
    pub fn offers_renegotiation_info(&self) -> bool {
        self.renegotiation_info.is_some() || self.suites.contains(RENEGOTIATION_SCSV)
    }

    /// Whether this hello is a retry with a lower version.
    #[must_use]
    pub fn is_fallback(&self) -> bool {
        self.suites.contains(FALLBACK_SCSV)
    }

    /// Whether the client names this version: in supported_versions, or at most its legacy_version where that is missing.
    #[must_use]
    pub fn offers_version(&self, version: u16) -> bool {
        match self.supported_versions {
            Some(versions) => versions.contains(version),
            None => version <= self.legacy_version && version <= crate::suite::Version::Tls12.wire(),
        }
    }

    /// Writes the whole message, extensions in the order of the fields.
    ///
    /// When full: [`Cause::Internal`].
    pub fn encode(&self, w: &mut Writer<'_>) -> Result<(), Cause> {
        w.message(Self::KIND, |w| {
            w.u16(self.legacy_version)?;
            w.bytes(self.random)?;
            w.vector_8(|w| w.bytes(self.session_id))?;
            w.list_16(self.suites)?;
            w.vector_8(|w| w.bytes(self.compression))?;
            w.extensions_or_nothing(|w| self.encode_extensions(w))
        })
    }

    fn encode_extensions(&self, w: &mut Writer<'_>) -> Result<(), Cause> {
        use ExtensionType as E;
        if let Some(name) = self.server_name {
            w.extension(E::ServerName, |w| {
                w.vector_16(|w| {
                    w.u8(HOST_NAME)?;
                    w.vector_16(|w| w.bytes(name))
                })
            })?;
        }
        if let Some(formats) = self.ec_point_formats {
            w.extension(E::EcPointFormats, |w| w.vector_8(|w| w.bytes(formats)))?;
        }
        list_16(w, E::SupportedGroups, self.supported_groups)?;
        if let Some(ticket) = self.session_ticket {
            w.extension(E::SessionTicket, |w| w.bytes(ticket))?;
        }
        if self.extended_master_secret {
            w.extension(E::ExtendedMasterSecret, |_| Ok(()))?;
        }
        if let Some(connection) = self.renegotiation_info {
            w.extension(E::RenegotiationInfo, |w| w.vector_8(|w| w.bytes(connection)))?;
        }
        list_16(w, E::SignatureAlgorithms, self.signature_algorithms)?;
        list_16(w, E::SignatureAlgorithmsCert, self.signature_algorithms_cert)?;
        if let Some(versions) = self.supported_versions {
            w.extension(E::SupportedVersions, |w| w.vector_8(|w| w.bytes(versions.bytes())))?;
        }
        if let Some(cookie) = self.cookie {
            w.extension(E::Cookie, |w| w.vector_16(|w| w.bytes(cookie)))?;
        }
        if let Some(modes) = self.psk_key_exchange_modes {
            w.extension(E::PskKeyExchangeModes, |w| w.vector_8(|w| w.bytes(modes)))?;
        }
        if let Some(shares) = self.key_share {
            w.extension(E::KeyShare, |w| w.vector_16(|w| w.bytes(shares.bytes)))?;
        }
        if let Some(code) = self.max_fragment_length {
            w.extension(E::MaxFragmentLength, |w| w.u8(code))?;
        }
        if let Some(limit) = self.record_size_limit {
            w.extension(E::RecordSizeLimit, |w| w.u16(limit))?;
        }
        if self.early_data {
            w.extension(E::EarlyData, |_| Ok(()))?;
        }
        if let Some(zeros) = self.padding {
            w.extension(E::Padding, |w| (0..zeros).try_for_each(|_| w.u8(0)))?;
        }
        if let Some(psks) = self.pre_shared_key {
            w.extension(E::PreSharedKey, |w| {
                w.vector_16(|w| w.bytes(psks.identities))?;
                w.vector_16(|w| w.bytes(psks.binders))
            })?;
        }
        Ok(())
    }
}

fn list_16(w: &mut Writer<'_>, kind: ExtensionType, list: Option<U16List<'_>>) -> Result<(), Cause> {
    match list {
        Some(list) => w.extension(kind, |w| w.list_16(list)),
        None => Ok(()),
    }
}

/// The NameType of a host name (RFC 6066 §3).
const HOST_NAME: u8 = 0;

/// The host name of a server_name list. Names of other types, which nobody ever defined, have the same shape and are passed over.
fn host_name<'a>(r: &mut Cursor<'a>) -> Result<Option<&'a [u8]>, Cause> {
    let list = r.vector_16(1)?;
    let mut names = r.within(list);
    let mut host = None;
    while !names.is_empty() {
        let kind = names.u8()?;
        let name = names.vector_16(1)?;
        if kind == HOST_NAME && host.replace(name).is_some() {
            return Err(names.illegal());
        }
    }
    Ok(host)
}

/// The code of a max_fragment_length (RFC 6066 §4).
pub(super) fn max_fragment_length(r: &mut Cursor<'_>) -> Result<u8, Cause> {
    match r.u8()? {
        code @ 1..=4 => Ok(code),
        _ => Err(r.illegal()),
    }
}

/// A record_size_limit (RFC 8449 §4).
pub(super) fn record_size_limit(r: &mut Cursor<'_>) -> Result<u16, Cause> {
    match r.u16()? {
        limit @ RECORD_SIZE_LIMIT_MIN.. => Ok(limit),
        _ => Err(r.illegal()),
    }
}

/// A share of a key exchange as it lies in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyShare<'a> {
    /// Its group's number.
    pub group: u16,
    /// The share: at least one byte.
    pub share: &'a [u8],
}

impl<'a> KeyShare<'a> {
    /// Reads a KeyShareEntry (RFC 8446 §4.2.8).
    pub fn decode(r: &mut Cursor<'a>) -> Result<Self, Cause> {
        Ok(Self {
            group: r.u16()?,
            share: r.vector_16(1)?,
        })
    }

    /// Writes a KeyShareEntry.
    pub fn encode(&self, w: &mut Writer<'_>) -> Result<(), Cause> {
        w.u16(self.group)?;
        w.vector_16(|w| w.bytes(self.share))
    }
}

/// The shares of a client, none of one group twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyShares<'a> {
    bytes: &'a [u8],
}

impl<'a> KeyShares<'a> {
    /// Shares that [`KeyShare::encode`] wrote one after the other.
    #[must_use]
    pub const fn new(encoded: &'a [u8]) -> Self {
        Self { bytes: encoded }
    }

    fn decode(r: &mut Cursor<'a>) -> Result<Self, Cause> {
        let bytes = r.vector_16(0)?;
        let mut walk = r.within(bytes);
        while !walk.is_empty() {
            KeyShare::decode(&mut walk)?;
        }
        let shares = Self { bytes };
        if repeats(shares.iter().map(|share| share.group)) {
            return Err(r.illegal());
        }
        Ok(shares)
    }

    /// Each share, in the client's order.
    pub fn iter(&self) -> impl Iterator<Item = KeyShare<'a>> + Clone + use<'a> {
        Cursor::new(ClientHello::KIND, self.bytes).each(KeyShare::decode)
    }

    /// The share of one group.
    #[must_use]
    pub fn find(&self, group: u16) -> Option<&'a [u8]> {
        self.iter().find(|share| share.group == group).map(|share| share.share)
    }
}

/// What pre_shared_key offers (RFC 8446 §4.2.11): as many binders as identities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfferedPsks<'a> {
    identities: &'a [u8],
    binders: &'a [u8],
}

/// One offered key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PskIdentity<'a> {
    /// Its name: here a ticket.
    pub identity: &'a [u8],
    /// How old the client thinks it is, in milliseconds, plus what the ticket told to add, modulo 2^32.
    pub obfuscated_ticket_age: u32,
}

impl<'a> PskIdentity<'a> {
    fn decode(r: &mut Cursor<'a>) -> Result<Self, Cause> {
        Ok(Self {
            identity: r.vector_16(1)?,
            obfuscated_ticket_age: r.u32()?,
        })
    }

    /// Writes a PskIdentity.
    pub fn encode(&self, w: &mut Writer<'_>) -> Result<(), Cause> {
        w.vector_16(|w| w.bytes(self.identity))?;
        w.u32(self.obfuscated_ticket_age)
    }
}

/// The least and the most bytes of a binder.
const BINDER_BYTES: core::ops::RangeInclusive<usize> = 32..=255;

impl<'a> OfferedPsks<'a> {
    /// Identities that [`PskIdentity::encode`] wrote one after the other, and binders each with its one-byte length.
    #[must_use]
    pub const fn new(identities: &'a [u8], binders: &'a [u8]) -> Self {
        Self { identities, binders }
    }

    fn decode(r: &mut Cursor<'a>) -> Result<Self, Cause> {
        let identities = r.vector_16(7)?;
        let binders = r.vector_16(33)?;
        let count = |bytes, read: fn(&mut Cursor<'a>) -> Result<(), Cause>| -> Result<usize, Cause> {
            let mut walk = r.within(bytes);
            let mut count = 0_usize;
            while !walk.is_empty() {
                read(&mut walk)?;
                count += 1;
            }
            Ok::<_, Cause>(count)
        };
        let identity_count = count(identities, |r| PskIdentity::decode(r).map(drop))?;
        let binder_count = count(binders, |r| binder(r).map(drop))?;
        if identity_count == binder_count {
            Ok(Self { identities, binders })
        } else {
            Err(r.illegal())
        }
    }

    /// Each identity, in the client's order. There may be thousands in one hello: the caller bounds how many it tries.
    pub fn identities(&self) -> impl Iterator<Item = PskIdentity<'a>> + Clone + use<'a> {
        Cursor::new(ClientHello::KIND, self.identities).each(PskIdentity::decode)
    }

    /// Each binder, in the order of the identities.
    pub fn binders(&self) -> impl Iterator<Item = &'a [u8]> + Clone + use<'a> {
        Cursor::new(ClientHello::KIND, self.binders).each(binder)
    }

    /// Bytes of the list of binders with its length. A binder is made over the message without them: `raw.len() - binders_bytes()` bytes
    /// of it, header included (RFC 8446 §4.2.11.2).
    #[must_use]
    pub const fn binders_bytes(&self) -> usize {
        2 + self.binders.len()
    }
}

fn binder<'a>(r: &mut Cursor<'a>) -> Result<&'a [u8], Cause> {
    r.vector_8(*BINDER_BYTES.start(), *BINDER_BYTES.end())
}
