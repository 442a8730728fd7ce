//! The handshake machines: one file per role and version. States are types that consume themselves; a [`Turn`] is what a transition
//! works with, and the flight that it writes leaves through [`Flight`].

mod flight;
mod transcript;

pub use flight::Flight;
pub use transcript::Transcript;

use skerry_core::time::Timestamp;

use crate::crypto::{Provider, Random};
use crate::meter::Meter;
use crate::record::ReadHalf;

/// One handshake message as it stands in the reassembly buffer.
#[derive(Clone, Copy, Debug)]
pub struct Message<'m> {
    /// Its type on the wire.
    pub kind: u8,
    /// Its body.
    pub body: &'m [u8],
    /// Header and body: what the transcript takes.
    pub raw: &'m [u8],
}

/// What comes to a machine.
#[derive(Clone, Copy, Debug)]
pub enum Input<'m> {
    /// A whole handshake message.
    Message(Message<'m>),
    /// A change_cipher_spec that has a meaning (TLS 1.2).
    ChangeCipherSpec,
}

/// What a transition works with. Lent for one call.
pub struct Turn<'a, P: Provider> {
    /// The primitives.
    pub provider: &'a P,
    /// Randomness.
    pub random: &'a mut dyn Random,
    /// Wall-clock time, for certificates and tickets.
    pub now: Timestamp,
    /// Who did what for how long.
    pub meter: &'a mut Meter<'a>,
    /// What leaves.
    pub flight: Flight<'a, P>,
    /// What arrives from the next record on.
    pub read: &'a mut ReadHalf<P>,
}
