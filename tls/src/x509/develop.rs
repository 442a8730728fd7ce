//! Certificates for development: a CA, and server and client certificates that it signs. ECDSA over P-256 with SHA-256, as the strict profile
//! asks.

use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;

use sha2::{Digest, Sha256};
use skerry_core::time::Timestamp;
use zeroize::Zeroizing;

use super::certificate::{Certificate, ExtendedKeyUsage, ids};
use super::der::tag;
use super::name::COMMON_NAME;
use super::write::{Draft, Extension, bits, name, sequence, value};
use super::{key, pem};
use crate::certificate::ServerName;
use crate::crypto::ffi::{Curve, Key, KeyPair, Refusal, private_key};
use crate::crypto::mbedtls::Mark;
use crate::crypto::{CryptoError, Random, SIGNATURE_BYTES_MAX};

/// From when to when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// First moment.
    pub not_before: Timestamp,
    /// Last moment.
    pub not_after: Timestamp,
}

/// A certificate and its key.
pub struct Issued {
    /// One certificate, DER.
    pub certificate: Vec<u8>,
    /// Its private key, unencrypted PKCS#8 (RFC 5958), DER.
    pub key: Zeroizing<Vec<u8>>,
}

/// Whose a certificate will be.
enum Kind<'n> {
    Authority,
    Server(&'n [ServerName<'n>]),
    Client,
}

impl Issued {
    /// A CA that signs itself. `common_name` is all of its name.
    ///
    /// Errors: [`CryptoError::ArenaFull`], and [`CryptoError::Failed`] when `random` fails.
    pub fn authority(common_name: &str, validity: Validity, random: &mut dyn Random) -> Result<Self, CryptoError> {
        issue(None, common_name, &Kind::Authority, validity, random)
    }

    /// A server's certificate for `names`, of which there is at least one, signed by this CA. The first DNS name is the common name too.
    ///
    /// Errors: as [`Issued::authority`]; [`CryptoError::Rejected`] when this is no CA that was made here, or there is no name.
    pub fn server(
        &self,
        names: &[ServerName<'_>],
        validity: Validity,
        random: &mut dyn Random,
    ) -> Result<Self, CryptoError> {
        let host = names.iter().find_map(|name| match name {
            ServerName::Dns(host) => Some(*host),
            ServerName::Ip(_) => None,
        });
        if names.is_empty() {
            return Err(CryptoError::Rejected);
        }
        issue(
            Some(self),
            host.unwrap_or("server"),
            &Kind::Server(names),
            validity,
            random,
        )
    }

    /// A client's certificate for the subject `CN=common_name`, signed by this CA.
    ///
    /// Errors: as [`Issued::server`].
    pub fn client(&self, common_name: &str, validity: Validity, random: &mut dyn Random) -> Result<Self, CryptoError> {
        issue(Some(self), common_name, &Kind::Client, validity, random)
    }

    /// The certificate as PEM.
    #[must_use]
    pub fn certificate_pem(&self) -> Zeroizing<String> {
        pem::write("CERTIFICATE", &self.certificate)
    }

    /// The key as PEM.
    #[must_use]
    pub fn key_pem(&self) -> Zeroizing<String> {
        pem::write("PRIVATE KEY", &self.key)
    }
}

fn issue(
    by: Option<&Issued>,
    common_name: &str,
    kind: &Kind<'_>,
    validity: Validity,
    random: &mut dyn Random,
) -> Result<Issued, CryptoError> {
    let (spki, key) = new_key(random)?;
    let subject = name(&[(COMMON_NAME, common_name)]);
    let own_id = key_id(&spki);
    let issuer = by.map(|by| Certificate::read(&by.certificate)).transpose();
    let issuer = issuer.map_err(|_| CryptoError::Rejected)?;
    let issuer_id = match &issuer {
        Some(issuer) => issuer.extensions.subject_key.ok_or(CryptoError::Rejected)?,
        None => &own_id,
    };

    let mut serial = [0; 16];
    random.fill(&mut serial)?;
    // Positive, and in its shortest form.
    if let Some(first) = serial.first_mut() {
        *first = *first & 0x3f | 0x40;
    }
    let mut extensions: Vec<Extension<'_>> = alloc::vec![
        (ids::SUBJECT_KEY, false, value(tag::OCTET_STRING, &[&own_id])),
        (
            ids::AUTHORITY_KEY,
            false,
            sequence(&[&value(tag::context(0), &[issuer_id])])
        ),
    ];
    let usage = |bits: &[u8]| (ids::KEY_USAGE, true, value(tag::BIT_STRING, &[bits]));
    let purpose = |id: &[u8]| (ids::EXTENDED_KEY_USAGE, false, sequence(&[&value(tag::OID, &[id])]));
    match kind {
        Kind::Authority => {
            // A CA, of leaves only; keyCertSign and cRLSign.
            let basic = sequence(&[&[tag::BOOLEAN, 1, 0xff], &[tag::INTEGER, 1, 0]]);
            extensions.push((ids::BASIC_CONSTRAINTS, true, basic));
            extensions.push(usage(&[1, 0x06]));
        }
        Kind::Server(names) => {
            extensions.push((ids::BASIC_CONSTRAINTS, true, sequence(&[])));
            extensions.push(usage(&[7, 0x80]));
            extensions.push(purpose(ExtendedKeyUsage::SERVER_AUTH));
            extensions.push((ids::SUBJECT_ALT_NAME, false, alternative_names(names)));
        }
        Kind::Client => {
            extensions.push((ids::BASIC_CONSTRAINTS, true, sequence(&[])));
            extensions.push(usage(&[7, 0x80]));
            extensions.push(purpose(ExtendedKeyUsage::CLIENT_AUTH));
        }
    }
    let draft = Draft {
        version: 3,
        serial: &serial,
        algorithm: key::ECDSA_WITH_SHA256,
        issuer: issuer.as_ref().map_or(&*subject, |issuer| issuer.subject.der),
        not_before: validity.not_before,
        not_after: validity.not_after,
        subject: &subject,
        spki: &spki,
        extensions,
    };
    let signed = draft.signed();
    let signature = sign(by.map_or(&key, |by| &by.key), &signed, random)?;
    Ok(Issued {
        certificate: draft.finish(&signed, &signature),
        key,
    })
}

