//! Snappy: raw blocks, and the framing of the Java library ("Xerial") around them.
//!
//! Source: google/snappy format_description.txt; snappy-java's SnappyOutputStream (magic, two versions, then length and block).

use super::input::Input;
use super::window::Window;
use super::{End, UnpackError};

const XERIAL: [u8; 8] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0];

pub(super) fn open(input: &mut Input<'_>, window: &mut Window<'_>) -> Result<(), End> {
    if input.peek(XERIAL.len())?.first_chunk() != Some(&XERIAL) {
        return block(input, window);
    }
    input.skip(XERIAL.len() + 4 + 4)?;
    while !input.is_at_end()? {
        // A block says how long it is opened; how long it is closed need not be known.
        input.skip(4)?;
        block(input, window)?;
    }
    Ok(())
}

/// One block. References farther back than the window, which is longer than any client's batch by default, are refused.
fn block(input: &mut Input<'_>, window: &mut Window<'_>) -> Result<(), End> {
    let bytes = length(input)?;
    window.forget();
    let end = window.bytes().checked_add(bytes).ok_or(UnpackError::Malformed)?;
    while window.bytes() < end {
        let tag = usize::from(input.byte()?);
        let (kind, high) = (tag & 3, tag >> 2);
        let (distance, bytes) = match kind {
            0 => {
                let extra = high.saturating_sub(59);
                let bytes = 1 + if extra == 0 { high } else { little_endian(input, extra)? };
                (None, bytes)
            }
            1 => (Some((tag >> 5) << 8 | usize::from(input.byte()?)), 4 + (high & 7)),
            2 => (Some(little_endian(input, 2)?), 1 + high),
            _ => (Some(little_endian(input, 4)?), 1 + high),
        };
        if bytes > end - window.bytes() {
            return Err(UnpackError::Malformed.into());
        }
        match distance {
            None => window.put_from(input, bytes)?,
            Some(distance) => window.repeat(distance, bytes)?,
        }
    }
    Ok(())
}

/// The length before a block: 7 bits a byte, low first.
fn length(input: &mut Input<'_>) -> Result<usize, End> {
    let mut length = 0u64;
    for shift in (0..35).step_by(7) {
        let byte = input.byte()?;
        length |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return usize::try_from(length).map_err(|_| UnpackError::Malformed.into());
        }
    }
    Err(UnpackError::Malformed.into())
}

fn little_endian(input: &mut Input<'_>, bytes: usize) -> Result<usize, End> {
    let mut value = 0;
    for place in 0..bytes {
        value |= u64::from(input.byte()?) << (8 * place);
    }
    usize::try_from(value)
        .ok()
        .filter(|value| *value < usize::MAX)
        .ok_or_else(|| UnpackError::Malformed.into())
}
