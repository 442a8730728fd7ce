//! What TLS is set up with, listener by listener: the `ssl.` settings taken together.

use std::path::{Path, PathBuf};

use skerry_core::time::Millis;
use skerry_tls::suite::{CipherSuite, Version};

use super::keys::Settings;
use super::principal::PrincipalRules;
use super::value::{ClientAuth, Password, TlsProvider};

/// TLS of one listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerTls {
    /// Our own keys and certificates.
    pub keystore: Keystore,
    /// Whom we trust; there is one when clients are asked for certificates.
    pub truststore: Option<Truststore>,
    /// Whether clients are asked for certificates.
    pub client_auth: ClientAuth,
    /// The versions that are spoken: at least one.
    pub versions: Vec<Version>,
    /// The suites that are spoken, the best first: at least one of those versions.
    pub suites: Vec<CipherSuite>,
    /// From the subject of a client's certificate to its principal.
    pub principal_rules: PrincipalRules,
}

/// Where our keys and certificates come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keystore {
    /// Made for development, in this data directory.
    Development(PathBuf),
    /// A file.
    File {
        /// The file.
        file: StoreFile,
        /// `ssl.key.password`.
        key_password: Option<Password>,
    },
    /// PEM in the settings.
    Inline {
        /// The key and the certificates, one after the other.
        text: Password,
        /// `ssl.key.password`.
        key_password: Option<Password>,
        /// Where it was said, for messages: `server.properties:7: ssl.keystore.key`.
        place: String,
    },
}

/// Where trusted certificates come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Truststore {
    /// A file.
    File(StoreFile),
    /// PEM in the settings.
    Inline {
        /// The certificates.
        text: String,
        /// Where it was said, for messages.
        place: String,
    },
}

/// A store in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreFile {
    /// The file.
    pub path: PathBuf,
    /// What it is said to be, when anything is said.
    pub told: Option<String>,
    /// What opens it.
    pub password: Option<Password>,
    /// Where it was said, for messages: `server.properties:7: ssl.keystore.location=/etc/skerry/server.p12`.
    pub place: String,
}

/// TLS of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientTls {
    /// Our own key and certificates, for brokers that ask for them.
    pub keystore: Option<Keystore>,
    /// Whom we trust.
    pub truststore: Truststore,
    /// The versions that are spoken: at least one.
    pub versions: Vec<Version>,
    /// The suites that are spoken, the best first: at least one of those versions.
    pub suites: Vec<CipherSuite>,
    /// Whether a broker's certificate must bear the name that it is reached by.
    pub checks_names: bool,
}

/// What TLS has in common on all listeners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlsConfig {
    /// `skerry.tls.provider`.
    pub provider: TlsProvider,
    /// `skerry.tls.handshake.timeout.ms`, counted from accept.
    pub handshake_timeout: Millis,
    /// `skerry.tls.tickets`: how many each handshake gives.
    pub tickets: u8,
    /// `skerry.tls.ticket.lifetime.ms`.
    pub ticket_lifetime: Millis,
    /// `skerry.tls.penalty.max.ms`.
    pub penalty_max: Millis,
    /// `skerry.limits.record.buffers`.
    pub record_buffers: u32,
    /// `skerry.limits.handshakes`.
    pub handshakes: u32,
}

/// What is wrong between the settings, or worth telling: the setting, what of its text, and why as the end of a sentence.
pub struct Remark {
    /// The setting's name, without any listener.
    pub key: &'static str,
    /// The part of its text; empty when all of it is meant, or it must not be shown.
    pub part: String,
    /// Why.
    pub why: String,
}

impl Remark {
    fn new(key: &'static str, part: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            key,
            part: part.into(),
            why: why.into(),
        }
    }
}

