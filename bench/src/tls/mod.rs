//! Our engine as the benchmarks use it: an end of a connection over bytes, and a client's connection over a socket.

mod channel;
mod end;

pub use channel::{Channel, Target};
pub use end::{Came, End, Kept, now};
