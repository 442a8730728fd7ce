//! What can be wrong with a store, each with a sentence of its own that says what to change.

use core::fmt;

use super::{CERTIFICATES_MAX, Format, KEYS_MAX, Purpose, STORE_BYTES_MAX};

/// What is wrong with a store. It is shown as the end of a sentence that has named the setting and the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// There is no such file.
    Missing,
    /// It cannot be read: what the system says.
    Unreadable(String),
    /// A directory, a pipe or a device.
    NotAFile,
    /// More than [`STORE_BYTES_MAX`].
    TooLarge,
    /// No bytes.
    Empty,
    /// None of the formats.
    Unrecognised,
    /// It ends too early.
    Truncated(Format),
    /// Bytes of that format that make no sense: which part.
    Malformed(Format, &'static str),
    /// One certificate in DER and nothing around it.
    BareCertificate,
    /// A private key in DER and nothing around it.
    BareKey,
    /// PKCS#7.
    Pkcs7,
    /// A certificate request where a certificate belongs.
    CertificateRequest,
    /// A key in OpenSSH's own format.
    OpenSsh,
    /// The store is encrypted and no password is set.
    NeedsPassword(Purpose),
    /// The store's password is wrong.
    WrongPassword(Purpose),
    /// The key does not open with the store's password, and no other is set.
    NeedsKeyPassword(KeyName),
    /// The key does not open with `ssl.key.password`.
    WrongKeyPassword(KeyName),
    /// A key password with characters that the store's format cannot have.
    KeyPasswordCharacters,
    /// A PEM key that is encrypted, and no password is set.
    EncryptedKey,
    /// A PEM key that is encrypted in the manner of OpenSSL before PKCS#8.
    EncryptedTraditionally,
    /// Encrypted or protected by an algorithm that is not read: its identifier.
    Encryption(String),
    /// It asks for more rounds or memory than any tool writes.
    Costly,
    /// More than [`KEYS_MAX`] keys or [`CERTIFICATES_MAX`] certificates.
    TooMany,
    /// A truststore is wanted; this has a private key and its certificate, and no trusted one.
    KeystoreAsTruststore,
    /// A keystore is wanted; this has as many certificates and no private key.
    TruststoreAsKeystore(usize),
    /// A truststore without certificates.
    EmptyTruststore,
    /// A keystore without anything.
    EmptyKeystore,
    /// The key has no certificate.
    KeyWithoutCertificate(KeyName),
    /// In-line certificates without `ssl.keystore.key`.
    CertificateWithoutKey,
    /// None of the certificates bears the key's public half.
    KeyMismatch,
    /// A certificate that cannot be read: its place, from 1.
    BadCertificate(usize),
    /// A private key that cannot be read.
    BadKey,
    /// A key of a kind that no TLS here signs with: what it is.
    UnsupportedKey(String),
    /// A secret key, which only other programs have a use for: the format cannot be read past it.
    SecretKey,
}

/// A key as a message calls it: by its alias, where it has one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyName(pub Option<String>);

impl fmt::Display for KeyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the private key")?;
        match &self.0 {
            Some(alias) => write!(f, " {alias}"),
            None => Ok(()),
        }
    }
}

