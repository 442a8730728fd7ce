//! The client of every handshake that is measured: our engine's client role over the fast provider, whoever the server is. It takes any
//! certificate, so that its cost is the same for all.

use skerry_tls::cause::Cause;
use skerry_tls::certificate::ServerName;
use skerry_tls::config::{ClientConfig, Config, Identity};
use skerry_tls::crypto::fast::Fast;
use skerry_tls::suite::{Group, Version};
use skerry_tls::testing::{Accepting, Fixture, Loaded};

use super::kind::Fault;
use super::{Kind, canned};
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
    /// Whether a full handshake will do where a session should be resumed.
    lenient: bool,
    /// Flights that this connection sent.
    flights: u32,
    /// The last of them.
    out: Vec<u8>,
}

impl Client {
    /// Of that kind.
    #[must_use]
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            versions: [kind.hello_version()],
            own: kind.is_mutual().then(|| {
                let identity = match kind.fault {
                    Some(Fault::ClientUnknown) => Fixture::OTHER,
                    _ => Fixture::DEVICE,
                };
                Loaded::new(&Fast, identity)
            }),
            verifier: Accepting {
                refuses: (kind.fault == Some(Fault::UnknownCa)).then_some(Cause::UnknownCa),
                ..Accepting::default()
            },
            end: End::default(),
            resume: Vec::new(),
            is_first: true,
            lenient: false,
            flights: 0,
            out: Vec::new(),
        }
    }

    /// Begins a connection; its hello waits in [`Client::take_out`]. A kind that resumes does so from the second connection on.
    ///
    /// Errors: the engine's.
    pub fn begin(&mut self) -> Result<(), String> {
        self.is_first &= self.end.kept.count == 0;
        self.flights = 0;
        if self.kind.is_resumed() {
            // The newest: some servers take each only once.
            self.resume.clone_from(&self.end.kept.bytes);
        }
        self.with(|end, config| end.connect(&Fast, config).map_err(|cause| format!("client: {cause:?}")))
    }

    /// Takes what the server sent.
    ///
    /// Errors: the engine's, but for one that is meant: then all is consumed.
    pub fn receive(&mut self, bytes: &mut [u8]) -> Result<Came, String> {
        let is_meant = self.kind.fault.is_some();
        let all = bytes.len();
        self.with(|end, config| match end.receive(&Fast, config, bytes, &mut []) {
            Err(_) if is_meant => Ok(Came {
                consumed: all,
                ..Came::default()
            }),
            other => other.map_err(|cause| format!("client: {cause:?}")),
        })
    }

    /// What waits to be sent, with what is to be wrong in it.
    pub fn take_out(&mut self) -> &[u8] {
        self.out.clear();
        self.out.extend_from_slice(self.end.take_out());
        let Some(first) = (!self.out.is_empty()).then_some(self.flights == 0) else {
            return &self.out;
        };
        self.flights += 1;
        match (self.kind.fault, first) {
            (Some(Fault::Plaintext), true) => self.out = canned::PLAINTEXT.into(),
            (Some(Fault::NoCommonVersion), true) => canned::make_old(&mut self.out),
            (Some(Fault::NoCommonSuite), true) => canned::make_strange(&mut self.out),
            (Some(Fault::Silent), false) => self.out.clear(),
            (Some(Fault::BadFinished), false) => {
                if let Some(last) = self.out.last_mut() {
                    *last ^= 1;
                }
            }
            _ => {}
        }
        &self.out
    }

    /// From now on a full handshake will do where a session should be resumed.
    pub const fn be_lenient(&mut self) {
        self.lenient = true;
    }

    /// Flights that the present connection had to send; an empty one counts.
    #[must_use]
    pub const fn flights(&self) -> u32 {
        self.flights
    }

    /// The suite that was agreed on.
    #[must_use]
    pub fn suite(&self) -> Option<String> {
        self.end.session.agreed().suite.map(|suite| format!("{suite:?}"))
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
            || (self.kind.is_alike() && agreed.group != group)
            || (agreed.resumed != resumed && !self.lenient)
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
            hello_bytes_min: self.kind.hello_bytes,
            ..ClientConfig::new(&self.verifier, Some(ServerName::Dns("broker.example")))
        };
        call(&mut self.end, Config::Client(&config))
    }
}
