//! Tickets that hold the whole session, sealed for ourselves (RFC 8446 §4.6.1, RFC 5077 §4): we keep nothing of a client that is gone.
//!
//! One form for both versions, which the suite tells apart:
//!
//! ```text
//! ticket  = key_name[8] ‖ nonce[12] ‖ AES-256-GCM(session) ‖ tag[16]
//! session = 1 ‖ suite u16 ‖ extended u8 ‖ issued i64 ‖ secret_bytes u8 ‖ secret ‖ peer
//! peer    = 0
//!         | 1 ‖ not_after i64 ‖ fingerprint[32] ‖ subject_bytes u16 ‖ subject
//! ```
//!
//! What a session is bound to is not in the ticket but in what the seal authenticates beside it: a [`Binding`]. When our certificate, the client
//! authentication or the trust anchors are others, the seal does not open, and the handshake is a full one.
//!
//! A client tells how old it believes a ticket to be. That serves the freshness of early data (RFC 8446 §8.3), which is never taken here; how
//! long a ticket lives is told by `issued` and our own clock.

use skerry_core::time::Timestamp;

use crate::cause::Cause;
use crate::certificate::{SUBJECT_BYTES_MAX, Verified};
use crate::config::{ClientAuth, ServerConfig};
use crate::crypto::{
    Aead, AeadAlgorithm, CryptoError, DIGEST_BYTES_MAX, Hash, HashAlgorithm, KEY_BYTES_MAX, NONCE_BYTES, Provider,
    Random, Secret, TAG_BYTES, Wiped,
};
use crate::message::{Cursor, HandshakeType, TICKET_LIFETIME_SECONDS_MAX, Writer};
use crate::suite::CipherSuite;

const NAME_BYTES: usize = 8;
const FORM: u8 = 1;
const SESSION_BYTES_MAX: usize = 1 + 2 + 1 + 8 + 1 + DIGEST_BYTES_MAX + 1 + 8 + 32 + 2 + SUBJECT_BYTES_MAX;
/// The longest ticket.
pub const TICKET_BYTES_MAX: usize = NAME_BYTES + NONCE_BYTES + SESSION_BYTES_MAX + TAG_BYTES;

/// The keys that tickets are sealed under: one that seals, and the one before it, which still opens.
///
/// A key may seal 2^32 tickets, for their nonces are random; at a thousand a second that is seven weeks, and none is used longer than one.
pub struct TicketKeys<P: Provider> {
    current: TicketKey<P>,
    previous: Option<TicketKey<P>>,
    lifetime_seconds: u32,
}

struct TicketKey<P: Provider> {
    name: [u8; NAME_BYTES],
    aead: P::Aead,
    made: Timestamp,
}

impl<P: Provider> TicketKey<P> {
    fn new(provider: &P, random: &mut dyn Random, made: Timestamp) -> Result<Self, CryptoError> {
        let mut name = [0; NAME_BYTES];
        random.fill(&mut name)?;
        let mut key = Wiped::<KEY_BYTES_MAX>::zeros();
        random.fill(&mut *key)?;
        let aead = provider.aead(AeadAlgorithm::Aes256Gcm, &*key)?;
        Ok(Self { name, aead, made })
    }
}

impl<P: Provider> TicketKeys<P> {
    /// Fresh keys. A ticket lives for `lifetime_seconds`, at most seven days (RFC 8446 §4.6.1).
    pub fn new(
        provider: &P,
        random: &mut dyn Random,
        now: Timestamp,
        lifetime_seconds: u32,
    ) -> Result<Self, CryptoError> {
        Ok(Self {
            current: TicketKey::new(provider, random, now)?,
            previous: None,
            lifetime_seconds: lifetime_seconds.min(TICKET_LIFETIME_SECONDS_MAX),
        })
    }

    /// Whether [`TicketKeys::rotate`] is due: the key has sealed for as long as a ticket lives, or the clock went back behind its making.
    #[must_use]
    pub fn is_due(&self, now: Timestamp) -> bool {
        age_ms(self.current.made, now).is_none_or(|age| age >= lifetime_ms(self.lifetime_seconds))
    }

    /// A fresh key seals from here; the one before it opens until the next rotation, and is wiped then. When it is done no earlier than
    /// [`TicketKeys::is_due`] says, every ticket can be opened for as long as it lives.
    ///
    /// Errors: the provider's; the keys are then what they were.
    /// Cost: one key, whatever the number of tickets and sessions.
    pub fn rotate(&mut self, provider: &P, random: &mut dyn Random, now: Timestamp) -> Result<(), CryptoError> {
        let next = TicketKey::new(provider, random, now)?;
        self.previous = Some(core::mem::replace(&mut self.current, next));
        Ok(())
    }

