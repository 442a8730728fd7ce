//! A request's whole way through the broker, from the bytes received to the bytes sent, without a kernel: `path/what/size`.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use skerry_bench::broker::{Batch, Consumer, Producer, SHAPES, Script};
use skerry_bench::memory::InMemory;
use skerry_bench::server::topic_request;

const TOPIC: &str = "bench";

fn broker() -> InMemory {
    let mut broker = InMemory::new();
    broker.ask(&topic_request(TOPIC, 1));
    broker
}

fn producer(batch: &Batch) -> Producer {
    let mut producer = Producer::new(TOPIC, 0, 1, batch);
    producer.begin(1);
    producer
}

fn produce(c: &mut Criterion) {
    let mut group = c.benchmark_group("path/produce");
    for shape in SHAPES {
        let batch = shape.batch();
        let mut producer = producer(&batch);
        let mut broker = broker();
        broker.ask(producer.frame());
        producer.answer(broker.reply()).expect("the batch was taken");
        group.throughput(Throughput::Bytes(batch.bytes.len() as u64));
        group.bench_function(shape.name, |b| b.iter(|| broker.ask(producer.frame())));
    }
    group.finish();
}

fn fetch(c: &mut Criterion) {
    let mut group = c.benchmark_group("path/fetch");
    // The first is answered with the reply, the second from the file.
    for (name, shape, batches) in [("170B", SHAPES[3], 1), ("1MiB", SHAPES[1], 100)] {
        let batch = shape.batch();
        let mut broker = broker();
        let mut producer = Producer::new(TOPIC, 0, -1, &batch);
        producer.begin(1);
        for _ in 0..batches {
            broker.ask(producer.frame());
        }
        let mut consumer = Consumer::new(TOPIC, 0, 0, &batch);
        consumer.begin(1);
        let bytes = broker.ask(consumer.frame());
        group.throughput(Throughput::Bytes(bytes as u64));
        group.bench_function(name, |b| b.iter(|| broker.ask(consumer.frame())));
    }
    group.finish();
}

criterion_group!(benches, produce, fetch);
criterion_main!(benches);
