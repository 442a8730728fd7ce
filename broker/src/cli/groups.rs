//! `skerry groups`: list, describe with lag, delete, show and set offsets.

use std::collections::BTreeMap;
use std::io::Write;

use serde_json::json;
use skerry_core::api::offset_fetch::OffsetFetchRequestGroup;
use skerry_core::api::{DeleteGroupsRequest, DescribeGroupsRequest, ListGroupsRequest, OffsetFetchRequest};
use skerry_core::error_code::ErrorCode;
use skerry_core::wire::Array;

use super::args::{GroupsCommand, Position};
use super::client::{Client, Node, Try, refused, words};
use super::{Failure, member, offsets, show};

/// Runs the command.
pub fn run(command: &GroupsCommand, client: &mut Client, out: &mut dyn Write) -> Result<(), Failure> {
    match command {
        GroupsCommand::List { client: args } => {
            let groups = list(client)?;
            if args.json {
                for g in &groups {
                    show::json(
                        out,
                        &json!({ "group": g.id, "state": g.state, "type": g.kind, "protocol": g.protocol }),
                    )?;
                }
                return Ok(());
            }
            let rows = groups.into_iter().map(|g| vec![g.id, g.state, g.kind, g.protocol]);
            Ok(show::table(out, &["GROUP", "STATE", "TYPE", "PROTOCOL"], rows)?)
        }
        GroupsCommand::Describe {
            client: args,
            groups,
            members,
        } => {
            let groups: Vec<String> = if groups.is_empty() {
                list(client)?.into_iter().map(|g| g.id).collect()
            } else {
                groups.clone()
            };
            for (at, group) in groups.iter().enumerate() {
                if at > 0 && !args.json {
                    writeln!(out)?;
                }
                let group = describe(client, group)?;
                if args.json {
                    as_json(client, &group, out)?;
                } else {
                    as_table(client, &group, *members, out)?;
                }
            }
            Ok(())
        }
        GroupsCommand::Delete { client: args, groups } => {
            let mut failed = Ok(());
            for group in groups {
                match delete(client, group) {
                    Ok(()) if args.json => show::json(out, &json!({ "group": group, "done": "deleted" }))?,
                    Ok(()) => writeln!(out, "deleted {group}")?,
                    Err(failure) => {
                        if let Err(earlier) = std::mem::replace(&mut failed, Err(failure)) {
                            super::tell(&earlier);
                        }
                    }
                }
            }
            failed
        }
        GroupsCommand::Offsets {
            client: args,
            group,
            topic,
            partition,
            to,
        } => {
            if let (Some(topic), Some(position)) = (topic, to) {
                set(client, group, topic, partition, *position)?;
            }
            let mut committed = committed(client, group)?;
            committed.retain(|c| {
                topic.as_ref().is_none_or(|topic| *topic == c.topic)
                    && (partition.is_empty() || partition.contains(&c.partition))
            });
            if args.json {
                for c in &committed {
                    let object = json!({
                        "group": group,
                        "topic": c.topic,
                        "partition": c.partition,
                        "committed": c.offset,
                        "metadata": c.metadata,
                    });
                    show::json(out, &object)?;
                }
                return Ok(());
            }
            let rows = committed
                .into_iter()
                .map(|c| vec![c.topic, c.partition.to_string(), c.offset.to_string(), c.metadata]);
            Ok(show::table(
                out,
                &["TOPIC", "#PARTITION", "#COMMITTED", "METADATA"],
                rows,
            )?)
        }
    }
}

/// A group as its coordinator lists it.
struct Listed {
    id: String,
    state: String,
    kind: String,
    protocol: String,
}

/// The groups of every broker.
fn list(client: &mut Client) -> Result<Vec<Listed>, Failure> {
    client.metadata(Some(&[]), false)?;
    let brokers: Vec<i32> = client.brokers().iter().map(|broker| broker.id).collect();
    let mut groups: Vec<Listed> = Vec::new();
    for broker in brokers {
        client.persist(|client| {
            let (error, mine) = client.ask(&Node::Id(broker), &ListGroupsRequest::default(), |reply| {
                let mine: Vec<Listed> = reply
                    .groups
                    .iter()
                    .map(|g| Listed {
                        id: g.group_id.into(),
                        state: g.group_state.into(),
                        kind: g.group_type.to_ascii_lowercase(),
                        protocol: g.protocol_type.into(),
                    })
                    .collect();
                Ok((reply.error_code, mine))
            })?;
            match error {
                ErrorCode::NONE => {
                    groups.extend(mine);
                    Ok(Try::Done(()))
                }
                error if error.is_retriable() => Ok(Try::Later(format!("groups of broker {broker}: {}", words(error)))),
                error => Err(refused(&format!("groups of broker {broker}"), error, None)),
            }
        })?;
    }
    groups.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(groups)
}

/// A group as its coordinator describes it.
struct Described {
    id: String,
    state: String,
    /// How partitions are shared out.
    assignor: String,
    members: Vec<Member>,
}

struct Member {
    id: String,
    instance: Option<String>,
    client: String,
    host: String,
    share: Vec<(String, Vec<i32>)>,
}

