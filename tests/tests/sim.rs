//! The simulator over many seeds.
//!
//! `SKERRY_SEED=<n>` runs that one, with the broker's own log; `SKERRY_SEEDS=<count>` runs so many, from `SKERRY_SEED_FROM` on.
#![forbid(unsafe_code)]

use std::env;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use skerry_tests::sim::{self, Report};

fn number(name: &str) -> Option<u64> {
    env::var(name)
        .ok()
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

/// How to see a seed fail again.
fn replay(seed: u64) -> String {
    format!("SKERRY_SEED={seed} cargo test -p skerry-tests --test sim -- --nocapture")
}

#[test]
fn every_promise_holds_in_every_simulation() {
    if let Some(seed) = number("SKERRY_SEED") {
        skerry_broker::logging::start("debug").expect("a level");
        println!("{:#?}", sim::scenario(seed));
        println!("{:#?}", sim::run(seed));
        return;
    }
    let first = number("SKERRY_SEED_FROM").unwrap_or(0);
    let count = number("SKERRY_SEEDS").unwrap_or(20);
    let next = AtomicU64::new(first);
    let failed = Mutex::new(Vec::new());
    let total = Mutex::new(Report::default());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count {
                        break;
                    }
                    match catch_unwind(|| sim::run(seed)) {
                        Ok(report) => {
                            let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
                            total.acked += report.acked;
                            total.seen += report.seen;
                            total.lives += report.lives;
                            total.passes += report.passes;
                            total.millis += report.millis;
                        }
                        Err(_) => {
                            eprintln!("seed {seed} failed; again with: {}", replay(seed));
                            failed.lock().unwrap_or_else(PoisonError::into_inner).push(seed);
                        }
                    }
                }
            });
        }
    });
    let total = total.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("{count} seeds: {total:?}");
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert!(
        failed.is_empty(),
        "{} of {count} seeds failed, the first again with: {}",
        failed.len(),
        replay(failed[0])
    );
    // That nothing went wrong says little if nothing happened.
    assert!(
        total.acked > count && total.seen > count && total.lives > 2 * count,
        "{total:?}"
    );
}

#[test]
fn a_seed_gives_the_same_simulation_again() {
    let seed = number("SKERRY_SEED").unwrap_or(7);
    assert_eq!(sim::run(seed), sim::run(seed));
}
