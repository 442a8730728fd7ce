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
    listeners: Vec<TcpListener>,
    streams: Slab<OwnedFd>,
}

/// The longest list that the kernel takes in one call; what is beyond it is a short write.
const IOV_MAX: usize = 1024;

impl Sockets {
    pub(crate) fn new(listeners: Vec<TcpListener>, streams_max: u32, poll: &Poll) -> io::Result<Self> {
        for (index, listener) in listeners.iter().enumerate() {
            listener.set_nonblocking(true)?;
            poll.add(listener, Source::Listener(index as u16))?;
        }
        Ok(Self {
            listeners,
            streams: Slab::new(streams_max),
        })
    }

    pub(crate) fn local_addr(&self, listener: ListenerId) -> Option<SocketAddr> {
        self.listeners.get(usize::from(listener.0))?.local_addr().ok()
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
            match net::acceptfrom_with(listener, flags) {
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
        let addresses = || {
            Some((
                SocketAddr::try_from(peer?).ok()?,
                SocketAddr::try_from(net::getsockname(&fd).ok()?).ok()?,
            ))
        };
        let Some((peer, local)) = addresses() else {
            return Err(refused(Errno::CONNRESET));
        };
        // Replies are whole writes, so there is nothing for Nagle to gather. Either option can fail only on a broken connection, which the
        // first read will tell.
        let _ = net::sockopt::set_tcp_nodelay(&fd, true);
        let _ = net::sockopt::set_socket_keepalive(&fd, true);
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
