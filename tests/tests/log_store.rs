//! Log storage over a disk in memory: appending, reading, finding, keeping, deleting, flushing, and starts.

mod log_rig;

use log_rig::{Rig, settings};
use skerry_broker::config::{Flush, TimestampType};
use skerry_broker::log::{AppendError, ColdRange, EpochEnd, LogSettings, OffsetSpec, ReadError};
use skerry_core::time::{Instant, Millis, Timestamp};
use skerry_net::host::{Disk, DiskError, OpenMode};
use skerry_tests::fault_disk::{Behaviour, Call};

#[test]
fn what_is_appended_is_read_once_it_is_durable() {
    let mut rig = Rig::new(1);
    let ix = rig.create("t", 0);
    for n in 0..10 {
        let appended = rig.append(ix, 3, 1000 + n).unwrap();
        assert_eq!((appended.base_offset, appended.next_offset), (n * 3, n * 3 + 3));
    }
    let ends = rig.logs.ends(ix);
    assert_eq!(
        (ends.log_start, ends.written, ends.durable, ends.high_watermark),
        (0, 30, 0, 0)
    );
    assert_eq!(rig.read(ix, 0), Ok(vec![]));
    assert_eq!(
        rig.logs.read(&mut rig.disk, ix, 31, 100, true),
        Err(ReadError::OutOfRange)
    );
    rig.flush(ix);
    assert_eq!(rig.logs.ends(ix).high_watermark, 30);
    // From the middle of a batch on: that whole batch and what follows.
    for offset in 0..30 {
        assert_eq!(
            rig.read(ix, offset).unwrap().first(),
            Some(&(offset / 3 * 3)),
            "offset {offset}"
        );
    }
    assert_eq!(rig.read_all(ix), (0..10).map(|n| n * 3).collect::<Vec<_>>());
    assert_eq!(rig.logs.read(&mut rig.disk, ix, 30, 100, true), Ok(None));
}

#[test]
fn a_range_is_as_long_as_asked_and_the_first_batch_whole_when_it_must_be() {
    let mut rig = Rig::new(1);
    let ix = rig.create("t", 0);
    rig.append(ix, 5, 1).unwrap();
    rig.append(ix, 5, 2).unwrap();
    rig.flush(ix);
    let all = rig.logs.bytes(ix) as u32;
    let mut bytes = |max, whole| {
        let range = rig.logs.read(&mut rig.disk, ix, 0, max, whole).unwrap()?;
        rig.logs.release(&mut rig.disk, range);
        Some(range.bytes)
    };
    assert_eq!(bytes(u32::MAX, true), Some(all));
    assert_eq!(bytes(1, true), Some(all / 2));
    assert_eq!(bytes(1, false), None);
    assert_eq!(bytes(all / 2, false), Some(all / 2));
    assert_eq!(bytes(all - 1, false), Some(all - 1));
}

#[test]
fn every_offset_is_found_over_many_segments_after_any_start() {
    let mut rig = Rig::new(2);
    let ix = rig.create("t", 3);
    for n in 0..600 {
        rig.append(ix, 1 + (n % 4) as i32, 1000 + n).unwrap();
        if n % 7 == 0 {
            rig.flush(ix);
        }
    }
    rig.flush(ix);
    let end = rig.logs.ends(ix).written;
    assert!(rig.logs.segment_count(ix) > 10);
    let bases = rig.read_all(ix);
    assert_eq!(bases.len(), 600);
    for clean in [false, true] {
        if clean {
            rig.stop();
        }
        rig.restart();
        let ix = rig.open("t", 3);
        rig.flush(ix);
        assert_eq!(rig.logs.ends(ix).high_watermark, end);
        assert_eq!(rig.read_all(ix), bases);
        // In no order, so that neither the last segment nor the tail of the index helps.
        for k in 0..end {
            let offset = k * 7919 % end;
            let at = bases.partition_point(|base| *base <= offset) - 1;
            assert_eq!(
                rig.read(ix, offset).unwrap().first(),
                Some(&bases[at]),
                "offset {offset}"
            );
        }
    }
}

