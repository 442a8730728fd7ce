//! The client's hello (RFC 8446 §4.1.2, RFC 5246 §7.4.1.2): what it is made of, how it is written, and written again after a
//! HelloRetryRequest.

use core::net::IpAddr;

use skerry_core::time::Timestamp;

use super::key_schedule::Early;
use super::machine::{RESUMPTION, TLS12};
use super::{Transcript, Turn};
use crate::cause::Cause;
use crate::certificate::ServerName;
use crate::config::ClientConfig;
use crate::crypto::{DIGEST_BYTES_MAX, Exchange, HashAlgorithm, Provider};
use crate::message::{
    ClientHello, KeyShare, KeyShares, OfferedPsks, PskIdentity, RANDOM_BYTES, SESSION_ID_BYTES_MAX, U16List, Writer,
};
use crate::meter::Phase;
use crate::record::HEADER_BYTES;
use crate::saved::{SavedSession, binding};
use crate::suite::{CipherSuite, Group, SHARE_BYTES_MAX, SignatureScheme, Version};

/// A session id as it is sent or echoed.
pub(super) type SessionId = heapless::Vec<u8, SESSION_ID_BYTES_MAX>;

/// What both hellos have in common beside the configuration, and the private halves of the shares in the last one.
pub(super) struct Opening<P: Provider> {
    /// The client's random.
    pub random: [u8; RANDOM_BYTES],
    /// The legacy session id: fresh, or what the server knows a TLS 1.2 session by.
    pub session_id: SessionId,
    /// A private key for each share.
    pub exchanges: heapless::Vec<P::Exchange, { Group::ALL.len() }>,
    /// The version of the session whose resumption was offered.
    pub resumes: Option<Version>,
    /// Whether session_ticket was sent: only then may a TLS 1.2 server promise one.
    pub asks_ticket_12: bool,
}

/// What a HelloRetryRequest changes beside the shares.
pub(super) struct Retry<'m> {
    /// Its cookie, to be given back.
    pub cookie: Option<&'m [u8]>,
    /// The suite that it chose: a PSK of another hash is not offered again.
    pub suite: CipherSuite,
}

impl<P: Provider> Opening<P> {
    /// Draws what a hello needs: a random, a session id, a private key for each share.
    ///
    /// Errors: what the provider says; [`Cause::NoCommonVersion`], [`Cause::NoCommonSuite`] or [`Cause::NoCommonGroup`] for a
    /// configuration that offers none.
    pub fn draw(turn: &mut Turn<'_, P>) -> Result<Self, Cause> {
        let config = turn.client()?;
        let offers_13 = offers(config, Version::Tls13);
        if config.versions.is_empty() {
            return Err(Cause::NoCommonVersion(0));
        }
        if suites(config).is_empty() {
            return Err(Cause::NoCommonSuite);
        }
        if config.groups.is_empty() {
            return Err(Cause::NoCommonGroup);
        }
        let saved = usable(turn.provider, config, turn.now)?;
        let mut opening = Self {
            random: [0; RANDOM_BYTES],
            session_id: SessionId::new(),
            exchanges: heapless::Vec::new(),
            resumes: saved.as_ref().map(SavedSession::version),
            asks_ticket_12: offers(config, Version::Tls12)
                && (config.tickets || saved.as_ref().is_some_and(|saved| saved.version() == Version::Tls12)),
        };
        turn.random.fill(&mut opening.random)?;
        match saved {
            Some(saved) if !saved.session_id.is_empty() => {
                opening.session_id = SessionId::from_slice(saved.session_id).map_err(|_| Cause::Internal)?;
            }
            // Compatibility mode (RFC 8446 §D.4); with a TLS 1.2 ticket the echo tells that it was taken (RFC 5077 §3.4).
            saved if offers_13 || saved.is_some() => {
                let mut id = [0; SESSION_ID_BYTES_MAX];
                turn.random.fill(&mut id)?;
                opening.session_id = SessionId::from_slice(&id).map_err(|_| Cause::Internal)?;
            }
            _ => {}
        }
        turn.meter.charge(Phase::Parse);
        if offers_13 {
            for group in config.groups.iter().filter(|group| config.shares.contains(group)) {
                opening.share(turn, *group)?;
            }
        }
        Ok(opening)
    }

    /// Draws a private key of `group` to be shared, if there is none yet.
    pub fn share(&mut self, turn: &mut Turn<'_, P>, group: Group) -> Result<(), Cause> {
        if !self.shares(group) {
            let exchange = turn.provider.exchange(group, turn.random)?;
            self.exchanges.push(exchange).map_err(|_| Cause::Internal)?;
            turn.meter.charge(Phase::KeyExchange);
        }
        Ok(())
    }

    /// Whether the last hello had a share of `group`.
    pub fn shares(&self, group: Group) -> bool {
        self.exchanges.iter().any(|exchange| exchange.group() == group)
    }

