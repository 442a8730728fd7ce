//! What has settings: topics, and the broker.

use skerry_core::error_code::ErrorCode;

use super::answers::Answer;
use crate::ids::TopicIx;
use crate::state::State;
use crate::topics::topic_name;

/// A resource that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// A topic.
    Topic(TopicIx),
    /// This broker.
    Broker,
    /// What is set for all brokers at once: nothing.
    AllBrokers,
    /// This broker's loggers.
    Logger,
}

/// The resource of that type (as DescribeConfigs numbers it) and name. Errors: the answer to the client.
pub fn find(state: &State, resource_type: i8, name: &str) -> Result<Resource, Answer> {
    let here = || {
        let is_me = name.parse() == Ok(state.config.node_id);
        is_me.then_some(()).ok_or(Answer::because(
            ErrorCode::INVALID_REQUEST,
            "There is one broker, and this is not its number.",
        ))
    };
    match resource_type {
        2 => {
            topic_name(name).map_err(|why| Answer::because(ErrorCode::INVALID_TOPIC_EXCEPTION, why.message()))?;
            let ix = state.topics.by_name(name);
            ix.map(Resource::Topic)
                .ok_or(Answer::refused(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION))
        }
        4 if name.is_empty() => Ok(Resource::AllBrokers),
        4 => here().map(|()| Resource::Broker),
        8 => here().map(|()| Resource::Logger),
        _ => Err(Answer::because(
            ErrorCode::INVALID_REQUEST,
            "Only topics and brokers have settings here.",
        )),
    }
}

/// The answer to a change of what is no topic: the broker's settings are read at its start.
pub fn refuse_broker(nothing_changed: bool) -> Result<(), Answer> {
    nothing_changed.then_some(()).ok_or(Answer::because(
        ErrorCode::INVALID_REQUEST,
        "The broker's settings are read at its start: change server.properties and start it again.",
    ))
}
