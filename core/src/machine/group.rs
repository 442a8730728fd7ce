//! Consumer groups, the classic protocol (KIP-62, 134, 345, 394, 429, 559, 800, 814): joining, syncing, heartbeats, leaving.
//!
//! All groups of a broker live in one [`Groups`] table, so that limits are the broker's. Inputs are `on_*`; answers to joins and syncs,
//! which may come later and for other members, go to an [`Answers`]. Time and randomness come in as arguments. A lost connection is no
//! input: as in Kafka, its member stays until its session expires.
//!
//! Left out, because one broker keeps members in memory only: a group's members do not outlive a restart; they join again.

mod member;
mod state;
mod view;

#[cfg(test)]
mod tests;

use heapless::String;

pub use member::{PROTOCOL_NAME_BYTES_MAX, PROTOCOLS_MAX};
pub use state::{MOVES, StateId};
pub use view::{GroupView, MemberView};

use crate::blob::{Blob, Blobs, StoreError};
use crate::memory::Memory;
use crate::table::{Key, Row, Table, hash};
use crate::time::{Instant, Millis};

use member::{Member, NewId, Waiting, Who, protocols, store_protocols};
use state::{FirstRound, State};

/// How long a member that was never answered may wait in a rebalance: it does not know its id, so only time can tell that it has gone.
/// Kafka's value.
pub const NEW_MEMBER_JOIN_TIMEOUT: Millis = Millis(5 * 60 * 1000);

/// How long an empty group without offsets is remembered: Kafka's interval between looks for such groups.
pub const EMPTY_GROUP_LINGER: Millis = Millis(10 * 60 * 1000);

type Name = String<PROTOCOL_NAME_BYTES_MAX>;

/// Names one group while it lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct GroupKey(Key);

impl GroupKey {
    /// The group's place, below the bound of groups: for arrays and deadlines beside the table.
    #[must_use]
    pub const fn row(self) -> u32 {
        self.0.row()
    }
}

/// Names one member while it lives. A static member that comes back is a new member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct MemberKey(Key);

/// The caller's mark on a join or sync: comes back with its answer. One mark waits at most once at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Waiter(pub u64);

/// What a join or sync is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Answer {
    /// The member is in the generation that its group is in.
    Joined {
        /// Who.
        member: MemberKey,
        /// It took the place of a static member without a rebalance: should it be the leader, it must not make an assignment.
        replaced: bool,
    },
    /// It shall join again with the id that was made for it (`MEMBER_ID_REQUIRED`).
    IdRequired {
        /// Holds the id.
        member: MemberKey,
    },
    /// Its assignment is known.
    Synced {
        /// Who.
        member: MemberKey,
        /// Of which generation.
        generation: i32,
    },
    /// Not as asked.
    Refused(GroupError),
}

/// Takes answers as they arise.
pub trait Answers {
    /// `waiter` has its answer.
    fn answer(&mut self, waiter: Waiter, answer: Answer);
}

impl<F: FnMut(Waiter, Answer)> Answers for F {
    fn answer(&mut self, waiter: Waiter, answer: Answer) {
        self(waiter, answer);
    }
}

/// Why something was refused. Each has one error code on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum GroupError {
    /// The group id is empty.
    InvalidGroupId,
    /// The session timeout is out of bounds.
    InvalidSessionTimeout,
    /// Another protocol type, or no protocol that everybody knows.
    InconsistentGroupProtocol,
    /// No such member.
    UnknownMemberId,
    /// Not the present generation.
    IllegalGeneration,
    /// The member shall join again.
    RebalanceInProgress,
    /// Another member has its instance id.
    FencedInstanceId,
    /// The group is full, or the member's metadata can never be stored. Clients give up.
    GroupMaxSizeReached,
    /// No place at present. Clients try again.
    CoordinatorNotAvailable,
    /// No such group.
    GroupIdNotFound,
    /// The group has members.
    NonEmptyGroup,
}

impl From<StoreError> for GroupError {
    /// A lack of room is the broker's and may pass, so the client shall try again; what can never be stored must not be tried again.
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Full => Self::CoordinatorNotAvailable,
            StoreError::TooLong => Self::GroupMaxSizeReached,
        }
    }
}

