//! Which provider: a program's choice at start, and the provider that is one of two.

use core::fmt;
use core::str::FromStr;

use super::{
    Aead, AeadAlgorithm, CryptoError, Exchange, Hash, HashAlgorithm, KeyKind, NONCE_BYTES, Provider, PublicKey, Random,
    Secret, Share, SigningKey, TAG_BYTES,
};
use crate::suite::{Group, SignatureScheme};

/// The provider that a user asks for, spelled `auto`, `mbedtls` or `fast`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The fast one where it is built in.
    #[default]
    Auto,
    /// The portable one.
    Mbedtls,
    /// The fast one.
    Fast,
}

impl Choice {
    /// Every choice.
    pub const ALL: &[Self] = &[Self::Auto, Self::Mbedtls, Self::Fast];

    /// Its spelling.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Mbedtls => "mbedtls",
            Self::Fast => "fast",
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A word that names no [`Choice`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownChoice;

impl fmt::Display for UnknownChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a provider is one of auto, mbedtls, fast")
    }
}

impl core::error::Error for UnknownChoice {}

impl FromStr for Choice {
    type Err = UnknownChoice;

    fn from_str(text: &str) -> Result<Self, UnknownChoice> {
        Self::ALL
            .iter()
            .copied()
            .find(|choice| choice.name() == text)
            .ok_or(UnknownChoice)
    }
}

/// One of two providers, or a thing of one of them.
#[derive(Clone, Debug)]
pub enum Either<A, B> {
    /// The first.
    A(A),
    /// The second.
    B(B),
}

#[cfg(all(feature = "mbedtls", feature = "fast"))]
impl Either<super::mbedtls::Mbedtls, super::fast::Fast> {
    /// The provider that is asked for.
    ///
    /// # Errors
    ///
    /// [`CryptoError::ArenaFull`] where mbedtls's curves do not fit, [`CryptoError::Failed`].
    pub fn start(choice: Choice) -> Result<Self, CryptoError> {
        match choice {
            Choice::Auto | Choice::Fast => Ok(Self::B(super::fast::Fast)),
            Choice::Mbedtls => super::mbedtls::Mbedtls::new().map(Self::A),
        }
    }
}

impl<A: Hash, B: Hash> Hash for Either<A, B> {
    fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::A(hash) => hash.update(bytes),
            Self::B(hash) => hash.update(bytes),
        }
    }

    fn digest(&self) -> Secret {
        match self {
            Self::A(hash) => hash.digest(),
            Self::B(hash) => hash.digest(),
        }
    }

    fn fork(&self) -> Result<Self, CryptoError> {
        Ok(match self {
            Self::A(hash) => Self::A(hash.fork()?),
            Self::B(hash) => Self::B(hash.fork()?),
        })
    }
}

impl<A: Aead, B: Aead> Aead for Either<A, B> {
    fn seal(&self, nonce: &[u8; NONCE_BYTES], aad: &[u8], data: &mut [u8]) -> Result<[u8; TAG_BYTES], CryptoError> {
        match self {
            Self::A(aead) => aead.seal(nonce, aad, data),
            Self::B(aead) => aead.seal(nonce, aad, data),
        }
    }

    fn open(&self, nonce: &[u8; NONCE_BYTES], aad: &[u8], data: &mut [u8]) -> Result<(), CryptoError> {
        match self {
            Self::A(aead) => aead.open(nonce, aad, data),
            Self::B(aead) => aead.open(nonce, aad, data),
        }
    }

    fn open_into(
        &self,
        nonce: &[u8; NONCE_BYTES],
        aad: &[u8],
        sealed: &[u8],
        out: &mut [u8],
    ) -> Result<(), CryptoError> {
        match self {
            Self::A(aead) => aead.open_into(nonce, aad, sealed, out),
            Self::B(aead) => aead.open_into(nonce, aad, sealed, out),
        }
    }
}

