//! TLS between `core`'s client and whatever carries its bytes: a transport over a transport.

use core::ops::Range;

use skerry_core::client::{Lost, Transport};
use skerry_core::meter::Ticks;
use skerry_core::time::Timestamp;

use crate::cause::Cause;
use crate::config::{ClientConfig, Config};
use crate::crypto::{Provider, Random};
use crate::notes::Notes;
use crate::session::{Context, Event, Out, Reassembly, Session};
use crate::state::StateId;

/// What a [`Secured`] works in. The sizes are for a `record_size_limit` of 512 and a certificate of up to a kilobyte; with other ones
/// take `Buffers<INPUT, MESSAGE, OUT>`.
///
/// - `INPUT`: one record of the server's: its limit and 22 bytes more, and at least the longest ServerHello.
/// - `MESSAGE`: the longest handshake message, which is the server's certificate chain.
/// - `OUT`: our hello (some 250 bytes) and an alert; and one record of ours.
pub struct Buffers<const INPUT: usize = 536, const MESSAGE: usize = 1536, const OUT: usize = 576> {
    input: [u8; INPUT],
    message: [u8; MESSAGE],
    scratch: [u8; OUT],
    out: [u8; OUT],
}

impl<const INPUT: usize, const MESSAGE: usize, const OUT: usize> Buffers<INPUT, MESSAGE, OUT> {
    /// All zeros.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            input: [0; INPUT],
            message: [0; MESSAGE],
            scratch: [0; OUT],
            out: [0; OUT],
        }
    }
}

impl<const INPUT: usize, const MESSAGE: usize, const OUT: usize> Default for Buffers<INPUT, MESSAGE, OUT> {
    fn default() -> Self {
        Self::new()
    }
}

/// A client's TLS over `inner`: the handshake is made by the first calls of either verb, and what is sent after it is sealed.
///
/// After a reconnection of `inner`, [`connect`](Self::connect) begins anew; the pieces stay where they are.
/// When full: a record or message of the server's that is longer than its buffer ends the connection ([`cause`](Self::cause) says
/// so); with our own record not sent yet, `WouldBlock`.
pub struct Secured<'b, T, P: Provider, R> {
    /// What carries the records.
    pub inner: T,
    provider: &'b P,
    config: &'b ClientConfig<'b, P>,
    random: R,
    session: Option<Session<P>>,
    notes: &'b mut Notes,
    cause: Option<Cause>,
    now: Timestamp,
    input: &'b mut [u8],
    input_bytes: usize,
    /// Plaintext in `input` that was not fetched yet.
    plain: Range<usize>,
    /// Bytes of `input` that are done with once `plain` is.
    consumed: usize,
    message: &'b mut [u8],
    message_bytes: usize,
    scratch: &'b mut [u8],
    out: &'b mut [u8],
    out_bytes: usize,
    sent: usize,
}

impl<'b, T: Transport, P: Provider, R: Random> Secured<'b, T, P, R> {
    /// TLS by `config`, not begun yet: [`connect`](Self::connect) does that.
    pub fn new<const INPUT: usize, const MESSAGE: usize, const OUT: usize>(
        inner: T,
        provider: &'b P,
        config: &'b ClientConfig<'b, P>,
        random: R,
        buffers: &'b mut Buffers<INPUT, MESSAGE, OUT>,
        notes: &'b mut Notes,
    ) -> Self {
        Self {
            inner,
            provider,
            config,
            random,
            session: None,
            notes,
            cause: None,
            now: Timestamp(0),
            input: &mut buffers.input,
            input_bytes: 0,
            plain: 0..0,
            consumed: 0,
            message: &mut buffers.message,
            message_bytes: 0,
            scratch: &mut buffers.scratch,
            out: &mut buffers.out,
            out_bytes: 0,
            sent: 0,
        }
    }

    /// Begins a session over a connection of `inner` that is fresh. `now` is for verifiers that look at dates.
    ///
    /// Errors: those of [`Session::client`].
    #[inline(never)] // A session is moved about in here: that room is not to be part of the caller's frame.
    pub fn connect(&mut self, now: Timestamp) -> Result<(), Cause> {
        (self.now, self.cause) = (now, None);
        (self.input_bytes, self.consumed, self.plain) = (0, 0, 0..0);
        (self.message_bytes, self.out_bytes, self.sent) = (0, 0, 0);
        *self.notes = Notes::default();
        self.session = None;
        let begun = self.with(|_, cx, _| Session::client(cx));
        match begun {
            Ok(session) => {
                self.session = Some(session);
                Ok(())
            }
            Err(cause) => {
                self.cause = Some(cause);
                Err(cause)
            }
        }
    }

    /// Why the session failed, if it did.
    #[must_use]
    pub const fn cause(&self) -> Option<Cause> {
        self.cause
    }

    /// The session, to ask what was agreed.
    #[must_use]
    pub const fn session(&self) -> Option<&Session<P>> {
        self.session.as_ref()
    }

