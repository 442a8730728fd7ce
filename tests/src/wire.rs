//! Requests out and replies in, by the client side of the codec: what every client of these tests is built on.

use skerry_core::api::{ApiKey, Call};
use skerry_core::header::{RequestHeader, ResponseHeader};
use skerry_core::record::{BatchBuilder, BatchError, Batches, RecordHeader, TimestampType, crc32c};
use skerry_core::time::Timestamp;
use skerry_core::wire::{BufSink, Message, Reader};

/// What these clients call themselves.
pub const CLIENT_ID: &str = "skerry-tests";

/// A request as a frame, length in front.
#[must_use]
pub fn request<'a, C: Call<'a>>(call: &C, version: i16, correlation_id: i32) -> Vec<u8> {
    let mut bytes = vec![0; 4];
    let mut sink = BufSink::new(&mut bytes);
    RequestHeader::new(C::KEY, version, correlation_id, Some(CLIENT_ID))
        .encode(&mut sink)
        .expect("a vector is never full");
    call.encode(&mut sink, version)
        .unwrap_or_else(|_| panic!("{:?} version {version} cannot be encoded", C::KEY));
    let length = u32::try_from(bytes.len() - 4).expect("a frame of less than 4 GiB");
    bytes[..4].copy_from_slice(&length.to_be_bytes());
    bytes
}

/// The correlation id of a reply, given without its length.
#[must_use]
pub fn correlation_id(frame: &[u8]) -> i32 {
    Reader::new(frame).i32().expect("a reply has at least four bytes")
}

/// The body of a reply, given without its length.
///
/// Panics on bytes that are no such reply, or that go on after it.
#[must_use]
pub fn reply<'r, M: Message<'r>>(key: ApiKey, version: i16, frame: &'r [u8]) -> M {
    let mut reader = Reader::new(frame);
    ResponseHeader::decode(&mut reader, key, version)
        .unwrap_or_else(|e| panic!("header of {key:?} version {version}: {e:?}: {frame:02x?}"));
    let reply = M::decode(&mut reader, version)
        .unwrap_or_else(|e| panic!("reply to {key:?} version {version}: {e:?}: {frame:02x?}"));
    assert!(
        reader.is_empty(),
        "{} bytes after the reply to {key:?} version {version}",
        reader.remaining()
    );
    reply
}

/// A record that a test sends or has read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestRecord {
    /// Its offset, once it has one.
    pub offset: i64,
    /// Its timestamp.
    pub timestamp: i64,
    /// Its key.
    pub key: Option<Vec<u8>>,
    /// Its value.
    pub value: Vec<u8>,
}

/// Which idempotent producer a batch is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Producer {
    /// Its id.
    pub id: i64,
    /// Its epoch.
    pub epoch: i16,
    /// The sequence of the batch's first record.
    pub sequence: i32,
}

/// An uncompressed batch of `records`, each with one header.
#[must_use]
pub fn batch(records: &[TestRecord], producer: Option<Producer>) -> Vec<u8> {
    let room = 200
        + records
            .iter()
            .map(|r| 200 + r.value.len() + r.key.as_ref().map_or(0, Vec::len))
            .sum::<usize>();
    let mut out = vec![0; room];
    let mut builder = BatchBuilder::new(&mut out).expect("room for a header");
    if let Some(p) = producer {
        builder = builder.producer(p.id, p.epoch, p.sequence);
    }
    let headers = [RecordHeader {
        key: b"from",
        value: Some(CLIENT_ID.as_bytes()),
    }];
    for record in records {
        builder
            .push(
                Timestamp(record.timestamp),
                record.key.as_deref(),
                Some(&record.value),
                &headers,
            )
            .expect("room for every record");
    }
    builder.finish(crc32c).to_vec()
}

/// Every record of a fetched records field, in order. The last batch may be cut, as a fetch allows; anything else that is wrong with
/// it (checksum, count, order within a batch) is a panic.
#[must_use]
pub fn records(bytes: &[u8]) -> Vec<TestRecord> {
    let mut out = Vec::new();
    for batch in Batches::new(bytes) {
        let batch = match batch {
            Ok(batch) => batch,
            Err(BatchError::Truncated) => break,
            Err(e) => panic!("fetched bytes are no batch: {e:?}"),
        };
        assert!(batch.crc_holds(crc32c), "the checksum of a fetched batch does not hold");
        let header = batch.header();
        let mut count = 0;
        for record in batch.records() {
            let record = record.expect("a whole record");
            assert_eq!(record.offset_delta, count, "offset delta within a batch");
            count += 1;
            out.push(TestRecord {
                offset: header.base_offset + i64::from(record.offset_delta),
                timestamp: match header.attributes.timestamp_type() {
                    TimestampType::CreateTime => header.base_timestamp + record.timestamp_delta,
                    TimestampType::LogAppendTime => header.max_timestamp,
                },
                key: record.key.map(<[u8]>::to_vec),
                value: record.value.unwrap_or_default().to_vec(),
            });
        }
        assert_eq!(
            (count, count - 1),
            (header.count, header.last_offset_delta),
            "records in a batch"
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use skerry_core::api::heartbeat::{HeartbeatRequest, HeartbeatResponse};

    #[test]
    fn records_come_back_from_their_batch() {
        let sent: Vec<_> = (0..3)
            .map(|n| TestRecord {
                offset: n,
                timestamp: 100 + n,
                key: (n > 0).then(|| vec![n as u8]),
                value: vec![7; n as usize],
            })
            .collect();
        let mut bytes = batch(
            &sent,
            Some(Producer {
                id: 9,
                epoch: 1,
                sequence: 5,
            }),
        );
        assert_eq!(records(&bytes), sent);
        bytes.extend_from_slice(&batch(&sent, None)[..70]);
        assert_eq!(records(&bytes), sent, "a cut batch at the end is passed over");
    }

    #[test]
    fn a_frame_has_its_length_in_front() {
        let call = HeartbeatRequest {
            group_id: "g",
            ..Default::default()
        };
        for version in [0, 4] {
            let bytes = request(&call, version, 77);
            assert_eq!(
                bytes.len() - 4,
                u32::from_be_bytes(bytes[..4].try_into().unwrap()) as usize
            );
        }
        let frame = [0, 0, 0, 77, 0, 0, 0, 0, 0, 27];
        assert_eq!(correlation_id(&frame), 77);
        let reply: HeartbeatResponse = reply(ApiKey::Heartbeat, 1, &frame);
        assert_eq!(reply.error_code.0, 27);
    }
}
