//! What a transition sends: handshake messages gathered in plaintext, cut into records and sealed when keys change or the turn ends.

use crate::crypto::Provider;
use crate::record::WriteHalf;

/// The way out of a transition.
pub struct Flight<'a, P: Provider> {
    /// Keys of what leaves.
    pub write: &'a mut WriteHalf<P>,
    /// Handshake messages not yet sealed.
    pub pending: &'a mut [u8],
    /// How many bytes of it.
    pub pending_bytes: usize,
    /// Whole records, ready to be sent.
    pub out: &'a mut [u8],
    /// How many bytes of it.
    pub out_bytes: usize,
}
