//! Explains captured Kafka bytes: what a client sent, and what it was answered.
//!
//! ```sh
//! decode REQUESTS [REPLIES]          # one direction of a connection each, from its beginning, as a capture saves them
//! decode --hex REQUESTS [REPLIES]    # the same in hexadecimal digits, as a serial log or a wire analyser has them
//! decode --reply Metadata:8 REPLIES  # replies alone, all to the same kind of request
//! ```
//!
//! `-` is standard input. In hexadecimal, blanks, colons and line ends are left out, and so is everything after a `#`. Replies find their
//! requests by correlation id. A frame that breaks the format is named with its place, and the next one is gone on with; a
//! length that no frame has ends it.
//!
//! ```sh
//! echo '00000012 0012 0000 00000001 0008 646576696365 2d37' |
//!     cargo run --quiet --package skerry-core --example decode -- --hex -
//! ```
//!
//! prints `ApiVersions v0, correlation 1, client "device-7"` and the request's fields. With `ngrep`, `tcpflow` or Wireshark's *Follow, Raw*
//! each direction of a connection is one file.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Read;
use std::process::ExitCode;
use std::{fs, io};

use skerry_core::api::{APIS, ApiKey, Request, Response};
use skerry_core::frame;
use skerry_core::header::{RequestHeader, ResponseHeader};
use skerry_core::record::{Batches, Compression, crc32c};
use skerry_core::wire::{Reader, Records, Version};

const USAGE: &str = "usage: decode [--hex] REQUESTS [REPLIES]\n       decode [--hex] --reply API:VERSION REPLIES";
/// No frame is longer: what says so is no Kafka.
const FRAME_BYTES_MAX: usize = 100 << 20;

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: impl Iterator<Item = String>) -> Result<String, String> {
    let (mut hex, mut reply, mut files) = (false, None, Vec::new());
    let mut arguments = arguments.peekable();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--hex" => hex = true,
            "--reply" => reply = Some(parse_api(&arguments.next().ok_or(USAGE)?)?),
            "-" => files.push(argument),
            option if option.starts_with('-') => return Err(USAGE.to_owned()),
            _ => files.push(argument),
        }
    }
    let bytes = |path: &String| {
        let raw = if path == "-" {
            let mut raw = Vec::new();
            io::stdin().read_to_end(&mut raw).map(|_| raw)
        } else {
            fs::read(path)
        };
        let raw = raw.map_err(|e| format!("{path}: {e}"))?;
        if hex { from_hex(&raw) } else { Ok(raw) }
    };
    let mut out = String::new();
    let mut asked = HashMap::new();
    match (reply, files.as_slice()) {
        (Some(kind), [replies]) => explain_replies(&bytes(replies)?, |_| Some(kind), &mut out),
        (None, [requests]) => explain_requests(&bytes(requests)?, &mut asked, &mut out),
        (None, [requests, replies]) => {
            explain_requests(&bytes(requests)?, &mut asked, &mut out);
            explain_replies(&bytes(replies)?, |id| asked.get(&id).copied(), &mut out);
        }
        _ => return Err(USAGE.to_owned()),
    }
    Ok(out)
}

/// `Metadata:8`.
fn parse_api(text: &str) -> Result<(ApiKey, Version), String> {
    let (name, version) = text.split_once(':').ok_or(USAGE)?;
    let api = APIS.iter().find(|api| api.name.eq_ignore_ascii_case(name));
    let api = api.ok_or_else(|| format!("no API named {name}"))?;
    let version = version.parse().map_err(|_| format!("{version}: not a version"))?;
    Ok((api.key, version))
}

