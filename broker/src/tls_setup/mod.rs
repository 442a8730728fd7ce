//! From the settings of TLS to what handshakes are set up with: stores read, keys loaded and tried, certificates looked at; and all of it
//! again when files have changed.
//!
//! This runs at start and at a reload, never for a peer, and may allocate. A reload is whole or not at all: whatever is wrong with one
//! store, every listener keeps what it had. A handshake under way keeps the settings that it began with.
//!
//! Cost: what the stores' passwords ask for; 10,000 rounds of SHA-256, as keytool writes, are some milliseconds on a large machine and some
//! hundred on a small one. The broker's thread does nothing else meanwhile.

mod check;
mod client;
mod develop;
mod load;
mod watch;

use core::fmt;
use std::rc::Rc;

use skerry_core::time::{Instant, Timestamp};
use skerry_tls::certificate::Role;
use skerry_tls::crypto::Random;
use skerry_tls::crypto::either::Choice;

pub use check::{ByChosen, Facts};
pub use client::ClientSetup;
pub use develop::Development;

use crate::config::tls::ListenerTls;
use crate::config::{Config, TlsProvider};
use crate::secure::{Chosen, Settings};

use watch::Watch;

/// What is loaded for each listener, by number, and what there is to tell.
type Read = (Vec<Option<Loaded>>, Vec<String>);

/// TLS of every listener that speaks it.
pub struct TlsSetup {
    provider: Rc<Chosen>,
    tickets_sent: u8,
    wanted: Vec<Option<Wanted>>,
    loaded: Vec<Option<Loaded>>,
    watch: Watch,
}

/// What a listener is to be set up with.
struct Wanted {
    listener: String,
    tls: ListenerTls,
    /// The host that clients are told, where it is known.
    host: Option<String>,
}

/// What a listener is set up with.
pub struct Loaded {
    /// For the handshakes of the listener.
    pub settings: Rc<Settings>,
    /// What its own certificates say, leaf by leaf.
    pub facts: Vec<Facts>,
    /// When it was loaded.
    pub loaded_at: Timestamp,
}

/// Something that keeps TLS from being set up: a whole sentence that names the setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem(pub String);

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a reload came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The listeners, by number, whose certificates, keys or anchors are others than before.
    pub listeners: Vec<usize>,
    /// Whole sentences for the log: what changed, and what is worth a warning.
    pub notices: Vec<String>,
}

/// The provider of primitives that is asked for.
///
/// Errors: a whole sentence.
pub fn provider(choice: TlsProvider) -> Result<Chosen, Problem> {
    let wanted = match choice {
        TlsProvider::Auto => Choice::Auto,
        TlsProvider::Mbedtls => Choice::Mbedtls,
        TlsProvider::Fast => Choice::Fast,
    };
    Chosen::start(wanted).map_err(|error| {
        Problem(format!(
            "skerry.tls.provider={}: it cannot be set up: {error:?}",
            choice.name()
        ))
    })
}

impl TlsSetup {
    /// Loads what the listeners of `config` ask for, and what is worth a warning: whole sentences for the log.
    ///
    /// Errors: everything that is wrong, not only the first.
    pub fn load(config: &Config, now: Timestamp, random: &mut dyn Random) -> Result<(Self, Vec<String>), Vec<Problem>> {
        let wanted = config.listeners.iter().map(|listener| {
            Some(Wanted {
                listener: listener.name.clone(),
                tls: listener.tls.as_deref()?.clone(),
                host: check::host_of(listener),
            })
        });
        let mut setup = Self {
            provider: Rc::new(provider(config.tls.provider).map_err(|problem| vec![problem])?),
            tickets_sent: config.tls.tickets,
            wanted: wanted.collect(),
            loaded: Vec::new(),
            watch: Watch::default(),
        };
        let (loaded, notices) = setup.read(now, random)?;
        setup.loaded = loaded;
        Ok((setup, notices))
    }

    /// The primitives in use.
    #[must_use]
    pub const fn provider(&self) -> &Rc<Chosen> {
        &self.provider
    }

    /// What the listener of that number is set up with; `None` when it does not speak TLS.
    #[must_use]
    pub fn listener(&self, number: usize) -> Option<&Loaded> {
        self.loaded.get(number)?.as_ref()
    }

