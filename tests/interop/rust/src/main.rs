//! The rdkafka crate against the broker: produce, list, consume in a group, check all, delete.
//!
//! `skerry-interop-rdkafka roundtrip [CODEC…]`; `SKERRY_BOOTSTRAP` names the broker.

use std::collections::HashMap;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rdkafka::ClientContext;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, DeliveryResult, Header, Headers, Message, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};
use rdkafka::{Offset, TopicPartitionList};

const CODECS: [&str; 5] = ["none", "gzip", "snappy", "lz4", "zstd"];
const PARTITIONS: i32 = 3;
const WAIT: Duration = Duration::from_secs(30);

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Where a record lies.
type Place = (i32, i64);

macro_rules! expect {
    ($holds:expr, $($otherwise:tt)*) => {
        if !$holds {
            return Err(format!($($otherwise)*).into());
        }
    };
}

/// One topic's worth of records: each is a pure function of its index, the codec and the first timestamp.
struct Plan {
    codec: String,
    records: usize,
    first_ms: i64,
    topic: String,
    group: String,
}

impl Plan {
    fn new(codec: &str, records: usize) -> Outcome<Self> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis();
        let first_ms = i64::try_from(now)? - i64::try_from(records)?;
        let topic = format!("rdkafka-{codec}-{first_ms}");
        Ok(Self {
            codec: codec.to_owned(),
            records,
            first_ms,
            group: format!("{topic}-group"),
            topic,
        })
    }

    fn key(&self, index: usize) -> String {
        format!("key-{}", index % 997)
    }

    fn value(&self, index: usize) -> String {
        format!("value-{index}-{}", "skerry".repeat(index % 50))
    }

    fn timestamp(&self, index: usize) -> i64 {
        self.first_ms + index as i64
    }

    fn headers(&self, index: usize) -> Vec<(&'static str, Option<Vec<u8>>)> {
        vec![
            ("index", Some(index.to_string().into_bytes())),
            ("codec", Some(self.codec.clone().into_bytes())),
            ("index", Some(b"again".to_vec())),
            ("empty", Some(Vec::new())),
            ("null", None),
        ]
    }

    fn partitions(&self, offset: Offset) -> Outcome<TopicPartitionList> {
        let mut list = TopicPartitionList::new();
        for partition in 0..PARTITIONS {
            list.add_partition_offset(&self.topic, partition, offset)?;
        }
        Ok(list)
    }
}

/// Hands each delivery report to the sender's loop.
struct Reports(Sender<Result<(usize, Place), KafkaError>>);

impl ClientContext for Reports {}

impl ProducerContext for Reports {
    type DeliveryOpaque = Box<usize>;

    fn delivery(&self, result: &DeliveryResult<'_>, index: Self::DeliveryOpaque) {
        let report = match result {
            Ok(at) => Ok((*index, (at.partition(), at.offset()))),
            Err((error, _)) => Err(error.clone()),
        };
        // The loop is gone only when it has failed already.
        let _ = self.0.send(report);
    }
}

fn config() -> Outcome<ClientConfig> {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", std::env::var("SKERRY_BOOTSTRAP")?);
    // PEM files: the CA that the broker's certificate is from, which means TLS; and a certificate of our own with its key.
    if let Ok(ca) = std::env::var("SKERRY_CA") {
        config.set("security.protocol", "ssl").set("ssl.ca.location", ca);
    }
    if let Ok(identity) = std::env::var("SKERRY_IDENTITY") {
        config
            .set("ssl.certificate.location", &identity)
            .set("ssl.key.location", &identity);
    }
    Ok(config)
}

/// Runs an admin request to its end: rdkafka's futures are woken from its own thread, so a waker that unparks is all they need.
fn wait<F: Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = std::sync::Arc::new(Unpark(std::thread::current())).into();
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut std::task::Context::from_waker(&waker)) {
            std::task::Poll::Ready(output) => return output,
            std::task::Poll::Pending => std::thread::park(),
        }
    }
}

