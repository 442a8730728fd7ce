//! Instructions of the hot paths: `make guard` fails when one takes more than its baseline and a tolerance.
//!
//! What is counted is our own code alone. TLS runs over the provider of constants that the engine's tests have: AWS-LC and Mbed TLS choose their
//! code by the processor, so that their counts would differ from machine to machine. Kafka's checksum is core's one-table function where it can be
//! chosen, for the same reason. The broker runs over a network and a disk that are memory.
#![allow(missing_docs, reason = "gungraun's macros make what has none")]

mod broker;
mod codec;
mod held;
mod tls;

use broker::{append, fetch, produce};
use codec::{decode_fetch, decode_metadata, decode_produce, encode_fetch, encode_metadata, validate_batch};
use gungraun::{library_benchmark_group, main};
use tls::{client, open, open_into, seal, server};

library_benchmark_group!(name = records, benchmarks = [seal, open, open_into]);
library_benchmark_group!(name = handshakes, benchmarks = [server, client]);
library_benchmark_group!(
    name = messages,
    benchmarks = [
        decode_produce,
        decode_fetch,
        decode_metadata,
        encode_fetch,
        encode_metadata,
        validate_batch
    ]
);
library_benchmark_group!(name = paths, benchmarks = [append, produce, fetch]);

main!(
    config = held::everywhere(),
    library_benchmark_groups = [records, handshakes, messages, paths]
);
