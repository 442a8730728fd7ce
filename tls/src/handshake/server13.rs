//! The TLS 1.3 server (RFC 8446): full handshakes, HelloRetryRequest, resumption by ticket with a fresh key exchange.

use super::connected::Connected;
use super::hello::{Terms13, missing, signer_13};
use super::key_schedule::{self, Early, Master};
use super::proof::{self, LeafKey};
use super::second_hello::constant_parts;
use super::ticket::{Binding, Resumable, TICKET_BYTES_MAX};
use super::{EARLY_DATA_BYTES_MAX, Input, Message, State, Transcript, Turn};
use crate::cause::Cause;
use crate::certificate::{Role, Verified};
use crate::config::{ClientAuth, ServerConfig};
use crate::crypto::{Exchange, Provider, Secret};
use crate::message::{
    Authorities, Certificate13, CertificateRequest13, CertificateVerify, ClientHello, EncryptedExtensions,
    ExtensionType, Finished, HelloRetryRequest, KeyShare, NewSessionTicket13, RANDOM_BYTES, ServerHello, U16List,
    Writer,
};
use crate::meter::Phase;
use crate::record::{CONTENT_BYTES_MAX, SizeLimits};
use crate::state::StateId;
use crate::suite::{CipherSuite, SignatureScheme, Version};

/// PSKs of one hello that are tried. When full: the rest is not looked at. Clients offer one or two.
const PSKS_MAX: usize = 4;
/// Tickets after one handshake, whatever is configured: each has a one-byte nonce, and a client keeps few.
const TICKETS_MAX: u8 = 16;

const ILLEGAL_HELLO: Cause = Cause::IllegalParameter(ClientHello::KIND.wire());

/// Takes a first hello.
pub(super) fn begin<P: Provider>(
    turn: &mut Turn<'_, P>,
    hello: &ClientHello<'_>,
    message: Message<'_>,
) -> Result<State<P>, Cause> {
    let terms = Terms13::choose(turn.server()?, hello)?;
    turn.agreed.suite = Some(terms.suite);
    turn.agreed.group = Some(terms.group);
    if hello.early_data {
        *turn.early_data_left = EARLY_DATA_BYTES_MAX;
    }
    let transcript = Transcript::start(turn.provider, terms.suite.hash())?;
    match terms.share {
        Some(share) => accept(turn, hello, message, terms.suite, share, transcript),
        None => ask_again(turn, hello, message, &terms, transcript),
    }
}

/// Sends a HelloRetryRequest.
fn ask_again<P: Provider>(
    turn: &mut Turn<'_, P>,
    hello: &ClientHello<'_>,
    message: Message<'_>,
    terms: &Terms13<'_>,
    mut transcript: Transcript<P>,
) -> Result<State<P>, Cause> {
    turn.agreed.retried = true;
    transcript.add(message.raw);
    transcript.replace_by_message_hash(turn.provider)?;
    let retry = HelloRetryRequest {
        session_id: hello.session_id,
        suite: terms.suite as u16,
        version: Version::Tls13.wire(),
        group: Some(terms.group as u16),
        cookie: None,
    };
    transcript.add(turn.flight.add(|spare| Writer::fill(spare, |w| retry.encode(w)))?);
    compatibility(turn, hello)?;
    let first = constant_parts(turn.provider, message.body)?;
    turn.meter.charge(Phase::KeySchedule);
    Ok(State::AwaitSecondClientHello(AwaitSecondClientHello {
        transcript,
        suite: terms.suite,
        first,
    }))
}

/// For old middleboxes' sake: after our first message, to a client that wants it (RFC 8446 §D.4).
fn compatibility<P: Provider>(turn: &mut Turn<'_, P>, hello: &ClientHello<'_>) -> Result<(), Cause> {
    if hello.session_id.is_empty() {
        Ok(())
    } else {
        turn.flight.change_cipher_spec()
    }
}

/// A HelloRetryRequest was sent.
pub struct AwaitSecondClientHello<P: Provider> {
    transcript: Transcript<P>,
    suite: CipherSuite,
    /// What must be as it was.
    first: Secret,
}

impl<P: Provider> AwaitSecondClientHello<P> {
    /// Its name.
    pub const ID: StateId = StateId::AwaitSecondClientHello;

