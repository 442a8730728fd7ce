//! Handshakes in memory: every server once in each round, in an order drawn anew, so that whatever the machine does besides, and whatever the
//! one before left in the caches, is felt by all alike.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use skerry_tls::crypto::either::Choice;
use skerry_tls::testing::Seeded;

use super::client::Client;
use super::floor::{Floor, Sizes};
use super::server::{Peer, Server, provider};
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
        Self { own: empty[1000] }
    }

    fn time<T>(self, nanos: &mut u64, work: impl FnOnce() -> T) -> T {
        let start = thread_cpu();
        let done = work();
        *nanos += (thread_cpu() - start).saturating_sub(self.own);
        done
    }
}

/// A client and a server that shake hands.
pub struct Meeting {
    client: Client,
    server: Box<dyn Server>,
    to_server: Vec<u8>,
    to_client: Vec<u8>,
}

impl Meeting {
    /// Of that kind with that server. A session to be resumed is there already.
    ///
    /// Errors: either side's.
    pub fn new(peer: Peer, kind: Kind) -> Result<Self, String> {
        let mut meeting = Self {
            client: Client::new(kind),
            server: peer.server(kind)?,
            to_server: Vec::new(),
            to_client: Vec::new(),
        };
        if kind.is_resumed() {
            meeting.shake(|server| server())?;
        }
        Ok(meeting)
    }

    /// One handshake, tickets included. `serve` is given the server's part to be done, each time that it has one.
    ///
    /// Errors: either side's, and a handshake of another kind than was meant.
    pub fn shake(
        &mut self,
        mut serve: impl FnMut(&mut dyn FnMut() -> Result<(), String>) -> Result<(), String>,
    ) -> Result<Sizes, String> {
        let Self {
            client,
            server,
            to_server,
            to_client,
        } = self;
        client.begin()?;
        let (mut up, mut down) = (Vec::new(), Vec::new());
        let mut begun = false;
        loop {
            to_server.clear();
            to_server.extend_from_slice(client.take_out());
            if to_server.is_empty() {
                break;
            }
            up.push(to_server.len());
            to_client.clear();
            serve(&mut || {
                if !std::mem::replace(&mut begun, true) {
                    server.begin()?;
                }
                server.receive(to_server, to_client)
            })?;
            down.push(to_client.len());
            let came = client.receive(to_client)?;
            if came.consumed != to_client.len() {
                return Err("the server sent a part of a record".into());
            }
        }
        client.check()?;
        let at = |list: &[usize], n: usize| list.get(n).copied().unwrap_or(0);
        Ok(Sizes {
            hello: at(&up, 0),
            finish: at(&up, 1),
            flight: at(&down, 0),
            tickets: at(&down, 1),
        })
    }
}

/// What is timed in turn.
#[allow(clippy::large_enum_variant, reason = "there is one of each peer")]
enum Contestant {
    Handshake(Meeting),
    Floor(Box<dyn FnMut() -> Result<(), String>>),
}

/// Server CPU time of every one's handshakes of a kind, taken in turn for `time`. The floors are called `floor` and `floor-mbedtls`.
///
/// Errors: a handshake fails.
pub fn measure(kind: Kind, peers: &[Peer], time: Duration) -> Result<Vec<(String, Times)>, String> {
    let mut all: Vec<(String, Contestant, Vec<u64>)> = Vec::new();
    for &peer in peers {
        let mut meeting = Meeting::new(peer, kind).map_err(|why| format!("{}: {why}", peer.name()))?;
        let sizes = meeting.shake(|server| server())?;
        all.push((peer.name().into(), Contestant::Handshake(meeting), Vec::new()));
        if let Peer::Skerry(choice) = peer {
            let mut floor = Floor::new(provider(choice)?, kind, sizes).map_err(|error| format!("{error:?}"))?;
            let run = move || floor.run().map_err(|error| format!("{error:?}"));
            let name = if choice == Choice::Fast {
                "floor"
            } else {
                "floor-mbedtls"
            };
            all.push((name.into(), Contestant::Floor(Box::new(run)), Vec::new()));
        }
    }
    let clock = Clock::new();
    let until = Instant::now() + time;
    let mut random = Seeded::new(1);
    let mut order: Vec<usize> = (0..all.len()).collect();
    while Instant::now() < until {
        for last in (1..order.len()).rev() {
            order.swap(last, random.below(last + 1));
        }
        for &at in &order {
            let (name, contestant, nanos) = &mut all[at];
            let mut spent = 0;
            match contestant {
                Contestant::Handshake(meeting) => {
                    meeting
                        .shake(|server| clock.time(&mut spent, server))
                        .map_err(|why| format!("{name}: {why}"))?;
                }
                Contestant::Floor(run) => clock.time(&mut spent, run)?,
            }
            nanos.push(spent);
        }
    }
    Ok(all
        .into_iter()
        .map(|(name, _, nanos)| (name, Times::new(nanos)))
        .collect())
}
