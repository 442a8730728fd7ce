//! The clients' programs: where they are, how each is called, and the broker they are pointed at.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use skerry_tests::process::{Skerry, Start, TempDir};

/// A client as the tests run it: a program that knows the modes of `tests/interop/README.md`.
#[derive(Clone, Copy, Debug)]
pub enum Client {
    Kcat,
    ConfluentKafka,
    KafkaPython,
    KafkaJs,
    FranzGo,
    /// Apache Kafka's own, in this version.
    Java(&'static str),
    Rdkafka,
}

impl Client {
    /// Its program, to be given a mode.
    ///
    /// Panics, saying what to run, when it has not been built.
    pub fn command(self) -> Command {
        let work = folder().join(".work");
        let built = |path: PathBuf| {
            assert!(
                path.exists(),
                "{} is missing: tests/setup.sh test makes it",
                path.display()
            );
            path
        };
        let mut command;
        match self {
            Self::Kcat => {
                command = Command::new("python3");
                command.arg("kcat/kcat.py");
            }
            Self::ConfluentKafka => {
                command = Command::new(built(work.join("venv/bin/python")));
                command.arg("python/confluent.py");
            }
            Self::KafkaPython => {
                command = Command::new(built(work.join("venv/bin/python")));
                command.arg("python/kafka_python.py");
            }
            Self::KafkaJs => {
                built(folder().join("node/node_modules"));
                command = Command::new("node");
                command.arg("node/kafkajs.js");
            }
            Self::FranzGo => command = Command::new(built(work.join("franz"))),
            Self::Java(version) => {
                let java = built(work.join(format!("java-{version}")));
                command = Command::new("java");
                command
                    .arg(format!("-Dkafka={version}"))
                    .arg("-cp")
                    .arg(format!("{0}/classes:{0}/lib/*", java.display()))
                    .arg("skerry.interop.Interop");
            }
            Self::Rdkafka => command = Command::new(built(work.join("rust/debug/skerry-interop-rdkafka"))),
        }
        command.current_dir(folder());
        command
    }
}

/// Where the clients' programs lie.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("interop")
}

/// What the clients talk to: the broker that `SKERRY_BOOTSTRAP` names, else one started for this test.
pub struct Broker {
    pub bootstrap: String,
    // In this order: the process ends before its directory goes.
    _skerry: Option<Skerry>,
    _data: TempDir,
}

impl Broker {
    /// With topics of four partitions when they are made by being named, and new groups that wait this long for more members.
    pub fn start(initial_rebalance_delay_ms: u32) -> Self {
        let data = TempDir::new();
        let Ok(bootstrap) = env::var("SKERRY_BOOTSTRAP") else {
            let delay = format!("group.initial.rebalance.delay.ms={initial_rebalance_delay_ms}");
            let skerry = Start::new(data.path()).with(&["num.partitions=4", &delay]).start();
            return Self {
                bootstrap: skerry.address.to_string(),
                _skerry: Some(skerry),
                _data: data,
            };
        };
        Self {
            bootstrap,
            _skerry: None,
            _data: data,
        }
    }

    /// The command, pointed at this broker.
    pub fn point(&self, mut command: Command) -> Command {
        command.env("SKERRY_BOOTSTRAP", &self.bootstrap);
        command
    }
}
