//! The record layer over every provider: RFC 8448's records, what every version and suite looks like on the wire, limits at their edges, and
//! records that were touched.
#![cfg(feature = "fast")]

use skerry_tls::cause::Cause;
use skerry_tls::crypto::fast::Fast;
use skerry_tls::crypto::{Aead as _, AeadAlgorithm, Provider, TAG_BYTES};
use skerry_tls::record::{
    CONTENT_BYTES_MAX, ContentType, EMPTY_RECORDS_MAX, HEADER_BYTES, Nonces, Peek, RECORD_BYTES_MAX, ReadHalf,
    SizeLimits, TrafficKeys, WriteHalf,
};

/// What protects a direction in a test.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Protection {
    Plain,
    Tls12(AeadAlgorithm),
    Tls13(AeadAlgorithm),
}

use AeadAlgorithm::{Aes128Gcm, Aes256Gcm, ChaCha20Poly1305};
use Protection::{Plain, Tls12, Tls13};

const EVERY: [Protection; 7] = [
    Plain,
    Tls12(Aes128Gcm),
    Tls12(Aes256Gcm),
    Tls12(ChaCha20Poly1305),
    Tls13(Aes128Gcm),
    Tls13(Aes256Gcm),
    Tls13(ChaCha20Poly1305),
];

const KEY: [u8; 32] = *b"a key of thirty-two bytes, or 16";
const IV: [u8; 12] = *b"twelve bytes";

fn keys<P: Provider>(provider: &P, protection: Protection) -> Option<TrafficKeys<P>> {
    match protection {
        Plain => None,
        Tls12(aead) => {
            let fixed = &IV[..skerry_tls::record::fixed_iv_bytes(aead)];
            Some(TrafficKeys::tls12(provider, aead, &KEY[..aead.key_bytes()], fixed).unwrap())
        }
        Tls13(aead) => Some(TrafficKeys::tls13(provider, aead, &KEY[..aead.key_bytes()], IV).unwrap()),
    }
}

fn halves<P: Provider>(provider: &P, protection: Protection) -> (WriteHalf<P>, ReadHalf<P>) {
    let (mut write, mut read) = (WriteHalf::plain(), ReadHalf::plain());
    if let Some(keys) = keys(provider, protection) {
        write.install(keys);
    }
    if let Some(keys) = keys(provider, protection) {
        read.install(keys);
    }
    (write, read)
}

/// One record, sealed.
fn seal<P: Provider>(write: &mut WriteHalf<P>, kind: ContentType, content: &[u8], padding: usize) -> Vec<u8> {
    let (before, after) = write.overhead();
    let mut slot = vec![0xee; before + content.len() + padding + after];
    slot[before..before + content.len()].copy_from_slice(content);
    let bytes = write.seal_padded(kind, &mut slot, content.len(), padding).unwrap();
    assert_eq!(bytes, slot.len());
    slot
}

/// A TLS 1.3 record around any inner plaintext at all, as [`Fast`] or whoever seals it.
fn sealed_13<P: Provider>(provider: &P, sequence: u64, inner: &[u8]) -> Vec<u8> {
    let aead = provider.aead(Aes128Gcm, &KEY[..16]).unwrap();
    let mut nonce = IV;
    for (byte, counted) in nonce[4..].iter_mut().zip(sequence.to_be_bytes()) {
        *byte ^= counted;
    }
    let length = u16::try_from(inner.len() + TAG_BYTES).unwrap().to_be_bytes();
    let mut record = [&[23, 3, 3, length[0], length[1]], inner].concat();
    let (header, body) = record.split_at_mut(HEADER_BYTES);
    let tag = aead.seal(&nonce, header, body).unwrap();
    record.extend(tag);
    record
}

/// What a stream that begins with these bytes gives.
fn first<P: Provider>(read: &mut ReadHalf<P>, input: &[u8]) -> Result<Option<(ContentType, Vec<u8>)>, Cause> {
    match read.peek(input)? {
        Peek::Need(more) => {
            assert!(more > 0);
            Ok(None)
        }
        Peek::Whole { bytes, .. } => {
            let mut record = input[..bytes].to_vec();
            let opened = read.open(&mut record)?;
            Ok(Some((opened.kind, opened.content.to_vec())))
        }
    }
}

