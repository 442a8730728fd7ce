//! The load of frames that are made once: it takes so little of the processor that what is seen is the broker.

use std::time::Duration;

use super::engine::{Engine, Pace, Plan, Script};
use super::script::{Consumer, FETCH_BYTES, Producer};
use super::{Args, Case, Runs, What};
use crate::server::Server;
use skerry_tests::tls::Target;

/// Bytes that are there to be fetched.
const FETCHED_BYTES: u64 = 256 << 20;

/// Measures one case on a topic that is there.
///
/// Errors: the broker's, or a broken connection.
pub fn measure(args: &Args, case: &Case, server: &Server, topic: &str, partitions: i32) -> Result<Runs, String> {
    let target = server.target(case.is_tls)?;
    let batch = case.shape.batch();
    let producers = |acks| (0..partitions).map(|p| Producer::new(topic, p, acks, &batch)).collect();
    // Records of a request.
    let per_produce = batch.records as f64;
    match case.what {
        What::Produce { acks } => both(args, server, target, producers(acks), args.in_flight, per_produce),
        What::Fetch => {
            let fill = Plan {
                pace: Pace::Closed,
                in_flight: args.in_flight,
                time: Duration::from_secs(60),
                bytes_max: FETCHED_BYTES,
            };
            Engine::connect(server.address, producers(-1), None)?.run(&fill)?;
            let scripts = (0..partitions).map(|p| Consumer::new(topic, p, 500, &batch)).collect();
            let per_fetch = per_produce * (f64::from(FETCH_BYTES) / batch.bytes.len() as f64).max(1.0);
            both(args, server, target, scripts, 1, per_fetch)
        }
        What::Deliver => Err("deliver wants --client librdkafka".into()),
    }
}

/// As fast as it goes, where no rate is given; then at the rate, or at half of what was reached.
fn both<S: Script>(
    args: &Args,
    server: &Server,
    target: Target,
    scripts: Vec<S>,
    in_flight: usize,
    records_per_request: f64,
) -> Result<Runs, String> {
    let mut engine = Engine::connect(target, scripts, server.pid)?;
    let time = Duration::from_secs_f64(args.seconds);
    let plan = |pace, time| Plan {
        pace,
        in_flight,
        time,
        bytes_max: args.bytes_max,
    };
    let given = args.rate.map(|records| records / records_per_request);
    let warm_pace = given.map_or(Pace::Closed, Pace::Open);
    let warm = engine.run(&plan(warm_pace, Duration::from_secs_f64(args.warm_up_seconds())))?;
    let closed = match given {
        Some(_) => None,
        None => Some(engine.run(&plan(Pace::Closed, time))?),
    };
    let half = closed.as_ref().map(|run| run.requests as f64 / run.seconds / 2.0);
    let rate = given.or(half).ok_or("no rate")?;
    let paced = engine.run(&plan(Pace::Open(rate), time))?;
    Ok(Runs {
        bytes: warm.work.bytes + closed.as_ref().map_or(0, |run| run.work.bytes) + paced.work.bytes,
        closed,
        paced: Some(paced),
    })
}
