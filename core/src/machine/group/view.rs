//! What a group and its members look like, for replies.

use super::member::{Member, protocols, subscribes};
use super::{Group, GroupKey, Groups, MemberKey, StateId};
use crate::memory::Memory;
use crate::table::Key;
use crate::time::Instant;

/// The protocol type of consumers: its metadata tells which topics a member subscribes to.
const CONSUMER: &str = "consumer";

/// A group as it is now.
pub struct GroupView<'a, M: Memory> {
    groups: &'a Groups<M>,
    key: Key,
    group: &'a Group,
}

/// A member as it is now.
pub struct MemberView<'a, M: Memory> {
    groups: &'a Groups<M>,
    key: Key,
    member: &'a Member,
}

impl<M: Memory> Groups<M> {
    /// A group by its id.
    #[must_use]
    pub fn find(&self, group_id: &str) -> Option<GroupKey> {
        let hash = crate::table::hash(self.settings.seed, &[group_id.as_bytes()]);
        self.groups
            .find(hash, |row| self.blobs.bytes(&row.0.name) == group_id.as_bytes())
            .map(GroupKey)
    }

    /// A group, while it lives.
    #[must_use]
    pub fn view(&self, GroupKey(key): GroupKey) -> Option<GroupView<'_, M>> {
        let group = self.group(key)?;
        Some(GroupView {
            groups: self,
            key,
            group,
        })
    }

    /// A member, while it lives; one that was only told its id, too.
    #[must_use]
    pub fn view_member(&self, MemberKey(key): MemberKey) -> Option<MemberView<'_, M>> {
        let member = self.member(key)?;
        Some(MemberView {
            groups: self,
            key,
            member,
        })
    }

    /// The group at a place (see [`GroupKey::row`]).
    #[must_use]
    pub fn group_at(&self, row: u32) -> Option<GroupKey> {
        self.groups.key_at(row).map(GroupKey)
    }

    /// Places ever used: every [`GroupKey::row`] is below.
    #[must_use]
    pub fn places(&self) -> u32 {
        self.groups.places()
    }

    /// Every group.
    pub fn iter(&self) -> impl Iterator<Item = GroupView<'_, M>> {
        self.groups.iter().map(|(key, row)| GroupView {
            groups: self,
            key,
            group: &row.0,
        })
    }

    /// Groups there are.
    #[must_use]
    pub const fn len(&self) -> u32 {
        self.groups.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Members of all groups, pending ones included.
    #[must_use]
    pub const fn members_len(&self) -> u32 {
        self.members.len()
    }

    /// Bytes in use and the most there were, of names, metadata and assignments.
    #[must_use]
    pub const fn bytes(&self) -> (usize, usize) {
        (self.blobs.live(), self.blobs.peak())
    }
}

impl<'a, M: Memory> GroupView<'a, M> {
    /// Its key.
    #[must_use]
    pub const fn key(&self) -> GroupKey {
        GroupKey(self.key)
    }

    /// The group id.
    #[must_use]
    pub fn id(&self) -> &'a str {
        self.groups.blobs.text(&self.group.name)
    }

    /// Its state.
    #[must_use]
    pub const fn state(&self) -> StateId {
        self.group.state.id()
    }

    /// When it came into that state.
    #[must_use]
    pub const fn since(&self) -> Instant {
        self.group.since
    }

    /// The generation; 0 before the first.
    #[must_use]
    pub const fn generation(&self) -> i32 {
        self.group.generation
    }

    /// "consumer", "connect", …; empty when nobody has joined since it was made.
    #[must_use]
    pub fn protocol_type(&self) -> &'a str {
        &self.group.protocol_type
    }

    /// The protocol of this generation; empty when none is chosen.
    #[must_use]
    pub fn protocol(&self) -> &'a str {
        &self.group.protocol
    }

    /// The leader's member id; empty without members.
    #[must_use]
    pub fn leader(&self) -> &'a str {
        self.groups
            .member(self.group.leader)
            .map_or("", |member| member.who.id(&self.groups.blobs))
    }

    /// Members.
    #[must_use]
    pub const fn len(&self) -> u32 {
        self.group.joined.len
    }

    /// Whether it has no members.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.group.joined.len == 0
    }

    /// Committed offsets that its owner keeps.
    #[must_use]
    pub const fn offsets(&self) -> u32 {
        self.group.offsets
    }

    /// The members, longest-standing first.
    pub fn members(&self) -> impl Iterator<Item = MemberView<'a, M>> + use<'a, M> {
        let groups = self.groups;
        groups
            .joined(self.key)
            .map(move |(key, member)| MemberView { groups, key, member })
    }

    /// Whether members consume a topic, as far as can be told: what cannot be read counts as everything.
    #[must_use]
    pub fn is_subscribed(&self, topic: &str) -> bool {
        if self.protocol_type() != CONSUMER || self.is_empty() {
            return false;
        }
        self.members()
            .any(|member| subscribes(member.metadata(), topic).unwrap_or(true))
    }

    /// Whether its members are consumers.
    #[must_use]
    pub fn is_consumer(&self) -> bool {
        self.protocol_type() == CONSUMER
    }
}

impl<'a, M: Memory> MemberView<'a, M> {
    /// Its group.
    #[must_use]
    pub fn group(&self) -> Option<GroupView<'a, M>> {
        self.groups.view(GroupKey(self.member.group))
    }

    /// Whether it leads its group.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.groups
            .group(self.member.group)
            .is_some_and(|group| group.leader == self.key)
    }

    /// Its member id.
    #[must_use]
    pub fn id(&self) -> &'a str {
        self.member.who.id(&self.groups.blobs)
    }

    /// `group.instance.id` of a static member.
    #[must_use]
    pub fn instance_id(&self) -> Option<&'a str> {
        self.member.who.instance(&self.groups.blobs)
    }

    /// The client's name when it joined.
    #[must_use]
    pub fn client_id(&self) -> &'a str {
        self.member.who.client(&self.groups.blobs)
    }

    /// The client's address when it joined.
    #[must_use]
    pub fn client_host(&self) -> &'a str {
        self.member.who.host(&self.groups.blobs)
    }

    /// Its metadata for the group's protocol; empty when none is chosen.
    #[must_use]
    pub fn metadata(&self) -> &'a [u8] {
        let chosen = self
            .groups
            .group(self.member.group)
            .map_or("", |group| group.protocol.as_str());
        protocols(self.groups.blobs.bytes(&self.member.protocols))
            .find(|(name, _)| *name == chosen.as_bytes())
            .map_or(&[], |(_, metadata)| metadata)
    }

    /// Its assignment.
    #[must_use]
    pub fn assignment(&self) -> &'a [u8] {
        self.groups.blobs.bytes(&self.member.assignment)
    }
}