fn room<P: Provider>(read: &ReadHalf<P>, record: &[u8]) -> usize {
    match read.peek(record) {
        Ok(Peek::Whole { kind, bytes }) => read.room(kind, bytes),
        other => panic!("{other:?}"),
    }
}

fn refused<P: Provider>(read: &mut ReadHalf<P>, input: &[u8]) -> Cause {
    first(read, input).expect_err("refused")
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|at| (at * 7 + at / 251) as u8).collect()
}

/// A plain header and so many bytes.
fn record(kind: u8, version: u16, fragment: &[u8]) -> Vec<u8> {
    let length = u16::try_from(fragment.len()).unwrap();
    [&[kind][..], &version.to_be_bytes(), &length.to_be_bytes(), fragment].concat()
}

/// Goal: records are what RFC 8448 says, byte for byte, both ways.
/// Method: each protected record of its five traces is opened, in place and into another buffer, and sealed again, at its place in the sequence.
fn rfc8448<P: Provider>(provider: &P) {
    let mut count = 0;
    for line in include_str!("rfc8448_records.txt")
        .lines()
        .filter(|l| !l.starts_with('#'))
    {
        let words: Vec<&str> = line.split(' ').collect();
        let [trace, sender, key, iv, sequence, kind, content, sealed] = words[..] else {
            panic!("{line}");
        };
        let (key, content, sealed) = (unhex(key), unhex(content), unhex(sealed));
        let iv: [u8; 12] = unhex(iv).try_into().unwrap();
        let keys = || TrafficKeys::tls13(provider, Aes128Gcm, &key, iv).unwrap();
        let (mut write, mut read, mut read_into) = (WriteHalf::plain(), ReadHalf::plain(), ReadHalf::plain());
        write.install(keys());
        read.install(keys());
        read_into.install(keys());
        for _ in 0..sequence.parse::<u64>().unwrap() {
            let before = seal(&mut write, ContentType::ApplicationData, b"before", 0);
            first(&mut read, &before).unwrap();
            first(&mut read_into, &before).unwrap();
        }
        let kind = ContentType::from_wire(kind.parse().unwrap()).unwrap();
        assert_eq!(
            first(&mut read, &sealed),
            Ok(Some((kind, content.clone()))),
            "{trace} {sender}"
        );
        let mut out = vec![0; room(&read_into, &sealed)];
        let opened = read_into.open_into(&sealed, &mut out).unwrap();
        assert_eq!((opened.kind, &*opened.content), (kind, &content[..]));
        assert_eq!(seal(&mut write, kind, &content, 0), sealed, "{trace} {sender}");
        count += 1;
    }
    assert_eq!(count, 27);
}

/// The fixed parts of a record, as the RFCs draw it.
fn shapes<P: Provider>(provider: &P) {
    for protection in EVERY {
        let (mut write, _) = halves(provider, protection);
        seal(&mut write, ContentType::ApplicationData, b"number 0", 0);
        let sealed = seal(&mut write, ContentType::Alert, b"\x01\x00", 0);
        let sequence = [0, 0, 0, 0, 0, 0, 0, 1];
        let xored = *b"twelve byte\x72";
        match protection {
            Plain => assert_eq!(sealed, [21, 3, 3, 0, 2, 1, 0]),
            Tls12(algorithm) => {
                let aead = provider.aead(algorithm, &KEY[..algorithm.key_bytes()]).unwrap();
                let aad = [&sequence[..], &[21, 3, 3, 0, 2]].concat();
                let (nonce, explicit) = match algorithm {
                    ChaCha20Poly1305 => (xored, &[][..]),
                    Aes128Gcm | Aes256Gcm => (*b"twel\0\0\0\0\0\0\0\x01", &sequence[..]),
                };
                let mut content = [1, 0];
                let tag = aead.seal(&nonce, &aad, &mut content).unwrap();
                let fragment = [explicit, &content, &tag].concat();
                assert_eq!(sealed, record(21, 0x0303, &fragment));
            }
            Tls13(algorithm) => {
                let aead = provider.aead(algorithm, &KEY[..algorithm.key_bytes()]).unwrap();
                let mut inner = [1, 0, 21];
                let tag = aead.seal(&xored, &[23, 3, 3, 0, 19], &mut inner).unwrap();
                assert_eq!(sealed, record(23, 0x0303, &[&inner[..], &tag].concat()));
            }
        }
    }
}

