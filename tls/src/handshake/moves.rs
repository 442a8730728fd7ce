//! Every legal move of every machine.

use crate::cause::Met;
use crate::message::HandshakeType as H;
use crate::record::ContentType;
use crate::state::StateId as S;

/// In state `from`, what is `met` may lead to `to`. Anything else met there is out of sequence; any state may also end in
/// [`S::Failed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Where it begins.
    pub from: S,
    /// A handshake message, or a change_cipher_spec that has a meaning.
    pub met: Met,
    /// Where it ends.
    pub to: S,
}

const CHANGE_CIPHER_SPEC: Met = Met::Record(ContentType::ChangeCipherSpec as u8);

const fn on(from: S, message: H, to: S) -> Move {
    let met = Met::Handshake(message.wire());
    Move { from, met, to }
}

const fn on_change(from: S, to: S) -> Move {
    let met = CHANGE_CIPHER_SPEC;
    Move { from, met, to }
}

/// The table.
pub const MOVES: &[Move] = &[
    // Server, 1.3.
    on(S::AwaitClientHello, H::ClientHello, S::AwaitSecondClientHello),
    on(S::AwaitClientHello, H::ClientHello, S::AwaitClientCertificate),
    on(S::AwaitClientHello, H::ClientHello, S::AwaitClientFinished),
    on(S::AwaitSecondClientHello, H::ClientHello, S::AwaitClientCertificate),
    on(S::AwaitSecondClientHello, H::ClientHello, S::AwaitClientFinished),
    on(
        S::AwaitClientCertificate,
        H::Certificate,
        S::AwaitClientCertificateVerify,
    ),
    on(S::AwaitClientCertificate, H::Certificate, S::AwaitClientFinished),
    on(
        S::AwaitClientCertificateVerify,
        H::CertificateVerify,
        S::AwaitClientFinished,
    ),
    on(S::AwaitClientFinished, H::Finished, S::Connected),
    // Server, 1.2. After a resumption the client's keys come at once.
    on(S::AwaitClientHello, H::ClientHello, S::AwaitClientCertificate12),
    on(S::AwaitClientHello, H::ClientHello, S::AwaitClientKeyExchange),
    on(S::AwaitClientHello, H::ClientHello, S::AwaitClientChangeCipherSpec),
    on(S::AwaitClientCertificate12, H::Certificate, S::AwaitClientKeyExchange),
    on(
        S::AwaitClientKeyExchange,
        H::ClientKeyExchange,
        S::AwaitClientCertificateVerify12,
    ),
    on(
        S::AwaitClientKeyExchange,
        H::ClientKeyExchange,
        S::AwaitClientChangeCipherSpec,
    ),
    on(
        S::AwaitClientCertificateVerify12,
        H::CertificateVerify,
        S::AwaitClientChangeCipherSpec,
    ),
    on_change(S::AwaitClientChangeCipherSpec, S::AwaitClientFinished12),
    on(S::AwaitClientFinished12, H::Finished, S::Connected),
    // Client, 1.3.
    on(S::AwaitServerHello, H::ServerHello, S::AwaitServerHelloAfterRetry),
    on(S::AwaitServerHello, H::ServerHello, S::AwaitEncryptedExtensions),
    on(
        S::AwaitServerHelloAfterRetry,
        H::ServerHello,
        S::AwaitEncryptedExtensions,
    ),
    on(
        S::AwaitEncryptedExtensions,
        H::EncryptedExtensions,
        S::AwaitCertificateOrRequest,
    ),
    on(
        S::AwaitEncryptedExtensions,
        H::EncryptedExtensions,
        S::AwaitServerFinished,
    ),
    on(
        S::AwaitCertificateOrRequest,
        H::CertificateRequest,
        S::AwaitServerCertificate,
    ),
    on(
        S::AwaitCertificateOrRequest,
        H::Certificate,
        S::AwaitServerCertificateVerify,
    ),
    on(
        S::AwaitServerCertificate,
        H::Certificate,
        S::AwaitServerCertificateVerify,
    ),
    on(
        S::AwaitServerCertificateVerify,
        H::CertificateVerify,
        S::AwaitServerFinished,
    ),
    on(S::AwaitServerFinished, H::Finished, S::Connected),
    // Client, 1.2.
    on(S::AwaitServerHello, H::ServerHello, S::AwaitServerCertificate12),
    on(S::AwaitServerHello, H::ServerHello, S::AwaitNewSessionTicket),
    on(S::AwaitServerHello, H::ServerHello, S::AwaitServerChangeCipherSpec),
    on(S::AwaitServerCertificate12, H::Certificate, S::AwaitServerKeyExchange),
    on(S::AwaitServerKeyExchange, H::ServerKeyExchange, S::AwaitServerHelloDone),
    on(S::AwaitServerHelloDone, H::CertificateRequest, S::AwaitServerHelloDone),
    on(S::AwaitServerHelloDone, H::ServerHelloDone, S::AwaitNewSessionTicket),
    on(
        S::AwaitServerHelloDone,
        H::ServerHelloDone,
        S::AwaitServerChangeCipherSpec,
    ),
    on(
        S::AwaitNewSessionTicket,
        H::NewSessionTicket,
        S::AwaitServerChangeCipherSpec,
    ),
    on_change(S::AwaitServerChangeCipherSpec, S::AwaitServerFinished12),
    on(S::AwaitServerFinished12, H::Finished, S::Connected),
    // After the handshake: either side in 1.3, a client in 1.3, and what is refused without an end in 1.2.
    on(S::Connected, H::KeyUpdate, S::Connected),
    on(S::Connected, H::NewSessionTicket, S::Connected),
    on(S::Connected, H::HelloRequest, S::Connected),
    on(S::Connected, H::ClientHello, S::Connected),
];

/// Whether anything of this kind may be met there.
#[must_use]
pub fn is_legal(from: S, met: Met) -> bool {
    MOVES.iter().any(|it| it.from == from && it.met == met)
}
