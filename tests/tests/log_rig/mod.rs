//! A log store, its flusher and a disk that can fail, driven by hand.
#![allow(dead_code)] // Each test crate uses its own part.

use skerry_broker::config::{CleanupPolicy, Flush, Read, TimestampType};
use skerry_broker::crc::CRC32C;
use skerry_broker::ids::PartitionIx;
use skerry_broker::log::{
    AppendError, AppendParams, Appended, Flushed, Flusher, LogLimits, LogPolicy, LogSettings, Logs, OffsetSpec,
    ReadError, ReadRange, SyncFile,
};
use skerry_core::record::{Batch, BatchBuilder, Batches};
use skerry_core::time::{Instant, Millis, Timestamp};
use skerry_net::host::{Disk, Started, Token};
use skerry_tests::fault_disk::{Behaviour, FaultDisk};
use skerry_tests::rng::Rng;

/// Small segments and a dense index, so that a short run meets every seam.
pub fn settings() -> LogSettings {
    LogSettings {
        segment_bytes: 4000,
        segment_ms: i64::MAX,
        index_interval_bytes: 300,
        retention_ms: -1,
        retention_bytes: -1,
        timestamp_type: TimestampType::CreateTime,
        cleanup_policy: CleanupPolicy::Delete,
    }
}

pub struct Rig {
    pub disk: FaultDisk,
    pub logs: Logs,
    pub flusher: Flusher,
    pub limits: LogLimits,
    pub policy: LogPolicy,
    pub settings: LogSettings,
    pub now: Instant,
    pub wall: Timestamp,
    pub epoch: i32,
    pub advanced: Vec<(PartitionIx, i64)>,
    pub failed: Vec<PartitionIx>,
    pub marks: Vec<(SyncFile, Option<u64>)>,
    /// Reads that waited for the device during start, which may.
    pub waited_at_start: u64,
}

impl Rig {
    pub fn new(seed: u64) -> Self {
        Self::with(seed, Behaviour::default(), settings())
    }

    pub fn with(seed: u64, behaviour: Behaviour, settings: LogSettings) -> Self {
        let limits = LogLimits {
            partitions: 64,
            segments: 400,
            open_files: 64,
            producers: 64,
        };
        let policy = LogPolicy {
            flush: Flush::AcksAll,
            read: Read::Durable,
            flush_interval: Millis(1000),
            checkpoint_bytes: 3000,
            clock_floor: Timestamp(1_700_000_000_000),
            crc: CRC32C,
        };
        Self {
            disk: FaultDisk::new(behaviour, Rng::new(seed)),
            logs: Logs::new(limits, policy),
            flusher: Flusher::new(limits.partitions, Some(policy.flush_interval)),
            limits,
            policy,
            settings,
            now: Instant::from_micros(1_000_000),
            wall: Timestamp(1_800_000_000_000),
            epoch: 1,
            advanced: Vec::new(),
            failed: Vec::new(),
            marks: Vec::new(),
            waited_at_start: 0,
        }
    }

    /// Fresh memory over the same disk.
    pub fn start(&mut self) {
        self.logs = Logs::new(self.limits, self.policy);
        let interval = (self.policy.flush != Flush::Never).then_some(self.policy.flush_interval);
        self.flusher = Flusher::new(self.limits.partitions, interval);
        self.advanced.clear();
        self.failed.clear();
        self.marks.clear();
    }

    /// The process dies; the machine does not.
    pub fn restart(&mut self) {
        self.disk.kill();
        self.start();
    }

    pub fn limit_files(&mut self, open_files: u32) {
        self.limits.open_files = open_files;
        self.start();
    }

    pub fn limit_segments(&mut self, segments: u32) {
        self.limits.segments = segments;
        self.start();
    }

    pub fn stop(&mut self) {
        self.logs.stop(&mut self.disk);
    }

    pub fn create(&mut self, topic: &str, partition: i32) -> PartitionIx {
        self.logs
            .create(&mut self.disk, topic, partition, &self.settings)
            .unwrap()
    }

