//! Who is there: rows of groups and members, their lists, what waits for a member; and the one place where a state changes.

use super::member::{Member, Waiting};
use super::state::{MOVES, State};
use super::{Answer, Answers, Group, GroupError, GroupRow, Groups, List, MemberRow, Name, StateId, linger};
use crate::blob::Blob;
use crate::memory::Memory;
use crate::table::{Key, hash};
use crate::time::Instant;

impl<M: Memory> Groups<M> {
    /// The one place where a group's state changes.
    pub(super) fn enter(&mut self, now: Instant, key: Key, to: State) {
        let Some(group) = self.group_mut(key) else { return };
        debug_assert!(
            MOVES.contains(&(group.state.id(), to.id())),
            "{:?} to {:?} is no move",
            group.state.id(),
            to.id()
        );
        group.state = to;
        group.since = now;
        self.arm(key, to.until());
    }

    pub(super) fn create(&mut self, now: Instant, group_id: &str) -> Result<Key, GroupError> {
        let name = match self.blobs.put(&[group_id.as_bytes()]) {
            Ok(name) => name,
            Err(error) => {
                self.make_room(now);
                self.blobs.put(&[group_id.as_bytes()]).map_err(|_| error)?
            }
        };
        let group = Group {
            name,
            state: State::Dead,
            since: now,
            generation: 0,
            protocol_type: Name::new(),
            protocol: Name::new(),
            leader: Key::NONE,
            joined: List::EMPTY,
            pending: List::EMPTY,
            joining: 0,
            owing: 0,
            bytes: 0,
            offsets: 0,
            due: Instant::NEVER,
        };
        let hash = hash(self.settings.seed, &[group_id.as_bytes()]);
        let key = match self.groups.insert(hash, GroupRow(group)) {
            Ok(key) => key,
            Err(group) => {
                self.make_room(now);
                match self.groups.insert(hash, group) {
                    Ok(key) => key,
                    Err(GroupRow(group)) => {
                        self.blobs.free(group.name);
                        return Err(GroupError::CoordinatorNotAvailable);
                    }
                }
            }
        };
        self.enter(now, key, State::Empty { until: linger(now, 0) });
        Ok(key)
    }

    /// Forgets the group that has been empty, without offsets and without anybody about to join, for longest.
    pub(super) fn make_room(&mut self, now: Instant) {
        let idle = |group: &Group| group.state.id() == StateId::Empty && group.offsets == 0 && group.pending.len == 0;
        let longest = self
            .groups
            .iter()
            .filter(|(_, row)| idle(&row.0))
            .min_by_key(|(_, row)| row.0.since);
        if let Some(key) = longest.map(|(key, _)| key) {
            self.forget(now, key);
        }
    }

    /// Removes an empty group, and members that were about to join it.
    pub(super) fn forget(&mut self, now: Instant, key: Key) {
        while let Some(pending) = self.group(key).map(|group| group.pending.first) {
            let Some(member) = self.take_member(pending) else { break };
            self.free_blobs(member);
        }
        self.enter(now, key, State::Dead);
        if let Some(GroupRow(group)) = self.groups.remove(key) {
            self.blobs.free(group.name);
        }
    }

    pub(super) fn group(&self, key: Key) -> Option<&Group> {
        self.groups.get(key).map(|row| &row.0)
    }

    pub(super) fn group_mut(&mut self, key: Key) -> Option<&mut Group> {
        self.groups.get_mut(key).map(|row| &mut row.0)
    }

    pub(super) fn member(&self, key: Key) -> Option<&Member> {
        self.members.get(key).map(|row| &row.0)
    }

    pub(super) fn member_mut(&mut self, key: Key) -> Option<&mut Member> {
        self.members.get_mut(key).map(|row| &mut row.0)
    }

    pub(super) fn first_joined(&self, key: Key) -> Key {
        self.group(key).map_or(Key::NONE, |group| group.joined.first)
    }

    pub(super) fn joined(&self, key: Key) -> impl Iterator<Item = (Key, &Member)> {
        self.list(self.first_joined(key))
    }

    pub(super) fn list(&self, first: Key) -> impl Iterator<Item = (Key, &Member)> {
        let mut at = first;
        core::iter::from_fn(move || {
            let key = at;
            let member = self.member(key)?;
            at = member.after;
            Some((key, member))
        })
    }

    pub(super) fn member_hash(&self, group: Key, id: &[u8]) -> u32 {
        hash(self.settings.seed, &[&group.row().to_le_bytes(), id])
    }

    /// A member or pending member by its id.
    pub(super) fn find_member(&self, group: Key, id: &str) -> Option<Key> {
        if id.is_empty() {
            return None;
        }
        self.members.find(self.member_hash(group, id.as_bytes()), |row| {
            row.0.group == group && row.0.who.id_bytes(&self.blobs) == id.as_bytes()
        })
    }

    pub(super) fn find_static(&self, group: Key, instance: &str) -> Option<Key> {
        self.joined(group)
            .find(|(_, member)| member.who.instance(&self.blobs) == Some(instance))
            .map(|(key, _)| key)
    }

