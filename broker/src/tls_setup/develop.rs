//! Certificates for whoever tries the broker out: a CA and what it signs, made once in the data directory.
//!
//! `tls/ca.pem` is for clients to trust, `tls/client.pem` for those that show a certificate, and `tls/client.properties` tells Kafka's tools
//! and ours of both. The CA stays the same, so that clients need not be set up again; the broker's certificate is made anew when it nears its
//! end or the machine has another name.

use std::fs;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use skerry_core::time::Timestamp;
use skerry_tls::certificate::ServerName;
use skerry_tls::crypto::Random;
use skerry_tls::x509::certificate::Certificate;
use skerry_tls::x509::develop::{Issued, Validity};
use skerry_tls::x509::{is_named, pem};
use zeroize::Zeroizing;

use super::Problem;
use crate::keystore::{self, Identity};

const DAY_MS: i64 = 86_400_000;
/// How long the CA is good for.
const CA_DAYS: i64 = 3650;
/// How long what it signs is good for.
const LEAF_DAYS: i64 = 365;
/// What is left of that when it is made anew.
const RENEW_DAYS: i64 = 30;

/// The settings for Kafka's tools.
const PROPERTIES: &str = "client.properties";

/// The certificates of this machine.
pub struct Development {
    /// The broker's own.
    pub identity: Identity,
    directory: PathBuf,
}

impl Development {
    /// The certificates under `data_dir`, made where they are missing or near their end; what was made is told in `notices`.
    ///
    /// Errors: the directory cannot be written.
    pub fn in_directory(
        data_dir: &Path,
        now: Timestamp,
        random: &mut dyn Random,
        notices: &mut Vec<String>,
    ) -> Result<Self, Problem> {
        let directory = Self::directory(data_dir);
        let maker = Maker {
            directory: &directory,
            now,
        };
        let problem = |what: &str, error: &dyn core::fmt::Display| {
            Problem(format!(
                "development certificates in {}: {what}: {error}",
                directory.display()
            ))
        };
        fs::create_dir_all(&directory).map_err(|error| problem("the directory cannot be made", &error))?;
        let ca = match maker.ca() {
            Some(ca) => ca,
            None => {
                let made = Issued::authority("Skerry development CA", maker.validity(CA_DAYS), random)
                    .map_err(|error| problem("the CA cannot be made", &format_args!("{error:?}")))?;
                maker
                    .write("ca.key", 0o600, &[pem::write("PRIVATE KEY", &made.key)])
                    .and_then(|()| maker.write("ca.pem", 0o644, &[pem::write("CERTIFICATE", &made.certificate)]))
                    .map_err(|error| problem("the CA cannot be written", &error))?;
                notices.push(format!(
                    "a development CA was made: {}",
                    directory.join("ca.pem").display()
                ));
                made
            }
        };
        let host = host_name();
        let mut names = vec![
            ServerName::Dns("localhost"),
            ServerName::Ip(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            ServerName::Ip(IpAddr::V6(Ipv6Addr::LOCALHOST)),
        ];
        names.extend(host.as_deref().filter(|host| *host != "localhost").map(ServerName::Dns));
        let cannot = |error: skerry_tls::crypto::CryptoError| {
            problem("a certificate cannot be made", &format_args!("{error:?}"))
        };
        if maker.leaf("client.pem", &ca, &[]).is_none() {
            let made = ca
                .client("skerry-client", maker.validity(LEAF_DAYS), random)
                .map_err(cannot)?;
            maker
                .write_identity("client.pem", &made, &ca)
                .map_err(|error| problem("client.pem cannot be written", &error))?;
        }
        let identity = match maker.leaf("server.pem", &ca, &names) {
            Some(identity) => identity,
            None => {
                let made = ca.server(&names, maker.validity(LEAF_DAYS), random).map_err(cannot)?;
                maker
                    .write_identity("server.pem", &made, &ca)
                    .map_err(|error| problem("server.pem cannot be written", &error))?;
                maker
                    .leaf("server.pem", &ca, &names)
                    .ok_or_else(|| problem("server.pem", &"it cannot be read back"))?
            }
        };
        maker
            .write_properties()
            .map_err(|error| problem("client.properties cannot be written", &error))?;
        Ok(Self { identity, directory })
    }

    /// Where they are.
    pub fn directory(data_dir: &Path) -> PathBuf {
        data_dir.join("tls")
    }

    /// The certificate that clients trust.
    pub fn ca(data_dir: &Path) -> PathBuf {
        Self::directory(data_dir).join("ca.pem")
    }

    /// The settings for Kafka's tools.
    pub fn properties(data_dir: &Path) -> PathBuf {
        Self::directory(data_dir).join(PROPERTIES)
    }

    /// How a sentence about the broker's own begins.
    pub fn place(&self) -> String {
        format!(
            "the development certificate {}",
            self.directory.join("server.pem").display()
        )
    }
}

struct Maker<'a> {
    directory: &'a Path,
    now: Timestamp,
}

