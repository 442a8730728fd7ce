//! What a broker needs to speak TLS: the fixtures' certificates as files, and the settings that name them.

use std::fs;
use std::path::Path;

use skerry_tls::testing::Fixture;
use skerry_tls::x509::pem;

/// Listeners in plain and over TLS, and one of the name `MUTUAL` that asks for certificates of [`Fixture::CA`].
pub const LISTENERS: &str = "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0,MUTUAL://127.0.0.1:0";

/// Writes what [`LISTENERS`] need to `directory`; the settings. The broker's certificate is [`Fixture::P256`].
///
/// Panics when they cannot be written.
#[must_use]
pub fn settings(directory: &Path) -> Vec<String> {
    let (own, ca) = (directory.join("own.pem"), directory.join("ca.pem"));
    let certificate = |fixture: Fixture| pem::write("CERTIFICATE", fixture.certificate);
    let key = pem::write("PRIVATE KEY", Fixture::P256.key);
    fs::write(&own, format!("{}{}", *key, *certificate(Fixture::P256))).expect("written");
    fs::write(&ca, certificate(Fixture::CA).as_str()).expect("written");
    vec![
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SSL:SSL,MUTUAL:SSL".into(),
        format!("ssl.keystore.location={}", own.display()),
        format!("ssl.truststore.location={}", ca.display()),
        "listener.name.mutual.ssl.client.auth=required".into(),
    ]
}
