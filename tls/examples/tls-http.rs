//! A TLS server for peers and test suites: answers a request with one line, or sends lines back.
//!
//! One thread, many connections at once, no client's doing ends it. A complete request (up to an empty line) is answered with one record; then
//! comes close_notify, and what the peer still sends is taken until its own close_notify or the end. Each handshake that fails is one line on
//! standard error.

mod common;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use common::connection::{Connection, Got};
use common::parse::{group, suite, version};
use common::{Chosen, pem};
use skerry_tls::cause::Cause;
use skerry_tls::certificate::Verifier;
use skerry_tls::config::{ClientAuth, Config, Identity, ServerConfig};
use skerry_tls::crypto::Provider as _;
use skerry_tls::crypto::either::Choice;
use skerry_tls::notes::Offered;
use skerry_tls::state::StateId;
use skerry_tls::suite::{CipherSuite, Group, SignatureScheme, Version};
use skerry_tls::x509::{ByMbedtls, Details, Policy, TrustStore};

/// Serves TLS for peers and test suites.
#[derive(Parser)]
#[command(name = "tls-http")]
struct Options {
    /// Where to listen.
    #[arg(long, value_name = "ADDR:PORT")]
    listen: SocketAddr,
    /// The certificate chain, PEM, leaf first. May be given again for another identity, with its key.
    #[arg(long, value_name = "CHAIN", required = true)]
    cert: Vec<String>,
    /// The private key, PEM.
    #[arg(long, value_name = "KEY", required = true)]
    key: Vec<String>,
    /// CAs of client certificates, PEM.
    #[arg(long, value_name = "FILE")]
    client_ca: Option<String>,
    /// Whether clients are asked for certificates.
    #[arg(long, value_name = "none|requested|required", default_value = "none", value_parser = client_auth)]
    client_auth: ClientAuth,
    /// The oldest version.
    #[arg(long, value_name = "1.2|1.3", default_value = "1.2", value_parser = version)]
    min_version: Version,
    /// The newest version.
    #[arg(long, value_name = "1.2|1.3", default_value = "1.3", value_parser = version)]
    max_version: Version,
    /// Groups, in order of preference.
    #[arg(long, value_name = "x25519:p256", value_delimiter = ':', default_value = "x25519:p256", value_parser = group)]
    groups: Vec<Group>,
    /// Cipher suites by their IANA names, in order of preference.
    #[arg(long, value_name = "IANA,IANA", value_delimiter = ',', value_parser = suite)]
    suites: Vec<CipherSuite>,
    /// Tickets after each full TLS 1.3 handshake; 0 resumes no session of either version.
    #[arg(long, value_name = "N", default_value_t = 2)]
    tickets: u8,
    /// Who does the cryptography.
    #[arg(long, value_name = "mbedtls|fast", default_value_t = Choice::Auto)]
    provider: Choice,
    /// Failures cost the peer nothing.
    #[arg(long)]
    no_penalty: bool,
    /// Each complete line goes back as one record of the same length.
    #[arg(long)]
    echo: bool,
    /// A line about each handshake that succeeds, too, and about each end after one.
    #[arg(long)]
    tell: bool,
}

/// Connections at once. When full: more wait to be accepted.
const CONNECTIONS_MAX: usize = 200;
/// From accept to the end of the handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Without a byte between handshake and request.
const SILENCE: Duration = Duration::from_secs(30);
/// For the peer's close_notify after ours, and for the end of its stream.
const FAREWELL: Duration = Duration::from_secs(5);
/// Bytes of a request or line. When full: the connection is closed.
const REQUEST_BYTES_MAX: usize = 1 << 16;
/// Bytes that are taken from a peer after our last word. When full: it is cut off.
const DRAIN_BYTES_MAX: usize = 1 << 20;
/// How much longer each failure makes an address wait, and the longest wait.
const PENALTY: Duration = Duration::from_millis(20);
const PENALTY_MAX: Duration = Duration::from_millis(500);
/// Addresses that are remembered for their failures. When full: all are forgotten.
const PENALTIES_MAX: usize = 1024;

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("tls-http: {why}");
            ExitCode::from(2)
        }
    }
}

