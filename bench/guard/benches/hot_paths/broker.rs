//! The broker: the log alone, and a request's whole way from the bytes received to the bytes sent.

use std::hint::black_box;

use gungraun::prelude::*;
use skerry_bench::broker::{Batch, Consumer, Producer, SHAPES, Script};
use skerry_bench::log::one_log;
use skerry_bench::memory::{InMemory, Memory};
use skerry_bench::server::topic_request;
use skerry_broker::ids::PartitionIx;
use skerry_broker::log::{AppendParams, Logs};
use skerry_core::record;
use skerry_core::time::{Instant, Timestamp};

use crate::held::held;

const TOPIC: &str = "bench";

/// A log of one partition in memory that has begun, and the next batch.
pub struct Log {
    host: Memory,
    logs: Logs,
    ix: PartitionIx,
    batch: Batch,
}

impl Log {
    fn append(&mut self) {
        let params = AppendParams {
            now: Instant::from_micros(1_000_000),
            wall: Timestamp(1_700_000_000_000),
            leader_epoch: 0,
        };
        let batch = record::Batch::only(&self.batch.bytes).expect("one batch");
        let done = self.logs.append(&mut self.host, self.ix, &batch, &params);
        black_box(done.expect("an append"));
    }
}

fn log(shape: usize) -> Log {
    let mut host = Memory::new();
    let (logs, ix) = one_log(&mut host);
    let mut log = Log {
        host,
        logs,
        ix,
        batch: SHAPES[shape].batch(),
    };
    // The first makes the files; what follows is what is always done.
    log.append();
    log
}

#[library_benchmark]
#[bench::kb16(args = (0), setup = log, config = held("append/kb16"))]
#[bench::b170(args = (3), setup = log, config = held("append/b170"))]
fn append(mut log: Log) -> Log {
    log.append();
    log
}

/// A broker that has answered such requests already, and the next.
pub struct Asked {
    broker: InMemory,
    frame: Vec<u8>,
}

fn producing(shape: usize) -> Asked {
    let mut broker = InMemory::new();
    broker.ask(&topic_request(TOPIC, 1));
    let mut producer = Producer::new(TOPIC, 0, 1, &SHAPES[shape].batch());
    producer.begin(1);
    broker.ask(producer.frame());
    Asked {
        frame: producer.frame().to_vec(),
        broker,
    }
}

fn fetching((shape, batches): (usize, usize)) -> Asked {
    let mut broker = InMemory::new();
    broker.ask(&topic_request(TOPIC, 1));
    let batch = SHAPES[shape].batch();
    let mut producer = Producer::new(TOPIC, 0, -1, &batch);
    producer.begin(1);
    for _ in 0..batches {
        broker.ask(producer.frame());
    }
    let mut consumer = Consumer::new(TOPIC, 0, 0, &batch);
    consumer.begin(1);
    broker.ask(consumer.frame());
    Asked {
        frame: consumer.frame().to_vec(),
        broker,
    }
}

impl Asked {
    fn run(mut self) -> Self {
        assert!(self.broker.ask(black_box(&self.frame)) > 0);
        self
    }
}

#[library_benchmark]
#[bench::kb16(args = (0), setup = producing, config = held("produce/kb16"))]
#[bench::b170(args = (3), setup = producing, config = held("produce/b170"))]
fn produce(asked: Asked) -> Asked {
    asked.run()
}

#[library_benchmark]
#[bench::mib1(args = ((1, 100)), setup = fetching, config = held("fetch/mib1"))]
#[bench::b170(args = ((3, 1)), setup = fetching, config = held("fetch/b170"))]
fn fetch(asked: Asked) -> Asked {
    asked.run()
}
