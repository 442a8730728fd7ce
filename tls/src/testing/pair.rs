//! A client and a server that talk through byte pipes, with a link between them that cuts, and may change, what passes.

use alloc::vec::Vec;
use core::cell::Cell;

use skerry_core::meter::Ticks;
use skerry_core::time::Timestamp;

use super::{NOW, Seeded};
use crate::cause::Cause;
use crate::config::Config;
use crate::crypto::Provider;
use crate::notes::Notes;
use crate::saved::{Keep, SAVED_OVERHEAD_BYTES, SavedSession};
use crate::session::{Context, Event, Out, Reassembly, Session};

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From client to server.
    ToServer,
    /// From server to client.
    ToClient,
}

/// What does not change while a side lives.
pub struct Setting<'a, P: Provider> {
    /// The primitives.
    pub provider: &'a P,
    /// The side's configuration.
    pub config: Config<'a, P>,
    /// What its wall clock shows.
    pub now: Timestamp,
}

impl<'a, P: Provider> Setting<'a, P> {
    /// At [`NOW`].
    pub const fn new(provider: &'a P, config: Config<'a, P>) -> Self {
        Self {
            provider,
            config,
            now: NOW,
        }
    }
}

/// A [`Keep`] that counts.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    staged: Vec<u8>,
    /// What to give back as `resume`.
    pub bytes: Vec<u8>,
    /// Sessions that were kept.
    pub count: usize,
}

impl Keep for Kept {
    fn stage(&mut self, session: &SavedSession<'_>) {
        self.staged.resize(SAVED_OVERHEAD_BYTES + session.ticket.len(), 0);
        let bytes = session.encode(&mut self.staged).unwrap();
        self.staged.truncate(bytes);
    }

    fn commit(&mut self) {
        if !self.staged.is_empty() {
            self.bytes = core::mem::take(&mut self.staged);
            self.count += 1;
        }
    }
}

/// Bytes of the buffers that a side lends: a handshake message, a flight in plaintext, records to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// The longest handshake message.
    pub message: usize,
    /// The longest flight.
    pub scratch: usize,
    /// The longest flight, sealed.
    pub out: usize,
}

impl Default for Room {
    fn default() -> Self {
        Self {
            message: 1 << 16,
            scratch: 1 << 16,
            out: 1 << 17,
        }
    }
}

/// A session and all that is lent to it.
pub struct Side<P: Provider> {
    /// The session.
    pub session: Session<P>,
    /// Its notes.
    pub notes: Notes,
    /// Sessions that it kept.
    pub kept: Kept,
    /// Data that came.
    pub data: Vec<u8>,
    /// Whether [`Event::Connected`] came.
    pub is_connected: bool,
    /// Whether [`Event::CloseNotify`] came.
    pub is_closed: bool,
    /// What ended it.
    pub cause: Option<Cause>,
    /// Bytes that came and wait for the rest of their record.
    pub input: Vec<u8>,
    random: Seeded,
    message: Vec<u8>,
    message_bytes: usize,
    scratch: Vec<u8>,
    out: Vec<u8>,
    out_bytes: usize,
    ticks: Cell<u64>,
}

/// Calls with a context of everything that a side lends; the session stays outside of it.
macro_rules! lend {
    ($side:expr, $setting:expr, |$session:ident, $cx:ident, $input:ident| $call:expr) => {{
        let Side {
            session: $session,
            notes,
            kept,
            input: $input,
            random,
            message,
            message_bytes,
            scratch,
            out,
            out_bytes,
            ticks,
            ..
        } = &mut *$side;
        let ticks = || {
            ticks.set(ticks.get() + 1);
            Ticks(ticks.get())
        };
        #[allow(unused_mut)]
        let mut $cx = Context {
            provider: $setting.provider,
            random,
            now: $setting.now,
            ticks: &ticks,
            config: $setting.config,
            message: Reassembly::new(message, message_bytes),
            scratch,
            out: Out::new(out, out_bytes),
            notes,
            keep: Some(kept),
        };
        $call
    }};
}

