//! The TLS 1.2 server (RFC 5246): full handshakes by ECDHE (RFC 8422) with AEADs, extended master secrets (RFC 7627), and resumption by
//! ticket (RFC 5077).
//!
//! No session ids of ours: a session without a ticket is not resumed. A resumed session gets no new ticket, for that would prolong the life
//! of one master secret beyond what the first ticket was given.

use super::connected::Connected;
use super::hello::Terms12;
use super::prf::{self, KeyBlock};
use super::proof::{self, LeafKey};
use super::ticket::{Binding, Resumable, TICKET_BYTES_MAX};
use super::{Input, Message, State, Transcript, Turn};
use crate::cause::Cause;
use crate::certificate::Role;
use crate::config::{ClientAuth, ServerConfig};
use crate::crypto::{Exchange, Hash, HashAlgorithm, Provider, SIGNATURE_BYTES_MAX, Secret, SigningKey};
use crate::message::{
    Authorities, CERTIFICATE_TYPE_ECDSA, CERTIFICATE_TYPE_RSA, Certificate12, CertificateRequest12, CertificateVerify,
    ClientHello, ClientKeyExchange, DOWNGRADE_TO_12, Finished, NewSessionTicket12, RANDOM_BYTES, ServerHello,
    ServerHelloDone, ServerKeyExchange, U16List, VERIFY_DATA_BYTES_12, Writer,
};
use crate::meter::Phase;
use crate::record::{CONTENT_BYTES_MAX, SizeLimits};
use crate::state::StateId;
use crate::suite::{CipherSuite, SignatureScheme, Version};

/// What every state of a TLS 1.2 handshake carries.
struct Progress<P: Provider> {
    suite: CipherSuite,
    client_random: [u8; RANDOM_BYTES],
    server_random: [u8; RANDOM_BYTES],
    transcript: Transcript<P>,
    /// What the ticket that we promised will be bound to.
    ticket: Option<Binding>,
}

impl<P: Provider> Progress<P> {
    fn new(
        turn: &mut Turn<'_, P>,
        hello: &ClientHello<'_>,
        suite: CipherSuite,
        transcript: Transcript<P>,
    ) -> Result<Self, Cause> {
        let mut server_random = [0; RANDOM_BYTES];
        turn.random.fill(&mut server_random)?;
        if turn.server()?.versions.contains(&Version::Tls13)
            && let Some(end) = server_random.last_chunk_mut()
        {
            // A client that speaks 1.3 too learns that its hello was changed on the way (RFC 8446 §4.1.3).
            *end = DOWNGRADE_TO_12;
        }
        Ok(Self {
            suite,
            client_random: *hello.random,
            server_random,
            transcript,
            ticket: None,
        })
    }

