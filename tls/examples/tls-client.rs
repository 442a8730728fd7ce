//! A TLS client for trying servers: connects, shakes hands, sends a line, says what was agreed on.
//!
//! Each connection ends with one line of JSON on standard output; the exit status is 0 when every handshake succeeded.

mod common;

use std::net::{IpAddr, TcpStream};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use common::connection::{Connection, Got};
use common::parse::{group, suite, version};
use common::{Chosen, pem};
use skerry_tls::cause::Cause;
use skerry_tls::certificate::{ServerName, Verifier};
use skerry_tls::config::{ClientConfig, Config, Identity};
use skerry_tls::crypto::Provider as _;
use skerry_tls::crypto::either::Choice;
use skerry_tls::saved::{Keep, SessionSlot};
use skerry_tls::state::StateId;
use skerry_tls::suite::{CipherSuite, Group, SignatureScheme, Version};
use skerry_tls::testing::Accepting;
use skerry_tls::x509::{ByMbedtls, Policy, TrustStore};

/// Tries a TLS server.
#[derive(Parser)]
#[command(name = "tls-client")]
struct Options {
    /// The server.
    #[arg(long, value_name = "HOST:PORT")]
    connect: String,
    /// Who the server must be: a DNS name or an address. The host that is connected to, unless told.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// CAs of the server's certificate, PEM. Without any, every chain passes.
    #[arg(long, value_name = "FILE")]
    ca: Option<String>,
    /// Our certificate chain, PEM, leaf first.
    #[arg(long, value_name = "CHAIN", requires = "key")]
    cert: Option<String>,
    /// Our private key, PEM.
    #[arg(long, value_name = "KEY", requires = "cert")]
    key: Option<String>,
    /// The oldest version.
    #[arg(long, value_name = "1.2|1.3", default_value = "1.2", value_parser = version)]
    min_version: Version,
    /// The newest version.
    #[arg(long, value_name = "1.2|1.3", default_value = "1.3", value_parser = version)]
    max_version: Version,
    /// Groups, in order of preference.
    #[arg(long, value_name = "x25519:p256", value_delimiter = ':', default_value = "x25519:p256", value_parser = group)]
    groups: Vec<Group>,
    /// Groups to share in at once.
    #[arg(long, value_name = "x25519:p256", value_delimiter = ':', default_value = "x25519", value_parser = group)]
    shares: Vec<Group>,
    /// Shares nothing at once, which costs a HelloRetryRequest.
    #[arg(long, conflicts_with = "shares")]
    no_shares: bool,
    /// Cipher suites by their IANA names, in order of preference.
    #[arg(long, value_name = "IANA,IANA", value_delimiter = ',', value_parser = suite)]
    suites: Vec<CipherSuite>,
    /// Who does the cryptography.
    #[arg(long, value_name = "mbedtls|fast", default_value_t = Choice::Auto)]
    provider: Choice,
    /// One after the other, each of which resumes the session of the one before it where it can.
    #[arg(long, value_name = "N", default_value_t = 1)]
    connections: usize,
    /// Resumes nothing.
    #[arg(long)]
    no_resume: bool,
    /// Wishes for no tickets.
    #[arg(long)]
    no_tickets: bool,
    /// The record_size_limit to tell.
    #[arg(long, value_name = "BYTES")]
    record_size_limit: Option<u16>,
    /// A line to send; the answer's first line is waited for. Without one, the connection is closed once a ticket had time to come.
    #[arg(long, value_name = "LINE")]
    send: Option<String>,
    /// How much to send in lines of at most 16384 bytes, each in a record of its own, and to read back. A line is the same read backwards.
    #[arg(long, value_name = "BYTES,BYTES", value_delimiter = ',', conflicts_with = "send")]
    echo: Vec<usize>,
    /// New keys before the line, or between what is echoed.
    #[arg(long)]
    update_keys: bool,
    /// For a whole connection.
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    timeout: u64,
}

/// For a ticket after the handshake, when nothing else is waited for.
const TICKET: Duration = Duration::from_millis(200);
/// The longest line that is echoed, and how much is under way at once, so that neither side waits for the other to read.
const LINE_BYTES: usize = 1 << 14;
const WINDOW_BYTES: usize = 4 * LINE_BYTES;
/// For the end of the peer's stream after our last word, and what is taken of it.
const FAREWELL: Duration = Duration::from_millis(500);
const DRAIN_BYTES_MAX: usize = 1 << 20;
/// A session and the longest ticket that is kept.
const SLOT_BYTES: usize = 1 << 14;

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("tls-client: {why}");
            ExitCode::from(2)
        }
    }
}

