//! A network of fake sockets: bounded pipes both ways, with latency, fragments, short reads and writes, resets and half-closes.
//!
//! Nothing happens by itself: bytes written get a time of arrival, and whoever owns the clock asks when the next thing arrives and
//! moves on to it. The broker's end obeys the contract of [`skerry_net::host::Net`] (edge-triggered, told once per change); the
//! clients' ends are what an application would see.

use std::collections::VecDeque;
use std::io::{IoSlice, Read};
use std::net::SocketAddr;

use skerry_core::time::Instant;
use skerry_net::host::{Accepted, Event, ListenerId, NetError, StreamId};

use crate::rng::Rng;

/// How the network behaves.
#[derive(Clone, Copy, Debug)]
pub struct Conditions {
    /// Least time that bytes travel, in microseconds.
    pub latency_us: u64,
    /// Up to so much on top of it, at random.
    pub jitter_us: u64,
    /// Bytes that a pipe holds, in flight and unread.
    pub pipe_bytes: usize,
    /// Of a hundred writes and reads, how many do less than they could.
    pub short_percent: u64,
    /// Longest piece that arrives as one.
    pub fragment_bytes: usize,
}

/// A connection, as its client knows it. Never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkId(usize);

/// What a client's read brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientRead {
    /// Bytes, at least one.
    Bytes(Vec<u8>),
    /// Nothing yet.
    Nothing,
    /// The broker has ended its side.
    End,
    /// The connection is broken.
    Reset,
}

#[derive(Debug, Default)]
struct Pipe {
    /// What travels or waits to be read: arrival and bytes. Arrivals do not fall.
    pieces: VecDeque<(Instant, VecDeque<u8>)>,
    bytes: usize,
    /// How many pieces at the front the reader has been told of.
    told: usize,
    /// When the reader sees that no more comes.
    fin: Option<Instant>,
    fin_told: bool,
    last_arrival: Instant,
}

impl Pipe {
    fn arrival(&mut self, now: Instant, conditions: &Conditions, rng: &mut Rng) -> Instant {
        let travel = conditions.latency_us + rng.below(conditions.jitter_us + 1);
        self.last_arrival = self.last_arrival.max(Instant::from_micros(now.as_micros() + travel));
        self.last_arrival
    }

    fn write(&mut self, now: Instant, bytes: &[u8], conditions: &Conditions, rng: &mut Rng) -> usize {
        let room = conditions.pipe_bytes.saturating_sub(self.bytes).min(bytes.len());
        let taken = short(room, conditions, rng);
        let mut rest = &bytes[..taken];
        while !rest.is_empty() {
            let most = conditions.fragment_bytes.min(rest.len());
            let (piece, after) = rest.split_at(rng.within(1, most as u64) as usize);
            let arrival = self.arrival(now, conditions, rng);
            self.pieces.push_back((arrival, piece.iter().copied().collect()));
            rest = after;
        }
        self.bytes += taken;
        taken
    }

    fn end(&mut self, now: Instant, conditions: &Conditions, rng: &mut Rng) {
        if self.fin.is_none() {
            self.fin = Some(self.arrival(now, conditions, rng));
        }
    }

    fn readable(&self, now: Instant) -> usize {
        self.pieces
            .iter()
            .take_while(|(at, _)| *at <= now)
            .map(|(_, piece)| piece.len())
            .sum()
    }

    fn at_end(&self, now: Instant) -> bool {
        self.pieces.is_empty() && self.fin.is_some_and(|at| at <= now)
    }

    fn read(&mut self, mut out: &mut [u8]) {
        self.bytes -= out.len();
        while !out.is_empty() {
            let (_, piece) = self.pieces.front_mut().expect("no more is read than is there");
            let n = piece.read(out).expect("a deque reads");
            out = &mut out[n..];
            if piece.is_empty() {
                self.pieces.pop_front();
                self.told = self.told.saturating_sub(1);
            }
        }
    }

    /// When the reader has something new to be told.
    fn news_at(&self) -> Instant {
        let piece = self.pieces.get(self.told).map(|(at, _)| *at);
        let fin = self.fin.filter(|_| !self.fin_told);
        piece.into_iter().chain(fin).min().unwrap_or(Instant::NEVER)
    }

    /// Marks everything that has arrived as told; whether anything was new.
    fn tell(&mut self, now: Instant) -> bool {
        let before = (self.told, self.fin_told);
        self.told = self.pieces.iter().take_while(|(at, _)| *at <= now).count();
        self.fin_told |= self.fin.is_some_and(|at| at <= now);
        before.0 < self.told || before.1 != self.fin_told
    }

