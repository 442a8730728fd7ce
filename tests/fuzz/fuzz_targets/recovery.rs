//! Any bytes as the files of a partition: it is opened, what it says of itself holds together, and it can be written to.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| skerry_tests::log_bytes::check(data));
