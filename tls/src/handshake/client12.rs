//! The TLS 1.2 client (RFC 5246) with ECDHE (RFC 8422), extended master secrets (RFC 7627), tickets (RFC 5077) and session ids.

use super::client_hello::{Opening, SessionId, offers, offers_suite, told_name};
use super::client13::{Asked, limit_records, verify_server};
use super::connected::Connected;
use super::prf::{self, KeyBlock};
use super::proof::{self, LeafKey};
use super::{Input, Message, State, Transcript, Turn};
use crate::cause::Cause;
use crate::certificate::Role;
use crate::crypto::{Exchange, Hash, KeyKind, Provider, Secret, Share, SigningKey};
use crate::message::{
    CERTIFICATE_TYPE_ECDSA, CERTIFICATE_TYPE_RSA, Certificate12, CertificateRequest12, ClientKeyExchange,
    DOWNGRADE_TO_11, DOWNGRADE_TO_12, ExtensionType, Finished, HandshakeType, NewSessionTicket12, RANDOM_BYTES,
    ServerHello, ServerHelloDone, ServerKeyExchange, VERIFY_DATA_BYTES_12, Writer,
};
use crate::meter::Phase;
use crate::record::CONTENT_BYTES_MAX;
use crate::saved::{SavedSession, binding};
use crate::state::StateId;
use crate::suite::{Authentication, CipherSuite, Group, Version};

const ILLEGAL_HELLO: Cause = Cause::IllegalParameter(HandshakeType::ServerHello.wire());

/// What every state of a TLS 1.2 handshake carries.
struct Progress<P: Provider> {
    suite: CipherSuite,
    client_random: [u8; RANDOM_BYTES],
    server_random: [u8; RANDOM_BYTES],
    transcript: Transcript<P>,
    /// What the server calls the session, when it can be resumed by that name.
    session_id: SessionId,
    /// Whether a NewSessionTicket will come.
    ticket: bool,
}

/// Takes a ServerHello of TLS 1.2: a full handshake, or the resumption that we offered.
pub(super) fn begin<P: Provider>(
    turn: &mut Turn<'_, P>,
    opening: Opening<P>,
    transcript: Transcript<P>,
    hello: &ServerHello<'_>,
    message: Message<'_>,
) -> Result<State<P>, Cause> {
    let config = turn.client()?;
    if offers(config, Version::Tls13)
        && (hello.random.ends_with(&DOWNGRADE_TO_12) || hello.random.ends_with(&DOWNGRADE_TO_11))
    {
        // A server that speaks 1.3 would have agreed on it: somebody changed our hello (RFC 8446 §4.1.3).
        return Err(ILLEGAL_HELLO);
    }
    let suite = CipherSuite::from_wire(hello.suite)
        .filter(|suite| suite.version() == Version::Tls12 && offers_suite(config, *suite))
        .ok_or(ILLEGAL_HELLO)?;
    let unasked = |extension: ExtensionType| Err(Cause::UnsupportedExtension(extension.wire()));
    if hello.server_name && told_name(config.server_name).is_none() {
        return unasked(ExtensionType::ServerName);
    }
    if hello.max_fragment_length.is_some() {
        return unasked(ExtensionType::MaxFragmentLength);
    }
    if hello.session_ticket && !opening.asks_ticket_12 {
        return unasked(ExtensionType::SessionTicket);
    }
    if hello.ec_point_formats.is_some_and(|formats| !formats.contains(&0)) {
        return Err(ILLEGAL_HELLO);
    }
    if hello
        .renegotiation_info
        .is_some_and(|connection| !connection.is_empty())
    {
        // RFC 5746 §3.4.
        return Err(Cause::Renegotiation);
    }
    if let Some(limit) = hello.record_size_limit {
        limit_records(
            turn,
            config,
            limit,
            CONTENT_BYTES_MAX as u16,
            HandshakeType::ServerHello,
        )?;
    }
    let is_echo = !hello.session_id.is_empty() && opening.session_id == hello.session_id;
    if is_echo && opening.resumes != Some(Version::Tls12) {
        // The id that stands there for compatibility names no session.
        return Err(ILLEGAL_HELLO);
    }
    turn.agreed.version = Some(Version::Tls12);
    turn.agreed.suite = Some(suite);
    turn.agreed.extended_master_secret = hello.extended_master_secret;
    turn.agreed.resumed = is_echo;
    // CertificateVerify may want the other hash than the suite's.
    let mut transcript = transcript.settle(suite.hash(), config.identity.is_some() && !is_echo)?;
    transcript.add(message.raw);
    turn.meter.charge(Phase::Parse);
    let progress = Progress {
        suite,
        client_random: opening.random,
        server_random: *hello.random,
        transcript,
        session_id: SessionId::from_slice(hello.session_id).map_err(|_| Cause::Internal)?,
        ticket: hello.session_ticket,
    };
    if !is_echo {
        return Ok(State::AwaitServerCertificate12(AwaitServerCertificate { progress }));
    }
    let saved = SavedSession::decode(config.resume)
        .filter(|saved| saved.suite == suite)
        .ok_or(ILLEGAL_HELLO)?;
    if saved.is_extended != hello.extended_master_secret {
        return Err(Cause::MasterSecretChanged);
    }
    turn.agreed.peer = Some(saved.peer);
    Ok(await_server_keys(Ending::new(
        turn.provider,
        progress,
        saved.secret,
        true,
    )?))
}

