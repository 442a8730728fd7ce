//! The command line from end to end: the built binary as broker and as its tools.
//!
//! `SKERRY_TEST_BROKER=host:port` runs the tests of the tools against another broker instead, such as Kafka itself. Topics and
//! groups are named after the process, so that a broker may be used again.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use skerry_tests::process::{self, PATIENCE, Skerry, Start, TempDir};

/// A broker, and the tools that talk to it.
struct Shell {
    address: String,
    _broker: Option<(Skerry, TempDir)>,
}

impl Shell {
    fn new() -> Self {
        if let Ok(address) = std::env::var("SKERRY_TEST_BROKER") {
            return Self { address, _broker: None };
        }
        let dir = TempDir::new();
        let broker = Start::new(dir.path())
            .with(&["group.initial.rebalance.delay.ms=0"])
            .start();
        Self {
            address: broker.address.to_string(),
            _broker: Some((broker, dir)),
        }
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(process::skerry());
        command
            .args(line.split_whitespace())
            .env("SKERRY_BOOTSTRAP_SERVER", &self.address);
        command
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn start(&self, line: &str) -> Child {
        self.command(line).spawn().expect("skerry starts")
    }

    fn run(&self, line: &str) -> Output {
        self.start(line).wait_with_output().expect("its end")
    }

    /// Runs a command that must succeed; what it printed.
    fn ok(&self, line: &str) -> String {
        let output = self.run(line);
        assert!(output.status.success(), "{line}: {output:?}");
        text(&output.stdout)
    }

    /// Runs a command that must fail and print no data; its status and what it said.
    fn fails(&self, line: &str) -> (Option<i32>, String) {
        let output = self.run(line);
        assert!(
            !output.status.success() && output.stdout.is_empty(),
            "{line}: {output:?}"
        );
        (output.status.code(), text(&output.stderr))
    }

    /// Runs a command on `input`; what it printed.
    fn feed(&self, line: &str, input: &str) -> String {
        let mut child = self.command(line).stdin(Stdio::piped()).spawn().expect("skerry starts");
        child
            .stdin
            .take()
            .expect("its input")
            .write_all(input.as_bytes())
            .expect("it reads");
        let output = child.wait_with_output().expect("its end");
        assert!(output.status.success(), "{line}: {output:?}");
        text(&output.stdout)
    }

    fn topic(&self, partitions: u32) -> String {
        let name = name("topic");
        self.ok(&format!("topics create {name} --partitions {partitions}"));
        name
    }
}

/// A name that no other test, or run, has.
fn name(kind: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!(
        "cli-test-{kind}-{}-{}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    )
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

/// Lines in order of their text.
fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// `key:value` lines.
fn pairs(from: u32, to: u32) -> String {
    (from..to).map(|n| format!("k{n}:v{n}\n")).collect()
}

#[test]
fn topics_are_created_listed_described_and_deleted() {
    let shell = Shell::new();
    let topic = name("topic");
    assert_eq!(
        shell.ok(&format!("topics create {topic} --partitions 3")),
        format!("created {topic}\n")
    );
    let (code, said) = shell.fails(&format!("topics create {topic}"));
    assert_eq!(code, Some(1));
    assert!(
        said.starts_with(&format!("skerry: topic {topic}: ")) && said.contains("TOPIC_ALREADY_EXISTS"),
        "{said}"
    );
    assert_eq!(shell.ok(&format!("topics create {topic} --if-not-exists")), "");

    let listed = shell.ok("topics list --json");
    let mine = listed
        .lines()
        .find(|line| line.contains(&topic))
        .expect("the topic is listed");
    assert!(
        mine.contains("\"partitions\":3") && mine.contains("\"internal\":false"),
        "{mine}"
    );
    let described = shell.ok(&format!("topics describe {topic}"));
    assert!(described.starts_with(&format!("topic {topic}\nid ")), "{described}");
    assert!(
        described.contains("PARTITION  LEADER  REPLICAS  IN-SYNC  BEGIN  END\n        0 "),
        "{described}"
    );

    assert_eq!(
        shell.ok(&format!("topics delete {topic}")),
        format!("deleted {topic}\n")
    );
    until("the topic is gone", || !shell.ok("topics list").contains(&topic));
    let (code, said) = shell.fails(&format!("topics describe {topic}"));
    let cure = format!("skerry: there is no topic {topic}; make it with: skerry topics create {topic}\n");
    assert_eq!((code, said), (Some(1), cure));
    let (_, said) = shell.fails(&format!("topics delete {topic}"));
    assert!(said.contains("UNKNOWN_TOPIC_OR_PARTITION"), "{said}");
    assert_eq!(shell.ok(&format!("topics delete {topic} --if-exists")), "");
}

#[test]
fn topics_are_altered() {
    let shell = Shell::new();
    let topic = shell.topic(2);
    let altered = format!("altered {topic}\n");
    assert_eq!(
        shell.ok(&format!(
            "topics alter {topic} --partitions 4 --config retention.ms=86400000"
        )),
        altered
    );
    let described = shell.ok(&format!("topics describe {topic}"));
    assert!(
        described.contains("\nretention.ms=86400000\n") && described.contains("\n        3 "),
        "{described}"
    );
    assert_eq!(
        shell.ok(&format!("topics alter {topic} --delete-config retention.ms")),
        altered
    );
    assert!(!shell.ok(&format!("topics describe {topic}")).contains("retention.ms"));
    assert!(
        shell
            .ok(&format!("topics describe {topic} --all-configs"))
            .contains("\nretention.ms=")
    );

    let (_, said) = shell.fails(&format!("topics alter {topic} --partitions 3"));
    assert!(said.contains("INVALID_PARTITIONS"), "{said}");
    let (_, said) = shell.fails(&format!("topics alter {topic} --config no.such.setting=1"));
    assert!(
        said.contains("INVALID_CONFIG") && said.contains("no.such.setting"),
        "{said}"
    );
    let (_, said) = shell.fails(&format!("topics alter {topic}"));
    assert_eq!(
        said,
        "skerry: nothing to alter: give --partitions, --config or --delete-config\n"
    );
}

#[test]
fn records_come_back_whole_under_every_codec() {
    let shell = Shell::new();
    let topic = shell.topic(3);
    let input: String = "k1:v1\nk2:\nno key\nk3:NULL\n".into();
    for codec in ["none", "gzip", "snappy", "lz4", "zstd"] {
        let options = "-K : --null-value NULL --header a=1 --header b=2 --timestamp 1700000000123";
        let sent = shell.feed(
            &format!("produce {topic} {options} --compression {codec} --json"),
            &input,
        );
        assert_eq!(sent.lines().count(), 4, "{sent}");
        assert!(sent.lines().all(|line| line.contains("\"offset\":")), "{sent}");
    }
    let read = shell.ok(&format!(
        "consume {topic} --from-beginning --until-end --format %k|%v|%T|%h\\n"
    ));
    let want: Vec<&str> = ["k1|v1", "k2|", "k3|", "|no key"]
        .into_iter()
        .flat_map(|line| [line; 5])
        .collect();
    let want: Vec<String> = want
        .iter()
        .map(|line| format!("{line}|1700000000123|a=1,b=2"))
        .collect();
    let mut want: Vec<&str> = want.iter().map(String::as_str).collect();
    want.sort_unstable();
    assert_eq!(sorted(&read), want);

    // Only JSON tells a tombstone from an empty value.
    let json = shell.ok(&format!("consume {topic} --from-beginning --until-end --json"));
    assert_eq!(json.lines().filter(|line| line.contains("\"value\":null")).count(), 5);
    assert_eq!(json.lines().filter(|line| line.contains("\"value\":\"\"")).count(), 5);
    assert_eq!(json.lines().filter(|line| line.contains("\"key\":null")).count(), 5);
}

#[test]
fn one_key_stays_in_one_partition_and_one_partition_can_be_chosen() {
    let shell = Shell::new();
    let topic = shell.topic(5);
    for _ in 0..3 {
        shell.feed(&format!("produce {topic} -K :"), &pairs(0, 50));
    }
    let read = shell.ok(&format!("consume {topic} --from-beginning -e --format %k:%p\\n"));
    let mut placed = sorted(&read);
    assert_eq!(placed.len(), 150);
    placed.dedup();
    assert_eq!(placed.len(), 50, "a key is in two partitions");

    shell.feed(&format!("produce {topic} --partition 4 --acks 1"), "here\n");
    let read = shell.ok(&format!(
        "consume {topic} --partition 4 --offset -1 -e --format %p:%v\\n"
    ));
    assert_eq!(read, "4:here\n");
    let (code, said) = shell.fails(&format!("consume {topic} --partition 5"));
    assert_eq!(
        (code, said),
        (Some(1), format!("skerry: topic {topic} has no partition 5; it has 5\n"))
    );
}

#[test]
fn reading_begins_and_ends_where_it_is_told() {
    let shell = Shell::new();
    let topic = shell.topic(1);
    shell.feed(&format!("produce {topic} --timestamp 1000"), "a\nb\n");
    shell.feed(&format!("produce {topic} --timestamp 2000"), "c\nd\n");
    let read = |options: &str| shell.ok(&format!("consume {topic} --format %v {options}"));
    assert_eq!(read("--from-beginning -e"), "abcd");
    assert_eq!(read("--offset 1 -n 2"), "bc");
    assert_eq!(read("--offset -1 -e"), "d");
    assert_eq!(read("--offset @1500 -e"), "cd");
    assert_eq!(read("--offset @9000 -e"), "");
    assert_eq!(read("--offset latest -e"), "");
    assert_eq!(read("--offset earliest --timeout 10"), "abcd");
    // In the middle of a batch, however the lines were put together.
    let numbers: String = (4..2000).map(|n| format!("{n}\n")).collect();
    shell.feed(&format!("produce {topic}"), &numbers);
    for at in [500, 777, 1234, 1999] {
        assert_eq!(read(&format!("--offset {at} -n 1")), at.to_string());
    }
    // Past the end there is nothing to go on from: it begins again with what is there, and says so.
    let output = shell.run(&format!(
        "consume {topic} --offset 9999 -n 1 --timeout 20000 --format %v"
    ));
    assert_eq!(text(&output.stdout), "a");
    assert!(
        text(&output.stderr).contains("there is no offset 9999; going on at 0"),
        "{output:?}"
    );
}

#[test]
fn what_is_produced_without_an_answer_arrives_too() {
    let shell = Shell::new();
    let topic = shell.topic(1);
    shell.feed(&format!("produce {topic} --acks 0"), "a\nb\n");
    assert_eq!(
        shell.ok(&format!("consume {topic} --from-beginning -n 2 --format %v")),
        "ab"
    );
}

#[test]
fn a_group_goes_on_where_it_stopped_and_shows_its_lag() {
    let shell = Shell::new();
    let (topic, group) = (shell.topic(3), name("group"));
    shell.feed(&format!("produce {topic} -K :"), &pairs(0, 300));
    let first = shell.ok(&format!(
        "consume {topic} --group {group} --from-beginning -n 100 --timeout 20000 --format %v\\n"
    ));
    assert_eq!(first.lines().count(), 100);
    // Not told to begin at the beginning: what was assigned but not yet read must not be passed over.
    let rest = shell.ok(&format!(
        "consume {topic} --group {group} -n 200 --timeout 20000 --format %v\\n"
    ));
    let mut all: Vec<&str> = first.lines().chain(rest.lines()).collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 300, "a record is lost or read twice");

    shell.feed(&format!("produce {topic} --partition 1"), "x\ny\n");
    let described = shell.ok(&format!("groups describe {group} --json"));
    assert!(described.contains("\"state\":\"Empty\""), "{described}");
    assert!(
        described.contains("\"lag\":2,\"member\":null,\"partition\":1"),
        "{described}"
    );
    assert!(shell.ok("groups list").contains(&group));

    shell.ok(&format!("groups offsets {group} --topic {topic} --to earliest"));
    let offsets = shell.ok(&format!(
        "groups offsets {group} --topic {topic} --partition 1 --to -1 --json"
    ));
    assert_eq!(offsets.lines().count(), 1);
    let again = shell.ok(&format!("consume {topic} --group {group} -n 1 --timeout 20000 --json"));
    assert!(again.contains("\"topic\""), "{again}");
    assert_eq!(
        shell.ok(&format!("groups delete {group}")),
        format!("deleted {group}\n")
    );
    let (code, said) = shell.fails(&format!("groups describe {group}"));
    assert_eq!(
        (code, said),
        (Some(1), format!("skerry: there is no classic group {group}\n"))
    );
}

/// A consumer in a group, and what it has printed.
struct Reader {
    child: Child,
    lines: std::sync::mpsc::Receiver<String>,
}

impl Reader {
    fn start(shell: &Shell, topic: &str, group: &str) -> Self {
        let mut child = shell.start(&format!(
            "consume {topic} --group {group} --from-beginning --format %v\\n"
        ));
        let out = BufReader::new(child.stdout.take().expect("its output"));
        let (to, lines) = std::sync::mpsc::channel();
        std::thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| to.send(line)));
        Self { child, lines }
    }

