//! A device's TLS: the small provider, trust by a pin, and the transport that `core`'s client is given.
#![cfg(all(feature = "rustcrypto", feature = "fast"))]

use std::collections::VecDeque;

use skerry_core::client::{Lost, Transport};
use skerry_core::time::Timestamp;
use skerry_tls::cause::Cause;
use skerry_tls::config::{ClientConfig, Config, ServerConfig};
use skerry_tls::crypto::fast::Fast;
use skerry_tls::crypto::rustcrypto::{GROUPS, RustCrypto, SCHEMES, SUITES};
use skerry_tls::crypto::{Exchange as _, Hash as _, HashAlgorithm, Provider};
use skerry_tls::notes::Notes;
use skerry_tls::pinned::{Pin, Pinned};
use skerry_tls::suite::{Group, Version};
use skerry_tls::testing::{Fixture, Loaded, Room, Seeded, Setting, Side};
use skerry_tls::transport::{Buffers, Secured};
use skerry_tls::x509;

fn pin_of(fixture: Fixture) -> Pin {
    let key = x509::public_key(fixture.certificate).unwrap();
    let mut hash = Fast.hash(HashAlgorithm::Sha256).unwrap();
    hash.update(key.spki);
    hash.digest().bytes().try_into().unwrap()
}

/// A server behind a wire that cuts anywhere; it answers each byte with its complement.
struct Server<'k> {
    setting: Setting<'k, Fast>,
    side: Side<Fast>,
    answered: usize,
    to_device: VecDeque<u8>,
    /// Records that the server sent, by their length.
    longest: usize,
    random: Seeded,
    gone: bool,
}

impl<'k> Server<'k> {
    fn new(config: &'k ServerConfig<'k, Fast>, seed: u64) -> Self {
        Self {
            setting: Setting::new(&Fast, Config::Server(config)),
            side: Side::server(seed, Room::default()),
            answered: 0,
            to_device: VecDeque::new(),
            longest: 0,
            random: Seeded::new(seed),
            gone: false,
        }
    }

    fn turn(&mut self, bytes: &[u8]) {
        self.side.receive(&self.setting, bytes);
        if self.side.data.len() > self.answered {
            let answer: Vec<u8> = self.side.data[self.answered..].iter().map(|byte| !byte).collect();
            self.answered = self.side.data.len();
            self.side.send(&answer).unwrap();
        }
        let out = self.side.take_out();
        let mut rest = &out[..];
        while let [_, _, _, a, b, ..] = *rest {
            let bytes = 5 + usize::from(u16::from_be_bytes([a, b]));
            self.longest = self.longest.max(bytes);
            rest = &rest[bytes..];
        }
        self.to_device.extend(out);
    }
}

impl Transport for Server<'_> {
    fn send(&mut self, bytes: &[u8]) -> nb::Result<usize, Lost> {
        if self.gone {
            return Err(nb::Error::Other(Lost));
        }
        if self.random.below(4) == 0 {
            return Err(nb::Error::WouldBlock);
        }
        let taken = 1 + self.random.below(bytes.len());
        self.turn(&bytes[..taken]);
        Ok(taken)
    }

    fn receive(&mut self, out: &mut [u8]) -> nb::Result<usize, Lost> {
        if self.to_device.is_empty() {
            return if self.gone { Ok(0) } else { Err(nb::Error::WouldBlock) };
        }
        let taken = (1 + self.random.below(out.len())).min(self.to_device.len());
        for (to, from) in out.iter_mut().zip(self.to_device.drain(..taken)) {
            *to = from;
        }
        Ok(taken)
    }
}

