//! From the file, the environment and `--override` to one [`Config`], with everything that is wrong said at once.
//!
//! What is said later goes before: `--override`, then the environment, then the file, then the defaults.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use skerry_core::time::Millis;

use super::keys::{self, KEYS, Key, Settings};
use super::{Config, GroupConfig, Limits, TopicDefaults, listeners, no_effect, properties};
use crate::startup::Bytes;

/// Everything that settings are read from, taken from the process by the caller.
pub struct Inputs<'a> {
    /// The file's name, for messages, and its text.
    pub file: Option<(&'a str, &'a str)>,
    /// Environment variables; those that begin with `SKERRY_` are looked at.
    pub environment: &'a [(String, String)],
    /// `key=value`, in the order given.
    pub overrides: &'a [String],
    /// Where the data goes when no setting says.
    pub data_dir: Option<PathBuf>,
    /// Whether the machine has IPv6.
    pub ipv6: bool,
    /// Finds the address of a host name.
    pub resolve: &'a dyn Fn(&str) -> Result<IpAddr, String>,
}

/// Where a setting's text was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Nowhere: its default.
    Default,
    /// A file and line.
    File(String, usize),
    /// An environment variable.
    Environment(String),
    /// `--override`.
    Override,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(name, line) => write!(f, "{name}:{line}"),
            Self::Environment(name) => f.write_str(name),
            Self::Override => f.write_str("--override"),
        }
    }
}

/// A setting as it was said.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Which.
    pub key: &'static Key,
    /// Its text, trimmed. `None`: it has neither text nor a default.
    pub text: Option<String>,
    /// Who said so.
    pub source: Source,
}

/// What was read, and what the user should know about it.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The settings.
    pub config: Config,
    /// One line each: settings without effect, and the like.
    pub notices: Vec<String>,
}

/// Reads everything.
///
/// Errors: one line for each thing that is wrong, naming where, the key, the value and what is allowed.
pub fn load(inputs: &Inputs<'_>) -> Result<Loaded, Vec<String>> {
    let mut gathered = Gathered::new();
    if let Some((name, text)) = inputs.file {
        gathered.file(name, text);
    }
    gathered.environment(inputs.environment);
    for text in inputs.overrides {
        gathered.override_(text);
    }
    let Gathered {
        settings,
        mut problems,
        notices,
        idle,
    } = gathered;

    for setting in &settings {
        if let Some(text) = &setting.text
            && !setting.key.accepts(text)
        {
            problems.push(Problem::of(
                setting,
                text,
                &format!("allowed: {}", setting.key.allowed()),
            ));
        }
    }
    // A bad text is read as the default, so that what is wrong between other settings is said as well.
    let readable = |s: &Setting| s.text.as_deref().filter(|text| s.key.accepts(text)).map(str::to_owned);
    let texts: Vec<Option<String>> = settings
        .iter()
        .map(|s| readable(s).or_else(|| s.key.default.text().map(str::to_owned)))
        .collect();
    let config = Settings::read(texts.iter().map(Option::as_deref))
        .and_then(|values| assemble(inputs, settings, &values, &mut problems));
    match config {
        Some(config) if problems.is_empty() => Ok(Loaded {
            notices: notices
                .into_iter()
                .chain(idle_lines(&idle))
                .chain(large_buffers(&config))
                .collect(),
            config,
        }),
        _ => {
            problems.sort_by_key(|problem| problem.place);
            Err(problems.into_iter().map(|problem| problem.text).collect())
        }
    }
}

/// Something wrong, and where, so that problems come in the order of the file.
struct Problem {
    place: (u8, usize),
    text: String,
}

impl Problem {
    fn at(source: &Source, text: String) -> Self {
        let place = match source {
            Source::File(_, line) => (0, *line),
            Source::Environment(_) => (1, 0),
            Source::Override => (2, 0),
            Source::Default => (3, 0),
        };
        Self { place, text }
    }

