//! Producer and consumer against a cluster in memory, in calm weather and in storms from a seed.

mod broker;

use broker::{CALM, Cluster, HOSTS, Rng, STORM, TOPIC};
use skerry_core::client::{
    Acks, Consumer, ConsumerEvent, Error, Producer, ProducerEvent, RecordTooLarge, Settings, Start, Transport,
};
use skerry_core::error_code::ErrorCode;
use skerry_core::record::{Attributes, BatchBuilder, Compression, RecordHeader, crc32c};
use skerry_core::time::{Instant, Millis, Timestamp};

fn settings() -> Settings<'static> {
    Settings::new(HOSTS[0].0, HOSTS[0].1, TOPIC)
}

fn at(cluster: &Cluster) -> Instant {
    Instant::from_micros(cluster.now * 1000)
}

/// Polls until something is told, connecting as asked; time goes on in small steps. `None` after a virtual hour.
fn drive(producer: &mut Producer<'_>, cluster: &mut Cluster) -> Option<Result<ProducerEvent, Error>> {
    let until = cluster.now + 3_600_000;
    while cluster.now < until {
        let now = at(cluster);
        match producer.poll(now, cluster) {
            Ok(ProducerEvent::Connect) => {
                let address = producer.address();
                if cluster.connect(address) {
                    producer.connected();
                } else if let Err(nb::Error::Other(error)) = producer.unreachable(now) {
                    return Some(Err(error));
                }
            }
            Ok(event) => return Some(Ok(event)),
            Err(nb::Error::Other(error)) => return Some(Err(error)),
            Err(nb::Error::WouldBlock) => cluster.now += 5,
        }
    }
    None
}

fn push(producer: &mut Producer<'_>, now: Instant, value: &[u8]) -> nb::Result<(), RecordTooLarge> {
    producer.push(now, Timestamp(1_700_000_000_000), None, Some(value), &[])
}

/// Sends `count` numbered records in batches of random sizes; the numbers that were given up.
fn send_numbers(producer: &mut Producer<'_>, cluster: &mut Cluster, count: u32, rng: &mut Rng) -> Vec<u32> {
    let (mut next, mut given_up) = (0, Vec::new());
    let mut batch = Vec::new();
    while next < count || !batch.is_empty() {
        while next < count && rng.percent(80) {
            if push(producer, at(cluster), &next.to_be_bytes()).is_err() {
                break;
            }
            batch.push(next);
            next += 1;
        }
        producer.flush();
        if batch.is_empty() {
            continue;
        }
        match drive(producer, cluster).expect("an hour is enough") {
            Ok(ProducerEvent::Delivered { count, .. }) => assert_eq!(count as usize, batch.len()),
            Ok(ProducerEvent::Connect) => unreachable!(),
            Err(_) => given_up.extend(&batch),
        }
        assert_eq!(producer.pending(), 0);
        batch.clear();
    }
    given_up
}

fn numbers(cluster: &Cluster) -> Vec<u32> {
    cluster
        .values()
        .iter()
        .map(|value| u32::from_be_bytes(value.as_slice().try_into().unwrap()))
        .collect()
}

#[test]
fn records_arrive_with_keys_headers_and_timestamps() {
    let mut cluster = Cluster::new(1, CALM);
    let (mut batch, mut frame) = ([0; 256], [0; 512]);
    let mut producer = Producer::new(settings(), Acks::All, &mut batch, &mut frame);
    let header = RecordHeader {
        key: b"unit",
        value: Some(b"C"),
    };
    for (time, value) in [(5, "21.5"), (9, "21.7")] {
        producer
            .push(
                Instant::default(),
                Timestamp(time),
                Some(b"device-7"),
                Some(value.as_bytes()),
                &[header],
            )
            .unwrap();
    }
    let event = drive(&mut producer, &mut cluster).unwrap().unwrap();
    let base_offset = Some(0);
    assert_eq!(event, ProducerEvent::Delivered { base_offset, count: 2 });

    let mut frame = [0; 1024];
    let mut consumer = Consumer::new(settings(), Start::Earliest, &mut frame);
    let mut seen = Vec::new();
    read(&mut consumer, &mut cluster, |offset, timestamp, key, value, unit| {
        seen.push((offset, timestamp, key.to_vec(), value.to_vec(), unit.to_vec()));
        seen.len() < 2
    });
    let record = |offset, time, value: &[u8]| (offset, time, b"device-7".to_vec(), value.to_vec(), b"C".to_vec());
    assert_eq!(seen, [record(0, 5, b"21.5"), record(1, 9, b"21.7")]);
    assert_eq!((consumer.position(), consumer.high_watermark()), (Some(2), Some(2)));
}

