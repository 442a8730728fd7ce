//! TLS for the broker's connections: sessions by connection slot, record buffers, handshake places, penalties, and what is told of it all.
//!
//! The engine is `skerry_tls`; the pull loop is [`crate::conn`]. Here is what lies between: a connection asks to read, to fill records with
//! what it sends, to flush them, and to go on with its handshake.

mod handshakes;
mod link;
mod penalty;
mod settings;
mod tell;

use core::cell::RefCell;
use core::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use ::log::{debug, info, warn};
use skerry_core::meter::{Cost, Laps, Phase, Ticks};
use skerry_core::time::{Instant, Millis, Timestamp};
use skerry_net::host::{Host, NetError, StreamId};
use skerry_net::pool::PairPool;
use skerry_tls::cause::Cause;
use skerry_tls::config::Config;
use skerry_tls::crypto::{CryptoError, Provider, Random, arena};
use skerry_tls::handshake::TicketKeys;
use skerry_tls::notes::Notes;
use skerry_tls::record::{CONTENT_BYTES_MAX, RECORD_BYTES_MAX};
use skerry_tls::session::{Context, Event, Out, Reassembly, Session};
use skerry_tls::state::StateId;

pub use handshakes::Handshakes;
pub use settings::{Chosen, IDENTITIES_MAX, OwnIdentity, Settings, Trust};
pub use tell::{Counters, What};

use crate::handler::HostName;
use crate::logging::RateLimited;
use crate::metrics;
use crate::tls_setup::TlsSetup;

use link::Link;
use penalty::Penalties;
use tell::{Done, Failed, Steps};

/// Records that a receive buffer holds: one whole, and the most of the next.
const RECEIVE_BYTES: usize = 2 * RECORD_BYTES_MAX;

/// Records that are sealed for one send.
const SEND_RECORDS: usize = 4;

/// Room for them, and for an alert or KeyUpdate besides.
const SEND_BYTES: usize = SEND_RECORDS * (CONTENT_BYTES_MAX + 40) + 256;

/// Room that is kept for an alert or KeyUpdate.
const SPARE_BYTES: usize = 256;

/// Plaintext of the longest flight: a chain of the longest handshake message, and the messages around it.
const SCRATCH_BYTES: usize = MESSAGE_BYTES + 4096;

/// The longest handshake message: sixteen certificates of 1 KiB, or one large ClientHello.
pub const MESSAGE_BYTES: usize = 16 * 1024;

/// How long a handshake may stand still when others wait for its place.
pub const PATIENCE: Millis = Millis(2_000);

/// Lines of one kind that peers can cause, in each [`LOG_PER`].
const LOG_BURST: u32 = 10;
const LOG_PER: Millis = Millis(1_000);

/// How often there is a warning of certificates that end soon.
const DAY: Millis = Millis(24 * 60 * 60 * 1000);

/// Why a connection's bytes stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The socket.
    Net(NetError),
    /// TLS. The alert, if there is one, waits to be flushed.
    Tls(Cause),
}

/// What a step of a handshake came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shake {
    /// It went on.
    Did,
    /// It waits for its socket.
    Waits,
    /// It waits for a place.
    WantsPlace,
    /// It is done.
    Connected,
    /// The peer closed before its first byte: a health probe or a port scan.
    Probe,
    /// It failed.
    Failed(Cause),
}

/// A connection's socket as its owner sees it.
pub struct Socket<'a> {
    /// Which.
    pub stream: StreamId,
    /// A read may give something.
    pub readable: &'a mut bool,
    /// A write may take something.
    pub writable: &'a mut bool,
    /// The peer has closed its side.
    pub hangup: bool,
}

/// Where a connection's cost goes.
pub struct Account<'a> {
    /// The account.
    pub cost: &'a mut Cost,
    /// The stopwatch.
    pub laps: &'a mut Laps,
}

impl Account<'_> {
    fn charge<H: Host>(&mut self, phase: Phase, host: &mut H) {
        self.cost.add(phase, self.laps.lap(host.ticks()));
    }
}

