//! Which topics there are, and which log each partition has.
//!
//! Found by name, by id and by partition number without allocating; walked by name. The storage is `skerry_core`'s bounded table,
//! its rows taken at start and touched only as they come into use.

use skerry_core::table::{Key, Table, hash};
use skerry_core::wire::Uuid;

use super::config::TopicConfig;
use super::name::{TopicName, collide};
use crate::ids::{PartitionIx, TopicIx};
use crate::memory::{Owned, OwnedRows};

/// A topic.
#[derive(Clone, Debug)]
pub struct Topic {
    /// Its name.
    pub name: TopicName,
    /// Its id, never used for another topic.
    pub id: Uuid,
    /// What is set on it.
    pub config: TopicConfig,
    partitions: i32,
}

impl Topic {
    /// How many partitions it has, numbered from 0.
    #[must_use]
    pub const fn partitions(&self) -> i32 {
        self.partitions
    }
}

/// A partition of a topic: its log is in the slot `ix`.
#[derive(Clone, Copy, Debug)]
struct Partition {
    topic: TopicIx,
    number: i32,
    ix: PartitionIx,
}

/// Why a topic was not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertError {
    /// One of that name or id is there.
    Exists,
    /// No row is free.
    Full,
}

/// The table.
///
/// When full: [`TopicTable::insert`] and [`TopicTable::add_partition`] refuse; what is there stays.
pub struct TopicTable {
    topics: Table<Topic, Owned>,
    ids: Table<TopicIx, Owned>,
    partitions: Table<Partition, Owned>,
    /// Every topic, by name.
    order: Vec<TopicIx>,
    /// The topic and number of each log slot.
    owners: Vec<Option<(TopicIx, i32)>>,
    topics_max: u32,
    partitions_max: u32,
    seed: u32,
}

impl TopicTable {
    /// Takes memory for `topics` topics and `partitions` partitions of all of them. `seed`: any number that peers cannot know,
    /// so that they cannot choose names that hash alike.
    #[must_use]
    pub fn new(topics: u32, partitions: u32, seed: u32) -> Self {
        Self {
            topics: table(topics),
            ids: table(topics),
            partitions: table(partitions),
            order: Vec::with_capacity(topics as usize),
            owners: vec![None; partitions as usize],
            topics_max: topics,
            partitions_max: partitions,
            seed,
        }
    }

    /// Bytes that [`TopicTable::new`] takes.
    #[must_use]
    pub const fn memory_bytes(topics: u32, partitions: u32) -> usize {
        use core::mem::size_of;
        use skerry_core::table::Row;
        let per_topic =
            size_of::<Row<Topic>>() + size_of::<Row<TopicIx>>() + 2 * size_of::<u32>() + size_of::<TopicIx>();
        let per_partition = size_of::<Row<Partition>>() + size_of::<u32>() + size_of::<Option<(TopicIx, i32)>>();
        topics as usize * per_topic + partitions as usize * per_partition
    }

