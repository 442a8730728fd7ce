//! The handshake machines: one file per role and version. States are types that consume themselves; a [`Turn`] is what a transition
//! works with, and the flight that it writes leaves through [`Flight`].

mod agreed;
pub mod client12;
pub mod client13;
mod client_hello;
mod connected;
mod flight;
mod hello;
pub mod key_schedule;
mod machine;
mod moves;
pub mod prf;
pub mod proof;
mod second_hello;
pub mod server12;
pub mod server13;
mod ticket;
mod transcript;

pub use agreed::{Agreed, NAME_BYTES_MAX};
pub use flight::Flight;
pub(crate) use flight::seal_alert;
pub use hello::AwaitClientHello;
pub use machine::State;
pub use moves::{MOVES, Move, is_legal};
pub use ticket::{TICKET_BYTES_MAX, TicketKeys};
pub use transcript::Transcript;

use skerry_core::time::Timestamp;

use crate::cause::{Cause, Met};
use crate::certificate::{Role, ServerName, Verified, Verifier};
use crate::config::{ClientConfig, Config, ServerConfig};
use crate::crypto::{Provider, Random};
use crate::meter::{Meter, Phase};
use crate::notes::{Offered, REFUSED_BYTES_MAX};
use crate::record::{ReadHalf, SizeLimits, TrafficKeys};
use crate::saved::Keep;
use crate::state::StateId;

/// Early data that is skipped, in bytes of record fragments. When full: [`Cause::TooMuchEarlyData`].
pub const EARLY_DATA_BYTES_MAX: u32 = 1 << 14;

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

impl<'m> Input<'m> {
    /// The message, if it is one of type `kind`.
    ///
    /// Errors: [`Cause::OutOfSequence`] for anything else, met in `state`.
    pub fn expect(self, kind: u8, state: StateId) -> Result<Message<'m>, Cause> {
        match self {
            Self::Message(message) if message.kind == kind => Ok(message),
            other => Err(other.out_of_sequence(state)),
        }
    }

    /// That it has no place in `state`.
    #[must_use]
    pub const fn out_of_sequence(self, state: StateId) -> Cause {
        let met = match self {
            Self::Message(message) => Met::Handshake(message.kind),
            Self::ChangeCipherSpec => Met::Record(20),
        };
        Cause::OutOfSequence { state, met }
    }
}

/// What opens arriving records, as a transition sees it.
pub struct Arrivals<'a, P: Provider> {
    half: &'a mut ReadHalf<P>,
    changed: bool,
}

impl<'a, P: Provider> Arrivals<'a, P> {
    pub(crate) const fn new(half: &'a mut ReadHalf<P>) -> Self {
        Self { half, changed: false }
    }

    /// From the next record on these keys open. The message under way must end its record (RFC 8446 §5.1): the session sees to that.
    pub fn install(&mut self, keys: TrafficKeys<P>) {
        self.half.install(keys);
        self.changed = true;
    }

    /// What we told the peer that it may send.
    pub fn limit(&mut self, limits: SizeLimits) {
        self.half.limit(limits);
    }

    /// See [`ReadHalf::allow_plain_alert`].
    pub fn allow_plain_alert(&mut self) {
        self.half.allow_plain_alert();
    }

    /// Whether keys were installed.
    pub(crate) const fn changed(&self) -> bool {
        self.changed
    }
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
    pub meter: Meter<'a>,
    /// What this side has and allows.
    pub config: Config<'a, P>,
    /// What leaves.
    pub flight: Flight<'a, P>,
    /// What arrives from the next record on.
    pub read: Arrivals<'a, P>,
    /// What is settled so far.
    pub agreed: &'a mut Agreed,
    /// What the peer offered, for the log.
    pub offered: &'a mut Offered,
    /// The peer's certificate at fault, for the log.
    pub refused: &'a mut heapless::Vec<u8, REFUSED_BYTES_MAX>,
    /// Bytes of early data that are skipped before records must open (RFC 8446 §4.2.10); zero: none was announced.
    pub early_data_left: &'a mut u32,
    /// Client: where sessions go that can be resumed.
    pub keep: Option<&'a mut dyn Keep>,
}

impl<'a, P: Provider> Turn<'a, P> {
    /// Checks the peer's chain, and keeps the certificate at fault of one that is refused.
    pub fn verify(
        &mut self,
        verifier: &dyn Verifier,
        chain: &[&[u8]],
        role: Role,
        name: Option<ServerName<'_>>,
    ) -> Result<Verified, Cause> {
        let verified = verifier.verify(chain, role, name, self.now);
        self.meter.charge(Phase::Verify);
        verified.map_err(|refused| {
            self.refused.clear();
            if let Some(certificate) = chain.get(usize::from(refused.index)) {
                let _ = self.refused.extend_from_slice(certificate);
            }
            refused.cause
        })
    }

    /// The server's configuration.
    ///
    /// Errors: [`Cause::Internal`] when the caller lent a client's.
    pub const fn server(&self) -> Result<&'a ServerConfig<'a, P>, Cause> {
        match self.config {
            Config::Server(config) => Ok(config),
            Config::Client(_) => Err(Cause::Internal),
        }
    }

    /// The client's configuration.
    ///
    /// Errors: [`Cause::Internal`] when the caller lent a server's.
    pub const fn client(&self) -> Result<&'a ClientConfig<'a, P>, Cause> {
        match self.config {
            Config::Client(config) => Ok(config),
            Config::Server(_) => Err(Cause::Internal),
        }
    }
}
