//! PEM: certificates and one private key or several, in a file or in-line in the settings.
//!
//! Source: RFC 7468, and what files in the wild have besides: comments, blanks at line ends, any line ends or none (Kafka takes a text
//! whose lines were joined), OpenSSL's `TRUSTED CERTIFICATE` and `EC PARAMETERS`, the headers of RFC 1421.

use base64ct::{Base64, Base64Unpadded, Encoding};
use zeroize::Zeroizing;

use super::der::Der;
use super::mistake::Mistake;
use super::{Contents, Entry, Format, Sealed, key};

/// Reads every block. Blocks of other kinds (public keys, revocation lists, …) are left aside.
pub fn read(text: &[u8]) -> Result<Contents, Mistake> {
    let mut contents = Contents::default();
    let mut curve: Option<Vec<u8>> = None;
    let mut rest = text;
    while let Some(block) = next(&mut rest)? {
        match block.label {
            b"CERTIFICATE" | b"X509 CERTIFICATE" | b"TRUSTED CERTIFICATE" => {
                let der = block.decoded("certificate")?;
                // OpenSSL's trusted certificates have their trust settings behind them.
                let element = Der::new(&der).any();
                let whole = element.map_err(|e| Mistake::of(Format::Pem, e, "certificate"))?.whole;
                contents.loose.push(whole.to_vec());
            }
            b"PRIVATE KEY" => contents.keys.push(plain(block.decoded("private key")?)),
            b"ENCRYPTED PRIVATE KEY" => contents
                .keys
                .push(Entry::without_chain(Sealed::Pkcs8(block.decoded("private key")?))),
            b"RSA PRIVATE KEY" | b"EC PRIVATE KEY" if block.is_encrypted() => {
                return Err(Mistake::EncryptedTraditionally);
            }
            b"RSA PRIVATE KEY" => {
                let made = key::from_pkcs1(&block.decoded("private key")?);
                contents.keys.push(plain(made.map_err(|_| Mistake::BadKey)?));
            }
            b"EC PARAMETERS" => curve = Some(block.decoded("curve")?.to_vec()),
            b"EC PRIVATE KEY" => {
                let made = key::from_sec1(&block.decoded("private key")?, curve.as_deref());
                contents.keys.push(plain(made.map_err(|_| Mistake::BadKey)?));
            }
            b"DSA PRIVATE KEY" => return Err(Mistake::UnsupportedKey("DSA".into())),
            b"OPENSSH PRIVATE KEY" => return Err(Mistake::OpenSsh),
            b"CERTIFICATE REQUEST" | b"NEW CERTIFICATE REQUEST" => contents.has_request = true,
            b"PKCS7" | b"CMS" => return Err(Mistake::Pkcs7),
            _ => {}
        }
    }
    Ok(contents)
}

fn plain(pkcs8: Zeroizing<Vec<u8>>) -> Entry {
    Entry::without_chain(Sealed::Plain(pkcs8))
}

/// Whether there is a block in `text`.
pub fn is_pem(text: &[u8]) -> bool {
    find(text, BEGIN).is_some()
}

const BEGIN: &[u8] = b"-----BEGIN ";
const END: &[u8] = b"-----END ";
const DASHES: &[u8] = b"-----";

/// What stands between a `BEGIN` and its `END`.
struct Block<'a> {
    label: &'a [u8],
    body: &'a [u8],
}

/// The next block, after which `rest` goes on.
fn next<'a>(rest: &mut &'a [u8]) -> Result<Option<Block<'a>>, Mistake> {
    let Some(begin) = find(rest, BEGIN) else {
        return Ok(None);
    };
    let text = rest.get(begin + BEGIN.len()..).unwrap_or_default();
    let label_end = find(text, DASHES).ok_or(Mistake::Truncated(Format::Pem))?;
    let label = text.get(..label_end).unwrap_or_default();
    let text = text.get(label_end + DASHES.len()..).unwrap_or_default();
    let end = find(text, END).ok_or(Mistake::Truncated(Format::Pem))?;
    let body = text.get(..end).unwrap_or_default();
    if find(body, BEGIN).is_some() {
        return Err(Mistake::Truncated(Format::Pem));
    }
    let after = text.get(end + END.len()..).unwrap_or_default();
    let closing = [label, DASHES].concat();
    if !after.starts_with(&closing) {
        return Err(match closing.starts_with(after) {
            true => Mistake::Truncated(Format::Pem),
            false => Mistake::Malformed(Format::Pem, "END line"),
        });
    }
    *rest = after;
    Ok(Some(Block {
        label: label.trim_ascii(),
        body,
    }))
}

impl Block<'_> {
    fn is_encrypted(&self) -> bool {
        find(self.body, b"Proc-Type:").is_some() && find(self.body, b"ENCRYPTED").is_some()
    }

    /// The bytes that the block bears. Its headers, when it has them, end at an empty line.
    fn decoded(&self, part: &'static str) -> Result<Zeroizing<Vec<u8>>, Mistake> {
        let wrong = Mistake::Malformed(Format::Pem, part);
        let mut digits = Zeroizing::new(Vec::with_capacity(self.body.len()));
        let mut lines = self.body.split(|byte| *byte == b'\n');
        if self.body.contains(&b':') {
            lines.by_ref().skip(1).find(|line| line.trim_ascii().is_empty());
        }
        digits.extend(lines.flatten().copied().filter(|byte| !byte.is_ascii_whitespace()));
        let mut out = Zeroizing::new(vec![0; digits.len() / 4 * 3 + 3]);
        let decoded = if digits.last() == Some(&b'=') {
            Base64::decode(&*digits, &mut out)
        } else {
            Base64Unpadded::decode(&*digits, &mut out)
        };
        let length = decoded.map_err(|_| wrong)?.len();
        out.truncate(length);
        Ok(out)
    }
}

/// Where `what` first stands in `text`.
fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}
