//! The broker's own keys: small numbers that say what they number.

/// A partition's slot in the log table: the one key for a partition while the broker runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PartitionIx(pub u32);

/// A topic's slot in the topic table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TopicIx(pub u32);

/// A connection: its slot, and how often the slot had been used before, so that a late answer never reaches a stranger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnId {
    index: u32,
    generation: u32,
}

impl ConnId {
    /// From a slot and its use count.
    #[must_use]
    pub const fn from_parts(index: u32, generation: u32) -> Self {
        Self { index, generation }
    }

    /// The slot.
    #[must_use]
    pub const fn index(self) -> usize {
        self.index as usize
    }

    /// The use count.
    #[must_use]
    pub const fn generation(self) -> u32 {
        self.generation
    }
}
