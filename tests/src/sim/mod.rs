//! The simulator: the real broker over a fake machine, with model clients, all from one seed.

pub mod client;
pub mod host;
pub mod model;
pub mod net;
pub mod peer;
pub mod scenario;
pub mod world;

pub use client::Cx;
pub use world::{Report, run, scenario};
