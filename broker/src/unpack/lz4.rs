//! LZ4 frames.
//!
//! Source: lz4_Frame_format.md (1.6) and lz4_Block_format.md of the lz4 project.

use super::input::Input;
use super::window::Window;
use super::{End, UnpackError};

const MAGIC: [u8; 4] = 0x184D_2204u32.to_le_bytes();
/// The flags of a frame that change where things lie.
const INDEPENDENT: u8 = 1 << 5;
const BLOCK_CHECKSUM: u8 = 1 << 4;
const CONTENT_SIZE: u8 = 1 << 3;
const CONTENT_CHECKSUM: u8 = 1 << 2;
const DICTIONARY: u8 = 1;
/// The bit of a block's length that says it is not compressed.
const PLAIN: u32 = 1 << 31;

pub(super) fn open(input: &mut Input<'_>, window: &mut Window<'_>) -> Result<(), End> {
    while !input.is_at_end()? {
        frame(input, window)?;
    }
    Ok(())
}

fn frame(input: &mut Input<'_>, window: &mut Window<'_>) -> Result<(), End> {
    if input.array()? != MAGIC {
        return Err(UnpackError::Malformed.into());
    }
    let [flags, _block_bytes_max] = input.array()?;
    if flags >> 6 != 1 || flags & DICTIONARY != 0 {
        return Err(UnpackError::Malformed.into());
    }
    // The header's own checksum follows.
    input.skip(if flags & CONTENT_SIZE != 0 { 8 } else { 0 } + 1)?;
    window.forget();
    loop {
        let bytes = u32::from_le_bytes(input.array()?);
        if bytes == 0 {
            break;
        }
        if flags & INDEPENDENT != 0 {
            window.forget();
        }
        if bytes & PLAIN != 0 {
            window.put_from(input, (bytes & !PLAIN) as usize)?;
        } else {
            block(input, window, bytes as usize)?;
        }
        if flags & BLOCK_CHECKSUM != 0 {
            input.skip(4)?;
        }
    }
    if flags & CONTENT_CHECKSUM != 0 {
        input.skip(4)?;
    }
    Ok(())
}

/// One compressed block: literals and a reference back, over and over, the last without a reference.
fn block(input: &mut Input<'_>, window: &mut Window<'_>, bytes: usize) -> Result<(), End> {
    let mut left = bytes;
    while left > 0 {
        let token = usize::from(byte(input, &mut left)?);
        let literals = length(input, &mut left, token >> 4)?;
        left = left.checked_sub(literals).ok_or(UnpackError::Malformed)?;
        window.put_from(input, literals)?;
        if left == 0 {
            break;
        }
        let distance = u16::from_le_bytes([byte(input, &mut left)?, byte(input, &mut left)?]);
        let repeated = length(input, &mut left, token & 15)?.saturating_add(4);
        window.repeat(usize::from(distance), repeated)?;
    }
    Ok(())
}

fn byte(input: &mut Input<'_>, left: &mut usize) -> Result<u8, End> {
    *left = left.checked_sub(1).ok_or(UnpackError::Malformed)?;
    input.byte()
}

/// A length that began with four bits: 15 means that bytes follow, each added, the last one not 255.
fn length(input: &mut Input<'_>, left: &mut usize, begun: usize) -> Result<usize, End> {
    let mut length = begun;
    if begun == 15 {
        loop {
            let more = byte(input, left)?;
            length += usize::from(more);
            if more != u8::MAX {
                break;
            }
        }
    }
    Ok(length)
}
