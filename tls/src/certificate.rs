//! Certificates as the machines see them: chains on the wire, a verifier behind a trait, and what is kept of a verified peer.

use core::net::IpAddr;

use skerry_core::time::Timestamp;

use crate::cause::Cause;
use crate::crypto::PublicKey;

/// Certificates of a chain, leaf first; more are refused.
pub const CHAIN_COUNT_MAX: usize = 10;

/// The longest subject that is kept of a peer. A longer one is cut for the log, and its session gets no ticket.
/// Where there is no server nobody's principal is made of it, and less is kept.
pub const SUBJECT_BYTES_MAX: usize = if cfg!(feature = "server") { 512 } else { 64 };

/// Whose certificate a leaf is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A server's: `serverAuth`, and its name is compared.
    Server,
    /// A client's: `clientAuth`.
    Client,
}

/// The name that a server's certificate must bear (RFC 9525).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerName<'a> {
    /// A DNS name.
    Dns(&'a str),
    /// An address, compared with iPAddress entries only.
    Ip(IpAddr),
}

/// What is kept of a peer whose chain was verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The leaf's subject as RFC 2253 writes it (Java's `X500Principal.getName`): what Kafka derives principals from.
    pub subject: heapless::String<SUBJECT_BYTES_MAX>,
    /// Whether the subject was longer than that.
    pub cut: bool,
    /// The first end of validity in the chain: a session is not resumed after it.
    pub not_after: Timestamp,
    /// SHA-256 of the leaf's DER.
    pub fingerprint: [u8; 32],
}

/// Why a chain is refused, and which of its certificates is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// A certificate cause.
    pub cause: Cause,
    /// Where the certificate at fault stands in the chain as it came; where a trust anchor is at fault, the one that it issued; 0, the
    /// leaf, when it is none in particular. What the log says of it is read on this path only: [`Details::of`](crate::x509::Details::of).
    pub index: u8,
}

impl From<Refused> for Cause {
    fn from(refused: Refused) -> Self {
        refused.cause
    }
}

/// Checks chains. Set up with its trust anchors by whoever makes it; verification itself must not depend on anything but its arguments.
pub trait Verifier {
    /// The public key of a certificate, for checking signatures made with it.
    ///
    /// Errors: [`Cause::CertificateUnreadable`]; [`Cause::CertificateUnsupported`] for keys that are not spoken here (including RSA
    /// below 2048 bits).
    fn public_key<'c>(&self, leaf: &'c [u8]) -> Result<PublicKey<'c>, Cause>;

    /// Checks a chain, leaf first, each entry one DER certificate, by RFC 5280 against the trust anchors, at `now`.
    ///
    /// Errors: the certificate causes of [`Cause`]; [`Cause::ArenaFull`] when there is no memory for it now.
    fn verify(
        &self,
        chain: &[&[u8]],
        role: Role,
        name: Option<ServerName<'_>>,
        now: Timestamp,
    ) -> Result<Verified, Refused>;

    /// Names of the trust anchors as a CertificateRequest carries them: each a two-byte length and a DER name, one after the other,
    /// without a length before all of them (the `DistinguishedName` entries of RFC 8446 §4.2.4 and RFC 5246 §7.4.4). May be none: not
    /// every server says whom it trusts.
    fn authorities(&self) -> &[u8] {
        &[]
    }

    /// A digest of the trust anchors: a session resumed under others is not taken as verified.
    fn trust_id(&self) -> [u8; 32];
}
