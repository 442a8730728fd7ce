//! The `skerry` command.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    skerry_broker::cli::main(skerry_broker::serve::serve)
}
