//! mbedtls's own server: TLS 1.2 is the newest that 2.28 speaks. Its memory is our arena.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use mbedtls::cipher::raw::CipherType;
use mbedtls::error::codes;
use mbedtls::pk::{EcGroupId, Pk};
use mbedtls::rng::{CtrDrbg, OsEntropy};
use mbedtls::ssl::config::{AuthMode, Endpoint, Preset, Transport, Version};
use mbedtls::ssl::{Config, Context, Io, TicketContext};
use mbedtls::x509::Certificate;
use skerry_tls::testing::Fixture;

use super::{Kind, Server};

pub struct Mbedtls {
    config: Arc<Config>,
    context: Option<Context<Pipe>>,
    /// Whether the context was given its pipe.
    established: bool,
    pipe: Pipe,
}

#[derive(Clone, Default)]
struct Pipe(Rc<RefCell<Bytes>>);

#[derive(Default)]
struct Bytes {
    input: Vec<u8>,
    at: usize,
    output: Vec<u8>,
}

impl Io for Pipe {
    fn recv(&mut self, into: &mut [u8]) -> mbedtls::Result<usize> {
        let mut pipe = self.0.borrow_mut();
        let rest = &pipe.input[pipe.at..];
        if rest.is_empty() {
            return Err(codes::SslWantRead.into());
        }
        let bytes = rest.len().min(into.len());
        into[..bytes].copy_from_slice(&rest[..bytes]);
        pipe.at += bytes;
        Ok(bytes)
    }

    fn send(&mut self, bytes: &[u8]) -> mbedtls::Result<usize> {
        self.0.borrow_mut().output.extend_from_slice(bytes);
        Ok(bytes.len())
    }
}

impl Mbedtls {
    pub fn new(kind: Kind) -> Result<Self, String> {
        Self::try_new(kind).map_err(|error| format!("mbedtls: {error}"))
    }

    fn try_new(kind: Kind) -> mbedtls::Result<Self> {
        let random = Arc::new(CtrDrbg::new(Arc::new(OsEntropy::new()), None)?);
        let mut config = Config::new(Endpoint::Server, Transport::Stream, Preset::Default);
        config.set_rng(Arc::clone(&random));
        config.set_min_version(Version::Tls1_2)?;
        let list = |der: &[u8]| -> mbedtls::Result<_> {
            let mut list = mbedtls::alloc::List::new();
            list.push(Certificate::from_der(der)?);
            Ok(Arc::new(list))
        };
        let fixture = kind.key.fixture();
        let key = Pk::from_private_key(fixture.key, None)?;
        config.push_cert(list(fixture.certificate)?, Arc::new(key))?;
        if kind.is_mutual() {
            config.set_ca_list(list(Fixture::CA.certificate)?, None);
            config.set_authmode(AuthMode::Required);
        }
        let curves = vec![EcGroupId::Curve25519.into(), EcGroupId::SecP256R1.into(), 0];
        config.set_curves(Arc::new(curves));
        let tickets = TicketContext::new(random, CipherType::Aes256Gcm, 24 * 3600)?;
        config.set_session_tickets_callback(Arc::new(tickets));
        Ok(Self {
            config: Arc::new(config),
            context: None,
            established: false,
            pipe: Pipe::default(),
        })
    }
}

impl Server for Mbedtls {
    fn begin(&mut self) -> Result<(), String> {
        self.context = None;
        *self.pipe.0.borrow_mut() = Bytes::default();
        self.context = Some(Context::new(Arc::clone(&self.config)));
        self.established = false;
        Ok(())
    }

    fn end(&mut self) {
        self.context = None;
    }

    fn receive(&mut self, bytes: &mut [u8], out: &mut Vec<u8>) -> Result<(), String> {
        let context = self.context.as_mut().ok_or("no connection was begun")?;
        {
            let mut pipe = self.pipe.0.borrow_mut();
            let at = std::mem::take(&mut pipe.at);
            pipe.input.drain(..at);
            pipe.input.extend_from_slice(bytes);
        }
        let outcome = if std::mem::replace(&mut self.established, true) {
            context.handshake()
        } else {
            context.establish(self.pipe.clone(), None)
        };
        out.append(&mut self.pipe.0.borrow_mut().output);
        match outcome {
            Err(error) if error.high_level() == Some(codes::SslWantRead) => Ok(()),
            other => other.map_err(|error| error.to_string()),
        }
    }
}
