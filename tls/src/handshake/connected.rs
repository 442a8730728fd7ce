//! After the handshake: key updates, tickets for a client, refused renegotiation.

use super::key_schedule::{next_traffic, traffic_keys};
use super::{Input, State, Turn, client13};
use crate::alert::Alert;
use crate::cause::Cause;
use crate::config::Config;
use crate::crypto::{HashAlgorithm, Provider, Secret};
use crate::message::{HandshakeType, KeyUpdate, Writer};
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
        let Input::Message(message) = input else {
            return Err(input.out_of_sequence(StateId::Connected));
        };
        let kind = HandshakeType::from_wire(message.kind);
        let next = match (self, kind) {
            (
                Self::Tls13 {
                    hash,
                    read,
                    write,
                    resumption,
                },
                Some(HandshakeType::KeyUpdate),
            ) => {
                let update = KeyUpdate::decode(message.body)?;
                let read = install_read(turn, hash, &read)?;
                // Answered at once: the next data may be long in coming.
                let write = if update.requested {
                    update_write(turn, hash, &write)?
                } else {
                    write
                };
                Self::Tls13 {
                    hash,
                    read,
                    write,
                    resumption,
                }
            }
            (
                Self::Tls13 {
                    hash,
                    read,
                    write,
                    resumption: Some(resumption),
                },
                Some(HandshakeType::NewSessionTicket),
            ) => {
                client13::ticket(turn, &resumption, message)?;
                Self::Tls13 {
                    hash,
                    read,
                    write,
                    resumption: Some(resumption),
                }
            }
            (Self::Tls12 { refused }, Some(kind)) if kind == begins_again(turn) => {
                if refused {
                    return Err(Cause::Renegotiation);
                }
                turn.flight.warn(Alert::NoRenegotiation)?;
                Self::Tls12 { refused: true }
            }
            _ => return Err(input.out_of_sequence(StateId::Connected)),
        };
        Ok(State::Connected(next))
    }

    /// A KeyUpdate of our own accord. TLS 1.2 has none: nothing is done.
    pub fn update<P: Provider>(self, turn: &mut Turn<'_, P>) -> Result<State<P>, Cause> {
        let next = match self {
            Self::Tls13 {
                hash,
                read,
                write,
                resumption,
            } => {
                let write = update_write(turn, hash, &write)?;
                Self::Tls13 {
                    hash,
                    read,
                    write,
                    resumption,
                }
            }
            same @ Self::Tls12 { .. } => same,
        };
        Ok(State::Connected(next))
    }
}

/// What asks for a second TLS 1.2 handshake: a client is asked by a HelloRequest, a server by a ClientHello.
const fn begins_again<P: Provider>(turn: &Turn<'_, P>) -> HandshakeType {
    match turn.config {
        Config::Client(_) => HandshakeType::HelloRequest,
        Config::Server(_) => HandshakeType::ClientHello,
    }
}

/// The keys after the present ones open what arrives.
fn install_read<P: Provider>(turn: &mut Turn<'_, P>, hash: HashAlgorithm, read: &Secret) -> Result<Secret, Cause> {
    let suite = turn.agreed.suite.ok_or(Cause::Internal)?;
    let next = next_traffic(turn.provider, hash, read)?;
    turn.read.install(traffic_keys(turn.provider, suite, &next)?);
    Ok(next)
}

/// Says that new keys follow, and turns them on (RFC 8446 §4.6.3). It asks for none in return: what the peer seals is the peer's to count.
fn update_write<P: Provider>(turn: &mut Turn<'_, P>, hash: HashAlgorithm, write: &Secret) -> Result<Secret, Cause> {
    let suite = turn.agreed.suite.ok_or(Cause::Internal)?;
    let update = KeyUpdate { requested: false };
    turn.flight.add(|spare| Writer::fill(spare, |w| update.encode(w)))?;
    let next = next_traffic(turn.provider, hash, write)?;
    turn.flight.install(traffic_keys(turn.provider, suite, &next)?)?;
    Ok(next)
}