/// Polls until `take` says that it is enough.
fn read(
    consumer: &mut Consumer<'_>,
    cluster: &mut Cluster,
    mut take: impl FnMut(i64, i64, &[u8], &[u8], &[u8]) -> bool,
) -> Vec<Error> {
    let mut errors = Vec::new();
    let until = cluster.now + 3_600_000;
    while cluster.now < until {
        let now = at(cluster);
        match consumer.poll(now, cluster) {
            Ok(ConsumerEvent::Connect) => {
                if cluster.connect(consumer.address()) {
                    consumer.connected();
                } else {
                    consumer.unreachable(now);
                }
            }
            Ok(ConsumerEvent::Records(records)) => {
                let mut go_on = true;
                for record in records {
                    let header = record.headers.clone().next().and_then(|header| header.value);
                    go_on = take(
                        record.offset,
                        record.timestamp.0,
                        record.key.unwrap_or_default(),
                        record.value.unwrap_or_default(),
                        header.unwrap_or_default(),
                    );
                }
                if !go_on {
                    return errors;
                }
            }
            Err(nb::Error::WouldBlock) => cluster.now += 5,
            Err(nb::Error::Other(error)) => errors.push(error),
        }
    }
    panic!("an hour is not enough: {errors:?}");
}

/// Goal: whatever the network does, `AllOnce` writes each record once and in order, `All` at least once. Method: storms from
/// seeds; the log is compared with what was pushed.
#[test]
fn storms_lose_and_repeat_nothing() {
    let seeds = std::env::var("SKERRY_SEEDS").map_or(60, |seeds| seeds.parse().unwrap());
    for seed in 0..seeds {
        for acks in [Acks::AllOnce, Acks::All, Acks::Leader] {
            let mut cluster = Cluster::new(seed, STORM);
            let mut rng = Rng(!seed);
            let (mut batch, mut frame) = (vec![0; 61 + 200], [0; 512]);
            let producer = Producer::new(settings(), acks, &mut batch, &mut frame);
            let mut producer = producer.retries(u32::MAX);
            let given_up = send_numbers(&mut producer, &mut cluster, 100, &mut rng);
            assert!(given_up.is_empty(), "seed {seed}: {given_up:?}");
            let mut got = numbers(&cluster);
            if acks == Acks::AllOnce {
                assert_eq!(got, (0..100).collect::<Vec<_>>(), "seed {seed}");
            } else {
                got.sort_unstable();
                got.dedup();
                assert_eq!(got, (0..100).collect::<Vec<_>>(), "seed {seed} {acks:?}");
            }
        }
    }
}

/// Goal: a batch that is given up leaves the producer whole, and what is delivered is still there once. Method: as above with one
/// retry.
#[test]
fn giving_up_costs_no_more_than_the_batch() {
    let mut given_up_in_all = 0;
    for seed in 0..60 {
        let mut cluster = Cluster::new(seed, STORM);
        let mut rng = Rng(!seed);
        let (mut batch, mut frame) = (vec![0; 61 + 200], [0; 512]);
        let producer = Producer::new(settings(), Acks::AllOnce, &mut batch, &mut frame);
        let mut producer = producer.retries(1);
        let given_up = send_numbers(&mut producer, &mut cluster, 100, &mut rng);
        given_up_in_all += given_up.len();
        let got = numbers(&cluster);
        assert!(got.is_sorted_by(|a, b| a < b), "seed {seed}: {got:?}");
        for number in 0..100 {
            assert!(
                got.contains(&number) || given_up.contains(&number),
                "seed {seed}: {number}"
            );
        }
    }
    assert!(given_up_in_all > 0, "the storm was none");
}

#[test]
fn acks_0_waits_for_nothing() {
    let mut cluster = Cluster::new(3, CALM);
    let (mut batch, mut frame) = ([0; 256], [0; 512]);
    let mut producer = Producer::new(settings(), Acks::None, &mut batch, &mut frame);
    for value in [b"a", b"b"] {
        push(&mut producer, at(&cluster), value).unwrap();
        let event = drive(&mut producer, &mut cluster).unwrap().unwrap();
        let base_offset = None;
        assert_eq!(event, ProducerEvent::Delivered { base_offset, count: 1 });
    }
    assert_eq!(cluster.values(), [b"a", b"b"]);
}

