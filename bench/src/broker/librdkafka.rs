//! The load of a program that uses librdkafka: its batching, its threads, its settings (`-X`), all of its `ssl.*` among them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use futures_executor::block_on;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::{ClientContext, DefaultClientContext};
use rdkafka::config::{ClientConfig, FromClientConfig, FromClientConfigAndContext};
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message as _;
use rdkafka::producer::{BaseRecord, DeliveryResult, Producer as _, ProducerContext, ThreadedProducer};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use super::engine::{Run, Work};
use super::{Args, Case, Runs, What};
use crate::process::{Cpu, Tasks};
use crate::server::Server;

/// Bytes of values that are there to be fetched.
const FETCHED_BYTES: u64 = 256 << 20;

/// Records a second of `deliver`, where no rate is given.
const DELIVERED_PER_SECOND: f64 = 1000.0;

/// An answer that does not come for so long is not coming.
const PATIENCE: Duration = Duration::from_secs(60);

/// For the report.
pub fn about(args: &Args) -> String {
    let (_, version) = rdkafka::util::get_rdkafka_version();
    let set = if args.properties.is_empty() {
        "its defaults".into()
    } else {
        args.properties.join(", ")
    };
    format!(
        "librdkafka {version}, one producer and one consumer, {} partitions, with {set}; produce: from when a record was due to its report of \
         delivery, linger.ms included; deliver: from when a record with acks=all was due to when the consumer has it",
        args.connections
    )
}

/// Measures one case on a topic that is made for it and deleted.
///
/// Errors: librdkafka's, and what `-X` cannot mean.
pub fn measure(args: &Args, case: &Case, server: &Server, topic: &str, partitions: i32) -> Result<Runs, String> {
    let bench = Bench {
        args,
        case,
        server: server.pid,
        topic,
        partitions,
        config: config(args, case, server)?,
    };
    bench.create_topic()?;
    let runs = match case.what {
        What::Produce { acks } => bench.produce(acks),
        What::Fetch => bench.fetch(),
        What::Deliver => bench.deliver(),
    };
    if !server.is_ours() {
        bench.delete_topic()?;
    }
    runs
}

fn config(args: &Args, case: &Case, server: &Server) -> Result<ClientConfig, String> {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", server.target(case.is_tls)?.address.to_string());
    if case.is_tls {
        config.set("security.protocol", "ssl");
        if server.is_ours() {
            // Its certificate is one of the tests'.
            config.set("enable.ssl.certificate.verification", "false");
        }
    }
    for property in &args.properties {
        let (key, value) = property
            .split_once('=')
            .ok_or_else(|| format!("-X {property}: KEY=VALUE is wanted"))?;
        config.set(key, value);
    }
    Ok(config)
}

fn words(error: impl std::fmt::Display) -> String {
    format!("librdkafka: {error}")
}

/// One case.
struct Bench<'a> {
    args: &'a Args,
    case: &'a Case,
    server: Option<u32>,
    topic: &'a str,
    partitions: i32,
    config: ClientConfig,
}

