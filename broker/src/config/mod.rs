//! What the broker is told at start: Kafka's `server.properties`, the environment and `--override`, made into one typed
//! [`Config`].

pub mod client;
pub mod keys;
mod listeners;
mod load;
pub mod no_effect;
pub mod principal;
mod process;
mod properties;
pub mod tls;
pub mod value;

use std::net::SocketAddr;
use std::path::PathBuf;

use skerry_core::time::Millis;

pub use load::{Inputs, Loaded, Setting, Source, load};
pub use process::{client_from_file, from_process};
pub use tls::{ListenerTls, TlsConfig};
pub use value::{
    CleanupPolicy, ClientAuth, CompressionType, Flush, IoUring, Password, Read, TimestampType, TlsProvider,
};

/// Everything the broker is told at start. Sizes are bytes.
#[derive(Clone, Debug)]
pub struct Config {
    /// Whether a file of settings was named.
    pub from_file: bool,
    /// `node.id`, or `broker.id`.
    pub node_id: i32,
    /// `broker.rack`.
    pub rack: Option<String>,
    /// Where clients connect: at least one.
    pub listeners: Vec<Listener>,
    /// What TLS has in common on all listeners.
    pub tls: TlsConfig,
    /// `log.dirs`: the one data directory. Made when it is not there.
    pub data_dir: PathBuf,
    /// `auto.create.topics.enable`.
    pub auto_create_topics: bool,
    /// `delete.topic.enable`.
    pub delete_topics: bool,
    /// `num.partitions`: partitions of a topic whose creator names no number. At least 1.
    pub num_partitions: i32,
    /// What a topic without its own setting has.
    pub topic: TopicDefaults,
    /// `log.retention.check.interval.ms`.
    pub retention_check_interval: Millis,
    /// `skerry.flush`.
    pub flush: Flush,
    /// `skerry.read`.
    pub read: Read,
    /// `log.flush.interval.ms`: the longest that written bytes stay unflushed.
    pub flush_interval: Millis,
    /// `skerry.checkpoint.bytes`: appended bytes of a partition after which a checkpoint is written.
    pub checkpoint_bytes: u32,
    /// `skerry.io_uring`.
    pub io_uring: IoUring,
    /// `skerry.test.flush.delay.ms`.
    pub test_flush_delay: Millis,
    /// `socket.request.max.bytes`: the largest request; each large buffer has this size.
    pub request_bytes_max: u32,
    /// `fetch.max.bytes`: the largest fetch reply, whatever the client asks.
    pub fetch_bytes_max: u32,
    /// `skerry.metrics.listener`.
    pub metrics_listener: Option<SocketAddr>,
    /// `connections.max.idle.ms`; `None` never closes an idle connection.
    pub connections_max_idle: Option<Millis>,
    /// `skerry.inflight.max`: requests of one connection that may await the disk at once.
    pub inflight_max: u32,
    /// Consumer groups and their offsets.
    pub group: GroupConfig,
    /// How much of everything there may be; taken at start.
    pub limits: Limits,
    /// Every setting as it was said and by whom, in the order of [`keys::KEYS`]; behind them those of single listeners. Secrets are
    /// not among the texts.
    pub settings: Vec<Setting>,
}

impl Config {
    /// The largest reply, file ranges not counted: the longest lists (Metadata of 4,096 partitions, a group of 1,024 members) fit.
    pub const REPLY_BYTES_MAX: u32 = 2 << 20;
}

/// One place where clients connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// The listener's name, upper case as in `listeners`.
    pub name: String,
    /// The address to bind. Port 0 takes any free port.
    pub bind: SocketAddr,
    /// What clients are told to connect to; `None`: the address that the client connected to.
    pub advertised: Option<Advertised>,
    /// What is spoken on it.
    pub protocol: Protocol,
    /// What TLS is set up with: there when `protocol` is [`Protocol::Ssl`].
    pub tls: Option<Box<ListenerTls>>,
}

/// A host and port as clients are told them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advertised {
    /// Host name or address, an IPv6 address without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
}

/// What is spoken on a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Kafka's protocol over plain TCP.
    Plaintext,
    /// Kafka's protocol over TLS.
    Ssl,
}

/// What a topic without its own setting has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicDefaults {
    /// `retention.ms`; −1 keeps for ever.
    pub retention_ms: i64,
    /// `retention.bytes` per partition; −1 is no bound.
    pub retention_bytes: i64,
    /// `segment.bytes`.
    pub segment_bytes: u32,
    /// `segment.ms`: the age at which the active segment is rolled.
    pub segment_ms: i64,
    /// `index.interval.bytes`: log bytes between two index entries.
    pub index_interval_bytes: u32,
    /// `max.message.bytes`: the largest record batch.
    pub max_message_bytes: u32,
    /// `message.timestamp.type`.
    pub timestamp_type: TimestampType,
    /// `cleanup.policy`.
    pub cleanup_policy: CleanupPolicy,
    /// `compression.type`.
    pub compression_type: CompressionType,
}

/// Consumer groups and their offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupConfig {
    /// `group.initial.rebalance.delay.ms`.
    pub initial_rebalance_delay: Millis,
    /// `group.min.session.timeout.ms`.
    pub session_timeout_min: Millis,
    /// `group.max.session.timeout.ms`.
    pub session_timeout_max: Millis,
    /// `group.max.size`: members of one group.
    pub size_max: u32,
    /// `offsets.retention.minutes`; `None` keeps offsets as long as the topic's data.
    pub offsets_retention: Option<Millis>,
    /// `offset.metadata.max.bytes`: the longest metadata string of a commit.
    pub offset_metadata_bytes_max: u32,
}

/// How much of everything there may be. Memory for it is taken at start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `max.connections`.
    pub connections: u32,
    /// `skerry.limits.topics`.
    pub topics: u32,
    /// `skerry.limits.partitions`.
    pub partitions: u32,
    /// `skerry.limits.segments` of all partitions together.
    pub segments: u32,
    /// `skerry.limits.open.files`: log files held open at once.
    pub open_files: u32,
    /// `skerry.limits.producers`: idempotent producers remembered, of all partitions together.
    pub producers: u32,
    /// `skerry.limits.groups`.
    pub groups: u32,
    /// `skerry.limits.members` of all groups together.
    pub members: u32,
    /// `skerry.limits.offsets`: committed offsets of all groups together.
    pub offsets: u32,
    /// `skerry.limits.group.bytes`: names, metadata and assignments of all groups together.
    pub group_bytes: u32,
    /// `skerry.limits.small.buffers`: pairs of small buffers, one for each connection that is at work.
    pub small_buffers: u32,
    /// `skerry.limits.small.buffer.bytes`: size of one small buffer.
    pub small_buffer_bytes: u32,
    /// `skerry.limits.large.buffers`: buffers of `socket.request.max.bytes` for requests, and as many of [`Config::REPLY_BYTES_MAX`] for
    /// replies.
    pub large_buffers: u32,
}
