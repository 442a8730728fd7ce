//! The coordinator's part of the metadata log: commits and deletions are written before they are answered, and replayed at start.

use log::{info, warn};
use skerry_core::api::offset_commit::{OffsetCommitRequest, OffsetCommitRequestPartition};
use skerry_core::api::offset_delete::OffsetDeleteRequest;
use skerry_core::error_code::ErrorCode;
use skerry_core::machine::group::{Claim, GroupError, GroupKey, Groups, StateId};
use skerry_core::time::{Instant, Millis, Timestamp};
use skerry_core::wire::Uuid;
use skerry_net::host::Disk;

use super::Coordinator;
use super::offsets::{Commit, OffsetsFull, Put};
use crate::log::Logs;
use crate::memory::Owned;
use crate::topics::{Catalog, MetadataRecord, OffsetCommitted};

/// The first OffsetCommit that knows GROUP_ID_NOT_FOUND (KIP-848).
const GROUP_ID_NOT_FOUND: i16 = 9;

/// Offsets that expire in one look, so that it never holds up the loop for long.
const EXPIRE_BATCH: usize = 256;

/// No offset expires before the broker has been up for so long: time for consumers to come back and show that they live.
const EXPIRE_GRACE: Millis = Millis(60 * 60 * 1000);

/// What the log says when it takes no change. Clients look for the coordinator again and then try again.
const NOT_WRITTEN: ErrorCode = ErrorCode::COORDINATOR_NOT_AVAILABLE;

/// What [`Coordinator::commit`] works with, besides the request.
pub struct Journal<'a, D> {
    /// Monotonic time.
    pub now: Instant,
    /// Wall-clock time, kept with each commit.
    pub wall: Timestamp,
    /// The disk.
    pub disk: &'a mut D,
    /// The topics, and the metadata log behind them.
    pub topics: &'a mut Catalog,
    /// A write since the last [`Journal::write`] failed.
    failed: bool,
}

impl<'a, D: Disk> Journal<'a, D> {
    /// At this time.
    pub const fn new(now: Instant, wall: Timestamp, disk: &'a mut D, topics: &'a mut Catalog) -> Self {
        Self {
            now,
            wall,
            disk,
            topics,
            failed: false,
        }
    }

    /// Adds a record to the next write; what is staged already is written first when there is no room.
    fn stage(&mut self, record: &MetadataRecord<'_>) {
        let log = self.topics.log_mut();
        if log.stage(record).is_err() {
            self.failed |= log.write(self.disk).is_err();
            // It fits now: the room is that of the longest.
            self.failed |= log.stage(record).is_err();
        }
    }

    /// Writes what was staged since the last call. The mark to give the flusher, or `None` when any of it was not written.
    fn write(&mut self) -> Option<u64> {
        let mark = self.topics.log_mut().write(self.disk).ok();
        if core::mem::take(&mut self.failed) { None } else { mark }
    }

    /// Id and number of partitions of a topic.
    fn topic(&self, name: &str) -> Option<(Uuid, i32)> {
        let topic = self.topics.get(self.topics.by_name(name)?)?;
        Some((topic.id, topic.partitions()))
    }
}

impl Coordinator {
    /// OffsetCommit: the result of each partition is added to `results`, in the request's order. Commits that change nothing are
    /// answered without a write. The mark to give the flusher, when something was written.
    ///
    /// A commit that could not be written is told so, and yet seen by OffsetFetch until the group commits again: its records were
    /// read. The same commit again is then written, not taken for one that changes nothing.
    /// When full: no place for another offset or note is COORDINATOR_NOT_AVAILABLE for that partition.
    /// Cost: two look-ups by hash for each partition, one gathered write for all.
    pub fn commit<D: Disk>(
        &mut self,
        journal: &mut Journal<'_, D>,
        version: i16,
        request: &OffsetCommitRequest<'_>,
        results: &mut Vec<ErrorCode>,
    ) -> Option<u64> {
        let claim = Claim {
            group_id: request.group_id,
            member_id: request.member_id,
            instance_id: request.group_instance_id,
            generation: request.generation_id_or_member_epoch,
        };
        let group = match self.groups.on_commit(journal.now, claim) {
            Ok(group) => group,
            Err(error) => {
                let code = match error {
                    GroupError::GroupIdNotFound if version < GROUP_ID_NOT_FOUND => ErrorCode::ILLEGAL_GENERATION,
                    error => error.into(),
                };
                let partitions = request.topics.iter().map(|topic| topic.partitions.len()).sum();
                results.resize(partitions, code);
                return None;
            }
        };
        self.touched.clear();
        for topic in request.topics {
            let known = journal.topic(topic.name);
            for partition in topic.partitions {
                let at = results.len();
                let code = match known {
                    Some((id, count)) if (0..count).contains(&partition.partition_index) => {
                        self.commit_one(journal, group, request.group_id, id, &partition, at)
                    }
                    _ => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                };
                results.push(code);
            }
        }
        let mark = if self.touched.is_empty() { None } else { journal.write() };
        for (at, key) in self.touched.drain(..) {
            match results.get_mut(at) {
                Some(_) if mark.is_some() => self.offsets.saved(key),
                Some(code) => *code = NOT_WRITTEN,
                None => {}
            }
        }
        self.groups.set_offsets(journal.now, group, self.offsets.count(group));
        self.rearm(group.row());
        mark
    }

