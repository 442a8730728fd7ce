//! Other TLS libraries against ours, in both roles.
//!
//! They need the peers, which `tests/setup.sh test` installs and builds; `make test` runs them, or one by name with
//! `cargo test -p skerry-tests --test tls_peers -- --ignored --nocapture gnutls`. `SKERRY_TLS_SERVER=rustls` (or `go`) puts that library in
//! our server's place, to try the peers themselves.

mod client_failures;
mod failures;
mod matrix;
mod peers;
mod programs;
mod scanners;
mod servers;

use peers::Peer;
use servers::Theirs;

macro_rules! clients {
    ($($name:ident $mbedtls:ident $peer:expr,)*) => {
        $(
            #[test]
            #[ignore = "needs the peers: tests/setup.sh test"]
            fn $name() {
                matrix::every_row($peer);
            }

            #[test]
            #[ignore = "needs the peers: tests/setup.sh test"]
            fn $mbedtls() {
                matrix::essential_rows_over_mbedtls($peer);
            }
        )*
    };
}

clients! {
    client_openssl client_openssl_over_mbedtls Peer::OpenSsl,
    client_gnutls client_gnutls_over_mbedtls Peer::GnuTls,
    client_java_17 client_java_17_over_mbedtls Peer::Java(17),
    client_java_25 client_java_25_over_mbedtls Peer::Java(25),
    client_go client_go_over_mbedtls Peer::Go,
    client_node client_node_over_mbedtls Peer::Node,
    client_python client_python_over_mbedtls Peer::Python,
    client_rustls client_rustls_over_mbedtls Peer::Rustls,
    client_tlslite_ng client_tlslite_ng_over_mbedtls Peer::TlsliteNg,
}

macro_rules! servers {
    ($($name:ident $theirs:expr,)*) => {
        $(
            #[test]
            #[ignore = "needs the peers: tests/setup.sh test"]
            fn $name() {
                servers::every_row($theirs);
            }
        )*
    };
}

servers! {
    server_openssl Theirs::OpenSsl,
    server_gnutls Theirs::GnuTls,
    server_go Theirs::Go,
    server_rustls Theirs::Rustls,
}

#[test]
#[ignore = "needs the scanners: tests/setup.sh test"]
fn scanner_sslscan() {
    scanners::sslscan();
}

#[test]
#[ignore = "needs the scanners: tests/setup.sh test"]
fn scanner_nmap() {
    scanners::nmap();
}

#[test]
#[ignore = "needs the scanners: tests/setup.sh test"]
fn scanner_testssl() {
    scanners::testssl();
}

#[test]
#[ignore = "needs the peers: tests/setup.sh test"]
fn failures_of_every_cause() {
    failures::every_cause(failures::TlsHttp::default());
}

#[test]
#[ignore = "needs the peers: tests/setup.sh test"]
fn failures_of_every_cause_at_the_broker() {
    failures::every_cause(failures::Brokers::start(3));
}

#[test]
#[ignore = "needs the peers: tests/setup.sh test"]
fn failures_around_tls_at_the_broker() {
    failures::around_tls();
}

#[test]
#[ignore = "needs the peers: tests/setup.sh test"]
fn failures_of_our_client() {
    client_failures::every_cause();
    client_failures::every_certificate();
    client_failures::what_a_server_refuses();
}
