//! What a tool is told by Kafka's `--command-config`: a `client.properties` file, read as Kafka's own tools read it.
//!
//! The brokers, the protocol and the `ssl.` settings count; those of stores, versions and suites are the broker's own, read by the same code.
//! What else Kafka's clients know is accepted; what nobody knows is told once, and left aside.

use super::keys::KEYS;
use super::load::{Gathered, ListenerSettings, Problem, Source, near};
use super::tls::{self, ClientTls};

/// What a tool is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientConfig {
    /// `bootstrap.servers`.
    pub bootstrap: Option<String>,
    /// `client.id`.
    pub client_id: Option<String>,
    /// TLS, with `security.protocol=SSL`.
    pub tls: Option<ClientTls>,
}

/// Settings of the broker's that a client has as well.
fn is_shared(name: &str) -> bool {
    let of_broker = ["ssl.client.auth", "ssl.principal.mapping.rules"];
    name.starts_with("ssl.") && !of_broker.contains(&name) && KEYS.iter().any(|key| key.name == name)
}

/// Reads the text of the file called `name`. Beside the result stands what is worth telling, one line each.
///
/// Errors: one line for each thing that is wrong, naming where, the key, the value and what is allowed.
pub fn read(name: &str, text: &str) -> Result<(ClientConfig, Vec<String>), Vec<String>> {
    let mut gathered = Gathered::new();
    let mut config = ClientConfig::default();
    let (mut is_ssl, mut checks_names) = (false, true);
    let (mut shared, mut strange) = (Vec::new(), Vec::new());
    for entry in gathered.entries(name, text) {
        let source = Source::File(name.into(), entry.line);
        let value = entry.value.trim();
        let some = || (!value.is_empty()).then(|| value.to_owned());
        let refuse = |why: &str| Problem::at(&source, format!("{source}: {}={value}: {why}", entry.key));
        match entry.key.as_str() {
            "bootstrap.servers" => config.bootstrap = some(),
            "client.id" => config.client_id = some(),
            "security.protocol" => match value.to_ascii_uppercase().as_str() {
                "PLAINTEXT" => is_ssl = false,
                "SSL" => is_ssl = true,
                "SASL_PLAINTEXT" | "SASL_SSL" => gathered
                    .problems
                    .push(refuse("SASL is not spoken here; allowed: PLAINTEXT | SSL")),
                _ => gathered.problems.push(refuse("allowed: PLAINTEXT | SSL")),
            },
            "ssl.endpoint.identification.algorithm" => match value.to_ascii_lowercase().as_str() {
                "https" => checks_names = true,
                "" => checks_names = false,
                _ => gathered
                    .problems
                    .push(refuse("allowed: https, or nothing, which lets a broker have any name")),
            },
            key if is_shared(key) => {
                shared.push(format!("{key} (line {})", entry.line));
                gathered.set(key, value, source);
            }
            key if is_known(key) => log::info!("{source}: {key} has no effect here"),
            key => strange.push(format!("{key} (line {}{})", entry.line, meant(key))),
        }
    }
    let texts = gathered.texts();
    let Gathered {
        settings,
        mut problems,
        mut notices,
        ..
    } = gathered;
    if is_ssl {
        let own = ListenerSettings::of("", &settings);
        let values = own.read(&texts);
        match values.map(|values| tls::read_client(&values, checks_names, &|key| own.place(key))) {
            Some(Ok((read, told))) => {
                notices.extend(told.iter().filter_map(|remark| own.sentence(remark)));
                config.tls = Some(read);
            }
            Some(Err(wrong)) => problems.extend(wrong.iter().filter_map(|remark| own.problem(remark))),
            None => {}
        }
    } else if !shared.is_empty() {
        let names = shared.join(", ");
        notices.push(format!(
            "{name}: {names}: without effect, as security.protocol is not SSL: nothing is encrypted"
        ));
    }
    if !strange.is_empty() {
        let names = strange.join(", ");
        notices.push(format!(
            "{name}: no client has these settings, which are left aside: {names}"
        ));
    }
    if problems.is_empty() {
        return Ok((config, notices));
    }
    let mut sentences = Problem::sentences(problems);
    for sentence in &mut sentences {
        // What is missing stands on no line.
        if !sentence.starts_with(name) {
            sentence.insert_str(0, &format!("{name}: "));
        }
    }
    Err(sentences)
}

