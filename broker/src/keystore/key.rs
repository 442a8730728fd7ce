//! Private keys: what kind they are, their public half, and PKCS#8 made of the older forms.
//!
//! Source: RFC 5958 (PKCS#8), RFC 8017 A.1.2 (PKCS#1), RFC 5915 (SEC 1), RFC 5480.

use zeroize::Zeroizing;

use super::certificate::Certificate;
use super::der::{self, Algorithm, Der, Dotted, Malformed, tag};
use super::mistake::Mistake;

/// Reads unencrypted PKCS#8 and says what stands against signing with it.
///
/// Errors: [`Mistake::BadKey`], [`Mistake::UnsupportedKey`].
pub fn check(pkcs8: &[u8]) -> Result<(), Mistake> {
    let parts = Parts::read(pkcs8).map_err(|_| Mistake::BadKey)?;
    let unsupported = |kind: String| Err(Mistake::UnsupportedKey(kind));
    match parts.algorithm.oid {
        oid::RSA => {
            let bits = rsa_bits(parts.key).map_err(|_| Mistake::BadKey)?;
            if (2048..=4096).contains(&bits) {
                Ok(())
            } else {
                unsupported(format!("RSA of {bits} bits"))
            }
        }
        oid::EC => {
            let mut parameters = parts.algorithm.parameters;
            match parameters.optional(tag::OID) {
                Ok(Some(oid::P256 | oid::P384)) => Ok(()),
                Ok(Some(curve)) => unsupported(match name(curve) {
                    Some(name) => format!("ECDSA over {name}"),
                    None => format!("ECDSA over the curve {}", Dotted(curve)),
                }),
                Ok(None) => unsupported("ECDSA over a curve without a name".into()),
                Err(_) => Err(Mistake::BadKey),
            }
        }
        other => unsupported(name(other).map_or_else(|| format!("of the algorithm {}", Dotted(other)), str::to_owned)),
    }
}

/// Whether `certificate` bears the public half of `pkcs8`. `None`: the key does not tell it, as the JDK's keys over curves do not.
pub fn matches(pkcs8: &[u8], certificate: &Certificate<'_>) -> Option<bool> {
    let parts = Parts::read(pkcs8).ok()?;
    if parts.algorithm.oid != certificate.algorithm {
        return Some(false);
    }
    match parts.algorithm.oid {
        oid::RSA => {
            let mut private = Der::new(parts.key).enter(tag::SEQUENCE).ok()?;
            private.take(tag::INTEGER).ok()?;
            let mut public = Der::new(certificate.public).enter(tag::SEQUENCE).ok()?;
            let mut same = || Some(private.take(tag::INTEGER).ok()? == public.take(tag::INTEGER).ok()?);
            Some(same()? && same()?)
        }
        oid::EC => {
            let mut private = Der::new(parts.key).enter(tag::SEQUENCE).ok()?;
            private.take(tag::INTEGER).ok()?;
            private.take(tag::OCTET_STRING).ok()?;
            private.optional(tag::context(0)).ok()?;
            let mut public = Der::new(private.optional(tag::context(1)).ok()??);
            Some(public.take(tag::BIT_STRING).ok()?.get(1..)? == certificate.public)
        }
        _ => None,
    }
}

/// PKCS#8 of a PKCS#1 `RSAPrivateKey`.
pub fn from_pkcs1(rsa: &[u8]) -> Result<Zeroizing<Vec<u8>>, Malformed> {
    rsa_bits(rsa)?;
    let algorithm = der::write(
        tag::SEQUENCE,
        &[&der::write(tag::OID, &[oid::RSA]), &der::write(tag::NULL, &[])],
    );
    Ok(wrapped(&algorithm, rsa))
}

