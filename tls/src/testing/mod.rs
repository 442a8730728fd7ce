//! What tests, benches and fuzz targets drive the engine with: certificates, seeded randomness, verifiers that need no X.509, a provider of
//! next to nothing, and a client and a server that talk through byte pipes. Allocates and panics as tests do; not for production.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a broken test set-up is a failed test"
)]

mod fixtures;
mod identities;
pub mod messages;
mod pair;
mod random;
pub mod sessions;
mod stage;
mod toy;
mod verifier;

pub use fixtures::{Fixture, NOW};
pub use identities::Loaded;
pub use pair::{CutAt, Direction, Flip, Kept, Link, Pair, Pieces, Room, Setting, Side, Whole};
pub use random::Seeded;
pub use stage::{Ended, Keys, Kind, PING, PONG, Stage, Who, converse};
pub use toy::{Toy, ToyAead, ToyExchange, ToyHash, ToyKey};
pub use verifier::{Accepting, public_key};
