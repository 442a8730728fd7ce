//! Stores, from their files to keys that sign and anchors that are trusted.

use std::path::Path;
use std::rc::Rc;

use skerry_core::time::Timestamp;
use skerry_tls::certificate::{Role, Verifier as _};
use skerry_tls::config::ClientAuth;
use skerry_tls::crypto::{Provider, Random};
use skerry_tls::suite::Group;
use skerry_tls::x509::check::key_matches;
use skerry_tls::x509::{Cached, Details, Policy, TrustStore};

use super::check::{self, ByChosen, Facts};
use super::{Development, Loaded, Problem, Wanted};
use crate::config::tls::{Keystore, ListenerTls, StoreFile, Truststore};
use crate::keystore::{self, Anchors, Format, Found, Identity, Mistake};
use crate::secure::{Chosen, IDENTITIES_MAX, OwnIdentity, Settings, Trust};

/// Chains that are remembered for each truststore, so that a device that comes back costs one signature.
const CHAINS_REMEMBERED: usize = 256;

/// The files that a listener's TLS is read from.
pub fn files(tls: &ListenerTls) -> impl Iterator<Item = &Path> {
    let keystore = match &tls.keystore {
        Keystore::File { file, .. } => Some(file.path.as_path()),
        Keystore::Inline { .. } | Keystore::Development(_) => None,
    };
    let truststore = match &tls.truststore {
        Some(Truststore::File(file)) => Some(file.path.as_path()),
        Some(Truststore::Inline { .. }) | None => None,
    };
    keystore.into_iter().chain(truststore)
}

/// Whether two settings have other certificates or other anchors. Keys are of certificates, so they need not be looked at.
pub fn is_other(old: &Settings, new: &Settings) -> bool {
    let chains = |settings: &Settings| -> Vec<Vec<Vec<u8>>> {
        settings
            .identities
            .iter()
            .map(|identity| identity.chain.clone())
            .collect()
    };
    let trust = |settings: &Settings| settings.verifier.as_ref().map(|verifier| verifier.trust_id());
    chains(old) != chains(new) || trust(old) != trust(new)
}

/// Loads what is named, one after the other.
pub struct Loader<'a> {
    pub provider: &'a Rc<Chosen>,
    pub now: Timestamp,
    pub random: &'a mut dyn Random,
    pub notices: &'a mut Vec<String>,
}

