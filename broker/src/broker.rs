//! The one loop: what is ready gets its turn, the disk's answers go to those who wait, deadlines fire, a flush begins.
//!
//! Order of a pass: sleep until something is ready; note what is; take the disk's completions; fire deadlines; give each ready
//! connection one bounded turn, first come first served; perform what the turns left behind (wake-ups, a flush). A
//! connection that used its whole turn goes to the end of the line, so that none starves the others.

use ::log::{debug, info, warn};
use skerry_core::error_code::ErrorCode;
use skerry_core::meter::Ticks;
use skerry_core::time::{Instant, Millis, Timestamp};
use skerry_net::host::{Accepted, Event, Host, ListenerId, Net, NetError, StreamId};
use skerry_net::pool::{LargePool, PairPool};
use skerry_net::queue::Queue;
use skerry_net::timer::Deadlines;

use crate::accounts::{Accounts, Chore};
use crate::config::Config;
use crate::conn::{Buffers, Conn, End, SAVED_BYTES, Shared, Turn};
use crate::handler::Peer;
use crate::ids::{ConnId, PartitionIx};
use crate::log::{Flushed, Flusher};
use crate::logging::RateLimited;
use crate::metrics::{self, SCRAPE_PATIENCE, SCRAPES_MAX, Scrapes, Snapshot};
use crate::observe::{Held, Observe, TurnReport};
use crate::secure::{Desk, HostRandom};
use crate::state::{State, log_limits};
use crate::tokens;

/// Connections accepted in one pass for each listener: a storm of them costs the others little.
const ACCEPT_BUDGET: usize = 16;

/// CPU that handshakes may take in one pass: those who are connected wait no longer than this and one handshake's step.
const HANDSHAKES_CPU_NS: u64 = 500_000;

/// Steps of one connection's turn.
const TURN_BUDGET: usize = 16;

/// How long a graceful stop waits for replies to leave.
const STOP_GRACE: Millis = Millis(5_000);

/// How long it waits for a flush that is under way to end: longer than any card stalls.
const FLUSH_END_MAX: Millis = Millis(30_000);

/// Lines of one kind that peers can cause, in each [`LOG_PER`].
const LOG_BURST: u32 = 10;
const LOG_PER: Millis = Millis(1_000);

/// How long after a large buffer was lent its memory is given back, if it is free then.
const TRIM_AFTER: Millis = Millis(10_000);

/// After a failed accept for want of descriptors, listeners rest this long.
const ACCEPT_REST: Millis = Millis(100);

/// The broker over a machine.
pub struct Broker<H> {
    /// The machine.
    pub host: H,
    /// Every table.
    pub state: State,
    observe: Observe,
    buffers: Buffers,
    conns: Vec<Option<Conn>>,
    generations: Vec<u32>,
    live: usize,
    owners: Owners,
    ready: Queue<u32>,
    wants_pair: Queue<u32>,
    wants_request: Queue<u32>,
    wants_reply: Queue<u32>,
    wants_flush: Queue<u32>,
    wants_records: Queue<u32>,
    shaking: Queue<u32>,
    tls: Option<Desk>,
    scrapes: Scrapes,
    scraped: heapless::Vec<StreamId, SCRAPES_MAX>,
    reload: bool,
    /// Kept where metrics are served.
    accounts: Option<Accounts>,
    started: (Instant, Ticks),
    timers: Deadlines,
    accepting: Vec<bool>,
    completed: bool,
    stopping: Option<Instant>,
    scratch: Vec<u8>,
    accept_log: RateLimited,
    close_log: RateLimited,
}

/// Whether the loop goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// Call again.
    Running,
    /// Stopped: everything is flushed.
    Stopped,
}

/// Owners in the deadline heap: connections by slot, then groups, then these.
#[derive(Clone, Copy)]
struct Owners {
    groups: usize,
    housekeeping: usize,
    flush: usize,
    accept: usize,
    trim: usize,
    count: usize,
}

