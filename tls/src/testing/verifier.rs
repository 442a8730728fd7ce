//! Verifiers that read no more of a certificate than its key, so that the engine is tested by itself.

use skerry_core::time::Timestamp;

use crate::cause::Cause;
use crate::certificate::{Refused, Role, ServerName, Verified, Verifier};
use crate::crypto::{KeyKind, PublicKey};

/// Takes any chain whose leaf's key can be read, or refuses every chain for one reason.
#[derive(Clone, Debug)]
pub struct Accepting {
    /// Why every chain is refused, if it is.
    pub refuses: Option<Cause>,
    /// What it says its trust anchors are.
    pub trust_id: [u8; 32],
    /// Names that it says it trusts, as [`Verifier::authorities`] writes them.
    pub authorities: &'static [u8],
    /// When every chain ends.
    pub not_after: Timestamp,
}

impl Default for Accepting {
    fn default() -> Self {
        Self {
            refuses: None,
            trust_id: [1; 32],
            authorities: &[],
            not_after: Timestamp(i64::MAX),
        }
    }
}

impl Verifier for Accepting {
    fn public_key<'c>(&self, leaf: &'c [u8]) -> Result<PublicKey<'c>, Cause> {
        public_key(leaf).ok_or(Cause::CertificateUnreadable)
    }

    fn verify(
        &self,
        chain: &[&[u8]],
        role: Role,
        _name: Option<ServerName<'_>>,
        now: Timestamp,
    ) -> Result<Verified, Refused> {
        let refused = |cause| Refused { cause, index: 0 };
        if let Some(cause) = self.refuses {
            return Err(refused(cause));
        }
        if now > self.not_after {
            return Err(refused(Cause::CertificateExpired));
        }
        let leaf = chain.first().ok_or(refused(Cause::CertificateUnreadable))?;
        self.public_key(leaf).map_err(refused)?;
        let subject = match role {
            Role::Server => "CN=server",
            Role::Client => "CN=client",
        };
        let mut fingerprint = [0; 32];
        for (at, byte) in leaf.iter().enumerate() {
            let slot: &mut u8 = &mut fingerprint[at % 32];
            *slot = slot.rotate_left(3) ^ byte;
        }
        Ok(Verified {
            subject: heapless::String::try_from(subject).unwrap(),
            cut: false,
            not_after: self.not_after,
            fingerprint,
        })
    }

    fn authorities(&self) -> &[u8] {
        self.authorities
    }

    fn trust_id(&self) -> [u8; 32] {
        self.trust_id
    }
}

/// The key of a certificate: tags and lengths are walked up to it, nothing else is looked at.
#[must_use]
pub fn public_key(certificate: &[u8]) -> Option<PublicKey<'_>> {
    let (_, whole, _) = element(certificate)?;
    let (_, tbs, _) = element(whole)?;
    let mut rest = tbs;
    if rest.first() == Some(&0xa0) {
        rest = element(rest)?.2;
    }
    // Serial number, signature algorithm, issuer, validity, subject.
    for _ in 0..5 {
        rest = element(rest)?.2;
    }
    let (_, fields, after) = element(rest)?;
    let spki = &rest[..rest.len() - after.len()];
    let (_, algorithm, _) = element(fields)?;
    let kind = key_kind(algorithm)?;
    Some(PublicKey { kind, spki })
}

/// What a key is, by the object identifiers in its encoding.
#[must_use]
pub fn key_kind(encoding: &[u8]) -> Option<KeyKind> {
    let has = |oid: &[u8]| encoding.windows(oid.len()).any(|window| window == oid);
    if has(&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07]) {
        Some(KeyKind::P256)
    } else if has(&[0x2b, 0x81, 0x04, 0x00, 0x22]) {
        Some(KeyKind::P384)
    } else if has(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01]) {
        Some(KeyKind::Rsa(2048))
    } else {
        None
    }
}

/// Tag, content and what follows of the DER element at the start of `bytes`.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, mut rest) = rest.split_first()?;
    let mut length = usize::from(first);
    if first >= 0x80 {
        let count = usize::from(first & 0x7f);
        if count > 3 {
            return None;
        }
        length = 0;
        for _ in 0..count {
            let (&byte, after) = rest.split_first()?;
            length = length << 8 | usize::from(byte);
            rest = after;
        }
    }
    let (content, after) = rest.split_at_checked(length)?;
    Some((tag, content, after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Fixture;

    #[test]
    fn keys_are_found_in_every_fixture() {
        for fixture in [
            Fixture::CA,
            Fixture::P256,
            Fixture::P384,
            Fixture::RSA,
            Fixture::DEVICE,
            Fixture::DEVICE_RSA,
        ] {
            let key = public_key(fixture.certificate).unwrap();
            assert_eq!(key.kind, fixture.kind);
            for cut in 0..fixture.certificate.len() {
                assert!(public_key(&fixture.certificate[..cut]).is_none());
            }
        }
    }
}
