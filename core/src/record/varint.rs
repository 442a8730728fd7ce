//! The zigzag varints inside a record: 7 bits a byte, low first, small negatives small.
//!
//! Source: Kafka's `ByteUtils.readVarint/writeVarint`, which follow Protocol Buffers.

/// Most bytes of a 32-bit varint.
pub const VARINT_BYTES_MAX: usize = 5;
/// Most bytes of a 64-bit varint.
pub const VARLONG_BYTES_MAX: usize = 10;

/// Takes a 32-bit varint off the front of `bytes`.
///
/// `None`: the bytes end inside it, or it is longer than 5 bytes. `bytes` is then unspecified.
#[inline]
pub(super) fn decode_varint(bytes: &mut &[u8]) -> Option<i32> {
    // The upper bits of a fifth byte fall off, as in Kafka.
    let raw = decode_unsigned(bytes, VARINT_BYTES_MAX)? as u32;
    Some(((raw >> 1) as i32) ^ -((raw & 1) as i32))
}

/// Takes a 64-bit varint off the front of `bytes`; fails as [`decode_varint`] does, past 10 bytes.
#[inline]
pub(super) fn decode_varlong(bytes: &mut &[u8]) -> Option<i64> {
    let raw = decode_unsigned(bytes, VARLONG_BYTES_MAX)?;
    Some(((raw >> 1) as i64) ^ -((raw & 1) as i64))
}

#[inline]
fn decode_unsigned(bytes: &mut &[u8], bytes_max: usize) -> Option<u64> {
    // Lengths and deltas of small records fit one byte or two: the common cases by far.
    match **bytes {
        [first @ ..0x80, ref rest @ ..] => {
            *bytes = rest;
            Some(u64::from(first))
        }
        [first, second @ ..0x80, ref rest @ ..] => {
            *bytes = rest;
            Some(u64::from(first & 0x7F) | u64::from(second) << 7)
        }
        _ => decode_long(bytes, bytes_max),
    }
}

#[cold]
fn decode_long(bytes: &mut &[u8], bytes_max: usize) -> Option<u64> {
    let mut raw = 0u64;
    for at in 0..bytes_max {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        raw |= u64::from(byte & 0x7F) << (7 * at);
        if byte < 0x80 {
            return Some(raw);
        }
    }
    None
}

/// Writes `value` to the front of `out` and returns the bytes used; `None` when they do not fit.
pub(super) fn encode_varlong(value: i64, out: &mut [u8]) -> Option<usize> {
    let mut raw = zigzag(value);
    let bytes = varlong_bytes(value);
    for byte in out.get_mut(..bytes)? {
        *byte = raw as u8 | 0x80;
        raw >>= 7;
    }
    if let Some(last) = out.get_mut(bytes - 1) {
        *last &= 0x7F;
    }
    Some(bytes)
}

/// How many bytes [`encode_varlong`] writes. A 32-bit value takes the same bytes in both widths.
#[must_use]
pub(super) const fn varlong_bytes(value: i64) -> usize {
    let bits = 64 - (zigzag(value) | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values whose encodings Kafka's own unit tests list.
    #[test]
    fn known_encodings() {
        let cases: [(i64, &[u8]); 10] = [
            (0, &[0]),
            (-1, &[1]),
            (1, &[2]),
            (63, &[0x7E]),
            (-64, &[0x7F]),
            (64, &[0x80, 0x01]),
            (-8192, &[0xFF, 0x7F]),
            (8192, &[0x80, 0x80, 0x01]),
            (i64::from(i32::MAX), &[0xFE, 0xFF, 0xFF, 0xFF, 0x0F]),
            (i64::MIN, &[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01]),
        ];
        for (value, wire) in cases {
            let mut out = [0; 10];
            let bytes = encode_varlong(value, &mut out).unwrap();
            assert_eq!(&out[..bytes], wire, "{value}");
            assert_eq!(encode_varlong(value, &mut out[..bytes - 1]), None);
            let mut cursor = wire;
            assert_eq!(decode_varlong(&mut cursor), Some(value));
            assert!(cursor.is_empty());
            if let Ok(narrow) = i32::try_from(value) {
                assert_eq!(decode_varint(&mut &*wire), Some(narrow));
            }
            for cut in 0..wire.len() {
                assert_eq!(decode_varlong(&mut &wire[..cut]), None);
                assert_eq!(decode_varint(&mut &wire[..cut]), None);
            }
        }
    }

    #[test]
    fn longer_than_its_width_is_refused() {
        assert_eq!(decode_varint(&mut &[0x80, 0x80, 0x80, 0x80, 0x80, 0x00][..]), None);
        assert_eq!(decode_varlong(&mut &[0xFF; 11][..]), None);
        assert_eq!(decode_varint(&mut &[0xFF, 0xFF, 0xFF, 0xFF, 0x0F][..]), Some(i32::MIN));
    }
}
