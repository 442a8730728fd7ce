//! What a client keeps of a session, so that a later connection resumes it: a PSK (RFC 8446 §4.6.1) or a master secret (RFC 5077,
//! RFC 5246 §F.1.4), with the ticket or session id that the server knows it by.
//!
//! The engine gives it to a [`Keep`] that the caller lends, for most a [`SessionSlot`]; the caller gives the bytes back with a later
//! connection's configuration. A ticket is a bearer's secret: keep the bytes as one keeps a key.

use core::net::IpAddr;

use skerry_core::time::Timestamp;
use skerry_core::wire::{Full, Reader, Sink as _, SliceWriter};
use zeroize::Zeroize;

use crate::cause::Cause;
use crate::certificate::{ServerName, Verified};
use crate::config::ClientConfig;
use crate::crypto::{DIGEST_BYTES_MAX, Hash as _, HashAlgorithm, Provider, Secret};
use crate::suite::{CipherSuite, Version};

/// Bytes of a slot that hold everything but the ticket. A slot of `n` bytes keeps tickets of up to `n` less this.
pub const SAVED_OVERHEAD_BYTES: usize = 1 // form
    + 2 // suite
    + 1 // extended master secret
    + DIGEST_BYTES_MAX
    + 8 // received
    + 4 // lifetime
    + 4 // age_add
    + 32 // binding
    + 2 + crate::certificate::SUBJECT_BYTES_MAX + 1 + 8 + 32 // peer
    + 1 + 32 // session id
    + 2; // length of the ticket

/// The first byte of a slot in use: another form is not read.
const FORM: u8 = 1;

/// A ticket is not used longer than this, whatever the server says (RFC 8446 §4.6.1).
const LIFETIME_SECONDS_MAX: u32 = 7 * 24 * 3600;

/// A session that can be resumed, as it lies in the bytes of a slot.
#[derive(Clone, Debug)]
pub struct SavedSession<'s> {
    /// Its suite, and with it its version: a session is resumed in its own version only.
    pub suite: CipherSuite,
    /// TLS 1.3: the PSK of the ticket. TLS 1.2: the master secret.
    pub secret: Secret,
    /// TLS 1.2: whether the master secret is an extended one. A resumption must agree (RFC 7627 §5.3).
    pub is_extended: bool,
    /// When the ticket came.
    pub received: Timestamp,
    /// How long from then it may be used. TLS 1.2: 0 is for as long as we like.
    pub lifetime_seconds: u32,
    /// TLS 1.3: what disguises its age on the wire.
    pub age_add: u32,
    /// A digest of the server's name, the trust anchors and our own certificate: it is only resumed under the same.
    pub binding: [u8; 32],
    /// Who the peer was.
    pub peer: Verified,
    /// TLS 1.2 without a ticket: the id that the server knows the session by. Otherwise empty.
    pub session_id: &'s [u8],
    /// The ticket; empty when there is only a session id.
    pub ticket: &'s [u8],
}

impl<'s> SavedSession<'s> {
    /// Reads what a slot held. `None` when it is not that.
    #[must_use]
    pub fn decode(bytes: &'s [u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        if reader.u8().ok()? != FORM {
            return None;
        }
        let suite = CipherSuite::from_wire(take_u16(&mut reader)?)?;
        let is_extended = reader.u8().ok()? != 0;
        let secret = reader.take(DIGEST_BYTES_MAX).ok()?;
        let secret_bytes = match suite.version() {
            Version::Tls12 => DIGEST_BYTES_MAX,
            Version::Tls13 => suite.hash().bytes(),
        };
        let secret = Secret::copy(secret.get(..secret_bytes)?)?;
        let received = Timestamp(reader.i64().ok()?);
        let lifetime_seconds = reader.u32().ok()?;
        let age_add = reader.u32().ok()?;
        let binding = take_array(&mut reader)?;
        let subject = core::str::from_utf8(take_vector_16(&mut reader)?).ok()?;
        let peer = Verified {
            subject: heapless::String::try_from(subject).ok()?,
            cut: reader.u8().ok()? != 0,
            not_after: Timestamp(reader.i64().ok()?),
            fingerprint: take_array(&mut reader)?,
        };
        let id_bytes = usize::from(reader.u8().ok()?);
        if id_bytes > 32 {
            return None;
        }
        let session_id = reader.take(id_bytes).ok()?;
        let ticket = take_vector_16(&mut reader)?;
        reader.is_empty().then_some(Self {
            suite,
            secret,
            is_extended,
            received,
            lifetime_seconds,
            age_add,
            binding,
            peer,
            session_id,
            ticket,
        })
    }

    /// Its version.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.suite.version()
    }

    /// Milliseconds since the ticket came; `None` when it is too old, the clock stands before its coming, or the peer's chain has ended.
    #[must_use]
    pub fn age(&self, now: Timestamp) -> Option<u32> {
        let age = u64::try_from(now.0.checked_sub(self.received.0)?).ok()?;
        let lifetime = match (self.version(), self.lifetime_seconds) {
            (Version::Tls12, 0) => LIFETIME_SECONDS_MAX,
            (_, seconds) => seconds.min(LIFETIME_SECONDS_MAX),
        };
        if age >= u64::from(lifetime) * 1000 || now > self.peer.not_after {
            return None;
        }
        u32::try_from(age).ok()
    }

    /// Writes it to the start of `out` and gives its length, for a [`Keep`] of the caller's own.
    ///
    /// When full: [`Full`]; `out` holds a part of it.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, Full> {
        let mut writer = SliceWriter::new(out);
        writer.put_u8(FORM)?;
        writer.put(&(self.suite as u16).to_be_bytes())?;
        writer.put_u8(u8::from(self.is_extended))?;
        writer.put(self.secret.bytes())?;
        for _ in self.secret.bytes().len()..DIGEST_BYTES_MAX {
            writer.put_u8(0)?;
        }
        writer.put_i64(self.received.0)?;
        writer.put_u32(self.lifetime_seconds)?;
        writer.put_u32(self.age_add)?;
        writer.put(&self.binding)?;
        put_vector_16(&mut writer, self.peer.subject.as_bytes())?;
        writer.put_u8(u8::from(self.peer.cut))?;
        writer.put_i64(self.peer.not_after.0)?;
        writer.put(&self.peer.fingerprint)?;
        writer.put_u8(u8::try_from(self.session_id.len()).map_err(|_| Full)?)?;
        writer.put(self.session_id)?;
        put_vector_16(&mut writer, self.ticket)?;
        Ok(writer.len())
    }
}

