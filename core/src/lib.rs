//! Kafka's wire protocol, record batches and protocol state machines.
//!
//! `no_std`, no allocation, no `unsafe`: bytes in, values out, with time passed in as an argument. The broker, the tools and
//! firmware all link this crate.
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

#[cfg(test)]
extern crate std;

pub mod api;
pub mod blob;
pub mod client;
pub mod error_code;
pub mod frame;
pub mod header;
pub mod machine;
pub mod memory;
pub mod meter;
pub mod record;
pub mod table;
pub mod time;
pub mod wire;