    /// Where, the key, the value, and what is wrong with it.
    fn of(setting: &Setting, text: &str, wrong: &str) -> Self {
        let key = setting.key.name;
        let text = match &setting.source {
            Source::File(name, line) => format!("{name}:{line}: {key}={text}: {wrong}"),
            Source::Environment(variable) => format!("{variable}={text}: {wrong}"),
            Source::Override => format!("--override {key}={text}: {wrong}"),
            Source::Default => format!("{key}={text}: {wrong}"),
        };
        Self::at(&setting.source, text)
    }
}

/// The texts of all settings while they are read, and what was found on the way.
struct Gathered {
    settings: Vec<Setting>,
    problems: Vec<Problem>,
    notices: Vec<String>,
    /// Settings without effect: their reason, and where each was said.
    idle: BTreeMap<&'static str, Vec<String>>,
}

impl Gathered {
    fn new() -> Self {
        let settings = KEYS.iter().map(|key| Setting {
            key,
            text: key.default.text().map(str::to_owned),
            source: Source::Default,
        });
        Self {
            settings: settings.collect(),
            problems: Vec::new(),
            notices: Vec::new(),
            idle: BTreeMap::new(),
        }
    }

    fn file(&mut self, name: &str, text: &str) {
        for entry in properties::parse(text) {
            match entry {
                Ok(entry) => self.set(&entry.key, &entry.value, Source::File(name.into(), entry.line)),
                Err(bad) => {
                    let text = format!("{name}:{}: {}", bad.line, bad.reason);
                    self.problems
                        .push(Problem::at(&Source::File(name.into(), bad.line), text));
                }
            }
        }
    }

    fn environment(&mut self, variables: &[(String, String)]) {
        for (name, value) in variables {
            if !name.starts_with("SKERRY_") || OURS.contains(&name.as_str()) {
                continue;
            }
            match KEYS.iter().find(|key| key.variable() == *name) {
                Some(key) => self.set(key.name, value, Source::Environment(name.clone())),
                // Container platforms set variables of their own for a service called skerry, so this is no error.
                None => {
                    let variables: Vec<String> = KEYS.iter().map(Key::variable).collect();
                    let near = near(name, variables.iter().map(String::as_str));
                    self.notices
                        .push(format!("{name}: no setting has this variable{near}; it is left aside"));
                }
            }
        }
    }

    fn override_(&mut self, text: &str) {
        match text.split_once('=') {
            Some((key, value)) => self.set(key.trim(), value, Source::Override),
            None => {
                let text = format!("--override {text}: allowed: key=value");
                self.problems.push(Problem::at(&Source::Override, text));
            }
        }
    }

    /// Takes one text; a later one goes before an earlier one.
    fn set(&mut self, name: &str, text: &str, source: Source) {
        if let Some(setting) = keys::position(name).and_then(|at| self.settings.get_mut(at)) {
            if let (Source::File(file, first), Source::File(_, line)) = (&setting.source, &source) {
                self.notices.push(format!(
                    "{file}:{line}: {name} was already set on line {first}; this line counts"
                ));
            }
            setting.text = Some(text.trim().to_owned());
            setting.source = source;
        } else if let Some(why) = no_effect::reason(name) {
            let place = match &source {
                Source::File(_, line) => format!("{name} (line {line})"),
                _ => format!("{name} ({source})"),
            };
            self.idle.entry(why).or_default().push(place);
        } else {
            let known = KEYS
                .iter()
                .map(|key| key.name)
                .chain(no_effect::all().map(|(name, _)| name));
            let near = near(name, known);
            let place = match &source {
                Source::Override => "--override ".into(),
                other => format!("{other}: "),
            };
            let text = format!("{place}{name}={}: unknown setting{near}", text.trim());
            self.problems.push(Problem::at(&source, text));
        }
    }
}

/// Variables that begin as ours do but belong to the command line.
const OURS: &[&str] = &["SKERRY_BOOTSTRAP_SERVER", "SKERRY_LOG_LEVEL"];

