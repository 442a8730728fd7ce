package skerry.interop;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.DescribeTopicsResult;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Apache Kafka's Java client against the broker, in whichever version is on the class path and named by {@code -Dkafka=}.
 *
 * <pre>
 * roundtrip [CODEC…]        produce, list, consume in a group, check all, delete
 * produce TOPIC COUNT MS    one record every MS milliseconds; prints each acknowledged place
 * member TOPIC GROUP        a group member that prints what it read and what it committed
 * </pre>
 */
public final class Interop {
    private static final String BOOTSTRAP = System.getenv("SKERRY_BOOTSTRAP");
    /**
     * The CA that the broker's certificate is from, PEM, which means TLS; and a certificate of our own with its key, PKCS#12: 2.8 takes no
     * PEM key that is not encrypted.
     */
    private static final String CA = System.getenv("SKERRY_CA");
    private static final String IDENTITY = System.getenv("SKERRY_IDENTITY_P12");
    private static final int RECORDS = Integer.parseInt(System.getenv().getOrDefault("RECORDS", "10000"));
    private static final List<String> CODECS = List.of("none", "gzip", "snappy", "lz4", "zstd");
    private static final int PARTITIONS = 3;
    private static final String CLIENT = "java-" + System.getProperty("kafka");

    /** A check that did not hold. */
    private static final class Failed extends RuntimeException {
        Failed(String message) {
            super(message);
        }
    }

    private static void expect(boolean holds, String otherwise, Object... with) {
        if (!holds) {
            throw new Failed(String.format(otherwise, with));
        }
    }

    /** One topic's worth of records: each is a pure function of its index, the codec and the first timestamp. */
    private static final class Plan {
        final String codec;
        final long firstMs = System.currentTimeMillis() - RECORDS;
        final String topic;
        final String group;
        final List<TopicPartition> partitions;

        Plan(String codec) {
            this.codec = codec;
            topic = CLIENT + "-" + codec + "-" + firstMs;
            group = topic + "-group";
            partitions = IntStream.range(0, PARTITIONS).mapToObj(p -> new TopicPartition(topic, p)).collect(Collectors.toList());
        }

        ProducerRecord<String, String> record(int index) {
            Headers headers = new RecordHeaders()
                .add("index", Integer.toString(index).getBytes())
                .add("codec", codec.getBytes())
                .add("index", "again".getBytes())
                .add("empty", new byte[0])
                .add("null", null);
            String value = "value-" + index + "-" + "skerry".repeat(index % 50);
            return new ProducerRecord<>(topic, null, firstMs + index, "key-" + index % 997, value, headers);
        }
    }

    private static Map<String, Object> with(Object... pairs) {
        Map<String, Object> config = new HashMap<>(Map.of("bootstrap.servers", BOOTSTRAP));
        if (CA != null) {
            config.putAll(Map.of(
                "security.protocol", "SSL", "ssl.truststore.type", "PEM", "ssl.truststore.location", CA));
        }
        if (IDENTITY != null) {
            config.putAll(Map.of("ssl.keystore.type", "PKCS12", "ssl.keystore.location", IDENTITY,
                "ssl.keystore.password", "changeit"));
        }
        for (int i = 0; i < pairs.length; i += 2) {
            config.put((String) pairs[i], pairs[i + 1]);
        }
        return config;
    }

    /** {@code listConsumerGroups} is to go after 4.x; 2.8 has no other. */
    @SuppressWarnings("removal")
    private static void roundtrip(Plan plan) throws Exception {
        try (Admin admin = Admin.create(with())) {
            admin.createTopics(List.of(new NewTopic(plan.topic, PARTITIONS, (short) 1))).all().get();
            int described = describe(admin, plan.topic).partitions().size();
            expect(described == PARTITIONS, "%d partitions in the description", described);
            var resource = new ConfigResource(ConfigResource.Type.TOPIC, plan.topic);
            ConfigEntry limit = admin.describeConfigs(List.of(resource)).all().get().get(resource).get("max.message.bytes");
            expect(limit != null && limit.isDefault(), "the topic's max.message.bytes is described as %s", limit);
            expect(admin.describeCluster().nodes().get().size() == 1, "the cluster has not one node");

            Map<TopicPartition, List<Integer>> acked = produce(plan);
            consume(plan, acked);

            var offsets = admin.listConsumerGroupOffsets(plan.group).partitionsToOffsetAndMetadata().get();
            acked.forEach((at, indexes) -> expect(
                offsets.get(at).offset() == indexes.size() && offsets.get(at).metadata().equals("half é way"),
                "%s: committed %s, read up to %d", at, offsets.get(at), indexes.size()));
            var state = admin.describeConsumerGroups(List.of(plan.group)).all().get().get(plan.group);
            expect(state.members().isEmpty(), "the group still has members: %s", state);
            boolean listed = admin.listConsumerGroups().all().get().stream().anyMatch(g -> g.groupId().equals(plan.group));
            expect(listed, "the group is not listed");
            admin.deleteConsumerGroups(List.of(plan.group)).all().get();
            admin.deleteTopics(List.of(plan.topic)).all().get();
            long deadline = System.nanoTime() + Duration.ofSeconds(30).toNanos();
            while (admin.listTopics().names().get().contains(plan.topic)) {
                expect(System.nanoTime() < deadline, "the topic is still listed after 30 s");
                Thread.sleep(100);
            }
        }
    }