impl Owners {
    const fn new(connections: usize, groups: usize) -> Self {
        let housekeeping = connections + groups;
        Self {
            groups: connections,
            housekeeping,
            flush: housekeeping + 1,
            accept: housekeeping + 2,
            trim: housekeeping + 3,
            count: housekeeping + 4,
        }
    }
}

impl<H: Host> Broker<H> {
    /// Over a machine and the tables that [`State::open`] made. Takes the rest of the memory.
    #[must_use]
    pub fn new(mut host: H, state: State) -> Self {
        let started = (host.now(), host.ticks());
        let limits = state.config.limits;
        let connections = limits.connections as usize;
        let owners = Owners::new(connections, limits.groups as usize);
        let small = limits.small_buffer_bytes as usize;
        let large = state.config.request_bytes_max as usize + 4;
        let mut timers = Deadlines::new(u32::try_from(owners.count).unwrap_or(u32::MAX));
        timers.arm(
            owners.housekeeping,
            Instant::default() + state.config.retention_check_interval,
        );
        Self {
            host,
            observe: Observe::default(),
            buffers: Buffers {
                pairs: PairPool::new(limits.small_buffers, small, small),
                requests: LargePool::new(limits.large_buffers, large),
                replies: LargePool::new(limits.large_buffers, Config::REPLY_BYTES_MAX as usize),
                contended: false,
                saved: vec![0; connections * SAVED_BYTES],
            },
            conns: Vec::with_capacity(connections),
            generations: vec![0; connections],
            live: 0,
            owners,
            ready: Queue::new(limits.connections),
            wants_pair: Queue::new(limits.connections),
            wants_request: Queue::new(limits.connections),
            wants_reply: Queue::new(limits.connections),
            wants_flush: Queue::new(limits.connections),
            wants_records: Queue::new(limits.connections),
            shaking: Queue::new(limits.connections),
            tls: None,
            scrapes: Scrapes::default(),
            scraped: heapless::Vec::new(),
            reload: false,
            accounts: None,
            started,
            timers,
            accepting: vec![true; state.config.listeners.len() + usize::from(state.config.metrics_listener.is_some())],
            completed: false,
            stopping: None,
            scratch: vec![0; small],
            accept_log: RateLimited::new(LOG_BURST, LOG_PER),
            close_log: RateLimited::new(LOG_BURST, LOG_PER),
            state,
        }
    }

    /// The same, with listeners that speak TLS.
    #[must_use]
    pub fn with_tls(mut self, tls: Desk) -> Self {
        self.tls = Some(tls);
        self
    }

    /// TLS, when a listener speaks it.
    pub const fn tls(&self) -> Option<&Desk> {
        self.tls.as_ref()
    }

    /// Every memory budget: its name, its bytes, and how they come about.
    #[must_use]
    pub fn budget(&self) -> Vec<(&'static str, u64, &'static str)> {
        let limits = &self.state.config.limits;
        let connections = limits.connections as usize;
        let mut lines = vec![
            (
                "connections",
                connections * (size_of::<Option<Conn>>() + SAVED_BYTES),
                "max.connections",
            ),
            (
                "small buffers",
                2 * limits.small_buffers as usize * limits.small_buffer_bytes as usize,
                "skerry.limits.small.buffers pairs",
            ),
            (
                "large buffers",
                limits.large_buffers as usize * (self.buffers.requests.bytes() + self.buffers.replies.bytes()),
                "skerry.limits.large.buffers for requests, and for replies",
            ),
        ];
        if let Some(tls) = &self.tls {
            lines.extend(tls.budget());
        }
        lines.extend(State::budget(&self.state.config));
        let mut lines: Vec<_> = lines
            .into_iter()
            .map(|(name, bytes, note)| (name, bytes as u64, note))
            .collect();
        log_limits(limits).budget(|name, bytes| lines.push((name, bytes, "")));
        lines
    }

    /// Counters.
    pub const fn observed(&self) -> &Observe {
        &self.observe
    }