fn from_hex(text: &[u8]) -> Result<Vec<u8>, String> {
    let text = String::from_utf8_lossy(text);
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    let digits: Result<Vec<u8>, String> = lines
        .flat_map(str::chars)
        .filter(|c| !c.is_whitespace() && *c != ':')
        .map(|c| match c.to_digit(16) {
            Some(digit) => Ok(digit as u8),
            None => Err(format!("{c:?} is no hexadecimal digit")),
        })
        .collect();
    let digits = digits?;
    if digits.len() % 2 == 1 {
        return Err("an odd number of hexadecimal digits".to_owned());
    }
    Ok(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// Calls `explain` with each whole frame; says what is left at the end.
fn frames(bytes: &[u8], out: &mut String, mut explain: impl FnMut(&[u8], &mut String)) {
    let mut at = 0;
    while at < bytes.len() {
        match frame::peek(&bytes[at..], FRAME_BYTES_MAX) {
            Ok(frame) => {
                let _ = write!(out, "@{at} {} bytes: ", frame.len());
                explain(frame, out);
                at += frame::PREFIX_BYTES + frame.len();
            }
            Err(nb::Error::WouldBlock) => {
                let _ = writeln!(
                    out,
                    "@{at} the capture ends within a frame: {} bytes of it",
                    bytes.len() - at
                );
                return;
            }
            Err(nb::Error::Other(error)) => {
                let _ = writeln!(out, "@{at} {error}: not Kafka, or not from the beginning of a frame");
                return;
            }
        }
    }
}

fn explain_requests(bytes: &[u8], asked: &mut HashMap<i32, (ApiKey, Version)>, out: &mut String) {
    frames(bytes, out, |frame, out| {
        let mut r = Reader::new(frame);
        let header = match RequestHeader::decode(&mut r) {
            Ok(header) => header,
            Err(error) => {
                let _ = writeln!(out, "no request header: {error}");
                return;
            }
        };
        let name = header.api().map_or("unknown API", ApiKey::name);
        let (key, version, id) = (header.key, header.version, header.correlation_id);
        let _ = write!(out, "{name} v{version}, correlation {id}");
        match header.client_id {
            Some(client) => {
                let _ = writeln!(out, ", client {client:?}");
            }
            None => out.push('\n'),
        }
        if let Some(api) = header.api() {
            asked.insert(id, (api, version));
        }
        match Request::decode(key, version, &mut r) {
            Ok(request) => {
                let _ = writeln!(out, "  {request:?}");
                if let Request::Produce(produce) = &request {
                    for topic in produce.topic_data {
                        for data in topic.partition_data {
                            explain_records(topic.name, data.index, data.records, out);
                        }
                    }
                }
            }
            Err(error) => {
                let _ = writeln!(out, "  broken, or not declared here (key {key}): {error}");
            }
        }
        left_over(&r, out);
    });
}

fn explain_replies(bytes: &[u8], kind_of: impl Fn(i32) -> Option<(ApiKey, Version)>, out: &mut String) {
    frames(bytes, out, |frame, out| {
        let id = Reader::new(frame).i32().unwrap_or_default();
        let Some((api, version)) = kind_of(id) else {
            let _ = writeln!(out, "reply to correlation {id}, which was not asked");
            return;
        };
        let _ = writeln!(out, "reply to {} v{version}, correlation {id}", api.name());
        let mut r = Reader::new(frame);
        let reply = ResponseHeader::decode(&mut r, api, version).and_then(|_| Response::decode(api, version, &mut r));
        match reply {
            Ok(reply) => {
                let _ = writeln!(out, "  {reply:?}");
                if let Response::Fetch(fetch) = &reply {
                    for topic in fetch.responses {
                        for data in topic.partitions {
                            explain_records(topic.topic, data.partition_index, data.records, out);
                        }
                    }
                }
            }
            Err(error) => {
                let _ = writeln!(out, "  broken: {error}");
            }
        }
        left_over(&r, out);
    });
}

fn left_over(r: &Reader<'_>, out: &mut String) {
    if !r.is_empty() {
        let _ = writeln!(out, "  {} bytes are left over", r.remaining());
    }
}

fn explain_records(topic: &str, partition: i32, records: Records<'_>, out: &mut String) {
    for batch in Batches::new(records.bytes()) {
        let batch = match batch {
            Ok(batch) => batch,
            Err(error) => {
                let _ = writeln!(out, "  {topic} {partition}: {error}");
                continue;
            }
        };
        let header = batch.header();
        let sum = if batch.crc_holds(crc32c) { "right" } else { "WRONG" };
        let _ = writeln!(
            out,
            "  {topic} {partition}: batch at {}, {} records, {} bytes, checksum {sum}, producer {} epoch {} sequence {}",
            header.base_offset,
            header.count,
            batch.len_bytes(),
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
        );
        match header.attributes.compression() {
            Ok(Compression::None) => {}
            other => {
                let _ = writeln!(out, "    compressed: {other:?}");
                continue;
            }
        }
        for record in batch.records() {
            match record {
                Ok(record) => {
                    let text = |bytes: Option<&[u8]>| bytes.map(|bytes| bytes.escape_ascii().to_string());
                    let _ = write!(
                        out,
                        "    {} {:?} = {:?}",
                        header.base_offset + i64::from(record.offset_delta),
                        text(record.key),
                        text(record.value),
                    );
                    for header in record.headers {
                        let _ = write!(out, " [{}: {:?}]", header.key.escape_ascii(), text(header.value));
                    }
                    out.push('\n');
                }
                Err(error) => {
                    let _ = writeln!(out, "    {error}");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_line_does_what_it_says() {
        let hex = b"00000012 0012 0000 00000001 0008 646576696365 2d37 # a comment";
        let mut out = String::new();
        explain_requests(&from_hex(hex).unwrap(), &mut HashMap::new(), &mut out);
        assert!(
            out.contains("ApiVersions v0, correlation 1, client \"device-7\""),
            "{out}"
        );
        assert!(!out.contains("left over") && !out.contains("broken"), "{out}");
    }

    #[test]
    fn a_cut_or_foreign_stream_is_named() {
        let explained = |bytes: &[u8]| {
            let mut out = String::new();
            explain_requests(bytes, &mut HashMap::new(), &mut out);
            out
        };
        assert!(explained(&[0, 0, 0, 9, 1]).contains("ends within a frame: 5 bytes"));
        assert!(explained(b"GET / HTTP/1.1\r\n").contains("not Kafka"));
        assert!(explained(&[0, 0, 0, 4, 0, 0, 0, 0]).contains("no request header"));
        assert!(from_hex(b"0").is_err() && from_hex(b"0g").is_err());
    }
}
