//! One bit of a conversation changed on its way: an alert of its class, or success where the RFCs ignore the bit; never a hang, never a panic.

use skerry_tls::alert::Alert;
use skerry_tls::cause::Cause;
use skerry_tls::crypto::Provider;
use skerry_tls::testing::{Direction, Flip, Keys, Kind, PING, PONG, Stage, Toy, Whole};

/// What part of a stream a byte is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// A record's content type.
    Kind,
    /// The two bytes of its version.
    Version(usize),
    /// The two bytes of its length.
    Length,
    /// The three bytes of a handshake message's length.
    MessageLength,
    /// What else follows.
    Body,
}

/// The part that each byte of whole records is, and the content type outside.
fn parts(stream: &[u8]) -> Vec<(Part, u8)> {
    let mut parts = Vec::new();
    let mut rest = stream;
    // Bytes of a message without protection that are still to come, and its header before them.
    let (mut header, mut body) = (Vec::new(), 0);
    while let [kind, _, _, a, b, after @ ..] = rest {
        let (content, after) = after.split_at(usize::from(u16::from_be_bytes([*a, *b])));
        parts.extend([
            (Part::Kind, *kind),
            (Part::Version(0), *kind),
            (Part::Version(1), *kind),
        ]);
        parts.extend([(Part::Length, *kind); 2]);
        if *kind != 22 {
            parts.extend(std::iter::repeat_n((Part::Body, *kind), content.len()));
            rest = after;
            continue;
        }
        for byte in content {
            let is_length = body == 0 && !header.is_empty();
            parts.push((if is_length { Part::MessageLength } else { Part::Body }, *kind));
            if body > 0 {
                body -= 1;
                continue;
            }
            header.push(*byte);
            if let [_, a, b, c] = header[..] {
                body = u32::from_be_bytes([0, a, b, c]);
                header.clear();
            }
        }
        rest = after;
    }
    assert_eq!(parts.len(), stream.len());
    parts
}

/// Goal: no changed bit passes unseen. Method: each shape of handshake with its data and closes, `step` bytes apart, one bit changed that
/// depends on the place, in either direction.
///
/// Only the version of records without protection may change (RFC 8446 §5.1: ignored), in its low byte: the high one tells TLS from the rest.
/// Everything else is in the transcript, under a MAC, or a header that a rule holds.
fn flip<P: Provider>(provider: &P, step: usize) {
    let keys = Keys::new(provider);
    let (mut count, mut ignored, mut waiting) = (0, 0, 0);
    for (name, kind) in Kind::SHAPES {
        let stage = Stage::new(&keys, *kind);
        let whole = stage.handshake(&mut Whole, 9);
        for (direction, stream) in [
            (Direction::ToServer, &whole.to_server),
            (Direction::ToClient, &whole.to_client),
        ] {
            for at in (0..stream.len()).step_by(step) {
                let mask = 1 << ((at / step + at) % 8);
                let ended = stage.handshake(&mut Flip { direction, at, mask }, 9);
                // A signature may be shorter than it was before.
                let stream = match direction {
                    Direction::ToServer => &ended.to_server,
                    Direction::ToClient => &ended.to_client,
                };
                let Some(&(part, outside)) = parts(stream).get(at) else {
                    continue;
                };
                let what = format!(
                    "{name}, {direction:?}, byte {at} ^ {mask:#x}, {part:?} of {outside}\n{}",
                    ended.summary()
                );
                count += 1;
                let (sender, receiver) = match direction {
                    Direction::ToServer => (&ended.client, &ended.server),
                    Direction::ToClient => (&ended.server, &ended.client),
                };
                let fine = ended.server.data == PING && ended.client.data == PONG;
                if fine && receiver.cause.is_none() && receiver.is_closed {
                    assert!(part == Part::Version(1) && outside != 23, "passed unseen: {what}");
                    ignored += 1;
                    continue;
                }
                // The rest of what a length claims may still come: the handshake deadline ends that.
                if receiver.waits() {
                    assert!(matches!(part, Part::Length | Part::MessageLength), "hangs: {what}");
                    waiting += 1;
                    continue;
                }
                let cause = receiver.cause.unwrap_or_else(|| panic!("hangs: {what}"));
                assert!(class(cause, part, outside), "the wrong class: {what}");
                // The sender is told, in a way that it can read unless keys differ by now.
                let told = sender.cause.is_some() || sender.is_closed || sender.session.cause().is_some();
                assert!(
                    told || cause.alert().is_none() || fine,
                    "the sender was not told: {what}"
                );
            }
        }
    }
    println!(
        "{}: {count} changes, {ignored} ignored, {waiting} wait for the rest",
        provider.name()
    );
    assert!(ignored > 0, "the versions of the first records are ignored");
}

