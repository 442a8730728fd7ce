//! The producer and the consumer over a socket: sends the words of the command line as records and reads them back.
//!
//! ```sh
//! cargo run --package skerry-core --example produce -- 127.0.0.1:9092 demo hello world
//! ```

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use skerry_core::client::{Acks, Consumer, ConsumerEvent, Lost, Producer, ProducerEvent, Settings, Start, Transport};
use skerry_core::time::{Instant, Timestamp};

/// A socket that does not block, or none.
#[derive(Default)]
struct Socket(Option<TcpStream>);

impl Socket {
    /// Whether somebody was there.
    fn connect(&mut self, address: (&str, u16)) -> bool {
        self.0 = None; // The old one is closed first.
        let stream = TcpStream::connect(address).and_then(|stream| {
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            Ok(stream)
        });
        self.0 = stream.inspect_err(|e| eprintln!("{address:?}: {e}")).ok();
        self.0.is_some()
    }
}

fn to_nb(error: &std::io::Error) -> nb::Error<Lost> {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::Interrupted => nb::Error::WouldBlock,
        _ => nb::Error::Other(Lost),
    }
}

impl Transport for Socket {
    fn send(&mut self, bytes: &[u8]) -> nb::Result<usize, Lost> {
        self.0.as_mut().ok_or(Lost)?.write(bytes).map_err(|e| to_nb(&e))
    }

    fn receive(&mut self, out: &mut [u8]) -> nb::Result<usize, Lost> {
        self.0.as_mut().ok_or(Lost)?.read(out).map_err(|e| to_nb(&e))
    }
}

/// Time since the start of the program.
struct Clock(std::time::Instant);

impl Clock {
    fn now(&self) -> Instant {
        Instant::from_micros(u64::try_from(self.0.elapsed().as_micros()).unwrap_or(u64::MAX))
    }
}

/// A device would sleep until `wake_at` or until its network has something.
fn rest() {
    thread::sleep(Duration::from_millis(1));
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, topic, words @ ..] = arguments.as_slice() else {
        eprintln!("usage: produce HOST:PORT TOPIC WORD…");
        return ExitCode::from(2);
    };
    let Some((host, port)) = address.rsplit_once(':').and_then(|(h, p)| Some((h, p.parse().ok()?))) else {
        eprintln!("{address}: not HOST:PORT");
        return ExitCode::from(2);
    };
    let settings = Settings::new(host, port, topic);
    let clock = Clock(std::time::Instant::now());
    let Some(first) = produce(settings, &clock, words) else {
        return ExitCode::FAILURE;
    };
    consume(settings, &clock, first, words.len());
    ExitCode::SUCCESS
}

/// Sends the words; the offset of the first.
fn produce(settings: Settings<'_>, clock: &Clock, words: &[String]) -> Option<i64> {
    let (mut batch, mut frame) = ([0; 1024], [0; 4096]);
    let mut producer = Producer::new(settings, Acks::AllOnce, &mut batch, &mut frame);
    let mut socket = Socket::default();
    let mut words = words.iter();
    let mut word = words.next();
    let mut first = None;
    while word.is_some() || producer.pending() > 0 {
        let now = clock.now();
        if let Some(text) = word {
            let age = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let timestamp = Timestamp(i64::try_from(age.as_millis()).unwrap_or(-1));
            match producer.push(now, timestamp, None, Some(text.as_bytes()), &[]) {
                Ok(()) => {
                    word = words.next();
                    continue;
                }
                Err(nb::Error::WouldBlock) => {}
                Err(nb::Error::Other(error)) => {
                    eprintln!("{text}: {error}");
                    word = words.next();
                    continue;
                }
            }
        }
        match producer.poll(now, &mut socket) {
            Ok(ProducerEvent::Connect) => {
                if socket.connect(producer.address()) {
                    producer.connected();
                } else if let Err(nb::Error::Other(error)) = producer.unreachable(now) {
                    eprintln!("given up: {error}");
                    return None;
                }
            }
            Ok(ProducerEvent::Delivered { base_offset, count }) => {
                println!("{count} records at {base_offset:?}");
                first = first.or(base_offset);
            }
            Err(nb::Error::WouldBlock) => rest(),
            Err(nb::Error::Other(error)) => {
                eprintln!("given up: {error}");
                return None;
            }
        }
    }
    first
}

/// Reads `count` records from `offset` on.
fn consume(settings: Settings<'_>, clock: &Clock, offset: i64, count: usize) {
    let mut frame = [0; 8192];
    let mut consumer = Consumer::new(settings, Start::Offset(offset), &mut frame);
    let mut socket = Socket::default();
    let mut seen = 0;
    while seen < count {
        let now = clock.now();
        match consumer.poll(now, &mut socket) {
            Ok(ConsumerEvent::Connect) => {
                if socket.connect(consumer.address()) {
                    consumer.connected();
                } else {
                    consumer.unreachable(now);
                }
            }
            Ok(ConsumerEvent::Records(records)) => {
                for record in records {
                    let value = String::from_utf8_lossy(record.value.unwrap_or_default());
                    println!("{}: {value}", record.offset);
                    seen += 1;
                }
            }
            Err(nb::Error::WouldBlock) => rest(),
            Err(nb::Error::Other(error)) => eprintln!("{error}"),
        }
    }
}
