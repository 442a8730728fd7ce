//! The TLS 1.3 client (RFC 8446).

use core::marker::PhantomData;

use super::{Input, State, Turn};
use crate::cause::Cause;
use crate::crypto::Provider;
use crate::state::StateId;

/// Our hello was sent; which version it becomes is not known yet.
pub struct AwaitServerHello<P: Provider> {
    provider: PhantomData<P>,
}

impl<P: Provider> AwaitServerHello<P> {
    /// Its name.
    pub const ID: StateId = StateId::AwaitServerHello;

    /// What comes next, and where that leads.
    pub fn on(self, turn: &mut Turn<'_, P>, input: Input<'_>) -> Result<State<P>, Cause> {
        let _ = (turn, self.provider);
        Err(input.out_of_sequence(Self::ID))
    }
}

/// Our second hello was sent.
pub struct AwaitServerHelloAfterRetry<P: Provider> {
    provider: PhantomData<P>,
}

impl<P: Provider> AwaitServerHelloAfterRetry<P> {
    /// Its name.
    pub const ID: StateId = StateId::AwaitServerHelloAfterRetry;

    /// What comes next, and where that leads.
    pub fn on(self, turn: &mut Turn<'_, P>, input: Input<'_>) -> Result<State<P>, Cause> {
        let _ = (turn, self.provider);
        Err(input.out_of_sequence(Self::ID))
    }
}

/// Keys are on.
pub struct AwaitEncryptedExtensions<P: Provider> {
    provider: PhantomData<P>,
}

impl<P: Provider> AwaitEncryptedExtensions<P> {
    /// Its name.
    pub const ID: StateId = StateId::AwaitEncryptedExtensions;

    /// What comes next, and where that leads.
    pub fn on(self, turn: &mut Turn<'_, P>, input: Input<'_>) -> Result<State<P>, Cause> {
        let _ = (turn, self.provider);
        Err(input.out_of_sequence(Self::ID))
    }
}

/// Not resumed, so a certificate must come.
pub struct AwaitCertificateOrRequest<P: Provider> {
    provider: PhantomData<P>,
}

impl<P: Provider> AwaitCertificateOrRequest<P> {
    /// Its name.
    pub const ID: StateId = StateId::AwaitCertificateOrRequest;

    /// What comes next, and where that leads.
    pub fn on(self, turn: &mut Turn<'_, P>, input: Input<'_>) -> Result<State<P>, Cause> {
        let _ = (turn, self.provider);
        Err(input.out_of_sequence(Self::ID))
    }
}

/// A certificate was asked of us; the server's is next.
pub struct AwaitServerCertificate<P: Provider> {
    provider: PhantomData<P>,
}

impl<P: Provider> AwaitServerCertificate<P> {
    /// Its name.
    pub const ID: StateId = StateId::AwaitServerCertificate;

    /// What comes next, and where that leads.
    pub fn on(self, turn: &mut Turn<'_, P>, input: Input<'_>) -> Result<State<P>, Cause> {
        let _ = (turn, self.provider);
        Err(input.out_of_sequence(Self::ID))
    }
}

/// The server proves its certificate.
pub struct AwaitServerCertificateVerify<P: Provider> {
    provider: PhantomData<P>,
}

impl<P: Provider> AwaitServerCertificateVerify<P> {
    /// Its name.
    pub const ID: StateId = StateId::AwaitServerCertificateVerify;

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
    pub const ID: StateId = StateId::AwaitServerFinished;

    /// What comes next, and where that leads.
    pub fn on(self, turn: &mut Turn<'_, P>, input: Input<'_>) -> Result<State<P>, Cause> {
        let _ = (turn, self.provider);
        Err(input.out_of_sequence(Self::ID))
    }
}