/// Whether every connection did what was asked.
fn run(options: &Options) -> Result<bool, String> {
    let provider = common::provider(options.provider)?;
    let anchors = options
        .ca
        .as_deref()
        .map(pem::certificates)
        .transpose()?
        .unwrap_or_default();
    let anchors: Vec<&[u8]> = anchors.iter().map(Vec::as_slice).collect();
    let (store, warnings) = TrustStore::new(&anchors, Policy::default(), ByMbedtls);
    for warning in warnings {
        eprintln!("tls-client: CA {} is left out: {}", warning.index, warning.cause.id());
    }
    let any = Accepting::default();
    let verifier: &dyn Verifier = if options.ca.is_some() { &store } else { &any };

    let host = options.connect.rsplit_once(':').map_or("", |(host, _)| host);
    let name = options.name.as_deref().unwrap_or(host.trim_matches(['[', ']']));
    let name = name.parse::<IpAddr>().map_or(ServerName::Dns(name), ServerName::Ip);

    let chain = options
        .cert
        .as_deref()
        .map(pem::certificates)
        .transpose()?
        .unwrap_or_default();
    let chain: Vec<&[u8]> = chain.iter().map(Vec::as_slice).collect();
    let key = options.key.as_deref().map(pem::private_key).transpose()?;
    let key = key.map(|key| provider.signing_key(&key)).transpose();
    let key = key.map_err(|error| format!("the key: {error:?}"))?;
    let identity = key.as_ref().map(|key| Identity { chain: &chain, key });

    let versions = [Version::Tls13, Version::Tls12].into_iter();
    let versions: Vec<_> = versions
        .filter(|it| (options.min_version..=options.max_version).contains(it))
        .collect();
    let suites = if options.suites.is_empty() {
        CipherSuite::ALL
    } else {
        &options.suites
    };
    let mut slots = [vec![0; SLOT_BYTES], vec![0; SLOT_BYTES]];
    let (mut resume, mut succeeded) = (Vec::new(), true);
    for number in 0..options.connections {
        let config = ClientConfig {
            versions: &versions,
            suites,
            groups: &options.groups,
            shares: if options.no_shares { &[] } else { &options.shares },
            identity: identity.as_ref(),
            resume: &resume,
            tickets: !options.no_tickets,
            record_size_limit: options.record_size_limit,
            ..ClientConfig::new(verifier, Some(name))
        };
        let mut slot = SessionSlot::new(&mut slots[number % 2]);
        let ended = connect(options, &provider, &config, &mut slot)?;
        println!("{}", ended.report(number, &provider));
        succeeded &= ended.cause.is_none() && ended.is_echoed;
        let is_resumed_12 = ended.is_resumed_12();
        drop(ended);
        // A TLS 1.2 session may be resumed again by the same name; a TLS 1.3 ticket is used once (RFC 8446 §C.4).
        if options.no_resume {
            resume.clear();
        } else if !slot.bytes().is_empty() || !is_resumed_12 {
            resume = slot.bytes().to_vec();
        }
    }
    Ok(succeeded)
}

/// What is left of a connection.
struct Ended<'a> {
    connection: Connection<'a>,
    received: Vec<u8>,
    /// What was sent to be echoed came back.
    is_echoed: bool,
    /// The peer's close_notify came, or at least the end of its stream.
    is_closed: bool,
    is_closed_well: bool,
    cause: Option<Cause>,
}

/// Connects, shakes hands, sends and receives what the command line says, and closes.
fn connect<'a>(
    options: &Options,
    provider: &'a Chosen,
    config: &'a ClientConfig<'a, Chosen>,
    keep: &'a mut dyn Keep,
) -> Result<Ended<'a>, String> {
    let stream = TcpStream::connect(&options.connect).and_then(|stream| {
        stream.set_nodelay(true)?;
        // A step waits no longer than this, and deadlines are looked at between steps.
        stream.set_read_timeout(Some(Duration::from_millis(20)))?;
        Ok(stream)
    });
    let stream = stream.map_err(|error| format!("{}: {error}", options.connect))?;
    let connection = Connection::new(provider, Config::Client(config), Some(keep), None, stream);
    let mut ended = Ended {
        connection: connection.map_err(|cause| format!("no hello: {}", cause.id()))?,
        received: Vec::new(),
        is_echoed: true,
        is_closed: false,
        is_closed_well: false,
        cause: None,
    };
    ended.cause = ended.talk(options).err();
    let connection = &mut ended.connection;
    connection.close();
    connection.flush();
    connection.half_close();
    let (until, mut drained) = (Instant::now() + FAREWELL, 0);
    // Its close_notify answers ours. Not every peer sends one: a lack of it is no failure.
    while ended.cause.is_none() && !ended.is_closed && ended.step(until).is_ok() {}
    let connection = &mut ended.connection;
    while let Some(bytes) = connection.drain()
        && Instant::now() < until
        && drained < DRAIN_BYTES_MAX
    {
        drained += bytes;
    }
    Ok(ended)
}

