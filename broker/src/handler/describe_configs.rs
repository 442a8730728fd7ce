//! DescribeConfigs (key 32): what is set on topics and on the broker, and where each value comes from.
//!
//! Answered in versions 1–4. 1 sources and synonyms (KIP-226) · 3 types and documentation (KIP-569) · 4 flexible. A broker's settings are
//! read at its start, so they are read-only here; loggers have no settings.

use core::cell::Cell;

use skerry_core::api::describe_configs::{
    DescribeConfigsRequest, DescribeConfigsResource, DescribeConfigsResourceResult, DescribeConfigsResponse,
    DescribeConfigsResult, DescribeConfigsSynonym,
};
use skerry_core::header::RequestHeader;
use skerry_net::host::Host;

use super::answers::Answer;
use super::made::made;
use super::resources::{self, Resource};
use super::{Context, Out, Outcome};
use crate::config::{Setting, Source};
use crate::state::State;
use crate::topics::config::{ConfigKey, ConfigSource, ConfigType, TopicConfig};

/// Handles one request. Cost: two passes over what is told of.
pub fn handle<H: Host>(
    cx: &mut Context<'_, H>,
    header: &RequestHeader<'_>,
    request: &DescribeConfigsRequest<'_>,
    out: &mut Out<'_>,
) -> Outcome {
    let state = &*cx.state;
    let texts = state.topics.default_texts();
    // The resource whose settings are told of, and the one of them whose synonyms are.
    let resource = Cell::new(None::<(DescribeConfigsResource<'_>, Resource)>);
    let setting = Cell::new(None::<Told<'_>>);

    let synonyms_of = || match setting.get() {
        Some(told) if request.include_synonyms => told.synonyms(state),
        _ => [None; 3],
    };
    let synonyms = made::<DescribeConfigsSynonym<'_>, _, _>(
        |_| synonyms_of().iter().flatten().count(),
        |_, emit| synonyms_of().iter().flatten().try_for_each(&mut *emit),
    );
    let told_of = || {
        let (asked, found) = resource.get().unzip();
        let wanted = move |name: &str| {
            asked.is_some_and(|asked: DescribeConfigsResource<'_>| {
                asked.configuration_keys.is_empty() || asked.configuration_keys.iter().any(|key| key == name)
            })
        };
        settings(state, found).filter(move |told| wanted(told.name()))
    };
    let configs = made::<DescribeConfigsResourceResult<'_>, _, _>(
        |_| told_of().count(),
        |_, emit| {
            told_of().try_for_each(|told| {
                setting.set(Some(told));
                let documentation = told.documentation();
                let (value, source) = match told {
                    Told::Topic(config, key) => {
                        let (text, source) = texts.effective(config, key);
                        (Some(text), source)
                    }
                    Told::Broker(setting) => (shown(setting), source_of(setting)),
                };
                emit(&DescribeConfigsResourceResult {
                    name: told.name(),
                    value,
                    read_only: matches!(told, Told::Broker(_)),
                    config_source: source as i8,
                    is_sensitive: matches!(told, Told::Broker(setting) if setting.key.is_secret()),
                    synonyms: synonyms.array(0),
                    config_type: told.config_type() as i8,
                    documentation: request.include_documentation.then_some(documentation),
                })
            })
        },
    );
    let results = made::<DescribeConfigsResult<'_>, _, _>(
        |_| request.resources.len(),
        |_, emit| {
            request.resources.iter().try_for_each(|asked| {
                let found = resources::find(state, asked.resource_type, asked.resource_name);
                let refused = found.err().unwrap_or(Answer::DONE);
                resource.set(found.ok().map(|found| (asked, found)));
                emit(&DescribeConfigsResult {
                    error_code: refused.error,
                    error_message: refused.message,
                    resource_type: asked.resource_type,
                    resource_name: asked.resource_name,
                    configs: configs.array(0),
                })
            })
        },
    );
    out.reply(
        header,
        &DescribeConfigsResponse {
            results: results.array(0),
            ..DescribeConfigsResponse::default()
        },
    )
}

/// A setting that is told of.
#[derive(Clone, Copy)]
enum Told<'r> {
    Topic(&'r TopicConfig, ConfigKey),
    Broker(&'r Setting),
}

/// Every setting of a resource.
fn settings<'r>(state: &'r State, resource: Option<Resource>) -> impl Iterator<Item = Told<'r>> {
    let (config, broker) = match resource {
        Some(Resource::Topic(ix)) => (state.topics.get(ix).map(|topic| &topic.config), false),
        Some(Resource::Broker) => (None, true),
        Some(Resource::AllBrokers | Resource::Logger) | None => (None, false),
    };
    let keys = config
        .into_iter()
        .flat_map(|config| ConfigKey::ALL.iter().map(move |key| Told::Topic(config, *key)));
    let own = state.config.settings.iter().filter(move |_| broker).map(Told::Broker);
    keys.chain(own)
}

impl<'r> Told<'r> {
    fn name(&self) -> &'r str {
        match self {
            Self::Topic(_, key) => key.name(),
            Self::Broker(setting) => &setting.name,
        }
    }

    const fn documentation(&self) -> &'r str {
        match self {
            Self::Topic(_, key) => key.documentation(),
            Self::Broker(setting) => setting.key.doc,
        }
    }

    fn config_type(&self) -> ConfigType {
        match self {
            Self::Topic(_, key) => key.config_type(),
            Self::Broker(setting) => match setting.key.type_name {
                "boolean" => ConfigType::Boolean,
                "milliseconds" => ConfigType::Long,
                "number" if setting.key.range.max > i64::from(i32::MAX) => ConfigType::Long,
                "number" => ConfigType::Int,
                "list" => ConfigType::List,
                "password" => ConfigType::Password,
                _ => ConfigType::String,
            },
        }
    }

    /// Every place that sets it, the one that counts first.
    fn synonyms(&self, state: &'r State) -> [Option<DescribeConfigsSynonym<'r>>; 3] {
        let synonym = |name, value, source: ConfigSource| DescribeConfigsSynonym {
            name,
            value,
            source: source as i8,
        };
        match *self {
            Self::Topic(config, key) => {
                let texts = state.topics.default_texts();
                let own = config.own_text(key);
                let broker = texts.broker(key);
                [
                    own.map(|text| synonym(key.name(), Some(text), ConfigSource::Topic)),
                    broker.map(|text| synonym(key.broker_name(), Some(text), ConfigSource::StaticBroker)),
                    Some(synonym(
                        key.broker_name(),
                        Some(texts.kafka(key)),
                        ConfigSource::Default,
                    )),
                ]
            }
            Self::Broker(setting) => {
                let name = self.name();
                let said = source_of(setting) == ConfigSource::StaticBroker;
                let default = setting.key.default.text();
                [
                    said.then(|| synonym(name, shown(setting), ConfigSource::StaticBroker)),
                    default.map(|text| synonym(name, Some(text), ConfigSource::Default)),
                    None,
                ]
            }
        }
    }
}

/// What is told of a setting's text: nothing, when it is a secret.
fn shown(setting: &Setting) -> Option<&str> {
    setting.text.as_deref().filter(|_| !setting.key.is_secret())
}

const fn source_of(setting: &Setting) -> ConfigSource {
    match setting.source {
        Source::Default => ConfigSource::Default,
        Source::File(..) | Source::Environment(_) | Source::Override => ConfigSource::StaticBroker,
    }
}
