//! The TLS 1.3 client (RFC 8446): from its hello, whose answer may be TLS 1.2's, to application data, and the tickets that come then.

use super::client_hello::{Opening, Retry, offers, offers_suite, told_name};
use super::connected::Connected;
use super::key_schedule::{self, Early, Master};
use super::machine::{RESUMPTION, TLS12};
use super::proof::{self, LeafKey};
use super::{Input, Message, State, Transcript, Turn, client12};
use crate::cause::Cause;
use crate::certificate::{Role, Verified};
use crate::config::ClientConfig;
use crate::crypto::{Exchange, HashAlgorithm, Provider, Secret, SigningKey};
use crate::message::{
    Certificate13, CertificateRequest13, CertificateVerify, EncryptedExtensions, ExtensionType, Finished,
    HandshakeType, HelloRetryRequest, KeyShare, NewSessionTicket13, ServerHello, ServerHelloOrRetry, Writer,
};
use crate::meter::Phase;
use crate::record::{CONTENT_BYTES_MAX, SizeLimits};
use crate::saved::{SavedSession, binding};
use crate::state::StateId;
use crate::suite::{CipherSuite, Group, SignatureScheme, Version};

/// Sends the first hello.
///
/// Errors: what the provider says; a configuration that offers nothing.
pub fn start<P: Provider>(turn: &mut Turn<'_, P>) -> Result<State<P>, Cause> {
    let mut opening = Opening::draw(turn)?;
    let mut transcript = transcript(turn)?;
    opening.write(turn, &mut transcript, None)?;
    turn.flight.seal_first_hello()?;
    Ok(State::AwaitServerHello(AwaitServerHello { opening, transcript }))
}

/// The hash of the suites that are offered. With suites of both, which one it will be the answer tells; and TLS 1.2 may want our proof
/// in the other.
fn transcript<P: Provider>(turn: &Turn<'_, P>) -> Result<Transcript<P>, Cause> {
    let (config, provider) = (turn.client()?, turn.provider);
    let offers_hash = |hash| config.suites.iter().any(|suite| suite.hash() == hash);
    let proves_12 = config.identity.is_some() && offers(config, Version::Tls12);
    match (offers_hash(HashAlgorithm::Sha256), offers_hash(HashAlgorithm::Sha384)) {
        (true, false) if !proves_12 => Transcript::start(provider, HashAlgorithm::Sha256),
        (false, true) if !proves_12 => Transcript::start(provider, HashAlgorithm::Sha384),
        _ => Transcript::start_both(provider, HashAlgorithm::Sha256),
    }
}

const ILLEGAL_HELLO: Cause = Cause::IllegalParameter(HandshakeType::ServerHello.wire());

/// Our hello was sent; which version it becomes is not known yet.
pub struct AwaitServerHello<P: Provider> {
    opening: Opening<P>,
    transcript: Transcript<P>,
}

impl<P: Provider> AwaitServerHello<P> {
    /// Its name.
    pub const ID: StateId = StateId::AwaitServerHello;

    /// A ServerHello of either version, or a HelloRetryRequest.
    #[inline(never)] // So that the frames of all states are not one.
    pub fn on(self, turn: &mut Turn<'_, P>, input: Input<'_>) -> Result<State<P>, Cause> {
        let message = input.expect(HandshakeType::ServerHello.wire(), Self::ID)?;
        let hello = match ServerHelloOrRetry::decode(message.body)? {
            ServerHelloOrRetry::Retry(retry) => return self.retry(turn, &retry, message),
            ServerHelloOrRetry::Hello(hello) => hello,
        };
        let config = turn.client()?;
        match hello.supported_version {
            None if TLS12 && hello.legacy_version == Version::Tls12.wire() && offers(config, Version::Tls12) => {
                client12::begin(turn, self.opening, self.transcript, &hello, message)
            }
            None => Err(Cause::NoCommonVersion(hello.legacy_version)),
            Some(version) => {
                is_13(config, version)?;
                agree(turn, self.opening, self.transcript, &hello, message)
            }
        }
    }