    fn commit_one<D: Disk>(
        &mut self,
        journal: &mut Journal<'_, D>,
        group: GroupKey,
        group_id: &str,
        topic: Uuid,
        partition: &OffsetCommitRequestPartition<'_>,
        at: usize,
    ) -> ErrorCode {
        let commit = Commit {
            offset: partition.committed_offset,
            leader_epoch: partition.committed_leader_epoch,
            metadata: partition.committed_metadata.unwrap_or(""),
            committed_at: journal.wall.0,
        };
        if commit.metadata.len() > self.note_bytes_max as usize {
            return ErrorCode::OFFSET_METADATA_TOO_LARGE;
        }
        let number = partition.partition_index;
        match self.offsets.put(journal.now, group, topic, number, &commit) {
            Ok(Put::Same) => ErrorCode::NONE,
            Err(OffsetsFull) => ErrorCode::COORDINATOR_NOT_AVAILABLE,
            Ok(Put::Changed(key)) => {
                self.touched.push((at, key));
                journal.stage(&record_of(group_id, topic, number, &commit));
                ErrorCode::NONE
            }
        }
    }

    /// OffsetDelete: as [`Coordinator::commit`]. An error is the whole request's.
    pub fn delete_offsets<D: Disk>(
        &mut self,
        journal: &mut Journal<'_, D>,
        request: &OffsetDeleteRequest<'_>,
        results: &mut Vec<ErrorCode>,
    ) -> Result<Option<u64>, GroupError> {
        let key = self.groups.find(request.group_id).ok_or(GroupError::GroupIdNotFound)?;
        let group = self.groups.view(key).ok_or(GroupError::GroupIdNotFound)?;
        if group.state() != StateId::Empty && !group.is_consumer() {
            return Err(GroupError::NonEmptyGroup);
        }
        let mut staged = false;
        for topic in request.topics {
            let known = journal.topic(topic.name);
            let subscribed = group.is_subscribed(topic.name);
            for partition in topic.partitions {
                let number = partition.partition_index;
                let code = match known {
                    Some((_, count)) if !(0..count).contains(&number) => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                    None => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                    Some(_) if subscribed => ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC,
                    Some((id, _)) if self.offsets.get(key, id, number).is_some() => {
                        let gone = MetadataRecord::OffsetDeleted {
                            group: request.group_id,
                            topic: id,
                            partition: number,
                        };
                        staged = true;
                        journal.stage(&gone);
                        ErrorCode::NONE
                    }
                    Some(_) => ErrorCode::NONE,
                };
                results.push(code);
            }
        }
        let mark = if staged { journal.write() } else { None };
        if staged {
            let mut codes = results.iter_mut();
            for topic in request.topics {
                let known = journal.topic(topic.name);
                for (partition, code) in topic.partitions.iter().zip(codes.by_ref()) {
                    match known {
                        Some((id, _)) if code.is_none() && mark.is_some() => {
                            self.offsets.remove(key, id, partition.partition_index);
                        }
                        _ if code.is_none() => *code = NOT_WRITTEN,
                        _ => {}
                    }
                }
            }
        }
        self.groups.set_offsets(journal.now, key, self.offsets.count(key));
        self.rearm(key.row());
        Ok(mark)
    }

    /// One group of DeleteGroups. The mark to give the flusher, when something was written.
    pub fn delete_group<D: Disk>(
        &mut self,
        journal: &mut Journal<'_, D>,
        group_id: &str,
    ) -> Result<Option<u64>, ErrorCode> {
        let key = self.groups.find(group_id).ok_or(ErrorCode::GROUP_ID_NOT_FOUND)?;
        if self
            .groups
            .view(key)
            .is_some_and(|group| group.state() != StateId::Empty)
        {
            return Err(ErrorCode::NON_EMPTY_GROUP);
        }
        let mut mark = None;
        if self.offsets.count(key) > 0 {
            let gone = MetadataRecord::GroupDeleted { group: group_id };
            let log = journal.topics.log_mut();
            mark = Some(log.append(journal.disk, &gone).map_err(|_| NOT_WRITTEN)?);
            self.offsets.remove_group(key);
        }
        let deleted = self.groups.on_delete(journal.now, key);
        self.rearm(key.row());
        deleted.map_err(ErrorCode::from)?;
        info!("group {group_id} deleted");
        Ok(mark)
    }

