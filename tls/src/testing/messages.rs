//! Any bytes at all as a handshake message: what the fuzz target `tls_message` runs, and tests without it.

use alloc::vec;
use alloc::vec::Vec;

use crate::cause::Cause;
use crate::message::{
    Certificate12, Certificate13, CertificateRequest12, CertificateRequest13, CertificateVerify, ClientHello,
    ClientKeyExchange, EncryptedExtensions, Finished, HEADER_BYTES, HelloRequest, KeyUpdate, NewSessionTicket12,
    NewSessionTicket13, ServerHelloDone, ServerHelloOrRetry, ServerKeyExchange, VERIFY_DATA_BYTES_12, Writer, peek,
};

/// A message whose extensions may come in another order, or be passed over: what is written is read again as the same.
macro_rules! loose {
    ($body:expr, $decode:expr, $encode:expr $(,)?) => {{
        let body: &[u8] = $body;
        match $decode(body) {
            Ok(once) => {
                // A block of extensions that turns out empty takes its length back.
                let mut room = vec![0; HEADER_BYTES + body.len() + 2];
                let bytes = Writer::fill(&mut room, |w| $encode(&once, w)).expect("what was read has room");
                let written = peek(&room[..bytes], bytes).expect("a whole message");
                let again = $decode(written.body).expect("what was written can be read");
                assert_eq!(once, again);
                Ok(written.body.to_vec())
            }
            Err(cause) => Err(cause),
        }
    }};
}

/// A message of one shape: it is written as it came.
macro_rules! exact {
    ($body:expr, $decode:expr, $encode:expr $(,)?) => {{
        let written = loose!($body, $decode, $encode);
        if let Ok(written) = &written {
            assert_eq!(written, $body);
        }
        written
    }};
}

/// How many kinds of message the first byte of [`check`] chooses from.
pub const CHOICES: u8 = 17;

/// Takes the first byte as a choice and the rest as the body of that message, in a stream of messages for the last choice. Nothing may
/// panic; what is read can be walked, written and read again as the same; and what has one shape only is written as it came.
///
/// What comes back is the body as written, or why it could not be read.
pub fn check(data: &[u8]) -> Option<Result<Vec<u8>, Cause>> {
    let (choice, body) = data.split_first()?;
    Some(match choice % CHOICES {
        0 => client_hello(body),
        1 => loose!(
            body,
            ServerHelloOrRetry::decode,
            |it: &ServerHelloOrRetry<'_>, w: &mut Writer<'_>| match it {
                ServerHelloOrRetry::Hello(it) => it.encode(w),
                ServerHelloOrRetry::Retry(it) => it.encode(w),
            }
        ),
        2 => loose!(body, EncryptedExtensions::decode, EncryptedExtensions::encode),
        3 => exact!(
            body,
            Certificate13::decode,
            |it: &Certificate13<'_>, w: &mut Writer<'_>| { Certificate13::encode(it.chain.as_slice(), w) }
        ),
        4 => exact!(
            body,
            Certificate12::decode,
            |it: &Certificate12<'_>, w: &mut Writer<'_>| { Certificate12::encode(it.chain.as_slice(), w) }
        ),
        5 => loose!(body, CertificateRequest13::decode, CertificateRequest13::encode),
        6 => {
            let written = exact!(body, CertificateRequest12::decode, CertificateRequest12::encode);
            if let Ok(request) = CertificateRequest12::decode(body) {
                let names: usize = request.authorities.iter().map(|name| 2 + name.len()).sum();
                assert!(names < body.len(), "every name is in the message");
            }
            written
        }
        7 => exact!(body, CertificateVerify::decode, CertificateVerify::encode),
        8 => exact!(
            body,
            |body| Finished::decode(body, VERIFY_DATA_BYTES_12),
            Finished::encode,
        ),
        9 => exact!(body, |body| Finished::decode(body, 32), Finished::encode),
        10 => loose!(body, NewSessionTicket13::decode, NewSessionTicket13::encode),
        11 => exact!(body, NewSessionTicket12::decode, NewSessionTicket12::encode),
        12 => exact!(body, KeyUpdate::decode, KeyUpdate::encode),
        13 => exact!(
            body,
            ServerKeyExchange::decode,
            |it: &ServerKeyExchange<'_>, w: &mut Writer<'_>| {
                ServerKeyExchange::encode(w, it.params, it.scheme, it.signature)
            }
        ),
        14 => exact!(body, ClientKeyExchange::decode, ClientKeyExchange::encode),
        15 => match body.split_first() {
            Some((0, body)) => exact!(body, HelloRequest::decode, HelloRequest::encode),
            _ => exact!(body, ServerHelloDone::decode, ServerHelloDone::encode),
        },
        _ => {
            stream(body);
            Ok(body.to_vec())
        }
    })
}

fn client_hello(body: &[u8]) -> Result<Vec<u8>, Cause> {
    let hello = ClientHello::decode(body)?;
    if let Some(shares) = hello.key_share {
        for share in shares.iter() {
            assert_eq!(shares.find(share.group), Some(share.share), "one share of each group");
        }
    }
    if let Some(psks) = hello.pre_shared_key {
        assert_eq!(psks.identities().count(), psks.binders().count());
        assert!(psks.binders_bytes() < body.len());
        // The binders are the end of the message, each after its length.
        let mut tail = Vec::new();
        for binder in psks.binders() {
            tail.push(u8::try_from(binder.len()).unwrap());
            tail.extend_from_slice(binder);
        }
        assert_eq!(psks.binders_bytes(), tail.len() + 2);
        assert!(body.ends_with(&tail));
    }
    loose!(body, ClientHello::decode, ClientHello::encode)
}

/// Messages one after the other: each is found only when all of it is there.
fn stream(mut bytes: &[u8]) {
    const BYTES_MAX: usize = 1 << 16;
    while let Ok(message) = peek(bytes, BYTES_MAX) {
        for cut in [0, 3, 4, message.raw.len() - 1] {
            let short = &bytes[..cut.min(message.raw.len() - 1)];
            assert!(matches!(peek(short, BYTES_MAX), Err(nb::Error::WouldBlock)));
        }
        bytes = &bytes[message.raw.len()..];
    }
}