/// All of it.
pub struct Desk {
    connections: usize,
    deadline: Millis,
    setup: TlsSetup,
    provider: Rc<Chosen>,
    settings: Vec<Option<Rc<Settings>>>,
    tickets: TicketKeys<Chosen>,
    links: Vec<Option<Link>>,
    records: PairPool,
    handshakes: Handshakes,
    penalties: Penalties,
    scratch: Vec<u8>,
    idle_notes: Notes,
    /// When there was a warning of certificates last.
    warned: Timestamp,
    done_log: RateLimited,
    failed_log: RateLimited,
    /// Whether somebody stands in line for a place.
    pub contended: bool,
    /// How long a tick lasts, for what is told.
    pub tick_seconds: f64,
    /// What was counted.
    pub counters: Counters,
}

/// The machine's randomness, as the engine takes it.
pub struct HostRandom<'a, H>(pub &'a RefCell<&'a mut H>);

impl<H: Host> Random for HostRandom<'_, H> {
    fn fill(&mut self, out: &mut [u8]) -> Result<(), CryptoError> {
        self.0.borrow_mut().random(out);
        Ok(())
    }
}

/// What opening came to.
enum Came {
    /// Data, in the caller's buffer.
    Data(usize),
    /// Data, in the receive buffer; or something beside data.
    Progress,
    Connected,
    Need,
    CloseNotify,
}

impl Desk {
    /// Over what the listeners were set up with. Takes its memory. At most half of the record buffers are lent to handshakes.
    ///
    /// Errors: keys for tickets cannot be made.
    pub fn new(
        config: &crate::config::Config,
        setup: TlsSetup,
        wall: Timestamp,
        random: &mut dyn Random,
    ) -> Result<Self, CryptoError> {
        let connections = config.limits.connections as usize;
        let tls = config.tls;
        let provider = Rc::clone(setup.provider());
        let lifetime_seconds = u32::try_from(tls.ticket_lifetime.0 / 1000).unwrap_or(u32::MAX);
        Ok(Self {
            connections,
            deadline: tls.handshake_timeout,
            tickets: TicketKeys::new(&*provider, random, wall, lifetime_seconds)?,
            settings: setup.settings().collect(),
            setup,
            provider,
            links: Vec::with_capacity(connections),
            records: PairPool::new(tls.record_buffers, RECEIVE_BYTES, SEND_BYTES),
            handshakes: Handshakes::new(tls.handshakes.min(tls.record_buffers / 2).max(1), MESSAGE_BYTES),
            penalties: Penalties::new(tls.penalty_max),
            scratch: vec![0; SCRATCH_BYTES],
            idle_notes: Notes::default(),
            warned: wall,
            done_log: RateLimited::new(LOG_BURST, LOG_PER),
            failed_log: RateLimited::new(LOG_BURST, LOG_PER),
            contended: false,
            tick_seconds: 0.0,
            counters: Counters::default(),
        })
    }

    /// Looks after files and ticket keys. `asked`: an operator wants everything read again (`SIGHUP`); else only when files have changed.
    ///
    /// Cost: next to nothing when there is nothing to do, so that it can be called as connections come.
    pub fn look_after(&mut self, asked: bool, now: Instant, wall: Timestamp, random: &mut dyn Random) {
        if self.tickets.is_due(wall)
            && let Err(error) = self.tickets.rotate(&self.provider, random, wall)
        {
            warn!(target: "skerry_broker::tls", "ticket keys cannot be turned over, the old ones stay: {error:?}");
        }
        if wall.0 >= self.warned.0 + DAY.0 as i64 {
            self.warned = wall;
            for warning in self.setup.warnings(wall) {
                warn!(target: "skerry_broker::tls", "{warning}");
            }
        }
        if !self.setup.have_files_changed(now) && !asked {
            return;
        }
        match self.setup.reload(wall, random) {
            Ok(changes) => {
                self.settings = self.setup.settings().collect();
                for notice in &changes.notices {
                    info!(target: "skerry_broker::tls", "{notice}");
                }
                if asked && changes.listeners.is_empty() {
                    info!(target: "skerry_broker::tls", "TLS was read again: nothing has changed");
                }
            }
            Err(problems) => {
                for problem in problems {
                    warn!(target: "skerry_broker::tls", "{problem}; what was loaded before stays in use");
                }
            }
        }
    }

