//! The client's end of one connection: what is asked goes out as the pipe has room, what comes back is matched with it.
//!
//! Checked here, whatever the client: replies come in the order of their requests, under their correlation ids, none without a request
//! and none to a produce that wanted none; and no request waits for ever.

use std::collections::VecDeque;

use skerry_core::api::{ApiKey, Call};
use skerry_core::time::{Instant, Millis};

use super::Cx;
use super::net::{ClientRead, FakeNet, LinkId};
use crate::wire;

/// How long a client waits for any reply beyond what it asked to wait. Peers that stall are thrown out after half a minute, so
/// whoever stands behind some of them in line for a buffer must have been served by then.
pub const PATIENCE: Millis = Millis(300_000);

/// A request that was sent.
#[derive(Clone, Copy, Debug)]
pub struct Asked<T> {
    id: i32,
    /// Whose reply is due.
    pub key: ApiKey,
    /// In which version.
    pub version: i16,
    /// When it was asked.
    pub at: Instant,
    deadline: Instant,
    /// What the client wants to remember.
    pub note: T,
}

/// What has happened on a connection.
#[derive(Debug)]
pub enum Heard<T> {
    /// A reply, without its length.
    Reply(Asked<T>, Vec<u8>),
    /// The connection is over; these were not answered.
    Over(Vec<Asked<T>>),
}

/// The client's end.
#[derive(Debug)]
pub struct Peer<T> {
    name: String,
    link: Option<LinkId>,
    out: VecDeque<u8>,
    input: Vec<u8>,
    asked: VecDeque<Asked<T>>,
    next_id: i32,
    /// Most bytes read at once.
    pub read_bytes: usize,
}

impl<T> Peer<T> {
    /// Of the client of this name, not connected.
    #[must_use]
    pub const fn new(name: String) -> Self {
        Self {
            name,
            link: None,
            out: VecDeque::new(),
            input: Vec::new(),
            asked: VecDeque::new(),
            next_id: 0,
            read_bytes: usize::MAX,
        }
    }

    /// Who it is, for failures.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether there is a connection.
    #[must_use]
    pub const fn is_connected(&self) -> bool {
        self.link.is_some()
    }

    /// Its connection.
    #[must_use]
    pub const fn link(&self) -> Option<LinkId> {
        self.link
    }

    /// Requests without a reply.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.asked.len()
    }

    /// Those requests, oldest first.
    pub fn asked(&self) -> impl Iterator<Item = &Asked<T>> {
        self.asked.iter()
    }

    /// Whether something waits for room in the pipe.
    #[must_use]
    pub fn is_sending(&self) -> bool {
        !self.out.is_empty()
    }

    /// Connects.
    pub fn connect(&mut self, cx: &mut Cx<'_>) {
        assert!(self.link.is_none());
        self.link = Some(cx.net.connect(cx.now));
        // Any number will do to begin with, negative ones too.
        self.next_id = cx.rng.next_u64() as i32;
    }

    /// Asks. `patience` is what the request itself may ask the broker to wait.
    pub fn ask<'a, C: Call<'a>>(&mut self, cx: &mut Cx<'_>, version: i16, call: &C, patience: Millis, note: T) {
        let id = self.tell(cx, version, call);
        let deadline = cx.now + patience + PATIENCE;
        self.asked.push_back(Asked {
            id,
            key: C::KEY,
            version,
            at: cx.now,
            deadline,
            note,
        });
    }

    /// Asks something that gets no reply.
    pub fn tell<'a, C: Call<'a>>(&mut self, cx: &mut Cx<'_>, version: i16, call: &C) -> i32 {
        self.next_id = self.next_id.wrapping_add(1);
        self.send_bytes(cx, &wire::request(call, version, self.next_id));
        self.next_id
    }

    /// Sends bytes as they are.
    pub fn send_bytes(&mut self, cx: &mut Cx<'_>, bytes: &[u8]) {
        self.out.extend(bytes);
        self.pump(cx.net, cx.now);
    }

    fn pump(&mut self, net: &mut FakeNet, now: Instant) {
        let Some(link) = self.link else { return };
        while !self.out.is_empty() {
            let sent = net.client_write(link, now, self.out.make_contiguous());
            if sent == 0 {
                break;
            }
            self.out.drain(..sent);
        }
    }

    /// Takes what has come. Call it whenever the clock has reached [`news_at`](Self::news_at).
    pub fn hear(&mut self, cx: &mut Cx<'_>) -> Vec<Heard<T>> {
        let mut heard = Vec::new();
        let Some(link) = self.link else { return heard };
        loop {
            match cx.net.client_read(link, cx.now, self.read_bytes) {
                ClientRead::Bytes(bytes) => {
                    self.input.extend(bytes);
                    while let Some(reply) = self.next_reply() {
                        heard.push(reply);
                    }
                    if self.read_bytes < usize::MAX {
                        break;
                    }
                }
                ClientRead::Nothing => break,
                ClientRead::End | ClientRead::Reset => {
                    heard.push(Heard::Over(self.forget()));
                    return heard;
                }
            }
        }
        self.pump(cx.net, cx.now);
        for asked in &self.asked {
            assert!(
                cx.now < asked.deadline,
                "{} waits for ever: {:?} version {} of {:?}",
                self.name,
                asked.key,
                asked.version,
                asked.at
            );
        }
        heard
    }

    fn next_reply(&mut self) -> Option<Heard<T>> {
        let (length, rest) = self.input.split_first_chunk()?;
        let bytes = u32::from_be_bytes(*length) as usize;
        let frame = rest.get(..bytes)?.to_vec();
        self.input.drain(..4 + bytes);
        let id = wire::correlation_id(&frame);
        let asked = self
            .asked
            .pop_front()
            .unwrap_or_else(|| panic!("{}: a reply that nobody waits for: {frame:02x?}", self.name));
        assert_eq!(
            id, asked.id,
            "{}: a reply out of order, {:?} was next",
            self.name, asked.key
        );
        Some(Heard::Reply(asked, frame))
    }

    fn forget(&mut self) -> Vec<Asked<T>> {
        self.link = None;
        self.out.clear();
        self.input.clear();
        self.asked.drain(..).collect()
    }

    /// Closes its end in an orderly way; those that were not answered.
    pub fn close(&mut self, cx: &mut Cx<'_>) -> Vec<Asked<T>> {
        if let Some(link) = self.link {
            cx.net.client_close(link, cx.now);
        }
        self.forget()
    }

    /// Breaks the connection; those that were not answered.
    pub fn reset(&mut self, cx: &mut Cx<'_>) -> Vec<Asked<T>> {
        if let Some(link) = self.link {
            cx.net.client_reset(link, cx.now);
        }
        self.forget()
    }

    /// Says that no more requests come.
    pub fn end(&mut self, cx: &mut Cx<'_>) {
        if let Some(link) = self.link {
            cx.net.client_end(link, cx.now);
        }
    }

    /// When to call [`hear`](Self::hear) next.
    #[must_use]
    pub fn news_at(&self, net: &FakeNet) -> Instant {
        let news = self.link.map_or(Instant::NEVER, |link| net.client_news_at(link));
        self.asked
            .iter()
            .map(|a| a.deadline)
            .min()
            .unwrap_or(Instant::NEVER)
            .min(news)
    }
}
