//! Certificates and private keys from PEM files (RFC 7468).

use skerry_tls::x509::pem::{self, Block};

/// Every certificate of a file, DER, in order.
pub fn certificates(path: &str) -> Result<Vec<Vec<u8>>, String> {
    let blocks = blocks(path)?;
    let certificates = blocks.iter().filter(|block| block.label == "CERTIFICATE");
    let certificates: Vec<_> = certificates.map(|block| block.der.to_vec()).collect();
    if certificates.is_empty() {
        return Err(format!("{path}: no CERTIFICATE in it"));
    }
    Ok(certificates)
}

/// The first private key of a file as PKCS#8. Older forms (`RSA PRIVATE KEY`, `EC PRIVATE KEY`) are wrapped.
pub fn private_key(path: &str) -> Result<Vec<u8>, String> {
    for Block { label, der } in blocks(path)? {
        match label.as_str() {
            "PRIVATE KEY" => return Ok(der.to_vec()),
            "RSA PRIVATE KEY" => return Ok(pkcs8(RSA, &der)),
            "EC PRIVATE KEY" => {
                let curve = [P256, P384].into_iter().find(|curve| contains(&der, curve));
                let curve = curve.ok_or_else(|| format!("{path}: a key of another curve than P-256 and P-384"))?;
                return Ok(pkcs8(&[EC, curve].concat(), &der));
            }
            "ENCRYPTED PRIVATE KEY" => return Err(format!("{path}: the key is encrypted")),
            _ => {}
        }
    }
    Err(format!("{path}: no PRIVATE KEY in it"))
}

/// rsaEncryption and its NULL.
const RSA: &[u8] = &[
    0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00,
];
/// id-ecPublicKey.
const EC: &[u8] = &[0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const P256: &[u8] = &[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const P384: &[u8] = &[0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x22];

/// `SEQUENCE { INTEGER 0, SEQUENCE { algorithm }, OCTET STRING { key } }`.
fn pkcs8(algorithm: &[u8], key: &[u8]) -> Vec<u8> {
    let version = [0x02, 0x01, 0x00];
    der(0x30, &[&version[..], &der(0x30, algorithm), &der(0x04, key)].concat())
}

fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let length = &length[length.iter().position(|&byte| byte != 0).unwrap_or(length.len() - 1)..];
    match content.len() {
        0..0x80 => [&[tag], length, content].concat(),
        _ => [&[tag, 0x80 | length.len() as u8], length, content].concat(),
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Every block of a file.
fn blocks(path: &str) -> Result<Vec<Block>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    pem::read(&text).map_err(|pem::Broken| format!("{path}: broken PEM"))
}
