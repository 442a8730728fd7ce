//! rustls as a peer of the TLS tests; see README.md.
//!
//!   skerry-interop-rustls connect          a client: rows on standard input
//!   skerry-interop-rustls serve OPTION…    an echo server with the options of the example tls-http

use std::collections::HashMap;
use std::env;
use std::error::Error;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{
    ClientConfig, ClientConnection, CommonState, HandshakeKind, RootCertStore, ServerConfig, ServerConnection,
    StreamOwned, SupportedProtocolVersion, version,
};

type Failure = Box<dyn Error + Send + Sync>;
type Pairs = Vec<(&'static str, String)>;

/// What one record holds.
const LINE_BYTES: usize = 16384;

fn main() -> Result<(), Failure> {
    let mut arguments = env::args().skip(1);
    match arguments.next().as_deref() {
        Some("connect") => {
            for line in io::stdin().lines() {
                let line = line?;
                let row = line.split('\t').filter_map(|pair| pair.split_once('=')).collect();
                connect_all(&Options(row));
            }
            Ok(())
        }
        Some("serve") => {
            let words: Vec<String> = arguments.filter(|a| a != "--echo").collect();
            let options = words
                .chunks_exact(2)
                .map(|pair| (pair[0].trim_start_matches('-'), pair[1].as_str()))
                .collect();
            serve(&Options(options))
        }
        _ => Err("connect or serve".into()),
    }
}

/// A row, or a command line.
struct Options<'a>(HashMap<&'a str, &'a str>);

impl Options<'_> {
    /// Empty when it is not there.
    fn of(&self, key: &str) -> &str {
        self.0.get(key).copied().unwrap_or("")
    }

    /// All that rustls has, or what `groups` and `suites` name, in their order.
    fn provider(&self, groups: &str, suites: &str) -> Arc<CryptoProvider> {
        let mut provider = ring::default_provider();
        if !groups.is_empty() {
            let wanted = groups.split(':').filter_map(|name| {
                let name = match name {
                    "p256" => "secp256r1",
                    "p384" => "secp384r1",
                    other => other,
                };
                ring::ALL_KX_GROUPS
                    .iter()
                    .find(|group| group_name(group.name()) == name)
            });
            provider.kx_groups = wanted.copied().collect();
        }
        if !suites.is_empty() {
            provider
                .cipher_suites
                .retain(|suite| suites.contains(&suite_name(suite.suite())));
        }
        Arc::new(provider)
    }

    fn versions(&self, lowest: &str, highest: &str) -> Vec<&'static SupportedProtocolVersion> {
        let mut versions = vec![&version::TLS12, &version::TLS13];
        versions.retain(|v| !(lowest == "1.3" && *v == &version::TLS12 || highest == "1.2" && *v == &version::TLS13));
        versions
    }
}

fn chain(path: &str) -> Result<Vec<CertificateDer<'static>>, Failure> {
    Ok(CertificateDer::pem_file_iter(path)?.collect::<Result<_, _>>()?)
}

fn roots(path: &str) -> Result<Arc<RootCertStore>, Failure> {
    let mut roots = RootCertStore::empty();
    for one in chain(path)? {
        roots.add(one)?;
    }
    Ok(Arc::new(roots))
}

/// Prints one line: what is known of a connection.
fn say(id: &str, number: usize, result: Result<(), Failure>, mut said: Pairs) {
    if let Err(error) = result {
        let words = error.to_string();
        said.push(("failed", words.split_whitespace().collect::<Vec<_>>().join(" ")));
    }
    let pairs: String = said.iter().map(|(key, value)| format!("\t{key}={value}")).collect();
    println!("{id}\t{number}{pairs}");
}

fn describe(connection: &CommonState) -> Pairs {
    let kind = connection.handshake_kind();
    let mut said = vec![
        (
            "version",
            if connection.protocol_version() == Some(rustls::ProtocolVersion::TLSv1_3) {
                "1.3"
            } else {
                "1.2"
            }
            .to_owned(),
        ),
        ("resumed", yes(kind == Some(HandshakeKind::Resumed))),
        ("retried", yes(kind == Some(HandshakeKind::FullWithHelloRetryRequest))),
    ];
    if let Some(suite) = connection.negotiated_cipher_suite() {
        said.push(("suite", suite_name(suite.suite())));
    }
    if let Some(group) = connection.negotiated_key_exchange_group() {
        said.push(("group", group_name(group.name())));
    }
    said
}

fn yes(is: bool) -> String {
    if is { "yes" } else { "no" }.to_owned()
}

/// IANA's name: rustls writes TLS13_… for the suites of TLS 1.3.
fn suite_name(suite: rustls::CipherSuite) -> String {
    format!("{suite:?}").replace("TLS13_", "TLS_")
}

fn group_name(group: rustls::NamedGroup) -> String {
    format!("{group:?}").to_lowercase()
}

fn connect_all(row: &Options<'_>) {
    let config = client_config(row);
    for (number, sizes) in row.of("echo").split(';').enumerate() {
        let mut said = Vec::new();
        let result = match &config {
            Ok(config) => connect(row, config, sizes, &mut said),
            Err(error) => Err(error.to_string().into()),
        };
        let failed = result.is_err();
        say(row.of("id"), number, result, said);
        if failed {
            return;
        }
    }
}

fn client_config(row: &Options<'_>) -> Result<Arc<ClientConfig>, Failure> {
    let provider = row.provider(row.of("group"), row.of("suite"));
    let verifier = WebPkiServerVerifier::builder_with_provider(roots(row.of("ca"))?, provider.clone()).build()?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&row.versions(row.of("version"), row.of("version")))?
        .with_webpki_verifier(verifier);
    let mut config = match row.of("cert") {
        "" => builder.with_no_client_auth(),
        path => builder.with_client_auth_cert(chain(path)?, PrivateKeyDer::from_pem_file(row.of("key"))?)?,
    };
    config.resumption = Resumption::in_memory_sessions(8);
    Ok(Arc::new(config))
}

