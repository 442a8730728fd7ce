//! `skerry topics`: list, describe, create, delete, alter.

use std::io::Write;
use std::time::Duration;

use serde_json::json;
use skerry_core::api::create_partitions::CreatePartitionsTopic;
use skerry_core::api::create_topics::{CreatableTopic, CreatableTopicConfig};
use skerry_core::api::delete_topics::DeleteTopicState;
use skerry_core::api::describe_configs::DescribeConfigsResource;
use skerry_core::api::incremental_alter_configs::{AlterConfigsResource, AlterableConfig};
use skerry_core::api::{
    ApiKey, CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest, DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
};
use skerry_core::error_code::ErrorCode;
use skerry_core::wire::{Array, Version};

use super::args::{Position, TopicsCommand};
use super::client::{Client, Node, Topic, refused};
use super::{Failure, offsets, show};

/// How long the broker may take for a change.
const TIMEOUT: Duration = Duration::from_secs(30);
const TIMEOUT_MS: i32 = 30_000;
/// Kafka's number for a topic among the things that have settings.
const TOPIC_RESOURCE: i8 = 2;
/// Kafka's number for a setting that is the topic's own.
const TOPIC_SOURCE: i8 = 1;

/// Runs the command.
pub fn run(command: &TopicsCommand, client: &mut Client, out: &mut dyn Write) -> Result<(), Failure> {
    match command {
        TopicsCommand::List { client: args, internal } => {
            let mut topics = client.metadata(None, false)?;
            topics.retain(|topic| *internal || !topic.internal);
            topics.sort_by(|a, b| a.name.cmp(&b.name));
            list(&topics, args.json, out)
        }
        TopicsCommand::Describe {
            client: args,
            topics,
            all_configs,
        } => {
            for (at, topic) in described(client, topics)?.iter().enumerate() {
                if at > 0 && !args.json {
                    writeln!(out)?;
                }
                describe(client, topic, *all_configs, args.json, out)?;
            }
            Ok(())
        }
        TopicsCommand::Create {
            client: args,
            topics,
            partitions,
            replication_factor,
            configs,
            if_not_exists,
        } => {
            let made = create(client, topics, *partitions, *replication_factor, configs)?;
            let all_made = results(made, *if_not_exists, ErrorCode::TOPIC_ALREADY_EXISTS);
            for topic in &all_made.0 {
                done(out, args.json, "created", topic)?;
            }
            all_made.1
        }
        TopicsCommand::Delete {
            client: args,
            topics,
            if_exists,
        } => {
            let deleted = results(
                delete(client, topics)?,
                *if_exists,
                ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
            );
            for topic in &deleted.0 {
                done(out, args.json, "deleted", topic)?;
            }
            deleted.1
        }
        TopicsCommand::Alter {
            client: args,
            topic,
            partitions,
            configs,
            delete_configs,
        } => {
            if partitions.is_none() && configs.is_empty() && delete_configs.is_empty() {
                return Err("nothing to alter: give --partitions, --config or --delete-config"
                    .to_owned()
                    .into());
            }
            if let Some(count) = partitions {
                add_partitions(client, topic, *count)?;
            }
            if !configs.is_empty() || !delete_configs.is_empty() {
                set_configs(client, topic, configs, delete_configs)?;
            }
            Ok(done(out, args.json, "altered", topic)?)
        }
    }
}

/// One topic's outcome: name, code, the broker's words.
type Outcome = (String, ErrorCode, Option<String>);

/// The topics for which it went well, or for which `fine` may be; and the first failure, with the others on standard error.
fn results(outcomes: Vec<Outcome>, fine_too: bool, fine: ErrorCode) -> (Vec<String>, Result<(), Failure>) {
    let mut good = Vec::new();
    let mut failed: Result<(), Failure> = Ok(());
    for (topic, error, message) in outcomes {
        match error {
            ErrorCode::NONE => good.push(topic),
            error if fine_too && error == fine => {}
            error => {
                let failure = refused(&format!("topic {topic}"), error, message.as_deref());
                if let Err(earlier) = std::mem::replace(&mut failed, Err(failure)) {
                    super::tell(&earlier);
                }
            }
        }
    }
    (good, failed)
}

fn done(out: &mut dyn Write, as_json: bool, verb: &str, topic: &str) -> std::io::Result<()> {
    if as_json {
        show::json(out, &json!({ "topic": topic, "done": verb }))
    } else {
        writeln!(out, "{verb} {topic}")
    }
}