/// What a broker's groups go by.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// `group.initial.rebalance.delay.ms`.
    pub initial_rebalance_delay: Millis,
    /// `group.min.session.timeout.ms`.
    pub session_timeout_min: Millis,
    /// `group.max.session.timeout.ms`.
    pub session_timeout_max: Millis,
    /// `group.max.size`.
    pub size_max: u32,
    /// Members that may have been told their id without having joined with it, of all groups together.
    pub pending_max: u32,
    /// Mixed into the index; random, so that peers cannot choose names that collide.
    pub seed: u32,
}

/// A JoinGroup request.
#[derive(Clone, Copy, Debug)]
pub struct Join<'a, P> {
    /// Group.
    pub group_id: &'a str,
    /// Empty for a new member.
    pub member_id: &'a str,
    /// `group.instance.id` of a static member.
    pub instance_id: Option<&'a str>,
    /// The client's name, from the request header.
    pub client_id: &'a str,
    /// The client's address.
    pub client_host: &'a str,
    /// Session timeout.
    pub session_timeout: Millis,
    /// Rebalance timeout; the session timeout in version 0.
    pub rebalance_timeout: Millis,
    /// "consumer", "connect", …
    pub protocol_type: &'a str,
    /// Names and metadata, best first.
    pub protocols: P,
    /// Version 4 and later: a new dynamic member is first told its id.
    pub id_required: bool,
    /// 16 unpredictable bytes, for the id of a new member.
    pub random: [u8; 16],
}

/// A SyncGroup request.
#[derive(Clone, Copy, Debug)]
pub struct Sync<'a, A> {
    /// Group.
    pub group_id: &'a str,
    /// Member.
    pub member_id: &'a str,
    /// `group.instance.id` of a static member.
    pub instance_id: Option<&'a str>,
    /// Generation.
    pub generation: i32,
    /// Version 5 and later.
    pub protocol_type: Option<&'a str>,
    /// Version 5 and later.
    pub protocol_name: Option<&'a str>,
    /// From the leader: members and their assignments.
    pub assignments: A,
}

/// Who says it is in a group: heartbeats, commits.
#[derive(Clone, Copy, Debug)]
pub struct Claim<'a> {
    /// Group.
    pub group_id: &'a str,
    /// Member; empty for none.
    pub member_id: &'a str,
    /// `group.instance.id` of a static member.
    pub instance_id: Option<&'a str>,
    /// Generation; −1 for none.
    pub generation: i32,
}

/// A list through the members' table.
#[derive(Clone, Copy, Debug)]
struct List {
    first: Key,
    last: Key,
    len: u32,
}

impl List {
    const EMPTY: Self = Self {
        first: Key::NONE,
        last: Key::NONE,
        len: 0,
    };
}

#[derive(Debug)]
struct Group {
    name: Blob,
    state: State,
    /// When it came into its state.
    since: Instant,
    generation: i32,
    /// Empty until a member has joined.
    protocol_type: Name,
    /// The protocol of this generation; empty when none was chosen.
    protocol: Name,
    leader: Key,
    joined: List,
    pending: List,
    /// Members whose join waits.
    joining: u32,
    /// Members that owe a sync.
    owing: u32,
    /// Committed offsets that the owner keeps for it.
    offsets: u32,
    /// No later than the first thing that is due.
    due: Instant,
}

impl Group {
    const fn everybody_joined(&self) -> bool {
        self.joined.len == self.joining && self.pending.len == 0
    }

    fn list_mut(&mut self, pending: bool) -> &mut List {
        if pending { &mut self.pending } else { &mut self.joined }
    }
}

/// Rows of the groups' table; only its size is the owner's business.
#[derive(Debug)]
pub struct GroupRow(Group);

/// Rows of the members' table; only its size is the owner's business.
#[derive(Debug)]
pub struct MemberRow(Member);