    /// What connections hold now. Cost: a look at every open file.
    pub fn held(&self) -> Held {
        let (holds, waits) = self.state.holds.used();
        Held {
            pairs: self.buffers.pairs.leased(),
            requests: self.buffers.requests.leased(),
            replies: self.buffers.replies.leased(),
            holds,
            waits,
            waiters: self.state.waiters.used(),
            pins: self.state.logs.pins(),
        }
    }

    /// Connections open now.
    pub const fn connections(&self) -> usize {
        self.live
    }

    /// Begins a graceful stop, as `SIGTERM` does.
    pub fn stop(&mut self) {
        if self.stopping.is_some() {
            return;
        }
        info!("stopping: finishing replies of {} connections", self.live);
        let now = self.host.now();
        self.stopping = Some(now + STOP_GRACE);
        for (slot, conn) in self.conns.iter_mut().enumerate() {
            if let Some(conn) = conn {
                conn.on_stop();
                self.ready.push(slot as u32);
            }
        }
    }

    /// One pass of the loop.
    pub fn pass(&mut self) -> Pass {
        if self.accounts.is_none() && self.state.config.metrics_listener.is_some() {
            self.accounts = Some(Accounts::start(self.host.thread_cpu(), self.host.ticks()));
        }
        self.sleep();
        self.serve();
        self.lap(Chore::Serve);
        let now = self.host.now();
        self.accept(now);
        self.lap(Chore::Accept);
        if core::mem::take(&mut self.completed) {
            self.complete(now);
        }
        self.lap(Chore::Complete);
        self.fire(now);
        self.lap(Chore::Deadlines);
        let charged = self.observe.cost;
        self.run_ready(now);
        if let Some(accounts) = &mut self.accounts {
            accounts.turns(&self.observe.cost.since(&charged), self.host.ticks());
        }
        self.settle(now);
        self.lap(Chore::Settle);
        match self.stopping {
            Some(until) if self.live == 0 || now >= until => {
                self.finish(now);
                Pass::Stopped
            }
            _ => Pass::Running,
        }
    }

    fn lap(&mut self, chore: Chore) {
        if let Some(accounts) = &mut self.accounts {
            accounts.lap(chore, self.host.ticks());
        }
    }

    /// Sleeps to the next deadline unless somebody can go on, and notes what became ready.
    fn sleep(&mut self) {
        let until = match (self.ready.is_empty() && self.shaking.is_empty(), self.stopping) {
            (false, _) => Instant::default(),
            (true, None) => self.timers.next_at(),
            (true, Some(stop)) => self.timers.next_at().min(stop),
        };
        let sleeps = until > Instant::default();
        if sleeps && let Some(accounts) = &mut self.accounts {
            let (cpu_ns, ticks) = (self.host.thread_cpu(), self.host.ticks());
            accounts.lap(Chore::Wait, ticks);
            accounts.divide(cpu_ns, ticks);
        }
        let mut stop = false;
        let Self {
            host,
            conns,
            ready,
            accepting,
            completed,
            scraped,
            reload,
            ..
        } = self;
        host.wait(until, &mut |event| match event {
            Event::Accept(listener) => {
                if let Some(flag) = accepting.get_mut(usize::from(listener.0)) {
                    *flag = true;
                }
            }
            Event::Stream {
                stream,
                readable,
                writable,
                hangup,
            } => {
                if let Some(Some(conn)) = conns.get_mut(stream.0 as usize) {
                    conn.on_socket(readable, writable, hangup);
                    ready.push(stream.0);
                } else {
                    // When full: such a scrape waits for its next event, or its deadline.
                    let _ = scraped.push(stream);
                }
            }
            Event::Disk => *completed = true,
            Event::Stop => stop = true,
            Event::Reload => *reload = true,
        });
        if stop {
            self.stop();
        }
        match &mut self.accounts {
            Some(accounts) if sleeps => accounts.wake(self.host.thread_cpu(), self.host.ticks()),
            _ => self.lap(Chore::Wait),
        }
    }

