//! What a client is set up with.

use super::Identity;
use crate::certificate::{ServerName, Verifier};
use crate::crypto::Provider;
use crate::suite::{CipherSuite, Group, SignatureScheme, Version};

/// A client's side of what may be agreed on. Lists are in order of preference; none may be empty.
///
/// It is lent for every call and must be the same from the hello to the end of the handshake: the second hello repeats the first
/// (RFC 8446 §4.1.2), and what the server chooses is compared with what is listed here.
pub struct ClientConfig<'a, P: Provider> {
    /// Versions to offer.
    pub versions: &'a [Version],
    /// Suites to offer; those of versions that are not offered are left out.
    pub suites: &'a [CipherSuite],
    /// Groups to offer.
    pub groups: &'a [Group],
    /// Groups to send a share of at once, in the order of `groups`; at most [`Group::ALL`]'s count. Another costs a HelloRetryRequest. May be
    /// empty.
    pub shares: &'a [Group],
    /// Schemes by which the server may sign.
    pub schemes: &'a [SignatureScheme],
    /// Who checks the server's chain.
    pub verifier: &'a dyn Verifier,
    /// Who the server must be. A DNS name is told in the hello (RFC 6066 §3); an address is compared only. `None`: the verifier decides alone.
    pub server_name: Option<ServerName<'a>>,
    /// Who we are, when the server asks. Without one, or when the server's schemes do not suit its key, an empty chain is sent.
    pub identity: Option<&'a Identity<'a, P>>,
    /// Schemes by which we may sign.
    pub own_schemes: &'a [SignatureScheme],
    /// Bytes of a [`crate::saved::SessionSlot`] from an earlier connection to the same server. What cannot be used (too old, another
    /// name, other trust anchors, a version or suite that is not offered) is passed over, and the handshake is a full one.
    pub resume: &'a [u8],
    /// Whether to offer what lets the server send tickets: psk_key_exchange_modes in TLS 1.3, session_ticket in TLS 1.2.
    pub tickets: bool,
    /// The record_size_limit to tell (RFC 8449 §4): 64 to 16,385 bytes of content, to which TLS 1.3 counts one more for the type. `None` tells
    /// none, and records of 16,384 come.
    pub record_size_limit: Option<u16>,
    /// The shortest ClientHello, its record header counted, for networks that stumble over short ones or servers that are to be measured:
    /// a shorter one is padded (RFC 7685), by four bytes at least. 0 pads nothing.
    pub hello_bytes_min: u16,
}

impl<'a, P: Provider> ClientConfig<'a, P> {
    /// Everything that is spoken here, a share of the best group, tickets wished for, nobody's certificate, no earlier session.
    #[must_use]
    pub const fn new(verifier: &'a dyn Verifier, server_name: Option<ServerName<'a>>) -> Self {
        Self {
            versions: &[Version::Tls13, Version::Tls12],
            suites: CipherSuite::ALL,
            groups: Group::ALL,
            shares: &[Group::X25519],
            schemes: SignatureScheme::ALL,
            verifier,
            server_name,
            identity: None,
            own_schemes: SignatureScheme::ALL,
            resume: &[],
            tickets: true,
            record_size_limit: None,
            hello_bytes_min: 0,
        }
    }
}
