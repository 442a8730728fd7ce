//! Who checks the signatures of a chain.

use crate::crypto::CryptoError;

/// How a certificate is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureAlgorithm {
    /// ECDSA with SHA-256.
    EcdsaSha256,
}

/// Checks one signature of a chain.
pub trait Signatures {
    /// Whether `signature` over `message` was made with the key `spki` (a SubjectPublicKeyInfo, DER).
    ///
    /// Errors: [`CryptoError::Rejected`], [`CryptoError::ArenaFull`].
    fn check(
        &self,
        algorithm: SignatureAlgorithm,
        spki: &[u8],
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), CryptoError>;
}

/// mbedtls: every algorithm that is taken in a chain.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByMbedtls;

impl Signatures for ByMbedtls {
    fn check(&self, _: SignatureAlgorithm, _: &[u8], _: &[u8], _: &[u8]) -> Result<(), CryptoError> {
        Err(CryptoError::Failed)
    }
}
