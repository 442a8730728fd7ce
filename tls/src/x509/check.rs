//! What is looked at when a certificate of our own is loaded: each finding in a plain sentence, before a peer finds it.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use skerry_core::time::Timestamp;

use super::certificate::{Certificate, ExtendedKeyUsage, KeyUsage};
use super::time::Readable;
use super::{host, key};
use crate::cause::Cause;
use crate::certificate::{CHAIN_COUNT_MAX, Role, ServerName};
use crate::crypto::{CryptoError, Provider, Random, SIGNATURE_BYTES_MAX, SigningKey};
use crate::suite::SignatureScheme;

/// Days before the end of a certificate from which on it is told: the sentence grows more urgent with each.
pub const WARNING_DAYS: [u32; 3] = [30, 7, 1];

/// Something about a certificate of our own, or its chain, that its peers may refuse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// There is none.
    Empty,
    /// More certificates than any peer of ours takes.
    TooMany(usize),
    /// One cannot be read; its place.
    Unreadable(usize),
    /// The leaf's key, or how one is signed, is not taken here nor by current peers; whose.
    Unsupported(String),
    /// The private key belongs to another certificate.
    KeyMismatch,
    /// One is past its last day; whose, and when that was.
    Expired(String, Timestamp),
    /// One is before its first day; whose, and when that is.
    NotYetValid(String, Timestamp),
    /// One has no more days than that; whose, and when it ends.
    ExpiresWithin(u32, String, Timestamp),
    /// A certificate is not followed by the one that issued it, which is in the chain; whose.
    Disordered(String),
    /// A certificate has nothing to do with the one before it; whose.
    Unrelated(String),
    /// The chain ends below a CA that the trust store does not hold; the CA's name.
    Incomplete(String),
    /// The leaf signed itself: peers must hold it itself.
    SelfSigned,
    /// The leaf's key usage lacks digitalSignature.
    NoDigitalSignature,
    /// The leaf's extended key usage lacks this purpose.
    NoPurpose(Role),
    /// The leaf does not bear a name that is advertised.
    NoName(String),
}

impl Finding {
    /// Whether no handshake can succeed with it, so that the certificate is not to be used at all. A certificate out of its dates is not
    /// among them: the clock may be what is wrong.
    #[must_use]
    pub const fn is_fatal(&self) -> bool {
        match self {
            Self::Empty | Self::TooMany(_) | Self::Unreadable(_) | Self::Unsupported(_) | Self::KeyMismatch => true,
            Self::Expired(..)
            | Self::NotYetValid(..)
            | Self::ExpiresWithin(..)
            | Self::Disordered(_)
            | Self::Unrelated(_)
            | Self::Incomplete(_)
            | Self::SelfSigned
            | Self::NoDigitalSignature
            | Self::NoPurpose(_)
            | Self::NoName(_) => false,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, "There is no certificate."),
            Self::TooMany(count) => write!(
                f,
                "The chain has {count} certificates and peers take {CHAIN_COUNT_MAX} at most: send the leaf and its intermediate certificates only."
            ),
            Self::Unreadable(index) => write!(f, "Certificate {} of the chain cannot be read.", index + 1),
            Self::Unsupported(subject) => write!(
                f,
                "The certificate of \"{subject}\" has a key or a signature that is not taken: use ECDSA P-256 or P-384, or RSA of 2048 to 4096 bits, signed with SHA-256 or better."
            ),
            Self::KeyMismatch => write!(f, "The private key does not belong to the certificate."),
            Self::Expired(subject, at) => {
                write!(
                    f,
                    "The certificate of \"{subject}\" expired at {}: renew it.",
                    Readable(*at)
                )
            }
            Self::NotYetValid(subject, at) => write!(
                f,
                "The certificate of \"{subject}\" is not valid before {}: check the clock.",
                Readable(*at)
            ),
            Self::ExpiresWithin(1, subject, at) => write!(
                f,
                "The certificate of \"{subject}\" expires within a day, at {}: renew it now.",
                Readable(*at)
            ),
            Self::ExpiresWithin(days, subject, at) => write!(
                f,
                "The certificate of \"{subject}\" expires within {days} days, at {}.",
                Readable(*at)
            ),
            Self::Disordered(subject) => write!(
                f,
                "The certificate of \"{subject}\" is not followed by the one that issued it: some peers need the order."
            ),
            Self::Unrelated(subject) => write!(
                f,
                "The certificate of \"{subject}\" in the chain did not issue the one before it: leave it out."
            ),
            Self::Incomplete(issuer) => write!(
                f,
                "The chain ends below \"{issuer}\", which the trust store does not hold: add the intermediate certificates, or the CA."
            ),
            Self::SelfSigned => write!(
                f,
                "The certificate is signed by itself: every peer must have it in its trust store."
            ),
            Self::NoDigitalSignature => write!(
                f,
                "The certificate's key usage lacks digitalSignature: peers refuse it for TLS 1.3 and ECDHE."
            ),
            Self::NoPurpose(Role::Server) => write!(
                f,
                "The certificate's extended key usage lacks serverAuth: clients refuse it."
            ),
            Self::NoPurpose(Role::Client) => write!(
                f,
                "The certificate's extended key usage lacks clientAuth: servers refuse it."
            ),
            Self::NoName(name) => write!(
                f,
                "The certificate's subjectAltName lacks \"{name}\", which is advertised: clients that check names refuse it."
            ),
        }
    }
}

