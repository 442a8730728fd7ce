//! The one record that is looked for in a batch: by its time for ListOffsets, or for having no key.

use core::ops::ControlFlow;
use std::io::IoSliceMut;

use skerry_core::record::{BATCH_HEADER_BYTES, Batch, Compression, TimestampType};
use skerry_net::host::{Disk, FileId};

use super::find::Located;
use super::{ColdRange, ReadError};
use crate::unpack::{Source, Stopped, UnpackError, Unpacker};

/// The first record of a batch that is at `log_start` or after it and whose timestamp is `target` or later: its offset and time.
///
/// A batch that cannot be opened, or whose header claims a time that no record has, answers as a whole: its first offset and its largest
/// timestamp. A consumer that begins there misses nothing.
pub(super) fn find<D: Disk>(
    unpacker: &mut Unpacker,
    disk: &mut D,
    file: FileId,
    batch: &Located,
    target: i64,
    log_start: i64,
) -> Result<(i64, i64), ReadError> {
    let header = &batch.header;
    let whole = (header.base_offset.max(log_start), header.max_timestamp);
    if header.attributes.timestamp_type() == TimestampType::LogAppendTime {
        return Ok(whole);
    }
    let codec: Compression = match header.attributes.compression() {
        Ok(codec) => codec,
        Err(_) => return Ok(whole),
    };
    let mut source = Payload {
        disk,
        file,
        position: u64::from(batch.position) + BATCH_HEADER_BYTES as u64,
        end: u64::from(batch.end()),
        error: None,
    };
    let want = Want::Time { target, log_start };
    let mut scan = Scan::new(header.base_offset, header.base_timestamp, want);
    let opened = unpacker.open(codec, &mut source, &mut |bytes| scan.feed(bytes));
    if let Some(error) = source.error {
        return Err(error);
    }
    if let Err(error) = opened {
        log::warn!("a batch at offset {} cannot be opened: {error:?}", header.base_offset);
    }
    Ok(scan.found.unwrap_or(whole))
}

/// The first record without a key, by its number in the batch.
///
/// Errors: the batch cannot be opened.
pub(super) fn keyless(unpacker: &mut Unpacker, batch: &Batch<'_>) -> Result<Option<u32>, UnpackError> {
    let codec = batch.header().attributes.compression();
    let codec = codec.map_err(|_| UnpackError::Malformed)?;
    let mut scan = Scan::new(0, 0, Want::NoKey);
    unpacker.open(codec, &mut batch.payload(), &mut |bytes| scan.feed(bytes))?;
    Ok(scan.found.and_then(|(number, _)| u32::try_from(number).ok()))
}

/// The bytes after a batch's header, as far as they are in memory.
struct Payload<'d, D> {
    disk: &'d mut D,
    file: FileId,
    position: u64,
    end: u64,
    error: Option<ReadError>,
}

impl<D: Disk> Source for Payload<'_, D> {
    fn fill(&mut self, out: &mut [u8]) -> Result<usize, Stopped> {
        let left = self.end - self.position;
        let want = usize::try_from(left).unwrap_or(usize::MAX).min(out.len());
        if want == 0 {
            return Ok(0);
        }
        let out = out.get_mut(..want).unwrap_or_default();
        match self
            .disk
            .read_cached(self.file, self.position, &mut [IoSliceMut::new(out)])
        {
            Ok(n) if n > 0 => {
                self.position += n as u64;
                Ok(n)
            }
            Err(nb::Error::WouldBlock) => {
                let bytes = u32::try_from(left).unwrap_or(u32::MAX);
                self.error = Some(ReadError::Cold(ColdRange {
                    file: self.file,
                    position: self.position,
                    bytes,
                }));
                Err(Stopped)
            }
            Ok(_) | Err(nb::Error::Other(_)) => {
                self.error = Some(ReadError::Storage);
                Err(Stopped)
            }
        }
    }
}

/// What comes next in the bytes of a record. Shape: length varint ‖ attributes i8 ‖ timestamp delta varlong ‖ offset delta varint ‖ key
/// length varint (−1: no key) ‖ the rest, which is passed over.
#[derive(Clone, Copy, Debug)]
enum Field {
    Length,
    Attributes,
    Timestamp,
    Offset,
    Key,
    Rest,
}

/// What is looked for.
#[derive(Clone, Copy, Debug)]
enum Want {
    /// The first at `log_start` or after it whose time is `target` or later.
    Time { target: i64, log_start: i64 },
    /// The first without a key.
    NoKey,
}

/// Looks at records as their bytes come by, cut anywhere.
#[derive(Debug)]
struct Scan {
    base_offset: i64,
    base_timestamp: i64,
    want: Want,
    field: Field,
    /// The varint that is being read, and its bits so far.
    raw: u64,
    bits: u32,
    /// Bytes of the record that are still to come.
    left: u64,
    offset: i64,
    timestamp: i64,
    found: Option<(i64, i64)>,
}

