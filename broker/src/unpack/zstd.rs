//! Zstandard. Source: RFC 8878, by ruzstd.

use std::io::{Error, Read};

use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

use super::input::Input;
use super::window::Window;
use super::{End, UnpackError};

/// The largest window: what level 19 uses. Batches made at higher levels may need more and are not opened.
const ZSTD_WINDOW_BYTES: usize = 8 << 20;
/// Opened bytes that are passed on at once.
const PIECE_BYTES: usize = 4096;

/// The decoder.
pub(super) struct Zstd {
    decoder: FrameDecoder,
}

impl Zstd {
    /// The decoder grows its window by doubling, beside the old one, and keeps a block and its literals.
    pub(super) const BYTES: usize = 3 * ZSTD_WINDOW_BYTES + (1 << 20);

    pub(super) fn new() -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(ZSTD_WINDOW_BYTES as u64);
        Self { decoder }
    }

    pub(super) fn open(&mut self, input: &mut Input<'_>, out: &mut Window<'_>) -> Result<(), End> {
        while !input.is_at_end()? {
            self.frame(input, out)?;
        }
        Ok(())
    }

    fn frame(&mut self, input: &mut Input<'_>, out: &mut Window<'_>) -> Result<(), End> {
        let mut reader = Reader { input, end: None };
        let Ok(mut stream) = StreamingDecoder::new_with_decoder(&mut reader, &mut self.decoder) else {
            return Err(reader.end.take().unwrap_or_else(|| UnpackError::Malformed.into()));
        };
        let mut piece = [0; PIECE_BYTES];
        loop {
            match stream.read(&mut piece) {
                Ok(0) => return Ok(()),
                Ok(n) => out.put(piece.get(..n).unwrap_or_default())?,
                Err(_) => {
                    return Err(stream
                        .get_mut()
                        .end
                        .take()
                        .unwrap_or_else(|| UnpackError::Malformed.into()));
                }
            }
        }
    }
}

/// The input as the decoder wants it.
struct Reader<'i, 'a> {
    input: &'i mut Input<'a>,
    /// What kept a read from succeeding.
    end: Option<End>,
}

impl Read for Reader<'_, '_> {
    fn read(&mut self, out: &mut [u8]) -> Result<usize, Error> {
        let there = match self.input.peek(1) {
            Ok(there) => there,
            Err(end) => {
                self.end = Some(end);
                return Err(Error::from(std::io::ErrorKind::Other));
            }
        };
        let n = there.len().min(out.len());
        if let (Some(place), Some(bytes)) = (out.get_mut(..n), there.get(..n)) {
            place.copy_from_slice(bytes);
        }
        self.input.take(n);
        Ok(n)
    }
}
