//! Membership of a consumer group by the classic protocol: join, take a share, keep it by heartbeats, commit, leave.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use skerry_core::api::consumer_protocol::{ConsumerProtocolAssignment, ConsumerProtocolSubscription, TopicPartition};
use skerry_core::api::join_group::JoinGroupRequestProtocol;
use skerry_core::api::leave_group::MemberIdentity;
use skerry_core::api::offset_commit::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use skerry_core::api::sync_group::SyncGroupRequestAssignment;
use skerry_core::api::{HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, OffsetCommitRequest, SyncGroupRequest};
use skerry_core::error_code::ErrorCode;
use skerry_core::wire::{Array, Message, Reader, SliceWriter, Version};

use super::Failure;
use super::client::{Client, Node, Try, refused, words};

/// After this long without a heartbeat the coordinator takes the share away.
const SESSION: Duration = Duration::from_secs(30);
/// How long a rebalance may wait for us.
const REBALANCE: Duration = Duration::from_secs(60);
/// How often a heartbeat is due.
const HEARTBEAT: Duration = Duration::from_secs(3);
/// The protocol type of consumers.
const CONSUMER: &str = "consumer";
/// The one assignor that all clients have.
const RANGE: &str = "range";
/// The version in which subscriptions and assignments are written: what every client reads.
const PROTOCOL_VERSION: Version = 1;

/// A member of a group that reads one topic.
pub struct Member {
    group: String,
    topic: String,
    coordinator: Node,
    id: String,
    generation: i32,
    heartbeat_due: Instant,
}

/// What a heartbeat or a commit found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The share is ours.
    Stable,
    /// The group shares anew: commit, then join again.
    Rebalance,
    /// The share is lost already: join again.
    Lost,
}

impl Member {
    /// A member of `group` that has not joined yet.
    pub fn new(client: &mut Client, group: &str, topic: &str) -> Result<Self, Failure> {
        Ok(Self {
            group: group.into(),
            topic: topic.into(),
            coordinator: client.coordinator(group)?,
            id: String::new(),
            generation: -1,
            heartbeat_due: Instant::now(),
        })
    }

    /// Joins and gives the partitions that are ours now.
    pub fn join(&mut self, client: &mut Client) -> Result<Vec<i32>, Failure> {
        client.persist(|client| {
            let Some(joined) = self.try_join(client)? else {
                return Ok(Try::Later(format!("group {}: joining", self.group)));
            };
            let assignments = if joined.leader {
                self.assign(client, &joined.members)?
            } else {
                Vec::new()
            };
            match self.try_sync(client, &assignments)? {
                Some(partitions) => {
                    self.heartbeat_due = Instant::now() + HEARTBEAT;
                    Ok(Try::Done(partitions))
                }
                None => Ok(Try::Later(format!("group {}: shared anew", self.group))),
            }
        })
    }

    /// One JoinGroup; `None` when it must be sent again.
    fn try_join(&mut self, client: &mut Client) -> Result<Option<Joined>, Failure> {
        let topics = [self.topic.as_str()];
        let subscription = with_version(&ConsumerProtocolSubscription {
            topics: Array::Slice(&topics),
            ..ConsumerProtocolSubscription::default()
        })?;
        let protocols = [JoinGroupRequestProtocol {
            name: RANGE,
            metadata: &subscription,
        }];
        let request = JoinGroupRequest {
            group_id: &self.group,
            session_timeout_ms: millis(SESSION),
            rebalance_timeout_ms: millis(REBALANCE),
            member_id: &self.id,
            group_instance_id: None,
            protocol_type: CONSUMER,
            protocols: Array::Slice(&protocols),
            reason: None,
        };
        let (error, joined, id, generation) =
            client.ask_for(&self.coordinator, &request, Version::MAX, REBALANCE, |reply| {
                let members = reply.members.iter().map(|member| Subscribed {
                    id: member.member_id.into(),
                    instance: member.group_instance_id.map(str::to_owned),
                    topics: subscribed(member.metadata),
                });
                let joined = Joined {
                    leader: reply.leader == reply.member_id,
                    members: members.collect(),
                };
                Ok((
                    reply.error_code,
                    joined,
                    reply.member_id.to_owned(),
                    reply.generation_id,
                ))
            })?;
        match error {
            ErrorCode::NONE => {
                self.id = id;
                self.generation = generation;
                Ok(Some(joined))
            }
            ErrorCode::MEMBER_ID_REQUIRED => {
                self.id = id;
                self.try_join(client)
            }
            error => self.again(client, error).map(|()| None),
        }
    }

