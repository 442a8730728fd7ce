//! A session over a socket: whatever the socket's mode, one step at a time.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::Instant;

use skerry_core::meter::Ticks;
use skerry_core::time::Timestamp;
use skerry_tls::cause::Cause;
use skerry_tls::config::Config;
use skerry_tls::crypto::system::SystemRandom;
use skerry_tls::notes::Notes;
use skerry_tls::record::RECORD_BYTES_MAX;
use skerry_tls::saved::Keep;
use skerry_tls::session::{Context, Event, Out, Reassembly, Session};
use skerry_tls::state::StateId;

use super::{Chosen, now};

/// The longest handshake message: a hello whose extensions fill their 64 KiB, and what stands before them.
const MESSAGE_BYTES_MAX: usize = (1 << 16) + 1024;
/// The longest flight of ours.
const FLIGHT_BYTES_MAX: usize = 1 << 16;

/// What a step brought.
#[derive(Debug, PartialEq, Eq)]
pub enum Got {
    /// Nothing: the socket has nothing, or takes nothing, now.
    Wait,
    /// Something that was no data.
    Progress,
    /// The end of the handshake.
    Connected,
    /// Data.
    Data(Vec<u8>),
    /// The peer's close_notify.
    CloseNotify,
    /// The end of the stream, after the handshake and without close_notify.
    End,
}

/// A socket, a session, and what the session is lent.
pub struct Connection<'a> {
    /// The session.
    pub session: Session<Chosen>,
    /// Its notes.
    pub notes: Notes,
    lent: Lent<'a>,
    stream: TcpStream,
    input: Vec<u8>,
    input_bytes: usize,
    /// Most bytes of one system call.
    step_bytes: usize,
    /// The peer takes nothing more. What it sent before may say why.
    is_deaf: bool,
}

struct Lent<'a> {
    provider: &'a Chosen,
    config: Config<'a, Chosen>,
    keep: Option<&'a mut dyn Keep>,
    /// What the wall clock shows, when it stands still.
    clock: Option<Timestamp>,
    message: Vec<u8>,
    message_bytes: usize,
    scratch: Vec<u8>,
    out: Vec<u8>,
    out_bytes: usize,
}

impl Lent<'_> {
    fn with<T>(&mut self, notes: &mut Notes, call: impl FnOnce(&mut Context<'_, Chosen>) -> T) -> T {
        let start = Instant::now();
        let ticks = || Ticks(start.elapsed().as_nanos() as u64);
        call(&mut Context {
            provider: self.provider,
            random: &mut SystemRandom,
            now: self.clock.unwrap_or_else(now),
            ticks: &ticks,
            config: self.config,
            message: Reassembly::new(&mut self.message, &mut self.message_bytes),
            scratch: &mut self.scratch,
            out: Out::new(&mut self.out, &mut self.out_bytes),
            notes,
            keep: match &mut self.keep {
                Some(keep) => Some(&mut **keep),
                None => None,
            },
        })
    }

    fn out(&mut self) -> Out<'_> {
        Out::new(&mut self.out, &mut self.out_bytes)
    }
}

impl<'a> Connection<'a> {
    /// A session over `stream`, by the system's clock or one that stands still. A client's hello waits to be sent.
    pub fn new(
        provider: &'a Chosen,
        config: Config<'a, Chosen>,
        keep: Option<&'a mut dyn Keep>,
        clock: Option<Timestamp>,
        stream: TcpStream,
    ) -> Result<Self, Cause> {
        let mut lent = Lent {
            provider,
            config,
            keep,
            clock,
            message: vec![0; MESSAGE_BYTES_MAX],
            message_bytes: 0,
            scratch: vec![0; FLIGHT_BYTES_MAX],
            out: vec![0; 2 * FLIGHT_BYTES_MAX],
            out_bytes: 0,
        };
        let mut notes = Notes::default();
        let session = match config {
            Config::Server(_) => Session::server(),
            Config::Client(_) => lent.with(&mut notes, Session::client)?,
        };
        Ok(Self {
            session,
            notes,
            lent,
            stream,
            input: vec![0; RECORD_BYTES_MAX],
            input_bytes: 0,
            step_bytes: RECORD_BYTES_MAX,
            is_deaf: false,
        })
    }

    /// Reads and writes so many bytes at a time.
    pub fn step_bytes(&mut self, bytes: usize) {
        self.step_bytes = bytes.clamp(1, RECORD_BYTES_MAX);
    }

