//! The example firmware under qemu against the broker that runs: its UART is a connection to a listener. `tests/firmware.sh`
//! builds it and says where it is.

use std::env;
use std::fs::File;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use skerry_tests::client::Client;
use skerry_tests::process::{PATIENCE, Start, TempDir};
use skerry_tests::tls::files;

/// Records that the firmware sends.
const READINGS: u32 = 20;

fn path(variable: &str) -> PathBuf {
    env::var_os(variable)
        .unwrap_or_else(|| panic!("tests/firmware.sh sets {variable}"))
        .into()
}

/// Runs a firmware with its UART connected to `broker`; its exit code and what it logged.
fn run(name: &str, broker: SocketAddr) -> (Option<i32>, String) {
    let elf = path("SKERRY_FIRMWARE").join(name);
    let directory = TempDir::new();
    let frames = directory.path().join("frames");
    let mut emulator = Command::new("qemu-system-arm")
        .args([
            "-M",
            "mps2-an386",
            "-cpu",
            "cortex-m4",
            "-nographic",
            "-monitor",
            "none",
        ])
        .args(["-semihosting-config", "enable=on,target=native"])
        .args(["-serial", &format!("tcp:{broker},nodelay=on")])
        .arg("-kernel")
        .arg(&elf)
        .stdin(Stdio::null())
        .stdout(File::create(&frames).expect("a file"))
        .spawn()
        .expect("qemu-system-arm runs: tests/setup.sh firmware installs it");
    let until = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = emulator.try_wait().expect("its status") {
            break status;
        }
        if Instant::now() > until {
            let _ = emulator.kill();
        }
        thread::sleep(Duration::from_millis(10));
    };
    let log = Command::new(path("SKERRY_FIRMWARE_LOG"))
        .arg(&elf)
        .stdin(File::open(&frames).expect("what it logged"))
        .output()
        .expect("the decoder runs");
    let log = String::from_utf8_lossy(&log.stdout).into_owned();
    println!("--- {name}\n{log}---");
    (status.code(), log)
}

/// The most that the stack had, buffers in it included, as the firmware told.
fn stack_bytes(log: &str) -> usize {
    let (_, rest) = log.split_once("the stack had ").expect("it tells");
    rest.split(' ')
        .next()
        .and_then(|bytes| bytes.parse().ok())
        .expect("a number")
}

/// Every reading once, in order, with its key.
fn all_arrived(broker: SocketAddr) {
    let (records, end) = Client::connect(broker).fetch("readings", 0, 0, 0);
    assert_eq!(end, i64::from(READINGS));
    let values: Vec<_> = records.iter().map(|record| record.value.clone()).collect();
    assert_eq!(
        values,
        (0..READINGS).map(|n| n.to_be_bytes().to_vec()).collect::<Vec<_>>()
    );
    assert!(records.iter().all(|record| record.key.as_deref() == Some(b"device-7")));
}

#[test]
#[ignore = "tests/firmware.sh builds what it needs"]
fn readings_arrive() {
    let data = TempDir::new();
    let broker = Start::new(data.path()).start();
    let (code, log) = run("producer", broker.address);
    assert_eq!(code, Some(0), "{log}");
    assert!(stack_bytes(&log) <= 4 << 10, "{log}");
    all_arrived(broker.address);
}

#[test]
#[ignore = "tests/firmware.sh builds what it needs"]
fn readings_arrive_over_tls() {
    let (data, certificates) = (TempDir::new(), TempDir::new());
    let settings = files::settings(certificates.path());
    let overrides: Vec<_> = settings.iter().map(String::as_str).collect();
    let mut start = Start::new(data.path()).with(&overrides);
    start.listeners = files::LISTENERS;
    let broker = start.start();
    let (code, log) = run("producer-tls", broker.listener("SSL"));
    assert_eq!(code, Some(0), "{log}\n{}", broker.stderr());
    assert!(stack_bytes(&log) <= 17 << 10, "{log}");
    all_arrived(broker.address);
}
