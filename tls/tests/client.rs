//! The client against servers that break rules: every check that the RFCs ask of it, and the alert that it answers with.

mod script;

use script::{
    BYTE, Client, Hello, block, certificate_12, certificate_13, certificate_request_12, certificate_request_13,
    certificate_verify, encrypted_extensions, finished, leaf, message, plain, sealed_12, sealed_13,
    server_key_exchange, share, u16s, vector,
};
use skerry_core::time::Timestamp;
use skerry_tls::cause::{Cause, Met};
use skerry_tls::certificate::{ServerName, Verified};
use skerry_tls::config::{ClientConfig, Identity};
use skerry_tls::crypto::{KeyKind, Secret};
use skerry_tls::message::ClientHello;
use skerry_tls::saved::{SAVED_OVERHEAD_BYTES, SavedSession};
use skerry_tls::state::StateId;
use skerry_tls::suite::{CipherSuite, Group, SignatureScheme, Version};
use skerry_tls::testing::{Accepting, Fixture, NOW, Toy, ToyKey};

const NAME: Option<ServerName<'static>> = Some(ServerName::Dns("broker.example"));

const ILLEGAL_HELLO: Result<StateId, Cause> = Err(Cause::IllegalParameter(2));

fn verifier() -> Accepting {
    Accepting::default()
}

fn met(state: StateId, kind: u8) -> Result<StateId, Cause> {
    Err(Cause::OutOfSequence {
        state,
        met: Met::Handshake(kind),
    })
}

/// A session that [`Toy`] would resume.
fn saved(suite: CipherSuite, session_id: &[u8], ticket: &[u8]) -> Vec<u8> {
    let secret_bytes = match suite.version() {
        Version::Tls12 => 48,
        Version::Tls13 => suite.hash().bytes(),
    };
    let session = SavedSession {
        suite,
        secret: Secret::copy(&[BYTE; 48][..secret_bytes]).unwrap(),
        is_extended: true,
        received: Timestamp(NOW.0 - 1000),
        lifetime_seconds: 3600,
        age_add: 0,
        binding: [BYTE; 32],
        peer: Verified {
            subject: heapless::String::try_from("CN=server").unwrap(),
            cut: false,
            not_after: Timestamp(i64::MAX),
            fingerprint: [0; 32],
        },
        session_id,
        ticket,
    };
    let mut bytes = vec![0; SAVED_OVERHEAD_BYTES + ticket.len()];
    let count = session.encode(&mut bytes).unwrap();
    bytes.truncate(count);
    bytes
}

/// The same session, bound to something else.
fn elsewhere(saved: &[u8]) -> Vec<u8> {
    let mut bytes = saved.to_vec();
    let at = bytes.windows(32).position(|window| window == [BYTE; 32]);
    // The first such bytes are its secret's, which are followed by the binding.
    let after = at.unwrap() + 48 + 8 + 4 + 4;
    assert_eq!(bytes[after..after + 32], [BYTE; 32]);
    bytes[after] ^= 1;
    bytes
}

/// Shows a fresh client one ServerHello, which `change` made of a good one.
fn hello_13(config: &ClientConfig<'_, Toy>, change: impl FnOnce(Hello) -> Hello) -> Result<StateId, Cause> {
    let mut client = Client::new(config);
    let hello = change(Hello::tls13(&client.session_id));
    client.take(&plain(22, &hello.message()))
}

#[test]
fn server_hello_13() {
    let verifier = verifier();
    let mut config = ClientConfig::<Toy>::new(&verifier, NAME);
    config.suites = &[
        CipherSuite::TLS_AES_128_GCM_SHA256,
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    ];
    let on = |change: fn(Hello) -> Hello| hello_13(&config, change);
    assert_eq!(on(|it| it), Ok(StateId::AwaitEncryptedExtensions));
    assert_eq!(
        on(|it| Hello { version: 0x0302, ..it }),
        ILLEGAL_HELLO,
        "legacy_version"
    );
    assert_eq!(
        on(|it| Hello { version: 0x0304, ..it }),
        ILLEGAL_HELLO,
        "legacy_version"
    );
    assert_eq!(
        on(|it| Hello {
            session_id: vec![],
            ..it
        }),
        ILLEGAL_HELLO,
        "no echo"
    );
    assert_eq!(
        on(|it| Hello {
            session_id: vec![1; 32],
            ..it
        }),
        ILLEGAL_HELLO,
        "another echo"
    );
    assert_eq!(on(|it| Hello { suite: 0x1302, ..it }), ILLEGAL_HELLO, "not offered");
    assert_eq!(on(|it| Hello { suite: 0x1304, ..it }), ILLEGAL_HELLO, "unknown");
    assert_eq!(on(|it| Hello { suite: 0xc02b, ..it }), ILLEGAL_HELLO, "of TLS 1.2");
    assert_eq!(on(|it| Hello { compression: 1, ..it }), ILLEGAL_HELLO);
    assert_eq!(
        on(|it| it.with(43, u16s(&[0x0303]))),
        ILLEGAL_HELLO,
        "selects 1.2 by extension"
    );
    assert_eq!(on(|it| it.with(43, u16s(&[0x0305]))), ILLEGAL_HELLO, "not offered");
    assert_eq!(on(|it| it.with(43, vec![3])), Err(Cause::Decode(2)));
    assert_eq!(on(|it| it.without(51)), Err(Cause::MissingExtension(51)));
    assert_eq!(
        on(|it| it.with(51, share(0x0017))),
        ILLEGAL_HELLO,
        "a group that was not shared"
    );
    assert_eq!(
        on(|it| it.with(51, [u16s(&[0x0018]), vector(2, &[4; 97])].concat())),
        ILLEGAL_HELLO
    );
    assert_eq!(
        on(|it| it.with(51, [u16s(&[0x001d]), vector(2, &[BYTE; 31])].concat())),
        ILLEGAL_HELLO,
        "short"
    );
    assert_eq!(
        on(|it| it.with(51, [u16s(&[0x001d]), vector(2, &[])].concat())),
        Err(Cause::Decode(2)),
        "empty"
    );
    assert_eq!(
        on(|it| it.with(51, [u16s(&[0x001d]), vector(2, &[0; 32])].concat())),
        Err(Cause::BadShare)
    );
    assert_eq!(
        on(|it| it.with(41, u16s(&[0]))),
        Err(Cause::UnsupportedExtension(41)),
        "no PSK was offered"
    );
    assert_eq!(
        on(|it| it.with(16, vec![0, 2, 1, b'k'])),
        Err(Cause::UnsupportedExtension(16))
    );
    assert_eq!(
        on(|it| it.with(0x7777, vec![])),
        Err(Cause::UnsupportedExtension(0x7777))
    );
    assert_eq!(
        on(|it| it.with(0, vec![])),
        ILLEGAL_HELLO,
        "belongs into EncryptedExtensions"
    );
    assert_eq!(on(|it| it.with(23, vec![])), ILLEGAL_HELLO, "of TLS 1.2");
    assert_eq!(
        on(|mut it| {
            it.extensions.push(it.extensions[0].clone());
            it
        }),
        ILLEGAL_HELLO,
        "twice"
    );
}