/// Whether a change of that part may end so.
fn class(cause: Cause, part: Part, outside: u8) -> bool {
    let header = matches!(part, Part::Kind | Part::Length);
    match cause {
        // A record that does not open: its body, a header that the AEAD covers, or keys that came of a changed hello.
        Cause::BadRecordMac | Cause::PeerAlert(Alert::BadRecordMac) => true,
        Cause::RecordOverflow => part == Part::Length,
        Cause::RecordVersion(_) => matches!(part, Part::Version(_) | Part::Length),
        Cause::BadRecord | Cause::BadAlert | Cause::PlaintextPeer(_) | Cause::Unprotected => header,
        Cause::HandshakeTooLong => part == Part::MessageLength || header,
        // Other rules hold what no keys protect, in as many ways as there are; what they protect is not read at all.
        Cause::Decode(_)
        | Cause::IllegalParameter(_)
        | Cause::MissingExtension(_)
        | Cause::UnsupportedExtension(_)
        | Cause::NoCommonVersion(_)
        | Cause::NoCommonSuite
        | Cause::NoCommonGroup
        | Cause::NoCommonScheme
        | Cause::InappropriateFallback
        | Cause::Renegotiation
        | Cause::MasterSecretChanged
        | Cause::BadShare
        | Cause::BadSignature
        | Cause::BadFinished
        | Cause::BadBinder
        | Cause::CertificateUnreadable
        | Cause::OutOfSequence { .. } => outside != 23 || header,
        // The sender saw it first, in what its peer made of it.
        Cause::PeerAlert(alert) => {
            let of_rules = [
                Alert::DecodeError,
                Alert::IllegalParameter,
                Alert::DecryptError,
                Alert::UnsupportedExtension,
                Alert::HandshakeFailure,
                Alert::UnexpectedMessage,
            ];
            of_rules.contains(&alert) && outside != 23
        }
        _ => false,
    }
}

#[cfg(feature = "fast")]
#[test]
fn fast() {
    flip(&skerry_tls::crypto::fast::Fast, 1);
}

#[cfg(feature = "mbedtls")]
#[test]
fn mbedtls() {
    let provider = skerry_tls::crypto::mbedtls::Mbedtls::new().expect("mbedtls");
    flip(&provider, 41);
}

/// Nothing hides or proves anything here, so that changes get far. What they must not do is hang, or panic, or be our fault.
#[test]
fn toy() {
    let keys = Keys::new(&Toy);
    for (name, kind) in Kind::SHAPES {
        let stage = Stage::new(&keys, *kind);
        let whole = stage.handshake(&mut Whole, 9);
        for (direction, bytes) in [
            (Direction::ToServer, whole.to_server.len()),
            (Direction::ToClient, whole.to_client.len()),
        ] {
            for at in 0..bytes {
                let mask = 1 << (at % 8);
                let ended = stage.handshake(&mut Flip { direction, at, mask }, 9);
                for cause in [ended.client.cause, ended.server.cause].into_iter().flatten() {
                    assert_ne!(
                        cause,
                        Cause::Internal,
                        "{name}, {direction:?}, byte {at} ^ {mask:#x}\n{}",
                        ended.summary()
                    );
                }
            }
        }
    }
}