impl<A: Exchange, B: Exchange> Exchange for Either<A, B> {
    fn group(&self) -> Group {
        match self {
            Self::A(exchange) => exchange.group(),
            Self::B(exchange) => exchange.group(),
        }
    }

    fn share(&self) -> Share {
        match self {
            Self::A(exchange) => exchange.share(),
            Self::B(exchange) => exchange.share(),
        }
    }

    fn agree(self, peer: &[u8]) -> Result<Secret, CryptoError> {
        match self {
            Self::A(exchange) => exchange.agree(peer),
            Self::B(exchange) => exchange.agree(peer),
        }
    }
}

impl<A: SigningKey, B: SigningKey> SigningKey for Either<A, B> {
    fn kind(&self) -> KeyKind {
        match self {
            Self::A(key) => key.kind(),
            Self::B(key) => key.kind(),
        }
    }

    fn sign(
        &self,
        scheme: SignatureScheme,
        digest: &[u8],
        random: &mut dyn Random,
        out: &mut [u8],
    ) -> Result<usize, CryptoError> {
        match self {
            Self::A(key) => key.sign(scheme, digest, random, out),
            Self::B(key) => key.sign(scheme, digest, random, out),
        }
    }
}

impl<A: Provider, B: Provider> Provider for Either<A, B> {
    type Hash = Either<A::Hash, B::Hash>;
    type Aead = Either<A::Aead, B::Aead>;
    type Exchange = Either<A::Exchange, B::Exchange>;
    type SigningKey = Either<A::SigningKey, B::SigningKey>;

    fn name(&self) -> &'static str {
        match self {
            Self::A(provider) => provider.name(),
            Self::B(provider) => provider.name(),
        }
    }

    fn hash(&self, algorithm: HashAlgorithm) -> Result<Self::Hash, CryptoError> {
        match self {
            Self::A(provider) => provider.hash(algorithm).map(Either::A),
            Self::B(provider) => provider.hash(algorithm).map(Either::B),
        }
    }

    fn hmac(&self, algorithm: HashAlgorithm, key: &[u8], parts: &[&[u8]]) -> Result<Secret, CryptoError> {
        match self {
            Self::A(provider) => provider.hmac(algorithm, key, parts),
            Self::B(provider) => provider.hmac(algorithm, key, parts),
        }
    }

    fn aead(&self, algorithm: AeadAlgorithm, key: &[u8]) -> Result<Self::Aead, CryptoError> {
        match self {
            Self::A(provider) => provider.aead(algorithm, key).map(Either::A),
            Self::B(provider) => provider.aead(algorithm, key).map(Either::B),
        }
    }

    fn exchange(&self, group: Group, random: &mut dyn Random) -> Result<Self::Exchange, CryptoError> {
        match self {
            Self::A(provider) => provider.exchange(group, random).map(Either::A),
            Self::B(provider) => provider.exchange(group, random).map(Either::B),
        }
    }

    fn signing_key(&self, pkcs8: &[u8]) -> Result<Self::SigningKey, CryptoError> {
        match self {
            Self::A(provider) => provider.signing_key(pkcs8).map(Either::A),
            Self::B(provider) => provider.signing_key(pkcs8).map(Either::B),
        }
    }

    fn verify(
        &self,
        scheme: SignatureScheme,
        key: PublicKey<'_>,
        digest: &[u8],
        signature: &[u8],
    ) -> Result<(), CryptoError> {
        match self {
            Self::A(provider) => provider.verify(scheme, key, digest, signature),
            Self::B(provider) => provider.verify(scheme, key, digest, signature),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn a_choice_is_spelled_as_it_is_read() {
        for &choice in Choice::ALL {
            assert_eq!(choice.to_string().parse(), Ok(choice));
        }
        assert_eq!("openssl".parse::<Choice>(), Err(UnknownChoice));
        assert_eq!("Fast".parse::<Choice>(), Err(UnknownChoice));
    }
}
