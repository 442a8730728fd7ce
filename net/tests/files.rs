//! Files of the Linux host, with the ring and without.

mod common;

use std::io::{IoSlice, IoSliceMut};
use std::os::unix::fs::symlink;
use std::time::Duration;

use common::{Scratch, completion, config, rings};
use proptest::prelude::*;
use rustix::fs::{Advice, fadvise};
use rustix::io::Errno;
use skerry_net::host::{Completion, Disk, DiskError, FileId, OpenMode, Started, Token};
use skerry_net::linux::{LinuxConfig, LinuxHost, Ring, StartError};

fn host(ring: Ring) -> (LinuxHost, Scratch) {
    let directory = Scratch::new();
    let mut config = config(&directory);
    config.ring = ring;
    (LinuxHost::new(config).unwrap(), directory)
}

fn os(errno: Errno) -> DiskError {
    DiskError::Os(errno.raw_os_error())
}

/// Starts a sync and waits for its end, whichever variant does it.
fn sync(host: &mut LinuxHost, file: FileId, token: Token) -> Result<(), DiskError> {
    match host.start_sync(file, token)? {
        Started::Done => Ok(()),
        Started::Pending => {
            let done = completion(host);
            assert_eq!(done.token, token);
            done.result
        }
    }
}

/// Loads from `at` and waits for its end, whichever variant does it.
fn load(host: &mut LinuxHost, file: FileId, at: u64) {
    if host.start_load(file, at, 64 << 10, Token(at)) != Ok(Started::Done) {
        let done = completion(host);
        assert_eq!((done.token, done.result), (Token(at), Ok(())));
    }
}

/// Drops a file's clean pages from memory.
fn evict(directory: &Scratch, name: &str, from: u64) {
    let file = std::fs::File::open(directory.path().join(name)).unwrap();
    file.sync_all().unwrap();
    fadvise(&file, from, None, Advice::DontNeed).unwrap();
}

#[test]
fn open_modes_mean_what_they_say() {
    let (mut host, directory) = host(Ring::Off);
    assert_eq!(host.open("a", OpenMode::Read), Err(DiskError::NotFound));
    assert_eq!(host.open("a", OpenMode::Write), Err(DiskError::NotFound));
    let a = host.open("a", OpenMode::CreateNew).unwrap();
    assert_eq!(host.open("a", OpenMode::CreateNew), Err(DiskError::Exists));
    assert_eq!(host.write_at(a, 2, &[IoSlice::new(b"bc"), IoSlice::new(b"d")]), Ok(3));
    assert_eq!(host.len(a), Ok(5));
    let again = host.open("a", OpenMode::Create).unwrap();
    let mut bytes = [9; 8];
    assert_eq!(host.read_at(again, 0, &mut bytes), Ok(5));
    assert_eq!(bytes, [0, 0, b'b', b'c', b'd', 9, 9, 9]);
    let read = host.open("a", OpenMode::Read).unwrap();
    assert_eq!(host.write_at(read, 0, &[IoSlice::new(b"x")]), Err(os(Errno::BADF)));
    assert_eq!(host.open("a", OpenMode::Directory), Err(os(Errno::NOTDIR)));
    assert!(host.open("", OpenMode::Directory).is_ok());
    assert_eq!(std::fs::read(directory.path().join("a")).unwrap(), b"\0\0bcd");
}

#[test]
fn a_full_table_opens_no_more_until_one_is_closed() {
    let (mut host, _directory) = host(Ring::Off);
    let files: Vec<_> = (0..16).map(|_| host.open("f", OpenMode::Create).unwrap()).collect();
    assert_eq!(host.open("f", OpenMode::Read), Err(DiskError::Exhausted));
    Disk::close(&mut host, files[3]);
    assert_eq!(host.len(files[3]), Err(os(Errno::BADF)));
    assert_eq!(host.open("f", OpenMode::Read), Ok(files[3]));
    assert_eq!(host.disk().files(), 16);
}

