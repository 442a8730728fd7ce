//! Committed offsets: how far each group has read each partition.
//!
//! Found by group, topic and partition without allocating; walked by group, topic after topic. A topic goes by its id, so that one made
//! again under the same name begins without offsets. What holds is also in the metadata log, which is replayed into here at start.

use skerry_core::blob::{Blob, Blobs};
use skerry_core::machine::group::GroupKey;
use skerry_core::table::{Key, Row, Table, hash};
use skerry_core::time::Instant;
use skerry_core::wire::Uuid;

use crate::memory::{Owned, OwnedRows};

/// A commit, as it comes in and as it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commit<'a> {
    /// The next offset that the group reads.
    pub offset: i64,
    /// Leader epoch of the last record read; −1 unknown.
    pub leader_epoch: i32,
    /// The client's own note.
    pub metadata: &'a str,
    /// When, in milliseconds since 1970.
    pub committed_at: i64,
}

/// What became of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// The same was kept already, and is in the log.
    Same,
    /// It is kept now; once it is in the log, say [`Offsets::saved`].
    Changed(OffsetKey),
}

/// No place for another offset or its note. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffsetsFull;

/// Names a kept offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffsetKey(Key);

/// A list through one of the tables.
#[derive(Clone, Copy, Debug)]
struct List {
    first: Key,
    last: Key,
}

impl List {
    const EMPTY: Self = Self {
        first: Key::NONE,
        last: Key::NONE,
    };
}

/// A topic that a group has offsets of: at least one.
#[derive(Debug)]
struct Reading {
    group: GroupKey,
    topic: Uuid,
    partitions: List,
    /// The group's next topic.
    next: Key,
}

#[derive(Debug)]
struct Offset {
    reading: Key,
    partition: i32,
    offset: i64,
    leader_epoch: i32,
    committed_at: i64,
    /// When it was last committed in this life of the broker, or read back at its start.
    touched: Instant,
    note: Blob,
    /// The log has it as it is here.
    saved: bool,
    /// The next partition of the same topic.
    next: Key,
}

/// Every committed offset of every group.
///
/// When full: [`OffsetsFull`]; what is kept stays, and can still be committed anew unless it is the notes that are full.
/// Cost: two look-ups by hash.
pub struct Offsets {
    readings: Table<Reading, Owned>,
    offsets: Table<Offset, Owned>,
    notes: Blobs<Owned>,
    /// By the group's row.
    groups: Vec<List>,
    counts: Vec<u32>,
    seed: u32,
}

impl Offsets {
    /// Takes memory for `offsets` offsets of `groups` groups, and `note_bytes` for their notes. `seed`: unknown to peers.
    #[must_use]
    pub fn new(groups: u32, offsets: u32, note_bytes: u32, note_bytes_max: u32, seed: u32) -> Self {
        let tree = Blobs::<Owned>::tree_bytes(note_bytes as usize);
        Self {
            readings: Table::new(OwnedRows::new(offsets), OwnedRows::filled(0, offsets.max(1))),
            offsets: Table::new(OwnedRows::new(offsets), OwnedRows::filled(0, offsets.max(1))),
            notes: Blobs::new(
                OwnedRows::filled(0, note_bytes),
                OwnedRows::filled(0, u32::try_from(tree).unwrap_or(0)),
                note_bytes_max as usize,
            ),
            groups: vec![List::EMPTY; groups as usize],
            counts: vec![0; groups as usize],
            seed,
        }
    }

    /// Bytes that [`Offsets::new`] takes.
    #[must_use]
    pub const fn memory_bytes(groups: u32, offsets: u32, note_bytes: u32) -> usize {
        let per_offset = size_of::<Row<Reading>>() + size_of::<Row<Offset>>() + 2 * size_of::<u32>();
        offsets as usize * per_offset
            + groups as usize * (size_of::<List>() + size_of::<u32>())
            + note_bytes as usize
            + Blobs::<Owned>::tree_bytes(note_bytes as usize)
    }

    /// Offsets kept, of all groups.
    #[must_use]
    pub const fn len(&self) -> u32 {
        self.offsets.len()
    }

