//! Why a handshake or a connection failed: one cause, its alert, a stable identifier, and one sentence of cure.

use core::fmt;

use crate::alert::Alert;
use crate::crypto::CryptoError;
use crate::message::HandshakeType;
use crate::record::ContentType;
use crate::state::StateId;

/// What arrived, for a cause that is about order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Met {
    /// A handshake message, by its type.
    Handshake(u8),
    /// A record, by its content type.
    Record(u8),
}

/// The name that the RFCs give it, or its number.
impl fmt::Display for Met {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Handshake(number) => match HandshakeType::from_wire(number) {
                Some(kind) => f.write_str(kind.name()),
                None => write!(f, "handshake message {number}"),
            },
            Self::Record(number) => match ContentType::from_wire(number) {
                Some(kind) => f.write_str(kind.name()),
                None => write!(f, "record type {number}"),
            },
        }
    }
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

impl fmt::Display for Spoken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kafka => "Kafka",
            Self::Http => "HTTP",
            Self::Sslv2 => "SSL 2.0",
            Self::Unknown => "no protocol that is known here",
        })
    }
}

/// A rule about certificates and chains (RFC 5280) that was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// A critical extension that is not known here (§4.2).
    Critical,
    /// An issuer that is no CA: basic constraints, or keyCertSign (§4.2.1.9, §4.2.1.3).
    Issuer,
    /// More CAs between an issuer and the leaf than it allows (§4.2.1.9), or than are allowed here.
    PathLength,
    /// A name outside of what an issuer may name (§4.2.1.10).
    NameConstraint,
    /// What §4.1 and §4.2 ask of those who write certificates, where they are held to it.
    Profile,
    /// No path to a trust anchor within the signatures and combinations that are tried.
    Search,
}

impl Rule {
    const fn cure(self) -> &'static str {
        match self {
            Self::Critical => "issue the certificate without the critical extension that is not known here",
            Self::Issuer => "issue the CA certificate anew with basicConstraints CA:TRUE and keyUsage keyCertSign",
            Self::PathLength => "issue the CA certificate with a greater path length, or use fewer intermediate CAs",
            Self::NameConstraint => "issue the certificate for names that every CA of the chain may name",
            Self::Profile => "issue the certificate anew by RFC 5280, or let private certificates be less strict",
            Self::Search => "send the leaf and its intermediate certificates only, in their order",
        }
    }
}

macro_rules! alert {
    (none) => {
        None
    };
    ($alert:ident) => {
        Some(Alert::$alert)
    };
}

macro_rules! causes {
    ($($(#[doc = $doc:literal])* $name:ident $(($inner:ty))? $({ $($(#[doc = $field_doc:literal])* $field:ident: $type:ty,)* })?
        = $id:literal $alert:tt $cure:literal,)*) => {
        /// Why it failed. `Copy`, no text of the peer's; what the log adds (names, dates, offers) is kept beside it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Cause {
            $($(#[doc = $doc])* $name $(($inner))? $({ $($(#[doc = $field_doc])* $field: $type,)* })?,)*
        }

        impl Cause {
            /// Every identifier: one for each kind of cause, for counters.
            pub const IDS: &[&str] = &[$($id,)*];

            /// Its stable identifier, for logs, metrics and alarms built on them.
            #[must_use]
            pub const fn id(self) -> &'static str {
                match self {
                    $(Self::$name { .. } => $id,)*
                }
            }

            /// The alert that tells the peer, or `None` where none is sent (the peer does not speak TLS, or is gone).
            #[must_use]
            #[allow(unreachable_patterns, reason = "those that say more than their row")]
            pub const fn alert(self) -> Option<Alert> {
                match self {
                    Self::RefusedHere(alert) => Some(alert),
                    $(Self::$name { .. } => alert!($alert),)*
                }
            }

            /// What to change, as the end of a sentence.
            #[must_use]
            #[allow(unreachable_patterns, reason = "a cause whose cure depends on what it carries is answered before its row")]
            pub const fn cure(self) -> &'static str {
                match self {
                    Self::PeerAlert(alert) => after(alert),
                    Self::CertificateChain(rule) => rule.cure(),
                    $(Self::$name { .. } => $cure,)*
                }
            }
        }
    };
}

