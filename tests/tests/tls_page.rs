//! What the broker tells of TLS: its page of metrics as Prometheus reads it, and its lines.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use skerry_tests::process::{METRICS, PATIENCE, Skerry, Start, TempDir};
use skerry_tests::tls::{End, files, now};
use skerry_tls::alert::Alert;
use skerry_tls::cause::Cause;
use skerry_tls::config::{ClientConfig, Config, Identity};
use skerry_tls::crypto::fast::Fast;
use skerry_tls::state::StateId;
use skerry_tls::testing::{Accepting, Fixture, Loaded};
use skerry_tls::x509::Details;
use skerry_tls::x509::certificate::Certificate;

/// A broker that listens in plain, over TLS, and over TLS with certificates.
struct Rig {
    broker: Skerry,
    _dir: TempDir,
}

impl Rig {
    fn start(more: &[&str]) -> Self {
        let dir = TempDir::new();
        let mut settings = files::settings(dir.path());
        settings.push("skerry.tls.penalty.max.ms=0".into());
        settings.push(METRICS.into());
        settings.extend(more.iter().map(|setting| (*setting).into()));
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let data = dir.path().join("data");
        let mut start = Start::new(&data).with(&settings);
        start.listeners = files::LISTENERS;
        start.environment = &[("RUST_LOG", "skerry_broker::tls=debug")];
        Self {
            broker: start.start(),
            _dir: dir,
        }
    }

    fn page(&self) -> Page {
        Page(self.broker.page())
    }

