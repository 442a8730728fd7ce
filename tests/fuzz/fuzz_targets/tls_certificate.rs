//! Any bytes as a chain of certificates, and good certificates with any bytes changed: nothing panics, no chain costs more than the bounds, what
//! is accepted was accepted for what it says, and a chain that is remembered gets the answer that it got before.
//!
//! The first byte chooses role, profile and whether signatures count; the second how many certificates. Each one is a byte that chooses what it
//! grows from (nothing, a good certificate of a client, of its CA, of a server), a byte of how many changes, the changes (two bytes of place,
//! one of value), and for those that grow from nothing a length and bytes. The last one is a trust anchor, too.
#![no_main]

use std::cell::Cell;

use libfuzzer_sys::fuzz_target;
use skerry_tls::certificate::{Role, ServerName, Verifier};
use skerry_tls::crypto::CryptoError;
use skerry_tls::testing::{Fixture, NOW};
use skerry_tls::x509::{
    Cached, Details, Issuer, Policy, Profile, SignatureAlgorithm, Signatures, TrustStore, public_key,
};

/// Every signature holds, or the first so many do.
struct Counted {
    holds: usize,
    count: Cell<usize>,
}

impl Signatures for &Counted {
    fn check(&self, _: SignatureAlgorithm, _: Issuer<'_>, _: &[u8], _: &[u8]) -> Result<(), CryptoError> {
        self.count.set(self.count.get() + 1);
        if self.count.get() <= self.holds {
            Ok(())
        } else {
            Err(CryptoError::Rejected)
        }
    }
}

/// Takes `count` bytes, or what is left.
fn take<'d>(data: &mut &'d [u8], count: usize) -> &'d [u8] {
    let (taken, rest) = data.split_at(count.min(data.len()));
    *data = rest;
    taken
}

fn byte(data: &mut &[u8]) -> u8 {
    take(data, 1).first().copied().unwrap_or(0)
}

fn certificate(data: &mut &[u8]) -> Vec<u8> {
    let kind = byte(data);
    let changes = byte(data);
    let changes = take(data, usize::from(changes) * 3);
    let mut der: Vec<u8> = match kind % 4 {
        0 => {
            let length = usize::from(byte(data)) * 4;
            take(data, length).into()
        }
        1 => Fixture::DEVICE.certificate.into(),
        2 => Fixture::CA.certificate.into(),
        _ => Fixture::P256.certificate.into(),
    };
    for change in changes.chunks_exact(3) {
        let place = usize::from(u16::from_be_bytes([change[0], change[1]]));
        let length = der.len().max(1);
        if let Some(changed) = der.get_mut(place % length) {
            *changed = change[2];
        }
    }
    der
}

fuzz_target!(|data: &[u8]| {
    let mut data = data;
    let choice = byte(&mut data);
    let count = usize::from(byte(&mut data) % 12);
    let chain: Vec<Vec<u8>> = (0..count).map(|_| certificate(&mut data)).collect();
    let chain: Vec<&[u8]> = chain.iter().map(Vec::as_slice).collect();
    let anchors: Vec<&[u8]> = [Fixture::CA.certificate]
        .into_iter()
        .chain(chain.last().copied())
        .collect();

    let counted = Counted {
        holds: usize::from(choice >> 4),
        count: Cell::new(0),
    };
    let role = if choice & 1 == 0 { Role::Client } else { Role::Server };
    let policy = Policy {
        profile: if choice & 2 == 0 {
            Profile::Private
        } else {
            Profile::Strict
        },
        ..Policy::default()
    };
    let name = (choice & 4 != 0).then_some(ServerName::Dns("localhost"));
    let (store, warnings) = TrustStore::new(&anchors, policy, &counted);
    assert!(store.anchor_count() + warnings.len() <= anchors.len());
    let cached = Cached::new(store, 8);
    let answer = cached.verify(&chain, role, name, NOW);
    assert!(counted.count.get() <= 16);
    for der in &chain {
        let _ = public_key(der);
        if let Some(details) = Details::of(der) {
            assert!(!details.to_string().chars().any(char::is_control));
        }
    }
    match answer {
        Ok(verified) => {
            assert!(public_key(chain[0]).is_ok());
            assert!(verified.not_after >= NOW);
            assert!(verified.cut || verified.subject.len() <= 512);
            let checked = counted.count.get();
            assert_eq!(cached.verify(&chain, role, name, NOW), Ok(verified));
            assert_eq!(counted.count.get(), checked);
        }
        Err(refused) => assert!(usize::from(refused.index) < count.max(1)),
    }
});
