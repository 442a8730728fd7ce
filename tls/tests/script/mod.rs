//! A server that says whatever a test writes: messages by hand, MACs and signatures of the provider of constants.

use skerry_tls::cause::Cause;
use skerry_tls::config::{ClientConfig, Config};
use skerry_tls::message::{ClientHello, RETRY_RANDOM};
use skerry_tls::state::StateId;
use skerry_tls::suite::CipherSuite;
use skerry_tls::testing::{Fixture, Room, Setting, Side, Toy};

/// What every MAC, signature, secret and tag of [`Toy`] consists of.
pub const BYTE: u8 = 0x5a;

/// Number and data of an extension.
pub type Extension = (u16, Vec<u8>);

pub fn u16s(numbers: &[u16]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
}

/// With its length in `width` bytes before it.
pub fn vector(width: usize, content: &[u8]) -> Vec<u8> {
    let mut bytes = content.len().to_be_bytes()[8 - width..].to_vec();
    bytes.extend_from_slice(content);
    bytes
}

pub fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend(vector(3, body));
    bytes
}

/// A block of extensions with its length.
pub fn block(extensions: &[Extension]) -> Vec<u8> {
    let content: Vec<u8> = extensions
        .iter()
        .flat_map(|(kind, data)| [u16s(&[*kind]), vector(2, data)].concat())
        .collect();
    vector(2, &content)
}

/// A share of [`Toy`]'s.
pub fn share(group: u16) -> Vec<u8> {
    let mut share = vec![BYTE; if group == 0x001d { 32 } else { 65 }];
    if group != 0x001d {
        share[0] = 4;
    }
    [u16s(&[group]), vector(2, &share)].concat()
}

/// Every field of a ServerHello.
#[derive(Clone)]
pub struct Hello {
    pub version: u16,
    pub random: [u8; 32],
    pub session_id: Vec<u8>,
    pub suite: u16,
    pub compression: u8,
    pub extensions: Vec<Extension>,
}

impl Hello {
    /// TLS 1.3, with a share of x25519, for a client with that session id.
    pub fn tls13(session_id: &[u8]) -> Self {
        Self {
            version: 0x0303,
            random: [7; 32],
            session_id: session_id.to_vec(),
            suite: CipherSuite::TLS_AES_128_GCM_SHA256 as u16,
            compression: 0,
            extensions: vec![(43, u16s(&[0x0304])), (51, share(0x001d))],
        }
    }

    /// A HelloRetryRequest for P-256.
    pub fn retry(session_id: &[u8]) -> Self {
        Self {
            random: RETRY_RANDOM,
            extensions: vec![(43, u16s(&[0x0304])), (51, u16s(&[0x0017]))],
            ..Self::tls13(session_id)
        }
    }

    /// TLS 1.2 with an ECDSA suite and an extended master secret.
    pub fn tls12() -> Self {
        Self {
            version: 0x0303,
            random: [7; 32],
            session_id: vec![9; 32],
            suite: CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 as u16,
            compression: 0,
            extensions: vec![(23, vec![]), (0xff01, vec![0])],
        }
    }

    /// Another extension instead of the one of that number, or beside the others.
    pub fn with(mut self, kind: u16, data: Vec<u8>) -> Self {
        self.extensions.retain(|(other, _)| *other != kind);
        self.extensions.push((kind, data));
        self
    }

    pub fn without(mut self, kind: u16) -> Self {
        self.extensions.retain(|(other, _)| *other != kind);
        self
    }

    pub fn message(&self) -> Vec<u8> {
        let body = [
            &u16s(&[self.version])[..],
            &self.random,
            &vector(1, &self.session_id),
            &u16s(&[self.suite]),
            &[self.compression],
            &block(&self.extensions),
        ];
        message(2, &body.concat())
    }
}

/// A Certificate of TLS 1.3, without extensions.
pub fn certificate_13(chain: &[&[u8]]) -> Vec<u8> {
    let entries: Vec<u8> = chain
        .iter()
        .flat_map(|der| [vector(3, der), vec![0, 0]].concat())
        .collect();
    message(11, &[vec![0], vector(3, &entries)].concat())
}

