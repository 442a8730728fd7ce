//! Every setting, declared once: name, type, default, range, what it does.
//!
//! From this table come the typed [`Settings`], the checks with their messages, the names of the environment variables, the
//! listing of `skerry config` and the table in the documentation.

use std::net::SocketAddr;

use skerry_core::time::Millis;

use super::value::{
    CleanupPolicy, ClientAuth, CompressionType, Flush, IoUring, List, Password, Range, Read, TimestampType,
    TlsProvider, Value,
};

/// One setting.
#[derive(Debug)]
pub struct Key {
    /// Its name in `server.properties`.
    pub name: &'static str,
    /// The kind of value.
    pub type_name: &'static str,
    /// What it is when nothing sets it.
    pub default: Default,
    /// Bounds of a number.
    pub range: Range,
    /// The name that topics have for it, when it is their default.
    pub topic: Option<&'static str>,
    /// What it does, in one or two sentences.
    pub doc: &'static str,
    accepts: fn(&str, Range) -> bool,
    allowed: fn(Range) -> String,
}

/// What a setting is when nothing sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Default {
    /// This text.
    Text(&'static str),
    /// No text; in words, what happens then.
    Words(&'static str),
}

impl Default {
    /// The text, when there is one.
    #[must_use]
    pub const fn text(self) -> Option<&'static str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Words(_) => None,
        }
    }
}

impl Key {
    /// Whether trimmed `text` is a value for this setting.
    #[must_use]
    pub fn accepts(&self, text: &str) -> bool {
        (self.accepts)(text, self.range)
    }

    /// What may be written, in words.
    #[must_use]
    pub fn allowed(&self) -> String {
        (self.allowed)(self.range)
    }

    /// Whether its text is shown to nobody.
    #[must_use]
    pub fn is_secret(&self) -> bool {
        self.type_name == Password::TYPE
    }

    /// Whether each listener may have its own, as `listener.name.<listener>.` and this name.
    #[must_use]
    pub fn is_per_listener(&self) -> bool {
        self.name.starts_with("ssl.")
    }

    /// The environment variable that sets it: `SKERRY_` and the name in upper case with `_` for `.`; the `skerry.` of our
    /// own settings is not said twice.
    #[must_use]
    pub fn variable(&self) -> String {
        let name = self.name.strip_prefix("skerry.").unwrap_or(self.name);
        format!("SKERRY_{}", name.to_ascii_uppercase().replace('.', "_"))
    }
}

/// The place of the setting called `name` in [`KEYS`].
#[must_use]
pub fn position(name: &str) -> Option<usize> {
    KEYS.iter().position(|key| key.name == name)
}

const fn text(text: &'static str) -> Default {
    Default::Text(text)
}

const fn words(words: &'static str) -> Default {
    Default::Words(words)
}

const fn from(min: i64, max: i64) -> Range {
    Range { min, max }
}

/// The greatest count or size that Kafka's 32-bit settings can say.
const INT: i64 = i32::MAX as i64;
/// The greatest of its 64-bit ones.
const LONG: i64 = i64::MAX;
const ANY: Range = Range::NONE;

macro_rules! settings {
    ($($field:ident: $ty:ty => $name:literal $(for $topic:literal)?, $default:expr, $range:expr, $doc:literal;)*) => {
        /// The value of each setting by its type, before the settings are taken together into a
        /// [`Config`](super::Config).
        #[derive(Clone, Debug)]
        pub struct Settings {
            $(#[doc = concat!("`", $name, "`. ", $doc)] pub $field: $ty,)*
        }

        /// Every setting that does something.
        pub static KEYS: &[Key] = &[$(Key {
            name: $name,
            type_name: <$ty as Value>::TYPE,
            default: $default,
            range: $range,
            topic: topic!($($topic)?),
            doc: $doc,
            accepts: |text, range| <$ty as Value>::parse(text, range).is_some(),
            allowed: <$ty as Value>::allowed,
        },)*];

        impl Settings {
            /// Reads one text for each of [`KEYS`], in that order. `None` when a text is not allowed, or a setting that needs
            /// one has none.
            #[must_use]
            pub fn read<'a>(mut texts: impl Iterator<Item = Option<&'a str>>) -> Option<Self> {
                $(let $field = match texts.next()? {
                    Some(text) => <$ty as Value>::parse(text, $range)?,
                    None => <$ty as Value>::absent()?,
                };)*
                Some(Self { $($field,)* })
            }
        }
    };
}

