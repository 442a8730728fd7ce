//! Record batches against the independent `kafka-protocol` crate: the same bytes, the same records, and nothing accepted that
//! it cannot read.

use bytes::{Bytes, BytesMut};
use kafka_protocol::protocol::StrBytes;
use kafka_protocol::records::{
    Compression as TheirCompression, Record as Theirs, RecordBatchDecoder, RecordBatchEncoder, RecordEncodeOptions,
    TimestampType as TheirTimestampType,
};
use skerry_broker::crc::CRC32C;
use skerry_core::record::{
    Attributes, BATCH_HEADER_BYTES, Batch, BatchBuilder, BatchHeader, BatchMut, Batches, RecordHeader, Rules, crc32c,
    validate,
};
use skerry_core::time::Timestamp;
use skerry_tests::rng::Rng;

const RULES: Rules = Rules {
    batch_bytes_max: u32::MAX,
    produce_version: 9,
    transactions: false,
    keys_required: false,
    timestamps: None,
};

/// Who sends a batch: id, epoch, first sequence.
type Producer = (i64, i16, i32);

/// One to twenty records of one batch; `rising` timestamps begin with the least.
fn records(rng: &mut Rng, rising: bool, (id, epoch, sequence): Producer) -> Vec<Theirs> {
    let base = rng.within(0, 1 << 42) as i64;
    let mut timestamp = base;
    (0..rng.within(1, 20) as i32)
        .map(|at| {
            timestamp = if rising {
                timestamp + rng.below(1000) as i64
            } else {
                base + rng.below(1 << 20) as i64
            };
            let headers = (0..rng.below(4)).map(|at| {
                let key = StrBytes::from_string(format!("header {at}"));
                (key, bytes(rng))
            });
            let headers = headers.collect();
            Theirs {
                transactional: false,
                control: false,
                delete_horizon: false,
                partition_leader_epoch: -1,
                producer_id: id,
                producer_epoch: epoch,
                timestamp_type: TheirTimestampType::Creation,
                offset: i64::from(at),
                sequence: sequence.wrapping_add(at),
                timestamp,
                key: bytes(rng),
                value: bytes(rng),
                headers,
            }
        })
        .collect()
}

/// Null, empty, short, or long enough for lengths of two bytes.
fn bytes(rng: &mut Rng) -> Option<Bytes> {
    let length = *rng.pick(&[0, 0, 1, 5, 63, 64, 65, 300]);
    let mut bytes = vec![0; length];
    rng.fill(&mut bytes);
    (!rng.percent(20)).then(|| bytes.into())
}

fn theirs(records: &[Theirs]) -> Vec<u8> {
    let options = RecordEncodeOptions {
        version: 2,
        compression: TheirCompression::None,
    };
    let mut out = BytesMut::new();
    RecordBatchEncoder::encode(&mut out, records, &options).unwrap();
    out.to_vec()
}

fn ours(records: &[Theirs], (id, epoch, sequence): Producer) -> Vec<u8> {
    let mut out = vec![0; 100_000];
    let mut builder = BatchBuilder::new(&mut out).unwrap().producer(id, epoch, sequence);
    for record in records {
        let headers: Vec<_> = record
            .headers
            .iter()
            .map(|(key, value)| RecordHeader {
                key: key.as_bytes(),
                value: value.as_deref(),
            })
            .collect();
        let (key, value) = (record.key.as_deref(), record.value.as_deref());
        builder.push(Timestamp(record.timestamp), key, value, &headers).unwrap();
    }
    builder.finish(crc32c).to_vec()
}

fn read_by_them(bytes: &[u8]) -> Vec<Theirs> {
    let mut bytes = Bytes::copy_from_slice(bytes);
    RecordBatchDecoder::decode(&mut bytes).unwrap().records
}

/// What we read, as their type. Sequences are left as they come in `like`, for we keep one per batch.
fn read_by_us(batch: &Batch<'_>, like: &[Theirs]) -> Vec<Theirs> {
    let header = batch.header();
    let records = batch.records().zip(like).map(|(record, like)| {
        let record = record.unwrap();
        Theirs {
            producer_id: header.producer_id,
            producer_epoch: header.producer_epoch,
            partition_leader_epoch: header.partition_leader_epoch,
            offset: header.base_offset + i64::from(record.offset_delta),
            timestamp: header.base_timestamp + record.timestamp_delta,
            key: record.key.map(Bytes::copy_from_slice),
            value: record.value.map(Bytes::copy_from_slice),
            headers: record
                .headers
                .map(|h| {
                    (
                        StrBytes::from_string(String::from_utf8(h.key.into()).unwrap()),
                        h.value.map(Bytes::copy_from_slice),
                    )
                })
                .collect(),
            ..like.clone()
        }
    });
    records.collect()
}

fn producer(rng: &mut Rng) -> Producer {
    if rng.percent(50) {
        (-1, -1, -1)
    } else {
        (
            rng.below(1 << 40) as i64,
            rng.below(1 << 15) as i16,
            rng.below(1 << 31) as i32,
        )
    }
}

