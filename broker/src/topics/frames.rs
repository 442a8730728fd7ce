//! Records in a file: each in a frame that says whether it is whole.
//!
//! Shape: CRC-32C u32 of what follows ‖ length u32 ‖ that many bytes. Frames follow one another; after the last one come zeros or the
//! end of the file. Where a frame is not whole, the next one is looked for: first where its length says, then, as the length may be what
//! is damaged, at every later byte. When one is found, what lies between is damage and is passed over; when none is, it is a torn tail.

use skerry_core::record::Crc32c;
use skerry_net::host::{Disk, DiskError, FileId};

/// Bytes before a frame's content.
pub(super) const FRAME_HEAD_BYTES: usize = 8;

/// Bytes that a disk reads or fails to read as one.
const BLOCK_BYTES: usize = 4096;

/// Puts the head before the `body_bytes` that stand at `FRAME_HEAD_BYTES` in `frame`; the frame's bytes.
pub(super) fn seal(frame: &mut [u8], body_bytes: usize, crc: Crc32c) -> Option<usize> {
    let end = FRAME_HEAD_BYTES.checked_add(body_bytes)?;
    let frame = frame.get_mut(..end)?;
    let (sum, covered) = frame.split_first_chunk_mut()?;
    *covered.first_chunk_mut()? = u32::try_from(body_bytes).ok()?.to_be_bytes();
    *sum = crc(0, covered).to_be_bytes();
    Some(end)
}

/// Bytes of the frame that `bytes` begin with, as its length says.
fn frame_bytes(bytes: &[u8], body_bytes_max: usize) -> Option<usize> {
    let length = u32::from_be_bytes(*bytes.get(4..)?.first_chunk()?) as usize;
    // No frame is empty, so zeros are none.
    (1..=body_bytes_max)
        .contains(&length)
        .then_some(FRAME_HEAD_BYTES + length)
}

/// The content of the frame that `bytes` begin with, if it is whole.
fn open(bytes: &[u8], body_bytes_max: usize, crc: Crc32c) -> Option<&[u8]> {
    let frame = bytes.get(..frame_bytes(bytes, body_bytes_max)?)?;
    let (sum, covered) = frame.split_first_chunk()?;
    (crc(0, covered) == u32::from_be_bytes(*sum)).then(|| covered.get(4..))?
}

/// Bytes up to the frame after one that is not whole, where its length leads to one that is.
fn stride(bytes: &[u8], body_bytes_max: usize, crc: Crc32c) -> Option<usize> {
    let stride = frame_bytes(bytes, body_bytes_max)?;
    open(bytes.get(stride..)?, body_bytes_max, crc)?;
    Some(stride)
}

/// What a file held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Scanned {
    /// Where the last whole frame ends.
    pub end: u64,
    /// Whole frames.
    pub frames: u64,
    /// Something else than zeros comes after the end.
    pub torn: bool,
    /// Bytes before the end that are in no whole frame.
    pub damaged_bytes: u64,
    /// The first of them.
    pub damaged_at: Option<u64>,
}

/// Reads a file of frames and calls `each` with the content of every whole one, in order.
///
/// A block that cannot be read counts as damage. Errors: any other failure to read. Memory: a window of four times the longest frame.
pub(super) fn scan<D: Disk>(
    disk: &mut D,
    file: FileId,
    body_bytes_max: usize,
    crc: Crc32c,
    each: &mut dyn FnMut(&[u8]),
) -> Result<Scanned, DiskError> {
    let size = disk.len(file)?;
    let frame_bytes_max = FRAME_HEAD_BYTES + body_bytes_max;
    let mut window = Window {
        bytes: vec![0; 4 * frame_bytes_max.next_multiple_of(BLOCK_BYTES)],
        position: 0,
        begin: 0,
        end: 0,
    };
    let mut scanned = Scanned::default();
    let mut nonzero_since_end = false;
    while window.position < size {
        window.fill(disk, file, size, 2 * frame_bytes_max)?;
        if window.ahead().is_empty() {
            break;
        }
        if let Some(body) = open(window.ahead(), body_bytes_max, crc) {
            each(body);
            let frame_bytes = FRAME_HEAD_BYTES + body.len();
            let gap = window.position - scanned.end;
            if gap > 0 {
                scanned.damaged_bytes += gap;
                scanned.damaged_at.get_or_insert(scanned.end);
            }
            window.skip(frame_bytes);
            scanned.end = window.position;
            scanned.frames += 1;
            nonzero_since_end = false;
        } else {
            let zeros = window.ahead().iter().take_while(|byte| **byte == 0).count();
            let passed = match zeros.checked_sub(FRAME_HEAD_BYTES - 1) {
                // No frame begins where eight zeros stand: its length would be none.
                Some(passed) if passed > 0 => passed,
                // A length is believed only where a frame must begin: elsewhere any bytes may look like one.
                _ if window.position == scanned.end => stride(window.ahead(), body_bytes_max, crc).unwrap_or(1),
                _ => 1,
            };
            nonzero_since_end |= passed > zeros || zeros == 0;
            window.skip(passed);
        }
    }
    scanned.torn = nonzero_since_end;
    Ok(scanned)
}

/// A stretch of the file in memory.
struct Window {
    bytes: Vec<u8>,
    /// Where in the file `begin` is.
    position: u64,
    begin: usize,
    end: usize,
}

impl Window {
    fn ahead(&self) -> &[u8] {
        self.bytes.get(self.begin..self.end).unwrap_or_default()
    }

    fn skip(&mut self, bytes: usize) {
        self.begin += bytes;
        self.position += bytes as u64;
    }

    /// Reads on until `want` bytes are ahead, or the file ends.
    fn fill<D: Disk>(&mut self, disk: &mut D, file: FileId, size: u64, want: usize) -> Result<(), DiskError> {
        if self.end - self.begin >= want || self.position + (self.end - self.begin) as u64 >= size {
            return Ok(());
        }
        self.bytes.copy_within(self.begin..self.end, 0);
        self.end -= self.begin;
        self.begin = 0;
        while self.position + (self.end as u64) < size {
            let at = self.position + self.end as u64;
            let Some(free) = self.bytes.get_mut(self.end..).filter(|free| !free.is_empty()) else {
                break;
            };
            self.end += match disk.read_at(file, at, free) {
                // The file is shorter than it said: nothing more comes.
                Ok(0) => break,
                Ok(bytes) => bytes,
                Err(DiskError::Io) => hole(disk, file, at, free)?,
                Err(other) => return Err(other),
            };
        }
        Ok(())
    }
}

/// Reads one block where more could not be read; zeros stand for one that cannot be read by itself either.
fn hole<D: Disk>(disk: &mut D, file: FileId, at: u64, free: &mut [u8]) -> Result<usize, DiskError> {
    let to_block_end = BLOCK_BYTES - (at % BLOCK_BYTES as u64) as usize;
    let bytes = free.len().min(to_block_end);
    let block = free.get_mut(..bytes).unwrap_or_default();
    match disk.read_at(file, at, block) {
        Err(DiskError::Io) => {
            block.fill(0);
            Ok(bytes)
        }
        other => other,
    }
}