    /// Memory budgets: name, bytes, and how they come about.
    #[must_use]
    pub fn budget(&self) -> [(&'static str, usize, &'static str); 3] {
        [
            (
                "TLS sessions",
                self.connections * size_of::<Option<Link>>(),
                "max.connections",
            ),
            (
                "TLS records",
                self.records.count() * (RECEIVE_BYTES + SEND_BYTES),
                "skerry.limits.record.buffers",
            ),
            (
                "TLS handshakes",
                self.handshakes.count() * (MESSAGE_BYTES + size_of::<handshakes::Place>()) + SCRATCH_BYTES,
                "skerry.limits.handshakes",
            ),
        ]
    }

    /// Whether that listener speaks TLS.
    #[must_use]
    pub fn serves(&self, listener: usize) -> bool {
        self.settings.get(listener).is_some_and(Option::is_some)
    }

    /// Pairs of record buffers and handshake places that are lent.
    #[must_use]
    pub fn held(&self) -> (usize, usize) {
        (self.records.leased(), self.handshakes.leased())
    }

    /// Places that are free, with record buffers for them.
    #[must_use]
    pub fn free_places(&self) -> usize {
        let records = self.records.count() - self.records.leased();
        (self.handshakes.count() - self.handshakes.leased()).min(records)
    }

    /// Pairs of record buffers that are free.
    #[must_use]
    pub fn free_records(&self) -> usize {
        self.records.count() - self.records.leased()
    }

    /// The numbers of this moment; `tick_seconds` is how long a tick lasts.
    #[must_use]
    pub fn snapshot(&self, tick_seconds: f64) -> metrics::Tls {
        metrics::Tls {
            counters: self.counters.clone(),
            provider: self.provider.name(),
            handshakes: self.handshakes.leased() as u64,
            records: self.records.leased() as u64,
            tick_seconds,
            heap: metrics::Heap {
                capacity: arena::capacity() as u64,
                used: arena::used() as u64,
                peak: arena::peak() as u64,
                refused: arena::refused() as u64,
            },
            listeners: self.setup.listeners().map(metrics::Listener::of).collect(),
        }
    }

    /// A connection was accepted: when it may be read from.
    pub fn accept(&mut self, slot: usize, listener: usize, peer: IpAddr, now: Instant) -> Instant {
        while self.links.len() <= slot {
            self.links.push(None);
        }
        if let Some(place) = self.links.get_mut(slot) {
            *place = Some(Link::new(listener, now));
        }
        self.penalties.starts_at(peer, now)
    }

    /// The session of a connection.
    #[must_use]
    pub fn session(&self, slot: usize) -> Option<&Session<Chosen>> {
        Some(&self.link(slot)?.session)
    }

    fn link(&self, slot: usize) -> Option<&Link> {
        self.links.get(slot)?.as_ref()
    }

    /// Whether a read may give something without news from the socket.
    #[must_use]
    pub fn has_more(&self, slot: usize) -> bool {
        self.link(slot).is_some_and(|link| link.more)
    }

    /// Whether sealed bytes have not left.
    #[must_use]
    pub fn has_sealed(&self, slot: usize) -> bool {
        self.link(slot).is_some_and(|link| !link.sealed.is_empty())
    }

    /// Whether the connection has record buffers, or gets them now.
    pub fn lease_records(&mut self, slot: usize) -> bool {
        let Some(Some(link)) = self.links.get_mut(slot) else {
            return false;
        };
        if link.records.is_none() {
            link.records = self.records.lease();
        }
        link.records.is_some()
    }

    /// When a connection's handshake must be looked at although nothing happened; `accepted` is when it began.
    #[must_use]
    pub fn due(&self, slot: usize, accepted: Instant) -> Instant {
        let end = accepted + self.deadline;
        match self.link(slot) {
            Some(link) if link.place.is_some() => end.min(link.progress + PATIENCE),
            _ => end,
        }
    }