/// `; did you mean …?` where it is known what was meant.
fn meant(key: &str) -> String {
    // librdkafka's names of the same.
    let ours = match key {
        "ssl.ca.location" => "ssl.truststore.location",
        "ssl.ca.pem" => "ssl.truststore.certificates",
        "ssl.certificate.location" | "ssl.key.location" => "ssl.keystore.location",
        "ssl.certificate.pem" => "ssl.keystore.certificate.chain",
        "ssl.key.pem" => "ssl.keystore.key",
        "metadata.broker.list" => "bootstrap.servers",
        _ => {
            let shared = KEYS.iter().map(|key| key.name).filter(|name| is_shared(name));
            let own = [
                "bootstrap.servers",
                "security.protocol",
                "ssl.endpoint.identification.algorithm",
            ];
            return near(key, shared.chain(own));
        }
    };
    format!("; did you mean {ours}?")
}

/// Whether Kafka's clients have a setting of that name, which has no effect here.
fn is_known(name: &str) -> bool {
    KNOWN_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) || KNOWN.split_whitespace().any(|known| known == name)
}

/// Of settings that belong together. A group of a broker's is none of them.
const KNOWN_PREFIXES: [&str; 4] = ["sasl.", "metrics.", "metric.", "print."];

/// Settings of Kafka's admin client, producer, consumer, and their console tools.
const KNOWN: &str = "
    acks allow.auto.create.topics auto.commit.interval.ms auto.include.jmx.reporter auto.offset.reset batch.size
    bootstrap.controllers buffer.memory check.crcs client.dns.lookup client.rack compression.gzip.level compression.lz4.level
    compression.type compression.zstd.level config.providers connections.max.idle.ms default.api.timeout.ms delivery.timeout.ms
    enable.auto.commit enable.idempotence enable.metrics.push exclude.internal.topics fetch.max.bytes fetch.max.wait.ms
    fetch.min.bytes group.id group.instance.id group.protocol group.remote.assignor heartbeat.interval.ms interceptor.classes
    isolation.level key.deserializer key.serializer linger.ms max.block.ms max.in.flight.requests.per.connection
    max.partition.fetch.bytes max.poll.interval.ms max.poll.records max.request.size metadata.max.age.ms metadata.max.idle.ms
    metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy partition.assignment.strategy
    partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms partitioner.class partitioner.ignore.keys
    receive.buffer.bytes reconnect.backoff.max.ms reconnect.backoff.ms request.timeout.ms retries retry.backoff.max.ms
    retry.backoff.ms security.providers send.buffer.bytes session.timeout.ms share.acknowledgement.mode
    socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms ssl.engine.factory.class
    ssl.keymanager.algorithm ssl.protocol ssl.provider ssl.secure.random.implementation ssl.trustmanager.algorithm
    transaction.timeout.ms transaction.two.phase.commit.enable transactional.id value.deserializer value.serializer";

#[cfg(test)]
mod tests {
    use std::path::Path;

    use skerry_tls::suite::{CipherSuite, Version};

    use super::super::tls::{Keystore, Truststore};
    use super::*;

    fn config(text: &str) -> ClientConfig {
        let (config, notices) = read("c", text).unwrap();
        assert_eq!(notices, [""; 0]);
        config
    }

