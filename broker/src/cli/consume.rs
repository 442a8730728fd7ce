//! `skerry consume`: a topic's records on standard output.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::args::{ConsumeArgs, Position};
use super::client::{Client, Topic};
use super::fetch::{Fetched, Reader};
use super::member::{Member, Standing};
use super::{Failure, groups, offsets, show};

/// How often a group's offsets are committed while records come.
const COMMIT: Duration = Duration::from_secs(1);

/// Runs the command.
pub fn run(args: &ConsumeArgs, client: &mut Client, out: &mut dyn Write) -> Result<(), Failure> {
    let mut printer = Printer::new(args)?;
    let done = match &args.group {
        Some(group) => in_group(args, group, client, &mut printer, out),
        None => alone(args, client, &mut printer, out),
    };
    match done {
        Err(Failure::Interrupted) => Ok(()),
        other => other,
    }
}

/// Reads partitions of its own choice.
fn alone(args: &ConsumeArgs, client: &mut Client, printer: &mut Printer, out: &mut dyn Write) -> Result<(), Failure> {
    let topic = client.topic(&args.topic, false)?;
    let partitions = chosen(&topic, &args.partition)?;
    let begin = match (args.from_beginning, args.offset) {
        (true, _) => Position::Earliest,
        (false, offset) => offset.unwrap_or(Position::Latest),
    };
    // Where it ends is asked first: what comes between the two questions is then read as well.
    let ends = if args.until_end {
        Some(offsets::find(
            client,
            &topic,
            &partitions,
            Position::Latest,
            args.read_committed,
        )?)
    } else {
        None
    };
    let positions = offsets::find(client, &topic, &partitions, begin, args.read_committed)?;
    let mut reader = Reader::new(topic, positions, args.read_committed, Position::Earliest);
    loop {
        let reached = |reader: &Reader| {
            ends.as_ref().is_some_and(|ends| {
                ends.iter()
                    .all(|(partition, end)| reader.positions().get(partition).is_none_or(|at| at >= end))
            })
        };
        if reached(&reader) || client.is_interrupted() {
            return Ok(());
        }
        let records = reader.poll(client)?;
        for record in &records {
            let past = ends
                .as_ref()
                .and_then(|ends| ends.get(&record.partition))
                .is_some_and(|end| record.offset >= *end);
            if !past {
                printer.print(record, out)?;
            }
            if printer.is_done() {
                return Ok(());
            }
        }
        out.flush()?;
        if printer.has_waited_enough(!records.is_empty()) {
            return Ok(());
        }
    }
}

/// Reads the share that a group gives.
fn in_group(
    args: &ConsumeArgs,
    group: &str,
    client: &mut Client,
    printer: &mut Printer,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let topic = client.topic(&args.topic, false)?;
    let mut member = Member::new(client, group, &args.topic)?;
    loop {
        let partitions = member.join(client)?;
        log::info!("group {group}: reading partitions {partitions:?}");
        let mut share = Share::begin(args, group, client, topic.clone(), partitions)?;
        let end = share.read(client, &mut member, printer, out);
        match end {
            Ok(Standing::Stable) | Err(Failure::Interrupted) => {
                // The user's interrupt must not stop the goodbye.
                client.forget_interrupt();
                out.flush()?;
                share.commit(client, &mut member)?;
                member.leave(client);
                return Ok(());
            }
            Ok(Standing::Rebalance) => {
                share.commit(client, &mut member)?;
            }
            Ok(Standing::Lost) => {}
            Err(failure) => {
                member.leave(client);
                return Err(failure);
            }
        }
    }
}

/// What a member reads between two rebalances.
struct Share {
    reader: Reader,
    /// The next offset of each partition after what was printed.
    printed: BTreeMap<i32, i64>,
    committed_at: Instant,
}

impl Share {
    /// Begins where the group left off; where it never was, at the end or, `--from-beginning`, at the beginning.
    fn begin(
        args: &ConsumeArgs,
        group: &str,
        client: &mut Client,
        topic: Topic,
        partitions: Vec<i32>,
    ) -> Result<Self, Failure> {
        let fresh = if args.from_beginning {
            Position::Earliest
        } else {
            Position::Latest
        };
        let mut positions: BTreeMap<i32, i64> = groups::committed(client, group)?
            .into_iter()
            .filter(|c| c.topic == topic.name && partitions.contains(&c.partition))
            .map(|c| (c.partition, c.offset))
            .collect();
        let missing: Vec<i32> = partitions.into_iter().filter(|p| !positions.contains_key(p)).collect();
        // Where it begins anew is committed too, so that it is the group's place even before a record of it is printed.
        let begun = if missing.is_empty() {
            BTreeMap::new()
        } else {
            offsets::find(client, &topic, &missing, fresh, args.read_committed)?
        };
        positions.extend(&begun);
        Ok(Self {
            reader: Reader::new(topic, positions, args.read_committed, fresh),
            printed: begun,
            committed_at: Instant::now(),
        })
    }

