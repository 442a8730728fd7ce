//! DeleteRecords (key 21): moves the start of logs forward.
//!
//! Answered in versions 0–2, 2 flexible.

use core::cell::Cell;

use skerry_core::api::delete_records::{
    DeleteRecordsPartition, DeleteRecordsPartitionResult, DeleteRecordsRequest, DeleteRecordsResponse,
    DeleteRecordsTopic, DeleteRecordsTopicResult,
};
use skerry_core::error_code::ErrorCode;
use skerry_core::header::RequestHeader;
use skerry_net::host::Host;

use super::answers::Answer;
use super::made::made;
use super::{Context, Out, Outcome};
use crate::config::CleanupPolicy;
use crate::log::ReadError;
use crate::state::State;

/// Handles one request.
///
/// When full: more partitions in one request than there is room for answers close the connection.
pub fn handle<H: Host>(
    cx: &mut Context<'_, H>,
    header: &RequestHeader<'_>,
    request: &DeleteRecordsRequest<'_>,
    out: &mut Out<'_>,
) -> Outcome {
    let count = request.topics.iter().map(|topic| topic.partitions.len()).sum();
    let Some(mut answers) = cx.state.take_answers(count) else {
        return Outcome::Close("more partitions in one DeleteRecords than there can be");
    };
    answers.resize(count, Answer::LONGEST);
    let needed = with_reply(request, &answers, |reply| Out::measure(header, reply));
    let outcome = match out.ensure(needed) {
        Err(no) => no.into(),
        Ok(()) => {
            answers.clear();
            match delete_all(cx, request, &mut answers) {
                // What was cut before stays cut when the request is asked again.
                Err(load) => load,
                Ok(()) => with_reply(request, &answers, |reply| out.reply(header, reply)),
            }
        }
    };
    cx.state.give_answers(answers);
    outcome
}

fn delete_all<H: Host>(
    cx: &mut Context<'_, H>,
    request: &DeleteRecordsRequest<'_>,
    answers: &mut Vec<Answer>,
) -> Result<(), Outcome> {
    for topic in request.topics {
        for partition in topic.partitions {
            answers.push(delete(cx, &topic, &partition)?);
        }
    }
    Ok(())
}

fn delete<H: Host>(
    cx: &mut Context<'_, H>,
    topic: &DeleteRecordsTopic<'_>,
    partition: &DeleteRecordsPartition,
) -> Result<Answer, Outcome> {
    let State { topics, logs, .. } = &mut *cx.state;
    let found = topics.by_name(topic.name).and_then(|ix| {
        let policy = topics.get(ix)?.config.cleanup_policy(topics.defaults());
        Some((topics.partition(ix, partition.partition_index)?, policy))
    });
    let Some((ix, policy)) = found else {
        return Ok(Answer::refused(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION));
    };
    // Records of a compacted topic go by their keys, not by their age.
    if policy == CleanupPolicy::Compact {
        return Ok(Answer::refused(ErrorCode::POLICY_VIOLATION));
    }
    match logs.delete_records(cx.host, ix, partition.offset) {
        Ok(start) => Ok(Answer {
            value: start,
            ..Answer::DONE
        }),
        Err(ReadError::OutOfRange) => Ok(Answer::refused(ErrorCode::OFFSET_OUT_OF_RANGE)),
        Err(ReadError::Cold(range)) => Err(Outcome::Load(range)),
        Err(ReadError::Exhausted | ReadError::Storage) => Ok(Answer::refused(ErrorCode::KAFKA_STORAGE_ERROR)),
    }
}

fn with_reply<R>(
    request: &DeleteRecordsRequest<'_>,
    answers: &[Answer],
    with: impl FnOnce(&DeleteRecordsResponse<'_>) -> R,
) -> R {
    // The topic whose partitions are told of, and the first of their answers.
    let topic = Cell::new((DeleteRecordsTopic::default(), 0));
    let partitions = made::<DeleteRecordsPartitionResult, _, _>(
        |_| topic.get().0.partitions.len(),
        |_, emit| {
            let (topic, first) = topic.get();
            let answers = answers.get(first..).unwrap_or_default();
            topic
                .partitions
                .iter()
                .zip(answers)
                .try_for_each(|(partition, answer)| {
                    emit(&DeleteRecordsPartitionResult {
                        partition_index: partition.partition_index,
                        low_watermark: answer.value,
                        error_code: answer.error,
                    })
                })
        },
    );
    let results = made::<DeleteRecordsTopicResult<'_>, _, _>(
        |_| request.topics.len(),
        |_, emit| {
            let mut first = 0;
            request.topics.iter().try_for_each(|asked| {
                topic.set((asked, first));
                first += asked.partitions.len();
                emit(&DeleteRecordsTopicResult {
                    name: asked.name,
                    partitions: partitions.array(0),
                })
            })
        },
    );
    with(&DeleteRecordsResponse {
        topics: results.array(0),
        ..DeleteRecordsResponse::default()
    })
}
