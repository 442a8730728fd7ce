//! Handshakes in memory, either side's own time: `handshake/<side>-<version>-<shape>-<key>/<provider>`.
//!
//! Both sides are our engine over the same provider. Only the named side's calls are timed, by the wall clock; a reading of it at each of a side's two to
//! four turns is some 25 ns.

use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use skerry_tests::tls::{End, now};
use skerry_tls::certificate::ServerName;
use skerry_tls::config::{ClientAuth, ClientConfig, Config, Identity, ServerConfig};
use skerry_tls::crypto::Provider;
use skerry_tls::crypto::fast::Fast;
use skerry_tls::crypto::mbedtls::Mbedtls;
use skerry_tls::crypto::system::SystemRandom;
use skerry_tls::handshake::TicketKeys;
use skerry_tls::state::StateId;
use skerry_tls::suite::{CipherSuite, Version};
use skerry_tls::testing::{Accepting, Fixture, Loaded};

const VERSIONS: [(&str, Version); 2] = [("1.3", Version::Tls13), ("1.2", Version::Tls12)];
const KEYS: [(&str, Fixture); 2] = [("p256", Fixture::P256), ("rsa2048", Fixture::RSA)];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Full,
    Resumed,
    Mutual,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Server,
    Client,
}

/// Both sides of handshakes of one kind.
struct Pair<'p, P: Provider> {
    provider: &'p P,
    shape: Shape,
    versions: [Version; 1],
    key: Loaded<P>,
    device: Loaded<P>,
    tickets: TicketKeys<P>,
    verifier: Accepting,
    client: End<P>,
    server: End<P>,
    /// The session that is resumed.
    resume: Vec<u8>,
    to_server: Vec<u8>,
    to_client: Vec<u8>,
}

impl<'p, P: Provider> Pair<'p, P> {
    fn new(provider: &'p P, version: Version, shape: Shape, key: Fixture) -> Self {
        let tickets = TicketKeys::new(provider, &mut SystemRandom, now(), 24 * 3600).expect("ticket keys");
        let mut pair = Self {
            provider,
            shape,
            versions: [version],
            key: Loaded::new(provider, key),
            device: Loaded::new(provider, Fixture::DEVICE),
            tickets,
            verifier: Accepting::default(),
            client: End::default(),
            server: End::default(),
            resume: Vec::new(),
            to_server: Vec::new(),
            to_client: Vec::new(),
        };
        pair.shake(Who::Server);
        if shape == Shape::Resumed {
            pair.resume = std::mem::take(&mut pair.client.kept.bytes);
            assert!(!pair.resume.is_empty(), "no ticket");
            pair.shake(Who::Server);
        }
        let agreed = pair.server.session.agreed();
        assert_eq!(agreed.resumed, shape == Shape::Resumed);
        pair
    }

    /// One handshake, tickets included; what `who` took for it.
    fn shake(&mut self, who: Who) -> Duration {
        let Self {
            client,
            server,
            to_server,
            to_client,
            ..
        } = self;
        let server_identities = [self.key.identity()];
        let is_mutual = self.shape == Shape::Mutual;
        let server_config = ServerConfig {
            client_auth: if is_mutual {
                ClientAuth::Required
            } else {
                ClientAuth::None
            },
            verifier: is_mutual.then_some(&self.verifier as _),
            tickets: Some(&self.tickets),
            tickets_sent: 1,
            ..ServerConfig::new(&server_identities)
        };
        let client_identity: Option<Identity<'_, P>> = is_mutual.then(|| self.device.identity());
        let client_config = ClientConfig {
            versions: &self.versions,
            suites: &[
                CipherSuite::TLS_AES_128_GCM_SHA256,
                CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
                CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
            ],
            identity: client_identity.as_ref(),
            resume: &self.resume,
            ..ClientConfig::new(&self.verifier, Some(ServerName::Dns("broker.example")))
        };
        let mut spent = Duration::ZERO;
        let mut timed = |side, work: &mut dyn FnMut()| {
            let start = Instant::now();
            work();
            if side == who {
                spent += start.elapsed();
            }
        };
        timed(Who::Client, &mut || {
            client
                .connect(self.provider, Config::Client(&client_config))
                .expect("a hello");
        });
        timed(Who::Server, &mut || server.serve());
        loop {
            to_server.clear();
            to_server.extend_from_slice(client.take_out());
            if to_server.is_empty() {
                break;
            }
            timed(Who::Server, &mut || {
                let came = server.receive(self.provider, Config::Server(&server_config), to_server, &mut []);
                assert_eq!(came.expect("the client is understood").consumed, to_server.len());
            });
            to_client.clear();
            to_client.extend_from_slice(server.take_out());
            timed(Who::Client, &mut || {
                let came = client.receive(self.provider, Config::Client(&client_config), to_client, &mut []);
                assert_eq!(came.expect("the server is understood").consumed, to_client.len());
            });
        }
        assert_eq!(server.session.state_id(), StateId::Connected);
        spent
    }
}

fn handshakes<P: Provider>(c: &mut Criterion, provider: &P) {
    for who in [Who::Server, Who::Client] {
        for (version_name, version) in VERSIONS {
            for shape in [Shape::Full, Shape::Resumed, Shape::Mutual] {
                for (key_name, key) in KEYS {
                    // Nothing is signed in a resumption.
                    if shape == Shape::Resumed && key_name != KEYS[0].0 {
                        continue;
                    }
                    let name = format!("handshake/{who:?}-{version_name}-{shape:?}-{key_name}").to_lowercase();
                    let mut group = c.benchmark_group(name);
                    group.throughput(Throughput::Elements(1));
                    let mut pair = Pair::new(provider, version, shape, key);
                    group.bench_function(provider.name(), |b| {
                        b.iter_custom(|count| (0..count).map(|_| pair.shake(who)).sum());
                    });
                    group.finish();
                }
            }
        }
    }
}

fn of_each_provider(c: &mut Criterion) {
    handshakes(c, &Fast);
    handshakes(c, &Mbedtls::new().expect("a provider"));
}

criterion_group! {
    name = benches;
    // Mbed TLS takes milliseconds.
    config = Criterion::default().sample_size(30);
    targets = of_each_provider
}
criterion_main!(benches);