    /// The same hello with the share that was asked for, and that alone.
    pub fn on(self, turn: &mut Turn<'_, P>, input: Input<'_>) -> Result<State<P>, Cause> {
        let message = input.expect(ClientHello::KIND.wire(), Self::ID)?;
        let hello = ClientHello::decode(message.body)?;
        if hello.early_data || !self.first.is(constant_parts(turn.provider, message.body)?.bytes()) {
            return Err(ILLEGAL_HELLO);
        }
        // What was sent early came before it.
        *turn.early_data_left = 0;
        let terms = Terms13::choose(turn.server()?, &hello)?;
        turn.meter.charge(Phase::Parse);
        let is_asked_for = terms.suite == self.suite && turn.agreed.group == Some(terms.group);
        let is_alone = hello.key_share.is_some_and(|shares| shares.iter().count() == 1);
        match terms.share {
            Some(share) if is_asked_for && is_alone => {
                accept(turn, &hello, message, self.suite, share, self.transcript)
            }
            _ => Err(ILLEGAL_HELLO),
        }
    }
}

/// A PSK of ours that the client proved to have.
struct Resumed {
    index: u16,
    early: Early,
    peer: Option<Verified>,
}

/// The first of the offered tickets that opens and suits.
///
/// Errors: [`Cause::BadBinder`].
fn resume<P: Provider>(
    turn: &mut Turn<'_, P>,
    hello: &ClientHello<'_>,
    message: Message<'_>,
    suite: CipherSuite,
    transcript: &Transcript<P>,
    binding: &Binding,
) -> Result<Option<Resumed>, Cause> {
    let config = turn.server()?;
    let (Some(keys), Some(offered)) = (config.tickets, hello.pre_shared_key) else {
        return Ok(None);
    };
    for (index, (psk, binder)) in (0..).zip(offered.identities().zip(offered.binders()).take(PSKS_MAX)) {
        let session: Resumable = match keys.open(binding, psk.identity, turn.now) {
            Some(session) if session.suite.version() == Version::Tls13 && session.suite.hash() == suite.hash() => {
                session
            }
            _ => continue,
        };
        let truncated = message.raw.len().checked_sub(offered.binders_bytes());
        let truncated = truncated
            .and_then(|bytes| message.raw.get(..bytes))
            .ok_or(Cause::Internal)?;
        let mut so_far = transcript.fork()?;
        so_far.add(truncated);
        let early = Early::resumption(turn.provider, suite.hash(), &session.secret)?;
        if !early.binder(turn.provider, &so_far.digest())?.is(binder) {
            return Err(Cause::BadBinder);
        }
        return Ok(Some(Resumed {
            index,
            early,
            peer: session.peer,
        }));
    }
    Ok(None)
}

