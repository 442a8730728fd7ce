//! Listeners and streams of the Linux host over loopback, against the standard library's sockets.

mod common;

use std::io::{IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};

use common::{Scratch, config, wait_for};
use rustix::net::SocketAddrAny;
use rustix::net::sockopt::set_socket_linger;
use skerry_core::time::{Instant, Millis};
use skerry_net::host::{Accepted, Clock, Disk, DiskError, Event, Host, ListenerId, Net, NetError, OpenMode, StreamId};
use skerry_net::linux::{LinuxHost, Listen, StartError};

const LISTENER: ListenerId = ListenerId(0);

fn host() -> (LinuxHost, Scratch) {
    let directory = Scratch::new();
    (LinuxHost::new(config(&directory)).unwrap(), directory)
}

fn connect(host: &mut LinuxHost) -> (TcpStream, Accepted) {
    let peer = TcpStream::connect(host.local_addr(LISTENER).unwrap()).unwrap();
    loop {
        match host.accept(LISTENER) {
            Ok(accepted) => return (peer, accepted),
            Err(nb::Error::WouldBlock) => {
                wait_for(host, |event| (event == Event::Accept(LISTENER)).then_some(()));
            }
            Err(error) => panic!("{error:?}"),
        }
    }
}

/// Reads until `bytes` are there, waiting when told to.
fn read_whole(host: &mut LinuxHost, stream: StreamId, bytes: usize) -> Vec<u8> {
    let mut all = vec![0; bytes];
    let mut done = 0;
    while done < bytes {
        match host.read(stream, &mut all[done..]) {
            Ok(0) => panic!("the stream ended after {done} bytes"),
            Ok(read) => done += read,
            Err(nb::Error::WouldBlock) => wait_readable(host, stream),
            Err(error) => panic!("{error:?}"),
        }
    }
    all
}

fn wait_readable(host: &mut LinuxHost, stream: StreamId) {
    wait_for(host, |event| match event {
        Event::Stream {
            stream: of, readable, ..
        } => (of == stream && readable).then_some(()),
        _ => None,
    });
}

#[test]
fn bytes_go_both_ways() {
    let (mut host, _directory) = host();
    let (mut peer, accepted) = connect(&mut host);
    assert_eq!(accepted.peer, peer.local_addr().unwrap());
    assert_eq!(accepted.local, peer.peer_addr().unwrap());
    assert_eq!(host.read(accepted.stream, &mut [0; 8]), Err(nb::Error::WouldBlock));
    peer.write_all(b"question").unwrap();
    assert_eq!(read_whole(&mut host, accepted.stream, 8), b"question");

    let parts = [IoSlice::new(b"ans"), IoSlice::new(b""), IoSlice::new(b"wer")];
    assert_eq!(host.write(accepted.stream, &parts, true), Ok(6));
    assert_eq!(host.write(accepted.stream, &[IoSlice::new(b"!")], false), Ok(1));
    host.shutdown(accepted.stream);
    let mut answer = String::new();
    peer.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "answer!");
}

#[test]
fn small_writes_are_not_held_back() {
    let (mut host, _directory) = host();
    let (_peer, accepted) = connect(&mut host);
    let nodelay = rustix::net::sockopt::tcp_nodelay(fd_of(accepted));
    assert_eq!(nodelay, Ok(true));
}

/// The host's descriptor of a stream, found by its addresses among the process's own.
fn fd_of(accepted: Accepted) -> std::os::fd::OwnedFd {
    let own = rustix::process::pidfd_open(rustix::process::getpid(), rustix::process::PidfdFlags::empty()).unwrap();
    for entry in std::fs::read_dir("/proc/self/fd").unwrap() {
        let number = entry.unwrap().file_name().to_str().unwrap().parse().unwrap();
        let Ok(fd) = rustix::process::pidfd_getfd(&own, number, rustix::process::PidfdGetfdFlags::empty()) else {
            continue;
        };
        let local = rustix::net::getsockname(&fd).ok();
        let peer = rustix::net::getpeername(&fd).ok().flatten();
        let address = |any: Option<SocketAddrAny>| SocketAddr::try_from(any?).ok();
        if address(local) == Some(accepted.local) && address(peer) == Some(accepted.peer) {
            return fd;
        }
    }
    panic!("no descriptor has these addresses");
}

#[test]
fn a_change_is_said_once() {
    let (mut host, _directory) = host();
    let (mut peer, accepted) = connect(&mut host);
    for _ in 0..2 {
        peer.write_all(b"unread").unwrap();
        wait_readable(&mut host, accepted.stream);
        let until = host.now() + Millis(20);
        host.wait(until, &mut |event| panic!("{event:?}"));
    }
    assert_eq!(read_whole(&mut host, accepted.stream, 12), b"unreadunread");
}

