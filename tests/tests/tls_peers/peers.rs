//! Clients of other libraries: programs that take rows, connect, echo, close, and say what was agreed on (`tests/interop/README.md`).

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;

use crate::programs::{Event, built, certificate, folder};

/// How long all rows of one peer may take. Not a measure of anything.
const SECONDS_MAX: &str = "200";

/// A client of another library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    OpenSsl,
    GnuTls,
    /// The JSSE of this major version of Java.
    Java(u32),
    Go,
    Node,
    Python,
    Rustls,
    TlsliteNg,
    /// tlslite-ng doing something wrong.
    Liar,
    /// The same as a server, with a client of ours.
    LiarServer,
}

/// One row of a matrix: a client's connections, one after the other, each resuming what the one before was given.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// The port that is connected to.
    pub port: u16,
    pub version: &'static str,
    /// What the server's certificate is checked for, and sent as SNI unless it is an address.
    pub name: &'static str,
    /// The kind of client certificate.
    pub client: Option<&'static str>,
    /// The one suite that is offered.
    pub suite: Option<&'static str>,
    /// The groups that are offered, with a share for the first only.
    pub groups: Option<&'static str>,
    /// The largest record that is asked for (RFC 8449).
    pub record_size: Option<&'static str>,
    /// Keys are renewed now and then, by [`Peer::OpenSsl`].
    pub updates: Option<&'static str>,
    /// Bytes to be echoed on each connection, one number after the other.
    pub echo: Vec<&'static [usize]>,
    /// What is done wrong, by [`Peer::Liar`] and [`Peer::LiarServer`].
    pub act: Option<String>,
    /// Seconds before it, by [`Peer::Liar`].
    pub wait: Option<&'static str>,
    /// The client that [`Peer::LiarServer`] starts, and the kind of its own certificate.
    pub program: Option<String>,
    pub server: Option<&'static str>,
}

impl Row {
    fn line(&self, id: usize) -> String {
        let sizes = |sizes: &&[usize]| sizes.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        let echo: Vec<String> = self.echo.iter().map(sizes).collect();
        let mut line = format!(
            "id={id}\tport={}\tversion={}\tname={}\tca={}\techo={}",
            self.port,
            self.version,
            self.name,
            certificate("ca.pem"),
            echo.join(";")
        );
        let mut add = |key: &str, value: &str| line.push_str(&format!("\t{key}={value}"));
        for (role, kind) in [("client", self.client), ("server", self.server)] {
            if let Some(kind) = kind {
                add("cert", &certificate(&format!("{role}-{kind}.pem")));
                add("key", &certificate(&format!("{role}-{kind}.key")));
            }
        }
        for (key, value) in [
            ("suite", self.suite),
            ("group", self.groups),
            ("record_size", self.record_size),
            ("updates", self.updates),
            ("act", self.act.as_deref()),
            ("wait", self.wait),
            ("client", self.program.as_deref()),
        ] {
            if let Some(value) = value {
                add(key, value);
            }
        }
        line
    }
}

impl Peer {
    /// Its program.
    ///
    /// Panics, saying what to run, when it is not there.
    fn command(self) -> Command {
        let with = |program: PathBuf, argument: &str| {
            let mut command = Command::new(program);
            command.arg(argument);
            command
        };
        let mut command = match self {
            Self::OpenSsl => with("python3".into(), "tls/python/openssl.py"),
            Self::GnuTls => with("python3".into(), "tls/python/gnutls.py"),
            Self::Python => with("python3".into(), "tls/python/stdlib.py"),
            Self::TlsliteNg => with(built("tls-venv/bin/python"), "tls/python/tlslite_ng.py"),
            Self::Liar => with(built("tls-venv/bin/python"), "tls/python/liar.py"),
            Self::LiarServer => with(built("tls-venv/bin/python"), "tls/python/liar_server.py"),
            Self::Node => with("node".into(), "tls/node/peer.js"),
            Self::Go => with(built("tls-go"), "connect"),
            Self::Rustls => with(built("tls-rust/debug/skerry-interop-rustls"), "connect"),
            Self::Java(version) => {
                let mut command = with(java(version), "-cp");
                command.arg(built("tls-java")).arg("Peer");
                command
            }
        };
        command.current_dir(folder());
        command
    }

    /// Runs all rows; what it said of each connection, by row.
    ///
    /// Panics when the program fails or says less than it was asked.
    pub fn run(self, rows: &[Row], arguments: &[&str]) -> Vec<Vec<Event>> {
        let program = self.command();
        // A program that hangs is ended by `timeout`, with an exit code of its own.
        let mut command = Command::new("timeout");
        command.args(["--kill-after=5", SECONDS_MAX]).arg(program.get_program());
        command.args(arguments).args(program.get_args());
        if let Some(folder) = program.get_current_dir() {
            command.current_dir(folder);
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("timeout of coreutils");
        let mut stdin = child.stdin.take().expect("a piped stdin");
        let lines: String = rows.iter().enumerate().map(|(id, row)| row.line(id) + "\n").collect();
        let writer = thread::spawn(move || stdin.write_all(lines.as_bytes()));
        let output = child.wait_with_output().expect("its output");
        let (stdout, stderr) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        let written = writer.join().expect("the writer of rows");
        assert!(
            output.status.success() && written.is_ok(),
            "{self:?}: {}\n{stdout}{stderr}",
            output.status
        );
        let mut said = vec![Vec::new(); rows.len()];
        for line in stdout.lines() {
            let id: usize = line
                .split('\t')
                .next()
                .and_then(|id| id.parse().ok())
                .unwrap_or_else(|| panic!("{self:?} said {line:?}"));
            said[id].push(Event::parse(line));
        }
        said
    }

    /// Whether it is told by the peer which of TLS 1.3's suites are offered.
    pub fn chooses_suites(self, version: &str) -> bool {
        version == "1.2" || !matches!(self, Self::Go | Self::Python)
    }

    /// Whether it can be told which groups to offer.
    pub fn chooses_groups(self) -> bool {
        !matches!(self, Self::Java(_))
    }

    /// Whether it can be made to offer a group without a share for it, so that a HelloRetryRequest is needed.
    pub fn can_be_retried(self) -> bool {
        matches!(
            self,
            Self::OpenSsl | Self::GnuTls | Self::Node | Self::Rustls | Self::TlsliteNg
        )
    }
}

/// The `java` of this major version.
fn java(version: u32) -> PathBuf {
    let is_it = |release: &str| {
        release.lines().any(|line| {
            line.strip_prefix("JAVA_VERSION=\"")
                .and_then(|v| v.split(['.', '"']).next())
                == Some(&version.to_string())
        })
    };
    let homes = fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten();
    homes
        .map(|home| home.path())
        .find(|home| fs::read_to_string(home.join("release")).is_ok_and(|r| is_it(&r)))
        .unwrap_or_else(|| panic!("no Java {version} under /usr/lib/jvm: tests/setup.sh test says where to get it"))
        .join("bin/java")
}
