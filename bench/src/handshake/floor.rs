//! The bare primitives of a handshake, one after the other with nothing between them: what a server could not do without. As many hashes, MACs
//! and keys as the RFCs ask for, over as many bytes as this kind of handshake really has.

use skerry_tls::crypto::system::SystemRandom;
use skerry_tls::crypto::{
    Aead, AeadAlgorithm, CryptoError, Exchange, Hash, HashAlgorithm, KeyKind, Provider, PublicKey, Random,
    SIGNATURE_BYTES_MAX, SigningKey,
};
use skerry_tls::suite::{Group, SignatureScheme, Version};
use skerry_tls::testing::{Fixture, public_key};

use super::{Kind, Shape};

/// Bytes of a handshake.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sizes {
    /// The client's first flight: its hello.
    pub hello: usize,
    /// The server's answer.
    pub flight: usize,
    /// The client's second flight.
    pub finish: usize,
    /// What the server sends after it.
    pub tickets: usize,
}

impl Sizes {
    /// From the client, and from the server.
    #[must_use]
    pub const fn each_way(self) -> [usize; 2] {
        [self.hello + self.finish, self.flight + self.tickets]
    }
}

/// Calls of one handshake's primitives.
#[derive(Clone, Copy, Debug, Default)]
struct Calls {
    /// Draws of 32 random bytes, those of the key exchange aside.
    randoms: usize,
    exchanges: usize,
    signatures: usize,
    verifications: usize,
    /// Bytes that go through a hash.
    hashed: usize,
    /// Digests taken of it.
    digests: usize,
    hmacs: usize,
    /// AEAD keys made for records.
    keys: usize,
    /// Bytes of sealed and opened records, each.
    records: [usize; 2],
    /// Tickets sealed and opened.
    tickets: usize,
}

impl Calls {
    /// RFC 8446 §7.1: two extractions, two `derived`, four traffic secrets, two finished keys and MACs, key and IV of four keys, the resumption
    /// secret and a ticket's; and with a PSK its extraction and binder. RFC 5246 §5: two HMACs for each 32 bytes of master secret (48), key
    /// block (40) and each Finished (12).
    fn of(kind: Kind, sizes: Sizes) -> Self {
        let mutual = usize::from(kind.is_mutual());
        let transcript = sizes.hello + sizes.flight + sizes.finish;
        match (kind.version, kind.shape) {
            (Version::Tls13, Shape::Resumed) => Self {
                randoms: 2,
                exchanges: 1,
                hashed: transcript + sizes.hello,
                digests: 5,
                hmacs: 27,
                keys: 4,
                records: [sizes.flight + sizes.tickets, sizes.finish],
                tickets: 2,
                ..Self::default()
            },
            (Version::Tls13, _) => Self {
                randoms: 2,
                exchanges: 1,
                signatures: 1,
                verifications: mutual,
                // Besides: what is signed.
                hashed: transcript + 130 * (1 + mutual),
                digests: 6 + 2 * mutual,
                hmacs: 24,
                keys: 4,
                records: [sizes.flight + sizes.tickets, sizes.finish],
                tickets: 1,
            },
            (Version::Tls12, Shape::Resumed) => Self {
                randoms: 1,
                hashed: transcript,
                digests: 2,
                hmacs: 8,
                keys: 2,
                records: [40, 40],
                tickets: 1,
                ..Self::default()
            },
            (Version::Tls12, _) => Self {
                randoms: 1,
                exchanges: 1,
                signatures: 1,
                verifications: mutual,
                hashed: transcript + 100,
                digests: 4 + mutual,
                hmacs: 12,
                keys: 2,
                records: [40, 40],
                tickets: 1,
            },
        }
    }
}

/// The primitives of one kind of handshake, by one provider.
pub struct Floor<P: Provider + 'static> {
    provider: &'static P,
    calls: Calls,
    scheme: SignatureScheme,
    key: P::SigningKey,
    peer_share: Vec<u8>,
    client: Signed,
    ticket_key: P::Aead,
    bytes: Vec<u8>,
}

/// A signature of the client's.
struct Signed {
    key: PublicKey<'static>,
    digest: [u8; 32],
    signature: Vec<u8>,
}

