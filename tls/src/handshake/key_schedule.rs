//! The key schedule of TLS 1.3 (RFC 8446 §7): each stage is a type that turns into the next, so that no secret can be asked for before what it
//! depends on is there.
//!
//! Cost: one HMAC per derivation, on top of what its label and context hash.

use crate::cause::Cause;
use crate::crypto::{Hash, HashAlgorithm, KEY_BYTES_MAX, NONCE_BYTES, Provider, Secret, Wiped};
use crate::message::Writer;
use crate::record::TrafficKeys;
use crate::suite::CipherSuite;

/// The stage before a key exchange: what a PSK gives.
#[derive(Debug)]
pub struct Early {
    hash: HashAlgorithm,
    secret: Secret,
}

/// The stage with the key exchange's secret.
#[derive(Debug)]
pub struct Handshake {
    hash: HashAlgorithm,
    secret: Secret,
}

/// The last stage.
#[derive(Debug)]
pub struct Master {
    hash: HashAlgorithm,
    secret: Secret,
}

impl Early {
    /// Without a PSK.
    pub fn fresh<P: Provider>(provider: &P, hash: HashAlgorithm) -> Result<Self, Cause> {
        Self::resumption(provider, hash, &Secret::zeros(hash))
    }

    /// With a PSK that came of a ticket ([`resumption_psk`]).
    pub fn resumption<P: Provider>(provider: &P, hash: HashAlgorithm, psk: &Secret) -> Result<Self, Cause> {
        let zeros = Secret::zeros(hash);
        Ok(Self {
            hash,
            secret: extract(provider, hash, &zeros, psk.bytes())?,
        })
    }

    /// The binder of a hello whose transcript, up to its list of binders, has this digest (RFC 8446 §4.2.11.2).
    pub fn binder<P: Provider>(&self, provider: &P, truncated: &Secret) -> Result<Secret, Cause> {
        let nothing = provider.hash(self.hash)?.digest();
        let key = derive(provider, self.hash, &self.secret, b"res binder", &nothing)?;
        finished(provider, self.hash, &key, truncated)
    }

    /// On with the key exchange's secret.
    pub fn handshake<P: Provider>(self, provider: &P, shared: &Secret) -> Result<Handshake, Cause> {
        Ok(Handshake {
            hash: self.hash,
            secret: next_stage(provider, self.hash, &self.secret, shared.bytes())?,
        })
    }
}

impl Handshake {
    /// The client's handshake traffic secret; the digest is that of ClientHello…ServerHello.
    pub fn client_traffic<P: Provider>(&self, provider: &P, transcript: &Secret) -> Result<Secret, Cause> {
        derive(provider, self.hash, &self.secret, b"c hs traffic", transcript)
    }

    /// The server's handshake traffic secret; the digest is that of ClientHello…ServerHello.
    pub fn server_traffic<P: Provider>(&self, provider: &P, transcript: &Secret) -> Result<Secret, Cause> {
        derive(provider, self.hash, &self.secret, b"s hs traffic", transcript)
    }

    /// On to the last stage.
    pub fn master<P: Provider>(self, provider: &P) -> Result<Master, Cause> {
        let zeros = Secret::zeros(self.hash);
        Ok(Master {
            hash: self.hash,
            secret: next_stage(provider, self.hash, &self.secret, zeros.bytes())?,
        })
    }
}

impl Master {
    /// The client's first application traffic secret; the digest is that of ClientHello…server Finished.
    pub fn client_traffic<P: Provider>(&self, provider: &P, transcript: &Secret) -> Result<Secret, Cause> {
        derive(provider, self.hash, &self.secret, b"c ap traffic", transcript)
    }

    /// The server's first application traffic secret; the digest is that of ClientHello…server Finished.
    pub fn server_traffic<P: Provider>(&self, provider: &P, transcript: &Secret) -> Result<Secret, Cause> {
        derive(provider, self.hash, &self.secret, b"s ap traffic", transcript)
    }

    /// The exporter master secret (RFC 8446 §7.5); the digest is that of ClientHello…server Finished.
    pub fn exporter<P: Provider>(&self, provider: &P, transcript: &Secret) -> Result<Secret, Cause> {
        derive(provider, self.hash, &self.secret, b"exp master", transcript)
    }

    /// The resumption master secret; the digest is that of ClientHello…client Finished.
    pub fn resumption<P: Provider>(&self, provider: &P, transcript: &Secret) -> Result<Secret, Cause> {
        derive(provider, self.hash, &self.secret, b"res master", transcript)
    }
}

