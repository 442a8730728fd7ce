//! Finding a batch: segment, index entry, then header by header. Looks only at what is in memory; what is not is named, to be loaded.

use std::io::{IoSlice, IoSliceMut};

use skerry_core::record::{BATCH_HEADER_BYTES, BatchHeader};
use skerry_net::host::{Disk, FileId};

use super::index::{ENTRY_BYTES, Entry, SEAL_BYTES, TAIL_ENTRIES, put};
use super::segment::{Segment, SegmentIx};
use super::{ColdRange, Logs, ReadError};
use crate::ids::PartitionIx;

/// Bytes of one look at a log file: an index interval, and the header after it.
const WALK_BYTES: usize = 8 * 1024;
/// Bytes that are asked for when a look finds nothing in memory: what follows is likely to be read next.
const LOAD_BYTES: u32 = 128 * 1024;
/// Headers met in one call while an index is made again.
const REBUILD_HEADERS: u32 = 2048;

/// A batch in a segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Located {
    pub(super) position: u32,
    /// Bytes of the whole batch.
    pub(super) bytes: u32,
    pub(super) header: BatchHeader,
}

impl Located {
    /// Where the next batch begins.
    pub(super) const fn end(&self) -> u32 {
        self.position.saturating_add(self.bytes)
    }
}

/// An index that is being made again, a part at each call that needs it.
#[derive(Debug)]
pub(super) struct Rebuild {
    ix: PartitionIx,
    pub(super) segment: SegmentIx,
    position: u32,
    max_timestamp: i64,
    entries: u32,
    due: u32,
    pending: heapless::Vec<Entry, TAIL_ENTRIES>,
}

/// Goes from batch to batch, from `from` on, until `stop` says so or `end` is reached.
///
/// Errors: `Cold`; `Storage` where there is no batch.
pub(super) fn walk<D: Disk>(
    disk: &mut D,
    scratch: &mut [u8],
    file: FileId,
    from: u32,
    end: u32,
    mut stop: impl FnMut(&Located) -> bool,
) -> Result<Option<Located>, ReadError> {
    let (mut position, mut start, mut filled) = (from, from, 0usize);
    while position < end {
        // Buffered bytes are those of the file from `start` on.
        let at = (position - start) as usize;
        let Some(head) = scratch
            .get(at..filled)
            .and_then(|bytes| bytes.first_chunk::<BATCH_HEADER_BYTES>())
        else {
            start = position;
            let want = WALK_BYTES.min((end - position) as usize);
            filled = look(disk, file, position, end, scratch.get_mut(..want).unwrap_or_default())?;
            if filled < BATCH_HEADER_BYTES {
                return Err(ReadError::Storage);
            }
            continue;
        };
        let header = BatchHeader::decode(head);
        let bytes = header.len_bytes().ok().and_then(|bytes| u32::try_from(bytes).ok());
        let bytes = bytes
            .filter(|bytes| *bytes <= end - position)
            .ok_or(ReadError::Storage)?;
        let located = Located {
            position,
            bytes,
            header,
        };
        if stop(&located) {
            return Ok(Some(located));
        }
        position = located.end();
    }
    Ok(None)
}

/// Reads what is in memory, at least a header where the file has one.
fn look<D: Disk>(disk: &mut D, file: FileId, position: u32, end: u32, buffer: &mut [u8]) -> Result<usize, ReadError> {
    let mut filled = 0;
    while filled < BATCH_HEADER_BYTES.min(buffer.len()) {
        let rest = buffer.get_mut(filled..).unwrap_or_default();
        let at = u64::from(position) + filled as u64;
        match disk.read_cached(file, at, &mut [IoSliceMut::new(rest)]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(nb::Error::WouldBlock) => {
                return Err(ReadError::Cold(ColdRange {
                    file,
                    position: at,
                    bytes: LOAD_BYTES.min(end - position),
                }));
            }
            Err(nb::Error::Other(_)) => return Err(ReadError::Storage),
        }
    }
    Ok(filled)
}

impl Logs {
    /// The segment that holds `offset`, which is not before the log's start. Cost: a step for each segment between this and the
    /// last look-up.
    pub(super) fn segment_of(&mut self, ix: PartitionIx, offset: i64) -> Option<SegmentIx> {
        let partition = self.partition(ix)?;
        let newest = self.segments.at(partition.newest)?;
        let mut at = if newest.base <= offset || partition.last_read == SegmentIx::NONE {
            partition.newest
        } else {
            partition.last_read
        };
        while let Some(older) = self.segments.at(at).filter(|s| s.base > offset).map(|s| s.older) {
            at = older;
        }
        while let Some(newer) = self.segments.at(at).map(|s| s.newer)
            && self.segments.at(newer).is_some_and(|s| s.base <= offset)
        {
            at = newer;
        }
        self.segments.at(at)?;
        self.partition_mut(ix)?.last_read = at;
        Some(at)
    }

