//! Any bytes at all as the files of a log: what the fuzz target `recovery` runs, and a test without it.

use std::io::IoSlice;

use skerry_broker::config::{CleanupPolicy, Flush, Read, TimestampType};
use skerry_broker::crc::CRC32C;
use skerry_broker::ids::PartitionIx;
use skerry_broker::log::{AppendParams, Flusher, LogLimits, LogPolicy, LogSettings, Logs, OffsetSpec, ReadError};
use skerry_core::record::{BATCH_HEADER_BYTES, Batch, BatchBuilder, BatchHeader};
use skerry_core::time::{Instant, Millis, Timestamp};
use skerry_net::host::{Disk, OpenMode, Started, Token};

use crate::fault_disk::{Behaviour, FaultDisk};
use crate::rng::Rng;

const SETTINGS: LogSettings = LogSettings {
    segment_bytes: 600,
    segment_ms: i64::MAX,
    index_interval_bytes: 100,
    retention_ms: 1000,
    retention_bytes: 1500,
    timestamp_type: TimestampType::CreateTime,
    cleanup_policy: CleanupPolicy::Delete,
};

const LIMITS: LogLimits = LogLimits {
    partitions: 2,
    segments: 40,
    open_files: 8,
    producers: 4,
};

const WALL: Timestamp = Timestamp(1_800_000_000_000);

/// Opens a log whose files are made of `data`, and uses it. Nothing may panic or go on for ever, and what the log says of itself must
/// hold together.
///
/// The first byte chooses: files of a log that was written, damaged as the rest says, or files of those very bytes.
pub fn check(data: &[u8]) {
    let Some((&choice, mut data)) = data.split_first() else {
        return;
    };
    let mut disk = FaultDisk::new(
        Behaviour {
            ring: false,
            ..Behaviour::default()
        },
        Rng::new(1),
    );
    disk.create_dir("t-0").expect("an empty disk");
    if choice & 1 == 0 {
        let mut files = written(choice & 2 == 0);
        while let Some(([file, kind, at, more, what], rest)) = data.split_first_chunk() {
            let count = files.len();
            let (name, bytes) = &mut files[usize::from(*file) % count];
            let at = usize::from(u16::from_be_bytes([*at, *more])) % (bytes.len() + 1);
            match kind % 6 {
                0 => bytes.truncate(at),
                1 => bytes[at..].fill(0),
                2 => bytes.insert(at, *what),
                3 if at < bytes.len() => bytes[at] ^= *what,
                4 => drop(bytes.drain(at..bytes.len().min(at + usize::from(*what)))),
                _ => *name = name_of(*what),
            }
            data = rest;
        }
        for (name, bytes) in &files {
            put(&mut disk, name, bytes);
        }
    } else {
        while let Some(([name, high, low], rest)) = data.split_first_chunk() {
            let bytes = usize::from(u16::from_be_bytes([*high, *low])).min(rest.len());
            put(&mut disk, &name_of(*name), &rest[..bytes]);
            data = &rest[bytes..];
        }
    }
    for dir in ["", "t-0"] {
        let dir = disk.open(dir, OpenMode::Directory).expect("a directory");
        disk.sync(dir).expect("to sync it");
        disk.close(dir);
    }
    use_it(&mut disk);
}

/// A file's name, from a byte.
fn name_of(byte: u8) -> String {
    let base = [0, 1, 3, 7, 12, 20, 1 << 40, i64::MAX][usize::from(byte >> 3) % 8];
    match byte % 8 {
        0..3 => format!("{base:020}.log"),
        3 => format!("{base:020}.index"),
        4 => format!("{base:020}.log.copy"),
        5 => "failed".into(),
        6 => "checkpoint.0".into(),
        _ => "checkpoint.1".into(),
    }
}

fn put(disk: &mut FaultDisk, name: &str, bytes: &[u8]) {
    let file = disk
        .open(&format!("t-0/{name}"), OpenMode::Create)
        .expect("to make a file");
    disk.truncate(file, 0).expect("to empty it");
    disk.write_at(file, 0, &[IoSlice::new(bytes)]).expect("to write it");
    disk.sync(file).expect("to sync it");
    disk.close(file);
}

fn policy() -> LogPolicy {
    LogPolicy {
        flush: Flush::AcksAll,
        read: Read::Durable,
        flush_interval: Millis(1000),
        checkpoint_bytes: 700,
        clock_floor: Timestamp(1),
        crc: CRC32C,
    }
}

fn append(disk: &mut FaultDisk, logs: &mut Logs, ix: PartitionIx, sequence: i32) -> bool {
    let mut buffer = [0; 300];
    let mut builder = BatchBuilder::new(&mut buffer).expect("room").producer(1, 0, sequence);
    for n in 0..2 {
        builder
            .push(Timestamp(1000 + n), Some(b"k"), Some(b"value"), &[])
            .expect("room");
    }
    let bytes = builder.finish(CRC32C);
    let batch = Batch::only(bytes).expect("a batch");
    let params = AppendParams {
        now: Instant::from_micros(1),
        wall: WALL,
        leader_epoch: 3,
    };
    logs.append(disk, ix, &batch, &params)
        .is_ok_and(|appended| !appended.duplicate)
}

