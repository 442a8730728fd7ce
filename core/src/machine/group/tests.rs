use std::string::{String as Text, ToString};
use std::vec::Vec;

use super::*;
use crate::memory::heap::{Heap, HeapRows};

const DELAY: Millis = Millis(3_000);
const SESSION: Millis = Millis(10_000);
const REBALANCE: Millis = Millis(60_000);
/// How long the first rebalance of several members takes that all come at once.
const FIRST: Millis = Millis(6_000);
const RANGE: &[(&str, &[u8])] = &[("range", b"r")];

fn settings() -> Settings {
    Settings {
        initial_rebalance_delay: DELAY,
        session_timeout_min: Millis(6_000),
        session_timeout_max: Millis(300_000),
        size_max: 100,
        group_bytes_max: 1 << 20,
        pending_max: 3,
        seed: 7,
    }
}

fn table(settings: Settings, groups: usize, members: usize, bytes: usize) -> Groups<Heap> {
    let tree = Blobs::<Heap>::tree_bytes(bytes);
    Groups::new(
        settings,
        (HeapRows::with_bound(groups), HeapRows::filled(0, groups)),
        (HeapRows::with_bound(members), HeapRows::filled(0, members)),
        Blobs::new(HeapRows::filled(0, bytes), HeapRows::filled(0, tree), bytes / 4),
    )
}

/// A table with its clock, and every answer that came.
struct World {
    groups: Groups<Heap>,
    now: Instant,
    waiters: u64,
    answers: Vec<(Waiter, Answer)>,
}

#[derive(Clone, Copy)]
struct Ask<'a> {
    group: &'a str,
    member: &'a str,
    instance: Option<&'a str>,
    protocols: &'a [(&'a str, &'a [u8])],
    id_required: bool,
}

const ASK: Ask<'static> = Ask {
    group: "g",
    member: "",
    instance: None,
    protocols: RANGE,
    id_required: false,
};

impl World {
    fn new(settings: Settings) -> Self {
        Self {
            groups: table(settings, 4, 32, 1 << 16),
            now: Instant::from_micros(1_000_000),
            waiters: 0,
            answers: Vec::new(),
        }
    }

    fn join(&mut self, ask: Ask<'_>) -> Waiter {
        self.waiters += 1;
        let mut random = [0; 16];
        random[..8].copy_from_slice(&self.waiters.to_be_bytes());
        let join = Join {
            group_id: ask.group,
            member_id: ask.member,
            instance_id: ask.instance,
            client_id: "client",
            client_host: "127.0.0.1",
            session_timeout: SESSION,
            rebalance_timeout: REBALANCE,
            protocol_type: "consumer",
            protocols: ask.protocols.iter().copied(),
            id_required: ask.id_required,
            random,
        };
        let answers = &mut self.answers;
        let waiter = Waiter(self.waiters);
        self.groups
            .on_join(self.now, &join, waiter, &mut |w, a| answers.push((w, a)));
        waiter
    }

    fn sync(&mut self, member: &str, generation: i32, assignments: &[(&str, &[u8])]) -> Waiter {
        self.sync_as(member, None, generation, Some("range"), assignments)
    }

    fn sync_as(
        &mut self,
        member: &str,
        instance_id: Option<&str>,
        generation: i32,
        protocol_name: Option<&str>,
        assignments: &[(&str, &[u8])],
    ) -> Waiter {
        self.waiters += 1;
        let sync = Sync {
            group_id: "g",
            member_id: member,
            instance_id,
            generation,
            protocol_type: Some("consumer"),
            protocol_name,
            assignments: assignments.iter().copied(),
        };
        let answers = &mut self.answers;
        let waiter = Waiter(self.waiters);
        self.groups
            .on_sync(self.now, sync, waiter, &mut |w, a| answers.push((w, a)));
        waiter
    }

    fn heartbeat(&mut self, member: &str, instance_id: Option<&str>, generation: i32) -> Result<(), GroupError> {
        self.groups.on_heartbeat(
            self.now,
            Claim {
                group_id: "g",
                member_id: member,
                instance_id,
                generation,
            },
        )
    }

    fn commit(&mut self, member: &str, generation: i32) -> Result<(), GroupError> {
        let claim = Claim {
            group_id: "g",
            member_id: member,
            instance_id: None,
            generation,
        };
        self.groups.on_commit(self.now, claim).map(|_| ())
    }

    fn leave(&mut self, member: &str, instance: Option<&str>) -> Result<(), GroupError> {
        let answers = &mut self.answers;
        self.groups
            .on_leave(self.now, "g", member, instance, &mut |w, a| answers.push((w, a)))
    }

    /// Lets time pass, calling each group's deadlines when they come.
    fn pass(&mut self, time: Millis) {
        let end = self.now + time;
        loop {
            let next = self
                .groups
                .iter()
                .map(|g| (self.groups.next_deadline(g.key()), g.key()))
                .min();
            let Some((at, key)) = next.filter(|(at, _)| *at <= end) else {
                break;
            };
            self.now = self.now.max(at);
            let answers = &mut self.answers;
            self.groups.on_deadline(self.now, key, &mut |w, a| answers.push((w, a)));
        }
        self.now = end;
    }

    fn answer(&self, waiter: Waiter) -> Option<Answer> {
        let mut of = self.answers.iter().filter(|(w, _)| *w == waiter);
        let answer = of.next().map(|(_, a)| *a);
        assert!(of.next().is_none(), "{waiter:?} was answered twice");
        answer
    }

    fn refusal(&self, waiter: Waiter) -> Option<GroupError> {
        match self.answer(waiter)? {
            Answer::Refused(error) => Some(error),
            _ => None,
        }
    }

    /// The id of the member that a join was answered with.
    fn id_of(&self, waiter: Waiter) -> Text {
        match self.answer(waiter) {
            Some(Answer::Joined { member, .. } | Answer::IdRequired { member }) => {
                self.groups.view_member(member).unwrap().id().to_string()
            }
            other => panic!("{waiter:?} has no member but {other:?}"),
        }
    }

