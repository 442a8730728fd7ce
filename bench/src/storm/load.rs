//! The storm itself: one process, one thread, many connections, each doing the same again as soon as it has ended. And the sink that the same
//! storm goes against when the broker is to have its quiet.

use std::io::{BufRead as _, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};

use super::kinds::{Failure, Step, failures};

/// `skerry-bench storm-load`: the storm, or its sink, for as long as its standard input is open.
#[derive(clap::Args, Clone, Debug)]
pub struct LoadArgs {
    /// Where to: the sink takes anything
    #[arg(long, required_unless_present = "sink")]
    pub target: Option<SocketAddr>,
    /// Which failure
    #[arg(long, required_unless_present = "sink")]
    pub failure: Option<String>,
    /// Connections at a time
    #[arg(long, default_value_t = 500)]
    pub connections: usize,
    /// Be the sink
    #[arg(long)]
    pub sink: bool,
}

/// Runs it. Each line of standard input is answered by the number of connections that have ended.
///
/// Errors: the system's.
pub fn run(args: &LoadArgs) -> Result<(), String> {
    // The producers are on the same processor, and are to feel the broker, not this.
    rustix::process::nice(10).map_err(|e| format!("nice: {e}"))?;
    let count = Arc::new(AtomicU64::new(0));
    let asked = Arc::clone(&count);
    thread::spawn(move || {
        for line in std::io::stdin().lines() {
            if line.is_err() {
                break;
            }
            println!("{}", asked.load(Ordering::Relaxed));
        }
        std::process::exit(0);
    });
    if args.sink {
        return sink().map_err(|e| e.to_string());
    }
    let wanted = args.failure.as_deref().unwrap_or_default();
    let failure = failures()?.into_iter().find(|failure| failure.name == wanted);
    let failure = failure.ok_or_else(|| format!("no failure {wanted}"))?;
    let target = args.target.ok_or("no target")?;
    Storm::new(target, failure, count)
        .and_then(|mut storm| storm.run(args.connections))
        .map_err(|e| e.to_string())
}

/// Takes what comes, answers with something, closes.
fn sink() -> std::io::Result<()> {
    const LISTENER: u64 = u64::MAX;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    println!("{}", listener.local_addr()?);
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(
        &epoll,
        &listener,
        epoll::EventData::new_u64(LISTENER),
        epoll::EventFlags::IN,
    )?;
    let mut held: Vec<Option<TcpStream>> = Vec::new();
    let mut events = Vec::with_capacity(256);
    let mut scratch = [0; 4096];
    loop {
        wait(&epoll, &mut events)?;
        for event in events.drain(..) {
            if event.data.u64() == LISTENER {
                while let Ok((stream, _)) = listener.accept() {
                    stream.set_nonblocking(true)?;
                    let at = held.iter().position(Option::is_none).unwrap_or(held.len());
                    let data = epoll::EventData::new_u64(at as u64);
                    epoll::add(&epoll, &stream, data, epoll::EventFlags::IN)?;
                    match held.get_mut(at) {
                        Some(place) => *place = Some(stream),
                        None => held.push(Some(stream)),
                    }
                }
            } else if let Some(place) = held.get_mut(event.data.u64() as usize)
                && let Some(mut stream) = place.take()
                && let Ok(1..) = stream.read(&mut scratch)
            {
                let _ = stream.write(&[0; 64]);
            }
        }
    }
}

