//! Hellos of real clients, and messages of every kind cut, changed and written again.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use std::collections::HashMap;
use std::format;

use super::*;
use crate::crypto::Random;
use crate::testing::Seeded;
use crate::testing::messages::{CHOICES, check};

macro_rules! hellos {
    ($($name:literal,)*) => {
        [$(($name, include_str!(concat!("../../tests/vectors/client_hello/", $name, ".txt"))),)*]
    };
}

const HELLOS: [(&str, &str); 10] = hellos![
    "gnutls",
    "go_1_19",
    "go_1_27",
    "java_17",
    "java_25",
    "kafka_python",
    "librdkafka",
    "node_20",
    "openssl_3_0",
    "python_3_11",
];

fn from_hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(core::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// What another reader saw in a hello, by name, and its bytes.
fn caught(text: &str) -> (HashMap<&str, &str>, Vec<u8>) {
    let lines = || text.lines().filter(|line| !line.starts_with('#'));
    let seen = lines()
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split_once(' '));
    let bytes = lines().filter(|line| line.starts_with(' ')).collect::<String>();
    (seen.collect(), from_hex(&bytes))
}

fn words(list: Option<U16List<'_>>) -> Option<String> {
    let words: Vec<_> = list?.iter().map(|value| format!("{value:04x}")).collect();
    Some(words.join(" "))
}

#[test]
fn hellos_of_real_clients_read_as_another_reader_read_them() {
    for (name, text) in HELLOS {
        let (seen, bytes) = caught(text);
        let see = |field| seen.get(field).map(|text| String::from(*text));
        assert_eq!(see("bytes"), Some(format!("{}", bytes.len())), "{name}");
        let message = peek(&bytes, 1 << 16).unwrap();
        assert_eq!(
            (message.kind, message.raw.len()),
            (ClientHello::KIND.wire(), bytes.len()),
            "{name}"
        );
        let hello = ClientHello::decode(message.body).unwrap();

        assert_eq!((hello.legacy_version, hello.session_id.len()), (0x0303, 32), "{name}");
        assert_eq!(hello.compression, [0], "{name}");
        assert_eq!(words(Some(hello.suites)), see("suites"), "{name}");
        assert_eq!(words(hello.supported_groups), see("groups"), "{name}");
        assert_eq!(words(hello.signature_algorithms), see("schemes"), "{name}");
        assert_eq!(words(hello.signature_algorithms_cert), see("schemes_cert"), "{name}");
        assert_eq!(words(hello.supported_versions), see("versions"), "{name}");
        let server_name = hello.server_name.map(|name| String::from_utf8(name.to_vec()).unwrap());
        assert_eq!(server_name, see("server_name"), "{name}");
        let modes = hello
            .psk_key_exchange_modes
            .map(|modes| modes.iter().map(|mode| format!("{mode:02x}")).collect::<String>());
        assert_eq!(modes, see("psk_modes"), "{name}");
        let shares: Vec<_> = hello
            .key_share
            .unwrap()
            .iter()
            .map(|share| format!("{:04x}:{}", share.group, share.share.len()))
            .collect();
        assert_eq!(Some(shares.join(" ")), see("shares"), "{name}");

        let extensions: Vec<_> = see("extensions").unwrap().split(' ').map(String::from).collect();
        let has = |kind: ExtensionType| extensions.contains(&format!("{:04x}", kind.wire()));
        assert_eq!(
            hello.extended_master_secret,
            has(ExtensionType::ExtendedMasterSecret),
            "{name}"
        );
        assert_eq!(
            hello.session_ticket.is_some(),
            has(ExtensionType::SessionTicket),
            "{name}"
        );
        assert_eq!(
            hello.ec_point_formats.is_some(),
            has(ExtensionType::EcPointFormats),
            "{name}"
        );
        assert_eq!(
            hello.renegotiation_info.is_some(),
            has(ExtensionType::RenegotiationInfo),
            "{name}"
        );
        assert_eq!(
            hello.record_size_limit.is_some(),
            has(ExtensionType::RecordSizeLimit),
            "{name}"
        );
        assert!(hello.offers_renegotiation_info(), "{name}");
        assert!(hello.offers_version(0x0304) && hello.offers_version(0x0303), "{name}");
        assert!(!hello.is_fallback() && !hello.early_data, "{name}");
        assert_eq!((hello.cookie, hello.pre_shared_key), (None, None), "{name}");
    }
}

