//! The runner's flags. What is not here is not implemented.

use std::time::Duration;

use skerry_tls::alert::Alert;
use skerry_tls::cause::Cause;
use skerry_tls::crypto::either::Choice;
use skerry_tls::suite::{Group, SignatureScheme, Version};

use super::Wrong;

/// What the command line says.
pub struct Flags {
    pub port: u16,
    pub is_ipv6: bool,
    pub shim_id: u64,
    pub is_server: bool,
    /// Connections after the first.
    pub resume_count: usize,
    pub provider: Choice,
    /// For the first connection.
    pub initial: Setting,
    /// For those after it.
    pub resume: Setting,
}

/// Files of a certificate chain and its key.
#[derive(Clone, Default)]
pub struct Files {
    pub certificates: String,
    pub key: String,
}

/// What one connection is to do, and what is expected of it.
#[derive(Clone, Default)]
pub struct Setting {
    /// The first is the one without `-new-x509-credential`.
    pub credentials: Vec<Files>,
    pub trusted: Option<String>,
    pub requires_client: bool,
    pub verifies_peer: bool,
    pub fails_verification: bool,
    pub has_custom_verification: bool,
    pub reverifies: bool,
    pub versions: Vec<Version>,
    pub groups: Vec<Group>,
    pub shares: Vec<Group>,
    pub signing: Vec<SignatureScheme>,
    pub verifying: Vec<SignatureScheme>,
    pub host_name: Option<String>,
    pub tickets: bool,
    pub is_async: bool,
    pub writes_first: bool,
    pub first_write: String,
    pub first_write_count: usize,
    pub writes_different_sizes: bool,
    pub shuts_down: bool,
    pub checks_close_notify: bool,
    pub sends_alert: bool,
    pub updates_keys: bool,
    pub updates_keys_before_reading: bool,
    pub resumption_delay: Duration,
    pub expects: Expects,
    min_version: u16,
    max_version: u16,
    without: Vec<Version>,
    given_shares: Option<Vec<Group>>,
}

/// What must have come of a connection.
#[derive(Clone, Default)]
pub struct Expects {
    pub version: Option<u16>,
    pub suite: Option<u16>,
    pub group: Option<u16>,
    pub peer_scheme: Option<u16>,
    pub offered_schemes: Vec<u16>,
    pub retry: Option<bool>,
    pub session_miss: bool,
    pub extended_master_secret: bool,
    pub ticket_renewal: bool,
    pub no_session: bool,
    pub no_peer: bool,
    pub server_name: Option<String>,
    pub no_server_name: bool,
}

impl Setting {
    fn new() -> Self {
        Self {
            tickets: true,
            first_write: "hello".into(),
            first_write_count: 1,
            max_version: u16::MAX,
            ..Self::default()
        }
    }

    /// What a verification that must fail says, as the runner expects of either callback.
    pub const fn verdict(&self) -> Cause {
        Cause::RefusedHere(if self.has_custom_verification {
            Alert::CertificateUnknown
        } else {
            Alert::HandshakeFailure
        })
    }

    /// What is written before anything is read.
    pub fn first_writes(&self) -> Vec<Vec<u8>> {
        if self.writes_different_sizes {
            let sizes = [1, 255, 256, 257, 16383, 16384, 16385, 32767, 32768, 32769];
            return sizes.iter().map(|&size| vec![0x42; size]).collect();
        }
        let count = if self.writes_first { self.first_write_count } else { 0 };
        vec![self.first_write.clone().into_bytes(); count]
    }

    fn credential(&mut self) -> &mut Files {
        if self.credentials.is_empty() {
            self.credentials.push(Files::default());
        }
        let last = self.credentials.len() - 1;
        &mut self.credentials[last]
    }

