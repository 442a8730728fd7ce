//! CertificateRequest: TLS 1.3's (RFC 8446 §4.3.2) and TLS 1.2's (RFC 5246 §7.4.4).

use super::{Cursor, ExtensionType, Extensions, HandshakeType, U16List, Writer};
use crate::cause::Cause;

/// The names of those whom a server trusts, each a DER DistinguishedName that is not empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Authorities<'a> {
    bytes: &'a [u8],
}

impl<'a> Authorities<'a> {
    /// Names as they go on the wire: each after its two-byte length, one after the other.
    #[must_use]
    pub const fn new(encoded: &'a [u8]) -> Self {
        Self { bytes: encoded }
    }

    pub(super) fn decode(r: &mut Cursor<'a>, min: usize) -> Result<Self, Cause> {
        let bytes = r.vector_16(min)?;
        let mut walk = r.within(bytes);
        while !walk.is_empty() {
            walk.vector_16(1)?;
        }
        Ok(Self { bytes })
    }

    /// Each name.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + Clone + use<'a> {
        Cursor::new(HandshakeType::CertificateRequest, self.bytes).each(|r| r.vector_16(1))
    }
}

/// A TLS 1.3 server asks for a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CertificateRequest13<'a> {
    /// signature_algorithms: what the client's signature may be.
    pub signature_algorithms: U16List<'a>,
    /// signature_algorithms_cert: what its chain may be signed by.
    pub signature_algorithms_cert: Option<U16List<'a>>,
    /// certificate_authorities: not empty when there.
    pub authorities: Option<Authorities<'a>>,
}

impl<'a> CertificateRequest13<'a> {
    /// Its type.
    pub const KIND: HandshakeType = HandshakeType::CertificateRequest;

    /// Reads the body of a message. Extensions of no name here are passed over, as RFC 8446 §4.3.2 asks.
    ///
    /// Errors: [`Cause::Decode`] for structure; [`Cause::IllegalParameter`] for a context, which only authentication after the handshake
    ///   has, and an extension that comes twice; [`Cause::MissingExtension`] without signature_algorithms.
    pub fn decode(body: &'a [u8]) -> Result<Self, Cause> {
        let mut r = Cursor::new(Self::KIND, body);
        let context = r.vector_8(0, usize::MAX)?;
        let block = Extensions::decode(&mut r)?;
        r.end()?;
        if !context.is_empty() {
            return Err(r.illegal());
        }
        let (mut schemes, mut schemes_cert, mut authorities) = (None, None, None);
        for extension in block.iter() {
            let mut r = r.within(extension.data);
            match ExtensionType::from_wire(extension.kind) {
                Some(ExtensionType::SignatureAlgorithms) => schemes = Some(r.list_16()?),
                Some(ExtensionType::SignatureAlgorithmsCert) => schemes_cert = Some(r.list_16()?),
                Some(ExtensionType::CertificateAuthorities) => authorities = Some(Authorities::decode(&mut r, 3)?),
                _ => continue,
            }
            r.end()?;
        }
        Ok(Self {
            signature_algorithms: schemes.ok_or(Cause::MissingExtension(ExtensionType::SignatureAlgorithms.wire()))?,
            signature_algorithms_cert: schemes_cert,
            authorities,
        })
    }

    /// Writes the whole message, extensions in the order of the fields.
    ///
    /// When full: [`Cause::Internal`].
    pub fn encode(&self, w: &mut Writer<'_>) -> Result<(), Cause> {
        w.message(Self::KIND, |w| {
            w.u8(0)?;
            w.vector_16(|w| {
                w.extension(ExtensionType::SignatureAlgorithms, |w| {
                    w.list_16(self.signature_algorithms)
                })?;
                if let Some(schemes) = self.signature_algorithms_cert {
                    w.extension(ExtensionType::SignatureAlgorithmsCert, |w| w.list_16(schemes))?;
                }
                if let Some(authorities) = self.authorities {
                    w.extension(ExtensionType::CertificateAuthorities, |w| {
                        w.vector_16(|w| w.bytes(authorities.bytes))
                    })?;
                }
                Ok(())
            })
        })
    }
}

/// `rsa_sign`: an RSA certificate (RFC 5246 §7.4.4).
pub const CERTIFICATE_TYPE_RSA: u8 = 1;
/// `ecdsa_sign`: a certificate with an elliptic curve's key (RFC 8422 §5.5).
pub const CERTIFICATE_TYPE_ECDSA: u8 = 64;

/// A TLS 1.2 server asks for a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CertificateRequest12<'a> {
    /// `certificate_types`.
    pub certificate_types: &'a [u8],
    /// `supported_signature_algorithms`.
    pub signature_algorithms: U16List<'a>,
    /// `certificate_authorities`: may be none.
    pub authorities: Authorities<'a>,
}

impl<'a> CertificateRequest12<'a> {
    /// Its type.
    pub const KIND: HandshakeType = HandshakeType::CertificateRequest;

    /// Reads the body of a message.
    ///
    /// Errors: [`Cause::Decode`].
    pub fn decode(body: &'a [u8]) -> Result<Self, Cause> {
        let mut r = Cursor::new(Self::KIND, body);
        let it = Self {
            certificate_types: r.vector_8(1, usize::MAX)?,
            signature_algorithms: r.list_16()?,
            authorities: Authorities::decode(&mut r, 0)?,
        };
        r.end()?;
        Ok(it)
    }

    /// Writes the whole message.
    ///
    /// When full: [`Cause::Internal`].
    pub fn encode(&self, w: &mut Writer<'_>) -> Result<(), Cause> {
        w.message(Self::KIND, |w| {
            w.vector_8(|w| w.bytes(self.certificate_types))?;
            w.list_16(self.signature_algorithms)?;
            w.vector_16(|w| w.bytes(self.authorities.bytes))
        })
    }
}