impl Ended<'_> {
    fn talk(&mut self, options: &Options) -> Result<(), Cause> {
        let until = Instant::now() + Duration::from_secs(options.timeout);
        while self.connection.session.state_id() != StateId::Connected {
            self.step(until)?;
        }
        if !options.echo.is_empty() {
            return self.echo(options, until);
        }
        let Some(line) = &options.send else {
            let until = Instant::now() + TICKET;
            while Instant::now() < until && !self.is_closed {
                self.step(until + TICKET)?;
            }
            return Ok(());
        };
        if options.update_keys {
            self.connection.update_keys()?;
        }
        self.connection.send(format!("{line}\n").as_bytes())?;
        while !self.is_closed && !self.received.contains(&b'\n') {
            self.step(until)?;
        }
        Ok(())
    }

    fn echo(&mut self, options: &Options, until: Instant) -> Result<(), Cause> {
        for &bytes in &options.echo {
            if options.update_keys {
                self.connection.update_keys()?;
            }
            for window in data(bytes).chunks(WINDOW_BYTES) {
                self.received.clear();
                for line in window.split_inclusive(|byte| *byte == b'\n') {
                    self.connection.send(line)?;
                    self.connection.flush();
                }
                while !self.is_closed && self.received.len() < window.len() {
                    self.step(until)?;
                }
                self.is_echoed &= self.received == window;
            }
        }
        self.received.clear();
        Ok(())
    }

    fn step(&mut self, until: Instant) -> Result<(), Cause> {
        match self.connection.step()? {
            Got::Data(data) => self.received.extend(data),
            Got::CloseNotify => (self.is_closed, self.is_closed_well) = (true, true),
            Got::End => self.is_closed = true,
            Got::Wait | Got::Progress | Got::Connected => {}
        }
        if Instant::now() > until {
            let state = self.connection.session.state_id();
            return Err(self.connection.fail(Cause::Timeout(state)));
        }
        Ok(())
    }

    fn is_resumed_12(&self) -> bool {
        self.connection.session.is_resumed() && self.connection.session.version() == Some(Version::Tls12)
    }

    /// What was agreed on, what came, what went wrong, as one line of JSON.
    fn report(&self, number: usize, provider: &Chosen) -> String {
        let (session, agreed) = (&self.connection.session, self.connection.session.agreed());
        let text = |value: Option<&str>| value.map_or("null".into(), |value| format!("\"{}\"", escaped(value)));
        let alert = match self.cause {
            Some(Cause::PeerAlert(alert)) => Some(alert),
            _ => session.last_alert(),
        };
        let fields = [
            ("connection", number.to_string()),
            ("provider", text(Some(provider.name()))),
            ("version", text(agreed.version.map(Version::name))),
            ("suite", text(agreed.suite.map(CipherSuite::name))),
            ("group", text(agreed.group.map(Group::name))),
            ("own_scheme", text(agreed.own_scheme.map(SignatureScheme::name))),
            ("peer_scheme", text(agreed.peer_scheme.map(SignatureScheme::name))),
            ("peer", text(agreed.peer.as_ref().map(|peer| peer.subject.as_str()))),
            ("resumed", agreed.resumed.to_string()),
            ("retried", agreed.retried.to_string()),
            ("extended_master_secret", agreed.extended_master_secret.to_string()),
            ("content_max", session.content_max().to_string()),
            ("state", text(Some(session.state_id().name()))),
            ("received", text(std::str::from_utf8(&self.received).ok())),
            ("echoed", self.is_echoed.to_string()),
            ("closed", self.is_closed.to_string()),
            ("closed_well", self.is_closed_well.to_string()),
            ("cause", text(self.cause.map(Cause::id))),
            ("alert", text(alert.map(|alert| alert.name()))),
        ];
        let fields: Vec<_> = fields
            .iter()
            .map(|(name, value)| format!("\"{name}\":{value}"))
            .collect();
        format!("{{{}}}", fields.join(","))
    }
}

/// So many bytes in lines with their newline, each the same read backwards (a server may turn them around), no two neighbours alike.
fn data(count: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(count);
    while bytes.len() < count {
        let line = (count - bytes.len()).min(LINE_BYTES) - 1;
        let turn = bytes.len() / LINE_BYTES;
        bytes.extend((0..line).map(|i| b'a' + ((i.min(line - 1 - i) * 7 + turn) % 26) as u8));
        bytes.push(b'\n');
    }
    bytes
}

/// Of a string in JSON: quotes, backslashes and control characters escaped.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for character in text.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            control if u32::from(control) < 0x20 => out.push_str(&format!("\\u{:04x}", u32::from(control))),
            other => out.push(other),
        }
    }
    out
}
