//! A TLS client for trying servers: connects, shakes hands, sends a line, says what was agreed on.
//!
//! ```text
//! tls-client --connect HOST:PORT [--name DNS-NAME-OR-ADDRESS] [--ca FILE] [--cert CHAIN --key KEY]
//!            [--min-version 1.2|1.3] [--max-version 1.2|1.3] [--suites IANA,IANA] [--groups x25519:p256] [--shares x25519:p256|none]
//!            [--provider mbedtls|fast] [--connections N] [--no-resume] [--no-tickets] [--record-size-limit N]
//!            [--send LINE] [--update-keys] [--timeout SECONDS]
//! ```
//!
//! Without `--ca` any chain passes. Each of the N connections resumes the session of the one before it, when the server let it. Without
//! `--send` nothing is sent, and the connection is closed once the handshake is over and a ticket had time to come. Each connection ends with
//! one line of JSON; the exit status is 0 when every handshake succeeded.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, TcpStream};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use skerry_core::meter::Ticks;
use skerry_core::time::Timestamp;
use skerry_tls::cause::Cause;
use skerry_tls::certificate::{ServerName, Verifier};
use skerry_tls::config::{ClientConfig, Config, Identity};
use skerry_tls::crypto::fast::Fast;
use skerry_tls::crypto::{CryptoError, Provider, Random};
use skerry_tls::notes::Notes;
use skerry_tls::saved::{Keep, SessionSlot};
use skerry_tls::session::{Context, Event, Out, Reassembly, Session};
use skerry_tls::state::StateId;
use skerry_tls::suite::{CipherSuite, Group, SignatureScheme, Version};
use skerry_tls::testing::Accepting;
use skerry_tls::x509::{ByMbedtls, Policy, TrustStore};

/// What the command line says.
struct Options {
    connect: String,
    name: Option<String>,
    ca: Vec<Vec<u8>>,
    chain: Vec<Vec<u8>>,
    key: Option<Vec<u8>>,
    versions: Vec<Version>,
    suites: Vec<CipherSuite>,
    groups: Vec<Group>,
    shares: Vec<Group>,
    provider: String,
    connections: usize,
    resume: bool,
    tickets: bool,
    record_size_limit: Option<u16>,
    send: Option<String>,
    update_keys: bool,
    timeout: Duration,
}

fn main() -> ExitCode {
    let options = match options(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(why) => {
            eprintln!("tls-client: {why}");
            return ExitCode::from(2);
        }
    };
    let done = match options.provider.as_str() {
        "fast" => run(&Fast, &options),
        other => Err(format!("no provider {other}")),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("tls-client: {why}");
            ExitCode::from(2)
        }
    }
}

fn options(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options {
        connect: String::new(),
        name: None,
        ca: Vec::new(),
        chain: Vec::new(),
        key: None,
        versions: vec![Version::Tls13, Version::Tls12],
        suites: CipherSuite::ALL.to_vec(),
        groups: Group::ALL.to_vec(),
        shares: vec![Group::X25519],
        provider: "fast".into(),
        connections: 1,
        resume: true,
        tickets: true,
        record_size_limit: None,
        send: None,
        update_keys: false,
        timeout: Duration::from_secs(5),
    };
    while let Some(flag) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{flag} wants a value"));
        match flag.as_str() {
            "--connect" => options.connect = value()?,
            "--name" => options.name = Some(value()?),
            "--ca" => options.ca = pem(&value()?, "CERTIFICATE")?,
            "--cert" => options.chain = pem(&value()?, "CERTIFICATE")?,
            "--key" => options.key = pem(&value()?, "PRIVATE KEY")?.into_iter().next(),
            "--min-version" => {
                let least = version(&value()?)?;
                options.versions.retain(|version| *version >= least);
            }
            "--max-version" => {
                let most = version(&value()?)?;
                options.versions.retain(|version| *version <= most);
            }
            "--suites" => options.suites = value()?.split(',').map(suite).collect::<Result<_, _>>()?,
            "--groups" => options.groups = groups(&value()?)?,
            "--shares" => options.shares = groups(&value()?)?,
            "--provider" => options.provider = value()?,
            "--connections" => options.connections = number(&value()?)?,
            "--no-resume" => options.resume = false,
            "--no-tickets" => options.tickets = false,
            "--record-size-limit" => options.record_size_limit = Some(number(&value()?)?),
            "--send" => options.send = Some(value()?),
            "--update-keys" => options.update_keys = true,
            "--timeout" => options.timeout = Duration::from_secs(number(&value()?)?),
            _ => return Err(format!("unknown argument {flag}")),
        }
    }
    if options.connect.is_empty() {
        return Err("--connect HOST:PORT is missing".into());
    }
    Ok(options)
}

