//! Frames: every request and reply goes behind its length in four bytes.

use crate::wire::Reader;

/// Bytes of the length in front of a frame.
pub const PREFIX_BYTES: usize = 4;

/// The shortest frame: a reply's correlation id. (A request has at least eight bytes; its header says so when it is decoded.)
pub const FRAME_BYTES_MIN: usize = 4;

/// A length that no frame can have: the peer speaks something else, or too much. There is no way back into step: close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum FrameError {
    /// Negative.
    Negative(i32),
    /// Shorter than [`FRAME_BYTES_MIN`].
    TooShort(u32),
    /// Longer than the owner allows.
    TooLarge(u32),
}

impl core::fmt::Display for FrameError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Negative(bytes) => write!(f, "negative frame length {bytes}"),
            Self::TooShort(bytes) => write!(f, "frame of {bytes} bytes is too short"),
            Self::TooLarge(bytes) => write!(f, "frame of {bytes} bytes is over the limit"),
        }
    }
}

impl core::error::Error for FrameError {}

/// Length of the first frame in `bytes` without its prefix, known as soon as the prefix is there: what a buffer must hold.
///
/// Errors: `WouldBlock` for fewer than [`PREFIX_BYTES`]; [`FrameError`] for a length that is out of bounds, `bytes_max` being
/// the largest allowed.
pub fn peek_len(bytes: &[u8], bytes_max: usize) -> nb::Result<usize, FrameError> {
    let length = Reader::new(bytes).i32().map_err(|_| nb::Error::WouldBlock)?;
    let wire = u32::try_from(length).map_err(|_| FrameError::Negative(length))?;
    match wire as usize {
        len if len < FRAME_BYTES_MIN => Err(FrameError::TooShort(wire).into()),
        len if len > bytes_max => Err(FrameError::TooLarge(wire).into()),
        len => Ok(len),
    }
}

/// The first frame in `bytes`, without its prefix. It takes [`PREFIX_BYTES`] more than the answer is long.
///
/// Errors: `WouldBlock` until it is whole; [`FrameError`] as for [`peek_len`], without waiting for the rest.
pub fn peek(bytes: &[u8], bytes_max: usize) -> nb::Result<&[u8], FrameError> {
    let len = peek_len(bytes, bytes_max)?;
    bytes
        .get(PREFIX_BYTES..)
        .and_then(|body| body.get(..len))
        .ok_or(nb::Error::WouldBlock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_cut_anywhere_is_not_yet() {
        let bytes = [0, 0, 0, 5, 1, 2, 3, 4, 5, 9];
        for cut in 0..9 {
            assert_eq!(peek(&bytes[..cut], 5), Err(nb::Error::WouldBlock), "cut at {cut}");
        }
        assert_eq!(peek(&bytes[..9], 5), Ok(&bytes[4..9]));
        assert_eq!(peek(&bytes, 5), Ok(&bytes[4..9]));
    }

    #[test]
    fn impossible_lengths_are_told_from_the_prefix_alone() {
        let error = |length: i32, max| match peek(&length.to_be_bytes(), max) {
            Err(nb::Error::Other(error)) => Some(error),
            _ => None,
        };
        assert_eq!(error(-1, 100), Some(FrameError::Negative(-1)));
        assert_eq!(error(i32::MIN, 100), Some(FrameError::Negative(i32::MIN)));
        assert_eq!(error(0, 100), Some(FrameError::TooShort(0)));
        assert_eq!(error(3, 100), Some(FrameError::TooShort(3)));
        assert_eq!(error(100, 100), None);
        assert_eq!(error(101, 100), Some(FrameError::TooLarge(101)));
        // The first bytes of a TLS ClientHello and of an HTTP request.
        assert_eq!(error(0x1603_0100, 1 << 20), Some(FrameError::TooLarge(0x1603_0100)));
        assert_eq!(
            error(i32::from_be_bytes(*b"GET "), 1 << 20),
            Some(FrameError::TooLarge(0x4745_5420))
        );
    }
}