#[test]
fn directories_and_names() {
    let (mut host, _directory) = host(Ring::Off);
    host.create_dir("topic-0").unwrap();
    assert_eq!(host.create_dir("topic-0"), Err(DiskError::Exists));
    let file = host.open("topic-0/new", OpenMode::CreateNew).unwrap();
    host.write_at(file, 0, &[IoSlice::new(b"new")]).unwrap();
    host.open("topic-0/old", OpenMode::CreateNew).unwrap();
    host.rename("topic-0/new", "topic-0/old").unwrap();
    assert_eq!(host.rename("topic-0/new", "topic-0/old"), Err(DiskError::NotFound));
    let mut names = Vec::new();
    host.list("topic-0", &mut |name| names.push(name.to_owned())).unwrap();
    assert_eq!(names, ["old"]);
    let mut names = Vec::new();
    host.list("", &mut |name| names.push(name.to_owned())).unwrap();
    assert_eq!(names, ["topic-0"]);
    assert_eq!(host.len(file), Ok(3), "a renamed file stays open");
    assert_eq!(host.remove_dir("topic-0"), Err(os(Errno::NOTEMPTY)));
    host.remove("topic-0/old").unwrap();
    assert_eq!(host.remove("topic-0/old"), Err(DiskError::NotFound));
    assert_eq!(host.len(file), Ok(3), "a removed file stays open");
    host.remove_dir("topic-0").unwrap();
    assert_eq!(host.list("topic-0", &mut |_| {}), Err(DiskError::NotFound));
}

#[test]
fn a_path_of_kafkas_longest_name_fits_and_an_impossible_one_is_refused() {
    let (mut host, _directory) = host(Ring::Off);
    let directory = "t".repeat(255);
    host.create_dir(&directory).unwrap();
    let path = format!("{directory}/00000000000000000000.log");
    assert!(host.open(&path, OpenMode::CreateNew).is_ok());
    assert_eq!(
        host.open(&"x/".repeat(256), OpenMode::Read),
        Err(os(Errno::NAMETOOLONG))
    );
    assert_eq!(host.open("nul\0byte", OpenMode::Read), Err(os(Errno::INVAL)));
}

#[test]
fn errors_of_the_device_have_their_names() {
    for ring in rings() {
        let (mut host, directory) = host(ring);
        symlink("/dev/full", directory.path().join("full")).unwrap();
        symlink("/proc/self/mem", directory.path().join("broken")).unwrap();
        let full = host.open("full", OpenMode::Write).unwrap();
        assert_eq!(host.write_at(full, 0, &[IoSlice::new(b"x")]), Err(DiskError::Full));
        // No page is mapped at address 0.
        let broken = host.open("broken", OpenMode::Read).unwrap();
        assert_eq!(host.read_at(broken, 0, &mut [0; 8]), Err(DiskError::Io));
        // A device without a sync: the error comes through whichever way the sync goes.
        assert_eq!(sync(&mut host, full, Token(1)), Err(os(Errno::INVAL)));
    }
}

#[test]
fn syncs_of_files_and_directories_complete_with_their_tokens() {
    for ring in rings() {
        let (mut host, _directory) = host(ring);
        let file = host.open("file", OpenMode::Create).unwrap();
        let directory = host.open("", OpenMode::Directory).unwrap();
        for turn in 0..100 {
            host.write_at(file, turn, &[IoSlice::new(b"x")]).unwrap();
            assert_eq!(sync(&mut host, file, Token(turn)), Ok(()));
            assert_eq!(sync(&mut host, directory, Token(!turn)), Ok(()));
            assert_eq!(host.poll_done(), None);
        }
        host.sync(file).unwrap();
        host.sync(directory).unwrap();
        let counters = host.disk().counters();
        match ring {
            Ring::Auto => assert_eq!((counters.ring_syncs, counters.blocking_syncs), (200, 2)),
            Ring::Off => assert_eq!((counters.ring_syncs, counters.blocking_syncs), (0, 202)),
        }
    }
}

/// Goal: a delayed sync begins no earlier than it should, also when many are under way, and ends as any other.
#[test]
fn a_delayed_sync_takes_at_least_its_delay() {
    for ring in rings() {
        let directory = Scratch::new();
        let delay = Duration::from_millis(20);
        let mut host = LinuxHost::new(LinuxConfig {
            ring,
            sync_delay: delay,
            ..config(&directory)
        })
        .unwrap();
        let file = host.open("file", OpenMode::Create).unwrap();
        host.write_at(file, 0, &[IoSlice::new(b"x")]).unwrap();
        for round in 0..5 {
            let start = std::time::Instant::now();
            let mut pending = 0;
            for token in 0..8 {
                pending += u32::from(host.start_sync(file, Token(token)).unwrap() == Started::Pending);
            }
            for _ in 0..pending {
                assert_eq!(completion(&mut host).result, Ok(()), "round {round}");
                assert!(start.elapsed() >= delay, "{ring:?}: a sync began too early");
            }
            assert!(start.elapsed() >= delay, "{ring:?}: a sync began too early");
            assert_eq!(host.poll_done(), None);
        }
    }
}

