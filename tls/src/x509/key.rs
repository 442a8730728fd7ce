//! Public keys and signature algorithms: which are taken, and what they are (RFC 3279, RFC 4055, RFC 5480).

use super::der::{self, Malformed, Reader, tag};
use crate::cause::Cause;
use crate::crypto::{KeyKind, PublicKey, SIGNATURE_BYTES_MAX};

/// Bits of the shortest RSA modulus that is taken.
pub const RSA_BITS_MIN: usize = 2048;
/// Bits of the longest RSA modulus that is taken: what mbedtls can hold.
pub const RSA_BITS_MAX: usize = 8192;

const EC_PUBLIC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
const P384: &[u8] = &[0x2b, 0x81, 0x04, 0, 34];
const P521: &[u8] = &[0x2b, 0x81, 0x04, 0, 35];
const RSA_ENCRYPTION: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1];
const RSASSA_PSS: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 10];
const MGF1: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 8];

/// AlgorithmIdentifier of ECDSA with SHA-256.
#[cfg(any(feature = "mbedtls", test))]
pub const ECDSA_WITH_SHA256: &[u8] = &[0x30, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];
/// AlgorithmIdentifier of a key on P-256.
#[cfg(any(feature = "mbedtls", test))]
pub const P256_ALGORITHM: &[u8] = &[
    0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7,
];

/// A key that signed a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IssuerKey {
    /// One that a leaf may have too.
    Common(KeyKind),
    /// ECDSA over P-521: CAs only, no handshake here is signed by it.
    P521,
}

/// The hash of a certificate's signature. SHA-1, MD5 and SHA-224 are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Digest {
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

/// How a certificate is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureAlgorithm {
    /// ECDSA; the curve is the key's.
    Ecdsa(Digest),
    /// RSA PKCS#1 v1.5.
    RsaPkcs1(Digest),
    /// RSA-PSS with MGF1 of the same hash and as many bytes of salt as it has.
    RsaPss(Digest),
}

impl SignatureAlgorithm {
    /// The hash whose digest is signed.
    #[must_use]
    pub const fn digest(self) -> Digest {
        match self {
            Self::Ecdsa(digest) | Self::RsaPkcs1(digest) | Self::RsaPss(digest) => digest,
        }
    }

    /// Whether a key of that kind signs so.
    #[must_use]
    pub const fn suits(self, key: IssuerKey) -> bool {
        match self {
            Self::Ecdsa(_) => matches!(key, IssuerKey::P521 | IssuerKey::Common(KeyKind::P256 | KeyKind::P384)),
            Self::RsaPkcs1(_) | Self::RsaPss(_) => matches!(key, IssuerKey::Common(KeyKind::Rsa(_))),
        }
    }

    /// What the whole of an AlgorithmIdentifier says.
    ///
    /// Errors: [`Cause::CertificateUnsupported`] for what is not taken, other parameters of RSA-PSS among them.
    pub fn read(identifier: &[u8]) -> Result<Self, Cause> {
        let (oid, parameters) = algorithm(identifier)?;
        let unsupported = Err(Cause::CertificateUnsupported);
        match oid {
            [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, hash] if parameters.is_empty() => Ok(Self::Ecdsa(match hash {
                2 => Digest::Sha256,
                3 => Digest::Sha384,
                4 => Digest::Sha512,
                _ => return unsupported,
            })),
            // RFC 4055 §5 has NULL here, and has nothing taken as well.
            [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, hash @ 11..=13] if matches!(parameters, [] | [tag::NULL, 0]) => {
                Ok(Self::RsaPkcs1(match hash {
                    11 => Digest::Sha256,
                    12 => Digest::Sha384,
                    _ => Digest::Sha512,
                }))
            }
            RSASSA_PSS => pss(parameters).map_or(unsupported, |digest| Ok(Self::RsaPss(digest))),
            _ => unsupported,
        }
    }
}

/// The algorithm of an AlgorithmIdentifier, and its parameters as they are encoded.
fn algorithm(identifier: &[u8]) -> Result<(&[u8], &[u8]), Malformed> {
    let mut reader = der::sequence(identifier)?;
    let oid = reader.oid()?;
    let parameters = if reader.is_empty() {
        &[]
    } else {
        reader.element()?.whole
    };
    reader.finish()?;
    Ok((oid, parameters))
}

/// The one hash of RSASSA-PSS-params (RFC 4055 §3.1), if hash, mask and salt agree.
fn pss(parameters: &[u8]) -> Option<Digest> {
    let mut reader = der::sequence(parameters).ok()?;
    let hash = digest(reader.optional(tag::context_constructed(0)).ok()??)?;
    let (mask, mask_hash) = algorithm(reader.optional(tag::context_constructed(1)).ok()??).ok()?;
    let mut salt = Reader::new(reader.optional(tag::context_constructed(2)).ok()??);
    let salt_bytes = salt.small().ok()?;
    salt.finish().ok()?;
    // The trailer field is 1 by default, which DER leaves out; some write it.
    let trailer = reader.optional(tag::context_constructed(3)).ok()?;
    reader.finish().ok()?;
    let hash_bytes = match hash {
        Digest::Sha256 => 32,
        Digest::Sha384 => 48,
        Digest::Sha512 => 64,
    };
    let agree = mask == MGF1
        && digest(mask_hash) == Some(hash)
        && salt_bytes == hash_bytes
        && matches!(trailer, None | Some([tag::INTEGER, 1, 1]));
    agree.then_some(hash)
}

