//! What a transition sends: handshake messages gathered in plaintext, cut into records and sealed when keys change or the turn ends.

use crate::alert::Alert;
use crate::cause::Cause;
use crate::crypto::Provider;
use crate::message::Writer;
use crate::record::{ContentType, SizeLimits, TrafficKeys, WriteHalf};
use crate::session::Out;

/// The way out of a transition.
///
/// When full: [`Cause::Internal`]. Both buffers are the caller's, who knows how long our longest flight is: its own certificate chain decides.
pub struct Flight<'a, P: Provider> {
    write: &'a mut WriteHalf<P>,
    pending: Writer<'a>,
    out: Out<'a>,
    /// A close_notify was sent: nothing may follow it.
    is_closed: bool,
}

impl<'a, P: Provider> Flight<'a, P> {
    /// Nothing gathered yet. `pending` holds messages in plaintext until they are sealed into `out`.
    pub(crate) const fn new(write: &'a mut WriteHalf<P>, pending: &'a mut [u8], out: Out<'a>, is_closed: bool) -> Self {
        Self {
            write,
            pending: Writer::new(pending),
            out,
            is_closed,
        }
    }

    /// Gathers one handshake message: `encode` writes it whole, header included, to the start of the slice and gives its length (as
    /// [`Writer::fill`] does); the rest of the slice is scratch for it. What comes back is the message as written, for the transcript.
    pub fn add(&mut self, encode: impl FnOnce(&mut [u8]) -> Result<usize, Cause>) -> Result<&[u8], Cause> {
        let bytes = encode(self.pending.spare_mut())?;
        let start = self.pending.written();
        self.pending.commit(bytes)?;
        self.pending.as_slice().get(start..).ok_or(Cause::Internal)
    }

    /// What the peer takes at most, for every record that is not sealed yet.
    pub fn limit(&mut self, limits: SizeLimits) {
        self.write.limit(limits);
    }

    /// Seals what was gathered, a client's first hello: records from here are of version 0x0303.
    pub fn seal_first_hello(&mut self) -> Result<(), Cause> {
        self.seal()?;
        self.write.said_hello();
        Ok(())
    }

    /// Seals what was gathered, and everything after it under `keys`.
    pub fn install(&mut self, keys: TrafficKeys<P>) -> Result<(), Cause> {
        self.seal()?;
        self.write.install(keys);
        Ok(())
    }

    /// Seals what was gathered, then a change_cipher_spec, which is never protected in TLS 1.3: it must leave before keys are on.
    pub fn change_cipher_spec(&mut self) -> Result<(), Cause> {
        self.seal()?;
        self.record(ContentType::ChangeCipherSpec, &[1])
    }

    /// Seals what was gathered, then an alert that ends nothing.
    pub fn warn(&mut self, alert: Alert) -> Result<(), Cause> {
        self.seal()?;
        self.record(ContentType::Alert, &[alert.level(), alert as u8])
    }

    /// Seals what was gathered: as few records as its bytes and the peer's limit allow.
    pub fn seal(&mut self) -> Result<(), Cause> {
        if !self.is_closed {
            for content in self.pending.as_slice().chunks(self.write.content_bytes_max()) {
                seal_into(self.write, &mut self.out, ContentType::Handshake, content)?;
            }
        }
        self.pending.clear();
        Ok(())
    }

    fn record(&mut self, kind: ContentType, content: &[u8]) -> Result<(), Cause> {
        if self.is_closed {
            return Ok(());
        }
        seal_into(self.write, &mut self.out, kind, content)
    }
}

/// Seals an alert into `out`.
pub fn seal_alert<P: Provider>(write: &mut WriteHalf<P>, out: &mut Out<'_>, alert: Alert) -> Result<(), Cause> {
    seal_into(write, out, ContentType::Alert, &[alert.level(), alert as u8])
}