    /// How long a ticket lives.
    #[must_use]
    pub const fn lifetime_seconds(&self) -> u32 {
        self.lifetime_seconds
    }

    /// Writes a ticket for `session`.
    ///
    /// When full: [`Cause::Internal`].
    pub(super) fn seal(
        &self,
        random: &mut dyn Random,
        binding: &Binding,
        session: &Resumable,
        w: &mut Writer<'_>,
    ) -> Result<(), Cause> {
        let mut nonce = [0; NONCE_BYTES];
        random.fill(&mut nonce)?;
        w.bytes(&self.current.name)?;
        w.bytes(&nonce)?;
        let start = w.written();
        session.encode(w)?;
        let sealed = w.as_mut_slice().get_mut(start..).ok_or(Cause::Internal)?;
        let tag = self.current.aead.seal(&nonce, &binding.digest, sealed)?;
        w.bytes(&tag)
    }

    /// What a ticket holds, if it is one of ours, bound to this, and neither it nor the certificate in it is too old.
    pub(super) fn open(&self, binding: &Binding, ticket: &[u8], now: Timestamp) -> Option<Resumable> {
        let (name, rest) = ticket.split_first_chunk::<NAME_BYTES>()?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_BYTES>()?;
        let key = [Some(&self.current), self.previous.as_ref()]
            .into_iter()
            .flatten()
            .find(|key| key.name == *name)?;
        let mut bytes = Wiped::<SESSION_BYTES_MAX>::zeros();
        let plain = bytes.get_mut(..sealed.len().checked_sub(TAG_BYTES)?)?;
        key.aead.open_into(nonce, &binding.digest, sealed, plain).ok()?;
        let session = Resumable::decode(plain)?;
        let is_alive = age_ms(session.issued, now)? < lifetime_ms(self.lifetime_seconds);
        let is_valid = session.peer.as_ref().is_none_or(|peer| now <= peer.not_after);
        (is_alive && is_valid).then_some(session)
    }
}

const fn lifetime_ms(seconds: u32) -> u64 {
    seconds as u64 * 1000
}

/// `None` when the clock went back.
fn age_ms(then: Timestamp, now: Timestamp) -> Option<u64> {
    u64::try_from(now.0.checked_sub(then.0)?).ok()
}

/// What a session may be resumed under, as one digest: our certificates, whether and under which trust anchors clients are asked for theirs,
/// and, in TLS 1.2, the name that the client asked for (RFC 6066 §3; in TLS 1.3 each hello stands for itself, RFC 8446 §4.2.11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding {
    digest: [u8; 32],
}

impl Binding {
    /// Of this configuration.
    ///
    /// Cost: a hash over the leaf certificates.
    pub fn of<P: Provider>(
        provider: &P,
        config: &ServerConfig<'_, P>,
        server_name: Option<&str>,
    ) -> Result<Self, Cause> {
        let mut hash = provider.hash(HashAlgorithm::Sha256)?;
        let mut part = |bytes: &[u8]| {
            hash.update(&(bytes.len() as u64).to_be_bytes());
            hash.update(bytes);
        };
        for identity in config.identities {
            part(identity.chain.first().copied().unwrap_or_default());
        }
        part(&[match config.client_auth {
            ClientAuth::None => 0,
            ClientAuth::Requested => 1,
            ClientAuth::Required => 2,
        }]);
        if let (Some(verifier), ClientAuth::Requested | ClientAuth::Required) = (config.verifier, config.client_auth) {
            part(&verifier.trust_id());
        }
        if let Some(name) = server_name {
            part(name.as_bytes());
        }
        let digest = hash.digest();
        Ok(Self {
            digest: *digest.bytes().first_chunk().ok_or(Cause::Internal)?,
        })
    }
}

/// A session as a ticket holds it.
#[derive(Clone, Debug)]
pub struct Resumable {
    /// Its suite, and with it its version.
    pub suite: CipherSuite,
    /// TLS 1.3: the PSK. TLS 1.2: the master secret.
    pub secret: Secret,
    /// TLS 1.2: whether the master secret is an extended one.
    pub is_extended: bool,
    /// When the ticket was made.
    pub issued: Timestamp,
    /// The client's certificate. One whose subject was cut is not kept: such a session gets no ticket.
    pub peer: Option<Verified>,
}

impl Resumable {
    fn encode(&self, w: &mut Writer<'_>) -> Result<(), Cause> {
        w.u8(FORM)?;
        w.u16(self.suite as u16)?;
        w.u8(self.is_extended.into())?;
        w.bytes(&self.issued.0.to_be_bytes())?;
        w.vector_8(|w| w.bytes(self.secret.bytes()))?;
        let Some(peer) = &self.peer else { return w.u8(0) };
        w.u8(1)?;
        w.bytes(&peer.not_after.0.to_be_bytes())?;
        w.bytes(&peer.fingerprint)?;
        w.vector_16(|w| w.bytes(peer.subject.as_bytes()))
    }

