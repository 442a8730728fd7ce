//! Chains that were verified before: a returning device costs one signature check.

use alloc::vec::Vec;
use core::cell::RefCell;
use core::net::IpAddr;

use sha2::{Digest, Sha256};
use skerry_core::time::Timestamp;

use crate::cause::Cause;
use crate::certificate::{Refused, Role, ServerName, Verified, Verifier};
use crate::crypto::PublicKey;

/// A verifier that remembers the chains that it accepted, until they expire. It is made anew when its trust anchors are loaded anew, and
/// remembers nothing then; what it remembers is bound to the anchors' [`Verifier::trust_id`] in any case.
///
/// Key: SHA-256 over anchors, role, name and every byte of the chain, so that a hit is the very question that was answered before.
/// When full: of the few entries that share a place with the new one, the one that was used longest ago goes.
/// Memory: all of it is taken at the start, [`Cached::ENTRY_BYTES`] for each chain.
pub struct Cached<V> {
    verifier: V,
    cache: RefCell<Cache>,
}

/// Entries that share a place: a look compares as many keys at most.
const WAYS: usize = 8;

struct Cache {
    /// Places of [`WAYS`] entries each.
    entries: Vec<Option<Entry>>,
    /// Counts looks: which entry was used longest ago.
    clock: u64,
    hits: u64,
    misses: u64,
}

struct Entry {
    key: [u8; 32],
    /// A clock that was set back before this may stand before the begin of the chain's validity.
    verified_at: Timestamp,
    used: u64,
    verified: Verified,
}

impl<V: Verifier> Cached<V> {
    /// Bytes of one remembered chain.
    pub const ENTRY_BYTES: usize = size_of::<Option<Entry>>();

    /// Remembers at most `count` chains of `verifier`, rounded up to a multiple of eight; none when it is 0.
    #[must_use]
    pub fn new(verifier: V, count: usize) -> Self {
        let mut entries = Vec::new();
        entries.resize_with(count.next_multiple_of(WAYS), || None);
        Self {
            verifier,
            cache: RefCell::new(Cache {
                entries,
                clock: 0,
                hits: 0,
                misses: 0,
            }),
        }
    }

    /// How many chains were remembered, and how many were not and had to be verified.
    #[must_use]
    pub fn hits_and_misses(&self) -> (u64, u64) {
        let cache = self.cache.borrow();
        (cache.hits, cache.misses)
    }

    /// How many chains are remembered, and how many may be. Cost: a look at every place.
    #[must_use]
    pub fn entries(&self) -> (usize, usize) {
        let cache = self.cache.borrow();
        (cache.entries.iter().flatten().count(), cache.entries.len())
    }

    /// What verifies.
    #[must_use]
    pub const fn verifier(&self) -> &V {
        &self.verifier
    }
}

impl Cache {
    fn place(&mut self, key: &[u8; 32]) -> &mut [Option<Entry>] {
        let [a, b, c, d, ..] = *key;
        let places = self.entries.len() / WAYS;
        let place = (u32::from_be_bytes([a, b, c, d]) as usize)
            .checked_rem(places)
            .unwrap_or(0);
        self.entries.chunks_mut(WAYS).nth(place).unwrap_or_default()
    }

    fn look(&mut self, key: &[u8; 32], now: Timestamp) -> Option<Verified> {
        self.clock += 1;
        let clock = self.clock;
        let slot = self
            .place(key)
            .iter_mut()
            .find(|slot| slot.as_ref().is_some_and(|entry| entry.key == *key));
        let found = slot.and_then(|slot| {
            let is_valid = |entry: &mut Entry| entry.verified_at <= now && now <= entry.verified.not_after;
            if !slot.as_mut().is_some_and(is_valid) {
                *slot = None;
            }
            slot.as_mut().map(|entry| {
                entry.used = clock;
                entry.verified.clone()
            })
        });
        let count = if found.is_some() {
            &mut self.hits
        } else {
            &mut self.misses
        };
        *count += 1;
        found
    }

    fn keep(&mut self, entry: Entry) {
        let oldest = |slot: &&mut Option<Entry>| slot.as_ref().map_or(0, |entry| entry.used);
        if let Some(slot) = self.place(&entry.key).iter_mut().min_by_key(oldest) {
            *slot = Some(entry);
        }
    }
}

impl<V: Verifier> Verifier for Cached<V> {
    fn public_key<'c>(&self, leaf: &'c [u8]) -> Result<PublicKey<'c>, Cause> {
        self.verifier.public_key(leaf)
    }

    fn verify(
        &self,
        chain: &[&[u8]],
        role: Role,
        name: Option<ServerName<'_>>,
        now: Timestamp,
    ) -> Result<Verified, Refused> {
        let key = key(&self.verifier.trust_id(), chain, role, name);
        if let Some(verified) = self.cache.borrow_mut().look(&key, now) {
            return Ok(verified);
        }
        let verified = self.verifier.verify(chain, role, name, now)?;
        let mut cache = self.cache.borrow_mut();
        let used = cache.clock;
        cache.keep(Entry {
            key,
            verified_at: now,
            used,
            verified: verified.clone(),
        });
        Ok(verified)
    }

    fn authorities(&self) -> &[u8] {
        self.verifier.authorities()
    }

    fn trust_id(&self) -> [u8; 32] {
        self.verifier.trust_id()
    }
}

