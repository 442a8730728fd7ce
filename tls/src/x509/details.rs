//! What a log line says of a certificate that was refused.

use core::fmt::{self, Write};

use skerry_core::time::Timestamp;

use super::certificate::Certificate;
use super::name::{Cut, Name};
use super::time::Readable;

/// The longest name that is kept; a longer one is cut.
pub const NAME_BYTES_MAX: usize = 256;

/// Subject, issuer and dates of one certificate, for the log. Read on the failure path only, without allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Details {
    /// Its subject, as RFC 2253 writes it, with control characters replaced.
    pub subject: heapless::String<NAME_BYTES_MAX>,
    /// Its issuer, likewise.
    pub issuer: heapless::String<NAME_BYTES_MAX>,
    /// Begin of its validity.
    pub not_before: Timestamp,
    /// End of its validity.
    pub not_after: Timestamp,
}

impl Details {
    /// What `der` says of itself, or `None` when it cannot be read.
    #[must_use]
    pub fn of(der: &[u8]) -> Option<Self> {
        let certificate = Certificate::read(der).ok()?;
        Some(Self {
            subject: Cut::of(Printable(certificate.subject)).text,
            issuer: Cut::of(Printable(certificate.issuer)).text,
            not_before: certificate.not_before,
            not_after: certificate.not_after,
        })
    }
}

impl fmt::Display for Details {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = (Readable(self.not_before), Readable(self.not_after));
        write!(
            f,
            "subject \"{}\" issuer \"{}\" valid {from} to {to}",
            self.subject, self.issuer
        )
    }
}

/// A name for a log: no character of it begins a line of its own or moves a terminal's cursor.
struct Printable<'a>(Name<'a>);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        struct Filter<'f, 'g>(&'f mut fmt::Formatter<'g>);
        impl Write for Filter<'_, '_> {
            fn write_str(&mut self, text: &str) -> fmt::Result {
                text.chars().try_for_each(|character| {
                    self.0.write_char(if character.is_control() {
                        char::REPLACEMENT_CHARACTER
                    } else {
                        character
                    })
                })
            }
        }
        write!(Filter(f), "{}", self.0)
    }
}
