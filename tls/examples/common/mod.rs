//! What the example programs share: sockets, files, and the provider that a user asks for.
#![allow(dead_code, reason = "each program uses a part")]

pub mod connection;
pub mod parse;
pub mod pem;

use std::time::{SystemTime, UNIX_EPOCH};

use skerry_core::time::Timestamp;
use skerry_tls::crypto::arena;
use skerry_tls::crypto::either::{Choice, Either};
use skerry_tls::crypto::fast::Fast;
use skerry_tls::crypto::mbedtls::Mbedtls;
use skerry_tls::crypto::system::SystemRandom;
use skerry_tls::handshake::TicketKeys;

/// Either provider.
pub type Chosen = Either<Mbedtls, Fast>;

/// The provider that is asked for. mbedtls, which checks chains for either, gets its heap. Once.
pub fn provider(choice: Choice) -> Result<Chosen, String> {
    arena::start(arena::DEFAULT_BYTES).map_err(|why| format!("mbedtls's heap: {why:?}"))?;
    Chosen::start(choice).map_err(|why| format!("the provider {choice}: {why:?}"))
}

/// How long tickets can be used: a day.
const TICKET_SECONDS: u32 = 24 * 3600;

/// Keys that tickets are sealed under until the program ends.
pub fn tickets(provider: &Chosen) -> Result<TicketKeys<Chosen>, String> {
    let keys = TicketKeys::new(provider, &mut SystemRandom, now(), TICKET_SECONDS);
    keys.map_err(|error| format!("keys of tickets: {error:?}"))
}

/// The system's wall clock.
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(since.as_millis() as i64)
}
