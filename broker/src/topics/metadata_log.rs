//! The broker's memory of everything that is not a record: `metadata.log`, appended to, never changed in place.
//!
//! A change of a topic is answered once it is synced ([`MetadataLog::sync`]); a committed offset once it is written, and becomes durable with
//! the next flush of data: the flusher syncs [`MetadataLog::file`] and names the mark that [`MetadataLog::write`] gave.
//!
//! The file keeps 64 KiB or more of written zeros after its end, so that deletions and commits go on when the disk is full, and a sync
//! of a small append need not change the file's size.
//!
//! When most of the file says what no longer holds, the state is written to `metadata.log.new`, synced, renamed over it, and the
//! directory synced ([`MetadataLog::tidy`]). After a failed sync nothing is known of the file any more: it takes no writes until
//! that has been done.

use std::io::IoSlice;

use log::{info, warn};
use skerry_core::record::Crc32c;
use skerry_net::host::{Disk, DiskError, FileId, OpenMode};

use super::frames::{FRAME_HEAD_BYTES, scan, seal};
use super::record::{MetadataRecord, RECORD_BYTES_MAX, TooLong};

/// The file.
pub const METADATA_LOG: &str = "metadata.log";
/// Its successor while it is written.
const NEW: &str = "metadata.log.new";
/// A copy of the last one that was found damaged.
const DAMAGED: &str = "metadata.log.damaged";

/// Zeros that are kept after the end, at least.
const RESERVE_BYTES: u64 = 64 * 1024;
/// Zeros that are added at once.
const ZEROS: [u8; 16 * 1024] = [0; 16 * 1024];
/// A file smaller than this is not worth rewriting.
const TIDY_BYTES_MIN: u64 = 512 * 1024;
/// Rewriting is due when the file is so many times what holds. Each byte is then rewritten half a time on average.
const TIDY_RATIO: u64 = 3;

/// Why nothing was written. Nothing has changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetadataError {
    /// The disk is full, the reserve too. It may pass.
    Full,
    /// The disk failed; it takes no writes until [`MetadataLog::tidy`] has rewritten it.
    Failed,
}

impl core::fmt::Display for MetadataError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Full => "no space left",
            Self::Failed => "the disk failed",
        })
    }
}