/// Every group of a broker and their members.
///
/// When full (groups): the group that has been empty and without offsets for longest gives way; without one, what would make a group
///   gets [`GroupError::CoordinatorNotAvailable`].
/// When full (members, pending members, bytes): the join gets the same, the group stays as it was. It is an error after which clients try
///   again, unlike `GROUP_MAX_SIZE_REACHED`, which is said of the bound that was set for one group and of metadata that will never fit.
/// Cost: nothing allocates. Heartbeat: two look-ups by hash. Join and sync: a walk over the group's members at most, per protocol.
pub struct Groups<M: Memory> {
    settings: Settings,
    groups: Table<GroupRow, M>,
    members: Table<MemberRow, M>,
    blobs: Blobs<M>,
    pending: u32,
}

impl<M: Memory> Groups<M> {
    /// No groups, over memory that the caller took: see [`Table::new`] and [`Blobs::new`].
    #[must_use]
    pub fn new(
        settings: Settings,
        groups: (M::Of<Row<GroupRow>>, M::Of<u32>),
        members: (M::Of<Row<MemberRow>>, M::Of<u32>),
        blobs: Blobs<M>,
    ) -> Self {
        Self {
            settings,
            groups: Table::new(groups.0, groups.1),
            members: Table::new(members.0, members.1),
            blobs,
            pending: 0,
        }
    }

    // ── Inputs ─────────────────────────────────────────────────────────────────────────────────────────────────

