//! A host over a directory that is removed afterwards.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use skerry_core::time::Millis;
use skerry_net::host::{Clock, Completion, Disk, Event, Host};
use skerry_net::linux::{LinuxConfig, LinuxHost, Listen, Ring};

/// A directory on the disk that the build is on, for a temporary file system in memory would have no cold pages.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("net-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub fn config(directory: &Scratch) -> LinuxConfig {
    LinuxConfig {
        listeners: vec![Listen::Bind("127.0.0.1:0".parse().unwrap())],
        backlog: 128,
        data_directory: directory.path().to_owned(),
        streams_max: 512,
        files_max: 16,
        ring: Ring::Auto,
        ring_entries: 8,
        sync_delay: Duration::ZERO,
    }
}

/// Every variant that the tests of files run with.
///
/// Where the machine has no io_uring the ring's half would test nothing: that is a failure, unless `SKERRY_NO_RING=1` says that it is known.
pub fn rings() -> Vec<Ring> {
    let directory = Scratch::new();
    let has_ring = LinuxHost::new(config(&directory)).unwrap().disk().has_ring();
    if has_ring {
        return vec![Ring::Off, Ring::Auto];
    }
    assert_eq!(
        std::env::var("SKERRY_NO_RING").as_deref(),
        Ok("1"),
        "this machine refuses io_uring; set SKERRY_NO_RING=1 to test the blocking variant only"
    );
    vec![Ring::Off]
}

/// Waits at most ten seconds for events until `found` picks one.
pub fn wait_for<T>(host: &mut LinuxHost, mut found: impl FnMut(Event) -> Option<T>) -> T {
    let until = host.now() + Millis(10_000);
    let mut picked = None;
    while picked.is_none() {
        assert!(host.now() < until, "the event did not come");
        host.wait(until, &mut |event| picked = picked.take().or_else(|| found(event)));
    }
    picked.unwrap()
}

/// Waits for the next completion.
pub fn completion(host: &mut LinuxHost) -> Completion {
    if let Some(done) = host.poll_done() {
        return done;
    }
    loop {
        wait_for(host, |event| (event == Event::Disk).then_some(()));
        if let Some(done) = host.poll_done() {
            return done;
        }
    }
}
