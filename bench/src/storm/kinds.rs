//! Handshakes that fail, as bytes that are the same each time: nothing of them costs the storm any cryptography.

use skerry_core::time::Timestamp;
use skerry_tls::alert::Alert;
use skerry_tls::crypto::system::SystemRandom;
use skerry_tls::testing::Fixture;
use skerry_tls::x509::develop::{Issued, Validity};

use crate::handshake::{Client, Key, Kind, Shape, canned, start_arena};
use skerry_tls::suite::Version;

/// What one connection does, one after the other.
#[derive(Clone, Debug)]
pub enum Step {
    /// Sends these bytes.
    Send(Vec<u8>),
    /// Waits for anything.
    Hear,
    /// Waits until the other side closes.
    End,
    /// Closes.
    Close,
    /// Closes with a reset.
    Reset,
}

/// A kind of failure.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Its name.
    pub name: &'static str,
    /// What a connection does.
    pub steps: Vec<Step>,
    /// Whether the server comes as far as its key exchange, and its signature.
    pub reaches_keys: bool,
    /// Whether it is for the listener that asks for certificates.
    pub is_mutual: bool,
}

/// No failure: a connection that is closed before its first byte, as a health probe does. What every other costs besides.
pub const NOTHING: &str = "closed at once";

fn hello(version: Version) -> Result<Vec<u8>, String> {
    let mut client = Client::new(Kind::new(version, Shape::Full, Key::P256));
    client.begin()?;
    Ok(client.take_out().to_vec())
}

fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u16).to_be_bytes();
    [&[kind, 3, 3], &length[..], content].concat()
}

/// A TLS 1.2 Certificate of one certificate.
fn certificate(der: &[u8]) -> Vec<u8> {
    let vector = |bytes: &[u8]| [&(bytes.len() as u32).to_be_bytes()[1..], bytes].concat();
    let body = vector(&vector(der));
    record(22, &[&[11], &vector(&body)[..]].concat())
}

/// Every kind.
///
/// Errors: a hello or certificate cannot be made.
pub fn failures() -> Result<Vec<Failure>, String> {
    start_arena();
    let hello_13 = hello(Version::Tls13)?;
    let hello_12 = hello(Version::Tls12)?;
    let mut old = hello_12.clone();
    canned::make_old(&mut old);
    let mut strange = hello_13.clone();
    canned::make_strange(&mut strange);
    let valid = |from, to| Validity {
        not_before: Timestamp(from),
        not_after: Timestamp(to),
    };
    let made = |error| format!("a certificate cannot be made: {error:?}");
    let always = valid(1_600_000_000_000, 4_000_000_000_000);
    let ours = Issued {
        certificate: Fixture::CA.certificate.into(),
        key: Fixture::CA.key.to_vec().into(),
    };
    let expired = ours
        .client(
            "device-17",
            valid(1_600_000_000_000, 1_700_000_000_000),
            &mut SystemRandom,
        )
        .map_err(made)?;
    let stranger = Issued::authority("Elsewhere", always, &mut SystemRandom)
        .and_then(|ca| ca.client("device-17", always, &mut SystemRandom))
        .map_err(made)?;
    let send = |bytes: &[u8]| Step::Send(bytes.into());
    let early = |name, bytes: &[u8]| Failure {
        name,
        steps: vec![send(bytes), Step::End],
        reaches_keys: false,
        is_mutual: false,
    };
    let late = |name, steps: Vec<Step>| Failure {
        name,
        steps,
        reaches_keys: true,
        is_mutual: false,
    };
    let with_certificate = |name, der: &[u8]| Failure {
        name,
        steps: vec![send(&hello_12), Step::Hear, Step::Send(certificate(der)), Step::End],
        reaches_keys: true,
        is_mutual: true,
    };
    let garbage: Vec<u8> = (0..512_u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    Ok(vec![
        Failure {
            name: NOTHING,
            steps: vec![Step::Close],
            reaches_keys: false,
            is_mutual: false,
        },
        // ApiVersions, as Kafka's clients begin.
        early("plaintext Kafka", canned::PLAINTEXT),
        early("HTTP", b"GET / HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n"),
        early("old version", &old),
        early("no common suite", &strange),
        early("garbage record", &record(22, &garbage)),
        early("oversize record", &[22, 3, 1, 0xff, 0xff, 1, 0, 0]),
        early(
            "out of sequence",
            &record(22, &[&[20, 0, 0, 32], &[7; 32][..]].concat()),
        ),
        Failure {
            name: "silence",
            steps: vec![Step::End],
            reaches_keys: false,
            is_mutual: false,
        },
        late("reset after hello", vec![send(&hello_13), Step::Reset]),
        late("close after hello", vec![send(&hello_13), Step::Close]),
        late(
            "alert unknown_ca",
            vec![
                send(&hello_13),
                Step::Hear,
                Step::Send(record(21, &[2, Alert::UnknownCa as u8])),
                Step::End,
            ],
        ),
        // Canned bytes have no keys: what comes is no more than a record that does not open.
        late(
            "bad Finished",
            vec![
                send(&hello_13),
                Step::Hear,
                Step::Send(record(23, &garbage[..53])),
                Step::End,
            ],
        ),
        with_certificate("expired client certificate", &expired.certificate),
        with_certificate("unknown client CA", &stranger.certificate),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_made_and_named_once() {
        let all = failures().unwrap();
        for (at, failure) in all.iter().enumerate() {
            assert!(all[..at].iter().all(|other| other.name != failure.name));
            let last = failure.steps.last().unwrap();
            assert!(
                matches!(last, Step::End | Step::Close | Step::Reset),
                "{}",
                failure.name
            );
        }
    }
}