fn list(topics: &[Topic], as_json: bool, out: &mut dyn Write) -> Result<(), Failure> {
    let replicas = |topic: &Topic| topic.partitions.iter().map(|p| p.replicas.len()).max().unwrap_or(0);
    if as_json {
        for topic in topics {
            show::json(
                out,
                &json!({
                    "topic": topic.name,
                    "id": topic.id.to_string(),
                    "partitions": topic.partitions.len(),
                    "replicas": replicas(topic),
                    "internal": topic.internal,
                }),
            )?;
        }
        return Ok(());
    }
    let rows = topics.iter().map(|topic| {
        vec![
            topic.name.clone(),
            topic.partitions.len().to_string(),
            replicas(topic).to_string(),
        ]
    });
    Ok(show::table(out, &["TOPIC", "#PARTITIONS", "#REPLICAS"], rows)?)
}

/// The topics named, or all that are not internal.
fn described(client: &mut Client, names: &[String]) -> Result<Vec<Topic>, Failure> {
    if names.is_empty() {
        let mut topics = client.metadata(None, false)?;
        topics.retain(|topic| !topic.internal);
        topics.sort_by(|a, b| a.name.cmp(&b.name));
        return Ok(topics);
    }
    names.iter().map(|name| client.topic(name, false)).collect()
}

/// One setting of a topic: name, value, whether it is the topic's own.
type Setting = (String, Option<String>, bool);

fn describe(
    client: &mut Client,
    topic: &Topic,
    all_configs: bool,
    as_json: bool,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let led: Vec<i32> = topic
        .partitions
        .iter()
        .filter(|p| p.leader >= 0)
        .map(|p| p.index)
        .collect();
    let begins = offsets::find(client, topic, &led, Position::Earliest, false)?;
    let ends = offsets::find(client, topic, &led, Position::Latest, false)?;
    let mut settings = if client.speaks(&Node::Any, ApiKey::DescribeConfigs)? {
        configs(client, &topic.name)?
    } else {
        Vec::new()
    };
    settings.retain(|(_, _, own)| all_configs || *own);
    if as_json {
        let partitions: Vec<_> = topic
            .partitions
            .iter()
            .map(|p| {
                json!({
                    "partition": p.index,
                    "leader": p.leader,
                    "replicas": p.replicas,
                    "in_sync": p.in_sync,
                    "begin": begins.get(&p.index),
                    "end": ends.get(&p.index),
                })
            })
            .collect();
        let settings: serde_json::Map<_, _> = settings
            .into_iter()
            .map(|(name, value, _)| (name, value.into()))
            .collect();
        let object = json!({
            "topic": topic.name,
            "id": topic.id.to_string(),
            "internal": topic.internal,
            "partitions": partitions,
            "configs": settings,
        });
        return Ok(show::json(out, &object)?);
    }
    writeln!(out, "topic {}", topic.name)?;
    if !topic.id.is_zero() {
        writeln!(out, "id {}", topic.id)?;
    }
    for (name, value, _) in settings {
        writeln!(out, "{name}={}", value.unwrap_or_default())?;
    }
    let offset = |offsets: &std::collections::BTreeMap<i32, i64>, index: i32| {
        offsets.get(&index).map_or("-".into(), ToString::to_string)
    };
    let rows = topic.partitions.iter().map(|p| {
        vec![
            p.index.to_string(),
            if p.leader < 0 {
                "none".into()
            } else {
                p.leader.to_string()
            },
            joined(&p.replicas),
            joined(&p.in_sync),
            offset(&begins, p.index),
            offset(&ends, p.index),
        ]
    });
    Ok(show::table(
        out,
        &["#PARTITION", "#LEADER", "REPLICAS", "IN-SYNC", "#BEGIN", "#END"],
        rows,
    )?)
}

