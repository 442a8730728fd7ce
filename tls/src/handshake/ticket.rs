//! Tickets that hold the whole session, sealed for ourselves (RFC 8446 §4.6.1, RFC 5077 §4).

use crate::crypto::Provider;

/// The keys that tickets are sealed under: one that seals, and one before it that still opens.
pub struct TicketKeys<P: Provider> {
    current: P::Aead,
    previous: Option<P::Aead>,
}