/// Goal: a full socket says `WouldBlock`, tells once when it can go on, and loses nothing.
#[test]
fn a_slow_reader_gets_every_byte() {
    let (mut host, _directory) = host();
    let (mut peer, accepted) = connect(&mut host);
    let stream = accepted.stream;
    let sent: Vec<u8> = (0..32_u32 << 20)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let mut at = 0;
    loop {
        match host.write(stream, &[IoSlice::new(&sent[at..])], false) {
            Ok(written) => at += written,
            Err(nb::Error::WouldBlock) => break,
            Err(error) => panic!("{error:?}"),
        }
    }
    assert!(at < sent.len(), "the socket must fill up for this test");
    // Nobody reads: nothing more is said, for as long as one asks.
    host.wait(Instant::from_micros(0), &mut |_| {});
    let until = host.now() + Millis(50);
    host.wait(until, &mut |event| panic!("{event:?}"));

    let expected = sent.clone();
    let reader = std::thread::spawn(move || {
        let mut all = Vec::new();
        peer.read_to_end(&mut all).unwrap();
        assert!(all == expected);
    });
    while at < sent.len() {
        match host.write(stream, &[IoSlice::new(&sent[at..])], false) {
            Ok(written) => at += written,
            Err(nb::Error::WouldBlock) => wait_for(&mut host, |event| match event {
                Event::Stream { writable, .. } => writable.then_some(()),
                _ => None,
            }),
            Err(error) => panic!("{error:?}"),
        }
    }
    host.shutdown(stream);
    reader.join().unwrap();
}

#[test]
fn a_half_closed_stream_reads_as_ended_and_still_sends() {
    let (mut host, _directory) = host();
    let (mut peer, accepted) = connect(&mut host);
    peer.write_all(b"last").unwrap();
    peer.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_whole(&mut host, accepted.stream, 4), b"last");
    wait_for(&mut host, |event| match event {
        Event::Stream { readable, hangup, .. } => (readable && hangup).then_some(()),
        _ => None,
    });
    assert_eq!(host.read(accepted.stream, &mut [0; 4]), Ok(0));
    assert_eq!(host.write(accepted.stream, &[IoSlice::new(b"bye")], false), Ok(3));
    Net::close(&mut host, accepted.stream);
    let mut rest = Vec::new();
    peer.read_to_end(&mut rest).unwrap();
    assert_eq!(rest, b"bye");
}

#[test]
fn a_reset_is_told_by_every_call() {
    let (mut host, directory) = host();
    std::fs::write(directory.path().join("file"), [7; 64]).unwrap();
    let file = host.open("file", OpenMode::Read).unwrap();
    for call in 0..3 {
        let (peer, accepted) = connect(&mut host);
        set_socket_linger(&peer, Some(std::time::Duration::ZERO)).unwrap();
        drop(peer);
        wait_for(&mut host, |event| match event {
            Event::Stream {
                readable,
                writable,
                hangup,
                ..
            } => (readable && writable && hangup).then_some(()),
            _ => None,
        });
        let stream = accepted.stream;
        let told = match call {
            0 => host.read(stream, &mut [0; 4]),
            1 => host.write(stream, &[IoSlice::new(b"x")], false),
            _ => host.send_file(stream, file, 0, 64),
        };
        assert_eq!(told, Err(nb::Error::Other(NetError::Reset)), "call {call}");
        // From now on the kernel says `EPIPE`.
        let again = host.write(stream, &[IoSlice::new(b"x")], false);
        assert_eq!(again, Err(nb::Error::Other(NetError::Reset)), "after call {call}");
        Net::close(&mut host, stream);
    }
}

/// Goal: with every slot taken, a connection waits in the backlog and comes in when one is free.
#[test]
fn full_slots_leave_connections_waiting() {
    let directory = Scratch::new();
    let mut config = config(&directory);
    config.streams_max = 1;
    let mut host = LinuxHost::new(config).unwrap();
    let (_first, accepted) = connect(&mut host);
    let mut second = TcpStream::connect(host.local_addr(LISTENER).unwrap()).unwrap();
    second.write_all(b"hello").unwrap();
    let full = host.accept(LISTENER).map(|_| ());
    assert_eq!(full, Err(nb::Error::Other(NetError::Exhausted)));
    assert_eq!(host.streams(), 1);
    Net::close(&mut host, accepted.stream);
    let accepted = host.accept(LISTENER).unwrap();
    assert_eq!(accepted.peer, second.local_addr().unwrap());
    assert_eq!(read_whole(&mut host, accepted.stream, 5), b"hello");
}