#[test]
fn a_clean_stop_leaves_nothing_to_read_and_nothing_is_written_when_nothing_changed() {
    let mut rig = Rig::with(
        3,
        Behaviour::default(),
        LogSettings {
            segment_bytes: 1 << 20,
            ..settings()
        },
    );
    let ix = rig.create("t", 0);
    for n in 0..2000 {
        rig.append(ix, 10, n).unwrap();
    }
    rig.flush(ix);
    rig.stop();
    let written = rig.disk.written_bytes();
    rig.stop();
    rig.restart();
    let before = rig.disk.calls(Call::Read);
    let ix = rig.open("t", 0);
    assert_eq!(rig.logs.ends(ix).durable, 20_000);
    let reads = rig.disk.calls(Call::Read) - before;
    assert!(reads < 20, "{reads} reads");
    rig.settle();
    rig.stop();
    assert_eq!(rig.disk.written_bytes(), written);
}

#[test]
fn cold_pages_are_named_then_loaded_then_found() {
    for ring in [false, true] {
        let mut rig = Rig::with(
            4,
            Behaviour {
                ring,
                ..Behaviour::default()
            },
            settings(),
        );
        let ix = rig.create("t", 0);
        for n in 0..400 {
            rig.append(ix, 4, n).unwrap();
        }
        rig.flush(ix);
        rig.stop();
        rig.restart();
        let ix = rig.open("t", 0);
        for offset in [0, 777, 1599, 3, 1200] {
            rig.disk.chill(100);
            let cold = rig.logs.read(&mut rig.disk, ix, offset, 100, true);
            assert!(
                matches!(cold, Err(ReadError::Cold(ColdRange { bytes: 1.., .. }))),
                "{cold:?}"
            );
            assert_eq!(rig.read(ix, offset).unwrap().first(), Some(&(offset / 4 * 4)));
            rig.disk.chill(100);
            // Times rise by one with each record and batch, so record 3 of batch n is as late as the first of batch n + 3.
            let time = offset / 4;
            let first = (time - 3).max(0) * 4 + time.min(3);
            assert_eq!(rig.list(ix, OffsetSpec::At(Timestamp(time))), (first, time));
        }
    }
}

#[test]
fn offsets_by_time() {
    let mut rig = Rig::new(5);
    let ix = rig.create("t", 0);
    assert_eq!(rig.list(ix, OffsetSpec::MaxTimestamp), (-1, -1));
    assert_eq!(rig.list(ix, OffsetSpec::Earliest), (0, -1));
    // Times go up and down; records of one batch are at t, t + 1, t + 2.
    let times: Vec<i64> = (0..500).map(|n| 10_000 + n * 10 + (n * 7919 % 200)).collect();
    for time in &times {
        rig.append(ix, 3, *time).unwrap();
    }
    let records: Vec<(i64, i64)> = (0..).zip(times.iter().flat_map(|t| [*t, t + 1, t + 2])).collect();
    assert_eq!(
        rig.list(ix, OffsetSpec::At(Timestamp(0))),
        (-1, -1),
        "nothing is durable"
    );
    assert_eq!(rig.list(ix, OffsetSpec::MaxTimestamp), (-1, -1), "nothing is durable");
    rig.flush(ix);
    for target in (9_990..15_300).step_by(3) {
        let expected = records
            .iter()
            .find(|(_, time)| *time >= target)
            .copied()
            .unwrap_or((-1, -1));
        assert_eq!(
            rig.list(ix, OffsetSpec::At(Timestamp(target))),
            expected,
            "target {target}"
        );
    }
    let max = records.iter().map(|r| r.1).max().unwrap();
    let first = records.iter().find(|r| r.1 == max).copied().unwrap();
    assert_eq!(rig.list(ix, OffsetSpec::MaxTimestamp), first);
    assert_eq!(rig.list(ix, OffsetSpec::Latest), (1500, -1));
    assert_eq!(rig.list(ix, OffsetSpec::LatestTiered), (-1, -1));
    // A later record that nobody may see yet changes no answer.
    rig.append(ix, 1, max + 500).unwrap();
    assert_eq!(rig.list(ix, OffsetSpec::MaxTimestamp), first);
    assert_eq!(rig.list(ix, OffsetSpec::At(Timestamp(max + 1))), (-1, -1));
    assert_eq!(rig.logs.delete_records(&mut rig.disk, ix, 700), Ok(700));
    assert_eq!(rig.list(ix, OffsetSpec::At(Timestamp(0))), records[700]);
    assert_eq!(rig.list(ix, OffsetSpec::Earliest), (700, -1));
}