    /// Writes the second hello (RFC 8446 §4.1.4).
    fn retry(
        mut self,
        turn: &mut Turn<'_, P>,
        retry: &HelloRetryRequest<'_>,
        message: Message<'_>,
    ) -> Result<State<P>, Cause> {
        let config = turn.client()?;
        is_13(config, retry.version)?;
        let suite = settled_suite(config, &self.opening, retry.session_id, retry.suite)?;
        if let Some(wire) = retry.group {
            let group = Group::from_wire(wire)
                .filter(|group| config.groups.contains(group) && !self.opening.shares(*group))
                .ok_or(ILLEGAL_HELLO)?;
            self.opening.exchanges.clear();
            self.opening.share(turn, group)?;
        }
        turn.agreed.retried = true;
        let mut transcript = self.transcript.settle(suite.hash(), false)?;
        transcript.replace_by_message_hash(turn.provider)?;
        transcript.add(message.raw);
        // Compatibility mode: once, before the second flight (RFC 8446 §D.4).
        turn.flight.change_cipher_spec()?;
        let retry = Retry {
            cookie: retry.cookie,
            suite,
        };
        self.opening.write(turn, &mut transcript, Some(&retry))?;
        Ok(State::AwaitServerHelloAfterRetry(AwaitServerHelloAfterRetry {
            opening: self.opening,
            transcript,
            suite,
        }))
    }
}

/// Our second hello was sent.
pub struct AwaitServerHelloAfterRetry<P: Provider> {
    opening: Opening<P>,
    transcript: Transcript<P>,
    suite: CipherSuite,
}

impl<P: Provider> AwaitServerHelloAfterRetry<P> {
    /// Its name.
    pub const ID: StateId = StateId::AwaitServerHelloAfterRetry;

    /// The ServerHello, which keeps to what the HelloRetryRequest said. That it has the group which that asked for follows from our having
    /// shared no other.
    #[inline(never)] // So that the frames of all states are not one.
    pub fn on(self, turn: &mut Turn<'_, P>, input: Input<'_>) -> Result<State<P>, Cause> {
        let message = input.expect(HandshakeType::ServerHello.wire(), Self::ID)?;
        let ServerHelloOrRetry::Hello(hello) = ServerHelloOrRetry::decode(message.body)? else {
            return Err(input.out_of_sequence(Self::ID));
        };
        if hello.supported_version != Some(Version::Tls13.wire()) || hello.suite != self.suite as u16 {
            return Err(ILLEGAL_HELLO);
        }
        agree(turn, self.opening, self.transcript, &hello, message)
    }
}

/// That the version a server selected is the one of ours that is selected so.
fn is_13<P: Provider>(config: &ClientConfig<'_, P>, version: u16) -> Result<(), Cause> {
    if !offers(config, Version::Tls13) {
        Err(Cause::UnsupportedExtension(ExtensionType::SupportedVersions.wire()))
    } else if version != Version::Tls13.wire() {
        Err(ILLEGAL_HELLO)
    } else {
        Ok(())
    }
}

/// The suite that a server chose, if it is one of ours for TLS 1.3 and our session id came back.
fn settled_suite<P: Provider>(
    config: &ClientConfig<'_, P>,
    opening: &Opening<P>,
    session_id: &[u8],
    suite: u16,
) -> Result<CipherSuite, Cause> {
    CipherSuite::from_wire(suite)
        .filter(|suite| suite.version() == Version::Tls13 && offers_suite(config, *suite))
        .filter(|_| opening.session_id == session_id)
        .ok_or(ILLEGAL_HELLO)
}