fn number<N: std::str::FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| format!("{text} is no number here"))
}

fn version(text: &str) -> Result<Version, String> {
    match text {
        "1.2" => Ok(Version::Tls12),
        "1.3" => Ok(Version::Tls13),
        _ => Err(format!("no version {text}")),
    }
}

fn suite(text: &str) -> Result<CipherSuite, String> {
    let suite = CipherSuite::ALL.iter().find(|suite| suite.name() == text);
    suite.copied().ok_or(format!("no suite {text}"))
}

fn groups(text: &str) -> Result<Vec<Group>, String> {
    let group = |name: &str| match name {
        "x25519" => Ok(Group::X25519),
        "p256" | "P-256" | "secp256r1" => Ok(Group::Secp256r1),
        _ => Err(format!("no group {name}")),
    };
    if text == "none" {
        Ok(Vec::new())
    } else {
        text.split(':').map(group).collect()
    }
}

/// What stands between lines that name `label`, each decoded.
fn pem(path: &str, label: &str) -> Result<Vec<Vec<u8>>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let (begin, end) = (format!("-----BEGIN {label}-----"), format!("-----END {label}-----"));
    let mut blocks = Vec::new();
    let mut rest = text.as_str();
    while let Some((_, after)) = rest.split_once(&begin) {
        let (block, after) = after.split_once(&end).ok_or(format!("{path}: no end of {label}"))?;
        blocks.push(base64(block).ok_or(format!("{path}: no base64"))?);
        rest = after;
    }
    if blocks.is_empty() {
        Err(format!("{path}: no {label}"))
    } else {
        Ok(blocks)
    }
}

fn base64(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for byte in text.bytes().filter(|byte| !byte.is_ascii_whitespace() && *byte != b'=') {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(bytes)
}

/// The system's randomness.
struct SystemRandom;

impl Random for SystemRandom {
    fn fill(&mut self, out: &mut [u8]) -> Result<(), CryptoError> {
        let file = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(out));
        file.map_err(|_| CryptoError::Failed)
    }
}

/// Whether every handshake succeeded.
fn run<P: Provider>(provider: &P, options: &Options) -> Result<bool, String> {
    let anchors: Vec<&[u8]> = options.ca.iter().map(Vec::as_slice).collect();
    let (store, warnings) = TrustStore::new(&anchors, Policy::default(), ByMbedtls);
    for warning in warnings {
        eprintln!(
            "tls-client: anchor {} is left out: {}",
            warning.index,
            warning.cause.id()
        );
    }
    let any = Accepting::default();
    let verifier: &dyn Verifier = if options.ca.is_empty() { &any } else { &store };

    let host = options.connect.rsplit_once(':').map_or("", |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let name = options.name.as_deref().unwrap_or(host);
    let name = name.parse::<IpAddr>().map_or(ServerName::Dns(name), ServerName::Ip);

    let chain: Vec<&[u8]> = options.chain.iter().map(Vec::as_slice).collect();
    let key = options.key.as_deref().map(|key| provider.signing_key(key));
    let key = key.transpose().map_err(|error| format!("the key: {error:?}"))?;
    let identity = key.as_ref().map(|key| Identity { chain: &chain, key });

    let mut slots = [vec![0; 1 << 14], vec![0; 1 << 14]];
    let (mut resume, mut succeeded) = (Vec::new(), true);
    for number in 0..options.connections {
        let config = ClientConfig {
            versions: &options.versions,
            suites: &options.suites,
            groups: &options.groups,
            shares: &options.shares,
            identity: identity.as_ref(),
            resume: &resume,
            tickets: options.tickets,
            record_size_limit: options.record_size_limit,
            ..ClientConfig::new(verifier, Some(name))
        };
        let mut slot = SessionSlot::new(&mut slots[number % 2]);
        let mut connection = Connection::new(provider, &config, &mut slot);
        let ended = connection.run(options);
        println!("{}", connection.report(number, &ended));
        succeeded &= ended.is_ok();
        drop(connection);
        resume = if options.resume {
            slot.bytes().to_vec()
        } else {
            Vec::new()
        };
    }
    Ok(succeeded)
}

/// What ended a connection before its time.
enum Ended {
    /// The engine said so.
    Tls(Cause),
    /// The socket did.
    Socket(std::io::Error),
}

impl From<Cause> for Ended {
    fn from(cause: Cause) -> Self {
        Self::Tls(cause)
    }
}

impl From<std::io::Error> for Ended {
    fn from(error: std::io::Error) -> Self {
        Self::Socket(error)
    }
}

/// One connection, and what its session is lent.
struct Connection<'a, P: Provider> {
    provider: &'a P,
    config: &'a ClientConfig<'a, P>,
    keep: &'a mut dyn Keep,
    session: Option<Session<P>>,
    /// Whole lines, and what came of the last.
    received: Vec<u8>,
    is_closed: bool,
    notes: Notes,
    message: Vec<u8>,
    message_bytes: usize,
    scratch: Vec<u8>,
    out: Vec<u8>,
    out_bytes: usize,
}

