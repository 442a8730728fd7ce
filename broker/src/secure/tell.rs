//! What is told of handshakes: counters, and one line for each.

use core::fmt;
use core::net::SocketAddr;

use skerry_core::meter::Ticks;
use skerry_tls::alert::Alert;
use skerry_tls::cause::{Cause, Met};
use skerry_tls::meter::Cost;
use skerry_tls::notes::{Notes, Offered};
use skerry_tls::session::Session;
use skerry_tls::state::StateId;
use skerry_tls::suite::{CipherSuite, Group, SignatureScheme, Version};
use skerry_tls::trail::Trail;
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
    /// Connections that failed after their handshake, likewise.
    pub broken: [u64; Cause::IDS.len()],
    /// Tickets given.
    pub tickets_given: u64,
    /// Handshakes that resumed the session that the client offered.
    pub resumptions_accepted: u64,
    /// Handshakes that did not, and were full ones.
    pub resumptions_refused: u64,
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
    /// Ticks by the state that a step began in, of the same handshakes.
    pub states: [u64; StateId::ALL.len()],
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            done: [[0; 2]; 2],
            failed: [0; Cause::IDS.len()],
            broken: [0; Cause::IDS.len()],
            tickets_given: 0,
            resumptions_accepted: 0,
            resumptions_refused: 0,
            probes: 0,
            closes_clean: 0,
            closes_truncated: 0,
            closes_reset: 0,
            cost: Cost::default(),
            states: [0; StateId::ALL.len()],
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
        self.tickets_given += u64::from(session.agreed().tickets_given);
        if notes.offered.resumption {
            self.resumptions_accepted += u64::from(session.is_resumed());
            self.resumptions_refused += u64::from(!session.is_resumed());
        }
        self.on_ended(notes);
    }

    /// A handshake failed.
    pub fn on_failed(&mut self, cause: Cause, notes: &Notes) {
        count(&mut self.failed, cause);
        self.on_ended(notes);
    }

    /// A connection failed after its handshake.
    pub fn on_broken(&mut self, cause: Cause) {
        count(&mut self.broken, cause);
    }

    fn on_ended(&mut self, notes: &Notes) {
        self.cost.merge(&notes.cost);
        for step in notes.trail.steps() {
            if let Some(ticks) = self.states.get_mut(step.from as usize) {
                *ticks = ticks.saturating_add(step.ticks.0);
            }
        }
    }
}

fn count(by_cause: &mut [u64], cause: Cause) {
    let place = Cause::IDS.iter().position(|id| *id == cause.id());
    if let Some(count) = place.and_then(|place| by_cause.get_mut(place)) {
        *count += 1;
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

/// The steps of a handshake: the state that each began in and what it cost, then the state that the last one led to.
///
/// `await_client_hello 41us > await_client_finished 95us > connected`. A step's time is what the tick counter passed; when another program
/// had the processor meanwhile, that is in it.
pub struct Steps<'a> {
    /// What was noted.
    pub trail: &'a Trail,
    /// How long a tick lasts.
    pub tick_seconds: f64,
}

impl fmt::Display for Steps<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = |ticks: Ticks| (ticks.0 as f64 * self.tick_seconds * 1e6).round() as u64;
        for step in self.trail.steps() {
            write!(f, "{} {}us > ", step.from.name(), micros(step.ticks))?;
        }
        match (self.trail.missed(), self.trail.steps().last()) {
            (0, Some(last)) => f.write_str(last.to.name()),
            (0, None) => f.write_str(StateId::AwaitClientHello.name()),
            (missed, _) => write!(f, "{missed} more"),
        }
    }
}

/// The line of a handshake that failed, or of a connection after it.
pub struct Failed<'a> {
    /// Who connected.
    pub peer: SocketAddr,
    /// Why.
    pub cause: Cause,
    /// Where it stood.
    pub state: StateId,
    /// What the peer was told.
    pub alert: Option<Alert>,
    /// The subject of its certificate, where that is the trouble and the certificate is good.
    pub subject: Option<&'a str>,
    /// What the handshake noted; `None` when it was over.
    pub notes: Option<&'a Notes>,
    /// How long a tick lasts.
    pub tick_seconds: f64,
    /// Lines like this that were not written.
    pub missed: Missed,
}

impl fmt::Display for Failed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.notes {
            Some(_) => "TLS handshake failed",
            None => "TLS failed",
        };
        write!(f, "{}: {what}: {}", self.peer, What(self.cause, self.state))?;
        if let Some(alert) = self.alert {
            write!(f, "; alert {} sent", alert.name())?;
        }
        if let Some(details) = self.notes.and_then(|notes| Details::of(&notes.refused)) {
            write!(f, "; certificate {details}")?;
        } else if let Some(subject) = self.subject {
            write!(f, "; certificate subject \"{subject}\"")?;
        }
        write!(f, "; {}{}", self.cause.cure(), self.missed)?;
        let Some(notes) = self.notes else { return Ok(()) };
        let steps = Steps {
            trail: &notes.trail,
            tick_seconds: self.tick_seconds,
        };
        write!(f, "; trail=\"{steps}\"")?;
        // The offer is long, and last: a line has its end.
        offered(f, &notes.offered)
    }
}

/// What ended a session, and in which state: the cause's identifier with what it carries.
pub struct What(pub Cause, pub StateId);

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(cause, state) = self;
        f.write_str(cause.id())?;
        match *cause {
            Cause::OutOfSequence { state, met } => write!(f, " ({met} met, {} expected)", state.expects())?,
            Cause::PeerAlert(alert) => write!(f, " {}", alert.name())?,
            Cause::PeerAlertUnknown(number) => write!(f, " {number}")?,
            Cause::PlaintextPeer(spoken) => write!(f, " ({spoken})")?,
            Cause::NoCommonVersion(version) => match version_name(version) {
                Some(name) => write!(f, " (at most {name})")?,
                None => write!(f, " (at most {version:#06x})")?,
            },
            Cause::RecordVersion(version) => write!(f, " ({version:#06x})")?,
            Cause::MissingExtension(n) | Cause::UnsupportedExtension(n) => write!(f, " (extension {n})")?,
            Cause::Decode(kind) | Cause::IllegalParameter(kind) => write!(f, " ({})", Met::Handshake(kind))?,
            _ => {}
        }
        write!(f, " in {}", state.name())
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
    list(f, "versions", &offered.versions, version_name)?;
    list(f, "suites", &offered.suites, |n| {
        CipherSuite::from_wire(n).map(CipherSuite::name)
    })?;
    list(f, "groups", &offered.groups, group_name)?;
    list(f, "schemes", &offered.schemes, |n| {
        SignatureScheme::from_wire(n).map(SignatureScheme::name)
    })
}

const fn version_name(version: u16) -> Option<&'static str> {
    Some(match version {
        0x0304 => "TLSv1.3",
        0x0303 => "TLSv1.2",
        0x0302 => "TLSv1.1",
        0x0301 => "TLSv1.0",
        0x0300 => "SSLv3",
        _ => return None,
    })
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
