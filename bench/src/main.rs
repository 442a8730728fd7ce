//! The `skerry-bench` command.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use skerry_bench::{broker, footprint, handshake, medians, storm};

/// Measures brokers of Kafka's protocol.
#[derive(Parser)]
#[command(name = "skerry-bench", version)]
struct Cli {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// What Skerry takes while it does nothing: binary, memory, time to start, an empty data directory, idle CPU.
    Footprint(footprint::Args),
    /// Throughput, latency at half of it, and the server's CPU time for each request, of Skerry or of any broker.
    Broker(broker::Args),
    /// What a TLS handshake costs a server: ours, rustls, OpenSSL, mbedtls.
    Handshake(handshake::Args),
    /// What `make bench` measured last, layer by layer.
    Medians(medians::Args),
    /// A server for `handshake`.
    #[command(hide = true)]
    ServeHandshakes(handshake::ServeArgs),
    /// A process whose allocations `handshake` counts.
    #[command(hide = true)]
    CountAllocations(handshake::CountArgs),
    /// Handshakes that fail, by the hundred: what each costs the broker, and what good clients feel of it.
    Storm(storm::Args),
    /// The storm of `storm`.
    #[command(hide = true)]
    StormLoad(storm::LoadArgs),
}

fn main() -> ExitCode {
    let done = match Cli::parse().what {
        What::Footprint(args) => footprint::run(&args),
        What::Broker(args) => broker::run(&args),
        What::Handshake(args) => handshake::run(&args),
        What::Medians(args) => medians::run(&args),
        What::ServeHandshakes(args) => handshake::serve(&args),
        What::CountAllocations(args) => handshake::count(&args),
        What::Storm(args) => storm::run(&args),
        What::StormLoad(args) => storm::run_load(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("skerry-bench: {why}");
            ExitCode::FAILURE
        }
    }
}