/// Goal: whatever is sealed is opened again, and nothing beside it is touched.
/// Method: each protection with sizes around every block and bound, several records in a row, all padding that fits.
fn round_trips<P: Provider>(provider: &P) {
    let sizes = (1..70).chain([255, 256, 257, 511, 512, 1024, 4095, 16_000, 16_383, 16_384]);
    for protection in EVERY {
        let (mut write, mut read) = halves(provider, protection);
        let (_, mut read_into) = halves(provider, protection);
        for size in sizes.clone() {
            let content = bytes(size);
            let padding = match protection {
                Tls13(_) => [0, 1, 15, 16, 17, 31, 32, 33, 1000][size % 9].min(CONTENT_BYTES_MAX - size),
                _ => 0,
            };
            let kind = [ContentType::ApplicationData, ContentType::Handshake, ContentType::Alert][size % 3];
            let sealed = seal(&mut write, kind, &content, padding);
            assert_eq!(
                read.peek(&sealed),
                Ok(Peek::Whole {
                    kind: if matches!(protection, Tls13(_)) {
                        ContentType::ApplicationData
                    } else {
                        kind
                    },
                    bytes: sealed.len()
                })
            );
            assert_eq!(
                first(&mut read, &sealed),
                Ok(Some((kind, content.clone()))),
                "{protection:?} {size}"
            );
            let room = room(&read_into, &sealed);
            let mut out = vec![0xaa; room + 3];
            assert_eq!(
                read_into.open_into(&sealed, &mut out[..room - 1]).map(|_| ()),
                Err(Cause::Internal),
                "no room, and nothing done"
            );
            let opened = read_into.open_into(&sealed, &mut out).unwrap();
            assert_eq!((opened.kind, &*opened.content), (kind, &content[..]));
            assert_eq!(out[room..], [0xaa; 3]);
        }
    }
}

/// Every prefix of a record is *not yet*, and says exactly what is missing once the header is there.
fn prefixes<P: Provider>(provider: &P) {
    for protection in EVERY {
        let (mut write, read) = halves(provider, protection);
        let sealed = seal(&mut write, ContentType::Handshake, &bytes(40), 0);
        for cut in 0..sealed.len() {
            let more = if cut < HEADER_BYTES { HEADER_BYTES } else { sealed.len() } - cut;
            assert_eq!(read.peek(&sealed[..cut]), Ok(Peek::Need(more)));
        }
    }
}

