//! TLS programs as child processes, the certificates that they use, and what they say of each connection.

use std::collections::BTreeMap;
use std::env;
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Read};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread;

use skerry_tests::process::{PATIENCE, tls_example};

/// Where the peers' programs lie.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("interop")
}

/// A program that `tests/interop/build` makes.
///
/// Panics, saying what to run, when it has not been made.
pub fn built(name: &str) -> PathBuf {
    let path = folder().join(".work").join(name);
    assert!(
        path.exists(),
        "{} is missing: tests/setup.sh test makes it",
        path.display()
    );
    path
}

/// A file of the certificates, which are made when the first is asked for: `server-p256.pem`, `ca.pem`, as the script names them.
pub fn certificate(name: &str) -> String {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    let directory = MADE.get_or_init(|| {
        let directory = folder().join(".work/tls-certificates");
        let status = Command::new(folder().join("tls/certificates")).arg(&directory).status();
        assert!(status.expect("bash").success(), "the certificates are not made");
        directory
    });
    let path = directory.join(name);
    assert!(path.exists(), "no certificate {name}");
    path.into_os_string().into_string().expect("a path of UTF-8")
}

/// An echo server with the options of the example `tls-http`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerProgram {
    /// Ours, over this provider.
    Skerry { provider: &'static str },
    /// The one that `SKERRY_TLS_SERVER` names.
    Named,
    /// rustls.
    Rustls,
    /// Go's crypto/tls.
    Go,
}

impl ServerProgram {
    /// Ours; or what `SKERRY_TLS_SERVER` names: `rustls` or `go`, to try the peers without it, else a program.
    pub fn under_test(provider: &'static str) -> Self {
        match env::var("SKERRY_TLS_SERVER").as_deref() {
            Ok("rustls") => Self::Rustls,
            Ok("go") => Self::Go,
            Ok(_) => Self::Named,
            Err(_) => Self::Skerry { provider },
        }
    }

    fn command(self) -> Command {
        static EXAMPLE: OnceLock<PathBuf> = OnceLock::new();
        match self {
            Self::Skerry { provider } => {
                let mut command = Command::new(EXAMPLE.get_or_init(|| tls_example("tls-http")));
                command.args(["--provider", provider, "--no-penalty", "--tell"]);
                command
            }
            Self::Named => Command::new(env::var_os("SKERRY_TLS_SERVER").unwrap_or_default()),
            Self::Rustls => {
                let mut command = Command::new(built("tls-rust/debug/skerry-interop-rustls"));
                command.args(["serve", "--groups", "x25519:p256"]);
                command
            }
            Self::Go => {
                let mut command = Command::new(built("tls-go"));
                command.args(["serve", "--groups", "x25519:p256"]);
                command
            }
        }
    }

    /// Starts it on a free port and waits until it listens.
    ///
    /// Panics with what it said when it ends before that.
    pub fn start(self, options: &[&str]) -> Server {
        let port = free_port();
        let mut command = self.command();
        command.args(["--listen", &format!("127.0.0.1:{port}")]).args(options);
        let running = Running::start(command);
        running.wait_for("it listens", |events| {
            events.iter().any(|e| e.line.contains(" on 127.0.0.1:"))
        });
        Server { port, running }
    }
}

/// A port of loopback that nobody has just now.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address").port()
}

/// A server that listens. Dropping it kills it.
#[derive(Debug)]
pub struct Server {
    pub port: u16,
    pub running: Running,
}

/// One line of a program: a word, then pairs `key=value`, values with spaces in quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub line: String,
    pairs: BTreeMap<String, String>,
}

impl Event {
    pub fn parse(line: &str) -> Self {
        let mut pairs = BTreeMap::new();
        let mut rest = line;
        while let Some((before, after)) = rest.split_once('=') {
            let key = before.rsplit([' ', '\t']).next().unwrap_or_default();
            let (value, following) = match after.strip_prefix('"') {
                Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
                None => after.split_once([' ', '\t']).unwrap_or((after, "")),
            };
            pairs.insert(key.to_owned(), value.to_owned());
            rest = following;
        }
        Self {
            line: line.to_owned(),
            pairs,
        }
    }

