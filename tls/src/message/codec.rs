//! A checked cursor and a writer for TLS's presentation language (RFC 8446 §3): big-endian integers and length-prefixed vectors.

use super::{ExtensionType, HandshakeType};
use crate::cause::Cause;

/// A checked cursor over a message that someone else owns. What it gives out borrows it.
///
/// Errors: every read gives [`Cause::Decode`] with the message's type when bytes are missing or a length is out of its range.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    kind: HandshakeType,
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// A cursor at the start of `bytes`, which are of a message of this kind.
    #[must_use]
    pub const fn new(kind: HandshakeType, bytes: &'a [u8]) -> Self {
        Self { kind, rest: bytes }
    }

    /// What to say of a message that cannot be read.
    #[must_use]
    pub const fn malformed(&self) -> Cause {
        Cause::Decode(self.kind.wire())
    }

    /// What to say of a message that can be read and makes no sense.
    #[must_use]
    pub const fn illegal(&self) -> Cause {
        Cause::IllegalParameter(self.kind.wire())
    }

    /// Bytes not yet read.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether everything was read.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Asks that everything was read: trailing bytes are malformed.
    pub const fn end(&self) -> Result<(), Cause> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(self.malformed())
        }
    }

    /// The next `count` bytes.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Cause> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(self.malformed())?;
        self.rest = rest;
        Ok(taken)
    }

    /// The next `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Result<&'a [u8; N], Cause> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(self.malformed())?;
        self.rest = rest;
        Ok(taken)
    }

    /// All bytes not yet read.
    pub const fn take_rest(&mut self) -> &'a [u8] {
        let rest = self.rest;
        self.rest = &[];
        rest
    }

    /// An 8-bit integer.
    pub fn u8(&mut self) -> Result<u8, Cause> {
        self.array().map(|&[byte]| byte)
    }

    /// A 16-bit integer.
    pub fn u16(&mut self) -> Result<u16, Cause> {
        self.array().map(|bytes| u16::from_be_bytes(*bytes))
    }

    /// A 24-bit integer.
    pub fn u24(&mut self) -> Result<u32, Cause> {
        self.array().map(|&[a, b, c]| u32::from_be_bytes([0, a, b, c]))
    }

    /// A 32-bit integer.
    pub fn u32(&mut self) -> Result<u32, Cause> {
        self.array().map(|bytes| u32::from_be_bytes(*bytes))
    }

    /// A vector with a one-byte length, of at least `min` and at most `max` bytes.
    pub fn vector_8(&mut self, min: usize, max: usize) -> Result<&'a [u8], Cause> {
        let count = usize::from(self.u8()?);
        self.vector(count, min, max)
    }

    /// A vector with a two-byte length, of at least `min` bytes.
    pub fn vector_16(&mut self, min: usize) -> Result<&'a [u8], Cause> {
        let count = usize::from(self.u16()?);
        self.vector(count, min, usize::MAX)
    }

    /// A vector with a three-byte length, of at least `min` bytes.
    pub fn vector_24(&mut self, min: usize) -> Result<&'a [u8], Cause> {
        let count = self.u24()? as usize;
        self.vector(count, min, usize::MAX)
    }

    /// A list of 16-bit integers with a one-byte length: at least one of them.
    pub fn list_8(&mut self) -> Result<U16List<'a>, Cause> {
        let bytes = self.vector_8(2, usize::MAX)?;
        U16List::read(bytes).ok_or(self.malformed())
    }

    /// A list of 16-bit integers with a two-byte length: at least one of them.
    pub fn list_16(&mut self) -> Result<U16List<'a>, Cause> {
        let bytes = self.vector_16(2)?;
        U16List::read(bytes).ok_or(self.malformed())
    }

    /// A cursor over a part of the same message.
    #[must_use]
    pub const fn within(&self, bytes: &'a [u8]) -> Self {
        Self::new(self.kind, bytes)
    }

    /// Reads element after element up to the end of a part that was checked before.
    pub(super) fn each<T>(
        mut self,
        read: impl Fn(&mut Self) -> Result<T, Cause> + Clone,
    ) -> impl Iterator<Item = T> + Clone {
        core::iter::from_fn(move || read(&mut self).ok())
    }

    fn vector(&mut self, count: usize, min: usize, max: usize) -> Result<&'a [u8], Cause> {
        if (min..=max).contains(&count) {
            self.take(count)
        } else {
            Err(self.malformed())
        }
    }
}