/// What there is to say of a chain of our own, leaf first, used as `role`, for a broker that is reached by `names`, at `now`. `anchors` is the
/// trust store, if there is one; without it nothing is said of where the chain ends.
#[must_use]
pub fn chain(
    chain: &[&[u8]],
    role: Role,
    names: &[ServerName<'_>],
    anchors: Option<&[&[u8]]>,
    now: Timestamp,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    if chain.len() > CHAIN_COUNT_MAX {
        findings.push(Finding::TooMany(chain.len()));
    }
    let mut read = Vec::new();
    for (index, der) in chain.iter().enumerate() {
        match Certificate::read(der) {
            Ok(certificate) => read.push(certificate),
            Err(_) => findings.push(Finding::Unreadable(index)),
        }
    }
    let (Some(leaf), Some(last)) = (read.first(), read.last()) else {
        if chain.is_empty() {
            findings.push(Finding::Empty);
        }
        return findings;
    };
    if key::leaf_key(leaf.spki).is_err() {
        findings.push(Finding::Unsupported(leaf.subject.to_string()));
    }
    for certificate in &read {
        dates(certificate, now, &mut findings);
        // What an anchor is signed with does not matter.
        if !certificate.is_self_issued() && certificate.algorithm().is_err() {
            findings.push(Finding::Unsupported(certificate.subject.to_string()));
        }
    }
    for (index, pair) in read.windows(2).enumerate() {
        let [child, next] = pair else { continue };
        if !child.may_be_of(next) {
            let is_elsewhere = read
                .iter()
                .enumerate()
                .any(|(place, other)| place != index && child.may_be_of(other));
            findings.push(if is_elsewhere {
                Finding::Disordered(child.subject.to_string())
            } else {
                Finding::Unrelated(next.subject.to_string())
            });
        }
    }
    if leaf.is_self_issued() {
        findings.push(Finding::SelfSigned);
    }
    if let Some(anchors) = anchors {
        let is_known = anchors
            .iter()
            .any(|&der| der == last.der || Certificate::read(der).is_ok_and(|anchor| last.may_be_of(&anchor)));
        if !is_known {
            findings.push(Finding::Incomplete(last.issuer.to_string()));
        }
    }
    uses(leaf, role, &mut findings);
    for &name in names {
        if !host::is_named(leaf.extensions.subject_alt_name, name) {
            findings.push(Finding::NoName(match name {
                ServerName::Dns(host) => host.into(),
                ServerName::Ip(address) => address.to_string(),
            }));
        }
    }
    findings
}

fn dates(certificate: &Certificate<'_>, now: Timestamp, findings: &mut Vec<Finding>) {
    const DAY: i64 = 24 * 3600 * 1000;
    let subject = || certificate.subject.to_string();
    let left = certificate.not_after.0.saturating_sub(now.0);
    if now < certificate.not_before {
        findings.push(Finding::NotYetValid(subject(), certificate.not_before));
    } else if left < 0 {
        findings.push(Finding::Expired(subject(), certificate.not_after));
    } else if let Some(days) = WARNING_DAYS.iter().rev().find(|&&days| left < i64::from(days) * DAY) {
        findings.push(Finding::ExpiresWithin(*days, subject(), certificate.not_after));
    }
}

fn uses(leaf: &Certificate<'_>, role: Role, findings: &mut Vec<Finding>) {
    let purpose = match role {
        Role::Server => ExtendedKeyUsage::SERVER_AUTH,
        Role::Client => ExtendedKeyUsage::CLIENT_AUTH,
    };
    let extensions = &leaf.extensions;
    if extensions
        .key_usage
        .is_some_and(|usage| !usage.allows(KeyUsage::DIGITAL_SIGNATURE))
    {
        findings.push(Finding::NoDigitalSignature);
    }
    let lists = |usage: ExtendedKeyUsage<'_>| usage.lists(purpose) || usage.lists(ExtendedKeyUsage::ANY);
    if !extensions.extended_key_usage.is_none_or(lists) {
        findings.push(Finding::NoPurpose(role));
    }
}

/// Whether a certificate bears a name (RFC 9525). False for one that cannot be read.
#[must_use]
pub fn bears(certificate: &[u8], name: ServerName<'_>) -> bool {
    Certificate::read(certificate).is_ok_and(|read| host::is_named(read.extensions.subject_alt_name, name))
}

/// Whether `private` is the key of the certificate `leaf`: what it signs is checked with the certificate's.
///
/// Errors: [`Cause::CertificateUnreadable`] and [`Cause::CertificateUnsupported`] for the certificate; [`Cause::ArenaFull`] and
///   [`Cause::Internal`] when the provider fails.
pub fn key_matches<P: Provider>(
    provider: &P,
    leaf: &[u8],
    private: &P::SigningKey,
    random: &mut dyn Random,
) -> Result<bool, Cause> {
    let public = key::public_key(leaf)?;
    if public.kind != private.kind() {
        return Ok(false);
    }
    let scheme = SignatureScheme::ALL
        .iter()
        .copied()
        .find(|&scheme| public.kind.signs_13(scheme))
        .ok_or(Cause::CertificateUnsupported)?;
    let digest = [0x5a; crate::crypto::DIGEST_BYTES_MAX];
    let digest = digest.get(..scheme.hash().bytes()).unwrap_or_default();
    let mut signature = [0; SIGNATURE_BYTES_MAX];
    let bytes = private.sign(scheme, digest, random, &mut signature)?;
    let signature = signature.get(..bytes).unwrap_or_default();
    match provider.verify(scheme, public, digest, signature) {
        Ok(()) => Ok(true),
        Err(CryptoError::Rejected) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
