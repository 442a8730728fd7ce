//! Handshakes over loopback: each server in a process of its own behind the same accept loop, its CPU time from the operating system. The
//! client is one connection after the other.
//!
//! Client and servers share one processor: they take turns anyway, and on a virtual machine waking another processor costs about as much as a
//! handshake, which would be measured instead.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use skerry_tls::suite::Version;

use super::client::Client;
use super::kind::Fault;
use super::server::Peer;
use super::{Key, Kind, Setup, Times};
use crate::process::{Modes, Tasks, pin};
use crate::server::Server;

/// Connections between two looks at a server's CPU time.
const BATCH: u32 = 50;

/// The name of the server that accepts and waits for the end, without a byte.
pub const PLAIN: &str = "plaintext";

/// The name of the whole broker.
pub const BROKER: &str = "skerry, the broker";

/// `skerry-bench serve-handshakes`: one of the servers, for as long as its standard input is open.
#[derive(clap::Args, Clone, Debug)]
pub struct ServeArgs {
    /// Which server
    pub server: String,
    /// The kind of its handshakes
    pub kind: String,
    /// How it is set up
    #[arg(value_enum)]
    pub setup: Setup,
}

/// Serves, and tells its address on standard output.
///
/// Errors: no such server, or no socket.
pub fn serve(args: &ServeArgs) -> Result<(), String> {
    let mut kind = Kind::named(&args.kind).ok_or_else(|| format!("no kind {}", args.kind))?;
    kind.setup = args.setup;
    let mut server = match args.server.as_str() {
        PLAIN => None,
        name => Some(
            Peer::named(name)
                .ok_or_else(|| format!("no server {name}"))?
                .server(kind)?,
        ),
    };
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|e| e.to_string())?;
    println!("{}", listener.local_addr().map_err(|e| e.to_string())?);
    thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    let (mut input, mut out) = (vec![0; 32 << 10], Vec::new());
    loop {
        let (mut stream, _) = listener.accept().map_err(|e| e.to_string())?;
        let _ = stream.set_nodelay(true);
        let mut begun = false;
        while let Ok(bytes @ 1..) = stream.read(&mut input) {
            let Some(server) = &mut server else { continue };
            if !std::mem::replace(&mut begun, true) {
                server.begin()?;
            }
            let taken = server.receive(&mut input[..bytes], &mut out);
            let sent = stream.write_all(&out);
            out.clear();
            if taken.is_err() || sent.is_err() {
                break;
            }
        }
    }
}

/// A server process.
struct Served {
    child: Child,
    address: SocketAddr,
}

