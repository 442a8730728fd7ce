//! Peers that send nonsense, too much, too little, or nothing, over real sockets to the real binary.
//!
//! Each test has a broker of its own with one record in it. What the protocol has an error for is answered with it; all else is
//! closed, with one line that names the cause. At the end the record is read again, a new one is taken, memory has not grown
//! over the bound that the test states, the broker stops cleanly, and nothing in it has panicked.

use std::cell::RefCell;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::thread;
use std::time::Duration;

use skerry_core::api::ApiKey;
use skerry_core::api::api_versions::{ApiVersionsRequest, ApiVersionsResponse};
use skerry_core::api::fetch::{FetchPartition, FetchRequest, FetchTopic};
use skerry_core::api::metadata::{MetadataRequest, MetadataRequestTopic};
use skerry_core::api::offset_commit::{OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use skerry_core::api::produce::{PartitionProduceData, ProduceRequest, TopicProduceData};
use skerry_core::error_code::ErrorCode;
use skerry_core::record::crc32c;
use skerry_core::wire::{Array, Records};
use skerry_tests::client::{Client, reply};
use skerry_tests::process::{Skerry, Start, TempDir};
use skerry_tests::rng::Rng;
use skerry_tests::wire::{self, TestRecord, batch};

/// The topic whose first record must outlive everything.
const KEPT: &str = "kept";
/// A topic that is not there, on a broker that makes none by itself.
const MISSING: &str = "missing";
/// The broker writes no more lines of one kind than this in a second.
const LINES_PER_SECOND: usize = 10;
const MIB: u64 = 1 << 20;
/// What a broker may grow by where nothing is asked of it but to refuse: pages of tables and buffers that are used first then.
const FEW: u64 = 4 * MIB;
/// What it may grow by where every small and large buffer may come into use: 64 pairs of 32 KiB, and what four large requests touch.
const BUFFERS: u64 = 16 * MIB;

fn records(value_bytes: usize) -> Vec<u8> {
    let record = TestRecord {
        offset: 0,
        timestamp: 1,
        key: Some(b"key".to_vec()),
        value: vec![b'v'; value_bytes],
    };
    batch(&[record], None)
}

/// A broker with a record in it, and who was thrown out so far.
struct Rig {
    skerry: Skerry,
    resident: u64,
    refused: RefCell<Vec<SocketAddr>>,
    _directory: TempDir,
}

impl Rig {
    fn start(settings: &[&str]) -> Self {
        let directory = TempDir::new();
        let mut overrides = vec!["auto.create.topics.enable=false"];
        overrides.extend(settings);
        let skerry = Start::new(directory.path()).with(&overrides).start();
        let mut client = Client::connect(skerry.address);
        client.create_topic(KEPT, 2, &[]);
        assert_eq!(client.produce(KEPT, 0, -1, &records(10)), 0);
        let rig = Self {
            resident: 0,
            refused: RefCell::default(),
            skerry,
            _directory: directory,
        };
        rig.is_well();
        Self {
            resident: rig.skerry.resident_bytes(),
            ..rig
        }
    }

    fn connect(&self) -> Client {
        Client::connect(self.skerry.address)
    }

    /// A good client is served, and the first record is there.
    fn is_well(&self) {
        let mut client = self.connect();
        let (read, _) = client.fetch(KEPT, 0, 0, 0);
        assert_eq!(read.first().map(|r| &r.value[..]), Some(&[b'v'; 10][..]));
        let end = client.produce(KEPT, 0, -1, &records(5));
        let (read, _) = client.fetch(KEPT, 0, end, 0);
        assert_eq!(read.len(), 1, "a new record is read back");
    }

    /// The peer was closed on, without an answer, and one line says why.
    fn is_closed(&self, client: &mut Client, cause: &str) {
        self.is_closed_with(client, &[], cause);
    }

    /// The same, after this answer.
    fn is_closed_with(&self, client: &mut Client, answer: &[u8], cause: &str) {
        let mut answered = Vec::new();
        match client.stream().read_to_end(&mut answered) {
            Ok(_) => {}
            Err(e) if e.kind() == ErrorKind::ConnectionReset => {}
            Err(e) => panic!("{cause}: {e}"),
        }
        assert_eq!(answered, answer, "{cause}");
        let peer = client.stream().local_addr().expect("its address");
        let line = self.skerry.wait_for_line(&format!("{peer}: closed: "));
        assert!(line.contains(cause), "not for {cause:?}: {line}");
        let mut refused = self.refused.borrow_mut();
        refused.push(peer);
        if refused.len().is_multiple_of(LINES_PER_SECOND) {
            // Not to test the limit on lines, but to stay under it.
            thread::sleep(Duration::from_millis(1_100));
        }
    }

    /// Sends these bytes, and perhaps nothing more for ever: closed for `cause`.
    fn refuses(&self, bytes: &[u8], ends: bool, cause: &str) {
        let mut client = self.connect();
        // The broker may close before it has read all.
        let _ = client.stream().write_all(bytes);
        if ends {
            let _ = client.stream().shutdown(Shutdown::Write);
        }
        self.is_closed(&mut client, cause);
    }

    /// The end of every test: `growth` is how many bytes more than at its start may be resident.
    fn finish(self, growth: u64) {
        self.is_well();
        let resident = self.skerry.resident_bytes();
        assert!(
            resident <= self.resident + growth,
            "from {} KiB to {} KiB",
            self.resident / 1024,
            resident / 1024
        );
        let refused = self.refused.into_inner();
        let (status, log) = self.skerry.stop();
        assert!(status.success(), "{status}:\n{log}");
        assert!(!log.contains("panic"), "{log}");
        for peer in &refused {
            let said = log.lines().filter(|l| l.contains(&format!("{peer}: "))).count();
            assert_eq!(said, 1, "lines about {peer}:\n{log}");
        }
    }

    fn lines(&self, with: &str) -> usize {
        self.skerry.stderr().lines().filter(|l| l.contains(with)).count()
    }
}

/// A request made by hand.
#[derive(Clone)]
struct Raw(Vec<u8>);

impl Raw {
    fn new(key: i16, version: i16) -> Self {
        Self(Vec::new()).i16(key).i16(version).i32(7).i16(-1)
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    fn i8(self, n: i8) -> Self {
        self.bytes(&n.to_be_bytes())
    }

    fn i16(self, n: i16) -> Self {
        self.bytes(&n.to_be_bytes())
    }

    fn i32(self, n: i32) -> Self {
        self.bytes(&n.to_be_bytes())
    }

    fn i64(self, n: i64) -> Self {
        self.bytes(&n.to_be_bytes())
    }

    fn str(self, text: &str) -> Self {
        self.i16(text.len() as i16).bytes(text.as_bytes())
    }

    fn frame(&self) -> Vec<u8> {
        framed(&self.0)
    }
}

fn framed(body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32).to_be_bytes()[..], body].concat()
}

