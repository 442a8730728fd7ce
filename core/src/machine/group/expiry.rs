//! What time brings: sessions and pending ids expire, states end.

use super::state::{FirstRound, State};
use super::{Answers, EMPTY_GROUP_LINGER, Groups, StateId};
use crate::memory::Memory;
use crate::table::Key;
use crate::time::{Instant, Millis};

impl<M: Memory> Groups<M> {
    pub(super) fn expire_pending(&mut self, now: Instant, key: Key, answers: &mut impl Answers) {
        let mut at = self.group(key).map_or(Key::NONE, |group| group.pending.first);
        let mut any = false;
        while let Some(member) = self.member(at) {
            let after = member.after;
            if member.expires_at() <= now {
                self.remove_member(now, at, answers);
                any = true;
            }
            at = after;
        }
        if any {
            self.end_join_if_nobody_is_missing(now, key, answers);
        }
    }

    pub(super) fn expire_sessions(&mut self, now: Instant, key: Key, answers: &mut impl Answers) {
        let mut at = self.first_joined(key);
        let mut any = false;
        while let Some(member) = self.member(at) {
            let after = member.after;
            if member.expires_at() <= now {
                self.remove_member(now, at, answers);
                any = true;
            }
            at = after;
        }
        if !any {
            return;
        }
        match self.group(key).map(|group| group.state.id()) {
            Some(StateId::PreparingRebalance) => self.end_join_if_nobody_is_missing(now, key, answers),
            _ => self.rebalance_or_complete_join(now, key, answers),
        }
    }

    /// After an expiry the first rebalance, too, ends early when all that are left have joined, as in Kafka.
    pub(super) fn end_join_if_nobody_is_missing(&mut self, now: Instant, key: Key, answers: &mut impl Answers) {
        let complete = self
            .group(key)
            .is_some_and(|group| group.state.id() == StateId::PreparingRebalance && group.everybody_joined());
        if complete {
            self.complete_join(now, key, answers);
        }
    }

    /// What the state's own end brings, when it has come.
    pub(super) fn end_state(&mut self, now: Instant, key: Key, answers: &mut impl Answers) {
        let delay_max = self.settings.initial_rebalance_delay;
        let Some(group) = self.group_mut(key) else { return };
        if group.state.until() > now {
            return;
        }
        let pending = group.pending.len;
        match &mut group.state {
            State::Empty { .. } if pending > 0 => self.postpone(key, now + EMPTY_GROUP_LINGER),
            State::Empty { .. } => self.forget(now, key),
            State::PreparingRebalance {
                until,
                first: Some(round),
            } if round.extended && round.remaining.0 > 0 => {
                let delay = delay_max.min(round.remaining);
                *round = FirstRound {
                    delay,
                    remaining: Millis(round.remaining.0.saturating_sub(round.delay.0)),
                    extended: false,
                };
                *until = now + delay;
            }
            State::PreparingRebalance { .. } => self.complete_join(now, key, answers),
            State::CompletingRebalance { .. } | State::Stable { .. } => self.expire_syncs(now, key, answers),
            State::Dead => {}
        }
    }

    /// Members that have joined and never asked for their assignment are removed.
    pub(super) fn expire_syncs(&mut self, now: Instant, key: Key, answers: &mut impl Answers) {
        let mut at = self.first_joined(key);
        while let Some(member) = self.member(at) {
            let (after, owes) = (member.after, member.owes_sync);
            if owes {
                self.remove_member(now, at, answers);
            }
            at = after;
        }
        self.prepare_rebalance(now, key, answers);
    }

    /// The first time at which a group has something to do.
    pub(super) fn first_due(&self, key: Key) -> Instant {
        let Some(group) = self.group(key) else {
            return Instant::NEVER;
        };
        let pending = self.list(group.pending.first).map(|(_, member)| member.expires_at());
        let joined = self.joined(key).map(|(_, member)| member.expires_at());
        pending.chain(joined).fold(group.state.until(), Instant::min)
    }

    pub(super) fn arm(&mut self, key: Key, at: Instant) {
        if let Some(group) = self.group_mut(key) {
            group.due = group.due.min(at);
        }
    }

    pub(super) fn postpone(&mut self, key: Key, until: Instant) {
        if let Some(group) = self.group_mut(key) {
            group.state.set_until(until);
        }
        self.arm(key, until);
    }

    /// The longest that any member may take to join again.
    pub(super) fn rebalance_timeout(&self, key: Key) -> Millis {
        self.joined(key)
            .map(|(_, member)| member.rebalance_timeout)
            .max()
            .unwrap_or(Millis(0))
    }

    pub(super) fn renew_session(&mut self, now: Instant, key: Key) {
        let Some(member) = self.member_mut(key) else { return };
        let deadline = now + member.session_timeout;
        member.deadline = deadline;
        let group = member.group;
        self.arm(group, deadline);
    }
}