/// Goal: a file closed under a pending sync keeps its slot until the sync has ended, and then gives it back.
#[test]
fn closing_a_file_under_a_sync_is_safe() {
    if !rings().contains(&Ring::Auto) {
        return;
    }
    let (mut host, _directory) = host(Ring::Auto);
    let first = host.open("first", OpenMode::Create).unwrap();
    host.write_at(first, 0, &[IoSlice::new(&[1; 100_000])]).unwrap();
    assert_eq!(host.start_sync(first, Token(1)), Ok(Started::Pending));
    Disk::close(&mut host, first);
    assert_eq!(host.len(first), Err(os(Errno::BADF)));
    assert_eq!(host.start_sync(first, Token(2)), Err(os(Errno::BADF)));
    let second = host.open("second", OpenMode::Create).unwrap();
    assert_ne!(first, second);
    let done = Completion {
        token: Token(1),
        result: Ok(()),
    };
    assert_eq!(completion(&mut host), done);
    assert_eq!(host.disk().files(), 1);
    assert_eq!(host.open("third", OpenMode::Create), Ok(first));
}

/// Goal: the ring says when it is full, loads never take all of it, and it goes on after completions.
#[test]
fn a_full_ring_refuses_and_recovers() {
    if !rings().contains(&Ring::Auto) {
        return;
    }
    let (mut host, _directory) = host(Ring::Auto);
    let file = host.open("file", OpenMode::Create).unwrap();
    host.write_at(file, 0, &[IoSlice::new(&[1; 4096])]).unwrap();
    for round in 0..20 {
        let mut open = std::collections::BTreeSet::new();
        for token in 0..4 {
            assert_eq!(host.start_load(file, 0, 4096, Token(token)), Ok(Started::Pending));
            open.insert(token);
        }
        assert_eq!(
            host.start_load(file, 0, 4096, Token(99)),
            Err(DiskError::Exhausted),
            "round {round}"
        );
        for token in 4..8 {
            assert_eq!(host.start_sync(file, Token(token)), Ok(Started::Pending));
            open.insert(token);
        }
        assert_eq!(
            host.start_sync(file, Token(99)),
            Err(DiskError::Exhausted),
            "round {round}"
        );
        while !open.is_empty() {
            let done = completion(&mut host);
            assert_eq!(done.result, Ok(()));
            assert!(open.remove(&done.token.0), "{done:?} came twice or for nothing");
        }
        assert_eq!(host.poll_done(), None);
    }
}

/// Whether the kernel can say that a page is not in memory. Where it cannot (qemu's user mode), the tests of cold pages would test nothing: that
/// is a failure, unless `SKERRY_NO_NOWAIT=1` says that it is known.
fn tells_cold() -> bool {
    let (mut host, directory) = host(Ring::Off);
    std::fs::write(directory.path().join("file"), "x").unwrap();
    let file = host.open("file", OpenMode::Read).unwrap();
    let _ = host.read_cached(file, 0, &mut [IoSliceMut::new(&mut [0])]);
    let tells = host.disk().counters().blocking_reads == 0;
    let known = std::env::var("SKERRY_NO_NOWAIT").as_deref() == Ok("1");
    assert!(
        tells || known,
        "no RWF_NOWAIT here; set SKERRY_NO_NOWAIT=1 to leave out the tests of cold pages"
    );
    tells
}

/// Goal: a read of what is not in memory does not wait for the device; a load brings it, and then it is all there.
#[test]
fn cold_pages_are_told_loaded_and_read() {
    if !tells_cold() {
        return;
    }
    let bytes: Vec<u8> = (0..1_u32 << 20)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    for ring in rings() {
        let (mut host, directory) = host(ring);
        std::fs::write(directory.path().join("segment"), &bytes).unwrap();
        let file = host.open("segment", OpenMode::Read).unwrap();
        assert_eq!(host.cached(file, 0, bytes.len()), bytes.len());

        // The probe itself wakes the kernel's read-ahead, which could win once; not fifty times.
        let cold = (0..50).any(|_| {
            evict(&directory, "segment", 0);
            host.cached(file, 0, bytes.len()) == 0
        });
        assert!(
            cold,
            "nothing ever left memory: is {} on a disk?",
            directory.path().display()
        );
        let cold = (0..50).any(|_| {
            evict(&directory, "segment", 0);
            let mut part = [0; 4096];
            host.read_cached(file, 0, &mut [IoSliceMut::new(&mut part)]) == Err(nb::Error::WouldBlock)
        });
        assert!(cold, "a cold read was never refused");
        assert!(host.disk().counters().cold_reads > 0);

        evict(&directory, "segment", 0);
        let mut all = Vec::new();
        let mut loads = 0;
        while all.len() < bytes.len() {
            let at = all.len() as u64;
            let (mut a, mut b) = ([0; 10_000], [0; 20_000]);
            let mut parts = [IoSliceMut::new(&mut a), IoSliceMut::new(&mut b)];
            let mut read = host.read_cached(file, at, &mut parts);
            if read == Err(nb::Error::WouldBlock) || loads == 0 {
                load(&mut host, file, at);
                loads += 1;
                read = host.read_cached(file, at, &mut parts);
            }
            let read = read.expect("what was loaded is there");
            all.extend_from_slice(&[&a[..], &b[..]].concat()[..read]);
        }
        assert!(all == bytes);
        assert!(host.read_cached(file, 1 << 20, &mut [IoSliceMut::new(&mut [0; 16])]) == Ok(0));
        let counters = host.disk().counters();
        let (by_ring, blocking) = if ring == Ring::Auto { (loads, 0) } else { (0, loads) };
        assert_eq!((counters.ring_loads, counters.blocking_reads), (by_ring, blocking));
    }
}

