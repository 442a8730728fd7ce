//! JKS and JCEKS, the JDK's own formats of old.
//!
//! Source: `sun.security.provider.JavaKeyStore` and `com.sun.crypto.provider.JceKeyStore` of the JDK. A file is a magic number, a version
//! and a list of entries, each with an alias and a date; then SHA-1 of the password, a phrase and everything before. Own code, as the
//! crate for this reserves memory as the file says, panics on damaged keys and takes passwords for Latin-1.

use sha1::Sha1;
use sha2::digest::Digest;
use zeroize::Zeroizing;

use super::der::{Algorithm, Der, Malformed, tag};
use super::mistake::{KeyName, Mistake};
use super::pbe::{oid, utf16};
use super::{Contents, Entry, Format, Purpose, Sealed};

/// What a JKS file begins with.
pub const MAGIC: [u8; 4] = [0xfe, 0xed, 0xfe, 0xed];
/// What a JCEKS file begins with.
pub const MAGIC_JCEKS: [u8; 4] = [0xce, 0xce, 0xce, 0xce];

const CHECK_BYTES: usize = 20;

/// Reads every entry. Without a password nothing is checked, as in Java; keys stay closed.
pub fn read(bytes: &[u8], format: Format, password: Option<&str>, purpose: Purpose) -> Result<Contents, Mistake> {
    let truncated = Mistake::Truncated(format);
    let end = bytes.len().checked_sub(CHECK_BYTES).ok_or(truncated.clone())?;
    let (body, check) = bytes.split_at_checked(end).ok_or(truncated.clone())?;
    let mut cursor = Cursor { rest: body };
    let contents = entries(&mut cursor, format).map_err(|wrong| match wrong {
        Wrong::End => truncated,
        Wrong::Told(mistake) => mistake,
    })?;
    if !cursor.rest.is_empty() {
        return Err(Mistake::Malformed(format, "end"));
    }
    if let Some(password) = password {
        let ours = Sha1::new()
            .chain_update(&*utf16(password))
            .chain_update(b"Mighty Aphrodite")
            .chain_update(body)
            .finalize();
        if ours.as_slice() != check {
            return Err(Mistake::WrongPassword(purpose));
        }
    }
    Ok(contents)
}

enum Wrong {
    End,
    Told(Mistake),
}

fn entries(cursor: &mut Cursor<'_>, format: Format) -> Result<Contents, Wrong> {
    let malformed = |part| Wrong::Told(Mistake::Malformed(format, part));
    cursor.u32()?;
    let version = cursor.u32()?;
    if !matches!(version, 1 | 2) {
        return Err(malformed("version"));
    }
    let mut contents = Contents::default();
    for _ in 0..cursor.u32()? {
        let kind = cursor.u32()?;
        let alias = String::from_utf8_lossy(cursor.text()?).into_owned();
        // The date of the entry.
        cursor.take(8)?;
        match kind {
            1 => {
                let sealed = sealed(cursor.bytes()?).map_err(|_| malformed("private key"))?;
                let mut chain = Vec::new();
                for _ in 0..cursor.u32()? {
                    chain.push(certificate(cursor, version)?);
                }
                contents.keys.push(Entry {
                    name: KeyName(Some(alias)),
                    sealed,
                    chain,
                });
            }
            2 => contents.trusted.push(certificate(cursor, version)?),
            3 if format == Format::Jceks => return Err(Wrong::Told(Mistake::SecretKey)),
            _ => return Err(malformed("entry")),
        }
    }
    Ok(contents)
}

fn certificate(cursor: &mut Cursor<'_>, version: u32) -> Result<Vec<u8>, Wrong> {
    if version == 2 {
        // Its type, which is X.509 always.
        cursor.text()?;
    }
    Ok(cursor.bytes()?.to_vec())
}

/// A protected key is an EncryptedPrivateKeyInfo; JKS has an algorithm of its own for it.
fn sealed(der: &[u8]) -> Result<Sealed, Malformed> {
    let mut inside = Der::new(der).enter(tag::SEQUENCE)?;
    let algorithm = Algorithm::read(&mut inside)?;
    let data = inside.take(tag::OCTET_STRING)?;
    Ok(if algorithm.oid == oid::JKS_KEY {
        Sealed::Jks(data.to_vec())
    } else {
        Sealed::Pkcs8(Zeroizing::new(der.to_vec()))
    })
}

struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Wrong> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(Wrong::End)?;
        self.rest = rest;
        Ok(taken)
    }

    fn number<const N: usize>(&mut self) -> Result<[u8; N], Wrong> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(Wrong::End)?;
        self.rest = rest;
        Ok(*taken)
    }

    fn u32(&mut self) -> Result<u32, Wrong> {
        self.number().map(u32::from_be_bytes)
    }

    /// Text with its length in two bytes.
    fn text(&mut self) -> Result<&'a [u8], Wrong> {
        let length = self.number().map(u16::from_be_bytes)?;
        self.take(length.into())
    }

    /// Bytes with their length in four.
    fn bytes(&mut self) -> Result<&'a [u8], Wrong> {
        let length = self.u32()?;
        self.take(length as usize)
    }
}
