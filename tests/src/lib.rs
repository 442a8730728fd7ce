//! Simulator, fault-injecting disk, and what the tests over whole processes share.
#![forbid(unsafe_code)]

pub mod arbitrary;
pub mod client;
pub mod fault_disk;
pub mod log_bytes;
pub mod machine;
pub mod preload;
pub mod process;
pub mod rng;
pub mod sim;
pub mod tls;
pub mod wire;