/// A body of each kind, by the choice that [`check`] takes.
fn samples() -> Vec<(u8, Vec<u8>)> {
    let mut samples: Vec<_> = HELLOS
        .iter()
        .map(|(_, text)| (0, caught(text).1.split_off(HEADER_BYTES)))
        .collect();
    let random = [7; RANDOM_BYTES];
    let session_id = [9; SESSION_ID_BYTES_MAX];
    let list = U16List::new(&[[4, 3], [8, 4]]);
    let mut add = |choice, encode: &dyn Fn(&mut Writer<'_>) -> Result<(), Cause>| {
        let mut room = vec![0; 4096];
        let bytes = Writer::fill(&mut room, |w| encode(w)).unwrap();
        samples.push((choice, room[HEADER_BYTES..bytes].to_vec()));
    };
    let mut identities = vec![0; 64];
    let bytes = Writer::fill(&mut identities, |w| {
        for identity in [&[1, 2, 3][..], &[4; 20]] {
            let obfuscated_ticket_age = 0xffff_fffe;
            PskIdentity {
                identity,
                obfuscated_ticket_age,
            }
            .encode(w)?;
        }
        Ok(())
    });
    identities.truncate(bytes.unwrap());
    let mut binders = vec![32];
    binders.extend_from_slice(&[5; 32]);
    binders.push(48);
    binders.extend_from_slice(&[6; 48]);
    let full = ClientHello {
        server_name: Some(b"broker-1.example"),
        ec_point_formats: Some(&[0, 1]),
        supported_groups: Some(list),
        session_ticket: Some(&[1; 30]),
        extended_master_secret: true,
        renegotiation_info: Some(&[]),
        signature_algorithms: Some(list),
        signature_algorithms_cert: Some(list),
        supported_versions: Some(list),
        cookie: Some(&[3]),
        psk_key_exchange_modes: Some(&[1]),
        key_share: Some(KeyShares::new(&[0, 29, 0, 1, 7, 0, 23, 0, 2, 8, 9])),
        max_fragment_length: Some(4),
        record_size_limit: Some(64),
        early_data: true,
        pre_shared_key: Some(OfferedPsks::new(&identities, &binders)),
        ..ClientHello::bare(0x0303, &random, &session_id, list)
    };
    add(0, &|w| full.encode(w));
    add(0, &|w| ClientHello::bare(0x0302, &random, &[], list).encode(w));
    let of_12 = ServerHello {
        server_name: true,
        ec_point_formats: Some(&[0]),
        session_ticket: true,
        extended_master_secret: true,
        renegotiation_info: Some(&[]),
        max_fragment_length: Some(1),
        record_size_limit: Some(16_384),
        ..ServerHello::bare(0x0303, &random, &session_id, 0xc02b)
    };
    add(1, &|w| of_12.encode(w));
    add(1, &|w| ServerHello::bare(0x0303, &random, &[], 0xc02b).encode(w));
    let of_13 = ServerHello {
        supported_version: Some(0x0304),
        key_share: Some(KeyShare {
            group: 29,
            share: &[5; 32],
        }),
        pre_shared_key: Some(1),
        ..ServerHello::bare(0x0303, &random, &session_id, 0x1301)
    };
    add(1, &|w| of_13.encode(w));
    let retry = HelloRetryRequest {
        session_id: &session_id,
        suite: 0x1301,
        version: 0x0304,
        group: Some(23),
        cookie: Some(&[1, 2]),
    };
    add(1, &|w| retry.encode(w));
    let encrypted = EncryptedExtensions {
        server_name: true,
        supported_groups: Some(list),
        max_fragment_length: Some(2),
        record_size_limit: Some(100),
    };
    add(2, &|w| encrypted.encode(w));
    add(2, &|w| EncryptedExtensions::default().encode(w));
    let chain = [&[0x30, 0x80][..], &[7; 300], &[1]];
    add(3, &|w| Certificate13::encode(&chain, w));
    add(3, &|w| Certificate13::encode(&[], w));
    add(4, &|w| Certificate12::encode(&chain, w));
    add(4, &|w| Certificate12::encode(&[], w));
    let authorities = Authorities::new(&[0, 2, 0x30, 0, 0, 3, 0x30, 1, 2]);
    let request = CertificateRequest13 {
        signature_algorithms: list,
        signature_algorithms_cert: Some(list),
        authorities: Some(authorities),
    };
    add(5, &|w| request.encode(w));
    let request = CertificateRequest13 {
        signature_algorithms_cert: None,
        authorities: None,
        ..request
    };
    add(5, &|w| request.encode(w));
    let request = CertificateRequest12 {
        certificate_types: &[CERTIFICATE_TYPE_ECDSA, CERTIFICATE_TYPE_RSA],
        signature_algorithms: list,
        authorities,
    };
    add(6, &|w| request.encode(w));
    let request = CertificateRequest12 {
        authorities: Authorities::default(),
        ..request
    };
    add(6, &|w| request.encode(w));
    let verify = CertificateVerify {
        scheme: 0x0403,
        signature: &[4; 70],
    };
    add(7, &|w| verify.encode(w));
    add(8, &|w| Finished { verify_data: &[1; 12] }.encode(w));
    add(9, &|w| Finished { verify_data: &[1; 32] }.encode(w));
    let ticket = NewSessionTicket13 {
        lifetime_seconds: TICKET_LIFETIME_SECONDS_MAX,
        age_add: 0x8000_0001,
        nonce: &[0],
        ticket: &[6; 200],
        early_data_bytes_max: Some(1024),
    };
    add(10, &|w| ticket.encode(w));
    let ticket = NewSessionTicket12 {
        lifetime_hint_seconds: 7200,
        ticket: &[6; 200],
    };
    add(11, &|w| ticket.encode(w));
    add(11, &|w| {
        NewSessionTicket12 {
            lifetime_hint_seconds: 0,
            ticket: &[],
        }
        .encode(w)
    });
    add(12, &|w| KeyUpdate { requested: true }.encode(w));
    add(12, &|w| KeyUpdate { requested: false }.encode(w));
    let mut params = vec![0; 40];
    let bytes = Writer::fill(&mut params, |w| ServerKeyExchange::encode_params(w, 29, &[8; 32])).unwrap();
    add(13, &|w| {
        ServerKeyExchange::encode(w, &params[..bytes], 0x0403, &[4; 70])
    });
    add(14, &|w| ClientKeyExchange { share: &[8; 32] }.encode(w));
    samples
}

