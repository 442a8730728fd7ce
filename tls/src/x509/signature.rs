//! Who checks the signatures of a chain: mbedtls by itself, or another provider for what it can check and mbedtls for the rest.

use mbedtls::hash::Type;
use mbedtls::pk::{Options, Pk, RsaPadding};
use sha2::{Digest as _, Sha256, Sha384, Sha512};

use super::key::{Digest, IssuerKey, SignatureAlgorithm};
use crate::crypto::mbedtls::Mark;
use crate::crypto::{CryptoError, Provider, PublicKey, SIGNATURE_BYTES_MAX};
use crate::suite::SignatureScheme;

/// A key that signed a certificate, its form checked.
#[derive(Clone, Copy, Debug)]
pub struct Issuer<'a> {
    /// What it is; it suits the algorithm.
    pub key: IssuerKey,
    /// Its SubjectPublicKeyInfo, DER.
    pub spki: &'a [u8],
}

/// Checks one signature of a chain.
pub trait Signatures {
    /// Whether `signature` over `message` is `issuer`'s. The algorithm suits the key.
    ///
    /// Errors: [`CryptoError::Rejected`]; [`CryptoError::ArenaFull`] when there is no memory for it now.
    fn check(
        &self,
        algorithm: SignatureAlgorithm,
        issuer: Issuer<'_>,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), CryptoError>;
}

/// mbedtls: every algorithm that is taken in a chain.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByMbedtls;

impl Signatures for ByMbedtls {
    fn check(
        &self,
        algorithm: SignatureAlgorithm,
        issuer: Issuer<'_>,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), CryptoError> {
        let mark = Mark::now();
        let refused = |_| mark.blame(CryptoError::Rejected);
        let digest = algorithm.digest();
        let hash = match digest {
            Digest::Sha256 => Type::Sha256,
            Digest::Sha384 => Type::Sha384,
            Digest::Sha512 => Type::Sha512,
        };
        let mut key = Pk::from_public_key(issuer.spki).map_err(refused)?;
        if matches!(algorithm, SignatureAlgorithm::RsaPss(_)) {
            key.set_options(Options::Rsa {
                padding: RsaPadding::Pkcs1V21 { mgf: hash },
            });
        }
        hashed(digest, message, |digest| {
            key.verify(hash, digest, signature).map_err(refused)
        })
    }
}

/// A provider, for what it can check, and mbedtls for P-521, SHA-512 and RSA over 4096 bits.
#[derive(Debug)]
pub struct ByProvider<'p, P>(pub &'p P);

// Derived, both would ask the same of the provider, which is only borrowed.
impl<P> Clone for ByProvider<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for ByProvider<'_, P> {}

impl<P: Provider> Signatures for ByProvider<'_, P> {
    fn check(
        &self,
        algorithm: SignatureAlgorithm,
        issuer: Issuer<'_>,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), CryptoError> {
        let scheme = match algorithm {
            SignatureAlgorithm::Ecdsa(Digest::Sha256) => SignatureScheme::EcdsaSecp256r1Sha256,
            SignatureAlgorithm::Ecdsa(Digest::Sha384) => SignatureScheme::EcdsaSecp384r1Sha384,
            SignatureAlgorithm::RsaPkcs1(Digest::Sha256) => SignatureScheme::RsaPkcs1Sha256,
            SignatureAlgorithm::RsaPkcs1(Digest::Sha384) => SignatureScheme::RsaPkcs1Sha384,
            SignatureAlgorithm::RsaPss(Digest::Sha256) => SignatureScheme::RsaPssRsaeSha256,
            SignatureAlgorithm::RsaPss(Digest::Sha384) => SignatureScheme::RsaPssRsaeSha384,
            SignatureAlgorithm::Ecdsa(Digest::Sha512)
            | SignatureAlgorithm::RsaPkcs1(Digest::Sha512)
            | SignatureAlgorithm::RsaPss(Digest::Sha512) => {
                return ByMbedtls.check(algorithm, issuer, message, signature);
            }
        };
        let kind = match issuer.key {
            IssuerKey::Common(kind) if signature.len() <= SIGNATURE_BYTES_MAX => kind,
            _ => return ByMbedtls.check(algorithm, issuer, message, signature),
        };
        let key = PublicKey {
            kind,
            spki: issuer.spki,
        };
        hashed(algorithm.digest(), message, |digest| {
            self.0.verify(scheme, key, digest, signature)
        })
    }
}

/// What `then` makes of the digest of `message`.
fn hashed<T>(digest: Digest, message: &[u8], then: impl FnOnce(&[u8]) -> T) -> T {
    match digest {
        Digest::Sha256 => then(&Sha256::digest(message)),
        Digest::Sha384 => then(&Sha384::digest(message)),
        Digest::Sha512 => then(&Sha512::digest(message)),
    }
}
