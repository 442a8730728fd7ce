//! Any bytes as TLS records: whatever comes, sealed or not, both ways of opening agree, nothing longer than agreed comes out, and what was opened can be
//! sealed again.
//!
//! The first byte chooses the protection, the second what was agreed about sizes. Then records: three bytes choose whether one is sealed with
//! the right key and number, and which header it bears; the rest is what is inside.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skerry_tls::cause::Cause;
use skerry_tls::crypto::fast::Fast;
use skerry_tls::crypto::{Aead as _, AeadAlgorithm, Provider as _};
use skerry_tls::record::{ContentType, Peek, ReadHalf, SizeLimits, TrafficKeys, WriteHalf};

const KEY: [u8; 32] = [7; 32];
const IV: [u8; 12] = [9; 12];

/// Keys for the choice: every suite of both versions, or none.
fn keys(choice: u8) -> Option<TrafficKeys<Fast>> {
    let aead = aead(choice);
    let key = &KEY[..aead.key_bytes()];
    match choice % 7 {
        0 => None,
        1..=3 => {
            let fixed = &IV[..skerry_tls::record::fixed_iv_bytes(aead)];
            Some(TrafficKeys::tls12(&Fast, aead, key, fixed).unwrap())
        }
        _ => Some(TrafficKeys::tls13(&Fast, aead, key, IV).unwrap()),
    }
}

fn aead(choice: u8) -> AeadAlgorithm {
    match choice % 3 {
        0 => AeadAlgorithm::Aes128Gcm,
        1 => AeadAlgorithm::Aes256Gcm,
        _ => AeadAlgorithm::ChaCha20Poly1305,
    }
}

fn limits(choice: u8) -> SizeLimits {
    let limits = SizeLimits::NONE.with_max_fragment_length(choice & 7);
    let limits = limits.unwrap_or(SizeLimits::NONE);
    match choice >> 3 {
        0 => limits,
        some => limits.with_record_size_limit(u16::from(some) * 600),
    }
}

/// A TLS 1.3 record around any inner plaintext.
fn sealed(choice: u8, sequence: u64, inner: &[u8]) -> Vec<u8> {
    let mut nonce = IV;
    for (byte, counted) in nonce[4..].iter_mut().zip(sequence.to_be_bytes()) {
        *byte ^= counted;
    }
    let algorithm = aead(choice);
    let aead = Fast.aead(algorithm, &KEY[..algorithm.key_bytes()]).unwrap();
    let length = ((inner.len() + 16) as u16).to_be_bytes();
    let mut record = [&[23, 3, 3, length[0], length[1]], inner].concat();
    let (header, body) = record.split_at_mut(5);
    let tag = aead.seal(&nonce, header, body).unwrap();
    record.extend(tag);
    record
}

fuzz_target!(|data: &[u8]| {
    let Some(([protection, agreed], mut rest)) = data.split_first_chunk() else {
        return;
    };
    let (protection, limits) = (*protection, limits(*agreed));
    let (mut here, mut there, mut write) = (ReadHalf::plain(), ReadHalf::plain(), WriteHalf::plain());
    for read in [&mut here, &mut there] {
        keys(protection).map(|keys| read.install(keys));
        read.limit(limits);
        if agreed & 1 == 1 {
            read.allow_plain_alert();
        }
    }
    keys(protection).map(|keys| write.install(keys));
    write.limit(limits);
    while let Some(([how, kind, length], more)) = rest.split_first_chunk() {
        // Lengths around 2^14 without as many bytes of input.
        let (bytes, fill) = match how >> 6 {
            0 => (usize::from(*length), 0),
            1 => (usize::from(*length), 16_384 - 40),
            _ => (usize::from(*length) * 4, 0),
        };
        let (inside, more) = more.split_at(bytes.min(more.len()));
        rest = more;
        let inside = [inside, &vec![0; fill]].concat();
        let mut record = if protection % 7 > 3 && how & 1 == 1 {
            sealed(protection, here.sequence(), &inside)
        } else {
            let length = (inside.len() as u16).to_be_bytes();
            [&[*kind, 3, 3 & how, length[0], length[1]][..], &inside].concat()
        };
        match here.peek(&record) {
            Ok(Peek::Whole { kind, bytes }) => {
                assert_eq!(bytes, record.len());
                let mut out = vec![0; there.room(kind, bytes)];
                let into = there.open_into(&record, &mut out);
                let opened = here.open(&mut record);
                assert_eq!(into, opened);
                let Ok(opened) = opened else { continue };
                if !write.is_protected() && kind == ContentType::ApplicationData {
                    // Somebody's early data, sealed: longer than content may be.
                    continue;
                }
                if protection % 7 > 3 && kind != ContentType::ApplicationData {
                    // What TLS 1.3 never protects: a limit on records is one on protected records (RFC 8449 §4).
                    assert!(opened.content.len() <= 1 << 14);
                    continue;
                }
                assert!(opened.content.len() <= write.content_bytes_max());
                let (before, after) = write.overhead();
                let mut slot = vec![0; before + opened.content.len() + after];
                slot[before..][..opened.content.len()].copy_from_slice(opened.content);
                let sealed = write.seal(opened.kind, &mut slot, opened.content.len());
                assert_eq!(sealed, Ok(slot.len()));
            }
            Ok(Peek::Need(_)) => unreachable!("it is whole"),
            Err(cause) => assert!(
                matches!(
                    cause,
                    Cause::RecordOverflow | Cause::BadRecord | Cause::RecordVersion(_)
                ),
                "{cause:?}"
            ),
        }
    }
});
