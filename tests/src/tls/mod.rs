//! Our engine as tests and benchmarks use it: an end of a connection over bytes, and a client's connection over a socket.

mod channel;
mod end;
pub mod files;

pub use channel::{Channel, Target};
pub use end::{Came, End, Kept, now};