    /// One SyncGroup; `None` when the group must be joined again.
    fn try_sync(
        &mut self,
        client: &mut Client,
        assignments: &[(String, Vec<u8>)],
    ) -> Result<Option<Vec<i32>>, Failure> {
        let assignments: Vec<SyncGroupRequestAssignment<'_>> = assignments
            .iter()
            .map(|(member_id, assignment)| SyncGroupRequestAssignment { member_id, assignment })
            .collect();
        let request = SyncGroupRequest {
            group_id: &self.group,
            generation_id: self.generation,
            member_id: &self.id,
            group_instance_id: None,
            protocol_type: Some(CONSUMER),
            protocol_name: Some(RANGE),
            assignments: Array::Slice(&assignments),
        };
        let topic = self.topic.clone();
        let (error, partitions) = client.ask_for(&self.coordinator, &request, Version::MAX, REBALANCE, |reply| {
            let partitions = if reply.error_code.is_none() {
                assigned(reply.assignment, &topic)?
            } else {
                Vec::new()
            };
            Ok((reply.error_code, partitions))
        })?;
        match error {
            ErrorCode::NONE => Ok(Some(partitions)),
            error => self.again(client, error).map(|()| None),
        }
    }

    /// What must change before the same is tried again. Errors: the refusals that no further try can help.
    fn again(&mut self, client: &mut Client, error: ErrorCode) -> Result<(), Failure> {
        match error {
            ErrorCode::UNKNOWN_MEMBER_ID => self.id.clear(),
            ErrorCode::NOT_COORDINATOR | ErrorCode::COORDINATOR_NOT_AVAILABLE => {
                self.coordinator = client.coordinator(&self.group)?;
            }
            ErrorCode::REBALANCE_IN_PROGRESS | ErrorCode::ILLEGAL_GENERATION => {}
            error if error.is_retriable() => {}
            error => return Err(refused(&format!("group {}", self.group), error, None)),
        }
        Ok(())
    }

    /// As the leader: everyone's share of the topics that they subscribe to.
    fn assign(&self, client: &mut Client, members: &[Subscribed]) -> Result<Vec<(String, Vec<u8>)>, Failure> {
        let mut topics: Vec<&str> = members
            .iter()
            .flat_map(|m| m.topics.iter().map(String::as_str))
            .collect();
        topics.sort_unstable();
        topics.dedup();
        let counts: BTreeMap<String, usize> = client
            .metadata(Some(&topics), false)?
            .into_iter()
            .filter(|topic| topic.error.is_none())
            .map(|topic| (topic.name, topic.partitions.len()))
            .collect();
        let shares = range(members, &counts);
        members
            .iter()
            .map(|member| {
                let share = shares.get(&member.id).cloned().unwrap_or_default();
                let share: Vec<TopicPartition<'_>> = share
                    .iter()
                    .map(|(topic, partitions)| TopicPartition {
                        topic,
                        partitions: Array::Slice(partitions),
                    })
                    .collect();
                let assignment = with_version(&ConsumerProtocolAssignment {
                    assigned_partitions: Array::Slice(&share),
                    user_data: None,
                })?;
                Ok((member.id.clone(), assignment))
            })
            .collect()
    }

    /// Sends a heartbeat when one is due.
    pub fn heartbeat(&mut self, client: &mut Client) -> Result<Standing, Failure> {
        if Instant::now() < self.heartbeat_due {
            return Ok(Standing::Stable);
        }
        let request = HeartbeatRequest {
            group_id: &self.group,
            generation_id: self.generation,
            member_id: &self.id,
            group_instance_id: None,
        };
        let error = match client.ask(&self.coordinator, &request, |reply| Ok(reply.error_code)) {
            Err(Failure::Broken(_) | Failure::Unreachable(_)) => ErrorCode::COORDINATOR_NOT_AVAILABLE,
            other => other?,
        };
        self.heartbeat_due = Instant::now() + HEARTBEAT;
        self.standing(client, error)
    }

