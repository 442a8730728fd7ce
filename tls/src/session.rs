//! A connection's TLS: handshake, records both ways, alerts, key updates. The one type that others hold.

mod greeting;
mod lent;
mod receive;
#[cfg(test)]
mod tests;

pub use lent::{Context, Out, Reassembly};
pub use receive::{Event, Received};

use core::mem;

use crate::alert::Alert;
use crate::cause::{Cause, Met};
use crate::certificate::Verified;
use crate::crypto::Provider;
use crate::handshake::{Agreed, Arrivals, Flight, State, Turn, client13, seal_alert};
use crate::meter::{Meter, Phase};
use crate::record::{ContentType, ReadHalf, WriteHalf};
use crate::state::StateId;
use crate::suite::{CipherSuite, Version};
use crate::trail::Step;

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
    #[cfg(feature = "server")]
    #[must_use]
    pub fn server() -> Self {
        Self::at(
            State::AwaitClientHello(crate::handshake::AwaitClientHello),
            WriteHalf::plain(),
        )
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

    /// One transition: whether it changed the keys that open what arrives.
    fn step(
        &mut self,
        cx: &mut Context<'_, P>,
        on: impl FnOnce(State<P>, &mut Turn<'_, P>) -> Result<State<P>, Cause>,
    ) -> Result<bool, Cause> {
        let state = mem::replace(&mut self.state, State::Failed(Cause::Internal));
        // A client's first step begins nowhere.
        let from = match &state {
            State::Failed(_) => None,
            state => Some(state.id()),
        };
        let mut turn = Turn {
            provider: cx.provider,
            random: &mut *cx.random,
            now: cx.now,
            meter: Meter::start(cx.ticks),
            config: cx.config,
            flight: Flight::new(&mut self.write, cx.scratch, cx.out.lend(), self.write_closed),
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
            from: from.unwrap_or(self.state.id()),
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

    /// The peer's certificate, verified and proved: from [`Event::Connected`] on, not before.
    #[must_use]
    pub const fn peer(&self) -> Option<&Verified> {
        match self.state {
            State::Connected(_) => self.agreed.peer.as_ref(),
            _ => None,
        }
    }

    /// Why it failed.
    #[must_use]
    pub const fn cause(&self) -> Option<Cause> {
        match self.state {
            State::Failed(cause) => Some(cause),
            _ => None,
        }
    }

    /// The alert that tells the peer why it failed: its cause's, in the words of the version.
    #[must_use]
    pub const fn last_alert(&self) -> Option<Alert> {
        match self.state {
            State::Failed(cause) => self.alert_of(cause),
            _ => None,
        }
    }
}