#[test]
fn what_was_written_is_read_and_written_again_as_the_same() {
    for (choice, body) in samples() {
        let mut data = vec![choice];
        data.extend_from_slice(&body);
        let once = check(&data).unwrap().unwrap();
        data.truncate(1);
        data.extend_from_slice(&once);
        assert_eq!(check(&data), Some(Ok(once)), "{choice}");
    }
    // Bodies that our own encoder wrote come out byte for byte: the order of fields is the order of extensions.
    for (choice, body) in samples().into_iter().skip(HELLOS.len()) {
        let data: Vec<u8> = [choice].into_iter().chain(body.iter().copied()).collect();
        assert_eq!(check(&data), Some(Ok(body)), "{choice}");
    }
}

#[test]
fn a_message_cut_anywhere_or_with_a_byte_more_is_malformed() {
    for (choice, body) in samples() {
        let kind = match choice {
            0 => HandshakeType::ClientHello,
            1 => HandshakeType::ServerHello,
            2 => HandshakeType::EncryptedExtensions,
            3 | 4 => HandshakeType::Certificate,
            5 | 6 => HandshakeType::CertificateRequest,
            7 => HandshakeType::CertificateVerify,
            8 | 9 => HandshakeType::Finished,
            10 | 11 => HandshakeType::NewSessionTicket,
            12 => HandshakeType::KeyUpdate,
            13 => HandshakeType::ServerKeyExchange,
            _ => HandshakeType::ClientKeyExchange,
        };
        let hello_without_extensions = match choice {
            0 => 2 + 32 + 1 + usize::from(body[34]),
            1 => 2 + 32 + 1 + usize::from(body[34]) + 3,
            _ => usize::MAX,
        };
        let mut data = vec![choice];
        for cut in 0..body.len() {
            data.truncate(1);
            data.extend_from_slice(&body[..cut]);
            let read = check(&data).unwrap();
            let bare = match choice {
                // After suites and compression methods.
                0 => {
                    let suites = usize::from(u16::from_be_bytes([
                        *body.get(hello_without_extensions).unwrap_or(&0),
                        *body.get(hello_without_extensions + 1).unwrap_or(&0),
                    ]));
                    cut == hello_without_extensions + 2 + suites + 2
                }
                1 => cut == hello_without_extensions,
                _ => false,
            };
            if bare {
                assert!(
                    read != Err(Cause::Decode(kind.wire())),
                    "hellos may end before extensions: {choice}"
                );
            } else {
                assert_eq!(read, Err(Cause::Decode(kind.wire())), "{choice} cut at {cut}");
            }
        }
        data.truncate(1);
        data.extend_from_slice(&body);
        data.push(0);
        assert_eq!(check(&data), Some(Err(Cause::Decode(kind.wire()))), "{choice}");
    }
}

