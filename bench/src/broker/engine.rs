//! The load: a few connections on one thread and one epoll set, closed loop or open.
//!
//! In a **closed** loop every connection always has as many requests under way as it may: that finds the throughput. In an **open**
//! loop request *k* is due at *k*/rate, whatever became of those before it, and its latency counts from when it was due: a server
//! that stops for a second is charged with the second of every request that should have been sent in it (no coordinated omission).

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::fd::OwnedFd;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use crate::process::{Cpu, Tasks};
use skerry_tests::tls::{Channel, Target};

/// What one connection asks, and what it makes of the answers.
pub trait Script {
    /// Makes the next request, with this correlation id.
    fn begin(&mut self, correlation_id: i32);
    /// The request, length in front, as it was made last.
    fn frame(&self) -> &[u8];
    /// Reads an answer, given without its length.
    ///
    /// Errors: it is not what was hoped for.
    fn answer(&mut self, frame: &[u8]) -> Result<Work, String>;
}

/// What an answer says was done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Work {
    /// Records written or read.
    pub records: u64,
    /// Bytes of record batches written or read.
    pub bytes: u64,
}

/// When requests are sent.
#[derive(Clone, Copy, Debug)]
pub enum Pace {
    /// As soon as there is a place for them.
    Closed,
    /// So many a second, evenly.
    Open(f64),
}

/// One run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// When requests are sent.
    pub pace: Pace,
    /// Requests of one connection under way at once.
    pub in_flight: usize,
    /// How long.
    pub time: Duration,
    /// Ends the run early, so that the disk's own speed does not become what is measured.
    pub bytes_max: u64,
}

/// What came of a run. All but the latencies is of the time in which requests were sent; the last answers came after it.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// How long requests were sent.
    pub seconds: f64,
    /// Answers.
    pub requests: u64,
    /// What they did.
    pub work: Work,
    /// Server's CPU time.
    pub server: Cpu,
    /// CPU time of the load itself.
    pub load: f64,
    /// From when a request was due to its answer, of every request; sorted.
    pub latencies: Vec<Duration>,
}

impl Run {
    /// The latency that `share` of all requests did not exceed.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let rank = (share * self.latencies.len() as f64).ceil() as usize;
        self.latencies.get(rank.saturating_sub(1)).copied()
    }
}

struct Connection<S> {
    stream: Channel,
    script: S,
    /// When each request under way was due, oldest first, and its correlation id.
    under_way: VecDeque<(Instant, i32)>,
    /// When those that could not be sent yet were due.
    waiting: VecDeque<Instant>,
    /// Bytes of the script's frame that are not sent yet, at its end.
    unsent: usize,
    input: Vec<u8>,
    filled: usize,
    next_id: i32,
}

/// Connections that can be set to work.
pub struct Engine<S> {
    connections: Vec<Connection<S>>,
    epoll: OwnedFd,
    timer: OwnedFd,
    server: Option<u32>,
}

/// Marks the timer in the epoll set.
const TIMER: u64 = u64::MAX;
/// An answer that does not come for so long is not coming.
const PATIENCE: Duration = Duration::from_secs(60);

impl<S: Script> Engine<S> {
    /// Connects one stream for each script. `server` is the process whose CPU time is counted.
    ///
    /// Errors: the address cannot be reached, a TLS handshake fails, or the system's.
    pub fn connect(target: impl Into<Target>, scripts: Vec<S>, server: Option<u32>) -> Result<Self, String> {
        let target = target.into();
        Self::try_connect(target, scripts, server).map_err(|e| format!("{}: {e}", target.address))
    }

