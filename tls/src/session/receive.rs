//! What arrives: one record at a time, opened, put together, and given to whom it is for.

use skerry_core::meter::Ticks;

use super::greeting::Greeting;
use super::{Context, Session};
use crate::alert::Alert;
use crate::cause::{Cause, Met};
use crate::crypto::Provider;
use crate::handshake::{Input, Message, State};
use crate::message::{self, HandshakeType};
use crate::meter::{Meter, Phase};
use crate::record::{ContentType, HEADER_BYTES, Opened, Peek};
use crate::state::StateId;
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

impl<P: Provider> Session<P> {
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
        if let State::AwaitClientHello(_) | State::AwaitServerHello(_) = self.state
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
    pub(super) fn beside(
        &mut self,
        cx: &mut Context<'_, P>,
        kind: ContentType,
        content: &[u8],
    ) -> Result<Event<'static>, Cause> {
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
            if cx.message.filled() == 0
                && let Ok(message) = message::peek(rest, rest.len())
            {
                rest = rest.get(message.raw.len()..).unwrap_or_default();
                self.message(cx, message, rest)?;
                continue;
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
        const LAST: [u8; 4] = [
            HandshakeType::ClientHello.wire(),
            HandshakeType::ServerHelloDone.wire(),
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
            State::AwaitClientChangeCipherSpec(_) | State::AwaitServerChangeCipherSpec(_)
                if cfg!(feature = "tls12") =>
            {
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
}