    fn drop_all(&mut self) {
        self.pieces.clear();
        self.bytes = 0;
        self.told = 0;
    }
}

fn short(most: usize, conditions: &Conditions, rng: &mut Rng) -> usize {
    if most > 1 && rng.percent(conditions.short_percent) {
        rng.within(1, most as u64 - 1) as usize
    } else {
        most
    }
}

#[derive(Debug)]
struct Link {
    up: Pipe,
    down: Pipe,
    peer: SocketAddr,
    /// When the broker sees that it may be accepted.
    arrives: Instant,
    stream: Option<StreamId>,
    /// The client gave its end away.
    client_closed: bool,
    /// The broker did.
    broker_closed: bool,
    /// The broker sees the connection broken from here on.
    broken_at: Option<Instant>,
    broken_told: bool,
    /// The broker's last write found no room.
    broker_blocked: bool,
    /// Room has come since: when the broker is told.
    room_at: Option<Instant>,
    /// The broker's short read left bytes: it is told of them again, as of bytes that came a moment later.
    tell_again: bool,
    /// The client's last write found no room.
    client_blocked: bool,
    client_room_at: Option<Instant>,
}

/// All connections between the clients and one broker.
#[derive(Debug)]
pub struct FakeNet {
    conditions: Conditions,
    rng: Rng,
    links: Vec<Link>,
    /// Links by the broker's slots.
    streams: Vec<Option<LinkId>>,
    /// Connections that nobody has accepted yet.
    backlog: VecDeque<LinkId>,
    accept_told: usize,
    digest: u64,
}

const LOCAL: ([u8; 4], u16) = ([127, 0, 0, 1], 9092);

impl FakeNet {
    /// With slots for `streams` connections on the broker's side.
    #[must_use]
    pub fn new(conditions: Conditions, streams: usize, rng: Rng) -> Self {
        Self {
            conditions,
            rng,
            links: Vec::new(),
            streams: vec![None; streams],
            backlog: VecDeque::new(),
            accept_told: 0,
            digest: 0,
        }
    }

    /// A sum over everything that both sides have written, and when.
    #[must_use]
    pub const fn digest(&self) -> u64 {
        self.digest
    }

