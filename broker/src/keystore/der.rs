//! A cursor over DER, and BER made into it.
//!
//! Source: X.690 §8 and §10. Stores are written by many hands: OpenSSL and the JDK write DER, Bouncy Castle and Windows BER with
//! indefinite lengths and strings in pieces, which [`normal`] makes into definite ones.

use core::fmt;

/// Tags of the elements that stores are made of.
pub mod tag {
    /// INTEGER.
    pub const INTEGER: u8 = 0x02;
    /// BIT STRING.
    pub const BIT_STRING: u8 = 0x03;
    /// OCTET STRING.
    pub const OCTET_STRING: u8 = 0x04;
    /// NULL.
    pub const NULL: u8 = 0x05;
    /// OBJECT IDENTIFIER.
    pub const OID: u8 = 0x06;
    /// BMPString.
    pub const BMP_STRING: u8 = 0x1e;
    /// SEQUENCE.
    pub const SEQUENCE: u8 = 0x30;
    /// SET.
    pub const SET: u8 = 0x31;
    /// `[n]`, constructed.
    pub const fn context(n: u8) -> u8 {
        0xa0 | n
    }
    /// `[n]`, primitive.
    pub const fn context_primitive(n: u8) -> u8 {
        0x80 | n
    }
}

/// Bytes that are not what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// They end inside an element.
    Truncated,
    /// Another element than what belongs there.
    Unexpected,
}

/// One element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element<'a> {
    /// Its identifier octet; tags above 30 are not read.
    pub tag: u8,
    /// What it holds.
    pub content: &'a [u8],
    /// Identifier, length and content.
    pub whole: &'a [u8],
}

/// Elements one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Der<'a> {
    rest: &'a [u8],
}

impl<'a> Der<'a> {
    /// A cursor at the first element of `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Whether nothing is left.
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next element, whatever it is.
    ///
    /// Errors: [`Malformed::Truncated`], and [`Malformed::Unexpected`] for an indefinite length.
    pub fn any(&mut self) -> Result<Element<'a>, Malformed> {
        let header = Header::read(self.rest)?;
        let Length::Definite(length) = header.length else {
            return Err(Malformed::Unexpected);
        };
        let end = header.bytes.checked_add(length).ok_or(Malformed::Truncated)?;
        let (whole, rest) = self.rest.split_at_checked(end).ok_or(Malformed::Truncated)?;
        self.rest = rest;
        let content = whole.get(header.bytes..).unwrap_or_default();
        Ok(Element {
            tag: header.tag,
            content,
            whole,
        })
    }

    /// The content of the next element, which has `tag`.
    pub fn take(&mut self, tag: u8) -> Result<&'a [u8], Malformed> {
        match self.any()? {
            element if element.tag == tag => Ok(element.content),
            _ => Err(Malformed::Unexpected),
        }
    }

    /// A cursor into the next element, which has `tag`.
    pub fn enter(&mut self, tag: u8) -> Result<Der<'a>, Malformed> {
        self.take(tag).map(Der::new)
    }

    /// The content of the next element when it has `tag`; otherwise nothing is consumed.
    pub fn optional(&mut self, tag: u8) -> Result<Option<&'a [u8]>, Malformed> {
        if self.rest.first() == Some(&tag) {
            self.take(tag).map(Some)
        } else {
            Ok(None)
        }
    }

    /// An INTEGER that is a count.
    pub fn count(&mut self) -> Result<u64, Malformed> {
        let content = self.take(tag::INTEGER)?;
        let negative = content.first().is_none_or(|first| *first > 0x7f);
        if negative || content.len() > 9 {
            return Err(Malformed::Unexpected);
        }
        content.iter().try_fold(0_u64, |sum, byte| {
            let shifted = sum.checked_mul(256).ok_or(Malformed::Unexpected)?;
            Ok(shifted | u64::from(*byte))
        })
    }

    /// Nothing more may follow.
    pub const fn end(&self) -> Result<(), Malformed> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(Malformed::Unexpected)
        }
    }
}

/// An AlgorithmIdentifier (RFC 5280 §4.1.1.2).
#[derive(Clone, Copy, Debug)]
pub struct Algorithm<'a> {
    /// The content of its identifier.
    pub oid: &'a [u8],
    /// Its parameters, if any.
    pub parameters: Der<'a>,
}

impl<'a> Algorithm<'a> {
    /// Reads the next element of `der` as one.
    pub fn read(der: &mut Der<'a>) -> Result<Self, Malformed> {
        let mut inside = der.enter(tag::SEQUENCE)?;
        let oid = inside.take(tag::OID)?;
        Ok(Self {
            oid,
            parameters: inside,
        })
    }
}

