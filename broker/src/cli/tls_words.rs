//! What a person is told when TLS with a broker fails: the cause, what was met, and what to change on this side or on the other.

use std::fmt;

use skerry_core::time::Timestamp;
use skerry_tls::alert::Alert;
use skerry_tls::cause::Cause;
use skerry_tls::certificate::ServerName;
use skerry_tls::notes::Notes;
use skerry_tls::state::StateId;
use skerry_tls::x509::certificate::Certificate;
use skerry_tls::x509::{Details, GeneralName, GeneralNames, Readable};

use super::access::now;
use super::stream::{HANDSHAKE, server_name};
use crate::secure::What;
use crate::tls_setup::ClientSetup;

/// Names of a certificate that are told. When full: the others are counted.
const NAMES_TOLD_MAX: usize = 8;

/// TLS with a broker that failed.
pub struct Broke<'a> {
    /// Where it was connected to.
    pub address: &'a str,
    /// Why.
    pub cause: Cause,
    /// Where it stood.
    pub state: StateId,
    /// What the handshake noted.
    pub notes: &'a Notes,
    /// What it was set up with.
    pub setup: &'a ClientSetup,
}

impl fmt::Display for Broke<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = What(self.cause, self.state);
        write!(f, "{}: TLS failed: {what}: ", self.address)?;
        match self.cause {
            Cause::UnknownCa => self.unknown_ca(f),
            Cause::CertificateName => self.name(f),
            Cause::CertificateExpired | Cause::CertificateNotYetValid => self.dates(f, now()),
            Cause::CertificateSignature => {
                self.certificate(f)?;
                write!(
                    f,
                    "its signature is not that of its CA: the chain is put together from two CAs' files, or {} holds another CA of the \
                     same name",
                    self.setup.truststore()
                )
            }
            Cause::PlaintextPeer(_) => f.write_str(
                "the other side speaks no TLS: set security.protocol=PLAINTEXT, or connect to the broker's SSL listener",
            ),
            Cause::Closed(StateId::AwaitServerHello) | Cause::Reset(StateId::AwaitServerHello) => f.write_str(
                "the other side hung up on our first TLS message, as a PLAINTEXT listener does: set security.protocol=PLAINTEXT, or \
                 connect to the broker's SSL listener",
            ),
            Cause::Closed(_) | Cause::Reset(_) => {
                f.write_str("the broker broke the handshake off: see its log, it may not like our certificate")
            }
            Cause::Timeout(_) => write!(
                f,
                "no answer in {} s: is it a TLS listener, and is the network slow?",
                HANDSHAKE.as_secs()
            ),
            Cause::PeerAlert(alert) if self.was_asked() && is_about_certificates(alert) => self.refused(f, alert),
            Cause::PeerAlert(Alert::ProtocolVersion) | Cause::NoCommonVersion(_) => {
                let ours: Vec<&str> = self.setup.versions().iter().map(|version| version.name()).collect();
                write!(
                    f,
                    "the broker does not speak {}: ssl.enabled.protocols here and there must have a version in common",
                    ours.join(" or ")
                )
            }
            Cause::PeerAlert(Alert::HandshakeFailure | Alert::InsufficientSecurity)
                if self.state == StateId::AwaitServerHello =>
            {
                f.write_str(
                    "either that is a PLAINTEXT listener (set security.protocol=PLAINTEXT, or connect to the SSL one), or the broker \
                     finds nothing in common with us: compare ssl.cipher.suites and ssl.enabled.protocols of both, and the kind of the \
                     broker's key",
                )
            }
            other => {
                self.certificate(f)?;
                f.write_str(other.cure())
            }
        }
    }
}

