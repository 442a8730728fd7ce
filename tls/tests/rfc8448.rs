//! The handshakes of RFC 8448, replayed: key exchanges, transcripts, the key schedule, Finished and binders, tickets' secrets, and the records
//! under all of these keys. The RFC's certificate has an RSA key of 1024 bits, which is not taken here, so that its signatures are left out.
#![cfg(feature = "fast")]

use skerry_tls::cause::Cause;
use skerry_tls::crypto::fast::Fast;
use skerry_tls::crypto::{CryptoError, Exchange as _, HashAlgorithm, Provider, Random, Secret};
use skerry_tls::handshake::Transcript;
use skerry_tls::handshake::key_schedule::{Early, finished, resumption_psk, traffic_keys};
use skerry_tls::message::{
    ClientHello, EncryptedExtensions, Finished, NewSessionTicket13, SESSION_ID_BYTES_MAX, ServerHelloOrRetry,
};
use skerry_tls::record::{ContentType, Opened, ReadHalf};
use skerry_tls::suite::{CipherSuite, Group};

const SUITE: CipherSuite = CipherSuite::TLS_AES_128_GCM_SHA256;
const HASH: HashAlgorithm = HashAlgorithm::Sha256;

/// One handshake.
struct Trace<'v> {
    name: &'v str,
    items: Vec<(&'v str, Vec<Vec<u8>>)>,
}

fn traces(text: &str) -> Vec<Trace<'_>> {
    let mut traces: Vec<Trace<'_>> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let mut fields = line.split(' ');
        let (name, what) = (fields.next().unwrap(), fields.next().unwrap());
        let bytes = fields.map(|hex| {
            let digits = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
            (0..hex.len()).step_by(2).map(digits).collect()
        });
        let item = (what, bytes.collect());
        match traces.last_mut().filter(|trace| trace.name == name) {
            Some(trace) => trace.items.push(item),
            None => traces.push(Trace {
                name,
                items: vec![item],
            }),
        }
    }
    traces
}

impl Trace<'_> {
    fn all<'t>(&'t self, what: &'t str) -> impl Iterator<Item = &'t [Vec<u8>]> {
        self.items
            .iter()
            .filter(move |item| item.0 == what)
            .map(|item| &item.1[..])
    }

    fn find(&self, what: &str) -> Option<&[u8]> {
        self.items.iter().find(|item| item.0 == what).map(|item| &item.1[0][..])
    }

    fn value(&self, what: &str) -> &[u8] {
        self.find(what).unwrap_or_else(|| panic!("{}: no {what}", self.name))
    }

    fn messages(&self) -> impl Iterator<Item = &[u8]> {
        self.all("message").map(|values| &values[0][..])
    }

    /// The messages of a type, whole.
    fn of(&self, kind: u8) -> Vec<&[u8]> {
        self.messages().filter(|raw| raw[0] == kind).collect()
    }

    fn is(&self, what: &str, got: &Secret) {
        assert_eq!(got.bytes(), self.value(what), "{}: {what}", self.name);
    }
}

/// A private value that is known.
struct Known<'v>(&'v [u8]);

impl Random for Known<'_> {
    fn fill(&mut self, out: &mut [u8]) -> Result<(), CryptoError> {
        out.copy_from_slice(self.0);
        Ok(())
    }
}

/// Digests of the transcript: after ServerHello, before and after each Finished.
struct Digests {
    server_hello: Secret,
    before_finished: Vec<Secret>,
    after_finished: Vec<Secret>,
}

fn digests<P: Provider>(provider: &P, trace: &Trace<'_>) -> Digests {
    let mut transcript = Transcript::<P>::start(provider, HASH).unwrap();
    let mut digests = Digests {
        server_hello: Secret::EMPTY,
        before_finished: Vec::new(),
        after_finished: Vec::new(),
    };
    for raw in trace.messages() {
        match raw[0] {
            2 if matches!(ServerHelloOrRetry::decode(&raw[4..]), Ok(ServerHelloOrRetry::Retry(_))) => {
                transcript.replace_by_message_hash(provider).unwrap();
                transcript.add(raw);
            }
            2 => {
                transcript.add(raw);
                digests.server_hello = transcript.digest();
            }
            20 => {
                digests.before_finished.push(transcript.digest());
                transcript.add(raw);
                digests.after_finished.push(transcript.digest());
            }
            _ => transcript.add(raw),
        }
    }
    digests
}

fn key_exchange<P: Provider>(provider: &P, trace: &Trace<'_>) -> Secret {
    let hello = *trace.of(1).last().unwrap();
    let hello = ClientHello::decode(&hello[4..]).unwrap();
    let answer = *trace.of(2).last().unwrap();
    let Ok(ServerHelloOrRetry::Hello(answer)) = ServerHelloOrRetry::decode(&answer[4..]) else {
        panic!("{}", trace.name)
    };
    let share = answer.key_share.unwrap();
    let group = Group::from_wire(share.group).unwrap();
    assert_eq!(CipherSuite::from_wire(answer.suite), Some(SUITE));
    assert!(hello.session_id.len() <= SESSION_ID_BYTES_MAX && hello.session_id == answer.session_id);
    let client_share = hello.key_share.unwrap().find(share.group).unwrap();
    let client_private = trace
        .find("client_private_again")
        .unwrap_or(trace.value("client_private"));
    let server = provider
        .exchange(group, &mut Known(trace.value("server_private")))
        .unwrap();
    let client = provider.exchange(group, &mut Known(client_private)).unwrap();
    assert_eq!(server.share().bytes(), share.share, "{}", trace.name);
    assert_eq!(client.share().bytes(), client_share, "{}", trace.name);
    let shared = server.agree(client_share).unwrap();
    assert!(client.agree(share.share).unwrap().is(shared.bytes()));
    shared
}

