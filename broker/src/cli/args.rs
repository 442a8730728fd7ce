//! The command line as a person types it: commands, options and their help.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// A Kafka-protocol broker for small machines, and its tools.
#[derive(Debug, Parser)]
#[command(
    name = "skerry",
    version,
    about = "A Kafka-protocol broker for small machines, and tools for any Kafka broker",
    after_help = "Examples:\n  \
        skerry run                                   a broker on 127.0.0.1:9092, over TLS on 9093\n  \
        skerry topics create orders --partitions 3\n  \
        echo hello | skerry produce orders\n  \
        skerry consume orders --from-beginning\n\n\
        Exit status: 0 done, 1 failed, 2 used wrongly.",
    disable_help_subcommand = true,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub struct Cli {
    /// Log to standard error from this level on: error, warn, info, debug or trace
    #[arg(
        long,
        global = true,
        env = "SKERRY_LOG_LEVEL",
        hide_env_values = true,
        value_name = "LEVEL"
    )]
    pub log_level: Option<String>,

    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the broker
    Run(RunArgs),
    /// List, describe, create, delete or alter topics
    #[command(subcommand, visible_alias = "topic", arg_required_else_help = true)]
    Topics(TopicsCommand),
    /// List, describe or delete consumer groups; show or set their offsets
    #[command(subcommand, visible_alias = "group", arg_required_else_help = true)]
    Groups(GroupsCommand),
    /// Send lines of standard input as records
    Produce(ProduceArgs),
    /// Print a topic's records
    Consume(ConsumeArgs),
    /// List the broker's settings
    Config(ConfigArgs),
    /// Print a completion script for a shell
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the version
    Version {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

/// `skerry run`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    skerry run\n  \
    skerry run /etc/skerry/server.properties\n  \
    skerry run server.properties --override listeners=PLAINTEXT://0.0.0.0:9092\n\n\
    FILE is Kafka's server.properties. Every setting may also come from the environment:\n\
    SKERRY_LISTENERS for listeners, SKERRY_LOG_SEGMENT_BYTES for log.segment.bytes,\n\
    SKERRY_FLUSH for skerry.flush. --override goes before the environment, the environment\n\
    before the file. 'skerry config' lists all settings.\n\n\
    Without FILE: 127.0.0.1:9092, over TLS 9093; data in $XDG_STATE_HOME/skerry or ~/.local/state/skerry.\n\
    SIGTERM or SIGINT stops it: replies are finished, files flushed. --log-level and RUST_LOG\n\
    take target=level too.")]
pub struct RunArgs {
    /// Where settings come from.
    #[command(flatten)]
    pub settings: SettingsArgs,
}

/// Where settings come from.
#[derive(Debug, Args)]
pub struct SettingsArgs {
    /// A server.properties file
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,

    /// Set one setting; goes before the file and the environment
    #[arg(long = "override", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
}

/// `skerry config`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    skerry config                                 every setting with its default\n  \
    skerry config server.properties               what this file makes of them\n  \
    skerry config --json | jq '.[] | select(.source != \"default\")'")]
pub struct ConfigArgs {
    /// Where settings come from.
    #[command(flatten)]
    pub settings: SettingsArgs,

    /// As JSON
    #[arg(long, conflicts_with = "markdown")]
    pub json: bool,

    /// As a table for the documentation
    #[arg(long)]
    pub markdown: bool,

    /// Also Kafka's settings that have no effect here, with the reason
    #[arg(long)]
    pub all: bool,
}

/// Which cluster, and how the answer looks.
#[derive(Clone, Debug, Args)]
pub struct ClientArgs {
    /// Brokers to begin with, host:port, separated by commas [default: those of --command-config, else 127.0.0.1:9092]
    #[arg(
        long,
        short = 'b',
        value_name = "HOST:PORT",
        env = "SKERRY_BOOTSTRAP_SERVER",
        hide_env_values = true
    )]
    pub bootstrap_server: Option<String>,

    /// Kafka's client.properties: security.protocol=SSL with its stores, bootstrap.servers
    #[arg(long, value_name = "FILE", env = "SKERRY_COMMAND_CONFIG", hide_env_values = true)]
    pub command_config: Option<PathBuf>,

    /// As JSON, one object per line
    #[arg(long)]
    pub json: bool,
}