    /// Answers those who are no client: scrapes of metrics, and the operator.
    fn serve(&mut self) {
        while let Some(stream) = self.scraped.pop() {
            self.scrape(stream);
        }
        if core::mem::take(&mut self.reload) {
            match &self.tls {
                Some(_) => self.look_after_tls(true),
                None => info!("SIGHUP: nothing to load again"),
            }
        }
    }

    /// Certificates that have changed, and the keys of tickets.
    fn look_after_tls(&mut self, asked: bool) {
        let (now, wall) = (self.host.now(), self.host.wall());
        if let Some(tls) = &mut self.tls {
            let host = core::cell::RefCell::new(&mut self.host);
            tls.look_after(asked, now, wall, &mut HostRandom(&host));
        }
    }

    /// Goes on with a connection that asks for metrics.
    fn scrape(&mut self, stream: StreamId) {
        if !self.scrapes.has(stream) {
            return;
        }
        if self.scrapes.receive(&mut self.host, stream) {
            let page = metrics::page(self.snapshot());
            self.scrapes.answer(stream, &page);
        }
        self.scrapes.send(&mut self.host, stream);
        if !self.scrapes.has(stream) {
            self.timers.cancel(stream.0 as usize);
        }
    }

    /// Takes waiting connections, a few from each listener.
    fn accept(&mut self, now: Instant) {
        for index in 0..self.accepting.len() {
            if !self.accepting.get(index).copied().unwrap_or(false) || self.stopping.is_some() {
                continue;
            }
            let listener = ListenerId(index as u16);
            for _ in 0..ACCEPT_BUDGET {
                match self.host.accept(listener) {
                    Ok(accepted) => self.admit(listener, &accepted, now),
                    Err(nb::Error::WouldBlock) => {
                        self.rest(index);
                        break;
                    }
                    Err(nb::Error::Other(e)) => {
                        if let Some(missed) = self.accept_log.admit(now) {
                            warn!("cannot accept connections: {e:?}; raise the descriptor limit (ulimit -n){missed}");
                        }
                        if e == NetError::Exhausted {
                            self.timers.arm(self.owners.accept, now + ACCEPT_REST);
                        }
                        self.rest(index);
                        break;
                    }
                }
            }
        }
        if self.accepting.contains(&true) && self.stopping.is_none() {
            // More may wait than the budget took: the next pass does not sleep.
            self.timers.arm(self.owners.accept, now);
        }
    }

    fn rest(&mut self, listener: usize) {
        if let Some(flag) = self.accepting.get_mut(listener) {
            *flag = false;
        }
    }

    /// Makes a connection of an accepted stream. When full (`max.connections`): closed at once, with one line.
    fn admit(&mut self, listener: ListenerId, accepted: &Accepted, now: Instant) {
        let Accepted { stream, peer, local } = *accepted;
        let slot = stream.0 as usize;
        if usize::from(listener.0) == self.state.config.listeners.len() {
            // A client that asks once more may be here before the news that it has gone.
            for stream in self.scrapes.in_the_way() {
                self.scrape(stream);
            }
            if self.scrapes.accept(stream, now) {
                self.timers.arm(slot, now + SCRAPE_PATIENCE);
                self.scrape(stream);
            } else {
                Net::close(&mut self.host, stream);
            }
            return;
        }
        // Slots are made as they are first used, within the capacity taken at start: an idle broker touches few pages.
        while self.conns.len() <= slot && self.conns.len() < self.generations.len() {
            self.conns.push(None);
        }
        let (Some(place), Some(generation)) = (self.conns.get_mut(slot), self.generations.get_mut(slot)) else {
            if let Some(missed) = self.accept_log.admit(now) {
                warn!("{peer}: refused, max.connections={} are open{missed}", self.live);
            }
            Net::close(&mut self.host, stream);
            return;
        };
        *generation = generation.wrapping_add(1);
        let conn = ConnId::from_parts(stream.0, *generation);
        let who = Peer {
            conn,
            addr: peer,
            local,
            listener,
            name: None,
        };
        let is_secure = self.tls.as_ref().is_some_and(|tls| tls.serves(usize::from(listener.0)));
        *place = Some(match &mut self.tls {
            Some(tls) if is_secure => {
                let starts = tls.accept(slot, usize::from(listener.0), peer.ip(), now);
                Conn::secured(who, stream, now, starts)
            }
            _ => Conn::new(who, stream, now),
        });
        self.live += 1;
        if is_secure {
            self.look_after_tls(false);
        }
        self.observe.on_accept();
        debug!("{peer}: connected to {local}");
        self.ready.push(stream.0);
    }

