//! Non-blocking listeners and streams.

use core::net::SocketAddr;
use std::io::{self, IoSlice};
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::{Errno, retry_on_intr};
use rustix::net::{self, AddressFamily, RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, SocketFlags, SocketType};

use crate::host::{Accepted, ListenerId, NetError, StreamId};
use crate::poll::{Poll, Source};
use crate::slab::Slab;

/// Listeners, and streams in slots.
///
/// When full (slots, or descriptors of the process): [`Sockets::accept`] answers [`NetError::Exhausted`] and leaves the connection in the
/// kernel's backlog, which is bounded too, so clients wait rather than fail. A listener's event is not said again for those that
/// wait: the caller remembers the listener and accepts again after its next close.
#[derive(Debug)]
pub(crate) struct Sockets {
    listeners: Vec<Listener>,
    streams: Slab<OwnedFd>,
}

#[derive(Debug)]
struct Listener {
    socket: TcpListener,
    /// Where all its connections come to; `None` when it is bound to every address of the machine.
    local: Option<SocketAddr>,
}

impl Listener {
    /// Its connections inherit its options (tcp(7), socket(7)), which saves each two system calls. Replies are whole writes, so there is
    /// nothing for Nagle to gather.
    fn new(socket: TcpListener) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        net::sockopt::set_tcp_nodelay(&socket, true)?;
        net::sockopt::set_socket_keepalive(&socket, true)?;
        let local = socket.local_addr()?;
        Ok(Self {
            socket,
            local: (!local.ip().to_canonical().is_unspecified()).then_some(local),
        })
    }

    /// Where one of its connections came to.
    fn local(&self, connection: &OwnedFd) -> Option<SocketAddr> {
        self.local
            .or_else(|| net::getsockname(connection).ok()?.try_into().ok())
    }
}

/// The longest list that the kernel takes in one call; what is beyond it is a short write.
const IOV_MAX: usize = 1024;

impl Sockets {
    pub(crate) fn new(listeners: Vec<TcpListener>, streams_max: u32, poll: &Poll) -> io::Result<Self> {
        let listeners: Vec<_> = listeners.into_iter().map(Listener::new).collect::<Result<_, _>>()?;
        for (index, listener) in listeners.iter().enumerate() {
            poll.add(&listener.socket, Source::Listener(index as u16))?;
        }
        Ok(Self {
            listeners,
            streams: Slab::new(streams_max),
        })
    }

    pub(crate) fn local_addr(&self, listener: ListenerId) -> Option<SocketAddr> {
        self.listeners.get(usize::from(listener.0))?.socket.local_addr().ok()
    }

    pub(crate) fn streams(&self) -> usize {
        self.streams.len()
    }

    pub(crate) fn accept(&mut self, listener: ListenerId, poll: &Poll) -> nb::Result<Accepted, NetError> {
        let Some(listener) = self.listeners.get(usize::from(listener.0)) else {
            return Err(refused(Errno::BADF));
        };
        if self.streams.is_full() {
            return Err(nb::Error::Other(NetError::Exhausted));
        }
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let (fd, peer) = loop {
            match net::acceptfrom_with(&listener.socket, flags) {
                Ok(accepted) => break accepted,
                // The connection broke while it waited (accept(2) lists the errors); it is gone, the next may be well.
                Err(
                    Errno::INTR
                    | Errno::CONNABORTED
                    | Errno::PROTO
                    | Errno::NETDOWN
                    | Errno::NETUNREACH
                    | Errno::HOSTDOWN
                    | Errno::HOSTUNREACH
                    | Errno::NONET
                    | Errno::NOPROTOOPT,
                ) => {}
                Err(error) => return Err(refused(error)),
            }
        };
        let peer = peer.and_then(|peer| SocketAddr::try_from(peer).ok());
        let (Some(peer), Some(local)) = (peer, listener.local(&fd)) else {
            return Err(refused(Errno::CONNRESET));
        };
        let index = self
            .streams
            .insert(fd)
            .map_err(|_| nb::Error::Other(NetError::Exhausted))?;
        let added = self
            .streams
            .get(index)
            .map_or(Err(Errno::BADF), |fd| poll.add(fd, Source::Stream(index)));
        if let Err(error) = added {
            self.streams.remove(index);
            return Err(refused(error));
        }
        Ok(Accepted {
            stream: StreamId(index),
            peer,
            local,
        })
    }