#[test]
fn the_brokers_time_is_put_on_and_the_checksum_made_again() {
    let stamped = LogSettings {
        timestamp_type: TimestampType::LogAppendTime,
        ..settings()
    };
    let mut rig = Rig::with(6, Behaviour::default(), stamped);
    let ix = rig.create("t", 0);
    rig.wall = Timestamp(5_000_000);
    assert_eq!(rig.append(ix, 4, 17).unwrap().log_append_time, Timestamp(5_000_000));
    rig.flush(ix);
    // `read_all` looks at every checksum.
    assert_eq!(rig.read_all(ix), [0]);
    assert_eq!(rig.list(ix, OffsetSpec::At(Timestamp(18))), (0, 5_000_000));
}

#[test]
fn duplicates_are_answered_as_the_original_after_any_start() {
    let mut rig = Rig::new(7);
    let ix = rig.create("t", 0);
    let first = rig.append_from(ix, 9, 0, 0, 2).unwrap();
    let second = rig.append_from(ix, 9, 0, 2, 2).unwrap();
    assert_eq!(rig.append_from(ix, 9, 0, 5, 1), Err(AppendError::OutOfOrderSequence));
    let again = rig.append_from(ix, 9, 0, 0, 2).unwrap();
    assert!(again.duplicate && !second.duplicate);
    assert_eq!(
        (again.base_offset, again.next_offset),
        (first.base_offset, first.next_offset)
    );
    assert_eq!(rig.append_from(ix, 9, 1, 0, 1).unwrap().base_offset, 4);
    assert_eq!(rig.append_from(ix, 9, 0, 4, 1), Err(AppendError::InvalidProducerEpoch));
    rig.flush(ix);
    for clean in [false, true] {
        if clean {
            rig.stop();
        }
        rig.restart();
        let ix = rig.open("t", 0);
        let again = rig.append_from(ix, 9, 1, 0, 1).unwrap();
        assert_eq!((again.duplicate, again.base_offset), (true, 4), "clean: {clean}");
        assert_eq!(rig.append_from(ix, 9, 1, 7, 1), Err(AppendError::OutOfOrderSequence));
    }
}

#[test]
fn epochs_are_known_after_any_start() {
    let mut rig = Rig::new(8);
    let ix = rig.create("t", 0);
    for epoch in [3, 5, 6] {
        rig.epoch = epoch;
        for _ in 0..10 {
            rig.append(ix, 1, 1).unwrap();
        }
    }
    rig.flush(ix);
    rig.stop();
    rig.restart();
    rig.epoch = 9;
    let ix = rig.open("t", 0);
    for _ in 0..3 {
        rig.append(ix, 1, 1).unwrap();
    }
    rig.flush(ix);
    rig.restart();
    let ix = rig.open("t", 0);
    rig.flush(ix);
    let end = |epoch| {
        let EpochEnd {
            leader_epoch,
            end_offset,
        } = rig.logs.end_offset_for_epoch(ix, epoch);
        (leader_epoch, end_offset)
    };
    let expected = [(3, 10), (3, 10), (5, 20), (6, 30), (9, 33), (-1, -1)];
    assert_eq!([3, 4, 5, 8, 9, 10].map(end), expected);
    assert_eq!(rig.logs.leader_epoch(ix), 9);
}