    /// A topic is gone, and what groups committed for its partitions. Nothing is written: the record of the deletion says it.
    pub fn on_topic_deleted(&mut self, now: Instant, topic: Uuid) {
        let Self { offsets, groups, .. } = self;
        let mut row = 0;
        offsets.remove_topic(topic);
        while let Some(key) = next_group(groups, &mut row) {
            groups.set_offsets(now, key, offsets.count(key));
        }
        for row in 0..row {
            self.rearm(row);
        }
    }

    /// Takes in one record of the metadata log at start. When full: the commit is lost with one line; raise `skerry.limits.groups`,
    /// `skerry.limits.offsets` or `skerry.limits.group.bytes`.
    pub fn replay(&mut self, now: Instant, record: &MetadataRecord<'_>) {
        match record {
            MetadataRecord::OffsetCommitted(commit) => self.replay_commit(now, commit),
            MetadataRecord::OffsetDeleted {
                group,
                topic,
                partition,
            } => {
                if let Some(key) = self.groups.find(group) {
                    self.offsets.remove(key, *topic, *partition);
                    self.groups.set_offsets(now, key, self.offsets.count(key));
                }
            }
            MetadataRecord::GroupDeleted { group } => {
                if let Some(key) = self.groups.find(group) {
                    self.offsets.remove_group(key);
                    // It has no members at start.
                    let _ = self.groups.on_delete(now, key);
                }
            }
            MetadataRecord::TopicDeleted { id } => self.on_topic_deleted(now, *id),
            MetadataRecord::TopicCreated { .. }
            | MetadataRecord::PartitionsAdded { .. }
            | MetadataRecord::TopicConfigured { .. }
            | MetadataRecord::BrokerStarted { .. }
            | MetadataRecord::ProducerIdsReserved { .. } => {}
        }
    }

    fn replay_commit(&mut self, now: Instant, record: &OffsetCommitted<'_>) {
        let commit = Commit {
            offset: record.offset,
            leader_epoch: record.leader_epoch,
            metadata: record.metadata,
            committed_at: record.committed_at,
        };
        let kept = match self.groups.on_offsets_found(now, record.group) {
            Ok(key) => self
                .offsets
                .put(now, key, record.topic, record.partition, &commit)
                .map(|put| (key, put)),
            Err(_) => Err(OffsetsFull),
        };
        match kept {
            Ok((key, put)) => {
                if let Put::Changed(offset) = put {
                    self.offsets.saved(offset);
                }
                self.groups.set_offsets(now, key, self.offsets.count(key));
                self.rearm(key.row());
            }
            Err(OffsetsFull) => warn!(
                "group {}: no room for its offset of partition {}; raise skerry.limits.groups, .offsets or .group.bytes",
                record.group, record.partition
            ),
        }
    }