    /// Gathers one of our messages.
    fn send(
        &mut self,
        turn: &mut Turn<'_, P>,
        encode: impl FnOnce(&mut Writer<'_>) -> Result<(), Cause>,
    ) -> Result<(), Cause> {
        let raw = turn.flight.add(|spare| Writer::fill(spare, encode))?;
        self.transcript.add(raw);
        Ok(())
    }

    const fn hash(&self) -> HashAlgorithm {
        self.suite.hash()
    }
}

/// Answers a ClientHello by which TLS 1.2 was chosen: with our whole flight, or, when its ticket resumes a session, with our Finished.
pub(super) fn begin<P: Provider>(
    turn: &mut Turn<'_, P>,
    hello: &ClientHello<'_>,
    message: Message<'_>,
) -> Result<State<P>, Cause> {
    if hello
        .renegotiation_info
        .is_some_and(|connection| !connection.is_empty())
    {
        // RFC 5746 §3.6: there is no connection yet that it could be about.
        return Err(Cause::Renegotiation);
    }
    let binding = match (turn.server()?.tickets, hello.session_ticket) {
        (Some(_), Some(_)) => Some(Binding::of(
            turn.provider,
            turn.server()?,
            turn.agreed.server_name.as_deref(),
        )?),
        _ => None,
    };
    turn.agreed.extended_master_secret = hello.extended_master_secret;
    let session = match &binding {
        Some(binding) => resumable(turn, hello, binding)?,
        None => None,
    };
    turn.meter.charge(Phase::RecordCrypto);
    match session {
        Some(session) => resume(turn, hello, message, session),
        None => begin_full(turn, hello, message, binding),
    }
}

/// The session of the client's ticket, if it may be resumed by this hello.
///
/// Errors: [`Cause::MasterSecretChanged`] for one that had an extended master secret and now would not (RFC 7627 §5.3).
fn resumable<P: Provider>(
    turn: &Turn<'_, P>,
    hello: &ClientHello<'_>,
    binding: &Binding,
) -> Result<Option<Resumable>, Cause> {
    let config = turn.server()?;
    let (Some(keys), Some(ticket)) = (config.tickets, hello.session_ticket) else {
        return Ok(None);
    };
    let Some(session) = keys.open(binding, ticket, turn.now) else {
        return Ok(None);
    };
    // A session keeps its suite (RFC 5246 §F.1.4), and with it its version.
    let suite = session.suite;
    if suite.version() != Version::Tls12 || !config.suites.contains(&suite) || !hello.suites.contains(suite as u16) {
        return Ok(None);
    }
    match (session.is_extended, hello.extended_master_secret) {
        (true, false) => Err(Cause::MasterSecretChanged),
        (false, true) => Ok(None),
        (true, true) | (false, false) => Ok(Some(session)),
    }
}

/// The abbreviated handshake (RFC 5077 §3.1): we finish first.
fn resume<P: Provider>(
    turn: &mut Turn<'_, P>,
    hello: &ClientHello<'_>,
    message: Message<'_>,
    session: Resumable,
) -> Result<State<P>, Cause> {
    let Resumable {
        suite, secret, peer, ..
    } = session;
    turn.agreed.suite = Some(suite);
    turn.agreed.resumed = true;
    turn.agreed.peer = peer;
    let mut transcript = Transcript::start(turn.provider, suite.hash())?;
    transcript.add(message.raw);
    let mut progress = Progress::new(turn, hello, suite, transcript)?;
    // The echoed id is how a client tells (RFC 5077 §3.4).
    answer(turn, hello, &mut progress, hello.session_id)?;
    turn.meter.charge(Phase::Parse);
    let mut ending = Ending::new(turn.provider, progress, secret, true)?;
    finish(turn, &mut ending)?;
    Ok(State::AwaitClientChangeCipherSpec(AwaitClientChangeCipherSpec {
        ending,
    }))
}

/// The full handshake: everything up to ServerHelloDone.
fn begin_full<P: Provider>(
    turn: &mut Turn<'_, P>,
    hello: &ClientHello<'_>,
    message: Message<'_>,
    ticket: Option<Binding>,
) -> Result<State<P>, Cause> {
    let (config, provider) = (turn.server()?, turn.provider);
    let Terms12 {
        suite,
        group,
        identity,
        scheme,
    } = Terms12::choose(config, hello)?;
    turn.agreed.suite = Some(suite);
    turn.agreed.group = Some(group);
    turn.agreed.own_scheme = Some(scheme);
    let asks = match config.client_auth {
        ClientAuth::None => false,
        ClientAuth::Requested => config.verifier.is_some(),
        ClientAuth::Required => true,
    };
    // A CertificateVerify may be over the other hash than the suite's.
    let mut transcript = if asks {
        Transcript::start_both(provider, suite.hash())?
    } else {
        Transcript::start(provider, suite.hash())?
    };
    transcript.add(message.raw);
    let mut progress = Progress::new(turn, hello, suite, transcript)?;
    progress.ticket = ticket;
    // No id: the session cannot be resumed by one, and what a client of 1.3 puts there must not come back (RFC 8446 §4.1.3).
    answer(turn, hello, &mut progress, &[])?;
    progress.send(turn, |w| Certificate12::encode(identity.chain, w))?;
    turn.meter.charge(Phase::Parse);

    let exchange = provider.exchange(group, turn.random)?;
    turn.meter.charge(Phase::KeyExchange);
    send_share(turn, &mut progress, &exchange, identity.key, scheme)?;
    if asks {
        request_certificate(turn, config, &mut progress)?;
    }
    progress.send(turn, |w| ServerHelloDone.encode(w))?;
    turn.meter.charge(Phase::Parse);
    Ok(if asks {
        State::AwaitClientCertificate12(AwaitClientCertificate { progress, exchange })
    } else {
        State::AwaitClientKeyExchange(AwaitClientKeyExchange {
            progress,
            exchange,
            key: None,
        })
    })
}

/// ServerHello, and both sides held to the limits of the client's: record_size_limit (RFC 8449), or else max_fragment_length (RFC 6066 §4),
/// which it replaces.
fn answer<P: Provider>(
    turn: &mut Turn<'_, P>,
    hello: &ClientHello<'_>,
    progress: &mut Progress<P>,
    session_id: &[u8],
) -> Result<(), Cause> {
    const UNCOMPRESSED: &[u8] = &[0];
    let random = progress.server_random;
    let mut answer = ServerHello {
        ec_point_formats: hello.ec_point_formats.map(|_| UNCOMPRESSED),
        session_ticket: progress.ticket.is_some(),
        extended_master_secret: hello.extended_master_secret,
        renegotiation_info: hello.offers_renegotiation_info().then_some(&[]),
        ..ServerHello::bare(Version::Tls12.wire(), &random, session_id, progress.suite as u16)
    };
    if let Some(limit) = hello.record_size_limit {
        let ours = turn.server()?.record_size_limit.unwrap_or(CONTENT_BYTES_MAX as u16);
        turn.flight.limit(SizeLimits::NONE.with_record_size_limit(limit));
        turn.read.limit(SizeLimits::NONE.with_record_size_limit(ours));
        answer.record_size_limit = Some(ours);
    } else if let Some(limits) = hello
        .max_fragment_length
        .and_then(|code| SizeLimits::NONE.with_max_fragment_length(code))
    {
        turn.flight.limit(limits);
        turn.read.limit(limits);
        answer.max_fragment_length = hello.max_fragment_length;
    }
    progress.send(turn, |w| answer.encode(w))
}

/// ServerKeyExchange: our share, signed with both randoms (RFC 8422 §5.4).
fn send_share<P: Provider>(
    turn: &mut Turn<'_, P>,
    progress: &mut Progress<P>,
    exchange: &P::Exchange,
    key: &P::SigningKey,
    scheme: SignatureScheme,
) -> Result<(), Cause> {
    let mut params = [0; ServerKeyExchange::PARAMS_BYTES_MAX];
    let group = exchange.group() as u16;
    let bytes = Writer::fill(&mut params, |w| {
        ServerKeyExchange::encode_params(w, group, exchange.share().bytes())
    })?;
    let params = params.get(..bytes).ok_or(Cause::Internal)?;
    let mut signed = turn.provider.hash(scheme.hash())?;
    signed.update(&progress.client_random);
    signed.update(&progress.server_random);
    signed.update(params);
    turn.meter.charge(Phase::Parse);
    let mut signature = [0; SIGNATURE_BYTES_MAX];
    let bytes = key.sign(scheme, signed.digest().bytes(), turn.random, &mut signature)?;
    turn.meter.charge(Phase::Signature);
    let signature = signature.get(..bytes).ok_or(Cause::Internal)?;
    progress.send(turn, |w| ServerKeyExchange::encode(w, params, scheme as u16, signature))
}

fn request_certificate<P: Provider>(
    turn: &mut Turn<'_, P>,
    config: &ServerConfig<'_, P>,
    progress: &mut Progress<P>,
) -> Result<(), Cause> {
    let schemes: heapless::Vec<_, { SignatureScheme::ALL.len() }> = config
        .client_schemes
        .iter()
        .map(|scheme| (*scheme as u16).to_be_bytes())
        .collect();
    let request = CertificateRequest12 {
        certificate_types: &[CERTIFICATE_TYPE_ECDSA, CERTIFICATE_TYPE_RSA],
        signature_algorithms: U16List::new(&schemes),
        authorities: Authorities::new(config.verifier.map_or(&[], |verifier| verifier.authorities())),
    };
    progress.send(turn, |w| request.encode(w))
}

/// Our flight was sent, a certificate was asked for.
pub struct AwaitClientCertificate<P: Provider> {
    progress: Progress<P>,
    exchange: P::Exchange,
}

impl<P: Provider> AwaitClientCertificate<P> {
    /// Its name.
    pub const ID: StateId = StateId::AwaitClientCertificate12;

