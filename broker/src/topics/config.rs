//! The settings that a topic may have: Kafka's names, types, defaults and checks, declared once.
//!
//! A topic stores only what was set on it. What is not set comes from the broker's own settings, else from Kafka's default, and
//! DescribeConfigs says which.

use core::fmt::Write as _;

use skerry_core::time::Timestamp;

use crate::config::{CleanupPolicy, CompressionType, TimestampType, TopicDefaults};
use crate::log::LogSettings;

/// The type of a setting, as DescribeConfigs numbers it (KIP-569).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i8)]
pub enum ConfigType {
    /// `true` or `false`.
    Boolean = 1,
    /// Text.
    String = 2,
    /// A 32-bit number.
    Int = 3,
    /// A 64-bit number.
    Long = 5,
    /// A fraction.
    Double = 6,
    /// Texts with commas between them.
    List = 7,
    /// Text that is not told.
    Password = 9,
}

/// Where a setting's value comes from, as DescribeConfigs numbers it (KIP-226).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i8)]
pub enum ConfigSource {
    /// Set on the topic.
    Topic = 1,
    /// Set in the broker's own configuration.
    StaticBroker = 4,
    /// Nobody set it.
    Default = 5,
}

/// The values that a setting may have. All are kept as one `i64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// 0 or 1.
    Boolean,
    /// A 32-bit number of at least this.
    Int(i64),
    /// A 64-bit number of at least this.
    Long(i64),
    /// A fraction from 0 to 1, kept as its bits.
    Ratio,
    /// One of these texts, kept as its place.
    Text(&'static [&'static str]),
    /// The same, of the type list.
    List(&'static [&'static str]),
}

/// A value as it is kept: what it means is its [`ConfigKey`]'s business.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigValue(i64);

/// The longest text of a value.
pub const VALUE_BYTES_MAX: usize = 24;

/// A value as text.
pub type ValueText = heapless::String<VALUE_BYTES_MAX, u8>;

struct Def {
    name: &'static str,
    broker_name: &'static str,
    kind: Kind,
    default: i64,
    doc: &'static str,
    refusal: &'static str,
}

macro_rules! topic_configs {
    ($($key:ident $name:literal $broker_name:literal $kind:expr, $default:expr, $doc:literal;)*) => {
        /// A setting of a topic.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum ConfigKey {
            $(#[doc = concat!("`", $name, "`: ", $doc)] $key,)*
        }

        impl ConfigKey {
            /// Every setting, by name.
            pub const ALL: &'static [Self] = &[$(Self::$key),*];

            const fn def(self) -> Def {
                match self {
                    $(Self::$key => Def {
                        name: $name,
                        broker_name: $broker_name,
                        kind: $kind,
                        default: $default,
                        doc: $doc,
                        refusal: concat!($name, " cannot have this value."),
                    },)*
                }
            }
        }
    };
}

const KEY_COUNT: usize = ConfigKey::ALL.len();
const CLEANUP: &[&str] = &["delete", "compact", "compact,delete", "delete,compact"];
const INT_MAX: i64 = i32::MAX as i64;