/// A digest of the whole question. Each part has its length before it, or one length that is always its own.
fn key(trust_id: &[u8; 32], chain: &[&[u8]], role: Role, name: Option<ServerName<'_>>) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(trust_id);
    hash.update([match role {
        Role::Server => 0,
        Role::Client => 1,
    }]);
    match name {
        None => hash.update([0]),
        Some(ServerName::Dns(host)) => {
            hash.update([1]);
            hash.update((host.len() as u64).to_be_bytes());
            hash.update(host);
        }
        Some(ServerName::Ip(IpAddr::V4(address))) => {
            hash.update([4]);
            hash.update(address.octets());
        }
        Some(ServerName::Ip(IpAddr::V6(address))) => {
            hash.update([6]);
            hash.update(address.octets());
        }
    }
    for der in chain {
        hash.update((der.len() as u64).to_be_bytes());
        hash.update(der);
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;

    use super::*;

    /// Accepts every chain whose first byte is not 0, until the time that is that byte.
    #[derive(Default)]
    struct Counting {
        calls: Cell<u32>,
    }

    impl Verifier for Counting {
        fn public_key<'c>(&self, _leaf: &'c [u8]) -> Result<PublicKey<'c>, Cause> {
            Err(Cause::CertificateUnreadable)
        }

        fn verify(
            &self,
            chain: &[&[u8]],
            _role: Role,
            _name: Option<ServerName<'_>>,
            _now: Timestamp,
        ) -> Result<Verified, Refused> {
            self.calls.set(self.calls.get() + 1);
            match chain[0][0] {
                0 => Err(Refused {
                    cause: Cause::UnknownCa,
                    index: 0,
                }),
                until => Ok(Verified {
                    subject: heapless::String::new(),
                    cut: false,
                    not_after: Timestamp(until.into()),
                    fingerprint: [until; 32],
                }),
            }
        }

        fn trust_id(&self) -> [u8; 32] {
            [7; 32]
        }
    }

    fn calls(cached: &Cached<Counting>) -> u32 {
        cached.verifier.calls.replace(0)
    }

    #[test]
    fn the_same_question_is_answered_once() {
        let cached = Cached::new(Counting::default(), 64);
        let ask = |chain: &[&[u8]], role, name| cached.verify(chain, role, name, Timestamp(50)).unwrap().fingerprint[0];
        let chain: &[&[u8]] = &[&[99, 1], &[2]];
        assert_eq!(ask(chain, Role::Client, None), 99);
        assert_eq!(calls(&cached), 1);
        assert_eq!(ask(chain, Role::Client, None), 99);
        assert_eq!((calls(&cached), cached.hits_and_misses()), (0, (1, 1)));

        // Another role, name, cut between certificates, or byte is another question.
        ask(chain, Role::Server, None);
        ask(chain, Role::Client, Some(ServerName::Dns("a")));
        ask(chain, Role::Client, Some(ServerName::Ip([0, 0, 0, 1].into())));
        ask(&[&[99], &[1, 2]], Role::Client, None);
        ask(&[&[99, 1, 2]], Role::Client, None);
        ask(&[&[99, 1], &[3]], Role::Client, None);
        assert_eq!((calls(&cached), cached.hits_and_misses()), (6, (1, 7)));
    }

    #[test]
    fn what_expired_or_is_not_yet_is_asked_again() {
        let cached = Cached::new(Counting::default(), 1);
        let ask = |now| cached.verify(&[&[99]], Role::Client, None, Timestamp(now)).map(drop);
        for (now, wanted) in [(50, 1), (50, 0), (99, 0), (100, 1), (100, 1), (40, 1), (45, 0)] {
            ask(now).unwrap();
            assert_eq!(calls(&cached), wanted, "at {now}");
        }
    }

    #[test]
    fn refusals_are_not_remembered_and_none_remembers_nothing() {
        let cached = Cached::new(Counting::default(), 8);
        for _ in 0..3 {
            assert!(cached.verify(&[&[0]], Role::Client, None, Timestamp(1)).is_err());
        }
        assert_eq!(calls(&cached), 3);

        let none = Cached::new(Counting::default(), 0);
        for _ in 0..3 {
            assert!(none.verify(&[&[9]], Role::Client, None, Timestamp(1)).is_ok());
        }
        assert_eq!(calls(&none), 3);
    }

    #[test]
    fn a_full_place_loses_what_was_used_longest_ago() {
        let cached = Cached::new(Counting::default(), WAYS);
        let ask = |chain: u8| {
            cached
                .verify(&[&[99, chain]], Role::Client, None, Timestamp(1))
                .map(drop)
                .unwrap()
        };
        (0..8).for_each(ask);
        assert_eq!(calls(&cached), 8);
        ask(0);
        ask(8); // in place of 1
        assert_eq!(calls(&cached), 1);
        ask(0);
        (2..9).for_each(ask);
        assert_eq!(calls(&cached), 0);
        ask(1);
        assert_eq!(calls(&cached), 1);
    }
}
