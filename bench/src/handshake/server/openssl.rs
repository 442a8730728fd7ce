//! OpenSSL, the system's library.

use std::io::{self, ErrorKind, Read, Write};

use openssl::error::ErrorStack;
use openssl::pkey::PKey;
use openssl::ssl::{
    ErrorCode, Ssl, SslContext, SslContextBuilder, SslMethod, SslSessionCacheMode, SslStream, SslVerifyMode, SslVersion,
};
use openssl::x509::X509;
use openssl::x509::store::X509StoreBuilder;
use skerry_tls::suite::Version;
use skerry_tls::testing::Fixture;

use super::{Kind, Server};

pub struct OpenSsl {
    context: SslContext,
    stream: Option<SslStream<Pipe>>,
}

/// What came and is not read, and what was written.
#[derive(Default)]
struct Pipe {
    input: Vec<u8>,
    at: usize,
    output: Vec<u8>,
}

impl Read for Pipe {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let rest = &self.input[self.at..];
        if rest.is_empty() {
            return Err(ErrorKind::WouldBlock.into());
        }
        let bytes = rest.len().min(into.len());
        into[..bytes].copy_from_slice(&rest[..bytes]);
        self.at += bytes;
        Ok(bytes)
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.output.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl OpenSsl {
    pub fn new(kind: Kind) -> Result<Self, String> {
        Self::try_new(kind).map_err(|error| format!("openssl: {error}"))
    }

    fn try_new(kind: Kind) -> Result<Self, ErrorStack> {
        let mut builder = SslContextBuilder::new(SslMethod::tls_server())?;
        let version = Some(match kind.version {
            Version::Tls13 => SslVersion::TLS1_3,
            Version::Tls12 => SslVersion::TLS1_2,
        });
        builder.set_min_proto_version(version)?;
        builder.set_max_proto_version(version)?;
        let fixture = kind.key.fixture();
        builder.set_certificate(X509::from_der(fixture.certificate)?.as_ref())?;
        builder.set_private_key(PKey::private_key_from_pkcs8(fixture.key)?.as_ref())?;
        builder.set_groups_list("X25519:P-256")?;
        if kind.is_alike() {
            builder.set_num_tickets(1)?;
            builder.set_session_cache_mode(SslSessionCacheMode::OFF);
        }
        builder.set_session_id_context(b"skerry-bench")?;
        if kind.is_mutual() {
            let mut store = X509StoreBuilder::new()?;
            store.add_cert(X509::from_der(Fixture::CA.certificate)?)?;
            builder.set_verify_cert_store(store.build())?;
            builder.set_verify(SslVerifyMode::PEER | SslVerifyMode::FAIL_IF_NO_PEER_CERT);
        }
        Ok(Self {
            context: builder.build(),
            stream: None,
        })
    }
}

impl Server for OpenSsl {
    fn begin(&mut self) -> Result<(), String> {
        self.stream = None;
        let stream = Ssl::new(&self.context).and_then(|ssl| SslStream::new(ssl, Pipe::default()));
        self.stream = Some(stream.map_err(|error| error.to_string())?);
        Ok(())
    }

    fn end(&mut self) {
        self.stream = None;
    }

    fn receive(&mut self, bytes: &mut [u8], out: &mut Vec<u8>) -> Result<(), String> {
        let stream = self.stream.as_mut().ok_or("no connection was begun")?;
        let pipe = stream.get_mut();
        pipe.input.drain(..pipe.at);
        pipe.at = 0;
        pipe.input.extend_from_slice(bytes);
        let outcome = stream.accept();
        out.append(&mut stream.get_mut().output);
        match outcome {
            Err(error) if error.code() != ErrorCode::WANT_READ => Err(error.to_string()),
            _ => Ok(()),
        }
    }
}
