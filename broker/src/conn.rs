//! One connection, and the main path: socket → frame → request → reply → socket, pulled from the far end.
//!
//! [`Conn::turn`] is the one function that knows every layer. Each step asks from the end backwards, so that a stage runs only
//! when those after it have room: a whole frame and room for its reply are handled first, because replies then leave together;
//! bytes that wait go out next; only then is more read. There is no queue between the layers and no callback upward, and
//! backpressure is the order of the steps.

use core::fmt;
use std::io::{IoSlice, IoSliceMut};

use heapless::Deque;
use skerry_core::api::ApiKey;
use skerry_core::error_code::ErrorCode;
use skerry_core::frame::{self, FrameError, PREFIX_BYTES};
use skerry_core::meter::{Cost, Laps, Phase};
use skerry_core::time::{Instant, Millis, Timestamp};
use skerry_net::host::{Host, Net, NetError, Started, StreamId};
use skerry_net::pool::{LargeLease, LargePool, PairLease, PairPool};
use skerry_tls::cause::Cause;
use skerry_tls::notes::Notes;

use crate::dispatch::{self, Asked, Bad};
use crate::handler::{Context, Out, Outcome, Parking, Peer, api_versions};
use crate::holds::{Ended, HoldIx};
use crate::outbox::{Front, Outbox, Place, RANGES_MAX};
use crate::secure::{Account, Desk, Fault, Shake, Socket};
use crate::state::State;
use crate::tokens;

/// Held replies of one connection, whatever `skerry.inflight.max` says.
pub const INFLIGHT_MAX: usize = 16;

/// The longest request that a parked connection keeps outside its buffers.
pub const SAVED_BYTES: usize = 1024;

/// How long a connection may hold buffers with next to nothing moving either way.
pub const STALL: Millis = Millis(30_000);

/// How long a request may take to arrive whole when somebody else waits for its buffer.
pub const PATIENCE: Millis = Millis(10_000);

/// How long a parked request may keep a buffer when somebody else waits for one; then it is answered with what there is.
pub const PARKED_PATIENCE: Millis = Millis(1_000);

/// Bytes that must move in [`STALL`] to count as progress, where a request or the replies are not done with fewer.
const PROGRESS_BYTES: usize = 4096;

/// The largest piece of a file sent at once: other connections wait no longer than that.
const SEND_FILE_BYTES: usize = 256 * 1024;

/// How long a peer that was told an alert may take to read it.
const LINGER: Millis = Millis(1_000);

/// What is read of it meanwhile, and thrown away: a socket closed with bytes unread would reset the connection, and the alert be lost.
const LINGER_BYTES: usize = 64 * 1024;

/// Buffers that connections lease.
pub struct Buffers {
    /// A small receive and send buffer for each connection at work.
    pub pairs: PairPool,
    /// For frames larger than a small buffer.
    pub requests: LargePool,
    /// For replies larger than a small buffer. A pool of its own: whoever holds a request buffer and waits for one of these waits
    /// only for clients that read, never for another like itself.
    pub replies: LargePool,
    /// Short requests of parked connections, by slot.
    pub saved: Vec<u8>,
    /// Whether somebody stands in line for a receive buffer.
    pub contended: bool,
}

impl Buffers {
    /// Gives the memory of large buffers back that are free. Whether all were.
    pub fn trim(&mut self) -> bool {
        self.requests.trim();
        self.replies.trim();
        self.requests.leased() + self.replies.leased() == 0
    }
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The peer closed it between requests.
    Closed,
    /// The peer closed it within a request.
    Truncated,
    /// The peer reset it, or it broke.
    Net(NetError),
    /// Its TLS handshake failed, and the log says why already.
    Handshake(Cause),
    /// Its TLS failed after the handshake.
    Tls(Cause),
    /// It speaks TLS on a listener that does not.
    TlsOnPlaintext,
    /// It closed a TLS connection before its first byte.
    Probe,
    /// Its frame cannot be one.
    Frame(FrameError),
    /// Its request cannot be answered.
    Request(Bad),
    /// A handler gave up.
    Refused(&'static str),
    /// Next to nothing moved for [`STALL`] while it held buffers.
    Stalled,
    /// Its request took longer than [`PATIENCE`] to arrive while others waited for a buffer.
    Slow,
    /// Nothing was asked for `connections.max.idle.ms`.
    Idle,
    /// The broker stops.
    Stopping,
}

impl End {
    /// Whether the log should say it: something was wrong on the peer's side.
    #[must_use]
    pub const fn is_fault(&self) -> bool {
        !matches!(
            self,
            Self::Closed | Self::Idle | Self::Stopping | Self::Probe | Self::Net(NetError::Reset)
        )
    }

    /// Whether a line was written for it when it happened.
    #[must_use]
    pub const fn is_told(&self) -> bool {
        matches!(self, Self::Handshake(_) | Self::Tls(_))
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("closed by the peer"),
            Self::Truncated => f.write_str("closed by the peer in the middle of a request"),
            Self::Net(NetError::Reset) => f.write_str("reset by the peer"),
            Self::Net(e) => write!(f, "connection failed: {e:?}"),
            Self::Handshake(cause) => write!(f, "TLS handshake failed: {}", cause.id()),
            Self::Tls(cause) => write!(f, "TLS failed: {}", cause.id()),
            Self::TlsOnPlaintext => {
                let cause = Cause::TlsOnPlaintext;
                let (id, cure) = (cause.id(), cause.cure());
                write!(
                    f,
                    "TLS on a listener without it: {id}; alert handshake_failure sent; {cure}"
                )
            }
            Self::Probe => f.write_str("closed before its first byte"),
            Self::Frame(e) => match first_bytes(e).and_then(spoken) {
                Some(what) => write!(f, "not a Kafka request but {what}: {e}"),
                None => write!(f, "not a Kafka request: {e}"),
            },
            Self::Request(bad) => write!(f, "{bad}"),
            Self::Refused(why) => write!(f, "request refused: {why}"),
            Self::Stalled => write!(f, "fewer than {PROGRESS_BYTES} bytes moved in {} s", STALL.0 / 1000),
            Self::Slow => write!(
                f,
                "its request took over {} s to arrive, and others wait for a buffer",
                PATIENCE.0 / 1000
            ),
            Self::Idle => f.write_str("idle for connections.max.idle.ms"),
            Self::Stopping => f.write_str("the broker stops"),
        }
    }
}