    /// That moment has come: why the handshake fails, if it does.
    pub fn on_due(&mut self, slot: usize, accepted: Instant, now: Instant) -> Option<Cause> {
        let over = now >= accepted + self.deadline;
        let contended = self.contended;
        let Some(Some(link)) = self.links.get_mut(slot) else {
            return None;
        };
        let still = link.place.is_some() && now >= link.progress + PATIENCE;
        if over || (still && contended) {
            return Some(Cause::Timeout(link.session.state_id()));
        }
        if still {
            link.progress = now;
        }
        None
    }

    /// Goes on with a handshake as far as one record takes it.
    pub fn shake<H: Host>(
        &mut self,
        slot: usize,
        host: &mut H,
        socket: &mut Socket<'_>,
        now: Instant,
        wall: Timestamp,
        account: &mut Account<'_>,
    ) -> Shake {
        let Some(Some(link)) = self.links.get_mut(slot) else {
            return Shake::Failed(Cause::Internal);
        };
        if link.place.is_none() {
            let Some(Some(settings)) = self.settings.get(link.listener) else {
                return Shake::Failed(Cause::Internal);
            };
            if link.records.is_none() && self.records.leased() < self.records.count() {
                link.place = self.handshakes.lease(Rc::clone(settings));
            }
            if link.place.is_none() {
                return Shake::WantsPlace;
            }
            link.records = self.records.lease();
            link.progress = now;
        }
        if self.has_sealed(slot) {
            match self.flush(slot, host, socket, account) {
                Ok(_) => return Shake::Did,
                Err(nb::Error::WouldBlock) => return Shake::Waits,
                Err(nb::Error::Other(e)) => return self.broken(slot, e),
            }
        }
        let came = match self.has_more(slot) {
            true => self.open(slot, host, wall, &mut []),
            false => Ok(Came::Need),
        };
        account.charge(Phase::Handshake, host);
        match came {
            Ok(Came::Need) => match self.take_in(slot, host, socket, account) {
                Ok(0) if self.is_silent(slot) => Shake::Probe,
                Ok(0) => {
                    let state = self.link(slot).map(|link| link.session.state_id());
                    Shake::Failed(state.map_or(Cause::Internal, Cause::Closed))
                }
                Ok(_) => Shake::Did,
                Err(nb::Error::WouldBlock) => {
                    self.give_back_silent(slot);
                    Shake::Waits
                }
                Err(nb::Error::Other(e)) => self.broken(slot, e),
            },
            Ok(Came::Connected) => Shake::Connected,
            Ok(Came::CloseNotify) => {
                let state = self.link(slot).map(|link| link.session.state_id());
                Shake::Failed(state.map_or(Cause::Internal, Cause::Closed))
            }
            Ok(Came::Progress | Came::Data(_)) => {
                if let Some(Some(link)) = self.links.get_mut(slot) {
                    link.progress = now;
                }
                Shake::Did
            }
            Err(cause) => Shake::Failed(cause),
        }
    }

    fn broken(&self, slot: usize, error: NetError) -> Shake {
        let state = self.link(slot).map(|link| link.session.state_id());
        match (state, error) {
            (Some(_), _) if self.is_silent(slot) => Shake::Probe,
            (Some(state), NetError::Reset) => Shake::Failed(Cause::Reset(state)),
            (Some(state), _) => Shake::Failed(Cause::Closed(state)),
            (None, _) => Shake::Failed(Cause::Internal),
        }
    }

    /// Whether a connection has not said anything, not even a part of a hello that lies in its place.
    fn is_silent(&self, slot: usize) -> bool {
        self.link(slot).is_some_and(|link| {
            let part = link.place.as_ref().map_or(0, |place| self.handshakes.filled(place));
            link.session.state_id() == StateId::AwaitClientHello && link.is_empty() && part == 0
        })
    }

