//! Consumer groups over real connections to the real binary, in every version that it speaks.

use skerry_core::api::describe_groups::DescribeGroupsRequest;
use skerry_core::api::find_coordinator::FindCoordinatorRequest;
use skerry_core::api::heartbeat::HeartbeatRequest;
use skerry_core::api::join_group::{JoinGroupRequest, JoinGroupRequestProtocol};
use skerry_core::api::leave_group::{LeaveGroupRequest, MemberIdentity};
use skerry_core::api::list_groups::ListGroupsRequest;
use skerry_core::api::sync_group::{SyncGroupRequest, SyncGroupRequestAssignment};
use skerry_core::error_code::ErrorCode;
use skerry_core::wire::Array;
use skerry_tests::client::{Client, reply};
use skerry_tests::process::{Skerry, Start, TempDir};

/// With a delay in which all members of a test have surely come.
fn broker(dir: &TempDir) -> Skerry {
    Start::new(dir.path())
        .with(&["group.initial.rebalance.delay.ms=1500"])
        .start()
}

/// A member as a client library keeps it.
struct Member {
    client: Client,
    id: String,
    generation: i32,
    leads: bool,
    /// Ids and metadata of all, at the leader.
    members: Vec<(String, Vec<u8>)>,
}

impl Member {
    fn new(broker: &Skerry) -> Self {
        Self {
            client: Client::connect(broker.address),
            id: String::new(),
            generation: -1,
            leads: false,
            members: Vec::new(),
        }
    }

    fn send_join(&mut self, version: i16, group_id: &str, metadata: &[u8]) {
        let protocols = [JoinGroupRequestProtocol {
            name: "range",
            metadata,
        }];
        let request = JoinGroupRequest {
            group_id,
            session_timeout_ms: 30_000,
            rebalance_timeout_ms: if version == 0 { -1 } else { 30_000 },
            member_id: &self.id,
            protocol_type: "consumer",
            protocols: Array::Slice(&protocols),
            ..JoinGroupRequest::default()
        };
        self.client.send(version, &request).unwrap();
    }

    /// Takes the answer to a join; a member that was told its id comes again with it.
    fn receive_join(&mut self, version: i16) -> ErrorCode {
        let frame = self.client.receive().unwrap().expect("an answer to the join");
        let answer = reply::<JoinGroupRequest<'_>>(version, &frame);
        self.id = answer.member_id.into();
        if answer.error_code.is_none() {
            assert_eq!(answer.protocol_name, Some("range"));
            assert_eq!(answer.protocol_type, (version >= 7).then_some("consumer"));
            self.generation = answer.generation_id;
            self.leads = answer.leader == answer.member_id;
            self.members = answer
                .members
                .iter()
                .map(|m| (m.member_id.into(), m.metadata.into()))
                .collect();
        }
        answer.error_code
    }

    /// Sends a join that will wait, whatever the version needs before that.
    fn enter(&mut self, version: i16, group_id: &str, metadata: &[u8]) {
        self.send_join(version, group_id, metadata);
        if version >= 4 && self.id.is_empty() {
            assert_eq!(self.receive_join(version), ErrorCode::MEMBER_ID_REQUIRED);
            assert!(!self.id.is_empty());
            self.send_join(version, group_id, metadata);
        }
    }

    fn sync(&mut self, version: i16, group_id: &str) -> (ErrorCode, Vec<u8>) {
        let assignments: Vec<_> = self
            .members
            .iter()
            .map(|(id, metadata)| SyncGroupRequestAssignment {
                member_id: id,
                assignment: metadata,
            })
            .collect();
        let request = SyncGroupRequest {
            group_id,
            generation_id: self.generation,
            member_id: &self.id,
            assignments: Array::Slice(&assignments),
            ..SyncGroupRequest::default()
        };
        let frame = self.client.call(version, &request);
        let answer = reply::<SyncGroupRequest<'_>>(version, &frame);
        (answer.error_code, answer.assignment.into())
    }

    fn heartbeat(&mut self, version: i16, group_id: &str) -> ErrorCode {
        let request = HeartbeatRequest {
            group_id,
            generation_id: self.generation,
            member_id: &self.id,
            ..HeartbeatRequest::default()
        };
        let frame = self.client.call(version, &request);
        reply::<HeartbeatRequest<'_>>(version, &frame).error_code
    }

