//! `skerry produce`: lines of standard input as records.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;
use skerry_core::api::produce::{PartitionProduceData, TopicProduceData};
use skerry_core::api::{ApiKey, InitProducerIdRequest, ProduceRequest};
use skerry_core::error_code::ErrorCode;
use skerry_core::record::{BatchBuilder, Compression, RecordHeader};
use skerry_core::time::Timestamp;
use skerry_core::wire::{Array, Records, Version};

use super::args::{Acks, Codec, ProduceArgs};
use super::client::{Client, Node, Topic, Try, refused, words};
use super::{Failure, compress, murmur2, offsets, show};
use crate::crc::CRC32C;

/// Lines that are read ahead of what is sent.
const AHEAD: usize = 1024;
/// Records and bytes at which a batch goes out even when more lines wait.
const BATCH_RECORDS: usize = 10_000;
const BATCH_BYTES: usize = 512 * 1024;
/// How long the broker may take to have a batch where `--acks` wants it.
const TIMEOUT: Duration = Duration::from_secs(30);

/// One line as a record.
struct Line {
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    timestamp: i64,
}

impl Line {
    fn bytes(&self) -> usize {
        self.key.as_ref().map_or(0, Vec::len) + self.value.as_ref().map_or(0, Vec::len)
    }
}

/// Runs the command.
pub fn run(args: &ProduceArgs, client: &mut Client, out: &mut dyn Write) -> Result<(), Failure> {
    let topic = client.topic(&args.topic, true)?;
    if let Some(partition) = args.partition
        && !topic.partitions.iter().any(|p| p.index == partition)
    {
        let count = topic.partitions.len();
        return Err(format!("topic {} has no partition {partition}; it has {count}", topic.name).into());
    }
    let mut sender = Sender::new(args, client, topic)?;
    let lines = read_lines();
    let mut sent = 0_u64;
    // What waits is taken together, so a pipe is sent in large batches and a person's line at once.
    while let Ok(first) = lines.recv() {
        let mut batch = vec![parse(args, first?)];
        let mut bytes = 0;
        while batch.len() < BATCH_RECORDS && bytes < BATCH_BYTES {
            let Ok(line) = lines.try_recv() else { break };
            let line = parse(args, line?);
            bytes += line.bytes();
            batch.push(line);
        }
        sent += batch.len() as u64;
        sender.send(client, &batch, out)?;
        if client.is_interrupted() {
            break;
        }
    }
    log::info!("{sent} records sent to {}", args.topic);
    Ok(())
}

/// Reads standard input on a thread of its own, as a read cannot be waited for together with anything else.
fn read_lines() -> Receiver<io::Result<Vec<u8>>> {
    let (to, from) = sync_channel(AHEAD);
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        loop {
            let mut line = Vec::new();
            let read = input.read_until(b'\n', &mut line);
            if line.last() == Some(&b'\n') {
                line.pop();
            }
            let item = match read {
                Ok(0) => return,
                Ok(_) => Ok(line),
                Err(error) => Err(error),
            };
            let failed = item.is_err();
            if to.send(item).is_err() || failed {
                return;
            }
        }
    });
    from
}

/// Takes a line apart.
fn parse(args: &ProduceArgs, mut line: Vec<u8>) -> Line {
    let separator = args.key_separator.as_deref().unwrap_or("").as_bytes();
    let at = if separator.is_empty() {
        None
    } else {
        line.windows(separator.len()).position(|window| window == separator)
    };
    let (key, value) = match at {
        Some(at) => {
            let value = line.split_off(at + separator.len());
            line.truncate(at);
            (Some(line), value)
        }
        None => (None, line),
    };
    let null = args.null_value.as_ref().is_some_and(|text| text.as_bytes() == value);
    Line {
        key,
        value: (!null).then_some(value),
        timestamp: args.timestamp.unwrap_or_else(now),
    }
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Sends batches to the leaders of a topic's partitions.
struct Sender<'a> {
    args: &'a ProduceArgs,
    topic: Topic,
    codec: Compression,
    /// Makes it safe to send a batch again; only with acks=all, and where the broker gives ids.
    producer: Option<Producer>,
    /// The partition of the last batch without keys.
    turn: usize,
}

