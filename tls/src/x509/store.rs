//! The trust anchors, and the verifier that chains are checked with.

use alloc::vec::Vec;

use sha2::{Digest, Sha256};
use skerry_core::time::Timestamp;

use super::certificate::Certificate;
use super::path::{self, Anchor, Demands};
use super::{Profile, Signatures, host, key};
use crate::cause::Cause;
use crate::certificate::{CHAIN_COUNT_MAX, Refused, Role, ServerName, Verified, Verifier};
use crate::crypto::PublicKey;

/// The longest list of anchors' names that a CertificateRequest is given. When full: no list at all, since a client with several
/// certificates would take part of one for all of it.
pub const AUTHORITIES_BYTES_MAX: usize = 8 * 1024;

/// A certificate that is refused though its chain is good, as configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Revoked {
    /// By its serial number, big endian, whoever issued it.
    Serial(Vec<u8>),
    /// By the SHA-256 of its DER.
    Fingerprint([u8; 32]),
}

/// What a store holds chains to, beside its anchors.
#[derive(Clone, Debug)]
pub struct Policy {
    /// How closely certificates are held to what is asked of their makers.
    pub profile: Profile,
    /// CAs between anchor and leaf at most, those that issued themselves not counted.
    pub depth_max: usize,
    /// What is revoked.
    pub revoked: Vec<Revoked>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            profile: Profile::default(),
            depth_max: CHAIN_COUNT_MAX,
            revoked: Vec::new(),
        }
    }
}

/// An anchor that was left out of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Its place in the list.
    pub index: usize,
    /// Why: [`Cause::CertificateUnreadable`], or [`Cause::CertificateUnsupported`] for a key that is not spoken here, such as Ed25519.
    pub cause: Cause,
}

/// Trust anchors, what they are held to, and what checks signatures: a [`Verifier`].
#[derive(Debug)]
pub struct TrustStore<S> {
    anchors: Vec<Anchor>,
    policy: Policy,
    signatures: S,
    trust_id: [u8; 32],
    authorities: Vec<u8>,
}

impl<S: Signatures> TrustStore<S> {
    /// A store of the anchors that can be used (each one DER certificate), and a warning for each other one. The same one twice is kept once.
    #[must_use]
    pub fn new(anchors: &[&[u8]], policy: Policy, signatures: S) -> (Self, Vec<Warning>) {
        let mut kept = Vec::<Anchor>::new();
        let mut warnings = Vec::new();
        for (index, &der) in anchors.iter().enumerate() {
            match Anchor::new(der) {
                Ok(anchor) if kept.iter().all(|other| other.der() != der) => kept.push(anchor),
                Ok(_) => {}
                Err(cause) => warnings.push(Warning { index, cause }),
            }
        }
        let store = Self {
            trust_id: trust_id(&kept, &policy),
            authorities: authorities(&kept),
            anchors: kept,
            policy,
            signatures,
        };
        (store, warnings)
    }

    /// How many anchors it holds. A store of none trusts nobody.
    #[must_use]
    pub fn anchor_count(&self) -> usize {
        self.anchors.len()
    }

    fn is_revoked(&self, certificate: &Certificate<'_>) -> bool {
        if self.policy.revoked.is_empty() {
            return false;
        }
        let fingerprint: [u8; 32] = Sha256::digest(certificate.der).into();
        self.policy.revoked.iter().any(|revoked| match revoked {
            Revoked::Serial(serial) => number(serial) == number(certificate.serial),
            Revoked::Fingerprint(other) => *other == fingerprint,
        })
    }
}

impl<S: Signatures> Verifier for TrustStore<S> {
    fn public_key<'c>(&self, leaf: &'c [u8]) -> Result<PublicKey<'c>, Cause> {
        key::public_key(leaf)
    }

    fn verify(
        &self,
        chain: &[&[u8]],
        role: Role,
        name: Option<ServerName<'_>>,
        now: Timestamp,
    ) -> Result<Verified, Refused> {
        let demands = Demands {
            role,
            now: Timestamp(now.0.div_euclid(1000) * 1000),
            profile: self.policy.profile,
            depth_max: self.policy.depth_max,
            is_revoked: &|certificate| self.is_revoked(certificate),
        };
        let found = path::find(chain, &self.anchors, &self.signatures, &demands)?;
        let refuse = |cause| Refused { cause, index: 0 };
        let leaf = chain.first().copied().unwrap_or_default();
        let leaf = Certificate::read(leaf).map_err(|malformed| refuse(malformed.into()))?;
        if name.is_some_and(|name| !host::is_named(leaf.extensions.subject_alt_name, name)) {
            return Err(refuse(Cause::CertificateName));
        }
        let subject = super::name::Cut::of(leaf.subject);
        Ok(Verified {
            subject: subject.text,
            cut: subject.cut,
            not_after: found.not_after,
            fingerprint: Sha256::digest(leaf.der).into(),
        })
    }

    fn authorities(&self) -> &[u8] {
        &self.authorities
    }

    fn trust_id(&self) -> [u8; 32] {
        self.trust_id
    }
}

/// A number without its leading zeros.
fn number(mut bytes: &[u8]) -> &[u8] {
    while let [0, rest @ ..] = bytes {
        bytes = rest;
    }
    bytes
}

/// A digest of all that a verdict depends on but the chain and the time: each part with its length before it.
fn trust_id(anchors: &[Anchor], policy: &Policy) -> [u8; 32] {
    let mut hash = Sha256::new();
    let mut part = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_be_bytes());
        hash.update(bytes);
    };
    part(&[policy.profile as u8]);
    part(&(policy.depth_max as u64).to_be_bytes());
    part(&(policy.revoked.len() as u64).to_be_bytes());
    for revoked in &policy.revoked {
        match revoked {
            Revoked::Serial(serial) => part(serial),
            Revoked::Fingerprint(fingerprint) => part(fingerprint),
        }
    }
    for anchor in anchors {
        part(anchor.der());
    }
    hash.finalize().into()
}

fn authorities(anchors: &[Anchor]) -> Vec<u8> {
    let mut list = Vec::new();
    for name in anchors.iter().map(Anchor::subject) {
        let Ok(bytes) = u16::try_from(name.len()) else {
            return Vec::new();
        };
        list.extend(bytes.to_be_bytes());
        list.extend(name);
        if list.len() > AUTHORITIES_BYTES_MAX {
            return Vec::new();
        }
    }
    list
}