    /// A chain, or none where that is allowed.
    pub fn on(self, turn: &mut Turn<'_, P>, input: Input<'_>) -> Result<State<P>, Cause> {
        let Self { mut progress, exchange } = self;
        let message = input.expect(Certificate12::KIND.wire(), Self::ID)?;
        let chain = Certificate12::decode(message.body)?.chain;
        progress.transcript.add(message.raw);
        turn.meter.charge(Phase::Parse);
        let config = turn.server()?;
        let key = match chain.leaf() {
            None if config.client_auth == ClientAuth::Required => return Err(Cause::ClientCertificateMissing),
            None => None,
            Some(leaf) => {
                let verifier = config.verifier.ok_or(Cause::UnknownCa)?;
                // The chain first: when it is refused, the certificate at fault is kept for the log.
                let verified = turn.verify(verifier, chain.as_slice(), Role::Client, None)?;
                let key = LeafKey::copy(verifier.public_key(leaf)?)?;
                turn.agreed.peer = Some(verified);
                Some(key)
            }
        };
        Ok(State::AwaitClientKeyExchange(AwaitClientKeyExchange {
            progress,
            exchange,
            key,
        }))
    }
}

/// The client's share is next.
pub struct AwaitClientKeyExchange<P: Provider> {
    progress: Progress<P>,
    exchange: P::Exchange,
    /// The client's key, when it sent a certificate.
    key: Option<LeafKey>,
}

impl<P: Provider> AwaitClientKeyExchange<P> {
    /// Its name.
    pub const ID: StateId = StateId::AwaitClientKeyExchange;

