//! What `/proc` tells about a process, and on which processors it may run.

use std::fs;
use std::io;
use std::ops::Sub;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};

/// CPU time of a process, user and system.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cpu {
    /// Seconds of its own threads.
    pub threads: f64,
    /// Seconds of the kernel's workers on its behalf (io_uring's, `iou-wrk-…`): inside the process, outside its threads.
    pub workers: f64,
}

impl Cpu {
    /// What a process has used so far, from the scheduler's nanosecond counts. A thread that has ended is not counted any more.
    ///
    /// Errors: the process is gone, or the kernel keeps no such counts.
    pub fn of(pid: u32) -> io::Result<Self> {
        let mut cpu = Self::default();
        for task in fs::read_dir(format!("/proc/{pid}/task"))? {
            let path = task?.path();
            // A thread may end between the listing and this.
            let (Ok(name), Ok(stat)) = (
                fs::read_to_string(path.join("comm")),
                fs::read_to_string(path.join("schedstat")),
            ) else {
                continue;
            };
            let nanos: f64 = stat
                .split_whitespace()
                .next()
                .and_then(|n| n.parse().ok())
                .ok_or_else(|| io::Error::other("the kernel counts no CPU time in schedstat"))?;
            if name.starts_with("iou-wrk") {
                cpu.workers += nanos / 1e9;
            } else {
                cpu.threads += nanos / 1e9;
            }
        }
        Ok(cpu)
    }

    /// Seconds of both.
    #[must_use]
    pub fn all(self) -> f64 {
        self.threads + self.workers
    }
}

impl Sub for Cpu {
    type Output = Self;
    fn sub(self, earlier: Self) -> Self {
        Self {
            threads: self.threads - earlier.threads,
            workers: self.workers - earlier.workers,
        }
    }
}

/// Memory of a process that is in RAM.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Bytes in all.
    pub resident: u64,
    /// Of these: its own, backed by no file.
    pub anonymous: u64,
}

impl Memory {
    /// What a process has now.
    ///
    /// Errors: the process is gone.
    pub fn of(pid: u32) -> io::Result<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let kib = |name: &str| field(&status, name).ok_or_else(|| io::Error::other(format!("no {name} in its status")));
        Ok(Self {
            resident: kib("VmRSS:")? * 1024,
            anonymous: kib("RssAnon:")? * 1024,
        })
    }
}

/// Bytes that a process caused to be written to the disk so far.
///
/// Errors: the process is gone or another user's.
pub fn written_bytes(pid: u32) -> io::Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/io"))?;
    field(&text, "write_bytes:").ok_or_else(|| io::Error::other("no write_bytes in its io"))
}

fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Lets every thread of a process, and those that they start, run on one processor only.
///
/// Errors: no such processor or process.
pub fn pin(pid: u32, processor: usize) -> io::Result<()> {
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let task = task?.file_name();
        let id = task.to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
        let mut set = CpuSet::new();
        set.set(processor);
        sched_setaffinity(id, &set)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_can_be_read() {
        let before = Cpu::of(std::process::id()).unwrap();
        let mut sum = 0u64;
        while (Cpu::of(std::process::id()).unwrap() - before).threads < 0.002 {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        let memory = Memory::of(std::process::id()).unwrap();
        assert!(memory.anonymous > 0 && memory.anonymous <= memory.resident);
    }

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "rchar: 1\nwrite_bytes: 4096\ncancelled_write_bytes: 7\n";
        assert_eq!(field(text, "write_bytes:"), Some(4096));
        assert_eq!(field(text, "read_bytes:"), None);
    }
}
