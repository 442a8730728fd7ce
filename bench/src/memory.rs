//! The whole broker without a kernel below it: one connection and a disk that are memory, so that what is counted is the broker's
//! own work, the same each time. The calls that it would make are counted too.

use std::io::{IoSlice, IoSliceMut};
use std::time::{self, SystemTime, UNIX_EPOCH};

use skerry_broker::broker::Broker;
use skerry_broker::config::Config;
use skerry_broker::state::State;
use skerry_core::meter::Ticks;
use skerry_core::time::{Instant, Timestamp};
use skerry_net::host::{
    Accepted, Clock, Completion, Disk, DiskError, Event, FileId, Host, ListenerId, Net, NetError, OpenMode, Started,
    StreamId, Token,
};

/// A broker with one client.
pub struct InMemory {
    broker: Broker<Memory>,
}

impl InMemory {
    /// With default settings and no topics.
    ///
    /// Panics when that is refused.
    #[must_use]
    pub fn new() -> Self {
        let config = Config::with("/memory".as_ref(), &[]).expect("the defaults are good");
        let mut host = Memory::new();
        let state = State::open(config, &mut host).expect("an empty disk is good");
        Self {
            broker: Broker::new(host, state),
        }
    }

    /// Sends requests, length in front of each; how many bytes answered them, those of files included.
    pub fn ask(&mut self, frame: &[u8]) -> usize {
        let host = &mut self.broker.host;
        host.request.clear();
        host.request.extend_from_slice(frame);
        (host.taken, host.sent, host.has_news) = (0, 0, true);
        host.reply.clear();
        host.calls = Calls::default();
        // A pass in which nothing is sent comes when nothing is left to do.
        let mut sent = usize::MAX;
        while self.broker.host.sent == 0 || self.broker.host.sent != sent {
            sent = self.broker.host.sent;
            let _ = self.broker.pass();
        }
        sent
    }

    /// What the broker asked of its machine since the last request.
    #[must_use]
    pub const fn calls(&self) -> Calls {
        self.broker.host.calls
    }

    /// The bytes that answered the last request, without length and without those of files.
    #[must_use]
    pub fn reply(&self) -> &[u8] {
        self.broker.host.reply.get(4..).unwrap_or_default()
    }
}

impl Default for InMemory {
    fn default() -> Self {
        Self::new()
    }
}

/// Calls that would be system calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Receiving.
    pub read: u32,
    /// Sending.
    pub write: u32,
    /// Sending from a file.
    pub send_file: u32,
    /// Writing to a file.
    pub write_at: u32,
    /// Reading from a file, and looking for what could be read.
    pub read_cached: u32,
    /// Beginning a sync.
    pub sync: u32,
}

/// Bytes that a file keeps. What is written further behind goes to the same place again: long runs fit the memory.
const KEPT: usize = 4 << 20;

struct File {
    path: String,
    directory: bool,
    bytes: u64,
    kept: Vec<u8>,
}

/// The machine below the broker: one connection, and files.
pub struct Memory {
    begun: time::Instant,
    accepted: bool,
    has_news: bool,
    request: Vec<u8>,
    taken: usize,
    reply: Vec<u8>,
    sent: usize,
    files: Vec<File>,
    calls: Calls,
}

impl Memory {
    /// Nothing has come, and there are no files.
    #[must_use]
    pub fn new() -> Self {
        Self {
            begun: time::Instant::now(),
            accepted: false,
            has_news: false,
            request: Vec::new(),
            taken: 0,
            reply: Vec::new(),
            sent: 0,
            files: Vec::new(),
            calls: Calls::default(),
        }
    }

    fn find(&self, path: &str) -> Option<usize> {
        self.files.iter().position(|file| file.path == path)
    }

    fn make(&mut self, path: &str, directory: bool) -> FileId {
        self.files.push(File {
            path: path.into(),
            directory,
            bytes: 0,
            kept: Vec::new(),
        });
        FileId(self.files.len() as u32 - 1)
    }

    fn file(&mut self, file: FileId) -> Result<&mut File, DiskError> {
        self.files.get_mut(file.0 as usize).ok_or(DiskError::NotFound)
    }

    /// Removes a name; its number stays, for handles are never used again.
    fn forget(&mut self, path: &str) -> Result<(), DiskError> {
        let at = self.find(path).ok_or(DiskError::NotFound)?;
        self.files[at].path = String::new();
        Ok(())
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::new()
    }
}

