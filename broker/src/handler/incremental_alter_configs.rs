//! IncrementalAlterConfigs (key 44): changes single settings of topics (KIP-339).
//!
//! Answered in versions 0–1, 1 flexible. A broker's settings are read at its start and cannot be changed here. The answer leaves once
//! the change is durable.

use skerry_core::api::incremental_alter_configs::{
    AlterConfigsResource, AlterConfigsResourceResponse, AlterableConfig, IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
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
    request: &IncrementalAlterConfigsRequest<'_>,
    out: &mut Out<'_>,
) -> Outcome {
    let count = request.resources.len();
    let Some(mut answers) = cx.state.take_answers(count) else {
        return Outcome::Close("more resources in one IncrementalAlterConfigs than there can be");
    };
    answers.resize(count, Answer::LONGEST);
    let needed = with_reply(request, &answers, |reply| Out::measure(header, reply));
    let outcome = match out.ensure(needed) {
        Err(no) => no.into(),
        Ok(()) => {
            answers.clear();
            for resource in request.resources {
                let done = change(cx, request, &resource);
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

fn change<H: Host>(
    cx: &mut Context<'_, H>,
    request: &IncrementalAlterConfigsRequest<'_>,
    resource: &AlterConfigsResource<'_>,
) -> Result<(), Answer> {
    let Resource::Topic(ix) = resources::find(cx.state, resource.resource_type, resource.resource_name)? else {
        return resources::refuse_broker(resource.configs.is_empty());
    };
    let State { topics, logs, .. } = &mut *cx.state;
    let mut config = topics.get(ix).map(|topic| topic.config.clone()).unwrap_or_default();
    let mut seen = 0u32;
    for setting in resource.configs {
        let key = ConfigKey::named(setting.name)?;
        let bit = 1 << key as u32;
        if seen & bit != 0 {
            return Err(Answer::because(
                ErrorCode::INVALID_REQUEST,
                "A setting is changed more than once.",
            ));
        }
        seen |= bit;
        apply(&mut config, key, &setting, |key| key.broker_default(topics.defaults()))?;
    }
    if !request.validate_only {
        topics.configure(cx.host, logs, ix, &config)?;
    }
    Ok(())
}

/// Applies one change.
fn apply(
    config: &mut TopicConfig,
    key: ConfigKey,
    setting: &AlterableConfig<'_>,
    default: impl Fn(ConfigKey) -> crate::topics::config::ConfigValue,
) -> Result<(), Answer> {
    const SET: i8 = 0;
    const DELETE: i8 = 1;
    const APPEND: i8 = 2;
    const SUBTRACT: i8 = 3;
    let text = || {
        setting
            .value
            .ok_or(Answer::because(ErrorCode::INVALID_REQUEST, "A setting needs a value."))
    };
    match setting.config_operation {
        SET => config.set(key, key.parse(text()?)?),
        DELETE => config.unset(key),
        APPEND | SUBTRACT => {
            let before = config.own(key).unwrap_or_else(|| default(key));
            let add = setting.config_operation == APPEND;
            config.set(key, key.edit_list(before, text()?, add)?);
        }
        _ => {
            return Err(Answer::because(
                ErrorCode::INVALID_REQUEST,
                "This change of a setting is not known.",
            ));
        }
    }
    Ok(())
}

fn with_reply<R>(
    request: &IncrementalAlterConfigsRequest<'_>,
    answers: &[Answer],
    with: impl FnOnce(&IncrementalAlterConfigsResponse<'_>) -> R,
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
    with(&IncrementalAlterConfigsResponse {
        responses: responses.array(0),
        ..IncrementalAlterConfigsResponse::default()
    })
}
