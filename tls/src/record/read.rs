//! Opening what arrives.

use super::header::{Header, Peek};
use super::keys::Aad;
use super::{ContentType, HEADER_BYTES, RECORD_BYTES_MAX, SizeLimits, TrafficKeys};
use crate::cause::Cause;
use crate::crypto::{Aead, CryptoError, NONCE_BYTES, Provider, TAG_BYTES};

/// Records without content that are taken in a row, whatever else than data comes between them. They are legal for application data and cost the sender almost nothing.
pub const EMPTY_RECORDS_MAX: u8 = 32;

/// What one record carried.
#[derive(Debug, PartialEq, Eq)]
pub struct Opened<'r> {
    /// Its true content type.
    pub kind: ContentType,
    /// Its content, padding taken off. Empty for application data alone.
    pub content: &'r mut [u8],
}

/// One direction's keys and sequence number, for what arrives.
pub struct ReadHalf<P: Provider> {
    keys: Option<TrafficKeys<P>>,
    sequence: u64,
    limits: SizeLimits,
    /// Records without content since data last came.
    empty: u8,
    /// Whether the first record under these keys may be an alert without protection.
    takes_plain_alert: bool,
}

impl<P: Provider> ReadHalf<P> {
    /// Nothing is protected yet.
    #[must_use]
    pub const fn plain() -> Self {
        Self {
            keys: None,
            sequence: 0,
            limits: SizeLimits::NONE,
            empty: 0,
            takes_plain_alert: false,
        }
    }

    /// From the next record on these keys open.
    pub fn install(&mut self, keys: TrafficKeys<P>) {
        self.keys = Some(keys);
        self.sequence = 0;
        self.takes_plain_alert = false;
    }

    /// What we told the peer that it may send.
    pub fn limit(&mut self, limits: SizeLimits) {
        self.limits = limits;
    }

    /// Lets one alert through without protection, as long as nothing was opened with the present keys. A TLS 1.3 client that cannot use our
    /// ServerHello has no keys to say so with; with handshake keys on, that alert is the only word it has. Not for application keys:
    /// anyone could then fake a close_notify.
    pub fn allow_plain_alert(&mut self) {
        self.takes_plain_alert = true;
    }

    /// Whether records must be protected.
    #[must_use]
    pub const fn is_protected(&self) -> bool {
        self.keys.is_some()
    }

    /// Records opened with the present keys.
    #[must_use]
    pub const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Whether a whole record stands at the beginning of `input`. Looks at five bytes.
    ///
    /// The version of a record without protection may be any `0x03xx`: RFC 5246 §E.1 wants that for a ClientHello, and RFC 8446 §5.1 ignores
    /// it. With keys on it must be `0x0303`, the only one that a sender may write then.
    ///
    /// Errors, from the header alone: [`Cause::RecordOverflow`] before anything else: every AEAD here adds the same bytes to any plaintext, so the
    /// length outside tells the one inside, padding counted; [`Cause::BadRecord`]; [`Cause::RecordVersion`].
    pub fn peek(&self, input: &[u8]) -> Result<Peek, Cause> {
        Ok(match self.header(input)? {
            Err(more) => Peek::Need(more),
            Ok(header) => {
                let bytes = HEADER_BYTES + header.fragment_bytes;
                match bytes.saturating_sub(input.len()) {
                    0 => Peek::Whole {
                        kind: header.kind,
                        bytes,
                    },
                    more => Peek::Need(more),
                }
            }
        })
    }

