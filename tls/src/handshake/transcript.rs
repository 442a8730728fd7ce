//! The running hash over handshake messages (RFC 8446 §4.4.1).

use crate::cause::Cause;
use crate::crypto::{Hash, HashAlgorithm, Provider, Secret};

/// A hash of every message so far, in one or in both hashes: both as long as the suite is not known (a client), or when TLS 1.2's
/// CertificateVerify may be signed with another hash than the suite's.
pub struct Transcript<P: Provider> {
    algorithm: HashAlgorithm,
    hash: P::Hash,
    other: Option<P::Hash>,
}

/// The type of the message that stands for a first ClientHello after a HelloRetryRequest.
const MESSAGE_HASH: u8 = 254;

const fn the_other(algorithm: HashAlgorithm) -> HashAlgorithm {
    match algorithm {
        HashAlgorithm::Sha256 => HashAlgorithm::Sha384,
        HashAlgorithm::Sha384 => HashAlgorithm::Sha256,
    }
}

impl<P: Provider> Transcript<P> {
    /// Of nothing yet, in one hash.
    ///
    /// Errors: what the provider says.
    pub fn start(provider: &P, algorithm: HashAlgorithm) -> Result<Self, Cause> {
        Ok(Self {
            algorithm,
            hash: provider.hash(algorithm)?,
            other: None,
        })
    }

    /// Of nothing yet, in both hashes; `algorithm` is the one that [`Transcript::digest`] gives.
    pub fn start_both(provider: &P, algorithm: HashAlgorithm) -> Result<Self, Cause> {
        Ok(Self {
            algorithm,
            hash: provider.hash(algorithm)?,
            other: Some(provider.hash(the_other(algorithm))?),
        })
    }

    /// Takes one whole message, header and body.
    pub fn add(&mut self, raw: &[u8]) {
        self.hash.update(raw);
        if let Some(other) = &mut self.other {
            other.update(raw);
        }
    }

    /// The suite's hash is `algorithm`: the other one goes on only with `both`.
    ///
    /// Errors: [`Cause::Internal`] when that hash was not run.
    pub fn settle(self, algorithm: HashAlgorithm, both: bool) -> Result<Self, Cause> {
        let Self {
            algorithm: had,
            hash,
            other,
        } = self;
        if had == algorithm {
            let other = other.filter(|_| both);
            return Ok(Self { algorithm, hash, other });
        }
        let wanted = other.ok_or(Cause::Internal)?;
        Ok(Self {
            algorithm,
            hash: wanted,
            other: both.then_some(hash),
        })
    }

    /// Its hash.
    #[must_use]
    pub const fn algorithm(&self) -> HashAlgorithm {
        self.algorithm
    }

    /// The digest of everything so far.
    #[must_use]
    pub fn digest(&self) -> Secret {
        self.hash.digest()
    }

    /// The digest of everything so far in a given hash, if that one is run.
    #[must_use]
    pub fn digest_in(&self, algorithm: HashAlgorithm) -> Option<Secret> {
        if algorithm == self.algorithm {
            Some(self.hash.digest())
        } else {
            self.other.as_ref().map(Hash::digest)
        }
    }

    /// A second one that stands where this stands.
    pub fn fork(&self) -> Result<Self, Cause> {
        Ok(Self {
            algorithm: self.algorithm,
            hash: self.hash.fork()?,
            other: match &self.other {
                Some(other) => Some(other.fork()?),
                None => None,
            },
        })
    }

    /// After a HelloRetryRequest: what was taken so far, the first ClientHello, is replaced by a `message_hash` of it (RFC 8446 §4.4.1).
    pub fn replace_by_message_hash(&mut self, provider: &P) -> Result<(), Cause> {
        self.hash = message_hash(provider, self.algorithm, &self.hash)?;
        if let Some(other) = &mut self.other {
            *other = message_hash(provider, the_other(self.algorithm), other)?;
        }
        Ok(())
    }
}

fn message_hash<P: Provider>(provider: &P, algorithm: HashAlgorithm, first: &P::Hash) -> Result<P::Hash, Cause> {
    let mut hash = provider.hash(algorithm)?;
    hash.update(&[MESSAGE_HASH, 0, 0, algorithm.bytes() as u8]);
    hash.update(first.digest().bytes());
    Ok(hash)
}
