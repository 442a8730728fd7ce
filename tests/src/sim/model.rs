//! What must be true: every promise that the broker made to any client, kept until the end of the simulation.
//!
//! Clients report what they were told; a contradiction is a failure at once. What an acknowledgement promises depends on the
//! settings: with [`Promises::acks_all`] it survives a power cut, else a crash of the process alone.

use std::collections::{BTreeMap, BTreeSet};

use skerry_core::time::{Instant, Timestamp};
use skerry_core::wire::Uuid;

use crate::rng::Rng;
use crate::wire::TestRecord;

/// A record of a model client: whose, and which. Every one is sent under its own number, and numbers rise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rec {
    /// The client.
    pub client: u32,
    /// The record's number.
    pub number: u32,
}

impl Rec {
    /// The record with a value of about `bytes`, its content derived from its number.
    #[must_use]
    pub fn record(self, bytes: usize, timestamp: i64) -> TestRecord {
        let mut value = vec![0; bytes.max(8)];
        let (id, rest) = value.split_at_mut(8);
        id[..4].copy_from_slice(&self.client.to_be_bytes());
        id[4..].copy_from_slice(&self.number.to_be_bytes());
        self.padding().fill(rest);
        let key = (!self.number.is_multiple_of(3)).then(|| self.number.to_be_bytes().to_vec());
        TestRecord {
            offset: -1,
            timestamp,
            key,
            value,
        }
    }

    const fn padding(self) -> Rng {
        Rng::new(((self.client as u64) << 32) | self.number as u64)
    }

    /// Which record this is. Panics when a byte of it is not as it was sent.
    #[must_use]
    pub fn of(record: &TestRecord) -> Self {
        let word = |at: usize| u32::from_be_bytes(record.value[at..at + 4].try_into().expect("four bytes"));
        let rec = Self {
            client: word(0),
            number: word(4),
        };
        let sent = rec.record(record.value.len(), record.timestamp);
        assert_eq!(
            (&sent.key, &sent.value),
            (&record.key, &record.value),
            "{rec:?} came back changed"
        );
        rec
    }
}

/// What the settings promise.
#[derive(Clone, Copy, Debug)]
pub struct Promises {
    /// acks=all survives a power cut.
    pub acks_all: bool,
    /// acks=1 does too.
    pub acks_one: bool,
    /// What a consumer has seen does.
    pub seen: bool,
    /// A committed offset does.
    pub commits: bool,
    /// Else it is set back by no more than about so many milliseconds.
    pub flush_interval_ms: u64,
}

#[derive(Debug, Default)]
struct Part {
    /// Records that must be there for ever.
    firm: BTreeMap<i64, Rec>,
    /// Records that must be there until the power is cut.
    soft: BTreeMap<i64, Rec>,
    /// High watermarks that may not go back, and since when they were known. Both rise.
    watermarks: Vec<(Instant, i64)>,
    log_start: i64,
    /// The whole log as it was read last.
    log: Vec<(i64, i64, Rec)>,
}

impl Part {
    fn watermark(&self) -> i64 {
        self.watermarks.last().map_or(0, |(_, watermark)| *watermark)
    }
}

#[derive(Clone, Copy, Debug)]
struct Commit {
    offset: i64,
    sent: Instant,
    replied: Instant,
    /// Answered without an error. Else it may count or not.
    accepted: bool,
}

#[derive(Debug, Default)]
struct Generation {
    leader: Option<String>,
    protocol: String,
    given: BTreeMap<String, Vec<u8>>,
}

#[derive(Debug, Default)]
struct Group {
    commits: BTreeMap<(Uuid, i32), Vec<Commit>>,
    generations: BTreeMap<i32, Generation>,
    /// Each member's generation and partitions, while it believes in them.
    settled: BTreeMap<u32, (i32, Vec<i32>)>,
}

/// Everything that was promised.
#[derive(Debug)]
pub struct Model {
    promises: Promises,
    parts: BTreeMap<(Uuid, i32), Part>,
    producer_ids: BTreeSet<i64>,
    groups: BTreeMap<String, Group>,
    /// Topics that exist: made, and not asked to be deleted.
    topics: BTreeMap<String, (Uuid, i32)>,
    /// Topic ids that are gone for good.
    deleted: BTreeSet<Uuid>,
    /// Records acknowledged, for the end's report.
    pub acked: u64,
    /// Records that consumers saw.
    pub seen: u64,
}

/// A topic's partition.
pub type Tp = (Uuid, i32);