/// `; did you mean …?` for a name at most a few slips away.
fn near<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let slips = |other: &&str| strsim::damerau_levenshtein(name, other);
    match known.min_by_key(slips) {
        Some(best) if slips(&best) <= 1 + name.len() / 8 => format!("; did you mean {best}?"),
        _ => String::new(),
    }
}

/// One line for each reason, with the settings that it holds for.
fn idle_lines(idle: &BTreeMap<&'static str, Vec<String>>) -> impl Iterator<Item = String> {
    idle.iter().map(|(why, names)| {
        let verb = if names.len() == 1 { "has" } else { "have" };
        format!("{} {verb} no effect: {why}", names.join(", "))
    })
}

/// A warning when a setting that costs Kafka nothing takes much memory here: its stock file allows requests of 100 MiB.
fn large_buffers(config: &Config) -> Option<String> {
    const MUCH_BYTES: u64 = 256 << 20;
    let count = u64::from(config.limits.large_buffers);
    let bytes = count.saturating_mul(config.request_bytes_max.into());
    (bytes > MUCH_BYTES).then(|| {
        format!(
            "socket.request.max.bytes={}: {count} large buffers may take {} of memory; set it, or skerry.limits.large.buffers, \
             lower on a small machine",
            config.request_bytes_max,
            Bytes(bytes)
        )
    })
}