/// PKCS#8 of a SEC 1 `ECPrivateKey`, whose curve stands inside it or, in old files, in a block of its own.
pub fn from_sec1(ec: &[u8], curve_beside: Option<&[u8]>) -> Result<Zeroizing<Vec<u8>>, Malformed> {
    let mut private = Der::new(ec).enter(tag::SEQUENCE)?;
    private.take(tag::INTEGER)?;
    private.take(tag::OCTET_STRING)?;
    let inside = private.optional(tag::context(0))?;
    let curve = inside.or(curve_beside).ok_or(Malformed::Unexpected)?;
    let algorithm = der::write(tag::SEQUENCE, &[&der::write(tag::OID, &[oid::EC]), curve]);
    Ok(wrapped(&algorithm, ec))
}

fn wrapped(algorithm: &[u8], key: &[u8]) -> Zeroizing<Vec<u8>> {
    let version = der::write(tag::INTEGER, &[&[0]]);
    let key = Zeroizing::new(der::write(tag::OCTET_STRING, &[key]));
    Zeroizing::new(der::write(tag::SEQUENCE, &[&version, algorithm, &key]))
}

/// PKCS#8 taken apart.
struct Parts<'a> {
    algorithm: Algorithm<'a>,
    /// The key in its algorithm's own form.
    key: &'a [u8],
}

impl<'a> Parts<'a> {
    fn read(pkcs8: &'a [u8]) -> Result<Self, Malformed> {
        let mut outer = Der::new(pkcs8);
        let mut inside = outer.enter(tag::SEQUENCE)?;
        outer.end()?;
        inside.count()?;
        Ok(Self {
            algorithm: Algorithm::read(&mut inside)?,
            key: inside.take(tag::OCTET_STRING)?,
        })
    }
}

/// Whether `bytes` have the shape of unencrypted PKCS#8: what a wrong password makes has not.
pub fn is_pkcs8(bytes: &[u8]) -> bool {
    Parts::read(bytes).is_ok()
}

/// Bits of a PKCS#1 key's modulus.
fn rsa_bits(rsa: &[u8]) -> Result<usize, Malformed> {
    let mut private = Der::new(rsa).enter(tag::SEQUENCE)?;
    private.take(tag::INTEGER)?;
    let modulus = private.take(tag::INTEGER)?;
    private.take(tag::INTEGER)?;
    private.take(tag::INTEGER)?;
    let zeros = modulus.iter().take_while(|byte| **byte == 0).count();
    let first = modulus.get(zeros).map_or(0, |byte| byte.leading_zeros() as usize);
    Ok((modulus.len() - zeros) * 8 - first)
}

/// What people call the algorithms and curves that nothing here signs with.
fn name(oid: &[u8]) -> Option<&'static str> {
    Some(match oid {
        b"\x2b\x65\x70" => "Ed25519",
        b"\x2b\x65\x71" => "Ed448",
        b"\x2b\x65\x6e" => "X25519, which cannot sign",
        b"\x2b\x65\x6f" => "X448, which cannot sign",
        b"\x2a\x86\x48\xce\x38\x04\x01" => "DSA",
        b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0a" => "RSA for PSS alone (rsassaPss)",
        b"\x2b\x81\x04\x00\x23" => "P-521",
        b"\x2b\x81\x04\x00\x0a" => "secp256k1",
        b"\x2b\x81\x04\x00\x21" => "P-224",
        b"\x2a\x86\x48\xce\x3d\x03\x01\x01" => "P-192",
        b"\x2b\x24\x03\x03\x02\x08\x01\x01\x07" => "brainpoolP256r1",
        b"\x2b\x24\x03\x03\x02\x08\x01\x01\x0b" => "brainpoolP384r1",
        _ => return None,
    })
}

mod oid {
    pub const RSA: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01";
    pub const EC: &[u8] = b"\x2a\x86\x48\xce\x3d\x02\x01";
    pub const P256: &[u8] = b"\x2a\x86\x48\xce\x3d\x03\x01\x07";
    pub const P384: &[u8] = b"\x2b\x81\x04\x00\x22";
}
