//! The small client of `core`, as a device uses it, against the broker that runs.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant as Clock};

use skerry_core::client::{
    Acks, Consumer, ConsumerEvent, Error, Lost, Producer, ProducerEvent, Settings, Start, Transport,
};
use skerry_core::record::RecordHeader;
use skerry_core::time::{Instant, Timestamp};
use skerry_tests::process::{PATIENCE, Start as Broker, TempDir};

/// A socket that does not block, or none.
#[derive(Default)]
struct Socket(Option<TcpStream>);

impl Socket {
    fn connect(&mut self, address: (&str, u16)) -> bool {
        self.0 = TcpStream::connect(address).ok();
        if let Some(stream) = &self.0 {
            stream.set_nonblocking(true).expect("a socket that does not block");
        }
        self.0.is_some()
    }
}

fn told(error: &std::io::Error) -> nb::Error<Lost> {
    match error.kind() {
        ErrorKind::WouldBlock => nb::Error::WouldBlock,
        _ => nb::Error::Other(Lost),
    }
}

impl Transport for Socket {
    fn send(&mut self, bytes: &[u8]) -> nb::Result<usize, Lost> {
        self.0.as_mut().ok_or(Lost)?.write(bytes).map_err(|e| told(&e))
    }

    fn receive(&mut self, out: &mut [u8]) -> nb::Result<usize, Lost> {
        self.0.as_mut().ok_or(Lost)?.read(out).map_err(|e| told(&e))
    }
}

struct Time(Clock);

impl Time {
    fn now(&self) -> Instant {
        Instant::from_micros(self.0.elapsed().as_micros() as u64)
    }
}

fn settings<'a>(host: &'a str, broker: SocketAddr, topic: &'a str) -> Settings<'a> {
    Settings::new(host, broker.port(), topic)
}

/// Delivers the batch at hand; its base offset.
fn deliver(producer: &mut Producer<'_>, socket: &mut Socket, time: &Time) -> Result<Option<i64>, Error> {
    producer.flush();
    loop {
        let now = time.now();
        assert!(
            now < Instant::from_micros(PATIENCE.as_micros() as u64),
            "{:?}",
            producer.last_error()
        );
        match producer.poll(now, socket) {
            Ok(ProducerEvent::Connect) if socket.connect(producer.address()) => producer.connected(),
            Ok(ProducerEvent::Connect) => {
                if let Err(nb::Error::Other(error)) = producer.unreachable(now) {
                    return Err(error);
                }
            }
            Ok(ProducerEvent::Delivered { base_offset, .. }) => return Ok(base_offset),
            Err(nb::Error::WouldBlock) => thread::sleep(Duration::from_millis(1)),
            Err(nb::Error::Other(error)) => return Err(error),
        }
    }
}

/// A record as it was read: offset, timestamp, key, value, number of headers.
type Record = (i64, i64, Vec<u8>, Vec<u8>, usize);

/// Reads `count` records.
fn read(consumer: &mut Consumer<'_>, count: usize, time: &Time) -> Vec<Record> {
    let (mut socket, mut seen) = (Socket::default(), Vec::new());
    while seen.len() < count {
        let now = time.now();
        match consumer.poll(now, &mut socket) {
            Ok(ConsumerEvent::Connect) => {
                assert!(socket.connect(consumer.address()));
                consumer.connected();
            }
            Ok(ConsumerEvent::Records(records)) => seen.extend(records.map(|record| {
                (
                    record.offset,
                    record.timestamp.0,
                    record.key.unwrap_or_default().to_vec(),
                    record.value.unwrap_or_default().to_vec(),
                    record.headers.len(),
                )
            })),
            Err(nb::Error::WouldBlock) => thread::sleep(Duration::from_millis(1)),
            Err(nb::Error::Other(error)) => panic!("{error}"),
        }
    }
    seen
}

