//! rustls, with aws-lc-rs or with ring.

use std::sync::Arc;

use rustls::crypto::{aws_lc_rs, ring};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig, ServerConnection};
use skerry_tls::suite::Version;
use skerry_tls::testing::Fixture;

use super::{Kind, Server};

/// Whose primitives it uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Primitives {
    AwsLc,
    Ring,
}

pub struct Rustls {
    config: Arc<ServerConfig>,
    connection: Option<ServerConnection>,
}

impl Rustls {
    pub fn new(kind: Kind, primitives: Primitives) -> Result<Self, String> {
        Self::try_new(kind, primitives).map_err(|error| format!("rustls: {error}"))
    }

    fn try_new(kind: Kind, primitives: Primitives) -> Result<Self, Box<dyn std::error::Error>> {
        let (provider, ticketer) = match primitives {
            Primitives::AwsLc => (aws_lc_rs::default_provider(), aws_lc_rs::Ticketer::new()?),
            Primitives::Ring => (ring::default_provider(), ring::Ticketer::new()?),
        };
        let provider = Arc::new(provider);
        let version = match kind.version {
            Version::Tls13 => &TLS13,
            Version::Tls12 => &TLS12,
        };
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_protocol_versions(&[version])?;
        let builder = if kind.is_mutual() {
            let mut roots = RootCertStore::empty();
            roots.add(CertificateDer::from(Fixture::CA.certificate))?;
            builder.with_client_cert_verifier(
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build()?,
            )
        } else {
            builder.with_no_client_auth()
        };
        let fixture = kind.key.fixture();
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(fixture.key));
        let mut config = builder.with_single_cert(vec![CertificateDer::from(fixture.certificate)], key)?;
        if kind.is_alike() {
            config.ticketer = ticketer;
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 1;
        }
        Ok(Self {
            config: Arc::new(config),
            connection: None,
        })
    }
}

impl Server for Rustls {
    fn begin(&mut self) -> Result<(), String> {
        self.connection = None;
        let connection = ServerConnection::new(Arc::clone(&self.config));
        self.connection = Some(connection.map_err(|error| error.to_string())?);
        Ok(())
    }

    fn end(&mut self) {
        self.connection = None;
    }

    fn receive(&mut self, bytes: &mut [u8], out: &mut Vec<u8>) -> Result<(), String> {
        let connection = self.connection.as_mut().ok_or("no connection was begun")?;
        let mut rest = &bytes[..];
        let mut outcome = Ok(());
        while !rest.is_empty() && outcome.is_ok() {
            connection.read_tls(&mut rest).map_err(|error| error.to_string())?;
            outcome = connection.process_new_packets().map(drop);
        }
        while connection.wants_write() {
            connection.write_tls(out).map_err(|error| error.to_string())?;
        }
        outcome.map_err(|error| error.to_string())
    }
}
