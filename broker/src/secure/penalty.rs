//! Peers whose handshakes failed lately: their next connections wait before anything is read from them.
//!
//! A client in a loop of failing handshakes costs as much as it is let. Waiting holds a socket and a place in the connection table, no
//! buffer and no handshake slot. The wait is short and bounded, because well-behaved clients may share the address.

use core::net::IpAddr;

use skerry_core::time::{Instant, Millis};

/// Addresses that are remembered.
const ADDRESSES: usize = 256;

/// The wait after a first failure; each further one doubles it.
const FIRST: Millis = Millis(50);

/// How long a failure is remembered.
const MEMORY: Millis = Millis(10_000);

#[derive(Clone, Copy, Debug)]
struct Entry {
    address: IpAddr,
    failures: u32,
    last: Instant,
}

/// Failures by address.
///
/// When full: the address that has been quiet longest is forgotten.
pub struct Penalties {
    entries: heapless::Vec<Entry, ADDRESSES>,
    most: Millis,
}

impl Penalties {
    /// Nobody has failed yet; nobody waits longer than `most`.
    pub const fn new(most: Millis) -> Self {
        Self {
            entries: heapless::Vec::new(),
            most,
        }
    }

    /// A handshake with this peer failed. Cost: a pass over the remembered addresses.
    pub fn on_failure(&mut self, peer: IpAddr, now: Instant) {
        let address = network(peer);
        if let Some(entry) = self.entries.iter_mut().find(|e| e.address == address) {
            let forgotten = now.since(entry.last) >= MEMORY;
            entry.failures = if forgotten { 1 } else { entry.failures.saturating_add(1) };
            entry.last = now;
            return;
        }
        let entry = Entry {
            address,
            failures: 1,
            last: now,
        };
        if let Err(entry) = self.entries.push(entry)
            && let Some(quietest) = self.entries.iter_mut().min_by_key(|e| e.last)
        {
            *quietest = entry;
        }
    }

    /// When a new connection of this peer is read from. Cost: a pass over the remembered addresses.
    pub fn starts_at(&self, peer: IpAddr, now: Instant) -> Instant {
        let address = network(peer);
        match self.entries.iter().find(|e| e.address == address) {
            Some(entry) if now.since(entry.last) < MEMORY => {
                let doublings = entry.failures.saturating_sub(1).min(16);
                now + Millis((FIRST.0 << doublings).min(self.most.0))
            }
            _ => now,
        }
    }
}

/// What one household or machine has: an IPv4 address, or an IPv6 /64.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() & !u128::from(u64::MAX)).into()),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_micros(ms * 1000)
    }

    fn v4(n: u32) -> IpAddr {
        IpAddr::V4(n.into())
    }

    #[test]
    fn waits_double_up_to_the_most_and_are_forgotten() {
        let mut penalties = Penalties::new(Millis(1000));
        assert_eq!(penalties.starts_at(v4(1), at(5)), at(5));
        for wait in [50, 100, 200, 400, 800, 1000, 1000] {
            penalties.on_failure(v4(1), at(5));
            assert_eq!(penalties.starts_at(v4(1), at(5)), at(5 + wait));
        }
        assert_eq!(penalties.starts_at(v4(2), at(5)), at(5), "others do not wait");
        assert_eq!(penalties.starts_at(v4(1), at(10_005)), at(10_005));
        penalties.on_failure(v4(1), at(10_005));
        assert_eq!(penalties.starts_at(v4(1), at(10_005)), at(10_055), "it begins anew");
    }

    #[test]
    fn the_quietest_is_forgotten_when_full_and_ipv6_goes_by_network() {
        let mut penalties = Penalties::new(Millis(1000));
        for n in 0..=ADDRESSES as u32 {
            penalties.on_failure(v4(n), at(u64::from(n)));
        }
        assert_eq!(penalties.starts_at(v4(0), at(300)), at(300));
        assert_eq!(penalties.starts_at(v4(1), at(300)), at(350));
        penalties.on_failure("2001:db8::1".parse().unwrap(), at(300));
        let neighbour = "2001:db8::ffff:1".parse().unwrap();
        assert_eq!(penalties.starts_at(neighbour, at(300)), at(350));
        let mapped: IpAddr = "::ffff:0.0.0.9".parse().unwrap();
        assert_eq!(
            penalties.starts_at(mapped, at(300)),
            at(350),
            "a mapped address is its IPv4 one"
        );
    }
}
