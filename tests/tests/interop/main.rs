//! Stock clients against the real binary: each produces and consumes 10,000 keyed records with headers through every codec it has,
//! members of a group share a topic while one is killed, and librdkafka's own tests are run.
//!
//! They need the clients, which `tests/setup.sh test` installs and builds; `make test` runs them, or one by name with
//! `cargo test -p skerry-tests --test interop -- --ignored --nocapture kafkajs`. `SKERRY_BOOTSTRAP=host:port` runs them against any broker
//! that is up already, such as Apache Kafka with `num.partitions=4`.

mod clients;
mod group;
mod stores;

use std::process::Command;

use clients::{Broker, Client, Security, folder};

/// A client's five codecs, one line each; 10,000 records through one take seconds.
const SECONDS_MAX: &str = "400";

/// Runs a program to its end and shows what it printed; it must end well and its closing line must be `closing`.
fn run(command: &Command, seconds_max: &str, closing: Option<&str>) {
    // A program that hangs is ended by `timeout`, with an exit code of its own.
    let mut limited = Command::new("timeout");
    limited
        .args(["--kill-after=5", seconds_max])
        .arg(command.get_program())
        .args(command.get_args());
    limited.envs(command.get_envs().filter_map(|(key, value)| Some((key, value?))));
    if let Some(folder) = command.get_current_dir() {
        limited.current_dir(folder);
    }
    let output = limited.output().expect("timeout of coreutils");
    let text = String::from_utf8_lossy(&output.stdout);
    print!("{text}");
    assert!(
        output.status.success(),
        "{}\n{text}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    if let Some(closing) = closing {
        assert_eq!(
            text.lines().last(),
            Some(closing),
            "the program did something else than was asked"
        );
    }
}

fn roundtrip(client: Client) {
    let broker = Broker::start(0);
    let mut command = broker.point(client.command());
    command.arg("roundtrip");
    run(&command, SECONDS_MAX, Some("5 passed, 0 failed"));
}

/// The same over TLS, through two codecs; then once more with a client certificate, which the broker demands.
fn roundtrip_over_tls(client: Client) {
    let broker = Broker::own(0, Security::Tls);
    let mut command = broker.point(client.command());
    command.args(["roundtrip", "none", "zstd"]);
    run(&command, SECONDS_MAX, Some("2 passed, 0 failed"));
    if matches!(client, Client::Java(_)) {
        let resumed = broker.metric("skerry_tls_handshakes_total{version=\"TLSv1.3\",kind=\"resumed\"}");
        assert!(resumed > 0.0, "Java resumes sessions");
    }

    let broker = Broker::own(0, Security::MutualTls);
    let mut command = broker.point(client.command());
    command.args(["roundtrip", "lz4"]);
    run(&command, SECONDS_MAX, Some("1 passed, 0 failed"));
}

#[test]
#[ignore = "needs the clients: tests/setup.sh test"]
fn roundtrip_kcat() {
    roundtrip(Client::Kcat);
}

#[test]
#[ignore = "needs the clients: tests/setup.sh test"]
fn roundtrip_confluent_kafka() {
    roundtrip(Client::ConfluentKafka);
}

#[test]
#[ignore = "needs the clients: tests/setup.sh test"]
fn roundtrip_kafka_python() {
    roundtrip(Client::KafkaPython);
}

#[test]
#[ignore = "needs the clients: tests/setup.sh test"]
fn roundtrip_kafkajs() {
    roundtrip(Client::KafkaJs);
}

#[test]
#[ignore = "needs the clients: tests/setup.sh test"]
fn roundtrip_franz_go() {
    roundtrip(Client::FranzGo);
}

#[test]
#[ignore = "needs the clients: tests/setup.sh test"]
fn roundtrip_java_newest() {
    roundtrip(Client::Java("4.4.0"));
}

#[test]
#[ignore = "needs the clients: tests/setup.sh test"]
fn roundtrip_java_2_8() {
    roundtrip(Client::Java("2.8.2"));
}

