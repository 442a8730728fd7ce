//! One connection to the leader of one partition: how it is found, asked, lost and found again.

use heapless::String;

use super::backoff::Backoff;
use super::{Error, HOST_BYTES_MAX, Settings, Transport};
use crate::api::api_versions::ApiVersionsRequest;
use crate::api::metadata::{MetadataRequest, MetadataRequestTopic, MetadataResponse};
use crate::api::{ApiKey, Call};
use crate::error_code::ErrorCode;
use crate::frame::{self, FrameError, PREFIX_BYTES};
use crate::header::{RequestHeader, ResponseHeader};
use crate::time::Instant;
use crate::wire::{Array, Full, Message, Reader, SliceWriter, Version, Versions};

/// The versions that a client speaks: those before compact lengths, which are the least code. In a produce request of these
/// versions the batch comes last, and in a fetch reply the records do, so neither is copied.
pub(super) mod spoken {
    use super::Versions;

    /// Every broker since 0.10 answers it.
    pub(super) const API_VERSIONS: Versions = Versions { min: 0, max: 0 };
    /// From 4 on the client says whether topics may be created.
    pub(in super::super) const METADATA: Versions = Versions { min: 4, max: 8 };
    /// 3 is the first with batches of format v2.
    pub(in super::super) const PRODUCE: Versions = Versions { min: 3, max: 8 };
    /// 4 is the first with batches of format v2.
    pub(in super::super) const FETCH: Versions = Versions { min: 4, max: 11 };
    /// 1 is the first with one offset in place of several.
    pub(in super::super) const LIST_OFFSETS: Versions = Versions { min: 1, max: 5 };
    /// The first two.
    pub(in super::super) const INIT_PRODUCER_ID: Versions = Versions { min: 0, max: 1 };
}

/// An API that a client uses, and the versions that it speaks of it.
pub(super) type Speech = (ApiKey, Versions);

/// APIs that one client uses at most.
const SPEECHES_MAX: usize = 3;

/// Where the connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// There is none; the next try is due at `until`.
    Offline { until: Instant },
    /// The caller was asked to connect.
    Connecting,
    /// ApiVersions is under way.
    Greeting,
    /// Metadata is under way, or due at `until`.
    Locating { until: Instant },
    /// Connected to the leader.
    Ready,
}

/// How far a request and its reply are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exchange {
    Idle,
    Sending { head_bytes: usize, sent: usize },
    Receiving { got: usize },
}

/// What the owner is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Have the caller connect to [`Link::address`].
    Connect,
    /// Ask what it likes.
    Ready,
}

/// The connection. Its owner asks [`poll`](Self::poll) first, and uses [`begin`](Self::begin) and
/// [`exchange`](Self::exchange) once that says [`Step::Ready`].
#[derive(Debug)]
pub(super) struct Link<'b> {
    settings: Settings<'b>,
    speech: &'static [Speech],
    /// The version agreed with the broker at hand for each line of `speech`.
    agreed: [Version; SPEECHES_MAX],
    stage: Stage,
    exchange: Exchange,
    correlation_id: i32,
    deadline: Instant,
    backoff: Backoff,
    /// The leader, where it is not at the address in the settings.
    leader: Option<(String<HOST_BYTES_MAX>, u16)>,
    /// The leader was looked for in vain where it was said to be.
    misled: bool,
    frame: &'b mut [u8],
}

impl<'b> Link<'b> {
    pub(super) fn new(settings: Settings<'b>, speech: &'static [Speech], frame: &'b mut [u8]) -> Self {
        Self {
            settings,
            speech,
            agreed: [0; SPEECHES_MAX],
            stage: Stage::Offline {
                until: Instant::default(),
            },
            exchange: Exchange::Idle,
            correlation_id: 0,
            deadline: Instant::NEVER,
            backoff: Backoff::new(settings.backoff_first, settings.backoff_most, settings.seed),
            leader: None,
            misled: false,
            frame,
        }
    }