    fn view(&self) -> GroupView<'_, Heap> {
        self.groups.view(self.groups.find("g").unwrap()).unwrap()
    }

    fn state(&self) -> StateId {
        self.groups
            .find("g")
            .map_or(StateId::Dead, |key| self.groups.view(key).unwrap().state())
    }

    fn assignment(&self, id: &str) -> Vec<u8> {
        self.view()
            .members()
            .find(|m| m.id() == id)
            .unwrap()
            .assignment()
            .to_vec()
    }

    /// Two dynamic members and a static one (instance "s"), joined and not synced. The first leads.
    fn completing(&mut self) -> [Text; 3] {
        let a = self.join(ASK);
        let b = self.join(ASK);
        let s = self.join(Ask {
            instance: Some("s"),
            ..ASK
        });
        self.pass(FIRST);
        assert_eq!(self.state(), StateId::CompletingRebalance);
        [self.id_of(a), self.id_of(b), self.id_of(s)]
    }

    fn stable(&mut self) -> [Text; 3] {
        let ids = self.completing();
        for id in &ids {
            self.sync(
                id,
                1,
                &[
                    (ids[0].as_str(), b"0"),
                    (ids[1].as_str(), b"1"),
                    (ids[2].as_str(), b"2"),
                ],
            );
        }
        assert_eq!(self.state(), StateId::Stable);
        ids
    }

    /// From stable: the leader has joined again, the others not yet.
    fn preparing(&mut self) -> [Text; 3] {
        let ids = self.stable();
        self.join(Ask { member: &ids[0], ..ASK });
        assert_eq!(self.state(), StateId::PreparingRebalance);
        ids
    }

    /// There for its offsets' sake, after everybody has left.
    fn empty(&mut self) -> [Text; 3] {
        let ids = self.stable();
        let key = self.groups.find("g").unwrap();
        self.groups.set_offsets(self.now, key, 1);
        for id in &ids {
            self.leave(id, None).unwrap();
        }
        assert_eq!(self.state(), StateId::Empty);
        ids
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Got {
    /// Not answered yet.
    Waits,
    Joined,
    IdRequired,
    Synced,
    Done,
    No(GroupError),
}

#[derive(Clone, Copy, Debug)]
enum Input {
    JoinNew,
    JoinNewV4,
    JoinUnknownId,
    JoinOtherProtocol,
    JoinLeaderAgain,
    JoinFollowerAgain,
    JoinFollowerChanged,
    JoinStaticNew,
    JoinStaticAgain,
    JoinStaticFenced,
    SyncLeader,
    SyncFollower,
    SyncOldGeneration,
    SyncUnknownId,
    SyncOtherProtocol,
    Heartbeat,
    HeartbeatOldGeneration,
    HeartbeatUnknownId,
    HeartbeatFenced,
    Leave,
    LeaveUnknownId,
    LeaveByInstance,
    LeaveUnknownInstance,
    Commit,
    CommitOldGeneration,
    CommitSimple,
    Delete,
    SessionTime,
}

fn apply(world: &mut World, ids: &[Text; 3], generation: i32, input: Input) -> Got {
    let [a, b] = [ids[0].as_str(), ids[1].as_str()];
    let done = |result: Result<(), GroupError>| result.map_or_else(Got::No, |()| Got::Done);
    let waiter = match input {
        Input::JoinNew => world.join(ASK),
        Input::JoinNewV4 => world.join(Ask {
            id_required: true,
            ..ASK
        }),
        Input::JoinUnknownId => world.join(Ask {
            member: "nobody",
            ..ASK
        }),
        Input::JoinOtherProtocol => world.join(Ask {
            protocols: &[("sticky", b"")],
            ..ASK
        }),
        Input::JoinLeaderAgain => world.join(Ask { member: a, ..ASK }),
        Input::JoinFollowerAgain => world.join(Ask { member: b, ..ASK }),
        Input::JoinFollowerChanged => world.join(Ask {
            member: b,
            protocols: &[("range", b"new")],
            ..ASK
        }),
        Input::JoinStaticNew => world.join(Ask {
            instance: Some("t"),
            ..ASK
        }),
        Input::JoinStaticAgain => world.join(Ask {
            instance: Some("s"),
            ..ASK
        }),
        Input::JoinStaticFenced => world.join(Ask {
            member: b,
            instance: Some("s"),
            ..ASK
        }),
        Input::SyncLeader => world.sync(a, generation, &[]),
        Input::SyncFollower => world.sync(b, generation, &[]),
        Input::SyncOldGeneration => world.sync(a, generation - 1, &[]),
        Input::SyncUnknownId => world.sync("nobody", generation, &[]),
        Input::SyncOtherProtocol => world.sync_as(a, None, generation, Some("sticky"), &[]),
        Input::Heartbeat => return done(world.heartbeat(b, None, generation)),
        Input::HeartbeatOldGeneration => return done(world.heartbeat(b, None, generation - 1)),
        Input::HeartbeatUnknownId => return done(world.heartbeat("nobody", None, generation)),
        Input::HeartbeatFenced => return done(world.heartbeat(b, Some("s"), generation)),
        Input::Leave => return done(world.leave(b, None)),
        Input::LeaveUnknownId => return done(world.leave("nobody", None)),
        Input::LeaveByInstance => return done(world.leave("", Some("s"))),
        Input::LeaveUnknownInstance => return done(world.leave("", Some("t"))),
        Input::Commit => return done(world.commit(b, generation)),
        Input::CommitOldGeneration => return done(world.commit(b, generation - 1)),
        Input::CommitSimple => return done(world.commit("", -1)),
        Input::Delete => {
            let key = world.groups.find("g");
            let result = key.ok_or(GroupError::GroupIdNotFound);
            return done(result.and_then(|key| world.groups.on_delete(world.now, key)));
        }
        Input::SessionTime => {
            world.pass(SESSION);
            return Got::Done;
        }
    };
    match world.answer(waiter) {
        None => Got::Waits,
        Some(Answer::Joined { .. }) => Got::Joined,
        Some(Answer::IdRequired { .. }) => Got::IdRequired,
        Some(Answer::Synced { .. }) => Got::Synced,
        Some(Answer::Refused(error)) => Got::No(error),
    }
}

/// Goal: in every state every input gets Kafka's answer and leads to the state that Kafka's would.
/// Method: a table of answer and next state for each pair; a fresh group is brought to each state for each input.
#[test]
fn every_state_meets_every_input() {
    use Got::*;
    use GroupError::*;
    use StateId::{CompletingRebalance as Comp, Dead, Empty, PreparingRebalance as Prep, Stable};

    type Expected = (Got, StateId);
    #[rustfmt::skip]
    let rows: &[(Input, [Expected; 5])] = &[
        // input                         Empty                               PreparingRebalance                      CompletingRebalance                     Stable                                  Dead
        (Input::JoinNew,                 [(Waits, Prep),                      (Waits, Prep),                          (Waits, Prep),                          (Waits, Prep),                          (Waits, Prep)]),
        (Input::JoinNewV4,               [(IdRequired, Empty),                (IdRequired, Prep),                     (IdRequired, Comp),                     (IdRequired, Stable),                   (IdRequired, Empty)]),
        (Input::JoinUnknownId,           [(No(UnknownMemberId), Empty),       (No(UnknownMemberId), Prep),            (No(UnknownMemberId), Comp),            (No(UnknownMemberId), Stable),          (No(UnknownMemberId), Dead)]),
        (Input::JoinOtherProtocol,       [(Waits, Prep),                      (No(InconsistentGroupProtocol), Prep),  (No(InconsistentGroupProtocol), Comp),  (No(InconsistentGroupProtocol), Stable), (Waits, Prep)]),
        (Input::JoinLeaderAgain,         [(No(UnknownMemberId), Empty),       (Waits, Prep),                          (Joined, Comp),                         (Waits, Prep),                          (No(UnknownMemberId), Dead)]),
        (Input::JoinFollowerAgain,       [(No(UnknownMemberId), Empty),       (Waits, Prep),                          (Joined, Comp),                         (Joined, Stable),                       (No(UnknownMemberId), Dead)]),
        (Input::JoinFollowerChanged,     [(No(UnknownMemberId), Empty),       (Waits, Prep),                          (Waits, Prep),                          (Waits, Prep),                          (No(UnknownMemberId), Dead)]),
        (Input::JoinStaticNew,           [(Waits, Prep),                      (Waits, Prep),                          (Waits, Prep),                          (Waits, Prep),                          (Waits, Prep)]),
        (Input::JoinStaticAgain,         [(Waits, Prep),                      (Waits, Prep),                          (Waits, Prep),                          (Joined, Stable),                       (Waits, Prep)]),
        (Input::JoinStaticFenced,        [(No(UnknownMemberId), Empty),       (No(FencedInstanceId), Prep),           (No(FencedInstanceId), Comp),           (No(FencedInstanceId), Stable),         (No(UnknownMemberId), Dead)]),
        (Input::SyncLeader,              [(No(UnknownMemberId), Empty),       (No(RebalanceInProgress), Prep),        (Synced, Stable),                       (Synced, Stable),                       (No(UnknownMemberId), Dead)]),
        (Input::SyncFollower,            [(No(UnknownMemberId), Empty),       (No(RebalanceInProgress), Prep),        (Waits, Comp),                          (Synced, Stable),                       (No(UnknownMemberId), Dead)]),
        (Input::SyncOldGeneration,       [(No(UnknownMemberId), Empty),       (No(IllegalGeneration), Prep),          (No(IllegalGeneration), Comp),          (No(IllegalGeneration), Stable),        (No(UnknownMemberId), Dead)]),
        (Input::SyncUnknownId,           [(No(UnknownMemberId), Empty),       (No(UnknownMemberId), Prep),            (No(UnknownMemberId), Comp),            (No(UnknownMemberId), Stable),          (No(UnknownMemberId), Dead)]),
        (Input::SyncOtherProtocol,       [(No(UnknownMemberId), Empty),       (No(InconsistentGroupProtocol), Prep),  (No(InconsistentGroupProtocol), Comp),  (No(InconsistentGroupProtocol), Stable), (No(UnknownMemberId), Dead)]),
        (Input::Heartbeat,               [(No(UnknownMemberId), Empty),       (No(RebalanceInProgress), Prep),        (Done, Comp),                           (Done, Stable),                         (No(UnknownMemberId), Dead)]),
        (Input::HeartbeatOldGeneration,  [(No(UnknownMemberId), Empty),       (No(IllegalGeneration), Prep),          (No(IllegalGeneration), Comp),          (No(IllegalGeneration), Stable),        (No(UnknownMemberId), Dead)]),
        (Input::HeartbeatUnknownId,      [(No(UnknownMemberId), Empty),       (No(UnknownMemberId), Prep),            (No(UnknownMemberId), Comp),            (No(UnknownMemberId), Stable),          (No(UnknownMemberId), Dead)]),
        (Input::HeartbeatFenced,         [(No(UnknownMemberId), Empty),       (No(FencedInstanceId), Prep),           (No(FencedInstanceId), Comp),           (No(FencedInstanceId), Stable),         (No(UnknownMemberId), Dead)]),
        (Input::Leave,                   [(No(UnknownMemberId), Empty),       (Done, Prep),                           (Done, Prep),                           (Done, Prep),                           (No(UnknownMemberId), Dead)]),
        (Input::LeaveUnknownId,          [(No(UnknownMemberId), Empty),       (No(UnknownMemberId), Prep),            (No(UnknownMemberId), Comp),            (No(UnknownMemberId), Stable),          (No(UnknownMemberId), Dead)]),
        (Input::LeaveByInstance,         [(No(UnknownMemberId), Empty),       (Done, Prep),                           (Done, Prep),                           (Done, Prep),                           (No(UnknownMemberId), Dead)]),
        (Input::LeaveUnknownInstance,    [(No(UnknownMemberId), Empty),       (No(UnknownMemberId), Prep),            (No(UnknownMemberId), Comp),            (No(UnknownMemberId), Stable),          (No(UnknownMemberId), Dead)]),
        (Input::Commit,                  [(No(UnknownMemberId), Empty),       (Done, Prep),                           (No(RebalanceInProgress), Comp),        (Done, Stable),                         (No(GroupIdNotFound), Dead)]),
        (Input::CommitOldGeneration,     [(No(UnknownMemberId), Empty),       (No(IllegalGeneration), Prep),          (No(IllegalGeneration), Comp),          (No(IllegalGeneration), Stable),        (No(GroupIdNotFound), Dead)]),
        (Input::CommitSimple,            [(Done, Empty),                      (No(UnknownMemberId), Prep),            (No(UnknownMemberId), Comp),            (No(UnknownMemberId), Stable),          (Done, Empty)]),
        (Input::Delete,                  [(Done, Dead),                       (No(NonEmptyGroup), Prep),              (No(NonEmptyGroup), Comp),              (No(NonEmptyGroup), Stable),            (No(GroupIdNotFound), Dead)]),
        // The sessions of those that do not wait run out: in PreparingRebalance the waiting leader goes on alone; in the others nobody waits.
        (Input::SessionTime,             [(Done, Empty),                      (Done, Comp),                           (Done, Empty),                          (Done, Empty),                          (Done, Dead)]),
    ];
    for (input, expected) in rows {
        for (from, expected) in StateId::ALL.into_iter().zip(expected) {
            let mut world = World::new(settings());
            let ids = match from {
                Empty => world.empty(),
                Prep => world.preparing(),
                Comp => world.completing(),
                Stable => world.stable(),
                Dead => {
                    let mut other = World::new(settings());
                    other.stable()
                }
            };
            let generation = world.groups.find("g").map_or(1, |_| world.view().generation());
            let got = apply(&mut world, &ids, generation, *input);
            assert_eq!((got, world.state()), *expected, "{input:?} in {from:?}");
            check(&world.groups);
        }
    }
}

/// What must hold between any two inputs.
fn check(groups: &Groups<Heap>) {
    for (key, row) in groups.groups.iter() {
        let group = &row.0;
        let members: Vec<_> = groups.joined(key).collect();
        let pending: Vec<_> = groups.list(group.pending.first).collect();
        assert_eq!(members.len(), group.joined.len as usize);
        assert_eq!(pending.len(), group.pending.len as usize);
        assert_eq!(
            members.iter().filter(|(_, m)| m.waits_for_join()).count(),
            group.joining as usize
        );
        assert_eq!(
            members.iter().filter(|(_, m)| m.owes_sync).count(),
            group.owing as usize
        );
        assert!(members.iter().all(|(_, m)| !m.pending && m.group == key));
        assert!(
            pending
                .iter()
                .all(|(_, m)| m.pending && m.waiting == Waiting::Nothing && m.assignment.is_empty())
        );
        let bytes = members.iter().chain(&pending).map(|(_, m)| m.bytes()).sum::<u32>();
        assert_eq!(bytes, group.bytes);
        let leads = members.iter().filter(|(k, _)| *k == group.leader).count();
        assert_eq!(
            leads,
            usize::from(!members.is_empty()),
            "one leader, and one of the members"
        );
        let waits = |waiting: fn(&Waiting) -> bool| members.iter().any(|(_, m)| waiting(&m.waiting));
        let joins = waits(|w| matches!(w, Waiting::Join(_)));
        let syncs = waits(|w| matches!(w, Waiting::Sync(_)));
        match group.state.id() {
            StateId::Empty => assert!(members.is_empty()),
            StateId::PreparingRebalance => assert!(!syncs && group.owing == 0),
            StateId::CompletingRebalance => assert!(!joins && !members.is_empty()),
            StateId::Stable => assert!(!joins && !syncs && !members.is_empty()),
            StateId::Dead => panic!("a dead group is not in the table"),
        }
        if matches!(group.state.id(), StateId::CompletingRebalance | StateId::Stable) {
            assert!(
                groups.all_support(key, group.protocol.as_bytes()),
                "everybody speaks the group's protocol"
            );
        }
        if group.state.id() == StateId::Stable {
            assert_eq!(group.owing == 0, group.state.until() == Instant::NEVER, "{group:?}");
        }
        assert!(group.due <= groups.first_due(key), "a deadline would be missed");
        if joins || syncs || !members.is_empty() {
            assert!(group.due < Instant::NEVER, "somebody would wait for ever");
        }
        let statics: Vec<_> = members
            .iter()
            .filter_map(|(_, m)| m.who.instance(&groups.blobs))
            .collect();
        assert!(
            statics.iter().enumerate().all(|(i, s)| !statics[..i].contains(s)),
            "one member per instance"
        );
    }
    let pending = groups.members.iter().filter(|(_, row)| row.0.pending).count();
    assert_eq!(pending, groups.pending as usize);
    assert!(
        groups
            .members
            .iter()
            .all(|(_, row)| groups.group(row.0.group).is_some()),
        "a member of no group"
    );
}

#[test]
fn the_first_rebalance_waits_for_late_comers() {
    let mut world = World::new(settings());
    let a = world.join(ASK);
    world.pass(Millis(2_999));
    assert_eq!(world.answer(a), None);
    let b = world.join(ASK);
    world.pass(Millis(3_000));
    assert_eq!(world.answer(a), None, "the delay was extended for the second member");
    world.pass(Millis(1));
    assert!(matches!(world.answer(a), Some(Answer::Joined { replaced: false, .. })));
    assert!(matches!(world.answer(b), Some(Answer::Joined { .. })));
    assert_eq!(world.view().generation(), 1);
    assert_eq!(world.view().leader(), world.id_of(a));
}

#[test]
fn the_first_rebalance_ends_with_the_rebalance_timeout() {
    let mut world = World::new(settings());
    let a = world.join(ASK);
    for _ in 0..19 {
        world.join(ASK);
        world.pass(Millis(3_000));
        assert_eq!(world.answer(a), None);
    }
    world.join(ASK);
    world.pass(Millis(2_999));
    assert_eq!(world.answer(a), None);
    world.pass(Millis(1));
    assert!(world.answer(a).is_some(), "60 s are over, however many come");
}

#[test]
fn no_delay_ends_the_first_rebalance_at_once() {
    let mut world = World::new(Settings {
        initial_rebalance_delay: Millis(0),
        ..settings()
    });
    let a = world.join(ASK);
    world.pass(Millis(0));
    assert!(world.answer(a).is_some());
}

#[test]
fn a_new_member_joins_with_the_id_it_was_given() {
    let mut world = World::new(settings());
    let first = world.join(Ask {
        id_required: true,
        ..ASK
    });
    let id = world.id_of(first);
    assert!(id.starts_with("client-"));
    assert!(matches!(world.answer(first), Some(Answer::IdRequired { .. })));
    assert_eq!(world.state(), StateId::Empty);
    let second = world.join(Ask {
        member: &id,
        id_required: true,
        ..ASK
    });
    world.pass(DELAY);
    assert_eq!(world.id_of(second), id);
    check(&world.groups);
}

#[test]
fn a_rebalance_waits_for_a_pending_member_until_its_session_ends() {
    let mut world = World::new(settings());
    let [a, b, _] = world.preparing();
    let pending = world.join(Ask {
        id_required: true,
        ..ASK
    });
    assert!(matches!(world.answer(pending), Some(Answer::IdRequired { .. })));
    world.leave(&b, None).unwrap();
    world.leave("", Some("s")).unwrap();
    assert_eq!(world.state(), StateId::PreparingRebalance);
    world.pass(SESSION);
    assert_eq!(world.state(), StateId::CompletingRebalance);
    assert_eq!(world.view().leader(), a);
    let late = world.join(Ask {
        member: "client-00000000-0000-4007-8000-000000000000",
        ..ASK
    });
    assert_eq!(world.refusal(late), Some(GroupError::UnknownMemberId));
}

#[test]
fn too_many_pending_members_are_asked_to_come_later() {
    let mut world = World::new(settings());
    for _ in 0..3 {
        let waiter = world.join(Ask {
            id_required: true,
            ..ASK
        });
        assert!(matches!(world.answer(waiter), Some(Answer::IdRequired { .. })));
    }
    let waiter = world.join(Ask {
        id_required: true,
        ..ASK
    });
    assert_eq!(world.refusal(waiter), Some(GroupError::CoordinatorNotAvailable));
    world.pass(SESSION);
    let waiter = world.join(Ask {
        id_required: true,
        ..ASK
    });
    assert!(matches!(world.answer(waiter), Some(Answer::IdRequired { .. })));
}

#[test]
fn the_leader_hands_out_assignments() {
    let mut world = World::new(settings());
    let [a, b, s] = world.completing();
    let waiting = world.sync(&b, 1, &[]);
    assert_eq!(world.answer(waiting), None);
    let leader = world.sync(&a, 1, &[(&a, b"A"), (&b, b"old"), ("nobody", b"N"), (&b, b"B")]);
    assert!(matches!(
        world.answer(leader),
        Some(Answer::Synced { generation: 1, .. })
    ));
    assert!(matches!(world.answer(waiting), Some(Answer::Synced { .. })));
    assert_eq!(
        (world.assignment(&a), world.assignment(&b), world.assignment(&s)),
        (b"A".to_vec(), b"B".to_vec(), Vec::new())
    );
    assert_eq!(world.state(), StateId::Stable);
    // The static member has not asked yet: it is given the rebalance timeout to do so, and heartbeats do not help.
    for _ in 0..5 {
        world.pass(Millis(9_000));
        for (id, instance) in [(&a, None), (&b, None), (&s, Some("s"))] {
            world.heartbeat(id, instance, 1).unwrap();
        }
    }
    world.pass(Millis(9_000));
    world.heartbeat(&a, None, 1).unwrap();
    world.heartbeat(&b, None, 1).unwrap();
    world.pass(Millis(9_000));
    assert_eq!(world.state(), StateId::PreparingRebalance);
    assert_eq!(world.heartbeat(&a, None, 1), Err(GroupError::RebalanceInProgress));
    assert_eq!(world.view().len(), 2);
}

#[test]
fn a_rebalance_in_the_middle_of_syncing_sends_everybody_back() {
    let mut world = World::new(settings());
    let [a, b, s] = world.completing();
    let waiting = world.sync(&b, 1, &[]);
    let newcomer = world.join(ASK);
    assert_eq!(world.refusal(waiting), Some(GroupError::RebalanceInProgress));
    let again: Vec<_> = [(&a, None), (&b, None), (&s, Some("s"))]
        .into_iter()
        .map(|(id, instance)| {
            world.join(Ask {
                member: id,
                instance,
                ..ASK
            })
        })
        .collect();
    assert!(again.iter().all(|waiter| world.answer(*waiter).is_some()));
    assert!(world.answer(newcomer).is_some());
    assert_eq!((world.view().generation(), world.view().len()), (2, 4));
    check(&world.groups);
}

#[test]
fn who_does_not_join_again_in_time_is_out_and_the_lead_moves_on() {
    let mut world = World::new(settings());
    let [a, b, s] = world.stable();
    let changed = world.join(Ask {
        member: &b,
        protocols: &[("range", b"new")],
        ..ASK
    });
    for _ in 0..7 {
        assert_eq!(world.answer(changed), None);
        world.pass(Millis(9_000));
        let _ = world.heartbeat(&a, None, 1);
        let _ = world.heartbeat(&s, Some("s"), 1);
    }
    assert!(world.answer(changed).is_some(), "63 s are over");
    assert_eq!(world.view().leader(), b);
    let members: Vec<_> = world.view().members().map(|m| m.id().to_string()).collect();
    assert_eq!(members, [b, s], "the static member may be away");
    assert_eq!(world.heartbeat(&a, None, 2), Err(GroupError::UnknownMemberId));
}

#[test]
fn a_group_of_absent_static_members_waits_for_their_sessions() {
    let mut world = World::new(settings());
    let s = world.join(Ask {
        instance: Some("s"),
        ..ASK
    });
    let a = world.join(ASK);
    world.pass(FIRST);
    let (s, a) = (world.id_of(s), world.id_of(a));
    world.sync(&s, 1, &[]);
    world.sync(&a, 1, &[]);
    world.leave(&a, None).unwrap();
    for _ in 0..7 {
        world.pass(Millis(9_000));
        assert_eq!(world.heartbeat(&s, Some("s"), 1), Err(GroupError::RebalanceInProgress));
    }
    assert_eq!((world.state(), world.view().len()), (StateId::PreparingRebalance, 1));
    world.pass(SESSION);
    assert_eq!((world.state(), world.view().generation()), (StateId::Empty, 2));
}

#[test]
fn a_static_member_that_comes_back_keeps_assignment_and_lead() {
    let mut world = World::new(settings());
    let s = world.join(Ask {
        instance: Some("s"),
        ..ASK
    });
    world.pass(DELAY);
    let old = world.id_of(s);
    world.sync_as(&old, Some("s"), 1, None, &[(&old, b"mine")]);
    let back = world.join(Ask {
        instance: Some("s"),
        ..ASK
    });
    assert!(matches!(
        world.answer(back),
        Some(Answer::Joined { replaced: true, .. })
    ));
    let new = world.id_of(back);
    assert!(new.starts_with("s-") && new != old);
    assert_eq!((world.view().leader(), world.view().generation()), (new.as_str(), 1));
    assert_eq!(world.assignment(&new), b"mine");
    assert_eq!(world.heartbeat(&old, Some("s"), 1), Err(GroupError::FencedInstanceId));
    assert_eq!(world.heartbeat(&old, None, 1), Err(GroupError::UnknownMemberId));
    assert_eq!(world.heartbeat(&new, Some("s"), 1), Ok(()));
    check(&world.groups);
}

#[test]
fn a_static_member_that_comes_back_fences_the_one_that_waits() {
    let mut world = World::new(settings());
    let first = world.join(Ask {
        instance: Some("s"),
        ..ASK
    });
    let second = world.join(Ask {
        instance: Some("s"),
        ..ASK
    });
    assert_eq!(world.refusal(first), Some(GroupError::FencedInstanceId));
    world.pass(DELAY);
    assert!(world.answer(second).is_some());
    assert_eq!(world.view().len(), 1);
}

#[test]
fn a_static_member_with_another_protocol_rebalances() {
    let mut world = World::new(settings());
    let both: &[(&str, &[u8])] = &[("range", b""), ("sticky", b"")];
    let a = world.join(Ask { protocols: both, ..ASK });
    world.join(Ask {
        instance: Some("s"),
        protocols: both,
        ..ASK
    });
    world.pass(FIRST);
    let a = world.id_of(a);
    world.sync(&a, 1, &[]);
    assert_eq!(world.view().protocol(), "range");
    let back = world.join(Ask {
        instance: Some("s"),
        protocols: &[("sticky", b"")],
        ..ASK
    });
    assert_eq!((world.answer(back), world.state()), (None, StateId::PreparingRebalance));
    world.join(Ask {
        member: &a,
        protocols: both,
        ..ASK
    });
    assert_eq!(world.view().protocol(), "sticky");
}

#[test]
fn most_votes_choose_among_what_all_support() {
    let mut world = World::new(settings());
    world.join(Ask {
        protocols: &[("a", b"a1"), ("b", b"b1"), ("c", b"c1")],
        ..ASK
    });
    world.join(Ask {
        protocols: &[("x", b""), ("c", b"c2"), ("b", b"b2")],
        ..ASK
    });
    world.join(Ask {
        protocols: &[("c", b"c3"), ("b", b"b3"), ("a", b"")],
        ..ASK
    });
    world.pass(FIRST);
    assert_eq!(world.view().protocol(), "c");
    let metadata: Vec<_> = world.view().members().map(|m| m.metadata().to_vec()).collect();
    assert_eq!(metadata, [b"c1".to_vec(), b"c2".to_vec(), b"c3".to_vec()]);
}

#[test]
fn a_new_member_that_never_hears_from_us_is_given_five_minutes() {
    let mut world = World::new(settings());
    let [a, ..] = world.stable();
    let waiting = world.join(ASK);
    // The leader keeps its session and never joins: the rebalance timeout removes it and the newcomer goes on.
    for _ in 0..7 {
        let _ = world.heartbeat(&a, None, 1);
        world.pass(Millis(9_000));
    }
    assert!(matches!(world.answer(waiting), Some(Answer::Joined { .. })));

    let mut world = World::new(Settings {
        initial_rebalance_delay: Millis(400_000),
        ..settings()
    });
    let waiting = world.join(ASK);
    world.pass(Millis(299_999));
    assert_eq!(world.answer(waiting), None);
    world.pass(Millis(1));
    assert_eq!(world.refusal(waiting), Some(GroupError::UnknownMemberId));
    assert_eq!(world.state(), StateId::Empty);
}

#[test]
fn a_member_that_waits_does_not_expire() {
    let mut world = World::new(settings());
    let [a, b, s] = world.stable();
    let waiting = world.join(Ask { member: &a, ..ASK });
    for _ in 0..5 {
        world.pass(Millis(9_000));
        let _ = world.heartbeat(&b, None, 1);
        let _ = world.heartbeat(&s, Some("s"), 1);
    }
    assert_eq!(world.answer(waiting), None);
    assert!(
        world.view().members().any(|m| m.id() == a),
        "45 s of waiting, a session of 10 s"
    );
}

#[test]
fn a_second_join_of_a_member_sends_the_first_back() {
    let mut world = World::new(settings());
    let [a, ..] = world.stable();
    let first = world.join(Ask { member: &a, ..ASK });
    let second = world.join(Ask { member: &a, ..ASK });
    assert_eq!(world.refusal(first), Some(GroupError::RebalanceInProgress));
    assert_eq!(world.answer(second), None);
    check(&world.groups);
}

#[test]
fn group_max_size_turns_the_last_away() {
    let mut world = World::new(Settings {
        size_max: 3,
        ..settings()
    });
    let [a, b, s] = world.stable();
    let newcomer = world.join(ASK);
    assert_eq!(world.refusal(newcomer), Some(GroupError::GroupMaxSizeReached));
    assert_eq!(world.state(), StateId::Stable);
    world.leave(&b, None).unwrap();
    let newcomers = [world.join(ASK), world.join(ASK)];
    world.join(Ask { member: &a, ..ASK });
    // Three wait; the static member, though it was there before, comes too late.
    let late = world.join(Ask {
        member: &s,
        instance: Some("s"),
        ..ASK
    });
    assert_eq!(world.refusal(late), Some(GroupError::GroupMaxSizeReached));
    assert!(
        newcomers.iter().all(|waiter| world.answer(*waiter).is_some()),
        "nobody is missing any more"
    );
    assert_eq!(world.view().len(), 3);
    check(&world.groups);
}

#[test]
fn bad_joins_leave_no_group_behind() {
    let mut world = World::new(settings());
    let join = |world: &mut World, ask| {
        let waiter = world.join(ask);
        world.refusal(waiter)
    };
    assert_eq!(
        join(&mut world, Ask { group: "", ..ASK }),
        Some(GroupError::InvalidGroupId)
    );
    assert_eq!(
        join(&mut world, Ask { protocols: &[], ..ASK }),
        Some(GroupError::InconsistentGroupProtocol)
    );
    let many: Vec<_> = (0..=PROTOCOLS_MAX).map(|_| ("p", &b""[..])).collect();
    assert_eq!(
        join(
            &mut world,
            Ask {
                protocols: &many,
                ..ASK
            }
        ),
        Some(GroupError::InconsistentGroupProtocol)
    );
    let long = "p".repeat(PROTOCOL_NAME_BYTES_MAX + 1);
    let protocols = [(long.as_str(), &b""[..])];
    assert_eq!(
        join(
            &mut world,
            Ask {
                protocols: &protocols,
                ..ASK
            }
        ),
        Some(GroupError::InconsistentGroupProtocol)
    );
    assert_eq!(world.groups.len(), 0);
    let huge = std::vec![0; 1 << 15];
    let protocols = [("range", &huge[..])];
    assert_eq!(
        join(
            &mut world,
            Ask {
                protocols: &protocols,
                ..ASK
            }
        ),
        Some(GroupError::GroupMaxSizeReached)
    );
}

#[test]
fn session_timeouts_have_bounds() {
    let mut world = World::new(Settings {
        session_timeout_min: Millis(SESSION.0 + 1),
        ..settings()
    });
    let waiter = world.join(ASK);
    assert_eq!(world.refusal(waiter), Some(GroupError::InvalidSessionTimeout));
    world.groups.settings.session_timeout_min = SESSION;
    world.groups.settings.session_timeout_max = SESSION;
    let waiter = world.join(ASK);
    assert_eq!(world.refusal(waiter), None);
}

/// Goal: when the byte store is full, what does not fit is refused and everything else goes on.
#[test]
fn a_full_byte_store_breaks_nothing() {
    let mut world = World::new(settings());
    world.groups = table(settings(), 4, 32, 4096);
    let [a, b, s] = world.stable();
    let live = world.groups.bytes().0;
    let big = [7; 1000];
    let fat = Ask {
        protocols: &[("range", &big)],
        ..ASK
    };
    let mut refused = 0;
    for _ in 0..4 {
        let waiter = world.join(fat);
        refused += usize::from(world.refusal(waiter) == Some(GroupError::CoordinatorNotAvailable));
        check(&world.groups);
    }
    assert!(refused > 0);
    // The members' rejoin brings the group on; then the leader's assignments do not fit.
    for (id, instance) in [(&a, None), (&b, None), (&s, Some("s"))] {
        world.join(Ask {
            member: id,
            instance,
            ..ASK
        });
    }
    world.pass(FIRST);
    assert_eq!(world.state(), StateId::CompletingRebalance);
    let generation = world.view().generation();
    let follower = world.sync(&b, generation, &[]);
    let leader = world.sync(&a, generation, &[(&a, &big), (&b, &big), (&s, &big)]);
    assert_eq!(world.refusal(leader), Some(GroupError::CoordinatorNotAvailable));
    assert_eq!(world.refusal(follower), Some(GroupError::CoordinatorNotAvailable));
    assert_eq!(world.state(), StateId::PreparingRebalance);
    check(&world.groups);
    world.pass(Millis(600_000));
    world.pass(Millis(600_000));
    assert_eq!(
        (world.groups.len(), world.groups.bytes().0),
        (0, 0),
        "it was {live} once"
    );
}

#[test]
fn a_full_table_of_groups_forgets_the_longest_empty_one() {
    let mut world = World::new(settings());
    for group in ["a", "b", "c", "d"] {
        world.join(Ask {
            group,
            id_required: true,
            ..ASK
        });
        world.pass(SESSION);
    }
    let key = world.groups.find("a").unwrap();
    world.groups.set_offsets(world.now, key, 1);
    let waiter = world.join(Ask { group: "e", ..ASK });
    assert_eq!(world.answer(waiter), None);
    let there = |world: &World| ["a", "b", "c", "d", "e"].map(|group| world.groups.find(group).is_some());
    assert_eq!(
        there(&world),
        [true, false, true, true, true],
        "the one with offsets stays"
    );
    for group in ["c", "d"] {
        world.join(Ask { group, ..ASK });
    }
    let waiter = world.join(Ask { group: "b", ..ASK });
    assert_eq!(world.refusal(waiter), Some(GroupError::CoordinatorNotAvailable));
}

#[test]
fn an_empty_group_is_forgotten_unless_it_has_offsets() {
    let mut world = World::new(settings());
    world.empty();
    world.pass(Millis(10_000_000));
    assert_eq!(world.state(), StateId::Empty);
    let key = world.groups.find("g").unwrap();
    world.groups.set_offsets(world.now, key, 0);
    world.pass(Millis(EMPTY_GROUP_LINGER.0 - 1));
    assert_eq!(world.state(), StateId::Empty);
    world.pass(Millis(1));
    assert_eq!((world.state(), world.groups.bytes().0), (StateId::Dead, 0));
}

#[test]
fn subscriptions_are_read_from_the_members_metadata() {
    let mut world = World::new(settings());
    let metadata = b"\x00\x00\x00\x00\x00\x01\x00\x02t1\xff\xff\xff\xff";
    let a = world.join(Ask {
        protocols: &[("range", metadata)],
        ..ASK
    });
    assert!(
        world.view().is_subscribed("t2"),
        "no protocol is chosen yet, so it cannot be told"
    );
    world.pass(DELAY);
    assert!(world.view().is_subscribed("t1") && !world.view().is_subscribed("t2"));
    let a = world.id_of(a);
    world.leave(&a, None).unwrap();
    assert!(!world.view().is_subscribed("t1"));
}

/// A client as a client library would be, forgetful now and then.
#[derive(Default)]
struct Client {
    id: Text,
    generation: i32,
    waiting: Option<Waiter>,
}

/// Goal: no order of inputs breaks an invariant, loses a waiter, or leaks a byte.
/// Method: clients on two small groups join, sync, beat, commit, leave, time out or do something senseless at random, against [`check`]
/// after every step and a list of who waits; then time alone must answer everybody and give everything back.
#[test]
fn random_inputs_keep_the_invariants() {
    for seed in 0..300u64 {
        random_run(seed);
    }
}

fn random_run(seed: u64) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut roll = move |bound: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) % bound
    };
    let mut world = World::new(Settings {
        size_max: 4,
        ..settings()
    });
    world.groups = table(world.groups.settings, 3, 8, 1 << 13);
    let mut clients: Vec<Client> = (0..6).map(|_| Client::default()).collect();
    let mut waiting: Vec<Waiter> = Vec::new();
    let mut answered = 0;
    let small: &[(&str, &[u8])] = &[("range", &[1; 10]), ("sticky", &[2; 10])];
    let large: &[(&str, &[u8])] = &[("sticky", &[3; 900])];
    for step in 0..400 {
        let who = roll(clients.len() as u64) as usize;
        let groups = ["g", "h", "i", "j"];
        let mut group = if who < 4 { "g" } else { "h" };
        if roll(20) == 0 {
            group = groups[roll(4) as usize];
        }
        let instance = who.is_multiple_of(3).then_some(["s0", "s3"][who / 3 % 2]);
        let instance = if roll(30) == 0 { Some("s0") } else { instance };
        let (id, generation) = (clients[who].id.clone(), clients[who].generation);
        match roll(12) {
            0..=3 => {
                let ask = Ask {
                    group,
                    member: if roll(8) == 0 { "" } else { &id },
                    instance,
                    protocols: if roll(5) == 0 { large } else { small },
                    id_required: roll(2) == 0,
                };
                let waiter = world.join(ask);
                waiting.push(waiter);
                clients[who].waiting = Some(waiter);
            }
            4..=6 => {
                let others: Vec<_> = clients.iter().map(|c| c.id.clone()).collect();
                let size = [3usize, 40, 700][roll(3) as usize];
                let bytes = std::vec![9; size];
                let assignments: Vec<_> = others.iter().map(|id| (id.as_str(), &bytes[..])).collect();
                let waiter = world.sync_as(&id, instance, generation, None, &assignments);
                waiting.push(waiter);
                clients[who].waiting = Some(waiter);
            }
            7 => {
                let _ = world.heartbeat(&id, instance, generation);
            }
            8 => {
                let _ = world.commit(&id, generation);
            }
            9 => {
                if roll(3) == 0 {
                    let _ = world.leave(&id, instance);
                }
            }
            10 => {
                if let Some(key) = world.groups.find(group) {
                    let offsets = roll(2) as u32;
                    world.groups.set_offsets(world.now, key, offsets);
                    if roll(4) == 0 {
                        let _ = world.groups.on_delete(world.now, key);
                    }
                }
            }
            _ => {
                let time = [1, 500, 3_000, 9_000, 61_000][roll(5) as usize];
                world.pass(Millis(time));
            }
        }
        check(&world.groups);
        for (waiter, answer) in world.answers.drain(..) {
            let place = waiting.iter().position(|w| *w == waiter);
            let place =
                place.unwrap_or_else(|| panic!("seed {seed} step {step}: {waiter:?} answered unasked or twice"));
            waiting.swap_remove(place);
            answered += 1;
            for client in clients.iter_mut().filter(|c| c.waiting == Some(waiter)) {
                if let Answer::Joined { member, .. } | Answer::IdRequired { member } = answer
                    && let Some(view) = world.groups.view_member(member)
                {
                    client.id = view.id().to_string();
                    client.generation = view.group().unwrap().generation();
                }
            }
        }
        let parked = world
            .groups
            .members
            .iter()
            .filter(|(_, row)| row.0.waiting != Waiting::Nothing)
            .count();
        assert_eq!(
            parked,
            waiting.len(),
            "seed {seed} step {step}: a request is held by nobody"
        );
    }
    assert!(answered > 20, "seed {seed} did nothing");
    let keys: Vec<_> = world.groups.iter().map(|g| g.key()).collect();
    for key in keys {
        world.groups.set_offsets(world.now, key, 0);
    }
    for _ in 0..20 {
        world.pass(Millis(600_000));
        check(&world.groups);
    }
    assert_eq!(
        world.answers.len(),
        waiting.len(),
        "seed {seed}: somebody waits for ever"
    );
    assert_eq!(
        (world.groups.len(), world.groups.members_len(), world.groups.bytes().0),
        (0, 0, 0),
        "seed {seed}"
    );
}

