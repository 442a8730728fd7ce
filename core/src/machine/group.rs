//! Consumer groups, the classic protocol (KIP-62, 134, 345, 394, 429, 559, 800, 814): joining, syncing, heartbeats, leaving.
//!
//! All groups of a broker live in one [`Groups`] table, so that limits are the broker's. Inputs are `on_*`; answers to joins and syncs,
//! which may come later and for other members, go to an [`Answers`]. Time and randomness come in as arguments. A lost connection is no
//! input: as in Kafka, its member stays until its session expires.
//!
//! Left out, because one broker keeps members in memory only: a group's members do not outlive a restart; they join again.

mod expiry;
mod join;
mod member;
mod rebalance;
mod roster;
mod state;
mod view;

#[cfg(test)]
mod tests;

use heapless::String;

pub use member::{PROTOCOL_NAME_BYTES_MAX, PROTOCOLS_MAX};
pub use state::{MOVES, StateId};
pub use view::{GroupView, MemberView};

use crate::blob::{Blob, Blobs, StoreError};
use crate::error_code::ErrorCode;
use crate::memory::Memory;
use crate::table::{Key, Row, Table};
use crate::time::{Instant, Millis};

use member::{Member, Waiting};
use state::State;

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
    /// The group is full, or its members' metadata would be too long together. Clients give up.
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

impl From<GroupError> for ErrorCode {
    fn from(error: GroupError) -> Self {
        match error {
            GroupError::InvalidGroupId => Self::INVALID_GROUP_ID,
            GroupError::InvalidSessionTimeout => Self::INVALID_SESSION_TIMEOUT,
            GroupError::InconsistentGroupProtocol => Self::INCONSISTENT_GROUP_PROTOCOL,
            GroupError::UnknownMemberId => Self::UNKNOWN_MEMBER_ID,
            GroupError::IllegalGeneration => Self::ILLEGAL_GENERATION,
            GroupError::RebalanceInProgress => Self::REBALANCE_IN_PROGRESS,
            GroupError::FencedInstanceId => Self::FENCED_INSTANCE_ID,
            GroupError::GroupMaxSizeReached => Self::GROUP_MAX_SIZE_REACHED,
            GroupError::CoordinatorNotAvailable => Self::COORDINATOR_NOT_AVAILABLE,
            GroupError::GroupIdNotFound => Self::GROUP_ID_NOT_FOUND,
            GroupError::NonEmptyGroup => Self::NON_EMPTY_GROUP,
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
    /// Bytes of ids and protocols of one group's members: so many that the leader's JoinGroup reply, which holds them all, has a buffer.
    pub group_bytes_max: u32,
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
    /// Bytes of its members' ids and protocols, pending ones included.
    bytes: u32,
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