fn describe(client: &mut Client, group: &str) -> Result<Described, Failure> {
    client.persist(|client| {
        let coordinator = client.coordinator(group)?;
        let groups = [group];
        let request = DescribeGroupsRequest {
            groups: Array::Slice(&groups),
            include_authorized_operations: false,
        };
        let answer = client.ask(&coordinator, &request, |reply| {
            Ok(reply.groups.iter().next().map(|g| {
                let members = g.members.iter().map(|m| Member {
                    id: m.member_id.into(),
                    instance: m.group_instance_id.map(str::to_owned),
                    client: m.client_id.into(),
                    host: m.client_host.trim_start_matches('/').into(),
                    share: member::shares(m.member_assignment),
                });
                let described = Described {
                    id: g.group_id.into(),
                    state: g.group_state.into(),
                    assignor: g.protocol_data.into(),
                    members: members.collect(),
                };
                (g.error_code, g.error_message.map(str::to_owned), described)
            }))
        })?;
        match answer {
            Some((ErrorCode::NONE, _, described)) if described.state == "Dead" => no_group(group),
            Some((ErrorCode::NONE, _, described)) => Ok(Try::Done(described)),
            Some((ErrorCode::GROUP_ID_NOT_FOUND, ..)) | None => no_group(group),
            Some((error, ..)) if error.is_retriable() => Ok(Try::Later(format!("group {group}: {}", words(error)))),
            Some((error, message, _)) => Err(refused(&format!("group {group}"), error, message.as_deref())),
        }
    })
}

fn no_group<T>(group: &str) -> Result<Try<T>, Failure> {
    Err(format!("there is no classic group {group}").into())
}

/// A committed offset with what it means.
struct Lag {
    topic: String,
    partition: i32,
    committed: i64,
    /// `None`: the topic is gone.
    end: Option<i64>,
    member: Option<usize>,
}

impl Lag {
    fn records(&self) -> Option<i64> {
        self.end.map(|end| (end - self.committed).max(0))
    }
}

/// The group's offsets beside the ends of their partitions.
fn lags(client: &mut Client, group: &Described) -> Result<Vec<Lag>, Failure> {
    let mut by_topic: BTreeMap<String, Vec<Committed>> = BTreeMap::new();
    for c in committed(client, &group.id)? {
        by_topic.entry(c.topic.clone()).or_default().push(c);
    }
    let names: Vec<&str> = by_topic.keys().map(String::as_str).collect();
    let topics = client.metadata(Some(&names), false)?;
    let mut out = Vec::new();
    for (name, offsets_of_topic) in &by_topic {
        let topic = topics.iter().find(|topic| topic.name == *name && topic.error.is_none());
        let partitions: Vec<i32> = offsets_of_topic.iter().map(|c| c.partition).collect();
        let ends = match topic {
            Some(topic) => offsets::find(client, topic, &partitions, Position::Latest, false)?,
            None => BTreeMap::new(),
        };
        for c in offsets_of_topic {
            let owns = |m: &Member| m.share.iter().any(|(t, p)| t == name && p.contains(&c.partition));
            out.push(Lag {
                topic: name.clone(),
                partition: c.partition,
                committed: c.offset,
                end: ends.get(&c.partition).copied(),
                member: group.members.iter().position(owns),
            });
        }
    }
    Ok(out)
}

fn as_json(client: &mut Client, group: &Described, out: &mut dyn Write) -> Result<(), Failure> {
    let id = |at: usize| group.members.get(at).map(|m| m.id.as_str());
    let offsets: Vec<_> = lags(client, group)?
        .iter()
        .map(|lag| {
            json!({
                "topic": lag.topic,
                "partition": lag.partition,
                "committed": lag.committed,
                "end": lag.end,
                "lag": lag.records(),
                "member": lag.member.and_then(id),
            })
        })
        .collect();
    let members: Vec<_> = group
        .members
        .iter()
        .map(|m| {
            let share: serde_json::Map<_, _> = m.share.iter().map(|(t, p)| (t.clone(), json!(p))).collect();
            json!({ "member": m.id, "instance": m.instance, "client": m.client, "host": m.host, "partitions": share })
        })
        .collect();
    let object = json!({
        "group": group.id,
        "state": group.state,
        "assignor": group.assignor,
        "offsets": offsets,
        "members": members,
    });
    Ok(show::json(out, &object)?)
}

