//! One file per request kind: request and state in, reply out. Handlers do no waiting: what cannot be answered now comes back as
//! an [`Outcome`] and is asked again.

use core::fmt::Write as _;
use core::net::SocketAddr;

use skerry_core::header::{RequestHeader, ResponseHeader};
use skerry_core::time::{Instant, Timestamp};
use skerry_core::wire::{Full, Message, Sink};
use skerry_net::host::ListenerId;

use crate::holds::HoldIx;
use crate::ids::ConnId;
use crate::log::{ColdRange, ReadRange};
use crate::outbox::{Finished, RANGES_MAX};
use crate::state::State;

pub mod alter_configs;
pub mod answers;
pub mod api_versions;
pub mod create_partitions;
pub mod create_topics;
pub mod delete_groups;
pub mod delete_records;
pub mod delete_topics;
pub mod describe_cluster;
pub mod describe_configs;
pub mod describe_groups;
pub mod describe_log_dirs;
pub mod describe_topic_partitions;
pub mod fetch;
pub mod find_coordinator;
pub mod heartbeat;
pub mod incremental_alter_configs;
pub mod init_producer_id;
pub mod join_group;
pub mod leave_group;
pub mod list_groups;
pub mod list_offsets;
pub mod list_partition_reassignments;
mod made;
pub mod metadata;
pub mod offset_commit;
pub mod offset_delete;
pub mod offset_fetch;
pub mod offset_for_leader_epoch;
mod operations;
pub mod produce;
mod resources;
pub mod sync_group;

/// Who asks.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The connection.
    pub conn: ConnId,
    /// The peer's address.
    pub addr: SocketAddr,
    /// The address that it connected to.
    pub local: SocketAddr,
    /// The listener that accepted it.
    pub listener: ListenerId,
    /// The name that it asked for by TLS, when the broker's certificate bears it.
    pub name: Option<HostName>,
}

/// The longest host name that a client can be told (RFC 1035 §2.3.4).
pub const HOST_BYTES_MAX: usize = 255;

/// A host name that a client can be told.
pub type HostName = heapless::String<HOST_BYTES_MAX>;

impl Peer {
    /// The host and port that this client should use to reach the broker: the listener's advertised address, else the name that it has
    /// verified, else the local address of the connection. A client that verified a name must not be sent to an address.
    #[must_use]
    pub fn advertised(&self, state: &State) -> (HostName, i32) {
        let mut host = HostName::new();
        let listener = state.config.listeners.get(usize::from(self.listener.0));
        match listener.and_then(|l| l.advertised.as_ref()) {
            Some(told) => {
                let _ = host.push_str(&told.host);
                (host, i32::from(told.port))
            }
            None => {
                if let Some(name) = &self.name {
                    return (name.clone(), i32::from(self.local.port()));
                }
                let _ = write!(host, "{}", self.local.ip().to_canonical());
                (host, i32::from(self.local.port()))
            }
        }
    }
}

/// What a handler works with.
pub struct Context<'a, H> {
    /// Monotonic time of this turn.
    pub now: Instant,
    /// Wall-clock time of this turn.
    pub wall: Timestamp,
    /// The machine.
    pub host: &'a mut H,
    /// Every table of the broker.
    pub state: &'a mut State,
    /// Who asks.
    pub peer: &'a Peer,
    /// Set when this request was parked before. At or after its end it must be answered.
    pub parked: Option<Parking>,
}

/// How a parked request waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parking {
    /// When it is asked again although nothing happened.
    pub until: Instant,
    /// The handler's own note to its next try.
    pub mark: u64,
}

/// What a handler did.
#[derive(Debug)]
#[must_use]
pub enum Outcome {
    /// The reply is in [`Out`].
    Reply,
    /// The reply is in [`Out`] and must not leave before the hold is free.
    Held(HoldIx),
    /// Nothing is to be answered.
    NoReply,
    /// Nothing happened but the handler's own registration for a wake-up: ask again when woken, or at the deadline.
    Park(Parking),
    /// The coordinator has taken the request and wakes the connection when its reply can be made.
    ParkGroup,
    /// Nothing happened: the reply needs so many bytes. Ask again when they are free.
    NoRoom(usize),
    /// Nothing happened: places in a broker-wide table are missing. Ask again after the next flush.
    Busy,
    /// Nothing happened: these bytes of the log must be in memory. Ask again when they are.
    Load(ColdRange),
    /// The request cannot be answered: close, for the reason given.
    Close(&'static str),
}

/// The reply needs more bytes than are free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom(pub usize);

impl From<NoRoom> for Outcome {
    fn from(no: NoRoom) -> Self {
        Self::NoRoom(no.0)
    }
}

/// Where a reply is written.
pub struct Out<'a> {
    buf: &'a mut [u8],
    used: usize,
    gaps: heapless::Vec<u32, RANGES_MAX>,
    ranges: heapless::Vec<ReadRange, RANGES_MAX>,
}