fn client_auth(text: &str) -> Result<ClientAuth, String> {
    match text {
        "none" => Ok(ClientAuth::None),
        "requested" => Ok(ClientAuth::Requested),
        "required" => Ok(ClientAuth::Required),
        _ => Err("none, requested or required".into()),
    }
}

fn run(options: &Options) -> Result<(), String> {
    let provider = common::provider(options.provider)?;
    if options.cert.len() != options.key.len() {
        return Err("each --cert wants its --key".into());
    }
    let chains = options.cert.iter().map(|path| pem::certificates(path));
    let chains = chains.collect::<Result<Vec<_>, _>>()?;
    let chains: Vec<Vec<&[u8]>> = chains.iter().map(|c| c.iter().map(Vec::as_slice).collect()).collect();
    let key = |path: &String| {
        let key = provider.signing_key(&pem::private_key(path)?);
        key.map_err(|error| format!("{path}: {error:?}"))
    };
    let keys = options.key.iter().map(key).collect::<Result<Vec<_>, _>>()?;
    let identities: Vec<_> = chains
        .iter()
        .zip(&keys)
        .map(|(chain, key)| Identity { chain, key })
        .collect();
    let store = options.client_ca.as_ref().map(|path| trust_store(path)).transpose()?;
    if options.client_auth != ClientAuth::None && store.is_none() {
        return Err("--client-auth wants a --client-ca".into());
    }
    let tickets = common::tickets(&provider)?;
    let versions: Vec<_> = [Version::Tls13, Version::Tls12]
        .into_iter()
        .filter(|version| (options.min_version..=options.max_version).contains(version))
        .collect();
    let config = ServerConfig {
        versions: &versions,
        suites: if options.suites.is_empty() {
            CipherSuite::ALL
        } else {
            &options.suites
        },
        groups: &options.groups,
        client_auth: options.client_auth,
        verifier: store.as_ref().map(|store| store as &dyn Verifier),
        tickets: (options.tickets > 0).then_some(&tickets),
        tickets_sent: options.tickets,
        ..ServerConfig::new(&identities)
    };
    let listener = TcpListener::bind(options.listen).map_err(|error| format!("{}: {error}", options.listen))?;
    listener.set_nonblocking(true).map_err(|error| error.to_string())?;
    let listen = listener.local_addr().map_err(|error| error.to_string())?;
    eprintln!("tls-http: serving on {listen} with provider {}", provider.name());
    Server {
        options,
        provider: &provider,
        config: &config,
        penalties: HashMap::new(),
    }
    .serve(&listener)
}

fn trust_store(path: &str) -> Result<TrustStore<ByMbedtls>, String> {
    let anchors = pem::certificates(path)?;
    let anchors: Vec<&[u8]> = anchors.iter().map(Vec::as_slice).collect();
    let (store, warnings) = TrustStore::new(&anchors, Policy::default(), ByMbedtls);
    for warning in warnings {
        eprintln!(
            "tls-http: {path}: CA {} is left out: {}",
            warning.index,
            warning.cause.id()
        );
    }
    Ok(store)
}

struct Server<'a> {
    options: &'a Options,
    provider: &'a Chosen,
    config: &'a ServerConfig<'a, Chosen>,
    /// Failures of an address, and when the last one was.
    penalties: HashMap<IpAddr, (u32, Instant)>,
}

impl<'a> Server<'a> {
    fn serve(mut self, listener: &TcpListener) -> ! {
        let mut clients = Vec::new();
        let mut idle_turns = 0_u32;
        loop {
            let mut is_busy = false;
            while clients.len() < CONNECTIONS_MAX {
                // An error is one connection's, or a lack of descriptors that passes.
                let Ok((stream, peer)) = listener.accept() else { break };
                is_busy = true;
                let _ = stream.set_nodelay(true);
                if stream.set_nonblocking(true).is_ok() {
                    clients.push(Client::new(stream, peer, self.penalty(peer.ip())));
                }
            }
            clients.retain_mut(|client| match client.turn(&mut self) {
                Turn::Idle => true,
                Turn::Busy => {
                    is_busy = true;
                    true
                }
                Turn::Done => false,
            });
            idle_turns = if is_busy { 0 } else { idle_turns.saturating_add(1) };
            if !is_busy {
                std::thread::sleep(Duration::from_micros(if idle_turns < 500 { 100 } else { 2000 }));
            }
        }
    }