    /// Hands the disk's completions to those who wait for them.
    fn complete(&mut self, now: Instant) {
        while let Some(done) = self.host.poll_done() {
            if let Some(slot) = tokens::slot_of_load(done.token) {
                if let Some(Some(conn)) = self.conns.get_mut(slot)
                    && tokens::load(conn.peer.conn) == done.token
                {
                    conn.on_loaded();
                    self.ready.push(slot as u32);
                }
                continue;
            }
            let mut wakes = Wakes::of(
                &mut self.state,
                &mut self.conns,
                &mut self.ready,
                &mut self.buffers,
                &mut self.scratch,
            );
            wakes
                .flusher
                .on_done(&mut self.host, wakes.logs, done, now, &mut |flushed| {
                    wakes.rest.on_flushed(flushed)
                });
        }
        self.release_waiters_for_flush();
    }

    fn release_waiters_for_flush(&mut self) {
        while let Some(slot) = self.wants_flush.pop() {
            self.ready.push(slot);
        }
    }

    /// Fires deadlines that have come.
    fn fire(&mut self, now: Instant) {
        let wall = self.host.wall();
        while let Some(owner) = self.timers.pop_due(now) {
            if owner < self.owners.groups {
                self.fire_conn(owner, now);
            } else if owner < self.owners.housekeeping {
                self.state.coordinator.on_deadline(owner - self.owners.groups, now);
            } else if owner == self.owners.housekeeping {
                let next = self.state.keep_house(&mut self.host, now, wall);
                self.timers.arm(owner, next);
            } else if owner == self.owners.accept {
                self.accepting.fill(true);
            } else if owner == self.owners.trim && !self.buffers.trim() {
                self.timers.arm(owner, now + TRIM_AFTER);
            }
        }
    }

    fn fire_conn(&mut self, slot: usize, now: Instant) {
        let Some(Some(conn)) = self.conns.get_mut(slot) else {
            self.scrapes.expire(&mut self.host, slot, now);
            return;
        };
        let mut shared = Shared {
            now,
            wall: self.host.wall(),
            host: &mut self.host,
            state: &mut self.state,
            buffers: &mut self.buffers,
            tls: self.tls.as_mut(),
            scratch: &mut self.scratch,
        };
        match conn.on_deadline(&mut shared) {
            Some(end) => self.close(slot, end, now),
            None => {
                self.ready.push(slot as u32);
            }
        }
    }

    /// Gives each connection that was ready at the start one turn: first those that are established, then handshakes for as long as their
    /// share of the pass lasts.
    fn run_ready(&mut self, now: Instant) {
        let wall = self.host.wall();
        for _ in 0..self.ready.len() {
            let Some(slot) = self.ready.pop() else { break };
            match self.conns.get(slot as usize) {
                Some(Some(conn)) if conn.is_shaking() => drop(self.shaking.push(slot)),
                Some(Some(_)) => self.run(slot, now, wall),
                _ => {}
            }
        }
        if !self.shaking.is_empty() {
            let tick_seconds = self.tick_seconds();
            if let Some(tls) = &mut self.tls {
                tls.tick_seconds = tick_seconds;
            }
            let until = self.host.thread_cpu().saturating_add(HANDSHAKES_CPU_NS);
            for _ in 0..self.shaking.len() {
                let Some(slot) = self.shaking.pop() else { break };
                self.run(slot, now, wall);
                if self.host.thread_cpu() >= until {
                    break;
                }
            }
        }
        self.lend();
        if self.buffers.requests.leased() + self.buffers.replies.leased() > 0
            && self.timers.at(self.owners.trim).is_none()
        {
            self.timers.arm(self.owners.trim, now + TRIM_AFTER);
        }
    }