impl Loader<'_> {
    /// Everything that one listener is set up with.
    pub fn listener(&mut self, wanted: &Wanted, tickets_sent: u8) -> Result<Loaded, Problem> {
        let identities = self.own(
            &wanted.tls.keystore,
            IDENTITIES_MAX,
            Role::Server,
            wanted.host.as_deref(),
        )?;
        let facts = identities.iter().filter_map(|identity| {
            let chain: Vec<&[u8]> = identity.chain.iter().map(Vec::as_slice).collect();
            Facts::of(&chain)
        });
        let facts = facts.collect();
        let verifier = match &wanted.tls.truststore {
            Some(truststore) => Some(self.truststore(truststore)?),
            None => None,
        };
        let settings = Settings {
            identities,
            versions: wanted.tls.versions.clone(),
            suites: wanted.tls.suites.clone(),
            groups: Group::ALL.to_vec(),
            client_auth: match wanted.tls.client_auth {
                crate::config::ClientAuth::None => ClientAuth::None,
                crate::config::ClientAuth::Requested => ClientAuth::Requested,
                crate::config::ClientAuth::Required => ClientAuth::Required,
            },
            verifier,
            principal_rules: wanted.tls.principal_rules.clone(),
            tickets_sent,
        };
        Ok(Loaded {
            settings: Rc::new(settings),
            facts,
            loaded_at: self.now,
        })
    }

    /// The identities that are named, at most `count_max`, with what there is to say of their chains as `role`'s, for a broker that clients
    /// know as `host`.
    pub fn own(
        &mut self,
        keystore: &Keystore,
        count_max: usize,
        role: Role,
        host: Option<&str>,
    ) -> Result<Vec<OwnIdentity>, Problem> {
        let (place, mut found) = self.keystore(keystore)?;
        if found.len() > count_max {
            let used = match count_max {
                1 => "the first is used".to_owned(),
                _ => format!("the first {count_max} are used"),
            };
            self.notices.push(format!(
                "{place}: it holds {} private keys, of which {used}",
                found.len()
            ));
            found.truncate(count_max);
        }
        let identities: Vec<OwnIdentity> = found
            .into_iter()
            .map(|identity| self.identity(&place, identity))
            .collect::<Result<_, _>>()?;
        for identity in &identities {
            let chain: Vec<&[u8]> = identity.chain.iter().map(Vec::as_slice).collect();
            for finding in check::findings(&chain, role, host, &identities, self.now) {
                let sentence = format!("{place}: {finding}");
                if finding.is_fatal() {
                    return Err(Problem(sentence));
                }
                self.notices.push(sentence);
            }
        }
        Ok(identities)
    }

    /// The identities that are named, and how a sentence about them begins.
    fn keystore(&mut self, keystore: &Keystore) -> Result<(String, Vec<Identity>), Problem> {
        match keystore {
            Keystore::Development(data_dir) => {
                let made = Development::in_directory(data_dir, self.now, self.random, self.notices)?;
                Ok((made.place(), vec![made.identity]))
            }
            Keystore::File { file, key_password } => {
                let key_password = key_password.as_ref().map(|password| password.reveal());
                let read = |bytes: &[u8], password: Option<&str>| keystore::identities(bytes, password, key_password);
                Ok((file.place.clone(), self.file(file, read)?))
            }
            Keystore::Inline {
                text,
                key_password,
                place,
            } => {
                let key_password = key_password.as_ref().map(|password| password.reveal());
                let read = keystore::identities(text.reveal().as_bytes(), None, key_password);
                Ok((place.clone(), self.inline(place, read)?))
            }
        }
    }

    /// Whoever is trusted.
    pub fn truststore(&mut self, truststore: &Truststore) -> Result<Box<Trust>, Problem> {
        let (place, Anchors(anchors)) = match truststore {
            Truststore::File(file) => (&file.place, self.file(file, keystore::anchors)?),
            Truststore::Inline { text, place } => {
                let read = keystore::anchors(text.as_bytes(), None);
                (place, self.inline(place, read)?)
            }
        };
        let anchors: Vec<&[u8]> = anchors.iter().map(Vec::as_slice).collect();
        let (store, warnings) = TrustStore::new(&anchors, Policy::default(), ByChosen(Rc::clone(self.provider)));
        for warning in warnings {
            let whose = anchors
                .get(warning.index)
                .and_then(|der| Details::of(der))
                .map_or_else(String::new, |details| format!(" (\"{}\")", details.subject));
            self.notices.push(format!(
                "{place}: certificate {}{whose} is left out ({}): {}",
                warning.index + 1,
                warning.cause.id(),
                warning.cause.cure()
            ));
        }
        if store.anchor_count() == 0 {
            return Err(Problem(format!(
                "{place}: none of its certificates can be used: nobody's certificate could be trusted"
            )));
        }
        Ok(Box::new(Cached::new(store, CHAINS_REMEMBERED)))
    }

    /// Reads a file; what the store's reader has to tell goes to the log.
    fn file<T>(
        &mut self,
        file: &StoreFile,
        read: impl FnOnce(&[u8], Option<&str>) -> Result<Found<T>, Mistake>,
    ) -> Result<T, Problem> {
        let problem = |mistake: Mistake| Problem(format!("{}: {mistake}", file.place));
        let bytes = keystore::file(&file.path).map_err(problem)?;
        let found = read(&bytes, file.password.as_ref().map(|password| password.reveal())).map_err(problem)?;
        let mismatch = keystore::mismatch(found.format, file.told.as_deref(), Some(&file.path));
        for notice in found.notices.into_iter().chain(mismatch) {
            self.notices.push(format!("{}: {notice}", file.place));
        }
        Ok(found.value)
    }

    /// Takes what was read of a text in the settings.
    fn inline<T>(&mut self, place: &str, read: Result<Found<T>, Mistake>) -> Result<T, Problem> {
        let found = read.map_err(|mistake| Problem(format!("{place}: {mistake}")))?;
        for notice in found.notices {
            self.notices.push(format!("{place}: {notice}"));
        }
        if found.format != Format::Pem {
            return Err(Problem(format!(
                "{place}: it is {}, and a setting holds PEM only",
                found.format
            )));
        }
        Ok(found.value)
    }

    /// Loads a key and has it sign, which also shows that it is the certificate's.
    fn identity(&mut self, place: &str, identity: Identity) -> Result<OwnIdentity, Problem> {
        let Identity { name, chain, key } = identity;
        let key = self
            .provider
            .signing_key(&key)
            .map_err(|error| Problem(format!("{place}: {name} cannot be loaded: {error:?}")))?;
        let leaf = chain.first().map(Vec::as_slice).unwrap_or_default();
        match key_matches(&**self.provider, leaf, &key, self.random) {
            Ok(true) => Ok(OwnIdentity { chain, key }),
            Ok(false) => Err(Problem(format!("{place}: {}", Mistake::KeyMismatch))),
            Err(cause) => Err(Problem(format!(
                "{place}: the certificate of {name} cannot be used ({}): {}",
                cause.id(),
                cause.cure()
            ))),
        }
    }
}