#[test]
#[ignore = "needs the clients: tests/setup.sh test"]
fn roundtrip_rdkafka() {
    roundtrip(Client::Rdkafka);
}

#[test]
#[ignore = "needs the clients: tests/setup.sh test"]
fn group_confluent_kafka() {
    group::a_member_is_killed(Client::ConfluentKafka);
}

#[test]
#[ignore = "needs the clients: tests/setup.sh test"]
fn group_kafkajs() {
    group::a_member_is_killed(Client::KafkaJs);
}

#[test]
#[ignore = "needs the clients: tests/setup.sh test"]
fn group_franz_go() {
    group::a_member_is_killed(Client::FranzGo);
}

#[test]
#[ignore = "needs the clients: tests/setup.sh test"]
fn group_java_newest() {
    group::a_member_is_killed(Client::Java("4.4.0"));
}

#[test]
#[ignore = "needs the clients: tests/setup.sh test"]
fn group_java_2_8() {
    group::a_member_is_killed(Client::Java("2.8.2"));
}

#[test]
#[ignore = "needs the clients: tests/setup.sh test"]
fn librdkafka_own_tests() {
    // 0102 wants two members that start together to be one generation; with Kafka's own three seconds other tests lose patience.
    let broker = Broker::start(500);
    run(
        &broker.point(Command::new(folder().join("librdkafka/run"))),
        "1000",
        None,
    );
}

#[test]
#[ignore = "needs the clients: tests/setup.sh test"]
fn tls_kcat() {
    roundtrip_over_tls(Client::Kcat);
}

#[test]
#[ignore = "needs the clients: tests/setup.sh test"]
fn tls_confluent_kafka() {
    roundtrip_over_tls(Client::ConfluentKafka);
}

#[test]
#[ignore = "needs the clients: tests/setup.sh test"]
fn tls_kafka_python() {
    roundtrip_over_tls(Client::KafkaPython);
}

#[test]
#[ignore = "needs the clients: tests/setup.sh test"]
fn tls_kafkajs() {
    roundtrip_over_tls(Client::KafkaJs);
}

#[test]
#[ignore = "needs the clients: tests/setup.sh test"]
fn tls_franz_go() {
    roundtrip_over_tls(Client::FranzGo);
}

#[test]
#[ignore = "needs the clients: tests/setup.sh test"]
fn tls_java_newest() {
    roundtrip_over_tls(Client::Java("4.4.0"));
}

#[test]
#[ignore = "needs the clients: tests/setup.sh test"]
fn tls_java_2_8() {
    roundtrip_over_tls(Client::Java("2.8.2"));
}

#[test]
#[ignore = "needs the clients: tests/setup.sh test"]
fn tls_rdkafka() {
    roundtrip_over_tls(Client::Rdkafka);
}

#[test]
#[ignore = "needs the clients: tests/setup.sh test"]
fn tls_librdkafka_own_tests() {
    let broker = Broker::own(500, Security::Tls);
    let mut command = broker.point(Command::new(folder().join("librdkafka/run")));
    command.args(["0001", "0005", "0012", "0017", "0026", "0085", "0090", "0113"]);
    run(&command, "1000", None);
}

/// Goal: a client that verified a name is sent to that name, not to an address that the certificate may not bear.
#[test]
#[ignore = "needs the clients: tests/setup.sh test"]
fn tls_clients_are_sent_to_the_name_that_they_verified() {
    let broker = Broker::own(0, Security::Tls);
    let port = broker.bootstrap.rsplit(':').next().expect("a port");
    for (host, told) in [("localhost", "localhost"), ("127.0.0.1", "127.0.0.1")] {
        let output = Command::new("kcat")
            .args([
                "-L",
                "-b",
                &format!("{host}:{port}"),
                "-X",
                "security.protocol=ssl",
                "-X",
            ])
            .arg(format!("ssl.ca.location={}", broker.ca().display()))
            .output()
            .expect("kcat");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains(&format!(" at {told}:{port} ")), "{host}: {text}");
    }
}
