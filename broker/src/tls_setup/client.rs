//! TLS of a tool that connects to brokers: stores read as a listener's are, and lent as a client's side of the engine takes them.

use std::rc::Rc;

use skerry_core::time::Timestamp;
use skerry_tls::cause::Cause;
use skerry_tls::certificate::{CHAIN_COUNT_MAX, Refused, Role, ServerName, Verified, Verifier};
use skerry_tls::config::{ClientConfig, Identity};
use skerry_tls::crypto::{PublicKey, Random};
use skerry_tls::suite::{CipherSuite, Version};

use super::load::Loader;
use super::{Problem, provider};
use crate::config::TlsProvider;
use crate::config::tls::{ClientTls, Truststore};
use crate::secure::{Chosen, OwnIdentity};

/// What a tool's handshakes are set up with.
pub struct ClientSetup {
    provider: Rc<Chosen>,
    /// Who we are, when a broker asks.
    identity: Option<OwnIdentity>,
    verifier: Box<dyn Verifier>,
    versions: Vec<Version>,
    suites: Vec<CipherSuite>,
    /// Where the truststore was named, for messages.
    truststore: String,
}

impl ClientSetup {
    /// Loads what `tls` names; what is worth a warning goes to `notices`.
    ///
    /// Errors: a store that cannot be used, in a whole sentence that names the setting.
    pub fn load(
        tls: &ClientTls,
        now: Timestamp,
        random: &mut dyn Random,
        notices: &mut Vec<String>,
    ) -> Result<Self, Problem> {
        let provider = Rc::new(provider(TlsProvider::Auto)?);
        let mut loader = Loader {
            provider: &provider,
            now,
            random,
            notices,
        };
        let identity = match &tls.keystore {
            Some(keystore) => loader.own(keystore, 1, Role::Client, None)?.pop(),
            None => None,
        };
        let verifier = loader.truststore(&tls.truststore)?;
        Ok(Self {
            identity,
            verifier: match tls.checks_names {
                true => verifier,
                false => Box::new(AnyName(*verifier)),
            },
            versions: tls.versions.clone(),
            suites: tls.suites.clone(),
            truststore: match &tls.truststore {
                Truststore::File(file) => file.place.clone(),
                Truststore::Inline { place, .. } => place.clone(),
            },
            provider,
        })
    }

    /// The primitives in use.
    pub fn provider(&self) -> &Chosen {
        &self.provider
    }

    /// The certificate that a broker is shown when it asks, DER.
    pub fn own_certificate(&self) -> Option<&[u8]> {
        self.identity.as_ref()?.chain.first().map(Vec::as_slice)
    }

    /// The versions that are offered.
    pub fn versions(&self) -> &[Version] {
        &self.versions
    }

    /// Where the truststore was named: the begin of a sentence about it.
    pub fn truststore(&self) -> &str {
        &self.truststore
    }

    /// Lends it as the engine takes it, for a broker of that name. No tickets are asked for: a tool is gone before it could use one.
    pub fn lend<R>(&self, name: ServerName<'_>, use_it: impl FnOnce(&ClientConfig<'_, Chosen>) -> R) -> R {
        let mut chain: heapless::Vec<&[u8], CHAIN_COUNT_MAX> = heapless::Vec::new();
        let identity = self.identity.as_ref();
        let own = identity.into_iter().flat_map(|identity| &identity.chain);
        chain.extend(own.take(CHAIN_COUNT_MAX).map(Vec::as_slice));
        let identity = identity.map(|identity| Identity {
            chain: &chain,
            key: &identity.key,
        });
        use_it(&ClientConfig {
            versions: &self.versions,
            suites: &self.suites,
            identity: identity.as_ref(),
            tickets: false,
            ..ClientConfig::new(&*self.verifier, Some(name))
        })
    }
}

/// Checks chains without the name: it is told to the broker all the same, for one that has several certificates.
struct AnyName<V>(V);

impl<V: Verifier> Verifier for AnyName<V> {
    fn public_key<'c>(&self, leaf: &'c [u8]) -> Result<PublicKey<'c>, Cause> {
        self.0.public_key(leaf)
    }

    fn verify(
        &self,
        chain: &[&[u8]],
        role: Role,
        _: Option<ServerName<'_>>,
        now: Timestamp,
    ) -> Result<Verified, Refused> {
        self.0.verify(chain, role, None, now)
    }

    fn trust_id(&self) -> [u8; 32] {
        self.0.trust_id()
    }
}