/// Goal: a record that was touched anywhere does not open, and the one that was meant still does.
/// Method: every bit flipped, every shorter fragment, a byte more.
fn touched<P: Provider>(provider: &P) {
    for protection in EVERY.into_iter().filter(|&p| p != Plain) {
        let (mut write, mut read) = halves(provider, protection);
        let sealed = seal(&mut write, ContentType::ApplicationData, &bytes(21), 0);
        for bit in 0..sealed.len() * 8 {
            let mut flipped = sealed.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let mut out = vec![0; 2 * sealed.len()];
            let into = match read.peek(&flipped) {
                Ok(Peek::Whole { bytes, .. }) => read.open_into(&flipped[..bytes], &mut out).map(|_| ()),
                Ok(Peek::Need(_)) => Ok(()),
                Err(cause) => Err(cause),
            };
            let got = first(&mut read, &flipped);
            assert_eq!(got.clone().map(|_| ()), into);
            match (bit / 8, got) {
                (0, Err(Cause::BadRecord)) => {}
                (0, Err(Cause::Unprotected)) => assert!(matches!(protection, Tls13(_))),
                (0, Err(Cause::BadRecordMac)) => assert!(matches!(protection, Tls12(_))),
                (1..=2, Err(Cause::RecordVersion(_))) => {}
                (3..=4, Err(Cause::RecordOverflow | Cause::BadRecordMac) | Ok(None)) => {}
                (5.., Err(Cause::BadRecordMac)) => {}
                (at, got) => panic!("{protection:?}, byte {at}: {got:?}"),
            }
        }
        for fragment_bytes in (0..sealed.len() - HEADER_BYTES).chain([sealed.len() - HEADER_BYTES + 1]) {
            let mut fragment = sealed[HEADER_BYTES..].to_vec();
            fragment.resize(fragment_bytes, 0);
            assert_eq!(refused(&mut read, &record(23, 0x0303, &fragment)), Cause::BadRecordMac);
        }
        assert_eq!(
            first(&mut read, &sealed),
            Ok(Some((ContentType::ApplicationData, bytes(21)))),
            "a refusal leaves the sequence number as it was"
        );
        assert_eq!(refused(&mut read, &sealed), Cause::BadRecordMac, "a record twice");
    }
}

/// Two records out of order, and a record under other keys' sequence.
fn order<P: Provider>(provider: &P) {
    for protection in EVERY.into_iter().filter(|&p| p != Plain) {
        let (mut write, mut read) = halves(provider, protection);
        let one = seal(&mut write, ContentType::ApplicationData, b"one", 0);
        let two = seal(&mut write, ContentType::ApplicationData, b"two", 0);
        assert_eq!((write.sequence(), read.sequence()), (2, 0));
        assert_eq!(refused(&mut read, &two), Cause::BadRecordMac);
        assert!(first(&mut read, &one).is_ok());
        assert!(first(&mut read, &two).is_ok());
        assert_eq!(read.sequence(), 2);
        read.install(keys(provider, protection).unwrap());
        assert_eq!(read.sequence(), 0);
        assert_eq!(first(&mut read, &one).unwrap().unwrap().1, b"one");
    }
}

/// Goal: exactly 2^14 bytes of content pass, one more is an overflow that is told from the header, before a byte of it came.
fn content_limit<P: Provider>(provider: &P) {
    for protection in EVERY {
        let (mut write, mut read) = halves(provider, protection);
        let (before, after) = write.overhead();
        assert_eq!(write.content_bytes_max(), CONTENT_BYTES_MAX);
        let mut slot = vec![0; before + CONTENT_BYTES_MAX + 1 + after];
        assert_eq!(
            write.seal(ContentType::ApplicationData, &mut slot, CONTENT_BYTES_MAX + 1),
            Err(Cause::Internal)
        );
        let bytes = write
            .seal(ContentType::ApplicationData, &mut slot, CONTENT_BYTES_MAX)
            .unwrap();
        assert!(bytes <= RECORD_BYTES_MAX);
        assert_eq!(
            bytes == RECORD_BYTES_MAX,
            matches!(protection, Tls12(Aes128Gcm | Aes256Gcm))
        );
        assert_eq!(
            first(&mut read, &slot[..bytes]).unwrap().unwrap().1.len(),
            CONTENT_BYTES_MAX
        );
        let fragment = u16::try_from(bytes - HEADER_BYTES).unwrap();
        let kind = if protection == Plain { 22 } else { 23 };
        let header = |bytes: u16| [kind, 3, 3, bytes.to_be_bytes()[0], bytes.to_be_bytes()[1]];
        assert_eq!(read.peek(&header(fragment)), Ok(Peek::Need(usize::from(fragment))));
        for more in [fragment + 1, (1 << 14) + 256, (1 << 14) + 257, u16::MAX] {
            assert_eq!(read.peek(&header(more)), Err(Cause::RecordOverflow));
        }
        // Before anything else: neither type nor version is looked at.
        assert_eq!(read.peek(&[99, 9, 9, 0xff, 0xff]), Err(Cause::RecordOverflow));
    }
    // Without keys application data can only be early data, sealed with keys that we never have.
    let (_, read) = halves(provider, Plain);
    assert!(matches!(read.peek(&[23, 3, 3, 0x40, 17]), Ok(Peek::Need(_))));
    assert_eq!(read.peek(&[23, 3, 3, 0x41, 0]), Err(Cause::RecordOverflow));
    // Padding counts: 2^14 bytes of content and padding and the type are the most that may be inside.
    let (mut write, mut read) = halves(provider, Tls13(Aes128Gcm));
    let sealed = seal(&mut write, ContentType::ApplicationData, &[], CONTENT_BYTES_MAX);
    assert_eq!(first(&mut read, &sealed).unwrap().unwrap().1, []);
    let mut inner = vec![0; CONTENT_BYTES_MAX + 2];
    inner[0] = 23;
    assert_eq!(
        refused(&mut read, &sealed_13(provider, 1, &inner)),
        Cause::RecordOverflow
    );
}

