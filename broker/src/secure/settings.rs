//! What one listener's handshakes are set up with: certificates with their keys, what may be agreed on, whom it trusts.
//!
//! Loaded anew as a whole; a handshake under way keeps the settings that it began with.

use skerry_tls::certificate::{ServerName, Verified, Verifier};
use skerry_tls::config::{ClientAuth, Identity, ServerConfig};
use skerry_tls::crypto::Provider;
use skerry_tls::crypto::either::Either;
use skerry_tls::crypto::fast::Fast;
use skerry_tls::crypto::mbedtls::Mbedtls;
use skerry_tls::handshake::TicketKeys;
use skerry_tls::suite::{CipherSuite, Group, SignatureScheme, Version};
use skerry_tls::x509::check::bears;
use skerry_tls::x509::{Cached, TrustStore};

use crate::config::principal::PrincipalRules;
use crate::tls_setup::ByChosen;

/// The provider that was chosen at start.
pub type Chosen = Either<Mbedtls, Fast>;

/// Whom a listener trusts, and the chains of theirs that were verified before.
pub type Trust = Cached<TrustStore<ByChosen>>;

/// Certificates with their keys that one listener may have, for clients of different tastes.
pub const IDENTITIES_MAX: usize = 4;

/// Certificates of one chain.
const CHAIN_MAX: usize = skerry_tls::certificate::CHAIN_COUNT_MAX;

/// A chain and the key that proves it.
pub struct OwnIdentity {
    /// Certificates, DER, leaf first.
    pub chain: Vec<Vec<u8>>,
    /// The leaf's private key.
    pub key: <Chosen as Provider>::SigningKey,
}

/// The settings of one listener.
pub struct Settings {
    /// At least one; those after [`IDENTITIES_MAX`] are not used.
    pub identities: Vec<OwnIdentity>,
    /// `ssl.enabled.protocols`.
    pub versions: Vec<Version>,
    /// `ssl.cipher.suites`.
    pub suites: Vec<CipherSuite>,
    /// Groups in order of preference.
    pub groups: Vec<Group>,
    /// `ssl.client.auth`.
    pub client_auth: ClientAuth,
    /// The trust store, when there is one.
    pub verifier: Option<Box<Trust>>,
    /// `ssl.principal.mapping.rules`.
    pub principal_rules: PrincipalRules,
    /// Tickets after a TLS 1.3 handshake.
    pub tickets_sent: u8,
}

impl Settings {
    /// Whether one of the certificates bears this host name.
    #[must_use]
    pub fn bear(&self, name: &str) -> bool {
        let leaves = self.identities.iter().filter_map(|identity| identity.chain.first());
        leaves.into_iter().any(|leaf| bears(leaf, ServerName::Dns(name)))
    }

    /// What Kafka calls the client: what the rules make of its certificate's subject, or nobody. `None` when no rule is for it, or the
    /// subject is too long to be known whole; Kafka lets no such client in.
    #[must_use]
    pub fn principal(&self, peer: Option<&Verified>) -> Option<String> {
        match peer {
            Some(peer) if peer.cut => None,
            Some(peer) => Some(format!("User:{}", self.principal_rules.name(&peer.subject)?)),
            None => Some("User:ANONYMOUS".into()),
        }
    }

    /// Lends them as the engine takes them. Cost: a few words for each certificate.
    pub fn lend<R>(
        &self,
        tickets: Option<&TicketKeys<Chosen>>,
        use_it: impl FnOnce(&ServerConfig<'_, Chosen>) -> R,
    ) -> R {
        let mut chains: heapless::Vec<heapless::Vec<&[u8], CHAIN_MAX>, IDENTITIES_MAX> = heapless::Vec::new();
        for identity in self.identities.iter().take(IDENTITIES_MAX) {
            let chain = identity.chain.iter().take(CHAIN_MAX).map(Vec::as_slice).collect();
            let _ = chains.push(chain);
        }
        let identities: heapless::Vec<Identity<'_, Chosen>, IDENTITIES_MAX> = self
            .identities
            .iter()
            .zip(&chains)
            .map(|(identity, chain)| Identity {
                chain,
                key: &identity.key,
            })
            .collect();
        use_it(&ServerConfig {
            identities: &identities,
            versions: &self.versions,
            suites: &self.suites,
            groups: &self.groups,
            schemes: SignatureScheme::ALL,
            client_auth: self.client_auth,
            client_schemes: SignatureScheme::ALL,
            verifier: self.verifier.as_deref().map(|trust| trust as &dyn Verifier),
            tickets,
            tickets_sent: self.tickets_sent,
            record_size_limit: None,
        })
    }
}