    fn interrupt(&self) {
        let pid = i32::try_from(self.child.id())
            .ok()
            .and_then(Pid::from_raw)
            .expect("a process id");
        kill_process(pid, Signal::INT).expect("it takes a signal");
    }
}

/// Goal: members share a topic, and what one leaves the other gets, each record once. Method: two members, records, an
/// interrupt, records; together they printed each once.
#[test]
fn members_share_and_hand_over() {
    let shell = Shell::new();
    let (topic, group) = (shell.topic(4), name("group"));
    let mut readers = [
        Reader::start(&shell, &topic, &group),
        Reader::start(&shell, &topic, &group),
    ];
    let members = |count: usize| {
        // Until the first of them has joined there is no group.
        let output = shell.run(&format!("groups describe {group} --json"));
        let described = text(&output.stdout);
        described.contains("\"state\":\"Stable\"") && described.matches("\"client\":").count() == count
    };
    until("two members share the group", || members(2));

    let mut seen: Vec<String> = Vec::new();
    shell.feed(&format!("produce {topic} -K :"), &pairs(0, 200));
    until("both have printed", || {
        seen.extend(readers.iter().flat_map(|reader| reader.lines.try_iter()));
        seen.len() >= 200
    });
    readers[0].interrupt();
    assert!(readers[0].child.wait().expect("its end").success());
    until("one member has all", || members(1));
    shell.feed(&format!("produce {topic} -K :"), &pairs(200, 400));
    until("the other has printed the rest", || {
        seen.extend(readers[1].lines.try_iter());
        seen.len() >= 400
    });
    readers[1].interrupt();
    assert!(readers[1].child.wait().expect("its end").success());
    seen.extend(readers.iter().flat_map(|reader| reader.lines.try_iter()));
    seen.sort_unstable();
    let mut want: Vec<String> = (0..400).map(|n| format!("v{n}")).collect();
    want.sort_unstable();
    assert_eq!(seen, want);
    let described = shell.ok(&format!("groups describe {group} --json"));
    assert_eq!(described.matches("\"lag\":0,").count(), 4, "{described}");
}