    fn standing(&mut self, client: &mut Client, error: ErrorCode) -> Result<Standing, Failure> {
        match error {
            ErrorCode::NONE => Ok(Standing::Stable),
            ErrorCode::REBALANCE_IN_PROGRESS => Ok(Standing::Rebalance),
            ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::ILLEGAL_GENERATION => {
                self.again(client, error)?;
                Ok(Standing::Lost)
            }
            error => self.again(client, error).map(|()| Standing::Stable),
        }
    }

    /// Commits the next offsets of partitions.
    pub fn commit(&mut self, client: &mut Client, positions: &BTreeMap<i32, i64>) -> Result<Standing, Failure> {
        let mut standing = Standing::Stable;
        client.persist(|client| {
            let error = commit(
                client,
                &self.coordinator,
                &self.group,
                (self.generation, &self.id),
                &self.topic,
                positions,
            )?;
            standing = self.standing(client, error)?;
            if standing == Standing::Stable && !error.is_none() {
                return Ok(Try::Later(format!("group {}: {}", self.group, words(error))));
            }
            Ok(Try::Done(()))
        })?;
        Ok(standing)
    }

    /// Leaves, so that others get the share at once. A failure costs them a wait, no more.
    pub fn leave(&self, client: &mut Client) {
        let members = [MemberIdentity {
            member_id: &self.id,
            group_instance_id: None,
            reason: None,
        }];
        let request = LeaveGroupRequest {
            group_id: &self.group,
            member_id: &self.id,
            members: Array::Slice(&members),
        };
        if let Err(failure) = client.ask(&self.coordinator, &request, |_| Ok(())) {
            log::info!("group {}: leaving failed: {failure:?}", self.group);
        }
    }
}

/// Sends one commit of a generation and member; (−1, "") is for a group without members. Gives the first error.
pub fn commit(
    client: &mut Client,
    coordinator: &Node,
    group: &str,
    (generation, member): (i32, &str),
    topic: &str,
    positions: &BTreeMap<i32, i64>,
) -> Result<ErrorCode, Failure> {
    let partitions: Vec<OffsetCommitRequestPartition<'_>> = positions
        .iter()
        .map(|(partition, offset)| OffsetCommitRequestPartition {
            partition_index: *partition,
            committed_offset: *offset,
            ..OffsetCommitRequestPartition::default()
        })
        .collect();
    let topics = [OffsetCommitRequestTopic {
        name: topic,
        partitions: Array::Slice(&partitions),
    }];
    let request = OffsetCommitRequest {
        group_id: group,
        generation_id_or_member_epoch: generation,
        member_id: member,
        topics: Array::Slice(&topics),
        ..OffsetCommitRequest::default()
    };
    client.ask(coordinator, &request, |reply| {
        let mut errors = reply
            .topics
            .iter()
            .flat_map(|topic| topic.partitions.iter())
            .map(|p| p.error_code);
        Ok(errors.find(|error| !error.is_none()).unwrap_or(ErrorCode::NONE))
    })
}

/// The answer to a join.
struct Joined {
    leader: bool,
    /// Everyone, when we lead.
    members: Vec<Subscribed>,
}

/// A member and what it wants to read.
#[derive(Clone, Debug, Default)]
struct Subscribed {
    id: String,
    instance: Option<String>,
    topics: Vec<String>,
}

/// Each member's partitions of each topic, as Java's range assignor shares them: topic by topic, neighbouring partitions,
/// members in the order of their instance ids, then of their own ids, the first ones getting what is left over.
fn range(members: &[Subscribed], counts: &BTreeMap<String, usize>) -> BTreeMap<String, Vec<(String, Vec<i32>)>> {
    let mut shares: BTreeMap<String, Vec<(String, Vec<i32>)>> = BTreeMap::new();
    for (topic, count) in counts {
        let mut readers: Vec<&Subscribed> = members.iter().filter(|m| m.topics.contains(topic)).collect();
        readers.sort_by_key(|m| (m.instance.is_none(), m.instance.clone(), m.id.clone()));
        let (each, over) = (count / readers.len().max(1), count % readers.len().max(1));
        let mut next = 0;
        for (at, reader) in readers.iter().enumerate() {
            let take = each + usize::from(at < over);
            let mine: Vec<i32> = (next..next + take).filter_map(|p| i32::try_from(p).ok()).collect();
            next += take;
            if !mine.is_empty() {
                shares.entry(reader.id.clone()).or_default().push((topic.clone(), mine));
            }
        }
    }
    shares
}

