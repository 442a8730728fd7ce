//! The topics and what the broker remembers of them: every change goes to the metadata log first, and is there after a crash once
//! it has been answered.

use core::ops::Deref;
use std::collections::HashMap;

use log::{info, warn};
use skerry_core::record::Crc32c;
use skerry_core::time::{Instant, Timestamp};
use skerry_core::wire::Uuid;
use skerry_net::host::{Clock, Disk, DiskError, FileId};

use super::config::{DefaultTexts, TopicConfig};
use super::meta_properties::{self, ClusterId, MetaError};
use super::metadata_log::{METADATA_LOG, MetadataError, MetadataLog, Records};
use super::name::{TopicName, topic_name};
use super::producer_ids::ProducerIds;
use super::record::MetadataRecord;
use super::table::{InsertError, TopicTable};
use crate::config::{Config, TopicDefaults};
use crate::ids::TopicIx;
use crate::log::Logs;

/// Producer ids that are left out when the record of those given out may be lost: more than any broker gives out.
const IDS_SKIPPED_AFTER_LOSS: i64 = 1 << 40;

/// Topics, and the metadata log behind them. To look things up it is a [`TopicTable`].
///
/// When full: a topic that needs more rows than are free is refused.
pub struct Catalog {
    table: TopicTable,
    log: MetadataLog,
    producer_ids: ProducerIds,
    leader_epoch: i32,
    cluster_id: ClusterId,
    defaults: TopicDefaults,
    default_texts: DefaultTexts,
    /// Topics made since the last sync.
    unsynced: Vec<TopicIx>,
}

/// Why the broker does not start.
#[derive(Debug)]
pub enum OpenError {
    /// `meta.properties` belongs to another broker, or cannot be read or made.
    Meta(MetaError),
    /// The disk cannot be worked with.
    Disk(DiskError),
    /// More topics than `skerry.limits.topics`, or partitions than `skerry.limits.partitions`, are there already.
    Limits {
        /// Topics on the disk.
        topics: usize,
        /// Their partitions.
        partitions: u64,
    },
}

impl core::fmt::Display for OpenError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Meta(error) => error.fmt(f),
            Self::Disk(error) => write!(f, "{METADATA_LOG}: {error}"),
            Self::Limits { topics, partitions } => write!(
                f,
                "the data directory holds {topics} topics with {partitions} partitions: \
                 raise skerry.limits.topics or skerry.limits.partitions"
            ),
        }
    }
}

impl core::error::Error for OpenError {}

impl From<MetaError> for OpenError {
    fn from(error: MetaError) -> Self {
        Self::Meta(error)
    }
}

impl From<DiskError> for OpenError {
    fn from(error: DiskError) -> Self {
        Self::Disk(error)
    }
}

/// Why a topic was not made or changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeError {
    /// One of that name is there.
    Exists,
    /// There is no such topic.
    Unknown,
    /// No rows are free for it or its partitions.
    Full,
    /// The metadata log takes no change.
    Storage,
}

impl From<MetadataError> for ChangeError {
    fn from(_: MetadataError) -> Self {
        Self::Storage
    }
}

impl Deref for Catalog {
    type Target = TopicTable;

    fn deref(&self) -> &TopicTable {
        &self.table
    }
}

/// What replaying the metadata log gives.
struct Replay {
    topics: HashMap<Uuid, ReplayedTopic>,
    leader_epoch: i32,
    producer_ids: ProducerIds,
}

struct ReplayedTopic {
    name: TopicName,
    partitions: i32,
    config: TopicConfig,
}

impl Replay {
    fn on(&mut self, record: &MetadataRecord<'_>) {
        match record {
            MetadataRecord::TopicCreated {
                id,
                name,
                partitions,
                config,
            } => {
                let Ok(name) = topic_name(name) else { return };
                // A name that is there again: the record of its deletion was lost.
                self.topics.retain(|_, topic| topic.name != name);
                let topic = ReplayedTopic {
                    name,
                    partitions: *partitions,
                    config: config.clone(),
                };
                self.topics.insert(*id, topic);
            }
            MetadataRecord::TopicDeleted { id } => {
                self.topics.remove(id);
            }
            MetadataRecord::PartitionsAdded { id, partitions } => {
                if let Some(topic) = self.topics.get_mut(id) {
                    topic.partitions = topic.partitions.max(*partitions);
                }
            }
            MetadataRecord::TopicConfigured { id, config } => {
                if let Some(topic) = self.topics.get_mut(id) {
                    topic.config.clone_from(config);
                }
            }
            MetadataRecord::BrokerStarted { leader_epoch } => {
                self.leader_epoch = self.leader_epoch.max(*leader_epoch);
            }
            MetadataRecord::ProducerIdsReserved { end } => self.producer_ids.on_reserved(*end),
            MetadataRecord::OffsetCommitted(_)
            | MetadataRecord::OffsetDeleted { .. }
            | MetadataRecord::GroupDeleted { .. } => {}
        }
    }
}

