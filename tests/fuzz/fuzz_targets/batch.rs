//! Any bytes as a records field: batches are found or refused, and what is let through is whole in every part.
//!
//! The first byte chooses the rules, and whether the checksum is made to fit, so that what lies behind it is reached.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skerry_core::machine::producer::{Entry, Incoming, Verdict, check, commit};
use skerry_core::record::{
    BATCH_HEADER_BYTES, BatchError, BatchHeader, BatchMut, Batches, Compression, RecordIter, Rules, crc32c, validate,
};
use skerry_core::time::Timestamp;

fuzz_target!(|data: &[u8]| {
    let Some((choice, bytes)) = data.split_first() else {
        return;
    };
    let mut bytes = bytes.to_vec();
    if choice & 1 == 1 {
        seal(&mut bytes);
    }
    let rules = Rules {
        batch_bytes_max: if choice & 2 == 2 { 200 } else { 1 << 20 },
        produce_version: 6 + i16::from(choice >> 2 & 1),
        transactions: choice & 8 == 8,
        keys_required: choice & 16 == 16,
        timestamps: (choice & 32 == 32).then_some((1000, 1 << 40)),
    };

    let mut covered = 0;
    let mut entry: Option<Entry> = None;
    for batch in Batches::new(&bytes) {
        let Ok(batch) = batch else { break };
        covered += batch.len_bytes();
        assert_eq!(
            batch.header(),
            &BatchHeader::decode(batch.bytes().first_chunk().expect("a header"))
        );
        batch.records().for_each(drop);
        if let Some(incoming) = Incoming::of(batch.header())
            && incoming.base_sequence >= 0
            && incoming.last_offset_delta >= 0
            && check(entry.as_ref(), &incoming) == Verdict::Append
        {
            let kept = commit(entry.as_ref(), &incoming, 0);
            assert_eq!(Entry::decode(&kept.encode()), Some(kept));
            assert!(matches!(check(Some(&kept), &incoming), Verdict::Duplicate(_)));
            entry = Some(kept);
        }
    }
    assert!(covered <= bytes.len());

    let Ok(batch) = validate(&bytes, &rules, crc32c) else {
        return;
    };
    let header = *batch.header();
    assert_eq!(batch.len_bytes(), bytes.len());
    assert!(bytes.len() <= rules.batch_bytes_max as usize);
    if header.attributes.compression() == Ok(Compression::None) {
        let records: Result<Vec<_>, BatchError> = RecordIter::new(batch.payload(), header.count as u32).collect();
        let records = records.expect("what was let through is whole");
        assert_eq!(records.len(), header.count as usize);
        let last = records.last().expect("at least one record");
        assert_eq!(last.offset_delta, header.last_offset_delta);
        assert!(
            records
                .iter()
                .all(|record| record.headers.count() == record.headers.len())
        );
    }
    let mut head = [0; BATCH_HEADER_BYTES];
    let mut beside = BatchMut::beside(&batch, &mut head);
    beside.assign(1 << 40, 7);
    beside.stamp_append_time(Timestamp(1), crc32c);
    let stamped = [&head[..], batch.payload()].concat();
    let log_append = validate(&stamped, &rules, crc32c).map(|_| ());
    assert_eq!(
        log_append,
        Err(BatchError::TimestampType),
        "everything before that still holds"
    );
});

/// Makes the first batch's length and checksum fit, where there are bytes enough for a header.
fn seal(bytes: &mut [u8]) {
    let length = bytes.len();
    let Some((head, payload)) = bytes.split_first_chunk_mut::<BATCH_HEADER_BYTES>() else {
        return;
    };
    let mut header = BatchHeader {
        length: length as i32 - 12,
        magic: 2,
        ..BatchHeader::decode(head)
    };
    header.crc = crc32c(BatchHeader::crc_begin(&header.encode(), crc32c), payload);
    *head = header.encode();
}
