//! Variable-length integers: seven bits to a byte, lowest first, the top bit set on all but the last; signed ones in zigzag.

/// Most bytes of a 32-bit varint.
pub const VARINT_BYTES_MAX: usize = 5;
/// Most bytes of a 64-bit varint.
pub const VARLONG_BYTES_MAX: usize = 10;

/// Folds a signed number so that small magnitudes take few bytes: 0, −1, 1, −2 … become 0, 1, 2, 3 …
#[must_use]
pub const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Undoes [`zigzag`].
#[must_use]
pub const fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Bytes that `value` takes as an unsigned varint, 1 to 10.
#[must_use]
pub const fn unsigned_len(value: u64) -> usize {
    let bits = u64::BITS - (value | 1).leading_zeros();
    bits.div_ceil(7) as usize
}

/// Bytes that `value` takes as a zigzag varint, 1 to 10. A 32-bit varint takes as many as the same number in 64 bits.
#[must_use]
pub const fn signed_len(value: i64) -> usize {
    unsigned_len(zigzag(value))
}

/// `value` as an unsigned varint: its bytes are the first [`unsigned_len`] ones.
#[must_use]
pub fn unsigned(mut value: u64) -> [u8; VARLONG_BYTES_MAX] {
    let mut bytes = [0; VARLONG_BYTES_MAX];
    for byte in &mut bytes {
        *byte = value as u8 & 0x7f;
        value >>= 7;
        if value == 0 {
            break;
        }
        *byte |= 0x80;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zigzag_goes_there_and_back() {
        for (signed, folded) in [
            (0, 0),
            (-1, 1),
            (1, 2),
            (-2, 3),
            (i64::MAX, u64::MAX - 1),
            (i64::MIN, u64::MAX),
        ] {
            assert_eq!(zigzag(signed), folded);
            assert_eq!(unzigzag(folded), signed);
        }
    }

    #[test]
    fn lengths_change_at_each_seventh_bit() {
        assert_eq!(unsigned_len(0), 1);
        for bytes in 1..10_usize {
            let first_longer = 1_u64 << (7 * bytes);
            assert_eq!(unsigned_len(first_longer - 1), bytes);
            assert_eq!(unsigned_len(first_longer), bytes + 1);
        }
        assert_eq!(unsigned_len(u64::MAX), 10);
    }

    #[test]
    fn bytes_are_the_documented_ones() {
        assert_eq!(unsigned(300)[..2], [0xac, 0x02]);
        assert_eq!(
            unsigned(u64::MAX),
            [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]
        );
    }
}