#[test]
fn lengths_that_no_frame_has_are_closed_on() {
    let rig = Rig::start(&[]);
    for length in [(16 << 20) + 1, i32::MAX] {
        // Told from the prefix alone, or with bytes that follow it.
        rig.refuses(&length.to_be_bytes(), false, "is over the limit");
        let more = [&length.to_be_bytes()[..], &[0; 100_000]].concat();
        rig.refuses(&more, false, "is over the limit");
    }
    for length in [-1, i32::MIN] {
        rig.refuses(&length.to_be_bytes(), false, "negative frame length");
    }
    for length in [0, 1, 3] {
        rig.refuses(&i32::to_be_bytes(length), false, "is too short");
    }
    for length in 4..8 {
        rig.refuses(&framed(&vec![0; length]), false, "request header: ");
    }
    rig.finish(FEW);
}

#[test]
fn garbage_is_closed_on() {
    let rig = Rig::start(&[]);
    rig.refuses(
        b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n",
        false,
        "not a Kafka request but HTTP: ",
    );
    // A TLS 1.2 record with the start of a ClientHello.
    let hello = [
        &[22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3][..],
        &[0x5a; 32],
        &[32],
        &[0xa5; 400],
    ]
    .concat();
    let mut client = rig.connect();
    client.stream().write_all(&hello).expect("sent");
    // A fatal alert, handshake_failure.
    let alert = [21, 3, 1, 0, 2, 2, 40];
    rig.is_closed_with(&mut client, &alert, "TLS on a listener without it: tls_on_plaintext; ");
    drop(client);
    rig.refuses(b"\n\n\n\n\n\n\n\n", false, "not a Kafka request: ");
    let mut rng = Rng::new(0x6261_6469);
    for _ in 0..12 {
        let mut bytes = vec![0; 1 + rng.index(3_000)];
        rng.fill(&mut bytes);
        rig.refuses(&bytes, true, "");
    }
    for _ in 0..12 {
        let mut bytes = vec![0; 8 + rng.index(60_000)];
        rng.fill(&mut bytes);
        rig.refuses(&framed(&bytes), true, "");
    }
    rig.finish(FEW);
}