#[test]
fn versions_that_were_not_offered() {
    let verifier = verifier();
    let only = |versions| ClientConfig::<Toy> {
        versions,
        ..ClientConfig::new(&verifier, NAME)
    };
    let config = only(&[Version::Tls12]);
    assert_eq!(hello_13(&config, |it| it), Err(Cause::UnsupportedExtension(43)));
    let mut client = Client::new(&config);
    let retry = Hello::retry(&client.session_id).message();
    assert_eq!(client.take(&plain(22, &retry)), Err(Cause::UnsupportedExtension(43)));
    assert!(client.session_id.is_empty(), "nothing to be compatible with");
    let config = only(&[Version::Tls13]);
    let mut client = Client::new(&config);
    assert_eq!(
        client.take(&plain(22, &Hello::tls12().message())),
        Err(Cause::NoCommonVersion(0x0303))
    );
    let config = only(&[Version::Tls13, Version::Tls12]);
    for version in [0x0300, 0x0301, 0x0302, 0x0304] {
        let mut client = Client::new(&config);
        let hello = Hello {
            version,
            ..Hello::tls12()
        };
        assert_eq!(
            client.take(&plain(22, &hello.message())),
            Err(Cause::NoCommonVersion(version))
        );
    }
}

#[test]
fn hello_retry_request() {
    let verifier = verifier();
    let config = ClientConfig::<Toy>::new(&verifier, NAME);
    let on = |change: fn(Hello) -> Hello| {
        let mut client = Client::new(&config);
        let retry = change(Hello::retry(&client.session_id));
        client.take(&plain(22, &retry.message()))
    };
    assert_eq!(on(|it| it), Ok(StateId::AwaitServerHelloAfterRetry));
    assert_eq!(
        on(|it| it.with(44, vector(2, b"cookie"))),
        Ok(StateId::AwaitServerHelloAfterRetry)
    );
    assert_eq!(on(|it| it.without(51)), ILLEGAL_HELLO, "asks for no change");
    assert_eq!(on(|it| it.without(43)), Err(Cause::MissingExtension(43)));
    assert_eq!(on(|it| it.with(43, u16s(&[0x0303]))), ILLEGAL_HELLO);
    assert_eq!(on(|it| it.with(51, u16s(&[0x001d]))), ILLEGAL_HELLO, "already shared");
    assert_eq!(on(|it| it.with(51, u16s(&[0x0018]))), ILLEGAL_HELLO, "not offered");
    assert_eq!(
        on(|it| it.with(51, share(0x0017))),
        Err(Cause::Decode(2)),
        "a share instead of a group"
    );
    assert_eq!(
        on(|it| it.with(44, vector(2, b""))),
        Err(Cause::Decode(2)),
        "an empty cookie"
    );
    assert_eq!(
        on(|it| it.with(41, u16s(&[0]))),
        ILLEGAL_HELLO,
        "belongs into a ServerHello"
    );
    assert_eq!(
        on(|it| it.with(0x7777, vec![])),
        Err(Cause::UnsupportedExtension(0x7777))
    );
    assert_eq!(
        on(|it| Hello {
            session_id: vec![],
            ..it
        }),
        ILLEGAL_HELLO
    );
    assert_eq!(on(|it| Hello { suite: 0xc02b, ..it }), ILLEGAL_HELLO);
    assert_eq!(on(|it| Hello { suite: 0x1304, ..it }), ILLEGAL_HELLO);
    assert_eq!(on(|it| Hello { compression: 1, ..it }), ILLEGAL_HELLO);
    assert_eq!(on(|it| Hello { version: 0x0302, ..it }), ILLEGAL_HELLO);
}

#[test]
fn after_a_hello_retry_request() {
    let verifier = verifier();
    let config = ClientConfig::<Toy>::new(&verifier, NAME);
    let on = |change: fn(Hello) -> Hello| {
        let mut client = Client::new(&config);
        let retry = Hello::retry(&client.session_id);
        client.take(&plain(22, &retry.message())).unwrap();
        let hello = change(Hello::tls13(&client.session_id).with(51, share(0x0017)));
        client.take(&plain(22, &hello.message()))
    };
    assert_eq!(on(|it| it), Ok(StateId::AwaitEncryptedExtensions));
    assert_eq!(on(|it| Hello { suite: 0x1302, ..it }), ILLEGAL_HELLO, "another suite");
    assert_eq!(
        on(|it| it.with(51, share(0x001d))),
        ILLEGAL_HELLO,
        "the group of the first hello"
    );
    assert_eq!(
        on(|it| Hello {
            session_id: vec![],
            ..it
        }),
        ILLEGAL_HELLO
    );
    assert_eq!(on(|_| Hello::tls12()), ILLEGAL_HELLO, "another version");
    let again = met(StateId::AwaitServerHelloAfterRetry, 2);
    assert_eq!(on(|it| Hello::retry(&it.session_id)), again, "once only");
}

/// Goal: a hello is as long as it was asked to be, by zeros that stand before the PSK; one that is long enough is left as it is.
#[test]
fn a_short_hello_is_padded() {
    let verifier = verifier();
    let resume = saved(CipherSuite::TLS_AES_128_GCM_SHA256, b"", b"a ticket");
    let mut config = ClientConfig::<Toy>::new(&verifier, NAME);
    config.resume = &resume;
    let natural = Client::new(&config).sent.len();
    for (min, bytes) in [
        (natural, natural),
        (natural + 1, natural + 4),
        (natural + 4, natural + 4),
        (1542, 1542),
    ] {
        config.hello_bytes_min = u16::try_from(min).unwrap();
        let sent = Client::new(&config).sent;
        assert_eq!(sent.len(), bytes, "at least {min}");
        // Decoding holds the PSK to its place.
        let hello = ClientHello::decode(&sent[9..]).unwrap();
        assert!(hello.pre_shared_key.is_some());
    }
}