/// An idempotent producer.
struct Producer {
    id: i64,
    epoch: i16,
    /// The next sequence of each partition.
    next: BTreeMap<i32, i32>,
}

impl<'a> Sender<'a> {
    fn new(args: &'a ProduceArgs, client: &mut Client, topic: Topic) -> Result<Self, Failure> {
        let codec = match args.compression {
            Codec::None => Compression::None,
            Codec::Gzip => Compression::Gzip,
            Codec::Snappy => Compression::Snappy,
            Codec::Lz4 => Compression::Lz4,
            Codec::Zstd => Compression::Zstd,
        };
        Ok(Self {
            args,
            producer: if args.acks == Acks::All {
                producer(client)?
            } else {
                None
            },
            topic,
            codec,
            turn: usize::try_from(now()).unwrap_or(0),
        })
    }

    fn send(&mut self, client: &mut Client, lines: &[Line], out: &mut dyn Write) -> Result<(), Failure> {
        let mut batches = self.batches(lines)?;
        // From version 13 on topics are named by their ids.
        let version_max = if self.topic.id.is_zero() { 12 } else { Version::MAX };
        if self.args.acks == Acks::Zero {
            return self.send_unanswered(client, &batches, version_max);
        }
        client.persist(|client| {
            let mut later = None;
            let open: Vec<i32> = batches.keys().copied().collect();
            for (leader, partitions) in offsets::by_leader(&self.topic, &open) {
                let data = partition_data(&batches, &partitions);
                let topics = [self.topic_data(&data)];
                let request = self.request(&topics);
                let answers = client.ask_for(&Node::Id(leader), &request, version_max, TIMEOUT, |reply| {
                    Ok(reply
                        .responses
                        .iter()
                        .flat_map(|topic| topic.partition_responses.iter())
                        .map(|p| (p.index, p.error_code, p.error_message.map(str::to_owned), p.base_offset))
                        .collect::<Vec<_>>())
                })?;
                for (partition, error, message, base_offset) in answers {
                    match error {
                        // A duplicate is one of our own that was sent again: the first of them is in.
                        ErrorCode::NONE | ErrorCode::DUPLICATE_SEQUENCE_NUMBER => {
                            if let Some(batch) = batches.remove(&partition) {
                                self.acknowledged(partition, &batch, base_offset, out)?;
                            }
                        }
                        error if error.is_retriable() => {
                            later = Some(format!("{} [{partition}]: {}", self.topic.name, words(error)));
                        }
                        error => {
                            let what = format!("{} [{partition}]", self.topic.name);
                            return Err(refused(&what, error, message.as_deref()));
                        }
                    }
                }
            }
            match later {
                Some(why) => {
                    self.topic = client.topic(&self.args.topic, false)?;
                    Ok(Try::Later(why))
                }
                None => Ok(Try::Done(())),
            }
        })
    }

    fn send_unanswered(
        &self,
        client: &mut Client,
        batches: &BTreeMap<i32, Batch>,
        version_max: Version,
    ) -> Result<(), Failure> {
        let open: Vec<i32> = batches.keys().copied().collect();
        for (leader, partitions) in offsets::by_leader(&self.topic, &open) {
            let data = partition_data(batches, &partitions);
            client.tell(&Node::Id(leader), &self.request(&[self.topic_data(&data)]), version_max)?;
        }
        Ok(())
    }