/// Goal: whatever bytes of good requests are changed, the broker goes on. Method: 600 requests with 1 to 4 bytes changed, over
/// connections that end after them, none of which touches the topic that is read again.
#[test]
fn good_requests_with_bytes_changed_break_nothing() {
    let rig = Rig::start(&[]);
    let seeds = sample_requests("other");
    let mut rng = Rng::new(0x666c_6970);
    for _ in 0..600 {
        let mut bytes = rng.pick(&seeds).clone();
        for _ in 0..rng.within(1, 4) {
            let at = 4 + rng.index(bytes.len() - 4);
            bytes[at] = rng.next_u64() as u8;
        }
        let mut client = rig.connect();
        let _ = client.stream().write_all(&bytes);
        let _ = client.stream().shutdown(Shutdown::Write);
        // Whether it was answered is no matter here: a long wait for records may have been asked for.
        let _ = client.stream().set_read_timeout(Some(Duration::from_millis(20)));
        let _ = client.stream().read(&mut [0; 64]);
    }
    rig.finish(BUFFERS);
}

fn sample_requests(topic: &str) -> Vec<Vec<u8>> {
    let bytes = records(50);
    let data = PartitionProduceData {
        index: 0,
        records: Records::Bytes(&bytes),
    };
    let of = TopicProduceData {
        name: topic,
        partition_data: Array::one(&data),
        ..Default::default()
    };
    let produce = ProduceRequest {
        acks: -1,
        timeout_ms: 100,
        topic_data: Array::one(&of),
        ..Default::default()
    };
    let wanted = FetchPartition {
        partition_max_bytes: 1 << 20,
        ..Default::default()
    };
    let of = FetchTopic {
        topic,
        partitions: Array::one(&wanted),
        ..Default::default()
    };
    let fetch = FetchRequest {
        max_bytes: 1 << 20,
        topics: Array::one(&of),
        ..Default::default()
    };
    let name = MetadataRequestTopic {
        name: Some(topic),
        ..Default::default()
    };
    let metadata = MetadataRequest {
        topics: Array::one(&name),
        ..Default::default()
    };
    let at = OffsetCommitRequestPartition::default();
    let of = OffsetCommitRequestTopic {
        name: topic,
        partitions: Array::one(&at),
    };
    let commit = OffsetCommitRequest {
        group_id: "group",
        generation_id_or_member_epoch: -1,
        topics: Array::one(&of),
        ..Default::default()
    };
    vec![
        wire::request(&produce, 3, 1),
        wire::request(&produce, 9, 1),
        wire::request(&fetch, 4, 1),
        wire::request(&fetch, 12, 1),
        wire::request(&metadata, 1, 1),
        wire::request(&metadata, 9, 1),
        wire::request(&commit, 2, 1),
        wire::request(&commit, 8, 1),
    ]
}