    /// One turn of one connection.
    fn run(&mut self, slot: u32, now: Instant, wall: Timestamp) {
        let index = slot as usize;
        let Some(Some(conn)) = self.conns.get_mut(index) else {
            return;
        };
        let before = conn.cost;
        let mut shared = Shared {
            now,
            wall,
            host: &mut self.host,
            state: &mut self.state,
            buffers: &mut self.buffers,
            tls: self.tls.as_mut(),
            scratch: &mut self.scratch,
        };
        let turn = conn.turn(&mut shared, TURN_BUDGET);
        let due = conn.deadline(&self.state, self.tls.as_ref());
        self.observe.on_turn(&TurnReport {
            conn: conn.peer.conn,
            before,
            after: conn.cost,
        });
        if !self.state.gone.is_empty() {
            self.answer_for_deleted();
        }
        match turn {
            Turn::Again => drop(self.ready.push(slot)),
            Turn::Waiting => {}
            Turn::WantsPair => drop(self.wants_pair.push(slot)),
            Turn::WantsRecords => drop(self.wants_records.push(slot)),
            Turn::WantsRequestBuffer => drop(self.wants_request.push(slot)),
            Turn::WantsReplyBuffer => drop(self.wants_reply.push(slot)),
            Turn::WantsFlush => drop(self.wants_flush.push(slot)),
            Turn::End(end) => {
                self.close(index, end, now);
                return;
            }
        }
        // A deadline that moved back is found out when the old one fires: no heap work per request.
        if self.timers.at(index).is_none_or(|at| due < at) && due != Instant::NEVER {
            self.timers.arm(index, due);
        }
    }