impl Broke<'_> {
    /// The certificate at fault, where there is one.
    fn certificate(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Details::of(&self.notes.refused) {
            Some(details) => write!(f, "certificate {details}: "),
            None => Ok(()),
        }
    }

    fn unknown_ca(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.setup.truststore();
        match Details::of(&self.notes.refused) {
            Some(details) if details.subject == details.issuer => write!(
                f,
                "\"{}\" signed itself, and {place} does not hold it: add that certificate there, if you trust it",
                details.subject
            ),
            Some(details) => write!(
                f,
                "the certificate of \"{}\" is signed by \"{}\", which {place} does not hold: add the certificate of that CA there, if you \
                 trust it (one made anew under the same name is another)",
                details.subject, details.issuer
            ),
            None => write!(
                f,
                "no CA of {place} signed the broker's certificate: add the one that did"
            ),
        }
    }

    fn name(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let read = Certificate::read(&self.notes.refused).ok();
        let names = read.and_then(|read| read.extensions.subject_alt_name);
        let names: Vec<String> = names.iter().flat_map(GeneralNames::iter).filter_map(told).collect();
        match (names.get(..NAMES_TOLD_MAX), names.len()) {
            (_, 0) => f.write_str("the broker's certificate bears no name (subjectAltName)")?,
            (Some(some), count) if count > NAMES_TOLD_MAX => {
                let others = count - NAMES_TOLD_MAX;
                write!(
                    f,
                    "the broker's certificate is for {} and {others} others",
                    some.join(", ")
                )?;
            }
            _ => write!(f, "the broker's certificate is for {}", names.join(", "))?,
        }
        f.write_str(", not for ")?;
        match server_name(self.address) {
            ServerName::Dns(host) => f.write_str(host)?,
            ServerName::Ip(address) => write!(f, "{address}")?,
        }
        f.write_str(
            ": connect by a name that it bears, or issue it for this one too (ssl.endpoint.identification.algorithm= would take any name)",
        )
    }

    fn dates(&self, f: &mut fmt::Formatter<'_>, now: Timestamp) -> fmt::Result {
        self.certificate(f)?;
        write!(
            f,
            "it is {} here: have the certificate renewed, or set the clock that is wrong",
            Readable(now)
        )
    }

    /// Whether the broker asked for our certificate.
    fn was_asked(&self) -> bool {
        self.notes.trail.steps().iter().any(|step| {
            // TLS 1.3 goes on to another state after the request, 1.2 stays where it is.
            step.to == StateId::AwaitServerCertificate
                || (step.from, step.to) == (StateId::AwaitServerHelloDone, StateId::AwaitServerHelloDone)
        })
    }

    /// The broker wants another certificate of us.
    fn refused(&self, f: &mut fmt::Formatter<'_>, alert: Alert) -> fmt::Result {
        let Some(own) = self.setup.own_certificate() else {
            return f.write_str("the broker asks for a client certificate: set ssl.keystore.location, or ssl.keystore.key and ssl.keystore.certificate.chain");
        };
        f.write_str("the broker refuses our certificate")?;
        if let Some(details) = Details::of(own) {
            write!(f, ", {details}")?;
        }
        f.write_str(match alert {
            Alert::UnknownCa => ": add its CA to the broker's ssl.truststore.location, or use a keystore whose CA is there",
            Alert::CertificateExpired => ": renew it, or set the clock that is wrong",
            Alert::CertificateRequired => {
                ": none was sent, as it suits none of the signature schemes that the broker takes: use a key of another kind"
            }
            _ => ": see the broker's log for the reason; its ssl.truststore.location must hold the CA",
        })
    }
}

/// Whether a broker that does not like our certificate, or the lack of one, may say so by this alert.
const fn is_about_certificates(alert: Alert) -> bool {
    matches!(
        alert,
        Alert::HandshakeFailure
            | Alert::BadCertificate
            | Alert::UnsupportedCertificate
            | Alert::CertificateRevoked
            | Alert::CertificateExpired
            | Alert::CertificateUnknown
            | Alert::UnknownCa
            | Alert::AccessDenied
            | Alert::CertificateRequired
    )
}

/// A name that a host may be reached by, for a terminal.
fn told(name: GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::Dns(name) => Some(name.escape_ascii().to_string()),
        GeneralName::Ip(octets) => match (<[u8; 4]>::try_from(octets), <[u8; 16]>::try_from(octets)) {
            (Ok(four), _) => Some(std::net::IpAddr::from(four).to_string()),
            (_, Ok(sixteen)) => Some(std::net::IpAddr::from(sixteen).to_string()),
            _ => None,
        },
        _ => None,
    }
}
