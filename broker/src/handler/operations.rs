//! What a client may do, as the bit sets that it can ask for (KIP-430). There is no authorizer: everything that the kind of resource knows.
//!
//! Bits: 3 read · 4 write · 5 create · 6 delete · 7 alter · 8 describe · 9 cluster action · 10 describe configs · 11 alter configs · 12
//! idempotent write.

/// A topic's: 3–8, 10, 11.
const TOPIC: i32 = 0b1101_1111_1000;
/// The cluster's: 5, 7–12.
const CLUSTER: i32 = 0b1_1111_1010_0000;

/// The answer for a topic: the set when it was asked for.
#[must_use]
pub const fn topic(asked: bool) -> i32 {
    if asked { TOPIC } else { i32::MIN }
}

/// The answer for the cluster: the set when it was asked for.
#[must_use]
pub const fn cluster(asked: bool) -> i32 {
    if asked { CLUSTER } else { i32::MIN }
}

#[cfg(test)]
mod tests {
    /// The numbers that Kafka answers without an authorizer.
    #[test]
    fn as_kafka() {
        assert_eq!(super::topic(true), 3576);
        assert_eq!(super::cluster(true), 8096);
        assert_eq!((super::topic(false), super::cluster(false)), (i32::MIN, i32::MIN));
    }
}
