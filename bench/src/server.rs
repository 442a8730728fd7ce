//! The broker that is measured: Skerry as a child process, or any broker that is there already.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use skerry_core::api::ApiVersionsRequest;
use skerry_core::api::create_topics::{CreatableTopic, CreateTopicsRequest};
use skerry_core::api::delete_topics::{DeleteTopicState, DeleteTopicsRequest};
use skerry_core::api::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use skerry_core::error_code::ErrorCode;
use skerry_core::wire::Array;
use skerry_tests::client::{Client, reply};
use skerry_tests::process::{Skerry, Start, TempDir, build};
use skerry_tests::wire;

use crate::process;
use skerry_tests::tls::{Target, files};

/// Versions that Kafka 2.8 to 4.x and Skerry all speak.
const API_VERSIONS: i16 = 3;
const LIST_OFFSETS: i16 = 5;
const CREATE_TOPICS: i16 = 6;
const DELETE_TOPICS: i16 = 6;

/// How long a broker may take for a change of its topics, in milliseconds.
const CHANGE_MS: i32 = 30_000;

/// The binary that a flag names, or the release build.
#[must_use]
pub fn binary(named: Option<&Path>) -> PathBuf {
    named.map_or_else(|| build("release"), Path::to_owned)
}

/// A broker to be measured. Dropping it ends it when this program started it.
#[derive(Debug)]
pub struct Server {
    /// Where it listens, in plain.
    pub address: SocketAddr,
    /// Where it listens over TLS, when it was asked to.
    pub tls_address: Option<SocketAddr>,
    /// Its process, when known.
    pub pid: Option<u32>,
    child: Option<(Skerry, TempDir)>,
}

impl Server {
    /// Starts Skerry on an empty data directory, on one processor where `processor` says which.
    ///
    /// Errors: it cannot be pinned there.
    pub fn start(binary: &Path, overrides: &[&str], processor: Option<usize>) -> Result<Self, String> {
        let directory = TempDir::new();
        let skerry = start(binary, directory.path(), overrides);
        Self::of(skerry, None, directory, processor)
    }

    /// As [`Server::start`], with [`files::LISTENERS`].
    ///
    /// Errors: as [`Server::start`].
    pub fn start_with_tls(binary: &Path, overrides: &[&str], processor: Option<usize>) -> Result<Self, String> {
        let directory = TempDir::new();
        let own = files::settings(directory.path());
        let overrides: Vec<&str> = own
            .iter()
            .map(String::as_str)
            .chain(overrides.iter().copied())
            .collect();
        let data = directory.path().join("data");
        let mut start = Start::new(&data).with(&overrides);
        start.binary = Some(binary);
        start.listeners = files::LISTENERS;
        let skerry = start.start();
        let tls = skerry.listener("SSL");
        Self::of(skerry, Some(tls), directory, processor)
    }

    fn of(
        skerry: Skerry,
        tls_address: Option<SocketAddr>,
        directory: TempDir,
        processor: Option<usize>,
    ) -> Result<Self, String> {
        if let Some(processor) = processor {
            process::pin(skerry.pid(), processor).map_err(|e| format!("cannot pin to processor {processor}: {e}"))?;
        }
        Ok(Self {
            address: skerry.address,
            tls_address,
            pid: Some(skerry.pid()),
            child: Some((skerry, directory)),
        })
    }

    /// One that runs already.
    ///
    /// Errors: the address cannot be found.
    pub fn running(address: &str, tls_address: Option<&str>, pid: Option<u32>) -> Result<Self, String> {
        let find = |address: &str| {
            let found = address.to_socket_addrs().map_err(|e| format!("{address}: {e}"))?.next();
            found.ok_or_else(|| format!("{address}: no address"))
        };
        Ok(Self {
            address: find(address)?,
            tls_address: tls_address.map(find).transpose()?,
            pid,
            child: None,
        })
    }

    /// A connection to it.
    ///
    /// Errors: it cannot be reached.
    pub fn connect(&self) -> Result<Client, String> {
        Client::try_connect(self.address).map_err(|e| format!("{}: {e}", self.address))
    }

