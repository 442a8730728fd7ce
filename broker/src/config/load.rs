//! From the file, the environment and `--override` to one [`Config`], with everything that is wrong said at once.
//!
//! What is said later goes before: `--override`, then the environment, then the file, then the defaults.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use skerry_core::time::Millis;

use super::keys::{self, KEYS, Key, Settings};
use super::properties::{self, Property};
use super::tls::{self, Remark, TlsConfig};
use super::value::Password;
use super::{Config, GroupConfig, Limits, Protocol, TopicDefaults, listeners, no_effect};
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
    /// The listener that it is for, in lower case; `None` for all.
    pub listener: Option<String>,
    /// Its name as it was said: the key's, or `listener.name.<listener>.` and the key's.
    pub name: Cow<'static, str>,
    /// Its text, trimmed; [`Password::SHOWN`] for a secret. `None`: it has neither text nor a default.
    pub text: Option<String>,
    /// Who said so.
    pub source: Source,
}

impl Setting {
    /// The environment variable that sets it.
    #[must_use]
    pub fn variable(&self) -> String {
        match &self.listener {
            Some(listener) => listener_variable(listener, self.key),
            None => self.key.variable(),
        }
    }

    /// Where it was said, and its name: the begin of a sentence about it.
    fn place(&self) -> String {
        match &self.source {
            Source::File(name, line) => format!("{name}:{line}: {}", self.name),
            Source::Environment(variable) => variable.clone(),
            Source::Override => format!("--override {}", self.name),
            Source::Default => self.name.clone().into_owned(),
        }
    }
}

/// What a setting of one listener begins with.
const LISTENER_PREFIX: &str = "listener.name.";
/// What the variable of one begins with.
const LISTENER_VARIABLE_PREFIX: &str = "SKERRY_LISTENER_NAME_";

fn listener_variable(listener: &str, key: &Key) -> String {
    let listener = listener.to_ascii_uppercase().replace('.', "_");
    let own = key.variable();
    format!(
        "{LISTENER_VARIABLE_PREFIX}{listener}_{}",
        own.strip_prefix("SKERRY_").unwrap_or(&own)
    )
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
    match inputs.file {
        Some((name, text)) => gathered.file(name, text),
        None => gathered.try_out(),
    }
    gathered.environment(inputs.environment);
    for text in inputs.overrides {
        gathered.override_(text);
    }
    let texts = gathered.texts();
    let Gathered {
        settings,
        mut problems,
        notices,
        idle,
    } = gathered;
    let mut remarks = Vec::new();
    let config = Settings::read(texts.iter().take(KEYS.len()).map(Option::as_deref))
        .and_then(|values| assemble(inputs, settings, &texts, &values, &mut problems, &mut remarks));
    match config {
        Some(config) if problems.is_empty() => Ok(Loaded {
            notices: notices
                .into_iter()
                .chain(remarks)
                .chain(idle_lines(&idle))
                .chain(large_buffers(&config))
                .collect(),
            config,
        }),
        _ => Err(Problem::sentences(problems)),
    }
}

/// Something wrong, and where, so that problems come in the order of the file.
pub(super) struct Problem {
    place: (u8, usize),
    text: String,
}

impl Problem {
    pub(super) fn at(source: &Source, text: String) -> Self {
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
        Self::at(&setting.source, sentence(setting, text, wrong))
    }

    /// Their sentences, in the order of what they are about.
    pub(super) fn sentences(mut problems: Vec<Self>) -> Vec<String> {
        problems.sort_by_key(|problem| problem.place);
        problems.into_iter().map(|problem| problem.text).collect()
    }
}

/// Where a setting was said, its name, its text and what is to be said of it.
fn sentence(setting: &Setting, text: &str, what: &str) -> String {
    // A certificate in the settings would hide what is said of it.
    const SHOWN_CHARS_MAX: usize = 200;
    let place = setting.place();
    if setting.key.is_secret() {
        return format!("{place}: {what}");
    }
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{place}={}…: {what}", text.get(..end).unwrap_or("")),
        None => format!("{place}={text}: {what}"),
    }
}

