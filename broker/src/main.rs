//! The `skerry` command.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    skerry_broker::cli::main(|config| {
        skerry_broker::startup::tell(&config, &[], &[]);
        Err("the broker is not wired in yet".into())
    })
}
