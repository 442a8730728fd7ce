//! Every state of every machine as one type.

use super::connected::Connected;
use super::hello::AwaitClientHello;
use super::{Input, Turn, client12, client13, server12, server13};
use crate::cause::Cause;
use crate::crypto::Provider;
use crate::state::StateId;

/// Whether the server's states are in this build. Without them nothing leads to their code, and the linker drops it.
const SERVER: bool = cfg!(feature = "server");
/// Whether those of TLS 1.2 are.
pub(super) const TLS12: bool = cfg!(feature = "tls12");
/// Whether a client resumes sessions.
pub(super) const RESUMPTION: bool = cfg!(feature = "resumption");

/// Where a handshake stands, with all that it carries there.
#[allow(
    clippy::large_enum_variant,
    reason = "no allocation: a session is as large as its largest state"
)]
pub enum State<P: Provider> {
    /// Server: nothing has come yet.
    AwaitClientHello(AwaitClientHello),
    /// Server, 1.3: a HelloRetryRequest was sent.
    AwaitSecondClientHello(server13::AwaitSecondClientHello<P>),
    /// Server, 1.3: our flight was sent, a certificate was asked for.
    AwaitClientCertificate(server13::AwaitClientCertificate<P>),
    /// Server, 1.3: the client's certificate has come.
    AwaitClientCertificateVerify(server13::AwaitClientCertificateVerify<P>),
    /// Server, 1.3: the client's Finished is next.
    AwaitClientFinished(server13::AwaitClientFinished<P>),
    /// Server, 1.2: our flight was sent, a certificate was asked for.
    AwaitClientCertificate12(server12::AwaitClientCertificate<P>),
    /// Server, 1.2: the client's share is next.
    AwaitClientKeyExchange(server12::AwaitClientKeyExchange<P>),
    /// Server, 1.2: the client proves its certificate.
    AwaitClientCertificateVerify12(server12::AwaitClientCertificateVerify<P>),
    /// Server, 1.2: the client turns its keys on.
    AwaitClientChangeCipherSpec(server12::AwaitClientChangeCipherSpec<P>),
    /// Server, 1.2: the client's Finished is next.
    AwaitClientFinished12(server12::AwaitClientFinished<P>),
    /// Client, 1.3: our hello was sent; which version it becomes is not known yet.
    AwaitServerHello(client13::AwaitServerHello<P>),
    /// Client, 1.3: our second hello was sent.
    AwaitServerHelloAfterRetry(client13::AwaitServerHelloAfterRetry<P>),
    /// Client, 1.3: keys are on.
    AwaitEncryptedExtensions(client13::AwaitEncryptedExtensions<P>),
    /// Client, 1.3: not resumed, so a certificate must come.
    AwaitCertificateOrRequest(client13::AwaitCertificateOrRequest<P>),
    /// Client, 1.3: a certificate was asked of us; the server's is next.
    AwaitServerCertificate(client13::AwaitServerCertificate<P>),
    /// Client, 1.3: the server proves its certificate.
    AwaitServerCertificateVerify(client13::AwaitServerCertificateVerify<P>),
    /// Client, 1.3: the server's Finished is next.
    AwaitServerFinished(client13::AwaitServerFinished<P>),
    /// Client, 1.2: the server's certificate is next.
    AwaitServerCertificate12(client12::AwaitServerCertificate<P>),
    /// Client, 1.2: the server's share is next.
    AwaitServerKeyExchange(client12::AwaitServerKeyExchange<P>),
    /// Client, 1.2: the end of the server's flight, or a request before it.
    AwaitServerHelloDone(client12::AwaitServerHelloDone<P>),
    /// Client, 1.2: the server promised a ticket.
    AwaitNewSessionTicket(client12::AwaitNewSessionTicket<P>),
    /// Client, 1.2: the server turns its keys on.
    AwaitServerChangeCipherSpec(client12::AwaitServerChangeCipherSpec<P>),
    /// Client, 1.2: the server's Finished is next.
    AwaitServerFinished12(client12::AwaitServerFinished<P>),
    /// Application data flows.
    Connected(Connected),
    /// It ended with a cause.
    Failed(Cause),
}

