//! The real binary as a child process: built once, started on a free port, waited for, read, stopped or killed.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::preload::AllocationCount;

/// The setting of a broker that serves metrics, on a free port.
pub const METRICS: &str = "skerry.metrics.listener=127.0.0.1:0";

/// Patience with a process on a machine that has other things to do. Not a measure of anything.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The `skerry` binary: the one that `SKERRY_BIN` names, else one built by this call in the profile of the running test.
///
/// Panics when it does not build.
pub fn skerry() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| match env::var_os("SKERRY_BIN") {
        Some(path) => path.into(),
        None => build(own_profile()),
    })
}

/// Where cargo put this program: tests run from `<target directory>/<profile directory>/deps`, others from one above.
fn profile_dir() -> PathBuf {
    let mut path = env::current_exe().expect("the path of this program");
    path.pop();
    if path.ends_with("deps") {
        path.pop();
    }
    path
}

/// Builds the `skerry` binary in a profile of cargo's; where it is.
///
/// Panics when it does not build.
#[must_use]
pub fn build(profile: &str) -> PathBuf {
    let folder = cargo_build(&["--package", "skerry-broker", "--bin", "skerry"], profile);
    folder.join("skerry")
}

/// Builds an example of the `tls` crate in the profile of the running test; where it is.
///
/// Panics when it does not build.
#[must_use]
pub fn tls_example(name: &str) -> PathBuf {
    let folder = cargo_build(&["--package", "skerry-tls", "--example", name], own_profile());
    folder.join("examples").join(name)
}

/// The profile that this program was built in.
fn own_profile() -> &'static str {
    static PROFILE: OnceLock<String> = OnceLock::new();
    PROFILE.get_or_init(|| {
        let profile_dir = profile_dir();
        match profile_dir.file_name().and_then(|n| n.to_str()) {
            Some("debug") | None => "dev".to_owned(),
            Some(name) => name.to_owned(),
        }
    })
}

/// Has cargo build it in the target directory of this program; the directory of the profile.
fn cargo_build(what: &[&str], profile: &str) -> PathBuf {
    let profile_dir = profile_dir();
    let target_dir = profile_dir
        .parent()
        .expect("a profile's directory lies in the target directory");
    let status = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--quiet", "--profile", profile])
        .args(what)
        .arg("--manifest-path")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"))
        .arg("--target-dir")
        .arg(target_dir)
        .status()
        .expect("cargo runs");
    assert!(status.success(), "{what:?} does not build");
    target_dir.join(if profile == "dev" { "debug" } else { profile })
}

/// A directory of its own under the system's temporary one, removed with everything in it when dropped.
#[derive(Debug)]
pub struct TempDir(PathBuf);

impl TempDir {
    /// Makes one.
    #[must_use]
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("skerry-test-{}-{number}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a temporary directory");
        Self(path)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Default for TempDir {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// How a broker is to be started.
#[derive(Debug)]
pub struct Start<'a> {
    /// `log.dirs`.
    pub data_dir: &'a Path,
    /// `listeners`; port 0 takes any free one.
    pub listeners: &'a str,
    /// Further settings, as `key=value`.
    pub overrides: &'a [&'a str],
    /// Environment variables.
    pub environment: &'a [(&'a str, &'a str)],
    /// Counts its allocations.
    pub counted: Option<&'a AllocationCount>,
    /// The program; `None` is [`skerry`].
    pub binary: Option<&'a Path>,
}

impl<'a> Start<'a> {
    /// On a free port of loopback, with nothing set but the data directory.
    #[must_use]
    pub const fn new(data_dir: &'a Path) -> Self {
        Self {
            data_dir,
            listeners: "PLAINTEXT://127.0.0.1:0",
            overrides: &[],
            environment: &[],
            counted: None,
            binary: None,
        }
    }

    /// With these settings besides.
    #[must_use]
    pub const fn with(mut self, overrides: &'a [&'a str]) -> Self {
        self.overrides = overrides;
        self
    }

    /// With its allocations counted.
    #[must_use]
    pub const fn counted(mut self, count: &'a AllocationCount) -> Self {
        self.counted = Some(count);
        self
    }

    /// Starts it and waits until it listens.
    ///
    /// Panics with all that it wrote when it ends before that.
    #[must_use]
    pub fn start(&self) -> Skerry {
        match self.try_start() {
            Ok(skerry) => skerry,
            Err((status, stderr)) => panic!("skerry ended at its start with {status}:\n{stderr}"),
        }
    }

    /// As [`start`](Self::start); the status and what it wrote when it ends instead.
    pub fn try_start(&self) -> Result<Skerry, (ExitStatus, String)> {
        let mut command = Command::new(self.binary.unwrap_or_else(|| skerry()));
        command.arg("run");
        let own = [
            format!("log.dirs={}", self.data_dir.display()),
            format!("listeners={}", self.listeners),
        ];
        for setting in own.iter().map(String::as_str).chain(self.overrides.iter().copied()) {
            command.args(["--override", setting]);
        }
        command
            .envs(self.environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        if let Some(count) = self.counted {
            count.watch(&mut command);
        }
        let mut child = command.stderr(Stdio::piped()).spawn().expect("skerry starts");
        let stderr = child.stderr.take().expect("a piped stderr");
        let (log, addresses) = Log::follow(stderr);
        let until = Instant::now() + PATIENCE;
        loop {
            match addresses.recv_timeout(Duration::from_millis(20)) {
                Ok(address) => return Ok(Skerry { child, address, log }),
                Err(RecvTimeoutError::Disconnected) => {
                    let status = child.wait().expect("its status");
                    return Err((status, log.text()));
                }
                Err(RecvTimeoutError::Timeout) => {
                    if Instant::now() > until {
                        let _ = child.kill();
                        let _ = child.wait();
                        panic!("skerry does not come up:\n{}", log.text());
                    }
                }
            }
        }
    }
}