    /// The listeners that speak TLS: their names, and what they are set up with.
    pub fn listeners(&self) -> impl Iterator<Item = (&str, &Loaded)> + '_ {
        let both = self.wanted.iter().zip(&self.loaded);
        both.filter_map(|(wanted, loaded)| Some((wanted.as_ref()?.listener.as_str(), loaded.as_ref()?)))
    }

    /// The settings of every listener, by its number.
    pub fn settings(&self) -> impl Iterator<Item = Option<Rc<Settings>>> + '_ {
        self.loaded
            .iter()
            .map(|loaded| loaded.as_ref().map(|loaded| Rc::clone(&loaded.settings)))
    }

    /// Reads everything again, and keeps it if all of it is good.
    ///
    /// Errors: everything that is wrong; what was loaded before stays.
    pub fn reload(&mut self, now: Timestamp, random: &mut dyn Random) -> Result<Changes, Vec<Problem>> {
        let (loaded, mut notices) = self.read(now, random)?;
        let mut listeners = Vec::new();
        for (number, (old, new)) in self.loaded.iter().zip(&loaded).enumerate() {
            let (Some(old), Some(new), Some(wanted)) = (old, new, self.wanted.get(number).and_then(Option::as_ref))
            else {
                continue;
            };
            if load::is_other(&old.settings, &new.settings) {
                listeners.push(number);
                let told: Vec<String> = new.facts.iter().map(Facts::to_string).collect();
                notices.push(format!(
                    "TLS of listener {} was loaded anew: {}",
                    wanted.listener,
                    told.join("; ")
                ));
            }
        }
        self.loaded = loaded;
        Ok(Changes { listeners, notices })
    }

    /// Whether files have changed since they were last read, and have then stayed as they are for five seconds, so that a file is not
    /// read while it is written.
    ///
    /// Cost: one `stat` for each file, at most once in that time; otherwise nothing. It may be asked when connections come, so that a broker
    /// to which nobody connects does nothing.
    pub fn have_files_changed(&mut self, now: Instant) -> bool {
        self.watch.look(now)
    }

    /// What there is to warn of the certificates in use at `now`, above all of their dates: whole sentences. For once a day.
    #[must_use]
    pub fn warnings(&self, now: Timestamp) -> Vec<String> {
        let mut notices = Vec::new();
        for (loaded, wanted) in self.loaded.iter().zip(&self.wanted) {
            let (Some(loaded), Some(wanted)) = (loaded, wanted) else {
                continue;
            };
            let identities = &loaded.settings.identities;
            for identity in identities {
                let chain: Vec<&[u8]> = identity.chain.iter().map(Vec::as_slice).collect();
                let found = check::findings(&chain, Role::Server, wanted.host.as_deref(), identities, now);
                notices.extend(
                    found
                        .iter()
                        .map(|finding| format!("listener {}: {finding}", wanted.listener)),
                );
            }
        }
        notices
    }

    /// Reads every store once more, whatever is in use.
    fn read(&mut self, now: Timestamp, random: &mut dyn Random) -> Result<Read, Vec<Problem>> {
        let files = self.wanted.iter().flatten().flat_map(|wanted| load::files(&wanted.tls));
        // Before they are read: what is written meanwhile is then seen as a change.
        self.watch.note(files);
        let mut loaded = Vec::new();
        let mut notices = Vec::new();
        let mut problems = Vec::new();
        for wanted in &self.wanted {
            let Some(wanted) = wanted else {
                loaded.push(None);
                continue;
            };
            let mut loader = load::Loader {
                provider: &self.provider,
                now,
                random: &mut *random,
                notices: &mut notices,
            };
            match loader.listener(wanted, self.tickets_sent) {
                Ok(one) => loaded.push(Some(one)),
                Err(problem) => problems.push(problem),
            }
        }
        // Two listeners may share a store.
        dedup(&mut notices);
        dedup(&mut problems);
        if problems.is_empty() {
            Ok((loaded, notices))
        } else {
            Err(problems)
        }
    }
}

fn dedup<T: PartialEq + Clone>(list: &mut Vec<T>) {
    let mut kept: Vec<T> = Vec::new();
    list.retain(|one| {
        let first = !kept.contains(one);
        if first {
            kept.push(one.clone());
        }
        first
    });
}

#[cfg(test)]
mod tests;