/// Goal: a second hello is the first but for what RFC 8446 §4.1.2 lists.
#[test]
fn the_second_hello() {
    let verifier = verifier();
    let resume = saved(CipherSuite::TLS_AES_128_GCM_SHA256, b"", b"a ticket");
    let mut config = ClientConfig::<Toy>::new(&verifier, NAME);
    config.resume = &resume;
    config.record_size_limit = Some(512);
    for (group, cookie, suite) in [
        (true, false, 0x1301),
        (false, true, 0x1301),
        (true, true, 0x1301),
        (true, false, 0x1302),
    ] {
        let mut client = Client::new(&config);
        let first = client.sent.clone();
        let mut retry = Hello {
            suite,
            ..Hello::retry(&client.session_id)
        };
        if !group {
            retry = retry.without(51);
        }
        if cookie {
            retry = retry.with(44, vector(2, &[0xc0; 300]));
        }
        client.take(&plain(22, &retry.message())).unwrap();
        let later = &client.sent[first.len()..];
        assert_eq!(later[..6], [20, 3, 3, 0, 1, 1], "compatibility mode");
        assert_eq!(later[6..9], [22, 3, 3], "the record version after an answer");
        assert_eq!(first[..3], [22, 3, 1], "the record version before it");
        let first = ClientHello::decode(&first[9..]).unwrap();
        let second = ClientHello::decode(&later[15..]).unwrap();
        let psk_goes = suite == 0x1302;
        assert_eq!(second.cookie, cookie.then_some(&[0xc0; 300][..]));
        let groups: Vec<u16> = second.key_share.unwrap().iter().map(|share| share.group).collect();
        assert_eq!(
            groups,
            [if group {
                Group::Secp256r1 as u16
            } else {
                Group::X25519 as u16
            }]
        );
        assert_eq!(
            second.pre_shared_key.is_some(),
            !psk_goes,
            "a PSK of another hash is not offered again"
        );
        let same = ClientHello {
            cookie: first.cookie,
            key_share: first.key_share,
            pre_shared_key: first.pre_shared_key,
            ..second
        };
        assert_eq!(same, first);
        // Taking the PSK that is not there any more.
        let hello = Hello {
            suite,
            ..Hello::tls13(&client.session_id)
        };
        let hello = hello.with(51, share(groups[0])).with(41, u16s(&[0]));
        let expected = if psk_goes {
            Err(Cause::UnsupportedExtension(41))
        } else {
            Ok(StateId::AwaitEncryptedExtensions)
        };
        assert_eq!(client.take(&plain(22, &hello.message())), expected);
    }
}

#[test]
fn psk() {
    let verifier = verifier();
    let resume = saved(CipherSuite::TLS_AES_128_GCM_SHA256, b"", b"a ticket");
    let mut config = ClientConfig::<Toy>::new(&verifier, NAME);
    config.resume = &resume;
    let on = |change: fn(Hello) -> Hello| hello_13(&config, |it| change(it.with(41, u16s(&[0]))));
    assert_eq!(on(|it| it), Ok(StateId::AwaitEncryptedExtensions));
    assert_eq!(
        on(|it| Hello { suite: 0x1303, ..it }),
        Ok(StateId::AwaitEncryptedExtensions),
        "the same hash"
    );
    assert_eq!(on(|it| Hello { suite: 0x1302, ..it }), ILLEGAL_HELLO, "another hash");
    assert_eq!(
        on(|it| it.with(41, u16s(&[1]))),
        ILLEGAL_HELLO,
        "an index that was not offered"
    );
    assert_eq!(
        on(|it| it.without(51)),
        Err(Cause::MissingExtension(51)),
        "PSK alone was not offered"
    );
    assert_eq!(
        on(|it| it.without(41)),
        Ok(StateId::AwaitEncryptedExtensions),
        "a full handshake"
    );
    // Resumed: Finished follows EncryptedExtensions, and nothing else does.
    for (next, expected) in [
        (finished(32), Ok(StateId::Connected)),
        (certificate_13(&[leaf()]), met(StateId::AwaitServerFinished, 11)),
        (
            certificate_request_13(&[(13, vector(2, &u16s(&[0x0403])))]),
            met(StateId::AwaitServerFinished, 13),
        ),
    ] {
        let mut client = Client::new(&config);
        let hello = Hello::tls13(&client.session_id).with(41, u16s(&[0]));
        client.take(&plain(22, &hello.message())).unwrap();
        client.take(&sealed_13(22, &encrypted_extensions(&[]))).unwrap();
        assert_eq!(client.take(&sealed_13(22, &next)), expected);
    }
}

/// Which saved sessions are offered, and as what.
#[test]
fn sessions_are_offered_where_they_can_be_used() {
    let tls13 = saved(CipherSuite::TLS_AES_128_GCM_SHA256, b"", b"ticket 13");
    let tls12 = saved(CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, b"", b"ticket 12");
    let by_id = saved(CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, &[8; 32], b"");
    let verifier = verifier();
    let base = || ClientConfig::<Toy>::new(&verifier, NAME);
    let offered = |config: &ClientConfig<'_, Toy>| {
        let client = Client::new(config);
        let hello = client.hello();
        (
            hello.pre_shared_key.is_some(),
            hello.session_ticket.is_some_and(|ticket| !ticket.is_empty()),
            hello.session_id == [8; 32],
        )
    };
    let with = |resume| ClientConfig { resume, ..base() };
    assert_eq!(offered(&with(&tls13)), (true, false, false));
    assert_eq!(offered(&with(&tls12)), (false, true, false));
    assert_eq!(offered(&with(&by_id)), (false, false, true));
    assert_eq!(offered(&with(&[])), (false, false, false));
    assert_eq!(offered(&with(b"something else")), (false, false, false));
    let nothing = (false, false, false);
    let elsewhere = [&tls13, &tls12, &by_id].map(|resume| elsewhere(resume));
    for (resume, bound_otherwise) in [&tls13[..], &tls12, &by_id].into_iter().zip(&elsewhere) {
        assert_eq!(
            offered(&with(bound_otherwise)),
            nothing,
            "another server, or anchors, or client"
        );
        let suites = &[
            CipherSuite::TLS_AES_256_GCM_SHA384,
            CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        ];
        assert_eq!(
            offered(&ClientConfig { suites, ..with(resume) }),
            nothing,
            "another suite"
        );
    }
    assert_eq!(
        offered(&ClientConfig {
            versions: &[Version::Tls12],
            ..with(&tls13)
        }),
        nothing
    );
    assert_eq!(
        offered(&ClientConfig {
            versions: &[Version::Tls13],
            ..with(&tls12)
        }),
        nothing
    );
    assert_eq!(
        offered(&ClientConfig {
            suites: &[CipherSuite::TLS_CHACHA20_POLY1305_SHA256],
            ..with(&tls13)
        }),
        (true, false, false),
        "another suite with the PSK's hash"
    );
    let wishes_none = ClientConfig {
        tickets: false,
        ..base()
    };
    let client = Client::new(&wishes_none);
    assert_eq!(
        (client.hello().session_ticket, client.hello().psk_key_exchange_modes),
        (None, None)
    );
    let wishes = base();
    let client = Client::new(&wishes);
    assert_eq!(
        (client.hello().session_ticket, client.hello().psk_key_exchange_modes),
        (Some(&[][..]), Some(&[1][..]))
    );
}