#[test]
fn every_handshake_of_the_rfc() {
    replay(&Fast);
    #[cfg(feature = "rustcrypto-x25519")]
    replay(&skerry_tls::crypto::rustcrypto::RustCrypto);
}

fn replay<P: Provider>(provider: &P) {
    let traces = traces(include_str!("vectors/rfc8448.txt"));
    assert_eq!(traces.len(), 5);
    let mut psk = None;
    for trace in &traces {
        let shared = key_exchange(provider, trace);
        trace.is("shared", &shared);
        let digests = digests(provider, trace);
        let early = match trace.find("psk") {
            Some(known) => {
                assert_eq!(psk.as_deref(), Some(known), "it is the last ticket's");
                let early = Early::resumption(provider, HASH, &Secret::copy(known).unwrap()).unwrap();
                binder(provider, trace, &early);
                early
            }
            None => Early::fresh(provider, HASH).unwrap(),
        };
        let schedule = early.handshake(provider, &shared).unwrap();
        let client = schedule.client_traffic(provider, &digests.server_hello).unwrap();
        let server = schedule.server_traffic(provider, &digests.server_hello).unwrap();
        trace.is("client_handshake", &client);
        trace.is("server_handshake", &server);
        let [before_server, before_client] = &digests.before_finished[..] else {
            panic!()
        };
        let [after_server, after_client] = &digests.after_finished[..] else {
            panic!()
        };
        let server_data = finished(provider, HASH, &server, before_server).unwrap();
        let client_data = finished(provider, HASH, &client, before_client).unwrap();
        trace.is("server_verify_data", &server_data);
        trace.is("client_verify_data", &client_data);
        for (raw, data) in trace.of(20).into_iter().zip([&server_data, &client_data]) {
            assert!(data.is(Finished::decode(&raw[4..], HASH.bytes()).unwrap().verify_data));
        }
        let master = schedule.master(provider).unwrap();
        trace.is(
            "client_application",
            &master.client_traffic(provider, after_server).unwrap(),
        );
        trace.is(
            "server_application",
            &master.server_traffic(provider, after_server).unwrap(),
        );
        trace.is("exporter", &master.exporter(provider, after_server).unwrap());
        let resumption = master.resumption(provider, after_client).unwrap();
        trace.is("resumption", &resumption);
        if let Some(ticket) = trace.find("ticket") {
            let ticket = NewSessionTicket13::decode(&ticket[4..]).unwrap();
            let next = resumption_psk(provider, HASH, &resumption, ticket.nonce).unwrap();
            trace.is("next_psk", &next);
            psk = Some(next.bytes().to_vec());
        }
        let extensions = EncryptedExtensions::decode(&trace.of(8)[0][4..]);
        match trace.name {
            "resumed" => assert_eq!(
                extensions,
                Err(Cause::UnsupportedExtension(42)),
                "early data is never offered here"
            ),
            _ => assert!(extensions.is_ok()),
        }
        for secret in [
            "client_handshake",
            "server_handshake",
            "client_application",
            "server_application",
        ] {
            records(provider, trace, secret);
        }
    }
    assert!(psk.is_some());
}

/// The binder of a hello, over the hello without it.
fn binder<P: Provider>(provider: &P, trace: &Trace<'_>, early: &Early) {
    let whole = trace.of(1)[0];
    let offered = ClientHello::decode(&whole[4..]).unwrap().pre_shared_key.unwrap();
    let truncated = &whole[..whole.len() - offered.binders_bytes()];
    assert_eq!(truncated, trace.value("truncated"));
    let mut transcript = Transcript::<P>::start(provider, HASH).unwrap();
    transcript.add(truncated);
    let binder = early.binder(provider, &transcript.digest()).unwrap();
    trace.is("binder", &binder);
    assert!(binder.is(offered.binders().next().unwrap()));
}

/// Every record under one secret opens, in order.
fn records<P: Provider>(provider: &P, trace: &Trace<'_>, secret: &str) {
    let mut half = ReadHalf::<P>::plain();
    half.install(traffic_keys(provider, SUITE, &Secret::copy(trace.value(secret)).unwrap()).unwrap());
    let mut count = 0;
    for item in trace.all(&format!("record:{secret}")) {
        let [record, content] = item else { panic!() };
        let mut record = record.clone();
        let Opened { kind, content: opened } = half.open(&mut record).unwrap();
        assert_eq!(opened, content, "{}: {secret}", trace.name);
        let is_alert = content.len() == 2;
        assert_eq!(kind == ContentType::Alert, is_alert);
        count += 1;
    }
    assert!(count > 0, "{}: no record under {secret}", trace.name);
}
