//! Certificates for development: a CA, and server and client certificates that it signs. ECDSA over P-256.

use alloc::vec::Vec;

use skerry_core::time::Timestamp;
use zeroize::Zeroizing;

use crate::certificate::ServerName;
use crate::crypto::{CryptoError, Random};

/// From when to when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// First moment.
    pub not_before: Timestamp,
    /// Last moment.
    pub not_after: Timestamp,
}

/// A certificate and its key.
pub struct Issued {
    /// One certificate, DER.
    pub certificate: Vec<u8>,
    /// Its private key, unencrypted PKCS#8, DER.
    pub key: Zeroizing<Vec<u8>>,
}

impl Issued {
    /// A CA that signs itself. `name` is its common name.
    pub fn authority(_name: &str, _validity: Validity, _random: &mut dyn Random) -> Result<Self, CryptoError> {
        Err(CryptoError::Failed)
    }

    /// A server's certificate for `names`, signed by this CA.
    pub fn server(
        &self,
        _names: &[ServerName<'_>],
        _validity: Validity,
        _random: &mut dyn Random,
    ) -> Result<Self, CryptoError> {
        Err(CryptoError::Failed)
    }

    /// A client's certificate for the subject `CN=name`, signed by this CA.
    pub fn client(&self, _name: &str, _validity: Validity, _random: &mut dyn Random) -> Result<Self, CryptoError> {
        Err(CryptoError::Failed)
    }
}