#[test]
fn frames_that_end_too_early_are_closed_on() {
    let rig = Rig::start(&[]);
    for bytes in sample_requests(KEPT) {
        for cut in [1, 3, 4, bytes.len() / 2, bytes.len() - 1] {
            rig.refuses(&bytes[..cut], true, "closed by the peer in the middle of a request");
        }
    }
    // One that needs a large buffer.
    let large = [&1_000_000_i32.to_be_bytes()[..], &[0; 300_000]].concat();
    rig.refuses(&large, true, "closed by the peer in the middle of a request");
    let (read, _) = rig.connect().fetch(KEPT, 0, 0, 0);
    assert_eq!(read.len(), 2, "a produce that was cut has written nothing");
    rig.finish(FEW);
}

#[test]
fn counts_beyond_the_bytes_that_are_there_are_closed_on() {
    let rig = Rig::start(&[]);
    let produce = Raw::new(0, 3).i16(-1).i16(-1).i32(1000);
    let fetch = Raw::new(1, 4).i32(-1).i32(0).i32(0).i32(1 << 20).i8(0);
    let join = Raw::new(11, 0).str("g").i32(10_000).str("").str("consumer");
    let commit = Raw::new(8, 2).str("g").i32(-1).str("").i64(-1);
    let arrays = [
        ("Produce version 3", produce.clone()),
        ("Produce version 3", produce.clone().i32(1).str(KEPT)),
        ("Fetch version 4", fetch.clone()),
        ("Fetch version 4", fetch.i32(1).str(KEPT)),
        ("ListOffsets version 1", Raw::new(2, 1).i32(-1)),
        ("Metadata version 1", Raw::new(3, 1)),
        ("OffsetCommit version 2", commit.clone()),
        ("OffsetCommit version 2", commit.i32(1).str(KEPT)),
        ("OffsetFetch version 1", Raw::new(9, 1).str("g")),
        ("JoinGroup version 0", join),
        ("LeaveGroup version 3", Raw::new(13, 3).str("g")),
        ("SyncGroup version 0", Raw::new(14, 0).str("g").i32(1).str("m")),
        ("DescribeGroups version 0", Raw::new(15, 0)),
        ("CreateTopics version 2", Raw::new(19, 2)),
        ("DeleteTopics version 1", Raw::new(20, 1)),
        ("DescribeConfigs version 1", Raw::new(32, 1)),
    ];
    for (name, before) in arrays {
        for count in [i32::MAX, 1000] {
            rig.refuses(&before.clone().i32(count).frame(), false, &format!("{name}: "));
        }
    }
    // Records longer than the request.
    let records = produce.i32(1).str(KEPT).i32(1).i32(0);
    rig.refuses(&records.i32(i32::MAX).i32(0).frame(), false, "Produce version 3: ");
    // Flexible arrays count in varints: 2^32 − 2, and one that does not end.
    let flexible = Raw::new(3, 9).i8(0);
    for count in [&[0xff, 0xff, 0xff, 0xff, 0x0f][..], &[0xff; 12]] {
        rig.refuses(&flexible.clone().bytes(count).frame(), false, "Metadata version 9: ");
    }
    // A client id of 32767 bytes, and a tagged field of 2^28.
    let header = Raw(Vec::new()).i16(3).i16(1).i32(7).i16(i16::MAX);
    rig.refuses(&header.frame(), false, "request header: ");
    let tags = Raw::new(3, 9).bytes(&[1, 0, 0xff, 0xff, 0xff, 0x7f]);
    rig.refuses(&tags.frame(), false, "request header: ");
    rig.finish(FEW);
}

