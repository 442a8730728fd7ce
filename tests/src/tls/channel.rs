//! A client's connection over a socket, in plain or over TLS, that reads and writes as a socket does.

use core::fmt;
use core::ops::Range;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

use skerry_tls::config::{ClientConfig, Config};
use skerry_tls::crypto::fast::Fast;
use skerry_tls::record::RECORD_BYTES_MAX;
use skerry_tls::state::StateId;
use skerry_tls::testing::Accepting;

use super::End;
use crate::process::PATIENCE;

/// Where to connect, and whether over TLS.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The address.
    pub address: SocketAddr,
    /// Over TLS. Any certificate is taken.
    pub is_tls: bool,
}

impl From<SocketAddr> for Target {
    fn from(address: SocketAddr) -> Self {
        Self { address, is_tls: false }
    }
}

/// A connection. Nothing takes longer than [`PATIENCE`].
pub struct Channel {
    /// The socket.
    pub stream: TcpStream,
    tls: Option<Box<Tls>>,
}

struct Tls {
    end: End<Fast>,
    verifier: Accepting,
    /// What has come and is not opened.
    input: Box<[u8]>,
    arrived: Range<usize>,
    /// What was opened in place and is not read.
    opened: Range<usize>,
    is_over: bool,
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_tls() { "TLS" } else { "plain" };
        write!(f, "Channel({kind}, {:?})", self.stream)
    }
}

impl Channel {
    /// Connects, and shakes hands over TLS: blocking. After that it is the caller's to choose.
    ///
    /// Errors: the socket's; [`ErrorKind::InvalidData`] for a handshake that fails.
    pub fn connect(target: Target) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&target.address, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut channel = Self { stream, tls: None };
        if target.is_tls {
            let mut tls = Box::new(Tls {
                end: End::default(),
                verifier: Accepting::default(),
                input: vec![0; 4 * RECORD_BYTES_MAX].into(),
                arrived: 0..0,
                opened: 0..0,
                is_over: false,
            });
            tls.shake(&mut channel.stream)?;
            channel.tls = Some(tls);
        }
        Ok(channel)
    }

    /// Whether it is over TLS: what is read may then be less than what has come.
    #[must_use]
    pub const fn is_tls(&self) -> bool {
        self.tls.is_some()
    }
}

fn failed(cause: impl core::fmt::Debug) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("TLS: {cause:?}"))
}

impl Tls {
    fn shake(&mut self, stream: &mut TcpStream) -> io::Result<()> {
        let config = ClientConfig::new(&self.verifier, None);
        self.end.connect(&Fast, Config::Client(&config)).map_err(failed)?;
        while self.end.session.state_id() != StateId::Connected {
            self.flush(stream)?;
            if self.take_in(stream)? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            self.open(&mut [])?;
        }
        self.flush(stream)
    }

    /// Sends what waits.
    fn flush(&mut self, stream: &mut TcpStream) -> io::Result<()> {
        while !self.end.out().is_empty() {
            let sent = stream.write(self.end.out())?;
            self.end.sent(sent);
        }
        Ok(())
    }

    fn take_in(&mut self, stream: &mut TcpStream) -> io::Result<usize> {
        if self.opened.is_empty() {
            self.input.copy_within(self.arrived.clone(), 0);
            self.arrived = 0..self.arrived.len();
        }
        let bytes = stream.read(&mut self.input[self.arrived.end..])?;
        self.arrived.end += bytes;
        Ok(bytes)
    }

    /// Opens what has arrived until there is data: how much came to `into`.
    fn open(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let config = ClientConfig::new(&self.verifier, None);
        let input = &mut self.input[self.arrived.clone()];
        let came = self.end.receive(&Fast, Config::Client(&config), input, into);
        let came = came.map_err(failed)?;
        self.opened = self.arrived.start + came.place.start..self.arrived.start + came.place.end;
        self.arrived.start += came.consumed;
        self.is_over |= came.closed;
        Ok(came.into)
    }

    fn read(&mut self, stream: &mut TcpStream, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.opened.is_empty() {
                let bytes = self.opened.len().min(into.len());
                into[..bytes].copy_from_slice(&self.input[self.opened.start..][..bytes]);
                self.opened.start += bytes;
                return Ok(bytes);
            }
            if self.is_over {
                return Ok(0);
            }
            let bytes = self.open(into)?;
            if bytes > 0 {
                return Ok(bytes);
            }
            if self.opened.is_empty() && !self.is_over && self.take_in(stream)? == 0 {
                return Ok(0);
            }
        }
    }
}

impl Read for Channel {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match &mut self.tls {
            Some(tls) => tls.read(&mut self.stream, into),
            None => self.stream.read(into),
        }
    }
}

impl Write for Channel {
    /// What it takes is sealed, and may wait until [`Write::flush`] finds room in the socket.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            return self.stream.write(bytes);
        };
        tls.flush(&mut self.stream)?;
        let sealed = tls.end.send(bytes).map_err(failed)?;
        match tls.flush(&mut self.stream) {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
            _ => Ok(sealed),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.tls {
            Some(tls) => tls.flush(&mut self.stream),
            None => self.stream.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skerry_tls::config::ServerConfig;
    use skerry_tls::testing::{Fixture, Loaded};
    use std::net::TcpListener;
    use std::thread;

    /// Goal: bytes come back as they were sent, however records and reads are cut. Method: a server that sends everything back, in records of
    /// its own choice; reads of several sizes, smaller and larger than a record.
    #[test]
    fn what_is_written_comes_back() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let key = Loaded::new(&Fast, Fixture::P256);
            let identities = [key.identity()];
            let config = ServerConfig::new(&identities);
            let mut end = End::<Fast>::default();
            end.serve();
            let (mut input, mut filled, mut data) = (vec![0; 1 << 17], 0, vec![0; 1 << 15]);
            while let Ok(bytes @ 1..) = stream.read(&mut input[filled..]) {
                filled += bytes;
                loop {
                    let came = end.receive(&Fast, Config::Server(&config), &mut input[..filled], &mut data);
                    let came = came.unwrap();
                    input.copy_within(came.consumed..filled, 0);
                    filled -= came.consumed;
                    let mut rest = &data[..came.into];
                    while !rest.is_empty() {
                        rest = &rest[end.send(rest).unwrap()..];
                        stream.write_all(end.take_out()).unwrap();
                    }
                    stream.write_all(end.take_out()).unwrap();
                    if came.into == 0 {
                        break;
                    }
                }
            }
        });
        let target = Target { address, is_tls: true };
        let mut channel = Channel::connect(target).unwrap();
        assert!(channel.is_tls());
        let sent: Vec<u8> = (0..200_000_u32).map(|n| (n % 251) as u8).collect();
        for room in [1 << 15, 1000, 7] {
            let bytes = room * 5;
            channel.write_all(&sent[..bytes]).unwrap();
            channel.flush().unwrap();
            let mut came = vec![0; bytes];
            for part in came.chunks_mut(room) {
                channel.read_exact(part).unwrap();
            }
            assert_eq!(came, sent[..bytes]);
        }
    }
}