    /// Says that nothing more is sent. What waits goes out as far as `inner` takes it now.
    pub fn close(&mut self) {
        if let Some(session) = &mut self.session {
            session.close(&mut Out::new(self.out, &mut self.out_bytes));
            let _ = self.flush();
        }
    }

    fn with<A>(&mut self, call: impl FnOnce(Option<&mut Session<P>>, &mut Context<'_, P>, &mut [u8]) -> A) -> A {
        let mut context = Context {
            provider: self.provider,
            random: &mut self.random,
            now: self.now,
            ticks: &|| Ticks(0),
            config: Config::Client(self.config),
            message: Reassembly::new(self.message, &mut self.message_bytes),
            scratch: self.scratch,
            out: Out::new(self.out, &mut self.out_bytes),
            notes: self.notes,
            keep: None,
        };
        let input = self.input.get_mut(..self.input_bytes).unwrap_or_default();
        call(self.session.as_mut(), &mut context, input)
    }

    fn flush(&mut self) -> nb::Result<(), Lost> {
        while self.sent < self.out_bytes {
            let rest = self.out.get(self.sent..self.out_bytes).unwrap_or_default();
            self.sent += self.inner.send(rest)?;
        }
        (self.out_bytes, self.sent) = (0, 0);
        Ok(())
    }

    fn is_connected(&self) -> bool {
        self.session
            .as_ref()
            .is_some_and(|session| session.state_id() == StateId::Connected)
    }

    /// Gets and takes one record, unless plaintext waits. `Ok(false)` says that the server sends no more.
    fn advance(&mut self) -> nb::Result<bool, Lost> {
        self.flush()?;
        loop {
            if !self.plain.is_empty() {
                return Ok(true);
            }
            self.input.copy_within(self.consumed..self.input_bytes, 0);
            self.input_bytes -= self.consumed;
            self.consumed = 0;
            let taken = self.with(|session, cx, input| {
                let start = input.as_ptr() as usize;
                let received = session.ok_or(Cause::Internal)?.receive(cx, input)?;
                let plain = match received.event {
                    // In place, so its address says where.
                    Event::Data(ref data) => {
                        let at = data.as_ptr() as usize - start;
                        at..at + data.len()
                    }
                    _ => 0..0,
                };
                let need = match received.event {
                    Event::Need(bytes) => Some(bytes),
                    _ => None,
                };
                let ended = received.event == Event::CloseNotify;
                Ok((received.consumed, plain, need, ended))
            });
            match taken {
                Ok((.., true)) => return Ok(false),
                Ok((_, _, Some(need), _)) => {
                    self.flush()?;
                    let room = self.input.get_mut(self.input_bytes..self.input_bytes + need);
                    let Some(room) = room else {
                        return Err(self.failed(Cause::RecordOverflow));
                    };
                    match self.inner.receive(room)? {
                        0 => return Ok(false),
                        bytes => self.input_bytes += bytes,
                    }
                }
                Ok((consumed, plain, None, _)) => {
                    (self.consumed, self.plain) = (consumed, plain);
                    self.flush()?;
                    if self.is_connected() {
                        return Ok(true);
                    }
                }
                Err(cause) => return Err(self.failed(cause)),
            }
        }
    }

    fn failed(&mut self, cause: Cause) -> nb::Error<Lost> {
        if let Some(session) = &mut self.session {
            session.fail(cause, &mut Out::new(self.out, &mut self.out_bytes));
        }
        self.cause = Some(cause);
        let _ = self.flush();
        nb::Error::Other(Lost)
    }
}

impl<T: Transport, P: Provider, R: Random> Transport for Secured<'_, T, P, R> {
    fn send(&mut self, bytes: &[u8]) -> nb::Result<usize, Lost> {
        while !self.is_connected() {
            if !self.advance()? {
                return Err(nb::Error::Other(Lost));
            }
        }
        self.flush()?;
        let Some(session) = &mut self.session else {
            return Err(nb::Error::Other(Lost));
        };
        let (before, after) = session.overhead();
        let most = session.content_max().min(self.out.len().saturating_sub(before + after));
        let taken = bytes.len().min(most);
        let content = bytes.get(..taken).unwrap_or_default();
        let slot = self.out.get_mut(before..before + taken).unwrap_or_default();
        slot.copy_from_slice(content);
        match session.seal(self.out, taken) {
            Ok(record) => self.out_bytes = record,
            Err(cause) => return Err(self.failed(cause)),
        }
        match self.flush() {
            Ok(()) | Err(nb::Error::WouldBlock) => Ok(taken),
            Err(lost) => Err(lost),
        }
    }

    fn receive(&mut self, out: &mut [u8]) -> nb::Result<usize, Lost> {
        while self.plain.is_empty() {
            if !self.advance()? {
                return Ok(0);
            }
        }
        let plain = self.input.get(self.plain.clone()).unwrap_or_default();
        let taken = plain.len().min(out.len());
        for (to, from) in out.iter_mut().zip(plain) {
            *to = *from;
        }
        self.plain.start += taken;
        Ok(taken)
    }
}
