//! How a certificate's owner proves its key: what is signed, by which scheme, and how it is checked (RFC 8446 §4.4.3, RFC 5246 §4.7).

use super::Turn;
use crate::cause::Cause;
use crate::certificate::Role;
use crate::crypto::{
    CryptoError, Hash, HashAlgorithm, KeyKind, Provider, PublicKey, SIGNATURE_BYTES_MAX, Secret, SigningKey,
};
use crate::message::{CertificateVerify, U16List, Writer};
use crate::meter::Phase;
use crate::suite::{SignatureScheme, Version};

/// The longest SubjectPublicKeyInfo that is kept: RSA of 4096 bits, with an exponent longer than anybody's; without RSA one of P-384.
pub const SPKI_BYTES_MAX: usize = if cfg!(feature = "rsa") { 576 } else { 120 };

/// A peer's public key between its Certificate and its proof.
#[derive(Clone, Debug)]
pub struct LeafKey {
    kind: KeyKind,
    spki: heapless::Vec<u8, SPKI_BYTES_MAX>,
}

impl LeafKey {
    /// A copy of what a certificate bears.
    ///
    /// When full: [`Cause::CertificateUnsupported`], for a key over [`SPKI_BYTES_MAX`].
    pub fn copy(key: PublicKey<'_>) -> Result<Self, Cause> {
        Ok(Self {
            kind: key.kind,
            spki: heapless::Vec::from_slice(key.spki).map_err(|_| Cause::CertificateUnsupported)?,
        })
    }

    /// What it is.
    #[must_use]
    pub const fn kind(&self) -> KeyKind {
        self.kind
    }

    /// Checks a signature over `digest`, made with `scheme.hash()`. Whether the scheme suits the key is asked before.
    ///
    /// Errors: [`Cause::BadSignature`]; [`Cause::ArenaFull`]; [`Cause::Internal`].
    pub fn check<P: Provider>(
        &self,
        provider: &P,
        scheme: SignatureScheme,
        digest: &Secret,
        signature: &[u8],
    ) -> Result<(), Cause> {
        let key = PublicKey {
            kind: self.kind,
            spki: &self.spki,
        };
        match provider.verify(scheme, key, digest.bytes(), signature) {
            Err(CryptoError::Rejected) => Err(Cause::BadSignature),
            other => Ok(other?),
        }
    }
}

/// The digest that a TLS 1.3 CertificateVerify signs: 64 spaces, who signs, a zero, and the transcript's hash (RFC 8446 §4.4.3). `role` is the
/// signer's, `hash` the scheme's.
pub fn digest_13<P: Provider>(
    provider: &P,
    role: Role,
    transcript: &Secret,
    hash: HashAlgorithm,
) -> Result<Secret, Cause> {
    let mut content = provider.hash(hash)?;
    content.update(&[b' '; 64]);
    content.update(match role {
        Role::Server => b"TLS 1.3, server CertificateVerify\0",
        Role::Client => b"TLS 1.3, client CertificateVerify\0",
    });
    content.update(transcript.bytes());
    Ok(content.digest())
}

/// Adds a CertificateVerify over `digest` to the flight.
pub fn sign<'t, P: Provider>(
    turn: &'t mut Turn<'_, P>,
    key: &P::SigningKey,
    scheme: SignatureScheme,
    digest: &Secret,
) -> Result<&'t [u8], Cause> {
    turn.meter.charge(Phase::Parse);
    let mut signature = [0; SIGNATURE_BYTES_MAX];
    let bytes = key.sign(scheme, digest.bytes(), turn.random, &mut signature)?;
    let proof = CertificateVerify {
        scheme: scheme as u16,
        signature: signature.get(..bytes).ok_or(Cause::Internal)?,
    };
    turn.flight.add(|spare| Writer::fill(spare, |w| proof.encode(w)))
}

