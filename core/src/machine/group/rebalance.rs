//! Rebalancing: from a change in the group to the next generation's assignment.

use super::member::{Member, PROTOCOLS_MAX, Waiting, protocols};
use super::state::{FirstRound, State};
use super::{Answer, Answers, GroupError, Groups, MemberKey, Name, StateId, linger, name, next_generation};
use crate::blob::Blob;
use crate::memory::Memory;
use crate::table::Key;
use crate::time::{Instant, Millis};

impl<M: Memory> Groups<M> {
    /// Something changed: begins a rebalance, or ends the present one when nobody is missing any more.
    pub(super) fn rebalance_or_complete_join(&mut self, now: Instant, key: Key, answers: &mut impl Answers) {
        match self.group(key).map(|group| group.state.id()) {
            Some(StateId::Empty | StateId::CompletingRebalance | StateId::Stable) => {
                self.prepare_rebalance(now, key, answers);
            }
            Some(StateId::PreparingRebalance) => self.maybe_complete_join(now, key, answers),
            Some(StateId::Dead) | None => {}
        }
    }

    pub(super) fn prepare_rebalance(&mut self, now: Instant, key: Key, answers: &mut impl Answers) {
        let Some(state) = self.group(key).map(|group| group.state.id()) else {
            return;
        };
        let mut at = self.first_joined(key);
        while let Some(member) = self.member(at) {
            let after = member.after;
            if state == StateId::CompletingRebalance {
                self.set_assignment(at, Blob::EMPTY);
                if matches!(self.member(at).map(|m| m.waiting), Some(Waiting::Sync(_))) {
                    self.answer_waiting(now, at, Answer::Refused(GroupError::RebalanceInProgress), answers);
                }
            }
            self.set_owes_sync(at, false);
            at = after;
        }
        let timeout = self.rebalance_timeout(key);
        if state == StateId::Empty {
            let delay = self.settings.initial_rebalance_delay;
            let first = FirstRound {
                delay,
                remaining: Millis(timeout.0.saturating_sub(delay.0)),
                extended: false,
            };
            let until = now + delay;
            self.enter(
                now,
                key,
                State::PreparingRebalance {
                    until,
                    first: Some(first),
                },
            );
        } else {
            let until = now + timeout;
            self.enter(now, key, State::PreparingRebalance { until, first: None });
            self.maybe_complete_join(now, key, answers);
        }
    }

    /// Ends the rebalance when everybody has joined; the first one of an empty group always waits its time.
    pub(super) fn maybe_complete_join(&mut self, now: Instant, key: Key, answers: &mut impl Answers) {
        let complete = self.group(key).is_some_and(|group| {
            matches!(group.state, State::PreparingRebalance { first: None, .. }) && group.everybody_joined()
        });
        if complete {
            self.complete_join(now, key, answers);
        }
    }

    /// Goes on with those that have joined.
    pub(super) fn complete_join(&mut self, now: Instant, key: Key, answers: &mut impl Answers) {
        let mut at = self.first_joined(key);
        while let Some(member) = self.member(at) {
            let after = member.after;
            if !member.waits_for_join() && !member.who.is_static() {
                self.remove_member(now, at, answers);
            }
            at = after;
        }
        let Some(group) = self.group_mut(key) else { return };
        if group.joined.len == 0 {
            group.generation = next_generation(group.generation);
            group.protocol.clear();
            let until = linger(now, group.offsets);
            self.enter(now, key, State::Empty { until });
            return;
        }
        if !self.elect_leader(key) {
            // Only static members that are away: their sessions decide.
            let until = now + self.rebalance_timeout(key);
            self.postpone(key, until);
            return;
        }
        let protocol = self.select_protocol(key);
        if let Some(group) = self.group_mut(key) {
            group.generation = next_generation(group.generation);
            group.protocol = protocol;
        }
        let until = now + self.rebalance_timeout(key);
        self.enter(now, key, State::CompletingRebalance { until });
        let mut at = self.first_joined(key);
        while let Some(member) = self.member(at) {
            let after = member.after;
            let member = MemberKey(at);
            self.set_owes_sync(at, true);
            self.answer_waiting(
                now,
                at,
                Answer::Joined {
                    member,
                    replaced: false,
                },
                answers,
            );
            self.renew_session(now, at);
            if let Some(m) = self.member_mut(at) {
                m.fresh = false;
            }
            at = after;
        }
    }