    /// Opens one whole record in place; `record` is exactly what [`ReadHalf::peek`] found.
    ///
    /// A change_cipher_spec of TLS 1.3, never protected, comes out as it is.
    ///
    /// Errors: those of `peek`; [`Cause::BadRecordMac`] for one that does not open, however short, which leaves the sequence number as it
    /// was, so that early data that is not taken can be skipped; [`Cause::Unprotected`]; [`Cause::BadRecord`] for nothing but padding, for
    /// no known type inside, and for no content where some must be; [`Cause::TooManyEmptyRecords`]; [`Cause::KeyExhausted`] at the end of the
    /// sequence numbers; [`Cause::Internal`] when `record` is not one whole record. `record` holds nothing readable after one.
    /// Cost: one AEAD pass, no copy, no allocation.
    pub fn open<'r>(&mut self, record: &'r mut [u8]) -> Result<Opened<'r>, Cause> {
        let (kind, bytes, body) = match self.passage(record)? {
            Passage::Plain(header) => {
                let body = record.get_mut(HEADER_BYTES..).ok_or(Cause::Internal)?;
                let (kind, bytes) = self.taken(header.kind, body)?;
                (kind, bytes, body)
            }
            Passage::Sealed(header, sealed) => {
                let body = record.get_mut(sealed.body_at..).ok_or(Cause::Internal)?;
                let aead = &self.keys.as_ref().ok_or(Cause::Internal)?.aead;
                aead.open(&sealed.nonce, sealed.aad.bytes(), body).map_err(cause)?;
                let inner = body.get(..sealed.inner_bytes).ok_or(Cause::Internal)?;
                let (kind, bytes) = self.opened(header.kind, inner)?;
                (kind, bytes, body)
            }
        };
        let content = body.get_mut(..bytes).ok_or(Cause::Internal)?;
        Ok(Opened { kind, content })
    }

    /// As [`ReadHalf::open`], but into `out`, which must have [`ReadHalf::room`] for it. The content is where `out` begins; the rest of that
    /// room is left with padding.
    ///
    /// Errors: those of `open`; [`Cause::Internal`] when `out` is too short, and nothing was done then.
    /// Cost: one AEAD pass from one buffer to the other, no copy, no allocation.
    pub fn open_into<'o>(&mut self, record: &[u8], out: &'o mut [u8]) -> Result<Opened<'o>, Cause> {
        let (kind, bytes) = match self.passage(record)? {
            Passage::Plain(header) => {
                let body = record.get(HEADER_BYTES..).ok_or(Cause::Internal)?;
                out.get_mut(..body.len()).ok_or(Cause::Internal)?.copy_from_slice(body);
                self.taken(header.kind, body)?
            }
            Passage::Sealed(header, sealed) => {
                let body = record.get(sealed.body_at..).ok_or(Cause::Internal)?;
                let inner = out.get_mut(..sealed.inner_bytes).ok_or(Cause::Internal)?;
                let aead = &self.keys.as_ref().ok_or(Cause::Internal)?.aead;
                aead.open_into(&sealed.nonce, sealed.aad.bytes(), body, inner)
                    .map_err(cause)?;
                self.opened(header.kind, inner)?
            }
        };
        let content = out.get_mut(..bytes).ok_or(Cause::Internal)?;
        Ok(Opened { kind, content })
    }

    /// Bytes that [`ReadHalf::open_into`] wants for the record that `peek` found: its content, type and padding.
    #[must_use]
    pub fn room(&self, kind: ContentType, record_bytes: usize) -> usize {
        let fragment_bytes = record_bytes.saturating_sub(HEADER_BYTES);
        match &self.keys {
            Some(keys) if !keys.is_13 || kind == ContentType::ApplicationData => {
                fragment_bytes.saturating_sub(keys.explicit_bytes() + TAG_BYTES)
            }
            // TLS 1.3's change_cipher_spec comes as it is.
            Some(_) | None => fragment_bytes,
        }
    }

    fn header(&self, input: &[u8]) -> Result<Result<Header, usize>, Cause> {
        let is_data = input.first() == Some(&(ContentType::ApplicationData as u8));
        let fragment_bytes_max = match &self.keys {
            // What comes unprotected although there are keys is no longer than it was without.
            Some(keys) if keys.is_13 && !is_data => self.limits.content_bytes_max(None),
            Some(keys) => self.limits.content_bytes_max(Some(keys.inner_bytes())) + keys.expansion(),
            // Without keys it is early data, if anything, under keys that we do not have (RFC 8446 §4.2.10).
            None if is_data => RECORD_BYTES_MAX - HEADER_BYTES,
            None => self.limits.content_bytes_max(None),
        };
        Header::read(input, fragment_bytes_max, self.is_protected())
    }

    /// How a record passes: as it is, or opened with what is laid out here.
    fn passage(&self, record: &[u8]) -> Result<Passage, Cause> {
        let header = self.header(record)?.map_err(|_| Cause::Internal)?;
        if record.len() != HEADER_BYTES + header.fragment_bytes {
            return Err(Cause::Internal);
        }
        let Some(keys) = &self.keys else {
            return Ok(Passage::Plain(header));
        };
        if keys.is_13 {
            match header.kind {
                ContentType::ApplicationData => {}
                ContentType::ChangeCipherSpec => return Ok(Passage::Plain(header)),
                ContentType::Alert if self.takes_plain_alert && self.sequence == 0 => {
                    return Ok(Passage::Plain(header));
                }
                ContentType::Alert | ContentType::Handshake => return Err(Cause::Unprotected),
            }
        }
        if self.sequence == u64::MAX {
            return Err(Cause::KeyExhausted);
        }
        let fixed = keys.explicit_bytes() + TAG_BYTES;
        let inner_bytes = header.fragment_bytes.checked_sub(fixed).ok_or(Cause::BadRecordMac)?;
        let variable = match keys.explicit_bytes() {
            0 => self.sequence.to_be_bytes(),
            _ => *record
                .get(HEADER_BYTES..)
                .and_then(<[u8]>::first_chunk)
                .ok_or(Cause::BadRecordMac)?,
        };
        Ok(Passage::Sealed(
            header,
            Sealed {
                body_at: HEADER_BYTES + keys.explicit_bytes(),
                inner_bytes,
                nonce: keys.nonces.nonce(variable),
                aad: Aad::new(keys.is_13, self.sequence, header, inner_bytes),
            },
        ))
    }

    /// A record was opened: its true type, and how much of `inner` is content.
    fn opened(&mut self, outside: ContentType, inner: &[u8]) -> Result<(ContentType, usize), Cause> {
        self.sequence = self.sequence.saturating_add(1);
        if !self.keys.as_ref().is_some_and(|keys| keys.is_13) {
            return self.taken(outside, inner);
        }
        let (&kind, content) = without_padding(inner).split_last().ok_or(Cause::BadRecord)?;
        match ContentType::from_wire(kind) {
            // change_cipher_spec is never protected (RFC 8446 §5).
            None | Some(ContentType::ChangeCipherSpec) => Err(Cause::BadRecord),
            Some(kind) => self.taken(kind, content),
        }
    }

    /// Content is known: whether it may be empty, and how often in a row (RFC 8446 §5.1, §5.4).
    fn taken(&mut self, kind: ContentType, content: &[u8]) -> Result<(ContentType, usize), Cause> {
        match (kind, content.is_empty()) {
            (ContentType::ApplicationData, false) => self.empty = 0,
            (_, false) => {}
            (ContentType::ApplicationData, true) if self.empty < EMPTY_RECORDS_MAX => self.empty += 1,
            (ContentType::ApplicationData, true) => return Err(Cause::TooManyEmptyRecords),
            (_, true) => return Err(Cause::BadRecord),
        }
        Ok((kind, content.len()))
    }
}

