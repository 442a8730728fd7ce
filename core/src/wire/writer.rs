//! Where everything to a peer is written: a slice, a counter, or whatever the owner of a reply brings.

use super::{Full, varint};

/// Takes bytes in order.
///
/// When full: [`Full`]; what went in before stays, and is no whole message.
pub trait Sink {
    /// Appends `bytes`.
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full>;

    /// Notes `bytes` bytes that are sent from elsewhere (a log file) between what was put before and what is put after.
    /// They count in the message's length but are not in the buffer.
    fn gap(&mut self, bytes: u32) -> Result<(), Full>;

    /// Appends an unsigned byte.
    #[inline]
    fn put_u8(&mut self, value: u8) -> Result<(), Full> {
        self.put(&[value])
    }

    /// Appends a signed byte.
    #[inline]
    fn put_i8(&mut self, value: i8) -> Result<(), Full> {
        self.put(&value.to_be_bytes())
    }

    /// Appends a 16-bit integer, big-endian as all fixed-width ones.
    #[inline]
    fn put_i16(&mut self, value: i16) -> Result<(), Full> {
        self.put(&value.to_be_bytes())
    }

    /// Appends a 32-bit integer.
    #[inline]
    fn put_i32(&mut self, value: i32) -> Result<(), Full> {
        self.put(&value.to_be_bytes())
    }

    /// Appends an unsigned 32-bit integer.
    #[inline]
    fn put_u32(&mut self, value: u32) -> Result<(), Full> {
        self.put(&value.to_be_bytes())
    }

    /// Appends a 64-bit integer.
    #[inline]
    fn put_i64(&mut self, value: i64) -> Result<(), Full> {
        self.put(&value.to_be_bytes())
    }

    /// Appends an unsigned varint of up to 32 bits.
    #[inline]
    fn put_unsigned_varint(&mut self, value: u32) -> Result<(), Full> {
        if value < 0x80 {
            return self.put(&[value as u8]);
        }
        self.put_unsigned_varlong(u64::from(value))
    }

    /// Appends a signed 32-bit varint in zigzag.
    #[inline]
    fn put_varint(&mut self, value: i32) -> Result<(), Full> {
        self.put_varlong(i64::from(value))
    }

    /// Appends an unsigned varint of up to 64 bits.
    fn put_unsigned_varlong(&mut self, value: u64) -> Result<(), Full> {
        let bytes = varint::unsigned(value);
        self.put(bytes.get(..varint::unsigned_len(value)).ok_or(Full)?)
    }

    /// Appends a signed 64-bit varint in zigzag.
    #[inline]
    fn put_varlong(&mut self, value: i64) -> Result<(), Full> {
        self.put_unsigned_varlong(varint::zigzag(value))
    }
}

/// Writes into a slice that someone else owns.
///
/// When full: [`Full`], and the slice holds what fitted.
#[derive(Debug)]
pub struct SliceWriter<'b> {
    buf: &'b mut [u8],
    written: usize,
    gap_bytes: usize,
}

impl<'b> SliceWriter<'b> {
    /// Starts at the front of `buf`.
    #[must_use]
    pub const fn new(buf: &'b mut [u8]) -> Self {
        Self {
            buf,
            written: 0,
            gap_bytes: 0,
        }
    }

    /// Bytes in the slice so far, gaps not among them.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.written
    }

    /// Whether nothing was written yet.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.written == 0
    }

    /// Sum of the gaps so far.
    #[must_use]
    pub const fn gap_bytes(&self) -> usize {
        self.gap_bytes
    }

    /// What was written so far.
    #[must_use]
    pub fn written(&self) -> &[u8] {
        self.buf.get(..self.written).unwrap_or(&[])
    }

    /// What was written, for as long as the slice lives.
    #[must_use]
    pub fn finish(self) -> &'b [u8] {
        let buf: &'b [u8] = self.buf;
        buf.get(..self.written).unwrap_or(&[])
    }
}