#[test]
fn a_full_disk_refuses_leaves_no_trace_and_works_again() {
    let mut rig = Rig::new(9);
    let ix = rig.create("t", 0);
    rig.append(ix, 10, 1).unwrap();
    let used = rig.disk.used_bytes();
    let good = rig.disk.behaviour();
    rig.disk.behave(Behaviour {
        space_bytes: used + 100,
        ..good
    });
    for _ in 0..5 {
        assert_eq!(rig.append_from(ix, 4, 0, 0, 10), Err(AppendError::Storage));
    }
    let on_disk = |rig: &Rig| rig.disk.content("t-0/00000000000000000000.log").map_or(0, <[u8]>::len) as u64;
    assert_eq!(on_disk(&rig), rig.logs.bytes(ix), "the torn batch is cut off");
    rig.flush(ix);
    assert_eq!(rig.read_all(ix), [0]);
    rig.disk.behave(good);
    assert_eq!(
        rig.append_from(ix, 4, 0, 0, 10).unwrap().base_offset,
        10,
        "the sequence had not advanced"
    );
    rig.flush(ix);
    assert_eq!(rig.read_all(ix), [0, 10]);
    assert_eq!(
        rig.disk.content("t-0/00000000000000000000.log").map(<[u8]>::len),
        Some(rig.logs.bytes(ix) as usize)
    );
    assert!(rig.failed.is_empty());
}

#[test]
fn a_failed_flush_is_final_until_the_next_start_has_copied_the_tail() {
    for (ring, durable) in [(false, 3), (true, 3), (true, 0)] {
        let mut rig = Rig::with(
            10,
            Behaviour {
                ring,
                ..Behaviour::default()
            },
            settings(),
        );
        let ix = rig.create("t", 0);
        for _ in 0..durable {
            rig.append(ix, 1, 1).unwrap();
        }
        rig.flush(ix);
        for sequence in 0..40 {
            rig.append_from(ix, 5, 0, sequence, 1).unwrap();
        }
        rig.disk.fail(Call::Sync, 0, DiskError::Io);
        rig.flush(ix);
        assert_eq!(rig.failed, [ix]);
        assert_eq!(rig.logs.ends(ix).durable, durable);
        assert_eq!(rig.append(ix, 1, 1), Err(AppendError::Storage));
        assert_eq!(
            rig.read_all(ix),
            (0..durable).collect::<Vec<_>>(),
            "what is durable can still be read"
        );
        rig.restart();
        let ix = rig.open("t", 0);
        rig.flush(ix);
        assert!(rig.logs.is_writable(ix));
        assert_eq!(
            rig.logs.ends(ix).durable,
            durable + 40,
            "what was only in memory was copied"
        );
        rig.append(ix, 1, 1).unwrap();
        rig.flush(ix);
        rig.disk.power_cycle();
        rig.start();
        let ix = rig.open("t", 0);
        rig.flush(ix);
        assert_eq!(rig.read_all(ix), (0..durable + 41).collect::<Vec<_>>());
        assert!(rig.append_from(ix, 5, 0, 39, 1).unwrap().duplicate);
    }
}

#[test]
fn old_segments_go_and_their_readers_keep_what_they_have() {
    let mut rig = Rig::with(
        11,
        Behaviour::default(),
        LogSettings {
            retention_ms: 1_000_000,
            ..settings()
        },
    );
    let ix = rig.create("t", 0);
    let start = rig.wall.0;
    for n in 0..300 {
        rig.wall = Timestamp(start + n * 1000);
        rig.append(ix, 4, rig.wall.0).unwrap();
    }
    rig.flush(ix);
    let held = rig.logs.read(&mut rig.disk, ix, 0, 200, true).unwrap().unwrap();
    let segments = rig.logs.segment_count(ix);
    assert_eq!(rig.retain(ix), 0);
    rig.wall = Timestamp(start + 1_150_000);
    assert!(rig.retain(ix) > 0);
    let log_start = rig.logs.ends(ix).log_start;
    assert!((400..=600).contains(&log_start), "{log_start}");
    assert!(rig.logs.segment_count(ix) < segments);
    assert_eq!(
        rig.logs.read(&mut rig.disk, ix, 0, 200, true),
        Err(ReadError::OutOfRange)
    );
    assert!(
        !rig.bytes(held).is_empty(),
        "a range that was handed out is still there"
    );
    rig.logs.release(&mut rig.disk, held);
    // Everything too old: the active segment goes too, the end stays.
    rig.wall = Timestamp(start + 9_000_000);
    for _ in 0..3 {
        rig.settle();
        rig.retain(ix);
        rig.flush(ix);
    }
    assert_eq!((rig.logs.ends(ix).log_start, rig.logs.bytes(ix)), (1200, 0));
    rig.disk.power_cycle();
    rig.start();
    let ix = rig.open("t", 0);
    assert_eq!(rig.append(ix, 1, 1).unwrap().base_offset, 1200);
}

