//! The TLS 1.3 server (RFC 8446): full handshakes, HelloRetryRequest, resumption by ticket with a fresh key exchange.

use core::marker::PhantomData;

use super::{Input, State, Turn};
use crate::cause::Cause;
use crate::crypto::Provider;
use crate::state::StateId;

/// A HelloRetryRequest was sent.
pub struct AwaitSecondClientHello<P: Provider> {
    provider: PhantomData<P>,
}

impl<P: Provider> AwaitSecondClientHello<P> {
    /// Its name.
    pub const ID: StateId = StateId::AwaitSecondClientHello;

    /// What comes next, and where that leads.
    pub fn on(self, turn: &mut Turn<'_, P>, input: Input<'_>) -> Result<State<P>, Cause> {
        let _ = (turn, self.provider);
        Err(input.out_of_sequence(Self::ID))
    }
}

/// Our flight was sent, a certificate was asked for.
pub struct AwaitClientCertificate<P: Provider> {
    provider: PhantomData<P>,
}

impl<P: Provider> AwaitClientCertificate<P> {
    /// Its name.
    pub const ID: StateId = StateId::AwaitClientCertificate;

    /// What comes next, and where that leads.
    pub fn on(self, turn: &mut Turn<'_, P>, input: Input<'_>) -> Result<State<P>, Cause> {
        let _ = (turn, self.provider);
        Err(input.out_of_sequence(Self::ID))
    }
}

/// The client's certificate has come.
pub struct AwaitClientCertificateVerify<P: Provider> {
    provider: PhantomData<P>,
}

impl<P: Provider> AwaitClientCertificateVerify<P> {
    /// Its name.
    pub const ID: StateId = StateId::AwaitClientCertificateVerify;

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
    pub const ID: StateId = StateId::AwaitClientFinished;

    /// What comes next, and where that leads.
    pub fn on(self, turn: &mut Turn<'_, P>, input: Input<'_>) -> Result<State<P>, Cause> {
        let _ = (turn, self.provider);
        Err(input.out_of_sequence(Self::ID))
    }
}