    /// Whether anything came from the peer or is part of a record.
    pub fn has_come(&self) -> bool {
        self.input_bytes > 0 || self.session.state_id() != StateId::AwaitClientHello
    }

    /// Sends what waits, then takes one record, or reads once.
    ///
    /// Errors: the session has failed, and its alert, if it has one, waits to be sent.
    pub fn step(&mut self) -> Result<Got, Cause> {
        if !self.flush() {
            return Ok(Got::Wait);
        }
        match self.record()? {
            Some(got) => Ok(got),
            None => self.read(),
        }
    }

    /// One record of what was read, or `None` when there is no whole one.
    fn record(&mut self) -> Result<Option<Got>, Cause> {
        let Self {
            session, notes, lent, ..
        } = self;
        let input = &mut self.input[..self.input_bytes];
        let received = lent.with(notes, |cx| session.receive(cx, input))?;
        let consumed = received.consumed;
        let got = match received.event {
            Event::Need(_) => return Ok(None),
            Event::Progress | Event::DataInto(_) => Got::Progress,
            Event::Connected => Got::Connected,
            Event::Data(data) => Got::Data(data.to_vec()),
            Event::CloseNotify => Got::CloseNotify,
        };
        self.input.copy_within(consumed..self.input_bytes, 0);
        self.input_bytes -= consumed;
        Ok(Some(got))
    }

    fn read(&mut self) -> Result<Got, Cause> {
        let state = self.session.state_id();
        let room = &mut self.input[self.input_bytes..];
        let room_bytes = room.len().min(self.step_bytes);
        match self.stream.read(&mut room[..room_bytes]) {
            Ok(0) if state == StateId::Connected => Ok(Got::End),
            Ok(0) => Err(self.fail(Cause::Closed(state))),
            Ok(bytes) => {
                self.input_bytes += bytes;
                Ok(Got::Progress)
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(Got::Progress),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Ok(Got::Wait),
            Err(_) => Err(self.fail(Cause::Reset(state))),
        }
    }

    /// Ends it from outside. Gives the cause back.
    pub fn fail(&mut self, cause: Cause) -> Cause {
        self.session.fail(cause, &mut self.lent.out());
        cause
    }

    /// Seals data, as many records as it takes; the keys are renewed when they want it. There is room for 96 KiB until
    /// [`Connection::flush`] says that all is sent.
    pub fn send(&mut self, data: &[u8]) -> Result<(), Cause> {
        for content in data.chunks(self.session.content_max()) {
            if self.session.wants_key_update() {
                self.update_keys()?;
            }
            let (before, _) = self.session.overhead();
            let mut out = self.lent.out();
            let slot = out.spare();
            let place = slot.get_mut(before..before + content.len()).ok_or(Cause::Internal)?;
            place.copy_from_slice(content);
            let bytes = self.session.seal(slot, content.len())?;
            out.commit(bytes);
        }
        Ok(())
    }

    /// New keys for what leaves.
    pub fn update_keys(&mut self) -> Result<(), Cause> {
        let Self {
            session, notes, lent, ..
        } = self;
        lent.with(notes, |cx| session.update_keys(cx))
    }

    /// A close_notify, to be sent.
    pub fn close(&mut self) {
        self.session.close(&mut self.lent.out());
    }

    /// Sends what waits: whether nothing waits any more. A peer that takes nothing more counts as that.
    pub fn flush(&mut self) -> bool {
        while self.lent.out_bytes > 0 && !self.is_deaf {
            let waits = &self.lent.out[..self.lent.out_bytes.min(self.step_bytes)];
            match self.stream.write(waits) {
                Ok(bytes) if bytes > 0 => {
                    self.lent.out.copy_within(bytes..self.lent.out_bytes, 0);
                    self.lent.out_bytes -= bytes;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return false,
                Ok(_) | Err(_) => self.is_deaf = true,
            }
        }
        true
    }

    /// Tells the peer that nothing more comes.
    pub fn half_close(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Takes and forgets what the peer still sends, so that closing sends no reset that would overtake our last words. `Some(bytes)` while
    /// there may be more.
    pub fn drain(&mut self) -> Option<usize> {
        match self.stream.read(&mut self.input) {
            Ok(0) => None,
            Ok(bytes) => Some(bytes),
            Err(error) => {
                let waits = [ErrorKind::WouldBlock, ErrorKind::TimedOut, ErrorKind::Interrupted];
                waits.contains(&error.kind()).then_some(0)
            }
        }
    }
}