/// The server's certificate is next.
pub struct AwaitServerCertificate<P: Provider> {
    progress: Progress<P>,
}

impl<P: Provider> AwaitServerCertificate<P> {
    /// Its name.
    pub const ID: StateId = StateId::AwaitServerCertificate12;

    /// Certificate, with a key that suits the suite.
    pub fn on(self, turn: &mut Turn<'_, P>, input: Input<'_>) -> Result<State<P>, Cause> {
        let mut progress = self.progress;
        let message = input.expect(Certificate12::KIND.wire(), Self::ID)?;
        let chain = Certificate12::decode(message.body)?.chain;
        let (key, verified) = verify_server(turn, chain.as_slice())?;
        let is_suited = match (progress.suite.authentication(), key.kind()) {
            (Authentication::Rsa, KeyKind::Rsa(_)) => true,
            // The leaf's curve is one of supported_groups (RFC 8422 §5.1.1).
            (Authentication::Ecdsa, KeyKind::P256) => turn.client()?.groups.contains(&Group::Secp256r1),
            _ => false,
        };
        if !is_suited {
            return Err(Cause::IllegalParameter(Certificate12::KIND.wire()));
        }
        turn.agreed.peer = Some(verified);
        progress.transcript.add(message.raw);
        Ok(State::AwaitServerKeyExchange(AwaitServerKeyExchange { progress, key }))
    }
}

/// The server's share is next.
pub struct AwaitServerKeyExchange<P: Provider> {
    progress: Progress<P>,
    key: LeafKey,
}

impl<P: Provider> AwaitServerKeyExchange<P> {
    /// Its name.
    pub const ID: StateId = StateId::AwaitServerKeyExchange;

    /// ServerKeyExchange: a group that we offered, a scheme that we offered and that the certificate's key can.
    pub fn on(self, turn: &mut Turn<'_, P>, input: Input<'_>) -> Result<State<P>, Cause> {
        let Self { mut progress, key } = self;
        let message = input.expect(ServerKeyExchange::KIND.wire(), Self::ID)?;
        let theirs = ServerKeyExchange::decode(message.body)?;
        let (config, provider) = (turn.client()?, turn.provider);
        let illegal = Cause::IllegalParameter(ServerKeyExchange::KIND.wire());
        let group = Group::from_wire(theirs.group)
            .filter(|group| config.groups.contains(group) && theirs.share.len() == group.share_bytes())
            .ok_or(illegal)?;
        let scheme = proof::offered(
            config.schemes,
            key.kind(),
            Version::Tls12,
            theirs.scheme,
            ServerKeyExchange::KIND,
        )?;
        let mut signed = provider.hash(scheme.hash())?;
        signed.update(&progress.client_random);
        signed.update(&progress.server_random);
        signed.update(theirs.params);
        turn.meter.charge(Phase::Parse);
        key.check(provider, scheme, &signed.digest(), theirs.signature)?;
        turn.meter.charge(Phase::Verify);
        turn.agreed.group = Some(group);
        turn.agreed.peer_scheme = Some(scheme);

        let exchange = provider.exchange(group, turn.random)?;
        let share = exchange.share();
        let premaster = exchange.agree(theirs.share).map_err(proof::bad_share)?;
        turn.meter.charge(Phase::KeyExchange);
        progress.transcript.add(message.raw);
        Ok(State::AwaitServerHelloDone(AwaitServerHelloDone {
            progress,
            share,
            premaster,
            asked: None,
        }))
    }
}

/// The end of the server's flight, or a request before it.
pub struct AwaitServerHelloDone<P: Provider> {
    progress: Progress<P>,
    share: Share,
    premaster: Secret,
    asked: Option<Asked>,
}

impl<P: Provider> AwaitServerHelloDone<P> {
    /// Its name.
    pub const ID: StateId = StateId::AwaitServerHelloDone;