fn joined(ids: &[i32]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

fn configs(client: &mut Client, topic: &str) -> Result<Vec<Setting>, Failure> {
    let resource = DescribeConfigsResource {
        resource_type: TOPIC_RESOURCE,
        resource_name: topic,
        configuration_keys: Array::Null,
    };
    let request = DescribeConfigsRequest {
        resources: Array::one(&resource),
        ..DescribeConfigsRequest::default()
    };
    client.ask(&Node::Any, &request, |reply| {
        let mut settings = Vec::new();
        for result in &reply.results {
            if !result.error_code.is_none() {
                return Err(refused(
                    &format!("settings of {topic}"),
                    result.error_code,
                    result.error_message,
                ));
            }
            settings.extend(result.configs.iter().map(|c| {
                (
                    c.name.to_owned(),
                    c.value.map(str::to_owned),
                    c.config_source == TOPIC_SOURCE,
                )
            }));
        }
        settings.sort();
        Ok(settings)
    })
}

fn create(
    client: &mut Client,
    topics: &[String],
    partitions: Option<i32>,
    replicas: Option<i16>,
    configs: &[(String, String)],
) -> Result<Vec<Outcome>, Failure> {
    let configs: Vec<CreatableTopicConfig<'_>> = configs
        .iter()
        .map(|(name, value)| CreatableTopicConfig {
            name,
            value: Some(value),
        })
        .collect();
    let creatable: Vec<CreatableTopic<'_>> = topics
        .iter()
        .map(|name| CreatableTopic {
            name,
            num_partitions: partitions.unwrap_or(-1),
            replication_factor: replicas.unwrap_or(-1),
            configs: Array::Slice(&configs),
            ..CreatableTopic::default()
        })
        .collect();
    let request = CreateTopicsRequest {
        topics: Array::Slice(&creatable),
        timeout_ms: TIMEOUT_MS,
        validate_only: false,
    };
    to_controller(client, |client, node| {
        client.ask_for(node, &request, Version::MAX, TIMEOUT, |reply| {
            let topics = reply.topics.iter();
            Ok(topics
                .map(|t| (t.name.to_owned(), t.error_code, t.error_message.map(str::to_owned)))
                .collect())
        })
    })
}

fn delete(client: &mut Client, topics: &[String]) -> Result<Vec<Outcome>, Failure> {
    let names: Vec<&str> = topics.iter().map(String::as_str).collect();
    let states: Vec<DeleteTopicState<'_>> = names
        .iter()
        .map(|name| DeleteTopicState {
            name: Some(name),
            ..DeleteTopicState::default()
        })
        .collect();
    let request = DeleteTopicsRequest {
        topics: Array::Slice(&states),
        topic_names: Array::Slice(&names),
        timeout_ms: TIMEOUT_MS,
    };
    to_controller(client, |client, node| {
        client.ask_for(node, &request, Version::MAX, TIMEOUT, |reply| {
            let topics = reply.responses.iter();
            Ok(topics
                .map(|t| {
                    (
                        t.name.unwrap_or_default().into(),
                        t.error_code,
                        t.error_message.map(str::to_owned),
                    )
                })
                .collect())
        })
    })
}

fn add_partitions(client: &mut Client, topic: &str, count: i32) -> Result<(), Failure> {
    let wanted = CreatePartitionsTopic {
        name: topic,
        count,
        assignments: Array::Null,
    };
    let request = CreatePartitionsRequest {
        topics: Array::one(&wanted),
        timeout_ms: TIMEOUT_MS,
        validate_only: false,
    };
    let outcomes = to_controller(client, |client, node| {
        client.ask_for(node, &request, Version::MAX, TIMEOUT, |reply| {
            let results = reply.results.iter();
            Ok(results
                .map(|r| (r.name.to_owned(), r.error_code, r.error_message.map(str::to_owned)))
                .collect())
        })
    })?;
    results(outcomes, false, ErrorCode::NONE).1
}

fn set_configs(client: &mut Client, topic: &str, set: &[(String, String)], delete: &[String]) -> Result<(), Failure> {
    let set = set.iter().map(|(name, value)| AlterableConfig {
        name,
        config_operation: 0,
        value: Some(value),
    });
    let delete = delete.iter().map(|name| AlterableConfig {
        name,
        config_operation: 1,
        value: None,
    });
    let configs: Vec<AlterableConfig<'_>> = set.chain(delete).collect();
    let resource = AlterConfigsResource {
        resource_type: TOPIC_RESOURCE,
        resource_name: topic,
        configs: Array::Slice(&configs),
    };
    let request = IncrementalAlterConfigsRequest {
        resources: Array::one(&resource),
        validate_only: false,
    };
    client.ask_for(&Node::Any, &request, Version::MAX, TIMEOUT, |reply| {
        match reply.responses.iter().find(|r| !r.error_code.is_none()) {
            // Not every broker says which setting it refuses.
            Some(r) => {
                let names: Vec<&str> = configs.iter().map(|config| config.name).collect();
                let what = format!("topic {topic}, {}", names.join(", "));
                Err(refused(&what, r.error_code, r.error_message))
            }
            None => Ok(()),
        }
    })
}

/// Sends a change to the controller. Brokers since Kafka 3.3 pass it on themselves, so any does at first; an older one that is
/// not the controller says so.
fn to_controller(
    client: &mut Client,
    mut send: impl FnMut(&mut Client, &Node) -> Result<Vec<Outcome>, Failure>,
) -> Result<Vec<Outcome>, Failure> {
    let outcomes = send(client, &Node::Any)?;
    if outcomes.iter().all(|(_, error, _)| *error != ErrorCode::NOT_CONTROLLER) {
        return Ok(outcomes);
    }
    client.metadata(Some(&[]), false)?;
    match client.controller() {
        Some(id) => send(client, &Node::Id(id)),
        None => Ok(outcomes),
    }
}