    /** The result's method was renamed between 2.8 and 4.0, and neither has both names. */
    @SuppressWarnings("unchecked")
    private static TopicDescription describe(Admin admin, String topic) throws Exception {
        String method = CLIENT.startsWith("java-2.") ? "values" : "topicNameValues";
        long deadline = System.nanoTime() + Duration.ofSeconds(30).toNanos();
        while (true) {
            DescribeTopicsResult result = admin.describeTopics(List.of(topic));
            var values = (Map<String, KafkaFuture<TopicDescription>>) result.getClass().getMethod(method).invoke(result);
            try {
                return values.get(topic).get();
            } catch (ExecutionException error) {
                // Apache Kafka answers the creation before its brokers know of it.
                if (!(error.getCause() instanceof UnknownTopicOrPartitionException) || System.nanoTime() > deadline) {
                    throw error;
                }
            }
        }
    }

    /** Sends the plan; answers, for each partition, the record index at each offset. */
    private static Map<TopicPartition, List<Integer>> produce(Plan plan) throws Exception {
        var config = with("compression.type", plan.codec, "linger.ms", 20, "enable.idempotence", true, "acks", "all");
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (var producer = new KafkaProducer<>(config, new StringSerializer(), new StringSerializer())) {
            for (int index = 0; index < RECORDS; index++) {
                sent.add(producer.send(plan.record(index)));
            }
        }
        Map<TopicPartition, Map<Long, Integer>> places = new HashMap<>();
        for (int index = 0; index < RECORDS; index++) {
            RecordMetadata at = sent.get(index).get();
            expect(at.timestamp() == plan.firstMs + index, "record %d was acknowledged with timestamp %d", index, at.timestamp());
            Integer before = places.computeIfAbsent(new TopicPartition(at.topic(), at.partition()), p -> new HashMap<>()).put(at.offset(), index);
            expect(before == null, "records %d and %d were acknowledged at one place", before, index);
        }
        Map<TopicPartition, List<Integer>> acked = new HashMap<>();
        places.forEach((at, byOffset) -> acked.put(at, IntStream.range(0, byOffset.size()).mapToObj(n -> {
            expect(byOffset.containsKey((long) n), "%s: no record was acknowledged at offset %d", at, n);
            return byOffset.get((long) n);
        }).collect(Collectors.toList())));
        return acked;
    }