    pub fn open(&mut self, topic: &str, partition: i32) -> PartitionIx {
        let ix = self
            .logs
            .open(&mut self.disk, topic, partition, &self.settings, self.now, self.wall)
            .unwrap();
        self.waited_at_start = self.disk.waited_reads();
        ix
    }

    fn append_batch(&mut self, ix: PartitionIx, bytes: &[u8]) -> Result<Appended, AppendError> {
        let batch = Batch::only(bytes).unwrap();
        let params = AppendParams {
            now: self.now,
            wall: self.wall,
            leader_epoch: self.epoch,
        };
        self.logs.append(&mut self.disk, ix, &batch, &params)
    }

    /// Appends `records` records whose times go up from `time`.
    pub fn append(&mut self, ix: PartitionIx, records: i32, time: i64) -> Result<Appended, AppendError> {
        let bytes = batch(None, records, time);
        self.append_batch(ix, &bytes)
    }

    /// Appends as an idempotent producer.
    pub fn append_from(
        &mut self,
        ix: PartitionIx,
        producer: i64,
        epoch: i16,
        sequence: i32,
        records: i32,
    ) -> Result<Appended, AppendError> {
        let bytes = batch(Some((producer, epoch, sequence)), records, 1);
        self.append_batch(ix, &bytes)
    }

    /// Appends a batch as [`batch`] makes it.
    pub fn append_at(
        &mut self,
        ix: PartitionIx,
        producer: Option<(i64, i16, i32)>,
        records: i32,
        time: i64,
    ) -> Result<Appended, AppendError> {
        let bytes = batch(producer, records, time);
        self.append_batch(ix, &bytes)
    }

    /// One turn of the loop: what has ended, then the flusher.
    pub fn turn(&mut self) {
        self.disk.set_now(self.now);
        let Self {
            disk,
            logs,
            flusher,
            now,
            advanced,
            failed,
            marks,
            ..
        } = self;
        let mut each = |flushed| match flushed {
            Flushed::Advanced { ix, durable } => advanced.push((ix, durable)),
            Flushed::Failed { ix } => failed.push(ix),
            Flushed::FileAdvanced { file, mark } => marks.push((file, Some(mark))),
            Flushed::FileFailed { file } => marks.push((file, None)),
        };
        while let Some(done) = disk.poll_done() {
            assert!(flusher.on_done(disk, logs, done, *now, &mut each));
        }
        flusher.turn(disk, logs, *now, &mut each);
    }

    /// Goes on to when the next piece of work ends.
    pub fn later(&mut self) {
        let next = self.disk.next_done_at();
        if next != Instant::NEVER {
            self.now = self.now.max(next);
        }
        self.turn();
    }

    /// Turns until no flush is under way or due.
    pub fn settle(&mut self) {
        self.turn();
        for _ in 0..10_000 {
            if !self.flusher.is_busy() && self.flusher.deadline(&self.logs) > self.now {
                return;
            }
            self.later();
        }
        panic!("the flusher does not come to rest");
    }

    /// Makes what is written durable, if the disk lets it.
    pub fn flush(&mut self, ix: PartitionIx) {
        self.flusher.want(ix);
        self.settle();
    }

    pub fn retain(&mut self, ix: PartitionIx) -> u64 {
        self.logs.retain(&mut self.disk, ix, self.now, self.wall)
    }

    fn load(&mut self, cold: skerry_broker::log::ColdRange) {
        let token = Token(1);
        match self
            .disk
            .start_load(cold.file, cold.position, cold.bytes as usize, token)
            .unwrap()
        {
            Started::Done => {}
            Started::Pending => loop {
                self.now = self.now.max(self.disk.next_done_at());
                self.disk.set_now(self.now);
                if self.disk.poll_done().expect("the load to end").token == token {
                    break;
                }
            },
        }
    }

