//! Trust in a server by its key: for devices, which have no clock to check dates by and no room to build chains.

use skerry_core::time::Timestamp;

use crate::cause::Cause;
use crate::certificate::{Refused, Role, ServerName, Verified, Verifier};
use crate::crypto::{CryptoError, Hash, HashAlgorithm, Provider, PublicKey, Secret};
use crate::x509;

/// SHA-256 of a certificate's SubjectPublicKeyInfo, as in RFC 7469 §2.4:
/// `openssl x509 -in cert.pem -pubkey -noout | openssl pkey -pubin -outform der | openssl dgst -sha256`.
pub type Pin = [u8; 32];

/// Trusts the servers whose leaf bears one of these keys, and nothing else: no name, no date, no chain is looked at.
///
/// That the server holds the key is proved by its signature in the handshake, as ever. A certificate that is renewed with the
/// same key is still trusted; list the next key's pin beside the present one's before the server changes over.
/// Cost: two SHA-256, of the key and of the certificate; no memory.
#[derive(Debug)]
pub struct Pinned<'a, P> {
    provider: &'a P,
    pins: &'a [Pin],
}

impl<'a, P: Provider> Pinned<'a, P> {
    /// Trust in these keys.
    #[must_use]
    pub const fn new(provider: &'a P, pins: &'a [Pin]) -> Self {
        Self { provider, pins }
    }

    fn digest<'i>(&self, parts: impl IntoIterator<Item = &'i [u8]>) -> Result<Secret, CryptoError> {
        let mut hash = self.provider.hash(HashAlgorithm::Sha256)?;
        parts.into_iter().for_each(|part| hash.update(part));
        Ok(hash.digest())
    }
}

impl<P: Provider> Verifier for Pinned<'_, P> {
    fn public_key<'c>(&self, leaf: &'c [u8]) -> Result<PublicKey<'c>, Cause> {
        x509::public_key(leaf)
    }

    /// Errors: [`Cause::UnknownCa`] for any other key.
    fn verify(
        &self,
        chain: &[&[u8]],
        _role: Role,
        _name: Option<ServerName<'_>>,
        _now: Timestamp,
    ) -> Result<Verified, Refused> {
        let refused = |cause| Refused { cause, index: 0 };
        let leaf = chain.first().ok_or(refused(Cause::CertificateUnreadable))?;
        let key = self.public_key(leaf).map_err(refused)?;
        let pin = self.digest([key.spki]).map_err(|_| refused(Cause::Internal))?;
        if !self.pins.iter().any(|known| pin.is(known)) {
            return Err(refused(Cause::UnknownCa));
        }
        let fingerprint = self.digest([*leaf]).map_err(|_| refused(Cause::Internal))?;
        Ok(Verified {
            subject: heapless::String::new(),
            cut: false,
            not_after: Timestamp(i64::MAX),
            fingerprint: fingerprint.bytes().try_into().unwrap_or_default(),
        })
    }

    fn trust_id(&self) -> [u8; 32] {
        let digest = self.digest(self.pins.iter().map(<[u8; 32]>::as_slice));
        digest.map_or([0; 32], |digest| digest.bytes().try_into().unwrap_or_default())
    }
}