    fn topic_data<'d>(&'d self, data: &'d [PartitionProduceData<'d>]) -> TopicProduceData<'d> {
        TopicProduceData {
            name: &self.topic.name,
            topic_id: self.topic.id,
            partition_data: Array::Slice(data),
        }
    }

    fn request<'d>(&self, topics: &'d [TopicProduceData<'d>]) -> ProduceRequest<'d> {
        ProduceRequest {
            transactional_id: None,
            acks: match self.args.acks {
                Acks::All => -1,
                Acks::One => 1,
                Acks::Zero => 0,
            },
            timeout_ms: i32::try_from(TIMEOUT.as_millis()).unwrap_or(i32::MAX),
            topic_data: Array::Slice(topics),
        }
    }

    /// A sealed batch for each partition that gets any of `lines`.
    fn batches(&mut self, lines: &[Line]) -> Result<BTreeMap<i32, Batch>, Failure> {
        let count = self.topic.partitions.len();
        self.turn = self.turn.wrapping_add(1);
        let mut by_partition: BTreeMap<i32, Vec<&Line>> = BTreeMap::new();
        for line in lines {
            let at = match &line.key {
                Some(key) => murmur2::partition(key, count),
                None => self.turn % count.max(1),
            };
            let chosen = self.topic.partitions.get(at).map_or(0, |partition| partition.index);
            by_partition
                .entry(self.args.partition.unwrap_or(chosen))
                .or_default()
                .push(line);
        }
        let headers: Vec<RecordHeader<'_>> = self
            .args
            .headers
            .iter()
            .map(|(key, value)| RecordHeader {
                key: key.as_bytes(),
                value: Some(value.as_bytes()),
            })
            .collect();
        let mut out = BTreeMap::new();
        for (partition, lines) in by_partition {
            let sequence = self.producer.as_mut().map(|producer| {
                let next = producer.next.entry(partition).or_insert(0);
                let first = *next;
                // Sequences go round at 2^31.
                *next = next.wrapping_add(lines.len() as i32) & i32::MAX;
                (producer.id, producer.epoch, first)
            });
            out.insert(partition, build(&lines, &headers, self.codec, sequence)?);
        }
        Ok(out)
    }

    fn acknowledged(&self, partition: i32, batch: &Batch, base_offset: i64, out: &mut dyn Write) -> io::Result<()> {
        if !self.args.client.json {
            return Ok(());
        }
        for at in 0..batch.count {
            let offset = (base_offset >= 0).then_some(base_offset + i64::from(at));
            let line = json!({ "topic": self.topic.name, "partition": partition, "offset": offset });
            show::json(out, &line)?;
        }
        out.flush()
    }
}

/// A sealed batch.
struct Batch {
    bytes: Vec<u8>,
    count: i32,
}

fn partition_data<'b>(batches: &'b BTreeMap<i32, Batch>, partitions: &[i32]) -> Vec<PartitionProduceData<'b>> {
    let chosen = batches.iter().filter(|(partition, _)| partitions.contains(partition));
    chosen
        .map(|(partition, batch)| PartitionProduceData {
            index: *partition,
            records: Records::Bytes(&batch.bytes),
        })
        .collect()
}