/// Takes a ServerHello of TLS 1.3 and turns the handshake keys on.
fn agree<P: Provider>(
    turn: &mut Turn<'_, P>,
    opening: Opening<P>,
    transcript: Transcript<P>,
    hello: &ServerHello<'_>,
    message: Message<'_>,
) -> Result<State<P>, Cause> {
    let (config, provider) = (turn.client()?, turn.provider);
    let suite = settled_suite(config, &opening, hello.session_id, hello.suite)?;
    let hash = suite.hash();
    let saved = match hello.pre_shared_key {
        None => None,
        Some(_) if !RESUMPTION || opening.resumes != Some(Version::Tls13) => {
            return Err(Cause::UnsupportedExtension(ExtensionType::PreSharedKey.wire()));
        }
        // One identity was offered, under its own hash.
        Some(index) => Some(
            SavedSession::decode(config.resume)
                .filter(|saved| index == 0 && saved.suite.hash() == hash)
                .ok_or(ILLEGAL_HELLO)?,
        ),
    };
    let share = hello
        .key_share
        .ok_or(Cause::MissingExtension(ExtensionType::KeyShare.wire()))?;
    let mut transcript = transcript.settle(hash, false)?;
    transcript.add(message.raw);
    turn.agreed.version = Some(Version::Tls13);
    turn.agreed.suite = Some(suite);
    turn.agreed.extended_master_secret = true;
    turn.agreed.resumed = saved.is_some();
    turn.meter.charge(Phase::Parse);

    let shared = exchange(turn, opening, &share)?;
    turn.meter.charge(Phase::KeyExchange);

    let early = match saved {
        Some(saved) => {
            turn.agreed.peer = Some(saved.peer);
            Early::resumption(provider, hash, &saved.secret)?
        }
        None => Early::fresh(provider, hash)?,
    };
    let handshake = early.handshake(provider, &shared)?;
    let digest = transcript.digest();
    let secrets = Secrets {
        suite,
        client: handshake.client_traffic(provider, &digest)?,
        server: handshake.server_traffic(provider, &digest)?,
        master: handshake.master(provider)?,
    };
    turn.read
        .install(key_schedule::traffic_keys(provider, suite, &secrets.server)?);
    // Compatibility mode: before the second flight, which is protected from here on, alerts included (RFC 8446 §D.4).
    if !turn.agreed.retried {
        turn.flight.change_cipher_spec()?;
    }
    turn.flight
        .install(key_schedule::traffic_keys(provider, suite, &secrets.client)?)?;
    turn.meter.charge(Phase::KeySchedule);
    Ok(State::AwaitEncryptedExtensions(AwaitEncryptedExtensions {
        transcript,
        secrets,
    }))
}

/// The secret of our share's key and the server's share.
fn exchange<P: Provider>(turn: &mut Turn<'_, P>, opening: Opening<P>, share: &KeyShare<'_>) -> Result<Secret, Cause> {
    let exchange = opening
        .exchanges
        .into_iter()
        .find(|exchange| exchange.group() as u16 == share.group);
    let exchange = exchange.ok_or(ILLEGAL_HELLO)?;
    let group = exchange.group();
    turn.agreed.group = Some(group);
    if share.share.len() != group.share_bytes() {
        return Err(ILLEGAL_HELLO);
    }
    exchange.agree(share.share).map_err(proof::bad_share)
}

/// What the rest of a handshake is keyed with.
struct Secrets {
    suite: CipherSuite,
    /// The client's handshake traffic secret.
    client: Secret,
    /// The server's handshake traffic secret.
    server: Secret,
    master: Master,
}

/// Keys are on.
pub struct AwaitEncryptedExtensions<P: Provider> {
    transcript: Transcript<P>,
    secrets: Secrets,
}

impl<P: Provider> AwaitEncryptedExtensions<P> {
    /// Its name.
    pub const ID: StateId = StateId::AwaitEncryptedExtensions;

