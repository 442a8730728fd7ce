//! Our client, the example `tls-client`, against other servers: full and resumed, with and without a certificate, asked again for a share.

use std::io::pipe;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use skerry_tests::process::{PATIENCE, tls_example};

use crate::programs::{Running, Server, ServerProgram, certificate, free_port};

/// A server of another library that echoes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theirs {
    OpenSsl,
    GnuTls,
    Rustls,
    Go,
}

/// How a server is set up.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// The kind of its certificate.
    pub kind: &'static str,
    /// Whether it requires a client certificate.
    pub client_auth: bool,
    /// The one group that it takes.
    pub group: Option<&'static str>,
}

impl Theirs {
    pub fn start(self, setup: Setup) -> Server {
        let cert = certificate(&format!("server-{}.pem", setup.kind));
        let key = certificate(&format!("server-{}.key", setup.kind));
        let ca = certificate("ca.pem");
        let port = free_port();
        let server = match self {
            Self::Rustls | Self::Go => {
                let mut options = vec!["--cert", &cert, "--key", &key, "--echo"];
                if setup.client_auth {
                    options.extend(["--client-ca", &ca, "--client-auth", "required"]);
                }
                if let Some(group) = setup.group {
                    options.extend(["--groups", group]);
                }
                let program = if self == Self::Go {
                    ServerProgram::Go
                } else {
                    ServerProgram::Rustls
                };
                return program.start(&options);
            }
            Self::OpenSsl => {
                let mut command = Command::new("openssl");
                command.args(["s_server", "-quiet", "-accept", &format!("127.0.0.1:{port}")]);
                command.args(["-cert", &cert, "-cert_chain", &cert, "-key", &key]);
                // The tests have servers refuse certificates of less than OpenSSL's own least security.
                command.args(["-cipher", "ALL:@SECLEVEL=0"]);
                if setup.client_auth {
                    command.args(["-CAfile", &ca, "-Verify", "1", "-verify_return_error"]);
                }
                if let Some(group) = setup.group {
                    command.args(["-groups", &group.to_uppercase().replace('P', "P-")]);
                }
                // It writes what it reads from its client, and sends what it reads here: joined, they are an echo.
                let (reader, writer) = pipe().expect("a pipe");
                Running::with_pipe(command, reader, writer)
            }
            Self::GnuTls => {
                let mut command = Command::new("gnutls-serv");
                command.args(["--echo", "--quiet", "--port", &port.to_string()]);
                command.args(["--x509certfile", &cert, "--x509keyfile", &key]);
                let mut priority = "NORMAL".to_owned();
                if let Some(group) = setup.group {
                    priority += &format!(
                        ":-GROUP-ALL:+GROUP-{}",
                        group.to_uppercase().replace('P', "SECP") + "R1"
                    );
                }
                command.args(["--priority", &priority]);
                if setup.client_auth {
                    command.args(["--x509cafile", &ca, "--require-client-cert", "--verify-client-cert"]);
                }
                Running::start(command)
            }
        };
        // Neither says when it listens.
        let until = Instant::now() + PATIENCE;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < until, "{self:?} does not listen");
            thread::sleep(Duration::from_millis(5));
        }
        Server { port, running: server }
    }
}

/// `tls-client` with these options: its lines.
pub fn client(port: u16, options: &[&str]) -> Vec<Value> {
    static EXAMPLE: OnceLock<PathBuf> = OnceLock::new();
    let output = Command::new(EXAMPLE.get_or_init(|| tls_example("tls-client")))
        .args(["--connect", &format!("127.0.0.1:{port}"), "--timeout", "20"])
        .args(options)
        .output()
        .expect("tls-client runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<Value> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    assert!(
        !lines.is_empty(),
        "tls-client {options:?}: {}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    lines
}

/// One row of the matrix.
#[derive(Clone, Copy, Debug)]
struct Row {
    setup: Setup,
    version: &'static str,
    provider: &'static str,
    /// A share for the server's group is not sent at once.
    is_retried: bool,
}

fn rows(provider: &'static str) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add = |kind, client_auth, group, version, is_retried| {
        let setup = Setup {
            kind,
            client_auth,
            group,
        };
        rows.push(Row {
            setup,
            version,
            provider,
            is_retried,
        });
    };
    let kinds: &[&str] = if provider == "fast" {
        &["p256", "rsa", "p384"]
    } else {
        &["p256", "rsa"]
    };
    for kind in kinds {
        for client_auth in [false, true] {
            for version in ["1.3", "1.2"] {
                // TLS 1.2 lets a server have a certificate only of a curve that we share keys over, too (RFC 8422).
                if (*kind, version) != ("p384", "1.2") {
                    add(kind, client_auth, None, version, false);
                }
            }
        }
    }
    add("rsa", false, Some("p256"), "1.3", true);
    add("p256", true, Some("p256"), "1.3", true);
    rows
}

