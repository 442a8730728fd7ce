//! The simulator: the real broker over a fake machine, with model clients, all from one seed.

pub mod net;