    /// ClientKeyExchange: the master secret is made.
    pub fn on(self, turn: &mut Turn<'_, P>, input: Input<'_>) -> Result<State<P>, Cause> {
        let Self {
            mut progress,
            exchange,
            key,
        } = self;
        let message = input.expect(ClientKeyExchange::KIND.wire(), Self::ID)?;
        let theirs = ClientKeyExchange::decode(message.body)?;
        progress.transcript.add(message.raw);
        turn.meter.charge(Phase::Parse);
        let premaster = exchange.agree(theirs.share).map_err(proof::bad_share)?;
        turn.meter.charge(Phase::KeyExchange);
        let (provider, hash) = (turn.provider, progress.hash());
        let master = if turn.agreed.extended_master_secret {
            prf::extended_master_secret(provider, hash, &premaster, &progress.transcript.digest())?
        } else {
            let (client, server) = (&progress.client_random, &progress.server_random);
            prf::master_secret(provider, hash, &premaster, client, server)?
        };
        let ending = Ending::new(provider, progress, master, false)?;
        turn.meter.charge(Phase::KeySchedule);
        Ok(match key {
            Some(key) => State::AwaitClientCertificateVerify12(AwaitClientCertificateVerify { ending, key }),
            None => State::AwaitClientChangeCipherSpec(AwaitClientChangeCipherSpec { ending }),
        })
    }
}

/// What the end of a handshake needs.
struct Ending<P: Provider> {
    progress: Progress<P>,
    master: Secret,
    keys: KeyBlock,
    /// We have finished, and the client's answer is the end.
    is_resumed: bool,
}

impl<P: Provider> Ending<P> {
    fn new(provider: &P, progress: Progress<P>, master: Secret, is_resumed: bool) -> Result<Self, Cause> {
        let (client, server) = (&progress.client_random, &progress.server_random);
        let keys = KeyBlock::new(provider, progress.suite, &master, client, server)?;
        Ok(Self {
            progress,
            master,
            keys,
            is_resumed,
        })
    }

    /// `verify_data` of that side, over everything so far.
    fn verify_data(&self, provider: &P, sender: Role) -> Result<Secret, Cause> {
        let (hash, digest) = (self.progress.hash(), self.progress.transcript.digest());
        prf::verify_data(provider, hash, &self.master, sender, &digest)
    }
}

/// Sends change_cipher_spec and Finished.
fn finish<P: Provider>(turn: &mut Turn<'_, P>, ending: &mut Ending<P>) -> Result<(), Cause> {
    turn.flight.change_cipher_spec()?;
    turn.flight.install(ending.keys.keys(turn.provider, Role::Server)?)?;
    let verify_data = ending.verify_data(turn.provider, Role::Server)?;
    let ours = Finished {
        verify_data: verify_data.bytes(),
    };
    ending.progress.send(turn, |w| ours.encode(w))?;
    turn.meter.charge(Phase::KeySchedule);
    Ok(())
}

/// The client proves its certificate.
pub struct AwaitClientCertificateVerify<P: Provider> {
    ending: Ending<P>,
    key: LeafKey,
}

impl<P: Provider> AwaitClientCertificateVerify<P> {
    /// Its name.
    pub const ID: StateId = StateId::AwaitClientCertificateVerify12;