/// Our whole flight.
fn accept<P: Provider>(
    turn: &mut Turn<'_, P>,
    hello: &ClientHello<'_>,
    message: Message<'_>,
    suite: CipherSuite,
    share: &[u8],
    mut transcript: Transcript<P>,
) -> Result<State<P>, Cause> {
    const PSK_DHE_KE: u8 = 1;
    let config = turn.server()?;
    let (provider, hash) = (turn.provider, suite.hash());
    let takes_tickets = hello
        .psk_key_exchange_modes
        .is_some_and(|modes| modes.contains(&PSK_DHE_KE));
    let binding = match config.tickets {
        Some(_) if takes_tickets => Some(Binding::of(provider, config, None)?),
        _ => None,
    };
    let resumed = match &binding {
        Some(binding) => resume(turn, hello, message, suite, &transcript, binding)?,
        None => None,
    };
    turn.meter.charge(Phase::KeySchedule);
    let signer = match (&resumed, hello.signature_algorithms) {
        (Some(_), _) => None,
        (None, Some(schemes)) => Some(signer_13(config, schemes)?),
        (None, None) => return Err(missing(ExtensionType::SignatureAlgorithms)),
    };
    transcript.add(message.raw);

    // ServerHello.
    let group = turn.agreed.group.ok_or(Cause::Internal)?;
    if share.len() != group.share_bytes() {
        return Err(ILLEGAL_HELLO);
    }
    turn.meter.charge(Phase::Parse);
    let exchange = provider.exchange(group, turn.random)?;
    let own_share = exchange.share();
    let shared = exchange.agree(share).map_err(proof::bad_share)?;
    turn.meter.charge(Phase::KeyExchange);
    let mut random = [0; RANDOM_BYTES];
    turn.random.fill(&mut random)?;
    let answer = ServerHello {
        supported_version: Some(Version::Tls13.wire()),
        key_share: Some(KeyShare {
            group: group as u16,
            share: own_share.bytes(),
        }),
        pre_shared_key: resumed.as_ref().map(|resumed| resumed.index),
        ..ServerHello::bare(Version::Tls12.wire(), &random, hello.session_id, suite as u16)
    };
    transcript.add(turn.flight.add(|spare| Writer::fill(spare, |w| answer.encode(w)))?);
    if !turn.agreed.retried {
        compatibility(turn, hello)?;
    }
    turn.meter.charge(Phase::Parse);

    // Everything from here on is protected.
    let (early, peer) = match resumed {
        Some(resumed) => (resumed.early, Some(resumed.peer)),
        None => (Early::fresh(provider, hash)?, None),
    };
    let schedule = early.handshake(provider, &shared)?;
    let digest = transcript.digest();
    let client_handshake = schedule.client_traffic(provider, &digest)?;
    let server_handshake = schedule.server_traffic(provider, &digest)?;
    turn.flight
        .install(key_schedule::traffic_keys(provider, suite, &server_handshake)?)?;
    turn.read
        .install(key_schedule::traffic_keys(provider, suite, &client_handshake)?);
    turn.read.allow_plain_alert();
    let extensions = limit_records(turn, config, hello)?;
    turn.meter.charge(Phase::KeySchedule);
    transcript.add(turn.flight.add(|spare| Writer::fill(spare, |w| extensions.encode(w)))?);
    let asks = signer.is_some()
        && match config.client_auth {
            ClientAuth::None => false,
            ClientAuth::Requested => config.verifier.is_some(),
            ClientAuth::Required => true,
        };
    if let Some((identity, scheme)) = signer {
        if asks {
            request_certificate(turn, config, &mut transcript)?;
        }
        let chain = identity.chain;
        transcript.add(
            turn.flight
                .add(|spare| Writer::fill(spare, |w| Certificate13::encode(chain, w)))?,
        );
        let digest = proof::digest_13(provider, Role::Server, &transcript.digest(), scheme.hash())?;
        transcript.add(proof::sign(turn, identity.key, scheme, &digest)?);
        turn.agreed.own_scheme = Some(scheme);
        turn.meter.charge(Phase::Signature);
    }
    let verify_data = key_schedule::finished(provider, hash, &server_handshake, &transcript.digest())?;
    let finished = Finished {
        verify_data: verify_data.bytes(),
    };
    transcript.add(turn.flight.add(|spare| Writer::fill(spare, |w| finished.encode(w)))?);
    let master = schedule.master(provider)?;
    let digest = transcript.digest();
    let client_application = master.client_traffic(provider, &digest)?;
    let server_application = master.server_traffic(provider, &digest)?;
    turn.flight
        .install(key_schedule::traffic_keys(provider, suite, &server_application)?)?;
    turn.meter.charge(Phase::KeySchedule);

    turn.agreed.extended_master_secret = true;
    if let Some(peer) = peer {
        turn.agreed.resumed = true;
        turn.agreed.peer = peer;
    }
    let pending = Pending {
        transcript,
        suite,
        client_handshake,
        client_application,
        server_application,
        master,
        binding,
    };
    Ok(if asks {
        State::AwaitClientCertificate(AwaitClientCertificate { pending })
    } else {
        State::AwaitClientFinished(AwaitClientFinished { pending, refused: None })
    })
}

