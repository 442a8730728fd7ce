//! A reader of DER (X.690): the subset that certificates are written in, strictly, borrowing everything and allocating nothing.

/// Bytes that are no DER, or not what was expected of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Identifier octets. Certificates use none with a number above 30.
pub mod tag {
    /// BOOLEAN.
    pub const BOOLEAN: u8 = 0x01;
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
    /// UTF8String.
    pub const UTF8_STRING: u8 = 0x0c;
    /// PrintableString.
    pub const PRINTABLE_STRING: u8 = 0x13;
    /// TeletexString, also called T61String.
    pub const TELETEX_STRING: u8 = 0x14;
    /// IA5String.
    pub const IA5_STRING: u8 = 0x16;
    /// UTCTime.
    pub const UTC_TIME: u8 = 0x17;
    /// GeneralizedTime.
    pub const GENERALIZED_TIME: u8 = 0x18;
    /// GeneralString.
    pub const GENERAL_STRING: u8 = 0x1b;
    /// UniversalString.
    pub const UNIVERSAL_STRING: u8 = 0x1c;
    /// BMPString.
    pub const BMP_STRING: u8 = 0x1e;
    /// SEQUENCE.
    pub const SEQUENCE: u8 = 0x30;
    /// SET.
    pub const SET: u8 = 0x31;

    /// A context-specific tag with a primitive value.
    #[must_use]
    pub const fn context(number: u8) -> u8 {
        0x80 | number
    }

    /// A context-specific tag whose value is made of other values.
    #[must_use]
    pub const fn context_constructed(number: u8) -> u8 {
        0xa0 | number
    }
}

/// One value with its tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element<'a> {
    /// The identifier octet.
    pub tag: u8,
    /// The contents.
    pub value: &'a [u8],
    /// Identifier, length and contents.
    pub whole: &'a [u8],
}

/// A cursor over the values that follow one another.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A cursor at the start of `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Whether everything was read.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Errors: [`Malformed`] unless everything was read.
    pub const fn finish(self) -> Result<(), Malformed> {
        if self.rest.is_empty() { Ok(()) } else { Err(Malformed) }
    }

    /// The next value, whatever it is.
    ///
    /// Errors: [`Malformed`] at the end, for a tag of more than one octet, and for a length that is indefinite, not the shortest form, or
    ///   more than there is.
    pub fn element(&mut self) -> Result<Element<'a>, Malformed> {
        let (&tag, after_tag) = self.rest.split_first().ok_or(Malformed)?;
        if tag & 0x1f == 0x1f {
            return Err(Malformed);
        }
        let (&first, mut after_length) = after_tag.split_first().ok_or(Malformed)?;
        let mut length = usize::from(first);
        if first & 0x80 != 0 {
            // At most three octets: nothing here is longer than 16 MiB.
            let octets = usize::from(first & 0x7f);
            if !(1..=3).contains(&octets) {
                return Err(Malformed);
            }
            let (octets, rest) = after_length.split_at_checked(octets).ok_or(Malformed)?;
            length = octets.iter().fold(0, |length, &octet| length << 8 | usize::from(octet));
            if length < 0x80 || octets.first() == Some(&0) {
                return Err(Malformed);
            }
            after_length = rest;
        }
        let (value, rest) = after_length.split_at_checked(length).ok_or(Malformed)?;
        let (whole, _) = self
            .rest
            .split_at_checked(self.rest.len() - rest.len())
            .ok_or(Malformed)?;
        self.rest = rest;
        Ok(Element { tag, value, whole })
    }

    /// The contents of the next value, which has `tag`.
    pub fn value(&mut self, tag: u8) -> Result<&'a [u8], Malformed> {
        let element = self.element()?;
        if element.tag == tag {
            Ok(element.value)
        } else {
            Err(Malformed)
        }
    }

    /// The contents of the next value if it has `tag`; otherwise nothing is read.
    pub fn optional(&mut self, tag: u8) -> Result<Option<&'a [u8]>, Malformed> {
        if self.rest.first() == Some(&tag) {
            self.value(tag).map(Some)
        } else {
            Ok(None)
        }
    }

    /// A cursor over what the next value, a SEQUENCE, is made of.
    pub fn sequence(&mut self) -> Result<Self, Malformed> {
        self.value(tag::SEQUENCE).map(Self::new)
    }

    /// A BOOLEAN that is false when it is left out. DER has a false one left out; written, it says the same, and some tools write it.
    pub fn default_false(&mut self) -> Result<bool, Malformed> {
        match self.optional(tag::BOOLEAN)? {
            None | Some([0]) => Ok(false),
            Some([0xff]) => Ok(true),
            Some(_) => Err(Malformed),
        }
    }

    /// The contents of an INTEGER: two's complement, as short as can be.
    pub fn integer(&mut self) -> Result<&'a [u8], Malformed> {
        shortest(self.value(tag::INTEGER)?)
    }

    /// An INTEGER that is not negative and fits.
    pub fn small(&mut self) -> Result<u32, Malformed> {
        small(self.value(tag::INTEGER)?)
    }

    /// An INTEGER that is not negative, without leading zero octets.
    pub fn unsigned(&mut self) -> Result<&'a [u8], Malformed> {
        match self.integer()? {
            [first, ..] if first & 0x80 != 0 => Err(Malformed),
            [0, rest @ ..] => Ok(rest),
            bytes => Ok(bytes),
        }
    }

    /// The contents of a BIT STRING of whole octets.
    pub fn octets_of_bits(&mut self) -> Result<&'a [u8], Malformed> {
        match self.value(tag::BIT_STRING)?.split_first() {
            Some((0, octets)) => Ok(octets),
            _ => Err(Malformed),
        }
    }

    /// The contents of an OBJECT IDENTIFIER.
    pub fn oid(&mut self) -> Result<&'a [u8], Malformed> {
        oid(self.value(tag::OID)?)
    }
}