/// A digest of what a client's session must have in common with its resumption: the server's name, the trust anchors that it was verified
/// under, and who we were to it, for the server remembers that too.
///
/// Errors: the provider's.
pub(crate) fn binding<P: Provider>(provider: &P, config: &ClientConfig<'_, P>) -> Result<[u8; 32], Cause> {
    let mut hash = provider.hash(HashAlgorithm::Sha256)?;
    hash.update(&config.verifier.trust_id());
    match config.server_name {
        None => hash.update(&[0]),
        Some(ServerName::Dns(name)) => {
            hash.update(&[1]);
            hash.update(&(name.len() as u64).to_be_bytes());
            hash.update(name.as_bytes());
        }
        Some(ServerName::Ip(IpAddr::V4(ip))) => {
            hash.update(&[4]);
            hash.update(&ip.octets());
        }
        Some(ServerName::Ip(IpAddr::V6(ip))) => {
            hash.update(&[6]);
            hash.update(&ip.octets());
        }
    }
    if let Some(leaf) = config.identity.and_then(|identity| identity.chain.first()) {
        hash.update(leaf);
    }
    hash.digest().bytes().try_into().map_err(|_| Cause::Internal)
}

/// Where a client's sessions go that can be resumed.
pub trait Keep {
    /// A session that is not yet to be believed: TLS 1.2's ticket comes before the Finished that proves its sender.
    fn stage(&mut self, session: &SavedSession<'_>);

    /// What was staged last, if anything was, is to be believed.
    fn commit(&mut self);
}

/// A [`Keep`] for one session: bytes of the caller's, which outlive the slot; they are wiped before they are written
/// again, and by [`SessionSlot::clear`]. Each new ticket replaces the one before.
///
/// When full: a session that does not fit is not kept, and the next connection does a full handshake.
#[derive(Debug, Default)]
pub struct SessionSlot<'b> {
    bytes: &'b mut [u8],
    staged: usize,
    kept: usize,
}

impl<'b> SessionSlot<'b> {
    /// An empty slot over `bytes`: [`SAVED_OVERHEAD_BYTES`] and the longest ticket that is to be kept.
    #[must_use]
    pub const fn new(bytes: &'b mut [u8]) -> Self {
        Self {
            bytes,
            staged: 0,
            kept: 0,
        }
    }

    /// What to give back with the next connection's configuration; empty when nothing was kept.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.kept).unwrap_or_default()
    }

    /// The session that is kept.
    #[must_use]
    pub fn session(&self) -> Option<SavedSession<'_>> {
        SavedSession::decode(self.bytes())
    }

    /// Forgets and wipes it.
    pub fn clear(&mut self) {
        self.bytes.zeroize();
        self.staged = 0;
        self.kept = 0;
    }
}

impl Keep for SessionSlot<'_> {
    fn stage(&mut self, session: &SavedSession<'_>) {
        self.clear();
        match session.encode(self.bytes) {
            Ok(bytes) => self.staged = bytes,
            Err(Full) => self.clear(),
        }
    }

    fn commit(&mut self) {
        if self.staged != 0 {
            self.kept = core::mem::take(&mut self.staged);
        }
    }
}