    /// Answers who waits on partitions that the last turn deleted, before another turn can use their slots again; then their files go.
    fn answer_for_deleted(&mut self) {
        let Self {
            host,
            state,
            conns,
            ready,
            buffers,
            scratch,
            ..
        } = self;
        let mut wakes = Wakes::of(state, conns, ready, buffers, scratch);
        while let Some(ix) = wakes.rest.gone.pop() {
            let ix = PartitionIx(ix);
            wakes.rest.on_lost(ix, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
        }
        state.logs.purge(host);
    }

    /// Wakes those who stand in line for a buffer, as many as there are free ones.
    fn lend(&mut self) {
        for (queue, free) in [
            (
                &mut self.wants_pair,
                self.buffers.pairs.count() - self.buffers.pairs.leased(),
            ),
            (
                &mut self.wants_request,
                self.buffers.requests.count() - self.buffers.requests.leased(),
            ),
            (
                &mut self.wants_reply,
                self.buffers.replies.count() - self.buffers.replies.leased(),
            ),
        ] {
            for _ in 0..free {
                let Some(slot) = queue.pop() else { break };
                self.ready.push(slot);
            }
        }
        self.buffers.contended = !self.wants_request.is_empty() || !self.wants_pair.is_empty();
        if let Some(tls) = &mut self.tls {
            let free = self.wants_records.len().min(tls.free_records());
            for _ in 0..free {
                let Some(slot) = self.wants_records.pop() else { break };
                self.ready.push(slot);
            }
            tls.contended = !self.wants_records.is_empty();
        }
    }

    /// What the turns left to do: the coordinator's wake-ups, partitions that grew, a flush, and the deadlines of both.
    fn settle(&mut self, now: Instant) {
        let Self {
            host,
            state,
            conns,
            ready,
            buffers,
            scratch,
            timers,
            owners,
            ..
        } = self;
        let mut wakes = Wakes::of(state, conns, ready, buffers, scratch);
        wakes
            .flusher
            .turn(host, wakes.logs, now, &mut |flushed| wakes.rest.on_flushed(flushed));
        while let Some(ix) = wakes.rest.moved.pop() {
            wakes.rest.wake_fetches(PartitionIx(ix));
        }
        let flush_due = wakes.flusher.deadline(wakes.logs);
        let flushed = wakes.rest.flushed;
        if flush_due == Instant::NEVER {
            timers.cancel(owners.flush);
        } else {
            timers.arm(owners.flush, flush_due);
        }
        state.mend_metadata(host, now);
        while let Some(conn) = state.coordinator.next_wake() {
            wake(conns, ready, conn);
        }
        while let Some((group, due)) = state.coordinator.next_deadline() {
            timers.arm(owners.groups + group, due);
        }
        if flushed {
            self.release_waiters_for_flush();
        }
    }

    fn close(&mut self, slot: usize, end: End, now: Instant) {
        let Some(Some(mut conn)) = self.conns.get_mut(slot).map(Option::take) else {
            return;
        };
        let mut shared = Shared {
            now,
            wall: self.host.wall(),
            host: &mut self.host,
            state: &mut self.state,
            buffers: &mut self.buffers,
            tls: self.tls.as_mut(),
            scratch: &mut self.scratch,
        };
        conn.close(&mut shared);
        self.live -= 1;
        self.timers.cancel(slot);
        for queue in [
            &mut self.ready,
            &mut self.wants_pair,
            &mut self.wants_request,
            &mut self.wants_reply,
            &mut self.wants_flush,
            &mut self.wants_records,
            &mut self.shaking,
        ] {
            queue.remove(slot);
        }
        self.lend();
        self.observe.on_close(&end);
        if !end.is_fault() || end.is_told() {
            debug!("{}: {end}, after {} requests", conn.peer.addr, conn.requests);
        } else if let Some(missed) = self.close_log.admit(now) {
            warn!("{}: closed: {end}{missed}", conn.peer.addr);
        }
    }

    /// How long a tick lasts: CPU time where accounts tell, else the clock's.
    fn tick_seconds(&mut self) -> f64 {
        if let Some(seconds) = self.accounts.as_ref().and_then(Accounts::tick_seconds) {
            return seconds;
        }
        let (now, ticks) = (self.host.now(), self.host.ticks());
        let elapsed = now.as_micros().saturating_sub(self.started.0.as_micros()) as f64 / 1e6;
        let ticked = ticks.0.saturating_sub(self.started.1.0);
        if ticked == 0 { 0.0 } else { elapsed / ticked as f64 }
    }

    /// The numbers of this moment.
    fn snapshot(&mut self) -> Snapshot {
        let (cpu_ns, ticks) = (self.host.thread_cpu(), self.host.ticks());
        if let Some(accounts) = &mut self.accounts {
            accounts.lap(Chore::Serve, ticks);
            accounts.divide(cpu_ns, ticks);
        }
        let tick_seconds = self.tick_seconds();
        let accounts = self.accounts.as_ref();
        Snapshot {
            connections: self.live as u64,
            deadlines: self.timers.len() as u64,
            accepted: self.observe.accepted,
            closed: self.observe.closed,
            faults: self.observe.faults,
            cpu_seconds: cpu_ns as f64 / 1e9,
            claimed_seconds: accounts.map_or(0.0, Accounts::claimed),
            phases: accounts.into_iter().flat_map(Accounts::connections).collect(),
            chores: accounts.into_iter().flat_map(Accounts::chores).collect(),
            tls: self.tls.as_ref().map(|tls| tls.snapshot(tick_seconds)),
        }
    }

    /// The last of it: nothing more is answered, everything written is flushed.
    fn finish(&mut self, now: Instant) {
        self.scrapes.stop(&mut self.host);
        for slot in 0..self.conns.len() {
            if self.conns.get(slot).is_some_and(Option::is_some) {
                self.close(slot, End::Stopping, now);
            }
        }
        // A flush that is under way is heard out: of its errors no later sync would be told.
        let until = now + FLUSH_END_MAX;
        while self.state.flusher.is_busy() && self.host.now() < until {
            self.host.wait(until, &mut |_| {});
            self.complete(now);
        }
        self.state.stop(&mut self.host);
        info!("stopped: {}", self.observe);
    }
}

/// The tables that a wake-up goes through, without the flusher and the logs that report it.
struct Wakes<'a> {
    flusher: &'a mut Flusher,
    logs: &'a mut crate::log::Logs,
    rest: Sleepers<'a>,
}