/// Goal: record_size_limit and max_fragment_length hold to the byte, both ways.
fn agreed_limits<P: Provider>(provider: &P) {
    let small = SizeLimits::NONE.with_record_size_limit(100);
    let fragment = SizeLimits::NONE.with_max_fragment_length(1).unwrap();
    let both = small.with_max_fragment_length(4).unwrap();
    for protection in EVERY {
        let record_size = match protection {
            Plain => CONTENT_BYTES_MAX,
            Tls12(_) => 100,
            Tls13(_) => 99,
        };
        let both_size = if protection == Plain { 4096 } else { record_size };
        for (limits, content_max) in [(small, record_size), (fragment, 512), (both, both_size)] {
            let (mut write, mut read) = halves(provider, protection);
            write.limit(limits);
            read.limit(limits);
            assert_eq!(write.content_bytes_max(), content_max, "{protection:?} {limits:?}");
            let sealed = seal(&mut write, ContentType::Handshake, &bytes(content_max), 0);
            assert_eq!(first(&mut read, &sealed).unwrap().unwrap().1.len(), content_max);
            let mut slot = vec![0; 20_000];
            let over = write.seal(ContentType::Handshake, &mut slot, content_max + 1);
            assert_eq!(over, Err(Cause::Internal));
            write.limit(SizeLimits::NONE);
            if content_max < CONTENT_BYTES_MAX {
                let sealed = seal(&mut write, ContentType::Handshake, &bytes(content_max + 1), 0);
                assert_eq!(refused(&mut read, &sealed), Cause::RecordOverflow);
            }
            if matches!(protection, Tls13(_)) {
                let padded = seal(&mut write, ContentType::Handshake, b"short", content_max - 4);
                assert_eq!(refused(&mut read, &padded), Cause::RecordOverflow, "padding counts");
            }
        }
    }
    for more in [1 << 14 | 1, 1 << 14 | 2, u16::MAX] {
        assert_eq!(SizeLimits::NONE.with_record_size_limit(more), SizeLimits::NONE);
    }
    assert_eq!(
        SizeLimits::NONE.with_record_size_limit(0),
        SizeLimits::NONE.with_record_size_limit(64)
    );
    assert_eq!(SizeLimits::NONE.with_max_fragment_length(0), None);
    assert_eq!(SizeLimits::NONE.with_max_fragment_length(5), None);
}

/// What stands inside a TLS 1.3 record although it opens.
fn inner_types<P: Provider>(provider: &P) {
    let read = || halves(provider, Tls13(Aes128Gcm)).1;
    let open = |inner: &[u8]| first(&mut read(), &sealed_13(provider, 0, inner)).map(Option::unwrap);
    let data = |content: &[u8]| Ok((ContentType::ApplicationData, content.to_vec()));
    assert_eq!(open(b"ab\x17"), data(b"ab"));
    for zeros in [1, 15, 16, 17, 40] {
        let inner = [&b"ab\0\0\x17"[..], &vec![0; zeros]].concat();
        assert_eq!(open(&inner), data(b"ab\0\0"), "zeros that are content stay");
        assert_eq!(open(&vec![0; zeros]), Err(Cause::BadRecord), "nothing but padding");
    }
    assert_eq!(open(&[]), Err(Cause::BadRecord), "not even a type");
    assert_eq!(open(&[23]), data(b""));
    assert_eq!(open(&[22]), Err(Cause::BadRecord), "a handshake record without content");
    assert_eq!(open(&[21, 0, 0]), Err(Cause::BadRecord), "an alert without content");
    for kind in (1..=255).filter(|kind| !(21..=23).contains(kind)) {
        assert_eq!(open(&[1, kind]), Err(Cause::BadRecord), "type {kind}");
    }
}