/// The PSK of a ticket with that nonce (RFC 8446 §4.6.1).
pub fn resumption_psk<P: Provider>(
    provider: &P,
    hash: HashAlgorithm,
    resumption: &Secret,
    nonce: &[u8],
) -> Result<Secret, Cause> {
    expand_to_secret(provider, hash, resumption, b"resumption", nonce)
}

/// The secret after a KeyUpdate (RFC 8446 §7.2).
pub fn next_traffic<P: Provider>(provider: &P, hash: HashAlgorithm, secret: &Secret) -> Result<Secret, Cause> {
    expand_to_secret(provider, hash, secret, b"traffic upd", &[])
}

/// The `verify_data` of a Finished, or a binder: `base` is the sender's handshake traffic secret (RFC 8446 §4.4.4).
pub fn finished<P: Provider>(
    provider: &P,
    hash: HashAlgorithm,
    base: &Secret,
    transcript: &Secret,
) -> Result<Secret, Cause> {
    let key = expand_to_secret(provider, hash, base, b"finished", &[])?;
    Ok(provider.hmac(hash, key.bytes(), &[transcript.bytes()])?)
}

/// The keys of one direction under a traffic secret (RFC 8446 §7.3).
pub fn traffic_keys<P: Provider>(provider: &P, suite: CipherSuite, secret: &Secret) -> Result<TrafficKeys<P>, Cause> {
    let (hash, aead) = (suite.hash(), suite.aead());
    let mut key = Wiped::<KEY_BYTES_MAX>::zeros();
    let key = key.get_mut(..aead.key_bytes()).ok_or(Cause::Internal)?;
    expand_label(provider, hash, secret, b"key", &[], key)?;
    let mut iv = [0; NONCE_BYTES];
    expand_label(provider, hash, secret, b"iv", &[], &mut iv)?;
    Ok(TrafficKeys::tls13(provider, aead, key, iv)?)
}

/// Derive-Secret (RFC 8446 §7.1).
fn derive<P: Provider>(
    provider: &P,
    hash: HashAlgorithm,
    secret: &Secret,
    label: &[u8],
    transcript: &Secret,
) -> Result<Secret, Cause> {
    expand_to_secret(provider, hash, secret, label, transcript.bytes())
}

/// HKDF-Extract (RFC 5869 §2.2).
fn extract<P: Provider>(provider: &P, hash: HashAlgorithm, salt: &Secret, input: &[u8]) -> Result<Secret, Cause> {
    Ok(provider.hmac(hash, salt.bytes(), &[input])?)
}

fn next_stage<P: Provider>(provider: &P, hash: HashAlgorithm, secret: &Secret, input: &[u8]) -> Result<Secret, Cause> {
    let nothing = provider.hash(hash)?.digest();
    let salt = derive(provider, hash, secret, b"derived", &nothing)?;
    extract(provider, hash, &salt, input)
}

fn expand_to_secret<P: Provider>(
    provider: &P,
    hash: HashAlgorithm,
    secret: &Secret,
    label: &[u8],
    context: &[u8],
) -> Result<Secret, Cause> {
    let mut out = Secret::zeros(hash);
    expand_label(provider, hash, secret, label, context, out.bytes_mut())?;
    Ok(out)
}

/// The longest HkdfLabel here up to its context: lengths, `tls13 ` and the longest label.
const LABEL_BYTES_MAX: usize = 2 + 1 + 6 + 12 + 1;

/// HKDF-Expand-Label (RFC 8446 §7.1), to at most one digest's bytes: nothing here is longer, so that HKDF-Expand (RFC 5869 §2.3) is one HMAC.
///
/// The context is a digest, or a ticket's nonce of up to 255 bytes.
///
/// Errors: [`Cause::Internal`] when `out` is longer than a digest, the label than any here, or the context than 255 bytes.
fn expand_label<P: Provider>(
    provider: &P,
    hash: HashAlgorithm,
    secret: &Secret,
    label: &[u8],
    context: &[u8],
    out: &mut [u8],
) -> Result<(), Cause> {
    let mut bytes = [0; LABEL_BYTES_MAX];
    let mut info = Writer::new(&mut bytes);
    info.u16(u16::try_from(out.len()).map_err(|_| Cause::Internal)?)?;
    info.vector_8(|w| {
        w.bytes(b"tls13 ")?;
        w.bytes(label)
    })?;
    info.u8(u8::try_from(context.len()).map_err(|_| Cause::Internal)?)?;
    let block = provider.hmac(hash, secret.bytes(), &[info.as_slice(), context, &[1]])?;
    out.copy_from_slice(block.bytes().get(..out.len()).ok_or(Cause::Internal)?);
    Ok(())
}
