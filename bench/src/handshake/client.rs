//! The client of every handshake that is measured: our engine's client role over the fast provider, whoever the server is. It takes any
//! certificate, so that its cost is the same for all.

use skerry_tls::certificate::ServerName;
use skerry_tls::config::{ClientConfig, Config, Identity};
use skerry_tls::crypto::fast::Fast;
use skerry_tls::suite::{Group, Version};
use skerry_tls::testing::{Accepting, Fixture, Loaded};

use super::Kind;
use skerry_tests::tls::{Came, End};

/// A client for one kind of handshake.
pub struct Client {
    kind: Kind,
    versions: [Version; 1],
    own: Option<Loaded<Fast>>,
    verifier: Accepting,
    end: End<Fast>,
    /// The session to resume.
    resume: Vec<u8>,
    /// Whether the present connection is the first.
    is_first: bool,
}

impl Client {
    /// Of that kind.
    #[must_use]
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            versions: [kind.version],
            own: kind.is_mutual().then(|| Loaded::new(&Fast, Fixture::DEVICE)),
            verifier: Accepting::default(),
            end: End::default(),
            resume: Vec::new(),
            is_first: true,
        }
    }

    /// Begins a connection; its hello waits in [`Client::take_out`]. A kind that resumes does so from the second connection on.
    ///
    /// Errors: the engine's.
    pub fn begin(&mut self) -> Result<(), String> {
        self.is_first &= self.end.kept.count == 0;
        if self.kind.is_resumed() {
            // The newest: some servers take each only once.
            self.resume.clone_from(&self.end.kept.bytes);
        }
        self.with(|end, config| end.connect(&Fast, config).map_err(|cause| format!("client: {cause:?}")))
    }

    /// Takes what the server sent.
    ///
    /// Errors: the engine's.
    pub fn receive(&mut self, bytes: &mut [u8]) -> Result<Came, String> {
        self.with(|end, config| {
            end.receive(&Fast, config, bytes, &mut [])
                .map_err(|cause| format!("client: {cause:?}"))
        })
    }

    /// What waits to be sent.
    pub fn take_out(&mut self) -> &[u8] {
        self.end.take_out()
    }

    /// Whether data flows.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.end.session.state_id() == skerry_tls::state::StateId::Connected
    }

    /// Sessions that may be resumed, so far.
    #[must_use]
    pub const fn tickets(&self) -> u64 {
        self.end.kept.count
    }

    /// That the handshake was of the kind that was meant, once there was one to be resumed.
    ///
    /// Errors: it was not.
    pub fn check(&self) -> Result<(), String> {
        let agreed = self.end.session.agreed();
        let resumed = self.kind.is_resumed() && !self.is_first;
        let group = (self.kind.version == Version::Tls13 || !resumed).then_some(Group::X25519);
        if !self.is_connected()
            || !agreed.suite.is_some_and(|suite| self.kind.suites().contains(&suite))
            || agreed.group != group
            || agreed.resumed != resumed
            || agreed.own_scheme.is_some() != self.kind.is_mutual()
        {
            return Err(format!(
                "a {} came out as {agreed:?} in {:?}",
                self.kind,
                self.end.session.state_id()
            ));
        }
        Ok(())
    }

    fn with<T>(&mut self, call: impl FnOnce(&mut End<Fast>, Config<'_, Fast>) -> T) -> T {
        let identity: Option<Identity<'_, Fast>> = self.own.as_ref().map(Loaded::identity);
        let config = ClientConfig {
            versions: &self.versions,
            suites: self.kind.suites(),
            identity: identity.as_ref(),
            resume: &self.resume,
            ..ClientConfig::new(&self.verifier, Some(ServerName::Dns("broker.example")))
        };
        call(&mut self.end, Config::Client(&config))
    }
}
