//! Opening compressed batches, a piece at a time, in memory that was taken once.
//!
//! Only two questions need it: ListOffsets by timestamp, and whether a record of a compacted topic has a key. What is not to be opened
//! within the bounds is refused, never grown for.

mod gzip;
mod input;
mod lz4;
mod snappy;
mod window;
mod zstd;

use core::ops::ControlFlow;

use skerry_core::record::Compression;

pub use input::{Source, Stopped};

use input::Input;
use window::Window;

/// Most bytes that one batch may become. The largest legal batch of text is far below; a bomb stops here.
const OPENED_BYTES_MAX: u64 = 32 << 20;
/// Bytes of compressed input that are held at once.
const INPUT_BYTES: usize = 4096;

/// Why a batch was not opened to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnpackError {
    /// The bytes are not of that format.
    Malformed,
    /// The source stopped: it knows why.
    Stopped,
    /// It becomes larger, or needs a larger window, than is allowed.
    TooLarge,
}

/// Why a codec came to an end before its input did.
enum End {
    /// The receiver has what it wanted.
    Enough,
    Error(UnpackError),
}

impl From<UnpackError> for End {
    fn from(error: UnpackError) -> Self {
        Self::Error(error)
    }
}

impl From<Stopped> for End {
    fn from(_: Stopped) -> Self {
        Self::Error(UnpackError::Stopped)
    }
}

/// The one opener of compressed batches: windows and decoder states.
///
/// zstd's window is taken with the first batch that needs it, up to its bound, and kept.
pub struct Unpacker {
    window: Box<[u8]>,
    input: Box<[u8]>,
    gzip: gzip::Gzip,
    zstd: zstd::Zstd,
}

impl Unpacker {
    /// The most that one takes, zstd's window included.
    pub const BYTES: usize = window::WINDOW_BYTES + INPUT_BYTES + gzip::Gzip::BYTES + zstd::Zstd::BYTES;

    /// Takes the memory.
    #[must_use]
    pub fn new() -> Self {
        Self {
            window: vec![0; window::WINDOW_BYTES].into_boxed_slice(),
            input: vec![0; INPUT_BYTES].into_boxed_slice(),
            gzip: gzip::Gzip::new(),
            zstd: zstd::Zstd::new(),
        }
    }

    /// Opens what `source` gives and shows it to `sink` in order, until that breaks off or the end is reached.
    ///
    /// Checksums inside the formats are not looked at: the batch's own covers the same bytes.
    pub fn open(
        &mut self,
        codec: Compression,
        source: &mut dyn Source,
        sink: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<(), UnpackError> {
        let mut input = Input::new(source, &mut self.input);
        let mut window = Window::new(&mut self.window, sink, OPENED_BYTES_MAX);
        let result = match codec {
            Compression::None => plain(&mut input, &mut window),
            Compression::Gzip => self.gzip.open(&mut input, &mut window),
            Compression::Snappy => snappy::open(&mut input, &mut window),
            Compression::Lz4 => lz4::open(&mut input, &mut window),
            Compression::Zstd => self.zstd.open(&mut input, &mut window),
        };
        match result.and_then(|()| window.show()) {
            Ok(()) | Err(End::Enough) => Ok(()),
            Err(End::Error(error)) => Err(error),
        }
    }
}

impl Default for Unpacker {
    fn default() -> Self {
        Self::new()
    }
}

impl core::fmt::Debug for Unpacker {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Unpacker").finish_non_exhaustive()
    }
}

fn plain(input: &mut Input<'_>, window: &mut Window<'_>) -> Result<(), End> {
    while !input.is_at_end()? {
        let piece = input.some(usize::MAX)?;
        window.put(piece)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