#[test]
fn keys_and_versions_that_are_not_spoken() {
    let rig = Rig::start(&[]);
    for key in [4, 7, 76, 1000, -1, i16::MAX, i16::MIN] {
        rig.refuses(
            &Raw::new(key, 0).frame(),
            false,
            &format!("API key {key} is not spoken here"),
        );
    }
    // Versions without a reply to encode one in; the oldest of Produce among them, although they are listed.
    for (name, key, version) in [
        ("Produce", 0, 0),
        ("Produce", 0, 1),
        ("Produce", 0, 2),
        ("Produce", 0, 14),
        ("Fetch", 1, 3),
        ("Metadata", 3, 99),
        ("Metadata", 3, -1),
    ] {
        let cause = format!("{name} version {version} is not spoken here");
        rig.refuses(&Raw::new(key, version).frame(), false, &cause);
    }
    // Of ApiVersions alone every version is answered, and the connection goes on.
    let mut client = rig.connect();
    for version in [5, 99, i16::MAX, -1] {
        let request = Raw::new(18, version).bytes(&[0; 6]).frame();
        client.stream().write_all(&request).expect("the broker reads");
        let frame = client.receive().expect("a reply").expect("a reply");
        assert_eq!(wire::correlation_id(&frame.0), 7);
        let answer: ApiVersionsResponse<'_> = wire::reply(ApiKey::ApiVersions, 0, &frame.0);
        assert_eq!(answer.error_code, ErrorCode::UNSUPPORTED_VERSION);
        let own = answer.api_keys.iter().next().expect("its own versions");
        assert_eq!((own.api_key, own.min_version, own.max_version), (18, 0, 4));
    }
    assert_eq!(client.fetch(KEPT, 0, 0, 0).0.len(), 2);
    rig.finish(FEW);
}

/// The answer to one batch.
fn produced(client: &mut Client, batch: &[u8]) -> Result<i64, ErrorCode> {
    client.send_batch(KEPT, 1, -1, batch).expect("the broker reads");
    client.receive_produced().expect("a reply").expect("a reply")
}

/// With these bytes put in, and a checksum that holds.
fn changed(at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut batch = records(20);
    batch[at..at + bytes.len()].copy_from_slice(bytes);
    let crc = crc32c(0, &batch[21..]);
    batch[17..21].copy_from_slice(&crc.to_be_bytes());
    batch
}

#[test]
fn batches_that_are_refused() {
    let rig = Rig::start(&[]);
    let mut client = rig.connect();
    let good = records(20);
    let mut wrong_crc = good.clone();
    wrong_crc[17] ^= 1;
    let mut flipped = good.clone();
    *flipped.last_mut().expect("bytes") ^= 1;
    let batches = [
        ("wrong checksum", wrong_crc, ErrorCode::CORRUPT_MESSAGE),
        ("a byte flipped", flipped, ErrorCode::CORRUPT_MESSAGE),
        ("cut short", good[..good.len() - 1].to_vec(), ErrorCode::CORRUPT_MESSAGE),
        ("shorter than a header", good[..30].to_vec(), ErrorCode::CORRUPT_MESSAGE),
        ("negative length", changed(8, &[255; 4]), ErrorCode::CORRUPT_MESSAGE),
        ("magic 0", changed(16, &[0]), ErrorCode::UNSUPPORTED_FOR_MESSAGE_FORMAT),
        ("magic 1", changed(16, &[1]), ErrorCode::UNSUPPORTED_FOR_MESSAGE_FORMAT),
        ("magic 3", changed(16, &[3]), ErrorCode::INVALID_RECORD),
        ("two batches", [&good[..], &good].concat(), ErrorCode::INVALID_RECORD),
        ("no batch", Vec::new(), ErrorCode::INVALID_RECORD),
        ("over the limit", records(1_048_588), ErrorCode::MESSAGE_TOO_LARGE),
        ("control", changed(21, &[0, 0x20]), ErrorCode::INVALID_RECORD),
        ("transactional", changed(21, &[0, 0x10]), ErrorCode::INVALID_TXN_STATE),
        (
            "unknown compression",
            changed(21, &[0, 7]),
            ErrorCode::UNSUPPORTED_COMPRESSION_TYPE,
        ),
        (
            "2^31 − 1 records",
            changed(57, &i32::MAX.to_be_bytes()),
            ErrorCode::INVALID_RECORD,
        ),
        ("no records", changed(57, &[0; 4]), ErrorCode::INVALID_RECORD),
        ("-1 records", changed(57, &[255; 4]), ErrorCode::INVALID_RECORD),
        (
            "a record beyond the batch",
            changed(61, &[0xfe, 0x7f]),
            ErrorCode::INVALID_RECORD,
        ),
    ];
    for (what, bytes, error) in batches {
        assert_eq!(produced(&mut client, &bytes), Err(error), "{what}");
        assert_eq!(client.list_offset(KEPT, 1, -1), 0, "{what}: nothing was written");
    }
    assert_eq!(produced(&mut client, &good), Ok(0), "the connection goes on");
    // acks=0 has no answer to put an error in.
    let mut client = rig.connect();
    client
        .send_batch(KEPT, 1, 0, &changed(16, &[3]))
        .expect("the broker reads");
    rig.is_closed(&mut client, "a produce with acks=0 failed");
    rig.finish(BUFFERS);
}