/// The four bytes that were taken for a length.
fn first_bytes(error: &FrameError) -> Option<[u8; 4]> {
    match error {
        FrameError::TooLarge(bytes) => Some(bytes.to_be_bytes()),
        _ => None,
    }
}

/// What a peer speaks instead of Kafka.
fn spoken(first: [u8; 4]) -> Option<&'static str> {
    match &first {
        first if is_tls(*first) => Some("TLS"),
        b"GET " | b"POST" | b"HEAD" | b"PUT " | b"OPTI" | b"DELE" => Some("HTTP"),
        b"SSH-" => Some("SSH"),
        _ => None,
    }
}

/// Whether a TLS connection begins so: a handshake record, content type 22, major version 3 (RFC 8446 §5.1).
const fn is_tls(first: [u8; 4]) -> bool {
    matches!(first, [22, 3, ..])
}

/// A fatal handshake_failure without protection, in a record of the version that every client reads (RFC 8446 §5.1, §6).
const HANDSHAKE_FAILURE: [u8; 7] = [21, 3, 1, 0, 2, 2, 40];

/// What the connection waits for besides its socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parked {
    /// Nothing: its next request may be handled.
    No,
    /// A wake-up or this deadline; then the request is asked again.
    Until(Parking),
    /// The coordinator's word; the reply is for this request.
    Group(Asked),
    /// Log bytes on their way into memory, to be asked again.
    Load { retry: Option<Parking> },
}

/// What a turn ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// There is more to do: give it another turn after the others.
    Again,
    /// It waits for its socket, a wake-up or a deadline.
    Waiting,
    /// It waits for a pair of small buffers.
    WantsPair,
    /// It waits for a place to shake hands, or for record buffers.
    WantsRecords,
    /// It waits for a large request buffer.
    WantsRequestBuffer,
    /// It waits for a large reply buffer.
    WantsReplyBuffer,
    /// It waits for places in a broker-wide table that a flush frees.
    WantsFlush,
    /// It is over.
    End(End),
}

enum Step {
    Did,
    Nothing,
    Stop(Turn),
}

#[derive(Clone, Copy, Debug)]
struct HeldReply {
    hold: HoldIx,
    place: Place,
    bytes: usize,
    asked: Asked,
}

/// How far a connection's TLS is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Secure {
    /// Its listener speaks none.
    No,
    /// Shaking hands since `accepted`; nothing is read before `starts`.
    Shaking { accepted: Instant, starts: Instant },
    /// Records flow.
    Connected,
    /// It failed: an alert leaves, then what still comes is thrown away.
    Lingering {
        end: End,
        until: Instant,
        shut: bool,
        thrown: usize,
    },
}

/// One connection.
pub struct Conn {
    /// Who it is.
    pub peer: Peer,
    /// Its socket.
    pub stream: StreamId,
    /// What it cost so far, in ticks.
    pub cost: Cost,
    /// Requests handled.
    pub requests: u64,
    /// Bytes received.
    pub bytes_in: u64,
    /// Bytes sent.
    pub bytes_out: u64,
    readable: bool,
    writable: bool,
    hangup: bool,
    ended: bool,
    /// A held reply says what has become untrue, and cannot be changed.
    unsaid: bool,
    draining: Option<End>,
    woken: bool,
    loaded: bool,
    loading_front: bool,
    parked: Parked,
    retry: Option<Parking>,
    saved: usize,
    no_room: Option<usize>,
    pair: Option<PairLease>,
    request: Option<LargeLease>,
    reply: Option<LargeLease>,
    in_start: usize,
    in_end: usize,
    out: Outbox,
    held: Deque<HeldReply, INFLIGHT_MAX>,
    progress: Instant,
    moved: usize,
    frame_since: Instant,
    secure: Secure,
    /// Sealed records have not left.
    sealed: bool,
}

/// What one turn works with.
pub struct Shared<'a, H> {
    /// Monotonic time of the turn.
    pub now: Instant,
    /// Wall-clock time of the turn.
    pub wall: Timestamp,
    /// The machine.
    pub host: &'a mut H,
    /// Every table.
    pub state: &'a mut State,
    /// Every buffer.
    pub buffers: &'a mut Buffers,
    /// TLS, when a listener speaks it.
    pub tls: Option<&'a mut Desk>,
    /// Room for what nobody wants.
    pub scratch: &'a mut [u8],
}

impl Conn {
    /// A connection that was just accepted: it holds no buffer.
    #[must_use]
    pub fn new(peer: Peer, stream: StreamId, now: Instant) -> Self {
        Self {
            peer,
            stream,
            cost: Cost::ZERO,
            requests: 0,
            bytes_in: 0,
            bytes_out: 0,
            readable: true,
            writable: true,
            hangup: false,
            ended: false,
            unsaid: false,
            draining: None,
            woken: false,
            loaded: false,
            loading_front: false,
            parked: Parked::No,
            retry: None,
            saved: 0,
            no_room: None,
            pair: None,
            request: None,
            reply: None,
            in_start: 0,
            in_end: 0,
            out: Outbox::default(),
            held: Deque::new(),
            progress: now,
            moved: 0,
            frame_since: now,
            secure: Secure::No,
            sealed: false,
        }
    }

    /// The same over TLS, of which nothing is read before `starts`.
    #[must_use]
    pub fn secured(peer: Peer, stream: StreamId, now: Instant, starts: Instant) -> Self {
        Self {
            secure: Secure::Shaking { accepted: now, starts },
            ..Self::new(peer, stream, now)
        }
    }

    /// Whether it shakes hands: established connections go first.
    #[must_use]
    pub const fn is_shaking(&self) -> bool {
        matches!(self.secure, Secure::Shaking { .. })
    }

    /// The socket changed.
    pub const fn on_socket(&mut self, readable: bool, writable: bool, hangup: bool) {
        self.readable |= readable;
        self.writable |= writable;
        self.hangup |= hangup;
    }

    /// What it waited for may have come: data, its group's word, or a flush.
    pub const fn on_wake(&mut self) {
        self.woken = true;
    }

    /// Log bytes that it asked for are in memory (or could not be read: the next try tells).
    pub const fn on_loaded(&mut self) {
        self.loaded = true;
    }