/// A list of 16-bit integers as it lies in a message: suites, groups, schemes, versions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct U16List<'a> {
    pairs: &'a [[u8; 2]],
}

impl<'a> U16List<'a> {
    /// A list of what is already in wire order.
    #[must_use]
    pub const fn new(pairs: &'a [[u8; 2]]) -> Self {
        Self { pairs }
    }

    const fn read(bytes: &'a [u8]) -> Option<Self> {
        match bytes.as_chunks() {
            (pairs, []) => Some(Self { pairs }),
            _ => None,
        }
    }

    /// Each of them, in the peer's order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = u16> + use<'a> {
        self.pairs.iter().map(|pair| u16::from_be_bytes(*pair))
    }

    /// Whether it is among them.
    #[must_use]
    pub fn contains(&self, value: u16) -> bool {
        self.pairs.contains(&value.to_be_bytes())
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Its bytes on the wire, without a length.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.pairs.as_flattened()
    }
}

/// Writes into bytes that the caller lends.
///
/// When full: [`Cause::Internal`], for it is our own message that has no place; what was written before stays.
#[derive(Debug)]
pub struct Writer<'w> {
    bytes: &'w mut [u8],
    at: usize,
}

impl<'w> Writer<'w> {
    /// A writer at the start of `bytes`.
    #[must_use]
    pub const fn new(bytes: &'w mut [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// What `content` writes to the start of `bytes`, as its length.
    pub fn fill(bytes: &mut [u8], content: impl FnOnce(&mut Writer<'_>) -> Result<(), Cause>) -> Result<usize, Cause> {
        let mut w = Writer::new(bytes);
        content(&mut w)?;
        Ok(w.at)
    }

    /// Begins again: what was written is done with.
    pub const fn clear(&mut self) {
        self.at = 0;
    }

    /// How many bytes were written.
    #[must_use]
    pub const fn written(&self) -> usize {
        self.at
    }

    /// The bytes that were written.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.at).unwrap_or_default()
    }

    /// The bytes that were written, to be mended in place: a binder over what precedes it.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        self.bytes.get_mut(..self.at).unwrap_or_default()
    }