topic_configs! {
    CleanupPolicy "cleanup.policy" "log.cleanup.policy" Kind::List(CLEANUP), 0,
        "Whether old segments are removed or the last record of each key is kept.";
    CompressionType "compression.type" "compression.type" Kind::Text(CompressionType::NAMES), 0,
        "Kept for clients that ask. Batches stay as the producer sent them.";
    DeleteRetentionMs "delete.retention.ms" "log.cleaner.delete.retention.ms" Kind::Long(0), 86_400_000,
        "How long tombstones of a compacted topic are kept. Without effect.";
    FileDeleteDelayMs "file.delete.delay.ms" "log.segment.delete.delay.ms" Kind::Long(0), 60_000,
        "How long a removed segment's file is kept. Without effect: files in use stay readable.";
    FlushMessages "flush.messages" "log.flush.interval.messages" Kind::Long(1), i64::MAX,
        "Records between two flushes. Without effect: see skerry.flush.";
    FlushMs "flush.ms" "log.flush.interval.ms" Kind::Long(0), i64::MAX,
        "Time between two flushes. Without effect on one topic: see skerry.flush.";
    IndexIntervalBytes "index.interval.bytes" "log.index.interval.bytes" Kind::Int(0), 4096,
        "Log bytes between two entries of a segment's index.";
    MaxCompactionLagMs "max.compaction.lag.ms" "log.cleaner.max.compaction.lag.ms" Kind::Long(1), i64::MAX,
        "The longest that a record stays uncompacted. Without effect.";
    MaxMessageBytes "max.message.bytes" "message.max.bytes" Kind::Int(0), 1_048_588,
        "The largest record batch, as it is compressed.";
    MessageTimestampAfterMaxMs "message.timestamp.after.max.ms" "log.message.timestamp.after.max.ms" Kind::Long(0), 3_600_000,
        "How far after the broker's time a record's timestamp may be.";
    MessageTimestampBeforeMaxMs "message.timestamp.before.max.ms" "log.message.timestamp.before.max.ms" Kind::Long(0), i64::MAX,
        "How far before the broker's time a record's timestamp may be.";
    MessageTimestampType "message.timestamp.type" "log.message.timestamp.type" Kind::Text(TimestampType::NAMES), 0,
        "Whose time a record bears: the producer's or the broker's.";
    MinCleanableDirtyRatio "min.cleanable.dirty.ratio" "log.cleaner.min.cleanable.ratio" Kind::Ratio, 0.5f64.to_bits() as i64,
        "The share of a log that is uncompacted before it is compacted. Without effect.";
    MinCompactionLagMs "min.compaction.lag.ms" "log.cleaner.min.compaction.lag.ms" Kind::Long(0), 0,
        "The shortest that a record stays uncompacted. Without effect.";
    MinInsyncReplicas "min.insync.replicas" "min.insync.replicas" Kind::Int(1), 1,
        "Replicas that must be in sync for acks=all. Without effect: there is one replica.";
    Preallocate "preallocate" "log.preallocate" Kind::Boolean, 0,
        "Whether a segment's file is made at its full size. Without effect.";
    RetentionBytes "retention.bytes" "log.retention.bytes" Kind::Long(-1), -1,
        "Bytes kept of each partition; -1 is no bound.";
    RetentionMs "retention.ms" "log.retention.ms" Kind::Long(-1), 604_800_000,
        "How long records are kept; -1 keeps them for ever.";
    SegmentBytes "segment.bytes" "log.segment.bytes" Kind::Int(14), 1_073_741_824,
        "The largest segment file.";
    SegmentIndexBytes "segment.index.bytes" "log.index.size.max.bytes" Kind::Int(4), 10_485_760,
        "The largest index file. Without effect: indexes grow with their segments.";
    SegmentJitterMs "segment.jitter.ms" "log.roll.jitter.ms" Kind::Long(0), 0,
        "Spread of segment.ms. Without effect.";
    SegmentMs "segment.ms" "log.roll.ms" Kind::Long(1), 604_800_000,
        "The age at which a new segment is begun.";
    UncleanLeaderElectionEnable "unclean.leader.election.enable" "unclean.leader.election.enable" Kind::Boolean, 0,
        "Whether a replica out of sync may lead. Without effect: there is one replica.";
}

/// Why a setting is refused: always INVALID_CONFIG.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// No topic has a setting of that name.
    Unknown,
    /// The setting cannot have that value.
    Invalid(ConfigKey),
}

