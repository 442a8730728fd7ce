//! One connection to a broker, in plain or over TLS, that reads and writes as a socket does.

use std::error::Error;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, TcpStream};
use std::ops::Range;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use skerry_core::meter::Ticks;
use skerry_tls::cause::Cause;
use skerry_tls::certificate::ServerName;
use skerry_tls::config::Config;
use skerry_tls::crypto::system::SystemRandom;
use skerry_tls::notes::Notes;
use skerry_tls::record::RECORD_BYTES_MAX;
use skerry_tls::session::{Context, Event, Out, Reassembly, Session};
use skerry_tls::state::StateId;

use super::Failure;
use super::access::now;
use super::tls_words::Broke;
use crate::secure::Chosen;
use crate::tls_setup::ClientSetup;

/// How long a handshake may take.
pub const HANDSHAKE: Duration = Duration::from_secs(10);
/// The longest handshake message of a broker that is taken: its chain.
const MESSAGE_BYTES: usize = 1 << 16;
/// The longest flight of ours: our own chain.
const FLIGHT_BYTES: usize = 1 << 16;
/// Sealed bytes that wait to be sent: a flight in records, or one record of data, and an alert.
const OUT_BYTES: usize = FLIGHT_BYTES + (4 << 10);
/// Bytes that have come and are not opened.
const INPUT_BYTES: usize = 4 * RECORD_BYTES_MAX;

/// A connection. Dropping it tells the broker that it is over.
pub struct Stream {
    socket: TcpStream,
    tls: Option<Box<Tls>>,
}

/// Why TLS failed: a whole sentence, which begins with the broker's address. It is the inner error of an [`io::Error`].
#[derive(Debug)]
pub struct TlsFailed(pub String);

impl std::fmt::Display for TlsFailed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for TlsFailed {}

/// Whether a read only found nothing to read until now.
pub fn is_idle(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

impl Stream {
    /// Takes a connected socket whose reads time out, and with `setup` shakes hands with whoever is reached by `address`.
    ///
    /// Errors: [`Failure::Told`] when the two cannot agree, [`Failure::Unreachable`] when the other side is gone, or silent.
    pub fn new(
        socket: TcpStream,
        address: &str,
        setup: Option<&Rc<ClientSetup>>,
        interrupted: &AtomicBool,
    ) -> Result<Self, Failure> {
        let mut this = Self { socket, tls: None };
        if let Some(setup) = setup {
            let mut tls = Tls::new(address, Rc::clone(setup))?;
            tls.shake(&mut this.socket, interrupted)?;
            this.tls = Some(Box::new(tls));
        }
        Ok(this)
    }

    /// Whether it is in plain.
    pub const fn is_plain(&self) -> bool {
        self.tls.is_none()
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match &mut self.tls {
            Some(tls) => tls.read(&mut self.socket, into),
            None => self.socket.read(into),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            return self.socket.write(bytes);
        };
        let written = tls.write(&mut self.socket, bytes);
        match written {
            // Whoever refuses our certificate says so after our side of the handshake, and is gone.
            Err(error) if !error.get_ref().is_some_and(|inner| inner.is::<TlsFailed>()) => {
                match tls.read(&mut self.socket, &mut [0; 1]) {
                    Err(told) if !is_idle(&told) => Err(told),
                    _ => Err(error),
                }
            }
            written => written,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.session.close(&mut tls.lent.out());
            // Whoever does not hear it sees the end of the stream.
            let _ = tls.flush(&mut self.socket);
            let _ = self.socket.shutdown(Shutdown::Write);
        }
    }
}

/// TLS of one connection.
struct Tls {
    session: Session<Chosen>,
    lent: Lent,
    /// What has come.
    input: Box<[u8]>,
    /// Where in it lies what is not opened.
    arrived: Range<usize>,
    /// What was opened.
    plain: Vec<u8>,
    /// How much of that was read.
    taken: usize,
    /// Nothing more comes.
    is_over: bool,
}

/// What the session is lent.
struct Lent {
    setup: Rc<ClientSetup>,
    address: String,
    notes: Notes,
    message: Box<[u8]>,
    message_bytes: usize,
    scratch: Box<[u8]>,
    out: Box<[u8]>,
    out_bytes: usize,
}

impl Lent {
    fn with<R>(&mut self, call: impl FnOnce(&mut Context<'_, Chosen>) -> R) -> R {
        let Self {
            setup,
            address,
            notes,
            message,
            message_bytes,
            scratch,
            out,
            out_bytes,
        } = self;
        setup.lend(server_name(address), |config| {
            call(&mut Context {
                provider: setup.provider(),
                random: &mut SystemRandom,
                now: now(),
                ticks: &Ticks::default,
                config: Config::Client(config),
                message: Reassembly::new(message, message_bytes),
                scratch,
                out: Out::new(out, out_bytes),
                notes,
                keep: None,
            })
        })
    }

    fn out(&mut self) -> Out<'_> {
        Out::new(&mut self.out, &mut self.out_bytes)
    }

    /// Why it ended in `state`, for a person.
    fn told(&self, cause: Cause, state: StateId) -> String {
        let broke = Broke {
            address: &self.address,
            cause,
            state,
            notes: &self.notes,
            setup: &self.setup,
        };
        broke.to_string()
    }
}

/// Whom `host:port` is reached by.
pub fn server_name(address: &str) -> ServerName<'_> {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.parse::<IpAddr>().map_or(ServerName::Dns(host), ServerName::Ip)
}