    /// EncryptedExtensions: each was offered by us, or is nothing that a client need heed.
    #[inline(never)] // So that the frames of all states are not one.
    pub fn on(mut self, turn: &mut Turn<'_, P>, input: Input<'_>) -> Result<State<P>, Cause> {
        let message = input.expect(EncryptedExtensions::KIND.wire(), Self::ID)?;
        let extensions = EncryptedExtensions::decode(message.body)?;
        let config = turn.client()?;
        if extensions.server_name && told_name(config.server_name).is_none() {
            return Err(Cause::UnsupportedExtension(ExtensionType::ServerName.wire()));
        }
        if extensions.max_fragment_length.is_some() {
            return Err(Cause::UnsupportedExtension(ExtensionType::MaxFragmentLength.wire()));
        }
        if let Some(limit) = extensions.record_size_limit {
            limit_records(
                turn,
                config,
                limit,
                CONTENT_BYTES_MAX as u16 + 1,
                EncryptedExtensions::KIND,
            )?;
        }
        self.transcript.add(message.raw);
        turn.meter.charge(Phase::Parse);
        let Self { transcript, secrets } = self;
        Ok(if turn.agreed.resumed {
            State::AwaitServerFinished(AwaitServerFinished {
                transcript,
                secrets,
                asked: None,
            })
        } else {
            State::AwaitCertificateOrRequest(AwaitCertificateOrRequest { transcript, secrets })
        })
    }
}

/// Holds both sides to the limits that they told each other (RFC 8449 §4); `limit` is the server's, `limit_max` the most that the version allows.
///
/// Errors: [`Cause::UnsupportedExtension`] when we told none; [`Cause::IllegalParameter`] of the message `kind` for more than there can be.
pub(super) fn limit_records<P: Provider>(
    turn: &mut Turn<'_, P>,
    config: &ClientConfig<'_, P>,
    limit: u16,
    limit_max: u16,
    kind: HandshakeType,
) -> Result<(), Cause> {
    let ours = config
        .record_size_limit
        .ok_or(Cause::UnsupportedExtension(ExtensionType::RecordSizeLimit.wire()))?;
    if limit > limit_max {
        return Err(Cause::IllegalParameter(kind.wire()));
    }
    turn.flight.limit(SizeLimits::NONE.with_record_size_limit(limit));
    turn.read.limit(SizeLimits::NONE.with_record_size_limit(ours));
    Ok(())
}

/// A certificate was asked of us.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    /// By what we shall sign; `None` when we have nothing that suits the server: it gets an empty chain.
    pub scheme: Option<SignatureScheme>,
}

/// Not resumed, so a certificate must come.
pub struct AwaitCertificateOrRequest<P: Provider> {
    transcript: Transcript<P>,
    secrets: Secrets,
}

impl<P: Provider> AwaitCertificateOrRequest<P> {
    /// Its name.
    pub const ID: StateId = StateId::AwaitCertificateOrRequest;

    /// CertificateRequest, or Certificate at once.
    #[inline(never)] // So that the frames of all states are not one.
    pub fn on(mut self, turn: &mut Turn<'_, P>, input: Input<'_>) -> Result<State<P>, Cause> {
        if let Input::Message(message) = input
            && message.kind == Certificate13::KIND.wire()
        {
            return certificate(turn, self.transcript, self.secrets, None, message);
        }
        let message = input.expect(CertificateRequest13::KIND.wire(), Self::ID)?;
        let request = CertificateRequest13::decode(message.body)?;
        let config = turn.client()?;
        let scheme = config.identity.and_then(|identity| {
            let kind = identity.key.kind();
            proof::choose(config.own_schemes, kind, Version::Tls13, request.signature_algorithms)
        });
        self.transcript.add(message.raw);
        turn.meter.charge(Phase::Parse);
        Ok(State::AwaitServerCertificate(AwaitServerCertificate {
            transcript: self.transcript,
            secrets: self.secrets,
            asked: Asked { scheme },
        }))
    }
}

/// A certificate was asked of us; the server's is next.
pub struct AwaitServerCertificate<P: Provider> {
    transcript: Transcript<P>,
    secrets: Secrets,
    asked: Asked,
}

