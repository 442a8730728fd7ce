//! One record inside a v2 batch, borrowed from the batch's uncompressed bytes.
//!
//! Shape: length varint ‖ attributes i8 ‖ timestamp delta varlong ‖ offset delta varint ‖ key ‖ value ‖ header count varint ‖
//! headers, where key, value and header values are a varint length (−1: null) and bytes.
//! Source: Kafka, "Record" in the message format documentation (KIP-98).

use super::BatchError;
use super::varint::{decode_varint, decode_varlong};

/// A record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Milliseconds after the batch's base timestamp.
    pub timestamp_delta: i64,
    /// Offset after the batch's base offset.
    pub offset_delta: i32,
    /// The key, if it has one.
    pub key: Option<&'a [u8]>,
    /// The value; `None` is a tombstone.
    pub value: Option<&'a [u8]>,
    /// The headers.
    pub headers: RecordHeaders<'a>,
}

impl<'a> Record<'a> {
    /// Takes one record off the front of `bytes`; `None` when it is torn or malformed, and `bytes` is then unspecified.
    ///
    /// Headers are skimmed here, so walking them later cannot fail. Cost: one pass over lengths; keys and values untouched.
    #[inline]
    pub fn decode(bytes: &mut &'a [u8]) -> Option<Self> {
        let length = usize::try_from(decode_varint(bytes)?).ok()?;
        let (mut body, rest) = bytes.split_at_checked(length)?;
        *bytes = rest;
        // The attributes of a record have no meaning yet.
        body = body.get(1..)?;
        let timestamp_delta = decode_varlong(&mut body)?;
        let offset_delta = decode_varint(&mut body)?;
        let key = decode_nullable(&mut body)?;
        let value = decode_nullable(&mut body)?;
        let count = u32::try_from(decode_varint(&mut body)?).ok()?;
        let headers = RecordHeaders {
            bytes: body,
            left: count,
        };
        for _ in 0..count {
            // A hostile count ends here with the bytes: each header takes two at least.
            decode_header(&mut body)?;
        }
        body.is_empty().then_some(Self {
            timestamp_delta,
            offset_delta,
            key,
            value,
            headers,
        })
    }
}

/// One header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader<'a> {
    /// Its name: UTF-8 by convention, which no broker checks.
    pub key: &'a [u8],
    /// Its value.
    pub value: Option<&'a [u8]>,
}

/// The headers of a record, in order; decoded as they are walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeaders<'a> {
    bytes: &'a [u8],
    left: u32,
}

impl<'a> Iterator for RecordHeaders<'a> {
    type Item = RecordHeader<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        decode_header(&mut self.bytes)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.left as usize;
        (left, Some(left))
    }
}

impl ExactSizeIterator for RecordHeaders<'_> {}

/// The records of a batch, from its uncompressed bytes. Ends after the first error.
#[derive(Clone, Debug)]
pub struct RecordIter<'a> {
    bytes: &'a [u8],
    index: u32,
    count: u32,
}

impl<'a> RecordIter<'a> {
    /// `bytes`: what follows the batch header, opened if it was compressed. `count`: the header's record count.
    #[must_use]
    pub const fn new(bytes: &'a [u8], count: u32) -> Self {
        Self { bytes, index: 0, count }
    }
}

impl<'a> Iterator for RecordIter<'a> {
    /// Errors: [`BatchError::Record`] for a record that is torn or malformed, and after the last one for bytes left over.
    type Item = Result<Record<'a>, BatchError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let index = self.index;
        if index == self.count {
            let left_over = !core::mem::take(&mut self.bytes).is_empty();
            return left_over.then_some(Err(BatchError::Record { index }));
        }
        if let Some(record) = Record::decode(&mut self.bytes) {
            self.index += 1;
            return Some(Ok(record));
        }
        self.bytes = &[];
        self.count = index;
        Some(Err(BatchError::Record { index }))
    }
}

fn decode_header<'a>(bytes: &mut &'a [u8]) -> Option<RecordHeader<'a>> {
    Some(RecordHeader {
        key: decode_nullable(bytes)??,
        value: decode_nullable(bytes)?,
    })
}

/// A varint length and as many bytes; −1 is null, anything below is malformed.
#[inline]
fn decode_nullable<'a>(bytes: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    let length = decode_varint(bytes)?;
    if length == -1 {
        return Some(None);
    }
    let (taken, rest) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
    *bytes = rest;
    Some(Some(taken))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Length 12, delta 3 ms, offset 1, key "k", null value, one header "a" = "b".
    const WIRE: [u8; 13] = [24, 0, 6, 2, 2, b'k', 1, 2, 2, b'a', 4, b'b', b'c'];

    #[test]
    fn fields_are_read() {
        let record = Record::decode(&mut &WIRE[..]).unwrap();
        assert_eq!((record.timestamp_delta, record.offset_delta), (3, 1));
        assert_eq!((record.key, record.value), (Some(&b"k"[..]), None));
        let mut headers = record.headers;
        assert_eq!(headers.len(), 1);
        let want = RecordHeader {
            key: b"a",
            value: Some(b"bc"),
        };
        assert_eq!(headers.next(), Some(want));
        assert_eq!(headers.next(), None);
    }

    #[test]
    fn cut_or_stretched_is_refused() {
        for cut in 0..WIRE.len() {
            assert_eq!(Record::decode(&mut &WIRE[..cut]), None, "cut at {cut}");
        }
        // Every byte that is a length or a count, one up and one down: the record no longer fills its length.
        for at in [0, 4, 7, 8, 10] {
            for change in [2, -2i8 as u8] {
                let mut wire = [0; 14];
                wire[..13].copy_from_slice(&WIRE);
                wire[at] = wire[at].wrapping_add(change);
                assert_eq!(Record::decode(&mut &wire[..]), None, "byte {at} {change}");
            }
        }
    }

    #[test]
    fn a_null_header_key_and_negative_lengths_are_refused() {
        for (at, raw) in [(8, 1), (4, 3), (6, 3), (7, 1), (10, 3)] {
            let mut wire = WIRE;
            wire[at] = raw;
            assert_eq!(Record::decode(&mut &wire[..]), None, "byte {at}");
        }
        // The same record twice, but for the name of its header: empty, then null.
        assert!(Record::decode(&mut &[16, 0, 0, 0, 1, 1, 2, 0, 1][..]).is_some());
        assert_eq!(Record::decode(&mut &[16, 0, 0, 0, 1, 1, 2, 1, 1][..]), None);
    }

    #[test]
    fn the_iterator_names_the_record_and_ends() {
        let mut two = [0; 27];
        two[..13].copy_from_slice(&WIRE);
        two[13..26].copy_from_slice(&WIRE);
        let error = |index| Some(Err(BatchError::Record { index }));
        let mut left_over = RecordIter::new(&two, 2);
        assert!(left_over.next().is_some_and(|record| record.is_ok()));
        assert!(left_over.next().is_some_and(|record| record.is_ok()));
        assert_eq!(left_over.next(), error(2));
        assert_eq!(left_over.next(), None);
        let mut too_few = RecordIter::new(&two[..26], 3);
        assert_eq!(too_few.by_ref().take(2).filter(Result::is_ok).count(), 2);
        assert_eq!(too_few.next(), error(2));
        assert_eq!(too_few.next(), None);
        let mut torn = RecordIter::new(&two[..20], 2);
        assert!(torn.next().is_some_and(|record| record.is_ok()));
        assert_eq!(torn.next(), error(1));
        assert_eq!(torn.next(), None);
    }
}