    /// A connection that has not said anything holds no place.
    fn give_back_silent(&mut self, slot: usize) {
        if !self.is_silent(slot) {
            return;
        }
        let Some(Some(link)) = self.links.get_mut(slot) else {
            return;
        };
        if let Some(place) = link.place.take() {
            self.handshakes.release(place);
        }
        if let Some(records) = link.records.take() {
            self.records.release(records);
        }
    }

    /// A handshake is done: it is counted and told, and its place is free. The name that the client asked for comes back, when a
    /// certificate bears it.
    ///
    /// Errors: the client has no principal. Its place is kept for [`Desk::failed`].
    pub fn connected(&mut self, slot: usize, peer: SocketAddr, now: Instant) -> Result<Option<HostName>, Cause> {
        let mut name = None;
        let link = self
            .links
            .get_mut(slot)
            .and_then(Option::as_mut)
            .ok_or(Cause::Internal)?;
        let lease = link.place.take().ok_or(Cause::Internal)?;
        if let Some(place) = self.handshakes.place(&lease) {
            let principal = place
                .settings
                .as_ref()
                .and_then(|settings| settings.principal(link.session.peer()));
            let Some(principal) = principal else {
                link.place = Some(lease);
                return Err(Cause::NoPrincipal);
            };
            name = place.settings.as_ref().and_then(|settings| {
                let asked = link.session.server_name()?;
                settings.bear(asked).then(|| HostName::try_from(asked).ok())?
            });
            self.counters.on_done(&link.session, &place.notes);
            if let Some(missed) = self.done_log.admit(now) {
                let session = &link.session;
                info!(target: "skerry_broker::tls", "{}{missed}", Done { peer, session, principal: &principal });
                let steps = Steps {
                    trail: &place.notes.trail,
                    tick_seconds: self.tick_seconds,
                };
                debug!(target: "skerry_broker::tls", "{peer}: TLS handshake done; trail=\"{steps}\"");
            }
        }
        self.handshakes.release(lease);
        Ok(name)
    }

    /// A handshake failed: it is counted, told and held against the peer, and its place is free. Its record buffers stay for the alert.
    pub fn failed(&mut self, slot: usize, peer: SocketAddr, cause: Cause, now: Instant) {
        self.penalties.on_failure(peer.ip(), now);
        let Some(Some(link)) = self.links.get_mut(slot) else {
            return;
        };
        let lease = link.place.take();
        let place = lease.as_ref().and_then(|lease| self.handshakes.place(lease));
        let nothing = Notes::default();
        let notes = place.map_or(&nothing, |place| &place.notes);
        self.counters.on_failed(cause, notes);
        if let Some(missed) = self.failed_log.admit(now) {
            // Where it stood before the step that failed; a failure from outside is no step.
            let state = match notes.trail.steps().last() {
                Some(step) if step.to == StateId::Failed => step.from,
                Some(step) => step.to,
                None => StateId::AwaitClientHello,
            };
            let agreed = link.session.agreed();
            let subject = agreed.peer.as_ref().filter(|_| cause == Cause::NoPrincipal);
            let failed = Failed {
                peer,
                cause,
                state,
                alert: link.session.last_alert(),
                subject: subject.map(|peer| peer.subject.as_str()),
                notes: Some(notes),
                tick_seconds: self.tick_seconds,
                missed,
            };
            warn!(target: "skerry_broker::tls", "{failed}");
        }
        if let Some(lease) = lease {
            self.handshakes.release(lease);
        }
    }

    /// A connection failed after its handshake: it is counted and told.
    pub fn broke(&mut self, slot: usize, peer: SocketAddr, cause: Cause, now: Instant) {
        self.counters.on_broken(cause);
        if let Some(missed) = self.failed_log.admit(now) {
            let failed = Failed {
                peer,
                cause,
                state: StateId::Connected,
                alert: self.session(slot).and_then(Session::last_alert),
                subject: None,
                notes: None,
                tick_seconds: self.tick_seconds,
                missed,
            };
            warn!(target: "skerry_broker::tls", "{failed}");
        }
    }