    /// What is not yet written on, for a caller that fills it himself and then says so to [`Self::commit`].
    pub fn spare_mut(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.at..).unwrap_or_default()
    }

    /// Takes `count` bytes of [`Self::spare_mut`] as written.
    pub fn commit(&mut self, count: usize) -> Result<(), Cause> {
        let at = self.at.checked_add(count).filter(|at| *at <= self.bytes.len());
        self.at = at.ok_or(Cause::Internal)?;
        Ok(())
    }

    /// Bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), Cause> {
        let spare = self.spare_mut().get_mut(..bytes.len()).ok_or(Cause::Internal)?;
        spare.copy_from_slice(bytes);
        self.at += bytes.len();
        Ok(())
    }

    /// An 8-bit integer.
    pub fn u8(&mut self, value: u8) -> Result<(), Cause> {
        self.bytes(&[value])
    }

    /// A 16-bit integer.
    pub fn u16(&mut self, value: u16) -> Result<(), Cause> {
        self.bytes(&value.to_be_bytes())
    }

    /// A 32-bit integer.
    pub fn u32(&mut self, value: u32) -> Result<(), Cause> {
        self.bytes(&value.to_be_bytes())
    }

    /// What `content` writes, with its length in one byte before it.
    pub fn vector_8(&mut self, content: impl FnOnce(&mut Self) -> Result<(), Cause>) -> Result<(), Cause> {
        self.prefixed::<1>(content)
    }

    /// What `content` writes, with its length in two bytes before it.
    pub fn vector_16(&mut self, content: impl FnOnce(&mut Self) -> Result<(), Cause>) -> Result<(), Cause> {
        self.prefixed::<2>(content)
    }

    /// What `content` writes, with its length in three bytes before it.
    pub fn vector_24(&mut self, content: impl FnOnce(&mut Self) -> Result<(), Cause>) -> Result<(), Cause> {
        self.prefixed::<3>(content)
    }

    /// A whole handshake message: its type, its length, and what `body` writes.
    pub fn message(
        &mut self,
        kind: HandshakeType,
        body: impl FnOnce(&mut Self) -> Result<(), Cause>,
    ) -> Result<(), Cause> {
        self.u8(kind.wire())?;
        self.vector_24(body)
    }

    /// A whole extension: its number, its length, and what `data` writes.
    pub fn extension(
        &mut self,
        kind: ExtensionType,
        data: impl FnOnce(&mut Self) -> Result<(), Cause>,
    ) -> Result<(), Cause> {
        self.u16(kind.wire())?;
        self.vector_16(data)
    }

    /// A list of 16-bit integers, with its length in two bytes before it.
    pub fn list_16(&mut self, list: U16List<'_>) -> Result<(), Cause> {
        self.vector_16(|w| w.bytes(list.bytes()))
    }

    /// A block of extensions, or nothing at all where there is none: as TLS 1.2's hellos were before extensions (RFC 5246 §7.4.1.2).
    pub fn extensions_or_nothing(&mut self, content: impl FnOnce(&mut Self) -> Result<(), Cause>) -> Result<(), Cause> {
        let start = self.at;
        self.vector_16(content)?;
        if self.at == start + 2 {
            self.at = start;
        }
        Ok(())
    }

    fn prefixed<const N: usize>(&mut self, content: impl FnOnce(&mut Self) -> Result<(), Cause>) -> Result<(), Cause> {
        let start = self.at;
        self.bytes(&[0; N])?;
        content(self)?;
        let length = u64::try_from(self.at - start - N)
            .map_err(|_| Cause::Internal)?
            .to_be_bytes();
        // The length is written afterwards: its high bytes must be nothing, its low ones fill the place that was kept.
        let (high, low) = length.split_last_chunk::<N>().ok_or(Cause::Internal)?;
        if high.iter().any(|byte| *byte != 0) {
            return Err(Cause::Internal);
        }
        let place = self.bytes.get_mut(start..start + N).ok_or(Cause::Internal)?;
        place.copy_from_slice(low);
        Ok(())
    }
}

/// Whether a number comes twice.
///
/// Cost: linear, whatever the peer sends: one walk, and one more (with 1 KiB of stack) for each eighth of the numbers that occurs.
pub(super) fn repeats(numbers: impl Iterator<Item = u16> + Clone) -> bool {
    let mut occurs = [false; EIGHTHS];
    for number in numbers.clone() {
        if let Some(occurs) = occurs.get_mut(place(number).0) {
            *occurs = true;
        }
    }
    let mut occurring = occurs.iter().enumerate().filter(|(_, occurs)| **occurs);
    occurring.any(|(eighth, _)| {
        let mut seen = [0_u64; EIGHTH_COUNT / 64];
        numbers
            .clone()
            .map(place)
            .filter(|(of, _)| *of == eighth)
            .any(|(_, index)| {
                let Some(word) = seen.get_mut(index / 64) else {
                    return false;
                };
                let bit = 1 << (index % 64);
                let repeats = *word & bit != 0;
                *word |= bit;
                repeats
            })
    })
}

