//! Who checks the peer's certificates, as the flags say.

use skerry_core::time::Timestamp;
use skerry_tls::cause::Cause;
use skerry_tls::certificate::{Refused, Role, ServerName, Verified, Verifier};
use skerry_tls::crypto::PublicKey;
use skerry_tls::testing::Accepting;
use skerry_tls::x509::{ByMbedtls, Policy, TrustStore};

use super::Wrong;
use super::common::pem;
use super::flags::Setting;

/// Chains to what `-trust-cert` names, else any chain whose leaf can be read; or none.
pub struct Judge {
    store: Option<TrustStore<ByMbedtls>>,
    any: Accepting,
    verdict: Option<Cause>,
}

impl Judge {
    pub fn new(setting: &Setting, is_server: bool) -> Result<Self, Wrong> {
        // A client that neither asks for verification nor brings its own goes on after one that failed.
        let is_hard = is_server || setting.verifies_peer || setting.has_custom_verification;
        let store = setting.trusted.as_deref().map(|path| {
            let anchors = pem::certificates(path)?;
            let anchors: Vec<&[u8]> = anchors.iter().map(Vec::as_slice).collect();
            let (store, warnings) = TrustStore::new(&anchors, Policy::default(), ByMbedtls);
            match warnings.first().map(|warning| warning.cause) {
                None => Ok(store),
                Some(Cause::CertificateUnsupported) => Err(Wrong::Unimplemented(format!("the key of {path}"))),
                Some(cause) => Err(Wrong::Other(format!("{path}: {}", cause.id()))),
            }
        });
        Ok(Self {
            store: store.transpose()?,
            any: Accepting::default(),
            verdict: (setting.fails_verification && is_hard).then(|| setting.verdict()),
        })
    }
}

impl Verifier for Judge {
    fn public_key<'c>(&self, leaf: &'c [u8]) -> Result<PublicKey<'c>, Cause> {
        match &self.store {
            Some(store) => store.public_key(leaf),
            None => self.any.public_key(leaf),
        }
    }

    fn verify(
        &self,
        chain: &[&[u8]],
        role: Role,
        _: Option<ServerName<'_>>,
        now: Timestamp,
    ) -> Result<Verified, Refused> {
        match (self.verdict, &self.store) {
            (Some(cause), _) => Err(Refused { cause, index: 0 }),
            // The runner's names are not those of its certificates.
            (None, Some(store)) => store.verify(chain, role, None, now),
            (None, None) => self.any.verify(chain, role, None, now),
        }
    }

    fn trust_id(&self) -> [u8; 32] {
        match &self.store {
            Some(store) => store.trust_id(),
            None => self.any.trust_id(),
        }
    }
}