/// `skerry topics …`.
#[derive(Debug, Subcommand)]
pub enum TopicsCommand {
    /// List topics
    #[command(visible_alias = "ls")]
    List {
        /// Which cluster.
        #[command(flatten)]
        client: ClientArgs,
        /// Also topics that the broker keeps for itself
        #[arg(long)]
        internal: bool,
    },
    /// Show partitions, offsets and settings
    Describe {
        /// Which cluster.
        #[command(flatten)]
        client: ClientArgs,
        /// Topics [default: all]
        #[arg(value_name = "TOPIC")]
        topics: Vec<String>,
        /// Also settings that are at their default
        #[arg(long)]
        all_configs: bool,
    },
    /// Create topics
    #[command(after_help = "Examples:\n  \
        skerry topics create orders\n  \
        skerry topics create orders --partitions 3 --config retention.ms=86400000")]
    Create {
        /// Which cluster.
        #[command(flatten)]
        client: ClientArgs,
        /// Topics
        #[arg(value_name = "TOPIC", required = true)]
        topics: Vec<String>,
        /// Partitions [default: the broker's num.partitions]
        #[arg(long, short = 'p', value_name = "N", value_parser = clap::value_parser!(i32).range(1..))]
        partitions: Option<i32>,
        /// Replicas [default: the broker's]
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(i16).range(1..))]
        replication_factor: Option<i16>,
        /// A setting of the topic; may be given several times
        #[arg(long = "config", short = 'c', value_name = "KEY=VALUE", value_parser = key_value)]
        configs: Vec<(String, String)>,
        /// Succeed when a topic is there already
        #[arg(long)]
        if_not_exists: bool,
    },
    /// Delete topics and their records
    #[command(visible_alias = "rm")]
    Delete {
        /// Which cluster.
        #[command(flatten)]
        client: ClientArgs,
        /// Topics
        #[arg(value_name = "TOPIC", required = true)]
        topics: Vec<String>,
        /// Succeed when a topic is not there
        #[arg(long)]
        if_exists: bool,
    },
    /// Add partitions, or change settings
    #[command(after_help = "Examples:\n  \
        skerry topics alter orders --partitions 6\n  \
        skerry topics alter orders --config retention.ms=3600000 --delete-config segment.bytes")]
    Alter {
        /// Which cluster.
        #[command(flatten)]
        client: ClientArgs,
        /// The topic
        #[arg(value_name = "TOPIC")]
        topic: String,
        /// Partitions it shall have: more than it has
        #[arg(long, short = 'p', value_name = "N", value_parser = clap::value_parser!(i32).range(1..))]
        partitions: Option<i32>,
        /// Set a setting; may be given several times
        #[arg(long = "config", short = 'c', value_name = "KEY=VALUE", value_parser = key_value)]
        configs: Vec<(String, String)>,
        /// Put a setting back to its default; may be given several times
        #[arg(long = "delete-config", value_name = "KEY")]
        delete_configs: Vec<String>,
    },
}

/// `skerry groups …`.
#[derive(Debug, Subcommand)]
pub enum GroupsCommand {
    /// List consumer groups
    #[command(visible_alias = "ls")]
    List {
        /// Which cluster.
        #[command(flatten)]
        client: ClientArgs,
    },
    /// Show members, offsets and lag
    Describe {
        /// Which cluster.
        #[command(flatten)]
        client: ClientArgs,
        /// Groups [default: all]
        #[arg(value_name = "GROUP")]
        groups: Vec<String>,
        /// Members and what they are assigned, instead of offsets
        #[arg(long)]
        members: bool,
    },
    /// Delete groups that have no members, with their offsets
    #[command(visible_alias = "rm")]
    Delete {
        /// Which cluster.
        #[command(flatten)]
        client: ClientArgs,
        /// Groups
        #[arg(value_name = "GROUP", required = true)]
        groups: Vec<String>,
    },
    /// Show a group's committed offsets, or set them
    #[command(after_help = "Examples:\n  \
        skerry groups offsets billing\n  \
        skerry groups offsets billing --topic orders --to earliest\n  \
        skerry groups offsets billing --topic orders --partition 2 --to 1500\n\n\
        Offsets can be set while the group has no members.")]
    Offsets {
        /// Which cluster.
        #[command(flatten)]
        client: ClientArgs,
        /// The group
        #[arg(value_name = "GROUP")]
        group: String,
        /// Only this topic
        #[arg(long, short = 't', value_name = "TOPIC")]
        topic: Option<String>,
        /// Only this partition; may be given several times
        #[arg(long, short = 'p', value_name = "N", requires = "topic")]
        partition: Vec<i32>,
        /// Set the offsets: earliest, latest, a number, -N for N before the end, @MS for a time
        #[arg(long, value_name = "OFFSET", requires = "topic", allow_hyphen_values = true)]
        to: Option<Position>,
    },
}

