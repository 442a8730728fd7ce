//! What can be agreed on: versions, cipher suites, groups, signature schemes. Nothing older, nothing else.

use crate::crypto::{AeadAlgorithm, HashAlgorithm};

/// A protocol version that is spoken here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// TLS 1.2.
    Tls12,
    /// TLS 1.3.
    Tls13,
}

impl Version {
    /// Its number on the wire.
    #[must_use]
    pub const fn wire(self) -> u16 {
        match self {
            Self::Tls12 => 0x0303,
            Self::Tls13 => 0x0304,
        }
    }

    /// As Kafka and Java spell it in `ssl.enabled.protocols`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tls12 => "TLSv1.2",
            Self::Tls13 => "TLSv1.3",
        }
    }
}

/// Who signs in a TLS 1.2 suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authentication {
    /// TLS 1.3: the suite does not say.
    Any,
    /// ECDHE_ECDSA.
    Ecdsa,
    /// ECDHE_RSA.
    Rsa,
}

macro_rules! suites {
    ($($name:ident = $value:literal $text:literal $version:ident $auth:ident $aead:ident $hash:ident,)*) => {
        /// A cipher suite, by its IANA name.
        #[allow(non_camel_case_types, reason = "the names that IANA, Kafka and every other tool use")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum CipherSuite {
            $(
                #[doc = $text]
                $name = $value,
            )*
        }

        impl CipherSuite {
            /// Every suite, in our order of preference.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The suite of that number, if it is spoken here.
            #[must_use]
            pub const fn from_wire(value: u16) -> Option<Self> {
                match value {
                    $($value => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// Its IANA name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }

            /// The one version that it belongs to.
            #[must_use]
            pub const fn version(self) -> Version {
                match self {
                    $(Self::$name => Version::$version,)*
                }
            }

            /// Who signs.
            #[must_use]
            pub const fn authentication(self) -> Authentication {
                match self {
                    $(Self::$name => Authentication::$auth,)*
                }
            }

            /// What protects its records.
            #[must_use]
            pub const fn aead(self) -> AeadAlgorithm {
                match self {
                    $(Self::$name => AeadAlgorithm::$aead,)*
                }
            }

            /// The hash of its key schedule and transcript.
            #[must_use]
            pub const fn hash(self) -> HashAlgorithm {
                match self {
                    $(Self::$name => HashAlgorithm::$hash,)*
                }
            }
        }
    };
}

suites! {
    TLS_AES_128_GCM_SHA256 = 0x1301 "TLS_AES_128_GCM_SHA256" Tls13 Any Aes128Gcm Sha256,
    TLS_AES_256_GCM_SHA384 = 0x1302 "TLS_AES_256_GCM_SHA384" Tls13 Any Aes256Gcm Sha384,
    TLS_CHACHA20_POLY1305_SHA256 = 0x1303 "TLS_CHACHA20_POLY1305_SHA256" Tls13 Any ChaCha20Poly1305 Sha256,
    TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 = 0xc02b "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256" Tls12 Ecdsa Aes128Gcm Sha256,
    TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 = 0xc02c "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384" Tls12 Ecdsa Aes256Gcm Sha384,
    TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 = 0xcca9 "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256" Tls12 Ecdsa ChaCha20Poly1305 Sha256,
    TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 = 0xc02f "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256" Tls12 Rsa Aes128Gcm Sha256,
    TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 = 0xc030 "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384" Tls12 Rsa Aes256Gcm Sha384,
    TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 = 0xcca8 "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256" Tls12 Rsa ChaCha20Poly1305 Sha256,
}

/// A key-exchange group (RFC 8446 §4.2.7). X25519MLKEM768 has its place in [`SHARE_BYTES_MAX`], not yet a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum Group {
    /// X25519 (RFC 7748).
    X25519 = 0x001d,
    /// NIST P-256.
    Secp256r1 = 0x0017,
}

impl Group {
    /// Every group, in our order of preference.
    pub const ALL: &[Self] = &[Self::X25519, Self::Secp256r1];

    /// The group of that number, if it is spoken here.
    #[must_use]
    pub const fn from_wire(value: u16) -> Option<Self> {
        match value {
            0x001d => Some(Self::X25519),
            0x0017 => Some(Self::Secp256r1),
            _ => None,
        }
    }

    /// Its name in the IANA registry.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::X25519 => "x25519",
            Self::Secp256r1 => "secp256r1",
        }
    }

    /// Bytes of a share, both ways.
    #[must_use]
    pub const fn share_bytes(self) -> usize {
        match self {
            Self::X25519 => 32,
            Self::Secp256r1 => 65,
        }
    }
}

/// The longest share of any group here.
pub const SHARE_BYTES_MAX: usize = 65;

/// A signature scheme (RFC 8446 §4.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum SignatureScheme {
    /// ECDSA over P-256; in TLS 1.2 ECDSA with SHA-256 over either curve.
    EcdsaSecp256r1Sha256 = 0x0403,
    /// ECDSA over P-384; in TLS 1.2 ECDSA with SHA-384 over either curve.
    EcdsaSecp384r1Sha384 = 0x0503,
    /// RSA-PSS with a key of the common kind.
    RsaPssRsaeSha256 = 0x0804,
    /// RSA-PSS with a key of the common kind.
    RsaPssRsaeSha384 = 0x0805,
    /// RSA PKCS#1 v1.5: TLS 1.2, and certificates.
    RsaPkcs1Sha256 = 0x0401,
    /// RSA PKCS#1 v1.5: TLS 1.2, and certificates.
    RsaPkcs1Sha384 = 0x0501,
}

impl SignatureScheme {
    /// Every scheme, in our order of preference.
    pub const ALL: &[Self] = &[
        Self::EcdsaSecp256r1Sha256,
        Self::EcdsaSecp384r1Sha384,
        Self::RsaPssRsaeSha256,
        Self::RsaPssRsaeSha384,
        Self::RsaPkcs1Sha256,
        Self::RsaPkcs1Sha384,
    ];

    /// The scheme of that number, if it is spoken here.
    #[must_use]
    pub const fn from_wire(value: u16) -> Option<Self> {
        match value {
            0x0403 => Some(Self::EcdsaSecp256r1Sha256),
            0x0503 => Some(Self::EcdsaSecp384r1Sha384),
            0x0804 => Some(Self::RsaPssRsaeSha256),
            0x0805 => Some(Self::RsaPssRsaeSha384),
            0x0401 => Some(Self::RsaPkcs1Sha256),
            0x0501 => Some(Self::RsaPkcs1Sha384),
            _ => None,
        }
    }

    /// Its name in the IANA registry.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::EcdsaSecp256r1Sha256 => "ecdsa_secp256r1_sha256",
            Self::EcdsaSecp384r1Sha384 => "ecdsa_secp384r1_sha384",
            Self::RsaPssRsaeSha256 => "rsa_pss_rsae_sha256",
            Self::RsaPssRsaeSha384 => "rsa_pss_rsae_sha384",
            Self::RsaPkcs1Sha256 => "rsa_pkcs1_sha256",
            Self::RsaPkcs1Sha384 => "rsa_pkcs1_sha384",
        }
    }

    /// The hash whose digest is signed.
    #[must_use]
    pub const fn hash(self) -> HashAlgorithm {
        match self {
            Self::EcdsaSecp256r1Sha256 | Self::RsaPssRsaeSha256 | Self::RsaPkcs1Sha256 => HashAlgorithm::Sha256,
            Self::EcdsaSecp384r1Sha384 | Self::RsaPssRsaeSha384 | Self::RsaPkcs1Sha384 => HashAlgorithm::Sha384,
        }
    }
}
