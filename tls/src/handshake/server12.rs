//! The TLS 1.2 server (RFC 5246): full handshakes by ECDHE and resumption by ticket.

use core::marker::PhantomData;

use super::{Input, Message, State, Turn};
use crate::cause::Cause;
use crate::crypto::Provider;
use crate::message::ClientHello;
use crate::state::StateId;

/// Takes a first hello.
pub(super) fn begin<P: Provider>(
    turn: &mut Turn<'_, P>,
    hello: &ClientHello<'_>,
    message: Message<'_>,
) -> Result<State<P>, Cause> {
    let _ = (turn, hello);
    Err(Input::Message(message).out_of_sequence(StateId::AwaitClientHello))
}

/// Our flight was sent, a certificate was asked for.
pub struct AwaitClientCertificate<P: Provider> {
    provider: PhantomData<P>,
}

impl<P: Provider> AwaitClientCertificate<P> {
    /// Its name.
    pub const ID: StateId = StateId::AwaitClientCertificate12;

    /// What comes next, and where that leads.
    pub fn on(self, turn: &mut Turn<'_, P>, input: Input<'_>) -> Result<State<P>, Cause> {
        let _ = (turn, self.provider);
        Err(input.out_of_sequence(Self::ID))
    }
}

/// The client's share is next.
pub struct AwaitClientKeyExchange<P: Provider> {
    provider: PhantomData<P>,
}

impl<P: Provider> AwaitClientKeyExchange<P> {
    /// Its name.
    pub const ID: StateId = StateId::AwaitClientKeyExchange;

    /// What comes next, and where that leads.
    pub fn on(self, turn: &mut Turn<'_, P>, input: Input<'_>) -> Result<State<P>, Cause> {
        let _ = (turn, self.provider);
        Err(input.out_of_sequence(Self::ID))
    }
}

/// The client proves its certificate.
pub struct AwaitClientCertificateVerify<P: Provider> {
    provider: PhantomData<P>,
}

impl<P: Provider> AwaitClientCertificateVerify<P> {
    /// Its name.
    pub const ID: StateId = StateId::AwaitClientCertificateVerify12;

    /// What comes next, and where that leads.
    pub fn on(self, turn: &mut Turn<'_, P>, input: Input<'_>) -> Result<State<P>, Cause> {
        let _ = (turn, self.provider);
        Err(input.out_of_sequence(Self::ID))
    }
}

/// The client turns its keys on.
pub struct AwaitClientChangeCipherSpec<P: Provider> {
    provider: PhantomData<P>,
}

impl<P: Provider> AwaitClientChangeCipherSpec<P> {
    /// Its name.
    pub const ID: StateId = StateId::AwaitClientChangeCipherSpec;

    /// What comes next, and where that leads.
    pub fn on(self, turn: &mut Turn<'_, P>, input: Input<'_>) -> Result<State<P>, Cause> {
        let _ = (turn, self.provider);
        Err(input.out_of_sequence(Self::ID))
    }
}

/// The client's Finished is next.
pub struct AwaitClientFinished<P: Provider> {
    provider: PhantomData<P>,
}

impl<P: Provider> AwaitClientFinished<P> {
    /// Its name.
    pub const ID: StateId = StateId::AwaitClientFinished12;

    /// What comes next, and where that leads.
    pub fn on(self, turn: &mut Turn<'_, P>, input: Input<'_>) -> Result<State<P>, Cause> {
        let _ = (turn, self.provider);
        Err(input.out_of_sequence(Self::ID))
    }
}