#[test]
fn a_clock_that_is_wrong_neither_keeps_for_ever_nor_removes() {
    let kept = LogSettings {
        retention_ms: 1_000_000,
        ..settings()
    };
    let mut rig = Rig::with(12, Behaviour::default(), kept);
    let ix = rig.create("t", 0);
    let start = rig.wall.0;
    for _ in 0..100 {
        rig.append(ix, 4, start * 100).unwrap();
    }
    rig.flush(ix);
    assert_eq!(rig.retain(ix), 0);
    rig.wall = Timestamp(start + 1_000_001);
    rig.retain(ix);
    rig.settle();
    assert!(rig.retain(ix) > 0, "times that have not come yet do not count");
    // A clock that was never set says nothing about when these came.
    let mut rig = Rig::with(12, Behaviour::default(), kept);
    let ix = rig.create("t", 0);
    rig.wall = Timestamp(1000);
    for _ in 0..100 {
        rig.append(ix, 4, -1).unwrap();
    }
    rig.flush(ix);
    rig.wall = Timestamp(start);
    assert_eq!(rig.retain(ix), 0);
}

#[test]
fn retention_by_size_and_deleted_records() {
    let mut rig = Rig::with(
        13,
        Behaviour::default(),
        LogSettings {
            retention_bytes: 5000,
            ..settings()
        },
    );
    let ix = rig.create("t", 0);
    for n in 0..300 {
        rig.append(ix, 4, n).unwrap();
    }
    assert_eq!(rig.retain(ix), 0, "nothing is durable");
    rig.flush(ix);
    rig.retain(ix);
    assert!((5000..9000).contains(&rig.logs.bytes(ix)), "{}", rig.logs.bytes(ix));
    let past = rig.logs.ends(ix).high_watermark + 1;
    assert_eq!(
        rig.logs.delete_records(&mut rig.disk, ix, past),
        Err(ReadError::OutOfRange)
    );
    assert_eq!(rig.logs.delete_records(&mut rig.disk, ix, -1), Ok(1200));
    rig.flush(ix);
    rig.retain(ix);
    assert_eq!(rig.logs.segment_count(ix), 1);
    rig.flush(ix);
    rig.stop();
    rig.restart();
    let ix = rig.open("t", 0);
    assert_eq!(rig.logs.ends(ix).log_start, 1200);
}

#[test]
fn deleted_is_gone_and_a_new_one_begins_empty() {
    let mut rig = Rig::new(14);
    let ix = rig.create("t", 0);
    rig.append(ix, 4, 1).unwrap();
    rig.flush(ix);
    let held = rig.logs.read(&mut rig.disk, ix, 0, 200, true).unwrap().unwrap();
    rig.logs.delete(&mut rig.disk, ix).unwrap();
    rig.logs.sync_names(&mut rig.disk).unwrap();
    rig.logs.purge(&mut rig.disk);
    assert_eq!(rig.disk.files(), Vec::<String>::new());
    assert!(!rig.bytes(held).is_empty());
    let again = rig.create("t", 0);
    assert_eq!(again, ix, "the slot is used again");
    assert_eq!(rig.append(again, 1, 1).unwrap().base_offset, 0);
    rig.logs.release(&mut rig.disk, held);
    rig.flush(again);
    // A crash between the topic's deletion and its directory's: the topic is made again and must not see the old records.
    rig.restart();
    let ix = rig.create("t", 0);
    assert_eq!(rig.append(ix, 1, 1).unwrap().base_offset, 0);
    rig.flush(ix);
    assert_eq!(rig.read_all(ix), [0]);
    assert!(
        rig.disk.files().iter().any(|path| path.contains("-stray/")),
        "{:?}",
        rig.disk.files()
    );
}

#[test]
fn an_empty_partition_takes_no_disk() {
    let mut rig = Rig::new(15);
    for n in 0..50 {
        rig.create("t", n);
    }
    rig.stop();
    assert_eq!((rig.disk.files().len(), rig.disk.written_bytes()), (0, 0));
    rig.restart();
    assert_eq!(rig.open("t", 3).0, 0);
}