    /// Whether it begins with this word, after a time and a level if there are any.
    pub fn is(&self, word: &str) -> bool {
        self.line
            .split_once('=')
            .is_some_and(|(head, _)| head.split_whitespace().any(|w| w == word))
    }

    /// Versions as numbers, whoever tells.
    pub fn pair(&self, key: &str) -> Option<&str> {
        let value = self.pairs.get(key)?;
        Some(value.strip_prefix("TLSv").unwrap_or(value))
    }
}

/// A process whose lines are collected, of both outputs. Dropping it kills it.
#[derive(Debug)]
pub struct Running {
    child: Child,
    lines: Arc<Lines>,
}

#[derive(Debug, Default)]
struct Lines {
    /// And how many of its two outputs have ended.
    events: Mutex<(Vec<Event>, usize)>,
    news: Condvar,
}

impl Running {
    pub fn start(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        Self::spawn(command)
    }

    /// Reading from a pipe and writing to one; what it says is what its standard error says.
    pub fn with_pipe(mut command: Command, reader: PipeReader, writer: PipeWriter) -> Self {
        command.stdin(reader).stdout(writer);
        Self::spawn(command)
    }

    fn spawn(mut command: Command) -> Self {
        let mut child = command
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}; tests/setup.sh test installs it"));
        let lines = Arc::new(Lines::default());
        match child.stdout.take() {
            Some(stdout) => lines.clone().follow(stdout),
            None => lines.change(|state| state.1 += 1),
        }
        lines.clone().follow(child.stderr.take().expect("a piped stderr"));
        Self { child, lines }
    }

    /// Waits until `enough` says so of what was heard, or until it has ended; what was heard.
    ///
    /// Panics when nothing comes of it.
    pub fn wait_for(&self, what: &str, enough: impl Fn(&[Event]) -> bool) -> Vec<Event> {
        let guard = self.lines.events.lock().unwrap_or_else(PoisonError::into_inner);
        let unfinished = |state: &mut (Vec<Event>, usize)| state.1 < 2 && !enough(&state.0);
        let (guard, _) = self
            .lines
            .news
            .wait_timeout_while(guard, PATIENCE, unfinished)
            .unwrap_or_else(PoisonError::into_inner);
        let lines: Vec<&str> = guard.0.iter().map(|e| e.line.as_str()).collect();
        assert!(enough(&guard.0), "not heard: {what}, in:\n{}", lines.join("\n"));
        guard.0.clone()
    }

    /// What was heard so far.
    pub fn heard(&self) -> Vec<Event> {
        self.wait_for("anything", |_| true)
    }
}

impl Lines {
    fn follow(self: Arc<Self>, output: impl Read + Send + 'static) {
        thread::spawn(move || {
            for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
                let event = Event::parse(String::from_utf8_lossy(&line).trim_end());
                self.change(|state| state.0.push(event));
            }
            self.change(|state| state.1 += 1);
        });
    }

    fn change(&self, act: impl FnOnce(&mut (Vec<Event>, usize))) {
        act(&mut self.events.lock().unwrap_or_else(PoisonError::into_inner));
        self.news.notify_all();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_line_is_taken_apart() {
    let event = Event::parse("2026-01-01T00:00:00Z INFO connected peer=127.0.0.1:1 subject=\"CN=a, O=b c\" name=x");
    assert!(event.is("connected") && !event.is("closed"));
    assert_eq!(event.pair("subject"), Some("CN=a, O=b c"));
    assert_eq!(event.pair("name"), Some("x"));
    assert_eq!(event.pair("peer"), Some("127.0.0.1:1"));
    let event = Event::parse("a row\t1\tversion=1.3\tfailed=what it was");
    assert_eq!(event.pair("version"), Some("1.3"));
}