#[test]
fn names_in_the_hello() {
    let verifier = verifier();
    let told = |name| {
        let config = ClientConfig::<Toy>::new(&verifier, name);
        Client::new(&config).hello().server_name.map(<[u8]>::to_vec)
    };
    assert_eq!(told(NAME).as_deref(), Some(&b"broker.example"[..]));
    assert_eq!(
        told(Some(ServerName::Dns("broker.example."))).as_deref(),
        Some(&b"broker.example"[..])
    );
    assert_eq!(
        told(Some(ServerName::Dns("broker_1"))).as_deref(),
        Some(&b"broker_1"[..]),
        "no legal name, but theirs"
    );
    assert_eq!(
        told(Some(ServerName::Dns("192.0.2.7"))),
        None,
        "an address in a name's clothes"
    );
    assert_eq!(told(Some(ServerName::Dns("2001:db8::7"))), None);
    assert_eq!(told(Some(ServerName::Ip("192.0.2.7".parse().unwrap()))), None);
    assert_eq!(told(Some(ServerName::Dns(""))), None);
    assert_eq!(told(None), None);
}

/// A client that has taken a ServerHello of TLS 1.3.
fn at_extensions<'a>(config: &'a ClientConfig<'a, Toy>) -> Client<'a> {
    let mut client = Client::new(config);
    let hello = Hello::tls13(&client.session_id);
    assert_eq!(
        client.take(&plain(22, &hello.message())),
        Ok(StateId::AwaitEncryptedExtensions)
    );
    client
}

#[test]
fn extensions_under_encryption() {
    let verifier = verifier();
    let mut config = ClientConfig::<Toy>::new(&verifier, NAME);
    config.record_size_limit = Some(1024);
    let nameless = ClientConfig::<Toy>::new(&verifier, None);
    let on = |config, kind, data: &[u8]| {
        at_extensions(config).take(&sealed_13(22, &encrypted_extensions(&[(kind, data.to_vec())])))
    };
    let ok = Ok(StateId::AwaitCertificateOrRequest);
    let illegal = Err(Cause::IllegalParameter(8));
    let unasked = |kind| Err(Cause::UnsupportedExtension(kind));
    assert_eq!(on(&config, 0, &[]), ok);
    assert_eq!(on(&nameless, 0, &[]), unasked(0), "no name was told");
    assert_eq!(on(&config, 10, &[0, 2, 0, 0x1d]), ok);
    assert_eq!(on(&config, 28, &[2, 0]), ok);
    assert_eq!(on(&nameless, 28, &[2, 0]), unasked(28));
    assert_eq!(on(&config, 28, &[0, 63]), illegal, "under the least");
    assert_eq!(on(&config, 28, &[0x40, 1]), ok);
    assert_eq!(on(&config, 28, &[0x40, 2]), illegal, "over the most");
    assert_eq!(on(&config, 1, &[2]), unasked(1));
    assert_eq!(on(&config, 16, &[0, 2, 1, b'k']), unasked(16));
    assert_eq!(on(&config, 42, &[]), unasked(42), "early data was not offered");
    assert_eq!(on(&config, 0x7777, &[]), unasked(0x7777));
    for kind in [13, 43, 45, 51] {
        assert_eq!(
            on(&config, kind, &[]),
            illegal,
            "{kind} was offered, and belongs elsewhere"
        );
    }
    let twice = encrypted_extensions(&[(0, vec![]), (0, vec![])]);
    assert_eq!(at_extensions(&config).take(&sealed_13(22, &twice)), illegal);
    let trailing = message(8, &[0, 0, 0]);
    assert_eq!(
        at_extensions(&config).take(&sealed_13(22, &trailing)),
        Err(Cause::Decode(8))
    );
}

/// A client that waits for a Certificate.
fn at_certificate<'a>(config: &'a ClientConfig<'a, Toy>) -> Client<'a> {
    let mut client = at_extensions(config);
    let next = client.take(&sealed_13(22, &encrypted_extensions(&[])));
    assert_eq!(next, Ok(StateId::AwaitCertificateOrRequest));
    client
}

#[test]
fn certificates_13() {
    let verifier = verifier();
    let config = ClientConfig::<Toy>::new(&verifier, NAME);
    let on = |certificate: Vec<u8>| at_certificate(&config).take(&sealed_13(22, &certificate));
    let ok = Ok(StateId::AwaitServerCertificateVerify);
    assert_eq!(on(certificate_13(&[leaf()])), ok);
    assert_eq!(on(certificate_13(&[leaf(); 10])), ok);
    assert_eq!(on(certificate_13(&[leaf(); 11])), Err(Cause::ChainTooLong));
    assert_eq!(on(certificate_13(&[])), Err(Cause::Decode(11)), "a server has one");
    assert_eq!(on(certificate_13(&[&leaf()[..100]])), Err(Cause::CertificateUnreadable));
    assert_eq!(on(certificate_13(&[b""])), Err(Cause::Decode(11)));
    let entry = [vector(3, leaf()), block(&[(5, vec![1, 0, 0, 0])])].concat();
    let stapled = message(11, &[vec![0], vector(3, &entry)].concat());
    assert_eq!(
        on(stapled),
        Err(Cause::UnsupportedExtension(5)),
        "no status was asked for"
    );
    let context = message(11, &[vec![1, 7], vector(3, &[])].concat());
    assert_eq!(on(context), Err(Cause::IllegalParameter(11)));
    for cause in [
        Cause::UnknownCa,
        Cause::CertificateExpired,
        Cause::CertificateName,
        Cause::CertificateUsage,
    ] {
        let refusing = Accepting {
            refuses: Some(cause),
            ..Accepting::default()
        };
        let config = ClientConfig::<Toy>::new(&refusing, NAME);
        let mut client = at_certificate(&config);
        let sent = client.sent.len();
        assert_eq!(client.take(&sealed_13(22, &certificate_13(&[leaf()]))), Err(cause));
        let alert = [2, cause.alert().unwrap() as u8];
        assert_eq!(
            client.sent[sent..],
            sealed_13(21, &alert),
            "protected, for its keys are on"
        );
        assert_eq!(client.side.notes.refused, leaf(), "kept for the log");
    }
}

