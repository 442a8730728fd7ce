//! What one handshake leaves for its log line and the metrics. The caller keeps it beside the buffers and drops it with them.

use crate::meter::Cost;
use crate::trail::Trail;

/// Entries that are kept of each list in a hello. When full: the rest is left out of the log; negotiation sees all.
pub const OFFERED_MAX: usize = 24;

/// What a peer's hello offered, as numbers on the wire, GREASE (RFC 8701) included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offered {
    /// Versions of `supported_versions`, or the one of the hello itself.
    pub versions: heapless::Vec<u16, 8>,
    /// Cipher suites.
    pub suites: heapless::Vec<u16, OFFERED_MAX>,
    /// Groups.
    pub groups: heapless::Vec<u16, OFFERED_MAX>,
    /// Signature schemes.
    pub schemes: heapless::Vec<u16, OFFERED_MAX>,
    /// Whether an earlier session was to be resumed: by a ticket, or by a pre-shared key.
    pub resumption: bool,
}

/// The longest certificate that is kept of a refusal; none where there is no server, for devices have no log to name it in. When full: a
/// longer one is not named in the log.
pub const REFUSED_BYTES_MAX: usize = if cfg!(feature = "server") { 2048 } else { 0 };

/// Trail, cost and offer of one handshake.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// Which state followed which.
    pub trail: Trail,
    /// What it cost by phase.
    pub cost: Cost,
    /// What the peer offered.
    pub offered: Offered,
    /// The peer's certificate at fault, DER, when one was refused.
    pub refused: heapless::Vec<u8, REFUSED_BYTES_MAX>,
}