#[test]
fn the_same_records_are_the_same_bytes() {
    let mut rng = Rng::new(1);
    for _ in 0..500 {
        let mut producer = producer(&mut rng);
        if producer.0 < 0 {
            // They count offsets and sequences together, so that −1 and 0 would begin two batches.
            producer = (-1, -1, 0);
        }
        let records = records(&mut rng, true, producer);
        assert_eq!(ours(&records, producer), theirs(&records));
    }
}

#[test]
fn each_reads_what_the_other_wrote() {
    let mut rng = Rng::new(2);
    for _ in 0..500 {
        let producer = producer(&mut rng);
        let records = records(&mut rng, false, producer);
        let by_them = theirs(&records);
        // They write the least timestamp as the base, which the format allows.
        let batch = validate(&by_them, &RULES, CRC32C).unwrap();
        assert_eq!(read_by_us(&batch, &records), records);
        assert_eq!(batch.records().count(), records.len());
        let by_us = ours(&records, producer);
        assert_eq!(read_by_them(&by_us), records);
        assert_eq!(validate(&by_us, &RULES, CRC32C).unwrap().bytes(), by_us);
    }
}

#[test]
fn what_the_broker_assigns_is_read_by_them() {
    let mut rng = Rng::new(3);
    for _ in 0..100 {
        let producer = producer(&mut rng);
        let mut records = records(&mut rng, false, producer);
        let mut bytes = ours(&records, producer);
        let (offset, epoch) = (rng.below(1 << 50) as i64, rng.below(1 << 31) as i32);
        let mut batch = BatchMut::in_place(&mut bytes).unwrap();
        batch.assign(offset, epoch);
        for record in &mut records {
            record.offset += offset;
            record.partition_leader_epoch = epoch;
        }
        assert_eq!(read_by_them(&bytes), records);
        BatchMut::in_place(&mut bytes)
            .unwrap()
            .stamp_append_time(Timestamp(77), CRC32C);
        let stamped = read_by_them(&bytes);
        assert!(
            stamped
                .iter()
                .all(|record| record.timestamp_type == TheirTimestampType::LogAppend)
        );
        let header = *Batch::only(&bytes).unwrap().header();
        assert_eq!(header.max_timestamp, 77);
    }
}

/// Goal: no batch is let through that a consumer could not read. Method: bytes changed at random and sealed with a checksum that
/// fits; what still passes is read by them, and is the same records.
#[test]
fn nothing_is_accepted_that_they_cannot_read() {
    let mut rng = Rng::new(4);
    let mut accepted = 0;
    for _ in 0..30_000 {
        let mut bytes = ours(&records(&mut rng, false, (-1, -1, -1)), (-1, -1, -1));
        for _ in 0..rng.within(1, 3) {
            // Past the lengths and the magic byte; the header's own fields too.
            let at = BATCH_HEADER_BYTES - 40 + rng.index(bytes.len() - BATCH_HEADER_BYTES + 40);
            bytes[at] = match rng.below(3) {
                0 => bytes[at].wrapping_add(2),
                1 => bytes[at] ^ (1 << rng.below(8)),
                _ => rng.next_u64() as u8,
            };
        }
        seal(&mut bytes);
        let Ok(batch) = validate(&bytes, &RULES, CRC32C) else {
            continue;
        };
        if batch.header().attributes != Attributes::default() {
            continue;
        }
        // Names of headers need not be text for us, nor for a broker.
        let all_text = batch
            .records()
            .all(|record| record.unwrap().headers.all(|header| str::from_utf8(header.key).is_ok()));
        if !all_text {
            continue;
        }
        let read = read_by_them(&bytes);
        assert_eq!(read.len(), batch.records().count());
        // Headers of the same name are one to them.
        let unique = |record: &Theirs| Theirs {
            headers: Default::default(),
            ..record.clone()
        };
        let (by_us, by_them): (Vec<_>, Vec<_>) = read_by_us(&batch, &read)
            .iter()
            .zip(&read)
            .map(|(a, b)| (unique(a), unique(b)))
            .unzip();
        assert_eq!(by_us, by_them);
        accepted += 1;
    }
    assert!(accepted > 1000, "{accepted} passed: enough to mean something");
}

fn seal(bytes: &mut [u8]) {
    let (head, payload) = bytes.split_first_chunk_mut::<BATCH_HEADER_BYTES>().unwrap();
    let crc = crc32c(BatchHeader::crc_begin(head, crc32c), payload);
    let header = BatchHeader {
        crc,
        ..BatchHeader::decode(head)
    };
    *head = header.encode();
}

#[test]
fn several_batches_of_theirs_follow_one_another() {
    let mut rng = Rng::new(5);
    let parts: Vec<_> = (0..5).map(|_| theirs(&records(&mut rng, true, (7, 0, 0)))).collect();
    let all = parts.concat();
    let got: Vec<_> = Batches::new(&all)
        .map(|batch| batch.unwrap().bytes().to_vec())
        .collect();
    assert_eq!(got, parts);
}