    #[test]
    fn a_file_of_kafkas_is_taken_as_it_is() {
        let tls = "security.protocol=ssl\nssl.truststore.location=/ca.p12\nssl.truststore.password=sesame\n\
                   ssl.truststore.type=PKCS12\nssl.keystore.location=/own.jks\nssl.keystore.password=a\nssl.key.password=b\n\
                   ssl.enabled.protocols=TLSv1.3\nssl.protocol=TLSv1.3\nclient.id=me\nbootstrap.servers=h:1, i:2\n\
                   group.id=g\nsasl.mechanism=PLAIN\nrequest.timeout.ms=5\n";
        let read = config(tls);
        assert_eq!(read.bootstrap.as_deref(), Some("h:1, i:2"));
        assert_eq!(read.client_id.as_deref(), Some("me"));
        let tls = read.tls.unwrap();
        assert!(tls.checks_names);
        assert_eq!(tls.versions, [Version::Tls13]);
        assert!(tls.suites.iter().all(|suite| suite.version() == Version::Tls13));
        let Truststore::File(file) = tls.truststore else {
            panic!()
        };
        assert_eq!(file.path, Path::new("/ca.p12"));
        assert_eq!(file.place, "c:2: ssl.truststore.location=/ca.p12");
        assert!(
            matches!(tls.keystore, Some(Keystore::File { file, key_password: Some(key) })
            if file.path == Path::new("/own.jks") && key.reveal() == "b")
        );

        let inline = "security.protocol=SSL\nssl.truststore.certificates=C\nssl.keystore.key=K\nssl.keystore.certificate.chain=L\n\
                      ssl.cipher.suites=TLS_AES_256_GCM_SHA384\nssl.endpoint.identification.algorithm=\n";
        let (read, notices) = super::read("c", inline).unwrap();
        let tls = read.tls.unwrap();
        assert!(!tls.checks_names);
        assert_eq!(tls.suites, [CipherSuite::TLS_AES_256_GCM_SHA384]);
        assert!(matches!(tls.keystore, Some(Keystore::Inline { .. })));
        assert!(
            notices
                .iter()
                .all(|notice| notice.contains("TLSv1.2, which is therefore not spoken"))
        );
        assert_eq!(config("# nothing\n"), ClientConfig::default());
    }

    #[test]
    fn each_mistake_is_told_where_it_is() {
        let problems = |text: &str| read("c", text).unwrap_err();
        assert_eq!(
            problems("security.protocol=TLS\nssl.endpoint.identification.algorithm=none\nk=\\u1\n"),
            [
                "c:1: security.protocol=TLS: allowed: PLAINTEXT | SSL",
                "c:2: ssl.endpoint.identification.algorithm=none: allowed: https, or nothing, which lets a broker have any name",
                "c:3: \\u needs four hexadecimal digits",
            ]
        );
        assert_eq!(
            problems("security.protocol=SASL_SSL\n"),
            ["c:1: security.protocol=SASL_SSL: SASL is not spoken here; allowed: PLAINTEXT | SSL"]
        );
        assert_eq!(
            problems("security.protocol=SSL\n"),
            [
                "c: ssl.truststore.location=: security.protocol=SSL needs the CAs that sign the brokers' certificates: set this, or \
                 ssl.truststore.certificates; the system's own are usually in /etc/ssl/certs/ca-certificates.crt"
            ]
        );
        assert_eq!(
            problems(
                "security.protocol=SSL\nssl.truststore.location=/t\nssl.keystore.key=sesame\nssl.enabled.protocols=TLSv9\n"
            ),
            [
                "c:3: ssl.keystore.key: a private key without a certificate: set ssl.keystore.certificate.chain too",
                "c:4: ssl.enabled.protocols=TLSv9: allowed: TLSv1.2, TLSv1.3",
            ]
        );
    }

    #[test]
    fn what_has_no_effect_is_told_once() {
        let notices = |text: &str| read("c", text).unwrap().1;
        assert_eq!(
            notices(
                "ssl.truststore.location=/t\nssl.ca.location=/t\nlisteners=x\nsecurity.protocl=SSL\nssl.client.auth=none\n"
            ),
            [
                "c: ssl.truststore.location (line 1): without effect, as security.protocol is not SSL: nothing is encrypted",
                "c: no client has these settings, which are left aside: ssl.ca.location (line 2; did you mean \
                 ssl.truststore.location?), listeners (line 3), security.protocl (line 4; did you mean security.protocol?), \
                 ssl.client.auth (line 5)",
            ]
        );
    }
}
