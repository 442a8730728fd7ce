//! Every codec against an encoder of other people's.

use std::io::Write;

use skerry_core::record::Compression;

use super::*;

/// Bytes in pieces of uneven sizes; stops for good after `stop`.
struct Pieces<'a> {
    bytes: &'a [u8],
    step: usize,
    stop: usize,
}

impl Source for Pieces<'_> {
    fn fill(&mut self, out: &mut [u8]) -> Result<usize, Stopped> {
        if self.stop == 0 {
            return Err(Stopped);
        }
        self.step = self.step * 31 % 97 + 1;
        let n = self.step.min(out.len()).min(self.bytes.len()).min(self.stop);
        out[..n].copy_from_slice(&self.bytes[..n]);
        self.bytes = &self.bytes[n..];
        self.stop -= n;
        Ok(n)
    }
}

fn open(unpacker: &mut Unpacker, codec: Compression, bytes: &[u8]) -> Result<Vec<u8>, UnpackError> {
    let mut opened = Vec::new();
    let mut source = Pieces {
        bytes,
        step: 7,
        stop: usize::MAX,
    };
    unpacker
        .open(codec, &mut source, &mut |bytes| {
            opened.extend_from_slice(bytes);
            ControlFlow::Continue(())
        })
        .map(|()| opened)
}

fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    std::iter::repeat_with(next).take(bytes).collect()
}

/// Nothing, a little, text that repeats near and far, noise, and all of it over many windows.
fn contents() -> Vec<Vec<u8>> {
    let text: Vec<u8> = (0..40_000)
        .flat_map(|n| format!("record {} of {}; ", n % 977, n / 13).into_bytes())
        .collect();
    let mixed: Vec<u8> = noise(40_000)
        .into_iter()
        .chain(text.iter().copied())
        .chain(noise(40_000))
        .collect();
    vec![vec![], b"a".to_vec(), vec![0; 150_000], text, noise(50_000), mixed]
}

fn xerial(content: &[u8]) -> Vec<u8> {
    let mut framed = b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01".to_vec();
    for block in content.chunks(32 * 1024) {
        let block = snap::raw::Encoder::new().compress_vec(block).unwrap();
        framed.extend((block.len() as u32).to_be_bytes());
        framed.extend(block);
    }
    framed
}

