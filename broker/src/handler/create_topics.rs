//! CreateTopics (key 19): new topics with their partitions and settings.
//!
//! Answered in versions 2–7. 4 −1 for the broker's own counts (KIP-464) · 5 flexible, the topic's settings in the reply (KIP-525) · 7
//! topic ids (KIP-516). One broker: a replication factor of −1 or 1, and assignments that name this broker alone. The answer leaves
//! once the topics are durable.

use skerry_core::api::create_topics::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfigs, CreatableTopicResult, CreateTopicsRequest,
    CreateTopicsResponse,
};
use skerry_core::error_code::ErrorCode;
use skerry_core::header::RequestHeader;
use skerry_core::table::hash;
use skerry_core::wire::Array;
use skerry_net::host::Host;

use super::answers::{self, Answer};
use super::made::made;
use super::{Context, Out, Outcome};
use crate::state::State;
use crate::topics::config::{ConfigKey, ConfigSource, TopicConfig};
use crate::topics::{ChangeError, TopicName, topic_name};

/// Most partitions that can be assigned by hand.
const ASSIGNED_MAX: usize = 4096;

/// Handles one request.
///
/// When full: a topic that finds no room is refused; more topics in one request than there is room for answers close the connection.
/// Cost: one blocking sync for all topics.
pub fn handle<H: Host>(
    cx: &mut Context<'_, H>,
    header: &RequestHeader<'_>,
    request: &CreateTopicsRequest<'_>,
    out: &mut Out<'_>,
) -> Outcome {
    let count = request.topics.len();
    let Some(mut answers) = cx.state.take_answers(count) else {
        return Outcome::Close("more topics in one CreateTopics than there can be");
    };
    let needed = {
        answers.resize(count, Answer::LONGEST);
        with_reply(cx.state, request, &answers, |reply| Out::measure(header, reply))
    };
    let outcome = match out.ensure(needed) {
        Err(no) => no.into(),
        Ok(()) => {
            create_all(cx, request, &mut answers);
            with_reply(cx.state, request, &answers, |reply| out.reply(header, reply))
        }
    };
    cx.state.give_answers(answers);
    outcome
}

fn create_all<H: Host>(cx: &mut Context<'_, H>, request: &CreateTopicsRequest<'_>, answers: &mut [Answer]) {
    for (answer, topic) in answers.iter_mut().zip(request.topics) {
        *answer = Answer {
            value: i64::from(hash(0, &[topic.name.as_bytes()])),
            ..Answer::DONE
        };
    }
    for (at, topic) in request.topics.iter().enumerate() {
        let done = if is_named_twice(request, answers, at, &topic) {
            Err(Answer::because(
                ErrorCode::INVALID_REQUEST,
                "The request names this topic more than once.",
            ))
        } else {
            create(cx, request, &topic)
        };
        if let Some(answer) = answers.get_mut(at) {
            let Err(refused) = done else { continue };
            *answer = Answer {
                value: answer.value,
                ..refused
            };
        }
    }
    if !request.validate_only {
        answers::sync(cx, answers);
    }
}

/// Whether another topic of the request has this one's name. Hashes are compared, and names only where hashes are the same.
fn is_named_twice(
    request: &CreateTopicsRequest<'_>,
    answers: &[Answer],
    at: usize,
    topic: &CreatableTopic<'_>,
) -> bool {
    let own = answers.get(at).map(|answer| answer.value);
    let alike = answers.iter().filter(|other| Some(other.value) == own).count();
    alike > 1 && request.topics.iter().filter(|other| other.name == topic.name).count() > 1
}

fn create<H: Host>(
    cx: &mut Context<'_, H>,
    request: &CreateTopicsRequest<'_>,
    topic: &CreatableTopic<'_>,
) -> Result<(), Answer> {
    let State {
        topics, logs, config, ..
    } = &mut *cx.state;
    let name = new_name(topics, topic.name)?;
    let partitions = partitions(config.node_id, config.num_partitions, topic)?;
    let mut own = TopicConfig::default();
    for setting in topic.configs {
        let key = ConfigKey::named(setting.name)?;
        let value = setting.value.ok_or(Answer::because(
            ErrorCode::INVALID_CONFIG,
            "A setting of a new topic needs a value.",
        ))?;
        own.set(key, key.parse(value)?);
    }
    if !topics.has_room(1, partitions.unsigned_abs()) {
        return Err(ChangeError::Full.into());
    }
    if !request.validate_only {
        topics.create(cx.host, logs, &name, partitions, &own)?;
    }
    Ok(())
}

/// A name that a new topic may have.
fn new_name(topics: &crate::topics::TopicTable, name: &str) -> Result<TopicName, Answer> {
    let invalid = |message| Answer::because(ErrorCode::INVALID_TOPIC_EXCEPTION, message);
    let taken = topic_name(name).map_err(|why| invalid(why.message()))?;
    if topics.by_name(name).is_some() {
        return Err(ChangeError::Exists.into());
    }
    if topics.collision(name).is_some() {
        return Err(invalid(
            "Another topic has this name but for '.' and '_', which metrics cannot tell apart.",
        ));
    }
    Ok(taken)
}

