//! What concerns a whole process: its signals and its descriptors. Without the test harness, whose threads would take the
//! signals and open descriptors of their own.

mod common;

use std::net::TcpStream;

use common::{Scratch, config, wait_for};
use rustix::process::{Resource, Rlimit, Signal, getpid, getrlimit, kill_process, setrlimit};
use skerry_core::time::Instant;
use skerry_net::host::{Disk, DiskError, Event, Host, ListenerId, Net, NetError, OpenMode};
use skerry_net::linux::LinuxHost;

fn main() {
    signals_are_events();
    exhausted_descriptors_are_told_and_pass();
    the_descriptor_limit_is_raised_as_far_as_it_goes();
    println!("process: 3 passed");
}

fn signals_are_events() {
    let directory = Scratch::new();
    let mut host = LinuxHost::new(config(&directory)).unwrap();
    for (signal, event) in [
        (Signal::HUP, Event::Reload),
        (Signal::TERM, Event::Stop),
        (Signal::INT, Event::Stop),
        (Signal::HUP, Event::Reload),
    ] {
        kill_process(getpid(), signal).unwrap();
        assert_eq!(wait_for(&mut host, Some), event, "{signal:?}");
        host.wait(Instant::from_micros(0), &mut |event| panic!("{event:?} came twice"));
    }
    // Several at once: each is told, none ends the process.
    kill_process(getpid(), Signal::HUP).unwrap();
    kill_process(getpid(), Signal::TERM).unwrap();
    kill_process(getpid(), Signal::PIPE).unwrap();
    let mut told = Vec::new();
    host.wait(Instant::from_micros(0), &mut |event| told.push(event));
    told.sort_by_key(|event| *event == Event::Stop);
    assert_eq!(told, [Event::Reload, Event::Stop]);
}

/// Goal: a process without a free descriptor says so, keeps the connection waiting, and takes it when it has one.
fn exhausted_descriptors_are_told_and_pass() {
    let directory = Scratch::new();
    let mut host = LinuxHost::new(config(&directory)).unwrap();
    let listener = ListenerId(0);
    let peer = TcpStream::connect(host.local_addr(listener).unwrap()).unwrap();
    wait_for(&mut host, |event| (event == Event::Accept(listener)).then_some(()));
    let before = getrlimit(Resource::Nofile);
    let none = Rlimit {
        current: Some(3),
        maximum: before.maximum,
    };
    setrlimit(Resource::Nofile, none).unwrap();
    let accepted = host.accept(listener).map(|_| ());
    let opened = host.open("file", OpenMode::Create);
    setrlimit(Resource::Nofile, before).unwrap();
    assert_eq!(accepted, Err(nb::Error::Other(NetError::Exhausted)));
    assert_eq!(opened, Err(DiskError::Exhausted));
    assert_eq!(host.accept(listener).unwrap().peer, peer.local_addr().unwrap());
    assert!(host.open("file", OpenMode::Create).is_ok());
}

fn the_descriptor_limit_is_raised_as_far_as_it_goes() {
    let before = getrlimit(Resource::Nofile);
    let low = Rlimit {
        current: Some(64),
        maximum: before.maximum,
    };
    setrlimit(Resource::Nofile, low).unwrap();
    let directory = Scratch::new();
    let host = LinuxHost::new(config(&directory)).unwrap();
    let descriptors = host.descriptors();
    let after = getrlimit(Resource::Nofile).current;
    setrlimit(Resource::Nofile, before).unwrap();
    assert_eq!(descriptors.wanted, 512 + 16 + 1 + 16);
    assert_eq!(Some(descriptors.limit), after);
    assert_eq!(
        descriptors.limit,
        descriptors.wanted.min(before.maximum.unwrap_or(u64::MAX))
    );
}