#[test]
fn certificate_requests_13() {
    let verifier = verifier();
    let key = ToyKey(KeyKind::P256);
    let identity = Identity {
        chain: Fixture::DEVICE.chain,
        key: &key,
    };
    let bare = ClientConfig::<Toy>::new(&verifier, NAME);
    let able = ClientConfig {
        identity: Some(&identity),
        ..ClientConfig::<Toy>::new(&verifier, NAME)
    };
    let schemes = |schemes: &[u16]| (13, vector(2, &u16s(schemes)));
    let on = |request: Vec<u8>| at_certificate(&bare).take(&sealed_13(22, &request));
    assert_eq!(
        on(certificate_request_13(&[schemes(&[0x0403])])),
        Ok(StateId::AwaitServerCertificate)
    );
    assert_eq!(
        on(certificate_request_13(&[schemes(&[0x0403]), (0x7777, vec![1])])),
        Ok(StateId::AwaitServerCertificate),
        "what is unknown is passed over"
    );
    assert_eq!(on(certificate_request_13(&[])), Err(Cause::MissingExtension(13)));
    assert_eq!(on(certificate_request_13(&[schemes(&[])])), Err(Cause::Decode(13)));
    let context = message(13, &[vec![1, 7], block(&[schemes(&[0x0403])])].concat());
    assert_eq!(on(context), Err(Cause::IllegalParameter(13)));
    let request = certificate_request_13(&[schemes(&[0x0403])]);
    let twice = at_certificate(&bare).take(&sealed_13(22, &[&request[..], &request].concat()));
    assert_eq!(twice, met(StateId::AwaitServerCertificate, 13));

    // What is answered: chain and proof where a scheme suits the key, an empty chain otherwise.
    let answered = |config: &ClientConfig<'_, Toy>, schemes: &[u16]| {
        let mut client = at_certificate(config);
        let sent = client.sent.len();
        let request = certificate_request_13(&[(13, vector(2, &u16s(schemes)))]);
        let flight = [
            request,
            certificate_13(&[leaf()]),
            certificate_verify(0x0403),
            finished(32),
        ];
        assert_eq!(client.take(&sealed_13(22, &flight.concat())), Ok(StateId::Connected));
        client.sent[sent..].to_vec()
    };
    let empty = sealed_13(22, &[certificate_13(&[]), finished(32)].concat());
    let proof = [
        certificate_13(Fixture::DEVICE.chain),
        certificate_verify(0x0403),
        finished(32),
    ]
    .concat();
    assert_eq!(answered(&bare, &[0x0403]), empty);
    assert_eq!(answered(&able, &[0x0804, 0x0403]), sealed_13(22, &proof));
    assert_eq!(
        answered(&able, &[0x0804, 0x0503]),
        empty,
        "nothing that our key signs by"
    );
}

#[test]
fn proofs_13() {
    let verifier = verifier();
    let mut config = ClientConfig::<Toy>::new(&verifier, NAME);
    config.schemes = &[
        SignatureScheme::EcdsaSecp256r1Sha256,
        SignatureScheme::EcdsaSecp384r1Sha384,
        SignatureScheme::RsaPkcs1Sha256,
        SignatureScheme::RsaPssRsaeSha256,
    ];
    let on = |leaf: &[u8], proof: Vec<u8>| {
        let mut client = at_certificate(&config);
        client.take(&sealed_13(22, &certificate_13(&[leaf]))).unwrap();
        client.take(&sealed_13(22, &proof))
    };
    let (ecdsa, rsa) = (Fixture::P256.certificate, Fixture::RSA.certificate);
    let ok = Ok(StateId::AwaitServerFinished);
    let illegal = Err(Cause::IllegalParameter(15));
    assert_eq!(on(ecdsa, certificate_verify(0x0403)), ok);
    assert_eq!(on(rsa, certificate_verify(0x0804)), ok);
    assert_eq!(on(rsa, certificate_verify(0x0805)), illegal, "not offered");
    assert_eq!(
        on(rsa, certificate_verify(0x0401)),
        illegal,
        "offered, but no scheme for TLS 1.3"
    );
    assert_eq!(on(ecdsa, certificate_verify(0x0503)), illegal, "the other curve's");
    assert_eq!(on(ecdsa, certificate_verify(0x0804)), illegal, "the other kind's");
    assert_eq!(on(ecdsa, certificate_verify(0x0203)), illegal, "SHA-1");
    let wrong = message(15, &[u16s(&[0x0403]), vector(2, &[1; 8])].concat());
    assert_eq!(on(ecdsa, wrong), Err(Cause::BadSignature));
    let empty = message(15, &[u16s(&[0x0403]), vector(2, &[])].concat());
    assert_eq!(on(ecdsa, empty), Err(Cause::BadSignature));
}

#[test]
fn finished_13() {
    let verifier = verifier();
    let config = ClientConfig::<Toy>::new(&verifier, NAME);
    let on = |last: Vec<u8>| {
        let mut client = at_certificate(&config);
        let flight = [certificate_13(&[leaf()]), certificate_verify(0x0403)].concat();
        client.take(&sealed_13(22, &flight)).unwrap();
        client.take(&sealed_13(22, &last))
    };
    assert_eq!(on(finished(32)), Ok(StateId::Connected));
    assert_eq!(on(message(20, &[1; 32])), Err(Cause::BadFinished));
    assert_eq!(on(finished(31)), Err(Cause::Decode(20)));
    assert_eq!(on(finished(48)), Err(Cause::Decode(20)));
}

#[test]
fn tickets_13() {
    let verifier = verifier();
    let config = ClientConfig::<Toy>::new(&verifier, NAME);
    let with_nonce = |lifetime: u32, nonce: &[u8], ticket: &[u8]| {
        let body = [
            &lifetime.to_be_bytes()[..],
            &[1, 2, 3, 4],
            &vector(1, nonce),
            &vector(2, ticket),
            &[0, 0],
        ];
        message(4, &body.concat())
    };
    let ticket = |lifetime, ticket: &[u8]| with_nonce(lifetime, b"nonce", ticket);
    let mut client = at_certificate(&config);
    let flight = [certificate_13(&[leaf()]), certificate_verify(0x0403), finished(32)].concat();
    client.take(&sealed_13(22, &flight)).unwrap();
    assert_eq!(
        client.take(&sealed_13(22, &ticket(0, b"at once gone"))),
        Ok(StateId::Connected)
    );
    assert_eq!(client.side.kept.count, 0, "a lifetime of none");
    let two = [ticket(60, b"first"), ticket(600, b"second")].concat();
    assert_eq!(client.take(&sealed_13(22, &two)), Ok(StateId::Connected));
    assert_eq!(client.side.kept.count, 2);
    let kept = SavedSession::decode(&client.side.kept.bytes).unwrap();
    assert_eq!(
        (kept.ticket, kept.lifetime_seconds, kept.age_add),
        (&b"second"[..], 600, 0x0102_0304)
    );
    assert_eq!((kept.received, kept.suite), (NOW, CipherSuite::TLS_AES_128_GCM_SHA256));
    for nonce in [&[][..], &[7; 255]] {
        client
            .take(&sealed_13(22, &with_nonce(60, nonce, b"any nonce")))
            .unwrap();
    }
    assert_eq!(client.side.kept.count, 4);
    assert_eq!(client.take(&sealed_13(22, &ticket(60, b""))), Err(Cause::Decode(4)));
}

