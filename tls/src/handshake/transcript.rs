//! The running hash over handshake messages (RFC 8446 §4.4.1).

use crate::crypto::Provider;

/// A hash of every message so far.
pub struct Transcript<P: Provider> {
    /// In the suite's hash.
    pub hash: P::Hash,
}
