//! What the broker tells at its start: its listeners and every memory budget.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;

use crate::config::tls::Keystore;
use crate::config::{Config, Flush, Listener, Protocol};
use crate::tls_setup::Development;

/// The lines that a starting broker writes.
///
/// `bound` is the address of each of `config.listeners` as the kernel gave it; `budget` has a name, its bytes and how they
/// come about.
pub fn lines(config: &Config, bound: &[SocketAddr], budget: &[(&str, u64, &str)]) -> Vec<String> {
    let mut out = Vec::new();
    for (name, bytes, note) in budget {
        let line = format!("memory {name:<18} {:>10}  {note}", Bytes(*bytes).to_string());
        out.push(line.trim_end().into());
    }
    let sum = budget
        .iter()
        .fold(0_u64, |sum, (_, bytes, _)| sum.saturating_add(*bytes));
    out.push(format!("memory {:<18} {:>10}", "in all", Bytes(sum).to_string()));
    out.push(format!("data in {}", config.data_dir.display()));
    match config.flush {
        Flush::AcksAll | Flush::Every => {}
        Flush::Interval => out.push(
            "skerry.flush=interval: an acknowledged record may be lost when the power fails, until it is flushed"
                .into(),
        ),
        Flush::Never => {
            out.push("skerry.flush=never: an acknowledged record may be lost when the power fails".into());
        }
    }
    if config.test_flush_delay.0 > 0 {
        out.push(format!(
            "skerry.test.flush.delay.ms={}: FOR TESTS ONLY, every flush is made slow",
            config.test_flush_delay.0
        ));
    }
    for (listener, address) in config.listeners.iter().zip(bound) {
        let told = match &listener.advertised {
            Some(told) => format!("{}:{}", told.host, told.port),
            None => "the address that they connected to".into(),
        };
        out.push(format!(
            "listening on {}://{address}; clients are told {told}",
            listener.name
        ));
    }
    out
}

/// Writes [`lines`] to the log; to somebody who tries the broker out, without a file of settings, also what to do next.
pub fn tell(config: &Config, bound: &[SocketAddr], budget: &[(&str, u64, &str)]) {
    for line in lines(config, bound, budget) {
        log::info!(target: "skerry", "{line}");
    }
    let of = |protocol: Protocol| {
        let mut both = config.listeners.iter().zip(bound);
        both.find(|(listener, _)| listener.protocol == protocol)
    };
    let program = std::env::args().next().unwrap_or_else(|| "skerry".into());
    if let (false, Some((_, address))) = (config.from_file, of(Protocol::Plaintext)) {
        eprint!("{}", invitation(&program, *address));
    }
    let is_made = |listener: &Listener| {
        let tls = listener.tls.as_deref();
        tls.is_some_and(|tls| matches!(tls.keystore, Keystore::Development(_)))
    };
    if let Some((_, address)) = of(Protocol::Ssl).filter(|(listener, _)| is_made(listener)) {
        let data_dir = config.data_dir.canonicalize();
        let data_dir = data_dir.as_deref().unwrap_or(&config.data_dir);
        eprint!("{}", invitation_over_tls(&program, *address, data_dir));
    }
}

/// An address as somebody on this machine connects to it.
fn reached(address: SocketAddr) -> String {
    match address {
        a if a.ip().is_unspecified() => format!("127.0.0.1:{}", a.port()),
        a => a.to_string(),
    }
}

/// The same over TLS, for clients that trust the development CA.
fn invitation_over_tls(program: &str, address: SocketAddr, data_dir: &Path) -> String {
    let (server, ca) = (reached(address), Development::ca(data_dir));
    let (ca, properties) = (ca.display(), Development::properties(data_dir));
    let (ours, kafkas) = (
        format!("-b {server} --command-config {}", properties.display()),
        format!("--bootstrap-server {server} --command-config {}", properties.display()),
    );
    let kcat = format!("kcat -b {server} -X security.protocol=ssl -X ssl.ca.location={ca}");
    format!(
        "\nOver TLS, with certificates that were made for trying it out:\n\n    \
         echo hello | {program} produce demo {ours}\n    \
         {program} consume demo --from-beginning --max-messages 1 {ours}\n\n    \
         echo hello | {kcat} -t demo -P\n    \
         {kcat} -t demo -C -o beginning -e\n\n\
         Java's clients take the settings of that file as they are, and Kafka's own tools the file:\n\n    \
         kafka-topics.sh {kafkas} --list\n\n\
         Python, with kafka-python or confluent-kafka:\n\n    \
         python3 -c 'from kafka import KafkaProducer; p = KafkaProducer(bootstrap_servers=\"{server}\", security_protocol=\"SSL\", \
         ssl_cafile=\"{ca}\"); p.send(\"demo\", b\"hello\"); p.flush()'\n    \
         python3 -c 'from confluent_kafka import Producer; p = Producer({{\"bootstrap.servers\": \"{server}\", \
         \"security.protocol\": \"ssl\", \"ssl.ca.location\": \"{ca}\"}}); p.produce(\"demo\", b\"hello\"); p.flush()'\n"
    )
}