impl Model {
    /// Nothing was promised yet.
    #[must_use]
    pub const fn new(promises: Promises) -> Self {
        Self {
            promises,
            parts: BTreeMap::new(),
            producer_ids: BTreeSet::new(),
            groups: BTreeMap::new(),
            topics: BTreeMap::new(),
            deleted: BTreeSet::new(),
            acked: 0,
            seen: 0,
        }
    }

    // ---- topics ----

    /// A client was told of a topic's id and number of partitions.
    pub fn on_topic(&mut self, name: &str, id: Uuid, partitions: i32) {
        assert!(!id.is_zero(), "topic {name} has no id");
        assert!(
            !self.deleted.contains(&id),
            "topic {name} is back under the id of a deleted one"
        );
        let known = self.topics.entry(name.into()).or_insert((id, partitions));
        assert_eq!(*known, (id, partitions), "topic {name} changed its id or partitions");
    }

    /// A client asks for a topic's deletion: from now on it may be gone.
    pub fn on_deleting(&mut self, name: &str) {
        if let Some((id, _)) = self.topics.remove(name) {
            self.parts.retain(|(of, _), _| *of != id);
        }
    }

    /// The deletion was confirmed.
    pub fn on_deleted(&mut self, id: Uuid) {
        self.deleted.insert(id);
    }

    /// Every topic that must exist.
    pub fn topics(&self) -> impl Iterator<Item = (&str, Uuid, i32)> {
        self.topics
            .iter()
            .map(|(name, (id, partitions))| (name.as_str(), *id, *partitions))
    }

    fn is_live(&self, id: Uuid) -> bool {
        self.topics.values().any(|(known, _)| *known == id)
    }

    // ---- records ----

    /// A producer was told that `records` lie from `base_offset` on.
    pub fn on_acked(&mut self, tp: Tp, base_offset: i64, records: &[Rec], acks: i16) {
        if !self.is_live(tp.0) {
            return;
        }
        assert!(base_offset >= 0, "{tp:?}: acknowledged at offset {base_offset}");
        self.acked += records.len() as u64;
        let firm = if acks == -1 {
            self.promises.acks_all
        } else {
            self.promises.acks_one
        };
        for (offset, rec) in (base_offset..).zip(records) {
            self.place(tp, offset, *rec, firm);
        }
    }

    /// A consumer was given a record below the high watermark.
    pub fn on_seen(&mut self, tp: Tp, offset: i64, rec: Rec) {
        if self.is_live(tp.0) {
            self.seen += 1;
            let firm = self.promises.seen;
            self.place(tp, offset, rec, firm);
        }
    }

    fn place(&mut self, tp: Tp, offset: i64, rec: Rec, firm: bool) {
        let part = self.parts.entry(tp).or_default();
        for there in [part.firm.get(&offset), part.soft.get(&offset)].into_iter().flatten() {
            assert_eq!(*there, rec, "{tp:?}: two records at offset {offset}");
        }
        if firm {
            part.soft.remove(&offset);
            part.firm.insert(offset, rec);
        } else if !part.firm.contains_key(&offset) {
            part.soft.insert(offset, rec);
        }
    }

    /// A client was told where a partition's log starts and ends, in answer to a request of `asked`: what was known before then must
    /// hold. (Replies on two connections may overtake each other.)
    pub fn on_ends(&mut self, tp: Tp, log_start: i64, watermark: i64, asked: Instant, now: Instant) {
        if !self.is_live(tp.0) {
            return;
        }
        let part = self.parts.entry(tp).or_default();
        let before = part.watermarks.partition_point(|(at, _)| *at < asked);
        let known = before.checked_sub(1).map_or(0, |last| part.watermarks[last].1);
        assert!(
            watermark >= known,
            "{tp:?}: the high watermark went back from {known} to {watermark}"
        );
        if watermark > part.watermark() {
            part.watermarks.push((now, watermark));
        }
        if log_start >= 0 {
            assert!(
                log_start <= watermark,
                "{tp:?}: the log starts at {log_start} and ends at {watermark}"
            );
            part.log_start = part.log_start.max(log_start);
        }
    }

    /// The highest watermark that anyone saw.
    #[must_use]
    pub fn watermark(&self, tp: Tp) -> i64 {
        self.parts.get(&tp).map_or(0, Part::watermark)
    }

    /// Where consumers must be able to read up to by now: the end of what was acknowledged or seen.
    #[must_use]
    pub fn readable_end(&self, tp: Tp) -> i64 {
        let Some(part) = self.parts.get(&tp) else { return 0 };
        let last = part.firm.last_key_value().map_or(-1, |(offset, _)| *offset);
        part.watermark().max(last + 1)
    }

