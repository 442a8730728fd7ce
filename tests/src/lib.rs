//! Simulator, fault-injecting disk, and what the tests over whole processes share.
#![forbid(unsafe_code)]

pub mod client;
pub mod process;
pub mod rng;
pub mod wire;
