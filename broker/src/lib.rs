//! The broker: every layer put together.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

pub mod cli;
pub mod config;
pub mod crc;
pub mod ids;
pub mod log;
pub mod logging;
pub mod memory;
pub mod startup;
pub mod topics;
pub mod waiters;