/// Shows a client a ServerHello of TLS 1.2.
fn hello_12(config: &ClientConfig<'_, Toy>, hello: &Hello) -> Result<StateId, Cause> {
    Client::new(config).take(&plain(22, &hello.message()))
}

#[test]
fn server_hello_12() {
    let verifier = verifier();
    let mut config = ClientConfig::<Toy>::new(&verifier, NAME);
    config.suites = &[
        CipherSuite::TLS_AES_128_GCM_SHA256,
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    ];
    config.record_size_limit = Some(1024);
    let plain_wishes = ClientConfig::<Toy> {
        tickets: false,
        ..ClientConfig::new(&verifier, None)
    };
    let on = |change: fn(Hello) -> Hello| hello_12(&config, &change(Hello::tls12()));
    let ok = Ok(StateId::AwaitServerCertificate12);
    let unasked = |kind| Err(Cause::UnsupportedExtension(kind));
    assert_eq!(on(|it| it), ok);
    assert_eq!(
        on(|it| Hello {
            extensions: vec![],
            ..it
        }),
        ok,
        "neither RFC 7627 nor RFC 5746 is required"
    );
    assert_eq!(
        on(|it| Hello {
            session_id: vec![],
            ..it
        }),
        ok
    );
    assert_eq!(on(|it| Hello { suite: 0xc02c, ..it }), ILLEGAL_HELLO, "not offered");
    assert_eq!(on(|it| Hello { suite: 0x1301, ..it }), ILLEGAL_HELLO, "of TLS 1.3");
    assert_eq!(on(|it| Hello { suite: 0x002f, ..it }), ILLEGAL_HELLO, "unknown");
    assert_eq!(on(|it| Hello { compression: 1, ..it }), ILLEGAL_HELLO);
    assert_eq!(
        on(|it| it.with(0xff01, vec![2, 7, 7])),
        Err(Cause::Renegotiation),
        "a connection before this one"
    );
    assert_eq!(on(|it| it.with(11, vec![1, 0])), ok);
    assert_eq!(on(|it| it.with(11, vec![2, 1, 0])), ok);
    assert_eq!(
        on(|it| it.with(11, vec![1, 1])),
        ILLEGAL_HELLO,
        "no uncompressed points"
    );
    assert_eq!(on(|it| it.with(0, vec![])), ok);
    assert_eq!(on(|it| it.with(28, vec![2, 0])), ok);
    assert_eq!(on(|it| it.with(28, vec![0x40, 0])), ok);
    assert_eq!(
        on(|it| it.with(28, vec![0x40, 1])),
        ILLEGAL_HELLO,
        "TLS 1.2 has no more than 2^14"
    );
    assert_eq!(on(|it| it.with(1, vec![1])), unasked(1));
    assert_eq!(on(|it| it.with(16, vec![0, 2, 1, b'k'])), unasked(16));
    assert_eq!(on(|it| it.with(0x7777, vec![])), unasked(0x7777));
    assert_eq!(on(|it| it.with(51, share(0x001d))), ILLEGAL_HELLO, "of TLS 1.3");
    assert_eq!(on(|it| it.with(35, vec![])), ok);
    let plainly = |kind, data| hello_12(&plain_wishes, &Hello::tls12().with(kind, data));
    assert_eq!(plainly(35, vec![]), unasked(35), "no ticket was wished for");
    assert_eq!(plainly(0, vec![]), unasked(0));
    assert_eq!(plainly(28, vec![2, 0]), unasked(28));
}

#[test]
fn downgrades() {
    let verifier = verifier();
    let both = ClientConfig::<Toy>::new(&verifier, NAME);
    let only_12 = ClientConfig::<Toy> {
        versions: &[Version::Tls12],
        ..ClientConfig::new(&verifier, NAME)
    };
    for end in [b"DOWNGRD\x01", b"DOWNGRD\x00"] {
        let mut hello = Hello::tls12();
        hello.random[24..].copy_from_slice(end);
        assert_eq!(hello_12(&both, &hello), ILLEGAL_HELLO);
        assert_eq!(
            hello_12(&only_12, &hello),
            Ok(StateId::AwaitServerCertificate12),
            "1.2 is our best"
        );
    }
}

#[test]
fn session_ids_12() {
    let verifier = verifier();
    let config = ClientConfig::<Toy>::new(&verifier, NAME);
    let mut client = Client::new(&config);
    let echo = Hello {
        session_id: client.session_id.clone(),
        ..Hello::tls12()
    };
    assert_eq!(
        client.take(&plain(22, &echo.message())),
        ILLEGAL_HELLO,
        "names no session"
    );

    // A session that was not offered, because it is another server's, is not resumed either.
    let resume = saved(CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, b"", b"a ticket");
    let resume = elsewhere(&resume);
    let mut config = ClientConfig::<Toy>::new(&verifier, NAME);
    config.resume = &resume;
    let mut client = Client::new(&config);
    let echo = Hello {
        session_id: client.session_id.clone(),
        ..Hello::tls12()
    };
    assert_eq!(client.take(&plain(22, &echo.message())), ILLEGAL_HELLO);

    for (id, ticket) in [(&b""[..], &b"a ticket"[..]), (&[8; 32], b"")] {
        let resume = saved(CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, id, ticket);
        let mut config = ClientConfig::<Toy>::new(&verifier, NAME);
        config.resume = &resume;
        let on = |change: fn(Hello) -> Hello| {
            let mut client = Client::new(&config);
            let hello = Hello {
                session_id: client.session_id.clone(),
                ..Hello::tls12()
            };
            client.take(&plain(22, &change(hello).message()))
        };
        assert_eq!(on(|it| it), Ok(StateId::AwaitServerChangeCipherSpec));
        assert_eq!(on(|it| it.with(35, vec![])), Ok(StateId::AwaitNewSessionTicket));
        assert_eq!(
            on(|it| Hello {
                session_id: vec![],
                ..it
            }),
            Ok(StateId::AwaitServerCertificate12),
            "not taken"
        );
        assert_eq!(
            on(|it| Hello { suite: 0xc02c, ..it }),
            ILLEGAL_HELLO,
            "another suite than the session's"
        );
        assert_eq!(on(|it| it.without(23)), Err(Cause::MasterSecretChanged));
        // The server finishes first, and we do after it.
        let mut client = Client::new(&config);
        let hello = Hello {
            session_id: client.session_id.clone(),
            ..Hello::tls12()
        };
        client.take(&plain(22, &hello.message())).unwrap();
        let sent = client.sent.len();
        client.take(&plain(20, &[1])).unwrap();
        assert_eq!(client.take(&sealed_12(22, &finished(12))), Ok(StateId::Connected));
        assert_eq!(
            client.sent[sent..],
            [plain(20, &[1]), sealed_12(22, &finished(12))].concat()
        );
        assert!(client.side.session.is_resumed());
        assert_eq!(client.side.session.peer().unwrap().subject, "CN=server");
    }
}