    /// Nothing more is sent or opened: buffers go back before the socket is closed.
    pub fn forget(&mut self, slot: usize) {
        let Some(Some(link)) = self.links.get_mut(slot) else {
            return;
        };
        (link.arrived, link.opened, link.sealed) = (0..0, 0..0, 0..0);
        link.more = false;
        if let Some(place) = link.place.take() {
            self.handshakes.release(place);
        }
        if let Some(records) = link.records.take() {
            self.records.release(records);
        }
    }

    /// Fails a session from outside; its alert, if it has one, waits to be flushed.
    pub fn fail(&mut self, slot: usize, cause: Cause) {
        let Some(Some(link)) = self.links.get_mut(slot) else {
            return;
        };
        let Some(lease) = &link.records else { return };
        let send = self.records.pair(lease).send;
        link.session.fail(cause, &mut Out::new(send, &mut link.sealed.end));
    }

    /// Data of the peer's, decrypted into `room`; 0 when it sends no more. The caller has leased record buffers.
    pub fn read<H: Host>(
        &mut self,
        slot: usize,
        host: &mut H,
        socket: &mut Socket<'_>,
        wall: Timestamp,
        account: &mut Account<'_>,
        room: &mut [u8],
    ) -> nb::Result<usize, Fault> {
        loop {
            if let Some(bytes) = self.take_opened(slot, room) {
                return Ok(bytes);
            }
            if self.has_more(slot) {
                let came = self.open(slot, host, wall, room);
                account.charge(Phase::Open, host);
                match came {
                    Ok(Came::Data(0) | Came::Progress | Came::Connected) => continue,
                    Ok(Came::Data(bytes)) => return Ok(bytes),
                    Ok(Came::CloseNotify) => {
                        self.counters.closes_clean += 1;
                        return Ok(0);
                    }
                    Ok(Came::Need) => {}
                    Err(cause) => return Err(nb::Error::Other(Fault::Tls(cause))),
                }
            }
            match self.take_in(slot, host, socket, account) {
                Ok(0) => {
                    self.counters.closes_truncated += 1;
                    return Ok(0);
                }
                Ok(_) => {}
                Err(nb::Error::WouldBlock) => return Err(nb::Error::WouldBlock),
                Err(nb::Error::Other(e)) => {
                    self.counters.closes_reset += u64::from(e == NetError::Reset);
                    return Err(nb::Error::Other(Fault::Net(e)));
                }
            }
        }
    }

    /// Copies what was opened in place.
    fn take_opened(&mut self, slot: usize, room: &mut [u8]) -> Option<usize> {
        let link = self.links.get_mut(slot)?.as_mut()?;
        if link.opened.is_empty() {
            return None;
        }
        let receive = self.records.pair(link.records.as_ref()?).receive;
        let bytes = link.opened.len().min(room.len());
        let from = receive.get(link.opened.start..link.opened.start + bytes)?;
        room.get_mut(..bytes)?.copy_from_slice(from);
        link.opened.start += bytes;
        link.more = !link.opened.is_empty() || !link.arrived.is_empty();
        Some(bytes)
    }

    /// Receives ciphertext; 0 when the peer has closed.
    fn take_in<H: Host>(
        &mut self,
        slot: usize,
        host: &mut H,
        socket: &mut Socket<'_>,
        account: &mut Account<'_>,
    ) -> nb::Result<usize, NetError> {
        let Some(Some(link)) = self.links.get_mut(slot) else {
            return Err(nb::Error::WouldBlock);
        };
        let (true, Some(lease)) = (*socket.readable, &link.records) else {
            return Err(nb::Error::WouldBlock);
        };
        let receive = self.records.pair(lease).receive;
        link.settle(receive);
        let room = receive.get_mut(link.arrived.end..).unwrap_or_default();
        let asked = room.len();
        let got = host.read(socket.stream, room);
        account.charge(Phase::Read, host);
        match got {
            Ok(bytes) => {
                link.arrived.end += bytes;
                link.more = bytes > 0;
                *socket.readable = bytes == 0 || bytes == asked || socket.hangup;
                Ok(bytes)
            }
            Err(nb::Error::WouldBlock) => {
                *socket.readable = false;
                Err(nb::Error::WouldBlock)
            }
            Err(other) => Err(other),
        }
    }

