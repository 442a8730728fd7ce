//! A connection's TLS: handshake, records both ways, alerts, key updates. The one type that others hold.

mod greeting;
mod lent;

pub use lent::{Context, Out, Reassembly};

use core::mem;

use skerry_core::meter::Ticks;

use greeting::Greeting;

use crate::alert::Alert;
use crate::cause::{Cause, Met};
use crate::certificate::Verified;
use crate::crypto::Provider;
use crate::handshake::{Agreed, Arrivals, AwaitClientHello, Flight, Input, Message, State, Turn, client13, seal_alert};
use crate::message::{self, HandshakeType};
use crate::meter::{Meter, Phase};
use crate::record::{CONTENT_BYTES_MAX, ContentType, HEADER_BYTES, Opened, Peek, ReadHalf, WriteHalf};
use crate::state::StateId;
use crate::suite::{CipherSuite, Version};
use crate::trail::Step;

/// What one call of [`Session::receive`] did.
#[derive(Debug, PartialEq, Eq)]
pub struct Received<'r> {
    /// Bytes of the input that are done with.
    pub consumed: usize,
    /// What came of them.
    pub event: Event<'r>,
}

/// What came of a record.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'r> {
    /// No whole record yet: that many bytes more are wanted.
    Need(usize),
    /// The handshake, or something beside the data, went on.
    Progress,
    /// The handshake is over: data flows from here.
    Connected,
    /// Data, in place in the input.
    Data(&'r mut [u8]),
    /// So many bytes of data, at the start of the buffer that was lent to [`Session::receive_into`].
    DataInto(usize),
    /// The peer sends no more.
    CloseNotify,
}

/// Messages after the handshake (key updates, tickets) that are taken in a row without data between them.
const UPDATES_MAX: u8 = 32;
/// Warnings that are taken in a row without data between them.
const WARNINGS_MAX: u8 = 4;

/// One connection's TLS, server or client, 1.3 or 1.2. No buffers inside.
pub struct Session<P: Provider> {
    state: State<P>,
    read: ReadHalf<P>,
    write: WriteHalf<P>,
    agreed: Agreed,
    /// Bytes of early data that may still be skipped.
    early_data_left: u32,
    /// The one change_cipher_spec without a meaning has come.
    took_compatibility: bool,
    /// Messages after the handshake since data last came.
    updates: u8,
    /// Warnings since data last came.
    warnings: u8,
    /// Nothing more is written: a close_notify or a fatal alert was, or the peer is gone.
    write_closed: bool,
    /// Nothing more is read: a close_notify came.
    read_closed: bool,
}

impl<P: Provider> Session<P> {
    /// A server's side of a new connection.
    #[must_use]
    pub fn server() -> Self {
        Self::at(State::AwaitClientHello(AwaitClientHello), WriteHalf::plain())
    }

    /// A client's side of a new connection: its hello is in `cx.out`.
    ///
    /// Errors: those of a configuration that offers nothing, and of the provider; [`Cause::Internal`] for a lack of room.
    pub fn client(cx: &mut Context<'_, P>) -> Result<Self, Cause> {
        let mut session = Self::at(State::Failed(Cause::Internal), WriteHalf::first_hello());
        session.step(cx, |_, turn| client13::start(turn))?;
        Ok(session)
    }

    fn at(state: State<P>, write: WriteHalf<P>) -> Self {
        Self {
            state,
            read: ReadHalf::plain(),
            write,
            agreed: Agreed::default(),
            early_data_left: 0,
            took_compatibility: false,
            updates: 0,
            warnings: 0,
            write_closed: false,
            read_closed: false,
        }
    }

    /// Takes at most one record from the start of `input`. What follows `consumed` is for the next call.
    ///
    /// `cx.out` wants room for our longest flight during the handshake, and for 64 bytes after it.
    ///
    /// Errors: the session has failed, and the alert, if the cause has one, is in `cx.out`. Every later call gives the same cause.
    /// Cost: data is decrypted where it lies.
    pub fn receive<'r>(&mut self, cx: &mut Context<'_, P>, input: &'r mut [u8]) -> Result<Received<'r>, Cause> {
        self.receive_into(cx, input, &mut [])
    }