    fn note(digest: &mut u64, id: LinkId, now: Instant, bytes: &[u8]) {
        // FNV-1a.
        let numbers = (id.0 as u64)
            .to_le_bytes()
            .into_iter()
            .chain(now.as_micros().to_le_bytes());
        for byte in numbers.chain(bytes.iter().copied()) {
            *digest = (*digest ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }

    /// Streams that the broker holds open.
    #[must_use]
    pub fn open_streams(&self) -> usize {
        self.streams.iter().flatten().count()
    }

    /// The broker is gone, and every connection with it.
    pub fn break_all(&mut self) {
        self.streams.fill(None);
        self.backlog.clear();
        self.accept_told = 0;
        for link in &mut self.links {
            link.stream = None;
            link.broken_at.get_or_insert(Instant::default());
            link.broker_closed = true;
            link.up.drop_all();
            link.down.drop_all();
        }
    }

    // ---- the clients' ends ----

    /// Begins a connection. It is there at once for its client, and for the broker after the latency.
    pub fn connect(&mut self, now: Instant) -> LinkId {
        let id = LinkId(self.links.len());
        let mut up = Pipe::default();
        let arrives = up.arrival(now, &self.conditions, &mut self.rng);
        self.links.push(Link {
            up,
            down: Pipe::default(),
            peer: SocketAddr::from(([127, 0, 0, 1], 1024 + (id.0 % 60_000) as u16)),
            arrives,
            stream: None,
            client_closed: false,
            broker_closed: false,
            broken_at: None,
            broken_told: false,
            broker_blocked: false,
            room_at: None,
            tell_again: false,
            client_blocked: false,
            client_room_at: None,
        });
        // Those that come later may arrive earlier, as on a real network; the backlog is kept by arrival.
        let place = self
            .backlog
            .iter()
            .position(|other| self.links[other.0].arrives > arrives);
        self.backlog.insert(place.unwrap_or(self.backlog.len()), id);
        id
    }

    /// Writes what there is room for; 0 also when the connection is broken, which the next read tells.
    pub fn client_write(&mut self, id: LinkId, now: Instant, bytes: &[u8]) -> usize {
        let Self {
            conditions,
            rng,
            links,
            digest,
            ..
        } = self;
        let link = &mut links[id.0];
        link.client_room_at = None;
        if link.broken_at.is_some() || link.broker_closed || link.up.fin.is_some() {
            return 0;
        }
        let taken = link.up.write(now, bytes, conditions, rng);
        Self::note(digest, id, now, &bytes[..taken]);
        link.client_blocked = taken < bytes.len();
        taken
    }

    /// Reads at most `most` bytes.
    pub fn client_read(&mut self, id: LinkId, now: Instant, most: usize) -> ClientRead {
        let Self {
            conditions, rng, links, ..
        } = self;
        let link = &mut links[id.0];
        link.down.tell(now);
        link.client_room_at = None;
        let there = link.down.readable(now).min(most);
        if there == 0 {
            return match link.broken_at {
                Some(_) if link.down.bytes == 0 => ClientRead::Reset,
                _ if link.down.at_end(now) => ClientRead::End,
                _ => ClientRead::Nothing,
            };
        }
        let mut bytes = vec![0; short(there, conditions, rng)];
        link.down.read(&mut bytes);
        if link.broker_blocked && link.room_at.is_none() {
            link.room_at = Some(Instant::from_micros(now.as_micros() + conditions.latency_us));
        }
        ClientRead::Bytes(bytes)
    }

    /// Says that no more requests come; replies still do.
    pub fn client_end(&mut self, id: LinkId, now: Instant) {
        let Self {
            conditions, rng, links, ..
        } = self;
        links[id.0].up.end(now, conditions, rng);
    }

    /// Gives the client's end away: what was sent still arrives, what comes is thrown away.
    pub fn client_close(&mut self, id: LinkId, now: Instant) {
        self.client_end(id, now);
        let link = &mut self.links[id.0];
        link.client_closed = true;
        link.down.drop_all();
        if link.broker_blocked && link.room_at.is_none() {
            link.room_at = Some(Instant::from_micros(now.as_micros() + self.conditions.latency_us));
        }
    }

    /// Breaks the connection: what travels is lost.
    pub fn client_reset(&mut self, id: LinkId, now: Instant) {
        let Self {
            conditions, rng, links, ..
        } = self;
        let link = &mut links[id.0];
        let at = link.up.arrival(now, conditions, rng);
        link.broken_at.get_or_insert(at);
        link.client_closed = true;
        link.down.drop_all();
    }

    /// When the client's end has something new: bytes, the end, a break, or room after a write that was cut short.
    #[must_use]
    pub fn client_news_at(&self, id: LinkId) -> Instant {
        let link = &self.links[id.0];
        if link.broken_at.is_some() && link.down.bytes == 0 {
            return Instant::default();
        }
        link.down.news_at().min(link.client_room_at.unwrap_or(Instant::NEVER))
    }

    /// When there is room again after a write that was cut short.
    #[must_use]
    pub fn client_room_at(&self, id: LinkId) -> Instant {
        self.links[id.0].client_room_at.unwrap_or(Instant::NEVER)
    }

    /// Whether the broker's end is gone: what a client finds out that only writes.
    #[must_use]
    pub fn is_closed(&self, id: LinkId) -> bool {
        self.links[id.0].broker_closed
    }

    // ---- the broker's ends ----

    fn link(&mut self, stream: StreamId) -> &mut Link {
        let id = self.streams[stream.0 as usize].expect("the broker uses a stream that it has closed");
        &mut self.links[id.0]
    }

    /// As [`skerry_net::host::Net::accept`].
    pub fn accept(&mut self, _: ListenerId, now: Instant) -> nb::Result<Accepted, NetError> {
        let Some(&id) = self.backlog.front().filter(|id| self.links[id.0].arrives <= now) else {
            return Err(nb::Error::WouldBlock);
        };
        let Some(slot) = self.streams.iter().position(Option::is_none) else {
            return Err(nb::Error::Other(NetError::Exhausted));
        };
        self.backlog.pop_front();
        self.accept_told = self.accept_told.saturating_sub(1);
        self.streams[slot] = Some(id);
        let stream = StreamId(slot as u32);
        let link = &mut self.links[id.0];
        link.stream = Some(stream);
        // A socket that was just added to the set is told of what it holds already.
        Ok(Accepted {
            stream,
            peer: link.peer,
            local: SocketAddr::from(LOCAL),
        })
    }

    /// As [`skerry_net::host::Net::read`].
    pub fn read(&mut self, stream: StreamId, now: Instant, buf: &mut [u8]) -> nb::Result<usize, NetError> {
        assert!(!buf.is_empty(), "a read into nothing cannot tell the end of a stream");
        let Self {
            conditions,
            rng,
            links,
            streams,
            ..
        } = self;
        let id = streams[stream.0 as usize].expect("the broker reads from a stream that it has closed");
        let link = &mut links[id.0];
        if link.broken_at.is_some_and(|at| at <= now) {
            return Err(nb::Error::Other(NetError::Reset));
        }
        let there = link.up.readable(now).min(buf.len());
        if there == 0 {
            return if link.up.at_end(now) {
                Ok(0)
            } else {
                Err(nb::Error::WouldBlock)
            };
        }
        let taken = short(there, conditions, rng);
        link.up.read(&mut buf[..taken]);
        link.tell_again |= taken < buf.len() && link.up.readable(now) > 0;
        if link.client_blocked {
            link.client_blocked = false;
            link.client_room_at = Some(Instant::from_micros(now.as_micros() + conditions.latency_us));
        }
        Ok(taken)
    }

    /// As [`skerry_net::host::Net::write`].
    pub fn write(&mut self, stream: StreamId, now: Instant, bufs: &[IoSlice<'_>]) -> nb::Result<usize, NetError> {
        let Self {
            conditions,
            rng,
            links,
            streams,
            digest,
            ..
        } = self;
        let id = streams[stream.0 as usize].expect("the broker writes to a stream that it has closed");
        let link = &mut links[id.0];
        // After the client has gone, the first bytes are answered by a reset.
        let gone = link.client_closed && link.up.fin.is_some_and(|at| at <= now);
        if gone || link.broken_at.is_some_and(|at| at <= now) {
            return Err(nb::Error::Other(NetError::Reset));
        }
        assert!(
            !link.down.fin_told && link.down.fin.is_none(),
            "the broker writes after its shutdown"
        );
        let bytes: Vec<u8> = bufs.iter().flat_map(|b| b.iter().copied()).collect();
        assert!(!bytes.is_empty(), "a write of nothing");
        if link.client_closed {
            // It travels, and nobody will read it.
            return Ok(bytes.len());
        }
        match link.down.write(now, &bytes, conditions, rng) {
            0 => {
                link.broker_blocked = true;
                Err(nb::Error::WouldBlock)
            }
            n => {
                Self::note(digest, id, now, &bytes[..n]);
                Ok(n)
            }
        }
    }

    /// How many bytes a write would take at most.
    #[must_use]
    pub fn room(&self, stream: StreamId) -> usize {
        let id = self.streams[stream.0 as usize].expect("the broker writes to a stream that it has closed");
        self.conditions.pipe_bytes.saturating_sub(self.links[id.0].down.bytes)
    }

    /// As [`skerry_net::host::Net::shutdown`].
    pub fn shutdown(&mut self, stream: StreamId, now: Instant) {
        let Self {
            conditions,
            rng,
            links,
            streams,
            ..
        } = self;
        let id = streams[stream.0 as usize].expect("the broker ends a stream that it has closed");
        links[id.0].down.end(now, conditions, rng);
    }

    /// As [`skerry_net::host::Net::close`].
    pub fn close(&mut self, stream: StreamId, now: Instant) {
        self.shutdown(stream, now);
        let link = self.link(stream);
        link.stream = None;
        link.broker_closed = true;
        link.up.drop_all();
        self.streams[stream.0 as usize] = None;
    }

    /// When the broker has something new to be told.
    #[must_use]
    pub fn broker_news_at(&self) -> Instant {
        let accept = self
            .backlog
            .get(self.accept_told)
            .map_or(Instant::NEVER, |id| self.links[id.0].arrives);
        let streams = self
            .streams
            .iter()
            .flatten()
            .map(|id| self.links[id.0].broker_news_at());
        streams.fold(accept, Instant::min)
    }

    /// Hands the broker every event that is due; whether there was one.
    pub fn tell_broker(&mut self, now: Instant, each: &mut dyn FnMut(Event)) -> bool {
        let mut any = false;
        let arrived = self
            .backlog
            .iter()
            .take_while(|id| self.links[id.0].arrives <= now)
            .count();
        if arrived > self.accept_told {
            self.accept_told = arrived;
            any = true;
            each(Event::Accept(ListenerId(0)));
        }
        for slot in 0..self.streams.len() {
            let Some(id) = self.streams[slot] else { continue };
            let link = &mut self.links[id.0];
            if link.broker_news_at() > now {
                continue;
            }
            let broken = !link.broken_told && link.broken_at.is_some_and(|at| at <= now);
            let readable = link.up.tell(now) | core::mem::take(&mut link.tell_again) | broken;
            let room = link.room_at.is_some_and(|at| at <= now);
            if room {
                link.room_at = None;
                link.broker_blocked = false;
            }
            link.broken_told |= broken;
            let hangup = broken || link.up.fin_told;
            any = true;
            each(Event::Stream {
                stream: StreamId(slot as u32),
                readable,
                writable: room || broken,
                hangup,
            });
        }
        any
    }
}

impl Link {
    fn broker_news_at(&self) -> Instant {
        if self.tell_again {
            return Instant::default();
        }
        let broken = self.broken_at.filter(|_| !self.broken_told);
        [Some(self.up.news_at()), broken, self.room_at]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(Instant::NEVER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEADY: Conditions = Conditions {
        latency_us: 10,
        jitter_us: 0,
        pipe_bytes: 8,
        short_percent: 0,
        fragment_bytes: 100,
    };

    fn at(us: u64) -> Instant {
        Instant::from_micros(us)
    }

    fn events(net: &mut FakeNet, now: Instant) -> Vec<Event> {
        let mut out = Vec::new();
        net.tell_broker(now, &mut |e| out.push(e));
        out
    }

    fn connected() -> (FakeNet, LinkId, StreamId) {
        let mut net = FakeNet::new(STEADY, 1, Rng::new(1));
        let link = net.connect(at(0));
        assert_eq!(net.accept(ListenerId(0), at(9)).unwrap_err(), nb::Error::WouldBlock);
        assert_eq!(net.broker_news_at(), at(10));
        assert_eq!(events(&mut net, at(10)), [Event::Accept(ListenerId(0))]);
        let stream = net.accept(ListenerId(0), at(10)).unwrap().stream;
        (net, link, stream)
    }

    #[test]
    fn bytes_arrive_after_the_latency_and_are_told_once() {
        let (mut net, link, stream) = connected();
        assert_eq!(net.client_write(link, at(20), b"hello"), 5);
        assert_eq!(net.broker_news_at(), at(30));
        let mut buf = [0; 16];
        assert_eq!(net.read(stream, at(29), &mut buf), Err(nb::Error::WouldBlock));
        let readable = Event::Stream {
            stream,
            readable: true,
            writable: false,
            hangup: false,
        };
        assert_eq!(events(&mut net, at(30)), [readable]);
        assert_eq!(events(&mut net, at(31)), []);
        assert_eq!(net.read(stream, at(31), &mut buf[..2]), Ok(2));
        assert_eq!(
            events(&mut net, at(31)),
            [],
            "a full read leaves the rest to the reader"
        );
        assert_eq!(net.read(stream, at(31), &mut buf), Ok(3));
    }

    #[test]
    fn a_full_pipe_blocks_the_broker_until_the_client_reads() {
        let (mut net, link, stream) = connected();
        assert_eq!(
            net.write(stream, at(20), &[IoSlice::new(b"123456"), IoSlice::new(b"7890")]),
            Ok(8)
        );
        assert_eq!(
            net.write(stream, at(20), &[IoSlice::new(b"90")]),
            Err(nb::Error::WouldBlock)
        );
        assert_eq!(net.broker_news_at(), Instant::NEVER);
        assert_eq!(net.client_news_at(link), at(30));
        assert_eq!(net.client_read(link, at(30), 3), ClientRead::Bytes(b"123".to_vec()));
        let writable = Event::Stream {
            stream,
            readable: false,
            writable: true,
            hangup: false,
        };
        assert_eq!(events(&mut net, at(40)), [writable]);
        assert_eq!(net.write(stream, at(40), &[IoSlice::new(b"90")]), Ok(2));
    }

    #[test]
    fn ends_and_resets_are_seen() {
        let (mut net, link, stream) = connected();
        net.client_write(link, at(20), b"x");
        net.client_end(link, at(20));
        let mut buf = [0; 4];
        assert_eq!(net.read(stream, at(30), &mut buf), Ok(1));
        assert_eq!(net.read(stream, at(30), &mut buf), Ok(0));
        net.client_reset(link, at(40));
        assert_eq!(
            events(&mut net, at(50)),
            [Event::Stream {
                stream,
                readable: true,
                writable: true,
                hangup: true
            }]
        );
        assert_eq!(
            net.read(stream, at(50), &mut buf),
            Err(nb::Error::Other(NetError::Reset))
        );
        net.close(stream, at(50));
        assert_eq!((net.open_streams(), net.broker_news_at()), (0, Instant::NEVER));
    }

    #[test]
    fn the_client_reads_what_was_sent_before_the_broker_closed() {
        let (mut net, link, stream) = connected();
        net.write(stream, at(20), &[IoSlice::new(b"bye")]).unwrap();
        net.close(stream, at(20));
        assert_eq!(net.client_read(link, at(30), 10), ClientRead::Bytes(b"bye".to_vec()));
        assert_eq!(net.client_read(link, at(30), 10), ClientRead::End);
    }
}