/// Sends `request`, gets as many bytes back.
fn ask<T: Transport>(transport: &mut T, request: &[u8]) -> Result<Vec<u8>, Lost> {
    let (mut sent, mut got) = (0, Vec::new());
    let mut piece = [0; 100];
    for _ in 0..1_000_000 {
        if sent < request.len() {
            match transport.send(&request[sent..]) {
                Ok(bytes) => sent += bytes,
                Err(nb::Error::WouldBlock) => {}
                Err(nb::Error::Other(lost)) => return Err(lost),
            }
        }
        match transport.receive(&mut piece) {
            Ok(0) => return Err(Lost),
            Ok(bytes) => got.extend_from_slice(&piece[..bytes]),
            Err(nb::Error::WouldBlock) => {}
            Err(nb::Error::Other(lost)) => return Err(lost),
        }
        if got.len() == request.len() {
            return Ok(got);
        }
    }
    panic!("{sent} sent, {} received, and nothing goes on", got.len());
}

/// How a device is set up, but for its verifier.
fn config<'a>(verifier: &'a Pinned<'a, RustCrypto>, groups: &'static [Group]) -> ClientConfig<'a, RustCrypto> {
    ClientConfig {
        versions: &[Version::Tls13],
        suites: SUITES,
        groups,
        shares: groups,
        schemes: SCHEMES,
        tickets: false,
        record_size_limit: Some(512),
        ..ClientConfig::new(verifier, None)
    }
}

/// Goal: handshake and data in either direction work however bytes are cut, within the buffers of a device. Method: seeds, both
/// groups; requests from one byte to several records; the server may send no record over the limit.
#[test]
fn a_device_talks_to_the_server() {
    let loaded = Loaded::new(&Fast, Fixture::P256);
    let identities = [loaded.identity()];
    let server_config = ServerConfig::new(&identities);
    let pins = [[0; 32], pin_of(Fixture::P256)];
    let verifier = Pinned::new(&RustCrypto, &pins);
    for seed in 0..20 {
        for group in [&[Group::Secp256r1][..], GROUPS] {
            let config = config(&verifier, group);
            let (mut buffers, mut notes) = (Buffers::<536, 1536, 576>::new(), Notes::default());
            let server = Server::new(&server_config, seed);
            let mut tls = Secured::new(
                server,
                &RustCrypto,
                &config,
                Seeded::new(seed),
                &mut buffers,
                &mut notes,
            );
            for _ in 0..2 {
                tls.connect(Timestamp(0)).unwrap();
                for bytes in [1, 100, 511, 512, 2000] {
                    let request: Vec<u8> = (0..bytes).map(|n| n as u8).collect();
                    let answer = ask(&mut tls, &request).unwrap_or_else(|_| panic!("seed {seed}: {:?}", tls.cause()));
                    assert!(
                        answer.iter().map(|byte| !byte).eq(request),
                        "seed {seed}, {bytes} bytes"
                    );
                }
                assert_eq!(tls.session().unwrap().suite(), Some(SUITES[0]));
                assert!(tls.inner.longest <= 5 + 512 + 16, "{}", tls.inner.longest);
                // The device comes back over a new connection, in the same buffers.
                tls.inner = Server::new(&server_config, seed + 100);
            }
        }
    }
}

#[test]
fn another_key_is_refused_and_the_server_told() {
    let loaded = Loaded::new(&Fast, Fixture::P256);
    let identities = [loaded.identity()];
    let server_config = ServerConfig::new(&identities);
    let pins = [pin_of(Fixture::CA)];
    let verifier = Pinned::new(&RustCrypto, &pins);
    let config = config(&verifier, &[Group::Secp256r1]);
    let (mut buffers, mut notes) = (Buffers::<536, 1536, 576>::new(), Notes::default());
    let server = Server::new(&server_config, 1);
    let mut tls = Secured::new(server, &RustCrypto, &config, Seeded::new(1), &mut buffers, &mut notes);
    tls.connect(Timestamp(0)).unwrap();
    assert_eq!(ask(&mut tls, b"x"), Err(Lost));
    assert_eq!(tls.cause(), Some(Cause::UnknownCa));
    while tls.inner.side.cause.is_none() {
        assert!(tls.receive(&mut [0]).is_err(), "a session that failed gives nothing");
    }
    assert!(matches!(tls.inner.side.cause, Some(Cause::PeerAlert(_))));
    assert!(tls.inner.side.data.is_empty());
}