/// Takes the settings of one listener together. `place` says where a setting was said; `development` in which data directory certificates are
/// made when no settings name any.
///
/// Errors: everything that is wrong. Beside the result stands what is worth telling.
pub fn read(
    s: &Settings,
    development: Option<&Path>,
    place: &dyn Fn(&'static str) -> String,
) -> Result<(ListenerTls, Vec<Remark>), Vec<Remark>> {
    let mut wrong = Vec::new();
    let mut told = Vec::new();
    let keystore = match (keystore(s, place, &mut wrong), development) {
        (None, Some(data_dir)) => Some(Keystore::Development(data_dir.into())),
        (None, None) if wrong.is_empty() => {
            let why = "a listener that speaks SSL needs a private key and a certificate: set this, or ssl.keystore.key and \
                       ssl.keystore.certificate.chain";
            wrong.push(Remark::new("ssl.keystore.location", "", why));
            None
        }
        (named, _) => named,
    };
    let truststore = truststore(s, place, &mut wrong);
    if s.ssl_client_auth != ClientAuth::None && truststore.is_none() {
        wrong.push(Remark::new(
            "ssl.client.auth",
            s.ssl_client_auth.name(),
            "it needs the CAs that sign the clients' certificates: ssl.truststore.location or ssl.truststore.certificates",
        ));
    }
    let versions = versions(s, &mut wrong, &mut told);
    let suites = suites(s, &versions, &mut wrong, &mut told);
    let principal_rules = PrincipalRules::read(&s.ssl_principal_mapping_rules).map_err(|why| {
        wrong.push(Remark::new(
            "ssl.principal.mapping.rules",
            s.ssl_principal_mapping_rules.clone(),
            why,
        ))
    });
    match (keystore, principal_rules) {
        (Some(keystore), Ok(principal_rules)) if wrong.is_empty() => Ok((
            ListenerTls {
                keystore,
                truststore,
                client_auth: s.ssl_client_auth,
                versions,
                suites,
                principal_rules,
            },
            told,
        )),
        _ => Err(wrong),
    }
}

/// Takes the settings of a client together; `checks_names` is its `ssl.endpoint.identification.algorithm`.
///
/// Errors: everything that is wrong. Beside the result stands what is worth telling.
pub fn read_client(
    s: &Settings,
    checks_names: bool,
    place: &dyn Fn(&'static str) -> String,
) -> Result<(ClientTls, Vec<Remark>), Vec<Remark>> {
    let mut wrong = Vec::new();
    let mut told = Vec::new();
    let keystore = keystore(s, place, &mut wrong);
    let truststore = truststore(s, place, &mut wrong);
    if truststore.is_none() && wrong.is_empty() {
        let why = "security.protocol=SSL needs the CAs that sign the brokers' certificates: set this, or ssl.truststore.certificates; \
                   the system's own are usually in /etc/ssl/certs/ca-certificates.crt";
        wrong.push(Remark::new("ssl.truststore.location", "", why));
    }
    let versions = versions(s, &mut wrong, &mut told);
    let suites = suites(s, &versions, &mut wrong, &mut told);
    match truststore {
        Some(truststore) if wrong.is_empty() => Ok((
            ClientTls {
                keystore,
                truststore,
                versions,
                suites,
                checks_names,
            },
            told,
        )),
        _ => Err(wrong),
    }
}

/// The keystore that is named, where one is.
fn keystore(s: &Settings, place: &dyn Fn(&'static str) -> String, wrong: &mut Vec<Remark>) -> Option<Keystore> {
    let mut refuse = |key, part: &str, why: &str| {
        wrong.push(Remark::new(key, part, why));
        None
    };
    match (
        &s.ssl_keystore_location,
        &s.ssl_keystore_key,
        &s.ssl_keystore_certificate_chain,
    ) {
        (Some(path), None, None) => Some(Keystore::File {
            file: StoreFile {
                path: path.into(),
                told: s.ssl_keystore_type.clone(),
                password: s.ssl_keystore_password.clone(),
                place: format!("{}={path}", place("ssl.keystore.location")),
            },
            key_password: s.ssl_key_password.clone(),
        }),
        (None, Some(key), Some(chain)) => Some(Keystore::Inline {
            text: Password::join(key, chain),
            key_password: s.ssl_key_password.clone(),
            place: place("ssl.keystore.key"),
        }),
        (Some(path), ..) => refuse(
            "ssl.keystore.location",
            path,
            "there is also ssl.keystore.key or ssl.keystore.certificate.chain: a keystore is a file or in the settings, not both",
        ),
        (None, Some(_), None) => refuse(
            "ssl.keystore.key",
            "",
            "a private key without a certificate: set ssl.keystore.certificate.chain too",
        ),
        (None, None, Some(_)) => refuse(
            "ssl.keystore.certificate.chain",
            "",
            "a certificate without a private key: set ssl.keystore.key too",
        ),
        (None, None, None) => None,
    }
}

fn truststore(s: &Settings, place: &dyn Fn(&'static str) -> String, wrong: &mut Vec<Remark>) -> Option<Truststore> {
    match (&s.ssl_truststore_location, &s.ssl_truststore_certificates) {
        (Some(path), None) => Some(Truststore::File(StoreFile {
            path: path.into(),
            told: s.ssl_truststore_type.clone(),
            password: s.ssl_truststore_password.clone(),
            place: format!("{}={path}", place("ssl.truststore.location")),
        })),
        (None, Some(text)) => Some(Truststore::Inline {
            text: text.clone(),
            place: place("ssl.truststore.certificates"),
        }),
        (Some(path), Some(_)) => {
            wrong.push(Remark::new(
                "ssl.truststore.location",
                path.as_str(),
                "there is also ssl.truststore.certificates: a truststore is a file or in the settings, not both",
            ));
            None
        }
        (None, None) => None,
    }
}

/// Versions that Java knows and nobody should speak.
const OLD_VERSIONS: [&str; 5] = ["TLSv1.1", "TLSv1", "SSLv3", "SSLv2Hello", "SSLv2"];

fn versions(s: &Settings, wrong: &mut Vec<Remark>, told: &mut Vec<Remark>) -> Vec<Version> {
    const KEY: &str = "ssl.enabled.protocols";
    let mut versions = Vec::new();
    for name in &s.ssl_enabled_protocols.0 {
        let spoken = [Version::Tls12, Version::Tls13];
        match spoken.into_iter().find(|version| version.name() == name) {
            Some(version) if versions.contains(&version) => {}
            Some(version) => versions.push(version),
            None if OLD_VERSIONS.contains(&name.as_str()) => {
                told.push(Remark::new(KEY, name.as_str(), "it is broken, and not spoken here"));
            }
            None => wrong.push(Remark::new(KEY, name.as_str(), "allowed: TLSv1.2, TLSv1.3")),
        }
    }
    if versions.is_empty() && wrong.iter().all(|remark| remark.key != KEY) {
        let text = s.ssl_enabled_protocols.0.join(",");
        wrong.push(Remark::new(
            KEY,
            text,
            "none of these is spoken here: allowed: TLSv1.2, TLSv1.3",
        ));
    }
    versions
}

fn suites(s: &Settings, versions: &[Version], wrong: &mut Vec<Remark>, told: &mut Vec<Remark>) -> Vec<CipherSuite> {
    const KEY: &str = "ssl.cipher.suites";
    let of_versions = |suite: &CipherSuite| versions.contains(&suite.version());
    // Kafka's default is an empty list, which stands for all.
    let Some(names) = s
        .ssl_cipher_suites
        .as_ref()
        .map(|list| &list.0)
        .filter(|names| !names.is_empty())
    else {
        return CipherSuite::ALL.iter().copied().filter(of_versions).collect();
    };
    let mut suites: Vec<CipherSuite> = Vec::new();
    for name in names {
        match CipherSuite::ALL.iter().find(|suite| is_called(suite.name(), name)) {
            Some(suite) if suites.contains(suite) => {}
            Some(suite) => suites.push(*suite),
            None if is_java_s(name) => {
                told.push(Remark::new(KEY, name.as_str(), "it is not spoken here, and left out"));
            }
            None => {
                let near = CipherSuite::ALL
                    .iter()
                    .min_by_key(|suite| strsim::damerau_levenshtein(name, suite.name()))
                    .map_or("", |suite| suite.name());
                wrong.push(Remark::new(
                    KEY,
                    name.as_str(),
                    format!("there is no such suite; did you mean {near}?"),
                ));
            }
        }
    }
    suites.retain(of_versions);
    if suites.is_empty() && wrong.iter().all(|remark| remark.key != KEY) {
        let why = "none of these is spoken here in any of ssl.enabled.protocols; skerry config lists those that are";
        wrong.push(Remark::new(KEY, names.join(","), why));
    }
    for version in versions {
        if !suites.is_empty() && !suites.iter().any(|suite| suite.version() == *version) {
            let why = format!("none of these is for {}, which is therefore not spoken", version.name());
            told.push(Remark::new(KEY, names.join(","), why));
        }
    }
    suites
}

/// Java takes `SSL_` for `TLS_`, as some of its makers write.
fn is_called(suite: &str, name: &str) -> bool {
    let tail = |name: &str| {
        name.strip_prefix("TLS_")
            .or(name.strip_prefix("SSL_"))
            .map(str::to_owned)
    };
    tail(name).is_some() && tail(suite) == tail(name)
}

/// Whether the name is made as Java makes them of suites that are not spoken here.
fn is_java_s(name: &str) -> bool {
    const EXCHANGES: [&str; 12] = [
        "RSA",
        "DH_anon",
        "DHE_DSS",
        "DHE_RSA",
        "ECDH_anon",
        "ECDH_ECDSA",
        "ECDH_RSA",
        "ECDHE_ECDSA",
        "ECDHE_RSA",
        "KRB5",
        "ECDHE_PSK",
        "PSK",
    ];
    const CIPHERS: [&str; 12] = [
        "AES_128_CBC",
        "AES_256_CBC",
        "AES_128_GCM",
        "AES_256_GCM",
        "AES_128_CCM",
        "AES_256_CCM",
        "CHACHA20_POLY1305",
        "3DES_EDE_CBC",
        "DES_CBC",
        "RC4_128",
        "NULL",
        "CAMELLIA_128_CBC",
    ];
    const HASHES: [&str; 4] = ["SHA", "SHA256", "SHA384", "MD5"];
    let Some(rest) = name.strip_prefix("TLS_").or(name.strip_prefix("SSL_")) else {
        return false;
    };
    if matches!(
        rest,
        "EMPTY_RENEGOTIATION_INFO_SCSV" | "FALLBACK_SCSV" | "AES_128_CCM_SHA256" | "AES_128_CCM_8_SHA256"
    ) {
        return true;
    }
    let Some((exchange, rest)) = rest.split_once("_WITH_") else {
        return false;
    };
    EXCHANGES.contains(&exchange)
        && rest
            .rsplit_once('_')
            .is_some_and(|(cipher, hash)| CIPHERS.contains(&cipher) && HASHES.contains(&hash))
}