fn roundtrip(plan: &Plan) -> Outcome<()> {
    let admin: AdminClient<DefaultClientContext> = config()?.create()?;
    let options = AdminOptions::new().operation_timeout(Some(WAIT));
    for result in wait(admin.create_topics(
        &[NewTopic::new(&plan.topic, PARTITIONS, TopicReplication::Fixed(1))],
        &options,
    ))? {
        result.map_err(|(topic, code)| format!("creating {topic}: {code}"))?;
    }
    let described = admin.inner().fetch_metadata(Some(&plan.topic), WAIT)?;
    let partitions = described.topics().first().map_or(0, |topic| topic.partitions().len());
    expect!(
        partitions == PARTITIONS as usize,
        "{partitions} partitions in the description"
    );

    let acked = produce(plan)?;
    consume(plan, &acked)?;

    let listed = admin.inner().fetch_group_list(Some(&plan.group), WAIT)?;
    expect!(
        listed.groups().iter().any(|group| group.name() == plan.group),
        "the group is not listed"
    );
    for result in wait(admin.delete_groups(&[&plan.group], &options))? {
        result.map_err(|(group, code)| format!("deleting {group}: {code}"))?;
    }
    for result in wait(admin.delete_topics(&[&plan.topic], &options))? {
        result.map_err(|(topic, code)| format!("deleting {topic}: {code}"))?;
    }
    let deadline = Instant::now() + WAIT;
    while admin
        .inner()
        .fetch_metadata(None, WAIT)?
        .topics()
        .iter()
        .any(|topic| topic.name() == plan.topic)
    {
        expect!(Instant::now() < deadline, "the topic is still listed after {WAIT:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

fn produce(plan: &Plan) -> Outcome<HashMap<Place, usize>> {
    let (sender, reports) = channel();
    let producer: BaseProducer<Reports> = config()?
        .set("compression.type", &plan.codec)
        .set("enable.idempotence", "true")
        .set("linger.ms", "20")
        .create_with_context(Reports(sender))?;
    for index in 0..plan.records {
        let headers = plan
            .headers(index)
            .iter()
            .fold(OwnedHeaders::new(), |headers, (key, value)| {
                headers.insert(Header {
                    key,
                    value: value.as_ref(),
                })
            });
        let (key, value) = (plan.key(index), plan.value(index));
        let record = BaseRecord::with_opaque_to(&plan.topic, Box::new(index))
            .key(&key)
            .payload(&value)
            .timestamp(plan.timestamp(index))
            .headers(headers);
        producer.send(record).map_err(|(error, _)| error)?;
        producer.poll(Duration::ZERO);
    }
    producer.flush(WAIT)?;
    let mut acked = HashMap::new();
    while acked.len() < plan.records {
        let (index, place) = reports
            .try_recv()
            .map_err(|_| format!("{} records acknowledged", acked.len()))??;
        let before = acked.insert(place, index);
        expect!(
            before.is_none(),
            "records {before:?} and {index} were both acknowledged at {place:?}"
        );
    }
    Ok(acked)
}

fn consume(plan: &Plan, acked: &HashMap<Place, usize>) -> Outcome<()> {
    let consumer: BaseConsumer = config()?
        .set("group.id", &plan.group)
        .set("auto.offset.reset", "earliest")
        .set("enable.auto.commit", "false")
        .create()?;
    consumer.subscribe(&[&plan.topic])?;
    let mut following = [0_i64; PARTITIONS as usize];
    let deadline = Instant::now() + 3 * WAIT;
    for read in 0..plan.records {
        let message = loop {
            expect!(Instant::now() < deadline, "{read} records read of {}", plan.records);
            if let Some(message) = consumer.poll(Duration::from_millis(500)) {
                break message?;
            }
        };
        check(plan, acked, &mut following, &message)?;
    }
    consumer.commit_consumer_state(CommitMode::Sync)?;

    let committed = consumer.committed_offsets(plan.partitions(Offset::Invalid)?, WAIT)?;
    for (partition, next) in (0..).zip(following) {
        let at = committed.find_partition(&plan.topic, partition).map(|p| p.offset());
        expect!(
            next == 0 || at == Some(Offset::Offset(next)),
            "partition {partition}: committed {at:?}, read up to {next}"
        );
        let ends = consumer.fetch_watermarks(&plan.topic, partition, WAIT)?;
        expect!(
            ends == (0, next),
            "the ends of partition {partition} are {ends:?}, read up to {next}"
        );
    }
    let middle = plan.records / 2;
    let found = consumer.offsets_for_times(plan.partitions(Offset::Offset(plan.timestamp(middle)))?, WAIT)?;
    let Some(((partition, offset), _)) = acked.iter().find(|(_, index)| **index == middle) else {
        return Err("the middle record was not acknowledged".into());
    };
    let by_time = found.find_partition(&plan.topic, *partition).map(|p| p.offset());
    expect!(
        by_time == Some(Offset::Offset(*offset)),
        "record {middle} is at {partition}/{offset}; by its timestamp {by_time:?} was found"
    );
    Ok(())
}

fn check(plan: &Plan, acked: &HashMap<Place, usize>, following: &mut [i64], got: &BorrowedMessage<'_>) -> Outcome<()> {
    let place = (got.partition(), got.offset());
    let wanted = following
        .get_mut(usize::try_from(place.0)?)
        .ok_or("a partition that the topic has not")?;
    expect!(place.1 == *wanted, "{place:?} came where offset {wanted} was next");
    *wanted += 1;
    let index = *acked
        .get(&place)
        .ok_or_else(|| format!("nothing was acknowledged at {place:?}"))?;
    expect!(
        got.key() == Some(plan.key(index).as_bytes()),
        "key of record {index} at {place:?}: {:?}",
        got.key()
    );
    expect!(
        got.payload() == Some(plan.value(index).as_bytes()),
        "value of record {index} at {place:?}: {:?}",
        got.payload()
    );
    expect!(
        got.timestamp().to_millis() == Some(plan.timestamp(index)),
        "timestamp of record {index} at {place:?}: {:?}",
        got.timestamp()
    );
    let headers: Vec<_> = got
        .headers()
        .into_iter()
        .flat_map(|headers| headers.iter())
        .map(|header| (header.key, header.value.map(<[u8]>::to_vec)))
        .collect();
    expect!(
        headers == plan.headers(index),
        "headers of record {index} at {place:?}: {headers:?}"
    );
    Ok(())
}

fn main() -> std::process::ExitCode {
    let records = std::env::var("RECORDS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(10_000);
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() != Some("roundtrip") {
        eprintln!("usage: roundtrip [CODEC…]");
        return std::process::ExitCode::from(2);
    }
    let named: Vec<String> = arguments.collect();
    let codecs = if named.is_empty() {
        CODECS.map(String::from).to_vec()
    } else {
        named
    };
    let mut failed = 0;
    for codec in &codecs {
        let began = Instant::now();
        match Plan::new(codec, records).and_then(|plan| roundtrip(&plan)) {
            Ok(()) => println!(
                "ok   rdkafka {codec}: {records} records in {:.1} s",
                began.elapsed().as_secs_f32()
            ),
            Err(error) => {
                failed += 1;
                println!("FAIL rdkafka {codec}: {error}");
            }
        }
    }
    println!("{} passed, {failed} failed", codecs.len() - failed);
    std::process::ExitCode::from(u8::from(failed > 0))
}
