//! The tools over TLS: the built binary as broker and as its tools, with stores of every kind, in both versions, and each failure's words.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use skerry_core::time::Timestamp;
use skerry_tests::process::{self, METRICS, PATIENCE, Skerry, Start, TempDir};
use skerry_tests::tls::now;
use skerry_tls::certificate::ServerName;
use skerry_tls::crypto::system::SystemRandom;
use skerry_tls::x509::develop::{Issued, Validity};

/// Of the stores in the broker's fixtures.
const STORE: &str = "störe-pässwörd→";
const KEY: &str = "kéy-pässwörd";
const STORE_ASCII: &str = "store pass";
const KEY_ASCII: &str = "key pass";
const DAY_MS: i64 = 86_400_000;

fn fixture(name: &str) -> String {
    format!("{}/../broker/src/keystore/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// What a tool did.
struct Done {
    is_good: bool,
    out: String,
    told: String,
}

/// A broker, and tools with a `client.properties`.
struct Rig {
    dir: TempDir,
    broker: Skerry,
}

impl Rig {
    /// `settings` of a broker that listens on `listeners`, all of which but `PLAINTEXT` speak TLS.
    fn new(listeners: &[&str], settings: impl FnOnce(&Path) -> Vec<String>) -> Self {
        let dir = TempDir::new();
        let names = listeners.iter().map(|name| match *name {
            "PLAINTEXT" => "PLAINTEXT:PLAINTEXT".to_owned(),
            name => format!("{name}:SSL"),
        });
        let map = names.collect::<Vec<_>>().join(",");
        let mut settings = settings(dir.path());
        settings.push(format!("listener.security.protocol.map={map}"));
        settings.push("group.initial.rebalance.delay.ms=0".into());
        settings.push("skerry.tls.penalty.max.ms=0".into());
        settings.push(METRICS.into());
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let endpoints: Vec<String> = listeners.iter().map(|name| format!("{name}://127.0.0.1:0")).collect();
        let data = dir.path().join("data");
        let start = Start {
            listeners: &endpoints.join(","),
            ..Start::new(&data)
        };
        let broker = start.with(&settings).start();
        Self { dir, broker }
    }

    /// Runs a tool on `input` against `address` with these settings, the protocol's left out.
    fn tool(&self, line: &str, address: impl ToString, settings: &str, input: &str) -> Done {
        let file = self.dir.path().join("client.properties");
        fs::write(&file, format!("security.protocol=SSL\n{settings}")).expect("written");
        run(line, address, Some(&file), input)
    }

    fn list(&self, listener: &str, settings: &str) -> Done {
        self.tool("topics list --json", self.broker.listener(listener), settings, "")
    }

    /// The broker's line of its handshake of that number, from 1. Waits for it.
    fn handshake(&self, number: usize) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let log = self.broker.stderr();
            if let Some(line) = log
                .lines()
                .filter(|line| line.contains("full handshake"))
                .nth(number - 1)
            {
                return line.to_owned();
            }
            assert!(Instant::now() < until, "no handshake {number} in:\n{log}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

fn run(line: &str, address: impl ToString, config: Option<&Path>, input: &str) -> Done {
    let mut command = Command::new(process::skerry());
    command
        .args(line.split_whitespace())
        .env("SKERRY_BOOTSTRAP_SERVER", address.to_string())
        .env_remove("RUST_LOG")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(config) = config {
        command.arg("--command-config").arg(config);
    }
    let mut child = command.spawn().expect("skerry starts");
    // One that fails at once reads nothing.
    let _ = child.stdin.take().expect("its input").write_all(input.as_bytes());
    let output = child.wait_with_output().expect("its end");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    Done {
        is_good: output.status.success(),
        out: text(output.stdout),
        told: text(output.stderr),
    }
}

impl Done {
    /// What it printed.
    #[track_caller]
    fn ok(self) -> String {
        assert!(self.is_good && self.told.is_empty(), "{} {}", self.out, self.told);
        self.out
    }

    /// It failed, and said all of this.
    #[track_caller]
    fn fails(self, parts: &[&str]) {
        assert!(!self.is_good && self.out.is_empty(), "{}", self.out);
        for part in parts {
            assert!(self.told.contains(part), "{part:?} is not in {:?}", self.told);
        }
        assert_eq!(self.told.lines().count(), 1, "{}", self.told);
    }
}

/// A keystore whose name decides nothing.
fn keystore(file: &str, password: &str, key_password: &str) -> String {
    format!(
        "ssl.keystore.location={}\nssl.keystore.password={password}\nssl.key.password={key_password}\n",
        fixture(file)
    )
}

fn truststore(file: &str, password: &str) -> String {
    format!(
        "ssl.truststore.location={}\nssl.truststore.password={password}\n",
        fixture(file)
    )
}

/// What stands in a setting, its lines joined.
fn inline(files: &[&str]) -> String {
    let text: String = files
        .iter()
        .map(|file| fs::read_to_string(fixture(file)).expect("a fixture"))
        .collect();
    text.replace('\n', "\\n")
}

/// Goal: what a Kafka client has works here as it is. Method: every format of stores on both sides of the tool's settings, against a listener
/// that asks for a certificate, in both versions; the broker's log tells version and principal.
#[test]
fn every_store_in_both_versions() {
    let rig = Rig::new(&["SSL"], |_| {
        vec![
            format!("ssl.keystore.location={}", fixture("java.p12")),
            format!("ssl.keystore.password={STORE_ASCII}"),
            format!("ssl.key.password={KEY_ASCII}"),
            format!("ssl.truststore.location={}", fixture("root.pem")),
            "ssl.client.auth=required".into(),
        ]
    });
    let pem = rig.path("own.pem");
    let parts = ["ec-pbes2.key", "ec.pem", "middle.pem"].map(|file| fs::read(fixture(file)).expect("a fixture"));
    fs::write(&pem, parts.concat()).expect("written");
    let stores = [
        (keystore("java.jks", STORE, KEY), truststore("java-trust.jks", STORE)),
        (
            keystore("java.jceks", STORE, KEY_ASCII),
            truststore("java-trust.jceks", STORE),
        ),
        (
            keystore("java.p12", STORE_ASCII, KEY_ASCII),
            truststore("java-trust.p12", STORE_ASCII),
        ),
        (
            keystore("openssl.p12", STORE, STORE),
            format!("ssl.truststore.location={}\n", fixture("root.pem")),
        ),
        (
            format!(
                "ssl.keystore.type=PEM\nssl.keystore.location={}\nssl.key.password={KEY}\n",
                pem.display()
            ),
            format!(
                "ssl.truststore.type=PEM\nssl.truststore.location={}\n",
                fixture("root.pem")
            ),
        ),
        (
            format!(
                "ssl.keystore.type=PEM\nssl.keystore.key={}\nssl.keystore.certificate.chain={}\n",
                inline(&["ec.key"]),
                inline(&["ec.pem", "middle.pem"])
            ),
            format!(
                "ssl.truststore.type=PEM\nssl.truststore.certificates={}\n",
                inline(&["root.pem"])
            ),
        ),
    ];
    let mut served = 0;
    for (own, trusted) in &stores {
        for version in ["TLSv1.2", "TLSv1.3"] {
            let settings = format!("{own}{trusted}ssl.enabled.protocols={version}\nssl.protocol={version}\n");
            assert_eq!(rig.list("SSL", &settings).ok(), "");
            served += 1;
            let line = rig.handshake(served);
            assert!(
                line.contains(version) && line.contains("User:CN=Skerry Test Server"),
                "{line}"
            );
        }
    }
}

/// Goal: a tool does over TLS what it does in plain, and takes its leave. Method: a topic's whole life in both versions, with a record that takes many
/// TLS records each way; then the broker's own count of how its peers closed.
#[test]
fn a_topic_lives_over_tls() {
    let rig = Rig::new(&["SSL"], |_| Vec::new());
    let address = format!("localhost:{}", rig.broker.listener("SSL").port());
    let written = rig.path("data/tls/client.properties");
    let large = "x".repeat(300_000);
    for version in ["TLSv1.2", "TLSv1.3"] {
        let settings = fs::read_to_string(&written).expect("the broker wrote it");
        let settings = format!("{settings}ssl.enabled.protocols={version}\nclient.id=me\n");
        let tool = |line: &str, input: &str| rig.tool(line, &address, &settings, input).ok();
        tool("topics create t --partitions 2", "");
        tool("produce t --key-separator :", "a:1\nb:2\nc:3\n");
        tool("produce t --compression zstd", &large);
        let got = tool("consume t --from-beginning --max-messages 4 --group g", "");
        let mut lines: Vec<&str> = got.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["1", "2", "3", &large]);
        assert!(tool("groups describe g", "").contains("group g: Empty"));
        tool("groups delete g", "");
        tool("topics delete t", "");
    }
    let count = |page: &str, name: &str| -> u64 {
        let lines = page
            .lines()
            .filter_map(|line| line.strip_prefix(name)?.rsplit_once(' '));
        lines
            .map(|(_, count)| count.parse::<f64>().expect("a number") as u64)
            .sum()
    };
    // The broker may hear of the last one after the tool is gone.
    let until = Instant::now() + PATIENCE;
    let page = loop {
        let page = rig.broker.page();
        if count(&page, "skerry_tls_closes_total{") >= 14 || Instant::now() > until {
            break page;
        }
    };
    assert_eq!(count(&page, "skerry_tls_handshakes_total{"), 14, "{page}");
    assert_eq!(
        count(&page, "skerry_tls_closes_total{how=\"close_notify\"}"),
        14,
        "{page}"
    );
}

/// Certificates of two CAs, one of which the broker trusts.
struct Made {
    ca: Issued,
    other: Issued,
}

impl Made {
    fn new() -> Self {
        let ca = |name| Issued::authority(name, validity(-1, 100), &mut SystemRandom).expect("a CA");
        Self {
            ca: ca("Good CA"),
            other: ca("Other CA"),
        }
    }
}

fn validity(from_days: i64, to_days: i64) -> Validity {
    let day = |days: i64| Timestamp(now().0 + days * DAY_MS);
    Validity {
        not_before: day(from_days),
        not_after: day(to_days),
    }
}

fn write(file: &Path, made: &Issued) -> String {
    fs::write(file, format!("{}{}", *made.key_pem(), *made.certificate_pem())).expect("written");
    file.display().to_string()
}

/// Goal: whoever sets TLS up sees from one line what is wrong and what to change. Method: a listener or a setting for each mistake.
#[test]
fn each_failure_is_told_with_its_cure() {
    let made = Made::new();
    let listeners = ["PLAINTEXT", "SSL", "MUTUAL", "EXAMPLE", "OLD", "NEW", "AES"];
    let rig = Rig::new(&listeners, |dir| {
        let server = |names: &[ServerName<'_>], dates| made.ca.server(names, dates, &mut SystemRandom).expect("made");
        let local = ServerName::Ip([127, 0, 0, 1].into());
        let local_and = [ServerName::Dns("localhost"), local];
        let own = write(&dir.join("own.pem"), &server(&local_and, validity(-1, 90)));
        let example = [ServerName::Dns("broker.example"), ServerName::Dns("*.broker.example")];
        let example = write(&dir.join("example.pem"), &server(&example, validity(-1, 90)));
        let old = write(&dir.join("old.pem"), &server(&local_and, validity(-3, -2)));
        fs::write(dir.join("ca.pem"), made.ca.certificate_pem().as_bytes()).expect("written");
        fs::write(dir.join("other.pem"), made.other.certificate_pem().as_bytes()).expect("written");
        let client = made
            .other
            .client("stranger", validity(-1, 90), &mut SystemRandom)
            .expect("made");
        write(&dir.join("stranger.pem"), &client);
        vec![
            format!("ssl.keystore.location={own}"),
            format!("ssl.truststore.location={}", dir.join("ca.pem").display()),
            "listener.name.mutual.ssl.client.auth=required".into(),
            format!("listener.name.example.ssl.keystore.location={example}"),
            format!("listener.name.old.ssl.keystore.location={old}"),
            "listener.name.new.ssl.enabled.protocols=TLSv1.3".into(),
            "listener.name.aes.ssl.cipher.suites=TLS_AES_128_GCM_SHA256".into(),
        ]
    });
    let place = |file: &str| format!("ssl.truststore.location={}", rig.path(file).display());
    let trusted = format!("{}\n", place("ca.pem"));
    let with = |more: &str| format!("{trusted}{more}\n");
    rig.list("SSL", &trusted).ok();

    let other = place("other.pem");
    rig.list("SSL", &other).fails(&[
        "TLS failed: unknown_ca in ",
        "the certificate of \"CN=localhost\" is signed by \"CN=Good CA\", which ",
        &format!("client.properties:2: {other} does not hold: add the certificate of that CA there"),
    ]);
    let names = [
        "TLS failed: certificate_name in ",
        "the broker's certificate is for broker.example, *.broker.example, not for 127.0.0.1: connect by a name that it bears",
    ];
    rig.list("EXAMPLE", &trusted).fails(&names);
    rig.list("EXAMPLE", &with("ssl.endpoint.identification.algorithm=https"))
        .fails(&names);
    rig.list("EXAMPLE", &with("ssl.endpoint.identification.algorithm="))
        .ok();
    rig.list("OLD", &trusted).fails(&[
        "TLS failed: certificate_expired in ",
        "certificate subject \"CN=localhost\" issuer \"CN=Good CA\" valid ",
        "have the certificate renewed, or set the clock that is wrong",
    ]);
    let no_version =
        "the broker does not speak TLSv1.2: ssl.enabled.protocols here and there must have a version in common";
    rig.list("NEW", &with("ssl.enabled.protocols=TLSv1.2"))
        .fails(&[no_version]);
    rig.list(
        "AES",
        &with("ssl.cipher.suites=TLS_CHACHA20_POLY1305_SHA256\nssl.enabled.protocols=TLSv1.3"),
    )
    .fails(&[
        "peer_alert handshake_failure in await_server_hello",
        "compare ssl.cipher.suites",
    ]);

    let stranger = format!("ssl.keystore.location={}", rig.path("stranger.pem").display());
    for version in ["ssl.enabled.protocols=TLSv1.2", "ssl.enabled.protocols=TLSv1.3"] {
        rig.list("MUTUAL", &with(version)).fails(&[
            "TLS failed: peer_alert ",
            "the broker asks for a client certificate: set ssl.keystore.location",
        ]);
        rig.list("MUTUAL", &with(&format!("{version}\n{stranger}"))).fails(&[
            "TLS failed: peer_alert unknown_ca ",
            "the broker refuses our certificate, subject \"CN=stranger\" issuer \"CN=Other CA\" valid ",
            ": add its CA to the broker's ssl.truststore.location, or use a keystore whose CA is there",
        ]);
    }

    rig.list("PLAINTEXT", &trusted)
        .fails(&["set security.protocol=PLAINTEXT, or connect to the SSL one"]);
    let plain = run("topics list", rig.broker.listener("SSL"), None, "");
    plain.fails(&[
        "closed the connection",
        "or TLS (security.protocol=SSL in --command-config)?",
    ]);

    let hung_up = "hung up on our first TLS message, as a PLAINTEXT listener does: set security.protocol=PLAINTEXT";
    let tool = |address: SocketAddr| rig.tool("topics list", address, &trusted, "");
    tool(says(b"")).fails(&["handshake_closed", hung_up]);
    let http = "TLS failed: plaintext_peer (HTTP) in await_server_hello: the other side speaks no TLS";
    tool(says(b"HTTP/1.1 400 Bad Request\r\n\r\n")).fails(&[http]);
}

/// A server that reads once, sends `bytes` and closes.
fn says(bytes: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let _ = stream.read(&mut [0; 4096]);
        stream.write_all(bytes).expect("it reads");
    });
    address
}

/// The name of a later connection is the one that the broker told.
#[test]
fn an_advertised_name_that_the_certificate_lacks_is_told_as_such() {
    let made = Made::new();
    let port = {
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        free.local_addr().expect("its address").port()
    };
    let dir = TempDir::new();
    let names = [ServerName::Ip([127, 0, 0, 1].into())];
    let server = made
        .ca
        .server(&names, validity(-1, 90), &mut SystemRandom)
        .expect("made");
    let own = write(&dir.path().join("own.pem"), &server);
    let ca = dir.path().join("ca.pem");
    fs::write(&ca, made.ca.certificate_pem().as_bytes()).expect("written");
    let (own, told) = (
        format!("ssl.keystore.location={own}"),
        format!("advertised.listeners=SSL://localhost:{port}"),
    );
    let data = dir.path().join("data");
    let start = Start {
        listeners: &format!("SSL://127.0.0.1:{port}"),
        ..Start::new(&data)
    };
    let broker = start.with(&[&own, &told]).start();
    let config = dir.path().join("client.properties");
    let settings = format!(
        "security.protocol=SSL\nssl.truststore.location={}\nsome.thing=1\n",
        ca.display()
    );
    fs::write(&config, settings).expect("written");
    let listed = run("produce t", broker.address, Some(&config), "hello\n");
    assert!(!listed.is_good);
    for part in [
        "no client has these settings, which are left aside: some.thing (line 3)\n",
        &format!("skerry: localhost:{port}: TLS failed: certificate_name in "),
        "the broker's certificate is for 127.0.0.1, not for localhost: ",
        &format!(
            "\n  (the broker at {} told this address: see its advertised.listeners)\n",
            broker.address
        ),
    ] {
        assert!(listed.told.contains(part), "{part:?} is not in {:?}", listed.told);
    }
}

/// What is wrong with the file is told before anything is connected to.
#[test]
fn a_bad_file_is_told_whole() {
    let dir = TempDir::new();
    let config = dir.path().join("c");
    let tell = |text: &str| {
        fs::write(&config, text).expect("written");
        let done = run("topics list", "127.0.0.1:1", Some(&config), "");
        assert!(!done.is_good && done.out.is_empty());
        done.told
    };
    let place = config.display();
    assert_eq!(
        tell("security.protocol=SASL_SSL\nssl.enabled.protocols=TLSv9\n"),
        format!("skerry: {place}:1: security.protocol=SASL_SSL: SASL is not spoken here; allowed: PLAINTEXT | SSL\n")
    );
    assert!(tell("security.protocol=SSL\n").contains("ssl.truststore.location=: security.protocol=SSL needs the CAs"));
    let stores = format!("{}security.protocol=SSL\n", truststore("java-trust.p12", "wrong"));
    assert!(tell(&stores).contains(":1: ssl.truststore.location=") && tell(&stores).contains("password"));
    assert!(tell("security.protocol=SSL\nssl.truststore.location=/no/such\n").ends_with("there is no such file\n"));
    let own = format!("security.protocol=SSL\n{}", truststore("java.jks", STORE));
    assert!(tell(&own).contains("it is a keystore. A truststore holds the certificates of the CAs"));
    let missing = run("topics list", "127.0.0.1:1", Some(Path::new("/no/such")), "");
    assert!(
        missing.told.starts_with("skerry: cannot read /no/such: "),
        "{}",
        missing.told
    );
}