impl TopicsCommand {
    /// Which cluster.
    pub const fn client(&self) -> &ClientArgs {
        match self {
            Self::List { client, .. }
            | Self::Describe { client, .. }
            | Self::Create { client, .. }
            | Self::Delete { client, .. }
            | Self::Alter { client, .. } => client,
        }
    }
}

impl GroupsCommand {
    /// Which cluster.
    pub const fn client(&self) -> &ClientArgs {
        match self {
            Self::List { client }
            | Self::Describe { client, .. }
            | Self::Delete { client, .. }
            | Self::Offsets { client, .. } => client,
        }
    }
}

/// `skerry produce`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    echo hello | skerry produce greetings\n  \
    printf 'k1:v1\\nk2:v2\\n' | skerry produce orders --key-separator : --compression zstd\n  \
    skerry produce readings --header sensor=t1 < readings.txt\n\n\
    Records with a key go to the partition that the Java client would choose. With\n\
    --key-separator, a line without the separator has no key. --json prints where each\n\
    record went.")]
pub struct ProduceArgs {
    /// Which cluster.
    #[command(flatten)]
    pub client: ClientArgs,
    /// The topic
    #[arg(value_name = "TOPIC")]
    pub topic: String,
    /// What parts key and value on a line
    #[arg(long, short = 'K', value_name = "TEXT")]
    pub key_separator: Option<String>,
    /// A value of this text is sent as null
    #[arg(long, value_name = "TEXT")]
    pub null_value: Option<String>,
    /// A header for every record; may be given several times
    #[arg(long = "header", short = 'H', value_name = "KEY=VALUE", value_parser = key_value)]
    pub headers: Vec<(String, String)>,
    /// The partition [default: by key, else in turn]
    #[arg(long, short = 'p', value_name = "N", value_parser = clap::value_parser!(i32).range(0..))]
    pub partition: Option<i32>,
    /// What the broker must have done before it answers
    #[arg(long, value_enum, default_value = "all")]
    pub acks: Acks,
    /// How batches are compressed
    #[arg(long, short = 'z', value_enum, default_value = "none")]
    pub compression: Codec,
    /// Timestamp of every record, milliseconds since 1970 [default: now]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(i64).range(0..))]
    pub timestamp: Option<i64>,
}

/// `skerry consume`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    skerry consume orders                              what comes from now on\n  \
    skerry consume orders --from-beginning --until-end\n  \
    skerry consume orders --partition 0 --offset 1500 --max-messages 1 --json\n  \
    skerry consume orders --group billing              share the topic with the group and commit\n  \
    skerry consume orders --format '%p:%o %k=%v\\n'\n\n\
    Format: %t topic, %p partition, %o offset, %T timestamp, %k key, %v value, %h headers,\n\
    %% percent, \\n \\t \\0 \\\\.\n\
    In JSON, a key or value that is not UTF-8 is named key_base64 or value_base64.")]
pub struct ConsumeArgs {
    /// Which cluster.
    #[command(flatten)]
    pub client: ClientArgs,
    /// The topic
    #[arg(value_name = "TOPIC")]
    pub topic: String,
    /// Begin with the first record that is there (in a group: where it has committed nothing)
    #[arg(long, conflicts_with = "offset")]
    pub from_beginning: bool,
    /// Where to begin: earliest, latest, a number, -N for the last N records, @MS for a time
    #[arg(
        long,
        short = 'o',
        value_name = "OFFSET",
        conflicts_with = "group",
        allow_hyphen_values = true
    )]
    pub offset: Option<Position>,
    /// Only this partition; may be given several times
    #[arg(long, short = 'p', value_name = "N", conflicts_with = "group", value_parser = clap::value_parser!(i32).range(0..))]
    pub partition: Vec<i32>,
    /// Join this consumer group and commit what was printed
    #[arg(long, short = 'g', value_name = "GROUP")]
    pub group: Option<String>,
    /// Stop after this many records
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_messages: Option<u64>,
    /// Stop when no record came for this long
    #[arg(long, value_name = "MS")]
    pub timeout: Option<u64>,
    /// Stop at what is the end now
    #[arg(long, short = 'e', conflicts_with = "group")]
    pub until_end: bool,
    /// How a record is printed
    #[arg(
        long,
        short = 'f',
        value_name = "TEXT",
        conflicts_with = "json",
        default_value = "%v\\n",
        hide_default_value = true
    )]
    pub format: String,
    /// Read only what committed transactions wrote
    #[arg(long)]
    pub read_committed: bool,
}