#[test]
fn more_partitions_than_open_files() {
    let mut rig = Rig::new(16);
    rig.limit_files(4);
    let all: Vec<_> = (0..20).map(|n| rig.create("t", n)).collect();
    for n in 0..30 {
        for ix in &all {
            rig.append(*ix, 1, n).unwrap();
        }
    }
    for ix in &all {
        rig.flush(*ix);
        assert_eq!(rig.read_all(*ix).len(), 30);
    }
    // Every file pinned: refused, not wrong.
    let read = |rig: &mut Rig, ix| rig.logs.read(&mut rig.disk, ix, 0, 10, true);
    let held: Vec<_> = all[..4]
        .iter()
        .map(|ix| read(&mut rig, *ix).unwrap().unwrap())
        .collect();
    assert_eq!(read(&mut rig, all[7]), Err(ReadError::Exhausted));
    assert_eq!(rig.append(all[7], 1, 1), Err(AppendError::Storage));
    for range in held {
        rig.logs.release(&mut rig.disk, range);
    }
    rig.append(all[7], 1, 1).unwrap();
    assert!(rig.disk.open_files() <= 4);
    rig.stop();
    rig.restart();
    rig.limit_files(4);
    for n in 0..20 {
        let ix = rig.open("t", n);
        assert_eq!(rig.logs.ends(ix).durable, 30 + i64::from(n == 7));
    }
}

#[test]
fn without_segments_to_spare_the_active_one_grows() {
    let mut rig = Rig::new(17);
    rig.limit_segments(3);
    let ix = rig.create("t", 0);
    for n in 0..200 {
        rig.append(ix, 4, n).unwrap();
    }
    rig.flush(ix);
    assert_eq!(rig.logs.segment_count(ix), 3);
    assert_eq!(rig.read_all(ix).len(), 200);
    rig.logs.delete_records(&mut rig.disk, ix, 799).unwrap();
    assert!(rig.retain(ix) > 0);
    rig.append(ix, 1, 1).unwrap();
    assert_eq!(rig.logs.segment_count(ix), 2);
}

#[test]
fn one_flush_at_a_time_carries_what_came_before_it_began() {
    let slow = Behaviour {
        sync_us: (200_000, 200_000),
        ..Behaviour::default()
    };
    let mut rig = Rig::with(18, slow, settings());
    let (a, b) = (rig.create("a", 0), rig.create("b", 0));
    rig.append(a, 1, 1).unwrap();
    rig.flusher.want(a);
    rig.turn();
    assert!(rig.flusher.is_busy());
    rig.append(a, 1, 1).unwrap();
    rig.append(b, 1, 1).unwrap();
    rig.flusher.want(a);
    rig.flusher.want(b);
    rig.turn();
    assert_eq!(rig.advanced, []);
    while rig.advanced.is_empty() {
        rig.later();
    }
    assert_eq!(rig.advanced, [(a, 1)], "what came after it began goes with the next");
    // After a slow flush those that it has answered come again, and the next one waits for them.
    assert!(!rig.flusher.is_busy());
    let rested = rig.flusher.deadline(&rig.logs);
    assert_eq!(rested, rig.now + Millis(10));
    rig.append(a, 1, 1).unwrap();
    rig.flusher.want(a);
    rig.turn();
    assert!(!rig.flusher.is_busy());
    rig.now = rested;
    rig.turn();
    while rig.flusher.is_busy() {
        rig.later();
    }
    rig.advanced.sort_unstable();
    assert_eq!(rig.advanced, [(a, 1), (a, 3), (b, 1)]);
    assert_eq!(rig.flusher.deadline(&rig.logs), Instant::NEVER, "idle costs nothing");
}

#[test]
fn nobody_waits_yet_nothing_stays_dirty_for_ever() {
    let mut rig = Rig::new(19);
    let ix = rig.create("t", 0);
    rig.append(ix, 1, 1).unwrap();
    rig.turn();
    assert!(!rig.flusher.is_busy());
    let due = rig.flusher.deadline(&rig.logs);
    assert_eq!(due, rig.now + rig.policy.flush_interval);
    rig.now = due;
    rig.settle();
    assert_eq!(rig.logs.ends(ix).durable, 1);
}