impl<P: Provider> Side<P> {
    /// A server that waits.
    #[must_use]
    pub fn server(seed: u64, room: Room) -> Self {
        Self {
            session: Session::server(),
            notes: Notes::default(),
            kept: Kept::default(),
            data: Vec::new(),
            is_connected: false,
            is_closed: false,
            cause: None,
            input: Vec::new(),
            random: Seeded::new(seed),
            message: alloc::vec![0; room.message],
            message_bytes: 0,
            scratch: alloc::vec![0; room.scratch],
            out: alloc::vec![0; room.out],
            out_bytes: 0,
            ticks: Cell::new(0),
        }
    }

    /// A client whose hello waits to be sent.
    ///
    /// Errors: what [`Session::client`] says.
    pub fn client(setting: &Setting<'_, P>, seed: u64, room: Room) -> Result<Self, Cause> {
        let mut side = Self::server(seed, room);
        let session = lend!(&mut side, setting, |_session, cx, _input| Session::client(&mut cx))?;
        side.session = session;
        Ok(side)
    }

    /// Takes bytes from the peer: as many records as are whole, until it ends.
    pub fn receive(&mut self, setting: &Setting<'_, P>, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        while self.cause.is_none() && !self.is_closed && !self.input.is_empty() {
            let mut data = Vec::new();
            let mut needs = false;
            let taken = lend!(self, setting, |session, cx, input| {
                session.receive(&mut cx, input).map(|received| {
                    let mut events = (false, false);
                    match received.event {
                        Event::Need(more) => {
                            assert!(more > 0);
                            needs = true;
                        }
                        Event::Progress => {}
                        Event::Connected => events.0 = true,
                        Event::CloseNotify => events.1 = true,
                        Event::Data(bytes) => data.extend_from_slice(bytes),
                        Event::DataInto(_) => unreachable!("nothing was lent to decrypt into"),
                    }
                    (received.consumed, events)
                })
            });
            match taken {
                Ok((consumed, (connected, closed))) => {
                    self.input.drain(..consumed);
                    self.is_connected |= connected;
                    self.is_closed |= closed;
                    self.data.append(&mut data);
                    if needs {
                        assert_eq!(consumed, 0);
                        break;
                    }
                    assert!(
                        consumed > 0,
                        "a call that neither takes nor wants bytes would repeat for ever"
                    );
                }
                Err(cause) => self.cause = Some(cause),
            }
        }
    }

    /// What waits to be sent.
    pub fn take_out(&mut self) -> Vec<u8> {
        let bytes = self.out[..self.out_bytes].to_vec();
        self.out_bytes = 0;
        bytes
    }

    /// Application data to be sent, in as few records as it fits into.
    ///
    /// Errors: what [`Session::seal`] says.
    pub fn send(&mut self, mut bytes: &[u8]) -> Result<(), Cause> {
        loop {
            let (before, _) = self.session.overhead();
            let (now, rest) = bytes.split_at(bytes.len().min(self.session.content_max()));
            let slot = &mut self.out[self.out_bytes..];
            slot[before..before + now.len()].copy_from_slice(now);
            self.out_bytes += self.session.seal(slot, now.len())?;
            bytes = rest;
            if bytes.is_empty() {
                return Ok(());
            }
        }
    }

    /// Sends a KeyUpdate.
    ///
    /// Errors: what [`Session::update_keys`] says.
    pub fn update_keys(&mut self, setting: &Setting<'_, P>) -> Result<(), Cause> {
        lend!(self, setting, |session, cx, _input| session.update_keys(&mut cx))
    }

    /// Sends a close_notify.
    pub fn close(&mut self) {
        self.session.close(&mut Out::new(&mut self.out, &mut self.out_bytes));
    }

    /// Ends it from outside.
    pub fn fail(&mut self, cause: Cause) {
        self.session
            .fail(cause, &mut Out::new(&mut self.out, &mut self.out_bytes));
        self.cause = Some(cause);
    }

    /// Whether it has a part of a record, or of a handshake message, and wants the rest.
    #[must_use]
    pub fn waits(&self) -> bool {
        self.cause.is_none() && (!self.input.is_empty() || self.message_bytes > 0)
    }

    /// Puts bytes that are no record of the session's before the peer.
    pub fn inject(&mut self, bytes: &[u8]) {
        self.out[self.out_bytes..][..bytes.len()].copy_from_slice(bytes);
        self.out_bytes += bytes.len();
    }
}

