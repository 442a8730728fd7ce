//! Transports out of `embedded-io` drivers.

use embedded_io::{Read, ReadReady, Write, WriteReady};

use super::{Lost, Transport};

/// A transport over a driver that can say whether it is ready: its reads and writes are only called when they will not wait.
///
/// ```
/// # use std::convert::Infallible;
/// use skerry_core::client::{Io, Transport};
/// # struct Uart(Vec<u8>);
/// # impl embedded_io::ErrorType for Uart { type Error = Infallible; }
/// # impl embedded_io::Read for Uart {
/// #     fn read(&mut self, out: &mut [u8]) -> Result<usize, Infallible> { out[0] = self.0.remove(0); Ok(1) }
/// # }
/// # impl embedded_io::ReadReady for Uart { fn read_ready(&mut self) -> Result<bool, Infallible> { Ok(!self.0.is_empty()) } }
/// # impl embedded_io::Write for Uart {
/// #     fn write(&mut self, bytes: &[u8]) -> Result<usize, Infallible> { self.0.extend(bytes); Ok(bytes.len()) }
/// #     fn flush(&mut self) -> Result<(), Infallible> { Ok(()) }
/// # }
/// # impl embedded_io::WriteReady for Uart { fn write_ready(&mut self) -> Result<bool, Infallible> { Ok(true) } }
/// # let uart = Uart(Vec::new()); // Its ends are connected to each other.
/// let mut transport = Io(uart);
/// let mut byte = [0];
/// assert_eq!(transport.receive(&mut byte), Err(nb::Error::WouldBlock));
/// assert_eq!(transport.send(b"x"), Ok(1));
/// assert_eq!(transport.receive(&mut byte), Ok(1));
/// ```
#[derive(Debug)]
pub struct Io<D>(pub D);

impl<D: Read + ReadReady + Write + WriteReady> Transport for Io<D> {
    fn send(&mut self, bytes: &[u8]) -> nb::Result<usize, Lost> {
        if !self.0.write_ready().map_err(|_| Lost)? {
            return Err(nb::Error::WouldBlock);
        }
        match self.0.write(bytes) {
            Ok(0) | Err(_) => Err(nb::Error::Other(Lost)),
            Ok(taken) => Ok(taken),
        }
    }

    fn receive(&mut self, out: &mut [u8]) -> nb::Result<usize, Lost> {
        if !self.0.read_ready().map_err(|_| Lost)? {
            return Err(nb::Error::WouldBlock);
        }
        self.0.read(out).map_err(|_| nb::Error::Other(Lost))
    }
}