    fn leave(&mut self, version: i16, group_id: &str) -> ErrorCode {
        let members = [MemberIdentity {
            member_id: &self.id,
            ..MemberIdentity::default()
        }];
        let request = LeaveGroupRequest {
            group_id,
            member_id: &self.id,
            members: Array::Slice(&members),
        };
        let frame = self.client.call(version, &request);
        let answer = reply::<LeaveGroupRequest<'_>>(version, &frame);
        let of_members = answer.members.iter().map(|member| member.error_code).max();
        of_members.unwrap_or(answer.error_code)
    }
}

/// A member's id, metadata and assignment.
type Described = (String, Vec<u8>, Vec<u8>);

/// The state that DescribeGroups tells, and the members.
fn describe(client: &mut Client, version: i16, group: &str) -> (ErrorCode, String, Vec<Described>) {
    let groups = [group];
    let request = DescribeGroupsRequest {
        groups: Array::Slice(&groups),
        ..DescribeGroupsRequest::default()
    };
    let frame = client.call(version, &request);
    let answer = reply::<DescribeGroupsRequest<'_>>(version, &frame);
    let told = answer.groups.iter().next().expect("the group that was asked for");
    assert_eq!(told.group_id, group);
    let members = told.members.iter().map(|member| {
        assert_eq!((member.client_host, member.client_id.is_empty()), ("/127.0.0.1", false));
        (
            member.member_id.to_string(),
            member.member_metadata.to_vec(),
            member.member_assignment.to_vec(),
        )
    });
    (told.error_code, told.group_state.into(), members.collect())
}

/// Goal: a group of two forms, gets its assignments, is seen by tools and ends, whatever versions its clients speak.
/// Method: the assignment of each member is its own metadata, so that it can be told whose came.
#[test]
fn two_members_in_every_version() {
    let dir = TempDir::new();
    let broker = broker(&dir);
    let mut tool = Client::connect(broker.address);
    let pairs: Vec<_> = (0..=9)
        .map(|version| {
            let group = format!("v{version}");
            let (mut a, mut b) = (Member::new(&broker), Member::new(&broker));
            a.enter(version, &group, b"metadata of a");
            b.enter(version, &group, b"metadata of b");
            (version, group, a, b)
        })
        .collect();
    for (version, group, mut a, mut b) in pairs {
        let [sync, heartbeat, leave, describes, lists] = [5, 4, 5, 6, 5].map(|most: i16| version.min(most));
        assert_eq!(a.receive_join(version), ErrorCode::NONE);
        assert_eq!(b.receive_join(version), ErrorCode::NONE);
        // Connections are served in no promised order, and the member that came first leads.
        let of_a = if b.leads {
            std::mem::swap(&mut a, &mut b);
            b"metadata of b"
        } else {
            b"metadata of a"
        };
        let of_b = if of_a == b"metadata of a" {
            b"metadata of b"
        } else {
            b"metadata of a"
        };
        assert_eq!(
            (a.generation, b.generation, a.leads, b.leads),
            (1, 1, true, false),
            "version {version}"
        );
        assert_eq!((a.members.len(), b.members.len()), (2, 0));
        assert_eq!(describe(&mut tool, describes, &group).1, "CompletingRebalance");

        assert_eq!(a.sync(sync, &group), (ErrorCode::NONE, of_a.to_vec()));
        assert_eq!(b.sync(sync, &group), (ErrorCode::NONE, of_b.to_vec()));
        assert_eq!(a.heartbeat(heartbeat, &group), ErrorCode::NONE);

        let (error, state, members) = describe(&mut tool, describes, &group);
        assert_eq!((error, state.as_str()), (ErrorCode::NONE, "Stable"));
        assert_eq!(members.len(), 2);
        assert!(
            members
                .iter()
                .all(|(_, metadata, assignment)| metadata == assignment && !metadata.is_empty())
        );
        let request = ListGroupsRequest::default();
        let frame = tool.call(lists, &request);
        let listed = reply::<ListGroupsRequest<'_>>(lists, &frame);
        let listed = listed
            .groups
            .iter()
            .find(|g| g.group_id == group)
            .expect("the group is listed");
        assert_eq!(listed.protocol_type, "consumer");
        assert_eq!(listed.group_state, if lists >= 4 { "Stable" } else { "" });

        assert_eq!(b.leave(leave, &group), ErrorCode::NONE);
        assert_eq!(b.leave(leave, &group), ErrorCode::UNKNOWN_MEMBER_ID);
        assert_eq!(a.heartbeat(heartbeat, &group), ErrorCode::REBALANCE_IN_PROGRESS);
        a.enter(version, &group, b"metadata of a");
        assert_eq!(a.receive_join(version), ErrorCode::NONE);
        assert_eq!((a.generation, a.members.len()), (2, 1));
        assert_eq!(a.heartbeat(heartbeat, &group), ErrorCode::NONE);
        a.generation = 1;
        assert_eq!(a.heartbeat(heartbeat, &group), ErrorCode::ILLEGAL_GENERATION);
        assert_eq!(a.leave(leave, &group), ErrorCode::NONE);
        assert_eq!(describe(&mut tool, describes, &group).1, "Empty");
    }
    let absent = describe(&mut tool, 6, "nobody's");
    assert_eq!((absent.0, absent.1.as_str()), (ErrorCode::GROUP_ID_NOT_FOUND, "Dead"));
    let absent = describe(&mut tool, 5, "nobody's");
    assert_eq!((absent.0, absent.1.as_str()), (ErrorCode::NONE, "Dead"));
}

