//! Words of a command line.

use skerry_tls::suite::{CipherSuite, Group, Version};

/// A version by its number.
pub fn version(text: &str) -> Result<Version, String> {
    match text {
        "1.2" => Ok(Version::Tls12),
        "1.3" => Ok(Version::Tls13),
        _ => Err("1.2 or 1.3".into()),
    }
}

/// A group by one of its names.
pub fn group(text: &str) -> Result<Group, String> {
    match text.to_ascii_lowercase().as_str() {
        "x25519" => Ok(Group::X25519),
        "p256" | "p-256" | "secp256r1" | "prime256v1" => Ok(Group::Secp256r1),
        _ => Err("x25519 or p256".into()),
    }
}

/// A suite by its IANA name.
pub fn suite(text: &str) -> Result<CipherSuite, String> {
    let suite = CipherSuite::ALL.iter().find(|suite| suite.name() == text);
    suite.copied().ok_or_else(|| {
        let names: Vec<_> = CipherSuite::ALL.iter().map(|suite| suite.name()).collect();
        format!("one of {}", names.join(", "))
    })
}