impl Bench<'_> {
    fn admin(&self) -> Result<AdminClient<DefaultClientContext>, String> {
        AdminClient::from_config(&self.config).map_err(words)
    }

    fn create_topic(&self) -> Result<(), String> {
        let topic = NewTopic::new(self.topic, self.partitions, TopicReplication::Fixed(1));
        let made = block_on(self.admin()?.create_topics([&topic], &AdminOptions::new())).map_err(words)?;
        for one in made {
            one.map_err(|(name, code)| format!("topic {name}: {code}"))?;
        }
        Ok(())
    }

    fn delete_topic(&self) -> Result<(), String> {
        block_on(self.admin()?.delete_topics(&[self.topic], &AdminOptions::new())).map_err(words)?;
        Ok(())
    }

    fn producer(&self, acks: i16) -> Result<ThreadedProducer<Delivered>, String> {
        let mut config = self.config.clone();
        config.set("acks", acks.to_string());
        ThreadedProducer::from_config_and_context(&config, Delivered::default()).map_err(words)
    }

    fn consumer(&self, from: Offset) -> Result<BaseConsumer, String> {
        let mut config = self.config.clone();
        config.set("group.id", self.topic).set("enable.auto.commit", "false");
        let consumer: BaseConsumer = config.create().map_err(words)?;
        consumer.assign(&self.all(from)).map_err(words)?;
        Ok(consumer)
    }

    fn all(&self, from: Offset) -> TopicPartitionList {
        let mut list = TopicPartitionList::new();
        for partition in 0..self.partitions {
            // Refused for offsets that cannot be, and these can.
            let _ = list.add_partition_offset(self.topic, partition, from);
        }
        list
    }

    fn produce(&self, acks: i16) -> Result<Runs, String> {
        let producer = self.producer(acks)?;
        let (time, given) = (Duration::from_secs_f64(self.args.seconds), self.args.rate);
        let warm = Duration::from_secs_f64(self.args.warm_up_seconds());
        let mut runs = Runs {
            closed: None,
            paced: None,
            bytes: self.send(&producer, warm, given, self.args.bytes_max)?.work.bytes,
        };
        let mut rate = given;
        if given.is_none() {
            let closed = self.send(&producer, time, None, self.args.bytes_max)?;
            rate = Some(closed.work.records as f64 / closed.seconds / 2.0);
            runs.bytes += closed.work.bytes;
            runs.closed = Some(closed);
        }
        let paced = self.send(&producer, time, rate, self.args.bytes_max)?;
        runs.bytes += paced.work.bytes;
        runs.paced = Some(paced);
        Ok(runs)
    }

    /// Sends for some time, at a rate or as fast as librdkafka takes it, and waits for every delivery.
    fn send(
        &self,
        producer: &ThreadedProducer<Delivered>,
        time: Duration,
        rate: Option<f64>,
        bytes_max: u64,
    ) -> Result<Run, String> {
        let delivered = producer.context();
        delivered.begin(rate.is_some());
        let watch = Watch::new(self.server)?;
        let begun = Instant::now();
        let mut value = value(self.case.shape.value_bytes);
        let (mut sent, mut bytes) = (0_u64, 0);
        while begun.elapsed() < time && bytes < bytes_max {
            let due = match rate {
                Some(rate) => Duration::from_secs_f64(sent as f64 / rate),
                None => begun.elapsed(),
            };
            if due >= time {
                break;
            }
            thread::sleep(due.saturating_sub(begun.elapsed()));
            stamp(&mut value, delivered.since(begun + due));
            let record = BaseRecord::<(), [u8], usize>::with_opaque_to(self.topic, delivered.since(begun + due))
                .payload(&value)
                .partition((sent % self.partitions.unsigned_abs() as u64) as i32);
            match producer.send(record) {
                Ok(()) => {
                    sent += 1;
                    bytes += value.len() as u64;
                }
                // It has as many as it keeps; the one that is due stays due.
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), _)) => {
                    thread::sleep(Duration::from_micros(200));
                }
                Err((error, _)) => return Err(words(error)),
            }
        }
        let mut run = watch.stop(begun)?;
        let in_time = delivered.count();
        producer.flush(PATIENCE).map_err(words)?;
        run.latencies = delivered.end()?;
        // What was delivered while it was sending, as the time is.
        run.work = Work {
            records: in_time,
            bytes: in_time * value.len() as u64,
        };
        Ok(run)
    }

    fn fetch(&self) -> Result<Runs, String> {
        self.send(&self.producer(-1)?, PATIENCE, None, FETCHED_BYTES)?;
        let consumer = self.consumer(Offset::Beginning)?;
        let mut there = 0;
        for partition in 0..self.partitions {
            let ends = consumer.fetch_watermarks(self.topic, partition, PATIENCE);
            there += ends.map_err(words)?.1.unsigned_abs();
        }
        let mut left = there;
        let warm = Duration::from_secs_f64(self.args.warm_up_seconds());
        self.read(&consumer, warm, &mut left, there)?;
        let closed = self.read(&consumer, Duration::from_secs_f64(self.args.seconds), &mut left, there)?;
        Ok(Runs {
            closed: Some(closed),
            paced: None,
            bytes: 0,
        })
    }

    /// Reads for some time. At the end of what is there it begins again.
    fn read(&self, consumer: &BaseConsumer, time: Duration, left: &mut u64, there: u64) -> Result<Run, String> {
        let watch = Watch::new(self.server)?;
        let begun = Instant::now();
        let mut heard = begun;
        let mut work = Work::default();
        while begun.elapsed() < time {
            match consumer.poll(Duration::from_millis(100)) {
                None if heard.elapsed() > PATIENCE => return Err(format!("nothing came for {} s", PATIENCE.as_secs())),
                None => {}
                Some(Err(error)) => return Err(words(error)),
                Some(Ok(record)) => {
                    heard = Instant::now();
                    work.records += 1;
                    work.bytes += record.payload_len() as u64;
                    *left -= 1;
                    if *left == 0 {
                        consumer.assign(&self.all(Offset::Beginning)).map_err(words)?;
                        *left = there;
                    }
                }
            }
        }
        let mut run = watch.stop(begun)?;
        run.work = work;
        Ok(run)
    }

    fn deliver(&self) -> Result<Runs, String> {
        let rate = self.args.rate.unwrap_or(DELIVERED_PER_SECOND);
        let producer = self.producer(-1)?;
        let consumer = self.consumer(Offset::Beginning)?;
        let origin = producer.context().origin;
        // Read from the first record on, warm-up included, so that the consumer has long begun when it counts.
        let (over, counts) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            let reader = scope.spawn(|| -> Result<Vec<Duration>, String> {
                let mut latencies = Vec::new();
                while !over.load(Ordering::Relaxed) {
                    let Some(record) = consumer.poll(Duration::from_millis(20)) else {
                        continue;
                    };
                    let record = record.map_err(words)?;
                    let due = record.payload().and_then(|value| value.first_chunk());
                    let due = Duration::from_micros(due.map_or(0, |due| u64::from_be_bytes(*due)));
                    if counts.load(Ordering::Relaxed) {
                        latencies.push(origin.elapsed().saturating_sub(due));
                    }
                }
                Ok(latencies)
            });
            let paced = (|| {
                let warm = Duration::from_secs_f64(self.args.warm_up_seconds().max(1.0));
                let warm = self.send(&producer, warm, Some(rate), self.args.bytes_max)?;
                // What is on its way belongs to the warm-up.
                thread::sleep(Duration::from_millis(500));
                counts.store(true, Ordering::Relaxed);
                let time = Duration::from_secs_f64(self.args.seconds);
                let run = self.send(&producer, time, Some(rate), self.args.bytes_max)?;
                thread::sleep(Duration::from_millis(500));
                Ok::<_, String>((warm.work.bytes, run))
            })();
            over.store(true, Ordering::Relaxed);
            let read = reader.join().map_err(|_| "the reading thread ended early")?;
            let (warm_bytes, mut run) = paced?;
            run.latencies = read?;
            run.latencies.sort_unstable();
            Ok(Runs {
                bytes: warm_bytes + run.work.bytes,
                closed: None,
                paced: Some(run),
            })
        })
    }
}