    /// As [`Session::receive`], with data decrypted to the start of `into` when there is room for the record's content, type and padding.
    ///
    /// Cost: one AEAD pass from one buffer to the other, no copy.
    pub fn receive_into<'r>(
        &mut self,
        cx: &mut Context<'_, P>,
        input: &'r mut [u8],
        into: &mut [u8],
    ) -> Result<Received<'r>, Cause> {
        let from = self.state_id();
        let received = self.take(cx, input, into);
        if let Err(cause) = received {
            if !matches!(self.state, State::Failed(_)) {
                let to = StateId::Failed;
                cx.notes.trail.note(Step {
                    from,
                    to,
                    ticks: Ticks::default(),
                });
            }
            self.fail(cause, &mut cx.out);
        }
        received
    }

    fn take<'r>(
        &mut self,
        cx: &mut Context<'_, P>,
        input: &'r mut [u8],
        into: &mut [u8],
    ) -> Result<Received<'r>, Cause> {
        let need = |more| Received {
            consumed: 0,
            event: Event::Need(more),
        };
        if let State::Failed(cause) = self.state {
            return Err(cause);
        }
        if self.read_closed {
            // Whatever comes after a close_notify is not read (RFC 8446 §6.1).
            return Ok(Received {
                consumed: input.len(),
                event: Event::CloseNotify,
            });
        }
        if let State::AwaitClientHello(_) = self.state
            && cx.message.filled() == 0
        {
            match Greeting::of(input) {
                Greeting::Tls => {}
                Greeting::Short(more) => return Ok(need(more)),
                Greeting::Plaintext(spoken) => return Err(Cause::PlaintextPeer(spoken)),
            }
        }
        let (kind, consumed) = match self.read.peek(input)? {
            Peek::Need(more) => return Ok(need(more)),
            Peek::Whole { kind, bytes } => (kind, bytes),
        };
        let record = input.get_mut(..consumed).ok_or(Cause::Internal)?;
        let event = if !matches!(self.state, State::Connected(_)) {
            self.take_before_data(cx, kind, record)?
        } else if kind == ContentType::ApplicationData
            && !into.is_empty()
            && self.read.room(kind, consumed) <= into.len()
        {
            let Opened { kind, content } = self.read.open_into(record, into)?;
            match kind {
                ContentType::ApplicationData => match self.data(cx, content)? {
                    0 => Event::Progress,
                    bytes => Event::DataInto(bytes),
                },
                kind => self.beside(cx, kind, content)?,
            }
        } else {
            let Opened { kind, content } = self.read.open(record)?;
            match kind {
                ContentType::ApplicationData => match self.data(cx, content)? {
                    0 => Event::Progress,
                    _ => Event::Data(content),
                },
                kind => self.beside(cx, kind, content)?,
            }
        };
        Ok(Received { consumed, event })
    }

    /// A record of the handshake, or early data that is skipped because it was refused: without keys all of it after a
    /// HelloRetryRequest, with keys what does not open before something does (RFC 8446 §4.2.10).
    fn take_before_data(
        &mut self,
        cx: &mut Context<'_, P>,
        outside: ContentType,
        record: &mut [u8],
    ) -> Result<Event<'static>, Cause> {
        let mut meter = Meter::start(cx.ticks);
        let may_skip = self.early_data_left > 0 && outside == ContentType::ApplicationData;
        let fragment_bytes = record.len().saturating_sub(HEADER_BYTES);
        if may_skip && !self.read.is_protected() {
            return self.skip(fragment_bytes);
        }
        let opened = self.read.open(record);
        meter.charge(Phase::RecordCrypto);
        cx.notes.cost.merge(meter.cost());
        match opened {
            Err(Cause::BadRecordMac) if may_skip => self.skip(fragment_bytes),
            Err(cause) => Err(cause),
            Ok(Opened { kind, content }) => {
                if may_skip {
                    self.early_data_left = 0;
                }
                self.beside(cx, kind, content)
            }
        }
    }

    /// When full: [`Cause::TooMuchEarlyData`].
    fn skip(&mut self, fragment_bytes: usize) -> Result<Event<'static>, Cause> {
        let bytes = u32::try_from(fragment_bytes.max(1)).map_err(|_| Cause::TooMuchEarlyData)?;
        self.early_data_left = self.early_data_left.checked_sub(bytes).ok_or(Cause::TooMuchEarlyData)?;
        Ok(Event::Progress)
    }

    /// Data came: how many bytes. Anything else may come again as often as before.
    fn data(&mut self, cx: &Context<'_, P>, content: &[u8]) -> Result<usize, Cause> {
        if cx.message.filled() != 0 {
            return Err(self.out_of_place(ContentType::ApplicationData));
        }
        if !content.is_empty() {
            self.updates = 0;
            self.warnings = 0;
        }
        Ok(content.len())
    }

    /// What comes beside data.
    fn beside(&mut self, cx: &mut Context<'_, P>, kind: ContentType, content: &[u8]) -> Result<Event<'static>, Cause> {
        let was_connected = matches!(self.state, State::Connected(_));
        match kind {
            ContentType::Alert => return self.alert(content),
            ContentType::Handshake => self.handshake(cx, content)?,
            // Handshake messages are not interleaved with anything (RFC 8446 §5.1).
            _ if cx.message.filled() != 0 => return Err(self.out_of_place(kind)),
            ContentType::ChangeCipherSpec => self.change_cipher_spec(cx, content)?,
            ContentType::ApplicationData => return Err(self.out_of_place(kind)),
        }
        Ok(match self.state {
            State::Connected(_) if !was_connected => Event::Connected,
            _ => Event::Progress,
        })
    }

    /// Handshake messages: several in a record, or one over several. One that is whole in its record is read where it lies.
    fn handshake(&mut self, cx: &mut Context<'_, P>, content: &[u8]) -> Result<(), Cause> {
        let mut rest = content;
        while !rest.is_empty() {
            if cx.message.filled() == 0 {
                match message::peek(rest, cx.message.bytes_max().max(CONTENT_BYTES_MAX)) {
                    Ok(message) => {
                        rest = rest.get(message.raw.len()..).unwrap_or_default();
                        self.message(cx, message, rest)?;
                        continue;
                    }
                    Err(nb::Error::WouldBlock) => {}
                    Err(nb::Error::Other(cause)) => return Err(cause),
                }
            }
            let (now, later) = rest.split_at(cx.message.wanted()?.min(rest.len()));
            cx.message.push(now)?;
            rest = later;
            if cx.message.wanted()? == 0 {
                let (bytes, filled) = cx.message.take();
                let done = match message::peek(bytes, filled) {
                    Ok(message) => self.message(cx, message, rest),
                    Err(_) => Err(Cause::Internal),
                };
                cx.message.restore(bytes);
                done?;
            }
        }
        Ok(())
    }

    /// One message; `rest` is what follows in its record. A message that keys change after must end its record (RFC 8446 §5.1); one that its
    /// sender then waits for an answer to has nothing to follow it either.
    fn message(&mut self, cx: &mut Context<'_, P>, message: Message<'_>, rest: &[u8]) -> Result<(), Cause> {
        const LAST: [u8; 3] = [
            HandshakeType::ClientHello.wire(),
            HandshakeType::Finished.wire(),
            HandshakeType::KeyUpdate.wire(),
        ];
        let follows = rest.first().map(|kind| Cause::OutOfSequence {
            state: self.state_id(),
            met: Met::Handshake(*kind),
        });
        if let Some(cause) = follows
            && LAST.contains(&message.kind)
        {
            return Err(cause);
        }
        if let State::Connected(_) = self.state {
            self.updates += 1;
            if self.updates > UPDATES_MAX {
                return Err(Cause::TooManyUpdates);
            }
        }
        let changed_keys = self.step(cx, |state, turn| state.on(turn, Input::Message(message)))?;
        match follows {
            Some(cause) if changed_keys => Err(cause),
            _ => Ok(()),
        }
    }

    /// TLS 1.2 means it; TLS 1.3 takes one, for old middleboxes' sake, between the first ClientHello and the peer's Finished (RFC 8446 §5).
    fn change_cipher_spec(&mut self, cx: &mut Context<'_, P>, content: &[u8]) -> Result<(), Cause> {
        let out_of_place = self.out_of_place(ContentType::ChangeCipherSpec);
        if content != [1] {
            return Err(out_of_place);
        }
        match self.state {
            State::AwaitClientChangeCipherSpec(_) | State::AwaitServerChangeCipherSpec(_) => {
                self.step(cx, |state, turn| state.on(turn, Input::ChangeCipherSpec))?;
                Ok(())
            }
            _ if self.state.takes_compatibility() && !self.took_compatibility => {
                self.took_compatibility = true;
                Ok(())
            }
            _ => Err(out_of_place),
        }
    }

    /// Whether it ends the connection depends on the alert alone in TLS 1.3 (RFC 8446 §6), before that on its level too.
    fn alert(&mut self, content: &[u8]) -> Result<Event<'static>, Cause> {
        const WARNING: u8 = 1;
        let &[level, number] = content else {
            return Err(Cause::BadAlert);
        };
        match Alert::from_wire(number) {
            Some(Alert::CloseNotify) if matches!(self.state, State::Connected(_)) => {
                self.read_closed = true;
                Ok(Event::CloseNotify)
            }
            Some(Alert::UserCanceled) => self.warning(),
            Some(alert) if alert != Alert::CloseNotify && level == WARNING && !self.is_13() => self.warning(),
            None if level == WARNING && !self.is_13() => self.warning(),
            Some(alert) => Err(Cause::PeerAlert(alert)),
            None => Err(Cause::PeerAlertUnknown(number)),
        }
    }

    /// When full: [`Cause::TooManyUpdates`].
    fn warning(&mut self) -> Result<Event<'static>, Cause> {
        self.warnings += 1;
        if self.warnings > WARNINGS_MAX {
            return Err(Cause::TooManyUpdates);
        }
        Ok(Event::Progress)
    }

    /// One transition: whether it changed the keys that open what arrives.
    fn step(
        &mut self,
        cx: &mut Context<'_, P>,
        on: impl FnOnce(State<P>, &mut Turn<'_, P>) -> Result<State<P>, Cause>,
    ) -> Result<bool, Cause> {
        let state = mem::replace(&mut self.state, State::Failed(Cause::Internal));
        let from = state.id();
        let mut turn = Turn {
            provider: cx.provider,
            random: &mut *cx.random,
            now: cx.now,
            meter: Meter::start(cx.ticks),
            config: cx.config,
            flight: Flight::new(&mut self.write, cx.scratch, cx.out.lend()),
            read: Arrivals::new(&mut self.read),
            agreed: &mut self.agreed,
            offered: &mut cx.notes.offered,
            refused: &mut cx.notes.refused,
            early_data_left: &mut self.early_data_left,
            keep: match &mut cx.keep {
                Some(keep) => Some(&mut **keep),
                None => None,
            },
        };
        let mut outcome = on(state, &mut turn).and_then(|state| turn.flight.seal().map(|()| state));
        turn.meter.charge(Phase::RecordCrypto);
        let cost = *turn.meter.cost();
        let changed_keys = turn.read.changed();
        if self.took_compatibility && self.agreed.version == Some(Version::Tls12) {
            // It was taken for TLS 1.3's sake, before a ServerHello told that it is not.
            outcome = Err(self.out_of_place(ContentType::ChangeCipherSpec));
        }
        let (state, outcome) = match outcome {
            Ok(state) => (state, Ok(changed_keys)),
            Err(cause) => (State::Failed(cause), Err(cause)),
        };
        self.state = state;
        cx.notes.cost.merge(&cost);
        cx.notes.trail.note(Step {
            from,
            to: self.state.id(),
            ticks: cost.total(),
        });
        outcome
    }

    /// Bytes before and after the content in a slot for [`Session::seal`].
    #[must_use]
    pub fn overhead(&self) -> (usize, usize) {
        self.write.overhead()
    }

    /// The longest content of one record that the peer takes.
    #[must_use]
    pub fn content_max(&self) -> usize {
        self.write.content_bytes_max()
    }

    /// Seals `bytes` of application data that lie in `slot` after `overhead().0` bytes, in place, and gives the record's length.
    ///
    /// Errors: [`Cause::Internal`] before [`Event::Connected`], after [`Session::close`], and for what does not fit;
    /// [`Cause::KeyExhausted`] when [`Session::wants_key_update`] was not heeded. The session goes on after each of them.
    pub fn seal(&mut self, slot: &mut [u8], bytes: usize) -> Result<usize, Cause> {
        if self.write_closed || !matches!(self.state, State::Connected(_)) {
            return Err(Cause::Internal);
        }
        self.write.seal(ContentType::ApplicationData, slot, bytes)
    }

    /// Whether [`Session::update_keys`] is due.
    #[must_use]
    pub fn wants_key_update(&self) -> bool {
        self.write.wants_key_update()
    }

    /// TLS 1.3: a KeyUpdate to `cx.out`, and new keys for what leaves after it. TLS 1.2 cannot: nothing is done.
    ///
    /// Errors: [`Cause::Internal`] unless data flows, and for a lack of room: the session has failed.
    pub fn update_keys(&mut self, cx: &mut Context<'_, P>) -> Result<(), Cause> {
        if self.write_closed {
            return Ok(());
        }
        let updated = self.step(cx, |state, turn| match state {
            State::Connected(state) => state.update(turn),
            _ => Err(Cause::Internal),
        });
        updated.map(drop).inspect_err(|cause| self.fail(*cause, &mut cx.out))
    }

    /// A close_notify to `out`, the first time. Data can still be received.
    ///
    /// When full: nothing is written, now or later.
    pub fn close(&mut self, out: &mut Out<'_>) {
        self.write_last(Alert::CloseNotify, out);
    }

    /// It ends: by itself, or from outside (a deadline, a reset). The alert, if the cause has one, goes to `out`. The first cause stays.
    pub fn fail(&mut self, cause: Cause, out: &mut Out<'_>) {
        match self.alert_of(cause) {
            Some(alert) => self.write_last(alert, out),
            None => self.write_closed = true,
        }
        if !matches!(self.state, State::Failed(_)) {
            self.state = State::Failed(cause);
        }
    }

    fn write_last(&mut self, alert: Alert, out: &mut Out<'_>) {
        if !mem::replace(&mut self.write_closed, true) {
            // Without room the peer is told nothing, and the connection ends all the same.
            let _ = seal_alert(&mut self.write, out, alert);
            if alert == Alert::UserCanceled {
                // It says why, not that it is over (RFC 8446 §6.1).
                let _ = seal_alert(&mut self.write, out, Alert::CloseNotify);
            }
        }
    }

    /// TLS 1.2 has no word of its own for a missing certificate.
    const fn alert_of(&self, cause: Cause) -> Option<Alert> {
        match (cause.alert(), self.agreed.version) {
            (Some(Alert::CertificateRequired), Some(Version::Tls12)) => Some(Alert::HandshakeFailure),
            (alert, _) => alert,
        }
    }

    fn out_of_place(&self, kind: ContentType) -> Cause {
        Cause::OutOfSequence {
            state: self.state_id(),
            met: Met::Record(kind as u8),
        }
    }

    fn is_13(&self) -> bool {
        self.agreed.version == Some(Version::Tls13)
    }

    /// Where it stands.
    #[must_use]
    pub const fn state_id(&self) -> StateId {
        self.state.id()
    }

    /// What is settled so far.
    #[must_use]
    pub const fn agreed(&self) -> &Agreed {
        &self.agreed
    }

    /// The version, once it is settled.
    #[must_use]
    pub const fn version(&self) -> Option<Version> {
        self.agreed.version
    }

    /// The suite, once it is settled.
    #[must_use]
    pub const fn suite(&self) -> Option<CipherSuite> {
        self.agreed.suite
    }

    /// Whether an earlier session was resumed.
    #[must_use]
    pub const fn is_resumed(&self) -> bool {
        self.agreed.resumed
    }

    /// The name that the client asked for.
    #[must_use]
    pub fn server_name(&self) -> Option<&str> {
        self.agreed.server_name.as_deref()
    }

    /// The peer's verified certificate.
    #[must_use]
    pub const fn peer(&self) -> Option<&Verified> {
        self.agreed.peer.as_ref()
    }

    /// Why it failed.
    #[must_use]
    pub const fn cause(&self) -> Option<Cause> {
        match self.state {
            State::Failed(cause) => Some(cause),
            _ => None,
        }
    }
}