const EIGHTHS: usize = 8;
const EIGHTH_COUNT: usize = (1 << 16) / EIGHTHS;

/// The eighth that a number is in, and its place there.
const fn place(number: u16) -> (usize, usize) {
    (number as usize / EIGHTH_COUNT, number as usize % EIGHTH_COUNT)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: HandshakeType = HandshakeType::ClientHello;

    #[test]
    fn lengths_are_written_after_their_content() {
        let mut bytes = [0xaa; 16];
        let mut w = Writer::new(&mut bytes);
        w.message(KIND, |w| w.vector_16(|w| w.vector_8(|w| w.u16(0x0102))))
            .unwrap();
        assert_eq!(w.as_slice(), [1, 0, 0, 5, 0, 3, 2, 1, 2]);
    }

    #[test]
    fn a_full_writer_says_so_at_every_length() {
        let mut bytes = [0; 9];
        for room in 0..9 {
            let mut w = Writer::new(&mut bytes[..room]);
            let written = w.message(KIND, |w| w.vector_16(|w| w.vector_8(|w| w.u16(0x0102))));
            assert_eq!(written, Err(Cause::Internal), "{room}");
        }
    }

    #[test]
    fn content_longer_than_its_length_can_say_is_refused() {
        let mut bytes = [0; 300];
        let mut w = Writer::new(&mut bytes);
        assert_eq!(w.vector_8(|w| w.bytes(&[0; 256])), Err(Cause::Internal));
        let mut w = Writer::new(&mut bytes);
        assert_eq!(w.vector_8(|w| w.bytes(&[0; 255])), Ok(()));
        assert_eq!(w.commit(44), Ok(()));
        assert_eq!(w.commit(1), Err(Cause::Internal));
        assert_eq!(w.commit(usize::MAX), Err(Cause::Internal));
    }

    #[test]
    fn a_vector_keeps_to_its_range_and_to_the_bytes_that_are_there() {
        let read = |bytes: &'static [u8]| Cursor::new(KIND, bytes).vector_8(2, 3);
        assert_eq!(read(&[2, 7, 8]), Ok(&[7, 8][..]));
        assert_eq!(read(&[3, 7, 8, 9, 10]), Ok(&[7, 8, 9][..]));
        for short in [&[][..], &[1, 7], &[2, 7], &[4, 7, 8, 9, 10]] {
            assert_eq!(read(short), Err(Cause::Decode(1)), "{short:?}");
        }
    }

    #[test]
    fn a_list_of_odd_length_or_of_none_is_malformed() {
        let read = |bytes: &'static [u8]| Cursor::new(KIND, bytes).list_16().map(|list| list.bytes());
        assert_eq!(read(&[0, 2, 7, 8]), Ok(&[7, 8][..]));
        assert_eq!(read(&[0, 3, 7, 8, 9]), Err(Cause::Decode(1)));
        assert_eq!(read(&[0, 0]), Err(Cause::Decode(1)));
    }

    #[test]
    fn a_number_that_comes_twice_is_found_wherever_it_lies() {
        assert!(!repeats(0..=u16::MAX));
        assert!(!repeats([].into_iter()));
        for twice in [0, 1, 63, 64, 8191, 8192, 0x0a0a, 0xff01, 0xffff] {
            assert!(!repeats([twice, 5, 0xaaaa].into_iter()), "{twice}");
            assert!(repeats([twice, 5, 0xaaaa, twice].into_iter()), "{twice}");
        }
        assert!(repeats((0..=u16::MAX).chain([4])));
    }

    #[test]
    fn a_cursor_stands_still_when_it_cannot_read() {
        let mut r = Cursor::new(KIND, &[1]);
        assert_eq!(r.u16(), Err(Cause::Decode(1)));
        assert_eq!(r.u8(), Ok(1));
        assert_eq!(r.end(), Ok(()));
    }
}
