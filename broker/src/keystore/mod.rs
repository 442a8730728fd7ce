//! Stores of keys and certificates as Kafka's `server.properties` names them: JKS, JCEKS, PKCS#12 and PEM.
//!
//! The format is seen from the bytes, whatever the file is called and whatever `type` says. What comes out is the same for all:
//! [`Identity`] from a keystore, [`Anchors`] from a truststore. Each mistake has its own sentence ([`Mistake`]).
//!
//! Read at start and at a reload, never for a peer. Everything is bounded: the file by [`STORE_BYTES_MAX`], the hashing that it may ask
//! for by `pbe::ROUNDS_MAX`. Passwords and keys are wiped when dropped and stand in no message.

mod certificate;
mod der;
mod jks;
mod key;
mod mistake;
mod pbe;
mod pem;
mod pkcs12;

use std::fmt;
use std::io::Read;
use std::path::Path;

use zeroize::Zeroizing;

pub use mistake::{KeyName, Mistake};

use certificate::Certificate;
use pbe::{Effort, Failed, Password};

/// The largest store that is read. The bundle of all public CAs has 0.25 MB. When full: [`Mistake::TooLarge`].
pub const STORE_BYTES_MAX: usize = 2 << 20;

/// The most private keys that are looked at in one store. When full: [`Mistake::TooMany`].
pub const KEYS_MAX: usize = 64;

/// The most certificates that are looked at in one store. When full: [`Mistake::TooMany`].
pub const CERTIFICATES_MAX: usize = 4096;

/// A private key and the certificates that speak for it.
#[derive(Clone)]
pub struct Identity {
    /// Its alias, where the store has one.
    pub name: KeyName,
    /// DER certificates: the key's own first, each the issuer of the one before.
    pub chain: Vec<Vec<u8>>,
    /// The key: unencrypted PKCS#8, DER, of a kind that TLS here signs with.
    pub key: Zeroizing<Vec<u8>>,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("name", &self.name)
            .field("certificates", &self.chain.len())
            .finish_non_exhaustive()
    }
}

/// The certificates that are trusted, DER, in the order of the store, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Anchors(pub Vec<Vec<u8>>);

/// What was found in a store.
#[derive(Clone, Debug)]
pub struct Found<T> {
    /// It.
    pub value: T,
    /// What the store is.
    pub format: Format,
    /// What whoever set this up should know: each the end of a sentence that has named the setting and the file.
    pub notices: Vec<String>,
}

/// What a store is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The JDK's first format.
    Jks,
    /// The JDK's second, with better encryption of keys.
    Jceks,
    /// PKCS#12, also called PFX.
    Pkcs12,
    /// Text.
    Pem,
}

impl Format {
    /// The format called so in `ssl.keystore.type`.
    pub fn named(name: &str) -> Option<Self> {
        let all = [Self::Jks, Self::Jceks, Self::Pkcs12, Self::Pem];
        all.into_iter().find(|format| {
            let same = |other: &str| name.eq_ignore_ascii_case(other);
            same(format.name()) || (*format == Self::Pkcs12 && (same("PKCS12") || same("PFX") || same("P12")))
        })
    }