    private static void consume(Plan plan, Map<TopicPartition, List<Integer>> acked) {
        var config = with("group.id", plan.group, "auto.offset.reset", "earliest", "enable.auto.commit", false);
        try (var consumer = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(plan.topic));
            Map<TopicPartition, Long> following = new HashMap<>();
            long deadline = System.nanoTime() + Duration.ofSeconds(90).toNanos();
            for (int read = 0; read < RECORDS; ) {
                expect(System.nanoTime() < deadline, "%d records read of %d after 90 s", read, RECORDS);
                for (ConsumerRecord<String, String> got : consumer.poll(Duration.ofMillis(500))) {
                    check(plan, acked, following, got);
                    read++;
                }
            }
            consumer.commitSync(following.entrySet().stream().collect(Collectors.toMap(
                Map.Entry::getKey, e -> new OffsetAndMetadata(e.getValue(), "half é way"))));

            consumer.beginningOffsets(plan.partitions).forEach((at, offset) -> expect(offset == 0, "%s begins at %d", at, offset));
            consumer.endOffsets(plan.partitions).forEach((at, offset) ->
                expect(offset == acked.getOrDefault(at, List.of()).size(), "%s ends at %d", at, offset));
            int middle = RECORDS / 2;
            acked.forEach((at, indexes) -> {
                int offset = indexes.indexOf(middle);
                if (offset >= 0) {
                    OffsetAndTimestamp found = consumer.offsetsForTimes(Map.of(at, plan.firstMs + middle)).get(at);
                    expect(found.offset() == offset && found.timestamp() == plan.firstMs + middle,
                        "record %d is at %s/%d; by its timestamp %s was found", middle, at, offset, found);
                }
            });
        }
    }

    private static void check(Plan plan, Map<TopicPartition, List<Integer>> acked, Map<TopicPartition, Long> following,
                              ConsumerRecord<String, String> got) {
        var at = new TopicPartition(got.topic(), got.partition());
        long wanted = following.getOrDefault(at, 0L);
        expect(got.offset() == wanted, "%s: offset %d came where %d was next", at, got.offset(), wanted);
        following.put(at, wanted + 1);
        expect(got.offset() < acked.getOrDefault(at, List.of()).size(), "nothing was acknowledged at %s/%d", at, got.offset());
        int index = acked.get(at).get((int) got.offset());
        var want = plan.record(index);
        expect(got.key().equals(want.key()), "key of record %d at %s/%d: %s", index, at, got.offset(), got.key());
        expect(got.value().equals(want.value()), "value of record %d at %s/%d: %s", index, at, got.offset(), got.value());
        expect(got.timestamp() == want.timestamp(), "timestamp of record %d at %s/%d: %d", index, at, got.offset(), got.timestamp());
        expect(Arrays.equals(got.headers().toArray(), want.headers().toArray()), "headers of record %d at %s/%d: %s", index, at, got.offset(), got.headers());
    }

    private static void produceSlowly(String topic, int count, int pauseMs) throws Exception {
        try (var producer = new KafkaProducer<>(with(), new StringSerializer(), new StringSerializer())) {
            for (int index = 0; index < count; index++) {
                RecordMetadata at = producer.send(new ProducerRecord<>(topic, "key-" + index, "value-" + index)).get();
                System.out.println("acked " + at.partition() + " " + at.offset());
                Thread.sleep(pauseMs);
            }
        }
    }

    private static void member(String topic, String group) {
        var config = with("group.id", group, "auto.offset.reset", "earliest", "enable.auto.commit", false, "max.poll.records", 50,
            "session.timeout.ms", 6000, "heartbeat.interval.ms", 500,
            "partition.assignment.strategy", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");
        try (var consumer = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic));
            while (true) {
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(200));
                Map<TopicPartition, OffsetAndMetadata> ends = new HashMap<>();
                for (ConsumerRecord<String, String> got : records) {
                    System.out.println("read " + got.partition() + " " + got.offset());
                    ends.put(new TopicPartition(topic, got.partition()), new OffsetAndMetadata(got.offset() + 1));
                }
                try {
                    consumer.commitSync(ends);
                    ends.forEach((at, end) -> System.out.println("committed " + at.partition() + " " + end.offset()));
                } catch (CommitFailedException | RebalanceInProgressException error) {
                    System.out.println("note " + error.getMessage());
                }
            }
        }
    }

    private static int roundtrips(List<String> codecs) {
        int failed = 0;
        for (String codec : codecs) {
            long began = System.nanoTime();
            try {
                roundtrip(new Plan(codec));
                System.out.printf("ok   %s %s: %d records in %.1f s%n", CLIENT, codec, RECORDS, (System.nanoTime() - began) / 1e9);
            } catch (Exception error) {
                failed++;
                System.out.printf("FAIL %s %s: %s%n", CLIENT, codec, error);
            }
        }
        System.out.printf("%d passed, %d failed%n", codecs.size() - failed, failed);
        return failed;
    }

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "roundtrip":
                List<String> chosen = List.of(args).subList(1, args.length);
                System.exit(roundtrips(chosen.isEmpty() ? CODECS : chosen) == 0 ? 0 : 1);
                break;
            case "produce":
                produceSlowly(args[1], Integer.parseInt(args[2]), Integer.parseInt(args[3]));
                break;
            case "member":
                member(args[1], args[2]);
                break;
            default:
                throw new IllegalArgumentException("unknown mode " + args[0]);
        }
    }
}