fn flush(disk: &mut FaultDisk, logs: &mut Logs, ix: PartitionIx) {
    let mut flusher = Flusher::new(LIMITS.partitions, None);
    flusher.want(ix);
    flusher.turn(disk, logs, Instant::from_micros(2), &mut |_| {});
}

/// The files of a log of several segments; `stopped`: cleanly.
fn written(stopped: bool) -> Vec<(String, Vec<u8>)> {
    let mut disk = FaultDisk::new(
        Behaviour {
            ring: false,
            ..Behaviour::default()
        },
        Rng::new(1),
    );
    let mut logs = Logs::new(LIMITS, policy());
    let ix = logs.create(&mut disk, "t", 0, &SETTINGS).expect("a place");
    for n in 0..16 {
        append(&mut disk, &mut logs, ix, n * 2);
        if n % 5 == 4 {
            flush(&mut disk, &mut logs, ix);
        }
    }
    if stopped {
        logs.stop(&mut disk);
    }
    let paths = disk.files();
    let name = |path: &String| path.trim_start_matches("t-0/").to_owned();
    paths
        .iter()
        .map(|path| (name(path), disk.content(path).unwrap_or_default().to_vec()))
        .collect()
}

/// Asks again while something must be loaded first; the blocking disk has it at once.
fn patiently<T>(
    disk: &mut FaultDisk,
    mut ask: impl FnMut(&mut FaultDisk) -> Result<T, ReadError>,
) -> Result<T, ReadError> {
    for _ in 0..10_000 {
        match ask(disk) {
            Err(ReadError::Cold(cold)) => {
                let started = disk.start_load(cold.file, cold.position, cold.bytes as usize, Token(0));
                assert_eq!(started, Ok(Started::Done));
            }
            other => return other,
        }
    }
    panic!("loading does not help");
}

fn use_it(disk: &mut FaultDisk) {
    let mut logs = Logs::new(LIMITS, policy());
    let open = |disk: &mut FaultDisk, logs: &mut Logs| {
        logs.open(disk, "t", 0, &SETTINGS, Instant::from_micros(0), WALL)
            .expect("never a refusal to start")
    };
    let ix = open(disk, &mut logs);
    read_everything(disk, &mut logs, ix);
    flush(disk, &mut logs, ix);
    let ends = logs.ends(ix);
    if logs.is_writable(ix) {
        assert_eq!(ends.durable, ends.written.max(ends.log_start));
    }
    read_everything(disk, &mut logs, ix);
    for spec in [
        OffsetSpec::Earliest,
        OffsetSpec::Latest,
        OffsetSpec::MaxTimestamp,
        OffsetSpec::At(Timestamp(0)),
        OffsetSpec::At(Timestamp(1001)),
        OffsetSpec::At(Timestamp(i64::MAX)),
    ] {
        let _ = patiently(disk, |disk| logs.list_offset(disk, ix, spec));
    }
    let _ = logs.end_offset_for_epoch(ix, 3);

    // Opening again gives the same.
    disk.kill();
    logs = Logs::new(LIMITS, policy());
    let ix = open(disk, &mut logs);
    flush(disk, &mut logs, ix);
    assert_eq!(logs.ends(ix), ends);

    // And it can be written to.
    let appended = append(disk, &mut logs, ix, 1000) || append(disk, &mut logs, ix, 32);
    if appended {
        flush(disk, &mut logs, ix);
        let after = logs.ends(ix);
        assert_eq!((after.written, after.durable), (ends.written + 2, ends.written + 2));
        let range = patiently(disk, |disk| logs.read(disk, ix, ends.written, 10, true));
        let range = range.expect("what was appended").expect("can be read");
        logs.release(disk, range);
    }
    logs.retain(disk, ix, Instant::from_micros(3), WALL);
    flush(disk, &mut logs, ix);
    logs.retain(disk, ix, Instant::from_micros(4), WALL);
    logs.stop(disk);
    let before = logs.ends(ix);
    disk.power_cycle();
    logs = Logs::new(LIMITS, policy());
    let ix = open(disk, &mut logs);
    assert!(
        logs.ends(ix).written >= before.durable,
        "{before:?} then {:?}",
        logs.ends(ix)
    );
}

/// Reads as a consumer does that goes on after each batch; an error ends it, as it would end the consumer.
fn read_everything(disk: &mut FaultDisk, logs: &mut Logs, ix: PartitionIx) {
    let ends = logs.ends(ix);
    assert!(
        ends.log_start <= ends.durable && ends.durable <= ends.written.max(ends.log_start),
        "{ends:?}"
    );
    let mut offset = ends.log_start;
    for _ in 0..10_000 {
        let range = match patiently(disk, |disk| logs.read(disk, ix, offset, 1, true)) {
            Ok(Some(range)) => range,
            Ok(None) | Err(ReadError::Storage | ReadError::OutOfRange) => return,
            Err(error) => panic!("{error:?}"),
        };
        let mut head = [0; BATCH_HEADER_BYTES];
        assert_eq!(
            disk.read_at(range.file, range.position, &mut head),
            Ok(BATCH_HEADER_BYTES)
        );
        logs.release(disk, range);
        let header = BatchHeader::decode(&head);
        assert_eq!(header.len_bytes().ok(), Some(range.bytes as usize), "a whole batch");
        assert!(header.next_offset() > offset, "a reader goes on");
        offset = header.next_offset();
    }
    panic!("reading does not end");
}