impl<P: Provider> Floor<P> {
    /// For that kind, with so many bytes.
    ///
    /// Errors: the provider's.
    pub fn new(provider: &'static P, kind: Kind, sizes: Sizes) -> Result<Self, CryptoError> {
        let fixture = kind.key.fixture();
        let device = provider.signing_key(Fixture::DEVICE.key)?;
        let mut signature = [0; SIGNATURE_BYTES_MAX];
        let digest = [7; 32];
        let scheme = SignatureScheme::EcdsaSecp256r1Sha256;
        let bytes = device.sign(scheme, &digest, &mut SystemRandom, &mut signature)?;
        Ok(Self {
            provider,
            calls: Calls::of(kind, sizes),
            scheme: match fixture.kind {
                KeyKind::Rsa(_) => SignatureScheme::RsaPssRsaeSha256,
                KeyKind::P256 | KeyKind::P384 => scheme,
            },
            key: provider.signing_key(fixture.key)?,
            peer_share: provider
                .exchange(Group::X25519, &mut SystemRandom)?
                .share()
                .bytes()
                .into(),
            client: Signed {
                key: public_key(Fixture::DEVICE.certificate).ok_or(CryptoError::Failed)?,
                digest,
                signature: signature[..bytes].into(),
            },
            ticket_key: provider.aead(AeadAlgorithm::Aes256Gcm, &[7; 32])?,
            bytes: vec![7; 1 << 14],
        })
    }

    /// Does them all, once.
    ///
    /// Errors: the provider's.
    pub fn run(&mut self) -> Result<(), CryptoError> {
        const NONCE: &[u8; 12] = &[1; 12];
        let (calls, provider) = (self.calls, self.provider);
        let mut random = [0; 32];
        for _ in 0..calls.randoms {
            SystemRandom.fill(&mut random)?;
        }
        for _ in 0..calls.exchanges {
            let exchange = provider.exchange(Group::X25519, &mut SystemRandom)?;
            std::hint::black_box(exchange.share());
            std::hint::black_box(exchange.agree(&self.peer_share)?);
        }
        for _ in 0..calls.signatures {
            let mut signature = [0; SIGNATURE_BYTES_MAX];
            let digest = &self.client.digest;
            let bytes = self.key.sign(self.scheme, digest, &mut SystemRandom, &mut signature)?;
            std::hint::black_box(bytes);
        }
        for _ in 0..calls.verifications {
            let Signed { key, digest, signature } = &self.client;
            provider.verify(SignatureScheme::EcdsaSecp256r1Sha256, *key, digest, signature)?;
        }
        let mut hash = provider.hash(HashAlgorithm::Sha256)?;
        hash.update(self.bytes.get(..calls.hashed).unwrap_or_default());
        for _ in 0..calls.digests {
            std::hint::black_box(hash.digest());
        }
        for _ in 0..calls.hmacs {
            // As HKDF-Expand-Label asks for it.
            let parts: [&[u8]; 3] = [&[1; 20], &[2; 32], &[1]];
            std::hint::black_box(provider.hmac(HashAlgorithm::Sha256, &random, &parts)?);
        }
        let [sealed, opened] = calls.records;
        for key in 0..calls.keys {
            let aead = provider.aead(AeadAlgorithm::Aes128Gcm, &random[..16])?;
            match key {
                0 => {
                    let record = self.bytes.get_mut(..sealed).unwrap_or_default();
                    std::hint::black_box(aead.seal(NONCE, &[2; 5], record)?);
                }
                1 => {
                    // A tag that does not hold is found as one that holds is.
                    let record = self.bytes.get_mut(..opened).unwrap_or_default();
                    let _ = std::hint::black_box(aead.open(NONCE, &[2; 5], record));
                }
                _ => {
                    std::hint::black_box(&aead);
                }
            }
        }
        for _ in 0..calls.tickets {
            let ticket = self.bytes.get_mut(..100).unwrap_or_default();
            std::hint::black_box(self.ticket_key.seal(NONCE, &[2; 32], ticket)?);
        }
        Ok(())
    }
}