macro_rules! topic {
    () => {
        None
    };
    ($topic:literal) => {
        Some($topic)
    };
}

settings! {
    // Where clients connect.
    listeners: String => "listeners", text("PLAINTEXT://127.0.0.1:9092"), ANY,
        "Where clients connect: `NAME://host:port`, separated by commas. No host, or 0.0.0.0, is every address of the machine; an IPv6 address is written in brackets; port 0 takes any free port. Without a file also SSL://127.0.0.1:9093, with certificates made for trying it out.";
    advertised_listeners: Option<String> => "advertised.listeners", words("the address that the client connected to"), ANY,
        "What clients are told to connect to, listener by listener.";
    security_map: String => "listener.security.protocol.map",
        text("PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL"), ANY,
        "What is spoken on the listener of each name: PLAINTEXT or SSL.";
    controller_listener_names: Option<String> => "controller.listener.names", words("none"), ANY,
        "Listeners of these names are left out: there is no controller here. This lets a Kafka file of a combined node be used as it is.";
    max_connections: u32 => "max.connections", text("1024"), from(1, 65_535),
        "Connections at once, on all listeners together. When full, a new one is closed at once.";
    connections_max_idle_ms: i64 => "connections.max.idle.ms", text("600000"), from(-1, LONG),
        "A connection without a request for this long is closed; -1 never closes one.";
    socket_request_max_bytes: Option<u32> => "socket.request.max.bytes", words("16 MiB, or twice message.max.bytes"), from(1024, INT),
        "The largest request. A larger one closes its connection. Each of `skerry.limits.large.buffers` has this size; what of it a request did not touch takes no memory, and what it did is given back after a while.";
    fetch_max_bytes: u32 => "fetch.max.bytes", text("57671680"), from(1024, INT),
        "The largest fetch reply, whatever the client asks for.";

    // TLS. Each of these may be set for one listener: listener.name.<listener>.ssl.….
    ssl_keystore_location: Option<String> => "ssl.keystore.location", words("none"), ANY,
        "The file with the broker's private key and certificate chain: JKS, JCEKS, PKCS#12 or PEM, seen from its bytes. It is read again on SIGHUP and when it changes.";
    ssl_keystore_type: Option<String> => "ssl.keystore.type", words("seen from the bytes"), ANY,
        "What the keystore is said to be. It is read as what it is; a difference is told.";
    ssl_keystore_password: Option<Password> => "ssl.keystore.password", words("none"), ANY,
        "Opens the keystore.";
    ssl_key_password: Option<Password> => "ssl.key.password", words("ssl.keystore.password"), ANY,
        "Opens the private keys in the keystore, or ssl.keystore.key.";
    ssl_keystore_certificate_chain: Option<String> => "ssl.keystore.certificate.chain", words("none"), ANY,
        "The broker's certificate chain itself, PEM, instead of a keystore file.";
    ssl_keystore_key: Option<Password> => "ssl.keystore.key", words("none"), ANY,
        "The broker's private key itself, PEM, beside ssl.keystore.certificate.chain.";
    ssl_truststore_location: Option<String> => "ssl.truststore.location", words("none"), ANY,
        "The file with the certificates of the CAs that clients' certificates are signed by, in any format that a keystore may have.";
    ssl_truststore_type: Option<String> => "ssl.truststore.type", words("seen from the bytes"), ANY,
        "As ssl.keystore.type.";
    ssl_truststore_password: Option<Password> => "ssl.truststore.password", words("none"), ANY,
        "Opens the truststore. JKS can be read without, unchecked.";
    ssl_truststore_certificates: Option<String> => "ssl.truststore.certificates", words("none"), ANY,
        "The certificates of the CAs themselves, PEM, instead of a truststore file.";
    ssl_client_auth: ClientAuth => "ssl.client.auth", text("none"), ANY,
        "Whether clients are asked for a certificate (requested), and refused without one (required).";
    ssl_enabled_protocols: List => "ssl.enabled.protocols", text("TLSv1.2,TLSv1.3"), ANY,
        "The versions that are spoken; older ones than TLSv1.2 never are.";
    ssl_cipher_suites: Option<List> => "ssl.cipher.suites", words("all that are spoken here"), ANY,
        "The cipher suites that are spoken, by their IANA names, which are Java's, the best first. TLS 1.3: TLS_AES_128_GCM_SHA256, TLS_AES_256_GCM_SHA384, TLS_CHACHA20_POLY1305_SHA256. TLS 1.2: TLS_ECDHE_ECDSA_WITH_… and TLS_ECDHE_RSA_WITH_… of the same three.";
    ssl_principal_mapping_rules: String => "ssl.principal.mapping.rules", text("DEFAULT"), ANY,
        "How the subject of a client's certificate becomes the name of its principal: RULE:pattern/replacement/ with L or U behind it or nothing, or DEFAULT; separated by commas, the first that matches.";

    // TLS, of all listeners together.
    tls_provider: TlsProvider => "skerry.tls.provider", text("auto"), ANY,
        "Whose primitives TLS is made of: AWS-LC (fast), Mbed TLS (mbedtls), or the former where the processor suits it (auto).";
    tls_handshake_timeout: Millis => "skerry.tls.handshake.timeout.ms", text("10000"), from(100, 600_000),
        "A TLS connection that is not set up so long after it was accepted is closed.";
    tls_tickets: u32 => "skerry.tls.tickets", text("1"), from(0, 4),
        "Tickets given in each handshake, with which a client comes back without a full one; 0 gives none.";
    tls_ticket_lifetime: Millis => "skerry.tls.ticket.lifetime.ms", text("86400000"), from(60_000, 604_800_000),
        "How long a ticket is good for. The keys that tickets are sealed under change as often, and do not outlive the broker.";
    tls_penalty_max: Millis => "skerry.tls.penalty.max.ms", text("1000"), from(0, 60_000),
        "The longest that a new connection waits unread because handshakes of its address failed in the last 10 s; 0: nobody waits.";
    limit_record_buffers: u32 => "skerry.limits.record.buffers", text("128"), from(2, 65_535),
        "Pairs of buffers for TLS records, one for each TLS connection that is at work, of 97 KiB. When full, further ones wait.";
    limit_handshakes: u32 => "skerry.limits.handshakes", text("64"), from(1, 65_535),
        "TLS handshakes under way at once, each with its buffers. When full, further connections wait unread.";
    metrics_listener: Option<SocketAddr> => "skerry.metrics.listener", words("none"), ANY,
        "Where Prometheus fetches metrics: `GET /metrics` at this IP address and port, without encryption.";

    // Who this is.
    node_id: Option<i32> => "node.id", words("broker.id"), from(0, INT),
        "The number of this broker as clients see it.";
    broker_id: i32 => "broker.id", text("1"), from(0, INT),
        "The older name of `node.id`, which goes before it.";
    broker_rack: Option<String> => "broker.rack", words("none"), ANY,
        "The rack that clients are told.";

    // Topics.
    log_dirs: Option<String> => "log.dirs", words("log.dir"), ANY,
        "The data directory: one path. It is made when it is not there.";
    log_dir: Option<String> => "log.dir", words("skerry under $XDG_STATE_HOME, or under ~/.local/state"), ANY,
        "The older name of `log.dirs`, which goes before it.";
    auto_create_topics: bool => "auto.create.topics.enable", text("true"), ANY,
        "Whether a topic is made when a client first asks for it and allows that.";
    delete_topics: bool => "delete.topic.enable", text("true"), ANY,
        "Whether clients may delete topics.";
    num_partitions: i32 => "num.partitions", text("1"), from(1, INT),
        "Partitions of a topic whose creator names no number.";
    message_max_bytes: u32 => "message.max.bytes" for "max.message.bytes", text("1048588"), from(1, INT),
        "The largest record batch, as it is compressed.";
    message_timestamp_type: TimestampType => "log.message.timestamp.type" for "message.timestamp.type", text("CreateTime"), ANY,
        "Whose time a record bears: the producer's or the broker's.";
    compression_type: CompressionType => "compression.type" for "compression.type", text("producer"), ANY,
        "Told to clients that ask. Batches are kept as the producer sent them, whatever this says.";
    cleanup_policy: CleanupPolicy => "log.cleanup.policy" for "cleanup.policy", text("delete"), ANY,
        "What happens to old records. delete removes segments past the retention; compact refuses records without a key and removes nothing, as this release has no compactor.";

    // Retention and segments.
    retention_ms: Option<i64> => "log.retention.ms" for "retention.ms", words("log.retention.minutes"), from(-1, LONG),
        "How long records are kept; -1 keeps them for ever.";
    retention_minutes: Option<i64> => "log.retention.minutes", words("log.retention.hours"), from(-1, LONG / 60_000),
        "As log.retention.ms, which goes before it.";
    retention_hours: i64 => "log.retention.hours", text("168"), from(-1, LONG / 3_600_000),
        "As log.retention.minutes, which goes before it.";
    retention_bytes: i64 => "log.retention.bytes" for "retention.bytes", text("-1"), from(-1, LONG),
        "Bytes kept of each partition; -1 is no bound.";
    retention_check_interval: Millis => "log.retention.check.interval.ms", text("300000"), from(1, LONG),
        "How often old segments are looked for.";
    segment_bytes: u32 => "log.segment.bytes" for "segment.bytes", text("1073741824"), from(1024, INT),
        "The largest segment file.";
    roll_ms: Option<i64> => "log.roll.ms" for "segment.ms", words("log.roll.hours"), from(1, LONG),
        "The age at which a new segment is begun.";
    roll_hours: i64 => "log.roll.hours", text("168"), from(1, LONG / 3_600_000),
        "As log.roll.ms, which goes before it.";
    index_interval_bytes: u32 => "log.index.interval.bytes" for "index.interval.bytes", text("4096"), from(0, INT),
        "Log bytes between two entries of a segment's index.";

    // The disk.
    flush: Flush => "skerry.flush", text("acks-all"), ANY,
        "What waits for the disk: acks=all (acks-all), acks=1 and offset commits too (every), or nothing, with a flush every log.flush.interval.ms (interval) or none before a clean stop (never).";
    flush_interval: Millis => "log.flush.interval.ms", text("1000"), from(1, LONG),
        "The longest that written records and committed offsets stay unflushed.";
    read: Read => "skerry.read", text("durable"), ANY,
        "How far consumers may read: up to what is on the disk (durable) or what is written (written).";
    checkpoint_bytes: u32 => "skerry.checkpoint.bytes", text("16777216"), from(65_536, INT),
        "Appended bytes of a partition between two checkpoints. After a crash no more than this is read again for each partition.";
    io_uring: IoUring => "skerry.io_uring", text("auto"), ANY,
        "Flushes and cold reads by io_uring where the kernel has it (auto), or by blocking calls (off).";
    test_flush_delay: Millis => "skerry.test.flush.delay.ms", text("0"), from(0, 60_000),
        "For tests only: every flush waits so long before it begins, as if the disk were slow.";

    // Groups.
    group_initial_rebalance_delay: Millis => "group.initial.rebalance.delay.ms", text("3000"), from(0, INT),
        "How long an empty group waits for further members before its first rebalance.";
    group_min_session_timeout: Millis => "group.min.session.timeout.ms", text("6000"), from(1, INT),
        "The shortest session timeout a member may ask for.";
    group_max_session_timeout: Millis => "group.max.session.timeout.ms", text("1800000"), from(1, INT),
        "The longest session timeout a member may ask for.";
    group_max_size: u32 => "group.max.size", text("2147483647"), from(1, INT),
        "Members of one group; `skerry.limits.members` bounds all groups together.";
    offsets_retention_minutes: Option<i64> => "offsets.retention.minutes", words("offsets are kept as long as the topic's data"), from(1, INT),
        "How long an empty group's offsets are kept.";
    offset_metadata_max_bytes: u32 => "offset.metadata.max.bytes", text("4096"), from(0, 32_767),
        "The longest metadata that a client may store with an offset.";

    // Memory, all taken at start.
    inflight_max: u32 => "skerry.inflight.max", text("16"), from(1, 1024),
        "Requests of one connection that may wait for the disk at once; the next is left unread.";
    limit_topics: u32 => "skerry.limits.topics", text("1024"), from(1, 1_000_000),
        "Topics.";
    limit_partitions: u32 => "skerry.limits.partitions", text("4096"), from(1, 1_000_000),
        "Partitions of all topics together.";
    limit_segments: u32 => "skerry.limits.segments", text("16384"), from(2, 10_000_000),
        "Segments of all partitions together.";
    limit_open_files: u32 => "skerry.limits.open.files", text("512"), from(16, 1_000_000),
        "Log files held open at once.";
    limit_producers: u32 => "skerry.limits.producers", text("4096"), from(1, 1_000_000),
        "Idempotent producers remembered, in all partitions together. When full, the longest idle one is forgotten.";
    limit_groups: u32 => "skerry.limits.groups", text("256"), from(1, 100_000),
        "Consumer groups.";
    limit_members: u32 => "skerry.limits.members", text("1024"), from(1, 100_000),
        "Members of all groups together.";
    limit_offsets: u32 => "skerry.limits.offsets", text("16384"), from(1, 10_000_000),
        "Committed offsets of all groups together.";
    limit_group_bytes: u32 => "skerry.limits.group.bytes", text("4194304"), from(65_536, INT),
        "Bytes of names, subscriptions, assignments and offset metadata of all groups together.";
    limit_small_buffers: u32 => "skerry.limits.small.buffers", text("64"), from(2, 65_535),
        "Pairs of small buffers, one for each connection that is at work. When none is free, a connection is left unread.";
    limit_small_buffer_bytes: u32 => "skerry.limits.small.buffer.bytes", text("32768"), from(4096, 1_048_576),
        "Size of one small buffer.";
    limit_large_buffers: u32 => "skerry.limits.large.buffers", text("4"), from(1, 1024),
        "Buffers of socket.request.max.bytes for requests that a small buffer cannot hold, and as many of 2 MiB for replies. When none is free, a connection is left unread.";
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn defaults_are_allowed_by_their_own_keys() {
        assert!(Settings::read(KEYS.iter().map(|key| key.default.text())).is_some());
        for key in KEYS {
            assert!(key.default.text().is_none_or(|text| key.accepts(text)), "{}", key.name);
        }
    }

    #[test]
    fn names_and_variables_are_said_once() {
        let mut names = HashSet::new();
        let mut variables = HashSet::new();
        for key in KEYS {
            assert!(names.insert(key.name), "{}", key.name);
            assert!(variables.insert(key.variable()), "{}", key.variable());
        }
    }

    #[test]
    fn variables_do_not_say_skerry_twice() {
        let variable = |name| position(name).map(|at| KEYS[at].variable());
        assert_eq!(variable("listeners").as_deref(), Some("SKERRY_LISTENERS"));
        assert_eq!(
            variable("log.segment.bytes").as_deref(),
            Some("SKERRY_LOG_SEGMENT_BYTES")
        );
        assert_eq!(variable("skerry.flush").as_deref(), Some("SKERRY_FLUSH"));
        assert_eq!(
            variable("skerry.limits.open.files").as_deref(),
            Some("SKERRY_LIMITS_OPEN_FILES")
        );
    }
}