impl Served {
    fn start(server: &str, kind: Kind) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|e| e.to_string())?;
        let mut child = Command::new(program)
            .args(["serve-handshakes", server, &kind.to_string(), kind.setup.word()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| e.to_string())?;
        let mut line = String::new();
        let told = child
            .stdout
            .take()
            .map(|stdout| BufReader::new(stdout).read_line(&mut line));
        match (told, line.trim().parse()) {
            (Some(Ok(_)), Ok(address)) => Ok(Self { child, address }),
            _ => Err(format!("the server {server} does not come up")),
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client's connections to one address.
pub struct Visitor {
    client: Client,
    kind: Kind,
    address: SocketAddr,
    input: Vec<u8>,
    tickets: u64,
}

impl Visitor {
    /// Of that kind, with a session to resume where it resumes.
    ///
    /// Errors: as [`Visitor::visit`].
    pub fn new(kind: Kind, address: SocketAddr) -> Result<Self, String> {
        Self::with(Client::new(kind), kind, address)
    }

    /// As [`Visitor::new`], of a server that need not resume what it is asked to.
    ///
    /// Errors: as [`Visitor::visit`].
    pub fn lenient(kind: Kind, address: SocketAddr) -> Result<Self, String> {
        let mut client = Client::new(kind);
        client.be_lenient();
        Self::with(client, kind, address)
    }

    fn with(client: Client, kind: Kind, address: SocketAddr) -> Result<Self, String> {
        let mut visitor = Self {
            client,
            kind,
            address,
            input: vec![0; 32 << 10],
            tickets: 0,
        };
        if kind.is_resumed() {
            visitor.visit()?;
        }
        Ok(visitor)
    }

    /// The suite of the last handshake.
    #[must_use]
    pub fn suite(&self) -> Option<String> {
        self.client.suite()
    }

    /// One connection: connects, shakes hands, waits for a ticket where one comes, and closes.
    ///
    /// Errors: the socket's, the engine's, and a handshake of another kind than was meant.
    pub fn visit(&mut self) -> Result<(), String> {
        let failed = |e: std::io::Error| format!("{}: {e}", self.address);
        let mut stream = TcpStream::connect(self.address).map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        self.client.begin()?;
        if self.kind.fault.is_some() {
            return self.fail(&mut stream);
        }
        let mut filled = 0;
        loop {
            stream.write_all(self.client.take_out()).map_err(failed)?;
            let has_ticket = self.client.tickets() > self.tickets;
            let wants_ticket = self.kind.version == Version::Tls13;
            if self.client.is_connected() && (has_ticket || !wants_ticket) {
                break;
            }
            let bytes = stream.read(&mut self.input[filled..]).map_err(failed)?;
            if bytes == 0 {
                return Err(format!("{}: closed in the middle of a handshake", self.address));
            }
            filled += bytes;
            let came = self.client.receive(&mut self.input[..filled])?;
            self.input.copy_within(came.consumed..filled, 0);
            filled -= came.consumed;
        }
        self.tickets = self.client.tickets();
        self.client.check()
    }

    /// Sends what the fault is made of until there is no more of it, and hears the server out; a silent client leaves after its flight. How a
    /// server ends such a connection is its own affair.
    fn fail(&mut self, stream: &mut TcpStream) -> Result<(), String> {
        let failed = |e: std::io::Error| format!("{}: {e}", self.address);
        stream.write_all(self.client.take_out()).map_err(failed)?;
        let mut filled = 0;
        while let Ok(bytes @ 1..) = stream.read(&mut self.input[filled..]) {
            filled += bytes;
            let came = self.client.receive(&mut self.input[..filled])?;
            self.input.copy_within(came.consumed..filled, 0);
            filled -= came.consumed;
            let out = self.client.take_out();
            if !out.is_empty() && stream.write_all(out).is_err() {
                break;
            }
            if self.kind.fault == Some(Fault::Silent) && self.client.flights() > 1 {
                break;
            }
        }
        if self.client.tickets() > self.tickets {
            return Err(format!("{}: a {} came to a session", self.address, self.kind));
        }
        Ok(())
    }
}

/// How long a server may take for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// One connection without a byte: what every handshake costs besides.
///
/// Errors: the socket's.
pub fn knock(address: SocketAddr) -> Result<(), String> {
    let mut stream = TcpStream::connect(address).map_err(|e| format!("{address}: {e}"))?;
    stream.shutdown(std::net::Shutdown::Write).map_err(|e| e.to_string())?;
    // Until the server has closed.
    let _ = stream.read(&mut [0; 16]);
    Ok(())
}

/// CPU time of a process over `BATCH` times `each`, for one of them, in nanoseconds. What it does after the last is waited for.
///
/// Errors: those of `each`, and a process that is gone.
pub fn batch(pid: u32, mut each: impl FnMut() -> Result<(), String>) -> Result<u64, String> {
    let tasks = || Tasks::of(pid).map_err(|e| format!("CPU time of process {pid}: {e}"));
    let before = tasks()?;
    for _ in 0..BATCH {
        each()?;
    }
    thread::sleep(Duration::from_millis(1));
    let spent = tasks()?.since(&before).all();
    Ok((spent * 1e9 / f64::from(BATCH)) as u64)
}

/// What one server's connections cost.
pub struct Measured {
    /// Whose.
    pub name: String,
    /// With a handshake.
    pub times: Times,
    /// Without a byte: of the same process, or of one that does nothing else.
    pub plain: Times,
    /// The kernel's share of the process's time, where all of it were handshakes.
    pub kernel_share: Option<f64>,
}

impl Measured {
    /// A handshake without the connection, in microseconds.
    #[must_use]
    pub fn net(&self) -> Option<f64> {
        Some(self.times.median()? - self.plain.median()?)
    }

    /// What of it is the kernel's, in microseconds: a connection without a byte is nothing else.
    #[must_use]
    pub fn kernel(&self) -> Option<f64> {
        Some((self.times.median()? * self.kernel_share? - self.plain.median()?).max(0.0))
    }
}

/// Where connections without a byte go.
struct Door {
    pid: u32,
    address: SocketAddr,
    nanos: Vec<u64>,
}

struct Contestant {
    name: String,
    pid: u32,
    visitor: Visitor,
    nanos: Vec<u64>,
    /// The place of its door.
    door: usize,
    /// What it had used when it came up, where nobody knocks at it.
    before: Option<Modes>,
}

/// CPU of each server for one handshake of a kind, and of a connection without one: batches of each in turn, for `time`. The broker, where one
/// is given, is one of them.
///
/// Errors: a handshake fails, or a server does not come up.
pub fn measure(kind: Kind, peers: &[Peer], broker: Option<&Server>, time: Duration) -> Result<Vec<Measured>, String> {
    let place = |pid| pin(pid, 0).map_err(|e| format!("cannot pin to processor 0: {e}"));
    place(std::process::id())?;
    let door = |pid, address| Door {
        pid,
        address,
        nanos: Vec::new(),
    };
    let plain = Served::start(PLAIN, kind)?;
    place(plain.child.id())?;
    let mut doors = vec![door(plain.child.id(), plain.address)];
    let mut children = vec![plain];
    let mut all = Vec::new();
    let mut enter = |name: &str, pid, address, door| -> Result<(), String> {
        let failed = |why| format!("{name}: {why}");
        let mut visitor = Visitor::new(kind, address).map_err(failed)?;
        // What a library does once, such as gathering entropy, is no handshake's.
        visitor.visit().map_err(failed)?;
        all.push(Contestant {
            name: name.into(),
            pid,
            visitor,
            nanos: Vec::new(),
            before: (door == 0).then(|| Modes::of(pid).ok()).flatten(),
            door,
        });
        Ok(())
    };
    for peer in peers {
        let served = Served::start(peer.name(), kind)?;
        place(served.child.id())?;
        enter(peer.name(), served.child.id(), served.address, 0)?;
        children.push(served);
    }
    if let Some(broker) = broker
        && let Some(pid) = broker.pid
        && let Some(address) = broker.listener(if kind.is_mutual() { "MUTUAL" } else { "SSL" })
        && kind.key == Key::P256
    {
        doors.push(door(pid, broker.address));
        enter(BROKER, pid, address, 1)?;
    }
    let until = Instant::now() + time;
    while Instant::now() < until {
        for door in &mut doors {
            door.nanos.push(batch(door.pid, || knock(door.address))?);
        }
        for one in &mut all {
            let spent = batch(one.pid, || one.visitor.visit());
            one.nanos.push(spent.map_err(|why| format!("{}: {why}", one.name))?);
        }
    }
    Ok(all
        .into_iter()
        .map(|one| Measured {
            plain: Times::new(doors.get(one.door).map(|door| door.nanos.clone()).unwrap_or_default()),
            kernel_share: one
                .before
                .and_then(|before| Modes::of(one.pid).ok()?.since(before).kernel_share()),
            name: one.name,
            times: Times::new(one.nanos),
        })
        .collect())
}
