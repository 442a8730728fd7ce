//! What the broker tells at its start: its listeners and every memory budget.

use std::fmt;
use std::net::SocketAddr;

use crate::config::{Config, Flush};

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
    if let (false, Some(address)) = (config.from_file, bound.first()) {
        let program = std::env::args().next().unwrap_or_else(|| "skerry".into());
        eprintln!("{}", invitation(&program, *address));
    }
}

/// Commands to paste into another terminal.
fn invitation(program: &str, address: SocketAddr) -> String {
    let server = match address {
        a if a.to_string() == "127.0.0.1:9092" => String::new(),
        a if a.ip().is_unspecified() => format!(" --bootstrap-server 127.0.0.1:{}", a.port()),
        a => format!(" --bootstrap-server {a}"),
    };
    let kcat = server
        .rsplit(' ')
        .next()
        .filter(|s| !s.is_empty())
        .unwrap_or("127.0.0.1:9092");
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
    fn sizes_read_well() {
        assert_eq!(Bytes(1023).to_string(), "1023 B");
        assert_eq!(Bytes(1024).to_string(), "1.0 KiB");
        assert_eq!(Bytes(1_572_864).to_string(), "1.5 MiB");
        assert_eq!(Bytes(u64::MAX).to_string(), "16777215.9 TiB");
    }
}