    /// The first page that is so.
    fn page_when(&self, is_so: impl Fn(&Page) -> bool) -> Page {
        let until = Instant::now() + PATIENCE;
        loop {
            let page = self.page();
            if is_so(&page) {
                return page;
            }
            assert!(Instant::now() < until, "it does not become so:\n{}", page.0);
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// A page of metrics.
struct Page(String);

impl Page {
    /// Labels and value of every series of that name.
    fn all(&self, name: &str) -> Vec<(BTreeMap<String, String>, f64)> {
        let series = self.0.lines().filter_map(|line| {
            let (series, value) = line.strip_prefix(name)?.rsplit_once(' ')?;
            let labels = match series {
                "" => "",
                _ => series.strip_prefix('{')?.strip_suffix('}')?,
            };
            Some((labels.to_owned(), value.parse().ok()?))
        });
        let pairs = |labels: String| {
            labels
                .split_terminator("\",")
                .filter_map(|pair| pair.split_once("=\""))
                .map(|(key, value)| (key.to_owned(), value.trim_end_matches('"').to_owned()))
                .collect()
        };
        series.map(|(labels, value)| (pairs(labels), value)).collect()
    }

    /// The one series of that name with these labels, among others.
    fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let is_it = |has: &BTreeMap<String, String>| labels.iter().all(|(k, v)| has.get(*k).is_some_and(|is| is == v));
        let found: Vec<f64> = self
            .all(name)
            .into_iter()
            .filter(|(has, _)| is_it(has))
            .map(|(_, value)| value)
            .collect();
        assert_eq!(found.len(), 1, "{name} {labels:?} in\n{}", self.0);
        found[0]
    }

    fn sum(&self, name: &str) -> f64 {
        self.all(name).iter().map(|(_, value)| value).sum()
    }
}

/// One handshake after the other, of a client that keeps the last session that it may resume.
#[derive(Default)]
struct Device {
    end: End<Fast>,
    verifier: Accepting,
}

impl Device {
    /// Connects, and resumes what `resume` is: as far as the broker's last word, or why it fails.
    fn connect(
        &mut self,
        address: SocketAddr,
        identity: Option<&Identity<'_, Fast>>,
        resume: &[u8],
    ) -> Result<TcpStream, Cause> {
        let config = ClientConfig {
            identity,
            resume,
            ..ClientConfig::new(&self.verifier, None)
        };
        let config = Config::Client(&config);
        self.end.connect(&Fast, config)?;
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        let mut input = vec![0; 1 << 16];
        let (mut arrived, kept) = (0, self.end.kept.count);
        // The ticket is the last that comes.
        while self.end.session.state_id() != StateId::Connected || self.end.kept.count == kept {
            stream.write_all(self.end.take_out()).expect("sent");
            let bytes = stream.read(&mut input[arrived..]).expect("an answer");
            assert!(bytes > 0, "it closes without an alert");
            arrived += bytes;
            let came = self.end.receive(&Fast, config, &mut input[..arrived], &mut [])?;
            input.copy_within(came.consumed..arrived, 0);
            arrived -= came.consumed;
        }
        stream.write_all(self.end.take_out()).expect("sent");
        Ok(stream)
    }
}

/// Goal: the page tells certificates, sessions, chains, costs and memory. Method: handshakes of each kind, and the page after them; certificates
/// are read apart from it.
#[test]
fn the_page_tells_tls() {
    let begun = now().0 as f64 / 1000.0;
    let rig = Rig::start(&[]);
    let (plain, mutual) = (rig.broker.listener("SSL"), rig.broker.listener("MUTUAL"));
    let device = Loaded::new(&Fast, Fixture::DEVICE);
    let identity = device.identity();
    let mut client = Device::default();
    let mut open = Vec::new();
    let mut shake = |address, resume: &[u8]| {
        let connected = client.connect(address, Some(&identity), resume);
        open.push(connected.expect("a handshake"));
        (client.end.session.is_resumed(), client.end.kept.bytes.clone())
    };
    let (is_resumed, saved) = shake(plain, &[]);
    assert!(!is_resumed);
    let (is_resumed, saved) = shake(plain, &saved);
    assert!(is_resumed);
    // It is of a listener that asks for no certificate.
    let (is_resumed, _) = shake(mutual, &saved);
    assert!(!is_resumed);
    let (is_resumed, _) = shake(mutual, &[]);
    assert!(!is_resumed);

    let page = rig.page_when(|page| page.sum("skerry_tls_handshakes_total") == 4.0);
    let done = |kind| page.value("skerry_tls_handshakes_total", &[("version", "TLSv1.3"), ("kind", kind)]);
    assert_eq!((done("full"), done("resumed")), (3.0, 1.0));
    assert_eq!(page.value("skerry_tls_tickets_given_total", &[]), 4.0);
    let resumptions = |result| page.value("skerry_tls_resumptions_total", &[("result", result)]);
    assert_eq!((resumptions("accepted"), resumptions("refused")), (1.0, 1.0));
    let lookups = |result| {
        page.value(
            "skerry_tls_chain_cache_lookups_total",
            &[("listener", "MUTUAL"), ("result", result)],
        )
    };
    assert_eq!((lookups("miss"), lookups("hit")), (1.0, 1.0), "the same chain twice");
    assert_eq!(
        page.value("skerry_tls_chain_cache_entries", &[("listener", "MUTUAL")]),
        1.0
    );
    assert_eq!(
        page.value("skerry_tls_chain_cache_entries_max", &[("listener", "MUTUAL")]),
        256.0
    );

    // Certificates, as they say themselves.
    let own = Certificate::read(Fixture::P256.certificate).expect("a certificate");
    let details = Details::of(Fixture::P256.certificate).expect("a certificate");
    let serial: String = own.serial.iter().map(|byte| format!("{byte:02x}")).collect();
    for listener in ["SSL", "MUTUAL"] {
        let labels = [
            ("listener", listener),
            ("serial", &serial),
            ("subject", &details.subject),
            ("issuer", &details.issuer),
        ];
        assert_eq!(page.value("skerry_tls_certificate_info", &labels), 1.0);
        let date = |name: &str| {
            let name = format!("skerry_tls_certificate_{name}_timestamp_seconds");
            page.value(&name, &[("listener", listener), ("serial", &serial)])
        };
        assert_eq!(date("not_before"), own.not_before.0 as f64 / 1000.0);
        assert_eq!(date("not_after"), own.not_after.0 as f64 / 1000.0);
        assert!((begun..=now().0 as f64 / 1000.0).contains(&date("loaded")));
    }

    // Every step's ticks are charged to a phase, and to the state that it began in; opening a record is no step.
    let (phases, states) = (
        "skerry_tls_handshake_cpu_seconds_total",
        "skerry_tls_handshake_state_cpu_seconds_total",
    );
    let (by_phase, by_state) = (page.sum(phases), page.sum(states));
    let records = page.value(phases, &[("phase", "record_crypto")]);
    assert!(
        by_phase - records < by_state && by_state <= by_phase,
        "{by_phase}, of it {records} for records, and {by_state} are not the same"
    );
    for (name, label, of) in [
        (phases, "phase", "key_exchange"),
        (phases, "phase", "signature"),
        (phases, "phase", "verify"),
        (states, "state", "await_client_hello"),
        (states, "state", "await_client_certificate_verify"),
        (states, "state", "await_client_finished"),
    ] {
        assert!(page.value(name, &[(label, of)]) > 0.0, "{of} costs nothing");
    }
    // What was loaded anew is told anew.
    rig.broker.signal(Signal::HUP);
    rig.page_when(|page| page.value("skerry_tls_chain_cache_entries", &[("listener", "MUTUAL")]) == 0.0);
    assert!(rig.broker.stop().0.success());
}

/// Goal: what Mbed TLS holds is told. Method: a connection that it serves, open and closed.
#[test]
fn the_page_tells_the_heap() {
    let rig = Rig::start(&["skerry.tls.provider=mbedtls"]);
    let heap = |page: &Page, what: &str| page.value(&format!("skerry_tls_heap_{what}_bytes"), &[]);
    let before = heap(&rig.page(), "used");
    let mut client = Device::default();
    let stream = client.connect(rig.broker.listener("SSL"), None, &[]);
    let page = rig.page_when(|page| page.sum("skerry_tls_handshakes_total") == 1.0);
    let (used, peak) = (heap(&page, "used"), heap(&page, "peak"));
    assert!(before < used && used < peak && peak <= heap(&page, "capacity"));
    assert_eq!(page.value("skerry_tls_heap_refusals_total", &[]), 0.0);
    assert_eq!(page.value("skerry_tls_provider_info", &[("provider", "mbedtls")]), 1.0);
    drop(stream);
    let page = rig.page_when(|page| page.value("skerry_connections", &[]) == 0.0);
    assert_eq!(heap(&page, "peak"), peak);
}

/// Goal: the page is what Prometheus and its linter take. Method: its own lines: each family once, with a kind and one sentence of help, counters
/// in `_total`, units at the end, no series twice.
#[test]
fn the_page_keeps_to_the_conventions() {
    let rig = Rig::start(&[]);
    let page = rig.page();
    assert_eq!(page.0.lines().last(), Some("# EOF"));
    let (mut kinds, mut helps, mut series) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
    for line in page.0.lines().filter(|line| *line != "# EOF") {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some("TYPE"), Some(name), Some(kind)) => assert_eq!(kinds.insert(name, kind), None, "{name}"),
            (Some("#"), Some("HELP"), Some(name), Some(help)) => assert_eq!(helps.insert(name, help), None, "{name}"),
            (Some("#"), Some("UNIT"), Some(name), Some(unit)) => assert!(name.ends_with(&format!("_{unit}")), "{line}"),
            (Some("#"), ..) => panic!("{line}"),
            _ => {
                let of = line.rsplit_once(' ').expect("a value").0;
                assert!(series.insert(of), "{of} is there twice");
                let name = of.split('{').next().expect("a name");
                let family = name.strip_suffix("_total").unwrap_or(name);
                let kind = *kinds.get(family).unwrap_or_else(|| panic!("{name} has no kind"));
                assert_eq!(kind == "counter", name != family, "{name} is a {kind}");
                assert!(name.starts_with("skerry_"), "{name}");
            }
        }
    }
    assert_eq!(kinds.keys().collect::<Vec<_>>(), helps.keys().collect::<Vec<_>>());
    for (name, help) in helps {
        assert!(help.ends_with('.') && !help.ends_with(".."), "{name}: {help}");
    }
}