    /// JoinGroup. The answer to `waiter` comes at once or with a later input; it always comes.
    ///
    /// When full: see [`Groups`].
    pub fn on_join<'a, P>(&mut self, now: Instant, join: &Join<'a, P>, waiter: Waiter, answers: &mut impl Answers)
    where
        P: Iterator<Item = (&'a str, &'a [u8])> + Clone,
    {
        if let Err(error) = self.join(now, join, waiter, answers) {
            answers.answer(waiter, Answer::Refused(error));
        }
    }

    fn join<'a, P>(
        &mut self,
        now: Instant,
        join: &Join<'a, P>,
        waiter: Waiter,
        answers: &mut impl Answers,
    ) -> Result<(), GroupError>
    where
        P: Iterator<Item = (&'a str, &'a [u8])> + Clone,
    {
        if join.group_id.is_empty() {
            return Err(GroupError::InvalidGroupId);
        }
        if join.session_timeout < self.settings.session_timeout_min
            || join.session_timeout > self.settings.session_timeout_max
        {
            return Err(GroupError::InvalidSessionTimeout);
        }
        check_protocols(join)?;
        let key = match self.find(join.group_id) {
            Some(GroupKey(key)) => key,
            None if join.member_id.is_empty() => self.create(now, join.group_id)?,
            None => return Err(GroupError::UnknownMemberId),
        };
        let known = self.find_member(key, join.member_id);
        if !self.accepts(key, known) {
            if let Some(member) = known {
                self.remove_member(now, member, answers);
                self.maybe_complete_join(now, key, answers);
            }
            return Err(GroupError::GroupMaxSizeReached);
        }
        if !self.supports(key, join) {
            return Err(GroupError::InconsistentGroupProtocol);
        }
        if join.member_id.is_empty() {
            return self.join_new(now, key, join, waiter, answers);
        }
        match known.and_then(|member| Some((member, self.member(member)?.pending))) {
            // A static member is never told to come again with an id, so this one has borrowed another's.
            Some((_, true)) if join.instance_id.is_some() => Err(GroupError::UnknownMemberId),
            Some((member, true)) => self.admit_pending(now, key, member, join, waiter, answers),
            _ => {
                let member = self.validate(key, join.member_id, join.instance_id)?;
                self.rejoin(now, key, member, join, waiter, answers)
            }
        }
    }

    /// SyncGroup. The answer to `waiter` comes at once or with a later input; it always comes.
    ///
    /// When full: when the leader's assignments cannot all be stored, every waiting member gets the error and the group rebalances again.
    pub fn on_sync<'a, A>(&mut self, now: Instant, sync: Sync<'a, A>, waiter: Waiter, answers: &mut impl Answers)
    where
        A: Iterator<Item = (&'a str, &'a [u8])>,
    {
        if let Err(error) = self.sync(now, sync, waiter, answers) {
            answers.answer(waiter, Answer::Refused(error));
        }
    }

    fn sync<'a, A>(
        &mut self,
        now: Instant,
        sync: Sync<'a, A>,
        waiter: Waiter,
        answers: &mut impl Answers,
    ) -> Result<(), GroupError>
    where
        A: Iterator<Item = (&'a str, &'a [u8])>,
    {
        if sync.group_id.is_empty() {
            return Err(GroupError::InvalidGroupId);
        }
        let GroupKey(key) = self.find(sync.group_id).ok_or(GroupError::UnknownMemberId)?;
        let member = self.validate(key, sync.member_id, sync.instance_id)?;
        let group = self.group(key).ok_or(GroupError::UnknownMemberId)?;
        if group.generation != sync.generation {
            return Err(GroupError::IllegalGeneration);
        }
        let differs = |said: Option<&str>, is: &Name| said.is_some_and(|said| !is.is_empty() && said != is.as_str());
        if differs(sync.protocol_type, &group.protocol_type) || differs(sync.protocol_name, &group.protocol) {
            return Err(GroupError::InconsistentGroupProtocol);
        }
        let (generation, is_leader) = (group.generation, group.leader == member);
        match group.state.id() {
            StateId::Empty | StateId::Dead => Err(GroupError::UnknownMemberId),
            StateId::PreparingRebalance => Err(GroupError::RebalanceInProgress),
            StateId::CompletingRebalance => {
                self.wait(now, member, Waiting::Sync(waiter), answers);
                self.settle_sync(key, member);
                if is_leader {
                    self.take_assignments(now, key, sync.assignments, answers);
                }
                Ok(())
            }
            StateId::Stable => {
                self.settle_sync(key, member);
                let answer = Answer::Synced {
                    member: MemberKey(member),
                    generation,
                };
                answers.answer(waiter, answer);
                Ok(())
            }
        }
    }

    /// Heartbeat. [`GroupError::RebalanceInProgress`] counts as one and says that the member shall join again.
    pub fn on_heartbeat(&mut self, now: Instant, claim: Claim<'_>) -> Result<(), GroupError> {
        if claim.group_id.is_empty() {
            return Err(GroupError::InvalidGroupId);
        }
        let GroupKey(key) = self.find(claim.group_id).ok_or(GroupError::UnknownMemberId)?;
        let member = self.validate(key, claim.member_id, claim.instance_id)?;
        let group = self.group(key).ok_or(GroupError::UnknownMemberId)?;
        if group.generation != claim.generation {
            return Err(GroupError::IllegalGeneration);
        }
        let state = group.state.id();
        self.renew_session(now, member);
        match state {
            StateId::Empty | StateId::Dead => Err(GroupError::UnknownMemberId),
            StateId::PreparingRebalance => Err(GroupError::RebalanceInProgress),
            StateId::CompletingRebalance | StateId::Stable => Ok(()),
        }
    }

    /// One member of a LeaveGroup request; an empty `member_id` with an instance id is an administrator's removal.
    pub fn on_leave(
        &mut self,
        now: Instant,
        group_id: &str,
        member_id: &str,
        instance_id: Option<&str>,
        answers: &mut impl Answers,
    ) -> Result<(), GroupError> {
        let GroupKey(key) = self.find(group_id).ok_or(GroupError::UnknownMemberId)?;
        let member = if member_id.is_empty() {
            instance_id.and_then(|instance| self.find_static(key, instance))
        } else {
            match self.find_member(key, member_id) {
                Some(member) if self.member(member).is_some_and(|m| m.pending) => Some(member),
                _ => Some(self.validate(key, member_id, instance_id)?),
            }
        };
        let member = member.ok_or(GroupError::UnknownMemberId)?;
        let was_pending = self.member(member).is_some_and(|m| m.pending);
        self.remove_member(now, member, answers);
        if was_pending {
            self.maybe_complete_join(now, key, answers);
        } else {
            self.rebalance_or_complete_join(now, key, answers);
        }
        Ok(())
    }

    /// Whether an offset commit may be done: a member's of the present generation, or anybody's without one while the group is empty. A group
    /// that is not there is made for the latter. Renews the member's session.
    ///
    /// Errors: [`GroupError::GroupIdNotFound`] for a generation of an absent group (before OffsetCommit version 9 the wire says
    ///   `ILLEGAL_GENERATION`). When full: see [`Groups`].
    pub fn on_commit(&mut self, now: Instant, claim: Claim<'_>) -> Result<GroupKey, GroupError> {
        let Some(GroupKey(key)) = self.find(claim.group_id) else {
            if claim.generation >= 0 {
                return Err(GroupError::GroupIdNotFound);
            }
            return self.create(now, claim.group_id).map(GroupKey);
        };
        let group = self.group(key).ok_or(GroupError::GroupIdNotFound)?;
        let (state, generation) = (group.state.id(), group.generation);
        if state == StateId::Empty && claim.generation < 0 {
            return Ok(GroupKey(key));
        }
        if claim.generation < 0 && claim.member_id.is_empty() && claim.instance_id.is_none() {
            return Err(GroupError::UnknownMemberId);
        }
        let member = self.validate(key, claim.member_id, claim.instance_id)?;
        if generation != claim.generation {
            return Err(GroupError::IllegalGeneration);
        }
        if state == StateId::CompletingRebalance {
            return Err(GroupError::RebalanceInProgress);
        }
        self.renew_session(now, member);
        Ok(GroupKey(key))
    }

    /// Makes an empty group, for offsets read back at start; finds it when it is there.
    ///
    /// When full: see [`Groups`].
    pub fn on_offsets_found(&mut self, now: Instant, group_id: &str) -> Result<GroupKey, GroupError> {
        self.find(group_id)
            .map_or_else(|| self.create(now, group_id).map(GroupKey), Ok)
    }

    /// Says how many committed offsets the owner keeps for a group. One with offsets is not forgotten.
    pub fn set_offsets(&mut self, now: Instant, GroupKey(key): GroupKey, offsets: u32) {
        let Some(group) = self.group_mut(key) else { return };
        group.offsets = offsets;
        if group.state.id() == StateId::Empty {
            let until = linger(now, offsets);
            group.state.set_until(until);
            self.arm(key, until);
        }
    }

    /// Forgets an empty group. Its offsets are the owner's to drop.
    ///
    /// Errors: [`GroupError::NonEmptyGroup`], [`GroupError::GroupIdNotFound`].
    pub fn on_delete(&mut self, now: Instant, GroupKey(key): GroupKey) -> Result<(), GroupError> {
        let group = self.group(key).ok_or(GroupError::GroupIdNotFound)?;
        if group.state.id() != StateId::Empty {
            return Err(GroupError::NonEmptyGroup);
        }
        self.forget(now, key);
        Ok(())
    }

    /// When [`Groups::on_deadline`] should next be called for a group; may be early, never late. Ask again after every input.
    #[must_use]
    pub fn next_deadline(&self, GroupKey(key): GroupKey) -> Instant {
        self.group(key).map_or(Instant::NEVER, |group| group.due)
    }

    /// Time has come to look at a group: sessions, pending ids and the state's own end.
    pub fn on_deadline(&mut self, now: Instant, GroupKey(key): GroupKey, answers: &mut impl Answers) {
        self.expire_pending(now, key, answers);
        self.expire_sessions(now, key, answers);
        self.end_state(now, key, answers);
        let due = self.first_due(key);
        if let Some(group) = self.group_mut(key) {
            group.due = due;
        }
    }

    // ── Joining ────────────────────────────────────────────────────────────────────────────────────────────────

    /// Whether `group.max.size` lets a member in. While members join, those that wait count: who comes last is out.
    fn accepts(&self, key: Key, known: Option<Key>) -> bool {
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
    fn supports<'a, P>(&self, key: Key, join: &Join<'a, P>) -> bool
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

    fn all_support(&self, key: Key, name: &[u8]) -> bool {
        self.joined(key)
            .all(|(_, member)| protocols(self.blobs.bytes(&member.protocols)).any(|(n, _)| n == name))
    }

    fn join_new<'a, P>(
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

    fn admit_new<'a, P>(
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
        let stored = store_protocols(&mut self.blobs, join.protocols.clone())?;
        let member = self.new_member(key, join, stored, false)?;
        self.admit(now, key, member, join, waiter, answers);
        Ok(())
    }

    fn admit_pending<'a, P>(
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
        let stored = store_protocols(&mut self.blobs, join.protocols.clone())?;
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
    fn new_member<P>(&mut self, key: Key, join: &Join<'_, P>, stored: Blob, pending: bool) -> Result<Key, GroupError> {
        let member = self.draft(key, join, stored, pending)?;
        self.place(member)
    }

    /// A member that is in no table yet. Takes `stored`, and frees it on an error.
    fn draft<P>(&mut self, key: Key, join: &Join<'_, P>, stored: Blob, pending: bool) -> Result<Member, GroupError> {
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

    fn place(&mut self, member: Member) -> Result<Key, GroupError> {
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

    /// The group has one more member, whose join waits.
    fn admit<P>(
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
    fn rejoin<'a, P>(
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
            let stored = store_protocols(&mut self.blobs, join.protocols.clone())?;
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
    fn replace_static<'a, P>(
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
        let stored = store_protocols(&mut self.blobs, join.protocols.clone())?;
        let mut draft = self.draft(key, join, stored, false)?;
        let led = self.group(key).is_some_and(|group| group.leader == old);
        self.answer_waiting(now, old, Answer::Refused(GroupError::FencedInstanceId), answers);
        let mut owes_sync = false;
        if let Some(mut gone) = self.take_member(old) {
            owes_sync = gone.owes_sync;
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

    // ── Rebalancing ────────────────────────────────────────────────────────────────────────────────────────────

    /// Something changed: begins a rebalance, or ends the present one when nobody is missing any more.
    fn rebalance_or_complete_join(&mut self, now: Instant, key: Key, answers: &mut impl Answers) {
        match self.group(key).map(|group| group.state.id()) {
            Some(StateId::Empty | StateId::CompletingRebalance | StateId::Stable) => {
                self.prepare_rebalance(now, key, answers);
            }
            Some(StateId::PreparingRebalance) => self.maybe_complete_join(now, key, answers),
            Some(StateId::Dead) | None => {}
        }
    }

    fn prepare_rebalance(&mut self, now: Instant, key: Key, answers: &mut impl Answers) {
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
    fn maybe_complete_join(&mut self, now: Instant, key: Key, answers: &mut impl Answers) {
        let complete = self.group(key).is_some_and(|group| {
            matches!(group.state, State::PreparingRebalance { first: None, .. }) && group.everybody_joined()
        });
        if complete {
            self.complete_join(now, key, answers);
        }
    }

    /// Goes on with those that have joined.
    fn complete_join(&mut self, now: Instant, key: Key, answers: &mut impl Answers) {
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
    fn elect_leader(&mut self, key: Key) -> bool {
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
    fn select_protocol(&self, key: Key) -> Name {
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
    fn take_assignments<'a>(
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

    // ── Time ───────────────────────────────────────────────────────────────────────────────────────────────────

    fn expire_pending(&mut self, now: Instant, key: Key, answers: &mut impl Answers) {
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

    fn expire_sessions(&mut self, now: Instant, key: Key, answers: &mut impl Answers) {
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
    fn end_join_if_nobody_is_missing(&mut self, now: Instant, key: Key, answers: &mut impl Answers) {
        let complete = self
            .group(key)
            .is_some_and(|group| group.state.id() == StateId::PreparingRebalance && group.everybody_joined());
        if complete {
            self.complete_join(now, key, answers);
        }
    }

    /// What the state's own end brings, when it has come.
    fn end_state(&mut self, now: Instant, key: Key, answers: &mut impl Answers) {
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
    fn expire_syncs(&mut self, now: Instant, key: Key, answers: &mut impl Answers) {
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
    fn first_due(&self, key: Key) -> Instant {
        let Some(group) = self.group(key) else {
            return Instant::NEVER;
        };
        let pending = self.list(group.pending.first).map(|(_, member)| member.expires_at());
        let joined = self.joined(key).map(|(_, member)| member.expires_at());
        pending.chain(joined).fold(group.state.until(), Instant::min)
    }

    fn arm(&mut self, key: Key, at: Instant) {
        if let Some(group) = self.group_mut(key) {
            group.due = group.due.min(at);
        }
    }

    fn postpone(&mut self, key: Key, until: Instant) {
        if let Some(group) = self.group_mut(key) {
            group.state.set_until(until);
        }
        self.arm(key, until);
    }

    /// The longest that any member may take to join again.
    fn rebalance_timeout(&self, key: Key) -> Millis {
        self.joined(key)
            .map(|(_, member)| member.rebalance_timeout)
            .max()
            .unwrap_or(Millis(0))
    }

    fn renew_session(&mut self, now: Instant, key: Key) {
        let Some(member) = self.member_mut(key) else { return };
        let deadline = now + member.session_timeout;
        member.deadline = deadline;
        let group = member.group;
        self.arm(group, deadline);
    }

    // ── Groups and members ─────────────────────────────────────────────────────────────────────────────────────

    /// The one place where a group's state changes.
    fn enter(&mut self, now: Instant, key: Key, to: State) {
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

    fn create(&mut self, now: Instant, group_id: &str) -> Result<Key, GroupError> {
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
    fn make_room(&mut self, now: Instant) {
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
    fn forget(&mut self, now: Instant, key: Key) {
        while let Some(pending) = self.group(key).map(|group| group.pending.first) {
            let Some(member) = self.take_member(pending) else { break };
            self.free_blobs(member);
        }
        self.enter(now, key, State::Dead);
        if let Some(GroupRow(group)) = self.groups.remove(key) {
            self.blobs.free(group.name);
        }
    }

    fn group(&self, key: Key) -> Option<&Group> {
        self.groups.get(key).map(|row| &row.0)
    }

    fn group_mut(&mut self, key: Key) -> Option<&mut Group> {
        self.groups.get_mut(key).map(|row| &mut row.0)
    }

    fn member(&self, key: Key) -> Option<&Member> {
        self.members.get(key).map(|row| &row.0)
    }

    fn member_mut(&mut self, key: Key) -> Option<&mut Member> {
        self.members.get_mut(key).map(|row| &mut row.0)
    }

    fn first_joined(&self, key: Key) -> Key {
        self.group(key).map_or(Key::NONE, |group| group.joined.first)
    }

    fn joined(&self, key: Key) -> impl Iterator<Item = (Key, &Member)> {
        self.list(self.first_joined(key))
    }

    fn list(&self, first: Key) -> impl Iterator<Item = (Key, &Member)> {
        let mut at = first;
        core::iter::from_fn(move || {
            let key = at;
            let member = self.member(key)?;
            at = member.after;
            Some((key, member))
        })
    }

    fn member_hash(&self, group: Key, id: &[u8]) -> u32 {
        hash(self.settings.seed, &[&group.row().to_le_bytes(), id])
    }

    /// A member or pending member by its id.
    fn find_member(&self, group: Key, id: &str) -> Option<Key> {
        if id.is_empty() {
            return None;
        }
        self.members.find(self.member_hash(group, id.as_bytes()), |row| {
            row.0.group == group && row.0.who.id_bytes(&self.blobs) == id.as_bytes()
        })
    }

    fn find_static(&self, group: Key, instance: &str) -> Option<Key> {
        self.joined(group)
            .find(|(_, member)| member.who.instance(&self.blobs) == Some(instance))
            .map(|(key, _)| key)
    }

    /// The member of that id, provided that it also has the instance id that was said.
    fn validate(&self, group: Key, id: &str, instance: Option<&str>) -> Result<Key, GroupError> {
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
    fn link(&mut self, key: Key) {
        let Some(member) = self.member(key) else { return };
        let (group, pending) = (member.group, member.pending);
        let Some(list) = self.group_mut(group).map(|group| group.list_mut(pending)) else {
            return;
        };
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

    fn unlink(&mut self, key: Key) {
        let Some(member) = self.member(key) else { return };
        let (group, pending, before, after) = (member.group, member.pending, member.before, member.after);
        if let Some(m) = self.member_mut(before) {
            m.after = after;
        }
        if let Some(m) = self.member_mut(after) {
            m.before = before;
        }
        if let Some(list) = self.group_mut(group).map(|group| group.list_mut(pending)) {
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
    fn remove_member(&mut self, now: Instant, key: Key, answers: &mut impl Answers) {
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
    fn take_member(&mut self, key: Key) -> Option<Member> {
        self.set_owes_sync(key, false);
        self.unlink(key);
        let MemberRow(member) = self.members.remove(key)?;
        if member.pending {
            self.pending = self.pending.saturating_sub(1);
        }
        Some(member)
    }

    fn free_blobs(&mut self, member: Member) {
        member.who.free(&mut self.blobs);
        self.blobs.free(member.protocols);
        self.blobs.free(member.assignment);
    }

    fn set_assignment(&mut self, key: Key, assignment: Blob) {
        let old = match self.member_mut(key) {
            Some(member) => core::mem::replace(&mut member.assignment, assignment),
            None => assignment,
        };
        self.blobs.free(old);
    }

    fn swap_protocols(&mut self, key: Key, stored: Blob) {
        let old = match self.member_mut(key) {
            Some(member) => core::mem::replace(&mut member.protocols, stored),
            None => stored,
        };
        self.blobs.free(old);
    }

    fn set_owes_sync(&mut self, key: Key, owes: bool) {
        let Some(member) = self.member_mut(key) else { return };
        let (group, before) = (member.group, core::mem::replace(&mut member.owes_sync, owes));
        if let Some(group) = self.group_mut(group) {
            group.owing = group.owing + u32::from(owes) - u32::from(before);
        }
    }

    /// A member has asked for its assignment; once all have, none is waited for.
    fn settle_sync(&mut self, group: Key, key: Key) {
        self.set_owes_sync(key, false);
        if let Some(group) = self.group_mut(group)
            && let (0, State::Stable { until }) = (group.owing, &mut group.state)
        {
            *until = Instant::NEVER;
        }
    }

    /// Lets a member's request wait. One that waited for the same member from another connection is told to join again.
    fn wait(&mut self, now: Instant, key: Key, waiting: Waiting, answers: &mut impl Answers) {
        self.answer_waiting(now, key, Answer::Refused(GroupError::RebalanceInProgress), answers);
        let Some(member) = self.member_mut(key) else { return };
        member.waiting = waiting;
        let (group, joins) = (member.group, member.waits_for_join());
        if let Some(group) = self.group_mut(group) {
            group.joining += u32::from(joins);
        }
    }

    /// Answers what waits for a member, if anything, and starts its session anew.
    fn answer_waiting(&mut self, now: Instant, key: Key, answer: Answer, answers: &mut impl Answers) {
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

/// Whether a join names a protocol type and protocols that can be kept.
fn check_protocols<'a, P>(join: &Join<'a, P>) -> Result<(), GroupError>
where
    P: Iterator<Item = (&'a str, &'a [u8])> + Clone,
{
    let count = join.protocols.clone().take(PROTOCOLS_MAX + 1).count();
    let fits = |name: &str| name.len() <= PROTOCOL_NAME_BYTES_MAX;
    let legal = !join.protocol_type.is_empty()
        && fits(join.protocol_type)
        && (1..=PROTOCOLS_MAX).contains(&count)
        && join.protocols.clone().all(|(name, _)| fits(name));
    if legal {
        Ok(())
    } else {
        Err(GroupError::InconsistentGroupProtocol)
    }
}

/// A name that was checked to be short enough.
fn name(text: &str) -> Name {
    Name::try_from(text).unwrap_or_default()
}

/// When an empty group is forgotten.
fn linger(now: Instant, offsets: u32) -> Instant {
    if offsets > 0 {
        Instant::NEVER
    } else {
        now + EMPTY_GROUP_LINGER
    }
}

/// Generations are positive once there is one: −1 on the wire means none.
const fn next_generation(generation: i32) -> i32 {
    if generation == i32::MAX { 1 } else { generation + 1 }
}