    /// What people call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Jks => "JKS",
            Self::Jceks => "JCEKS",
            Self::Pkcs12 => "PKCS#12",
            Self::Pem => "PEM",
        }
    }

    /// What a file's extension promises.
    fn of_extension(path: &Path) -> Option<Self> {
        Some(match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "jks" => Self::Jks,
            "jceks" => Self::Jceks,
            "p12" | "pfx" | "pkcs12" => Self::Pkcs12,
            "pem" | "crt" | "cer" | "key" => Self::Pem,
            _ => return None,
        })
    }

    /// What `bytes` are.
    ///
    /// Errors: a sentence for what is none of the formats but known.
    fn recognise(bytes: &[u8]) -> Result<Self, Mistake> {
        if bytes.is_empty() {
            Err(Mistake::Empty)
        } else if bytes.starts_with(&jks::MAGIC) {
            Ok(Self::Jks)
        } else if bytes.starts_with(&jks::MAGIC_JCEKS) {
            Ok(Self::Jceks)
        } else if pkcs12::is_pkcs12(bytes) {
            Ok(Self::Pkcs12)
        } else if pem::is_pem(bytes) {
            Ok(Self::Pem)
        } else if Certificate::read(bytes).is_ok() {
            Err(Mistake::BareCertificate)
        } else if key::is_pkcs8(bytes) {
            Err(Mistake::BareKey)
        } else {
            Err(Mistake::Unrecognised)
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a store is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Our own keys.
    Keystore,
    /// Whom we trust.
    Truststore,
}

impl Purpose {
    /// The setting of its password.
    pub const fn password_key(self) -> &'static str {
        match self {
            Self::Keystore => "ssl.keystore.password",
            Self::Truststore => "ssl.truststore.password",
        }
    }
}

/// Reads the file at `path`.
///
/// Errors: it is not there, cannot be read, is no regular file, or is larger than [`STORE_BYTES_MAX`].
pub fn file(path: &Path) -> Result<Zeroizing<Vec<u8>>, Mistake> {
    let failed = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => Mistake::Missing,
        _ => Mistake::Unreadable(error.to_string()),
    };
    // Asked before it is opened: opening a pipe would wait for a writer.
    let metadata = std::fs::metadata(path).map_err(failed)?;
    if !metadata.is_file() {
        return Err(Mistake::NotAFile);
    }
    // One byte more than is allowed, so that the buffer never grows and leaves no copies.
    let mut bytes = Zeroizing::new(Vec::with_capacity(STORE_BYTES_MAX + 1));
    let file = std::fs::File::open(path).map_err(failed)?;
    file.take(STORE_BYTES_MAX as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() > STORE_BYTES_MAX {
        return Err(Mistake::TooLarge);
    }
    Ok(bytes)
}

/// What to say when a store is not what it was said to be: by `told`, the text of its `type` setting, or else by its extension.
pub fn mismatch(found: Format, told: Option<&str>, path: Option<&Path>) -> Option<String> {
    if let Some(told) = told {
        return (Format::named(told) != Some(found))
            .then(|| format!("it is {found}, not {told}, and read as what it is"));
    }
    let promised = Format::of_extension(path?)?;
    (promised != found).then(|| format!("it is {found}, not {promised} as it is called, and read as what it is"))
}

/// Every private key of a keystore with its chain, in the order of the store.
///
/// `password` opens the store, `key_password` the keys; without the latter the former does, as in Kafka.
pub fn identities(
    bytes: &[u8],
    password: Option<&str>,
    key_password: Option<&str>,
) -> Result<Found<Vec<Identity>>, Mistake> {
    let mut effort = Effort::new();
    let format = Format::recognise(bytes)?;
    let contents = Contents::read(bytes, format, password, Purpose::Keystore, &mut effort)?;
    if contents.keys.is_empty() {
        return Err(contents.without_key());
    }
    let shared: Vec<&Vec<u8>> = contents.loose.iter().chain(&contents.trusted).collect();
    let mut identities = Vec::with_capacity(contents.keys.len());
    let mut used: Vec<&[u8]> = Vec::new();
    for entry in &contents.keys {
        let candidates: Vec<&[u8]> = entry
            .chain
            .iter()
            .chain(shared.iter().copied())
            .map(Vec::as_slice)
            .collect();
        if candidates.is_empty() {
            return Err(Mistake::KeyWithoutCertificate(entry.name.clone()));
        }
        if let Some(bad) = candidates.iter().position(|der| Certificate::read(der).is_err()) {
            return Err(Mistake::BadCertificate(bad + 1));
        }
        let key = entry.open(format, password, key_password, &mut effort)?;
        key::check(&key)?;
        let leaf = leaf(&key, entry, &candidates)?;
        let chain = certificate::chain(&candidates, leaf);
        let chain: Vec<&[u8]> = chain.into_iter().filter_map(|at| candidates.get(at).copied()).collect();
        used.extend(&chain);
        identities.push(Identity {
            name: entry.name.clone(),
            chain: chain.into_iter().map(<[u8]>::to_vec).collect(),
            key,
        });
    }
    let mut notices = Vec::new();
    let unused = contents.loose.iter().filter(|der| !used.contains(&der.as_slice()));
    match unused.count() {
        0 => {}
        1 => notices.push("one certificate is of no key's chain and left aside".into()),
        count => notices.push(format!("{count} certificates are of no key's chain and left aside")),
    }
    Ok(Found {
        value: identities,
        format,
        notices,
    })
}

