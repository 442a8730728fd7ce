//! What there is to say of our own certificates: to operators as warnings, to metrics as facts.

use core::fmt;
use core::net::IpAddr;
use std::rc::Rc;

use skerry_core::time::Timestamp;
use skerry_tls::certificate::{Role, ServerName};
use skerry_tls::crypto::CryptoError;
use skerry_tls::x509::certificate::Certificate;
use skerry_tls::x509::check::{self, Finding};
use skerry_tls::x509::{ByProvider, Details, Issuer, SignatureAlgorithm, Signatures};

use crate::config::Listener;
use crate::secure::{Chosen, OwnIdentity};

/// What a certificate says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Subject, issuer and dates.
    pub details: Details,
    /// Its serial number, hexadecimal.
    pub serial: String,
    /// The first end of validity among the certificates of its chain.
    pub not_after: Timestamp,
}

impl fmt::Display for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} serial {}", self.details, self.serial)
    }
}

impl Facts {
    /// What a chain, leaf first, says; `None` when one of it cannot be read.
    pub fn of(chain: &[&[u8]]) -> Option<Self> {
        let leaf = *chain.first()?;
        let ends: Option<Vec<_>> = chain
            .iter()
            .map(|der| Certificate::read(der).ok().map(|one| one.not_after))
            .collect();
        let serial = Certificate::read(leaf).ok()?.serial;
        Some(Self {
            details: Details::of(leaf)?,
            serial: serial.iter().map(|byte| format!("{byte:02x}")).collect(),
            not_after: ends?.into_iter().min()?,
        })
    }
}

/// The host that clients of a listener are told, or the address that they come to, where it is only one.
pub fn host_of(listener: &Listener) -> Option<String> {
    match &listener.advertised {
        Some(told) => Some(told.host.clone()),
        None if listener.bind.ip().is_unspecified() => None,
        None => Some(listener.bind.ip().to_string()),
    }
}

/// What there is to say of a chain of our own, used as `role`, by a broker whose clients are told `host`. The name is left out when there are `others` and one
/// of them bears it.
pub fn findings(
    chain: &[&[u8]],
    role: Role,
    host: Option<&str>,
    others: &[OwnIdentity],
    now: Timestamp,
) -> Vec<Finding> {
    let name = host.map(|host| match host.parse::<IpAddr>() {
        Ok(address) => ServerName::Ip(address),
        Err(_) => ServerName::Dns(host),
    });
    let names: Vec<ServerName<'_>> = name.into_iter().collect();
    let is_missing = |chain: &[&[u8]]| {
        let found = check::chain(chain, role, &names, None, now);
        found.iter().any(|finding| matches!(finding, Finding::NoName(_)))
    };
    let elsewhere = others.iter().any(|other| {
        let chain: Vec<&[u8]> = other.chain.iter().map(Vec::as_slice).collect();
        !is_missing(&chain)
    });
    let mut found = check::chain(chain, role, &names, None, now);
    found.retain(|finding| !(elsewhere && matches!(finding, Finding::NoName(_))));
    found
}

/// Checks signatures with the chosen provider.
pub struct ByChosen(pub Rc<Chosen>);

impl Signatures for ByChosen {
    fn check(
        &self,
        algorithm: SignatureAlgorithm,
        issuer: Issuer<'_>,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), CryptoError> {
        ByProvider(&*self.0).check(algorithm, issuer, message, signature)
    }
}