#[test]
fn a_lost_answer_is_asked_for_again_and_not_written_twice() {
    for (acks, want) in [(Acks::AllOnce, 1), (Acks::All, 2)] {
        let mut cluster = Cluster::new(4, CALM);
        cluster.lose_next = true;
        let (mut batch, mut frame) = ([0; 256], [0; 512]);
        let mut producer = Producer::new(settings(), acks, &mut batch, &mut frame);
        push(&mut producer, at(&cluster), b"x").unwrap();
        // The flag is spent on the first produce only, not on what comes before it.
        while cluster.log.is_empty() {
            cluster.lose_next = true;
            let now = at(&cluster);
            if producer.poll(now, &mut cluster) == Ok(ProducerEvent::Connect) {
                assert!(cluster.connect(producer.address()));
                producer.connected();
            }
            cluster.now += 1;
        }
        drive(&mut producer, &mut cluster).unwrap().unwrap();
        assert_eq!(cluster.log.len(), want, "{acks:?}");
        assert_eq!(producer.last_error(), Some(Error::Lost));
    }
}

#[test]
fn a_leader_that_moves_is_followed() {
    let mut cluster = Cluster::new(5, CALM);
    let (mut batch, mut frame) = ([0; 256], [0; 512]);
    let mut producer = Producer::new(settings(), Acks::All, &mut batch, &mut frame);
    for (leader, value) in [(1, b"a"), (1, b"b"), (0, b"c"), (1, b"d")] {
        cluster.leader = leader;
        push(&mut producer, at(&cluster), value).unwrap();
        drive(&mut producer, &mut cluster).unwrap().unwrap();
        assert_eq!(cluster.host(), Some(HOSTS[leader]));
    }
    assert_eq!(cluster.values(), [b"a", b"b", b"c", b"d"]);
}

#[test]
fn a_cluster_of_one_is_here_whatever_its_name() {
    let mut cluster = Cluster::new(6, CALM);
    cluster.nodes = 1;
    let (mut batch, mut frame) = ([0; 256], [0; 512]);
    let by_tunnel = Settings::new("127.0.0.1", 1, TOPIC);
    let mut producer = Producer::new(by_tunnel, Acks::All, &mut batch, &mut frame);
    push(&mut producer, at(&cluster), b"a").unwrap();
    let now = at(&cluster);
    assert_eq!(producer.poll(now, &mut cluster), Ok(ProducerEvent::Connect));
    assert!(cluster.connect(HOSTS[0]));
    producer.connected();
    assert!(matches!(
        drive(&mut producer, &mut cluster),
        Some(Ok(ProducerEvent::Delivered { .. }))
    ));
}

#[test]
fn final_errors_give_the_batch_up_at_once() {
    let mut cluster = Cluster::new(7, CALM);
    let (mut batch, mut frame) = ([0; 256], [0; 512]);
    let mut producer = Producer::new(settings(), Acks::AllOnce, &mut batch, &mut frame);
    push(&mut producer, at(&cluster), b"large").unwrap();
    cluster.answer_next = Some(ErrorCode::MESSAGE_TOO_LARGE);
    let error = drive(&mut producer, &mut cluster).unwrap().unwrap_err();
    assert_eq!(error, Error::Refused(ErrorCode::MESSAGE_TOO_LARGE));
    push(&mut producer, at(&cluster), b"small").unwrap();
    drive(&mut producer, &mut cluster).unwrap().unwrap();
    assert_eq!(cluster.values(), [b"small"]);
}

#[test]
fn a_broker_that_forgot_the_producer_gives_it_a_new_id() {
    let mut cluster = Cluster::new(8, CALM);
    let (mut batch, mut frame) = ([0; 256], [0; 512]);
    let mut producer = Producer::new(settings(), Acks::AllOnce, &mut batch, &mut frame);
    for value in [b"a", b"b", b"c"] {
        push(&mut producer, at(&cluster), value).unwrap();
        drive(&mut producer, &mut cluster).unwrap().unwrap();
        cluster.forget_producers();
    }
    assert_eq!(cluster.values(), [b"a", b"b", b"c"]);
    assert_eq!(
        producer.last_error(),
        Some(Error::Refused(ErrorCode::UNKNOWN_PRODUCER_ID))
    );
}

