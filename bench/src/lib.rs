//! Benchmarks over whole brokers and of TLS: the subcommands of `skerry-bench`. Those over single layers are in `benches/`.
#![forbid(unsafe_code)]

pub mod broker;
pub mod footprint;
pub mod handshake;
pub mod machine;
pub mod memory;
pub mod process;
pub mod report;
pub mod server;
pub mod storm;
