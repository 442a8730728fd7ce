//! What a server is set up with.

use super::Identity;
use crate::certificate::Verifier;
use crate::crypto::Provider;
use crate::handshake::TicketKeys;
use crate::suite::{CipherSuite, Group, SignatureScheme, Version};

/// Whether clients are asked for certificates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientAuth {
    /// They are not.
    #[default]
    None,
    /// They are, and may have none; one that comes must hold.
    Requested,
    /// They are, and must have one.
    Required,
}

/// A server's side of what may be agreed on. Lists are in order of preference, and it is ours that counts.
///
/// It is lent for every call and must be the same from the hello to the end of the handshake.
pub struct ServerConfig<'a, P: Provider> {
    /// Certificates with their keys; the first that the client can use is taken.
    pub identities: &'a [Identity<'a, P>],
    /// Versions that are spoken.
    pub versions: &'a [Version],
    /// Suites of either version.
    pub suites: &'a [CipherSuite],
    /// Groups. One whose share came with the hello is taken before one that costs a HelloRetryRequest.
    pub groups: &'a [Group],
    /// Schemes by which we sign.
    pub schemes: &'a [SignatureScheme],
    /// Whether clients are asked for certificates.
    pub client_auth: ClientAuth,
    /// Schemes by which they may sign, as they are told.
    pub client_schemes: &'a [SignatureScheme],
    /// Who checks them. Without one none is asked for, and [`ClientAuth::Required`] lets nobody in.
    pub verifier: Option<&'a dyn Verifier>,
    /// Keys for tickets; without them no session is resumed.
    pub tickets: Option<&'a TicketKeys<P>>,
    /// Tickets after each TLS 1.3 handshake with a client that can use them.
    pub tickets_sent: u8,
    /// The longest content of a record that we can take, told to a client that sends `record_size_limit` (RFC 8449): 64 to 16,384.
    /// `None` takes 16,384.
    pub record_size_limit: Option<u16>,
}

impl<'a, P: Provider> ServerConfig<'a, P> {
    /// Everything that is spoken here, for these identities: no client certificates, no tickets.
    #[must_use]
    pub const fn new(identities: &'a [Identity<'a, P>]) -> Self {
        Self {
            identities,
            versions: &[Version::Tls13, Version::Tls12],
            suites: CipherSuite::ALL,
            groups: Group::ALL,
            schemes: SignatureScheme::ALL,
            client_auth: ClientAuth::None,
            client_schemes: SignatureScheme::ALL,
            verifier: None,
            tickets: None,
            tickets_sent: 1,
            record_size_limit: None,
        }
    }
}
