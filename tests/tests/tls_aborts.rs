//! Clients that go away in the middle of a handshake, thousands of times in each state of the server's, leave nothing behind: no connection, no
//! handshake's place, no byte of memory.
#![forbid(unsafe_code)]

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_linger;
use skerry_tests::preload::AllocationCount;
use skerry_tests::process::{METRICS, PATIENCE, Skerry, Start, TempDir};
use skerry_tests::tls::{Channel, End, Target, files};
use skerry_tls::config::{ClientConfig, Config};
use skerry_tls::crypto::fast::Fast;
use skerry_tls::state::StateId;
use skerry_tls::suite::{Group, Version};
use skerry_tls::testing::{Accepting, Fixture};

/// How often it is done in each state.
const CYCLES: usize = 10_000;
/// Before anything is compared: what is made at its first use is made.
const WARM_UP: usize = 500;
/// Clients at a time.
const THREADS: usize = 8;
/// What an allocator may hold more of at the same load.
const SLACK_BYTES: u64 = 4096;

/// How a client gets a server into a state.
struct Way {
    state: StateId,
    is_mutual: bool,
    /// What it sends. It hears something between two, and after the last one when the server answers.
    sends: Vec<Vec<u8>>,
    is_answered: bool,
}

fn hello(version: Version, shares: &[Group]) -> Vec<u8> {
    let verifier = Accepting::default();
    let config = ClientConfig {
        versions: &[version],
        shares,
        ..ClientConfig::new(&verifier, None)
    };
    let mut end = End::<Fast>::default();
    end.connect(&Fast, Config::Client(&config)).expect("a hello");
    end.take_out().to_vec()
}

fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    let [high, low] = u16::try_from(content.len()).expect("a short one").to_be_bytes();
    [&[kind, 3, 3, high, low], content].concat()
}

const fn way(state: StateId, is_mutual: bool, sends: Vec<Vec<u8>>, is_answered: bool) -> Way {
    Way {
        state,
        is_mutual,
        sends,
        is_answered,
    }
}

fn ways_13() -> Vec<Way> {
    use StateId as S;
    let first = hello(Version::Tls13, &[Group::X25519]);
    vec![
        way(S::AwaitClientHello, false, vec![], false),
        way(S::AwaitClientHello, false, vec![first[..100].to_vec()], false),
        way(S::AwaitSecondClientHello, false, vec![hello(Version::Tls13, &[])], true),
        way(S::AwaitClientFinished, false, vec![first.clone()], true),
        way(S::AwaitClientCertificate, true, vec![first], true),
    ]
}

fn ways_12() -> Vec<Way> {
    use StateId as S;
    let first = hello(Version::Tls12, &[Group::X25519]);
    // The base point is as good a share as any.
    let mut share = [0; 37];
    share[..6].copy_from_slice(&[16, 0, 0, 33, 32, 9]);
    let key_exchange = record(22, &share);
    let der = Fixture::DEVICE.certificate;
    let length = |bytes: usize| u32::try_from(bytes).expect("a short one").to_be_bytes()[1..].to_vec();
    let certificate = [
        &[11][..],
        &length(der.len() + 6),
        &length(der.len() + 3),
        &length(der.len()),
        der,
    ];
    let certificate = record(22, &certificate.concat());
    let proof = [&certificate[..], &key_exchange].concat();
    let change = [&key_exchange[..], &record(20, &[1])].concat();
    vec![
        way(S::AwaitClientKeyExchange, false, vec![first.clone()], true),
        way(S::AwaitClientCertificate12, true, vec![first.clone()], true),
        way(
            S::AwaitClientCertificateVerify12,
            true,
            vec![first.clone(), proof],
            false,
        ),
        way(
            S::AwaitClientChangeCipherSpec,
            false,
            vec![first.clone(), key_exchange],
            false,
        ),
        way(S::AwaitClientFinished12, false, vec![first, change], false),
    ]
}

/// One client: as far as the state, and away, with a reset when it heard all that there was and `resets`. One that hears nothing waits for the
/// end: clients that never wait would be more than the broker has places in line for, and try again only after a second.
fn abort(address: SocketAddr, way: &Way, resets: bool) -> std::io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    for (at, bytes) in way.sends.iter().enumerate() {
        stream.write_all(bytes)?;
        if at + 1 < way.sends.len() || way.is_answered {
            assert!(stream.read(&mut [0; 1 << 14])? > 0, "{:?}: no answer", way.state);
        }
    }
    if !way.is_answered {
        stream.shutdown(Shutdown::Write)?;
        while stream.read(&mut [0; 1 << 10])? > 0 {}
    } else if resets {
        set_socket_linger(&stream, Some(Duration::ZERO))?;
    }
    Ok(())
}

fn abort_often(address: SocketAddr, way: &Way, cycles: usize) {
    thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for cycle in (thread..cycles).step_by(THREADS) {
                    abort(address, way, cycle % 2 == 1).expect("the broker listens and answers");
                }
            });
        }
    });
}

