//! CRC-32C (Castagnoli), the checksum of a v2 record batch.
//!
//! Everything above takes the function as an argument, so an owner with a CRC instruction passes that; this one needs nothing
//! but a table. One table of 256 words (1 KiB of flash), a byte at a time: slicing by 8 is some four times as fast for 8 KiB,
//! which a microcontroller that seals a few hundred bytes would rather keep, and the broker does not use this function at all.
//!
//! Source: RFC 3720 §B.4 (polynomial 0x1EDC6F41, reflected, initial and final value all ones).

/// A CRC-32C over `bytes` that goes on from `crc`, the value of what came before (0 for nothing).
///
/// `f(f(0, a), b) == f(0, a ‖ b)`.
pub type Crc32c = fn(crc: u32, bytes: &[u8]) -> u32;

/// The portable [`Crc32c`]. Cost: one table look-up per byte.
#[must_use]
pub fn crc32c(crc: u32, bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!crc, |crc, byte| {
        let [low, ..] = crc.to_le_bytes();
        // A `u8` index into 256 words is always inside.
        #[allow(clippy::indexing_slicing)]
        let word = TABLE[usize::from(low ^ byte)];
        word ^ (crc >> 8)
    })
}

/// 0x1EDC6F41 with its bits reversed.
const POLYNOMIAL: u32 = 0x82F6_3B78;

static TABLE: [u32; 256] = table();

#[allow(clippy::indexing_slicing)] // Compile time: an index outside would not build.
const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut word = index as u32;
        let mut bit = 0;
        while bit < 8 {
            word = if word & 1 == 1 {
                (word >> 1) ^ POLYNOMIAL
            } else {
                word >> 1
            };
            bit += 1;
        }
        table[index] = word;
        index += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of RFC 3720 §B.4, and the catalogue's check value.
    #[test]
    fn known_values() {
        let ascending: [u8; 32] = core::array::from_fn(|i| i as u8);
        let descending: [u8; 32] = core::array::from_fn(|i| 31 - i as u8);
        assert_eq!(crc32c(0, &[]), 0);
        assert_eq!(crc32c(0, b"123456789"), 0xE306_9283);
        assert_eq!(crc32c(0, &[0; 32]), 0x8A91_36AA);
        assert_eq!(crc32c(0, &[0xFF; 32]), 0x62A8_AB43);
        assert_eq!(crc32c(0, &ascending), 0x46DD_794E);
        assert_eq!(crc32c(0, &descending), 0x113F_DB5C);
    }

    #[test]
    fn pieces_equal_the_whole() {
        let bytes: [u8; 97] = core::array::from_fn(|i| (i * 7) as u8);
        for cut in 0..=bytes.len() {
            let (a, b) = bytes.split_at(cut);
            assert_eq!(crc32c(crc32c(0, a), b), crc32c(0, &bytes), "cut at {cut}");
        }
    }
}
