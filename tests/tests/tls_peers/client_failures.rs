//! Each way in which a server can break a handshake of ours: which alert the server sees, and which cause our client names.

use std::path::PathBuf;
use std::sync::OnceLock;

use skerry_tests::process::tls_example;

use crate::peers::{Peer, Row};
use crate::programs::{Event, certificate};
use crate::servers::{Setup, Theirs, client};

const BOTH: &[&str] = &["1.3", "1.2"];
const V13: &[&str] = &["1.3"];
const V12: &[&str] = &["1.2"];

/// What the server does, in which versions, the cause that is named, the alert that the server sees (`-`: none).
type Case = (&'static str, &'static [&'static str], &'static str, &'static str);

#[rustfmt::skip]
const CASES: &[Case] = &[
    ("http", V13, "plaintext_peer", "-"),
    ("garbage", V13, "plaintext_peer", "-"),
    ("other suite", BOTH, "illegal_parameter", "illegal_parameter"),
    ("old suite", V12, "illegal_parameter", "illegal_parameter"),
    ("old version", V12, "no_common_version", "protocol_version"),
    ("compression", BOTH, "illegal_parameter", "illegal_parameter"),
    ("other session", V13, "illegal_parameter", "illegal_parameter"),
    ("downgrade", V12, "illegal_parameter", "illegal_parameter"),
    ("unasked extension", BOTH, "unsupported_extension", "unsupported_extension"),
    ("unasked encrypted extension", V13, "unsupported_extension", "unsupported_extension"),
    ("share of zeros", V13, "bad_share", "illegal_parameter"),
    ("share of another group", V13, "illegal_parameter", "illegal_parameter"),
    ("no certificate", V13, "decode_error", "decode_error"),
    ("no certificate at all", V12, "decode_error", "decode_error"),
    ("wrong signature", V13, "bad_signature", "decrypt_error"),
    ("wrong signature of a share", V12, "bad_signature", "decrypt_error"),
    ("wrong finished", BOTH, "bad_finished", "decrypt_error"),
    ("broken record", BOTH, "bad_record_mac", "bad_record_mac"),
    ("finished in plain", V13, "unprotected_record", "unexpected_message"),
    ("finished in plain", V12, "bad_record_mac", "bad_record_mac"),
    ("unknown record", BOTH, "bad_record", "unexpected_message"),
    ("oversized hello", BOTH, "record_overflow", "record_overflow"),
    ("alert of no known number", BOTH, "peer_alert_unknown", "-"),
    ("empty records", BOTH, "too_many_empty_records", "unexpected_message"),
    ("certificate after", BOTH, "out_of_sequence", "unexpected_message"),
    ("Certificate twice", BOTH, "out_of_sequence", "unexpected_message"),
    ("EncryptedExtensions twice", V13, "out_of_sequence", "unexpected_message"),
    ("CertificateVerify twice", V13, "out_of_sequence", "unexpected_message"),
    ("ServerHello twice", V12, "out_of_sequence", "unexpected_message"),
    ("ServerKeyExchange twice", V12, "out_of_sequence", "unexpected_message"),
    ("ServerHelloDone twice", V12, "out_of_sequence", "unexpected_message"),
    ("Finished twice", V12, "out_of_sequence", "unexpected_message"),
];

/// The server's messages by version, before each of which all of [`AT_EVERY_STEP`] is done.
#[rustfmt::skip]
const STEPS: &[(&str, &str)] = &[
    ("1.3", "ServerHello"), ("1.3", "EncryptedExtensions"), ("1.3", "Certificate"), ("1.3", "CertificateVerify"), ("1.3", "Finished"),
    ("1.2", "ServerHello"), ("1.2", "Certificate"), ("1.2", "ServerKeyExchange"), ("1.2", "ServerHelloDone"),
    ("1.2", "ChangeCipherSpec"), ("1.2", "Finished"),
];

#[rustfmt::skip]
const AT_EVERY_STEP: &[(&str, &str, &str)] = &[
    ("data before ", "out_of_sequence", "unexpected_message"),
    ("client_hello before ", "out_of_sequence", "unexpected_message"),
    ("alert at ", "peer_alert", "-"),
    ("close at ", "handshake_closed", "-"),
    ("reset at ", "handshake_reset", "-"),
    ("silence at ", "handshake_timeout", "user_canceled"),
];

/// A case, ready to be tried.
struct Trial {
    act: String,
    version: &'static str,
    cause: &'static str,
    alert: &'static str,
}

fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for &(act, versions, cause, alert) in CASES {
        trials.extend(versions.iter().map(|version| Trial {
            act: act.to_owned(),
            version,
            cause,
            alert,
        }));
    }
    for (version, step) in STEPS {
        trials.extend(AT_EVERY_STEP.iter().map(|(before, cause, alert)| Trial {
            act: format!("{before}{step}"),
            version,
            cause,
            alert,
        }));
    }
    trials
}

impl Trial {
    fn check(&self, seen: &Event) -> Vec<String> {
        if let Some(failed) = seen.pair("failed") {
            return vec![format!("the server could not: {failed}: {}", seen.line)];
        }
        let mut wrong = Vec::new();
        let alert = seen.pair("alert").unwrap_or_default();
        // Protected by keys that whoever stops early has not made.
        let is_hidden = alert == "hidden" && self.cause == "handshake_timeout";
        let is_seen = alert == self.alert || alert == "none" && self.alert == "-" || is_hidden;
        let is_ours = self.cause == "handshake_reset";
        if !is_seen && !is_ours {
            wrong.push(format!("the server saw {alert}, not {}", self.alert));
        }
        if seen.pair("client_cause") != Some(self.cause) {
            wrong.push(format!("the client says {}", seen.line));
        }
        wrong
    }
}

pub fn every_cause() {
    static EXAMPLE: OnceLock<PathBuf> = OnceLock::new();
    let program = EXAMPLE.get_or_init(|| tls_example("tls-client"));
    let trials = trials();
    let ca = certificate("ca.pem");
    let rows: Vec<Row> = trials
        .iter()
        .map(|trial| {
            // Whoever is downgraded could do better.
            let best = if trial.act == "downgrade" { "1.3" } else { trial.version };
            Row {
                version: trial.version,
                act: Some(trial.act.clone()),
                server: Some("p256"),
                program: Some(format!(
                    "'{}' --name skerry.test --ca '{ca}' --min-version {} --max-version {best} --timeout 2 --send x --connect",
                    program.display(),
                    trial.version,
                )),
                ..Row::default()
            }
        })
        .collect();
    let seen = Peer::LiarServer.run(&rows, &[]);
    let mut wrong = Vec::new();
    for (trial, seen) in trials.iter().zip(&seen) {
        let what = match seen.first() {
            Some(seen) => trial.check(seen),
            None => vec!["the server says nothing".to_owned()],
        };
        let who = format!("{} {}, expected {}", trial.version, trial.act, trial.cause);
        wrong.extend(what.iter().map(|what| format!("{who}: {what}")));
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        trials.len(),
        wrong.join("\n")
    );
    println!("ok   {} failures of our client", trials.len());
}

/// A kind of server certificate, the cause that our client names, the number of its alert.
#[rustfmt::skip]
const CERTIFICATES: &[(&str, &str, u8)] = &[
    ("expired", "certificate_expired", 45),
    ("future", "certificate_not_yet_valid", 45),
    ("unknown", "unknown_ca", 48),
    ("name", "certificate_name", 42),
    ("usage", "certificate_usage", 43),
    ("signature", "certificate_signature", 42),
    ("weak", "certificate_unsupported", 43),
    ("sha1", "certificate_unsupported", 43),
];

pub fn every_certificate() {
    let ca = certificate("ca.pem");
    let mut wrong = Vec::new();
    for (kind, cause, alert) in CERTIFICATES {
        let server = Theirs::OpenSsl.start(Setup {
            kind,
            client_auth: false,
            group: None,
        });
        for (count, version) in BOTH.iter().enumerate() {
            let options = [
                "--ca",
                &ca,
                "--name",
                "skerry.test",
                "--min-version",
                version,
                "--max-version",
                version,
                "--send",
                "x",
            ];
            let line = &client(server.port, &options)[0];
            if line["cause"] != *cause {
                wrong.push(format!("{version} {kind}, expected {cause}: {line}"));
            }
            let words = format!("alert number {alert}");
            let heard = server.running.wait_for(&words, |events| {
                events.iter().filter(|e| e.line.contains("alert number")).count() > count
            });
            if heard.iter().filter(|e| e.line.contains(&words)).count() != count + 1 {
                wrong.push(format!("{version} {kind}, expected {words} at the server: {heard:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What a server wants of us that we do not have: our certificate, a version, a group.
pub fn what_a_server_refuses() {
    let ca = certificate("ca.pem");
    let required = Theirs::OpenSsl.start(Setup {
        kind: "p256",
        client_auth: true,
        group: None,
    });
    let other_group = Theirs::OpenSsl.start(Setup {
        kind: "p256",
        client_auth: false,
        group: Some("p384"),
    });
    for (server, version, alert) in [
        (&required, "1.3", "certificate_required"),
        (&required, "1.2", "handshake_failure"),
        (&other_group, "1.3", "handshake_failure"),
        (&other_group, "1.2", "handshake_failure"),
    ] {
        let versions = ["--min-version", version, "--max-version", version];
        let mut options = vec!["--ca", &ca, "--name", "skerry.test", "--send", "x"];
        options.extend(versions);
        let line = &client(server.port, &options)[0];
        assert_eq!(
            (line["cause"].as_str(), line["alert"].as_str()),
            (Some("peer_alert"), Some(alert)),
            "{version} {line}"
        );
    }
}