#[test]
fn offsets_out_of_range() {
    let rig = Rig::start(&[]);
    let mut client = rig.connect();
    let end = client.list_offset(KEPT, 0, -1);
    for offset in [-1, -2, i64::MIN, end + 1, i64::MAX] {
        let answer = client.try_fetch(KEPT, 0, offset, 60_000).expect("a reply");
        assert_eq!(answer, Err(ErrorCode::OFFSET_OUT_OF_RANGE), "at {offset}");
    }
    assert_eq!(
        client.try_fetch(KEPT, 0, end, 0).expect("a reply"),
        Ok((Vec::new(), end))
    );
    rig.finish(FEW);
}

/// Goal: an unknown topic or partition has an error of its own, and does not keep those beside it from being served.
#[test]
fn unknown_topics_and_partitions_each_have_their_error() {
    let rig = Rig::start(&[]);
    let mut client = rig.connect();
    let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    let expected = [
        (0, ErrorCode::NONE),
        (2, unknown),
        (-1, unknown),
        (i32::MAX, unknown),
        (0, unknown),
    ];

    let bytes = records(20);
    let data = [0, 2, -1, i32::MAX].map(|index| PartitionProduceData {
        index,
        records: Records::Bytes(&bytes),
    });
    let of = [(KEPT, &data[..]), (MISSING, &data[..1])].map(|(name, data)| TopicProduceData {
        name,
        partition_data: data.into(),
        ..Default::default()
    });
    let request = ProduceRequest {
        acks: -1,
        timeout_ms: 30_000,
        topic_data: (&of).into(),
        ..Default::default()
    };
    let frame = client.call(9, &request);
    let answers: Vec<_> = reply::<ProduceRequest<'_>>(9, &frame)
        .responses
        .iter()
        .flat_map(|t| t.partition_responses.iter().map(|p| (p.index, p.error_code)))
        .collect();
    assert_eq!(answers, expected);

    let wanted = [0, 2, -1, i32::MAX].map(|partition| FetchPartition {
        partition,
        partition_max_bytes: 1 << 20,
        ..Default::default()
    });
    let of = [(KEPT, &wanted[..]), (MISSING, &wanted[..1])].map(|(topic, wanted)| FetchTopic {
        topic,
        partitions: wanted.into(),
        ..Default::default()
    });
    let request = FetchRequest {
        max_bytes: 1 << 20,
        topics: (&of).into(),
        ..Default::default()
    };
    let frame = client.call(11, &request);
    let answers: Vec<_> = reply::<FetchRequest<'_>>(11, &frame)
        .responses
        .iter()
        .flat_map(|t| t.partitions.iter().map(|p| (p.partition_index, p.error_code)))
        .collect();
    assert_eq!(answers, expected);

    let names = [KEPT, MISSING, "not a name", ""].map(|name| MetadataRequestTopic {
        name: Some(name),
        ..Default::default()
    });
    let request = MetadataRequest {
        topics: (&names).into(),
        ..Default::default()
    };
    let frame = client.call(4, &request);
    let answers: Vec<_> = reply::<MetadataRequest<'_>>(4, &frame)
        .topics
        .iter()
        .map(|t| t.error_code)
        .collect();
    let invalid = ErrorCode::INVALID_TOPIC_EXCEPTION;
    assert_eq!(answers, [ErrorCode::NONE, unknown, invalid, invalid]);

    for (topic, partition) in [(MISSING, 0), (KEPT, 2), (KEPT, -1)] {
        let answer = client.try_commit("group", None, topic, partition, 1).expect("a reply");
        assert_eq!(answer, unknown, "commit for {topic} {partition}");
    }
    rig.finish(FEW);
}

