//! What is told of handshakes: counters, and one line for each.

use core::fmt;
use core::net::SocketAddr;

use skerry_tls::alert::Alert;
use skerry_tls::cause::{Cause, Met};
use skerry_tls::meter::Cost;
use skerry_tls::notes::{Notes, Offered};
use skerry_tls::session::Session;
use skerry_tls::state::StateId;
use skerry_tls::suite::{CipherSuite, Group, SignatureScheme, Version};
use skerry_tls::x509::Details;

use super::Chosen;
use crate::logging::Missed;

/// Counters since start.
#[derive(Clone, Debug)]
pub struct Counters {
    /// Handshakes done: full and resumed, of TLS 1.2 and 1.3.
    pub done: [[u64; 2]; 2],
    /// Handshakes failed, by the place of the cause's identifier in [`Cause::IDS`].
    pub failed: [u64; Cause::IDS.len()],
    /// Connections closed before their first byte.
    pub probes: u64,
    /// Connections whose peer sent close_notify.
    pub closes_clean: u64,
    /// Connections whose peer closed without close_notify.
    pub closes_truncated: u64,
    /// Connections that were reset.
    pub closes_reset: u64,
    /// Ticks by phase, of all handshakes that have ended.
    pub cost: Cost,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            done: [[0; 2]; 2],
            failed: [0; Cause::IDS.len()],
            probes: 0,
            closes_clean: 0,
            closes_truncated: 0,
            closes_reset: 0,
            cost: Cost::default(),
        }
    }
}

impl Counters {
    /// A handshake ended well.
    pub fn on_done(&mut self, session: &Session<Chosen>, notes: &Notes) {
        let version = usize::from(session.version() == Some(Version::Tls13));
        if let Some(count) = self
            .done
            .get_mut(version)
            .and_then(|of| of.get_mut(usize::from(session.is_resumed())))
        {
            *count += 1;
        }
        self.cost.merge(&notes.cost);
    }

    /// A handshake failed.
    pub fn on_failed(&mut self, cause: Cause, notes: &Notes) {
        let place = Cause::IDS.iter().position(|id| *id == cause.id());
        if let Some(count) = place.and_then(|place| self.failed.get_mut(place)) {
            *count += 1;
        }
        self.cost.merge(&notes.cost);
    }
}

/// The line of a handshake that ended well.
pub struct Done<'a> {
    /// Who connected.
    pub peer: SocketAddr,
    /// Its session.
    pub session: &'a Session<Chosen>,
    /// Its principal.
    pub principal: &'a str,
}

impl fmt::Display for Done<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let agreed = self.session.agreed();
        write!(f, "{}: ", self.peer)?;
        f.write_str(agreed.version.map_or("TLS", Version::name))?;
        if let Some(suite) = agreed.suite {
            write!(f, " {}", suite.name())?;
        }
        if let Some(group) = agreed.group {
            write!(f, " {}", group.name())?;
        }
        f.write_str(if agreed.resumed {
            ", resumed"
        } else {
            ", full handshake"
        })?;
        if let Some(name) = &agreed.server_name {
            write!(f, ", for {name}")?;
        }
        write!(f, ", {}", self.principal)
    }
}

/// The line of a handshake that failed.
pub struct Failed<'a> {
    /// Who connected.
    pub peer: SocketAddr,
    /// Why.
    pub cause: Cause,
    /// Where it stood.
    pub state: StateId,
    /// What the peer was told.
    pub alert: Option<Alert>,
    /// What it noted.
    pub notes: &'a Notes,
    /// Lines like this that were not written.
    pub missed: Missed,
}

