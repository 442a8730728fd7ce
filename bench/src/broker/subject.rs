//! Who is measured: Skerry, started anew for each case, and any broker that runs already.

use std::path::PathBuf;

use super::{Args, Case};
use crate::server::{Server, binary};

/// The slow flush of those cases that have one.
const SLOW_FLUSH: &str = "skerry.test.flush.delay.ms=20";

/// One broker.
#[derive(Clone, Debug)]
pub enum Subject {
    /// Skerry.
    Skerry(PathBuf),
    /// Another, or a Skerry that somebody else started.
    Running(String),
}

impl Subject {
    /// Those that are asked for. Each case is measured with all of them, one right after the other.
    pub fn all(args: &Args) -> Vec<Self> {
        let running = args.against.clone().map(Self::Running);
        let skerry = (running.is_none() || args.skerry.is_some()).then(|| Self::Skerry(binary(args.skerry.as_deref())));
        skerry.into_iter().chain(running).collect()
    }

    /// Its name in reports.
    pub fn name(&self) -> &str {
        match self {
            Self::Skerry(_) => "skerry",
            Self::Running(address) => address,
        }
    }

    /// The broker, ready for one case.
    ///
    /// Errors: it cannot be started or found.
    pub fn server(&self, args: &Args, case: &Case) -> Result<Server, String> {
        match self {
            Self::Skerry(program) => {
                let processor = usize::try_from(args.processor).ok();
                let slow = case.slow.then_some(SLOW_FLUSH);
                let overrides: Vec<&str> = args.overrides.iter().map(String::as_str).chain(slow).collect();
                match args.tls {
                    Some(_) => Server::start_with_tls(program, &overrides, processor),
                    None => Server::start(program, &overrides, processor),
                }
            }
            Self::Running(address) => {
                let tls = args.tls.as_ref().and_then(Option::as_deref);
                Server::running(address, tls, args.pid)
            }
        }
    }
}