/// Private values that are drawn before giving up: one in 2^32 is none.
const DRAW_COUNT_MAX: usize = 8;

/// A new key: its SubjectPublicKeyInfo, and its PKCS#8.
fn new_key(random: &mut dyn Random) -> Result<(Vec<u8>, Zeroizing<Vec<u8>>), CryptoError> {
    let mark = Mark::now();
    let failed = |Refusal| mark.blame(CryptoError::Failed);
    let pair = KeyPair::new(Curve::P256).map_err(failed)?;
    let mut private = Zeroizing::new([0; 32]);
    for _ in 0..DRAW_COUNT_MAX {
        random.fill(&mut *private)?;
        pair.set_private(&*private).map_err(failed)?;
        if pair.multiply_generator(random).is_ok() {
            let mut point = [0; 65];
            pair.write_point(&mut point).map_err(failed)?;
            let public = bits(&point);
            let spki = sequence(&[key::P256_ALGORITHM, &public]);
            // RFC 5915: version 1, the value, the point.
            let inner = Zeroizing::new(sequence(&[
                &[tag::INTEGER, 1, 1],
                &Zeroizing::new(value(tag::OCTET_STRING, &[&*private])),
                &value(tag::context_constructed(1), &[&public]),
            ]));
            let octets = Zeroizing::new(value(tag::OCTET_STRING, &[&inner]));
            let pkcs8 = sequence(&[&[tag::INTEGER, 1, 0], key::P256_ALGORITHM, &octets]);
            return Ok((spki, Zeroizing::new(pkcs8)));
        }
    }
    Err(mark.blame(CryptoError::Failed))
}

fn sign(pkcs8: &[u8], message: &[u8], random: &mut dyn Random) -> Result<Vec<u8>, CryptoError> {
    let mark = Mark::now();
    let refused = |Refusal| mark.blame(CryptoError::Rejected);
    let Key::Ec(Curve::P256, pair) = private_key(pkcs8).map_err(refused)? else {
        return Err(CryptoError::Rejected);
    };
    let mut signature = [0; SIGNATURE_BYTES_MAX];
    let bytes = pair
        .sign(&Sha256::digest(message), random, &mut signature)
        .map_err(refused)?;
    Ok(signature.get(..bytes).unwrap_or_default().to_vec())
}

/// The leftmost 160 bits of a SHA-256 over the key (RFC 7093 §2).
fn key_id(spki: &[u8]) -> [u8; 20] {
    let mut id = [0; 20];
    id.iter_mut()
        .zip(Sha256::digest(spki))
        .for_each(|(byte, hashed)| *byte = hashed);
    id
}

fn alternative_names(names: &[ServerName<'_>]) -> Vec<u8> {
    let names: Vec<Vec<u8>> = names
        .iter()
        .map(|name| match name {
            ServerName::Dns(host) => value(tag::context(2), &[host.as_bytes()]),
            ServerName::Ip(IpAddr::V4(address)) => value(tag::context(7), &[&address.octets()]),
            ServerName::Ip(IpAddr::V6(address)) => value(tag::context(7), &[&address.octets()]),
        })
        .collect();
    sequence(&names.iter().map(Vec::as_slice).collect::<Vec<_>>())
}