    /// One of its held replies changed: an error to be written into it before it leaves.
    pub fn on_ended(&mut self, ended: &Ended, buffers: &mut Buffers, scratch: &mut [u8]) {
        let Some(error) = ended.error else { return };
        let Some(held) = self.held.iter().find(|h| h.hold == ended.hold) else {
            return;
        };
        let small = self
            .pair
            .as_ref()
            .map(|p| buffers.pairs.pair(p).send)
            .unwrap_or_default();
        let large = self
            .reply
            .as_ref()
            .map(|l| buffers.replies.slice_mut(l))
            .unwrap_or_default();
        let told = self
            .out
            .reply_mut(held.place, held.bytes, small, large)
            .is_some_and(|bytes| dispatch::fail_held(bytes, scratch, &held.asked, ended.ordinal, error));
        self.unsaid |= !told;
    }

    /// When it must be looked at again although nothing happened.
    #[must_use]
    pub fn deadline(&self, state: &State, tls: Option<&Desk>) -> Instant {
        match (self.secure, tls) {
            (Secure::Shaking { accepted, starts }, Some(tls)) => {
                let due = tls.due(self.peer.conn.index(), accepted);
                return if self.readable { due.min(starts) } else { due };
            }
            (Secure::Lingering { until, .. }, _) => return until,
            _ => {}
        }
        let mut at = Instant::NEVER;
        if self.is_peers_move() {
            at = self.progress + STALL;
        }
        if self.is_receiving() {
            at = at.min(self.frame_since + PATIENCE);
        }
        if let Some(idle) = state.config.connections_max_idle
            && self.is_idle()
        {
            at = at.min(self.progress + idle);
        }
        if let Parked::Until(parking) = self.parked {
            at = at.min(parking.until);
            if self.in_end > self.in_start {
                at = at.min(self.frame_since + PARKED_PATIENCE);
            }
        }
        // A reply that is free already waits for those before it to leave, and has no deadline any more.
        for held in self.held.iter().filter(|held| !state.holds.is_free(held.hold)) {
            at = at.min(state.holds.deadline(held.hold));
        }
        at
    }

    /// Whether part of a request is there, and the rest is not.
    fn is_receiving(&self) -> bool {
        self.in_end > self.in_start && !self.is_waiting_for_us() && self.out.is_empty()
    }

    /// Whether it holds buffers that only the peer can free: by reading what waits to leave, or by sending the rest of a request.
    fn is_peers_move(&self) -> bool {
        let leaves = match self.out.front() {
            Front::Empty => !self.is_waiting_for_us(),
            // Once it is free it goes with the next turn, and the peer's time begins then.
            Front::Hold(_) => false,
            Front::Bytes | Front::File(_) => !self.loading_front,
        };
        self.sealed || (self.pair.is_some() && leaves)
    }

    /// Whether everything that was encoded has left.
    fn is_sent(&self) -> bool {
        self.out.is_empty() && !self.sealed
    }

    /// Whether it is between requests: nothing is owed to it.
    fn is_idle(&self) -> bool {
        self.is_sent() && self.parked == Parked::No
    }

    /// Bytes moved.
    fn progressed(&mut self, bytes: usize, done: bool, now: Instant) {
        self.moved += bytes;
        if done || self.moved >= PROGRESS_BYTES {
            self.moved = 0;
            self.progress = now;
        }
    }

    /// Whether the next move is the broker's, not the peer's.
    fn is_waiting_for_us(&self) -> bool {
        self.parked != Parked::No || !self.held.is_empty() || self.loading_front || self.no_room.is_some()
    }

    /// Its deadline has come.
    pub fn on_deadline<H: Host>(&mut self, s: &mut Shared<'_, H>) -> Option<End> {
        match self.secure {
            Secure::Shaking { accepted, .. } => {
                let slot = self.peer.conn.index();
                let tls = s.tls.as_deref_mut()?;
                let cause = tls.on_due(slot, accepted, s.now)?;
                tls.fail(slot, cause);
                self.shake_failed(s, cause);
                return None;
            }
            Secure::Lingering { end, until, .. } => return (s.now >= until).then_some(end),
            Secure::No | Secure::Connected => {}
        }
        if let Parked::Until(parking) = self.parked
            && parking.until <= s.now
        {
            self.woken = true;
        }
        if let Parked::Until(parking) = &mut self.parked
            && self.in_end > self.in_start
            && s.now >= self.frame_since + PARKED_PATIENCE
        {
            self.frame_since = s.now;
            if s.buffers.contended {
                parking.until = s.now;
                self.woken = true;
            }
        }
        let Shared {
            state,
            buffers,
            scratch,
            ..
        } = s;
        for i in 0..self.held.len() {
            let Some(hold) = self.held.iter().nth(i).map(|h| h.hold) else {
                break;
            };
            if state.holds.deadline(hold) <= s.now && !state.holds.is_free(hold) {
                state.holds.expire(hold, ErrorCode::REQUEST_TIMED_OUT, |e| {
                    self.on_ended(&e, buffers, scratch)
                });
            }
        }
        if self.is_receiving() && s.now >= self.frame_since + PATIENCE {
            if s.buffers.contended {
                return Some(End::Slow);
            }
            self.frame_since = s.now;
        }
        if self.is_peers_move() && s.now >= self.progress + STALL {
            return Some(End::Stalled);
        }
        match state.config.connections_max_idle {
            Some(idle) if self.is_idle() && s.now >= self.progress + idle => Some(End::Idle),
            _ => None,
        }
    }

    /// The broker stops: answer what can be answered, take nothing new.
    pub fn on_stop(&mut self) {
        self.draining = self.draining.or(Some(End::Stopping));
        self.woken = true;
    }

    /// Whether everything it was owed has left.
    fn is_quiet(&self) -> bool {
        self.is_sent() && matches!(self.parked, Parked::No | Parked::Group(_))
    }