fn connect(row: &Options<'_>, config: &Arc<ClientConfig>, sizes: &str, said: &mut Pairs) -> Result<(), Failure> {
    let name = ServerName::try_from(row.of("name").to_owned())?;
    let connection = ClientConnection::new(config.clone(), name)?;
    let tcp = TcpStream::connect(("127.0.0.1", row.of("port").parse()?))?;
    let mut tls = StreamOwned::new(connection, tcp);
    while tls.conn.is_handshaking() {
        tls.conn.complete_io(&mut tls.sock)?;
    }
    *said = describe(&tls.conn);
    let mut echoed = 0;
    for size in sizes.split(',') {
        let size = size.parse()?;
        echo(&mut tls, &data(size))?;
        echoed += size;
    }
    said.push(("echoed", echoed.to_string()));
    tls.conn.send_close_notify();
    tls.flush()?;
    // The end after a close_notify; without one it is an error.
    if tls.read(&mut [0])? != 0 {
        return Err("data after the last echo".into());
    }
    said.push(("close", "clean".to_owned()));
    Ok(())
}

/// Sends all, each line in a record of its own, and reads it back; up to 64 KiB under way.
fn echo(tls: &mut (impl Read + Write), all: &[u8]) -> Result<(), Failure> {
    for sent in all.chunks(4 * LINE_BYTES) {
        for line in sent.split_inclusive(|b| *b == b'\n') {
            tls.write_all(line)?;
        }
        tls.flush()?;
        let mut got = vec![0; sent.len()];
        tls.read_exact(&mut got)?;
        if got != sent {
            return Err(format!("other bytes came back of {}", sent.len()).into());
        }
    }
    Ok(())
}

/// So many bytes in lines of at most [`LINE_BYTES`] with their newline, no two neighbours alike.
fn data(count: usize) -> Vec<u8> {
    let byte = |i: usize| match (i * 7 + i / 251) % 26 {
        _ if i % LINE_BYTES == LINE_BYTES - 1 || i == count - 1 => b'\n',
        letter => b'a' + letter as u8,
    };
    (0..count).map(byte).collect()
}

fn serve(options: &Options<'_>) -> Result<(), Failure> {
    let provider = options.provider(options.of("groups"), options.of("suites"));
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&options.versions(options.of("min-version"), options.of("max-version")))?;
    let builder = match options.of("client-auth") {
        "requested" | "required" => {
            let verifier = WebPkiClientVerifier::builder_with_provider(roots(options.of("client-ca"))?, provider);
            let verifier = match options.of("client-auth") {
                "requested" => verifier.allow_unauthenticated(),
                _ => verifier,
            };
            builder.with_client_cert_verifier(verifier.build()?)
        }
        _ => builder.with_no_client_auth(),
    };
    let key = PrivateKeyDer::from_pem_file(options.of("key"))?;
    let mut config = builder.with_single_cert(chain(options.of("cert"))?, key)?;
    config.ticketer = ring::Ticketer::new()?;
    let config = Arc::new(config);
    let listener = TcpListener::bind(options.of("listen"))?;
    println!("listening on {}", listener.local_addr()?);
    for tcp in listener.incoming() {
        let (tcp, config) = (tcp?, config.clone());
        thread::spawn(move || {
            let mut said = String::new();
            if let Err(error) = answer(config, tcp, &mut said) {
                println!("{said}{:?}", error.to_string());
            }
        });
    }
    Ok(())
}

/// Sends every complete line back until the peer closes, and says so. `said` becomes the beginning of a line about an error.
fn answer(config: Arc<ServerConfig>, tcp: TcpStream, said: &mut String) -> Result<(), Failure> {
    let peer = tcp.peer_addr()?;
    *said = format!("failed peer={peer} cause=");
    let mut tls = StreamOwned::new(ServerConnection::new(config)?, tcp);
    while tls.conn.is_handshaking() {
        tls.conn.complete_io(&mut tls.sock)?;
    }
    let mut pairs = describe(&tls.conn);
    if let Some(name) = tls.conn.server_name() {
        pairs.push(("name", name.to_owned()));
    }
    if let Some(leaf) = tls.conn.peer_certificates().and_then(|chain| chain.first()) {
        pairs.push(("subject", common_name(leaf)));
    }
    let pairs: String = pairs.iter().map(|(key, value)| format!(" {key}={value}")).collect();
    println!("connected peer={peer}{pairs}");
    let mut input = BufReader::with_capacity(LINE_BYTES, tls);
    let (mut line, mut received) = (Vec::new(), 0);
    loop {
        *said = format!("closed peer={peer} received={received} how=");
        line.clear();
        input.read_until(b'\n', &mut line)?;
        if line.last() != Some(&b'\n') {
            break;
        }
        input.get_mut().write_all(&line)?;
        input.get_mut().flush()?;
        received += line.len();
    }
    println!("closed peer={peer} received={received} how=clean");
    let tls = input.get_mut();
    tls.conn.send_close_notify();
    tls.flush()?;
    Ok(())
}

/// The last common name in a certificate, which is the subject's: `device-…` in those of the tests.
fn common_name(der: &[u8]) -> String {
    let tag = [0x06, 0x03, 0x55, 0x04, 0x03];
    let name = der.windows(tag.len()).rposition(|w| w == tag).and_then(|at| {
        let rest = &der[at + tag.len()..];
        rest.get(2..2 + usize::from(*rest.get(1)?))
    });
    name.map_or_else(String::new, |name| String::from_utf8_lossy(name).into_owned())
}
