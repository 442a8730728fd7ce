//! The broker as what is tried: its log lines and its page of metrics as an operator reads them.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use skerry_tests::process::{METRICS, PATIENCE, Skerry, Start, TempDir};

use super::{Counts, Failure, Target};
use crate::peers::{Peer, Row};
use crate::programs::certificate;

/// Patience of the broker with a silent client.
const TIMEOUT: &str = "skerry.tls.handshake.timeout.ms=4000";

/// One broker with a listener that asks for no certificate, one of the name `MUTUAL` that requires one, and one in plain.
struct Broker {
    skerry: Skerry,
    _directory: TempDir,
}

impl Broker {
    fn start(settings: &[&str]) -> Self {
        let directory = TempDir::new();
        let keystore = directory.path().join("own.pem");
        let parts = ["server-p256.key", "server-p256.pem"].map(|part| std::fs::read_to_string(certificate(part)));
        let text: String = parts.into_iter().map(|part| part.expect("a certificate")).collect();
        std::fs::write(&keystore, text).expect("written");
        let mut all = vec![
            "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SSL:SSL,MUTUAL:SSL".to_owned(),
            format!("ssl.keystore.location={}", keystore.display()),
            format!("ssl.truststore.location={}", certificate("ca.pem")),
            "listener.name.mutual.ssl.client.auth=required".to_owned(),
            "skerry.tls.penalty.max.ms=0".to_owned(),
            TIMEOUT.to_owned(),
            METRICS.to_owned(),
        ];
        all.extend(settings.iter().map(|setting| (*setting).to_owned()));
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let mut start = Start::new(directory.path()).with(&all);
        start.listeners = "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0,MUTUAL://127.0.0.1:0";
        Self {
            skerry: start.start(),
            _directory: directory,
        }
    }

    fn port(&self, listener: &str) -> u16 {
        self.skerry.listener(listener).port()
    }

    fn value(&self, series: &str) -> f64 {
        let page = self.skerry.page();
        let line = page
            .lines()
            .find(|line| line.strip_prefix(series).is_some_and(|rest| rest.starts_with(' ')));
        let value = line.and_then(|line| line.rsplit(' ').next()?.parse().ok());
        value.unwrap_or_else(|| panic!("no {series} in\n{page}"))
    }