impl Row {
    fn options(&self, ca: &str) -> Vec<String> {
        let mut options = vec!["--ca", ca, "--name", "skerry.test", "--provider", self.provider];
        options.extend(["--min-version", self.version, "--max-version", self.version]);
        options.extend(["--connections", "2", "--echo", "1,16385,1048576"]);
        let mut options: Vec<String> = options.into_iter().map(str::to_owned).collect();
        if self.setup.client_auth {
            let kind = self.setup.kind;
            options.extend(["--cert".to_owned(), certificate(&format!("client-{kind}.pem"))]);
            options.extend(["--key".to_owned(), certificate(&format!("client-{kind}.key"))]);
        }
        if self.version == "1.3" {
            options.push("--update-keys".to_owned());
        }
        options
    }

    /// What is wrong with a line of ours.
    fn check(&self, number: usize, line: &Value, theirs: Theirs) -> Vec<String> {
        let is_resumed = number > 0;
        let mut wrong = Vec::new();
        let mut expect = |key: &str, wanted: Value| {
            if line[key] != wanted {
                wrong.push(format!("{key} is {}, not {wanted}", line[key]));
            }
        };
        expect("version", format!("TLSv{}", self.version).into());
        expect("cause", Value::Null);
        expect("resumed", is_resumed.into());
        expect("echoed", true.into());
        expect("closed_well", true.into());
        if number == 0 {
            expect("retried", self.is_retried.into());
            expect(
                "group",
                if self.setup.group.is_some() {
                    "secp256r1"
                } else {
                    "x25519"
                }
                .into(),
            );
        }
        if self.setup.client_auth != line["own_scheme"].is_string() && !is_resumed {
            wrong.push(format!("signed with {}", line["own_scheme"]));
        }
        if !line["peer"]
            .as_str()
            .is_some_and(|peer| peer.contains("CN=skerry.test"))
        {
            wrong.push(format!("the server is {}", line["peer"]));
        }
        let who = format!("{theirs:?} {self:?} connection {number}: {line}",);
        wrong.into_iter().map(|what| format!("{what}: {who}")).collect()
    }
}

pub fn every_row(theirs: Theirs) {
    let ca = certificate("ca.pem");
    let mut wrong = Vec::new();
    let mut count = 0;
    for row in rows("fast").into_iter().chain(rows("mbedtls")) {
        let server = theirs.start(row.setup);
        let options = row.options(&ca);
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let lines = client(server.port, &options);
        count += lines.len();
        if lines.len() != 2 {
            wrong.push(format!("{} connections: {row:?}", lines.len()));
        }
        for (number, line) in lines.iter().enumerate() {
            wrong.extend(row.check(number, line, theirs));
        }
        if matches!(theirs, Theirs::Rustls | Theirs::Go) && wrong.is_empty() {
            let heard = server.running.wait_for("the end of each connection", |events| {
                events.iter().filter(|e| e.is("closed")).count() == lines.len()
            });
            let begun: Vec<_> = heard.iter().filter(|e| e.is("connected")).collect();
            for (number, begun) in begun.iter().enumerate() {
                let device = row.setup.client_auth.then(|| format!("device-{}", row.setup.kind));
                let is_right = begun.pair("resumed") == Some(if number > 0 { "yes" } else { "no" })
                    && begun.pair("version") == Some(row.version)
                    && begun.pair("name") == Some("skerry.test")
                    && begun.pair("subject") == device.as_deref();
                if !is_right {
                    wrong.push(format!("{row:?} connection {number}, to the server: {}", begun.line));
                }
            }
            let ill = heard
                .iter()
                .filter(|e| e.is("closed") && e.pair("how") != Some("clean"));
            wrong.extend(ill.map(|e| format!("{row:?}, to the server: {}", e.line)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!("ok   our client, {theirs:?}: {count} connections");
}
