//! The simulator: the real broker over a fake machine, with model clients, all from one seed.

pub mod client;
pub mod host;
pub mod model;
pub mod net;
pub mod peer;

pub use client::Cx;
