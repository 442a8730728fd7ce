//! Compressed bytes on their way in.

use super::{End, UnpackError};

/// The source cannot go on; it keeps the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

/// Where compressed bytes come from.
pub trait Source {
    /// Puts the next bytes into `out`, which is not empty; 0 at the end.
    fn fill(&mut self, out: &mut [u8]) -> Result<usize, Stopped>;
}

impl Source for &[u8] {
    fn fill(&mut self, out: &mut [u8]) -> Result<usize, Stopped> {
        let (now, rest) = self.split_at(out.len().min(self.len()));
        if let Some(place) = out.get_mut(..now.len()) {
            place.copy_from_slice(now);
        }
        *self = rest;
        Ok(now.len())
    }
}

/// A source, read through a buffer.
pub(super) struct Input<'a> {
    source: &'a mut dyn Source,
    buffer: &'a mut [u8],
    start: usize,
    end: usize,
}

impl<'a> Input<'a> {
    pub(super) fn new(source: &'a mut dyn Source, buffer: &'a mut [u8]) -> Self {
        Self {
            source,
            buffer,
            start: 0,
            end: 0,
        }
    }

    pub(super) fn is_at_end(&mut self) -> Result<bool, End> {
        Ok(self.peek(1)?.is_empty())
    }

    /// At least `want` bytes, which is less than the buffer, without taking them; fewer where the input ends.
    pub(super) fn peek(&mut self, want: usize) -> Result<&[u8], End> {
        if self.end - self.start < want {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
            while self.end < want {
                match self.source.fill(self.buffer.get_mut(self.end..).unwrap_or_default())? {
                    0 => break,
                    n => self.end += n,
                }
            }
        }
        Ok(self.buffer.get(self.start..self.end).unwrap_or_default())
    }

    /// What is there next, at least 1 and at most `most` bytes.
    pub(super) fn some(&mut self, most: usize) -> Result<&[u8], End> {
        let there = self.peek(1)?.len();
        if there == 0 {
            return Err(UnpackError::Malformed.into());
        }
        let n = there.min(most);
        self.start += n;
        Ok(self.buffer.get(self.start - n..self.start).unwrap_or_default())
    }

    /// Takes bytes that were peeked at.
    pub(super) fn take(&mut self, bytes: usize) {
        self.start = (self.start + bytes).min(self.end);
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], End> {
        let bytes = self.peek(N)?.first_chunk().copied().ok_or(UnpackError::Malformed)?;
        self.take(N);
        Ok(bytes)
    }

    pub(super) fn byte(&mut self) -> Result<u8, End> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(super) fn skip(&mut self, mut bytes: usize) -> Result<(), End> {
        while bytes > 0 {
            bytes -= self.some(bytes)?.len();
        }
        Ok(())
    }
}
