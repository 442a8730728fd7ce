//! The codec against the independent `kafka-protocol` crate: every message, every version, both directions.
//!
//! Random messages are written as bytes from the tables ([`skerry_tests::arbitrary`]), then read and written by both. The seed
//! of a failure is in its message.

use std::fmt::{self, Write as _};

use bytes::{Buf, Bytes, BytesMut};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::{self as theirs, RequestKind, ResponseKind};
use kafka_protocol::protocol::{Decodable, Encodable};
use skerry_core::api::{APIS, Api, ApiKey, Request, Response, consumer_protocol};
use skerry_core::error_code::ErrorCode;
use skerry_core::header::{RequestHeader, ResponseHeader};
use skerry_core::wire::{BufSink, DecodeError, Field, Full, Message, Reader, Version};
use skerry_tests::arbitrary;
use skerry_tests::rng::Rng;

/// Messages per kind and version.
const MESSAGES: u64 = 40;

#[derive(Clone, Copy, Debug)]
enum Direction {
    Request,
    Response,
}

/// One kind of message in one version, with a verb for each codec.
#[derive(Clone, Copy)]
struct Case {
    api: Api,
    version: Version,
    direction: Direction,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?} v{}", self.api.name, self.direction, self.version)
    }
}

enum Ours<'a> {
    Request(Request<'a>),
    Response(Response<'a>),
}

impl Ours<'_> {
    fn encode(&self, version: Version) -> Result<Vec<u8>, Full> {
        let mut bytes = Vec::new();
        let mut out = BufSink::new(&mut bytes);
        match self {
            Self::Request(request) => request.encode(&mut out, version)?,
            Self::Response(response) => response.encode(&mut out, version)?,
        }
        Ok(bytes)
    }

    /// Walks every array to its end: whatever decoding let pass is looked at here.
    fn walk(&self) {
        struct Nowhere;
        impl fmt::Write for Nowhere {
            fn write_str(&mut self, _: &str) -> fmt::Result {
                Ok(())
            }
        }
        match self {
            Self::Request(request) => write!(Nowhere, "{request:?}"),
            Self::Response(response) => write!(Nowhere, "{response:?}"),
        }
        .unwrap();
    }
}

impl Case {
    fn all() -> impl Iterator<Item = Self> {
        APIS.iter().flat_map(|api| {
            (api.versions.min..=api.versions.max).flat_map(|version| {
                [Direction::Request, Direction::Response].map(|direction| Self {
                    api: *api,
                    version,
                    direction,
                })
            })
        })
    }

    fn fields(&self) -> &'static [Field] {
        match self.direction {
            Direction::Request => self.api.key.tables().0,
            Direction::Response => self.api.key.tables().1,
        }
    }

    fn message(&self, seed: u64) -> Vec<u8> {
        let flexible = self.api.key.is_flexible(self.version);
        arbitrary::message(self.fields(), self.version, flexible, &mut Rng::new(seed))
    }

    fn decode<'a>(&self, r: &mut Reader<'a>) -> Result<Ours<'a>, DecodeError> {
        match self.direction {
            Direction::Request => Request::decode(self.api.key as i16, self.version, r).map(Ours::Request),
            Direction::Response => Response::decode(self.api.key, self.version, r).map(Ours::Response),
        }
    }

    /// Decodes all of `bytes` with our codec and writes them again.
    fn ours(&self, bytes: &[u8]) -> Vec<u8> {
        let mut r = Reader::new(bytes);
        let message = self.decode(&mut r).unwrap_or_else(|error| panic!("{self}: {error}"));
        assert!(r.is_empty(), "{self}: {} bytes left", r.remaining());
        message.walk();
        message.encode(self.version).unwrap()
    }

    /// The same with theirs.
    fn theirs(&self, bytes: &[u8]) -> Vec<u8> {
        let key = theirs::ApiKey::try_from(self.api.key as i16).unwrap();
        let mut bytes = Bytes::copy_from_slice(bytes);
        let mut out = BytesMut::new();
        match self.direction {
            Direction::Request => RequestKind::decode(key, &mut bytes, self.version)
                .and_then(|request| request.encode(&mut out, self.version)),
            Direction::Response => ResponseKind::decode(key, &mut bytes, self.version)
                .and_then(|response| response.encode(&mut out, self.version)),
        }
        .unwrap_or_else(|error| panic!("{self}: {error:?}"));
        assert!(
            !bytes.has_remaining(),
            "{self}: {} bytes left by kafka-protocol",
            bytes.remaining()
        );
        out.to_vec()
    }
}

