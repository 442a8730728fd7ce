//! Consumer groups: drives the group machine of `skerry_core`, and keeps committed offsets.
//!
//! A join or sync that cannot be answered yet stands at the [`Desk`]; what the machine answers later wakes the connection, whose
//! reply is then made from the group as it is at that time. The connection's buffers are not held meanwhile.

mod desk;
mod journal;
mod offsets;

use log::debug;
use skerry_core::blob::Blobs;
use skerry_core::error_code::ErrorCode;
use skerry_core::machine::group::{
    Answer, Claim, GroupError, GroupKey, GroupRow, Groups, Join, MemberRow, Settings, StateId, Sync,
};
use skerry_core::table::Row;
use skerry_core::time::Instant;
use skerry_net::queue::Queue;

pub use desk::Desk;
pub use journal::Journal;
pub use offsets::{Commit, OffsetKey, Offsets, OffsetsFull, Put};

use crate::config::Config;
use crate::ids::ConnId;
use crate::memory::{Owned, OwnedRows};

/// Of the bytes for groups, the part that is for the notes of committed offsets; the rest is for names, metadata and assignments.
const NOTES_SHARE: u32 = 4;

/// One member's metadata or assignment takes at most this part of the bytes for groups.
const BLOB_SHARE: u32 = 16;

/// Of the members that there may be, the part that may be pending (told their id and not yet back with it).
const PENDING_SHARE: u32 = 2;

/// What a JoinGroup reply has besides its members.
const JOIN_REPLY_BYTES: u32 = 1024;

/// Every group of the broker.
///
/// When full: see [`Groups`] and [`Offsets`].
pub struct Coordinator {
    groups: Groups<Owned>,
    offsets: Offsets,
    desk: Desk,
    /// The deadline that the owner knows of, by the group's row.
    armed: Vec<Instant>,
    /// Groups whose deadline is another one than that.
    changed: Queue<u32>,
    /// Room for the results of one request.
    results: Vec<ErrorCode>,
    /// The results whose offsets the next write of the log makes good.
    touched: Vec<(usize, OffsetKey)>,
    /// `offset.metadata.max.bytes`.
    note_bytes_max: u32,
}

impl Coordinator {
    /// Takes memory for everything. `seed`: unknown to peers, so that they cannot choose names that hash alike.
    #[must_use]
    pub fn new(config: &Config, seed: u32) -> Self {
        let limits = &config.limits;
        let note_bytes = limits.group_bytes / NOTES_SHARE;
        let group_bytes = limits.group_bytes - note_bytes;
        let tree_bytes = Blobs::<Owned>::tree_bytes(group_bytes as usize);
        let blobs = Blobs::new(
            OwnedRows::filled(0, group_bytes),
            OwnedRows::filled(0, u32::try_from(tree_bytes).unwrap_or(0)),
            (limits.group_bytes / BLOB_SHARE) as usize,
        );
        let settings = Settings {
            initial_rebalance_delay: config.group.initial_rebalance_delay,
            session_timeout_min: config.group.session_timeout_min,
            session_timeout_max: config.group.session_timeout_max,
            size_max: config.group.size_max,
            group_bytes_max: Config::REPLY_BYTES_MAX - JOIN_REPLY_BYTES,
            pending_max: (limits.members / PENDING_SHARE).max(1),
            seed,
        };
        Self {
            groups: Groups::new(
                settings,
                (
                    OwnedRows::new(limits.groups),
                    OwnedRows::filled(0, limits.groups.max(1)),
                ),
                (
                    OwnedRows::new(limits.members),
                    OwnedRows::filled(0, limits.members.max(1)),
                ),
                blobs,
            ),
            offsets: Offsets::new(
                limits.groups,
                limits.offsets,
                note_bytes,
                config.group.offset_metadata_bytes_max,
                seed,
            ),
            desk: Desk::new(limits.connections),
            armed: vec![Instant::NEVER; limits.groups as usize],
            changed: Queue::new(limits.groups),
            results: Vec::with_capacity(results_max(config) as usize),
            touched: Vec::with_capacity(results_max(config) as usize),
            note_bytes_max: config.group.offset_metadata_bytes_max,
        }
    }