/// A client that has taken a ServerHello of TLS 1.2.
fn at_certificate_12<'a>(config: &'a ClientConfig<'a, Toy>, hello: &Hello) -> Client<'a> {
    let mut client = Client::new(config);
    assert_eq!(
        client.take(&plain(22, &hello.message())),
        Ok(StateId::AwaitServerCertificate12)
    );
    client
}

#[test]
fn certificates_12() {
    let verifier = verifier();
    let config = ClientConfig::<Toy>::new(&verifier, NAME);
    let on = |suite: CipherSuite, certificate: Vec<u8>| {
        let hello = Hello {
            suite: suite as u16,
            ..Hello::tls12()
        };
        at_certificate_12(&config, &hello).take(&plain(22, &certificate))
    };
    let ecdsa = CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256;
    let rsa = CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256;
    let ok = Ok(StateId::AwaitServerKeyExchange);
    let illegal = Err(Cause::IllegalParameter(11));
    assert_eq!(on(ecdsa, certificate_12(&[leaf()])), ok);
    assert_eq!(on(rsa, certificate_12(&[Fixture::RSA.certificate])), ok);
    assert_eq!(on(rsa, certificate_12(&[leaf()])), illegal, "the suite's kind");
    assert_eq!(on(ecdsa, certificate_12(&[Fixture::RSA.certificate])), illegal);
    assert_eq!(
        on(ecdsa, certificate_12(&[Fixture::P384.certificate])),
        illegal,
        "a curve that is not offered"
    );
    assert_eq!(on(ecdsa, certificate_12(&[])), Err(Cause::Decode(11)));
    assert_eq!(on(ecdsa, certificate_12(&[leaf(); 11])), Err(Cause::ChainTooLong));
    assert_eq!(
        on(ecdsa, certificate_12(&[&leaf()[..99]])),
        Err(Cause::CertificateUnreadable)
    );
    let no_p256 = ClientConfig::<Toy> {
        groups: &[Group::X25519],
        ..ClientConfig::new(&verifier, NAME)
    };
    let mut client = at_certificate_12(&no_p256, &Hello::tls12());
    assert_eq!(
        client.take(&plain(22, &certificate_12(&[leaf()]))),
        illegal,
        "a curve that is not offered this time"
    );
    let refusing = Accepting {
        refuses: Some(Cause::UnknownCa),
        ..Accepting::default()
    };
    let config = ClientConfig::<Toy>::new(&refusing, NAME);
    let refused = at_certificate_12(&config, &Hello::tls12()).take(&plain(22, &certificate_12(&[leaf()])));
    assert_eq!(refused, Err(Cause::UnknownCa));
}

#[test]
fn key_exchanges_12() {
    let verifier = verifier();
    let mut config = ClientConfig::<Toy>::new(&verifier, NAME);
    config.schemes = &[
        SignatureScheme::EcdsaSecp256r1Sha256,
        SignatureScheme::RsaPkcs1Sha256,
        SignatureScheme::RsaPssRsaeSha256,
    ];
    let on = |exchange: Vec<u8>| {
        let mut client = at_certificate_12(&config, &Hello::tls12());
        client.take(&plain(22, &certificate_12(&[leaf()]))).unwrap();
        client.take(&plain(22, &exchange))
    };
    let ok = Ok(StateId::AwaitServerHelloDone);
    let illegal = Err(Cause::IllegalParameter(12));
    let raw = |curve_type: u8, group: u16, share: &[u8], signature: &[u8]| {
        let body = [
            vec![curve_type],
            u16s(&[group]),
            vector(1, share),
            u16s(&[0x0403]),
            vector(2, signature),
        ];
        message(12, &body.concat())
    };
    assert_eq!(on(server_key_exchange(0x001d, 0x0403)), ok);
    assert_eq!(on(server_key_exchange(0x0017, 0x0403)), ok);
    assert_eq!(
        on(server_key_exchange(0x001d, 0x0503)),
        illegal,
        "a scheme that was not offered"
    );
    assert_eq!(on(server_key_exchange(0x001d, 0x0401)), illegal, "the other kind's");
    assert_eq!(on(server_key_exchange(0x001d, 0x0203)), illegal, "SHA-1");
    assert_eq!(
        on(raw(3, 0x0018, &[4; 97], &[BYTE; 8])),
        illegal,
        "a group that was not offered"
    );
    assert_eq!(on(raw(3, 0x001d, &[BYTE; 33], &[BYTE; 8])), illegal, "too long a share");
    assert_eq!(on(raw(3, 0x0017, &[2; 33], &[BYTE; 8])), illegal, "a compressed point");
    assert_eq!(on(raw(3, 0x001d, &[], &[BYTE; 8])), Err(Cause::Decode(12)));
    assert_eq!(
        on(raw(1, 0x001d, &[BYTE; 32], &[BYTE; 8])),
        illegal,
        "an explicit curve"
    );
    assert_eq!(on(raw(3, 0x001d, &[0; 32], &[BYTE; 8])), Err(Cause::BadShare));
    assert_eq!(on(raw(3, 0x001d, &[BYTE; 32], &[0; 8])), Err(Cause::BadSignature));
    config.groups = &[Group::Secp256r1];
    let mut client = at_certificate_12(&config, &Hello::tls12());
    client.take(&plain(22, &certificate_12(&[leaf()]))).unwrap();
    assert_eq!(
        client.take(&plain(22, &server_key_exchange(0x001d, 0x0403))),
        illegal,
        "not offered this time"
    );
}

