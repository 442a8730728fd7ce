//! PKCS#12, the JDK's and OpenSSL's format of today.
//!
//! Source: RFC 7292; `sun.security.pkcs12.PKCS12KeyStore` for the attribute that marks a trusted certificate. Own code over the small
//! cipher crates, as the crate for this knows one password only, takes no BER, and brings pre-releases and an X.509 parser with it.

use zeroize::Zeroizing;

use super::der::{self, Algorithm, Der, Malformed, tag};
use super::mistake::{KeyName, Mistake};
use super::pbe::{Effort, Failed, Password, check_mac, decrypt};
use super::{Contents, Entry, Format, Purpose, Sealed};

/// How deep bags may lie in bags.
const DEPTH_MAX: usize = 4;

/// Reads every bag; encrypted keys stay closed. Without a password nothing is checked, and certificates that are encrypted cannot be read.
pub fn read(bytes: &[u8], password: Option<&str>, purpose: Purpose, effort: &mut Effort) -> Result<Contents, Mistake> {
    let part = |part| move |malformed: Malformed| Mistake::of(Format::Pkcs12, malformed, part);
    let definite = normal(bytes).map_err(part("outer structure"))?;
    let pfx = Pfx::read(definite.as_deref().map_or(bytes, Vec::as_slice)).map_err(part("outer structure"))?;
    let Some(content) = pfx.content else {
        return Err(Mistake::Encryption("of a public key".into()));
    };

    let mut forms = password.map(Password::new);
    if let (Some(mac), Some(text)) = (pfx.mac, password) {
        let tried = |form: &Password, effort: &mut Effort| check_mac(mac, &content, form, effort);
        let mut checked = forms.as_ref().map_or(Err(Failed::Wrong), |form| tried(form, effort));
        if text.is_empty() && checked == Err(Failed::Wrong) {
            let none = Password::none();
            checked = tried(&none, effort);
            forms = Some(none);
        }
        checked.map_err(|failed| failed.mistake(Format::Pkcs12, Mistake::WrongPassword(purpose)))?;
    }

    let mut bags = Bags::default();
    let definite = normal(&content).map_err(part("list of contents"))?;
    let mut safes = Der::new(definite.as_deref().map_or(&content, Vec::as_slice));
    let mut safes = safes.enter(tag::SEQUENCE).map_err(part("list of contents"))?;
    while !safes.is_empty() {
        let info = ContentInfo::read(&mut safes).map_err(part("contents"))?;
        let safe = match info.kind {
            oid::DATA => info.data().map_err(part("contents"))?,
            oid::ENCRYPTED_DATA => {
                let sealed = Encrypted::read(info.content).map_err(part("encrypted contents"))?;
                let form = forms.as_ref().ok_or(Mistake::NeedsPassword(purpose))?;
                decrypt(sealed.algorithm, &sealed.data, form, effort)
                    .map_err(|failed| failed.mistake(Format::Pkcs12, Mistake::WrongPassword(purpose)))?
            }
            _ => return Err(Mistake::Encryption("of a public key".into())),
        };
        bags.read(&safe, 0).map_err(part("contents"))?;
    }
    Ok(bags.contents())
}

/// Whether `bytes` begin as a PKCS#12 file does: a SEQUENCE that begins with the number 3.
pub fn is_pkcs12(bytes: &[u8]) -> bool {
    let after_length = match bytes {
        [tag::SEQUENCE, 0x80, rest @ ..] => rest,
        [tag::SEQUENCE, long @ 0x81..=0x84, rest @ ..] => rest.get(usize::from(long & 0x7f)..).unwrap_or_default(),
        [tag::SEQUENCE, _, rest @ ..] => rest,
        _ => return false,
    };
    after_length.starts_with(&[tag::INTEGER, 1, 3])
}

fn normal(bytes: &[u8]) -> Result<Option<Zeroizing<Vec<u8>>>, Malformed> {
    Ok(der::normal(bytes)?.map(Zeroizing::new))
}

/// The outermost structure.
struct Pfx<'a> {
    /// The AuthenticatedSafe; `None` when it is signed instead of protected by a password.
    content: Option<Zeroizing<Vec<u8>>>,
    /// The content of the MacData.
    mac: Option<&'a [u8]>,
}

impl<'a> Pfx<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut pfx = Der::new(bytes).enter(tag::SEQUENCE)?;
        pfx.count()?;
        let info = ContentInfo::read(&mut pfx)?;
        Ok(Self {
            content: (info.kind == oid::DATA).then(|| info.data()).transpose()?,
            mac: pfx.optional(tag::SEQUENCE)?,
        })
    }
}

/// `SEQUENCE { type, [0] content }`.
struct ContentInfo<'a> {
    kind: &'a [u8],
    content: Der<'a>,
}

impl<'a> ContentInfo<'a> {
    fn read(der: &mut Der<'a>) -> Result<Self, Malformed> {
        let mut inside = der.enter(tag::SEQUENCE)?;
        Ok(Self {
            kind: inside.take(tag::OID)?,
            content: inside.enter(tag::context(0))?,
        })
    }

    fn data(&self) -> Result<Zeroizing<Vec<u8>>, Malformed> {
        let mut content = self.content;
        Ok(Zeroizing::new(content.take(tag::OCTET_STRING)?.to_vec()))
    }
}