    fn try_connect(target: Target, scripts: Vec<S>, server: Option<u32>) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let timer = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
        )?;
        let edges = epoll::EventFlags::ET;
        epoll::add(
            &epoll,
            &timer,
            epoll::EventData::new_u64(TIMER),
            epoll::EventFlags::IN | edges,
        )?;
        let mut connections = Vec::with_capacity(scripts.len());
        for (at, script) in scripts.into_iter().enumerate() {
            let stream = Channel::connect(target)?;
            stream.stream.set_nonblocking(true)?;
            let flags = epoll::EventFlags::IN | epoll::EventFlags::OUT | edges;
            epoll::add(&epoll, &stream.stream, epoll::EventData::new_u64(at as u64), flags)?;
            connections.push(Connection {
                stream,
                script,
                under_way: VecDeque::new(),
                waiting: VecDeque::new(),
                unsent: 0,
                input: vec![0; 64 << 10],
                filled: 0,
                next_id: 0,
            });
        }
        Ok(Self {
            connections,
            epoll,
            timer,
            server,
        })
    }

    /// Carries out one plan and waits for the last answer.
    ///
    /// Errors: a broken connection, or an answer that its script refuses.
    pub fn run(&mut self, plan: &Plan) -> Result<Run, String> {
        let mut run = Run::default();
        let server = self.server_tasks()?;
        let load = own_tasks()?;
        let start = Instant::now();
        let end = start + plan.time;
        let (mut sent, mut sending, mut heard) = (0u64, true, start);
        let mut events = Vec::with_capacity(64);
        loop {
            let now = Instant::now();
            let due = |k: u64, rate: f64| start + Duration::from_secs_f64(k as f64 / rate);
            let mut next = end;
            if sending && let Pace::Open(rate) = plan.pace {
                while due(sent, rate) <= now.min(end) {
                    let at = sent as usize % self.connections.len();
                    self.connections[at].waiting.push_back(due(sent, rate));
                    sent += 1;
                }
                next = end.min(due(sent, rate));
            }
            if sending && (now >= end || run.work.bytes >= plan.bytes_max) {
                sending = false;
                run.seconds = (now - start).as_secs_f64();
                run.server = self.server_tasks()?.since(&server);
                run.load = own_tasks()?.since(&load).all();
            }
            let mut idle = true;
            for connection in &mut self.connections {
                connection
                    .send(plan, sending, now)
                    .map_err(|e| format!("sending: {e}"))?;
                idle &= connection.under_way.is_empty() && connection.waiting.is_empty();
            }
            if !sending && idle {
                break;
            }
            if now.duration_since(heard) > PATIENCE {
                return Err(format!("no answer for {} s", PATIENCE.as_secs()));
            }
            let until = if sending { next } else { now + PATIENCE };
            self.sleep(until, &mut events).map_err(|e| format!("waiting: {e}"))?;
            for event in events.drain(..) {
                let at = event.data.u64() as usize;
                if let Some(connection) = self.connections.get_mut(at) {
                    heard = Instant::now();
                    connection.receive(&mut run, sending)?;
                }
            }
        }
        run.latencies.sort_unstable();
        Ok(run)
    }

    fn server_tasks(&self) -> Result<Tasks, String> {
        let Some(pid) = self.server else {
            return Ok(Tasks::default());
        };
        Tasks::of(pid).map_err(|e| format!("CPU time of process {pid}: {e}"))
    }

    fn sleep(&self, until: Instant, events: &mut Vec<epoll::Event>) -> io::Result<()> {
        let left = until
            .saturating_duration_since(Instant::now())
            .max(Duration::from_nanos(1));
        let time = Itimerspec {
            it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: Timespec {
                tv_sec: left.as_secs() as _,
                tv_nsec: left.subsec_nanos() as _,
            },
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &time)?;
        match epoll::wait(&self.epoll, spare_capacity(events), None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }
}

