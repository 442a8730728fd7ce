//! Any bytes as a handshake message of TLS: an error, or a message that can be walked, written, and read again as the same.
//!
//! The first byte chooses the message.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| drop(skerry_tls::testing::messages::check(data)));