impl Sink for SliceWriter<'_> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        let room = self.buf.get_mut(self.written..).ok_or(Full)?;
        room.get_mut(..bytes.len()).ok_or(Full)?.copy_from_slice(bytes);
        self.written += bytes.len();
        Ok(())
    }

    #[inline]
    fn gap(&mut self, bytes: u32) -> Result<(), Full> {
        self.gap_bytes = self.gap_bytes.saturating_add(bytes as usize);
        Ok(())
    }
}

/// Counts what would be written, gaps included. Never full; the count saturates.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counter {
    bytes: usize,
}

impl Counter {
    /// Bytes so far.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Sink for Counter {
    #[inline]
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        self.bytes = self.bytes.saturating_add(bytes.len());
        Ok(())
    }

    #[inline]
    fn gap(&mut self, bytes: u32) -> Result<(), Full> {
        self.bytes = self.bytes.saturating_add(bytes as usize);
        Ok(())
    }
}

/// Writes into any [`bytes::BufMut`].
///
/// When full: [`Full`] as soon as `remaining_mut` is too small. (`Vec` and `BytesMut` grow and are never full.)
#[cfg(feature = "bytes")]
#[derive(Debug)]
pub struct BufSink<'b, B: bytes::BufMut + ?Sized> {
    buf: &'b mut B,
    gap_bytes: usize,
}

#[cfg(feature = "bytes")]
impl<'b, B: bytes::BufMut + ?Sized> BufSink<'b, B> {
    /// Appends to `buf`.
    pub const fn new(buf: &'b mut B) -> Self {
        Self { buf, gap_bytes: 0 }
    }

    /// Sum of the gaps so far.
    #[must_use]
    pub const fn gap_bytes(&self) -> usize {
        self.gap_bytes
    }
}

#[cfg(feature = "bytes")]
impl<B: bytes::BufMut + ?Sized> Sink for BufSink<'_, B> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        if self.buf.remaining_mut() < bytes.len() {
            return Err(Full);
        }
        self.buf.put_slice(bytes);
        Ok(())
    }

    #[inline]
    fn gap(&mut self, bytes: u32) -> Result<(), Full> {
        self.gap_bytes = self.gap_bytes.saturating_add(bytes as usize);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Reader;

    #[test]
    fn exactly_full_is_not_full() {
        let mut buf = [0; 6];
        let mut out = SliceWriter::new(&mut buf);
        assert_eq!(out.put_i32(7), Ok(()));
        assert_eq!(out.put_i32(8), Err(Full));
        assert_eq!(out.put_i16(9), Ok(()));
        assert_eq!(out.put_u8(1), Err(Full));
        assert_eq!(out.written(), [0, 0, 0, 7, 0, 9]);
    }

    #[test]
    fn the_counter_agrees_with_the_writer() {
        let mut buf = [0; 64];
        for value in [0_u64, 1, 127, 128, 300, 1 << 35, u64::MAX] {
            let mut out = SliceWriter::new(&mut buf);
            let mut counter = Counter::default();
            out.put_unsigned_varlong(value).unwrap();
            counter.put_unsigned_varlong(value).unwrap();
            assert_eq!(out.len(), counter.bytes());
            assert_eq!(Reader::new(out.written()).unsigned_varlong(), Ok(value));
        }
    }

    #[test]
    fn gaps_count_but_take_no_room() {
        let mut buf = [0; 2];
        let mut out = SliceWriter::new(&mut buf);
        out.put_u8(1).unwrap();
        out.gap(1000).unwrap();
        out.put_u8(2).unwrap();
        assert_eq!((out.len(), out.gap_bytes()), (2, 1000));
        let mut counter = Counter::default();
        counter.gap(1000).unwrap();
        assert_eq!(counter.bytes(), 1000);
    }

    #[test]
    #[cfg(feature = "bytes")]
    fn a_bounded_buf_mut_is_full_not_a_panic() {
        let mut room = [0_u8; 3];
        let mut slice = &mut room[..];
        let mut out = BufSink::new(&mut slice);
        assert_eq!(out.put(&[1, 2]), Ok(()));
        assert_eq!(out.put(&[3, 4]), Err(Full));
        assert_eq!(out.put(&[3]), Ok(()));
        assert_eq!(room, [1, 2, 3]);
    }
}