#[test]
fn a_closed_pipe_ends_a_command_quietly() {
    let shell = Shell::new();
    let topic = shell.topic(1);
    shell.feed(
        &format!("produce {topic}"),
        &"a line that fills the pipe\n".repeat(20_000),
    );
    let mut child = shell.start(&format!("consume {topic} --from-beginning"));
    let mut first = String::new();
    BufReader::with_capacity(64, child.stdout.take().expect("its output"))
        .read_line(&mut first)
        .expect("a line");
    let mut said = String::new();
    child
        .stderr
        .take()
        .expect("its errors")
        .read_to_string(&mut said)
        .expect("text");
    assert!(child.wait().expect("its end").success());
    assert_eq!((first.as_str(), said.as_str()), ("a line that fills the pipe\n", ""));
}

#[test]
fn a_broker_that_is_away_is_named_and_wrong_use_has_its_own_status() {
    let nowhere = Shell {
        address: "127.0.0.1:1".into(),
        _broker: None,
    };
    let (code, said) = nowhere.fails("topics list");
    let want = "skerry: cannot reach 127.0.0.1:1: connection refused; is the broker running there?\n";
    assert_eq!((code, said.as_str()), (Some(1), want));
    assert_eq!(nowhere.fails("topics create").0, Some(2));
    assert_eq!(nowhere.fails("consume t --format %q").0, Some(1));
    assert_eq!(nowhere.fails("nonsense").0, Some(2));
}

