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
    if let (false, Some((_, address))) = (config.from_file, of(Protocol::Plaintext)) {
        let program = std::env::args().next().unwrap_or_else(|| "skerry".into());
        eprint!("{}", invitation(&program, *address));
    }
    let is_made = |listener: &Listener| {
        let tls = listener.tls.as_deref();
        tls.is_some_and(|tls| matches!(tls.keystore, Keystore::Development(_)))
    };
    if let Some((_, address)) = of(Protocol::Ssl).filter(|(listener, _)| is_made(listener)) {
        eprint!("{}", invitation_over_tls(*address, &Development::ca(&config.data_dir)));
    }
}

/// An address as somebody on this machine connects to it.
fn reached(address: SocketAddr) -> String {
    match address {
        a if a.ip().is_unspecified() => format!("127.0.0.1:{}", a.port()),
        a => a.to_string(),
    }
}

/// Settings of clients that trust the development CA, to paste.
fn invitation_over_tls(address: SocketAddr, ca: &Path) -> String {
    let (server, ca) = (reached(address), ca.display());
    format!(
        "\nOver TLS, with certificates that were made for trying it out. kcat:\n\n    \
         kcat -b {server} -X security.protocol=ssl -X ssl.ca.location={ca} -t demo -C -o beginning -e\n\n\
         Java, in client.properties:\n\n    \
         bootstrap.servers={server}\n    \
         security.protocol=SSL\n    \
         ssl.truststore.type=PEM\n    \
         ssl.truststore.location={ca}\n\n\
         Python, with kafka-python and with confluent-kafka:\n\n    \
         KafkaProducer(bootstrap_servers=\"{server}\", security_protocol=\"SSL\", ssl_cafile=\"{ca}\")\n    \
         Producer({{\"bootstrap.servers\": \"{server}\", \"security.protocol\": \"ssl\", \"ssl.ca.location\": \"{ca}\"}})\n"
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
        let told = invitation_over_tls("0.0.0.0:9093".parse().unwrap(), Path::new("/data/tls/ca.pem"));
        for line in [
            "    kcat -b 127.0.0.1:9093 -X security.protocol=ssl -X ssl.ca.location=/data/tls/ca.pem -t demo -C -o beginning -e",
            "    ssl.truststore.location=/data/tls/ca.pem",
            "    KafkaProducer(bootstrap_servers=\"127.0.0.1:9093\", security_protocol=\"SSL\", ssl_cafile=\"/data/tls/ca.pem\")",
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
