//! A blocking client of any Kafka broker, on the client side of the codec.
//!
//! For a person at a shell: it allocates, waits, tries again where trying again may help, and says in words what is wrong.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use skerry_core::api::{
    ApiKey, ApiVersionsRequest, ApiVersionsResponse, Call, FindCoordinatorRequest, MetadataRequest,
    api_versions::ApiVersion, metadata::MetadataRequestTopic,
};
use skerry_core::error_code::ErrorCode;
use skerry_core::header::{RequestHeader, ResponseHeader};
use skerry_core::wire::{Array, DecodeError, Message, Reader, SliceWriter, Uuid, Version};

use super::Failure;
use super::access::Access;
use super::stream::{Stream, TlsFailed, is_idle};

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(5);
/// How long a reply may take, beyond what its request allows the broker to wait.
const REPLY: Duration = Duration::from_secs(30);
/// How long an operation is tried again.
const PERSIST: Duration = Duration::from_secs(30);
/// The longest reply that is believed.
const REPLY_BYTES_MAX: u32 = 1 << 28;
/// How often a wait looks whether the user has interrupted it.
const TICK: Duration = Duration::from_millis(100);
/// What this program calls itself to a broker.
const SOFTWARE: &str = "skerry-cli";

/// Whom a request goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// Any broker.
    Any,
    /// The broker with this id, as the last metadata told it.
    Id(i32),
}

/// A broker as metadata tells it.
#[derive(Clone, Debug)]
pub struct Broker {
    /// Its id.
    pub id: i32,
    /// Where it says that it is reached, `host:port`.
    pub address: String,
}

/// A topic as metadata tells it.
#[derive(Clone, Debug)]
pub struct Topic {
    /// Its name.
    pub name: String,
    /// Its id; zero from brokers that have none.
    pub id: Uuid,
    /// Why there is no more about it.
    pub error: ErrorCode,
    /// Whether the broker keeps it for itself.
    pub internal: bool,
    /// By rising number.
    pub partitions: Vec<Partition>,
}

/// A partition as metadata tells it.
#[derive(Clone, Debug)]
pub struct Partition {
    /// Its number.
    pub index: i32,
    /// The broker that leads it; −1: none.
    pub leader: i32,
    /// Brokers with a replica.
    pub replicas: Vec<i32>,
    /// Those in sync.
    pub in_sync: Vec<i32>,
}

/// Connections to a cluster.
pub struct Client {
    access: Access,
    /// Brokers of the last metadata.
    brokers: Vec<Broker>,
    /// The controller of the last metadata.
    controller: i32,
    open: Vec<Connection>,
    /// Whether any broker was ever reached: from then on, one that is not is awaited.
    reached: bool,
    interrupted: Arc<AtomicBool>,
}

/// How one try of an operation ended.
pub enum Try<T> {
    /// Done.
    Done(T),
    /// Not now: why, in words.
    Later(String),
}

impl Client {
    /// A client. Connects when first asked.
    ///
    /// `interrupted` ends every wait once it is set.
    pub const fn new(access: Access, interrupted: Arc<AtomicBool>) -> Self {
        Self {
            access,
            brokers: Vec::new(),
            controller: -1,
            open: Vec::new(),
            reached: false,
            interrupted,
        }
    }

    /// Whether the user has asked to stop.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Goes on after an interrupt, for what must be done before the end.
    pub fn forget_interrupt(&self) {
        self.interrupted.store(false, Ordering::Relaxed);
    }

    /// Waits, unless the user interrupts.
    pub fn pause(&self, time: Duration) {
        let end = Instant::now() + time;
        while !self.is_interrupted() && Instant::now() < end {
            std::thread::sleep(TICK.min(time));
        }
    }

