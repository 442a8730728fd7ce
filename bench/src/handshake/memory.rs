//! Handshakes in memory: every server once in each round, in an order drawn anew, so that whatever the machine does besides, and whatever the
//! one before left in the caches, is felt by all alike.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use skerry_tls::crypto::either::Choice;
use skerry_tls::testing::Seeded;

use skerry_net::host::Clock as _;
use skerry_net::linux::LinuxClock;

use super::client::Client;
use super::counters::Counters;
use super::floor::{Floor, Sizes};
use super::kind::Fault;
use super::server::{Peer, Server, provider};
use super::split::{Sample, Split};
use super::{Kind, Times};

/// CPU time of this thread, in nanoseconds.
fn thread_cpu() -> u64 {
    let spent = clock_gettime(ClockId::ThreadCPUTime);
    spent.tv_sec as u64 * 1_000_000_000 + spent.tv_nsec as u64
}

/// A clock of this thread's CPU time that takes its own cost off.
#[derive(Clone, Copy, Debug)]
struct Clock {
    own: u64,
    ticks: LinuxClock,
}

/// What a piece of work took.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    nanos: u64,
    ticks: u64,
}

impl Clock {
    fn new() -> Self {
        let mut empty: Vec<u64> = (0..2001)
            .map(|_| {
                let start = thread_cpu();
                thread_cpu() - start
            })
            .collect();
        empty.sort_unstable();
        Self {
            own: empty[1000],
            ticks: LinuxClock::new(),
        }
    }

    fn time<T>(mut self, spent: &mut Spent, work: impl FnOnce() -> T) -> T {
        let start = thread_cpu();
        let first = self.ticks.ticks();
        let done = work();
        spent.ticks += self.ticks.ticks().0.saturating_sub(first.0);
        spent.nanos += (thread_cpu() - start).saturating_sub(self.own);
        done
    }
}

/// A client and a server that shake hands.
pub struct Meeting {
    client: Client,
    server: Box<dyn Server>,
    kind: Kind,
    to_server: Vec<u8>,
    to_client: Vec<u8>,
    calls: Vec<Call>,
}

/// One call of the server with a flight of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Bytes that came.
    pub came: usize,
    /// Bytes that were answered.
    pub went: usize,
    /// Steps that the server had noted at its end.
    pub steps: usize,
}

impl Meeting {
    /// Of that kind with that server. A session to be resumed is there already.
    ///
    /// Errors: either side's.
    pub fn new(peer: Peer, kind: Kind) -> Result<Self, String> {
        let mut meeting = Self {
            client: Client::new(kind),
            server: peer.server(kind)?,
            kind,
            to_server: Vec::new(),
            to_client: Vec::new(),
            calls: Vec::new(),
        };
        if kind.is_resumed() {
            meeting.shake(|server| server())?;
        }
        Ok(meeting)
    }

    /// What the server has of the connection is dropped.
    pub fn part(&mut self) {
        self.server.end();
    }

    /// The calls of the last handshake.
    #[must_use]
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// What the server noted of the last connection.
    #[must_use]
    pub fn notes(&self) -> Option<&skerry_tls::notes::Notes> {
        self.server.notes()
    }

    /// Ticks that the server's engine took on the last connection, where it counts them.
    #[must_use]
    pub fn engine_ticks(&self) -> u64 {
        self.server.engine_ticks()
    }

    /// One handshake, tickets included. `serve` is given the server's part to be done, each time that it has one.
    ///
    /// Errors: either side's, and a handshake of another kind than was meant: one that should fail and does not is one, too.
    pub fn shake(
        &mut self,
        mut serve: impl FnMut(&mut dyn FnMut() -> Result<(), String>) -> Result<(), String>,
    ) -> Result<Sizes, String> {
        let Self {
            client,
            server,
            kind,
            to_server,
            to_client,
            calls,
        } = self;
        client.begin()?;
        calls.clear();
        let (mut begun, mut refused) = (false, false);
        loop {
            to_server.clear();
            to_server.extend_from_slice(client.take_out());
            if to_server.is_empty() {
                break;
            }
            let came = to_server.len();
            to_client.clear();
            let served = serve(&mut || {
                if !std::mem::replace(&mut begun, true) {
                    server.begin()?;
                }
                server.receive(to_server, to_client)
            });
            calls.push(Call {
                came,
                went: to_client.len(),
                steps: server.notes().map_or(0, |notes| notes.trail.steps().len()),
            });
            match (served, kind.fault) {
                (Ok(()), _) => {}
                (Err(why), None) => return Err(why),
                (Err(_), Some(_)) => {
                    refused = true;
                    break;
                }
            }
            let came = client.receive(to_client)?;
            if came.consumed != to_client.len() {
                return Err("the server sent a part of a record".into());
            }
        }
        match kind.fault {
            None => client.check()?,
            Some(fault) if refused == (fault == Fault::Silent) => {
                return Err(format!("{kind}: the server's refusal: {refused}"));
            }
            Some(_) => {}
        }
        let call = |n: usize| calls.get(n).map_or((0, 0), |call| (call.came, call.went));
        let ((hello, flight), (finish, tickets)) = (call(0), call(1));
        Ok(Sizes {
            hello,
            flight,
            finish,
            tickets,
        })
    }
}