/// The hash that an AlgorithmIdentifier names, with NULL or without parameters.
fn digest(identifier: &[u8]) -> Option<Digest> {
    let (oid, parameters) = algorithm(identifier).ok()?;
    match oid {
        [0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, hash] if matches!(parameters, [] | [tag::NULL, 0]) => match hash {
            1 => Some(Digest::Sha256),
            2 => Some(Digest::Sha384),
            3 => Some(Digest::Sha512),
            _ => None,
        },
        _ => None,
    }
}

/// What the key in a SubjectPublicKeyInfo is, after its form was checked: an uncompressed point of the right length on a named curve, or an
/// odd RSA modulus of whole octets with an odd exponent of 3 to 2^32.
///
/// Errors: [`Cause::CertificateUnreadable`]; [`Cause::CertificateUnsupported`] for every other key.
pub fn issuer_key(spki: &[u8]) -> Result<IssuerKey, Cause> {
    let mut reader = der::sequence(spki)?;
    let identifier = reader.element()?;
    let key = reader.octets_of_bits()?;
    reader.finish()?;
    let (oid, parameters) = algorithm(identifier.whole)?;
    match oid {
        EC_PUBLIC_KEY => {
            let mut curve = Reader::new(parameters);
            // Anything but a name is a curve of one's own making.
            let curve = curve.oid().map_err(|_| Cause::CertificateUnsupported)?;
            let (kind, field_bytes) = match curve {
                P256 => (IssuerKey::Common(KeyKind::P256), 32),
                P384 => (IssuerKey::Common(KeyKind::P384), 48),
                P521 => (IssuerKey::P521, 66),
                _ => return Err(Cause::CertificateUnsupported),
            };
            match key {
                [4, point @ ..] if point.len() == 2 * field_bytes => Ok(kind),
                [2 | 3, x @ ..] if x.len() == field_bytes => Err(Cause::CertificateUnsupported),
                _ => Err(Cause::CertificateUnreadable),
            }
        }
        RSA_ENCRYPTION if parameters == [tag::NULL, 0] => {
            let mut numbers = der::sequence(key)?;
            let modulus = numbers.unsigned()?;
            let exponent = numbers.small()?;
            numbers.finish()?;
            let top = modulus.first().map_or(0, |octet| octet.leading_zeros());
            let bits = modulus.len() * 8 - top as usize;
            let is_odd = modulus.last().is_some_and(|octet| octet & 1 == 1) && exponent & 1 == 1;
            if !(RSA_BITS_MIN..=RSA_BITS_MAX).contains(&bits) || !bits.is_multiple_of(8) || exponent < 3 || !is_odd {
                return Err(Cause::CertificateUnsupported);
            }
            Ok(IssuerKey::Common(KeyKind::Rsa(bits as u16)))
        }
        _ => Err(Cause::CertificateUnsupported),
    }
}

/// What a leaf's key is, which signs handshakes.
///
/// Errors: as [`issuer_key`]; [`Cause::CertificateUnsupported`] also for P-521, and for RSA whose signatures are longer than
///   [`SIGNATURE_BYTES_MAX`].
pub fn leaf_key(spki: &[u8]) -> Result<KeyKind, Cause> {
    match issuer_key(spki)? {
        IssuerKey::Common(KeyKind::Rsa(bits)) if usize::from(bits) > SIGNATURE_BYTES_MAX * 8 => {
            Err(Cause::CertificateUnsupported)
        }
        IssuerKey::Common(kind) => Ok(kind),
        IssuerKey::P521 => Err(Cause::CertificateUnsupported),
    }
}

/// The public key of a certificate, read without reading the rest of it.
///
/// Errors: [`Cause::CertificateUnreadable`]; [`Cause::CertificateUnsupported`] for keys that no handshake here is signed by.
/// Cost: a walk over eight values; no allocation.
pub fn public_key(certificate: &[u8]) -> Result<PublicKey<'_>, Cause> {
    let mut signed = der::sequence(certificate)?.sequence()?;
    signed.optional(tag::context_constructed(0))?; // version
    signed.value(tag::INTEGER)?; // serial number
    signed.value(tag::SEQUENCE)?; // signature
    signed.value(tag::SEQUENCE)?; // issuer
    signed.value(tag::SEQUENCE)?; // validity
    signed.value(tag::SEQUENCE)?; // subject
    let spki = signed.element()?.whole;
    Ok(PublicKey {
        kind: leaf_key(spki)?,
        spki,
    })
}

impl From<Malformed> for Cause {
    fn from(_: Malformed) -> Self {
        Self::CertificateUnreadable
    }
}