impl Catalog {
    /// Reads what the data directory holds, or makes it: identity, topics, the logs of their partitions, and a leader epoch above
    /// every earlier one. `each` gets every record of the metadata log, in order: what groups committed is among them.
    ///
    /// Where the metadata log was damaged or is gone, topics whose partitions have directories are taken in again, and
    /// producer ids go on far above any that were given out.
    /// Errors: see [`OpenError`]; no damage is one.
    pub fn open<H: Disk + Clock>(
        host: &mut H,
        config: &Config,
        crc: Crc32c,
        logs: &mut Logs,
        now: Instant,
        wall: Timestamp,
        each: &mut dyn FnMut(&MetadataRecord<'_>),
    ) -> Result<Self, OpenError> {
        let cluster_id = random_uuid(host);
        let cluster_id = meta_properties::open(host, config.node_id, cluster_id)?;
        let mut replay = Replay {
            topics: HashMap::new(),
            leader_epoch: -1,
            producer_ids: ProducerIds::default(),
        };
        let (log, opened) = MetadataLog::open(host, crc, &mut |record| {
            replay.on(&record);
            each(&record);
        })?;

        logs.purge(host);
        let mut seed = [0; 4];
        host.random(&mut seed);
        let mut catalog = Self {
            table: TopicTable::new(config.limits.topics, config.limits.partitions, u32::from_le_bytes(seed)),
            log,
            producer_ids: replay.producer_ids,
            leader_epoch: replay.leader_epoch,
            cluster_id,
            defaults: config.topic,
            default_texts: DefaultTexts::new(&config.topic),
            unsynced: Vec::with_capacity(config.limits.topics as usize),
        };
        let strangers = strangers(host, &replay.topics)?;
        if opened.damaged || (opened.records == 0 && !strangers.is_empty()) {
            catalog.adopt(host, &mut replay.topics, strangers);
            let ids_end = replay.producer_ids.end().saturating_add(IDS_SKIPPED_AFTER_LOSS);
            catalog.producer_ids.on_reserved(ids_end);
        } else if let Some((name, _)) = strangers.iter().next() {
            warn!(
                "{} directories belong to no topic and are left alone, such as those of {name}",
                strangers.len()
            );
        }
        catalog.take_in(host, replay.topics, logs, now, wall)?;
        catalog.begin_epoch(host, logs);
        Ok(catalog)
    }

    /// Bytes that [`Catalog::open`] takes for so many topics and partitions.
    #[must_use]
    pub const fn memory_bytes(topics: u32, partitions: u32) -> usize {
        TopicTable::memory_bytes(topics, partitions)
            + MetadataLog::MEMORY_BYTES
            + size_of::<Self>()
            + topics as usize * size_of::<TopicIx>()
    }

    /// Adds the topics and partitions that only the directories tell of to those that were replayed, and remembers them.
    fn adopt<H: Disk + Clock>(
        &mut self,
        host: &mut H,
        topics: &mut HashMap<Uuid, ReplayedTopic>,
        strangers: HashMap<TopicName, i32>,
    ) {
        for (name, partitions) in strangers {
            let others = topics.values().filter(|topic| topic.name != name);
            let (count, sum) = others.fold((1u32, partitions), |(count, sum), topic| {
                (count.saturating_add(1), sum.saturating_add(topic.partitions))
            });
            if !self.table.has_room(count, sum.unsigned_abs()) {
                warn!(
                    "there is no room for {partitions} partitions of {name}, which directories tell of; they are left alone"
                );
                continue;
            }
            warn!("topic {name} is taken in again with {partitions} partitions, as its directories tell");
            let known = topics.iter_mut().find(|(_, topic)| topic.name == name);
            let record = match known {
                Some((id, topic)) => {
                    topic.partitions = partitions;
                    MetadataRecord::PartitionsAdded { id: *id, partitions }
                }
                None => {
                    let id = random_uuid(host);
                    let config = TopicConfig::default();
                    let topic = ReplayedTopic {
                        name: name.clone(),
                        partitions,
                        config: config.clone(),
                    };
                    topics.insert(id, topic);
                    MetadataRecord::TopicCreated {
                        id,
                        name: &name,
                        partitions,
                        config,
                    }
                }
            };
            if let Err(error) = self.log.append(host, &record) {
                warn!("topic {name} could not be written to {METADATA_LOG}: {error}");
            }
        }
    }

    /// Fills the table and opens the logs.
    fn take_in<D: Disk>(
        &mut self,
        disk: &mut D,
        topics: HashMap<Uuid, ReplayedTopic>,
        logs: &mut Logs,
        now: Instant,
        wall: Timestamp,
    ) -> Result<(), OpenError> {
        let partitions = topics
            .values()
            .map(|topic| u64::from(topic.partitions.unsigned_abs()))
            .sum();
        let limits = OpenError::Limits {
            topics: topics.len(),
            partitions,
        };
        let room = match (u32::try_from(topics.len()), u32::try_from(partitions)) {
            (Ok(topics), Ok(partitions)) => self.table.has_room(topics, partitions),
            _ => false,
        };
        if !room {
            return Err(limits);
        }
        let mut topics: Vec<_> = topics.into_iter().collect();
        topics.sort_by(|(_, a), (_, b)| a.name.cmp(&b.name));
        for (id, topic) in topics {
            let settings = topic.config.log_settings(&self.defaults);
            let Ok(ix) = self.table.insert(topic.name.clone(), id, topic.config.clone()) else {
                return Err(limits);
            };
            for number in 0..topic.partitions {
                let log = logs.open(disk, &topic.name, number, &settings, now, wall);
                if log.ok().and_then(|log| self.table.add_partition(ix, log)).is_none() {
                    return Err(limits);
                }
            }
        }
        Ok(())
    }

    /// Sets the leader epoch above every one that was replayed or is in a log, and remembers it. A disk that takes no write now may
    /// still be read from: the logs themselves then tell the next start of this epoch.
    fn begin_epoch<D: Disk>(&mut self, disk: &mut D, logs: &Logs) {
        let in_logs = self
            .iter()
            .flat_map(|ix| self.partitions(ix))
            .map(|(_, log)| logs.leader_epoch(log));
        let newest = in_logs.max().unwrap_or(-1).max(self.leader_epoch);
        self.leader_epoch = newest.saturating_add(1);
        let started = MetadataRecord::BrokerStarted {
            leader_epoch: self.leader_epoch,
        };
        let remembered = self.log.append(disk, &started).and_then(|_| self.log.sync(disk));
        if let Err(error) = remembered {
            warn!(
                "leader epoch {} could not be written to {METADATA_LOG}: {error}",
                self.leader_epoch
            );
        }
        info!("{} topics, leader epoch {}", self.len(), self.leader_epoch);
    }

    /// The cluster's id.
    #[must_use]
    pub fn cluster_id(&self) -> &str {
        &self.cluster_id
    }

    /// The leader epoch of this start, the same for every partition.
    #[must_use]
    pub const fn leader_epoch(&self) -> i32 {
        self.leader_epoch
    }

    /// What a topic without its own setting has.
    #[must_use]
    pub const fn defaults(&self) -> &TopicDefaults {
        &self.defaults
    }

    /// The same as texts.
    #[must_use]
    pub const fn default_texts(&self) -> &DefaultTexts {
        &self.default_texts
    }

    /// The metadata log, for what groups commit.
    pub const fn log_mut(&mut self) -> &mut MetadataLog {
        &mut self.log
    }

    /// Whether the metadata log takes no changes until [`Catalog::tidy`] has rewritten it.
    #[must_use]
    pub const fn has_failed(&self) -> bool {
        self.log.has_failed()
    }

    /// The metadata log's file, for the flusher.
    #[must_use]
    pub const fn file(&self) -> FileId {
        self.log.file()
    }

    /// Makes a topic of that many partitions (at least 1; the caller has looked at name and settings). Not durable before
    /// [`Catalog::sync`].
    ///
    /// Errors: `Exists`, `Full`, `Storage`; nothing has changed then.
    pub fn create<H: Disk + Clock>(
        &mut self,
        host: &mut H,
        logs: &mut Logs,
        name: &TopicName,
        partitions: i32,
        config: &TopicConfig,
    ) -> Result<TopicIx, ChangeError> {
        let wanted = u32::try_from(partitions).map_err(|_| ChangeError::Full)?;
        if self.table.by_name(name).is_some() {
            return Err(ChangeError::Exists);
        }
        if !self.table.has_room(1, wanted) {
            return Err(ChangeError::Full);
        }
        let mut id = random_uuid(host);
        while self.table.by_id(id).is_some() {
            id = random_uuid(host);
        }
        let ix = self
            .table
            .insert(name.clone(), id, config.clone())
            .map_err(|error| match error {
                InsertError::Exists => ChangeError::Exists,
                InsertError::Full => ChangeError::Full,
            })?;
        let record = MetadataRecord::TopicCreated {
            id,
            name,
            partitions,
            config: config.clone(),
        };
        let made = self
            .make_logs(host, logs, ix, name, config, partitions)
            .and_then(|()| Ok(self.log.append(host, &record).map(|_| ())?));
        if let Err(error) = made {
            self.forget(host, logs, ix);
            return Err(error);
        }
        self.unsynced.push(ix);
        Ok(ix)
    }

    /// Gives a topic partitions until it has `partitions`. Not durable before [`Catalog::sync`].
    ///
    /// Errors: `Unknown`, `Full`, `Storage`; nothing has changed then.
    pub fn add_partitions<D: Disk>(
        &mut self,
        disk: &mut D,
        logs: &mut Logs,
        ix: TopicIx,
        partitions: i32,
    ) -> Result<(), ChangeError> {
        let topic = self.table.get(ix).ok_or(ChangeError::Unknown)?;
        let (id, name, config, before) = (topic.id, topic.name.clone(), topic.config.clone(), topic.partitions());
        let more = u32::try_from(partitions.saturating_sub(before)).map_err(|_| ChangeError::Full)?;
        if !self.table.has_room(0, more) {
            return Err(ChangeError::Full);
        }
        // Written first: partitions, unlike a new topic, are not taken back.
        self.log
            .append(disk, &MetadataRecord::PartitionsAdded { id, partitions })?;
        self.make_logs(disk, logs, ix, &name, &config, partitions)
    }

    /// Changes what is set on a topic, at once also for its logs. Not durable before [`Catalog::sync`].
    ///
    /// Errors: `Unknown`, `Storage`; nothing has changed then.
    pub fn configure<D: Disk>(
        &mut self,
        disk: &mut D,
        logs: &mut Logs,
        ix: TopicIx,
        config: &TopicConfig,
    ) -> Result<(), ChangeError> {
        let topic = self.table.get_mut(ix).ok_or(ChangeError::Unknown)?;
        if topic.config == *config {
            return Ok(());
        }
        let record = MetadataRecord::TopicConfigured {
            id: topic.id,
            config: config.clone(),
        };
        self.log.append(disk, &record)?;
        topic.config.clone_from(config);
        let settings = config.log_settings(&self.defaults);
        for (_, log) in self.table.partitions(ix) {
            logs.configure(log, &settings);
        }
        Ok(())
    }

    /// Writes that a topic is gone. It is there until [`Catalog::forget`], after [`Catalog::sync`].
    ///
    /// Errors: `Unknown`, `Storage`.
    pub fn delete<D: Disk>(&mut self, disk: &mut D, ix: TopicIx) -> Result<(), ChangeError> {
        let id = self.get(ix).ok_or(ChangeError::Unknown)?.id;
        self.log.append(disk, &MetadataRecord::TopicDeleted { id })?;
        Ok(())
    }

    /// Removes a topic and its logs from the tables; their directories are renamed, which [`Logs::sync_names`] makes durable.
    pub fn forget<D: Disk>(&mut self, disk: &mut D, logs: &mut Logs, ix: TopicIx) {
        for (number, log) in self.table.partitions(ix) {
            if let Err(error) = logs.delete(disk, log)
                && error != DiskError::NotFound
            {
                warn!("partition {number} of a deleted topic could not be renamed: {error}");
            }
        }
        self.table.remove(ix);
    }

    /// Makes every change so far durable, in a blocking call.
    ///
    /// Errors: `Storage`; the topics made since the last sync are gone then. That one was made may still be found at the next start,
    /// as after any answer that says "storage error".
    pub fn sync<D: Disk>(&mut self, disk: &mut D, logs: &mut Logs) -> Result<(), ChangeError> {
        let synced = self.log.sync(disk);
        while let Some(ix) = self.unsynced.pop() {
            if synced.is_err() {
                self.forget(disk, logs, ix);
            }
        }
        Ok(synced?)
    }

    /// A producer id that was never given out. Cost: a blocking sync for one in a thousand.
    pub fn next_producer_id<D: Disk>(&mut self, disk: &mut D) -> Result<i64, ChangeError> {
        Ok(self.producer_ids.next(disk, &mut self.log)?)
    }

    /// Rewrites the metadata log when it is due; `offsets` is what groups have committed. True: [`Catalog::file`] is another one, and
    /// everything written so far is durable. For a moment when nothing else is to be done: it blocks, see [`MetadataLog::tidy`].
    pub fn tidy<D: Disk>(&mut self, disk: &mut D, offsets: Records<'_>) -> Result<bool, DiskError> {
        if !self.log.is_tidy_due() {
            return Ok(false);
        }
        let Self {
            table,
            log,
            producer_ids,
            leader_epoch,
            ..
        } = self;
        log.tidy(disk, &|emit| {
            emit(&MetadataRecord::BrokerStarted {
                leader_epoch: *leader_epoch,
            });
            if let Some(reserved) = producer_ids.record() {
                emit(&reserved);
            }
            for topic in table.iter().filter_map(|ix| table.get(ix)) {
                emit(&MetadataRecord::TopicCreated {
                    id: topic.id,
                    name: &topic.name,
                    partitions: topic.partitions(),
                    config: topic.config.clone(),
                });
            }
            offsets(emit);
        })
    }

    /// Makes the logs that a topic lacks of `partitions`.
    fn make_logs<D: Disk>(
        &mut self,
        disk: &mut D,
        logs: &mut Logs,
        ix: TopicIx,
        name: &str,
        config: &TopicConfig,
        partitions: i32,
    ) -> Result<(), ChangeError> {
        let settings = config.log_settings(&self.defaults);
        let before = self.get(ix).ok_or(ChangeError::Unknown)?.partitions();
        for number in before..partitions {
            let log = logs
                .create(disk, name, number, &settings)
                .map_err(|_| ChangeError::Full)?;
            self.table.add_partition(ix, log).ok_or(ChangeError::Full)?;
        }
        Ok(())
    }
}

/// A random id, as Kafka makes them: its text never begins with `-`, which command lines would take for an option.
pub fn random_uuid<C: Clock>(clock: &mut C) -> Uuid {
    loop {
        let mut id = [0; 16];
        clock.random(&mut id);
        // Version 4, variant 1 (RFC 9562), as Java's UUID.randomUUID.
        let [_, _, _, _, _, _, version, _, variant, ..] = &mut id;
        *version = *version & 0x0F | 0x40;
        *variant = *variant & 0x3F | 0x80;
        // The first character is the upper six bits; `-` is 62.
        if id.first().is_some_and(|first| first >> 2 != 62) {
            return Uuid(id);
        }
    }
}

/// Topics that the directories tell of and `topics` does not, each with one more than its highest partition.
fn strangers<D: Disk>(
    disk: &mut D,
    topics: &HashMap<Uuid, ReplayedTopic>,
) -> Result<HashMap<TopicName, i32>, DiskError> {
    let mut found: HashMap<TopicName, i32> = HashMap::new();
    disk.list("", &mut |entry| {
        let Some((name, number)) = partition_directory(entry) else {
            return;
        };
        let partitions = found.entry(name).or_insert(0);
        *partitions = (*partitions).max(number.saturating_add(1));
    })?;
    for topic in topics.values() {
        if found
            .get(&topic.name)
            .is_some_and(|partitions| *partitions <= topic.partitions)
        {
            found.remove(&topic.name);
        }
    }
    Ok(found)
}

/// Topic and number of `<topic>-<number>`. Directories on their way out have another ending.
fn partition_directory(entry: &str) -> Option<(TopicName, i32)> {
    let (name, number) = entry.rsplit_once('-')?;
    let canonical = number == "0" || (number.bytes().all(|b| b.is_ascii_digit()) && !number.starts_with('0'));
    if !canonical {
        return None;
    }
    Some((topic_name(name).ok()?, number.parse().ok()?))
}
