//! The broker: every layer put together.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

pub mod accounts;
pub mod broker;
pub mod cli;
pub mod config;
pub mod conn;
pub mod coordinator;
pub mod crc;
pub mod dispatch;
pub mod handler;
pub mod holds;
pub mod ids;
pub mod keystore;
pub mod log;
pub mod logging;
pub mod memory;
pub mod metrics;
pub mod observe;
pub mod outbox;
pub mod secure;
pub mod serve;
pub mod startup;
pub mod state;
pub mod tls_setup;
pub mod tokens;
pub mod topics;
pub mod unpack;
pub mod waiters;