fn gzip(content: &[u8], level: u32) -> Vec<u8> {
    let named = flate2::GzBuilder::new().filename("n").comment("c").extra(vec![1; 20]);
    let mut encoder = named.write(Vec::new(), flate2::Compression::new(level));
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn lz4(content: &[u8]) -> Vec<Vec<u8>> {
    use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
    let mut all = Vec::new();
    for size in [BlockSize::Max64KB, BlockSize::Max256KB, BlockSize::Max4MB] {
        for (mode, sums) in [
            (BlockMode::Independent, false),
            (BlockMode::Linked, false),
            (BlockMode::Linked, true),
        ] {
            let mut info = FrameInfo::new()
                .block_size(size)
                .block_mode(mode)
                .block_checksums(sums)
                .content_checksum(sums);
            if sums {
                info = info.content_size(Some(content.len() as u64));
            }
            let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
            encoder.write_all(content).unwrap();
            all.push(encoder.finish().unwrap());
        }
    }
    all
}

fn zstd(content: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(content, ruzstd::encoding::CompressionLevel::Fastest)
}

/// Everything that the encoders make of some content.
fn packed(content: &[u8]) -> Vec<(Compression, Vec<u8>)> {
    let mut all = vec![
        (Compression::None, content.to_vec()),
        (Compression::Gzip, gzip(content, 1)),
        (Compression::Gzip, gzip(content, 9)),
        (Compression::Snappy, xerial(content)),
        (
            Compression::Snappy,
            snap::raw::Encoder::new().compress_vec(content).unwrap(),
        ),
        (Compression::Zstd, zstd(content)),
    ];
    all.extend(lz4(content).into_iter().map(|bytes| (Compression::Lz4, bytes)));
    all
}

#[test]
fn what_other_encoders_made_is_opened() {
    let mut unpacker = Unpacker::new();
    for content in contents() {
        for (n, (codec, bytes)) in packed(&content).into_iter().enumerate() {
            let opened = open(&mut unpacker, codec, &bytes);
            assert!(
                opened.as_ref() == Ok(&content),
                "{codec:?} ({n}) of {} bytes: {:?}",
                content.len(),
                opened.err()
            );
        }
    }
}

/// What franz-go sends: the whole batch as one block, with references over hundreds of KiB (klauspost's encoder).
#[test]
fn a_raw_snappy_block_may_refer_far_back() {
    let literal = noise(700_000);
    let (distance, bytes) = (650_000u32, 64);
    let mut block = vec![];
    let mut length = literal.len() + bytes;
    while length >= 0x80 {
        block.push(length as u8 | 0x80);
        length >>= 7;
    }
    block.push(length as u8);
    // A literal whose length takes three bytes, then a copy whose distance takes four.
    block.push(62 << 2);
    block.extend(&(literal.len() as u32 - 1).to_le_bytes()[..3]);
    block.extend(&literal);
    block.push((bytes as u8 - 1) << 2 | 3);
    block.extend(distance.to_le_bytes());

    let opened = open(&mut Unpacker::new(), Compression::Snappy, &block).unwrap();
    let from = literal.len() - distance as usize;
    assert!(opened == [&literal[..], &literal[from..from + bytes]].concat());
}

#[test]
fn two_frames_are_opened_one_after_the_other() {
    let mut unpacker = Unpacker::new();
    for (codec, once) in packed(b"some bytes, some bytes")
        .into_iter()
        .filter(|(codec, _)| *codec != Compression::Snappy)
    {
        let twice = [once.clone(), once].concat();
        assert_eq!(
            open(&mut unpacker, codec, &twice).unwrap(),
            b"some bytes, some bytessome bytes, some bytes"
        );
    }
}

#[test]
fn a_receiver_that_has_enough_is_shown_no_more() {
    let content = &contents()[3];
    for (codec, bytes) in packed(content) {
        let mut shown = 0;
        let mut source = bytes.as_slice();
        let result = Unpacker::new().open(codec, &mut source, &mut |bytes| {
            assert_eq!(shown, 0, "{codec:?} shows after the end");
            shown += bytes.len();
            ControlFlow::Break(())
        });
        assert_eq!(result, Ok(()));
        assert!(shown > 0 && shown < content.len(), "{codec:?}: {shown}");
    }
}

#[test]
fn a_source_that_stops_is_not_taken_for_an_end() {
    let content = &contents()[3][..20_000];
    for (codec, bytes) in packed(content) {
        for stop in (0..bytes.len()).step_by(1 + bytes.len() / 50) {
            let mut source = Pieces {
                bytes: &bytes,
                step: 3,
                stop,
            };
            let result = Unpacker::new().open(codec, &mut source, &mut |_| ControlFlow::Continue(()));
            assert_eq!(result, Err(UnpackError::Stopped), "{codec:?} at {stop}");
        }
    }
}

/// 40 MB in 1200 bytes: blocks of one byte repeated (RFC 8878 §3.1.1.2).
fn zstd_bomb() -> Vec<u8> {
    let mut bytes = vec![0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x58];
    for block in 0..320u32 {
        let header = u32::from(block == 319) | 1 << 1 | (128 << 10) << 3;
        bytes.extend(&header.to_le_bytes()[..3]);
        bytes.push(7);
    }
    bytes
}

#[test]
fn bombs_stop_at_the_bound() {
    let mut unpacker = Unpacker::new();
    // The bound is the window's, whatever the codec.
    let (bomb, mut shown) = (zstd_bomb(), 0);
    let result = unpacker.open(Compression::Zstd, &mut bomb.as_slice(), &mut |bytes| {
        shown += bytes.len();
        ControlFlow::Continue(())
    });
    assert_eq!(result, Err(UnpackError::TooLarge));
    assert!(shown <= 32 << 20);
    // A window of 2^40 bytes is a claim.
    let claim = [0x28, 0xB5, 0x2F, 0xFD, 0x00, 0xF0, 1, 0, 0];
    assert!(open(&mut unpacker, Compression::Zstd, &claim).is_err());
}

/// Goal: bytes from anybody neither panic nor hang, and the next batch is opened as if nothing had been. Method: every encoding of a
/// small content cut at every length and with bits flipped, and plain noise.
#[test]
fn broken_bytes_are_refused_and_leave_nothing_behind() {
    let mut unpacker = Unpacker::new();
    let content = &contents()[3][..3000];
    for (codec, bytes) in packed(content)
        .into_iter()
        .filter(|(codec, _)| *codec != Compression::None)
    {
        for cut in 0..bytes.len() {
            let opened = open(&mut unpacker, codec, &bytes[..cut]);
            assert!(
                opened.as_deref() != Ok(content) || cut + 16 > bytes.len(),
                "{codec:?} cut at {cut}"
            );
        }
        for bit in (0..bytes.len() * 8).step_by(7) {
            let mut bad = bytes.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let _ = open(&mut unpacker, codec, &bad);
        }
        assert_eq!(
            open(&mut unpacker, codec, &bytes).as_deref(),
            Ok(content),
            "{codec:?} after broken ones"
        );
    }
    for codec in [
        Compression::Gzip,
        Compression::Snappy,
        Compression::Lz4,
        Compression::Zstd,
    ] {
        let noise = noise(5000);
        for start in 0..200 {
            let _ = open(&mut unpacker, codec, &noise[start..]);
        }
    }
}
