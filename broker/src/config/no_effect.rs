//! Kafka's settings that mean nothing here: accepted, so that a Kafka file can be used as it is, and told once with the
//! reason.
//!
//! Source: `AbstractKafkaConfig.CONFIG_DEF` of Kafka 4.4.0, and the names that earlier versions had.

/// Why a known Kafka setting has no effect. `None` for a name that is not one.
#[must_use]
pub fn reason(name: &str) -> Option<&'static str> {
    let exact = KEYS
        .iter()
        .find(|(_, names)| names.split_whitespace().any(|n| n == name));
    let prefixed = || PREFIXES.iter().find(|(_, prefix)| name.starts_with(prefix));
    exact.or_else(prefixed).map(|(why, _)| *why)
}

/// Why a setting of one listener has no effect: `name` is what follows `listener.name.<listener>.`, and is none of those that have one.
#[must_use]
pub fn listener_reason(name: &str) -> &'static str {
    reason(name).unwrap_or(if name.contains("sasl") {
        "there is no SASL in this release"
    } else {
        "of the settings of one listener, those of TLS alone have an effect"
    })
}

/// Every exact name with its reason.
pub fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    KEYS.iter()
        .flat_map(|(why, names)| names.split_whitespace().map(move |name| (name, *why)))
}

/// Names that end in something of the user's.
const PREFIXES: &[(&str, &str)] = &[
    ("there is no tiered storage", "rsm.config."),
    ("there is no tiered storage", "rlmm.config."),
    ("plug-in classes are Java's", "config.providers."),
    ("it belongs to another vendor's broker", "confluent."),
];

