//! A connection's TLS: handshake, records both ways, alerts, key updates. The one type that others hold.

use core::mem;

use skerry_core::meter::Ticks;
use skerry_core::time::Timestamp;

use crate::alert::Alert;
use crate::cause::Cause;
use crate::certificate::Verified;
use crate::config::Config;
use crate::crypto::{Provider, Random};
use crate::handshake::{Agreed, Arrivals, Flight, Input, State, Turn, seal_alert};
use crate::meter::Meter;
use crate::notes::Notes;
use crate::record::{ReadHalf, WriteHalf};
use crate::saved::Keep;
use crate::state::StateId;
use crate::suite::{CipherSuite, Version};
use crate::trail::Step;

/// Room for whole records that are to be sent: the caller's bytes and the caller's count of them.
pub struct Out<'a> {
    bytes: &'a mut [u8],
    filled: &'a mut usize,
}

impl<'a> Out<'a> {
    /// Records are added to `bytes` after the first `filled`.
    #[must_use]
    pub const fn new(bytes: &'a mut [u8], filled: &'a mut usize) -> Self {
        Self { bytes, filled }
    }

    /// What waits to be sent.
    #[must_use]
    pub fn filled(&self) -> &[u8] {
        self.bytes.get(..*self.filled).unwrap_or_default()
    }

    /// The room that is left.
    pub fn spare(&mut self) -> &mut [u8] {
        self.bytes.get_mut(*self.filled..).unwrap_or_default()
    }

    /// The first `bytes` of [`Out::spare`] are a record now.
    pub fn commit(&mut self, bytes: usize) {
        *self.filled = self.filled.saturating_add(bytes).min(self.bytes.len());
    }

    /// The same, lent on.
    pub const fn lend(&mut self) -> Out<'_> {
        Out {
            bytes: self.bytes,
            filled: self.filled,
        }
    }
}

/// Room for one handshake message that comes in pieces: the caller's bytes and the caller's count of what has come. The size of the slice is
/// the bound on a message. When the count is zero the bytes may be taken away; after [`Event::Connected`] eight are enough for a server.
pub struct Reassembly<'a> {
    bytes: &'a mut [u8],
    filled: &'a mut usize,
}

impl<'a> Reassembly<'a> {
    /// The first `filled` of `bytes` have come.
    #[must_use]
    pub const fn new(bytes: &'a mut [u8], filled: &'a mut usize) -> Self {
        Self { bytes, filled }
    }
}

/// What a caller lends for one call. Nothing of it is kept.
pub struct Context<'c, P: Provider> {
    /// The primitives.
    pub provider: &'c P,
    /// Randomness.
    pub random: &'c mut dyn Random,
    /// Wall-clock time.
    pub now: Timestamp,
    /// The tick counter that costs are taken from.
    pub ticks: &'c dyn Fn() -> Ticks,
    /// What this side has and allows.
    pub config: Config<'c, P>,
    /// The handshake message under way.
    pub message: Reassembly<'c>,
    /// Plaintext of our flight before it is sealed: as long as our longest flight.
    pub scratch: &'c mut [u8],
    /// Records to be sent: room for our longest flight and for an alert after it.
    pub out: Out<'c>,
    /// Trail, cost and offer, for the log line.
    pub notes: &'c mut Notes,
    /// Client: where sessions go that can be resumed. A server leaves it `None`.
    pub keep: Option<&'c mut dyn Keep>,
}

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

/// One connection's TLS, server or client, 1.3 or 1.2. No buffers inside.
pub struct Session<P: Provider> {
    state: State<P>,
    read: ReadHalf<P>,
    write: WriteHalf<P>,
    agreed: Agreed,
    early_data_left: u32,
}

impl<P: Provider> Session<P> {
    /// A server's side of a new connection.
    #[must_use]
    pub fn server() -> Self {
        Self::at(State::AwaitClientHello(crate::handshake::AwaitClientHello))
    }

    fn at(state: State<P>) -> Self {
        Self {
            state,
            read: ReadHalf::plain(),
            write: WriteHalf::plain(),
            agreed: Agreed::default(),
            early_data_left: 0,
        }
    }

    /// A client's side of a new connection: its hello is in `cx.out`.
    pub fn client(cx: &mut Context<'_, P>) -> Result<Self, Cause> {
        let _ = cx;
        Err(Cause::Internal)
    }

    /// Takes at most one record from the start of `input`.
    ///
    /// Errors: the session is [`State::Failed`] and the alert, if the cause has one, is in `cx.out`.
    pub fn receive<'r>(&mut self, cx: &mut Context<'_, P>, input: &'r mut [u8]) -> Result<Received<'r>, Cause> {
        let _ = (cx, input);
        Err(Cause::Internal)
    }

    /// [`Session::receive`], with data decrypted to the start of `into` when that is as long as the record's ciphertext and keys are on.
    pub fn receive_into<'r>(
        &mut self,
        cx: &mut Context<'_, P>,
        input: &'r mut [u8],
        into: &mut [u8],
    ) -> Result<Received<'r>, Cause> {
        let _ = into;
        self.receive(cx, input)
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
    pub fn seal(&mut self, slot: &mut [u8], bytes: usize) -> Result<usize, Cause> {
        self.write
            .seal(crate::record::ContentType::ApplicationData, slot, bytes)
    }

    /// Whether [`Session::update_keys`] is due.
    #[must_use]
    pub fn wants_key_update(&self) -> bool {
        false
    }

    /// TLS 1.3: a KeyUpdate to `cx.out`, and new keys for what leaves after it.
    pub fn update_keys(&mut self, cx: &mut Context<'_, P>) -> Result<(), Cause> {
        let _ = cx;
        Ok(())
    }

    /// A close_notify to `out`, the first time.
    pub fn close(&mut self, out: &mut Out<'_>) {
        let _ = seal_alert(&mut self.write, out, Alert::CloseNotify);
    }

    /// It ends from outside: a deadline, a reset. The alert, if the cause has one, goes to `out`.
    pub fn fail(&mut self, cause: Cause, out: &mut Out<'_>) {
        let _ = out;
        self.state = State::Failed(cause);
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

    fn advance(&mut self, cx: &mut Context<'_, P>, input: Input<'_>) -> Result<(), Cause> {
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
        let state = mem::replace(&mut self.state, State::Failed(Cause::Internal));
        let from = state.id();
        self.state = state.on(&mut turn, input)?;
        let ticks = turn.meter.cost().total();
        cx.notes.cost.merge(turn.meter.cost());
        cx.notes.trail.note(Step {
            from,
            to: self.state.id(),
            ticks,
        });
        Ok(())
    }
}
