//! Our engine, over the provider type that the broker has, with certificates checked as the broker checks them.

use skerry_net::host::Clock as _;
use skerry_net::linux::LinuxClock;
use skerry_tls::config::{ClientAuth, Config, ServerConfig};
use skerry_tls::crypto::arena;
use skerry_tls::crypto::either::{Choice, Either};
use skerry_tls::crypto::fast::Fast;
use skerry_tls::crypto::mbedtls::Mbedtls;
use skerry_tls::crypto::system::SystemRandom;
use skerry_tls::handshake::TicketKeys;
use skerry_tls::notes::Notes;
use skerry_tls::testing::{Fixture, Loaded};
use skerry_tls::x509::{ByProvider, Cached, Policy, TrustStore};

use super::{Kind, Server};
use skerry_tests::tls::{End, now};

/// Either provider.
pub type Chosen = Either<Mbedtls, Fast>;

/// Gives mbedtls its heap; nothing when it has one.
pub fn start_arena() {
    let _ = arena::start(8 << 20);
}

/// The provider that is asked for, for as long as the program runs.
///
/// Errors: it has no memory.
pub fn provider(choice: Choice) -> Result<&'static Chosen, String> {
    start_arena();
    let provider = Chosen::start(choice).map_err(|error| format!("provider {choice}: {error:?}"))?;
    Ok(Box::leak(Box::new(provider)))
}

type Verifier = Cached<TrustStore<ByProvider<'static, Chosen>>>;

pub struct Ours {
    provider: &'static Chosen,
    key: Loaded<Chosen>,
    tickets: TicketKeys<Chosen>,
    verifier: Option<Verifier>,
    end: End<Chosen>,
    clock: LinuxClock,
    engine_ticks: u64,
}

impl Ours {
    pub fn new(choice: Choice, kind: Kind) -> Result<Self, String> {
        let provider = provider(choice)?;
        let verifier = kind.is_mutual().then(|| {
            let (store, _) = TrustStore::new(&[Fixture::CA.certificate], Policy::default(), ByProvider(provider));
            Cached::new(store, 256)
        });
        let tickets = TicketKeys::new(provider, &mut SystemRandom, now(), 24 * 3600);
        Ok(Self {
            provider,
            key: Loaded::new(provider, kind.key.fixture()),
            tickets: tickets.map_err(|error| format!("ticket keys: {error:?}"))?,
            verifier,
            end: End::default(),
            clock: LinuxClock::new(),
            engine_ticks: 0,
        })
    }
}

impl Server for Ours {
    fn begin(&mut self) -> Result<(), String> {
        self.engine_ticks = 0;
        self.end.serve();
        Ok(())
    }

    fn notes(&self) -> Option<&Notes> {
        Some(&self.end.notes)
    }

    fn engine_ticks(&self) -> u64 {
        self.engine_ticks
    }

    fn receive(&mut self, bytes: &mut [u8], out: &mut Vec<u8>) -> Result<(), String> {
        let identities = [self.key.identity()];
        let config = ServerConfig {
            client_auth: match self.verifier {
                Some(_) => ClientAuth::Required,
                None => ClientAuth::None,
            },
            verifier: self.verifier.as_ref().map(|verifier| verifier as _),
            tickets: Some(&self.tickets),
            tickets_sent: 1,
            ..ServerConfig::new(&identities)
        };
        let began = self.clock.ticks();
        let came = self.end.receive(self.provider, Config::Server(&config), bytes, &mut []);
        self.engine_ticks += self.clock.ticks().0.saturating_sub(began.0);
        out.extend_from_slice(self.end.take_out());
        match came {
            Ok(came) if came.consumed == bytes.len() => Ok(()),
            Ok(came) => Err(format!("{} bytes are left", bytes.len() - came.consumed)),
            Err(cause) => Err(format!("{cause:?}")),
        }
    }
}
