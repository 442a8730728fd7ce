//! A plain blocking client for tests over real sockets: one call after another, or pipelined.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use skerry_core::api::Call;

use crate::process::PATIENCE;
use crate::wire;

/// One connection to a broker.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    next_id: i32,
}

/// A reply as it came, without its length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame(pub Vec<u8>);

impl Client {
    /// Connects. Panics when nobody listens.
    #[must_use]
    pub fn connect(address: SocketAddr) -> Self {
        Self::try_connect(address).expect("a broker listens")
    }

    /// Connects.
    ///
    /// Errors: those of the socket.
    pub fn try_connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream, next_id: 0 })
    }

    /// The socket, for what no client should do.
    #[must_use]
    pub const fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    /// Sends a request; its correlation id.
    ///
    /// Errors: those of the socket.
    pub fn send<'a, C: Call<'a>>(&mut self, version: i16, call: &C) -> io::Result<i32> {
        self.next_id = self.next_id.wrapping_add(1);
        self.stream.write_all(&wire::request(call, version, self.next_id))?;
        Ok(self.next_id)
    }

    /// The next reply as it comes. `None` when the broker has closed the connection (or reset it) between two replies.
    ///
    /// Errors: those of the socket, and `UnexpectedEof` within a reply.
    pub fn receive(&mut self) -> io::Result<Option<Frame>> {
        let mut length = [0; 4];
        match self.stream.read(&mut length) {
            Ok(0) => return Ok(None),
            Ok(n) => self.stream.read_exact(&mut length[n..])?,
            Err(e) if e.kind() == ErrorKind::ConnectionReset => return Ok(None),
            Err(e) => return Err(e),
        }
        let mut frame = vec![0; u32::from_be_bytes(length) as usize];
        self.stream.read_exact(&mut frame)?;
        Ok(Some(Frame(frame)))
    }

    /// Sends a request and waits for its reply, which must be the next one.
    ///
    /// Errors: those of the socket; `ConnectionAborted` when the broker closed instead.
    pub fn try_call<'a, C: Call<'a>>(&mut self, version: i16, call: &C) -> io::Result<Frame> {
        let id = self.send(version, call)?;
        let frame = self.receive()?.ok_or(ErrorKind::ConnectionAborted)?;
        assert_eq!(
            wire::correlation_id(&frame.0),
            id,
            "replies come in the order of their requests"
        );
        Ok(frame)
    }

    /// As [`try_call`](Self::try_call), and panics on its errors. Decode the frame with [`reply`].
    #[must_use]
    pub fn call<'a, C: Call<'a>>(&mut self, version: i16, call: &C) -> Frame {
        self.try_call(version, call)
            .unwrap_or_else(|e| panic!("{:?} version {version}: {e}", C::KEY))
    }

    /// Says that no more requests come.
    pub fn end(&self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }
}

/// The reply to a request of type `C` in this frame.
#[must_use]
pub fn reply<'r, C: Call<'r>>(version: i16, frame: &'r Frame) -> C::Response<'r> {
    wire::reply(C::KEY, version, &frame.0)
}