impl<'a, P: Provider> Connection<'a, P> {
    fn new(provider: &'a P, config: &'a ClientConfig<'a, P>, keep: &'a mut dyn Keep) -> Self {
        Self {
            provider,
            config,
            keep,
            session: None,
            received: Vec::new(),
            is_closed: false,
            notes: Notes::default(),
            message: vec![0; 1 << 16],
            message_bytes: 0,
            scratch: vec![0; 1 << 16],
            out: vec![0; 1 << 17],
            out_bytes: 0,
        }
    }

    /// Connects, shakes hands, sends and receives what the command line says, and closes.
    fn run(&mut self, options: &Options) -> Result<(), Ended> {
        let mut stream = TcpStream::connect(&options.connect)?;
        stream.set_nodelay(true)?;
        let mut session = self.lend(|cx| Session::client(cx))?;
        let done = self.talk(&mut stream, &mut session, options);
        session.close(&mut Out::new(&mut self.out, &mut self.out_bytes));
        let flushed = self.flush(&mut stream);
        self.session = Some(session);
        done?;
        flushed?;
        // What the peer still sends is taken, so that no reset overtakes our last words.
        let _ = stream.shutdown(Shutdown::Write);
        let _ = stream.set_read_timeout(Some(Duration::from_millis(500)));
        let mut rest = [0; 4096];
        for _ in 0..64 {
            if matches!(stream.read(&mut rest), Ok(0) | Err(_)) {
                break;
            }
        }
        Ok(())
    }

    fn talk(&mut self, stream: &mut TcpStream, session: &mut Session<P>, options: &Options) -> Result<(), Ended> {
        let mut input = Vec::new();
        let until = Instant::now() + options.timeout;
        while session.state_id() != StateId::Connected {
            self.take(stream, session, &mut input, until)?;
        }
        let Some(line) = &options.send else {
            // A ticket comes after the handshake, if one does.
            let until = Instant::now() + Duration::from_millis(200);
            return match self.take(stream, session, &mut input, until) {
                Err(Ended::Socket(error)) if error.kind() == ErrorKind::WouldBlock => Ok(()),
                other => other,
            };
        };
        if options.update_keys {
            self.lend(|cx| session.update_keys(cx))?;
        }
        for content in format!("{line}\n").as_bytes().chunks(session.content_max()) {
            let (before, _) = session.overhead();
            let slot = &mut self.out[self.out_bytes..];
            slot[before..before + content.len()].copy_from_slice(content);
            self.out_bytes += session.seal(slot, content.len())?;
        }
        while !self.is_closed && !self.received.contains(&b'\n') {
            self.take(stream, session, &mut input, until)?;
        }
        Ok(())
    }

