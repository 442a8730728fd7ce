//! Two members share a topic while records flow; the first is killed. Nothing is lost, and nothing is read again once its offset is
//! committed.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::clients::{Broker, Client};

/// Records of one run, and the pause between two: some twenty seconds of flow, longer than a session times out.
const RECORDS: usize = 1500;
const PAUSE_MS: &str = "10";

/// How long any one step may take. Not a measure of anything.
const PATIENCE: Duration = Duration::from_secs(120);

/// What a client's program printed, of one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    /// The broker acknowledged the record at this offset.
    Acked { partition: i32, offset: i64 },
    /// A member was handed the record at this offset.
    Read { partition: i32, offset: i64 },
    /// The broker took the commit of this offset: the next to be read.
    Committed { partition: i32, next: i64 },
}

impl Said {
    /// `acked|read|committed PARTITION OFFSET`; anything else is a remark.
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let verb = words.next()?;
        let partition = words.next()?.parse().ok()?;
        let offset = words.next()?.parse().ok()?;
        match verb {
            "acked" => Some(Self::Acked { partition, offset }),
            "read" => Some(Self::Read { partition, offset }),
            "committed" => Some(Self::Committed {
                partition,
                next: offset,
            }),
            _ => None,
        }
    }
}

/// All that was said, in the order it came, checked as it comes.
#[derive(Debug, Default)]
struct Account {
    acked: BTreeSet<(i32, i64)>,
    read: BTreeSet<(i32, i64)>,
    committed: BTreeMap<i32, i64>,
    /// Readings and commits by member.
    reads: BTreeMap<&'static str, usize>,
    commits: BTreeMap<&'static str, usize>,
    remarks: Vec<String>,
}

impl Account {
    fn hear(&mut self, who: &'static str, line: &str) -> Result<(), String> {
        match Said::parse(line) {
            None => self.remarks.push(format!("{who}: {line}")),
            Some(Said::Acked { partition, offset }) => {
                if !self.acked.insert((partition, offset)) {
                    return Err(format!("{partition}/{offset} was acknowledged twice"));
                }
            }
            Some(Said::Read { partition, offset }) => {
                let committed = self.committed.get(&partition).copied().unwrap_or(0);
                if offset < committed {
                    return Err(format!(
                        "{who} read {partition}/{offset} after {committed} was committed"
                    ));
                }
                self.read.insert((partition, offset));
                *self.reads.entry(who).or_default() += 1;
            }
            Some(Said::Committed { partition, next }) => {
                let before = self.committed.entry(partition).or_default();
                if next < *before {
                    return Err(format!("{who} committed {partition}/{next} after {before}"));
                }
                *before = next;
                *self.commits.entry(who).or_default() += 1;
            }
        }
        Ok(())
    }

    fn reads_of(&self, who: &str) -> usize {
        self.reads.get(who).copied().unwrap_or(0)
    }

    fn commits_of(&self, who: &str) -> usize {
        self.commits.get(who).copied().unwrap_or(0)
    }

    fn lost(&self) -> Vec<(i32, i64)> {
        self.acked.difference(&self.read).copied().collect()
    }
}

/// A running program whose lines come through the channel under its name. Dropping it kills it.
struct Program(Child);

impl Program {
    fn start(who: &'static str, mut command: Command, lines: Sender<(&'static str, String)>) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the client's program starts");
        let stdout = child.stdout.take().expect("a piped stdout");
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if lines.send((who, line)).is_err() {
                    break;
                }
            }
        });
        Self(child)
    }

    /// `SIGKILL`: it says goodbye to nobody.
    fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Listens until `enough`; panics with what was heard when a rule is broken or nothing more comes of it.
fn listen(
    account: &mut Account,
    lines: &Receiver<(&'static str, String)>,
    step: &str,
    enough: impl Fn(&Account) -> bool,
) {
    let until = Instant::now() + PATIENCE;
    while !enough(account) {
        let left = until.saturating_duration_since(Instant::now());
        let Ok((who, line)) = lines.recv_timeout(left) else {
            panic!(
                "not within {PATIENCE:?}: {step}; acknowledged {}, read {:?}, lost {:?}, remarks {:#?}",
                account.acked.len(),
                account.reads,
                account.lost(),
                account.remarks
            );
        };
        if let Err(broken) = account.hear(who, &line) {
            panic!("{step}: {broken}; remarks {:#?}", account.remarks);
        }
    }
}

pub fn a_member_is_killed(client: Client) {
    let broker = Broker::start(0);
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("a clock")
        .as_millis();
    let topic = format!("group-{now}-{}", std::process::id());
    let group = format!("{topic}-group");
    let (sender, lines) = channel();
    let start = |who, arguments: &[&str]| {
        let mut command = broker.point(client.command());
        command.args(arguments);
        Program::start(who, command, sender.clone())
    };
    let member = |who| start(who, &["member", &topic, &group]);
    let mut account = Account::default();

    let records = RECORDS.to_string();
    let _producer = start("producer", &["produce", &topic, &records, PAUSE_MS]);
    listen(&mut account, &lines, "records flow", |a| a.acked.len() >= 20);
    let mut first = member("first");
    listen(&mut account, &lines, "the first member reads alone", |a| {
        a.commits_of("first") >= 5
    });
    let _second = member("second");
    listen(&mut account, &lines, "the second member has its share", |a| {
        a.commits_of("second") >= 5
    });
    let before = account.reads_of("first");
    listen(&mut account, &lines, "the first member keeps its own", |a| {
        a.reads_of("first") >= before + 20
    });
    first.kill();
    listen(&mut account, &lines, "all is acknowledged and read", |a| {
        a.acked.len() == RECORDS && a.lost().is_empty()
    });
    println!(
        "ok   {client:?}: {RECORDS} acknowledged, read {:?}, committed {:?} times, {} remarks",
        account.reads,
        account.commits,
        account.remarks.len()
    );
}

#[test]
fn a_line_is_parsed() {
    assert_eq!(
        Said::parse("read 2 17"),
        Some(Said::Read {
            partition: 2,
            offset: 17
        })
    );
    assert_eq!(
        Said::parse("committed 0 5"),
        Some(Said::Committed { partition: 0, next: 5 })
    );
    assert_eq!(Said::parse("note the group is rebalancing"), None);
}

#[test]
fn what_is_read_again_before_its_commit_is_allowed_and_after_it_is_not() {
    let mut account = Account::default();
    for (who, line) in [
        ("producer", "acked 0 0"),
        ("producer", "acked 0 1"),
        ("first", "read 0 0"),
        ("second", "read 0 0"),
        ("second", "committed 0 1"),
    ] {
        assert_eq!(account.hear(who, line), Ok(()));
    }
    assert_eq!(account.lost(), [(0, 1)]);
    assert!(account.hear("first", "read 0 0").is_err());
    assert!(account.hear("second", "committed 0 0").is_err());
    assert!(account.hear("producer", "acked 0 1").is_err());
}