    /// The last index entry for which `before` holds; it holds for a first part of the entries and for none after.
    ///
    /// Cost: a look into memory for the end of the active segment, else one small read per bit of the entry's number.
    pub(super) fn entry_before<D: Disk>(
        &mut self,
        disk: &mut D,
        ix: PartitionIx,
        segment_ix: SegmentIx,
        before: impl Fn(&Entry) -> bool,
    ) -> Result<Entry, ReadError> {
        let partition = self.partition(ix).ok_or(ReadError::Storage)?;
        let &Segment {
            base,
            index_entries,
            index_bad,
            ..
        } = self.segments.at(segment_ix).ok_or(ReadError::Storage)?;
        if index_bad {
            self.rebuild(disk, ix, segment_ix)?;
            return self.entry_before(disk, ix, segment_ix, before);
        }
        if partition.newest == segment_ix {
            if let Some(entry) = partition.tail.find(&before) {
                return Ok(entry);
            }
            if partition.tail.is_whole(index_entries) {
                return Ok(Entry::START);
            }
        }
        let (mut low, mut high, mut found) = (0, index_entries, Entry::START);
        while low < high {
            let middle = low + (high - low) / 2;
            let (_, file) = self.open_segment(disk, ix, segment_ix, true)?;
            let Some(entry) = self.read_entry(disk, file, base, middle, index_entries)? else {
                self.distrust(ix, segment_ix);
                return self.entry_before(disk, ix, segment_ix, before);
            };
            if before(&entry) {
                (low, found) = (middle + 1, entry);
            } else {
                high = middle;
            }
        }
        Ok(found)
    }

    /// Reads one entry; `None` when it is not what was written.
    fn read_entry<D: Disk>(
        &self,
        disk: &mut D,
        file: FileId,
        base: i64,
        number: u32,
        entries: u32,
    ) -> Result<Option<Entry>, ReadError> {
        let position = u64::from(number) * ENTRY_BYTES as u64;
        let mut bytes = [0; ENTRY_BYTES];
        match disk.read_cached(file, position, &mut [IoSliceMut::new(&mut bytes)]) {
            Ok(ENTRY_BYTES) => Ok(Entry::decode(&bytes, base, number, self.policy.crc)),
            // An entry may lie across a page that is in memory and one that is not: both are asked for.
            Ok(n) if n > 0 && n < ENTRY_BYTES => match disk.read_cached(
                file,
                position + n as u64,
                &mut [IoSliceMut::new(bytes.get_mut(n..).unwrap_or_default())],
            ) {
                Ok(rest) if n + rest == ENTRY_BYTES => Ok(Entry::decode(&bytes, base, number, self.policy.crc)),
                Err(nb::Error::WouldBlock) => Err(cold_entry(file, position, number, entries)),
                Ok(_) | Err(nb::Error::Other(_)) => Ok(None),
            },
            Err(nb::Error::WouldBlock) => Err(cold_entry(file, position, number, entries)),
            Ok(_) | Err(nb::Error::Other(_)) => Ok(None),
        }
    }

    /// An index file turned out to be wrong.
    fn distrust(&mut self, ix: PartitionIx, segment_ix: SegmentIx) {
        let dir = self.partitions.get(ix.0 as usize).map_or("", |p| p.dir.as_str());
        if let Some(segment) = self.segments.at_mut(segment_ix) {
            log::warn!(
                "{dir}: the index of segment {} is damaged and is made again",
                segment.base
            );
            segment.index_bad = true;
            segment.index_entries = 0;
        }
    }

    /// Goes on making an index again until it is whole.
    ///
    /// Errors: `Cold` also when only the work of one call is done: the next call goes on from there.
    fn rebuild<D: Disk>(&mut self, disk: &mut D, ix: PartitionIx, segment: SegmentIx) -> Result<(), ReadError> {
        // One at a time: whoever needs another one first helps with this.
        if let Some(under_way) = self.rebuild.take() {
            self.rebuild_more(disk, under_way)?;
        }
        if self.segments.at(segment).is_some_and(|s| s.index_bad) {
            let interval = self.partition(ix).map_or(0, |p| p.settings.index_interval_bytes);
            let (_, index) = self.open_segment(disk, ix, segment, true)?;
            // What cannot be cut is written over, and told by its checksums if it is not.
            let _ = disk.truncate(index, 0);
            let rebuild = Rebuild {
                ix,
                segment,
                position: 0,
                max_timestamp: -1,
                entries: 0,
                due: interval.max(1),
                pending: heapless::Vec::new(),
            };
            self.rebuild_more(disk, rebuild)?;
        }
        Ok(())
    }

