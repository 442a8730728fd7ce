//! Every client against the server: versions, certificates, client certificates, suites, groups; full and resumed; both ends must say the
//! same, and what was asked for.

use std::collections::BTreeMap;

use crate::peers::{Peer, Row};
use crate::programs::{Event, Server, ServerProgram, certificate};

/// What is echoed: one byte, a record and a byte more, many records.
const MUCH: &[usize] = &[1, 16385, 1 << 20];
const LITTLE: &[usize] = &[1];
const NOTHING: &[usize] = &[0];
/// What `openssl.py` has echoed between four updates of keys, two of which ask for ours.
const UPDATES: &[usize] = &[76];

const NAME: &str = "skerry.test";
const ADDRESS: &str = "127.0.0.1";

const SUITES_13: &[&str] = &[
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
];
const SUITES_ECDSA: &[&str] = &[
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
];
const SUITES_RSA: &[&str] = &[
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
];

/// Servers by kind of certificate and client authentication, started when they are first needed.
struct Servers {
    program: ServerProgram,
    running: BTreeMap<(&'static str, &'static str), Server>,
}

impl Servers {
    fn new(program: ServerProgram) -> Self {
        Self {
            program,
            running: BTreeMap::new(),
        }
    }

    fn port(&mut self, kind: &'static str, client_auth: &'static str) -> u16 {
        let program = self.program;
        let server = self.running.entry((kind, client_auth)).or_insert_with(|| {
            let cert = certificate(&format!("server-{kind}.pem"));
            let key = certificate(&format!("server-{kind}.key"));
            let ca = certificate("ca.pem");
            let mut options = vec!["--cert", &cert, "--key", &key, "--echo"];
            options.extend(["--client-auth", client_auth]);
            if client_auth != "none" {
                options.extend(["--client-ca", &ca]);
            }
            program.start(&options)
        });
        server.port
    }
}

/// What a peer makes of full and resumed connections: most echo on each, gnutls-cli on the last only; tlslite-ng is slow.
fn twice(peer: Peer, much: bool) -> Vec<&'static [usize]> {
    let sizes = match (much, peer) {
        (false, _) => LITTLE,
        (true, Peer::TlsliteNg) => &MUCH[..2],
        (true, _) => MUCH,
    };
    match peer {
        Peer::GnuTls => vec![NOTHING, sizes],
        _ => vec![sizes, LITTLE],
    }
}