impl Net for Memory {
    fn accept(&mut self, _: ListenerId) -> nb::Result<Accepted, NetError> {
        if std::mem::replace(&mut self.accepted, true) {
            return Err(nb::Error::WouldBlock);
        }
        let address = ([127, 0, 0, 1], 1).into();
        Ok(Accepted {
            stream: StreamId(0),
            peer: address,
            local: address,
        })
    }

    fn read(&mut self, _: StreamId, buf: &mut [u8]) -> nb::Result<usize, NetError> {
        self.calls.read += 1;
        let rest = &self.request[self.taken..];
        let bytes = rest.len().min(buf.len());
        if bytes == 0 {
            return Err(nb::Error::WouldBlock);
        }
        buf[..bytes].copy_from_slice(&rest[..bytes]);
        self.taken += bytes;
        Ok(bytes)
    }

    fn write(&mut self, _: StreamId, bufs: &[IoSlice<'_>], _: bool) -> nb::Result<usize, NetError> {
        self.calls.write += 1;
        let mut bytes = 0;
        for buf in bufs {
            self.reply.extend_from_slice(buf);
            bytes += buf.len();
        }
        self.sent += bytes;
        Ok(bytes)
    }

    fn send_file(&mut self, _: StreamId, _: FileId, _: u64, bytes: usize) -> nb::Result<usize, NetError> {
        self.calls.send_file += 1;
        self.sent += bytes;
        Ok(bytes)
    }

    fn shutdown(&mut self, _: StreamId) {}

    fn close(&mut self, _: StreamId) {}
}

impl Disk for Memory {
    fn open(&mut self, path: &str, mode: OpenMode) -> Result<FileId, DiskError> {
        match (self.find(path), mode) {
            (Some(_), OpenMode::CreateNew) => Err(DiskError::Exists),
            (Some(at), _) => Ok(FileId(at as u32)),
            (None, OpenMode::Create | OpenMode::CreateNew) => Ok(self.make(path, false)),
            (None, OpenMode::Directory) if path.is_empty() => Ok(self.make(path, true)),
            (None, _) => Err(DiskError::NotFound),
        }
    }

    fn close(&mut self, _: FileId) {}

    fn len(&mut self, file: FileId) -> Result<u64, DiskError> {
        Ok(self.file(file)?.bytes)
    }

