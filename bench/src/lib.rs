//! Benchmarks over whole brokers: `skerry-bench footprint` and `skerry-bench broker`. Those over single layers are in `benches/`.
#![forbid(unsafe_code)]

pub mod broker;
pub mod footprint;
pub mod machine;
pub mod memory;
pub mod process;
pub mod report;
pub mod server;