    /// Runs at most `budget` steps.
    pub fn turn<H: Host>(&mut self, s: &mut Shared<'_, H>, budget: usize) -> Turn {
        let mut laps = Laps::start(s.host.ticks());
        for _ in 0..budget {
            match self.step(s, &mut laps) {
                Step::Did => {}
                Step::Nothing => {
                    self.give_back(s);
                    return Turn::Waiting;
                }
                Step::Stop(turn) => {
                    self.give_back(s);
                    return turn;
                }
            }
        }
        // Replies that were to leave with others leave before the others' turns.
        match self.send(s, &mut laps) {
            Step::Stop(end @ Turn::End(_)) => end,
            _ => Turn::Again,
        }
    }

    fn step<H: Host>(&mut self, s: &mut Shared<'_, H>, laps: &mut Laps) -> Step {
        match self.secure {
            Secure::Shaking { starts, .. } if s.now < starts => return Step::Nothing,
            Secure::Shaking { .. } => return self.shake(s, laps),
            Secure::Lingering { .. } => return self.linger(s, laps),
            Secure::Connected => {
                let slot = self.peer.conn.index();
                self.sealed = s.tls.as_deref().is_some_and(|tls| tls.has_sealed(slot));
            }
            Secure::No => {}
        }
        if self.unsaid {
            return Step::Stop(Turn::End(End::Refused(
                "its reply is too long to be changed to an error",
            )));
        }
        if self.loaded || self.woken {
            self.resume(s);
        }
        let handled = match self.handle(s, laps) {
            Step::Did => return Step::Did,
            // It ends, but what it was promised before leaves first. The request is not asked again: it may have been done in part.
            Step::Stop(Turn::End(end)) if !self.is_sent() => {
                self.draining = Some(end);
                (self.saved, self.retry) = (0, None);
                self.in_start = self.in_end;
                Step::Nothing
            }
            handled => handled,
        };
        if matches!(handled, Step::Nothing) && self.is_gathering(s) {
            match self.receive(s, laps) {
                step @ (Step::Did | Step::Stop(Turn::End(_))) => return step,
                Step::Nothing | Step::Stop(_) => {}
            }
        }
        match self.send(s, laps) {
            Step::Nothing => {}
            step => return step,
        }
        match handled {
            // What it wants may come from its own replies leaving: only with nothing to send does it stand in line.
            Step::Stop(_) => return handled,
            Step::Did | Step::Nothing => {}
        }
        if let Some(end) = self.draining
            && self.is_quiet()
        {
            return Step::Stop(Turn::End(end));
        }
        self.receive(s, laps)
    }

    /// Whether replies that could leave wait for company: more of a pipeline is known to be there, and its replies have room. One call
    /// then sends them all, which costs more than the reading does. A turn's budget bounds how long the first one waits.
    fn is_gathering<H: Host>(&self, s: &Shared<'_, H>) -> bool {
        (self.readable || self.has_more(s))
            && self.no_room.is_none()
            && self.out.room_for(RANGES_MAX)
            && matches!(self.out.front(), Front::Bytes)
    }

    /// Something that it waited for has come, or will not.
    fn resume<H: Host>(&mut self, s: &mut Shared<'_, H>) {
        let loaded = core::mem::take(&mut self.loaded);
        let woken = core::mem::take(&mut self.woken);
        self.loading_front &= !loaded;
        match self.parked {
            Parked::Load { retry } if loaded => {
                self.parked = Parked::No;
                self.retry = retry;
            }
            Parked::Until(parking) if woken => {
                s.state.waiters.remove(self.peer.conn);
                self.parked = Parked::No;
                // A broker that stops answers with what there is.
                let until = if self.draining.is_some() { s.now } else { parking.until };
                self.retry = Some(Parking { until, ..parking });
            }
            _ => {}
        }
    }

