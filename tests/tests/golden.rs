//! What real clients and Kafka said to each other, decoded and written again to the same bytes.
//!
//! `tests/golden/README.md` says what lies where. A file is a frame without its length; a request's version stands in it, a
//! reply's in its file's name.

use std::fs;
use std::path::{Path, PathBuf};

use skerry_core::api::{APIS, ApiKey, Request, Response};
use skerry_core::header::{RequestHeader, ResponseHeader};
use skerry_core::wire::{BufSink, Reader};

/// Every frame, sorted by path.
fn frames() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
    let mut frames: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|client| client.unwrap().path())
        .filter(|client| client.is_dir())
        .flat_map(|client| fs::read_dir(client).unwrap().map(|frame| frame.unwrap().path()))
        .filter(|frame| frame.extension().is_some_and(|ending| ending == "bin"))
        .collect();
    frames.sort();
    frames
}

fn request_again(bytes: &[u8]) -> Vec<u8> {
    let mut r = Reader::new(bytes);
    let header = RequestHeader::decode(&mut r).unwrap();
    let request = Request::decode(header.key, header.version, &mut r).unwrap();
    assert!(r.is_empty(), "{} bytes left", r.remaining());
    let mut again = Vec::new();
    let mut out = BufSink::new(&mut again);
    header.encode(&mut out).unwrap();
    request.encode(&mut out, header.version).unwrap();
    again
}

fn reply_again(bytes: &[u8], api: ApiKey, version: i16) -> Vec<u8> {
    let mut r = Reader::new(bytes);
    let header = ResponseHeader::decode(&mut r, api, version).unwrap();
    let reply = Response::decode(api, version, &mut r).unwrap();
    assert!(r.is_empty(), "{} bytes left", r.remaining());
    let mut again = Vec::new();
    let mut out = BufSink::new(&mut again);
    header.encode(&mut out, api, version).unwrap();
    reply.encode(&mut out, version).unwrap();
    again
}

/// API and version of a file named like `Fetch-v12-long.bin` or `Fetch-v12.reply.bin`.
fn named(file: &str) -> (ApiKey, i16) {
    let (name, rest) = file.split_once("-v").unwrap();
    let version: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let api = APIS.iter().find(|api| api.name == name).unwrap();
    (api.key, version.parse().unwrap())
}

#[test]
fn golden_frames_come_out_as_they_went_in() {
    let frames = frames();
    let (mut requests, mut replies) = (0, 0);
    for path in &frames {
        let file = path.file_name().unwrap().to_str().unwrap();
        let bytes = fs::read(path).unwrap();
        let (api, version) = named(file);
        println!("{}", path.display());
        let again = if file.ends_with(".reply.bin") {
            replies += 1;
            reply_again(&bytes, api, version)
        } else {
            requests += 1;
            let header = RequestHeader::decode(&mut Reader::new(&bytes)).unwrap();
            assert_eq!(
                (header.api(), header.version),
                (Some(api), version),
                "the name says another API"
            );
            request_again(&bytes)
        };
        assert_eq!(again, bytes, "{}", path.display());
    }
    assert!(
        requests > 0 && replies > 0,
        "no golden frames: {requests} requests, {replies} replies"
    );
}
