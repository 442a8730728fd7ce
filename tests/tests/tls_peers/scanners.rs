//! Scanners find what is offered: nothing beyond our list, and all of it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use skerry_tests::process::TempDir;

use crate::programs::{Server, ServerProgram, certificate};

/// How long one scanner may take. Not a measure of anything.
const SECONDS_MAX: &str = "200";

/// Suites by number: all of TLS 1.3, and of TLS 1.2 what suits a certificate of this kind.
fn suites(kind: &str) -> BTreeSet<u16> {
    let tls12 = match kind {
        "rsa" => [0xc02f, 0xc030, 0xcca8],
        _ => [0xc02b, 0xc02c, 0xcca9],
    };
    BTreeSet::from([0x1301, 0x1302, 0x1303])
        .into_iter()
        .chain(tls12)
        .collect()
}

/// Our server as it is set up by default. It answers requests: scanners try HTTP.
fn server(kind: &str) -> Server {
    let cert = certificate(&format!("server-{kind}.pem"));
    let key = certificate(&format!("server-{kind}.key"));
    ServerProgram::under_test("fast").start(&["--cert", &cert, "--key", &key])
}

/// What it wrote to its standard output.
///
/// Panics when it is not there or fails.
fn run(program: &str, arguments: &[&str], environment: &[(&str, &str)], directory: &Path) -> String {
    let output = Command::new("timeout")
        .args(["--kill-after=5", SECONDS_MAX, program])
        .args(arguments)
        .envs(environment.iter().copied())
        .current_dir(directory)
        .output()
        .expect("timeout of coreutils");
    let (stdout, stderr) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    // testssl.sh counts findings in its status; above 200 are its own failures.
    let is_well = output.status.code().is_some_and(|code| code < 124);
    assert!(is_well, "{program}: {}\n{stdout}{stderr}", output.status);
    stdout.into_owned()
}

/// The value of an attribute in a tag.
fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
    rest.split_once('"').map(|(value, _)| value)
}

fn number(text: &str) -> u16 {
    u16::from_str_radix(text.trim_start_matches("0x").trim_start_matches('x'), 16)
        .unwrap_or_else(|_| panic!("{text:?} is no number of a suite or group"))
}

pub fn sslscan(kind: &str) {
    let server = server(kind);
    let address = format!("127.0.0.1:{}", server.port);
    let directory = TempDir::new();
    let report = directory.path().join("report.xml");
    run(
        "sslscan",
        &["--no-colour", &format!("--xml={}", report.display()), &address],
        &[],
        directory.path(),
    );
    let report = fs::read_to_string(report).expect("the report");
    let tags = |name: &'static str| {
        let begin = format!("<{name} ");
        report.lines().filter(move |line| line.trim_start().starts_with(&begin))
    };
    let enabled: Vec<_> = tags("protocol")
        .filter(|tag| attribute(tag, "enabled") == Some("1"))
        .filter_map(|tag| Some((attribute(tag, "type")?, attribute(tag, "version")?)))
        .collect();
    assert_eq!(enabled, [("tls", "1.2"), ("tls", "1.3")], "{report}");
    let found = |what, key, version| -> BTreeSet<u16> {
        tags(what)
            .filter(|tag| attribute(tag, "sslversion") == Some(version))
            .filter_map(|tag| attribute(tag, key))
            .map(number)
            .collect()
    };
    let offered: BTreeSet<u16> = &found("cipher", "id", "TLSv1.3") | &found("cipher", "id", "TLSv1.2");
    assert_eq!(offered, suites(kind), "{report}");
    let ours = BTreeSet::from([0x0017, 0x001d]);
    assert_eq!(found("group", "id", "TLSv1.3"), ours, "{report}");
    // It offers one group at a time: with ECDSA that has to be the certificate's.
    let tls12 = found("group", "id", "TLSv1.2");
    assert!(tls12.is_subset(&ours) && (kind != "rsa" || tls12 == ours), "{report}");
    for tag in tags("heartbleed") {
        assert_eq!(attribute(tag, "vulnerable"), Some("0"), "{tag}");
    }
    for tag in tags("compression") {
        assert_eq!(attribute(tag, "supported"), Some("0"), "{tag}");
    }
    for tag in tags("renegotiation") {
        assert_eq!(attribute(tag, "supported"), Some("0"), "{tag}");
    }
}