    /// Writes the hello and adds it to the transcript. A second one is the first with a cookie, other shares, a new binder, and a PSK less
    /// where the suite's hash is not its own (RFC 8446 §4.1.2).
    pub fn write(
        &mut self,
        turn: &mut Turn<'_, P>,
        transcript: &mut Transcript<P>,
        retry: Option<&Retry<'_>>,
    ) -> Result<(), Cause> {
        let config = turn.client()?;
        let (provider, now) = (turn.provider, turn.now);
        let saved = match self.resumes {
            Some(version) if RESUMPTION => {
                SavedSession::decode(config.resume).filter(|saved| saved.version() == version)
            }
            _ => None,
        };
        let psk = saved.as_ref().filter(|saved| saved.version() == Version::Tls13);
        let psk = psk.filter(|psk| retry.is_none_or(|retry| retry.suite.hash() == psk.suite.hash()));
        if psk.is_none() && self.resumes == Some(Version::Tls13) {
            self.resumes = None;
        }
        let ticket_12 = saved.as_ref().filter(|saved| saved.version() == Version::Tls12);
        let ticket_12 = ticket_12.map_or(&[][..], |saved| saved.ticket);
        let raw = turn.flight.add(|spare| {
            let aside_bytes = psk.map_or(0, |psk| psk.ticket.len()) + ASIDE_BYTES;
            let at = spare.len().checked_sub(aside_bytes).ok_or(Cause::Internal)?;
            let (out, aside) = spare.split_at_mut(at);
            let mut hello = Writer::new(out);
            let mut parts = Parts {
                opening: self,
                config,
                cookie: retry.and_then(|retry| retry.cookie),
                ticket_12,
                psk: psk.map(|psk| (psk, elapsed(psk, now))),
                padding: None,
            };
            let mut binders_bytes = parts.encode(&mut hello, aside)?;
            let mut bytes = hello.written();
            let short = usize::from(config.hello_bytes_min).saturating_sub(HEADER_BYTES + bytes);
            if short > 0 {
                parts.padding = u16::try_from(short.saturating_sub(EXTENSION_HEADER_BYTES)).ok();
                hello = Writer::new(out);
                binders_bytes = parts.encode(&mut hello, aside)?;
                bytes = hello.written();
            }
            if let Some(psk) = psk {
                let (truncated, binders) = out
                    .split_at_mut_checked(bytes.saturating_sub(binders_bytes))
                    .ok_or(Cause::Internal)?;
                let hash = psk.suite.hash();
                let mut so_far = transcript.fork()?;
                so_far.add(truncated);
                let digest = so_far.digest_in(hash).ok_or(Cause::Internal)?;
                let binder = Early::resumption(provider, hash, &psk.secret)?.binder(provider, &digest)?;
                let place = binders.get_mut(3..3 + hash.bytes()).ok_or(Cause::Internal)?;
                place.copy_from_slice(binder.bytes());
            }
            Ok(bytes)
        })?;
        transcript.add(raw);
        turn.meter.charge(Phase::Parse);
        Ok(())
    }
}

/// Room for what a hello borrows: shares, and of a PSK all but the ticket.
const ASIDE_BYTES: usize = Group::ALL.len() * (4 + SHARE_BYTES_MAX) + 2 + 4 + 1 + DIGEST_BYTES_MAX;

/// Type and length of an extension.
const EXTENSION_HEADER_BYTES: usize = 4;

/// What one hello is written from.
struct Parts<'h, 'c, P: Provider> {
    opening: &'h Opening<P>,
    config: &'c ClientConfig<'c, P>,
    cookie: Option<&'h [u8]>,
    ticket_12: &'h [u8],
    /// The session whose PSK is offered, and how many milliseconds ago it came.
    psk: Option<(&'h SavedSession<'c>, u32)>,
    /// Zeros of a padding.
    padding: Option<u16>,
}

