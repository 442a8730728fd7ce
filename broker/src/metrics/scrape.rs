//! Connections that ask for metrics: HTTP/1, one request each.
//!
//! They are few and none of them is a Kafka client's, so they have places of their own and a page is made on the heap for each.

use skerry_core::time::{Instant, Millis};
use skerry_net::host::{Host, Net, StreamId};

/// Scrapes at a time. When full: one more is closed at once.
pub const SCRAPES_MAX: usize = 4;

/// The longest request. When full: 431.
const REQUEST_BYTES_MAX: usize = 4096;

/// How long a scrape may take.
pub const PATIENCE: Millis = Millis(5_000);

/// Headers of a request that are looked at. More: 431.
const HEADERS_MAX: usize = 32;

struct Scrape {
    stream: StreamId,
    until: Instant,
    request: heapless::Vec<u8, REQUEST_BYTES_MAX>,
    reply: Vec<u8>,
    sent: usize,
    said: bool,
    ended: bool,
}

/// All of them.
#[derive(Default)]
pub struct Scrapes {
    open: heapless::Vec<Scrape, SCRAPES_MAX>,
}

impl Scrapes {
    /// Takes a connection in; what must be done when it has news is [`Scrapes::receive`]. False when full.
    #[must_use]
    pub fn accept(&mut self, stream: StreamId, now: Instant) -> bool {
        let scrape = Scrape {
            stream,
            until: now + PATIENCE,
            request: heapless::Vec::new(),
            reply: Vec::new(),
            sent: 0,
            said: false,
            ended: false,
        };
        self.open.push(scrape).is_ok()
    }

    /// Those that take a place for nothing if their peer has gone meanwhile: all of them when there is no other place, else none.
    #[must_use]
    pub fn in_the_way(&self) -> heapless::Vec<StreamId, SCRAPES_MAX> {
        let all = self.open.iter().filter(|_| self.open.is_full());
        all.map(|scrape| scrape.stream).collect()
    }

    /// Whether that stream is one of them.
    #[must_use]
    pub fn has(&self, stream: StreamId) -> bool {
        self.open.iter().any(|scrape| scrape.stream == stream)
    }

    /// Receives from one of them. True: it asks for the page, see [`Scrapes::answer`].
    #[must_use]
    pub fn receive<H: Host>(&mut self, host: &mut H, stream: StreamId) -> bool {
        let Some(at) = self.open.iter().position(|scrape| scrape.stream == stream) else {
            return false;
        };
        let Some(scrape) = self.open.get_mut(at) else {
            return false;
        };
        match scrape.receive(host) {
            Some(Answer::Page) => true,
            Some(other) => {
                scrape.reply = other.bytes("");
                false
            }
            None => false,
        }
    }

    /// Gives one of them the page.
    pub fn answer(&mut self, stream: StreamId, page: &str) {
        if let Some(scrape) = self.open.iter_mut().find(|scrape| scrape.stream == stream) {
            scrape.reply = Answer::Page.bytes(page);
        }
    }

    /// Sends what one of them is owed, and closes it when it is over.
    pub fn send<H: Host>(&mut self, host: &mut H, stream: StreamId) {
        let Some(at) = self.open.iter().position(|scrape| scrape.stream == stream) else {
            return;
        };
        if self.open.get_mut(at).is_some_and(|scrape| !scrape.send(host)) {
            self.open.swap_remove(at);
            Net::close(host, stream);
        }
    }

    /// Closes those whose time is over, by slot; their deadline is [`PATIENCE`] after their accept.
    pub fn expire<H: Host>(&mut self, host: &mut H, slot: usize, now: Instant) {
        let late = |scrape: &Scrape| scrape.stream.0 as usize == slot && now >= scrape.until;
        if let Some(at) = self.open.iter().position(late) {
            let scrape = self.open.swap_remove(at);
            Net::close(host, scrape.stream);
        }
    }

