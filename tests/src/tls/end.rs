//! One end of a TLS connection over bytes: a session of our engine with all that is lent to it, made once and used for one connection after
//! the other.

use core::ops::Range;
use std::time::{SystemTime, UNIX_EPOCH};

use skerry_core::time::Timestamp;
use skerry_net::host::Clock as _;
use skerry_net::linux::LinuxClock;
use skerry_tls::cause::Cause;
use skerry_tls::config::Config;
use skerry_tls::crypto::Provider;
use skerry_tls::crypto::system::SystemRandom;
use skerry_tls::notes::Notes;
use skerry_tls::saved::{Keep, SAVED_OVERHEAD_BYTES, SavedSession};
use skerry_tls::session::{Context, Event, Out, Reassembly, Session};

/// The longest handshake message, as the broker has it.
const MESSAGE_BYTES: usize = 16 << 10;
/// The longest flight in plaintext, as the broker has it.
const SCRATCH_BYTES: usize = MESSAGE_BYTES + 4096;
/// Sealed bytes that wait to be sent: four full records and an alert.
const OUT_BYTES: usize = 4 * ((16 << 10) + 40) + 256;

/// The system's wall clock.
#[must_use]
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(since.as_millis() as i64)
}

/// The last session that a client may resume.
#[derive(Debug, Default)]
pub struct Kept {
    staged: Vec<u8>,
    /// What [`skerry_tls::config::ClientConfig::resume`] takes; empty when there is none.
    pub bytes: Vec<u8>,
    /// Sessions that were kept so far.
    pub count: u64,
}

impl Keep for Kept {
    fn stage(&mut self, session: &SavedSession<'_>) {
        self.staged.resize(SAVED_OVERHEAD_BYTES + session.ticket.len(), 0);
        let bytes = session.encode(&mut self.staged).unwrap_or(0);
        self.staged.truncate(bytes);
    }

    fn commit(&mut self) {
        // A resumed session may get no new ticket: the old one stays.
        if !self.staged.is_empty() {
            std::mem::swap(&mut self.bytes, &mut self.staged);
            self.staged.clear();
            self.count += 1;
        }
    }
}

/// What a call of [`End::receive`] came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Came {
    /// Bytes of the input that are done with.
    pub consumed: usize,
    /// Bytes of data at the start of the buffer that was lent for it.
    pub into: usize,
    /// Where data lies in the input instead.
    pub place: Range<usize>,
    /// Whether the peer sends no more.
    pub closed: bool,
}

/// One end.
pub struct End<P: Provider> {
    /// The session of the connection that was begun last.
    pub session: Session<P>,
    /// What it noted.
    pub notes: Notes,
    /// A client's last session.
    pub kept: Kept,
    clock: LinuxClock,
    message: Box<[u8]>,
    message_bytes: usize,
    scratch: Box<[u8]>,
    out: Box<[u8]>,
    out_bytes: usize,
}

impl<P: Provider> Default for End<P> {
    fn default() -> Self {
        Self {
            session: Session::server(),
            notes: Notes::default(),
            kept: Kept::default(),
            clock: LinuxClock::new(),
            message: vec![0; MESSAGE_BYTES].into(),
            message_bytes: 0,
            scratch: vec![0; SCRATCH_BYTES].into(),
            out: vec![0; OUT_BYTES].into(),
            out_bytes: 0,
        }
    }
}

/// Calls with the session and a context of everything else.
macro_rules! lend {
    ($end:expr, $provider:expr, $config:expr, |$session:ident, $cx:ident| $call:expr) => {{
        let End {
            session: $session,
            notes,
            kept,
            clock,
            message,
            message_bytes,
            scratch,
            out,
            out_bytes,
        } = &mut *$end;
        let clock = *clock;
        let ticks = || {
            let mut clock = clock;
            clock.ticks()
        };
        let mut $cx = Context {
            provider: $provider,
            random: &mut SystemRandom,
            now: now(),
            ticks: &ticks,
            config: $config,
            message: Reassembly::new(message, message_bytes),
            scratch,
            out: Out::new(out, out_bytes),
            notes,
            keep: Some(kept),
        };
        $call
    }};
}

impl<P: Provider> End<P> {
    fn reset(&mut self) {
        self.notes = Notes::default();
        (self.message_bytes, self.out_bytes) = (0, 0);
    }

    /// A new connection, as its server.
    pub fn serve(&mut self) {
        self.reset();
        self.session = Session::server();
    }

    /// A new connection, as its client: the hello waits in [`End::take_out`].
    ///
    /// Errors: what [`Session::client`] says.
    pub fn connect(&mut self, provider: &P, config: Config<'_, P>) -> Result<(), Cause> {
        self.reset();
        let session = lend!(self, provider, config, |_session, cx| Session::client(&mut cx))?;
        self.session = session;
        Ok(())
    }

    /// Takes the records that are whole in `input`, up to the first that has data: it goes to `into` when there is room for the record.
    ///
    /// Errors: the session has failed; its alert, if it has one, waits in [`End::take_out`].
    pub fn receive(
        &mut self,
        provider: &P,
        config: Config<'_, P>,
        input: &mut [u8],
        into: &mut [u8],
    ) -> Result<Came, Cause> {
        let mut came = Came::default();
        let start = input.as_ptr().addr();
        lend!(self, provider, config, |session, cx| {
            while let Some(rest) = input.get_mut(came.consumed..)
                && !rest.is_empty()
            {
                let received = session.receive_into(&mut cx, rest, into)?;
                came.consumed += received.consumed;
                match received.event {
                    Event::Progress | Event::Connected => continue,
                    Event::Need(_) => {}
                    Event::DataInto(bytes) => came.into = bytes,
                    Event::Data(data) => {
                        let at = data.as_ptr().addr() - start;
                        came.place = at..at + data.len();
                    }
                    Event::CloseNotify => came.closed = true,
                }
                break;
            }
            Ok(came)
        })
    }

    /// Seals as much of `data` as there is room for; how much that was.
    ///
    /// Errors: what [`Session::seal`] says.
    pub fn send(&mut self, data: &[u8]) -> Result<usize, Cause> {
        let mut sent = 0;
        while let (before, after) = self.session.overhead()
            && let rest = &data[sent..]
            && !rest.is_empty()
        {
            let slot = &mut self.out[self.out_bytes..];
            let bytes = rest.len().min(self.session.content_max());
            if before + bytes + after > slot.len() {
                break;
            }
            slot[before..before + bytes].copy_from_slice(&rest[..bytes]);
            self.out_bytes += self.session.seal(slot, bytes)?;
            sent += bytes;
        }
        Ok(sent)
    }

    /// A close_notify, to be sent.
    pub fn close(&mut self) {
        self.session.close(&mut Out::new(&mut self.out, &mut self.out_bytes));
    }

    /// What waits to be sent; it is the caller's from here.
    pub fn take_out(&mut self) -> &[u8] {
        let bytes = std::mem::take(&mut self.out_bytes);
        &self.out[..bytes]
    }

    /// What waits to be sent, until [`End::sent`] says that it was.
    #[must_use]
    pub fn out(&self) -> &[u8] {
        &self.out[..self.out_bytes]
    }

    /// The first `bytes` of [`End::out`] have left.
    pub fn sent(&mut self, bytes: usize) {
        self.out.copy_within(bytes..self.out_bytes, 0);
        self.out_bytes -= bytes;
    }
}
