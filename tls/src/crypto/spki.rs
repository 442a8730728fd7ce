//! What is inside a SubjectPublicKeyInfo (RFC 5280 §4.1.2.7) of the kinds that are spoken here. DER writes each in one way only.

use super::{KeyKind, PublicKey};

/// What stands before the point of P-256 (RFC 5480 §2): both sequences, id-ecPublicKey, the curve's name, the bit string's head.
const P256: &[u8] = &[
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce,
    0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
/// What stands before the point of P-384.
const P384: &[u8] = &[
    0x30, 0x76, 0x30, 0x10, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x05, 0x2b, 0x81, 0x04, 0x00,
    0x22, 0x03, 0x62, 0x00,
];
/// AlgorithmIdentifier of rsaEncryption (RFC 3279 §2.3.1).
const RSA: &[u8] = &[
    0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00,
];

/// The uncompressed point, or the RSAPublicKey (RFC 8017 §A.1.1) of at least 2048 bits, if the key is of the kind that it is said to be. The
/// libraries would take much else: compressed points, curves by their parameters, keys of RSASSA-PSS.
pub fn bare(key: PublicKey<'_>) -> Option<&[u8]> {
    match key.kind {
        KeyKind::P256 => key.spki.strip_prefix(P256).filter(|point| is_point(point, 65)),
        KeyKind::P384 => key.spki.strip_prefix(P384).filter(|point| is_point(point, 97)),
        KeyKind::Rsa(_) => {
            let bits = long(0x30, key.spki)?.strip_prefix(RSA)?;
            long(0x03, bits)?.strip_prefix(&[0])
        }
    }
}

fn is_point(point: &[u8], bytes: usize) -> bool {
    point.len() == bytes && point.first() == Some(&0x04)
}

/// The content of the one element there, with that tag and a length of two bytes.
fn long(tag: u8, bytes: &[u8]) -> Option<&[u8]> {
    let (&[found, 0x82, high, low], content) = bytes.split_first_chunk()? else {
        return None;
    };
    let is_all = content.len() == usize::from(u16::from_be_bytes([high, low]));
    (found == tag && is_all).then_some(content)
}