#[test]
fn requests_and_answers_12() {
    let verifier = verifier();
    let key = ToyKey(KeyKind::P256);
    let identity = Identity {
        chain: Fixture::DEVICE.chain,
        key: &key,
    };
    let bare = ClientConfig::<Toy>::new(&verifier, NAME);
    let able = ClientConfig {
        identity: Some(&identity),
        ..ClientConfig::<Toy>::new(&verifier, NAME)
    };
    let done = message(14, &[]);
    let answered = |config: &ClientConfig<'_, Toy>, requests: &[Vec<u8>]| {
        let mut client = at_certificate_12(config, &Hello::tls12());
        let flight = [certificate_12(&[leaf()]), server_key_exchange(0x001d, 0x0403)].concat();
        client.take(&plain(22, &flight)).unwrap();
        let sent = client.sent.len();
        let next = client.take(&plain(22, &[requests.concat(), done.clone()].concat()));
        (next, client.sent[sent..].to_vec())
    };
    let share = message(16, &vector(1, &[BYTE; 32]));
    let end = [plain(20, &[1]), sealed_12(22, &finished(12))].concat();
    let flight = |messages: &[Vec<u8>]| [plain(22, &messages.concat()), end.clone()].concat();
    let ok = Ok(StateId::AwaitServerChangeCipherSpec);
    let empty = (ok, flight(&[certificate_12(&[]), share.clone()]));
    assert_eq!(answered(&bare, &[]), (ok, flight(std::slice::from_ref(&share))));
    assert_eq!(
        answered(&able, &[]),
        (ok, flight(std::slice::from_ref(&share))),
        "nobody asked"
    );
    let request = certificate_request_12(&[64, 1], &[0x0804, 0x0403]);
    assert_eq!(answered(&bare, std::slice::from_ref(&request)), empty);
    let proof = [
        certificate_12(Fixture::DEVICE.chain),
        share.clone(),
        certificate_verify(0x0403),
    ];
    assert_eq!(answered(&able, std::slice::from_ref(&request)), (ok, flight(&proof)));
    let other_hash = certificate_request_12(&[64], &[0x0503]);
    let proof = [
        certificate_12(Fixture::DEVICE.chain),
        share.clone(),
        certificate_verify(0x0503),
    ];
    assert_eq!(
        answered(&able, &[other_hash]),
        (ok, flight(&proof)),
        "another hash than the suite's"
    );
    assert_eq!(
        answered(&able, &[certificate_request_12(&[1], &[0x0403])]),
        empty,
        "no certificate of that type"
    );
    assert_eq!(
        answered(&able, &[certificate_request_12(&[64], &[0x0804])]),
        empty,
        "no scheme"
    );
    let twice = answered(&able, &[request.clone(), request]).0;
    assert_eq!(twice, met(StateId::AwaitServerHelloDone, 13));
    assert_eq!(
        answered(&able, &[certificate_request_12(&[], &[0x0403])]).0,
        Err(Cause::Decode(13))
    );
}

#[test]
fn endings_12() {
    let verifier = verifier();
    let config = ClientConfig::<Toy>::new(&verifier, NAME);
    let at_end = |hello: &Hello| {
        let mut client = at_certificate_12(&config, hello);
        let flight = [
            certificate_12(&[leaf()]),
            server_key_exchange(0x001d, 0x0403),
            message(14, &[]),
        ];
        client.take(&plain(22, &flight.concat())).unwrap();
        client
    };
    let ccs = plain(20, &[1]);
    let ticket = |ticket: &[u8]| message(4, &[&[0, 0, 1, 0][..], &vector(2, ticket)].concat());

    let mut client = at_end(&Hello::tls12());
    assert_eq!(client.take(&ccs), Ok(StateId::AwaitServerFinished12));
    assert_eq!(client.take(&sealed_12(22, &finished(12))), Ok(StateId::Connected));
    let kept = SavedSession::decode(&client.side.kept.bytes).unwrap();
    assert_eq!(
        (kept.session_id, kept.ticket, kept.is_extended),
        (&[9; 32][..], &b""[..], true)
    );

    let nameless = Hello {
        session_id: vec![],
        ..Hello::tls12()
    };
    let mut client = at_end(&nameless);
    client.take_all(&[ccs.clone(), sealed_12(22, &finished(12))]).unwrap();
    assert_eq!(client.side.kept.count, 0, "nothing to resume it by");

    let mut client = at_end(&Hello::tls12().with(35, vec![]));
    assert_eq!(
        client.take(&plain(22, &ticket(b"a ticket"))),
        Ok(StateId::AwaitServerChangeCipherSpec)
    );
    client.take(&ccs).unwrap();
    assert_eq!(client.side.kept.count, 0, "not before Finished");
    assert_eq!(client.take(&sealed_12(22, &finished(12))), Ok(StateId::Connected));
    let kept = SavedSession::decode(&client.side.kept.bytes).unwrap();
    assert_eq!(
        (kept.session_id, kept.ticket, kept.lifetime_seconds),
        (&b""[..], &b"a ticket"[..], 256)
    );

    let mut client = at_end(&Hello::tls12().with(35, vec![]));
    client
        .take_all(&[plain(22, &ticket(b"")), ccs.clone(), sealed_12(22, &finished(12))])
        .unwrap();
    let kept = SavedSession::decode(&client.side.kept.bytes).unwrap();
    assert_eq!(kept.session_id, [9; 32], "an empty ticket leaves the id");

    let wrong = sealed_12(22, &message(20, &[1; 12]));
    let mut client = at_end(&Hello::tls12().with(35, vec![]));
    client
        .take_all(&[plain(22, &ticket(b"a ticket")), ccs.clone()])
        .unwrap();
    assert_eq!(client.take(&wrong), Err(Cause::BadFinished));
    assert_eq!(client.side.kept.count, 0, "a ticket without a Finished is nobody's");
    let mut client = at_end(&Hello::tls12());
    client.take(&ccs).unwrap();
    assert_eq!(client.take(&sealed_12(22, &finished(11))), Err(Cause::Decode(20)));

    // The order of the end.
    let record = |kind| {
        Err(Cause::OutOfSequence {
            state: StateId::AwaitNewSessionTicket,
            met: Met::Record(kind),
        })
    };
    assert_eq!(
        at_end(&Hello::tls12().with(35, vec![])).take(&ccs),
        record(20),
        "the ticket was promised"
    );
    let early = at_end(&Hello::tls12()).take(&plain(22, &finished(12)));
    assert_eq!(early, met(StateId::AwaitServerChangeCipherSpec, 20), "keys are not on");
    let unpromised = at_end(&Hello::tls12()).take(&plain(22, &ticket(b"a ticket")));
    assert_eq!(unpromised, met(StateId::AwaitServerChangeCipherSpec, 4));
}

/// No renegotiation: the first HelloRequest gets a warning, the second ends it (RFC 5246 §7.2.2).
#[test]
fn hello_requests_12() {
    let verifier = verifier();
    let config = ClientConfig::<Toy>::new(&verifier, NAME);
    let mut client = at_certificate_12(&config, &Hello::tls12());
    let flight = [
        certificate_12(&[leaf()]),
        server_key_exchange(0x001d, 0x0403),
        message(14, &[]),
    ];
    client.take(&plain(22, &flight.concat())).unwrap();
    client
        .take_all(&[plain(20, &[1]), sealed_12(22, &finished(12))])
        .unwrap();
    let sent = client.sent.len();
    assert_eq!(client.take(&sealed_12(22, &message(0, &[]))), Ok(StateId::Connected));
    assert_eq!(
        client.sent[sent + 5 + 8..][..2],
        [1, 100],
        "no_renegotiation, a warning"
    );
    assert_eq!(client.take(&sealed_12(22, &message(0, &[]))), Err(Cause::Renegotiation));
}