/// A list of records that can be gone through more than once.
pub type Records<'r> = &'r dyn Fn(&mut dyn FnMut(&MetadataRecord<'_>));

/// What [`MetadataLog::open`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Records replayed.
    pub records: u64,
    /// Some were lost to damage, which is kept in `metadata.log.damaged`.
    pub damaged: bool,
}

/// The log.
///
/// When full: see [`MetadataError::Full`]. Memory: room for one longest record, touched as far as records are long.
pub struct MetadataLog {
    file: FileId,
    crc: Crc32c,
    /// Where the next frame goes.
    end: u64,
    /// Bytes of the file.
    size: u64,
    /// Frames that the next write writes.
    staged: Box<[u8]>,
    staged_bytes: usize,
    /// Bytes ever written by this process, compaction not counted.
    mark: u64,
    tidy_at: u64,
    failed: bool,
}

impl MetadataLog {
    /// Bytes that it takes. The window through which it is read at start is given back.
    pub const MEMORY_BYTES: usize = FRAME_HEAD_BYTES + RECORD_BYTES_MAX;

    /// Opens or makes the file and replays it into `each`: a torn tail is cut, what is damaged is passed over with one line. All that was
    /// replayed is durable then.
    ///
    /// Errors: only where the disk itself cannot be worked with.
    pub fn open<D: Disk>(
        disk: &mut D,
        crc: Crc32c,
        each: &mut dyn FnMut(MetadataRecord<'_>),
    ) -> Result<(Self, Opened), DiskError> {
        match disk.remove(NEW) {
            Ok(()) | Err(DiskError::NotFound) => {}
            Err(error) => return Err(error),
        }
        let file = disk.open(METADATA_LOG, OpenMode::Create)?;
        let mut unknown = 0u64;
        let scanned = scan(
            disk,
            file,
            RECORD_BYTES_MAX,
            crc,
            &mut |body| match MetadataRecord::decode(body) {
                Some(record) => each(record),
                None => unknown += 1,
            },
        )?;
        let damaged = scanned.damaged_bytes > 0 || unknown > 0;
        if damaged {
            warn!(
                "{METADATA_LOG} is damaged: {} bytes passed over from byte {}, {unknown} records not understood, {} replayed; \
                 a copy is kept as {DAMAGED}",
                scanned.damaged_bytes,
                scanned.damaged_at.unwrap_or(0),
                scanned.frames - unknown,
            );
            if let Err(error) = copy_aside(disk, file) {
                warn!("{DAMAGED} could not be written: {error}");
            }
        }
        if scanned.torn {
            info!("{METADATA_LOG} had a torn end, which was cut at byte {}", scanned.end);
            disk.truncate(file, scanned.end)?;
        }
        disk.sync(file)?;
        sync_directory(disk)?;
        let log = Self {
            file,
            crc,
            end: scanned.end,
            size: disk.len(file)?,
            staged: vec![0; Self::MEMORY_BYTES].into_boxed_slice(),
            staged_bytes: 0,
            mark: 0,
            // Damage is dropped by the first look; else a look at the size is worth it now and then.
            tidy_at: if damaged { 0 } else { TIDY_BYTES_MIN },
            failed: false,
        };
        let opened = Opened {
            records: scanned.frames - unknown,
            damaged,
        };
        Ok((log, opened))
    }

    /// The file that the flusher syncs; another one after [`MetadataLog::tidy`] said so.
    #[must_use]
    pub const fn file(&self) -> FileId {
        self.file
    }

    /// Rises with every write: what was written before a mark is durable when the flusher names that mark.
    #[must_use]
    pub const fn mark(&self) -> u64 {
        self.mark
    }

    /// Bytes of all records in the file.
    #[must_use]
    pub const fn len_bytes(&self) -> u64 {
        self.end
    }

    /// Adds a record to what the next [`MetadataLog::write`] writes in one call.
    ///
    /// When full: `TooLong`; write what is staged first. A record alone always fits.
    pub fn stage(&mut self, record: &MetadataRecord<'_>) -> Result<(), TooLong> {
        let free = self.staged.get_mut(self.staged_bytes..).ok_or(TooLong)?;
        let body = free.get_mut(FRAME_HEAD_BYTES..).ok_or(TooLong)?;
        let body_bytes = record.encode(body)?;
        self.staged_bytes += seal(free, body_bytes, self.crc).ok_or(TooLong)?;
        Ok(())
    }

    /// Writes what is staged: all of it or nothing, and nothing stays staged. The mark to give the flusher.
    ///
    /// Cost: one gathered write, a second one in every 64 KiB or so.
    pub fn write<D: Disk>(&mut self, disk: &mut D) -> Result<u64, MetadataError> {
        let bytes = core::mem::take(&mut self.staged_bytes);
        if self.failed {
            return Err(MetadataError::Failed);
        }
        self.keep_reserve(disk, bytes as u64);
        let staged = self.staged.get(..bytes).unwrap_or_default();
        if let Err(error) = write_all(disk, self.file, self.end, staged) {
            // What was written of it must not be found behind a shorter record later.
            self.size = self.end;
            if disk.truncate(self.file, self.end).is_err() || error != DiskError::Full {
                return Err(self.fail());
            }
            return Err(MetadataError::Full);
        }
        self.end += bytes as u64;
        self.size = self.size.max(self.end);
        self.mark += bytes as u64;
        Ok(self.mark)
    }

    /// Writes one record.
    pub fn append<D: Disk>(&mut self, disk: &mut D, record: &MetadataRecord<'_>) -> Result<u64, MetadataError> {
        self.staged_bytes = 0;
        // One record fits when nothing else is staged: the room is that of the longest.
        self.stage(record).map_err(|TooLong| MetadataError::Full)?;
        self.write(disk)
    }

    /// Makes durable what is written, in a blocking call.
    pub fn sync<D: Disk>(&mut self, disk: &mut D) -> Result<(), MetadataError> {
        if self.failed {
            return Err(MetadataError::Failed);
        }
        disk.sync(self.file).map_err(|_| self.fail())
    }

    /// The flusher could not sync the file: it takes no writes until it has been rewritten.
    pub fn fail(&mut self) -> MetadataError {
        if !self.failed {
            warn!("{METADATA_LOG} could not be made durable; it takes no changes until it is rewritten");
        }
        self.failed = true;
        MetadataError::Failed
    }

    /// Whether it takes no changes until it has been rewritten.
    #[must_use]
    pub const fn has_failed(&self) -> bool {
        self.failed
    }

    /// Whether [`MetadataLog::tidy`] has something to look at.
    #[must_use]
    pub const fn is_tidy_due(&self) -> bool {
        self.failed || self.end >= self.tidy_at
    }

    /// Rewrites the file when most of it no longer holds, or when it failed. `records` is everything that holds. True: it was
    /// rewritten, is durable up to [`MetadataLog::mark`], and [`MetadataLog::file`] is another one.
    ///
    /// Errors: the old file goes on as it was, except that a failed directory sync leaves [`MetadataError::Failed`]; it is tried again
    /// when the file has grown.
    /// Cost: blocking; one write of all that holds (with default limits at most 8 MiB, and some 80 bytes for each topic and
    /// committed offset in practice), a sync of it and of the directory.
    pub fn tidy<D: Disk>(&mut self, disk: &mut D, records: Records<'_>) -> Result<bool, DiskError> {
        if !self.is_tidy_due() {
            return Ok(false);
        }
        let mut live_bytes = 0;
        records(&mut |record| {
            self.staged_bytes = 0;
            let _ = self.stage(record);
            live_bytes += self.staged_bytes as u64;
        });
        self.staged_bytes = 0;
        let due = TIDY_BYTES_MIN.max(TIDY_RATIO * live_bytes);
        let first_look_after_damage = self.tidy_at == 0;
        self.tidy_at = due.max(self.end + TIDY_BYTES_MIN);
        if !self.failed && !first_look_after_damage && self.end < due {
            self.tidy_at = due;
            return Ok(false);
        }
        let new = disk.open(NEW, OpenMode::Create)?;
        let written = self.rewrite(disk, new, records);
        self.staged_bytes = 0;
        let end = match written {
            Ok(end) => end,
            Err(error) => {
                disk.close(new);
                let _ = disk.remove(NEW);
                return Err(error);
            }
        };
        info!("{METADATA_LOG} rewritten: {} bytes are now {end}", self.end);
        disk.close(self.file);
        self.file = new;
        self.end = end;
        self.size = end;
        self.tidy_at = due;
        self.failed = false;
        // Until the name is durable the old file may come back, and with it a state without what is written from now on.
        sync_directory(disk).inspect_err(|_| {
            self.fail();
        })?;
        Ok(true)
    }

    /// Fills `new` with `records`, makes it durable and gives it the name.
    fn rewrite<D: Disk>(&mut self, disk: &mut D, new: FileId, records: Records<'_>) -> Result<u64, DiskError> {
        disk.truncate(new, 0)?;
        let mut end = 0;
        let mut result = Ok(());
        let mut flush = |log: &mut Self, disk: &mut D| {
            let bytes = core::mem::take(&mut log.staged_bytes);
            write_all(disk, new, end, log.staged.get(..bytes).unwrap_or_default())?;
            end += bytes as u64;
            Ok(())
        };
        records(&mut |record| {
            if result.is_ok() && self.stage(record).is_err() {
                result = flush(self, disk);
                // It fits now: the room is that of the longest.
                let _ = self.stage(record);
            }
        });
        result?;
        flush(self, disk)?;
        disk.sync(new)?;
        disk.rename(NEW, METADATA_LOG)?;
        Ok(end)
    }

    /// Keeps zeros after the end as long as the disk gives room. Where it gives none, the reserve is used.
    fn keep_reserve<D: Disk>(&mut self, disk: &mut D, bytes: u64) {
        let wanted = self.end + bytes + RESERVE_BYTES;
        if self.size >= wanted {
            return;
        }
        let zeros = [IoSlice::new(&ZEROS); 4];
        while self.size < wanted {
            match disk.write_at(self.file, self.size, &zeros) {
                Ok(written) if written > 0 => self.size += written as u64,
                _ => return,
            }
        }
    }
}

/// Writes all of `bytes`, in as many calls as it takes.
fn write_all<D: Disk>(disk: &mut D, file: FileId, mut at: u64, mut bytes: &[u8]) -> Result<(), DiskError> {
    while !bytes.is_empty() {
        let written = disk.write_at(file, at, &[IoSlice::new(bytes)])?;
        // A write of nothing without an error is what a full disk does too.
        if written == 0 {
            return Err(DiskError::Full);
        }
        at += written as u64;
        bytes = bytes.get(written..).unwrap_or_default();
    }
    Ok(())
}

/// Makes the names in the data directory durable.
pub(super) fn sync_directory<D: Disk>(disk: &mut D) -> Result<(), DiskError> {
    let directory = disk.open("", OpenMode::Directory)?;
    let synced = disk.sync(directory);
    disk.close(directory);
    synced
}

/// Copies a damaged file, for a person to look at. Blocks that cannot be read are zeros in the copy.
fn copy_aside<D: Disk>(disk: &mut D, from: FileId) -> Result<(), DiskError> {
    let to = disk.open(DAMAGED, OpenMode::Create)?;
    let copied = copy(disk, from, to);
    disk.close(to);
    copied
}

fn copy<D: Disk>(disk: &mut D, from: FileId, to: FileId) -> Result<(), DiskError> {
    disk.truncate(to, 0)?;
    let size = disk.len(from)?;
    let mut block = [0; 4096];
    let mut at = 0;
    while at < size {
        let bytes = match disk.read_at(from, at, &mut block) {
            Ok(0) => break,
            Ok(bytes) => bytes,
            Err(_) => {
                block.fill(0);
                block.len()
            }
        };
        write_all(disk, to, at, block.get(..bytes).unwrap_or_default())?;
        at += bytes as u64;
    }
    disk.sync(to)
}

#[cfg(test)]
mod tests {
    use skerry_core::record::crc32c;
    use skerry_core::wire::Uuid;

    use super::super::mem_disk::MemDisk;
    use super::super::record::OffsetCommitted;
    use super::super::record::tests::samples;
    use super::*;

    /// Replays the file into text, one line a record.
    fn open(disk: &mut MemDisk) -> (MetadataLog, Opened, Vec<String>) {
        let mut lines = Vec::new();
        let (log, opened) = MetadataLog::open(disk, crc32c, &mut |record| lines.push(format!("{record:?}"))).unwrap();
        (log, opened, lines)
    }

    fn lines(records: &[MetadataRecord<'_>]) -> Vec<String> {
        records.iter().map(|record| format!("{record:?}")).collect()
    }

    fn commit(offset: i64) -> MetadataRecord<'static> {
        MetadataRecord::OffsetCommitted(OffsetCommitted {
            group: "g",
            topic: Uuid([1; 16]),
            partition: 0,
            offset,
            leader_epoch: 0,
            metadata: "",
            committed_at: offset,
        })
    }

    /// A log of every sample; where each frame begins, and the end.
    fn written() -> (MemDisk, Vec<usize>) {
        let mut disk = MemDisk::default();
        let (mut log, ..) = open(&mut disk);
        let mut at = vec![0];
        for record in samples() {
            log.append(&mut disk, &record).unwrap();
            at.push(log.len_bytes() as usize);
        }
        (disk, at)
    }

    #[test]
    fn what_is_written_is_replayed() {
        let (mut disk, at) = written();
        let (log, opened, replayed) = open(&mut disk);
        assert_eq!(replayed, lines(&samples()));
        assert_eq!(
            opened,
            Opened {
                records: 9,
                damaged: false
            }
        );
        assert_eq!(log.len_bytes() as usize, *at.last().unwrap());
        assert!(!disk.has(DAMAGED));
    }

    #[test]
    fn staged_records_go_in_one_write_and_marks_rise() {
        let mut disk = MemDisk::default();
        let (mut log, ..) = open(&mut disk);
        for offset in 0..3 {
            log.stage(&commit(offset)).unwrap();
        }
        assert_eq!(log.len_bytes(), 0);
        let mark = log.write(&mut disk).unwrap();
        assert_eq!((log.mark(), log.len_bytes()), (mark, mark));
        assert!(log.append(&mut disk, &commit(3)).unwrap() > mark);
        assert_eq!(open(&mut disk).2, lines(&[0, 1, 2, 3].map(commit)));
        // Until the room for staging is full; what was staged is then still there.
        let mut count = 0;
        while log.stage(&commit(count)).is_ok() {
            count += 1;
        }
        log.write(&mut disk).unwrap();
        assert_eq!(open(&mut disk).2.len() as i64, 4 + count);
    }

    /// Goal: a write that was cut leaves every earlier record and is written over. Method: cut the file at every byte.
    #[test]
    fn a_torn_tail_is_cut() {
        let (disk, at) = written();
        let whole = disk.first_file();
        for cut in 0..=*at.last().unwrap() {
            let mut disk = MemDisk::default();
            disk.put(METADATA_LOG, &whole[..cut]);
            let kept = at.iter().filter(|end| **end <= cut).count() - 1;
            let (mut log, opened, replayed) = open(&mut disk);
            assert_eq!(replayed, lines(&samples()[..kept]), "cut at {cut}");
            assert!(!opened.damaged);
            log.append(&mut disk, &commit(5)).unwrap();
            let mut want = lines(&samples()[..kept]);
            want.push(format!("{:?}", commit(5)));
            assert_eq!(open(&mut disk).2, want);
        }
    }

    /// Goal: damage to one record costs that record only, and a copy is kept. Method: change every byte in turn.
    #[test]
    fn a_changed_byte_costs_its_record() {
        let (disk, at) = written();
        let end = *at.last().unwrap();
        let whole = disk.first_file()[..end].to_vec();
        for byte in 0..end {
            let mut disk = MemDisk::default();
            let mut changed = whole.clone();
            changed[byte] ^= 0x55;
            disk.put(METADATA_LOG, &changed);
            let lost = at.iter().filter(|end| **end <= byte).count() - 1;
            let mut want = samples();
            want.remove(lost);
            let (mut log, opened, replayed) = open(&mut disk);
            assert_eq!(replayed, lines(&want), "byte {byte}");
            // Damage to the last record cannot be told from a torn tail.
            assert_eq!(opened.damaged, lost < 8);
            assert_eq!(disk.has(DAMAGED), lost < 8);
            if lost < 8 {
                assert_eq!(*disk.bytes(DAMAGED), changed);
                let rewritten = log.tidy(&mut disk, &|emit| want.iter().for_each(&mut *emit));
                assert_eq!(rewritten, Ok(true));
                let (_, opened, replayed) = open(&mut disk);
                assert_eq!((opened.damaged, replayed), (false, lines(&want)));
            }
        }
    }

    /// Goal: the zeros of a lost write hide no record after them. Method: after the zeros a record whose checksum, read with the zeros before
    /// it, looks like the length of a frame that leads past it.
    #[test]
    fn a_hole_costs_what_was_in_it() {
        let mut disk = MemDisk::default();
        let (mut log, ..) = open(&mut disk);
        log.append(&mut disk, &commit(0)).unwrap();
        let frame = log.len_bytes() as usize;
        let leads_past_itself = |offset: &i64| {
            let mut bytes = [0; 100];
            let body = commit(*offset).encode(&mut bytes[FRAME_HEAD_BYTES..]).unwrap();
            seal(&mut bytes, body, crc32c).unwrap();
            usize::from(bytes[0]) == frame - 1
        };
        let offset = (1..100_000).find(leads_past_itself).unwrap();
        for offset in [1, offset, 2] {
            log.append(&mut disk, &commit(offset)).unwrap();
        }
        disk.bytes(METADATA_LOG)[frame..2 * frame].fill(0);
        let (_, opened, replayed) = open(&mut disk);
        assert_eq!(replayed, lines(&[commit(0), commit(offset), commit(2)]));
        assert!(opened.damaged);
    }

    /// Goal: a client's text that looks like a record is not taken for one where its own record is damaged.
    /// Method: a commit whose metadata is a whole frame of the deletion of a group.
    #[test]
    fn a_record_inside_a_damaged_one_is_not_found() {
        let mut disk = MemDisk::default();
        let (mut log, ..) = open(&mut disk);
        let mut inner = [0; 64];
        let body = MetadataRecord::GroupDeleted { group: "g" }
            .encode(&mut inner[FRAME_HEAD_BYTES..])
            .unwrap();
        let bytes = seal(&mut inner, body, crc32c).unwrap();
        // The checksum is no text: any byte beside it will do as the test's stand-in for a text that is.
        let MetadataRecord::OffsetCommitted(mut outer) = commit(1) else {
            unreachable!()
        };
        outer.group = "0123456789012345678901234567890123456789";
        log.append(&mut disk, &MetadataRecord::OffsetCommitted(outer)).unwrap();
        let end = log.len_bytes() as usize;
        log.append(&mut disk, &commit(2)).unwrap();
        disk.bytes(METADATA_LOG)[end - bytes - 8..end - 8].copy_from_slice(&inner[..bytes]);
        let (_, opened, replayed) = open(&mut disk);
        assert!(opened.damaged);
        assert_eq!(replayed, lines(&[commit(2)]));
    }

    #[test]
    fn a_block_that_cannot_be_read_costs_what_is_in_it() {
        let mut disk = MemDisk::default();
        let (mut log, ..) = open(&mut disk);
        let mut ends = Vec::new();
        for offset in 0..400 {
            log.append(&mut disk, &commit(offset)).unwrap();
            ends.push(log.len_bytes());
        }
        disk.bad_block = Some(8192);
        let (_, opened, replayed) = open(&mut disk);
        assert!(opened.damaged);
        let touched = |at: usize| ends[at] > 8192 && at.checked_sub(1).map_or(0, |before| ends[before]) < 12_288;
        let want: Vec<_> = (0..400)
            .filter(|at| !touched(*at))
            .map(|at| commit(at as i64))
            .collect();
        assert_eq!(replayed, lines(&want));
    }

    #[test]
    fn an_unknown_kind_is_kept_aside() {
        let (mut disk, at) = written();
        let end = *at.last().unwrap();
        let mut frame = [0; 20];
        frame[FRAME_HEAD_BYTES] = 200;
        let bytes = seal(&mut frame, 5, crc32c).unwrap();
        disk.bytes(METADATA_LOG)[end..end + bytes].copy_from_slice(&frame[..bytes]);
        let (_, opened, replayed) = open(&mut disk);
        assert_eq!(replayed, lines(&samples()));
        assert_eq!(
            opened,
            Opened {
                records: 9,
                damaged: true
            }
        );
        assert!(disk.has(DAMAGED));
    }

    #[test]
    fn a_full_disk_leaves_the_reserve_and_then_what_was_there() {
        let mut disk = MemDisk::default();
        let (mut log, ..) = open(&mut disk);
        log.append(&mut disk, &commit(0)).unwrap();
        disk.room = Some(0);
        let mut count = 1;
        while log.append(&mut disk, &commit(count)).is_ok() {
            count += 1;
        }
        assert!(count > 500, "{count} commits fit the reserve");
        assert_eq!(log.append(&mut disk, &commit(count)), Err(MetadataError::Full));
        assert_eq!(log.sync(&mut disk), Ok(()));
        let want: Vec<_> = (0..count).map(commit).collect();
        assert_eq!(open(&mut disk).2, lines(&want));
        // Room again: it goes on by itself.
        disk.room = None;
        log.append(&mut disk, &commit(count)).unwrap();
        assert_eq!(open(&mut disk).2.len() as i64, count + 1);
    }

    /// Goal: of several records in one write that was cut short none comes back. Method: room for each number of bytes.
    #[test]
    fn a_short_write_leaves_none_of_it() {
        for room in 0..150 {
            let mut disk = MemDisk::default();
            let (mut log, ..) = open(&mut disk);
            disk.room = Some(room);
            for offset in 0..3 {
                log.stage(&commit(offset)).unwrap();
            }
            assert_eq!(log.write(&mut disk), Err(MetadataError::Full));
            assert_eq!(open(&mut disk).2, lines(&[]));
        }
    }

    #[test]
    fn after_a_failed_sync_only_a_rewritten_file_takes_changes() {
        let mut disk = MemDisk::default();
        let (mut log, ..) = open(&mut disk);
        log.append(&mut disk, &commit(1)).unwrap();
        disk.sync_fails = true;
        assert_eq!(log.sync(&mut disk), Err(MetadataError::Failed));
        disk.sync_fails = false;
        assert_eq!(log.sync(&mut disk), Err(MetadataError::Failed));
        assert_eq!(log.append(&mut disk, &commit(2)), Err(MetadataError::Failed));
        assert!(log.is_tidy_due());
        let state = [commit(7)];
        disk.sync_fails = true;
        assert_eq!(
            log.tidy(&mut disk, &|emit| state.iter().for_each(&mut *emit)),
            Err(DiskError::Io)
        );
        assert_eq!(log.append(&mut disk, &commit(2)), Err(MetadataError::Failed));
        disk.sync_fails = false;
        let before = log.file();
        assert_eq!(log.tidy(&mut disk, &|emit| state.iter().for_each(&mut *emit)), Ok(true));
        assert_ne!(log.file(), before);
        log.append(&mut disk, &commit(8)).unwrap();
        assert_eq!(open(&mut disk).2, lines(&[commit(7), commit(8)]));
        assert!(!disk.has(NEW));
    }

    /// Goal: commits over and over keep the file within a bound, and the last ones hold. Method: many commits to few places, a
    /// look whenever one is due.
    #[test]
    fn rewriting_keeps_the_file_small() {
        let mut disk = MemDisk::default();
        let (mut log, ..) = open(&mut disk);
        let mut rewritten = 0;
        for offset in 0..40_000 {
            log.append(&mut disk, &commit(offset)).unwrap();
            if log.is_tidy_due() {
                let state = commit(offset);
                rewritten += u32::from(log.tidy(&mut disk, &|emit| emit(&state)).unwrap());
                assert_eq!(log.file(), FileId(disk.file_of(METADATA_LOG)));
            }
            assert!(log.len_bytes() < TIDY_BYTES_MIN + 100);
        }
        assert_eq!(rewritten, 40_000 * 54 / TIDY_BYTES_MIN as u32);
        let (.., replayed) = open(&mut disk);
        assert_eq!(replayed.last(), lines(&[commit(39_999)]).last());
    }

    #[test]
    fn a_file_that_mostly_holds_is_left() {
        let mut disk = MemDisk::default();
        let (mut log, ..) = open(&mut disk);
        let mut all = Vec::new();
        let mut offset = 0;
        while !log.is_tidy_due() {
            all.push(commit(offset));
            log.append(&mut disk, &commit(offset)).unwrap();
            offset += 1;
        }
        assert_eq!(log.tidy(&mut disk, &|emit| all.iter().for_each(&mut *emit)), Ok(false));
        assert!(!log.is_tidy_due());
        assert!(!disk.has(NEW));
        let live = log.len_bytes();
        while !log.is_tidy_due() {
            log.append(&mut disk, &commit(offset)).unwrap();
        }
        assert!((3 * live..3 * live + 100).contains(&log.len_bytes()));
        assert_eq!(log.tidy(&mut disk, &|emit| all.iter().for_each(&mut *emit)), Ok(true));
        assert_eq!(log.len_bytes(), live);
    }

    #[test]
    fn a_full_disk_leaves_the_old_file_when_rewriting() {
        let mut disk = MemDisk::default();
        let (mut log, ..) = open(&mut disk);
        while !log.is_tidy_due() {
            log.append(&mut disk, &commit(1)).unwrap();
        }
        disk.room = Some(10);
        assert_eq!(log.tidy(&mut disk, &|emit| emit(&commit(1))), Err(DiskError::Full));
        assert!(!disk.has(NEW));
        assert!(!log.is_tidy_due(), "not again before it has grown");
        log.append(&mut disk, &commit(2)).unwrap();
        assert_eq!(open(&mut disk).2.last(), lines(&[commit(2)]).last());
    }
}
