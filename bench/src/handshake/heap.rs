//! What a handshake takes from the heap. Every allocation of a process is counted from outside, Rust's and C's alike, so each server is met in a
//! process of its own; what Mbed TLS takes from its fixed heap is counted there.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use skerry_tests::preload::AllocationCount;
use skerry_tests::process::TempDir;
use skerry_tls::crypto::arena;

use super::memory::Meeting;
use super::server::Peer;
use super::{Kind, Setup};

/// Handshakes before those that are counted, and those.
const WARM_UP: u32 = 5;
const COUNTED: u32 = 20;

/// What one handshake takes, on average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Heap {
    /// Allocations.
    pub allocations: f64,
    /// Bytes that they asked for. Of the fixed heap of Mbed TLS that is not known.
    pub bytes: Option<f64>,
    /// Bytes that the connection still has when the handshake is over.
    pub kept: f64,
}

/// The counter that processes are watched by.
pub struct Watch {
    count: AllocationCount,
    directory: TempDir,
}

impl Watch {
    /// Builds it.
    ///
    /// Errors: no C compiler, or what it said.
    pub fn new() -> Result<Self, String> {
        let directory = TempDir::new();
        let count = AllocationCount::build(directory.path());
        Ok(Self {
            count: count.map_err(|e| format!("no allocations: their counter cannot be built ({e})"))?,
            directory,
        })
    }

    /// What a handshake of that kind takes from the heap of that server.
    ///
    /// Errors: the handshake's.
    pub fn measure(&self, kind: Kind, peer: Peer) -> Result<Heap, String> {
        let failed = |why: &dyn core::fmt::Display| format!("{}: counting allocations: {why}", peer.name());
        let program = std::env::current_exe().map_err(|e| failed(&e))?;
        let mut command = Command::new(program);
        command
            .args(["count-allocations", peer.name(), &kind.to_string(), kind.setup.word()])
            .arg(self.directory.path())
            .stdin(Stdio::null());
        let output = self.count.watch(&mut command).output().map_err(|e| failed(&e))?;
        if !output.status.success() {
            return Err(failed(&String::from_utf8_lossy(&output.stderr).trim()));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let mut numbers = text.split_whitespace().filter_map(|n| n.parse().ok());
        match (numbers.next(), numbers.next(), numbers.next()) {
            (Some(allocations), Some(bytes), Some(kept)) => Ok(Heap {
                allocations,
                bytes: (!peer.has_fixed_heap()).then_some(bytes),
                kept,
            }),
            _ => Err(failed(&"no answer")),
        }
    }
}

/// `skerry-bench count-allocations`: the process that is watched.
#[derive(clap::Args, Clone, Debug)]
pub struct CountArgs {
    /// Which server
    pub server: String,
    /// The kind of its handshakes
    pub kind: String,
    /// How it is set up
    #[arg(value_enum)]
    pub setup: Setup,
    /// Where the counter was built
    pub directory: PathBuf,
}

/// Shakes hands and tells on standard output what that took.
///
/// Errors: the handshake's, or no counter.
pub fn count(args: &CountArgs) -> Result<(), String> {
    let mut kind = Kind::named(&args.kind).ok_or_else(|| format!("no kind {}", args.kind))?;
    kind.setup = args.setup;
    let peer = Peer::named(&args.server).ok_or_else(|| format!("no server {}", args.server))?;
    let [allocations, bytes, kept] = taken(kind, peer, &args.directory)?;
    println!("{allocations} {bytes} {kept}");
    Ok(())
}

/// Allocations, bytes asked for and bytes kept, on average.
fn taken(kind: Kind, peer: Peer, directory: &Path) -> Result<[f64; 3], String> {
    let failed = |e: std::io::Error| e.to_string();
    let count = AllocationCount::join(directory).map_err(failed)?;
    // Allocations, bytes asked for, bytes in use.
    let now = || -> Result<[f64; 3], String> {
        Ok([
            count.allocations().map_err(failed)? as f64 + arena::allocations() as f64,
            count.bytes().map_err(failed)? as f64,
            count.live_bytes().map_err(failed)? as f64 + arena::used() as f64,
        ])
    };
    let mut meeting = Meeting::new(peer, kind)?;
    for _ in 0..WARM_UP {
        meeting.shake(|server| server())?;
    }
    let mut sums = [0.0; 3];
    for _ in 0..COUNTED {
        meeting.shake(|server| {
            let before = now()?;
            let served = server();
            let after = now()?;
            sums[0] += after[0] - before[0];
            sums[1] += after[1] - before[1];
            served
        })?;
        let full = now()?[2];
        meeting.part();
        sums[2] += full - now()?[2];
    }
    Ok(sums.map(|sum| sum / f64::from(COUNTED)))
}