/// `--acks`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Acks {
    /// Every replica has it; here, the disk
    All,
    /// The leader has written it
    #[value(name = "1")]
    One,
    /// Nothing: no answer is awaited
    #[value(name = "0")]
    Zero,
}

/// `--compression`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Codec {
    /// Not at all
    None,
    /// gzip
    Gzip,
    /// Snappy
    Snappy,
    /// LZ4
    Lz4,
    /// Zstandard
    Zstd,
}

/// A place in a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// The first record that is there.
    Earliest,
    /// After the last one.
    Latest,
    /// This offset.
    At(i64),
    /// So many records before the end.
    Last(i64),
    /// The first record of this time or later, in milliseconds since 1970.
    Since(i64),
}

impl std::str::FromStr for Position {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |digits: &str| digits.parse::<i64>().ok().filter(|n| *n >= 0);
        let position = match text {
            "earliest" | "beginning" => Some(Self::Earliest),
            "latest" | "end" => Some(Self::Latest),
            _ => match (text.strip_prefix('-'), text.strip_prefix('@')) {
                (Some(digits), _) => number(digits).map(Self::Last),
                (_, Some(digits)) => number(digits).map(Self::Since),
                _ => number(text).map(Self::At),
            },
        };
        position.ok_or_else(|| "allowed: earliest, latest, a number, -N for the last N, @MS for a time".into())
    }
}

/// `key=value`.
fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.into(), value.into())),
        _ => Err("allowed: key=value".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_declaration_holds_together() {
        Cli::command().debug_assert();
    }

    /// What every command's --help says, one after another, as a terminal of 100 columns shows it.
    fn help(command: &mut clap::Command, out: &mut String) {
        use std::fmt::Write as _;
        let text = command.clone().term_width(100).render_help();
        writeln!(out, "$ {} --help\n{text}", command.get_bin_name().unwrap_or("skerry")).unwrap();
        for sub in command.get_subcommands_mut() {
            help(sub, out);
        }
    }

    /// Goal: no help text changes unseen. Method: all of it is kept in `help.txt`; `SKERRY_WRITE_HELP=1 cargo test` writes it
    /// anew, and the change shows in the commit.
    #[test]
    fn help_is_as_committed() {
        let mut command = Cli::command();
        command.build();
        let mut now = String::new();
        help(&mut command, &mut now);
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/cli/help.txt");
        if std::env::var_os("SKERRY_WRITE_HELP").is_some() {
            std::fs::write(path, &now).unwrap();
        }
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        for (line, (now, committed)) in now.lines().zip(committed.lines()).enumerate() {
            assert_eq!(now, committed, "line {} of help.txt", line + 1);
        }
        assert_eq!(now.lines().count(), committed.lines().count());
    }

    #[test]
    fn positions() {
        let read = |text: &str| text.parse::<Position>().ok();
        assert_eq!(read("earliest"), Some(Position::Earliest));
        assert_eq!(read("end"), Some(Position::Latest));
        assert_eq!(read("15"), Some(Position::At(15)));
        assert_eq!(read("-5"), Some(Position::Last(5)));
        assert_eq!(read("@1700000000000"), Some(Position::Since(1_700_000_000_000)));
        for bad in ["", "-", "@", "--5", "-x", "@-1", "1.5"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn numbers_below_zero_are_values_of_their_options() {
        let cli = Cli::try_parse_from(["skerry", "consume", "t", "--offset", "-5", "-n", "1"]).unwrap();
        assert!(matches!(
            cli.command,
            Command::Consume(ConsumeArgs {
                offset: Some(Position::Last(5)),
                max_messages: Some(1),
                ..
            })
        ));
    }

    #[test]
    fn used_wrongly_is_refused() {
        for line in [
            "skerry",
            "skerry topics",
            "skerry produce",
            "skerry produce t --header novalue",
            "skerry consume t --group g --partition 1",
            "skerry consume t --json --format x",
            "skerry topics create t --partitions 0",
            "skerry groups offsets g --to 5",
        ] {
            assert!(Cli::try_parse_from(line.split(' ')).is_err(), "{line}");
        }
    }
}
