"""confluent-kafka (librdkafka) against the broker.

  confluent.py roundtrip [CODEC…]        produce, list, consume in a group, check all, delete
  confluent.py produce TOPIC COUNT MS    one record every MS milliseconds; prints each acknowledged place
  confluent.py member TOPIC GROUP        a group member that prints what it read and what it committed
"""

import sys

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, OffsetSpec

from plan import PARTITIONS, RECORDS, expect, librdkafka, roundtrips, until

COMMON = librdkafka()


def roundtrip(plan):
    admin = AdminClient(COMMON)
    admin.create_topics([NewTopic(plan.topic, PARTITIONS, 1)])[plan.topic].result(30)
    described = admin.list_topics(plan.topic, 30).topics[plan.topic]
    expect(len(described.partitions) == PARTITIONS, f"{len(described.partitions)} partitions in the description")

    resource = ConfigResource(ConfigResource.Type.TOPIC, plan.topic)
    limit = admin.describe_configs([resource])[resource].result(30)["max.message.bytes"]
    expect(limit.is_default, f"the topic's max.message.bytes is described as {limit}, source {limit.source}")

    acked = produce(plan)
    read, committed = consume(plan)
    following = plan.check(acked, read)
    expect(committed == following, f"committed {committed}, read up to {following}")

    list_offsets(admin, plan, acked, following)
    groups(admin, plan)
    admin.delete_topics([plan.topic])[plan.topic].result(30)
    for _ in until(30, "the topic is gone"):
        if plan.topic not in admin.list_topics(timeout=30).topics:
            break


def produce(plan):
    acked = {}

    def delivered(index):
        def on(error, message):
            if error:
                raise KafkaException(error)
            acked[index] = (message.partition(), message.offset())

        return on

    producer = Producer(COMMON | {"enable.idempotence": True, "compression.type": plan.codec, "linger.ms": 20})
    for index in range(RECORDS):
        producer.produce(
            plan.topic, plan.value(index), plan.key(index),
            on_delivery=delivered(index), timestamp=plan.timestamp(index), headers=plan.headers(index),
        )
        producer.poll(0)
    expect(producer.flush(60) == 0, "records were left unsent")
    return acked


def consume(plan):
    consumer = Consumer(COMMON | {"group.id": plan.group, "auto.offset.reset": "earliest", "enable.auto.commit": False})
    consumer.subscribe([plan.topic])
    read = []
    for _ in until(90, "every record is read"):
        for m in consumer.consume(1000, 0.5):
            if m.error():
                raise KafkaException(m.error())
            read.append((m.partition(), m.offset(), m.key(), m.value(), m.headers(), m.timestamp()[1]))
        if len(read) >= RECORDS:
            break
    consumer.commit(asynchronous=False)
    partitions = consumer.committed([TopicPartition(plan.topic, p) for p in range(PARTITIONS)], 30)
    consumer.close()
    return read, {p.partition: p.offset for p in partitions if p.offset >= 0}


def list_offsets(admin, plan, acked, following):
    def ask(spec):
        wanted = {TopicPartition(plan.topic, p): spec for p in range(PARTITIONS)}
        return {p.partition: f.result(30).offset for p, f in admin.list_offsets(wanted).items()}

    expect(ask(OffsetSpec.earliest()) == {p: 0 for p in range(PARTITIONS)}, "the earliest offsets are not 0")
    latest = {p: n for p, n in ask(OffsetSpec.latest()).items() if n}
    expect(latest == following, f"latest {latest}, not {following}")
    middle = RECORDS // 2
    partition, offset = acked[middle]
    found = ask(OffsetSpec.for_timestamp(plan.timestamp(middle)))[partition]
    expect(found == offset, f"record {middle} is at {partition}/{offset}; by its timestamp {found} was found")


def groups(admin, plan):
    described = admin.describe_consumer_groups([plan.group])[plan.group].result(30)
    expect(described.group_id == plan.group and not described.members, f"the group's description: {described}")
    listed = [g.group_id for g in admin.list_consumer_groups().result(30).valid]
    expect(plan.group in listed, "the group is not listed")
    admin.delete_consumer_groups([plan.group])[plan.group].result(30)


def produce_slowly(topic, count, pause_ms):
    def on(error, message):
        if error:
            raise KafkaException(error)
        print("acked", message.partition(), message.offset(), flush=True)

    producer = Producer(COMMON | {"enable.idempotence": True})
    for index in range(count):
        producer.produce(topic, f"value-{index}".encode(), f"key-{index}".encode(), on_delivery=on)
        producer.poll(pause_ms / 1000)
    expect(producer.flush(60) == 0, "records were left unsent")


def member(topic, group):
    consumer = Consumer(COMMON | {
        "group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False,
        "session.timeout.ms": 6000, "heartbeat.interval.ms": 500, "topic.metadata.refresh.interval.ms": 1000,
        "partition.assignment.strategy": "cooperative-sticky",
    })
    consumer.subscribe([topic])
    while True:
        ends = {}
        for m in consumer.consume(50, 0.2):
            if m.error():
                print("note", m.error(), flush=True)
                continue
            print("read", m.partition(), m.offset(), flush=True)
            ends[m.partition()] = m.offset() + 1
        if not ends:
            continue
        try:
            done = consumer.commit(offsets=[TopicPartition(topic, p, o) for p, o in ends.items()], asynchronous=False)
        except KafkaException as error:
            print("note", error, flush=True)
            continue
        for p in done:
            if p.error is None:
                print("committed", p.partition, p.offset, flush=True)


if __name__ == "__main__":
    match sys.argv[1]:
        case "roundtrip":
            roundtrips("confluent-kafka", roundtrip)
        case "produce":
            produce_slowly(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
        case "member":
            member(sys.argv[2], sys.argv[3])