impl Tls {
    /// With its hello, which waits to be sent.
    fn new(address: &str, setup: Rc<ClientSetup>) -> Result<Self, Failure> {
        let room = |bytes| vec![0; bytes].into_boxed_slice();
        let mut lent = Lent {
            setup,
            address: address.into(),
            notes: Notes::default(),
            message: room(MESSAGE_BYTES),
            message_bytes: 0,
            scratch: room(FLIGHT_BYTES),
            out: room(OUT_BYTES),
            out_bytes: 0,
        };
        let session = lent
            .with(Session::client)
            .map_err(|cause| lent.told(cause, StateId::AwaitServerHello))?;
        Ok(Self {
            session,
            lent,
            input: room(INPUT_BYTES),
            arrived: 0..0,
            plain: Vec::new(),
            taken: 0,
            is_over: false,
        })
    }

    /// Shakes hands.
    fn shake(&mut self, socket: &mut TcpStream, interrupted: &AtomicBool) -> Result<(), Failure> {
        let until = Instant::now() + HANDSHAKE;
        // Whoever takes nothing more may have said why before.
        let _ = self.flush(socket);
        while self.session.state_id() != StateId::Connected {
            if self.open(socket)? {
                continue;
            }
            let state = self.session.state_id();
            let cause = match self.fill(socket) {
                Ok(0) => Cause::Closed(state),
                Err(error) if is_idle(&error) => {
                    if interrupted.load(Ordering::Relaxed) {
                        return Err(Failure::Interrupted);
                    }
                    if Instant::now() < until {
                        continue;
                    }
                    Cause::Timeout(state)
                }
                Err(error) if error.kind() != ErrorKind::Interrupted => Cause::Reset(state),
                Ok(_) | Err(_) => continue,
            };
            self.session.fail(cause, &mut self.lent.out());
            let _ = self.flush(socket);
            return Err(Failure::Unreachable(self.lent.told(cause, state)));
        }
        Ok(())
    }

    /// Sends what waits.
    fn flush(&mut self, socket: &mut TcpStream) -> io::Result<()> {
        let sent = socket.write_all(self.lent.out().filled());
        self.lent.out_bytes = 0;
        sent
    }

    /// Takes what has come: how much.
    fn fill(&mut self, socket: &mut TcpStream) -> io::Result<usize> {
        self.input.copy_within(self.arrived.clone(), 0);
        self.arrived = 0..self.arrived.len();
        let read = socket.read(self.input.get_mut(self.arrived.end..).unwrap_or_default())?;
        self.arrived.end += read;
        Ok(read)
    }

    /// Opens one record of what has come: whether there was a whole one.
    fn open(&mut self, socket: &mut TcpStream) -> Result<bool, TlsFailed> {
        let state = self.session.state_id();
        let input = self.input.get_mut(self.arrived.clone()).unwrap_or_default();
        let (session, plain) = (&mut self.session, &mut self.plain);
        let opened = self.lent.with(|cx| {
            let received = session.receive(cx, input)?;
            let (mut is_whole, mut is_over) = (true, false);
            match received.event {
                Event::Need(_) => is_whole = false,
                Event::Progress | Event::Connected | Event::DataInto(_) => {}
                Event::Data(data) => plain.extend_from_slice(data),
                Event::CloseNotify => is_over = true,
            }
            Ok((received.consumed, is_whole, is_over))
        });
        // Our part of the handshake, or the alert. Whoever takes nothing more is found by reading on.
        let _ = self.flush(socket);
        match opened {
            Ok((consumed, is_whole, is_over)) => {
                self.arrived.start += consumed;
                self.is_over |= is_over;
                Ok(is_whole)
            }
            Err(cause) => Err(TlsFailed(self.lent.told(cause, state))),
        }
    }

    fn read(&mut self, socket: &mut TcpStream, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let rest = self.plain.get(self.taken..).unwrap_or_default();
            if !rest.is_empty() {
                let bytes = rest.len().min(into.len());
                if let (Some(to), Some(from)) = (into.get_mut(..bytes), rest.get(..bytes)) {
                    to.copy_from_slice(from);
                }
                self.taken += bytes;
                return Ok(bytes);
            }
            self.plain.clear();
            self.taken = 0;
            if self.is_over || (!self.open(socket)? && self.fill(socket)? == 0) {
                return Ok(0);
            }
        }
    }

    /// Seals and sends one record's worth.
    fn write(&mut self, socket: &mut TcpStream, bytes: &[u8]) -> io::Result<usize> {
        let failed = |lent: &Lent, cause| TlsFailed(lent.told(cause, StateId::Connected));
        if self.session.wants_key_update() {
            let session = &mut self.session;
            let updated = self.lent.with(|cx| session.update_keys(cx));
            updated.map_err(|cause| failed(&self.lent, cause))?;
        }
        let content = bytes.len().min(self.session.content_max());
        let (before, _) = self.session.overhead();
        let mut out = self.lent.out();
        let slot = out.spare();
        if let (Some(to), Some(from)) = (slot.get_mut(before..before + content), bytes.get(..content)) {
            to.copy_from_slice(from);
        }
        let sealed = self.session.seal(slot, content);
        if let Ok(record) = sealed {
            out.commit(record);
        }
        sealed.map_err(|cause| failed(&self.lent, cause))?;
        self.flush(socket)?;
        Ok(content)
    }
}

impl From<TlsFailed> for io::Error {
    fn from(failed: TlsFailed) -> Self {
        Self::new(ErrorKind::InvalidData, failed)
    }
}

impl From<TlsFailed> for Failure {
    fn from(failed: TlsFailed) -> Self {
        Self::Told(failed.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broker_is_who_it_is_reached_by() {
        assert_eq!(server_name("broker.example:9093"), ServerName::Dns("broker.example"));
        assert_eq!(server_name("127.0.0.1:9093"), ServerName::Ip([127, 0, 0, 1].into()));
        assert_eq!(server_name("[::1]:9093"), ServerName::Ip("::1".parse().unwrap()));
    }
}