/// `bytes` as one value and nothing after it, a cursor over its parts.
pub fn sequence(bytes: &[u8]) -> Result<Reader<'_>, Malformed> {
    let mut reader = Reader::new(bytes);
    let inner = reader.sequence()?;
    reader.finish()?;
    Ok(inner)
}

/// The contents of an INTEGER, if they are as short as can be.
fn shortest(value: &[u8]) -> Result<&[u8], Malformed> {
    match value {
        [] | [0, 0..=0x7f, ..] | [0xff, 0x80..=0xff, ..] => Err(Malformed),
        _ => Ok(value),
    }
}

/// The contents of an INTEGER as a number that is not negative.
pub fn small(value: &[u8]) -> Result<u32, Malformed> {
    let value = shortest(value)?;
    let value = match value {
        [first, ..] if first & 0x80 != 0 => return Err(Malformed),
        [0, rest @ ..] => rest,
        _ => value,
    };
    if value.len() > 4 {
        return Err(Malformed);
    }
    Ok(value.iter().fold(0, |number, &octet| number << 8 | u32::from(octet)))
}

/// The contents of an OBJECT IDENTIFIER, if each of its parts is as short as can be and whole.
pub fn oid(value: &[u8]) -> Result<&[u8], Malformed> {
    let mut starts = true;
    for &octet in value {
        if starts && octet == 0x80 {
            return Err(Malformed);
        }
        starts = octet & 0x80 == 0;
    }
    if value.is_empty() || !starts {
        return Err(Malformed);
    }
    Ok(value)
}

/// The contents of a BIT STRING with named bits, the first 16 of them, bit 0 the highest. Trailing zero bits, which DER leaves out, are
/// taken: older embedded libraries write them.
///
/// Errors: [`Malformed`] when an unused bit is set.
pub fn named_bits(value: &[u8]) -> Result<u16, Malformed> {
    let (&unused, octets) = value.split_first().ok_or(Malformed)?;
    match octets.last() {
        None if unused == 0 => {}
        Some(&last) if unused < 8 && last.trailing_zeros() >= u32::from(unused) => {}
        _ => return Err(Malformed),
    }
    let octet = |index: usize| u16::from(octets.get(index).copied().unwrap_or(0));
    Ok(octet(0) << 8 | octet(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_has_one_form() {
        let mut long = std::vec![0x04, 0x81, 0x80];
        long.extend([7; 0x80]);
        let mut reader = Reader::new(&long);
        let element = reader.element().unwrap();
        assert_eq!((element.value.len(), element.whole.len()), (0x80, 0x83));
        assert!(reader.is_empty());

        for bytes in [
            &[0x04][..],
            &[0x04, 0x01],
            &[0x04, 0x80, 0, 0],
            &[0x04, 0x81, 0x01, 7],
            &[0x04, 0x82, 0x00, 0x01, 7],
            &[0x04, 0x84, 0, 0, 0, 1, 7],
            &[0x1f, 0x01, 0x01, 0],
        ] {
            assert_eq!(Reader::new(bytes).element(), Err(Malformed), "{bytes:02x?}");
        }
    }

    #[test]
    fn integers_are_as_short_as_can_be() {
        assert_eq!(small(&[0]), Ok(0));
        assert_eq!(small(&[0, 0x80]), Ok(128));
        assert_eq!(small(&[0, 0xff, 0xff, 0xff, 0xff]), Ok(u32::MAX));
        for bytes in [&[][..], &[0, 1], &[0xff], &[0xff, 0x80], &[1, 0, 0, 0, 0]] {
            assert_eq!(small(bytes), Err(Malformed), "{bytes:02x?}");
        }
        assert_eq!(Reader::new(&[2, 2, 0, 0x80]).unsigned(), Ok(&[0x80][..]));
        assert_eq!(Reader::new(&[2, 1, 0x80]).unsigned(), Err(Malformed));
        assert_eq!(Reader::new(&[2, 1, 0x80]).integer(), Ok(&[0x80][..]));
    }

    #[test]
    fn booleans_bits_and_identifiers_have_one_form() {
        assert_eq!(Reader::new(&[1, 1, 0xff]).default_false(), Ok(true));
        assert_eq!(Reader::new(&[1, 1, 0]).default_false(), Ok(false));
        assert_eq!(Reader::new(&[1, 1, 1]).default_false(), Err(Malformed));
        assert_eq!(Reader::new(&[]).default_false(), Ok(false));

        assert_eq!(named_bits(&[7, 0x80]), Ok(0x8000));
        assert_eq!(named_bits(&[7, 0x06, 0x80]), Ok(0x0680));
        assert_eq!(named_bits(&[0]), Ok(0));
        assert_eq!(named_bits(&[0, 0x80]), Ok(0x8000));
        for bytes in [&[][..], &[1], &[8, 0], &[7, 0x81]] {
            assert_eq!(named_bits(bytes), Err(Malformed), "{bytes:02x?}");
        }

        assert_eq!(oid(&[0x55, 4, 3]), Ok(&[0x55, 4, 3][..]));
        for bytes in [&[][..], &[0x55, 0x80, 1], &[0x55, 0x81]] {
            assert_eq!(oid(bytes), Err(Malformed), "{bytes:02x?}");
        }
    }
}