    /// Only what we sealed comes here, so that `None` means another release's form.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut r = Cursor::new(HandshakeType::NewSessionTicket, bytes);
        if r.u8().ok()? != FORM {
            return None;
        }
        let session = Self {
            suite: CipherSuite::from_wire(r.u16().ok()?)?,
            is_extended: r.u8().ok()? != 0,
            issued: Timestamp(i64::from_be_bytes(*r.array().ok()?)),
            secret: Secret::copy(r.vector_8(1, DIGEST_BYTES_MAX).ok()?)?,
            peer: match r.u8().ok()? {
                0 => None,
                _ => Some(Verified {
                    not_after: Timestamp(i64::from_be_bytes(*r.array().ok()?)),
                    fingerprint: *r.array().ok()?,
                    subject: heapless::String::try_from(core::str::from_utf8(r.vector_16(0).ok()?).ok()?).ok()?,
                    cut: false,
                }),
            },
        };
        r.is_empty().then_some(session)
    }
}

#[cfg(all(test, feature = "fast"))]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;
    use crate::crypto::fast::Fast;
    use crate::testing::{NOW, Seeded};

    const BINDING: Binding = Binding { digest: [4; 32] };

    fn keys() -> TicketKeys<Fast> {
        TicketKeys::new(&Fast, &mut Seeded::new(1), NOW, 3600).unwrap()
    }

    fn session(subject_bytes: usize) -> Resumable {
        let mut subject = heapless::String::new();
        for _ in 0..subject_bytes {
            subject.push('x').unwrap();
        }
        Resumable {
            suite: CipherSuite::TLS_AES_256_GCM_SHA384,
            secret: Secret::copy(&[7; DIGEST_BYTES_MAX]).unwrap(),
            is_extended: true,
            issued: NOW,
            peer: (subject_bytes > 0).then_some(Verified {
                subject,
                cut: false,
                not_after: Timestamp(NOW.0 + 1),
                fingerprint: [9; 32],
            }),
        }
    }

    fn ticket(session: &Resumable, room: usize) -> Result<Vec<u8>, Cause> {
        let mut bytes = vec![0; room];
        let mut w = Writer::new(&mut bytes);
        keys().seal(&mut Seeded::new(2), &BINDING, session, &mut w)?;
        Ok(w.as_slice().to_vec())
    }

    #[test]
    fn what_was_sealed_is_opened() {
        for subject_bytes in [0, 1, SUBJECT_BYTES_MAX] {
            let sealed = session(subject_bytes);
            let opened = keys()
                .open(&BINDING, &ticket(&sealed, TICKET_BYTES_MAX).unwrap(), NOW)
                .unwrap();
            assert!(opened.secret.is(sealed.secret.bytes()));
            assert_eq!(
                (opened.suite, opened.is_extended, opened.issued, opened.peer),
                (sealed.suite, sealed.is_extended, sealed.issued, sealed.peer)
            );
        }
    }

    #[test]
    fn the_longest_is_as_long_as_it_says() {
        let longest = session(SUBJECT_BYTES_MAX);
        assert_eq!(ticket(&longest, TICKET_BYTES_MAX).unwrap().len(), TICKET_BYTES_MAX);
        for room in 0..TICKET_BYTES_MAX {
            assert_eq!(ticket(&longest, room), Err(Cause::Internal), "{room}");
        }
    }

    #[test]
    fn one_that_was_touched_is_none() {
        let whole = ticket(&session(20), TICKET_BYTES_MAX).unwrap();
        let opens = |ticket: &[u8]| keys().open(&BINDING, ticket, NOW).is_some();
        assert!(opens(&whole));
        for cut in 0..whole.len() {
            assert!(!opens(&whole[..cut]), "cut at {cut}");
        }
        for at in 0..whole.len() {
            let mut touched = whole.clone();
            touched[at] ^= 0x10;
            assert!(!opens(&touched), "changed at {at}");
        }
        assert!(!opens(&[&whole[..], &[0]].concat()));
        assert!(!opens(&vec![0; 1 << 16]), "longer than any");
        let other = Binding { digest: [5; 32] };
        assert!(keys().open(&other, &whole, NOW).is_none(), "bound to something else");
    }

    #[test]
    fn one_ends_with_the_certificate_in_it() {
        let whole = ticket(&session(20), TICKET_BYTES_MAX).unwrap();
        assert!(keys().open(&BINDING, &whole, Timestamp(NOW.0 + 1)).is_some());
        assert!(keys().open(&BINDING, &whole, Timestamp(NOW.0 + 2)).is_none());
    }
}