#[test]
fn a_registered_file_goes_with_the_flush_and_fails_for_good() {
    let mut rig = Rig::new(20);
    let ix = rig.create("t", 0);
    let file = rig.disk.open("metadata", OpenMode::Create).unwrap();
    let which = rig.flusher.register(file).unwrap();
    rig.flusher.dirty(which, 7, rig.now);
    rig.append(ix, 1, 1).unwrap();
    rig.flush(ix);
    assert_eq!(rig.marks, [(which, Some(7))]);
    rig.flusher.dirty(which, 9, rig.now);
    rig.flusher.want_file(which);
    rig.disk.fail(Call::Sync, 0, DiskError::Io);
    rig.settle();
    rig.flusher.dirty(which, 11, rig.now);
    rig.flusher.want_file(which);
    rig.settle();
    assert_eq!(
        rig.marks,
        [(which, Some(7)), (which, None)],
        "a failed file is not tried again"
    );
    rig.flusher.replace(which, file);
    rig.flusher.dirty(which, 12, rig.now);
    rig.flusher.want_file(which);
    rig.settle();
    assert_eq!(rig.marks.last(), Some(&(which, Some(12))));
}

#[test]
fn without_flushes_what_is_written_is_seen_and_closed_segments_are_flushed() {
    let mut rig = Rig::new(21);
    rig.policy.flush = Flush::Never;
    rig.start();
    let ix = rig.create("t", 0);
    for n in 0..100 {
        rig.append(ix, 4, n).unwrap();
        assert_eq!(rig.logs.ends(ix).high_watermark, (n + 1) * 4);
    }
    rig.settle();
    let durable = rig.logs.ends(ix).durable;
    assert!(durable > 0 && rig.logs.segment_count(ix) > 2);
    assert_eq!(rig.read_all(ix).len(), 100);
    rig.disk.power_cycle();
    rig.start();
    let ix = rig.open("t", 0);
    assert!(rig.logs.ends(ix).written >= durable);
}

#[test]
fn a_damaged_index_is_made_again_when_it_is_used() {
    let wide = LogSettings {
        segment_bytes: 1 << 20,
        index_interval_bytes: 100,
        ..settings()
    };
    for entry in [0, 25, 100] {
        let mut rig = Rig::with(22, Behaviour::default(), wide);
        let ix = rig.create("t", 0);
        for n in 0..3000 {
            rig.append(ix, 4, n).unwrap();
        }
        rig.flush(ix);
        rig.stop();
        rig.disk.tamper("t-0/00000000000000000000.index", |bytes| {
            bytes[entry * 20 + 5] ^= 4;
            bytes[entry * 40 + 7] ^= 4;
        });
        rig.restart();
        let ix = rig.open("t", 0);
        for k in 0..3000 {
            let offset = k * 7919 % 12_000;
            assert_eq!(rig.read(ix, offset).unwrap().first(), Some(&(offset / 4 * 4)));
        }
        rig.append(ix, 1, 1).unwrap();
        rig.flush(ix);
        assert_eq!(rig.read(ix, 12_000), Ok(vec![12_000]));
    }
}

/// Goal: segments that retention removed never leave a hole behind. Method: several go at once, the power fails right after, and the
/// checkpoints, which were never synced, are lost.
#[test]
fn a_power_cut_after_retention_loses_nothing_that_was_kept() {
    for seed in 0..100 {
        let mut rig = Rig::with(
            seed,
            Behaviour::default(),
            LogSettings {
                retention_bytes: 6000,
                ..settings()
            },
        );
        let ix = rig.create("t", 0);
        for n in 0..300 {
            rig.append(ix, 4, n).unwrap();
        }
        rig.flush(ix);
        assert!(rig.retain(ix) > 10_000);
        let log_start = rig.logs.ends(ix).log_start;
        rig.disk.power_cycle();
        for path in rig.disk.files().into_iter().filter(|path| path.contains("checkpoint")) {
            rig.disk.tamper(&path, Vec::clear);
        }
        rig.start();
        let ix = rig.open("t", 0);
        rig.flush(ix);
        let ends = rig.logs.ends(ix);
        assert_eq!(ends.durable, 1200, "seed {seed}");
        assert!(ends.log_start <= log_start, "seed {seed}");
        rig.read_all(ix);
    }
}
