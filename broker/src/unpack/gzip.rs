//! gzip. Source: RFC 1952 (members), RFC 1951 (by miniz_oxide).

use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::TINFL_FLAG_HAS_MORE_INPUT;
use miniz_oxide::inflate::core::{DecompressorOxide, TINFL_LZ_DICT_SIZE, decompress};

use super::input::Input;
use super::window::Window;
use super::{End, UnpackError};

/// The flags of a member's header.
const HEADER_CRC: u8 = 1 << 1;
const EXTRA: u8 = 1 << 2;
const NAME: u8 = 1 << 3;
const COMMENT: u8 = 1 << 4;

/// The decoder's state and window.
pub(super) struct Gzip {
    inflate: Box<DecompressorOxide>,
    window: Box<[u8]>,
}

impl Gzip {
    pub(super) const BYTES: usize = size_of::<DecompressorOxide>() + TINFL_LZ_DICT_SIZE;

    pub(super) fn new() -> Self {
        Self {
            inflate: Box::default(),
            window: vec![0; TINFL_LZ_DICT_SIZE].into_boxed_slice(),
        }
    }

    pub(super) fn open(&mut self, input: &mut Input<'_>, out: &mut Window<'_>) -> Result<(), End> {
        while !input.is_at_end()? {
            header(input)?;
            self.inflate(input, out)?;
            // The checksum and length of the member.
            input.skip(4 + 4)?;
        }
        Ok(())
    }

    fn inflate(&mut self, input: &mut Input<'_>, out: &mut Window<'_>) -> Result<(), End> {
        self.inflate.init();
        let mut at = 0;
        loop {
            let bytes = input.peek(1)?;
            let ends = bytes.is_empty();
            let flags = if ends { 0 } else { TINFL_FLAG_HAS_MORE_INPUT };
            let (status, taken, made) = decompress(&mut self.inflate, bytes, &mut self.window, at, flags);
            input.take(taken);
            out.put(self.window.get(at..at + made).unwrap_or_default())?;
            at = (at + made) % TINFL_LZ_DICT_SIZE;
            match status {
                TINFLStatus::Done => return Ok(()),
                TINFLStatus::NeedsMoreInput if !ends => {}
                TINFLStatus::HasMoreOutput => {}
                _ => return Err(UnpackError::Malformed.into()),
            }
        }
    }
}

fn header(input: &mut Input<'_>) -> Result<(), End> {
    let [a, b, method, flags, ..] = input.array::<10>()?;
    if [a, b, method] != [0x1F, 0x8B, 8] {
        return Err(UnpackError::Malformed.into());
    }
    if flags & EXTRA != 0 {
        let bytes = u16::from_le_bytes(input.array()?);
        input.skip(usize::from(bytes))?;
    }
    for text in [NAME, COMMENT] {
        while flags & text != 0 && input.byte()? != 0 {}
    }
    if flags & HEADER_CRC != 0 {
        input.skip(2)?;
    }
    Ok(())
}
