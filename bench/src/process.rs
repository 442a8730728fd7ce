//! What `/proc` tells about a process, and on which processors it may run.

use std::collections::BTreeMap;
use std::fs;
use std::io;

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
    /// Seconds of both.
    #[must_use]
    pub fn all(self) -> f64 {
        self.threads + self.workers
    }
}

/// What each thread of a process has used so far, from the scheduler's nanosecond counts.
#[derive(Clone, Debug, Default)]
pub struct Tasks(BTreeMap<u32, Task>);

#[derive(Clone, Copy, Debug)]
struct Task {
    seconds: f64,
    is_worker: bool,
}

impl Tasks {
    /// Those of a process.
    ///
    /// Errors: the process is gone, or the kernel keeps no such counts.
    pub fn of(pid: u32) -> io::Result<Self> {
        let mut tasks = BTreeMap::new();
        for task in fs::read_dir(format!("/proc/{pid}/task"))? {
            let task = task?;
            let path = task.path();
            // A thread may end between the listing and this.
            let (Ok(name), Ok(stat)) = (
                fs::read_to_string(path.join("comm")),
                fs::read_to_string(path.join("schedstat")),
            ) else {
                continue;
            };
            let nanos: Option<f64> = stat.split_whitespace().next().and_then(|n| n.parse().ok());
            let id = task.file_name().to_str().and_then(|id| id.parse().ok());
            let (Some(nanos), Some(id)) = (nanos, id) else {
                return Err(io::Error::other("the kernel counts no CPU time in schedstat"));
            };
            let task = Task {
                seconds: nanos / 1e9,
                is_worker: name.starts_with("iou-wrk"),
            };
            tasks.insert(id, task);
        }
        Ok(Self(tasks))
    }

    /// What was used since an earlier reading. What a thread that has ended meanwhile used is not known: it counts as nothing.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Cpu {
        let mut cpu = Cpu::default();
        for (id, task) in &self.0 {
            let seconds = task.seconds - earlier.0.get(id).map_or(0.0, |task| task.seconds);
            if task.is_worker {
                cpu.workers += seconds;
            } else {
                cpu.threads += seconds;
            }
        }
        cpu
    }
}

/// CPU time of a process in user mode and in the kernel, in the kernel's clock ticks. The kernel samples which is which: a share of the two
/// means something from some hundred ticks on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modes {
    user: u64,
    system: u64,
}

impl Modes {
    /// What a process has used so far.
    ///
    /// Errors: the process is gone.
    pub fn of(pid: u32) -> io::Result<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        // The name, in parentheses, may have blanks in it. utime and stime are the 12th and 13th after it.
        let mut fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11);
        let mut next = || fields.next().and_then(|n| n.parse().ok());
        match (next(), next()) {
            (Some(user), Some(system)) => Ok(Self { user, system }),
            _ => Err(io::Error::other("no times in its stat")),
        }
    }

    /// What was used since an earlier reading.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
        }
    }

    /// The kernel's share. `None`: too little was used to tell.
    #[must_use]
    pub fn kernel_share(self) -> Option<f64> {
        let all = self.user + self.system;
        (all >= TICKS_MIN).then(|| self.system as f64 / all as f64)
    }
}

/// A third of a second of CPU, by the usual hundred ticks.
const TICKS_MIN: u64 = 30;

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
        let own = || Tasks::of(std::process::id()).unwrap();
        let before = own();
        let mut sum = 0u64;
        while own().since(&before).threads < 0.002 {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        let memory = Memory::of(std::process::id()).unwrap();
        assert!(memory.anonymous > 0 && memory.anonymous <= memory.resident);
    }

    #[test]
    fn a_share_needs_enough_ticks() {
        let modes = |user, system| Modes { user, system };
        assert!(Modes::of(std::process::id()).is_ok());
        assert_eq!(modes(70, 40).since(modes(10, 20)).kernel_share(), Some(0.25));
        assert_eq!(modes(70, 40).since(modes(60, 30)).kernel_share(), None);
    }

    #[test]
    fn a_thread_that_has_ended_takes_nothing_back() {
        let task = |seconds, is_worker| Task { seconds, is_worker };
        let before = Tasks(BTreeMap::from([(1, task(5.0, false)), (2, task(7.0, true))]));
        let after = Tasks(BTreeMap::from([(1, task(6.0, false)), (3, task(0.5, true))]));
        let used = after.since(&before);
        assert_eq!((used.threads, used.workers), (1.0, 0.5));
    }

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "rchar: 1\nwrite_bytes: 4096\ncancelled_write_bytes: 7\n";
        assert_eq!(field(text, "write_bytes:"), Some(4096));
        assert_eq!(field(text, "read_bytes:"), None);
    }
}