/// Every certificate of a truststore.
pub fn anchors(bytes: &[u8], password: Option<&str>) -> Result<Found<Anchors>, Mistake> {
    let format = Format::recognise(bytes)?;
    let contents = Contents::read(bytes, format, password, Purpose::Truststore, &mut Effort::new())?;
    let mut notices = Vec::new();
    let mut found: Vec<Vec<u8>> = Vec::new();
    let mut add = |der: &Vec<u8>| {
        if !found.contains(der) {
            found.push(der.clone());
        }
    };
    contents.trusted.iter().for_each(&mut add);
    if contents.keys.is_empty() {
        contents.loose.iter().for_each(&mut add);
        if format == Format::Pkcs12 && !contents.loose.is_empty() {
            notices.push(
                "its certificates lack the mark by which Java knows trusted ones (keytool -importcert sets it); they are trusted here, \
                 while Kafka would find none"
                    .into(),
            );
        }
    } else if format == Format::Pem {
        // A file with everything in it: its roots are whom it trusts.
        let root = |der: &&Vec<u8>| Certificate::read(der).is_ok_and(|one| one.is_self_issued());
        contents.loose.iter().filter(root).for_each(&mut add);
    }
    if found.is_empty() {
        return Err(if !contents.keys.is_empty() {
            Mistake::KeystoreAsTruststore
        } else if contents.has_request {
            Mistake::CertificateRequest
        } else {
            Mistake::EmptyTruststore
        });
    }
    if let Some(bad) = found.iter().position(|der| Certificate::read(der).is_err()) {
        return Err(Mistake::BadCertificate(bad + 1));
    }
    if !contents.keys.is_empty() {
        notices.push("it also holds a private key, which a truststore has no use for".into());
    }
    Ok(Found {
        value: Anchors(found),
        format,
        notices,
    })
}

/// What is in a store, keys still closed.
#[derive(Default)]
struct Contents {
    keys: Vec<Entry>,
    /// Certificates that the store calls trusted.
    trusted: Vec<Vec<u8>>,
    /// Certificates of which it does not say whose they are.
    loose: Vec<Vec<u8>>,
    /// Whether there is a certificate request.
    has_request: bool,
}

impl Contents {
    fn read(
        bytes: &[u8],
        format: Format,
        password: Option<&str>,
        purpose: Purpose,
        effort: &mut Effort,
    ) -> Result<Self, Mistake> {
        let contents = match format {
            Format::Jks | Format::Jceks => jks::read(bytes, format, password, purpose),
            Format::Pkcs12 => pkcs12::read(bytes, password, purpose, effort),
            Format::Pem => pem::read(bytes),
        }?;
        let chains: usize = contents.keys.iter().map(|entry| entry.chain.len()).sum();
        let certificates = chains + contents.trusted.len() + contents.loose.len();
        if contents.keys.len() > KEYS_MAX || certificates > CERTIFICATES_MAX {
            return Err(Mistake::TooMany);
        }
        Ok(contents)
    }

    fn without_key(&self) -> Mistake {
        match self.trusted.len() + self.loose.len() {
            0 if self.has_request => Mistake::CertificateRequest,
            0 => Mistake::EmptyKeystore,
            count => Mistake::TruststoreAsKeystore(count),
        }
    }
}