causes! {
    /// The peer offers no version that is enabled here; the highest that it named.
    NoCommonVersion(u16) = "no_common_version" ProtocolVersion
        "enable TLSv1.2 or TLSv1.3 on the client, or its version here (ssl.enabled.protocols)",
    /// TLS_FALLBACK_SCSV below our best (RFC 7507).
    InappropriateFallback = "inappropriate_fallback" InappropriateFallback
        "the client came again with an older version than both sides speak: find what broke its first try",
    /// No cipher suite in common.
    NoCommonSuite = "no_common_suite" HandshakeFailure
        "enable a suite that the other side offers (ssl.cipher.suites); TLS 1.2 needs ECDHE with AES-GCM or ChaCha20-Poly1305 that suits the certificate's key",
    /// No key-exchange group in common.
    NoCommonGroup = "no_common_group" HandshakeFailure
        "enable x25519 or secp256r1 (P-256) on the other side",
    /// No signature scheme in common with the certificate.
    NoCommonScheme = "no_common_scheme" HandshakeFailure
        "take a certificate whose key the other side can check: ECDSA P-256 and RSA suit nearly everyone",
    /// An extension that must be there is not; its number.
    MissingExtension(u16) = "missing_extension" MissingExtension
        "the other side breaks RFC 8446: update its TLS library",
    /// An extension that was not asked for; its number.
    UnsupportedExtension(u16) = "unsupported_extension" UnsupportedExtension
        "the other side breaks RFC 8446: update its TLS library",
    /// A message that cannot be read; its type.
    Decode(u8) = "decode_error" DecodeError
        "the other side sent a malformed message: update its TLS library, or look for what changes bytes on the way",
    /// A message that can be read and makes no sense; its type.
    IllegalParameter(u8) = "illegal_parameter" IllegalParameter
        "the other side contradicts itself: update its TLS library, or look for what changes bytes on the way",
    /// A message with no place in this state.
    OutOfSequence {
        /// Where we stood.
        state: StateId,
        /// What came.
        met: Met,
    } = "out_of_sequence" UnexpectedMessage
        "the other side sent a message in the wrong place: update its TLS library; nothing here needs a change",
    /// A record longer than allowed.
    RecordOverflow = "record_overflow" RecordOverflow
        "the other side sends records over the limit: update its TLS library",
    /// A record that does not open.
    BadRecordMac = "bad_record_mac" BadRecordMac
        "bytes were changed on the way, or the other side's keys differ: look for a proxy or a faulty link",
    /// A record of no known type, or one without content where some must be.
    BadRecord = "bad_record" UnexpectedMessage
        "the other side sent something that is not TLS: look for another protocol, or a proxy, on this port",
    /// A record of a version that none may have.
    RecordVersion(u16) = "bad_record_version" ProtocolVersion
        "the other side speaks a version before TLS 1.0, or no TLS",
    /// A record without protection where keys are on.
    Unprotected = "unprotected_record" UnexpectedMessage
        "plain bytes came where protected ones must: look for what puts bytes in on the way",
    /// The keys have protected as many records as they may, and were not updated.
    KeyExhausted = "key_exhausted" InternalError
        "connect again: only TLS 1.2 connections that stay very long reach this",
    /// A handshake message longer than the bound.
    HandshakeTooLong = "handshake_too_long" IllegalParameter
        "send a shorter certificate chain: leaf and intermediates only",
    /// More certificates than [`crate::certificate::CHAIN_COUNT_MAX`].
    ChainTooLong = "chain_too_long" IllegalParameter
        "send a shorter certificate chain: leaf and intermediates only",
    /// An alert that is not two bytes.
    BadAlert = "bad_alert" DecodeError
        "the other side sent a malformed alert: update its TLS library",
    /// Too many records without content in a row.
    TooManyEmptyRecords = "too_many_empty_records" UnexpectedMessage
        "the other side floods with empty records: nothing here needs a change",
    /// Too many KeyUpdates, or warnings, without data between them.
    TooManyUpdates = "too_many_updates" UnexpectedMessage
        "the other side floods with key updates or warnings: nothing here needs a change",
    /// More early data than is skipped.
    TooMuchEarlyData = "too_much_early_data" UnexpectedMessage
        "turn early data (0-RTT) off on the other side",
    /// TLS 1.2: a second handshake was asked for twice.
    Renegotiation = "renegotiation" HandshakeFailure
        "turn renegotiation off on the other side: it is refused here",
    /// TLS 1.2: extended_master_secret on one of a session and its resumption, and not on the other (RFC 7627 §5.3).
    MasterSecretChanged = "master_secret_changed" HandshakeFailure
        "the other side changed between a session and its resumption: connect again for a new session",
    /// A wrong CertificateVerify or ServerKeyExchange.
    BadSignature = "bad_signature" DecryptError
        "the other side's key does not match its certificate: renew its key store",
    /// A wrong Finished.
    BadFinished = "bad_finished" DecryptError
        "both sides saw different handshakes: look for what changes bytes on the way",
    /// A wrong PSK binder.
    BadBinder = "bad_binder" DecryptError
        "the client's stored session is damaged: restart it",
    /// A share that is no point of its group.
    BadShare = "bad_share" IllegalParameter
        "the other side's key share is invalid: update its TLS library",
    /// A certificate past its last day.
    CertificateExpired = "certificate_expired" CertificateExpired
        "renew the certificate, or set the clock that is wrong",
    /// A certificate before its first day.
    CertificateNotYetValid = "certificate_not_yet_valid" CertificateExpired
        "set the clock that is wrong, here or where the certificate was made",
    /// No trust anchor for the chain.
    UnknownCa = "unknown_ca" UnknownCa
        "add the CA that issued the certificate to ssl.truststore.location, or have the other side send its intermediate certificates",
    /// A certificate for another use (key usage, extended key usage).
    CertificateUsage = "certificate_usage" UnsupportedCertificate
        "issue the certificate for this use: digitalSignature, with clientAuth for clients and serverAuth for servers",
    /// A certificate for another name.
    CertificateName = "certificate_name" BadCertificate
        "issue the certificate with a subjectAltName for the name or address that is connected to",
    /// A certificate that configuration revokes.
    CertificateRevoked = "certificate_revoked" CertificateRevoked
        "issue a new certificate, or take this one off the list of revoked ones",
    /// A certificate that cannot be read.
    CertificateUnreadable = "certificate_unreadable" BadCertificate
        "issue the certificate anew: its DER is malformed",
    /// A signature in the chain that does not hold.
    CertificateSignature = "certificate_signature" BadCertificate
        "one certificate of the chain was not signed by the next: build the chain from one CA's files",
    /// A chain that breaks a rule of RFC 5280 (constraints, path length, critical extensions).
    CertificateChain(Rule) = "certificate_chain" BadCertificate
        "issue the chain anew by RFC 5280",
    /// A key or signature algorithm that is not taken (SHA-1, MD5, RSA below 2048 bits, other curves).
    CertificateUnsupported = "certificate_unsupported" UnsupportedCertificate
        "issue the certificate with ECDSA P-256 or P-384, or RSA of 2048 bits or more, signed with SHA-256 or better",
    /// A client certificate is required and none came.
    ClientCertificateMissing = "client_certificate_missing" CertificateRequired
        "give the client a key store (ssl.keystore.location), or set ssl.client.auth=requested here",
    /// The peer speaks no TLS.
    PlaintextPeer(Spoken) = "plaintext_peer" none
        "set security.protocol=SSL on the client, or point it at a PLAINTEXT listener",
    /// TLS on a listener without it.
    TlsOnPlaintext = "tls_on_plaintext" HandshakeFailure
        "set security.protocol=PLAINTEXT on the client, or point it at an SSL listener",
    /// The peer gave up with this alert.
    PeerAlert(Alert) = "peer_alert" none
        "read the other side's log: it ended the handshake",
    /// The peer gave up with an alert of no known number.
    PeerAlertUnknown(u8) = "peer_alert_unknown" none
        "read the other side's log: it ended the handshake",
    /// The handshake deadline passed in this state.
    Timeout(StateId) = "handshake_timeout" UserCanceled
        "look for a slow or broken network, or a client that connects and says nothing",
    /// The peer reset the connection in this state.
    Reset(StateId) = "handshake_reset" none
        "read the other side's log: it broke the connection off",
    /// The peer closed the connection in this state.
    Closed(StateId) = "handshake_closed" none
        "read the other side's log: it may not trust our certificate, or was stopped",
    /// No rule makes a principal of the client's certificate, or its subject is longer than is kept.
    NoPrincipal = "no_principal" AccessDenied
        "add a rule for the certificate's subject to ssl.principal.mapping.rules, or DEFAULT as the last one",
    /// Whoever uses this engine let nobody in, by a rule of its own, and chose this alert.
    RefusedHere(Alert) = "refused_here" AccessDenied
        "look for the rule in the configuration here that keeps this peer out",
    /// mbedtls's fixed heap is full.
    ArenaFull = "arena_full" InternalError
        "lower skerry.limits.handshakes: so many at a time do not fit the heap",
    /// A library or its random source failed.
    Internal = "internal" InternalError
        "report this with the log line: it is a fault of this program",
}