    /// How many topics there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.topics.len() as usize
    }

    /// Whether there are no topics.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.topics.is_empty()
    }

    /// Whether so many more topics and partitions fit.
    #[must_use]
    pub const fn has_room(&self, topics: u32, partitions: u32) -> bool {
        topics <= self.topics_max - self.topics.len() && partitions <= self.partitions_max - self.partitions.len()
    }

    /// Adds a topic without partitions.
    pub fn insert(&mut self, name: TopicName, id: Uuid, config: TopicConfig) -> Result<TopicIx, InsertError> {
        let Err(place) = self.place_of(&name) else {
            return Err(InsertError::Exists);
        };
        if self.by_id(id).is_some() {
            return Err(InsertError::Exists);
        }
        let by_name = self.hash(name.as_bytes());
        let topic = Topic {
            name,
            id,
            config,
            partitions: 0,
        };
        let key = self.topics.insert(by_name, topic).map_err(|_| InsertError::Full)?;
        let ix = TopicIx(key.row());
        // As many rows as topics, so this one is free.
        let _ = self.ids.insert(self.hash(&id.0), ix);
        self.order.insert(place, ix);
        Ok(ix)
    }

    /// Gives a topic its next partition, whose log is in the slot `log`; its number. `None`: no such topic, or no row is free.
    pub fn add_partition(&mut self, topic: TopicIx, log: PartitionIx) -> Option<i32> {
        let number = self.get(topic)?.partitions;
        let slot = log.0 as usize;
        self.owners.get(slot)?;
        let partition = Partition { topic, number, ix: log };
        let by_number = self.hash_partition(topic, number);
        self.partitions.insert(by_number, partition).ok()?;
        if let Some(owner) = self.owners.get_mut(slot) {
            *owner = Some((topic, number));
        }
        self.get_mut(topic)?.partitions += 1;
        Some(number)
    }

    /// Removes a topic and its partitions; the slots of their logs are the caller's to free, before or after.
    pub fn remove(&mut self, ix: TopicIx) -> Option<Topic> {
        let key = self.key(ix)?;
        let topic = self.topics.get(key)?;
        let (count, id) = (topic.partitions, topic.id);
        for number in 0..count {
            let Some(key) = self.partition_key(ix, number) else {
                continue;
            };
            let Some(partition) = self.partitions.remove(key) else {
                continue;
            };
            if let Some(owner) = self.owners.get_mut(partition.ix.0 as usize) {
                *owner = None;
            }
        }
        if let Some(key) = self.ids.find(self.hash(&id.0), |other| *other == ix) {
            self.ids.remove(key);
        }
        self.order.retain(|other| *other != ix);
        self.topics.remove(key)
    }

    /// The topic of that name. Cost: one hash of the name.
    #[must_use]
    pub fn by_name(&self, name: &str) -> Option<TopicIx> {
        let key = self
            .topics
            .find(self.hash(name.as_bytes()), |topic| topic.name == name)?;
        Some(TopicIx(key.row()))
    }

    /// The topic of that id.
    #[must_use]
    pub fn by_id(&self, id: Uuid) -> Option<TopicIx> {
        let is = |ix: &TopicIx| self.get(*ix).is_some_and(|topic| topic.id == id);
        let key = self.ids.find(self.hash(&id.0), is)?;
        Some(TopicIx(self.ids.get(key)?.0))
    }

    /// A topic.
    #[must_use]
    pub fn get(&self, ix: TopicIx) -> Option<&Topic> {
        self.topics.get(self.key(ix)?)
    }

    /// A topic, whose name and id must stay.
    pub fn get_mut(&mut self, ix: TopicIx) -> Option<&mut Topic> {
        self.topics.get_mut(self.key(ix)?)
    }

    /// The log of a partition.
    #[must_use]
    pub fn partition(&self, topic: TopicIx, number: i32) -> Option<PartitionIx> {
        let key = self.partition_key(topic, number)?;
        Some(self.partitions.get(key)?.ix)
    }

    /// The partitions of a topic, by number.
    pub fn partitions(&self, topic: TopicIx) -> impl Iterator<Item = (i32, PartitionIx)> {
        let count = self.get(topic).map_or(0, Topic::partitions);
        (0..count).filter_map(move |number| Some((number, self.partition(topic, number)?)))
    }

    /// Whose log is in a slot.
    #[must_use]
    pub fn owner(&self, log: PartitionIx) -> Option<(TopicIx, i32)> {
        self.owners.get(log.0 as usize).copied().flatten()
    }

    /// Every topic, by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = TopicIx> {
        self.order.iter().copied()
    }

    /// The topics named `from` and after it, by name.
    pub fn iter_from(&self, from: &str) -> impl ExactSizeIterator<Item = TopicIx> {
        let (Ok(place) | Err(place)) = self.place_of(from);
        self.order.get(place..).unwrap_or_default().iter().copied()
    }

    /// A topic whose name is another one than `name` but the same in metrics. Cost: one pass over all names when `name` has a `.` or
    /// `_`, else none.
    #[must_use]
    pub fn collision(&self, name: &str) -> Option<&str> {
        if !name.contains(['.', '_']) {
            return None;
        }
        let names = self.order.iter().filter_map(|ix| Some(self.get(*ix)?.name.as_str()));
        names.into_iter().find(|other| *other != name && collide(other, name))
    }

    fn key(&self, ix: TopicIx) -> Option<Key> {
        self.topics.key_at(ix.0)
    }

    fn partition_key(&self, topic: TopicIx, number: i32) -> Option<Key> {
        let is = |partition: &Partition| (partition.topic, partition.number) == (topic, number);
        self.partitions.find(self.hash_partition(topic, number), is)
    }

    fn place_of(&self, name: &str) -> Result<usize, usize> {
        self.order.binary_search_by(|ix| {
            let other = self.get(*ix).map_or("", |topic| topic.name.as_str());
            other.cmp(name)
        })
    }

    fn hash(&self, bytes: &[u8]) -> u32 {
        hash(self.seed, &[bytes])
    }

    fn hash_partition(&self, topic: TopicIx, number: i32) -> u32 {
        let mixed = (u64::from(topic.0) << 32 | u64::from(number as u32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> 32) as u32
    }
}