impl ConfigKey {
    /// The setting of that name.
    pub fn named(name: &str) -> Result<Self, ConfigError> {
        let known = Self::ALL.iter().find(|key| key.name() == name);
        known.copied().ok_or(ConfigError::Unknown)
    }

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.def().name
    }

    /// The name of the broker's own setting that gives the default.
    #[must_use]
    pub const fn broker_name(self) -> &'static str {
        self.def().broker_name
    }

    /// What it does.
    #[must_use]
    pub const fn documentation(self) -> &'static str {
        self.def().doc
    }

    /// What to tell who gives it a value that it cannot have.
    #[must_use]
    pub const fn refusal(self) -> &'static str {
        self.def().refusal
    }

    /// Its type.
    #[must_use]
    pub const fn config_type(self) -> ConfigType {
        match self.def().kind {
            Kind::Boolean => ConfigType::Boolean,
            Kind::Int(_) => ConfigType::Int,
            Kind::Long(_) => ConfigType::Long,
            Kind::Ratio => ConfigType::Double,
            Kind::Text(_) => ConfigType::String,
            Kind::List(_) => ConfigType::List,
        }
    }

    /// Kafka's default.
    #[must_use]
    pub const fn default(self) -> ConfigValue {
        ConfigValue(self.def().default)
    }

    /// What a topic without its own setting has on this broker.
    #[must_use]
    pub fn broker_default(self, defaults: &TopicDefaults) -> ConfigValue {
        let place = |names: &[&str], name: &str| {
            let place = names.iter().position(|n| *n == name).unwrap_or(0);
            i64::try_from(place).unwrap_or(0)
        };
        ConfigValue(match self {
            Self::CleanupPolicy => place(CLEANUP, defaults.cleanup_policy.name()),
            Self::CompressionType => place(CompressionType::NAMES, defaults.compression_type.name()),
            Self::IndexIntervalBytes => i64::from(defaults.index_interval_bytes),
            Self::MaxMessageBytes => i64::from(defaults.max_message_bytes),
            Self::MessageTimestampType => place(TimestampType::NAMES, defaults.timestamp_type.name()),
            Self::RetentionBytes => defaults.retention_bytes,
            Self::RetentionMs => defaults.retention_ms,
            Self::SegmentBytes => i64::from(defaults.segment_bytes),
            Self::SegmentMs => defaults.segment_ms,
            _ => self.def().default,
        })
    }

    /// Reads a value. Errors: [`ConfigError::Invalid`].
    pub fn parse(self, text: &str) -> Result<ConfigValue, ConfigError> {
        let text = text.trim();
        let value = match self.def().kind {
            Kind::Boolean if text.eq_ignore_ascii_case("true") => Some(1),
            Kind::Boolean if text.eq_ignore_ascii_case("false") => Some(0),
            Kind::Boolean => None,
            Kind::Int(_) | Kind::Long(_) => text.parse().ok(),
            Kind::Ratio => text.parse::<f64>().ok().map(|ratio| ratio.to_bits() as i64),
            Kind::Text(names) => names.iter().position(|n| *n == text).map(|place| place as i64),
            Kind::List(names) => names
                .iter()
                .position(|n| text.split(',').map(str::trim).eq(n.split(',')))
                .map(|place| place as i64),
        };
        value
            .and_then(|value| self.admit(value))
            .ok_or(ConfigError::Invalid(self))
    }

    /// Takes a number that was kept; `None` when this setting cannot have it.
    #[must_use]
    pub fn admit(self, value: i64) -> Option<ConfigValue> {
        let fits = match self.def().kind {
            Kind::Boolean => (0..=1).contains(&value),
            Kind::Int(min) => (min..=INT_MAX).contains(&value),
            Kind::Long(min) => value >= min,
            Kind::Ratio => (0.0..=1.0).contains(&f64::from_bits(value as u64)),
            Kind::Text(names) | Kind::List(names) => usize::try_from(value).is_ok_and(|place| place < names.len()),
        };
        fits.then_some(ConfigValue(value))
    }

    /// Writes a value of this setting as text.
    #[must_use]
    pub fn text(self, value: ConfigValue) -> ValueText {
        let mut text = ValueText::new();
        // The longest are `-9223372036854775808`, `compact,delete` and a fraction of 17 digits and its point and exponent.
        let _ = match self.def().kind {
            Kind::Boolean => write!(text, "{}", value.0 == 1),
            Kind::Int(_) | Kind::Long(_) => write!(text, "{}", value.0),
            Kind::Ratio => write!(text, "{:?}", f64::from_bits(value.0 as u64)),
            Kind::Text(names) | Kind::List(names) => {
                let name = usize::try_from(value.0).ok().and_then(|place| names.get(place));
                write!(text, "{}", name.copied().unwrap_or_default())
            }
        };
        text
    }

    /// A list with `text` added (`IncrementalAlterConfigs` append) or taken away (subtract). Errors: `Invalid` when this is no list,
    /// or nothing or something unknown would be left in it.
    pub fn edit_list(self, value: ConfigValue, text: &str, add: bool) -> Result<ConfigValue, ConfigError> {
        if self.config_type() != ConfigType::List {
            return Err(ConfigError::Invalid(self));
        }
        let kept = self.text(value);
        let named = |item: &&str| text.split(',').any(|t| t.trim() == *item);
        let mut edited = heapless::String::<{ 4 * VALUE_BYTES_MAX }>::new();
        let mut push = |item: &str| {
            let comma = if edited.is_empty() { "" } else { "," };
            write!(edited, "{comma}{item}").map_err(|_| ConfigError::Invalid(self))
        };
        for item in kept.split(',').filter(|item| add || !named(item)) {
            push(item)?;
        }
        if add {
            let new = text
                .split(',')
                .map(str::trim)
                .filter(|t| kept.split(',').all(|k| k != *t));
            for item in new {
                push(item)?;
            }
        }
        self.parse(&edited)
    }
}

