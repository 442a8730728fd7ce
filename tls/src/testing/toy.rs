//! A provider of next to nothing: every MAC, signature and share is a constant, and sealing does not hide. A recorded handshake stays valid
//! whatever else of it a fuzzer changes, so that it gets past the checks that only cryptography makes hard.

use crate::crypto::{
    Aead, AeadAlgorithm, CryptoError, Exchange, Hash, HashAlgorithm, KeyKind, NONCE_BYTES, Provider, PublicKey, Random,
    Secret, Share, SigningKey, TAG_BYTES,
};
use crate::suite::{Group, SignatureScheme};

/// The provider. It has no strength at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Toy;

/// A hash of nothing.
#[derive(Clone, Copy, Debug)]
pub struct ToyHash(HashAlgorithm);

/// A key that copies.
#[derive(Clone, Copy, Debug)]
pub struct ToyAead;

/// The one private key of a group.
#[derive(Clone, Copy, Debug)]
pub struct ToyExchange(Group);

/// A key that signs everything the same.
#[derive(Clone, Copy, Debug)]
pub struct ToyKey(pub KeyKind);

/// What every MAC, signature, share, secret and tag consists of.
pub const BYTE: u8 = 0x5a;

fn constant(algorithm: HashAlgorithm) -> Secret {
    Secret::copy(&[BYTE; 48][..algorithm.bytes()]).unwrap()
}

impl Hash for ToyHash {
    fn update(&mut self, _bytes: &[u8]) {}

    fn digest(&self) -> Secret {
        constant(self.0)
    }

    fn fork(&self) -> Result<Self, CryptoError> {
        Ok(*self)
    }
}

impl Aead for ToyAead {
    fn seal(&self, _: &[u8; NONCE_BYTES], _: &[u8], _: &mut [u8]) -> Result<[u8; TAG_BYTES], CryptoError> {
        Ok([BYTE; TAG_BYTES])
    }

    fn open(&self, _: &[u8; NONCE_BYTES], _: &[u8], data: &mut [u8]) -> Result<(), CryptoError> {
        if data.ends_with(&[BYTE; TAG_BYTES]) {
            Ok(())
        } else {
            Err(CryptoError::Rejected)
        }
    }

    fn open_into(&self, _: &[u8; NONCE_BYTES], _: &[u8], sealed: &[u8], out: &mut [u8]) -> Result<(), CryptoError> {
        let text = sealed.strip_suffix(&[BYTE; TAG_BYTES]).ok_or(CryptoError::Rejected)?;
        out.copy_from_slice(text);
        Ok(())
    }
}

impl Exchange for ToyExchange {
    fn group(&self) -> Group {
        self.0
    }

    fn share(&self) -> Share {
        let mut bytes = [BYTE; 65];
        if self.0 == Group::Secp256r1 {
            bytes[0] = 4;
        }
        Share::copy(&bytes[..self.0.share_bytes()]).unwrap()
    }

    fn agree(self, peer: &[u8]) -> Result<Secret, CryptoError> {
        if peer.len() == self.0.share_bytes() && peer.last() == Some(&BYTE) {
            Secret::copy(&[BYTE; 32]).ok_or(CryptoError::Failed)
        } else {
            Err(CryptoError::Rejected)
        }
    }
}

impl SigningKey for ToyKey {
    fn kind(&self) -> KeyKind {
        self.0
    }

    fn sign(
        &self,
        _scheme: SignatureScheme,
        _digest: &[u8],
        _random: &mut dyn Random,
        out: &mut [u8],
    ) -> Result<usize, CryptoError> {
        out.get_mut(..8).ok_or(CryptoError::Failed)?.fill(BYTE);
        Ok(8)
    }
}

impl Provider for Toy {
    type Hash = ToyHash;
    type Aead = ToyAead;
    type Exchange = ToyExchange;
    type SigningKey = ToyKey;

    fn name(&self) -> &'static str {
        "toy"
    }

    fn hash(&self, algorithm: HashAlgorithm) -> Result<ToyHash, CryptoError> {
        Ok(ToyHash(algorithm))
    }

    fn hmac(&self, algorithm: HashAlgorithm, _key: &[u8], _parts: &[&[u8]]) -> Result<Secret, CryptoError> {
        Ok(constant(algorithm))
    }

    fn aead(&self, _algorithm: AeadAlgorithm, _key: &[u8]) -> Result<ToyAead, CryptoError> {
        Ok(ToyAead)
    }

    fn exchange(&self, group: Group, _random: &mut dyn Random) -> Result<ToyExchange, CryptoError> {
        Ok(ToyExchange(group))
    }

    fn signing_key(&self, pkcs8: &[u8]) -> Result<ToyKey, CryptoError> {
        super::verifier::key_kind(pkcs8)
            .map(ToyKey)
            .ok_or(CryptoError::Rejected)
    }

    fn verify(
        &self,
        _scheme: SignatureScheme,
        _key: PublicKey<'_>,
        _digest: &[u8],
        signature: &[u8],
    ) -> Result<(), CryptoError> {
        if signature == [BYTE; 8] {
            Ok(())
        } else {
            Err(CryptoError::Rejected)
        }
    }
}
