//! Segments: what is known of each log file, all partitions' in one bounded slab, linked oldest to newest.

use super::files;

/// A segment's place in the slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentIx(pub(super) u32);

impl SegmentIx {
    /// No segment.
    pub(super) const NONE: Self = Self(u32::MAX);
}

/// One log file and its index.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    /// Offset of its first record: its name.
    pub(super) base: i64,
    /// Bytes of whole batches in the log file.
    pub(super) bytes: u32,
    /// Entries in the index file.
    pub(super) index_entries: u32,
    /// The index file is not to be trusted: it is being made again.
    pub(super) index_bad: bool,
    /// Slot of the open log file.
    pub(super) log: u16,
    /// Slot of the open index file.
    pub(super) index: u16,
    /// Largest timestamp of its batches, −1 when none has one.
    pub(super) max_timestamp: i64,
    /// Wall clock at the first append, −1 when the clock was never set.
    pub(super) first_append: i64,
    /// Wall clock at the last append, −1 when the clock was never set.
    pub(super) last_append: i64,
    /// The older neighbour.
    pub(super) older: SegmentIx,
    /// The newer neighbour, or the next free place.
    pub(super) newer: SegmentIx,
}

impl Segment {
    /// An empty segment that begins at `base`.
    pub(super) const fn new(base: i64) -> Self {
        Self {
            base,
            bytes: 0,
            index_entries: 0,
            index_bad: false,
            log: files::NONE,
            index: files::NONE,
            max_timestamp: -1,
            first_append: -1,
            last_append: -1,
            older: SegmentIx::NONE,
            newer: SegmentIx::NONE,
        }
    }
}

/// The slab.
///
/// When full: [`Segments::take`] answers `None`, and active segments grow until retention frees one.
#[derive(Debug)]
pub(super) struct Segments {
    slab: Vec<Segment>,
    free: SegmentIx,
    segments_max: usize,
}

impl Segments {
    pub(super) fn new(segments: u32) -> Self {
        Self {
            slab: Vec::with_capacity(segments as usize),
            free: SegmentIx::NONE,
            segments_max: segments as usize,
        }
    }

    pub(super) const fn bytes(segments: u32) -> u64 {
        segments as u64 * size_of::<Segment>() as u64
    }

    /// Whether [`Segments::take`] has a place.
    pub(super) fn has_room(&self) -> bool {
        self.slab.len() < self.segments_max || self.free != SegmentIx::NONE
    }

    /// A place for a new segment.
    pub(super) fn take(&mut self, segment: Segment) -> Option<SegmentIx> {
        let ix = self.free;
        if let Some(place) = self.slab.get_mut(ix.0 as usize) {
            self.free = place.newer;
            *place = segment;
            return Some(ix);
        }
        if self.slab.len() == self.segments_max {
            return None;
        }
        let ix = SegmentIx(u32::try_from(self.slab.len()).ok()?);
        self.slab.push(segment);
        Some(ix)
    }

    /// Gives a place back.
    pub(super) fn give(&mut self, ix: SegmentIx) {
        if let Some(place) = self.slab.get_mut(ix.0 as usize) {
            *place = Segment::new(0);
            place.newer = self.free;
            self.free = ix;
        }
    }

    pub(super) fn at(&self, ix: SegmentIx) -> Option<&Segment> {
        self.slab.get(ix.0 as usize)
    }

    pub(super) fn at_mut(&mut self, ix: SegmentIx) -> Option<&mut Segment> {
        self.slab.get_mut(ix.0 as usize)
    }
}
