//! Prints what calls of the Linux host cost on this machine: `cargo run --profile quick -p skerry-net --example host_cost [directory]`.
//!
//! The median of 25 rounds. These are the figures in the doc comments.

use std::io::{IoSlice, IoSliceMut};
use std::time::{Duration, Instant};

use skerry_net::host::{Clock, Disk, FileId, Host, OpenMode, Started, Token};
use skerry_net::linux::{LinuxConfig, LinuxHost, Ring};

fn main() {
    let directory = std::env::args().nth(1).unwrap_or_else(|| "target/host_cost".into());
    for ring in [Ring::Auto, Ring::Off] {
        let config = LinuxConfig {
            listeners: Vec::new(),
            backlog: 0,
            data_directory: directory.clone().into(),
            streams_max: 1,
            files_max: 4,
            ring,
            ring_entries: 16,
            sync_delay: Duration::ZERO,
        };
        let mut host = LinuxHost::new(config).expect("a host");
        println!("{ring:?} (ring in use: {})", host.disk().has_ring());
        measure(&mut host);
    }
}

fn measure(host: &mut LinuxHost) {
    let file = host.open("cost", OpenMode::Create).expect("a file");
    let megabyte = vec![7; 1 << 20];
    for position in 0..4 {
        host.write_at(file, position << 20, &[IoSlice::new(&megabyte)])
            .expect("a write");
    }
    host.sync(file).expect("a sync");

    line("ticks", 10_000, || _ = host.ticks());
    line("now", 10_000, || _ = host.now());
    line("thread_cpu", 10_000, || _ = host.thread_cpu());
    let mut buffer = vec![0; 8 * (16 << 10)];
    line("read_cached, 64 B", 1000, || read(host, file, &mut buffer[..64]));
    line("read_cached, 16 KiB", 1000, || {
        read(host, file, &mut buffer[..16 << 10])
    });
    line("read_cached, 8 x 16 KiB", 1000, || {
        let mut slices: Vec<_> = buffer.chunks_mut(16 << 10).map(IoSliceMut::new).collect();
        assert_eq!(host.read_cached(file, 0, &mut slices), Ok(8 * (16 << 10)));
    });
    for kilobytes in [64, 256, 1024, 4096] {
        line(&format!("cached, {kilobytes} KiB"), 1000, || {
            assert_eq!(host.cached(file, 0, kilobytes << 10), kilobytes << 10);
        });
    }
    let past = skerry_core::time::Instant::from_micros(0);
    line("wait, nothing ready", 1000, || host.wait(past, &mut |_| {}));
    line("write_at, 1 KiB", 1000, || {
        assert_eq!(host.write_at(file, 0, &[IoSlice::new(&megabyte[..1024])]), Ok(1024));
    });
    line("start_load, 64 KiB in memory, to its completion", 100, || {
        let started = host.start_load(file, 0, 64 << 10, Token(0));
        finish(host, started);
    });
    line("start_sync, nothing dirty, to its completion", 100, || {
        let started = host.start_sync(file, Token(0));
        finish(host, started);
    });
    let mut starts = Vec::new();
    line("start_sync, 1 KiB overwritten, to its completion", 20, || {
        host.write_at(file, 0, &[IoSlice::new(&megabyte[..1024])])
            .expect("a write");
        let start = Instant::now();
        let started = host.start_sync(file, Token(0));
        starts.push(start.elapsed().as_nanos());
        finish(host, started);
    });
    starts.sort_unstable();
    println!("{:>12} ns  of which in the call itself", starts[starts.len() / 2]);
}

fn read(host: &mut LinuxHost, file: FileId, buffer: &mut [u8]) {
    let bytes = buffer.len();
    assert_eq!(host.read_cached(file, 0, &mut [IoSliceMut::new(buffer)]), Ok(bytes));
}

fn finish(host: &mut LinuxHost, started: Result<Started, skerry_net::host::DiskError>) {
    if started == Ok(Started::Pending) {
        while host.poll_done().is_none() {
            host.wait(skerry_core::time::Instant::NEVER, &mut |_| {});
        }
    }
}

fn line(name: &str, times: u32, mut call: impl FnMut()) {
    let mut rounds: Vec<_> = (0..25)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..times {
                call();
            }
            start.elapsed().as_nanos() / u128::from(times)
        })
        .collect();
    rounds.sort_unstable();
    println!("{:>12} ns  {name}", rounds[rounds.len() / 2]);
}
