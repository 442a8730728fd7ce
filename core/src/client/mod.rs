//! A small Kafka client for devices: [`Producer`] and [`Consumer`] of one partition each, in buffers of the caller's.
//!
//! Neither knows a socket, a clock or an allocator. The caller opens connections when it is told to, and passes the time and a
//! [`Transport`] to each call; a call does what it can and says `WouldBlock` instead of waiting. Everything that a network does to
//! a device is answered inside: replies in pieces, lost and silent connections, leaders that move, brokers that ask for patience.
//!
//! ```
//! use skerry_core::client::{Acks, Lost, Producer, ProducerEvent, Settings, Transport};
//! use skerry_core::time::{Instant, Timestamp};
//!
//! /// Where there is no network, every call says `Lost`.
//! struct Unplugged;
//!
//! impl Transport for Unplugged {
//!     fn send(&mut self, _: &[u8]) -> nb::Result<usize, Lost> {
//!         Err(nb::Error::Other(Lost))
//!     }
//!     fn receive(&mut self, _: &mut [u8]) -> nb::Result<usize, Lost> {
//!         Err(nb::Error::Other(Lost))
//!     }
//! }
//!
//! let (mut batch, mut frame) = ([0; 512], [0; 512]);
//! let settings = Settings::new("192.168.1.10", 9092, "readings");
//! let mut producer = Producer::new(settings, Acks::All, &mut batch, &mut frame);
//!
//! let now = Instant::from_micros(0);
//! producer.push(now, Timestamp::NONE, Some(b"device-7"), Some(b"21.5"), &[]).unwrap();
//! assert_eq!(producer.poll(now, &mut Unplugged), Ok(ProducerEvent::Connect));
//! assert_eq!(producer.address(), ("192.168.1.10", 9092));
//! // Had it worked, this would be `producer.connected()`, and `poll` would go on to `Delivered`.
//! assert_eq!(producer.unreachable(now), Err(nb::Error::WouldBlock));
//! assert!(producer.wake_at() > now, "it is tried again after a while");
//! assert_eq!(producer.pending(), 1);
//! ```
//!
//! `examples/produce.rs` is the whole loop over a socket, the firmware under `tests/firmware` the same over a UART and over TLS.
//! With the feature `embedded-io` an `Io` makes a transport of a serial driver or socket of those traits, with `embedded-nal` a
//! `Socket` does of a TCP stack.

mod backoff;
mod consumer;
mod error;
#[cfg(feature = "embedded-io")]
mod io;
mod link;
#[cfg(feature = "embedded-nal")]
mod nal;
mod producer;
mod transport;

pub use consumer::{Consumer, ConsumerEvent, Fetched, FetchedRecord, Start};
pub use error::Error;
#[cfg(feature = "embedded-io")]
pub use io::Io;
#[cfg(feature = "embedded-nal")]
pub use nal::Socket;
pub use producer::{Acks, Producer, ProducerEvent, RecordTooLarge};
pub use transport::{Lost, Transport};

use crate::time::Millis;

/// Bytes of the longest host name that a leader can be followed to: of DNS's 253 no broker's address has more.
/// When full: [`Error::Address`].
pub const HOST_BYTES_MAX: usize = 128;

/// Whom a client talks to, and with how much patience.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Settings<'a> {
    /// Any broker of the cluster.
    pub host: &'a str,
    /// Its port.
    pub port: u16,
    /// The topic.
    pub topic: &'a str,
    /// The partition.
    pub partition: i32,
    /// What the client calls itself in the broker's log.
    pub client_id: &'a str,
    /// Whether the topic may be created when it is not there, by the broker's leave.
    pub create_topic: bool,
    /// How long a request may take until its connection counts as lost.
    pub request_timeout: Millis,
    /// The first wait after a failure; each further one is twice as long.
    pub backoff_first: Millis,
    /// The longest wait.
    pub backoff_most: Millis,
    /// Anything that differs between devices: it keeps them from coming back in step.
    pub seed: u32,
}

impl<'a> Settings<'a> {
    /// Partition 0 of `topic`, 10 s for a request, waits of 100 ms to 10 s.
    #[must_use]
    pub const fn new(host: &'a str, port: u16, topic: &'a str) -> Self {
        Self {
            host,
            port,
            topic,
            partition: 0,
            client_id: "skerry-core",
            create_topic: true,
            request_timeout: Millis(10_000),
            backoff_first: Millis(100),
            backoff_most: Millis(10_000),
            seed: 1,
        }
    }
}
