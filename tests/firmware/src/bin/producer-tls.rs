//! The same over TLS 1.3: the broker is known by its key.
#![no_std]
#![no_main]

use cortex_m_rt::entry;
use skerry_core::client::{Acks, Producer, Settings};
use skerry_core::time::Timestamp;
use skerry_firmware::board::{self, Clock, Uart};
use skerry_firmware::send;
use skerry_tls::config::ClientConfig;
use skerry_tls::crypto::rustcrypto::{GROUPS, RustCrypto, SCHEMES, SUITES};
use skerry_tls::crypto::{CryptoError, Random};
use skerry_tls::notes::Notes;
use skerry_tls::pinned::{Pin, Pinned};
use skerry_tls::suite::Version;
use skerry_tls::transport::{Buffers, Secured};

/// SHA-256 of the broker's public key: here of the certificate that the test gives it.
const PINS: &[Pin] = &[*include_bytes!("../../broker.pin")];

/// The randomness of the host. A device has a generator of its own, or no business with TLS.
struct HostRandom;

impl Random for HostRandom {
    fn fill(&mut self, out: &mut [u8]) -> Result<(), CryptoError> {
        semihosting::experimental::random::fill_bytes(out).map_err(|_| CryptoError::Failed)
    }
}

#[entry]
fn main() -> ! {
    board::paint_stack();
    let Some(clock) = Clock::start() else { board::exit(2) };
    let verifier = Pinned::new(&RustCrypto, PINS);
    let config = ClientConfig {
        versions: &[Version::Tls13],
        suites: SUITES,
        groups: GROUPS,
        shares: GROUPS,
        schemes: SCHEMES,
        tickets: false,
        record_size_limit: Some(512),
        ..ClientConfig::new(&verifier, None)
    };
    let (mut buffers, mut notes) = (Buffers::<536, 1024, 416>::new(), Notes::default());
    let mut tls = Secured::new(Uart::open(), &RustCrypto, &config, HostRandom, &mut buffers, &mut notes);

    let (mut batch, mut frame) = ([0; 512], [0; 512]);
    let settings = Settings::new("broker.local", 9093, "readings");
    let mut producer = Producer::new(settings, Acks::AllOnce, &mut batch, &mut frame);
    // A device without a clock that knows the date has none to give; a pin asks for none.
    let done = send::readings(&clock, &mut producer, &mut tls, |tls| tls.connect(Timestamp(0)).is_ok());
    if let Some(cause) = tls.cause() {
        defmt::error!("TLS: {=str}", cause.id());
    }
    tls.close();
    defmt::info!("the stack had {=usize} bytes at most", board::stack_bytes());
    board::exit(u8::from(!done))
}