    fn rebuild_more<D: Disk>(&mut self, disk: &mut D, mut rebuild: Rebuild) -> Result<(), ReadError> {
        let (ix, segment_ix) = (rebuild.ix, rebuild.segment);
        let interval = self.partition(ix).map_or(0, |p| p.settings.index_interval_bytes).max(1);
        loop {
            let (_, file) = self.open_segment(disk, ix, segment_ix, false)?;
            let &Segment { base, bytes, .. } = self.segments.at(segment_ix).ok_or(ReadError::Storage)?;
            let mut headers = 0;
            let (from, mut at) = (rebuild.position, rebuild.position);
            let Rebuild {
                pending,
                due,
                max_timestamp,
                ..
            } = &mut rebuild;
            let walked = walk(disk, &mut self.scratch, file, from, bytes, |batch| {
                if pending.is_full() || headers == REBUILD_HEADERS {
                    return true;
                }
                if batch.position >= *due {
                    let offset_delta = u32::try_from(batch.header.base_offset - base).unwrap_or(u32::MAX);
                    let _ = pending.push(Entry {
                        offset_delta,
                        position: batch.position,
                        max_timestamp: *max_timestamp,
                    });
                    *due = batch.position.saturating_add(interval);
                }
                *max_timestamp = (*max_timestamp).max(batch.header.max_timestamp);
                at = batch.end();
                headers += 1;
                false
            });
            rebuild.position = at;
            match walked {
                Ok(None) => return self.rebuilt(disk, rebuild),
                Ok(Some(_)) if rebuild.pending.is_full() => self.rebuild_write(disk, &mut rebuild, false)?,
                Ok(Some(next)) => {
                    let cold = ColdRange {
                        file,
                        position: u64::from(next.position),
                        bytes: LOAD_BYTES.min(bytes - at),
                    };
                    self.rebuild = Some(rebuild);
                    return Err(ReadError::Cold(cold));
                }
                Err(cold @ ReadError::Cold(_)) => {
                    self.rebuild = Some(rebuild);
                    return Err(cold);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The index is whole again.
    fn rebuilt<D: Disk>(&mut self, disk: &mut D, mut rebuild: Rebuild) -> Result<(), ReadError> {
        let is_active = self.partition(rebuild.ix).is_some_and(|p| p.newest == rebuild.segment);
        self.rebuild_write(disk, &mut rebuild, !is_active)?;
        let interval = self
            .partition(rebuild.ix)
            .map_or(0, |p| p.settings.index_interval_bytes);
        if let Some(segment) = self.segments.at_mut(rebuild.segment) {
            segment.index_entries = rebuild.entries;
            segment.index_bad = false;
            segment.max_timestamp = segment.max_timestamp.max(rebuild.max_timestamp);
        }
        if is_active && let Some(partition) = self.partition_mut(rebuild.ix) {
            // Everything up to here is in the file.
            partition.tail.reset(rebuild.due.saturating_sub(interval), interval);
        }
        Ok(())
    }

    /// Writes the entries made so far. An error leaves them out: the index is sparser there.
    fn rebuild_write<D: Disk>(&mut self, disk: &mut D, rebuild: &mut Rebuild, seal: bool) -> Result<(), ReadError> {
        let crc = self.policy.crc;
        let &segment = self.segments.at(rebuild.segment).ok_or(ReadError::Storage)?;
        let mut buffer = [0; TAIL_ENTRIES * ENTRY_BYTES + SEAL_BYTES];
        let room = buffer.len();
        let mut out = buffer.as_mut_slice();
        let entries = rebuild.entries + rebuild.pending.len() as u32;
        for (entry, number) in rebuild.pending.iter().zip(rebuild.entries..) {
            put(&mut out, entry.encode(segment.base, number, crc));
        }
        if seal {
            put(&mut out, segment.seal(entries).encode(segment.base, crc));
        }
        let bytes = room - out.len();
        let position = u64::from(rebuild.entries) * ENTRY_BYTES as u64;
        let (_, file) = self.open_segment(disk, rebuild.ix, rebuild.segment, true)?;
        let wrote = disk.write_at(file, position, &[IoSlice::new(buffer.get(..bytes).unwrap_or_default())]);
        if wrote == Ok(bytes) {
            rebuild.entries = entries;
        }
        rebuild.pending.clear();
        Ok(())
    }
}

/// The range to load for a part of an index: the entries around it are looked at next.
fn cold_entry(file: FileId, position: u64, number: u32, entries: u32) -> ReadError {
    let bytes = LOAD_BYTES.min((entries - number).saturating_mul(ENTRY_BYTES as u32));
    ReadError::Cold(ColdRange { file, position, bytes })
}