impl<S: Script> Connection<S> {
    /// Sends what is due and has a place, until the socket takes no more.
    fn send(&mut self, plan: &Plan, sending: bool, now: Instant) -> io::Result<()> {
        match self.stream.flush() {
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
            other => other?,
        }
        loop {
            if self.unsent == 0 {
                if self.under_way.len() >= plan.in_flight {
                    return Ok(());
                }
                let due = match plan.pace {
                    Pace::Closed if sending => now,
                    Pace::Closed => return Ok(()),
                    Pace::Open(_) => match self.waiting.pop_front() {
                        Some(due) => due,
                        None => return Ok(()),
                    },
                };
                self.next_id = self.next_id.wrapping_add(1);
                self.script.begin(self.next_id);
                self.unsent = self.script.frame().len();
                self.under_way.push_back((due, self.next_id));
            }
            let frame = self.script.frame();
            match self.stream.write(&frame[frame.len() - self.unsent..]) {
                Ok(n) => self.unsent -= n,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) => return Err(e),
            }
        }
    }

    /// Takes every answer that has come.
    fn receive(&mut self, run: &mut Run, counts: bool) -> Result<(), String> {
        loop {
            let room = self.input.len() - self.filled;
            let got = match self.stream.read(&mut self.input[self.filled..]) {
                Ok(0) => return Err("the broker closed the connection".into()),
                Ok(n) => n,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) => return Err(format!("receiving: {e}")),
            };
            self.filled += got;
            self.take_answers(run, counts)?;
            // Over TLS a read ends with a record.
            if got < room && !self.stream.is_tls() {
                return Ok(());
            }
        }
    }

    fn take_answers(&mut self, run: &mut Run, counts: bool) -> Result<(), String> {
        let now = Instant::now();
        let mut start = 0;
        while let Some((prefix, rest)) = self.input[start..self.filled].split_first_chunk() {
            let bytes = u32::from_be_bytes(*prefix) as usize;
            let Some(frame) = rest.get(..bytes) else {
                let whole = (bytes + 4).max(self.input.len());
                self.input.resize(whole, 0);
                break;
            };
            let (due, id) = self.under_way.pop_front().ok_or("an answer that nobody asked for")?;
            if frame.first_chunk() != Some(&id.to_be_bytes()) {
                return Err("answers came in another order than requests".into());
            }
            let work = self.script.answer(frame)?;
            run.latencies.push(now.saturating_duration_since(due));
            if counts {
                run.requests += 1;
                run.work.records += work.records;
                run.work.bytes += work.bytes;
            }
            start += 4 + bytes;
        }
        self.input.copy_within(start..self.filled, 0);
        self.filled -= start;
        Ok(())
    }
}

fn own_tasks() -> Result<Tasks, String> {
    Tasks::of(std::process::id()).map_err(|e| format!("own CPU time: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{SocketAddr, TcpListener};
    use std::thread;

    /// Asks with four bytes and takes any answer.
    struct Echo([u8; 12]);

    impl Script for Echo {
        fn begin(&mut self, id: i32) {
            self.0[..4].copy_from_slice(&8u32.to_be_bytes());
            self.0[4..8].copy_from_slice(&id.to_be_bytes());
        }
        fn frame(&self) -> &[u8] {
            &self.0
        }
        fn answer(&mut self, frame: &[u8]) -> Result<Work, String> {
            Ok(Work {
                records: 1,
                bytes: frame.len() as u64,
            })
        }
    }

    /// A server that sends everything back, and once, after `stall_after` bytes, rests for `stall`.
    fn echo(stall_after: usize, stall: Duration) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut seen, mut buffer) = (0, [0; 4096]);
            while let Ok(n @ 1..) = stream.read(&mut buffer) {
                if (seen..seen + n).contains(&stall_after) {
                    thread::sleep(stall);
                }
                seen += n;
                stream.write_all(&buffer[..n]).unwrap();
            }
        });
        address
    }

    fn plan(pace: Pace, millis: u64) -> Plan {
        Plan {
            pace,
            in_flight: 2,
            time: Duration::from_millis(millis),
            bytes_max: u64::MAX,
        }
    }

    /// Goal: a stall is charged to every request that was due in it. Method: 1,000 requests a second, one rest of 100 ms: about a
    /// hundred requests were due in it, so that far more than the two under way have waited half of it.
    #[test]
    fn a_stall_is_felt_by_all_that_were_due() {
        let address = echo(12 * 100, Duration::from_millis(100));
        let mut engine = Engine::connect(address, vec![Echo([0; 12])], None).unwrap();
        let run = engine.run(&plan(Pace::Open(1000.0), 400)).unwrap();
        assert_eq!(run.latencies.len(), 401);
        let late = run
            .latencies
            .iter()
            .filter(|l| **l >= Duration::from_millis(40))
            .count();
        assert!(late >= 50, "{late}");
    }

    #[test]
    fn a_closed_loop_ends_at_its_bytes() {
        let mut engine = Engine::connect(echo(usize::MAX, Duration::ZERO), vec![Echo([0; 12])], None).unwrap();
        let small = Plan {
            bytes_max: 800,
            ..plan(Pace::Closed, 10_000)
        };
        let run = engine.run(&small).unwrap();
        assert!((800..=832).contains(&run.work.bytes), "{}", run.work.bytes);
        assert!(run.seconds < 10.0);
        let quantile = |share| run.quantile(share).unwrap();
        assert!(quantile(0.5) <= quantile(0.999));
        assert_eq!(run.quantile(1.0), run.latencies.last().copied());
    }
}