pub fn nmap(kind: &str) {
    let server = server(kind);
    let directory = TempDir::new();
    let port = server.port.to_string();
    let arguments = [
        "-Pn",
        "-n",
        "--script",
        "ssl-enum-ciphers",
        "-oX",
        "-",
        "-p",
        &port,
        "127.0.0.1",
    ];
    let report = run("nmap", &arguments, &[], directory.path());
    let mut version = "";
    let mut found = BTreeSet::new();
    let mut compressors = BTreeSet::new();
    let mut list = "";
    for line in report.lines() {
        for tag in line.split('<') {
            match attribute(tag, "key") {
                Some(key) if tag.starts_with("table") && (key.starts_with("TLS") || key.starts_with("SSL")) => {
                    version = key
                }
                Some(key @ ("ciphers" | "compressors")) if tag.starts_with("table") => list = key,
                Some("name") => {
                    let name = tag.split_once('>').map_or("", |(_, name)| name);
                    found.insert((version.to_owned(), name.replace("_AKE_WITH", "")));
                }
                None if tag.starts_with("elem>") && list == "compressors" => {
                    compressors.insert(tag.trim_start_matches("elem>").to_owned());
                }
                _ => {}
            }
        }
    }
    let signed = if kind == "rsa" { "RSA" } else { "ECDSA" };
    let mut expected = BTreeSet::new();
    for aead in ["AES_128_GCM_SHA256", "AES_256_GCM_SHA384", "CHACHA20_POLY1305_SHA256"] {
        expected.insert(("TLSv1.3".to_owned(), format!("TLS_{aead}")));
        expected.insert(("TLSv1.2".to_owned(), format!("TLS_ECDHE_{signed}_WITH_{aead}")));
    }
    assert_eq!(found, expected, "{report}");
    assert_eq!(compressors, BTreeSet::from(["NULL".to_owned()]), "{report}");
}

/// Findings of testssl.sh that are about the certificates of the tests, about HTTP, or about testssl.sh itself.
const NOT_ABOUT_TLS: &[&str] = &[
    "engine_problem",
    "cert_validityPeriod",
    "cert_revocation",
    "DNS_CAArecord",
    "certificate_transparency",
    "HSTS",
];

pub fn testssl(kind: &str) {
    let server = server(kind);
    let address = format!("127.0.0.1:{}", server.port);
    let directory = TempDir::new();
    let ca = certificate("ca.pem");
    let report = directory.path().join("report.json");
    let arguments = [
        "--quiet",
        "--color=0",
        "--warnings=off",
        "--ip=one",
        "--add-ca",
        &ca,
        "--jsonfile",
        report.to_str().expect("a path of UTF-8"),
        "-p",
        "-e",
        "-f",
        "-S",
        "-U",
        &address,
    ];
    // How long it waits for an answer that does not come, in seconds.
    let patience = [
        ("MAX_WAITSOCK", "2"),
        ("CCS_MAX_WAITSOCK", "2"),
        ("HEARTBLEED_MAX_WAITSOCK", "2"),
    ];
    let text = run("testssl", &arguments, &patience, directory.path());
    let report = fs::read_to_string(report).expect("the report");
    let report: Vec<serde_json::Value> = serde_json::from_str(&report).expect("a list in JSON");
    let findings: Vec<(&str, &str, &str)> = report
        .iter()
        .map(|one| {
            let field = |name| one[name].as_str().unwrap_or_default();
            (field("id"), field("severity"), field("finding"))
        })
        .collect();
    let finding = |id: &str| {
        let found = findings.iter().find(|(name, _, _)| *name == id);
        found
            .unwrap_or_else(|| panic!("testssl.sh says nothing of {id}:\n{text}"))
            .2
    };
    for old in ["SSLv2", "SSLv3", "TLS1", "TLS1_1"] {
        assert_eq!(finding(old), "not offered", "{old}");
    }
    for new in ["TLS1_2", "TLS1_3"] {
        assert!(finding(new).starts_with("offered"), "{new} {}", finding(new));
    }
    let offered: BTreeSet<u16> = findings
        .iter()
        .filter_map(|(id, _, _)| id.strip_prefix("cipher_x"))
        .map(number)
        .collect();
    assert_eq!(offered, suites(kind), "{text}");
    let mut curves: Vec<&str> = finding("PFS_ECDHE_curves").split_whitespace().collect();
    curves.sort_unstable();
    assert_eq!(curves, ["X25519", "prime256v1"], "{text}");
    for sound in [
        "heartbleed",
        "CCS",
        "ROBOT",
        "secure_renego",
        "secure_client_renego",
        "CRIME_TLS",
        "POODLE_SSL",
        "fallback_SCSV",
        "SWEET32",
        "FREAK",
        "DROWN",
        "LOGJAM",
        "BEAST",
        "LUCKY13",
        "RC4",
    ] {
        finding(sound);
    }
    let unsound: Vec<_> = findings
        .iter()
        .filter(|(id, severity, _)| {
            !matches!(*severity, "OK" | "INFO" | "DEBUG") && !NOT_ABOUT_TLS.iter().any(|about| id.starts_with(about))
        })
        .collect();
    assert!(unsound.is_empty(), "{unsound:#?}\n{text}");
}