impl<P: Provider> Parts<'_, '_, P> {
    /// Writes the message to `w`, a PSK's binder as zeros, and gives how many bytes at its end the binders take. `aside` is where vectors are
    /// laid out that the message borrows.
    fn encode(&self, w: &mut Writer<'_>, aside: &mut [u8]) -> Result<usize, Cause> {
        let config = self.config;
        let (offers_12, offers_13) = (offers(config, Version::Tls12), offers(config, Version::Tls13));
        let suites = wire_list::<_, { CipherSuite::ALL.len() }>(suites(config).iter().map(|suite| *suite as u16));
        let groups = wire_list::<_, { Group::ALL.len() }>(config.groups.iter().map(|group| *group as u16));
        let schemes =
            wire_list::<_, { SignatureScheme::ALL.len() }>(config.schemes.iter().map(|scheme| *scheme as u16));
        let versions = config.versions.iter().filter(|version| offers(config, **version));
        let versions = wire_list::<_, 2>(versions.map(|version| version.wire()));

        let mut laid = Writer::new(aside);
        for exchange in &self.opening.exchanges {
            let share = exchange.share();
            KeyShare {
                group: exchange.group() as u16,
                share: share.bytes(),
            }
            .encode(&mut laid)?;
        }
        let shares_end = laid.written();
        if let Some((psk, age)) = self.psk {
            PskIdentity {
                identity: psk.ticket,
                obfuscated_ticket_age: age.wrapping_add(psk.age_add),
            }
            .encode(&mut laid)?;
        }
        let identities_end = laid.written();
        if let Some((psk, _)) = self.psk {
            laid.vector_8(|w| w.bytes(crate::crypto::Secret::zeros(psk.suite.hash()).bytes()))?;
        }
        let (shares, rest) = laid.as_slice().split_at_checked(shares_end).ok_or(Cause::Internal)?;
        let (identities, binders) = rest
            .split_at_checked(identities_end - shares_end)
            .ok_or(Cause::Internal)?;
        let psks = self.psk.map(|_| OfferedPsks::new(identities, binders));

        let bare = ClientHello::bare(
            Version::Tls12.wire(),
            &self.opening.random,
            &self.opening.session_id,
            U16List::new(&suites),
        );
        ClientHello {
            server_name: told_name(config.server_name),
            supported_groups: Some(U16List::new(&groups)),
            signature_algorithms: Some(U16List::new(&schemes)),
            record_size_limit: config.record_size_limit,
            // TLS 1.2 only.
            ec_point_formats: offers_12.then_some(&[0]),
            session_ticket: self.opening.asks_ticket_12.then_some(self.ticket_12),
            extended_master_secret: offers_12,
            renegotiation_info: offers_12.then_some(&[]),
            // TLS 1.3 only.
            supported_versions: offers_13.then_some(U16List::new(&versions)),
            cookie: self.cookie,
            psk_key_exchange_modes: (offers_13 && (config.tickets || psks.is_some())).then_some(&[PSK_DHE_KE]),
            key_share: offers_13.then_some(KeyShares::new(shares)),
            padding: self.padding,
            pre_shared_key: psks,
            ..bare
        }
        .encode(w)?;
        Ok(psks.map_or(0, |psks| psks.binders_bytes()))
    }
}

/// PSK with an (EC)DHE exchange (RFC 8446 §4.2.9): the only mode that is spoken here.
const PSK_DHE_KE: u8 = 1;

/// Whether a version is offered: one without a suite cannot be agreed on.
pub(super) fn offers<P: Provider>(config: &ClientConfig<'_, P>, version: Version) -> bool {
    (TLS12 || version != Version::Tls12)
        && config.versions.contains(&version)
        && config.suites.iter().any(|suite| suite.version() == version)
}

/// The suites that are offered: of the versions that are.
fn suites<P: Provider>(config: &ClientConfig<'_, P>) -> heapless::Vec<CipherSuite, { CipherSuite::ALL.len() }> {
    let mut offered = heapless::Vec::new();
    for suite in config.suites {
        if offers(config, suite.version()) && !offered.contains(suite) {
            // Each of them once at most: there is room for all.
            let _ = offered.push(*suite);
        }
    }
    offered
}

/// Whether a suite is offered.
pub(super) fn offers_suite<P: Provider>(config: &ClientConfig<'_, P>, suite: CipherSuite) -> bool {
    offers(config, suite.version()) && config.suites.contains(&suite)
}

/// Numbers in wire order, each once.
fn wire_list<I: Iterator<Item = u16>, const N: usize>(numbers: I) -> heapless::Vec<[u8; 2], N> {
    let mut list = heapless::Vec::new();
    for number in numbers {
        let number = number.to_be_bytes();
        if !list.contains(&number) {
            // `N` is how many different ones there are.
            let _ = list.push(number);
        }
    }
    list
}

/// What goes into server_name: a DNS name without its last dot. Never an address, in whatever shape (RFC 6066 §3).
pub(super) fn told_name(name: Option<ServerName<'_>>) -> Option<&[u8]> {
    let Some(ServerName::Dns(name)) = name else { return None };
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_name = !name.is_empty() && name.is_ascii() && name.parse::<IpAddr>().is_err();
    is_name.then_some(name.as_bytes())
}

/// The session to be resumed, if its age, what it is bound to and what is offered now let it be.
fn usable<'a, P: Provider>(
    provider: &P,
    config: &ClientConfig<'a, P>,
    now: Timestamp,
) -> Result<Option<SavedSession<'a>>, Cause> {
    if !RESUMPTION {
        return Ok(None);
    }
    let Some(saved) = SavedSession::decode(config.resume) else {
        return Ok(None);
    };
    let is_offered = match saved.version() {
        Version::Tls12 => offers_suite(config, saved.suite),
        Version::Tls13 => suites(config).iter().any(|suite| is_of(*suite, saved.suite.hash())),
    };
    let is_known = saved.version() == Version::Tls12 || !saved.ticket.is_empty();
    let is_usable = is_offered && is_known && saved.age(now).is_some() && saved.binding == binding(provider, config)?;
    Ok(is_usable.then_some(saved))
}

fn is_of(suite: CipherSuite, hash: HashAlgorithm) -> bool {
    suite.version() == Version::Tls13 && suite.hash() == hash
}

/// Milliseconds since the ticket came. Of no use as a check: the session was found usable when the first hello was written.
fn elapsed(saved: &SavedSession<'_>, now: Timestamp) -> u32 {
    u32::try_from(now.0.saturating_sub(saved.received.0)).unwrap_or(0)
}