    /// Waits until the page says so.
    fn wait_for(&self, series: &str, value: f64) {
        let until = Instant::now() + PATIENCE;
        while self.value(series) != value {
            assert!(
                Instant::now() < until,
                "{series} is {}, not {value}",
                self.value(series)
            );
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Brokers that take turns: each writes ten lines of failures in a second, and counts the others.
pub struct Brokers {
    all: Vec<Broker>,
    ports: BTreeMap<u16, usize>,
    next: usize,
}

impl Brokers {
    pub fn start(count: usize) -> Self {
        let all: Vec<Broker> = (0..count).map(|_| Broker::start(&[])).collect();
        let ports = all.iter().enumerate().flat_map(|(at, broker)| {
            let ports = ["SSL", "MUTUAL"].map(|listener| broker.port(listener));
            ports.map(|port| (port, at))
        });
        Self {
            ports: ports.collect(),
            all,
            next: 0,
        }
    }
}

impl Target for Brokers {
    const WAIT: Option<&'static str> = Some("0.06");
    const HAS_TRAIL: bool = true;

    fn port(&mut self, client_auth: &'static str) -> u16 {
        self.next = (self.next + 1) % self.all.len();
        let listener = if client_auth == "none" { "SSL" } else { "MUTUAL" };
        self.all[self.next].port(listener)
    }

    fn failures(&self, port: u16, peer: &str, at_least: usize) -> Vec<Failure> {
        let begin = format!(" {peer}: ");
        let until = Instant::now() + PATIENCE;
        loop {
            let log = self.all[self.ports[&port]].skerry.stderr();
            let told = log.lines().filter_map(|line| line.split_once(&begin));
            let failures: Vec<Failure> = told.filter_map(|(_, words)| Failure::parse_broker(words)).collect();
            if failures.len() >= at_least {
                return failures;
            }
            assert!(Instant::now() < until, "no line about {peer} in:\n{log}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn counts(&self) -> Option<Counts> {
        let mut counts = Counts::new();
        for broker in &self.all {
            let page = broker.skerry.page();
            for line in page.lines() {
                let name = line.split_once("{cause=\"").and_then(|(name, rest)| {
                    let (cause, value) = rest.split_once("\"} ")?;
                    Some((name, cause, value.parse::<f64>().ok()?))
                });
                let (during, cause, value) = match name {
                    Some(("skerry_tls_handshake_failures_total", cause, value)) => ("handshake", cause, value),
                    Some(("skerry_tls_connection_failures_total", cause, value)) => ("connection", cause, value),
                    _ => continue,
                };
                if value > 0.0 {
                    *counts.entry((during, cause.to_owned())).or_default() += value as u64;
                }
            }
        }
        Some(counts)
    }
}

impl Failure {
    /// `TLS handshake failed: CAUSE (what) in STATE; alert A sent; certificate C; CURE; trail="T"; offered O`. `None`: another line.
    fn parse_broker(words: &str) -> Option<Self> {
        let said = ["TLS handshake failed: ", "TLS failed: "]
            .iter()
            .find_map(|begin| words.strip_prefix(begin))?;
        let mut parts = said.split("; ");
        let (what, state) = parts.next()?.rsplit_once(" in ")?;
        let (cause, detail) = what.split_once(' ').unwrap_or((what, ""));
        let mut failure = Self {
            state: state.to_owned(),
            cause: cause.to_owned(),
            alert: cause.starts_with("peer_alert").then(|| detail.to_owned()),
            offered: None,
            certificate: None,
            cure: String::new(),
            trail: None,
            line: words.to_owned(),
        };
        let mut cure = Vec::new();
        for part in parts {
            if let Some(alert) = part.strip_prefix("alert ").and_then(|rest| rest.strip_suffix(" sent")) {
                failure.alert = Some(alert.to_owned());
            } else if let Some(certificate) = part.strip_prefix("certificate ") {
                failure.certificate = Some(certificate.to_owned());
            } else if let Some(trail) = part.strip_prefix("trail=\"").and_then(|rest| rest.strip_suffix('"')) {
                failure.trail = Some(trail.to_owned());
            } else if let Some(offered) = part.strip_prefix("offered ") {
                failure.offered = Some(offered.to_owned());
            } else {
                cure.push(part);
            }
        }
        failure.cure = cure.join("; ");
        Some(failure)
    }
}

/// What is no handshake that fails by what its client sends: a name that the client misses, TLS where there is none, a look at the port, and a
/// certificate that no rule makes a principal of.
pub fn around_tls() {
    let broker = Broker::start(&[
        "listener.name.mutual.ssl.principal.mapping.rules=RULE:^CN=(nobody),.*$/$1/",
        "ssl.principal.mapping.rules=DEFAULT",
    ]);
    wrong_name(&broker);
    tls_on_plaintext(&broker);
    probes(&broker);
    no_principal(&broker);
    println!("ok   a wrong name, TLS in plain, probes, no principal");
}

/// The client finds the certificate to be of another name, and says so by an alert.
fn wrong_name(broker: &Broker) {
    let rows: Vec<Row> = ["1.3", "1.2"]
        .map(|version| Row {
            port: broker.port("SSL"),
            version,
            name: "elsewhere.test",
            echo: vec![&[1]],
            ..Row::default()
        })
        .into();
    for said in Peer::Python.run(&rows, &[]) {
        let failed = said.iter().any(|event| event.line.contains("ostname mismatch"));
        assert!(failed, "{said:?}");
    }
    for state in ["await_client_finished", "await_client_key_exchange"] {
        let line = broker.skerry.wait_for_line(&format!(
            "TLS handshake failed: peer_alert bad_certificate in {state}; "
        ));
        assert!(
            line.contains("; the other side refused our certificate: give it our CA, and connect by a name that the certificate bears; trail="),
            "{line}"
        );
    }
    broker.wait_for("skerry_tls_handshake_failures_total{cause=\"peer_alert\"}", 2.0);
}

/// The client hears the alert that makes it say what is wrong, with no reset before it.
fn tls_on_plaintext(broker: &Broker) {
    let row = Row {
        port: broker.port("PLAINTEXT"),
        version: "1.3",
        name: "skerry.test",
        echo: vec![&[1]],
        ..Row::default()
    };
    let said = Peer::Python.run(&[row], &[]);
    let failed = said[0]
        .iter()
        .any(|event| event.line.to_lowercase().contains("alert handshake failure"));
    assert!(failed, "{said:?}");
    let line = broker.skerry.wait_for_line("tls_on_plaintext");
    assert!(
        line.ends_with(
            "TLS on a listener without it: tls_on_plaintext; alert handshake_failure sent; set \
             security.protocol=PLAINTEXT on the client, or point it at an SSL listener"
        ),
        "{line}"
    );
    broker.wait_for("skerry_tls_handshake_failures_total{cause=\"tls_on_plaintext\"}", 1.0);
}

/// Whoever only looks whether the port is open is counted, not told.
fn probes(broker: &Broker) {
    let address = SocketAddr::from(([127, 0, 0, 1], broker.port("SSL")));
    let peers: Vec<SocketAddr> = (0..3)
        .map(|_| {
            let stream = TcpStream::connect(address).expect("it listens");
            stream.local_addr().expect("an address")
        })
        .collect();
    broker.wait_for("skerry_tls_probes_total", 3.0);
    let log = broker.skerry.stderr();
    let told = |peer: &SocketAddr| log.contains(&format!(" {peer}: "));
    assert!(!peers.iter().any(told), "a probe is told in:\n{log}");
}

/// Kafka lets no client in whose certificate no rule is for.
fn no_principal(broker: &Broker) {
    let rows: Vec<Row> = ["1.3", "1.2"]
        .map(|version| Row {
            port: broker.port("MUTUAL"),
            version,
            name: "skerry.test",
            client: Some("p256"),
            echo: vec![&[1]],
            act: Some("honest".to_owned()),
            ..Row::default()
        })
        .into();
    for said in Peer::Liar.run(&rows, &[]) {
        assert_eq!(said[0].pair("alert"), Some("access_denied"), "{said:?}");
        assert_eq!(said[0].pair("end"), Some("fin"), "{said:?}");
        let local = said[0].pair("local").expect("its address");
        let line = broker.skerry.wait_for_line(&format!(" {local}: TLS"));
        assert!(
            line.contains(
                "TLS handshake failed: no_principal in connected; alert access_denied sent; certificate subject \
                 \"O=Skerry tests,CN=device-p256\"; add a rule for the certificate's subject to ssl.principal.mapping.rules"
            ),
            "{line}"
        );
    }
    broker.wait_for("skerry_tls_handshake_failures_total{cause=\"no_principal\"}", 2.0);
}