    /// Bytes that [`Coordinator::new`] takes: for groups and members, and for offsets.
    #[must_use]
    pub const fn memory_bytes(config: &Config) -> (usize, usize) {
        let limits = &config.limits;
        let note_bytes = limits.group_bytes / NOTES_SHARE;
        let group_bytes = (limits.group_bytes - note_bytes) as usize;
        let per_group = size_of::<Row<GroupRow>>() + size_of::<u32>() + size_of::<Instant>();
        let per_member = size_of::<Row<MemberRow>>() + size_of::<u32>();
        let groups = limits.groups as usize * per_group
            + Queue::<u32>::bytes(limits.groups)
            + limits.members as usize * per_member
            + group_bytes
            + Blobs::<Owned>::tree_bytes(group_bytes)
            + Desk::memory_bytes(limits.connections)
            + results_max(config) as usize * (size_of::<ErrorCode>() + size_of::<(usize, OffsetKey)>());
        (groups, Offsets::memory_bytes(limits.groups, limits.offsets, note_bytes))
    }

    /// Groups and members, for replies.
    #[must_use]
    pub const fn groups(&self) -> &Groups<Owned> {
        &self.groups
    }

    /// Committed offsets, for replies.
    #[must_use]
    pub const fn offsets(&self) -> &Offsets {
        &self.offsets
    }

    /// JoinGroup. Its answer comes to the desk, perhaps at once: see [`Coordinator::answer`].
    pub fn join<'a, P>(&mut self, now: Instant, conn: ConnId, join: &Join<'a, P>)
    where
        P: Iterator<Item = (&'a str, &'a [u8])> + Clone,
    {
        let before = self.glance(join.group_id);
        let waiter = self.desk.take(conn);
        self.groups.on_join(now, join, waiter, &mut self.desk);
        self.settle(join.group_id, before);
    }

    /// SyncGroup. Its answer comes to the desk, perhaps at once: see [`Coordinator::answer`].
    pub fn sync<'a, A>(&mut self, now: Instant, conn: ConnId, sync: Sync<'a, A>)
    where
        A: Iterator<Item = (&'a str, &'a [u8])>,
    {
        let (group_id, before) = (sync.group_id, self.glance(sync.group_id));
        let waiter = self.desk.take(conn);
        self.groups.on_sync(now, sync, waiter, &mut self.desk);
        self.settle(group_id, before);
    }

    /// Heartbeat.
    pub fn heartbeat(&mut self, now: Instant, claim: Claim<'_>) -> Result<(), GroupError> {
        let result = self.groups.on_heartbeat(now, claim);
        if let Some(key) = self.groups.find(claim.group_id) {
            self.rearm(key.row());
        }
        result
    }

    /// One member of a LeaveGroup request.
    pub fn leave(
        &mut self,
        now: Instant,
        group_id: &str,
        member_id: &str,
        instance_id: Option<&str>,
    ) -> Result<(), GroupError> {
        let before = self.glance(group_id);
        let result = self
            .groups
            .on_leave(now, group_id, member_id, instance_id, &mut self.desk);
        self.settle(group_id, before);
        result
    }

    /// Room for the results of one request, empty; give it back with [`Coordinator::put_results`].
    pub(crate) fn take_results(&mut self) -> Vec<ErrorCode> {
        let mut results = core::mem::take(&mut self.results);
        results.clear();
        results
    }

    /// Gives it back.
    pub(crate) fn put_results(&mut self, results: Vec<ErrorCode>) {
        self.results = results;
    }

    /// The answer to the join or sync of `conn`, if it has come. It stays until [`Coordinator::forget`].
    #[must_use]
    pub fn answer(&self, conn: ConnId) -> Option<Answer> {
        self.desk.answer(conn)
    }

    /// Whether the reply that `conn` parked for can be made now.
    #[must_use]
    pub fn is_finished(&self, conn: ConnId) -> bool {
        self.desk.answer(conn).is_some()
    }

    /// A connection has its reply, or is gone: nobody waits there any more. Its member stays until its session ends.
    pub fn forget(&mut self, conn: ConnId) {
        self.desk.leave(conn);
    }

    /// The deadline of a group (by its slot) has come.
    pub fn on_deadline(&mut self, group: usize, now: Instant) {
        let Ok(row) = u32::try_from(group) else { return };
        if let Some(armed) = self.armed.get_mut(group) {
            *armed = Instant::NEVER;
        }
        let Some(key) = self.groups.group_at(row) else { return };
        let before = self.glance_at(key);
        self.groups.on_deadline(now, key, &mut self.desk);
        self.tell(key, before);
        self.rearm(row);
    }

    /// The next connection whose parked reply can be made now.
    pub fn next_wake(&mut self) -> Option<ConnId> {
        self.desk.next_wake()
    }

    /// The next group (by its slot) whose deadline is another one now.
    pub fn next_deadline(&mut self) -> Option<(usize, Instant)> {
        let row = self.changed.pop()?;
        let at = self.armed.get(row as usize).copied()?;
        Some((row as usize, at))
    }

    /// What a log line about a change would say.
    fn glance(&self, group_id: &str) -> (StateId, i32) {
        self.groups
            .find(group_id)
            .map_or((StateId::Dead, 0), |key| self.glance_at(key))
    }

    fn glance_at(&self, key: GroupKey) -> (StateId, i32) {
        self.groups
            .view(key)
            .map_or((StateId::Dead, 0), |group| (group.state(), group.generation()))
    }

    fn settle(&mut self, group_id: &str, before: (StateId, i32)) {
        if let Some(key) = self.groups.find(group_id) {
            self.tell(key, before);
            self.rearm(key.row());
        }
    }

    fn tell(&self, key: GroupKey, before: (StateId, i32)) {
        if before == self.glance_at(key) {
            return;
        }
        if let Some(group) = self.groups.view(key) {
            debug!(
                "group {}: {} generation {}, members {}, was {}",
                group.id(),
                group.state().name(),
                group.generation(),
                group.len(),
                before.0.name()
            );
        }
    }

    /// Lets the owner know a group's deadline when it is another one.
    fn rearm(&mut self, row: u32) {
        let due = self
            .groups
            .group_at(row)
            .map_or(Instant::NEVER, |key| self.groups.next_deadline(key));
        if let Some(armed) = self.armed.get_mut(row as usize)
            && *armed != due
        {
            *armed = due;
            self.changed.push(row);
        }
    }
}