    /// How long the next connection of an address waits.
    fn penalty(&self, peer: IpAddr) -> Duration {
        match self.penalties.get(&peer) {
            Some((failures, last)) if last.elapsed() < Duration::from_secs(1) => (PENALTY * *failures).min(PENALTY_MAX),
            _ => Duration::ZERO,
        }
    }

    fn punish(&mut self, peer: IpAddr) {
        if self.options.no_penalty {
            return;
        }
        if self.penalties.len() >= PENALTIES_MAX {
            self.penalties.clear();
        }
        let failures = if self.penalty(peer) > Duration::ZERO {
            self.penalties[&peer].0 + 1
        } else {
            1
        };
        self.penalties.insert(peer, (failures, Instant::now()));
    }
}

enum Turn {
    Idle,
    Busy,
    Done,
}

/// Where a client stands.
enum Stage<'a> {
    /// It waits, without buffers, until its penalty is over.
    Waits(TcpStream),
    /// Hands are shaken.
    Handshake(Box<Connection<'a>>),
    /// Its request, or lines, come.
    Request(Box<Connection<'a>>),
    /// It was answered and told so.
    Farewell(Box<Connection<'a>>),
    /// Our half is closed; what it still sends is forgotten.
    Drain(Box<Connection<'a>>),
    /// It is over.
    Over,
}

struct Client<'a> {
    stage: Stage<'a>,
    peer: SocketAddr,
    until: Instant,
    request: Vec<u8>,
    received: usize,
    drained: usize,
}

impl<'a> Client<'a> {
    fn new(stream: TcpStream, peer: SocketAddr, penalty: Duration) -> Self {
        Self {
            stage: Stage::Waits(stream),
            peer,
            until: Instant::now() + penalty,
            request: Vec::new(),
            received: 0,
            drained: 0,
        }
    }

    fn turn(&mut self, server: &mut Server<'a>) -> Turn {
        let is_late = Instant::now() >= self.until;
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Waits(stream) if is_late => {
                let config = Config::Server(server.config);
                match Connection::new(server.provider, config, None, None, stream) {
                    Ok(connection) => self.goes_on(Stage::Handshake(Box::new(connection)), HANDSHAKE),
                    Err(_) => Turn::Done,
                }
            }
            Stage::Waits(stream) => self.stays(Stage::Waits(stream)),
            Stage::Handshake(connection) => self.handshake(server, connection, is_late),
            Stage::Request(connection) => self.request(server, connection, is_late),
            Stage::Farewell(connection) => self.farewell(connection, is_late),
            Stage::Drain(connection) => self.drain(connection, is_late),
            Stage::Over => Turn::Done,
        }
    }

    fn goes_on(&mut self, stage: Stage<'a>, within: Duration) -> Turn {
        self.stage = stage;
        self.until = Instant::now() + within;
        Turn::Busy
    }

    fn stays(&mut self, stage: Stage<'a>) -> Turn {
        self.stage = stage;
        Turn::Idle
    }

    fn handshake(&mut self, server: &mut Server<'a>, mut connection: Box<Connection<'a>>, is_late: bool) -> Turn {
        let state = connection.session.state_id();
        let got = if is_late {
            Err(connection.fail(Cause::Timeout(state)))
        } else {
            connection.step()
        };
        match got {
            Ok(Got::Wait) => self.stays(Stage::Handshake(connection)),
            Ok(Got::Connected) => {
                if server.options.tell {
                    eprintln!("{}", success(self.peer, &connection));
                }
                self.goes_on(Stage::Request(connection), SILENCE)
            }
            Ok(_) => {
                self.stage = Stage::Handshake(connection);
                Turn::Busy
            }
            Err(cause) => {
                // A probe that looks whether the port is open says nothing worth a line.
                if connection.has_come() {
                    eprintln!("{}", failure(self.peer, state, &connection, cause));
                    server.punish(self.peer.ip());
                }
                self.goes_on(Stage::Drain(connection), FAREWELL)
            }
        }
    }

    fn request(&mut self, server: &mut Server<'a>, mut connection: Box<Connection<'a>>, is_late: bool) -> Turn {
        if is_late {
            connection.close();
            return self.goes_on(Stage::Farewell(connection), FAREWELL);
        }
        let got = connection.step();
        if server.options.tell
            && let Some(how) = end(&got)
        {
            let received = self.received;
            eprintln!("tls-http: closed peer={} how={how} received={received}", self.peer);
        }
        match got {
            Ok(Got::Wait) => self.stays(Stage::Request(connection)),
            Ok(Got::Data(data)) => {
                self.received += data.len();
                self.request.extend_from_slice(&data);
                let done = if server.options.echo {
                    self.echo(&mut connection)
                } else {
                    self.answer(&mut connection)
                };
                match done {
                    Ok(false) if self.request.len() < REQUEST_BYTES_MAX => {
                        self.goes_on(Stage::Request(connection), SILENCE)
                    }
                    Ok(_) => {
                        connection.close();
                        self.goes_on(Stage::Farewell(connection), FAREWELL)
                    }
                    Err(cause) => self.broken(connection, cause),
                }
            }
            Ok(Got::CloseNotify | Got::End) => {
                connection.close();
                self.goes_on(Stage::Drain(connection), FAREWELL)
            }
            Ok(Got::Progress | Got::Connected) => {
                self.stage = Stage::Request(connection);
                Turn::Busy
            }
            Err(cause) => self.broken(connection, cause),
        }
    }

    /// Whether the request was complete and is answered.
    fn answer(&mut self, connection: &mut Connection<'a>) -> Result<bool, Cause> {
        let lines = self.request.split(|&byte| byte == b'\n');
        // The last piece is no line yet.
        let is_whole = lines.rev().skip(1).any(|line| line.is_empty() || line == b"\r");
        if is_whole {
            let agreed = connection.session.agreed();
            let body = format!(
                "{} {} {} {}\n",
                agreed.version.map_or("-", Version::name),
                agreed.suite.map_or("-", CipherSuite::name),
                agreed.group.map_or("-", Group::name),
                if agreed.resumed { "resumed" } else { "full" },
            );
            let head = format!(
                "HTTP/1.0 200 ok\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            connection.send((head + &body).as_bytes())?;
        }
        Ok(is_whole)
    }

    /// Sends every complete line back. Never done.
    fn echo(&mut self, connection: &mut Connection<'a>) -> Result<bool, Cause> {
        let Some(end) = self.request.iter().rposition(|&byte| byte == b'\n') else {
            return Ok(false);
        };
        let rest = self.request.split_off(end + 1);
        for line in self.request.split_inclusive(|&byte| byte == b'\n') {
            connection.send(line)?;
        }
        self.request = rest;
        Ok(false)
    }

    fn broken(&mut self, connection: Box<Connection<'a>>, cause: Cause) -> Turn {
        if !matches!(cause, Cause::Reset(_)) {
            eprintln!("{}", failure(self.peer, StateId::Connected, &connection, cause));
        }
        self.goes_on(Stage::Drain(connection), FAREWELL)
    }

    fn farewell(&mut self, mut connection: Box<Connection<'a>>, is_late: bool) -> Turn {
        match connection.step() {
            Ok(Got::Wait) if !is_late => self.stays(Stage::Farewell(connection)),
            Ok(Got::Data(data)) if !is_late && self.drained < DRAIN_BYTES_MAX => {
                self.drained += data.len();
                self.stage = Stage::Farewell(connection);
                Turn::Busy
            }
            Ok(Got::Progress | Got::Connected) if !is_late => {
                self.stage = Stage::Farewell(connection);
                Turn::Busy
            }
            Ok(_) | Err(_) => self.goes_on(Stage::Drain(connection), FAREWELL),
        }
    }

    fn drain(&mut self, mut connection: Box<Connection<'a>>, is_late: bool) -> Turn {
        if is_late || self.drained >= DRAIN_BYTES_MAX {
            return Turn::Done;
        }
        if !connection.flush() {
            return self.stays(Stage::Drain(connection));
        }
        connection.half_close();
        match connection.drain() {
            None => Turn::Done,
            Some(0) => self.stays(Stage::Drain(connection)),
            Some(bytes) => {
                self.drained += bytes;
                self.stage = Stage::Drain(connection);
                Turn::Busy
            }
        }
    }
}

/// How a connection ended, if it did.
fn end(got: &Result<Got, Cause>) -> Option<&'static str> {
    match got {
        Ok(Got::CloseNotify) => Some("clean"),
        Ok(Got::End) => Some("truncated"),
        Err(Cause::Reset(_)) => Some("reset"),
        Err(_) => Some("failed"),
        Ok(Got::Wait | Got::Progress | Got::Connected | Got::Data(_)) => None,
    }
}

/// One line: who, and what was agreed on.
fn success(peer: SocketAddr, connection: &Connection<'_>) -> String {
    let agreed = connection.session.agreed();
    let mut line = format!(
        "tls-http: connected peer={peer} version={} suite={} resumed={} retried={}",
        agreed.version.map_or("-", Version::name),
        agreed.suite.map_or("-", CipherSuite::name),
        if agreed.resumed { "yes" } else { "no" },
        if agreed.retried { "yes" } else { "no" },
    );
    if let Some(group) = agreed.group {
        let _ = write!(line, " group={}", group.name());
    }
    if let Some(name) = connection.session.server_name() {
        let _ = write!(line, " name={name}");
    }
    if let Some(peer) = &agreed.peer {
        let _ = write!(line, " subject=\"{}\"", peer.subject);
    }
    line
}

/// One line: who, where, why, what was offered, what to change.
fn failure(peer: SocketAddr, state: StateId, connection: &Connection<'_>, cause: Cause) -> String {
    let mut line = format!("tls-http: {peer} failed in {}: {}", state.name(), cause.id());
    let told = match cause {
        Cause::PeerAlert(alert) => format!(", its alert {}", alert.name()),
        Cause::PeerAlertUnknown(number) => format!(", its alert {number}"),
        _ => connection
            .session
            .last_alert()
            .map_or(String::new(), |alert| format!(", alert {}", alert.name())),
    };
    line += &told;
    if let Cause::OutOfSequence { met, .. } = cause {
        let _ = write!(line, ", met {met}, expected {}", state.expects());
    }
    if let Some(details) = Details::of(&connection.notes.refused) {
        let _ = write!(line, ", certificate {details}");
    }
    line += &offered(&connection.notes.offered);
    let _ = write!(line, "; {}", cause.cure());
    line
}

fn offered(offered: &Offered) -> String {
    let mut text = String::new();
    let mut list = |what: &str, numbers: &[u16], name: fn(u16) -> Option<&'static str>| {
        let name = |&number: &u16| name(number).map_or_else(|| format!("{number:04x}"), str::to_owned);
        let names: Vec<_> = numbers.iter().map(name).collect();
        if !names.is_empty() {
            let _ = write!(text, ", offered {what} {}", names.join(" "));
        }
    };
    list("versions", &offered.versions, |number| match number {
        0x0304 => Some(Version::Tls13.name()),
        0x0303 => Some(Version::Tls12.name()),
        _ => None,
    });
    list("suites", &offered.suites, |number| {
        CipherSuite::from_wire(number).map(CipherSuite::name)
    });
    list("groups", &offered.groups, |number| {
        Group::from_wire(number).map(Group::name)
    });
    list("schemes", &offered.schemes, |number| {
        SignatureScheme::from_wire(number).map(SignatureScheme::name)
    });
    text
}
