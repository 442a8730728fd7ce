//! Any bytes as what a server sends to our TLS client in a whole connection: an end of one alert, or a connection that works; never a panic, nor our
//! own fault.
//!
//! The bytes edit a recorded conversation over a provider whose MACs and signatures always hold; what they say is in `testing::sessions`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skerry_tls::testing::sessions::{Role, check};

fuzz_target!(|data: &[u8]| drop(check(Role::Client, data)));