/// Goal: a hello may come in parts, of records and in time. Method: half of it in a record of its own, and the rest once the broker has taken it.
#[test]
fn a_hello_in_two_records_keeps_its_place() {
    let rig = Rig::start(&[]);
    let verifier = Accepting::default();
    let config = ClientConfig::new(&verifier, None);
    let config = Config::Client(&config);
    let mut end = End::<Fast>::default();
    end.connect(&Fast, config).expect("a hello");
    let hello = end.take_out()[5..].to_vec();
    let record = |content: &[u8]| {
        let [high, low] = (content.len() as u16).to_be_bytes();
        [&[22, 3, 1, high, low], content].concat()
    };
    let (first, rest) = hello.split_at(hello.len() / 2);
    let mut stream = TcpStream::connect(rig.broker.listener("SSL")).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    stream.write_all(&record(first)).expect("sent");
    rig.page_when(|page| page.value("skerry_tls_handshakes_under_way", &[]) == 1.0);
    stream.write_all(&record(rest)).expect("sent");
    let mut input = vec![0; 1 << 14];
    let bytes = stream.read(&mut input).expect("an answer");
    end.receive(&Fast, config, &mut input[..bytes], &mut [])
        .expect("a flight");
    assert_ne!(end.session.state_id(), StateId::AwaitServerHello, "it was answered");
}