/// A private key and the certificates that the store keeps with it.
struct Entry {
    name: KeyName,
    sealed: Sealed,
    chain: Vec<Vec<u8>>,
}

/// How a key is kept.
enum Sealed {
    /// Not encrypted: PKCS#8.
    Plain(Zeroizing<Vec<u8>>),
    /// An EncryptedPrivateKeyInfo (RFC 5958 §3).
    Pkcs8(Zeroizing<Vec<u8>>),
    /// By JKS's own algorithm.
    Jks(Vec<u8>),
}

impl Entry {
    const fn without_chain(sealed: Sealed) -> Self {
        Self {
            name: KeyName(None),
            sealed,
            chain: Vec::new(),
        }
    }

    /// The key, PKCS#8.
    fn open(
        &self,
        format: Format,
        password: Option<&str>,
        key_password: Option<&str>,
        effort: &mut Effort,
    ) -> Result<Zeroizing<Vec<u8>>, Mistake> {
        let sealed = match &self.sealed {
            Sealed::Plain(key) if key::is_pkcs8(key) => return Ok(key.clone()),
            Sealed::Plain(_) => return Err(Mistake::BadKey),
            sealed => sealed,
        };
        let Some(text) = key_password.or(password) else {
            return Err(match format {
                Format::Pem => Mistake::EncryptedKey,
                _ => Mistake::NeedsPassword(Purpose::Keystore),
            });
        };
        let opened = match sealed {
            Sealed::Jks(data) => pbe::jks(data, &pbe::utf16(text)),
            Sealed::Pkcs8(der) | Sealed::Plain(der) => encrypted(der, text, effort),
        };
        let opened = opened.and_then(|key| {
            if key::is_pkcs8(&key) {
                Ok(key)
            } else {
                Err(Failed::Wrong)
            }
        });
        opened.map_err(|failed| match failed {
            // A store's password that no key of that format can have.
            Failed::Characters if key_password.is_none() => Mistake::NeedsKeyPassword(self.name.clone()),
            _ if key_password.is_some() || format == Format::Pem => {
                failed.mistake(format, Mistake::WrongKeyPassword(self.name.clone()))
            }
            _ => failed.mistake(format, Mistake::NeedsKeyPassword(self.name.clone())),
        })
    }
}

/// Opens an EncryptedPrivateKeyInfo.
fn encrypted(der: &[u8], text: &str, effort: &mut Effort) -> Result<Zeroizing<Vec<u8>>, Failed> {
    let mut inside = der::Der::new(der).enter(der::tag::SEQUENCE)?;
    let algorithm = der::Algorithm::read(&mut inside)?;
    let data = inside.take(der::tag::OCTET_STRING)?;
    let opened = pbe::decrypt(algorithm, data, &Password::new(text), effort);
    if text.is_empty() && opened == Err(Failed::Wrong) {
        return pbe::decrypt(algorithm, data, &Password::none(), effort);
    }
    opened
}

/// The place of the key's own certificate among `candidates`.
fn leaf(key: &[u8], entry: &Entry, candidates: &[&[u8]]) -> Result<usize, Mistake> {
    let told: Vec<Option<bool>> = candidates
        .iter()
        .map(|der| Certificate::read(der).ok().and_then(|one| key::matches(key, &one)))
        .collect();
    if let Some(own) = told.iter().position(|told| *told == Some(true)) {
        return Ok(own);
    }
    // The key does not tell its public half: the store's word, or the only certificate that can be a leaf.
    let open: Vec<usize> = (0..told.len()).filter(|at| told.get(*at) == Some(&None)).collect();
    if !entry.chain.is_empty() && open.first() == Some(&0) {
        return Ok(0);
    }
    let likely: Vec<&[u8]> = open.iter().filter_map(|at| candidates.get(*at).copied()).collect();
    certificate::likely_leaf(&likely)
        .and_then(|at| open.get(at).copied())
        .or(open.first().copied())
        .ok_or(Mistake::KeyMismatch)
}

#[cfg(test)]
mod tests;
