//! Whether files are others than when they were read, by what `stat` says of them.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use skerry_core::time::{Instant, Millis};

/// How often files are looked at, at most.
pub const EVERY: Millis = Millis(5_000);

/// Files and how they stood.
#[derive(Default)]
pub struct Watch {
    files: Vec<Watched>,
    looked_at: Option<Instant>,
}

struct Watched {
    path: PathBuf,
    /// When it was read.
    read: Option<Stamp>,
    /// When it was last looked at.
    seen: Option<Stamp>,
}

/// What changes with a file's content, whether it is written or another is put in its place.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    /// Changes with every write, even when a tool sets the other time back.
    changed: (i64, i64),
}

impl Stamp {
    /// `None`: there is no such file, or it cannot be asked.
    fn of(path: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(path).ok()?;
        Some(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }
}

impl Watch {
    /// Takes the files as they are now for those that are read.
    pub fn note<'a>(&mut self, paths: impl Iterator<Item = &'a Path>) {
        self.files.clear();
        for path in paths {
            if self.files.iter().all(|file| file.path != path) {
                let stamp = Stamp::of(path);
                self.files.push(Watched {
                    path: path.into(),
                    read: stamp,
                    seen: stamp,
                });
            }
        }
    }

    /// Whether a file is another than when it was read, and all are as they were at the look before. Looks at most every [`EVERY`].
    pub fn look(&mut self, now: Instant) -> bool {
        if self.looked_at.is_some_and(|at| now.since(at) < EVERY) {
            return false;
        }
        self.looked_at = Some(now);
        let mut is_other = false;
        let mut is_still = true;
        for file in &mut self.files {
            let stamp = Stamp::of(&file.path);
            is_other |= stamp != file.read;
            is_still &= stamp == file.seen;
            file.seen = stamp;
        }
        is_other && is_still
    }
}
