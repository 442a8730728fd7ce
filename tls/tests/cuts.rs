//! Whole conversations cut into segments: wherever the cuts are, both sides end the same.

use skerry_tls::crypto::Provider;
use skerry_tls::testing::{CutAt, Direction, Keys, Kind, Link, Pieces, Seeded, Stage, Toy, Whole};

/// Segments of any size, from a seed.
struct Ragged(Seeded);

impl Link for Ragged {
    fn segment(&mut self, _: Direction, _: usize, waiting: usize) -> usize {
        1 + self.0.below(waiting.min(64))
    }
}

/// Goal: segmentation changes nothing. Method: each shape of handshake with its data and closes, cut at each byte of either direction, at
/// `pairs` sampled pairs of places, into single bytes, and raggedly; the summary of both sides is compared with that of whole flights.
fn cut<P: Provider>(provider: &P, step: usize, pairs: usize) {
    let keys = Keys::new(provider);
    let mut count = 0;
    for (name, kind) in Kind::SHAPES {
        let stage = Stage::new(&keys, *kind);
        let whole = stage.handshake(&mut Whole, 9);
        let expected = whole.summary();
        assert!(whole.client.is_closed && whole.server.is_closed, "{name}: {expected}");
        let mut same = |link: &mut dyn Link, how: &str| {
            let summary = stage.handshake(link, 9).summary();
            assert_eq!(summary, expected, "{name}, {how}");
            count += 1;
        };
        // Signatures differ by a byte or two in length from run to run: what is past the end is no cut.
        let ways = [
            (Direction::ToServer, whole.to_server.len()),
            (Direction::ToClient, whole.to_client.len()),
        ];
        for (direction, bytes) in ways {
            for at in (1..bytes).step_by(step) {
                same(&mut CutAt(vec![(direction, at)]), &format!("{direction:?} cut at {at}"));
            }
        }
        let mut random = Seeded::new(kind.version as u64);
        for _ in 0..pairs {
            let cuts = [0, 1].map(|_| {
                let (direction, bytes) = ways[random.below(2)];
                (direction, 1 + random.below(bytes - 1))
            });
            same(&mut CutAt(cuts.to_vec()), &format!("cut at {cuts:?}"));
        }
        for bytes in [1, 2, 3, 5, 7] {
            same(&mut Pieces(bytes), &format!("pieces of {bytes}"));
        }
        for seed in 0..10 {
            same(&mut Ragged(Seeded::new(seed)), &format!("ragged, seed {seed}"));
        }
    }
    println!("{}: {count} conversations", provider.name());
}

#[test]
fn toy_at_each_byte() {
    cut(&Toy, 1, 300);
}

#[cfg(feature = "mbedtls")]
#[test]
fn mbedtls_at_some_bytes() {
    let provider = skerry_tls::crypto::mbedtls::Mbedtls::new().expect("mbedtls");
    cut(&provider, 97, 5);
}

#[cfg(feature = "fast")]
#[test]
fn fast_at_some_bytes() {
    cut(&skerry_tls::crypto::fast::Fast, 13, 30);
}