    /// Makes a topic and waits until every partition has a leader.
    ///
    /// Errors: the broker's refusal.
    pub fn create_topic(&self, name: &str, partitions: i32) -> Result<(), String> {
        let mut client = self.connect()?;
        let frame = client.call(CREATE_TOPICS, &create(&[creatable(name, partitions)]));
        for topic in reply::<CreateTopicsRequest<'_>>(CREATE_TOPICS, &frame).topics {
            if topic.error_code != ErrorCode::NONE {
                return Err(format!("topic {name}: {:?}", topic.error_code));
            }
        }
        // A topic that is there may still be refused for a moment: only partitions that answer are ready.
        let wanted: Vec<_> = (0..partitions)
            .map(|partition_index| ListOffsetsPartition {
                partition_index,
                timestamp: -1,
                ..ListOffsetsPartition::default()
            })
            .collect();
        let topics = [ListOffsetsTopic {
            name,
            partitions: Array::Slice(&wanted),
        }];
        let request = ListOffsetsRequest {
            topics: Array::Slice(&topics),
            ..ListOffsetsRequest::default()
        };
        for _ in 0..100 {
            let frame = client.call(LIST_OFFSETS, &request);
            let topics = reply::<ListOffsetsRequest<'_>>(LIST_OFFSETS, &frame).topics;
            let mut answers = topics.iter().flat_map(|topic| topic.partitions);
            if answers.all(|partition| partition.error_code == ErrorCode::NONE) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Err(format!("topic {name}: its partitions have no leader"))
    }

    /// Deletes a topic.
    ///
    /// Errors: the broker cannot be reached.
    pub fn delete_topic(&self, name: &str) -> Result<(), String> {
        let topic = DeleteTopicState {
            name: Some(name),
            ..DeleteTopicState::default()
        };
        let request = DeleteTopicsRequest {
            topics: Array::Slice(&[topic]),
            timeout_ms: CHANGE_MS,
            ..DeleteTopicsRequest::default()
        };
        let _ = self.connect()?.call(DELETE_TOPICS, &request);
        Ok(())
    }

    /// Where a load connects.
    ///
    /// Errors: it does not listen over TLS.
    pub fn target(&self, is_tls: bool) -> Result<Target, String> {
        match (is_tls, self.tls_address) {
            (false, _) => Ok(self.address.into()),
            (true, Some(address)) => Ok(Target { address, is_tls }),
            (true, None) => Err(format!("{} does not listen over TLS", self.address)),
        }
    }

    /// Where a further listener of that name is, when this program started the broker.
    #[must_use]
    pub fn listener(&self, name: &str) -> Option<SocketAddr> {
        self.child.as_ref().map(|(skerry, _)| skerry.listener(name))
    }

    /// Whether it is this program's child.
    #[must_use]
    pub const fn is_ours(&self) -> bool {
        self.child.is_some()
    }
}

fn creatable(name: &str, partitions: i32) -> CreatableTopic<'_> {
    CreatableTopic {
        name,
        num_partitions: partitions,
        replication_factor: 1,
        ..CreatableTopic::default()
    }
}

fn create<'a>(topics: &'a [CreatableTopic<'a>]) -> CreateTopicsRequest<'a> {
    CreateTopicsRequest {
        topics: Array::Slice(topics),
        timeout_ms: CHANGE_MS,
        ..CreateTopicsRequest::default()
    }
}

/// A request to make a topic, as a frame.
#[must_use]
pub fn topic_request(name: &str, partitions: i32) -> Vec<u8> {
    wire::request(&create(&[creatable(name, partitions)]), CREATE_TOPICS, 0)
}

/// Starts Skerry on a data directory and waits until it listens.
#[must_use]
pub fn start(binary: &Path, directory: &Path, overrides: &[&str]) -> Skerry {
    let mut start = Start::new(directory).with(overrides);
    start.binary = Some(binary);
    start.start()
}

/// Asks for ApiVersions, the first thing that every client does, and waits for the answer.
pub fn greet(client: &mut Client) {
    let request = ApiVersionsRequest {
        client_software_name: "skerry-bench",
        client_software_version: env!("CARGO_PKG_VERSION"),
    };
    let frame = client.call(API_VERSIONS, &request);
    let answer = reply::<ApiVersionsRequest<'_>>(API_VERSIONS, &frame);
    assert_eq!(answer.error_code, ErrorCode::NONE);
}