impl Scan {
    const fn new(base_offset: i64, base_timestamp: i64, want: Want) -> Self {
        Self {
            base_offset,
            base_timestamp,
            want,
            field: Field::Length,
            raw: 0,
            bits: 0,
            left: 0,
            offset: 0,
            timestamp: 0,
            found: None,
        }
    }

    /// Takes the next bytes; breaks off when the record is found or the bytes are no records.
    fn feed(&mut self, mut bytes: &[u8]) -> ControlFlow<()> {
        while let Some((&byte, rest)) = bytes.split_first() {
            if matches!(self.field, Field::Rest) {
                let skip = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
                bytes = bytes.get(skip..).unwrap_or_default();
                self.left -= skip as u64;
                if self.left == 0 {
                    self.field = Field::Length;
                }
                continue;
            }
            bytes = rest;
            if !matches!(self.field, Field::Length) {
                let Some(left) = self.left.checked_sub(1) else {
                    return ControlFlow::Break(());
                };
                self.left = left;
            }
            if matches!(self.field, Field::Attributes) {
                self.field = Field::Timestamp;
                continue;
            }
            if self.bits > 63 {
                return ControlFlow::Break(());
            }
            self.raw |= u64::from(byte & 0x7F) << self.bits;
            self.bits += 7;
            if byte < 0x80 {
                let value = ((self.raw >> 1) as i64) ^ -((self.raw & 1) as i64);
                (self.raw, self.bits) = (0, 0);
                self.take(value)?;
            }
        }
        ControlFlow::Continue(())
    }

    fn take(&mut self, value: i64) -> ControlFlow<()> {
        match self.field {
            Field::Length => {
                let Ok(left) = u64::try_from(value) else {
                    return ControlFlow::Break(());
                };
                self.left = left;
                self.field = Field::Attributes;
            }
            Field::Timestamp => {
                self.timestamp = self.base_timestamp.saturating_add(value);
                self.field = Field::Offset;
            }
            Field::Offset => {
                self.offset = self.base_offset.saturating_add(value);
                if let Want::Time { target, log_start } = self.want
                    && self.timestamp >= target
                    && self.offset >= log_start
                {
                    return self.find();
                }
                self.field = Field::Key;
            }
            Field::Key => {
                if matches!(self.want, Want::NoKey) && value < 0 {
                    return self.find();
                }
                self.field = if self.left == 0 { Field::Length } else { Field::Rest };
            }
            Field::Attributes | Field::Rest => {}
        }
        ControlFlow::Continue(())
    }

    const fn find(&mut self) -> ControlFlow<()> {
        self.found = Some((self.offset, self.timestamp));
        ControlFlow::Break(())
    }
}

#[cfg(test)]
mod tests {
    use skerry_core::record::{BatchBuilder, crc32c};
    use skerry_core::time::Timestamp;

    use super::*;

    /// Goal: the record is found however the bytes are cut. Method: ten records of uneven times and sizes, every target, pieces of every
    /// length up to 40, against a plain search.
    #[test]
    fn cut_anywhere_the_same_record_is_found() {
        let times = [50, 40, 60, 60, 10, 70, 65, 90, 20, 5];
        let mut buffer = [0; 4096];
        let mut builder = BatchBuilder::new(&mut buffer).unwrap();
        for (n, time) in times.iter().enumerate() {
            let value = vec![7; n * 13];
            builder.push(Timestamp(*time), Some(b"k"), Some(&value), &[]).unwrap();
        }
        let payload = builder.payload().to_vec();
        let _ = builder.finish(crc32c);
        for target in 0..95 {
            for log_start in [0, 1000, 1003, 1009] {
                let expected = (1000..)
                    .zip(times)
                    .find(|(offset, time)| *time >= target && *offset >= log_start);
                for piece in 1..40 {
                    let mut scan = Scan::new(1000, times[0], Want::Time { target, log_start });
                    let _ = payload.chunks(piece).try_for_each(|bytes| scan.feed(bytes));
                    assert_eq!(scan.found, expected, "target {target} from {log_start} by {piece}");
                }
            }
        }
    }

    #[test]
    fn a_record_without_a_key_is_found_wherever_it_is() {
        for keyless in 0..4u32 {
            let mut buffer = [0; 1024];
            let mut builder = BatchBuilder::new(&mut buffer).unwrap();
            for n in 0..3 {
                // An empty key is a key.
                let key: Option<&[u8]> = if n == keyless {
                    None
                } else {
                    Some(if n == 0 { b"" } else { b"key" })
                };
                builder.push(Timestamp(5), key, Some(b"value"), &[]).unwrap();
            }
            let batch = builder.finish(crc32c);
            let found = keyless_in(&Batch::only(batch).unwrap());
            assert_eq!(found, (keyless < 3).then_some(keyless));
        }
    }

    fn keyless_in(batch: &Batch<'_>) -> Option<u32> {
        super::keyless(&mut Unpacker::new(), batch).unwrap()
    }
}
