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
