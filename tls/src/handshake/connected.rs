//! After the handshake: key updates, tickets for a client, refused renegotiation.

use super::{Input, State, Turn};
use crate::cause::Cause;
use crate::crypto::{HashAlgorithm, Provider, Secret};
use crate::state::StateId;

/// Application data flows.
#[derive(Debug)]
pub enum Connected {
    /// TLS 1.3.
    Tls13 {
        /// The suite's hash.
        hash: HashAlgorithm,
        /// The secret that what arrives is protected under.
        read: Secret,
        /// The secret that what leaves is protected under.
        write: Secret,
        /// Client: the resumption master secret, for tickets that come. A server has no use for it any more.
        resumption: Option<Secret>,
    },
    /// TLS 1.2: keys stay what they are.
    Tls12 {
        /// Whether a second handshake was refused once already.
        refused: bool,
    },
}

impl Connected {
    /// A message after the handshake.
    pub fn on<P: Provider>(self, turn: &mut Turn<'_, P>, input: Input<'_>) -> Result<State<P>, Cause> {
        let _ = (turn, self);
        Err(input.out_of_sequence(StateId::Connected))
    }
}