    /// The member of that id, provided that it also has the instance id that was said.
    pub(super) fn validate(&self, group: Key, id: &str, instance: Option<&str>) -> Result<Key, GroupError> {
        let member = self
            .find_member(group, id)
            .filter(|key| self.member(*key).is_some_and(|m| !m.pending));
        let Some(instance) = instance else {
            return member.ok_or(GroupError::UnknownMemberId);
        };
        let its_own = member.filter(|key| {
            self.member(*key)
                .is_some_and(|m| m.who.instance(&self.blobs) == Some(instance))
        });
        its_own.ok_or_else(|| match self.find_static(group, instance) {
            Some(_) => GroupError::FencedInstanceId,
            None => GroupError::UnknownMemberId,
        })
    }

    /// Puts a member last in its group's list.
    pub(super) fn link(&mut self, key: Key) {
        let Some(member) = self.member(key) else { return };
        let (group, pending, bytes) = (member.group, member.pending, member.bytes());
        let Some(group) = self.group_mut(group) else {
            return;
        };
        group.bytes += bytes;
        let list = group.list_mut(pending);
        let last = core::mem::replace(&mut list.last, key);
        list.len += 1;
        if last == Key::NONE {
            list.first = key;
        }
        if let Some(m) = self.member_mut(last) {
            m.after = key;
        }
        if let Some(m) = self.member_mut(key) {
            m.before = last;
            m.after = Key::NONE;
        }
    }

    pub(super) fn unlink(&mut self, key: Key) {
        let Some(member) = self.member(key) else { return };
        let (group, pending, bytes) = (member.group, member.pending, member.bytes());
        let (before, after) = (member.before, member.after);
        if let Some(m) = self.member_mut(before) {
            m.after = after;
        }
        if let Some(m) = self.member_mut(after) {
            m.before = before;
        }
        if let Some(group) = self.group_mut(group) {
            group.bytes -= bytes;
            let list = group.list_mut(pending);
            list.len -= 1;
            if list.first == key {
                list.first = after;
            }
            if list.last == key {
                list.last = before;
            }
        }
    }

    /// Removes a member, answers what waits for it, and hands the lead on when it led.
    pub(super) fn remove_member(&mut self, now: Instant, key: Key, answers: &mut impl Answers) {
        self.answer_waiting(now, key, Answer::Refused(GroupError::UnknownMemberId), answers);
        let Some(member) = self.take_member(key) else { return };
        let group = member.group;
        self.free_blobs(member);
        let first = self.first_joined(group);
        if let Some(group) = self.group_mut(group)
            && group.leader == key
        {
            group.leader = first;
        }
    }

    /// Takes a member out of its group and the table.
    pub(super) fn take_member(&mut self, key: Key) -> Option<Member> {
        self.set_owes_sync(key, false);
        self.unlink(key);
        let MemberRow(member) = self.members.remove(key)?;
        if member.pending {
            self.pending = self.pending.saturating_sub(1);
        }
        Some(member)
    }

    pub(super) fn free_blobs(&mut self, member: Member) {
        member.who.free(&mut self.blobs);
        self.blobs.free(member.protocols);
        self.blobs.free(member.assignment);
    }

    pub(super) fn set_assignment(&mut self, key: Key, assignment: Blob) {
        let old = match self.member_mut(key) {
            Some(member) => core::mem::replace(&mut member.assignment, assignment),
            None => assignment,
        };
        self.blobs.free(old);
    }

    pub(super) fn swap_protocols(&mut self, key: Key, stored: Blob) {
        let Some(member) = self.member_mut(key) else {
            self.blobs.free(stored);
            return;
        };
        let before = member.bytes();
        let old = core::mem::replace(&mut member.protocols, stored);
        let (group, after) = (member.group, member.bytes());
        if let Some(group) = self.group_mut(group) {
            group.bytes = group.bytes + after - before;
        }
        self.blobs.free(old);
    }

    pub(super) fn set_owes_sync(&mut self, key: Key, owes: bool) {
        let Some(member) = self.member_mut(key) else { return };
        let (group, before) = (member.group, core::mem::replace(&mut member.owes_sync, owes));
        if let Some(group) = self.group_mut(group) {
            group.owing = group.owing + u32::from(owes) - u32::from(before);
        }
    }

    /// A member has asked for its assignment; once all have, none is waited for.
    pub(super) fn settle_sync(&mut self, group: Key, key: Key) {
        self.set_owes_sync(key, false);
        if let Some(group) = self.group_mut(group)
            && let (0, State::Stable { until }) = (group.owing, &mut group.state)
        {
            *until = Instant::NEVER;
        }
    }

    /// Lets a member's request wait. One that waited for the same member from another connection is told to join again.
    pub(super) fn wait(&mut self, now: Instant, key: Key, waiting: Waiting, answers: &mut impl Answers) {
        self.answer_waiting(now, key, Answer::Refused(GroupError::RebalanceInProgress), answers);
        let Some(member) = self.member_mut(key) else { return };
        member.waiting = waiting;
        let (group, joins) = (member.group, member.waits_for_join());
        if let Some(group) = self.group_mut(group) {
            group.joining += u32::from(joins);
        }
    }

    /// Answers what waits for a member, if anything, and starts its session anew.
    pub(super) fn answer_waiting(&mut self, now: Instant, key: Key, answer: Answer, answers: &mut impl Answers) {
        let Some(member) = self.member_mut(key) else { return };
        let (group, joined) = (member.group, member.waits_for_join());
        let (Waiting::Join(waiter) | Waiting::Sync(waiter)) = core::mem::take(&mut member.waiting) else {
            return;
        };
        if let Some(group) = self.group_mut(group) {
            group.joining -= u32::from(joined);
        }
        self.renew_session(now, key);
        answers.answer(waiter, answer);
    }
}
