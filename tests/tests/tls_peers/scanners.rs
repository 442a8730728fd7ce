//! Scanners find what is offered: nothing beyond our list, and all of it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use skerry_tests::process::TempDir;

use crate::programs::{Server, ServerProgram, certificate};

/// How long one scanner may take. Not a measure of anything.
const SECONDS_MAX: &str = "200";

/// Our list of suites, of TLS 1.3 and of 1.2, and of groups.
const SUITES_13: [u16; 3] = [0x1301, 0x1302, 0x1303];
const SUITES_12: [u16; 6] = [0xc02b, 0xc02c, 0xc02f, 0xc030, 0xcca8, 0xcca9];
const GROUPS: [u16; 2] = [0x0017, 0x001d];

/// Our server as it is set up by default, with an ECDSA and an RSA certificate. It answers requests: scanners try HTTP.
fn server() -> Server {
    let [cert, key, cert_rsa, key_rsa] =
        ["server-p256.pem", "server-p256.key", "server-rsa.pem", "server-rsa.key"].map(certificate);
    ServerProgram::under_test("fast").start(&["--cert", &cert, "--key", &key, "--cert", &cert_rsa, "--key", &key_rsa])
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

pub fn sslscan() {
    let server = server();
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
    assert_eq!(found("cipher", "id", "TLSv1.3"), SUITES_13.into(), "{report}");
    assert_eq!(found("cipher", "id", "TLSv1.2"), SUITES_12.into(), "{report}");
    assert_eq!(found("group", "id", "TLSv1.3"), GROUPS.into(), "{report}");
    // Of TLS 1.2 it reads a group only from a server that gives each message a record of its own.
    assert!(found("group", "id", "TLSv1.2").is_subset(&GROUPS.into()), "{report}");
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

pub fn nmap() {
    let server = server();
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
    let mut expected = BTreeSet::new();
    for aead in ["AES_128_GCM_SHA256", "AES_256_GCM_SHA384", "CHACHA20_POLY1305_SHA256"] {
        expected.insert(("TLSv1.3".to_owned(), format!("TLS_{aead}")));
        for signed in ["ECDSA", "RSA"] {
            expected.insert(("TLSv1.2".to_owned(), format!("TLS_ECDHE_{signed}_WITH_{aead}")));
        }
    }
    assert_eq!(found, expected, "{report}");
    assert_eq!(compressors, BTreeSet::from(["NULL".to_owned()]), "{report}");
}

/// Findings of testssl.sh that are about itself.
const NOT_ABOUT_TLS: &[&str] = &["engine_problem"];

pub fn testssl() {
    let server = server();
    let address = format!("127.0.0.1:{}", server.port);
    let directory = TempDir::new();
    let report = directory.path().join("report.json");
    let arguments = [
        "--quiet",
        "--color=0",
        "--warnings=off",
        "--ip=one",
        "--jsonfile",
        report.to_str().expect("a path of UTF-8"),
        "-p",
        "-e",
        "-f",
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
    let ours = SUITES_13.into_iter().chain(SUITES_12).collect();
    assert_eq!(offered, ours, "{text}");
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
        .filter(|(id, severity, _)| !matches!(*severity, "OK" | "INFO" | "DEBUG") && !NOT_ABOUT_TLS.contains(id))
        .collect();
    assert!(unsound.is_empty(), "{unsound:#?}\n{text}");
}