/// Takes the settings together. `None` when something needed is missing; what is wrong is added to `problems`.
fn assemble(inputs: &Inputs<'_>, settings: Vec<Setting>, s: &Settings, problems: &mut Vec<Problem>) -> Option<Config> {
    let mut refuse = |name: &str, text: &str, wrong: &str| {
        if let Some(setting) = settings.iter().find(|setting| setting.key.name == name) {
            problems.push(Problem::of(setting, text, wrong));
        }
    };

    let texts = listeners::Texts {
        listeners: &s.listeners,
        advertised: s.advertised_listeners.as_deref(),
        map: &s.security_map,
        controllers: s.controller_listener_names.as_deref(),
    };
    let listeners = match listeners::read(&texts, inputs.ipv6, inputs.resolve) {
        Ok(listeners) => listeners,
        Err(wrong) => {
            for w in wrong {
                refuse(w.key, &w.part, &w.why);
            }
            Vec::new()
        }
    };

    let (dirs_key, dirs) = match (&s.log_dirs, &s.log_dir) {
        (Some(dirs), _) => ("log.dirs", Some(PathBuf::from(dirs))),
        (None, Some(dir)) => ("log.dir", Some(PathBuf::from(dir))),
        (None, None) => ("log.dirs", inputs.data_dir.clone()),
    };
    let data_dir = match dirs {
        Some(dir) if dir.to_string_lossy().contains(',') => {
            refuse(
                dirs_key,
                &dir.to_string_lossy(),
                "allowed: one directory; everything is kept under it",
            );
            None
        }
        Some(dir) => Some(dir),
        None => {
            refuse(
                "log.dirs",
                "",
                "it has no default here, as neither XDG_STATE_HOME nor HOME is set",
            );
            None
        }
    };

    let (min, max) = (s.group_min_session_timeout, s.group_max_session_timeout);
    if min > max {
        let wrong = format!("allowed: at most group.max.session.timeout.ms, which is {}", max.0);
        refuse("group.min.session.timeout.ms", &min.0.to_string(), &wrong);
    }
    // Kafka's own default is 100 MiB, and a client may fill a request with a full batch for each of many partitions.
    let derived = s.message_max_bytes.saturating_mul(2).clamp(16 << 20, i32::MAX as u32);
    let request_bytes_max = s.socket_request_max_bytes.unwrap_or(derived);
    if request_bytes_max <= s.message_max_bytes {
        let wrong = format!("allowed: more than message.max.bytes, which is {}", s.message_max_bytes);
        refuse("socket.request.max.bytes", &request_bytes_max.to_string(), &wrong);
    }

    let minutes = |n: i64| if n < 0 { -1 } else { n.saturating_mul(60_000) };
    let retention_ms = s
        .retention_ms
        .or(s.retention_minutes.map(minutes))
        .unwrap_or(if s.retention_hours < 0 {
            -1
        } else {
            minutes(s.retention_hours.saturating_mul(60))
        });

    Some(Config {
        from_file: inputs.file.is_some(),
        node_id: s.node_id.unwrap_or(s.broker_id),
        rack: s.broker_rack.clone(),
        listeners,
        data_dir: data_dir?,
        auto_create_topics: s.auto_create_topics,
        delete_topics: s.delete_topics,
        num_partitions: s.num_partitions,
        topic: TopicDefaults {
            retention_ms,
            retention_bytes: s.retention_bytes,
            segment_bytes: s.segment_bytes,
            segment_ms: s.roll_ms.unwrap_or(minutes(s.roll_hours.saturating_mul(60))),
            index_interval_bytes: s.index_interval_bytes,
            max_message_bytes: s.message_max_bytes,
            timestamp_type: s.message_timestamp_type,
            cleanup_policy: s.cleanup_policy,
            compression_type: s.compression_type,
        },
        retention_check_interval: s.retention_check_interval,
        flush: s.flush,
        read: s.read,
        flush_interval: s.flush_interval,
        checkpoint_bytes: s.checkpoint_bytes,
        io_uring: s.io_uring,
        test_flush_delay: s.test_flush_delay,
        request_bytes_max,
        fetch_bytes_max: s.fetch_max_bytes,
        connections_max_idle: u64::try_from(s.connections_max_idle_ms).ok().map(Millis),
        inflight_max: s.inflight_max,
        group: GroupConfig {
            initial_rebalance_delay: s.group_initial_rebalance_delay,
            session_timeout_min: min,
            session_timeout_max: max,
            size_max: s.group_max_size,
            offsets_retention: s
                .offsets_retention_minutes
                .and_then(|n| u64::try_from(n).ok())
                .map(|n| Millis(n.saturating_mul(60_000))),
            offset_metadata_bytes_max: s.offset_metadata_max_bytes,
        },
        limits: Limits {
            connections: s.max_connections,
            topics: s.limit_topics,
            partitions: s.limit_partitions,
            segments: s.limit_segments,
            open_files: s.limit_open_files,
            producers: s.limit_producers,
            groups: s.limit_groups,
            members: s.limit_members,
            offsets: s.limit_offsets,
            group_bytes: s.limit_group_bytes,
            small_buffers: s.limit_small_buffers,
            small_buffer_bytes: s.limit_small_buffer_bytes,
            large_buffers: s.limit_large_buffers,
        },
        settings,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs<'a>(file: &'a str, environment: &'a [(String, String)], overrides: &'a [String]) -> Inputs<'a> {
        Inputs {
            file: Some(("server.properties", file)),
            environment,
            overrides,
            data_dir: Some("/state/skerry".into()),
            ipv6: true,
            resolve: &|_| Err("name not known".into()),
        }
    }

    fn loaded(file: &str) -> Loaded {
        load(&inputs(file, &[], &[])).unwrap()
    }

    fn problems(file: &str) -> Vec<String> {
        load(&inputs(file, &[], &[])).unwrap_err()
    }

    #[test]
    fn without_anything_it_is_a_loopback_broker() {
        let config = loaded("").config;
        assert_eq!(config.listeners[0].bind.to_string(), "127.0.0.1:9092");
        assert_eq!(config.listeners[0].advertised, None);
        assert_eq!(config.data_dir, PathBuf::from("/state/skerry"));
        assert_eq!(config.request_bytes_max, 16 << 20);
        assert_eq!(config.topic.retention_ms, 7 * 24 * 3_600_000);
        assert_eq!(config.topic.segment_ms, 7 * 24 * 3_600_000);
        assert_eq!(config.group.offsets_retention, None);
        assert_eq!(config.settings.len(), KEYS.len());
    }

    #[test]
    fn override_goes_before_environment_before_file() {
        let environment = [
            ("SKERRY_NUM_PARTITIONS".to_owned(), "3".to_owned()),
            ("SKERRY_LOG_SEGMENT_BYTES".to_owned(), "4096".to_owned()),
            ("SKERRY_FLUSH".to_owned(), "every".to_owned()),
            ("PATH".to_owned(), "/bin".to_owned()),
        ];
        let overrides = ["num.partitions=4".to_owned()];
        let file = "num.partitions=2\nlog.segment.bytes=2048\nlog.index.interval.bytes=1\n";
        let config = load(&inputs(file, &environment, &overrides)).unwrap().config;
        assert_eq!(config.num_partitions, 4);
        assert_eq!(config.topic.segment_bytes, 4096);
        assert_eq!(config.topic.index_interval_bytes, 1);
        assert_eq!(config.flush, super::super::Flush::Every);
        let source = |name| {
            config
                .settings
                .iter()
                .find(|s| s.key.name == name)
                .map(|s| s.source.to_string())
        };
        assert_eq!(source("num.partitions").as_deref(), Some("--override"));
        assert_eq!(source("log.segment.bytes").as_deref(), Some("SKERRY_LOG_SEGMENT_BYTES"));
        assert_eq!(
            source("log.index.interval.bytes").as_deref(),
            Some("server.properties:3")
        );
        assert_eq!(source("log.dirs").as_deref(), Some("default"));
    }

    #[test]
    fn every_problem_is_said_with_its_place() {
        let file = "num.partition=2\nlog.segment.bytes=1g\nauto.create.topics.enable=yes\nskerry.flush=fast\n\
                    what.is.this=1\nlog.dirs=/a,/b\nlisteners=SSL://:9093\nbad=\\u12\n";
        let environment = [("SKERRY_NUM_PARTITIONS".to_owned(), "0".to_owned())];
        let overrides = ["fetch.max.bytes".to_owned(), "skerry.reed=durable".to_owned()];
        assert_eq!(
            load(&inputs(file, &environment, &overrides)).unwrap_err(),
            [
                "server.properties:1: num.partition=2: unknown setting; did you mean num.partitions?",
                "server.properties:2: log.segment.bytes=1g: allowed: a whole number from 1024 to 2147483647",
                "server.properties:3: auto.create.topics.enable=yes: allowed: true | false",
                "server.properties:4: skerry.flush=fast: allowed: acks-all | every | interval | never",
                "server.properties:5: what.is.this=1: unknown setting",
                "server.properties:6: log.dirs=/a,/b: allowed: one directory; everything is kept under it",
                "server.properties:7: listeners=SSL://:9093: SSL is not in this release, which speaks PLAINTEXT only",
                "server.properties:8: \\u needs four hexadecimal digits",
                "SKERRY_NUM_PARTITIONS=0: allowed: a whole number from 1 to 2147483647",
                "--override fetch.max.bytes: allowed: key=value",
                "--override skerry.reed=durable: unknown setting; did you mean skerry.read?",
            ]
        );
    }

    #[test]
    fn settings_that_do_not_go_together() {
        assert_eq!(
            problems("group.min.session.timeout.ms=9\ngroup.max.session.timeout.ms=8\nsocket.request.max.bytes=1024"),
            [
                "server.properties:1: group.min.session.timeout.ms=9: allowed: at most group.max.session.timeout.ms, which is 8",
                "server.properties:3: socket.request.max.bytes=1024: allowed: more than message.max.bytes, which is 1048588",
            ]
        );
    }

    #[test]
    fn without_a_home_the_data_directory_must_be_said() {
        let nowhere = Inputs {
            data_dir: None,
            ..inputs("", &[], &[])
        };
        assert_eq!(
            load(&nowhere).unwrap_err(),
            ["log.dirs=: it has no default here, as neither XDG_STATE_HOME nor HOME is set"]
        );
    }

    #[test]
    fn finer_units_and_newer_names_go_first() {
        let config = loaded("log.retention.hours=1\nlog.retention.minutes=2\nlog.roll.ms=5\nlog.roll.hours=9\n").config;
        assert_eq!((config.topic.retention_ms, config.topic.segment_ms), (120_000, 5));
        let config = loaded("log.retention.ms=-1\nlog.retention.minutes=2\nconnections.max.idle.ms=-1\n").config;
        assert_eq!((config.topic.retention_ms, config.connections_max_idle), (-1, None));
        let config = loaded("log.retention.hours=-1\nbroker.id=3\nlog.dir=/a\noffsets.retention.minutes=1").config;
        assert_eq!((config.topic.retention_ms, config.node_id), (-1, 3));
        assert_eq!(config.data_dir, PathBuf::from("/a"));
        assert_eq!(config.group.offsets_retention, Some(Millis(60_000)));
        let config = loaded("node.id=4\nbroker.id=3\nlog.dirs=/b\nlog.dir=/a").config;
        assert_eq!((config.node_id, config.data_dir), (4, PathBuf::from("/b")));
    }

    #[test]
    fn notices_name_what_has_no_effect_and_what_is_said_twice() {
        let environment = [
            ("SKERRY_PORT_9092_TCP".to_owned(), "tcp://10.0.0.1:9092".to_owned()),
            ("SKERRY_NUM_PARTITION".to_owned(), "3".to_owned()),
            ("SKERRY_BOOTSTRAP_SERVER".to_owned(), "h:1".to_owned()),
        ];
        let file = "process.roles=broker\nnum.io.threads=8\nnode.id=1\nnode.id=2\ncontroller.quorum.voters=1@h:9093\n";
        let loaded = load(&inputs(file, &environment, &[])).unwrap();
        assert_eq!(
            loaded.notices,
            [
                "server.properties:4: node.id was already set on line 3; this line counts",
                "SKERRY_PORT_9092_TCP: no setting has this variable; it is left aside",
                "SKERRY_NUM_PARTITION: no setting has this variable; did you mean SKERRY_NUM_PARTITIONS?; it is left aside",
                "process.roles (line 1), controller.quorum.voters (line 5) have no effect: one node is the whole cluster: it has no controller quorum",
                "num.io.threads (line 2) has no effect: one thread serves every connection, with no queue between its parts",
            ]
        );
    }

    /// Kafka's own `config/server.properties` of a combined node, by its settings.
    #[test]
    fn a_stock_kafka_file_is_taken_as_it_is() {
        let file = "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.bootstrap.servers=localhost:9093\n\
            listeners=PLAINTEXT://:9092,CONTROLLER://:9093\ninter.broker.listener.name=PLAINTEXT\n\
            advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093\n\
            controller.listener.names=CONTROLLER\n\
            listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL\n\
            num.network.threads=3\nnum.io.threads=8\nsocket.send.buffer.bytes=102400\nsocket.receive.buffer.bytes=102400\n\
            socket.request.max.bytes=104857600\nlog.dirs=/tmp/kraft-combined-logs\nnum.partitions=1\n\
            num.recovery.threads.per.data.dir=1\noffsets.topic.replication.factor=1\n\
            share.coordinator.state.topic.replication.factor=1\nshare.coordinator.state.topic.min.isr=1\n\
            transaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\nlog.retention.hours=168\n\
            log.segment.bytes=1073741824\nlog.retention.check.interval.ms=300000\n";
        let Loaded { config, notices } = loaded(file);
        assert_eq!(config.listeners.len(), 1);
        assert_eq!(config.request_bytes_max, 104_857_600);
        assert_eq!(
            notices.last().map(String::as_str),
            Some(
                "socket.request.max.bytes=104857600: 4 large buffers may take 400.0 MiB of memory; set it, or \
                 skerry.limits.large.buffers, lower on a small machine"
            )
        );
    }
}