/// What a process writes to its standard error, as it comes.
#[derive(Clone, Debug, Default)]
struct Log(Arc<Mutex<String>>);

impl Log {
    /// Collects in the background; the addresses that are listened on come through the channel.
    fn follow(stderr: impl Read + Send + 'static) -> (Self, Receiver<SocketAddr>) {
        let log = Self::default();
        let (sender, receiver) = channel();
        let sink = log.clone();
        thread::spawn(move || {
            for line in BufReader::new(stderr).split(b'\n') {
                let Ok(line) = line else { break };
                let line = String::from_utf8_lossy(&line);
                if let Some(address) = listening_on(&line) {
                    let _ = sender.send(address);
                }
                let mut text = sink.0.lock().unwrap_or_else(PoisonError::into_inner);
                text.push_str(&line);
                text.push('\n');
            }
        });
        (log, receiver)
    }

    fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The address in a line of the form `… listening on NAME://address; …`.
fn listening_on(line: &str) -> Option<SocketAddr> {
    let (_, rest) = line.split_once("listening on ")?;
    let (_, rest) = rest.split_once("://")?;
    rest.split(';').next()?.trim().parse().ok()
}

/// A running broker. Dropping it kills it.
#[derive(Debug)]
pub struct Skerry {
    child: Child,
    /// The address of its first listener.
    pub address: SocketAddr,
    log: Log,
}

impl Skerry {
    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it wrote to its standard error so far.
    #[must_use]
    pub fn stderr(&self) -> String {
        self.log.text()
    }

    /// Waits until it has written a line that contains `text`; that line.
    #[must_use]
    pub fn wait_for_line(&self, text: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let log = self.stderr();
            if let Some(line) = log.lines().find(|l| l.contains(text)) {
                return line.to_owned();
            }
            assert!(Instant::now() < until, "no line with {text:?} in:\n{log}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// The address of a listener that has no other's name, once it is told. Waits for that.
    #[must_use]
    pub fn listener(&self, name: &str) -> SocketAddr {
        let line = self.wait_for_line(&format!("listening on {name}://"));
        listening_on(&line).expect("an address")
    }

    /// Its page of metrics. It was started with [`METRICS`].
    ///
    /// Panics when it serves none.
    #[must_use]
    pub fn page(&self) -> String {
        let line = self.wait_for_line("metrics at http://");
        let address = line.split_once("http://").and_then(|(_, rest)| rest.split('/').next());
        let mut reply = String::new();
        let mut stream = TcpStream::connect(address.expect("an address")).expect("metrics are there");
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").expect("asked");
        stream.read_to_string(&mut reply).expect("a page");
        reply.split_once("\r\n\r\n").expect("a body").1.to_owned()
    }

    /// Resident memory in bytes.
    #[must_use]
    pub fn resident_bytes(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("status of the process");
        let line = status
            .lines()
            .find(|l| l.starts_with("VmRSS:"))
            .expect("a line of resident memory");
        let kib: u64 = line
            .split_whitespace()
            .nth(1)
            .and_then(|n| n.parse().ok())
            .expect("its number");
        kib * 1024
    }

    /// Whether it is still there.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_none())
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.pid())
            .ok()
            .and_then(Pid::from_raw)
            .expect("a process id");
        kill_process(pid, signal).expect("the process takes a signal");
    }

    /// Ends it at once, as a crash would (`SIGKILL`).
    pub fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks it to stop (`SIGTERM`) and waits; its status and all that it wrote.
    pub fn stop(mut self) -> (ExitStatus, String) {
        self.signal(Signal::TERM);
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("its status") {
                return (status, self.stderr());
            }
            assert!(Instant::now() < until, "skerry does not stop:\n{}", self.stderr());
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Skerry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("--- stderr of skerry ---\n{}---", self.stderr());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_found_in_a_line_of_the_log() {
        let line = "2026-01-01T00:00:00Z INFO  listening on PLAINTEXT://127.0.0.1:40001; clients are told x";
        assert_eq!(listening_on(line), Some("127.0.0.1:40001".parse().unwrap()));
        assert_eq!(
            listening_on("listening on OUT://[::1]:9093; x"),
            Some("[::1]:9093".parse().unwrap())
        );
        assert_eq!(listening_on("started"), None);
    }
}