/// What stands outside.
fn outer_types<P: Provider>(provider: &P) {
    let (_, mut read) = halves(provider, Plain);
    for kind in (0..=255).filter(|kind| !(20..=23).contains(kind)) {
        assert_eq!(refused(&mut read, &record(kind, 0x0303, b"x")), Cause::BadRecord);
    }
    for version in [0x0300, 0x0301, 0x0303, 0x0304, 0x03ff] {
        let hello = record(22, version, b"hello");
        assert_eq!(
            first(&mut read, &hello),
            Ok(Some((ContentType::Handshake, b"hello".to_vec())))
        );
    }
    for version in [0x0002, 0x0203, 0x0403, 0xfefd] {
        assert_eq!(
            refused(&mut read, &record(22, version, b"hello")),
            Cause::RecordVersion(version)
        );
    }
    for kind in 20..=22 {
        assert_eq!(
            refused(&mut read, &record(kind, 0x0303, b"")),
            Cause::BadRecord,
            "no content"
        );
    }
    let (_, mut read) = halves(provider, Tls13(Aes128Gcm));
    for version in [0x0301, 0x0302, 0x0304] {
        assert_eq!(
            refused(&mut read, &record(23, version, &[0; 40])),
            Cause::RecordVersion(version)
        );
    }
    let spec = record(20, 0x0303, &[1]);
    assert_eq!(
        first(&mut read, &spec),
        Ok(Some((ContentType::ChangeCipherSpec, vec![1])))
    );
    let mut out = [0; 1];
    assert_eq!(room(&read, &spec), 1);
    assert_eq!(read.open_into(&spec, &mut out).unwrap().content, [1]);
    assert_eq!(read.sequence(), 0);
    let alert = record(21, 0x0303, &[2, 40]);
    assert_eq!(refused(&mut read, &alert), Cause::Unprotected);
    assert_eq!(refused(&mut read, &record(22, 0x0303, b"hello")), Cause::Unprotected);
    read.allow_plain_alert();
    assert_eq!(first(&mut read, &alert), Ok(Some((ContentType::Alert, vec![2, 40]))));
    assert_eq!(refused(&mut read, &record(22, 0x0303, b"hello")), Cause::Unprotected);
    assert!(first(&mut read, &sealed_13(provider, 0, b"now protected\x17")).is_ok());
    assert_eq!(refused(&mut read, &alert), Cause::Unprotected);
    read.install(keys(provider, Tls13(Aes128Gcm)).unwrap());
    assert_eq!(refused(&mut read, &alert), Cause::Unprotected, "new keys, no leave");
}

/// A client's first hello bears the oldest version, nothing after it.
fn first_hello<P: Provider>(provider: &P) {
    let mut write: WriteHalf<P> = WriteHalf::first_hello();
    assert_eq!(
        seal(&mut write, ContentType::Handshake, b"a", 0),
        record(22, 0x0301, b"a")
    );
    assert_eq!(
        seal(&mut write, ContentType::Handshake, b"b", 0),
        record(22, 0x0301, b"b")
    );
    write.said_hello();
    assert_eq!(
        seal(&mut write, ContentType::Handshake, b"c", 0),
        record(22, 0x0303, b"c")
    );
    let mut write: WriteHalf<P> = WriteHalf::first_hello();
    write.install(keys(provider, Tls13(Aes128Gcm)).unwrap());
    assert_eq!(seal(&mut write, ContentType::Handshake, b"d", 0)[1..3], [3, 3]);
}