/// How many partitions a new topic gets.
fn partitions(node_id: i32, default: i32, topic: &CreatableTopic<'_>) -> Result<i32, Answer> {
    if !topic.assignments.is_empty() {
        let counts_left_open = topic.num_partitions == -1 && topic.replication_factor == -1;
        if !counts_left_open {
            return Err(Answer::because(
                ErrorCode::INVALID_REQUEST,
                "Partitions assigned by hand go with num_partitions and replication_factor of -1.",
            ));
        }
        return assigned(node_id, topic.assignments);
    }
    if !matches!(topic.replication_factor, -1 | 1) {
        return Err(Answer::because(
            ErrorCode::INVALID_REPLICATION_FACTOR,
            "There is one broker: the replication factor is 1, or -1 for the default.",
        ));
    }
    match topic.num_partitions {
        -1 => Ok(default),
        1.. => Ok(topic.num_partitions),
        _ => Err(Answer::because(
            ErrorCode::INVALID_PARTITIONS,
            "A topic has at least one partition, or -1 for the default.",
        )),
    }
}

/// How many partitions were assigned by hand: each number from 0 on once, on this broker.
fn assigned<'f>(node_id: i32, assignments: Array<'f, CreatableReplicaAssignment<'f>>) -> Result<i32, Answer> {
    let invalid = Answer::because(
        ErrorCode::INVALID_REPLICA_ASSIGNMENT,
        "Assign partitions 0, 1, 2 and so on, each once and to this broker alone.",
    );
    let count = assignments.len();
    let mut seen = [0u64; ASSIGNED_MAX / 64];
    for assignment in assignments {
        let number = usize::try_from(assignment.partition_index).map_err(|_| invalid)?;
        let word = seen.get_mut(number / 64).filter(|_| number < count).ok_or(invalid)?;
        let bit = 1 << (number % 64);
        if *word & bit != 0 || !assignment.broker_ids.iter().eq([node_id]) {
            return Err(invalid);
        }
        *word |= bit;
    }
    i32::try_from(count).map_err(|_| invalid)
}

/// Makes the reply and hands it to `with`.
fn with_reply<R>(
    state: &State,
    request: &CreateTopicsRequest<'_>,
    answers: &[Answer],
    with: impl FnOnce(&CreateTopicsResponse<'_>) -> R,
) -> R {
    let configs = made::<CreatableTopicConfigs<'_>, _, _>(
        |_| ConfigKey::ALL.len(),
        |at, emit| {
            let topic = request.topics.iter().nth(at).unwrap_or_default();
            ConfigKey::ALL
                .iter()
                .try_for_each(|key| emit(&setting(state, &topic, *key)))
        },
    );
    let results = made::<CreatableTopicResult<'_>, _, _>(
        |_| answers.len(),
        |_, emit| {
            request
                .topics
                .iter()
                .zip(answers)
                .enumerate()
                .try_for_each(|(at, (topic, answer))| {
                    let refused = CreatableTopicResult {
                        name: topic.name,
                        error_code: answer.error,
                        error_message: answer.message,
                        configs: Array::Null,
                        ..CreatableTopicResult::default()
                    };
                    if !answer.is_done() {
                        return emit(&refused);
                    }
                    let made = state.topics.by_name(topic.name).and_then(|ix| state.topics.get(ix));
                    emit(&CreatableTopicResult {
                        topic_id: made.map(|topic| topic.id).unwrap_or_default(),
                        num_partitions: partitions(state.config.node_id, state.config.num_partitions, &topic)
                            .unwrap_or(-1),
                        replication_factor: 1,
                        configs: configs.array(at),
                        ..refused
                    })
                })
        },
    );
    with(&CreateTopicsResponse {
        topics: results.array(0),
        ..CreateTopicsResponse::default()
    })
}

/// What counts for `key` on a topic that is created so.
fn setting<'a, 'f: 'a>(state: &'a State, topic: &CreatableTopic<'f>, key: ConfigKey) -> CreatableTopicConfigs<'a> {
    let texts = state.topics.default_texts();
    let own = topic.configs.iter().filter(|own| own.name == key.name()).last();
    let (value, source) = match (own.and_then(|own| own.value), texts.broker(key)) {
        (Some(own), _) => (own.trim(), ConfigSource::Topic),
        (None, Some(broker)) => (broker, ConfigSource::StaticBroker),
        (None, None) => (texts.kafka(key), ConfigSource::Default),
    };
    CreatableTopicConfigs {
        name: key.name(),
        value: Some(value),
        config_source: source as i8,
        ..CreatableTopicConfigs::default()
    }
}