#[test]
fn a_connection_that_ends_within_is_lost() {
    let loaded = Loaded::new(&Fast, Fixture::P256);
    let identities = [loaded.identity()];
    let server_config = ServerConfig::new(&identities);
    let pins = [pin_of(Fixture::P256)];
    let verifier = Pinned::new(&RustCrypto, &pins);
    let config = config(&verifier, &[Group::Secp256r1]);
    let (mut buffers, mut notes) = (Buffers::<536, 1536, 576>::new(), Notes::default());
    let server = Server::new(&server_config, 1);
    let mut tls = Secured::new(server, &RustCrypto, &config, Seeded::new(1), &mut buffers, &mut notes);
    tls.connect(Timestamp(0)).unwrap();
    ask(&mut tls, b"fine").unwrap();
    tls.inner.gone = true;
    assert_eq!(ask(&mut tls, b"x"), Err(Lost));
    // And without any session.
    let server = Server::new(&server_config, 1);
    let (mut buffers, mut notes) = (Buffers::<536, 1536, 576>::new(), Notes::default());
    let mut tls = Secured::new(server, &RustCrypto, &config, Seeded::new(1), &mut buffers, &mut notes);
    assert_eq!(ask(&mut tls, b"x"), Err(Lost));
}

/// A message that is too long for the buffer is refused by its own claim.
#[test]
fn a_chain_that_is_too_long_ends_it_by_name() {
    let loaded = Loaded::new(&Fast, Fixture::P256);
    let identities = [loaded.identity()];
    let server_config = ServerConfig::new(&identities);
    let pins = [pin_of(Fixture::P256)];
    let verifier = Pinned::new(&RustCrypto, &pins);
    let config = config(&verifier, &[Group::Secp256r1]);
    let (mut buffers, mut notes) = (Buffers::<536, 200, 576>::new(), Notes::default());
    let server = Server::new(&server_config, 1);
    let mut tls = Secured::new(server, &RustCrypto, &config, Seeded::new(1), &mut buffers, &mut notes);
    tls.connect(Timestamp(0)).unwrap();
    assert_eq!(ask(&mut tls, b"x"), Err(Lost));
    assert_eq!(tls.cause(), Some(Cause::HandshakeTooLong));
}

#[test]
fn the_same_secret_and_digests_as_the_fast_provider() {
    for group in GROUPS {
        for seed in 0..8 {
            let (ours, theirs) = (Seeded::new(seed), Seeded::new(seed));
            let small = RustCrypto.exchange(*group, &mut ours.clone()).unwrap();
            let fast = Fast.exchange(*group, &mut theirs.clone()).unwrap();
            assert_eq!(small.share().bytes(), fast.share().bytes());
            let peer = Fast.exchange(*group, &mut Seeded::new(seed + 50)).unwrap();
            let one = small.agree(peer.share().bytes()).unwrap();
            assert!(fast.agree(peer.share().bytes()).unwrap().is(one.bytes()));
        }
        assert!(
            RustCrypto
                .exchange(*group, &mut Seeded::new(1))
                .unwrap()
                .agree(&[0; 65])
                .is_err()
        );
    }
    for bytes in [0, 1, 63, 64, 65, 1000] {
        let message = vec![7; bytes];
        let of = |secret: skerry_tls::crypto::Secret| secret.bytes().to_vec();
        let (mut one, mut other) = (
            RustCrypto.hash(HashAlgorithm::Sha256).unwrap(),
            Fast.hash(HashAlgorithm::Sha256).unwrap(),
        );
        one.update(&message);
        other.update(&message);
        assert_eq!(of(one.fork().unwrap().digest()), of(other.digest()));
        assert_eq!(
            of(RustCrypto
                .hmac(HashAlgorithm::Sha256, &message, &[b"a", &message])
                .unwrap()),
            of(Fast.hmac(HashAlgorithm::Sha256, &message, &[b"a", &message]).unwrap())
        );
    }
    assert!(RustCrypto.hash(HashAlgorithm::Sha384).is_err());
    assert!(RustCrypto.signing_key(Fixture::P256.key).is_err());
}
