//! The TLS 1.2 client (RFC 5246).

use core::marker::PhantomData;

use super::{Input, State, Turn};
use crate::cause::Cause;
use crate::crypto::Provider;
use crate::state::StateId;

/// The server's certificate is next.
pub struct AwaitServerCertificate<P: Provider> {
    provider: PhantomData<P>,
}

impl<P: Provider> AwaitServerCertificate<P> {
    /// Its name.
    pub const ID: StateId = StateId::AwaitServerCertificate12;

    /// What comes next, and where that leads.
    pub fn on(self, turn: &mut Turn<'_, P>, input: Input<'_>) -> Result<State<P>, Cause> {
        let _ = (turn, self.provider);
        Err(input.out_of_sequence(Self::ID))
    }
}

/// The server's share is next.
pub struct AwaitServerKeyExchange<P: Provider> {
    provider: PhantomData<P>,
}

impl<P: Provider> AwaitServerKeyExchange<P> {
    /// Its name.
    pub const ID: StateId = StateId::AwaitServerKeyExchange;

    /// What comes next, and where that leads.
    pub fn on(self, turn: &mut Turn<'_, P>, input: Input<'_>) -> Result<State<P>, Cause> {
        let _ = (turn, self.provider);
        Err(input.out_of_sequence(Self::ID))
    }
}

/// The end of the server's flight, or a request before it.
pub struct AwaitServerHelloDone<P: Provider> {
    provider: PhantomData<P>,
}

impl<P: Provider> AwaitServerHelloDone<P> {
    /// Its name.
    pub const ID: StateId = StateId::AwaitServerHelloDone;

    /// What comes next, and where that leads.
    pub fn on(self, turn: &mut Turn<'_, P>, input: Input<'_>) -> Result<State<P>, Cause> {
        let _ = (turn, self.provider);
        Err(input.out_of_sequence(Self::ID))
    }
}

/// The server promised a ticket.
pub struct AwaitNewSessionTicket<P: Provider> {
    provider: PhantomData<P>,
}

impl<P: Provider> AwaitNewSessionTicket<P> {
    /// Its name.
    pub const ID: StateId = StateId::AwaitNewSessionTicket;

    /// What comes next, and where that leads.
    pub fn on(self, turn: &mut Turn<'_, P>, input: Input<'_>) -> Result<State<P>, Cause> {
        let _ = (turn, self.provider);
        Err(input.out_of_sequence(Self::ID))
    }
}

/// The server turns its keys on.
pub struct AwaitServerChangeCipherSpec<P: Provider> {
    provider: PhantomData<P>,
}

impl<P: Provider> AwaitServerChangeCipherSpec<P> {
    /// Its name.
    pub const ID: StateId = StateId::AwaitServerChangeCipherSpec;

    /// What comes next, and where that leads.
    pub fn on(self, turn: &mut Turn<'_, P>, input: Input<'_>) -> Result<State<P>, Cause> {
        let _ = (turn, self.provider);
        Err(input.out_of_sequence(Self::ID))
    }
}

/// The server's Finished is next.
pub struct AwaitServerFinished<P: Provider> {
    provider: PhantomData<P>,
}

impl<P: Provider> AwaitServerFinished<P> {
    /// Its name.
    pub const ID: StateId = StateId::AwaitServerFinished12;

    /// What comes next, and where that leads.
    pub fn on(self, turn: &mut Turn<'_, P>, input: Input<'_>) -> Result<State<P>, Cause> {
        let _ = (turn, self.provider);
        Err(input.out_of_sequence(Self::ID))
    }
}
