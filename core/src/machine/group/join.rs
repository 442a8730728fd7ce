//! Joining: who is let in, new members and those that come back.

use super::member::{Member, NewId, Waiting, Who, protocols, store_protocols};
use super::state::State;
use super::{
    Answer, Answers, GroupError, Groups, Join, MemberKey, MemberRow, NEW_MEMBER_JOIN_TIMEOUT, StateId, Waiter, name,
};
use crate::blob::Blob;
use crate::memory::Memory;
use crate::table::Key;
use crate::time::Instant;

impl<M: Memory> Groups<M> {
    /// Whether `group.max.size` lets a member in. While members join, those that wait count: who comes last is out.
    pub(super) fn accepts(&self, key: Key, known: Option<Key>) -> bool {
        let Some(group) = self.group(key) else { return false };
        let member = known.and_then(|member| self.member(member)).filter(|m| !m.pending);
        match group.state.id() {
            StateId::Empty | StateId::Dead => true,
            StateId::PreparingRebalance => {
                member.is_some_and(Member::waits_for_join) || group.joining < self.settings.size_max
            }
            StateId::CompletingRebalance | StateId::Stable => {
                member.is_some() || group.joined.len < self.settings.size_max
            }
        }
    }

    /// Whether the group can go on with a member that names these protocols.
    pub(super) fn supports<'a, P>(&self, key: Key, join: &Join<'a, P>) -> bool
    where
        P: Iterator<Item = (&'a str, &'a [u8])> + Clone,
    {
        let Some(group) = self.group(key) else { return false };
        group.state.id() == StateId::Empty
            || group.protocol_type == join.protocol_type
                && join
                    .protocols
                    .clone()
                    .any(|(name, _)| self.all_support(key, name.as_bytes()))
    }

    pub(super) fn all_support(&self, key: Key, name: &[u8]) -> bool {
        self.joined(key)
            .all(|(_, member)| protocols(self.blobs.bytes(&member.protocols)).any(|(n, _)| n == name))
    }

    pub(super) fn join_new<'a, P>(
        &mut self,
        now: Instant,
        key: Key,
        join: &Join<'a, P>,
        waiter: Waiter,
        answers: &mut impl Answers,
    ) -> Result<(), GroupError>
    where
        P: Iterator<Item = (&'a str, &'a [u8])> + Clone,
    {
        match join.instance_id {
            Some(instance) => match self.find_static(key, instance) {
                Some(old) => self.replace_static(now, key, old, join, waiter, answers),
                None => self.admit_new(now, key, join, waiter, answers),
            },
            None if join.id_required => {
                if self.pending >= self.settings.pending_max {
                    return Err(GroupError::CoordinatorNotAvailable);
                }
                let member = self.new_member(key, join, Blob::EMPTY, true)?;
                let deadline = now + join.session_timeout;
                if let Some(m) = self.member_mut(member) {
                    m.deadline = deadline;
                }
                self.arm(key, deadline);
                self.pending += 1;
                let member = MemberKey(member);
                answers.answer(waiter, Answer::IdRequired { member });
                Ok(())
            }
            None => self.admit_new(now, key, join, waiter, answers),
        }
    }

    pub(super) fn admit_new<'a, P>(
        &mut self,
        now: Instant,
        key: Key,
        join: &Join<'a, P>,
        waiter: Waiter,
        answers: &mut impl Answers,
    ) -> Result<(), GroupError>
    where
        P: Iterator<Item = (&'a str, &'a [u8])> + Clone,
    {
        let stored = self.store(key, join, None)?;
        let member = self.new_member(key, join, stored, false)?;
        self.admit(now, key, member, join, waiter, answers);
        Ok(())
    }

    pub(super) fn admit_pending<'a, P>(
        &mut self,
        now: Instant,
        key: Key,
        member: Key,
        join: &Join<'a, P>,
        waiter: Waiter,
        answers: &mut impl Answers,
    ) -> Result<(), GroupError>
    where
        P: Iterator<Item = (&'a str, &'a [u8])> + Clone,
    {
        let stored = self.store(key, join, None)?;
        self.unlink(member);
        self.pending = self.pending.saturating_sub(1);
        if let Some(m) = self.member_mut(member) {
            m.pending = false;
            m.protocols = stored;
        }
        self.link(member);
        self.admit(now, key, member, join, waiter, answers);
        Ok(())
    }

    /// A row for a new member, in its group's list. Takes `stored`, and frees it when there is no place.
    pub(super) fn new_member<P>(
        &mut self,
        key: Key,
        join: &Join<'_, P>,
        stored: Blob,
        pending: bool,
    ) -> Result<Key, GroupError> {
        let member = self.draft(key, join, stored, pending)?;
        self.place(member)
    }

    /// A member that is in no table yet. Takes `stored`, and frees it on an error.
    pub(super) fn draft<P>(
        &mut self,
        key: Key,
        join: &Join<'_, P>,
        stored: Blob,
        pending: bool,
    ) -> Result<Member, GroupError> {
        let id = NewId::new(join.instance_id.unwrap_or(join.client_id), join.random);
        match Who::store(&mut self.blobs, &id, join.instance_id, join.client_id, join.client_host) {
            Ok(who) => Ok(Member {
                group: key,
                before: Key::NONE,
                after: Key::NONE,
                pending,
                who,
                protocols: stored,
                assignment: Blob::EMPTY,
                session_timeout: join.session_timeout,
                rebalance_timeout: join.rebalance_timeout,
                deadline: Instant::NEVER,
                waiting: Waiting::Nothing,
                fresh: false,
                owes_sync: false,
            }),
            Err(error) => {
                self.blobs.free(stored);
                Err(error.into())
            }
        }
    }

    pub(super) fn place(&mut self, member: Member) -> Result<Key, GroupError> {
        let hash = self.member_hash(member.group, member.who.id_bytes(&self.blobs));
        match self.members.insert(hash, MemberRow(member)) {
            Ok(member) => {
                self.link(member);
                Ok(member)
            }
            Err(MemberRow(member)) => {
                self.free_blobs(member);
                Err(GroupError::CoordinatorNotAvailable)
            }
        }
    }

    /// Stores what a join says of its protocols, in place of what `replaced` said before, if the group may have that much.
    fn store<'a, P>(&mut self, key: Key, join: &Join<'a, P>, replaced: Option<Key>) -> Result<Blob, GroupError>
    where
        P: Iterator<Item = (&'a str, &'a [u8])> + Clone,
    {
        let stored = store_protocols(&mut self.blobs, join.protocols.clone())?;
        let before = self.group(key).map_or(0, |group| group.bytes as usize);
        let replaced = replaced
            .and_then(|member| self.member(member))
            .map_or(0, |member| member.protocols.len());
        if before + stored.len() > replaced + self.settings.group_bytes_max as usize {
            self.blobs.free(stored);
            return Err(GroupError::GroupMaxSizeReached);
        }
        Ok(stored)
    }

    /// The group has one more member, whose join waits.
    pub(super) fn admit<P>(
        &mut self,
        now: Instant,
        key: Key,
        member: Key,
        join: &Join<'_, P>,
        waiter: Waiter,
        answers: &mut impl Answers,
    ) {
        if let Some(group) = self.group_mut(key) {
            if group.joined.len == 1 {
                group.protocol_type = name(join.protocol_type);
            }
            if group.leader == Key::NONE {
                group.leader = member;
            }
            if let State::PreparingRebalance { first: Some(round), .. } = &mut group.state {
                round.extended = true;
            }
        }
        let deadline = now + NEW_MEMBER_JOIN_TIMEOUT;
        if let Some(m) = self.member_mut(member) {
            m.session_timeout = join.session_timeout;
            m.rebalance_timeout = join.rebalance_timeout;
            m.fresh = true;
            m.deadline = deadline;
        }
        self.arm(key, deadline);
        self.wait(now, member, Waiting::Join(waiter), answers);
        self.rebalance_or_complete_join(now, key, answers);
    }

    /// A member that is in the group joins again.
    pub(super) fn rejoin<'a, P>(
        &mut self,
        now: Instant,
        key: Key,
        member: Key,
        join: &Join<'a, P>,
        waiter: Waiter,
        answers: &mut impl Answers,
    ) -> Result<(), GroupError>
    where
        P: Iterator<Item = (&'a str, &'a [u8])> + Clone,
    {
        let group = self.group(key).ok_or(GroupError::UnknownMemberId)?;
        let (state, is_leader) = (group.state.id(), group.leader == member);
        let same = self.member(member).is_some_and(|m| {
            protocols(self.blobs.bytes(&m.protocols)).eq(join.protocols.clone().map(|(n, data)| (n.as_bytes(), data)))
        });
        let as_before = match state {
            StateId::Empty | StateId::Dead => return Err(GroupError::UnknownMemberId),
            StateId::PreparingRebalance => false,
            // It may not have seen the answer to its last join.
            StateId::CompletingRebalance => same,
            // The leader joins again when something changed that only it can see, such as the number of partitions.
            StateId::Stable => same && !is_leader,
        };
        if as_before {
            let member = MemberKey(member);
            answers.answer(
                waiter,
                Answer::Joined {
                    member,
                    replaced: false,
                },
            );
            return Ok(());
        }
        if !same {
            let stored = self.store(key, join, Some(member))?;
            self.swap_protocols(member, stored);
        }
        if let Some(m) = self.member_mut(member) {
            m.session_timeout = join.session_timeout;
            m.rebalance_timeout = join.rebalance_timeout;
        }
        self.wait(now, member, Waiting::Join(waiter), answers);
        self.rebalance_or_complete_join(now, key, answers);
        Ok(())
    }

    /// A static member came back without its id: the old one is fenced, the new one takes its place, assignment and lead.
    pub(super) fn replace_static<'a, P>(
        &mut self,
        now: Instant,
        key: Key,
        old: Key,
        join: &Join<'a, P>,
        waiter: Waiter,
        answers: &mut impl Answers,
    ) -> Result<(), GroupError>
    where
        P: Iterator<Item = (&'a str, &'a [u8])> + Clone,
    {
        let stored = self.store(key, join, Some(old))?;
        let mut draft = self.draft(key, join, stored, false)?;
        let led = self.group(key).is_some_and(|group| group.leader == old);
        self.answer_waiting(now, old, Answer::Refused(GroupError::FencedInstanceId), answers);
        let owes_sync = self.member(old).is_some_and(|member| member.owes_sync);
        if let Some(mut gone) = self.take_member(old) {
            draft.assignment = core::mem::take(&mut gone.assignment);
            self.free_blobs(gone);
        }
        // The old one's row is free, so there is a place.
        let new = self.place(draft)?;
        if owes_sync {
            self.set_owes_sync(new, true);
        }
        if led && let Some(group) = self.group_mut(key) {
            group.leader = new;
        }
        self.renew_session(now, new);
        let group = self.group(key).ok_or(GroupError::UnknownMemberId)?;
        let (state, protocol) = (group.state.id(), group.protocol.clone());
        if state == StateId::Stable && self.select_protocol(key) == protocol {
            let member = MemberKey(new);
            answers.answer(waiter, Answer::Joined { member, replaced: true });
            return Ok(());
        }
        self.wait(now, new, Waiting::Join(waiter), answers);
        // In the middle of an assignment the old id may be with the leader already, so that the new one would get nothing.
        self.rebalance_or_complete_join(now, key, answers);
        Ok(())
    }
}