    /// Decodes and handles one request, if a whole one is there and its reply has room.
    fn handle<H: Host>(&mut self, s: &mut Shared<'_, H>, laps: &mut Laps) -> Step {
        let retry = self.retry.is_some() || self.saved > 0;
        let group = matches!(self.parked, Parked::Group(_));
        if (self.parked != Parked::No && !group)
            || (self.draining.is_some() && !retry)
            || self.held.len() >= INFLIGHT_MAX.min(s.state.config.inflight_max as usize)
            || !self.out.room_for(RANGES_MAX)
            || (self.saved == 0 && self.in_end == self.in_start && !group)
        {
            return Step::Nothing;
        }
        if group && !s.state.coordinator.is_finished(self.peer.conn) {
            return Step::Nothing;
        }
        if self.pair.is_none() {
            self.pair = s.buffers.pairs.lease();
        }
        let Some(lease) = &self.pair else {
            return Step::Stop(Turn::WantsPair);
        };
        let Shared {
            now,
            wall,
            host,
            state,
            buffers,
            tls,
            ..
        } = s;
        let Buffers {
            pairs,
            requests,
            replies,
            saved,
            ..
        } = &mut **buffers;
        let pair = pairs.pair(lease);

        let saved_at = self.peer.conn.index() * SAVED_BYTES;
        let buffered: &[u8] = match &self.request {
            _ if self.saved > 0 => saved.get(saved_at..saved_at + self.saved).unwrap_or_default(),
            Some(large) => requests
                .slice(large)
                .get(self.in_start..self.in_end)
                .unwrap_or_default(),
            None => pair.receive.get(self.in_start..self.in_end).unwrap_or_default(),
        };
        let frame = match frame::peek(buffered, state.config.request_bytes_max as usize) {
            _ if group => &[],
            Ok(frame) => frame,
            Err(nb::Error::WouldBlock) => return Step::Nothing,
            Err(nb::Error::Other(e)) => {
                let is_hello = self.secure == Secure::No && self.requests == 0 && first_bytes(&e).is_some_and(is_tls);
                if !is_hello {
                    return Step::Stop(Turn::End(End::Frame(e)));
                }
                // Nothing was sent before it: it fits, or the peer is gone.
                let _ = host.write(self.stream, &[IoSlice::new(&HANDSHAKE_FAILURE)], false);
                if let Some(tls) = tls.as_deref_mut() {
                    tls.counters.on_failed(Cause::TlsOnPlaintext, &Notes::default());
                }
                self.in_start = self.in_end;
                return self.tls_failed(End::TlsOnPlaintext, *now);
            }
        };

        let frame_bytes = frame.len() + PREFIX_BYTES;
        let large = self.no_room.is_some_and(|bytes| bytes > pair.send.len());
        let spare: &mut [u8] = if large {
            if self.out.uses_large() {
                return Step::Nothing;
            }
            if self.reply.is_none() {
                self.reply = replies.lease();
            }
            let Some(lease) = &self.reply else {
                return Step::Stop(Turn::WantsReplyBuffer);
            };
            replies.slice_mut(lease)
        } else {
            self.out.spare(pair.send)
        };
        if self.no_room.is_some_and(|bytes| bytes > spare.len()) {
            return Step::Nothing;
        }
        let mut out = Out::new(spare);
        let mut cx = Context {
            now: *now,
            wall: *wall,
            host: &mut **host,
            state,
            peer: &self.peer,
            parked: self.retry,
        };
        let (asked, outcome) = if let Parked::Group(asked) = self.parked {
            (asked, dispatch::finish_group(&mut cx, &asked, &mut out))
        } else {
            match dispatch::decode(frame) {
                Ok((asked, header, request)) => {
                    self.cost.add(Phase::Decode, laps.lap(cx.host.ticks()));
                    (asked, dispatch::handle(&mut cx, &header, &request, &mut out))
                }
                Err(Bad::Version(asked)) if asked.api == ApiKey::ApiVersions => {
                    (asked, api_versions::refuse_version(&asked, &mut out))
                }
                Err(bad) => return Step::Stop(Turn::End(End::Request(bad))),
            }
        };
        self.cost.add(Phase::Handle, laps.lap(host.ticks()));

        let reply = out.finished();
        match outcome {
            Outcome::Reply => self.out.commit(&reply, large),
            Outcome::Held(hold) if state.holds.is_free(hold) => {
                state.holds.release(hold);
                self.out.commit(&reply, large);
            }
            Outcome::Held(hold) => {
                let place = if large { Place::Large(0) } else { self.out.next_place() };
                let held = HeldReply {
                    hold,
                    place,
                    bytes: reply.bytes,
                    asked,
                };
                // Both have room: the reply was not begun without it.
                let _ = self.held.push_back(held);
                let _ = self.out.hold(hold);
                self.out.commit(&reply, large);
            }
            Outcome::NoReply => {}
            Outcome::ParkGroup => self.parked = Parked::Group(asked),
            Outcome::Park(parking) => {
                let alone = self.saved == 0 && self.request.is_none() && frame_bytes == self.in_end - self.in_start;
                if alone
                    && frame_bytes <= SAVED_BYTES
                    && let Some(place) = saved.get_mut(saved_at..saved_at + frame_bytes)
                    && let Some(bytes) = pair.receive.get(self.in_start..self.in_end)
                {
                    place.copy_from_slice(bytes);
                    self.saved = frame_bytes;
                    self.in_start = self.in_end;
                }
                self.parked = Parked::Until(parking);
                self.retry = None;
                return Step::Did;
            }
            Outcome::NoRoom(bytes) if bytes > replies.bytes() => {
                return Step::Stop(Turn::End(End::Refused(
                    "its reply is larger than socket.request.max.bytes",
                )));
            }
            Outcome::NoRoom(bytes) => {
                self.no_room = Some(bytes);
                return Step::Did;
            }
            Outcome::Busy => return Step::Stop(Turn::WantsFlush),
            Outcome::Load(range) => {
                let token = tokens::load(self.peer.conn);
                return match host.start_load(range.file, range.position, range.bytes as usize, token) {
                    Ok(Started::Done) => Step::Did,
                    Ok(Started::Pending) => {
                        self.parked = Parked::Load { retry: self.retry };
                        Step::Nothing
                    }
                    Err(_) => Step::Stop(Turn::WantsFlush),
                };
            }
            Outcome::Close(why) => return Step::Stop(Turn::End(End::Refused(why))),
        }
        if group {
            self.parked = Parked::No;
        } else if self.saved > 0 {
            self.saved = 0;
        } else {
            self.in_start += frame_bytes;
            self.frame_since = *now;
            self.progressed(0, true, *now);
        }
        self.no_room = None;
        self.retry = None;
        self.requests += u64::from(!group);
        Step::Did
    }

    /// Sends what stands at the front.
    fn send<H: Host>(&mut self, s: &mut Shared<'_, H>, laps: &mut Laps) -> Step {
        if self.secure == Secure::Connected {
            return self.send_secure(s, laps);
        }
        let Shared {
            now,
            host,
            state,
            buffers,
            ..
        } = s;
        let sent = match self.out.front() {
            Front::Empty => return Step::Nothing,
            Front::Hold(hold) if state.holds.is_free(hold) => {
                state.holds.release(hold);
                self.out.unhold();
                self.held.pop_front();
                // Only now is it the peer's move.
                self.progressed(0, true, *now);
                return Step::Did;
            }
            Front::Hold(_) => return Step::Nothing,
            _ if !self.writable => return Step::Nothing,
            Front::Bytes => {
                let small = self.pair.as_ref().map(|p| buffers.pairs.send(p)).unwrap_or_default();
                let large = self
                    .reply
                    .as_ref()
                    .map(|l| buffers.replies.slice(l))
                    .unwrap_or_default();
                let mut slices = [IoSlice::new(&[]); 4];
                let is_free = |hold| state.holds.is_free(hold);
                let (used, more) = self.out.gather(small, large, is_free, &mut slices);
                let sent = host.write(self.stream, slices.get(..used).unwrap_or_default(), more);
                if let Ok(n) = sent {
                    self.out.sent(n, |hold| {
                        state.holds.release(hold);
                        self.held.pop_front();
                    });
                }
                sent
            }
            Front::File(range) => {
                if self.loading_front {
                    return Step::Nothing;
                }
                let want = SEND_FILE_BYTES.min(range.bytes as usize);
                let mut ready = host.cached(range.file, range.position, want);
                if ready == 0 {
                    let token = tokens::load(self.peer.conn);
                    match host.start_load(range.file, range.position, want, token) {
                        // The host may have brought less than it was asked to.
                        Ok(Started::Done) => ready = host.cached(range.file, range.position, want).max(1),
                        Ok(Started::Pending) => {
                            self.loading_front = true;
                            return Step::Nothing;
                        }
                        Err(_) => return Step::Stop(Turn::WantsFlush),
                    }
                }
                let sent = host.send_file(self.stream, range.file, range.position, ready);
                if let Ok(0) = sent {
                    return Step::Stop(Turn::End(End::Refused("the log file ended within a reply")));
                }
                if let Ok(n) = sent
                    && let Some(done) = self.out.sent_file(n)
                {
                    state.logs.release(*host, done);
                }
                sent
            }
        };
        self.cost.add(Phase::Write, laps.lap(host.ticks()));
        match sent {
            Ok(n) => {
                self.bytes_out += n as u64;
                let done = self.out.is_empty();
                self.progressed(n, done, *now);
                if !self.out.uses_large()
                    && let Some(lease) = self.reply.take()
                {
                    buffers.replies.release(lease);
                }
                Step::Did
            }
            Err(nb::Error::WouldBlock) => {
                self.writable = false;
                Step::Nothing
            }
            Err(nb::Error::Other(e)) => Step::Stop(Turn::End(End::Net(e))),
        }
    }