/// A Certificate of TLS 1.2.
pub fn certificate_12(chain: &[&[u8]]) -> Vec<u8> {
    let entries: Vec<u8> = chain.iter().flat_map(|der| vector(3, der)).collect();
    message(11, &vector(3, &entries))
}

/// A CertificateVerify that [`Toy`] takes.
pub fn certificate_verify(scheme: u16) -> Vec<u8> {
    message(15, &[u16s(&[scheme]), vector(2, &[BYTE; 8])].concat())
}

/// A ServerKeyExchange that [`Toy`] takes, if `scheme` suits the key.
pub fn server_key_exchange(group: u16, scheme: u16) -> Vec<u8> {
    let share = &share(group)[4..];
    let body = [
        vec![3],
        u16s(&[group]),
        vector(1, share),
        u16s(&[scheme]),
        vector(2, &[BYTE; 8]),
    ];
    message(12, &body.concat())
}

/// A CertificateRequest of TLS 1.3.
pub fn certificate_request_13(extensions: &[Extension]) -> Vec<u8> {
    message(13, &[vec![0], block(extensions)].concat())
}

/// A CertificateRequest of TLS 1.2.
pub fn certificate_request_12(types: &[u8], schemes: &[u16]) -> Vec<u8> {
    message(13, &[vector(1, types), vector(2, &u16s(schemes)), vec![0, 0]].concat())
}

pub fn encrypted_extensions(extensions: &[Extension]) -> Vec<u8> {
    message(8, &block(extensions))
}

/// A Finished that [`Toy`] takes: 32 bytes or 48 in TLS 1.3, 12 in 1.2.
pub fn finished(bytes: usize) -> Vec<u8> {
    message(20, &vec![BYTE; bytes])
}

/// One record without protection.
pub fn plain(kind: u8, content: &[u8]) -> Vec<u8> {
    [vec![kind, 3, 3], vector(2, content)].concat()
}

/// One record of TLS 1.3 as [`Toy`] seals it.
pub fn sealed_13(kind: u8, content: &[u8]) -> Vec<u8> {
    plain(23, &[content, &[kind], &[BYTE; 16]].concat())
}

/// One record of TLS 1.2 with AES-GCM as [`Toy`] seals it.
pub fn sealed_12(kind: u8, content: &[u8]) -> Vec<u8> {
    plain(kind, &[&[0; 8], content, &[BYTE; 16]].concat())
}

/// A client under test, at the point where its first hello is sent.
pub struct Client<'a> {
    pub side: Side<Toy>,
    setting: Setting<'a, Toy>,
    /// The session id of its hello.
    pub session_id: Vec<u8>,
    /// All that it sent.
    pub sent: Vec<u8>,
}

impl<'a> Client<'a> {
    pub fn new(config: &'a ClientConfig<'a, Toy>) -> Self {
        let setting = Setting::new(&Toy, Config::Client(config));
        let mut side = Side::client(&setting, 1, Room::default()).expect("a configuration that offers something");
        let sent = side.take_out();
        let hello = ClientHello::decode(&sent[9..]).expect("our own hello");
        let session_id = hello.session_id.to_vec();
        Self {
            side,
            setting,
            session_id,
            sent,
        }
    }

    /// The body of its first hello.
    pub fn hello(&self) -> ClientHello<'_> {
        let bytes = usize::from(u16::from_be_bytes([self.sent[3], self.sent[4]]));
        ClientHello::decode(&self.sent[9..5 + bytes]).expect("our own hello")
    }

    /// Shows it bytes, and gives where it stands then, or why it fails.
    pub fn take(&mut self, bytes: &[u8]) -> Result<StateId, Cause> {
        self.side.receive(&self.setting, bytes);
        self.sent.extend(self.side.take_out());
        match self.side.cause {
            Some(cause) => Err(cause),
            None => Ok(self.side.session.state_id()),
        }
    }

    /// Several records, one after the other.
    pub fn take_all(&mut self, records: &[Vec<u8>]) -> Result<StateId, Cause> {
        self.take(&records.concat())
    }
}

/// The leaf that every script sends.
pub fn leaf() -> &'static [u8] {
    Fixture::P256.certificate
}
