//! Producer ids: each given to one producer only, whatever crash comes between.
//!
//! They come in blocks. A block is reserved in the metadata log, durably, before its first id is given out; what a crash leaves of a block
//! is never used.

use skerry_net::host::Disk;

use super::metadata_log::{MetadataError, MetadataLog};
use super::record::MetadataRecord;

/// Ids in a block: one sync for so many producers.
pub const BLOCK_IDS: i64 = 1000;

/// The ids not yet given out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProducerIds {
    next: i64,
    /// Ids below this are reserved.
    reserved_end: i64,
}

impl ProducerIds {
    /// Replays a reservation.
    pub fn on_reserved(&mut self, end: i64) {
        self.reserved_end = self.reserved_end.max(end);
        self.next = self.reserved_end;
    }

    /// The first id that is not reserved.
    #[must_use]
    pub const fn end(&self) -> i64 {
        self.reserved_end
    }

    /// The next id. Cost: a write and a blocking sync for the first one of each block.
    ///
    /// Errors: those of the metadata log; no id is used up.
    pub fn next<D: Disk>(&mut self, disk: &mut D, log: &mut MetadataLog) -> Result<i64, MetadataError> {
        if self.next == self.reserved_end {
            let end = self.reserved_end.saturating_add(BLOCK_IDS);
            log.append(disk, &MetadataRecord::ProducerIdsReserved { end })?;
            log.sync(disk)?;
            self.reserved_end = end;
        }
        let id = self.next;
        self.next += 1;
        Ok(id)
    }

    /// What a rewritten metadata log must say; `None` while none were reserved.
    #[must_use]
    pub fn record(&self) -> Option<MetadataRecord<'static>> {
        (self.reserved_end > 0).then_some(MetadataRecord::ProducerIdsReserved { end: self.reserved_end })
    }
}

#[cfg(test)]
mod tests {
    use skerry_core::record::crc32c;

    use super::super::mem_disk::MemDisk;
    use super::*;

    fn open(disk: &mut MemDisk) -> (MetadataLog, ProducerIds) {
        let mut ids = ProducerIds::default();
        let (log, _) = MetadataLog::open(disk, crc32c, &mut |record| {
            if let MetadataRecord::ProducerIdsReserved { end } = record {
                ids.on_reserved(end);
            }
        })
        .unwrap();
        (log, ids)
    }

    #[test]
    fn a_block_is_synced_before_its_first_id() {
        let mut disk = MemDisk::default();
        let (mut log, mut ids) = open(&mut disk);
        let before = disk.syncs;
        for id in 0..2 * BLOCK_IDS {
            assert_eq!(ids.next(&mut disk, &mut log), Ok(id));
            assert_eq!(i64::from(disk.syncs - before), id / BLOCK_IDS + 1);
        }
        // What was reserved is never given out by another start.
        let (mut log, mut ids) = open(&mut disk);
        assert_eq!(ids.next(&mut disk, &mut log), Ok(2 * BLOCK_IDS));
        assert_eq!(ids.end(), 3 * BLOCK_IDS);
        assert_eq!(
            ids.record(),
            Some(MetadataRecord::ProducerIdsReserved { end: 3 * BLOCK_IDS })
        );
    }

    #[test]
    fn nothing_is_given_out_of_a_block_that_is_not_durable() {
        let mut disk = MemDisk::default();
        let (mut log, mut ids) = open(&mut disk);
        disk.sync_fails = true;
        assert_eq!(ids.next(&mut disk, &mut log), Err(MetadataError::Failed));
        disk.sync_fails = false;
        assert_eq!(ids.next(&mut disk, &mut log), Err(MetadataError::Failed));
        assert_eq!(log.tidy(&mut disk, &|_| ()), Ok(true));
        assert_eq!(ids.next(&mut disk, &mut log), Ok(0));
    }
}