#[test]
fn changed_messages_are_refused_or_make_sense() {
    let mut random = Seeded::new(1);
    let mut dice = [0; 4];
    for (choice, body) in samples() {
        for _ in 0..2000 {
            let mut data = vec![choice];
            data.extend_from_slice(&body);
            for _ in 0..2 {
                random.fill(&mut dice).unwrap();
                let at = usize::from(u16::from_be_bytes([dice[0], dice[1]])) % data.len();
                match dice[2] % 4 {
                    0 => data[at] = dice[3],
                    1 => data[at] = data[at].wrapping_add(1),
                    2 => data.insert(at, dice[3] & 3),
                    _ => drop(data.remove(at)),
                }
                if data.is_empty() {
                    data.push(choice);
                }
            }
            check(&data);
        }
    }
    for choice in 0..CHOICES {
        for bytes in 0..200 {
            let mut data = vec![0; bytes + 1];
            random.fill(&mut data).unwrap();
            data[0] = choice;
            check(&data);
        }
    }
}

#[test]
fn a_message_is_there_when_its_last_byte_is() {
    let bytes = [14, 0, 0, 2, 7, 8, 1];
    for cut in 0..6 {
        assert_eq!(peek(&bytes[..cut], 6).unwrap_err(), nb::Error::WouldBlock, "{cut}");
    }
    let message = peek(&bytes, 6).unwrap();
    assert_eq!(
        (message.kind, message.body, message.raw),
        (14, &[7, 8][..], &bytes[..6])
    );
}

#[test]
fn a_message_over_the_bound_is_refused_by_its_header() {
    assert_eq!(
        peek(&[1, 0, 0, 3], 6).unwrap_err(),
        nb::Error::Other(Cause::HandshakeTooLong)
    );
    assert_eq!(
        peek(&[1, 0xff, 0xff, 0xff], 1 << 16).unwrap_err(),
        nb::Error::Other(Cause::HandshakeTooLong)
    );
}