    /// Reads until enough is printed (`Stable`) or the share changes.
    fn read(
        &mut self,
        client: &mut Client,
        member: &mut Member,
        printer: &mut Printer,
        out: &mut dyn Write,
    ) -> Result<Standing, Failure> {
        loop {
            if client.is_interrupted() {
                return Err(Failure::Interrupted);
            }
            let records = if self.reader.positions().is_empty() {
                client.pause(Duration::from_millis(500));
                Vec::new()
            } else {
                self.reader.poll(client)?
            };
            for record in &records {
                printer.print(record, out)?;
                self.printed.insert(record.partition, record.offset + 1);
                if printer.is_done() {
                    return Ok(Standing::Stable);
                }
            }
            out.flush()?;
            if printer.has_waited_enough(!records.is_empty()) {
                return Ok(Standing::Stable);
            }
            if self.committed_at.elapsed() >= COMMIT {
                self.committed_at = Instant::now();
                let standing = self.commit(client, member)?;
                if standing != Standing::Stable {
                    return Ok(standing);
                }
            }
            let standing = member.heartbeat(client)?;
            if standing != Standing::Stable {
                return Ok(standing);
            }
        }
    }

    /// Commits what was printed since the last time.
    fn commit(&mut self, client: &mut Client, member: &mut Member) -> Result<Standing, Failure> {
        if self.printed.is_empty() {
            return Ok(Standing::Stable);
        }
        let standing = member.commit(client, &self.printed)?;
        if standing == Standing::Stable {
            self.printed.clear();
        }
        Ok(standing)
    }
}

/// The partitions of a topic that are asked for; all when none are.
pub fn chosen(topic: &Topic, asked: &[i32]) -> Result<Vec<i32>, Failure> {
    let all: Vec<i32> = topic.partitions.iter().map(|partition| partition.index).collect();
    if let Some(wrong) = asked.iter().find(|partition| !all.contains(partition)) {
        return Err(format!("topic {} has no partition {wrong}; it has {}", topic.name, all.len()).into());
    }
    Ok(if asked.is_empty() { all } else { asked.to_vec() })
}

/// Prints records and knows when to stop.
struct Printer {
    topic: String,
    /// `None`: JSON.
    format: Option<Vec<Piece>>,
    left: Option<u64>,
    timeout: Option<Duration>,
    last: Instant,
}

impl Printer {
    fn new(args: &ConsumeArgs) -> Result<Self, Failure> {
        Ok(Self {
            topic: args.topic.clone(),
            format: if args.client.json {
                None
            } else {
                Some(pieces(&args.format)?)
            },
            left: args.max_messages,
            timeout: args.timeout.map(Duration::from_millis),
            last: Instant::now(),
        })
    }

    fn print(&mut self, record: &Fetched, out: &mut dyn Write) -> io::Result<()> {
        self.left = self.left.map(|left| left.saturating_sub(1));
        match &self.format {
            Some(format) => format
                .iter()
                .try_for_each(|piece| piece.print(&self.topic, record, out)),
            None => show::json(out, &as_json(&self.topic, record)),
        }
    }

    /// Whether as many were printed as were asked for.
    fn is_done(&self) -> bool {
        self.left == Some(0)
    }

    /// Whether nothing came for as long as the user wants to wait.
    fn has_waited_enough(&mut self, came: bool) -> bool {
        if came {
            self.last = Instant::now();
        }
        self.timeout.is_some_and(|timeout| self.last.elapsed() >= timeout)
    }
}

/// A record as one object.
fn as_json(topic: &str, record: &Fetched) -> Value {
    let mut object = Map::new();
    object.insert("topic".into(), topic.into());
    object.insert("partition".into(), record.partition.into());
    object.insert("offset".into(), record.offset.into());
    object.insert("timestamp".into(), record.timestamp.into());
    put_bytes(&mut object, "key", record.key.as_deref());
    put_bytes(&mut object, "value", record.value.as_deref());
    let headers = record.headers.iter().map(|(key, value)| {
        let mut header = Map::new();
        put_bytes(&mut header, "key", Some(key));
        put_bytes(&mut header, "value", value.as_deref());
        Value::Object(header)
    });
    object.insert("headers".into(), headers.collect());
    Value::Object(object)
}

