//! The clients' programs: where they are, how each is called, and the broker they are pointed at.

use std::env;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use skerry_tests::process::{Skerry, Start, TempDir};

/// A client as the tests run it: a program that knows the modes of `tests/interop/README.md`.
#[derive(Clone, Copy, Debug)]
pub enum Client {
    Kcat,
    ConfluentKafka,
    KafkaPython,
    KafkaJs,
    FranzGo,
    /// Apache Kafka's own, in this version.
    Java(&'static str),
    Rdkafka,
}

impl Client {
    /// Its program, to be given a mode.
    ///
    /// Panics, saying what to run, when it has not been built.
    pub fn command(self) -> Command {
        let work = folder().join(".work");
        let built = |path: PathBuf| {
            assert!(
                path.exists(),
                "{} is missing: tests/setup.sh test makes it",
                path.display()
            );
            path
        };
        let mut command;
        match self {
            Self::Kcat => {
                command = Command::new("python3");
                command.arg("kcat/kcat.py");
            }
            Self::ConfluentKafka => {
                command = Command::new(built(work.join("venv/bin/python")));
                command.arg("python/confluent.py");
            }
            Self::KafkaPython => {
                command = Command::new(built(work.join("venv/bin/python")));
                command.arg("python/kafka_python.py");
            }
            Self::KafkaJs => {
                built(folder().join("node/node_modules"));
                command = Command::new("node");
                command.arg("node/kafkajs.js");
            }
            Self::FranzGo => command = Command::new(built(work.join("franz"))),
            Self::Java(version) => {
                let java = built(work.join(format!("java-{version}")));
                command = Command::new("java");
                command
                    .arg(format!("-Dkafka={version}"))
                    .arg("-cp")
                    .arg(format!("{0}/classes:{0}/lib/*", java.display()))
                    .arg("skerry.interop.Interop");
            }
            Self::Rdkafka => command = Command::new(built(work.join("rust/debug/skerry-interop-rdkafka"))),
        }
        command.current_dir(folder());
        command
    }
}

/// Where the clients' programs lie.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("interop")
}

/// Whether the clients talk TLS, and who shows a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security {
    Plaintext,
    /// The broker does.
    Tls,
    /// Both do.
    MutualTls,
}

/// What the clients talk to: the broker that `SKERRY_BOOTSTRAP` names, else one started for this test.
pub struct Broker {
    pub bootstrap: String,
    /// Variables that the clients' programs are told by: what they trust, and what they are.
    told: Vec<(&'static str, PathBuf)>,
    metrics: Option<u16>,
    // In this order: the process ends before its directory goes.
    _skerry: Option<Skerry>,
    _data: TempDir,
}

impl Broker {
    /// With topics of four partitions when they are made by being named, and new groups that wait this long for more members.
    pub fn start(initial_rebalance_delay_ms: u32) -> Self {
        match env::var("SKERRY_BOOTSTRAP") {
            Ok(bootstrap) => Self {
                bootstrap,
                told: Vec::new(),
                metrics: None,
                _skerry: None,
                _data: TempDir::new(),
            },
            Err(_) => Self::own(initial_rebalance_delay_ms, Security::Plaintext),
        }
    }

    /// One of this test's own.
    pub fn own(initial_rebalance_delay_ms: u32, security: Security) -> Self {
        let data = TempDir::new();
        let mut settings = vec![
            "num.partitions=4".to_owned(),
            format!("group.initial.rebalance.delay.ms={initial_rebalance_delay_ms}"),
        ];
        let mut told = Vec::new();
        let mut metrics = None;
        if security != Security::Plaintext {
            let certificates = certificates();
            let port = free_port();
            metrics = Some(port);
            settings.push(format!("skerry.metrics.listener=127.0.0.1:{port}"));
            settings.push(format!(
                "ssl.keystore.location={}",
                certificates.join("server-p256.store.pem").display()
            ));
            told.push(("SKERRY_CA", certificates.join("ca.pem")));
            if security == Security::MutualTls {
                settings.push("ssl.client.auth=required".into());
                settings.push(format!(
                    "ssl.truststore.location={}",
                    certificates.join("ca.pem").display()
                ));
                told.push(("SKERRY_IDENTITY", certificates.join("client-p256.store.pem")));
                told.push(("SKERRY_IDENTITY_P12", certificates.join("client-p256.store.p12")));
            }
        }
        let settings: Vec<_> = settings.iter().map(String::as_str).collect();
        let mut start = Start::new(data.path()).with(&settings);
        if security != Security::Plaintext {
            start.listeners = "SSL://127.0.0.1:0";
        }
        let skerry = start.start();
        Self {
            bootstrap: skerry.address.to_string(),
            told,
            metrics,
            _skerry: Some(skerry),
            _data: data,
        }
    }

    /// The CA that clients are told to trust.
    pub fn ca(&self) -> &Path {
        let told = self.told.iter().find(|(name, _)| *name == "SKERRY_CA");
        &told.expect("a broker that speaks TLS").1
    }

    /// A number of the broker's metrics page.
    pub fn metric(&self, series: &str) -> f64 {
        let port = self.metrics.expect("a broker with metrics");
        let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the metrics listener");
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").expect("a request");
        let mut page = String::new();
        stream.read_to_string(&mut page).expect("a page");
        let line = page.lines().find(|line| line.starts_with(series));
        let number = line.and_then(|line| line.rsplit(' ').next()?.parse().ok());
        number.unwrap_or_else(|| panic!("no {series} in\n{page}"))
    }

    /// The command, pointed at this broker.
    pub fn point(&self, mut command: Command) -> Command {
        command.env("SKERRY_BOOTSTRAP", &self.bootstrap);
        command.envs(self.told.iter().map(|(name, path)| (*name, path)));
        command
    }
}

/// The certificates of `tests/interop/tls/certificates`, and beside them each identity in one file: key and chain as PEM and as PKCS#12.
fn certificates() -> PathBuf {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    let make = || {
        let directory = folder().join(".work/tls");
        let run = |command: &mut Command| {
            let status = command.current_dir(folder()).status();
            assert!(status.is_ok_and(|status| status.success()), "{command:?}");
        };
        run(Command::new("tls/certificates").arg(&directory));
        for name in ["server-p256", "client-p256"] {
            let file = |end: &str| directory.join(format!("{name}.{end}"));
            let read = |end: &str| fs::read_to_string(file(end)).expect("a made certificate");
            fs::write(file("store.pem"), read("key") + &read("pem")).expect("a file");
            run(Command::new("openssl")
                .args(["pkcs12", "-export", "-passout", "pass:changeit", "-in"])
                .arg(file("store.pem"))
                .arg("-out")
                .arg(file("store.p12")));
        }
        directory
    };
    MADE.get_or_init(make).clone()
}

fn free_port() -> u16 {
    let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
    free.local_addr().expect("its address").port()
}
