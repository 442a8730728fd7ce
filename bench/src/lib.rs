//! Benchmarks over whole brokers and of TLS: the subcommands of `skerry-bench`. Those over single layers are in `benches/`.
#![forbid(unsafe_code)]

pub mod against;
pub mod broker;
pub mod footprint;
pub mod handshake;
pub mod log;
pub mod machine;
pub mod medians;
pub mod memory;
pub mod process;
pub mod progress;
pub mod report;
pub mod server;
pub mod storm;