/// A subscription or assignment behind its version.
fn with_version<'a, M: Message<'a>>(message: &M) -> Result<Vec<u8>, Failure> {
    let mut out = vec![0; 2 + message.encoded_len(PROTOCOL_VERSION)];
    let (prefix, rest) = out.split_at_mut(2);
    prefix.copy_from_slice(&PROTOCOL_VERSION.to_be_bytes());
    message
        .encode(&mut SliceWriter::new(rest), PROTOCOL_VERSION)
        .map_err(|_| "a topic's name is too long".to_owned())?;
    Ok(out)
}

/// A later version than ours begins with the same fields.
fn versioned<'a, M: Message<'a>>(bytes: &'a [u8]) -> Option<M> {
    let mut r = Reader::new(bytes);
    let version = r.i16().ok()?.clamp(M::VERSIONS.min, M::VERSIONS.max);
    M::decode(&mut r, version).ok()
}

/// The topics of a member's subscription; none when it cannot be read.
fn subscribed(metadata: &[u8]) -> Vec<String> {
    let subscription = versioned::<ConsumerProtocolSubscription<'_>>(metadata);
    subscription
        .map(|s| s.topics.iter().map(str::to_owned).collect())
        .unwrap_or_default()
}

/// Our partitions of `topic`.
fn assigned(assignment: &[u8], topic: &str) -> Result<Vec<i32>, Failure> {
    Ok(shares(assignment)
        .into_iter()
        .filter(|(name, _)| name == topic)
        .flat_map(|(_, p)| p)
        .collect())
}

/// Every topic and its partitions in an assignment; none when it cannot be read or is empty.
pub fn shares(assignment: &[u8]) -> Vec<(String, Vec<i32>)> {
    let assignment = versioned::<ConsumerProtocolAssignment<'_>>(assignment);
    let list = assignment.map(|a| {
        a.assigned_partitions
            .iter()
            .map(|tp| (tp.topic.to_owned(), tp.partitions.iter().collect()))
            .collect()
    });
    list.unwrap_or_default()
}

fn millis(time: Duration) -> i32 {
    i32::try_from(time.as_millis()).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(id: &str, instance: Option<&str>, topics: &[&str]) -> Subscribed {
        Subscribed {
            id: id.into(),
            instance: instance.map(str::to_owned),
            topics: topics.iter().map(|t| (*t).to_owned()).collect(),
        }
    }

    #[test]
    fn range_gives_neighbours_and_the_rest_to_the_first() {
        let counts = BTreeMap::from([("a".to_owned(), 5), ("b".to_owned(), 1)]);
        let members = [member("m2", None, &["a", "b"]), member("m1", None, &["a"])];
        let shares = range(&members, &counts);
        assert_eq!(shares["m1"], [("a".to_owned(), vec![0, 1, 2])]);
        assert_eq!(shares["m2"], [("a".to_owned(), vec![3, 4]), ("b".to_owned(), vec![0])]);
    }

    #[test]
    fn static_members_come_first_and_some_may_get_nothing() {
        let counts = BTreeMap::from([("a".to_owned(), 1)]);
        let members = [member("m1", None, &["a"]), member("m9", Some("i"), &["a"])];
        let shares = range(&members, &counts);
        assert_eq!(shares.get("m1"), None);
        assert_eq!(shares["m9"], [("a".to_owned(), vec![0])]);
    }

    #[test]
    fn subscriptions_and_assignments_read_as_written() {
        let topics = ["a", "b"];
        let written = with_version(&ConsumerProtocolSubscription {
            topics: Array::Slice(&topics),
            ..ConsumerProtocolSubscription::default()
        })
        .unwrap();
        assert_eq!(subscribed(&written), ["a", "b"]);
        assert!(subscribed(&written[..3]).is_empty());

        let parts = [TopicPartition {
            topic: "a",
            partitions: Array::Slice(&[2, 3]),
        }];
        let written = with_version(&ConsumerProtocolAssignment {
            assigned_partitions: Array::Slice(&parts),
            user_data: None,
        })
        .unwrap();
        assert_eq!(assigned(&written, "a").unwrap(), [2, 3]);
        assert!(assigned(&written, "b").unwrap().is_empty());
        assert!(assigned(&[], "a").unwrap().is_empty());
    }
}