impl<'a> Out<'a> {
    /// Over free space.
    #[must_use]
    pub const fn new(buf: &'a mut [u8]) -> Self {
        Self {
            buf,
            used: 0,
            gaps: heapless::Vec::new(),
            ranges: heapless::Vec::new(),
        }
    }

    /// Makes sure that a reply of `bytes` (all of it: length prefix, header, body without file ranges) fits.
    pub const fn ensure(&self, bytes: usize) -> Result<(), NoRoom> {
        if bytes <= self.buf.len() {
            Ok(())
        } else {
            Err(NoRoom(bytes))
        }
    }

    /// Bytes that `reply` takes here, file ranges not counted.
    #[must_use]
    pub fn measure<'m, M: Message<'m>>(header: &RequestHeader<'_>, reply: &M) -> usize {
        let mut counter = Measure::default();
        // A counter is never full; what else cannot be encoded is found when it is written.
        let _ = put_header(header, &mut counter);
        let _ = reply.encode(&mut counter, header.version);
        4 + counter.here
    }

    /// Adds a file range: the n-th one goes where the n-th gap of the reply is. Hands it back when no more fit.
    pub fn push_range(&mut self, range: ReadRange) -> Result<(), ReadRange> {
        self.ranges.push(range)
    }

    /// The ranges added so far, for a handler that gives up.
    pub fn take_ranges(&mut self) -> heapless::Vec<ReadRange, RANGES_MAX> {
        core::mem::take(&mut self.ranges)
    }

    /// Writes length prefix, response header and body.
    ///
    /// When full: `NoRoom` with the bytes that it needs; nothing is written. Cost: two passes over the reply.
    pub fn reply<'m, M: Message<'m>>(&mut self, header: &RequestHeader<'_>, reply: &M) -> Outcome {
        let mut measure = Measure::default();
        if put_header(header, &mut measure).is_err() || reply.encode(&mut measure, header.version).is_err() {
            return Outcome::Close("its reply cannot be encoded");
        }
        if let Err(no) = self.ensure(4 + measure.here) {
            return no.into();
        }
        let Ok(frame_bytes) = i32::try_from(measure.here + measure.elsewhere) else {
            return Outcome::Close("its reply is longer than 2 GiB");
        };
        let mut sink = OutSink { out: self };
        let done = sink
            .put(&frame_bytes.to_be_bytes())
            .and_then(|()| put_header(header, &mut sink))
            .and_then(|()| reply.encode(&mut sink, header.version));
        match done {
            Ok(()) => Outcome::Reply,
            Err(Full) => Outcome::Close("its reply did not have its measured length"),
        }
    }

    /// What was written.
    #[must_use]
    pub fn finished(&self) -> Finished<'_> {
        Finished {
            bytes: self.used,
            gaps: &self.gaps,
            ranges: &self.ranges,
        }
    }
}

fn put_header<S: Sink>(header: &RequestHeader<'_>, sink: &mut S) -> Result<(), Full> {
    let api = header.api().ok_or(Full)?;
    ResponseHeader {
        correlation_id: header.correlation_id,
    }
    .encode(sink, api, header.version)
}

/// Counts what a reply takes in the buffer and elsewhere.
#[derive(Default)]
struct Measure {
    here: usize,
    elsewhere: usize,
}

impl Sink for Measure {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        self.here += bytes.len();
        Ok(())
    }

    fn gap(&mut self, bytes: u32) -> Result<(), Full> {
        self.elsewhere += bytes as usize;
        Ok(())
    }
}

struct OutSink<'o, 'a> {
    out: &'o mut Out<'a>,
}

impl Sink for OutSink<'_, '_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        let end = self.out.used + bytes.len();
        self.out
            .buf
            .get_mut(self.out.used..end)
            .ok_or(Full)?
            .copy_from_slice(bytes);
        self.out.used = end;
        Ok(())
    }

    fn gap(&mut self, _bytes: u32) -> Result<(), Full> {
        let at = u32::try_from(self.out.used).map_err(|_| Full)?;
        self.out.gaps.push(at).map_err(|_| Full)
    }
}
