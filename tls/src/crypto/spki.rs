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

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    const KEYS: [(KeyKind, &[u8], usize); 4] = [
        (KeyKind::P256, include_bytes!("../../tests/keys/p256.spki"), 65),
        (KeyKind::P384, include_bytes!("../../tests/keys/p384.spki"), 97),
        (KeyKind::Rsa(2048), include_bytes!("../../tests/keys/rsa2048.spki"), 270),
        (KeyKind::Rsa(4096), include_bytes!("../../tests/keys/rsa4096.spki"), 526),
    ];

    #[test]
    fn only_the_one_form_of_each_kind_is_taken() {
        for (kind, spki, bare_bytes) in KEYS {
            let head = spki.len() - bare_bytes;
            assert_eq!(bare(PublicKey { kind, spki }), Some(&spki[head..]));
            for bit in 0..8 * head {
                let mut wrong = spki.to_vec();
                wrong[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(bare(PublicKey { kind, spki: &wrong }), None, "{kind:?} bit {bit}");
            }
            for bytes in 0..spki.len() {
                assert_eq!(
                    bare(PublicKey {
                        kind,
                        spki: &spki[..bytes]
                    }),
                    None,
                    "{kind:?} {bytes}"
                );
            }
            let longer: Vec<u8> = spki.iter().copied().chain([0]).collect();
            assert_eq!(bare(PublicKey { kind, spki: &longer }), None);
            let is_rsa = matches!(kind, KeyKind::Rsa(_));
            for (other, ..) in KEYS {
                if other != kind && !(is_rsa && matches!(other, KeyKind::Rsa(_))) {
                    assert_eq!(bare(PublicKey { kind: other, spki }), None);
                }
            }
        }
        // A compressed point, and a hybrid one.
        let (kind, spki, _) = KEYS[0];
        for form in [2, 3, 6, 7, 0] {
            let mut wrong = spki.to_vec();
            wrong[P256.len()] = form;
            assert_eq!(bare(PublicKey { kind, spki: &wrong }), None);
        }
    }
}