/// An object identifier's content with dots: `1.2.840.113549.1.5.13`.
pub struct Dotted<'a>(pub &'a [u8]);

impl fmt::Display for Dotted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut arc = 0_u128;
        let mut first = true;
        for byte in self.0 {
            arc = arc.wrapping_shl(7) | u128::from(byte & 0x7f);
            if byte & 0x80 != 0 {
                continue;
            }
            if first {
                let root = (arc / 40).min(2);
                write!(f, "{root}.{}", arc - root * 40)?;
                first = false;
            } else {
                write!(f, ".{arc}")?;
            }
            arc = 0;
        }
        Ok(())
    }
}

/// Writes one element: `tag`, the length of `parts` together, and `parts`.
pub fn write(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut out = Vec::with_capacity(length + 10);
    out.push(tag);
    if let Ok(short @ 0..=0x7f) = u8::try_from(length) {
        out.push(short);
    } else {
        let bytes = length.to_be_bytes();
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        out.push(0x80 | (bytes.len() - zeros) as u8);
        out.extend(bytes.iter().skip(zeros));
    }
    for part in parts {
        out.extend_from_slice(part);
    }
    out
}

/// How deep elements may lie in each other; a PKCS#12 file has about ten levels.
const DEPTH_MAX: usize = 24;

/// The first element of `bytes` with definite lengths, and its strings in one piece. Bytes after it are left aside: some writers pad.
///
/// `None`: it is so already. Errors: also for more than [`DEPTH_MAX`] levels.
pub fn normal(bytes: &[u8]) -> Result<Option<Vec<u8>>, Malformed> {
    if !is_indefinite(bytes, 0)? {
        return Ok(None);
    }
    let mut out = Vec::with_capacity(bytes.len());
    rewrite(bytes, 0, &mut out)?;
    Ok(Some(out))
}

/// Whether the element at the start of `bytes`, or one inside its constructed elements, has an indefinite length.
fn is_indefinite(bytes: &[u8], depth: usize) -> Result<bool, Malformed> {
    if depth > DEPTH_MAX {
        return Err(Malformed::Unexpected);
    }
    let header = Header::read(bytes)?;
    let Length::Definite(_) = header.length else {
        return Ok(true);
    };
    let element = Der::new(bytes).any()?;
    if element.tag & CONSTRUCTED == 0 {
        return Ok(false);
    }
    if element.tag == CONSTRUCTED_OCTET_STRING {
        return Ok(true);
    }
    let mut inside = Der::new(element.content);
    while !inside.is_empty() {
        if is_indefinite(inside.rest, depth + 1)? {
            return Ok(true);
        }
        inside.any()?;
    }
    Ok(false)
}

/// Writes the element at the start of `bytes` and gives how many bytes it took.
fn rewrite(bytes: &[u8], depth: usize, out: &mut Vec<u8>) -> Result<usize, Malformed> {
    if depth > DEPTH_MAX {
        return Err(Malformed::Unexpected);
    }
    let header = Header::read(bytes)?;
    let body = bytes.get(header.bytes..).ok_or(Malformed::Truncated)?;
    if header.tag & CONSTRUCTED == 0 {
        let element = Der::new(bytes).any()?;
        out.extend_from_slice(element.whole);
        return Ok(element.whole.len());
    }
    let mut inside = Vec::new();
    let mut at = 0;
    let used = loop {
        let rest = body.get(at..).ok_or(Malformed::Truncated)?;
        match header.length {
            Length::Definite(length) if at == length => break length,
            Length::Definite(length) if at > length => return Err(Malformed::Unexpected),
            Length::Indefinite if rest.starts_with(&[0, 0]) => break at + 2,
            _ => at += rewrite(rest, depth + 1, &mut inside)?,
        }
    };
    if header.tag == CONSTRUCTED_OCTET_STRING {
        out.extend(write(tag::OCTET_STRING, &[&joined(&inside)?]));
    } else {
        out.extend(write(header.tag, &[&inside]));
    }
    Ok(header.bytes + used)
}

/// The strings that `pieces` holds, one after the other.
pub fn joined(pieces: &[u8]) -> Result<Vec<u8>, Malformed> {
    let mut pieces = Der::new(pieces);
    let mut joined = Vec::new();
    while !pieces.is_empty() {
        joined.extend_from_slice(pieces.take(tag::OCTET_STRING)?);
    }
    Ok(joined)
}