fn take_u16(reader: &mut Reader<'_>) -> Option<u16> {
    Some(u16::from_be_bytes(take_array(reader)?))
}

fn take_array<const N: usize>(reader: &mut Reader<'_>) -> Option<[u8; N]> {
    reader.take(N).ok()?.try_into().ok()
}

fn take_vector_16<'s>(reader: &mut Reader<'s>) -> Option<&'s [u8]> {
    let bytes = take_u16(reader)?;
    reader.take(usize::from(bytes)).ok()
}

fn put_vector_16(writer: &mut SliceWriter<'_>, bytes: &[u8]) -> Result<(), Full> {
    writer.put(&u16::try_from(bytes.len()).map_err(|_| Full)?.to_be_bytes())?;
    writer.put(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(suite: CipherSuite, ticket: &[u8]) -> SavedSession<'_> {
        let secret_bytes = match suite.version() {
            Version::Tls12 => 48,
            Version::Tls13 => suite.hash().bytes(),
        };
        SavedSession {
            suite,
            secret: Secret::copy(&[7; 48][..secret_bytes]).unwrap(),
            is_extended: true,
            received: Timestamp(1_000_000),
            lifetime_seconds: 600,
            age_add: 0xdead_beef,
            binding: [3; 32],
            peer: Verified {
                subject: heapless::String::try_from("CN=broker,O=Skerry").unwrap(),
                cut: false,
                not_after: Timestamp(2_000_000_000),
                fingerprint: [9; 32],
            },
            session_id: b"",
            ticket,
        }
    }

    #[test]
    fn what_was_kept_is_read_again() {
        for suite in CipherSuite::ALL {
            let mut bytes = [0; 2048];
            let mut slot = SessionSlot::new(&mut bytes);
            slot.stage(&session(*suite, b"a ticket"));
            assert!(slot.session().is_none(), "staged is not kept");
            slot.commit();
            let read = slot.session().unwrap();
            assert_eq!(read.suite, *suite);
            assert_eq!(read.secret.bytes(), session(*suite, b"").secret.bytes());
            assert_eq!(read.peer, session(*suite, b"").peer);
            assert_eq!((read.binding, read.ticket), ([3; 32], &b"a ticket"[..]));
            assert_eq!((read.age_add, read.lifetime_seconds), (0xdead_beef, 600));
            let whole = slot.bytes();
            for cut in 0..whole.len() {
                assert!(SavedSession::decode(&whole[..cut]).is_none(), "cut at {cut}");
            }
        }
    }

    #[test]
    fn a_slot_that_is_too_small_keeps_nothing() {
        let mut bytes = [0xff; 100];
        let mut slot = SessionSlot::new(&mut bytes);
        slot.stage(&session(CipherSuite::TLS_AES_128_GCM_SHA256, b"a ticket"));
        slot.commit();
        assert!(slot.bytes().is_empty());
        assert_eq!(bytes, [0; 100], "no half of a secret stays behind");
    }

    #[test]
    fn the_overhead_is_what_the_longest_session_needs() {
        let mut longest = session(CipherSuite::TLS_AES_256_GCM_SHA384, b"t");
        longest.session_id = &[1; 32];
        while longest.peer.subject.push('x').is_ok() {}
        let mut bytes = [0; SAVED_OVERHEAD_BYTES + 1];
        assert_eq!(longest.encode(&mut bytes), Ok(SAVED_OVERHEAD_BYTES + 1));
    }

    #[test]
    fn age_ends_with_the_ticket_the_week_and_the_chain() {
        let mut saved = session(CipherSuite::TLS_AES_128_GCM_SHA256, b"t");
        assert_eq!(saved.age(Timestamp(1_000_000)), Some(0));
        assert_eq!(saved.age(Timestamp(1_599_999)), Some(599_999));
        assert_eq!(saved.age(Timestamp(1_600_000)), None, "its lifetime is over");
        assert_eq!(saved.age(Timestamp(999_999)), None, "the clock went back");
        saved.peer.not_after = Timestamp(1_200_000);
        assert_eq!(saved.age(Timestamp(1_200_001)), None, "the chain has ended");
        saved.peer.not_after = Timestamp(i64::MAX);
        saved.lifetime_seconds = u32::MAX;
        assert_eq!(
            saved.age(Timestamp(1_000_000 + 604_800_000)),
            None,
            "a week is the most"
        );
        saved.lifetime_seconds = 0;
        assert_eq!(saved.age(Timestamp(1_000_001)), None, "TLS 1.3: discard at once");
        saved.suite = CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256;
        assert_eq!(saved.age(Timestamp(1_000_001)), Some(1), "TLS 1.2: unspecified");
    }
}
