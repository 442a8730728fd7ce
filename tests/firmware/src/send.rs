//! The example: readings go to the broker, each with its key and a header, in batches.

use skerry_core::client::{Producer, ProducerEvent, Transport};
use skerry_core::record::RecordHeader;
use skerry_core::time::Timestamp;

use crate::board::Clock;

/// Records to send.
pub const READINGS: u32 = 20;

/// Sends [`READINGS`] readings; whether all arrived.
///
/// `connect` makes a fresh connection of the transport; whether it worked.
pub fn readings<T: Transport>(
    clock: &Clock,
    producer: &mut Producer<'_>,
    transport: &mut T,
    mut connect: impl FnMut(&mut T) -> bool,
) -> bool {
    let (mut next, mut delivered) = (0, 0);
    while delivered < READINGS {
        let now = clock.now();
        if next < READINGS {
            let value = next.to_be_bytes();
            let header = RecordHeader {
                key: b"unit",
                value: Some(b"mC"),
            };
            // A clock that knows the date would give a timestamp here.
            match producer.push(now, Timestamp::NONE, Some(b"device-7"), Some(&value), &[header]) {
                Ok(()) => {
                    next += 1;
                    continue;
                }
                Err(nb::Error::WouldBlock) => {}
                Err(nb::Error::Other(error)) => defmt::error!("{}", error),
            }
        } else {
            producer.flush();
        }
        match producer.poll(now, transport) {
            Ok(ProducerEvent::Connect) => {
                let (host, port) = producer.address();
                defmt::info!("connecting to {=str}:{=u16}", host, port);
                if connect(transport) {
                    producer.connected();
                } else {
                    // Whether the batch is given up by this shows in the next poll.
                    let _ = producer.unreachable(now);
                }
            }
            Ok(ProducerEvent::Delivered { base_offset, count }) => {
                defmt::info!("{=i32} records at offset {}", count, base_offset);
                delivered += count.unsigned_abs();
            }
            Err(nb::Error::WouldBlock) => cortex_m::asm::nop(), // Firmware that has time sleeps until `producer.wake_at()`.
            Err(nb::Error::Other(error)) => {
                defmt::error!("given up: {}", error);
                return false;
            }
        }
    }
    true
}
