//! CreatePartitions (key 37): more partitions for topics that are there.
//!
//! Answered in versions 0–3, 2 flexible. Each topic has its own answer; partitions are never taken away. The answer leaves once they
//! are durable.

use skerry_core::api::create_partitions::{
    CreatePartitionsRequest, CreatePartitionsResponse, CreatePartitionsTopic, CreatePartitionsTopicResult,
};
use skerry_core::error_code::ErrorCode;
use skerry_core::header::RequestHeader;
use skerry_net::host::Host;

use super::answers::{self, Answer};
use super::made::made;
use super::{Context, Out, Outcome};
use crate::state::State;
use crate::topics::ChangeError;

/// Handles one request.
///
/// When full: a topic whose partitions find no room is refused; more topics in one request than there is room for answers close
/// the connection. Cost: one blocking sync for all topics.
pub fn handle<H: Host>(
    cx: &mut Context<'_, H>,
    header: &RequestHeader<'_>,
    request: &CreatePartitionsRequest<'_>,
    out: &mut Out<'_>,
) -> Outcome {
    let count = request.topics.len();
    let Some(mut answers) = cx.state.take_answers(count) else {
        return Outcome::Close("more topics in one CreatePartitions than there can be");
    };
    answers.resize(count, Answer::LONGEST);
    let needed = with_reply(request, &answers, |reply| Out::measure(header, reply));
    let outcome = match out.ensure(needed) {
        Err(no) => no.into(),
        Ok(()) => {
            answers.clear();
            for topic in request.topics {
                // A topic named again is found to have the partitions already.
                answers.push(grow(cx, request, &topic).err().unwrap_or(Answer::DONE));
            }
            if !request.validate_only {
                answers::sync(cx, &mut answers);
            }
            with_reply(request, &answers, |reply| out.reply(header, reply))
        }
    };
    cx.state.give_answers(answers);
    outcome
}

fn grow<H: Host>(
    cx: &mut Context<'_, H>,
    request: &CreatePartitionsRequest<'_>,
    topic: &CreatePartitionsTopic<'_>,
) -> Result<(), Answer> {
    let State {
        topics, logs, config, ..
    } = &mut *cx.state;
    let ix = topics.by_name(topic.name).ok_or(ChangeError::Unknown)?;
    let before = topics.get(ix).map_or(0, |topic| topic.partitions());
    if topic.count <= before {
        return Err(Answer::because(
            ErrorCode::INVALID_PARTITIONS,
            "The topic has as many partitions already; they can only become more.",
        ));
    }
    let more = topic.count.abs_diff(before);
    if !topic.assignments.is_null() {
        let here = topic
            .assignments
            .iter()
            .all(|a| a.broker_ids.iter().eq([config.node_id]));
        if topic.assignments.len() != more as usize || !here {
            return Err(Answer::because(
                ErrorCode::INVALID_REPLICA_ASSIGNMENT,
                "Assign each new partition, and to this broker alone.",
            ));
        }
    }
    if !topics.has_room(0, more) {
        return Err(ChangeError::Full.into());
    }
    if !request.validate_only {
        topics.add_partitions(cx.host, logs, ix, topic.count)?;
    }
    Ok(())
}

fn with_reply<R>(
    request: &CreatePartitionsRequest<'_>,
    answers: &[Answer],
    with: impl FnOnce(&CreatePartitionsResponse<'_>) -> R,
) -> R {
    let results = made::<CreatePartitionsTopicResult<'_>, _, _>(
        |_| answers.len(),
        |_, emit| {
            request.topics.iter().zip(answers).try_for_each(|(topic, answer)| {
                emit(&CreatePartitionsTopicResult {
                    name: topic.name,
                    error_code: answer.error,
                    error_message: answer.message,
                })
            })
        },
    );
    with(&CreatePartitionsResponse {
        results: results.array(0),
        ..CreatePartitionsResponse::default()
    })
}