    /// Receives, when there is room and nothing in the way.
    fn receive<H: Host>(&mut self, s: &mut Shared<'_, H>, laps: &mut Laps) -> Step {
        if self.parked != Parked::No {
            // What follows a parked request is left in the socket; a peer that is gone is not waited for.
            return if self.hangup {
                Step::Stop(Turn::End(End::Closed))
            } else {
                Step::Nothing
            };
        }
        if self.ended {
            let end = if self.in_end > self.in_start {
                End::Truncated
            } else {
                End::Closed
            };
            return if self.is_sent() {
                Step::Stop(Turn::End(end))
            } else {
                Step::Nothing
            };
        }
        let slot = self.peer.conn.index();
        if !(self.readable || self.has_more(s)) || self.draining.is_some() {
            return Step::Nothing;
        }
        if self.secure == Secure::Connected && !s.tls.as_deref_mut().is_some_and(|tls| tls.lease_records(slot)) {
            return Step::Stop(Turn::WantsRecords);
        }
        if self.pair.is_none() {
            self.pair = s.buffers.pairs.lease();
        }
        let Some(lease) = &self.pair else {
            return Step::Stop(Turn::WantsPair);
        };
        let Shared {
            now,
            wall,
            host,
            buffers,
            state,
            tls,
            ..
        } = s;
        let frame_bytes_max = state.config.request_bytes_max as usize;
        let Buffers { pairs, requests, .. } = &mut **buffers;
        let receive = pairs.pair(lease).receive;
        let waiting = self.in_start..self.in_end;

        if self.in_start == self.in_end
            && let Some(lease) = self.request.take()
        {
            requests.release(lease);
            (self.in_start, self.in_end) = (0, 0);
        } else if self.request.is_none() && self.in_start > 0 {
            receive.copy_within(waiting, 0);
            (self.in_start, self.in_end) = (0, self.in_end - self.in_start);
        }
        if self.request.is_none() {
            let buffered = receive.get(..self.in_end).unwrap_or_default();
            if needed(buffered, frame_bytes_max).is_some_and(|needed| needed > receive.len()) {
                let Some(lease) = requests.lease() else {
                    return Step::Stop(Turn::WantsRequestBuffer);
                };
                if let Some(start) = requests.slice_mut(&lease).get_mut(..self.in_end) {
                    start.copy_from_slice(buffered);
                }
                self.request = Some(lease);
            }
        }
        let room: &mut [u8] = match &self.request {
            // A large buffer takes the one frame that it was leased for: what follows goes to the small one.
            Some(large) => {
                let whole = requests.slice_mut(large);
                let end = needed(whole.get(..self.in_end).unwrap_or_default(), frame_bytes_max).unwrap_or(0);
                whole.get_mut(self.in_end..end).unwrap_or_default()
            }
            None => receive.get_mut(self.in_end..).unwrap_or_default(),
        };
        if room.is_empty() {
            return Step::Nothing;
        }
        let asked = room.len();
        let got = match tls {
            Some(tls) if self.secure == Secure::Connected => {
                let mut socket = Socket {
                    stream: self.stream,
                    readable: &mut self.readable,
                    writable: &mut self.writable,
                    hangup: self.hangup,
                };
                let mut account = Account {
                    cost: &mut self.cost,
                    laps,
                };
                match tls.read(slot, *host, &mut socket, *wall, &mut account, room) {
                    Ok(n) => Ok(n),
                    Err(nb::Error::WouldBlock) => Err(nb::Error::WouldBlock),
                    Err(nb::Error::Other(Fault::Net(e))) => Err(nb::Error::Other(e)),
                    Err(nb::Error::Other(Fault::Tls(cause))) => {
                        tls.broke(slot, self.peer.addr, cause, *now);
                        return self.tls_failed(End::Tls(cause), *now);
                    }
                }
            }
            _ => {
                let got = host.read(self.stream, room);
                self.cost.add(Phase::Read, laps.lap(host.ticks()));
                // A short read has emptied the socket: the next bytes, or the end, bring a new edge (epoll(7)).
                self.readable = match &got {
                    Ok(n) => *n == 0 || *n == asked || self.hangup,
                    Err(nb::Error::WouldBlock) => false,
                    Err(nb::Error::Other(_)) => self.readable,
                };
                got
            }
        };
        match got {
            Ok(0) => {
                self.ended = true;
                Step::Did
            }
            Ok(n) => {
                self.in_end += n;
                let begins = self.in_end == self.in_start + n;
                if begins {
                    self.frame_since = *now;
                }
                self.bytes_in += n as u64;
                self.progressed(n, begins, *now);
                Step::Did
            }
            Err(nb::Error::WouldBlock) => Step::Nothing,
            Err(nb::Error::Other(e)) => Step::Stop(Turn::End(End::Net(e))),
        }
    }

    /// Gives empty buffers back.
    fn give_back<H: Host>(&mut self, s: &mut Shared<'_, H>) {
        if self.secure == Secure::Connected
            && let Some(tls) = s.tls.as_deref_mut()
        {
            tls.give_back(self.peer.conn.index());
        }
        let buffers = &mut *s.buffers;
        if !self.out.uses_large()
            && let Some(lease) = self.reply.take()
        {
            buffers.replies.release(lease);
        }
        if self.in_start < self.in_end {
            return;
        }
        (self.in_start, self.in_end) = (0, 0);
        if let Some(lease) = self.request.take() {
            buffers.requests.release(lease);
        }
        if self.out.is_empty()
            && let Some(lease) = self.pair.take()
        {
            buffers.pairs.release(lease);
        }
    }