    /// Sends what waits, and takes what comes.
    fn take(
        &mut self,
        stream: &mut TcpStream,
        session: &mut Session<P>,
        input: &mut Vec<u8>,
        until: Instant,
    ) -> Result<(), Ended> {
        self.flush(stream)?;
        let left = until.saturating_duration_since(Instant::now());
        stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        let mut bytes = [0; 1 << 14];
        match stream.read(&mut bytes)? {
            0 if session.state_id() == StateId::Connected => self.is_closed = true,
            0 => return Err(Cause::Closed(session.state_id()).into()),
            count => input.extend_from_slice(&bytes[..count]),
        }
        loop {
            let mut data = Vec::new();
            let (consumed, is_closed, is_whole) = self.lend(|cx| {
                let received = session.receive(cx, input)?;
                let mut ends = (false, true);
                match received.event {
                    Event::Need(_) => ends.1 = false,
                    Event::CloseNotify => ends.0 = true,
                    Event::Data(bytes) => data.extend_from_slice(bytes),
                    Event::Progress | Event::Connected | Event::DataInto(_) => {}
                }
                Ok::<_, Cause>((received.consumed, ends.0, ends.1))
            })?;
            input.drain(..consumed);
            self.received.append(&mut data);
            self.is_closed |= is_closed;
            if !is_whole || is_closed {
                return Ok(self.flush(stream)?);
            }
        }
    }

    fn flush(&mut self, stream: &mut TcpStream) -> std::io::Result<()> {
        stream.write_all(&self.out[..std::mem::take(&mut self.out_bytes)])
    }

    fn lend<T>(&mut self, call: impl FnOnce(&mut Context<'_, P>) -> T) -> T {
        let start = Instant::now();
        let ticks = || Ticks(start.elapsed().as_nanos() as u64);
        let mut random = SystemRandom;
        call(&mut Context {
            provider: self.provider,
            random: &mut random,
            now: now(),
            ticks: &ticks,
            config: Config::Client(self.config),
            message: Reassembly::new(&mut self.message, &mut self.message_bytes),
            scratch: &mut self.scratch,
            out: Out::new(&mut self.out, &mut self.out_bytes),
            notes: &mut self.notes,
            keep: Some(&mut *self.keep),
        })
    }

    /// What was agreed on, what came, what went wrong, as one line of JSON.
    fn report(&self, number: usize, ended: &Result<(), Ended>) -> String {
        let mut fields = vec![format!("\"connection\":{number}")];
        let mut field = |name: &str, value: Option<&str>| {
            let value = value.map_or("null".into(), |value| format!("\"{}\"", escaped(value)));
            fields.push(format!("\"{name}\":{value}"));
        };
        field("provider", Some(self.provider.name()));
        if let Some(session) = &self.session {
            let agreed = session.agreed();
            field("version", agreed.version.map(Version::name));
            field("suite", agreed.suite.map(CipherSuite::name));
            field("group", agreed.group.map(Group::name));
            field("own_scheme", agreed.own_scheme.map(SignatureScheme::name));
            field("peer_scheme", agreed.peer_scheme.map(SignatureScheme::name));
            field("peer", agreed.peer.as_ref().map(|peer| peer.subject.as_str()));
            field("state", Some(session.state_id().name()));
            field("received", std::str::from_utf8(&self.received).ok());
            for (name, value) in [
                ("resumed", agreed.resumed),
                ("retried", agreed.retried),
                ("extended_master_secret", agreed.extended_master_secret),
                ("closed", self.is_closed),
            ] {
                fields.push(format!("\"{name}\":{value}"));
            }
            fields.push(format!("\"content_max\":{}", session.content_max()));
        }
        match ended {
            Ok(()) => {}
            Err(Ended::Tls(cause)) => {
                fields.push(format!("\"cause\":\"{}\"", cause.id()));
                let alert = match cause {
                    Cause::PeerAlert(alert) => Some(*alert),
                    other => other.alert(),
                };
                let alert = alert.map_or("null".into(), |alert| format!("\"{}\"", alert.name()));
                fields.push(format!("\"alert\":{alert}"));
            }
            Err(Ended::Socket(error)) => fields.push(format!("\"error\":\"{}\"", escaped(&error.to_string()))),
        }
        format!("{{{}}}", fields.join(","))
    }
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

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(since.as_millis() as i64)
}