fn as_table(client: &mut Client, group: &Described, members: bool, out: &mut dyn Write) -> Result<(), Failure> {
    let assignor = if group.assignor.is_empty() {
        String::new()
    } else {
        format!(", assignor {}", group.assignor)
    };
    let count = group.members.len();
    let plural = if count == 1 { "" } else { "s" };
    writeln!(
        out,
        "group {}: {}, {count} member{plural}{assignor}",
        group.id, group.state
    )?;
    if members {
        let rows = group.members.iter().map(|m| {
            let share: Vec<String> = m.share.iter().map(|(topic, p)| format!("{topic}:{p:?}")).collect();
            vec![
                m.id.clone(),
                m.instance.clone().unwrap_or_default(),
                m.client.clone(),
                m.host.clone(),
                share.join(" "),
            ]
        });
        return Ok(show::table(
            out,
            &["MEMBER", "INSTANCE", "CLIENT", "HOST", "PARTITIONS"],
            rows,
        )?);
    }
    let text = |number: Option<i64>| number.map_or("-".into(), |n| n.to_string());
    let rows = lags(client, group)?.into_iter().map(|lag| {
        let member = lag.member.and_then(|at| group.members.get(at));
        vec![
            lag.topic.clone(),
            lag.partition.to_string(),
            lag.committed.to_string(),
            text(lag.end),
            text(lag.records()),
            member.map_or("-".into(), |m| m.client.clone()),
            member.map_or("-".into(), |m| m.host.clone()),
        ]
    });
    Ok(show::table(
        out,
        &["TOPIC", "#PARTITION", "#COMMITTED", "#END", "#LAG", "CLIENT", "HOST"],
        rows,
    )?)
}

fn delete(client: &mut Client, group: &str) -> Result<(), Failure> {
    let groups = [group];
    let request = DeleteGroupsRequest {
        groups_names: Array::Slice(&groups),
    };
    client.persist(|client| {
        let coordinator = client.coordinator(group)?;
        let error = client.ask(&coordinator, &request, |reply| {
            Ok(reply
                .results
                .iter()
                .next()
                .map_or(ErrorCode::NONE, |result| result.error_code))
        })?;
        match error {
            ErrorCode::NONE => Ok(Try::Done(())),
            error if error.is_retriable() => Ok(Try::Later(format!("group {group}: {}", words(error)))),
            error => Err(refused(&format!("group {group}"), error, None)),
        }
    })
}

/// An offset that a group committed.
pub struct Committed {
    /// Topic.
    pub topic: String,
    /// Partition.
    pub partition: i32,
    /// The next offset to read.
    pub offset: i64,
    /// What the committer wrote beside it.
    pub metadata: String,
}

/// Every offset that a group has committed, by topic and partition.
pub fn committed(client: &mut Client, group: &str) -> Result<Vec<Committed>, Failure> {
    let asked = OffsetFetchRequestGroup {
        group_id: group,
        topics: Array::Null,
        ..OffsetFetchRequestGroup::default()
    };
    let request = OffsetFetchRequest {
        group_id: group,
        topics: Array::Null,
        groups: Array::one(&asked),
        require_stable: true,
    };
    client.persist(|client| {
        let coordinator = client.coordinator(group)?;
        let (error, mut found) = client.ask(&coordinator, &request, |reply| {
            // From version 8 on the answer is a list of groups, before it stands in the reply itself.
            let mut found = Vec::new();
            let mut error = reply.error_code;
            let mut add = |topic: &str, partition: i32, offset: i64, metadata: Option<&str>, code: ErrorCode| {
                if !code.is_none() {
                    error = code;
                } else if offset >= 0 {
                    found.push(Committed {
                        topic: topic.into(),
                        partition,
                        offset,
                        metadata: metadata.unwrap_or_default().into(),
                    });
                }
            };
            for topic in &reply.topics {
                for p in &topic.partitions {
                    add(
                        topic.name,
                        p.partition_index,
                        p.committed_offset,
                        p.metadata,
                        p.error_code,
                    );
                }
            }
            for answer in &reply.groups {
                for topic in &answer.topics {
                    for p in &topic.partitions {
                        add(
                            topic.name,
                            p.partition_index,
                            p.committed_offset,
                            p.metadata,
                            p.error_code,
                        );
                    }
                }
            }
            if let Some(answer) = reply.groups.iter().find(|answer| !answer.error_code.is_none()) {
                error = answer.error_code;
            }
            Ok((error, found))
        })?;
        match error {
            ErrorCode::NONE => {
                found.sort_by(|a, b| (&a.topic, a.partition).cmp(&(&b.topic, b.partition)));
                Ok(Try::Done(found))
            }
            error if error.is_retriable() => Ok(Try::Later(format!("offsets of {group}: {}", words(error)))),
            error => Err(refused(&format!("offsets of {group}"), error, None)),
        }
    })
}

/// Sets the offsets of a group that has no members.
fn set(client: &mut Client, group: &str, topic: &str, partitions: &[i32], to: Position) -> Result<(), Failure> {
    let topic = client.topic(topic, false)?;
    let partitions = super::consume::chosen(&topic, partitions)?;
    let positions = offsets::find(client, &topic, &partitions, to, false)?;
    client.persist(|client| {
        let coordinator = client.coordinator(group)?;
        match member::commit(client, &coordinator, group, (-1, ""), &topic.name, &positions)? {
            ErrorCode::NONE => Ok(Try::Done(())),
            ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::ILLEGAL_GENERATION | ErrorCode::REBALANCE_IN_PROGRESS => {
                Err(format!("group {group} has members: its offsets can be set once they have left").into())
            }
            error if error.is_retriable() => Ok(Try::Later(format!("group {group}: {}", words(error)))),
            error => Err(refused(&format!("group {group}"), error, None)),
        }
    })
}