/// The numbers of a page of metrics whose names begin like this, added up.
fn sum(page: &str, name: &str) -> f64 {
    page.lines()
        .filter(|line| line.starts_with(name))
        .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
        .sum()
}

/// Waits until the broker holds no connection, no handshake and no buffer of one; its page then.
fn settled(broker: &Skerry) -> String {
    let until = Instant::now() + PATIENCE;
    loop {
        let page = broker.page();
        let held: f64 = [
            "skerry_connections ",
            "skerry_tls_handshakes_under_way ",
            "skerry_tls_record_buffers_lent ",
        ]
        .iter()
        .map(|series| sum(&page, series))
        .sum();
        if held == 0.0 {
            return page;
        }
        assert!(Instant::now() < until, "something is held:\n{page}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// How many deadlines are set, for this page one among them; when they are more than `most`, after a while: the broker sets one for the moment
/// when many connect, and those of connections that nobody took back would stand for two seconds at least.
fn deadlines(broker: &Skerry, most: f64) -> f64 {
    let until = Instant::now() + Duration::from_millis(500);
    loop {
        let set = sum(&settled(broker), "skerry_deadlines ");
        if set <= most || Instant::now() > until {
            return set;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until two looks find the same number of bytes allocated, and gives it.
fn resting_bytes(count: &AllocationCount) -> u64 {
    let until = Instant::now() + PATIENCE;
    let look = || count.live_bytes().expect("a count");
    let mut bytes = look();
    loop {
        thread::sleep(Duration::from_millis(100));
        let now = look();
        if now == bytes {
            return bytes;
        }
        assert!(Instant::now() < until, "what is allocated changes without end");
        bytes = now;
    }
}

/// Waits until no more bytes are allocated than `most`, and gives how many are.
fn live_bytes(count: &AllocationCount, most: u64) -> u64 {
    let until = Instant::now() + Duration::from_secs(5);
    loop {
        let bytes = count.live_bytes().expect("a count");
        if bytes <= most || Instant::now() > until {
            return bytes;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

fn start(count: &AllocationCount, dir: &TempDir) -> Skerry {
    let data = dir.path().join("data");
    let mut settings = files::settings(dir.path());
    settings.push("skerry.tls.penalty.max.ms=0".into());
    settings.push(METRICS.into());
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let mut start = Start::new(&data).with(&settings).counted(count);
    start.listeners = files::LISTENERS;
    start.start()
}

/// Goal: an aborted handshake gives back all that it took. Method: the real broker, its live bytes counted from outside; in every state that bytes
/// without keys can reach, clients close or reset; the same is held before and after.
#[test]
fn aborted_handshakes_of_tls_1_3_leave_nothing_behind() {
    leave_nothing_behind(&ways_13());
}

/// As for TLS 1.3.
#[test]
fn aborted_handshakes_of_tls_1_2_leave_nothing_behind() {
    leave_nothing_behind(&ways_12());
}

fn leave_nothing_behind(ways: &[Way]) {
    let dir = TempDir::new();
    let count = AllocationCount::build(dir.path()).expect("the counter builds");
    let broker = start(&count, &dir);
    let deadlines_before = sum(&settled(&broker), "skerry_deadlines ");
    let address = |way: &Way| broker.listener(if way.is_mutual { "MUTUAL" } else { "SSL" });
    for way in ways {
        let until = Instant::now() + PATIENCE;
        // Lines of one kind are few in a second: another try gets one.
        while !way.sends.is_empty() && !broker.stderr().contains(&format!("in {};", way.state.name())) {
            abort(address(way), way, false).expect("the broker listens and answers");
            assert!(Instant::now() < until, "{:?} is not reached", way.state);
            thread::sleep(Duration::from_millis(50));
        }
    }
    for way in ways {
        abort_often(address(way), way, WARM_UP);
    }
    let mut page = settled(&broker);
    let baseline = resting_bytes(&count);
    for way in ways {
        let ended =
            |page: &str| sum(page, "skerry_tls_handshake_failures_total") + sum(page, "skerry_tls_probes_total");
        let before = ended(&page);
        let begun = Instant::now();
        abort_often(address(way), way, CYCLES);
        page = settled(&broker);
        println!("{}: {} connections in {:?}", way.state.name(), CYCLES, begun.elapsed());
        assert_eq!(
            ended(&page) - before,
            CYCLES as f64,
            "{:?}: each is counted once",
            way.state
        );
        let live = live_bytes(&count, baseline + SLACK_BYTES);
        assert!(
            live <= baseline + SLACK_BYTES,
            "{:?}: {live} bytes are allocated, {baseline} before",
            way.state
        );
        let set = deadlines(&broker, deadlines_before);
        assert!(
            set <= deadlines_before,
            "{:?}: {set} deadlines are set, {deadlines_before} before",
            way.state
        );
    }
    // It serves as before.
    let target = Target {
        address: broker.listener("SSL"),
        is_tls: true,
    };
    drop(Channel::connect(target).expect("a handshake"));
    assert!(broker.stop().0.success());
}
