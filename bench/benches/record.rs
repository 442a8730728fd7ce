//! TLS records, sealed and opened by each provider under each suite: `record/<verb>-<suite>-<provider>/<bytes>`.
//!
//! Sealing is in place. Opening is into a buffer of the reader's, as the broker's requests are opened: a record that was opened in place could
//! not be opened again.

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use skerry_tls::crypto::fast::Fast;
use skerry_tls::crypto::mbedtls::Mbedtls;
use skerry_tls::crypto::{AeadAlgorithm, Provider};
use skerry_tls::record::{ContentType, ReadHalf, TrafficKeys, WriteHalf};
use skerry_tls::suite::Version;

/// Bytes of content: an alert's or a heartbeat's, small requests, what fits a packet, a full record.
const CONTENT_BYTES: [usize; 6] = [16, 64, 256, 1024, 4096, 16 << 10];

const SUITES: [(&str, Version, AeadAlgorithm); 4] = [
    ("aes128gcm", Version::Tls13, AeadAlgorithm::Aes128Gcm),
    ("aes256gcm", Version::Tls13, AeadAlgorithm::Aes256Gcm),
    ("chacha20", Version::Tls13, AeadAlgorithm::ChaCha20Poly1305),
    // An explicit nonce in each record.
    ("tls12-aes128gcm", Version::Tls12, AeadAlgorithm::Aes128Gcm),
];

fn keys<P: Provider>(provider: &P, version: Version, algorithm: AeadAlgorithm) -> TrafficKeys<P> {
    let key = &[7; 32][..algorithm.key_bytes()];
    let keys = match version {
        Version::Tls13 => TrafficKeys::tls13(provider, algorithm, key, [7; 12]),
        Version::Tls12 => TrafficKeys::tls12(provider, algorithm, key, &[7; 4]),
    };
    keys.expect("keys")
}

fn records<P: Provider>(c: &mut Criterion, provider: &P) {
    let content = ContentType::ApplicationData;
    for (suite, version, algorithm) in SUITES {
        let fresh = || keys(provider, version, algorithm);
        for bytes in CONTENT_BYTES {
            let mut write = WriteHalf::<P>::plain();
            write.install(fresh());
            let (before, after) = write.overhead();
            let mut slot = vec![7; before + bytes + after];
            let name = |verb| BenchmarkId::new(format!("{verb}-{suite}-{}", provider.name()), bytes);
            let mut group = c.benchmark_group("record");
            group.throughput(Throughput::Bytes(bytes as u64));
            group.bench_function(name("seal"), |b| {
                b.iter(|| {
                    // Keys wear out: 2^24 records.
                    if write.wants_key_update() {
                        write.install(fresh());
                    }
                    write.seal(content, black_box(&mut slot), bytes).expect("a record")
                });
            });
            // One record opens under one sequence number: keys that have opened nothing, each time, made outside of what is timed.
            let mut write = WriteHalf::<P>::plain();
            write.install(fresh());
            slot.fill(7);
            write.seal(content, &mut slot, bytes).expect("a record");
            let mut out = vec![0; bytes + 64];
            group.bench_function(name("open"), |b| {
                b.iter_batched_ref(
                    || {
                        let mut read = ReadHalf::<P>::plain();
                        read.install(fresh());
                        read
                    },
                    |read| {
                        black_box(read.peek(&slot)).expect("a record");
                        let opened = read.open_into(black_box(&slot), &mut out).expect("a record");
                        opened.content.len()
                    },
                    BatchSize::NumIterations(64),
                );
            });
            group.finish();
        }
    }
}

fn benches_of_each(c: &mut Criterion) {
    records(c, &Fast);
    records(c, &Mbedtls::new().expect("a provider"));
}

criterion_group!(benches, benches_of_each);
criterion_main!(benches);