#[test]
fn what_is_cached_is_counted_up_to_the_first_hole() {
    if !tells_cold() {
        return;
    }
    let (mut host, directory) = host(Ring::Off);
    let bytes = 4 << 20;
    std::fs::write(directory.path().join("segment"), vec![1; bytes]).unwrap();
    let file = host.open("segment", OpenMode::Read).unwrap();
    let partly = (0..50).any(|_| {
        evict(&directory, "segment", 2 << 20);
        let cached = host.cached(file, 0, bytes);
        let _ = std::fs::read(directory.path().join("segment"));
        0 < cached && cached < bytes
    });
    assert!(partly, "a half that left memory was never seen");
    assert_eq!(host.cached(FileId(99), 0, 1), 0);
}

#[test]
fn a_file_that_cannot_tell_is_read_and_counted() {
    let (mut host, directory) = host(Ring::Off);
    symlink("/proc/version", directory.path().join("version")).unwrap();
    let file = host.open("version", OpenMode::Read).unwrap();
    let mut part = [0; 5];
    for turn in 1..4 {
        assert_eq!(host.read_cached(file, 0, &mut [IoSliceMut::new(&mut part)]), Ok(5));
        assert_eq!(&part, b"Linux");
        assert_eq!(host.disk().counters().blocking_reads, turn);
    }
    assert_eq!(host.cached(file, 0, 1000), 1000);
}

#[test]
fn a_second_host_is_refused_the_directory() {
    let directory = Scratch::new();
    let first = LinuxHost::new(config(&directory)).unwrap();
    match LinuxHost::new(config(&directory)) {
        Err(error @ StartError::DataDirectory(..)) => assert!(error.to_string().contains("in use")),
        _ => panic!("two hosts on one directory"),
    }
    drop(first);
    assert!(LinuxHost::new(config(&directory)).is_ok());
}

#[derive(Clone, Debug)]
enum Step {
    Write(u64, Vec<u8>),
    Truncate(u64),
    Read(u64, usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0_u64..20_000, prop::collection::vec(any::<u8>(), 0..3000)).prop_map(|(at, bytes)| Step::Write(at, bytes)),
        (0_u64..20_000).prop_map(Step::Truncate),
        (0_u64..25_000, 0_usize..3000).prop_map(|(at, bytes)| Step::Read(at, bytes)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_file_behaves_as_a_vector(steps in prop::collection::vec(step(), 0..40)) {
        let (mut host, _directory) = host(Ring::Off);
        let file = host.open("file", OpenMode::Create).unwrap();
        let mut model: Vec<u8> = Vec::new();
        for step in steps {
            match step {
                Step::Write(at, bytes) => {
                    let (head, tail) = bytes.split_at(bytes.len() / 3);
                    prop_assert_eq!(host.write_at(file, at, &[IoSlice::new(head), IoSlice::new(tail)]), Ok(bytes.len()));
                    if !bytes.is_empty() {
                        let end = at as usize + bytes.len();
                        model.resize(model.len().max(end), 0);
                        model[at as usize..end].copy_from_slice(&bytes);
                    }
                }
                Step::Truncate(bytes) => {
                    host.truncate(file, bytes).unwrap();
                    model.resize(bytes as usize, 0);
                }
                Step::Read(at, bytes) => {
                    let start = model.len().min(at as usize);
                    let expected = &model[start..model.len().min(at as usize + bytes)];
                    let mut read = vec![0; bytes];
                    let mut cached = vec![0; bytes];
                    prop_assert_eq!(host.read_at(file, at, &mut read), Ok(expected.len()));
                    prop_assert_eq!(&read[..expected.len()], expected);
                    prop_assert_eq!(host.read_cached(file, at, &mut [IoSliceMut::new(&mut cached)]), Ok(expected.len()));
                    prop_assert_eq!(&cached[..expected.len()], expected);
                }
            }
            prop_assert_eq!(host.len(file), Ok(model.len() as u64));
        }
    }
}