    /// Lists that depend on more than one flag.
    fn settle(&mut self) -> Result<(), Wrong> {
        let versions = [Version::Tls13, Version::Tls12].into_iter();
        let may = |version: &Version| {
            (self.min_version..=self.max_version).contains(&version.wire()) && !self.without.contains(version)
        };
        self.versions = versions.filter(may).collect();
        if self.versions.is_empty() {
            return Err(Wrong::Unimplemented("versions before 1.2".into()));
        }
        if self.groups.is_empty() {
            self.groups = Group::ALL.to_vec();
        }
        self.shares = match &self.given_shares {
            Some(shares) => shares.clone(),
            None => self.groups.iter().copied().take(1).collect(),
        };
        for schemes in [&mut self.signing, &mut self.verifying] {
            if schemes.is_empty() {
                *schemes = SignatureScheme::ALL.to_vec();
            }
        }
        Ok(())
    }
}

impl Flags {
    pub fn parse(arguments: &[String]) -> Result<Self, Wrong> {
        let mut flags = Self {
            port: 0,
            is_ipv6: false,
            shim_id: 0,
            is_server: false,
            resume_count: 0,
            provider: Choice::Auto,
            initial: Setting::new(),
            resume: Setting::new(),
        };
        let mut rest = arguments.iter();
        while let Some(flag) = rest.next() {
            let mut value = || {
                let value = rest.next().map(String::as_str);
                value.ok_or_else(|| Wrong::Other(format!("{flag} wants a value")))
            };
            match flag.as_str() {
                "-port" => flags.port = number(value()?)?,
                "-shim-id" => flags.shim_id = number(value()?)?,
                "-ipv6" => flags.is_ipv6 = true,
                "-server" => flags.is_server = true,
                "-resume-count" => flags.resume_count = number(value()?)?,
                // Ours, for `-shim-extra-flags`.
                "-provider" => {
                    flags.provider = value()?.parse().map_err(|_| Wrong::Other("no such provider".into()))?
                }
                _ => flags.of_connection(flag, &mut value)?,
            }
        }
        flags.initial.settle()?;
        flags.resume.settle()?;
        Ok(flags)
    }

    /// A flag of one connection, or of all.
    fn of_connection<'v>(
        &mut self,
        flag: &str,
        value: &mut dyn FnMut() -> Result<&'v str, Wrong>,
    ) -> Result<(), Wrong> {
        let flag = flag.strip_prefix("-on-shim").unwrap_or(flag);
        let (name, to_initial, to_resume) = if let Some(name) = flag.strip_prefix("-on-initial") {
            (name, true, false)
        } else if let Some(name) = flag.strip_prefix("-on-resume") {
            (name, false, true)
        } else if let Some(name) = flag.strip_prefix("-on-retry") {
            // A retry follows early data that was refused, and none is ever sent.
            (name, false, false)
        } else {
            (flag, true, true)
        };
        let given = if takes_value(name) { value()? } else { "" };
        let mut nowhere = Setting::new();
        let mut settings = Vec::new();
        if to_initial {
            settings.push(&mut self.initial);
        }
        if to_resume {
            settings.push(&mut self.resume);
        }
        if settings.is_empty() {
            settings.push(&mut nowhere);
        }
        settings.into_iter().try_for_each(|setting| set(setting, name, given))
    }
}

/// Flags that have a value.
fn takes_value(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "-cert-file",
        "-key-file",
        "-trust-cert",
        "-signing-prefs",
        "-verify-prefs",
        "-curves",
        "-key-shares",
        "-min-version",
        "-max-version",
        "-host-name",
        "-shim-initial-write",
        "-repeat-shim-initial-write",
        "-read-size",
        "-resumption-delay",
        "-expect-version",
        "-expect-cipher",
        "-expect-cipher-aes",
        "-expect-cipher-no-aes",
        "-expect-curve-id",
        "-expect-peer-signature-algorithm",
        "-expect-peer-verify-pref",
        "-expect-server-name",
        "-expect-early-data-reason",
        "-expect-total-renegotiations",
    ];
    NAMES.contains(&name)
}