fn wait(epoll: &OwnedFd, events: &mut Vec<epoll::Event>) -> std::io::Result<()> {
    match epoll::wait(epoll, spare_capacity(events), None) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

struct Storm {
    target: SocketAddr,
    steps: Vec<Step>,
    epoll: OwnedFd,
    ended: Arc<AtomicU64>,
}

/// One connection under way.
struct Peer {
    stream: TcpStream,
    step: usize,
    sent: usize,
}

impl Storm {
    fn new(target: SocketAddr, failure: Failure, ended: Arc<AtomicU64>) -> std::io::Result<Self> {
        Ok(Self {
            target,
            steps: failure.steps,
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            ended,
        })
    }

    fn run(&mut self, connections: usize) -> std::io::Result<()> {
        let mut peers = Vec::with_capacity(connections);
        for at in 0..connections {
            peers.push(self.connect(at)?);
        }
        let mut events = Vec::with_capacity(256);
        loop {
            wait(&self.epoll, &mut events)?;
            for event in events.drain(..) {
                let at = event.data.u64() as usize;
                if peers.get_mut(at).is_some_and(|peer| self.go_on(peer)) {
                    self.ended.fetch_add(1, Ordering::Relaxed);
                    peers[at] = self.connect(at)?;
                }
            }
        }
    }

    /// A connection that begins.
    fn connect(&self, at: usize) -> std::io::Result<Peer> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        loop {
            let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
            match connect(&socket, &self.target) {
                Ok(()) | Err(rustix::io::Errno::INPROGRESS) => {}
                // No port is free for the moment.
                Err(rustix::io::Errno::ADDRNOTAVAIL) => {
                    thread::sleep(Duration::from_millis(10));
                    continue;
                }
                Err(e) => return Err(e.into()),
            }
            let flags = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::ET;
            epoll::add(&self.epoll, &socket, epoll::EventData::new_u64(at as u64), flags)?;
            return Ok(Peer {
                stream: socket.into(),
                step: 0,
                sent: 0,
            });
        }
    }

    /// Does what can be done now: whether the connection has ended.
    fn go_on(&self, peer: &mut Peer) -> bool {
        let mut scratch = [0; 4096];
        loop {
            match self.steps.get(peer.step) {
                Some(Step::Send(bytes)) => match peer.stream.write(&bytes[peer.sent..]) {
                    Ok(sent) => {
                        peer.sent += sent;
                        if peer.sent == bytes.len() {
                            (peer.step, peer.sent) = (peer.step + 1, 0);
                        }
                    }
                    Err(e) => return !is_patient(&e),
                },
                Some(Step::Hear) => match peer.stream.read(&mut scratch) {
                    Ok(1..) => peer.step += 1,
                    Ok(0) => return true,
                    Err(e) => return !is_patient(&e),
                },
                Some(Step::End) => match peer.stream.read(&mut scratch) {
                    Ok(1..) => {}
                    Ok(0) => return true,
                    Err(e) => return !is_patient(&e),
                },
                Some(Step::Reset) => {
                    let _ = sockopt::set_socket_linger(&peer.stream, Some(Duration::ZERO));
                    return true;
                }
                Some(Step::Close) | None => return true,
            }
        }
    }
}

/// Whether it only has to wait: for its connection too.
fn is_patient(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::NotConnected | ErrorKind::Interrupted
    )
}

/// A storm, or its sink, as a child process.
pub struct Running {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Running {
    /// The sink, and where it is.
    ///
    /// Errors: it does not come up.
    pub fn sink() -> Result<(Self, SocketAddr), String> {
        let mut running = Self::start(&["--sink"])?;
        let address = running.line()?;
        Ok((
            running,
            address.parse().map_err(|_| format!("the sink says {address}"))?,
        ))
    }

    /// A storm of that failure.
    ///
    /// Errors: it does not come up.
    pub fn storm(target: SocketAddr, failure: &Failure, connections: usize) -> Result<Self, String> {
        let (target, connections) = (target.to_string(), connections.to_string());
        Self::start(&[
            "--target",
            &target,
            "--failure",
            failure.name,
            "--connections",
            &connections,
        ])
    }

    fn start(args: &[&str]) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|e| e.to_string())?;
        let mut child = Command::new(program)
            .arg("storm-load")
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| e.to_string())?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(input), Some(output)) => Ok(Self {
                child,
                input,
                output: BufReader::new(output),
            }),
            _ => Err("no pipes to the storm".into()),
        }
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        self.output
            .read_line(&mut line)
            .map_err(|e| format!("the storm: {e}"))?;
        Ok(line.trim().into())
    }

    /// Connections that have ended so far, and when that was.
    ///
    /// Errors: it is gone.
    pub fn ended(&mut self) -> Result<(u64, Instant), String> {
        self.input
            .write_all(b"\n")
            .map_err(|e| format!("the storm is gone: {e}"))?;
        let line = self.line()?;
        Ok((
            line.parse().map_err(|_| format!("the storm says {line}"))?,
            Instant::now(),
        ))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
