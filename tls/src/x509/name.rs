//! Distinguished names (RFC 5280 §4.1.2.4): compared, and written as Java writes them.

use core::fmt::{self, Write};

use super::der::{Malformed, Reader, tag};

/// Relative names in one name; more are refused. Names of people and machines have six or seven.
pub const RDN_COUNT_MAX: usize = 64;

/// `id-at-commonName`.
pub const COMMON_NAME: &[u8] = &[0x55, 4, 3];
/// `id-emailAddress` of PKCS#9.
pub const EMAIL_ADDRESS: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 1];

/// A distinguished name whose structure was checked.
#[derive(Clone, Copy, Debug)]
pub struct Name<'a> {
    /// The SEQUENCE with its tag and length.
    pub der: &'a [u8],
    /// Its contents.
    rdns: &'a [u8],
}

/// One attribute of a name.
#[derive(Clone, Copy, Debug)]
pub struct Attribute<'a> {
    /// What it is, the contents of an OBJECT IDENTIFIER.
    pub kind: &'a [u8],
    /// Tag of the value.
    pub tag: u8,
    /// Contents of the value.
    pub value: &'a [u8],
    /// The value with its tag and length.
    whole: &'a [u8],
}

impl<'a> Name<'a> {
    /// The next value, a Name.
    ///
    /// Errors: [`Malformed`] also for more than [`RDN_COUNT_MAX`] relative names.
    pub fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let element = reader.element()?;
        if element.tag != tag::SEQUENCE {
            return Err(Malformed);
        }
        Self::of(element.value, element.whole)
    }

    /// A name by the contents of its SEQUENCE; `der` is the whole.
    pub fn of(rdns: &'a [u8], der: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(rdns);
        for _ in 0..RDN_COUNT_MAX {
            if reader.is_empty() {
                break;
            }
            let mut set = Reader::new(reader.value(tag::SET)?);
            attribute(&mut set)?;
            while !set.is_empty() {
                attribute(&mut set)?;
            }
        }
        reader.finish()?;
        Ok(Self { der, rdns })
    }

    /// Whether it says nothing at all.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rdns.is_empty()
    }

    /// Its relative names, the contents of a SET each, the most general first.
    fn rdns(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut reader = Reader::new(self.rdns);
        core::iter::from_fn(move || reader.value(tag::SET).ok())
    }

    /// Its attributes in the order in which they are encoded.
    pub fn attributes(&self) -> impl Iterator<Item = Attribute<'a>> + use<'a> {
        self.rdns().flat_map(attributes)
    }

    /// Whether both are the same name: by bytes, or by text without regard to case (of ASCII), to the kind of string and to how much space
    /// lies where (RFC 5280 §7.1, without Unicode's folding: names that differ only there are different).
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        self.rdns == other.rdns || (self.is_within(other) && self.rdns().count() == other.rdns().count())
    }

    /// Whether it begins with every relative name of `subtree` (RFC 5280 §4.2.1.10).
    #[must_use]
    pub fn is_within(&self, subtree: &Self) -> bool {
        let mut own = self.rdns();
        subtree
            .rdns()
            .all(|wanted| own.next().is_some_and(|rdn| same_rdn(rdn, wanted)))
    }
}

fn attribute<'a>(reader: &mut Reader<'a>) -> Result<Attribute<'a>, Malformed> {
    let mut pair = reader.sequence()?;
    let kind = pair.oid()?;
    let value = pair.element()?;
    pair.finish()?;
    Ok(Attribute {
        kind,
        tag: value.tag,
        value: value.value,
        whole: value.whole,
    })
}

fn attributes<'a>(set: &'a [u8]) -> impl Iterator<Item = Attribute<'a>> {
    let mut reader = Reader::new(set);
    core::iter::from_fn(move || attribute(&mut reader).ok())
}

fn same_rdn(one: &[u8], other: &[u8]) -> bool {
    one == other
        || attributes(one).count() == attributes(other).count()
            && attributes(one)
                .zip(attributes(other))
                .all(|(one, other)| one.is(&other))
}

impl Attribute<'_> {
    fn is(&self, other: &Self) -> bool {
        let text = |tag| matches!(tag, tag::UTF8_STRING | tag::PRINTABLE_STRING | tag::IA5_STRING);
        self.kind == other.kind
            && (self.whole == other.whole
                || text(self.tag) && text(other.tag) && folded(self.value).eq(folded(other.value)))
    }
}

/// Words in lower case with one space between them.
fn folded(text: &[u8]) -> impl Iterator<Item = u8> {
    text.split(|&byte| byte == b' ')
        .filter(|word| !word.is_empty())
        .flat_map(|word| [b' '].into_iter().chain(word.iter().map(u8::to_ascii_lowercase)))
}

