//! Opened bytes on their way out, and the last of them for references back.

use core::ops::ControlFlow;

use super::input::Input;
use super::{End, UnpackError};

/// As far back as encoders refer: LZ4 64 KiB, and a raw Snappy block of franz-go, which is a whole batch, as far as that is long.
pub(super) const WINDOW_BYTES: usize = 1024 * 1024;
/// Bytes that are shown at once.
const SHOW_BYTES: usize = 8 * 1024;

/// A ring of the last bytes.
pub(super) struct Window<'a> {
    ring: &'a mut [u8],
    sink: &'a mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    /// Bytes so far.
    at: usize,
    /// Bytes that were shown; never a ring's length behind.
    shown: usize,
    /// References do not go back before this.
    history: usize,
    bytes_max: u64,
}

impl<'a> Window<'a> {
    pub(super) fn new(ring: &'a mut [u8], sink: &'a mut dyn FnMut(&[u8]) -> ControlFlow<()>, bytes_max: u64) -> Self {
        Self {
            ring,
            sink,
            at: 0,
            shown: 0,
            history: 0,
            bytes_max,
        }
    }

    /// Bytes so far.
    pub(super) const fn bytes(&self) -> usize {
        self.at
    }

    /// What follows does not refer to what was before.
    pub(super) const fn forget(&mut self) {
        self.history = self.at;
    }

    /// Shows what has not been shown.
    pub(super) fn show(&mut self) -> Result<(), End> {
        let from = self.shown % WINDOW_BYTES;
        let bytes = self.ring.get(from..from + (self.at - self.shown)).unwrap_or_default();
        self.shown = self.at;
        if bytes.is_empty() {
            return Ok(());
        }
        match (self.sink)(bytes) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(End::Enough),
        }
    }

    /// How many bytes fit before the next [`Window::show`], at least 1: never past the ring's end.
    fn room(&mut self) -> Result<usize, End> {
        if self.at as u64 >= self.bytes_max {
            return Err(UnpackError::TooLarge.into());
        }
        if self.at - self.shown >= SHOW_BYTES || (self.at.is_multiple_of(WINDOW_BYTES) && self.at > self.shown) {
            self.show()?;
        }
        Ok((WINDOW_BYTES - self.at % WINDOW_BYTES).min(SHOW_BYTES - (self.at - self.shown)))
    }

    /// Adds bytes.
    pub(super) fn put(&mut self, mut bytes: &[u8]) -> Result<(), End> {
        while !bytes.is_empty() {
            let (now, rest) = bytes.split_at(self.room()?.min(bytes.len()));
            let to = self.at % WINDOW_BYTES;
            if let Some(place) = self.ring.get_mut(to..to + now.len()) {
                place.copy_from_slice(now);
            }
            self.at += now.len();
            bytes = rest;
        }
        Ok(())
    }

    /// Adds `bytes` bytes straight from the input.
    pub(super) fn put_from(&mut self, input: &mut Input<'_>, mut bytes: usize) -> Result<(), End> {
        while bytes > 0 {
            let piece = input.some(bytes)?;
            bytes -= piece.len();
            self.put(piece)?;
        }
        Ok(())
    }

    /// Adds `bytes` bytes again that stand `distance` back.
    pub(super) fn repeat(&mut self, distance: usize, mut bytes: usize) -> Result<(), End> {
        if distance == 0 || distance > WINDOW_BYTES || distance > self.at - self.history {
            return Err(UnpackError::Malformed.into());
        }
        while bytes > 0 {
            let from = (self.at - distance) % WINDOW_BYTES;
            let to = self.at % WINDOW_BYTES;
            // At most `distance` at once: what comes after are bytes that this very copy makes.
            let now = self.room()?.min(bytes).min(distance).min(WINDOW_BYTES - from);
            self.ring.copy_within(from..from + now, to);
            self.at += now;
            bytes -= now;
        }
        Ok(())
    }
}
