//! AlterConfigs (key 33): replaces everything that is set on topics.
//!
//! Answered in versions 0–2, 2 flexible. Newer clients use IncrementalAlterConfigs (KIP-339). A broker's settings are read at its start
//! and cannot be changed here. The answer leaves once the change is durable.

use skerry_core::api::alter_configs::{
    AlterConfigsRequest, AlterConfigsResource, AlterConfigsResourceResponse, AlterConfigsResponse,
};
use skerry_core::error_code::ErrorCode;
use skerry_core::header::RequestHeader;
use skerry_net::host::Host;

use super::answers::{self, Answer};
use super::made::made;
use super::resources::{self, Resource};
use super::{Context, Out, Outcome};
use crate::state::State;
use crate::topics::config::{ConfigKey, TopicConfig};

/// Handles one request.
///
/// When full: more resources in one request than there is room for answers close the connection.
/// Cost: one blocking sync for all resources.
pub fn handle<H: Host>(
    cx: &mut Context<'_, H>,
    header: &RequestHeader<'_>,
    request: &AlterConfigsRequest<'_>,
    out: &mut Out<'_>,
) -> Outcome {
    let count = request.resources.len();
    let Some(mut answers) = cx.state.take_answers(count) else {
        return Outcome::Close("more resources in one AlterConfigs than there can be");
    };
    answers.resize(count, Answer::LONGEST);
    let needed = with_reply(request, &answers, |reply| Out::measure(header, reply));
    let outcome = match out.ensure(needed) {
        Err(no) => no.into(),
        Ok(()) => {
            answers.clear();
            for resource in request.resources {
                let done = replace(cx, request, &resource);
                answers.push(done.err().unwrap_or(Answer::DONE));
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

fn replace<H: Host>(
    cx: &mut Context<'_, H>,
    request: &AlterConfigsRequest<'_>,
    resource: &AlterConfigsResource<'_>,
) -> Result<(), Answer> {
    let Resource::Topic(ix) = resources::find(cx.state, resource.resource_type, resource.resource_name)? else {
        return resources::refuse_broker(resource.configs.is_empty());
    };
    let mut config = TopicConfig::default();
    for setting in resource.configs {
        let key = ConfigKey::named(setting.name)?;
        let value = setting
            .value
            .ok_or(Answer::because(ErrorCode::INVALID_REQUEST, "A setting needs a value."))?;
        config.set(key, key.parse(value)?);
    }
    let State { topics, logs, .. } = &mut *cx.state;
    if !request.validate_only {
        topics.configure(cx.host, logs, ix, &config)?;
    }
    Ok(())
}

fn with_reply<R>(
    request: &AlterConfigsRequest<'_>,
    answers: &[Answer],
    with: impl FnOnce(&AlterConfigsResponse<'_>) -> R,
) -> R {
    let responses = made::<AlterConfigsResourceResponse<'_>, _, _>(
        |_| answers.len(),
        |_, emit| {
            request
                .resources
                .iter()
                .zip(answers)
                .try_for_each(|(resource, answer)| {
                    emit(&AlterConfigsResourceResponse {
                        error_code: answer.error,
                        error_message: answer.message,
                        resource_type: resource.resource_type,
                        resource_name: resource.resource_name,
                    })
                })
        },
    );
    with(&AlterConfigsResponse {
        responses: responses.array(0),
        ..AlterConfigsResponse::default()
    })
}