    /// CertificateRequest, once; ServerHelloDone, after which our flight leaves.
    pub fn on(mut self, turn: &mut Turn<'_, P>, input: Input<'_>) -> Result<State<P>, Cause> {
        if let Input::Message(message) = input
            && message.kind == CertificateRequest12::KIND.wire()
            && self.asked.is_none()
        {
            self.asked = Some(asked(turn, message)?);
            self.progress.transcript.add(message.raw);
            return Ok(State::AwaitServerHelloDone(self));
        }
        let message = input.expect(ServerHelloDone::KIND.wire(), Self::ID)?;
        ServerHelloDone::decode(message.body)?;
        self.progress.transcript.add(message.raw);
        self.answer(turn)
    }

    fn answer(self, turn: &mut Turn<'_, P>) -> Result<State<P>, Cause> {
        let Self {
            mut progress,
            share,
            premaster,
            asked,
        } = self;
        let provider = turn.provider;
        let identity = turn.client()?.identity;
        let proof = asked.and_then(|asked| asked.scheme).zip(identity);
        if asked.is_some() {
            let chain = proof.map_or(&[][..], |(_, identity)| identity.chain);
            let raw = turn
                .flight
                .add(|spare| Writer::fill(spare, |w| Certificate12::encode(chain, w)))?;
            progress.transcript.add(raw);
        }
        let ours = ClientKeyExchange { share: share.bytes() };
        progress
            .transcript
            .add(turn.flight.add(|spare| Writer::fill(spare, |w| ours.encode(w)))?);
        turn.meter.charge(Phase::Parse);

        let hash = progress.suite.hash();
        let master = if turn.agreed.extended_master_secret {
            prf::extended_master_secret(provider, hash, &premaster, &progress.transcript.digest())?
        } else {
            prf::master_secret(
                provider,
                hash,
                &premaster,
                &progress.client_random,
                &progress.server_random,
            )?
        };
        turn.meter.charge(Phase::KeySchedule);
        if let Some((scheme, identity)) = proof {
            let digest = progress.transcript.digest_in(scheme.hash()).ok_or(Cause::Internal)?;
            let raw = proof::sign(turn, identity.key, scheme, &digest)?;
            progress.transcript.add(raw);
            turn.agreed.own_scheme = Some(scheme);
            turn.meter.charge(Phase::Signature);
        }
        let mut ending = Ending::new(provider, progress, master, false)?;
        finish(turn, &mut ending)?;
        Ok(await_server_keys(ending))
    }
}

/// How we answer a CertificateRequest.
fn asked<P: Provider>(turn: &Turn<'_, P>, message: Message<'_>) -> Result<Asked, Cause> {
    let request = CertificateRequest12::decode(message.body)?;
    let config = turn.client()?;
    let scheme = config.identity.and_then(|identity| {
        let kind = identity.key.kind();
        let certificate_type = match kind {
            KeyKind::Rsa(_) => CERTIFICATE_TYPE_RSA,
            KeyKind::P256 | KeyKind::P384 => CERTIFICATE_TYPE_ECDSA,
        };
        request
            .certificate_types
            .contains(&certificate_type)
            .then(|| proof::choose(config.own_schemes, kind, Version::Tls12, request.signature_algorithms))
            .flatten()
    });
    Ok(Asked { scheme })
}

/// Sends change_cipher_spec and Finished.
fn finish<P: Provider>(turn: &mut Turn<'_, P>, ending: &mut Ending<P>) -> Result<(), Cause> {
    let provider = turn.provider;
    let Ending {
        progress, master, keys, ..
    } = ending;
    turn.flight.change_cipher_spec()?;
    turn.flight.install(keys.keys(provider, Role::Client)?)?;
    let hash = progress.suite.hash();
    let verify_data = prf::verify_data(provider, hash, master, Role::Client, &progress.transcript.digest())?;
    let ours = Finished {
        verify_data: verify_data.bytes(),
    };
    progress
        .transcript
        .add(turn.flight.add(|spare| Writer::fill(spare, |w| ours.encode(w)))?);
    turn.meter.charge(Phase::KeySchedule);
    Ok(())
}

/// What the server sends before its change_cipher_spec.
fn await_server_keys<P: Provider>(ending: Ending<P>) -> State<P> {
    if ending.progress.ticket {
        State::AwaitNewSessionTicket(AwaitNewSessionTicket { ending })
    } else {
        State::AwaitServerChangeCipherSpec(AwaitServerChangeCipherSpec { ending })
    }
}

/// What the end of a handshake needs.
struct Ending<P: Provider> {
    progress: Progress<P>,
    master: Secret,
    keys: KeyBlock,
    /// The server finishes first.
    is_resumed: bool,
}