impl Mistake {
    /// A part of `format` that makes no sense, or ends too early.
    pub(super) const fn of(format: Format, malformed: super::der::Malformed, part: &'static str) -> Self {
        match malformed {
            super::der::Malformed::Truncated => Self::Truncated(format),
            super::der::Malformed::Unexpected => Self::Malformed(format, part),
        }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("there is no such file"),
            Self::Unreadable(why) => write!(f, "it cannot be read: {why}"),
            Self::NotAFile => f.write_str("it is no regular file"),
            Self::TooLarge => write!(f, "it is larger than {} MiB, which no store needs", STORE_BYTES_MAX >> 20),
            Self::Empty => f.write_str("it is empty"),
            Self::Unrecognised => f.write_str("it is none of JKS, JCEKS, PKCS#12 and PEM"),
            Self::Truncated(format) => write!(f, "this {format} store ends too early: the file was cut; copy it again"),
            Self::Malformed(format, part) => write!(f, "this {format} store is damaged: its {part} cannot be read"),
            Self::BareCertificate => f.write_str(
                "it is a single DER certificate; make it PEM: openssl x509 -inform der -in FILE -out FILE.pem",
            ),
            Self::BareKey => f.write_str(
                "it is a single DER key; make it PEM, with its certificates beside it: openssl pkey -inform der -in FILE -out FILE.pem",
            ),
            Self::Pkcs7 => f.write_str(
                "it is PKCS#7, which only carries certificates; make it PEM: openssl pkcs7 -print_certs -in FILE -out FILE.pem",
            ),
            Self::CertificateRequest => f.write_str(
                "it is a certificate request: use the certificate that the CA made of it",
            ),
            Self::OpenSsh => f.write_str("the key is in OpenSSH's format; make it PKCS#8: ssh-keygen -p -m PKCS8 -f FILE"),
            Self::NeedsPassword(purpose) => write!(f, "it is encrypted: set {}", purpose.password_key()),
            Self::WrongPassword(purpose) => write!(f, "{} is wrong", purpose.password_key()),
            Self::NeedsKeyPassword(name) => write!(
                f,
                "{name} does not open with the store's password; it has one of its own: set ssl.key.password"
            ),
            Self::WrongKeyPassword(name) => write!(f, "ssl.key.password is wrong: it does not open {name}"),
            Self::KeyPasswordCharacters => {
                f.write_str("a key in JCEKS has a password of ASCII characters only, which ssl.key.password is not")
            }
            Self::EncryptedKey => f.write_str("the private key is encrypted: set ssl.key.password"),
            Self::EncryptedTraditionally => f.write_str(
                "the private key is encrypted in OpenSSL's old format (Proc-Type, DEK-Info), which Kafka does not read either; \
                 make it PKCS#8: openssl pkcs8 -topk8 -in FILE -out FILE.p8",
            ),
            Self::Encryption(oid) => write!(
                f,
                "it is protected by the algorithm {oid}, which is not read here; write it anew: keytool -importkeystore, or openssl pkcs12"
            ),
            Self::Costly => f.write_str(
                "its encryption asks for more rounds or memory than any tool writes: the file is damaged, or meant to stall its reader",
            ),
            Self::TooMany => write!(f, "it holds more than {KEYS_MAX} keys or {CERTIFICATES_MAX} certificates"),
            Self::KeystoreAsTruststore => f.write_str(
                "it holds a private key and its certificate, and no trusted certificate: it is a keystore. \
                 A truststore holds the certificates of the CAs that sign the other side's certificates",
            ),
            Self::TruststoreAsKeystore(1) => {
                f.write_str("it holds a certificate and no private key: it is a truststore, not a keystore")
            }
            Self::TruststoreAsKeystore(count) => write!(
                f,
                "it holds {count} certificates and no private key: it is a truststore, not a keystore"
            ),
            Self::EmptyTruststore => f.write_str("it holds no certificate: nobody's certificate could be trusted"),
            Self::EmptyKeystore => f.write_str("it holds neither a private key nor a certificate"),
            Self::KeyWithoutCertificate(name) => write!(
                f,
                "{name} has no certificate beside it: a keystore needs the key and its certificate chain"
            ),
            Self::CertificateWithoutKey => {
                f.write_str("a certificate without a private key: set ssl.keystore.key too")
            }
            Self::KeyMismatch => f.write_str(
                "the private key belongs to none of its certificates: key and certificate are of two different pairs",
            ),
            Self::BadCertificate(place) => write!(f, "its certificate number {place} cannot be read"),
            Self::BadKey => f.write_str("its private key cannot be read"),
            Self::UnsupportedKey(kind) => write!(
                f,
                "its private key is {kind}; TLS here signs with ECDSA over P-256 or P-384, or with RSA of 2048 to 4096 bits"
            ),
            Self::SecretKey => f.write_str("it holds a secret key, which TLS has no use for: remove that entry (keytool -delete)"),
        }
    }
}

impl std::error::Error for Mistake {}
