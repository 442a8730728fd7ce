//! Extensions: their numbers, and a block of them that is checked once and then walked (RFC 8446 §4.2).

use super::codec::repeats;
use super::{Cursor, HandshakeType};
use crate::cause::Cause;

macro_rules! extension_types {
    ($($name:ident = $value:literal $text:literal,)*) => {
        /// The number of an extension that is read or written here.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum ExtensionType {
            $(
                #[doc = concat!("`", $text, "`.")]
                $name = $value,
            )*
        }

        impl ExtensionType {
            /// Every extension that has a name here.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The extension of that number, if it has a name here.
            #[must_use]
            pub const fn from_wire(value: u16) -> Option<Self> {
                match value {
                    $($value => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// Its name in the IANA registry.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

extension_types! {
    ServerName = 0 "server_name",
    MaxFragmentLength = 1 "max_fragment_length",
    StatusRequest = 5 "status_request",
    SupportedGroups = 10 "supported_groups",
    EcPointFormats = 11 "ec_point_formats",
    SignatureAlgorithms = 13 "signature_algorithms",
    ApplicationLayerProtocolNegotiation = 16 "application_layer_protocol_negotiation",
    SignedCertificateTimestamp = 18 "signed_certificate_timestamp",
    Padding = 21 "padding",
    ExtendedMasterSecret = 23 "extended_master_secret",
    RecordSizeLimit = 28 "record_size_limit",
    SessionTicket = 35 "session_ticket",
    PreSharedKey = 41 "pre_shared_key",
    EarlyData = 42 "early_data",
    SupportedVersions = 43 "supported_versions",
    Cookie = 44 "cookie",
    PskKeyExchangeModes = 45 "psk_key_exchange_modes",
    CertificateAuthorities = 47 "certificate_authorities",
    PostHandshakeAuth = 49 "post_handshake_auth",
    SignatureAlgorithmsCert = 50 "signature_algorithms_cert",
    KeyShare = 51 "key_share",
    RenegotiationInfo = 0xff01 "renegotiation_info",
}

impl ExtensionType {
    /// Its number on the wire.
    #[must_use]
    pub const fn wire(self) -> u16 {
        self as u16
    }

    /// Whether a client of ours ever asks for it. Padding asks for nothing.
    const fn is_offered(self) -> bool {
        !matches!(
            self,
            Self::StatusRequest
                | Self::ApplicationLayerProtocolNegotiation
                | Self::SignedCertificateTimestamp
                | Self::Padding
                | Self::EarlyData
                | Self::CertificateAuthorities
                | Self::PostHandshakeAuth
        )
    }
}

/// One extension as it lies in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extension<'a> {
    /// Its number.
    pub kind: u16,
    /// Its data.
    pub data: &'a [u8],
}

impl<'a> Extension<'a> {
    fn decode(r: &mut Cursor<'a>) -> Result<Self, Cause> {
        Ok(Self {
            kind: r.u16()?,
            data: r.vector_16(0)?,
        })
    }

    /// What to say of it in a message of a server's that it does not belong in: one that has a name here belongs to another message
    /// (RFC 8446 §4.2: illegal_parameter); any other was never asked for.
    pub(super) const fn misplaced(&self, r: Cursor<'_>) -> Cause {
        match ExtensionType::from_wire(self.kind) {
            Some(kind) if kind.is_offered() => r.illegal(),
            _ => Cause::UnsupportedExtension(self.kind),
        }
    }
}

/// A block of extensions whose structure was checked, none of them twice. Its two-byte length bounds it: 16,383 empty ones.
#[derive(Clone, Copy, Debug)]
pub struct Extensions<'a> {
    cursor: Cursor<'a>,
}

impl<'a> Extensions<'a> {
    /// No extension, in a message of this kind.
    #[must_use]
    pub const fn none(kind: HandshakeType) -> Self {
        Self {
            cursor: Cursor::new(kind, &[]),
        }
    }

    /// Reads a block with its two-byte length.
    ///
    /// Errors: [`Cause::IllegalParameter`] when one comes twice, known or not.
    /// Cost: linear, whatever the peer sends.
    pub fn decode(r: &mut Cursor<'a>) -> Result<Self, Cause> {
        let bytes = r.vector_16(0)?;
        let mut walk = r.within(bytes);
        while !walk.is_empty() {
            Extension::decode(&mut walk)?;
        }
        let block = Self {
            cursor: r.within(bytes),
        };
        if repeats(block.iter().map(|extension| extension.kind)) {
            return Err(r.illegal());
        }
        Ok(block)
    }

    /// Each extension, in the peer's order.
    pub fn iter(&self) -> impl Iterator<Item = Extension<'a>> + Clone + use<'a> {
        self.cursor.each(Extension::decode)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::message::{HandshakeType, Writer};

    fn block(kinds: impl Iterator<Item = u16>) -> Result<usize, Cause> {
        let mut bytes = vec![0; 1 << 17];
        let mut w = Writer::new(&mut bytes);
        w.vector_16(|w| {
            for kind in kinds {
                w.u16(kind)?;
                w.u16(0)?;
            }
            Ok(())
        })
        .unwrap();
        let mut r = Cursor::new(HandshakeType::ServerHello, w.as_slice());
        Extensions::decode(&mut r).map(|block| block.iter().count())
    }

    #[test]
    fn none_may_come_twice_known_or_not() {
        assert_eq!(block([0, 10, 0x0a0a, 0xff01, 8191, 8192, 0xffff].into_iter()), Ok(7));
        for twice in [0, 0x0a0a, 0xff01] {
            let block = block([twice, 5, 0xaaaa, twice].into_iter());
            assert_eq!(block, Err(Cause::IllegalParameter(2)), "{twice}");
        }
    }

    #[test]
    fn a_block_as_long_as_can_be_is_read() {
        assert_eq!(block((0..16_383).map(|n| n * 4)), Ok(16_383));
        assert_eq!(
            block((0..16_382).map(|n| n * 4).chain([4])),
            Err(Cause::IllegalParameter(2))
        );
    }
}