/// Seals one record of `content` into `out`.
///
/// When full: [`Cause::Internal`]; `out` is as it was.
fn seal_into<P: Provider>(
    write: &mut WriteHalf<P>,
    out: &mut Out<'_>,
    kind: ContentType,
    content: &[u8],
) -> Result<(), Cause> {
    let (before, _) = write.overhead();
    let slot = out.spare();
    slot.get_mut(before..)
        .and_then(|room| room.get_mut(..content.len()))
        .ok_or(Cause::Internal)?
        .copy_from_slice(content);
    let bytes = write.seal(kind, slot, content.len())?;
    out.commit(bytes);
    Ok(())
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    /// Content types and contents.
    type Records = Vec<(u8, Vec<u8>)>;

    use super::*;
    use crate::crypto::{AeadAlgorithm, TAG_BYTES};
    use crate::testing::Toy;

    fn keys() -> TrafficKeys<Toy> {
        TrafficKeys::tls13(&Toy, AeadAlgorithm::Aes128Gcm, &[0; 16], [0; 12]).unwrap()
    }

    /// What a flight leaves in `room` bytes: outer types and fragments.
    fn sent(
        room: usize,
        is_closed: bool,
        run: impl FnOnce(&mut Flight<'_, Toy>) -> Result<(), Cause>,
    ) -> (Result<(), Cause>, Records) {
        let (mut write, mut pending, mut out, mut filled) = (WriteHalf::plain(), [0; 256], [0; 1024], 0);
        let lent = Out::new(&mut out[..room], &mut filled);
        let mut flight = Flight::new(&mut write, &mut pending, lent, is_closed);
        let outcome = run(&mut flight).and_then(|()| flight.seal());
        let mut records = Vec::new();
        let mut rest = &out[..filled];
        while let [kind, 3, 3, high, low, after @ ..] = rest {
            let (fragment, after) = after.split_at(usize::from(u16::from_be_bytes([*high, *low])));
            records.push((*kind, fragment.to_vec()));
            rest = after;
        }
        assert!(rest.is_empty());
        (outcome, records)
    }

    fn add(flight: &mut Flight<'_, Toy>, message: &[u8]) -> Result<(), Cause> {
        let raw = flight.add(|spare| Writer::fill(spare, |w| w.bytes(message)))?;
        assert_eq!(raw, message);
        Ok(())
    }

    #[test]
    fn messages_share_a_record_until_keys_change() {
        let (outcome, records) = sent(1024, false, |flight| {
            add(flight, b"one")?;
            add(flight, b"two")?;
            flight.change_cipher_spec()?;
            flight.install(keys())?;
            add(flight, b"three")?;
            add(flight, b"four")?;
            flight.install(keys())
        });
        assert_eq!(outcome, Ok(()));
        assert_eq!(records[0], (22, b"onetwo".to_vec()));
        assert_eq!(records[1], (20, [1].to_vec()));
        assert_eq!((records[2].0, &records[2].1[..10]), (23, &b"threefour\x16"[..]));
        assert_eq!(records.len(), 3);
    }

    #[test]
    fn no_record_is_longer_than_the_peer_takes() {
        let (outcome, records) = sent(1024, false, |flight| {
            flight.install(keys())?;
            flight.limit(SizeLimits::NONE.with_record_size_limit(64));
            add(flight, &[7; 150])
        });
        assert_eq!(outcome, Ok(()));
        let lengths: Vec<usize> = records.iter().map(|(_, fragment)| fragment.len() - TAG_BYTES).collect();
        assert_eq!(lengths, [64, 64, 25], "the type counts");
    }

    #[test]
    fn when_full_it_says_so_and_no_half_record_is_left() {
        for room in 0..5 + 100 {
            let (outcome, records) = sent(room, false, |flight| add(flight, &[7; 100]));
            assert_eq!((outcome, records.len()), (Err(Cause::Internal), 0), "{room}");
        }
        let (outcome, _) = sent(1024, false, |flight| {
            add(flight, &[7; 200])?;
            add(flight, &[7; 57])
        });
        assert_eq!(outcome, Err(Cause::Internal), "the plaintext has bounds too");
    }

    #[test]
    fn after_a_close_nothing_leaves() {
        let (outcome, records) = sent(1024, true, |flight| {
            add(flight, b"one")?;
            flight.change_cipher_spec()?;
            flight.warn(Alert::NoRenegotiation)?;
            flight.install(keys())
        });
        assert_eq!((outcome, records.len()), (Ok(()), 0));
    }
}
