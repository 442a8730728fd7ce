"""kafka-python against the broker.

  kafka_python.py roundtrip [CODEC…]     produce, list, consume in a group, check all, delete
"""

import sys

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic

from plan import BOOTSTRAP, CA, IDENTITY, PARTITIONS, RECORDS, expect, roundtrips, until

COMMON = {"bootstrap_servers": BOOTSTRAP}
if CA:
    COMMON |= {"security_protocol": "SSL", "ssl_cafile": CA}
if IDENTITY:
    COMMON |= {"ssl_certfile": IDENTITY}


def roundtrip(plan):
    admin = KafkaAdminClient(**COMMON)
    admin.create_topics([NewTopic(name=plan.topic, num_partitions=PARTITIONS, replication_factor=1)])
    described = admin.describe_topics([plan.topic])[0]
    expect(len(described["partitions"]) == PARTITIONS, f"the description: {described}")

    acked = produce(plan)
    consumer = KafkaConsumer(
        plan.topic, **COMMON, group_id=plan.group, auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    following = plan.check(acked, read_all(consumer))
    consumer.commit()
    partitions = [TopicPartition(plan.topic, p) for p in range(PARTITIONS)]
    committed = {p.partition: consumer.committed(p) for p in partitions if p.partition in following}
    expect(committed == following, f"committed {committed}, read up to {following}")

    list_offsets(consumer, plan, partitions, acked, following)
    consumer.close()
    groups(admin, plan)
    admin.delete_topics([plan.topic])
    for _ in until(30, "the topic is gone"):
        if plan.topic not in admin.list_topics():
            break
    admin.close()


def produce(plan):
    producer = KafkaProducer(
        **COMMON, linger_ms=20, compression_type=None if plan.codec == "none" else plan.codec,
    )
    sent = [
        producer.send(
            plan.topic, plan.value(index), plan.key(index),
            headers=plan.headers(index), timestamp_ms=plan.timestamp(index),
        )
        for index in range(RECORDS)
    ]
    acked = {}
    for index, future in enumerate(sent):
        at = future.get(60)
        acked[index] = (at.partition, at.offset)
    producer.close()
    return acked


def read_all(consumer):
    read = []
    for _ in until(90, "every record is read"):
        for messages in consumer.poll(500).values():
            read += [(m.partition, m.offset, m.key, m.value, m.headers, m.timestamp) for m in messages]
        if len(read) >= RECORDS:
            return read


def list_offsets(consumer, plan, partitions, acked, following):
    earliest = consumer.beginning_offsets(partitions)
    expect(set(earliest.values()) == {0}, f"earliest {earliest}")
    latest = {p.partition: n for p, n in consumer.end_offsets(partitions).items() if n}
    expect(latest == following, f"latest {latest}, not {following}")
    middle = RECORDS // 2
    partition, offset = acked[middle]
    at = TopicPartition(plan.topic, partition)
    found = consumer.offsets_for_times({at: plan.timestamp(middle)})[at]
    expect((found.offset, found.timestamp) == (offset, plan.timestamp(middle)), f"record {middle} is at {offset}; by its timestamp {found}")


def groups(admin, plan):
    described = admin.describe_groups([plan.group])[plan.group]
    expect(described["group_state"] == "Empty", f"the group's description: {described}")
    expect(plan.group in [g["group_id"] for g in admin.list_groups()], "the group is not listed")
    admin.delete_groups([plan.group])


if __name__ == "__main__":
    expect(sys.argv[1] == "roundtrip", __doc__)
    # This client refuses to send a header whose value is null.
    roundtrips("kafka-python", roundtrip, null_header=False)