/// Commands to paste into another terminal.
fn invitation(program: &str, address: SocketAddr) -> String {
    let kcat = reached(address);
    let server = match address.to_string().as_str() {
        "127.0.0.1:9092" => String::new(),
        _ => format!(" --bootstrap-server {kcat}"),
    };
    format!(
        "\nTry it from another terminal:\n\n    \
         echo hello | {program} produce demo{server}\n    \
         {program} consume demo --from-beginning --max-messages 1{server}\n\n\
         or with any Kafka client, for instance:\n\n    \
         echo hello | kcat -b {kcat} -t demo -P\n    \
         kcat -b {kcat} -t demo -C -o beginning -e\n"
    )
}

/// Bytes for a person: `512 B`, `4.0 KiB`, `1.5 MiB`.
#[derive(Clone, Copy, Debug)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
        let mut tenths = u128::from(self.0) * 10;
        let mut unit = "B";
        for larger in UNITS {
            if tenths < 10_240 {
                break;
            }
            tenths /= 1024;
            unit = larger;
        }
        match unit {
            "B" => write!(f, "{} B", self.0),
            unit => write!(f, "{}.{} {unit}", tenths / 10, tenths % 10),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn budgets_listeners_and_promises_are_told() {
        let settings = [
            ("listeners", "PLAINTEXT://127.0.0.1:0,OUT://[::1]:9093"),
            ("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT,OUT:PLAINTEXT"),
            ("advertised.listeners", "OUT://edge.local:19093"),
            ("skerry.flush", "never"),
            ("skerry.test.flush.delay.ms", "20"),
        ];
        let config = Config::with(Path::new("/data"), &settings).unwrap();
        let bound = ["127.0.0.1:40001".parse().unwrap(), "[::1]:9093".parse().unwrap()];
        let budget = [("large buffers", 8_388_608, "4 of 2.0 MiB"), ("partitions", 1000, "")];
        assert_eq!(
            lines(&config, &bound, &budget),
            [
                "memory large buffers         8.0 MiB  4 of 2.0 MiB",
                "memory partitions             1000 B",
                "memory in all                8.0 MiB",
                "data in /data",
                "skerry.flush=never: an acknowledged record may be lost when the power fails",
                "skerry.test.flush.delay.ms=20: FOR TESTS ONLY, every flush is made slow",
                "listening on PLAINTEXT://127.0.0.1:40001; clients are told the address that they connected to",
                "listening on OUT://[::1]:9093; clients are told edge.local:19093",
            ]
        );
    }

    #[test]
    fn clients_over_tls_are_told_the_ca() {
        let told = invitation_over_tls("skerry", "0.0.0.0:9093".parse().unwrap(), Path::new("/data"));
        for line in [
            "    echo hello | skerry produce demo -b 127.0.0.1:9093 --command-config /data/tls/client.properties",
            "    kcat -b 127.0.0.1:9093 -X security.protocol=ssl -X ssl.ca.location=/data/tls/ca.pem -t demo -C -o beginning -e",
            "    kafka-topics.sh --bootstrap-server 127.0.0.1:9093 --command-config /data/tls/client.properties --list",
        ] {
            assert!(told.lines().any(|told| told == line), "{told}");
        }
    }

    #[test]
    fn sizes_read_well() {
        assert_eq!(Bytes(1023).to_string(), "1023 B");
        assert_eq!(Bytes(1024).to_string(), "1.0 KiB");
        assert_eq!(Bytes(1_572_864).to_string(), "1.5 MiB");
        assert_eq!(Bytes(u64::MAX).to_string(), "16777215.9 TiB");
    }
}