    /// Opens the next record of what has arrived.
    fn open<H: Host>(&mut self, slot: usize, host: &mut H, wall: Timestamp, room: &mut [u8]) -> Result<Came, Cause> {
        let Self {
            provider,
            settings,
            tickets,
            links,
            records,
            handshakes,
            scratch,
            idle_notes,
            ..
        } = self;
        let link = links.get_mut(slot).and_then(Option::as_mut).ok_or(Cause::Internal)?;
        let lease = link.records.as_ref().ok_or(Cause::Internal)?;
        let pair = records.pair(lease);
        let (message, notes, settings) = match link.place.as_ref().and_then(|place| handshakes.place(place)) {
            Some(place) => (
                Reassembly::new(&mut place.message, &mut place.filled),
                &mut place.notes,
                place.settings.clone(),
            ),
            None => (
                Reassembly::new(&mut link.update, &mut link.update_filled),
                idle_notes,
                settings.get(link.listener).cloned().flatten(),
            ),
        };
        let settings = settings.ok_or(Cause::Internal)?;
        let host = RefCell::new(host);
        let ticks = || -> Ticks { host.borrow_mut().ticks() };
        let input = pair.receive.get_mut(link.arrived.clone()).ok_or(Cause::Internal)?;
        let start = input.as_ptr().addr();
        let (session, sealed) = (&mut link.session, &mut link.sealed);
        let received: Result<_, Cause> = settings.lend(Some(tickets), |config| {
            let mut random = HostRandom(&host);
            let mut context = Context {
                provider: &**provider,
                random: &mut random,
                now: wall,
                ticks: &ticks,
                config: Config::Server(config),
                message,
                scratch,
                out: Out::new(pair.send, &mut sealed.end),
                notes,
                keep: None,
            };
            let received = session.receive_into(&mut context, input, room)?;
            Ok((
                received.consumed,
                match received.event {
                    Event::Need(_) => (Came::Need, 0..0),
                    Event::Progress => (Came::Progress, 0..0),
                    Event::Connected => (Came::Connected, 0..0),
                    Event::CloseNotify => (Came::CloseNotify, 0..0),
                    Event::DataInto(bytes) => (Came::Data(bytes), 0..0),
                    Event::Data(content) => {
                        let at = content.as_ptr().addr() - start;
                        (Came::Progress, at..at + content.len())
                    }
                },
            ))
        });
        let (consumed, (came, content)) = received?;
        link.opened = link.arrived.start + content.start..link.arrived.start + content.end;
        link.arrived.start += consumed;
        link.more = !matches!(came, Came::Need) && (!link.arrived.is_empty() || !link.opened.is_empty());
        Ok(came)
    }

    /// The room for the content of one more record, to be filled and then sealed, while there is some.
    pub fn slot_mut(&mut self, slot: usize) -> Option<&mut [u8]> {
        let link = self.links.get_mut(slot)?.as_mut()?;
        let send = self.records.pair(link.records.as_ref()?).send;
        if link.sealed.is_empty() {
            link.sealed = 0..0;
        }
        let (before, after) = link.session.overhead();
        let start = link.sealed.end + before;
        let end = start + link.session.content_max().min(CONTENT_BYTES_MAX);
        if end + after + SPARE_BYTES > send.len() {
            return None;
        }
        send.get_mut(start..end)
    }

    /// Seals the first `bytes` of [`Desk::slot_mut`].
    pub fn seal<H: Host>(
        &mut self,
        slot: usize,
        bytes: usize,
        host: &mut H,
        account: &mut Account<'_>,
    ) -> Result<(), Cause> {
        let link = self
            .links
            .get_mut(slot)
            .and_then(Option::as_mut)
            .ok_or(Cause::Internal)?;
        let lease = link.records.as_ref().ok_or(Cause::Internal)?;
        let send = self.records.pair(lease).send;
        let record = send.get_mut(link.sealed.end..).ok_or(Cause::Internal)?;
        link.sealed.end += link.session.seal(record, bytes)?;
        account.charge(Phase::Seal, host);
        Ok(())
    }

