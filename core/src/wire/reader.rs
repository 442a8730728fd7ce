//! The cursor that everything from a peer is read through.

use super::{DecodeError, varint};

/// A checked cursor over bytes that someone else owns. What it gives out borrows them.
///
/// Errors: every read gives [`DecodeError::Short`] when the bytes end too early; the cursor then stands where it stood.
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

    /// A cursor over `buf`, or `None` when its bytes do not lie in one piece.
    #[cfg(feature = "bytes")]
    #[must_use]
    pub fn from_buf<B: bytes::Buf + ?Sized>(buf: &'a B) -> Option<Self> {
        let chunk = buf.chunk();
        (chunk.len() == buf.remaining()).then(|| Self::new(chunk))
    }

    /// Bytes not yet read.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Number of bytes not yet read.
    #[must_use]
    pub const fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Whether everything was read.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `bytes` bytes.
    #[inline]
    pub fn take(&mut self, bytes: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self.rest.split_at_checked(bytes).ok_or(DecodeError::Short)?;
        self.rest = rest;
        Ok(taken)
    }

    #[inline]
    fn chunk<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(DecodeError::Short)?;
        self.rest = rest;
        Ok(*taken)
    }

    /// An unsigned byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, DecodeError> {
        self.chunk().map(u8::from_be_bytes)
    }

    /// A signed byte.
    #[inline]
    pub fn i8(&mut self) -> Result<i8, DecodeError> {
        self.chunk().map(i8::from_be_bytes)
    }

    /// A 16-bit integer, big-endian as all fixed-width ones.
    #[inline]
    pub fn i16(&mut self) -> Result<i16, DecodeError> {
        self.chunk().map(i16::from_be_bytes)
    }

    /// A 32-bit integer.
    #[inline]
    pub fn i32(&mut self) -> Result<i32, DecodeError> {
        self.chunk().map(i32::from_be_bytes)
    }

    /// An unsigned 32-bit integer.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, DecodeError> {
        self.chunk().map(u32::from_be_bytes)
    }

    /// A 64-bit integer.
    #[inline]
    pub fn i64(&mut self) -> Result<i64, DecodeError> {
        self.chunk().map(i64::from_be_bytes)
    }

    /// Sixteen bytes as they lie.
    #[inline]
    pub fn bytes_16(&mut self) -> Result<[u8; 16], DecodeError> {
        self.chunk()
    }

    /// An unsigned 32-bit varint. Errors: [`DecodeError::Varint`] past 32 bits.
    #[inline]
    pub fn unsigned_varint(&mut self) -> Result<u32, DecodeError> {
        // Lengths, counts and tags are nearly always one byte.
        match self.rest.split_first() {
            Some((&byte, rest)) if byte < 0x80 => {
                self.rest = rest;
                Ok(u32::from(byte))
            }
            _ => self
                .long_varint(varint::VARINT_BYTES_MAX)
                .and_then(|value| u32::try_from(value).map_err(|_| DecodeError::Varint)),
        }
    }

    /// A signed 32-bit varint in zigzag. Errors: [`DecodeError::Varint`] past 32 bits.
    #[inline]
    pub fn varint(&mut self) -> Result<i32, DecodeError> {
        let folded = self.unsigned_varint()?;
        Ok((folded >> 1) as i32 ^ -((folded & 1) as i32))
    }

    /// An unsigned 64-bit varint. Errors: [`DecodeError::Varint`] past 64 bits.
    #[inline]
    pub fn unsigned_varlong(&mut self) -> Result<u64, DecodeError> {
        self.long_varint(varint::VARLONG_BYTES_MAX)
    }

    /// A signed 64-bit varint in zigzag. Errors: [`DecodeError::Varint`] past 64 bits.
    #[inline]
    pub fn varlong(&mut self) -> Result<i64, DecodeError> {
        self.unsigned_varlong().map(varint::unzigzag)
    }

    fn long_varint(&mut self, bytes_max: usize) -> Result<u64, DecodeError> {
        let mut rest = self.rest;
        let mut value = 0_u64;
        for place in 0..bytes_max {
            let (&byte, tail) = rest.split_first().ok_or(DecodeError::Short)?;
            rest = tail;
            let bits = u64::from(byte & 0x7f);
            let shifted = bits << (7 * place);
            if shifted >> (7 * place) != bits {
                return Err(DecodeError::Varint);
            }
            value |= shifted;
            if byte < 0x80 {
                self.rest = rest;
                return Ok(value);
            }
        }
        Err(DecodeError::Varint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_read_moves_nothing() {
        let mut r = Reader::new(&[0, 1, 2]);
        assert_eq!(r.i32(), Err(DecodeError::Short));
        assert_eq!(r.take(4), Err(DecodeError::Short));
        assert_eq!(r.i16(), Ok(1));
        assert_eq!(r.u8(), Ok(2));
        assert!(r.is_empty());
    }

    #[test]
    fn varints_stop_at_their_width() {
        let mut r = Reader::new(&[0xff, 0xff, 0xff, 0xff, 0x0f]);
        assert_eq!(r.unsigned_varint(), Ok(u32::MAX));
        let mut r = Reader::new(&[0xff, 0xff, 0xff, 0xff, 0x1f]);
        assert_eq!(r.unsigned_varint(), Err(DecodeError::Varint));
        let mut r = Reader::new(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x00]);
        assert_eq!(r.unsigned_varint(), Err(DecodeError::Varint));
        let mut r = Reader::new(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]);
        assert_eq!(r.varlong(), Ok(i64::MIN));
        let mut r = Reader::new(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02]);
        assert_eq!(r.varlong(), Err(DecodeError::Varint));
        let mut r = Reader::new(&[0x80]);
        assert_eq!(r.varint(), Err(DecodeError::Short));
    }

    #[test]
    #[cfg(feature = "bytes")]
    fn a_buf_in_two_pieces_is_refused() {
        use bytes::Buf;
        let whole: &[u8] = &[1, 2, 3];
        assert_eq!(Reader::from_buf(&whole).map(|mut r| r.u8()), Some(Ok(1)));
        let pieces = (&[1_u8, 2][..]).chain(&[3_u8][..]);
        assert!(Reader::from_buf(&pieces).is_none());
    }
}