    /// Sends `request` to `node` in the highest version that both sides speak and hands the reply to `read`.
    pub fn ask<'q, Q: Call<'q>, T>(
        &mut self,
        node: &Node,
        request: &Q,
        read: impl FnOnce(Q::Response<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.ask_for(node, request, Version::MAX, Duration::ZERO, read)
    }

    /// As [`ask`](Self::ask), in no version above `version_max`, where the broker may take `wait` before it answers.
    pub fn ask_for<'q, Q: Call<'q>, T>(
        &mut self,
        node: &Node,
        request: &Q,
        version_max: Version,
        wait: Duration,
        read: impl FnOnce(Q::Response<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut connection = self.take(node)?;
        let reply = connection.call(request, version_max, wait, &self.interrupted)?;
        let done = read(reply)?;
        self.open.push(connection);
        Ok(done)
    }

    /// Sends `request` to `node` and awaits no reply, as none comes (acks=0).
    pub fn tell<'q, Q: Call<'q>>(&mut self, node: &Node, request: &Q, version_max: Version) -> Result<(), Failure> {
        let mut connection = self.take(node)?;
        let version = connection.version::<Q>(version_max)?;
        connection.send(request, version)?;
        self.open.push(connection);
        Ok(())
    }

    /// Whether `node` speaks the API at all.
    pub fn speaks(&mut self, node: &Node, key: ApiKey) -> Result<bool, Failure> {
        let connection = self.take(node)?;
        let speaks = connection.versions.iter().any(|api| api.api_key == key as i16);
        self.open.push(connection);
        Ok(speaks)
    }

    /// Tries `operation` until it is done, for half a minute, through broken connections too: it must be one that may be done
    /// twice.
    pub fn persist<T>(
        &mut self,
        mut operation: impl FnMut(&mut Self) -> Result<Try<T>, Failure>,
    ) -> Result<T, Failure> {
        let end = Instant::now() + PERSIST;
        let mut pause = TICK;
        loop {
            let tried = match operation(self) {
                Err(Failure::Broken(why)) => Try::Later(why),
                Err(Failure::Unreachable(why)) if self.reached => Try::Later(why),
                other => other?,
            };
            match tried {
                Try::Done(done) => return Ok(done),
                Try::Later(why) if Instant::now() + pause > end => {
                    return Err(format!("{why} (gave up after {} s)", PERSIST.as_secs()).into());
                }
                Try::Later(why) => log::info!("{why}; trying again"),
            }
            self.pause(pause);
            if self.is_interrupted() {
                return Err(Failure::Interrupted);
            }
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    }

    /// What the cluster says about `topics` (all of them: `None`). Topics are not created by asking, unless `create`.
    pub fn metadata(&mut self, topics: Option<&[&str]>, create: bool) -> Result<Vec<Topic>, Failure> {
        let names: Vec<MetadataRequestTopic<'_>> = topics
            .unwrap_or_default()
            .iter()
            .map(|name| MetadataRequestTopic {
                name: Some(name),
                ..MetadataRequestTopic::default()
            })
            .collect();
        let request = MetadataRequest {
            topics: if topics.is_some() {
                Array::Slice(&names)
            } else {
                Array::Null
            },
            allow_auto_topic_creation: create,
            ..MetadataRequest::default()
        };
        let (brokers, controller, topics) = self.ask(&Node::Any, &request, |reply| {
            let brokers = reply.brokers.iter().map(|broker| Broker {
                id: broker.node_id,
                address: host_port(broker.host, broker.port),
            });
            let topics = reply.topics.iter().map(|topic| {
                let mut partitions: Vec<Partition> = topic
                    .partitions
                    .iter()
                    .map(|partition| Partition {
                        index: partition.partition_index,
                        leader: partition.leader_id,
                        replicas: partition.replica_nodes.iter().collect(),
                        in_sync: partition.isr_nodes.iter().collect(),
                    })
                    .collect();
                partitions.sort_by_key(|partition| partition.index);
                Topic {
                    name: topic.name.unwrap_or_default().into(),
                    id: topic.topic_id,
                    error: topic.error_code,
                    internal: topic.is_internal,
                    partitions,
                }
            });
            Ok((brokers.collect(), reply.controller_id, topics.collect()))
        })?;
        self.brokers = brokers;
        self.controller = controller;
        Ok(topics)
    }

    /// One topic that is there with a leader for each partition; waits for that where it may still come about.
    pub fn topic(&mut self, name: &str, create: bool) -> Result<Topic, Failure> {
        let mut tries = 0;
        self.persist(|client| {
            tries += 1;
            let topic = client
                .metadata(Some(&[name]), create)?
                .into_iter()
                .find(|topic| topic.name == name);
            let Some(topic) = topic else {
                return Ok(Try::Later(format!("topic {name}: the broker says nothing about it")));
            };
            match topic.error {
                ErrorCode::NONE if topic.partitions.iter().all(|partition| partition.leader >= 0) => {
                    Ok(Try::Done(topic))
                }
                ErrorCode::NONE | ErrorCode::LEADER_NOT_AVAILABLE => {
                    Ok(Try::Later(format!("topic {name}: a partition has no leader yet")))
                }
                // A topic that was made a moment ago may not be known everywhere yet.
                ErrorCode::UNKNOWN_TOPIC_OR_PARTITION if create && tries < 20 => {
                    Ok(Try::Later(format!("topic {name} is being created")))
                }
                ErrorCode::UNKNOWN_TOPIC_OR_PARTITION => {
                    Err(format!("there is no topic {name}; make it with: skerry topics create {name}").into())
                }
                error => Err(refused(&format!("topic {name}"), error, None)),
            }
        })
    }

    /// Brokers of the last [`metadata`](Self::metadata).
    pub fn brokers(&self) -> &[Broker] {
        &self.brokers
    }

    /// The controller of the last [`metadata`](Self::metadata).
    pub fn controller(&self) -> Option<i32> {
        (self.controller >= 0).then_some(self.controller)
    }

    /// The broker that coordinates a group.
    pub fn coordinator(&mut self, group: &str) -> Result<Node, Failure> {
        let keys = [group];
        let request = FindCoordinatorRequest {
            key: group,
            key_type: 0,
            coordinator_keys: Array::Slice(&keys),
        };
        self.persist(|client| {
            let (error, message, id, address) = client.ask(&Node::Any, &request, |reply| {
                // From version 4 on the answer is a list, before it stands in the reply itself.
                Ok(match reply.coordinators.iter().next() {
                    Some(c) => (
                        c.error_code,
                        c.error_message.map(str::to_owned),
                        c.node_id,
                        host_port(c.host, c.port),
                    ),
                    None => {
                        let message = reply.error_message.map(str::to_owned);
                        (
                            reply.error_code,
                            message,
                            reply.node_id,
                            host_port(reply.host, reply.port),
                        )
                    }
                })
            })?;
            match error {
                ErrorCode::NONE => {
                    client.brokers.retain(|broker| broker.id != id);
                    client.brokers.push(Broker { id, address });
                    Ok(Try::Done(Node::Id(id)))
                }
                error if error.is_retriable() => Ok(Try::Later(format!("group {group}: {}", words(error)))),
                error => Err(refused(&format!("group {group}"), error, message.as_deref())),
            }
        })
    }

    /// A connection to `node`, taken out so that it is dropped when a call on it fails.
    fn take(&mut self, node: &Node) -> Result<Connection, Failure> {
        let addresses: Vec<String> = match node {
            Node::Any => {
                if let Some(connection) = self.open.pop() {
                    return Ok(connection);
                }
                self.access.bootstrap.clone()
            }
            Node::Id(id) => match self.brokers.iter().find(|broker| broker.id == *id) {
                Some(broker) => vec![broker.address.clone()],
                None => return Err(format!("broker {id} is not in the cluster's metadata").into()),
            },
        };
        if let Some(at) = self
            .open
            .iter()
            .position(|connection| addresses.contains(&connection.address))
        {
            return Ok(self.open.swap_remove(at));
        }
        let mut failures = Vec::new();
        for address in &addresses {
            match Connection::open(address, &self.access, &self.interrupted) {
                Ok(connection) => {
                    self.reached = true;
                    return Ok(connection);
                }
                Err(failure) => failures.push(failure),
            }
        }
        let bootstrap = &self.access.bootstrap;
        let told = if bootstrap.iter().any(|address| addresses.contains(address)) {
            String::new()
        } else {
            let from = bootstrap.join(",");
            format!("\n  (the broker at {from} told this address: see its advertised.listeners)")
        };
        match failures.pop() {
            Some(Failure::Unreachable(text)) => Err(Failure::Unreachable(text + &told)),
            Some(Failure::Told(text)) => Err(Failure::Told(text + &told)),
            Some(failure) => Err(failure),
            None => Err("no broker to connect to".to_owned().into()),
        }
    }
}

/// One connection, and what its broker speaks.
struct Connection {
    address: String,
    stream: Stream,
    client_id: Rc<str>,
    versions: Vec<ApiVersion>,
    correlation_id: i32,
    out: Vec<u8>,
    reply: Vec<u8>,
}

impl Connection {
    /// Connects, and asks what the broker speaks.
    fn open(address: &str, access: &Access, interrupted: &AtomicBool) -> Result<Self, Failure> {
        let socket = connect(address)?;
        let prepared = socket
            .set_nodelay(true)
            .and_then(|()| socket.set_read_timeout(Some(TICK)));
        prepared.map_err(|error| format!("{address}: {error}"))?;
        let mut this = Self {
            address: address.into(),
            stream: Stream::new(socket, address, access.tls.as_ref(), interrupted)?,
            client_id: Rc::clone(&access.client_id),
            versions: Vec::new(),
            correlation_id: 0,
            out: Vec::new(),
            reply: Vec::new(),
        };
        match this.greet(interrupted) {
            Ok(()) => Ok(this),
            // It was never reached as what it should be.
            Err(Failure::Broken(text)) => Err(Failure::Unreachable(text)),
            Err(failure) => Err(failure),
        }
    }

    /// Asks what the broker speaks.
    fn greet(&mut self, interrupted: &AtomicBool) -> Result<(), Failure> {
        let request = ApiVersionsRequest {
            client_software_name: SOFTWARE,
            client_software_version: env!("CARGO_PKG_VERSION"),
        };
        // A broker that does not speak our highest version answers in version 0, with what it does speak.
        let ours = ApiVersionsRequest::VERSIONS;
        self.send(&request, ours.max)?;
        self.receive(Duration::ZERO, interrupted)?;
        let mut versions = self.read_versions(ours.max)?;
        if versions.is_none() {
            self.send(&request, ours.min)?;
            self.receive(Duration::ZERO, interrupted)?;
            versions = self.read_versions(ours.min)?;
        }
        let none = || format!("{} does not tell which versions it speaks", self.address);
        self.versions = versions.ok_or_else(none)?;
        Ok(())
    }

    /// The table of an ApiVersions reply; `None` when the version was refused.
    fn read_versions(&self, version: Version) -> Result<Option<Vec<ApiVersion>>, Failure> {
        let body = self.body(ApiKey::ApiVersions, version)?;
        let error = Reader::new(body).i16().map(ErrorCode);
        if error == Ok(ErrorCode::UNSUPPORTED_VERSION) {
            return Ok(None);
        }
        let reply = ApiVersionsResponse::decode(&mut Reader::new(body), version).map_err(|e| self.garbled(e))?;
        if !reply.error_code.is_none() {
            return Err(refused(&self.address, reply.error_code, None));
        }
        Ok(Some(reply.api_keys.iter().collect()))
    }

    /// The highest version, up to `most`, that both sides speak.
    fn version<'q, Q: Call<'q>>(&self, most: Version) -> Result<Version, Failure> {
        let name = Q::KEY.name();
        let Some(api) = self.versions.iter().find(|api| api.api_key == Q::KEY as i16) else {
            return Err(format!("the broker at {} does not offer {name}", self.address).into());
        };
        let (min, max) = (api.min_version, api.max_version);
        let version = Q::VERSIONS.max.min(max).min(most);
        if version < Q::VERSIONS.min.max(min) {
            return Err(format!(
                "the broker at {} speaks {name} in versions {min} to {max}, this program in {} to {}",
                self.address,
                Q::VERSIONS.min,
                Q::VERSIONS.max
            )
            .into());
        }
        Ok(version)
    }

    fn call<'q, Q: Call<'q>>(
        &mut self,
        request: &Q,
        version_max: Version,
        wait: Duration,
        interrupted: &AtomicBool,
    ) -> Result<Q::Response<'_>, Failure> {
        let version = self.version::<Q>(version_max)?;
        self.send(request, version)?;
        self.receive(wait, interrupted)?;
        let body = self.body(Q::KEY, version)?;
        Q::Response::decode(&mut Reader::new(body), version).map_err(|error| self.garbled(error))
    }

    fn send<'q, Q: Call<'q>>(&mut self, request: &Q, version: Version) -> Result<(), Failure> {
        self.correlation_id = self.correlation_id.wrapping_add(1);
        let header = RequestHeader::new(Q::KEY, version, self.correlation_id, Some(&self.client_id));
        // Length, then the header: at most 14 bytes, the client id and an empty set of tags.
        let room = 4 + 16 + self.client_id.len() + request.encoded_len(version);
        self.out.clear();
        self.out.resize(room, 0);
        let mut out = SliceWriter::new(self.out.get_mut(4..).unwrap_or_default());
        let encoded = header.encode(&mut out).and_then(|()| request.encode(&mut out, version));
        encoded.map_err(|_| format!("{} request: a text in it is too long", Q::KEY.name()))?;
        let bytes = out.len();
        let length = u32::try_from(bytes).map_err(|_| "the request is too large".to_owned())?;
        if let Some(prefix) = self.out.first_chunk_mut() {
            *prefix = length.to_be_bytes();
        }
        let frame = self.out.get(..4 + bytes).unwrap_or_default();
        self.stream.write_all(frame).map_err(|error| self.broke(&error))
    }

    /// Reads one frame into `self.reply`, and checks that it answers what was sent.
    fn receive(&mut self, wait: Duration, interrupted: &AtomicBool) -> Result<(), Failure> {
        let deadline = Instant::now() + REPLY + wait;
        self.reply.clear();
        self.fill(4, deadline, interrupted)?;
        let prefix = self.reply.first_chunk().map_or(0, |prefix| u32::from_be_bytes(*prefix));
        if !(4..=REPLY_BYTES_MAX).contains(&prefix) {
            return Err(self.no_kafka(prefix));
        }
        self.reply.clear();
        self.fill(prefix as usize, deadline, interrupted)?;
        let answered = Reader::new(&self.reply).i32().unwrap_or(-1);
        if answered != self.correlation_id {
            return Err(format!("{}: a reply came for another request", self.address).into());
        }
        Ok(())
    }

    /// Grows `self.reply` to `bytes` as they come.
    fn fill(&mut self, bytes: usize, deadline: Instant, interrupted: &AtomicBool) -> Result<(), Failure> {
        let mut chunk = [0; 65_536];
        while self.reply.len() < bytes {
            let wanted = chunk.len().min(bytes - self.reply.len());
            match self.stream.read(chunk.get_mut(..wanted).unwrap_or_default()) {
                Ok(0) => return Err(self.broke(&io::ErrorKind::UnexpectedEof.into())),
                Ok(read) => self.reply.extend_from_slice(chunk.get(..read).unwrap_or_default()),
                Err(error) if is_idle(&error) => {
                    if interrupted.load(Ordering::Relaxed) {
                        return Err(Failure::Interrupted);
                    }
                    if Instant::now() > deadline {
                        return Err(format!("{}: no reply in {} s", self.address, REPLY.as_secs()).into());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.broke(&error)),
            }
        }
        Ok(())
    }

    /// What follows the header of the reply.
    fn body(&self, key: ApiKey, version: Version) -> Result<&[u8], Failure> {
        let mut r = Reader::new(&self.reply);
        ResponseHeader::decode(&mut r, key, version).map_err(|error| self.garbled(error))?;
        Ok(r.rest())
    }

    fn broke(&self, error: &io::Error) -> Failure {
        if let Some(failed) = error.get_ref().and_then(|inner| inner.downcast_ref::<TlsFailed>()) {
            return Failure::Told(failed.0.clone());
        }
        let why = match error.kind() {
            io::ErrorKind::UnexpectedEof => "the broker closed the connection".into(),
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => "the connection was reset".into(),
            _ => error.to_string(),
        };
        let cure = match (self.versions.is_empty(), self.stream.is_plain()) {
            (true, true) => "; does another protocol live there, or TLS (security.protocol=SSL in --command-config)?",
            (true, false) => "; does another protocol live there?",
            (false, _) => "",
        };
        Failure::Broken(format!("{}: {why}{cure}", self.address))
    }

    fn garbled(&self, error: DecodeError) -> Failure {
        format!("{}: the reply cannot be read: {error}", self.address).into()
    }

    /// A frame whose length makes no sense: who speaks there?
    fn no_kafka(&self, prefix: u32) -> Failure {
        let who = match &prefix.to_be_bytes() {
            [0x15, 3, ..] if self.stream.is_plain() => {
                "it speaks TLS: set security.protocol=SSL and ssl.truststore.location in a file for --command-config"
            }
            b"HTTP" => "it speaks HTTP",
            b"SSH-" => "it speaks SSH",
            _ => "what it sent is no Kafka frame",
        };
        let kind = if self.stream.is_plain() { "plain " } else { "" };
        format!("{} is no {kind}Kafka listener: {who}", self.address).into()
    }
}

/// Connects to the first address of `host:port` that lets us.
fn connect(address: &str) -> Result<TcpStream, Failure> {
    let found: Vec<SocketAddr> = address
        .to_socket_addrs()
        .map_err(|error| Failure::Unreachable(format!("cannot find {address}: {error}; is the name right?")))?
        .collect();
    let mut failure = io::Error::other("the name has no address");
    for candidate in found {
        match TcpStream::connect_timeout(&candidate, CONNECT) {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    let (why, cure) = match failure.kind() {
        io::ErrorKind::ConnectionRefused => ("connection refused".into(), "is the broker running there?"),
        io::ErrorKind::TimedOut => (
            format!("no answer in {} s", CONNECT.as_secs()),
            "is the address right, and open in the firewall?",
        ),
        _ => (failure.to_string(), "is the address right?"),
    };
    Err(Failure::Unreachable(format!("cannot reach {address}: {why}; {cure}")))
}

/// `host:port` for a host that may be an IPv6 address.
fn host_port(host: &str, port: i32) -> String {
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

/// What an error code means, with its name.
pub fn words(error: ErrorCode) -> String {
    let message = error.message().trim_end_matches('.');
    match error.name() {
        Some(name) => format!("{message} ({name})"),
        None => format!("error {}", error.0),
    }
}

/// The broker refused: about what, and why. A broker's own words go before ours.
pub fn refused(what: &str, error: ErrorCode, message: Option<&str>) -> Failure {
    match (message.filter(|text| !text.is_empty()), error.name()) {
        (Some(text), Some(name)) => format!("{what}: {} ({name})", text.trim_end_matches('.')).into(),
        _ => format!("{what}: {}", words(error)).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn an_ipv6_host_stands_in_brackets() {
        assert_eq!(host_port("::1", 7), "[::1]:7");
    }

    fn told(result: Result<Vec<Topic>, Failure>) -> String {
        match result.unwrap_err() {
            Failure::Told(text) | Failure::Broken(text) | Failure::Unreachable(text) => text,
            other => panic!("{other:?}"),
        }
    }

    fn ask(address: &str) -> String {
        let mut client = Client::new(Access::plain(address).unwrap(), Arc::default());
        told(client.metadata(None, false))
    }

    /// A server that sends `bytes` and closes.
    fn says(bytes: &'static [u8]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            // The request is read first, or closing would reset the connection under the reply.
            let _ = stream.read(&mut [0; 1024]);
            stream.write_all(bytes).unwrap();
        });
        address
    }

    #[test]
    fn a_broker_that_is_not_there_is_named_with_a_cure() {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        assert_eq!(
            ask(&free.to_string()),
            format!("cannot reach {free}: connection refused; is the broker running there?")
        );
    }

    #[test]
    fn other_protocols_are_named() {
        let address = says(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        assert_eq!(
            ask(&address),
            format!("{address} is no plain Kafka listener: it speaks HTTP")
        );
        let address = says(&[0x15, 3, 3, 0, 2, 2, 80]);
        assert_eq!(
            ask(&address),
            format!(
                "{address} is no plain Kafka listener: it speaks TLS: set security.protocol=SSL and \
                 ssl.truststore.location in a file for --command-config"
            )
        );
        let address = says(b"");
        assert_eq!(
            ask(&address),
            format!(
                "{address}: the broker closed the connection; does another protocol live there, or TLS \
                 (security.protocol=SSL in --command-config)?"
            )
        );
    }
}