struct Sleepers<'a> {
    holds: &'a mut crate::holds::Holds,
    waiters: &'a crate::waiters::Waiters,
    moved: &'a mut Queue<u32>,
    topics: &'a mut crate::topics::Catalog,
    metadata_wait: PartitionIx,
    metadata_durable: &'a mut u64,
    gone: &'a mut Queue<u32>,
    conns: &'a mut [Option<Conn>],
    ready: &'a mut Queue<u32>,
    buffers: &'a mut Buffers,
    scratch: &'a mut [u8],
    flushed: bool,
}

impl<'a> Wakes<'a> {
    fn of(
        state: &'a mut State,
        conns: &'a mut [Option<Conn>],
        ready: &'a mut Queue<u32>,
        buffers: &'a mut Buffers,
        scratch: &'a mut [u8],
    ) -> Self {
        let metadata_wait = state.metadata_wait();
        Self {
            flusher: &mut state.flusher,
            logs: &mut state.logs,
            rest: Sleepers {
                holds: &mut state.holds,
                waiters: &state.waiters,
                moved: &mut state.moved,
                topics: &mut state.topics,
                metadata_wait,
                metadata_durable: &mut state.metadata_durable,
                gone: &mut state.gone,
                conns,
                ready,
                buffers,
                scratch,
                flushed: false,
            },
        }
    }
}

impl Sleepers<'_> {
    fn on_flushed(&mut self, flushed: Flushed) {
        self.flushed = true;
        match flushed {
            Flushed::Advanced { ix, durable } => {
                self.end_holds(|holds, ended| holds.on_durable(ix, durable, ended));
                self.wake_fetches(ix);
            }
            Flushed::Failed { ix } => self.on_lost(ix, ErrorCode::KAFKA_STORAGE_ERROR),
            // The metadata log is the one file that is not a partition's. A sync that succeeds after one that failed proves nothing.
            Flushed::FileAdvanced { mark, .. } if !self.topics.has_failed() => {
                *self.metadata_durable = mark;
                let ix = self.metadata_wait;
                self.end_holds(|holds, ended| holds.on_durable(ix, mark.cast_signed(), ended));
            }
            Flushed::FileAdvanced { .. } | Flushed::FileFailed { .. } => {
                self.topics.log_mut().fail();
                let ix = self.metadata_wait;
                self.end_holds(|holds, ended| holds.on_failed(ix, ErrorCode::COORDINATOR_NOT_AVAILABLE, ended));
            }
        }
    }

    /// Answers everyone who waits on a partition whose disk failed or that was deleted.
    fn on_lost(&mut self, ix: PartitionIx, error: ErrorCode) {
        self.end_holds(|holds, ended| holds.on_failed(ix, error, ended));
        self.wake_fetches(ix);
    }

    fn end_holds(&mut self, end: impl FnOnce(&mut crate::holds::Holds, &mut dyn FnMut(crate::holds::Ended))) {
        let Self {
            holds,
            conns,
            ready,
            buffers,
            scratch,
            ..
        } = self;
        end(holds, &mut |e| {
            if let Some(Some(conn)) = conns.get_mut(e.conn.index())
                && conn.peer.conn == e.conn
            {
                conn.on_ended(&e, buffers, scratch);
                if e.free {
                    ready.push(e.conn.index() as u32);
                }
            }
        });
    }

    fn wake_fetches(&mut self, ix: PartitionIx) {
        let Self {
            waiters, conns, ready, ..
        } = self;
        waiters.each(ix, |conn| wake(conns, ready, conn));
    }
}

fn wake(conns: &mut [Option<Conn>], ready: &mut Queue<u32>, id: ConnId) {
    if let Some(Some(conn)) = conns.get_mut(id.index())
        && conn.peer.conn == id
    {
        conn.on_wake();
        ready.push(id.index() as u32);
    }
}
