//! Bytes of clients that a server cannot serve.

/// An ApiVersions request, as Kafka's clients begin in plaintext.
pub const PLAINTEXT: &[u8] = b"\0\0\0\x28\0\x12\0\x03\0\0\0\x01\0\x0aconsumer-1\0\x0eskerry-client\x061.2.3\0\0";

/// Where a hello's version stands: after the headers of record and message.
const VERSION_AT: usize = 9;
/// Where the length of its session id stands: after version and random.
const SESSION_ID_AT: usize = VERSION_AT + 2 + 32;

/// Makes a TLS 1.2 hello one of TLS 1.1.
pub fn make_old(hello: &mut [u8]) {
    hello[VERSION_AT..][..2].copy_from_slice(&[3, 2]);
}

/// Makes the first suite of a hello TLS_AES_128_CCM_SHA256, which nobody here has by default.
pub fn make_strange(hello: &mut [u8]) {
    let suites = SESSION_ID_AT + 1 + usize::from(hello[SESSION_ID_AT]) + 2;
    hello[suites..][..2].copy_from_slice(&[0x13, 0x04]);
}