#[test]
fn waiting_for_the_leader_keeps_a_member_alive_and_renews_its_session() {
    let mut world = World::new(settings());
    let [a, b, s] = world.completing();
    let waiting = [world.sync(&b, 1, &[]), world.sync(&s, 1, &[])];
    for _ in 0..4 {
        world.pass(Millis(9_000));
        world.heartbeat(&a, None, 1).unwrap();
    }
    world.sync(&a, 1, &[]);
    assert!(waiting.iter().all(|waiter| world.answer(*waiter).is_some()));
    world.pass(Millis(9_000));
    assert_eq!((world.state(), world.view().len()), (StateId::Stable, 3));
}

#[test]
fn an_interrupted_assignment_is_forgotten() {
    let mut world = World::new(settings());
    let [a, b, s] = world.stable();
    world.join(Ask { member: &a, ..ASK });
    assert_eq!(world.assignment(&b), b"1", "until the next one it stands");
    world.join(Ask { member: &b, ..ASK });
    world.join(Ask {
        member: &s,
        instance: Some("s"),
        ..ASK
    });
    assert_eq!(world.state(), StateId::CompletingRebalance);
    world.join(ASK);
    assert_eq!(
        (world.state(), world.assignment(&b)),
        (StateId::PreparingRebalance, Vec::new())
    );
}

#[test]
fn a_group_whose_metadata_no_reply_could_hold_takes_no_more() {
    let mut world = World::new(Settings {
        group_bytes_max: 1000,
        ..settings()
    });
    let [_, b, _] = world.stable();
    let fat = [7; 500];
    let large: &[(&str, &[u8])] = &[("range", &fat)];
    let newcomer = world.join(Ask {
        protocols: large,
        ..ASK
    });
    assert_eq!(
        (world.refusal(newcomer), world.state()),
        (None, StateId::PreparingRebalance)
    );
    let another = world.join(Ask {
        protocols: large,
        ..ASK
    });
    assert_eq!(world.refusal(another), Some(GroupError::GroupMaxSizeReached));
    let fatter = world.join(Ask {
        member: &b,
        protocols: large,
        ..ASK
    });
    assert_eq!(world.refusal(fatter), Some(GroupError::GroupMaxSizeReached));
    let bytes = world.groups.groups.iter().next().unwrap().1.0.bytes;
    assert!((500..=1000).contains(&bytes));
    check(&world.groups);
}