/// The bit of a tag that says: elements inside.
const CONSTRUCTED: u8 = 0x20;
const CONSTRUCTED_OCTET_STRING: u8 = CONSTRUCTED | tag::OCTET_STRING;

/// Identifier and length octets.
struct Header {
    tag: u8,
    length: Length,
    /// How many octets they are.
    bytes: usize,
}

enum Length {
    Definite(usize),
    Indefinite,
}

impl Header {
    fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let (&[tag, first], rest) = bytes.split_first_chunk().ok_or(Malformed::Truncated)?;
        if tag & 0x1f == 0x1f {
            return Err(Malformed::Unexpected);
        }
        let (length, bytes) = match first {
            0..=0x7f => (Length::Definite(first.into()), 2),
            0x80 if tag & CONSTRUCTED != 0 => (Length::Indefinite, 2),
            0x81..=0x84 => {
                let count = usize::from(first & 0x7f);
                let octets = rest.get(..count).ok_or(Malformed::Truncated)?;
                let length = octets.iter().fold(0_usize, |sum, octet| sum << 8 | usize::from(*octet));
                (Length::Definite(length), 2 + count)
            }
            _ => return Err(Malformed::Unexpected),
        };
        Ok(Self { tag, length, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_and_their_ends() {
        let bytes = [0x30, 0x06, 0x02, 0x01, 0x05, 0x04, 0x01, 0xaa, 0x05, 0x00];
        let mut der = Der::new(&bytes);
        let mut inside = der.enter(tag::SEQUENCE).unwrap();
        assert_eq!(inside.count(), Ok(5));
        assert_eq!(inside.optional(tag::NULL), Ok(None));
        assert_eq!(inside.take(tag::OCTET_STRING), Ok(&[0xaa][..]));
        assert!(inside.is_empty());
        assert_eq!(der.take(tag::NULL), Ok(&[][..]));
        for cut in 0..8 {
            assert_eq!(Der::new(&bytes[..cut]).any(), Err(Malformed::Truncated), "{cut}");
        }
        assert_eq!(
            Der::new(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff]).any(),
            Err(Malformed::Truncated)
        );
        assert_eq!(Der::new(&[0x30, 0x85, 0, 0, 0, 0, 0]).any(), Err(Malformed::Unexpected));
    }

    #[test]
    fn counts_are_bounded() {
        let count = |content: &[u8]| Der::new(&write(tag::INTEGER, &[content])).count();
        assert_eq!(count(&[0, 0xff]), Ok(255));
        assert_eq!(
            count(&[0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
            Ok(i64::MAX as u64)
        );
        assert_eq!(count(&[0xff]), Err(Malformed::Unexpected));
        assert_eq!(count(&[]), Err(Malformed::Unexpected));
        assert_eq!(count(&[1, 0, 0, 0, 0, 0, 0, 0, 0]), Err(Malformed::Unexpected));
    }

    #[test]
    fn lengths_are_written_as_short_as_they_can_be() {
        assert_eq!(write(4, &[&[7; 127]])[..2], [4, 127]);
        assert_eq!(write(4, &[&[7; 128]])[..3], [4, 0x81, 128]);
        assert_eq!(write(4, &[&[7; 100], &[7; 200]])[..4], [4, 0x82, 1, 44]);
    }

    #[test]
    fn identifiers_with_dots() {
        let pbes2 = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x05, 0x0d];
        assert_eq!(Dotted(&pbes2).to_string(), "1.2.840.113549.1.5.13");
        assert_eq!(Dotted(&[0x88, 0x37]).to_string(), "2.999");
    }

    #[test]
    fn indefinite_lengths_and_pieces_are_made_definite() {
        // SEQUENCE { OCTET STRING in two pieces, INTEGER 1 }, every constructed length indefinite.
        let ber = [
            0x30, 0x80, 0x24, 0x80, 0x04, 0x01, 0xaa, 0x04, 0x02, 0xbb, 0xcc, 0, 0, 0x02, 0x01, 0x01, 0, 0,
        ];
        let der = [0x30, 0x08, 0x04, 0x03, 0xaa, 0xbb, 0xcc, 0x02, 0x01, 0x01];
        assert_eq!(normal(&ber).unwrap().unwrap(), der);
        assert_eq!(normal(&der), Ok(None));
        for cut in 0..ber.len() {
            assert_eq!(normal(&ber[..cut]), Err(Malformed::Truncated), "{cut}");
        }
        assert_eq!(normal(&[0x30, 0x80].repeat(100)), Err(Malformed::Unexpected));
    }
}