/// Goal: a client whose certificate no rule is for is let in by nobody, as with Kafka, and the log says which rule to write. Method: rules for
/// another, and one without any.
#[test]
fn a_client_that_no_rule_is_for_is_refused() {
    let rig = Rig::start(&["listener.name.mutual.ssl.principal.mapping.rules=RULE:^CN=(nobody)$/$1/"]);
    let device = Loaded::new(&Fast, Fixture::DEVICE);
    let mut client = Device::default();
    let refused = client.connect(rig.broker.listener("MUTUAL"), Some(&device.identity()), &[]);
    // It may be told before or after its ticket came.
    let refused = refused.and_then(|mut stream| {
        let mut input = vec![0; 1 << 12];
        let bytes = stream.read(&mut input).expect("an alert");
        let config = ClientConfig::new(&client.verifier, None);
        let came = client
            .end
            .receive(&Fast, Config::Client(&config), &mut input[..bytes], &mut []);
        came.map(|came| panic!("it came to {came:?}"))
    });
    assert_eq!(refused.map(|_: ()| ()), Err(Cause::PeerAlert(Alert::AccessDenied)));
    let subject = Details::of(Fixture::DEVICE.certificate).expect("a certificate").subject;
    let line = rig.broker.wait_for_line("no_principal");
    let told = format!(
        "TLS handshake failed: no_principal in connected; alert access_denied sent; certificate subject \"{subject}\"; add a rule for \
         the certificate's subject to ssl.principal.mapping.rules, or DEFAULT as the last one; trail=\"await_client_hello "
    );
    assert!(line.contains(&told), "{line}\n{told}");
    let page = rig.page();
    assert_eq!(
        page.value("skerry_tls_handshake_failures_total", &[("cause", "no_principal")]),
        1.0
    );
    assert_eq!(page.sum("skerry_tls_handshakes_total"), 0.0);
}

/// Goal: what a good handshake took is there for who wants it. Method: the line at the level of debug.
#[test]
fn a_handshake_leaves_its_trail() {
    let rig = Rig::start(&[]);
    let mut client = Device::default();
    let _stream = client
        .connect(rig.broker.listener("SSL"), None, &[])
        .expect("a handshake");
    let line = rig.broker.wait_for_line("TLS handshake done; trail=");
    let trail = line.split_once("trail=\"").expect("a trail").1;
    let steps: Vec<&str> = trail.trim_end_matches('"').split(" > ").collect();
    assert!(line.contains(" DEBUG ") && steps.len() == 3, "{line}");
    assert!(
        steps[0].starts_with("await_client_hello ") && steps[0].ends_with("us"),
        "{line}"
    );
    assert!(
        steps[1].starts_with("await_client_finished ") && steps[1].ends_with("us"),
        "{line}"
    );
    assert_eq!(steps[2], "connected");
}
