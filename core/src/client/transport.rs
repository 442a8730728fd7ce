//! What carries the bytes.

/// A byte stream that never waits: a socket, a UART, or TLS over either.
///
/// What [`send`](Self::send) has taken goes out by later calls of either verb; the caller of a machine passes the same transport
/// to each call, and a fresh one after it has connected again.
pub trait Transport {
    /// Takes some of `bytes`, which are never empty; how many, at least 1.
    ///
    /// Errors: `WouldBlock` when there is no room now; [`Lost`] when the connection is gone for good.
    fn send(&mut self, bytes: &[u8]) -> nb::Result<usize, Lost>;

    /// Puts some bytes from the peer into `out`, which is never empty; how many. 0 says that the peer has closed.
    ///
    /// Errors: `WouldBlock` when there are none now; [`Lost`] when the connection is gone for good.
    fn receive(&mut self, out: &mut [u8]) -> nb::Result<usize, Lost>;
}

/// The connection is gone: closed, reset, or refused by what protects it. Why is the transport's to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Lost;

impl core::fmt::Display for Lost {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the connection is gone")
    }
}

impl core::error::Error for Lost {}

impl<T: Transport + ?Sized> Transport for &mut T {
    fn send(&mut self, bytes: &[u8]) -> nb::Result<usize, Lost> {
        (**self).send(bytes)
    }

    fn receive(&mut self, out: &mut [u8]) -> nb::Result<usize, Lost> {
        (**self).receive(out)
    }
}
