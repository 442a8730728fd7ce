//! The codecs of record batches, for the tools: whole buffers in, whole buffers out.

use std::io::{Read, Write};

use skerry_core::record::Compression;

/// The most bytes that one batch may open to.
const OPENED_BYTES_MAX: u64 = 1 << 28;

/// What Java clients put before Snappy blocks: magic, version and compatible version. Source: `snappy-java`.
const XERIAL: &[u8; 16] = b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01";
/// Its block size.
const XERIAL_BLOCK_BYTES: usize = 32_768;

/// Compresses `plain`. Errors: what the codec says.
pub fn compress(codec: Compression, plain: &[u8]) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    let wrong = |error: &dyn std::fmt::Display| format!("cannot compress: {error}");
    match codec {
        Compression::None => out.extend_from_slice(plain),
        Compression::Gzip => {
            let mut encoder = flate2::write::GzEncoder::new(&mut out, flate2::Compression::default());
            encoder
                .write_all(plain)
                .and_then(|()| encoder.finish().map(drop))
                .map_err(|e| wrong(&e))?;
        }
        Compression::Snappy => {
            out.extend_from_slice(XERIAL);
            for block in plain.chunks(XERIAL_BLOCK_BYTES) {
                let block = snap::raw::Encoder::new().compress_vec(block).map_err(|e| wrong(&e))?;
                let length = u32::try_from(block.len()).map_err(|e| wrong(&e))?;
                out.extend_from_slice(&length.to_be_bytes());
                out.extend_from_slice(&block);
            }
        }
        Compression::Lz4 => {
            let mut encoder = lz4_flex::frame::FrameEncoder::new(&mut out);
            encoder.write_all(plain).map_err(|e| wrong(&e))?;
            encoder.finish().map_err(|e| wrong(&e))?;
        }
        Compression::Zstd => {
            out = ruzstd::encoding::compress_to_vec(plain, ruzstd::encoding::CompressionLevel::Fastest);
        }
    }
    Ok(out)
}

/// Opens what [`compress`], or any Kafka client, made. Errors: what the codec says, or that it opens to too much.
pub fn open(codec: Compression, packed: &[u8]) -> Result<Vec<u8>, String> {
    match codec {
        Compression::None => Ok(packed.to_vec()),
        Compression::Gzip => read(flate2::read::MultiGzDecoder::new(packed)),
        Compression::Snappy => open_snappy(packed),
        Compression::Lz4 => read(lz4_flex::frame::FrameDecoder::new(packed)),
        Compression::Zstd => read(ruzstd::decoding::StreamingDecoder::new(packed).map_err(|e| e.to_string())?),
    }
}

fn read(decoder: impl Read) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    decoder
        .take(OPENED_BYTES_MAX + 1)
        .read_to_end(&mut out)
        .map_err(|error| error.to_string())?;
    if out.len() as u64 > OPENED_BYTES_MAX {
        return Err(format!("opens to more than {OPENED_BYTES_MAX} bytes"));
    }
    Ok(out)
}

/// Xerial's blocks, or one raw block as librdkafka writes it.
fn open_snappy(packed: &[u8]) -> Result<Vec<u8>, String> {
    let block = |bytes: &[u8], out: &mut Vec<u8>| {
        let opened = snap::raw::decompress_len(bytes).map_err(|error| error.to_string())?;
        if (out.len() + opened) as u64 > OPENED_BYTES_MAX {
            return Err(format!("opens to more than {OPENED_BYTES_MAX} bytes"));
        }
        out.extend(
            snap::raw::Decoder::new()
                .decompress_vec(bytes)
                .map_err(|error| error.to_string())?,
        );
        Ok(())
    };
    let mut out = Vec::new();
    if !packed.starts_with(XERIAL.first_chunk::<8>().unwrap_or(&[0; 8])) {
        block(packed, &mut out)?;
        return Ok(out);
    }
    let mut rest = packed.get(XERIAL.len()..).ok_or("cut short")?;
    while let Some((length, after)) = rest.split_first_chunk() {
        let (bytes, after) = after
            .split_at_checked(u32::from_be_bytes(*length) as usize)
            .ok_or("cut short")?;
        block(bytes, &mut out)?;
        rest = after;
    }
    if rest.is_empty() {
        Ok(out)
    } else {
        Err("cut short".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODECS: [Compression; 5] = [
        Compression::None,
        Compression::Gzip,
        Compression::Snappy,
        Compression::Lz4,
        Compression::Zstd,
    ];

    #[test]
    fn every_codec_opens_what_it_made() {
        let long: Vec<u8> = (0..200_000_u32).map(|i| (i / 7 % 251) as u8).collect();
        for codec in CODECS {
            for plain in [&b""[..], b"a", b"a record, a record, a record", &long] {
                let packed = compress(codec, plain).unwrap();
                assert_eq!(open(codec, &packed).unwrap(), plain, "{codec:?}");
            }
        }
    }

    #[test]
    fn raw_snappy_is_opened_too() {
        let packed = snap::raw::Encoder::new().compress_vec(b"raw raw raw raw").unwrap();
        assert_eq!(open(Compression::Snappy, &packed).unwrap(), b"raw raw raw raw");
    }

    #[test]
    fn what_is_cut_is_an_error() {
        let plain: Vec<u8> = (0..3000_u32).map(|i| (i / 5) as u8).collect();
        // An LZ4 frame may end between blocks as far as its crate cares; the batch's records then run short.
        for codec in [Compression::Gzip, Compression::Snappy, Compression::Zstd] {
            let packed = compress(codec, &plain).unwrap();
            // Xerial's header alone is what an empty payload looks like.
            let first = if codec == Compression::Snappy {
                XERIAL.len() + 1
            } else {
                1
            };
            for cut in first..packed.len() {
                let opened = open(codec, &packed[..cut]);
                assert!(opened.is_err(), "{codec:?} cut at {cut} of {}", packed.len());
            }
        }
    }
}
