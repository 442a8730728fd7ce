//! Each way in which a peer can break a handshake: which alert the peer sees, and which line the user reads.
//!
//! The peers are `tests/interop/tls/python/liar.py`, which does one thing wrong at a time, with honest and bad certificates. What is tried is
//! behind [`Target`].

use std::collections::{BTreeMap, BTreeSet};

use crate::peers::{Peer, Row};
use crate::programs::{Event, Server, ServerProgram, certificate};

mod broker;

pub use broker::{Brokers, around_tls};

/// What the log says of a failed handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub state: String,
    pub cause: String,
    /// That was sent, or that came.
    pub alert: Option<String>,
    /// What the peer offered, when its hello was read.
    pub offered: Option<String>,
    /// The certificate at fault.
    pub certificate: Option<String>,
    pub cure: String,
    /// The steps that the handshake took, where they are told.
    pub trail: Option<String>,
    pub line: String,
}

/// Failures by what they happened in (`handshake`, `connection`) and by cause.
pub type Counts = BTreeMap<(&'static str, String), u64>;

/// A server with a log.
pub trait Target {
    /// Seconds that it is given before each trial, for it does not write every line that there may be.
    const WAIT: Option<&'static str>;
    /// Whether its lines tell the steps of a handshake. Then it keeps none of them, nor what was offered, when the handshake is over.
    const HAS_TRAIL: bool;
    /// The port for the next trial, of a server that asks for client certificates so (`none`, `required`).
    fn port(&mut self, client_auth: &'static str) -> u16;
    /// The lines about this peer of that port, at least so many.
    fn failures(&self, port: u16, peer: &str, at_least: usize) -> Vec<Failure>;
    /// What it has counted, if it counts.
    fn counts(&self) -> Option<Counts>;
}

/// The example `tls-http`.
#[derive(Default)]
pub struct TlsHttp(BTreeMap<&'static str, Server>);

impl Target for TlsHttp {
    const WAIT: Option<&'static str> = None;
    const HAS_TRAIL: bool = false;

    fn port(&mut self, client_auth: &'static str) -> u16 {
        let server = self.0.entry(client_auth).or_insert_with(|| {
            let (cert, key) = (certificate("server-p256.pem"), certificate("server-p256.key"));
            let ca = certificate("ca.pem");
            let mut options = vec!["--cert", &cert, "--key", &key, "--echo", "--client-auth", client_auth];
            if client_auth != "none" {
                options.extend(["--client-ca", &ca]);
            }
            ServerProgram::under_test("fast").start(&options)
        });
        server.port
    }

    fn counts(&self) -> Option<Counts> {
        None
    }

    fn failures(&self, port: u16, peer: &str, at_least: usize) -> Vec<Failure> {
        let begin = format!("tls-http: {peer} failed in ");
        let about = |events: &[Event]| -> Vec<Failure> {
            let lines = events.iter().filter(|e| e.line.starts_with(&begin));
            lines.map(|e| Failure::parse(&e.line, &begin)).collect()
        };
        let server = self.0.values().find(|server| server.port == port).expect("its server");
        about(
            &server
                .running
                .wait_for(&begin, |events| about(events).len() >= at_least),
        )
    }
}

impl Failure {
    /// `BEGIN state: cause, alert A, certificate C, offered O; cure`.
    fn parse(line: &str, begin: &str) -> Self {
        let words = line.strip_prefix(begin).unwrap_or(line);
        let (words, cure) = words.rsplit_once("; ").unwrap_or((words, ""));
        let (state, words) = words.split_once(": ").unwrap_or((words, ""));
        let between = |from: &str, to: &str| {
            let (_, rest) = words.split_once(from)?;
            Some(rest.split(to).next().unwrap_or(rest).to_owned())
        };
        Self {
            state: state.to_owned(),
            cause: words.split(',').next().unwrap_or_default().to_owned(),
            alert: between(", alert ", ",").or_else(|| between(", its alert ", ",")),
            offered: between(", offered ", "; "),
            certificate: between(", certificate ", ", offered"),
            cure: cure.to_owned(),
            trail: None,
            line: line.to_owned(),
        }
    }
}

/// Whether a trail goes from the first state to this one, and tells of each step what it took: `await_client_hello 41us > failed`.
fn leads_to(trail: &str, state: &str) -> bool {
    let steps: Vec<(&str, &str)> = trail
        .split(" > ")
        .map(|step| step.split_once(' ').unwrap_or((step, "")))
        .collect();
    let Some(((end, ""), done)) = steps.split_last() else {
        return false;
    };
    let is_micros = |took: &str| took.strip_suffix("us").is_some_and(|us| us.parse::<u64>().is_ok());
    steps[0].0 == "await_client_hello"
        && done.iter().all(|(_, took)| is_micros(took))
        && match *end {
            "failed" => done.last().is_some_and(|(from, _)| *from == state),
            end => end == state,
        }
}

/// Versions of a case.
const BOTH: &[&str] = &["1.3", "1.2"];
const V13: &[&str] = &["1.3"];
const V12: &[&str] = &["1.2"];

/// One case: what the peer does, in which versions, with which client certificate (`-`: it is asked for none; `missing`: it has none), the
/// state that we are in, the cause that is logged, the alert that the peer sees (`-`: none).
type Case = (
    &'static str,
    &'static [&'static str],
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

#[rustfmt::skip]
const CASES: &[Case] = &[
    // Not TLS.
    ("kafka", V13, "-", "await_client_hello", "plaintext_peer", "-"),
    ("http", V13, "-", "await_client_hello", "plaintext_peer", "-"),
    ("sslv2", V13, "-", "await_client_hello", "plaintext_peer", "-"),
    ("garbage", V13, "-", "await_client_hello", "plaintext_peer", "-"),
    ("record of SSL 2.0", V13, "-", "await_client_hello", "bad_record_version", "protocol_version"),
    // Nothing in common.
    ("old versions", V13, "-", "await_client_hello", "no_common_version", "protocol_version"),
    ("fallback", V12, "-", "await_client_hello", "inappropriate_fallback", "inappropriate_fallback"),
    ("other suites", BOTH, "-", "await_client_hello", "no_common_suite", "handshake_failure"),
    ("other groups", BOTH, "-", "await_client_hello", "no_common_group", "handshake_failure"),
    ("other schemes", BOTH, "-", "await_client_hello", "no_common_scheme", "handshake_failure"),
    // Hellos.
    ("no groups", V13, "-", "await_client_hello", "missing_extension", "missing_extension"),
    ("no shares", V13, "-", "await_client_hello", "missing_extension", "missing_extension"),
    ("no schemes", V13, "-", "await_client_hello", "missing_extension", "missing_extension"),
    ("a byte too many", BOTH, "-", "await_client_hello", "decode_error", "decode_error"),
    ("extension twice", BOTH, "-", "await_client_hello", "illegal_parameter", "illegal_parameter"),
    ("compression", V13, "-", "await_client_hello", "illegal_parameter", "illegal_parameter"),
    ("long hello", BOTH, "-", "await_client_hello", "handshake_too_long", "illegal_parameter"),
    ("share of zeros", V13, "-", "await_client_hello", "bad_share", "illegal_parameter"),
    ("share off the curve", V13, "-", "await_client_hello", "bad_share", "illegal_parameter"),
    ("share too short", V13, "-", "await_client_hello", "illegal_parameter", "illegal_parameter"),
    ("other second hello", V13, "-", "await_second_client_hello", "illegal_parameter", "illegal_parameter"),
    ("binder", V13, "-", "await_client_hello", "bad_binder", "decrypt_error"),
    ("ClientHello twice", V13, "-", "await_client_finished", "unprotected_record", "unexpected_message"),
    ("ClientHello twice", V12, "-", "await_client_key_exchange", "out_of_sequence", "unexpected_message"),
    // Records.
    ("oversized hello", BOTH, "-", "await_client_hello", "record_overflow", "record_overflow"),
    ("oversized data", BOTH, "-", "connected", "record_overflow", "record_overflow"),
    ("unknown plain record", V12, "-", "await_client_key_exchange", "bad_record", "unexpected_message"),
    ("unknown record", V13, "-", "await_client_finished", "bad_record", "unexpected_message"),
    ("unknown record", V12, "-", "await_client_finished_12", "bad_record", "unexpected_message"),
    ("empty handshake record", V12, "-", "await_client_key_exchange", "bad_record", "unexpected_message"),
    ("broken record", V13, "-", "await_client_finished", "bad_record_mac", "bad_record_mac"),
    ("broken record", V12, "-", "await_client_finished_12", "bad_record_mac", "bad_record_mac"),
    ("broken data", BOTH, "-", "connected", "bad_record_mac", "bad_record_mac"),
    ("finished in plain", V13, "-", "await_client_finished", "unprotected_record", "unexpected_message"),
    ("finished in plain", V12, "-", "await_client_finished_12", "bad_record_mac", "bad_record_mac"),
    ("plain record", V13, "-", "connected", "unprotected_record", "unexpected_message"),
    ("plain record", V12, "-", "connected", "bad_record_mac", "bad_record_mac"),
    ("empty records", BOTH, "-", "connected", "too_many_empty_records", "unexpected_message"),
    ("warnings", BOTH, "-", "connected", "too_many_updates", "unexpected_message"),
    ("key updates", V13, "-", "connected", "too_many_updates", "unexpected_message"),
    // Messages in the wrong place; more below.
    ("two change_cipher_specs", V13, "-", "await_client_finished", "out_of_sequence", "unexpected_message"),
    ("two change_cipher_specs", V12, "-", "await_client_finished_12", "bad_record_mac", "bad_record_mac"),
    ("change_cipher_spec of 2", V13, "-", "await_client_finished", "out_of_sequence", "unexpected_message"),
    ("change_cipher_spec of 2", V12, "-", "await_client_change_cipher_spec", "out_of_sequence", "unexpected_message"),
    ("change_cipher_spec after", BOTH, "-", "connected", "out_of_sequence", "unexpected_message"),
    ("finished after", BOTH, "-", "connected", "out_of_sequence", "unexpected_message"),
    ("Finished twice", V13, "-", "connected", "bad_record_mac", "bad_record_mac"),
    ("Finished twice", V12, "-", "connected", "out_of_sequence", "unexpected_message"),
    ("renegotiation", V12, "-", "connected", "renegotiation", "handshake_failure"),
    ("Certificate twice", V13, "p256", "await_client_certificate_verify", "out_of_sequence", "unexpected_message"),
    ("Certificate twice", V12, "p256", "await_client_key_exchange", "out_of_sequence", "unexpected_message"),
    ("CertificateVerify twice", V13, "p256", "await_client_finished", "out_of_sequence", "unexpected_message"),
    ("CertificateVerify twice", V12, "p256", "await_client_change_cipher_spec", "out_of_sequence", "unexpected_message"),
    ("ClientKeyExchange twice", V12, "-", "await_client_change_cipher_spec", "out_of_sequence", "unexpected_message"),
    ("ClientKeyExchange twice", V12, "p256", "await_client_certificate_verify_12", "out_of_sequence", "unexpected_message"),
    // Proofs.
    ("wrong finished", V13, "-", "await_client_finished", "bad_finished", "decrypt_error"),
    ("wrong finished", V12, "-", "await_client_finished_12", "bad_finished", "decrypt_error"),
    ("wrong signature", V13, "p256", "await_client_certificate_verify", "bad_signature", "decrypt_error"),
    ("wrong signature", V12, "p256", "await_client_certificate_verify_12", "bad_signature", "decrypt_error"),
    ("wrong signature", V13, "rsa", "await_client_certificate_verify", "bad_signature", "decrypt_error"),
    ("wrong signature", V12, "rsa", "await_client_certificate_verify_12", "bad_signature", "decrypt_error"),
    // Certificates. TLS 1.3 tells after the client's Finished.
    ("honest", V13, "missing", "await_client_finished", "client_certificate_missing", "certificate_required"),
    ("honest", V12, "missing", "await_client_certificate_12", "client_certificate_missing", "handshake_failure"),
    ("honest", V13, "expired", "await_client_finished", "certificate_expired", "certificate_expired"),
    ("honest", V12, "expired", "await_client_certificate_12", "certificate_expired", "certificate_expired"),
    ("honest", V13, "future", "await_client_finished", "certificate_not_yet_valid", "certificate_expired"),
    ("honest", V12, "future", "await_client_certificate_12", "certificate_not_yet_valid", "certificate_expired"),
    ("honest", V13, "unknown", "await_client_finished", "unknown_ca", "unknown_ca"),
    ("honest", V12, "unknown", "await_client_certificate_12", "unknown_ca", "unknown_ca"),
    ("honest", V13, "usage", "await_client_finished", "certificate_usage", "unsupported_certificate"),
    ("honest", V12, "usage", "await_client_certificate_12", "certificate_usage", "unsupported_certificate"),
    ("honest", V13, "signature", "await_client_finished", "certificate_signature", "bad_certificate"),
    ("honest", V12, "signature", "await_client_certificate_12", "certificate_signature", "bad_certificate"),
    ("honest", V13, "weak", "await_client_finished", "certificate_unsupported", "unsupported_certificate"),
    ("honest", V12, "weak", "await_client_certificate_12", "certificate_unsupported", "unsupported_certificate"),
    ("honest", V13, "sha1", "await_client_finished", "certificate_unsupported", "unsupported_certificate"),
    ("honest", V12, "sha1", "await_client_certificate_12", "certificate_unsupported", "unsupported_certificate"),
    // The peer gives up.
    ("alert of no known number", V13, "-", "await_client_finished", "peer_alert_unknown", "-"),
    ("alert of no known number", V12, "-", "await_client_finished_12", "peer_alert_unknown", "-"),
];

/// Every state in which the server waits for a client, and how to get there: up to this message, in this version, with this certificate.
#[rustfmt::skip]
const STATES: &[(&str, &str, &str, &str)] = &[
    ("await_second_client_hello", "SecondClientHello", "1.3", "-"),
    ("await_client_certificate", "Certificate", "1.3", "p256"),
    ("await_client_certificate_verify", "CertificateVerify", "1.3", "p256"),
    ("await_client_finished", "Finished", "1.3", "-"),
    ("await_client_finished", "Finished", "1.3", "p256"),
    ("await_client_certificate_12", "Certificate", "1.2", "p256"),
    ("await_client_key_exchange", "ClientKeyExchange", "1.2", "-"),
    ("await_client_certificate_verify_12", "CertificateVerify", "1.2", "p256"),
    ("await_client_change_cipher_spec", "ChangeCipherSpec", "1.2", "-"),
    ("await_client_finished_12", "Finished", "1.2", "-"),
];

/// What is done in each of them, as the acts of `liar.py` are called around the message's name.
#[rustfmt::skip]
const IN_EVERY_STATE: &[(&str, &str, &str, &str)] = &[
    ("data before ", "", "out_of_sequence", "unexpected_message"),
    ("hello_request before ", "", "out_of_sequence", "unexpected_message"),
    ("alert at ", "", "peer_alert", "-"),
    ("close at ", "", "handshake_closed", "-"),
    ("reset at ", "", "handshake_reset", "-"),
    ("silence at ", "", "handshake_timeout", "user_canceled"),
    ("half of ", ", then close", "handshake_closed", "-"),
    ("half of ", ", then reset", "handshake_reset", "-"),
    ("half of ", ", then silence", "handshake_timeout", "user_canceled"),
];

/// A case, ready to be tried.
struct Trial {
    port: u16,
    act: String,
    version: &'static str,
    client: &'static str,
    state: &'static str,
    cause: &'static str,
    alert: &'static str,
}

fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for &(act, versions, client, state, cause, alert) in CASES {
        trials.extend(versions.iter().map(|version| Trial {
            port: 0,
            act: act.to_owned(),
            version,
            client,
            state,
            cause,
            alert,
        }));
    }
    let hello = ("await_client_hello", "ClientHello", "1.3", "-");
    for &(state, step, version, client) in [hello].iter().chain(STATES) {
        for &(before, after, cause, alert) in IN_EVERY_STATE {
            // Nothing at all is no failure: whoever looks whether a port is open says nothing.
            let says_something =
                step != "ClientHello" || before == "half of " || before.ends_with("before ") || before == "alert at ";
            let has_halves = step != "ChangeCipherSpec" || before != "half of ";
            if says_something && has_halves {
                trials.push(Trial {
                    port: 0,
                    act: format!("{before}{step}{after}"),
                    version,
                    client,
                    state,
                    cause,
                    alert,
                });
            }
        }
    }
    trials
}

impl Trial {
    fn client_auth(&self) -> &'static str {
        if self.client == "-" { "none" } else { "required" }
    }

    /// What is wrong with what the peer saw and the user reads.
    fn check<T: Target>(
        &self,
        seen: &Event,
        target: &T,
        cures: &mut BTreeMap<String, BTreeSet<String>>,
    ) -> Vec<String> {
        if let Some(failed) = seen.pair("failed") {
            return vec![format!("the peer could not: {failed}: {}", seen.line)];
        }
        let mut wrong = Vec::new();
        let alert = seen.pair("alert").unwrap_or_default();
        // A second handshake is declined before it ends the connection.
        let declined = alert == "no_renegotiation" && self.cause == "renegotiation";
        // Protected by keys that whoever stops early has not made.
        let is_seen = alert == self.alert
            || alert == "none" && self.alert == "-"
            || alert == "hidden" && self.cause == "handshake_timeout";
        let is_ours = self.cause == "handshake_reset";
        if !is_seen && !is_ours && !declined {
            wrong.push(format!("the peer saw {alert}, not {}", self.alert));
        }
        if !matches!(seen.pair("end"), Some("fin")) && !is_ours {
            wrong.push(format!("to the peer it ended by {:?}", seen.pair("end")));
        }
        let failures = target.failures(self.port, seen.pair("local").unwrap_or_default(), 1);
        if failures.len() != 1 {
            wrong.push(format!("{} lines: {failures:#?}", failures.len()));
        }
        for failure in &failures {
            let logged = failure.alert.as_deref().unwrap_or("-");
            let is_told = match self.cause {
                "peer_alert" => logged == "bad_certificate",
                "peer_alert_unknown" => logged == "200",
                _ => logged == self.alert,
            };
            // A reset may overtake what was sent before it.
            let in_state = failure.state == self.state || is_ours && failure.state.starts_with("await_");
            if !in_state || failure.cause != self.cause || !is_told {
                wrong.push(format!("the line is: {}", failure.line));
            }
            let has_certificate = self.cause.starts_with("certificate_") || self.cause == "unknown_ca";
            if failure.certificate.is_some() != has_certificate {
                wrong.push(format!("the certificate at fault: {}", failure.line));
            }
            let has_hello = match self.state {
                "await_client_hello" => self.cause.starts_with("no_common"),
                "connected" => !T::HAS_TRAIL,
                _ => true,
            };
            if has_hello && failure.offered.is_none() {
                wrong.push(format!("what was offered is not told: {}", failure.line));
            }
            if failure.cure.len() < 20 {
                wrong.push(format!("no cure: {}", failure.line));
            }
            if failure.trail.is_some() != (T::HAS_TRAIL && self.state != "connected")
                || failure
                    .trail
                    .as_ref()
                    .is_some_and(|trail| !leads_to(trail, &failure.state))
            {
                wrong.push(format!("its trail: {}", failure.line));
            }
            cures
                .entry(failure.cause.clone())
                .or_default()
                .insert(failure.cure.clone());
        }
        wrong
    }
}

pub fn every_cause<T: Target>(mut target: T) {
    let mut trials = trials();
    for trial in &mut trials {
        trial.port = target.port(trial.client_auth());
    }
    let before = target.counts();
    let rows: Vec<Row> = trials
        .iter()
        .map(|trial| Row {
            port: trial.port,
            wait: T::WAIT,
            version: trial.version,
            name: "skerry.test",
            client: Some(trial.client).filter(|client| !matches!(*client, "-" | "missing")),
            groups: trial.act.contains("SecondClientHello").then_some("secp384r1:secp256r1"),
            echo: vec![&[1]],
            act: Some(trial.act.clone()),
            ..Row::default()
        })
        .collect();
    let seen = Peer::Liar.run(&rows, &[]);
    let mut wrong = Vec::new();
    let mut cures = BTreeMap::new();
    for (trial, seen) in trials.iter().zip(&seen) {
        let what = match seen.first() {
            Some(seen) => trial.check(seen, &target, &mut cures),
            None => vec!["the peer says nothing".to_owned()],
        };
        let who = format!("{} {} client {}", trial.version, trial.act, trial.client);
        wrong.extend(
            what.iter()
                .map(|what| format!("{who}, expected {} in {}: {what}", trial.cause, trial.state)),
        );
    }
    wrong.extend(
        cures
            .iter()
            .filter(|(_, cures)| cures.len() > 1)
            .map(|(cause, cures)| format!("{cause} has several cures: {cures:?}")),
    );
    if let (Some(before), Some(after)) = (before, target.counts()) {
        let mut expected = before;
        for trial in &trials {
            let during = if trial.state == "connected" {
                "connection"
            } else {
                "handshake"
            };
            *expected.entry((during, trial.cause.to_owned())).or_default() += 1;
        }
        let all: BTreeSet<_> = expected.keys().chain(after.keys()).collect();
        wrong.extend(
            all.into_iter()
                .filter(|of| expected.get(of) != after.get(of))
                .map(|of| {
                    format!(
                        "{of:?} is counted {:?} times, not {:?}",
                        after.get(of),
                        expected.get(of)
                    )
                }),
        );
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        trials.len(),
        wrong.join("\n")
    );
    println!("ok   {} failures of {} causes", trials.len(), cures.len());
}

#[test]
fn a_line_about_a_failure_is_taken_apart() {
    let begin = "tls-http: 127.0.0.1:4 failed in ";
    let line = "tls-http: 127.0.0.1:4 failed in await_client_finished: unknown_ca, alert unknown_ca, certificate CN=a, O=b, \
                offered versions TLSv1.3 suites a,b groups c schemes d; add the CA";
    let failure = Failure::parse(line, begin);
    assert_eq!(failure.state, "await_client_finished");
    assert_eq!(failure.cause, "unknown_ca");
    assert_eq!(failure.alert.as_deref(), Some("unknown_ca"));
    assert_eq!(failure.certificate.as_deref(), Some("CN=a, O=b"));
    assert_eq!(
        failure.offered.as_deref(),
        Some("versions TLSv1.3 suites a,b groups c schemes d")
    );
    assert_eq!(failure.cure, "add the CA");
    let failure = Failure::parse("x failed in a: plaintext_peer; cure it", "x failed in ");
    assert_eq!(
        (failure.alert, failure.certificate, failure.offered),
        (None, None, None)
    );
}