/// Reason and names.
const KEYS: &[(&str, &str)] = &[
    (
        "there is no ZooKeeper",
        "zookeeper.clientCnxnSocket zookeeper.connect zookeeper.connection.timeout.ms
         zookeeper.max.in.flight.requests zookeeper.metadata.migration.enable zookeeper.session.timeout.ms
         zookeeper.set.acl zookeeper.ssl.cipher.suites zookeeper.ssl.client.enable zookeeper.ssl.crl.enable
         zookeeper.ssl.enabled.protocols zookeeper.ssl.endpoint.identification.algorithm
         zookeeper.ssl.keystore.location zookeeper.ssl.keystore.password zookeeper.ssl.keystore.type
         zookeeper.ssl.ocsp.enable zookeeper.ssl.protocol zookeeper.ssl.truststore.location
         zookeeper.ssl.truststore.password zookeeper.ssl.truststore.type zookeeper.sync.time.ms",
    ),
    (
        "one node is the whole cluster: it has no controller quorum",
        "auto.leader.rebalance.enable broker.heartbeat.interval.ms broker.id.generation.enable
         broker.session.timeout.ms control.plane.listener.name controlled.shutdown.enable
         controlled.shutdown.max.retries controlled.shutdown.retry.backoff.ms
         controller.performance.always.log.threshold.ms controller.performance.sample.period.ms
         controller.quorum.append.linger.ms controller.quorum.auto.join.enable controller.quorum.bootstrap.servers
         controller.quorum.election.backoff.max.ms controller.quorum.election.timeout.ms
         controller.quorum.fetch.max.bytes controller.quorum.fetch.snapshot.max.bytes
         controller.quorum.fetch.timeout.ms controller.quorum.request.timeout.ms
         controller.quorum.retry.backoff.ms controller.quorum.voters controller.quota.window.num
         controller.quota.window.size.seconds controller.socket.timeout.ms early.start.listeners
         eligible.leader.replicas.enable initial.broker.registration.timeout.ms
         internal.metadata.delete.delay.millis internal.metadata.log.segment.bytes
         internal.metadata.max.batch.size.in.bytes leader.imbalance.check.interval.seconds
         leader.imbalance.per.broker.percentage metadata.log.dir metadata.log.max.record.bytes.between.snapshots
         metadata.log.max.snapshot.interval.ms metadata.log.segment.bytes metadata.log.segment.ms
         metadata.max.idle.interval.ms metadata.max.retention.bytes metadata.max.retention.ms process.roles
         reserved.broker.max.id server.max.startup.time.ms unclean.leader.election.enable
         unclean.leader.election.interval.ms",
    ),
    (
        "one node keeps the one replica of each partition",
        "alter.log.dirs.replication.quota.window.num alter.log.dirs.replication.quota.window.size.seconds
         cordoned.log.dirs default.replication.factor follower.fetch.last.tiered.offset.enable
         inter.broker.listener.name inter.broker.protocol.version log.dir.failure.timeout.ms min.insync.replicas
         num.replica.alter.log.dirs.threads num.replica.fetchers replica.fetch.backoff.ms replica.fetch.max.bytes
         replica.fetch.min.bytes replica.fetch.response.max.bytes replica.fetch.wait.max.ms
         replica.high.watermark.checkpoint.interval.ms replica.lag.time.max.ms replica.selector.class
         replica.socket.receive.buffer.bytes replica.socket.timeout.ms replication.quota.window.num
         replication.quota.window.size.seconds request.timeout.ms sasl.mechanism.inter.broker.protocol
         security.inter.broker.protocol socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms",
    ),
    (
        "one thread serves every connection, with no queue between its parts",
        "background.threads delete.records.purgatory.purge.interval.requests
         fetch.purgatory.purge.interval.requests num.io.threads num.network.threads
         num.recovery.threads.per.data.dir producer.purgatory.purge.interval.requests queued.max.request.bytes
         queued.max.requests share.fetch.purgatory.purge.interval.requests",
    ),
    (
        "committed offsets are kept in one metadata log, not in a topic",
        "group.coordinator.append.linger.ms group.coordinator.background.threads
         group.coordinator.cached.buffer.max.bytes group.coordinator.new.enable
         group.coordinator.rebalance.protocols group.coordinator.threads offsets.commit.required.acks
         offsets.commit.timeout.ms offsets.load.buffer.size offsets.retention.check.interval.ms
         offsets.topic.compression.codec offsets.topic.num.partitions offsets.topic.replication.factor
         offsets.topic.segment.bytes",
    ),
    (
        "there are no transactions in this release",
        "add.partitions.to.txn.retry.backoff.max.ms add.partitions.to.txn.retry.backoff.ms
         transaction.abort.timed.out.transaction.cleanup.interval.ms transaction.max.timeout.ms
         transaction.partition.verification.enable transaction.remove.expired.transaction.cleanup.interval.ms
         transaction.state.log.load.buffer.size transaction.state.log.min.isr transaction.state.log.num.partitions
         transaction.state.log.replication.factor transaction.state.log.segment.bytes
         transaction.two.phase.commit.enable transactional.id.expiration.ms",
    ),
    (
        "TLS is the broker's own, not Java's",
        "security.providers ssl.engine.factory.class ssl.keymanager.algorithm ssl.protocol ssl.provider
         ssl.secure.random.implementation ssl.trustmanager.algorithm",
    ),
    (
        "the broker checks names in no certificate: it makes no connections of its own",
        "ssl.endpoint.identification.algorithm",
    ),
    (
        "a new certificate may bear other names than the one before",
        "ssl.allow.dn.changes ssl.allow.san.changes",
    ),
    (
        "principals are built as Kafka's own builder does it",
        "principal.builder.class",
    ),
    (
        "there is no authentication or authorization in this release",
        "allow.everyone.if.no.acl.found authorizer.class.name connection.failed.authentication.delay.ms
         connections.max.reauth.ms delegation.token.expiry.check.interval.ms delegation.token.expiry.time.ms
         delegation.token.master.key delegation.token.max.lifetime.ms delegation.token.secret.key
         password.encoder.cipher.algorithm password.encoder.iterations password.encoder.key.length
         password.encoder.keyfactory.algorithm password.encoder.old.secret password.encoder.secret
         sasl.client.callback.handler.class sasl.enabled.mechanisms sasl.jaas.config
         sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin sasl.kerberos.principal.to.local.rules
         sasl.kerberos.service.name sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor
         sasl.login.callback.handler.class sasl.login.class sasl.login.connect.timeout.ms
         sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds
         sasl.login.refresh.window.factor sasl.login.refresh.window.jitter sasl.login.retry.backoff.max.ms
         sasl.login.retry.backoff.ms sasl.mechanism.controller.protocol sasl.oauthbearer.allow.unverified.audience
         sasl.oauthbearer.allow.unverified.issuer sasl.oauthbearer.assertion.algorithm
         sasl.oauthbearer.assertion.claim.aud sasl.oauthbearer.assertion.claim.exp.seconds
         sasl.oauthbearer.assertion.claim.iss sasl.oauthbearer.assertion.claim.jti.include
         sasl.oauthbearer.assertion.claim.nbf.seconds sasl.oauthbearer.assertion.claim.sub
         sasl.oauthbearer.assertion.file sasl.oauthbearer.assertion.private.key.file
         sasl.oauthbearer.assertion.private.key.passphrase sasl.oauthbearer.assertion.template.file
         sasl.oauthbearer.client.credentials.client.id sasl.oauthbearer.client.credentials.client.secret
         sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer
         sasl.oauthbearer.jwks.endpoint.refresh.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
         sasl.oauthbearer.jwks.endpoint.retry.backoff.ms sasl.oauthbearer.jwks.endpoint.url
         sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class sasl.oauthbearer.scope
         sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name sasl.oauthbearer.token.endpoint.url
         sasl.server.callback.handler.class sasl.server.max.receive.size super.users",
    ),
    (
        "there are no share groups",
        "errors.deadletterqueue.auto.create.topics.enable errors.deadletterqueue.topic.name.prefix
         group.share.assignment.interval.ms group.share.assignor.offload.enable group.share.assignors
         group.share.delivery.count.limit group.share.dlq.manager.class.name group.share.enable
         group.share.heartbeat.interval.ms group.share.initialize.retry.interval.ms
         group.share.max.assignment.interval.ms group.share.max.delivery.count.limit
         group.share.max.heartbeat.interval.ms group.share.max.partition.max.record.locks
         group.share.max.record.lock.duration.ms group.share.max.session.timeout.ms group.share.max.share.sessions
         group.share.max.size group.share.min.assignment.interval.ms group.share.min.delivery.count.limit
         group.share.min.heartbeat.interval.ms group.share.min.partition.max.record.locks
         group.share.min.record.lock.duration.ms group.share.min.session.timeout.ms
         group.share.partition.max.record.locks group.share.persister.class.name
         group.share.record.lock.duration.ms group.share.session.timeout.ms share.coordinator.append.linger.ms
         share.coordinator.cached.buffer.max.bytes share.coordinator.cold.partition.snapshot.interval.ms
         share.coordinator.load.buffer.size share.coordinator.snapshot.update.records.per.snapshot
         share.coordinator.state.topic.compression.codec share.coordinator.state.topic.min.isr
         share.coordinator.state.topic.num.partitions share.coordinator.state.topic.prune.interval.ms
         share.coordinator.state.topic.replication.factor share.coordinator.state.topic.segment.bytes
         share.coordinator.threads share.coordinator.write.timeout.ms",
    ),
    (
        "there are no groups of the Streams protocol",
        "group.streams.acceptable.recovery.lag group.streams.assignment.interval.ms
         group.streams.assignor.offload.enable group.streams.assignors group.streams.heartbeat.interval.ms
         group.streams.initial.rebalance.delay.ms group.streams.max.assignment.interval.ms
         group.streams.max.heartbeat.interval.ms group.streams.max.session.timeout.ms group.streams.max.size
         group.streams.max.standby.replicas group.streams.max.warmup.replicas
         group.streams.min.assignment.interval.ms group.streams.min.heartbeat.interval.ms
         group.streams.min.session.timeout.ms group.streams.min.task.offset.interval.ms
         group.streams.num.standby.replicas group.streams.num.warmup.replicas
         group.streams.rack.aware.assignment.tags group.streams.session.timeout.ms
         group.streams.task.offset.interval.ms group.streams.topology.description.plugin.class",
    ),
    (
        "groups use the classic protocol in this release",
        "group.consumer.assignment.interval.ms group.consumer.assignor.offload.enable group.consumer.assignors
         group.consumer.heartbeat.interval.ms group.consumer.max.assignment.interval.ms
         group.consumer.max.heartbeat.interval.ms group.consumer.max.session.timeout.ms group.consumer.max.size
         group.consumer.migration.policy group.consumer.min.assignment.interval.ms
         group.consumer.min.heartbeat.interval.ms group.consumer.min.session.timeout.ms
         group.consumer.regex.refresh.interval.ms group.consumer.session.timeout.ms",
    ),
    (
        "there is no tiered storage",
        "log.local.retention.bytes log.local.retention.ms log.remote.copy.lag.bytes log.remote.copy.lag.ms
         remote.fetch.max.wait.ms remote.list.offsets.request.timeout.ms
         remote.log.index.file.cache.total.size.bytes remote.log.index.file.cache.ttl.ms
         remote.log.manager.copier.thread.pool.size remote.log.manager.copy.max.bytes.per.second
         remote.log.manager.copy.quota.window.num remote.log.manager.copy.quota.window.size.seconds
         remote.log.manager.expiration.thread.pool.size remote.log.manager.fetch.max.bytes.per.second
         remote.log.manager.fetch.quota.window.num remote.log.manager.fetch.quota.window.size.seconds
         remote.log.manager.follower.thread.pool.size remote.log.manager.task.interval.ms
         remote.log.manager.task.retry.backoff.max.ms remote.log.manager.task.retry.backoff.ms
         remote.log.manager.task.retry.jitter remote.log.manager.thread.pool.size
         remote.log.metadata.custom.metadata.max.bytes remote.log.metadata.manager.class.name
         remote.log.metadata.manager.class.path remote.log.metadata.manager.impl.prefix
         remote.log.metadata.manager.listener.name remote.log.reader.max.pending.tasks remote.log.reader.threads
         remote.log.storage.manager.class.name remote.log.storage.manager.class.path
         remote.log.storage.manager.impl.prefix remote.log.storage.system.enable",
    ),
    (
        "there are no quotas",
        "client.quota.callback.class max.connection.creation.rate max.connections.per.ip
         max.connections.per.ip.overrides quota.consumer.default quota.producer.default quota.window.num
         quota.window.size.seconds",
    ),
    (
        "metrics are published without reporters",
        "auto.include.jmx.reporter kafka.csv.metrics.reporter.enabled kafka.metrics.polling.interval.secs
         kafka.metrics.reporters metric.reporters metrics.jmx.blacklist metrics.jmx.whitelist metrics.num.samples
         metrics.recording.level metrics.sample.window.ms telemetry.max.bytes",
    ),
    (
        "plug-in classes are Java's",
        "alter.config.policy.class.name config.providers create.topic.policy.class.name",
    ),
    (
        "it was replaced by listeners and advertised.listeners",
        "advertised.host.name advertised.port host.name port",
    ),
    (
        "record batches are kept as the producer compressed them",
        "compression.gzip.level compression.lz4.level compression.zstd.level max.decompressed.message.bytes",
    ),
    (
        "there is no cleaner thread",
        "log.cleaner.backoff.ms log.cleaner.dedupe.buffer.size log.cleaner.delete.retention.ms log.cleaner.enable
         log.cleaner.io.buffer.load.factor log.cleaner.io.buffer.size log.cleaner.io.max.bytes.per.second
         log.cleaner.max.compaction.lag.ms log.cleaner.min.cleanable.ratio log.cleaner.min.compaction.lag.ms
         log.cleaner.threads",
    ),
    (
        "records have one format, and their timestamps are not bounded",
        "log.message.downconversion.enable log.message.format.version log.message.timestamp.after.max.ms
         log.message.timestamp.before.max.ms log.message.timestamp.difference.max.ms",
    ),
    (
        "files grow as they are written, and a removed segment's file goes at once",
        "log.index.size.max.bytes log.initial.task.delay.ms log.preallocate log.roll.jitter.hours
         log.roll.jitter.ms log.segment.delete.delay.ms",
    ),
    (
        "skerry.flush, log.flush.interval.ms and skerry.checkpoint.bytes say when the disk is written",
        "log.flush.interval.messages log.flush.offset.checkpoint.interval.ms log.flush.scheduler.interval.ms
         log.flush.start.offset.checkpoint.interval.ms",
    ),
    (
        "idempotent producers are bounded by skerry.limits.producers",
        "producer.id.expiration.check.interval.ms producer.id.expiration.ms",
    ),
    (
        "the kernel's own sizes are used",
        "socket.listen.backlog.size socket.receive.buffer.bytes socket.send.buffer.bytes",
    ),
    (
        "the broker answers it in its own way",
        "max.incremental.fetch.session.cache.slots max.request.partition.size.limit unstable.api.versions.enable
         unstable.feature.versions.enable",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_name_is_said_twice_or_used() {
        let mut seen = HashSet::new();
        for (name, _) in all() {
            assert!(seen.insert(name), "{name}");
            assert!(super::super::keys::position(name).is_none(), "{name}");
        }
    }

    #[test]
    fn reasons_are_found_by_name_and_prefix() {
        assert_eq!(
            reason("process.roles"),
            Some("one node is the whole cluster: it has no controller quorum")
        );
        assert!(reason("rsm.config.x").is_some());
        assert_eq!(reason("process.role"), None);
    }
}