/// The texts of all settings while they are read, and what was found on the way.
pub(super) struct Gathered {
    /// One for each of [`KEYS`], in that order; behind them those of single listeners.
    pub(super) settings: Vec<Setting>,
    pub(super) problems: Vec<Problem>,
    pub(super) notices: Vec<String>,
    /// Settings without effect: their reason, and where each was said.
    idle: BTreeMap<&'static str, Vec<String>>,
}

impl Gathered {
    pub(super) fn new() -> Self {
        let settings = KEYS.iter().map(|key| Setting {
            key,
            listener: None,
            name: Cow::Borrowed(key.name),
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

    /// Without a file somebody tries the broker out, TLS too.
    fn try_out(&mut self) {
        if let Some(listeners) = self.settings.iter_mut().find(|setting| setting.key.name == "listeners") {
            listeners.text = Some(LISTENERS_WITHOUT_FILE.into());
        }
    }

    fn file(&mut self, name: &str, text: &str) {
        for entry in self.entries(name, text) {
            self.set(&entry.key, &entry.value, Source::File(name.into(), entry.line));
        }
    }

    /// What a file says; entries that cannot be read are problems.
    pub(super) fn entries(&mut self, name: &str, text: &str) -> Vec<Property> {
        let read = properties::parse(text).into_iter().filter_map(|entry| {
            entry
                .map_err(|bad| {
                    let text = format!("{name}:{}: {}", bad.line, bad.reason);
                    self.problems
                        .push(Problem::at(&Source::File(name.into(), bad.line), text));
                })
                .ok()
        });
        read.collect()
    }

    /// The text of each setting. One that is not allowed is a problem, and read as the default, so that what is wrong between other settings
    /// is said as well.
    pub(super) fn texts(&mut self) -> Vec<Option<String>> {
        let Self { settings, problems, .. } = self;
        let read = settings.iter().map(|setting| {
            let default = || setting.key.default.text().map(str::to_owned);
            match &setting.text {
                Some(text) if setting.key.accepts(text) => Some(text.clone()),
                Some(text) => {
                    let wrong = format!("allowed: {}", setting.key.allowed());
                    problems.push(Problem::of(setting, text, &wrong));
                    default()
                }
                None => default(),
            }
        });
        read.collect()
    }

    fn environment(&mut self, variables: &[(String, String)]) {
        for (name, value) in variables {
            if !name.starts_with("SKERRY_") || OURS.contains(&name.as_str()) {
                continue;
            }
            let of_all = || {
                KEYS.iter()
                    .find(|key| key.variable() == *name)
                    .map(|key| key.name.to_owned())
            };
            match of_all().or_else(|| listener_setting(name)) {
                Some(key) => self.set(&key, value, Source::Environment(name.clone())),
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
    pub(super) fn set(&mut self, name: &str, text: &str, source: Source) {
        if let Some(setting) = self.position(name).and_then(|at| self.settings.get_mut(at)) {
            if let (Source::File(file, first), Source::File(_, line)) = (&setting.source, &source) {
                self.notices.push(format!(
                    "{file}:{line}: {name} was already set on line {first}; this line counts"
                ));
            }
            setting.text = Some(text.trim().to_owned());
            setting.source = source;
        } else if let Some(why) = idle_reason(name) {
            let place = match &source {
                Source::File(_, line) => format!("{name} (line {line})"),
                _ => format!("{name} ({source})"),
            };
            self.idle.entry(why).or_default().push(place);
        } else {
            let (prefix, bare) = of_listener(name).map_or((String::new(), name), |(listener, bare)| {
                (format!("{LISTENER_PREFIX}{listener}."), bare)
            });
            let known = KEYS
                .iter()
                .map(|key| key.name)
                .chain(no_effect::all().map(|(name, _)| name));
            let near = near(bare, known).replace("did you mean ", &format!("did you mean {prefix}"));
            let place = match &source {
                Source::Override => "--override ".into(),
                other => format!("{other}: "),
            };
            // What is misspelled may be a password's name.
            let text = match ["password", "secret", "key"].iter().any(|word| name.contains(word)) {
                true => String::new(),
                false => format!("={}", text.trim()),
            };
            let text = format!("{place}{name}{text}: unknown setting{near}");
            self.problems.push(Problem::at(&source, text));
        }
    }

    /// The place of the setting called `name`; one of a single listener gets its place when it is first named.
    fn position(&mut self, name: &str) -> Option<usize> {
        if let Some(at) = keys::position(name) {
            return Some(at);
        }
        let (listener, bare) = of_listener(name)?;
        let key = KEYS.iter().find(|key| key.name == bare && key.is_per_listener())?;
        let listener = listener.to_ascii_lowercase();
        let known = |setting: &Setting| setting.key.name == bare && setting.listener.as_deref() == Some(&listener);
        if let Some(at) = self.settings.iter().position(known) {
            return Some(at);
        }
        self.settings.push(Setting {
            key,
            name: Cow::Owned(format!("{LISTENER_PREFIX}{listener}.{bare}")),
            listener: Some(listener),
            text: None,
            source: Source::Default,
        });
        Some(self.settings.len() - 1)
    }
}

/// Listener and name of a setting of one listener. Names of listeners may have dots, so the known names decide.
fn of_listener(name: &str) -> Option<(&str, &str)> {
    let rest = name.strip_prefix(LISTENER_PREFIX)?;
    let ssl = rest.find(".ssl.").map(|dot| (dot, dot + 1));
    let (end, begin) = ssl.or_else(|| rest.find('.').map(|dot| (dot, dot + 1)))?;
    Some((rest.get(..end)?, rest.get(begin..)?))
}

/// Why a setting that is none of [`KEYS`] has no effect; `None` for one that nobody knows.
fn idle_reason(name: &str) -> Option<&'static str> {
    match of_listener(name) {
        Some((_, bare)) if bare.starts_with("ssl.") => no_effect::reason(bare),
        Some((_, bare)) => Some(no_effect::listener_reason(bare)),
        None => no_effect::reason(name),
    }
}

/// The setting of one listener that a variable names. A listener's dots have become `_` in it, and are taken for such.
fn listener_setting(variable: &str) -> Option<String> {
    let rest = variable.strip_prefix(LISTENER_VARIABLE_PREFIX)?;
    KEYS.iter().filter(|key| key.is_per_listener()).find_map(|key| {
        let own = key.variable();
        let listener = rest.strip_suffix(own.strip_prefix("SKERRY")?)?;
        let listener = listener.to_ascii_lowercase();
        (!listener.is_empty()).then(|| format!("{LISTENER_PREFIX}{listener}.{}", key.name))
    })
}

/// `listeners` when there is neither a file nor another word on it.
const LISTENERS_WITHOUT_FILE: &str = "PLAINTEXT://127.0.0.1:9092,SSL://127.0.0.1:9093";

/// Variables that begin as ours do but belong to the command line.
const OURS: &[&str] = &["SKERRY_BOOTSTRAP_SERVER", "SKERRY_COMMAND_CONFIG", "SKERRY_LOG_LEVEL"];

/// `; did you mean …?` for a name at most a few slips away.
pub(super) fn near<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
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

/// The largest pool of buffers: half of what one allocation may have, which is 1 GiB for a processor of 32 bits.
const POOL_BYTES_MAX: u64 = isize::MAX as u64 / 2;

/// What is wrong with a pool that no memory could hold, however much there is. Never so on a processor of 64 bits.
fn beyond_addresses(count: u32, bytes: u64, bytes_max: u64) -> Option<String> {
    (u64::from(count).saturating_mul(bytes) > bytes_max).then(|| {
        format!(
            "allowed: at most {} of {} each, as such a pool has {} at most on this processor",
            bytes_max.checked_div(bytes).unwrap_or(0),
            Bytes(bytes),
            Bytes(bytes_max)
        )
    })
}

/// Takes the settings together. `None` when something needed is missing; what is wrong is added to `problems`.
fn assemble(
    inputs: &Inputs<'_>,
    mut settings: Vec<Setting>,
    texts: &[Option<String>],
    s: &Settings,
    problems: &mut Vec<Problem>,
    remarks: &mut Vec<String>,
) -> Option<Config> {
    let mut refuse = |name: &str, text: &str, wrong: &str| {
        if let Some(setting) = settings.iter().find(|setting| setting.name == name) {
            problems.push(Problem::of(setting, text, wrong));
        }
    };

    let listener_texts = listeners::Texts {
        listeners: &s.listeners,
        advertised: s.advertised_listeners.as_deref(),
        map: &s.security_map,
        controllers: s.controller_listener_names.as_deref(),
    };
    let mut listeners = match listeners::read(&listener_texts, inputs.ipv6, inputs.resolve) {
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
    let small = u64::from(s.limit_small_buffer_bytes).saturating_mul(2);
    for (name, count, bytes) in [
        (
            "skerry.limits.large.buffers",
            s.limit_large_buffers,
            request_bytes_max.into(),
        ),
        ("skerry.limits.small.buffers", s.limit_small_buffers, small),
    ] {
        if let Some(wrong) = beyond_addresses(count, bytes, POOL_BYTES_MAX) {
            refuse(name, &count.to_string(), &wrong);
        }
    }

    for listener in listeners
        .iter_mut()
        .filter(|listener| listener.protocol == Protocol::Ssl)
    {
        let own = ListenerSettings::of(&listener.name, &settings);
        let Some(values) = own.read(texts) else { continue };
        let development = inputs
            .file
            .is_none()
            .then(|| data_dir.as_deref().unwrap_or(Path::new("")));
        match tls::read(&values, development, &|key| own.place(key)) {
            Ok((read, told)) => {
                remarks.extend(told.iter().filter_map(|remark| own.sentence(remark)));
                listener.tls = Some(Box::new(read));
            }
            Err(wrong) => problems.extend(wrong.iter().filter_map(|remark| own.problem(remark))),
        }
    }
    // What two listeners share is wrong, or told, once.
    remarks.dedup();
    problems.dedup_by(|a, b| a.text == b.text);
    for setting in &settings {
        let Some(name) = &setting.listener else { continue };
        if !listeners
            .iter()
            .any(|listener| listener.name.eq_ignore_ascii_case(name))
        {
            remarks.push(format!(
                "{}: listeners has none called {}, so it has no effect",
                setting.place(),
                name.to_ascii_uppercase()
            ));
        }
    }
    for setting in settings.iter_mut().filter(|setting| setting.key.is_secret()) {
        setting.text = setting.text.as_ref().map(|_| Password::SHOWN.to_owned());
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
        tls: TlsConfig {
            provider: s.tls_provider,
            handshake_timeout: s.tls_handshake_timeout,
            tickets: s.tls_tickets as u8,
            ticket_lifetime: s.tls_ticket_lifetime,
            penalty_max: s.tls_penalty_max,
            record_buffers: s.limit_record_buffers,
            handshakes: s.limit_handshakes,
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
        metrics_listener: s.metrics_listener,
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

/// The settings as one listener has them: its own go before those of all.
pub(super) struct ListenerSettings<'a> {
    settings: &'a [Setting],
    /// For each of [`KEYS`], the place of the setting that counts.
    places: Vec<usize>,
}

impl<'a> ListenerSettings<'a> {
    /// Those of the listener called so; where nobody has that name, those of all.
    pub(super) fn of(listener: &str, settings: &'a [Setting]) -> Self {
        let own = |key: &Key| {
            settings.iter().position(|setting| {
                let theirs = setting.listener.as_deref();
                setting.key.name == key.name && theirs.is_some_and(|theirs| theirs.eq_ignore_ascii_case(listener))
            })
        };
        let places = KEYS.iter().enumerate().map(|(at, key)| own(key).unwrap_or(at));
        Self {
            settings,
            places: places.collect(),
        }
    }

    fn setting(&self, key: &str) -> Option<&'a Setting> {
        self.settings.get(*self.places.get(keys::position(key)?)?)
    }

    /// Where a setting was said, and its name.
    pub(super) fn place(&self, key: &str) -> String {
        self.setting(key).map_or_else(String::new, Setting::place)
    }

    /// What is to be said of a setting.
    pub(super) fn sentence(&self, remark: &Remark) -> Option<String> {
        let setting = self.setting(remark.key)?;
        let text = match remark.part.as_str() {
            "" => setting.text.as_deref().unwrap_or(""),
            part => part,
        };
        Some(sentence(setting, text, &remark.why))
    }

    /// The same of something wrong.
    pub(super) fn problem(&self, remark: &Remark) -> Option<Problem> {
        Some(Problem::at(&self.setting(remark.key)?.source, self.sentence(remark)?))
    }

    pub(super) fn read(&self, texts: &[Option<String>]) -> Option<Settings> {
        let text = |at: &usize| texts.get(*at).and_then(Option::as_deref);
        Settings::read(self.places.iter().map(text))
    }
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
    fn a_pool_that_a_processor_of_32_bits_cannot_address_is_refused() {
        let gib = 1 << 30;
        assert_eq!(beyond_addresses(64, 16 << 20, gib), None);
        assert_eq!(
            beyond_addresses(65, 16 << 20, gib).unwrap(),
            "allowed: at most 64 of 16.0 MiB each, as such a pool has 1.0 GiB at most on this processor"
        );
        let most = "socket.request.max.bytes=2147483647\nskerry.limits.large.buffers=1024\n\
            skerry.limits.small.buffers=65535\nskerry.limits.small.buffer.bytes=1048576\n";
        if size_of::<usize>() == 4 {
            assert_eq!(problems(most).len(), 2);
        } else {
            loaded(most);
        }
    }

    #[test]
    fn without_a_file_tls_can_be_tried_too() {
        let none = |overrides: &[String]| {
            let inputs = Inputs {
                file: None,
                ..inputs("", &[], overrides)
            };
            let config = load(&inputs).unwrap().config;
            let bind = config.listeners.iter().map(|l| l.bind.to_string());
            bind.collect::<Vec<_>>()
        };
        assert_eq!(none(&[]), ["127.0.0.1:9092", "127.0.0.1:9093"]);
        assert_eq!(none(&["listeners=PLAINTEXT://127.0.0.1:1".into()]), ["127.0.0.1:1"]);
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
                    what.is.this=1\nlog.dirs=/a,/b\nlisteners=SASL_SSL://:9093\nbad=\\u12\n";
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
                "server.properties:7: listeners=SASL_SSL://:9093: SASL_SSL is not in this release, which speaks PLAINTEXT and SSL",
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

    const KEYSTORE: &str = "listeners=SSL://127.0.0.1:9093\nssl.keystore.location=/k.p12\n";

    fn tls_of(loaded: &Loaded, listener: usize) -> &super::super::ListenerTls {
        loaded.config.listeners[listener].tls.as_deref().unwrap()
    }

    #[test]
    fn a_listener_s_own_tls_goes_before_that_of_all() {
        let file = "listeners=INSIDE://127.0.0.1:1,OUT://127.0.0.1:2,PLAINTEXT://127.0.0.1:3\n\
            listener.security.protocol.map=INSIDE:SSL,OUT:SSL,PLAINTEXT:PLAINTEXT\n\
            ssl.keystore.location=/all.p12\nssl.keystore.password=sesame\nssl.truststore.location=/ca.pem\n\
            listener.name.inside.ssl.keystore.location=/inside.jks\nlistener.name.inside.ssl.client.auth=required\n\
            listener.name.gone.ssl.client.auth=required\n";
        let environment = [(
            "SKERRY_LISTENER_NAME_INSIDE_SSL_KEYSTORE_PASSWORD".to_owned(),
            "open".to_owned(),
        )];
        let overrides = ["listener.name.out.ssl.enabled.protocols=TLSv1.3".to_owned()];
        let loaded = load(&inputs(file, &environment, &overrides)).unwrap();
        let file_of = |listener| match &tls_of(&loaded, listener).keystore {
            tls::Keystore::File { file, .. } => file.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(file_of(0).path, PathBuf::from("/inside.jks"));
        assert_eq!(file_of(0).password.unwrap().reveal(), "open");
        assert_eq!(
            file_of(0).place,
            "server.properties:6: listener.name.inside.ssl.keystore.location=/inside.jks"
        );
        assert_eq!(tls_of(&loaded, 0).client_auth, super::super::ClientAuth::Required);
        assert_eq!(file_of(1).path, PathBuf::from("/all.p12"));
        assert_eq!(file_of(1).password.unwrap().reveal(), "sesame");
        assert_eq!(tls_of(&loaded, 1).client_auth, super::super::ClientAuth::None);
        assert_eq!(tls_of(&loaded, 1).versions, [skerry_tls::suite::Version::Tls13]);
        assert_eq!(tls_of(&loaded, 1).suites.len(), 3);
        assert_eq!(tls_of(&loaded, 0).suites.len(), 9);
        assert_eq!(loaded.config.listeners[2].tls, None);
        assert_eq!(
            loaded.notices,
            [
                "server.properties:8: listener.name.gone.ssl.client.auth: listeners has none called GONE, so it has no effect"
            ]
        );
        let own = loaded.config.settings.last().unwrap();
        assert_eq!(own.name, "listener.name.out.ssl.enabled.protocols");
        assert_eq!(own.variable(), "SKERRY_LISTENER_NAME_OUT_SSL_ENABLED_PROTOCOLS");
    }

    #[test]
    fn secrets_are_shown_to_nobody() {
        let file = format!(
            "{KEYSTORE}ssl.keystore.password=sesame-1\nssl.key.password=sesame-2\nlistener.name.ssl.ssl.truststore.password=sesame-3\n"
        );
        let loaded = loaded(&file);
        assert!(!format!("{loaded:?}").contains("sesame"), "{loaded:?}");
        let shown: Vec<_> = loaded
            .config
            .settings
            .iter()
            .filter(|s| s.text.as_deref() == Some("[hidden]"))
            .collect();
        assert_eq!(shown.len(), 3);
        for file in [
            "ssl.keystore.pasword=sesame\n",
            "listener.name.a.ssl.keystore.key.x=sesame\n",
        ] {
            let said = problems(file).join("\n");
            assert!(!said.contains("sesame"), "{said}");
        }
        assert_eq!(
            problems("listener.name.a.ssl.keystore.pasword=sesame\n"),
            [
                "server.properties:1: listener.name.a.ssl.keystore.pasword: unknown setting; did you mean listener.name.a.ssl.keystore.password?"
            ]
        );
    }

    #[test]
    fn what_tls_lacks_is_said() {
        let ssl = "listeners=SSL://127.0.0.1:9093\n";
        for (more, wanted) in [
            (
                "",
                "ssl.keystore.location=: a listener that speaks SSL needs a private key and a certificate: set this, or ssl.keystore.key and \
                 ssl.keystore.certificate.chain",
            ),
            (
                "ssl.keystore.key=K\n",
                "server.properties:2: ssl.keystore.key: a private key without a certificate: set ssl.keystore.certificate.chain too",
            ),
            (
                "ssl.keystore.certificate.chain=C\n",
                "server.properties:2: ssl.keystore.certificate.chain=C: a certificate without a private key: set ssl.keystore.key too",
            ),
            (
                "ssl.keystore.location=/k\nssl.keystore.key=K\nssl.keystore.certificate.chain=C\n",
                "server.properties:2: ssl.keystore.location=/k: there is also ssl.keystore.key or ssl.keystore.certificate.chain: \
                 a keystore is a file or in the settings, not both",
            ),
            (
                "ssl.keystore.location=/k\nssl.client.auth=required\n",
                "server.properties:3: ssl.client.auth=required: it needs the CAs that sign the clients' certificates: \
                 ssl.truststore.location or ssl.truststore.certificates",
            ),
            (
                "ssl.keystore.location=/k\nssl.truststore.location=/t\nssl.truststore.certificates=C\n",
                "server.properties:3: ssl.truststore.location=/t: there is also ssl.truststore.certificates: \
                 a truststore is a file or in the settings, not both",
            ),
            (
                "ssl.keystore.location=/k\nssl.client.auth=maybe\n",
                "server.properties:3: ssl.client.auth=maybe: allowed: none | requested | required",
            ),
            (
                "ssl.keystore.location=/k\nssl.enabled.protocols=TLSv1.3,TLS1.2\n",
                "server.properties:3: ssl.enabled.protocols=TLS1.2: allowed: TLSv1.2, TLSv1.3",
            ),
            (
                "ssl.keystore.location=/k\nssl.enabled.protocols=TLSv1.1\n",
                "server.properties:3: ssl.enabled.protocols=TLSv1.1: none of these is spoken here: allowed: TLSv1.2, TLSv1.3",
            ),
            (
                "ssl.keystore.location=/k\nssl.cipher.suites=TLS_AES_128_GCM_SHA257\n",
                "server.properties:3: ssl.cipher.suites=TLS_AES_128_GCM_SHA257: there is no such suite; did you mean TLS_AES_128_GCM_SHA256?",
            ),
            (
                "ssl.keystore.location=/k\nssl.enabled.protocols=TLSv1.2\nssl.cipher.suites=TLS_AES_128_GCM_SHA256\n",
                "server.properties:4: ssl.cipher.suites=TLS_AES_128_GCM_SHA256: none of these is spoken here in any of \
                 ssl.enabled.protocols; skerry config lists those that are",
            ),
            (
                "ssl.keystore.location=/k\nssl.principal.mapping.rules=RULE:x\n",
                "server.properties:3: ssl.principal.mapping.rules=RULE:x: allowed: RULE:pattern/replacement/, then L or U or nothing, \
                 or DEFAULT; not RULE:x",
            ),
        ] {
            assert_eq!(problems(&format!("{ssl}{more}")), [wanted]);
        }
    }

    #[test]
    fn a_kafka_file_s_suites_and_versions_are_taken_as_far_as_they_are_spoken() {
        let file = format!(
            "{KEYSTORE}ssl.enabled.protocols=TLSv1.3, TLSv1.2,TLSv1.1\n\
             ssl.cipher.suites=SSL_ECDHE_RSA_WITH_AES_256_GCM_SHA384,TLS_DHE_RSA_WITH_AES_256_CBC_SHA256\n\
             ssl.protocol=TLSv1.3\nssl.endpoint.identification.algorithm=\nlistener.name.ssl.ssl.provider=x\n\
             listener.name.ssl.plain.sasl.jaas.config=x\n"
        );
        let loaded = loaded(&file);
        let names: Vec<_> = tls_of(&loaded, 0).suites.iter().map(|suite| suite.name()).collect();
        assert_eq!(names, ["TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"]);
        assert_eq!(
            loaded.notices,
            [
                "server.properties:3: ssl.enabled.protocols=TLSv1.1: it is broken, and not spoken here",
                "server.properties:4: ssl.cipher.suites=TLS_DHE_RSA_WITH_AES_256_CBC_SHA256: it is not spoken here, and left out",
                "server.properties:4: ssl.cipher.suites=SSL_ECDHE_RSA_WITH_AES_256_GCM_SHA384,TLS_DHE_RSA_WITH_AES_256_CBC_SHA256: \
                 none of these is for TLSv1.3, which is therefore not spoken",
                "ssl.protocol (line 5), listener.name.ssl.ssl.provider (line 7) have no effect: TLS is the broker's own, not Java's",
                "ssl.endpoint.identification.algorithm (line 6) has no effect: the broker checks names in no certificate: \
                 it makes no connections of its own",
                "listener.name.ssl.plain.sasl.jaas.config (line 8) has no effect: there is no SASL in this release",
            ]
        );
        let empty = format!("{KEYSTORE}ssl.cipher.suites=\n");
        assert_eq!(tls_of(&super::tests::loaded(&empty), 0).suites.len(), 9);
    }

    #[test]
    fn in_line_pem_is_one_text() {
        let file = "listeners=SSL://127.0.0.1:9093\nssl.keystore.type=PEM\n\
                    ssl.keystore.key=-----BEGIN PRIVATE KEY----- \\\n  AAAA \\\n -----END PRIVATE KEY-----\n\
                    ssl.keystore.certificate.chain=-----BEGIN CERTIFICATE-----\\nBBBB\\n-----END CERTIFICATE-----\n";
        let loaded = loaded(file);
        let tls::Keystore::Inline { text, place, .. } = &tls_of(&loaded, 0).keystore else {
            panic!()
        };
        assert_eq!(
            text.reveal(),
            "-----BEGIN PRIVATE KEY----- AAAA -----END PRIVATE KEY-----\n-----BEGIN CERTIFICATE-----\nBBBB\n-----END CERTIFICATE-----"
        );
        assert_eq!(place, "server.properties:3: ssl.keystore.key");
    }

    #[test]
    fn without_a_file_certificates_are_made() {
        let overrides = ["listeners=SSL://127.0.0.1:0".to_owned()];
        let bare = Inputs {
            file: None,
            ..inputs("", &[], &overrides)
        };
        assert_eq!(
            tls_of(&load(&bare).unwrap(), 0).keystore,
            tls::Keystore::Development("/state/skerry".into())
        );
    }
}
