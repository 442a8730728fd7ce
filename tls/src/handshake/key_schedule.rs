//! The key schedule of TLS 1.3 (RFC 8446 §7).
