//! On what, of what and how a figure was measured.

use std::fs;
use std::path::Path;
use std::process::Command;

/// What stands above every report.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Processor, cores, memory.
    pub machine: String,
    /// Kernel.
    pub kernel: String,
    /// Commit of the working tree, `+` when it has changes.
    pub commit: String,
    /// The command, as typed.
    pub command: String,
    /// Load of the last minute before the measurement: above 0.5, somebody else was working.
    pub load: String,
}

impl Machine {
    /// This one, now.
    #[must_use]
    pub fn here() -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = value(&cpuinfo, "model name").or_else(|| value(&cpuinfo, "Hardware"));
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let memory_kib: u64 = value(&meminfo, "MemTotal")
            .and_then(|text| text.split(' ').next()?.parse().ok())
            .unwrap_or(0);
        Self {
            machine: format!(
                "{}, {cores} cores, {} GiB",
                model.unwrap_or(std::env::consts::ARCH),
                memory_kib.div_ceil(1 << 20)
            ),
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease")
                .unwrap_or_default()
                .trim()
                .into(),
            commit: commit().unwrap_or_else(|| "unknown".into()),
            command: command(),
            load: fs::read_to_string("/proc/loadavg")
                .unwrap_or_default()
                .split(' ')
                .next()
                .unwrap_or_default()
                .into(),
        }
    }

    /// Names and values, for a report.
    #[must_use]
    pub fn lines(&self) -> [(&'static str, &str); 5] {
        [
            ("machine", &self.machine),
            ("kernel", &self.kernel),
            ("commit", &self.commit),
            ("command", &self.command),
            ("load before", &self.load),
        ]
    }
}

/// The value of the first line `name : value`.
fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_once(':').map(|(_, value)| value.trim())
}

fn commit() -> Option<String> {
    let git = |args: &[&str]| {
        let output = Command::new("git")
            .args(["-C", env!("CARGO_MANIFEST_DIR")])
            .args(args)
            .output()
            .ok()?;
        output
            .status
            .success()
            .then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let head = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changes = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changes.is_empty() { head } else { head + "+" })
}

/// The program by its name, without the path that it lies at, and its arguments.
fn command() -> String {
    let mut words: Vec<String> = std::env::args().collect();
    if let Some(first) = words.first_mut()
        && let Some(name) = Path::new(first.as_str()).file_name()
    {
        *first = name.to_string_lossy().into_owned();
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found() {
        assert_eq!(value("a\t: b c\nd : e\n", "d"), Some("e"));
        assert_eq!(value("a\t: b c\n", "a"), Some("b c"));
        assert_eq!(value("", "a"), None);
    }
}