#[test]
fn every_message_and_version_is_read_and_written_alike_by_both() {
    for case in Case::all() {
        for seed in 0..MESSAGES {
            let bytes = case.message(seed);
            let ours = case.ours(&bytes);
            assert_eq!(ours, bytes, "{case} seed {seed}: written again by us");
            let theirs = case.theirs(&ours);
            assert_eq!(theirs, ours, "{case} seed {seed}: written again by kafka-protocol");
            assert_eq!(case.ours(&theirs), ours, "{case} seed {seed}: and by us once more");
        }
    }
}

#[test]
fn every_proper_prefix_asks_for_more() {
    for case in Case::all() {
        for seed in 0..MESSAGES / 8 {
            let bytes = case.message(seed);
            for cut in 0..bytes.len() {
                let error = case.decode(&mut Reader::new(&bytes[..cut])).err();
                assert_eq!(error, Some(DecodeError::Short), "{case} seed {seed} cut at {cut}");
            }
        }
    }
}

#[test]
fn broken_bytes_are_an_error_or_another_message() {
    for case in Case::all() {
        let mut random = Rng::new(7);
        for seed in 0..MESSAGES {
            let mut bytes = case.message(seed);
            for _ in 0..1 + random.below(3) {
                if let Some(place) = bytes.len().checked_sub(1) {
                    let place = random.index(place + 1);
                    bytes[place] = random.next_u64() as u8;
                }
            }
            let Ok(message) = case.decode(&mut Reader::new(&bytes)) else {
                continue;
            };
            message.walk();
            // What could be read can be written, and is then in canonical form.
            let again = message.encode(case.version).unwrap();
            assert_eq!(case.ours(&again), again, "{case} seed {seed}");
        }
    }
}

#[test]
fn headers_are_read_and_written_alike_by_both() {
    for api in APIS {
        let key = theirs::ApiKey::try_from(api.key as i16).unwrap();
        for version in api.versions.min..=api.versions.max {
            for client_id in [None, Some(""), Some("a client")] {
                let ours = RequestHeader::new(api.key, version, 77, client_id);
                let mut bytes = Vec::new();
                ours.encode(&mut BufSink::new(&mut bytes)).unwrap();
                assert_eq!(RequestHeader::decode(&mut Reader::new(&bytes)), Ok(ours));
                let mut read = Bytes::copy_from_slice(&bytes);
                let header_version = key.request_header_version(version);
                let theirs = theirs::RequestHeader::decode(&mut read, header_version).unwrap();
                assert!(!read.has_remaining(), "{} v{version}", api.name);
                assert_eq!(theirs.request_api_key, api.key as i16);
                assert_eq!(theirs.request_api_version, version);
                assert_eq!(theirs.correlation_id, 77);
                assert_eq!(theirs.client_id.as_deref(), client_id);
                let mut written = BytesMut::new();
                theirs.encode(&mut written, header_version).unwrap();
                assert_eq!(written, bytes);
            }
            let mut bytes = Vec::new();
            let ours = ResponseHeader { correlation_id: 99 };
            ours.encode(&mut BufSink::new(&mut bytes), api.key, version).unwrap();
            assert_eq!(bytes.len(), ResponseHeader::encoded_len(api.key, version));
            assert_eq!(
                ResponseHeader::decode(&mut Reader::new(&bytes), api.key, version),
                Ok(ours)
            );
            let mut written = BytesMut::new();
            let theirs = theirs::ResponseHeader::default().with_correlation_id(99);
            theirs
                .encode(&mut written, key.response_header_version(version))
                .unwrap();
            assert_eq!(written, bytes, "{} v{version}", api.name);
        }
    }
}