impl<P: Provider> AwaitServerCertificate<P> {
    /// Its name.
    pub const ID: StateId = StateId::AwaitServerCertificate;

    /// Certificate.
    #[inline(never)] // So that the frames of all states are not one.
    pub fn on(self, turn: &mut Turn<'_, P>, input: Input<'_>) -> Result<State<P>, Cause> {
        let message = input.expect(Certificate13::KIND.wire(), Self::ID)?;
        certificate(turn, self.transcript, self.secrets, Some(self.asked), message)
    }
}

/// Takes the server's chain.
fn certificate<P: Provider>(
    turn: &mut Turn<'_, P>,
    mut transcript: Transcript<P>,
    secrets: Secrets,
    asked: Option<Asked>,
    message: Message<'_>,
) -> Result<State<P>, Cause> {
    let chain = Certificate13::decode(message.body)?.chain;
    let (key, verified) = verify_server(turn, chain.as_slice())?;
    turn.agreed.peer = Some(verified);
    transcript.add(message.raw);
    Ok(State::AwaitServerCertificateVerify(AwaitServerCertificateVerify {
        transcript,
        secrets,
        asked,
        key,
    }))
}

/// The leaf's key and who it belongs to.
///
/// Errors: [`Cause::Decode`] for no certificate at all (RFC 8446 §4.4.2.4); what the verifier says.
pub(super) fn verify_server<P: Provider>(
    turn: &mut Turn<'_, P>,
    chain: &[&[u8]],
) -> Result<(LeafKey, Verified), Cause> {
    let config = turn.client()?;
    let leaf = chain.first().ok_or(Cause::Decode(HandshakeType::Certificate.wire()))?;
    turn.meter.charge(Phase::Parse);
    // The chain first: when it is refused, the certificate at fault is kept for the log.
    let verified = turn.verify(config.verifier, chain, Role::Server, config.server_name)?;
    Ok((LeafKey::copy(config.verifier.public_key(leaf)?)?, verified))
}

/// The server proves its certificate.
pub struct AwaitServerCertificateVerify<P: Provider> {
    transcript: Transcript<P>,
    secrets: Secrets,
    asked: Option<Asked>,
    key: LeafKey,
}

impl<P: Provider> AwaitServerCertificateVerify<P> {
    /// Its name.
    pub const ID: StateId = StateId::AwaitServerCertificateVerify;

    /// CertificateVerify.
    #[inline(never)] // So that the frames of all states are not one.
    pub fn on(mut self, turn: &mut Turn<'_, P>, input: Input<'_>) -> Result<State<P>, Cause> {
        let message = input.expect(CertificateVerify::KIND.wire(), Self::ID)?;
        let proof = CertificateVerify::decode(message.body)?;
        let schemes = turn.client()?.schemes;
        let scheme = proof::offered(
            schemes,
            self.key.kind(),
            Version::Tls13,
            proof.scheme,
            CertificateVerify::KIND,
        )?;
        let digest = proof::digest_13(turn.provider, Role::Server, &self.transcript.digest(), scheme.hash())?;
        turn.meter.charge(Phase::Parse);
        self.key.check(turn.provider, scheme, &digest, proof.signature)?;
        turn.meter.charge(Phase::Verify);
        turn.agreed.peer_scheme = Some(scheme);
        self.transcript.add(message.raw);
        Ok(State::AwaitServerFinished(AwaitServerFinished {
            transcript: self.transcript,
            secrets: self.secrets,
            asked: self.asked,
        }))
    }
}

/// The server's Finished is next.
pub struct AwaitServerFinished<P: Provider> {
    transcript: Transcript<P>,
    secrets: Secrets,
    asked: Option<Asked>,
}

impl<P: Provider> AwaitServerFinished<P> {
    /// Its name.
    pub const ID: StateId = StateId::AwaitServerFinished;