#[test]
fn a_closed_stream_is_gone_for_its_peer_and_for_us() {
    let (mut host, _directory) = host();
    let (mut peer, accepted) = connect(&mut host);
    Net::close(&mut host, accepted.stream);
    assert_eq!(peer.read(&mut [0; 4]).unwrap(), 0);
    let gone = Err(nb::Error::Other(NetError::Os(rustix::io::Errno::BADF.raw_os_error())));
    assert_eq!(host.read(accepted.stream, &mut [0; 4]), gone);
    assert_eq!(host.write(accepted.stream, &[], false), gone);
    host.shutdown(accepted.stream);
    Net::close(&mut host, accepted.stream);
    // The slot is used again, and its events are the new stream's.
    let (mut peer, again) = connect(&mut host);
    assert_eq!(again.stream, accepted.stream);
    peer.write_all(b"new").unwrap();
    assert_eq!(read_whole(&mut host, again.stream, 3), b"new");
}

#[test]
fn a_file_is_sent_without_passing_through() {
    let (mut host, directory) = host();
    let bytes: Vec<u8> = (0..300_000_u32).map(|n| (n / 7) as u8).collect();
    std::fs::write(directory.path().join("segment"), &bytes).unwrap();
    let file = host.open("segment", OpenMode::Read).unwrap();
    let (mut peer, accepted) = connect(&mut host);
    let reader = std::thread::spawn(move || {
        let mut all = Vec::new();
        peer.read_to_end(&mut all).unwrap();
        all
    });
    let mut at = 1000;
    loop {
        match host.send_file(accepted.stream, file, at, 1 << 20) {
            Ok(0) => break,
            Ok(sent) => at += sent as u64,
            Err(nb::Error::WouldBlock) => wait_for(&mut host, |event| match event {
                Event::Stream { writable, .. } => writable.then_some(()),
                _ => None,
            }),
            Err(error) => panic!("{error:?}"),
        }
    }
    Net::close(&mut host, accepted.stream);
    assert!(reader.join().unwrap() == bytes[1000..]);

    let (_peer, accepted) = connect(&mut host);
    Disk::close(&mut host, file);
    let no_file = NetError::File(DiskError::Os(rustix::io::Errno::BADF.raw_os_error()));
    assert_eq!(
        host.send_file(accepted.stream, file, 0, 1),
        Err(nb::Error::Other(no_file))
    );
}

/// Goal: more changes than one batch holds are all told.
#[test]
fn a_crowd_is_told_in_batches() {
    let (mut host, _directory) = host();
    let mut crowd: Vec<_> = (0..300).map(|_| connect(&mut host)).collect();
    host.wait(Instant::from_micros(0), &mut |_| {});
    host.wait(Instant::from_micros(0), &mut |_| {});
    for (peer, _) in &mut crowd {
        peer.write_all(b"x").unwrap();
    }
    let mut told = std::collections::BTreeSet::new();
    wait_for(&mut host, |event| {
        if let Event::Stream {
            stream, readable: true, ..
        } = event
        {
            told.insert(stream);
        }
        (told.len() == crowd.len()).then_some(())
    });
}

#[test]
fn more_slices_than_the_kernel_takes_are_a_short_write() {
    let (mut host, _directory) = host();
    let (_peer, accepted) = connect(&mut host);
    let slices = vec![IoSlice::new(b"x"); 3000];
    assert_eq!(host.write(accepted.stream, &slices, false), Ok(1024));
}

#[test]
fn sleep_ends_at_its_deadline_and_not_before() {
    let (mut host, _directory) = host();
    let until = host.now() + Millis(30);
    host.wait(until, &mut |event| panic!("{event:?}"));
    assert!(host.now() >= until);
}

#[test]
fn a_listener_made_elsewhere_is_taken_and_a_taken_address_is_named() {
    let directory = Scratch::new();
    let mut config = config(&directory);
    let bound = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = bound.local_addr().unwrap();
    config.listeners.push(Listen::Bound(bound));
    let mut host = LinuxHost::new(config).unwrap();
    assert_eq!(host.local_addr(ListenerId(1)), Some(address));
    assert_eq!(host.local_addr(ListenerId(2)), None);
    let _peer = TcpStream::connect(address).unwrap();
    wait_for(&mut host, |event| (event == Event::Accept(ListenerId(1))).then_some(()));
    assert_eq!(host.accept(ListenerId(1)).unwrap().local, address);

    let other = Scratch::new();
    let mut config = common::config(&other);
    config.listeners = vec![Listen::Bind(address)];
    match LinuxHost::new(config) {
        Err(error @ StartError::Listen(named, _)) => {
            assert_eq!(named, address);
            assert!(error.to_string().contains(&address.to_string()));
        }
        _ => panic!("two listeners on one address"),
    }
}
