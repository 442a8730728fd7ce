//! What the hot paths may cost, in instructions.
//!
//! A count of instructions is the same on a busy machine and on an idle one, so that a change of two or three percent shows. It depends on the
//! compiler, on the processor's family, and on whatever looks at the processor when it runs; `benches/hot_paths` leaves the last out.
#![forbid(unsafe_code)]

use std::fmt::Write as _;

/// The committed counts.
pub const BASELINE: &str = include_str!("../../baseline/instructions.md");

/// The compiler of this build.
pub const COMPILER: &str = env!("GUARD_RUSTC");

/// The processors' family that the counts are of.
pub const ARCHITECTURE: &str = "x86_64";

/// Percent above the baseline that pass. The counts repeat to within a few tenths of a percent (the least paths are some dozens of
/// instructions, of which one is already a percent), while a second pass over a request, an allocation or a copy of a record costs far more.
pub const TOLERANCE_PERCENT: u64 = 3;

/// The same where the baseline is another compiler's, whose inlining and vectors differ.
pub const TOLERANCE_PERCENT_ELSEWHERE: u64 = 15;

/// Instructions that are always let pass: what a shorter path differs by when code is merely laid out otherwise.
const SLACK: u64 = 20;

/// The most that the path `name` may take in this build. `None` for one that has no baseline yet, and on another family of processors.
#[must_use]
pub fn limit(name: &str) -> Option<u64> {
    if !cfg!(target_arch = "x86_64") {
        return None;
    }
    let percent = if value(BASELINE, "compiler") == Some(COMPILER) {
        TOLERANCE_PERCENT
    } else {
        TOLERANCE_PERCENT_ELSEWHERE
    };
    count(BASELINE, name).map(|count| count + (count * percent).div_ceil(100) + SLACK)
}

/// The value of a line `- name: value`.
fn value<'a>(baseline: &'a str, name: &str) -> Option<&'a str> {
    let line = baseline
        .lines()
        .find_map(|line| line.strip_prefix("- ")?.strip_prefix(name));
    Some(line?.strip_prefix(':')?.trim())
}

/// The count in the row of that name.
fn count(baseline: &str, name: &str) -> Option<u64> {
    let mut rows = baseline.lines().filter_map(|line| {
        let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
        Some((cells.next()?, cells.next()?))
    });
    let (_, cell) = rows.find(|(path, _)| *path == name)?;
    cell.replace(',', "").parse().ok()
}

/// One path's count, as gungraun's runner tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// Function and case: `seal/16KiB`.
    pub name: String,
    /// Instructions.
    pub instructions: u64,
}

/// A baseline's table.
#[must_use]
pub fn table(counts: &[Count]) -> String {
    let mut out = String::from("| path | instructions |\n|---|---:|\n");
    for Count { name, instructions } in counts {
        let _ = writeln!(out, "| {name} | {instructions} |");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let counts = [("seal/64B", 70), ("seal/16KiB", 12_345)].map(|(name, instructions)| Count {
            name: name.into(),
            instructions,
        });
        let text = format!("- compiler: rustc 1\n\n{}", table(&counts));
        assert_eq!(value(&text, "compiler"), Some("rustc 1"));
        assert_eq!(count(&text, "seal/64B"), Some(70));
        assert_eq!(count(&text, "seal/16KiB"), Some(12_345));
        assert_eq!(count(&text, "seal"), None);
        assert_eq!(count(&text, "path"), None);
    }

    /// A path that is renamed must not lose its limit unseen: the benches refuse to run without one.
    #[test]
    fn the_baseline_can_be_read() {
        assert!(value(BASELINE, "compiler").is_some_and(|compiler| compiler.starts_with("rustc ")));
        assert!(BASELINE.lines().filter(|line| line.starts_with("| ")).count() > 10);
    }
}