impl<P: Provider> State<P> {
    /// Its name.
    #[must_use]
    pub const fn id(&self) -> StateId {
        match self {
            Self::AwaitClientHello(_) => StateId::AwaitClientHello,
            Self::AwaitSecondClientHello(_) => server13::AwaitSecondClientHello::<P>::ID,
            Self::AwaitClientCertificate(_) => server13::AwaitClientCertificate::<P>::ID,
            Self::AwaitClientCertificateVerify(_) => server13::AwaitClientCertificateVerify::<P>::ID,
            Self::AwaitClientFinished(_) => server13::AwaitClientFinished::<P>::ID,
            Self::AwaitClientCertificate12(_) => server12::AwaitClientCertificate::<P>::ID,
            Self::AwaitClientKeyExchange(_) => server12::AwaitClientKeyExchange::<P>::ID,
            Self::AwaitClientCertificateVerify12(_) => server12::AwaitClientCertificateVerify::<P>::ID,
            Self::AwaitClientChangeCipherSpec(_) => server12::AwaitClientChangeCipherSpec::<P>::ID,
            Self::AwaitClientFinished12(_) => server12::AwaitClientFinished::<P>::ID,
            Self::AwaitServerHello(_) => client13::AwaitServerHello::<P>::ID,
            Self::AwaitServerHelloAfterRetry(_) => client13::AwaitServerHelloAfterRetry::<P>::ID,
            Self::AwaitEncryptedExtensions(_) => client13::AwaitEncryptedExtensions::<P>::ID,
            Self::AwaitCertificateOrRequest(_) => client13::AwaitCertificateOrRequest::<P>::ID,
            Self::AwaitServerCertificate(_) => client13::AwaitServerCertificate::<P>::ID,
            Self::AwaitServerCertificateVerify(_) => client13::AwaitServerCertificateVerify::<P>::ID,
            Self::AwaitServerFinished(_) => client13::AwaitServerFinished::<P>::ID,
            Self::AwaitServerCertificate12(_) => client12::AwaitServerCertificate::<P>::ID,
            Self::AwaitServerKeyExchange(_) => client12::AwaitServerKeyExchange::<P>::ID,
            Self::AwaitServerHelloDone(_) => client12::AwaitServerHelloDone::<P>::ID,
            Self::AwaitNewSessionTicket(_) => client12::AwaitNewSessionTicket::<P>::ID,
            Self::AwaitServerChangeCipherSpec(_) => client12::AwaitServerChangeCipherSpec::<P>::ID,
            Self::AwaitServerFinished12(_) => client12::AwaitServerFinished::<P>::ID,
            Self::Connected(_) => StateId::Connected,
            Self::Failed(_) => StateId::Failed,
        }
    }

    /// Whether a change_cipher_spec may come here that means nothing: TLS 1.3, or not known yet, between the first ClientHello and the
    /// peer's Finished.
    pub(crate) const fn takes_compatibility(&self) -> bool {
        matches!(
            self,
            Self::AwaitSecondClientHello(_)
                | Self::AwaitClientCertificate(_)
                | Self::AwaitClientCertificateVerify(_)
                | Self::AwaitClientFinished(_)
                | Self::AwaitServerHello(_)
                | Self::AwaitServerHelloAfterRetry(_)
                | Self::AwaitEncryptedExtensions(_)
                | Self::AwaitCertificateOrRequest(_)
                | Self::AwaitServerCertificate(_)
                | Self::AwaitServerCertificateVerify(_)
                | Self::AwaitServerFinished(_)
        )
    }

    /// What comes next, and where that leads.
    pub(crate) fn on(self, turn: &mut Turn<'_, P>, input: Input<'_>) -> Result<Self, Cause> {
        match self {
            Self::AwaitClientHello(state) if SERVER => state.on(turn, input),
            Self::AwaitSecondClientHello(state) if SERVER => state.on(turn, input),
            Self::AwaitClientCertificate(state) if SERVER => state.on(turn, input),
            Self::AwaitClientCertificateVerify(state) if SERVER => state.on(turn, input),
            Self::AwaitClientFinished(state) if SERVER => state.on(turn, input),
            Self::AwaitClientCertificate12(state) if SERVER && TLS12 => state.on(turn, input),
            Self::AwaitClientKeyExchange(state) if SERVER && TLS12 => state.on(turn, input),
            Self::AwaitClientCertificateVerify12(state) if SERVER && TLS12 => state.on(turn, input),
            Self::AwaitClientChangeCipherSpec(state) if SERVER && TLS12 => state.on(turn, input),
            Self::AwaitClientFinished12(state) if SERVER && TLS12 => state.on(turn, input),
            Self::AwaitServerHello(state) => state.on(turn, input),
            Self::AwaitServerHelloAfterRetry(state) => state.on(turn, input),
            Self::AwaitEncryptedExtensions(state) => state.on(turn, input),
            Self::AwaitCertificateOrRequest(state) => state.on(turn, input),
            Self::AwaitServerCertificate(state) => state.on(turn, input),
            Self::AwaitServerCertificateVerify(state) => state.on(turn, input),
            Self::AwaitServerFinished(state) => state.on(turn, input),
            Self::AwaitServerCertificate12(state) if TLS12 => state.on(turn, input),
            Self::AwaitServerKeyExchange(state) if TLS12 => state.on(turn, input),
            Self::AwaitServerHelloDone(state) if TLS12 => state.on(turn, input),
            Self::AwaitNewSessionTicket(state) if TLS12 => state.on(turn, input),
            Self::AwaitServerChangeCipherSpec(state) if TLS12 => state.on(turn, input),
            Self::AwaitServerFinished12(state) if TLS12 => state.on(turn, input),
            Self::Connected(state) => state.on(turn, input),
            Self::Failed(cause) => Err(cause),
            // No session begins in a role or agrees on a version that was left out.
            _ => Err(Cause::Internal),
        }
    }
}