impl Maker<'_> {
    /// From a day ago, for clients whose clocks are behind.
    const fn validity(&self, days: i64) -> Validity {
        Validity {
            not_before: Timestamp(self.now.0.saturating_sub(DAY_MS)),
            not_after: Timestamp(self.now.0.saturating_add(days * DAY_MS)),
        }
    }

    /// Whether its end is far enough. Its begin may lie ahead: a machine without a battery starts in 1970.
    fn is_good(&self, der: &[u8]) -> bool {
        let soon = Timestamp(self.now.0.saturating_add(RENEW_DAYS * DAY_MS));
        Certificate::read(der).is_ok_and(|one| one.not_after > soon)
    }

    /// The CA that was made before, while it is good.
    fn ca(&self) -> Option<Issued> {
        let (key, certificate) = (self.read("ca.key")?, self.read("ca.pem")?);
        let both = Zeroizing::new([key.as_slice(), certificate.as_slice()].concat());
        let mut identity = keystore::identities(&both, None, None).ok()?.value.pop()?;
        let certificate = identity.chain.pop()?;
        self.is_good(&certificate).then_some(Issued {
            certificate,
            key: identity.key,
        })
    }

    /// A certificate that was made before, while it is good, for these names, and this CA's.
    fn leaf(&self, file: &str, ca: &Issued, names: &[ServerName<'_>]) -> Option<Identity> {
        let identity = keystore::identities(&self.read(file)?, None, None).ok()?.value.pop()?;
        let [leaf, above] = identity.chain.as_slice() else {
            return None;
        };
        let read = Certificate::read(leaf).ok()?;
        let named = names
            .iter()
            .all(|name| is_named(read.extensions.subject_alt_name, *name));
        (named && self.is_good(leaf) && *above == ca.certificate).then_some(identity)
    }

    fn read(&self, file: &str) -> Option<Zeroizing<Vec<u8>>> {
        keystore::file(&self.directory.join(file)).ok()
    }

    fn write_identity(&self, file: &str, made: &Issued, ca: &Issued) -> io::Result<()> {
        let blocks = [
            pem::write("PRIVATE KEY", &made.key),
            pem::write("CERTIFICATE", &made.certificate),
            pem::write("CERTIFICATE", &ca.certificate),
        ];
        self.write(file, 0o600, &blocks)
    }

    /// Writes the settings of clients, unless there are some: whoever changed them keeps them.
    fn write_properties(&self) -> io::Result<()> {
        if self.directory.join(PROPERTIES).exists() {
            return Ok(());
        }
        // A tool may be started anywhere. A backslash begins an escape in this format.
        let path = |file: &str| -> io::Result<String> {
            let path = self.directory.canonicalize()?.join(file);
            Ok(path.display().to_string().replace('\\', "\\\\"))
        };
        let text = format!(
            "# For --command-config of skerry and of Kafka's own tools. It is not written again: change what you like.\n\
             security.protocol=SSL\n\
             ssl.truststore.type=PEM\n\
             ssl.truststore.location={}\n\
             # Shown to a broker that asks (ssl.client.auth).\n\
             ssl.keystore.type=PEM\n\
             ssl.keystore.location={}\n",
            path("ca.pem")?,
            path("client.pem")?
        );
        self.write(PROPERTIES, 0o644, &[Zeroizing::new(text)])
    }

    /// Writes a file whole or not at all.
    fn write(&self, file: &str, mode: u32, blocks: &[Zeroizing<String>]) -> io::Result<()> {
        let under_way = self.directory.join(format!("{file}.new"));
        let mut out = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(mode)
            .open(&under_way)?;
        // One that was left behind may have another mode.
        out.set_permissions(fs::Permissions::from_mode(mode))?;
        for block in blocks {
            out.write_all(block.as_bytes())?;
        }
        out.sync_all()?;
        fs::rename(&under_way, self.directory.join(file))
    }
}

/// The name of this machine, where it is one that a certificate can bear.
fn host_name() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    let name = name.trim();
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let is_host = name.len() <= 253 && name.split('.').all(label) && name.parse::<IpAddr>().is_err();
    is_host.then(|| name.to_owned())
}
