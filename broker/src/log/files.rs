//! The open files: a bounded set, the least recently used closed first.

/// A reader's claim on an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilePin(pub(super) u16);