    /// After the topics are known: drops what was committed for topics and partitions that are not there, and lowers what lies past the
    /// end of its log (a power cut took the records) to that end, with one line each; the group would else skip what is written there
    /// from now on.
    pub fn lower_offsets<D: Disk>(&mut self, journal: &mut Journal<'_, D>, logs: &Logs) {
        let mut row = 0;
        while let Some(key) = next_group(&self.groups, &mut row) {
            let strayed = |c: &Self, journal: &Journal<'_, D>| {
                let all = c
                    .offsets
                    .topics(key)
                    .flat_map(|topic| c.offsets.partitions(key, topic).map(move |p| (topic, p)));
                all.into_iter().find_map(|(topic, (partition, commit))| {
                    let topics = &*journal.topics;
                    let log = topics.by_id(topic).and_then(|ix| topics.partition(ix, partition));
                    let end = log.map(|log| logs.ends(log).written);
                    let strays = end.is_none_or(|end| commit.offset > end);
                    strays.then_some((topic, partition, end, commit.offset, commit.leader_epoch))
                })
            };
            while let Some((topic, partition, end, offset, _)) = strayed(self, journal) {
                match end {
                    None => drop(self.offsets.remove(key, topic, partition)),
                    Some(end) => self.lower(journal, key, (topic, partition), offset, end),
                }
            }
            self.groups.set_offsets(journal.now, key, self.offsets.count(key));
            self.rearm(key.row());
        }
    }

    fn lower<D: Disk>(
        &mut self,
        journal: &mut Journal<'_, D>,
        key: GroupKey,
        (topic, partition): (Uuid, i32),
        offset: i64,
        end: i64,
    ) {
        let group_id = self.groups.view(key).map_or("", |group| group.id());
        let name = journal.topics.by_id(topic).and_then(|ix| journal.topics.get(ix));
        let name = name.map_or("", |topic| topic.name.as_str());
        warn!(
            "group {group_id}: offset {offset} of {name}-{partition} is past the end of the log and lowered to {end}"
        );
        let Some(kept) = self.offsets.get(key, topic, partition) else {
            return;
        };
        // Its epoch may be that of records that are gone.
        let commit = OffsetCommitted {
            offset: end,
            leader_epoch: -1,
            ..committed(group_id, topic, partition, &kept)
        };
        let written = journal
            .topics
            .log_mut()
            .append(journal.disk, &MetadataRecord::OffsetCommitted(commit));
        self.offsets.lower(key, topic, partition, end, written.is_ok());
    }

    /// Drops offsets that `offsets.retention.minutes` no longer keeps, a bounded number at a time. The mark to give the flusher, when
    /// something was written.
    ///
    /// Age counts from the last commit, or from when the group became empty when that was later. Kept while consumers of a stable group
    /// subscribe to the topic, while a group rebalances, and for the first hour of the broker's life. A clock that was not set when
    /// the commit was made (`clock_floor`) counts from this start on the monotonic clock, so a jump of the clock expires nothing.
    pub fn expire_offsets<D: Disk>(
        &mut self,
        journal: &mut Journal<'_, D>,
        retention: Option<Millis>,
        clock_floor: Timestamp,
    ) -> Option<u64> {
        let retention = retention?;
        let (now, wall) = (journal.now, journal.wall);
        let mut mark = None;
        let mut left = EXPIRE_BATCH;
        let mut row = 0;
        while let Some(key) = next_group(&self.groups, &mut row) {
            while left > 0
                && let Some((topic, partition)) = self.expired(journal.topics, key, now, wall, retention, clock_floor)
            {
                let Some(group) = self.groups.view(key) else { break };
                let gone = MetadataRecord::OffsetDeleted {
                    group: group.id(),
                    topic,
                    partition,
                };
                let Ok(written) = journal.topics.log_mut().append(journal.disk, &gone) else {
                    break;
                };
                info!("group {}: an offset of partition {partition} expired", group.id());
                mark = Some(written);
                left -= 1;
                self.offsets.remove(key, topic, partition);
                self.groups.set_offsets(now, key, self.offsets.count(key));
                self.rearm(key.row());
            }
        }
        mark
    }

    /// The first expired offset of a group.
    fn expired(
        &self,
        topics: &Catalog,
        key: GroupKey,
        now: Instant,
        wall: Timestamp,
        retention: Millis,
        clock_floor: Timestamp,
    ) -> Option<(Uuid, i32)> {
        let group = self.groups.view(key)?;
        let may_expire = |topic: Uuid| match group.state() {
            StateId::Empty => group.protocol_type().is_empty() || now.since(group.since()) >= retention,
            StateId::Stable => {
                let name = topics.by_id(topic).and_then(|ix| topics.get(ix));
                group.is_consumer() && name.is_some_and(|topic| !group.is_subscribed(&topic.name))
            }
            _ => false,
        };
        self.offsets
            .topics(key)
            .filter(|topic| may_expire(*topic))
            .find_map(|topic| {
                let old = self.offsets.ages(key, topic).find(|(_, committed_at, touched)| {
                    let up = now.since(*touched);
                    let age = if *committed_at < clock_floor.0 {
                        up
                    } else {
                        Millis(wall.0.saturating_sub(*committed_at).max(0).unsigned_abs())
                    };
                    age >= retention && up >= EXPIRE_GRACE.min(retention)
                });
                old.map(|(partition, ..)| (topic, partition))
            })
    }

    /// Everything that holds, as records: for rewriting the metadata log.
    pub fn each_record(&self, emit: &mut dyn FnMut(&MetadataRecord<'_>)) {
        for group in self.groups.iter() {
            let key = group.key();
            for topic in self.offsets.topics(key) {
                for (partition, commit) in self.offsets.partitions(key, topic) {
                    emit(&record_of(group.id(), topic, partition, &commit));
                }
            }
        }
    }
}

/// The next group at or after a row, which moves past it.
fn next_group(groups: &Groups<Owned>, row: &mut u32) -> Option<GroupKey> {
    while *row < groups.places() {
        *row += 1;
        if let Some(key) = groups.group_at(*row - 1) {
            return Some(key);
        }
    }
    None
}

fn record_of<'a>(group: &'a str, topic: Uuid, partition: i32, commit: &Commit<'a>) -> MetadataRecord<'a> {
    MetadataRecord::OffsetCommitted(committed(group, topic, partition, commit))
}

const fn committed<'a>(group: &'a str, topic: Uuid, partition: i32, commit: &Commit<'a>) -> OffsetCommitted<'a> {
    OffsetCommitted {
        group,
        topic,
        partition,
        offset: commit.offset,
        leader_epoch: commit.leader_epoch,
        metadata: commit.metadata,
        committed_at: commit.committed_at,
    }
}
