//! What a handshake settled, for as long as the connection lasts.

use crate::certificate::Verified;
use crate::suite::{CipherSuite, Group, SignatureScheme, Version};

/// Bytes of the longest DNS name (RFC 1035 §2.3.4).
pub const NAME_BYTES_MAX: usize = if cfg!(feature = "server") { 255 } else { 0 };

/// What both sides hold to. Filled in by the machines as it is settled.
#[derive(Clone, Debug, Default)]
pub struct Agreed {
    /// The version.
    pub version: Option<Version>,
    /// The suite.
    pub suite: Option<CipherSuite>,
    /// The group of the key exchange.
    pub group: Option<Group>,
    /// The scheme of our signature, when we gave one.
    pub own_scheme: Option<SignatureScheme>,
    /// The scheme of the peer's signature, when it gave one.
    pub peer_scheme: Option<SignatureScheme>,
    /// Whether an earlier session was resumed.
    pub resumed: bool,
    /// Tickets that we gave, as a server.
    pub tickets_given: u8,
    /// Whether it took a HelloRetryRequest.
    pub retried: bool,
    /// TLS 1.2: whether the master secret is the extended one (RFC 7627). Always so in 1.3.
    pub extended_master_secret: bool,
    /// The name that the client asked for. Any bytes that are no legal DNS name are left out.
    pub server_name: Option<heapless::String<NAME_BYTES_MAX>>,
    /// The peer's certificate, verified now or when the resumed session began.
    pub peer: Option<Verified>,
}
