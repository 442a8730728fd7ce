//! Names of directories and files, as Kafka's where Kafka has them.
//!
//! A partition's directory is `<topic>-<partition>`. In it: `<base offset, 20 digits>.log`, its `.index`, two checkpoints written in
//! turn, `failed` when the disk refused, and `.copy` files while that is mended.

use core::fmt::Write;

use crate::crc;

/// Longest topic name (Kafka's own bound).
const TOPIC_BYTES_MAX: usize = 249;
/// Topic, hyphen, partition number.
const DIR_BYTES_MAX: usize = TOPIC_BYTES_MAX + 1 + 10;
/// Directory, slash, 20 digits, the longest ending.
const PATH_BYTES_MAX: usize = DIR_BYTES_MAX + 1 + 20 + ".log.copy".len();

/// The longest name of a file or directory on Linux (`NAME_MAX`). A partition's directory may be as long, but for an ending.
const NAME_BYTES_MAX: usize = 255;
/// What is kept of a directory's name where it and an ending are longer.
const KEPT_BYTES: usize = 200;

/// A partition's directory.
pub(super) type Dir = heapless::String<DIR_BYTES_MAX>;
/// A path within the data directory.
pub(super) type Path = heapless::String<PATH_BYTES_MAX>;

/// The files that a segment has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Batches.
    Log,
    /// Where they are: derived.
    Index,
    /// A log file under way to replace one that the disk failed on.
    Copy,
}

impl Kind {
    /// How the file's name ends.
    pub(super) const fn ending(self) -> &'static str {
        match self {
            Self::Log => ".log",
            Self::Index => ".index",
            Self::Copy => ".log.copy",
        }
    }
}

/// A partition's directory; `None` for a name longer than Kafka allows.
pub(super) fn dir(topic: &str, partition: i32) -> Option<Dir> {
    let mut dir = Dir::new();
    write!(dir, "{topic}-{partition}").ok()?;
    Some(dir)
}

/// A segment's file.
pub(super) fn segment(dir: &Dir, base: i64, kind: Kind) -> Path {
    path(format_args!("{dir}/{base:020}{}", kind.ending()))
}

/// One of the two checkpoints.
pub(super) fn checkpoint(dir: &Dir, generation: u64) -> Path {
    path(format_args!("{dir}/checkpoint.{}", generation & 1))
}

/// The mark of a partition that the disk failed on.
pub(super) fn failed(dir: &Dir) -> Path {
    path(format_args!("{dir}/failed"))
}

/// The same, beside the directory, for when nothing can be made in it.
pub(super) fn failed_beside(dir: &Dir) -> Path {
    beside(dir, format_args!(".failed"))
}

/// The name of a directory for the moment in which it gets a new entry.
pub(super) fn mending(dir: &Dir) -> Path {
    beside(dir, format_args!(".mending"))
}

/// Where a directory goes that is to be removed or that nobody knows.
pub(super) fn aside(dir: &Dir, number: u32, why: &str) -> Path {
    beside(dir, format_args!(".{number}{why}"))
}

/// The base offset in a segment file's name.
pub(super) fn base(name: &str, kind: Kind) -> Option<i64> {
    let digits = name.strip_suffix(kind.ending())?;
    if digits.len() != 20 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

/// How the directory of a deleted partition ends.
pub(super) const DELETE: &str = "-delete";
/// How a directory ends that was in the way of a new partition.
pub(super) const STRAY: &str = "-stray";

/// The directory's name with an ending, always the same. Where that is too long for a file system, a checksum stands for its end.
fn beside(dir: &Dir, ending: core::fmt::Arguments<'_>) -> Path {
    let name = path(format_args!("{dir}{ending}"));
    match dir.get(..KEPT_BYTES) {
        Some(kept) if name.len() > NAME_BYTES_MAX => {
            let sum = (crc::CRC32C)(0, dir.as_bytes());
            path(format_args!("{kept}~{sum:08x}{ending}"))
        }
        _ => name,
    }
}

fn path(text: core::fmt::Arguments<'_>) -> Path {
    let mut path = Path::new();
    // A `Dir` and the longest ending fit: see `PATH_BYTES_MAX`.
    let fits = path.write_fmt(text).is_ok();
    debug_assert!(fits);
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_names_fit_and_come_back() {
        let longest = "t".repeat(TOPIC_BYTES_MAX);
        let dir = dir(&longest, i32::MAX).unwrap();
        for kind in [Kind::Log, Kind::Index, Kind::Copy] {
            let path = segment(&dir, i64::MAX, kind);
            let name = path.rsplit('/').next().unwrap();
            assert_eq!(base(name, kind), Some(i64::MAX));
        }
        assert!(aside(&dir, u32::MAX, DELETE).ends_with("-delete"));
        assert!(failed_beside(&dir).ends_with(".failed"));
        let other = super::dir(&longest, i32::MAX - 1).unwrap();
        for (name, others) in [
            (aside(&dir, u32::MAX, STRAY), aside(&other, u32::MAX, STRAY)),
            (failed_beside(&dir), failed_beside(&other)),
            (mending(&dir), mending(&other)),
        ] {
            assert!(name.len() <= NAME_BYTES_MAX, "{name}");
            assert_ne!(name, others);
        }
        assert_eq!(mending(&super::dir("t", 3).unwrap()), "t-3.mending");
        assert!(super::dir(&"t".repeat(250), i32::MAX).is_none());
        for name in [
            "1.log",
            "000000000000000000-1.log",
            "00000000000000000001.logs",
            "99999999999999999999.log",
        ] {
            assert_eq!(base(name, Kind::Log), None, "{name}");
        }
    }
}