/// What is set on one topic. Texts are kept too, so that replies can be written straight out of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicConfig {
    /// Bit `k` says that the setting `k` is set.
    set: u32,
    values: [i64; KEY_COUNT],
    texts: [ValueText; KEY_COUNT],
}

const _: () = assert!(KEY_COUNT <= 32, "one bit for each setting");

impl Default for TopicConfig {
    /// Nothing set.
    fn default() -> Self {
        Self {
            set: 0,
            values: [0; KEY_COUNT],
            texts: [const { ValueText::new() }; KEY_COUNT],
        }
    }
}

impl TopicConfig {
    /// Sets one.
    pub fn set(&mut self, key: ConfigKey, value: ConfigValue) {
        self.put(key, value, key.text(value));
        self.set |= 1 << key as u32;
    }

    /// Unsets one.
    pub fn unset(&mut self, key: ConfigKey) {
        self.put(key, ConfigValue(0), ValueText::new());
        self.set &= !(1 << key as u32);
    }

    fn put(&mut self, key: ConfigKey, value: ConfigValue, text: ValueText) {
        if let (Some(kept), Some(kept_text)) = (self.values.get_mut(key as usize), self.texts.get_mut(key as usize)) {
            *kept = value.0;
            *kept_text = text;
        }
    }

    /// What is set for `key`.
    #[must_use]
    pub fn own(&self, key: ConfigKey) -> Option<ConfigValue> {
        let value = self.values.get(key as usize)?;
        (self.set >> key as u32 & 1 == 1).then_some(ConfigValue(*value))
    }

    /// Everything that is set, by name, as numbers to keep.
    pub fn kept(&self) -> impl Iterator<Item = (ConfigKey, i64)> {
        ConfigKey::ALL
            .iter()
            .filter_map(|key| self.own(*key).map(|value| (*key, value.0)))
    }

    /// The text of what is set for `key`.
    #[must_use]
    pub fn own_text(&self, key: ConfigKey) -> Option<&str> {
        let text = self.texts.get(key as usize)?;
        self.own(key).map(|_| text.as_str())
    }

    fn number(&self, key: ConfigKey, defaults: &TopicDefaults) -> i64 {
        self.own(key).unwrap_or_else(|| key.broker_default(defaults)).0
    }

    /// `max.message.bytes`.
    #[must_use]
    pub fn max_message_bytes(&self, defaults: &TopicDefaults) -> u32 {
        u32::try_from(self.number(ConfigKey::MaxMessageBytes, defaults)).unwrap_or(0)
    }

    /// Earliest and latest timestamp that a record may bear when it is `now`. `None` for any: where the broker's time counts, and
    /// where the broker does not know the time, for its clock is before `floor` and was never set.
    #[must_use]
    pub fn timestamps(&self, defaults: &TopicDefaults, now: Timestamp, floor: Timestamp) -> Option<(i64, i64)> {
        if now < floor || self.timestamp_type(defaults) == TimestampType::LogAppendTime {
            return None;
        }
        let before = self.number(ConfigKey::MessageTimestampBeforeMaxMs, defaults);
        let after = self.number(ConfigKey::MessageTimestampAfterMaxMs, defaults);
        Some((now.0.saturating_sub(before), now.0.saturating_add(after)))
    }

    /// `message.timestamp.type`.
    #[must_use]
    pub fn timestamp_type(&self, defaults: &TopicDefaults) -> TimestampType {
        match self.number(ConfigKey::MessageTimestampType, defaults) {
            0 => TimestampType::CreateTime,
            _ => TimestampType::LogAppendTime,
        }
    }

    /// `cleanup.policy`.
    #[must_use]
    pub fn cleanup_policy(&self, defaults: &TopicDefaults) -> CleanupPolicy {
        match self.number(ConfigKey::CleanupPolicy, defaults) {
            0 => CleanupPolicy::Delete,
            1 => CleanupPolicy::Compact,
            _ => CleanupPolicy::CompactDelete,
        }
    }

    /// What the logs of the topic's partitions obey.
    #[must_use]
    pub fn log_settings(&self, defaults: &TopicDefaults) -> LogSettings {
        let positive = |key| u32::try_from(self.number(key, defaults)).unwrap_or(0);
        LogSettings {
            segment_bytes: positive(ConfigKey::SegmentBytes),
            segment_ms: self.number(ConfigKey::SegmentMs, defaults),
            index_interval_bytes: positive(ConfigKey::IndexIntervalBytes),
            retention_ms: self.number(ConfigKey::RetentionMs, defaults),
            retention_bytes: self.number(ConfigKey::RetentionBytes, defaults),
            timestamp_type: self.timestamp_type(defaults),
            cleanup_policy: self.cleanup_policy(defaults),
        }
    }
}