/// Goal: every kind of acks and every start works against the broker. Method: three records each, read back from each start.
#[test]
fn what_a_device_sends_is_there() {
    let data = TempDir::new();
    let broker = Broker::new(data.path()).start();
    let time = Time(Clock::now());
    for (acks, topic) in [
        (Acks::None, "none"),
        (Acks::Leader, "leader"),
        (Acks::All, "all"),
        (Acks::AllOnce, "once"),
    ] {
        let (mut batch, mut frame) = ([0; 512], [0; 512]);
        let settings = settings("127.0.0.1", broker.address, topic);
        let mut producer = Producer::new(settings, acks, &mut batch, &mut frame);
        let mut socket = Socket::default();
        for number in 0..3_i64 {
            let header = RecordHeader {
                key: b"n",
                value: Some(b"1"),
            };
            let value = format!("value {number}");
            producer
                .push(
                    time.now(),
                    Timestamp(1000 + number),
                    Some(b"key"),
                    Some(value.as_bytes()),
                    &[header],
                )
                .expect("room");
            let base_offset = deliver(&mut producer, &mut socket, &time).expect("it is taken");
            assert_eq!(base_offset, (acks != Acks::None).then_some(number), "{topic}");
        }
        let record = |n: i64| (n, 1000 + n, b"key".to_vec(), format!("value {n}").into_bytes(), 1);
        for (start, from) in [
            (Start::Earliest, 0),
            (Start::Offset(2), 2),
            (Start::Time(Timestamp(1001)), 1),
        ] {
            let mut frame = [0; 1024];
            let mut consumer = Consumer::new(settings, start, &mut frame);
            let want: Vec<_> = (from..3).map(record).collect();
            assert_eq!(read(&mut consumer, want.len(), &time), want, "{topic} {start:?}");
            assert_eq!(consumer.position(), Some(3));
        }
    }
}

/// Goal: a broker that is killed and comes back costs neither a record nor a repetition. Method: the port stays, the kill falls
/// between two batches and while the device believes in its connection.
#[test]
fn a_broker_that_restarts_is_found_again() {
    let data = TempDir::new();
    let broker = Broker::new(data.path()).start();
    let address = broker.address;
    let listeners = format!("PLAINTEXT://{address}");
    let time = Time(Clock::now());
    let (mut batch, mut frame) = ([0; 512], [0; 512]);
    let settings = settings("127.0.0.1", address, "readings");
    let mut producer = Producer::new(settings, Acks::AllOnce, &mut batch, &mut frame);
    let mut socket = Socket::default();
    let mut broker = Some(broker);
    for number in 0..4_i64 {
        producer
            .push(time.now(), Timestamp(number), None, Some(&number.to_be_bytes()), &[])
            .expect("room");
        if number == 2 {
            if let Some(broker) = broker.take() {
                broker.kill();
            }
            let mut start = Broker::new(data.path());
            start.listeners = &listeners;
            broker = Some(start.start());
        }
        assert_eq!(deliver(&mut producer, &mut socket, &time), Ok(Some(number)));
    }
    assert_eq!(producer.last_error(), Some(Error::Lost));
    let mut frame = [0; 1024];
    let mut consumer = Consumer::new(settings, Start::Earliest, &mut frame);
    let values: Vec<_> = read(&mut consumer, 4, &time)
        .into_iter()
        .map(|record| record.3)
        .collect();
    assert_eq!(values, (0..4_i64).map(|n| n.to_be_bytes().to_vec()).collect::<Vec<_>>());
}

#[test]
fn refusals_come_by_name() {
    let data = TempDir::new();
    let broker = Broker::new(data.path())
        .with(&["auto.create.topics.enable=false", "message.max.bytes=200"])
        .start();
    let time = Time(Clock::now());
    let (mut batch, mut frame) = ([0; 2048], [0; 512]);
    let settings = settings("127.0.0.1", broker.address, "missing");
    let mut producer = Producer::new(settings, Acks::All, &mut batch, &mut frame).retries(2);
    producer
        .push(time.now(), Timestamp::NONE, None, Some(b"x"), &[])
        .expect("room");
    let error = deliver(&mut producer, &mut Socket::default(), &time).expect_err("there is no such topic");
    assert_eq!(error.to_string(), "refused: UNKNOWN_TOPIC_OR_PARTITION");

    skerry_tests::client::Client::connect(broker.address).create_topic("small", 1, &[]);
    let mut producer = Producer::new(
        Settings {
            topic: "small",
            ..settings
        },
        Acks::All,
        &mut batch,
        &mut frame,
    );
    producer
        .push(time.now(), Timestamp::NONE, None, Some(&[1; 1000]), &[])
        .expect("room");
    let error = deliver(&mut producer, &mut Socket::default(), &time).expect_err("it is too large");
    assert_eq!(error.to_string(), "refused: MESSAGE_TOO_LARGE");
}