    fn write_at(&mut self, file: FileId, position: u64, bufs: &[IoSlice<'_>]) -> Result<usize, DiskError> {
        self.calls.write_at += 1;
        let file = self.file(file)?;
        let bytes: usize = bufs.iter().map(|buf| buf.len()).sum();
        file.bytes = file.bytes.max(position + bytes as u64);
        let mut at = position as usize % KEPT;
        if file.kept.len() < at + bytes {
            file.kept.resize(at + bytes, 0);
        }
        for buf in bufs {
            file.kept[at..at + buf.len()].copy_from_slice(buf);
            at += buf.len();
        }
        Ok(bytes)
    }

    fn read_at(&mut self, file: FileId, position: u64, buf: &mut [u8]) -> Result<usize, DiskError> {
        let file = self.file(file)?;
        let at = position as usize % KEPT;
        let left = file.bytes.saturating_sub(position) as usize;
        let rest = file.kept.get(at..).unwrap_or_default();
        let bytes = buf.len().min(left).min(rest.len());
        buf[..bytes].copy_from_slice(&rest[..bytes]);
        Ok(bytes)
    }

    fn read_cached(
        &mut self,
        file: FileId,
        position: u64,
        bufs: &mut [IoSliceMut<'_>],
    ) -> nb::Result<usize, DiskError> {
        self.calls.read_cached += 1;
        let mut bytes = 0;
        for buf in bufs {
            bytes += self
                .read_at(file, position + bytes as u64, buf)
                .map_err(nb::Error::Other)?;
        }
        Ok(bytes)
    }

    fn cached(&mut self, _: FileId, _: u64, bytes: usize) -> usize {
        self.calls.read_cached += 1;
        bytes
    }

    fn start_load(&mut self, _: FileId, _: u64, _: usize, _: Token) -> Result<Started, DiskError> {
        Ok(Started::Done)
    }

    fn start_sync(&mut self, _: FileId, _: Token) -> Result<Started, DiskError> {
        self.calls.sync += 1;
        Ok(Started::Done)
    }

    fn poll_done(&mut self) -> Option<Completion> {
        None
    }

    fn sync(&mut self, _: FileId) -> Result<(), DiskError> {
        Ok(())
    }

    fn truncate(&mut self, file: FileId, bytes: u64) -> Result<(), DiskError> {
        let file = self.file(file)?;
        file.bytes = bytes;
        file.kept.truncate(bytes as usize);
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), DiskError> {
        let _ = self.forget(to);
        let at = self.find(from).ok_or(DiskError::NotFound)?;
        self.files[at].path = to.into();
        Ok(())
    }

    fn remove(&mut self, path: &str) -> Result<(), DiskError> {
        self.forget(path)
    }

    fn create_dir(&mut self, path: &str) -> Result<(), DiskError> {
        if self.find(path).is_some() {
            return Err(DiskError::Exists);
        }
        self.make(path, true);
        Ok(())
    }

    fn remove_dir(&mut self, path: &str) -> Result<(), DiskError> {
        self.forget(path)
    }

    fn list(&mut self, path: &str, each: &mut dyn FnMut(&str)) -> Result<(), DiskError> {
        for file in &self.files {
            let inside = match path {
                "" => Some(file.path.as_str()),
                _ => file.path.strip_prefix(path).and_then(|rest| rest.strip_prefix('/')),
            };
            if let Some(name) = inside.filter(|name| !name.is_empty() && !name.contains('/'))
                && (file.directory || !file.path.is_empty())
            {
                each(name);
            }
        }
        Ok(())
    }
}

impl Clock for Memory {
    fn now(&mut self) -> Instant {
        Instant::from_micros(self.begun.elapsed().as_micros() as u64)
    }

    fn wall(&mut self) -> Timestamp {
        Timestamp(
            SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |t| t.as_millis() as i64),
        )
    }

    fn ticks(&mut self) -> Ticks {
        Ticks(0)
    }

    fn thread_cpu(&mut self) -> u64 {
        0
    }

    fn random(&mut self, out: &mut [u8]) {
        for (byte, n) in out.iter_mut().zip(1u8..) {
            *byte = n.wrapping_mul(41);
        }
    }
}

impl Host for Memory {
    fn wait(&mut self, _: Instant, each: &mut dyn FnMut(Event)) {
        if !self.accepted {
            each(Event::Accept(ListenerId(0)));
        }
        if std::mem::take(&mut self.has_news) {
            each(Event::Stream {
                stream: StreamId(0),
                readable: true,
                writable: true,
                hangup: false,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broker::{Batch, Consumer, Producer, SHAPES, Script};
    use crate::server::topic_request;

    const TOPIC: &str = "t";

    fn broker() -> InMemory {
        let mut broker = InMemory::new();
        broker.ask(&topic_request(TOPIC, 1));
        broker
    }

    /// Five requests in a row, as a producer with Kafka's defaults has them under way.
    fn pipeline(batch: &Batch, acks: i16) -> Vec<u8> {
        let mut producer = Producer::new(TOPIC, 0, acks, batch);
        let mut frames = Vec::new();
        for id in 0..5 {
            producer.begin(id);
            frames.extend_from_slice(producer.frame());
        }
        frames
    }

    #[test]
    fn a_pipeline_is_answered_in_one_call_however_many_it_comes_in() {
        for (shape, acks, reads) in [(3, 1, 1), (3, -1, 1), (0, 1, 6), (0, -1, 6)] {
            let mut broker = broker();
            let frames = pipeline(&SHAPES[shape].batch(), acks);
            // The first batch makes the topic's files; what follows is what is always done.
            broker.ask(&frames);
            let bytes = broker.ask(&frames);
            assert_eq!(broker.reply().len() + 4, bytes);
            let calls = broker.calls();
            let case = format!("{} with acks={acks}: {calls:?}", SHAPES[shape].name);
            assert_eq!((calls.write, calls.write_at, calls.send_file), (1, 5, 0), "{case}");
            assert_eq!(calls.sync, u32::from(acks == -1), "{case}");
            assert!(calls.read <= reads, "{case}");
        }
    }

    #[test]
    fn short_records_are_read_once_and_leave_with_their_reply() {
        let mut broker = broker();
        let batch = SHAPES[3].batch();
        let mut producer = Producer::new(TOPIC, 0, -1, &batch);
        producer.begin(0);
        broker.ask(producer.frame());
        let mut consumer = Consumer::new(TOPIC, 0, 0, &batch);
        consumer.begin(0);
        broker.ask(consumer.frame());
        let work = consumer.answer(broker.reply()).expect("a fetch");
        assert_eq!(work.records, 1);
        let calls = broker.calls();
        // Once to find the batch, once for its bytes.
        assert_eq!(
            (calls.write, calls.send_file, calls.read_cached),
            (1, 0, 2),
            "{calls:?}"
        );
    }
}
