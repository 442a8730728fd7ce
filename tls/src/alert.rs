//! Alerts: the one word that a peer is told before a connection ends (RFC 8446 §6).

macro_rules! alerts {
    ($($(#[doc = $doc:literal])* $name:ident = $value:literal $text:literal,)*) => {
        /// An alert description. Whether it is a warning or fatal follows from it: only `CloseNotify`, `UserCanceled` and
        /// `NoRenegotiation` are warnings when we send them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Alert {
            $($(#[doc = $doc])* $name = $value,)*
        }

        impl Alert {
            /// Every alert that has a name here.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The alert of that number, if it is one that RFC 8446, RFC 5246, RFC 6066 or RFC 7507 name.
            #[must_use]
            pub const fn from_wire(value: u8) -> Option<Self> {
                match value {
                    $($value => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// Its name as the RFCs spell it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

alerts! {
    /// The sender sends no more.
    CloseNotify = 0 "close_notify",
    /// A message that has no place here.
    UnexpectedMessage = 10 "unexpected_message",
    /// A record that does not open.
    BadRecordMac = 20 "bad_record_mac",
    /// A record that is too long.
    RecordOverflow = 22 "record_overflow",
    /// A record that cannot be decompressed. Compression is not spoken here; old peers may say it.
    DecompressionFailure = 30 "decompression_failure",
    /// Nothing in common.
    HandshakeFailure = 40 "handshake_failure",
    /// A certificate that cannot be read or is signed wrongly.
    BadCertificate = 42 "bad_certificate",
    /// A certificate of a kind that is not taken.
    UnsupportedCertificate = 43 "unsupported_certificate",
    /// A certificate that was revoked.
    CertificateRevoked = 44 "certificate_revoked",
    /// A certificate out of its dates.
    CertificateExpired = 45 "certificate_expired",
    /// Something else about a certificate.
    CertificateUnknown = 46 "certificate_unknown",
    /// A field that contradicts others.
    IllegalParameter = 47 "illegal_parameter",
    /// No anchor for the chain.
    UnknownCa = 48 "unknown_ca",
    /// Valid, and still not let in.
    AccessDenied = 49 "access_denied",
    /// A message that cannot be read.
    DecodeError = 50 "decode_error",
    /// A signature, Finished or binder that is wrong.
    DecryptError = 51 "decrypt_error",
    /// No version in common.
    ProtocolVersion = 70 "protocol_version",
    /// Weaker than what is asked for here.
    InsufficientSecurity = 71 "insufficient_security",
    /// Not the peer's doing.
    InternalError = 80 "internal_error",
    /// A fallback that was not needed (RFC 7507).
    InappropriateFallback = 86 "inappropriate_fallback",
    /// The user gave up.
    UserCanceled = 90 "user_canceled",
    /// TLS 1.2: no second handshake here.
    NoRenegotiation = 100 "no_renegotiation",
    /// An extension that must be there is not.
    MissingExtension = 109 "missing_extension",
    /// An extension that was not asked for.
    UnsupportedExtension = 110 "unsupported_extension",
    /// No such name here (RFC 6066).
    UnrecognizedName = 112 "unrecognized_name",
    /// A stapled status that is wrong.
    BadCertificateStatusResponse = 113 "bad_certificate_status_response",
    /// No such pre-shared key.
    UnknownPskIdentity = 115 "unknown_psk_identity",
    /// A client certificate is required.
    CertificateRequired = 116 "certificate_required",
    /// No application protocol in common.
    NoApplicationProtocol = 120 "no_application_protocol",
}

impl Alert {
    /// The level byte of its message: 1 a warning, 2 fatal.
    #[must_use]
    pub const fn level(self) -> u8 {
        match self {
            Self::CloseNotify | Self::UserCanceled | Self::NoRenegotiation => 1,
            _ => 2,
        }
    }
}