#[test]
fn nothing_is_connected_before_there_is_something_to_send() {
    let mut cluster = Cluster::new(9, CALM);
    let (mut batch, mut frame) = ([0; 256], [0; 512]);
    let producer = Producer::new(settings(), Acks::All, &mut batch, &mut frame);
    let mut producer = producer.linger(Millis(50));
    assert_eq!(producer.poll(at(&cluster), &mut cluster), Err(nb::Error::WouldBlock));
    assert_eq!(producer.wake_at(), Instant::NEVER);
    push(&mut producer, at(&cluster), b"a").unwrap();
    let due = at(&cluster) + Millis(50);
    assert_eq!(producer.wake_at(), due);
    cluster.now = 49;
    assert_eq!(producer.poll(at(&cluster), &mut cluster), Err(nb::Error::WouldBlock));
    cluster.now = 50;
    assert_eq!(producer.poll(at(&cluster), &mut cluster), Ok(ProducerEvent::Connect));
    assert_eq!(
        push(&mut producer, due, b"b"),
        Err(nb::Error::WouldBlock),
        "a batch on its way takes no more"
    );
}

#[test]
fn a_connection_lost_while_idle_is_noticed_and_replaced() {
    let mut cluster = Cluster::new(10, CALM);
    let (mut batch, mut frame) = ([0; 256], [0; 512]);
    let mut producer = Producer::new(settings(), Acks::All, &mut batch, &mut frame).retries(0);
    push(&mut producer, at(&cluster), b"a").unwrap();
    drive(&mut producer, &mut cluster).unwrap().unwrap();
    cluster.cut();
    assert_eq!(producer.poll(at(&cluster), &mut cluster), Err(nb::Error::WouldBlock));
    push(&mut producer, at(&cluster), b"b").unwrap();
    // Without a retry: the loss was nobody's failure.
    drive(&mut producer, &mut cluster).unwrap().unwrap();
}

#[test]
fn a_record_too_large_for_an_empty_batch_is_refused_and_a_full_batch_is_due() {
    let cluster = Cluster::new(11, CALM);
    let (mut batch, mut frame) = ([0; 61 + 40], [0; 512]);
    let producer = Producer::new(settings(), Acks::All, &mut batch, &mut frame);
    let mut producer = producer.linger(Millis(1000));
    assert_eq!(
        push(&mut producer, at(&cluster), &[0; 40]),
        Err(nb::Error::Other(RecordTooLarge))
    );
    push(&mut producer, at(&cluster), &[0; 20]).unwrap();
    assert!(producer.wake_at() > at(&cluster));
    assert_eq!(push(&mut producer, at(&cluster), &[0; 20]), Err(nb::Error::WouldBlock));
    assert_eq!(producer.wake_at(), at(&cluster));
    assert_eq!(producer.pending(), 1);
}

#[test]
fn small_buffers_are_told_by_name() {
    let mut cluster = Cluster::new(12, CALM);
    for (bytes, want) in [(10, "RequestTooLarge"), (60, "ReplyTooLarge")] {
        let (mut batch, mut frame) = ([0; 256], vec![0; bytes]);
        let producer = Producer::new(settings(), Acks::All, &mut batch, &mut frame);
        let mut producer = producer.retries(0);
        push(&mut producer, at(&cluster), b"x").unwrap();
        let error = drive(&mut producer, &mut cluster).unwrap().unwrap_err();
        assert!(format!("{error:?}").starts_with(want), "{bytes}: {error:?}");
    }
}

/// Goal: whatever the network does, a consumer sees every record once and in order. Method: storms from seeds, flipped bits among
/// them; what was read is compared with what was written.
#[test]
fn a_consumer_reads_everything_once_through_a_storm() {
    let (mut broken, mut sound) = (0, 0);
    for seed in 0..60 {
        let mut cluster = Cluster::new(seed, STORM);
        let mut rng = Rng(seed);
        let mut number = 0_u32;
        while number < 200 {
            let mut bytes = [0; 512];
            let mut builder = BatchBuilder::new(&mut bytes).unwrap();
            for _ in 0..=rng.below(20) {
                builder
                    .push(Timestamp(7), None, Some(&number.to_be_bytes()), &[])
                    .unwrap();
                number += 1;
            }
            cluster.append(builder.finish(crc32c)).unwrap();
        }
        let from = rng.below(100) as u32;
        let start = if from < 20 {
            Start::Earliest
        } else {
            Start::Offset(i64::from(from))
        };
        let mut want = if from < 20 { 0 } else { from };
        let mut frame = vec![0; 700 + rng.below(800) as usize];
        let mut consumer = Consumer::new(settings(), start, &mut frame);
        let errors = read(&mut consumer, &mut cluster, |offset, _, _, value, _| {
            assert_eq!(
                (offset, value),
                (i64::from(want), &want.to_be_bytes()[..]),
                "seed {seed}"
            );
            want += 1;
            want < number
        });
        broken += errors.iter().filter(|error| matches!(error, Error::Batch(_))).count();
        sound += 1;
        assert_eq!(consumer.position(), Some(i64::from(number)));
    }
    assert!(broken > 0, "no flipped bit was met in {sound} runs");
}