    /// Whether none is kept.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    /// Offsets kept of one group.
    #[must_use]
    pub fn count(&self, group: GroupKey) -> u32 {
        self.counts.get(group.row() as usize).copied().unwrap_or(0)
    }

    /// Bytes of notes in use.
    #[must_use]
    pub const fn note_bytes(&self) -> usize {
        self.notes.live()
    }

    /// What a group committed for a partition.
    #[must_use]
    pub fn get(&self, group: GroupKey, topic: Uuid, partition: i32) -> Option<Commit<'_>> {
        let reading = self.find_reading(group, topic)?;
        let offset = self.offsets.get(self.find_offset(reading, partition)?)?;
        Some(self.commit_of(offset))
    }

    /// Keeps a commit.
    pub fn put(
        &mut self,
        now: Instant,
        group: GroupKey,
        topic: Uuid,
        partition: i32,
        commit: &Commit<'_>,
    ) -> Result<Put, OffsetsFull> {
        let known = self.find_reading(group, topic);
        if let Some(key) = known.and_then(|reading| self.find_offset(reading, partition)) {
            return self.update(now, key, commit);
        }
        let note = self.notes.put(&[commit.metadata.as_bytes()]).map_err(|_| OffsetsFull)?;
        let reading = match known {
            Some(reading) => reading,
            None => match self.add_reading(group, topic) {
                Ok(reading) => reading,
                Err(full) => {
                    self.notes.free(note);
                    return Err(full);
                }
            },
        };
        let offset = Offset {
            reading,
            partition,
            offset: commit.offset,
            leader_epoch: commit.leader_epoch,
            committed_at: commit.committed_at,
            touched: now,
            note,
            saved: false,
            next: Key::NONE,
        };
        match self.offsets.insert(self.hash_offset(reading, partition), offset) {
            Ok(key) => {
                self.link_offset(reading, key);
                if let Some(count) = self.counts.get_mut(group.row() as usize) {
                    *count += 1;
                }
                Ok(Put::Changed(OffsetKey(key)))
            }
            Err(offset) => {
                self.notes.free(offset.note);
                if known.is_none() {
                    self.drop_reading(reading);
                }
                Err(OffsetsFull)
            }
        }
    }

    fn update(&mut self, now: Instant, key: Key, commit: &Commit<'_>) -> Result<Put, OffsetsFull> {
        let Some(kept) = self.offsets.get_mut(key) else {
            return Err(OffsetsFull);
        };
        kept.touched = now;
        let same_note = self.notes.bytes(&kept.note) == commit.metadata.as_bytes();
        if kept.saved && kept.offset == commit.offset && kept.leader_epoch == commit.leader_epoch && same_note {
            // Its age counts anew; a write for that alone would wear the disk out.
            kept.committed_at = commit.committed_at;
            return Ok(Put::Same);
        }
        if !same_note {
            self.notes
                .replace(&mut kept.note, commit.metadata.as_bytes())
                .map_err(|_| OffsetsFull)?;
        }
        kept.offset = commit.offset;
        kept.leader_epoch = commit.leader_epoch;
        kept.committed_at = commit.committed_at;
        kept.saved = false;
        Ok(Put::Changed(OffsetKey(key)))
    }

    /// The log has it now.
    pub fn saved(&mut self, OffsetKey(key): OffsetKey) {
        if let Some(offset) = self.offsets.get_mut(key) {
            offset.saved = true;
        }
    }

    /// Sets an offset that lies past the end of its log to that end.
    pub fn lower(&mut self, group: GroupKey, topic: Uuid, partition: i32, end: i64, saved: bool) {
        let reading = self.find_reading(group, topic);
        let key = reading.and_then(|reading| self.find_offset(reading, partition));
        if let Some(offset) = key.and_then(|key| self.offsets.get_mut(key)) {
            offset.offset = end;
            offset.leader_epoch = -1;
            offset.saved = saved;
        }
    }

    /// Drops one offset; whether it was there.
    pub fn remove(&mut self, group: GroupKey, topic: Uuid, partition: i32) -> bool {
        let Some(reading) = self.find_reading(group, topic) else {
            return false;
        };
        let Some(key) = self.find_offset(reading, partition) else {
            return false;
        };
        self.drop_offset(reading, key);
        true
    }

    /// Drops every offset of a group.
    pub fn remove_group(&mut self, group: GroupKey) {
        while let Some((reading, first)) = self.first_of(group) {
            self.drop_offset(reading, first);
        }
    }

    /// Drops every offset of a topic. Cost: one pass over the topics of all groups.
    pub fn remove_topic(&mut self, topic: Uuid) {
        for row in 0..self.readings.places() {
            let Some(reading) = self.readings.key_at(row) else {
                continue;
            };
            while let Some(found) = self.readings.get(reading).filter(|found| found.topic == topic) {
                self.drop_offset(reading, found.partitions.first);
            }
        }
    }

    /// The topics that a group has offsets of.
    pub fn topics(&self, group: GroupKey) -> impl Iterator<Item = Uuid> {
        self.readings_of(group).map(|(_, reading)| reading.topic)
    }

    /// The partitions that a group has offsets of.
    pub fn partitions(&self, group: GroupKey, topic: Uuid) -> impl Iterator<Item = (i32, Commit<'_>)> {
        self.offsets_of(group, topic)
            .map(|offset| (offset.partition, self.commit_of(offset)))
    }

    /// Of each of those: when it was committed by the wall clock, and when it was last touched in this life of the broker.
    pub fn ages(&self, group: GroupKey, topic: Uuid) -> impl Iterator<Item = (i32, i64, Instant)> {
        self.offsets_of(group, topic)
            .map(|offset| (offset.partition, offset.committed_at, offset.touched))
    }

    fn offsets_of(&self, group: GroupKey, topic: Uuid) -> impl Iterator<Item = &Offset> {
        let reading = self.find_reading(group, topic).and_then(|key| self.readings.get(key));
        let mut at = reading.map_or(Key::NONE, |reading| reading.partitions.first);
        core::iter::from_fn(move || {
            let offset = self.offsets.get(at)?;
            at = offset.next;
            Some(offset)
        })
    }

    fn commit_of(&self, offset: &Offset) -> Commit<'_> {
        Commit {
            offset: offset.offset,
            leader_epoch: offset.leader_epoch,
            metadata: self.notes.text(&offset.note),
            committed_at: offset.committed_at,
        }
    }

    fn readings_of(&self, group: GroupKey) -> impl Iterator<Item = (Key, &Reading)> {
        let mut at = self
            .groups
            .get(group.row() as usize)
            .map_or(Key::NONE, |list| list.first);
        core::iter::from_fn(move || {
            let key = at;
            let reading = self.readings.get(key)?;
            at = reading.next;
            Some((key, reading))
        })
    }

    fn first_of(&self, group: GroupKey) -> Option<(Key, Key)> {
        self.readings_of(group)
            .next()
            .map(|(key, reading)| (key, reading.partitions.first))
    }

    fn hash_reading(&self, group: GroupKey, topic: Uuid) -> u32 {
        hash(self.seed, &[&group.row().to_le_bytes(), &topic.0])
    }

    fn hash_offset(&self, reading: Key, partition: i32) -> u32 {
        hash(self.seed, &[&reading.row().to_le_bytes(), &partition.to_le_bytes()])
    }

    fn find_reading(&self, group: GroupKey, topic: Uuid) -> Option<Key> {
        self.readings.find(self.hash_reading(group, topic), |reading| {
            reading.group == group && reading.topic == topic
        })
    }

    fn find_offset(&self, reading: Key, partition: i32) -> Option<Key> {
        self.offsets.find(self.hash_offset(reading, partition), |offset| {
            offset.reading == reading && offset.partition == partition
        })
    }

    fn add_reading(&mut self, group: GroupKey, topic: Uuid) -> Result<Key, OffsetsFull> {
        let reading = Reading {
            group,
            topic,
            partitions: List::EMPTY,
            next: Key::NONE,
        };
        let hash = self.hash_reading(group, topic);
        let key = self.readings.insert(hash, reading).map_err(|_| OffsetsFull)?;
        let list = self.groups.get_mut(group.row() as usize).ok_or(OffsetsFull)?;
        let last = core::mem::replace(&mut list.last, key);
        match self.readings.get_mut(last) {
            Some(before) => before.next = key,
            None => list.first = key,
        }
        Ok(key)
    }

    fn link_offset(&mut self, reading: Key, key: Key) {
        let Some(reading) = self.readings.get_mut(reading) else {
            return;
        };
        let last = core::mem::replace(&mut reading.partitions.last, key);
        match self.offsets.get_mut(last) {
            Some(before) => before.next = key,
            None => reading.partitions.first = key,
        }
    }

    /// Takes an offset out, and its topic when it was the last.
    fn drop_offset(&mut self, reading: Key, key: Key) {
        let Some(of) = self.readings.get_mut(reading) else {
            return;
        };
        let group = of.group;
        let mut before = Key::NONE;
        let mut at = of.partitions.first;
        while at != key {
            let Some(offset) = self.offsets.get(at) else { return };
            before = at;
            at = offset.next;
        }
        let Some(gone) = self.offsets.remove(key) else { return };
        self.notes.free(gone.note);
        match self.offsets.get_mut(before) {
            Some(before) => before.next = gone.next,
            None => of.partitions.first = gone.next,
        }
        if of.partitions.last == key {
            of.partitions.last = before;
        }
        if let Some(count) = self.counts.get_mut(group.row() as usize) {
            *count = count.saturating_sub(1);
        }
        if of.partitions.first == Key::NONE {
            self.drop_reading(reading);
        }
    }

    fn drop_reading(&mut self, key: Key) {
        let Some(gone) = self.readings.remove(key) else { return };
        let Some(list) = self.groups.get_mut(gone.group.row() as usize) else {
            return;
        };
        if list.first == key {
            list.first = gone.next;
            if list.last == key {
                list.last = Key::NONE;
            }
            return;
        }
        let mut at = list.first;
        while let Some(reading) = self.readings.get_mut(at) {
            if reading.next == key {
                reading.next = gone.next;
                if list.last == key {
                    list.last = at;
                }
                return;
            }
            at = reading.next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skerry_core::machine::group::{GroupKey, Groups, Settings};
    use skerry_core::time::Millis;
    use std::collections::BTreeMap;

    const NOW: Instant = Instant::from_micros(5);

    fn groups<const N: usize>() -> [GroupKey; N] {
        let settings = Settings {
            initial_rebalance_delay: Millis(0),
            session_timeout_min: Millis(0),
            session_timeout_max: Millis(0),
            size_max: 1,
            group_bytes_max: 1,
            pending_max: 1,
            seed: 1,
        };
        let tree = Blobs::<Owned>::tree_bytes(4096) as u32;
        let mut table: Groups<Owned> = Groups::new(
            settings,
            (OwnedRows::new(N as u32), OwnedRows::filled(0, N as u32)),
            (OwnedRows::new(1), OwnedRows::filled(0, 1)),
            Blobs::new(OwnedRows::filled(0, 4096), OwnedRows::filled(0, tree), 4096),
        );
        core::array::from_fn(|n| table.on_offsets_found(NOW, &format!("g{n}")).unwrap())
    }

    fn commit(offset: i64, metadata: &str) -> Commit<'_> {
        Commit {
            offset,
            leader_epoch: 3,
            metadata,
            committed_at: 1000,
        }
    }

    #[test]
    fn what_is_kept_and_saved_is_the_same() {
        let mut offsets = Offsets::new(1, 4, 1024, 100, 9);
        let [group] = groups();
        let topic = Uuid([1; 16]);
        let Ok(Put::Changed(key)) = offsets.put(NOW, group, topic, 0, &commit(5, "a")) else {
            panic!("new");
        };
        let again = offsets.put(NOW, group, topic, 0, &commit(5, "a"));
        assert!(matches!(again, Ok(Put::Changed(_))), "the log does not have it yet");
        offsets.saved(key);
        let later = Commit {
            committed_at: 2000,
            ..commit(5, "a")
        };
        assert_eq!(offsets.put(NOW, group, topic, 0, &later), Ok(Put::Same));
        assert_eq!(offsets.get(group, topic, 0), Some(later), "its age counts anew");
        for changed in [
            commit(6, "a"),
            commit(5, "b"),
            Commit {
                leader_epoch: 4,
                ..commit(5, "a")
            },
        ] {
            assert_eq!(offsets.put(NOW, group, topic, 0, &changed), Ok(Put::Changed(key)));
            assert_eq!(offsets.get(group, topic, 0), Some(changed));
            offsets.saved(key);
        }
        assert_eq!(offsets.get(group, topic, 1), None);
        assert_eq!(offsets.get(group, Uuid([2; 16]), 0), None);
    }

    #[test]
    fn full_notes_leave_what_was_kept() {
        let mut offsets = Offsets::new(1, 4, 128, 100, 9);
        let [group] = groups();
        let (topic, long) = (Uuid([1; 16]), "n".repeat(90));
        offsets.put(NOW, group, topic, 0, &commit(1, &long)).unwrap();
        assert_eq!(offsets.put(NOW, group, topic, 1, &commit(2, &long)), Err(OffsetsFull));
        assert_eq!((offsets.len(), offsets.count(group)), (1, 1));
        offsets.put(NOW, group, topic, 1, &commit(2, "")).unwrap();
        assert_eq!(offsets.put(NOW, group, topic, 1, &commit(3, &long)), Err(OffsetsFull));
        assert_eq!(offsets.get(group, topic, 1), Some(commit(2, "")));
        assert_eq!(
            offsets.put(NOW, group, Uuid([2; 16]), 1, &commit(3, &long)),
            Err(OffsetsFull)
        );
        assert_eq!(offsets.topics(group).count(), 1, "a topic without offsets is none");
    }

    /// Goal: the table agrees with a map through any order of commits and removals, and gives everything back.
    /// Method: three groups, topics and partitions each; what is found, counted and walked is compared after every step.
    #[test]
    fn agrees_with_a_map() {
        let mut offsets = Offsets::new(3, 12, 4096, 100, 9);
        let groups: [GroupKey; 3] = groups();
        let topics = [1, 2, 3].map(|n| Uuid([n; 16]));
        let mut model: BTreeMap<(usize, usize, i32), (i64, String)> = BTreeMap::new();
        let mut seed = 11u32;
        for step in 0..5_000i64 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let pick = (seed >> 12) as usize;
            let (g, t, p) = (pick % 3, pick / 3 % 3, (pick / 9 % 3) as i32);
            match pick / 27 % 16 {
                0..=9 => {
                    let note = "x".repeat(pick / 432 % 80);
                    let known = model.contains_key(&(g, t, p));
                    match offsets.put(NOW, groups[g], topics[t], p, &commit(step, &note)) {
                        Ok(_) => drop(model.insert((g, t, p), (step, note))),
                        Err(OffsetsFull) => assert!(!known && model.len() == 12),
                    }
                }
                10..=13 => {
                    let there = model.remove(&(g, t, p)).is_some();
                    assert_eq!(offsets.remove(groups[g], topics[t], p), there);
                }
                14 => {
                    model.retain(|(_, topic, _), _| *topic != t);
                    offsets.remove_topic(topics[t]);
                }
                _ => {
                    model.retain(|(group, ..), _| *group != g);
                    offsets.remove_group(groups[g]);
                }
            }
            assert_eq!(offsets.len() as usize, model.len());
            let mut walked = BTreeMap::new();
            for (g, group) in groups.iter().enumerate() {
                let before = walked.len();
                for topic in offsets.topics(*group) {
                    for (p, kept) in offsets.partitions(*group, topic) {
                        let t = topics.iter().position(|t| *t == topic).unwrap();
                        assert_eq!(offsets.get(*group, topic, p), Some(kept));
                        walked.insert((g, t, p), (kept.offset, kept.metadata.to_string()));
                    }
                }
                assert_eq!(offsets.count(*group) as usize, walked.len() - before);
            }
            assert_eq!(walked, model);
        }
        groups.iter().for_each(|group| offsets.remove_group(*group));
        assert_eq!((offsets.len(), offsets.readings.len(), offsets.note_bytes()), (0, 0, 0));
    }
}