/// Extensions by number.
type Block<'a> = &'a [(u16, &'a [u8])];

/// The body of a hello with this block of extensions after what `start` writes.
fn with_extensions(start: &dyn Fn(&mut Writer<'_>) -> Result<(), Cause>, extensions: Block<'_>) -> Vec<u8> {
    let mut room = vec![0; 4096];
    let bytes = Writer::fill(&mut room, |w| {
        start(w)?;
        w.vector_16(|w| {
            extensions.iter().try_for_each(|(kind, data)| {
                w.u16(*kind)?;
                w.vector_16(|w| w.bytes(data))
            })
        })
    });
    room.truncate(bytes.unwrap());
    room
}

fn client_hello(extensions: Block<'_>) -> Vec<u8> {
    let start = |w: &mut Writer<'_>| {
        w.u16(0x0303)?;
        w.bytes(&[7; RANDOM_BYTES])?;
        w.bytes(&[0, 0, 2, 0x13, 1, 1, 0])
    };
    with_extensions(&start, extensions)
}

fn server_hello(random: &[u8; RANDOM_BYTES], extensions: Block<'_>) -> Vec<u8> {
    let start = |w: &mut Writer<'_>| {
        w.u16(0x0303)?;
        w.bytes(random)?;
        w.bytes(&[0, 0x13, 1, 0])
    };
    with_extensions(&start, extensions)
}

/// One identity, one binder: lists and all.
const PSK: [u8; 44] = {
    let mut psk = [5; 44];
    psk[0] = 0;
    psk[1] = 7;
    psk[2] = 0;
    psk[3] = 1;
    psk[9] = 0;
    psk[10] = 33;
    psk[11] = 32;
    psk
};

#[test]
fn each_rule_of_a_client_hello_has_its_answer() {
    let malformed = Err(Cause::Decode(1));
    let illegal = Err(Cause::IllegalParameter(1));
    let two_binders: Vec<u8> = [&[0, 7, 0, 1, 9, 0, 0, 0, 0, 0, 66][..], &[32; 66]].concat();
    let cases: &[(&str, Block<'_>, Result<(), Cause>)] = &[
        ("nothing", &[], Ok(())),
        (
            "unknown and GREASE",
            &[(0x0a0a, &[]), (0x1234, &[1, 2]), (0xfafa, &[0])],
            Ok(()),
        ),
        ("one twice", &[(23, &[]), (0x0a0a, &[]), (23, &[])], illegal),
        ("unknown twice", &[(0x1234, &[]), (0x1234, &[])], illegal),
        ("a name", &[(0, &[0, 4, 0, 0, 1, b'a'])], Ok(())),
        ("a name with an underscore", &[(0, &[0, 4, 0, 0, 1, b'_'])], Ok(())),
        ("a name of another type", &[(0, &[0, 4, 9, 0, 1, b'a'])], Ok(())),
        ("no name", &[(0, &[0, 0])], malformed),
        ("an empty server_name", &[(0, &[])], malformed),
        ("an empty name", &[(0, &[0, 3, 0, 0, 0])], malformed),
        ("two names", &[(0, &[0, 8, 0, 0, 1, b'a', 0, 0, 1, b'b'])], illegal),
        ("no group", &[(10, &[0, 0])], malformed),
        ("half a group", &[(10, &[0, 3, 0, 29, 0])], malformed),
        ("bytes after the groups", &[(10, &[0, 2, 0, 29, 0])], malformed),
        ("no point format", &[(11, &[0])], malformed),
        ("no scheme", &[(13, &[0, 0])], malformed),
        ("no certificate scheme", &[(50, &[0, 0])], malformed),
        ("a full extended_master_secret", &[(23, &[0])], malformed),
        ("a full early_data", &[(42, &[0])], malformed),
        ("no version", &[(43, &[0])], malformed),
        ("half a version", &[(43, &[3, 3, 4, 3])], malformed),
        ("no cookie", &[(44, &[0, 0])], malformed),
        ("no mode", &[(45, &[0])], malformed),
        ("modes of GREASE", &[(45, &[2, 0x0b, 1])], Ok(())),
        ("no share", &[(51, &[0, 0])], Ok(())),
        ("an empty share", &[(51, &[0, 4, 0, 29, 0, 0])], malformed),
        (
            "a group twice",
            &[(51, &[0, 10, 0, 29, 0, 1, 7, 0, 29, 0, 1, 8])],
            illegal,
        ),
        ("a fragment length of 0", &[(1, &[0])], illegal),
        ("a fragment length of 5", &[(1, &[5])], illegal),
        ("a fragment length of 4", &[(1, &[4])], Ok(())),
        ("an empty fragment length", &[(1, &[])], malformed),
        ("a record size of 63", &[(28, &[0, 63])], illegal),
        ("a record size of 64", &[(28, &[0, 64])], Ok(())),
        ("an empty renegotiation_info", &[(0xff01, &[])], malformed),
        ("an authority", &[(47, &[0, 4, 0, 2, 0x30, 0])], Ok(())),
        ("no authority", &[(47, &[0, 0])], malformed),
        ("an authority without a name", &[(47, &[0, 4, 0, 0, 0, 0])], malformed),
        ("half an authority", &[(47, &[0, 4, 0, 3, 0x30, 0])], malformed),
        (
            "bytes after the authorities",
            &[(47, &[0, 4, 0, 2, 0x30, 0, 0])],
            malformed,
        ),
        ("a key", &[(41, &PSK)], Ok(())),
        ("a key before something", &[(41, &PSK), (0x1234, &[])], illegal),
        ("bytes after a key", &[(41, &[&PSK[..], &[0]].concat())], malformed),
        ("two binders for a key", &[(41, &two_binders)], illegal),
        ("no key", &[(41, &[0, 0, 0, 0])], malformed),
        ("no binder", &[(41, &[0, 7, 0, 1, 9, 0, 0, 0, 0, 0, 0])], malformed),
    ];
    for (name, extensions, answer) in cases {
        let body = client_hello(extensions);
        assert_eq!(ClientHello::decode(&body).map(drop), *answer, "{name}");
    }
    let mut body = client_hello(&[]);
    let at = body.len() - 3;
    assert_eq!(body[at], 0);
    body[at] = 1;
    assert_eq!(
        ClientHello::decode(&body).map(drop),
        illegal,
        "compression without null"
    );
    let mut body = client_hello(&[]);
    body.splice(34..35, [33].into_iter().chain([0; 33]));
    assert_eq!(ClientHello::decode(&body).map(drop), malformed, "a session id of 33");
}

#[test]
fn each_rule_of_a_server_hello_has_its_answer() {
    let random = [7; RANDOM_BYTES];
    let malformed = Err(Cause::Decode(2));
    let illegal = Err(Cause::IllegalParameter(2));
    let share: &[u8] = &[0, 29, 0, 1, 7];
    type Case<'a> = (&'a str, &'a [u8; RANDOM_BYTES], Block<'a>, Result<(), Cause>);
    let cases: &[Case<'_>] = &[
        ("1.3", &random, &[(43, &[3, 4]), (51, share)], Ok(())),
        ("1.2", &random, &[(23, &[]), (35, &[]), (0xff01, &[0])], Ok(())),
        ("a full session_ticket", &random, &[(35, &[1])], malformed),
        (
            "1.3 with what belongs to 1.2",
            &random,
            &[(43, &[3, 4]), (23, &[])],
            illegal,
        ),
        ("1.2 with what belongs to 1.3", &random, &[(51, share)], illegal),
        ("one of another message", &random, &[(13, &[0, 2, 4, 3])], illegal),
        (
            "one that is never asked for",
            &random,
            &[(16, &[])],
            Err(Cause::UnsupportedExtension(16)),
        ),
        (
            "GREASE",
            &random,
            &[(0x0a0a, &[])],
            Err(Cause::UnsupportedExtension(0x0a0a)),
        ),
        ("a retry", &RETRY_RANDOM, &[(43, &[3, 4]), (51, &[0, 23])], Ok(())),
        (
            "a retry with a share",
            &RETRY_RANDOM,
            &[(43, &[3, 4]), (51, share)],
            malformed,
        ),
        (
            "a retry without version",
            &RETRY_RANDOM,
            &[(51, &[0, 23])],
            Err(Cause::MissingExtension(43)),
        ),
        ("a retry for nothing", &RETRY_RANDOM, &[(43, &[3, 4])], illegal),
        (
            "a retry with a key",
            &RETRY_RANDOM,
            &[(43, &[3, 4]), (51, &[0, 23]), (41, &[0, 0])],
            illegal,
        ),
    ];
    for (name, random, extensions, answer) in cases {
        let body = server_hello(random, extensions);
        assert_eq!(ServerHelloOrRetry::decode(&body).map(drop), *answer, "{name}");
    }
    let mut body = server_hello(&random, &[]);
    let at = body.len() - 3;
    body[at] = 1;
    assert_eq!(
        ServerHelloOrRetry::decode(&body).map(drop),
        illegal,
        "a compression method"
    );
    let mut body = server_hello(&random, &[(43, &[3, 4])]);
    body[1] = 4;
    assert_eq!(
        ServerHelloOrRetry::decode(&body).map(drop),
        illegal,
        "a legacy version of 1.3"
    );
}

#[test]
fn each_rule_of_the_other_messages_has_its_answer() {
    use crate::certificate::CHAIN_COUNT_MAX;
    let illegal = |kind: HandshakeType| Err(Cause::IllegalParameter(kind.wire()));
    let chain = [&[1_u8][..]; CHAIN_COUNT_MAX + 1];
    let mut room = [0; 128];
    let bytes = Writer::fill(&mut room, |w| Certificate13::encode(&chain, w)).unwrap();
    let read = Certificate13::decode(&room[HEADER_BYTES..bytes]).map(drop);
    assert_eq!(read, Err(Cause::ChainTooLong));
    let bytes = Writer::fill(&mut room, |w| Certificate12::encode(&chain[1..], w)).unwrap();
    let read = Certificate12::decode(&room[HEADER_BYTES..bytes]).unwrap();
    assert_eq!(read.chain.as_slice(), &chain[1..]);
    assert_eq!(read.chain.leaf(), Some(chain[0]));

    let read = |body: &[u8]| Certificate13::decode(body).map(drop);
    assert_eq!(read(&[1, 9, 0, 0, 0]), illegal(HandshakeType::Certificate));
    let stapled = [0, 0, 0, 10, 0, 0, 1, 9, 0, 4, 0, 5, 0, 0];
    assert_eq!(read(&stapled), Err(Cause::UnsupportedExtension(5)));
    assert_eq!(
        read(&[0, 0, 0, 5, 0, 0, 0, 0, 0]),
        Err(Cause::Decode(11)),
        "an empty certificate"
    );

    let read = |body: &[u8]| CertificateRequest13::decode(body).map(drop);
    assert_eq!(read(&[0, 0, 0]), Err(Cause::MissingExtension(13)));
    assert_eq!(read(&[0, 0, 8, 0, 13, 0, 4, 0, 2, 4, 3]), Ok(()));
    assert_eq!(
        read(&[1, 0, 0, 8, 0, 13, 0, 4, 0, 2, 4, 3]),
        illegal(HandshakeType::CertificateRequest)
    );
    let unknown = [0, 0, 12, 0x0a, 0x0a, 0, 0, 0, 13, 0, 4, 0, 2, 4, 3];
    assert_eq!(read(&unknown), Ok(()), "what is unknown is passed over");

    assert_eq!(
        EncryptedExtensions::decode(&[0, 4, 0, 51, 0, 0]).map(drop),
        illegal(HandshakeType::EncryptedExtensions)
    );
    assert_eq!(
        EncryptedExtensions::decode(&[0, 4, 0, 42, 0, 0]),
        Err(Cause::UnsupportedExtension(42))
    );
    assert_eq!(KeyUpdate::decode(&[2]).map(drop), illegal(HandshakeType::KeyUpdate));
    assert_eq!(
        ServerKeyExchange::decode(&[1, 0, 29]).map(drop),
        illegal(HandshakeType::ServerKeyExchange)
    );
    assert_eq!(ServerHelloDone::decode(&[0]), Err(Cause::Decode(14)));
    assert_eq!(HelloRequest::decode(&[0]), Err(Cause::Decode(0)));
}

#[test]
fn a_hello_that_names_no_versions_offers_up_to_its_legacy_version() {
    let body = client_hello(&[]);
    let mut hello = ClientHello::decode(&body).unwrap();
    assert!(hello.offers_version(0x0303) && !hello.offers_version(0x0304));
    hello.legacy_version = 0x0305;
    assert!(hello.offers_version(0x0303) && !hello.offers_version(0x0304));
    hello.legacy_version = 0x0302;
    assert!(!hello.offers_version(0x0303));
    hello.supported_versions = Some(U16List::new(&[[3, 4]]));
    assert!(!hello.offers_version(0x0303) && hello.offers_version(0x0304));
}

#[cfg(feature = "fast")]
#[test]
fn the_random_of_a_retry_is_a_digest_of_its_name() {
    use sha2::Digest;
    assert_eq!(sha2::Sha256::digest(b"HelloRetryRequest")[..], RETRY_RANDOM);
}
