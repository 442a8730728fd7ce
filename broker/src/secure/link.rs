//! One connection's TLS: its session, and where its bytes lie in the buffers that it leases.

use core::ops::Range;

use skerry_core::time::Instant;
use skerry_net::pool::PairLease;
use skerry_tls::session::Session;

use super::handshakes::PlaceLease;
use super::settings::Chosen;

/// Bytes for a handshake message after the handshake: a client sends nothing longer than a KeyUpdate.
pub const UPDATE_BYTES: usize = 8;

/// One connection's TLS.
pub struct Link {
    /// The engine.
    pub session: Session<Chosen>,
    /// Which of the settings are its listener's.
    pub listener: usize,
    /// Its record buffers, while bytes are under way.
    pub records: Option<PairLease>,
    /// Its place, while it shakes hands.
    pub place: Option<PlaceLease>,
    /// What has arrived and is not opened, in the receive buffer.
    pub arrived: Range<usize>,
    /// What was opened there and not taken.
    pub opened: Range<usize>,
    /// Sealed bytes that have not left, in the send buffer.
    pub sealed: Range<usize>,
    /// A handshake message after the handshake, while it comes.
    pub update: [u8; UPDATE_BYTES],
    /// How much of it has come.
    pub update_filled: usize,
    /// Whether more can come of what has arrived already.
    pub more: bool,
    /// When the handshake last went on.
    pub progress: Instant,
}

impl Link {
    /// Nothing has come yet.
    pub fn new(listener: usize, now: Instant) -> Self {
        Self {
            session: Session::server(),
            listener,
            records: None,
            place: None,
            arrived: 0..0,
            opened: 0..0,
            sealed: 0..0,
            update: [0; UPDATE_BYTES],
            update_filled: 0,
            more: false,
            progress: now,
        }
    }

    /// Whether its record buffers hold nothing.
    pub fn is_empty(&self) -> bool {
        self.arrived.is_empty() && self.opened.is_empty() && self.sealed.is_empty()
    }

    /// Moves what has arrived to the front of `receive`, when nothing opened lies before it.
    pub fn settle(&mut self, receive: &mut [u8]) {
        if self.opened.is_empty() && self.arrived.start > 0 {
            receive.copy_within(self.arrived.clone(), 0);
            self.arrived = 0..self.arrived.len();
        }
    }
}