/// Holds both sides to the limits of the hello: record_size_limit (RFC 8449), or else max_fragment_length (RFC 6066 §4), which it replaces.
fn limit_records<'e, P: Provider>(
    turn: &mut Turn<'_, P>,
    config: &ServerConfig<'_, P>,
    hello: &ClientHello<'_>,
) -> Result<EncryptedExtensions<'e>, Cause> {
    let mut extensions = EncryptedExtensions::default();
    if let Some(limit) = hello.record_size_limit {
        // In TLS 1.3 the type inside counts too.
        let ours = config
            .record_size_limit
            .unwrap_or(CONTENT_BYTES_MAX as u16)
            .saturating_add(1);
        turn.flight.limit(SizeLimits::NONE.with_record_size_limit(limit));
        turn.read.limit(SizeLimits::NONE.with_record_size_limit(ours));
        extensions.record_size_limit = Some(ours);
    } else if let Some(code) = hello.max_fragment_length {
        let limits = SizeLimits::NONE.with_max_fragment_length(code).ok_or(ILLEGAL_HELLO)?;
        turn.flight.limit(limits);
        turn.read.limit(limits);
        extensions.max_fragment_length = Some(code);
    }
    Ok(extensions)
}

fn request_certificate<P: Provider>(
    turn: &mut Turn<'_, P>,
    config: &ServerConfig<'_, P>,
    transcript: &mut Transcript<P>,
) -> Result<(), Cause> {
    let mut schemes = [[0; 2]; SignatureScheme::ALL.len()];
    let mut count = 0;
    for (slot, scheme) in schemes.iter_mut().zip(config.client_schemes) {
        *slot = (*scheme as u16).to_be_bytes();
        count += 1;
    }
    let authorities = config.verifier.map_or(&[][..], |verifier| verifier.authorities());
    let request = CertificateRequest13 {
        signature_algorithms: U16List::new(schemes.get(..count).unwrap_or_default()),
        signature_algorithms_cert: None,
        authorities: (!authorities.is_empty()).then(|| Authorities::new(authorities)),
    };
    transcript.add(turn.flight.add(|spare| Writer::fill(spare, |w| request.encode(w)))?);
    Ok(())
}

/// What waits for the client's flight.
struct Pending<P: Provider> {
    transcript: Transcript<P>,
    suite: CipherSuite,
    client_handshake: Secret,
    client_application: Secret,
    server_application: Secret,
    master: Master,
    /// What tickets will be bound to, if the client takes any.
    binding: Option<Binding>,
}

/// Our flight was sent, a certificate was asked for.
pub struct AwaitClientCertificate<P: Provider> {
    pending: Pending<P>,
}

impl<P: Provider> AwaitClientCertificate<P> {
    /// Its name.
    pub const ID: StateId = StateId::AwaitClientCertificate;

    /// A chain, or none. A refused one is told only after the client's Finished: until that is written many clients read nothing, and would
    /// meet a reset instead of the alert.
    pub fn on(self, turn: &mut Turn<'_, P>, input: Input<'_>) -> Result<State<P>, Cause> {
        let Self { mut pending } = self;
        let message = input.expect(Certificate13::KIND.wire(), Self::ID)?;
        let chain = Certificate13::decode(message.body)?.chain;
        pending.transcript.add(message.raw);
        turn.meter.charge(Phase::Parse);
        let config = turn.server()?;
        let Some(leaf) = chain.leaf() else {
            let is_required = config.client_auth == ClientAuth::Required;
            let refused = is_required.then_some(Cause::ClientCertificateMissing);
            return Ok(State::AwaitClientFinished(AwaitClientFinished { pending, refused }));
        };
        let verifier = config.verifier.ok_or(Cause::UnknownCa)?;
        let verified = turn.verify(verifier, chain.as_slice(), Role::Client, None);
        let key = verified.and_then(|verified| {
            turn.agreed.peer = Some(verified);
            LeafKey::copy(verifier.public_key(leaf)?)
        });
        Ok(State::AwaitClientCertificateVerify(AwaitClientCertificateVerify {
            pending,
            key,
        }))
    }
}

/// The client's certificate has come.
pub struct AwaitClientCertificateVerify<P: Provider> {
    pending: Pending<P>,
    /// Or why the chain is refused.
    key: Result<LeafKey, Cause>,
}

impl<P: Provider> AwaitClientCertificateVerify<P> {
    /// Its name.
    pub const ID: StateId = StateId::AwaitClientCertificateVerify;