/// Goal: a leader's reply larger than any small buffer comes whole, while others' replies are small.
#[test]
fn a_leader_hears_of_many_members_with_long_metadata() {
    const MEMBERS: usize = 30;
    let dir = TempDir::new();
    let broker = broker(&dir);
    let metadata: Vec<_> = (0..MEMBERS).map(|n| vec![n as u8; 20_000]).collect();
    let mut members: Vec<_> = (0..MEMBERS).map(|_| Member::new(&broker)).collect();
    for (member, metadata) in members.iter_mut().zip(&metadata) {
        member.enter(5, "g", metadata);
    }
    for member in &mut members {
        assert_eq!(member.receive_join(5), ErrorCode::NONE);
    }
    let leader = members.iter().find(|m| m.leads).expect("a leader");
    assert_eq!(leader.members.len(), MEMBERS);
    let mut told: Vec<_> = leader.members.iter().map(|(_, metadata)| metadata.clone()).collect();
    told.sort();
    assert_eq!(told, metadata);
}

/// Goal: who waits in a rebalance and goes away holds nobody up longer than its session, and its slot serves others.
#[test]
fn a_member_that_goes_away_while_it_waits() {
    let dir = TempDir::new();
    let broker = Start::new(dir.path())
        .with(&[
            "group.initial.rebalance.delay.ms=300",
            "group.min.session.timeout.ms=100",
        ])
        .start();
    let mut a = Member::new(&broker);
    a.enter(9, "g", b"a");
    let mut gone = Member::new(&broker);
    gone.enter(9, "g", b"gone");
    drop(gone);
    assert_eq!(a.receive_join(9), ErrorCode::NONE);
    assert_eq!(
        (a.generation, a.members.len()),
        (1, 2),
        "it is a member until its session ends"
    );
    assert_eq!(a.sync(5, "g").0, ErrorCode::NONE);
    let mut tool = Client::connect(broker.address);
    assert_eq!(describe(&mut tool, 6, "g").2.len(), 2);
}

#[test]
fn the_coordinator_is_found_and_it_is_this_broker() {
    let dir = TempDir::new();
    let broker = broker(&dir);
    let mut client = Client::connect(broker.address);
    let keys = ["g", "h"];
    for version in 0..=6 {
        for key_type in 0..=2 {
            let request = FindCoordinatorRequest {
                key: "g",
                key_type,
                coordinator_keys: Array::Slice(&keys),
            };
            let frame = client.call(version, &request);
            let answer = reply::<FindCoordinatorRequest<'_>>(version, &frame);
            let group = version == 0 || key_type == 0;
            let error = if group {
                ErrorCode::NONE
            } else {
                ErrorCode::INVALID_REQUEST
            };
            let port = if group { i32::from(broker.address.port()) } else { -1 };
            if version < 4 {
                assert_eq!((answer.error_code, answer.port), (error, port));
            } else {
                let told: Vec<_> = answer
                    .coordinators
                    .iter()
                    .map(|c| (c.key, c.error_code, c.port))
                    .collect();
                assert_eq!(told, [("g", error, port), ("h", error, port)]);
            }
        }
    }
}