    /// The lowest offset that can be asked for.
    #[must_use]
    pub fn log_start(&self, tp: Tp) -> i64 {
        self.parts.get(&tp).map_or(0, |p| p.log_start)
    }

    /// The whole log was read, from its start to the high watermark: `(offset, timestamp, record)`.
    pub fn on_whole_log(&mut self, tp: Tp, log_start: i64, watermark: i64, log: Vec<(i64, i64, Rec)>) {
        assert!(
            watermark >= self.watermark(tp),
            "{tp:?}: the log ends at {watermark}, before {}",
            self.watermark(tp)
        );
        let part = self.parts.entry(tp).or_default();
        let offsets = log.iter().map(|(offset, ..)| *offset);
        assert!(
            offsets.eq(log_start..watermark),
            "{tp:?}: offsets are not every one of {log_start}..{watermark}: {log:?}"
        );
        let mut last: BTreeMap<u32, u32> = BTreeMap::new();
        for (offset, _, rec) in &log {
            if let Some(before) = last.insert(rec.client, rec.number) {
                assert!(
                    before < rec.number,
                    "{tp:?}: client {}: {before} before {} at offset {offset}",
                    rec.client,
                    rec.number
                );
            }
        }
        let is: BTreeMap<i64, Rec> = log.iter().map(|(offset, _, rec)| (*offset, *rec)).collect();
        for (offset, rec) in part.firm.range(log_start..).chain(part.soft.range(log_start..)) {
            assert_eq!(
                is.get(offset),
                Some(rec),
                "{tp:?}: offset {offset} of {log_start}..{watermark} was promised"
            );
        }
        part.log = log;
    }

    /// The answer to ListOffsets by time, from the log as it was read last: the first record at or after `time`.
    #[must_use]
    pub fn first_at(&self, tp: Tp, time: i64) -> Option<(i64, Timestamp)> {
        let log = &self.parts.get(&tp)?.log;
        log.iter()
            .find(|(_, t, _)| *t >= time)
            .map(|(offset, t, _)| (*offset, Timestamp(*t)))
    }

    /// The largest timestamp of the log as it was read last.
    #[must_use]
    pub fn max_timestamp(&self, tp: Tp) -> Option<i64> {
        self.parts.get(&tp)?.log.iter().map(|(_, t, _)| *t).max()
    }

    /// A producer id was given out.
    pub fn on_producer_id(&mut self, id: i64) {
        assert!(
            id >= 0 && self.producer_ids.insert(id),
            "producer id {id} was given twice"
        );
    }

    // ---- groups ----

    /// Every group that was heard of.
    #[must_use]
    pub fn groups(&self) -> Vec<String> {
        self.groups.keys().cloned().collect()
    }

    /// A member was told that it belongs to a generation.
    pub fn on_joined(
        &mut self,
        group: &str,
        generation: i32,
        member: &str,
        leader: &str,
        protocol: &str,
        members: &[String],
    ) {
        let known = self
            .groups
            .entry(group.into())
            .or_default()
            .generations
            .entry(generation)
            .or_default();
        let first = known.leader.get_or_insert_with(|| {
            protocol.clone_into(&mut known.protocol);
            leader.to_owned()
        });
        assert_eq!(first, leader, "group {group} generation {generation} has two leaders");
        assert_eq!(
            known.protocol, protocol,
            "group {group} generation {generation} has two protocols"
        );
        if member == leader {
            let distinct: BTreeSet<_> = members.iter().collect();
            assert_eq!(
                distinct.len(),
                members.len(),
                "group {group}: a member twice in {members:?}"
            );
            assert!(
                distinct.contains(&leader.to_owned()),
                "group {group}: {leader} does not lead itself: {members:?}"
            );
        } else {
            assert!(
                members.is_empty(),
                "group {group}: members are told to one that does not lead"
            );
        }
    }

    /// The leader says who gets what.
    pub fn on_assigning(&mut self, group: &str, generation: i32, assignments: &[(String, Vec<u8>)]) {
        let known = self
            .groups
            .entry(group.into())
            .or_default()
            .generations
            .entry(generation)
            .or_default();
        for (member, what) in assignments {
            let before = known.given.insert(member.clone(), what.clone());
            assert!(
                before.is_none_or(|b| b == *what),
                "the model's leader contradicts itself"
            );
        }
    }

