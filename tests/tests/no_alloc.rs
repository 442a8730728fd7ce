//! No allocation per request. First of all: that the counter counts.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use skerry_tests::preload::{AllocationCount, compile};

/// Goal: each way to allocate is counted once, with its bytes; anything else is not.
/// Method: a process that allocates as told, one byte an order.
#[test]
fn the_counter_sees_every_allocation() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("no-alloc-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let count = AllocationCount::build(&directory).unwrap();
    assert!(count.allocations().is_err(), "nothing is being watched yet");
    let program = directory.join("allocates");
    compile("allocates.c", &program, &[]).unwrap();
    let mut command = Command::new(&program);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = count.watch(&mut command).spawn().unwrap();
    let (mut orders, mut answers) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut order = |order: u8| {
        orders.write_all(&[order]).unwrap();
        let mut answer = [0];
        answers.read_exact(&mut answer).unwrap();
        (count.allocations().unwrap(), count.bytes().unwrap())
    };

    let mut before = order(b'-');
    for (kind, bytes) in [
        (b'm', 10),
        (b'c', 20),
        (b'r', 30),
        (b'a', 128),
        (b'l', 128),
        (b'p', 50),
        (b'v', 60),
    ] {
        let after = order(kind);
        assert_eq!(after, (before.0 + 1, before.1 + bytes), "order {}", kind as char);
        assert_eq!(order(b'-'), after, "an order without allocation");
        before = after;
    }
    // Traced, an allocation is counted as before and names its caller.
    count.trace(true).unwrap();
    assert_eq!(order(b'm'), (before.0 + 1, before.1 + 10));
    count.trace(false).unwrap();
    order(b'm');

    drop(orders);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let traced = String::from_utf8(output.stderr).unwrap();
    assert_eq!(traced.matches("\n\n").count(), 1, "one backtrace: {traced}");
    assert!(traced.contains("allocates"), "the trace names the program: {traced}");
    std::fs::remove_dir_all(&directory).unwrap();
}