#[test]
fn a_wrong_configuration_is_told_whole_and_nothing_is_started() {
    let dir = TempDir::new();
    let file = dir.path().join("server.properties");
    std::fs::write(
        &file,
        "num.partitons=3\n\nlog.segment.bytes=1g\nlisteners=SASL_SSL://:9093\n",
    )
    .expect("a file");
    let shell = Shell {
        address: String::new(),
        _broker: None,
    };
    let (code, said) = shell.fails(&format!("run {}", file.display()));
    let file = file.display();
    let want = format!(
        "skerry: {file}:1: num.partitons=3: unknown setting; did you mean num.partitions?\n\
         skerry: {file}:3: log.segment.bytes=1g: allowed: a whole number from 1024 to 2147483647\n\
         skerry: {file}:4: listeners=SASL_SSL://:9093: SASL_SSL is not in this release, which speaks PLAINTEXT and SSL\n"
    );
    assert_eq!((code, said), (Some(1), want));
    let (code, said) = shell.fails("run /nowhere/server.properties");
    let want = "skerry: cannot read /nowhere/server.properties: No such file or directory (os error 2)\n";
    assert_eq!((code, said.as_str()), (Some(1), want));
}

#[test]
fn settings_come_from_file_environment_and_override() {
    let dir = TempDir::new();
    let file = dir.path().join("server.properties");
    std::fs::write(
        &file,
        "num.partitions=2\nlog.roll.hours=3\nlog.index.interval.bytes=9\n",
    )
    .expect("a file");
    let shell = Shell {
        address: String::new(),
        _broker: None,
    };
    let mut command = shell.command(&format!("config {} --override num.partitions=4", file.display()));
    command
        .env("SKERRY_NUM_PARTITIONS", "3")
        .env("SKERRY_LOG_ROLL_HOURS", "5")
        .env("SKERRY_FLUSH", "never");
    let listed = text(&command.output().expect("its end").stdout);
    assert!(listed.contains("\nnum.partitions=4   [--override]\n"), "{listed}");
    assert!(
        listed.contains("\nlog.roll.hours=5   [SKERRY_LOG_ROLL_HOURS]\n"),
        "{listed}"
    );
    assert!(listed.contains("\nskerry.flush=never   [SKERRY_FLUSH]\n"), "{listed}");
    assert!(
        listed.contains(&format!("\nlog.index.interval.bytes=9   [{}:3]\n", file.display())),
        "{listed}"
    );
}

#[test]
fn completions_name_every_command() {
    let shell = Shell {
        address: String::new(),
        _broker: None,
    };
    for kind in ["bash", "zsh", "fish"] {
        let script = shell.ok(&format!("completions {kind}"));
        for command in ["run", "topics", "groups", "produce", "consume", "config", "completions"] {
            assert!(script.contains(command), "{kind} {command}");
        }
    }
    assert!(shell.ok("version").starts_with("skerry "));
}