/// Writes the name as Java's `X500Principal.getName()` does, which is RFC 2253 with that program's choices: the most specific relative
/// name first; attributes of one relative name as they are encoded; nine keywords, every other type as numbers with its value in hex;
/// `=` and `#` escaped wherever they are.
impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.rdns().count();
        for index in (0..count).rev() {
            for (place, attribute) in self.rdns().nth(index).into_iter().flat_map(attributes).enumerate() {
                if place > 0 {
                    f.write_char('+')?;
                } else if index + 1 < count {
                    f.write_char(',')?;
                }
                attribute.fmt(f)?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Attribute<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keyword = match self.kind {
            COMMON_NAME => "CN",
            [0x55, 4, 6] => "C",
            [0x55, 4, 7] => "L",
            [0x55, 4, 8] => "ST",
            [0x55, 4, 9] => "STREET",
            [0x55, 4, 10] => "O",
            [0x55, 4, 11] => "OU",
            [0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 25] => "DC",
            [0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 1] => "UID",
            _ => "",
        };
        let is_text = matches!(
            self.tag,
            tag::UTF8_STRING
                | tag::PRINTABLE_STRING
                | tag::TELETEX_STRING
                | tag::IA5_STRING
                | tag::GENERAL_STRING
                | tag::BMP_STRING
        );
        if keyword.is_empty() {
            dotted(self.kind, f)?;
        } else {
            f.write_str(keyword)?;
        }
        f.write_char('=')?;
        if keyword.is_empty() || !is_text {
            f.write_char('#')?;
            return self.whole.iter().try_for_each(|byte| write!(f, "{byte:02x}"));
        }
        let chars = || Characters {
            tag: self.tag,
            rest: self.value,
        };
        let is_space = |character| matches!(character, ' ' | '\r');
        let begins = chars().position(|character| !is_space(character));
        let ends = chars()
            .enumerate()
            .filter(|&(_, character)| !is_space(character))
            .last();
        let inner = begins.unwrap_or(usize::MAX)..=ends.map_or(0, |(index, _)| index);
        for (index, character) in chars().enumerate() {
            match character {
                '\0' => f.write_str("\\00")?,
                ',' | '=' | '+' | '<' | '>' | '#' | ';' | '"' | '\\' => write!(f, "\\{character}")?,
                _ if !inner.contains(&index) => write!(f, "\\{character}")?,
                _ => f.write_char(character)?,
            }
        }
        Ok(())
    }
}

/// The characters of a string by its kind, as Java (from version 21 on) has them: what is none becomes U+FFFD.
struct Characters<'a> {
    tag: u8,
    rest: &'a [u8],
}

impl Iterator for Characters<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        let (character, bytes) = match (self.tag, self.rest) {
            (_, []) => return None,
            (tag::UTF8_STRING, [0xed, 0xa0..=0xbf, 0x80..=0xbf, ..]) => (char::REPLACEMENT_CHARACTER, 3),
            (tag::UTF8_STRING, rest) => {
                let first = rest.get(..4).unwrap_or(rest).utf8_chunks().next()?;
                match first.valid().chars().next() {
                    Some(character) => (character, character.len_utf8()),
                    None => (char::REPLACEMENT_CHARACTER, first.invalid().len()),
                }
            }
            (tag::BMP_STRING, &[high, low, ..]) => {
                let unit = u16::from_be_bytes([high, low]);
                (char::from_u32(unit.into()).unwrap_or(char::REPLACEMENT_CHARACTER), 2)
            }
            (tag::BMP_STRING, _) => (char::REPLACEMENT_CHARACTER, 1),
            // The others are ASCII, or should be; Latin-1 holds it.
            (_, &[byte, ..]) => (char::from(byte), 1),
        };
        self.rest = self.rest.get(bytes..).unwrap_or_default();
        Some(character)
    }
}

/// An OBJECT IDENTIFIER as numbers with dots between them. One with a part over 2^64 is written with what fits of it.
fn dotted(oid: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut part = 0_u64;
    let mut is_first = true;
    for &octet in oid {
        part = part << 7 | u64::from(octet & 0x7f);
        if octet & 0x80 != 0 {
            continue;
        }
        if is_first {
            let first = (part / 40).min(2);
            write!(f, "{first}.{}", part - first * 40)?;
            is_first = false;
        } else {
            write!(f, ".{part}")?;
        }
        part = 0;
    }
    Ok(())
}

/// Text that keeps as much as fits of what is written to it, and knows when that was not all.
pub struct Cut<const N: usize> {
    /// What fitted.
    pub text: heapless::String<N>,
    /// Whether that was not all.
    pub cut: bool,
}

impl<const N: usize> Cut<N> {
    /// As much of `value` as fits.
    pub fn of(value: impl fmt::Display) -> Self {
        let mut cut = Self {
            text: heapless::String::new(),
            cut: false,
        };
        // Full is told by `cut`; a name's own formatting never fails.
        let _ = write!(cut, "{value}");
        cut
    }
}

impl<const N: usize> Write for Cut<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            self.cut |= self.text.push(character).is_err();
            if self.cut {
                return Err(fmt::Error);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::format;
    use std::string::{String, ToString};
    use std::vec::Vec;

    use super::*;

    fn name(der: &[u8]) -> Name<'_> {
        let mut reader = Reader::new(der);
        let name = Name::read(&mut reader).unwrap();
        reader.finish().unwrap();
        name
    }

    /// *Goal*: names are written as Java writes them, for principals depend on it. *Method*: `tests/x509/names.txt`, which Java made.
    #[test]
    fn names_are_written_as_java_writes_them() {
        let octets = |hex: &str| -> Vec<u8> {
            (0..hex.len() / 2)
                .map(|index| u8::from_str_radix(&hex[2 * index..2 * index + 2], 16).unwrap())
                .collect()
        };
        let lines = include_str!("../../tests/x509/names.txt").lines();
        assert!(lines.clone().count() > 200);
        let mut wrong = Vec::new();
        for line in lines {
            let (der, written) = line.split_once(' ').unwrap();
            let (der, written) = (octets(der), String::from_utf8(octets(written)).unwrap());
            if name(&der).to_string() != written {
                wrong.push(format!("{line}: {:?}, Java: {written:?}", name(&der).to_string()));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
