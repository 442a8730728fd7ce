//! The hash by which Kafka's Java client gives keyed records a partition: murmur2 with its seed.

/// The partition, of `count`, of a record with this key.
pub fn partition(key: &[u8], count: usize) -> usize {
    let positive = hash(key) & 0x7fff_ffff;
    positive as usize % count.max(1)
}

/// Austin Appleby's MurmurHash2 in 32 bits, with the seed of `org.apache.kafka.common.utils.Utils`.
fn hash(data: &[u8]) -> u32 {
    const SEED: u32 = 0x9747_b28c;
    const M: u32 = 0x5bd1_e995;
    let mut h = SEED ^ data.len() as u32;
    let (words, tail) = data.as_chunks::<4>();
    for word in words {
        let mut k = u32::from_le_bytes(*word).wrapping_mul(M);
        k ^= k >> 24;
        h = h.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    if !tail.is_empty() {
        for (byte, shift) in tail.iter().zip([0, 8, 16]) {
            h ^= u32::from(*byte) << shift;
        }
        h = h.wrapping_mul(M);
    }
    h ^= h >> 13;
    h = h.wrapping_mul(M);
    h ^ h >> 15
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values that Kafka's `Utils.murmur2` gives, from a run of kafka-clients 4.4.0.
    #[test]
    fn hashes_as_java_does() {
        for (key, want) in WANTED {
            assert_eq!(hash(key.as_bytes()) as i32, *want, "{key}");
        }
    }

    const WANTED: &[(&str, i32)] = &[
        ("", 275646681),
        ("a", -1563381124),
        ("ab", 316155434),
        ("abc", 479470107),
        ("abcd", -1323649548),
        ("key-21", 333354507),
        ("foobar", -790332482),
        ("a-little-bit-long-string", -985981536),
        ("naïve ✓", 151107166),
    ];

    #[test]
    fn partitions_stay_in_range() {
        assert!((0..1000_u32).all(|n| partition(&n.to_be_bytes(), 7) < 7));
        assert_eq!(partition(b"any", 0), 0);
    }
}
