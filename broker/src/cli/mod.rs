//! The command line: the broker's start, and tools that work with any Kafka broker.
//!
//! Standard output has data only; everything else goes to standard error. A reader that closes the pipe ends a command quietly.

mod access;
pub mod args;
mod client;
mod compress;
mod config;
mod consume;
mod fetch;
mod groups;
mod member;
mod murmur2;
mod offsets;
mod produce;
mod show;
mod stream;
mod tls_words;
mod topics;

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::{CommandFactory as _, Parser as _};

use access::Access;
use args::{Cli, ClientArgs, Command};
use client::Client;

/// Why a command ends without having done what it was asked.
#[derive(Debug)]
pub enum Failure {
    /// Settings are wrong: one line each.
    Config(Vec<String>),
    /// It is told in words.
    Told(String),
    /// A broker cannot be connected to.
    Unreachable(String),
    /// A connection broke.
    Broken(String),
    /// The user asked to stop.
    Interrupted,
    /// Writing to standard output failed.
    Output(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::Output(error.into())
    }
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Self::Told(text)
    }
}

/// Reads the command line and does what it says. `serve` runs a broker until it is told to stop.
pub fn main(serve: impl FnOnce(crate::config::Config) -> Result<(), String>) -> ExitCode {
    // Wrong use ends here with exit code 2, help and version with 0.
    let cli = Cli::parse();
    let mut out = io::BufWriter::new(io::stdout().lock());
    let done = run(cli, serve, &mut out).and_then(|()| Ok(out.flush()?));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            // What is still buffered has no reader either.
            drop(out.into_parts());
            ExitCode::SUCCESS
        }
        Err(failure) => {
            tell(&failure);
            ExitCode::FAILURE
        }
    }
}

fn tell(failure: &Failure) {
    match failure {
        Failure::Config(problems) => {
            for problem in problems {
                eprintln!("skerry: {problem}");
            }
        }
        Failure::Told(text) | Failure::Unreachable(text) | Failure::Broken(text) => eprintln!("skerry: {text}"),
        Failure::Interrupted => {}
        Failure::Output(error) => eprintln!("skerry: cannot write to standard output: {error}"),
    }
}

fn run(
    cli: Cli,
    serve: impl FnOnce(crate::config::Config) -> Result<(), String>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let quiet = if matches!(cli.command, Command::Run(_)) {
        "info"
    } else {
        "warn"
    };
    let directives = cli
        .log_level
        .or_else(|| std::env::var("RUST_LOG").ok())
        .unwrap_or_else(|| quiet.into());
    crate::logging::start(&directives)?;
    match cli.command {
        Command::Run(args) => {
            let loaded = crate::config::from_process(args.settings.file.as_deref(), &args.settings.overrides)
                .map_err(Failure::Config)?;
            for notice in &loaded.notices {
                log::warn!(target: "skerry::config", "{notice}");
            }
            serve(loaded.config).map_err(Failure::Told)
        }
        Command::Config(args) => config::run(&args, out),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "skerry", &mut script);
            Ok(out.write_all(&script)?)
        }
        Command::Version { json } => {
            let version = env!("CARGO_PKG_VERSION");
            if json {
                show::json(out, &serde_json::json!({ "name": "skerry", "version": version }))?;
            } else {
                writeln!(out, "skerry {version}")?;
            }
            Ok(())
        }
        Command::Topics(command) => topics::run(&command, &mut client(command.client())?, out),
        Command::Groups(command) => groups::run(&command, &mut client(command.client())?, out),
        Command::Produce(args) => produce::run(&args, &mut client(&args.client)?, out),
        Command::Consume(args) => {
            let interrupted = interrupts().map_err(|error| format!("signals: {error}"))?;
            consume::run(&args, &mut Client::new(Access::of(&args.client)?, interrupted), out)
        }
    }
}

fn client(args: &ClientArgs) -> Result<Client, Failure> {
    Ok(Client::new(Access::of(args)?, Arc::default()))
}

/// Set by the first SIGINT or SIGTERM, so that a group member can commit and leave; the second one ends the process.
fn interrupts() -> io::Result<Arc<AtomicBool>> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&interrupted))?;
        signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
    }
    Ok(interrupted)
}