fn table<T>(rows: u32) -> Table<T, Owned> {
    Table::new(OwnedRows::new(rows), OwnedRows::filled(0, rows.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topics::topic_name;

    fn id(n: u32) -> Uuid {
        let mut id = [0; 16];
        id[..4].copy_from_slice(&n.to_le_bytes());
        Uuid(id)
    }

    /// Goal: every way to find a topic or partition agrees, through any order of additions and removals.
    /// Method: a plain list of topics is the model; a linear generator picks what happens.
    #[test]
    fn agrees_with_a_list_through_any_order() {
        const TOPICS: u32 = 7;
        const PARTITIONS: u32 = 20;
        let mut table = TopicTable::new(TOPICS, PARTITIONS, 99);
        let mut free: Vec<u32> = (0..PARTITIONS).collect();
        let mut model: Vec<(TopicIx, String, Uuid, Vec<PartitionIx>)> = Vec::new();
        let mut seed = 5u32;
        for step in 0..4000 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let pick = (seed >> 16) as usize;
            let name = format!("topic.{}", pick % 11);
            match pick / 11 % 4 {
                0 => {
                    let known = model.iter().any(|(_, other, ..)| *other == name);
                    let got = table.insert(topic_name(&name).unwrap(), id(step), TopicConfig::default());
                    match got {
                        Ok(ix) => model.push((ix, name, id(step), Vec::new())),
                        Err(InsertError::Exists) => assert!(known),
                        Err(InsertError::Full) => assert_eq!(model.len(), TOPICS as usize),
                    }
                }
                1 if !model.is_empty() => {
                    let at = pick % model.len();
                    let (ix, name, _, logs) = model.swap_remove(at);
                    assert_eq!(table.remove(ix).unwrap().name.as_str(), name);
                    assert!(table.remove(ix).is_none());
                    free.extend(logs.iter().map(|ix| ix.0));
                }
                _ if !model.is_empty() => {
                    let at = pick % model.len();
                    let (ix, _, _, logs) = &mut model[at];
                    match free.pop() {
                        Some(log) => {
                            let log = PartitionIx(log);
                            assert_eq!(table.add_partition(*ix, log), Some(logs.len() as i32));
                            logs.push(log);
                        }
                        None => assert!(!table.has_room(0, 1)),
                    }
                }
                _ => {}
            }
            assert_eq!(table.len(), model.len());
            let mut names: Vec<_> = model.iter().map(|(_, name, ..)| name.clone()).collect();
            names.sort();
            let walked: Vec<_> = table.iter().map(|ix| table.get(ix).unwrap().name.to_string()).collect();
            assert_eq!(walked, names);
            let later: Vec<_> = table.iter_from(&names.get(2).cloned().unwrap_or("x".into())).collect();
            assert_eq!(later.len(), names.len().saturating_sub(2));
            for (ix, name, id, logs) in &model {
                assert_eq!(table.by_name(name), Some(*ix));
                assert_eq!(table.by_id(*id), Some(*ix));
                let got: Vec<_> = table.partitions(*ix).collect();
                let want: Vec<_> = (0..).zip(logs.iter().copied()).collect();
                assert_eq!(got, want);
                assert_eq!(table.partition(*ix, logs.len() as i32), None);
                assert_eq!(table.partition(*ix, -1), None);
                for (number, log) in want {
                    assert_eq!(table.owner(log), Some((*ix, number)));
                }
            }
            assert!(free.iter().all(|log| table.owner(PartitionIx(*log)).is_none()));
        }
    }

    #[test]
    fn collisions_are_named() {
        let mut table = TopicTable::new(4, 4, 0);
        table
            .insert(topic_name("a.b").unwrap(), id(1), TopicConfig::default())
            .unwrap();
        assert_eq!(table.collision("a_b"), Some("a.b"));
        assert_eq!(table.collision("a.b"), None);
        assert_eq!(table.collision("ab"), None);
    }

    #[test]
    fn room_is_counted() {
        let mut table = TopicTable::new(1, 2, 0);
        assert!(table.has_room(1, 2));
        assert!(!table.has_room(2, 0));
        assert!(!table.has_room(0, 3));
        let a = table
            .insert(topic_name("a").unwrap(), id(1), TopicConfig::default())
            .unwrap();
        assert!(!table.has_room(1, 0));
        table.add_partition(a, PartitionIx(1)).unwrap();
        assert!(table.has_room(0, 1));
        assert!(!table.has_room(0, 2));
        assert_eq!(table.add_partition(a, PartitionIx(2)), None);
        let other = table.insert(topic_name("b").unwrap(), id(2), TopicConfig::default());
        assert_eq!(other, Err(InsertError::Full));
    }
}