/// Versions × certificates × client certificates, with and without a name.
fn essential(peer: Peer, servers: &mut Servers, kinds: &[&'static str]) -> Vec<Row> {
    let mut rows = Vec::new();
    for version in ["1.3", "1.2"] {
        for kind in kinds {
            for (name, client) in [(NAME, None), (ADDRESS, Some(*kind))] {
                let client_auth = if client.is_some() { "required" } else { "none" };
                rows.push(Row {
                    port: servers.port(kind, client_auth),
                    version,
                    name,
                    client,
                    echo: twice(peer, true),
                    ..Row::default()
                });
            }
        }
    }
    rows
}

/// Each of the rest once: no name and no certificate, a name and one, suites, groups, a HelloRetryRequest, small records.
fn particular(peer: Peer, servers: &mut Servers) -> Vec<Row> {
    let mut rows = Vec::new();
    let plain = |port, version| Row {
        port,
        version,
        name: NAME,
        echo: twice(peer, false),
        ..Row::default()
    };
    for version in ["1.3", "1.2"] {
        rows.push(Row {
            name: ADDRESS,
            ..plain(servers.port("p256", "none"), version)
        });
        rows.push(plain(servers.port("p256", "requested"), version));
        rows.push(Row {
            client: Some("rsa"),
            ..plain(servers.port("p256", "requested"), version)
        });
        if peer.chooses_groups() {
            for group in ["x25519", "secp256r1"] {
                rows.push(Row {
                    groups: Some(group),
                    ..plain(servers.port("rsa", "none"), version)
                });
            }
        }
    }
    for (version, kind, suites) in [
        ("1.3", "p256", SUITES_13),
        ("1.2", "p256", SUITES_ECDSA),
        ("1.2", "rsa", SUITES_RSA),
    ] {
        for suite in suites.iter().filter(|_| peer.chooses_suites(version)) {
            rows.push(Row {
                suite: Some(suite),
                ..plain(servers.port(kind, "none"), version)
            });
        }
    }
    if peer.can_be_retried() {
        for client in [None, Some("p256")] {
            rows.push(Row {
                groups: Some("secp384r1:secp256r1"),
                client,
                ..plain(servers.port("p256", "requested"), "1.3")
            });
        }
    }
    if peer == Peer::OpenSsl {
        rows.push(Row {
            updates: Some("2"),
            echo: vec![UPDATES],
            ..plain(servers.port("p256", "none"), "1.3")
        });
    }
    if matches!(peer, Peer::GnuTls | Peer::TlsliteNg) {
        for (version, record_size) in [("1.3", "512"), ("1.2", "512"), ("1.3", "4096")] {
            rows.push(Row {
                record_size: Some(record_size),
                // gnutls-cli sends of what it read only so much as one record holds.
                echo: match (peer, record_size) {
                    (Peer::GnuTls, "512") => vec![NOTHING, &[1, 400]],
                    _ => twice(peer, true),
                },
                ..plain(servers.port("rsa", "none"), version)
            });
        }
    }
    rows
}

/// One end's claims against what was asked for.
fn check_claims(row: &Row, connection: usize, said: &Event, echoed: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut expect = |key: &str, wanted: &str| {
        if let Some(value) = said.pair(key)
            && value != wanted
        {
            wrong.push(format!("{key} is {value}, not {wanted}"));
        }
    };
    let sum: usize = row.echo[connection].iter().sum();
    expect("version", row.version);
    expect("resumed", if connection > 0 { "yes" } else { "no" });
    expect(echoed, &sum.to_string());
    if let Some(suite) = row.suite {
        expect("suite", suite);
    }
    if let Some(updates) = row.updates {
        expect("updates", updates);
    }
    match row.groups {
        Some(groups) if groups.contains(':') => {
            expect("group", "secp256r1");
            if connection == 0 {
                expect("retried", "yes");
            }
        }
        Some(group) => {
            expect("group", group);
            expect("retried", "no");
        }
        None => expect("retried", "no"),
    }
    wrong
}

/// The server's line about a connection and the one about its end, against the row and what the client said.
fn check_server(row: &Row, connection: usize, client: &Event, begun: &Event, ended: Option<&Event>) -> Vec<String> {
    let mut wrong = check_claims(row, connection, begun, "received");
    for key in ["version", "suite", "resumed"] {
        if begun.pair(key).is_none() {
            wrong.push(format!("the server does not say {key}"));
        }
    }
    for key in ["version", "suite", "group", "resumed"] {
        if let (Some(theirs), Some(ours)) = (client.pair(key), begun.pair(key))
            && theirs != ours
        {
            wrong.push(format!("{key} is {theirs} to the client, {ours} to the server"));
        }
    }
    let name = (row.name == NAME).then_some(NAME);
    if begun.pair("name") != name {
        wrong.push(format!("the server was told the name {:?}", begun.pair("name")));
    }
    let subject = begun.pair("subject").unwrap_or_default();
    let device = row.client.map_or(String::new(), |kind| format!("device-{kind}"));
    if !subject.contains(&device) || subject.is_empty() != row.client.is_none() {
        wrong.push(format!("the client is {subject:?} to the server"));
    }
    match ended {
        Some(ended) => {
            wrong.extend(check_claims(row, connection, ended, "received"));
            if ended.pair("how") != Some("clean") {
                wrong.push(format!("it ended: {}", ended.line));
            }
        }
        None => wrong.push("the server says nothing of its end".to_owned()),
    }
    wrong
}

/// Runs the rows, and asks both ends about every connection.
fn run(peer: Peer, servers: &Servers, rows: &[Row], arguments: &[&str]) {
    let said = peer.run(rows, arguments);
    let mut wrong = Vec::new();
    let mut connections = 0;
    for ((kind, client_auth), server) in &servers.running {
        let of_it: Vec<(&Row, &Vec<Event>)> = rows
            .iter()
            .zip(&said)
            .filter(|(row, _)| row.port == server.port)
            .collect();
        let expected: usize = of_it.iter().map(|(row, _)| row.echo.len()).sum();
        let clean = of_it
            .iter()
            .all(|(row, said)| said.len() == row.echo.len() && said.iter().all(|s| s.pair("failed").is_none()));
        let heard = if clean {
            server.running.wait_for("the end of each connection", |events| {
                events.iter().filter(|e| e.is("closed")).count() >= expected
            })
        } else {
            server.running.heard()
        };
        let begun: Vec<&Event> = heard.iter().filter(|e| e.is("connected")).collect();
        let mut next = 0;
        for (row, said) in of_it {
            let who = format!(
                "{peer:?} {} {kind}/{client_auth} name {} client {:?} suite {:?} groups {:?} record size {:?}",
                row.version, row.name, row.client, row.suite, row.groups, row.record_size
            );
            for connection in 0..row.echo.len() {
                connections += 1;
                let mut about = |what: Vec<String>| {
                    wrong.extend(what.iter().map(|what| format!("{who} connection {connection}: {what}")));
                };
                let Some(client) = said.get(connection) else {
                    about(vec!["the client says nothing".to_owned()]);
                    continue;
                };
                if let Some(failed) = client.pair("failed") {
                    about(vec![format!("{failed}: {}", client.line)]);
                    // The server may or may not have taken it as begun.
                    next = usize::MAX;
                    break;
                }
                about(check_claims(row, connection, client, "echoed"));
                if clean {
                    let ended = begun.get(next).and_then(|b| {
                        heard
                            .iter()
                            .find(|e| e.is("closed") && e.pair("peer") == b.pair("peer"))
                    });
                    about(match begun.get(next) {
                        Some(begun) => check_server(row, connection, client, begun, ended),
                        None => vec!["the server says nothing of it".to_owned()],
                    });
                    next += 1;
                }
            }
        }
        if !wrong.is_empty() {
            wrong.push(format!("the server of {kind}/{client_auth} said:"));
            wrong.extend(heard.iter().rev().take(40).rev().map(|e| format!("    {}", e.line)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!(
        "ok   {peer:?}: {} rows, {connections} connections {arguments:?}",
        rows.len()
    );
}

/// Everything, over the fast provider; the essential over mbedtls.
pub fn every_row(peer: Peer) {
    let mut servers = Servers::new(ServerProgram::under_test("fast"));
    let mut rows = essential(peer, &mut servers, &["p256", "rsa", "p384"]);
    rows.extend(particular(peer, &mut servers));
    run(peer, &servers, &rows, &[]);
    if let Peer::Java(_) = peer {
        // Groups are chosen for a whole Java: a share for P-384 comes first, so the server asks again.
        let mut servers = Servers::new(ServerProgram::under_test("fast"));
        let row = Row {
            port: servers.port("p256", "none"),
            version: "1.3",
            name: NAME,
            groups: Some("secp384r1:secp256r1"),
            echo: twice(peer, false),
            ..Row::default()
        };
        run(peer, &servers, &[row], &["-Djdk.tls.namedGroups=secp384r1,secp256r1"]);
    }
}

pub fn essential_rows_over_mbedtls(peer: Peer) {
    let mut servers = Servers::new(ServerProgram::under_test("mbedtls"));
    let rows = essential(peer, &mut servers, &["p256", "rsa"]);
    run(peer, &servers, &rows, &[]);
}
