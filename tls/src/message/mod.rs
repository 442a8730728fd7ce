//! Handshake messages: one file each, decoded into views that borrow the message, and encoded into bytes that the caller lends.
//!
//! A decoder is strict and checks everything once, so that what it gives out can be walked without another error. A length that does not
//! fit, trailing bytes, an empty vector where one element is the least: [`Cause::Decode`]. Well-formed nonsense: [`Cause::IllegalParameter`].
//! What depends on what was offered, or on the version, is left to the machines.

mod certificate;
mod certificate_request;
mod certificate_verify;
mod client_hello;
mod client_key_exchange;
mod codec;
mod encrypted_extensions;
mod extension;
mod finished;
mod hello_request;
mod key_update;
mod new_session_ticket;
mod server_hello;
mod server_hello_done;
mod server_key_exchange;

pub use certificate::{Certificate12, Certificate13, Chain};
pub use certificate_request::{
    Authorities, CERTIFICATE_TYPE_ECDSA, CERTIFICATE_TYPE_RSA, CertificateRequest12, CertificateRequest13,
};
pub use certificate_verify::CertificateVerify;
pub use client_hello::{
    ClientHello, FALLBACK_SCSV, KeyShare, KeyShares, OfferedPsks, PskIdentity, RECORD_SIZE_LIMIT_MIN,
    RENEGOTIATION_SCSV,
};
pub use client_key_exchange::ClientKeyExchange;
pub use codec::{Cursor, U16List, Writer};
pub use encrypted_extensions::EncryptedExtensions;
pub use extension::{Extension, ExtensionType, Extensions};
pub use finished::{Finished, VERIFY_DATA_BYTES_12};
pub use hello_request::HelloRequest;
pub use key_update::KeyUpdate;
pub use new_session_ticket::{NewSessionTicket12, NewSessionTicket13, TICKET_LIFETIME_SECONDS_MAX};
pub use server_hello::{
    DOWNGRADE_TO_11, DOWNGRADE_TO_12, HelloRetryRequest, RETRY_RANDOM, ServerHello, ServerHelloOrRetry,
};
pub use server_hello_done::ServerHelloDone;
pub use server_key_exchange::ServerKeyExchange;

use crate::cause::Cause;
use crate::handshake::Message;

/// Bytes of a message's type and length.
pub const HEADER_BYTES: usize = 4;

/// Bytes of a hello's random.
pub const RANDOM_BYTES: usize = 32;

/// The longest session id.
pub const SESSION_ID_BYTES_MAX: usize = 32;

macro_rules! handshake_types {
    ($($name:ident = $value:literal $text:literal,)*) => {
        /// The type of a handshake message (RFC 8446 §4, RFC 5246 §7.4).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum HandshakeType {
            $(
                #[doc = concat!("`", $text, "`.")]
                $name = $value,
            )*
        }

        impl HandshakeType {
            /// Every type that is spoken here.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The type of that number, if it is spoken here.
            #[must_use]
            pub const fn from_wire(value: u8) -> Option<Self> {
                match value {
                    $($value => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// Its name as the RFCs spell it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

handshake_types! {
    HelloRequest = 0 "hello_request",
    ClientHello = 1 "client_hello",
    ServerHello = 2 "server_hello",
    NewSessionTicket = 4 "new_session_ticket",
    EndOfEarlyData = 5 "end_of_early_data",
    EncryptedExtensions = 8 "encrypted_extensions",
    Certificate = 11 "certificate",
    ServerKeyExchange = 12 "server_key_exchange",
    CertificateRequest = 13 "certificate_request",
    ServerHelloDone = 14 "server_hello_done",
    CertificateVerify = 15 "certificate_verify",
    ClientKeyExchange = 16 "client_key_exchange",
    Finished = 20 "finished",
    KeyUpdate = 24 "key_update",
    MessageHash = 254 "message_hash",
}

impl HandshakeType {
    /// Its number on the wire.
    #[must_use]
    pub const fn wire(self) -> u8 {
        self as u8
    }
}

/// The message that `bytes` begin with, once all of it is there; `bytes_max` bounds header and body together.
///
/// Errors: `WouldBlock` while bytes are missing; [`Cause::HandshakeTooLong`] as soon as the header claims more than the bound.
pub fn peek(bytes: &[u8], bytes_max: usize) -> nb::Result<Message<'_>, Cause> {
    let Some(([kind, a, b, c], rest)) = bytes.split_first_chunk() else {
        return Err(nb::Error::WouldBlock);
    };
    let body_bytes = u32::from_be_bytes([0, *a, *b, *c]) as usize;
    let raw_bytes = HEADER_BYTES + body_bytes;
    if raw_bytes > bytes_max {
        return Err(nb::Error::Other(Cause::HandshakeTooLong));
    }
    match (rest.get(..body_bytes), bytes.get(..raw_bytes)) {
        (Some(body), Some(raw)) => Ok(Message { kind: *kind, body, raw }),
        _ => Err(nb::Error::WouldBlock),
    }
}

#[cfg(test)]
mod tests;