#[test]
fn compressed_batches_are_named_and_passed_over() {
    let mut cluster = Cluster::new(13, CALM);
    let plain = |value: &[u8]| {
        let mut bytes = vec![0; 200];
        let mut builder = BatchBuilder::new(&mut bytes).unwrap();
        builder.push(Timestamp(7), None, Some(value), &[]).unwrap();
        builder.finish(crc32c).to_vec()
    };
    cluster.append(&plain(b"a")).unwrap();
    let mut bytes = [0; 200];
    let builder = BatchBuilder::new(&mut bytes).unwrap();
    let mut builder = builder.attributes(Attributes::default().with_compression(Compression::Gzip));
    builder.push(Timestamp(7), None, Some(b"opaque"), &[]).unwrap();
    cluster.append(builder.finish(crc32c)).unwrap();
    cluster.append(&plain(b"c")).unwrap();
    let mut frame = [0; 1024];
    let mut consumer = Consumer::new(settings(), Start::Earliest, &mut frame);
    let mut offsets = Vec::new();
    let errors = read(&mut consumer, &mut cluster, |offset, _, _, _, _| {
        offsets.push(offset);
        offsets.len() < 2
    });
    assert_eq!(offsets, [0, 2]);
    assert_eq!(errors, [Error::Compressed { offset: 1 }]);
}

#[test]
fn a_start_by_time_after_the_last_record_is_the_end() {
    let mut cluster = Cluster::new(14, CALM);
    cluster.end = 5;
    let mut frame = [0; 1024];
    let mut consumer = Consumer::new(settings(), Start::Latest, &mut frame);
    while consumer.position().is_none() {
        let now = at(&cluster);
        if let Ok(ConsumerEvent::Connect) = consumer.poll(now, &mut cluster) {
            assert!(cluster.connect(consumer.address()));
            consumer.connected();
        }
        cluster.now += 1;
    }
    assert_eq!(consumer.position(), Some(5));
}

/// A transport that gives whatever bytes it has, one more hostile than the other.
struct Noise(Rng);

impl Transport for Noise {
    fn send(&mut self, bytes: &[u8]) -> nb::Result<usize, skerry_core::client::Lost> {
        Ok(bytes.len())
    }

    fn receive(&mut self, out: &mut [u8]) -> nb::Result<usize, skerry_core::client::Lost> {
        for byte in out.iter_mut() {
            *byte = if self.0.percent(70) { 0 } else { self.0.next() as u8 };
        }
        // A length that is believed, now and then.
        if out.len() == 4 && self.0.percent(90) {
            out.copy_from_slice(&(4 + self.0.below(400) as u32).to_be_bytes());
        }
        Ok(out.len())
    }
}

/// Goal: no bytes of a peer's make a client panic or hang. Method: noise in place of replies.
#[test]
fn noise_is_survived() {
    for seed in 0..300 {
        let mut noise = Noise(Rng(seed));
        let (mut batch, mut frame, mut other) = ([0; 256], [0; 512], [0; 512]);
        let producer = Producer::new(settings(), Acks::AllOnce, &mut batch, &mut frame);
        let mut producer = producer.retries(u32::MAX);
        push(&mut producer, Instant::default(), b"x").unwrap();
        let mut consumer = Consumer::new(settings(), Start::Earliest, &mut other);
        for step in 0..200 {
            let now = Instant::from_micros(step * 10_000_000);
            if producer.poll(now, &mut noise) == Ok(ProducerEvent::Connect) {
                producer.connected();
            }
            if let Ok(ConsumerEvent::Connect) = consumer.poll(now, &mut noise) {
                consumer.connected();
            }
        }
    }
}