    pub(super) const fn settings(&self) -> &Settings<'b> {
        &self.settings
    }

    pub(super) const fn frame_bytes(&self) -> usize {
        self.frame.len()
    }

    pub(super) fn address(&self) -> (&str, u16) {
        match &self.leader {
            Some((host, port)) => (host, *port),
            None => (self.settings.host, self.settings.port),
        }
    }

    pub(super) fn version(&self, api: ApiKey) -> Version {
        let lines = self.speech.iter().zip(self.agreed);
        lines
            .filter(|((line, _), _)| *line == api)
            .map(|(_, agreed)| agreed)
            .next()
            .unwrap_or_default()
    }

    /// The caller has connected.
    pub(super) const fn connected(&mut self) {
        self.stage = Stage::Greeting;
        self.exchange = Exchange::Idle;
    }

    /// The connection is of no use any more: try again after a while, at the address in the settings.
    pub(super) fn offline(&mut self, now: Instant) {
        self.leader = None;
        self.misled = false;
        self.exchange = Exchange::Idle;
        self.stage = Stage::Offline {
            until: now + self.backoff.draw(),
        };
    }

    /// Drops the connection with what is under way on it; a new one may be had at once.
    pub(super) fn forget(&mut self) {
        self.exchange = Exchange::Idle;
        self.stage = Stage::Offline {
            until: Instant::default(),
        };
    }

    /// The leader may have moved: ask again after a while, over the same connection.
    pub(super) fn relocate(&mut self, now: Instant) {
        self.stage = Stage::Locating {
            until: now + self.backoff.draw(),
        };
    }

    /// When the next try of a request that was refused is due.
    pub(super) fn retry_at(&mut self, now: Instant) -> Instant {
        now + self.backoff.draw()
    }

    /// A request did what it was to do.
    pub(super) const fn succeeded(&mut self) {
        self.backoff.reset();
        self.misled = false;
    }

    pub(super) fn is_idle(&self) -> bool {
        self.exchange == Exchange::Idle
    }

    /// When [`poll`](Self::poll) or [`exchange`](Self::exchange) has something to do without a byte from the peer.
    pub(super) fn wake_at(&self) -> Instant {
        match (self.stage, self.exchange) {
            (Stage::Offline { until } | Stage::Locating { until }, Exchange::Idle) => until,
            (Stage::Connecting, _) => Instant::NEVER,
            (_, Exchange::Idle) => Instant::default(),
            _ => self.deadline,
        }
    }

    /// Brings the connection to the leader.
    ///
    /// Errors: `WouldBlock` on the way; after any other the link goes on by itself, after its backoff.
    pub(super) fn poll<T: Transport>(&mut self, now: Instant, transport: &mut T) -> nb::Result<Step, Error> {
        loop {
            match self.stage {
                Stage::Offline { until } if now < until => return Err(nb::Error::WouldBlock),
                Stage::Offline { .. } => {
                    self.stage = Stage::Connecting;
                    return Ok(Step::Connect);
                }
                Stage::Connecting => return Err(nb::Error::WouldBlock),
                Stage::Greeting if self.is_idle() => {
                    // Versions before 3 say nothing about the client.
                    let asked = self.begin(now, &ApiVersionsRequest::default(), spoken::API_VERSIONS.max);
                    asked.inspect_err(|_| self.offline(now))?;
                }
                Stage::Greeting => {
                    self.exchange(now, transport, &[])?;
                    if let Err(error) = self.on_versions() {
                        self.offline(now);
                        return Err(error.into());
                    }
                    self.stage = Stage::Locating { until: now };
                }
                Stage::Locating { until } if self.is_idle() => {
                    if now < until {
                        return Err(nb::Error::WouldBlock);
                    }
                    self.ask_metadata(now)?;
                }
                Stage::Locating { .. } => {
                    self.exchange(now, transport, &[])?;
                    match self.on_metadata() {
                        Ok(None) => self.stage = Stage::Ready,
                        Ok(Some(leader)) => {
                            let until = if self.misled { self.retry_at(now) } else { now };
                            self.misled = true;
                            self.leader = Some(leader);
                            self.stage = Stage::Offline { until };
                        }
                        Err(error) => {
                            match error {
                                Error::Refused(_) | Error::Address => self.relocate(now),
                                _ => self.offline(now),
                            }
                            return Err(error.into());
                        }
                    }
                }
                Stage::Ready => return Ok(Step::Ready),
            }
        }
    }

    /// Looks whether the peer has hung up while nothing was under way.
    pub(super) fn watch<T: Transport>(&mut self, now: Instant, transport: &mut T) {
        if self.stage == Stage::Ready && self.is_idle() {
            match transport.receive(&mut [0]) {
                Err(nb::Error::WouldBlock) => {}
                // Nobody asked for bytes, so they are as bad as the end.
                Ok(_) | Err(nb::Error::Other(_)) => self.offline(now),
            }
        }
    }

    /// Puts a request into the frame buffer. A gap at its end, if it has one, is the body that
    /// [`exchange`](Self::exchange) sends behind it.
    ///
    /// Errors: `RequestTooLarge`.
    pub(super) fn begin<'r, C: Call<'r>>(&mut self, now: Instant, call: &C, version: Version) -> Result<(), Error> {
        self.correlation_id = self.correlation_id.wrapping_add(1) & i32::MAX;
        let client_id = Some(self.settings.client_id);
        let header = RequestHeader::new(C::KEY, version, self.correlation_id, client_id);
        let (prefix, rest) = self.frame.split_first_chunk_mut().ok_or(Error::RequestTooLarge)?;
        let mut out = SliceWriter::new(rest);
        let written = header.encode(&mut out).and_then(|()| call.encode(&mut out, version));
        let bytes = written
            .and_then(|()| i32::try_from(out.len().saturating_add(out.gap_bytes())).map_err(|_| Full))
            .map_err(|Full| Error::RequestTooLarge)?;
        *prefix = bytes.to_be_bytes();
        self.deadline = now + self.settings.request_timeout;
        self.exchange = Exchange::Sending {
            head_bytes: PREFIX_BYTES + out.len(),
            sent: 0,
        };
        Ok(())
    }

    /// Sends what is left of the request and of `body` behind it.
    ///
    /// Errors: `WouldBlock` until all is sent; after any other the link is offline.
    fn send<T: Transport>(&mut self, now: Instant, transport: &mut T, body: &[u8]) -> nb::Result<(), Error> {
        while let Exchange::Sending { head_bytes, sent } = self.exchange {
            let rest = if sent < head_bytes {
                self.frame.get(sent..head_bytes)
            } else {
                body.get(sent - head_bytes..)
            };
            match rest {
                Some(rest) if !rest.is_empty() => match transport.send(rest) {
                    Ok(bytes) => {
                        let sent = sent + bytes.min(rest.len());
                        self.exchange = Exchange::Sending { head_bytes, sent };
                    }
                    Err(nb::Error::WouldBlock) => return Err(self.late(now)),
                    Err(nb::Error::Other(lost)) => return Err(self.broken(now, lost.into())),
                },
                _ => self.exchange = Exchange::Receiving { got: 0 },
            }
        }
        Ok(())
    }

    /// Sends what is left of a request that has no reply. Errors: as [`exchange`](Self::exchange).
    pub(super) fn tell<T: Transport>(&mut self, now: Instant, transport: &mut T, body: &[u8]) -> nb::Result<(), Error> {
        self.send(now, transport, body)?;
        self.exchange = Exchange::Idle;
        Ok(())
    }

    /// Sends what is left of the request and of `body` behind it, then receives the reply: [`reply`](Self::reply) has it.
    ///
    /// Errors: `WouldBlock` until it is whole; after any other the link is offline.
    pub(super) fn exchange<T: Transport>(
        &mut self,
        now: Instant,
        transport: &mut T,
        body: &[u8],
    ) -> nb::Result<(), Error> {
        self.send(now, transport, body)?;
        while let Exchange::Receiving { got } = self.exchange {
            let known = self.frame.get(..got).unwrap_or_default();
            let want = match frame::peek_len(known, self.frame.len().saturating_sub(PREFIX_BYTES)) {
                Err(nb::Error::WouldBlock) => PREFIX_BYTES,
                Ok(bytes) => PREFIX_BYTES + bytes,
                Err(nb::Error::Other(FrameError::TooLarge(bytes))) => {
                    return Err(self.broken(now, Error::ReplyTooLarge { bytes }));
                }
                Err(nb::Error::Other(_)) => return Err(self.broken(now, Error::Garbled)),
            };
            if got == want {
                self.exchange = Exchange::Idle;
                return Ok(());
            }
            let room = self.frame.get_mut(got..want).unwrap_or_default();
            match transport.receive(room) {
                Ok(0) => return Err(self.broken(now, Error::Lost)),
                Ok(bytes) => {
                    let got = got + bytes.min(room.len());
                    self.exchange = Exchange::Receiving { got };
                }
                Err(nb::Error::WouldBlock) => return Err(self.late(now)),
                Err(nb::Error::Other(lost)) => return Err(self.broken(now, lost.into())),
            }
        }
        Ok(())
    }

    /// The reply that [`exchange`](Self::exchange) received, to a call of type `C`.
    ///
    /// Errors: `Garbled` when it answers something else or bytes follow it, `Decode`.
    pub(super) fn reply<'s, C: Call<'s>>(&'s self, version: Version) -> Result<C::Response<'s>, Error> {
        let bytes = frame::peek(self.frame, self.frame.len()).map_err(|_| Error::Garbled)?;
        let mut r = Reader::new(bytes);
        let header = ResponseHeader::decode(&mut r, C::KEY, version)?;
        if header.correlation_id != self.correlation_id {
            return Err(Error::Garbled);
        }
        let reply = Message::decode(&mut r, version)?;
        if r.is_empty() { Ok(reply) } else { Err(Error::Garbled) }
    }

    /// The last `bytes` bytes of the reply.
    pub(super) fn reply_tail(&self, bytes: usize) -> &[u8] {
        let reply = frame::peek(self.frame, self.frame.len()).unwrap_or_default();
        let from = reply.len().saturating_sub(bytes);
        reply.get(from..).unwrap_or_default()
    }

    fn late(&mut self, now: Instant) -> nb::Error<Error> {
        if now < self.deadline {
            return nb::Error::WouldBlock;
        }
        self.broken(now, Error::TimedOut)
    }

    fn broken(&mut self, now: Instant, error: Error) -> nb::Error<Error> {
        self.offline(now);
        nb::Error::Other(error)
    }

    fn on_versions(&mut self) -> Result<(), Error> {
        let mut agreed = [0; SPEECHES_MAX];
        let reply = self.reply::<ApiVersionsRequest<'_>>(spoken::API_VERSIONS.max)?;
        reply.error_code.ok()?;
        for ((api, ours), agreed) in self.speech.iter().zip(&mut agreed) {
            let theirs = reply.api_keys.iter().find(|theirs| theirs.api_key == *api as i16);
            *agreed = theirs
                .map(|theirs| Versions {
                    min: theirs.min_version.max(ours.min),
                    max: theirs.max_version.min(ours.max),
                })
                .filter(|both| both.min <= both.max)
                .map(|both| both.max)
                .ok_or(Error::Unsupported(*api))?;
        }
        self.agreed = agreed;
        Ok(())
    }

    fn ask_metadata(&mut self, now: Instant) -> Result<(), Error> {
        let topic = MetadataRequestTopic {
            name: Some(self.settings.topic),
            ..Default::default()
        };
        let call = MetadataRequest {
            topics: Array::one(&topic),
            allow_auto_topic_creation: self.settings.create_topic,
            ..Default::default()
        };
        let asked = self.begin(now, &call, self.version(ApiKey::Metadata));
        asked.inspect_err(|_| self.offline(now))
    }

    /// Where the leader is: `None` is here.
    fn on_metadata(&self) -> Result<Option<(String<HOST_BYTES_MAX>, u16)>, Error> {
        let reply = self.reply::<MetadataRequest<'_>>(self.version(ApiKey::Metadata))?;
        let leader_id = self.leader_in(&reply)?;
        let leader = reply.brokers.iter().find(|broker| broker.node_id == leader_id);
        let leader = leader.ok_or(ErrorCode::LEADER_NOT_AVAILABLE)?;
        let port = u16::try_from(leader.port).map_err(|_| Error::Address)?;
        // A cluster of one is here, by whatever name it calls itself: a tunnel or a serial line has no names.
        if reply.brokers.len() == 1 || self.address() == (leader.host, port) {
            return Ok(None);
        }
        let host = String::try_from(leader.host).map_err(|_| Error::Address)?;
        Ok(Some((host, port)))
    }

    fn leader_in(&self, reply: &MetadataResponse<'_>) -> Result<i32, Error> {
        let topic = reply
            .topics
            .iter()
            .find(|topic| topic.name == Some(self.settings.topic))
            .ok_or(Error::Garbled)?;
        topic.error_code.ok()?;
        let partition = topic
            .partitions
            .iter()
            .find(|partition| partition.partition_index == self.settings.partition)
            .ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
        // REPLICA_NOT_AVAILABLE says that another replica is down: the leader is there.
        if partition.error_code != ErrorCode::REPLICA_NOT_AVAILABLE {
            partition.error_code.ok()?;
        }
        Ok(partition.leader_id)
    }
}