impl<P: Provider> Ending<P> {
    fn new(provider: &P, progress: Progress<P>, master: Secret, is_resumed: bool) -> Result<Self, Cause> {
        let keys = KeyBlock::new(
            provider,
            progress.suite,
            &master,
            &progress.client_random,
            &progress.server_random,
        )?;
        Ok(Self {
            progress,
            master,
            keys,
            is_resumed,
        })
    }
}

/// The server promised a ticket.
pub struct AwaitNewSessionTicket<P: Provider> {
    ending: Ending<P>,
}

impl<P: Provider> AwaitNewSessionTicket<P> {
    /// Its name.
    pub const ID: StateId = StateId::AwaitNewSessionTicket;

    /// NewSessionTicket, which may be empty (RFC 5077 §3.3).
    pub fn on(self, turn: &mut Turn<'_, P>, input: Input<'_>) -> Result<State<P>, Cause> {
        let mut ending = self.ending;
        let message = input.expect(NewSessionTicket12::KIND.wire(), Self::ID)?;
        let ticket = NewSessionTicket12::decode(message.body)?;
        ending.progress.transcript.add(message.raw);
        if !ticket.ticket.is_empty() {
            stage(turn, &ending, &[], ticket.ticket, ticket.lifetime_hint_seconds)?;
            // The ticket is its name.
            ending.progress.session_id.clear();
        }
        turn.meter.charge(Phase::Parse);
        Ok(State::AwaitServerChangeCipherSpec(AwaitServerChangeCipherSpec {
            ending,
        }))
    }
}

/// Gives the session to whoever keeps it, to be believed when the server has finished.
fn stage<P: Provider>(
    turn: &mut Turn<'_, P>,
    ending: &Ending<P>,
    session_id: &[u8],
    ticket: &[u8],
    lifetime_seconds: u32,
) -> Result<(), Cause> {
    let config = turn.client()?;
    if let (Some(peer), Some(keep)) = (&turn.agreed.peer, &mut turn.keep) {
        keep.stage(&SavedSession {
            suite: ending.progress.suite,
            secret: ending.master.clone(),
            is_extended: turn.agreed.extended_master_secret,
            received: turn.now,
            lifetime_seconds,
            age_add: 0,
            binding: binding(turn.provider, config)?,
            peer: peer.clone(),
            session_id,
            ticket,
        });
    }
    Ok(())
}

/// The server turns its keys on.
pub struct AwaitServerChangeCipherSpec<P: Provider> {
    ending: Ending<P>,
}

impl<P: Provider> AwaitServerChangeCipherSpec<P> {
    /// Its name.
    pub const ID: StateId = StateId::AwaitServerChangeCipherSpec;

    /// change_cipher_spec.
    pub fn on(self, turn: &mut Turn<'_, P>, input: Input<'_>) -> Result<State<P>, Cause> {
        let Input::ChangeCipherSpec = input else {
            return Err(input.out_of_sequence(Self::ID));
        };
        turn.read.install(self.ending.keys.keys(turn.provider, Role::Server)?);
        turn.meter.charge(Phase::KeySchedule);
        Ok(State::AwaitServerFinished12(AwaitServerFinished {
            ending: self.ending,
        }))
    }
}

/// The server's Finished is next.
pub struct AwaitServerFinished<P: Provider> {
    ending: Ending<P>,
}

impl<P: Provider> AwaitServerFinished<P> {
    /// Its name.
    pub const ID: StateId = StateId::AwaitServerFinished12;

    /// Finished; when resumed, ours answers it.
    pub fn on(self, turn: &mut Turn<'_, P>, input: Input<'_>) -> Result<State<P>, Cause> {
        let mut ending = self.ending;
        let message = input.expect(Finished::KIND.wire(), Self::ID)?;
        let finished = Finished::decode(message.body, VERIFY_DATA_BYTES_12)?;
        let (hash, digest) = (ending.progress.suite.hash(), ending.progress.transcript.digest());
        let expected = prf::verify_data(turn.provider, hash, &ending.master, Role::Server, &digest)?;
        if !expected.is(finished.verify_data) {
            return Err(Cause::BadFinished);
        }
        ending.progress.transcript.add(message.raw);
        turn.meter.charge(Phase::KeySchedule);
        if ending.is_resumed {
            finish(turn, &mut ending)?;
        } else if !ending.progress.session_id.is_empty() {
            let id = ending.progress.session_id.clone();
            stage(turn, &ending, &id, &[], 0)?;
        }
        if let Some(keep) = &mut turn.keep {
            keep.commit();
        }
        Ok(State::Connected(Connected::Tls12 { refused: false }))
    }
}