    /// Before a record is filled: new keys when the old ones have sealed enough.
    pub fn renew_keys<H: Host>(&mut self, slot: usize, host: &mut H, wall: Timestamp) -> Result<(), Cause> {
        let Self {
            provider,
            settings,
            links,
            records,
            idle_notes,
            ..
        } = self;
        let link = links.get_mut(slot).and_then(Option::as_mut).ok_or(Cause::Internal)?;
        if !link.session.wants_key_update() {
            return Ok(());
        }
        let settings = settings.get(link.listener).cloned().flatten().ok_or(Cause::Internal)?;
        let send = records.pair(link.records.as_ref().ok_or(Cause::Internal)?).send;
        let host = RefCell::new(host);
        let ticks = || -> Ticks { host.borrow_mut().ticks() };
        let (session, sealed) = (&mut link.session, &mut link.sealed);
        let (mut unused, mut none) = ([0; link::UPDATE_BYTES], 0);
        settings.lend(None, |config| {
            session.update_keys(&mut Context {
                provider: &**provider,
                random: &mut HostRandom(&host),
                now: wall,
                ticks: &ticks,
                config: Config::Server(config),
                message: Reassembly::new(&mut unused, &mut none),
                scratch: &mut [0; 64],
                out: Out::new(send, &mut sealed.end),
                notes: idle_notes,
                keep: None,
            })
        })
    }

    /// Sends what is sealed.
    pub fn flush<H: Host>(
        &mut self,
        slot: usize,
        host: &mut H,
        socket: &mut Socket<'_>,
        account: &mut Account<'_>,
    ) -> nb::Result<usize, NetError> {
        let Some(Some(link)) = self.links.get_mut(slot) else {
            return Err(nb::Error::WouldBlock);
        };
        let (true, Some(lease)) = (*socket.writable, &link.records) else {
            return Err(nb::Error::WouldBlock);
        };
        let waiting = self.records.send(lease).get(link.sealed.clone()).unwrap_or_default();
        let sent = host.write(socket.stream, &[std::io::IoSlice::new(waiting)], false);
        account.charge(Phase::Write, host);
        match sent {
            Ok(bytes) => {
                link.sealed.start += bytes;
                if link.sealed.is_empty() {
                    link.sealed = 0..0;
                }
                Ok(bytes)
            }
            Err(nb::Error::WouldBlock) => {
                *socket.writable = false;
                Err(nb::Error::WouldBlock)
            }
            Err(other) => Err(other),
        }
    }

    /// Gives empty record buffers back.
    pub fn give_back(&mut self, slot: usize) {
        if let Some(Some(link)) = self.links.get_mut(slot)
            && link.place.is_none()
            && link.is_empty()
            && let Some(records) = link.records.take()
        {
            (link.arrived, link.opened, link.sealed) = (0..0, 0..0, 0..0);
            self.records.release(records);
        }
    }

    /// The connection ends: a close_notify where one can be sent at once, and everything is given back.
    pub fn close<H: Host>(&mut self, slot: usize, host: &mut H, stream: StreamId) {
        let Some(mut link) = self.links.get_mut(slot).and_then(Option::take) else {
            return;
        };
        if link.sealed.is_empty() && link.session.state_id() == StateId::Connected {
            let (mut bytes, mut filled) = ([0; SPARE_BYTES], 0);
            link.session.close(&mut Out::new(&mut bytes, &mut filled));
            let notify = bytes.get(..filled).unwrap_or_default();
            if !notify.is_empty() {
                // A peer that is gone does not miss it.
                let _ = host.write(stream, &[std::io::IoSlice::new(notify)], false);
            }
        }
        if let Some(place) = link.place.take() {
            self.handshakes.release(place);
        }
        if let Some(records) = link.records.take() {
            self.records.release(records);
        }
    }
}