    /// A member was told its assignment.
    pub fn on_assigned(&self, group: &str, generation: i32, member: &str, what: &[u8], is_static: bool) {
        let known = self.groups.get(group).and_then(|g| g.generations.get(&generation));
        let given = known.and_then(|g| g.given.get(member)).map(Vec::as_slice);
        // A static member that came back under a new id has its old assignment.
        let inherited = is_static && given.is_none() && known.is_some_and(|g| g.given.values().any(|v| v == what));
        assert!(
            given == Some(what) || inherited,
            "group {group} generation {generation}: {member} got {what:?}, its leader gave {given:?}"
        );
    }

    /// A member has its assignment and goes by it; none when it has let go.
    pub fn on_settled(&mut self, group: &str, client: u32, assignment: Option<(i32, Vec<i32>)>) {
        let settled = &mut self.groups.entry(group.into()).or_default().settled;
        match assignment {
            Some(assignment) => drop(settled.insert(client, assignment)),
            None => drop(settled.remove(&client)),
        }
    }

    /// Why a group has not come to rest: its members must be of one generation and share all partitions out.
    #[must_use]
    pub fn unrest(&self, group: &str, members: usize, partitions: i32) -> Option<String> {
        let settled = &self.groups.get(group)?.settled;
        let generations: BTreeSet<i32> = settled.values().map(|(generation, _)| *generation).collect();
        let mut shared: Vec<i32> = settled
            .values()
            .flat_map(|(_, partitions)| partitions.iter().copied())
            .collect();
        shared.sort_unstable();
        let rest = settled.len() == members
            && generations.len() <= 1
            && (members == 0 || shared == (0..partitions).collect::<Vec<_>>());
        (!rest).then(|| format!("group {group} of {members} members over {partitions} partitions: {settled:?}"))
    }

    /// A commit was sent: from now on it may count. The number is for [`on_commit_answered`](Self::on_commit_answered).
    pub fn on_commit(&mut self, group: &str, tp: Tp, offset: i64, sent: Instant) -> usize {
        let commits = self
            .groups
            .entry(group.into())
            .or_default()
            .commits
            .entry(tp)
            .or_default();
        commits.push(Commit {
            offset,
            sent,
            replied: Instant::NEVER,
            accepted: false,
        });
        commits.len() - 1
    }

    /// A commit was answered: it counts, or it was refused and never will.
    pub fn on_commit_answered(&mut self, group: &str, tp: Tp, number: usize, replied: Instant, accepted: bool) {
        let commits = self
            .groups
            .entry(group.into())
            .or_default()
            .commits
            .entry(tp)
            .or_default();
        commits[number].replied = replied;
        commits[number].accepted = accepted;
        if !accepted {
            // No offset is so large: it will not be found again.
            commits[number].offset = i64::MIN;
        }
    }

    /// An offset was fetched: it must be one that may be the last.
    pub fn on_fetched_offset(&mut self, group: &str, tp: Tp, offset: i64, sent: Instant, replied: Instant) {
        if !self.is_live(tp.0) {
            return;
        }
        let commits = self
            .groups
            .entry(group.into())
            .or_default()
            .commits
            .entry(tp)
            .or_default();
        let after = |at: Instant| commits.iter().any(|d| d.accepted && d.sent > at && d.replied < sent);
        let may_be = commits.iter().any(|c| c.offset == offset && c.sent <= replied && !(c.accepted && after(c.replied)))
            || (offset == -1 && !commits.iter().any(|d| d.accepted && d.replied < sent))
            // A power cut may take records back that were seen and committed: the offset is lowered to what is left.
            || (!self.promises.seen && commits.iter().any(|c| c.offset > offset));
        assert!(
            may_be,
            "group {group} {tp:?}: committed offset {offset} of {commits:?}, asked at {sent:?}"
        );
    }

    // ---- crashes ----

    /// The broker stopped, cleanly or not, and comes up again. What it forgets by right is forgotten.
    pub fn on_restart(&mut self, now: Instant, power_cut: bool) {
        for group in self.groups.values_mut() {
            // Generations begin anew.
            group.generations.clear();
            group.settled.clear();
        }
        if !power_cut {
            return;
        }
        for part in self.parts.values_mut() {
            part.soft.clear();
            if !self.promises.seen {
                part.watermarks.clear();
            }
        }
        if !self.promises.commits {
            // Twice, since a flush that began just before takes its time, and the next one begins after it.
            let safe = now - skerry_core::time::Millis(self.promises.flush_interval_ms * 2 + 5_000);
            for commit in self.groups.values_mut().flat_map(|g| g.commits.values_mut()).flatten() {
                commit.accepted &= commit.replied < safe;
            }
        }
    }
}