    /// The proof. For a chain that is refused anyway the signature is not worth checking.
    pub fn on(self, turn: &mut Turn<'_, P>, input: Input<'_>) -> Result<State<P>, Cause> {
        let Self { mut pending, key } = self;
        let message = input.expect(CertificateVerify::KIND.wire(), Self::ID)?;
        let proof = CertificateVerify::decode(message.body)?;
        let refused = match key {
            Ok(key) => {
                let schemes = turn.server()?.client_schemes;
                let scheme = proof::offered(
                    schemes,
                    key.kind(),
                    Version::Tls13,
                    proof.scheme,
                    CertificateVerify::KIND,
                )?;
                let digest =
                    proof::digest_13(turn.provider, Role::Client, &pending.transcript.digest(), scheme.hash())?;
                turn.meter.charge(Phase::Parse);
                key.check(turn.provider, scheme, &digest, proof.signature)?;
                turn.meter.charge(Phase::Verify);
                turn.agreed.peer_scheme = Some(scheme);
                None
            }
            Err(cause) => Some(cause),
        };
        pending.transcript.add(message.raw);
        Ok(State::AwaitClientFinished(AwaitClientFinished { pending, refused }))
    }
}

/// The client's Finished is next.
pub struct AwaitClientFinished<P: Provider> {
    pending: Pending<P>,
    /// Why it comes in vain.
    refused: Option<Cause>,
}

impl<P: Provider> AwaitClientFinished<P> {
    /// Its name.
    pub const ID: StateId = StateId::AwaitClientFinished;

    /// Finished: data flows, and tickets go out before it.
    pub fn on(self, turn: &mut Turn<'_, P>, input: Input<'_>) -> Result<State<P>, Cause> {
        let Self { mut pending, refused } = self;
        let (provider, suite) = (turn.provider, pending.suite);
        let hash = suite.hash();
        let message = input.expect(Finished::KIND.wire(), Self::ID)?;
        let finished = Finished::decode(message.body, hash.bytes())?;
        let digest = pending.transcript.digest();
        let expected = key_schedule::finished(provider, hash, &pending.client_handshake, &digest)?;
        if !expected.is(finished.verify_data) {
            return Err(Cause::BadFinished);
        }
        turn.read.install(key_schedule::traffic_keys(
            provider,
            suite,
            &pending.client_application,
        )?);
        if let Some(cause) = refused {
            return Err(cause);
        }
        pending.transcript.add(message.raw);
        turn.meter.charge(Phase::KeySchedule);
        if let Some(binding) = &pending.binding {
            let resumption = pending.master.resumption(provider, &pending.transcript.digest())?;
            send_tickets(turn, suite, &resumption, binding)?;
        }
        Ok(State::Connected(Connected::Tls13 {
            hash,
            read: pending.client_application,
            write: pending.server_application,
            resumption: None,
        }))
    }
}

/// Tickets (RFC 8446 §4.6.1), each with a key of its own.
fn send_tickets<P: Provider>(
    turn: &mut Turn<'_, P>,
    suite: CipherSuite,
    resumption: &Secret,
    binding: &Binding,
) -> Result<(), Cause> {
    let config = turn.server()?;
    let Some(keys) = config.tickets else { return Ok(()) };
    let peer = turn.agreed.peer.clone();
    if peer.as_ref().is_some_and(|peer| peer.cut) {
        return Ok(());
    }
    let mut session = Resumable {
        suite,
        secret: Secret::EMPTY,
        is_extended: true,
        issued: turn.now,
        peer,
    };
    for nonce in 0..config.tickets_sent.min(TICKETS_MAX) {
        session.secret = key_schedule::resumption_psk(turn.provider, suite.hash(), resumption, &[nonce])?;
        let mut age_add = [0; 4];
        turn.random.fill(&mut age_add)?;
        let mut bytes = [0; TICKET_BYTES_MAX];
        let mut ticket = Writer::new(&mut bytes);
        keys.seal(turn.random, binding, &session, &mut ticket)?;
        let message = NewSessionTicket13 {
            lifetime_seconds: keys.lifetime_seconds(),
            age_add: u32::from_be_bytes(age_add),
            nonce: &[nonce],
            ticket: ticket.as_slice(),
            early_data_bytes_max: None,
        };
        turn.flight.add(|spare| Writer::fill(spare, |w| message.encode(w)))?;
        turn.agreed.tickets_given += 1;
        turn.meter.charge(Phase::RecordCrypto);
    }
    Ok(())
}
