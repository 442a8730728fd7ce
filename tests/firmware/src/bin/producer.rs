//! Readings to the broker, in plain: the UART is the connection.
#![no_std]
#![no_main]

use cortex_m_rt::entry;
use skerry_core::client::{Acks, Producer, Settings};
use skerry_firmware::board::{self, Clock, Uart};
use skerry_firmware::send;

#[entry]
fn main() -> ! {
    board::paint_stack();
    let Some(clock) = Clock::start() else { board::exit(2) };
    let (mut batch, mut frame) = ([0; 512], [0; 512]);
    let settings = Settings::new("broker.local", 9092, "readings");
    let mut producer = Producer::new(settings, Acks::AllOnce, &mut batch, &mut frame);
    let done = send::readings(&clock, &mut producer, &mut Uart::open(), |_| true);
    defmt::info!("the stack had {=usize} bytes at most", board::stack_bytes());
    board::exit(u8::from(!done))
}
