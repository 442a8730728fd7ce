//! Certificates for tests, signed by nobody: a signature is a digest of key and content, so that any certificate is made in a moment, good
//! or broken, and what checks it counts.

use alloc::vec::Vec;
use core::cell::Cell;

use sha2::{Digest as _, Sha256};
use skerry_core::time::Timestamp;

use super::certificate::{ExtendedKeyUsage, ids};
use super::der::tag;
use super::key::{ECDSA_WITH_SHA256, P256_ALGORITHM, SignatureAlgorithm};
use super::name::COMMON_NAME;
use super::signature::{Issuer, Signatures};
use super::write::{Draft, bits, name, sequence, value};
use crate::crypto::CryptoError;

/// When tests take place.
pub const NOW: Timestamp = Timestamp(1_700_000_000_000);
/// A day.
pub const DAY: i64 = 24 * 3600 * 1000;

/// Checks what [`Made`] signs, and counts.
#[derive(Debug, Default)]
pub struct Counted {
    /// Signatures that were checked.
    pub count: Cell<usize>,
}

impl Signatures for &Counted {
    fn check(
        &self,
        _algorithm: SignatureAlgorithm,
        issuer: Issuer<'_>,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), CryptoError> {
        self.count.set(self.count.get() + 1);
        if signature == sign(issuer.spki, message) {
            Ok(())
        } else {
            Err(CryptoError::Rejected)
        }
    }
}

fn sign(spki: &[u8], message: &[u8]) -> Vec<u8> {
    let digest = Sha256::new().chain_update(spki).chain_update(message).finalize();
    sequence(&[&value(tag::INTEGER, &[&[1], &digest]), &[tag::INTEGER, 1, 1]])
}

/// A key, by a number.
pub fn spki(key: u8) -> Vec<u8> {
    let point = [[4].as_slice(), &[key; 64]].concat();
    sequence(&[P256_ALGORITHM, &bits(&point)])
}

/// The identifier of a key.
pub fn key_id(key: u8) -> Vec<u8> {
    [key; 20].into()
}

/// A certificate that is not finished.
#[derive(Clone, Debug)]
pub struct Made {
    /// 1, 2 or 3.
    pub version: u8,
    /// The contents of the INTEGER.
    pub serial: Vec<u8>,
    /// AlgorithmIdentifier.
    pub algorithm: Vec<u8>,
    /// Name.
    pub issuer: Vec<u8>,
    /// The key that signs.
    pub by: Vec<u8>,
    /// First moment.
    pub not_before: Timestamp,
    /// Last moment.
    pub not_after: Timestamp,
    /// Name.
    pub subject: Vec<u8>,
    /// SubjectPublicKeyInfo.
    pub spki: Vec<u8>,
    /// Identifier, whether critical, value.
    pub extensions: Vec<(Vec<u8>, bool, Vec<u8>)>,
}

impl Made {
    /// A certificate signed by itself, of `CN=common_name` and the key of that number, with key identifiers and nothing else.
    pub fn new(common_name: &str, key: u8) -> Self {
        let subject = name(&[(COMMON_NAME, common_name)]);
        let mut made = Self {
            version: 3,
            serial: [0x40, key].into(),
            algorithm: ECDSA_WITH_SHA256.into(),
            issuer: subject.clone(),
            by: spki(key),
            not_before: Timestamp(NOW.0 - 100 * DAY),
            not_after: Timestamp(NOW.0 + 100 * DAY),
            subject,
            spki: spki(key),
            extensions: Vec::new(),
        };
        made.set(ids::SUBJECT_KEY, false, value(tag::OCTET_STRING, &[&key_id(key)]));
        made
    }

    /// A CA that signs itself.
    pub fn root(common_name: &str, key: u8) -> Self {
        Self::new(common_name, key)
            .with(ids::BASIC_CONSTRAINTS, true, basic(true, None))
            .with(ids::KEY_USAGE, true, usage(0x0600))
    }

    /// A CA that `issuer` signs.
    pub fn ca(common_name: &str, key: u8, issuer: &Self) -> Self {
        Self::root(common_name, key).of(issuer)
    }