/// Results that one request may have: one for each member, partition or group.
const fn results_max(config: &Config) -> u32 {
    let limits = &config.limits;
    let most = if limits.members > limits.partitions {
        limits.members
    } else {
        limits.partitions
    };
    if most > limits.groups { most } else { limits.groups }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skerry_core::time::Millis;
    use std::path::Path;

    const START: Instant = Instant::from_micros(1_000_000);

    fn coordinator(settings: &[(&str, &str)]) -> Coordinator {
        Coordinator::new(&Config::with(Path::new("/data"), settings).unwrap(), 3)
    }

    fn join(coordinator: &mut Coordinator, now: Instant, conn: ConnId, member_id: &str) {
        let join = Join {
            group_id: "g",
            member_id,
            instance_id: None,
            client_id: "c",
            client_host: "/127.0.0.1",
            session_timeout: Millis(10_000),
            rebalance_timeout: Millis(60_000),
            protocol_type: "consumer",
            protocols: [("range", &b"m"[..])].into_iter(),
            id_required: false,
            random: [conn.index() as u8; 16],
        };
        coordinator.join(now, conn, &join);
    }

    fn conn(index: u32) -> ConnId {
        ConnId::from_parts(index, 1)
    }

    /// Fires the group's deadline as the loop would: at the time it was last told.
    fn pass(coordinator: &mut Coordinator, armed: &mut Instant, now: &mut Instant, time: Millis) {
        let end = *now + time;
        loop {
            while let Some((group, at)) = coordinator.next_deadline() {
                assert_eq!(group, 0);
                *armed = at;
            }
            if *armed > end {
                break;
            }
            *now = (*armed).max(*now);
            *armed = Instant::NEVER;
            coordinator.on_deadline(0, *now);
        }
        *now = end;
    }

    #[test]
    fn a_parked_join_is_woken_and_its_answer_stays_until_it_is_taken() {
        let mut c = coordinator(&[]);
        let (mut now, mut armed) = (START, Instant::NEVER);
        join(&mut c, now, conn(4), "");
        join(&mut c, now, conn(5), "");
        assert!(!c.is_finished(conn(4)) && c.next_wake().is_none());
        pass(&mut c, &mut armed, &mut now, Millis(6_000));
        let mut woken = [c.next_wake(), c.next_wake()];
        woken.sort();
        assert_eq!((woken, c.next_wake()), ([Some(conn(4)), Some(conn(5))], None));
        let Some(Answer::Joined { member, .. }) = c.answer(conn(4)) else {
            panic!("joined");
        };
        assert!(c.is_finished(conn(4)));
        assert_eq!(c.groups().view_member(member).unwrap().client_host(), "/127.0.0.1");
        c.forget(conn(4));
        assert!(!c.is_finished(conn(4)) && c.is_finished(conn(5)));
    }

    #[test]
    fn a_lost_connection_wakes_nobody_and_its_member_expires() {
        let mut c = coordinator(&[]);
        let (mut now, mut armed) = (START, Instant::NEVER);
        join(&mut c, now, conn(4), "");
        c.forget(conn(4));
        pass(&mut c, &mut armed, &mut now, Millis(3_000));
        assert_eq!(c.next_wake(), None);
        let state = |c: &Coordinator| c.groups().iter().next().map(|g| (g.state(), g.len()));
        assert_eq!(
            state(&c),
            Some((StateId::CompletingRebalance, 1)),
            "it is a member all the same"
        );
        pass(&mut c, &mut armed, &mut now, Millis(10_000));
        assert_eq!(state(&c), Some((StateId::Empty, 0)));
        pass(&mut c, &mut armed, &mut now, Millis(600_000));
        assert_eq!(state(&c), None);
        pass(&mut c, &mut armed, &mut now, Millis(600_000));
        assert_eq!(armed, Instant::NEVER, "nothing left to do");
    }

    /// Goal: heartbeats cost the timers nothing until a session really could have ended.
    #[test]
    fn a_heartbeat_moves_no_deadline() {
        let mut c = coordinator(&[]);
        let (mut now, mut armed) = (START, Instant::NEVER);
        join(&mut c, now, conn(4), "");
        pass(&mut c, &mut armed, &mut now, Millis(3_000));
        let Some(Answer::Joined { member, .. }) = c.answer(conn(4)) else {
            panic!("joined");
        };
        let id = c.groups().view_member(member).unwrap().id().to_string();
        let claim = Claim {
            group_id: "g",
            member_id: &id,
            instance_id: None,
            generation: 1,
        };
        let mut fired = 0;
        for _ in 0..19 {
            now = now + Millis(3_000);
            assert_eq!(c.heartbeat(now, claim), Ok(()));
            while let Some((_, at)) = c.next_deadline() {
                armed = at;
            }
            if armed <= now {
                fired += 1;
                armed = Instant::NEVER;
                c.on_deadline(0, now);
            }
        }
        assert!(fired <= 8, "{fired} deadlines in 57 s of heartbeats, sessions are 10 s");
        assert_eq!(c.groups().members_len(), 1);
    }

    #[test]
    fn memory_is_what_the_limits_say() {
        let config = Config::with(Path::new("/data"), &[("skerry.limits.group.bytes", "65536")]).unwrap();
        let (small, offsets) = Coordinator::memory_bytes(&config);
        let config = Config::with(Path::new("/data"), &[]).unwrap();
        let (large, more_offsets) = Coordinator::memory_bytes(&config);
        assert!(small < large && offsets < more_offsets);
        assert!(large < 5 << 20, "{large} bytes for groups by default");
    }
}