    pub(crate) fn read(&mut self, stream: StreamId, buf: &mut [u8]) -> nb::Result<usize, NetError> {
        let fd = self.fd(stream)?;
        let (bytes, _) = retry_on_intr(|| net::recv(fd, &mut *buf, RecvFlags::empty())).map_err(refused)?;
        Ok(bytes)
    }

    pub(crate) fn write(&mut self, stream: StreamId, bufs: &[IoSlice<'_>], more: bool) -> nb::Result<usize, NetError> {
        let fd = self.fd(stream)?;
        let bufs = bufs.get(..IOV_MAX).unwrap_or(bufs);
        let mut flags = SendFlags::NOSIGNAL;
        flags.set(SendFlags::MORE, more);
        let mut nothing = SendAncillaryBuffer::default();
        retry_on_intr(|| net::sendmsg(fd, bufs, &mut nothing, flags)).map_err(refused)
    }

    pub(crate) fn shutdown(&mut self, stream: StreamId) {
        if let Ok(fd) = self.fd(stream) {
            let _ = net::shutdown(fd, Shutdown::Write);
        }
    }

    pub(crate) fn close(&mut self, stream: StreamId) {
        self.streams.remove(stream.0);
    }

    pub(crate) fn fd(&self, stream: StreamId) -> nb::Result<&OwnedFd, NetError> {
        self.streams.get(stream.0).ok_or(refused(Errno::BADF))
    }
}

/// A listening socket on `address`, which may have port 0. The address may be used again at once after the last broker's end.
pub(crate) fn listen(address: SocketAddr, backlog: i32) -> io::Result<TcpListener> {
    let family = if address.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    let fd = net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    net::sockopt::set_socket_reuseaddr(&fd, true)?;
    net::bind(&fd, &address)?;
    net::listen(fd.as_fd(), backlog)?;
    Ok(TcpListener::from(fd))
}

/// What an error of a socket call means to its caller.
pub(crate) fn refused(error: Errno) -> nb::Error<NetError> {
    nb::Error::Other(match error {
        Errno::AGAIN => return nb::Error::WouldBlock,
        Errno::CONNRESET
        | Errno::PIPE
        | Errno::CONNABORTED
        | Errno::NOTCONN
        | Errno::TIMEDOUT
        | Errno::NETUNREACH
        | Errno::HOSTUNREACH => NetError::Reset,
        // `ENOSPC`: the user's limit of epoll watches.
        Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS | Errno::NOSPC => NetError::Exhausted,
        error => NetError::Os(error.raw_os_error()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_accepted_has_its_options_and_knows_where_it_came_to() {
        for bound in ["127.0.0.1:0", "0.0.0.0:0", "[::]:0"] {
            let socket = TcpListener::bind(bound).unwrap();
            let address = ("127.0.0.1", socket.local_addr().unwrap().port());
            let poll = Poll::new().unwrap();
            let mut sockets = Sockets::new(vec![socket], 1, &poll).unwrap();
            let client = std::net::TcpStream::connect(address).unwrap();
            let accepted = sockets.accept(ListenerId(0), &poll).unwrap();
            let fd = sockets.fd(accepted.stream).unwrap();
            assert!(net::sockopt::tcp_nodelay(fd).unwrap(), "{bound}");
            assert!(net::sockopt::socket_keepalive(fd).unwrap(), "{bound}");
            let (peer, local) = (accepted.peer, accepted.local);
            assert_eq!((peer.ip().to_canonical(), peer.port()), {
                let own = client.local_addr().unwrap();
                (own.ip(), own.port())
            });
            assert_eq!((local.ip().to_canonical(), local.port()), {
                let to = client.peer_addr().unwrap();
                (to.ip(), to.port())
            });
        }
    }
}