/// What to change after the peer gave up with `alert`: it tells what it found wrong with us.
const fn after(alert: Alert) -> &'static str {
    match alert {
        Alert::UnknownCa => {
            "the other side does not trust the CA of our certificate: give it that CA (ssl.truststore.location, ssl.ca.location)"
        }
        Alert::BadCertificate | Alert::CertificateUnknown => {
            "the other side refused our certificate: give it our CA, and connect by a name that the certificate bears"
        }
        Alert::UnsupportedCertificate => {
            "the other side refused our certificate's kind: check its key usage and algorithm"
        }
        Alert::CertificateExpired => {
            "the other side finds our certificate out of its dates: renew it, or set the clock that is wrong"
        }
        Alert::CertificateRevoked => "the other side finds our certificate revoked: renew it",
        Alert::CertificateRequired => "the other side wants a certificate of us: configure a key store",
        Alert::ProtocolVersion => "the other side speaks none of our versions: enable TLSv1.2 or TLSv1.3 on both sides",
        Alert::HandshakeFailure | Alert::InsufficientSecurity => {
            "the other side found nothing in common: compare suites, groups and signature schemes of both"
        }
        Alert::UnrecognizedName => "the other side has no such name: check the name that is connected to",
        Alert::InternalError => "the other side failed by its own account: read its log",
        Alert::UserCanceled => "the other side was stopped while it connected",
        _ => "read the other side's log: it ended the handshake",
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn identifiers_are_distinct_and_every_cure_ends_a_sentence() {
        assert_eq!(Cause::IDS.iter().collect::<BTreeSet<_>>().len(), Cause::IDS.len());
        let some = [
            Cause::UnknownCa,
            Cause::Timeout(StateId::AwaitClientHello),
            Cause::PeerAlert(Alert::UnknownCa),
        ];
        for cause in some {
            assert!(Cause::IDS.contains(&cause.id()));
            assert!(!cause.cure().ends_with('.') && cause.cure().len() > 20);
        }
        assert_eq!(Cause::PeerAlert(Alert::BadCertificate).alert(), None);
        assert_ne!(Cause::PeerAlert(Alert::UnknownCa).cure(), Cause::UnknownCa.cure());
    }
}
