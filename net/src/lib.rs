//! Sockets, disks, clocks and deadlines for one thread.
//!
//! Knows neither Kafka nor TLS. [`host`] is what the layers above are written against; [`linux`] is the real one.
#![deny(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

pub mod host;