fn build(
    lines: &[&Line],
    headers: &[RecordHeader<'_>],
    codec: Compression,
    sequence: Option<(i64, i16, i32)>,
) -> Result<Batch, Failure> {
    let too_large = || Failure::from("a batch grows past 2 GiB".to_owned());
    let headers_bytes: usize = headers
        .iter()
        .map(|h| 20 + h.key.len() + h.value.map_or(0, <[u8]>::len))
        .sum();
    let records_bytes: usize = lines.iter().map(|line| 64 + headers_bytes + line.bytes()).sum();
    // Half as much again, as what does not compress grows a little.
    let mut room = vec![0; 1024 + records_bytes + records_bytes / 2];
    let mut builder = BatchBuilder::new(&mut room).map_err(|_| too_large())?;
    if let Some((id, epoch, first)) = sequence {
        builder = builder.producer(id, epoch, first);
    }
    for line in lines {
        builder
            .push(
                Timestamp(line.timestamp),
                line.key.as_deref(),
                line.value.as_deref(),
                headers,
            )
            .map_err(|_| too_large())?;
    }
    let count = builder.count();
    let bytes = if codec == Compression::None {
        builder.finish(CRC32C).len()
    } else {
        let packed = compress::compress(codec, builder.payload())?;
        builder
            .finish_compressed(codec, &packed, CRC32C)
            .map_err(|_| too_large())?
            .len()
    };
    room.truncate(bytes);
    Ok(Batch { bytes: room, count })
}

/// An id of an idempotent producer, where the broker gives any.
fn producer(client: &mut Client) -> Result<Option<Producer>, Failure> {
    if !client.speaks(&Node::Any, ApiKey::InitProducerId)? {
        return Ok(None);
    }
    let request = InitProducerIdRequest {
        transactional_id: None,
        transaction_timeout_ms: i32::MAX,
        ..InitProducerIdRequest::default()
    };
    client.persist(|client| {
        let (error, id, epoch) = client.ask(&Node::Any, &request, |reply| {
            Ok((reply.error_code, reply.producer_id, reply.producer_epoch))
        })?;
        match error {
            ErrorCode::NONE => Ok(Try::Done(Some(Producer {
                id,
                epoch,
                next: BTreeMap::new(),
            }))),
            // Not every user may have one; batches go without it then.
            ErrorCode::CLUSTER_AUTHORIZATION_FAILED => Ok(Try::Done(None)),
            error if error.is_retriable() => Ok(Try::Later(format!("producer id: {}", words(error)))),
            error => Err(refused("producer id", error, None)),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;
    use skerry_core::record::Batch as Parsed;

    fn args(line: &str) -> ProduceArgs {
        let cli = super::super::args::Cli::try_parse_from(line.split(' ')).unwrap();
        match cli.command {
            super::super::args::Command::Produce(args) => args,
            other => panic!("{other:?}"),
        }
    }

    fn parsed(options: &str, line: &str) -> (Option<String>, Option<String>) {
        let line = parse(&args(&format!("skerry produce t {options}")), line.into());
        let text = |bytes: Option<Vec<u8>>| bytes.map(|b| String::from_utf8(b).unwrap());
        (text(line.key), text(line.value))
    }

    #[test]
    fn lines_come_apart_at_the_first_separator() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(parsed("-p 0", "k:v"), (None, some("k:v")));
        assert_eq!(parsed("-K :", "k:v:w"), (some("k"), some("v:w")));
        assert_eq!(parsed("-K :", "no separator"), (None, some("no separator")));
        assert_eq!(parsed("-K =>", "k=>"), (some("k"), some("")));
        assert_eq!(parsed("-K : --null-value NULL", "k:NULL"), (some("k"), None));
    }

    #[test]
    fn batches_hold_what_was_put_in_under_every_codec() {
        let lines: Vec<Line> = (0..100)
            .map(|n| Line {
                key: (n % 2 == 0).then(|| format!("k{n}").into_bytes()),
                value: (n % 3 != 0).then(|| format!("value {n}").into_bytes()),
                timestamp: 1000 + n,
            })
            .collect();
        let refs: Vec<&Line> = lines.iter().collect();
        let headers = [RecordHeader {
            key: b"h",
            value: Some(b"x"),
        }];
        for codec in [
            Compression::None,
            Compression::Gzip,
            Compression::Snappy,
            Compression::Lz4,
            Compression::Zstd,
        ] {
            let batch = build(&refs, &headers, codec, Some((7, 1, 40))).unwrap();
            let parsed = Parsed::only(&batch.bytes).unwrap();
            assert!(parsed.crc_holds(CRC32C));
            let header = parsed.header();
            assert_eq!((header.count, header.producer_id, header.base_sequence), (100, 7, 40));
            assert_eq!((header.base_timestamp, header.max_timestamp), (1000, 1099));
            let opened = compress::open(codec, parsed.payload()).unwrap();
            let records: Vec<_> = skerry_core::record::RecordIter::new(&opened, 100)
                .collect::<Result<_, _>>()
                .unwrap();
            for (record, line) in records.iter().zip(&lines) {
                assert_eq!(record.key, line.key.as_deref());
                assert_eq!(record.value, line.value.as_deref());
                assert_eq!(record.headers.count(), 1);
            }
        }
    }
}