impl fmt::Display for Failed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: TLS handshake failed: {}", self.peer, self.cause.id())?;
        match self.cause {
            Cause::OutOfSequence { state, met } => {
                write!(
                    f,
                    " ({} met in {}, which expects {})",
                    Name(met),
                    state.name(),
                    state.expects()
                )?;
            }
            Cause::PeerAlert(alert) => write!(f, " {} in {}", alert.name(), self.state.name())?,
            Cause::PeerAlertUnknown(number) => write!(f, " {number} in {}", self.state.name())?,
            Cause::PlaintextPeer(spoken) => write!(f, " ({spoken:?})")?,
            Cause::NoCommonVersion(version) => write!(f, " (at most {})", version_name(version))?,
            Cause::MissingExtension(n) | Cause::UnsupportedExtension(n) => write!(f, " (extension {n})")?,
            Cause::Decode(kind) | Cause::IllegalParameter(kind) => write!(f, " ({})", Name(Met::Handshake(kind)))?,
            _ => write!(f, " in {}", self.state.name())?,
        }
        if let Some(alert) = self.alert {
            write!(f, "; alert {} sent", alert.name())?;
        }
        if let Some(details) = Details::of(&self.notes.refused) {
            write!(f, "; certificate {details}")?;
        }
        // The offer is long, and last: a line has its end.
        write!(f, "; {}{}", self.cause.cure(), self.missed)?;
        offered(f, &self.notes.offered)
    }
}

fn offered(f: &mut fmt::Formatter<'_>, offered: &Offered) -> fmt::Result {
    let list = |f: &mut fmt::Formatter<'_>, what: &str, numbers: &[u16], name: fn(u16) -> Option<&'static str>| {
        let mut shown = numbers.iter().filter(|n| !is_grease(**n)).peekable();
        if shown.peek().is_none() {
            return Ok(());
        }
        write!(f, " {what}")?;
        for (i, number) in shown.enumerate() {
            f.write_str(if i == 0 { " " } else { "," })?;
            match name(*number) {
                Some(name) => f.write_str(name)?,
                None => write!(f, "{number:#06x}")?,
            }
        }
        Ok(())
    };
    if offered.versions.is_empty() && offered.suites.is_empty() {
        return Ok(());
    }
    f.write_str("; offered")?;
    list(f, "versions", &offered.versions, |n| match version_name(n) {
        "" => None,
        name => Some(name),
    })?;
    list(f, "suites", &offered.suites, |n| {
        CipherSuite::from_wire(n).map(CipherSuite::name)
    })?;
    list(f, "groups", &offered.groups, group_name)?;
    list(f, "schemes", &offered.schemes, |n| {
        SignatureScheme::from_wire(n).map(SignatureScheme::name)
    })
}

const fn version_name(version: u16) -> &'static str {
    match version {
        0x0304 => "TLSv1.3",
        0x0303 => "TLSv1.2",
        0x0302 => "TLSv1.1",
        0x0301 => "TLSv1.0",
        0x0300 => "SSLv3",
        _ => "",
    }
}

/// Groups by the IANA registry, those that are not spoken here included: they are what a user has to change.
fn group_name(group: u16) -> Option<&'static str> {
    Group::from_wire(group).map(Group::name).or(match group {
        0x0018 => Some("secp384r1"),
        0x0019 => Some("secp521r1"),
        0x001e => Some("x448"),
        0x0100 => Some("ffdhe2048"),
        0x11ec => Some("X25519MLKEM768"),
        _ => None,
    })
}

/// Values that clients send to keep servers tolerant (RFC 8701).
const fn is_grease(value: u16) -> bool {
    value & 0x0f0f == 0x0a0a && value >> 8 == value & 0xff
}

struct Name(Met);

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.0 {
            Met::Handshake(0) => "hello_request",
            Met::Handshake(1) => "client_hello",
            Met::Handshake(2) => "server_hello",
            Met::Handshake(4) => "new_session_ticket",
            Met::Handshake(5) => "end_of_early_data",
            Met::Handshake(8) => "encrypted_extensions",
            Met::Handshake(11) => "certificate",
            Met::Handshake(12) => "server_key_exchange",
            Met::Handshake(13) => "certificate_request",
            Met::Handshake(14) => "server_hello_done",
            Met::Handshake(15) => "certificate_verify",
            Met::Handshake(16) => "client_key_exchange",
            Met::Handshake(20) => "finished",
            Met::Handshake(24) => "key_update",
            Met::Record(20) => "change_cipher_spec",
            Met::Record(21) => "an alert",
            Met::Record(23) => "application data",
            Met::Handshake(number) => return write!(f, "handshake message {number}"),
            Met::Record(number) => return write!(f, "record type {number}"),
        };
        f.write_str(name)
    }
}