/// The texts of what a topic has that sets nothing.
pub struct DefaultTexts {
    broker: [ValueText; KEY_COUNT],
    kafka: [ValueText; KEY_COUNT],
}

impl DefaultTexts {
    /// On a broker with these settings.
    #[must_use]
    pub fn new(defaults: &TopicDefaults) -> Self {
        let texts = |value: &dyn Fn(ConfigKey) -> ConfigValue| {
            core::array::from_fn(|at| {
                let key = ConfigKey::ALL.get(at).copied();
                key.map(|key| key.text(value(key))).unwrap_or_default()
            })
        };
        Self {
            broker: texts(&|key| key.broker_default(defaults)),
            kafka: texts(&ConfigKey::default),
        }
    }

    /// The broker's own value for `key`, where it is another one than Kafka's.
    #[must_use]
    pub fn broker(&self, key: ConfigKey) -> Option<&str> {
        let text = self.broker.get(key as usize)?.as_str();
        (text != self.kafka(key)).then_some(text)
    }

    /// Kafka's value for `key`.
    #[must_use]
    pub fn kafka(&self, key: ConfigKey) -> &str {
        self.kafka.get(key as usize).map_or("", ValueText::as_str)
    }

    /// What counts for `key` on a topic, and where it comes from.
    #[must_use]
    pub fn effective<'t>(&'t self, topic: &'t TopicConfig, key: ConfigKey) -> (&'t str, ConfigSource) {
        match (topic.own_text(key), self.broker(key)) {
            (Some(text), _) => (text, ConfigSource::Topic),
            (None, Some(text)) => (text, ConfigSource::StaticBroker),
            (None, None) => (self.kafka(key), ConfigSource::Default),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Config;

    fn defaults(settings: &[(&str, &str)]) -> TopicDefaults {
        Config::with(Path::new("/data"), settings).unwrap().topic
    }

    #[test]
    fn every_default_is_allowed_and_goes_round_as_text() {
        for key in ConfigKey::ALL {
            let value = key.default();
            assert_eq!(key.parse(&key.text(value)), Ok(value), "{}", key.name());
            assert_eq!(key.admit(value.0), Some(value));
            assert_eq!(ConfigKey::named(key.name()), Ok(*key));
        }
        let names: Vec<_> = ConfigKey::ALL.iter().map(|key| key.name()).collect();
        assert!(names.is_sorted(), "by name, and each once");
        assert_eq!(ConfigKey::named("retention"), Err(ConfigError::Unknown));
    }

    #[test]
    fn values_out_of_range_are_refused() {
        let refused = [
            ("cleanup.policy", "keep"),
            ("cleanup.policy", ""),
            ("cleanup.policy", "delete,delete"),
            ("compression.type", "brotli"),
            ("max.message.bytes", "-1"),
            ("max.message.bytes", "2147483648"),
            ("message.timestamp.type", "createtime"),
            ("min.cleanable.dirty.ratio", "1.1"),
            ("min.cleanable.dirty.ratio", "NaN"),
            ("min.insync.replicas", "0"),
            ("preallocate", "yes"),
            ("retention.ms", "-2"),
            ("retention.ms", "1.5"),
            ("retention.ms", "9223372036854775808"),
            ("segment.bytes", "13"),
            ("segment.ms", "0"),
        ];
        for (name, text) in refused {
            let key = ConfigKey::named(name).unwrap();
            assert_eq!(key.parse(text), Err(ConfigError::Invalid(key)), "{name}={text}");
        }
        let taken = [
            ("cleanup.policy", " compact , delete ", "compact,delete"),
            ("cleanup.policy", "delete,compact", "delete,compact"),
            ("max.message.bytes", "2147483647", "2147483647"),
            ("retention.ms", "-1", "-1"),
            ("retention.ms", " 9223372036854775807", "9223372036854775807"),
            ("min.cleanable.dirty.ratio", "1", "1.0"),
            ("preallocate", "TRUE", "true"),
        ];
        for (name, text, kept) in taken {
            let key = ConfigKey::named(name).unwrap();
            assert_eq!(key.text(key.parse(text).unwrap()), kept, "{name}={text}");
        }
    }

    #[test]
    fn a_fraction_of_any_length_has_its_text() {
        let key = ConfigKey::MinCleanableDirtyRatio;
        for bits in [
            f64::MIN_POSITIVE,
            f64::EPSILON,
            0.1 + 0.2,
            1.0 / 3.0,
            5e-324,
            2.225_073_858_507_201e-308,
        ] {
            let value = key.admit(bits.to_bits() as i64).unwrap();
            assert_eq!(key.text(value).parse(), Ok(bits));
        }
    }

    #[test]
    fn sources_are_the_topic_then_the_broker_then_kafka() {
        let key = ConfigKey::RetentionMs;
        let mut topic = TopicConfig::default();
        let set = defaults(&[("log.retention.ms", "5000")]);
        let texts = DefaultTexts::new(&set);
        assert_eq!(texts.effective(&topic, key), ("5000", ConfigSource::StaticBroker));
        let plain = DefaultTexts::new(&defaults(&[]));
        assert_eq!(plain.effective(&topic, key), ("604800000", ConfigSource::Default));
        topic.set(key, key.parse("77").unwrap());
        assert_eq!(texts.effective(&topic, key), ("77", ConfigSource::Topic));
        assert_eq!((texts.broker(key), texts.kafka(key)), (Some("5000"), "604800000"));
        assert_eq!((plain.broker(key), plain.kafka(key)), (None, "604800000"));
        assert_eq!(topic.log_settings(&set).retention_ms, 77);
        assert_eq!(topic.kept().collect::<Vec<_>>(), [(key, 77)]);
        topic.unset(key);
        assert_eq!(texts.effective(&topic, key), ("5000", ConfigSource::StaticBroker));
        assert_eq!(topic, TopicConfig::default());
    }

    #[test]
    fn every_setting_keeps_its_own_place() {
        let mut topic = TopicConfig::default();
        for (at, key) in ConfigKey::ALL.iter().enumerate() {
            topic.set(*key, ConfigValue(at as i64));
        }
        let want: Vec<_> = ConfigKey::ALL.iter().copied().zip(0..).collect();
        assert_eq!(topic.kept().collect::<Vec<_>>(), want);
    }

    #[test]
    fn logs_obey_what_is_set() {
        let broker = defaults(&[]);
        let mut topic = TopicConfig::default();
        assert_eq!(topic.log_settings(&broker), LogSettings::from(&broker));
        for (name, text) in [
            ("cleanup.policy", "delete,compact"),
            ("message.timestamp.type", "LogAppendTime"),
            ("segment.bytes", "4096"),
            ("segment.ms", "10"),
            ("index.interval.bytes", "7"),
            ("retention.bytes", "99"),
            ("max.message.bytes", "555"),
        ] {
            let key = ConfigKey::named(name).unwrap();
            topic.set(key, key.parse(text).unwrap());
        }
        let want = LogSettings {
            segment_bytes: 4096,
            segment_ms: 10,
            index_interval_bytes: 7,
            retention_ms: 604_800_000,
            retention_bytes: 99,
            timestamp_type: TimestampType::LogAppendTime,
            cleanup_policy: CleanupPolicy::CompactDelete,
        };
        assert_eq!(topic.log_settings(&broker), want);
        assert_eq!(topic.max_message_bytes(&broker), 555);
        let (now, floor) = (Timestamp(1000), Timestamp(1000));
        assert_eq!(topic.timestamps(&broker, now, floor), None);
        let plain = TopicConfig::default();
        assert_eq!(
            plain.timestamps(&broker, now, floor),
            Some((1000 - i64::MAX, 3_601_000))
        );
        assert_eq!(plain.timestamps(&broker, now, Timestamp(1001)), None);
    }

    #[test]
    fn lists_are_edited() {
        let key = ConfigKey::CleanupPolicy;
        let delete = key.parse("delete").unwrap();
        let both = key.edit_list(delete, "compact", true).unwrap();
        assert_eq!(key.text(both), "delete,compact");
        assert_eq!(key.edit_list(both, "delete", true), Ok(both));
        let compact = key.edit_list(both, "delete", false).unwrap();
        assert_eq!(key.text(compact), "compact");
        let invalid = Err(ConfigError::Invalid(key));
        assert_eq!(key.edit_list(compact, "compact", false), invalid);
        assert_eq!(key.edit_list(compact, "keep", true), invalid);
        assert_eq!(key.edit_list(compact, &"x,".repeat(500), true), invalid);
        let number = ConfigKey::RetentionMs;
        assert_eq!(
            number.edit_list(number.default(), "1", true),
            Err(ConfigError::Invalid(number))
        );
    }
}