/// Goal: who says nothing costs nothing. Method: 200 such connections beside two pairs of buffers; they can still speak later.
#[test]
fn connections_that_say_nothing_hold_no_buffer() {
    let rig = Rig::start(&["skerry.limits.small.buffers=2"]);
    let mut silent: Vec<_> = (0..200).map(|_| rig.connect()).collect();
    for _ in 0..20 {
        rig.is_well();
    }
    for client in &mut silent {
        let _ = client.call(0, &ApiVersionsRequest::default());
    }
    drop(silent);
    assert_eq!(rig.lines(": closed: "), 0);
    rig.finish(FEW);
}

/// To be idle is no fault: there is an end to it, but no line.
#[test]
fn idle_connections_are_closed_without_a_line() {
    let rig = Rig::start(&["connections.max.idle.ms=3000"]);
    let mut silent = rig.connect();
    assert_eq!(silent.receive().expect("an end"), None);
    // Lines come in order, so one about the idle peer would stand before this one.
    rig.refuses(&[0; 4], false, "is too short");
    assert_eq!(rig.lines(": closed: "), 1);
    rig.finish(FEW);
}

/// Goal: requests that never come whole do not keep buffers from others. Method: as many of them as there are pairs; a good
/// client waits until they have had their time.
#[test]
fn halves_of_requests_do_not_hold_buffers_that_others_wait_for() {
    let rig = Rig::start(&["skerry.limits.small.buffers=2"]);
    let mut halves = [rig.connect(), rig.connect()];
    for half in &mut halves {
        half.stream()
            .write_all(&[0, 0, 1, 0, 0, 3])
            .expect("room in the socket");
    }
    rig.is_well();
    // One has gone, and what it held was enough.
    assert_eq!(rig.lines(": closed: its request took over 10 s to arrive"), 1);
    drop(halves);
    rig.finish(FEW);
}

/// Goal: who sends half a request, or asks for a lot and never reads, is thrown out after a while with a line, and until then
/// neither stops others nor takes memory. Method: 5 that ask for 40 MB each, more than sockets hold, and 2 halves of requests.
#[test]
fn a_client_that_does_not_read_or_does_not_finish_is_thrown_out() {
    let rig = Rig::start(&[]);
    let mut good = rig.connect();
    for _ in 0..3 {
        good.produce(KEPT, 1, -1, &records(1_000_000));
    }
    let mut halves = [rig.connect(), rig.connect()];
    for half in &mut halves {
        half.stream()
            .write_all(&[0, 0, 1, 0, 0, 3])
            .expect("room in the socket");
    }
    let mut readers: Vec<_> = (0..5).map(|_| rig.connect()).collect();
    for reader in &mut readers {
        for _ in 0..40 {
            reader.send_fetch(KEPT, 1, 0, 0).expect("room in the socket");
        }
    }
    for _ in 0..30 {
        rig.is_well();
    }
    assert_eq!(rig.lines(": closed: "), 0, "not at once");
    assert!(rig.skerry.resident_bytes() <= rig.resident + BUFFERS);
    for half in &mut halves {
        rig.is_closed(half, "fewer than 4096 bytes moved in 30 s");
    }
    for reader in &mut readers {
        let peer = reader.stream().local_addr().expect("its address");
        let line = rig.skerry.wait_for_line(&format!("{peer}: closed: "));
        assert!(line.contains("fewer than 4096 bytes moved in 30 s"), "{line}");
        rig.refused.borrow_mut().push(peer);
    }
    rig.finish(BUFFERS);
}