    /// Ends the connection: everything that it holds is given back.
    pub fn close<H: Host>(&mut self, s: &mut Shared<'_, H>) {
        let Shared { host, state, tls, .. } = s;
        state.waiters.remove(self.peer.conn);
        state.coordinator.forget(self.peer.conn);
        self.out.clear(
            |range| state.logs.release(*host, range),
            |hold| state.holds.release(hold),
        );
        if let Some(tls) = tls.as_deref_mut()
            && self.secure != Secure::No
        {
            tls.close(self.peer.conn.index(), *host, self.stream);
        }
        (self.in_start, self.in_end) = (0, 0);
        self.give_back(s);
        Net::close(s.host, self.stream);
    }
}

/// TLS.
impl Conn {
    fn socket(&mut self) -> Socket<'_> {
        Socket {
            stream: self.stream,
            readable: &mut self.readable,
            writable: &mut self.writable,
            hangup: self.hangup,
        }
    }

    /// Whether more can be read without news from the socket.
    fn has_more<H: Host>(&self, s: &Shared<'_, H>) -> bool {
        let tls = s.tls.as_deref().filter(|_| self.secure == Secure::Connected);
        tls.is_some_and(|tls| tls.has_more(self.peer.conn.index()))
    }

    /// Goes on with the handshake.
    fn shake<H: Host>(&mut self, s: &mut Shared<'_, H>, laps: &mut Laps) -> Step {
        let slot = self.peer.conn.index();
        let mut cost = self.cost;
        let Some(tls) = s.tls.as_deref_mut() else {
            return Step::Stop(Turn::End(End::Refused("TLS is not set up")));
        };
        let mut account = Account { cost: &mut cost, laps };
        let shake = tls.shake(slot, s.host, &mut self.socket(), s.now, s.wall, &mut account);
        self.cost = cost;
        match shake {
            Shake::Did => Step::Did,
            Shake::Waits => Step::Nothing,
            Shake::WantsPlace => Step::Stop(Turn::WantsRecords),
            Shake::Probe => {
                tls.counters.probes += 1;
                Step::Stop(Turn::End(End::Probe))
            }
            Shake::Connected => {
                match tls.connected(slot, self.peer.addr, s.now) {
                    Ok(name) => self.peer.name = name,
                    Err(cause) => {
                        tls.fail(slot, cause);
                        return self.shake_failed(s, cause);
                    }
                }
                self.secure = Secure::Connected;
                self.progress = s.now;
                Step::Did
            }
            Shake::Failed(cause) => self.shake_failed(s, cause),
        }
    }

    /// The handshake failed: it is told, counted and held against the peer, and the peer hears its alert.
    fn shake_failed<H: Host>(&mut self, s: &mut Shared<'_, H>, cause: Cause) -> Step {
        if let Some(tls) = s.tls.as_deref_mut() {
            tls.failed(self.peer.conn.index(), self.peer.addr, cause, s.now);
        }
        self.tls_failed(End::Handshake(cause), s.now)
    }

    /// TLS is over: the alert leaves before the socket is closed.
    fn tls_failed(&mut self, end: End, now: Instant) -> Step {
        let has_alert = match end {
            End::Handshake(cause) | End::Tls(cause) => cause.alert().is_some(),
            end => end == End::TlsOnPlaintext,
        };
        if !has_alert {
            return Step::Stop(Turn::End(end));
        }
        self.secure = Secure::Lingering {
            end,
            until: now + LINGER,
            shut: false,
            thrown: 0,
        };
        Step::Did
    }

    /// Sends the alert, says that no more comes, and throws away what the peer still sends, so that no reset overtakes the alert.
    fn linger<H: Host>(&mut self, s: &mut Shared<'_, H>, laps: &mut Laps) -> Step {
        let slot = self.peer.conn.index();
        let Secure::Lingering {
            end,
            until,
            shut,
            thrown,
        } = self.secure
        else {
            return Step::Nothing;
        };
        let mut cost = self.cost;
        let mut account = Account { cost: &mut cost, laps };
        if let Some(tls) = s.tls.as_deref_mut()
            && tls.has_sealed(slot)
        {
            let flushed = tls.flush(slot, s.host, &mut self.socket(), &mut account);
            self.cost = cost;
            return match flushed {
                Ok(_) => Step::Did,
                Err(nb::Error::WouldBlock) => Step::Nothing,
                Err(nb::Error::Other(_)) => Step::Stop(Turn::End(end)),
            };
        }
        if !shut {
            s.host.shutdown(self.stream);
            if let Some(tls) = s.tls.as_deref_mut() {
                tls.forget(slot);
            }
        }
        let read = s.host.read(self.stream, s.scratch);
        self.cost.add(Phase::Read, laps.lap(s.host.ticks()));
        let thrown = thrown + read.as_ref().map_or(0, |n| *n);
        self.secure = Secure::Lingering {
            end,
            until,
            shut: true,
            thrown,
        };
        match read {
            Ok(n) if n > 0 && thrown < LINGER_BYTES => Step::Did,
            Err(nb::Error::WouldBlock) => {
                self.readable = false;
                Step::Nothing
            }
            _ => Step::Stop(Turn::End(end)),
        }
    }

    /// Sends what is sealed; when all of it has left, fills and seals more: encoded bytes and log ranges, in order, as many records as
    /// one send takes.
    fn send_secure<H: Host>(&mut self, s: &mut Shared<'_, H>, laps: &mut Laps) -> Step {
        let slot = self.peer.conn.index();
        let mut blocked = Step::Nothing;
        if !self.sealed {
            match self.seal(s, laps) {
                Ok((0, why)) => return why,
                Ok((_, why)) => blocked = why,
                Err(cause) => {
                    if let Some(tls) = s.tls.as_deref_mut() {
                        tls.broke(slot, self.peer.addr, cause, s.now);
                    }
                    return self.tls_failed(End::Tls(cause), s.now);
                }
            }
        }
        let Some(tls) = s.tls.as_deref_mut() else {
            return Step::Nothing;
        };
        let mut cost = self.cost;
        let mut account = Account { cost: &mut cost, laps };
        let sent = tls.flush(slot, s.host, &mut self.socket(), &mut account);
        self.sealed = tls.has_sealed(slot);
        self.cost = cost;
        match sent {
            Ok(n) => {
                self.bytes_out += n as u64;
                let done = self.out.is_empty() && !self.sealed;
                self.progressed(n, done, s.now);
                match blocked {
                    Step::Stop(_) if !self.sealed => blocked,
                    _ => Step::Did,
                }
            }
            Err(nb::Error::WouldBlock) => Step::Nothing,
            Err(nb::Error::Other(e)) => Step::Stop(Turn::End(End::Net(e))),
        }
    }

    /// Fills records from the front of the outbox and seals them: how many, and what stopped it before the buffer was full.
    fn seal<H: Host>(&mut self, s: &mut Shared<'_, H>, laps: &mut Laps) -> Result<(usize, Step), Cause> {
        let slot = self.peer.conn.index();
        let Some(tls) = s.tls.as_deref_mut() else {
            return Ok((0, Step::Nothing));
        };
        match self.out.front() {
            Front::Empty => return Ok((0, Step::Nothing)),
            Front::Hold(hold) if !s.state.holds.is_free(hold) => return Ok((0, Step::Nothing)),
            Front::File(_) if self.loading_front => return Ok((0, Step::Nothing)),
            _ if !self.writable => return Ok((0, Step::Nothing)),
            _ if !tls.lease_records(slot) => return Ok((0, Step::Stop(Turn::WantsRecords))),
            _ => tls.renew_keys(slot, s.host, s.wall)?,
        }
        let mut records = 0;
        while let Some(tls) = s.tls.take() {
            let (filled, full, why) = match tls.slot_mut(slot) {
                Some(room) => {
                    let (filled, why) = self.fill(s, room);
                    (filled, filled == room.len(), why)
                }
                None => (0, false, Step::Nothing),
            };
            if filled > 0 {
                let mut account = Account {
                    cost: &mut self.cost,
                    laps,
                };
                tls.seal(slot, filled, s.host, &mut account)?;
                records += 1;
                self.sealed = true;
            }
            s.tls = Some(tls);
            if !full {
                return Ok((records, why));
            }
        }
        Ok((records, Step::Nothing))
    }

    /// Takes from the front of the outbox what fits into `room`: how many bytes, and what stopped it before `room` was full.
    fn fill<H: Host>(&mut self, s: &mut Shared<'_, H>, room: &mut [u8]) -> (usize, Step) {
        let Shared {
            now,
            host,
            state,
            buffers,
            ..
        } = s;
        let mut filled = 0;
        while let Some(rest) = room.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.out.front() {
                Front::Empty => break,
                Front::Hold(hold) if state.holds.is_free(hold) => {
                    state.holds.release(hold);
                    self.out.unhold();
                    self.held.pop_front();
                    self.progressed(0, true, *now);
                }
                Front::Hold(_) => break,
                Front::Bytes => {
                    let small = self.pair.as_ref().map(|p| buffers.pairs.send(p)).unwrap_or_default();
                    let large = self
                        .reply
                        .as_ref()
                        .map(|l| buffers.replies.slice(l))
                        .unwrap_or_default();
                    let mut slices = [IoSlice::new(&[]); 4];
                    let (used, _) = self.out.gather(small, large, |_| false, &mut slices);
                    let mut copied = 0;
                    for slice in slices.iter().take(used) {
                        let Some(to) = rest.get_mut(copied..) else { break };
                        let bytes = to.len().min(slice.len());
                        if let (Some(to), Some(from)) = (to.get_mut(..bytes), slice.get(..bytes)) {
                            to.copy_from_slice(from);
                        }
                        copied += bytes;
                    }
                    self.out.sent(copied, |_| {});
                    filled += copied;
                    if !self.out.uses_large()
                        && let Some(lease) = self.reply.take()
                    {
                        buffers.replies.release(lease);
                    }
                }
                Front::File(range) => {
                    if self.loading_front {
                        break;
                    }
                    let want = rest.len().min(range.bytes as usize);
                    let to = rest.get_mut(..want).unwrap_or_default();
                    let read = match host.read_cached(range.file, range.position, &mut [IoSliceMut::new(to)]) {
                        Ok(bytes) => Ok(bytes),
                        Err(nb::Error::Other(e)) => Err(e),
                        Err(nb::Error::WouldBlock) => {
                            let token = tokens::load(self.peer.conn);
                            match host.start_load(range.file, range.position, range.bytes as usize, token) {
                                Ok(Started::Pending) => {
                                    self.loading_front = true;
                                    break;
                                }
                                // Where it was loaded at once, reading waits for next to nothing.
                                Ok(Started::Done) => host.read_at(range.file, range.position, to),
                                Err(_) => return (filled, Step::Stop(Turn::WantsFlush)),
                            }
                        }
                    };
                    match read {
                        Ok(0) => {
                            let end = End::Refused("the log file ended within a reply");
                            return (filled, Step::Stop(Turn::End(end)));
                        }
                        Ok(bytes) => {
                            filled += bytes;
                            if let Some(done) = self.out.sent_file(bytes) {
                                state.logs.release(*host, done);
                            }
                        }
                        Err(e) => return (filled, Step::Stop(Turn::End(End::Net(NetError::File(e))))),
                    }
                }
            }
        }
        (filled, Step::Nothing)
    }
}

/// Bytes of the first frame in `buffered`, prefix included, once the prefix tells them. What cannot be a frame is refused where
/// frames are taken.
fn needed(buffered: &[u8], bytes_max: usize) -> Option<usize> {
    frame::peek_len(buffered, bytes_max)
        .ok()
        .map(|len| len + frame::PREFIX_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_of_another_protocol_is_named() {
        let told = |bytes: [u8; 4]| End::Frame(FrameError::TooLarge(u32::from_be_bytes(bytes))).to_string();
        assert!(told([0x16, 3, 1, 2]).starts_with("not a Kafka request but TLS"));
        assert!(
            End::TlsOnPlaintext
                .to_string()
                .contains("tls_on_plaintext; alert handshake_failure sent; set ")
        );
        assert!(told(*b"GET ").starts_with("not a Kafka request but HTTP"));
        assert!(told([0x7f, 0, 0, 1]).starts_with("not a Kafka request: frame of"));
    }
}
