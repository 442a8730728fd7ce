//! Why a handshake or a connection failed: one cause, its alert, a stable identifier, and one sentence of cure.

use crate::alert::Alert;
use crate::crypto::CryptoError;
use crate::state::StateId;

/// What arrived, for a cause that is about order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Met {
    /// A handshake message, by its type.
    Handshake(u8),
    /// A record, by its content type.
    Record(u8),
}

/// What a peer speaks on a TLS port instead of TLS, as its first bytes tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Spoken {
    /// A Kafka request without TLS.
    Kafka,
    /// HTTP.
    Http,
    /// SSLv2 framing.
    Sslv2,
    /// Something else.
    Unknown,
}

/// Why it failed. `Copy`, no text of the peer's; what the log adds (names, dates, offers) is kept beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The peer offers no version that is enabled here; the highest that it named.
    NoCommonVersion(u16),
    /// TLS_FALLBACK_SCSV below our best (RFC 7507).
    InappropriateFallback,
    /// No cipher suite in common.
    NoCommonSuite,
    /// No key-exchange group in common.
    NoCommonGroup,
    /// No signature scheme in common with our certificate.
    NoCommonScheme,
    /// An extension that must be there is not; its number.
    MissingExtension(u16),
    /// An extension that was not asked for; its number.
    UnsupportedExtension(u16),
    /// A message that cannot be read; its type.
    Decode(u8),
    /// A message that can be read and makes no sense; its type.
    IllegalParameter(u8),
    /// A message with no place in this state.
    OutOfSequence {
        /// Where we stood.
        state: StateId,
        /// What came.
        met: Met,
    },
    /// A record longer than allowed.
    RecordOverflow,
    /// A record that does not open.
    BadRecordMac,
    /// A record of no known type, or one without content where some must be.
    BadRecord,
    /// A record of a version that none may have.
    RecordVersion(u16),
    /// A record without protection where keys are on.
    Unprotected,
    /// The keys have protected as many records as they may, and were not updated.
    KeyExhausted,
    /// A handshake message longer than the bound.
    HandshakeTooLong,
    /// More certificates than [`crate::certificate::CHAIN_COUNT_MAX`].
    ChainTooLong,
    /// Too many records without content in a row.
    TooManyEmptyRecords,
    /// Too many KeyUpdates, or warnings, without data between them.
    TooManyUpdates,
    /// More early data than is skipped.
    TooMuchEarlyData,
    /// TLS 1.2: a second handshake was asked for twice.
    Renegotiation,
    /// A wrong CertificateVerify or ServerKeyExchange.
    BadSignature,
    /// A wrong Finished.
    BadFinished,
    /// A wrong PSK binder.
    BadBinder,
    /// A share that is no point of its group.
    BadShare,
    /// A certificate past its last day.
    CertificateExpired,
    /// A certificate before its first day.
    CertificateNotYetValid,
    /// No trust anchor for the chain.
    UnknownCa,
    /// A certificate for another use (key usage, extended key usage).
    CertificateUsage,
    /// A certificate for another name.
    CertificateName,
    /// A certificate that configuration revokes.
    CertificateRevoked,
    /// A certificate that cannot be read.
    CertificateUnreadable,
    /// A signature in the chain that does not hold.
    CertificateSignature,
    /// A chain that breaks a rule of RFC 5280 (constraints, path length, critical extensions).
    CertificateChain,
    /// A key or signature algorithm that is not taken (SHA-1, MD5, RSA below 2048 bits, other curves).
    CertificateUnsupported,
    /// A client certificate is required and none came.
    ClientCertificateMissing,
    /// The peer speaks no TLS.
    PlaintextPeer(Spoken),
    /// TLS on a listener without it.
    TlsOnPlaintext,
    /// The peer gave up with this alert.
    PeerAlert(Alert),
    /// The peer gave up with an alert of no known number.
    PeerAlertUnknown(u8),
    /// The handshake deadline passed in this state.
    Timeout(StateId),
    /// The peer reset the connection in this state.
    Reset(StateId),
    /// The peer closed the connection in this state.
    Closed(StateId),
    /// mbedtls's fixed heap is full.
    ArenaFull,
    /// A library or its random source failed.
    Internal,
}

/// What goes on the wire for a cause: at most one alert.
impl Cause {
    /// The alert that tells the peer, or `None` where none is sent (the peer does not speak TLS, or is gone).
    #[must_use]
    pub const fn alert(self) -> Option<Alert> {
        Some(match self {
            Self::NoCommonVersion(_) | Self::RecordVersion(_) => Alert::ProtocolVersion,
            Self::InappropriateFallback => Alert::InappropriateFallback,
            Self::NoCommonSuite | Self::NoCommonGroup | Self::NoCommonScheme | Self::Renegotiation => {
                Alert::HandshakeFailure
            }
            Self::MissingExtension(_) => Alert::MissingExtension,
            Self::UnsupportedExtension(_) => Alert::UnsupportedExtension,
            Self::Decode(_) => Alert::DecodeError,
            Self::IllegalParameter(_) | Self::BadShare => Alert::IllegalParameter,
            Self::OutOfSequence { .. }
            | Self::BadRecord
            | Self::Unprotected
            | Self::TooManyEmptyRecords
            | Self::TooManyUpdates
            | Self::TooMuchEarlyData => Alert::UnexpectedMessage,
            Self::RecordOverflow => Alert::RecordOverflow,
            Self::BadRecordMac => Alert::BadRecordMac,
            Self::HandshakeTooLong | Self::ChainTooLong => Alert::IllegalParameter,
            Self::BadSignature | Self::BadFinished | Self::BadBinder => Alert::DecryptError,
            Self::CertificateExpired | Self::CertificateNotYetValid => Alert::CertificateExpired,
            Self::UnknownCa => Alert::UnknownCa,
            Self::CertificateUsage | Self::CertificateUnsupported => Alert::UnsupportedCertificate,
            Self::CertificateName
            | Self::CertificateUnreadable
            | Self::CertificateSignature
            | Self::CertificateChain => Alert::BadCertificate,
            Self::CertificateRevoked => Alert::CertificateRevoked,
            Self::ClientCertificateMissing => Alert::CertificateRequired,
            Self::TlsOnPlaintext => Alert::HandshakeFailure,
            Self::ArenaFull | Self::Internal | Self::KeyExhausted => Alert::InternalError,
            Self::Timeout(_) => Alert::UserCanceled,
            Self::PlaintextPeer(_)
            | Self::PeerAlert(_)
            | Self::PeerAlertUnknown(_)
            | Self::Reset(_)
            | Self::Closed(_) => return None,
        })
    }
}

/// For primitives whose refusal is nobody's doing. Whoever shows a peer's bytes to one says first what [`CryptoError::Rejected`] means there.
impl From<CryptoError> for Cause {
    fn from(error: CryptoError) -> Self {
        match error {
            CryptoError::ArenaFull => Self::ArenaFull,
            CryptoError::Rejected | CryptoError::Failed => Self::Internal,
        }
    }
}