/// Requests that come byte by byte are answered all the same, and others are served between the bytes.
#[test]
fn a_frame_byte_by_byte_is_answered() {
    let rig = Rig::start(&[]);
    let (mut slow, mut other) = (rig.connect(), rig.connect());
    for bytes in sample_requests(KEPT) {
        for byte in &bytes {
            slow.stream().write_all(&[*byte]).expect("the broker reads");
            // Once this is answered, the byte has been read by itself.
            let _ = other.call(0, &ApiVersionsRequest::default());
        }
        let frame = slow.receive().expect("a reply").expect("a reply");
        assert_eq!(wire::correlation_id(&frame.0), 1);
    }
    rig.finish(FEW);
}

/// Goal: connections beyond `max.connections` are closed at once, those below it are served, and places come free again.
#[test]
fn more_connections_than_there_may_be() {
    let rig = Rig::start(&["max.connections=1024"]);
    let mut good = rig.connect();
    let ask = ApiVersionsRequest::default();
    let _ = good.call(0, &ask);
    // One after the other: the kernel lets few wait to be accepted, and a client that finds no room tries again after seconds.
    let mut others = Vec::new();
    let mut served = 0;
    for _ in 0..1_100 {
        let mut client = rig.connect();
        served += usize::from(client.try_call(0, &ask).is_ok());
        others.push(client);
    }
    assert!(
        (1_020..=1_023).contains(&served),
        "{served} of 1100 beside one that was there"
    );
    let _ = good.call(0, &ask);
    let said = rig.lines("refused, max.connections=1024 are open");
    assert!((1..=1_100 - served).contains(&said), "{said} lines");
    drop(others);
    // It sees the ends of the others when it comes to them.
    while rig.connect().try_call(0, &ask).is_err() {}
    rig.finish(BUFFERS);
}

/// Goal: a long pipeline whose replies nobody reads stops at its own connection; once it is read, every reply is there, in order.
/// Method: 4,000 requests for a description of 200 partitions: 20 MB of replies, more than sockets hold.
#[test]
fn a_long_pipeline_without_reading_is_answered_in_order() {
    const REQUESTS: i32 = 4_000;
    let rig = Rig::start(&[]);
    rig.connect().create_topic("wide", 200, &[]);
    let names = [MetadataRequestTopic {
        name: Some("wide"),
        ..Default::default()
    }];
    let request = MetadataRequest {
        topics: (&names).into(),
        ..Default::default()
    };
    let mut client = rig.connect();
    let mut writer = client.stream().try_clone().expect("a second handle");
    let bytes: Vec<u8> = (1..=REQUESTS).flat_map(|id| wire::request(&request, 4, id)).collect();
    thread::scope(|scope| {
        scope.spawn(move || writer.write_all(&bytes).expect("the broker reads in the end"));
        for _ in 0..30 {
            rig.is_well();
        }
        assert!(rig.skerry.resident_bytes() <= rig.resident + BUFFERS);
        for id in 1..=REQUESTS {
            let frame = client.receive().expect("a reply").expect("a reply");
            assert_eq!(wire::correlation_id(&frame.0), id);
            assert!(frame.0.len() > 200 * 20, "every partition is described");
        }
    });
    rig.finish(BUFFERS);
}