/// What lies between two sides.
pub trait Link {
    /// How many of the bytes that wait in `direction` go on at once; the first of them is the stream's byte number `at`. At least 1.
    fn segment(&mut self, direction: Direction, at: usize, waiting: usize) -> usize;

    /// What becomes of bytes on their way.
    fn change(&mut self, _direction: Direction, _at: usize, _bytes: &mut [u8]) {}
}

/// All that waits, at once.
#[derive(Clone, Copy, Debug)]
pub struct Whole;

impl Link for Whole {
    fn segment(&mut self, _: Direction, _: usize, waiting: usize) -> usize {
        waiting
    }
}

/// At most so many bytes at once.
#[derive(Clone, Copy, Debug)]
pub struct Pieces(pub usize);

impl Link for Pieces {
    fn segment(&mut self, _: Direction, _: usize, waiting: usize) -> usize {
        waiting.min(self.0)
    }
}

/// Cut before these bytes of a direction's stream, and nowhere else.
#[derive(Clone, Debug)]
pub struct CutAt(pub Vec<(Direction, usize)>);

impl Link for CutAt {
    fn segment(&mut self, direction: Direction, at: usize, waiting: usize) -> usize {
        let next = self
            .0
            .iter()
            .filter(|(way, cut)| *way == direction && *cut > at)
            .map(|(_, cut)| cut - at)
            .min();
        next.map_or(waiting, |bytes| bytes.min(waiting))
    }
}

/// One bit of a stream changed.
#[derive(Clone, Copy, Debug)]
pub struct Flip {
    /// Whose.
    pub direction: Direction,
    /// Which byte.
    pub at: usize,
    /// The bits to change of it.
    pub mask: u8,
}

impl Link for Flip {
    fn segment(&mut self, _: Direction, _: usize, waiting: usize) -> usize {
        waiting
    }

    fn change(&mut self, direction: Direction, at: usize, bytes: &mut [u8]) {
        if direction == self.direction
            && let Some(byte) = self.at.checked_sub(at).and_then(|index| bytes.get_mut(index))
        {
            *byte ^= self.mask;
        }
    }
}

/// A client, a server, and what passed between them.
pub struct Pair<'a, P: Provider> {
    /// The client.
    pub client: Side<P>,
    /// The server.
    pub server: Side<P>,
    /// What the client is lent.
    pub client_setting: Setting<'a, P>,
    /// What the server is lent.
    pub server_setting: Setting<'a, P>,
    /// All that the client sent.
    pub to_server: Vec<u8>,
    /// All that the server sent.
    pub to_client: Vec<u8>,
    passed: [usize; 2],
}

impl<'a, P: Provider> Pair<'a, P> {
    /// Both at their beginning; nothing has passed.
    #[must_use]
    pub fn new(client_setting: Setting<'a, P>, server_setting: Setting<'a, P>, seed: u64) -> Self {
        let client = Side::client(&client_setting, seed, Room::default()).unwrap();
        Self {
            client,
            server: Side::server(seed ^ 0x5eed, Room::default()),
            client_setting,
            server_setting,
            to_server: Vec::new(),
            to_client: Vec::new(),
            passed: [0; 2],
        }
    }

    /// Lets bytes pass until neither side sends any more. What a side sent before it failed still arrives.
    pub fn run(&mut self, link: &mut dyn Link) {
        loop {
            self.to_server.extend(self.client.take_out());
            self.to_client.extend(self.server.take_out());
            let moved = self.pass(Direction::ToServer, link) | self.pass(Direction::ToClient, link);
            if !moved {
                return;
            }
        }
    }

    fn pass(&mut self, direction: Direction, link: &mut dyn Link) -> bool {
        let (stream, passed, side, setting) = match direction {
            Direction::ToServer => (
                &self.to_server,
                &mut self.passed[0],
                &mut self.server,
                &self.server_setting,
            ),
            Direction::ToClient => (
                &self.to_client,
                &mut self.passed[1],
                &mut self.client,
                &self.client_setting,
            ),
        };
        let waiting = &stream[*passed..];
        if waiting.is_empty() {
            return false;
        }
        let count = link.segment(direction, *passed, waiting.len()).clamp(1, waiting.len());
        let mut bytes = waiting[..count].to_vec();
        link.change(direction, *passed, &mut bytes);
        side.receive(setting, &bytes);
        *passed += count;
        true
    }
}