    /// A leaf for servers and clients, called `leaf.example`, that `issuer` signs.
    pub fn leaf(key: u8, issuer: &Self) -> Self {
        let purposes = [ExtendedKeyUsage::SERVER_AUTH, ExtendedKeyUsage::CLIENT_AUTH];
        Self::new("leaf", key)
            .with(ids::KEY_USAGE, true, usage(0x8000))
            .with(ids::EXTENDED_KEY_USAGE, false, extended(&purposes))
            .with(ids::SUBJECT_ALT_NAME, false, names(&[(0x82, b"leaf.example")]))
            .of(issuer)
    }

    /// Signed by another.
    pub fn of(mut self, issuer: &Self) -> Self {
        self.issuer = issuer.subject.clone();
        self.by = issuer.spki.clone();
        let id = issuer.extensions.iter().find(|(id, ..)| id == ids::SUBJECT_KEY);
        if let Some((_, _, id)) = id {
            let id = value(tag::context(0), &[&id[2..]]);
            self.set(ids::AUTHORITY_KEY, false, sequence(&[&id]));
        }
        self
    }

    /// With an extension, in place of the one of that kind.
    pub fn with(mut self, id: &[u8], is_critical: bool, value: Vec<u8>) -> Self {
        self.set(id, is_critical, value);
        self
    }

    /// Without that extension.
    pub fn without(mut self, id: &[u8]) -> Self {
        self.extensions.retain(|(other, ..)| other != id);
        self
    }

    fn set(&mut self, id: &[u8], is_critical: bool, value: Vec<u8>) {
        self.extensions.retain(|(other, ..)| other != id);
        self.extensions.push((id.into(), is_critical, value));
    }

    /// Changed otherwise.
    pub fn but(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// The certificate, DER.
    pub fn der(&self) -> Vec<u8> {
        let draft = Draft {
            version: self.version,
            serial: &self.serial,
            algorithm: &self.algorithm,
            issuer: &self.issuer,
            not_before: self.not_before,
            not_after: self.not_after,
            subject: &self.subject,
            spki: &self.spki,
            extensions: self
                .extensions
                .iter()
                .map(|(id, is_critical, value)| (&**id, *is_critical, value.clone()))
                .collect(),
        };
        let signed = draft.signed();
        let signature = sign(&self.by, &signed);
        draft.finish(&signed, &signature)
    }
}

/// basicConstraints.
pub fn basic(is_ca: bool, path_length: Option<u8>) -> Vec<u8> {
    let ca: &[u8] = if is_ca { &[tag::BOOLEAN, 1, 0xff] } else { &[] };
    let length = path_length.map_or(Vec::new(), |length| [tag::INTEGER, 1, length].into());
    sequence(&[ca, &length])
}

/// keyUsage of up to 16 bits, bit 0 the highest.
pub fn usage(bits: u16) -> Vec<u8> {
    let [high, low] = bits.to_be_bytes();
    value(tag::BIT_STRING, &[&[0, high, low]])
}

/// extKeyUsage.
pub fn extended(purposes: &[&[u8]]) -> Vec<u8> {
    let purposes: Vec<Vec<u8>> = purposes.iter().map(|id| value(tag::OID, &[id])).collect();
    sequence(&purposes.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

/// GeneralNames.
pub fn names(names: &[(u8, &[u8])]) -> Vec<u8> {
    let names: Vec<Vec<u8>> = names.iter().map(|(tag, text)| value(*tag, &[text])).collect();
    sequence(&names.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

/// nameConstraints.
pub fn constraints(permitted: &[(u8, &[u8])], excluded: &[(u8, &[u8])]) -> Vec<u8> {
    let part = |number: u8, bases: &[(u8, &[u8])]| {
        let trees: Vec<Vec<u8>> = bases
            .iter()
            .map(|(tag, base)| sequence(&[&value(*tag, &[base])]))
            .collect();
        match &*trees {
            [] => Vec::new(),
            trees => {
                let trees: Vec<&[u8]> = trees.iter().map(Vec::as_slice).collect();
                value(tag::context_constructed(number), &trees)
            }
        }
    };
    sequence(&[&part(0, permitted), &part(1, excluded)])
}