/// Text where it is UTF-8; else the bytes in base64, under a name that says so.
fn put_bytes(object: &mut Map<String, Value>, name: &str, bytes: Option<&[u8]>) {
    match bytes.map(std::str::from_utf8) {
        None => object.insert(name.into(), Value::Null),
        Some(Ok(text)) => object.insert(name.into(), text.into()),
        Some(Err(_)) => object.insert(format!("{name}_base64"), json!(show::base64(bytes.unwrap_or_default()))),
    };
}

/// A part of `--format`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(Vec<u8>),
    Topic,
    Partition,
    Offset,
    Timestamp,
    Key,
    Value,
    Headers,
}

impl Piece {
    fn print(&self, topic: &str, record: &Fetched, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Text(text) => out.write_all(text),
            Self::Topic => out.write_all(topic.as_bytes()),
            Self::Partition => write!(out, "{}", record.partition),
            Self::Offset => write!(out, "{}", record.offset),
            Self::Timestamp => write!(out, "{}", record.timestamp),
            Self::Key => out.write_all(record.key.as_deref().unwrap_or_default()),
            Self::Value => out.write_all(record.value.as_deref().unwrap_or_default()),
            Self::Headers => {
                for (at, (key, value)) in record.headers.iter().enumerate() {
                    out.write_all(if at == 0 { b"" } else { b"," })?;
                    out.write_all(key)?;
                    out.write_all(b"=")?;
                    out.write_all(value.as_deref().unwrap_or_default())?;
                }
                Ok(())
            }
        }
    }
}

/// Reads a format.
fn pieces(format: &str) -> Result<Vec<Piece>, Failure> {
    let wrong = |what: String| {
        Failure::from(format!(
            "--format {format}: {what} means nothing; see skerry consume --help"
        ))
    };
    let mut out = Vec::new();
    let mut text = Vec::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        let plain = match (c, if matches!(c, '%' | '\\') { chars.next() } else { None }) {
            ('%', Some('%')) => '%',
            ('%', Some(name)) => {
                let piece = match name {
                    't' => Piece::Topic,
                    'p' => Piece::Partition,
                    'o' => Piece::Offset,
                    'T' => Piece::Timestamp,
                    'k' => Piece::Key,
                    'v' | 's' => Piece::Value,
                    'h' => Piece::Headers,
                    _ => return Err(wrong(format!("%{name}"))),
                };
                out.push(Piece::Text(std::mem::take(&mut text)));
                out.push(piece);
                continue;
            }
            ('\\', Some('n')) => '\n',
            ('\\', Some('t')) => '\t',
            ('\\', Some('r')) => '\r',
            ('\\', Some('0')) => '\0',
            ('\\', Some('\\')) => '\\',
            ('\\', Some(other)) => return Err(wrong(format!("\\{other}"))),
            ('%' | '\\', None) => return Err(wrong(format!("{c} at the end"))),
            (c, _) => c,
        };
        text.extend_from_slice(plain.encode_utf8(&mut [0; 4]).as_bytes());
    }
    out.push(Piece::Text(text));
    out.retain(|piece| *piece != Piece::Text(Vec::new()));
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Fetched {
        Fetched {
            partition: 2,
            offset: 40,
            timestamp: 1_700_000_000_000,
            key: Some(b"k".to_vec()),
            value: Some(vec![0xff, 0xef]),
            headers: vec![(b"a".to_vec(), Some(b"1".to_vec())), (b"b".to_vec(), None)],
        }
    }

    fn printed(format: &str) -> Vec<u8> {
        let mut out = Vec::new();
        for piece in pieces(format).unwrap() {
            piece.print("t", &record(), &mut out).unwrap();
        }
        out
    }

    #[test]
    fn formats() {
        assert_eq!(
            printed("%t %p:%o@%T %k=%h%%\\t\\\\\\n"),
            b"t 2:40@1700000000000 k=a=1,b=%\t\\\n"
        );
        assert_eq!(printed("%v"), [0xff, 0xef]);
        for wrong in ["%x", "\\q", "%", "a\\"] {
            assert!(pieces(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn json_marks_what_is_not_text() {
        assert_eq!(
            as_json("t", &record()).to_string(),
            "{\"headers\":[{\"key\":\"a\",\"value\":\"1\"},{\"key\":\"b\",\"value\":null}],\"key\":\"k\",\"offset\":40,\
             \"partition\":2,\"timestamp\":1700000000000,\"topic\":\"t\",\"value_base64\":\"/+8=\"}"
        );
    }
}