fn set(setting: &mut Setting, name: &str, value: &str) -> Result<(), Wrong> {
    match name {
        "-new-x509-credential" => {
            setting.credential();
            setting.credentials.push(Files::default());
        }
        "-cert-file" => setting.credential().certificates = value.into(),
        "-key-file" => setting.credential().key = value.into(),
        "-trust-cert" => setting.trusted = (!value.is_empty()).then(|| value.into()),
        "-require-any-client-certificate" => setting.requires_client = true,
        "-verify-peer" => setting.verifies_peer = true,
        "-verify-fail" => setting.fails_verification = true,
        "-use-custom-verify-callback" => setting.has_custom_verification = true,
        "-reverify-on-resume" => setting.reverifies = true,
        "-signing-prefs" => setting.signing.push(scheme(value)?),
        "-verify-prefs" => setting.verifying.push(scheme(value)?),
        "-curves" => setting.groups.push(group(value)?),
        "-key-shares" => setting.given_shares.get_or_insert_default().push(group(value)?),
        "-no-key-shares" => setting.given_shares = Some(Vec::new()),
        "-min-version" => setting.min_version = number(value)?,
        "-max-version" => setting.max_version = number(value)?,
        "-no-tls13" => setting.without.push(Version::Tls13),
        "-no-tls12" => setting.without.push(Version::Tls12),
        "-host-name" => setting.host_name = Some(value.into()),
        "-no-ticket" => setting.tickets = false,
        "-async" => setting.is_async = true,
        "-shim-writes-first" => setting.writes_first = true,
        "-shim-initial-write" => setting.first_write = value.into(),
        "-repeat-shim-initial-write" => setting.first_write_count = number(value)?,
        "-write-different-record-sizes" => setting.writes_different_sizes = true,
        "-shim-shuts-down" => setting.shuts_down = true,
        "-check-close-notify" => setting.checks_close_notify = true,
        "-send-alert" => setting.sends_alert = true,
        "-key-update" => setting.updates_keys = true,
        "-key-update-before-read" => setting.updates_keys_before_reading = true,
        "-resumption-delay" => setting.resumption_delay = Duration::from_secs(number(value)?),
        "-expect-version" => setting.expects.version = Some(number(value)?),
        "-expect-cipher" | "-expect-cipher-aes" => setting.expects.suite = Some(number(value)?),
        "-expect-curve-id" => setting.expects.group = Some(number(value)?),
        "-expect-peer-signature-algorithm" => setting.expects.peer_scheme = Some(number(value)?),
        "-expect-peer-verify-pref" => setting.expects.offered_schemes.push(number(value)?),
        "-expect-hrr" => setting.expects.retry = Some(true),
        "-expect-no-hrr" => setting.expects.retry = Some(false),
        "-expect-session-miss" => setting.expects.session_miss = true,
        "-expect-extended-master-secret" => setting.expects.extended_master_secret = true,
        "-expect-ticket-renewal" => setting.expects.ticket_renewal = true,
        "-expect-no-session" => setting.expects.no_session = true,
        "-expect-no-peer-cert" => setting.expects.no_peer = true,
        "-expect-server-name" => setting.expects.server_name = Some(value.into()),
        "-expect-no-server-name" => setting.expects.no_server_name = true,
        // Of no consequence here: versions that are never spoken, callbacks that this engine does not have, reads that are always as long as a
        // record, sessions that no server of ours keeps.
        "-no-tls1" | "-no-tls11" => {}
        "-implicit-handshake" | "-no-op-extra-handshake" | "-partial-write" | "-peek-then-read" | "-read-size" => {}
        "-use-old-client-cert-callback" | "-use-early-callback" => {}
        "-expect-verify-result" | "-expect-no-session-id" | "-expect-cipher-no-aes" => {}
        "-renegotiate-ignore" | "-server-preference" => {}
        "-install-ddos-callback" => {}
        "-expect-early-data-reason" if value == "disabled" => {}
        "-expect-total-renegotiations" if value == "0" => {}
        _ => return Err(Wrong::Unimplemented(name.into())),
    }
    Ok(())
}

fn number<N: std::str::FromStr>(text: &str) -> Result<N, Wrong> {
    text.parse()
        .map_err(|_| Wrong::Other(format!("{text} is no number here")))
}

fn group(text: &str) -> Result<Group, Wrong> {
    Group::from_wire(number(text)?).ok_or_else(|| Wrong::Unimplemented(format!("group {text}")))
}

fn scheme(text: &str) -> Result<SignatureScheme, Wrong> {
    SignatureScheme::from_wire(number(text)?).ok_or_else(|| Wrong::Unimplemented(format!("scheme {text}")))
}