    /// Makes sure that the leader is one that has joined, when any has.
    pub(super) fn elect_leader(&mut self, key: Key) -> bool {
        let Some(group) = self.group(key) else { return false };
        if self.member(group.leader).is_some_and(Member::waits_for_join) {
            return true;
        }
        let next = self
            .joined(key)
            .find(|(_, member)| member.waits_for_join())
            .map(|(member, _)| member);
        match (next, self.group_mut(key)) {
            (Some(next), Some(group)) => {
                group.leader = next;
                true
            }
            _ => false,
        }
    }

    /// The protocol that everybody supports and most members like best; of several, what the longest-standing member names first.
    pub(super) fn select_protocol(&self, key: Key) -> Name {
        let Some((_, eldest)) = self.joined(key).next() else {
            return Name::new();
        };
        let names = || protocols(self.blobs.bytes(&eldest.protocols)).map(|(name, _)| name);
        let mut candidates = [false; PROTOCOLS_MAX];
        for (candidate, name) in candidates.iter_mut().zip(names()) {
            *candidate = self.all_support(key, name);
        }
        let mut votes = [0u32; PROTOCOLS_MAX];
        for (_, member) in self.joined(key) {
            let vote = protocols(self.blobs.bytes(&member.protocols)).find_map(|(liked, _)| {
                names()
                    .zip(&candidates)
                    .position(|(name, candidate)| *candidate && name == liked)
            });
            if let Some(count) = vote.and_then(|vote| votes.get_mut(vote)) {
                *count += 1;
            }
        }
        let most = votes.iter().max().copied().unwrap_or(0);
        let chosen = names()
            .zip(votes)
            .find(|(_, count)| *count == most)
            .map_or(&[][..], |(name, _)| name);
        name(core::str::from_utf8(chosen).unwrap_or(""))
    }

    /// The leader has spoken: everybody gets its assignment, or none.
    pub(super) fn take_assignments<'a>(
        &mut self,
        now: Instant,
        key: Key,
        assignments: impl Iterator<Item = (&'a str, &'a [u8])>,
        answers: &mut impl Answers,
    ) {
        let mut at = self.first_joined(key);
        while let Some(member) = self.member(at) {
            let after = member.after;
            self.set_assignment(at, Blob::EMPTY);
            at = after;
        }
        let mut stored = Ok(());
        for (member_id, assignment) in assignments {
            let Some(member) = self
                .find_member(key, member_id)
                .filter(|m| self.member(*m).is_some_and(|m| !m.pending))
            else {
                continue;
            };
            match self.blobs.put(&[assignment]) {
                Ok(blob) => self.set_assignment(member, blob),
                Err(error) => stored = Err(error),
            }
        }
        let Some(group) = self.group(key) else { return };
        let generation = group.generation;
        if stored.is_ok() {
            let until = if group.owing > 0 {
                group.state.until()
            } else {
                Instant::NEVER
            };
            self.enter(now, key, State::Stable { until });
        }
        let mut at = self.first_joined(key);
        while let Some(member) = self.member(at) {
            let (after, waiting) = (member.after, member.waiting);
            if matches!(waiting, Waiting::Sync(_)) {
                let member = MemberKey(at);
                let answer = match stored {
                    Ok(()) => Answer::Synced { member, generation },
                    Err(error) => Answer::Refused(GroupError::from(error)),
                };
                self.answer_waiting(now, at, answer, answers);
            }
            at = after;
        }
        if stored.is_err() {
            self.prepare_rebalance(now, key, answers);
        }
    }
}