/// What is timed in turn.
#[allow(clippy::large_enum_variant, reason = "there is one of each peer")]
enum Contestant {
    Handshake(Meeting),
    Floor(Box<dyn FnMut() -> Result<(), String>>),
}

/// What was measured of one server's handshakes.
pub struct Measured {
    /// Whose.
    pub name: String,
    /// CPU time of each.
    pub times: Times,
    /// Where it goes, for our engine.
    pub split: Option<Split>,
    /// Bytes from the client and from the server.
    pub wire: Option<[usize; 2]>,
    /// Instructions and cycles, medians.
    pub counts: Option<[f64; 2]>,
}

struct Entry {
    name: String,
    contestant: Contestant,
    nanos: Vec<u64>,
    samples: Vec<Sample>,
    wire: Option<[usize; 2]>,
}

/// Handshakes of which instructions are counted: apart from those that are timed, for switching the counters takes time.
const COUNTED: usize = 50;

/// Every server's handshakes of a kind, taken in turn for `time`, once round at least. The floors are called `floor` and `floor-mbedtls`; a
/// handshake that fails has none.
///
/// Errors: a handshake fails that should not, or the other way round.
pub fn measure(
    kind: Kind,
    peers: &[Peer],
    time: Duration,
    mut counters: Option<&mut Counters>,
) -> Result<Vec<Measured>, String> {
    let mut all: Vec<Entry> = Vec::new();
    let mut enter = |name: &str, contestant, wire| {
        all.push(Entry {
            name: name.into(),
            contestant,
            nanos: Vec::new(),
            samples: Vec::new(),
            wire,
        });
    };
    for &peer in peers {
        let mut meeting = Meeting::new(peer, kind).map_err(|why| format!("{}: {why}", peer.name()))?;
        let sizes = meeting
            .shake(|server| server())
            .map_err(|why| format!("{}: {why}", peer.name()))?;
        enter(peer.name(), Contestant::Handshake(meeting), Some(sizes.each_way()));
        if let Peer::Skerry(choice) = peer
            && kind.fault.is_none()
        {
            let mut floor = Floor::new(provider(choice)?, kind, sizes).map_err(|error| format!("{error:?}"))?;
            let run = move || floor.run().map_err(|error| format!("{error:?}"));
            let name = if choice == Choice::Fast {
                "floor"
            } else {
                "floor-mbedtls"
            };
            enter(name, Contestant::Floor(Box::new(run)), None);
        }
    }
    let clock = Clock::new();
    let until = Instant::now() + time;
    let mut random = Seeded::new(1);
    let mut order: Vec<usize> = (0..all.len()).collect();
    loop {
        for last in (1..order.len()).rev() {
            order.swap(last, random.below(last + 1));
        }
        for &at in &order {
            let entry = &mut all[at];
            let mut spent = Spent::default();
            match &mut entry.contestant {
                Contestant::Handshake(meeting) => {
                    meeting
                        .shake(|server| clock.time(&mut spent, server))
                        .map_err(|why| format!("{}: {why}", entry.name))?;
                    if let Some(notes) = meeting.notes() {
                        entry
                            .samples
                            .push(Sample::new(spent.nanos, [spent.ticks, meeting.engine_ticks()], notes));
                    }
                }
                Contestant::Floor(run) => clock.time(&mut spent, run)?,
            }
            entry.nanos.push(spent.nanos);
        }
        if Instant::now() >= until {
            break;
        }
    }
    all.into_iter()
        .map(|mut entry| {
            let counts = match (&mut entry.contestant, counters.as_deref_mut()) {
                (Contestant::Handshake(meeting), Some(counters)) => count(meeting, counters)?,
                _ => None,
            };
            Ok(Measured {
                counts,
                name: entry.name,
                times: Times::new(entry.nanos),
                split: Split::of(entry.samples),
                wire: entry.wire,
            })
        })
        .collect()
}

/// Instructions and cycles of a handshake, medians.
fn count(meeting: &mut Meeting, counters: &mut Counters) -> Result<Option<[f64; 2]>, String> {
    let mut all = [Vec::new(), Vec::new()];
    for _ in 0..COUNTED {
        meeting.shake(|server| counters.count(server))?;
        let Some(counts) = counters.take() else {
            return Ok(None);
        };
        for (list, count) in all.iter_mut().zip(counts) {
            list.push(count);
        }
    }
    Ok(Some(all.map(|mut list| {
        list.sort_unstable();
        list[list.len() / 2] as f64
    })))
}
