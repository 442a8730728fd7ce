//! Instructions and cycles of a piece of this thread's work, where the kernel and the processor let us count them.

use perf_event::events::Hardware;
use perf_event::{Builder, Counter, Group};

/// Two counters that run together, in user mode.
pub struct Counters {
    group: Group,
    instructions: Counter,
    cycles: Counter,
}

impl Counters {
    /// Of this thread.
    ///
    /// Errors: why there are none, as a sentence.
    pub fn new() -> Result<Self, String> {
        let open = || -> std::io::Result<Self> {
            let mut group = Group::new()?;
            let instructions = group.add(&Builder::new(Hardware::INSTRUCTIONS))?;
            let cycles = group.add(&Builder::new(Hardware::CPU_CYCLES))?;
            Ok(Self {
                group,
                instructions,
                cycles,
            })
        };
        open().map_err(|error| {
            let why = match error.raw_os_error() {
                Some(ENOENT | ENODEV | EOPNOTSUPP) => {
                    "this processor, or the virtual machine around it, offers no counters"
                }
                Some(EACCES | EPERM) => "not allowed: see /proc/sys/kernel/perf_event_paranoid",
                Some(ENOSYS) => "this kernel has no perf events",
                _ => "refused",
            };
            format!("no instructions and cycles: {why} ({error})")
        })
    }

    /// Counts what `work` takes.
    pub fn count<T>(&mut self, work: impl FnOnce() -> T) -> T {
        // They were opened: switching them fails only for arguments that are wrong.
        let _ = self.group.enable();
        let done = work();
        let _ = self.group.disable();
        done
    }

    /// Instructions and cycles that were counted, and back to zero.
    pub fn take(&mut self) -> Option<[u64; 2]> {
        let counts = self.group.read().ok()?;
        self.group.reset().ok()?;
        Some([
            *counts.get(&self.instructions).map(|c| c.value()).as_ref()?,
            *counts.get(&self.cycles).map(|c| c.value()).as_ref()?,
        ])
    }
}

const EPERM: i32 = 1;
const ENOENT: i32 = 2;
const EACCES: i32 = 13;
const ENODEV: i32 = 19;
const ENOSYS: i32 = 38;
const EOPNOTSUPP: i32 = 95;