/// Records without content are taken so often in a row and not once more.
fn empty_records<P: Provider>(provider: &P) {
    for protection in EVERY.into_iter().filter(|&p| p != Plain) {
        let (mut write, mut read) = halves(provider, protection);
        for _ in 0..2 {
            for _ in 0..EMPTY_RECORDS_MAX {
                let empty = seal(&mut write, ContentType::ApplicationData, b"", 0);
                assert_eq!(
                    first(&mut read, &empty),
                    Ok(Some((ContentType::ApplicationData, vec![])))
                );
            }
            let full = seal(&mut write, ContentType::ApplicationData, b"x", 0);
            assert!(first(&mut read, &full).is_ok());
        }
        for _ in 0..EMPTY_RECORDS_MAX {
            // What is no data forgives nothing.
            first(&mut read, &seal(&mut write, ContentType::Handshake, b"x", 0)).unwrap();
            first(&mut read, &seal(&mut write, ContentType::ApplicationData, b"", 0)).unwrap();
        }
        let empty = seal(&mut write, ContentType::ApplicationData, b"", 0);
        assert_eq!(refused(&mut read, &empty), Cause::TooManyEmptyRecords);
    }
}

/// Keys ask for an update before their last record, seal that one, and no more.
fn records_max<P: Provider>(provider: &P) {
    let mut write = WriteHalf::plain();
    assert!(!write.wants_key_update());
    write.install(TrafficKeys {
        aead: provider.aead(Aes128Gcm, &KEY[..16]).unwrap(),
        nonces: Nonces::Xor(IV),
        is_13: true,
        records_max: 16,
    });
    let mut slot = [0; 64];
    for sealed in 0..16 {
        assert_eq!(write.wants_key_update(), sealed >= 14, "{sealed}");
        assert!(write.seal(ContentType::ApplicationData, &mut slot, 1).is_ok());
    }
    let exhausted = write.seal(ContentType::ApplicationData, &mut slot, 1);
    assert_eq!(exhausted, Err(Cause::KeyExhausted));
    write.install(keys(provider, Tls13(Aes128Gcm)).unwrap());
    assert!(!write.wants_key_update());
    assert!(write.seal(ContentType::ApplicationData, &mut slot, 1).is_ok());
}

/// A slot that is too short, a content that does not fit, padding that cannot be: nothing is sealed and no number is used up.
fn slots<P: Provider>(provider: &P) {
    for protection in EVERY {
        let (mut write, mut read) = halves(provider, protection);
        let (before, after) = write.overhead();
        let mut slot = vec![7; before + 3 + after];
        for short in 0..slot.len() {
            assert_eq!(
                write.seal(ContentType::Alert, &mut slot[..short], 3),
                Err(Cause::Internal)
            );
        }
        assert_eq!(
            write.seal(ContentType::Alert, &mut slot, usize::MAX),
            Err(Cause::Internal)
        );
        let padded = write.seal_padded(ContentType::Alert, &mut slot, 2, 1);
        assert_eq!(padded.is_ok(), matches!(protection, Tls13(_)));
        if padded.is_ok() {
            assert_eq!(first(&mut read, &slot).unwrap().unwrap().1, [7, 7]);
        }
        let sealed = seal(&mut write, ContentType::Alert, b"abc", 0);
        assert_eq!(first(&mut read, &sealed).unwrap().unwrap().1, b"abc");
        assert_eq!(read.open(&mut []).map(|_| ()), Err(Cause::Internal));
        assert_eq!(read.open(&mut sealed[..7].to_vec()).map(|_| ()), Err(Cause::Internal));
    }
}

macro_rules! with_every_provider {
    ($($name:ident)*) => {
        mod fast {
            $(#[test]
            fn $name() {
                super::$name(&super::Fast);
            })*
        }
    };
}

with_every_provider! {
    rfc8448 shapes round_trips prefixes touched order content_limit agreed_limits inner_types outer_types first_hello empty_records
    records_max slots
}
