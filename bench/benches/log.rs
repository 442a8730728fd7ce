//! The log over the disk that the build lies on: `log/what/size`.

use std::path::Path;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use skerry_bench::broker::SHAPES;
use skerry_bench::log::one_log;
use skerry_broker::ids::PartitionIx;
use skerry_broker::log::{AppendParams, Logs};
use skerry_core::record::Batch;
use skerry_net::host::Clock;
use skerry_net::linux::{LinuxConfig, LinuxHost, Ring};

/// A log of one partition, in a directory that is removed afterwards.
struct Rig {
    host: LinuxHost,
    logs: Logs,
    ix: PartitionIx,
    directory: std::path::PathBuf,
}

impl Rig {
    fn new() -> Self {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bench-log-{}", std::process::id()));
        let mut host = LinuxHost::new(LinuxConfig {
            listeners: Vec::new(),
            backlog: 0,
            data_directory: directory.clone(),
            streams_max: 1,
            files_max: 16,
            ring: Ring::Off,
            ring_entries: 0,
            sync_delay: Duration::ZERO,
        })
        .expect("a host");
        let (logs, ix) = one_log(&mut host);
        Self {
            host,
            logs,
            ix,
            directory,
        }
    }

    fn append(&mut self, batch: &Batch<'_>) {
        let params = AppendParams {
            now: self.host.now(),
            wall: self.host.wall(),
            leader_epoch: 0,
        };
        let done = self.logs.append(&mut self.host, self.ix, batch, &params);
        let done = done.expect("an append");
        if done.base_offset % 4096 == 0 {
            self.logs.retain(&mut self.host, self.ix, params.now, params.wall);
        }
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn append(c: &mut Criterion) {
    let mut group = c.benchmark_group("log/append");
    for shape in SHAPES {
        let bytes = shape.batch().bytes;
        let batch = Batch::only(&bytes).expect("one batch");
        let mut rig = Rig::new();
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function(shape.name, |b| b.iter(|| rig.append(&batch)));
    }
    group.finish();
}

fn read(c: &mut Criterion) {
    let mut group = c.benchmark_group("log/read");
    let bytes = SHAPES[1].batch().bytes;
    let batch = Batch::only(&bytes).expect("one batch");
    let mut rig = Rig::new();
    for _ in 0..2000 {
        rig.append(&batch);
    }
    let end = rig.logs.ends(rig.ix).written;
    // Finding the records of a fetch: they are sent from the file.
    for (name, bytes) in [("16KiB", 16 << 10), ("1MiB", 1 << 20)] {
        let mut offset = 0;
        group.throughput(Throughput::Bytes(u64::from(bytes)));
        group.bench_function(name, |b| {
            b.iter(|| {
                let range = rig.logs.read(&mut rig.host, rig.ix, offset, bytes, true);
                let range = range.expect("a read").expect("records");
                rig.logs.release(&mut rig.host, range);
                offset = (offset + 7919) % end;
            });
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    // The disk wants its own time: short runs, and not many.
    config = Criterion::default().measurement_time(Duration::from_secs(2)).sample_size(20);
    targets = append, read
}
criterion_main!(benches);