/// A value that looks random, as compressed data would, with room for a time.
fn value(bytes: usize) -> Vec<u8> {
    let mut seed = 0x9E37_79B9_7F4A_7C15_u64;
    let random = std::iter::repeat_with(|| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed as u8
    });
    random.take(bytes.max(8)).collect()
}

fn stamp(value: &mut [u8], micros: usize) {
    if let Some(room) = value.first_chunk_mut() {
        *room = (micros as u64).to_be_bytes();
    }
}

/// Processor time of the server's and of our own process.
struct Watch {
    server: Option<(u32, Tasks)>,
    own: Tasks,
}

impl Watch {
    fn new(server: Option<u32>) -> Result<Self, String> {
        let read = |pid| Tasks::of(pid).map_err(|e| format!("CPU time of process {pid}: {e}"));
        Ok(Self {
            server: server.map(|pid| Ok::<_, String>((pid, read(pid)?))).transpose()?,
            own: read(std::process::id())?,
        })
    }

    /// What was used since. Requests are not told by librdkafka.
    fn stop(self, begun: Instant) -> Result<Run, String> {
        let seconds = begun.elapsed().as_secs_f64();
        let now = Self::new(self.server.as_ref().map(|(pid, _)| *pid))?;
        Ok(Run {
            seconds,
            server: match (&now.server, &self.server) {
                (Some((_, now)), Some((_, before))) => now.since(before),
                _ => Cpu::default(),
            },
            load: now.own.since(&self.own).all(),
            ..Run::default()
        })
    }
}

/// What becomes of records: each bears when it was due, in microseconds since the producer was made.
struct Delivered {
    origin: Instant,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Whether latencies are wanted.
    timed: bool,
    count: u64,
    latencies: Vec<Duration>,
    failed: Option<KafkaError>,
}

impl Default for Delivered {
    fn default() -> Self {
        Self {
            origin: Instant::now(),
            state: Mutex::default(),
        }
    }
}

impl Delivered {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn since(&self, moment: Instant) -> usize {
        moment.duration_since(self.origin).as_micros() as usize
    }

    fn begin(&self, timed: bool) {
        *self.lock() = State {
            timed,
            ..State::default()
        };
    }

    fn count(&self) -> u64 {
        self.lock().count
    }

    /// The latencies, sorted.
    fn end(&self) -> Result<Vec<Duration>, String> {
        let mut state = std::mem::take(&mut *self.lock());
        if let Some(error) = state.failed {
            return Err(words(error));
        }
        state.latencies.sort_unstable();
        Ok(state.latencies)
    }
}

impl ClientContext for Delivered {}

impl ProducerContext for Delivered {
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, due: usize) {
        let latency = self.origin.elapsed().saturating_sub(Duration::from_micros(due as u64));
        let mut state = self.lock();
        match result {
            Ok(_) => {
                state.count += 1;
                if state.timed {
                    state.latencies.push(latency);
                }
            }
            Err((error, _)) => state.failed = Some(error.clone()),
        }
    }
}
