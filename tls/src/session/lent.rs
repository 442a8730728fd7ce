//! What a caller lends to a session for one call.

use core::mem;

use skerry_core::meter::Ticks;
use skerry_core::time::Timestamp;

use crate::cause::Cause;
use crate::config::Config;
use crate::crypto::{Provider, Random};
use crate::message::{HEADER_BYTES, HandshakeType};
use crate::notes::Notes;
use crate::saved::Keep;

/// Room for whole records that are to be sent: the caller's bytes and the caller's count of them.
pub struct Out<'a> {
    bytes: &'a mut [u8],
    filled: &'a mut usize,
}

impl<'a> Out<'a> {
    /// Records are added to `bytes` after the first `filled`.
    #[must_use]
    pub const fn new(bytes: &'a mut [u8], filled: &'a mut usize) -> Self {
        Self { bytes, filled }
    }

    /// What waits to be sent.
    #[must_use]
    pub fn filled(&self) -> &[u8] {
        self.bytes.get(..*self.filled).unwrap_or_default()
    }

    /// The room that is left.
    pub fn spare(&mut self) -> &mut [u8] {
        self.bytes.get_mut(*self.filled..).unwrap_or_default()
    }

    /// The first `bytes` of [`Out::spare`] are a record now.
    pub fn commit(&mut self, bytes: usize) {
        *self.filled = self.filled.saturating_add(bytes).min(self.bytes.len());
    }

    /// The same, lent on.
    pub const fn lend(&mut self) -> Out<'_> {
        Out {
            bytes: self.bytes,
            filled: self.filled,
        }
    }
}

/// Room for one handshake message that comes in pieces: the caller's bytes and the caller's count of what has come. The size of the slice is
/// the bound on a message. When the count is zero the bytes may be taken away; after [`Event::Connected`](super::Event::Connected) eight are enough for a server.
pub struct Reassembly<'a> {
    bytes: &'a mut [u8],
    filled: &'a mut usize,
}

impl<'a> Reassembly<'a> {
    /// The first `filled` of `bytes` have come.
    #[must_use]
    pub const fn new(bytes: &'a mut [u8], filled: &'a mut usize) -> Self {
        Self { bytes, filled }
    }

    /// How much of a message has come.
    #[must_use]
    pub const fn filled(&self) -> usize {
        *self.filled
    }

    /// How many bytes more the message wants: of its header first, then of what that claims.
    ///
    /// When full: as soon as the header claims more than there is room for, what [`too_long`] says.
    pub(super) fn wanted(&self) -> Result<usize, Cause> {
        let come = self.bytes.get(..*self.filled).ok_or(Cause::Internal)?;
        let (bytes, too_long) = match come.first_chunk() {
            Some(&[kind, a, b, c]) => (HEADER_BYTES + u32::from_be_bytes([0, a, b, c]) as usize, too_long(kind)),
            None => (HEADER_BYTES, Cause::HandshakeTooLong),
        };
        if bytes > self.bytes.len() {
            return Err(too_long);
        }
        bytes.checked_sub(come.len()).ok_or(Cause::Internal)
    }

    /// Adds what came.
    ///
    /// When full: [`Cause::HandshakeTooLong`].
    pub(super) fn push(&mut self, more: &[u8]) -> Result<(), Cause> {
        let room = self.bytes.get_mut(*self.filled..).ok_or(Cause::Internal)?;
        room.get_mut(..more.len())
            .ok_or(Cause::HandshakeTooLong)?
            .copy_from_slice(more);
        *self.filled += more.len();
        Ok(())
    }

    /// Takes the buffer out, so that a message in it can be shown to a machine that is lent everything else; [`Reassembly::restore`] puts it
    /// back, empty.
    pub(super) fn take(&mut self) -> (&'a mut [u8], usize) {
        (mem::take(&mut self.bytes), mem::take(self.filled))
    }

    /// See [`Reassembly::take`].
    pub(super) fn restore(&mut self, bytes: &'a mut [u8]) {
        self.bytes = bytes;
    }
}

/// What a message is that claims more than any buffer here: longer than we take, or, where the type has a length of its own, malformed.
pub(super) const fn too_long(kind: u8) -> Cause {
    match HandshakeType::from_wire(kind) {
        Some(
            HandshakeType::HelloRequest
            | HandshakeType::EndOfEarlyData
            | HandshakeType::ServerHelloDone
            | HandshakeType::ClientKeyExchange
            | HandshakeType::Finished
            | HandshakeType::KeyUpdate,
        ) => Cause::Decode(kind),
        _ => Cause::HandshakeTooLong,
    }
}

/// What a caller lends for one call. Nothing of it is kept.
pub struct Context<'c, P: Provider> {
    /// The primitives.
    pub provider: &'c P,
    /// Randomness.
    pub random: &'c mut dyn Random,
    /// Wall-clock time.
    pub now: Timestamp,
    /// The tick counter that costs are taken from.
    pub ticks: &'c dyn Fn() -> Ticks,
    /// What this side has and allows.
    pub config: Config<'c, P>,
    /// The handshake message under way.
    pub message: Reassembly<'c>,
    /// Plaintext of our flight before it is sealed: as long as our longest flight.
    pub scratch: &'c mut [u8],
    /// Records to be sent: room for our longest flight and for an alert after it.
    pub out: Out<'c>,
    /// Trail, cost and offer, for the log line.
    pub notes: &'c mut Notes,
    /// Client: where sessions go that can be resumed. A server leaves it `None`.
    pub keep: Option<&'c mut dyn Keep>,
}
