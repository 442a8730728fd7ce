//! Certificates and keys, made by `fixtures/make.sh`.

use skerry_core::time::Timestamp;

use crate::crypto::KeyKind;

/// When every test takes place: 2026-01-01, a year into the fixtures' validity.
pub const NOW: Timestamp = Timestamp(1_767_225_600_000);

/// A certificate and its key.
#[derive(Clone, Copy, Debug)]
pub struct Fixture {
    /// The certificate, DER.
    pub certificate: &'static [u8],
    /// The key, PKCS#8, DER.
    pub key: &'static [u8],
    /// What the key is.
    pub kind: KeyKind,
    /// The chain that is sent: the certificate, and nothing else, for the authority signs directly.
    pub chain: &'static [&'static [u8]],
}

macro_rules! fixtures {
    ($($(#[doc = $doc:literal])* $name:ident $file:literal $kind:expr,)*) => {
        impl Fixture {
            $(
                $(#[doc = $doc])*
                pub const $name: Self = Self {
                    certificate: include_bytes!(concat!("fixtures/", $file, ".der")),
                    key: include_bytes!(concat!("fixtures/", $file, ".key.der")),
                    kind: $kind,
                    chain: &[include_bytes!(concat!("fixtures/", $file, ".der"))],
                };
            )*
        }
    };
}

fixtures! {
    /// The authority of the others.
    CA "ca" KeyKind::P256,
    /// A server: localhost, broker.example, 127.0.0.1, ::1.
    P256 "p256" KeyKind::P256,
    /// The same server by another key.
    P384 "p384" KeyKind::P384,
    /// The same server by another key.
    RSA "rsa" KeyKind::Rsa(2048),
    /// A client: `CN=device-17,OU=Devices,O=Skerry`.
    DEVICE "device" KeyKind::P256,
    /// A client: `CN=device-18,OU=Devices,O=Skerry`.
    DEVICE_RSA "device-rsa" KeyKind::Rsa(2048),
    /// An authority that nobody here trusts.
    OTHER "other" KeyKind::P256,
}