/// What a refused share of the peer's is.
pub fn bad_share(error: CryptoError) -> Cause {
    match error {
        CryptoError::Rejected => Cause::BadShare,
        other => other.into(),
    }
}

/// Whether a key of this kind signs by `scheme` in that version.
#[must_use]
pub const fn signs(kind: KeyKind, version: Version, scheme: SignatureScheme) -> bool {
    match version {
        Version::Tls13 => kind.signs_13(scheme),
        Version::Tls12 => kind.signs_12(scheme),
    }
}

/// The first of our schemes that a key of ours signs by in that version and that the peer takes.
#[must_use]
pub fn choose(
    ours: &[SignatureScheme],
    kind: KeyKind,
    version: Version,
    peers: U16List<'_>,
) -> Option<SignatureScheme> {
    ours.iter()
        .copied()
        .find(|scheme| signs(kind, version, *scheme) && peers.contains(*scheme as u16))
}

/// The scheme that a peer says it signed by, if we offered it and its key can.
///
/// Errors: [`Cause::IllegalParameter`] of the message `kind` (RFC 8446 §4.4.3, RFC 5246 §7.4.3).
pub fn offered(
    ours: &[SignatureScheme],
    key: KeyKind,
    version: Version,
    wire: u16,
    kind: crate::message::HandshakeType,
) -> Result<SignatureScheme, Cause> {
    SignatureScheme::from_wire(wire)
        .filter(|scheme| ours.contains(scheme) && signs(key, version, *scheme))
        .ok_or(Cause::IllegalParameter(kind.wire()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::HandshakeType;
    use crate::suite::SignatureScheme as S;

    #[test]
    fn a_scheme_must_be_offered_known_and_suit_the_key() {
        let ours = [S::EcdsaSecp256r1Sha256, S::EcdsaSecp384r1Sha384, S::RsaPkcs1Sha256];
        let ask = |key, version, wire| offered(&ours, key, version, wire, HandshakeType::CertificateVerify);
        let illegal = Err(Cause::IllegalParameter(15));
        assert_eq!(ask(KeyKind::P256, Version::Tls13, 0x0403), Ok(S::EcdsaSecp256r1Sha256));
        assert_eq!(
            ask(KeyKind::P256, Version::Tls13, 0x0503),
            illegal,
            "the other curve's hash"
        );
        assert_eq!(ask(KeyKind::P256, Version::Tls12, 0x0503), Ok(S::EcdsaSecp384r1Sha384));
        assert_eq!(ask(KeyKind::Rsa(2048), Version::Tls12, 0x0401), Ok(S::RsaPkcs1Sha256));
        assert_eq!(
            ask(KeyKind::Rsa(2048), Version::Tls13, 0x0401),
            illegal,
            "PKCS#1 signs no handshake of 1.3"
        );
        assert_eq!(ask(KeyKind::Rsa(2048), Version::Tls13, 0x0804), illegal, "not offered");
        assert_eq!(ask(KeyKind::P256, Version::Tls13, 0x0203), illegal, "unknown");
    }

    #[test]
    fn our_order_counts() {
        let peers = [[0x08, 0x04], [0x04, 0x01], [0x08, 0x05]];
        let peers = U16List::new(&peers);
        let ours = [S::RsaPssRsaeSha384, S::RsaPkcs1Sha256, S::RsaPssRsaeSha256];
        assert_eq!(
            choose(&ours, KeyKind::Rsa(2048), Version::Tls13, peers),
            Some(S::RsaPssRsaeSha384)
        );
        assert_eq!(
            choose(&ours[1..], KeyKind::Rsa(2048), Version::Tls13, peers),
            Some(S::RsaPssRsaeSha256)
        );
        assert_eq!(
            choose(&ours[1..], KeyKind::Rsa(2048), Version::Tls12, peers),
            Some(S::RsaPkcs1Sha256)
        );
        assert_eq!(choose(&ours, KeyKind::P256, Version::Tls12, peers), None);
    }
}