    /// CertificateVerify: over the messages themselves, in the scheme's hash (RFC 5246 §7.4.8).
    pub fn on(self, turn: &mut Turn<'_, P>, input: Input<'_>) -> Result<State<P>, Cause> {
        let Self { mut ending, key } = self;
        let message = input.expect(CertificateVerify::KIND.wire(), Self::ID)?;
        let proof = CertificateVerify::decode(message.body)?;
        let schemes = turn.server()?.client_schemes;
        let scheme = proof::offered(
            schemes,
            key.kind(),
            Version::Tls12,
            proof.scheme,
            CertificateVerify::KIND,
        )?;
        let digest = ending
            .progress
            .transcript
            .digest_in(scheme.hash())
            .ok_or(Cause::Internal)?;
        turn.meter.charge(Phase::Parse);
        key.check(turn.provider, scheme, &digest, proof.signature)?;
        turn.meter.charge(Phase::Verify);
        turn.agreed.peer_scheme = Some(scheme);
        ending.progress.transcript.add(message.raw);
        Ok(State::AwaitClientChangeCipherSpec(AwaitClientChangeCipherSpec {
            ending,
        }))
    }
}

/// The client turns its keys on.
pub struct AwaitClientChangeCipherSpec<P: Provider> {
    ending: Ending<P>,
}

impl<P: Provider> AwaitClientChangeCipherSpec<P> {
    /// Its name.
    pub const ID: StateId = StateId::AwaitClientChangeCipherSpec;

    /// change_cipher_spec.
    pub fn on(self, turn: &mut Turn<'_, P>, input: Input<'_>) -> Result<State<P>, Cause> {
        let Input::ChangeCipherSpec = input else {
            return Err(input.out_of_sequence(Self::ID));
        };
        turn.read.install(self.ending.keys.keys(turn.provider, Role::Client)?);
        turn.meter.charge(Phase::KeySchedule);
        Ok(State::AwaitClientFinished12(AwaitClientFinished {
            ending: self.ending,
        }))
    }
}

/// The client's Finished is next.
pub struct AwaitClientFinished<P: Provider> {
    ending: Ending<P>,
}

impl<P: Provider> AwaitClientFinished<P> {
    /// Its name.
    pub const ID: StateId = StateId::AwaitClientFinished12;

    /// Finished; in a full handshake the ticket that we promised and our Finished answer it.
    pub fn on(self, turn: &mut Turn<'_, P>, input: Input<'_>) -> Result<State<P>, Cause> {
        let mut ending = self.ending;
        let message = input.expect(Finished::KIND.wire(), Self::ID)?;
        let finished = Finished::decode(message.body, VERIFY_DATA_BYTES_12)?;
        if !ending
            .verify_data(turn.provider, Role::Client)?
            .is(finished.verify_data)
        {
            return Err(Cause::BadFinished);
        }
        ending.progress.transcript.add(message.raw);
        turn.meter.charge(Phase::KeySchedule);
        if !ending.is_resumed {
            if let Some(binding) = ending.progress.ticket {
                send_ticket(turn, &mut ending, &binding)?;
            }
            finish(turn, &mut ending)?;
        }
        Ok(State::Connected(Connected::Tls12 { refused: false }))
    }
}

/// NewSessionTicket: an empty one when the client's subject is longer than what a ticket holds (RFC 5077 §3.3).
fn send_ticket<P: Provider>(turn: &mut Turn<'_, P>, ending: &mut Ending<P>, binding: &Binding) -> Result<(), Cause> {
    let keys = turn.server()?.tickets.ok_or(Cause::Internal)?;
    let peer = turn.agreed.peer.clone();
    let mut bytes = [0; TICKET_BYTES_MAX];
    let mut ticket = Writer::new(&mut bytes);
    if peer.as_ref().is_none_or(|peer| !peer.cut) {
        let session = Resumable {
            suite: ending.progress.suite,
            secret: ending.master.clone(),
            is_extended: turn.agreed.extended_master_secret,
            issued: turn.now,
            peer,
        };
        keys.seal(turn.random, binding, &session, &mut ticket)?;
        turn.agreed.tickets_given = 1;
    }
    let message = NewSessionTicket12 {
        lifetime_hint_seconds: keys.lifetime_seconds(),
        ticket: ticket.as_slice(),
    };
    ending.progress.send(turn, |w| message.encode(w))?;
    turn.meter.charge(Phase::RecordCrypto);
    Ok(())
}

#[cfg(all(test, feature = "fast"))]
mod tests;
