//! Transports out of `embedded-nal` TCP stacks.

use embedded_nal::TcpClientStack;

use super::{Lost, Transport};

/// A connected socket with its stack, for the length of one call: `producer.poll(now, &mut Socket { stack, socket })`.
#[derive(Debug)]
pub struct Socket<'a, S: TcpClientStack> {
    /// The stack.
    pub stack: &'a mut S,
    /// A socket of it, connected.
    pub socket: &'a mut S::TcpSocket,
}

impl<S: TcpClientStack> Transport for Socket<'_, S> {
    fn send(&mut self, bytes: &[u8]) -> nb::Result<usize, Lost> {
        self.stack.send(self.socket, bytes).map_err(|error| error.map(|_| Lost))
    }

    fn receive(&mut self, out: &mut [u8]) -> nb::Result<usize, Lost> {
        self.stack
            .receive(self.socket, out)
            .map_err(|error| error.map(|_| Lost))
    }
}
