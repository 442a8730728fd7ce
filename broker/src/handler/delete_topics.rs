//! DeleteTopics (key 20): topics with all that is in them.
//!
//! Answered in versions 1–6. 3 TOPIC_DELETION_DISABLED · 4 flexible · 5 error messages · 6 by id too (KIP-516). The answer leaves once
//! the deletion is durable; offsets that groups committed go with the topic.

use skerry_core::api::delete_topics::{
    DeletableTopicResult, DeleteTopicState, DeleteTopicsRequest, DeleteTopicsResponse,
};
use skerry_core::error_code::ErrorCode;
use skerry_core::header::RequestHeader;
use skerry_core::wire::Uuid;
use skerry_net::host::Host;

use super::answers::{self, Answer};
use super::made::made;
use super::{Context, Out, Outcome};
use crate::ids::TopicIx;
use crate::state::State;

/// Handles one request.
///
/// When full: more topics in one request than there is room for answers close the connection.
/// Cost: two blocking syncs for all topics, and a rename for each partition.
pub fn handle<H: Host>(
    cx: &mut Context<'_, H>,
    header: &RequestHeader<'_>,
    request: &DeleteTopicsRequest<'_>,
    out: &mut Out<'_>,
) -> Outcome {
    let count = request.topics.len() + request.topic_names.len();
    let Some(mut answers) = cx.state.take_answers(count) else {
        return Outcome::Close("more topics in one DeleteTopics than there can be");
    };
    answers.extend(named(request).map(|topic| Answer {
        value: find(cx.state, &topic).map_or(-1, |ix| i64::from(ix.0)),
        ..Answer::LONGEST
    }));
    let needed = with_reply(cx.state, request, &answers, |reply| Out::measure(header, reply));
    let outcome = match out.ensure(needed) {
        Err(no) => no.into(),
        Ok(()) => {
            delete_all(cx, header, request, &mut answers);
            // Written while the names are still there.
            let outcome = with_reply(cx.state, request, &answers, |reply| out.reply(header, reply));
            forget_all(cx, &answers);
            outcome
        }
    };
    cx.state.give_answers(answers);
    outcome
}

/// The topics of a request of any version.
fn named<'f>(request: &DeleteTopicsRequest<'f>) -> impl Iterator<Item = DeleteTopicState<'f>> {
    let by_name = request.topic_names.iter().map(|name| DeleteTopicState {
        name: Some(name),
        topic_id: Uuid::ZERO,
    });
    request.topics.iter().chain(by_name)
}

fn find(state: &State, topic: &DeleteTopicState<'_>) -> Option<TopicIx> {
    match topic.name {
        Some(name) => state.topics.by_name(name),
        None => state.topics.by_id(topic.topic_id),
    }
}

/// Writes every deletion to the metadata log, durably. The topics stay in the tables.
fn delete_all<H: Host>(
    cx: &mut Context<'_, H>,
    header: &RequestHeader<'_>,
    request: &DeleteTopicsRequest<'_>,
    answers: &mut [Answer],
) {
    for (at, topic) in named(request).enumerate() {
        let Some(value) = answers.get(at).map(|answer| answer.value) else {
            continue;
        };
        let twice = value >= 0 && answers.iter().filter(|other| other.value == value).count() > 1;
        let done = match u32::try_from(value) {
            _ if !cx.state.config.delete_topics => Err(Answer::refused(if header.version < 3 {
                ErrorCode::INVALID_REQUEST
            } else {
                ErrorCode::TOPIC_DELETION_DISABLED
            })),
            _ if topic.name.is_some() && topic.topic_id != Uuid::ZERO => Err(Answer::because(
                ErrorCode::INVALID_REQUEST,
                "A topic is named by its name or by its id, not by both.",
            )),
            Err(_) if topic.name.is_some() => Err(Answer::refused(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)),
            Err(_) => Err(Answer::refused(ErrorCode::UNKNOWN_TOPIC_ID)),
            Ok(_) if twice => Err(Answer::because(
                ErrorCode::INVALID_REQUEST,
                "The request names this topic more than once.",
            )),
            Ok(ix) => cx.state.topics.delete(cx.host, TopicIx(ix)).map_err(Answer::from),
        };
        if let Some(answer) = answers.get_mut(at) {
            *answer = Answer {
                value,
                ..done.err().unwrap_or(Answer::DONE)
            };
        }
    }
    answers::sync(cx, answers);
}

/// Takes the deleted topics out of the tables.
fn forget_all<H: Host>(cx: &mut Context<'_, H>, answers: &[Answer]) {
    let deleted = answers.iter().filter(|answer| answer.is_done());
    let mut any = false;
    for ix in deleted
        .filter_map(|answer| u32::try_from(answer.value).ok())
        .map(TopicIx)
    {
        cx.state.forget_topic(cx.host, cx.now, ix);
        any = true;
    }
    if any && let Err(error) = cx.state.logs.sync_names(cx.host) {
        // The metadata log says that they are gone: the next start takes no directory for a topic that it does not know.
        log::warn!("directories of deleted topics may come back after a power cut: {error}");
    }
}

fn with_reply<R>(
    state: &State,
    request: &DeleteTopicsRequest<'_>,
    answers: &[Answer],
    with: impl FnOnce(&DeleteTopicsResponse<'_>) -> R,
) -> R {
    let results = made::<DeletableTopicResult<'_>, _, _>(
        |_| answers.len(),
        |_, emit| {
            named(request).zip(answers).try_for_each(|(asked, answer)| {
                let ix = u32::try_from(answer.value).ok().map(TopicIx);
                let topic = ix.and_then(|ix| state.topics.get(ix));
                emit(&DeletableTopicResult {
                    name: topic.map(|topic| topic.name.as_str()).or(asked.name),
                    topic_id: topic.map_or(asked.topic_id, |topic| topic.id),
                    error_code: answer.error,
                    error_message: answer.message,
                })
            })
        },
    );
    with(&DeleteTopicsResponse {
        responses: results.array(0),
        ..DeleteTopicsResponse::default()
    })
}