    /// Closes all.
    pub fn stop<H: Host>(&mut self, host: &mut H) {
        while let Some(scrape) = self.open.pop() {
            Net::close(host, scrape.stream);
        }
    }
}

impl Scrape {
    /// Receives until a whole request is there, then only to throw away: closing with bytes unread would reset the reply.
    fn receive<H: Host>(&mut self, host: &mut H) -> Option<Answer> {
        let mut room = [0; 1024];
        let mut found = None;
        loop {
            match host.read(self.stream, &mut room) {
                Ok(0) | Err(nb::Error::Other(_)) => {
                    self.ended = true;
                    return found;
                }
                Err(nb::Error::WouldBlock) => return found,
                Ok(_) if self.said => {}
                Ok(bytes) => {
                    let taken = room.get(..bytes).unwrap_or_default();
                    found = match self.request.extend_from_slice(taken) {
                        Ok(()) => answer(&self.request),
                        Err(_) => Some(Answer::TooLong),
                    };
                    self.said = found.is_some();
                }
            }
        }
    }

    /// Whether it stays open: until the peer has closed, or its time is over.
    fn send<H: Host>(&mut self, host: &mut H) -> bool {
        while let Some(rest) = self.reply.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match host.write(self.stream, &[std::io::IoSlice::new(rest)], false) {
                Ok(bytes) => self.sent += bytes,
                Err(nb::Error::WouldBlock) => return !self.ended,
                Err(nb::Error::Other(_)) => return false,
            }
        }
        if self.sent > 0 {
            host.shutdown(self.stream);
            self.sent = 0;
            self.reply = Vec::new();
        }
        !self.ended
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Page,
    NotFound,
    NotAllowed,
    TooLong,
    Bad,
}

/// What is to be answered, once the request is whole.
fn answer(request: &[u8]) -> Option<Answer> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Request::new(&mut headers);
    match parsed.parse(request) {
        Ok(httparse::Status::Partial) => None,
        Ok(httparse::Status::Complete(_)) => {
            let path = parsed.path.unwrap_or_default();
            let path = path.split_once('?').map_or(path, |(path, _)| path);
            Some(match (parsed.method, path) {
                (Some("GET"), "/metrics") => Answer::Page,
                (Some("GET"), _) => Answer::NotFound,
                _ => Answer::NotAllowed,
            })
        }
        Err(httparse::Error::TooManyHeaders) => Some(Answer::TooLong),
        Err(_) => Some(Answer::Bad),
    }
}

impl Answer {
    fn bytes(self, page: &str) -> Vec<u8> {
        let (status, kind, body) = match self {
            Self::Page => (
                "200 OK",
                "application/openmetrics-text; version=1.0.0; charset=utf-8",
                page,
            ),
            Self::NotFound => ("404 Not Found", "text/plain", "metrics are at /metrics\n"),
            Self::NotAllowed => ("405 Method Not Allowed", "text/plain", "only GET\n"),
            Self::TooLong => (
                "431 Request Header Fields Too Large",
                "text/plain",
                "the request is too long\n",
            ),
            Self::Bad => ("400 Bad Request", "text/plain", "this is not HTTP/1\n"),
        };
        let length = body.len();
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )
        .into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_answered_when_it_is_whole() {
        let request = b"GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\n\r\n";
        assert!((0..request.len()).all(|cut| answer(&request[..cut]).is_none()));
        assert_eq!(answer(request), Some(Answer::Page));
        assert_eq!(answer(b"GET / HTTP/1.0\r\n\r\n"), Some(Answer::NotFound));
        assert_eq!(answer(b"POST /metrics HTTP/1.1\r\n\r\n"), Some(Answer::NotAllowed));
        assert_eq!(answer(b"\x16\x03\x01\x02\x00"), Some(Answer::Bad));
        let many = [
            b"GET / HTTP/1.1\r\n".to_vec(),
            b"a: b\r\n".repeat(HEADERS_MAX + 1),
            b"\r\n".to_vec(),
        ]
        .concat();
        assert_eq!(answer(&many), Some(Answer::TooLong));
    }
}