#[test]
fn the_consumer_protocol_is_read_and_written_alike_by_both() {
    fn check<'a, M: Message<'a>, T: Encodable + Decodable>(version: Version, bytes: &'a [u8]) {
        let mut r = Reader::new(bytes);
        let message = M::decode(&mut r, version).unwrap();
        assert!(r.is_empty());
        let mut ours = Vec::new();
        message.encode(&mut BufSink::new(&mut ours), version).unwrap();
        assert_eq!(ours, bytes);
        let mut read = Bytes::copy_from_slice(bytes);
        let mut theirs = BytesMut::new();
        T::decode(&mut read, version)
            .unwrap()
            .encode(&mut theirs, version)
            .unwrap();
        assert!(!read.has_remaining());
        assert_eq!(theirs, bytes);
    }
    fn checks<M: for<'a> MessageOf<'a>, T: Encodable + Decodable>() {
        for version in 0..=3 {
            for seed in 0..MESSAGES {
                let bytes = arbitrary::message(M::FIELDS, version, false, &mut Rng::new(seed));
                M::check::<T>(version, &bytes);
            }
        }
    }
    trait MessageOf<'a> {
        const FIELDS: &'static [Field];
        fn check<T: Encodable + Decodable>(version: Version, bytes: &'a [u8]);
    }
    impl<'a> MessageOf<'a> for consumer_protocol::ConsumerProtocolSubscription<'static> {
        const FIELDS: &'static [Field] = <Self as skerry_core::wire::Table>::FIELDS;
        fn check<T: Encodable + Decodable>(version: Version, bytes: &'a [u8]) {
            check::<consumer_protocol::ConsumerProtocolSubscription<'a>, T>(version, bytes);
        }
    }
    impl<'a> MessageOf<'a> for consumer_protocol::ConsumerProtocolAssignment<'static> {
        const FIELDS: &'static [Field] = <Self as skerry_core::wire::Table>::FIELDS;
        fn check<T: Encodable + Decodable>(version: Version, bytes: &'a [u8]) {
            check::<consumer_protocol::ConsumerProtocolAssignment<'a>, T>(version, bytes);
        }
    }
    checks::<consumer_protocol::ConsumerProtocolSubscription<'static>, theirs::ConsumerProtocolSubscription>();
    checks::<consumer_protocol::ConsumerProtocolAssignment<'static>, theirs::ConsumerProtocolAssignment>();
}

#[test]
fn error_codes_have_kafkas_names_and_retriable_flags() {
    for code in ErrorCode::ALL.iter().filter(|code| !code.is_none()) {
        let theirs = ResponseError::try_from_code(code.0).unwrap();
        let flat = |name: &str| name.replace('_', "").to_lowercase();
        let name = code.name().unwrap();
        assert_eq!(flat(name), flat(&format!("{theirs:?}")));
        // Kafka made this one retriable; the other crate has not followed.
        let retriable = theirs.is_retriable() || *code == ErrorCode::CONCURRENT_TRANSACTIONS;
        assert_eq!(code.is_retriable(), retriable, "{name}");
    }
}

#[test]
fn undeclared_keys_and_versions_are_told_apart() {
    let bytes = [0; 16];
    let error = |key, version| Request::decode(key, version, &mut Reader::new(&bytes)).unwrap_err();
    assert_eq!(error(9999, 0), DecodeError::ApiKey);
    for api in APIS {
        assert_eq!(error(api.key as i16, api.versions.max + 1), DecodeError::Version);
        assert_eq!(error(api.key as i16, -1), DecodeError::Version);
        assert_eq!(ApiKey::from_wire(api.key as i16), Some(api.key));
    }
}