    /// Asks again until everything needed has been loaded.
    fn patiently<T>(&mut self, mut ask: impl FnMut(&mut Self) -> Result<T, ReadError>) -> Result<T, ReadError> {
        for _ in 0..1000 {
            match ask(self) {
                Err(ReadError::Cold(cold)) => self.load(cold),
                other => return other,
            }
        }
        panic!("loading does not help");
    }

    pub fn range(&mut self, ix: PartitionIx, offset: i64, max: u32) -> Result<Option<ReadRange>, ReadError> {
        self.patiently(|rig| rig.logs.read(&mut rig.disk, ix, offset, max, true))
    }

    /// The bytes of a range.
    pub fn bytes(&mut self, range: ReadRange) -> Vec<u8> {
        let mut bytes = vec![0; range.bytes as usize];
        let n = self.disk.read_at(range.file, range.position, &mut bytes).unwrap();
        assert_eq!(n, bytes.len(), "a range that was promised is there");
        bytes
    }

    /// Base offsets of the whole batches of one read, each with a checksum that holds.
    pub fn read(&mut self, ix: PartitionIx, offset: i64) -> Result<Vec<i64>, ReadError> {
        let Some(range) = self.range(ix, offset, 1500)? else {
            return Ok(vec![]);
        };
        let bytes = self.bytes(range);
        self.logs.release(&mut self.disk, range);
        let batches: Vec<_> = Batches::new(&bytes).map_while(Result::ok).collect();
        assert!(!batches.is_empty(), "the first batch is whole");
        for batch in &batches {
            assert!(batch.crc_holds(CRC32C), "batch at {}", batch.header().base_offset);
        }
        Ok(batches.iter().map(|batch| batch.header().base_offset).collect())
    }

    /// Base offset and value of the first record's key of everything visible, read as a consumer does.
    pub fn read_batches(&mut self, ix: PartitionIx) -> Result<Vec<(i64, Vec<u8>)>, ReadError> {
        let ends = self.logs.ends(ix);
        let (mut offset, mut all) = (ends.log_start, Vec::new());
        while let Some(range) = self.range(ix, offset, 1500)? {
            let bytes = self.bytes(range);
            self.logs.release(&mut self.disk, range);
            for batch in Batches::new(&bytes).map_while(Result::ok) {
                assert!(batch.crc_holds(CRC32C));
                assert!(batch.header().next_offset() > offset, "a reader goes on");
                offset = batch.header().next_offset();
                assert!(offset <= ends.high_watermark, "nothing past the high watermark");
                let mut copy = batch.bytes().to_vec();
                copy.drain(..12);
                all.push((batch.header().base_offset, copy));
            }
        }
        assert!(
            offset >= ends.high_watermark,
            "everything up to the high watermark is there"
        );
        Ok(all)
    }

    pub fn read_all(&mut self, ix: PartitionIx) -> Vec<i64> {
        self.read_batches(ix)
            .unwrap()
            .into_iter()
            .map(|(base, _)| base)
            .collect()
    }

    /// Offset and timestamp of ListOffsets' answer.
    pub fn list(&mut self, ix: PartitionIx, spec: OffsetSpec) -> (i64, i64) {
        let found = self
            .patiently(|rig| rig.logs.list_offset(&mut rig.disk, ix, spec))
            .unwrap();
        (found.offset, found.timestamp.0)
    }
}

/// A batch of `records` records, times going up from `time`.
pub fn batch(producer: Option<(i64, i16, i32)>, records: i32, time: i64) -> Vec<u8> {
    let mut buffer = vec![0; 100 + 100 * records as usize];
    let mut builder = BatchBuilder::new(&mut buffer).unwrap();
    if let Some((id, epoch, sequence)) = producer {
        builder = builder.producer(id, epoch, sequence);
    }
    for n in 0..records {
        let time = if time < 0 { time } else { time + i64::from(n) };
        builder
            .push(Timestamp(time), Some(b"key"), Some(b"a value of some bytes"), &[])
            .unwrap();
    }
    builder.finish(CRC32C).to_vec()
}