    /// Finished; our own flight ends the handshake.
    #[inline(never)] // So that the frames of all states are not one.
    pub fn on(self, turn: &mut Turn<'_, P>, input: Input<'_>) -> Result<State<P>, Cause> {
        let Self {
            mut transcript,
            secrets,
            asked,
        } = self;
        let message = input.expect(Finished::KIND.wire(), Self::ID)?;
        let (provider, hash) = (turn.provider, secrets.suite.hash());
        let finished = Finished::decode(message.body, hash.bytes())?;
        let expected = key_schedule::finished(provider, hash, &secrets.server, &transcript.digest())?;
        if !expected.is(finished.verify_data) {
            return Err(Cause::BadFinished);
        }
        transcript.add(message.raw);
        let digest = transcript.digest();
        let write = secrets.master.client_traffic(provider, &digest)?;
        let read = secrets.master.server_traffic(provider, &digest)?;
        turn.read
            .install(key_schedule::traffic_keys(provider, secrets.suite, &read)?);
        turn.meter.charge(Phase::KeySchedule);

        if let Some(asked) = asked {
            answer(turn, &mut transcript, asked)?;
        }
        let verify_data = key_schedule::finished(provider, hash, &secrets.client, &transcript.digest())?;
        let ours = Finished {
            verify_data: verify_data.bytes(),
        };
        transcript.add(turn.flight.add(|spare| Writer::fill(spare, |w| ours.encode(w)))?);
        let resumption = secrets.master.resumption(provider, &transcript.digest())?;
        turn.flight
            .install(key_schedule::traffic_keys(provider, secrets.suite, &write)?)?;
        turn.meter.charge(Phase::KeySchedule);
        Ok(State::Connected(Connected::Tls13 {
            hash,
            read,
            write,
            resumption: Some(resumption),
        }))
    }
}

/// Our Certificate, and its CertificateVerify when it is not empty.
fn answer<P: Provider>(turn: &mut Turn<'_, P>, transcript: &mut Transcript<P>, asked: Asked) -> Result<(), Cause> {
    let identity = turn.client()?.identity;
    let proof = asked.scheme.zip(identity);
    let chain = proof.map_or(&[][..], |(_, identity)| identity.chain);
    let raw = turn
        .flight
        .add(|spare| Writer::fill(spare, |w| Certificate13::encode(chain, w)))?;
    transcript.add(raw);
    let Some((scheme, identity)) = proof else { return Ok(()) };
    let digest = proof::digest_13(turn.provider, Role::Client, &transcript.digest(), scheme.hash())?;
    let raw = proof::sign(turn, identity.key, scheme, &digest)?;
    transcript.add(raw);
    turn.agreed.own_scheme = Some(scheme);
    turn.meter.charge(Phase::Signature);
    Ok(())
}

/// A ticket after the handshake (RFC 8446 §4.6.1): what it resumes is kept, unless it may not be used at all or nobody keeps sessions.
pub(super) fn ticket<P: Provider>(
    turn: &mut Turn<'_, P>,
    resumption: &Secret,
    message: Message<'_>,
) -> Result<(), Cause> {
    let ticket = NewSessionTicket13::decode(message.body)?;
    if !RESUMPTION {
        return Ok(());
    }
    let config = turn.client()?;
    let (Some(suite), Some(peer), Some(keep)) = (turn.agreed.suite, &turn.agreed.peer, &mut turn.keep) else {
        return Ok(());
    };
    if ticket.lifetime_seconds == 0 {
        return Ok(());
    }
    let secret = key_schedule::resumption_psk(turn.provider, suite.hash(), resumption, ticket.nonce)?;
    keep.stage(&SavedSession {
        suite,
        secret,
        is_extended: true,
        received: turn.now,
        lifetime_seconds: ticket.lifetime_seconds,
        age_add: ticket.age_add,
        binding: binding(turn.provider, config)?,
        peer: peer.clone(),
        session_id: &[],
        ticket: ticket.ticket,
    });
    keep.commit();
    turn.meter.charge(Phase::KeySchedule);
    Ok(())
}
