//! Any bytes as a connection's input: frames are found in the same places wherever the stream is cut, and each header is an
//! error or can be written again.
//!
//! The first byte chooses the largest frame, the second where the stream is cut.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skerry_core::api::Request;
use skerry_core::frame::{PREFIX_BYTES, peek, peek_len};
use skerry_core::header::RequestHeader;
use skerry_core::wire::{BufSink, Reader};
use skerry_fuzz::walk;

fuzz_target!(|data: &[u8]| {
    let Some(([bytes_max, cut], stream)) = data.split_first_chunk() else {
        return;
    };
    let bytes_max = usize::from(*bytes_max) * 8;
    let mut rest = stream;
    loop {
        let short = &rest[..rest.len() * usize::from(*cut) / 256];
        match (peek(short, bytes_max), peek(rest, bytes_max)) {
            (Err(nb::Error::WouldBlock), _) => {}
            (early, late) => assert_eq!(early, late, "more bytes change nothing"),
        }
        let Ok(frame) = peek(rest, bytes_max) else { break };
        assert_eq!(peek_len(rest, bytes_max), Ok(frame.len()));
        assert!(frame.len() <= bytes_max);
        request(frame);
        rest = &rest[PREFIX_BYTES + frame.len()..];
    }
});

fn request(frame: &[u8]) {
    let mut r = Reader::new(frame);
    let Ok(header) = RequestHeader::decode(&mut r) else {
        return;
    };
    let mut again = Vec::new();
    header
        .encode(&mut BufSink::new(&mut again))
        .expect("what was read can be written");
    assert_eq!(RequestHeader::decode(&mut Reader::new(&again)), Ok(header));
    if let Ok(request) = Request::decode(header.key, header.version, &mut r) {
        assert!(header.is_declared());
        walk(&request);
    }
}