/// EncryptedData (RFC 5652 §8).
struct Encrypted<'a> {
    algorithm: Algorithm<'a>,
    data: Vec<u8>,
}

impl<'a> Encrypted<'a> {
    fn read(mut content: Der<'a>) -> Result<Self, Malformed> {
        let mut inside = content.enter(tag::SEQUENCE)?;
        inside.count()?;
        let mut info = inside.enter(tag::SEQUENCE)?;
        info.take(tag::OID)?;
        let algorithm = Algorithm::read(&mut info)?;
        let data = match info.optional(tag::context_primitive(0))? {
            Some(whole) => whole.to_vec(),
            None => der::joined(info.take(tag::context(0))?)?,
        };
        Ok(Self { algorithm, data })
    }
}

/// What was in the bags.
#[derive(Default)]
struct Bags {
    keys: Vec<(Attributes, Sealed)>,
    certificates: Vec<(Attributes, Vec<u8>)>,
}

impl Bags {
    /// Reads SafeContents.
    fn read(&mut self, bytes: &[u8], depth: usize) -> Result<(), Malformed> {
        if depth > DEPTH_MAX {
            return Err(Malformed::Unexpected);
        }
        let definite = normal(bytes)?;
        let mut bags = Der::new(definite.as_deref().map_or(bytes, Vec::as_slice)).enter(tag::SEQUENCE)?;
        while !bags.is_empty() {
            let mut bag = bags.enter(tag::SEQUENCE)?;
            let kind = bag.take(tag::OID)?;
            let value = bag.take(tag::context(0))?;
            let attributes = match bag.optional(tag::SET)? {
                Some(set) => Attributes::read(set)?,
                None => Attributes::default(),
            };
            let whole = || Zeroizing::new(value.to_vec());
            match kind {
                oid::KEY_BAG => self.keys.push((attributes, Sealed::Plain(whole()))),
                oid::SHROUDED_KEY_BAG => self.keys.push((attributes, Sealed::Pkcs8(whole()))),
                oid::CERTIFICATE_BAG => {
                    let mut inside = Der::new(value).enter(tag::SEQUENCE)?;
                    if inside.take(tag::OID)? == oid::X509 {
                        let mut certificate = inside.enter(tag::context(0))?;
                        let der = certificate.take(tag::OCTET_STRING)?.to_vec();
                        self.certificates.push((attributes, der));
                    }
                }
                oid::SAFE_CONTENTS_BAG => self.read(value, depth + 1)?,
                // Revocation lists and secrets.
                _ => {}
            }
        }
        Ok(())
    }

    /// Keys beside their certificates, those marked as trusted, and the rest.
    fn contents(self) -> Contents {
        let mut contents = Contents::default();
        for (attributes, sealed) in self.keys {
            let own =
                |(theirs, _): &&(Attributes, Vec<u8>)| theirs.key_id.is_some() && theirs.key_id == attributes.key_id;
            let chain = self.certificates.iter().find(own).map(|(_, der)| der.clone());
            contents.keys.push(Entry {
                name: KeyName(attributes.name),
                sealed,
                chain: chain.into_iter().collect(),
            });
        }
        for (attributes, der) in self.certificates {
            if attributes.trusted {
                contents.trusted.push(der);
            } else if !contents.keys.iter().any(|key| key.chain.contains(&der)) {
                contents.loose.push(der);
            }
        }
        contents
    }
}

#[derive(Default)]
struct Attributes {
    name: Option<String>,
    key_id: Option<Vec<u8>>,
    /// Whether Java takes the certificate for a trusted one.
    trusted: bool,
}

impl Attributes {
    fn read(set: &[u8]) -> Result<Self, Malformed> {
        let mut out = Self::default();
        let mut set = Der::new(set);
        while !set.is_empty() {
            let mut attribute = set.enter(tag::SEQUENCE)?;
            let kind = attribute.take(tag::OID)?;
            let mut values = attribute.enter(tag::SET)?;
            match kind {
                oid::FRIENDLY_NAME => out.name = values.optional(tag::BMP_STRING)?.map(utf16),
                oid::LOCAL_KEY_ID => out.key_id = values.optional(tag::OCTET_STRING)?.map(<[u8]>::to_vec),
                oid::TRUSTED_KEY_USAGE => out.trusted = true,
                _ => {}
            }
        }
        Ok(out)
    }
}

fn utf16(bytes: &[u8]) -> String {
    let units = bytes.chunks_exact(2).map(|pair| match pair {
        [high, low] => u16::from_be_bytes([*high, *low]),
        _ => 0,
    });
    char::decode_utf16(units)
        .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect()
}

/// Object identifiers, as their content is encoded.
mod oid {
    pub const DATA: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x07\x01";
    pub const ENCRYPTED_DATA: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x07\x06";
    pub const KEY_BAG: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x0a\x01\x01";
    pub const SHROUDED_KEY_BAG: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x0a\x01\x02";
    pub const CERTIFICATE_BAG: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x0a\x01\x03";
    pub const SAFE_CONTENTS_BAG: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x0a\x01\x06";
    pub const X509: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x16\x01";
    pub const FRIENDLY_NAME: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x14";
    pub const LOCAL_KEY_ID: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x15";
    /// `2.16.840.1.113894.746875.1.1`, Oracle's.
    pub const TRUSTED_KEY_USAGE: &[u8] = b"\x60\x86\x48\x01\x86\xf9\x66\xad\xca\x7b\x01\x01";
}
