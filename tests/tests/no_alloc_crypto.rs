//! Records and hashes allocate nothing, whichever provider: every call to an allocator in the process is counted from outside, by a preloaded C
//! library, so that Rust and C are both seen.
#![forbid(unsafe_code)]

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::process::Command;

use skerry_tests::preload::AllocationCount;
use skerry_tests::process::TempDir;
use skerry_tls::crypto::either::{Choice, Either};
use skerry_tls::crypto::{Aead, AeadAlgorithm, Hash, HashAlgorithm, Provider};

/// Set in the process that is counted, which is this test again.
const COUNTED: &str = "SKERRY_COUNTED";

#[test]
fn sealing_opening_and_hashing_allocate_nothing() {
    if std::env::var_os(COUNTED).is_some() {
        return work();
    }
    let directory = TempDir::new();
    let count = AllocationCount::build(directory.path()).expect("the shim");
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "sealing_opening_and_hashing_allocate_nothing", "--nocapture"]);
    let output = count
        .watch(&mut command)
        .env(COUNTED, "1")
        .output()
        .expect("the process");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(count.allocations().expect("a count") > 0);
}

/// Allocations of this process so far.
fn allocations(words: &File) -> u64 {
    let mut word = [0; 8];
    words.read_exact_at(&mut word, 0).expect("the shim's report");
    u64::from_ne_bytes(word)
}

fn work() {
    let words =
        File::open(std::env::var_os("SKERRY_COUNT_FILE").expect("the shim's report")).expect("the shim's report");
    let before = allocations(&words);
    drop(std::hint::black_box(Box::new(7)));
    assert!(allocations(&words) > before, "the shim sees nothing");

    for choice in [Choice::Mbedtls, Choice::Fast] {
        let provider = Either::start(choice).expect("a provider");
        for algorithm in [
            AeadAlgorithm::Aes128Gcm,
            AeadAlgorithm::Aes256Gcm,
            AeadAlgorithm::ChaCha20Poly1305,
        ] {
            let aead = provider
                .aead(algorithm, &[7; 32][..algorithm.key_bytes()])
                .expect("a key");
            let (mut data, mut out) = ([0; 1_000], [0; 984]);
            let mut round = || {
                let (text, tag) = data.split_last_chunk_mut().expect("room for a tag");
                *tag = aead.seal(&[1; 12], &[2; 5], text).expect("sealed");
                aead.open_into(&[1; 12], &[2; 5], &data, &mut out).expect("opened");
                aead.open(&[1; 12], &[2; 5], &mut data).expect("opened");
                aead.open(&[1; 12], &[2; 5], &mut data)
                    .expect_err("what was opened is no record");
            };
            // The first refusal makes the thread's list of errors, where a library has one.
            round();
            let before = allocations(&words);
            (0..10).for_each(|_| round());
            assert_eq!(allocations(&words), before, "{algorithm:?} on {choice}");
        }
        for algorithm in [HashAlgorithm::Sha256, HashAlgorithm::Sha384] {
            let before = allocations(&words);
            let mut hash = provider.hash(algorithm).expect("a hash");
            hash.update(&[7; 300]);
            let digest = hash.fork().expect("a fork").digest();
            assert!(hash.digest().is(digest.bytes()));
            if choice == Choice::Fast {
                provider
                    .hmac(algorithm, digest.bytes(), &[&[1; 20], &[2; 32]])
                    .expect("a MAC");
            }
            assert_eq!(allocations(&words), before, "{algorithm:?} on {choice}");
        }
    }
}