enum Passage {
    Plain(Header),
    Sealed(Header, Sealed),
}

struct Sealed {
    body_at: usize,
    /// Bytes that come out, the type and padding counted.
    inner_bytes: usize,
    nonce: [u8; NONCE_BYTES],
    aad: Aad,
}

fn cause(error: CryptoError) -> Cause {
    match error {
        CryptoError::Rejected => Cause::BadRecordMac,
        CryptoError::ArenaFull => Cause::ArenaFull,
        CryptoError::Failed => Cause::Internal,
    }
}

/// `content ‖ type ‖ zeros` without the zeros.
///
/// Goes from the end, so its time tells how many zeros there are and nothing else: the length of padding is what RFC 8446 §E.3 gives up. Sixteen
/// bytes are compared as one number, so that where in them the first other byte stands is not told.
fn without_padding(mut inner: &[u8]) -> &[u8] {
    while let Some((rest, tail)) = inner.split_last_chunk()
        && u128::from_ne_bytes(*tail) == 0
    {
        inner = rest;
    }
    while let Some((0, rest)) = inner.split_last() {
        inner = rest;
    }
    inner
}

#[cfg(all(test, feature = "fast"))]
mod tests {
    use super::*;
    use crate::crypto::AeadAlgorithm;
    use crate::crypto::fast::Fast;
    use crate::record::WriteHalf;

    #[test]
    fn the_last_sequence_number_is_never_used() {
        let keys = || TrafficKeys::tls13(&Fast, AeadAlgorithm::ChaCha20Poly1305, &[1; 32], [2; 12]).unwrap();
        let (mut write, mut read) = (WriteHalf::<Fast>::plain(), ReadHalf::<Fast>::plain());
        write.install(keys());
        read.install(keys());
        write.start_at(u64::MAX - 1);
        read.sequence = u64::MAX - 1;
        let mut slot = [0; 32];
        let bytes = write.seal(ContentType::ApplicationData, &mut slot, 5).unwrap();
        assert!(write.wants_key_update());
        let mut again = slot;
        assert_eq!(read.open(&mut slot[..bytes]).unwrap().content, [0; 5]);
        assert_eq!(
            write.seal(ContentType::ApplicationData, &mut slot, 5),
            Err(Cause::KeyExhausted)
        );
        assert_eq!(read.open(&mut again[..bytes]), Err(Cause::KeyExhausted));
    }

    #[test]
    fn padding_is_what_follows_the_last_byte_that_is_not_zero() {
        for zeros in 0..70 {
            for content in [&[][..], &[1], &[0, 1], &[0; 33]] {
                let inner = [content, &[23], &[0; 70][..zeros]].concat();
                assert_eq!(without_padding(&inner), [content, &[23]].concat());
            }
            assert_eq!(without_padding(&[0; 70][..zeros]), []);
        }
    }
}
