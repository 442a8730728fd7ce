//! The marks on work that ends later: whose completion is it?

use skerry_net::host::Token;

use crate::ids::ConnId;

/// Loads of log bytes carry this bit; the flusher's marks carry the one above it.
const LOAD: u64 = 1 << 62;
const GENERATION: u64 = (1 << 30) - 1;

/// The mark of a load that `conn` waits for.
#[must_use]
pub const fn load(conn: ConnId) -> Token {
    Token(LOAD | ((conn.generation() as u64 & GENERATION) << 32) | conn.index() as u64)
}

/// The slot that a load's mark names, when it is a load's; compare [`load`] of the connection there now to know whether it is
/// still the same.
#[must_use]
pub const fn slot_of_load(token: Token) -> Option<usize> {
    if token.0 >> 62 == 1 {
        Some((token.0 & 0xffff_ffff) as usize)
    } else {
        None
    }
}
