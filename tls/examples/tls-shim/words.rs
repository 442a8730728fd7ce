//! Causes in the words of BoringSSL's error table, which the runner looks for.

use skerry_tls::alert::Alert;
use skerry_tls::cause::{Cause, Met};

/// One line: our identifier, and the runner's word where one fits.
pub fn of(cause: Cause) -> String {
    match (cause, word(cause)) {
        (Cause::PeerAlert(alert), _) => format!("{} :{}:", cause.id(), told(alert)),
        (_, "") => cause.id().to_owned(),
        (_, word) => format!("{} :{word}:", cause.id()),
    }
}

fn word(cause: Cause) -> &'static str {
    match cause {
        Cause::NoCommonVersion(_) => "UNSUPPORTED_PROTOCOL",
        Cause::InappropriateFallback => "INAPPROPRIATE_FALLBACK",
        Cause::NoCommonSuite => "NO_SHARED_CIPHER",
        Cause::NoCommonGroup => "NO_SHARED_GROUP",
        Cause::NoCommonScheme => "NO_COMMON_SIGNATURE_ALGORITHMS",
        Cause::MissingExtension(51) => "MISSING_KEY_SHARE",
        Cause::MissingExtension(_) => "MISSING_EXTENSION",
        Cause::UnsupportedExtension(_) => "UNEXPECTED_EXTENSION",
        Cause::Decode(_) => "DECODE_ERROR",
        Cause::OutOfSequence { met, .. } => match met {
            Met::Handshake(_) => "UNEXPECTED_MESSAGE",
            Met::Record(_) => "UNEXPECTED_RECORD",
        },
        Cause::RecordOverflow => "ENCRYPTED_LENGTH_TOO_LONG: :DATA_LENGTH_TOO_LONG",
        Cause::BadRecordMac => "DECRYPTION_FAILED_OR_BAD_RECORD_MAC",
        Cause::BadRecord => "UNEXPECTED_RECORD",
        Cause::RecordVersion(_) => "WRONG_VERSION_NUMBER",
        Cause::Unprotected => "INVALID_OUTER_RECORD_TYPE",
        Cause::HandshakeTooLong | Cause::ChainTooLong => "EXCESSIVE_MESSAGE_SIZE",
        Cause::TooManyEmptyRecords => "TOO_MANY_EMPTY_FRAGMENTS",
        Cause::TooManyUpdates => "TOO_MANY_KEY_UPDATES: :TOO_MANY_WARNING_ALERTS",
        Cause::TooMuchEarlyData => "TOO_MUCH_SKIPPED_EARLY_DATA",
        Cause::Renegotiation => "NO_RENEGOTIATION",
        Cause::BadSignature => "BAD_SIGNATURE",
        Cause::BadFinished | Cause::BadBinder => "DIGEST_CHECK_FAILED",
        Cause::BadShare => "BAD_ECPOINT",
        Cause::ClientCertificateMissing => "PEER_DID_NOT_RETURN_A_CERTIFICATE",
        Cause::RefusedHere(_)
        | Cause::CertificateExpired
        | Cause::CertificateNotYetValid
        | Cause::UnknownCa
        | Cause::CertificateRevoked
        | Cause::CertificateSignature
        | Cause::CertificateChain(_)
        | Cause::CertificateName => "CERTIFICATE_VERIFY_FAILED",
        Cause::CertificateUsage => "KEY_USAGE_BIT_INCORRECT",
        Cause::CertificateUnsupported => "WRONG_CERTIFICATE_TYPE",
        Cause::PlaintextPeer(_) => "HTTP_REQUEST: :WRONG_VERSION_NUMBER",
        Cause::BadAlert => "BAD_ALERT",
        _ => "",
    }
}

/// An alert of the peer's. Those that SSL 3.0 had are named after it.
fn told(alert: Alert) -> String {
    let name = alert.name().to_uppercase();
    match alert as u8 {
        0 | 10 | 20 | 30 | 40..=47 => format!("SSLV3_ALERT_{name}"),
        _ => format!("TLSV1_ALERT_{name}"),
    }
}
